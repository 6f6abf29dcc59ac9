// Draws single values. Each class has a distribution for floats, for integers, and for integers
// that are used as subscripts.

#include "verify/input_values.h"

#include <math.h>

// Matrix units treat numbers below the normal ones as zero, and some kernels split an f32 into
// parts of up to 22 bits less. In sums of products f32 and bf16 are therefore at least this large.
#define LEAST_FACTOR 0x1p-90
#define IN_TURN 64 // elements of a tensor whose limits take turns
// Factors of long products: see kg_input_source.
#define LONG_PRODUCT 256
#define LARGEST_POWER 0.0625
#define LARGEST_PRODUCT 256.0 // a power of two; half of the factors are above 1

static int64_t least_of(const struct kg_dtype_info *info)
{
    return info->is_signed ? (int64_t)(UINT64_MAX << (info->bits - 1)) : 0;
}

static int64_t largest_of(const struct kg_dtype_info *info)
{
    return (int64_t)(UINT64_MAX >> (64 - info->bits + info->is_signed));
}

static void limit(struct kg_input_source *source, const struct kg_range *range)
{
    const struct kg_dtype_info *info = &kg_dtypes[source->dtype];
    source->is_limited =
        range->given && kg_lang_range_of(range, source->dtype, &source->low, &source->high);
    source->least = range->least > least_of(info) ? range->least : least_of(info);
    source->most = range->most < largest_of(info) ? range->most : largest_of(info);
}

struct kg_input_source kg_input_source_make(const struct kg_problem *problem, int tensor,
                                            enum kg_input_class class)
{
    const struct kg_op *op = problem->op;
    struct kg_input_source source = {.class = class, .dtype = op->tensors[tensor]->type.dtype};
    const struct kg_dtype_info *info = &kg_dtypes[source.dtype];
    kg_input_uses_find(op, problem->sizes, tensor, &source.uses);
    source.tiny = info->smallest;
    limit(&source, &op->goal.ranges[tensor]);
    for (int to = 0; to < KG_DTYPE_COUNT; to++) // what a narrower output would hold as zero
        if (source.uses.narrower >> to & 1 && kg_dtypes[to].smallest > source.tiny)
            source.tiny = kg_dtypes[to].smallest;
    if (info->compute == KG_TYPE_F32 && source.tiny < LEAST_FACTOR && kg_input_uses_products(op))
        source.tiny = LEAST_FACTOR;
    int64_t length = 0; // of a product, at most
    for (int d = 0; d < op->tensors[tensor]->rank && source.uses.multiplied; d++)
        length =
            problem->layouts[tensor].shape[d] > length ? problem->layouts[tensor].shape[d] : length;
    if (length > LONG_PRODUCT)
        source.power = fmin(LARGEST_POWER, LARGEST_PRODUCT / (double)length);
    for (int i = 0; i < tensor; i++)
        source.before += kg_dtypes[op->tensors[i]->type.dtype].is_float == info->is_float;
    return source;
}

// ---- Ranges

bool kg_input_allowed(const struct kg_input_source *source, double value)
{
    return !source->is_limited || (value >= source->low && value <= source->high);
}

// A share of the way through a range with two ends.
static double part_of(const struct kg_input_source *source, double share)
{
    double value = source->low * (1 - share) + source->high * share;
    return fmin(fmax(value, source->low), source->high);
}

double kg_input_confine(const struct kg_input_source *source, double value,
                        struct kg_random *random)
{
    static const double few[] = {0, 0.5, 0.5, 1, 0.25};
    if (kg_input_allowed(source, value))
        return value;
    if (kg_input_allowed(source, -value))
        return -value;
    if (isinf(source->high))
        return fmin(source->low + fabs(value), kg_dtypes[source->dtype].largest);
    if (isinf(source->low))
        return fmax(source->high - fabs(value), -kg_dtypes[source->dtype].largest);
    if (source->class == KG_INPUT_TIES)
        return part_of(source, few[kg_random_below(random, 5)]);
    double share = kg_random_between(random, -0.1, 1.1); // mistakes are most likely at the ends
    return part_of(source, fmin(fmax(share, 0), 1));
}

static int64_t confine_integer(const struct kg_input_source *source, int64_t value,
                               struct kg_random *random)
{
    if (!source->is_limited || (value >= source->least && value <= source->most))
        return value;
    uint64_t span = (uint64_t)source->most - (uint64_t)source->least;
    double kind = kg_random_uniform(random);
    if (kind < 0.2)
        return kind < 0.1 ? source->least : source->most;
    return (int64_t)((uint64_t)source->least + kg_random_below(random, span + 1));
}

// ---- Floats

static double sign_of(struct kg_random *random)
{
    return kg_random_next(random) & 1 ? 1 : -1;
}

// 2 to a power between `low` and `high`; a straight line between whole powers, because C libraries
// round exp2 differently.
static double power_between(struct kg_random *random, double low, double high)
{
    double exponent = kg_random_between(random, low, high), whole = floor(exponent);
    return ldexp(1 + (exponent - whole), (int)whole);
}

static double normal(struct kg_random *random)
{
    double value = kg_random_normal(random);
    double kind = kg_random_uniform(random);
    if (kind < 0.6)
        return value;
    return value * (kind < 0.98 ? power_between(random, -5, 3) : 32);
}

static double tiny(const struct kg_input_source *source, struct kg_random *random)
{
    double kind = kg_random_uniform(random), size;
    if (source->uses.searched && source->class == KG_INPUT_DENORMAL)
        kind *= 0.75; // none that is normal, or it would be what every row's search finds
    if (kind < 0.6)
        size = kg_random_uniform(random);
    else if (kind < 0.75)
        size = power_between(random, -kg_dtypes[source->dtype].fraction, 0);
    else
        size = kg_random_between(random, 0.5, 4);
    return sign_of(random) * source->tiny * size;
}

// Casts to integers differ between targets from where their dtypes end to where 64 bits do.
static double beyond_integers(struct kg_random *random, const struct kg_dtype_info *info)
{
    enum { LEAST_BITS = 4, MOST_BITS = 65 };
    double most = fmin(MOST_BITS, (double)ilogb(info->largest));
    return sign_of(random) * power_between(random, LEAST_BITS, most);
}

static double largest(const struct kg_input_source *source, struct kg_random *random)
{
    const struct kg_dtype_info *info = &kg_dtypes[source->dtype];
    double kind = kg_random_uniform(random);
    if (source->uses.truncated && kg_random_uniform(random) < 0.5)
        return beyond_integers(random, info);
    if (kind < 0.2)
        return sign_of(random) * info->largest;
    return kind < 0.7 ? sign_of(random) * info->largest * kg_random_uniform(random)
                      : normal(random);
}

static enum kg_dtype draw_narrower(unsigned choices, struct kg_random *random)
{
    uint64_t skipped = kg_random_below(random, (uint64_t)__builtin_popcount(choices));
    for (; skipped > 0; skipped--)
        choices &= choices - 1;
    return (enum kg_dtype)__builtin_ctz(choices);
}

// A middle between two neighbours of a narrower dtype, or one step of the own dtype beside it,
// where rounding twice goes wrong.
static double half(const struct kg_input_source *source, struct kg_random *random)
{
    const struct kg_dtype_info *own = &kg_dtypes[source->dtype];
    const struct kg_dtype_info *to = &kg_dtypes[draw_narrower(source->uses.narrower, random)];
    double kind = kg_random_uniform(random), sign = sign_of(random);
    bool fits = own->fraction > to->fraction;
    if (fits && kind < 0.02 && own->largest > to->largest) // between the largest and infinity
        return sign * (to->largest + to->epsilon / 2 * ldexp(1, ilogb(to->largest)));
    int bits = fits ? to->fraction : own->fraction;
    double steps = (double)kg_random_below(random, (uint64_t)1 << bits) + 0.5;
    if (!fits || kind < 0.2) // below the narrower dtype's normal values
        return sign * steps * to->smallest * to->epsilon;
    double value = (1 + steps * to->epsilon) * ldexp(1, (int)kg_random_below(random, 6) - 3);
    double beside = kind < 0.6 ? 0 : kind < 0.8 ? -1 : 1;
    return sign * (value + beside * own->epsilon * ldexp(1, ilogb(value)));
}

double kg_input_centre(enum kg_dtype dtype, bool huge, struct kg_random *random)
{
    double size = huge ? kg_dtypes[dtype].largest * kg_random_between(random, 0.26, 0.45)
                       : power_between(random, 3, 8);
    return sign_of(random) * size;
}

// Differences are half as precise as the values.
static double near(const struct kg_input_source *source, struct kg_random *random)
{
    int bits = kg_dtypes[source->dtype].fraction / 2;
    return source->centre * (1 + ldexp(kg_random_between(random, -1, 1), -bits));
}

static double draw_real(const struct kg_input_source *source, struct kg_random *random)
{
    static const double few[] = {-1, 0.5, 0.5, 2, -0.25};
    switch (source->class) {
    case KG_INPUT_ZERO:
        return kg_random_uniform(random) < 0.9 ? copysign(0, sign_of(random)) : normal(random);
    case KG_INPUT_DENORMAL:
        return tiny(source, random);
    case KG_INPUT_TINY:
        return source->is_ordinary ? normal(random) : tiny(source, random);
    case KG_INPUT_HUGE:
        return largest(source, random);
    case KG_INPUT_TIES:
        return few[kg_random_below(random, 5)];
    case KG_INPUT_HALVES:
        return source->uses.narrower ? half(source, random) : normal(random);
    case KG_INPUT_WHOLE:
        return copysign((double)kg_random_below(random, 5), sign_of(random));
    case KG_INPUT_CLOSE:
        return near(source, random);
    default:
        return source->power > 0
                   ? sign_of(random) * power_between(random, -source->power, source->power)
                   : normal(random);
    }
}

double kg_input_real(const struct kg_input_source *source, struct kg_random *random)
{
    return kg_input_confine(source, draw_real(source, random), random);
}

// ---- Integers

static int64_t any_bits(struct kg_random *random, const struct kg_dtype_info *info)
{
    int unused = 64 - info->bits;
    uint64_t bits = kg_random_next(random) << unused;
    return info->is_signed ? (int64_t)bits >> unused : (int64_t)(bits >> unused);
}

static int64_t small(struct kg_random *random, const struct kg_dtype_info *info)
{
    return (int64_t)kg_random_below(random, 16) - (info->is_signed ? 8 : 0);
}

// The least integer divided by -1 wraps, and division by 0 gives 0. The first elements of all
// tensors together have every pair of these values.
static int64_t limits(const struct kg_input_source *source, uint64_t number,
                      struct kg_random *random)
{
    const struct kg_dtype_info *info = &kg_dtypes[source->dtype];
    const int64_t choices[] = {least_of(info), info->is_signed ? -1 : 1, 0, largest_of(info)};
    if (number < IN_TURN)
        return choices[number >> 2 * (source->before % 3) & 3];
    double kind = kg_random_uniform(random);
    if (kind < 0.75)
        return choices[kg_random_below(random, 4)];
    return kind < 0.85 ? least_of(info) + 1 : small(random, info);
}

static int64_t held(const struct kg_dtype_info *info, int64_t value)
{
    value = value > largest_of(info) ? largest_of(info) : value;
    return value < least_of(info) ? least_of(info) : value;
}

// Counts of shifts: those at which hardware and languages differ, and any that move a part.
static int64_t shift_count(const struct kg_input_source *source, uint64_t number,
                           struct kg_random *random)
{
    const struct kg_dtype_info *info = &kg_dtypes[source->dtype];
    const int64_t choices[] = {
        0, -1, 63, 64, 1, 31, 32, 65, 33, 8, 16, 7, largest_of(info), least_of(info)};
    enum { CHOICES = sizeof choices / sizeof choices[0] };
    if (source->class == KG_INPUT_LIMITS || source->class == KG_INPUT_HUGE)
        return held(info, choices[number % CHOICES]);
    return held(info, (int64_t)kg_random_below(random, 70) - 2);
}

static int64_t truth(const struct kg_input_source *source, struct kg_random *random)
{
    return kg_random_uniform(random) < (source->class == KG_INPUT_ZERO ? 0.1 : 0.5);
}

static int64_t plain_integer(const struct kg_input_source *source, uint64_t number,
                             struct kg_random *random)
{
    const struct kg_dtype_info *info = &kg_dtypes[source->dtype];
    double kind = kg_random_uniform(random);
    switch (source->class) {
    case KG_INPUT_ZERO:
        return kind < 0.9 ? 0 : small(random, info);
    case KG_INPUT_HUGE:
        if (kind < 0.6)
            return kind < 0.4 ? largest_of(info) : least_of(info);
        return any_bits(random, info);
    case KG_INPUT_TIES:
        return (int64_t)kg_random_below(random, 3);
    case KG_INPUT_WHOLE:
        return small(random, info);
    case KG_INPUT_LIMITS:
        return limits(source, number, random);
    default:
        if (kind < 0.5)
            return small(random, info);
        return kind < 0.8 && info->bits > 8 ? (int64_t)kg_random_below(random, 256) - 128
                                            : any_bits(random, info);
    }
}

// ---- Subscripts

static int64_t inside(const struct kg_input_uses *uses, struct kg_random *random)
{
    if (uses->high < uses->low)
        return 0;
    uint64_t span = (uint64_t)uses->high - (uint64_t)uses->low + 1;
    double kind = kg_random_uniform(random); // mistakes are most likely at the limits
    if (kind < 0.05)
        return uses->low;
    return kind < 0.1 ? uses->high : uses->low + (int64_t)kg_random_below(random, span);
}

// In turn one step outside, as far as the dtype goes, inside, and up to four times the dimension
// away, so that even a few elements have most of them.
static int64_t outside(const struct kg_input_source *source, uint64_t number,
                       struct kg_random *random)
{
    const struct kg_input_uses *uses = &source->uses;
    const struct kg_dtype_info *info = &kg_dtypes[source->dtype];
    int64_t span = uses->high < uses->low ? 1 : uses->high - uses->low + 1;
    int64_t way = 1 + (int64_t)kg_random_below(random, 4 * (uint64_t)span);
    const int64_t choices[] = {uses->low - 1,       uses->high + 1,  largest_of(info),
                               least_of(info),      uses->low - way, uses->high + way,
                               inside(uses, random)};
    int64_t value = choices[number % (sizeof choices / sizeof choices[0])];
    return held(info, value); // the dtype may not reach as far as that
}

// An index is compared with it: where that runs, and all the way as often as not.
static int64_t position(const struct kg_input_source *source, struct kg_random *random)
{
    const struct kg_dtype_info *info = &kg_dtypes[source->dtype];
    int64_t extent = source->uses.extent;
    bool whole = kg_random_uniform(random) < 0.4;
    return held(info, whole ? extent : (int64_t)kg_random_below(random, (uint64_t)extent + 1));
}

static int64_t draw_integer(const struct kg_input_source *source, uint64_t number,
                            struct kg_random *random)
{
    if (source->uses.is_index)
        return source->class == KG_INPUT_OUTSIDE ? outside(source, number, random)
                                                 : inside(&source->uses, random);
    if (kg_dtype_is_truth(source->dtype))
        return truth(source, random);
    if (source->uses.is_count)
        return shift_count(source, number, random);
    bool far = source->class == KG_INPUT_LIMITS || source->class == KG_INPUT_HUGE;
    if (source->uses.extent > 0 && !far && kg_random_uniform(random) < 0.5)
        return position(source, random);
    return plain_integer(source, number, random);
}

int64_t kg_input_integer(const struct kg_input_source *source, uint64_t number,
                         struct kg_random *random)
{
    return confine_integer(source, draw_integer(source, number, random), random);
}
