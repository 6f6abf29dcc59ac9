// The public function of a Triton module: signature, checks, allocations, launches.

#include "gen/shared/docstring.h"
#include "gen/triton/triton_lines.h"
#include "gen/triton/triton_module.h"

#include <string.h>

const char *kg_triton_torch_dtype(enum kg_dtype dtype)
{
    static const char *const names[KG_DTYPE_COUNT] = {
        [KG_F16] = "torch.float16",
        [KG_BF16] = "torch.bfloat16",
        [KG_F32] = "torch.float32",
        [KG_F64] = "torch.float64",
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
        [KG_F8E4M3] = "torch.float8_e4m3fn",
        [KG_F8E5M2] = "torch.float8_e5m2",
    };
    return names[dtype];
}

// The first input with elements of the type variable, or NULL.
static const struct kg_tensor *shows_variable(const struct kg_op *op,
                                              const struct kg_typevar *variable)
{
    for (int i = 0; i < op->input_count; i++)
        if (op->tensors[i]->type.variable == variable)
            return op->tensors[i];
    return NULL;
}

static bool is_packed(const struct kg_tensor *tensor)
{
    return !tensor->type.variable && kg_dtype_is_packed(tensor->type.dtype);
}

// Whether an input's shape shows the size. Bytes of packed elements do not.
static bool is_shown(const struct kg_op *op, const struct kg_size *size)
{
    for (int i = 0; i < op->input_count; i++)
        for (int d = 0; d < op->tensors[i]->rank && !is_packed(op->tensors[i]); d++)
            if (op->tensors[i]->dims[d]->kind == KG_EXPR_SIZE &&
                op->tensors[i]->dims[d]->size == size)
                return true;
    return false;
}

static void add_signature(const struct kg_triton_module *module, struct kg_text *text)
{
    const struct kg_op *op = module->op;
    struct kg_text line = {0};
    bool starred = false;
    for (int i = 0; i < op->input_count; i++)
        kg_text_format(&line, "%s%s: torch.Tensor", i > 0 ? ", " : "", module->host.tensors[i]);
    for (int i = 0; i < op->size_count; i++) {
        if (op->sizes[i]->is_param || is_shown(op, op->sizes[i]))
            continue;
        kg_text_format(&line, "%s%s%s: int", line.length ? ", " : "", starred ? "" : "*, ",
                       module->host.sizes[i]);
        starred = true;
    }
    for (int i = 0; i < op->typevar_count; i++) {
        if (shows_variable(op, op->typevars[i]))
            continue;
        kg_text_format(&line, "%s%s%s: torch.dtype = %s", line.length ? ", " : "",
                       starred ? "" : "*, ", op->typevars[i]->name,
                       kg_triton_torch_dtype(op->typevars[i]->allowed[0]));
        starred = true;
    }
    if (op->input_count == 0)
        kg_text_format(&line, "%s%s%s: torch.device", line.length ? ", " : "", starred ? "" : "*, ",
                       module->host.device);
    kg_text_format(text, "\n\n@_planned\ndef %s(%s) -> %s:\n", op->name, kg_text_string(&line),
                   op->output_count > 1 ? "tuple[torch.Tensor, ...]" : "torch.Tensor");
    text->failed |= line.failed;
    kg_text_free(&line);
}

static void add_shape(const struct kg_triton_module *module, const struct kg_tensor *tensor,
                      struct kg_text *text)
{
    kg_text_add(text, "(");
    for (int d = 0; d < tensor->rank; d++) {
        struct kg_text dim = {0};
        kg_triton_host_size(&dim, &module->host, tensor->dims[d]);
        const char *string = kg_text_string(&dim);
        bool enclosed = string[0] == '(' && dim.length > 2; // needless there
        kg_text_add(text, d > 0 ? ", " : "");
        kg_text_add_bytes(text, string + enclosed, dim.length - 2 * enclosed);
        text->failed |= dim.failed;
        kg_text_free(&dim);
    }
    kg_text_add(text, tensor->rank == 1 ? ",)" : ")");
}

static void add_dtypes(const struct kg_typevar *variable, struct kg_text *text)
{
    kg_text_add(text, "(");
    for (int i = 0; i < variable->count; i++)
        kg_text_format(text, "%s%s", i > 0 ? ", " : "",
                       kg_triton_torch_dtype(variable->allowed[i]));
    kg_text_add(text, variable->count == 1 ? ",)" : ")");
}

static void add_input_check(const struct kg_triton_module *module, int id, bool *variable_known,
                            bool *size_known, struct kg_text *text)
{
    const struct kg_op *op = module->op;
    const struct kg_tensor *tensor = op->tensors[id];
    const struct kg_typevar *variable = tensor->type.variable;
    const char *name = module->host.tensors[id];
    kg_text_format(text, "    _check(\"%s\", %s, %d, ", name, name,
                   is_packed(tensor) ? -1 : tensor->rank);
    if (!variable)
        kg_text_format(text, "(%s,)", kg_triton_torch_dtype(tensor->type.dtype));
    else if (variable_known[variable->id])
        kg_text_format(text, "(%s,)", variable->name);
    else
        add_dtypes(variable, text);
    kg_text_format(text, ", %s)\n", id > 0 ? module->host.device : "None");
    if (id == 0)
        kg_text_format(text, "    %s = %s.device\n", module->host.device, name);
    if (variable && !variable_known[variable->id]) {
        kg_text_format(text, "    %s = %s.dtype\n", variable->name, name);
        variable_known[variable->id] = true;
    }
    for (int d = 0; d < tensor->rank && !is_packed(tensor); d++) {
        const struct kg_expr *dim = tensor->dims[d];
        if (dim->kind != KG_EXPR_SIZE || dim->size->is_param || size_known[dim->size->id])
            continue;
        kg_text_format(text, "    %s = %s.shape[%d]\n", module->host.sizes[dim->size->id], name, d);
        size_known[dim->size->id] = true;
    }
}

static void add_shape_checks(const struct kg_triton_module *module, struct kg_text *text)
{
    const struct kg_op *op = module->op;
    bool bound[KG_MAX_SIZES] = {false};
    for (int i = 0; i < op->input_count; i++) {
        const struct kg_tensor *tensor = op->tensors[i];
        bool needed = is_packed(tensor);
        for (int d = 0; d < tensor->rank && !is_packed(tensor); d++) {
            const struct kg_expr *dim = tensor->dims[d];
            bool binds = dim->kind == KG_EXPR_SIZE && !dim->size->is_param && !bound[dim->size->id];
            needed |= !binds;
            if (binds)
                bound[dim->size->id] = true;
        }
        if (!needed)
            continue;
        const char *name = module->host.tensors[i];
        kg_text_format(text, "    %s(\"%s\", %s, ",
                       is_packed(tensor) ? "_check_packed" : "_check_shape", name, name);
        add_shape(module, tensor, text);
        kg_text_add(text, ")\n");
    }
}

static void add_outputs(const struct kg_triton_module *module, struct kg_text *text)
{
    const struct kg_op *op = module->op;
    for (int i = op->input_count; i < op->input_count + op->output_count; i++) {
        const struct kg_tensor *tensor = op->tensors[i];
        kg_text_format(text, "    %s = _empty(", module->host.tensors[i]);
        add_shape(module, tensor, text);
        kg_text_format(text, ", dtype=%s, device=%s)\n",
                       tensor->type.variable ? tensor->type.variable->name
                                             : kg_triton_torch_dtype(tensor->type.dtype),
                       module->host.device);
    }
    kg_text_format(text, "    %s = _index_of(", module->host.index);
    for (int i = 0; i < op->input_count + op->output_count; i++)
        kg_text_format(text, "%s%s", i ? ", " : "", module->host.tensors[i]);
    kg_text_add(text, ")\n");
}

static void add_condition(const struct kg_triton_module *module,
                          const struct kg_triton_variant *variant, struct kg_text *text)
{
    const struct kg_op *op = module->op;
    bool one = op->typevar_count == 1;
    kg_text_add(text, one ? "" : "(");
    for (int i = 0; i < op->typevar_count; i++)
        kg_text_format(text, "%s%s", i ? ", " : "", op->typevars[i]->name);
    kg_text_add(text, one ? " in (" : ") in (");
    for (int i = 0; i < variant->count; i++) {
        kg_text_add(text, i ? ", " : "");
        kg_text_add(text, one ? "" : "(");
        for (int k = 0; k < op->typevar_count; k++)
            kg_text_format(text, "%s%s", k ? ", " : "",
                           kg_triton_torch_dtype(variant->combinations[i][k]));
        kg_text_add(text, one ? "" : ")");
    }
    kg_text_add(text, variant->count == 1 ? ",)" : ")");
}

static void add_indented(struct kg_text *text, const char *lines, int levels)
{
    while (*lines) {
        size_t length = strcspn(lines, "\n") + 1;
        kg_text_format(text, "%*s", 4 * levels, "");
        kg_text_add_bytes(text, lines, length);
        lines += length;
    }
}

static void add_launches(const struct kg_triton_module *module, struct kg_text *text)
{
    kg_text_format(text, "    with _on(%s):\n", module->host.device);
    if (module->variant_count == 1) {
        add_indented(text, kg_text_string(&module->variants[0].launches), 1);
        return;
    }
    for (int i = 0; i < module->variant_count; i++) {
        if (i + 1 == module->variant_count) {
            kg_text_add(text, "        else:\n");
        } else {
            kg_text_add(text, i ? "        elif " : "        if ");
            add_condition(module, &module->variants[i], text);
            kg_text_add(text, ":\n");
        }
        add_indented(text, kg_text_string(&module->variants[i].launches), 2);
    }
}

static void add_docstring(const struct kg_triton_module *module, struct kg_text *text)
{
    const struct kg_op *op = module->op;
    kg_text_add(text, "    \"\"\"");
    kg_docstring_prose(text, *op->description ? op->description : op->name, 4);
    kg_text_add(text, "\n\n");
    for (int i = 0; i < op->input_count + op->output_count; i++) {
        const struct kg_tensor *tensor = op->tensors[i];
        kg_text_format(text, "    %s: %s", module->host.tensors[i],
                       i < op->input_count ? "" : "returned, ");
        if (is_packed(tensor))
            kg_text_add(text, "bytes of two 4-bit elements each, for the shape ");
        add_shape(module, tensor, text);
        kg_text_format(text, " of %s\n",
                       tensor->type.variable ? tensor->type.variable->name
                                             : kg_dtypes[tensor->type.dtype].name);
    }
    for (int i = 0; i < op->typevar_count; i++) {
        kg_text_format(text, "    %s: ", op->typevars[i]->name);
        for (int k = 0; k < op->typevars[i]->count; k++)
            kg_text_format(text, "%s%s", k ? ", " : "",
                           kg_triton_torch_dtype(op->typevars[i]->allowed[k]));
        kg_text_add(text, "\n");
    }
    kg_text_add(text, "    \"\"\"\n");
}

void kg_triton_function(const struct kg_triton_module *module, struct kg_text *text)
{
    const struct kg_op *op = module->op;
    bool variable_known[KG_DTYPE_COUNT] = {false}, size_known[KG_MAX_SIZES] = {false};
    struct kg_text body = {0};
    add_signature(module, &body);
    kg_triton_add_lines(text, kg_text_string(&body));
    kg_text_cut(&body, 0);
    add_docstring(module, &body);
    kg_triton_add_prose(text, kg_text_string(&body));
    kg_text_cut(&body, 0);
    for (int i = 0; i < op->input_count; i++)
        add_input_check(module, i, variable_known, size_known, &body);
    add_shape_checks(module, &body);
    add_outputs(module, &body);
    add_launches(module, &body);
    kg_text_add(&body, "    return ");
    for (int i = 0; i < op->output_count; i++) {
        const struct kg_tensor *tensor = op->tensors[op->input_count + i];
        const char *name = module->host.tensors[op->input_count + i];
        kg_text_format(&body, is_packed(tensor) ? "%s_pack(%s)" : "%s%s", i ? ", " : "", name);
    }
    kg_text_add(&body, "\n");
    kg_triton_add_lines(text, kg_text_string(&body));
    text->failed |= body.failed;
    kg_text_free(&body);
}
