// Impostors: kernels with a planted fault that weak checks do not detect. Each writes the outputs
// of a case, computed from the reference's values.

#include "verify/case.h"
#include "verify/program.h"
#include "verify/roundings.h"

#include <math.h>
#include <string.h>

// One output of a case, from which an impostor computes its results.
struct stage {
    const struct kg_case *item;
    const struct kg_expected *expected;
    enum kg_dtype dtype;
    int64_t row; // length of the last dimension, 1 for a scalar
};

struct number {
    double real;
    int64_t integer;
    bool unwritten;
};

static struct number right(const struct stage *stage, int64_t n)
{
    const struct kg_expected *expected = stage->expected;
    struct number result = {.real = kg_dtype_round(stage->dtype, expected->value[n])};
    if (expected->integer)
        result.integer = expected->integer[n];
    return result;
}

static struct number zeros(const struct stage *stage, int64_t n)
{
    (void)stage, (void)n;
    return (struct number){0};
}

static struct number constant(const struct stage *stage, int64_t n)
{
    (void)n;
    return right(stage, 0);
}

static struct number copy(const struct stage *stage, int64_t n)
{
    const struct kg_problem *problem = stage->item->problem;
    const struct kg_layout *layout = &problem->layouts[0];
    if (problem->op->input_count == 0 || layout->elements == 0)
        return (struct number){0};
    const struct kg_tensor *input = problem->op->tensors[0];
    size_t at = (size_t)kg_layout_offset(layout, input->rank, n % layout->elements);
    const void *data = stage->item->inputs[0];
    struct number result = {.real = kg_dtype_load(input->type.dtype, data, at),
                            .integer = kg_dtype_load_integer(input->type.dtype, data, at)};
    if (!kg_dtypes[input->type.dtype].is_float)
        result.real = (double)result.integer;
    return result;
}

static struct number stale(const struct stage *stage, int64_t n)
{
    (void)stage, (void)n;
    return (struct number){.unwritten = true};
}

static struct number half_written(const struct stage *stage, int64_t n)
{
    return n < stage->expected->count / 2 ? right(stage, n) : stale(stage, n);
}

static struct number last_unwritten(const struct stage *stage, int64_t n)
{
    return n == stage->expected->count - 1 ? stale(stage, n) : right(stage, n);
}

static struct number tail_repeated(const struct stage *stage, int64_t n)
{
    bool is_tail = n % stage->row == stage->row - 1 && stage->row > 1;
    return right(stage, is_tail ? n - 1 : n);
}

static struct number shifted(const struct stage *stage, int64_t n)
{
    return right(stage, (n + 1) % stage->expected->count);
}

static struct number negated(const struct stage *stage, int64_t n)
{
    struct number result = right(stage, n);
    result.real = -result.real;
    result.integer = (int64_t)(0 - (uint64_t)result.integer);
    return result;
}

static struct number absolute(const struct stage *stage, int64_t n)
{
    struct number result = right(stage, n);
    return result.real < 0 ? negated(stage, n) : result;
}

static struct number nan_dropped(const struct stage *stage, int64_t n)
{
    struct number result = right(stage, n);
    result.real = isnan(result.real) ? 0 : result.real;
    return result;
}

// What is too large, which some dtypes store as NaN, becomes the largest value.
static struct number clipped(const struct stage *stage, int64_t n)
{
    struct number result = right(stage, n);
    double value = stage->expected->value[n];
    if (!isfinite(result.real) && !isnan(value))
        result.real = copysign(kg_dtypes[stage->dtype].largest, value);
    return result;
}

// Removes three bits of the dtype's precision; of f32 and f64, the bits that an 11-bit accumulation
// loses.
static struct number coarse(const struct stage *stage, int64_t n)
{
    struct number result = right(stage, n);
    const struct kg_dtype_info *info = &kg_dtypes[stage->dtype];
    if (!info->is_float || !isfinite(result.real) || result.real == 0)
        return result;
    double step = info->bits > 16 ? 0x1p-10 : info->epsilon * 8;
    int exponent = ilogb(result.real);
    double scaled = ldexp(result.real, -exponent); // in [1, 2)
    result.real = ldexp(rint(scaled / step) * step, exponent);
    return result;
}

// ---- Stores

// The distance between neighbours where the value is.
static double step_at(const struct stage *stage, double value)
{
    return 2 * kg_rounding_half_step(stage->dtype, value);
}

static bool is_stored_as_number(const struct stage *stage, int64_t n)
{
    return kg_dtypes[stage->dtype].is_float && isfinite(stage->expected->value[n]);
}

static struct number truncated(const struct stage *stage, int64_t n)
{
    struct number result = right(stage, n);
    double value = stage->expected->value[n];
    if (!is_stored_as_number(stage, n))
        return result;
    if (!isfinite(result.real))
        result.real = copysign(kg_dtypes[stage->dtype].largest, value);
    else if (fabs(result.real) > fabs(value))
        result.real -= copysign(step_at(stage, value), value);
    return result;
}

static struct number halves_away(const struct stage *stage, int64_t n)
{
    struct number result = right(stage, n);
    double value = stage->expected->value[n], step = step_at(stage, value);
    if (is_stored_as_number(stage, n) && fabs(value) - fabs(result.real) == step / 2)
        result.real += copysign(step, value);
    return result;
}

static struct number flushed(const struct stage *stage, int64_t n)
{
    struct number result = right(stage, n);
    if (is_stored_as_number(stage, n) && fabs(result.real) < kg_dtypes[stage->dtype].smallest)
        result.real = copysign(0, result.real);
    return result;
}

// Tolerances accept single values that are truncated. Enough of them are a bias, that of a store.
static bool truncation_shows(const struct stage *stage)
{
    struct kg_roundings roundings = {0};
    for (int64_t n = 0; n < stage->expected->count; n++)
        if (is_stored_as_number(stage, n))
            kg_roundings_note(&roundings, stage->dtype, stage->expected->value[n],
                              stage->expected->slack[n], truncated(stage, n).real);
    return kg_roundings_biased(&roundings, NULL, NULL);
}

// Beside large values, tolerances accept zeros for what is below the normal ones.
static bool flush_shows(const struct stage *stage)
{
    const struct kg_expected *expected = stage->expected;
    double smallest = kg_dtypes[stage->dtype].smallest, largest = 0;
    bool is_lost = false;
    for (int64_t n = 0; n < expected->count; n++) {
        double size = fabs(expected->value[n]);
        double unsure = kg_compare_unavoidable(stage->dtype, size, expected->slack[n]);
        largest = isinf(size) || size > largest ? size : largest;
        is_lost |= size < smallest / 2 && size > 2 * unsure + smallest / 256;
    }
    return is_lost && largest <= 64 * smallest;
}

struct impostor {
    const char *name;
    struct number (*play)(const struct stage *stage, int64_t n);
    // Faults of stores that the tolerances cover in most outputs: whether they must be noticed in
    // this one. NULL: always.
    bool (*shows)(const struct stage *stage);
};

static const struct impostor impostors[] = {
    {"zeros", zeros, NULL},
    {"a constant", constant, NULL},
    {"a copy of the first input", copy, NULL},
    {"stale output", stale, NULL},
    {"half of the output", half_written, NULL},
    {"all but the last element", last_unwritten, NULL},
    {"the tail repeats its neighbour", tail_repeated, NULL},
    {"shifted by one", shifted, NULL},
    {"negated", negated, NULL},
    {"absolute values", absolute, NULL},
    {"NaN becomes 0", nan_dropped, NULL},
    {"infinity is clipped", clipped, NULL},
    {"low precision", coarse, NULL},
    {"truncated stores", truncated, truncation_shows},
    {"halves rounded away from zero", halves_away, NULL},
    {"denormals flushed to zero", flushed, flush_shows},
};

int kg_gate_impostor_count(void)
{
    return (int)(sizeof impostors / sizeof impostors[0]);
}

const char *kg_gate_impostor_name(int index)
{
    return index < 0 || index >= kg_gate_impostor_count() ? NULL : impostors[index].name;
}

static struct stage open_stage(const struct kg_case *item, int output)
{
    const struct kg_expected *expected = &item->expected[0][output];
    int tensor = item->problem->op->input_count + output;
    return (struct stage){.item = item,
                          .expected = expected,
                          .dtype = item->problem->op->tensors[tensor]->type.dtype,
                          .row = expected->rank ? expected->extent[expected->rank - 1] : 1};
}

void kg_impostor_run(int impostor, const struct kg_case *item, unsigned char *image)
{
    const struct kg_op *op = item->problem->op;
    for (int o = 0; o < op->output_count; o++) {
        struct stage stage = open_stage(item, o);
        int tensor = op->input_count + o;
        const struct kg_layout *layout = &item->problem->layouts[tensor];
        void *data = image + item->image.offset[tensor];
        for (int64_t n = 0; n < stage.expected->count; n++) {
            struct number number = impostors[impostor].play(&stage, n);
            size_t at = (size_t)kg_layout_offset(layout, op->tensors[tensor]->rank, n);
            if (number.unwritten)
                continue;
            if (kg_dtypes[stage.dtype].is_float)
                kg_dtype_store(stage.dtype, data, at, number.real);
            else
                kg_dtype_store_integer(stage.dtype, data, at, number.integer);
        }
    }
}

static bool are_same(const struct stage *stage, struct number number, struct number other)
{
    if (number.unwritten || !kg_dtypes[stage->dtype].is_float)
        return !number.unwritten && number.integer == other.integer;
    return number.real == other.real || (isnan(number.real) && isnan(other.real));
}

bool kg_impostor_is_right(int impostor, const struct kg_case *item)
{
    for (int o = 0; o < item->problem->op->output_count; o++) {
        struct stage stage = open_stage(item, o);
        for (int64_t n = 0; n < stage.expected->count; n++)
            if (!are_same(&stage, impostors[impostor].play(&stage, n), right(&stage, n)))
                return false;
    }
    return true;
}

// Must the output be rounded correctly where nothing is computed?
static bool is_strict(const struct stage *stage)
{
    return !stage->item->problem->op->goal.tolerance[stage->dtype].given;
}

// Is the number within the unavoidable rounding error?
static bool is_right(const struct stage *stage, struct number number, int64_t n)
{
    const struct kg_expected *expected = stage->expected;
    if (isinf(expected->slack[n]))
        return true;
    if (number.unwritten)
        return false;
    if (expected->integer)
        return kg_integers_wrap(stage->dtype, number.integer) == expected->integer[n];
    double value = expected->value[n];
    double rounded = kg_dtype_round(stage->dtype, value);
    double got = kg_dtype_round(stage->dtype, number.real);
    if (!isfinite(rounded) || !isfinite(got))
        return got == rounded || (isnan(got) && isnan(rounded));
    if (expected->slack[n] == 0 && is_strict(stage))
        return got == rounded;
    return fabs(got - value) <= kg_compare_unavoidable(stage->dtype, value, expected->slack[n]);
}

static bool equals(const struct impostor *impostor, const struct stage *stage)
{
    bool shows = !impostor->shows || (is_strict(stage) && impostor->shows(stage));
    for (int64_t n = 0; n < stage->expected->count; n++) {
        bool is_exact = stage->expected->slack[n] == 0 && is_strict(stage);
        if ((shows || is_exact) && !is_right(stage, impostor->play(stage, n), n))
            return false;
    }
    return true;
}

bool kg_impostor_equals(int impostor, const struct kg_case *item)
{
    for (int o = 0; o < item->problem->op->output_count; o++) {
        struct stage stage = open_stage(item, o);
        if (!equals(&impostors[impostor], &stage))
            return false;
    }
    return true;
}
