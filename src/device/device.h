// The backend contract: what KernelGen needs of a kind of device. One const vtable per backend,
// listed in device/registry.c.

#ifndef KG_DEVICE_DEVICE_H
#define KG_DEVICE_DEVICE_H

#include "analyze/roofline.h"
#include "base/hash.h"

#include <stdatomic.h>

struct kg_backend;

// A device that was opened. Backends embed it as their first member.
struct kg_device {
    const struct kg_backend *backend;
    struct kg_device_facts facts;
    char name[32];         // what it was opened as: "cuda:0"
    char compiler[256];    // "gcc 12.2.0 -O3 -march=native ...": part of every record's key
    char driver[128];      // "" on the host
    char cache[1024];      // folder of compiled objects
    bool cache_is_private; // a temporary folder: see device/objects.h
    int cache_owner;       // the process that removes it
    char *_Atomic spare;   // where what the cache had no room for is built: see device/objects.h
    bool told_of_cache;    // that it is not what is used: kg_session_tell_of_cache
    bool is_described;     // not at hand: kernels are compiled for it, and nothing runs
    // Compilers are killed soon after this becomes nonzero. Set by whoever opened the device; may
    // be NULL.
    const volatile int *cancel;
    _Atomic double seen_bandwidth; // the highest that was noted, 0: none
};

// Source on its way to the compiler.
struct kg_source {
    const char *text;
    const char *entry;   // name of the kernel: see host/host_abi.h for what it must export
    const char *options; // added to the device's own; "" for none
};

#define KG_MOST_CODES 4

// What the compiler made. Owned by whoever received it; freed with kg_binary_free.
struct kg_binary {
    char *path;  // host: the shared object in the cache; NULL elsewhere
    void *bytes; // CUDA: the cubin, or PTX that the driver is to assemble
    size_t length;
    char *ptx;           // CUDA: what the cubin was assembled from; NULL elsewhere
    char *log;           // what the compiler said, "" when nothing
    struct kg_hash hash; // of source + compiler + options
    // CUDA: of the instructions of the functions ENTRY_0, ENTRY_1, ...: equal ones run alike when
    // they are launched alike. 0: there is none, or it is not known.
    struct kg_hash code[KG_MOST_CODES];
    bool from_cache;
    // Compiling took so long, now or before it came from the cache; 0: it is not known.
    double seconds;
};

struct kg_kernel; // loaded and ready to run; opaque outside its backend
struct kg_graph;  // recorded launches; likewise
// Launches in this stream.
typedef enum kg_status kg_stream_run(void *user, void *stream, struct kg_error *error);

// One grid of blocks of threads: the n-th grid of a kernel called NAME runs its function NAME_n; a
// kernel with one function may be called like it.
struct kg_grid {
    int64_t blocks[3]; // none at all, where one of them is 0, is legal
    int threads[3];
    int shared;  // bytes of dynamic shared memory of a block
    int cluster; // blocks of a cluster, along x; 0 or 1: none
    bool early;  // may start before the grid before it ends: its code waits for that
};

// A tensor as CUDA's tensor maps see it: kernels copy a box of it with one instruction, and what
// lies outside `shape` reads as zeros. Dimensions go outwards from that of neighbouring elements.
#define KG_MAX_MAPS 5
#define KG_MAX_MAP_RANK 5
enum { KG_MAP_SCRATCH = -1 };
struct kg_map {
    int tensor;    // its id, or KG_MAP_SCRATCH: the kernel's own memory
    size_t offset; // bytes from where that begins
    int element;   // bytes: 1, 2, 4 or 8
    int rank;
    int64_t shape[KG_MAX_MAP_RANK];  // elements
    int64_t stride[KG_MAX_MAP_RANK]; // bytes; the first is that of neighbours and not looked at
    int box[KG_MAX_MAP_RANK];        // elements that are copied at once
    int swizzle;                     // bytes: 0, 32, 64 or 128
};
// What the device makes of it. Kernels take it by value.
struct kg_encoded_map {
    _Alignas(64) uint64_t words[16];
};

// Arguments of one execution. All arrays belong to the caller.
struct kg_launch {
    void *const *tensors;   // base pointers, in the kernel's own order
    const int64_t *sizes;   // by kg_size id
    const int64_t *strides; // KG_MAX_RANK per tensor, in elements
    // Where backend->runs_grids, instead of the three above: the grids of the kernel, in order, and
    // where the values of its functions' arguments stand; all its functions take the same.
    const struct kg_grid *grids;
    int grid_count;
    void **arguments;
    void *stream; // CUDA: CUstream; NULL on the host
};

struct kg_backend {
    const char *name;   // "host", "cuda"
    bool shares_memory; // what `allocate` gives may be read and written like any memory
    bool runs_grids;    // launches say how many blocks of threads run
    // Kernels run beside the CPU's work: compilers neither disturb what is timed nor wait for it.
    bool computes_apart;
    // Starting to use the device takes long, and a fault leaves it useless to its process: one
    // process serves many candidates, instead of a fork for each.
    bool needs_worker;
    // Number of devices at hand, 0 when none. `why` says what is missing then.
    int (*probe)(struct kg_text *why);
    // `cache` is the folder for compiled objects. KG_ERROR_MISSING says why there is no such
    // device.
    enum kg_status (*open)(int ordinal, const char *cache, int threads, struct kg_device **device,
                           struct kg_error *error);
    void (*close)(struct kg_device *device);
    enum kg_status (*compile)(struct kg_device *device, const struct kg_source *source,
                              double time_limit, struct kg_binary *binary, struct kg_error *error);
    enum kg_status (*load)(struct kg_device *device, const struct kg_binary *binary,
                           const char *entry, struct kg_kernel **kernel, struct kg_error *error);
    void (*unload)(struct kg_kernel *kernel);
    enum kg_status (*launch)(const struct kg_kernel *kernel, const struct kg_launch *launch,
                             struct kg_error *error);
    // The map of what begins at `address`; KG_ERROR_ARGUMENT says which rule of the device it
    // breaks. NULL: the backend has no maps.
    enum kg_status (*encode)(struct kg_device *device, const struct kg_map *map,
                             const void *address, struct kg_encoded_map *encoded,
                             struct kg_error *error);
    enum kg_status (*allocate)(struct kg_device *device, size_t bytes, void **memory,
                               struct kg_error *error);
    void (*release)(struct kg_device *device, void *memory);
    enum kg_status (*copy)(struct kg_device *device, void *to, const void *from, size_t bytes,
                           struct kg_error *error); // either side may be host memory
    // Sets every byte. What is launched on the NULL stream afterwards finds it done.
    enum kg_status (*fill)(struct kg_device *device, void *memory, unsigned char value,
                           size_t bytes, struct kg_error *error);
    // Goes on from `*sum`: equal bytes give equal sums, on devices of one kind. Tells accidents,
    // not attacks. `memory` lies at a multiple of 16 bytes from where `allocate` said.
    enum kg_status (*digest)(struct kg_device *device, const void *memory, size_t bytes,
                             uint64_t *sum, struct kg_error *error);
    // Compiles, into the cache, what `digest` needs: whoever has a core to spare may call it ahead,
    // in any thread. NULL: nothing to compile.
    void (*compile_own)(struct kg_device *device);
    // Can a fork of this process use the device? NULL: always.
    bool (*may_fork)(struct kg_device *device);
    // A monotonic clock in seconds, read when the work given to the device is done.
    double (*now)(struct kg_device *device);
    // What is launched between the two takes `*seconds` by the device's own clock, on the NULL
    // stream. `stop` waits, and says what went wrong in the meantime.
    enum kg_status (*start)(struct kg_device *device, struct kg_error *error);
    enum kg_status (*stop)(struct kg_device *device, double *seconds, struct kg_error *error);
    // Makes the next read miss the last-level cache.
    void (*flush)(struct kg_device *device);
    // Hz the device runs at right now; 0 when it cannot be told. Read, never set.
    double (*clock)(struct kg_device *device);
    // Where a sequence of launches can be replayed as one; else NULL. `record` calls `run`, whose
    // launches on the NULL stream are recorded and do not happen; no other thread launches
    // meanwhile. Arguments are kept by value. A graph is forgotten before its kernels are unloaded.
    enum kg_status (*record)(struct kg_device *device,
                             enum kg_status (*run)(void *user, struct kg_error *error), void *user,
                             struct kg_graph **graph, struct kg_error *error);
    // Where a graph's launches can be renewed; else NULL, like the two below. As `record`, of what
    // `run` launches in the stream that it is given; other threads may launch meanwhile, even
    // record. KG_ERROR_UNSUPPORTED: replayed in `stream`, it would not run as launched there.
    enum kg_status (*record_for)(struct kg_device *device, void *stream, kg_stream_run *run,
                                 void *user, struct kg_graph **graph, struct kg_error *error);
    // Gives the graph's launch of this kernel these arguments, of which replays under way see
    // nothing. KG_ERROR_UNSUPPORTED: it was recorded with other grids. After a failure, and while
    // not all kernels are renewed, arguments are mixed: the graph must not be replayed.
    enum kg_status (*renew)(struct kg_graph *graph, const struct kg_kernel *kernel,
                            const struct kg_launch *launch, struct kg_error *error);
    // False while the stream is captured, or if nobody knows: only launches may be captured.
    bool (*may_replay)(struct kg_device *device, void *stream);
    // Replays of one graph come one after the other, whatever their streams.
    enum kg_status (*replay)(struct kg_graph *graph, void *stream, struct kg_error *error);
    void (*forget)(struct kg_graph *graph);
};

void kg_binary_free(struct kg_binary *binary);

extern const struct kg_backend *const kg_backends[]; // NULL at the end
const struct kg_backend *kg_backend_find(const char *name, size_t length);

// "host", "cuda:0"; "sm_90a": a GPU that is not at hand, for which everything but running works.
// Unknown names give KG_ERROR_ARGUMENT with what exists; a device that is not
// there gives KG_ERROR_MISSING and says what is lacking.
enum kg_status kg_device_open(const char *name, const char *cache, int threads,
                              struct kg_device **device, struct kg_error *error);
void kg_device_close(struct kg_device *device);

// A kernel was seen to move this many bytes of memory per second. The facts stay as they are while
// the device is open; a backend whose bandwidth is measured may know better next time.
void kg_device_note_bandwidth(struct kg_device *device, double rate);

#endif
