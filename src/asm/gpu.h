// NVIDIA's GPUs as constants: what a streaming multiprocessor (SM) holds and does per clock, by
// compute capability, and what products are built of it. The tables stand in gpu_table.c, each row
// with its source.

#ifndef KG_ASM_GPU_H
#define KG_ASM_GPU_H

#include "analyze/roofline.h"

// Formats that matrix units tell apart, by rate.
enum kg_matrix { KG_MATRIX_64, KG_MATRIX_TF32, KG_MATRIX_16, KG_MATRIX_8, KG_MATRIX_4 };
#define KG_MATRIX_COUNT 5

// One compute capability. Rates are of one SM and one clock, and never below what the SM can do, so
// that a bound made of them stays a bound; `integer`, work that several pipes share, excepted.
struct kg_sm {
    int sm;           // 90
    const char *name; // "Hopper"
    // Residency.
    int warps;            // resident on an SM
    int blocks;           // resident on an SM
    int registers;        // of 32 bits: of an SM, and of a block at most
    int register_granule; // allocated to a warp at once
    int thread_registers; // of a thread at most
    int partitions;       // schedulers, each with its share of warps and registers
    int block_threads;
    int shared;          // bytes of an SM that blocks can have
    int shared_default;  // of a block, without asking
    int shared_opt_in;   // of a block that asked for more
    int shared_reserved; // taken from every block by the system
    int shared_granule;
    int barriers; // of an SM; 0: they never limit
    int cluster;  // blocks of a cluster that every device of this kind takes; 1: no clusters
    // Lanes that finish an instruction in a clock; a warp has 32.
    int fma;
    int half; // instructions of two f16 each
    int real64;
    int integer;
    int special;
    int convert;
    int memory;  // loads and stores, global or shared
    int latency; // nanoseconds of a load from the device's memory, when little else is under way
    int shared_bytes;
    int l2_bytes;                // between the SM and the L2
    int matrix[KG_MATRIX_COUNT]; // dense FLOPs, multiply-add counted as two; 0: none, or emulated
    const char *source;
};

// A product.
struct kg_gpu {
    const char *name;   // as the driver reports it
    const char *handle; // "h100": for command lines
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
// By the driver's name or by handle, whatever their case. NULL when unknown.
const struct kg_gpu *kg_gpu_find(const char *name);
// A device that was opened or described. Its own facts count, and the table where they are silent;
// of two clocks or bandwidths the larger, as bounds need. `gpu->name` is borrowed from the facts.
// KG_ERROR_UNSUPPORTED when they are of no GPU that is known.
enum kg_status kg_gpu_of(const struct kg_device_facts *facts, struct kg_gpu *gpu,
                         struct kg_error *error);

// FLOPs per clock of an SM for matrix factors of `format`; 0: no unit for it.
int kg_sm_matrix(const struct kg_sm *sm, enum kg_matrix format);
// The fastest matrix unit, whatever its format.
int kg_sm_fastest_matrix(const struct kg_sm *sm);

#endif
