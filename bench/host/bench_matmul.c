// Matrix products against OpenBLAS, on one core and on all, timed alternately in one run:
// bench_matmul [-t THREADS] [-d DTYPE] [SHAPE...], a shape as "4096x1x1024" (M, N, K). OpenBLAS is
// opened at run time; where there is none, KernelGen's times stand alone. Products with a single
// row or column are held against its matrix-vector routine, which is faster than its matrix product
// there. With -d f16 or bf16 it multiplies the same numbers in f32.
//
// Each timed run follows runs of the same side that are not timed, so that either finds its caches
// warm and its threads awake.

#include "kernelgen.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST_PAIRS 41
#define LEAST_PAIRS 7
#define SECONDS_PER_SHAPE 1.0
#define WARM_SECONDS 3e-3
// After a call the threads of OpenBLAS spin for 0.1 s unless told otherwise, on cores that the
// other side needs. Two to the power of this many cycles are enough between two calls.
#define SPIN_LOGARITHM "19"

static const char definition[] = "op matmul(a: T[M, K], b: T[K, N]) -> (c: T[M, N])\n"
                                 "where T in f32 f16 bf16\n"
                                 "{ c[m, n] = sum(k) a[m, k] * b[k, n] }\n";

struct shape {
    int m, n, k;
};

static const struct shape squares[] = {
    {512, 512, 512}, {1024, 1024, 1024}, {2048, 2048, 2048}, {4096, 4096, 4096}};
static const int thin[] = {1, 2, 4, 8, 16, 32, 64};
static const struct shape wide[] = {{0, 4096, 4096}, {0, 4096, 1024}, {0, 1024, 4096},
                                    {4096, 0, 4096}, {4096, 0, 1024}, {1024, 0, 4096}};

enum { ROW_MAJOR = 101, NORMAL = 111, TRANSPOSED = 112 }; // of CBLAS
typedef void gemm(int order, int a_form, int b_form, int m, int n, int k, float alpha,
                  const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
typedef void gemv(int order, int form, int m, int n, float alpha, const float *a, int lda,
                  const float *x, int x_step, float beta, float *y, int y_step);

struct peer {
    gemm *multiply;
    gemv *multiply_vector;
    void (*set_threads)(int count);
};

struct side {
    int threads;
    const struct dtype *dtype;
    struct kg_context *context;
    struct kg_device *device;
};

// How a float of 8 significant bits, near 1 or 0, is stored, and what it stands for.
struct dtype {
    const char *name;
    size_t bytes;
    double epsilon;
    void (*store)(void *to, size_t at, float value);
    float (*load)(const void *from, size_t at);
};

static void store_f32(void *to, size_t at, float value)
{
    ((float *)to)[at] = value;
}

static float load_f32(const void *from, size_t at)
{
    return ((const float *)from)[at];
}

static void store_bf16(void *to, size_t at, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    ((uint16_t *)to)[at] = (uint16_t)(bits >> 16);
}

static float load_bf16(const void *from, size_t at)
{
    uint32_t bits = (uint32_t)((const uint16_t *)from)[at] << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void store_f16(void *to, size_t at, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
    ((uint16_t *)to)[at] = (uint16_t)(rest == 0 ? sign : sign | (rest - 0x38000000) >> 13);
}

static float load_f16(const void *from, size_t at)
{
    uint32_t half = ((const uint16_t *)from)[at], exponent = half >> 10 & 31;
    float value = exponent > 0 ? ldexpf((float)((half & 0x3ff) | 0x400), (int)exponent - 25)
                               : ldexpf((float)(half & 0x3ff), -24);
    return half & 0x8000 ? -value : value;
}

static const struct dtype dtypes[] = {
    {"f32", 4, 0, store_f32, load_f32},
    {"f16", 2, 0x1p-10, store_f16, load_f16},
    {"bf16", 2, 0x1p-7, store_bf16, load_bf16},
};

struct buffers {
    void *a, *b, *c;                   // of the dtype
    float *peer_a, *peer_b, *expected; // of the peer
};

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

static struct peer open_peer(void)
{
    struct peer peer = {NULL, NULL, NULL};
    setenv("OPENBLAS_THREAD_TIMEOUT", SPIN_LOGARITHM, 0);
    void *library = dlopen("libopenblas.so.0", RTLD_NOW);
    if (!library)
        return peer;
    void *found[] = {dlsym(library, "cblas_sgemm"), dlsym(library, "cblas_sgemv"),
                     dlsym(library, "openblas_set_num_threads")};
    if (found[0] && found[1] && found[2]) {
        memcpy(&peer.multiply, &found[0], sizeof found[0]);
        memcpy(&peer.multiply_vector, &found[1], sizeof found[1]);
        memcpy(&peer.set_threads, &found[2], sizeof found[2]);
    }
    return peer;
}

static void run_peer(const struct peer *peer, struct shape s, const struct buffers *buffers)
{
    const float *a = buffers->peer_a, *b = buffers->peer_b;
    if (s.m == 1)
        peer->multiply_vector(ROW_MAJOR, TRANSPOSED, s.k, s.n, 1, b, s.n, a, 1, 0,
                              buffers->expected, 1);
    else if (s.n == 1)
        peer->multiply_vector(ROW_MAJOR, NORMAL, s.m, s.k, 1, a, s.k, b, 1, 0, buffers->expected,
                              1);
    else
        peer->multiply(ROW_MAJOR, NORMAL, NORMAL, s.m, s.n, s.k, 1, a, s.k, b, s.n, 0,
                       buffers->expected, s.n);
}

static void *allocate_matrix(size_t bytes)
{
    void *memory = NULL;
    if (posix_memalign(&memory, (size_t)2 << 20, bytes + 64))
        return NULL;
    memset(memory, 0, bytes);
    return memory;
}

static void fill(const struct dtype *dtype, void *to, float *copy, size_t count)
{
    uint32_t state = 1;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525 + 1013904223;
        copy[i] = (float)(int32_t)(state >> 24) / 128.0f - 1.0f;
        dtype->store(to, i, copy[i]);
    }
}

static bool allocate(const struct dtype *dtype, struct shape s, struct buffers *buffers)
{
    size_t a = (size_t)s.m * (size_t)s.k, b = (size_t)s.k * (size_t)s.n;
    size_t c = (size_t)s.m * (size_t)s.n;
    *buffers = (struct buffers){
        .a = allocate_matrix(a * dtype->bytes),
        .b = allocate_matrix(b * dtype->bytes),
        .c = allocate_matrix(c * dtype->bytes),
        .peer_a = allocate_matrix(a * sizeof(float)),
        .peer_b = allocate_matrix(b * sizeof(float)),
        .expected = allocate_matrix(c * sizeof(float)),
    };
    if (!buffers->a || !buffers->b || !buffers->c || !buffers->peer_a || !buffers->peer_b ||
        !buffers->expected)
        return false;
    fill(dtype, buffers->a, buffers->peer_a, a);
    fill(dtype, buffers->b, buffers->peer_b, b);
    return true;
}

static void release(struct buffers *buffers)
{
    free(buffers->a);
    free(buffers->b);
    free(buffers->c);
    free(buffers->peer_a);
    free(buffers->peer_b);
    free(buffers->expected);
}

static double time_ours(const struct kg_plan *plan, const struct buffers *buffers)
{
    void *tensors[] = {buffers->a, buffers->b, buffers->c};
    double start = now();
    do
        kg_plan_execute(plan, tensors, NULL);
    while (now() - start < WARM_SECONDS);
    start = now();
    kg_plan_execute(plan, tensors, NULL);
    return now() - start;
}

static double time_peer(const struct peer *peer, struct shape s, const struct buffers *buffers)
{
    double start = now();
    do
        run_peer(peer, s, buffers);
    while (now() - start < WARM_SECONDS);
    start = now();
    run_peer(peer, s, buffers);
    return now() - start;
}

static bool agrees(const struct dtype *dtype, struct shape s, const struct buffers *buffers)
{
    double rounding = 1e-6 * (sqrt((double)s.k) * 4 + 8);
    for (size_t i = 0; i < (size_t)s.m * (size_t)s.n; i++) {
        double value = (double)dtype->load(buffers->c, i), expected = (double)buffers->expected[i];
        if (!(fabs(value - expected) <= rounding + dtype->epsilon * fabs(expected)))
            return false;
    }
    return true;
}

struct result {
    int pairs;
    double ours, peers, ratio; // medians; peers and ratio are 0 without a peer
    double low, high;          // quartiles of the ratio
    bool right;
};

static void race(const struct kg_plan *plan, const struct side *side, const struct peer *peer,
                 struct shape s, const struct buffers *buffers, struct result *result)
{
    double ours[MOST_PAIRS], peers[MOST_PAIRS], ratios[MOST_PAIRS], began = now();
    int count = 0;
    while (count < MOST_PAIRS && (count < LEAST_PAIRS || now() - began < SECONDS_PER_SHAPE)) {
        ours[count] = time_ours(plan, buffers);
        peers[count] = peer->multiply ? time_peer(peer, s, buffers) : 0;
        ratios[count] = peers[count] / ours[count];
        count++;
    }
    qsort(ours, (size_t)count, sizeof *ours, by_value);
    qsort(peers, (size_t)count, sizeof *peers, by_value);
    qsort(ratios, (size_t)count, sizeof *ratios, by_value);
    *result = (struct result){.pairs = count,
                              .ours = ours[count / 2],
                              .peers = peers[count / 2],
                              .ratio = ratios[count / 2],
                              .low = ratios[count / 4],
                              .high = ratios[count * 3 / 4],
                              .right = !peer->multiply || agrees(side->dtype, s, buffers)};
}

// The problem has to outlive its plan.
static struct kg_plan *make_plan(const struct side *side, struct shape s,
                                 struct kg_problem **problem)
{
    char m[16], n[16], k[16];
    snprintf(m, sizeof m, "%d", s.m);
    snprintf(n, sizeof n, "%d", s.n);
    snprintf(k, sizeof k, "%d", s.k);
    struct kg_binding bindings[] = {{"M", m}, {"N", n}, {"K", k}, {"T", side->dtype->name}};
    struct kg_op *op = NULL;
    struct kg_plan *plan = NULL;
    enum kg_status status =
        kg_op_parse(side->context, "matmul.kg", definition, strlen(definition), NULL, &op);
    if (!status)
        status = kg_problem_create(side->context, op, bindings, 4, problem);
    if (!status)
        status = kg_plan_create(*problem, side->device, KG_RIGOR_ESTIMATE, 0, &plan);
    if (status)
        fprintf(stderr, "bench_matmul: %s\n", kg_context_error(side->context));
    kg_op_destroy(op);
    return plan;
}

struct summary {
    int count;
    double log_sum, worst;
};

static bool bench(const struct side *side, const struct peer *peer, struct shape s,
                  struct summary *summary)
{
    struct buffers buffers = {.a = NULL};
    struct kg_problem *problem = NULL;
    struct kg_plan *plan = make_plan(side, s, &problem);
    bool done = plan && allocate(side->dtype, s, &buffers);
    if (done) {
        struct result result;
        race(plan, side, peer, s, &buffers, &result);
        double work = 2.0 * s.m * s.n * s.k;
        double elements = (double)s.m * s.k + (double)s.k * s.n + (double)s.m * s.n;
        double bytes = (double)side->dtype->bytes * elements;
        printf("%2d %5d %5d %5d %10.3f %7.1f %6.1f %10.3f  %5.2f  %.2f..%.2f%s\n", side->threads,
               s.m, s.n, s.k, result.ours * 1e3, work / result.ours / 1e9,
               bytes / result.ours / 1e9, result.peers * 1e3, result.ratio, result.low, result.high,
               result.right ? "" : "  WRONG");
        fflush(stdout);
        if (peer->multiply) {
            summary->count++;
            summary->log_sum += log(result.ratio);
            summary->worst = result.ratio < summary->worst ? result.ratio : summary->worst;
        }
        done = result.right;
    }
    release(&buffers);
    kg_plan_destroy(plan);
    kg_problem_destroy(problem);
    return done;
}

// The shapes asked for, or all. Gives how many.
static int choose_shapes(int argc, char **argv, struct shape *shapes)
{
    int count = 0;
    for (int i = 1; i < argc && count < 64; i++) {
        struct shape s;
        if (sscanf(argv[i], "%dx%dx%d", &s.m, &s.n, &s.k) == 3 && s.m > 0 && s.n > 0 && s.k > 0)
            shapes[count++] = s;
    }
    if (argc > 1)
        return count;
    for (size_t i = 0; i < sizeof squares / sizeof *squares; i++)
        shapes[count++] = squares[i];
    for (size_t t = 0; t < sizeof thin / sizeof *thin; t++)
        for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
            struct shape s = wide[i];
            s.m = s.m ? s.m : thin[t];
            s.n = s.n ? s.n : thin[t];
            shapes[count++] = s;
        }
    return count;
}

static bool run_side(struct side *side, const struct peer *peer, const struct shape *shapes,
                     int count)
{
    struct kg_options options = {.threads = side->threads};
    struct summary summary = {0, 0, INFINITY};
    bool done = kg_context_create(&options, &side->context) == KG_OK &&
                kg_context_device(side->context, "host", &side->device) == KG_OK;
    if (!done)
        fprintf(stderr, "bench_matmul: %s\n", kg_context_error(side->context));
    if (done && peer->multiply)
        peer->set_threads(side->threads);
    for (int i = 0; done && i < count; i++)
        done = bench(side, peer, shapes[i], &summary);
    if (done && summary.count > 0)
        printf("%2d threads: geometric mean %.3f of OpenBLAS (goal 0.90), worst %.2f (goal 0.75)\n",
               side->threads, exp(summary.log_sum / summary.count), summary.worst);
    kg_context_destroy(side->context);
    return done;
}

static const struct dtype *find_dtype(const char *name)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (strcmp(dtypes[i].name, name) == 0)
            return &dtypes[i];
    return NULL;
}

int main(int argc, char **argv)
{
    struct shape shapes[64];
    int only = 0; // threads
    const struct dtype *dtype = dtypes;
    for (; argc > 2 && argv[1][0] == '-'; argc -= 2, argv += 2) {
        if (strcmp(argv[1], "-t") == 0)
            only = (int)strtol(argv[2], NULL, 10);
        else if (strcmp(argv[1], "-d") == 0)
            dtype = find_dtype(argv[2]);
    }
    int count = choose_shapes(argc, argv, shapes);
    if (count == 0 || only < 0 || !dtype) {
        fprintf(stderr, "usage: bench_matmul [-t THREADS] [-d f32|f16|bf16] [MxNxK...]\n");
        return 2;
    }
    struct peer peer = open_peer();
    if (!peer.multiply)
        printf("no OpenBLAS here: KernelGen's times alone\n");
    printf("threads  M     N     K   ours (ms)  GFLOP/s  GB/s   OpenBLAS  ratio  quartiles\n");
    int cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    struct side one = {.threads = only ? only : 1, .dtype = dtype};
    struct side all = {.threads = cores, .dtype = dtype};
    bool done = run_side(&one, &peer, shapes, count);
    if (done && cores > 1 && !only)
        done = run_side(&all, &peer, shapes, count);
    return done ? 0 : 1;
}
