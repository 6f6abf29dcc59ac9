// Loads cubins and launches their functions. Unless the driver is in use already, it loads a cubin
// at the first launch, so that a built kernel can be judged and timed in a fork.

#include "asm/elf_file.h"
#include "device/cuda/cuda_device.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FUNCTIONS 64
#define LOG_BYTES 2048
#define EARLY_VERSION 12030

struct kg_kernel {
    struct kg_cuda_device *cuda;
    void *bytes;
    char *entry;
    pthread_mutex_t lock;  // locked while a thread loads the module
    _Atomic bool is_ready; // the module and its functions are loaded
    void *module;
    int function_count;
    void *functions[MAX_FUNCTIONS]; // ENTRY_0, ENTRY_1, ...
};

// The driver does not get the cubin's length, so its sections are checked first.
static enum kg_status check_cubin(const void *bytes, size_t length, struct kg_error *error)
{
    struct kg_arena arena = {0};
    struct kg_elf elf;
    enum kg_status status = kg_elf_open(bytes, length, &arena, &elf, error);
    if (status)
        kg_error_prefix(error, "loading a kernel");
    kg_arena_free(&arena);
    return status;
}

// Passes cubins as they are; everything else is PTX, which must end in a zero.
static enum kg_status load_module(struct kg_kernel *kernel, struct kg_error *error)
{
    const struct kg_cuda_driver *driver = &kernel->cuda->driver;
    char log[LOG_BYTES] = "";
    int options[] = {KG_CUDA_JIT_LOG, KG_CUDA_JIT_LOG_SIZE};
    void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1)};
    int result = driver->module_load(&kernel->module, kernel->bytes, 2, options, values);
    if (!result)
        return KG_OK;
    kernel->module = NULL;
    struct kg_text doing = {0};
    kg_text_format(&doing, "loading a kernel%s%s", log[0] ? ": " : "", log);
    enum kg_status status = kg_cuda_error(driver, result, kg_text_string(&doing), error);
    kg_text_free(&doing);
    return status;
}

// Allows launches to use all of the device's shared memory and every cluster size. Attributes that
// a device does not support are skipped: a launch that needs them reports the error.
static int prepare_function(const struct kg_cuda_device *cuda, void *function)
{
    const struct kg_cuda_driver *driver = &cuda->driver;
    int fixed = 0;
    int result = driver->function_load ? driver->function_load(function) : 0;
    if (!result)
        result = driver->function_attribute(&fixed, KG_CUDA_FUNCTION_SHARED, function);
    if (result)
        return result;
    int64_t max = cuda->base.facts.shared_bytes - fixed;
    if (max > 0)
        driver->function_set(function, KG_CUDA_FUNCTION_MAX_SHARED, (int)max);
    driver->function_set(function, KG_CUDA_FUNCTION_ANY_CLUSTER, 1);
    return 0;
}

static int find_function(struct kg_kernel *kernel, const char *name)
{
    const struct kg_cuda_driver *driver = &kernel->cuda->driver;
    void *function = NULL;
    int result = driver->module_function(&function, kernel->module, name);
    if (!result)
        result = prepare_function(kernel->cuda, function);
    if (!result)
        kernel->functions[kernel->function_count++] = function;
    return result;
}

// The function of a kernel with a single function may have the kernel's name.
static enum kg_status find_functions(struct kg_kernel *kernel, struct kg_error *error)
{
    const struct kg_cuda_driver *driver = &kernel->cuda->driver;
    const char *entry = kernel->entry;
    int result = 0;
    kernel->function_count = 0;
    while (!result && kernel->function_count < MAX_FUNCTIONS) {
        struct kg_text name = {0};
        kg_text_format(&name, "%s_%d", entry, kernel->function_count);
        if (name.failed)
            return kg_error_memory(error, "a function's name");
        result = find_function(kernel, name.data);
        kg_text_free(&name);
    }
    if (result == KG_CUDA_NOT_FOUND && kernel->function_count == 0)
        result = find_function(kernel, entry);
    if (result && result != KG_CUDA_NOT_FOUND)
        return kg_cuda_error(driver, result, "loading a kernel's functions", error);
    if (kernel->function_count == 0)
        return kg_error_set(error, KG_ERROR_COMPILE,
                            "the kernel has no function %s_0: the functions of a kernel called %s "
                            "are %s_0, %s_1, ... (or one called %s) and extern \"C\"",
                            entry, entry, entry, entry, entry);
    return KG_OK;
}

// The first caller in this process loads the kernel.
static enum kg_status make_ready(struct kg_kernel *kernel, struct kg_error *error)
{
    bool pushed;
    enum kg_status status = kg_cuda_enter(kernel->cuda, &pushed, error);
    if (status)
        return status;
    pthread_mutex_lock(&kernel->lock);
    if (!kernel->is_ready) {
        if (!kernel->module)
            status = load_module(kernel, error);
        if (!status)
            status = find_functions(kernel, error);
        kernel->is_ready = !status;
    }
    pthread_mutex_unlock(&kernel->lock);
    kg_cuda_leave(kernel->cuda, pushed);
    return status;
}

// PTX needs a terminating zero, which does not harm cubins.
static enum kg_status keep_binary(struct kg_kernel *kernel, const struct kg_binary *binary,
                                  const char *entry, struct kg_error *error)
{
    kernel->bytes = calloc(1, binary->length + 1);
    kernel->entry = strdup(entry);
    if (!kernel->bytes || !kernel->entry)
        return kg_error_memory(error, "a kernel");
    if (binary->length)
        memcpy(kernel->bytes, binary->bytes, binary->length);
    if (kg_elf_is(binary->bytes, binary->length))
        return check_cubin(binary->bytes, binary->length, error);
    return KG_OK;
}

enum kg_status kg_cuda_load(struct kg_device *device, const struct kg_binary *binary,
                            const char *entry, struct kg_kernel **kernel, struct kg_error *error)
{
    struct kg_cuda_device *cuda = (struct kg_cuda_device *)device;
    *kernel = NULL;
    struct kg_kernel *loaded = calloc(1, sizeof *loaded);
    if (!loaded)
        return kg_error_memory(error, "a kernel");
    loaded->cuda = cuda;
    pthread_mutex_init(&loaded->lock, NULL);
    enum kg_status status = keep_binary(loaded, binary, entry, error);
    if (!status && kg_cuda_is_live(cuda))
        status = make_ready(loaded, error);
    if (status)
        kg_cuda_unload(loaded);
    else
        *kernel = loaded;
    return status;
}

void kg_cuda_unload(struct kg_kernel *kernel)
{
    bool pushed;
    if (!kernel)
        return;
    struct kg_cuda_device *cuda = kernel->cuda;
    if (kernel->module && kg_cuda_is_live(cuda) && kg_cuda_enter(cuda, &pushed, NULL) == KG_OK) {
        cuda->driver.module_unload(kernel->module);
        kg_cuda_leave(cuda, pushed);
    }
    pthread_mutex_destroy(&kernel->lock);
    free(kernel->bytes);
    free(kernel->entry);
    free(kernel);
}

void *kg_cuda_function_of(const struct kg_kernel *kernel, int n)
{
    bool is_ready = atomic_load_explicit(&kernel->is_ready, memory_order_acquire);
    return is_ready && n < kernel->function_count ? kernel->functions[n] : NULL;
}

bool kg_cuda_is_empty(const struct kg_grid *grid)
{
    return grid->blocks[0] == 0 || grid->blocks[1] == 0 || grid->blocks[2] == 0;
}

// Do the numbers fit the driver's arguments? The driver itself refuses what the device does not
// support.
static bool is_sane(const struct kg_grid *grid)
{
    for (int i = 0; i < 3; i++)
        if (grid->blocks[i] < 0 || grid->blocks[i] > INT_MAX || grid->threads[i] <= 0)
            return false;
    return grid->shared >= 0 && grid->cluster >= 0;
}

static int launch_grid(const struct kg_cuda_driver *driver, void *function,
                       const struct kg_grid *grid, void **arguments, void *stream)
{
    unsigned blocks[3], threads[3];
    for (int i = 0; i < 3; i++) {
        blocks[i] = (unsigned)grid->blocks[i];
        threads[i] = (unsigned)grid->threads[i];
    }
    // Early launch only where it can be part of a graph; otherwise the grid starts after the
    // previous one has ended.
    bool early = grid->early && driver->launch_config && driver->version >= EARLY_VERSION;
    if (grid->cluster <= 1 && !early)
        return driver->launch(function, blocks[0], blocks[1], blocks[2], threads[0], threads[1],
                              threads[2], (unsigned)grid->shared, stream, arguments, NULL);
    struct kg_cuda_attribute attributes[2];
    unsigned count = 0;
    if (grid->cluster > 1)
        attributes[count++] = (struct kg_cuda_attribute){
            .id = KG_CUDA_ATTRIBUTE_CLUSTER, .value.cluster = {(unsigned)grid->cluster, 1, 1}};
    if (early)
        attributes[count++] =
            (struct kg_cuda_attribute){.id = KG_CUDA_ATTRIBUTE_EARLY, .value.early = 1};
    struct kg_cuda_config config = {.blocks = {blocks[0], blocks[1], blocks[2]},
                                    .threads = {threads[0], threads[1], threads[2]},
                                    .shared = (unsigned)grid->shared,
                                    .stream = stream,
                                    .attributes = attributes,
                                    .attribute_count = count};
    return driver->launch_config(&config, function, arguments, NULL);
}

static enum kg_status refuse(const struct kg_grid *grid, int n, int result,
                             const struct kg_cuda_driver *driver, struct kg_error *error)
{
    char doing[256];
    snprintf(doing, sizeof doing,
             "launching grid %d: %lld x %lld x %lld blocks of %d x %d x %d threads, %d bytes of "
             "shared memory, clusters of %d",
             n, (long long)grid->blocks[0], (long long)grid->blocks[1], (long long)grid->blocks[2],
             grid->threads[0], grid->threads[1], grid->threads[2], grid->shared, grid->cluster);
    return kg_cuda_error(driver, result, doing, error);
}

// A kernel that is loaded has a context, so no further check is needed. In a fork of the process
// that loaded it, the driver itself refuses.
enum kg_status kg_cuda_launch(const struct kg_kernel *kernel, const struct kg_launch *launch,
                              struct kg_error *error)
{
    const struct kg_cuda_device *cuda = kernel->cuda;
    const struct kg_cuda_driver *driver = &cuda->driver;
    if (!atomic_load_explicit(&kernel->is_ready, memory_order_acquire)) {
        // Loading changes only the driver's state, not the kernel's.
        enum kg_status loaded = make_ready((struct kg_kernel *)kernel, error);
        if (loaded)
            return loaded;
    }
    if (launch->grid_count > kernel->function_count)
        return kg_error_set(error, KG_ERROR_ARGUMENT, "%d grids, and the kernel has %d functions",
                            launch->grid_count, kernel->function_count);
    bool pushed = false;
    int result = launch->is_entered ? 0 : kg_cuda_switch(cuda, &pushed);
    if (result)
        return kg_cuda_error(driver, result, "launching a kernel", error);
    void *stream = launch->stream ? launch->stream : cuda->context.stream;
    enum kg_status status = KG_OK;
    for (int i = 0; i < launch->grid_count && !status; i++) {
        const struct kg_grid *grid = &launch->grids[i];
        if (!is_sane(grid)) {
            status = refuse(grid, i, KG_CUDA_INVALID_VALUE, driver, error);
        } else if (!kg_cuda_is_empty(grid)) {
            result = launch_grid(driver, kernel->functions[i], grid, launch->arguments, stream);
            if (result)
                status = refuse(grid, i, result, driver, error);
        }
    }
    kg_cuda_leave(cuda, pushed);
    return status;
}
