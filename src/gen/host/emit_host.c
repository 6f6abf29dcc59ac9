// The frame around generated host code: the opening of a file, and the declarations that every
// function needs.

#include "gen/shared/emit.h"
#include "gen/skeleton.h"

// Truth values are read as bytes: GCC takes no loop in vectors that loads a bool. 2^20 elements of
// masked_fill took 284 us as bool, 81 us as bytes (one core of Zen 5, warm).
static const char *bound_type(const struct kg_group *group, const struct kg_tensor *tensor)
{
    bool truth = kg_dtype_is_truth(kg_emit_tensor_dtype(tensor));
    return truth && !kg_group_writes(group, tensor) ? "uint8_t" : kg_emit_tensor_storage(tensor);
}

static void bind_pointer(struct kg_text *text, const struct kg_group *group,
                         const struct kg_tensor *tensor)
{
    const char *constant = kg_group_writes(group, tensor) ? "" : "const ";
    kg_text_format(text, "    %s%s *restrict ", constant, bound_type(group, tensor));
    kg_emit_name(text, tensor->name);
    kg_text_format(text, " = call->tensor[%d];\n", tensor->id);
}

static void bind_strides(struct kg_text *text, const struct kg_group *group,
                         const struct kg_tensor *tensor)
{
    for (int dim = tensor->rank - 1; dim >= 0; dim--) {
        kg_text_add(text, "    const int64_t ");
        kg_emit_name(text, tensor->name);
        kg_text_format(text, "_s%d = ", dim);
        if (group->problem->contiguous)
            kg_emit_row_major(text, tensor, dim);
        else
            kg_text_format(text, "call->stride[%d]", KG_MAX_RANK * tensor->id + dim);
        kg_text_add(text, ";\n");
    }
}

void kg_emit_host_bindings(struct kg_text *text, const struct kg_group *group, bool locals)
{
    struct kg_needs needs;
    const struct kg_problem *problem = group->problem;
    kg_group_needs(group, &needs);
    for (int id = 0; id < problem->op->size_count; id++) {
        if (!needs.size[id])
            continue;
        kg_text_add(text, "    const int64_t ");
        kg_emit_name(text, problem->op->sizes[id]->name);
        kg_text_format(text, " = call->size[%d];\n", id);
    }
    for (int id = 0; id < problem->tensor_count; id++) {
        const struct kg_tensor *tensor = problem->tensors[id];
        if (!needs.tensor[id] || (!locals && kg_group_is_private(group, tensor)))
            continue;
        bind_pointer(text, group, tensor);
        bind_strides(text, group, tensor);
    }
}

void kg_emit_host_opening(struct kg_text *text, const struct kg_group *group, const char *family,
                          const struct kg_config *config, const struct kg_space *space)
{
    kg_emit_heading(text, group, family, config, space);
    static const char *const parts[] = {"host/abi.h", "host/prelude.h", "elements.h",
                                        "values.h",   "host/maths.h",   "host/maths_f32.h"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        kg_text_add(text, kg_skeleton_find(parts[i]));
        kg_text_add(text, "\n");
    }
}

void kg_emit_host_nothing(struct kg_text *text, const char *entry)
{
    kg_text_format(text,
                   "int64_t %s_items(const struct kg_host_call *call, int phase)\n{\n"
                   "    (void)call;\n    return phase == 0 ? 0 : -1;\n}\n\n",
                   entry);
    kg_text_format(text,
                   "int64_t %s_bytes(const struct kg_host_call *call, int kind)\n{\n"
                   "    (void)call;\n    return kind == KG_HOST_GRAIN ? 1 : 0;\n}\n\n",
                   entry);
    kg_text_format(text,
                   "void %s_run(const struct kg_host_call *call, int phase, int64_t begin, "
                   "int64_t end)\n{\n    (void)call, (void)phase, (void)begin, (void)end;\n}\n",
                   entry);
}
