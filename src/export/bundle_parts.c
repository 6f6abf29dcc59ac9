// Parts that several files of a bundle have.

#include "export/bundle_parts.h"

#include "export/python_names.h"
#include "gen/shared/docstring.h"

#include <string.h>

void kg_bundle_heading(const struct kg_bundle *bundle, const char *role, struct kg_text *text)
{
    const struct kg_op *op = bundle->generic;
    kg_text_add(text, "\"\"\"");
    if (op->description[0]) {
        kg_docstring_prose(text, op->description, 0);
        kg_text_add(text, "\n\n");
    }
    kg_text_format(text, "%s\n\n", role);
    for (int i = 0; i < op->statement_count; i++) {
        struct kg_text line = {0};
        kg_text_add(text, "    ");
        kg_lang_print_statement(&line, op->statements[i]);
        kg_docstring_escape(text, kg_text_string(&line));
        kg_text_add(text, "\n");
        kg_text_free(&line);
    }
    kg_text_add(text, "\"\"\"\n\n");
}

void kg_bundle_constants(const struct kg_bundle *bundle, struct kg_text *text)
{
    for (int i = 0; i < bundle->instance->size_count; i++) {
        const struct kg_size *size = bundle->instance->sizes[i];
        if (!size->is_param)
            continue;
        kg_python_size_name(text, bundle->instance, size);
        kg_text_add(text, " = ");
        if (size->is_real)
            kg_python_number(text, size->real);
        else
            kg_text_format(text, "%lld", (long long)size->value);
        kg_text_add(text, "\n");
    }
}

bool kg_bundle_has_size_arguments(const struct kg_bundle *bundle)
{
    for (int i = 0; i < bundle->instance->size_count; i++)
        if (!bundle->instance->sizes[i]->is_param &&
            !kg_torch_size_is_shown(bundle->instance, bundle->instance->sizes[i]))
            return true;
    return false;
}

void kg_bundle_signature(const struct kg_bundle *bundle, const char *name, struct kg_text *text)
{
    const struct kg_op *op = bundle->instance;
    kg_text_add(text, "def ");
    kg_python_name(text, name);
    kg_text_add(text, "(");
    for (int i = 0; i < op->input_count; i++) {
        kg_text_add(text, i ? ", " : "");
        kg_python_name(text, op->tensors[i]->name);
        kg_text_add(text, ": torch.Tensor");
    }
    bool first = true;
    for (int i = 0; i < op->size_count; i++) {
        if (op->sizes[i]->is_param || kg_torch_size_is_shown(op, op->sizes[i]))
            continue;
        kg_text_add(text, first ? (op->input_count ? ", *, " : "*, ") : ", ");
        kg_python_size_name(text, op, op->sizes[i]);
        kg_text_add(text, ": int");
        first = false;
    }
    for (int v = 0; v < bundle->generic->typevar_count; v++) {
        const struct kg_typevar *variable = bundle->generic->typevars[v];
        if (kg_torch_variable_is_shown(bundle->generic, variable))
            continue;
        kg_text_add(text, !first ? ", " : op->input_count ? ", *, " : "*, ");
        kg_text_format(text, "%s: torch.dtype = %s", variable->name,
                       kg_torch_dtype(variable->allowed[0]));
        first = false;
    }
    if (op->input_count == 0)
        kg_text_add(text, first ? "*, device: torch.device" : ", device: torch.device");
    kg_text_add(text,
                op->output_count > 1 ? ") -> tuple[torch.Tensor, ...]:\n" : ") -> torch.Tensor:\n");
}

static void add_dims(struct kg_text *text, const struct kg_tensor *tensor)
{
    kg_text_add(text, "[");
    for (int d = 0; d < tensor->rank; d++) {
        kg_text_add(text, d ? ", " : "");
        kg_lang_print_expr(text, tensor->dims[d]);
    }
    kg_text_add(text, "]");
}

// "x: f16, bf16 or f32 [P, D]"
static void describe(const struct kg_bundle *bundle, int tensor, struct kg_text *text)
{
    struct kg_dtype_set set;
    kg_torch_allowed(bundle->generic, bundle->instance, tensor, &set);
    kg_python_name(text, bundle->instance->tensors[tensor]->name);
    kg_text_add(text, ": ");
    if (set.shown_by && set.shown_by->id != tensor) {
        kg_text_add(text, "the dtype of ");
        kg_python_name(text, set.shown_by->name);
    } else if (set.variable && !set.shown_by) {
        kg_text_add(text, set.variable->name);
    } else {
        for (int i = 0; i < set.count; i++)
            kg_text_format(text, "%s%s",
                           i == 0               ? ""
                           : i == set.count - 1 ? " or "
                                                : ", ",
                           kg_dtypes[set.dtypes[i]].name);
    }
    kg_text_add(text, bundle->instance->tensors[tensor]->panel_rows ? ", packed in panels" : "");
    kg_text_add(text, kg_dtype_is_packed(set.dtypes[0])
                          ? ", two elements a byte of torch.uint8, of "
                          : " ");
    add_dims(text, bundle->generic->tensors[tensor]);
}

static void describe_all(const struct kg_bundle *bundle, struct kg_text *text)
{
    const struct kg_op *op = bundle->instance;
    kg_text_add(text, "    \"\"\"");
    if (op->description[0]) {
        kg_docstring_prose(text, op->description, 4);
        kg_text_add(text, "\n\n    ");
    }
    for (int i = 0; i < op->input_count + op->output_count; i++) {
        kg_text_add(text, i ? "\n    " : "");
        kg_text_add(text, i >= op->input_count ? "gives " : "");
        describe(bundle, i, text);
    }
    kg_text_add(text, "\n    \"\"\"\n");
}

static void check_dtype(const struct kg_bundle *bundle, int input, const char *name,
                        struct kg_text *text)
{
    struct kg_dtype_set set;
    kg_torch_allowed(bundle->generic, bundle->instance, input, &set);
    if (set.shown_by && set.shown_by->id != input) {
        struct kg_text other = {0};
        kg_python_name(&other, set.shown_by->name);
        kg_text_format(text,
                       "    if %s.dtype != %s.dtype:\n"
                       "        raise TypeError(f\"%s needs the dtype of %s, {%s.dtype}; it has "
                       "{%s.dtype}\")\n",
                       name, kg_text_string(&other), name, kg_text_string(&other),
                       kg_text_string(&other), name);
        kg_text_free(&other);
        return;
    }
    if (set.count == 1)
        kg_text_format(text, "    if %s.dtype != %s:\n", name, kg_torch_dtype(set.dtypes[0]));
    else {
        kg_text_format(text, "    if %s.dtype not in (", name);
        for (int i = 0; i < set.count; i++)
            kg_text_format(text, "%s%s", i ? ", " : "", kg_torch_dtype(set.dtypes[i]));
        kg_text_add(text, "):\n");
    }
    kg_text_format(text, "        raise TypeError(f\"%s needs ", name);
    for (int i = 0; i < set.count; i++)
        kg_text_format(text, "%s%s",
                       i == 0               ? ""
                       : i == set.count - 1 ? " or "
                                            : ", ",
                       kg_torch_dtype(set.dtypes[i]));
    kg_text_format(text, "; it has {%s.dtype}\")\n", name);
}

static bool is_bound(const bool *bound, const struct kg_expr *dim)
{
    return dim->kind != KG_EXPR_SIZE || bound[dim->size->id];
}

// The sizes that stand alone in this tensor's dimensions for the first time.
static void bind(const struct kg_op *op, const struct kg_tensor *tensor, const char *name,
                 bool *bound, struct kg_text *text)
{
    struct kg_text left = {0};
    int fresh = 0;
    for (int d = 0; d < tensor->rank; d++) {
        bool is_fresh = !is_bound(bound, tensor->dims[d]);
        kg_text_add(&left, d ? ", " : "");
        if (is_fresh) {
            bound[tensor->dims[d]->size->id] = true;
            kg_python_size_name(&left, op, tensor->dims[d]->size);
        } else {
            kg_text_add(&left, "_");
        }
        fresh += is_fresh;
    }
    if (fresh)
        kg_text_format(text, "    %s%s = %s.shape\n", kg_text_string(&left),
                       tensor->rank == 1 ? "," : "", name);
    text->failed |= left.failed;
    kg_text_free(&left);
}

void kg_bundle_bind_sizes(const struct kg_bundle *bundle, struct kg_text *text)
{
    bool bound[KG_MAX_SIZES] = {0};
    for (int i = 0; i < bundle->instance->input_count; i++) {
        const struct kg_tensor *tensor = bundle->instance->tensors[i];
        struct kg_text name = {0};
        kg_python_name(&name, tensor->name);
        if (!kg_dtype_is_packed(tensor->type.dtype))
            bind(bundle->instance, tensor, kg_text_string(&name), bound, text);
        kg_text_free(&name);
    }
}

// Dimensions that are no size met for the first time.
static bool has_fixed_dims(const struct kg_op *op, int input)
{
    const struct kg_tensor *tensor = op->tensors[input];
    for (int d = 0; d < tensor->rank; d++) {
        const struct kg_expr *dim = tensor->dims[d];
        if (dim->kind != KG_EXPR_SIZE)
            return true;
        for (int i = 0; i <= input; i++)
            for (int e = 0; e < op->tensors[i]->rank && (i < input || e < d); e++)
                if (op->tensors[i]->dims[e]->kind == KG_EXPR_SIZE &&
                    op->tensors[i]->dims[e]->size == dim->size &&
                    !kg_dtype_is_packed(op->tensors[i]->type.dtype))
                    return true;
    }
    return false;
}

static void check_shape(const struct kg_bundle *bundle, int input, const char *name,
                        struct kg_text *text)
{
    const struct kg_tensor *tensor = bundle->instance->tensors[input];
    struct kg_text shape = {0}, dims = {0};
    kg_python_shape(&shape, bundle->instance, tensor);
    add_dims(&dims, bundle->generic->tensors[input]);
    if (kg_dtype_is_packed(tensor->type.dtype))
        kg_text_format(text,
                       "    if %s.numel() != (math.prod(%s) + 1) // 2:\n"
                       "        raise ValueError(f\"%s needs %s elements, two a byte; it has "
                       "{%s.numel()} bytes\")\n",
                       name, kg_text_string(&shape), name, kg_text_string(&dims), name);
    else if (has_fixed_dims(bundle->instance, input))
        kg_text_format(text,
                       "    if %s.shape != %s:\n"
                       "        raise ValueError(f\"%s needs the shape %s = {%s}; it has "
                       "{tuple(%s.shape)}\")\n",
                       name, kg_text_string(&shape), name, kg_text_string(&dims),
                       kg_text_string(&shape), name);
    text->failed |= shape.failed || dims.failed;
    kg_text_free(&shape);
    kg_text_free(&dims);
}

void kg_bundle_checks(const struct kg_bundle *bundle, struct kg_text *text)
{
    const struct kg_op *op = bundle->instance;
    struct kg_text names[KG_MAX_TENSORS] = {0};
    bool bound[KG_MAX_SIZES] = {0};
    describe_all(bundle, text);
    for (int i = 0; i < op->input_count; i++)
        kg_python_name(&names[i], op->tensors[i]->name);
    for (int i = 0; i < op->input_count; i++) {
        const struct kg_tensor *tensor = op->tensors[i];
        const char *name = kg_text_string(&names[i]);
        check_dtype(bundle, i, name, text);
        if (kg_dtype_is_packed(tensor->type.dtype))
            continue;
        struct kg_text dims = {0};
        add_dims(&dims, bundle->generic->tensors[i]);
        kg_text_format(text,
                       "    if %s.dim() != %d:\n"
                       "        raise ValueError(f\"%s needs %d dimension%s, %s; it has the shape "
                       "{tuple(%s.shape)}\")\n",
                       name, tensor->rank, name, tensor->rank, tensor->rank == 1 ? "" : "s",
                       kg_text_string(&dims), name);
        kg_text_free(&dims);
        bind(op, tensor, name, bound, text);
    }
    for (int i = 0; i < op->input_count; i++)
        check_shape(bundle, i, kg_text_string(&names[i]), text);
    for (int i = 0; i < op->input_count; i++)
        kg_text_free(&names[i]);
}
