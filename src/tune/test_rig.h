// Where candidates are put to the test: the inputs of the problem to tune for, in the memory of the
// process that runs the candidates. What a candidate does to that process is the caller's concern
// (judgement.h).

#ifndef KG_TUNE_STAND_H
#define KG_TUNE_STAND_H

#include "tune/search.h"

#define KG_MOST_VERIFIED 16

// Checksums of outputs that were compared with the reference before: equal ones need not be.
struct kg_verified {
    int count;
    uint64_t sums[KG_MOST_VERIFIED];
};

// What one test gives.
struct kg_tested {
    struct kg_verdict verdict;
    struct kg_timing timing;
    uint64_t sum; // of the outputs
    bool compared;
    struct kg_times times; // what it took
};

struct kg_test_rig;

// `search` is borrowed.
enum kg_status kg_test_rig_make(const struct kg_search *search, struct kg_test_rig **rig,
                                struct kg_error *error);
void kg_test_rig_free(struct kg_test_rig *rig);

// The gate alone. KG_ERROR_WRONG with the reason when it says no.
enum kg_status kg_test_rig_verify(struct kg_test_rig *rig, struct kg_built *built,
                                  struct kg_tested *tested, struct kg_error *error);
// The gate; one run on poisoned outputs, which are compared with the reference where that is
// affordable; timing, with `incumbent` as for kg_time_one; and then outputs and inputs must be what
// they were. KG_ERROR_WRONG with the reason, whichever check said so; KG_ERROR_FAULT when the
// device takes no more work afterwards.
enum kg_status kg_test_rig_test(struct kg_test_rig *rig, struct kg_built *built, double incumbent,
                                const struct kg_verified *verified, struct kg_tested *tested,
                                struct kg_error *error);
// Times candidates that passed before alternately; their outputs must be the same before and after.
// All run on the same tensors, so that none is favoured by where its outputs happen to lie. `drops`
// as for kg_time_race.
enum kg_status kg_test_rig_race(struct kg_test_rig *rig, struct kg_built *const *built, int count,
                                bool drops, struct kg_timing *timings, struct kg_error *error);

// A built plan as the accuracy gate's subject: it does every problem of its instance whose tensors
// are contiguous where its own are, or its counterpart's.
struct kg_subject kg_test_rig_subject(struct kg_built *built);

#endif
