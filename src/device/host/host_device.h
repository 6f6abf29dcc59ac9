// Declarations shared by the files of the host backend. The host is this machine's CPU: the
// system's compiler compiles C kernels into shared objects, which a pool of threads runs.

#ifndef KG_DEVICE_HOST_HOST_DEVICE_H
#define KG_DEVICE_HOST_HOST_DEVICE_H

#include "device/device.h"
#include "device/host/host_pool.h"
#include "device/host/host_state.h"

#include <stdatomic.h>

#define KG_HOST_MAX_ARGUMENTS 16 // of $CC

// The C compiler, as found when the device was opened. If it is not usable, every compilation
// returns `status` and `why`.
struct kg_host_compiler {
    enum kg_status status;
    char why[1024];
    char words[1024];                             // $CC split at blanks; `arguments` points into it
    char *program;                                // full path
    const char *arguments[KG_HOST_MAX_ARGUMENTS]; // of $CC, beyond the program
    int argument_count;
    char version[128]; // first line of --version
    bool native;       // accepts -march=native
    char wide[48];     // tells it how wide vectors should be; "": it is not told
};

// What the rates are computed from, and what identifies this machine.
struct kg_host_machine {
    struct kg_hash identity;                 // of everything -march=native may depend on
    int cores;                               // physical cores this process may use
    int wide_bytes;                          // vectors that do not slow its clock; 0: not known
    double per_cycle[KG_TYPE_F64 + 1];       // operations per cycle and core, by compute type
    double matrix_per_cycle[KG_DTYPE_COUNT]; // of sums of products, by the dtype of the factors
};

struct kg_host_device {
    struct kg_device base;
    struct kg_host_machine machine;
    struct kg_host_compiler compiler;
    // Made by the first launch, and again in a forked child.
    _Atomic(struct kg_host_pool *) pool;
    // As they were when kernels began to be watched.
    struct kg_host_thread_state caller_state;
    struct kg_host_process_state process_state;
    char *flush_memory; // made by the first flush that reads
    size_t flush_bytes;
    double started; // start of the current timing
};

extern const struct kg_backend kg_host_backend;

// host_facts.c: the system's description of the machine. Fills `facts` except clock, bandwidth and
// flops. `threads` > 0 overrides the number of cores.
void kg_host_read_facts(int threads, struct kg_device_facts *facts,
                        struct kg_host_machine *machine);

// host_measure.c: clock and bandwidth, from the cache folder or measured (0.2 s, repeated at
// growing intervals), and the rates that follow from them.
enum kg_status kg_host_measure(struct kg_host_device *host, struct kg_error *error);
// Stores the bandwidth that kernels reached, if it exceeds the measured one.
void kg_host_keep_seen(const struct kg_host_device *host);
// The clock of the core this thread runs on, measured (about 0.1 ms).
double kg_host_clock(struct kg_device *device);

// host_compiler.c
void kg_host_compiler_find(struct kg_host_device *host);
void kg_host_compiler_free(struct kg_host_compiler *compiler);
enum kg_status kg_host_compile(struct kg_device *device, const struct kg_source *source,
                               double time_limit, struct kg_binary *binary, struct kg_error *error);

// host_failure.c: why `compiler` failed. KG_ERROR_COMPILE: it refused the source, or crashed on it.
// KG_ERROR_MISSING: the machine lacks something (disk, memory, a limit), and any other source would
// fail too; the text says what can be done.
struct kg_process_end;
enum kg_status kg_host_explain_failure(const char *compiler, const struct kg_process_end *end,
                                       const char *log, struct kg_error *error);

// host_kernel.c
enum kg_status kg_host_load(struct kg_device *device, const struct kg_binary *binary,
                            const char *entry, struct kg_kernel **kernel, struct kg_error *error);
void kg_host_unload(struct kg_kernel *kernel);
enum kg_status kg_host_launch(const struct kg_kernel *kernel, const struct kg_launch *launch,
                              struct kg_error *error);
int64_t kg_host_ranges(const struct kg_kernel *kernel, const struct kg_launch *launch);
double kg_host_idle_launch(struct kg_device *device, bool rested);
enum kg_status kg_host_watch(struct kg_device *device, struct kg_error *error);
const char *kg_host_changed(struct kg_device *device);
// This process's pool. NULL: out of memory.
struct kg_host_pool *kg_host_device_pool(struct kg_host_device *host);

// host_memory.c
// 64-byte aligned; large blocks are aligned to huge pages and advised to use them. Released by
// free.
char *kg_host_memory(size_t bytes);
enum kg_status kg_host_allocate(struct kg_device *device, size_t bytes, void **memory,
                                struct kg_error *error);
void kg_host_release(struct kg_device *device, void *memory);
enum kg_status kg_host_copy(struct kg_device *device, void *to, const void *from, size_t bytes,
                            struct kg_error *error);
enum kg_status kg_host_fill(struct kg_device *device, void *memory, unsigned char value,
                            size_t bytes, struct kg_error *error);
enum kg_status kg_host_digest(struct kg_device *device, const void *memory, size_t bytes,
                              uint64_t *sum, struct kg_error *error);
double kg_host_now(struct kg_device *device);
enum kg_status kg_host_start(struct kg_device *device, struct kg_error *error);
enum kg_status kg_host_stop(struct kg_device *device, double *seconds, struct kg_error *error);

// host_flush.c
void kg_host_flush(struct kg_device *device);
// Memory that kernels use, until it is removed and released: a flush takes it out of the caches.
void kg_host_flush_add(void *memory, size_t bytes);
void kg_host_flush_remove(const void *memory);
// Takes one block out of the caches, under the pool's lock, if the machine can do that.
bool kg_host_flush_knows_lines(void);
void kg_host_flush_lines(struct kg_host_pool *pool, char *memory, size_t bytes);

#endif
