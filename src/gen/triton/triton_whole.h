// An op of several launches as a single one, for shapes whose rows fit in the registers of a
// program.

#ifndef KG_GEN_TRITON_WHOLE_H
#define KG_GEN_TRITON_WHOLE_H

#include "gen/family.h"

// All statements as one group, with a plan whose kernel holds whole rows and whose launch returns
// from the public function where they fit; what follows serves the other shapes. False: the
// statements do not share rows. The analysis is allocated in `arena`.
bool kg_triton_whole_match(const struct kg_problem *problem, struct kg_arena *arena,
                           struct kg_match *match);

#endif
