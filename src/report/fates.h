// What became of each candidate, kept or lost, with one reason in words.

#ifndef KG_REPORT_FATES_H
#define KG_REPORT_FATES_H

#include "report/outcomes.h"

// The outcome of this choice, or NULL.
const struct kg_outcome *kg_outcomes_find(const struct kg_outcomes *outcomes, const char *choice);

// Why this candidate was kept or lost; `kept` may be the same one, or NULL if what is kept has no
// outcome.
void kg_outcome_fate(const struct kg_outcomes *outcomes, const struct kg_outcome *outcome,
                     const struct kg_outcome *kept, struct kg_text *text);

// One line for each candidate, the kept one first: time, reason, and which parameters differ from
// the kept one's.
void kg_outcomes_fates(const struct kg_outcomes *outcomes, const char *kept, struct kg_text *text);

#endif
