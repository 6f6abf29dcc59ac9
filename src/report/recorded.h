// The ops that have records, for whoever asks for another one.

#ifndef KG_REPORT_RECORDED_H
#define KG_REPORT_RECORDED_H

#include "store/store.h"

// KG_ERROR_ARGUMENT if this op has no records: it names those that have some, the nearest first.
// Without an op (NULL) nothing is required.
enum kg_status kg_recorded_require(struct kg_store *store, const char *op, struct kg_error *error);

#endif
