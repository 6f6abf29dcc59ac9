// Processes that share records measure a problem in turns: one measures, the others wait and then
// find its outcomes in the records. When the measuring process ends early, a waiting one goes on
// from what was recorded. The turn is a lease in the records (store/store.h).

#ifndef KG_FLOW_TURNS_H
#define KG_FLOW_TURNS_H

#include "flow/request.h"

struct kg_turn {
    const struct kg_request *request;
    const struct kg_key *key;
    bool is_ours;
    bool waited;    // for another process, which may have recorded what is needed
    double seconds; // how long
    double renewed; // kg_times_now
};

// Waits until it is our turn, or until the request's time is up and another process has measured a
// candidate of this problem: `turn->is_ours` is false then. As the first candidate of a search, it
// is waited for whatever the time limit says. Reports what is waited for, once. Without records, or
// if they cannot be written, there is nobody to wait for. KG_ERROR_CANCELLED if the session is
// cancelled meanwhile.
enum kg_status kg_turn_take(const struct kg_request *request, const struct kg_key *key,
                            struct kg_turn *turn, struct kg_error *error);
// To be called now and then while measuring, at least every KG_LEASE_SECONDS.
void kg_turn_renew(struct kg_turn *turn);
void kg_turn_end(struct kg_turn *turn);

// The fastest candidate that is on record with the kernels that are emitted now. False if there is
// none.
bool kg_turn_find_best(const struct kg_request *request, const struct kg_key *key,
                       struct kg_choice *choice, struct kg_timing *timing);

#endif
