// Measured candidates with what the model knew of them: JSON lines, one a sample (docs/model.md),
// or what the records hold. What the model is fitted to and judged by.

#ifndef KG_STORE_SAMPLES_H
#define KG_STORE_SAMPLES_H

#include "asm/fit.h"
#include "store/store.h"

#define KG_SAMPLE_SCHEMA 1
#define KG_MOST_SAMPLES 100000 // of one reading

struct kg_sample {
    const char *device;
    const char *family;       // candidates of one family are fitted together; "" is one too
    const char *problem;      // candidates of one problem are compared
    const char *candidate;    // for people
    double points;            // the simple score; NaN: not known
    bool has_features;        // else there is a bound only
    struct kg_fit_sample fit; // without `problem`
};

// Zero-initialised is empty.
struct kg_samples {
    struct kg_arena arena;
    struct kg_sample *list;
    int count, capacity;
};

// Appends. KG_ERROR_CORRUPT names the line, and nothing is appended then.
enum kg_status kg_samples_read(const char *lines, size_t length, struct kg_samples *samples,
                               struct kg_error *error);
// Appends every measured candidate of the records (of one op, or of all: NULL). They have bounds,
// and no features.
enum kg_status kg_samples_collect(struct kg_store *store, const char *op,
                                  struct kg_samples *samples, struct kg_error *error);
// One line, with its end.
void kg_samples_write(const struct kg_sample *sample, struct kg_text *text);
void kg_samples_free(struct kg_samples *samples);

#endif
