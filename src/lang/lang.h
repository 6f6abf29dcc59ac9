// From text to ops, and from an op to an instance. See op.h for what comes out.

#ifndef KG_LANG_LANG_H
#define KG_LANG_LANG_H

#include "base/text.h"
#include "lang/op.h"

struct kg_file {
    const char *name;     // as shown in diagnostics
    const char *warnings; // of functions, "" for none; those of ops are theirs
    int op_count;
    struct kg_op **ops;
};

// Parses and checks every op of the text. `text` need not outlive the call. On failure the error
// holds "file:line:column: error: ..." with the line, a caret and what to do; arena contents are
// then garbage but safe to free.
enum kg_status kg_lang_parse(struct kg_arena *arena, const char *name, const char *text,
                             size_t length, struct kg_file **file, struct kg_error *error);

// The op called `name`; with a NULL name, the only op of the file. Unknown or ambiguous names give
// KG_ERROR_ARGUMENT with the list and a suggestion.
enum kg_status kg_lang_select(const struct kg_file *file, const char *name, struct kg_op **op,
                              struct kg_error *error);

// Build-time choices, by id. `dtypes[i]` for op->typevars[i]; `values`/`reals` for params in
// op->sizes (entries of plain sizes are ignored).
struct kg_bindings {
    enum kg_dtype dtypes[KG_DTYPE_COUNT];
    int64_t values[KG_MAX_SIZES];
    double reals[KG_MAX_SIZES];
};

// The first allowed dtype of each variable and the default of each param.
void kg_lang_default_bindings(const struct kg_op *op, struct kg_bindings *bindings);

// Deep-copies the op with dtypes and params bound and every expression typed.
enum kg_status kg_lang_instantiate(struct kg_arena *arena, const struct kg_op *op,
                                   const struct kg_bindings *bindings, struct kg_op **instance,
                                   struct kg_error *error);

// Value of a size expression of an instance under `sizes` (by kg_size id). Overflow, division by
// zero and results outside [0, 2^48] give KG_ERROR_SHAPE.
enum kg_status kg_lang_size_value(const struct kg_expr *expr, const int64_t *sizes, int64_t *value,
                                  struct kg_error *error);
// The same without the limits: it may be negative.
enum kg_status kg_lang_size_signed(const struct kg_expr *expr, const int64_t *sizes, int64_t *value,
                                   struct kg_error *error);

// Infers every size from the shapes of tensors of an instance. `shapes[i]` belongs to
// op->tensors[i]; ranks[i] < 0 means unknown. `sizes` holds -1 where unknown on entry. A
// contradiction names tensor, dimension, and both values; a size nothing binds is named too.
enum kg_status kg_lang_infer_sizes(const struct kg_op *instance, const int *ranks,
                                   const int64_t (*shapes)[KG_MAX_RANK], int64_t *sizes,
                                   struct kg_error *error);

// The row with the most elements, by the product of its sizes; the last one of several, -1 without
// rows.
int kg_lang_largest_row(const struct kg_shapes *shapes);

// A range by the values of a dtype that lie in it: the first and the last one. False: there is
// none.
bool kg_lang_range_of(const struct kg_range *range, enum kg_dtype dtype, double *low, double *high);

// Writes an expression, a statement, a size expression or an input's or output's declaration back
// in the language's own syntax. Reads of a packed input are written as the definition has them.
void kg_lang_print_expr(struct kg_text *text, const struct kg_expr *expr);
void kg_lang_print_statement(struct kg_text *text, const struct kg_statement *statement);
void kg_lang_print_tensor(struct kg_text *text, const struct kg_tensor *tensor);

// "file:line:column: error: MESSAGE" and the line with carets, each with a newline; for what is
// found wrong with an instance once its sizes are known.
void kg_lang_show_error(struct kg_text *text, const struct kg_op *op, struct kg_span span,
                        const char *message);

#endif
