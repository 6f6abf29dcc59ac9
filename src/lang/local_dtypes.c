// The dtype in which intermediates of an instance lie in memory. A value is never rounded by being
// kept: an intermediate is narrower than its compute type only where its value is that of a cast
// anyway, or where every reader casts it first.

#include "lang/types.h"

enum { LEAST_BITS = 8, HALF_BITS = 16 };

// How the statements of an op read one tensor.
struct readers {
    const struct kg_tensor *tensor;
    int count;
    enum kg_dtype dtype; // that all of them cast to, where `agree`
    bool agree;
};

static void add_readers(struct readers *readers, const struct kg_expr *expr,
                        const struct kg_expr *parent)
{
    if (expr->kind == KG_EXPR_READ && expr->tensor == readers->tensor) {
        bool casts = parent && parent->kind == KG_EXPR_CAST && !expr->pad;
        enum kg_dtype dtype = casts ? parent->cast.dtype : KG_F32;
        readers->agree = casts && (readers->count == 0 || readers->dtype == dtype) &&
                         (readers->count == 0 || readers->agree);
        readers->dtype = dtype;
        readers->count++;
    }
    if (expr->pad)
        add_readers(readers, expr->pad, NULL);
    for (int i = 0; i < expr->argument_count; i++)
        add_readers(readers, expr->arguments[i], expr);
}

static bool is_narrower(enum kg_dtype dtype, const struct kg_tensor *tensor)
{
    enum kg_dtype exact = kg_type_dtype(tensor->compute);
    return kg_dtypes[dtype].compute == tensor->compute && kg_dtypes[dtype].bits >= LEAST_BITS &&
           kg_dtypes[dtype].bits < kg_dtypes[exact].bits;
}

static enum kg_dtype dtype_of(const struct kg_op *op, const struct kg_statement *statement)
{
    const struct kg_tensor *tensor = statement->tensor;
    const struct kg_expr *value = statement->value;
    if (value->kind == KG_EXPR_CAST && is_narrower(value->cast.dtype, tensor))
        return value->cast.dtype;
    struct readers readers = {.tensor = tensor};
    for (int i = 0; i < op->statement_count; i++)
        add_readers(&readers, op->statements[i]->value, NULL);
    // A cast of a float to an integer is no rounding, and is left to the reader.
    bool is_half = readers.agree && kg_dtypes[readers.dtype].bits == HALF_BITS &&
                   is_narrower(readers.dtype, tensor) && tensor->compute == KG_TYPE_F32;
    return is_half ? readers.dtype : kg_type_dtype(tensor->compute);
}

void kg_lang_set_local_dtypes(struct kg_op *op)
{
    for (int i = 0; i < op->statement_count; i++) {
        const struct kg_tensor *tensor = op->statements[i]->tensor;
        if (tensor->role == KG_ROLE_LOCAL)
            op->tensors[tensor->id]->memory = dtype_of(op, op->statements[i]);
    }
}
