// Python for the public function: see triton_host.h.

#include "gen/triton/triton_host.h"

#include "gen/triton/triton_plain.h"

#include <string.h>

void kg_triton_host_size(struct kg_text *text, const struct kg_triton_host *host,
                         const struct kg_expr *expr)
{
    static const char *const signs[KG_FUNCTION_COUNT] = {
        [KG_FN_ADD] = "+",  [KG_FN_SUB] = "-", [KG_FN_MUL] = "*",
        [KG_FN_DIV] = "//", [KG_FN_MOD] = "%",
    };
    if (expr->kind == KG_EXPR_SIZE || (expr->kind == KG_EXPR_NUMBER && expr->size)) {
        kg_text_add(text, host->sizes[expr->size->id]);
    } else if (expr->kind == KG_EXPR_NUMBER) {
        kg_text_format(text, "%lld", (long long)expr->integer);
    } else if (expr->function == KG_FN_NEG) {
        kg_text_add(text, "(-");
        kg_triton_host_size(text, host, expr->arguments[0]);
        kg_text_add(text, ")");
    } else if (expr->function == KG_FN_CEILDIV) {
        kg_text_add(text, "_cdiv(");
        kg_triton_host_size(text, host, expr->arguments[0]);
        kg_text_add(text, ", ");
        kg_triton_host_size(text, host, expr->arguments[1]);
        kg_text_add(text, ")");
    } else {
        kg_text_add(text, "(");
        kg_triton_host_size(text, host, expr->arguments[0]);
        kg_text_format(text, " %s ", signs[expr->function]);
        kg_triton_host_size(text, host, expr->arguments[1]);
        kg_text_add(text, ")");
    }
}

void kg_triton_host_extent(struct kg_text *text, const struct kg_triton_host *host,
                           const struct kg_index *axis)
{
    bool shifted = axis->begin && !kg_size_same(axis->begin, NULL);
    kg_text_add(text, shifted ? "(" : "");
    kg_triton_host_size(text, host, axis->end);
    if (shifted) {
        kg_text_add(text, " - ");
        kg_triton_host_size(text, host, axis->begin);
        kg_text_add(text, ")");
    }
}

void kg_triton_host_product(struct kg_text *text, const struct kg_triton_host *host,
                            const struct kg_nest *nest, int first, int last)
{
    for (int axis = first; axis <= last; axis++) {
        kg_text_add(text, axis > first ? " * " : "");
        kg_triton_host_extent(text, host, nest->axes[axis]);
    }
    if (first > last)
        kg_text_add(text, "1");
}

struct call {
    struct kg_text *text;
    int level;
    size_t line;
};

static void add(struct call *call, const char *argument)
{
    if (call->text->length - call->line + strlen(argument) > 94) {
        kg_text_format(call->text, "\n%*s", 4 * call->level + 4, "");
        call->line = call->text->length - (size_t)(4 * call->level + 4);
    } else if (call->text->data[call->text->length - 1] == ',') {
        kg_text_add(call->text, " ");
    }
    kg_text_format(call->text, "%s,", argument);
}

// 8-bit floats are bytes to kernels.
static const char *tensor_argument(const struct kg_triton_host *host,
                                   const struct kg_tensor *tensor, struct kg_text *argument)
{
    const struct kg_dtype_info *info = &kg_dtypes[kg_emit_tensor_dtype(tensor)];
    kg_text_cut(argument, 0);
    kg_text_format(argument, info->is_float && info->bits == 8 ? "_bytes(%s)" : "%s",
                   host->tensors[tensor->id]);
    return kg_text_string(argument);
}

// How caches keep what the kernel reads once.
static void add_once(struct call *call, const struct kg_triton_host *host,
                     const struct kg_triton_kernel *kernel, struct kg_text *argument)
{
    const struct kg_problem *problem = kernel->group->problem;
    const char *before = "ONCE=_once(";
    kg_text_cut(argument, 0);
    for (int i = 0; i < problem->tensor_count; i++) {
        if (!kernel->pointers[i])
            continue;
        kg_text_format(argument, "%s%s", before, host->tensors[i]);
        before = ", ";
    }
    kg_text_add(argument, ")");
    add(call, kg_text_string(argument));
}

void kg_triton_host_call(struct kg_text *text, const struct kg_triton_host *host,
                         const struct kg_triton_kernel *kernel, int level, const char *called,
                         const char *constants)
{
    const struct kg_problem *problem = kernel->group->problem;
    struct kg_text argument = {0};
    kg_text_format(text, "%*s%s[%s](\n%*s", 4 * level, "", called, host->grid, 4 * level + 4, "");
    struct call call = {text, level, text->length - (size_t)(4 * level + 4)};
    for (int i = 0; i < problem->tensor_count; i++)
        if (kernel->pointers[i])
            add(&call, tensor_argument(host, problem->tensors[i], &argument));
    for (int i = 0; i < kernel->extra_count; i++)
        add(&call, kernel->extras[i].argument);
    for (int i = 0; i < problem->tensor_count; i++) {
        const struct kg_tensor *tensor = problem->tensors[i];
        // Packed tensors are bytes; kernels address their elements.
        bool packed =
            kg_dtype_is_packed(kg_emit_tensor_dtype(tensor)) && tensor->role == KG_ROLE_INPUT;
        for (int d = 0; d < tensor->rank; d++) {
            if (!kernel->strides[i][d])
                continue;
            kg_text_cut(&argument, 0);
            const struct kg_size *size = tensor->dims[d]->size;
            // A walk along two axes needs the stride even if the second has a single value.
            bool merged = size && !size->is_param && host->sizes[size->id] == host->runs[size->id];
            if (!packed && merged && !kernel->is_constant[size->id])
                kg_text_format(&argument, "_step(%s, %d, %s)", host->tensors[i], d,
                               host->sizes[size->id]);
            else if (!packed)
                kg_text_format(&argument, "%s.stride(%d)", host->tensors[i], d);
            for (int k = d + 1; packed && k < tensor->rank; k++) {
                kg_text_add(&argument, k > d + 1 ? " * " : "");
                kg_triton_host_size(&argument, host, tensor->dims[k]);
            }
            if (packed && d + 1 == tensor->rank)
                kg_text_add(&argument, "1");
            add(&call, kg_text_string(&argument));
        }
    }
    add(&call, host->turns);
    add(&call, host->last);
    if (kernel->uses_column)
        add(&call, host->across);
    for (int i = 0; i < kernel->divisor_count; i++) {
        kg_text_cut(&argument, 0);
        kg_text_format(&argument, "_magic(%s, %s, ", host->device, host->index);
        kg_triton_host_extent(&argument, host, kernel->divisors[i].axis);
        kg_text_add(&argument, ")");
        add(&call, kg_text_string(&argument));
    }
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < kernel->extent_count && pass == 1; i++) {
            kg_text_cut(&argument, 0);
            kg_triton_host_size(&argument, host, kernel->extents[i].expr);
            add(&call, kg_text_string(&argument));
        }
        for (int i = 0; i < problem->op->size_count; i++) {
            bool constexpr = problem->op->sizes[i]->is_param || kernel->is_constant[i];
            if (!kernel->uses_size[i] || constexpr != (pass == 1))
                continue;
            kg_text_cut(&argument, 0);
            if (constexpr)
                kg_text_format(&argument, "%s=", kernel->sizes[i]);
            kg_text_add(&argument, host->sizes[i]);
            add(&call, kg_text_string(&argument));
        }
    }
    kg_text_cut(&argument, 0);
    kg_text_format(&argument, "INDEX=%s", host->index);
    add(&call, kg_text_string(&argument));
    if (kernel->uses_once)
        add_once(&call, host, kernel, &argument);
    while (*constants) {
        size_t length = strcspn(constants, ",");
        kg_text_cut(&argument, 0);
        kg_text_add_bytes(&argument, constants, length);
        add(&call, kg_text_string(&argument));
        constants += length + strspn(constants + length, ", ");
    }
    kg_text_format(text, "\n%*s)\n", 4 * level, "");
    text->failed |= argument.failed;
    kg_text_free(&argument);
}

void kg_triton_host_begin(struct kg_triton_host *host, const struct kg_problem *problem,
                          struct kg_arena *arena)
{
    const struct kg_op *op = problem->op;
    *host = (struct kg_triton_host){.arena = arena, .names = {.arena = arena}};
    struct kg_triton_names *names = &host->names;
    int shown = op->input_count + op->output_count;
    for (int i = 0; i < shown; i++)
        host->tensors[i] = kg_triton_name(names, op->tensors[i]->name);
    for (int i = 0; i < op->size_count; i++) {
        struct kg_text constant = {0};
        if (op->sizes[i]->is_param) {
            kg_triton_param(&constant, op, op->sizes[i]);
            host->sizes[i] = kg_arena_copy(arena, kg_text_string(&constant), constant.length);
        } else {
            host->sizes[i] = kg_triton_name(names, op->sizes[i]->name);
        }
        kg_text_free(&constant);
    }
    for (int i = 0; i < op->size_count; i++)
        host->runs[i] =
            op->sizes[i]->is_param
                ? host->sizes[i]
                : kg_triton_name(names, kg_arena_format(arena, "%s_run", host->sizes[i]));
    for (int i = 0; i < op->typevar_count; i++)
        (void)kg_triton_name(names, op->typevars[i]->name);
    host->index = kg_triton_name(names, "index");
    host->device = kg_triton_name(names, "device");
    host->tile = kg_triton_name(names, "tile");
    host->grid = kg_triton_name(names, "grid");
    host->turns = kg_triton_name(names, "turns");
    host->last = kg_triton_name(names, "last");
    host->across = kg_triton_name(names, "across");
    host->part = kg_triton_name(names, "part");
    host->place = kg_triton_name(names, "place");
    host->chunk = kg_triton_name(names, "chunk");
    host->splits = kg_triton_name(names, "splits");
    host->counts[0] = kg_triton_name(names, "rows");
    host->counts[1] = kg_triton_name(names, "cols");
    for (int i = shown; i < problem->tensor_count; i++)
        host->tensors[i] = kg_triton_name(names, problem->tensors[i]->name);
}
