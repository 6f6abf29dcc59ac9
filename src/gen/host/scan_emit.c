// The code of running totals: see scan.c for the strategy.

#include "gen/host/scan.h"

#include <stdio.h>

// Elements that are worth handing to another thread.
enum { GRAIN_ELEMENTS = 16384 };

static const char *lane_type(const struct kg_scan_plan *plan)
{
    return kg_fold_type(plan->fold.lane);
}

static const char *total_type(const struct kg_scan_plan *plan)
{
    return kg_fold_type(plan->fold.total);
}

// "sum_f32"
static void print_kind(struct kg_text *text, const struct kg_fold *fold)
{
    kg_text_format(text, "%s_%s", fold->is_sum ? "sum" : kg_reduces[fold->reduce].name,
                   kg_emit_suffix(fold->lane));
}

static void define(struct kg_scan_writer *writer, const char *name, int first, int last)
{
    kg_code_begin(writer->code);
    kg_text_format(writer->code->text, "const int64_t %s = ", name);
    kg_axes_product(writer->code->text, writer->plan->nest, first, last);
    kg_text_add(writer->code->text, ";");
    kg_code_end(writer->code);
}

static void emit_frame(struct kg_scan_writer *writer)
{
    const struct kg_scan_plan *plan = writer->plan;
    struct kg_code *code = writer->code;
    kg_emit_host_bindings(code->text, plan->group, false);
    define(writer, "length", plan->axis, plan->axis);
    if (plan->column) {
        kg_code_line(code, "enum { TILE = %lld };", (long long)plan->width);
        define(writer, "lead", 0, plan->axis - 1);
        define(writer, "inner", plan->axis + 1, plan->run - 1);
        define(writer, "width", plan->run, plan->last);
        kg_code_line(code, "const int64_t tiles = (width + TILE - 1) / TILE;");
        kg_code_line(code, "const int64_t items = length > 0 ? lead * inner * tiles : 0;");
        return;
    }
    kg_code_line(code, "enum { BLOCK = %lld };", (long long)plan->width);
    define(writer, "rows", 0, plan->axis - 1);
    if (plan->chunk > 0) {
        kg_code_line(code, "const int64_t size = %lld;", (long long)plan->chunk);
        kg_code_line(code,
                     "const int64_t chunks = length > size ? (length + size - 1) / size : 1;");
        kg_code_line(code, "const int64_t items = rows * chunks;");
    } else {
        kg_code_line(code, "const int64_t items = rows;");
    }
}

void kg_scan_open(struct kg_scan_writer *writer, const char *kind, const char *name,
                  const char *parameters)
{
    kg_code_line(writer->code, "%s %s_%s(const struct kg_host_call *call, %s)", kind,
                 writer->plan->entry, name, parameters);
    kg_code_line(writer->code, "{");
    kg_code_indent(writer->code);
    emit_frame(writer);
}

void kg_scan_close(struct kg_scan_writer *writer)
{
    kg_code_close(writer->code);
    kg_text_add(writer->code->text, "\n");
}

static void emit_items(struct kg_scan_writer *writer)
{
    struct kg_code *code = writer->code;
    const struct kg_scan_plan *plan = writer->plan;
    kg_scan_open(writer, "int64_t", "items", "int phase");
    if (plan->chunk > 0) {
        kg_code_line(code, "if (phase < 2 && chunks == 1)");
        kg_code_line(code, "    return 0; // whole rows need no totals beforehand");
        kg_code_line(code, "if (phase == 1)");
        kg_code_line(code, "    return rows;");
        kg_code_line(code, "return phase <= 2 ? items : -1;");
    } else {
        kg_code_line(code, "return phase == 0 ? items : -1;");
    }
    kg_scan_close(writer);
    kg_scan_open(writer, "int64_t", "bytes", "int kind");
    if (plan->chunk > 0) {
        kg_code_line(code, "if (kind == KG_HOST_SHARED)");
        kg_code_line(code, "    return items * 16;");
    }
    kg_code_line(code, "(void)call;");
    if (plan->column)
        kg_code_line(code, "return kind == KG_HOST_GRAIN ? 1 : 0;");
    else
        kg_code_line(code, "return kind == KG_HOST_GRAIN ? 1 + %d / (length + 1) : 0;",
                     GRAIN_ELEMENTS);
    kg_scan_close(writer);
}

void kg_scan_value(struct kg_scan_writer *writer, const char *place)
{
    struct kg_code *code = writer->code;
    kg_code_begin(code);
    kg_text_format(code->text, "%s = ", place);
    kg_values_print(code->text, &writer->values, writer->plan->k, writer->plan->fold.lane);
    kg_text_add(code->text, ";");
    kg_code_end(code);
}

// Takes `value` into the total in t<k>.
static void emit_take(struct kg_scan_writer *writer, const char *value)
{
    const struct kg_fold *fold = &writer->plan->fold;
    int k = writer->plan->k;
    char total[16];
    if (fold->is_float_sum) {
        kg_code_line(writer->code, "kg_two_sum(&t%d, &lost%d, %s);", k, k, value);
        return;
    }
    snprintf(total, sizeof total, "t%d", k);
    kg_code_begin(writer->code);
    kg_text_format(writer->code->text, "%s = ", total);
    kg_fold_combine(writer->code->text, fold, fold->total, total, value);
    kg_text_add(writer->code->text, ";");
    kg_code_end(writer->code);
}

void kg_scan_stages(struct kg_scan_writer *writer, const char *length)
{
    const struct kg_scan_plan *plan = writer->plan;
    for (int i = plan->k; plan->stream && i < plan->group->count; i++)
        if (kg_scan_is_stored(plan, i))
            kg_code_line(writer->code, "_Alignas(64) %s part%d[%s];",
                         kg_emit_tensor_storage(kg_group_nest(plan->group, i)->output), i, length);
}

void kg_scan_streams(struct kg_scan_writer *writer, const char *from, const char *count)
{
    const struct kg_scan_plan *plan = writer->plan;
    for (int i = plan->k; plan->stream && i < plan->group->count; i++) {
        if (!kg_scan_is_stored(plan, i))
            continue;
        kg_code_begin(writer->code);
        kg_text_add(writer->code->text, "kg_stream(");
        kg_scan_target(writer->code->text, writer, i, from);
        kg_text_format(writer->code->text, ", part%d, (size_t)%s * sizeof *part%d);", i, count, i);
        kg_code_end(writer->code);
    }
}

void kg_scan_axis(struct kg_scan_writer *writer, const char *distance)
{
    kg_code_line(writer->code, "const int64_t i%d = %s%s;", writer->plan->axis,
                 writer->plan->backward ? "length - 1 - " : "", distance);
}

static void emit_partials(struct kg_scan_writer *writer)
{
    const struct kg_scan_plan *plan = writer->plan;
    kg_code_line(writer->code, "%s *total = (%s *)call->shared;", total_type(plan),
                 total_type(plan));
    if (plan->fold.is_argument)
        kg_code_line(writer->code, "int64_t *place = (int64_t *)call->shared + items;");
}

// ---- Along the row ----

// The row and the range of an item, and the loop over its blocks.
static void open_row(struct kg_scan_writer *writer)
{
    const struct kg_scan_plan *plan = writer->plan;
    struct kg_code *code = writer->code;
    kg_code_open(code, "for (int64_t item = begin; item < end; item++)");
    if (plan->chunk > 0) {
        kg_code_line(code, "const int64_t row = item / chunks, start = item %% chunks * size;");
        kg_code_line(code, "const int64_t stop = kg_min_i64(start + size, length);");
    } else {
        kg_code_line(code, "const int64_t row = item, start = 0, stop = length;");
    }
    kg_axes_split(code, plan->nest, 0, plan->axis - 1, "row");
    kg_fold_declare_total(code, &plan->fold, plan->k);
}

// `count` values of a block into acc<k>[shift ...].
static void emit_fill(struct kg_scan_writer *writer, int shift, const char *count)
{
    struct kg_code *code = writer->code;
    char place[40];
    snprintf(place, sizeof place, "acc%d[%slane]", writer->plan->k, shift ? "1 + " : "");
    kg_code_line(code, "#pragma omp simd");
    kg_code_open(code, "for (int64_t lane = 0; lane < %s; lane++)", count);
    kg_scan_axis(writer, "(block + lane)");
    kg_scan_value(writer, place);
    kg_code_close(code);
}

// First phase: the total of each chunk.
static void emit_totals(struct kg_scan_writer *writer)
{
    const struct kg_scan_plan *plan = writer->plan;
    struct kg_code *code = writer->code;
    int k = plan->k;
    kg_scan_open(writer, "static void", "totals", "int64_t begin, int64_t end");
    emit_partials(writer);
    open_row(writer);
    kg_code_open(code, "for (int64_t block = start; block < stop; block += BLOCK)");
    kg_code_line(code, "%s acc%d[BLOCK];", lane_type(plan), k);
    if (plan->fold.is_argument)
        kg_code_line(code, "int64_t at%d[BLOCK];", k);
    kg_code_line(code, "const int64_t lanes = kg_min_i64(BLOCK, stop - block);");
    kg_code_open(code, "if (lanes == BLOCK)"); // a loop of a known length
    emit_fill(writer, 0, "BLOCK");
    kg_code_close(code);
    kg_code_open(code, "else");
    if (!plan->fold.is_argument)
        kg_fold_reset_lanes(code, &plan->fold, k, (int)plan->width);
    emit_fill(writer, 0, "lanes");
    kg_code_close(code);
    if (plan->fold.is_argument) {
        kg_code_begin(code);
        kg_text_add(code->text, "kg_scan_");
        print_kind(code->text, &plan->fold);
        kg_text_format(code->text, "(&t%d, &where%d, acc%d, at%d, lanes, block);", k, k, k, k);
        kg_code_end(code);
    } else {
        kg_fold_flush(code, &plan->fold, k, (int)plan->width, "0", "0");
    }
    kg_code_close(code);
    if (plan->fold.is_argument)
        kg_code_line(code, "place[item] = where%d;", k);
    kg_code_line(code,
                 plan->fold.is_float_sum ? "total[item] = kg_two_value(t%d, lost%d);"
                                         : "total[item] = t%d;",
                 k, k);
    kg_code_close(code);
    kg_scan_close(writer);
}

// Second phase: each chunk's total becomes the total of what stands before it.
static void emit_offsets(struct kg_scan_writer *writer)
{
    const struct kg_scan_plan *plan = writer->plan;
    struct kg_code *code = writer->code;
    int k = plan->k;
    kg_scan_open(writer, "static void", "offsets", "int64_t begin, int64_t end");
    emit_partials(writer);
    kg_code_open(code, "for (int64_t row = begin; row < end; row++)");
    kg_fold_declare_total(code, &plan->fold, k);
    kg_code_open(code, "for (int64_t item = row * chunks; item < (row + 1) * chunks; item++)");
    kg_code_line(code, "const %s value = total[item];", total_type(plan));
    if (plan->fold.is_argument) {
        kg_code_line(code, "const int64_t found = place[item];");
        kg_code_line(code, "total[item] = t%d, place[item] = where%d;", k, k);
        kg_code_line(code, "if (where%d < 0 || kg_beats_%s_%s(value, t%d))", k,
                     kg_reduces[plan->fold.search].name, kg_emit_suffix(plan->fold.total), k);
        kg_code_line(code, "    t%d = value, where%d = found;", k, k);
    } else {
        kg_code_line(code,
                     plan->fold.is_float_sum ? "total[item] = kg_two_value(t%d, lost%d);"
                                             : "total[item] = t%d;",
                     k, k);
        emit_take(writer, "value");
    }
    kg_code_close(code);
    kg_code_close(code);
    kg_scan_close(writer);
}

// Extremes begin with the total before the block, which sums get added in a wider type.
static bool begins_with_total(const struct kg_fold *fold)
{
    return fold->reduce == KG_REDUCE_MAX || fold->reduce == KG_REDUCE_MIN;
}

// A block of `count` values: their running totals in acc<k>, and the outputs from them.
static void emit_block(struct kg_scan_writer *writer, const char *count)
{
    const struct kg_scan_plan *plan = writer->plan;
    struct kg_code *code = writer->code;
    struct kg_text running = {0}, from = {0}, here = {0}, elements = {0};
    int k = plan->k;
    const char *at = plan->exclusive ? "lane" : "lane + 1";
    kg_text_format(&from, "from%d", k);
    kg_text_format(&here, "acc%d[%s]", k, at);
    emit_fill(writer, 1, count);
    kg_code_begin(code);
    kg_text_add(code->text, "kg_scan_");
    print_kind(code->text, &plan->fold);
    if (plan->fold.is_argument) {
        kg_text_format(code->text, "(&t%d, &where%d, acc%d + 1, at%d + 1, %s, block);", k, k, k, k,
                       count);
        kg_text_format(&running, "at%d[%s]", k, at);
    } else {
        kg_text_format(code->text, "(acc%d + 1, %s);", k, count);
        if (begins_with_total(&plan->fold))
            kg_text_add(&running, kg_text_string(&here));
        else
            kg_fold_combine(&running, &plan->fold, plan->fold.lane, kg_text_string(&from),
                            kg_text_string(&here));
    }
    kg_code_end(code);
    if (plan->fold.is_float_sum)
        kg_code_line(code, "const %s from%d = (%s)kg_two_value(t%d, lost%d);", lane_type(plan), k,
                     lane_type(plan), k, k);
    else if (!plan->fold.is_argument && !begins_with_total(&plan->fold))
        kg_code_line(code, "const %s from%d = t%d;", lane_type(plan), k, k);
    kg_code_line(code, "#pragma omp simd");
    kg_code_open(code, "for (int64_t lane = 0; lane < %s; lane++)", count);
    kg_scan_axis(writer, "(block + lane)");
    writer->staged = plan->stream ? "lane" : NULL;
    // Of 32 bits inside the block: AVX2 converts no integers of 64.
    const char *real = kg_emit_type(plan->fold.result);
    kg_text_format(&elements, "(%s)block + (%s)(int32_t)(%s)", real, real, at);
    kg_scan_outputs(writer, kg_text_string(&running), kg_text_string(&elements));
    kg_code_close(code);
    kg_scan_streams(writer, "block", count);
    if (begins_with_total(&plan->fold)) {
        kg_code_line(code, "t%d = acc%d[%s];", k, k, count);
    } else if (!plan->fold.is_argument) {
        kg_text_cut(&here, 0);
        kg_text_format(&here, "acc%d[%s]", k, count);
        emit_take(writer, kg_text_string(&here));
    }
    code->text->failed |= running.failed | from.failed | here.failed | elements.failed;
    kg_text_free(&running);
    kg_text_free(&from);
    kg_text_free(&here);
    kg_text_free(&elements);
}

static void emit_rows(struct kg_scan_writer *writer)
{
    const struct kg_scan_plan *plan = writer->plan;
    struct kg_code *code = writer->code;
    int k = plan->k;
    kg_scan_open(writer, "static void", "scan", "int64_t begin, int64_t end");
    if (plan->chunk > 0)
        emit_partials(writer);
    kg_scan_stages(writer, "BLOCK");
    open_row(writer);
    if (plan->chunk > 0) {
        kg_code_line(code, "if (chunks > 1)");
        kg_code_line(code,
                     plan->fold.is_argument ? "    t%d = total[item], where%d = place[item];"
                                            : "    t%d = total[item];",
                     k, k);
    }
    kg_code_open(code, "for (int64_t block = start; block < stop; block += BLOCK)");
    // One more, so that exclusive totals are the same ones, shifted.
    // Vectors of what follows acc[0] lie in one line each.
    const char *type = lane_type(plan);
    kg_code_line(code, "_Alignas(KG_LINE) %s row%d[KG_LINE / sizeof(%s) + BLOCK];", type, k, type);
    kg_code_line(code, "%s *const acc%d = row%d + KG_LINE / sizeof(%s) - 1;", type, k, k, type);
    if (plan->fold.is_argument) {
        kg_code_line(code, "int64_t at%d[1 + BLOCK];", k);
        kg_code_line(code, "at%d[0] = where%d;", k, k);
    } else {
        kg_code_begin(code);
        kg_text_format(code->text, "acc%d[0] = ", k);
        if (begins_with_total(&plan->fold))
            kg_text_format(code->text, "t%d", k);
        else
            kg_fold_neutral(code->text, &plan->fold, plan->fold.lane);
        kg_text_add(code->text, ";");
        kg_code_end(code);
    }
    kg_code_line(code, "const int64_t lanes = kg_min_i64(BLOCK, stop - block);");
    kg_code_open(code, "if (lanes == BLOCK)"); // loops of a known length
    emit_block(writer, "BLOCK");
    kg_code_close(code);
    kg_code_open(code, "else");
    emit_block(writer, "lanes");
    kg_code_close(code);
    kg_code_close(code);
    kg_code_close(code);
    if (plan->stream)
        kg_code_line(code, "kg_stream_end();");
    kg_scan_close(writer);
}

static void emit_run(struct kg_scan_writer *writer)
{
    struct kg_code *code = writer->code;
    const char *entry = writer->plan->entry;
    kg_code_line(code,
                 "void %s_run(const struct kg_host_call *call, int phase, int64_t begin, "
                 "int64_t end)",
                 entry);
    kg_code_line(code, "{");
    kg_code_indent(code);
    if (writer->plan->chunk > 0) {
        kg_code_line(code, "if (phase == 0)");
        kg_code_line(code, "    %s_totals(call, begin, end);", entry);
        kg_code_line(code, "else if (phase == 1)");
        kg_code_line(code, "    %s_offsets(call, begin, end);", entry);
        kg_code_line(code, "else");
        kg_code_line(code, "    %s_scan(call, begin, end);", entry);
    } else {
        kg_code_line(code, "(void)phase;");
        kg_code_line(code, "%s_scan(call, begin, end);", entry);
    }
    kg_code_close(code);
}

void kg_scan_emit(struct kg_code *code, const struct kg_scan_plan *plan)
{
    struct kg_scan_writer writer = {
        .code = code, .plan = plan, .values = {.group = plan->group}, .stage = "part%d"};
    char axis[16];
    snprintf(axis, sizeof axis, "i%d", plan->axis);
    writer.values.axes[plan->bound] = axis;
    for (int i = plan->run; i < plan->last; i++)
        writer.values.axes[i] = "0";
    emit_items(&writer);
    if (plan->column) {
        kg_scan_emit_columns(&writer);
    } else {
        if (plan->chunk > 0) {
            emit_totals(&writer);
            emit_offsets(&writer);
        }
        emit_rows(&writer);
    }
    emit_run(&writer);
}
