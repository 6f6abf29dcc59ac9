// Statements of a definition, one line of Python each.

#include "export/torch_function.h"

#include "export/torch_writer.h"
#include "gen/skeleton.h"

#include <string.h>

#define LINE_WIDTH 96

static const char *const helper_names[HELPER_COUNT] = {
    [HELPER_READ_PADDED] = "read_padded",
    [HELPER_QUOTIENT] = "quotient",
    [HELPER_REMAINDER] = "remainder",
    [HELPER_SHIFT_LEFT] = "shift_left",
    [HELPER_SHIFT_RIGHT] = "shift_right",
    [HELPER_TO_INTEGER] = "to_integer",
    [HELPER_UNPACKED] = "unpacked",
    [HELPER_SHIFTED] = "shifted",
    [HELPER_LARGEST] = "largest",
    [HELPER_SMALLEST] = "smallest",
    [HELPER_FIRST_LARGEST] = "first_largest",
    [HELPER_FIRST_SMALLEST] = "first_smallest",
};

// Copies one function of kernels/bundle/helpers.py.
static void add_helper(struct kg_text *text, const char *name)
{
    const char *all = kg_skeleton_find("bundle/helpers.py");
    struct kg_text head = {0};
    kg_text_format(&head, "\ndef %s(", name);
    const char *begin = all ? strstr(all, kg_text_string(&head)) : NULL;
    kg_text_free(&head);
    if (!begin) {
        text->failed = true;
        return;
    }
    const char *end = strstr(begin, "\n\n\n");
    kg_text_add(text, "\n");
    kg_text_add_bytes(text, begin, end ? (size_t)(end - begin + 1) : strlen(begin));
}

static bool is_read(const struct kg_expr *expr, const struct kg_tensor *tensor)
{
    if (expr->kind == KG_EXPR_READ && expr->tensor == tensor)
        return true;
    for (int i = 0; i < expr->argument_count; i++)
        if (is_read(expr->arguments[i], tensor))
            return true;
    return expr->pad && is_read(expr->pad, tensor);
}

static bool is_read_later(const struct kg_op *op, int statement)
{
    for (int i = statement + 1; i < op->statement_count; i++)
        if (is_read(op->statements[i]->value, op->statements[statement]->tensor))
            return true;
    return false;
}

static bool is_same_dtype(struct kg_torch_writer *writer, const struct kg_tensor *a, int b)
{
    return strcmp(kg_torch_dtype_text(writer, a->id), kg_torch_dtype_text(writer, b)) == 0;
}

// An output's value as it is returned: in its dtype, and in memory of its own.
static const char *stored(struct kg_torch_writer *writer, const struct kg_tensor *tensor,
                          const struct kg_torch_value *value)
{
    const char *text = kg_torch_at(writer, value, PYTHON_PRIMARY);
    enum kg_dtype dtype = tensor->type.dtype;
    struct kg_dtype_set set;
    kg_torch_dtypes(writer->generic, writer->op, tensor->id, &set);
    if (writer->is_reference) {
        bool to_float = kg_dtypes[dtype].is_float &&
                        (value->type == KG_TYPE_I64 || value->type == KG_TYPE_BOOL);
        bool to_integer =
            !kg_dtypes[dtype].is_float && value->type == KG_TYPE_BOOL && !kg_dtype_is_truth(dtype);
        return to_float     ? kg_torch_format(writer, "%s.double()", text)
               : to_integer ? kg_torch_format(writer, "%s.long()", text)
                            : value->text;
    }
    bool is_stored_type = value->raw ? is_same_dtype(writer, value->raw, tensor->id)
                                     : set.count == 1 && kg_dtype_is_computed(dtype) &&
                                           kg_dtypes[dtype].compute == value->type;
    if (!is_stored_type)
        return kg_torch_format(writer, "%s.to(%s)", text, kg_torch_dtype_text(writer, tensor->id));
    if (!value->is_view)
        return value->text;
    return kg_torch_format(writer, "%s.clone(memory_format=torch.contiguous_format)", text);
}

static void assign(struct kg_torch_writer *writer, const struct kg_tensor *tensor, const char *text)
{
    kg_text_format(&writer->body, "    %s = %s\n", kg_torch_name(writer, tensor->name), text);
}

// One statement. `returned` receives what the function returns for an output.
static void statement(struct kg_torch_writer *writer, int number, const char **returned)
{
    const struct kg_op *op = writer->op;
    const struct kg_statement *statement = op->statements[number];
    const struct kg_tensor *tensor = statement->tensor;
    struct kg_torch_frame frame = {.count = statement->index_count};
    int axes[KG_MAX_INDICES];
    for (int i = 0; i < frame.count; i++) {
        frame.indices[i] = statement->indices[i];
        axes[i] = i;
    }
    bool is_output = tensor->role == KG_ROLE_OUTPUT, later = is_read_later(op, number);
    const struct kg_expr *expr = statement->value;
    writer->keep_raw = is_output && !later && expr->kind == KG_EXPR_REDUCE &&
                       expr->reduce == KG_REDUCE_SUM && kg_torch_may_be_raw(writer, tensor);
    struct kg_torch_value value = kg_torch_expression(writer, &frame, expr);
    writer->keep_raw = false;
    kg_torch_sort(writer, &value);
    kg_torch_expand(writer, &frame, &value, frame.count, axes);
    if (value.raw && is_output && !is_same_dtype(writer, value.raw, tensor->id))
        kg_torch_convert(writer, &value, tensor->compute);
    bool wraps = is_output && later && !kg_dtypes[tensor->type.dtype].is_float &&
                 !kg_dtype_is_truth(tensor->type.dtype);
    if (wraps) { // an integer output is read as it is stored
        value.text =
            kg_torch_format(writer, "%s.to(%s).long()", kg_torch_at(writer, &value, PYTHON_PRIMARY),
                            kg_torch_dtype_text(writer, tensor->id));
        value.level = PYTHON_PRIMARY;
        value.type = KG_TYPE_I64;
        value.is_view = false;
    }
    if (!is_output || later) {
        assign(writer, tensor, value.text);
        writer->local_raw[tensor->id] = value.raw;
        value.text = kg_torch_name(writer, tensor->name);
        value.level = PYTHON_PRIMARY;
    }
    if (!is_output)
        return;
    const char *text = stored(writer, tensor, &value);
    bool is_last = number == op->statement_count - 1 && op->output_count == 1;
    if (!later && !(is_last && strlen(text) <= LINE_WIDTH - 11)) {
        assign(writer, tensor, text);
        text = kg_torch_name(writer, tensor->name);
    }
    returned[tensor->id] = text;
}

// The reference's inputs in its own types.
static void widen_inputs(struct kg_torch_writer *writer, struct kg_text *head)
{
    for (int i = 0; i < writer->op->input_count; i++) {
        const struct kg_tensor *tensor = writer->op->tensors[i];
        enum kg_dtype dtype = tensor->type.dtype;
        const char *name = kg_torch_name(writer, tensor->name);
        if (writer->dtypes >> i & 1)
            kg_text_format(head, "    %s_dtype = %s.dtype\n", name, name);
        if (kg_dtype_is_packed(dtype)) {
            kg_torch_use(writer, HELPER_UNPACKED);
            kg_text_format(head, "    %s = unpacked(%s, ", name, name);
            kg_python_shape(head, tensor);
            kg_text_format(head, ", signed=%s)\n", kg_dtypes[dtype].is_signed ? "True" : "False");
        } else if (writer->is_reference && !kg_dtype_is_truth(dtype)) {
            kg_text_format(head, "    %s = %s.%s()\n", name, name,
                           kg_dtypes[dtype].is_float ? "double" : "long");
        }
    }
}

// In the reference, params are numbers that a kernel rounds to its compute type.
static void bind_params(struct kg_torch_writer *writer, struct kg_text *head)
{
    for (int i = 0; i < writer->op->size_count && writer->is_reference; i++) {
        const struct kg_size *size = writer->op->sizes[i];
        if (!size->is_param || !size->is_real)
            continue;
        kg_text_add(head, "    ");
        kg_python_size_name(head, size);
        kg_text_add(head, " = real(");
        kg_python_number(head, size->real);
        kg_text_add(head, ")\n");
    }
}

enum kg_status kg_torch_function(const struct kg_op *generic, const struct kg_op *instance,
                                 bool reference, struct kg_torch_code *code, struct kg_error *error)
{
    struct kg_torch_writer writer = {.op = instance, .generic = generic, .is_reference = reference};
    const char *returned[KG_MAX_TENSORS] = {0};
    *code = (struct kg_torch_code){0};
    for (int i = 0; i < instance->statement_count; i++)
        statement(&writer, i, returned);
    widen_inputs(&writer, &code->body);
    bind_params(&writer, &code->body);
    kg_text_add(&code->body, kg_text_string(&writer.body));
    kg_text_add(&code->body, "    return ");
    for (int i = 0; i < instance->output_count; i++) {
        const char *text = returned[instance->input_count + i];
        kg_text_format(&code->body, "%s%s", i ? ", " : "", text ? text : "None");
    }
    kg_text_add(&code->body, "\n");
    for (int i = 0; i < HELPER_COUNT; i++)
        if (writer.helpers >> i & 1)
            add_helper(&code->helpers, helper_names[i]);
    bool failed = writer.failed || writer.arena.failed || writer.body.failed || code->body.failed ||
                  code->helpers.failed;
    kg_text_free(&writer.body);
    kg_arena_free(&writer.arena);
    if (!failed)
        return KG_OK;
    kg_torch_code_free(code);
    return kg_error_set(error, KG_ERROR_MEMORY, "out of memory: the PyTorch function of %s",
                        instance->name);
}

void kg_torch_code_free(struct kg_torch_code *code)
{
    kg_text_free(&code->body);
    kg_text_free(&code->helpers);
    *code = (struct kg_torch_code){0};
}
