// What the files of fitting share.

#ifndef KG_ASM_FIT_SAMPLES_H
#define KG_ASM_FIT_SAMPLES_H

#include "asm/fit.h"

enum kg_status kg_fit_check(const struct kg_fit_sample *samples, int count, struct kg_error *error);

// kg_fit_make on samples that were checked, leaving out those whose `held` is `*without` (NULL:
// none).
enum kg_status kg_fit_without(const struct kg_fit_sample *samples, int count, const int *without,
                              const struct kg_model_coefficients *prior, double ridge,
                              struct kg_model_coefficients *fitted, struct kg_error *error);

#endif
