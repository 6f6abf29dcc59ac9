// Opening a GPU, compiling, loading, launching and recording with every allocation failing in turn,
// above a driver without a GPU. Compiling is left out where there is no NVRTC.

#include "device/device.h"
#include "faults/fail_alloc.h"
#include "support/fake_driver.h"
#include "support/folder.h"
#include "test.h"

#include <unistd.h>

static char folder[] = "/tmp/kernelgen-faults-XXXXXX";
static struct fake_driver *fake;
static bool has_compiler;

static bool is_honest(enum kg_status status, const struct kg_error *error)
{
    // What cannot be looked for without memory counts as absent.
    return status == KG_OK ||
           ((status == KG_ERROR_MEMORY || status == KG_ERROR_IO || status == KG_ERROR_MISSING) &&
            error->text[0]);
}

static void prepare(void)
{
    struct kg_device *device;
    struct kg_error error;
    CHECK(folder_make(folder));
    fake = fake_driver_open();
    CHECK(fake);
    CHECK_STATUS(kg_device_open("sm_90a", folder, 0, &device, &error), KG_OK, &error);
    has_compiler = device && device->compiler[0];
    kg_device_close(device);
}

static void opening(const char *name)
{
    for (long n = 1; fail_alloc_sweep(n); n++) {
        struct kg_error error = {0};
        struct kg_device *device;
        fail_alloc_at(n);
        enum kg_status status = kg_device_open(name, folder, 0, &device, &error);
        fail_alloc_never();
        CHECK(is_honest(status, &error));
        CHECK((status == KG_OK) == (device != NULL));
        CHECK(fake->inits == 0);
        kg_device_close(device);
    }
}

static void opening_both(void)
{
    opening("sm_90a");
    opening("cuda:0");
    for (long n = 1; fail_alloc_sweep(n); n++) {
        struct kg_text why = {0};
        fail_alloc_at(n);
        int count = kg_backend_find("cuda", 4)->probe(&why);
        fail_alloc_never();
        CHECK(count == 0 || count == 1);
        kg_text_free(&why);
    }
}

// Each turn compiles another source: nothing comes from the cache.
static void compiling(void)
{
    struct kg_device *device;
    struct kg_error error = {0};
    int round = 0;
    CHECK_STATUS(kg_device_open("sm_90a", folder, 0, &device, &error), KG_OK, &error);
    for (long n = 1; has_compiler && fail_alloc_sweep(n); n++) {
        struct kg_binary binary;
        char text[100];
        snprintf(text, sizeof text, "extern \"C\" __global__ void k_0(int *x) { *x = %d; }",
                 round++);
        struct kg_source source = {.text = text, .entry = "k", .options = "-DA=1"};
        for (int again = 0; again < 2; again++) { // the second finds what the first kept
            fail_alloc_at(n);
            enum kg_status status = device->backend->compile(device, &source, 60, &binary, &error);
            fail_alloc_never();
            CHECK(is_honest(status, &error));
            CHECK((status == KG_OK) == (binary.bytes && binary.ptx && binary.log));
            kg_binary_free(&binary);
        }
        CHECK_STATUS(device->backend->compile(device, &source, 60, &binary, &error), KG_OK, &error);
        CHECK(strstr(binary.ptx, "k_0"));
        kg_binary_free(&binary);
    }
    kg_device_close(device);
}

struct running {
    struct kg_device *device;
    struct kg_kernel *kernel;
};

static enum kg_status launch_in(void *user, void *stream, struct kg_error *error)
{
    const struct running *running = user;
    struct kg_grid grid = {.blocks = {1, 1, 1}, .threads = {1, 1, 1}};
    struct kg_launch one = {.grids = &grid, .grid_count = 1, .stream = stream};
    return running->device->backend->launch(running->kernel, &one, error);
}

static enum kg_status launch(void *user, struct kg_error *error)
{
    return launch_in(user, NULL, error);
}

static enum kg_status load_and_run(struct kg_device *device, struct kg_error *error)
{
    const struct kg_backend *backend = device->backend;
    struct kg_binary ptx = {.bytes = (char[]){"ptx"}, .length = 3};
    struct running running = {.device = device};
    struct kg_graph *graph = NULL;
    enum kg_status status = backend->load(device, &ptx, "k", &running.kernel, error);
    CHECK((status == KG_OK) == (running.kernel != NULL));
    if (!status)
        status = launch(&running, error);
    if (!status) {
        status = backend->record(device, launch, &running, &graph, error);
        CHECK((status == KG_OK) == (graph != NULL));
    }
    backend->forget(graph);
    if (!status) {
        status = backend->record_for(device, NULL, launch_in, &running, &graph, error);
        CHECK((status == KG_OK) == (graph != NULL));
        backend->forget(graph);
    }
    backend->unload(running.kernel);
    return status;
}

static void running(void)
{
    struct kg_device *device;
    struct kg_error error = {0};
    CHECK_STATUS(kg_device_open("cuda:0", folder, 0, &device, &error), KG_OK, &error);
    for (long n = 1; fail_alloc_sweep(n); n++) {
        fail_alloc_at(n);
        enum kg_status status = load_and_run(device, &error);
        fail_alloc_never();
        CHECK(is_honest(status, &error));
        CHECK(fake->modules == 0 && fake->graphs == 0);
    }
    CHECK_STATUS(load_and_run(device, &error), KG_OK, &error);
    kg_device_close(device);
    CHECK(fake->contexts == 0);
}

static void clean_up(void)
{
    folder_remove(folder);
}

TEST_MAIN(prepare, opening_both, compiling, running, clean_up)
