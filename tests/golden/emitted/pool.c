// pool: a kernel made by KernelGen.
//
//     y[n, c, h, w] = max(r, t) pad(x[n, c, h*2 + r - 1, w*2 + t - 1], -inf)
//
// x: f32, y: f32; contiguous
// direct: block=256 lanes=32

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

static int64_t kernel_total(const struct kg_host_call *call)
{
    enum { BLOCK = 256, LANES = 32 };
    const int64_t N = call->size[0];
    const int64_t C = call->size[1];
    const int64_t H = call->size[2];
    const int64_t W = call->size[3];
    return N * C * (kg_div_i64(H + 2 * 1 - 3, 2) + 1) * kg_ceildiv_i64((kg_div_i64(W + 2 * 1 - 3, 2)
        + 1), BLOCK);
}

int64_t kernel_items(const struct kg_host_call *call, int phase)
{
    return phase == 0 ? kernel_total(call) : -1;
}

int64_t kernel_bytes(const struct kg_host_call *call, int kind)
{
    (void)call;
    enum { BLOCK = 256, LANES = 32 };
    const int64_t W = call->size[3];
    if (kind != KG_HOST_GRAIN)
        return 0;
    const int64_t length = kg_min_i64(BLOCK, (kg_div_i64(W + 2 * 1 - 3, 2) + 1)) * 3 * 3;
    return 1 + KG_HOST_WORK / kg_max_i64(1, length);
}

void kernel_run(const struct kg_host_call *call, int phase, int64_t begin, int64_t end)
{
    (void)phase;
    enum { BLOCK = 256, LANES = 32 };
    const int64_t C = call->size[1];
    const int64_t H = call->size[2];
    const int64_t W = call->size[3];
    const float *restrict x = call->tensor[0];
    const int64_t x_s2 = W;
    const int64_t x_s1 = H * x_s2;
    const int64_t x_s0 = C * x_s1;
    float *restrict y = call->tensor[1];
    const int64_t y_s2 = (kg_div_i64(W + 2 * 1 - 3, 2) + 1);
    const int64_t y_s1 = (kg_div_i64(H + 2 * 1 - 3, 2) + 1) * y_s2;
    const int64_t y_s0 = C * y_s1;
    for (int64_t item = begin; item < end; item++) {
        int64_t rest = item;
        const int64_t blocks = kg_ceildiv_i64((kg_div_i64(W + 2 * 1 - 3, 2) + 1), BLOCK);
        const int64_t first = rest % blocks * BLOCK;
        const int64_t stop = kg_min_i64(first + BLOCK, (kg_div_i64(W + 2 * 1 - 3, 2) + 1));
        rest /= blocks;
        const int64_t i2 = rest % (kg_div_i64(H + 2 * 1 - 3, 2) + 1);
        rest /= (kg_div_i64(H + 2 * 1 - 3, 2) + 1);
        const int64_t i1 = rest % C;
        rest /= C;
        const int64_t i0 = rest;
        for (int64_t start = first; start < stop; start += LANES) {
            const int lanes = (int)kg_min_i64(LANES, stop - start);
            float total[LANES];
            for (int lane = 0; lane < LANES; lane++)
                total[lane] = -INFINITY;
            for (int64_t i4 = 0; i4 < 3; i4++) {
                for (int64_t i5 = 0; i5 < 3; i5++) {
                    for (int lane = 0; lane < lanes; lane++) {
                        const int64_t i3 = start + lane;
                        total[lane] = kg_max_f32(total[lane], (kg_inside(i2 * 2 + i4 - 1, H) &&
                            kg_inside(i3 * 2 + i5 - 1, W) ? x[i0 * x_s0 + i1 * x_s1 + (i2 * 2 + i4 -
                            1) * x_s2 + i3 * 2 + i5 - 1] : -INFINITY));
                    }
                }
            }
            for (int lane = 0; lane < lanes; lane++) {
                const int64_t i3 = start + lane;
                y[i0 * y_s0 + i1 * y_s1 + i2 * y_s2 + i3] = total[lane];
            }
        }
    }
}
