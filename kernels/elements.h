// Elements whose code is the same for every target: floats of 8 bits, and integers that C has.
// Those of f16, bf16 and of 4 bits stand in the preludes of the targets. A new dtype adds what
// generated code calls, where NAME is the dtype's: kg_cast_NAME for integers; for narrow floats
// kg_pack_NAME and kg_unpack_NAME and all that is made of them.

KG_INLINE int64_t kg_cast_i16(int64_t x)
{
    return (int16_t)x;
}

KG_INLINE int64_t kg_cast_u16(int64_t x)
{
    return (uint16_t)x;
}

KG_INLINE int64_t kg_cast_u32(int64_t x)
{
    return (uint32_t)x;
}

// ---- Floats of 8 bits ----

// Bits, not numbers.
typedef uint8_t kg_f8e4m3; // 4 bits of exponent, 3 of fraction; no infinities, one NaN of each sign
typedef uint8_t kg_f8e5m2; // 5 bits of exponent, 2 of fraction; the upper half of an f16

// The number behind the sign, ties to even: `magnitude` are the bits of an f32 without its sign.
// All that is too large becomes `most`.
KG_INLINE uint32_t kg_nearest_f8(uint32_t magnitude, int fraction, int bias, uint32_t most)
{
    const int dropped = 23 - fraction;
    // Normal: the exponent gets its new bias, and the fraction is rounded.
    uint32_t rounded = magnitude - ((uint32_t)(127 - bias) << 23) + ((1u << (dropped - 1)) - 1) +
                       (magnitude >> dropped & 1);
    int32_t normal = (int32_t)(rounded >> dropped); // signed, because SIMD compares signed words
    normal = normal < (int32_t)most ? normal : (int32_t)most;
    // Denormal: beside this number the hardware rounds to multiples of the smallest value.
    const uint32_t beside = (uint32_t)(127 + 24 - bias - fraction) << 23;
    uint32_t small = kg_bits_f32(kg_from_bits_f32(magnitude) + kg_from_bits_f32(beside)) - beside;
    return (int32_t)magnitude < (128 - bias) << 23 ? small : (uint32_t)normal;
}

// The bits of a finite number as f32, without its sign.
KG_INLINE uint32_t kg_widened_f8(uint32_t magnitude, int fraction, int bias)
{
    const float smallest = kg_from_bits_f32((uint32_t)(128 - bias - fraction) << 23);
    uint32_t small = kg_bits_f32((float)(int32_t)magnitude * smallest);
    uint32_t normal = (magnitude << (23 - fraction)) + ((uint32_t)(127 - bias) << 23);
    return (int32_t)magnitude < 1 << fraction ? small : normal;
}

KG_INLINE float kg_unpack_f8e4m3(kg_f8e4m3 bits)
{
#if __CUDA_ARCH__ >= 890
    uint32_t pair;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"((uint16_t)bits));
    return kg_unpack_f16((uint16_t)pair);
#else
    uint32_t magnitude = bits & 0x7f, wide = kg_widened_f8(magnitude, 3, 7);
    wide = magnitude == 0x7f ? 0x7fc00000 : wide;
    return kg_from_bits_f32((uint32_t)(bits & 0x80) << 24 | wide);
#endif
}

// Too large is NaN, as OCP's conversion without saturation and PyTorch's have it. NVIDIA's
// instruction gives the largest number there.
KG_INLINE kg_f8e4m3 kg_pack_f8e4m3(float x)
{
#if __CUDA_ARCH__ >= 890
    uint16_t pair;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
    // 464 is half way to what would come after 448, and 448 is even.
    return (kg_f8e4m3)(fabsf(x) > 464.0f ? 0x7f : pair);
#else
    uint32_t bits = kg_bits_f32(x), near = kg_nearest_f8(bits & 0x7fffffff, 3, 7, 0x7f);
    return (kg_f8e4m3)((bits >> 24 & 0x80) | near);
#endif
}

KG_INLINE float kg_unpack_f8e5m2(kg_f8e5m2 bits)
{
#if defined(__CUDA_ARCH__)
    return kg_unpack_f16((uint16_t)(bits << 8));
#else
    uint32_t magnitude = bits & 0x7f, wide = kg_widened_f8(magnitude, 2, 15);
    wide = (int32_t)magnitude >= 0x7c ? magnitude << 21 | 0x7f800000 : wide;
    return kg_from_bits_f32((uint32_t)(bits & 0x80) << 24 | wide);
#endif
}

KG_INLINE kg_f8e5m2 kg_pack_f8e5m2(float x)
{
    uint32_t bits = kg_bits_f32(x);
#if __CUDA_ARCH__ >= 890
    uint16_t pair;
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
    // Half way from 57344, which is odd, to infinity.
    return (kg_f8e5m2)(fabsf(x) >= 61440.0f ? (bits >> 24 & 0x80) | 0x7c : pair);
#else
    uint32_t magnitude = bits & 0x7fffffff, near = kg_nearest_f8(magnitude, 2, 15, 0x7c);
    near = (int32_t)magnitude > 0x7f800000 ? 0x7f : near;
    return (kg_f8e5m2)((bits >> 24 & 0x80) | near);
#endif
}

KG_INLINE kg_f8e4m3 kg_pack_f8e4m3_f64(double x)
{
    return kg_pack_f8e4m3(kg_odd_f32(x));
}

KG_INLINE float kg_load_f8e4m3(const kg_f8e4m3 *from, int64_t at)
{
    return kg_unpack_f8e4m3(from[at]);
}

KG_INLINE void kg_store_f8e4m3(kg_f8e4m3 *to, int64_t at, float x)
{
    to[at] = kg_pack_f8e4m3(x);
}

KG_INLINE void kg_store_f8e4m3_f64(kg_f8e4m3 *to, int64_t at, double x)
{
    to[at] = kg_pack_f8e4m3_f64(x);
}

KG_INLINE float kg_cast_f8e4m3(float x)
{
    return kg_unpack_f8e4m3(kg_pack_f8e4m3(x));
}

KG_INLINE float kg_cast_f8e4m3_f64(double x)
{
    return kg_unpack_f8e4m3(kg_pack_f8e4m3_f64(x));
}

KG_INLINE kg_f8e5m2 kg_pack_f8e5m2_f64(double x)
{
    return kg_pack_f8e5m2(kg_odd_f32(x));
}

KG_INLINE float kg_load_f8e5m2(const kg_f8e5m2 *from, int64_t at)
{
    return kg_unpack_f8e5m2(from[at]);
}

KG_INLINE void kg_store_f8e5m2(kg_f8e5m2 *to, int64_t at, float x)
{
    to[at] = kg_pack_f8e5m2(x);
}

KG_INLINE void kg_store_f8e5m2_f64(kg_f8e5m2 *to, int64_t at, double x)
{
    to[at] = kg_pack_f8e5m2_f64(x);
}

KG_INLINE float kg_cast_f8e5m2(float x)
{
    return kg_unpack_f8e5m2(kg_pack_f8e5m2(x));
}

KG_INLINE float kg_cast_f8e5m2_f64(double x)
{
    return kg_unpack_f8e5m2(kg_pack_f8e5m2_f64(x));
}

// Several at once.
KG_INLINE void kg_widen_f8e4m3(const kg_f8e4m3 *from, float *to, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = kg_unpack_f8e4m3(from[i]);
}

KG_INLINE void kg_narrow_f8e4m3(const float *from, kg_f8e4m3 *to, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = kg_pack_f8e4m3(from[i]);
}

KG_INLINE void kg_widen_f8e5m2(const kg_f8e5m2 *from, float *to, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = kg_unpack_f8e5m2(from[i]);
}

KG_INLINE void kg_narrow_f8e5m2(const float *from, kg_f8e5m2 *to, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = kg_pack_f8e5m2(from[i]);
}
