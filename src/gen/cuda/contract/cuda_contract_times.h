// The constants of the time model of matrix products: cuda_contract_time.c and the rule for wgmma
// use them, bench/model/fit_products fits them to measured times.

#ifndef KG_GEN_CUDA_CONTRACT_TIMES_H
#define KG_GEN_CUDA_CONTRACT_TIMES_H

// Doubles only. Rates are of one SM; times in seconds.
struct kg_cuda_contract_times {
    double launch;            // fixed cost of a launch
    double fitted_units;      // SMs of the fitted device: shared rates scale with their number
    double fitted_bandwidth;  // its bandwidth: unaligned lines are read again from memory
    double shared_rate;       // of filling shared memory, bytes a second
    double l2_rate;           // of the same while all SMs do that
    double l2_latency;        // of a copy from the L2
    double memory_latency;    // added to it where the copy comes from memory
    double bandwidth_share;   // of the device's bandwidth that is reached
    double memory_start;      // until memory is busy
    double streamed_saving;   // saved where evict_first leaves other kernels' writes in the L2
    double reread_share;      // of the time of a fill, for bytes that are read more than once
    double exposed_latency;   // share of a copy's latency that stages do not hide
    double tile_end;          // of a tile's epilogue, fixed
    double tile_store;        // of the epilogue of 128 x 128 accumulators
    double cluster_fold;      // of adding up K slices in a cluster, fixed
    double cluster_fold_tile; // of adding them up, for 128 x 128 accumulators
    double cluster_next;      // from the end of a cluster to the start of the next one
    double cluster_barrier;   // until the blocks of a multicast cluster have met
    double clustered_units;   // share of the SMs on which clusters of more than two find room
    double exposed_end;       // share of an epilogue that is not hidden by another tile's main loop
    double fold_launch;       // of adding up K slices in memory: the second launch
    double fold_bandwidth;    // share of the bandwidth that it reaches
    double overlap_loss;      // share of the shorter of copying and multiplying that is not hidden
    double busy_stages;       // stages that are being multiplied and cannot be filled

    // Of wgmma only.
    double matrix_share;     // of the peak rate that tiles reach
    double full_columns;     // narrower tiles take as long as this many columns
    double operand_read;     // of the tensor core, from shared memory, seconds a byte
    double unaligned_copy;   // factor on copies of lines that are not aligned to 128 bytes
    double unaligned_reread; // factor on reading such lines again
    double pair_m;           // share that a cluster of two along M adds
    double pair_n;           // share that a cluster of two along N adds, for 128 columns
    double stream_k_flag;    // until a partial tile's flag is seen
    double stream_k_tile;    // to write and read 128 x 128 partial accumulators
    // Where TMA cannot store lines. Times of an SM count if no other tile is multiplied meanwhile.
    double unaligned_store; // factor on storing them element by element
    double element_store;   // of an SM, for an element
    double sector_line;     // of an SM, for a line of a tile that a warp stores by sector

    // Of mma.sync only.
    double mma_share;           // of the peak rate that tiles reach
    double mma_fragments;       // rate of fragment loads from shared memory, bytes a second
    double mma_unaligned;       // factor on copies of lines that are not aligned to 128 bytes,
    double mma_narrow;          // not to 8 bytes, which are copied by 4,
    double mma_registers;       // not to 4 bytes: these go through registers
    double mma_copy;            // of a thread, for a copy that is shorter than a vector
    double mma_vector;          // of a thread, for a vector that goes through registers
    double mma_store;           // of an SM, for each element of a tile
    double mma_unaligned_store; // factor on storing lines that are not aligned to 16 bytes
};

// Fitted to all measurements, for searches and for choices beyond the rule's table of tiles; and to
// the fastest configs of listed shapes only, for that table.
extern const struct kg_cuda_contract_times kg_cuda_contract_times_of_all;
extern const struct kg_cuda_contract_times kg_cuda_contract_times_of_best;

#endif
