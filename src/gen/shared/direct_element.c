// The statements that compute one output element of a nest by plain loops: see direct_nest.h.

#include "gen/shared/axes.h"
#include "gen/shared/direct_nest.h"

#include <string.h>

// The accumulators of one output element are `total`, `best` (the place, for argmax and
// argmin) and `count` (for means of relations); with lanes they are arrays.

static bool is_real(enum kg_type type)
{
    return type == KG_TYPE_F32 || type == KG_TYPE_F64;
}

static bool is_argument(const struct kg_nest *nest)
{
    return kg_reduces[nest->reduce].is_argument;
}

static enum kg_type accumulator_type(const struct kg_nest *nest)
{
    enum kg_type body = nest->body->type;
    switch (nest->reduce) {
    case KG_REDUCE_SUM:
    case KG_REDUCE_PROD:
        return is_real(body) ? KG_TYPE_F64 : KG_TYPE_I64;
    case KG_REDUCE_MEAN:
        return KG_TYPE_F64;
    case KG_REDUCE_ANY:
    case KG_REDUCE_ALL:
        return KG_TYPE_BOOL;
    default:
        return body == KG_TYPE_BOOL ? KG_TYPE_I64 : body;
    }
}

static const char *lane_of(const struct kg_direct *direct)
{
    return direct->lanes > 1 ? "[lane]" : "";
}

static void emit_accumulator(const struct kg_direct *direct, enum kg_type type, const char *name,
                             const char *value)
{
    struct kg_text *text = direct->text;
    int level = direct->level;
    if (direct->lanes <= 1) {
        kg_emit_line(text, level, "%s %s = %s;", kg_emit_type(type), name, value);
        return;
    }
    kg_emit_line(text, level, "%s %s[LANES];", kg_emit_type(type), name);
    kg_emit_line(text, level, "for (int lane = 0; lane < LANES; lane++)");
    kg_emit_line(text, level + 1, "%s[lane] = %s;", name, value);
}

static void emit_accumulators(const struct kg_direct *direct)
{
    const struct kg_nest *nest = direct->nest;
    enum kg_reduce neutral = nest->reduce == KG_REDUCE_ARGMAX   ? KG_REDUCE_MAX
                             : nest->reduce == KG_REDUCE_ARGMIN ? KG_REDUCE_MIN
                                                                : nest->reduce;
    struct kg_text value = {0};
    kg_emit_neutral(&value, neutral, direct->accumulate);
    emit_accumulator(direct, direct->accumulate, "total", kg_text_string(&value));
    if (is_argument(nest))
        emit_accumulator(direct, KG_TYPE_I64, "best", "-1");
    if (nest->reduce == KG_REDUCE_MEAN && kg_direct_has_relation(nest))
        kg_emit_line(direct->text, direct->level, "int64_t count = 0;");
    direct->text->failed |= value.failed;
    kg_text_free(&value);
}

// Accumulates the body's value at the current axes.
static void emit_step(const struct kg_direct *direct)
{
    const struct kg_nest *nest = direct->nest;
    struct kg_text body = {0}, total = {0}, place = {0};
    kg_text_format(&total, "total%s", lane_of(direct));
    if (is_argument(nest)) {
        kg_emit_value(&body, nest, nest->body, direct->accumulate, &direct->names);
        kg_emit_line(direct->text, direct->level, "const %s value = %s;",
                     kg_emit_type(direct->accumulate), kg_text_string(&body));
        kg_emit_line(direct->text, direct->level, "if (best%s < 0 || kg_beats_%s_%s(value, %s)) {",
                     lane_of(direct), nest->reduce == KG_REDUCE_ARGMAX ? "max" : "min",
                     kg_emit_suffix(direct->accumulate), kg_text_string(&total));
        kg_emit_line(direct->text, direct->level + 1, "%s = value;", kg_text_string(&total));
        kg_axes_place(&place, nest);
        kg_emit_line(direct->text, direct->level + 1, "best%s = %s;", lane_of(direct),
                     kg_text_string(&place));
        kg_emit_line(direct->text, direct->level, "}");
    } else {
        struct kg_text step = {0};
        bool infix = is_real(direct->accumulate);
        if (infix && nest->body->type != direct->accumulate) { // "(double)(a * b)"
            kg_text_format(&body, "(%s)", kg_emit_type(direct->accumulate));
            kg_emit_expr(&body, nest, nest->body, &direct->names);
        } else if (infix) {
            kg_emit_expr(&body, nest, nest->body, &direct->names);
        } else {
            kg_emit_value(&body, nest, nest->body, direct->accumulate, &direct->names);
        }
        kg_emit_combine(&step, nest->reduce, direct->accumulate, kg_text_string(&total),
                        kg_text_string(&body));
        kg_emit_line(direct->text, direct->level, "%s = %s;", kg_text_string(&total),
                     kg_text_string(&step));
        direct->text->failed |= step.failed;
        kg_text_free(&step);
    }
    direct->text->failed |= body.failed | total.failed | place.failed;
    kg_text_free(&body);
    kg_text_free(&total);
    kg_text_free(&place);
}

// The number of elements that a mean is over.
static void emit_count(const struct kg_direct *direct, struct kg_text *text)
{
    const struct kg_nest *nest = direct->nest;
    const char *type = kg_emit_type(direct->accumulate);
    if (kg_direct_has_relation(nest)) {
        kg_text_format(text, "(%s)count", type);
        return;
    }
    for (int i = nest->output_axes; i < nest->axis_count; i++) {
        kg_text_format(text, "%s(%s)", i > nest->output_axes ? " * " : "", type);
        kg_text_add(text, nest->axes[i]->begin ? "kg_max_i64(0, " : "");
        kg_emit_axis_end(text, nest->axes[i]);
        if (nest->axes[i]->begin) {
            kg_text_add(text, " - ");
            kg_emit_axis_begin(text, nest->axes[i]);
            kg_text_add(text, ")");
        }
    }
}

// Stores the finished reduction.
static void emit_result(const struct kg_direct *direct)
{
    const struct kg_nest *nest = direct->nest;
    struct kg_text value = {0}, store = {0};
    enum kg_type type = is_argument(nest) ? KG_TYPE_I64 : direct->accumulate;
    bool divides = nest->reduce == KG_REDUCE_MEAN;
    // The sum may not fit in what the mean is stored as.
    bool wide = divides && kg_emit_nest_type(nest) == KG_TYPE_F64 &&
                kg_emit_tensor_dtype(nest->output) != KG_F64;
    kg_text_format(&value, "%s%s%s", wide ? "(" : "", is_argument(nest) ? "best" : "total",
                   lane_of(direct));
    if (divides) {
        kg_text_add(&value, " / (");
        emit_count(direct, &value);
        kg_text_add(&value, wide ? "))" : ")");
    }
    // The accumulator may be wider than the value.
    enum kg_type narrow = kg_emit_nest_type(nest);
    if (type == KG_TYPE_F64 && narrow == KG_TYPE_F32) {
        kg_emit_line(direct->text, direct->level, "const float value = (float)(%s);",
                     kg_text_string(&value));
        kg_text_cut(&value, 0);
        kg_text_add(&value, "value");
        type = KG_TYPE_F32;
    }
    kg_emit_store(&store, nest, &direct->names, type, kg_text_string(&value));
    kg_emit_line(direct->text, direct->level, "%s", kg_text_string(&store));
    direct->text->failed |= value.failed | store.failed;
    kg_text_free(&value);
    kg_text_free(&store);
}

// Loops over the reduced axes around `emit_step`.
static void open_reduction(struct kg_direct *direct)
{
    const struct kg_nest *nest = direct->nest;
    for (int i = nest->output_axes; i < nest->axis_count; i++) {
        struct kg_text low = {0}, high = {0}, bound = {0};
        const struct kg_index *axis = nest->axes[i];
        kg_emit_axis_begin(&low, axis);
        kg_emit_axis_end(&high, axis);
        if (axis->bound)
            kg_emit_index(&bound, nest, axis->bound, &direct->names);
        const char *from = kg_text_string(&low), *to = kg_text_string(&high);
        const char *by = kg_text_string(&bound);
        if (direct->window && i == nest->axis_count - 1)
            direct->fill(direct);
        switch (axis->relation) {
        case KG_RELATION_NONE:
            kg_emit_line(direct->text, direct->level, "for (%s i%d = %s; i%d < %s; i%d++) {",
                         direct->integer, i, from, i, to, i);
            break;
        case KG_RELATION_LE:
        case KG_RELATION_LT:
            kg_emit_line(direct->text, direct->level,
                         "for (int64_t i%d = %s; i%d < %s && i%d %s %s; i%d++) {", i, from, i, to,
                         i, axis->relation == KG_RELATION_LE ? "<=" : "<", by, i);
            break;
        case KG_RELATION_GE:
        case KG_RELATION_GT:
            kg_emit_line(direct->text, direct->level,
                         "for (int64_t i%d = kg_max_i64(%s, %s%s); i%d < %s; i%d++) {", i, from, by,
                         axis->relation == KG_RELATION_GT ? " + 1" : "", i, to, i);
            break;
        }
        direct->level++;
        direct->text->failed |= low.failed | high.failed | bound.failed;
        kg_text_free(&low);
        kg_text_free(&high);
        kg_text_free(&bound);
    }
    if (nest->reduce == KG_REDUCE_MEAN && kg_direct_has_relation(nest))
        kg_emit_line(direct->text, direct->level, "count++;");
}

void kg_direct_close_loops(struct kg_direct *direct, int count)
{
    for (int i = 0; i < count; i++)
        kg_emit_line(direct->text, --direct->level, "}");
}

void kg_direct_emit_element(struct kg_direct *direct)
{
    const struct kg_nest *nest = direct->nest;
    if (!nest->has_reduce) {
        struct kg_text value = {0}, store = {0};
        kg_emit_expr(&value, nest, nest->body, &direct->names);
        kg_emit_store(&store, nest, &direct->names, nest->body->type, kg_text_string(&value));
        kg_emit_line(direct->text, direct->level, "%s", kg_text_string(&store));
        direct->text->failed |= value.failed | store.failed;
        kg_text_free(&value);
        kg_text_free(&store);
        return;
    }
    emit_accumulators(direct);
    open_reduction(direct);
    emit_step(direct);
    kg_direct_close_loops(direct, nest->axis_count - nest->output_axes);
    emit_result(direct);
}

// LANES adjacent elements along the inner axis, from `first` to `stop`.
void kg_direct_emit_lanes(struct kg_direct *direct)
{
    struct kg_text *text = direct->text;
    const struct kg_nest *nest = direct->nest;
    kg_emit_line(text, direct->level++,
                 "for (int64_t start = first; start < stop; start += LANES) {");
    kg_emit_line(text, direct->level, "const int lanes = (int)kg_min_i64(LANES, stop - start);");
    emit_accumulators(direct);
    open_reduction(direct);
    kg_emit_line(text, direct->level++, "for (int lane = 0; lane < lanes; lane++) {");
    kg_emit_line(text, direct->level, "const int64_t i%d = start + lane;", direct->inner);
    emit_step(direct);
    kg_direct_close_loops(direct, 1 + nest->axis_count - nest->output_axes);
    kg_emit_line(text, direct->level++, "for (int lane = 0; lane < lanes; lane++) {");
    kg_emit_line(text, direct->level, "const int64_t i%d = start + lane;", direct->inner);
    emit_result(direct);
    kg_direct_close_loops(direct, 2);
}

// Along the scanned axis, forward or backward: each step adds the elements that the relation adds.
void kg_direct_emit_scan(struct kg_direct *direct)
{
    const struct kg_nest *nest = direct->nest;
    const struct kg_index *reduced = nest->axes[nest->output_axes];
    struct kg_text *text = direct->text, low = {0}, high = {0}, bound = {0};
    int along = direct->scanned, over = nest->output_axes;
    bool backward = kg_direct_is_backward(nest);
    kg_emit_axis_begin(&low, reduced);
    kg_emit_axis_end(&high, reduced);
    kg_emit_index(&bound, nest, reduced->bound, &direct->names);
    const char *by = kg_text_string(&bound);
    struct kg_text end = {0};
    kg_emit_axis_end(&end, nest->axes[along]);

    emit_accumulators(direct);
    if (backward) {
        kg_emit_line(text, direct->level, "int64_t next = %s - 1;", kg_text_string(&high));
        kg_emit_line(text, direct->level++, "for (int64_t i%d = %s - 1; i%d >= 0; i%d--) {", along,
                     kg_text_string(&end), along, along);
        kg_emit_line(text, direct->level++, "for (; next >= %s && next %s %s; next--) {",
                     kg_text_string(&low), reduced->relation == KG_RELATION_GE ? ">=" : ">", by);
    } else {
        kg_emit_line(text, direct->level, "int64_t next = %s;", kg_text_string(&low));
        kg_emit_line(text, direct->level++, "for (int64_t i%d = 0; i%d < %s; i%d++) {", along,
                     along, kg_text_string(&end), along);
        kg_emit_line(text, direct->level++, "for (; next < %s && next %s %s; next++) {",
                     kg_text_string(&high), reduced->relation == KG_RELATION_LE ? "<=" : "<", by);
    }
    kg_emit_line(text, direct->level, "const int64_t i%d = next;", over);
    emit_step(direct);
    if (nest->reduce == KG_REDUCE_MEAN)
        kg_emit_line(text, direct->level, "count++;");
    kg_direct_close_loops(direct, 1);
    emit_result(direct);
    kg_direct_close_loops(direct, 1);
    text->failed |= low.failed | high.failed | bound.failed | end.failed;
    kg_text_free(&low);
    kg_text_free(&high);
    kg_text_free(&bound);
    kg_text_free(&end);
}

// The last coordinate of an item is a block of the inner axis, the others are the other output
// axes.

// The beginning of every function.
void kg_direct_complete(struct kg_direct *direct)
{
    const struct kg_nest *nest = direct->nest;
    direct->names = (struct kg_emit_names){
        .user = direct, .contiguous = direct->group->problem->contiguous, .read = direct->read};
    direct->accumulate = nest->has_reduce ? accumulator_type(nest) : nest->body->type;
    if (!direct->integer)
        direct->integer = "int64_t";
}

bool kg_direct_sums_few(const struct kg_nest *nest)
{
    enum { FEW = 64 };
    int64_t count = 1;
    if ((nest->reduce != KG_REDUCE_SUM && nest->reduce != KG_REDUCE_MEAN) ||
        nest->body->type != KG_TYPE_F32 || kg_direct_has_relation(nest))
        return false;
    for (int axis = nest->output_axes; axis < nest->axis_count; axis++) {
        const struct kg_expr *end = nest->axes[axis]->end;
        if (nest->axes[axis]->begin || end->kind != KG_EXPR_NUMBER || end->integer > FEW)
            return false;
        count *= end->integer;
        if (count > FEW)
            return false;
    }
    return true;
}
