// The comment at the head of a generated kernel, and the strides of contiguous tensors: the same
// for every target.

#include "gen/shared/emit.h"

void kg_emit_row_major(struct kg_text *text, const struct kg_tensor *tensor, int dim)
{
    if (dim == tensor->rank - 1) {
        kg_text_add(text, "1");
        return;
    }
    kg_emit_size(text, tensor->dims[dim + 1]);
    if (dim + 2 < tensor->rank) {
        kg_text_add(text, " * ");
        kg_emit_name(text, tensor->name);
        kg_text_format(text, "_s%d", dim + 1);
    }
}

static void describe_nest(struct kg_text *text, const struct kg_nest *nest)
{
    kg_text_format(text, "//     %s[", nest->output->name);
    for (int i = 0; i < nest->output_axes; i++)
        kg_text_format(text, "%s%s", i > 0 ? ", " : "", nest->axes[i]->name);
    kg_text_add(text, "] = ");
    if (nest->has_reduce) {
        static const char *const relations[] = {"", " <= ", " < ", " >= ", " > "};
        kg_text_format(text, "%s(", kg_reduces[nest->reduce].name);
        for (int i = nest->output_axes; i < nest->axis_count; i++) {
            const struct kg_index *axis = nest->axes[i];
            kg_text_format(text, "%s%s%s", i > nest->output_axes ? ", " : "", axis->name,
                           relations[axis->relation]);
            if (axis->relation != KG_RELATION_NONE)
                kg_lang_print_expr(text, axis->bound);
        }
        kg_text_add(text, ") ");
    }
    kg_lang_print_expr(text, nest->body);
    kg_text_add(text, "\n");
}

static void describe_tensors(struct kg_text *text, const struct kg_group *group)
{
    struct kg_needs needs;
    kg_group_needs(group, &needs);
    const char *separator = "";
    for (int id = 0; id < group->problem->tensor_count; id++) {
        const struct kg_tensor *tensor = group->problem->tensors[id];
        if (!needs.tensor[id] || kg_group_is_private(group, tensor))
            continue;
        kg_text_format(text, "%s%s: %s", separator, tensor->name,
                       kg_dtypes[kg_emit_tensor_dtype(tensor)].name);
        separator = ", ";
    }
}

void kg_emit_heading(struct kg_text *text, const struct kg_group *group, const char *family,
                     const struct kg_config *config, const struct kg_space *space)
{
    const struct kg_op *op = group->problem->op;
    kg_text_format(text, "// %s: a kernel made by KernelGen.\n//\n", op->name);
    for (int i = 0; i < group->count; i++)
        describe_nest(text, kg_group_nest(group, i));
    kg_text_add(text, "//\n// ");
    describe_tensors(text, group);
    kg_text_format(text, "; %s\n// %s", group->problem->contiguous ? "contiguous" : "any strides",
                   family);
    if (space->count > 0) {
        kg_text_add(text, ": ");
        kg_config_print(space, config, text);
    }
    kg_text_add(text, "\n\n");
}
