// The frame around generated CUDA code: see cuda_frame.h.

#include "gen/cuda/cuda_frame.h"

#include "gen/shared/axes.h"

#include "asm/gpu.h"
#include "gen/arguments.h"
#include "gen/skeleton.h"

void kg_cuda_opening(struct kg_text *text, const struct kg_group *group, const char *family,
                     const struct kg_config *config, const struct kg_space *space)
{
    kg_emit_heading(text, group, family, config, space);
    static const char *const parts[] = {"cuda/prelude.cuh", "elements.h", "values.h",
                                        "cuda/maths.cuh", "cuda/narrow.cuh"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        kg_text_add(text, kg_skeleton_find(parts[i]));
        kg_text_add(text, "\n");
    }
}

static void print_name(struct kg_text *text, const struct kg_group *group,
                       const struct kg_argument *argument)
{
    const struct kg_problem *problem = group->problem;
    switch (argument->kind) {
    case KG_ARGUMENT_TENSOR:
        kg_emit_name(text, problem->tensors[argument->id]->name);
        return;
    case KG_ARGUMENT_SIZE:
        kg_emit_name(text, problem->op->sizes[argument->id]->name);
        return;
    case KG_ARGUMENT_STRIDE:
        kg_emit_name(text, problem->tensors[argument->id]->name);
        kg_text_format(text, "_s%d", argument->dim);
        return;
    case KG_ARGUMENT_SCRATCH:
        kg_text_add(text, "scratch");
        return;
    case KG_ARGUMENT_MAP:
        kg_text_format(text, "map_%d", argument->id);
        return;
    }
}

static void print_argument(struct kg_text *text, const struct kg_group *group,
                           const struct kg_argument *argument)
{
    if (argument->kind == KG_ARGUMENT_TENSOR) {
        const struct kg_tensor *tensor = group->problem->tensors[argument->id];
        kg_text_format(text, "%s%s *__restrict__ ", kg_group_writes(group, tensor) ? "" : "const ",
                       kg_emit_tensor_storage(tensor));
    } else {
        kg_text_add(text, argument->kind == KG_ARGUMENT_SCRATCH ? "char *__restrict__ "
                          : argument->kind == KG_ARGUMENT_MAP
                              ? "const __grid_constant__ struct kg_tensor_map "
                              : "int64_t ");
    }
    print_name(text, group, argument);
}

static void print_arguments(struct kg_text *text, const struct kg_group *group, int maps)
{
    struct kg_argument arguments[KG_MAX_ARGUMENTS];
    int count = kg_group_arguments_and_maps(group, maps, arguments);
    for (int i = 0; i < count; i++) {
        kg_text_add(text, i > 0 ? ",\n    " : "\n    ");
        print_argument(text, group, &arguments[i]);
    }
}

static void bind_strides(struct kg_text *text, const struct kg_group *group, const char *integer)
{
    struct kg_needs needs;
    kg_group_needs(group, &needs);
    for (int id = 0; id < group->problem->tensor_count; id++) {
        const struct kg_tensor *tensor = group->problem->tensors[id];
        if (!needs.tensor[id] || kg_group_is_private(group, tensor))
            continue;
        for (int dim = tensor->rank - 1; dim >= 0; dim--) {
            kg_text_format(text, "    const %s ", integer);
            kg_emit_name(text, tensor->name);
            kg_text_format(text, "_s%d = ", dim);
            kg_emit_row_major(text, tensor, dim);
            kg_text_add(text, ";\n");
        }
    }
}

static void print_head(struct kg_text *text, const struct kg_group *group, const char *entry,
                       int number, int threads, int registers, int maps)
{
    kg_text_add(text, "extern \"C\" __global__ void ");
    if (registers > 0)
        kg_text_format(text, "__maxnreg__(%d) ", registers); // says as much as bounds do
    else
        kg_text_format(text, "__launch_bounds__(%d) ", threads);
    kg_text_format(text, "%s_%d(", entry, number);
    print_arguments(text, group, maps);
    kg_text_add(text, ")\n{\n");
}

void kg_cuda_open_function_with_maps(struct kg_code *code, const struct kg_group *group,
                                     const char *entry, int number, int threads, int registers,
                                     int maps)
{
    print_head(code->text, group, entry, number, threads, registers, maps);
    code->depth++;
    if (group->problem->contiguous)
        bind_strides(code->text, group, "int64_t");
}

void kg_cuda_open_function(struct kg_code *code, const struct kg_group *group, const char *entry,
                           int number, int threads, int registers)
{
    kg_cuda_open_function_with_maps(code, group, entry, number, threads, registers, 0);
}

void kg_cuda_open_body_in(struct kg_code *code, const struct kg_group *group, const char *body,
                          const char *cases, const char *integer)
{
    struct kg_text *text = code->text;
    kg_text_format(text, "template <%s>\nKG_INLINE void %s_body(", cases, body);
    print_arguments(text, group, 0);
    kg_text_add(text, ")\n{\n");
    code->depth++;
    if (group->problem->contiguous)
        bind_strides(text, group, integer);
}

void kg_cuda_open_body(struct kg_code *code, const struct kg_group *group, const char *entry,
                       const char *cases)
{
    kg_cuda_open_body_in(code, group, entry, cases, "int64_t");
}

static void print_call(struct kg_text *text, const struct kg_group *group, const char *body,
                       const char *values, bool waits)
{
    struct kg_argument arguments[KG_MAX_ARGUMENTS];
    int count = kg_group_arguments(group, arguments);
    kg_text_format(text, "%s_body<%s>(", body, values);
    for (int i = 0; i < count; i++) {
        bool is_place =
            arguments[i].kind == KG_ARGUMENT_TENSOR || arguments[i].kind == KG_ARGUMENT_SCRATCH;
        kg_text_add(text, i > 0 ? ", " : "");
        kg_text_add(text, waits && is_place ? "kg_after(" : "");
        print_name(text, group, &arguments[i]);
        kg_text_add(text, waits && is_place ? ")" : "");
    }
    kg_text_add(text, ");");
}

void kg_cuda_call_body(struct kg_code *code, const struct kg_group *group, const char *body,
                       const char *values)
{
    kg_code_begin(code);
    print_call(code->text, group, body, values, false);
    kg_code_end(code);
}

// `opening`: what waits for what is before it; nothing is read or written earlier. NULL: nothing.
static void print_function(struct kg_code *code, const struct kg_group *group, const char *entry,
                           int number, int threads, int registers, const char *body,
                           const char *values, const char *opening)
{
    struct kg_text *text = code->text;
    kg_text_add(text, "\n");
    print_head(text, group, entry, number, threads, registers, 0);
    kg_text_add(text, opening ? opening : "");
    kg_text_add(text, "    ");
    print_call(text, group, body, values, opening != NULL);
    kg_text_add(text, "\n}\n");
}

void kg_cuda_waiting_function(struct kg_code *code, const struct kg_group *group, const char *entry,
                              int number, int threads, int registers, const char *body,
                              const char *values)
{
    print_function(code, group, entry, number, threads, registers, body, values,
                   "    kg_start_next_of_few();\n    kg_wait_before();\n");
}

void kg_cuda_starting_function(struct kg_code *code, const struct kg_group *group,
                               const char *entry, int number, int threads, int registers,
                               const char *body, const char *values)
{
    print_function(code, group, entry, number, threads, registers, body, values,
                   "    kg_wait_before();\n");
}

void kg_cuda_function(struct kg_code *code, const struct kg_group *group, const char *entry,
                      int number, int threads, int registers, const char *values)
{
    print_function(code, group, entry, number, threads, registers, entry, values, NULL);
}

void kg_cuda_nothing(struct kg_code *code, const struct kg_group *group, const char *entry)
{
    kg_cuda_open_function(code, group, entry, 0, 32, 0);
    kg_code_close(code);
}

void kg_cuda_start_early(const struct kg_group *group, const struct kg_device_facts *facts,
                         struct kg_grids *grids)
{
    enum { SMALL = 4 << 20 };
    const struct kg_sm *sm = kg_sm_find(facts->isa);
    struct kg_needs needs;
    double bytes = 0;
    kg_group_needs(group, &needs);
    for (int id = 0; id < group->problem->tensor_count; id++)
        if (needs.tensor[id])
            bytes += (double)group->problem->layouts[id].bytes;
    if (!sm || sm->cluster <= 1 || bytes > SMALL)
        return;
    for (int i = 0; i < grids->count; i++)
        grids->grids[i].early = grids->unaligned[i].early = true;
}

bool kg_cuda_fits(const struct kg_group *group, struct kg_text *reason)
{
    struct kg_argument arguments[KG_MAX_ARGUMENTS];
    if (kg_group_arguments(group, arguments) > 0)
        return true;
    kg_text_add(reason, "it has more tensors and strides than a kernel has arguments");
    return false;
}

void kg_cuda_fold_values(struct kg_text *text, const struct kg_fold *fold)
{
    kg_text_format(text, "kg_fold_%s_%s", fold->is_sum ? "sum" : kg_reduces[fold->search].name,
                   kg_emit_suffix(fold->lane));
}

void kg_cuda_fold(struct kg_text *text, const struct kg_fold *fold, const char *place)
{
    kg_text_add(text, fold->is_argument ? "kg_fold_place<" : "");
    kg_cuda_fold_values(text, fold);
    if (fold->is_argument)
        kg_text_format(text, ", %s>", place);
}

bool kg_cuda_reads_once(const struct kg_nest *nest, const struct kg_access *access)
{
    for (int axis = 0; axis < nest->axis_count; axis++)
        if (!kg_access_uses(access, axis, axis))
            return false;
    for (int dim = 0; dim < access->tensor->rank; dim++)
        if (access->map[dim].is_gather)
            return false;
    return !access->read->pad;
}

double kg_cuda_once_bytes(const struct kg_group *group, const struct kg_nest *nest,
                          const struct kg_access *access)
{
    if (!kg_cuda_reads_once(nest, access))
        return 0;
    return (double)group->problem->layouts[access->tensor->id].elements *
           kg_dtypes[kg_emit_tensor_dtype(access->tensor)].bits / 8;
}

void kg_cuda_space_registers(struct kg_space *space)
{
    kg_space_add(space, "maxnreg", KG_CHANGE_STAGES, 7, (int64_t[]){0, 32, 40, 64, 80, 96, 128});
}

int64_t kg_ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b > 0);
}

int64_t kg_power_of_two(int64_t value)
{
    int64_t power = 1;
    while (power < value)
        power *= 2;
    return power;
}

// The type that counts the elements of axes.
static const char *count_type(const struct kg_nest *nest, const int *axes, int count)
{
    double elements = 1;
    for (int i = 0; i < count; i++)
        elements *= (double)nest->extent[axes[i]];
    return elements <= INT32_MAX / 2 ? "int" : "int64_t";
}

static int list_axes(int axes[KG_MAX_INDICES], int first, int last)
{
    int count = 0;
    for (int axis = first; axis <= last; axis++)
        axes[count++] = axis;
    return count;
}

void kg_cuda_axes(struct kg_code *code, const struct kg_nest *nest, const int *axes, int count,
                  const char *rest, const char *linear)
{
    const char *type = count_type(nest, axes, count);
    if (count > 1)
        kg_code_line(code, "%s %s = (%s)(%s);", type, rest, type, linear);
    for (int i = count - 1; i >= 0; i--) {
        const struct kg_index *axis = nest->axes[axes[i]];
        kg_code_begin(code);
        kg_text_format(code->text, "const int64_t i%d = ", axes[i]);
        if (!kg_axes_from_zero(axis)) {
            kg_emit_axis_begin(code->text, axis);
            kg_text_add(code->text, " + ");
        }
        if (i > 0) {
            kg_text_format(code->text, "kg_take(&%s, ", rest);
            kg_axes_extent(code->text, axis);
            kg_text_add(code->text, ")");
        } else {
            kg_text_add(code->text, count > 1 ? rest : linear);
        }
        kg_text_add(code->text, ";");
        kg_code_end(code);
    }
}

void kg_cuda_axes_between(struct kg_code *code, const struct kg_nest *nest, int first, int last,
                          const char *rest, const char *linear)
{
    int axes[KG_MAX_INDICES];
    kg_cuda_axes(code, nest, axes, list_axes(axes, first, last), rest, linear);
}

void kg_cuda_run_axes(struct kg_code *code, const struct kg_nest *nest, int first, int run,
                      int last, const char *linear, const char *lane)
{
    int axes[KG_MAX_INDICES];
    const char *type = count_type(nest, axes, list_axes(axes, first, last));
    if (first == run) {
        kg_code_line(code, "const int64_t i%d = %s%s;", last, linear, lane);
        return;
    }
    kg_code_line(code, "%s more = (%s)(%s);", type, type, linear);
    kg_code_line(code, "const int64_t i%d = kg_take(&more, length)%s;", last, lane);
    kg_cuda_axes_between(code, nest, first, run - 1, "rest", "more");
}

bool kg_cuda_fits_int(const struct kg_group *group)
{
    struct kg_needs needs;
    kg_group_needs(group, &needs);
    for (int id = 0; id < group->problem->tensor_count; id++) {
        const struct kg_tensor *tensor = group->problem->tensors[id];
        const struct kg_layout *layout = &group->problem->layouts[id];
        double span = 0;
        for (int dim = 0; dim < tensor->rank; dim++)
            span += (double)layout->shape[dim] *
                    (double)(layout->stride[dim] < 0 ? -layout->stride[dim] : layout->stride[dim]);
        if (needs.tensor[id] && span >= 2e9)
            return false;
    }
    return true;
}

bool kg_cuda_is_whole(const struct kg_problem *problem, const struct kg_tensor *tensor,
                      unsigned dims, int vector)
{
    const struct kg_layout *layout = &problem->layouts[tensor->id];
    for (int dim = 0; dim < tensor->rank; dim++) {
        bool last = dim == tensor->rank - 1;
        if (layout->shape[dim] <= 1 || !(dims >> dim & 1))
            continue;
        if (last ? layout->stride[dim] != 1 : layout->stride[dim] % vector != 0)
            return false;
    }
    return true;
}

int kg_cuda_alignment(const struct kg_tensor *tensor, int vector)
{
    enum { ACCESS = 16 };
    int bytes = vector * kg_dtypes[kg_emit_tensor_dtype(tensor)].bits / 8;
    return bytes < ACCESS ? bytes : ACCESS;
}

bool kg_cuda_raise_alignment(const struct kg_problem *problem, const struct kg_tensor *tensor,
                             int inner, int vector, int *alignment)
{
    unsigned dims = tensor->rank > inner ? ~0u >> (32 - (tensor->rank - inner)) : 0;
    int bytes = kg_cuda_alignment(tensor, vector);
    *alignment = bytes > *alignment ? bytes : *alignment;
    return kg_cuda_is_whole(problem, tensor, dims, vector);
}
