// What a verdict is of: the sources that a choice's kernels are compiled from, as a compiler sees
// them, and how they are launched. Two choices, or one choice of two versions of KernelGen, that
// have the same hash are the same kernels.

#ifndef KG_GEN_SOURCE_IDENTITY_H
#define KG_GEN_SOURCE_IDENTITY_H

#include "base/hash.h"
#include "gen/choice.h"

// Of one source: comments, and blanks between words, do not count; lines count where they end a
// directive of the preprocessor.
struct kg_hash kg_source_hash(const char *source, size_t length);

// Of all kernels of a choice, emitted now, and their launches for its problem. False when there is
// no memory for them.
bool kg_choice_hash(const struct kg_choice *choice, struct kg_hash *hash);

#endif
