// The frame around generated host code: the opening of a file, and the declarations that every
// function needs. Also the few facts about groups and nests that all emitters share.

#include "gen/emit.h"
#include "gen/skeleton.h"

#include <string.h>

static bool is_tensor_of(const struct kg_nest *nest, const struct kg_tensor *tensor)
{
    if (nest->output == tensor)
        return true;
    for (int i = 0; i < nest->access_count; i++)
        if (nest->accesses[i].tensor == tensor)
            return true;
    return false;
}

bool kg_group_is_private(const struct kg_group *group, const struct kg_tensor *tensor)
{
    if (tensor->role != KG_ROLE_LOCAL)
        return false;
    const struct kg_problem *problem = group->problem;
    for (int i = 0; i < problem->nest_count; i++)
        if ((i < group->first || i >= group->first + group->count) &&
            is_tensor_of(problem->nests[i], tensor))
            return false;
    return true;
}

bool kg_size_same(const struct kg_expr *a, const struct kg_expr *b)
{
    if (!a || !b) {
        const struct kg_expr *other = a ? a : b;
        return !other || (other->kind == KG_EXPR_NUMBER && other->integer == 0);
    }
    if (a == b)
        return true;
    if (a->kind != b->kind)
        return false;
    if (a->kind == KG_EXPR_NUMBER)
        return a->integer == b->integer;
    if (a->kind == KG_EXPR_SIZE)
        return a->size->id == b->size->id;
    if (a->kind != KG_EXPR_CALL || a->function != b->function ||
        a->argument_count != b->argument_count)
        return false;
    for (int i = 0; i < a->argument_count; i++)
        if (!kg_size_same(a->arguments[i], b->arguments[i]))
            return false;
    return true;
}

bool kg_expr_uses(const struct kg_expr *expr, int axis, bool reads)
{
    if (expr->kind == KG_EXPR_INDEX)
        return expr->index->id == axis;
    if (expr->pad && kg_expr_uses(expr->pad, axis, reads))
        return true;
    if (expr->kind == KG_EXPR_READ && !reads)
        return false;
    for (int i = 0; i < expr->argument_count; i++)
        if (kg_expr_uses(expr->arguments[i], axis, reads))
            return true;
    return false;
}

const struct kg_access *kg_nest_access(const struct kg_nest *nest, const struct kg_expr *read)
{
    for (int i = 0; i < nest->access_count; i++)
        if (nest->accesses[i].read == read)
            return &nest->accesses[i];
    return NULL;
}

static void need_sizes(struct kg_needs *needs, const struct kg_expr *expr)
{
    if (!expr)
        return;
    if (expr->kind == KG_EXPR_SIZE)
        needs->size[expr->size->id] = true;
    if (expr->pad)
        need_sizes(needs, expr->pad);
    for (int i = 0; i < expr->argument_count; i++)
        need_sizes(needs, expr->arguments[i]);
}

static void need_tensor(struct kg_needs *needs, const struct kg_tensor *tensor)
{
    needs->tensor[tensor->id] = true;
    for (int dim = 0; dim < tensor->rank; dim++)
        need_sizes(needs, tensor->dims[dim]);
}

static void need_nest(struct kg_needs *needs, const struct kg_nest *nest)
{
    need_tensor(needs, nest->output);
    for (int i = 0; i < nest->access_count; i++)
        need_tensor(needs, nest->accesses[i].tensor);
    for (int i = 0; i < nest->axis_count; i++) {
        need_sizes(needs, nest->axes[i]->begin);
        need_sizes(needs, nest->axes[i]->end);
        need_sizes(needs, nest->axes[i]->bound);
    }
    need_sizes(needs, nest->body);
}

void kg_group_needs(const struct kg_group *group, struct kg_needs *needs)
{
    *needs = (struct kg_needs){0};
    for (int i = 0; i < group->count; i++)
        need_nest(needs, kg_group_nest(group, i));
}

bool kg_group_writes(const struct kg_group *group, const struct kg_tensor *tensor)
{
    for (int i = 0; i < group->count; i++)
        if (kg_group_nest(group, i)->output == tensor)
            return true;
    return false;
}

static void bind_pointer(struct kg_text *text, const struct kg_group *group,
                         const struct kg_tensor *tensor)
{
    const char *constant = kg_group_writes(group, tensor) ? "" : "const ";
    kg_text_format(text, "    %s%s *restrict ", constant, kg_emit_tensor_storage(tensor));
    kg_emit_name(text, tensor->name);
    kg_text_format(text, " = call->tensor[%d];\n", tensor->id);
}

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

void kg_emit_host_opening(struct kg_text *text, const struct kg_group *group, const char *family,
                          const struct kg_config *config, const struct kg_space *space)
{
    kg_emit_heading(text, group, family, config, space);
    static const char *const parts[] = {"host/abi.h", "host/prelude.h", "values.h", "host/maths.h",
                                        "host/maths_f32.h"};
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
