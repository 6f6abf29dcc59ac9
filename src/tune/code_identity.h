// Which candidates are the same thing: they run alike, whatever their sources look like.

#ifndef KG_TUNE_LIKENESS_H
#define KG_TUNE_LIKENESS_H

#include "gen/built.h"

// Two candidates of one hash run alike. `*by_code`: their instructions and launches were looked at,
// where a limit on registers that does not bind, say, makes no difference; else their sources.
struct kg_hash kg_code_identity(const struct kg_built *built, bool *by_code);

#endif
