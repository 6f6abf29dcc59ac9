// Reductions in lanes: acc[lane] accumulates every lanes-th value, so that the compiler can use
// several vectors of accumulators and rounding errors do not build up in one long chain. The result
// of folding the lanes is the same for every number of threads.
#ifndef KG_LANES_H
#define KG_LANES_H

// Begins a step over the lanes. GCC would join two steps (unroll and jam), which touches lines of
// memory in an order that the hardware does not fetch ahead: counting in 4 MiB beyond the caches
// took one core of Zen 5 218 us joined, 118 us apart.
#define KG_STEP() __asm__ volatile("")

// acc[0] = the combination of all lanes, pairwise. `few`: only the first `count` have values, which
// gives the same result sooner: lanes of short rows were stored one by one, and no processor
// forwards such stores to loads of vectors. Softmax over 4 columns took 40 ns a row on a Zen 4
// instead of 90 ns. The empty instruction keeps the loop from being vectorised.
enum { KG_FEW_LANES = 8 };
#define KG_FOLD(NAME, TYPE, COMBINED)                                                              \
    KG_INLINE TYPE kg_fold_##NAME(TYPE *acc, int lanes)                                            \
    {                                                                                              \
        for (int half = lanes / 2; half > 0; half /= 2)                                            \
            for (int lane = 0; lane < half; lane++) {                                              \
                const TYPE a = acc[lane], b = acc[lane + half];                                    \
                acc[lane] = COMBINED;                                                              \
            }                                                                                      \
        return acc[0];                                                                             \
    }                                                                                              \
    KG_INLINE TYPE kg_fold_few_##NAME(TYPE *acc, int lanes, int64_t count)                         \
    {                                                                                              \
        if (count > KG_FEW_LANES || lanes < KG_FEW_LANES)                                          \
            return kg_fold_##NAME(acc, lanes);                                                     \
        for (int half = KG_FEW_LANES / 2; half > 0; half /= 2)                                     \
            for (int lane = 0; lane < half && lane + half < count; lane++) {                       \
                __asm__ volatile("");                                                              \
                const TYPE a = acc[lane], b = acc[lane + half];                                    \
                acc[lane] = COMBINED;                                                              \
            }                                                                                      \
        return acc[0];                                                                             \
    }

KG_FOLD(sum_f32, float, a + b)
KG_FOLD(sum_f64, double, a + b)
KG_FOLD(sum_i64, int64_t, kg_add_i64(a, b))
KG_FOLD(prod_f64, double, a *b)
KG_FOLD(prod_i64, int64_t, kg_mul_i64(a, b))
KG_FOLD(max_f32, float, kg_max_f32(a, b))
KG_FOLD(max_f64, double, kg_max_f64(a, b))
KG_FOLD(max_i64, int64_t, kg_max_i64(a, b))
KG_FOLD(min_f32, float, kg_min_f32(a, b))
KG_FOLD(min_f64, double, kg_min_f64(a, b))
KG_FOLD(min_i64, int64_t, kg_min_i64(a, b))
KG_FOLD(any_bool, int32_t, a | b)
KG_FOLD(all_bool, int32_t, a &b)

// A long sum with its rounding errors, which are added separately (Knuth's two-sum).
KG_INLINE void kg_two_sum(double *sum, double *lost, double value)
{
    const double old = *sum, now = old + value, part = now - old;
    *lost += (old - (now - part)) + (value - part);
    *sum = now;
}

// Infinities make `lost` NaN.
KG_INLINE double kg_two_value(double sum, double lost)
{
    return lost == lost ? sum + lost : sum;
}

// Lane `lane` found acc[lane] first in step at[lane] of `lanes` values each; the index of the first
// value is `first`.
#define KG_FOLD_PLACE(NAME, TYPE, STEP)                                                            \
    KG_INLINE void kg_fold_arg##NAME(TYPE *best, int64_t *best_at, const TYPE *acc,                \
                                     const STEP *at, int lanes, int64_t count, int64_t first)      \
    {                                                                                              \
        for (int lane = 0; lane < lanes && lane < count; lane++) {                                 \
            const int64_t index = first + (int64_t)at[lane] * lanes + lane;                        \
            const bool same = !kg_beats_##NAME(*best, acc[lane]) && index < *best_at;              \
            if (*best_at < 0 || kg_beats_##NAME(acc[lane], *best) || same) {                       \
                *best = acc[lane];                                                                 \
                *best_at = index;                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

// Step counters have the width of the values, so that both fill vectors alike.
KG_FOLD_PLACE(max_f32, float, int32_t)
KG_FOLD_PLACE(max_f64, double, int64_t)
KG_FOLD_PLACE(max_i64, int64_t, int64_t)
KG_FOLD_PLACE(min_f32, float, int32_t)
KG_FOLD_PLACE(min_f64, double, int64_t)
KG_FOLD_PLACE(min_i64, int64_t, int64_t)

// Prefetches `bytes` from `from` on. Any address is allowed.
KG_INLINE void kg_prefetch(const void *from, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i += KG_LINE)
        __builtin_prefetch((const char *)from + i);
}

// The same of what will be written: a core then owns its lines, and stores need not wait for them.
KG_INLINE void kg_prefetch_to_write(void *to, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i += KG_LINE)
        __builtin_prefetch((char *)to + i, 1);
}

#undef KG_FOLD
#undef KG_FOLD_PLACE
#endif
