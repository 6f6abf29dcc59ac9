// The identity of kernels, to which a verdict belongs: a hash of the sources of a choice's kernels,
// as a compiler sees them, and of their launches. Choices with the same hash, also of different
// versions of KernelGen, have the same kernels.

#ifndef KG_GEN_SOURCE_IDENTITY_H
#define KG_GEN_SOURCE_IDENTITY_H

#include "base/hash.h"
#include "gen/choice.h"

// The hash of one source. Comments and white space do not count, except the line ends of
// preprocessor directives.
struct kg_hash kg_source_hash(const char *source, size_t length);

// The hash of all kernels of a choice and of their launches for its problem. Emits their sources.
// Returns false when out of memory.
bool kg_choice_hash(const struct kg_choice *choice, struct kg_hash *hash);

#endif
