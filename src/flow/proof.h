// A verdict or a time applies to the kernels it was found for. A hash of their sources
// (gen/source_identity.h) tells whether these are the kernels that are emitted today.

#ifndef KG_FLOW_PROOF_H
#define KG_FLOW_PROOF_H

#include "flow/request.h"

// The hash of the kernels that are emitted for a choice now and of the gate that judges them. All
// zero, which equals nothing, when out of memory.
struct kg_hash kg_proof_source(const struct kg_choice *choice);
// Whether both are known and equal.
bool kg_proof_fits(struct kg_hash one, struct kg_hash other);
// The last recorded outcome of a choice (kg_choice_print) with the kernels that are emitted for it
// now. Its strings live until the next call on the store.
bool kg_proof_find(const struct kg_request *request, const struct kg_key *key, const char *choice,
                   struct kg_outcome *outcome);

#endif
