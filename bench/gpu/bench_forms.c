// The host's cost of a launch, by driver function and number of parameters. The kernel is empty.
//
//     bench_forms
//
// Prints nanoseconds per call, the median of bursts that fit the driver's queue. The variants take
// turns, so that drift affects all of them.

#include "device/cuda/cuda_driver.h"
#include "device/device.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BURST = 200, BURSTS = 31, TURNS = 2, MOST = 24 };

struct bench {
    struct kg_cuda_driver driver;
    void *stream;
    void *function;
    void *kernel; // the same, from cuLibraryGetKernel; NULL: the driver is too old
    int count;    // of parameters
    int64_t values[MOST];
    void *arguments[MOST];
    size_t bytes;
    void *extra[5]; // CU_LAUNCH_PARAM_BUFFER_POINTER, _SIZE
};

static struct kg_error error;

static void check(int result, const char *doing)
{
    if (!result)
        return;
    fprintf(stderr, "bench_forms: %s: %d %s\n", doing, result, error.text);
    exit(1);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int launch_arguments(struct bench *bench)
{
    return bench->driver.launch(bench->function, 1, 1, 1, 32, 1, 1, 0, bench->stream,
                                bench->arguments, NULL);
}

static int launch_buffer(struct bench *bench)
{
    return bench->driver.launch(bench->function, 1, 1, 1, 32, 1, 1, 0, bench->stream, NULL,
                                bench->extra);
}

static int launch_config(struct bench *bench)
{
    struct kg_cuda_config config = {
        .blocks = {1, 1, 1}, .threads = {32, 1, 1}, .stream = bench->stream};
    return bench->driver.launch_config(&config, bench->function, bench->arguments, NULL);
}

static int launch_kernel(struct bench *bench)
{
    return bench->driver.launch(bench->kernel, 1, 1, 1, 32, 1, 1, 0, bench->stream,
                                bench->arguments, NULL);
}

static const struct {
    const char *name;
    int (*launch)(struct bench *bench);
} forms[] = {
    {"cuLaunchKernel, arguments", launch_arguments},
    {"cuLaunchKernel, packed buffer", launch_buffer},
    {"cuLaunchKernelEx", launch_config},
    {"cuLaunchKernel of a CUkernel", launch_kernel},
};

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double time_form(struct bench *bench, int (*launch)(struct bench *bench))
{
    double seconds[BURSTS];
    for (int i = -2; i < BURSTS; i++) {
        check(bench->driver.context_synchronize(), "waiting");
        double start = now();
        for (int n = 0; n < BURST; n++)
            check(launch(bench), "launching");
        if (i >= 0)
            seconds[i] = (now() - start) / BURST;
    }
    qsort(seconds, BURSTS, sizeof seconds[0], compare);
    return seconds[BURSTS / 2];
}

static void compile(struct kg_device *device, int count, struct kg_binary *binary)
{
    struct kg_text text = {0};
    kg_text_add(&text, "extern \"C\" __global__ void nothing_0(");
    for (int i = 0; i < count; i++)
        kg_text_format(&text, "%slong long a%d", i ? ", " : "", i);
    kg_text_add(&text, ") {}\n");
    struct kg_source source = {.text = text.data, .entry = "nothing", .options = ""};
    check((int)device->backend->compile(device, &source, 60, binary, &error), "compiling");
    kg_text_free(&text);
}

static void load(struct bench *bench, const struct kg_binary *binary)
{
    int (*library_load)(void **, const void *, int *, void **, unsigned, int *, void **, unsigned) =
        NULL;
    int (*library_kernel)(void **, void *, const char *) = NULL;
    void *module, *library;
    check(bench->driver.module_load(&module, binary->bytes, 0, NULL, NULL), "loading");
    check(bench->driver.module_function(&bench->function, module, "nothing_0"), "finding");
    *(void **)&library_load = dlsym(bench->driver.library, "cuLibraryLoadData");
    *(void **)&library_kernel = dlsym(bench->driver.library, "cuLibraryGetKernel");
    bench->kernel = NULL;
    if (library_load && library_kernel) {
        check(library_load(&library, binary->bytes, NULL, NULL, 0, NULL, NULL, 0), "loading");
        check(library_kernel(&bench->kernel, library, "nothing_0"), "finding");
    }
}

static void bench_count(struct kg_device *device, struct bench *bench, int count)
{
    struct kg_binary binary;
    compile(device, count, &binary);
    load(bench, &binary);
    bench->count = count;
    bench->bytes = (size_t)count * sizeof(int64_t);
    for (int i = 0; i < count; i++)
        bench->arguments[i] = &bench->values[i];
    void *extra[5] = {(void *)1, bench->values, (void *)2, &bench->bytes, NULL};
    for (int i = 0; i < 5; i++)
        bench->extra[i] = extra[i];
    for (size_t form = 0; form < sizeof forms / sizeof forms[0]; form++) {
        if (forms[form].launch == launch_kernel && !bench->kernel)
            continue;
        printf("  %2d parameters  %-30s", count, forms[form].name);
        for (int turn = 0; turn < TURNS; turn++)
            printf(" %6.0f ns", 1e9 * time_form(bench, forms[form].launch));
        printf("\n");
    }
    kg_binary_free(&binary);
}

int main(void)
{
    static const int counts[] = {0, 3, 6, 12, 24};
    struct bench bench = {.count = 0};
    struct kg_device *device;
    void *memory; // makes the context
    check((int)kg_device_open("cuda:0", "/tmp", 0, &device, &error), "opening");
    check((int)device->backend->allocate(device, 1, &memory, &error), "starting");
    check((int)kg_cuda_driver_open(&bench.driver, &error), "opening");
    for (int own = 0; own < 2; own++) {
        if (own)
            check(bench.driver.stream_make(&bench.stream, KG_CUDA_STREAM_NON_BLOCKING), "a stream");
        printf("on %s stream\n", own ? "a non-blocking" : "the NULL");
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
            bench_count(device, &bench, counts[i]);
    }
    return 0;
}
