// Coefficients that a fit gave, read back from its JSON (report/fit_report.h writes it).

#ifndef KG_STORE_FITTED_H
#define KG_STORE_FITTED_H

#include "asm/appraisal.h"

#define KG_FIT_SCHEMA 1 // of that JSON

// Those of `family`, or of the only family that each device has (NULL). A device of several gives
// KG_ERROR_ARGUMENT and names them; none at all does, too. The list lives in `arena`.
enum kg_status kg_fitted_read(const char *json, size_t length, const char *family,
                              struct kg_arena *arena, struct kg_fitted_list *fitted,
                              struct kg_error *error);

#endif
