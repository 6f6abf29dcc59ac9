// See proof.h.

#include "flow/proof.h"

#include "gen/source_identity.h"

struct kg_hash kg_proof_source(const struct kg_choice *choice)
{
    const int gate = KG_GATE_VERSION;
    struct kg_hash hash;
    if (!kg_choice_hash(choice, &hash))
        return (struct kg_hash){0};
    return kg_hash_chain(hash, &gate, sizeof gate);
}

bool kg_proof_fits(struct kg_hash one, struct kg_hash other)
{
    return (one.high || one.low) && one.high == other.high && one.low == other.low;
}

bool kg_proof_find(const struct kg_request *request, const struct kg_key *key, const char *text,
                   struct kg_outcome *outcome)
{
    const struct kg_device *device = request->device;
    struct kg_store *store = request->session->store;
    struct kg_choice choice;
    bool found = false;
    // Most lookups find nothing, and emitting a choice takes some milliseconds: looks for any
    // outcome first.
    if (!store || kg_store_find(store, key, text, outcome, &found, NULL) != KG_OK || !found ||
        !kg_choice_read(request->problem, &device->facts, kg_target_of(device), text, &choice))
        return false;
    struct kg_hash source = kg_proof_source(&choice);
    return kg_proof_fits(source, source) &&
           kg_store_find_emitted(store, key, text, source, outcome, &found, NULL) == KG_OK && found;
}
