// What holds for a child process that runs a kernel under judgement (device/child.h), whatever the
// kernel does: it leaves no process, file or lock behind, takes no more than its share of memory
// and time, and reads and writes nothing of its parent's.

#ifndef KG_DEVICE_CONFINEMENT_H
#define KG_DEVICE_CONFINEMENT_H

#include "device/forbidden_calls.h"

#include <stddef.h>
#include <sys/types.h>

struct kg_confinement {
    // Bytes that the child may map beyond what its parent has mapped; 0: no limit. Ignored under
    // sanitizers, which map terabytes.
    size_t memory;
    int threads;     // that the child starts for itself; their stacks do not count as `memory`
    double seconds;  // of processor time, of all threads together; 0: no limit
    bool unfiltered; // for tests: behave as on a system that cannot forbid calls
};

// In the child, before it has any thread but one: gives it a session of its own, closes all
// descriptors but `keep` and the standard ones, sets the limits, forbids calls. Standard input is
// empty, and standard output goes where errors go. `report` may also be told that exit() was
// called. False: the system cannot forbid calls.
bool kg_confine(const struct kg_confinement *confinement, int keep, kg_forbidden_report *report);

// In the parent, for a child that could not be forbidden to start processes: kills those of its
// session. What made a session of its own escapes.
void kg_kill_session(pid_t session);

#endif
