// Compiling for GPUs that are not at hand: what comes back, the cache and its damage, refusals,
// limits, and what is said where there is no compiler. Without NVRTC only the last is tested.

#include "asm/facts.h"
#include "base/files.h"
#include "device/cuda/cuda_device.h"
#include "support/folder.h"
#include "test.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[] = "/tmp/kg-test-nvrtc-XXXXXX";
static struct kg_error error;
static bool has_compiler;

static const char text[] = "extern \"C\" __global__ void scale_0(float *x, float by, long n)\n"
                           "{ long i = blockIdx.x * 256L + threadIdx.x; if (i < n) x[i] *= by; }\n";
static const struct kg_source source = {.text = text, .entry = "scale", .options = ""};

static struct kg_device *open_device(const char *name)
{
    struct kg_device *device = NULL;
    CHECK_STATUS(kg_device_open(name, folder, 0, &device, &error), KG_OK, &error);
    return device;
}

// Also finds out whether there is a compiler.
static void described_devices_open(void)
{
    CHECK(folder_make(folder));
    struct kg_device *device = open_device("sm_90a");
    const struct kg_device_facts *facts = &device->facts;
    CHECK_TEXT(facts->name, "NVIDIA H100 80GB HBM3");
    CHECK_TEXT(facts->isa, "sm_90a");
    CHECK_TEXT(device->driver, "");
    CHECK(facts->units == 132 && facts->vector_bytes == 16 && facts->shared_bytes == 227 << 10);
    CHECK(facts->cache[2] == 50 << 20 && facts->cache[3] == facts->cache[2]);
    CHECK(facts->bandwidth > 3e12 && facts->flops[KG_TYPE_F32] > 6e13);
    CHECK(facts->matrix_flops[KG_F16] > 9e14 && facts->matrix_flops[KG_F32] == 0);
    CHECK(device->backend->runs_grids && !device->backend->shares_memory);
    has_compiler = device->compiler[0] != '\0';
    kg_device_close(device);

    device = open_device("sm_90");
    CHECK_TEXT(device->facts.isa, "sm_90a");
    kg_device_close(device);
    device = open_device("sm_86"); // an architecture without a product in the table
    CHECK_TEXT(device->facts.isa, "sm_86");
    CHECK(device->facts.units == 0 && device->facts.flops[KG_TYPE_F32] == 0);
    kg_device_close(device);

    CHECK_STATUS(kg_device_open("sm_91", folder, 0, &device, &error), KG_ERROR_ARGUMENT, &error);
    CHECK(!device && strstr(error.text, "sm_91") && strstr(error.text, "sm_90"));
    CHECK_STATUS(kg_device_open("sm_90q", folder, 0, &device, &error), KG_ERROR_ARGUMENT, &error);
    CHECK_STATUS(kg_device_open("sm_", folder, 0, &device, &error), KG_ERROR_ARGUMENT, &error);
}

static void a_missing_compiler_is_explained(void)
{
    const char *chosen = getenv("KERNELGEN_NVRTC");
    char *before = chosen ? strdup(chosen) : NULL;
    setenv("KERNELGEN_NVRTC", "/nonexistent/libnvrtc.so", 1);
    struct kg_device *device = open_device("sm_80");
    struct kg_binary binary;
    CHECK_TEXT(device->compiler, "");
    CHECK_STATUS(device->backend->compile(device, &source, 60, &binary, &error), KG_ERROR_MISSING,
                 &error);
    CHECK(strstr(error.text, "/nonexistent/libnvrtc.so") && strstr(error.text, "Install"));
    CHECK(!binary.bytes);
    kg_device_close(device);
    // A library that is no NVRTC.
    setenv("KERNELGEN_NVRTC", "libm.so.6", 1);
    device = open_device("sm_80");
    CHECK_STATUS(device->backend->compile(device, &source, 60, &binary, &error), KG_ERROR_MISSING,
                 &error);
    CHECK(strstr(error.text, "is no NVRTC"));
    kg_device_close(device);
    if (before)
        setenv("KERNELGEN_NVRTC", before, 1);
    else
        unsetenv("KERNELGEN_NVRTC");
    free(before);
}

static void running_is_refused(void)
{
    struct kg_device *device = open_device("sm_90a");
    struct kg_binary binary = {.bytes = NULL};
    struct kg_kernel *kernel;
    struct kg_launch launch = {.grid_count = 0};
    void *memory;
    char byte = 0;
    CHECK(device->is_described);
    CHECK_STATUS(device->backend->load(device, &binary, "scale", &kernel, &error), KG_OK, &error);
    CHECK_STATUS(device->backend->launch(kernel, &launch, &error), KG_ERROR_MISSING, &error);
    CHECK(strstr(error.text, "sm_90a"));
    device->backend->unload(kernel);
    CHECK_STATUS(device->backend->allocate(device, 16, &memory, &error), KG_ERROR_MISSING, &error);
    CHECK(!memory);
    CHECK_STATUS(device->backend->copy(device, &byte, &byte, 1, &error), KG_ERROR_MISSING, &error);
    CHECK(device->backend->now(device) > 0);
    CHECK(device->backend->clock(device) == 0);
    device->backend->flush(device);
    device->backend->release(device, NULL);
    device->backend->unload(NULL);
    kg_device_close(device);
}

static void check_cubin(const struct kg_binary *binary, const char *arch)
{
    struct kg_arena arena = {0};
    struct kg_asm_file file;
    CHECK_STATUS(kg_asm_read(binary->bytes, binary->length, &arena, &file, &error), KG_OK, &error);
    CHECK(file.kernel_count == 1 && kg_asm_find(&file, "scale_0"));
    CHECK(binary->ptx && strstr(binary->ptx, arch) && strstr(binary->ptx, ".entry scale_0"));
    CHECK(binary->log && strstr(binary->log, "registers"));
    kg_arena_free(&arena);
}

static void compiles_for_every_architecture(void)
{
    static const char *const names[] = {"sm_80", "sm_90a", "sm_120a"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct kg_device *device = open_device(names[i]);
        struct kg_binary first, second;
        enum kg_status status = device->backend->compile(device, &source, 60, &first, &error);
        if (status == KG_ERROR_MISSING) { // an NVRTC older than the architecture
            CHECK(strstr(error.text, "does not compile for") && strstr(error.text, names[i]));
            kg_device_close(device);
            continue;
        }
        CHECK_STATUS(status, KG_OK, &error);
        CHECK(!first.from_cache && first.seconds > 0);
        check_cubin(&first, names[i]);
        CHECK_STATUS(device->backend->compile(device, &source, 60, &second, &error), KG_OK, &error);
        CHECK(second.from_cache && second.seconds == first.seconds);
        check_cubin(&second, names[i]);
        CHECK(second.length == first.length && !memcmp(second.bytes, first.bytes, first.length));
        kg_binary_free(&first);
        kg_binary_free(&second);
        kg_device_close(device);
    }
}

static void options_reach_the_compiler(void)
{
    struct kg_device *device = open_device("sm_90a");
    struct kg_binary binary;
    struct kg_source with = {.text =
                                 "#if CHANGED\nextern \"C\" __global__ void scale_0() {}\n#endif",
                             .entry = "scale",
                             .options = " -DCHANGED=1 \n --maxrregcount=32"};
    CHECK_STATUS(device->backend->compile(device, &with, 60, &binary, &error), KG_OK, &error);
    check_cubin(&binary, "sm_90a");
    kg_binary_free(&binary);
    with.options = "--no-such-option";
    CHECK_STATUS(device->backend->compile(device, &with, 60, &binary, &error), KG_ERROR_COMPILE,
                 &error);
    CHECK(strstr(error.text, "NVRTC") && !binary.bytes);
    char many[1000] = "";
    memset(many, ' ', sizeof many - 1);
    for (size_t i = 0; i < sizeof many - 10; i += 9)
        memcpy(many + i, "-DX=1234", 8);
    with.options = many;
    CHECK_STATUS(device->backend->compile(device, &with, 60, &binary, &error), KG_ERROR_ARGUMENT,
                 &error);
    kg_device_close(device);
}

static void refusals_show_the_log(void)
{
    struct kg_device *device = open_device("sm_90a");
    struct kg_binary binary;
    struct kg_source wrong = {.text = "extern \"C\" __global__ void scale_0() { nonsense(); }",
                              .entry = "scale"};
    CHECK_STATUS(device->backend->compile(device, &wrong, 60, &binary, &error), KG_ERROR_COMPILE,
                 &error);
    CHECK(strstr(error.text, "refused the kernel") && strstr(error.text, "nonsense") &&
          strstr(error.text, "kernel.cu(1)"));
    CHECK(!binary.bytes && !binary.ptx && !binary.log);
    kg_device_close(device);
}

static int run_out_of_memory(void *program, int count, const char *const *options)
{
    (void)program, (void)count, (void)options;
    return KG_NVRTC_OUT_OF_MEMORY;
}

static int be_killed(void *program, int count, const char *const *options)
{
    (void)program, (void)count, (void)options;
    return raise(SIGKILL);
}

static int crash(void *program, int count, const char *const *options)
{
    (void)program, (void)count, (void)options;
    signal(SIGSEGV, SIG_DFL); // sanitizers have a handler
    return raise(SIGSEGV);
}

// Only the crash may be the kernel's fault.
static void ends_of_the_compiler_are_told_apart(void)
{
    static const struct {
        int (*compile)(void *program, int count, const char *const *options);
        enum kg_status status;
        const char *words;
    } ends[] = {{run_out_of_memory, KG_ERROR_MEMORY, "NVRTC_ERROR_OUT_OF_MEMORY"},
                {be_killed, KG_ERROR_MISSING, "was ended by SIGKILL: it was killed, as"},
                {crash, KG_ERROR_COMPILE, "crashed with SIGSEGV"}};
    const struct kg_source fresh = {
        .text = "extern \"C\" __global__ void end_0() {}", .entry = "end", .options = ""};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        struct kg_device *device = open_device("sm_90a");
        struct kg_binary binary;
        ((struct kg_cuda_device *)device)->compiler.nvrtc.compile = ends[i].compile;
        CHECK_STATUS(device->backend->compile(device, &fresh, 60, &binary, &error), ends[i].status,
                     &error);
        CHECK(error.status == ends[i].status && strstr(error.text, ends[i].words));
        CHECK(strstr(error.text, "the compiler (NVRTC ") && !binary.bytes);
        kg_device_close(device);
    }
}

// Damages every cached object.
static int damage(void (*change)(const char *path))
{
    int count = 0;
    DIR *objects = opendir(folder);
    for (struct dirent *entry; objects && (entry = readdir(objects));) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (strstr(entry->d_name, ".cubin")) {
            change(path);
            count++;
        }
    }
    if (objects)
        closedir(objects);
    return count;
}

static void flip(const char *path)
{
    FILE *file = fopen(path, "r+");
    fseek(file, 200, SEEK_SET);
    int byte = fgetc(file);
    fseek(file, 200, SEEK_SET);
    fputc(byte ^ 1, file);
    fclose(file);
}

static void cut(const char *path)
{
    CHECK(truncate(path, 100) == 0);
}

static void empty(const char *path)
{
    CHECK(truncate(path, 0) == 0);
}

static void damage_is_noticed(void)
{
    void (*const changes[])(const char *) = {flip, cut, empty};
    struct kg_device *device = open_device("sm_80");
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        struct kg_binary binary;
        CHECK(damage(changes[i]) > 0);
        CHECK_STATUS(device->backend->compile(device, &source, 60, &binary, &error), KG_OK, &error);
        CHECK(!binary.from_cache);
        check_cubin(&binary, "sm_80");
        kg_binary_free(&binary);
        CHECK_STATUS(device->backend->compile(device, &source, 60, &binary, &error), KG_OK, &error);
        CHECK(binary.from_cache);
        kg_binary_free(&binary);
    }
    kg_device_close(device);
}

// Templates that double at each level: the compiler is busy for ages.
static const char endless[] =
    "template <int N, int M> struct t { static __device__ int f(int x) {\n"
    "  return t<N - 1, 2 * M>::f(x) + t<N - 1, 2 * M + 1>::f(x + N); } };\n"
    "template <int M> struct t<0, M> { static __device__ int f(int x) { return x + M; } };\n"
    "extern \"C\" __global__ void scale_0(int *x) { *x = t<24, 0>::f(*x); }\n";

static volatile int cancel;

static void set_cancel(int number)
{
    (void)number;
    cancel = 1;
}

static void limits_hold(void)
{
    struct kg_device *device = open_device("sm_90a");
    struct kg_binary binary;
    struct kg_source slow = {.text = endless, .entry = "scale"};
    CHECK_STATUS(device->backend->compile(device, &slow, 0.3, &binary, &error), KG_ERROR_TIMEOUT,
                 &error);
    CHECK(strstr(error.text, "did not finish within 0.3 s") && !binary.bytes);
    device->cancel = &cancel;
    signal(SIGALRM, set_cancel);
    ualarm(200000, 0);
    CHECK_STATUS(device->backend->compile(device, &slow, 60, &binary, &error), KG_ERROR_CANCELLED,
                 &error);
    signal(SIGALRM, SIG_DFL);
    kg_device_close(device);
}

// The sanitizers' own allocator keeps its locks across a fork: a child of a process of many threads
// may then wait for ever, whatever is tested.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FORKS_AMONG_THREADS false
#else
#define FORKS_AMONG_THREADS true
#endif

// Compiles its own kernels while others do, and others allocate.
static void *compile_some(void *user)
{
    struct kg_device *device = user;
    for (int i = 0; i < 4; i++) {
        struct kg_error own = {0};
        struct kg_binary binary;
        char options[64];
        snprintf(options, sizeof options, "-DTHREAD=%lu -DROUND=%d", (unsigned long)pthread_self(),
                 i);
        struct kg_source mine = {.text = text, .entry = "scale", .options = options};
        if (device->backend->compile(device, &mine, 60, &binary, &own) != KG_OK) {
            fprintf(stderr, "%s\n", own.text);
            return device;
        }
        kg_binary_free(&binary);
    }
    return NULL;
}

static volatile int stop;

static void *allocate_all_the_time(void *user)
{
    while (!stop)
        free(malloc(100000));
    return user;
}

static void many_compile_at_once(void)
{
    struct kg_device *device = open_device("sm_90a");
    pthread_t compiling[4], allocating[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&allocating[i], NULL, allocate_all_the_time, NULL);
    for (int i = 0; i < 4; i++)
        pthread_create(&compiling[i], NULL, compile_some, device);
    for (int i = 0; i < 4; i++) {
        void *failed;
        pthread_join(compiling[i], &failed);
        CHECK(failed == NULL);
    }
    stop = 1;
    for (int i = 0; i < 2; i++)
        pthread_join(allocating[i], NULL);
    kg_device_close(device);
}

int main(void)
{
    described_devices_open();
    a_missing_compiler_is_explained();
    running_is_refused();
    if (has_compiler) {
        compiles_for_every_architecture();
        options_reach_the_compiler();
        refusals_show_the_log();
        ends_of_the_compiler_are_told_apart();
        damage_is_noticed();
        limits_hold();
        if (FORKS_AMONG_THREADS)
            many_compile_at_once();
    }
    folder_remove(folder);
    printf("%d checks, %d failed%s\n", test_checks, test_failures,
           has_compiler ? "" : "; no NVRTC, most was skipped");
    return test_failures ? 1 : has_compiler ? 0 : 77;
}
