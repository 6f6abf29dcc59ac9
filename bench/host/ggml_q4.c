// Products of ggml's Q4_0 weights with rows of f32 on the host, to stand beside bench_scaled with
// `-l nk -g 32 -z no`: ggml_q4 THREADS MxNxK... Weights are rotated through copies that together
// are larger than the caches. Built by hand, against a build of ggml's sources:
//
//   cmake -S GGML -B GGML/build -DBUILD_SHARED_LIBS=OFF -DGGML_NATIVE=ON -DGGML_OPENMP=OFF
//   cmake --build GGML/build
//   cc -O2 -I GGML/include -c bench/host/ggml_q4.c
//   c++ ggml_q4.o GGML/build/src/libggml*.a -lpthread -ldl -o ggml_q4

#include "ggml-cpu.h"
#include "ggml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST_TURNS 61
#define LEAST_TURNS 9
#define SECONDS_PER_SHAPE 2.0
#define COLD_BYTES ((size_t)192 << 20)
#define MOST_COPIES 64

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void bench(int threads, long m, long n, long k)
{
    size_t bytes = (size_t)(n * k / 32) * 18, rest = (size_t)64 << 20;
    size_t copies = COLD_BYTES / bytes + 1;
    copies = copies > MOST_COPIES ? MOST_COPIES : copies;
    size_t rows = (size_t)(m * (n + k)) * 8;
    struct ggml_context *context =
        ggml_init((struct ggml_init_params){copies * (bytes + rows) + rest, NULL, false});
    struct ggml_tensor *x = ggml_new_tensor_2d(context, GGML_TYPE_F32, k, m);
    for (long i = 0; i < k * m; i++)
        ((float *)x->data)[i] = (float)(i % 1000) / 500 - 1;
    struct ggml_cgraph *graphs[MOST_COPIES];
    for (size_t i = 0; i < copies; i++) {
        struct ggml_tensor *w = ggml_new_tensor_2d(context, GGML_TYPE_Q4_0, k, n);
        memset(w->data, 0x3a, ggml_nbytes(w));
        graphs[i] = ggml_new_graph_custom(context, 16, false);
        ggml_build_forward_expand(graphs[i], ggml_mul_mat(context, w, x));
    }
    struct ggml_threadpool_params params = ggml_threadpool_params_default(threads);
    struct ggml_threadpool *pool = ggml_threadpool_new(&params);
    struct ggml_cplan plan = ggml_graph_plan(graphs[0], threads, pool);
    plan.work_data = malloc(plan.work_size + 1);
    double times[MOST_TURNS], began = now();
    int count = 0;
    for (size_t turn = 0;
         count < MOST_TURNS && (count < LEAST_TURNS || now() - began < SECONDS_PER_SHAPE);) {
        double start = now();
        for (int i = 0; i < 4; i++)
            ggml_graph_compute(graphs[turn++ % copies], &plan);
        times[count++] = (now() - start) / 4;
    }
    qsort(times, (size_t)count, sizeof *times, by_value);
    printf("%2d %4ld %6ld %6ld %9.3f ms (quartiles %.3f..%.3f) %7.1f GB/s\n", threads, m, n, k,
           times[count / 2] * 1e3, times[count / 4] * 1e3, times[count * 3 / 4] * 1e3,
           (double)bytes / times[count / 2] / 1e9);
    free(plan.work_data);
    ggml_threadpool_free(pool);
    ggml_free(context);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: ggml_q4 THREADS MxNxK...\n");
        return 2;
    }
    for (int i = 2; i < argc; i++) {
        long m, n, k;
        if (sscanf(argv[i], "%ldx%ldx%ld", &m, &n, &k) == 3 && m > 0 && n > 0 && k > 0)
            bench((int)strtol(argv[1], NULL, 10), m, n, k);
    }
    return 0;
}
