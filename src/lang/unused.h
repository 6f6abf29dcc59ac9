// What a definition names and never uses: warnings, as it may be meant.

#ifndef KG_LANG_UNUSED_H
#define KG_LANG_UNUSED_H

#include "lang/syntax.h"

// Inputs and intermediates that are never read, params and type variables that nothing depends on.
// "" when there are none. An input that is the only one to tell a size is used by that.
const char *kg_lang_unused_of_op(struct kg_lang_job *job, const struct kg_op *op);
// Functions that no op calls, and parameters that a function does not use.
const char *kg_lang_unused_functions(struct kg_lang_job *job, const struct kg_syntax_file *file);

#endif
