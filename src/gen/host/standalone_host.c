// Plain C functions around kernels, and kernels around plain C functions.

#include "gen/standalone.h"

#include "gen/shared/emit.h"
#include "gen/shared/signature.h"
#include "gen/shared/tidy.h"
#include "gen/skeleton.h"

#include <stdio.h>
#include <string.h>

static void add_kernels(const struct kg_choice *choice, struct kg_text *text)
{
    for (int i = 0; i < choice->count; i++) {
        char entry[32];
        snprintf(entry, sizeof entry, "kg_kernel_%d", i);
        size_t before = text->length;
        choice->matches[i]->family->emit(choice->matches[i], &choice->configs[i], entry, text);
        kg_gen_drop_repeats(text, before);
    }
}

static void add_workspace(const struct kg_problem *problem, const struct kg_choice *choice,
                          struct kg_text *text)
{
    for (int id = 0; id < problem->tensor_count; id++) {
        const struct kg_tensor *tensor = problem->tensors[id];
        if (tensor->role != KG_ROLE_LOCAL || !kg_choice_in_memory(choice, id))
            continue;
        kg_text_format(text, "    tensor[%d] = kg_workspace(sizeof(%s)", id,
                       kg_emit_tensor_storage(tensor));
        for (int d = 0; d < tensor->rank; d++) {
            kg_text_add(text, " * (size_t)");
            kg_emit_size(text, tensor->dims[d]);
        }
        kg_text_format(text, "); // %s\n    failed |= !tensor[%d];\n", tensor->name, id);
    }
}

static void release_workspace(const struct kg_problem *problem, const struct kg_choice *choice,
                              struct kg_text *text)
{
    for (int id = 0; id < problem->tensor_count; id++)
        if (problem->tensors[id]->role == KG_ROLE_LOCAL && kg_choice_in_memory(choice, id))
            kg_text_format(text, "    free(tensor[%d]);\n", id);
}

static void add_entry(const struct kg_problem *problem, const struct kg_choice *choice,
                      struct kg_text *text)
{
    const struct kg_op *op = problem->op;
    kg_text_add(text,
                "\n// The plain entry: contiguous row-major tensors, then sizes. 0 is done, 1 "
                "out of memory.\nint ");
    kg_emit_name(text, op->name);
    kg_text_add(text, "(");
    kg_emit_parameters(op, text);
    kg_text_format(text, ")\n{\n    void *tensor[%d] = {", problem->tensor_count);
    for (int i = 0; i < op->input_count + op->output_count; i++) {
        kg_text_format(text, "%s(void *)", i ? ", " : "");
        kg_emit_name(text, op->tensors[i]->name);
    }
    kg_text_add(text, "};\n");
    kg_text_add(text, "    const int64_t size[] = {");
    for (int i = 0; i < op->size_count; i++) {
        kg_text_add(text, i ? ", " : "");
        if (kg_size_is_argument(op->sizes[i]))
            kg_emit_name(text, op->sizes[i]->name);
        else
            kg_text_format(text, "%lld", (long long)op->sizes[i]->value);
    }
    kg_text_format(text, "%s};\n    int failed = 0;\n", op->size_count ? "" : "0");
    add_workspace(problem, choice, text);
    for (int i = 0; i < choice->count; i++)
        kg_text_format(text,
                       "    failed = failed || kg_serve(tensor, size, kg_kernel_%d_items, "
                       "kg_kernel_%d_run, kg_kernel_%d_bytes);\n",
                       i, i, i);
    release_workspace(problem, choice, text);
    kg_text_add(text, "    return failed;\n}\n");
}

// What the file is for, how to compile it, what to call.
static void add_usage(const struct kg_op *op, struct kg_text *text)
{
    kg_text_format(text,
                   "// Compile: cc -O3 -march=native -fno-math-errno -fno-trapping-math -fopenmp "
                   "-c %s.c\n// Call:    int ",
                   op->name);
    kg_emit_name(text, op->name);
    kg_text_add(text, "(");
    kg_emit_parameters(op, text);
    kg_text_add(text,
                ");\n//\n// Tensors are contiguous and row-major. It returns 0, or 1 when out "
                "of memory.\n");
    kg_emit_storage_notes(op, text);
    kg_text_add(text, "\n");
}

bool kg_gen_standalone_host(const struct kg_problem *problem, const struct kg_choice *choice,
                            const struct kg_device_facts *facts, struct kg_text *source)
{
    (void)facts;
    add_usage(problem->op, source);
    add_kernels(choice, source);
    kg_text_add(source, "\n");
    kg_text_add(source, kg_skeleton_find("host/serve.h"));
    add_entry(problem, choice, source);
    kg_gen_tidy(source);
    return !source->failed;
}

// Typed, so that the compiler tells when the foreign function takes something else. A narrow float
// may be its bits there or a type that the compiler adds to C: _Float16, __bf16.
static void add_argument(const struct kg_op *op, int tensor, struct kg_text *text)
{
    enum kg_dtype dtype = op->tensors[tensor]->type.dtype;
    kg_text_add(text, tensor > 0 ? ", " : "");
    if (!kg_dtype_is_narrow_float(dtype))
        kg_text_format(text, "(%s%s *)", tensor < op->input_count ? "const " : "",
                       kg_emit_plain_storage(dtype));
    kg_text_format(text, "call->tensor[%d]", tensor);
}

// What the adapter and its caller agree on, under names that a file which brings the same along, as
// those of emit do, has no use for.
static void add_foreign_abi(struct kg_text *source)
{
    static const char *const names[][2] = {{"kg_host_call", "kg_adapter_call"},
                                           {"KG_HOST_SHARED", "KG_ADAPTER_SHARED"},
                                           {"KG_HOST_SCRATCH", "KG_ADAPTER_SCRATCH"},
                                           {"KG_HOST_GRAIN", "KG_ADAPTER_GRAIN"}};
    size_t count = sizeof names / sizeof names[0];
    for (size_t i = 0; i < count; i++)
        kg_text_format(source, "#define %s %s\n", names[i][0], names[i][1]);
    kg_text_add(source, kg_skeleton_find("host/abi.h"));
    for (size_t i = 0; i < count; i++)
        kg_text_format(source, "#undef %s\n", names[i][0]);
    kg_text_add(source, "#define KG_ADAPTER_FAILED (-(INT64_C(1) << 62))\n"); // KG_HOST_FAILED
}

// Calls the function as the only item of the only phase. Its result, if it is not void, is kept for
// the end of the phases.
static void add_adapter(const struct kg_op *op, const char *entry, struct kg_text *source)
{
    kg_text_format(source,
                   "\n#line 1 \"adapter\"\n"
                   "static int64_t %s_code;\n"
                   "int64_t %s_items(const struct kg_adapter_call *call, int phase)\n"
                   "{\n    (void)call;\n    if (phase == 0)\n        return 1;\n"
                   "    return %s_code ? KG_ADAPTER_FAILED + %s_code : -1;\n}\n"
                   "int64_t %s_bytes(const struct kg_adapter_call *call, int kind)\n"
                   "{\n    (void)call;\n    return kind == KG_ADAPTER_GRAIN ? 1 : 0;\n}\n",
                   entry, entry, entry, entry, entry);
    kg_text_format(source, "#define %s_call %s(", entry, op->name);
    for (int i = 0; i < op->input_count + op->output_count; i++)
        add_argument(op, i, source);
    for (int i = 0; i < op->size_count; i++)
        if (kg_size_is_argument(op->sizes[i]))
            kg_text_format(source, ", call->size[%d]", i);
    kg_text_format(source,
                   ")\n"
                   "void %s_run(const struct kg_adapter_call *call, int phase, int64_t begin, "
                   "int64_t end)\n"
                   "{\n    (void)phase, (void)begin, (void)end;\n"
                   "    const int64_t most = INT64_C(1) << 61;\n"
                   "    int64_t code = __builtin_choose_expr(\n"
                   "        __builtin_types_compatible_p(__typeof__(%s_call), void), (%s_call, 0), "
                   "%s_call);\n"
                   "    %s_code = code > most ? most : code < -most ? -most : code;\n}\n",
                   entry, entry, entry, entry, entry);
}

bool kg_gen_foreign(const struct kg_op *op, const char *path, const char *code, const char *entry,
                    struct kg_text *source)
{
    add_foreign_abi(source);
    kg_text_add(source, "\n#line 1 \"");
    for (const char *c = path; *c; c++)
        if (*c != '"' && *c != '\\' && *c != '\n')
            kg_text_add_bytes(source, c, 1);
    kg_text_add(source, "\"\n");
    kg_text_add(source, code);
    add_adapter(op, entry, source);
    return !source->failed;
}
