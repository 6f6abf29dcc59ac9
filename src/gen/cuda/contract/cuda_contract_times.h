// The constants by which the time of a matrix product is expected: what cuda_contract_time.c and
// the rule for wgmma reckon with. bench/model/fit_products fits them.

#ifndef KG_GEN_CUDA_CONTRACT_TIMES_H
#define KG_GEN_CUDA_CONTRACT_TIMES_H

// Doubles only. Rates are of a unit, times in seconds.
struct kg_cuda_contract_times {
    double launch;    // and whatever else no kernel is without
    double units;     // of that device, by whose number shared rates scale
    double fill;      // of shared memory, bytes a second
    double delay;     // of a copy from the L2, and
    double far;       // as much more from memory
    double memory;    // of the bandwidth that is reached
    double begin;     // until memory is busy
    double written;   // less, where what others have written stays in the L2
    double again;     // what is read more than once, of the time of a fill
    double late;      // of a delay, where stages are under way; more of them are no worse
    double finish;    // of a tile, and
    double leave;     // of 128 x 128 sums
    double cluster;   // of folding there, and
    double folding;   // as much more for 128 x 128 sums
    double following; // of a cluster, until the next one has begun
    double meet;      // until the blocks of a cluster that copy for each other have met
    double clustered; // of the units, that clusters of more than two find room on
    double shown;     // of finishing, where another tile is multiplied meanwhile
    double pieces;    // folding in memory: a launch, and the bytes
    double folded;    // of the bandwidth
    double both;      // of the shorter of two things at once
    double held;      // stages that are being multiplied, and cannot be filled

    // By wgmma only.
    double matrix;   // of the peak that tiles reach
    double columns;  // fewer of them cost as much
    double operands; // that the matrix unit reads from shared memory, seconds a byte
    double uneven; // copies take so much longer where lines do not begin at multiples of 128 bytes
    double misses; // and so much longer still what is read more than once
    double down;   // what pairs cost, of the time: that share columns, and
    double across; // that share rows, for 128 columns
    double flag;   // where blocks share tiles, seconds until a part is seen, and
    double part;   // until 128 x 128 sums of it are written and read
};

// Fitted to all that searches choose from, which they put in an order, and to the fastest, among
// which the rule chooses.
extern const struct kg_cuda_contract_times kg_cuda_contract_times_of_space;
extern const struct kg_cuda_contract_times kg_cuda_contract_times_of_best;

#endif
