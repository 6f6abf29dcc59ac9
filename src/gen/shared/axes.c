// The loops around a nest, and the values inside them: see axes.h.

#include "gen/shared/axes.h"

#include <string.h>

bool kg_access_same(const struct kg_access *a, const struct kg_access *b)
{
    if (a->tensor != b->tensor)
        return false;
    for (int dim = 0; dim < a->tensor->rank; dim++) {
        const struct kg_affine *x = &a->map[dim], *y = &b->map[dim];
        if (!x->is_affine || !y->is_affine || x->offset != y->offset ||
            !kg_size_same(x->base, y->base))
            return false;
        for (int axis = 0; axis < KG_MAX_INDICES; axis++)
            if (x->coefficient[axis] != y->coefficient[axis])
                return false;
    }
    return true;
}

bool kg_expr_divides(const struct kg_expr *expr, const struct kg_tensor *tensor)
{
    if (expr->kind == KG_EXPR_CALL && expr->function == KG_FN_DIV && expr->type == KG_TYPE_F32 &&
        expr->arguments[1]->kind == KG_EXPR_READ && expr->arguments[1]->tensor == tensor)
        return true;
    for (int i = 0; i < expr->argument_count; i++)
        if (kg_expr_divides(expr->arguments[i], tensor))
            return true;
    return false;
}

bool kg_axes_from_zero(const struct kg_index *axis)
{
    return kg_size_same(axis->begin, NULL);
}

static bool is_axis(const struct kg_affine *map, int axis)
{
    return map->is_affine && map->subscript->kind == KG_EXPR_INDEX &&
           map->subscript->index->id == axis;
}

bool kg_axes_identity(const struct kg_access *access)
{
    for (int dim = 0; dim < access->tensor->rank; dim++)
        if (!is_axis(&access->map[dim], dim))
            return false;
    return access->read->pad == NULL;
}

bool kg_axes_same(const struct kg_index *a, const struct kg_index *b)
{
    return a->relation == KG_RELATION_NONE && b->relation == KG_RELATION_NONE &&
           kg_size_same(a->begin, b->begin) && kg_size_same(a->end, b->end);
}

int kg_group_maker(const struct kg_group *group, const struct kg_tensor *tensor)
{
    for (int i = 0; i < group->count; i++)
        if (kg_group_nest(group, i)->output == tensor)
            return i;
    return -1;
}

bool kg_group_follows(const struct kg_group *group, int k, int position)
{
    const struct kg_nest *nest = kg_group_nest(group, position), *leader = kg_group_nest(group, k);
    if (nest->output_axes != leader->output_axes)
        return false;
    for (int i = 0; i < nest->output_axes; i++)
        if (!kg_axes_same(nest->axes[i], leader->axes[i]))
            return false;
    for (int i = 0; i < nest->access_count; i++)
        if (kg_group_maker(group, nest->accesses[i].tensor) >= k &&
            !kg_axes_identity(&nest->accesses[i]))
            return false;
    return true;
}

double kg_axes_count(const struct kg_nest *nest, int first, int last)
{
    double count = 1.0;
    for (int axis = first; axis <= last; axis++)
        count *= (double)nest->extent[axis];
    return count;
}

bool kg_access_uses(const struct kg_access *access, int first, int last)
{
    for (int dim = 0; dim < access->tensor->rank; dim++)
        for (int axis = first; axis <= last; axis++)
            if (kg_expr_uses(access->map[dim].subscript, axis, true))
                return true;
    return false;
}

static bool uses(const struct kg_expr *expr, int first, int last)
{
    if (expr->kind == KG_EXPR_INDEX && expr->index->id >= first && expr->index->id <= last)
        return true;
    if (expr->pad && uses(expr->pad, first, last))
        return true;
    for (int i = 0; i < expr->argument_count; i++)
        if (uses(expr->arguments[i], first, last))
            return true;
    return false;
}

static bool runs_in(const struct kg_group *group, const struct kg_nest *nest,
                    const struct kg_expr *expr, int first, int last);

// Whether the axes are the last subscripts of the read, without gaps between its elements.
static bool runs_along(const struct kg_group *group, const struct kg_nest *nest,
                       const struct kg_access *access, int first, int last)
{
    const struct kg_tensor *tensor = access->tensor;
    int lead = tensor->rank - (last - first + 1);
    if (lead < 0 || access->read->pad)
        return false;
    for (int dim = 0; dim < lead; dim++)
        if (uses(access->map[dim].subscript, first, last))
            return false;
    for (int dim = lead; dim < tensor->rank; dim++) {
        int axis = first + dim - lead;
        if (!is_axis(&access->map[dim], axis) ||
            (axis > first && !kg_size_same(nest->axes[axis]->end, tensor->dims[dim])))
            return false;
    }
    int maker = kg_group_maker(group, tensor);
    if (maker < 0 || !kg_group_is_private(group, tensor))
        return true;
    const struct kg_nest *made = kg_group_nest(group, maker);
    return made->has_reduce || runs_in(group, made, made->body, lead, tensor->rank - 1);
}

static bool runs_in(const struct kg_group *group, const struct kg_nest *nest,
                    const struct kg_expr *expr, int first, int last)
{
    if (!uses(expr, first, last))
        return true;
    if (expr->kind == KG_EXPR_READ)
        return runs_along(group, nest, kg_nest_access(nest, expr), first, last);
    if (expr->kind != KG_EXPR_CALL && expr->kind != KG_EXPR_CAST)
        return false;
    for (int i = 0; i < expr->argument_count; i++)
        if (!runs_in(group, nest, expr->arguments[i], first, last))
            return false;
    return true;
}

int kg_axes_run(const struct kg_group *group, const struct kg_nest *nest, int first, int last)
{
    int run = last;
    if (!group->problem->contiguous || !kg_axes_from_zero(nest->axes[last]))
        return last;
    while (run > first && kg_axes_from_zero(nest->axes[run - 1]) &&
           runs_in(group, nest, nest->body, run - 1, last))
        run--;
    return run;
}

void kg_axes_extent(struct kg_text *text, const struct kg_index *axis)
{
    if (kg_axes_from_zero(axis)) {
        kg_emit_axis_end(text, axis);
        return;
    }
    // A range may end before it begins: then it is empty.
    kg_text_add(text, "kg_max_i64(");
    kg_emit_axis_end(text, axis);
    kg_text_add(text, " - ");
    kg_emit_axis_begin(text, axis);
    kg_text_add(text, ", 0)");
}

void kg_axes_product(struct kg_text *text, const struct kg_nest *nest, int first, int last)
{
    if (first > last)
        kg_text_add(text, "1");
    for (int axis = first; axis <= last; axis++) {
        kg_text_add(text, axis > first ? " * " : "");
        kg_axes_extent(text, nest->axes[axis]);
    }
}

void kg_axes_place(struct kg_text *text, const struct kg_nest *nest)
{
    int first = nest->output_axes, last = nest->axis_count - 1;
    if (first == last) {
        kg_text_format(text, "i%d", first);
        return;
    }
    for (int axis = first; axis < last; axis++)
        kg_text_add(text, "(");
    for (int axis = first; axis <= last; axis++) {
        bool shifted = !kg_axes_from_zero(nest->axes[axis]);
        if (axis > first) {
            kg_text_add(text, " * ");
            kg_axes_extent(text, nest->axes[axis]);
            kg_text_add(text, " + ");
        }
        kg_text_format(text, shifted ? "(i%d - " : "i%d", axis);
        if (shifted) {
            kg_emit_axis_begin(text, nest->axes[axis]);
            kg_text_add(text, ")");
        }
        kg_text_add(text, axis > first ? ")" : "");
    }
}

void kg_axes_split(struct kg_code *code, const struct kg_nest *nest, int first, int last,
                   const char *linear)
{
    for (int axis = first; axis <= last; axis++) {
        kg_code_begin(code);
        kg_text_format(code->text, "const int64_t i%d = ", axis);
        if (!kg_axes_from_zero(nest->axes[axis])) {
            kg_emit_axis_begin(code->text, nest->axes[axis]);
            kg_text_add(code->text, " + ");
        }
        kg_text_add(code->text, linear);
        if (axis < last) {
            kg_text_add(code->text, last - axis > 1 ? " / (" : " / ");
            kg_axes_product(code->text, nest, axis + 1, last);
            kg_text_add(code->text, last - axis > 1 ? ")" : "");
        }
        if (axis > first) {
            kg_text_add(code->text, " % ");
            kg_axes_extent(code->text, nest->axes[axis]);
        }
        kg_text_add(code->text, ";");
        kg_code_end(code);
    }
}

// The state of printing one nest: the reader, or an intermediate inside it.
struct frame {
    const struct kg_values *values;
    const struct kg_nest *nest;
    const char *const *axes;
};

static void print_axis(void *user, struct kg_text *text, int axis)
{
    const struct frame *frame = user;
    if (frame->axes[axis])
        kg_text_add(text, frame->axes[axis]);
    else
        kg_text_format(text, "i%d", axis);
}

static bool print_read(void *user, struct kg_text *text, const struct kg_access *access);

static const char *find_divisor(void *user, const struct kg_access *access)
{
    const struct frame *frame = user;
    int maker = kg_group_maker(frame->values->group, access->tensor);
    return maker < 0 ? NULL : frame->values->divisors[maker];
}

static struct kg_emit_names names_of(struct frame *frame)
{
    return (struct kg_emit_names){
        .user = frame,
        .contiguous = frame->values->group->problem->contiguous,
        .vector_axis = frame->values->vector_axis,
        .axis = print_axis,
        .read = print_read,
        .divisor = find_divisor,
        .narrow = frame->values->narrow,
    };
}

// The formula of a private intermediate, its axes replaced by the subscripts of the read.
static void print_inlined(struct frame *frame, struct kg_text *text, const struct kg_access *access,
                          int maker)
{
    struct kg_text subscripts[KG_MAX_RANK] = {{0}};
    const char *axes[KG_MAX_INDICES] = {0};
    const struct kg_group *group = frame->values->group;
    struct frame inner = {frame->values, kg_group_nest(group, maker), axes};
    struct kg_emit_names names = names_of(frame), inner_names = names_of(&inner);
    for (int dim = 0; dim < access->tensor->rank; dim++) {
        kg_emit_subscript(&subscripts[dim], frame->nest, access, dim, &names);
        axes[dim] = kg_text_string(&subscripts[dim]);
    }
    kg_text_add(text, "(");
    kg_emit_value(text, inner.nest, inner.nest->body, access->tensor->compute, &inner_names);
    kg_text_add(text, ")");
    for (int dim = 0; dim < access->tensor->rank; dim++) {
        text->failed |= subscripts[dim].failed;
        kg_text_free(&subscripts[dim]);
    }
}

static bool print_vector(struct frame *frame, struct kg_text *text, const struct kg_access *access)
{
    int last = access->tensor->rank - 1, axis = frame->values->vector_axis;
    if (axis == 0 || last < 0 || access->map[last].coefficient[axis] == 0)
        return false;
    struct kg_emit_names names = names_of(frame);
    kg_text_add(text, "kg_floats_at(");
    kg_emit_name(text, access->tensor->name);
    kg_text_add(text, " + ");
    kg_emit_offset(text, frame->nest, access, &names);
    kg_text_add(text, ")");
    return true;
}

static bool print_read(void *user, struct kg_text *text, const struct kg_access *access)
{
    struct frame *frame = user;
    const struct kg_values *values = frame->values;
    int maker = kg_group_maker(values->group, access->tensor);
    if (maker < 0 && values->read)
        return values->read(values->user, text, access);
    if (maker >= 0 && values->locals[maker]) {
        kg_text_add(text, values->locals[maker]);
        return true;
    }
    if (maker < 0 || !kg_group_is_private(values->group, access->tensor))
        return print_vector(frame, text, access);
    print_inlined(frame, text, access, maker);
    return true;
}

static struct frame frame_of(const struct kg_values *values, int position)
{
    const struct kg_group *group = values->group;
    return (struct frame){values, kg_group_nest(group, position), values->axes};
}

void kg_values_print(struct kg_text *text, const struct kg_values *values, int position,
                     enum kg_type type)
{
    struct frame frame = frame_of(values, position);
    struct kg_emit_names names = names_of(&frame);
    kg_emit_value(text, frame.nest, frame.nest->body, type, &names);
}

void kg_values_store(struct kg_text *text, const struct kg_values *values, int position,
                     enum kg_type type, const char *value)
{
    struct frame frame = frame_of(values, position);
    struct kg_emit_names names = names_of(&frame);
    kg_emit_store(text, frame.nest, &names, type, value);
}

void kg_values_access(struct kg_text *text, const struct kg_values *values,
                      const struct kg_nest *nest, const struct kg_access *access)
{
    struct frame frame = {values, nest, values->axes};
    struct kg_emit_names names = names_of(&frame);
    kg_emit_offset(text, nest, access, &names);
}

void kg_values_offset(struct kg_text *text, const struct kg_values *values, int position)
{
    struct frame frame = frame_of(values, position);
    struct kg_emit_names names = names_of(&frame);
    kg_emit_output_offset(text, frame.nest, &names);
}

static bool follows(const struct kg_access *access, int across, int along)
{
    int last = access->tensor->rank - 1;
    bool moves = false;
    if (access->read->pad || last < 1)
        return false;
    for (int dim = 0; dim <= last; dim++) {
        if (!access->map[dim].is_affine)
            return false;
        moves |= access->map[dim].coefficient[across] != 0;
    }
    return moves && access->map[last].coefficient[along] == 1;
}

void kg_values_prefetch(struct kg_code *code, const struct kg_values *values, int position,
                        int across, int along, const char *count, bool *seen)
{
    struct frame frame = frame_of(values, position);
    struct kg_emit_names names = names_of(&frame);
    for (int i = 0; i < frame.nest->access_count; i++) {
        const struct kg_access *access = &frame.nest->accesses[i];
        const struct kg_tensor *tensor = access->tensor;
        if (seen[tensor->id] || kg_group_maker(values->group, tensor) >= 0 ||
            !follows(access, across, along))
            continue;
        seen[tensor->id] = true;
        kg_code_begin(code);
        kg_text_add(code->text, "kg_prefetch(");
        kg_emit_name(code->text, tensor->name);
        kg_text_add(code->text, " + ");
        kg_emit_offset(code->text, frame.nest, access, &names);
        kg_text_format(code->text, ", %s * (int64_t)sizeof(%s));", count,
                       kg_emit_tensor_storage(tensor));
        kg_code_end(code);
    }
}

bool kg_group_inlines(const struct kg_group *group, int but, struct kg_text *reason)
{
    for (int i = 0; i < group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(group, i);
        for (int a = 0; a < nest->access_count; a++) {
            const struct kg_access *access = &nest->accesses[a];
            int maker = kg_group_maker(group, access->tensor);
            if (maker < 0 || maker == but)
                continue;
            if (access->read->pad) {
                kg_text_format(reason, "the intermediate %s is read with pad()",
                               access->tensor->name);
                return false;
            }
            if (kg_group_nest(group, maker)->has_reduce) {
                kg_text_format(reason, "%s is a second reduction", access->tensor->name);
                return false;
            }
        }
    }
    return true;
}
