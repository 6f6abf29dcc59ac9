// Where a command spends its time, by activity.
//
// Each activity has two sums: `wall` is the time that the caller waited, `work` the time that all
// threads and processes spent, possibly in parallel. Time of no activity is "other".

#ifndef KG_BASE_TIMES_H
#define KG_BASE_TIMES_H

#include "base/text.h"

enum kg_activity {
    KG_ACTIVITY_OPEN,      // querying devices
    KG_ACTIVITY_REFERENCE, // making gates: inputs, references, impostors
    KG_ACTIVITY_COMPILE,
    KG_ACTIVITY_PREPARE, // starting a process that runs candidates: its device and tensors
    KG_ACTIVITY_LOAD,    // loading candidates into that process
    KG_ACTIVITY_JUDGE,   // running the gate
    // Comparing outputs and inputs at the size to tune for, before and after timing.
    KG_ACTIVITY_CHECK,
    KG_ACTIVITY_MEASURE,
    KG_ACTIVITY_RACE, // racing finalists, and plans with baselines
    KG_ACTIVITY_COUNT
};

struct kg_time {
    double wall;
    double work;
    int count;
};

// Used by one thread.
struct kg_times {
    double began; // kg_times_now when the object was made
    struct kg_time of[KG_ACTIVITY_COUNT];
};

// A monotonic clock, in seconds.
double kg_times_now(void);

// `times` may be NULL: then nothing is recorded.
void kg_times_add(struct kg_times *times, enum kg_activity activity, double wall, double work);
// Adds the time since `start` as the work of one thread.
void kg_times_since(struct kg_times *times, enum kg_activity activity, double start);

// Adds the sums of another process for which the caller waited.
void kg_times_merge(struct kg_times *times, const struct kg_times *more);

// A table, or one JSON object without a newline.
void kg_times_print(const struct kg_times *times, bool json, struct kg_text *text);

#endif
