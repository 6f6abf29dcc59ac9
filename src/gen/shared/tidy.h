// Making generated C readable once it is complete: emitters declare generously, and what turned out
// not to be needed goes.

#ifndef KG_GEN_TIDY_H
#define KG_GEN_TIDY_H

#include "base/text.h"

// Removes, from a complete source file, the functions of the prelude that nothing calls and the
// constants (bindings, indices) that their block does not use, and breaks long lines. Sets
// source->failed when out of memory.
void kg_gen_tidy(struct kg_text *source);

// A file of several kernels: drops from what stands at `from` and behind it the skeletons that
// stand before it already and that kernels share.
void kg_gen_drop_repeats(struct kg_text *source, size_t from);

#endif
