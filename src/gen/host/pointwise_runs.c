// Runs of the inner loop in the pointwise family: where its index is divided by constants, or its
// elements share bytes, it becomes a loop over runs around one over the elements of a run (see
// gen/shared/split.h). One core of a Zen 5, 2^21 elements: both nibbles of each byte took 1140 us,
// and 38 in runs; eight weights from each word 1210, and 320.

#include "gen/host/pointwise.h"

bool kg_pointwise_shares_bytes(const struct kg_pointwise *pointwise)
{
    bool any = false;
    for (int i = 0; i < pointwise->group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(pointwise->group, i);
        for (int j = 0; j < nest->access_count; j++)
            any |= kg_split_shares_bytes(pointwise->group, &nest->accesses[j], pointwise->inner);
    }
    return any;
}

// Where runs of elements that share bytes begin: "i0 * w_s0 | (i0 / 128) * z_s0".
static void print_beginnings(struct kg_pointwise *pointwise, struct kg_text *text)
{
    for (int i = 0; i < pointwise->group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(pointwise->group, i);
        pointwise->current = nest;
        for (int j = 0; j < nest->access_count; j++) {
            if (!kg_split_shares_bytes(pointwise->group, &nest->accesses[j], pointwise->inner))
                continue;
            kg_text_add(text, text->length > 0 ? " | (" : "(");
            kg_pointwise_print_run(text, pointwise, &nest->accesses[j]);
            kg_text_add(text, ")");
        }
    }
}

static void emit_lanes(struct kg_pointwise *pointwise)
{
    kg_pointwise_emit_apart(pointwise);
    kg_emit_line(pointwise->text, pointwise->level++,
                 "for (int64_t lane = 0; lane < STEP; lane++) {");
    if (pointwise->piece)
        kg_emit_line(pointwise->text, pointwise->level, "const int64_t at = part * STEP + lane;");
    kg_emit_line(pointwise->text, pointwise->level, "const int64_t i%d = run * STEP + lane;",
                 pointwise->inner);
    kg_pointwise_emit_element(pointwise);
    kg_pointwise_close_loops(pointwise, 1);
}

static void emit_whole_runs(struct kg_pointwise *pointwise)
{
    kg_pointwise_emit_apart(pointwise);
    kg_emit_line(pointwise->text, pointwise->level++,
                 "for (int64_t run = first / STEP; run < stop / STEP; run++) {");
    emit_lanes(pointwise);
    kg_pointwise_close_loops(pointwise, 1);
    kg_emit_line(pointwise->text, pointwise->level, "next = stop / STEP * STEP;");
}

void kg_pointwise_emit_runs(struct kg_pointwise *pointwise)
{
    struct kg_text beginnings = {0};
    print_beginnings(pointwise, &beginnings);
    const bool shares = beginnings.length > 0;
    if (shares)
        kg_emit_line(pointwise->text, pointwise->level++, "if ((%s) %% 2 == 0) {",
                     kg_text_string(&beginnings));
    pointwise->names.split = (struct kg_split){pointwise->inner, pointwise->step};
    if (pointwise->wide)
        kg_pointwise_emit_pieces(pointwise);
    else
        emit_whole_runs(pointwise);
    pointwise->names.split = (struct kg_split){0};
    if (shares)
        kg_pointwise_close_loops(pointwise, 1);
    pointwise->text->failed |= beginnings.failed;
    kg_text_free(&beginnings);
}

void kg_pointwise_emit_runs_of_piece(struct kg_pointwise *pointwise)
{
    kg_pointwise_emit_apart(pointwise);
    kg_emit_line(pointwise->text, pointwise->level++,
                 "for (int64_t part = 0; part < STAGE / STEP; part++) {");
    kg_emit_line(pointwise->text, pointwise->level, "const int64_t run = next / STEP + part;");
    emit_lanes(pointwise);
    kg_pointwise_close_loops(pointwise, 1);
}
