// Problems so small that a search would cost more than it gains.

#ifndef KG_FLOW_SMALL_H
#define KG_FLOW_SMALL_H

#include "device/device.h"

struct kg_small {
    double bytes, operations; // of the least problems for which a search was seen to pay
};

// Does it move fewer bytes and compute less?
bool kg_small_covers(const struct kg_small *limit, const struct kg_problem *problem);
// By the limit of this kind of device.
bool kg_flow_is_small(const struct kg_problem *problem, const struct kg_device *device);
// What KG_RIGOR_DEFAULT means for this problem; any other rigor is itself.
enum kg_rigor kg_flow_rigor(const struct kg_problem *problem, const struct kg_device *device,
                            enum kg_rigor rigor);

#endif
