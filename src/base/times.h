// Where time goes, by what is being done: for whoever waits and wants to know why.
//
// Two sums each. `wall` is what the caller waited; `work` is what it took all threads and
// processes, some of them at once. What no activity claims is "other".

#ifndef KG_BASE_TIMES_H
#define KG_BASE_TIMES_H

#include "base/text.h"

enum kg_activity {
    KG_ACTIVITY_OPEN,      // asking devices what they are
    KG_ACTIVITY_REFERENCE, // making gates: inputs, references, impostors
    KG_ACTIVITY_COMPILE,
    KG_ACTIVITY_PREPARE, // a process that runs candidates: its device, and tensors there
    KG_ACTIVITY_LOAD,    // candidates into that process
    KG_ACTIVITY_JUDGE,   // the gate
    KG_ACTIVITY_CHECK,   // outputs and inputs at the size to tune for, before and after timing
    KG_ACTIVITY_MEASURE,
    KG_ACTIVITY_RACE, // of finalists, and with the baseline
    KG_ACTIVITY_COUNT
};

struct kg_time {
    double wall;
    double work;
    int count;
};

// Used by one thread.
struct kg_times {
    double began; // by kg_times_now
    struct kg_time of[KG_ACTIVITY_COUNT];
};

// A monotonic clock, in seconds.
double kg_times_now(void);

// `times` may be NULL: nobody wants to know.
void kg_times_add(struct kg_times *times, enum kg_activity activity, double wall, double work);
// What passed since `start`, all of it one thread's.
void kg_times_since(struct kg_times *times, enum kg_activity activity, double start);

// What another process did while the caller waited for it.
void kg_times_merge(struct kg_times *times, const struct kg_times *more);

// A table, or one JSON object without a newline.
void kg_times_print(const struct kg_times *times, bool json, struct kg_text *text);

#endif
