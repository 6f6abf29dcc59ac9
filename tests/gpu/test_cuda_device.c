// The CUDA backend on a real GPU: facts, memory, launches of every kind, faults, timing. Without a
// GPU or NVRTC it is skipped. Each part runs in a process of its own, as candidates do; this one
// never touches the driver. Times are printed, not judged.

#include "device/child.h"
#include "device/device.h"
#include "support/folder.h"
#include "test.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char folder[] = "/tmp/kg-test-gpu-XXXXXX";
static struct kg_error error;
static struct kg_device *device; // opened before all forks
static const struct kg_backend *backend;

static const char text[] =
    "extern \"C\" __global__ void empty_0() {}\n"
    "extern \"C\" __global__ void scale_0(float *x, float by, long n)\n"
    "{ long i = blockIdx.x * (long)blockDim.x + threadIdx.x; if (i < n) x[i] *= by; }\n"
    "extern \"C\" __global__ void scale_1(float *x, float by, long n)\n"
    "{ long i = blockIdx.x * (long)blockDim.x + threadIdx.x; if (i < n) x[i] += 1; }\n"
    "extern \"C\" __global__ void shared_0(int *x, int n)\n"
    "{ extern __shared__ int s[]; __shared__ int own[16]; own[threadIdx.x % 16] = 1;\n"
    "  for (int i = threadIdx.x; i < n; i += blockDim.x) s[i] = i; __syncthreads();\n"
    "  for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = s[n - 1 - i] * own[i % 16]; }\n"
    "extern \"C\" __global__ void rank_0(int *x)\n"
    "{ int rank = -1, size = 0;\n"
    "#if __CUDA_ARCH__ >= 900\n"
    "  asm volatile(\"mov.u32 %0, %%cluster_ctarank;\" : \"=r\"(rank));\n"
    "  asm volatile(\"mov.u32 %0, %%cluster_nctarank;\" : \"=r\"(size));\n"
    "#endif\n"
    "  if (threadIdx.x == 0) x[blockIdx.x] = 100 * size + rank; }\n"
    // A box of 64 x 8 at (column, row), with the swizzle undone: 16 bytes c of row r lie at c ^ r.
    "struct alignas(64) map { unsigned long long words[16]; };\n"
    "extern \"C\" __global__ void box_0(short *y, int column, int row, int swizzle,\n"
    "                                 const __grid_constant__ map from)\n"
    "{\n"
    "#if __CUDA_ARCH__ >= 900\n"
    "  __shared__ alignas(1024) short box[8][64]; __shared__ alignas(8) unsigned long long bar;\n"
    "  unsigned at = (unsigned)__cvta_generic_to_shared(box), b =\n"
    "      (unsigned)__cvta_generic_to_shared(&bar), done = 0;\n"
    "  if (threadIdx.x == 0) {\n"
    "    asm volatile(\"mbarrier.init.shared.b64 [%0], 1;\" :: \"r\"(b) : \"memory\");\n"
    "    asm volatile(\"fence.proxy.async;\" ::: \"memory\");\n"
    "    asm volatile(\"mbarrier.arrive.expect_tx.shared.b64 _, [%0], 1024;\" :: \"r\"(b)\n"
    "                 : \"memory\");\n"
    "    asm "
    "volatile(\"cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx\"\n"
    "                 \"::bytes [%0], [%1, {%2, %3}], [%4];\" :: \"r\"(at), \"l\"(&from),\n"
    "                 \"r\"(column), \"r\"(row), \"r\"(b) : \"memory\"); }\n"
    "  __syncthreads();\n"
    "  while (!done)\n"
    "    asm volatile(\"{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0;\"\n"
    "                 \" selp.u32 %0, 1, 0, p; }\" : \"=r\"(done) : \"r\"(b) : \"memory\");\n"
    "  for (int i = threadIdx.x; i < 512; i += blockDim.x) {\n"
    "    int r = i / 64, c = i % 64; if (swizzle) c = (c / 8 ^ r) * 8 + c % 8;\n"
    "    y[i] = box[r][c]; }\n"
    "#endif\n"
    "}\n"
    "extern \"C\" __global__ void wild_0(int *x) { x[1l << 40] = 1; }\n"
    "extern \"C\" __global__ void crooked_0(int *x) { *(int *)((char *)x + 1) = 1; }\n"
    "extern \"C\" __global__ void trap_0(int *x) { asm volatile(\"trap;\"); }\n"
    "extern \"C\" __global__ void endless_0(volatile int *x) { while (*x == 0) {} }\n"
    "extern \"C\" __global__ void stream_0(float4 *to, const float4 *from, long n)\n"
    "{ long i = blockIdx.x * (long)blockDim.x + threadIdx.x; if (i < n) to[i] = from[i]; }\n";

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static enum kg_status run_apart(void *user, struct kg_text *answer, struct kg_error *own)
{
    (void)answer;
    (void)own;
    test_failures = 0;
    (*(void (**)(void))user)();
    fflush(NULL);
    return test_failures ? KG_ERROR_WRONG : KG_OK;
}

static void apart(void (*test)(void))
{
    struct kg_text answer;
    fflush(NULL);
    CHECK_STATUS(kg_child_run(run_apart, &test, 120, NULL, 0, &answer, &error), KG_OK, &error);
    kg_text_free(&answer);
}

static struct kg_kernel *load(const char *entry)
{
    const struct kg_source source = {.text = text, .entry = entry, .options = ""};
    struct kg_binary binary;
    struct kg_kernel *kernel = NULL;
    CHECK_STATUS(backend->compile(device, &source, 120, &binary, &error), KG_OK, &error);
    CHECK_STATUS(backend->load(device, &binary, entry, &kernel, &error), KG_OK, &error);
    kg_binary_free(&binary);
    if (!kernel)
        exit(1);
    return kernel;
}

static void *allocate(size_t bytes)
{
    void *memory = NULL;
    CHECK_STATUS(backend->allocate(device, bytes, &memory, &error), KG_OK, &error);
    if (!memory)
        exit(1);
    return memory;
}

static void copy(void *to, const void *from, size_t bytes)
{
    CHECK_STATUS(backend->copy(device, to, from, bytes, &error), KG_OK, &error);
}

static enum kg_status launch(struct kg_kernel *kernel, const struct kg_grid *grids, int count,
                             void **arguments)
{
    struct kg_launch all = {.grids = grids, .grid_count = count, .arguments = arguments};
    return backend->launch(kernel, &all, &error);
}

static void facts_are_told(void)
{
    const struct kg_device_facts *facts = &device->facts;
    printf("%s, %s, %d SMs, %.0f MHz, %.0f GB/s, shared %lld, L2 %lld\n%s\n%s\n", facts->name,
           facts->isa, facts->units, facts->clock / 1e6, facts->bandwidth / 1e9,
           (long long)facts->shared_bytes, (long long)facts->cache[3], device->driver,
           device->compiler);
    printf("f32 %.1f, f64 %.1f, f16 matrices %.0f TFLOP/s\n", facts->flops[KG_TYPE_F32] / 1e12,
           facts->flops[KG_TYPE_F64] / 1e12, facts->matrix_flops[KG_F16] / 1e12);
    CHECK(facts->units > 0 && facts->clock > 5e8 && facts->bandwidth > 5e10);
    CHECK(facts->shared_bytes > 48 << 10 && facts->cache[3] > 1 << 20);
    CHECK(facts->flops[KG_TYPE_F32] > 0 && strncmp(facts->isa, "sm_", 3) == 0);
    CHECK(strstr(device->driver, "CUDA"));
    struct kg_device *described;
    CHECK_STATUS(kg_device_open(facts->isa, folder, 0, &described, &error), KG_OK, &error);
    printf("the table has %s: %.0f GB/s, %d SMs\n", described->facts.name,
           described->facts.bandwidth / 1e9, described->facts.units);
    kg_device_close(described);
}

static void first_use(void)
{
    double start = seconds_now();
    void *memory = allocate(1 << 20);
    printf("initialising the driver and the first allocation: %.0f ms\n",
           1e3 * (seconds_now() - start));
    backend->release(device, memory);
    start = seconds_now();
    kg_device_close(device);
    printf("closing: %.0f ms\n", 1e3 * (seconds_now() - start));
}

static void grids_run(void)
{
    enum { COUNT = 100003 };
    static float values[COUNT];
    for (int i = 0; i < COUNT; i++)
        values[i] = (float)i;
    float *x = allocate(sizeof values);
    copy(x, values, sizeof values);
    float by = 3;
    int64_t count = COUNT;
    void *arguments[] = {&x, &by, &count};
    struct kg_grid grids[] = {{.blocks = {(COUNT + 255) / 256, 1, 1}, .threads = {256, 1, 1}},
                              {.blocks = {(COUNT + 99) / 100, 1, 1}, .threads = {100, 1, 1}}};
    struct kg_kernel *kernel = load("scale");
    CHECK_STATUS(launch(kernel, grids, 2, arguments), KG_OK, &error);
    grids[0].blocks[2] = 0; // nothing to do
    CHECK_STATUS(launch(kernel, grids, 1, arguments), KG_OK, &error);
    float *again = allocate(sizeof values);
    copy(again, x, sizeof values); // within the device
    copy(values, again, sizeof values);
    int right = 0;
    for (int i = 0; i < COUNT; i++)
        right += values[i] == 3 * (float)i + 1;
    CHECK(right == COUNT);
    grids[0] = (struct kg_grid){.blocks = {1, 1, 1}, .threads = {2000, 1, 1}};
    enum kg_status status = launch(kernel, grids, 1, arguments);
    CHECK(status == KG_ERROR_ARGUMENT || status == KG_ERROR_UNSUPPORTED);
    printf("too many threads: %s\n", error.text);
    backend->unload(kernel);
    backend->release(device, x);
    backend->release(device, again);
    kg_device_close(device);
}

static void shared_memory_opts_in(void)
{
    struct kg_kernel *kernel = load("shared");
    int bytes = (int)device->facts.shared_bytes - 64, count = bytes / 4; // 64: the static part
    int *x = allocate((size_t)bytes), *values = malloc((size_t)bytes);
    void *arguments[] = {&x, &count};
    struct kg_grid grid = {.blocks = {1, 1, 1}, .threads = {256, 1, 1}, .shared = bytes};
    CHECK_STATUS(launch(kernel, &grid, 1, arguments), KG_OK, &error);
    copy(values, x, (size_t)bytes);
    CHECK(values[0] == count - 1 && values[count - 1] == 0);
    grid.shared += 1024;
    CHECK(launch(kernel, &grid, 1, arguments) != KG_OK);
    printf("too much shared memory: %s\n", error.text);
    free(values);
    backend->unload(kernel);
    kg_device_close(device);
}

static void clusters_launch(void)
{
    if (strtol(device->facts.isa + 3, NULL, 10) < 90)
        return;
    struct kg_kernel *kernel = load("rank");
    int values[32], *x = allocate(sizeof values);
    void *arguments[] = {&x};
    static const int sizes[] = {1, 2, 8, 16};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        struct kg_grid grid = {.blocks = {32, 1, 1}, .threads = {32, 1, 1}, .cluster = sizes[s]};
        enum kg_status status = launch(kernel, &grid, 1, arguments);
        if (sizes[s] == 16 && status != KG_OK) {
            printf("clusters of 16: %s\n", error.text);
            continue;
        }
        CHECK_STATUS(status, KG_OK, &error);
        copy(values, x, sizeof values);
        int right = 0;
        for (int i = 0; i < 32; i++)
            right += values[i] == 100 * sizes[s] + i % sizes[s];
        CHECK(right == 32);
    }
    backend->unload(kernel);
    kg_device_close(device);
}

// A box that hangs over the edge of a matrix of 100 x 20 in rows of 104: zeros there.
static void boxes_are_copied(void)
{
    enum { COLUMNS = 100, PITCH = 104, ROWS = 20, ACROSS = 64, DOWN = 8 };
    if (strtol(device->facts.isa + 3, NULL, 10) < 90)
        return;
    static short from[ROWS * PITCH], box[DOWN * ACROSS];
    for (int i = 0; i < ROWS * PITCH; i++)
        from[i] = (short)(i + 1);
    struct kg_kernel *kernel = load("box");
    short *x = allocate(sizeof from), *y = allocate(sizeof box);
    copy(x, from, sizeof from);
    for (int swizzle = 0; swizzle <= 128; swizzle += 128) {
        struct kg_map map = {.element = 2,
                             .rank = 2,
                             .shape = {COLUMNS, ROWS},
                             .stride = {2, 2 * PITCH},
                             .box = {ACROSS, DOWN},
                             .swizzle = swizzle};
        struct kg_encoded_map encoded;
        bool changed;
        CHECK_STATUS(backend->enter(device, &changed, &error), KG_OK, &error);
        CHECK_STATUS(backend->encode(device, &map, x, &encoded, &error), KG_OK, &error);
        backend->leave(device, changed);
        int column = 48, row = 15, right = 0;
        void *arguments[] = {&y, &column, &row, &swizzle, &encoded};
        struct kg_grid grid = {.blocks = {1, 1, 1}, .threads = {128, 1, 1}};
        CHECK_STATUS(launch(kernel, &grid, 1, arguments), KG_OK, &error);
        copy(box, y, sizeof box);
        for (int i = 0; i < DOWN * ACROSS; i++) {
            int r = row + i / ACROSS, c = column + i % ACROSS;
            right += box[i] == (r < ROWS && c < COLUMNS ? from[r * PITCH + c] : 0);
        }
        CHECK(right == DOWN * ACROSS);
    }
    backend->unload(kernel);
    kg_device_close(device);
}

static void images_are_checked(void)
{
    const struct kg_source source = {.text = text, .entry = "scale", .options = ""};
    struct kg_device *other;
    struct kg_binary binary, foreign;
    struct kg_kernel *kernel;
    CHECK_STATUS(backend->compile(device, &source, 120, &binary, &error), KG_OK, &error);
    void *memory = allocate(1); // with the driver in use, what is wrong shows at once
    // PTX, assembled by the driver.
    struct kg_binary ptx = {.bytes = binary.ptx, .length = strlen(binary.ptx)};
    CHECK_STATUS(backend->load(device, &ptx, "scale", &kernel, &error), KG_OK, &error);
    backend->unload(kernel);
    ptx.length /= 2;
    CHECK_STATUS(backend->load(device, &ptx, "scale", &kernel, &error), KG_ERROR_COMPILE, &error);
    printf("half of the PTX: %.200s\n", error.text);
    CHECK_STATUS(backend->load(device, &binary, "nothing", &kernel, &error), KG_ERROR_COMPILE,
                 &error);
    struct kg_binary cut = {.bytes = binary.bytes, .length = binary.length / 2};
    CHECK_STATUS(backend->load(device, &cut, "scale", &kernel, &error), KG_ERROR_CORRUPT, &error);
    const char *name = strcmp(device->facts.isa, "sm_80") == 0 ? "sm_90a" : "sm_80";
    CHECK_STATUS(kg_device_open(name, folder, 0, &other, &error), KG_OK, &error);
    CHECK_STATUS(backend->compile(other, &source, 120, &foreign, &error), KG_OK, &error);
    CHECK_STATUS(backend->load(device, &foreign, "scale", &kernel, &error), KG_ERROR_COMPILE,
                 &error);
    printf("another architecture's: %s\n", error.text);
    kg_binary_free(&binary);
    kg_binary_free(&foreign);
    kg_device_close(other);
    backend->release(device, memory);
    kg_device_close(device);
}

// In a fork that does not touch the driver, though this process uses it.
static void compiles_while_the_driver_is_in_use(void)
{
    void *memory = allocate(100);
    struct kg_binary binary;
    struct kg_source source = {.text = text, .entry = "scale", .options = "-DIN_USE"};
    double total = 0;
    for (int i = 0; i < 5; i++) {
        char options[32];
        snprintf(options, sizeof options, "-DIN_USE=%d", i);
        source.options = options;
        CHECK_STATUS(backend->compile(device, &source, 120, &binary, &error), KG_OK, &error);
        CHECK(!binary.from_cache);
        total += binary.seconds;
        kg_binary_free(&binary);
    }
    printf("compiling all kernels of this test: %.0f ms\n", 1e3 * total / 5);
    backend->release(device, memory);
    kg_device_close(device);
}

static void memory_runs_out(void)
{
    void *memory;
    CHECK_STATUS(backend->allocate(device, (size_t)1 << 50, &memory, &error), KG_ERROR_MEMORY,
                 &error);
    CHECK(!memory);
    printf("%s\n", error.text);
    backend->release(device, allocate(0));
    kg_device_close(device);
}

// The fault shows when the work is waited for, and stays.
static void fault(const char *entry)
{
    struct kg_kernel *kernel = load(entry);
    int *x = allocate(4096);
    void *arguments[] = {&x}, *more;
    double seconds;
    struct kg_grid grid = {.blocks = {1, 1, 1}, .threads = {1, 1, 1}};
    CHECK_STATUS(backend->start(device, &error), KG_OK, &error);
    CHECK_STATUS(launch(kernel, &grid, 1, arguments), KG_OK, &error);
    CHECK_STATUS(backend->stop(device, &seconds, &error), KG_ERROR_FAULT, &error);
    printf("%s: %s\n", entry, error.text);
    CHECK(strstr(error.text, "CUDA_ERROR_") && strstr(error.text, "no further work"));
    CHECK_STATUS(backend->copy(device, &seconds, x, 4, &error), KG_ERROR_FAULT, &error);
    CHECK(backend->allocate(device, 100, &more, &error) == KG_ERROR_FAULT);
    CHECK(launch(kernel, &grid, 1, arguments) == KG_ERROR_FAULT);
    backend->unload(kernel);
    kg_device_close(device);
}

static void wild(void)
{
    fault("wild");
}
static void crooked(void)
{
    fault("crooked");
}
static void trap(void)
{
    fault("trap");
}

static enum kg_status hang(void *user, struct kg_text *answer, struct kg_error *own)
{
    (void)user;
    (void)answer;
    (void)own;
    struct kg_kernel *kernel = load("endless");
    int *x = allocate(4096), zero = 0;
    void *arguments[] = {&x};
    copy(x, &zero, sizeof zero);
    struct kg_grid grid = {.blocks = {1, 1, 1}, .threads = {1, 1, 1}};
    launch(kernel, &grid, 1, arguments);
    backend->now(device);
    return KG_OK;
}

static void hangs_are_killed(void)
{
    struct kg_text answer;
    double start = seconds_now();
    CHECK_STATUS(kg_child_run(hang, NULL, 10, NULL, 0, &answer, &error), KG_ERROR_TIMEOUT, &error);
    printf("a kernel that hangs, killed after 10 s: %.1f s\n", seconds_now() - start);
    kg_text_free(&answer);
}

static void forked_after_use(void)
{
    void *memory = allocate(100), *other;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        enum kg_status status = backend->allocate(device, 100, &other, &error);
        bool told = status == KG_ERROR_UNSUPPORTED && strstr(error.text, "before the fork");
        struct kg_device *again;
        status = kg_device_open("cuda:0", folder, 0, &again, &error);
        printf("opening in a fork of a process that used the driver: %d %s\n", (int)status,
               status ? error.text : "");
        fflush(NULL);
        _exit(told && status == KG_ERROR_UNSUPPORTED ? 0 : 1);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    struct kg_device *again; // in use here: no fork
    CHECK_STATUS(kg_device_open("cuda:0", folder, 0, &again, &error), KG_OK, &error);
    CHECK_TEXT(again->facts.name, device->facts.name);
    kg_device_close(again);
    backend->release(device, memory);
    kg_device_close(device);
}

static void contexts_of_others_come_back(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *other = NULL, *current = NULL;
    int (*make)(void **, unsigned, int), (*get)(void **), (*set)(void *), (*init)(unsigned);
    *(void **)&init = dlsym(driver, "cuInit");
    *(void **)&make = dlsym(driver, "cuCtxCreate_v2");
    *(void **)&get = dlsym(driver, "cuCtxGetCurrent");
    *(void **)&set = dlsym(driver, "cuCtxSetCurrent");
    CHECK(init(0) == 0 && make(&other, 0, 0) == 0);
    struct kg_kernel *kernel = load("empty");
    struct kg_grid grid = {.blocks = {1, 1, 1}, .threads = {1, 1, 1}};
    CHECK_STATUS(launch(kernel, &grid, 1, NULL), KG_OK, &error);
    CHECK(get(&current) == 0 && current == other);
    set(NULL);
    CHECK_STATUS(launch(kernel, &grid, 1, NULL), KG_OK, &error);
    CHECK(get(&current) == 0 && current && current != other);
    backend->unload(kernel);
    kg_device_close(device);
}

struct launching {
    struct kg_kernel *kernel;
    struct kg_launch *launch;
};

static enum kg_status launch_again(void *user, struct kg_error *own)
{
    const struct launching *launching = user;
    return backend->launch(launching->kernel, launching->launch, own);
}

// Host time of a launch, with the queue never full.
static void launches_are_cheap(void)
{
    enum { BATCH = 200, ROUNDS = 50 };
    struct kg_kernel *kernel = load("scale");
    float *x = allocate(4096), by = 1;
    int64_t count = 1000;
    void *arguments[] = {&x, &by, &count};
    struct kg_grid grid = {.blocks = {4, 1, 1}, .threads = {256, 1, 1}};
    struct kg_launch all = {.grids = &grid, .grid_count = 1, .arguments = arguments};
    double least = 1, total = 0;
    for (int round = 0; round < ROUNDS; round++) {
        backend->now(device);
        double start = seconds_now();
        for (int i = 0; i < BATCH; i++)
            backend->launch(kernel, &all, NULL);
        double each = (seconds_now() - start) / BATCH;
        least = each < least ? each : least;
        total += each / ROUNDS;
    }
    printf("a launch costs the host %.2f us, %.2f us at best\n", 1e6 * total, 1e6 * least);
    grid.cluster = 2;
    double start = seconds_now();
    for (int i = 0; i < BATCH; i++)
        backend->launch(kernel, &all, NULL);
    printf("with clusters %.2f us\n", 1e6 * (seconds_now() - start) / BATCH);
    backend->unload(kernel);
    kg_device_close(device);
}

static void work_is_timed(void)
{
    size_t bytes = (size_t)1 << 30;
    void *to = allocate(bytes), *from = allocate(bytes);
    int64_t count = (int64_t)(bytes / 16);
    void *arguments[] = {&to, &from, &count};
    struct kg_grid grid = {.blocks = {count / 256, 1, 1}, .threads = {256, 1, 1}};
    struct kg_kernel *kernel = load("stream");
    for (int i = 0; i < 5; i++) {
        double seconds = 0;
        backend->flush(device);
        CHECK_STATUS(backend->start(device, &error), KG_OK, &error);
        CHECK_STATUS(launch(kernel, &grid, 1, arguments), KG_OK, &error);
        CHECK_STATUS(backend->stop(device, &seconds, &error), KG_OK, &error);
        CHECK(seconds > 0);
        printf("copying 1 GiB: %.1f us, %.0f GB/s; clock %.0f MHz\n", 1e6 * seconds,
               2 * (double)bytes / seconds / 1e9, backend->clock(device) / 1e6);
    }
    grid.blocks[0] = 1;
    for (int i = 0; i < 5; i++) {
        double seconds = 0;
        backend->flush(device);
        backend->start(device, &error);
        launch(kernel, &grid, 1, arguments);
        backend->stop(device, &seconds, &error);
        printf("one block: %.2f us%s", 1e6 * seconds, i == 4 ? "\n" : ", ");
    }
    backend->unload(kernel);
    kg_device_close(device);
}

static void graphs_replay(void)
{
    enum { TIMES = 1000 };
    struct kg_kernel *kernel = load("scale");
    float *x = allocate(4096), values[1000] = {0}, by = 1;
    int64_t count = 1000;
    void *arguments[] = {&x, &by, &count};
    struct kg_grid grids[] = {{.blocks = {4, 1, 1}, .threads = {256, 1, 1}},
                              {.blocks = {4, 1, 1}, .threads = {256, 1, 1}}};
    struct kg_launch all = {.grids = grids, .grid_count = 2, .arguments = arguments};
    struct launching launching = {.kernel = kernel, .launch = &all};
    struct kg_graph *graph;
    double seconds = 0;
    copy(x, values, sizeof values);
    CHECK_STATUS(backend->record(device, launch_again, &launching, &graph, &error), KG_OK, &error);
    by = 5; // arguments were taken when it was recorded
    CHECK_STATUS(backend->start(device, &error), KG_OK, &error);
    for (int i = 0; graph && i < TIMES; i++)
        CHECK_STATUS(backend->replay(graph, NULL, &error), KG_OK, &error);
    CHECK_STATUS(backend->stop(device, &seconds, &error), KG_OK, &error);
    printf("a graph of two small grids: %.2f us\n", 1e6 * seconds / TIMES);
    copy(values, x, sizeof values);
    CHECK(values[0] == TIMES && values[999] == TIMES);
    backend->forget(graph);
    backend->unload(kernel);
    kg_device_close(device);
}

static uint64_t digest(const void *memory, size_t bytes)
{
    uint64_t sum = 7;
    CHECK_STATUS(backend->digest(device, memory, bytes, &sum, &error), KG_OK, &error);
    return sum;
}

// Every byte counts, nothing beside them does, and so does no address but its distance from a
// multiple of 16.
static void checksums(void)
{
    enum { COUNT = 96 };
    unsigned char values[COUNT];
    unsigned char *x = allocate(2 * COUNT);
    for (int i = 0; i < COUNT; i++)
        values[i] = (unsigned char)(i * 37 + i / 7);
    for (size_t offset = 0; offset < 16; offset += 3)
        for (size_t bytes = 0; bytes < 64; bytes += 7) {
            copy(x, values, COUNT);
            copy(x + COUNT, values, COUNT);
            uint64_t sum = digest(x + offset, bytes);
            CHECK(sum == digest(x + COUNT + offset, bytes));
            for (size_t at = 0; at < COUNT; at++) {
                unsigned char changed = values[at] ^ 1;
                copy(x + COUNT + at, &changed, 1);
                bool outside = at < offset || at >= offset + bytes;
                CHECK((digest(x + COUNT + offset, bytes) == sum) == outside);
                copy(x + COUNT + at, values + at, 1);
            }
        }
    backend->release(device, x);
    kg_device_close(device);
}

int main(void)
{
    if (!folder_make(folder))
        return 1;
    double start = seconds_now();
    enum kg_status status = kg_device_open("cuda:0", folder, 0, &device, &error);
    if (status != KG_OK || !device->compiler[0]) {
        printf("skipped: %s\n", status ? error.text : "no NVRTC");
        folder_remove(folder);
        return 77;
    }
    printf("opening took %.0f ms\n", 1e3 * (seconds_now() - start));
    backend = device->backend;
    void (*const tests[])(void) = {first_use,
                                   grids_run,
                                   shared_memory_opts_in,
                                   clusters_launch,
                                   boxes_are_copied,
                                   images_are_checked,
                                   checksums,
                                   compiles_while_the_driver_is_in_use,
                                   memory_runs_out,
                                   wild,
                                   crooked,
                                   trap,
                                   hangs_are_killed,
                                   forked_after_use,
                                   contexts_of_others_come_back,
                                   launches_are_cheap,
                                   work_is_timed,
                                   graphs_replay};
    facts_are_told();
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        apart(tests[i]);
    kg_device_close(device);
    folder_remove(folder);
    printf("%d checks, %d failed\n", test_checks, test_failures);
    return test_failures != 0;
}
