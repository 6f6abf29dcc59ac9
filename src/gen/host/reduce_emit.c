// The code of reductions: see reduce.c for the strategy.

#include "gen/host/halves.h"
#include "gen/host/reduce.h"

#include <stdio.h>
#include <string.h>

// Float lanes are folded into the total after so many steps: chains of roundings stay short.
enum { FLUSH_STEPS = 16 };
// Outputs that one item of the second phase combines.
enum { COMBINE = 256 };
// Elements that are worth handing to another thread.
enum { GRAIN_ELEMENTS = 16384 };
// Of a row that are read at once.
enum { MOST_STREAMS = 16 };

static void define(struct kg_code *code, const char *name, const struct kg_reduce_plan *plan,
                   int first, int last)
{
    kg_code_begin(code);
    kg_text_format(code->text, "const int64_t %s = ", name);
    kg_axes_product(code->text, plan->nest, first, last);
    kg_text_add(code->text, ";");
    kg_code_end(code);
}

// The numbers all three exported functions start from.
static void emit_frame(struct kg_code *code, const struct kg_reduce_plan *plan)
{
    int axes = plan->nest->axis_count;
    if (plan->column)
        kg_code_line(code, "enum { TILE = %lld, UNROLL = %lld };", (long long)plan->width,
                     (long long)plan->unroll);
    else
        kg_code_line(code, "enum { LANES = %lld, UNROLL = %lld, STEPS = %d };",
                     (long long)plan->width, (long long)plan->unroll, FLUSH_STEPS);
    kg_code_line(code, "enum { CHUNK = %lld, COMBINE = %d };", (long long)plan->chunk, COMBINE);
    kg_emit_host_bindings(code->text, plan->group, false);
    define(code, "outputs", plan, 0, plan->outputs - 1);
    if (plan->column) {
        define(code, "width", plan, plan->run, plan->last);
        define(code, "rows", plan, plan->outputs, plan->outputs);
        define(code, "inner", plan, plan->outputs + 1, axes - 1);
        kg_code_line(code, "const int64_t tiles = (width + TILE - 1) / TILE;");
        kg_code_line(code, "const int64_t wanted = CHUNK / TILE / (inner > 0 ? inner : 1);");
        kg_code_line(code, "const int64_t part = wanted > UNROLL ? wanted : UNROLL;");
        kg_code_line(code, "const int64_t chunks = rows > part ? (rows + part - 1) / part : 1;");
        define(code, "lead", plan, 0, plan->run - 1);
        kg_code_line(code, "const int64_t items = lead * tiles * chunks;");
        return;
    }
    define(code, "length", plan, plan->run, plan->last);
    define(code, "runs", plan, plan->outputs, plan->run - 1);
    kg_code_line(code, "// A run longer than a chunk is cut into pieces, shorter ones are taken "
                       "together.");
    kg_code_line(code, "const int64_t pieces = length > CHUNK ? (length + CHUNK - 1) / CHUNK : 1;");
    kg_code_line(code, "const int64_t part = length > 0 && length < CHUNK ? CHUNK / length : 1;");
    kg_code_line(code, "const int64_t chunks = runs > 0 ? (runs * pieces + part - 1) / part : 1;");
    kg_code_line(code, "const int64_t items = outputs * chunks;");
}

static void emit_items(struct kg_code *code, const struct kg_reduce_plan *plan)
{
    kg_code_line(code, "int64_t %s_items(const struct kg_host_call *call, int phase)", plan->entry);
    kg_code_line(code, "{");
    kg_code_indent(code);
    emit_frame(code, plan);
    kg_code_line(code, "if (phase == 0)");
    kg_code_line(code, "    return items;");
    kg_code_line(code, "return phase == 1 && chunks > 1 ? (outputs + COMBINE - 1) / COMBINE : -1;");
    kg_code_close(code);
    kg_text_add(code->text, "\n");
    kg_code_line(code, "int64_t %s_bytes(const struct kg_host_call *call, int kind)", plan->entry);
    kg_code_line(code, "{");
    kg_code_indent(code);
    emit_frame(code, plan);
    kg_code_line(code, "if (kind == KG_HOST_SHARED)");
    kg_code_line(code, "    return chunks > 1 ? chunks * outputs * 16 : 0;");
    if (plan->column)
        kg_code_line(code, "return kind == KG_HOST_GRAIN ? 1 : 0;");
    else
        kg_code_line(code, "return kind == KG_HOST_GRAIN ? 1 + %d / (part * length + 1) : 0;",
                     GRAIN_ELEMENTS);
    kg_code_close(code);
    kg_text_add(code->text, "\n");
}

static void open_function(struct kg_code *code, const struct kg_reduce_plan *plan, const char *name)
{
    kg_code_line(code,
                 "static void %s_%s(const struct kg_host_call *call, int64_t begin, "
                 "int64_t end)",
                 plan->entry, name);
    kg_code_line(code, "{");
    kg_code_indent(code);
    emit_frame(code, plan);
    kg_code_line(code, "%s *part%d = (%s *)call->shared;", kg_fold_type(plan->fold.total), plan->k,
                 kg_fold_type(plan->fold.total));
    if (plan->fold.is_argument)
        kg_code_line(code, "int64_t *place%d = (int64_t *)call->shared + chunks * outputs;",
                     plan->k);
}

// From the total in t<k> to the outputs. Output axes are i0, i1, ..., or as `values` says.
static void emit_finish(struct kg_code *code, const struct kg_reduce_plan *plan,
                        struct kg_values *values)
{
    char names[KG_MAX_NESTS][16];
    struct kg_text count = {0};
    kg_axes_product(&count, plan->nest, plan->outputs, plan->nest->axis_count - 1);
    for (int i = plan->k; i < plan->group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(plan->group, i);
        enum kg_type type = i == plan->k ? plan->fold.result : nest->body->type;
        snprintf(names[i], sizeof names[i], "v%d", i);
        kg_code_begin(code);
        kg_text_format(code->text, "const %s v%d = ", kg_emit_type(type), i);
        if (i == plan->k)
            kg_fold_result(code->text, &plan->fold, i, kg_text_string(&count));
        else
            kg_values_print(code->text, values, i, type);
        kg_text_add(code->text, ";");
        kg_code_end(code);
        values->locals[i] = names[i];
        if (kg_group_is_private(plan->group, nest->output))
            continue;
        kg_code_begin(code);
        kg_values_store(code->text, values, i, type, names[i]);
        kg_code_end(code);
    }
    for (int i = plan->k; i < plan->group->count; i++)
        values->locals[i] = NULL;
    code->text->failed |= count.failed;
    kg_text_free(&count);
}

// The place found is counted from the beginning of the range; that of a single index is its value.
static void emit_shift(struct kg_code *code, const struct kg_reduce_plan *plan)
{
    const struct kg_index *axis = plan->nest->axes[plan->outputs];
    if (!plan->fold.is_argument || kg_reduce_has_several(plan) || kg_axes_from_zero(axis))
        return;
    kg_code_begin(code);
    kg_text_format(code->text, "where%d += where%d < 0 ? 0 : ", plan->k, plan->k);
    kg_emit_axis_begin(code->text, axis);
    kg_text_add(code->text, ";");
    kg_code_end(code);
}

static void emit_combine_step(struct kg_code *code, const struct kg_reduce_plan *plan)
{
    int k = plan->k;
    char into[32], from[64];
    snprintf(into, sizeof into, "acc%d[lane]", k);
    snprintf(from, sizeof from, "part%d[chunk * outputs + first + lane]", k);
    if (plan->fold.is_float_sum) {
        kg_code_line(code, "kg_two_sum(&acc%d[lane], &more%d[lane], %s);", k, k, from);
        return;
    }
    if (plan->fold.is_argument) {
        kg_code_line(code, "const bool take = more%d[lane] < 0 || kg_beats_%s_%s(%s, %s);", k,
                     kg_reduces[plan->fold.search].name, kg_emit_suffix(plan->fold.total), from,
                     into);
        kg_code_line(code, "%s = take ? %s : %s;", into, from, into);
        kg_code_line(code,
                     "more%d[lane] = take ? place%d[chunk * outputs + first + lane] : "
                     "more%d[lane];",
                     k, k, k);
        return;
    }
    kg_code_begin(code);
    kg_text_format(code->text, "%s = ", into);
    kg_fold_combine(code->text, &plan->fold, plan->fold.total, into, from);
    kg_text_add(code->text, ";");
    kg_code_end(code);
}

// "const double t0 = acc0[lane]", and what goes with it.
static void emit_lane_total(struct kg_code *code, const struct kg_reduce_plan *plan,
                            const char *lost, const char *where)
{
    int k = plan->k;
    kg_code_line(code, "const %s t%d = acc%d[lane];", kg_fold_type(plan->fold.total), k, k);
    if (plan->fold.is_float_sum)
        kg_code_line(code, "const double lost%d = %s;", k, lost);
    if (plan->fold.is_argument)
        kg_code_line(code, "int64_t where%d = %s;", k, where);
    emit_shift(code, plan);
}

// Second phase: totals of all chunks, in order.
static void emit_combine(struct kg_code *code, const struct kg_reduce_plan *plan)
{
    int k = plan->k;
    struct kg_text neutral = {0};
    struct kg_values values = {.group = plan->group};
    char more[32];
    snprintf(more, sizeof more, "more%d[lane]", k);
    kg_fold_neutral(&neutral, &plan->fold, plan->fold.total);
    open_function(code, plan, "combine");
    kg_code_open(code, "for (int64_t item = begin; item < end; item++)");
    kg_code_line(code, "const int64_t first = item * COMBINE, rest = outputs - first;");
    kg_code_line(code, "const int64_t lanes = rest < COMBINE ? rest : COMBINE;");
    kg_code_line(code, "%s acc%d[COMBINE];", kg_fold_type(plan->fold.total), k);
    if (plan->fold.is_float_sum)
        kg_code_line(code, "double more%d[COMBINE];", k);
    if (plan->fold.is_argument)
        kg_code_line(code, "int64_t more%d[COMBINE];", k);
    kg_code_open(code, "for (int64_t lane = 0; lane < lanes; lane++)");
    kg_code_line(code, "acc%d[lane] = %s;", k, kg_text_string(&neutral));
    if (plan->fold.is_float_sum || plan->fold.is_argument)
        kg_code_line(code, "more%d[lane] = %s;", k, plan->fold.is_argument ? "-1" : "0.0");
    kg_code_close(code);
    kg_code_line(code, "for (int64_t chunk = 0; chunk < chunks; chunk++)");
    kg_code_indent(code);
    kg_code_open(code, "for (int64_t lane = 0; lane < lanes; lane++)");
    emit_combine_step(code, plan);
    kg_code_close(code);
    kg_code_outdent(code);
    kg_code_open(code, "for (int64_t lane = 0; lane < lanes; lane++)");
    kg_axes_split(code, plan->nest, 0, plan->outputs - 1, "(first + lane)");
    emit_lane_total(code, plan, more, more);
    emit_finish(code, plan, &values);
    kg_code_close(code);
    kg_code_close(code);
    kg_code_close(code);
    kg_text_add(code->text, "\n");
    code->text->failed |= neutral.failed;
    kg_text_free(&neutral);
}

// "const int64_t i2 = base + lane;" for the last axis of the run; the others of it are 0.
static void emit_run_axis(struct kg_code *code, const struct kg_reduce_plan *plan,
                          struct kg_values *values, const char *from)
{
    for (int axis = plan->run; axis < plan->last; axis++)
        values->axes[axis] = "0";
    kg_code_begin(code);
    kg_text_format(code->text, "const int64_t i%d = ", plan->last);
    if (!kg_axes_from_zero(plan->nest->axes[plan->last])) {
        kg_emit_axis_begin(code->text, plan->nest->axes[plan->last]);
        kg_text_add(code->text, " + ");
    }
    kg_text_format(code->text, "%s + lane;", from);
    kg_code_end(code);
}

// ---- Along the row ----

// The values v0, v1, ..., joined pairwise, into the accumulator of the lane, which has type `type`.
static void emit_join(struct kg_code *code, const struct kg_reduce_plan *plan, enum kg_type type,
                      int unroll)
{
    struct kg_text terms[MOST_STREAMS] = {{0}}, joined = {0};
    char into[32];
    int count = unroll;
    for (int u = 0; u < unroll; u++)
        kg_text_format(&terms[u], "v%d", u);
    for (; count > 1; count /= 2)
        for (int u = 0; u < count / 2; u++) {
            kg_text_cut(&joined, 0);
            kg_text_add(&joined, "(");
            kg_fold_combine(&joined, &plan->fold, plan->fold.lane, kg_text_string(&terms[2 * u]),
                            kg_text_string(&terms[2 * u + 1]));
            kg_text_add(&joined, ")");
            kg_text_cut(&terms[u], 0);
            kg_text_add(&terms[u], kg_text_string(&joined));
        }
    snprintf(into, sizeof into, "acc%d[lane]", plan->k);
    kg_code_begin(code);
    kg_text_format(code->text, "%s = ", into);
    kg_fold_combine(code->text, &plan->fold, type, into, kg_text_string(&terms[0]));
    kg_text_add(code->text, ";");
    kg_code_end(code);
    for (int u = 0; u < unroll; u++) {
        code->text->failed |= terms[u].failed;
        kg_text_free(&terms[u]);
    }
    code->text->failed |= joined.failed;
    kg_text_free(&joined);
}

// Converts the f16 of a whole step, for each of the streams.
static void emit_halves(struct kg_code *code, const struct kg_reduce_plan *plan,
                        const struct kg_values *values, struct kg_halves *halves, int streams)
{
    for (int u = 0; u < streams; u++) {
        char first[48];
        snprintf(first, sizeof first, u > 0 ? "(block + %d * stride)" : "block", u);
        halves[u] = (struct kg_halves){.group = plan->group, .axis = plan->last, .stream = u};
        kg_halves_fill(code, &halves[u], values, plan->k, first, "LANES");
    }
}

// The elements block + lane of `streams` equal parts of the stretch at once: LANES of them, or
// fewer.
static void emit_row_step(struct kg_code *code, const struct kg_reduce_plan *plan,
                          const char *lanes, int streams)
{
    struct kg_values values = {.group = plan->group};
    struct kg_halves halves[MOST_STREAMS];
    char axis[48];
    for (int run = plan->run; run < plan->last; run++)
        values.axes[run] = "0";
    bool converts = strcmp(lanes, "LANES") == 0 &&
                    kg_axes_from_zero(plan->nest->axes[plan->last]) &&
                    kg_halves_are_read(&values, plan->k, plan->last);
    if (converts)
        emit_halves(code, plan, &values, halves, streams);
    kg_code_line(code, "#pragma omp simd");
    kg_code_open(code, "for (int64_t lane = 0; lane < %s; lane++)", lanes);
    emit_run_axis(code, plan, &values, "block");
    values.axes[plan->last] = axis;
    values.read = converts ? kg_halves_read : NULL;
    for (int u = 0; u < streams; u++) {
        snprintf(axis, sizeof axis, u > 0 ? "(i%d + %d * stride)" : "i%d", plan->last, u);
        values.user = &halves[u];
        kg_code_begin(code);
        kg_text_format(code->text, "const %s v%d = ", kg_fold_type(plan->fold.lane),
                       streams > 1 ? u : plan->k);
        kg_values_print(code->text, &values, plan->k, plan->fold.lane);
        kg_text_add(code->text, ";");
        kg_code_end(code);
    }
    if (streams > 1)
        emit_join(code, plan, plan->fold.lane, streams);
    else
        kg_fold_step(code, &plan->fold, plan->k);
    kg_code_close(code);
}

// From `from` to `to` along the run.
static void emit_stretch(struct kg_code *code, const struct kg_reduce_plan *plan, const char *from,
                         const char *to, int streams)
{
    const struct kg_fold *fold = &plan->fold;
    kg_code_open(code, "for (int64_t block = %s; block < %s;)", from, to);
    if (fold->is_float_sum) {
        kg_code_line(code, "const int64_t limit = kg_min_i64(block + LANES * STEPS, %s);", to);
        kg_code_line(code, "steps += (limit - block + LANES - 1) / LANES;");
    } else {
        kg_code_line(code, "const int64_t limit = %s;", to);
    }
    kg_code_open(code, "for (; block + LANES <= limit; block += LANES)");
    kg_code_line(code, "KG_STEP();");
    emit_row_step(code, plan, "LANES", streams);
    if (fold->is_argument)
        kg_code_line(code, "step++;");
    kg_code_close(code);
    if (streams == 1) { // several streams are whole steps
        kg_code_open(code, "if (block < limit)");
        emit_row_step(code, plan, "limit - block", 1);
        kg_code_line(code, "block = limit;");
        kg_code_close(code);
    }
    if (fold->is_float_sum) {
        kg_code_open(code, "if (steps >= STEPS)");
        kg_fold_flush(code, fold, plan->k, (int)plan->width, "0", "0");
        kg_fold_reset_lanes(code, fold, plan->k, (int)plan->width);
        kg_code_line(code, "steps = 0;");
        kg_code_close(code);
    }
    kg_code_close(code);
}

// From `start` to `stop` along the run. Several streams keep more reads of memory under way than
// one, which the hardware does not fetch ahead across pages.
static void emit_row_loop(struct kg_code *code, const struct kg_reduce_plan *plan)
{
    if (plan->fold.is_argument)
        kg_code_line(code, "int64_t step = 0;");
    if (plan->unroll == 1) {
        emit_stretch(code, plan, "start", "stop", 1);
        return;
    }
    kg_code_line(code, "const int64_t stride = (stop - start) / (UNROLL * LANES) * LANES;");
    emit_stretch(code, plan, "start", "start + stride", (int)plan->unroll);
    emit_stretch(code, plan, "start + UNROLL * stride", "stop", 1);
}

static void emit_partial(struct kg_code *code, const struct kg_reduce_plan *plan)
{
    int k = plan->k;
    if (plan->fold.is_float_sum)
        kg_code_line(code, "part%d[chunk * outputs + output] = kg_two_value(t%d, lost%d);", k, k,
                     k);
    else
        kg_code_line(code, "part%d[chunk * outputs + output] = t%d;", k, k);
    if (plan->fold.is_argument)
        kg_code_line(code, "place%d[chunk * outputs + output] = where%d;", k, k);
    kg_code_line(code, "continue;");
}

static void emit_rows(struct kg_code *code, const struct kg_reduce_plan *plan)
{
    struct kg_values values = {.group = plan->group};
    int lanes = (int)plan->width;
    open_function(code, plan, "reduce");
    kg_code_open(code, "for (int64_t item = begin; item < end; item++)");
    kg_code_line(code, "const int64_t output = item / chunks, chunk = item %% chunks;");
    kg_axes_split(code, plan->nest, 0, plan->outputs - 1, "output");
    kg_fold_declare_total(code, &plan->fold, plan->k);
    kg_fold_declare_lanes(code, &plan->fold, plan->k, lanes);
    kg_fold_reset_lanes(code, &plan->fold, plan->k, lanes);
    if (plan->fold.is_float_sum)
        kg_code_line(code, "int64_t steps = 0;");
    kg_code_line(code, "const int64_t after = (chunk + 1) * part;");
    kg_code_line(code, "const int64_t final = after < runs * pieces ? after : runs * pieces;");
    kg_code_open(code, "for (int64_t piece = chunk * part; piece < final; piece++)");
    kg_code_line(code, "const int64_t start = piece %% pieces * CHUNK, rest = length - start;");
    kg_code_line(code, "const int64_t stop = start + (rest < CHUNK ? rest : CHUNK);");
    if (plan->run > plan->outputs) {
        kg_code_line(code, "const int64_t row = piece / pieces;");
        kg_axes_split(code, plan->nest, plan->outputs, plan->run - 1, "row");
    }
    emit_row_loop(code, plan);
    if (plan->fold.is_argument)
        kg_fold_flush(code, &plan->fold, plan->k, lanes, "stop - start",
                      plan->run > plan->outputs ? "row * length + start" : "start");
    kg_code_close(code);
    if (!plan->fold.is_argument)
        kg_fold_flush(code, &plan->fold, plan->k, lanes, "length", "0");
    kg_code_open(code, "if (chunks > 1)");
    emit_partial(code, plan);
    kg_code_close(code);
    emit_shift(code, plan);
    emit_finish(code, plan, &values);
    kg_code_close(code);
    kg_code_close(code);
    kg_text_add(code->text, "\n");
}

// ---- Along the column ----

// One step over the tile: `unroll` rows, neighbours for places, else a share of all rows apart.
static void emit_column_step(struct kg_code *code, const struct kg_reduce_plan *plan, int unroll)
{
    struct kg_values values = {.group = plan->group};
    int inner = plan->nest->axis_count - 1;
    char axis[64];
    kg_code_line(code, "#pragma omp simd");
    kg_code_open(code, "for (int64_t lane = 0; lane < lanes; lane++)");
    emit_run_axis(code, plan, &values, "first");
    values.axes[inner] = axis;
    for (int u = 0; u < unroll; u++) {
        const char *far = plan->fold.is_argument ? "(i%d + %d)" : "(i%d + %d * share)";
        snprintf(axis, sizeof axis, u > 0 ? far : "i%d", inner, u);
        int number = plan->fold.is_argument ? plan->k : u;
        if (plan->fold.is_argument) {
            kg_code_line(code, "{");
            kg_code_indent(code);
            kg_code_line(code, "const int64_t step = before + i%d - origin + %d;", inner, u);
        }
        kg_code_begin(code);
        kg_text_format(code->text, "const %s v%d = ", kg_fold_type(plan->fold.lane), number);
        kg_values_print(code->text, &values, plan->k, plan->fold.lane);
        kg_text_add(code->text, ";");
        kg_code_end(code);
        if (plan->fold.is_argument) {
            kg_fold_step(code, &plan->fold, plan->k);
            kg_code_close(code);
        }
    }
    if (!plan->fold.is_argument)
        emit_join(code, plan, plan->fold.total, unroll);
    kg_code_close(code);
}

// The values between which a reduced axis runs inside an item.
static void print_bounds(struct kg_text *low, struct kg_text *high,
                         const struct kg_reduce_plan *plan, int axis)
{
    const struct kg_index *index = plan->nest->axes[axis];
    bool shifted = !kg_axes_from_zero(index);
    if (axis > plan->outputs) {
        kg_emit_axis_begin(low, index);
        kg_emit_axis_end(high, index);
        return;
    }
    if (shifted) {
        kg_emit_axis_begin(low, index);
        kg_emit_axis_begin(high, index);
    }
    kg_text_add(low, shifted ? " + start" : "start");
    kg_text_add(high, shifted ? " + stop" : "stop");
}

// Loops over the reduced axes, the last of them unrolled. The first runs from `start` to `stop`.
// Rows of one step lie a share of them all apart, so that the hardware follows several runs of
// memory: max_middle of 64 x 128 x 256 took one core of Zen 4 1001 us with rows that are
// neighbours, and 405 so. Places are found in order.
static void emit_column_loops(struct kg_code *code, const struct kg_reduce_plan *plan)
{
    int inner = plan->nest->axis_count - 1, unroll = (int)plan->unroll;
    if (plan->fold.is_argument)
        kg_code_line(code, "int64_t before = 0;");
    for (int axis = plan->outputs; axis <= inner; axis++) {
        struct kg_text low = {0}, high = {0};
        print_bounds(&low, &high, plan, axis);
        const char *from = kg_text_string(&low), *to = kg_text_string(&high);
        if (axis < inner) {
            kg_code_open(code, "for (int64_t i%d = %s; i%d < %s; i%d++)", axis, from, axis, to,
                         axis);
        } else {
            kg_code_line(code, "int64_t i%d = %s;", axis, from);
            if (plan->fold.is_argument)
                kg_code_line(code, "const int64_t origin = i%d;", axis);
            if (unroll > 1 && plan->fold.is_argument) {
                kg_code_open(code, "for (; i%d + UNROLL <= %s; i%d += UNROLL)", axis, to, axis);
                emit_column_step(code, plan, unroll);
                kg_code_close(code);
            } else if (unroll > 1) {
                kg_code_line(code, "const int64_t share = (%s - i%d) / UNROLL, last = i%d + share;",
                             to, axis, axis);
                kg_code_open(code, "for (; i%d < last; i%d++)", axis, axis);
                emit_column_step(code, plan, unroll);
                kg_code_close(code);
                kg_code_line(code, "i%d += (UNROLL - 1) * share;", axis);
            }
            kg_code_open(code, "for (; i%d < %s; i%d++)", axis, to, axis);
            emit_column_step(code, plan, 1);
            kg_code_close(code);
            if (plan->fold.is_argument && axis > plan->outputs)
                kg_code_line(code, "before += i%d - origin;", axis);
        }
        code->text->failed |= low.failed | high.failed;
        kg_text_free(&low);
        kg_text_free(&high);
    }
    for (int axis = plan->outputs; axis < inner; axis++)
        kg_code_close(code);
}

// Totals of the tile: outputs, or partial totals for the second phase.
static void emit_column_end(struct kg_code *code, const struct kg_reduce_plan *plan)
{
    int k = plan->k;
    struct kg_values values = {.group = plan->group};
    struct kg_text where = {0};
    const char *place = "outer * width + first + lane";
    kg_code_open(code, "if (chunks > 1)");
    kg_code_open(code, "for (int64_t lane = 0; lane < lanes; lane++)");
    kg_code_line(code, "part%d[chunk * outputs + %s] = acc%d[lane];", k, place, k);
    if (plan->fold.is_argument)
        kg_code_line(code, "place%d[chunk * outputs + %s] = start * inner + at%d[lane];", k, place,
                     k);
    kg_code_close(code);
    kg_code_line(code, "continue;");
    kg_code_close(code);
    kg_code_open(code, "for (int64_t lane = 0; lane < lanes; lane++)");
    emit_run_axis(code, plan, &values, "first");
    kg_text_format(&where, "rows * inner > 0 ? at%d[lane] : -1", k);
    emit_lane_total(code, plan, "0.0", kg_text_string(&where));
    emit_finish(code, plan, &values);
    kg_code_close(code);
    code->text->failed |= where.failed;
    kg_text_free(&where);
}

static void emit_columns(struct kg_code *code, const struct kg_reduce_plan *plan)
{
    int k = plan->k;
    struct kg_text neutral = {0};
    kg_fold_neutral(&neutral, &plan->fold, plan->fold.total);
    open_function(code, plan, "reduce");
    kg_code_open(code, "for (int64_t item = begin; item < end; item++)");
    kg_code_line(code, "const int64_t first = item %% tiles * TILE, rest = width - first;");
    kg_code_line(code, "const int64_t lanes = rest < TILE ? rest : TILE;");
    kg_code_line(code, "const int64_t chunk = item / tiles %% chunks;");
    kg_code_line(code, "const int64_t outer = item / (tiles * chunks);");
    kg_code_line(code, "const int64_t start = chunk * part, after = start + part;");
    kg_code_line(code, "const int64_t stop = after < rows ? after : rows;");
    kg_axes_split(code, plan->nest, 0, plan->run - 1, "outer");
    kg_code_line(code, "%s acc%d[TILE];", kg_fold_type(plan->fold.total), k);
    if (plan->fold.is_argument)
        kg_code_line(code, "%s at%d[TILE];", kg_fold_at_type(&plan->fold), k);
    kg_code_open(code, "for (int64_t lane = 0; lane < lanes; lane++)");
    kg_code_line(code, "acc%d[lane] = %s;", k, kg_text_string(&neutral));
    if (plan->fold.is_argument)
        kg_code_line(code, "at%d[lane] = 0;", k);
    kg_code_close(code);
    emit_column_loops(code, plan);
    emit_column_end(code, plan);
    kg_code_close(code);
    kg_code_close(code);
    kg_text_add(code->text, "\n");
    code->text->failed |= neutral.failed;
    kg_text_free(&neutral);
}

void kg_reduce_emit(struct kg_code *code, const struct kg_reduce_plan *plan)
{
    emit_items(code, plan);
    if (plan->column)
        emit_columns(code, plan);
    else
        emit_rows(code, plan);
    emit_combine(code, plan);
    kg_code_line(code,
                 "void %s_run(const struct kg_host_call *call, int phase, int64_t begin, "
                 "int64_t end)",
                 plan->entry);
    kg_code_line(code, "{");
    kg_code_indent(code);
    kg_code_line(code, "if (phase == 0)");
    kg_code_line(code, "    %s_reduce(call, begin, end);", plan->entry);
    kg_code_line(code, "else");
    kg_code_line(code, "    %s_combine(call, begin, end);", plan->entry);
    kg_code_close(code);
}
