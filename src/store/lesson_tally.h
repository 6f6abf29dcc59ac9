// What the candidates of one problem say, subject by subject. Only src/store includes this.

#ifndef KG_STORE_LESSON_TALLY_H
#define KG_STORE_LESSON_TALLY_H

#include "store/patterns.h"

#define KG_LESSON_WORD 64

struct kg_lesson_subject {
    enum kg_pattern_subject kind;
    char family[KG_LESSON_WORD], parameter[KG_LESSON_WORD];
    int64_t value;
};

struct kg_lesson_tally {
    struct kg_lesson_subject subject;
    int tried, failed;
    double best, without; // seconds; INFINITY: none
    double sum, weight;   // of logarithms, where all but this value is equal
    bool fitted;
    double effect; // logarithm of a factor of what was expected: see lesson_fit.c
};

// A measured candidate that has a subject: `context` is a hash of all of its choice but the value.
struct kg_lesson_entry {
    uint64_t context;
    int tally;
    double logarithm; // of the seconds
};

// A measured candidate of one kernel whose time was expected.
#define KG_LESSON_SAMPLE_SUBJECTS 24
struct kg_lesson_sample {
    double logarithm; // of its time over the expected one
    double seconds;
    int count;
    int tallies[KG_LESSON_SAMPLE_SUBJECTS]; // of its family and its values
};

struct kg_lesson_tallies {
    int count, capacity;
    struct kg_lesson_tally *list;
    int entry_count, entry_capacity;
    struct kg_lesson_entry *entries;
    int sample_count, sample_capacity;
    struct kg_lesson_sample *samples;
    bool failed; // no memory
};

// Visits the outcomes of a problem twice, `again` the second time: rivals of a subject may come
// before it.
void kg_lesson_tally_add(struct kg_lesson_tallies *tallies, const struct kg_outcome *outcome,
                         bool again);
void kg_lesson_tally_finish(struct kg_lesson_tallies *tallies);
void kg_lesson_tally_free(struct kg_lesson_tallies *tallies);
void kg_lesson_fit_add(struct kg_lesson_tallies *tallies, const struct kg_lesson_sample *sample);
void kg_lesson_fit(struct kg_lesson_tallies *tallies);
// Whether there is a time with the subject and one without it; if so, the logarithm of their ratio.
bool kg_lesson_tally_ratio(const struct kg_lesson_tally *tally, double *ratio);

#endif
