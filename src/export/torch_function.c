// Statements of a definition, one line of Python each.

#include "export/torch_function.h"

#include "export/torch_writer.h"
#include "gen/skeleton.h"
#include "lang/lang.h"

#include <string.h>

#define LINE_WIDTH 96

static const char *const helper_names[HELPER_COUNT] = {
    [HELPER_READ_PADDED] = "_read_padded",
    [HELPER_QUOTIENT] = "_quotient",
    [HELPER_REMAINDER] = "_remainder",
    [HELPER_SHIFT_LEFT] = "_shift_left",
    [HELPER_SHIFT_RIGHT] = "_shift_right",
    [HELPER_TO_INTEGER] = "_to_integer",
    [HELPER_UNPACKED] = "_unpacked",
    [HELPER_PACKED] = "_packed",
    [HELPER_SHIFTED] = "_shifted",
    [HELPER_LARGEST] = "_largest",
    [HELPER_SMALLEST] = "_smallest",
    [HELPER_FIRST_LARGEST] = "_first_largest",
    [HELPER_FIRST_SMALLEST] = "_first_smallest",
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
    if (kg_dtype_is_packed(dtype)) {
        kg_torch_use(writer, HELPER_PACKED);
        return kg_torch_format(writer, "_packed(%s)", value->text);
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

// An integer as it is stored and read again.
static const char *wrapped(struct kg_torch_writer *writer, const struct kg_tensor *tensor,
                           const char *text)
{
    enum kg_dtype dtype = tensor->type.dtype;
    if (!kg_dtype_is_packed(dtype))
        return kg_torch_format(writer, "%s.to(%s).long()", text,
                               kg_torch_dtype_text(writer, tensor->id));
    return kg_torch_format(
        writer, kg_dtypes[dtype].is_signed ? "((%s.long() & 15 ^ 8) - 8)" : "(%s.long() & 15)",
        text);
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
        value.text = wrapped(writer, tensor, kg_torch_at(writer, &value, PYTHON_PRIMARY));
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
            kg_text_format(head, "    %s = _unpacked(%s, ", name, name);
            kg_python_shape(head, writer->op, tensor);
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
        kg_python_size_name(head, writer->op, size);
        kg_text_add(head, " = _real(");
        kg_python_number(head, size->real);
        kg_text_add(head, ")\n");
    }
}

// The function's statements for the dtypes of one instance. False when out of memory.
static bool write_body(const struct kg_op *generic, const struct kg_op *instance, bool reference,
                       struct kg_text *body, unsigned *helpers)
{
    struct kg_torch_writer writer = {.op = instance, .generic = generic, .is_reference = reference};
    const char *returned[KG_MAX_TENSORS] = {0};
    for (int i = 0; i < instance->statement_count; i++)
        statement(&writer, i, returned);
    widen_inputs(&writer, body);
    bind_params(&writer, body);
    kg_text_add(body, kg_text_string(&writer.body));
    kg_text_add(body, "    return ");
    for (int i = 0; i < instance->output_count; i++) {
        const char *text = returned[instance->input_count + i];
        kg_text_format(body, "%s%s", i ? ", " : "", text ? text : "None");
    }
    kg_text_add(body, "\n");
    *helpers |= writer.helpers;
    bool failed = writer.failed || writer.arena.failed || writer.body.failed || body->failed;
    kg_text_free(&writer.body);
    kg_arena_free(&writer.arena);
    return !failed;
}

// ---- Dtypes that need code of their own

#define MAX_VARIANTS 24

// Dtypes of a variable that compute alike: code for one of them is code for all.
struct likes {
    int count;
    enum kg_dtype first[KG_DTYPE_COUNT];
};

static void find_likes(const struct kg_typevar *variable, enum kg_dtype bound, struct likes *likes)
{
    *likes = (struct likes){.count = 1, .first = {bound}};
    for (int i = 0; i < variable->count; i++) {
        bool known = false;
        for (int k = 0; k < likes->count; k++)
            known |= kg_dtypes[likes->first[k]].compute == kg_dtypes[variable->allowed[i]].compute;
        if (!known)
            likes->first[likes->count++] = variable->allowed[i];
    }
}

struct variant {
    struct kg_text body;
    struct kg_text condition; // of the dtypes
};

static void add_condition(const struct kg_op *generic, const struct kg_typevar *variable,
                          enum kg_dtype first, struct kg_text *text)
{
    struct kg_text what = {0};
    int count = 0;
    for (int i = 0; i < generic->input_count && !what.length; i++)
        if (generic->tensors[i]->type.variable == variable) {
            kg_python_name(&what, generic->tensors[i]->name);
            kg_text_add(&what, ".dtype");
        }
    if (!what.length)
        kg_text_add(&what, variable->name);
    kg_text_format(text, "%s%s in (", text->length ? " and " : "", kg_text_string(&what));
    for (int i = 0; i < variable->count; i++)
        if (kg_dtypes[variable->allowed[i]].compute == kg_dtypes[first].compute)
            kg_text_format(text, "%s%s", count++ ? ", " : "", kg_torch_dtype(variable->allowed[i]));
    kg_text_add(text, count == 1 ? ",)" : ")");
    kg_text_free(&what);
}

// The text, each line four blanks further in.
static void add_indented(struct kg_text *text, const char *lines)
{
    for (const char *line = lines; *line;) {
        size_t length = strcspn(line, "\n");
        kg_text_format(text, "    %.*s\n", (int)length, line);
        line += length + (line[length] == '\n');
    }
}

static enum kg_status write_variant(const struct kg_op *generic, const struct kg_bindings *bindings,
                                    bool reference, struct variant *variant, unsigned *helpers,
                                    struct kg_error *error)
{
    struct kg_arena arena = {0};
    struct kg_op *instance;
    enum kg_status status = kg_lang_instantiate(&arena, generic, bindings, &instance, error);
    if (status == KG_OK && !write_body(generic, instance, reference, &variant->body, helpers))
        status = kg_error_memory(error, "a PyTorch function");
    kg_arena_free(&arena);
    return status;
}

// Another variant with the same statements takes this one in.
static bool merge(struct variant *variants, int count)
{
    struct variant *last = &variants[count];
    for (int i = 0; i < count; i++) {
        if (strcmp(kg_text_string(&variants[i].body), kg_text_string(&last->body)) != 0)
            continue;
        kg_text_format(&variants[i].condition, " or %s", kg_text_string(&last->condition));
        kg_text_free(&last->body);
        kg_text_free(&last->condition);
        *last = (struct variant){0};
        return true;
    }
    return false;
}

static void join_variants(struct variant *variants, int count, struct kg_text *body)
{
    for (int i = 0; i < count; i++) {
        const char *lines = kg_text_string(&variants[i].body);
        if (i == count - 1) {
            kg_text_add(body, lines);
            break;
        }
        kg_text_format(body, "    if %s:\n", kg_text_string(&variants[i].condition));
        add_indented(body, lines);
    }
}

enum kg_status kg_torch_function(const struct kg_op *generic, const struct kg_op *instance,
                                 bool reference, struct kg_torch_code *code, struct kg_error *error)
{
    struct variant variants[MAX_VARIANTS + 1] = {0};
    struct likes likes[KG_DTYPE_COUNT];
    int at[KG_DTYPE_COUNT] = {0}, count = 0;
    unsigned helpers = 0;
    enum kg_status status = KG_OK;
    struct kg_bindings bindings;
    *code = (struct kg_torch_code){0};
    kg_lang_default_bindings(generic, &bindings);
    for (int i = 0; i < instance->size_count; i++) {
        bindings.values[i] = instance->sizes[i]->value;
        bindings.reals[i] = instance->sizes[i]->real;
    }
    for (int v = 0; v < generic->typevar_count; v++)
        find_likes(generic->typevars[v], instance->bound[v], &likes[v]);
    for (bool more = true; more && status == KG_OK;) {
        for (int v = 0; v < generic->typevar_count; v++) {
            bindings.dtypes[v] = likes[v].first[at[v]];
            if (likes[v].count > 1)
                add_condition(generic, generic->typevars[v], bindings.dtypes[v],
                              &variants[count].condition);
        }
        status = write_variant(generic, &bindings, reference, &variants[count], &helpers, error);
        count += status == KG_OK && !merge(variants, count);
        if (count > MAX_VARIANTS)
            status =
                kg_error_set(error, KG_ERROR_UNSUPPORTED,
                             "%s: the dtypes of its tensors differ in too many ways for a bundle",
                             generic->name);
        more = false;
        for (int v = generic->typevar_count - 1; v >= 0 && !more; v--) {
            more = ++at[v] < likes[v].count;
            if (!more)
                at[v] = 0;
        }
    }
    if (status == KG_OK)
        join_variants(variants, count, &code->body);
    for (int i = 0; i < HELPER_COUNT; i++)
        if (helpers >> i & 1)
            add_helper(&code->helpers, helper_names[i]);
    for (int i = 0; i <= MAX_VARIANTS; i++) {
        kg_text_free(&variants[i].body);
        kg_text_free(&variants[i].condition);
    }
    if (status == KG_OK && (code->body.failed || code->helpers.failed))
        status = kg_error_memory(error, "a PyTorch function");
    if (status != KG_OK)
        kg_torch_code_free(code);
    return status;
}

void kg_torch_code_free(struct kg_torch_code *code)
{
    kg_text_free(&code->body);
    kg_text_free(&code->helpers);
    *code = (struct kg_torch_code){0};
}
