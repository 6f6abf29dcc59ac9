// The prelude of generated C: vectors, streaming stores and elements in memory; then (values.h,
// maths.h, maths_f32.h) integers, logic and the functions of reals.
//
// Functions are called kg_NAME_TYPE, where TYPE is the compute type: f32, f64, i64 or bool.
#include <math.h>
#include <string.h>

// All sizes and strides are declared, whether they are used or not.
#define KG_INLINE static inline __attribute__((always_inline, unused))

// Evaluations of the formula that make a range of items worth a thread.
enum { KG_HOST_WORK = 8192 };

// ---- Vectors ----

// Lane i of the result is the lane with the number at position i: those of `a` are counted first,
// then those of `b`. gcc supports the first spelling since version 12, and clang supports no other.
#if defined(__clang__) || __GNUC__ >= 12
#define KG_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define KG_SHUFFLE(a, b, ...)                                                                      \
    ({                                                                                             \
        typedef __typeof__(__builtin_choose_expr(                                                  \
            sizeof(a)[0] == 1, (int8_t)0,                                                          \
            __builtin_choose_expr(sizeof(a)[0] == 4, (int32_t)0, (int64_t)0))) kg_lane;            \
        typedef kg_lane kg_lanes __attribute__((vector_size(sizeof(a))));                          \
        __builtin_shuffle(a, b, (kg_lanes){__VA_ARGS__});                                          \
    })
#endif

// Before a loop whose iterations touch no element of one another.
#if defined(__clang__)
#define KG_LOOP_APART _Pragma("clang loop vectorize(assume_safety)")
#else
#define KG_LOOP_APART _Pragma("GCC ivdep")
#endif

// ---- Streaming stores, which do not read the lines that they overwrite ----

enum { KG_LINE = 64 };

#if defined(__AVX__)
typedef float kg_vector __attribute__((vector_size(32)));
#else
typedef float kg_vector __attribute__((vector_size(16)));
#endif

// Elements between the beginning of a cache line and `to`.
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

// Copies all bytes now, used or not.
KG_INLINE void kg_fetch(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
    __asm__ volatile("" : : "r"(to) : "memory"); // or compilers would load only what is used
}

// Copies whole vectors past the caches; `to` is aligned to one.
KG_INLINE void kg_stream_vectors(void *to, const void *from, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += sizeof(kg_vector)) {
        kg_vector value;
        memcpy(&value, (const char *)from + at, sizeof value);
        kg_stream_vector((kg_vector *)(void *)((char *)to + at), value);
    }
}

// The same of whole cache lines; `to` is aligned to a line.
KG_INLINE void kg_stream_lines(void *to, const void *from, size_t bytes)
{
#if defined(__AVX512F__) && !defined(__clang__)
    typedef long long line __attribute__((vector_size(64)));
    for (size_t at = 0; at < bytes; at += sizeof(line)) {
        line value;
        memcpy(&value, (const char *)from + at, sizeof value);
        __builtin_ia32_movntdq512((line *)(void *)((char *)to + at), value);
    }
#else
    kg_stream_vectors(to, from, bytes);
#endif
}

// Copies any number of bytes: whole cache lines past the caches, and partial lines at both ends
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

// Call once before other threads may read what was streamed.
KG_INLINE void kg_stream_end(void)
{
#if defined(__SSE__)
    __builtin_ia32_sfence();
#endif
}

// ---- Elements in memory ----

// Bits, not numbers, because not every compiler has these types. They may alias other types.
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

// The nearest float, but odd if it is inexact: rounding the result to a narrower type then equals
// rounding `x` to it directly.
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

// Selects one of two words by arithmetic, because a branch between computed values would keep the
// loop from being vectorised.
KG_INLINE uint32_t kg_pick(bool first, uint32_t a, uint32_t b)
{
    uint32_t mask = -(uint32_t)first;
    return (a & mask) | (b & ~mask);
}

KG_INLINE float kg_unpack_f16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = (uint32_t)(half & 0x7fff) << 13;
    float x = kg_from_bits_f32(rest) * 0x1p112f; // correct for denormals too
    uint32_t special = kg_pick((int32_t)rest >= 0x0f800000, 0x7f800000, 0); // infinity and NaN
    return kg_from_bits_f32(sign | kg_bits_f32(x) | special);
}

KG_INLINE uint16_t kg_pack_f16(float x)
{
    uint32_t bits = kg_bits_f32(x), sign = bits & 0x80000000;
    int32_t rest = (int32_t)(bits ^ sign); // signed, because SIMD compares signed words
    // Normal: rebias and round the mantissa to even; numbers that are too large become infinity.
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

// Converts an array; `count` is a multiple of 16. The empty instruction keeps the compiler from
// moving a later selection of the results into the load as a mask.
KG_INLINE void kg_widen_f16(const kg_f16 *from, float *to, int64_t count)
{
#if defined(__AVX512F__)
    // Whole registers are stored, because two stores of halves are not forwarded to a later load of
    // both.
    typedef short halves __attribute__((vector_size(32)));
    typedef float floats __attribute__((vector_size(64)));
    for (int64_t i = 0; i < count; i += 16) {
        halves packed;
        memcpy(&packed, from + i, sizeof packed);
        floats wide = __builtin_ia32_vcvtph2ps512_mask(packed, (floats){0}, -1, 4);
        __asm__("" : "+v"(wide));
        memcpy(to + i, &wide, sizeof wide);
    }
#elif defined(__F16C__)
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
#if defined(__AVX512F__)
    typedef short halves __attribute__((vector_size(32)));
    typedef float floats __attribute__((vector_size(64)));
    for (int64_t i = 0; i < count; i += 16) {
        floats wide;
        memcpy(&wide, from + i, sizeof wide);
        // To the nearest, ties to even.
        halves packed = __builtin_ia32_vcvtps2ph512_mask(wide, 0, (halves){0}, 0xffff);
        memcpy(to + i, &packed, sizeof packed);
    }
#elif defined(__F16C__)
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

// Two adjacent elements share a byte, so the same thread must write both.
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

// Rounds toward zero; values out of range become the nearest limit, NaN becomes 0.
KG_INLINE int64_t kg_truncate_f64(double x)
{
    double low = x < -0x1p63 ? -0x1p63 : x, inside = low >= 0x1p63 ? 0.0 : low;
    int64_t whole = (int64_t)(x != x ? 0.0 : inside);
    return x >= 0x1p63 ? INT64_MAX : whole;
}

// Without a detour by f64, and with minima rather than selections, which take a mask each.
KG_INLINE int64_t kg_truncate_f32(float x)
{
    const float number = x == x ? x : 0.0f, low = number > -0x1p63f ? number : -0x1p63f;
    const float inside = low < 0x1.fffffep62f ? low : 0x1.fffffep62f; // the last below 2^63
    const int64_t whole = (int64_t)inside;
    return low >= 0x1p63f ? INT64_MAX : whole;
}
