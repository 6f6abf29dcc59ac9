// NAME_accuracy.py: what the definition adds to kernels/bundle/accuracy_*.py, which are joined to
// one file: its tensors, sizes to test, limits of its inputs, tolerances, and the reference.

#include "export/bundle_parts.h"
#include "export/bundle_rows.h"
#include "export/python_names.h"
#include "export/torch_function.h"
#include "gen/skeleton.h"

#include <math.h>
#include <string.h>

// The parts of the file, in order. The first ends with the heading of the definition.
static const char head[] = "bundle/accuracy_head.py";
static const char *const parts[] = {
    "bundle/accuracy_inputs.py",    "bundle/accuracy_rounding.py", "bundle/accuracy_comparison.py",
    "bundle/accuracy_impostors.py", "bundle/accuracy_run.py",      "bundle/accuracy_main.py",
};

// A part without its first paragraph, which says to readers of this repository what it is.
static const char *part_text(const char *name)
{
    return strstr(kg_skeleton_find(name), "\n\n") + 2;
}

// The name by which the dtype of a tensor is found: its variable, or the dtype itself.
static void add_dtype_key(const struct kg_bundle *bundle, int tensor, struct kg_text *text)
{
    struct kg_dtype_set set;
    kg_torch_dtypes(bundle->generic, bundle->instance, tensor, &set);
    kg_text_add(text, set.variable ? set.variable->name : kg_dtypes[set.dtypes[0]].name);
}

static void add_tensors(const struct kg_bundle *bundle, int first, int count, const char *name,
                        struct kg_text *text)
{
    kg_text_format(text, "%s = {", name);
    for (int i = first; i < first + count; i++) {
        kg_text_format(text, "%s\"%s\": \"", i > first ? ", " : "",
                       bundle->instance->tensors[i]->name);
        add_dtype_key(bundle, i, text);
        kg_text_add(text, "\"");
    }
    kg_text_add(text, "}\n");
}

static void add_variables(const struct kg_bundle *bundle, struct kg_text *text)
{
    const struct kg_op *generic = bundle->generic;
    kg_text_add(text, "VARIABLES = {");
    for (int v = 0; v < generic->typevar_count; v++) {
        const struct kg_typevar *variable = generic->typevars[v];
        enum kg_dtype bound = bundle->instance->bound[v];
        kg_text_format(text, "%s\"%s\": (\"%s\",", v ? ", " : "", variable->name,
                       kg_dtypes[bound].name);
        for (int i = 0; i < variable->count; i++)
            if (variable->allowed[i] != bound)
                kg_text_format(text, " \"%s\",", kg_dtypes[variable->allowed[i]].name);
        kg_text_add(text, ")");
    }
    kg_text_add(text, "}  # of dtypes, the first by default\nDTYPE_ARGUMENTS = (");
    for (int v = 0; v < generic->typevar_count; v++)
        if (!kg_torch_variable_is_shown(generic, generic->typevars[v]))
            kg_text_format(text, "\"%s\",", generic->typevars[v]->name);
    kg_text_add(text, ")  # that no input has\n");
}

static void add_sizes(const struct kg_bundle *bundle, struct kg_text *text)
{
    const struct kg_op *op = bundle->instance;
    for (int arguments = 0; arguments < 2; arguments++) {
        kg_text_add(text, arguments ? "SIZE_ARGUMENTS = (" : "SIZES = (");
        for (int i = 0; i < op->size_count; i++) {
            if (op->sizes[i]->is_param || (arguments && kg_torch_size_is_shown(op, op->sizes[i])))
                continue;
            kg_text_add(text, "\"");
            kg_python_size_name(text, op, op->sizes[i]);
            kg_text_add(text, "\", ");
        }
        if (text->data && text->data[text->length - 1] == ' ')
            kg_text_cut(text, text->length - 1);
        kg_text_add(text, arguments ? ")  # that no input shows\n" : ")\n");
    }
}

// "*, P, D", or nothing.
static void add_size_parameters(const struct kg_op *op, struct kg_text *text)
{
    bool any = false;
    for (int i = 0; i < op->size_count; i++) {
        if (op->sizes[i]->is_param)
            continue;
        kg_text_add(text, any ? ", " : "*, ");
        kg_python_size_name(text, op, op->sizes[i]);
        any = true;
    }
}

static void add_shapes(const struct kg_bundle *bundle, struct kg_text *text)
{
    const struct kg_op *op = bundle->instance;
    kg_text_add(text, "\n\ndef shapes(");
    add_size_parameters(op, text);
    kg_text_add(text, "):\n    \"\"\"Of every tensor.\"\"\"\n    return {");
    for (int i = 0; i < op->input_count + op->output_count; i++) {
        kg_text_format(text, "%s\"%s\": ", i ? ", " : "", op->tensors[i]->name);
        kg_python_shape(text, op, op->tensors[i]);
    }
    kg_text_add(text, "}\n");
}

// ---- Limits of integers

static bool reads(const struct kg_expr *expr, const struct kg_tensor *tensor)
{
    if (expr->kind == KG_EXPR_READ && expr->tensor == tensor)
        return true;
    for (int i = 0; i < expr->argument_count; i++)
        if (reads(expr->arguments[i], tensor))
            return true;
    return expr->pad && reads(expr->pad, tensor);
}

struct limits {
    struct kg_text ends; // "V, N": what the values must stay below
    int count;
    bool is_shift;
    const struct kg_expr *compared; // the end of an index that values are compared with
};

static const struct kg_index *index_of(const struct kg_expr *expr)
{
    const struct kg_index *found = expr->kind == KG_EXPR_INDEX ? expr->index : NULL;
    for (int i = 0; i < expr->argument_count && !found; i++)
        found = index_of(expr->arguments[i]);
    return found;
}

static void find_limits(const struct kg_op *op, const struct kg_expr *expr,
                        const struct kg_tensor *tensor, struct limits *limits)
{
    for (int i = 0; i < expr->argument_count; i++) {
        bool inside = reads(expr->arguments[i], tensor);
        if (inside && expr->kind == KG_EXPR_READ) {
            kg_text_add(&limits->ends, limits->count++ ? ", " : "");
            kg_python_size(&limits->ends, op, expr->tensor->dims[i]);
        }
        bool is_call = expr->kind == KG_EXPR_CALL;
        limits->is_shift |=
            is_call && inside && i == 1 &&
            (expr->function == KG_FN_SHIFT_LEFT || expr->function == KG_FN_SHIFT_RIGHT);
        bool compares = is_call && kg_functions[expr->function].rule == KG_RULE_COMPARE &&
                        expr->argument_count == 2;
        const struct kg_index *index = compares ? index_of(expr->arguments[1 - i]) : NULL;
        if (inside && index && expr->arguments[i]->kind == KG_EXPR_READ)
            limits->compared = index->end;
        find_limits(op, expr->arguments[i], tensor, limits);
    }
    if (expr->pad)
        find_limits(op, expr->pad, tensor, limits);
}

static void add_limits(const struct kg_bundle *bundle, struct kg_text *text)
{
    const struct kg_op *op = bundle->instance;
    bool any = false;
    kg_text_add(text, "\n\ndef limits(");
    add_size_parameters(op, text);
    kg_text_add(text, "):\n    \"\"\"Of integers that select elements: the least and the greatest."
                      "\"\"\"\n    return {");
    for (int i = 0; i < op->input_count; i++) {
        const struct kg_tensor *tensor = op->tensors[i];
        struct limits limits = {0};
        if (kg_dtypes[tensor->type.dtype].is_float || kg_dtype_is_truth(tensor->type.dtype))
            continue;
        for (int s = 0; s < op->statement_count; s++)
            find_limits(op, op->statements[s]->value, tensor, &limits);
        if (limits.count || limits.is_shift || limits.compared)
            kg_text_format(text, "%s\"%s\": ", any ? ", " : "", tensor->name);
        if (limits.count) {
            kg_text_format(text, limits.count > 1 ? "(0, min(%s) - 1)" : "(0, %s - 1)",
                           kg_text_string(&limits.ends));
        } else if (limits.is_shift) {
            kg_text_add(text, "(-2, 66)");
        } else if (limits.compared) {
            kg_text_add(text, "(0, ");
            kg_python_size(text, op, limits.compared);
            kg_text_add(text, ")");
        }
        any |= limits.count || limits.is_shift || limits.compared;
        kg_text_free(&limits.ends);
    }
    kg_text_add(text, "}\n");
}

static void add_ranges(const struct kg_op *op, struct kg_text *text)
{
    bool any = false;
    kg_text_add(text, "RANGES = {");
    for (int i = 0; i < op->input_count && op->goal.given; i++) {
        const struct kg_range *range = &op->goal.ranges[i];
        bool is_float = kg_dtypes[op->tensors[i]->type.dtype].is_float;
        if (!range->given)
            continue;
        kg_text_format(text, "%s\"%s\": (", any ? ", " : "", op->tensors[i]->name);
        if (is_float) {
            kg_python_number(text, range->low);
            kg_text_add(text, ", ");
            kg_python_number(text, range->high);
        } else {
            kg_text_format(text, "%lld, %lld", (long long)range->least, (long long)range->most);
        }
        kg_text_add(text, ")");
        any = true;
    }
    kg_text_add(text, "}  # of values, from the goal\n");
}

static void add_tolerances(const struct kg_op *op, struct kg_text *text)
{
    bool any = false;
    kg_text_add(text, "TOLERANCES = {");
    for (int d = 0; d < KG_DTYPE_COUNT && op->goal.given; d++) {
        const struct kg_tolerance *tolerance = &op->goal.tolerance[d];
        if (!tolerance->given)
            continue;
        kg_text_format(text, "%s\"%s\": (", any ? ", " : "", kg_dtypes[d].name);
        kg_python_number(text, tolerance->relative);
        kg_text_add(text, ", ");
        kg_python_number(text, tolerance->absolute);
        kg_text_add(text, ")");
        any = true;
    }
    kg_text_add(text, "}  # relative, absolute: the goal's\n");
}

static void add_reference(const struct kg_bundle *bundle, const struct kg_torch_code *code,
                          struct kg_text *text)
{
    const struct kg_op *op = bundle->instance;
    struct kg_text sizes = {0};
    add_size_parameters(op, &sizes);
    for (int v = 0; v < bundle->generic->typevar_count; v++)
        if (!kg_torch_variable_is_shown(bundle->generic, bundle->generic->typevars[v]))
            kg_text_format(&sizes, "%s%s", sizes.length ? ", " : "*, ",
                           bundle->generic->typevars[v]->name);
    kg_text_format(text, "%s\n\ndef reference(", kg_text_string(&code->helpers));
    for (int i = 0; i < op->input_count; i++) {
        kg_python_name(text, op->tensors[i]->name);
        kg_text_add(text, i + 1 < op->input_count || sizes.length ? ", " : "");
    }
    kg_text_format(text,
                   "%s):\n    \"\"\"The definition in f64, its outputs not rounded.\"\"\"\n%s",
                   kg_text_string(&sizes), kg_text_string(&code->body));
    kg_text_free(&sizes);
}

enum kg_status kg_bundle_accuracy(const struct kg_bundle *bundle, struct kg_text *text,
                                  struct kg_error *error)
{
    const struct kg_op *op = bundle->instance;
    struct kg_torch_code code;
    enum kg_status status = kg_torch_function(bundle->generic, op, true, &code, error);
    if (status != KG_OK)
        return status;
    kg_bundle_heading(bundle,
                      "Accuracy: the kernel against the definition in f64, on inputs that reject "
                      "wrong kernels.",
                      text);
    kg_text_add(text, part_text(head));
    kg_text_format(text, "\nNAME = \"%s\"\n", op->name);
    add_tensors(bundle, 0, op->input_count, "INPUTS", text);
    add_tensors(bundle, op->input_count, op->output_count, "OUTPUTS", text);
    add_variables(bundle, text);
    add_sizes(bundle, text);
    add_ranges(op, text);
    add_tolerances(op, text);
    kg_bundle_rows(bundle, text);
    kg_bundle_constants(bundle, text);
    add_shapes(bundle, text);
    add_limits(bundle, text);
    add_reference(bundle, &code, text);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        kg_text_format(text, "\n\n%s", part_text(parts[i]));
    kg_torch_code_free(&code);
    return text->failed ? kg_error_memory(error, "an accuracy test") : KG_OK;
}
