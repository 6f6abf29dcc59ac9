// Pieces of a run in the pointwise family: narrow floats are converted a piece at a time, and
// streamed results leave so.

#include "gen/host/pointwise.h"

static int first_stored(const struct kg_group *group)
{
    int i = 0;
    while (kg_group_is_private(group, kg_group_nest(group, i)->output))
        i++;
    return i;
}

// "x + i0 * x_s0 + next"
static void print_source(struct kg_text *text, const struct kg_pointwise *pointwise,
                         const struct kg_access *access)
{
    kg_emit_name(text, access->tensor->name);
    kg_text_add(text, " + ");
    kg_pointwise_print_offset(text, pointwise, access);
}

// Reads a piece into a buffer: of f16, to convert it at once, and of what is only used under a
// condition. What several accesses read alike is converted once.
static void emit_reads(struct kg_pointwise *pointwise, int position)
{
    const struct kg_nest *nest = kg_group_nest(pointwise->group, position);
    pointwise->current = nest;
    for (int i = 0; i < nest->access_count; i++) {
        const struct kg_access *access = &nest->accesses[i];
        enum kg_dtype dtype = kg_emit_tensor_dtype(access->tensor);
        const int number = kg_pointwise_number(pointwise, access);
        bool wide =
            kg_pointwise_is_wide(pointwise, access) && !kg_pointwise_is_moved(pointwise, position);
        bool fetched =
            kg_pointwise_is_fetched(pointwise, access) && !kg_pointwise_sent(pointwise, position);
        struct kg_text from = {0}, name = {0};
        bool is_read = wide && kg_pointwise_buffer(pointwise, access) != number; // it was
        if (is_read || (!wide && !fetched))
            continue;
        print_source(&from, pointwise, access);
        kg_text_format(&name, "%s%d", wide ? "wide" : "fetched", number);
        kg_emit_line(
            pointwise->text, pointwise->level, "%s %s[STAGE] __attribute__((aligned(KG_LINE)));",
            wide ? "float" : kg_emit_tensor_storage(access->tensor), kg_text_string(&name));
        if (wide)
            kg_emit_line(pointwise->text, pointwise->level, "kg_widen_%s(%s, %s, STAGE);",
                         kg_dtypes[dtype].name, kg_text_string(&from), kg_text_string(&name));
        else
            kg_emit_line(pointwise->text, pointwise->level, "kg_fetch(%s, %s, sizeof %s);",
                         kg_text_string(&name), kg_text_string(&from), kg_text_string(&name));
        pointwise->text->failed |= from.failed | name.failed;
        kg_text_free(&from);
        kg_text_free(&name);
    }
}

// Declares the buffers of nest `position`.
static void emit_stage(const struct kg_pointwise *pointwise, int position)
{
    const struct kg_nest *nest = kg_group_nest(pointwise->group, position);
    if (kg_group_is_private(pointwise->group, nest->output))
        return;
    if (pointwise->stream &&
        !(kg_pointwise_is_moved(pointwise, position) && kg_pointwise_sent(pointwise, position)))
        kg_emit_line(pointwise->text, pointwise->level,
                     "%s stage%d[STAGE] __attribute__((aligned(KG_LINE)));",
                     kg_emit_tensor_storage(nest->output), position);
    if (kg_pointwise_is_narrowed(pointwise, position) &&
        !kg_pointwise_is_moved(pointwise, position))
        kg_emit_line(pointwise->text, pointwise->level,
                     "float narrow%d[STAGE] __attribute__((aligned(KG_LINE)));", position);
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
    const struct kg_access *origin = kg_pointwise_sent(pointwise, position);
    struct kg_text target = {0}, stage = {0};
    if (kg_group_is_private(pointwise->group, nest->output))
        return;
    pointwise->current = nest;
    kg_pointwise_print_target(&target, pointwise, position);
    kg_text_format(&stage, "stage%d", position);
    if (origin && kg_pointwise_copied(pointwise, position)) {
        kg_text_cut(&stage, 0);
        print_source(&stage, pointwise, origin);
    } else if (origin) {
        emit_conversion(pointwise, origin, kg_text_string(pointwise->stream ? &stage : &target));
    }
    if (kg_pointwise_is_narrowed(pointwise, position) &&
        !kg_pointwise_is_moved(pointwise, position))
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
        any |= !kg_pointwise_sent(pointwise, i);
    return any;
}

static void emit_lanes(struct kg_pointwise *pointwise)
{
    pointwise->piece = true;
    if (pointwise->names.split.step > 0) {
        kg_pointwise_emit_runs_of_piece(pointwise);
    } else {
        kg_pointwise_emit_apart(pointwise);
        kg_emit_line(pointwise->text, pointwise->level++,
                     "for (int64_t lane = 0; lane < STAGE; lane++) {");
        kg_emit_line(pointwise->text, pointwise->level, "const int64_t i%d = next + lane;",
                     pointwise->inner);
        kg_pointwise_emit_element(pointwise);
        kg_pointwise_close_loops(pointwise, 1);
    }
    pointwise->piece = false;
}

// STAGE elements from `next` on: what is narrow is widened, all is computed, and leaves.
static void emit_piece(struct kg_pointwise *pointwise)
{
    const struct kg_group *group = pointwise->group;
    int leader = first_stored(group);
    pointwise->inner_name = "next";
    for (int i = 0; i < group->count; i++)
        emit_reads(pointwise, i);
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

void kg_pointwise_emit_pieces(struct kg_pointwise *pointwise)
{
    if (overlaps(pointwise) && pointwise->names.split.step > 0) {
        kg_emit_line(pointwise->text, pointwise->level++,
                     "for (; stop - next >= STEP && stop - first >= STAGE; next += STAGE) {");
        kg_emit_line(pointwise->text, pointwise->level,
                     "next = kg_min_i64(next, (stop - STAGE) / STEP * STEP);");
    } else if (overlaps(pointwise)) {
        kg_emit_line(pointwise->text, pointwise->level++,
                     "for (; next < stop && stop - first >= STAGE; next += STAGE) {");
        kg_emit_line(pointwise->text, pointwise->level, "next = kg_min_i64(next, stop - STAGE);");
    } else {
        kg_emit_line(pointwise->text, pointwise->level++,
                     "for (; stop - next >= STAGE; next += STAGE) {");
    }
    emit_piece(pointwise);
    kg_pointwise_close_loops(pointwise, 1);
}

// Elements from `next` to before `limit`, one by one.
void kg_pointwise_emit_single(struct kg_pointwise *pointwise, const char *limit)
{
    int inner = pointwise->inner;
    kg_pointwise_emit_apart(pointwise);
    kg_emit_line(pointwise->text, pointwise->level++, "for (int64_t i%d = next; i%d < %s; i%d++) {",
                 inner, inner, limit, inner);
    kg_pointwise_emit_element(pointwise);
    kg_pointwise_close_loops(pointwise, 1);
}

// Pieces are whole lines of the first output. What is left at either end is stored as usual: up to
// the first whole line, then, after the pieces, up to `stop`.
void kg_pointwise_emit_streamed(struct kg_pointwise *pointwise)
{
    struct kg_text *text = pointwise->text, target = {0};
    int leader = first_stored(pointwise->group);
    const struct kg_nest *first = kg_group_nest(pointwise->group, leader);
    if (pointwise->ways == 1) {
        kg_emit_line(text, pointwise->level, "int64_t next = first;");
        kg_emit_line(text, pointwise->level++, "while (next < stop) {");
    }
    pointwise->inner_name = "next";
    kg_pointwise_print_target(&target, pointwise, leader);
    pointwise->inner_name = NULL;
    kg_emit_line(text, pointwise->level, "const int64_t past = kg_past_line(%s, sizeof(%s));",
                 kg_text_string(&target), kg_emit_tensor_storage(first->output));
    kg_emit_line(text, pointwise->level++, "if (past > 0 || stop - next < STAGE) {");
    kg_emit_line(text, pointwise->level,
                 "const int64_t limit = kg_min_i64(stop, next + STAGE - past);");
    kg_pointwise_emit_single(pointwise, "limit");
    kg_emit_line(text, pointwise->level, "next = limit;");
    if (pointwise->ways == 1) {
        kg_pointwise_close_loops(pointwise, 1);
        kg_pointwise_emit_pieces(pointwise);
    } else {
        kg_emit_line(text, pointwise->level - 1, "} else {");
        emit_piece(pointwise);
        kg_emit_line(text, pointwise->level, "next += STAGE;");
    }
    kg_pointwise_close_loops(pointwise, 1);
    text->failed |= target.failed;
    kg_text_free(&target);
}
