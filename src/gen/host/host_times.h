// How long a family's kernel is expected to take on the host, to choose between ways of grouping an
// op's nests. Caches are taken to be as warm as the kernel before leaves them.

#ifndef KG_GEN_HOST_TIMES_H
#define KG_GEN_HOST_TIMES_H

#include "gen/family.h"

// Seconds that a config of the family is expected to take; 0: not known. Differences between
// configs of one family are not told reliably: searches do not go by them.
double kg_host_expect_contract(const struct kg_match *match, const struct kg_config *config);
double kg_host_expect_rowwise(const struct kg_match *match, const struct kg_config *config);
double kg_host_expect_reduce(const struct kg_match *match, const struct kg_config *config);
double kg_host_expect_scan(const struct kg_match *match, const struct kg_config *config);
double kg_host_expect_pointwise(const struct kg_match *match, const struct kg_config *config);
double kg_host_expect_window(const struct kg_match *match, const struct kg_config *config);
double kg_host_expect_direct(const struct kg_match *match, const struct kg_config *config);

// Cycles of a core for each element of a chain of formulas, in vectors, memory apart.
double kg_host_pointwise_cycles(const struct kg_group *group, const struct kg_device_facts *facts);

#endif
