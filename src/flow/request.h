// What a plan is asked for, and where it is made.

#ifndef KG_FLOW_REQUEST_H
#define KG_FLOW_REQUEST_H

#include "flow/session.h"

struct kg_evaluator; // flow/evaluator.h

// Functions that only need to know what is worked on read the first three members and no others.
struct kg_request {
    struct kg_session *session;
    const struct kg_problem *problem;
    struct kg_device *device;

    enum kg_rigor rigor;
    double seconds;     // a search may take beyond the first working plan; 0: no limit
    const char *hint;   // a choice that a search tries first; NULL: none
    bool takes_nearest; // see kg_context_set_nearest
    bool source_only;   // the plan is only written: nothing is compiled for it, and it cannot run
    // Where candidates are judged and timed; NULL: one is opened when it is needed.
    struct kg_evaluator *evaluator;
};

#endif
