// What the pointwise family does to one element, and what it reads and stores.

#include "gen/host/pointwise.h"
#include "gen/shared/axes.h"

// Bits of the dimensions that count in an offset: those of axes merged into the next do not.
static unsigned counted_dims(const struct kg_pointwise *pointwise, const struct kg_access *access)
{
    unsigned dims = 0;
    for (int dim = 0; dim < access->tensor->rank; dim++) {
        bool skipped = false;
        for (int axis = 0; axis < pointwise->axes; axis++)
            skipped |= pointwise->merged[axis] && kg_pointwise_bare(access, dim, axis);
        dims |= (unsigned)!skipped << dim;
    }
    return dims;
}

static void print_value_name(struct kg_text *text, const struct kg_pointwise *pointwise,
                             int position)
{
    const struct kg_tensor *output = kg_group_nest(pointwise->group, position)->output;
    if (kg_group_is_private(pointwise->group, output))
        kg_emit_name(text, output->name);
    else
        kg_text_format(text, "v%d", position);
}

static void print_axis(void *user, struct kg_text *text, int axis)
{
    const struct kg_pointwise *pointwise = user;
    if (axis == pointwise->inner && pointwise->inner_name)
        kg_text_add(text, pointwise->inner_name);
    else
        kg_text_format(text, "i%d", axis);
}

// Merged axes drop out of offsets.
void kg_pointwise_print_offset(struct kg_text *text, const struct kg_pointwise *pointwise,
                               const struct kg_access *access)
{
    kg_emit_offset_part(text, pointwise->current, access, counted_dims(pointwise, access),
                        &pointwise->names);
}

void kg_pointwise_print_run(struct kg_text *text, const struct kg_pointwise *pointwise,
                            const struct kg_access *access)
{
    kg_emit_offset_part(text, pointwise->current, access,
                        counted_dims(pointwise, access) & ~(1u << (access->tensor->rank - 1)),
                        &pointwise->names);
}

// Does some nest only store this read, in whatever dtype? Then it is converted in the loop: a
// buffer would be a second copy of it, which took 1.3 times as long.
static bool is_only_stored(const struct kg_pointwise *pointwise, const struct kg_expr *read)
{
    for (int i = 0; i < pointwise->group->count; i++)
        if (kg_group_nest(pointwise->group, i)->body == read)
            return true;
    return false;
}

// Does the read go through neighbours in memory along the inner axis?
static bool is_adjacent(const struct kg_pointwise *pointwise, const struct kg_access *access)
{
    int last = access->tensor->rank - 1;
    if (access->read->pad || last < 0 || !kg_pointwise_bare(access, last, pointwise->inner) ||
        kg_pointwise_producer(pointwise->group, access->tensor, pointwise->group->count) >= 0)
        return false;
    for (int dim = 0; dim < last; dim++)
        if (kg_expr_uses(access->map[dim].subscript, pointwise->inner, true))
            return false;
    return true;
}

// Elements of f16 that are adjacent along the inner axis: a piece of them is converted at once.
// Compilers vectorise what converts other narrow floats together with all else; bf16 by pieces took
// 10 to 30 % longer.
bool kg_pointwise_is_wide(const struct kg_pointwise *pointwise, const struct kg_access *access)
{
    return pointwise->wide && kg_emit_tensor_dtype(access->tensor) == KG_F16 &&
           !is_only_stored(pointwise, access->read) && is_adjacent(pointwise, access);
}

// Is some read of `access` in `expr` under a condition that changes along `axis`? `under`: all of
// `expr` is.
static bool is_conditional(const struct kg_nest *nest, const struct kg_expr *expr,
                           const struct kg_access *access, int axis, bool under)
{
    if (expr->kind == KG_EXPR_READ && under && kg_nest_access(nest, expr) == access)
        return true;
    bool chooses = expr->kind == KG_EXPR_CALL && expr->function == KG_FN_WHERE &&
                   kg_expr_uses(expr->arguments[0], axis, true);
    for (int i = 0; i < expr->argument_count; i++)
        if (is_conditional(nest, expr->arguments[i], access, axis, under || (chooses && i > 0)))
            return true;
    return false;
}

bool kg_pointwise_is_fetched(const struct kg_pointwise *pointwise, const struct kg_access *access)
{
    const struct kg_nest *nest = pointwise->current;
    return pointwise->stream && !kg_pointwise_is_wide(pointwise, access) &&
           !kg_dtype_is_packed(kg_emit_tensor_dtype(access->tensor)) &&
           is_adjacent(pointwise, access) &&
           is_conditional(nest, nest->body, access, pointwise->inner, false);
}

static bool is_read_later(const struct kg_group *group, int position)
{
    for (int i = position + 1; i < group->count; i++)
        for (int j = 0; j < kg_group_nest(group, i)->access_count; j++)
            if (kg_group_nest(group, i)->accesses[j].tensor ==
                kg_group_nest(group, position)->output)
                return true;
    return false;
}

// The read that nest `position` does nothing with but store it as it is; NULL: it does more.
const struct kg_access *kg_pointwise_copied(const struct kg_pointwise *pointwise, int position)
{
    const struct kg_nest *nest = kg_group_nest(pointwise->group, position);
    if (nest->body->kind != KG_EXPR_READ || nest->body->pad)
        return NULL;
    const struct kg_access *access = kg_nest_access(nest, nest->body);
    if (kg_pointwise_producer(pointwise->group, access->tensor, pointwise->group->count) >= 0 ||
        kg_emit_tensor_dtype(access->tensor) != kg_emit_tensor_dtype(nest->output))
        return NULL;
    return access;
}

// The read that nest `position` stores in another dtype and does nothing else with, where a piece
// of it goes from memory to memory: f32 to f16, or back, or as it is past the caches. NULL: there
// is none.
const struct kg_access *kg_pointwise_sent(const struct kg_pointwise *pointwise, int position)
{
    const struct kg_nest *nest = kg_group_nest(pointwise->group, position);
    if (nest->body->kind != KG_EXPR_READ || kg_group_is_private(pointwise->group, nest->output) ||
        is_read_later(pointwise->group, position))
        return NULL;
    const struct kg_access *access = kg_nest_access(nest, nest->body);
    if (kg_pointwise_copied(pointwise, position))
        return pointwise->stream && is_adjacent(pointwise, access) ? access : NULL;
    if (!pointwise->wide)
        return NULL;
    enum kg_dtype from = kg_emit_tensor_dtype(access->tensor);
    enum kg_dtype to = kg_emit_tensor_dtype(nest->output);
    bool known = (from == KG_F32 && to == KG_F16) || (from == KG_F16 && to == KG_F32);
    return known && is_adjacent(pointwise, access) ? access : NULL;
}

// Its number among the accesses of the group.
int kg_pointwise_number(const struct kg_pointwise *pointwise, const struct kg_access *access)
{
    int number = 0;
    for (int i = 0; i < pointwise->group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(pointwise->group, i);
        for (int j = 0; j < nest->access_count; j++, number++)
            if (&nest->accesses[j] == access)
                return number;
    }
    return number;
}

// The buffer of an access that is wide: the number of the first one that reads the same.
int kg_pointwise_buffer(const struct kg_pointwise *pointwise, const struct kg_access *access)
{
    for (int i = 0; i < pointwise->group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(pointwise->group, i);
        for (int j = 0; j < nest->access_count && !kg_pointwise_is_moved(pointwise, i); j++)
            if (kg_pointwise_is_wide(pointwise, &nest->accesses[j]) &&
                kg_access_same(&nest->accesses[j], access))
                return kg_pointwise_number(pointwise, &nest->accesses[j]);
    }
    return kg_pointwise_number(pointwise, access);
}

// Is a subscript read from memory once an item? What is made in the loop is not at hand before it.
static bool is_fixed(const struct kg_pointwise *pointwise, const struct kg_expr *expr)
{
    if (expr->kind == KG_EXPR_READ &&
        kg_pointwise_producer(pointwise->group, expr->tensor, pointwise->group->count) >= 0)
        return false;
    for (int i = 0; i < expr->argument_count; i++)
        if (!is_fixed(pointwise, expr->arguments[i]))
            return false;
    return true;
}

static bool has_place(const struct kg_pointwise *pointwise, const struct kg_access *access, int dim)
{
    const struct kg_affine *map = &access->map[dim];
    return map->is_gather && !access->read->pad && pointwise->inner >= 0 &&
           !kg_expr_uses(map->subscript, pointwise->inner, true) &&
           (pointwise->tiled < 0 || !kg_expr_uses(map->subscript, pointwise->tiled, true)) &&
           is_fixed(pointwise, map->subscript);
}

static bool print_place_name(void *user, struct kg_text *text, const struct kg_access *access,
                             int dim)
{
    const struct kg_pointwise *pointwise = user;
    if (!has_place(pointwise, access, dim))
        return false;
    kg_text_format(text, "place%d", kg_pointwise_number(pointwise, access) * KG_MAX_RANK + dim);
    return true;
}

// Declares the subscripts that an item reads from memory. GCC takes no loop in vectors in which the
// clamp of a subscript stands, though it be the same for all of it: it becomes a branch.
void kg_pointwise_emit_places(struct kg_pointwise *pointwise)
{
    for (int i = 0; i < pointwise->group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(pointwise->group, i);
        pointwise->current = nest;
        for (int j = 0; j < nest->access_count; j++)
            for (int dim = 0; dim < nest->accesses[j].tensor->rank; dim++) {
                const struct kg_access *access = &nest->accesses[j];
                struct kg_emit_names names = pointwise->names;
                struct kg_text place = {0};
                if (!has_place(pointwise, access, dim))
                    continue;
                names.place = NULL;
                kg_emit_subscript(&place, nest, access, dim, &names);
                kg_emit_line(pointwise->text, pointwise->level, "const int64_t place%d = %s;",
                             kg_pointwise_number(pointwise, access) * KG_MAX_RANK + dim,
                             kg_text_string(&place));
                pointwise->text->failed |= place.failed;
                kg_text_free(&place);
            }
    }
}

// Floats of a piece, narrowed when it is complete.
bool kg_pointwise_is_narrowed(const struct kg_pointwise *pointwise, int position)
{
    const struct kg_nest *nest = kg_group_nest(pointwise->group, position);
    enum kg_dtype dtype = kg_emit_tensor_dtype(nest->output);
    return pointwise->wide && dtype == KG_F16 && nest->body->type == KG_TYPE_F32 &&
           nest->body->kind != KG_EXPR_READ && !kg_group_is_private(pointwise->group, nest->output);
}

// The element of a piece that is being computed.
static const char *place_in_piece(const struct kg_pointwise *pointwise)
{
    return pointwise->names.split.step > 0 ? "at" : "lane";
}

// An element of four bits whose run begins at a whole byte: "kg_load_u4(w + (i0 * w_s0 >> 1) + run
// * 4 + lane / 2, lane % 2)".
static void read_shared_byte(const struct kg_pointwise *pointwise, struct kg_text *text,
                             const struct kg_access *access)
{
    const int64_t bytes = pointwise->names.split.step / 2;
    struct kg_text base = {0};
    kg_emit_name(&base, access->tensor->name);
    kg_text_add(&base, " + (");
    kg_pointwise_print_run(&base, pointwise, access);
    kg_text_add(&base, " >> 1) + run");
    if (bytes > 1)
        kg_text_format(&base, " * %lld + lane / 2", (long long)bytes);
    kg_emit_load_at(text, access->tensor, kg_text_string(&base), bytes > 1 ? "lane % 2" : "lane");
    text->failed |= base.failed;
    kg_text_free(&base);
}

// Reads of values made in the same loop are names.
static bool read_value(void *user, struct kg_text *text, const struct kg_access *access)
{
    const struct kg_pointwise *pointwise = user;
    int made = kg_pointwise_producer(pointwise->group, access->tensor, pointwise->group->count);
    if (made >= 0) {
        print_value_name(text, pointwise, made);
        return true;
    }
    if (pointwise->piece && kg_pointwise_is_wide(pointwise, access)) {
        kg_text_format(text, "wide%d[%s]", kg_pointwise_buffer(pointwise, access),
                       place_in_piece(pointwise));
        return true;
    }
    if (pointwise->piece && kg_pointwise_is_fetched(pointwise, access)) {
        struct kg_text fetched = {0};
        kg_text_format(&fetched, "fetched%d", kg_pointwise_number(pointwise, access));
        kg_emit_load_at(text, access->tensor, kg_text_string(&fetched), place_in_piece(pointwise));
        text->failed |= fetched.failed;
        kg_text_free(&fetched);
        return true;
    }
    if (access->read->pad) // walks no merged axis
        return false;
    if (pointwise->names.split.step > 0 &&
        kg_split_shares_bytes(pointwise->group, access, pointwise->inner)) {
        read_shared_byte(pointwise, text, access);
        return true;
    }
    struct kg_text base = {0}, offset = {0};
    kg_emit_name(&base, access->tensor->name);
    kg_pointwise_print_offset(&offset, pointwise, access);
    kg_emit_load_at(text, access->tensor, kg_text_string(&base), kg_text_string(&offset));
    text->failed |= base.failed | offset.failed;
    kg_text_free(&base);
    kg_text_free(&offset);
    return true;
}

static unsigned output_dims(const struct kg_pointwise *pointwise)
{
    unsigned dims = 0;
    for (int axis = 0; axis < pointwise->axes; axis++)
        dims |= (unsigned)!pointwise->merged[axis] << axis;
    return dims;
}

// Where nest `position` stores: its tensor, or its piece of a stream.
static void print_place(const struct kg_pointwise *pointwise, int position, struct kg_text *base,
                        struct kg_text *offset)
{
    const struct kg_nest *nest = kg_group_nest(pointwise->group, position);
    if (pointwise->piece && pointwise->stream) {
        kg_text_format(base, "stage%d", position);
        kg_text_add(offset, place_in_piece(pointwise));
    } else {
        kg_emit_name(base, nest->output->name);
        kg_emit_output_offset_part(offset, nest, output_dims(pointwise), &pointwise->names);
    }
}

static void emit_store(const struct kg_pointwise *pointwise, int position, const char *value)
{
    const struct kg_nest *nest = kg_group_nest(pointwise->group, position);
    struct kg_text base = {0}, offset = {0}, store = {0};
    if (pointwise->piece && kg_pointwise_is_narrowed(pointwise, position)) {
        kg_emit_line(pointwise->text, pointwise->level, "narrow%d[%s] = %s;", position,
                     place_in_piece(pointwise), value);
        return;
    }
    print_place(pointwise, position, &base, &offset);
    kg_emit_store_at(&store, nest->output, kg_text_string(&base), kg_text_string(&offset),
                     nest->body->type, value);
    kg_emit_line(pointwise->text, pointwise->level, "%s", kg_text_string(&store));
    pointwise->text->failed |= base.failed | offset.failed | store.failed;
    kg_text_free(&base);
    kg_text_free(&offset);
    kg_text_free(&store);
}

// Bits are moved, not numbers.
static void emit_copy(const struct kg_pointwise *pointwise, int position,
                      const struct kg_access *access)
{
    struct kg_text base = {0}, offset = {0}, name = {0}, from = {0};
    print_place(pointwise, position, &base, &offset);
    kg_emit_name(&name, access->tensor->name);
    kg_pointwise_print_offset(&from, pointwise, access);
    kg_emit_line(pointwise->text, pointwise->level, "%s[%s] = %s[%s];", kg_text_string(&base),
                 kg_text_string(&offset), kg_text_string(&name), kg_text_string(&from));
    pointwise->text->failed |= base.failed | offset.failed | name.failed | from.failed;
    kg_text_free(&base);
    kg_text_free(&offset);
    kg_text_free(&name);
    kg_text_free(&from);
}

// All nests at one point of the axes.
void kg_pointwise_emit_element(struct kg_pointwise *pointwise)
{
    const struct kg_group *group = pointwise->group;
    for (int i = 0; i < group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(group, i);
        bool stored = !kg_group_is_private(group, nest->output), read = is_read_later(group, i);
        const struct kg_access *copy = kg_pointwise_copied(pointwise, i);
        pointwise->current = nest;
        if (pointwise->piece && kg_pointwise_sent(pointwise, i))
            continue;
        if (copy && stored && !read) {
            emit_copy(pointwise, i, copy);
            continue;
        }
        struct kg_text value = {0}, name = {0};
        kg_emit_value(&value, nest, nest->body, nest->body->type, &pointwise->names);
        print_value_name(&name, pointwise, i);
        // A name also keeps lines short.
        bool named = read || !stored || value.length > 60;
        if (named)
            kg_emit_line(pointwise->text, pointwise->level, "const %s %s = %s;",
                         kg_emit_type(nest->body->type), kg_text_string(&name),
                         kg_text_string(&value));
        if (!named) {
            kg_text_cut(&value, 0);
            kg_emit_expr(&value, nest, nest->body, &pointwise->names);
        }
        if (stored)
            emit_store(pointwise, i, kg_text_string(named ? &name : &value));
        pointwise->text->failed |= value.failed | name.failed;
        kg_text_free(&value);
        kg_text_free(&name);
    }
}

// "y + i0 * y_s0 + i1" for nest `position`.
void kg_pointwise_print_target(struct kg_text *text, const struct kg_pointwise *pointwise,
                               int position)
{
    const struct kg_nest *nest = kg_group_nest(pointwise->group, position);
    kg_emit_name(text, nest->output->name);
    kg_text_add(text, " + ");
    kg_emit_output_offset_part(text, nest, output_dims(pointwise), &pointwise->names);
}

// Does nest `position` only move bits? Those are not converted.
bool kg_pointwise_is_moved(const struct kg_pointwise *pointwise, int position)
{
    return kg_pointwise_copied(pointwise, position) && !is_read_later(pointwise->group, position);
}

// Does the loop touch so many tensors that GCC gives up proving them apart? Beyond
// vect-max-version-for-alias-checks pairs, 10, it takes no notice of `restrict` on locals and
// leaves the loop scalar: one step of AdamW, with 3 outputs and 5 inputs, took 484 us for 2^18
// elements on a Zen 5, and 40 us in vectors.
static bool has_many_tensors(const struct kg_pointwise *pointwise)
{
    enum { MOST_PAIRS = 8 };
    struct kg_needs needs;
    const struct kg_problem *problem = pointwise->group->problem;
    int tensors = 0, stored = 0;
    kg_group_needs(pointwise->group, &needs);
    for (int id = 0; id < problem->tensor_count; id++)
        tensors += needs.tensor[id];
    for (int i = 0; i < pointwise->group->count; i++)
        stored +=
            !kg_group_is_private(pointwise->group, kg_group_nest(pointwise->group, i)->output);
    return stored * (tensors - 1) > MOST_PAIRS;
}

// Says that the loop that follows may be taken in vectors.
void kg_pointwise_emit_apart(const struct kg_pointwise *pointwise)
{
    if (has_many_tensors(pointwise))
        kg_emit_line(pointwise->text, pointwise->level, "KG_LOOP_APART");
}

void kg_pointwise_set_names(struct kg_pointwise *pointwise)
{
    pointwise->names = (struct kg_emit_names){
        .user = pointwise,
        .contiguous = pointwise->group->problem->contiguous,
        .axis = print_axis,
        .read = read_value,
        .place = print_place_name,
    };
}

void kg_pointwise_close_loops(struct kg_pointwise *pointwise, int count)
{
    for (int i = 0; i < count; i++)
        kg_emit_line(pointwise->text, --pointwise->level, "}");
}
