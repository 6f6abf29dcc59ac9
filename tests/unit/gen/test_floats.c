// The functions of kernels/host/floats.h, with AVX2 where the compiler and the processor have it:
// exp against libm's f64, the others against those of kernels/host/maths_f32.h.

#include "test.h"

#include <float.h>
#include <math.h>
#include <string.h>

#if defined(__x86_64__) && !defined(__clang__)
#pragma GCC target("avx2,fma")
#endif
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wpsabi"

#include "../../../kernels/host/abi.h"
// clang-format off
#include "../../../kernels/host/prelude.h"
#include "../../../kernels/elements.h"
#include "../../../kernels/values.h"
#include "../../../kernels/host/maths.h"
#include "../../../kernels/host/maths_f32.h"
// clang-format on

#include "../../../kernels/host/floats.h"

#define STEP 509 // between the bit patterns tried

static bool is_supported(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return true;
#endif
}

// In units in the last place of what is wanted; infinity where NaN or an infinity is wrong.
static double error_of(float got, double want)
{
    float rounded = (float)want;
    int exponent;
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got) ? 0 : INFINITY;
    if (isinf(rounded) || isinf(got))
        return got == rounded ? 0 : INFINITY;
    if (want < (double)FLT_MIN)
        return got >= 0 && got <= FLT_MIN ? 0 : INFINITY;
    frexp(want, &exponent);
    return fabs((double)got - want) / ldexp(1, exponent - 24);
}

static void test_exp(void)
{
    double worst = 0, worst_high = 0;
    for (uint64_t bits = 0; is_supported() && bits < UINT64_C(1) << 32; bits += KG_FLOATS * STEP) {
        float x[KG_FLOATS], y[KG_FLOATS];
        for (unsigned lane = 0; lane < KG_FLOATS; lane++)
            x[lane] = kg_from_bits_f32((uint32_t)bits + lane * STEP);
        kg_floats_store(y, kg_exp_floats(kg_floats_at(x)));
        for (int lane = 0; lane < KG_FLOATS; lane++) {
            double error = error_of(y[lane], exp((double)x[lane]));
            double *most = x[lane] > 88.67f ? &worst_high : &worst;
            *most = fmax(*most, error);
        }
    }
    CHECK(worst <= 4.8);
    CHECK(worst_high <= 30.1);
    if (worst > 4.8 || worst_high > 30.1)
        fprintf(stderr, "%.2f units, %.2f above 88.67\n", worst, worst_high);
}

static const float values[KG_FLOATS] = {NAN, INFINITY, -INFINITY, 0.0f, 88.7229f, -104.0f, 3, -3};

static void test_exp_of_special_values(void)
{
    float y[KG_FLOATS];
    if (!is_supported())
        return;
    kg_floats_store(y, kg_exp_floats(kg_floats_at(values)));
    CHECK(isnan(y[0]) && y[1] == INFINITY && y[2] == 0 && y[3] == 1);
    CHECK(y[4] == INFINITY && y[5] == 0);
}

static bool is_same(float a, float b)
{
    return a == b || (a != a && b != b);
}

static void test_selections_and_folds(void)
{
    if (!is_supported())
        return;
    for (int turn = 0; turn < KG_FLOATS; turn++) {
        float turned[KG_FLOATS], most[KG_FLOATS], least[KG_FLOATS];
        for (int lane = 0; lane < KG_FLOATS; lane++)
            turned[lane] = values[(lane + turn) % KG_FLOATS];
        kg_floats_store(most, kg_max_floats(kg_floats_at(values), kg_floats_at(turned)));
        kg_floats_store(least, kg_min_floats(kg_floats_at(values), kg_floats_at(turned)));
        for (int lane = 0; lane < KG_FLOATS; lane++) {
            CHECK(is_same(most[lane], kg_max_f32(values[lane], turned[lane])));
            CHECK(is_same(least[lane], kg_min_f32(values[lane], turned[lane])));
        }
        kg_floats numbers[2] = {kg_floats_at(turned), kg_floats_all(7)};
        CHECK(isnan(kg_fold_max_floats(numbers, 2)) && isnan(kg_fold_min_floats(numbers, 2)));
        numbers[0] = (kg_floats){1, 2, 3, 4, 5, 6, 8, 9} * kg_floats_all(turn % 2 ? -1 : 1);
        CHECK(kg_fold_max_floats(numbers, 2) == (turn % 2 ? 7 : 9));
        CHECK(kg_fold_min_floats(numbers, 2) == (turn % 2 ? -9 : 1));
        CHECK(kg_fold_sum_floats(numbers, 2) == 56 + (turn % 2 ? -38 : 38));
    }
}

TEST_MAIN(test_exp, test_exp_of_special_values, test_selections_and_folds)
