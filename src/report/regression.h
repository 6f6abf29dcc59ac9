// What is on record now beside what was on record earlier: which problems got slower.

#ifndef KG_REPORT_REGRESSION_H
#define KG_REPORT_REGRESSION_H

#include "store/store.h"

// Compares the wisdom of `then` with the records of `now`, of one op or of all (NULL). Problems are
// the same if all of their keys but the driver and the compiler are, which are often what changed:
// of several the one with the latest wisdom counts. The time now is that of the fastest candidate,
// each as it was measured last; where there are no measurements, that of the wisdom. A difference
// counts if it is larger than both interquartile ranges together and 2 %. `*slower`: some problem
// is. Text, or JSON.
enum kg_status kg_report_regressions(struct kg_store *now, struct kg_store *then, const char *op,
                                     bool json, bool *slower, struct kg_text *text,
                                     struct kg_error *error);

#endif
