// Measured candidates with the model's features, to which it is fitted: from JSON lines, one per
// sample (docs/model.md), or from the records.

#ifndef KG_STORE_SAMPLES_H
#define KG_STORE_SAMPLES_H

#include "asm/fit.h"
#include "store/store.h"

#define KG_SAMPLE_SCHEMA 2    // lines of 1 are read, too
#define KG_MAX_SAMPLES 100000 // in one list

struct kg_sample {
    const char *device;
    const char *family;          // candidates of one family are fitted together; "" is one too
    const char *op;              // problems of one op are held out together; "": unknown
    const char *problem;         // candidates of one problem are compared
    const char *candidate;       // for people
    bool warm;                   // caches kept what the last run left in them
    double seconds;              // measured
    double spread;               // relative; 0: unknown
    struct kg_forecast forecast; // of its instructions; not `known`: only a bound
};

// Zero-initialised is empty.
struct kg_samples {
    struct kg_arena arena;
    struct kg_sample *list;
    int count, capacity;
    const struct kg_sample_filter *filter; // only matching samples are appended; NULL: all
};

// Appends all lines. KG_ERROR_CORRUPT names the line, and nothing is appended.
enum kg_status kg_samples_read(const char *lines, size_t length, struct kg_samples *samples,
                               struct kg_error *error);
// Appends every measured candidate of the records: with features if the model has its instructions,
// else with its family's bound.
enum kg_status kg_samples_collect(struct kg_store *store, struct kg_samples *samples,
                                  struct kg_error *error);
// One line, with its newline.
void kg_samples_write(const struct kg_sample *sample, struct kg_text *text);
void kg_samples_free(struct kg_samples *samples);

#endif
