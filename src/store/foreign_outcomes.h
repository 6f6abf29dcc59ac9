// What became of foreign kernels: a table of their own, so that none is ever taken for a generated
// choice, becomes wisdom, teaches a pattern, or is fitted.

#ifndef KG_STORE_FOREIGN_OUTCOMES_H
#define KG_STORE_FOREIGN_OUTCOMES_H

#include "asm/gist.h"
#include "store/store.h"

struct kg_foreign_outcome {
    const char *file;      // its name, for people
    struct kg_hash hash;   // of its kind and bytes
    const char *reference; // the generated choice that it was timed beside
    // Of the generated kernels and the baseline that it was timed beside, and of the gate.
    struct kg_hash proof;
    enum kg_outcome_kind kind; // MEASURED, COMPILE, WRONG, FAULT or TIMEOUT
    const char *reason;        // "" for MEASURED
    int cases;                 // of the gate
    uint64_t seed;
    // Set for MEASURED, from one race. Of each: samples, median and spread.
    struct kg_timing timing, reference_timing, baseline_timing;
    // Against the reference by more than noise: 1 faster, -1 slower; 0: a tie.
    int standing;
    struct kg_asm_gist gist;
    const char *date; // ISO 8601, UTC; set by the store
};

enum kg_status kg_store_add_foreign(struct kg_store *store, const struct kg_key *key,
                                    const struct kg_foreign_outcome *outcome,
                                    struct kg_error *error);
// The latest outcome of these bytes beside these kernels. KG_OK and *found false if there is none.
// Strings live until the next call on the store.
enum kg_status kg_store_find_foreign(struct kg_store *store, const struct kg_key *key,
                                     struct kg_hash hash, struct kg_hash proof,
                                     struct kg_foreign_outcome *outcome, bool *found,
                                     struct kg_error *error);

#endif
