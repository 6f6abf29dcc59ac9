// Kernels that are wrong for certain values only: indices far outside, rows of infinities, the
// least integer, numbers below the normal ones, ties, and stores that round the wrong way. The gate
// must refuse each with any seed, and pass the same kernel without its fault.

#include "test.h"
#include "unit/verify/judge.h"

#include <float.h>
#include <math.h>

// Sanitizers look for errors of memory, which no seed brings about.
#ifdef __SANITIZE_ADDRESS__
#define SEEDS 1
#else
#define SEEDS 5
#endif

struct trial {
    const char *text;
    const char *choices;
    subject_run *run;
};

// Fault 0 is none: that kernel must pass.
static void try_faults(const struct trial *trial, int faults)
{
    for (int fault = 0; fault < faults; fault++)
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            const struct kg_policy policy = {.seed = seed};
            struct made made = make(trial->text, trial->choices);
            CHECK_STATUS(made.status, KG_OK, &made.error);
            struct kg_verdict verdict = judge(made.op, &policy, trial->run, &fault);
            if (verdict.passed != (fault == 0))
                fprintf(stderr, "%s, %s, fault %d, seed %d: passed %d: %s\n", made.op->name,
                        trial->choices, fault, (int)seed, verdict.passed, verdict.reason);
            CHECK(verdict.passed == (fault == 0));
            unmake(&made);
        }
}

static int64_t get_integer(const struct kg_problem *problem, void *const *tensors, int tensor,
                           int64_t i)
{
    return kg_dtype_load_integer(problem->op->tensors[tensor]->type.dtype, tensors[tensor],
                                 place_of(problem, tensor, i, 0));
}

static void put_integer(const struct kg_problem *problem, void *const *tensors, int tensor,
                        int64_t i, int64_t value)
{
    kg_dtype_store_integer(problem->op->tensors[tensor]->type.dtype, tensors[tensor],
                           place_of(problem, tensor, i, 0), value);
}

// ---- Indices

enum clamping {
    CLAMPS,
    ONLY_FROM_BELOW,
    ONLY_FROM_ABOVE,
    FROM_THE_END,
    IN_16_BITS,
    CLAMPING_COUNT
};

static int64_t clamped(int64_t index, int64_t size, enum clamping how)
{
    if (how == FROM_THE_END && index < 0)
        index += size;
    if (how == IN_16_BITS)
        index = (int16_t)index;
    if (index < 0)
        return how == ONLY_FROM_ABOVE ? size / 2 : 0;
    if (index >= size)
        return how == ONLY_FROM_BELOW ? size / 2 : size - 1;
    return index;
}

// Where an index is out of range, a kernel that does not clamp reads some other element.
static enum kg_status gather(void *user, const struct kg_problem *problem, void *const *tensors,
                             struct kg_error *error)
{
    (void)error;
    int64_t size = problem->layouts[0].shape[0], columns = problem->layouts[0].shape[1];
    for (int64_t b = 0; b < problem->layouts[1].shape[0]; b++)
        for (int64_t d = 0; d < columns; d++) {
            int64_t index = get_integer(problem, tensors, 1, b);
            index = clamped(index, size, *(const enum clamping *)user);
            put(problem, tensors, 2, b, d, get(problem, tensors, 0, index, d));
        }
    return KG_OK;
}

enum padding { PADS, ONE_STEP_ONLY, PADDING_COUNT };

static enum kg_status padded(void *user, const struct kg_problem *problem, void *const *tensors,
                             struct kg_error *error)
{
    (void)error;
    bool near = *(const enum padding *)user == ONE_STEP_ONLY;
    int64_t size = problem->layouts[0].shape[0];
    for (int64_t i = 0; i < problem->layouts[1].shape[0]; i++) {
        int64_t index = get_integer(problem, tensors, 1, i);
        bool pads = near ? index == -1 || index == size : index < 0 || index >= size;
        int64_t inside = clamped(index, size, CLAMPS);
        put(problem, tensors, 2, i, 0, pads ? 7 : get(problem, tensors, 0, inside, 0));
    }
    return KG_OK;
}

static void indices(void)
{
    try_faults(&(struct trial){"op embedding(table: f32[V, D], ids: i64[B]) -> (y: f32[B, D])\n"
                               "{ y[b, d] = table[ids[b], d] }",
                               NULL, gather},
               CLAMPING_COUNT);
    try_faults(&(struct trial){"op pick(x: f32[V], ids: i32[B]) -> (y: f32[B])\n"
                               "{ y[b] = pad(x[ids[b]], 7) }",
                               NULL, padded},
               PADDING_COUNT);
}

// ---- Rows that hold one special value

enum searching {
    SEARCHES,
    FROM_LARGEST_FINITE, // where a search begins: such a row has no element beyond it
    BEYOND_INFINITY,
    SKIPS_NAN,
    SEARCHING_COUNT
};

// `sign`: 1 for the largest, -1 for the smallest.
static int64_t best_of(const struct kg_problem *problem, void *const *tensors, int64_t p,
                       double sign, enum searching how)
{
    double best = how == FROM_LARGEST_FINITE ? (double)-FLT_MAX : -INFINITY;
    int64_t place = -1;
    for (int64_t d = 0; d < problem->layouts[0].shape[1]; d++) {
        double x = sign * get(problem, tensors, 0, p, d);
        bool first = place < 0 && how == SEARCHES;
        bool is_nan = isnan(x) && !isnan(best) && how != SKIPS_NAN;
        if (!first && !is_nan && !(x > best))
            continue;
        best = x;
        place = d;
    }
    return place;
}

static enum kg_status search(double sign, enum searching how, const struct kg_problem *problem,
                             void *const *tensors)
{
    for (int64_t p = 0; p < problem->layouts[0].shape[0]; p++)
        put_integer(problem, tensors, 1, p, best_of(problem, tensors, p, sign, how));
    return KG_OK;
}

static enum kg_status largest(void *user, const struct kg_problem *problem, void *const *tensors,
                              struct kg_error *error)
{
    (void)error;
    return search(1, *(const enum searching *)user, problem, tensors);
}

static enum kg_status smallest(void *user, const struct kg_problem *problem, void *const *tensors,
                               struct kg_error *error)
{
    (void)error;
    return search(-1, *(const enum searching *)user, problem, tensors);
}

// Maxima that begin at the largest finite value, over everything at once.
static enum kg_status whole_maximum(void *user, const struct kg_problem *problem,
                                    void *const *tensors, struct kg_error *error)
{
    (void)error;
    double best = *(const int *)user ? (double)-FLT_MAX : -INFINITY;
    for (int64_t i = 0; i < problem->layouts[0].shape[0]; i++)
        for (int64_t j = 0; j < problem->layouts[0].shape[1]; j++) {
            double x = get(problem, tensors, 0, i, j);
            best = isnan(x) || x > best ? x : best;
        }
    put(problem, tensors, 1, 0, 0, best);
    return KG_OK;
}

// ---- Places among two indices

enum placing {
    PLACES,
    LAST_OF_EQUALS,
    COLUMN_BY_COLUMN, // the first of equals in that order
    COUNTED_BY_COLUMNS,
    PLACE_IN_ITS_ROW,
    PLACING_COUNT
};

static enum kg_status place(void *user, const struct kg_problem *problem, void *const *tensors,
                            struct kg_error *error)
{
    (void)error;
    enum placing how = *(const enum placing *)user;
    int64_t rows = problem->layouts[0].shape[0], columns = problem->layouts[0].shape[1];
    int64_t best_row = -1, best_column = -1;
    double best = 0;
    for (int64_t n = 0; n < rows * columns; n++) {
        int64_t i = how == COLUMN_BY_COLUMN ? n % rows : n / columns;
        int64_t j = how == COLUMN_BY_COLUMN ? n / rows : n % columns;
        double x = get(problem, tensors, 0, i, j);
        bool better = isnan(x) ? !isnan(best) : x > best;
        bool again = how == LAST_OF_EQUALS && (x == best || (isnan(x) && isnan(best)));
        if (best_row >= 0 && !better && !again)
            continue;
        best = x;
        best_row = i;
        best_column = j;
    }
    int64_t position = how == COUNTED_BY_COLUMNS ? best_column * rows + best_row
                       : how == PLACE_IN_ITS_ROW ? best_column
                                                 : best_row * columns + best_column;
    put_integer(problem, tensors, 1, 0, best_row < 0 ? -1 : position);
    return KG_OK;
}

static void places(void)
{
    try_faults(&(struct trial){"op spot(x: f16[P, D]) -> (i: i64[]) { i[] = argmax(p, d) x[p, d] }",
                               NULL, place},
               PLACING_COUNT);
}

static void special_rows(void)
{
    try_faults(&(struct trial){"op best(x: f32[P, D]) -> (i: i64[P]) { i[p] = argmax(d) x[p, d] }",
                               NULL, largest},
               SEARCHING_COUNT);
    try_faults(&(struct trial){"op worst(x: f32[P, D]) -> (i: i32[P]) { i[p] = argmin(d) x[p, d] }",
                               NULL, smallest},
               SEARCHING_COUNT);
    try_faults(&(struct trial){"op most(x: f32[P, D]) -> (m: f32[]) { m[] = max(p, d) x[p, d] }",
                               NULL, whole_maximum},
               2);
}

// ---- Integers

enum division { DIVIDES, SATURATES, ONE_OVER_ZERO, ZERO_OVER_MINUS_ONE, DIVISION_COUNT };

static enum kg_status quotient(void *user, const struct kg_problem *problem, void *const *tensors,
                               struct kg_error *error)
{
    (void)error;
    enum division how = *(const enum division *)user;
    double least = kg_dtypes[problem->op->tensors[0]->type.dtype].smallest;
    for (int64_t i = 0; i < problem->layouts[0].shape[0]; i++) {
        int64_t x = get_integer(problem, tensors, 0, i), by = get_integer(problem, tensors, 1, i);
        int64_t result;
        if (by == 0)
            result = how == ONE_OVER_ZERO;
        else if (by == -1 && (double)x == least)
            result = how == SATURATES ? x - 1 : how == ZERO_OVER_MINUS_ONE ? 0 : x;
        else
            result = x / by - (x % by != 0 && (x < 0) != (by < 0));
        put_integer(problem, tensors, 2, i, result);
    }
    return KG_OK;
}

static void divisions(void)
{
    const char *text = "op quotient(x: T[N], z: T[N]) -> (y: T[N]) where T in i8 i16 i32\n"
                       "{ y[i] = x[i] / z[i] }";
    try_faults(&(struct trial){text, "T=i8", quotient}, DIVISION_COUNT);
    try_faults(&(struct trial){text, "T=i16", quotient}, DIVISION_COUNT);
    try_faults(&(struct trial){text, "T=i32", quotient}, DIVISION_COUNT);
}

enum narrowing { WRAPS, FROM_0, TO_LARGEST, BY_WAY_OF_I32, TO_THE_NEAREST, NARROWING_COUNT };

static enum kg_status truncated(void *user, const struct kg_problem *problem, void *const *tensors,
                                struct kg_error *error)
{
    (void)error;
    enum narrowing how = *(const enum narrowing *)user;
    double most = kg_dtypes[problem->op->tensors[1]->type.dtype].largest;
    for (int64_t i = 0; i < problem->layouts[0].shape[0]; i++) {
        double x = get(problem, tensors, 0, i, 0);
        x = how == FROM_0 && x < 0 ? 0 : x;
        x = how == TO_LARGEST && x > most ? most : x;
        x = how == BY_WAY_OF_I32 ? fmin(fmax(x, INT32_MIN), INT32_MAX) : x;
        x = how == TO_THE_NEAREST ? nearbyint(x) : trunc(x);
        put_integer(problem, tensors, 1, i,
                    isnan(x)       ? 0
                    : x >= 0x1p63  ? INT64_MAX
                    : x <= -0x1p63 ? INT64_MIN
                                   : (int64_t)x);
    }
    return KG_OK;
}

enum totalling { TOTALS, IN_32_BITS, WITH_A_SIGN, TOTALLING_COUNT };

static enum kg_status whole_total(void *user, const struct kg_problem *problem,
                                  void *const *tensors, struct kg_error *error)
{
    (void)error;
    enum totalling how = *(const enum totalling *)user;
    int64_t sum = 0;
    for (int64_t i = 0; i < problem->layouts[0].shape[0]; i++) {
        int64_t x = get_integer(problem, tensors, 0, i);
        bool is_narrow = problem->op->tensors[0]->type.dtype == KG_U16;
        sum += how != WITH_A_SIGN ? x : is_narrow ? (int16_t)x : (int32_t)x;
        sum = how == IN_32_BITS ? (int32_t)sum : sum;
    }
    put_integer(problem, tensors, 1, 0, sum);
    return KG_OK;
}

static void widths(void)
{
    const char *whole = "op whole(x: f32[N]) -> (y: T[N]) where T in u32 u16 i16\n"
                        "{ y[i] = cast(T, x[i]) }";
    const char *sum = "op total(x: T[N]) -> (y: i64[]) where T in u32 u16\n{ y[] = sum(i) x[i] }";
    try_faults(&(struct trial){whole, "T=u32", truncated}, NARROWING_COUNT);
    try_faults(&(struct trial){whole, "T=u16", truncated}, NARROWING_COUNT);
    try_faults(&(struct trial){sum, "T=u32", whole_total}, TOTALLING_COUNT);
    try_faults(&(struct trial){sum, "T=u16", whole_total}, 1);
}

// ---- Bits

enum shifting {
    SHIFTS,
    BY_6_BITS_OF_THE_COUNT, // as x86 does
    BY_5_BITS_OF_THE_COUNT,
    COPIES_NO_SIGN, // of an element of 32 bits
    STAYS_BELOW_0,
    FILLS_BEYOND_63,
    SHIFTING_COUNT
};

static enum kg_status shifted(void *user, const struct kg_problem *problem, void *const *tensors,
                              struct kg_error *error)
{
    (void)error;
    enum shifting how = *(const enum shifting *)user;
    for (int64_t i = 0; i < problem->layouts[0].shape[0]; i++) {
        int64_t x = get_integer(problem, tensors, 0, i), by = get_integer(problem, tensors, 1, i);
        bool out = by < 0 || by > 63;
        int64_t result = out ? (x < 0 ? -1 : 0) : x >> by;
        if (how == BY_6_BITS_OF_THE_COUNT)
            result = x >> (by & 63);
        else if (how == BY_5_BITS_OF_THE_COUNT)
            result = out ? result : x >> (by & 31);
        else if (how == COPIES_NO_SIGN)
            result = out ? result : (int64_t)((uint32_t)x >> (by & 31));
        else if (how == STAYS_BELOW_0 && by < 0)
            result = x;
        else if (how == FILLS_BEYOND_63 && by > 63)
            result = -1;
        put_integer(problem, tensors, 2, i, result);
    }
    return KG_OK;
}

static void shifts(void)
{
    try_faults(&(struct trial){"op shifted(x: i32[N], n: i32[N]) -> (y: i32[N])\n"
                               "{ y[i] = x[i] >> n[i] }",
                               NULL, shifted},
               SHIFTING_COUNT);
    try_faults(&(struct trial){"op shifted(x: i64[N], n: i8[N]) -> (y: i64[N])\n"
                               "{ y[i] = x[i] >> n[i] }",
                               NULL, shifted},
               SHIFTING_COUNT);
}

// ---- Stores

enum store {
    TO_NEAREST,
    TOWARDS_ZERO,
    AWAY_FROM_ZERO,
    DOWNWARDS,
    FLUSHES,
    HALVES_AWAY, // from here on only conversions without arithmetic tell
    BY_WAY_OF_F32,
    STORE_COUNT
};

static double stored(enum kg_dtype dtype, double value, enum store how)
{
    const struct kg_dtype_info *info = &kg_dtypes[dtype];
    double near = kg_dtype_round(dtype, value);
    if (!isfinite(near) || !isfinite(value))
        return near;
    if (how == BY_WAY_OF_F32)
        return kg_dtype_round(dtype, (double)(float)value);
    if (how == FLUSHES)
        return fabs(near) < info->smallest ? copysign(0, near) : near;
    double step = fmax(exp2(ilogb(value)), info->smallest) * info->epsilon;
    bool tie = fabs(value - near) == step / 2;
    if (how == HALVES_AWAY)
        return tie && fabs(near) < fabs(value) ? near + copysign(step, value) : near;
    if (how == TOWARDS_ZERO)
        return fabs(near) > fabs(value) ? near - copysign(step, value) : near;
    if (how == AWAY_FROM_ZERO)
        return fabs(near) < fabs(value) ? near + copysign(step, value) : near;
    return how == DOWNWARDS && near > value ? near - step : near;
}

// y = x * s of the same dtype.
static enum kg_status product(void *user, const struct kg_problem *problem, void *const *tensors,
                              struct kg_error *error)
{
    (void)error;
    enum kg_dtype dtype = problem->op->tensors[2]->type.dtype;
    for (int64_t i = 0; i < problem->layouts[2].shape[0]; i++)
        for (int64_t j = 0; j < problem->layouts[2].shape[1]; j++) {
            double value = get(problem, tensors, 0, i, j) * get(problem, tensors, 1, j, 0);
            value = dtype == KG_F64 ? value : (double)(float)value;
            put(problem, tensors, 2, i, j, stored(dtype, value, *(const enum store *)user));
        }
    return KG_OK;
}

// A mean of each row: as few results as an op has rows.
static enum kg_status row_means(void *user, const struct kg_problem *problem, void *const *tensors,
                                struct kg_error *error)
{
    (void)error;
    enum kg_dtype dtype = problem->op->tensors[1]->type.dtype;
    int64_t columns = problem->layouts[0].shape[1];
    for (int64_t i = 0; i < problem->layouts[0].shape[0]; i++) {
        double sum = 0;
        for (int64_t j = 0; j < columns; j++)
            sum += get(problem, tensors, 0, i, j);
        double mean = (double)(float)(sum / (double)columns);
        put(problem, tensors, 1, i, 0, stored(dtype, mean, *(const enum store *)user));
    }
    return KG_OK;
}

// A product of a matrix and a vector. Its inputs are no smaller than 2^-90, so that nothing but the
// bias of the results as a whole tells.
static enum kg_status row_products(void *user, const struct kg_problem *problem,
                                   void *const *tensors, struct kg_error *error)
{
    (void)error;
    enum kg_dtype dtype = problem->op->tensors[2]->type.dtype;
    for (int64_t i = 0; i < problem->layouts[0].shape[0]; i++) {
        float sum = 0;
        for (int64_t j = 0; j < problem->layouts[0].shape[1]; j++)
            sum += (float)get(problem, tensors, 0, i, j) * (float)get(problem, tensors, 1, j, 0);
        put(problem, tensors, 2, i, 0, stored(dtype, (double)sum, *(const enum store *)user));
    }
    return KG_OK;
}

static enum kg_status convert(void *user, const struct kg_problem *problem, void *const *tensors,
                              struct kg_error *error)
{
    (void)error;
    enum kg_dtype dtype = problem->op->tensors[1]->type.dtype;
    for (int64_t i = 0; i < problem->layouts[1].shape[0]; i++)
        put(problem, tensors, 1, i, 0,
            stored(dtype, get(problem, tensors, 0, i, 0), *(const enum store *)user));
    return KG_OK;
}

static void stores(void)
{
    const char *text = "op scale(x: T[P, D], s: T[D]) -> (y: T[P, D]) where T in f16 bf16 f8e4m3\n"
                       "{ y[p, d] = x[p, d] * s[d] }";
    try_faults(&(struct trial){text, "T=f16", product}, HALVES_AWAY);
    try_faults(&(struct trial){text, "T=bf16", product}, HALVES_AWAY);
    try_faults(&(struct trial){text, "T=f8e4m3", product}, HALVES_AWAY);
    text = "op means(x: T[P, D]) -> (y: T[P]) where T in f16 bf16 { y[p] = mean(d) x[p, d] }";
    try_faults(&(struct trial){text, "T=f16", row_means}, FLUSHES);
    try_faults(&(struct trial){text, "T=bf16", row_means}, FLUSHES);
    text = "op products(x: bf16[P, D], w: bf16[D]) -> (y: bf16[P])\n"
           "{ y[p] = sum(d) x[p, d] * w[d] }";
    try_faults(&(struct trial){text, NULL, row_products}, FLUSHES);
}

static void conversions(void)
{
    const char *text = "op convert(x: S[N]) -> (y: T[N]) where S in f32 f64, T in f16 bf16 f8e5m2\n"
                       "{ y[i] = cast(T, x[i]) }";
    try_faults(&(struct trial){text, "S=f64 T=f16", convert}, STORE_COUNT);
    try_faults(&(struct trial){text, "S=f64 T=bf16", convert}, STORE_COUNT);
    try_faults(&(struct trial){text, "S=f64 T=f8e5m2", convert}, STORE_COUNT);
    try_faults(&(struct trial){text, "S=f32 T=bf16", convert}, BY_WAY_OF_F32);
    text =
        "op store(x: S[N]) -> (y: T[N]) where S in f32 f64, T in f16 bf16 f8e5m2 { y[i] = x[i] }";
    try_faults(&(struct trial){text, "S=f64 T=f16", convert}, STORE_COUNT);
    try_faults(&(struct trial){text, "S=f64 T=bf16", convert}, STORE_COUNT);
    try_faults(&(struct trial){text, "S=f32 T=bf16", convert}, BY_WAY_OF_F32);
}

// Sums of two tensors, where all that is added is tiny.
static enum kg_status total(void *user, const struct kg_problem *problem, void *const *tensors,
                            struct kg_error *error)
{
    (void)error;
    for (int64_t i = 0; i < problem->layouts[2].shape[0]; i++) {
        float value = (float)get(problem, tensors, 0, i, 0) + (float)get(problem, tensors, 1, i, 0);
        bool flushes = *(const int *)user && fabsf(value) < FLT_MIN;
        put(problem, tensors, 2, i, 0, flushes ? 0 : (double)value);
    }
    return KG_OK;
}

static enum kg_status inverse(void *user, const struct kg_problem *problem, void *const *tensors,
                              struct kg_error *error)
{
    (void)error;
    for (int64_t i = 0; i < problem->layouts[1].shape[0]; i++) {
        double x = get(problem, tensors, 0, i, 0);
        bool loses_sign = *(const int *)user && x == 0;
        put(problem, tensors, 1, i, 0, 1 / (loses_sign ? 0 : x));
    }
    return KG_OK;
}

static void small_numbers(void)
{
    try_faults(&(struct trial){"op add(x: f32[N], z: f32[N]) -> (y: f32[N]) { y[i] = x[i] + z[i] }",
                               NULL, total},
               2);
    try_faults(
        &(struct trial){"op inverse(x: f32[N]) -> (y: f32[N]) { y[i] = 1 / x[i] }", NULL, inverse},
        2);
}

// What the gate says of its own impostors.
static void check_impostor(const char *text, const char *line)
{
    static const struct kg_policy policy = {.seed = 3};
    struct made made = make(text, NULL);
    struct kg_error error = {0};
    struct kg_gate *gate;
    CHECK_STATUS(kg_gate_make(&plain_device, made.op, &policy, &gate, &error), KG_OK, &error);
    struct kg_text report = {0};
    kg_gate_impostor_report(gate, &report);
    const char *found = strstr(kg_text_string(&report), line);
    if (!found)
        fprintf(stderr, "%s: %s\n%s", text, line, kg_text_string(&report));
    CHECK(found);
    kg_text_free(&report);
    kg_gate_free(gate);
    unmake(&made);
}

static void impostors_of_stores(void)
{
    const char *store = "op store(x: f32[N]) -> (y: bf16[N]) { y[i] = x[i] }";
    check_impostor(store, "truncated stores: rejected");
    check_impostor(store, "halves rounded away from zero: rejected");
    check_impostor(store, "denormals flushed to zero: rejected");
    const char *same = "op same(x: f16[N]) -> (y: f16[N]) { y[i] = x[i] }";
    check_impostor(same, "truncated stores: is the op itself");
    check_impostor(same, "halves rounded away from zero: is the op itself");
    check_impostor(same, "denormals flushed to zero: rejected");
    // Ties are not certain where something is computed.
    const char *scale = "op scale(x: f16[P, D], s: f16[D]) -> (y: f16[P, D])\n"
                        "{ y[p, d] = x[p, d] * s[d] }";
    check_impostor(scale, "truncated stores: rejected");
    check_impostor(scale, "halves rounded away from zero: is the op itself");
    check_impostor(scale, "denormals flushed to zero: rejected");
    // Functions may flush.
    const char *small = "op small(x: f32[N]) -> (y: f32[N]) { y[i] = sin(x[i]) }";
    check_impostor(small, "denormals flushed to zero: is the op itself");
}

TEST_MAIN(indices, places, special_rows, divisions, widths, shifts, stores, conversions,
          small_numbers, impostors_of_stores)
