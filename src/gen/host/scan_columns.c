// Running totals along other axes than the last: each column keeps its own, and vectors follow the
// columns. See scan.c for the strategy.

#include "gen/host/scan.h"

#include <stdio.h>

// Float totals are folded into wider ones after so many rows.
enum { FLUSH_STEPS = 32 };
// Columns of a streamed piece of the output: a whole number of lines, whatever the dtype.
enum { PIECE = 64 };

static const char *lane_type(const struct kg_scan_plan *plan)
{
    return kg_fold_type(plan->fold.lane);
}

static void emit_tile(struct kg_scan_writer *writer)
{
    const struct kg_scan_plan *plan = writer->plan;
    struct kg_code *code = writer->code;
    struct kg_text neutral = {0};
    int k = plan->k;
    kg_fold_neutral(&neutral, &plan->fold, plan->fold.lane);
    kg_code_line(code, "const int64_t first = item %% tiles * TILE;");
    kg_code_line(code, "const int64_t outer = item / tiles;");
    kg_code_line(code, "const int64_t lanes = kg_min_i64(TILE, width - first);");
    kg_axes_split(code, plan->nest, 0, plan->axis - 1, "(outer / inner)");
    kg_axes_split(code, plan->nest, plan->axis + 1, plan->run - 1, "(outer % inner)");
    kg_code_line(code, "%s acc%d[TILE];", lane_type(plan), k);
    if (plan->fold.is_argument)
        kg_code_line(code, "int64_t at%d[TILE];", k);
    if (plan->fold.is_float_sum) {
        kg_code_line(code, "%s from%d[TILE];", lane_type(plan), k);
        kg_code_line(code, "double part[TILE], lost[TILE];");
    }
    kg_code_open(code, "for (int64_t lane = 0; lane < lanes; lane++)");
    kg_code_line(code, "acc%d[lane] = %s;", k, kg_text_string(&neutral));
    if (plan->fold.is_argument)
        kg_code_line(code, "at%d[lane] = -1;", k);
    if (plan->fold.is_float_sum)
        kg_code_line(code, "from%d[lane] = 0, part[lane] = 0.0, lost[lane] = 0.0;", k);
    kg_code_close(code);
    code->text->failed |= neutral.failed;
    kg_text_free(&neutral);
}

static void emit_column_take(struct kg_scan_writer *writer)
{
    const struct kg_scan_plan *plan = writer->plan;
    struct kg_code *code = writer->code;
    char acc[32];
    int k = plan->k;
    snprintf(acc, sizeof acc, "acc%d[lane]", k);
    if (plan->fold.is_argument) {
        kg_code_line(code, "const bool take = at%d[lane] < 0 || kg_beats_%s_%s(value, %s);", k,
                     kg_reduces[plan->fold.search].name, kg_emit_suffix(plan->fold.lane), acc);
        kg_code_line(code, "%s = take ? value : %s;", acc, acc);
        kg_code_line(code, "at%d[lane] = take ? row : at%d[lane];", k, k);
        return;
    }
    kg_code_begin(code);
    kg_text_format(code->text, "%s = ", acc);
    kg_fold_combine(code->text, &plan->fold, plan->fold.lane, acc, "value");
    kg_text_add(code->text, ";");
    kg_code_end(code);
}

// Columns first + lane for lanes in [from, to).
static void emit_column_lanes(struct kg_scan_writer *writer, const char *from, const char *to)
{
    const struct kg_scan_plan *plan = writer->plan;
    struct kg_code *code = writer->code;
    char total[64], value[48];
    int k = plan->k;
    if (plan->fold.is_argument)
        snprintf(total, sizeof total, "at%d[lane]", k);
    else if (plan->fold.is_float_sum)
        snprintf(total, sizeof total, "from%d[lane] + acc%d[lane]", k, k);
    else
        snprintf(total, sizeof total, "acc%d[lane]", k);
    snprintf(value, sizeof value, "const %s value", lane_type(plan));
    kg_code_line(code, "#pragma omp simd");
    kg_code_open(code, "for (int64_t lane = %s; lane < %s; lane++)", from, to);
    kg_code_line(code, "const int64_t i%d = first + lane;", plan->last);
    kg_scan_value(writer, value);
    if (!plan->exclusive)
        emit_column_take(writer);
    kg_scan_outputs(writer, total, plan->exclusive ? "row" : "row + 1");
    if (plan->exclusive)
        emit_column_take(writer);
    kg_code_close(code);
}

// The next row, as far as this piece goes.
static void emit_prefetch(struct kg_scan_writer *writer)
{
    const struct kg_scan_plan *plan = writer->plan;
    struct kg_values values = writer->values;
    bool seen[KG_MAX_NESTS + KG_MAX_TENSORS] = {false};
    char next[32];
    snprintf(next, sizeof next, "(i%d %c 1)", plan->axis, plan->backward ? '-' : '+');
    values.axes[plan->axis] = next;
    values.axes[plan->bound] = next;
    values.axes[plan->last] = "first + piece";
    kg_code_open(writer->code, "if (row + 1 < length)");
    kg_values_prefetch(writer->code, &values, plan->k, plan->bound, plan->last, "PIECE", seen);
    kg_code_close(writer->code);
}

// The row goes out past the caches in pieces of a size known to the compiler, which start with a
// line of the first output; what is left at either end is stored as usual.
static void emit_pieces(struct kg_scan_writer *writer)
{
    const struct kg_scan_plan *plan = writer->plan;
    struct kg_code *code = writer->code;
    int leader = plan->k;
    while (leader < plan->group->count - 1 && !kg_scan_is_stored(plan, leader))
        leader++;
    kg_code_line(code, "int64_t piece = 0;");
    kg_code_open(code, "while (piece < lanes)");
    kg_code_begin(code);
    kg_text_add(code->text, "const int64_t past = kg_past_line(");
    kg_scan_target(code->text, writer, leader, "(first + piece)");
    kg_text_format(code->text, ", sizeof(%s));",
                   kg_emit_tensor_storage(kg_group_nest(plan->group, leader)->output));
    kg_code_end(code);
    kg_code_open(code, "if (past > 0 || lanes - piece < PIECE)");
    kg_code_line(code, "const int64_t limit = kg_min_i64(lanes, piece + PIECE - past);");
    writer->staged = NULL;
    emit_column_lanes(writer, "piece", "limit");
    kg_code_line(code, "piece = limit;");
    kg_code_line(code, "continue;");
    kg_code_close(code);
    emit_prefetch(writer);
    kg_scan_stages(writer, "PIECE");
    writer->staged = "lane - piece";
    emit_column_lanes(writer, "piece", "piece + PIECE");
    kg_scan_streams(writer, "(first + piece)", "PIECE");
    kg_code_line(code, "piece += PIECE;");
    kg_code_close(code);
}

void kg_scan_emit_columns(struct kg_scan_writer *writer)
{
    const struct kg_scan_plan *plan = writer->plan;
    struct kg_code *code = writer->code;
    int k = plan->k;
    kg_scan_open(writer, "static void", "scan", "int64_t begin, int64_t end");
    kg_code_line(code, "enum { STEPS = %d, PIECE = %d };", FLUSH_STEPS, PIECE);
    kg_code_open(code, "for (int64_t item = begin; item < end; item++)");
    emit_tile(writer);
    kg_code_open(code, "for (int64_t row = 0; row < length; row++)");
    kg_scan_axis(writer, "row");
    if (plan->fold.is_float_sum) {
        kg_code_line(code, "if (row %% STEPS == 0)");
        kg_code_indent(code);
        kg_code_open(code, "for (int64_t lane = 0; lane < lanes; lane++)");
        kg_code_line(code, "kg_two_sum(&part[lane], &lost[lane], acc%d[lane]);", k);
        kg_code_line(code, "from%d[lane] = (%s)kg_two_value(part[lane], lost[lane]);", k,
                     lane_type(plan));
        kg_code_line(code, "acc%d[lane] = 0;", k);
        kg_code_close(code);
        kg_code_outdent(code);
    }
    if (plan->stream)
        emit_pieces(writer);
    else
        emit_column_lanes(writer, "0", "lanes");
    kg_code_close(code);
    kg_code_close(code);
    if (plan->stream)
        kg_code_line(code, "kg_stream_end();");
    kg_scan_close(writer);
}
