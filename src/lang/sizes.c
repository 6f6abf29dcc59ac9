// Sizes: values of size expressions, and sizes inferred from shapes.

#include "lang/lang.h"
#include "lang/panels.h"

#include <string.h>

#define MAX_SIZE ((int64_t)1 << 48)

// A value on the way, which may be negative: H + 2*Q - R.
static enum kg_status evaluate(const struct kg_expr *expr, const int64_t *sizes, int64_t *value,
                               struct kg_error *error)
{
    *value = 0;
    if (expr->kind == KG_EXPR_NUMBER) {
        *value = expr->integer;
        return KG_OK;
    }
    if (expr->kind == KG_EXPR_SIZE) {
        *value = expr->size->is_param ? expr->size->value : sizes[expr->size->id];
        if (!expr->size->is_param && *value < 0)
            return kg_error_set(error, KG_ERROR_SHAPE, "the size %s is not known",
                                expr->size->name);
        return KG_OK;
    }
    int64_t a, b;
    enum kg_status status = evaluate(expr->arguments[0], sizes, &a, error);
    if (status == KG_OK)
        status = evaluate(expr->arguments[1], sizes, &b, error);
    if (status != KG_OK)
        return status;
    bool overflow = false;
    switch (expr->function) {
    case KG_FN_ADD:
        overflow = __builtin_add_overflow(a, b, value);
        break;
    case KG_FN_SUB:
        overflow = __builtin_sub_overflow(a, b, value);
        break;
    case KG_FN_MUL:
        overflow = __builtin_mul_overflow(a, b, value);
        break;
    default:
        if (b == 0)
            return kg_error_set(error, KG_ERROR_SHAPE, "division by zero");
        overflow = a == INT64_MIN && b == -1;
        if (overflow)
            break;
        // C truncates; floor and ceiling differ from it when the division is inexact.
        if (expr->function == KG_FN_DIV)
            *value = a / b - (a % b != 0 && (a < 0) != (b < 0));
        else if (expr->function == KG_FN_CEILDIV)
            *value = a / b + (a % b != 0 && (a < 0) == (b < 0));
        else
            *value = a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
        break;
    }
    if (overflow) {
        *value = 0;
        return kg_error_set(error, KG_ERROR_SHAPE, "overflow");
    }
    return KG_OK;
}

enum kg_status kg_lang_size_signed(const struct kg_expr *expr, const int64_t *sizes, int64_t *value,
                                   struct kg_error *error)
{
    return evaluate(expr, sizes, value, error);
}

enum kg_status kg_lang_size_value(const struct kg_expr *expr, const int64_t *sizes, int64_t *value,
                                  struct kg_error *error)
{
    enum kg_status status = evaluate(expr, sizes, value, error);
    if (status == KG_OK && *value < 0)
        status = kg_error_set(error, KG_ERROR_SHAPE, "it is negative (%lld)", (long long)*value);
    else if (status == KG_OK && *value > MAX_SIZE)
        status = kg_error_set(error, KG_ERROR_SHAPE, "it is larger than 2^48");
    if (status == KG_OK)
        return KG_OK;
    *value = 0;
    if (error && expr->kind == KG_EXPR_CALL) {
        struct kg_text text = {0};
        kg_lang_print_expr(&text, expr);
        kg_error_prefix(error, "size %.200s", kg_text_string(&text));
        kg_text_free(&text);
    }
    return status;
}

static enum kg_status check_rank(const struct kg_tensor *tensor, int rank, struct kg_error *error)
{
    if (rank < 0 || rank == tensor->rank)
        return KG_OK;
    struct kg_text text = {0};
    if (tensor->panel_rows) {
        kg_text_add(&text, ": it is packed and lies in memory as [");
        for (int d = 0; d < tensor->rank; d++) {
            kg_text_add(&text, d ? ", " : "");
            kg_lang_print_expr(&text, tensor->dims[d]);
        }
        kg_text_add(&text, "]");
    }
    enum kg_status status =
        kg_error_set(error, KG_ERROR_SHAPE, "\"%s\" has %d dimension%s, not %d%s", tensor->name,
                     tensor->rank, tensor->rank == 1 ? "" : "s", rank, kg_text_string(&text));
    kg_text_free(&text);
    return status;
}

// Where a size got its value.
struct origin {
    const struct kg_tensor *tensor; // NULL: given by the caller
    int dimension;
};

static enum kg_status bind_dimension(const struct kg_tensor *tensor, int dimension, int64_t extent,
                                     int64_t *sizes, struct origin *origins, struct kg_error *error)
{
    if (extent < 0 || extent > MAX_SIZE)
        return kg_error_set(error, KG_ERROR_SHAPE,
                            "dimension %d of \"%s\" is %lld; sizes are 0 to 2^48", dimension,
                            tensor->name, (long long)extent);
    const struct kg_expr *dim = tensor->dims[dimension];
    if (dim->kind != KG_EXPR_SIZE || dim->size->is_param)
        return KG_OK;
    int64_t *value = &sizes[dim->size->id];
    struct origin *origin = &origins[dim->size->id];
    if (*value < 0) {
        *value = extent;
        *origin = (struct origin){tensor, dimension};
        return KG_OK;
    }
    if (*value == extent)
        return KG_OK;
    if (!origin->tensor)
        return kg_error_set(error, KG_ERROR_SHAPE, "dimension %d of \"%s\" is %lld, but %s is %lld",
                            dimension, tensor->name, (long long)extent, dim->size->name,
                            (long long)*value);
    return kg_error_set(error, KG_ERROR_SHAPE,
                        "dimension %d of \"%s\" is %lld, but %s is %lld (dimension %d of \"%s\")",
                        dimension, tensor->name, (long long)extent, dim->size->name,
                        (long long)*value, origin->dimension, origin->tensor->name);
}

static enum kg_status check_dimension(const struct kg_tensor *tensor, int dimension, int64_t extent,
                                      const int64_t *sizes, struct kg_error *error)
{
    int64_t value;
    enum kg_status status = kg_lang_size_value(tensor->dims[dimension], sizes, &value, error);
    if (status != KG_OK) {
        kg_error_prefix(error, "dimension %d of \"%s\"", dimension, tensor->name);
        return status;
    }
    if (value == extent)
        return KG_OK;
    struct kg_text text = {0};
    kg_lang_print_expr(&text, tensor->dims[dimension]);
    status = kg_error_set(error, KG_ERROR_SHAPE, "dimension %d of \"%s\" is %lld, but %s is %lld",
                          dimension, tensor->name, (long long)extent, kg_text_string(&text),
                          (long long)value);
    kg_text_free(&text);
    return status;
}

static enum kg_status refuse_unknown(const struct kg_op *instance, const struct kg_size *size,
                                     struct kg_error *error)
{
    for (int i = 0; i < instance->input_count; i++) {
        const struct kg_tensor *tensor = instance->tensors[i];
        if (tensor->panel_rows &&
            (tensor->panel_rows->size == size || tensor->panel_columns->size == size))
            return kg_error_set(
                error, KG_ERROR_SHAPE,
                "no shape tells the size %s: \"%s\" is packed, in whole panels of %d "
                "rows and %d columns; give %s with it",
                size->name, tensor->name, KG_PANEL_ROWS, KG_PANEL_COLUMNS, size->name);
    }
    return kg_error_set(error, KG_ERROR_SHAPE, "no shape tells the size %s", size->name);
}

enum kg_status kg_lang_infer_sizes(const struct kg_op *instance, const int *ranks,
                                   const int64_t (*shapes)[KG_MAX_RANK], int64_t *sizes,
                                   struct kg_error *error)
{
    struct origin origins[KG_MAX_SIZES] = {0};
    int count = instance->input_count + instance->output_count;
    for (int i = 0; i < instance->size_count; i++)
        if (instance->sizes[i]->is_param)
            sizes[i] = instance->sizes[i]->value;
    for (int i = 0; i < count; i++) {
        const struct kg_tensor *tensor = instance->tensors[i];
        enum kg_status status = check_rank(tensor, ranks[i], error);
        for (int d = 0; status == KG_OK && d < tensor->rank && ranks[i] >= 0; d++)
            status = bind_dimension(tensor, d, shapes[i][d], sizes, origins, error);
        if (status != KG_OK)
            return status;
    }
    for (int i = 0; i < instance->size_count; i++)
        if (sizes[i] < 0 && !instance->sizes[i]->is_param)
            return refuse_unknown(instance, instance->sizes[i], error);
    for (int i = 0; i < count; i++)
        for (int d = 0; d < instance->tensors[i]->rank && ranks[i] >= 0; d++) {
            enum kg_status status =
                check_dimension(instance->tensors[i], d, shapes[i][d], sizes, error);
            if (status != KG_OK)
                return status;
        }
    return KG_OK;
}

int kg_lang_largest_row(const struct kg_shapes *shapes)
{
    int largest = -1;
    double most = 0;
    for (int row = 0; row < shapes->row_count; row++) {
        double product = 1;
        for (int i = 0; i < shapes->size_count; i++)
            product *= (double)shapes->rows[row * shapes->size_count + i];
        if (product >= most)
            largest = row, most = product;
    }
    return largest;
}
