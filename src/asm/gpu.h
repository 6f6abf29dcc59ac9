// NVIDIA's GPUs as constants: the resources and rates of a streaming multiprocessor (SM), by
// compute capability, and the GPUs built from it. The tables are in gpu_table.c, each row with its
// source.

#ifndef KG_ASM_GPU_H
#define KG_ASM_GPU_H

#include "analyze/roofline.h"

// Formats of the matrix units that have different rates.
enum kg_matrix { KG_MATRIX_64, KG_MATRIX_TF32, KG_MATRIX_16, KG_MATRIX_8, KG_MATRIX_4 };
#define KG_MATRIX_COUNT 5

// One compute capability. Rates are of one SM and one clock, and never below the SM's real rate, so
// that bounds stay valid; the exception is `integer`, because several pipes share that work.
struct kg_sm {
    int sm;           // 90
    const char *name; // "Hopper"
    // Limits of what is resident.
    int warps;            // resident on an SM
    int blocks;           // resident on an SM
    int registers;        // of 32 bits: of an SM, and the limit of a block
    int register_granule; // allocation unit of a warp
    int thread_registers; // limit of a thread
    int partitions;       // schedulers, each with its own warps and registers
    int block_threads;
    int shared;          // bytes of an SM that blocks can use
    int shared_default;  // of a block, without the opt-in
    int shared_opt_in;   // of a block, with the opt-in
    int shared_reserved; // of every block, by the system
    int shared_granule;
    int barriers; // of an SM; 0: no limit
    int cluster;  // blocks of a cluster that every device of this kind supports; 1: no clusters
    // Lanes that finish an instruction per clock; a warp has 32.
    int fma;
    int half; // instructions of two f16 each
    int real64;
    int integer;
    int special;
    int convert;
    int memory;  // loads and stores, global or shared
    int latency; // nanoseconds of a load from the device's memory, when little else is under way
    int shared_bytes;
    int l2_bytes; // between the SM and the L2
    // Dense FLOPs, multiply-add counted as two; 0: none, or emulated.
    int matrix[KG_MATRIX_COUNT];
    const char *source;
};

// A GPU.
struct kg_gpu {
    const char *name;   // as the driver reports it
    const char *handle; // "h100": for the command line
    const struct kg_sm *sm;
    int sms;
    double clock;     // Hz, the highest the driver allows
    double bandwidth; // bytes per second of memory, read + write
    int64_t l2_bytes;
    const char *source;
};

extern const struct kg_sm kg_sms[];   // ascending, sm 0 at the end
extern const struct kg_gpu kg_gpus[]; // name NULL at the end

// "sm_90a", "90", "compute_86": letters after the number are ignored. NULL when unknown.
const struct kg_sm *kg_sm_find(const char *name);
// By the driver's name or by handle, ignoring case. NULL when unknown.
const struct kg_gpu *kg_gpu_find(const char *name);
// The first GPU of that architecture; NULL: none is known.
const struct kg_gpu *kg_gpu_first(const struct kg_sm *sm);
// What a user names: as kg_gpu_find, or "sm_90a" for the first of an architecture.
const struct kg_gpu *kg_gpu_named(const char *name);
// The GPU of an open or described device. Its own facts take precedence over the table; of two
// clocks or bandwidths the larger counts, as bounds need. `gpu->name` is borrowed from the facts.
// KG_ERROR_UNSUPPORTED when the GPU is unknown.
enum kg_status kg_gpu_of(const struct kg_device_facts *facts, struct kg_gpu *gpu,
                         struct kg_error *error);

// FLOPs per clock of an SM for matrix factors of `format`; 0: no unit for it.
int kg_sm_matrix(const struct kg_sm *sm, enum kg_matrix format);
// The rate of the fastest matrix format.
int kg_sm_fastest_matrix(const struct kg_sm *sm);

#endif
