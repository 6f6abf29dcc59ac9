// Typing: which type every expression of an instance computes in. Called bottom-up, on nodes whose
// arguments have their types already.

#ifndef KG_LANG_TYPES_H
#define KG_LANG_TYPES_H

#include "lang/diagnostics.h"

// Sets the type of a CALL, CAST or REDUCE; gives literals among its arguments theirs.
void kg_lang_type_expr(struct kg_lang_job *job, struct kg_expr *expr);
// `expr` is to be used as a `type`: literals take it, and what is made of literals, sizes and
// indices only is computed in F64 when an F64 is wanted.
void kg_lang_adapt(struct kg_expr *expr, enum kg_type type);
// May the value of a statement be stored in its output?
void kg_lang_check_store(struct kg_lang_job *job, const struct kg_tensor *tensor,
                         struct kg_expr *value);
// Subscripts are integers.
void kg_lang_check_integer(struct kg_lang_job *job, const struct kg_expr *subscript);
// The value pad() gives must be of its tensor's type.
void kg_lang_check_pad(struct kg_lang_job *job, const struct kg_expr *read, struct kg_expr *pad);

// Settles in which dtypes the intermediates of a typed instance lie in memory: local_dtypes.c.
void kg_lang_set_local_dtypes(struct kg_op *op);

#endif
