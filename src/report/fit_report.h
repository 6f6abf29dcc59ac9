// How well bound, points, and the model before and after a fit put measured candidates in order.

#ifndef KG_REPORT_FIT_REPORT_H
#define KG_REPORT_FIT_REPORT_H

#include "store/fitted.h"
#include "store/samples.h"

// Sorts the samples by device, family and problem on the way.
enum kg_status kg_report_fit(struct kg_samples *samples, bool json, struct kg_text *text,
                             struct kg_error *error);

#endif
