// Reductions in generated host code, over kernels/host/lanes.h. The variables of reduction number k
// are acc<k> (and at<k>), the accumulators of the lanes, and t<k> (and lost<k> or where<k>), the
// total so far.

#ifndef KG_GEN_FOLD_H
#define KG_GEN_FOLD_H

#include "gen/family.h"
#include "gen/shared/code.h"

struct kg_fold {
    enum kg_reduce reduce;
    enum kg_reduce search; // argmax, argmin: KG_REDUCE_MAX or KG_REDUCE_MIN; else as `reduce`
    enum kg_type lane;     // values and the accumulators in the lanes
    enum kg_type total;    // the total, and partial totals between phases
    enum kg_type result;   // of the nest
    bool is_sum;           // sum or mean
    bool is_float_sum;     // of floats: lanes are often added to the total, for accuracy
    bool is_argument;
    bool counts_far; // places: lanes count more steps than 32 bits hold
};

struct kg_fold kg_fold_of(const struct kg_nest *nest);

// The C type of accumulators: bool is counted in int32_t.
const char *kg_fold_type(enum kg_type type);
// The C type of step counters beside values of the lanes' type.
const char *kg_fold_at_type(const struct kg_fold *fold);
// The neutral element.
void kg_fold_neutral(struct kg_text *text, const struct kg_fold *fold, enum kg_type type);
// One step: "a + b"; not for argmax and argmin.
void kg_fold_combine(struct kg_text *text, const struct kg_fold *fold, enum kg_type type,
                     const char *a, const char *b);

// Declares the variables of the total.
void kg_fold_declare_total(struct kg_code *code, const struct kg_fold *fold, int k);
// Declares the accumulators of the lanes, and sets them to their first state.
void kg_fold_declare_lanes(struct kg_code *code, const struct kg_fold *fold, int k, int lanes);
void kg_fold_reset_lanes(struct kg_code *code, const struct kg_fold *fold, int k, int lanes);
// Inside a loop over `lane`: accumulates variable v<k>; `step` counts the steps so far.
void kg_fold_step(struct kg_code *code, const struct kg_fold *fold, int k);
// Adds the lanes to the total. Lanes from `count` on are in their first state; "0": that is not
// known, where no index is searched. `first`: the index of the first value.
void kg_fold_flush(struct kg_code *code, const struct kg_fold *fold, int k, int lanes,
                   const char *count, const char *first);
// The result, from the total of `count` values.
void kg_fold_result(struct kg_text *text, const struct kg_fold *fold, int k, const char *count);

#endif
