// Expressions but for calls, reads and reductions, which have files of their own.

#include "export/torch_writer.h"

#include <math.h>

// Is the number a value of every float dtype, with room to spare? 256 steps fit a bf16.
static bool is_in_every_dtype(double number)
{
    return isinf(number) || (number == floor(number) && fabs(number) <= 256) ||
           (number * 16 == floor(number * 16) && fabs(number) <= 8);
}

static struct kg_torch_value number(struct kg_torch_writer *writer, const struct kg_expr *expr)
{
    struct kg_text text = {0};
    bool is_float = expr->type == KG_TYPE_F32 || expr->type == KG_TYPE_F64;
    if (expr->size)
        kg_python_size_name(&text, writer->op, expr->size);
    else if (expr->type == KG_TYPE_BOOL)
        kg_text_add(&text, expr->integer ? "True" : "False");
    else if (expr->is_integer)
        kg_text_format(&text, "%lld", (long long)expr->integer);
    else
        kg_python_number(&text, expr->number);
    bool is_negative = expr->is_integer ? expr->integer < 0 : signbit(expr->number) != 0;
    struct kg_torch_value value = kg_torch_scalar(
        kg_torch_format(writer, "%s", kg_text_string(&text)),
        is_negative && !expr->size && isfinite(expr->number) ? PYTHON_UNARY : PYTHON_PRIMARY,
        expr->type);
    value.is_exact =
        !is_float || is_in_every_dtype(expr->is_integer ? (double)expr->integer : expr->number);
    writer->failed |= text.failed;
    kg_text_free(&text);
    return value;
}

// What stands at the same place of `generic` as `expr` does of `instance`.
static const struct kg_expr *twin(const struct kg_expr *generic, const struct kg_expr *instance,
                                  const struct kg_expr *expr)
{
    const struct kg_expr *found = instance == expr ? generic : NULL;
    for (int i = 0; i < instance->argument_count && !found; i++)
        found = twin(generic->arguments[i], instance->arguments[i], expr);
    if (!found && instance->pad)
        found = twin(generic->pad, instance->pad, expr);
    return found;
}

// An instance has forgotten which variable a cast named.
static const struct kg_typevar *variable_of(const struct kg_torch_writer *writer,
                                            const struct kg_expr *cast)
{
    for (int i = 0; i < writer->op->statement_count; i++) {
        const struct kg_expr *found =
            twin(writer->generic->statements[i]->value, writer->op->statements[i]->value, cast);
        if (found)
            return found->cast.variable;
    }
    return NULL;
}

// Through a dtype and back, as if the value were stored and loaded.
static struct kg_torch_value cast(struct kg_torch_writer *writer,
                                  const struct kg_torch_frame *frame, const struct kg_expr *expr)
{
    enum kg_dtype dtype = expr->cast.dtype;
    const char *name = kg_torch_dtype(dtype);
    struct kg_torch_value value = kg_torch_expression(writer, frame, expr->arguments[0]);
    kg_torch_sort(writer, &value);
    bool from_float = value.type == KG_TYPE_F32 || value.type == KG_TYPE_F64;
    if (value.scalar) {
        value.text = kg_torch_format(writer, "torch.tensor(%s)", value.text);
        value.level = PYTHON_PRIMARY;
        value.scalar = false;
    }
    const struct kg_typevar *variable = variable_of(writer, expr);
    int shown_count = writer->generic->input_count + writer->generic->output_count;
    for (int i = 0; variable && i < shown_count; i++)
        if (writer->generic->tensors[i]->type.variable == variable) {
            name = kg_torch_dtype_text(writer, i);
            break;
        }
    if (kg_dtype_is_truth(dtype)) {
        if (value.type != KG_TYPE_BOOL)
            value = kg_torch_binary(writer, value,
                                    "!=", kg_torch_scalar("0", PYTHON_PRIMARY, KG_TYPE_I64),
                                    PYTHON_COMPARE, KG_TYPE_BOOL);
        return value;
    }
    if (kg_dtypes[dtype].is_float) {
        enum kg_type type = kg_dtypes[dtype].compute;
        bool is_kept = kg_dtype_is_computed(dtype) && value.type == type;
        kg_torch_convert(writer, &value, value.type > type ? value.type : type);
        if (is_kept)
            return value;
        value.text = kg_torch_format(
            writer, "%s.to(%s)%s", kg_torch_at(writer, &value, PYTHON_PRIMARY), name,
            writer->is_reference || type == KG_TYPE_F64 ? ".double()" : ".float()");
        value.level = PYTHON_PRIMARY;
        value.type = type;
        return value;
    }
    kg_torch_convert(writer, &value, from_float ? value.type : KG_TYPE_I64);
    if (from_float) {
        kg_torch_use(writer, HELPER_TO_INTEGER);
        value.text = kg_torch_format(writer, "_to_integer(%s, %s)", value.text, name);
    } else if (dtype != KG_I64) {
        value.text = kg_torch_format(writer, "%s.to(%s).long()",
                                     kg_torch_at(writer, &value, PYTHON_PRIMARY), name);
    }
    value.level = from_float || dtype != KG_I64 ? PYTHON_PRIMARY : value.level;
    value.type = KG_TYPE_I64;
    return value;
}

struct kg_torch_value kg_torch_expression(struct kg_torch_writer *writer,
                                          const struct kg_torch_frame *frame,
                                          const struct kg_expr *expr)
{
    struct kg_torch_value value = {.text = "", .level = PYTHON_PRIMARY};
    switch (expr->kind) {
    case KG_EXPR_NUMBER:
        return number(writer, expr);
    case KG_EXPR_SIZE:
        return kg_torch_scalar(kg_torch_size_text(writer, expr), PYTHON_PRIMARY, expr->type);
    case KG_EXPR_INDEX:
        return kg_torch_index(writer, frame, expr->index);
    case KG_EXPR_READ:
        return kg_torch_read(writer, frame, expr);
    case KG_EXPR_CALL:
        return kg_torch_function_call(writer, frame, expr);
    case KG_EXPR_CAST:
        return cast(writer, frame, expr);
    case KG_EXPR_REDUCE:
        return kg_torch_reduction(writer, frame, expr);
    }
    return value;
}
