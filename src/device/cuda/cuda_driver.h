// NVIDIA's driver, opened at run time. The entry points in use are declared here, so that building
// needs no CUDA headers. Numbers and layouts are those of cuda.h; they are part of the driver's
// binary interface and do not change. The interface is that of CUDA 12.0.

#ifndef KG_DEVICE_CUDA_CUDA_DRIVER_H
#define KG_DEVICE_CUDA_CUDA_DRIVER_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t kg_cuda_pointer; // CUdeviceptr

// CUlaunchAttribute and CUlaunchConfig.
struct kg_cuda_attribute {
    int id;
    int reserved;
    union {
        unsigned cluster[3];
        int early; // programmaticStreamSerializationAllowed
        char room[64];
    } value;
};
struct kg_cuda_config {
    unsigned blocks[3];
    unsigned threads[3];
    unsigned shared;
    void *stream;
    struct kg_cuda_attribute *attributes;
    unsigned attribute_count;
};

// CUDA_KERNEL_NODE_PARAMS_v2: the launch of a graph's node.
struct kg_cuda_node {
    void *function;
    unsigned blocks[3];
    unsigned threads[3];
    unsigned shared;
    void **arguments;
    void **extra;
    void *kernel; // this and the next are used if `function` is NULL
    void *context;
};

// Device attributes.
enum {
    KG_CUDA_BLOCK_THREADS = 1,
    KG_CUDA_BLOCK_SHARED = 8,
    KG_CUDA_CLOCK_RATE = 13, // kHz
    KG_CUDA_SM_COUNT = 16,
    KG_CUDA_MEMORY_CLOCK_RATE = 36, // kHz
    KG_CUDA_MEMORY_BUS_WIDTH = 37,  // bits
    KG_CUDA_L2_BYTES = 38,
    KG_CUDA_UNIT_THREADS = 39,
    KG_CUDA_CAPABILITY_MAJOR = 75,
    KG_CUDA_CAPABILITY_MINOR = 76,
    KG_CUDA_UNIT_SHARED_BYTES = 81,
    KG_CUDA_UNIT_REGISTERS = 82,
    KG_CUDA_SHARED_OPT_IN = 97,
    KG_CUDA_UNIT_BLOCKS = 106,
    KG_CUDA_BLOCK_RESERVE = 111,
};
// Function attributes.
enum {
    KG_CUDA_FUNCTION_SHARED = 1,
    KG_CUDA_FUNCTION_MAX_SHARED = 8,
    KG_CUDA_FUNCTION_ANY_CLUSTER = 14,
};
enum { KG_CUDA_ATTRIBUTE_CLUSTER = 4, KG_CUDA_ATTRIBUTE_EARLY = 6 };
enum { KG_CUDA_JIT_LOG = 5, KG_CUDA_JIT_LOG_SIZE = 6 };
enum { KG_CUDA_STREAM_NON_BLOCKING = 1, KG_CUDA_CAPTURE_RELAXED = 2 };
enum { KG_CUDA_CAPTURE_NONE = 0, KG_CUDA_CAPTURE_ACTIVE = 1 }; // the state of a stream
#define KG_CUDA_STREAM_OF_THREAD ((void *)2)                   // another stream for each thread

// Constants of tensor maps.
enum {
    KG_CUDA_MAP_UINT8 = 0,
    KG_CUDA_MAP_UINT16 = 1,
    KG_CUDA_MAP_UINT32 = 2,
    KG_CUDA_MAP_UINT64 = 4,
};
enum {
    KG_CUDA_MAP_NO_SWIZZLE = 0,
    KG_CUDA_MAP_SWIZZLE_32 = 1,
    KG_CUDA_MAP_SWIZZLE_64 = 2,
    KG_CUDA_MAP_SWIZZLE_128 = 3,
};
enum { KG_CUDA_MAP_PLAIN = 0, KG_CUDA_MAP_L2_256 = 3, KG_CUDA_MAP_ZEROS = 0 };

// Results that the code handles; the others are only named.
enum {
    KG_CUDA_INVALID_VALUE = 1,
    KG_CUDA_OUT_OF_MEMORY = 2,
    KG_CUDA_NOT_INITIALIZED = 3,
    KG_CUDA_NO_DEVICE = 100,
    KG_CUDA_NOT_FOUND = 500,
};

// Functions return 0, or one of the driver's error numbers.
struct kg_cuda_driver {
    void *library; // NULL: there is none
    int version;   // of CUDA: 13000 is 13.0

    int (*driver_version)(int *version);
    int (*error_name)(int result, const char **name);
    int (*init)(unsigned flags);
    int (*device_count)(int *count);
    int (*device_get)(int *device, int ordinal);
    int (*device_name)(char *name, int size, int device);
    int (*device_attribute)(int *value, int attribute, int device);
    int (*device_bus)(char *text, int size, int device);
    int (*context_retain)(void **context, int device);
    int (*context_release)(int device);
    int (*context_current)(void **context);
    int (*context_set)(void *context);
    int (*context_push)(void *context);
    int (*context_pop)(void **context);
    int (*context_synchronize)(void);
    int (*module_load)(void **module, const void *image, unsigned count, int *options,
                       void **values);
    int (*module_unload)(void *module);
    int (*module_function)(void **function, void *module, const char *name);
    int (*function_attribute)(int *value, int attribute, void *function);
    int (*function_set)(void *function, int attribute, int value);
    int (*function_load)(void *function); // NULL before CUDA 12.4
    int (*launch)(void *function, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z,
                  unsigned threads_x, unsigned threads_y, unsigned threads_z, unsigned shared,
                  void *stream, void **arguments, void **extra);
    int (*launch_config)(const struct kg_cuda_config *config, void *function, void **arguments,
                         void **extra);
    // Strides begin with the second dimension. NULL in a driver without tensor maps.
    int (*encode_map)(void *map, int type, uint32_t rank, void *address, const uint64_t *shape,
                      const uint64_t *strides, const uint32_t *box, const uint32_t *steps,
                      int interleave, int swizzle, int promotion, int fill);
    int (*allocate)(kg_cuda_pointer *memory, size_t bytes);
    int (*release)(kg_cuda_pointer memory);
    int (*memory_left)(size_t *left, size_t *total);
    int (*copy)(kg_cuda_pointer to, kg_cuda_pointer from, size_t bytes);
    int (*fill)(kg_cuda_pointer memory, unsigned char value, size_t bytes, void *stream);
    int (*event_make)(void **event, unsigned flags);
    int (*event_free)(void *event);
    int (*event_record)(void *event, void *stream);
    int (*event_wait)(void *event);
    int (*event_elapsed)(float *milliseconds, void *from, void *to);
    int (*stream_make)(void **stream, unsigned flags);
    int (*stream_free)(void *stream);
    int (*capture_begin)(void *stream, int mode);
    int (*capture_end)(void *stream, void **graph);
    int (*graph_free)(void *graph);
    int (*graph_prepare)(void **executable, void *graph, unsigned long long flags);
    int (*executable_free)(void *executable);
    int (*executable_launch)(void *executable, void *stream);
    // For renewing a graph; NULL in a driver without it.
    int (*stream_state)(void *stream, int *state);
    int (*stream_priority)(void *stream, int *priority);
    int (*stream_green)(void *stream, void **context); // NULL before CUDA 12.4
    int (*capture_mode)(int *mode); // of this thread: swaps the old and the new mode
    int (*graph_nodes)(void *graph, void **nodes, size_t *count);
    int (*node_read)(void *node, struct kg_cuda_node *launch);
    int (*node_renew)(void *executable, void *node, const struct kg_cuda_node *launch);
};

// Opens the library without initialising it: the process may still fork. KG_ERROR_MISSING says what
// to install. It stays loaded until the process ends.
enum kg_status kg_cuda_driver_open(struct kg_cuda_driver *driver, struct kg_error *error);

// Has anything in this process initialised the driver?
bool kg_cuda_driver_in_use(const struct kg_cuda_driver *driver);

// A result of the driver as text: "<doing>: CUDA_ERROR_ILLEGAL_ADDRESS (...)". `result` is not 0.
// `driver` may have no library.
enum kg_status kg_cuda_error(const struct kg_cuda_driver *driver, int result, const char *doing,
                             struct kg_error *error);

// NVML gives facts that CUDA does not, and does not initialise the driver.
struct kg_nvml {
    void *library; // NULL: there is none, or it does not work
    int (*init)(void);
    int (*driver_version)(char *text, unsigned size);
    int (*device_by_bus)(const char *bus, void **device);
    int (*device_clock)(void *device, int kind, unsigned *megahertz);
};
enum { KG_NVML_CLOCK_SM = 1 };
void kg_nvml_open(struct kg_nvml *nvml);

#endif
