// The mathematics of kernels/host/ against libm's f64: floats of every exponent, the
// special ones, and the conversions of narrow floats bit by bit.

#include "../../../kernels/host/abi.h"
// clang-format off
#include "../../../kernels/host/prelude.h"
#include "../../../kernels/elements.h"
#include "../../../kernels/values.h"
#include "../../../kernels/host/maths.h"
#include "../../../kernels/host/maths_f32.h"
// clang-format on

#include "lang/dtype.h"
#include "test.h"

#include <float.h>

#define BATCH 4096
#define STEP 4093 // between the bit patterns tried: about a million floats

static double true_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double true_silu(double x)
{
    return x / (1 + exp(-x));
}

static double true_softplus(double x)
{
    return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

static double true_gelu(double x)
{
    return 0.5 * x * erfc(-x * M_SQRT1_2);
}

static double true_rsqrt(double x)
{
    return 1 / sqrt(x);
}

// A loop over one function, as kernels have it, so that the vector code is what is tested.
#define LOOP(NAME)                                                                                 \
    static void loop_##NAME(const float *x, float *y)                                              \
    {                                                                                              \
        for (int i = 0; i < BATCH; i++)                                                            \
            y[i] = kg_##NAME##_f32(x[i]);                                                          \
    }
LOOP(exp)
LOOP(exp2)
LOOP(expm1)
LOOP(log)
LOOP(log2)
LOOP(log1p)
LOOP(tanh)
LOOP(erf)
LOOP(sigmoid)
LOOP(silu)
LOOP(softplus)
LOOP(gelu)
LOOP(sqrt)
LOOP(rsqrt)
LOOP(sin)
LOOP(cos)

// Largest errors in units in the last place, with and without FMA. Over all 2^32 floats exp has
// 1.15 and tanh 2.50.
static const struct {
    const char *name;
    void (*loop)(const float *x, float *y);
    double (*truth)(double x);
    double most;
    double floor; // results smaller than this are compared with it instead of with themselves
} functions[] = {
    {"exp", loop_exp, exp, 1.2, 0},
    {"exp2", loop_exp2, exp2, 1.0, 0},
    {"expm1", loop_expm1, expm1, 1.6, 0},
    {"log", loop_log, log, 0.8, 0},
    {"log2", loop_log2, log2, 1.1, 0},
    {"log1p", loop_log1p, log1p, 0.9, 0},
    {"tanh", loop_tanh, tanh, 2.55, 0},
    {"erf", loop_erf, erf, 1.2, 0},
    {"sigmoid", loop_sigmoid, true_sigmoid, 2.3, 0},
    {"silu", loop_silu, true_silu, 2.9, 0x1p-120},
    {"softplus", loop_softplus, true_softplus, 1.7, 0},
    {"gelu", loop_gelu, true_gelu, 6, 0x1p-120},
    {"sqrt", loop_sqrt, sqrt, 0.5, 0},
    {"rsqrt", loop_rsqrt, true_rsqrt, 1.5, 0},
    {"sin", loop_sin, sin, 1.0, 0},
    {"cos", loop_cos, cos, 1.0, 0},
};

static double unit_of(double value, double floor)
{
    int exponent;
    frexp(fmax(fabs(value), floor), &exponent);
    return ldexp(1, (exponent < -125 ? -125 : exponent) - 24);
}

// The error in units; infinity where NaN, an infinity or the sign of zero is wrong.
static double error_of(float x, float got, double want, double floor)
{
    float rounded = (float)want;
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got) ? 0 : INFINITY;
    if (x == 0 && rounded == 0 && signbit(rounded) != signbit(got))
        return INFINITY;
    if (isinf(rounded) || isinf(got)) // at the edge of the range either side is near enough
        return got == rounded || (fabsf(got) >= FLT_MAX && fabs(want) >= 0.999999 * FLT_MAX)
                   ? 0
                   : INFINITY;
    return fabs((double)got - want) / unit_of(want, floor);
}

static void test_functions(void)
{
    static float x[BATCH], y[BATCH];
    for (size_t f = 0; f < sizeof functions / sizeof functions[0]; f++) {
        double worst = 0;
        float where = 0;
        for (uint64_t bits = 0; bits < UINT64_C(1) << 32;) {
            for (int i = 0; i < BATCH; i++, bits += STEP)
                x[i] = kg_from_bits_f32((uint32_t)bits); // wraps a little beyond the end
            functions[f].loop(x, y);
            for (int i = 0; i < BATCH; i++) {
                double error =
                    error_of(x[i], y[i], functions[f].truth((double)x[i]), functions[f].floor);
                if (error > worst) {
                    worst = error;
                    where = x[i];
                }
            }
        }
        CHECK(worst <= functions[f].most);
        if (worst > functions[f].most)
            fprintf(stderr, "%s: %.2f units at %a\n", functions[f].name, worst, (double)where);
    }
}

static void test_special_values(void)
{
    static const float edges[] = {0.0f,     -0.0f,    INFINITY,  -INFINITY, NAN,    1e-45f,
                                  -1e-45f,  FLT_MIN,  -FLT_MIN,  FLT_MAX,   1.0f,   -1.0f,
                                  88.7228f, 88.7229f, -103.972f, -104.0f,   128.0f, -149.5f};
    static float x[BATCH], y[BATCH];
    memcpy(x, edges, sizeof edges);
    for (size_t f = 0; f < sizeof functions / sizeof functions[0]; f++) {
        functions[f].loop(x, y);
        for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++) {
            double error =
                error_of(x[i], y[i], functions[f].truth((double)x[i]), functions[f].floor);
            CHECK(error <= functions[f].most);
            if (error > functions[f].most)
                fprintf(stderr, "%s(%a) = %a\n", functions[f].name, (double)x[i], (double)y[i]);
        }
    }
}

static bool same_float(float got, double want)
{
    return isnan(want) ? isnan(got) : (double)got == want && !signbit(got) == !signbit(want);
}

// The language's own rounding (lang/dtype.c) is written apart from the prelude's.
static void test_narrow_floats(void)
{
    int wrong = 0;
    for (uint32_t half = 0; half < 65536; half++) {
        uint16_t stored = (uint16_t)half;
        double want = kg_dtype_load(KG_F16, &stored, 0);
        float got = kg_load_f16(&stored, 0);
        wrong += !same_float(got, want);
        want = kg_dtype_load(KG_BF16, &stored, 0);
        got = kg_load_bf16(&stored, 0);
        wrong += !same_float(got, want);
    }
    for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += 1021) {
        float x = kg_from_bits_f32((uint32_t)bits);
        uint16_t got[2], want[2];
        kg_store_f16(&got[0], 0, x);
        kg_store_bf16(&got[1], 0, x);
        kg_dtype_store(KG_F16, &want[0], 0, (double)x);
        kg_dtype_store(KG_BF16, &want[1], 0, (double)x);
        wrong += x == x && memcmp(got, want, sizeof got) != 0;
        wrong += x != x && !(isnan(kg_load_f16(&got[0], 0)) && isnan(kg_load_bf16(&got[1], 0)));
    }
    CHECK(wrong == 0);
}

// Conversions of several at once, which may be the machine's own, against those of one.
static void test_pieces_of_narrow_floats(void)
{
    enum { PIECE = 64 };
    int wrong = 0;
    for (uint32_t first = 0; first < 65536; first += PIECE) {
        uint16_t stored[PIECE];
        float halves[PIECE], brains[PIECE];
        for (uint32_t i = 0; i < PIECE; i++)
            stored[i] = (uint16_t)(first + i);
        kg_widen_f16(stored, halves, PIECE);
        kg_widen_bf16(stored, brains, PIECE);
        for (int i = 0; i < PIECE; i++)
            wrong += !same_float(halves[i], (double)kg_load_f16(stored, i)) +
                     !same_float(brains[i], (double)kg_load_bf16(stored, i));
    }
    for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += (uint64_t)509 * PIECE) {
        float x[PIECE];
        uint16_t halves[PIECE], brains[PIECE];
        for (uint32_t i = 0; i < PIECE; i++)
            x[i] = kg_from_bits_f32((uint32_t)bits + 509 * i);
        kg_narrow_f16(x, halves, PIECE);
        kg_narrow_bf16(x, brains, PIECE);
        for (int i = 0; i < PIECE; i++) {
            uint16_t half = kg_pack_f16(x[i]), brain = kg_pack_bf16(x[i]);
            wrong += x[i] == x[i]
                         ? halves[i] != half || brains[i] != brain
                         : !isnan(kg_unpack_f16(halves[i])) || !isnan(kg_unpack_bf16(brains[i]));
        }
    }
    CHECK(wrong == 0);
}

// Floats of 8 bits: what a kernel calls for each.
static const struct {
    enum kg_dtype dtype;
    float (*load)(const uint8_t *from, int64_t at);
    void (*store)(uint8_t *to, int64_t at, float x);
    void (*store_f64)(uint8_t *to, int64_t at, double x);
    float (*cast)(float x);
    float (*cast_f64)(double x);
    void (*widen)(const uint8_t *from, float *to, int64_t count);
    void (*narrow)(const float *from, uint8_t *to, int64_t count);
} eights[] = {
    {KG_F8E4M3, kg_load_f8e4m3, kg_store_f8e4m3, kg_store_f8e4m3_f64, kg_cast_f8e4m3,
     kg_cast_f8e4m3_f64, kg_widen_f8e4m3, kg_narrow_f8e4m3},
    {KG_F8E5M2, kg_load_f8e5m2, kg_store_f8e5m2, kg_store_f8e5m2_f64, kg_cast_f8e5m2,
     kg_cast_f8e5m2_f64, kg_widen_f8e5m2, kg_narrow_f8e5m2},
};

// Is it stored as the language stores it, bit by bit but for NaN?
static bool is_stored_right(size_t row, uint8_t got, double x)
{
    uint8_t want;
    kg_dtype_store(eights[row].dtype, &want, 0, x);
    double wanted = kg_dtype_load(eights[row].dtype, &want, 0);
    return isnan(wanted) ? isnan(eights[row].load(&got, 0)) : got == want;
}

static void test_eights(void)
{
    enum { PIECE = 256 };
    int wrong = 0;
    uint8_t all[PIECE], stored[PIECE];
    float wide[PIECE], x[PIECE];
    for (int i = 0; i < PIECE; i++)
        all[i] = (uint8_t)i;
    for (size_t row = 0; row < 2; row++) {
        eights[row].widen(all, wide, PIECE);
        for (int i = 0; i < PIECE; i++) {
            double want = kg_dtype_load(eights[row].dtype, all, (size_t)i);
            wrong += !same_float(eights[row].load(all, i), want) + !same_float(wide[i], want);
        }
        for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += (uint64_t)1021 * PIECE) {
            for (uint32_t i = 0; i < PIECE; i++)
                x[i] = kg_from_bits_f32((uint32_t)bits + 1021 * i);
            eights[row].narrow(x, stored, PIECE);
            for (int i = 0; i < PIECE; i++) {
                uint8_t one;
                eights[row].store(&one, 0, x[i]);
                wrong += one != stored[i] || !is_stored_right(row, one, (double)x[i]);
                wrong += !same_float(eights[row].cast(x[i]), (double)eights[row].load(&one, 0));
            }
        }
    }
    CHECK(wrong == 0);
}

// At the middle between two neighbours and beside it, as f32 and as f64, where rounding to f32
// first would lose the direction.
static void test_ties_of_eights(void)
{
    int wrong = 0;
    for (size_t row = 0; row < 2; row++)
        for (uint8_t low = 0; low < 0x7f; low++) {
            uint8_t next = (uint8_t)(low + 1), got;
            double a = kg_dtype_load(eights[row].dtype, &low, 0);
            double b = kg_dtype_load(eights[row].dtype, &next, 0);
            if (!isfinite(a))
                continue;
            // Past the largest: where the next value would be.
            double middle = isfinite(b)
                                ? (a + b) / 2
                                : a + kg_dtypes[eights[row].dtype].epsilon * exp2(ilogb(a)) / 2;
            const double tries[] = {middle, nextafter(middle, 0), nextafter(middle, INFINITY)};
            for (int i = 0; i < 6; i++) {
                double x = i < 3 ? tries[i] : -tries[i - 3];
                eights[row].store_f64(&got, 0, x);
                wrong += !is_stored_right(row, got, x);
                wrong += !same_float(eights[row].cast_f64(x), (double)eights[row].load(&got, 0));
            }
            const float floats[] = {(float)middle, nextafterf((float)middle, 0),
                                    -nextafterf((float)middle, INFINITY)};
            for (int i = 0; i < 3; i++) {
                eights[row].store(&got, 0, floats[i]);
                wrong += !is_stored_right(row, got, (double)floats[i]);
            }
        }
    CHECK(wrong == 0);
    // NVIDIA's conversions give 448 and 57344 for all of these.
    CHECK(kg_cast_f8e4m3(464) == 448 && isnan(kg_cast_f8e4m3(nextafterf(464, 500))));
    CHECK(isnan(kg_cast_f8e4m3(-INFINITY)) && isnan(kg_cast_f8e4m3(NAN)));
    CHECK(kg_cast_f8e5m2(61439.99f) == 57344 && kg_cast_f8e5m2(-61440) == -INFINITY);
    CHECK(kg_cast_f8e5m2(INFINITY) == INFINITY && isnan(kg_cast_f8e5m2(NAN)));
    CHECK(isnan(kg_cast_f8e4m3_f64(1e300)) && kg_cast_f8e5m2_f64(-1e300) == -INFINITY);
}

// Doubles close to the middle between two halves: rounding to f32 first would lose the direction.
static void test_rounding_once(void)
{
    int wrong = 0;
    for (uint32_t half = 0; half < 0x7bff; half++) {
        uint16_t stored = (uint16_t)half, next = (uint16_t)(half + 1);
        double middle = (kg_dtype_load(KG_F16, &stored, 0) + kg_dtype_load(KG_F16, &next, 0)) / 2;
        const double tries[] = {middle, nextafter(middle, 0), nextafter(middle, INFINITY)};
        for (int i = 0; i < 3; i++) {
            uint16_t got, want;
            kg_store_f16_f64(&got, 0, tries[i]);
            kg_dtype_store(KG_F16, &want, 0, tries[i]);
            wrong += got != want;
        }
    }
    CHECK(wrong == 0);
}

static void test_packed_elements(void)
{
    kg_u4 bytes[4] = {0xee, 0xee, 0xee, 0xee};
    for (int64_t i = 0; i < 6; i++)
        kg_store_u4(bytes, i, i + 16); // wraps
    for (int64_t i = 0; i < 6; i++)
        CHECK(kg_load_u4(bytes, i) == i);
    CHECK(bytes[3] == 0xee);
    kg_store_i4(bytes, 1, -3);
    CHECK(kg_load_i4(bytes, 1) == -3 && kg_load_u4(bytes, 0) == 0 && kg_load_u4(bytes, 2) == 2);
}

static void test_integers(void)
{
    CHECK(kg_div_i64(7, 2) == 3 && kg_div_i64(-7, 2) == -4 && kg_div_i64(7, -2) == -4);
    CHECK(kg_mod_i64(7, 3) == 1 && kg_mod_i64(-7, 3) == 2 && kg_mod_i64(7, -3) == -2);
    CHECK(kg_div_i64(5, 0) == 0 && kg_mod_i64(5, 0) == 0);
    CHECK(kg_div_i64(INT64_MIN, -1) == INT64_MIN && kg_mod_i64(INT64_MIN, -1) == 0);
    CHECK(kg_add_i64(INT64_MAX, 1) == INT64_MIN && kg_mul_i64(INT64_MAX, 2) == -2);
    CHECK(kg_ceildiv_i64(7, 2) == 4 && kg_ceildiv_i64(8, 2) == 4 && kg_ceildiv_i64(0, 2) == 0);
    CHECK(kg_truncate_f32(2.9f) == 2 && kg_truncate_f32(-2.9f) == -2);
    CHECK(kg_truncate_f32(NAN) == 0 && kg_truncate_f32(INFINITY) == INT64_MAX);
    CHECK(kg_truncate_f64(-1e300) == INT64_MIN);
    CHECK(kg_cast_i16(0x18000) == INT16_MIN && kg_cast_u16(-1) == UINT16_MAX);
    CHECK(kg_cast_u32(-1) == UINT32_MAX && kg_cast_u32(INT64_C(1) << 32) == 0);
    CHECK(kg_bit_and_i64(-4, 6) == 4 && kg_bit_or_i64(-4, 1) == -3);
    CHECK(kg_bit_xor_i64(-1, 5) == -6 && kg_bit_not_i64(INT64_MAX) == INT64_MIN);
    CHECK(kg_shift_left_i64(-3, 2) == -12 && kg_shift_left_i64(3, 63) == INT64_MIN);
    CHECK(kg_shift_left_i64(3, 64) == 0 && kg_shift_left_i64(3, -1) == 0);
    CHECK(kg_shift_left_i64(3, INT64_MIN) == 0 && kg_shift_left_i64(3, INT64_C(1) << 32) == 0);
    CHECK(kg_shift_right_i64(-5, 1) == -3 && kg_shift_right_i64(INT64_MIN, 63) == -1);
    CHECK(kg_shift_right_i64(-5, 64) == -1 && kg_shift_right_i64(5, 64) == 0);
    CHECK(kg_shift_right_i64(-5, -1) == -1 && kg_shift_right_i64(5, INT64_MIN) == 0);
    CHECK(kg_clamp(-1, 5) == 0 && kg_clamp(5, 5) == 4 && kg_clamp(3, 0) == 0);
}

static void test_selections(void)
{
    CHECK(isnan(kg_max_f32(NAN, 1)) && isnan(kg_max_f32(1, NAN)) && kg_max_f32(2, 1) == 2);
    CHECK(isnan(kg_min_f32(NAN, 1)) && isnan(kg_min_f32(1, NAN)) && kg_min_f32(2, 1) == 1);
    CHECK(isnan(kg_relu_f32(NAN)) && kg_relu_f32(-1) == 0 && kg_relu_f32(3) == 3);
    CHECK(kg_sign_f32(NAN) == 0 && kg_sign_f32(-2) == -1 && kg_sign_f32(0.5f) == 1);
    CHECK(kg_round_f32(0.5f) == 0 && kg_round_f32(1.5f) == 2 && kg_round_f32(-2.5f) == -2);
    CHECK(kg_mod_f32(-1, 3) == 2 && kg_mod_f32(7, -3) == -2);
    CHECK(kg_beats_max_f32(NAN, 1) && !kg_beats_max_f32(NAN, NAN) && !kg_beats_max_f32(1, NAN));
}

static void test_streams(void)
{
    static char to[512], from[512];
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (char)(i * 7 + 1);
    for (size_t offset = 0; offset < 70; offset += 3)
        for (size_t bytes = 0; bytes < 300; bytes += 13) {
            memset(to, 0, sizeof to);
            kg_stream(to + offset, from, bytes);
            kg_stream_end();
            CHECK(memcmp(to + offset, from, bytes) == 0 && to[offset + bytes] == 0);
        }
}

TEST_MAIN(test_functions, test_special_values, test_narrow_floats, test_pieces_of_narrow_floats,
          test_eights, test_ties_of_eights, test_rounding_once, test_packed_elements, test_integers,
          test_selections, test_streams)
