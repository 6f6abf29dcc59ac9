// The functions generated kernels are written in: elements in memory, integers, and mathematics
// whose loops the compiler turns into vector code. Nothing here needs -ffast-math; NaN, infinities,
// signed zeros and denormals come out right.
//
// Functions are called kg_NAME_TYPE, where TYPE is what is computed in: f32, f64, i64 or bool.
#include <math.h>
#include <string.h>

// Sizes and strides are all declared, used or not.
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

// Copies whole lines past the caches; `to` is at the start of one.
KG_INLINE void kg_stream_lines(void *to, const void *from, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += sizeof(kg_vector)) {
        kg_vector value;
        memcpy(&value, (const char *)from + at, sizeof value);
        kg_stream_vector((kg_vector *)(void *)((char *)to + at), value);
    }
}

// Copies any number of bytes: whole lines past the caches, and what is left of a line at either end
// through them.
KG_INLINE void kg_stream(void *to, const void *from, size_t bytes)
{
    char *out = (char *)to;
    const char *in = (const char *)from;
    size_t head = (KG_LINE - (uintptr_t)out % KG_LINE) % KG_LINE;
    head = head < bytes ? head : bytes;
    size_t body = (bytes - head) / KG_LINE * KG_LINE, tail = bytes - head - body;
    if (head > 0)
        memcpy(out, in, head);
    kg_stream_lines(out + head, in + head, body);
    if (tail > 0)
        memcpy(out + head + body, in + head + body, tail);
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

// One of two words, as arithmetic: a choice between computed values would keep the loop around it
// from being vectorised.
KG_INLINE uint32_t kg_pick(bool first, uint32_t a, uint32_t b)
{
    uint32_t mask = -(uint32_t)first;
    return (a & mask) | (b & ~mask);
}

KG_INLINE float kg_unpack_f16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = (uint32_t)(half & 0x7fff) << 13;
    float x = kg_from_bits_f32(rest) * 0x1p112f; // right for denormals too
    uint32_t special = kg_pick((int32_t)rest >= 0x0f800000, 0x7f800000, 0); // infinity and NaN
    return kg_from_bits_f32(sign | kg_bits_f32(x) | special);
}

KG_INLINE uint16_t kg_pack_f16(float x)
{
    uint32_t bits = kg_bits_f32(x), sign = bits & 0x80000000;
    int32_t rest = (int32_t)(bits ^ sign); // signed, because SIMD compares signed words
    // Normal: rebias and round the mantissa to even; too large becomes infinity.
    uint32_t rounded = (uint32_t)rest - 0x38000000 + 0xfff + (((uint32_t)rest >> 13) & 1);
    int32_t normal = (int32_t)(rounded >> 13);
    normal = normal > 0x7c00 ? 0x7c00 : normal;
    // Denormal: adding 0.5 makes the hardware round at the right bit.
    uint32_t small = kg_bits_f32(kg_from_bits_f32((uint32_t)rest) + 0.5f) - 0x3f000000;
    uint32_t half = kg_pick(rest < 0x38800000, small, (uint32_t)normal);
    half = kg_pick(rest > 0x7f800000, 0x7e00, half);
    half = kg_pick(rest == 0x7f800000, 0x7c00, half);
    return (uint16_t)(half | sign >> 16);
}

KG_INLINE float kg_unpack_bf16(uint16_t half)
{
    return kg_from_bits_f32((uint32_t)half << 16);
}

KG_INLINE uint16_t kg_pack_bf16(float x)
{
    uint32_t bits = kg_bits_f32(x), nan = -(uint32_t)(x != x); // all ones, and stays one
    return (uint16_t)(((bits + 0x7fff + ((bits >> 16) & 1)) | nan) >> 16);
}

// Several at once; `count` is a multiple of 8.
KG_INLINE void kg_widen_f16(const kg_f16 *from, float *to, int64_t count)
{
#if defined(__F16C__)
    typedef short halves __attribute__((vector_size(16)));
    for (int64_t i = 0; i < count; i += 8) {
        halves packed;
        memcpy(&packed, from + i, sizeof packed);
        kg_vector wide = __builtin_ia32_vcvtph2ps256(packed);
        memcpy(to + i, &wide, sizeof wide);
    }
#else
    for (int64_t i = 0; i < count; i++)
        to[i] = kg_unpack_f16(from[i]);
#endif
}

KG_INLINE void kg_narrow_f16(const float *from, kg_f16 *to, int64_t count)
{
#if defined(__F16C__)
    typedef short halves __attribute__((vector_size(16)));
    for (int64_t i = 0; i < count; i += 8) {
        kg_vector wide;
        memcpy(&wide, from + i, sizeof wide);
        halves packed = __builtin_ia32_vcvtps2ph256(wide, 0); // to the nearest, ties to even
        memcpy(to + i, &packed, sizeof packed);
    }
#else
    for (int64_t i = 0; i < count; i++)
        to[i] = kg_pack_f16(from[i]);
#endif
}

KG_INLINE void kg_widen_bf16(const kg_bf16 *from, float *to, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = kg_unpack_bf16(from[i]);
}

KG_INLINE void kg_narrow_bf16(const float *from, kg_bf16 *to, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = kg_pack_bf16(from[i]);
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
    float found = a < b ? a : b; // one instruction; NaN if b is
    return a != a ? a : found;
}

KG_INLINE float kg_max_f32(float a, float b)
{
    float found = a > b ? a : b; // one instruction; NaN if b is
    return a != a ? a : found;
}

KG_INLINE double kg_min_f64(double a, double b)
{
    double found = a < b ? a : b; // one instruction; NaN if b is
    return a != a ? a : found;
}

KG_INLINE double kg_max_f64(double a, double b)
{
    double found = a > b ? a : b; // one instruction; NaN if b is
    return a != a ? a : found;
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

// ---- Mathematics: libm where it is exact, fast enough, or f64 ----

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

KG_INLINE double kg_exp_f64(double x)
{
    return exp(x);
}

KG_INLINE double kg_exp2_f64(double x)
{
    return exp2(x);
}

KG_INLINE double kg_expm1_f64(double x)
{
    return expm1(x);
}

KG_INLINE double kg_log_f64(double x)
{
    return log(x);
}

KG_INLINE double kg_log2_f64(double x)
{
    return log2(x);
}

KG_INLINE double kg_log1p_f64(double x)
{
    return log1p(x);
}

KG_INLINE double kg_tanh_f64(double x)
{
    return tanh(x);
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

KG_INLINE double kg_sigmoid_f64(double x)
{
    double e = kg_exp_f64(-fabs(x));
    return (x < 0.0 ? e : 1.0) / (1.0 + e);
}

KG_INLINE double kg_silu_f64(double x)
{
    return x * kg_sigmoid_f64(x);
}

KG_INLINE double kg_softplus_f64(double x)
{
    return kg_max_f64(x, 0.0) + kg_log1p_f64(kg_exp_f64(-fabs(x)));
}

KG_INLINE double kg_gelu_f64(double x)
{
    return x * (0.5 * erfc(x * -0.70710678118654752440));
}

// 0.5 (1 + tanh(u)) is the sigmoid of 2u.
KG_INLINE double kg_gelu_tanh_f64(double x)
{
    return x * kg_sigmoid_f64(1.59576912160573071176 * (x + 0.044715 * x * x * x));
}

// ---- Mathematics in f32: straight-line code that loops turn into vectors ----

// Polynomials are minimax fits with coefficients rounded to f32. A unit test checks the errors
// against libm's f64: see the table there.

// The nearest integer, and the same as an int; |x| < 2^22. Adding 1.5 * 2^23 leaves no bits for a
// fraction.
KG_INLINE float kg_nearest_f32(float x, int32_t *whole)
{
    float shifted = x + 0x1.8p23f;
    *whole = (int32_t)(kg_bits_f32(shifted) - 0x4b400000);
    return shifted - 0x1.8p23f;
}

// x * 2^n for n in [-252, 254], rounded once at most.
KG_INLINE float kg_scale_f32(float x, int32_t n)
{
    uint32_t half = (uint32_t)(n >> 1), rest = (uint32_t)n - half;
    return x * kg_from_bits_f32((half + 127) << 23) * kg_from_bits_f32((rest + 127) << 23);
}

// (exp(r) - 1 - r) / r^2 for |r| <= log(2) / 2.
KG_INLINE float kg_exp_rest_f32(float r)
{
    float p = 0x1.6b9c66p-10f;
    p = p * r + 0x1.12254ap-7f;
    p = p * r + 0x1.5556f2p-5f;
    p = p * r + 0x1.5554b4p-3f;
    return p * r + 0x1.fffffep-2f;
}

// exp(x + low) for a small `low`.
KG_INLINE float kg_exp_sum_f32(float x, float low)
{
    x = x < -104.0f ? -104.0f : x;
    x = x > 89.0f ? 89.0f : x;
    int32_t n;
    float whole = kg_nearest_f32(x * 0x1.715476p0f, &n);
    float r = ((x - whole * 0x1.62ep-1f) - whole * 0x1.0bfbe8p-15f) + low; // log(2) in two parts
    return kg_scale_f32(1.0f + (r + r * r * kg_exp_rest_f32(r)), n);
}

// Beyond the limits the result is 0 or infinite anyway. The power of two is two factors, so that
// small results are rounded once, by the last product.
KG_INLINE float kg_exp_f32(float x)
{
    x = x < -104.5f ? -104.5f : x;
    x = x > 89.0f ? 89.0f : x;
    float shifted = x * 0x1.715476p0f + 0x1.8p23f; // its last bits are the nearest integer
    float whole = shifted - 0x1.8p23f;
    float r = (x - whole * 0x1.62ep-1f) - whole * 0x1.0bfbe8p-15f; // log(2) in two parts
    float p = (kg_exp_rest_f32(r) * r + 1.0f) * r + 1.0f;
    int32_t n = (int32_t)kg_bits_f32(shifted) - 0x4b400000, half = n >> 1;
    float low = kg_from_bits_f32((uint32_t)(half + 127) << 23);
    float high = kg_from_bits_f32((uint32_t)(n - half + 127) << 23);
    return p * low * high;
}

KG_INLINE float kg_exp2_f32(float x)
{
    x = x < -151.0f ? -151.0f : x;
    x = x > 129.0f ? 129.0f : x;
    int32_t n;
    float r = x - kg_nearest_f32(x, &n);
    float p = 0x1.e0bacap-17f;
    p = p * r + 0x1.440e0ap-13f;
    p = p * r + 0x1.5da584p-10f;
    p = p * r + 0x1.3b2a5cp-7f;
    p = p * r + 0x1.c6b06ep-5f;
    p = p * r + 0x1.ebfbe0p-3f;
    p = p * r + 0x1.62e430p-1f;
    return kg_scale_f32(1.0f + p * r, n);
}

KG_INLINE float kg_expm1_f32(float x)
{
    float inside = x < -25.0f ? -25.0f : x;
    inside = inside > 89.0f ? 89.0f : inside;
    int32_t n;
    float whole = kg_nearest_f32(inside * 0x1.715476p0f, &n);
    float r = (inside - whole * 0x1.62ep-1f) - whole * 0x1.0bfbe8p-15f;
    float p = r + r * r * kg_exp_rest_f32(r);
    // 2^n * p + (2^n - 1), at half the size: 2^128 would be too large.
    float half = kg_from_bits_f32((uint32_t)(n + 126) << 23);
    float y = 2.0f * (half * p + (half - 0.5f));
    return copysignf(n == 0 ? p : y, x);
}

// x = 2^n * (1 + f) with f in [sqrt(1/2) - 1, sqrt(2) - 1], for normal x. Gives f.
KG_INLINE float kg_split_f32(float x, float *n)
{
    uint32_t bits = kg_bits_f32(x) - 0x3f3504f3;
    *n = (float)((int32_t)bits >> 23);
    return kg_from_bits_f32((bits & 0x7fffff) + 0x3f3504f3) - 1.0f;
}

// log(1 + f) - f for the f of kg_split_f32.
KG_INLINE float kg_log_rest_f32(float f)
{
    float p = 0x1.148910p-4f;
    p = p * f - 0x1.de218ap-4f;
    p = p * f + 0x1.e6c770p-4f;
    p = p * f - 0x1.fc24c0p-4f;
    p = p * f + 0x1.233afap-3f;
    p = p * f - 0x1.555c54p-3f;
    p = p * f + 0x1.99a47cp-3f;
    p = p * f - 0x1.000006p-2f;
    p = p * f + 0x1.555548p-2f;
    return f * f * (f * p - 0.5f);
}

// The logarithm of x: `y`, except outside the positive finite numbers.
KG_INLINE float kg_log_edges_f32(float x, float y)
{
    y = x == INFINITY ? INFINITY : y;
    return x > 0.0f ? y : x == 0.0f ? -INFINITY : NAN;
}

KG_INLINE float kg_log_f32(float x)
{
    bool small = x < 0x1p-126f;
    float n, f = kg_split_f32(small ? x * 0x1p24f : x, &n);
    n = small ? n - 24.0f : n;
    float y = n * 0x1.62ep-1f + (f + (n * 0x1.0bfbe8p-15f + kg_log_rest_f32(f)));
    return kg_log_edges_f32(x, y);
}

KG_INLINE float kg_log2_f32(float x)
{
    bool small = x < 0x1p-126f;
    float n, f = kg_split_f32(small ? x * 0x1p24f : x, &n);
    n = small ? n - 24.0f : n;
    // f and log2(e) in two parts each: the product of the high ones is exact.
    float high = kg_from_bits_f32(kg_bits_f32(f) & 0xfffff000);
    float low = (f - high) + kg_log_rest_f32(f);
    float y = (high * 0x1.714p0f + n) + (high * 0x1.47652cp-12f + low * 0x1.715476p0f);
    return kg_log_edges_f32(x, y);
}

KG_INLINE float kg_log1p_f32(float x)
{
    float u = 1.0f + x;
    float lost = x < 1.0f ? x - (u - 1.0f) : 1.0f - (u - x); // u + lost is 1 + x
    float n, f = kg_split_f32(u, &n);
    float y = n * 0x1.62ep-1f + (f + (n * 0x1.0bfbe8p-15f + kg_log_rest_f32(f) + lost / u));
    return copysignf(kg_log_edges_f32(u, y), x);
}

KG_INLINE float kg_tanh_f32(float x)
{
    float e = kg_expm1_f32(-2.0f * fabsf(x));
    return copysignf(e / (2.0f + e), x);
}

KG_INLINE float kg_sigmoid_f32(float x)
{
    float e = kg_exp_f32(-fabsf(x));
    return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

KG_INLINE float kg_silu_f32(float x)
{
    return x * kg_sigmoid_f32(x);
}

KG_INLINE float kg_softplus_f32(float x)
{
    return kg_max_f32(x, 0.0f) + kg_log1p_f32(kg_exp_f32(-fabsf(x)));
}

// A polynomial in x^2 up to 1, then 1 - exp(polynomial in |x|).
KG_INLINE float kg_erf_f32(float x)
{
    float z = fabsf(x), s = x * x;
    float p = 0x1.4771fcp-14f;
    p = p * s - 0x1.a3515ep-11f;
    p = p * s + 0x1.53f224p-8f;
    p = p * s - 0x1.b7f71ap-6f;
    p = p * s + 0x1.ce2ce6p-4f;
    p = p * s - 0x1.81273ep-2f;
    p = p * s + 0x1.06eba8p-3f;
    z = z > 4.0f ? 4.0f : z;
    float q = 0x1.86debep-13f;
    q = q * z - 0x1.825bcap-9f;
    q = q * z + 0x1.65cbdcp-6f;
    q = q * z - 0x1.a65372p-4f;
    q = q * z - 0x1.46bae6p-1f;
    q = q * z - 0x1.2088ecp0f;
    q = q * z - 0x1.661a16p-12f;
    float far = 1.0f - kg_exp_f32(q);
    return z < 1.0f ? x + x * p : copysignf(far, x);
}

// What the normal distribution has beyond z >= 0: exp(-z^2/2) times a rational function.
KG_INLINE float kg_tail_f32(float z)
{
    z = z > 15.0f ? 15.0f : z;
    float above = 0x1.0dc4b6p-8f;
    above = above * z + 0x1.4cde72p-5f;
    above = above * z + 0x1.774442p-3f;
    above = above * z + 0x1.c0d092p-2f;
    above = above * z + 0.5f;
    float below = 0x1.5219c2p-7f;
    below = below * z + 0x1.a1373ap-4f;
    below = below * z + 0x1.e0bd46p-2f;
    below = below * z + 0x1.33d762p0f;
    below = below * z + 0x1.acaa7ap0f;
    below = below * z + 1.0f;
    // z^2 in two parts: exp would magnify what the product loses.
    float high = kg_from_bits_f32(kg_bits_f32(z) & 0xfffff000);
    float low = (z - high) * (z + high);
    return kg_exp_sum_f32(-0.5f * high * high, -0.5f * low) * (above / below);
}

KG_INLINE float kg_gelu_f32(float x)
{
    float tail = kg_tail_f32(fabsf(x));
    return x * (x < 0.0f ? tail : 1.0f - tail);
}

// 0.5 (1 + tanh(u)) is the sigmoid of 2u.
KG_INLINE float kg_gelu_tanh_f32(float x)
{
    return x * kg_sigmoid_f32(1.595769121605731f * (x + 0.044715f * x * x * x));
}
