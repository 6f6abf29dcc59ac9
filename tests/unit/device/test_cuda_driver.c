// The CUDA backend above a driver without a GPU: when it is initialised and by whom, whose context
// is current, what a launch becomes, and what its errors are reported as.

#include "support/fake_cuda.h"

#include <sys/mman.h>

static void without_a_driver(void)
{
    struct kg_device *device;
    CHECK(folder_make(folder));
    enum kg_status status = kg_device_open("cuda", folder, 0, &device, &error);
    folder_remove(folder);
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

int main(void)
{
    apart(without_a_driver);
    void (*const tests[])(void) = {opening_initialises_nothing,
                                   drivers_that_do_not_work,
                                   forks,
                                   asks_again_where_a_fork_ends,
                                   memory_moves,
                                   kernels_wait_for_the_driver,
                                   loading,
                                   launching,
                                   errors_have_names,
                                   contexts_of_others_come_back,
                                   compiling_leaves_the_driver_alone};
    return run_apart(tests, sizeof tests / sizeof tests[0]);
}
