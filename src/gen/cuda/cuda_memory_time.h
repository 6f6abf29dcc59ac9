// How long kernels that wait for memory are expected to take on a GPU: those of all families but
// contract. A family describes each launch of a config as work; what is fitted to measured times
// stands in cuda_memory_times.h.
//
// The reasoning is Little's law: a unit is busy with memory only while enough bytes are on their
// way, and those are what its resident blocks have asked for. So blocks count by how many of them
// are resident, and by how long each stays.

#ifndef KG_GEN_CUDA_MEMORY_TIME_H
#define KG_GEN_CUDA_MEMORY_TIME_H

#include "gen/cuda/cuda_memory_times.h"
#include "gen/family.h"

// One launch.
struct kg_cuda_memory_work {
    double blocks;     // those of clusters counted one by one
    int threads;       // of a block
    int cluster;       // blocks of a cluster; 0 or 1: none
    double registers;  // of a thread, as far as they can be foreseen,
    double limit;      // and the most that it may have; 0: as many as the compiler likes
    double segment;    // bytes that lie side by side of what a block reads; 0: many
    int64_t shared;    // bytes of a block
    double bytes;      // that all blocks together move through main memory
    double again;      // and read once more, from caches
    double trips;      // times that a block waits for main memory, one after the other,
    double near_trips; // for caches,
    double meetings;   // and its threads for each other
    double accesses;   // loads and stores of a thread
    double moved;      // bytes that these move
    double lines;      // of memory that accesses of a warp touch one by one: its lanes lie apart
    bool streamed;     // by accesses that caches are told not to keep
    double evicted;    // bytes of the first kind that the L2 is told to evict first
    double steps;      // other instructions of a thread,
    double specials;   // and calls of transcendental functions
    double unrolled;   // elements that the code of a loop has side by side
};

// A launch of this grid, nothing else known yet. The limit on registers, if there is one, and what
// a block of so many threads can have are taken into account later.
struct kg_cuda_memory_work kg_cuda_memory_work_of(const struct kg_grid *grid);
// Blocks of the work that one unit runs at once.
double kg_cuda_memory_resident(const struct kg_cuda_memory_work *work,
                               const struct kg_device_facts *facts);
// Units that its clusters find room on: a large one lies in one GPC, and most of these have 16 or
// 18 units, of which two are left alone. 33 clusters of eight blocks, two to a unit, do not run at
// once on 132 units: layer_norm of 33 rows of 54015 f32 took 14.4 us so, and 9.7 where a unit had
// room for more (H200).
double kg_cuda_memory_units(const struct kg_cuda_memory_work *work,
                            const struct kg_device_facts *facts);
// Seconds of launches that follow each other; 0: the device's rates are not known.
double kg_cuda_memory_seconds(const struct kg_cuda_memory_work *works, int count,
                              const struct kg_device_facts *facts,
                              const struct kg_cuda_memory_times *times);

// Bytes that the group moves through main memory, if each element that is used is moved once.
double kg_cuda_memory_bytes(const struct kg_group *group);
// Is it a short reduction of many columns, along no tensor's last dimension? Neighbouring threads
// then read elements side by side, of which the model knows most.
bool kg_cuda_memory_columns(const struct kg_match *match, const struct kg_nest *nest);
// Counts `times` what the statement at `position` of a group computes for each of `elements`.
void kg_cuda_memory_compute(struct kg_cuda_memory_work *work, const struct kg_group *group,
                            int position, double elements, double times);
// Counts `times` loads or stores of a thread, each of `bytes` that lie side by side.
void kg_cuda_memory_access(struct kg_cuda_memory_work *work, double times, double bytes);
// The instructions that find the places of `times` elements, by `digits` divisions each.
void kg_cuda_memory_divide(struct kg_cuda_memory_work *work, double times, int digits);

// Works of a config, at most KG_MAX_GRIDS; their number.
typedef int kg_cuda_memory_describe(const struct kg_match *match, const struct kg_config *config,
                                    struct kg_cuda_memory_work *works);
kg_cuda_memory_describe kg_cuda_rowwise_work, kg_cuda_reduce_work, kg_cuda_pointwise_work,
    kg_cuda_scan_work, kg_cuda_direct_work;
// Seconds expected of a config by what `describe` says of it.
double kg_cuda_memory_expected(kg_cuda_memory_describe *describe,
                               const struct kg_cuda_memory_times *times,
                               const struct kg_match *match, const struct kg_config *config);

// Choosing by expected times: the config that a rule begins with, and those it compares.
struct kg_cuda_rule {
    const struct kg_match *match;
    struct kg_config best;
    double seconds; // that it is expected to take; 0: not known, or none is valid yet
    double surely;  // share of `seconds` below which a config replaces the best; 0: 0.99
};
// Makes `config` the best if it is the first, or is expected to take less than that share. False:
// it is not valid.
bool kg_cuda_rule_try(struct kg_cuda_rule *rule, const struct kg_config *config);
// Loads of so much of the L2 may be evicted first: less may be found there by the next launch.
#define KG_CUDA_EVICTING 0.8
// The same with the best config and one parameter's value by which loads are evicted first from the
// L2, if `bytes` that are read are more than it holds.
void kg_cuda_rule_try_evicting(struct kg_cuda_rule *rule, int parameter, int64_t value,
                               double bytes);
// The same by which loads are evicted last, if what is read and written is more than `times` what
// the L2 holds, since of less much is still there when the next launch begins, and a quarter of it
// and more is written.
void kg_cuda_rule_evict_last(struct kg_cuda_rule *rule, int parameter, int64_t value, double times);

#endif
