// Judges one candidate, by the accuracy gate and then by timing, in a process that the candidate
// may crash; and races the best ones at the end. test_rig.h does the tests themselves.

#ifndef KG_TUNE_JUDGEMENT_H
#define KG_TUNE_JUDGEMENT_H

#include "tune/search.h"

struct kg_judge;

struct kg_judgement {
    enum kg_outcome_kind kind; // MEASURED, WRONG, FAULT or TIMEOUT
    struct kg_verdict verdict;
    struct kg_timing timing;
    char reason[KG_ERROR_TEXT];
};

// `search` is borrowed. Foreign kernels (kg_built_adopt) can be judged only if they were adopted
// before the judge was made.
enum kg_status kg_judge_make(const struct kg_search *search, struct kg_judge **judge,
                             struct kg_error *error);
void kg_judge_free(struct kg_judge *judge);

// Judges one candidate within `seconds`. Returns KG_OK with a judgement, whether good or bad;
// KG_ERROR_CANCELLED, or the failure of the machine, otherwise. `incumbent` as for kg_time_one.
enum kg_status kg_judge_one(struct kg_judge *judge, struct kg_built *built, double seconds,
                            double incumbent, struct kg_judgement *judgement,
                            struct kg_error *error);

// Runs the gate alone, on a kernel and on its counterpart if it has one. A crash or a hang is a
// verdict.
enum kg_status kg_judge_verify(struct kg_judge *judge, struct kg_built *built, double seconds,
                               struct kg_verdict *verdict, struct kg_error *error);

// Times candidates alternately that have passed before; their outputs must be the same before and
// after. `drops` as for kg_time_race.
enum kg_status kg_judge_race(struct kg_judge *judge, struct kg_built *const *built, int count,
                             bool drops, double seconds, struct kg_timing *timings,
                             struct kg_error *error);

#endif
