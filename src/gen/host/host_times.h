// How long a family's kernel is expected to take on the host, to choose between ways of grouping an
// op's nests. Caches are taken to be as warm as the kernel before leaves them.

#ifndef KG_GEN_HOST_TIMES_H
#define KG_GEN_HOST_TIMES_H

#include "gen/family.h"

// Seconds for a group that the family takes, with this config; 0: not known. `family` is one of the
// host's. Differences between configs of one family are not told reliably: searches do not go by
// it.
double kg_host_expected(const struct kg_family *family, const struct kg_group *group,
                        const struct kg_device_facts *facts, const struct kg_config *config);

#endif
