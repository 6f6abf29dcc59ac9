// The code of the pointwise family: see pointwise.c for what it does and when.

#include "gen/host/pointwise.h"

// Elements converted at a time where nothing streams: in long runs, where little is left over, the
// loops around long formulas come out 5 to 10 % faster when GCC does not unroll them completely.
enum { WIDE_PIECE = 64, LONG_PIECE = 256, LONG_BLOCK = 4096 };

// A whole multiple of `step`, the least that is not less than `length`.
static int64_t whole_steps(int64_t length, int64_t step)
{
    return (length + step - 1) / step * step;
}

static void emit_item(struct kg_pointwise *pointwise)
{
    struct kg_text *text = pointwise->text;
    int inner = pointwise->inner, tiled = pointwise->tiled;
    if (pointwise->stream) {
        kg_pointwise_emit_streamed(pointwise);
        return;
    }
    if (pointwise->wide || pointwise->step > 1) {
        kg_emit_line(text, pointwise->level, "int64_t next = first;");
        if (pointwise->step > 1)
            kg_pointwise_emit_runs(pointwise);
        if (pointwise->wide && (pointwise->step == 1 || kg_pointwise_shares_bytes(pointwise)))
            kg_pointwise_emit_pieces(pointwise);
        kg_pointwise_emit_single(pointwise, "stop");
        return;
    }
    if (tiled >= 0)
        kg_emit_line(text, pointwise->level++, "for (int64_t i%d = low; i%d < high; i%d++) {",
                     tiled, tiled, tiled);
    if (inner >= 0) {
        kg_pointwise_emit_apart(pointwise);
        kg_emit_line(text, pointwise->level++, "for (int64_t i%d = first; i%d < stop; i%d++) {",
                     inner, inner, inner);
    }
    kg_pointwise_emit_element(pointwise);
    kg_pointwise_close_loops(pointwise, (tiled >= 0) + (inner >= 0));
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
        kg_pointwise_emit_places(pointwise);
        kg_pointwise_emit_streamed(pointwise);
        kg_pointwise_close_ways(pointwise);
    } else {
        kg_pointwise_open_items(pointwise);
        kg_pointwise_emit_places(pointwise);
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
        if (kg_pointwise_is_moved(pointwise, i))
            continue;
        any = kg_pointwise_is_narrowed(pointwise, i) || kg_pointwise_sent(pointwise, i);
        for (int j = 0; j < nest->access_count; j++)
            any |= kg_pointwise_is_wide(pointwise, &nest->accesses[j]);
    }
    return any;
}

// Elements of an item: a block, or all of its axes that are walked as one.
static int64_t item_length(const struct kg_pointwise *pointwise)
{
    const struct kg_nest *nest = kg_group_nest(pointwise->group, 0);
    int64_t length = nest->extent[pointwise->inner];
    for (int axis = pointwise->inner - 1; axis >= 0 && pointwise->merged[axis]; axis--)
        length *= nest->extent[axis];
    return length < pointwise->block ? length : pointwise->block;
}

// Are long pieces worth it? The last piece of an item computes again what it shares with the one
// before, which they must not make much. By vectors of 32 bytes short ones are faster at all
// lengths: of 2^20 f16 `add` takes 300 us and 430, relu 226 and 310.
static bool has_long_pieces(const struct kg_pointwise *pointwise)
{
    enum { MOST_AGAIN = 16 }; // one element in so many
    const int64_t length = item_length(pointwise), again = whole_steps(length, LONG_PIECE) - length;
    return pointwise->vector_bytes > 32 && pointwise->block >= LONG_BLOCK &&
           again * MOST_AGAIN <= length;
}

// Whole runs, and what kg_widen_f16 converts at once.
static int64_t piece_length(const struct kg_pointwise *pointwise)
{
    enum { CONVERTED = 16 };
    int64_t unit = pointwise->step;
    while (unit % CONVERTED != 0)
        unit += pointwise->step;
    return whole_steps(has_long_pieces(pointwise) ? LONG_PIECE : WIDE_PIECE, unit);
}

void kg_pointwise_emit(struct kg_pointwise *pointwise)
{
    pointwise->wide = pointwise->inner >= 0 && pointwise->tiled < 0 &&
                      pointwise->group->problem->contiguous && has_halves(pointwise);
    pointwise->step = 1;
    if (pointwise->inner >= 0 && pointwise->tiled < 0 && !pointwise->stream)
        pointwise->step = kg_split_step(pointwise->group, pointwise->inner);
    if (pointwise->wide && !pointwise->stream)
        pointwise->stage = piece_length(pointwise);
    pointwise->block = whole_steps(pointwise->block, pointwise->step);
    kg_pointwise_set_names(pointwise);
    kg_pointwise_emit_entries(pointwise);
    emit_run(pointwise);
}
