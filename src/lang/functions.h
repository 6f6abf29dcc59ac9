// A file's own functions, `fn mish(x) = x * tanh(softplus(x))`. Calls are written out before
// anything else looks at an op: what comes behind the parser knows no functions but its own.

#ifndef KG_LANG_FUNCTIONS_H
#define KG_LANG_FUNCTIONS_H

#include "lang/syntax.h"

// Checks all functions of the file; each may call those above it.
void kg_lang_check_functions(struct kg_lang_job *job, const struct kg_syntax_file *file);

// Replaces the calls in an op's statements by the bodies of the functions, which become users->user
// == op. `terms` counts what the file's expansions have made, which is bounded.
void kg_lang_expand_functions(struct kg_lang_job *job, const struct kg_syntax_file *file,
                              struct kg_syntax_op *op, int *terms);

#endif
