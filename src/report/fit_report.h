// Shows how well bound, points, prior and fit order measured candidates.

#ifndef KG_REPORT_FIT_REPORT_H
#define KG_REPORT_FIT_REPORT_H

#include "store/fitted.h"
#include "store/samples.h"

// Sorts the samples by device, family and problem.
enum kg_status kg_report_fit(struct kg_samples *samples, bool json, struct kg_text *text,
                             struct kg_error *error);

#endif
