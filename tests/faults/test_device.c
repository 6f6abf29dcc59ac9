// Opening the host, compiling, loading and launching with every allocation failing in turn. The
// compiler is a script that hands out one object made beforehand, so that thousands of compilations
// cost nothing.

#include "device/device.h"
#include "faults/fail_alloc.h"
#include "support/folder.h"
#include "test.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/kernelgen-faults-XXXXXX";
static char script[64];

static const char text[] =
    "#include <stdint.h>\n"
    "struct kg_host_call { void *const *tensor; const int64_t *size; const int64_t *stride;\n"
    "    char *shared; char *scratch; int thread; int threads; };\n"
    "int64_t k_items(const struct kg_host_call *c, int phase) { return phase ? -1 : c->size[0]; }\n"
    "int64_t k_bytes(const struct kg_host_call *c, int kind) { (void)c; return kind == 2 ? 1 : 9; "
    "}\n"
    "void k_run(const struct kg_host_call *c, int phase, int64_t begin, int64_t end)\n"
    "{ (void)phase; for (int64_t i = begin; i < end; i++) ((int *)c->tensor[0])[i] = (int)i; }\n";

static bool is_honest(enum kg_status status, const struct kg_error *error)
{
    // What cannot be looked for without memory counts as absent.
    return status == KG_OK ||
           ((status == KG_ERROR_MEMORY || status == KG_ERROR_IO || status == KG_ERROR_MISSING) &&
            error->text[0]);
}

// Launches once and checks what came of it.
static enum kg_status launch(struct kg_device *device, const struct kg_binary *binary,
                             struct kg_error *error)
{
    struct kg_kernel *kernel;
    enum kg_status status = device->backend->load(device, binary, "k", &kernel, error);
    CHECK((status == KG_OK) == (kernel != NULL));
    if (status)
        return status;
    int values[50] = {0};
    void *tensors[] = {values};
    int64_t size = 50;
    struct kg_launch arguments = {.tensors = tensors, .sizes = &size};
    status = device->backend->launch(kernel, &arguments, error);
    CHECK(status != KG_OK || (values[1] == 1 && values[49] == 49));
    device->backend->unload(kernel);
    return status;
}

static void prepare(void)
{
    CHECK(folder_make(folder));
    struct kg_device *device;
    struct kg_binary binary = {0};
    struct kg_error error;
    struct kg_source source = {.text = text, .entry = "k", .options = ""};
    CHECK_STATUS(kg_device_open("host", folder, 3, &device, &error), KG_OK, &error);
    CHECK_STATUS(device->backend->compile(device, &source, 60, &binary, &error), KG_OK, &error);
    snprintf(script, sizeof script, "%s/compiler", folder);
    FILE *file = fopen(script, "w");
    fprintf(file,
            "#!/bin/sh\ncase \"$*\" in\n*--version*) echo fake;;\n*/dev/null*) ;;\n"
            "*) cp %s kernel.so;;\nesac\n",
            binary.path);
    fclose(file);
    chmod(script, 0700);
    setenv("CC", script, 1);
    kg_binary_free(&binary);
    kg_device_close(device);
    CHECK_STATUS(kg_device_open("host", folder, 3, &device, &error), KG_OK, &error); // keeps facts
    kg_device_close(device);
}

static void opening(void)
{
    for (long n = 1; fail_alloc_sweep(n); n++) {
        struct kg_error error = {0};
        struct kg_device *device;
        fail_alloc_at(n);
        enum kg_status status = kg_device_open("host", folder, 3, &device, &error);
        fail_alloc_never();
        CHECK(is_honest(status, &error));
        CHECK((status == KG_OK) == (device != NULL));
        kg_device_close(device);
    }
}

// Each turn compiles another source: nothing comes from the cache.
static void compiling_and_launching(void)
{
    int round = 0;
    for (long n = 1; fail_alloc_sweep(n); n++) {
        struct kg_error error = {0};
        struct kg_device *device;
        struct kg_binary binary;
        char options[32];
        snprintf(options, sizeof options, "-DROUND=%d", round++);
        struct kg_source source = {.text = text, .entry = "k", .options = options};
        CHECK_STATUS(kg_device_open("host", folder, 3, &device, &error), KG_OK, &error);
        fail_alloc_at(n);
        enum kg_status status = device->backend->compile(device, &source, 60, &binary, &error);
        CHECK((status == KG_OK) == (binary.path != NULL));
        if (!status)
            status = launch(device, &binary, &error);
        fail_alloc_never();
        CHECK(is_honest(status, &error));
        kg_binary_free(&binary);
        // Nothing half-made is in the way of the next one.
        CHECK_STATUS(device->backend->compile(device, &source, 60, &binary, &error), KG_OK, &error);
        CHECK_STATUS(launch(device, &binary, &error), KG_OK, &error);
        kg_binary_free(&binary);
        kg_device_close(device);
    }
}

static void clean_up(void)
{
    folder_remove(folder);
}

TEST_MAIN(prepare, opening, compiling_and_launching, clean_up)
