// Detects candidates that run the same code, although their sources differ.

#ifndef KG_TUNE_LIKENESS_H
#define KG_TUNE_LIKENESS_H

#include "gen/built.h"

// Candidates with equal hashes run the same code. `*by_code` is true when instructions and launches
// were compared, where a limit on registers that does not bind makes no difference; otherwise the
// hash is of the sources.
struct kg_hash kg_code_identity(const struct kg_built *built, bool *by_code);

#endif
