// pool: a kernel made by KernelGen.
//
//     y[c, w] = max(t) pad(x[c, w + t - 1], -inf)
//
// x: f16, y: f16; contiguous
// window: block=256 lanes=32

// The contract between this kernel and the runtime that calls it.
#include <stdbool.h>
#include <stdint.h>

struct kg_host_call {
    void *const *tensor;   // inputs, outputs, then intermediates in memory
    const int64_t *size;   // by size id, params included
    const int64_t *stride; // 8 per tensor, in elements
    char *shared;          // workspace of all threads
    char *scratch;         // workspace of this thread
    int thread;            // 0 .. threads-1
    int threads;
};

enum { KG_HOST_SHARED = 0, KG_HOST_SCRATCH = 1, KG_HOST_GRAIN = 2 };

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

// ---- Streaming stores, which do not read the lines that they overwrite ----

#if defined(__AVX__)
typedef float kg_vector __attribute__((vector_size(32)));
#else
typedef float kg_vector __attribute__((vector_size(16)));
#endif

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

KG_INLINE void kg_store_f16(kg_f16 *to, int64_t at, float x)
{
    to[at] = kg_pack_f16(x);
}

// Integers, selection and logic, with the same meaning on every target.

// ---- Integers: arithmetic wraps, division rounds down, dividing by zero gives 0 ----

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

KG_INLINE bool kg_inside(int64_t index, int64_t size)
{
    return index >= 0 && index < size;
}

// Mathematical functions: libm where it is exact or fast enough, and f64.

KG_INLINE float kg_max_f32(float a, float b)
{
    float found = b > a ? b : a; // one instruction; NaN if a is
    return b != b ? b : found;
}

// Rows of f16 for windows that move along them.
#ifndef KG_WINDOW_H
#define KG_WINDOW_H

// Converts any number of elements.
KG_INLINE void kg_window_f16(const kg_f16 *from, float *to, int64_t count)
{
    const int64_t whole = count / 16 * 16;
    kg_widen_f16(from, to, whole);
    for (int64_t i = whole; i < count; i++)
        to[i] = kg_unpack_f16(from[i]);
}

#endif

static int64_t kernel_total(const struct kg_host_call *call)
{
    enum { BLOCK = 256, LANES = 32 };
    const int64_t C = call->size[0];
    const int64_t W = call->size[1];
    return C * kg_ceildiv_i64(W, BLOCK);
}

int64_t kernel_items(const struct kg_host_call *call, int phase)
{
    return phase == 0 ? kernel_total(call) : -1;
}

int64_t kernel_bytes(const struct kg_host_call *call, int kind)
{
    (void)call;
    enum { BLOCK = 256, LANES = 32 };
    const int64_t W = call->size[1];
    if (kind == KG_HOST_SCRATCH) {
    enum { STRIDE = 1, DILATION = 1 };
    const int64_t reach = STRIDE * (LANES - 1) + DILATION * kg_max_i64((3 - 0), 1) + 1;
    const int64_t part = reach / STRIDE + 1;
        return (reach + STRIDE * part) * (int64_t)sizeof(float);
    }
    if (kind != KG_HOST_GRAIN)
        return 0;
    const int64_t length = kg_min_i64(BLOCK, W) * 3;
    return 1 + KG_HOST_WORK / kg_max_i64(1, length);
}

void kernel_run(const struct kg_host_call *call, int phase, int64_t begin, int64_t end)
{
    (void)phase;
    enum { BLOCK = 256, LANES = 32 };
    const int64_t C = call->size[0];
    const int64_t W = call->size[1];
    const kg_f16 *restrict x = call->tensor[0];
    const int64_t x_s0 = W;
    kg_f16 *restrict y = call->tensor[1];
    const int64_t y_s0 = W;
    enum { STRIDE = 1, DILATION = 1 };
    float *restrict const parts = (float *)call->scratch;
    float *restrict const row = parts;
    for (int64_t item = begin; item < end; item++) {
        int64_t rest = item;
        const int64_t blocks = kg_ceildiv_i64(W, BLOCK);
        const int64_t first = rest % blocks * BLOCK;
        const int64_t stop = kg_min_i64(first + BLOCK, W);
        rest /= blocks;
        const int64_t i0 = rest;
        for (int64_t start = first; start < stop; start += LANES) {
            const int lanes = (int)kg_min_i64(LANES, stop - start);
            float total[LANES];
            for (int lane = 0; lane < LANES; lane++)
                total[lane] = -INFINITY;
            const int64_t origin = (start + 0 - 1);
            const int64_t span = STRIDE * (lanes - 1) + DILATION * ((3 - 0) - 1) + 1;
            const bool inside = kg_inside(i0, C);
            const int64_t low = inside ? kg_min_i64(kg_max_i64(-origin, 0), span) : span;
            const int64_t high = kg_max_i64(low, kg_min_i64(W - origin, span));
            for (int64_t j = 0; j < low; j++)
                row[j] = -INFINITY;
            for (int64_t j = high; j < span; j++)
                row[j] = -INFINITY;
            const int64_t from = i0 * x_s0 + origin;
            if (low < high)
                kg_window_f16(x + (from + low), row + low, high - low);
            for (int64_t i2 = 0; i2 < 3; i2++) {
                for (int lane = 0; lane < lanes; lane++) {
                    total[lane] = kg_max_f32(total[lane], parts[DILATION * (i2 - 0) + lane]);
                }
            }
            for (int lane = 0; lane < lanes; lane++) {
                const int64_t i1 = start + lane;
                kg_store_f16(y, i0 * y_s0 + i1, total[lane]);
            }
        }
    }
}
