// Making generated C readable once it is complete: emitters declare more than they need, and what
// is unused is removed.

#ifndef KG_GEN_TIDY_H
#define KG_GEN_TIDY_H

#include "base/text.h"

// Removes, from a complete source file, the functions of the prelude that nothing calls and the
// constants (bindings, indices) that their block does not use, and breaks long lines. Sets
// source->failed when out of memory.
void kg_gen_tidy(struct kg_text *source);

// For a file of several kernels: removes, from offset `from` on, shared skeletons that the text
// before `from` already has.
void kg_gen_drop_repeats(struct kg_text *source, size_t from);

#endif
