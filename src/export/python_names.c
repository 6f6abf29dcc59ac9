// Names, dtypes and sizes of a definition as Python and PyTorch write them.

#include "export/python_names.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Python's keywords, and the modules that emitted files import.
static const char *const reserved_words[] = {
    "False",   "None",     "True",     "and",    "as",     "assert", "async",  "await",
    "break",   "class",    "continue", "def",    "del",    "elif",   "else",   "except",
    "finally", "for",      "from",     "global", "if",     "import", "in",     "is",
    "lambda",  "nonlocal", "not",      "or",     "pass",   "raise",  "return", "try",
    "while",   "with",     "yield",    "torch",  "triton", "tl",
};

void kg_python_name(struct kg_text *text, const char *name)
{
    kg_text_add(text, name);
    for (size_t i = 0; i < sizeof reserved_words / sizeof reserved_words[0]; i++)
        if (strcmp(name, reserved_words[i]) == 0) {
            kg_text_add(text, "_1");
            return;
        }
}

void kg_python_size_name(struct kg_text *text, const struct kg_op *op, const struct kg_size *size)
{
    if (!size->is_param) {
        kg_python_name(text, size->name);
        return;
    }
    size_t before = text->length;
    for (const char *c = size->name; *c; c++)
        kg_text_format(text, "%c", toupper((unsigned char)*c));
    bool taken = false;
    for (int i = 0; i < op->size_count && text->data; i++)
        taken |= i != size->id && strcmp(op->sizes[i]->name, text->data + before) == 0;
    for (int i = 0; i < op->tensor_count && text->data; i++)
        taken |= strcmp(op->tensors[i]->name, text->data + before) == 0;
    if (taken)
        kg_text_add(text, "_PARAM");
}

void kg_python_number(struct kg_text *text, double number)
{
    char digits[40];
    if (!isfinite(number)) {
        kg_text_format(text, "float(\"%s\")", isnan(number) ? "nan" : number < 0 ? "-inf" : "inf");
        return;
    }
    for (int precision = 1; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, number);
        char *comma = strchr(digits, ','); // some locales' decimal point
        if (comma)
            *comma = '.';
        if (strtod(digits, NULL) == number)
            break;
    }
    kg_text_add(text, digits);
    if (!strpbrk(digits, ".e"))
        kg_text_add(text, ".0");
}

// Levels as in Python: sums below products below what needs no parentheses.
static void print_size(struct kg_text *text, const struct kg_op *op, const struct kg_expr *expr,
                       int lowest)
{
    if (expr->kind == KG_EXPR_SIZE || (expr->kind == KG_EXPR_NUMBER && expr->size)) {
        kg_python_size_name(text, op, expr->size);
        return;
    }
    if (expr->kind == KG_EXPR_NUMBER) {
        kg_text_format(text, "%lld", (long long)expr->integer);
        return;
    }
    if (expr->function == KG_FN_CEILDIV || expr->function == KG_FN_NEG) {
        kg_text_add(text, lowest > 2 ? "(-" : "-");
        if (expr->function == KG_FN_NEG)
            print_size(text, op, expr->arguments[0], 3);
        else {
            kg_text_add(text, "(-");
            print_size(text, op, expr->arguments[0], 3);
            kg_text_add(text, " // ");
            print_size(text, op, expr->arguments[1], 3);
            kg_text_add(text, ")");
        }
        kg_text_add(text, lowest > 2 ? ")" : "");
        return;
    }
    static const struct {
        enum kg_function function;
        const char *sign;
        int level;
    } signs[] = {{KG_FN_ADD, " + ", 1},
                 {KG_FN_SUB, " - ", 1},
                 {KG_FN_MUL, " * ", 2},
                 {KG_FN_DIV, " // ", 2},
                 {KG_FN_MOD, " % ", 2}};
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
        if (signs[i].function != expr->function)
            continue;
        kg_text_add(text, signs[i].level < lowest ? "(" : "");
        print_size(text, op, expr->arguments[0], signs[i].level);
        kg_text_add(text, signs[i].sign);
        print_size(text, op, expr->arguments[1], signs[i].level + 1);
        kg_text_add(text, signs[i].level < lowest ? ")" : "");
    }
}

void kg_python_size(struct kg_text *text, const struct kg_op *op, const struct kg_expr *expr)
{
    print_size(text, op, expr, 1);
}

void kg_python_shape(struct kg_text *text, const struct kg_op *op, const struct kg_tensor *tensor)
{
    kg_text_add(text, "(");
    for (int d = 0; d < tensor->rank; d++) {
        kg_text_add(text, d ? ", " : "");
        kg_python_size(text, op, tensor->dims[d]);
    }
    kg_text_add(text, tensor->rank == 1 ? ",)" : ")");
}

const char *kg_torch_dtype(enum kg_dtype dtype)
{
    static const char *const names[KG_DTYPE_COUNT] = {
        [KG_F16] = "torch.float16",
        [KG_BF16] = "torch.bfloat16",
        [KG_F32] = "torch.float32",
        [KG_F64] = "torch.float64",
        [KG_F8E4M3] = "torch.float8_e4m3fn",
        [KG_F8E5M2] = "torch.float8_e5m2",
        [KG_I8] = "torch.int8",
        [KG_U8] = "torch.uint8",
        [KG_I16] = "torch.int16",
        [KG_U16] = "torch.uint16",
        [KG_I32] = "torch.int32",
        [KG_U32] = "torch.uint32",
        [KG_I64] = "torch.int64",
        [KG_BOOL] = "torch.bool",
        [KG_U4] = "torch.uint8",
        [KG_I4] = "torch.uint8",
    };
    return names[dtype];
}

void kg_torch_dtypes(const struct kg_op *generic, const struct kg_op *instance, int tensor,
                     struct kg_dtype_set *set)
{
    enum kg_dtype bound = instance->tensors[tensor]->type.dtype;
    *set = (struct kg_dtype_set){
        .variable = generic->tensors[tensor]->type.variable, .count = 1, .dtypes = {bound}};
    if (!set->variable)
        return;
    for (int i = 0; i < generic->input_count && !set->shown_by; i++)
        if (generic->tensors[i]->type.variable == set->variable)
            set->shown_by = instance->tensors[i];
    for (int i = 0; i < set->variable->count; i++) {
        enum kg_dtype other = set->variable->allowed[i];
        if (other != bound && kg_dtypes[other].compute == kg_dtypes[bound].compute &&
            kg_dtype_is_packed(other) == kg_dtype_is_packed(bound))
            set->dtypes[set->count++] = other;
    }
}

void kg_torch_allowed(const struct kg_op *generic, const struct kg_op *instance, int tensor,
                      struct kg_dtype_set *set)
{
    kg_torch_dtypes(generic, instance, tensor, set);
    set->count = 1;
    for (int i = 0; set->variable && i < set->variable->count; i++)
        if (set->variable->allowed[i] != set->dtypes[0])
            set->dtypes[set->count++] = set->variable->allowed[i];
}

bool kg_torch_variable_is_shown(const struct kg_op *generic, const struct kg_typevar *variable)
{
    for (int i = 0; i < generic->input_count; i++)
        if (generic->tensors[i]->type.variable == variable)
            return true;
    return false;
}

bool kg_torch_size_is_shown(const struct kg_op *instance, const struct kg_size *size)
{
    for (int i = 0; i < instance->input_count; i++) {
        const struct kg_tensor *tensor = instance->tensors[i];
        for (int d = 0; d < tensor->rank; d++)
            if (tensor->dims[d]->kind == KG_EXPR_SIZE && tensor->dims[d]->size == size &&
                !kg_dtype_is_packed(tensor->type.dtype))
                return true;
    }
    return false;
}
