// Measured candidates with what the model knew of them: JSON lines, one a sample (docs/model.md),
// or what the records hold. What the model is fitted to and judged by.

#ifndef KG_STORE_SAMPLES_H
#define KG_STORE_SAMPLES_H

#include "asm/fit.h"
#include "store/store.h"

#define KG_SAMPLE_SCHEMA 2     // lines of 1 are read, too
#define KG_MOST_SAMPLES 100000 // of one reading

struct kg_sample {
    const char *device;
    const char *family;          // candidates of one family are fitted together; "" is one too
    const char *op;              // problems of one op are held out together; "": not known
    const char *problem;         // candidates of one problem are compared
    const char *candidate;       // for people
    bool warm;                   // caches held what the last run left
    double seconds;              // measured
    double spread;               // of them, relative; 0: not known
    struct kg_forecast forecast; // of its instructions; where not `known`, there is a bound only
};

// Zero-initialised is empty.
struct kg_samples {
    struct kg_arena arena;
    struct kg_sample *list;
    int count, capacity;
    const struct kg_sample_filter *filter; // what does not pass is not appended; NULL: all does
};

// Appends. KG_ERROR_CORRUPT names the line, and nothing is appended then.
enum kg_status kg_samples_read(const char *lines, size_t length, struct kg_samples *samples,
                               struct kg_error *error);
// Appends every measured candidate of the records: with features where the model knew its
// instructions, else with the bound of its family.
enum kg_status kg_samples_collect(struct kg_store *store, struct kg_samples *samples,
                                  struct kg_error *error);
// One line, with its end.
void kg_samples_write(const struct kg_sample *sample, struct kg_text *text);
void kg_samples_free(struct kg_samples *samples);

#endif
