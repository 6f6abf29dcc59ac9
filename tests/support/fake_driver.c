// The fake driver: see fake_driver.h. Device memory is memory, streams and events are numbers, and
// kernels are called k_0 and k_1 (or are the backend's own) and do nothing but be logged; those
// called f_0 to f_3, and generated ones, do what the test says, or copy where KG_FAKE_COPIES is
// set; what is called copy copies, and what is called fault breaks the device, as copying memory
// does that is not the device's. What is launched in a stream that is captured runs when the graph
// is launched; the log has it when it was captured.

#include "support/fake_parts.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOT_INITIALIZED 3
#define INVALID_DEVICE 101
#define NOT_FOUND 500

struct config {
    unsigned blocks[3], threads[3], shared;
    void *stream;
    const struct attribute {
        int id, reserved;
        unsigned cluster[16];
    } * attributes;
    unsigned attribute_count;
};

static void copy_floats(void **arguments);
EXPORT struct fake_driver fake_driver = {.version = 13000,
                                         .devices = 1,
                                         .memory_left = (size_t)1 << 30,
                                         .copy = copy_floats,
                                         .arguments = 4};

struct module {
    bool is_ptx;
    struct function functions[FAULT + 1];
};

static char primary_context;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    uint64_t at;
    size_t bytes;
} held[1024]; // device memory, as far as it fits here
static _Thread_local void *stack[8];
static _Thread_local int depth;

void fake_note(const char *format, ...)
{
    struct fake_driver *fake = &fake_driver;
    char line[256];
    va_list arguments;
    va_start(arguments, format);
    int written = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    size_t length = written < (int)sizeof line ? (size_t)written : sizeof line - 1;
    size_t at = atomic_fetch_add(&fake->log_length, length);
    if (at + length < sizeof fake->log)
        memcpy(fake->log + at, line, length);
}

int fake_gate(const char *name)
{
    if (fake_driver.fail_in && strcmp(fake_driver.fail_in, name) == 0)
        return fake_driver.result;
    if (fake_driver.owner != (int)getpid())
        return NOT_INITIALIZED;
    return fake_driver.broken;
}

EXPORT int cuDriverGetVersion(int *version);
int cuDriverGetVersion(int *version)
{
    *version = fake_driver.version;
    return 0;
}

EXPORT int cuGetErrorName(int result, const char **name);
int cuGetErrorName(int result, const char **name)
{
    *name = result == 4242 ? "CUDA_ERROR_OF_TOMORROW" : NULL;
    return *name ? 0 : 1;
}

EXPORT int cuInit(unsigned flags);
int cuInit(unsigned flags)
{
    if (fake_driver.crash)
        raise(SIGSEGV);
    if (fake_driver.exits && *fake_driver.exits > 0) {
        --*fake_driver.exits;
        _exit(127);
    }
    sleep((unsigned)fake_driver.pause);
    if (fake_driver.fail_in && strcmp(fake_driver.fail_in, "cuInit") == 0)
        return fake_driver.result;
    if (flags || (fake_driver.owner && fake_driver.owner != (int)getpid()))
        return NOT_INITIALIZED;
    fake_driver.owner = (int)getpid();
    fake_driver.inits++;
    return fake_driver.devices ? 0 : 100;
}

// What NVRTC asks for, when it is not told to leave the driver alone.
EXPORT int cuGetExportTable(const void **table, const void *id);
int cuGetExportTable(const void **table, const void *id)
{
    (void)table;
    (void)id;
    return 1;
}

EXPORT int cuDeviceGetCount(int *count);
int cuDeviceGetCount(int *count)
{
    GATE;
    *count = fake_driver.devices;
    return 0;
}

EXPORT int cuDeviceGet(int *device, int ordinal);
int cuDeviceGet(int *device, int ordinal)
{
    GATE;
    *device = ordinal + 70;
    return ordinal < fake_driver.devices ? 0 : INVALID_DEVICE;
}

EXPORT int cuDeviceGetName(char *name, int size, int device);
int cuDeviceGetName(char *name, int size, int device)
{
    GATE;
    snprintf(name, (size_t)size, "Fake GPU %d", device - 70);
    return 0;
}

EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device);
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    GATE;
    static const int values[][2] = {{13, 1980000},  {16, 132}, {36, 2619000}, {37, 5120},
                                    {38, 50 << 20}, {75, 9},   {76, 0},       {97, 227 << 10}};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        if (values[i][0] == attribute) {
            *value = values[i][1];
            return device >= 70 ? 0 : INVALID_DEVICE;
        }
    return 1;
}

EXPORT int cuDeviceGetPCIBusId(char *text, int size, int device);
int cuDeviceGetPCIBusId(char *text, int size, int device)
{
    GATE;
    snprintf(text, (size_t)size, "ffff:ff:%02x.7", (unsigned)device & 0xff);
    return 0;
}

EXPORT int cuDevicePrimaryCtxRetain(void **context, int device);
int cuDevicePrimaryCtxRetain(void **context, int device)
{
    GATE;
    (void)device;
    *context = &primary_context;
    fake_driver.contexts++;
    return 0;
}

EXPORT int cuDevicePrimaryCtxRelease_v2(int device);
int cuDevicePrimaryCtxRelease_v2(int device)
{
    GATE;
    (void)device;
    fake_driver.contexts--;
    return 0;
}

EXPORT int cuCtxGetCurrent(void **context);
int cuCtxGetCurrent(void **context)
{
    GATE;
    fake_driver.switches++;
    *context = stack[depth];
    return 0;
}

EXPORT int cuCtxSetCurrent(void *context);
int cuCtxSetCurrent(void *context)
{
    GATE;
    stack[depth] = context;
    return 0;
}

EXPORT int cuCtxPushCurrent_v2(void *context);
int cuCtxPushCurrent_v2(void *context)
{
    GATE;
    stack[++depth] = context;
    return 0;
}

EXPORT int cuCtxPopCurrent_v2(void **context);
int cuCtxPopCurrent_v2(void **context)
{
    GATE;
    *context = stack[depth--];
    return 0;
}

EXPORT int cuCtxSynchronize(void);
int cuCtxSynchronize(void)
{
    GATE;
    return 0;
}

EXPORT int cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options,
                              void **values);
int cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options,
                       void **values)
{
    GATE;
    if (strcmp(image, "bad ptx") == 0 && count == 2 && options[0] == 5) {
        snprintf(values[0], (size_t)values[1], "line 1: bad");
        return 218;
    }
    struct module *made = calloc(1, sizeof *made); // so that one that is forgotten is a leak
    made->is_ptx = memcmp(image, "\177ELF", 4) != 0;
    for (int i = 0; i <= FAULT; i++)
        made->functions[i].number = i;
    *module = made;
    fake_driver.modules++;
    fake_driver.ptx_modules += made->is_ptx;
    return 0;
}

EXPORT int cuModuleUnload(void *module);
int cuModuleUnload(void *module)
{
    GATE;
    const struct module *old = module;
    fake_driver.stale += fake_is_launched(old->functions);
    fake_driver.ptx_modules -= old->is_ptx;
    free(module);
    fake_driver.modules--;
    return 0;
}

EXPORT int cuModuleGetFunction(void **function, void *module, const char *name);
int cuModuleGetFunction(void **function, void *module, const char *name)
{
    GATE;
    struct function *functions = ((struct module *)module)->functions;
    if (strcmp(name, "kg_digest_0") == 0)
        name = "k_0";
    if (strcmp(name, "copy") == 0 || strcmp(name, "fault") == 0) {
        *function = &functions[name[0] == 'c' ? COPY : FAULT];
        return 0;
    }
    if (strncmp(name, "kg_kernel_", 10) == 0)
        name += 8; // "l_0"
    size_t length = strlen(name);
    bool is_k = name[0] == 'k';
    int number = length == 3 && strchr("kfl", name[0]) && name[1] == '_' ? name[2] - '0' : -1;
    if (number < 0 || number >= (is_k ? K_FUNCTIONS : F_FUNCTIONS))
        return NOT_FOUND;
    *function = &functions[number + (is_k ? 0 : K_FUNCTIONS)];
    return 0;
}

EXPORT int cuFuncGetAttribute(int *value, int attribute, void *function);
int cuFuncGetAttribute(int *value, int attribute, void *function)
{
    GATE;
    *value = attribute == 1 && ((struct function *)function)->number == 1 ? 1024 : 0;
    return 0;
}

EXPORT int cuFuncSetAttribute(void *function, int attribute, int value);
int cuFuncSetAttribute(void *function, int attribute, int value)
{
    GATE;
    fake_note("k_%d: attribute %d = %d\n", ((struct function *)function)->number, attribute, value);
    return 0;
}

// Does device memory begin there, or go on? Of more pieces than are noted, nobody knows.
static bool is_device_memory(const void *address)
{
    bool found = fake_driver.blocks > (int)(sizeof held / sizeof held[0]);
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < sizeof held / sizeof held[0]; i++)
        found = found || (held[i].at && (uintptr_t)address - held[i].at < held[i].bytes);
    pthread_mutex_unlock(&lock);
    return found;
}

bool fake_is_stride(int64_t value)
{
    return value > 0 && value < 1 << 20;
}

// Floats from the first argument to the second, as many as the third says. Behind it stand the
// strides of both, where tensors have any, else an address.
static void copy_floats(void **arguments)
{
    const float *from = *(float **)arguments[0];
    float *to = *(float **)arguments[1];
    int64_t count = *(int64_t *)arguments[2], stride = *(int64_t *)arguments[3];
    if (count > 0 && (!is_device_memory(from) || !is_device_memory(to))) {
        fake_driver.broken = 700;
        return;
    }
    bool strided = fake_is_stride(stride);
    int64_t step = strided ? *(int64_t *)arguments[4] : 1;
    for (int64_t i = 0; i < count; i++)
        to[i * step] = from[i * (strided ? stride : 1)];
}

void fake_run(const struct function *function, void **arguments)
{
    if (function->number == FAULT)
        fake_driver.broken = 700;
    else if (function->number == COPY || (!fake_driver.run && getenv("KG_FAKE_COPIES")))
        copy_floats(arguments);
    else if (fake_driver.run)
        fake_driver.run(function->number - K_FUNCTIONS, arguments);
}

static int launch(const struct config *config, const struct function *function, void **arguments)
{
    const unsigned *b = config->blocks, *t = config->threads;
    bool is_captured;
    int result = fake_ask_captured(config->stream, &is_captured);
    if (result)
        return result;
    if (is_captured) {
        struct launch one = {.function = function, .shared = config->shared};
        memcpy(one.blocks, b, sizeof one.blocks);
        memcpy(one.threads, t, sizeof one.threads);
        one.arguments = arguments;
        result = fake_add_node(config->stream, &one);
    }
    if (result || function->number >= K_FUNCTIONS) {
        if (!is_captured) {
            fake_driver.launches++;
            fake_run(function, arguments);
        }
        return result;
    }
    fake_note("k_%d <<<%ux%ux%u, %ux%ux%u, %u, %d>>>", function->number, b[0], b[1], b[2], t[0],
              t[1], t[2], config->shared, config->stream ? *(int *)config->stream : 0);
    if (config->attribute_count == 1 && config->attributes[0].id == 4)
        fake_note(" cluster %ux%ux%u", config->attributes[0].cluster[0],
                  config->attributes[0].cluster[1], config->attributes[0].cluster[2]);
    if (arguments)
        fake_note(" %d", *(int *)arguments[0]);
    fake_note("\n");
    return 0;
}

EXPORT int cuLaunchKernel(void *function, unsigned bx, unsigned by, unsigned bz, unsigned tx,
                          unsigned ty, unsigned tz, unsigned shared, void *stream, void **arguments,
                          void **extra);
int cuLaunchKernel(void *function, unsigned bx, unsigned by, unsigned bz, unsigned tx, unsigned ty,
                   unsigned tz, unsigned shared, void *stream, void **arguments, void **extra)
{
    GATE;
    (void)extra;
    const struct config config = {
        .blocks = {bx, by, bz}, .threads = {tx, ty, tz}, .shared = shared, .stream = stream};
    return launch(&config, function, arguments);
}

EXPORT int cuLaunchKernelEx(const struct config *config, void *function, void **arguments,
                            void **extra);
int cuLaunchKernelEx(const struct config *config, void *function, void **arguments, void **extra)
{
    GATE;
    (void)extra;
    return launch(config, function, arguments);
}

// The map holds nothing but the address.
EXPORT int cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *address,
                                  const uint64_t *shape, const uint64_t *strides,
                                  const uint32_t *box, const uint32_t *steps, int interleave,
                                  int swizzle, int promotion, int fill);
int cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *address, const uint64_t *shape,
                           const uint64_t *strides, const uint32_t *box, const uint32_t *steps,
                           int interleave, int swizzle, int promotion, int fill)
{
    GATE;
    fake_driver.encodings++;
    if ((uintptr_t)map % 64 != 0)
        return 1;
    fake_note("map type %d at +%u", type, (unsigned)((uintptr_t)address % 256));
    for (uint32_t i = 0; i < rank; i++)
        fake_note(" %llu/%u/%u", (unsigned long long)shape[i], box[i], steps[i]);
    for (uint32_t i = 0; i + 1 < rank; i++)
        fake_note(" stride %llu", (unsigned long long)strides[i]);
    fake_note(", %d %d %d %d\n", interleave, swizzle, promotion, fill);
    memset(map, 0, 128);
    memcpy(map, &address, sizeof address);
    return 0;
}

// Notes what lies at `at` in the place of `before`; 0 is nothing.
static void hold(uint64_t before, uint64_t at, size_t bytes)
{
    size_t i = 0, count = sizeof held / sizeof held[0];
    pthread_mutex_lock(&lock);
    while (i < count && held[i].at != before)
        i++;
    if (i < count) {
        held[i].at = at;
        held[i].bytes = bytes;
    }
    pthread_mutex_unlock(&lock);
}

EXPORT int cuMemAlloc_v2(uint64_t *memory, size_t bytes);
int cuMemAlloc_v2(uint64_t *memory, size_t bytes)
{
    GATE;
    if (bytes > fake_driver.memory_left)
        return OUT_OF_MEMORY;
    *memory = (uint64_t)(uintptr_t)malloc(bytes);
    fake_driver.blocks += *memory != 0;
    hold(0, *memory, bytes);
    return *memory ? 0 : OUT_OF_MEMORY;
}

EXPORT int cuMemFree_v2(uint64_t memory);
int cuMemFree_v2(uint64_t memory)
{
    GATE;
    hold(memory, 0, 0);
    free((void *)(uintptr_t)memory);
    fake_driver.blocks--;
    return 0;
}

EXPORT int cuMemGetInfo_v2(size_t *left, size_t *total);
int cuMemGetInfo_v2(size_t *left, size_t *total)
{
    GATE;
    *left = fake_driver.memory_left;
    *total = (size_t)1 << 30;
    return 0;
}

EXPORT int cuMemcpy(uint64_t to, uint64_t from, size_t bytes);
int cuMemcpy(uint64_t to, uint64_t from, size_t bytes)
{
    GATE;
    memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
    return 0;
}

EXPORT int cuMemsetD8Async(uint64_t memory, unsigned char value, size_t bytes, void *stream);
int cuMemsetD8Async(uint64_t memory, unsigned char value, size_t bytes, void *stream)
{
    GATE;
    (void)stream;
    memset((void *)(uintptr_t)memory, value, bytes);
    fake_note("fill %zu\n", bytes);
    return 0;
}

EXPORT int cuEventCreate(void **event, unsigned flags);
int cuEventCreate(void **event, unsigned flags)
{
    GATE;
    (void)flags;
    *event = malloc(1);
    return *event ? 0 : OUT_OF_MEMORY;
}

EXPORT int cuEventDestroy_v2(void *event);
int cuEventDestroy_v2(void *event)
{
    GATE;
    free(event);
    return 0;
}

EXPORT int cuEventRecord(void *event, void *stream);
int cuEventRecord(void *event, void *stream)
{
    GATE;
    return event && !stream ? 0 : 1;
}

EXPORT int cuEventSynchronize(void *event);
int cuEventSynchronize(void *event)
{
    GATE;
    return event ? 0 : 1;
}

EXPORT int cuEventElapsedTime(float *milliseconds, void *from, void *to);
int cuEventElapsedTime(float *milliseconds, void *from, void *to)
{
    GATE;
    *milliseconds = 1.5f;
    return from && to && from != to ? 0 : 1;
}
