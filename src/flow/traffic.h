// Bytes that a choice moves through the last cache that a unit has for itself, estimated from its
// grouping and, for plain loops, from the order of the loops.

#ifndef KG_FLOW_TRAFFIC_H
#define KG_FLOW_TRAFFIC_H

#include "gen/choice.h"

// Intermediates that lie in memory count where they are written and where they are read. What plain
// loops of the host read again after it has left the cache counts each time, and so does the whole
// line of an element whose neighbours come too late. At least the compulsory bytes.
double kg_flow_traffic(const struct kg_choice *choice, const struct kg_device_facts *facts);

#endif
