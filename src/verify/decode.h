// Runs of elements as f64 or as integers. `at` and `stride` count elements.

#ifndef KG_VERIFY_DECODE_H
#define KG_VERIFY_DECODE_H

#include "lang/dtype.h"

#include <stdint.h>

void kg_decode_reals(enum kg_dtype dtype, const void *data, int64_t at, int64_t stride,
                     int64_t count, double *to);
// Elements `at[0]`, `at[1]` and so on.
void kg_decode_chosen(enum kg_dtype dtype, const void *data, const int64_t *at, int64_t count,
                      double *to);
void kg_decode_integers(enum kg_dtype dtype, const void *data, int64_t at, int64_t stride,
                        int64_t count, int64_t *to);

#endif
