// The accuracy gate of one problem, applied to one subject.

#ifndef KG_FLOW_JUDGING_H
#define KG_FLOW_JUDGING_H

#include "flow/request.h"
#include "tune/worker.h"

// The gate of this problem's instance on this device. `seed` 0: fresh inputs. `strided` and
// `alignment`: as in a policy.
enum kg_status kg_flow_gate(const struct kg_request *request, uint64_t seed, bool strided,
                            size_t alignment, struct kg_gate **gate, struct kg_error *error);
// Code that is loaded only where it is judged: it may do anything while it is loaded or unloaded.
// `user` is the subject's.
struct kg_guest {
    enum kg_status (*load)(void *user, struct kg_error *error);
    enum kg_status (*unload)(void *user, struct kg_error *error);
    struct kg_confinement confinement;
};

// Judges in a worker process: a crash or a hang of the subject is a verdict. `guest` NULL: the
// subject is loaded already. A failure of `load` is an error, but a crash there is a verdict.
enum kg_status kg_flow_judge(const struct kg_request *request, const struct kg_gate *gate,
                             const struct kg_subject *subject, const struct kg_guest *guest,
                             double seconds, struct kg_verdict *verdict, struct kg_error *error);

#endif
