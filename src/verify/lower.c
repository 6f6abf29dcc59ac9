// Turns an instance into passes. Every statement becomes a pass, and so does every reduction inside
// an expression, over exactly the indices that its value depends on. `e[p, d] / (sum(d) e[p, d])`
// therefore does not compute the sum once per element.

#include "verify/program.h"

#include <stdlib.h>
#include <string.h>

void *kg_lower_grow(struct kg_lowering *lowering, void *array, int count, int *capacity,
                    size_t size)
{
    if (count < *capacity)
        return array;
    int wanted = *capacity ? 2 * *capacity : 16;
    void *fresh = kg_arena_array(&lowering->program->arena, (size_t)wanted, size);
    if (!fresh) {
        lowering->status = kg_error_memory(lowering->error, "the reference");
        return NULL;
    }
    if (count > 0)
        memcpy(fresh, array, (size_t)count * size);
    *capacity = wanted;
    return fresh;
}

int64_t kg_lower_size(struct kg_lowering *lowering, const struct kg_expr *expr)
{
    int64_t value = 0;
    if (!expr || lowering->status != KG_OK)
        return 0;
    lowering->status =
        kg_lang_size_value(expr, lowering->program->problem->sizes, &value, lowering->error);
    return value;
}

static int new_field(struct kg_lowering *lowering, const struct kg_tensor *tensor, bool is_real)
{
    struct kg_program *program = lowering->program;
    struct kg_field *fields = kg_lower_grow(lowering, program->fields, program->field_count,
                                            &program->field_capacity, sizeof *fields);
    if (!fields)
        return -1;
    program->fields = fields;
    program->fields[program->field_count] = (struct kg_field){.tensor = tensor, .is_real = is_real};
    return program->field_count++;
}

static struct kg_pass *new_pass(struct kg_lowering *lowering)
{
    struct kg_pass *pass = KG_NEW(&lowering->program->arena, struct kg_pass);
    if (!pass) {
        lowering->status = kg_error_memory(lowering->error, "the reference");
        return NULL;
    }
    pass->mask = -1;
    return pass;
}

// A pass is added when it is complete, after the passes that it reads from.
static void add_pass(struct kg_lowering *lowering, struct kg_pass *pass)
{
    struct kg_program *program = lowering->program;
    struct kg_pass **passes = kg_lower_grow(lowering, program->passes, program->pass_count,
                                            &program->pass_capacity, sizeof *passes);
    if (!passes)
        return;
    program->passes = passes;
    program->passes[program->pass_count++] = pass;
}

static void add_axis(struct kg_pass *pass, const struct kg_index *index, int64_t begin, int64_t end)
{
    pass->axes[pass->axis_count++] =
        (struct kg_axis){.index = index, .begin = begin, .end = end < begin ? begin : end};
}

// The indices that the value of `expr` depends on, as bits by id.
static uint32_t free_indices(const struct kg_expr *expr)
{
    uint32_t found = expr->kind == KG_EXPR_INDEX ? 1u << expr->index->id : 0;
    for (int i = 0; i < expr->argument_count; i++)
        found |= free_indices(expr->arguments[i]);
    if (expr->pad)
        found |= free_indices(expr->pad);
    if (expr->kind != KG_EXPR_REDUCE)
        return found;
    for (int i = 0; i < expr->index_count; i++)
        if (expr->indices[i]->bound)
            found |= free_indices(expr->indices[i]->bound);
    for (int i = 0; i < expr->index_count; i++)
        found &= ~(1u << expr->indices[i]->id);
    return found;
}

static bool is_real(enum kg_type type)
{
    return type == KG_TYPE_F32 || type == KG_TYPE_F64;
}

// A scan is computed in one sweep if its only index is bounded by an output axis that the body does
// not depend on.
static void find_scan(struct kg_lowering *lowering, struct kg_pass *pass,
                      const struct kg_expr *reduce)
{
    const struct kg_index *index = reduce->indices[0];
    struct kg_subscript bound;
    if (reduce->index_count != 1 || index->relation == KG_RELATION_NONE ||
        !kg_lower_affine(lowering, pass, index->bound, &bound) || bound.term_count != 1)
        return;
    int axis = bound.terms[0].axis;
    int step = pass->registers[pass->value].step;
    if (axis >= pass->output_axes || bound.terms[0].coefficient != 1 ||
        pass->steps[step].axes >> axis & 1)
        return;
    pass->can_scan = true;
    pass->scan_axis = axis;
    pass->scan_offset = bound.constant;
    pass->relation = index->relation;
}

static void finish_pass(struct kg_lowering *lowering, struct kg_pass *pass)
{
    if (lowering->status != KG_OK)
        return;
    struct kg_field *field = &lowering->program->fields[pass->field];
    bool rounds = pass->reduce == KG_REDUCE_SUM || pass->reduce == KG_REDUCE_PROD ||
                  pass->reduce == KG_REDUCE_MEAN;
    field->has_slack = !lowering->program->values_only &&
                       (pass->registers[pass->value].has_slack ||
                        (pass->mask >= 0 && pass->registers[pass->mask].has_slack) ||
                        (pass->has_reduce && field->is_real && rounds));
    add_pass(lowering, pass);
}

// A pass that fills a field of its own, indexed by those axes of `around` that are in `wanted`:
// bits by index id. `axes` gets their positions in `around`.
static struct kg_pass *new_inner(struct kg_lowering *lowering, const struct kg_pass *around,
                                 uint32_t wanted, bool real, int *count, int axes[KG_MAX_INDICES])
{
    struct kg_pass *pass = new_pass(lowering);
    int id = new_field(lowering, NULL, real);
    if (!pass || id < 0)
        return NULL;
    for (int a = 0; a < around->axis_count; a++) {
        const struct kg_axis *axis = &around->axes[a];
        if (!(wanted >> axis->index->id & 1))
            continue;
        axes[(*count)++] = a;
        add_axis(pass, axis->index, axis->begin, axis->end);
    }
    pass->field = id;
    pass->output_axes = pass->axis_count;
    struct kg_field *field = &lowering->program->fields[id];
    field->rank = pass->axis_count;
    for (int i = 0; i < pass->axis_count; i++)
        field->shape[i] = pass->axes[i].end - pass->axes[i].begin;
    return pass;
}

// Products of matrices. Their factors get fields of their own, which product.c multiplies.

static uint32_t ids_of(const struct kg_pass *pass, int from, int to)
{
    uint32_t ids = 0;
    for (int a = from; a < to; a++)
        ids |= 1u << pass->axes[a].index->id;
    return ids;
}

static bool is_product(const struct kg_lowering *lowering, const struct kg_pass *pass,
                       const struct kg_expr *reduce)
{
    const struct kg_expr *body = reduce->arguments[0];
    if (!lowering->program->values_only || reduce->reduce != KG_REDUCE_SUM ||
        !is_real(reduce->type) || body->type != reduce->type || body->kind != KG_EXPR_CALL ||
        body->function != KG_FN_MUL)
        return false;
    for (int i = 0; i < reduce->index_count; i++)
        if (reduce->indices[i]->relation != KG_RELATION_NONE)
            return false;
    uint32_t left = free_indices(body->arguments[0]), right = free_indices(body->arguments[1]);
    uint32_t outputs = ids_of(pass, 0, pass->output_axes);
    uint32_t reduced = ids_of(pass, pass->output_axes, pass->axis_count);
    return (left & ~right & outputs) && (right & ~left & outputs) && (left & right & reduced);
}

// The field of a factor, read at the axes of `pass`.
static int lower_factor(struct kg_lowering *lowering, struct kg_pass *pass,
                        const struct kg_expr *factor, enum kg_type type)
{
    int count = 0, axes[KG_MAX_INDICES];
    struct kg_pass *inner = new_inner(lowering, pass, free_indices(factor), true, &count, axes);
    if (!inner)
        return -1;
    inner->value = kg_lower_as(lowering, inner, factor, type);
    finish_pass(lowering, inner);
    return lowering->status ? -1 : kg_lower_field_read(lowering, pass, inner->field, count, axes);
}

static int lower_product(struct kg_lowering *lowering, struct kg_pass *pass,
                         const struct kg_expr *body)
{
    int left = lower_factor(lowering, pass, body->arguments[0], body->type);
    int right = left < 0 ? -1 : lower_factor(lowering, pass, body->arguments[1], body->type);
    pass->is_product = true;
    return kg_lower_multiply(lowering, pass, left, right, body->type);
}

// Completes a pass, whose output axes are set, with the reduction `reduce`.
static void lower_reduce(struct kg_lowering *lowering, struct kg_pass *pass,
                         const struct kg_expr *reduce, bool is_stored)
{
    const struct kg_expr *body = reduce->arguments[0];
    for (int i = 0; i < reduce->index_count; i++) {
        const struct kg_index *index = reduce->indices[i];
        add_axis(pass, index, kg_lower_size(lowering, index->begin),
                 kg_lower_size(lowering, index->end));
    }
    pass->has_reduce = true;
    pass->reduce = reduce->reduce;
    bool is_argument = kg_reduces[reduce->reduce].is_argument;
    enum kg_type type = is_argument ? body->type : reduce->type;
    pass->reduce_real = is_real(type);
    pass->precision = (is_stored ? kg_precisions_stored : kg_precisions) + reduce->type;
    pass->value = is_product(lowering, pass, reduce) ? lower_product(lowering, pass, body)
                                                     : kg_lower_as(lowering, pass, body, type);
    if (lowering->status != KG_OK)
        return;
    find_scan(lowering, pass, reduce);
    for (int i = 0; i < reduce->index_count && !pass->can_scan; i++) {
        const struct kg_index *index = reduce->indices[i];
        if (index->relation == KG_RELATION_NONE)
            continue;
        int holds =
            kg_lower_relation(lowering, pass, pass->output_axes + i, index->relation, index->bound);
        pass->mask = pass->mask < 0 ? holds : kg_lower_both(lowering, pass, pass->mask, holds);
    }
}

int kg_lower_reduction(struct kg_lowering *lowering, const struct kg_pass *around,
                       const struct kg_expr *expr, int *count, int axes[KG_MAX_INDICES])
{
    *count = 0;
    struct kg_pass *pass =
        new_inner(lowering, around, free_indices(expr), is_real(expr->type), count, axes);
    if (!pass)
        return -1;
    lower_reduce(lowering, pass, expr, false);
    finish_pass(lowering, pass);
    return lowering->status == KG_OK ? pass->field : -1;
}

static bool reads(const struct kg_expr *expr, const struct kg_tensor *tensor)
{
    bool found = (expr->kind == KG_EXPR_READ && expr->tensor == tensor) ||
                 (expr->pad && reads(expr->pad, tensor));
    for (int i = 0; i < expr->argument_count && !found; i++)
        found = reads(expr->arguments[i], tensor);
    return found;
}

// Is the tensor's value only stored? Other statements read it before rounding.
static bool is_only_stored(const struct kg_op *op, const struct kg_tensor *tensor)
{
    bool read = false;
    for (int i = 0; i < op->statement_count && !read; i++)
        read = reads(op->statements[i]->value, tensor);
    return tensor->role == KG_ROLE_OUTPUT && !read;
}

static bool is_narrow(enum kg_dtype dtype)
{
    return !kg_dtypes[dtype].is_float && !kg_dtype_is_computed(dtype);
}

static void lower_statement(struct kg_lowering *lowering, const struct kg_statement *statement)
{
    const struct kg_tensor *tensor = statement->tensor;
    const struct kg_expr *value = statement->value;
    struct kg_pass *pass = new_pass(lowering);
    if (!pass)
        return;
    pass->field = tensor->id;
    pass->output_axes = statement->index_count;
    uint32_t all = 0;
    for (int i = 0; i < statement->index_count; i++) {
        add_axis(pass, statement->indices[i], 0, kg_lower_size(lowering, tensor->dims[i]));
        all |= 1u << statement->indices[i]->id;
    }
    bool is_stored = is_only_stored(lowering->program->problem->op, tensor);
    // Rounding applies only to stored values; readers of a narrow integer get its stored value.
    bool wraps = !is_stored && tensor->role == KG_ROLE_OUTPUT && is_narrow(tensor->type.dtype);
    if (value->kind == KG_EXPR_REDUCE && value->type == tensor->compute && !wraps &&
        free_indices(value) == all) {
        lower_reduce(lowering, pass, value, is_stored);
    } else {
        // A store rounds once, from f64 too.
        bool is_wide = is_stored && value->type == KG_TYPE_F64;
        enum kg_type type = is_wide ? KG_TYPE_F64 : tensor->compute;
        pass->value = kg_lower_as(lowering, pass, value, type);
        if (wraps)
            pass->value = kg_lower_wrapped(lowering, pass, pass->value, tensor->type.dtype);
        if (lowering->status != KG_OK)
            return;
        struct kg_step *last = &pass->steps[pass->registers[pass->value].step];
        if (is_stored && last->precision && value->type == type)
            last->precision = &kg_precisions_stored[type];
    }
    finish_pass(lowering, pass);
}

static void add_tensors(struct kg_lowering *lowering)
{
    const struct kg_op *op = lowering->program->problem->op;
    for (int i = 0; i < op->tensor_count && lowering->status == KG_OK; i++) {
        const struct kg_tensor *tensor = op->tensors[i];
        int id = new_field(lowering, tensor, is_real(tensor->compute));
        if (id < 0)
            return;
        struct kg_field *field = &lowering->program->fields[id];
        field->rank = tensor->rank;
        for (int d = 0; d < tensor->rank; d++)
            field->shape[d] = kg_lower_size(lowering, tensor->dims[d]);
    }
}

enum kg_status kg_program_make(const struct kg_problem *problem, bool values_only,
                               struct kg_program **program, struct kg_error *error)
{
    *program = NULL;
    struct kg_program *fresh = calloc(1, sizeof *fresh);
    if (!fresh)
        return kg_error_memory(error, "the reference");
    fresh->problem = problem;
    fresh->values_only = values_only;
    struct kg_lowering lowering = {.program = fresh, .error = error};
    add_tensors(&lowering);
    for (int i = 0; i < problem->op->statement_count && lowering.status == KG_OK; i++)
        lower_statement(&lowering, problem->op->statements[i]);
    if (lowering.status != KG_OK) {
        kg_program_free(fresh);
        return lowering.status;
    }
    *program = fresh;
    return KG_OK;
}

void kg_program_free(struct kg_program *program)
{
    if (!program)
        return;
    for (int i = 0; i < program->field_count; i++) {
        free(program->fields[i].real);
        free(program->fields[i].integer);
        free(program->fields[i].slack);
    }
    kg_arena_free(&program->arena);
    free(program);
}
