#include "verify/inputs.h"

#include "verify/gate.h"
#include "verify/random.h"

#include <math.h>

const char *const kg_input_class_names[KG_INPUT_CLASS_COUNT] = {
    [KG_INPUT_NORMAL] = "normal values",   [KG_INPUT_ZERO] = "zeros",
    [KG_INPUT_DENORMAL] = "denormals",     [KG_INPUT_HUGE] = "huge values",
    [KG_INPUT_NAN] = "some NaN",           [KG_INPUT_INFINITE] = "some infinities",
    [KG_INPUT_TIES] = "many equal values", [KG_INPUT_WHOLE] = "small whole numbers",
};

static double sign_of(struct kg_random *random)
{
    return kg_random_next(random) & 1 ? 1 : -1;
}

static double normal(struct kg_random *random)
{
    double value = kg_random_normal(random);
    double kind = kg_random_uniform(random);
    if (kind < 0.6)
        return value;
    if (kind < 0.98)
        return value * exp2(kg_random_between(random, -5, 3));
    return value * 32;
}

static double real_value(struct kg_random *random, enum kg_input_class class,
                         const struct kg_dtype_info *info)
{
    double kind = kg_random_uniform(random);
    switch (class) {
    case KG_INPUT_ZERO:
        return kind < 0.9 ? copysign(0, sign_of(random)) : normal(random);
    case KG_INPUT_DENORMAL:
        if (kind < 0.7)
            return sign_of(random) * info->smallest * kg_random_uniform(random);
        return kind < 0.9 ? sign_of(random) * info->smallest * kg_random_between(random, 0.5, 4)
                          : normal(random);
    case KG_INPUT_HUGE:
        if (kind < 0.2)
            return sign_of(random) * info->largest;
        return kind < 0.7 ? sign_of(random) * info->largest * kg_random_uniform(random)
                          : normal(random);
    case KG_INPUT_TIES: {
        static const double values[] = {-1, 0.5, 0.5, 2, -0.25};
        return values[kg_random_below(random, 5)];
    }
    case KG_INPUT_WHOLE:
        return (double)kg_random_below(random, 9) - 4;
    default:
        return normal(random);
    }
}

static int64_t any_bits(struct kg_random *random, const struct kg_dtype_info *info)
{
    int unused = 64 - info->bits;
    uint64_t bits = kg_random_next(random) << unused;
    return info->is_signed ? (int64_t)bits >> unused : (int64_t)(bits >> unused);
}

static int64_t integer_value(struct kg_random *random, enum kg_input_class class,
                             const struct kg_dtype_info *info)
{
    double kind = kg_random_uniform(random);
    int64_t small = info->is_signed ? (int64_t)kg_random_below(random, 16) - 8
                                    : (int64_t)kg_random_below(random, 16);
    switch (class) {
    case KG_INPUT_ZERO:
        return kind < 0.9 ? 0 : small;
    case KG_INPUT_HUGE:
        if (kind < 0.4) // limits of the dtype: all bits set, except possibly the sign
            return info->is_signed ? (int64_t)(((uint64_t)1 << (info->bits - 1)) - 1)
                                   : (int64_t)(UINT64_MAX >> (64 - info->bits));
        if (kind < 0.6)
            return info->is_signed ? (int64_t)(UINT64_MAX << (info->bits - 1)) : 0;
        return any_bits(random, info);
    case KG_INPUT_TIES:
        return (int64_t)kg_random_below(random, 3);
    case KG_INPUT_WHOLE:
        return small;
    default:
        if (kind < 0.5)
            return small;
        return kind < 0.8 && info->bits > 8 ? (int64_t)kg_random_below(random, 256) - 128
                                            : any_bits(random, info);
    }
}

// The range of values of an input that is used as an index.
struct bounds {
    const struct kg_problem *problem;
    const struct kg_tensor *tensor;
    int64_t low;
    int64_t high; // < low: unlimited
    bool found;
};

static bool reads(const struct kg_expr *expr, const struct kg_tensor *tensor)
{
    if (expr->kind == KG_EXPR_READ && expr->tensor == tensor)
        return true;
    for (int i = 0; i < expr->argument_count; i++)
        if (reads(expr->arguments[i], tensor))
            return true;
    return false;
}

static void bound_by(struct bounds *bounds, const struct kg_expr *expr)
{
    for (int i = 0; i < expr->argument_count; i++) {
        const struct kg_expr *argument = expr->arguments[i];
        bound_by(bounds, argument);
        int64_t extent;
        if (expr->kind != KG_EXPR_READ || !reads(argument, bounds->tensor) ||
            kg_lang_size_value(expr->tensor->dims[i], bounds->problem->sizes, &extent, NULL) !=
                KG_OK)
            continue;
        // A padded read is also tested one step outside.
        int64_t low = expr->pad ? -1 : 0, high = expr->pad ? extent : extent - 1;
        bounds->low = !bounds->found || low > bounds->low ? low : bounds->low;
        bounds->high = !bounds->found || high < bounds->high ? high : bounds->high;
        bounds->found = true;
    }
    if (expr->pad)
        bound_by(bounds, expr->pad);
}

static struct bounds find_bounds(const struct kg_problem *problem, int tensor)
{
    struct bounds bounds = {.problem = problem, .tensor = problem->op->tensors[tensor]};
    for (int i = 0; i < problem->op->statement_count; i++)
        bound_by(&bounds, problem->op->statements[i]->value);
    return bounds;
}

static int64_t within(struct kg_random *random, const struct bounds *bounds)
{
    if (bounds->high < bounds->low)
        return 0;
    uint64_t span = (uint64_t)bounds->high - (uint64_t)bounds->low + 1;
    double kind = kg_random_uniform(random); // mistakes are most likely at the limits
    if (kind < 0.05)
        return bounds->low;
    return kind < 0.1 ? bounds->high : bounds->low + (int64_t)kg_random_below(random, span);
}

// Inserts special values: at least one, and beyond that at most one in sixteen, so that most
// results stay ordinary.
static void sprinkle(const struct kg_problem *problem, int tensor, enum kg_input_class class,
                     struct kg_random *random, void *data)
{
    const struct kg_layout *layout = &problem->layouts[tensor];
    enum kg_dtype dtype = problem->op->tensors[tensor]->type.dtype;
    int64_t count = layout->elements / 16;
    count = count < 1 ? 1 : count > 6 ? 6 : count;
    for (int64_t i = 0; i < count && layout->elements > 0; i++) {
        int64_t at = 0;
        for (int d = 0; d < problem->op->tensors[tensor]->rank; d++)
            at += (int64_t)kg_random_below(random, (uint64_t)layout->shape[d]) * layout->stride[d];
        kg_dtype_store(dtype, data, (size_t)at,
                       class == KG_INPUT_NAN ? NAN : copysign(INFINITY, sign_of(random)));
    }
}

// The first `count` elements.
static void fill(const struct kg_problem *problem, int tensor, enum kg_input_class class,
                 uint64_t seed, int64_t count, void *data)
{
    const struct kg_tensor *info = problem->op->tensors[tensor];
    const struct kg_layout *layout = &problem->layouts[tensor];
    const struct kg_dtype_info *dtype = &kg_dtypes[info->type.dtype];
    struct kg_random random = kg_random_make(seed, (uint64_t)tensor);
    struct bounds bounds = find_bounds(problem, tensor);
    int64_t place[KG_MAX_RANK] = {0};
    for (int64_t i = 0; i < count; i++) {
        int64_t at = 0;
        for (int d = 0; d < info->rank; d++)
            at += place[d] * layout->stride[d];
        if (dtype->is_float)
            kg_dtype_store(info->type.dtype, data, (size_t)at, real_value(&random, class, dtype));
        else
            kg_dtype_store_integer(info->type.dtype, data, (size_t)at,
                                   bounds.found ? within(&random, &bounds)
                                                : integer_value(&random, class, dtype));
        for (int d = info->rank - 1; d >= 0 && ++place[d] == layout->shape[d]; d--)
            place[d] = 0;
    }
    if (dtype->is_float && (class == KG_INPUT_NAN || class == KG_INPUT_INFINITE))
        sprinkle(problem, tensor, class, &random, data);
}

void kg_inputs_fill(const struct kg_problem *problem, int tensor, enum kg_input_class class,
                    uint64_t seed, void *data)
{
    fill(problem, tensor, class, seed, problem->layouts[tensor].elements, data);
}

void kg_verify_fill(const struct kg_problem *problem, int tensor, uint64_t seed, void *data)
{
    kg_inputs_fill(problem, tensor, KG_INPUT_NORMAL, seed, data);
}

void kg_verify_fill_some(const struct kg_problem *problem, int tensor, uint64_t seed, int64_t count,
                         void *data)
{
    int64_t all = problem->layouts[tensor].elements;
    fill(problem, tensor, KG_INPUT_NORMAL, seed, count < all ? count : all, data);
}
