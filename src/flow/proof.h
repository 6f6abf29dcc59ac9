// What was found once counts for the kernels that it was found of. Whether these are the ones that
// are emitted today is told by a hash of both (gen/source_identity.h).

#ifndef KG_FLOW_PROOF_H
#define KG_FLOW_PROOF_H

#include "flow/request.h"

// Of the kernels that are emitted for a choice now, and of the gate that judges them. Zero where
// there is no memory to emit them: it fits nothing.
struct kg_hash kg_proof_source(const struct kg_choice *choice);
// Are both known, and the same?
bool kg_proof_fits(struct kg_hash one, struct kg_hash other);
// The last outcome on record of a choice (kg_choice_print) whose kernels were the ones that are
// emitted for it now. Its strings live until the next call on the store.
bool kg_proof_find(const struct kg_request *request, const struct kg_key *key, const char *choice,
                   struct kg_outcome *outcome);

#endif
