// Vectors of floats, for loops that the compiler would not keep in registers. Arithmetic is written
// as for scalars; functions are called kg_NAME_floats.
#ifndef KG_FLOATS_H
#define KG_FLOATS_H

enum { KG_FLOATS = 8 };
typedef float kg_floats __attribute__((vector_size(32)));
typedef int32_t kg_masks __attribute__((vector_size(32)));
typedef uint32_t kg_words __attribute__((vector_size(32)));

KG_INLINE kg_floats kg_floats_at(const float *from)
{
    kg_floats value;
    memcpy(&value, from, sizeof value);
    return value;
}

KG_INLINE void kg_floats_store(float *to, kg_floats value)
{
    memcpy(to, &value, sizeof value);
}

// Stores past the caches; `to` is aligned to a vector.
KG_INLINE void kg_floats_stream(float *to, kg_floats value)
{
    kg_stream_vectors(to, &value, sizeof value);
}

KG_INLINE kg_floats kg_floats_all(float value)
{
    return value - (kg_floats){0};
}

// A divisor of many numbers: two multiplications each replace a division, with an error of at most
// 1.5 units in the last place.
typedef struct {
    float inverse;
    float scale; // keeps the inverse within the normal numbers
} kg_divisor;

KG_INLINE kg_divisor kg_divisor_f32(float by)
{
    const float scale = fabsf(by) < 0x1p-64f ? 0x1p64f : fabsf(by) > 0x1p64f ? 0x1p-64f : 1.0f;
    return (kg_divisor){1.0f / (by * scale), scale};
}

KG_INLINE kg_floats kg_over_floats(kg_floats x, kg_divisor by)
{
    return x * by.scale * by.inverse;
}

// The larger (smaller) of each pair, NaN if either is NaN.
KG_INLINE kg_floats kg_max_floats(kg_floats a, kg_floats b)
{
#ifdef __AVX__
    const kg_floats found = __builtin_ia32_maxps256(a, b); // b if one is NaN
    return __builtin_ia32_blendvps256(found, a, __builtin_ia32_cmpps256(a, a, 3));
#else
    const kg_masks first = (a > b) | (a != a);
    return (kg_floats)(((kg_masks)a & first) | ((kg_masks)b & ~first));
#endif
}

KG_INLINE kg_floats kg_min_floats(kg_floats a, kg_floats b)
{
#ifdef __AVX__
    const kg_floats found = __builtin_ia32_minps256(a, b);
    return __builtin_ia32_blendvps256(found, a, __builtin_ia32_cmpps256(a, a, 3));
#else
    const kg_masks first = (a < b) | (a != a);
    return (kg_floats)(((kg_masks)a & first) | ((kg_masks)b & ~first));
#endif
}

// exp(x) = 2^(n/8) exp(r). A table in one register has the eight fractional powers, which shortens
// the polynomial so that this takes two thirds of the scalar code's time. The table has
// bits(2^(k/8)) - k * 2^20, so that adding n * 2^20 gives the bits of 2^(n/8). Results below the
// smallest normal number may be flushed to zero. The error is 1.3 units in the last place near 0,
// 4.8 far from it, and 30 above 88.67, where the polynomial alone covers the rest.
KG_INLINE kg_floats kg_exp_floats(kg_floats x)
{
#if defined(__AVX2__) && defined(__FMA__)
    static const kg_masks table = {0x3f800000, 0x3f7b95c2, 0x3f7837f0, 0x3f75fed7,
                                   0x3f7504f3, 0x3f75672a, 0x3f7744fd, 0x3f7ac0c7};
    // Both limits return the second argument if it is NaN. At the least x, n/8 is -127, whose bits
    // are 0. Above the largest n, the polynomial covers the rest.
    x = __builtin_ia32_maxps256(kg_floats_all(-0x1.601e68p6f), x);
    kg_floats shifted = x * 0x1.715476p0f + 0x1.8p20f; // the last bits are n
    shifted = __builtin_ia32_minps256(kg_floats_all(0x1.8p20f + 127.875f), shifted);
    const kg_floats r = x - (shifted - 0x1.8p20f) * 0x1.62e43p-1f;
    const kg_floats p = r * r * (0x1.555556p-3f * r + 0x1.00087ep-1f) + r;
    const kg_words eighth =
        (kg_words)__builtin_ia32_permvarsf256((kg_floats)table, (kg_masks)shifted);
    const kg_floats scale = (kg_floats)(eighth + ((kg_words)shifted << 20)); // may wrap
    return scale * p + scale;
#else
    for (int lane = 0; lane < KG_FLOATS; lane++)
        x[lane] = kg_exp_f32(x[lane]);
    return x;
#endif
}

// Adds all lanes of `count` vectors.
KG_INLINE float kg_fold_sum_floats(const kg_floats *acc, int count)
{
    kg_floats sum = acc[0];
    for (int i = 1; i < count; i++)
        sum += acc[i];
    return ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7]));
}

KG_INLINE float kg_fold_max_floats(const kg_floats *acc, int count)
{
    kg_floats most = acc[0];
    for (int i = 1; i < count; i++)
        most = kg_max_floats(most, acc[i]);
    for (int lane = 1; lane < KG_FLOATS; lane++)
        most[0] = kg_max_f32(most[0], most[lane]);
    return most[0];
}

KG_INLINE float kg_fold_min_floats(const kg_floats *acc, int count)
{
    kg_floats least = acc[0];
    for (int i = 1; i < count; i++)
        least = kg_min_floats(least, acc[i]);
    for (int lane = 1; lane < KG_FLOATS; lane++)
        least[0] = kg_min_f32(least[0], least[lane]);
    return least[0];
}

#endif
