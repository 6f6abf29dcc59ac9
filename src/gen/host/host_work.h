// The work of a host kernel, as expected times count it: host_times.c and host_contract_time.c.

#ifndef KG_GEN_HOST_WORK_H
#define KG_GEN_HOST_WORK_H

#include "gen/host/host_costs.h"

// A call of a kernel that does nothing.
#define KG_HOST_CALL_SECONDS 0.15e-6

// Work of a kernel, summed over all cores.
struct kg_host_work {
    const struct kg_group *group;
    const struct kg_device_facts *facts;
    double cycles; // computing and loading from the first cache
    double waits;  // for caches and memory
    double items;  // that cores share
};

double kg_host_work_seconds(const struct kg_host_work *work);
// The loop over a nest along the axis `vector`; -1: element by element.
struct kg_host_loop kg_host_work_loop(const struct kg_host_work *work, const struct kg_nest *nest,
                                      int vector);

#endif
