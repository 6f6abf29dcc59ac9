// Host functions that launch the kernels of one file, for programs that are compiled by nvcc. What
// they do is what gen/prepared.c and the backend do for a plan, with every number written out: the
// launches are those of one problem, and other sizes are refused.

#include "gen/arguments.h"
#include "gen/shared/code.h"
#include "gen/shared/signature.h"
#include "gen/shared/tidy.h"
#include "gen/skeleton.h"
#include "gen/standalone.h"
#include "gen/workspace.h"

#include <stdlib.h>
#include <string.h>

struct writer {
    const struct kg_problem *problem;
    const struct kg_choice *choice;
    const struct kg_device_facts *facts;
    struct kg_grids grids[KG_MAX_NESTS]; // by group
    struct kg_workspace workspace;
    bool exactly; // no other GPU has all instructions
    struct kg_code code;
};

static bool is_empty(const struct kg_grid *grid)
{
    return grid->blocks[0] == 0 || grid->blocks[1] == 0 || grid->blocks[2] == 0;
}

static bool is_outer(const struct kg_tensor *tensor)
{
    return tensor->role != KG_ROLE_LOCAL;
}

static int outer_count(const struct kg_problem *problem)
{
    return problem->op->input_count + problem->op->output_count;
}

// Declarations, also for the comment at the top.

static void add_launch_head(const struct kg_op *op, struct kg_text *text)
{
    kg_text_format(text, "cudaError_t %s_launch(", op->name);
    kg_emit_parameters(op, text);
    kg_text_add(text, ", void *scratch, size_t scratch_bytes, cudaStream_t stream)");
}

static void add_scratch_head(const struct kg_op *op, struct kg_text *text)
{
    kg_text_format(text, "size_t %s_scratch_bytes(", op->name);
    kg_emit_size_parameters(op, text);
    kg_text_add(text, ")");
}

// "P == 4096 && D == 1000"; "true" without sizes.
static void add_size_test(const struct kg_problem *problem, struct kg_text *text)
{
    bool any = false;
    for (int i = 0; i < problem->op->size_count; i++) {
        if (!kg_size_is_argument(problem->op->sizes[i]))
            continue;
        kg_text_add(text, any ? " && " : "");
        kg_emit_name(text, problem->op->sizes[i]->name);
        kg_text_format(text, " == %lld", (long long)problem->sizes[i]);
        any = true;
    }
    kg_text_add(text, any ? "" : "true");
}

// Tensors must be there, at a multiple of their elements' bytes.
static void check_tensors(struct writer *writer)
{
    const struct kg_problem *problem = writer->problem;
    for (int id = 0; id < outer_count(problem); id++) {
        int bytes = kg_dtypes[problem->tensors[id]->type.dtype].bits / 8;
        if (problem->layouts[id].bytes == 0)
            continue;
        struct kg_text name = {0};
        kg_emit_name(&name, problem->tensors[id]->name);
        kg_code_begin(&writer->code);
        kg_text_format(writer->code.text, "if (!%s", kg_text_string(&name));
        if (bytes > 1)
            kg_text_format(writer->code.text, " || !kg_is_multiple(%s, %d)", kg_text_string(&name),
                           bytes);
        kg_text_add(writer->code.text, ")");
        kg_code_end(&writer->code);
        kg_code_indent(&writer->code);
        kg_code_line(&writer->code, "return cudaErrorInvalidDevicePointer;");
        kg_code_outdent(&writer->code);
        kg_text_free(&name);
    }
}

static void check_call(struct writer *writer)
{
    struct kg_code *code = &writer->code;
    kg_code_begin(code);
    kg_text_add(code->text, "if (!(");
    add_size_test(writer->problem, code->text);
    kg_text_add(code->text, "))");
    kg_code_end(code);
    kg_code_indent(code);
    kg_code_line(code, "return cudaErrorInvalidValue;");
    kg_code_outdent(code);
    check_tensors(writer);
    if (writer->workspace.bytes == 0) {
        kg_code_line(code, "(void)scratch, (void)scratch_bytes;");
        return;
    }
    kg_code_line(code, "if (!scratch || scratch_bytes < %zu || !kg_is_multiple(scratch, %zu))",
                 writer->workspace.bytes, KG_WORKSPACE_ALIGNMENT);
    kg_code_indent(code);
    kg_code_line(code, "return cudaErrorMemoryAllocation;");
    kg_code_outdent(code);
}

// Pointers into the scratch of the caller.
static void bind_locals(struct writer *writer)
{
    const struct kg_problem *problem = writer->problem;
    struct kg_code *code = &writer->code;
    for (int id = outer_count(problem); id < problem->tensor_count; id++) {
        const struct kg_tensor *tensor = problem->tensors[id];
        if (is_outer(tensor) || !kg_choice_in_memory(writer->choice, id))
            continue;
        kg_code_begin(code);
        kg_text_format(code->text, "%s *const ", kg_emit_tensor_storage(tensor));
        kg_emit_name(code->text, tensor->name);
        kg_text_format(code->text, " = (%s *)((char *)scratch + %zu);",
                       kg_emit_tensor_storage(tensor), writer->workspace.places[id]);
        kg_code_end(code);
    }
    if (writer->workspace.bytes > 0)
        kg_code_line(code, "char *const kg_scratch = (char *)scratch + %zu;",
                     writer->workspace.scratch);
    else
        kg_code_line(code, "char *const kg_scratch = nullptr;");
}

static void add_numbers(struct kg_text *text, const int64_t *numbers, int count)
{
    for (int i = 0; i < count; i++)
        kg_text_format(text, "%s%lld", i > 0 ? ", " : "", (long long)numbers[i]);
}

static const char *element_type(int bytes)
{
    return bytes == 1   ? "CU_TENSOR_MAP_DATA_TYPE_UINT8"
           : bytes == 2 ? "CU_TENSOR_MAP_DATA_TYPE_UINT16"
           : bytes == 4 ? "CU_TENSOR_MAP_DATA_TYPE_UINT32"
                        : "CU_TENSOR_MAP_DATA_TYPE_UINT64";
}

static const char *swizzle_pattern(int bytes)
{
    return bytes == 0    ? "CU_TENSOR_MAP_SWIZZLE_NONE"
           : bytes == 32 ? "CU_TENSOR_MAP_SWIZZLE_32B"
           : bytes == 64 ? "CU_TENSOR_MAP_SWIZZLE_64B"
                         : "CU_TENSOR_MAP_SWIZZLE_128B";
}

static bool is_map_empty(const struct kg_map *map)
{
    for (int dim = 0; dim < map->rank; dim++)
        if (map->shape[dim] == 0)
            return true;
    return map->rank == 0;
}

// Maps of nothing stay zero.
static void encode_map(struct writer *writer, const struct kg_map *map, int number)
{
    struct kg_code *code = &writer->code;
    struct kg_text *text = code->text;
    int64_t box[KG_MAX_MAP_RANK];
    kg_code_line(code, "kg_tensor_map kg_map_%d = {};", number);
    if (is_map_empty(map))
        return;
    for (int dim = 0; dim < map->rank; dim++)
        box[dim] = map->box[dim];
    kg_code_begin(code);
    kg_text_format(text, "const kg_map_shape kg_shape_%d = {%s, %s, %d, {", number,
                   element_type(map->element), swizzle_pattern(map->swizzle), map->rank);
    add_numbers(text, map->shape, map->rank);
    kg_text_add(text, "}, {");
    add_numbers(text, map->stride + 1, map->rank - 1);
    kg_text_add(text, "}, {");
    add_numbers(text, box, map->rank);
    kg_text_add(text, "}};");
    kg_code_end(code);
    kg_code_line(code, "if (!kg_status)");
    kg_code_indent(code);
    kg_code_begin(code);
    kg_text_format(text, "kg_status = kg_encode(kg_shape_%d, (const char *)", number);
    if (map->tensor == KG_MAP_SCRATCH)
        kg_text_add(text, "kg_scratch");
    else
        kg_emit_name(text, writer->problem->tensors[map->tensor]->name);
    kg_text_format(text, " + %zu, &kg_map_%d);", map->offset, number);
    kg_code_end(code);
    kg_code_outdent(code);
}

static void add_argument(struct writer *writer, const struct kg_argument *argument)
{
    const struct kg_problem *problem = writer->problem;
    struct kg_text *text = writer->code.text;
    switch (argument->kind) {
    case KG_ARGUMENT_TENSOR:
        kg_emit_name(text, problem->tensors[argument->id]->name);
        return;
    case KG_ARGUMENT_SIZE:
        if (kg_size_is_argument(problem->op->sizes[argument->id]))
            kg_emit_name(text, problem->op->sizes[argument->id]->name);
        else
            kg_text_format(text, "%lld", (long long)problem->sizes[argument->id]);
        return;
    case KG_ARGUMENT_STRIDE:
        kg_text_format(text, "%lld",
                       (long long)problem->layouts[argument->id].stride[argument->dim]);
        return;
    case KG_ARGUMENT_SCRATCH:
        kg_text_add(text, "kg_scratch");
        return;
    case KG_ARGUMENT_MAP:
        kg_text_format(text, "kg_map_%d", argument->id);
        return;
    }
}

static void launch(struct writer *writer, int position, int function, const struct kg_grid *grid,
                   int maps)
{
    struct kg_argument arguments[KG_MAX_ARGUMENTS];
    struct kg_code *code = &writer->code;
    char entry[256];
    int count =
        kg_group_arguments_and_maps(&writer->choice->matches[position]->group, maps, arguments);
    kg_choice_entry(writer->choice, position, entry, sizeof entry);
    kg_code_line(code, "if (!kg_status)");
    kg_code_indent(code);
    kg_code_begin(code);
    kg_text_format(code->text, "kg_status = kg_launch(%s_%d, {{%lld, %lld, %lld}, {%d, %d, %d}, ",
                   entry, function, (long long)grid->blocks[0], (long long)grid->blocks[1],
                   (long long)grid->blocks[2], grid->threads[0], grid->threads[1],
                   grid->threads[2]);
    kg_text_format(code->text, "%d, %d, %s}, stream", grid->shared,
                   grid->cluster > 1 ? grid->cluster : 1, grid->early ? "true" : "false");
    for (int i = 0; i < count; i++) {
        kg_text_add(code->text, ", ");
        add_argument(writer, &arguments[i]);
    }
    kg_text_add(code->text, ");");
    kg_code_end(code);
    kg_code_outdent(code);
}

static void launch_all(struct writer *writer, int position, const struct kg_grid *all,
                       const struct kg_map *maps)
{
    const struct kg_grids *grids = &writer->grids[position];
    bool any = false;
    for (int i = 0; i < grids->count; i++)
        any |= !is_empty(&all[i]);
    for (int i = 0; i < grids->map_count && any; i++)
        encode_map(writer, &maps[i], i);
    for (int i = 0; i < grids->count; i++)
        if (!is_empty(&all[i]))
            launch(writer, position, i, &all[i], grids->map_count);
}

// "kg_is_multiple(x, 16) && kg_is_multiple(y, 16)"; false without a tensor of the caller.
static bool add_alignment_test(struct writer *writer, int position, struct kg_text *text)
{
    struct kg_argument arguments[KG_MAX_ARGUMENTS];
    int count = kg_group_arguments(&writer->choice->matches[position]->group, arguments);
    int alignment = writer->grids[position].alignment;
    bool any = false;
    for (int i = 0; i < count && alignment > 1; i++) {
        const struct kg_tensor *tensor = writer->problem->tensors[arguments[i].id];
        if (arguments[i].kind != KG_ARGUMENT_TENSOR || !is_outer(tensor))
            continue;
        kg_text_add(text, any ? " && kg_is_multiple(" : "kg_is_multiple(");
        kg_emit_name(text, tensor->name);
        kg_text_format(text, ", %d)", alignment);
        any = true;
    }
    return any;
}

// One group: its launches, or those for addresses that are not aligned.
static void run_group(struct writer *writer, int position)
{
    const struct kg_grids *grids = &writer->grids[position];
    struct kg_code *code = &writer->code;
    struct kg_text test = {0};
    if (add_alignment_test(writer, position, &test)) {
        kg_code_open(code, "if (%s)", kg_text_string(&test));
        launch_all(writer, position, grids->grids, grids->maps);
        code->depth--;
        kg_code_open(code, "} else");
        launch_all(writer, position, grids->unaligned, grids->unaligned_maps);
    } else {
        kg_code_line(code, "{");
        code->depth++;
        launch_all(writer, position, grids->grids, grids->maps);
    }
    kg_code_close(code);
    code->text->failed |= test.failed;
    kg_text_free(&test);
}

// "sm_90a": 90.
static int capability_of(const struct kg_device_facts *facts)
{
    return (int)strtol(facts->isa + strcspn(facts->isa, "0123456789"), NULL, 10);
}

static void write_scratch(struct writer *writer)
{
    struct kg_text *text = writer->code.text;
    kg_text_add(text, "extern \"C\" ");
    add_scratch_head(writer->problem->op, text);
    kg_text_add(text, "\n{\n    return ");
    add_size_test(writer->problem, text);
    kg_text_format(text, " ? %zu : SIZE_MAX;\n}\n\n", writer->workspace.bytes);
}

static void write_launch(struct writer *writer)
{
    struct kg_code *code = &writer->code;
    kg_text_add(code->text, "extern \"C\" ");
    add_launch_head(writer->problem->op, code->text);
    kg_text_add(code->text, "\n{\n");
    code->depth = 1;
    check_call(writer);
    kg_code_line(code, "cudaError_t kg_status = kg_check_device(%d, %s, %d);",
                 capability_of(writer->facts), writer->exactly ? "true" : "false",
                 writer->facts->units);
    bind_locals(writer);
    for (int i = 0; i < writer->choice->count; i++)
        run_group(writer, i);
    kg_code_line(code, "(void)kg_scratch, (void)stream;");
    kg_code_line(code, "return kg_status;");
    kg_text_add(code->text, "}\n");
}

// Instructions of one architecture only: nvcc's sm_90a stands for code of compute_90 too, which has
// none of them. There a kernel stops the program instead of doing nothing.
static bool needs_exact_gpu(const struct kg_device_facts *facts, const struct kg_text *kernels)
{
    size_t length = strlen(facts->isa);
    return length > 0 && facts->isa[length - 1] == 'a' &&
           (strstr(kg_text_string(kernels), "\"wgmma.") ||
            strstr(kg_text_string(kernels), "\"setmaxnreg."));
}

static void guard_kernels(const struct kg_text *kernels, int capability, struct kg_text *text)
{
    static const char head[] = "extern \"C\" __global__ ", open[] = "\n{\n", close[] = "\n}\n";
    const char *at = kg_text_string(kernels), *kernel;
    while ((kernel = strstr(at, head)) != NULL) {
        const char *from = strstr(kernel, open), *to = from ? strstr(from, close) : NULL;
        if (!to)
            break;
        from += sizeof open - 1;
        kg_text_add_bytes(text, at, (size_t)(from - at));
        kg_text_format(text,
                       "#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM%d_ALL)\n"
                       "    __trap(); // compiled for another GPU\n#else\n",
                       capability);
        kg_text_add_bytes(text, from, (size_t)(to + 1 - from));
        kg_text_add(text, "#endif\n");
        at = to + 1;
    }
    kg_text_add(text, at);
}

// What the file is for: how to compile it, what to call, what is refused.
static void add_usage(struct writer *writer, struct kg_text *text)
{
    const struct kg_op *op = writer->problem->op;
    const char *isa = writer->facts->isa + strcspn(writer->facts->isa, "0123456789");
    kg_text_format(text,
                   "// Compile: nvcc -std=c++17 -gencode arch=compute_%s,code=sm_%s -c %s.cu\n"
                   "// Call:    extern \"C\" ",
                   isa, isa, op->name);
    add_launch_head(op, text);
    kg_text_add(text, ";\n//          extern \"C\" ");
    add_scratch_head(op, text);
    kg_text_add(text, ";\n// Sizes:   ");
    add_size_test(writer->problem, text);
    kg_text_format(text,
                   "; for others the launches would be others, and are refused\n//\n"
                   "// The kernels are launched in `stream`, in order; nothing is waited for. "
                   "`scratch` is memory of the GPU,\n"
                   "// %zu bytes, at a multiple of %zu, for one call at a time; it may be "
                   "NULL if that is 0.\n//\n"
                   "//     cudaErrorInvalidValue          sizes that are not those above\n"
                   "//     cudaErrorInvalidDevicePointer  a tensor is NULL, or at no multiple of "
                   "its elements' size\n"
                   "//     cudaErrorMemoryAllocation      `scratch` is NULL, too small or not "
                   "aligned\n"
                   "//     cudaErrorInvalidDevice         the current GPU has not %s, or fewer "
                   "than %d SMs\n"
                   "//     cudaErrorNotSupported          the driver cannot encode tensor maps\n"
                   "//\n// and what the CUDA runtime says of a launch.\n",
                   writer->workspace.bytes, KG_WORKSPACE_ALIGNMENT, writer->facts->isa,
                   writer->facts->units);
    kg_emit_storage_notes(op, text);
    kg_text_add(text, "//\n");
}

static void find_launches(struct writer *writer)
{
    size_t scratch = 0;
    for (int i = 0; i < writer->choice->count; i++) {
        const struct kg_match *match = writer->choice->matches[i];
        struct kg_grids *grids = &writer->grids[i];
        match->family->grids(match, &writer->choice->configs[i], grids);
        scratch = grids->scratch > scratch ? grids->scratch : scratch;
    }
    kg_workspace_lay_out(writer->choice, writer->problem, scratch, &writer->workspace);
}

bool kg_gen_launcher_cuda(const struct kg_problem *problem, const struct kg_choice *choice,
                          const struct kg_device_facts *facts, struct kg_text *source)
{
    struct kg_text kernels = {0}, host = {0};
    struct writer *writer = calloc(1, sizeof *writer);
    if (!writer || !kg_gen_standalone_cuda(problem, choice, facts, &kernels)) {
        free(writer);
        kg_text_free(&kernels);
        return false;
    }
    writer->problem = problem;
    writer->choice = choice;
    writer->facts = facts;
    writer->exactly = needs_exact_gpu(facts, &kernels);
    writer->code.text = &host;
    find_launches(writer);
    add_usage(writer, source);
    if (writer->exactly)
        guard_kernels(&kernels, capability_of(facts), source);
    else
        kg_text_add(source, kg_text_string(&kernels));
    kg_text_add(&host, kg_skeleton_find("cuda/launcher.cuh"));
    kg_text_add(&host, "\n");
    write_scratch(writer);
    write_launch(writer);
    kg_gen_tidy(&host);
    kg_text_add(source, "\n#ifndef __CUDACC_RTC__ // NVRTC compiles kernels alone\n"
                        "#include <cuda.h>\n#include <cuda_runtime.h>\n\n");
    kg_text_add(source, kg_text_string(&host));
    kg_text_add(source, "#endif\n");
    source->failed |= kernels.failed || host.failed;
    kg_text_free(&kernels);
    kg_text_free(&host);
    free(writer);
    return !source->failed;
}
