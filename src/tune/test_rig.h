// The test rig: the inputs of the problem to tune for, the gate and the timer, in the memory of the
// process that runs the candidates. judgement.h handles candidates that harm that process.

#ifndef KG_TUNE_STAND_H
#define KG_TUNE_STAND_H

#include "tune/search.h"

#define KG_MAX_VERIFIED 16

// Checksums of outputs that were compared with the reference already; equal outputs are not
// compared again.
struct kg_verified {
    int count;
    uint64_t sums[KG_MAX_VERIFIED];
};

// The results of one test.
struct kg_tested {
    struct kg_verdict verdict;
    struct kg_timing timing;
    uint64_t sum; // of the outputs
    bool compared;
    struct kg_times times; // time spent on the test
};

struct kg_test_rig;

// `search` is borrowed.
enum kg_status kg_test_rig_make(const struct kg_search *search, struct kg_test_rig **rig,
                                struct kg_error *error);
void kg_test_rig_free(struct kg_test_rig *rig);

// Runs the gate alone. KG_ERROR_WRONG with the reason when it rejects the candidate.
enum kg_status kg_test_rig_verify(struct kg_test_rig *rig, struct kg_built *built,
                                  struct kg_tested *tested, struct kg_error *error);
// Runs the gate; runs once on poisoned outputs and compares them with the reference if that is
// affordable; times the candidate, with `incumbent` as for kg_time_one; checks that outputs and
// inputs did not change. KG_ERROR_WRONG gives the reason of the check that failed. KG_ERROR_FAULT:
// the device accepts no further work.
enum kg_status kg_test_rig_test(struct kg_test_rig *rig, struct kg_built *built, double incumbent,
                                const struct kg_verified *verified, struct kg_tested *tested,
                                struct kg_error *error);
// Times candidates alternately that have passed before; their outputs must be the same before and
// after. All use the same tensors, so that the addresses of outputs favour none. `drops` as for
// kg_time_race.
enum kg_status kg_test_rig_race(struct kg_test_rig *rig, struct kg_built *const *built, int count,
                                bool drops, struct kg_timing *timings, struct kg_error *error);

// The same for a guest, something that runs and is no built choice, beside the built ones:
// `timings[0]` is the guest's. Its outputs are compared with the reference if that is affordable.
enum kg_status kg_test_rig_race_guest(struct kg_test_rig *rig, const struct kg_subject *guest,
                                      struct kg_built *const *built, int count,
                                      struct kg_timing *timings, struct kg_error *error);

// A built plan as the accuracy gate's subject. It supports every problem of its instance whose
// tensors have the same contiguity as its own or its counterpart's.
struct kg_subject kg_test_rig_subject(struct kg_built *built);

#endif
