// The code of the pointwise family: see pointwise.c for what it does and when.

#include "gen/host/pointwise.h"

// Elements converted at a time where nothing streams: in long runs, where little is left over, the
// loops around long formulas come out 5 to 10 % faster when GCC does not unroll them completely.
enum { WIDE_PIECE = 64, LONG_PIECE = 256, LONG_BLOCK = 4096 };

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
static void print_offset(struct kg_text *text, const struct kg_pointwise *pointwise,
                         const struct kg_access *access)
{
    kg_emit_offset_part(text, pointwise->current, access, counted_dims(pointwise, access),
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
static bool is_wide(const struct kg_pointwise *pointwise, const struct kg_access *access)
{
    return pointwise->wide && kg_emit_tensor_dtype(access->tensor) == KG_F16 &&
           !is_only_stored(pointwise, access->read) && is_adjacent(pointwise, access);
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
static const struct kg_access *copied(const struct kg_pointwise *pointwise, int position)
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
static const struct kg_access *sent(const struct kg_pointwise *pointwise, int position)
{
    const struct kg_nest *nest = kg_group_nest(pointwise->group, position);
    if (nest->body->kind != KG_EXPR_READ || kg_group_is_private(pointwise->group, nest->output) ||
        is_read_later(pointwise->group, position))
        return NULL;
    const struct kg_access *access = kg_nest_access(nest, nest->body);
    if (copied(pointwise, position))
        return pointwise->stream && is_adjacent(pointwise, access) ? access : NULL;
    if (!pointwise->wide)
        return NULL;
    enum kg_dtype from = kg_emit_tensor_dtype(access->tensor);
    enum kg_dtype to = kg_emit_tensor_dtype(nest->output);
    bool known = (from == KG_F32 && to == KG_F16) || (from == KG_F16 && to == KG_F32);
    return known && is_adjacent(pointwise, access) ? access : NULL;
}

// Its number among the accesses of the group.
static int wide_number(const struct kg_pointwise *pointwise, const struct kg_access *access)
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
    kg_text_format(text, "place%d", wide_number(pointwise, access) * KG_MAX_RANK + dim);
    return true;
}

// Declares the subscripts that an item reads from memory. GCC takes no loop in vectors in which the
// clamp of a subscript stands, though it be the same for all of it: it becomes a branch.
static void emit_places(struct kg_pointwise *pointwise)
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
                             wide_number(pointwise, access) * KG_MAX_RANK + dim,
                             kg_text_string(&place));
                pointwise->text->failed |= place.failed;
                kg_text_free(&place);
            }
    }
}

// Floats of a piece, narrowed when it is complete.
static bool is_narrowed(const struct kg_pointwise *pointwise, int position)
{
    const struct kg_nest *nest = kg_group_nest(pointwise->group, position);
    enum kg_dtype dtype = kg_emit_tensor_dtype(nest->output);
    return pointwise->wide && dtype == KG_F16 && nest->body->type == KG_TYPE_F32 &&
           nest->body->kind != KG_EXPR_READ && !kg_group_is_private(pointwise->group, nest->output);
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
    if (pointwise->piece && is_wide(pointwise, access)) {
        kg_text_format(text, "wide%d[lane]", wide_number(pointwise, access));
        return true;
    }
    if (access->read->pad) // walks no merged axis
        return false;
    struct kg_text base = {0}, offset = {0};
    kg_emit_name(&base, access->tensor->name);
    print_offset(&offset, pointwise, access);
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
        kg_text_add(offset, "lane");
    } else {
        kg_emit_name(base, nest->output->name);
        kg_emit_output_offset_part(offset, nest, output_dims(pointwise), &pointwise->names);
    }
}

static void emit_store(const struct kg_pointwise *pointwise, int position, const char *value)
{
    const struct kg_nest *nest = kg_group_nest(pointwise->group, position);
    struct kg_text base = {0}, offset = {0}, store = {0};
    if (pointwise->piece && is_narrowed(pointwise, position)) {
        kg_emit_line(pointwise->text, pointwise->level, "narrow%d[lane] = %s;", position, value);
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
    print_offset(&from, pointwise, access);
    kg_emit_line(pointwise->text, pointwise->level, "%s[%s] = %s[%s];", kg_text_string(&base),
                 kg_text_string(&offset), kg_text_string(&name), kg_text_string(&from));
    pointwise->text->failed |= base.failed | offset.failed | name.failed | from.failed;
    kg_text_free(&base);
    kg_text_free(&offset);
    kg_text_free(&name);
    kg_text_free(&from);
}

// All nests at one point of the axes.
static void emit_element(struct kg_pointwise *pointwise)
{
    const struct kg_group *group = pointwise->group;
    for (int i = 0; i < group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(group, i);
        bool stored = !kg_group_is_private(group, nest->output), read = is_read_later(group, i);
        const struct kg_access *copy = copied(pointwise, i);
        pointwise->current = nest;
        if (pointwise->piece && sent(pointwise, i))
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

static void close_loops(struct kg_pointwise *pointwise, int count)
{
    for (int i = 0; i < count; i++)
        kg_emit_line(pointwise->text, --pointwise->level, "}");
}

// "y + i0 * y_s0 + i1" for nest `position`.
static void print_target(struct kg_text *text, const struct kg_pointwise *pointwise, int position)
{
    const struct kg_nest *nest = kg_group_nest(pointwise->group, position);
    kg_emit_name(text, nest->output->name);
    kg_text_add(text, " + ");
    kg_emit_output_offset_part(text, nest, output_dims(pointwise), &pointwise->names);
}

static int first_stored(const struct kg_group *group)
{
    int i = 0;
    while (kg_group_is_private(group, kg_group_nest(group, i)->output))
        i++;
    return i;
}

// Does nest `position` only move bits? Those are not converted.
static bool is_moved(const struct kg_pointwise *pointwise, int position)
{
    return copied(pointwise, position) && !is_read_later(pointwise->group, position);
}

// Converts a piece of what is read.
static void emit_wide(struct kg_pointwise *pointwise, int position)
{
    const struct kg_nest *nest = kg_group_nest(pointwise->group, position);
    if (is_moved(pointwise, position))
        return;
    pointwise->current = nest;
    for (int i = 0; i < nest->access_count; i++) {
        const struct kg_access *access = &nest->accesses[i];
        struct kg_text from = {0};
        if (!is_wide(pointwise, access))
            continue;
        int number = wide_number(pointwise, access);
        kg_emit_name(&from, access->tensor->name);
        kg_text_add(&from, " + ");
        print_offset(&from, pointwise, access);
        kg_emit_line(pointwise->text, pointwise->level,
                     "float wide%d[STAGE] __attribute__((aligned(KG_LINE)));", number);
        kg_emit_line(pointwise->text, pointwise->level, "kg_widen_%s(%s, wide%d, STAGE);",
                     kg_dtypes[kg_emit_tensor_dtype(access->tensor)].name, kg_text_string(&from),
                     number);
        pointwise->text->failed |= from.failed;
        kg_text_free(&from);
    }
}

// Declares the buffers of nest `position`.
static void emit_stage(const struct kg_pointwise *pointwise, int position)
{
    const struct kg_nest *nest = kg_group_nest(pointwise->group, position);
    if (kg_group_is_private(pointwise->group, nest->output))
        return;
    if (pointwise->stream && !(is_moved(pointwise, position) && sent(pointwise, position)))
        kg_emit_line(pointwise->text, pointwise->level,
                     "%s stage%d[STAGE] __attribute__((aligned(KG_LINE)));",
                     kg_emit_tensor_storage(nest->output), position);
    if (is_narrowed(pointwise, position) && !is_moved(pointwise, position))
        kg_emit_line(pointwise->text, pointwise->level,
                     "float narrow%d[STAGE] __attribute__((aligned(KG_LINE)));", position);
}

// "x + i0 * x_s0 + next"
static void print_source(struct kg_text *text, const struct kg_pointwise *pointwise,
                         const struct kg_access *access)
{
    kg_emit_name(text, access->tensor->name);
    kg_text_add(text, " + ");
    print_offset(text, pointwise, access);
}

// Converts a piece from a tensor to `target`.
static void emit_conversion(const struct kg_pointwise *pointwise, const struct kg_access *access,
                            const char *target)
{
    struct kg_text from = {0};
    print_source(&from, pointwise, access);
    kg_emit_line(pointwise->text, pointwise->level, "kg_%s_f16(%s, %s, STAGE);",
                 kg_emit_tensor_dtype(access->tensor) == KG_F16 ? "widen" : "narrow",
                 kg_text_string(&from), target);
    pointwise->text->failed |= from.failed;
    kg_text_free(&from);
}

// Sends what nest `position` has made of a piece to where it belongs.
static void emit_departure(struct kg_pointwise *pointwise, int position, bool leads)
{
    const struct kg_nest *nest = kg_group_nest(pointwise->group, position);
    const struct kg_access *origin = sent(pointwise, position);
    struct kg_text target = {0}, stage = {0};
    if (kg_group_is_private(pointwise->group, nest->output))
        return;
    pointwise->current = nest;
    print_target(&target, pointwise, position);
    kg_text_format(&stage, "stage%d", position);
    if (origin && copied(pointwise, position)) {
        kg_text_cut(&stage, 0);
        print_source(&stage, pointwise, origin);
    } else if (origin) {
        emit_conversion(pointwise, origin, kg_text_string(pointwise->stream ? &stage : &target));
    }
    if (is_narrowed(pointwise, position) && !is_moved(pointwise, position))
        kg_emit_line(pointwise->text, pointwise->level, "kg_narrow_%s(narrow%d, %s, STAGE);",
                     kg_dtypes[kg_emit_tensor_dtype(nest->output)].name, position,
                     kg_text_string(pointwise->stream ? &stage : &target));
    if (pointwise->stream)
        kg_emit_line(pointwise->text, pointwise->level, "%s(%s, %s, STAGE * sizeof(%s));",
                     leads ? "kg_stream_lines" : "kg_stream", kg_text_string(&target),
                     kg_text_string(&stage), kg_emit_tensor_storage(nest->output));
    pointwise->text->failed |= target.failed | stage.failed;
    kg_text_free(&target);
    kg_text_free(&stage);
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
static void emit_apart(const struct kg_pointwise *pointwise)
{
    if (has_many_tensors(pointwise))
        kg_emit_line(pointwise->text, pointwise->level, "KG_LOOP_APART");
}

// May the last piece end where the run ends, and compute again what it shares with the one before?
// Elements converted one by one took as long as 20 of a piece: causal_mask of rows of 520 in f16,
// which leave 8, took 495 us, and 413 us in plain loops. Pieces that are streamed are whole lines;
// elements of four bits share bytes.
static bool overlaps(const struct kg_pointwise *pointwise)
{
    for (int i = 0; i < pointwise->group->count; i++) {
        const struct kg_tensor *output = kg_group_nest(pointwise->group, i)->output;
        if (kg_dtype_is_packed(kg_emit_tensor_dtype(output)))
            return false;
    }
    return !pointwise->stream;
}

// Is anything computed of a piece?
static bool has_formula(const struct kg_pointwise *pointwise)
{
    bool any = false;
    for (int i = 0; i < pointwise->group->count; i++)
        any |= !sent(pointwise, i);
    return any;
}

static void emit_lanes(struct kg_pointwise *pointwise)
{
    emit_apart(pointwise);
    kg_emit_line(pointwise->text, pointwise->level++,
                 "for (int64_t lane = 0; lane < STAGE; lane++) {");
    kg_emit_line(pointwise->text, pointwise->level, "const int64_t i%d = next + lane;",
                 pointwise->inner);
    pointwise->piece = true;
    emit_element(pointwise);
    pointwise->piece = false;
    close_loops(pointwise, 1);
}

// STAGE elements from `next` on: what is narrow is widened, all is computed, and leaves.
static void emit_piece(struct kg_pointwise *pointwise)
{
    const struct kg_group *group = pointwise->group;
    int leader = first_stored(group);
    pointwise->inner_name = "next";
    for (int i = 0; i < group->count; i++)
        emit_wide(pointwise, i);
    pointwise->inner_name = NULL;
    for (int i = 0; i < group->count; i++)
        emit_stage(pointwise, i);
    if (has_formula(pointwise))
        emit_lanes(pointwise);
    pointwise->inner_name = "next";
    for (int i = 0; i < group->count; i++)
        emit_departure(pointwise, i, i == leader);
    pointwise->inner_name = NULL;
}

static void emit_pieces(struct kg_pointwise *pointwise)
{
    if (overlaps(pointwise)) {
        kg_emit_line(pointwise->text, pointwise->level++,
                     "for (; next < stop && stop - first >= STAGE; next += STAGE) {");
        kg_emit_line(pointwise->text, pointwise->level, "next = kg_min_i64(next, stop - STAGE);");
    } else {
        kg_emit_line(pointwise->text, pointwise->level++,
                     "for (; stop - next >= STAGE; next += STAGE) {");
    }
    emit_piece(pointwise);
    close_loops(pointwise, 1);
}

// Elements from `next` to before `limit`, one by one.
static void emit_single(struct kg_pointwise *pointwise, const char *limit)
{
    int inner = pointwise->inner;
    emit_apart(pointwise);
    kg_emit_line(pointwise->text, pointwise->level++, "for (int64_t i%d = next; i%d < %s; i%d++) {",
                 inner, inner, limit, inner);
    emit_element(pointwise);
    close_loops(pointwise, 1);
}

// Pieces are whole lines of the first output. What is left at either end is stored as usual: up to
// the first whole line, then, after the pieces, up to `stop`.
static void emit_streamed(struct kg_pointwise *pointwise)
{
    struct kg_text *text = pointwise->text, target = {0};
    int leader = first_stored(pointwise->group);
    const struct kg_nest *first = kg_group_nest(pointwise->group, leader);
    if (pointwise->ways == 1) {
        kg_emit_line(text, pointwise->level, "int64_t next = first;");
        kg_emit_line(text, pointwise->level++, "while (next < stop) {");
    }
    pointwise->inner_name = "next";
    print_target(&target, pointwise, leader);
    pointwise->inner_name = NULL;
    kg_emit_line(text, pointwise->level, "const int64_t past = kg_past_line(%s, sizeof(%s));",
                 kg_text_string(&target), kg_emit_tensor_storage(first->output));
    kg_emit_line(text, pointwise->level++, "if (past > 0 || stop - next < STAGE) {");
    kg_emit_line(text, pointwise->level,
                 "const int64_t limit = kg_min_i64(stop, next + STAGE - past);");
    emit_single(pointwise, "limit");
    kg_emit_line(text, pointwise->level, "next = limit;");
    if (pointwise->ways == 1) {
        close_loops(pointwise, 1);
        emit_pieces(pointwise);
    } else {
        kg_emit_line(text, pointwise->level - 1, "} else {");
        emit_piece(pointwise);
        kg_emit_line(text, pointwise->level, "next += STAGE;");
    }
    close_loops(pointwise, 1);
    text->failed |= target.failed;
    kg_text_free(&target);
}

static void emit_item(struct kg_pointwise *pointwise)
{
    struct kg_text *text = pointwise->text;
    int inner = pointwise->inner, tiled = pointwise->tiled;
    if (pointwise->stream) {
        emit_streamed(pointwise);
        return;
    }
    if (pointwise->wide) {
        kg_emit_line(text, pointwise->level, "int64_t next = first;");
        emit_pieces(pointwise);
        emit_single(pointwise, "stop");
        return;
    }
    if (tiled >= 0)
        kg_emit_line(text, pointwise->level++, "for (int64_t i%d = low; i%d < high; i%d++) {",
                     tiled, tiled, tiled);
    if (inner >= 0) {
        emit_apart(pointwise);
        kg_emit_line(text, pointwise->level++, "for (int64_t i%d = first; i%d < stop; i%d++) {",
                     inner, inner, inner);
    }
    emit_element(pointwise);
    close_loops(pointwise, (tiled >= 0) + (inner >= 0));
}

static void emit_run(struct kg_pointwise *pointwise)
{
    struct kg_text *text = pointwise->text;
    kg_text_format(text,
                   "void %s_run(const struct kg_host_call *call, int phase, int64_t begin, "
                   "int64_t end)\n{\n    (void)phase;\n",
                   pointwise->entry);
    kg_pointwise_emit_declarations(pointwise);
    pointwise->level = 1;
    if (pointwise->ways > 1) {
        kg_pointwise_open_ways(pointwise);
        emit_places(pointwise);
        emit_streamed(pointwise);
        kg_pointwise_close_ways(pointwise);
    } else {
        kg_pointwise_open_items(pointwise);
        emit_places(pointwise);
        emit_item(pointwise);
        kg_pointwise_close_items(pointwise);
    }
    if (pointwise->stream)
        kg_emit_line(text, pointwise->level, "kg_stream_end();");
    kg_text_add(text, "}\n");
}

// Is there anything to convert a piece at a time?
static bool has_halves(struct kg_pointwise *pointwise)
{
    bool any = false;
    pointwise->wide = true;
    for (int i = 0; i < pointwise->group->count && !any; i++) {
        const struct kg_nest *nest = kg_group_nest(pointwise->group, i);
        if (is_moved(pointwise, i))
            continue;
        any = is_narrowed(pointwise, i) || sent(pointwise, i);
        for (int j = 0; j < nest->access_count; j++)
            any |= is_wide(pointwise, &nest->accesses[j]);
    }
    return any;
}

void kg_pointwise_emit(struct kg_pointwise *pointwise)
{
    pointwise->wide = pointwise->inner >= 0 && pointwise->tiled < 0 &&
                      pointwise->group->problem->contiguous && has_halves(pointwise);
    if (pointwise->wide && !pointwise->stream)
        pointwise->stage = pointwise->block >= LONG_BLOCK ? LONG_PIECE : WIDE_PIECE;
    pointwise->names = (struct kg_emit_names){
        .user = pointwise,
        .contiguous = pointwise->group->problem->contiguous,
        .axis = print_axis,
        .read = read_value,
        .place = print_place_name,
    };
    kg_pointwise_emit_entries(pointwise);
    emit_run(pointwise);
}
