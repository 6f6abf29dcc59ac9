// The constants by which times of kernels that wait for memory are expected: see
// cuda_memory_time.h. bench/model/fit_memory fits them.

#ifndef KG_GEN_CUDA_MEMORY_TIMES_H
#define KG_GEN_CUDA_MEMORY_TIMES_H

// Doubles only. Times in seconds.
struct kg_cuda_memory_times {
    double launch;   // of the first launch, and whatever else no kernel is without
    double next;     // of each one after it
    double dispatch; // of a block: the device begins them one after the other
    double start;    // of a block, from its beginning to its end, beside what follows
    double trip;     // of the device's latency, that a block waits for main memory,
    double near;     // and for a cache
    double meeting;  // of the threads of a block
    double clusters; // of a cluster's blocks
    double access;   // of a warp: a unit makes its loads and stores one after the other,
    double moved;    // for every byte of a thread of theirs,
    double touch;    // for every line that its lanes touch apart from each other,
    double step;     // other instructions,
    double spilled;  // each register that a thread does not have,
    double special;  // and transcendental functions
    double serial;   // of an instruction of one thread, which waits for that before it
    double memory;   // share of the bandwidth that is reached
    double segment;  // where a block's bytes lie apart: by how much more for 128 side by side
    double streamed; // of the time that memory takes, where caches are told not to keep anything
    double cached;   // bandwidth of the L2, as a share of the same
    double edges;    // of a block's waiting, by which memory and units begin late and end early
    double drain;    // share of what is resident at once by which memory starts and ends slowly
    double uneven;   // of the time by which one unit has more blocks than another
    double tail;     // of a last round of blocks that does not fill the units
    double code;     // of what is unrolled, for each element: instructions come from memory, too
    double sharp;    // the power by which what limits a kernel adds up
};

// By family, whose code differs in what an access costs besides.
extern const struct kg_cuda_memory_times kg_cuda_rowwise_times, kg_cuda_reduce_times,
    kg_cuda_reduce_column_times, kg_cuda_pointwise_times, kg_cuda_scan_times, kg_cuda_direct_times;

#endif
