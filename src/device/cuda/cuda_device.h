// Declarations shared by the files of the CUDA backend: NVIDIA GPUs, present or only described.
//
// Compiling needs only NVRTC; running needs the driver. Both are opened at run time. A fork cannot
// use a driver that its parent has used, and candidates run in forks. A device that is only opened,
// described and compiled for therefore never initialises the driver in its own process; the first
// load, allocation or copy does.

#ifndef KG_DEVICE_CUDA_CUDA_DEVICE_H
#define KG_DEVICE_CUDA_CUDA_DEVICE_H

#include "device/cuda/cuda_driver.h"
#include "device/cuda/nvrtc_library.h"
#include "device/device.h"

#include <pthread.h>
#include <stdatomic.h>

// The compiler, as found when the device was opened. If it is not usable, every compilation returns
// `status` and `why`.
struct kg_cuda_compiler {
    struct kg_nvrtc nvrtc;
    enum kg_status status;
    char why[1024];
};

// The resources of this process on the device. The context is the device's primary one, which
// PyTorch and the CUDA runtime use too, so that memory and streams are shared with them.
struct kg_cuda_context {
    pthread_mutex_t lock; // locked while a thread initialises the driver
    _Atomic int owner;    // the process that initialised it; 0: none
    int device;
    void *handle;
    // Allocated when first needed.
    kg_cuda_pointer flush_memory;
    size_t flush_bytes;
    struct kg_kernel *digest;
    kg_cuda_pointer digest_sum; // eight bytes that the checksum kernel adds to
    void *events[2];            // before and after what is timed
    void *stream;               // replaces the NULL stream while a graph is recorded
    struct kg_nvml nvml;        // for the clock rate
    void *nvml_device;
    bool nvml_asked;
};

// What an encoded map depends on. Empty slots have rank 0, which no map has.
struct kg_cuda_map_key {
    uint64_t address;
    int64_t shape[KG_MAX_MAP_RANK], stride[KG_MAX_MAP_RANK];
    int box[KG_MAX_MAP_RANK];
    int element, swizzle, rank;
};
#define KG_CUDA_MAP_WAYS 4
struct kg_cuda_maps {
    _Atomic bool is_busy; // a thread looks into it; nobody waits
    struct kg_cuda_kept_map {
        struct kg_cuda_map_key key;
        uint64_t words[16];
    } kept[32][KG_CUDA_MAP_WAYS]; // by the key's hash; the last used comes first
};

struct kg_cuda_device {
    struct kg_device base;
    int ordinal; // -1: only described, not present
    struct kg_cuda_compiler compiler;
    struct kg_cuda_driver driver;
    struct kg_cuda_context context;
    struct kg_cuda_maps maps;
};

extern const struct kg_backend kg_cuda_backend;

// "sm_90a", "sm_80": a GPU that is not present. Its numbers come from the table of products.
// KG_ERROR_ARGUMENT when no such architecture is known.
enum kg_status kg_cuda_open_described(const char *name, const char *cache,
                                      struct kg_device **device, struct kg_error *error);

// cuda_facts.c: facts from the tables.
// The facts of the first product of the architecture `name` in the table: H100 SXM for sm_90.
enum kg_status kg_cuda_describe(const char *name, struct kg_device_facts *facts,
                                struct kg_error *error);
// Completes facts from `facts`' name, isa, units and clock. Values that no table has stay 0.
void kg_cuda_complete_facts(struct kg_device_facts *facts);
// "sm_90a": the name with the suffix that allows every instruction of the architecture.
void kg_cuda_format_isa(int sm, char *isa, size_t size);

// cuda_probe.c: what the driver reports, queried in a separate process unless this process uses the
// driver already.
struct kg_cuda_report {
    int count; // devices that the driver sees
    // Of the requested device, if ordinal < count.
    struct kg_device_facts facts;
    char driver[128]; // "580.95.05 / CUDA 13.0"
};
enum kg_status kg_cuda_ask(const struct kg_cuda_driver *driver, int ordinal,
                           struct kg_cuda_report *report, struct kg_error *error);

// cuda_compile.c
void kg_cuda_compiler_find(struct kg_cuda_device *cuda, int max_major);
enum kg_status kg_cuda_compile(struct kg_device *device, const struct kg_source *source,
                               double time_limit, struct kg_binary *binary, struct kg_error *error);

// cuda_code.c: fills in binary->code.
void kg_cuda_hash_code(struct kg_binary *binary);

// cuda_context.c
// Makes the device's context current and initialises the driver if necessary. After success
// kg_cuda_leave(cuda, *pushed) restores the previous context.
enum kg_status kg_cuda_enter(struct kg_cuda_device *cuda, bool *pushed, struct kg_error *error);
// The error for a device that cannot run anything.
enum kg_status kg_cuda_refuse_described(const struct kg_cuda_device *cuda, struct kg_error *error);
// As kg_cuda_enter, if the driver is known to be initialised; returns the driver's result.
int kg_cuda_switch(const struct kg_cuda_device *cuda, bool *pushed);
void kg_cuda_leave(const struct kg_cuda_device *cuda, bool pushed);
// For kg_backend: kg_cuda_enter, without asking the system which process this is. In a fork of one
// that has used the driver, the driver refuses.
enum kg_status kg_cuda_begin(struct kg_device *device, bool *pushed, struct kg_error *error);
void kg_cuda_end(struct kg_device *device, bool pushed);
// Does this process have a context? For calls that must not make one.
bool kg_cuda_is_live(struct kg_cuda_device *cuda);
// False once anything in this process has used the driver.
bool kg_cuda_may_fork(struct kg_device *device);
// Releases this process's resources; the device may be used again.
void kg_cuda_context_drop(struct kg_cuda_device *cuda);

// cuda_kernel.c
enum kg_status kg_cuda_load(struct kg_device *device, const struct kg_binary *binary,
                            const char *entry, struct kg_kernel **kernel, struct kg_error *error);
void kg_cuda_unload(struct kg_kernel *kernel);
enum kg_status kg_cuda_launch(const struct kg_kernel *kernel, const struct kg_launch *launch,
                              struct kg_error *error);
// The function of the kernel's n-th grid; NULL: there is none, or it was not launched yet.
void *kg_cuda_function_of(const struct kg_kernel *kernel, int n);
// Does the grid run no block?
bool kg_cuda_is_empty(const struct kg_grid *grid);

// cuda_map.c
enum kg_status kg_cuda_encode(struct kg_device *device, const struct kg_map *map,
                              const void *address, struct kg_encoded_map *encoded,
                              struct kg_error *error);

// cuda_graph.c
enum kg_status kg_cuda_record(struct kg_device *device,
                              enum kg_status (*run)(void *user, struct kg_error *error), void *user,
                              struct kg_graph **graph, struct kg_error *error);
enum kg_status kg_cuda_record_for(struct kg_device *device, void *stream, kg_stream_run *run,
                                  void *user, struct kg_graph **graph, struct kg_error *error);
enum kg_status kg_cuda_renew(struct kg_graph *graph, const struct kg_kernel *kernel,
                             const struct kg_launch *launch, struct kg_error *error);
bool kg_cuda_may_replay(struct kg_device *device, void *stream);
enum kg_status kg_cuda_replay(struct kg_graph *graph, void *stream, struct kg_error *error);
void kg_cuda_forget(struct kg_graph *graph);

// cuda_memory.c
enum kg_status kg_cuda_allocate(struct kg_device *device, size_t bytes, void **memory,
                                struct kg_error *error);
void kg_cuda_release(struct kg_device *device, void *memory);
enum kg_status kg_cuda_copy(struct kg_device *device, void *to, const void *from, size_t bytes,
                            struct kg_error *error);
enum kg_status kg_cuda_fill(struct kg_device *device, void *memory, unsigned char value,
                            size_t bytes, struct kg_error *error);

// cuda_digest.c
void kg_cuda_compile_digest(struct kg_device *device);
enum kg_status kg_cuda_digest(struct kg_device *device, const void *memory, size_t bytes,
                              uint64_t *sum, struct kg_error *error);

// cuda_timing.c
double kg_cuda_now(struct kg_device *device);
enum kg_status kg_cuda_start(struct kg_device *device, struct kg_error *error);
enum kg_status kg_cuda_stop(struct kg_device *device, double *seconds, struct kg_error *error);
void kg_cuda_flush(struct kg_device *device);
double kg_cuda_clock(struct kg_device *device);

#endif
