// What the files of the rowwise family share.

#ifndef KG_GEN_ROWWISE_H
#define KG_GEN_ROWWISE_H

#include "gen/shared/rowwise_plan.h"

// Elements that the two halves of a row buffer are apart, besides the row: half a page of floats. A
// load waits for an earlier store to the same place of another page.
enum { KG_ROWWISE_APART = 512 };

// The functions of the kernel, after the opening.
void kg_rowwise_emit(struct kg_code *code, const struct kg_rowwise_plan *plan);

// Whether the last pass can work one row behind the others, in vectors of floats.
bool kg_rowwise_can_follow(const struct kg_rowwise_plan *plan);
// The function that does it, and the call of it where the sizes at hand allow.
void kg_rowwise_behind_emit(struct kg_code *code, const struct kg_rowwise_plan *plan);
void kg_rowwise_behind_call(struct kg_code *code, const struct kg_rowwise_plan *plan);

#endif
