// What is known of a problem before anything is measured: of this problem, by the records and then
// by the wisdom file; else of the nearest shape.

#ifndef KG_FLOW_RECALL_H
#define KG_FLOW_RECALL_H

#include "flow/plan_handle.h"

struct kg_recalled {
    // What this rigor may use without measuring; `seconds` is 0 for the nearest shape's choice.
    struct kg_choice choice;
    enum kg_origin origin;
    enum kg_rigor rigor;
    double seconds, spread;
    // The kernels emitted for the choice today are those that passed the gate and were timed. If
    // not, the times are of other kernels.
    bool is_proved;
    // What may not be used as it is, but should be tried first.
    int lesser_count;
    char *lesser[2];           // of this problem, found with less rigor
    bool is_outdated;          // the records' choice was found with other kernels than today's
    struct kg_nearest nearest; // if nothing that fits is known of this problem
};

// KG_ERROR_NO_WISDOM if nothing is known that this rigor may use without measuring; the error names
// what comes nearest. The caller frees `recalled` in any case.
enum kg_status kg_flow_recall(const struct kg_request *request, const struct kg_key *key,
                              struct kg_recalled *recalled, struct kg_error *error);
void kg_recalled_free(struct kg_recalled *recalled);

// Whether a choice that was found with other kernels, and takes `seconds` today, still counts as
// the best known.
bool kg_recall_is_as_fast(double seconds, double known);

#endif
