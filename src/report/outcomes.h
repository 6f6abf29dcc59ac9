// The outcomes of all candidates of a problem as a document, for `explain` and `profile`.

#ifndef KG_REPORT_OUTCOMES_H
#define KG_REPORT_OUTCOMES_H

#include "store/store.h"

// A copy of the latest outcome of each candidate under a key, measured ones first, fastest first.
struct kg_outcomes {
    struct kg_arena arena;
    int count;
    int capacity;
    struct kg_outcome *list;
    int by_kind[KG_OUTCOME_COUNT];
};

enum kg_status kg_outcomes_collect(struct kg_store *store, const struct kg_key *key,
                                   struct kg_outcomes *outcomes, struct kg_error *error);
void kg_outcomes_free(struct kg_outcomes *outcomes);

// The pairs of measured outcomes that differ by more than their spreads, and how many of them the
// estimates order correctly: a half if they are equal.
struct kg_order {
    double pairs, right;
};
struct kg_order kg_outcomes_pairs(const struct kg_outcomes *outcomes);
// The right ones as a fraction; below 0: there is no such pair.
double kg_outcomes_order(const struct kg_outcomes *outcomes);

// What a table shows besides the outcomes.
struct kg_outcomes_view {
    int max;            // rows of each kind; 0: all
    double roofline;    // seconds
    const char *chosen; // marked, with the reason if it is not the first; NULL: none
};

// One Markdown table: rank, time, share of the roofline, fraction of the estimate (if there is
// one), spread, choice; then the other outcomes with their reasons.
void kg_outcomes_markdown(const struct kg_outcomes *outcomes, const struct kg_outcomes_view *view,
                          struct kg_text *text);
// A JSON array of objects, one per candidate. `chosen` as above: measured ones tell why they were
// kept or lost.
void kg_outcomes_json(const struct kg_outcomes *outcomes, const char *chosen, struct kg_text *text);

#endif
