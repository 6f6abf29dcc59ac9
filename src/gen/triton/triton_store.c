// Stores of Triton kernels: the element of a statement, kept in a variable for later statements of
// the group, in memory for others.

#include "gen/triton/triton_kernel.h"

// Whether the tensor may have elements of bfloat16 for some combination of the op's dtypes, which
// have one text where they compute in the same types.
static bool may_be_bf16(const struct kg_triton_kernel *kernel, const struct kg_tensor *tensor)
{
    const struct kg_op *op = kernel->group->problem->op;
    enum kg_dtype dtype = kg_emit_tensor_dtype(tensor);
    bool has_variable = dtype == KG_F16 || (dtype == KG_F32 && tensor->role != KG_ROLE_LOCAL);
    if (dtype == KG_BF16)
        return true;
    for (int v = 0; v < op->typevar_count && has_variable; v++)
        for (int i = 0; i < op->typevars[v]->count; i++)
            if (op->typevars[v]->allowed[i] == KG_BF16)
                return true;
    return false;
}

void kg_triton_store(struct kg_triton_kernel *kernel, const char *value, enum kg_type type)
{
    const struct kg_nest *nest = kernel->nest;
    const struct kg_tensor *tensor = nest->output;
    enum kg_dtype dtype = kg_emit_tensor_dtype(tensor);
    const char *pointer = kg_triton_pointer(kernel, tensor), *offset = NULL;
    bool used[KG_MAX_INDICES] = {false};
    for (int dim = 0; dim < nest->output_axes; dim++) {
        used[dim] = true;
        if (kernel->walk && dim + 1 == kernel->walked)
            continue;
        bool walks = kernel->walk && dim == kernel->walked;
        const char *term =
            kg_triton_format(kernel, "%s * %s", walks ? kernel->walk : kernel->axes[dim].name,
                             kg_triton_stride(kernel, tensor, dim));
        offset = offset ? kg_triton_format(kernel, "%s + %s", offset, term) : term;
    }
    const char *mask = kg_triton_mask(kernel, used);
    struct kg_text text = {0};
    if (kg_dtypes[dtype].is_float && kg_dtypes[dtype].bits == 8)
        kg_text_format(&text, "_to_%s(%s)", kg_dtypes[dtype].name, value);
    else if (kg_dtype_is_packed(dtype))
        kg_text_format(&text, "(%s) & 15", value);
    else if (kg_dtypes[dtype].is_float && type != kg_dtypes[dtype].compute)
        kg_text_format(&text, "(%s).to(%s)", value, kg_triton_type(kg_dtypes[dtype].compute));
    else
        kg_text_add(&text, value);
    const char *stored = kg_triton_keep(kernel, &text);
    kg_triton_line(
        kernel, "%s(%s%s%s, %s%s%s)", may_be_bf16(kernel, tensor) ? "_store" : "tl.store", pointer,
        offset ? " + " : "", offset ? offset : "", stored, mask ? ", mask=" : "", mask ? mask : "");
}

// Whether a later statement of the group reads it.
static bool is_read_later(const struct kg_group *group, int position)
{
    const struct kg_tensor *tensor = kg_group_nest(group, position)->output;
    for (int i = position + 1; i < group->count; i++)
        for (int a = 0; a < kg_group_nest(group, i)->access_count; a++)
            if (kg_group_nest(group, i)->accesses[a].tensor == tensor)
                return true;
    return false;
}

void kg_triton_settle(struct kg_triton_kernel *kernel, int position, const char *value,
                      enum kg_type type)
{
    const struct kg_nest *nest = kg_group_nest(kernel->group, position);
    kernel->nest = nest;
    if (is_read_later(kernel->group, position)) {
        const char *name = kg_triton_fresh(kernel, nest->output->name);
        kg_triton_line(kernel, "%s = %s", name, value);
        kernel->values[position] = value = name;
    }
    if (!kg_group_is_private(kernel->group, nest->output))
        kg_triton_store(kernel, value, type);
}

void kg_triton_element(struct kg_triton_kernel *kernel, int position)
{
    const struct kg_nest *nest = kg_group_nest(kernel->group, position);
    kernel->nest = nest;
    const char *value = is_read_later(kernel->group, position)
                            ? kg_triton_value(kernel, nest->body, nest->body->type)
                            : kg_triton_stored(kernel, nest->body);
    kg_triton_settle(kernel, position, value, nest->body->type);
}

void kg_triton_recompute(struct kg_triton_kernel *kernel, int position)
{
    const struct kg_nest *nest = kg_group_nest(kernel->group, position);
    kernel->nest = nest;
    const char *value = kg_triton_value(kernel, nest->body, nest->body->type);
    const char *name = kg_triton_fresh(kernel, nest->output->name);
    kg_triton_line(kernel, "%s = %s", name, value);
    kernel->values[position] = name;
}
