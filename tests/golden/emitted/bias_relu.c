// bias_relu: a kernel made by KernelGen.
//
//     y[p, d] = relu(x[p, d] + bias[d])
//
// x: f32, bias: f32, y: f32; contiguous
// pointwise: block=1024 stream=64 tile=0 ways=4

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

// Call once before other threads may read what was streamed.
KG_INLINE void kg_stream_end(void)
{
#if defined(__SSE__)
    __builtin_ia32_sfence();
#endif
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

// ---- Selection and logic: both operands are always evaluated, so that loops have no branches ----

KG_INLINE float kg_relu_f32(float x)
{
    return x < 0.0f ? 0.0f : x;
}

int64_t kernel_items(const struct kg_host_call *call, int phase)
{
    enum { BLOCK = 1024, STAGE = 64 };
    const int64_t P = call->size[0];
    const int64_t D = call->size[1];
    if (phase > 0)
        return -1;
    return P * kg_ceildiv_i64(D, BLOCK);
}

int64_t kernel_bytes(const struct kg_host_call *call, int kind)
{
    (void)call;
    enum { BLOCK = 1024, STAGE = 64 };
    const int64_t D = call->size[1];
    if (kind != KG_HOST_GRAIN)
        return 0;
    return 1 + KG_HOST_WORK / (1 + kg_min_i64(BLOCK, D));
}

void kernel_run(const struct kg_host_call *call, int phase, int64_t begin, int64_t end)
{
    (void)phase;
    enum { BLOCK = 1024, STAGE = 64 };
    enum { WAYS = 4 };
    const int64_t D = call->size[1];
    const float *restrict x = call->tensor[0];
    const int64_t x_s0 = D;
    const float *restrict bias = call->tensor[1];
    float *restrict y = call->tensor[2];
    const int64_t y_s0 = D;
    const int64_t share = kg_ceildiv_i64(end - begin, WAYS);
    for (int64_t turn = 0; turn < share; turn++) {
        int64_t at0[WAYS];
        int64_t nexts[WAYS], stops[WAYS];
        for (int way = 0; way < WAYS; way++) {
            const int64_t item = begin + way * share + turn;
            int64_t rest = kg_min_i64(item, end - 1);
            const int64_t count1 = kg_ceildiv_i64(D, BLOCK);
            int64_t block1 = rest % count1;
            rest /= count1;
            int64_t i0 = rest;
            const int64_t first = block1 * BLOCK;
            const int64_t stop = kg_min_i64(first + BLOCK, D);
            at0[way] = i0;
            nexts[way] = item < end ? first : stop;
            stops[way] = stop;
        }
        for (bool more = true; more;) {
            more = false;
            for (int way = 0; way < WAYS; way++) {
                int64_t next = nexts[way];
                const int64_t stop = stops[way];
                const int64_t i0 = at0[way];
                if (next >= stop)
                    continue;
                const int64_t past = kg_past_line(y + i0 * y_s0 + next, sizeof(float));
                if (past > 0 || stop - next < STAGE) {
                    const int64_t limit = kg_min_i64(stop, next + STAGE - past);
                    for (int64_t i1 = next; i1 < limit; i1++) {
                        y[i0 * y_s0 + i1] = kg_relu_f32(x[i0 * x_s0 + i1] + bias[i1]);
                    }
                    next = limit;
                } else {
                    float stage0[STAGE] __attribute__((aligned(KG_LINE)));
                    for (int64_t lane = 0; lane < STAGE; lane++) {
                        const int64_t i1 = next + lane;
                        stage0[lane] = kg_relu_f32(x[i0 * x_s0 + i1] + bias[i1]);
                    }
                    kg_stream_lines(y + i0 * y_s0 + next, stage0, STAGE * sizeof(float));
                    next += STAGE;
                }
                nexts[way] = next;
                more |= next < stop;
            }
        }
    }
    kg_stream_end();
}
