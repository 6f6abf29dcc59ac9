// From syntax to ops: names looked up, ranks counted, ranges inferred, rules kept. check.c does
// signatures, clauses and goals; check_body.c statements and expressions.

#ifndef KG_LANG_CHECK_H
#define KG_LANG_CHECK_H

#include "lang/foreign_words.h"
#include "lang/syntax.h"

struct kg_check {
    struct kg_lang_job *job;
    const struct kg_syntax_file *file;
    const struct kg_syntax_op *syntax;
    struct kg_op *op;
    bool defined[KG_MAX_TENSORS];         // outputs and intermediates: by an earlier statement
    struct kg_span place[KG_MAX_TENSORS]; // where
};

// Checks one op. Its `description` and `source` are left to the caller.
struct kg_op *kg_lang_check_op(struct kg_lang_job *job, const struct kg_syntax_file *file,
                               const struct kg_syntax_op *syntax);

// The statements, into check->op.
void kg_lang_check_body(struct kg_check *check);

// A size expression.
const struct kg_expr *kg_lang_check_size(struct kg_check *check, const struct kg_node *node);
// The dtype or type variable a token names.
struct kg_type_name kg_lang_check_type(struct kg_check *check, const struct kg_token *token);
// panels.c: the shape of an input that is packed, and reads of it.
void kg_lang_declare_panels(struct kg_check *check, const struct kg_syntax_tensor *from,
                            struct kg_tensor *tensor);
void kg_lang_read_panels(struct kg_lang_job *job, struct kg_expr *read);
// check_ranges.c: the ranges of inputs that the goal names.
void kg_lang_check_ranges(struct kg_check *check);
// Refuses a call of a function of the language with too few or too many arguments.
void kg_lang_check_arity(struct kg_lang_job *job, const struct kg_node *call,
                         enum kg_function function);
// Refuses reserved names; `what` is "a tensor", "an index" ...
void kg_lang_check_name(struct kg_lang_job *job, const struct kg_token *name, const char *what);

// check_advice.c: advice in the names at hand.
// Names for what is said of a call to a function of another language.
void kg_lang_names_at_hand(struct kg_check *check, const struct kg_syntax_statement *statement,
                           const struct kg_node *call, struct kg_foreign_names *names);
// For an `index` in the subscripts of `read` that nothing names.
const char *kg_lang_advise_reduction(struct kg_check *check,
                                     const struct kg_syntax_statement *statement,
                                     const struct kg_node *read, const char *index);

struct kg_size *kg_lang_find_size(const struct kg_op *op, const char *name);
struct kg_tensor *kg_lang_find_tensor(const struct kg_op *op, const char *name);
struct kg_typevar *kg_lang_find_typevar(const struct kg_op *op, const char *name);

#endif
