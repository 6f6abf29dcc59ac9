// Making generated C readable once it is complete: emitters declare generously, and what turned out
// not to be needed goes.

#ifndef KG_GEN_TIDY_H
#define KG_GEN_TIDY_H

#include "base/text.h"

// Removes, from a complete source file, the functions of the prelude that nothing calls and the
// bindings (kg_emit_host_bindings) that their function does not use. Sets source->failed when out
// of memory.
void kg_gen_tidy(struct kg_text *source);

#endif
