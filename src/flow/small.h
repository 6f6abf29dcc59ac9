// Problems so small that a search would cost more than it gains.

#ifndef KG_FLOW_SMALL_H
#define KG_FLOW_SMALL_H

#include "device/device.h"

struct kg_small {
    double bytes, operations; // of the smallest problems for which a search paid
};

// Whether it moves fewer bytes and computes less.
bool kg_small_covers(const struct kg_small *limit, const struct kg_problem *problem);
// By the limits of this target.
bool kg_flow_is_small(const struct kg_problem *problem, const struct kg_device *device);
// The rigor that KG_RIGOR_DEFAULT means for this problem; any other rigor is unchanged.
enum kg_rigor kg_flow_rigor(const struct kg_problem *problem, const struct kg_device *device,
                            enum kg_rigor rigor);

#endif
