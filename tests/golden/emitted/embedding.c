// embedding: a kernel made by KernelGen.
//
//     y[b, l, d] = table[ids[b, l], d]
//
// table: f16, ids: i64, y: f16; contiguous
// pointwise: block=1024 stream=0 tile=0 ways=1

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

// ---- Elements in memory ----

// Bits, not numbers, because not every compiler has these types. They may alias other types.
typedef uint16_t __attribute__((may_alias)) kg_f16;
typedef uint16_t __attribute__((may_alias)) kg_bf16;
typedef uint8_t __attribute__((may_alias)) kg_u4; // two elements, the even one in the low half
typedef uint8_t __attribute__((may_alias)) kg_i4;

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

// Clamps an index to a dimension of `size` elements, in a form that compilers keep free of
// branches.
KG_INLINE int64_t kg_clamp(int64_t index, int64_t size)
{
    const int64_t last = size - 1;
    int64_t below = index < last ? index : last;
    return below > 0 ? below : 0;
}

int64_t kernel_items(const struct kg_host_call *call, int phase)
{
    enum { BLOCK = 1024, STAGE = 0 };
    const int64_t D = call->size[1];
    const int64_t B = call->size[2];
    const int64_t L = call->size[3];
    if (phase > 0)
        return -1;
    return B * L * kg_ceildiv_i64(D, BLOCK);
}

int64_t kernel_bytes(const struct kg_host_call *call, int kind)
{
    (void)call;
    enum { BLOCK = 1024, STAGE = 0 };
    const int64_t D = call->size[1];
    if (kind != KG_HOST_GRAIN)
        return 0;
    return 1 + KG_HOST_WORK / (1 + kg_min_i64(BLOCK, D));
}

void kernel_run(const struct kg_host_call *call, int phase, int64_t begin, int64_t end)
{
    (void)phase;
    enum { BLOCK = 1024, STAGE = 0 };
    const int64_t V = call->size[0];
    const int64_t D = call->size[1];
    const kg_f16 *restrict table = call->tensor[0];
    const int64_t table_s0 = D;
    const int64_t *restrict ids = call->tensor[1];
    kg_f16 *restrict y = call->tensor[2];
    const int64_t y_s1 = D;
    int64_t rest = begin;
    const int64_t count2 = kg_ceildiv_i64(D, BLOCK);
    int64_t block2 = rest % count2;
    rest /= count2;
    int64_t i1 = rest;
    for (int64_t left = end - begin; left > 0; left--) {
        const int64_t first = block2 * BLOCK;
        const int64_t stop = kg_min_i64(first + BLOCK, D);
        const int64_t place0 = kg_clamp(ids[i1], V);
        for (int64_t i2 = first; i2 < stop; i2++) {
            y[i1 * y_s1 + i2] = table[place0 * table_s0 + i2];
        }
        if (++block2 < count2)
            continue;
        block2 = 0;
        i1++;
    }
}
