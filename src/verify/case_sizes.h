// Which sizes a definition allows, and gives outputs with elements.

#ifndef KG_VERIFY_CASE_SIZES_H
#define KG_VERIFY_CASE_SIZES_H

#include "analyze/problem.h"
#include "verify/random.h"

// Changes sizes, but not those in `kept` (bits by kg_size id), until the definition allows them and
// no output is empty. False if none were found: then they are as they were.
bool kg_sizes_mend(const struct kg_op *instance, int64_t *sizes, uint32_t kept,
                   struct kg_random *random);

#endif
