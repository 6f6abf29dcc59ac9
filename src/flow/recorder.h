// What a search finds goes to the records the moment it is known, and comes back from them when an
// earlier search was cut short.

#ifndef KG_FLOW_RECORDER_H
#define KG_FLOW_RECORDER_H

#include "flow/plan_handle.h"

struct kg_recorder {
    const struct kg_request *request;
    const struct kg_key *key;
    bool replaces;         // what is known of the key is of other kernels than these: it gives way
    struct kg_error error; // a lack of memory while recording; a search ends without it being said
};

// Sets the callbacks of `search`. The recorder outlives the search.
void kg_recorder_attach(struct kg_recorder *recorder, struct kg_search *search);
// What became of one candidate, as a search would report it.
void kg_recorder_append(struct kg_recorder *recorder, const struct kg_outcome *outcome);
// The plan's choice and times as wisdom of the key, with the hash of its kernels.
enum kg_status kg_recorder_learn(struct kg_recorder *recorder, const struct kg_plan *plan,
                                 struct kg_error *error);

#endif
