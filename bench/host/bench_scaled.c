// Products with 4-bit weights on the host, by turns with a plain read of the same bytes and with
// our product of the same sizes in f32: bench_scaled [-t THREADS] [-d DTYPE] [-l kn|nk] [-g GROUP]
// [-z yes|no] [MxNxK...]. -l: weights are [K, N] or [N, K]; -z: with zero points, or 8 for all.
//
// Weights are rotated through several copies that together are larger than the caches, so that
// every call reads memory; so are those of the f32 product. Bytes are those of weights, scales and
// zero points. The share is what is left of the read's rate.

#include "kernelgen.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST_TURNS 61
#define LEAST_TURNS 9
#define SECONDS_PER_SHAPE 2.0
#define COLD_BYTES ((size_t)192 << 20)
#define MOST_COPIES 64

// A product of the setup, as text: weights of 4 bits, or of f32.
static const char *const scaled_texts[2][2] = {
    {"op scaled(x: T[M, K], w: u4[K, N], s: T[ceil(K/G), N]) -> (y: T[M, N])\n"
     "param G = 128\nwhere T in f16 bf16 f32\n"
     "{ y[m, n] = sum(k) x[m, k] * ((w[k, n] - 8) * s[k/G, n]) }",
     "op scaled(x: T[M, K], w: u4[K, N], s: T[ceil(K/G), N], z: u4[ceil(K/G), N]) -> (y: T[M, N])\n"
     "param G = 128\nwhere T in f16 bf16 f32\n"
     "{ y[m, n] = sum(k) x[m, k] * ((w[k, n] - z[k/G, n]) * s[k/G, n]) }"},
    {"op scaled(x: T[M, K], w: u4[N, K], s: T[N, ceil(K/G)]) -> (y: T[M, N])\n"
     "param G = 128\nwhere T in f16 bf16 f32\n"
     "{ y[m, n] = sum(k) x[m, k] * ((w[n, k] - 8) * s[n, k/G]) }",
     "op scaled(x: T[M, K], w: u4[N, K], s: T[N, ceil(K/G)], z: u4[N, ceil(K/G)]) -> (y: T[M, N])\n"
     "param G = 128\nwhere T in f16 bf16 f32\n"
     "{ y[m, n] = sum(k) x[m, k] * ((w[n, k] - z[n, k/G]) * s[n, k/G]) }"},
};
static const char *const plain_texts[2] = {
    "op plain(x: f32[M, K], w: f32[K, N]) -> (y: f32[M, N])\n"
    "{ y[m, n] = sum(k) x[m, k] * w[k, n] }",
    "op plain(x: f32[M, K], w: f32[N, K]) -> (y: f32[M, N])\n"
    "{ y[m, n] = sum(k) x[m, k] * w[n, k] }",
};

struct shape {
    size_t m, n, k;
};

static const struct shape usual[] = {
    {1, 4096, 4096},   {1, 14336, 4096},  {1, 4096, 14336},   {2, 4096, 4096},
    {4, 4096, 4096},   {8, 4096, 4096},   {16, 4096, 4096},   {64, 4096, 4096},
    {256, 4096, 4096}, {16, 14336, 4096}, {256, 14336, 4096},
};

struct setup {
    int threads;
    const char *dtype;
    bool lines; // weights are adjacent along K
    bool zeros; // zero points, else 8
    size_t group;
    struct kg_context *context;
    struct kg_device *device;
};

// A plan and its tensors: activations, copies of the weights, the rest.
struct side {
    struct kg_problem *problem;
    struct kg_plan *plan;
    void *tensors[5];
    size_t weight_bytes;
    int copies, turn;
    char *weights;
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

static void *allocate(size_t bytes, unsigned char value)
{
    void *memory = NULL;
    if (posix_memalign(&memory, (size_t)2 << 20, bytes + 64))
        abort();
    memset(memory, value, bytes + 64);
    return memory;
}

// Reading, by as many threads: each reads one contiguous part.

struct reader {
    const char *from;
    size_t bytes;
    uint64_t found;
};

static void *read_part(void *argument)
{
    typedef uint64_t line __attribute__((vector_size(64)));
    struct reader *reader = argument;
    line a = {0}, b = {0};
    for (size_t i = 0; i + 128 <= reader->bytes; i += 128) {
        a ^= *(const line *)(const void *)(reader->from + i);
        b ^= *(const line *)(const void *)(reader->from + i + 64);
    }
    a ^= b;
    reader->found = a[0] ^ a[3];
    return NULL;
}

// The time to read all copies, per copy: long enough for starting threads not to count.
static double time_read(const struct setup *setup, const struct side *side)
{
    struct reader readers[64];
    pthread_t handles[64];
    size_t all = side->weight_bytes * (size_t)side->copies;
    size_t part = all / (size_t)setup->threads / 128 * 128;
    double start = now();
    for (int i = 0; i < setup->threads; i++) {
        readers[i] = (struct reader){side->weights + (size_t)i * part, part, 0};
        if (i > 0 && pthread_create(&handles[i], NULL, read_part, &readers[i]))
            abort();
    }
    read_part(&readers[0]);
    for (int i = 1; i < setup->threads; i++)
        pthread_join(handles[i], NULL);
    return (now() - start) / side->copies;
}

static double time_product(struct side *side)
{
    double start = now();
    int calls = side->copies < 4 ? side->copies : 4;
    for (int i = 0; i < calls; i++) {
        side->tensors[1] = side->weights + side->weight_bytes * (size_t)side->turn;
        side->turn = (side->turn + 1) % side->copies;
        kg_plan_execute(side->plan, side->tensors, NULL);
    }
    return (now() - start) / calls;
}

static bool open_side(const struct setup *setup, struct shape s, bool scaled, struct side *side)
{
    const char *text =
        scaled ? scaled_texts[setup->lines][setup->zeros] : plain_texts[setup->lines];
    char m[24], n[24], k[24], g[24];
    snprintf(m, sizeof m, "%zu", s.m);
    snprintf(n, sizeof n, "%zu", s.n);
    snprintf(k, sizeof k, "%zu", s.k);
    snprintf(g, sizeof g, "%zu", setup->group);
    struct kg_binding bindings[] = {{"M", m}, {"N", n}, {"K", k}, {"T", setup->dtype}, {"G", g}};
    struct kg_op *op = NULL;
    enum kg_status status = kg_op_parse(setup->context, "scaled.kg", text, strlen(text), NULL, &op);
    if (!status)
        status = kg_problem_create(setup->context, op, bindings, scaled ? 5 : 3, &side->problem);
    if (!status)
        status = kg_plan_create(side->problem, setup->device, KG_RIGOR_ESTIMATE, 0, &side->plan);
    if (status)
        fprintf(stderr, "bench_scaled: %s\n", kg_context_error(setup->context));
    kg_op_destroy(op);
    size_t element = scaled && strcmp(setup->dtype, "f32") != 0 ? 2 : 4;
    size_t groups = (s.k + setup->group - 1) / setup->group;
    side->weight_bytes = scaled ? (s.k * s.n + 1) / 2 : s.k * s.n * 4;
    side->copies = (int)(COLD_BYTES / side->weight_bytes + 1);
    side->copies = side->copies > MOST_COPIES ? MOST_COPIES : side->copies;
    side->weights = allocate(side->weight_bytes * (size_t)side->copies, 0x3a);
    side->tensors[0] = allocate(s.m * s.k * element, 0x3a);
    int outputs = 2;
    if (scaled)
        side->tensors[outputs++] = allocate(groups * s.n * element, 0x3a);
    if (scaled && setup->zeros)
        side->tensors[outputs++] = allocate((groups * s.n + 1) / 2, 0x88);
    side->tensors[outputs] = allocate(s.m * s.n * element, 0);
    return status == KG_OK;
}

static void close_side(struct side *side)
{
    for (int i = 0; i < 5; i++)
        if (i != 1)
            free(side->tensors[i]);
    free(side->weights);
    kg_plan_destroy(side->plan);
    kg_problem_destroy(side->problem);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_value);
    return values[count / 2];
}

static bool bench(const struct setup *setup, struct shape s)
{
    struct side scaled = {0}, plain = {0};
    bool done = open_side(setup, s, true, &scaled) && open_side(setup, s, false, &plain);
    if (done) {
        double ours[MOST_TURNS], reads[MOST_TURNS], plains[MOST_TURNS], shares[MOST_TURNS],
            gains[MOST_TURNS], began = now();
        size_t element = strcmp(setup->dtype, "f32") != 0 ? 2 : 4;
        double bytes =
            (double)scaled.weight_bytes + (double)((s.k + setup->group - 1) / setup->group * s.n) *
                                              ((double)element + (setup->zeros ? 0.5 : 0));
        int count = 0;
        while (count < MOST_TURNS && (count < LEAST_TURNS || now() - began < SECONDS_PER_SHAPE)) {
            reads[count] = time_read(setup, &scaled) * bytes / (double)scaled.weight_bytes;
            ours[count] = time_product(&scaled);
            plains[count] = time_product(&plain);
            shares[count] = reads[count] / ours[count];
            gains[count] = plains[count] / ours[count];
            count++;
        }
        double time = median(ours, count), read = median(reads, count);
        double share = median(shares, count), gain = median(gains, count);
        printf("%2d %4zu %6zu %6zu %9.3f %7.1f %7.1f %7.2f %10.3f %7.2f  %.2f..%.2f\n",
               setup->threads, s.m, s.n, s.k, time * 1e3, bytes / time / 1e9, bytes / read / 1e9,
               share, median(plains, count) * 1e3, gain, gains[count / 4], gains[count * 3 / 4]);
        fflush(stdout);
    }
    close_side(&scaled);
    close_side(&plain);
    return done;
}

static bool run(struct setup *setup, const struct shape *shapes, int count)
{
    struct kg_options options = {.threads = setup->threads};
    bool done = kg_context_create(&options, &setup->context) == KG_OK &&
                kg_context_device(setup->context, "host", &setup->device) == KG_OK;
    if (!done)
        fprintf(stderr, "bench_scaled: %s\n", kg_context_error(setup->context));
    for (int i = 0; done && i < count; i++)
        done = bench(setup, shapes[i]);
    kg_context_destroy(setup->context);
    return done;
}

int main(int argc, char **argv)
{
    struct shape shapes[32];
    int only = 0, count = 0;
    struct setup setup = {.dtype = "f16", .zeros = true, .group = 128};
    for (; argc > 2 && argv[1][0] == '-'; argc -= 2, argv += 2) {
        if (strcmp(argv[1], "-t") == 0)
            only = (int)strtol(argv[2], NULL, 10);
        else if (strcmp(argv[1], "-d") == 0)
            setup.dtype = argv[2];
        else if (strcmp(argv[1], "-l") == 0)
            setup.lines = strcmp(argv[2], "nk") == 0;
        else if (strcmp(argv[1], "-g") == 0)
            setup.group = (size_t)strtol(argv[2], NULL, 10);
        else if (strcmp(argv[1], "-z") == 0)
            setup.zeros = strcmp(argv[2], "no") != 0;
    }
    for (int i = 1; i < argc && count < 32; i++) {
        struct shape s;
        if (sscanf(argv[i], "%zux%zux%zu", &s.m, &s.n, &s.k) == 3 && s.m && s.n && s.k)
            shapes[count++] = s;
    }
    if (count == 0 && argc == 1) {
        memcpy(shapes, usual, sizeof usual);
        count = (int)(sizeof usual / sizeof *usual);
    }
    if (count == 0 || only < 0 || only > 64 || setup.group == 0) {
        fprintf(stderr, "usage: bench_scaled [-t THREADS] [-d f16|bf16|f32] [-l kn|nk] [-g GROUP]\n"
                        "                    [-z yes|no] [MxNxK...]\n");
        return 2;
    }
    printf(
        "threads M    N      K   ours ms    GB/s    read   share     f32 ms    gain  quartiles\n");
    int cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    setup.threads = only ? only : 1;
    bool done = run(&setup, shapes, count);
    if (done && !only && cores > 1) {
        setup.threads = cores > 64 ? 64 : cores;
        done = run(&setup, shapes, count);
    }
    return done ? 0 : 1;
}
