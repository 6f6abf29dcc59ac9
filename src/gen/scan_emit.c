// The code of running totals: see scan.c for the strategy.

#include "gen/scan.h"

#include <stdio.h>

// Along columns, float totals are folded into wider ones after so many rows.
enum { FLUSH_STEPS = 16 };
// Elements that are worth handing to another thread.
enum { GRAIN_ELEMENTS = 16384 };

// What every emitting function needs.
struct writer {
    struct kg_code *code;
    const struct kg_scan_plan *plan;
    struct kg_values values;
    char names[KG_MAX_NESTS][16];
};

static const struct kg_nest *nest_at(const struct kg_scan_plan *plan, int position)
{
    return plan->group->problem->nests[plan->group->first + position];
}

static bool is_stored(const struct kg_scan_plan *plan, int position)
{
    return position >= plan->k &&
           !kg_group_is_private(plan->group, nest_at(plan, position)->output);
}

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

static void define(struct writer *writer, const char *name, int first, int last)
{
    kg_code_begin(writer->code);
    kg_text_format(writer->code->text, "const int64_t %s = ", name);
    kg_axes_product(writer->code->text, writer->plan->nest, first, last);
    kg_text_add(writer->code->text, ";");
    kg_code_end(writer->code);
}

static void emit_frame(struct writer *writer)
{
    const struct kg_scan_plan *plan = writer->plan;
    struct kg_code *code = writer->code;
    kg_emit_host_bindings(code->text, plan->group, false);
    define(writer, "length", plan->axis, plan->axis);
    if (plan->column) {
        kg_code_line(code, "enum { TILE = %lld, STEPS = %d };", (long long)plan->width,
                     FLUSH_STEPS);
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

static void open_function(struct writer *writer, const char *kind, const char *name,
                          const char *parameters)
{
    kg_code_line(writer->code, "%s %s_%s(const struct kg_host_call *call, %s)", kind,
                 writer->plan->entry, name, parameters);
    kg_code_line(writer->code, "{");
    kg_code_indent(writer->code);
    emit_frame(writer);
}

static void close_function(struct writer *writer)
{
    kg_code_close(writer->code);
    kg_text_add(writer->code->text, "\n");
}

static void emit_items(struct writer *writer)
{
    struct kg_code *code = writer->code;
    const struct kg_scan_plan *plan = writer->plan;
    open_function(writer, "int64_t", "items", "int phase");
    if (plan->chunk > 0) {
        kg_code_line(code, "if (phase < 2 && chunks == 1)");
        kg_code_line(code, "    return 0; // whole rows need no totals beforehand");
        kg_code_line(code, "if (phase == 1)");
        kg_code_line(code, "    return rows;");
        kg_code_line(code, "return phase <= 2 ? items : -1;");
    } else {
        kg_code_line(code, "return phase == 0 ? items : -1;");
    }
    close_function(writer);
    open_function(writer, "int64_t", "bytes", "int kind");
    if (plan->chunk > 0) {
        kg_code_line(code, "if (kind == KG_HOST_SHARED)");
        kg_code_line(code, "    return items * 16;");
    }
    if (plan->column)
        kg_code_line(code, "return kind == KG_HOST_GRAIN ? 1 : 0;");
    else
        kg_code_line(code, "return kind == KG_HOST_GRAIN ? 1 + %d / (length + 1) : 0;",
                     GRAIN_ELEMENTS);
    close_function(writer);
}

// The value of the element at hand, into `place`.
static void emit_value(struct writer *writer, const char *place)
{
    struct kg_code *code = writer->code;
    kg_code_begin(code);
    kg_text_format(code->text, "%s = ", place);
    kg_values_print(code->text, &writer->values, writer->plan->k, writer->plan->fold.lane);
    kg_text_add(code->text, ";");
    kg_code_end(code);
}

// Takes `value` into the total in t<k>.
static void emit_take(struct writer *writer, const char *value)
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

// From the running total `total` (in the type of lanes, or the place found) over `count` elements
// to the outputs at the axes at hand; in a loop over `lane`.
static void emit_outputs(struct writer *writer, const char *total, const char *count)
{
    const struct kg_scan_plan *plan = writer->plan;
    struct kg_code *code = writer->code;
    for (int i = plan->k; i < plan->group->count; i++) {
        const struct kg_nest *nest = nest_at(plan, i);
        enum kg_type type = i == plan->k ? plan->fold.result : nest->body->type;
        snprintf(writer->names[i], sizeof writer->names[i], "v%d", i);
        kg_code_begin(code);
        kg_text_format(code->text, "const %s v%d = ", kg_emit_type(type), i);
        if (i > plan->k)
            kg_values_print(code->text, &writer->values, i, type);
        else if (plan->fold.reduce == KG_REDUCE_MEAN)
            kg_text_format(code->text, "(%s) / (%s)(%s)", total, kg_emit_type(type), count);
        else if (type == KG_TYPE_BOOL)
            kg_text_format(code->text, "(%s) != 0", total);
        else if (type == KG_TYPE_F32 && plan->fold.lane == KG_TYPE_F64)
            kg_text_format(code->text, "(float)(%s)", total);
        else
            kg_text_add(code->text, total);
        kg_text_add(code->text, ";");
        kg_code_end(code);
        writer->values.locals[i] = writer->names[i];
        if (!is_stored(plan, i))
            continue;
        kg_code_begin(code);
        if (plan->stream) {
            char base[16];
            snprintf(base, sizeof base, "part%d", i);
            kg_emit_store_at(code->text, nest->output, base, "lane", type, writer->names[i]);
        } else {
            kg_values_store(code->text, &writer->values, i, type, writer->names[i]);
        }
        kg_code_end(code);
    }
    for (int i = plan->k; i < plan->group->count; i++)
        writer->values.locals[i] = NULL;
}

static void emit_stages(struct writer *writer, const char *length)
{
    const struct kg_scan_plan *plan = writer->plan;
    for (int i = plan->k; plan->stream && i < plan->group->count; i++)
        if (is_stored(plan, i))
            kg_code_line(writer->code, "_Alignas(64) %s part%d[%s];",
                         kg_emit_tensor_storage(nest_at(plan, i)->output), i, length);
}

// Sends the blocks on; `from` is the value of the axis that vectors follow at their start.
static void emit_streams(struct writer *writer, const char *from)
{
    const struct kg_scan_plan *plan = writer->plan;
    struct kg_values values = writer->values;
    values.axes[plan->last] = from;
    for (int i = plan->k; plan->stream && i < plan->group->count; i++) {
        if (!is_stored(plan, i))
            continue;
        const struct kg_tensor *output = nest_at(plan, i)->output;
        kg_code_begin(writer->code);
        kg_text_add(writer->code->text, "kg_stream(");
        kg_emit_name(writer->code->text, output->name);
        kg_text_add(writer->code->text, " + ");
        kg_values_offset(writer->code->text, &values, i);
        kg_text_format(writer->code->text, ", part%d, (size_t)lanes * sizeof *part%d);", i, i);
        kg_code_end(writer->code);
    }
}

// The scan's axis at distance `distance` from where it starts.
static void emit_axis(struct writer *writer, const char *distance)
{
    kg_code_line(writer->code, "const int64_t i%d = %s%s;", writer->plan->axis,
                 writer->plan->backward ? "length - 1 - " : "", distance);
}

static void emit_partials(struct writer *writer)
{
    const struct kg_scan_plan *plan = writer->plan;
    kg_code_line(writer->code, "%s *total = (%s *)call->shared;", total_type(plan),
                 total_type(plan));
    if (plan->fold.is_argument)
        kg_code_line(writer->code, "int64_t *place = (int64_t *)call->shared + items;");
}

// ---- Along the row ----

// The row and the range of an item, and the loop over its blocks.
static void open_row(struct writer *writer)
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

// Values of a block into acc<k>[shift ...].
static void emit_fill(struct writer *writer, int shift)
{
    struct kg_code *code = writer->code;
    char place[40];
    snprintf(place, sizeof place, "acc%d[%slane]", writer->plan->k, shift ? "1 + " : "");
    kg_code_line(code, "const int64_t lanes = kg_min_i64(BLOCK, stop - block);");
    kg_code_line(code, "#pragma omp simd");
    kg_code_open(code, "for (int64_t lane = 0; lane < lanes; lane++)");
    emit_axis(writer, "(block + lane)");
    emit_value(writer, place);
    kg_code_close(code);
}

// First phase: the total of each chunk.
static void emit_totals(struct writer *writer)
{
    const struct kg_scan_plan *plan = writer->plan;
    struct kg_code *code = writer->code;
    int k = plan->k;
    open_function(writer, "static void", "totals", "int64_t begin, int64_t end");
    emit_partials(writer);
    open_row(writer);
    kg_code_open(code, "for (int64_t block = start; block < stop; block += BLOCK)");
    kg_code_line(code, "%s acc%d[BLOCK];", lane_type(plan), k);
    if (plan->fold.is_argument)
        kg_code_line(code, "int64_t at%d[BLOCK];", k);
    else
        kg_fold_reset_lanes(code, &plan->fold, k, (int)plan->width);
    emit_fill(writer, 0);
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
    close_function(writer);
}

// Second phase: each chunk's total becomes the total of what stands before it.
static void emit_offsets(struct writer *writer)
{
    const struct kg_scan_plan *plan = writer->plan;
    struct kg_code *code = writer->code;
    int k = plan->k;
    open_function(writer, "static void", "offsets", "int64_t begin, int64_t end");
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
    close_function(writer);
}

// Running totals of the block in acc<k> and the outputs from them.
static void emit_block(struct writer *writer)
{
    const struct kg_scan_plan *plan = writer->plan;
    struct kg_code *code = writer->code;
    struct kg_text running = {0}, from = {0}, here = {0};
    int k = plan->k;
    const char *at = plan->exclusive ? "lane" : "lane + 1";
    kg_text_format(&from, "from%d", k);
    kg_text_format(&here, "acc%d[%s]", k, at);
    kg_code_begin(code);
    kg_text_add(code->text, "kg_scan_");
    print_kind(code->text, &plan->fold);
    if (plan->fold.is_argument) {
        kg_text_format(code->text, "(&t%d, &where%d, acc%d + 1, at%d + 1, lanes, block);", k, k, k,
                       k);
        kg_text_format(&running, "at%d[%s]", k, at);
    } else {
        kg_text_format(code->text, "(acc%d + 1, lanes);", k);
        kg_fold_combine(&running, &plan->fold, plan->fold.lane, kg_text_string(&from),
                        kg_text_string(&here));
    }
    kg_code_end(code);
    if (plan->fold.is_float_sum)
        kg_code_line(code, "const %s from%d = (%s)kg_two_value(t%d, lost%d);", lane_type(plan), k,
                     lane_type(plan), k, k);
    else if (!plan->fold.is_argument)
        kg_code_line(code, "const %s from%d = t%d;", lane_type(plan), k, k);
    kg_code_line(code, "#pragma omp simd");
    kg_code_open(code, "for (int64_t lane = 0; lane < lanes; lane++)");
    emit_axis(writer, "(block + lane)");
    emit_outputs(writer, kg_text_string(&running),
                 plan->exclusive ? "block + lane" : "block + lane + 1");
    kg_code_close(code);
    emit_streams(writer, "block");
    if (!plan->fold.is_argument) {
        kg_text_cut(&here, 0);
        kg_text_format(&here, "acc%d[lanes]", k);
        emit_take(writer, kg_text_string(&here));
    }
    code->text->failed |= running.failed | from.failed | here.failed;
    kg_text_free(&running);
    kg_text_free(&from);
    kg_text_free(&here);
}

static void emit_rows(struct writer *writer)
{
    const struct kg_scan_plan *plan = writer->plan;
    struct kg_code *code = writer->code;
    int k = plan->k;
    open_function(writer, "static void", "scan", "int64_t begin, int64_t end");
    if (plan->chunk > 0)
        emit_partials(writer);
    emit_stages(writer, "BLOCK");
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
    kg_code_line(code, "%s acc%d[1 + BLOCK];", lane_type(plan), k);
    if (plan->fold.is_argument) {
        kg_code_line(code, "int64_t at%d[1 + BLOCK];", k);
        kg_code_line(code, "at%d[0] = where%d;", k, k);
    } else {
        kg_code_begin(code);
        kg_text_format(code->text, "acc%d[0] = ", k);
        kg_fold_neutral(code->text, &plan->fold, plan->fold.lane);
        kg_text_add(code->text, ";");
        kg_code_end(code);
    }
    emit_fill(writer, 1);
    emit_block(writer);
    kg_code_close(code);
    kg_code_close(code);
    if (plan->stream)
        kg_code_line(code, "kg_stream_end();");
    close_function(writer);
}

// ---- Along columns ----

static void emit_tile(struct writer *writer)
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

static void emit_column_take(struct writer *writer)
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

static void emit_column_lanes(struct writer *writer)
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
    kg_code_open(code, "for (int64_t lane = 0; lane < lanes; lane++)");
    kg_code_line(code, "const int64_t i%d = first + lane;", plan->last);
    emit_value(writer, value);
    if (!plan->exclusive)
        emit_column_take(writer);
    emit_outputs(writer, total, plan->exclusive ? "row" : "row + 1");
    if (plan->exclusive)
        emit_column_take(writer);
    kg_code_close(code);
}

static void emit_columns(struct writer *writer)
{
    const struct kg_scan_plan *plan = writer->plan;
    struct kg_code *code = writer->code;
    int k = plan->k;
    open_function(writer, "static void", "scan", "int64_t begin, int64_t end");
    emit_stages(writer, "TILE");
    kg_code_open(code, "for (int64_t item = begin; item < end; item++)");
    emit_tile(writer);
    kg_code_open(code, "for (int64_t row = 0; row < length; row++)");
    emit_axis(writer, "row");
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
    emit_column_lanes(writer);
    emit_streams(writer, "first");
    kg_code_close(code);
    kg_code_close(code);
    if (plan->stream)
        kg_code_line(code, "kg_stream_end();");
    close_function(writer);
}

static void emit_run(struct writer *writer)
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
    struct writer writer = {.code = code, .plan = plan, .values = {.group = plan->group}};
    char axis[16];
    snprintf(axis, sizeof axis, "i%d", plan->axis);
    writer.values.axes[plan->bound] = axis;
    for (int i = plan->run; i < plan->last; i++)
        writer.values.axes[i] = "0";
    emit_items(&writer);
    if (plan->column) {
        emit_columns(&writer);
    } else {
        if (plan->chunk > 0) {
            emit_totals(&writer);
            emit_offsets(&writer);
        }
        emit_rows(&writer);
    }
    emit_run(&writer);
}
