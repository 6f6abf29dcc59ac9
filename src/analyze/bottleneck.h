// The vocabulary of diagnosis: what may limit a kernel, how it shows, and what kind of change
// helps. The diagnosis of a measured version, the advice on assembly and the definition document
// all use these names.

#ifndef KG_ANALYZE_BOTTLENECK_H
#define KG_ANALYZE_BOTTLENECK_H

#include "analyze/roofline.h"

enum kg_bottleneck {
    KG_BOTTLENECK_NONE, // at the roofline
    KG_BOTTLENECK_LAUNCH,
    KG_BOTTLENECK_PARALLELISM,
    KG_BOTTLENECK_TAIL,
    KG_BOTTLENECK_SPILLS,
    KG_BOTTLENECK_LOCALITY,
    KG_BOTTLENECK_BANDWIDTH,
    KG_BOTTLENECK_LATENCY,
    KG_BOTTLENECK_TENSOR,
    KG_BOTTLENECK_SPECIAL,
    KG_BOTTLENECK_ARITHMETIC,
    KG_BOTTLENECK_COUNT
};

// A kind of change that one round of optimisation makes.
enum kg_change {
    KG_CHANGE_NONE,
    KG_CHANGE_BLOCK,    // how the work is cut into blocks, and how many there are
    KG_CHANGE_ACCESS,   // width and order of memory accesses, prefetching, streaming stores
    KG_CHANGE_REUSE,    // tiles, and rows that are kept on chip
    KG_CHANGE_STAGES,   // threads of a block, pipeline stages, register limits, unrolling
    KG_CHANGE_GROUPING, // which statements share a kernel
    KG_CHANGE_FORM,     // another form or family of kernel
    KG_CHANGE_COUNT
};
extern const char *const kg_change_keys[KG_CHANGE_COUNT]; // stable, for records and programs
// By kind and language: "block and grid".
extern const char *const kg_change_names[KG_CHANGE_COUNT][2];

// What differs between kinds of device.
enum kg_bottleneck_on { KG_BOTTLENECK_ON_GPU, KG_BOTTLENECK_ON_HOST };

#define KG_MAX_CHANGES 4
struct kg_bottleneck_row {
    const char *key;     // stable, for programs: "tail"
    const char *name[2]; // by language
    // By device and language; NULL: it does not occur there.
    const char *symptom[2][2];
    const char *advice[2][2];
    enum kg_change changes[KG_MAX_CHANGES]; // the most promising first; unused entries are NONE
};
extern const struct kg_bottleneck_row kg_bottlenecks[KG_BOTTLENECK_COUNT];

#endif
