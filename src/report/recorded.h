// The ops that have records, for whoever asks for another one.

#ifndef KG_REPORT_RECORDED_H
#define KG_REPORT_RECORDED_H

#include "store/store.h"

// KG_ERROR_ARGUMENT, for an op without records: it names those that have some, the nearest first.
enum kg_status kg_recorded_refuse(struct kg_store *store, const char *op, struct kg_error *error);

#endif
