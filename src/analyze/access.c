// Access maps: how the subscripts of a nest's reads depend on its axes, and the nest's class that
// follows from them.

#include "analyze/analyze.h"

const char *const kg_class_names[KG_CLASS_COUNT] = {
    [KG_CLASS_POINTWISE] = "pointwise", [KG_CLASS_GATHER] = "gather",
    [KG_CLASS_REDUCE] = "reduce",       [KG_CLASS_SCAN] = "scan",
    [KG_CLASS_CONTRACT] = "contract",   [KG_CLASS_WINDOW] = "window",
};

struct reader {
    struct kg_arena *arena;
    struct kg_nest *nest;
    enum kg_status status;
    struct kg_error *error;
};

static bool mentions_axis(const struct kg_expr *expr)
{
    bool used[KG_MAX_INDICES] = {false};
    kg_analyze_used(expr, used);
    for (int i = 0; i < KG_MAX_INDICES; i++)
        if (used[i])
            return true;
    return false;
}

static const struct kg_expr *call(struct reader *reader, enum kg_function function,
                                  const struct kg_expr *a, const struct kg_expr *b)
{
    struct kg_expr *expr = KG_NEW(reader->arena, struct kg_expr);
    const struct kg_expr **arguments = KG_NEW_ARRAY(reader->arena, 2, const struct kg_expr *);
    if (!expr || !arguments) {
        reader->status = kg_error_memory(reader->error, "access maps");
        return NULL;
    }
    *expr = (struct kg_expr){.kind = KG_EXPR_CALL,
                             .type = KG_TYPE_I64,
                             .span = a->span,
                             .function = function,
                             .arguments = arguments,
                             .argument_count = 2};
    arguments[0] = a;
    arguments[1] = b;
    return expr;
}

static const struct kg_expr *number(struct reader *reader, int64_t value, struct kg_span span)
{
    struct kg_expr *expr = KG_NEW(reader->arena, struct kg_expr);
    if (!expr) {
        reader->status = kg_error_memory(reader->error, "access maps");
        return NULL;
    }
    *expr = (struct kg_expr){.kind = KG_EXPR_NUMBER,
                             .type = KG_TYPE_I64,
                             .span = span,
                             .number = (double)value,
                             .integer = value,
                             .is_integer = true};
    return expr;
}

// base += factor * expr
static bool add_base(struct reader *reader, struct kg_affine *map, const struct kg_expr *expr,
                     int64_t factor)
{
    if (factor != 1) {
        const struct kg_expr *scale = number(reader, factor, expr->span);
        expr = scale ? call(reader, KG_FN_MUL, scale, expr) : NULL;
    }
    if (expr && map->base)
        expr = call(reader, KG_FN_ADD, map->base, expr);
    map->base = expr;
    return expr != NULL;
}

static bool literal(const struct kg_expr *expr, int64_t *value)
{
    if (expr->kind == KG_EXPR_NUMBER && expr->is_integer) {
        *value = expr->integer;
        return true;
    }
    if (expr->kind == KG_EXPR_CALL && expr->function == KG_FN_NEG &&
        literal(expr->arguments[0], value))
        return !__builtin_sub_overflow(0, *value, value);
    return false;
}

static bool add_scaled(int64_t *sum, int64_t factor, int64_t value)
{
    int64_t product;
    return !__builtin_mul_overflow(factor, value, &product) &&
           !__builtin_add_overflow(*sum, product, sum);
}

static bool linear(struct reader *reader, struct kg_affine *map, const struct kg_expr *expr,
                   int64_t factor);

static bool linear_call(struct reader *reader, struct kg_affine *map, const struct kg_expr *expr,
                        int64_t factor)
{
    const struct kg_expr *a = expr->arguments[0];
    const struct kg_expr *b = expr->argument_count > 1 ? expr->arguments[1] : NULL;
    int64_t scale = -1;
    switch (expr->function) {
    case KG_FN_ADD:
        return linear(reader, map, a, factor) && linear(reader, map, b, factor);
    case KG_FN_SUB:
        return linear(reader, map, a, factor) && !__builtin_mul_overflow(factor, -1, &factor) &&
               linear(reader, map, b, factor);
    case KG_FN_NEG:
        return !__builtin_mul_overflow(factor, -1, &factor) && linear(reader, map, a, factor);
    case KG_FN_MUL:
        if (literal(b, &scale))
            b = a;
        else if (!literal(a, &scale))
            break;
        return !__builtin_mul_overflow(factor, scale, &factor) && linear(reader, map, b, factor);
    default:
        break;
    }
    // For example a quotient or a product of sizes.
    return !mentions_axis(expr) && !kg_analyze_reads(expr) && add_base(reader, map, expr, factor);
}

// map += factor * expr. False if expr is not affine.
static bool linear(struct reader *reader, struct kg_affine *map, const struct kg_expr *expr,
                   int64_t factor)
{
    switch (expr->kind) {
    case KG_EXPR_NUMBER:
        return expr->is_integer && add_scaled(&map->offset, factor, expr->integer);
    case KG_EXPR_SIZE:
        return add_base(reader, map, expr, factor);
    case KG_EXPR_INDEX:
        return add_scaled(&map->coefficient[expr->index->id], factor, 1);
    case KG_EXPR_CALL:
        return linear_call(reader, map, expr, factor);
    default:
        return false;
    }
}

static struct kg_affine make_map(struct reader *reader, const struct kg_expr *subscript)
{
    struct kg_affine map = {.subscript = subscript, .is_gather = kg_analyze_reads(subscript)};
    map.is_affine = !map.is_gather && linear(reader, &map, subscript, 1);
    if (!map.is_affine)
        map = (struct kg_affine){.subscript = subscript, .is_gather = map.is_gather};
    return map;
}

// Reads in `expr`, in subscripts and pads too.
static int count_reads(const struct kg_expr *expr)
{
    int count = expr->kind == KG_EXPR_READ;
    for (int i = 0; i < expr->argument_count; i++)
        count += count_reads(expr->arguments[i]);
    return count + (expr->kind == KG_EXPR_READ && expr->pad ? count_reads(expr->pad) : 0);
}

static void collect(struct reader *reader, const struct kg_expr *expr)
{
    struct kg_nest *nest = reader->nest;
    if (expr->kind == KG_EXPR_READ && reader->status == KG_OK) {
        if (nest->access_count == KG_MAX_ACCESSES) {
            reader->status = kg_error_set(reader->error, KG_ERROR_UNSUPPORTED,
                                          "line %d: more than %d reads in one statement",
                                          expr->span.line, KG_MAX_ACCESSES);
            return;
        }
        struct kg_access *access = &nest->accesses[nest->access_count++];
        access->read = expr;
        access->tensor = expr->tensor;
        for (int i = 0; i < expr->argument_count; i++)
            access->map[i] = make_map(reader, expr->arguments[i]);
    }
    for (int i = 0; i < expr->argument_count; i++)
        collect(reader, expr->arguments[i]);
    if (expr->kind == KG_EXPR_READ && expr->pad)
        collect(reader, expr->pad);
}

// The factors of a product, through quotients, signs and casts.
static int factors(const struct kg_expr *expr, const struct kg_expr **list, int count, int limit)
{
    if (expr->kind == KG_EXPR_CAST || (expr->kind == KG_EXPR_CALL && expr->function == KG_FN_NEG))
        return factors(expr->arguments[0], list, count, limit);
    if (expr->kind == KG_EXPR_CALL &&
        (expr->function == KG_FN_MUL || expr->function == KG_FN_DIV)) {
        count = factors(expr->arguments[0], list, count, limit);
        return factors(expr->arguments[1], list, count, limit);
    }
    if (count < limit)
        list[count++] = expr;
    return count;
}

// A sum of products, two factors of which vary with different output axes: each element of one is
// used with many elements of the other.
static bool is_contraction(const struct kg_nest *nest)
{
    const struct kg_expr *list[KG_MAX_ACCESSES];
    int count = factors(nest->body, list, 0, KG_MAX_ACCESSES);
    bool seen = false, first[KG_MAX_INDICES] = {false};
    for (int i = 0; i < count; i++) {
        bool used[KG_MAX_INDICES] = {false}, reduced = false;
        kg_analyze_used(list[i], used);
        for (int a = nest->output_axes; a < nest->axis_count; a++)
            reduced = reduced || used[a];
        if (!reduced || !kg_analyze_reads(list[i]))
            continue;
        for (int a = 0; a < nest->output_axes; a++) {
            if (seen && used[a] != first[a])
                return true;
            first[a] = used[a];
        }
        seen = true;
    }
    return false;
}

// A subscript that combines an output axis with a reduced one: x[h*2 + r].
static bool is_window(const struct kg_nest *nest)
{
    for (int i = 0; i < nest->access_count; i++)
        for (int d = 0; d < nest->accesses[i].tensor->rank; d++) {
            const struct kg_affine *map = &nest->accesses[i].map[d];
            bool output = false, reduced = false;
            for (int a = 0; map->is_affine && a < nest->axis_count; a++)
                *(a < nest->output_axes ? &output : &reduced) |= map->coefficient[a] != 0;
            if (output && reduced)
                return true;
        }
    return false;
}

static enum kg_class classify(const struct kg_nest *nest)
{
    if (!nest->has_reduce) {
        for (int i = 0; i < nest->access_count; i++)
            for (int d = 0; d < nest->accesses[i].tensor->rank; d++)
                if (nest->accesses[i].map[d].is_gather)
                    return KG_CLASS_GATHER;
        return KG_CLASS_POINTWISE;
    }
    for (int a = nest->output_axes; a < nest->axis_count; a++)
        if (nest->axes[a]->relation != KG_RELATION_NONE)
            return KG_CLASS_SCAN;
    if (is_window(nest))
        return KG_CLASS_WINDOW;
    return nest->reduce == KG_REDUCE_SUM && is_contraction(nest) ? KG_CLASS_CONTRACT
                                                                 : KG_CLASS_REDUCE;
}

enum kg_status kg_analyze_accesses(struct kg_arena *arena, struct kg_nest *nest,
                                   struct kg_error *error)
{
    struct reader reader = {.arena = arena, .nest = nest, .error = error};
    int count = count_reads(nest->body);
    for (int a = nest->output_axes; a < nest->axis_count; a++)
        count += nest->axes[a]->bound ? count_reads(nest->axes[a]->bound) : 0;
    // One too many is an error of collect().
    nest->accesses =
        KG_NEW_ARRAY(arena, count < KG_MAX_ACCESSES ? count : KG_MAX_ACCESSES, struct kg_access);
    if (!nest->accesses)
        return kg_error_memory(error, "access maps");
    collect(&reader, nest->body);
    for (int a = nest->output_axes; a < nest->axis_count; a++)
        if (nest->axes[a]->bound)
            collect(&reader, nest->axes[a]->bound);
    nest->class = classify(nest);
    return reader.status;
}
