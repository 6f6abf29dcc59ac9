// Declarations shared by the files of fitting.

#ifndef KG_ASM_FIT_SAMPLES_H
#define KG_ASM_FIT_SAMPLES_H

#include "asm/fit.h"

enum kg_status kg_fit_check(const struct kg_fit_sample *samples, int count, struct kg_error *error);

// kg_fit_make for checked samples, without those whose `held_out` is `*without` (NULL: with all).
enum kg_status kg_fit_without(const struct kg_fit_sample *samples, int count, const int *without,
                              const struct kg_model_coefficients *prior, double ridge,
                              struct kg_model_coefficients *fitted, struct kg_error *error);

#endif
