// The peak rates of a device, and the least time of a problem that follows from them.

#ifndef KG_ANALYZE_ROOFLINE_H
#define KG_ANALYZE_ROOFLINE_H

#include "analyze/problem.h"

// What one unit of a GPU (a streaming multiprocessor) has room for: how many blocks run there at
// once follows from it. All 0 on the host.
struct kg_unit_limits {
    int registers;         // of 32 bits, of all its threads
    int thread_registers;  // of a thread at most
    int threads;           // resident at once
    int blocks;            // resident at once
    int block_threads;     // of a block at most
    int cluster;           // blocks of a cluster at most; 1: there are no clusters
    int64_t shared;        // bytes of shared memory, of all its blocks
    int64_t static_shared; // bytes of a block that does not ask for more than usual
    int64_t block_reserve; // bytes that the system takes for each block
};

// The few numbers of a device that analysis and families need. Filled by a backend; see
// device/device.h. Rates are peaks per second of the whole device; 0 means unknown.
struct kg_device_facts {
    char name[128];   // "AMD EPYC 7763", "NVIDIA H100 80GB HBM3"
    char isa[128];    // "x86-64 avx2 fma", "sm_90a"
    int units;        // cores or SMs
    double clock;     // Hz
    double bandwidth; // bytes per second of main memory, read + write
    // Bandwidth of a copy from four places in turn, over that of one in order; 0: unknown.
    double interleaving;
    // Bytes read and written from which on stores past the caches are faster; 0: unknown.
    double streamed;
    int64_t measured; // when these numbers were: seconds since 1970; 0: they are from tables
    double flops[KG_TYPE_F64 + 1]; // by compute type, FMA counted as two
    int64_t cache[4];     // bytes: [1] L1 data per unit, [2] L2 per unit or device, [3] last level
    int vector_bytes;     // widest vector register; 16 on CUDA (one access)
    int64_t shared_bytes; // per block on CUDA; 0 on the host
    double latency;       // seconds from a load of main memory until its value is there; 0: unknown
    struct kg_unit_limits unit;
    // Matrix units, by the dtype of the factors of a sum of products; 0: none for this dtype.
    double matrix_flops[KG_DTYPE_COUNT];
};

struct kg_roofline {
    double memory_seconds;  // compulsory bytes / bandwidth; 0 when unknown
    double compute_seconds; // every nest's operations / rate of its compute type or matrix unit
    double seconds;         // the larger
    double ridge;           // FLOPs per byte at which the two meet
    bool memory_bound;
};

struct kg_roofline kg_roofline_of(const struct kg_problem *problem,
                                  const struct kg_device_facts *facts);

enum kg_language { KG_ENGLISH, KG_CHINESE };

// The definition document, Markdown. `facts` may be NULL: the roofline is then given in bytes and
// FLOPs only.
void kg_analyze_document(struct kg_text *text, const struct kg_problem *problem,
                         const struct kg_device_facts *facts, enum kg_language language);
// The same content for machines: one JSON object.
void kg_analyze_document_json(struct kg_text *text, const struct kg_problem *problem,
                              const struct kg_device_facts *facts);

#endif
