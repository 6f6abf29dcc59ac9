// masked: a kernel made by KernelGen.
//
//     y[p, d] = mean(j <= d) where(x[p, j] > 0, x[p, j], 0)
//
// x: f64, y: f64; contiguous
// direct: block=256 lanes=1

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

KG_INLINE int64_t kg_max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

// ---- Selection and logic: both operands are always evaluated, so that loops have no branches ----

KG_INLINE double kg_where_f64(bool condition, double a, double b)
{
    return condition ? a : b;
}

static int64_t kernel_total(const struct kg_host_call *call)
{
    const int64_t P = call->size[0];
    return P;
}

int64_t kernel_items(const struct kg_host_call *call, int phase)
{
    return phase == 0 ? kernel_total(call) : -1;
}

int64_t kernel_bytes(const struct kg_host_call *call, int kind)
{
    (void)call;
    const int64_t D = call->size[1];
    if (kind != KG_HOST_GRAIN)
        return 0;
    const int64_t length = D * D;
    return 1 + KG_HOST_WORK / kg_max_i64(1, length);
}

void kernel_run(const struct kg_host_call *call, int phase, int64_t begin, int64_t end)
{
    (void)phase;
    const int64_t D = call->size[1];
    const double *restrict x = call->tensor[0];
    const int64_t x_s0 = D;
    double *restrict y = call->tensor[1];
    const int64_t y_s0 = D;
    for (int64_t item = begin; item < end; item++) {
        int64_t rest = item;
        const int64_t i0 = rest;
        double total = 0.0;
        int64_t count = 0;
        int64_t next = 0;
        for (int64_t i1 = 0; i1 < D; i1++) {
            for (; next < D && next <= i1; next++) {
                const int64_t i2 = next;
                total = total + kg_where_f64(x[i0 * x_s0 + i2] > 0.0, x[i0 * x_s0 + i2], 0.0);
                count++;
            }
            y[i0 * y_s0 + i1] = total / ((double)count);
        }
    }
}
