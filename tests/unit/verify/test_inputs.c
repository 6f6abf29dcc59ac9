// Classes of inputs: which apply to an op, what their values are, and how large tensors are filled.

#include "support/sample_problem.h"
#include "test.h"
#include "verify/gate.h"
#include "verify/inputs.h"

#include <math.h>
#include <time.h>

#define BIT(class) (1u << KG_INPUT_##class)
#define ANY_FLOATS                                                                                 \
    (BIT(NORMAL) | BIT(ZERO) | BIT(DENORMAL) | BIT(HUGE) | BIT(NAN) | BIT(INFINITE) | BIT(LARGE) | \
     BIT(CLOSE) | BIT(TIES) | BIT(WHOLE))
#define ANY_INTEGERS (BIT(NORMAL) | BIT(ZERO) | BIT(HUGE) | BIT(TIES) | BIT(WHOLE) | BIT(LIMITS))

static const struct {
    const char *text;
    unsigned classes;
} applications[] = {
    {"op f(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] * 2 }", ANY_FLOATS},
    {"op f(x: f32[N], z: f16[N]) -> (y: f32[N]) { y[i] = x[i] + z[i] }", ANY_FLOATS | BIT(TINY)},
    {"op f(x: f32[N]) -> (y: bf16[N]) { y[i] = x[i] }", ANY_FLOATS | BIT(HALVES)},
    {"op f(x: f32[N]) -> (y: f32[N]) { y[i] = cast(f16, x[i]) * 3 }", ANY_FLOATS | BIT(HALVES)},
    // Fewer exponents are narrower, too.
    {"op f(x: bf16[N]) -> (y: f16[N]) { y[i] = x[i] }", ANY_FLOATS | BIT(HALVES)},
    {"op f(x: f8e5m2[N]) -> (y: f16[N]) { y[i] = x[i] }", ANY_FLOATS},
    {"op f(x: f32[P, D]) -> (i: i64[P]) { i[p] = argmax(d) x[p, d] }", ANY_FLOATS | BIT(ROWS)},
    {"op f(x: f32[P, D]) -> (y: f32[P, D])\n"
     "{ z[p, d] = x[p, d] * 2\n y[p, d] = min(k <= d) z[p, k] }",
     ANY_FLOATS | BIT(ROWS)},
    // What is searched is a sum.
    {"op f(x: f32[P, D]) -> (y: f32[]) { y[] = max(p) (sum(d) x[p, d]) }", ANY_FLOATS | BIT(ROWS)},
    {"op f(x: f32[P, D]) -> (y: f32[]) { y[] = sum(p) x[p, 0] }", ANY_FLOATS},
    {"op f(x: i32[N]) -> (y: i32[N]) { y[i] = x[i] * 2 }", ANY_INTEGERS},
    {"op f(x: i32[P, D]) -> (i: i64[P]) { i[p] = argmax(d) x[p, d] }", ANY_INTEGERS},
    {"op f(m: bool[N]) -> (y: bool[N]) { y[i] = !m[i] }", BIT(NORMAL) | BIT(ZERO)},
    {"op f(t: f32[V], i: i64[N]) -> (y: f32[N]) { y[n] = t[i[n]] }", ANY_FLOATS | BIT(OUTSIDE)},
    {"op f(i: i64[N]) -> (y: i64[N]) { y[n] = pad(i[i[n] + 1], 0) }", BIT(NORMAL) | BIT(OUTSIDE)},
    {"op f(t: f32[V], i: i8[N], k: u4[N]) -> (y: f32[N]) { y[n] = t[i[n]] * k[n] }",
     ANY_FLOATS | BIT(LIMITS) | BIT(OUTSIDE)},
};

static void which_apply(void)
{
    for (size_t i = 0; i < sizeof applications / sizeof applications[0]; i++) {
        struct made made = make(applications[i].text, NULL);
        CHECK_STATUS(made.status, KG_OK, &made.error);
        for (int class = 0; class < KG_INPUT_CLASS_COUNT; class ++) {
            bool wanted = applications[i].classes >> class & 1;
            bool applies = kg_inputs_class_applies(made.op, (enum kg_input_class) class);
            if (applies != wanted)
                fprintf(stderr, "%s\n  %s: %d\n", applications[i].text, kg_input_class_names[class],
                        applies);
            CHECK(applies == wanted);
        }
        unmake(&made);
    }
}

// ---- Values

struct filled {
    struct made made;
    void *data;
    int64_t count;
    enum kg_dtype dtype;
};

static struct filled fill(const char *text, const char *sizes, int input, enum kg_input_class class,
                          uint64_t seed)
{
    struct filled filled = {.made = make(text, sizes)};
    CHECK_STATUS(filled.made.status, KG_OK, &filled.made.error);
    const struct kg_layout *layout = &filled.made.problem->layouts[input];
    filled.count = layout->elements;
    filled.dtype = filled.made.op->tensors[input]->type.dtype;
    filled.data = calloc(layout->bytes + 1, 1);
    kg_inputs_fill(filled.made.problem, input, class, seed, filled.data);
    return filled;
}

static double real(const struct filled *filled, int64_t n)
{
    return kg_dtype_load(filled->dtype, filled->data, (size_t)n);
}

static int64_t integer(const struct filled *filled, int64_t n)
{
    return kg_dtype_load_integer(filled->dtype, filled->data, (size_t)n);
}

static void release(struct filled *filled)
{
    free(filled->data);
    unmake(&filled->made);
}

// A few elements have one index of every kind.
static void indices_outside(void)
{
    const char *text = "op f(t: f32[V], i: i32[N]) -> (y: f32[N]) { y[n] = t[i[n]] }";
    struct filled filled = fill(text, "V=10 N=7", 1, KG_INPUT_OUTSIDE, 3);
    bool below = false, above = false, least = false, largest = false, inside = false;
    for (int64_t n = 0; n < filled.count; n++) {
        int64_t value = integer(&filled, n);
        below |= value == -1;
        above |= value == 10;
        least |= value == INT32_MIN;
        largest |= value == INT32_MAX;
        inside |= value >= 0 && value < 10;
    }
    CHECK(below && above && least && largest && inside);
    release(&filled);
    // Other classes stay inside; where the read is padded, one step is allowed.
    for (int class = 0; class < KG_INPUT_OUTSIDE; class ++) {
        filled = fill(text, "V=10 N=900", 1, (enum kg_input_class) class, 3);
        for (int64_t n = 0; n < filled.count; n++)
            CHECK(integer(&filled, n) >= 0 && integer(&filled, n) < 10);
        release(&filled);
    }
    // What does not fit the dtype is its limit.
    filled = fill("op f(t: f32[V], i: u8[N]) -> (y: f32[N]) { y[n] = t[i[n]] }", "V=1000 N=70", 1,
                  KG_INPUT_OUTSIDE, 3);
    int64_t highest = 0;
    for (int64_t n = 0; n < filled.count; n++)
        highest = integer(&filled, n) > highest ? integer(&filled, n) : highest;
    CHECK(highest == 255);
    release(&filled);
}

// A few elements have a count of every kind.
static void counts_of_shifts(void)
{
    const int64_t wanted[] = {-1, 0, 1, 31, 32, 63, 64, INT32_MIN, INT32_MAX};
    enum { WANTED = sizeof wanted / sizeof wanted[0] };
    struct filled filled = fill("op f(x: i64[N], n: i32[N]) -> (y: i64[N])\n"
                                "{ y[i] = x[i] << (n[i] + 1) }",
                                "N=16", 1, KG_INPUT_LIMITS, 3);
    bool found[WANTED] = {false};
    for (int64_t n = 0; n < filled.count; n++)
        for (int w = 0; w < WANTED; w++)
            found[w] |= integer(&filled, n) == wanted[w];
    for (int w = 0; w < WANTED; w++)
        CHECK(found[w]);
    release(&filled);
    // Others are mostly in range.
    filled = fill("op f(x: i64[N], n: u8[N]) -> (y: i64[N]) { y[i] = x[i] >> n[i] }", "N=1000", 1,
                  KG_INPUT_NORMAL, 3);
    int64_t inside = 0, beyond = 0;
    for (int64_t n = 0; n < filled.count; n++) {
        inside += integer(&filled, n) < 64;
        beyond += integer(&filled, n) >= 64;
    }
    CHECK(inside > 800 && beyond > 0);
    release(&filled);
}

static void rows(void)
{
    const char *text = "op f(x: f32[A, B, C]) -> (y: f32[A, C]) { y[a, c] = min(b) x[a, b, c] }";
    struct filled filled = fill(text, "A=3 B=5 C=4", 0, KG_INPUT_ROWS, 1);
    for (int row = 0; row < 12; row++) { // (a, c)
        double first = real(&filled, row / 4 * 20 + row % 4);
        CHECK(row % 6 != 0 || first == INFINITY); // where a least element begins
        CHECK(row % 6 != 2 || isnan(first));
        CHECK(row % 6 != 4 || first == -INFINITY);
        for (int b = 0; b < 5; b++) {
            double x = real(&filled, row / 4 * 20 + b * 4 + row % 4);
            CHECK(row % 2 ? isfinite(x) : isnan(first) ? isnan(x) : x == first);
        }
    }
    release(&filled);
    // All at once.
    filled = fill("op f(x: f16[A, B]) -> (y: f16[]) { y[] = max(a, b) x[a, b] }", "A=3 B=5", 0,
                  KG_INPUT_ROWS, 1);
    for (int64_t n = 0; n < filled.count; n++)
        CHECK(real(&filled, n) == -INFINITY);
    release(&filled);
}

static void limits(void)
{
    struct filled filled =
        fill("op f(x: i16[N]) -> (y: i16[N]) { y[i] = x[i] }", "N=1000", 0, KG_INPUT_LIMITS, 1);
    int least = 0, minus_one = 0, zero = 0, largest = 0;
    for (int64_t n = 0; n < filled.count; n++) {
        least += integer(&filled, n) == INT16_MIN;
        minus_one += integer(&filled, n) == -1;
        zero += integer(&filled, n) == 0;
        largest += integer(&filled, n) == INT16_MAX;
    }
    CHECK(least > 130 && minus_one > 130 && zero > 130 && largest > 130);
    release(&filled);
}

// As few as 16 elements have every pair, the least integer and -1 among them.
static void pairs_of_limits(void)
{
    const char *text = "op f(x: i32[N], z: i32[N]) -> (y: i32[N]) { y[i] = x[i] / z[i] }";
    struct filled x = fill(text, "N=16", 0, KG_INPUT_LIMITS, 1);
    struct filled z = fill(text, "N=16", 1, KG_INPUT_LIMITS, 1);
    for (int64_t n = 0; n < 16; n++)
        for (int64_t m = 0; m < n; m++)
            CHECK(integer(&x, n) != integer(&x, m) || integer(&z, n) != integer(&z, m));
    CHECK(integer(&x, 4) == INT32_MIN && integer(&z, 4) == -1);
    release(&x);
    release(&z);
}

struct infinities {
    int negative, positive;
};

static struct infinities count_infinities(const char *text, const char *sizes, int tensor,
                                          uint64_t seed)
{
    struct infinities found = {0, 0};
    struct filled filled = fill(text, sizes, tensor, KG_INPUT_INFINITE, seed);
    for (int64_t n = 0; n < filled.count; n++) {
        found.negative += real(&filled, n) == -INFINITY;
        found.positive += real(&filled, n) == INFINITY;
    }
    release(&filled);
    return found;
}

// One special value in one input, by turns, then some in all. The one has the other sign the next
// time round.
static void special_by_turns(void)
{
    const char *text =
        "op f(x: f32[N], i: i32[N], z: f16[N]) -> (y: f32[N]) { y[n] = x[n] + z[n] }";
    struct made made = make(text, "N=100");
    CHECK_STATUS(made.status, KG_OK, &made.error);
    for (int turn = 0; turn < 72; turn++) {
        uint64_t seed = kg_inputs_seed(made.op, 12345678901, turn);
        CHECK(seed > 12345678901 - 36 && seed < 12345678901 + 36);
        for (int input = 0; input < 2; input++) {
            struct infinities found = count_infinities(text, "N=100", 2 * input, seed);
            int count = found.negative + found.positive;
            CHECK(turn % 3 == 2 ? count > 1 : count == (turn % 3 == input));
            if (turn % 3 == input)
                CHECK(found.negative == (turn / 3 % 2 == 0));
        }
    }
    unmake(&made);
}

// A quarter of a tensor of which few elements are read: of each sign in turn, and of both.
static void special_where_selected(void)
{
    const char *text =
        "op f(x: f16[P, D], i: i32[P], z: f16[P]) -> (y: f16[P]) { y[p] = x[p, i[p]] + z[p] }";
    struct made made = make(text, "P=20 D=30");
    CHECK_STATUS(made.status, KG_OK, &made.error);
    int turns[KG_MAX_SPECIAL_TURNS];
    CHECK(kg_inputs_special_turns(made.op, true, turns) == 3);
    for (int i = 0; i < 3; i++) {
        struct infinities found =
            count_infinities(text, "P=20 D=30", 0, kg_inputs_seed(made.op, 98765432109, turns[i]));
        CHECK((found.negative > 100) == (i == 0));
        CHECK((found.positive > 100) == (i == 1));
        CHECK(found.negative + found.positive > 100);
    }
    CHECK(kg_inputs_special_turns(made.op, false, turns) == 6);
    for (int i = 3; i < 5; i++) {
        uint64_t seed = kg_inputs_seed(made.op, 98765432109, turns[i]);
        struct infinities found = count_infinities(text, "P=20 D=30", 2, seed);
        CHECK(found.negative == (i == 3) && found.positive == (i == 4));
    }
    unmake(&made);
}

// Where a condition may hide an element from a sum: one, then some, of each sign.
static void special_where_hidden(void)
{
    const char *text = "op f(x: f16[P, D], k: i32[P]) -> (y: f16[P])\n"
                       "{ y[p] = sum(d) where(d < k[p], x[p, d], 0) }";
    struct made made = make(text, "P=20 D=30");
    CHECK_STATUS(made.status, KG_OK, &made.error);
    int turns[KG_MAX_SPECIAL_TURNS];
    CHECK(kg_inputs_special_turns(made.op, false, turns) == 5);
    for (int i = 0; i < 4; i++) {
        uint64_t seed = kg_inputs_seed(made.op, 98765432109, turns[i]);
        struct infinities found = count_infinities(text, "P=20 D=30", 0, seed);
        CHECK((found.negative > 0) == (i % 2 == 0) && (found.positive > 0) == (i % 2 == 1));
        CHECK(i < 2 ? found.negative + found.positive == 1 : found.negative + found.positive > 15);
    }
    CHECK(kg_inputs_special_turns(made.op, true, turns) == 2);
    unmake(&made);
}

// Integers that are compared with an index are often places where it runs, ends included.
static void positions(void)
{
    static const char *const texts[] = {
        "op f(k: i32[P], b: i64[D]) -> (y: i64[P, D]) { y[p, d] = (d < k[p]) * b[d] }",
        "op f(k: i32[P], b: i64[D]) -> (y: i64[P, D]) { y[p, d] = (k[p] - 1 == d) * b[d] }",
    };
    for (int i = 0; i < 2; i++) {
        struct filled filled = fill(texts[i], "P=2000 D=1000", 0, KG_INPUT_NORMAL, 3);
        int within = 0, all = 0;
        for (int64_t n = 0; n < filled.count; n++) {
            all += integer(&filled, n) == 1000;
            within += integer(&filled, n) > 200 && integer(&filled, n) < 1000;
        }
        CHECK(within > 400 && within < 600 && all > 300 && all < 500);
        release(&filled);
        struct filled limited = fill(texts[i], "P=2000 D=1000", 0, KG_INPUT_LIMITS, 3);
        int least = 0;
        for (int64_t n = 0; n < limited.count; n++)
            least += integer(&limited, n) == INT32_MIN;
        CHECK(least > 200);
        release(&limited);
    }
}

// Scalars are zeros of either sign.
static void zeros_by_turns(void)
{
    const char *text = "op f(x: f32[N], s: f32[]) -> (y: f32[N]) { y[n] = x[n] / s[] }";
    struct made made = make(text, "N=100");
    CHECK_STATUS(made.status, KG_OK, &made.error);
    for (int turn = 0; turn < 2; turn++) {
        struct filled filled =
            fill(text, "N=100", 1, KG_INPUT_ZERO, kg_inputs_seed(made.op, 77, turn));
        CHECK(real(&filled, 0) == 0 && signbit(real(&filled, 0)) == turn);
        release(&filled);
    }
    unmake(&made);
}

// Factors of long products are so close to 1 that the product is a number.
static void long_products(void)
{
    static const struct {
        const char *text, *sizes;
        double most;
    } ops[] = {
        {"op f(x: f32[P, D]) -> (y: f32[P, D]) { y[p, d] = prod(k <= d) x[p, k] }", "P=3 D=4096",
         0.0625},
        {"op f(x: f32[P, D]) -> (y: f32[P])\n{ t[p, d] = x[p, d] * 1\n y[p] = prod(d) t[p, d] }",
         "P=3 D=40960", 0.00625},
        {"op f(x: f32[P, D]) -> (y: f32[P, D]) { y[p, d] = prod(k <= d) x[p, k] }", "P=3 D=100", 9},
        {"op f(x: f32[P, D]) -> (y: f32[P]) { y[p] = sum(d) x[p, d] }", "P=3 D=4096", 9},
    };
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        struct filled filled = fill(ops[i].text, ops[i].sizes, 0, KG_INPUT_NORMAL, 1);
        double most = 0;
        bool negative = false;
        for (int64_t n = 0; n < filled.count; n++) {
            negative |= real(&filled, n) < 0;
            most = fmax(most, fabs(log2(fabs(real(&filled, n)))));
        }
        CHECK(negative);
        CHECK(ops[i].most > 1 ? most > 1 : most < 1.5 * ops[i].most && most > ops[i].most);
        release(&filled);
    }
}

// Close to each other, and far from zero; some so large that f16 holds no sum of three.
static void close_values(void)
{
    int huge = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct filled filled =
            fill("op f(x: f16[N]) -> (y: f16[N]) { y[n] = x[n] }", "N=50", 0, KG_INPUT_CLOSE, seed);
        double least = INFINITY, most = -INFINITY;
        for (int64_t n = 0; n < filled.count; n++) {
            least = fmin(least, real(&filled, n));
            most = fmax(most, real(&filled, n));
        }
        CHECK(least < most && least * most > 0 && fabs(least + most) / 2 >= 7.5);
        CHECK(most - least < 0.1 * fabs(least + most) && fabs(least + most) < 65504);
        huge += fabs(most) > 16384;
        release(&filled);
    }
    CHECK(huge == 20);
}

// Nothing but tiny values; those of a narrower output where there is one, and of products what
// matrix units do not flush.
static void tiny_values(void)
{
    static const struct {
        const char *text;
        double smallest;
    } ops[] = {
        {"op f(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] }", 0x1p-126},
        {"op f(x: f16[N]) -> (y: f16[N]) { y[i] = x[i] }", 0x1p-14},
        {"op f(x: f32[N]) -> (y: f16[N]) { y[i] = x[i] }", 0x1p-14},
        {"op f(x: f32[N], z: f32[N]) -> (y: f32[]) { y[] = sum(i) x[i] * z[i] }", 0x1p-90},
        {"op f(x: f16[N], z: f16[N]) -> (y: f16[]) { y[] = sum(i) x[i] * z[i] }", 0x1p-14},
    };
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        struct filled filled = fill(ops[i].text, "N=500", 0, KG_INPUT_DENORMAL, 1);
        int below = 0;
        for (int64_t n = 0; n < filled.count; n++) {
            CHECK(fabs(real(&filled, n)) <= 4 * ops[i].smallest);
            below += fabs(real(&filled, n)) < ops[i].smallest;
        }
        CHECK(below > 300 && below < 500);
        release(&filled);
    }
    const char *text = "op f(x: f32[N], z: f32[N]) -> (y: f32[N]) { y[i] = x[i] * z[i] }";
    for (uint64_t turn = 0; turn < 2; turn++) { // of the two inputs
        struct filled tiny = fill(text, "N=500", (int)turn, KG_INPUT_TINY, 3 + turn);
        struct filled other = fill(text, "N=500", 1 - (int)turn, KG_INPUT_TINY, 3 + turn);
        for (int64_t n = 0; n < tiny.count; n++) {
            CHECK(fabs(real(&tiny, n)) < 0x1p-120);
            CHECK(fabs(real(&other, n)) > 0x1p-50 || real(&other, n) == 0);
        }
        release(&tiny);
        release(&other);
    }
}

// Exact halves of the narrower dtype, and values one step beside them.
static void halves(void)
{
    struct filled filled =
        fill("op f(x: f64[N]) -> (y: f16[N]) { y[i] = x[i] }", "N=4000", 0, KG_INPUT_HALVES, 1);
    int exact = 0, beside = 0, below = 0, to_infinity = 0;
    for (int64_t n = 0; n < filled.count; n++) {
        double x = fabs(real(&filled, n)), near = kg_dtype_round(KG_F16, x);
        double step = x < 0x1p-14 ? 0x1p-24 : ldexp(0x1p-10, ilogb(x));
        exact += fabs(x - near) == step / 2;
        beside += fabs(x - near) != step / 2 && fabs(fabs(x - near) - step / 2) <= 0x1p-48;
        below += x < 0x1p-14;
        to_infinity += isinf(near);
    }
    CHECK(exact > 2000 && beside > 1000 && below > 500);
    CHECK(to_infinity > 0 && to_infinity < 200);
    release(&filled);
}

static void truths(void)
{
    struct filled filled =
        fill("op f(m: bool[N]) -> (y: bool[N]) { y[i] = m[i] }", "N=1000", 0, KG_INPUT_NORMAL, 1);
    int64_t count = 0;
    for (int64_t n = 0; n < filled.count; n++)
        count += integer(&filled, n);
    CHECK(count > 400 && count < 600);
    release(&filled);
}

// ---- Large tensors

#define LARGE "op f(x: T[P, D]) -> (y: T[P, D]) where T in f32 f16 f64 i8 i4 { y[p, d] = x[p, d] }"

static uint64_t hash_of(const void *data, size_t bytes)
{
    uint64_t hash = 14695981039346656037u; // FNV-1a
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ ((const unsigned char *)data)[i]) * 1099511628211u;
    return hash;
}

// No two rows or columns are alike, nor rows one after the other.
static void rows_differ(void)
{
    struct filled filled = fill(LARGE, "P=2048 D=1024 T=f16", 0, KG_INPUT_NORMAL, 1);
    const uint16_t *data = filled.data;
    static uint64_t hashes[2048];
    for (int p = 0; p < 2048; p++) {
        hashes[p] = hash_of(data + p * 1024, 2048);
        for (int q = 0; q < p; q++)
            CHECK(hashes[p] != hashes[q]);
    }
    for (int64_t shift = 1; shift < 4096; shift++) { // no period
        int same = 0;
        for (int64_t i = 0; i < 64; i++)
            same += data[i] == data[i + shift];
        CHECK(same < 16);
    }
    release(&filled);
}

// The values are those of the class, and the beginning alone is the beginning of the whole.
static void large_like_small(void)
{
    struct filled large = fill(LARGE, "P=1024 D=1024", 0, KG_INPUT_NORMAL, 9);
    double sum = 0, squares = 0;
    for (int64_t n = 0; n < large.count; n++) {
        sum += real(&large, n);
        squares += fmin(fabs(real(&large, n)), 4) * fmin(fabs(real(&large, n)), 4);
    }
    CHECK(fabs(sum / 1048576) < 0.1);
    CHECK(squares / 1048576 > 0.5 && squares / 1048576 < 6);
    static float some[1000];
    kg_verify_fill_some(large.made.problem, 0, 9, 1000, some);
    CHECK(memcmp(some, large.data, sizeof some) == 0);
    release(&large);
    struct filled tiny = fill(LARGE, "P=1024 D=1024", 0, KG_INPUT_DENORMAL, 9);
    for (int64_t n = 0; n < tiny.count; n++)
        CHECK(fabs(real(&tiny, n)) <= 0x1p-124);
    release(&tiny);
}

// Gaps stay untouched, and every element is written.
static void large_views(void)
{
    const int64_t strides[KG_MAX_TENSORS][KG_MAX_RANK] = {{2100, 2}, {1024, 1}};
    struct made made = make_strided(LARGE, NULL, "P=1100 D=1000", strides);
    CHECK_STATUS(made.status, KG_OK, &made.error);
    size_t bytes = made.problem->layouts[0].bytes;
    float *data = malloc(bytes);
    memset(data, 0xa5, bytes);
    kg_inputs_fill(made.problem, 0, KG_INPUT_WHOLE, 1, data);
    bool right = true;
    for (size_t at = 0; at < bytes / sizeof *data; at++) {
        uint32_t bits;
        memcpy(&bits, data + at, sizeof bits);
        bool is_element = at % 2100 < 2000 && at % 2 == 0;
        right &=
            is_element ? data[at] == floorf(data[at]) && fabsf(data[at]) <= 4 : bits == 0xa5a5a5a5;
    }
    CHECK(right);
    free(data);
    unmake(&made);
}

// The same on every machine: hashes of the bytes, noted once.
static void same_everywhere(void)
{
    static const struct {
        const char *choices;
        uint64_t hash;
    } noted[] = {
        {"P=7 D=33 T=f64", 0xfc32fe61f8a1fd33},      {"P=1024 D=1030 T=f64", 0xeb1c59af17fa2900},
        {"P=1025 D=1025 T=f16", 0xfe0cbaa6c8fe8582}, {"P=1025 D=1025 T=i8", 0x3354b9d8f5ec56ff},
        {"P=1025 D=1025 T=i4", 0xebf227a97dbabd62},
    };
    for (size_t i = 0; i < sizeof noted / sizeof noted[0]; i++) {
        struct filled filled = fill(LARGE, noted[i].choices, 0, KG_INPUT_NORMAL, 11);
        uint64_t hash = hash_of(filled.data, filled.made.problem->layouts[0].bytes);
        if (hash != noted[i].hash)
            fprintf(stderr, "%s: 0x%llx\n", noted[i].choices, (unsigned long long)hash);
        CHECK(hash == noted[i].hash);
        release(&filled);
    }
}

// Drawing each of 8 million values would take most of a second.
static void speed(void)
{
    struct timespec start, end;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
    struct filled filled = fill(LARGE, "P=4096 D=2048", 0, KG_INPUT_NORMAL, 1);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    double taken =
        (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec);
    CHECK(taken < 0.4);
    release(&filled);
}

TEST_MAIN(which_apply, indices_outside, counts_of_shifts, rows, limits, pairs_of_limits,
          special_by_turns, special_where_selected, special_where_hidden, positions, zeros_by_turns,
          close_values, long_products, tiny_values, halves, truths, rows_differ, large_like_small,
          large_views, same_everywhere, speed)
