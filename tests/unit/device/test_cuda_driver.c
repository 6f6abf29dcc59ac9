// The CUDA backend above a driver without a GPU: when it is initialised and by whom, whose context
// is current, what a launch becomes, and what its errors are reported as.

#include "device/cuda/cuda_device.h"
#include "device/device.h"
#include "support/fake_driver.h"
#include "support/folder.h"
#include "test.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/kg-test-cuda-XXXXXX";
static struct kg_error error;
static struct fake_driver *fake;

static struct kg_device *open_device(void)
{
    struct kg_device *device = NULL;
    CHECK_STATUS(kg_device_open("cuda:0", folder, 0, &device, &error), KG_OK, &error);
    return device;
}

// Runs a test in a process of its own, which starts with an untouched driver.
static void apart(void (*test)(void))
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        test_failures = 0;
        test();
        exit(test_failures != 0);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

// PTX for the driver: the fake one takes any text.
static struct kg_kernel *load(struct kg_device *device)
{
    struct kg_binary binary = {.bytes = (char[]){"ptx"}, .length = 3};
    struct kg_kernel *kernel = NULL;
    CHECK_STATUS(device->backend->load(device, &binary, "k", &kernel, &error), KG_OK, &error);
    return kernel;
}

static void forget_log(void)
{
    memset(fake->log, 0, sizeof fake->log);
    fake->log_length = 0;
}

static void without_a_driver(void)
{
    struct kg_device *device;
    enum kg_status status = kg_device_open("cuda", folder, 0, &device, &error);
    if (status == KG_OK) { // this machine has one
        kg_device_close(device);
        return;
    }
    CHECK(status == KG_ERROR_MISSING && strstr(error.text, "no cuda device"));
    CHECK(strstr(error.text, "driver"));
    struct kg_text why = {0};
    CHECK(kg_backend_find("cuda", 4)->probe(&why) == 0);
    CHECK(strstr(kg_text_string(&why), "driver") && strstr(kg_text_string(&why), "NVRTC"));
    kg_text_free(&why);
}

static void opening_initialises_nothing(void)
{
    struct kg_text why = {0};
    CHECK(kg_backend_find("cuda", 4)->probe(&why) == 1 && why.length == 0);
    struct kg_device *device = open_device();
    const struct kg_device_facts *facts = &device->facts;
    CHECK_TEXT(facts->name, "Fake GPU 0");
    CHECK_TEXT(facts->isa, "sm_90a");
    CHECK(strstr(device->driver, "CUDA 13.0"));
    CHECK(facts->units == 132 && facts->clock == 1.98e9 && facts->shared_bytes == 227 << 10);
    CHECK(facts->bandwidth > 3.35e12 && facts->bandwidth < 3.36e12);
    CHECK(facts->cache[2] == 50 << 20 && facts->cache[3] == 50 << 20 && facts->vector_bytes == 16);
    CHECK(facts->flops[KG_TYPE_F32] == 2 * 128 * 132 * 1.98e9);
    CHECK(device->backend->now(device) > 0 && device->backend->clock(device) == 0);
    device->backend->release(device, NULL);
    kg_device_close(device);
    CHECK(fake->inits == 0 && fake->owner == 0);
    CHECK_STATUS(kg_device_open("cuda:1", folder, 0, &device, &error), KG_ERROR_MISSING, &error);
    CHECK(!device && strstr(error.text, "cuda:1") && strstr(error.text, "has 1"));
}

static void drivers_that_do_not_work(void)
{
    struct kg_device *device;
    struct kg_text why = {0};
    fake->version = 11080;
    CHECK_STATUS(kg_device_open("cuda:0", folder, 0, &device, &error), KG_ERROR_MISSING, &error);
    CHECK(strstr(error.text, "11.8") && strstr(error.text, "12.0"));
    fake->version = 13000;
    fake->devices = 0;
    CHECK_STATUS(kg_device_open("cuda:0", folder, 0, &device, &error), KG_ERROR_MISSING, &error);
    CHECK(strstr(error.text, "no GPU"));
    CHECK(kg_backend_find("cuda", 4)->probe(&why) == 0 && strstr(why.data, "no GPU"));
    kg_text_free(&why);
    fake->devices = 1;
    fake->fail_in = "cuInit";
    fake->result = 803;
    CHECK_STATUS(kg_device_open("cuda:0", folder, 0, &device, &error), KG_ERROR_MISSING, &error);
    CHECK(strstr(error.text, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"));
    fake->fail_in = NULL;
    fake->crash = 1;
    CHECK_STATUS(kg_device_open("cuda:0", folder, 0, &device, &error), KG_ERROR_FAULT, &error);
    CHECK(strstr(error.text, "asking the CUDA driver: crashed with SIGSEGV"));
    fake->crash = 0;
    CHECK(!device && fake->inits == 0);
}

// As the loader's own checks end a fork of a process that was loading a library.
static void asks_again_where_a_fork_ends(void)
{
    _Atomic int *exits =
        mmap(NULL, sizeof *exits, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct kg_device *device = NULL;
    CHECK(exits != MAP_FAILED);
    fake->exits = exits;
    *exits = 3;
    kg_device_close(open_device());
    CHECK(*exits == 0);
    *exits = 100;
    CHECK_STATUS(kg_device_open("cuda:0", folder, 0, &device, &error), KG_ERROR_FAULT, &error);
    CHECK(strstr(error.text, "asking the CUDA driver: its process exited with status 127"));
    CHECK(*exits > 90);
    fake->exits = NULL;
    munmap(exits, sizeof *exits);
}

static struct kg_device *shared; // opened before a fork

static void use_in_a_fork(void)
{
    void *memory = NULL;
    CHECK_STATUS(shared->backend->allocate(shared, 100, &memory, &error), KG_OK, &error);
    CHECK(fake->inits == 1 && fake->contexts == 1);
    shared->backend->release(shared, memory);
    kg_device_close(shared);
    CHECK(fake->contexts == 0 && fake->blocks == 0);
}

static void misuse_in_a_fork(void)
{
    void *memory = NULL;
    double seconds;
    struct kg_device *device;
    CHECK_STATUS(shared->backend->allocate(shared, 100, &memory, &error), KG_ERROR_UNSUPPORTED,
                 &error);
    CHECK(!memory && strstr(error.text, "in use before the fork"));
    CHECK_STATUS(shared->backend->stop(shared, &seconds, &error), KG_ERROR_UNSUPPORTED, &error);
    CHECK(shared->backend->now(shared) > 0);
    shared->backend->flush(shared);
    shared->backend->release(shared, &device);
    CHECK_STATUS(kg_device_open("cuda:0", folder, 0, &device, &error), KG_ERROR_UNSUPPORTED,
                 &error);
    CHECK(strstr(error.text, "in use before the fork"));
    kg_device_close(shared);
}

static void forks(void)
{
    shared = open_device();
    apart(use_in_a_fork);
    CHECK(fake->inits == 0);
    void *memory;
    CHECK_STATUS(shared->backend->allocate(shared, 100, &memory, &error), KG_OK, &error);
    apart(misuse_in_a_fork);
    // The driver is in use here: another device is opened without a fork.
    int inits = fake->inits;
    struct kg_device *device = open_device();
    CHECK(fake->inits == inits + 1 && fake->owner == (int)getpid());
    kg_device_close(device);
    shared->backend->release(shared, memory);
    kg_device_close(shared);
    CHECK(fake->contexts == 0);
}

static void memory_moves(void)
{
    struct kg_device *device = open_device();
    char here[100], there[100] = "";
    void *memory, *other;
    memset(here, 7, sizeof here);
    CHECK_STATUS(device->backend->allocate(device, sizeof here, &memory, &error), KG_OK, &error);
    CHECK_STATUS(device->backend->allocate(device, 0, &other, &error), KG_OK, &error);
    CHECK_STATUS(device->backend->copy(device, memory, here, sizeof here, &error), KG_OK, &error);
    CHECK_STATUS(device->backend->copy(device, there, memory, sizeof here, &error), KG_OK, &error);
    CHECK(memcmp(here, there, sizeof here) == 0);
    CHECK_STATUS(device->backend->copy(device, NULL, NULL, 0, &error), KG_OK, &error);
    device->backend->release(device, memory);
    device->backend->release(device, other);
    CHECK_STATUS(device->backend->allocate(device, (size_t)3 << 30, &memory, &error),
                 KG_ERROR_MEMORY, &error);
    CHECK(!memory && strstr(error.text, "3221225472 bytes") && strstr(error.text, "1073741824"));
    forget_log();
    device->backend->flush(device);
    device->backend->flush(device);
    CHECK_TEXT(fake->log, "fill 104857600\nfill 104857600\n");
    double seconds = 0;
    CHECK_STATUS(device->backend->start(device, &error), KG_OK, &error);
    CHECK_STATUS(device->backend->stop(device, &seconds, &error), KG_OK, &error);
    CHECK(seconds == 1e-3 * 1.5);
    kg_device_close(device);
    CHECK(fake->blocks == 0 && fake->contexts == 0);
}

// What was built before a fork is loaded in the fork.
static void kernels_wait_for_the_driver(void)
{
    struct kg_device *device = open_device();
    struct kg_kernel *kernel = load(device);
    struct kg_binary bad = {.bytes = (char[]){"bad ptx"}, .length = 7};
    struct kg_grid grid = {.blocks = {1, 1, 1}, .threads = {1, 1, 1}};
    struct kg_launch launch = {.grids = &grid, .grid_count = 1};
    CHECK(fake->inits == 0 && fake->modules == 0);
    CHECK_STATUS(device->backend->launch(kernel, &launch, &error), KG_OK, &error);
    CHECK_STATUS(device->backend->launch(kernel, &launch, &error), KG_OK, &error);
    CHECK(fake->inits == 1 && fake->modules == 1);
    device->backend->unload(kernel);
    kg_device_close(device);
    device = open_device();
    CHECK_STATUS(device->backend->load(device, &bad, "k", &kernel, &error), KG_OK, &error);
    for (int i = 0; i < 2; i++)
        CHECK_STATUS(device->backend->launch(kernel, &launch, &error), KG_ERROR_COMPILE, &error);
    CHECK(strstr(error.text, "line 1: bad"));
    device->backend->unload(kernel);
    kg_device_close(device);
    CHECK(fake->modules == 0);
}

// With the driver in use, what is wrong shows at once.
static void loading(void)
{
    struct kg_device *device = open_device();
    struct kg_kernel *kernel;
    device->backend->flush(device);
    struct kg_binary binary = {.bytes = (char[]){"\177ELF is broken"}, .length = 14};
    CHECK_STATUS(device->backend->load(device, &binary, "k", &kernel, &error), KG_ERROR_CORRUPT,
                 &error);
    CHECK(!kernel && strstr(error.text, "loading a kernel"));
    binary = (struct kg_binary){.bytes = (char[]){"bad ptxZZZ"}, .length = 7};
    CHECK_STATUS(device->backend->load(device, &binary, "k", &kernel, &error), KG_ERROR_COMPILE,
                 &error);
    CHECK(strstr(error.text, "line 1: bad") && strstr(error.text, "CUDA_ERROR_INVALID_PTX"));
    binary.length = 3;
    CHECK_STATUS(device->backend->load(device, &binary, "j", &kernel, &error), KG_ERROR_COMPILE,
                 &error);
    CHECK(!kernel && strstr(error.text, "no function j_0") && strstr(error.text, "extern \"C\""));
    CHECK(fake->modules == 0);
    forget_log();
    kernel = load(device);
    CHECK_TEXT(fake->log, "k_0: attribute 8 = 232448\nk_0: attribute 14 = 1\n"
                          "k_1: attribute 8 = 231424\nk_1: attribute 14 = 1\n");
    CHECK(fake->modules == 1);
    device->backend->unload(kernel);
    CHECK(fake->modules == 0);
    kg_device_close(device);
}

static void launching(void)
{
    struct kg_device *device = open_device();
    device->backend->flush(device); // the driver is in use
    struct kg_kernel *kernel = load(device);
    int stream = 5, value = 42;
    void *arguments[] = {&value};
    struct kg_grid grids[] = {
        {.blocks = {7, 2, 3}, .threads = {32, 4, 1}, .shared = 100},
        {.blocks = {8, 1, 1}, .threads = {128, 1, 1}, .shared = 0, .cluster = 4},
        {.blocks = {1, 1, 1}, .threads = {1, 1, 1}},
    };
    struct kg_launch launch = {
        .grids = grids, .grid_count = 2, .arguments = arguments, .stream = &stream};
    forget_log();
    CHECK_STATUS(device->backend->launch(kernel, &launch, &error), KG_OK, &error);
    CHECK_TEXT(fake->log, "k_0 <<<7x2x3, 32x4x1, 100, 5>>> 42\n"
                          "k_1 <<<8x1x1, 128x1x1, 0, 5>>> cluster 4x1x1 42\n");
    grids[0].blocks[1] = 0;
    launch.stream = NULL;
    forget_log();
    CHECK_STATUS(device->backend->launch(kernel, &launch, &error), KG_OK, &error);
    CHECK_TEXT(fake->log, "k_1 <<<8x1x1, 128x1x1, 0, 0>>> cluster 4x1x1 42\n");

    forget_log();
    launch.grid_count = 3;
    CHECK_STATUS(device->backend->launch(kernel, &launch, &error), KG_ERROR_ARGUMENT, &error);
    CHECK(strstr(error.text, "3 grids") && strstr(error.text, "2 functions"));
    launch.grid_count = 1;
    grids[0].blocks[1] = (int64_t)1 << 32;
    CHECK_STATUS(device->backend->launch(kernel, &launch, &error), KG_ERROR_ARGUMENT, &error);
    CHECK(strstr(error.text, "7 x 4294967296 x 3 blocks"));
    grids[0].blocks[1] = -1;
    CHECK_STATUS(device->backend->launch(kernel, &launch, &error), KG_ERROR_ARGUMENT, &error);
    grids[0].blocks[1] = 1;
    grids[0].threads[2] = 0;
    CHECK_STATUS(device->backend->launch(kernel, &launch, &error), KG_ERROR_ARGUMENT, &error);
    CHECK_TEXT(fake->log, "");
    device->backend->unload(kernel);
    kg_device_close(device);
}

static char place[1024] __attribute__((aligned(256)));
static const struct kg_map good_map = {.element = 2,
                                       .rank = 3,
                                       .shape = {1000, 77, 3},
                                       .stride = {2, 2048, 157696},
                                       .box = {64, 128, 1},
                                       .swizzle = 128};

static enum kg_status encode(struct kg_device *device, const struct kg_map *map, size_t past,
                             struct kg_encoded_map *encoded)
{
    bool changed;
    enum kg_status status = device->backend->enter(device, &changed, &error);
    if (status == KG_OK) {
        status = device->backend->encode(device, map, place + past, encoded, &error);
        device->backend->leave(device, changed);
    }
    return status;
}

static void maps(void)
{
    struct kg_device *device = open_device();
    struct kg_encoded_map encoded;
    forget_log();
    CHECK_STATUS(encode(device, &good_map, 48, &encoded), KG_OK, &error);
    CHECK_TEXT(fake->log, "map type 1 at +48 1000/64/1 77/128/1 3/1/1 stride 2048 stride 157696, "
                          "0 3 3 0\n");
    CHECK(encoded.words[0] == (uintptr_t)(place + 48) && encoded.words[1] == 0);
    struct kg_map plain = {.element = 8, .rank = 1, .shape = {5}, .box = {256}};
    forget_log();
    CHECK_STATUS(encode(device, &plain, 0, &encoded), KG_OK, &error);
    CHECK_TEXT(fake->log, "map type 4 at +0 5/256/1, 0 0 3 0\n");
    // What the driver does not say more about.
    fake->fail_in = "cuTensorMapEncodeTiled";
    fake->result = 1;
    CHECK_STATUS(encode(device, &plain, 16, &encoded), KG_ERROR_ARGUMENT, &error);
    CHECK(strstr(error.text, "CUDA_ERROR_INVALID_VALUE") && encoded.words[0] == 0);
    fake->fail_in = NULL;
    CHECK_STATUS(encode(device, &plain, 16, &encoded), KG_OK, &error); // the refusal is not kept
    CHECK(encoded.words[0] == (uintptr_t)(place + 16));
    struct kg_cuda_driver *driver = &((struct kg_cuda_device *)device)->driver;
    driver->encode_map = NULL;
    CHECK_STATUS(encode(device, &plain, 0, &encoded), KG_ERROR_MISSING, &error);
    CHECK(strstr(error.text, "(CUDA 13.0) has no cuTensorMapEncodeTiled"));
    kg_device_close(device);
}

// The driver is not asked, so not even initialised.
// Whatever a map depends on makes another one of it; the tensor's number and offset, which the
// address holds, do not.
static void maps_are_encoded_once(void)
{
    struct kg_device *device = open_device();
    struct kg_encoded_map encoded;
    struct kg_map other[6];
    for (int i = 0; i < 6; i++)
        other[i] = good_map;
    other[0].shape[1]++;
    other[1].stride[2] += 16;
    other[2].box[1]--;
    other[3].swizzle = 0;
    other[4].rank = 2;
    other[5].tensor = 7, other[5].offset = 64, other[5].stride[0] = 4;
    fake->encodings = 0;
    for (int i = 0; i < 3; i++)
        CHECK_STATUS(encode(device, &good_map, 48, &encoded), KG_OK, &error);
    CHECK(fake->encodings == 1 && encoded.words[0] == (uintptr_t)(place + 48));
    CHECK_STATUS(encode(device, &good_map, 64, &encoded), KG_OK, &error);
    CHECK(fake->encodings == 2 && encoded.words[0] == (uintptr_t)(place + 64));
    for (int i = 0; i < 5; i++)
        CHECK_STATUS(encode(device, &other[i], 48, &encoded), KG_OK, &error);
    CHECK(fake->encodings == 7);
    fake->encodings = 0;
    CHECK_STATUS(encode(device, &other[4], 48, &encoded), KG_OK, &error);
    CHECK_STATUS(encode(device, &other[5], 48, &encoded), KG_OK, &error);
    CHECK(encoded.words[0] == (uintptr_t)(place + 48) && fake->encodings <= 1);
    kg_device_close(device);
}

static void maps_that_break_rules(void)
{
    struct kg_device *device = open_device();
    struct kg_encoded_map encoded;
    struct kg_map map[15];
    size_t past[15] = {0};
    for (int i = 0; i < 15; i++)
        map[i] = good_map;
    map[0].rank = 0;
    map[1].rank = 6;
    map[2].element = 3;
    map[3].swizzle = 16;
    past[4] = 8;
    map[5].shape[1] = 0;
    map[6].shape[2] = ((int64_t)1 << 32) + 1;
    map[7].stride[1] = 2056;
    map[8].stride[2] = -16;
    map[9].stride[2] = (int64_t)1 << 40;
    map[10].box[1] = 257;
    map[11].box[2] = 0;
    map[12].box[0] = 63;
    map[13].swizzle = 64;
    map[14].box[0] = INT32_MAX;
    static const char *const why[15] = {
        "0 dimensions are not between 1 and 5",
        "6 dimensions",
        "an element has 1, 2, 4 or 8 bytes, and not 3",
        "a swizzle has 0, 32, 64 or 128 bytes, and not 16",
        "is no multiple of 16",
        "0 elements of dimension 1 are not between 1",
        "4294967297 elements of dimension 2",
        "the stride of dimension 1, 2056 bytes, is no multiple of 16",
        "the stride of dimension 2, -16 bytes, is not between 0",
        "the stride of dimension 2, 1099511627776 bytes",
        "a box of 257 elements along dimension 1 is not between 1 and 256",
        "a box of 0 elements along dimension 2",
        "the rows of a box, 126 bytes, are no multiple of 16",
        "the rows of a box, 128 bytes, are longer than the swizzle, 64",
        "a box of 2147483647 elements along dimension 0",
    };
    for (int i = 0; i < 15; i++) {
        CHECK_STATUS(encode(device, &map[i], past[i], &encoded), KG_ERROR_ARGUMENT, &error);
        CHECK(strstr(error.text, why[i]));
    }
    kg_device_close(device);
}

static void contexts_of_others_come_back(void)
{
    struct kg_device *device = open_device();
    device->backend->flush(device);
    struct kg_kernel *kernel = load(device);
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), *current, *ours;
    int (*get)(void **), (*set)(void *);
    *(void **)&get = dlsym(library, "cuCtxGetCurrent");
    *(void **)&set = dlsym(library, "cuCtxSetCurrent");
    CHECK(get(&ours) == 0 && ours); // a thread without a context keeps ours
    struct kg_grid grid = {.blocks = {1, 1, 1}, .threads = {1, 1, 1}};
    struct kg_launch launch = {.grids = &grid, .grid_count = 1};
    char other;
    set(&other);
    CHECK_STATUS(device->backend->launch(kernel, &launch, &error), KG_OK, &error);
    CHECK(get(&current) == 0 && current == &other);
    device->backend->flush(device);
    CHECK(get(&current) == 0 && current == &other);
    device->backend->unload(kernel);
    CHECK(get(&current) == 0 && current == &other);
    set(ours);
    kg_device_close(device);
    CHECK(get(&current) == 0 && !current); // it was released
}

static void errors_have_names(void)
{
    struct kg_device *device = open_device();
    struct kg_kernel *kernel = load(device);
    struct kg_grid grid = {.blocks = {1, 1, 1}, .threads = {1, 1, 1}};
    struct kg_launch launch = {.grids = &grid, .grid_count = 1};
    double seconds = 1;
    fake->fail_in = "cuEventSynchronize";
    fake->result = 700;
    CHECK_STATUS(device->backend->start(device, &error), KG_OK, &error);
    CHECK_STATUS(device->backend->stop(device, &seconds, &error), KG_ERROR_FAULT, &error);
    CHECK(seconds == 0 && strstr(error.text, "CUDA_ERROR_ILLEGAL_ADDRESS (a kernel read or"));
    CHECK(strstr(error.text, "no further work"));
    fake->fail_in = "cuCtxSynchronize";
    fake->result = 719;
    CHECK_STATUS(device->backend->copy(device, &seconds, &seconds, 0, &error), KG_ERROR_FAULT,
                 &error);
    CHECK(strstr(error.text, "running kernels: CUDA_ERROR_LAUNCH_FAILED"));
    fake->fail_in = "cuLaunchKernel";
    fake->result = 701;
    CHECK_STATUS(device->backend->launch(kernel, &launch, &error), KG_ERROR_UNSUPPORTED, &error);
    CHECK(strstr(error.text, "launching grid 0: 1 x 1 x 1 blocks of 1 x 1 x 1 threads"));
    fake->result = 4242;
    CHECK_STATUS(device->backend->launch(kernel, &launch, &error), KG_ERROR_FAULT, &error);
    CHECK(strstr(error.text, "CUDA_ERROR_OF_TOMORROW (4242)"));
    fake->result = 4243;
    CHECK_STATUS(device->backend->launch(kernel, &launch, &error), KG_ERROR_FAULT, &error);
    CHECK(strstr(error.text, "an unknown error (4243)"));
    fake->fail_in = NULL;
    device->backend->unload(kernel);
    kg_device_close(device);
}

// NVRTC would initialise the driver for a cache of its own.
static void compiling_leaves_the_driver_alone(void)
{
    struct kg_device *device = open_device();
    struct kg_binary binary = {.bytes = NULL};
    const struct kg_source source = {.text = "extern \"C\" __global__ void k_0() {}", .entry = "k"};
    fake->crash = 1;
    if (device->compiler[0])
        CHECK_STATUS(device->backend->compile(device, &source, 60, &binary, &error), KG_OK, &error);
    fake->crash = 0;
    kg_binary_free(&binary);
    kg_device_close(device);
}

struct to_record {
    struct kg_kernel *kernel;
    enum kg_status outcome;
    int times, value;
};

static enum kg_status run_once(void *user, struct kg_error *own)
{
    const struct to_record *record = user;
    struct kg_grid grid = {.blocks = {1, 1, 1}, .threads = {1, 1, 1}};
    struct kg_launch launch = {.grids = &grid, .grid_count = 1};
    enum kg_status status =
        shared->backend->launch(record->kernel, &launch, own); // the NULL stream
    return status ? status : record->outcome;
}

static void graphs(void)
{
    shared = open_device();
    shared->backend->flush(shared);
    struct to_record record = {.kernel = load(shared)};
    struct kg_graph *graph;
    forget_log();
    CHECK_STATUS(shared->backend->record(shared, run_once, &record, &graph, &error), KG_OK, &error);
    CHECK_TEXT(fake->log, "begin 9 2\nk_0 <<<1x1x1, 1x1x1, 0, 9>>>\nend 9\n");
    CHECK(fake->graphs == 1); // what it was made of is not kept
    forget_log();
    CHECK_STATUS(shared->backend->replay(graph, NULL, &error), KG_OK, &error);
    CHECK_STATUS(run_once(&record, &error), KG_OK, &error);
    CHECK_TEXT(fake->log, "replay\nk_0 <<<1x1x1, 1x1x1, 0, 0>>>\n");
    shared->backend->forget(graph);
    record.outcome = KG_ERROR_WRONG;
    CHECK_STATUS(shared->backend->record(shared, run_once, &record, &graph, &error), KG_ERROR_WRONG,
                 &error);
    CHECK(!graph && fake->graphs == 0);
    shared->backend->forget(NULL);
    shared->backend->unload(record.kernel);
    kg_device_close(shared);
}

// Both functions, with an argument.
static enum kg_status run_both(void *user, void *stream, struct kg_error *own)
{
    struct to_record *record = user;
    void *arguments[] = {&record->value};
    struct kg_grid grids[] = {{.blocks = {1, 2, 3}, .threads = {4, 5, 6}, .shared = 7},
                              {.blocks = {8, 1, 1}, .threads = {32, 1, 1}}};
    struct kg_launch launch = {
        .grids = grids, .grid_count = 2, .arguments = arguments, .stream = stream};
    enum kg_status status = KG_OK;
    for (int i = 0; i < record->times && !status; i++)
        status = shared->backend->launch(record->kernel, &launch, own);
    return status;
}

static enum kg_status renew(struct kg_graph *graph, const struct kg_kernel *kernel,
                            const struct kg_grid *first, int count)
{
    int value = 0;
    void *arguments[] = {&value};
    const struct kg_grid next = {.blocks = {8, 1, 1}, .threads = {32, 1, 1}};
    const struct kg_grid grids[] = {*first, next, next};
    struct kg_launch launch = {.grids = grids, .grid_count = count, .arguments = arguments};
    return shared->backend->renew(graph, kernel, &launch, &error);
}

// Only what the graph launches, as it launches it.
static void graphs_that_are_renewed(void)
{
    shared = open_device();
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    int (*init)(unsigned flags);
    *(void **)&init = dlsym(library, "cuInit");
    CHECK(!shared->backend->may_replay(shared, NULL) && fake->inits == 0);
    CHECK(init(0) == 0 && !shared->backend->may_replay(shared, NULL)); // it is somebody else's
    shared->backend->flush(shared);
    CHECK(shared->backend->may_replay(shared, NULL));
    struct to_record record = {.kernel = load(shared), .times = 1};
    struct kg_kernel *stranger = load(shared);
    struct kg_graph *graph;
    forget_log();
    CHECK_STATUS(shared->backend->record_for(shared, NULL, run_both, &record, &graph, &error),
                 KG_OK, &error);
    CHECK_TEXT(fake->log, "begin 9 2\nk_0 <<<1x2x3, 4x5x6, 7, 9>>> 0\n"
                          "k_1 <<<8x1x1, 32x1x1, 0, 9>>> 0\nend 9\n");
    struct kg_grid grid = {.blocks = {1, 2, 3}, .threads = {4, 5, 6}, .shared = 7};
    CHECK_STATUS(renew(graph, record.kernel, &grid, 2), KG_OK, &error);
    CHECK_STATUS(renew(graph, stranger, &grid, 2), KG_ERROR_UNSUPPORTED, &error);
    CHECK_STATUS(renew(graph, record.kernel, &grid, 3), KG_ERROR_UNSUPPORTED, &error);
    CHECK(fake->renewals == 2 + 2);
    int64_t *const blocks[] = {&grid.blocks[0], &grid.blocks[1], &grid.blocks[2]};
    int *const others[] = {&grid.threads[0], &grid.threads[1], &grid.threads[2], &grid.shared};
    for (int i = 0; i < 3; i++) {
        int64_t before = *blocks[i];
        const int64_t wrong[] = {before + 1, 0, -1, before + ((int64_t)1 << 32)};
        for (int n = 0; n < 4; n++) {
            *blocks[i] = wrong[n];
            CHECK_STATUS(renew(graph, record.kernel, &grid, 1), KG_ERROR_UNSUPPORTED, &error);
        }
        *blocks[i] = before;
    }
    for (int i = 0; i < 4; i++) {
        *others[i] += 1;
        CHECK_STATUS(renew(graph, record.kernel, &grid, 1), KG_ERROR_UNSUPPORTED, &error);
        *others[i] -= 1;
    }
    CHECK(fake->renewals == 2 + 2);
    CHECK_STATUS(renew(graph, record.kernel, &grid, 1), KG_OK, &error);
    shared->backend->forget(graph);
    for (record.times = 0; record.times < 3; record.times += 2) { // nothing, and all of it twice
        CHECK_STATUS(shared->backend->record_for(shared, NULL, run_both, &record, &graph, &error),
                     KG_ERROR_UNSUPPORTED, &error);
        CHECK(!graph && fake->graphs == 0);
    }
    record.times = 20; // more than is kept
    CHECK_STATUS(shared->backend->record_for(shared, NULL, run_both, &record, &graph, &error),
                 KG_ERROR_UNSUPPORTED, &error);
    CHECK(!graph && fake->graphs == 0 && strstr(error.text, "a graph of 40 launches"));
    shared->backend->unload(record.kernel);
    shared->backend->unload(stranger);
    kg_device_close(shared);
}

int main(void)
{
    CHECK(folder_make(folder));
    apart(without_a_driver);
    fake = fake_driver_open();
    CHECK(fake);
    if (fake) {
        void (*const tests[])(void) = {opening_initialises_nothing,
                                       drivers_that_do_not_work,
                                       forks,
                                       asks_again_where_a_fork_ends,
                                       memory_moves,
                                       kernels_wait_for_the_driver,
                                       loading,
                                       launching,
                                       maps,
                                       maps_are_encoded_once,
                                       maps_that_break_rules,
                                       graphs,
                                       graphs_that_are_renewed,
                                       errors_have_names,
                                       contexts_of_others_come_back,
                                       compiling_leaves_the_driver_alone};
        for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
            apart(tests[i]);
    }
    folder_remove(folder);
    printf("%d checks, %d failed\n", test_checks, test_failures);
    return test_failures != 0;
}
