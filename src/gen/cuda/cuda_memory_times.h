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
    double access;   // of a warp: a unit makes its loads and stores one after the other
    double step;     // likewise, other instructions
    double memory;   // share of the bandwidth that is reached
    double cached;   // of what is read again, as a share of the same bandwidth
    double drain;    // share of what is resident at once by which memory starts and ends slowly
    double uneven;   // of the time by which one unit has more blocks than another
    double tail;     // of a last round of blocks that does not fill the units
    double sharp;    // the power by which what limits a kernel adds up
};

extern const struct kg_cuda_memory_times kg_cuda_memory_times;

#endif
