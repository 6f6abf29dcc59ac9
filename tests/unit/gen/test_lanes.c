// Folding lanes of which only the first few have values (kernels/host/lanes.h) gives what folding
// all of them gives, bit by bit.

#include "test.h"

#include <float.h>
#include <math.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wpsabi"

#include "../../../kernels/host/abi.h"
// clang-format off
#include "../../../kernels/host/prelude.h"
#include "../../../kernels/elements.h"
#include "../../../kernels/values.h"
#include "../../../kernels/host/maths.h"
// clang-format on

#include "../../../kernels/host/lanes.h"

enum { MOST = 64, ROUNDS = 50 };

static uint64_t random_state = 88172645463325252u;

static uint64_t draw(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

// Also NaN, infinities and zeros of both signs.
static double draw_float(void)
{
    static const double special[] = {NAN, INFINITY, -INFINITY, 0.0, -0.0, FLT_MIN, FLT_MAX};
    uint64_t bits = draw();
    return bits % 8 == 0 ? special[bits / 8 % 7] : (double)(int64_t)bits * 1e-15;
}

#define CHECK_FOLD(NAME, TYPE, NEUTRAL, DRAW)                                                      \
    static void fold_##NAME(int lanes, int count)                                                  \
    {                                                                                              \
        TYPE few[MOST] = {0}, all[MOST] = {0}, got, want;                                          \
        for (int i = 0; i < lanes; i++)                                                            \
            few[i] = all[i] = i < count ? (TYPE)(DRAW) : (TYPE)(NEUTRAL);                          \
        got = kg_fold_few_##NAME(few, lanes, count);                                               \
        want = kg_fold_##NAME(all, lanes);                                                         \
        bool both_nan = got != got && want != want;                                                \
        CHECK(both_nan || memcmp(&got, &want, sizeof got) == 0);                                   \
    }

// Lanes of sums begin with +0.0, and so hold no -0.0.
CHECK_FOLD(sum_f32, float, 0, 0.0f + (float)draw_float())
CHECK_FOLD(sum_f64, double, 0, 0.0 + draw_float())
CHECK_FOLD(sum_i64, int64_t, 0, draw())
CHECK_FOLD(prod_f64, double, 1, draw_float())
CHECK_FOLD(prod_i64, int64_t, 1, draw())
CHECK_FOLD(max_f32, float, -INFINITY, draw_float())
CHECK_FOLD(max_f64, double, -INFINITY, draw_float())
CHECK_FOLD(max_i64, int64_t, INT64_MIN, draw())
CHECK_FOLD(min_f32, float, INFINITY, draw_float())
CHECK_FOLD(min_f64, double, INFINITY, draw_float())
CHECK_FOLD(min_i64, int64_t, INT64_MAX, draw())
CHECK_FOLD(any_bool, int32_t, 0, draw() & 1)
CHECK_FOLD(all_bool, int32_t, 1, draw() & 1)

int main(void)
{
    void (*const folds[])(int lanes, int count) = {
        fold_sum_f32, fold_sum_f64,  fold_sum_i64, fold_prod_f64, fold_prod_i64,
        fold_max_f32, fold_max_f64,  fold_max_i64, fold_min_f32,  fold_min_f64,
        fold_min_i64, fold_any_bool, fold_all_bool};
    for (size_t i = 0; i < sizeof folds / sizeof folds[0]; i++)
        for (int lanes = 1; lanes <= MOST; lanes *= 2)
            for (int count = 0; count <= lanes; count++)
                for (int round = 0; round < ROUNDS; round++)
                    folds[i](lanes, count);
    printf("%d checks, %d failed\n", test_checks, test_failures);
    return test_failures != 0;
}
