// The functions generated CUDA kernels are written in: elements in memory, integers, selection and
// logic. vectors.cuh has elements in vectors, maths.cuh the functions of reals, lanes.cuh what the
// threads of a block do together.
//
// Names and meaning are those of host/prelude.h: kg_NAME_TYPE, where TYPE is what is computed in:
// f32, f64, i64 or bool. Denormals are kept, unless the compiler is told otherwise.

#ifdef __CUDACC_RTC__ // no headers there
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#define INT64_C(digits) digits##ll
#define INT64_MAX 0x7fffffffffffffffll
#define INT64_MIN (-INT64_MAX - 1)
#else
#include <math.h>
#include <stdint.h>
#endif

#define KG_INLINE [[maybe_unused]] static __device__ __forceinline__

// ---- Elements in memory ----

// Bits, not numbers.
typedef uint16_t kg_f16;
typedef uint16_t kg_bf16;
typedef uint8_t kg_u4; // two elements, the even one in the low half
typedef uint8_t kg_i4;

KG_INLINE uint32_t kg_bits_f32(float x)
{
    return __float_as_uint(x);
}

KG_INLINE float kg_from_bits_f32(uint32_t bits)
{
    return __uint_as_float(bits);
}

// Towards zero, but odd where it is inexact: rounding that once more to a narrower type gives what
// rounding `x` to it directly would.
KG_INLINE float kg_odd_f32(double x)
{
    float inner = __double2float_rz(x);
    return kg_from_bits_f32(kg_bits_f32(inner) | ((double)inner != x));
}

KG_INLINE float kg_unpack_f16(kg_f16 half)
{
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(half));
    return x;
}

KG_INLINE kg_f16 kg_pack_f16(float x)
{
    kg_f16 half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(x));
    return half;
}

KG_INLINE kg_f16 kg_pack_f16_f64(double x)
{
    kg_f16 half;
    asm("cvt.rn.f16.f64 %0, %1;" : "=h"(half) : "d"(x));
    return half;
}

KG_INLINE float kg_unpack_bf16(kg_bf16 half)
{
    return kg_from_bits_f32((uint32_t)half << 16);
}

KG_INLINE kg_bf16 kg_pack_bf16(float x)
{
#if __CUDA_ARCH__ >= 800
    kg_bf16 half;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(half) : "f"(x));
    return half;
#else
    uint32_t bits = kg_bits_f32(x), even = bits >> 16 & 1;
    return x == x ? (kg_bf16)((bits + 0x7fff + even) >> 16) : 0x7fff;
#endif
}

KG_INLINE kg_bf16 kg_pack_bf16_f64(double x)
{
    return kg_pack_bf16(kg_odd_f32(x));
}

KG_INLINE float kg_load_f16(const kg_f16 *from, int64_t at)
{
    return kg_unpack_f16(from[at]);
}

KG_INLINE float kg_load_bf16(const kg_bf16 *from, int64_t at)
{
    return kg_unpack_bf16(from[at]);
}

KG_INLINE int64_t kg_load_u4(const kg_u4 *from, int64_t at)
{
    return from[at >> 1] >> ((int)at & 1) * 4 & 15;
}

KG_INLINE int64_t kg_load_i4(const kg_i4 *from, int64_t at)
{
    return ((from[at >> 1] >> ((int)at & 1) * 4 & 15) ^ 8) - 8;
}

KG_INLINE void kg_store_f16(kg_f16 *to, int64_t at, float x)
{
    to[at] = kg_pack_f16(x);
}

KG_INLINE void kg_store_f16_f64(kg_f16 *to, int64_t at, double x)
{
    to[at] = kg_pack_f16_f64(x);
}

KG_INLINE void kg_store_bf16(kg_bf16 *to, int64_t at, float x)
{
    to[at] = kg_pack_bf16(x);
}

KG_INLINE void kg_store_bf16_f64(kg_bf16 *to, int64_t at, double x)
{
    to[at] = kg_pack_bf16_f64(x);
}

// Two neighbours share a byte: whoever writes them must be one thread.
KG_INLINE void kg_store_u4(kg_u4 *to, int64_t at, int64_t x)
{
    int shift = ((int)at & 1) * 4;
    to[at >> 1] = (kg_u4)((to[at >> 1] & 0xf0 >> shift) | ((int)x & 15) << shift);
}

KG_INLINE void kg_store_i4(kg_i4 *to, int64_t at, int64_t x)
{
    kg_store_u4(to, at, x);
}

KG_INLINE float kg_cast_f16(float x)
{
    return kg_unpack_f16(kg_pack_f16(x));
}

KG_INLINE float kg_cast_f16_f64(double x)
{
    return kg_unpack_f16(kg_pack_f16_f64(x));
}

KG_INLINE float kg_cast_bf16(float x)
{
    return kg_unpack_bf16(kg_pack_bf16(x));
}

KG_INLINE float kg_cast_bf16_f64(double x)
{
    return kg_unpack_bf16(kg_pack_bf16_f64(x));
}

KG_INLINE int64_t kg_cast_i8(int64_t x)
{
    return (int8_t)x;
}

KG_INLINE int64_t kg_cast_u8(int64_t x)
{
    return (uint8_t)x;
}

KG_INLINE int64_t kg_cast_i32(int64_t x)
{
    return (int32_t)x;
}

KG_INLINE int64_t kg_cast_u4(int64_t x)
{
    return x & 15;
}

KG_INLINE int64_t kg_cast_i4(int64_t x)
{
    return ((x & 15) ^ 8) - 8;
}

// Towards zero; too large stops at the end of the range, NaN becomes 0.
KG_INLINE int64_t kg_truncate_f64(double x)
{
    return x == x ? __double2ll_rz(x) : 0;
}

KG_INLINE int64_t kg_truncate_f32(float x)
{
    return x == x ? __float2ll_rz(x) : 0;
}

// ---- Integers: arithmetic wraps, division rounds down, dividing by zero gives 0 ----

KG_INLINE int64_t kg_add_i64(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

KG_INLINE int64_t kg_sub_i64(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

KG_INLINE int64_t kg_mul_i64(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

KG_INLINE int64_t kg_neg_i64(int64_t a)
{
    return (int64_t)(0 - (uint64_t)a);
}

KG_INLINE int64_t kg_div_i64(int64_t a, int64_t b)
{
    if (b == 0)
        return 0;
    if (b == -1)
        return kg_neg_i64(a);
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

KG_INLINE int64_t kg_mod_i64(int64_t a, int64_t b)
{
    return b == 0 ? 0 : kg_sub_i64(a, kg_mul_i64(kg_div_i64(a, b), b));
}

KG_INLINE int64_t kg_ceildiv_i64(int64_t a, int64_t b)
{
    return kg_neg_i64(kg_div_i64(kg_neg_i64(a), b));
}

KG_INLINE int64_t kg_min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

KG_INLINE int64_t kg_max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

KG_INLINE int64_t kg_relu_i64(int64_t x)
{
    return x < 0 ? 0 : x;
}

KG_INLINE int64_t kg_abs_i64(int64_t x)
{
    return x < 0 ? kg_neg_i64(x) : x;
}

KG_INLINE int64_t kg_sign_i64(int64_t x)
{
    return (x > 0) - (x < 0);
}

KG_INLINE int64_t kg_floor_i64(int64_t x)
{
    return x;
}

KG_INLINE int64_t kg_ceil_i64(int64_t x)
{
    return x;
}

KG_INLINE int64_t kg_round_i64(int64_t x)
{
    return x;
}

// The nearest index into a dimension of `size` elements.
KG_INLINE int64_t kg_clamp(int64_t index, int64_t size)
{
    int64_t below = index < size ? index : size - 1;
    return below > 0 ? below : 0;
}

KG_INLINE bool kg_inside(int64_t index, int64_t size)
{
    return index >= 0 && index < size;
}

// ---- Selection and logic: both sides are always evaluated ----

KG_INLINE bool kg_and(bool a, bool b)
{
    return a & b;
}

KG_INLINE bool kg_or(bool a, bool b)
{
    return a | b;
}

KG_INLINE float kg_where_f32(bool condition, float a, float b)
{
    return condition ? a : b;
}

KG_INLINE double kg_where_f64(bool condition, double a, double b)
{
    return condition ? a : b;
}

KG_INLINE int64_t kg_where_i64(bool condition, int64_t a, int64_t b)
{
    return condition ? a : b;
}

KG_INLINE bool kg_where_bool(bool condition, bool a, bool b)
{
    return condition ? a : b;
}

KG_INLINE bool kg_isnan_f32(float x)
{
    return x != x;
}

KG_INLINE bool kg_isnan_f64(double x)
{
    return x != x;
}

KG_INLINE bool kg_isnan_i64(int64_t x)
{
    (void)x;
    return false;
}

KG_INLINE bool kg_isnan_bool(bool x)
{
    (void)x;
    return false;
}

// NaN if either is NaN.
KG_INLINE float kg_min_f32(float a, float b)
{
#if __CUDA_ARCH__ >= 800
    float found;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(found) : "f"(a), "f"(b));
    return found;
#else
    float found = fminf(a, b); // the other one, if one is NaN
    return a == a && b == b ? found : NAN;
#endif
}

KG_INLINE float kg_max_f32(float a, float b)
{
#if __CUDA_ARCH__ >= 800
    float found;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(found) : "f"(a), "f"(b));
    return found;
#else
    float found = fmaxf(a, b); // the other one, if one is NaN
    return a == a && b == b ? found : NAN;
#endif
}

KG_INLINE double kg_min_f64(double a, double b)
{
    return a != a || a < b ? a : b; // NaN if b is
}

KG_INLINE double kg_max_f64(double a, double b)
{
    return a != a || a > b ? a : b; // NaN if b is
}

// argmax and argmin: does `value`, coming later, take the place of `best`? The first NaN wins.
KG_INLINE bool kg_beats_max_f32(float value, float best)
{
    return value > best || (value != value && best == best);
}

KG_INLINE bool kg_beats_max_f64(double value, double best)
{
    return value > best || (value != value && best == best);
}

KG_INLINE bool kg_beats_max_i64(int64_t value, int64_t best)
{
    return value > best;
}

KG_INLINE bool kg_beats_min_f32(float value, float best)
{
    return value < best || (value != value && best == best);
}

KG_INLINE bool kg_beats_min_f64(double value, double best)
{
    return value < best || (value != value && best == best);
}

KG_INLINE bool kg_beats_min_i64(int64_t value, int64_t best)
{
    return value < best;
}

KG_INLINE float kg_relu_f32(float x)
{
    return x < 0.0f ? 0.0f : x;
}

KG_INLINE double kg_relu_f64(double x)
{
    return x < 0.0 ? 0.0 : x;
}

KG_INLINE float kg_sign_f32(float x)
{
    return (float)((x > 0.0f) - (x < 0.0f));
}

KG_INLINE double kg_sign_f64(double x)
{
    return (double)((x > 0.0) - (x < 0.0));
}
