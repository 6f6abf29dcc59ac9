// The functions of kernels/cuda/narrow.cuh, from every f16 and every bf16, in f32 as a GPU computes
// them: the special unit's functions are made here, off by as much as they may be. Their results
// are rounded as they will be stored, and compared with f64's; from other floats, small results
// too.

#include "test.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define KG_INLINE static inline

static float special_error; // of the special unit, relative

static float flushed(double y)
{
    float rounded = (float)(y * (1 + (double)special_error));
    return fabsf(rounded) < FLT_MIN ? 0.0f : rounded;
}

static inline float kg_power_of_two(float x)
{
    return flushed(exp2((double)x));
}

static inline float kg_reciprocal(float x)
{
    return flushed(1 / (double)x);
}

static inline float kg_from_zero(float x)
{
    return x >= 0 ? 1.0f : 0.0f;
}

#include "../../../kernels/cuda/narrow.cuh"

static double true_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double true_silu(double x)
{
    return x / (1 + exp(-x));
}

static double true_gelu(double x)
{
    return 0.5 * x * erfc(x * -0.70710678118654752440);
}

static double true_gelu_tanh(double x)
{
    return x / (1 + exp(-2 * 0.79788456080286535588 * (x + 0.044715 * x * x * x)));
}

// `most`: the error before rounding, relative to the result, or to where f16 ends being normal.
static const struct {
    const char *name;
    float (*function)(float x);
    double (*wanted)(double x);
    double most;
    bool tails; // relative to all results that are normal numbers of f32
} functions[] = {
    {"sigmoid", kg_sigmoid_narrow_f32, true_sigmoid, 0x1p-17, true},
    {"silu", kg_silu_narrow_f32, true_silu, 0x1p-17, true},
    {"gelu", kg_gelu_narrow_f32, true_gelu, 0x1.7p-14, false},
    {"gelu_tanh", kg_gelu_tanh_narrow_f32, true_gelu_tanh, 0x1p-14, false},
};
enum { FUNCTIONS = sizeof functions / sizeof functions[0] };

static float from_f16(uint16_t bits)
{
    int exponent = bits >> 10 & 31, digits = bits & 1023;
    float size = exponent == 31 ? digits ? NAN : INFINITY
                 : exponent     ? ldexpf((float)(digits + 1024), exponent - 25)
                                : ldexpf((float)digits, -24);
    return bits >> 15 ? -size : size;
}

static float from_bf16(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &wide, sizeof x);
    return x;
}

// Half a step of a float with so many digits after the first, and exponents from `least` on.
static double half_step(double x, int digits, int least)
{
    int exponent;
    frexp(x, &exponent);
    exponent--;
    return ldexp(0.5, (exponent < least ? least : exponent) - digits);
}

// How far the result is off, as a part of what is allowed; infinity where NaN or an infinity is
// wrong.
static double error_at(int i, float x)
{
    double want = functions[i].wanted((double)x), got = (double)functions[i].function(x);
    if (isinf(x) && x < 0 && functions[i].wanted != true_sigmoid)
        want = NAN; // an infinity times nothing
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got) ? 0 : INFINITY;
    if (isinf(want) || isinf(got))
        return want == got ? 0 : INFINITY;
    double floor = functions[i].tails ? 0 : 0x1p-14;
    if (functions[i].tails && fabs(want) < (double)FLT_MIN)
        return fabs(got) <= (double)FLT_MIN ? 0 : INFINITY;
    return fabs(got - want) / (functions[i].most * fmax(fabs(want), floor));
}

static void check_function(int i, float (*from)(uint16_t bits), int digits, int least)
{
    double worst = 0, rounded = 0;
    for (uint32_t bits = 0; bits < 65536; bits++) {
        float x = from((uint16_t)bits);
        double off = error_at(i, x), want = functions[i].wanted((double)x);
        worst = fmax(worst, off);
        if (isfinite(want) && isfinite(off) && fabs(want) < 65504) {
            double step = half_step(want, digits, least), got = (double)functions[i].function(x);
            double stored = nearbyint(got / (2 * step)) * 2 * step;
            if (fabs(want) >= 0x1p-14)
                rounded = fmax(rounded, fabs(stored - want) / step);
        }
    }
    // At most a third of half a step more than the rounding takes.
    CHECK(worst <= 1 && rounded <= 4.0 / 3);
    if (worst > 1 || rounded > 4.0 / 3)
        fprintf(stderr, "%s, %d digits: %.3f of what is allowed, %.3f half steps\n",
                functions[i].name, digits, worst, rounded);
}

static void every_half(void)
{
    for (int i = 0; i < FUNCTIONS; i++)
        for (int sign = -1; sign <= 1; sign++) {
            special_error = (float)sign * 0x1p-22f;
            check_function(i, from_f16, 10, -14);
            check_function(i, from_bf16, 7, -126);
        }
}

// Sums of products are any floats, and where they are far from 0, silu's results are small numbers
// that something large may be multiplied by.
static void tails_are_kept(void)
{
    special_error = 0;
    for (int i = 0; i < FUNCTIONS; i++) {
        double worst = 0;
        for (int step = -104000; step <= 104000; step++)
            worst = fmax(worst, error_at(i, (float)step * 0.001f));
        CHECK(worst <= 1);
        if (worst > 1)
            fprintf(stderr, "%s: %.3f of what is allowed\n", functions[i].name, worst);
    }
    CHECK(kg_silu_narrow_f32(-90.0f) < 0 && kg_silu_narrow_f32(-91.5f) < 0);
    CHECK(kg_sigmoid_narrow_f32(-87.0f) > 0);
}

TEST_MAIN(every_half, tails_are_kept)
