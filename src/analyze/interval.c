// The least and the largest value of an index expression for known sizes. Exact for affine
// expressions, including relations such as `j <= d`; otherwise the interval is never too narrow.

#include "analyze/analyze.h"

// sum(coefficient[id] * index id) + [low, high]. The interval is a single value unless a term is
// not affine (a quotient, a remainder).
struct linear {
    bool wild;   // unlimited, or beyond 64 bits
    bool gather; // a term reads a tensor
    int64_t coefficient[KG_MAX_INDICES];
    int64_t low;
    int64_t high;
};

static struct linear constant(int64_t low, int64_t high)
{
    return (struct linear){.low = low, .high = high};
}

static bool is_constant(const struct linear *form)
{
    for (int i = 0; i < KG_MAX_INDICES; i++)
        if (form->coefficient[i] != 0)
            return false;
    return !form->wild && form->low == form->high;
}

// a + factor * b
static struct linear combine(struct linear a, struct linear b, int64_t factor)
{
    int64_t low, high, scaled;
    a.wild = a.wild || b.wild;
    a.gather = a.gather || b.gather;
    a.wild |= __builtin_mul_overflow(factor, factor < 0 ? b.high : b.low, &low);
    a.wild |= __builtin_mul_overflow(factor, factor < 0 ? b.low : b.high, &high);
    a.wild |= __builtin_add_overflow(a.low, low, &a.low);
    a.wild |= __builtin_add_overflow(a.high, high, &a.high);
    for (int i = 0; i < KG_MAX_INDICES; i++) {
        a.wild |= __builtin_mul_overflow(factor, b.coefficient[i], &scaled);
        a.wild |= __builtin_add_overflow(a.coefficient[i], scaled, &a.coefficient[i]);
    }
    return a;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}

static struct linear form_of(const struct kg_scope *scope, const struct kg_expr *expr);

// The bound of an index as `index <= form` or `index >= form`. False: there is none of this kind.
static bool relation_bound(const struct kg_scope *scope, const struct kg_index *index, bool upper,
                           struct linear *form)
{
    enum kg_relation relation = index->relation;
    bool is_upper = relation == KG_RELATION_LE || relation == KG_RELATION_LT;
    if (relation == KG_RELATION_NONE || is_upper != upper)
        return false;
    int64_t strict = relation == KG_RELATION_LT ? -1 : relation == KG_RELATION_GT ? 1 : 0;
    *form = combine(form_of(scope, index->bound), constant(strict, strict), 1);
    return !form->wild && !form->gather;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

// The largest (or least) value of the form; false when beyond 64 bits. Innermost indices are
// replaced first: once by the end of their range and once by their relation's limit. Both are valid
// bounds, so the tighter one is taken.
static bool extreme(const struct kg_scope *scope, struct linear form, int depth, bool maximum,
                    int64_t *value)
{
    while (depth > 0 && form.coefficient[scope->order[depth - 1]->id] == 0)
        depth--;
    if (form.wild || depth == 0) {
        *value = maximum ? form.high : form.low;
        return !form.wild;
    }
    const struct kg_index *index = scope->order[depth - 1];
    int64_t factor = form.coefficient[index->id], end, related;
    bool upper = (factor > 0) == maximum;
    form.coefficient[index->id] = 0;
    end = upper ? scope->high[index->id] : scope->low[index->id];
    bool known =
        extreme(scope, combine(form, constant(end, end), factor), depth - 1, maximum, value);
    struct linear bound;
    if (relation_bound(scope, index, upper, &bound) &&
        extreme(scope, combine(form, bound, factor), depth - 1, maximum, &related)) {
        *value = !known ? related : maximum ? smaller(*value, related) : larger(*value, related);
        known = true;
    }
    return known;
}

static struct kg_interval interval_of(const struct kg_scope *scope, struct linear form)
{
    struct kg_interval interval = {.gather = form.gather};
    interval.known = extreme(scope, form, scope->count, false, &interval.low) &&
                     extreme(scope, form, scope->count, true, &interval.high);
    return interval;
}

// Floor quotient or remainder by a positive constant.
static struct linear divide(const struct kg_scope *scope, struct linear a, struct linear b,
                            bool remainder)
{
    struct linear wild = {.wild = true, .gather = a.gather || b.gather};
    struct kg_interval range = interval_of(scope, a);
    if (!range.known || !is_constant(&b) || b.low <= 0)
        return wild;
    int64_t low = floor_div(range.low, b.low), high = floor_div(range.high, b.low);
    if (!remainder)
        return constant(low, high);
    if (low == high) // one period: the remainder grows with the dividend
        return combine(a, constant(low * b.low, low * b.low), -1);
    return constant(0, b.low - 1);
}

static struct linear product(const struct kg_scope *scope, struct linear a, struct linear b)
{
    if (is_constant(&a))
        return combine(constant(0, 0), b, a.low);
    if (is_constant(&b))
        return combine(constant(0, 0), a, b.low);
    struct kg_interval x = interval_of(scope, a), y = interval_of(scope, b);
    int64_t corner[4];
    if (!x.known || !y.known || __builtin_mul_overflow(x.low, y.low, &corner[0]) ||
        __builtin_mul_overflow(x.low, y.high, &corner[1]) ||
        __builtin_mul_overflow(x.high, y.low, &corner[2]) ||
        __builtin_mul_overflow(x.high, y.high, &corner[3]))
        return (struct linear){.wild = true, .gather = a.gather || b.gather};
    return constant(smaller(smaller(corner[0], corner[1]), smaller(corner[2], corner[3])),
                    larger(larger(corner[0], corner[1]), larger(corner[2], corner[3])));
}

static struct linear call_form(const struct kg_scope *scope, const struct kg_expr *expr)
{
    struct linear part[3] = {{0}};
    bool gather = false, wild = expr->argument_count > 3;
    for (int i = 0; i < expr->argument_count && i < 3; i++) {
        part[i] = form_of(scope, expr->arguments[i]);
        gather = gather || part[i].gather;
        wild = wild || part[i].wild;
    }
    struct kg_interval x, y;
    if (gather || wild)
        return (struct linear){.wild = true, .gather = gather};
    switch (expr->function) {
    case KG_FN_ADD:
        return combine(part[0], part[1], 1);
    case KG_FN_SUB:
        return combine(part[0], part[1], -1);
    case KG_FN_NEG:
        return combine(constant(0, 0), part[0], -1);
    case KG_FN_MUL:
        return product(scope, part[0], part[1]);
    case KG_FN_DIV:
    case KG_FN_MOD:
        return divide(scope, part[0], part[1], expr->function == KG_FN_MOD);
    case KG_FN_CEILDIV: // ceil(a/b) = -floor(-a/b)
        return combine(constant(0, 0),
                       divide(scope, combine(constant(0, 0), part[0], -1), part[1], false), -1);
    case KG_FN_MIN:
    case KG_FN_MAX:
    case KG_FN_WHERE:
        x = interval_of(scope, part[expr->function == KG_FN_WHERE]);
        y = interval_of(scope, part[expr->function == KG_FN_WHERE ? 2 : 1]);
        if (!x.known || !y.known)
            break;
        if (expr->function == KG_FN_MIN)
            return constant(smaller(x.low, y.low), smaller(x.high, y.high));
        if (expr->function == KG_FN_MAX)
            return constant(larger(x.low, y.low), larger(x.high, y.high));
        return constant(smaller(x.low, y.low), larger(x.high, y.high));
    default:
        if (kg_functions[expr->function].rule == KG_RULE_COMPARE ||
            kg_functions[expr->function].rule == KG_RULE_LOGIC)
            return constant(0, 1);
        break;
    }
    return (struct linear){.wild = true};
}

static struct linear form_of(const struct kg_scope *scope, const struct kg_expr *expr)
{
    struct linear form = {0};
    switch (expr->kind) {
    case KG_EXPR_NUMBER:
        form = constant(expr->integer, expr->integer);
        form.wild = !expr->is_integer;
        return form;
    case KG_EXPR_SIZE:
        form = constant(scope->sizes[expr->size->id], scope->sizes[expr->size->id]);
        form.wild = expr->size->is_real;
        return form;
    case KG_EXPR_INDEX:
        form.coefficient[expr->index->id] = 1;
        return form;
    case KG_EXPR_CALL:
        return call_form(scope, expr);
    case KG_EXPR_CAST:
        form = form_of(scope, expr->arguments[0]);
        form.wild =
            form.wild || expr->type != KG_TYPE_I64 || !kg_dtype_is_computed(expr->cast.dtype);
        return form;
    case KG_EXPR_READ:
    case KG_EXPR_REDUCE:
        form.gather = form.wild = true;
        return form;
    }
    return form;
}

// `index` takes a value only if its relation leaves any: 0 <= B for `j <= B`. Narrows the outer
// index that the bound depends on, if there is one.
static void narrow(struct kg_scope *scope, const struct kg_index *index, bool upper)
{
    struct linear bound;
    if (!relation_bound(scope, index, upper, &bound))
        return;
    struct kg_interval reach = interval_of(scope, bound);
    int64_t *low = &scope->low[index->id], *high = &scope->high[index->id];
    int outer = -1;
    for (int i = 0; i < KG_MAX_INDICES; i++)
        if (bound.coefficient[i] != 0)
            outer = outer == -1 ? i : -2;
    // coefficient * outer + [.., bound.high] >= low, or + [bound.low, ..] <= high
    int64_t gap;
    if (outer >= 0 &&
        !__builtin_sub_overflow(upper ? *low : *high, upper ? bound.high : bound.low, &gap)) {
        int64_t factor = bound.coefficient[outer];
        bool raises = (factor > 0) == upper;
        int64_t limit = floor_div(gap, factor);
        if (raises && gap % factor != 0)
            limit++;
        if (raises)
            scope->low[outer] = larger(scope->low[outer], limit);
        else
            scope->high[outer] = smaller(scope->high[outer], limit);
    }
    if (reach.known && upper)
        *high = smaller(*high, reach.high);
    else if (reach.known)
        *low = larger(*low, reach.low);
}

enum kg_status kg_scope_push(struct kg_scope *scope, const struct kg_index *index,
                             struct kg_error *error)
{
    int64_t begin = 0, end = 0;
    enum kg_status status = KG_OK;
    if (index->begin)
        status = kg_lang_size_value(index->begin, scope->sizes, &begin, error);
    if (status == KG_OK)
        status = kg_lang_size_value(index->end, scope->sizes, &end, error);
    if (status != KG_OK)
        return status;
    scope->order[scope->count++] = index;
    scope->low[index->id] = begin;
    scope->high[index->id] = end - 1;
    if (index->relation != KG_RELATION_NONE) {
        narrow(scope, index, true);
        narrow(scope, index, false);
    }
    return KG_OK;
}

// Most subscripts are an index without a relation, and its range is known already.
static bool is_plain(const struct kg_scope *scope, const struct kg_expr *expr,
                     struct kg_interval *interval)
{
    for (int i = 0; i < scope->count && expr->kind == KG_EXPR_INDEX; i++) {
        int id = scope->order[i]->id;
        if (id != expr->index->id)
            continue;
        *interval =
            (struct kg_interval){.known = true, .low = scope->low[id], .high = scope->high[id]};
        return scope->order[i]->relation == KG_RELATION_NONE;
    }
    return false;
}

struct kg_interval kg_scope_interval(const struct kg_scope *scope, const struct kg_expr *expr)
{
    struct kg_interval interval;
    if (is_plain(scope, expr, &interval))
        return interval;
    return interval_of(scope, form_of(scope, expr));
}
