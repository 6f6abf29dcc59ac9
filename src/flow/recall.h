// What is known of a problem before anything is measured: exactly, by the records and then by the
// wisdom file beside them, else of the nearest shape.

#ifndef KG_FLOW_RECALL_H
#define KG_FLOW_RECALL_H

#include "flow/nearest.h"
#include "flow/planner.h"

// What may not be used as it is, and is worth trying first.
struct kg_recalled {
    int count;
    char *lesser[2];           // of this very problem, found with less rigor
    struct kg_nearest nearest; // where nothing that fits is known of this very problem
};

// KG_ERROR_NO_WISDOM when nothing is known that this rigor may use unmeasured; the error says what
// comes nearest. `recalled` is freed by the caller, whatever comes back.
enum kg_status kg_flow_recall(struct kg_session *session, const struct kg_key *key,
                              const struct kg_problem *problem, struct kg_device *device,
                              enum kg_rigor rigor, struct kg_recalled *recalled,
                              struct kg_plan **plan, struct kg_error *error);
void kg_recalled_free(struct kg_recalled *recalled);

#endif
