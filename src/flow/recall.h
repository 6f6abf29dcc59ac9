// What is known of a problem before anything is measured: exactly, by the records and then by the
// wisdom file beside them, else of the nearest shape.

#ifndef KG_FLOW_RECALL_H
#define KG_FLOW_RECALL_H

#include "flow/plan_handle.h"

struct kg_recalled {
    // What this rigor may use unmeasured, and what is known of it; `seconds` is 0 for the nearest
    // shape's choice.
    struct kg_choice choice;
    enum kg_origin origin;
    enum kg_rigor rigor;
    double seconds, spread;
    // The kernels that are emitted for the choice today are those that passed the gate and were
    // timed. Where not, times are of others.
    bool is_proved;
    // What may not be used as it is, and is worth trying first.
    int lesser_count;
    char *lesser[2];           // of this very problem, found with less rigor
    bool is_outdated;          // the records' choice was found with other kernels than today's
    struct kg_nearest nearest; // where nothing that fits is known of this very problem
};

// KG_ERROR_NO_WISDOM when nothing is known that this rigor may use unmeasured; the error says what
// comes nearest. `recalled` is freed by the caller, whatever comes back.
enum kg_status kg_flow_recall(const struct kg_request *request, const struct kg_key *key,
                              struct kg_recalled *recalled, struct kg_error *error);
void kg_recalled_free(struct kg_recalled *recalled);

// May a choice that takes so long today, with other kernels than those it was found with, still
// count as the best known?
bool kg_recall_is_as_fast(double seconds, double known);

#endif
