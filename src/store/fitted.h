// Coefficients of a fit, read from its JSON (report/fit_report.h writes it).

#ifndef KG_STORE_FITTED_H
#define KG_STORE_FITTED_H

#include "asm/appraisal.h"

#define KG_FIT_SCHEMA 1 // version of that JSON

// The coefficients of `family`, or of each device's only family (NULL). A device with several
// families gives KG_ERROR_ARGUMENT and names them; a file without coefficients does, too. The list
// is in `arena`.
enum kg_status kg_fitted_read(const char *json, size_t length, const char *family,
                              struct kg_arena *arena, struct kg_fitted_list *fitted,
                              struct kg_error *error);

#endif
