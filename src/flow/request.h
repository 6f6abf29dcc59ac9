// What a caller asks of a plan, and in which context.

#ifndef KG_FLOW_REQUEST_H
#define KG_FLOW_REQUEST_H

#include "analyze/bottleneck.h"
#include "flow/session.h"

struct kg_evaluator; // flow/evaluator.h

// Functions that only need the problem and the device read no other members than the first three.
struct kg_request {
    struct kg_session *session;
    const struct kg_problem *problem;
    struct kg_device *device;

    enum kg_rigor rigor;
    double seconds;   // limit of a search after the first working plan; 0: none
    const char *hint; // a choice that a search tries first; NULL: none
    // With a kind of change: a search of what differs from `hint` by that kind alone, whatever is
    // known. NONE: what is known, or a search of everything.
    enum kg_change change;
    bool takes_nearest; // see kg_context_set_nearest
    bool source_only;   // only the source is needed: nothing is compiled, and the plan cannot run
    // Where candidates are judged and timed; NULL: one is opened when needed.
    struct kg_evaluator *evaluator;
};

#endif
