// The timing protocol; docs/timing.md describes it.

#ifndef KG_TUNE_TIMING_H
#define KG_TUNE_TIMING_H

#include "device/device.h"

enum kg_cache_state { KG_COLD, KG_WARM };

// Part of every record's key.
struct kg_protocol {
    enum kg_cache_state cache;
    bool graph;            // CUDA only
    double warm_seconds;   // warm-up by time
    double sample_seconds; // budget of one subject's samples, flushes included
    int least_samples;     // three are enough where one run takes longer than the budget
    int max_samples;
};

extern const struct kg_protocol kg_protocol_default; // cold, launch
// Reads the words that kg_protocol_print writes, in any order; omitted words mean the default.
// False for other words.
bool kg_protocol_read(const char *text, struct kg_protocol *protocol);
void kg_protocol_print(const struct kg_protocol *protocol, struct kg_text *text); // "cold launch"

// Seconds of one run. `spread` is the interquartile range.
struct kg_timing {
    int samples;
    double median;
    double least;
    double spread;
    bool abandoned; // too slow against the incumbent; its first runs are the samples
    double clock;   // Hz of the device right after the samples; 0: unknown
    // In a race: by which fraction of the leader's time it is behind (the median over the rounds),
    // and half the width of that median's interval.
    double behind;
    double behind_noise;
};

struct kg_timed {
    void *user;
    enum kg_status (*run)(void *user, struct kg_error *error);
};

// Times one subject. With `incumbent` > 0, a subject whose first runs take more than twice that
// long is abandoned.
enum kg_status kg_time_one(struct kg_device *device, const struct kg_protocol *protocol,
                           const struct kg_timed *subject, double incumbent,
                           const volatile int *cancel, struct kg_timing *timing,
                           struct kg_error *error);
// Times several subjects alternately in one process: finalists, or a candidate and its baseline.
// With `drops`, subjects that cannot win any more leave the race early and count as abandoned.
enum kg_status kg_time_race(struct kg_device *device, const struct kg_protocol *protocol,
                            const struct kg_timed *subjects, int count, bool drops,
                            const volatile int *cancel, struct kg_timing *timings,
                            struct kg_error *error);
// Half the width of the interval that contains the true median with a probability of about 95 %:
// the notch of a box plot (McGill, Tukey and Larsen, 1978).
double kg_time_uncertainty(const struct kg_timing *timing);
// Index of the winner of a race. Differences within the noise are ties, which the lowest index
// wins. -1 when no subject was timed.
int kg_time_winner(const struct kg_timing *timings, int count);

#endif
