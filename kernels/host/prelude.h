// The functions generated kernels are written in: elements in memory, integers, and mathematics
// whose loops the compiler turns into vector code. Nothing here needs -ffast-math; NaN, infinities,
// signed zeros and denormals come out right.
//
// Functions are called kg_NAME_TYPE, where TYPE is what is computed in: f32, f64, i64 or bool.
#include <math.h>
#include <string.h>

// Sizes and strides are all declared, used or not.
#pragma GCC diagnostic ignored "-Wunused-variable"

#define KG_INLINE static inline __attribute__((always_inline, unused))

// A range of items should do this much, in evaluations of the formula, to be worth a thread.
enum { KG_HOST_WORK = 8192 };

// ---- Streams: stores that do not read the lines they overwrite ----

enum { KG_LINE = 64 };

#if defined(__AVX__)
typedef float kg_vector __attribute__((vector_size(32)));
#else
typedef float kg_vector __attribute__((vector_size(16)));
#endif

// Elements by which `to` is past the start of a line.
KG_INLINE int64_t kg_past_line(const void *to, size_t size)
{
    return (int64_t)((uintptr_t)to % KG_LINE / size);
}

KG_INLINE void kg_stream_vector(kg_vector *to, kg_vector value)
{
#if defined(__clang__)
    __builtin_nontemporal_store(value, to);
#elif defined(__AVX__)
    __builtin_ia32_movntps256((float *)to, value);
#elif defined(__SSE__)
    __builtin_ia32_movntps((float *)to, value);
#else
    *to = value;
#endif
}

// Copies whole lines past the caches, and what is left of a line at either end through them.
KG_INLINE void kg_stream(void *to, const void *from, size_t bytes)
{
    char *out = (char *)to;
    const char *in = (const char *)from;
    size_t head = (KG_LINE - (uintptr_t)out % KG_LINE) % KG_LINE;
    head = head < bytes ? head : bytes;
    size_t body = (bytes - head) / KG_LINE * KG_LINE;
    memcpy(out, in, head);
    for (size_t at = head; at < head + body; at += sizeof(kg_vector)) {
        kg_vector value;
        memcpy(&value, in + at, sizeof value);
        kg_stream_vector((kg_vector *)(void *)(out + at), value);
    }
    memcpy(out + head + body, in + head + body, bytes - head - body);
}

// To be called once before other threads may read what was streamed.
KG_INLINE void kg_stream_end(void)
{
#if defined(__SSE__)
    __builtin_ia32_sfence();
#endif
}

// ---- Elements in memory ----

// Bits, not numbers: not every compiler has the types. They may alias the caller's own.
typedef uint16_t __attribute__((may_alias)) kg_f16;
typedef uint16_t __attribute__((may_alias)) kg_bf16;
typedef uint8_t __attribute__((may_alias)) kg_u4; // two elements, the even one in the low half
typedef uint8_t __attribute__((may_alias)) kg_i4;

KG_INLINE uint32_t kg_bits_f32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

KG_INLINE float kg_from_bits_f32(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// The nearest float, but odd where it is inexact: rounding that once more to a narrower type gives
// what rounding `x` to it directly would.
KG_INLINE float kg_odd_f32(double x)
{
    float near = (float)x;
    double back = (double)near;
    if (back == x || x != x || back - back != 0.0)
        return near;
    uint32_t bits = kg_bits_f32(near);
    if (fabs(back) > fabs(x))
        bits -= 1;
    return kg_from_bits_f32(bits | 1);
}

KG_INLINE float kg_unpack_f16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = (uint32_t)(half & 0x7fff) << 13;
    float x = kg_from_bits_f32(rest) * 0x1p112f; // right for denormals too
    uint32_t bits = rest >= 0x0f800000 ? rest | 0x7f800000 : kg_bits_f32(x);
    return kg_from_bits_f32(sign | bits);
}

KG_INLINE uint16_t kg_pack_f16(float x)
{
    uint32_t bits = kg_bits_f32(x), sign = bits & 0x80000000, rest = bits ^ sign;
    // Normal: rebias and round the mantissa to even; too large becomes infinity.
    uint32_t normal = (rest - 0x38000000 + 0xfff + ((rest >> 13) & 1)) >> 13;
    normal = normal > 0x7c00 ? 0x7c00 : normal;
    // Denormal: adding 0.5 makes the hardware round at the right bit.
    uint32_t small = kg_bits_f32(kg_from_bits_f32(rest) + 0.5f) - 0x3f000000;
    uint32_t half = rest < 0x38800000 ? small : normal;
    half = rest > 0x7f800000 ? 0x7e00 : half;
    half = rest == 0x7f800000 ? 0x7c00 : half;
    return (uint16_t)(half | sign >> 16);
}

KG_INLINE float kg_unpack_bf16(uint16_t half)
{
    return kg_from_bits_f32((uint32_t)half << 16);
}

KG_INLINE uint16_t kg_pack_bf16(float x)
{
    uint32_t bits = kg_bits_f32(x);
    uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    uint32_t quiet = (bits >> 16) | 0x40;
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
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
    return (from[at >> 1] >> ((at & 1) * 4)) & 15;
}

KG_INLINE int64_t kg_load_i4(const kg_i4 *from, int64_t at)
{
    return (((from[at >> 1] >> ((at & 1) * 4)) & 15) ^ 8) - 8;
}

KG_INLINE void kg_store_f16(kg_f16 *to, int64_t at, float x)
{
    to[at] = kg_pack_f16(x);
}

KG_INLINE void kg_store_f16_f64(kg_f16 *to, int64_t at, double x)
{
    to[at] = kg_pack_f16(kg_odd_f32(x));
}

KG_INLINE void kg_store_bf16(kg_bf16 *to, int64_t at, float x)
{
    to[at] = kg_pack_bf16(x);
}

KG_INLINE void kg_store_bf16_f64(kg_bf16 *to, int64_t at, double x)
{
    to[at] = kg_pack_bf16(kg_odd_f32(x));
}

// Two neighbours share a byte: whoever writes them must be one thread.
KG_INLINE void kg_store_u4(kg_u4 *to, int64_t at, int64_t x)
{
    int shift = (int)(at & 1) * 4;
    to[at >> 1] = (kg_u4)((to[at >> 1] & (0xf0 >> shift)) | (int)(x & 15) << shift);
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
    return kg_unpack_f16(kg_pack_f16(kg_odd_f32(x)));
}

KG_INLINE float kg_cast_bf16(float x)
{
    return kg_unpack_bf16(kg_pack_bf16(x));
}

KG_INLINE float kg_cast_bf16_f64(double x)
{
    return kg_unpack_bf16(kg_pack_bf16(kg_odd_f32(x)));
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
    double low = x < -0x1p63 ? -0x1p63 : x, inside = low >= 0x1p63 ? 0.0 : low;
    int64_t whole = (int64_t)(x != x ? 0.0 : inside);
    return x >= 0x1p63 ? INT64_MAX : whole;
}

KG_INLINE int64_t kg_truncate_f32(float x)
{
    return kg_truncate_f64((double)x);
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

// ---- Selection and logic: both sides are always evaluated, so that loops stay straight ----

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
    return a < b || a != a ? a : b;
}

KG_INLINE float kg_max_f32(float a, float b)
{
    return a > b || a != a ? a : b;
}

KG_INLINE double kg_min_f64(double a, double b)
{
    return a < b || a != a ? a : b;
}

KG_INLINE double kg_max_f64(double a, double b)
{
    return a > b || a != a ? a : b;
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

// ---- Mathematics ----

KG_INLINE float kg_abs_f32(float x)
{
    return fabsf(x);
}

KG_INLINE double kg_abs_f64(double x)
{
    return fabs(x);
}

KG_INLINE float kg_floor_f32(float x)
{
    return floorf(x);
}

KG_INLINE double kg_floor_f64(double x)
{
    return floor(x);
}

KG_INLINE float kg_ceil_f32(float x)
{
    return ceilf(x);
}

KG_INLINE double kg_ceil_f64(double x)
{
    return ceil(x);
}

// Half to even.
KG_INLINE float kg_round_f32(float x)
{
    return rintf(x);
}

KG_INLINE double kg_round_f64(double x)
{
    return rint(x);
}

KG_INLINE float kg_sqrt_f32(float x)
{
    return sqrtf(x);
}

KG_INLINE double kg_sqrt_f64(double x)
{
    return sqrt(x);
}

KG_INLINE float kg_rsqrt_f32(float x)
{
    return 1.0f / sqrtf(x);
}

KG_INLINE double kg_rsqrt_f64(double x)
{
    return 1.0 / sqrt(x);
}

KG_INLINE double kg_mod_f64(double x, double y)
{
    return x - y * floor(x / y);
}

KG_INLINE float kg_mod_f32(float x, float y)
{
    return (float)kg_mod_f64((double)x, (double)y);
}

KG_INLINE float kg_exp_f32(float x)
{
    return expf(x);
}

KG_INLINE double kg_exp_f64(double x)
{
    return exp(x);
}

KG_INLINE float kg_exp2_f32(float x)
{
    return exp2f(x);
}

KG_INLINE double kg_exp2_f64(double x)
{
    return exp2(x);
}

KG_INLINE float kg_expm1_f32(float x)
{
    return expm1f(x);
}

KG_INLINE double kg_expm1_f64(double x)
{
    return expm1(x);
}

KG_INLINE float kg_log_f32(float x)
{
    return logf(x);
}

KG_INLINE double kg_log_f64(double x)
{
    return log(x);
}

KG_INLINE float kg_log2_f32(float x)
{
    return log2f(x);
}

KG_INLINE double kg_log2_f64(double x)
{
    return log2(x);
}

KG_INLINE float kg_log1p_f32(float x)
{
    return log1pf(x);
}

KG_INLINE double kg_log1p_f64(double x)
{
    return log1p(x);
}

KG_INLINE float kg_tanh_f32(float x)
{
    return tanhf(x);
}

KG_INLINE double kg_tanh_f64(double x)
{
    return tanh(x);
}

KG_INLINE float kg_erf_f32(float x)
{
    return erff(x);
}

KG_INLINE double kg_erf_f64(double x)
{
    return erf(x);
}

KG_INLINE float kg_sin_f32(float x)
{
    return sinf(x);
}

KG_INLINE double kg_sin_f64(double x)
{
    return sin(x);
}

KG_INLINE float kg_cos_f32(float x)
{
    return cosf(x);
}

KG_INLINE double kg_cos_f64(double x)
{
    return cos(x);
}

KG_INLINE float kg_pow_f32(float x, float y)
{
    return powf(x, y);
}

KG_INLINE double kg_pow_f64(double x, double y)
{
    return pow(x, y);
}

KG_INLINE float kg_sigmoid_f32(float x)
{
    float e = kg_exp_f32(-fabsf(x));
    return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

KG_INLINE double kg_sigmoid_f64(double x)
{
    double e = kg_exp_f64(-fabs(x));
    return (x < 0.0 ? e : 1.0) / (1.0 + e);
}

KG_INLINE float kg_silu_f32(float x)
{
    return x * kg_sigmoid_f32(x);
}

KG_INLINE double kg_silu_f64(double x)
{
    return x * kg_sigmoid_f64(x);
}

KG_INLINE float kg_softplus_f32(float x)
{
    return kg_max_f32(x, 0.0f) + kg_log1p_f32(kg_exp_f32(-fabsf(x)));
}

KG_INLINE double kg_softplus_f64(double x)
{
    return kg_max_f64(x, 0.0) + kg_log1p_f64(kg_exp_f64(-fabs(x)));
}

KG_INLINE double kg_gelu_f64(double x)
{
    return x * (0.5 * erfc(x * -0.70710678118654752440));
}

KG_INLINE float kg_gelu_f32(float x)
{
    return (float)kg_gelu_f64((double)x);
}

// 0.5 (1 + tanh(u)) is the sigmoid of 2u.
KG_INLINE double kg_gelu_tanh_f64(double x)
{
    return x * kg_sigmoid_f64(1.59576912160573071176 * (x + 0.044715 * x * x * x));
}

KG_INLINE float kg_gelu_tanh_f32(float x)
{
    return x * kg_sigmoid_f32(1.595769121605731f * (x + 0.044715f * x * x * x));
}
