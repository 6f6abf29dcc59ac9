// Running totals of a block, in place. v[-1] is the total before it, which extremes begin with: it
// is 0 for sums and 1 for products, whose totals are added later in a wider type.
//
// The block is divided into segments that are processed alternately, because a single chain of
// dependent operations would leave the core waiting. Then each segment adds the total of the
// previous ones; the first one does so if FIRST is 0.
#ifndef KG_RUNNING_H
#define KG_RUNNING_H

enum { KG_SCAN_SEGMENTS = 8 };

#define KG_SCAN(NAME, TYPE, FIRST, COMBINED)                                                       \
    KG_INLINE void kg_scan_##NAME(TYPE *v, int64_t count)                                          \
    {                                                                                              \
        const int64_t length = count / KG_SCAN_SEGMENTS;                                           \
        TYPE total[KG_SCAN_SEGMENTS];                                                              \
        for (int s = 0; s < KG_SCAN_SEGMENTS && length > 0; s++)                                   \
            total[s] = v[s * length];                                                              \
        for (int64_t i = 1; i < length; i++)                                                       \
            for (int s = 0; s < KG_SCAN_SEGMENTS; s++) {                                           \
                const TYPE a = total[s], b = v[s * length + i];                                    \
                total[s] = COMBINED;                                                               \
                v[s * length + i] = total[s];                                                      \
            }                                                                                      \
        for (int s = FIRST; s < KG_SCAN_SEGMENTS && length > 0; s++) {                             \
            const TYPE a = v[s * length - 1];                                                      \
            for (int64_t i = 0; i < length; i++) {                                                 \
                const TYPE b = v[s * length + i];                                                  \
                v[s * length + i] = COMBINED;                                                      \
            }                                                                                      \
        }                                                                                          \
        int64_t i = KG_SCAN_SEGMENTS * length;                                                     \
        for (i = i > 0 ? i : FIRST; i < count; i++) {                                              \
            const TYPE a = v[i - 1], b = v[i];                                                     \
            v[i] = COMBINED;                                                                       \
        }                                                                                          \
    }

#ifdef __AVX__
// KG_PICK is the larger (smaller) of each pair, the first argument if it is NaN; what the second
// one waits for is one comparison and one selection. KG_PICK_SECOND does without the first if only
// the second may be NaN.
#if defined(__AVX512F__) && !defined(__clang__)
enum { KG_SCAN_LANES = 16 };
typedef float kg_scan_floats __attribute__((vector_size(64)));
#define KG_PICK(NAME, A, B)                                                                        \
    __builtin_ia32_blendmps_512_mask(__builtin_ia32_##NAME##ps512_mask(A, B, A, -1, 4), A,         \
                                     __builtin_ia32_cmpps512_mask(A, A, 3, -1, 4))
#define KG_PICK_SECOND(NAME, A, B) __builtin_ia32_##NAME##ps512_mask(A, B, A, -1, 4)
#define KG_SCAN_STEPS(COMBINED)                                                                    \
    a = KG_SHUFFLE(none, b, 0, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30);        \
    b = COMBINED;                                                                                  \
    a = KG_SHUFFLE(none, b, 0, 1, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29);         \
    b = COMBINED;                                                                                  \
    a = KG_SHUFFLE(none, b, 0, 1, 2, 3, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27);           \
    b = COMBINED;                                                                                  \
    a = KG_SHUFFLE(none, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);               \
    b = COMBINED;
#define KG_SCAN_LAST(B)                                                                            \
    KG_SHUFFLE(B, B, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15)
#else
enum { KG_SCAN_LANES = 8 };
typedef float kg_scan_floats __attribute__((vector_size(32)));
#define KG_PICK(NAME, A, B)                                                                        \
    __builtin_ia32_blendvps256(__builtin_ia32_##NAME##ps256(A, B), A,                              \
                               __builtin_ia32_cmpps256(A, A, 3))
#define KG_PICK_SECOND(NAME, A, B) __builtin_ia32_##NAME##ps256(A, B)
#define KG_SCAN_STEPS(COMBINED)                                                                    \
    a = KG_SHUFFLE(none, b, 0, 8, 9, 10, 4, 12, 13, 14);                                           \
    b = COMBINED;                                                                                  \
    a = KG_SHUFFLE(none, b, 0, 1, 8, 9, 4, 5, 12, 13);                                             \
    b = COMBINED;                                                                                  \
    a = KG_SHUFFLE(none, b, 0, 1, 2, 3, 11, 11, 11, 11);                                           \
    b = COMBINED;
#define KG_SCAN_LAST(B) KG_SHUFFLE(B, B, 7, 7, 7, 7, 7, 7, 7, 7)
#endif

// Inside a vector, elements are combined with their neighbours at distances 1, 2, 4 ...; then the
// vector is combined with the previous total. Only the last step depends on the vector before.
#define KG_SCAN_FLOATS(NAME, NEUTRAL, COMBINED)                                                    \
    KG_INLINE int64_t kg_scan_vectors_##NAME(float *v, int64_t count)                              \
    {                                                                                              \
        const kg_scan_floats none = NEUTRAL - (kg_scan_floats){0};                                 \
        kg_scan_floats carry = v[-1] - (kg_scan_floats){0};                                        \
        int64_t i = 0;                                                                             \
        for (; i + KG_SCAN_LANES <= count; i += KG_SCAN_LANES) {                                   \
            kg_scan_floats b, a;                                                                   \
            memcpy(&b, v + i, sizeof b);                                                           \
            KG_SCAN_STEPS(COMBINED)                                                                \
            const kg_scan_floats total = KG_SCAN_LAST(b);                                          \
            a = b, b = carry; /* the carry is second: a chain through all vectors */               \
            const kg_scan_floats out = COMBINED;                                                   \
            memcpy(v + i, &out, sizeof out);                                                       \
            a = total;                                                                             \
            carry = COMBINED;                                                                      \
        }                                                                                          \
        return i;                                                                                  \
    }

KG_SCAN_FLOATS(sum_f32, 0.0f, a + b)
KG_SCAN_FLOATS(max_f32, -INFINITY, KG_PICK(max, a, b))
KG_SCAN_FLOATS(min_f32, INFINITY, KG_PICK(min, a, b))
// Without a NaN among the values; the total before them may be one.
KG_SCAN_FLOATS(max_ordered, -INFINITY, KG_PICK_SECOND(max, a, b))
KG_SCAN_FLOATS(min_ordered, INFINITY, KG_PICK_SECOND(min, a, b))

KG_INLINE bool kg_scan_has_nan(const float *v, int64_t count)
{
    typedef int32_t bits __attribute__((vector_size(sizeof(kg_scan_floats))));
    bits found = {0};
    for (int64_t i = 0; i + KG_SCAN_LANES <= count; i += KG_SCAN_LANES) {
        kg_scan_floats value;
        memcpy(&value, v + i, sizeof value);
        found |= value != value;
    }
    int32_t any = 0;
    for (int lane = 0; lane < KG_SCAN_LANES; lane++)
        any |= found[lane];
    return any != 0;
}

KG_INLINE void kg_scan_sum_f32(float *v, int64_t count)
{
    for (int64_t i = kg_scan_vectors_sum_f32(v, count); i < count; i++)
        v[i] += v[i - 1];
}

// A search for NaN in the whole block saves a comparison and a selection in each step: two AVX2
// cores took 1.40 times as long as plain loops for cummax of 1024 rows of 1024, and 1.11 times with
// it, in the same blocks of 256.
#define KG_SCAN_EXTREME(NAME)                                                                      \
    KG_INLINE void kg_scan_##NAME##_f32(float *v, int64_t count)                                   \
    {                                                                                              \
        int64_t i = kg_scan_has_nan(v, count) ? kg_scan_vectors_##NAME##_f32(v, count)             \
                                              : kg_scan_vectors_##NAME##_ordered(v, count);        \
        for (; i < count; i++)                                                                     \
            v[i] = kg_##NAME##_f32(v[i - 1], v[i]);                                                \
    }

KG_SCAN_EXTREME(max)
KG_SCAN_EXTREME(min)
#else
KG_SCAN(sum_f32, float, 1, a + b)
KG_SCAN(max_f32, float, 0, kg_max_f32(a, b))
KG_SCAN(min_f32, float, 0, kg_min_f32(a, b))
#endif
KG_SCAN(sum_f64, double, 1, a + b)
KG_SCAN(sum_i64, int64_t, 1, kg_add_i64(a, b))
KG_SCAN(prod_f64, double, 1, a *b)
KG_SCAN(prod_i64, int64_t, 1, kg_mul_i64(a, b))
KG_SCAN(max_f64, double, 0, kg_max_f64(a, b))
KG_SCAN(max_i64, int64_t, 0, kg_max_i64(a, b))
KG_SCAN(min_f64, double, 0, kg_min_f64(a, b))
KG_SCAN(min_i64, int64_t, 0, kg_min_i64(a, b))
KG_SCAN(any_bool, int32_t, 1, a | b)
KG_SCAN(all_bool, int32_t, 1, a &b)

// Indices of the best so far: at[i] for the values v[0..i]; the index of v[i] is first + i.
#define KG_SCAN_PLACE(NAME, TYPE)                                                                  \
    KG_INLINE void kg_scan_arg##NAME(TYPE *best, int64_t *best_at, const TYPE *v, int64_t *at,     \
                                     int64_t count, int64_t first)                                 \
    {                                                                                              \
        for (int64_t i = 0; i < count; i++) {                                                      \
            if (*best_at < 0 || kg_beats_##NAME(v[i], *best)) {                                    \
                *best = v[i];                                                                      \
                *best_at = first + i;                                                              \
            }                                                                                      \
            at[i] = *best_at;                                                                      \
        }                                                                                          \
    }

KG_SCAN_PLACE(max_f32, float)
KG_SCAN_PLACE(max_f64, double)
KG_SCAN_PLACE(max_i64, int64_t)
KG_SCAN_PLACE(min_f32, float)
KG_SCAN_PLACE(min_f64, double)
KG_SCAN_PLACE(min_i64, int64_t)
#endif
