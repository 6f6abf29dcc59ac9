// The backend contract: what KernelGen needs from a kind of device. Each backend is one const
// vtable, listed in device/registry.c.

#ifndef KG_DEVICE_DEVICE_H
#define KG_DEVICE_DEVICE_H

#include "analyze/roofline.h"
#include "base/hash.h"

#include <stdatomic.h>

struct kg_backend;
struct kg_sanitizer;

// An open device. Backends embed it as their first member.
struct kg_device {
    const struct kg_backend *backend;
    struct kg_device_facts facts;
    char name[32];         // the name it was opened with: "cuda:0"
    char compiler[256];    // "gcc 12.2.0 -O3 -march=native ...": part of every record's key
    char driver[128];      // "" on the host
    char cache[1024];      // folder of compiled objects
    bool cache_is_private; // a temporary folder: see device/objects.h
    int cache_owner;       // the process that removes it
    // Folder for builds that the cache has no room for: see device/objects.h.
    char *_Atomic spare;
    // The user was told that another cache folder is used: kg_session_tell_of_cache.
    bool told_of_cache;
    bool is_described; // not present: kernels can be compiled for it, but not run
    // Compilers are killed soon after this becomes nonzero. Set by whoever opened the device; may
    // be NULL.
    const volatile int *cancel;
    // The highest bandwidth that kernels reached, 0: none was noted.
    _Atomic double seen_bandwidth;
};

// A source to compile.
struct kg_source {
    const char *text;
    const char *entry;   // name of the kernel: see host/host_abi.h for what it must export
    const char *options; // added to the device's own; "" for none
};

#define KG_MAX_CODES 4

// The output of the compiler. The receiver owns it and frees it with kg_binary_free.
struct kg_binary {
    char *path;  // host: the shared object in the cache; NULL elsewhere
    void *bytes; // CUDA: the cubin, or PTX that the driver will assemble
    size_t length;
    char *ptx;           // CUDA: what the cubin was assembled from; NULL elsewhere
    char *log;           // the compiler's messages, "" if there are none
    struct kg_hash hash; // of source + compiler + options
    // CUDA: of the instructions of the functions ENTRY_0, ENTRY_1, ...: functions with equal hashes
    // run the same code if their launches are equal. 0: no such function, or unknown.
    struct kg_hash code[KG_MAX_CODES];
    bool from_cache;
    // Time of the compilation, even if the result comes from the cache. 0: unknown.
    double seconds;
};

struct kg_kernel; // loaded and ready to run; opaque outside its backend
struct kg_graph;  // recorded launches; likewise
// Launches kernels in this stream.
typedef enum kg_status kg_stream_run(void *user, void *stream, struct kg_error *error);

// One grid of thread blocks. The n-th grid of a kernel called NAME runs its function NAME_n; a
// kernel with a single function may call it NAME.
struct kg_grid {
    int64_t blocks[3]; // may be 0 in any dimension: then nothing runs
    int threads[3];
    int shared;  // bytes of dynamic shared memory of a block
    int cluster; // blocks of a cluster, along x; 0 or 1: none
    bool early;  // may start before the previous grid ends; its code waits for that end
};

// A tensor as CUDA's tensor maps describe it: a kernel copies a box of it with one instruction, and
// elements outside `shape` read as zeros. The first dimension is that of adjacent elements.
#define KG_MAX_MAPS 7
#define KG_MAX_MAP_RANK 5
enum { KG_MAP_SCRATCH = -1 };
struct kg_map {
    int tensor;    // its id, or KG_MAP_SCRATCH: the kernel's workspace
    size_t offset; // bytes from the beginning of the tensor or workspace
    int element;   // bytes: 1, 2, 4 or 8
    int rank;
    int64_t shape[KG_MAX_MAP_RANK];  // elements
    int64_t stride[KG_MAX_MAP_RANK]; // bytes; the first, of adjacent elements, is ignored
    int box[KG_MAX_MAP_RANK];        // elements of one copy
    int swizzle;                     // bytes: 0, 32, 64 or 128
};
// A tensor map as the device encodes it. Kernels take it by value.
struct kg_encoded_map {
    _Alignas(64) uint64_t words[16];
};

// Arguments of one execution. All arrays belong to the caller.
struct kg_launch {
    void *const *tensors;   // base pointers, in the order in which the kernel takes them
    const int64_t *sizes;   // by kg_size id
    const int64_t *strides; // KG_MAX_RANK per tensor, in elements
    // With backend->runs_grids, these replace the three arrays above: the kernel's grids, in order,
    // and pointers to the argument values of its functions, which all take the same arguments.
    const struct kg_grid *grids;
    int grid_count;
    void **arguments;
    void *stream;    // CUDA: CUstream; NULL on the host
    bool is_entered; // between backend->enter and leave
};

struct kg_backend {
    const char *name;   // "host", "cuda"
    bool shares_memory; // the CPU may read and write what `allocate` returns
    bool is_single;     // there is one such device, which is called like the backend
    bool runs_grids;    // launches give the numbers of thread blocks
    int dlpack;         // DLPack's device type
    // Kernels run beside the CPU's work: compilers neither disturb the timing nor wait for kernels.
    bool computes_apart;
    // Opening the device takes long, and a fault makes it unusable for its process. One long-lived
    // process therefore serves many candidates, instead of a fork for each.
    bool needs_worker;
    // Number of devices that are present, 0 when none. Then `why` says what is missing.
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
    // For backends whose launches do not say how they are divided; else NULL. The ranges of items
    // that threads take in the kernel's largest phase; 0: unknown. Nothing runs.
    int64_t (*ranges)(const struct kg_kernel *kernel, const struct kg_launch *launch);
    // Seconds that a launch takes which has nothing to do, measured; `rested`: after a pause in
    // which threads fall asleep. NULL: it cannot be measured.
    double (*idle_launch)(struct kg_device *device, bool rested);
    // Makes the device the thread's current one, for launches and maps that follow each other;
    // `leave` restores what it was before. NULL, like the next one: there is no such state.
    enum kg_status (*enter)(struct kg_device *device, bool *changed, struct kg_error *error);
    void (*leave)(struct kg_device *device, bool changed);
    // For backends whose kernels run in this process; else NULL, like the next one. Notes the state
    // that kernels must leave as they found it: of the threads that run them, and of the process.
    enum kg_status (*watch)(struct kg_device *device, struct kg_error *error);
    // What kernels changed in it since, which is then restored: "the signals that are blocked".
    // NULL: nothing.
    const char *(*changed)(struct kg_device *device);
    // Encodes the map of a tensor that begins at `address`, between `enter` and `leave`;
    // KG_ERROR_ARGUMENT names the rule of the device that it breaks. NULL: the backend has no maps.
    enum kg_status (*encode)(struct kg_device *device, const struct kg_map *map,
                             const void *address, struct kg_encoded_map *encoded,
                             struct kg_error *error);
    enum kg_status (*allocate)(struct kg_device *device, size_t bytes, void **memory,
                               struct kg_error *error);
    void (*release)(struct kg_device *device, void *memory);
    enum kg_status (*copy)(struct kg_device *device, void *to, const void *from, size_t bytes,
                           struct kg_error *error); // source and destination may be host memory
    // Sets every byte. Later launches on the NULL stream see the result.
    enum kg_status (*fill)(struct kg_device *device, void *memory, unsigned char value,
                           size_t bytes, struct kg_error *error);
    // Continues a checksum from `*sum`. Equal bytes give equal sums on devices of one kind, if
    // their addresses have the same remainder modulo 16. It detects accidents, not attacks.
    enum kg_status (*digest)(struct kg_device *device, const void *memory, size_t bytes,
                             uint64_t *sum, struct kg_error *error);
    // Compiles the kernel of `digest` into the cache, so that a thread with nothing to do can do it
    // ahead. Thread-safe. NULL: nothing to compile.
    void (*compile_own)(struct kg_device *device);
    // Can a fork of this process use the device? NULL: always.
    bool (*may_fork)(struct kg_device *device);
    // A monotonic clock in seconds, read after all work given to the device has finished.
    double (*now)(struct kg_device *device);
    // The launches on the NULL stream between the two calls take `*seconds` by the device's own
    // clock. `stop` waits, and reports errors that occurred meanwhile.
    enum kg_status (*start)(struct kg_device *device, struct kg_error *error);
    enum kg_status (*stop)(struct kg_device *device, double *seconds, struct kg_error *error);
    // Makes the next read miss the last-level cache.
    void (*flush)(struct kg_device *device);
    // The current clock rate in Hz; 0 if unknown. It is read, never set.
    double (*clock)(struct kg_device *device);
    // Tools that watch kernels: device/sanitizer.h.
    const struct kg_sanitizer *sanitizers;
    // For backends that can replay a sequence of launches as one; else NULL. `record` calls `run`,
    // whose launches on the NULL stream are recorded and not executed; no other thread may launch
    // meanwhile. Arguments are copied. A graph must be freed before its kernels are unloaded.
    enum kg_status (*record)(struct kg_device *device,
                             enum kg_status (*run)(void *user, struct kg_error *error), void *user,
                             struct kg_graph **graph, struct kg_error *error);
    // For backends that can change the arguments of a graph's launches; else NULL, like the two
    // functions below. Works like `record` on the launches of `run` in the stream that it receives;
    // other threads may launch meanwhile, and may record. KG_ERROR_UNSUPPORTED: a replay in
    // `stream` would not behave like the launches.
    enum kg_status (*record_for)(struct kg_device *device, void *stream, kg_stream_run *run,
                                 void *user, struct kg_graph **graph, struct kg_error *error);
    // Sets the arguments of the graph's launch of this kernel; replays that already run are not
    // affected. KG_ERROR_UNSUPPORTED: it was recorded with other grids. After a failure, or before
    // all kernels are renewed, the arguments are mixed, and the graph must not be replayed.
    enum kg_status (*renew)(struct kg_graph *graph, const struct kg_kernel *kernel,
                            const struct kg_launch *launch, struct kg_error *error);
    // False while the stream is being captured, or if that is unknown: a graph cannot be captured.
    bool (*may_replay)(struct kg_device *device, void *stream);
    // Replays of one graph run one after the other, even on different streams.
    enum kg_status (*replay)(struct kg_graph *graph, void *stream, struct kg_error *error);
    void (*forget)(struct kg_graph *graph);
};

void kg_binary_free(struct kg_binary *binary);

extern const struct kg_backend *const kg_backends[]; // NULL at the end
const struct kg_backend *kg_backend_find(const char *name, size_t length);

// "host", "cuda:0"; "sm_90a", "h100": a GPU that is described and need not be present, for which
// everything but running works (asm/gpu.h). An unknown name gives KG_ERROR_ARGUMENT with the known
// ones; a missing device gives KG_ERROR_MISSING with what is lacking.
enum kg_status kg_device_open(const char *name, const char *cache, int threads,
                              struct kg_device **device, struct kg_error *error);
void kg_device_close(struct kg_device *device);

// Notes that a kernel moved this many bytes of memory per second. The facts do not change while the
// device is open; a backend that measures its bandwidth may use the rate next time.
void kg_device_note_bandwidth(struct kg_device *device, double rate);

#endif
