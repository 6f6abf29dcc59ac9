// Sizes that the caller did not give.

#ifndef KG_API_CHOSEN_SIZES_H
#define KG_API_CHOSEN_SIZES_H

#include "analyze/problem.h"

// Sets sizes below 0 to those of the goal's first `tune` row, else of its largest `verify` row.
void kg_take_goal_sizes(const struct kg_op *op, int64_t *sizes);

// Sets all sizes below 0, by the rule of docs/language.md ("Sizes that are not given"). If the
// definition allows no such sizes, KG_ERROR_SHAPE names all that are missing.
enum kg_status kg_choose_sizes(const struct kg_op *instance, int64_t *sizes,
                               struct kg_error *error);

#endif
