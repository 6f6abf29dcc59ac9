// Turns one expression into steps. Sizes are known numbers here; subscripts become affine forms if
// possible, and registers otherwise.

#include "verify/program.h"

#include <math.h>

static bool is_real(enum kg_type type)
{
    return type == KG_TYPE_F32 || type == KG_TYPE_F64;
}

static bool is_rounded_as_float(double value)
{
    return isnan(value) || (double)(float)value == value;
}

// Can the result have slack, given whether its arguments have?
static bool makes_slack(const struct kg_step *step, bool arguments)
{
    switch (step->kind) {
    case KG_STEP_CONSTANT:
        return step->precision == &kg_precisions[KG_TYPE_F32] && !is_rounded_as_float(step->real);
    case KG_STEP_AXIS:
        return false;
    case KG_STEP_REAL:
        return arguments || !kg_reals_exact(step->function);
    case KG_STEP_TO_REAL:
    case KG_STEP_NARROW:
        return true;
    default:
        return arguments;
    }
}

// Appends a step; returns its result register, or -1.
static int emit(struct kg_lowering *lowering, struct kg_pass *pass, struct kg_step step, bool real)
{
    if (lowering->status != KG_OK)
        return -1;
    bool uncertain = false;
    for (int i = 0; i < step.argument_count; i++) {
        const struct kg_register *argument = &pass->registers[step.arguments[i]];
        uncertain |= argument->has_slack;
        step.axes |= pass->steps[argument->step].axes;
    }
    if (step.kind == KG_STEP_READ)
        uncertain |= step.read->uncertain || lowering->program->fields[step.read->field].has_slack;
    struct kg_step *steps =
        kg_lower_grow(lowering, pass->steps, pass->step_count, &pass->step_capacity, sizeof *steps);
    struct kg_register *registers =
        steps ? kg_lower_grow(lowering, pass->registers, pass->register_count,
                              &pass->register_capacity, sizeof *registers)
              : NULL;
    if (!registers)
        return -1;
    pass->steps = steps;
    pass->registers = registers;
    step.result = pass->register_count;
    bool has_slack = !lowering->program->values_only && makes_slack(&step, uncertain);
    registers[pass->register_count] = (struct kg_register){real, has_slack, pass->step_count};
    steps[pass->step_count++] = step;
    return pass->register_count++;
}

static int emit_real(struct kg_lowering *lowering, struct kg_pass *pass, double value,
                     enum kg_type type)
{
    struct kg_step step = {
        .kind = KG_STEP_CONSTANT, .real = value, .precision = &kg_precisions[type]};
    return emit(lowering, pass, step, true);
}

static int emit_integer(struct kg_lowering *lowering, struct kg_pass *pass, int64_t value)
{
    return emit(lowering, pass, (struct kg_step){.kind = KG_STEP_CONSTANT, .integer = value},
                false);
}

static int emit_axis(struct kg_lowering *lowering, struct kg_pass *pass, int axis)
{
    struct kg_step step = {.kind = KG_STEP_AXIS, .axis = axis, .axes = 1u << axis};
    return emit(lowering, pass, step, false);
}

// One argument.
static int emit_move(struct kg_lowering *lowering, struct kg_pass *pass, enum kg_step_kind kind,
                     int argument, enum kg_dtype dtype, enum kg_type type)
{
    if (argument < 0)
        return -1;
    struct kg_step step = {
        .kind = kind, .dtype = dtype, .argument_count = 1, .arguments = {argument}};
    if (is_real(type))
        step.precision = &kg_precisions[type];
    return emit(lowering, pass, step, is_real(type));
}

static int axis_of(const struct kg_pass *pass, const struct kg_index *index)
{
    for (int a = 0; a < pass->axis_count; a++)
        if (pass->axes[a].index->id == index->id)
            return a;
    return -1;
}

// Affine forms. Coefficients wrap like all integers; addresses are checked on use.
struct affine {
    uint64_t constant;
    uint64_t coefficients[KG_MAX_INDICES];
};

static bool is_constant(const struct affine *form)
{
    for (int a = 0; a < KG_MAX_INDICES; a++)
        if (form->coefficients[a])
            return false;
    return true;
}

static void add_scaled(struct affine *form, const struct affine *other, uint64_t factor)
{
    form->constant += other->constant * factor;
    for (int a = 0; a < KG_MAX_INDICES; a++)
        form->coefficients[a] += other->coefficients[a] * factor;
}

static bool affine_of(const struct kg_lowering *lowering, const struct kg_pass *pass,
                      const struct kg_expr *expr, struct affine *form);

static bool affine_call(const struct kg_lowering *lowering, const struct kg_pass *pass,
                        const struct kg_expr *expr, struct affine *form)
{
    struct affine terms[2] = {{0}, {0}};
    for (int i = 0; i < expr->argument_count; i++)
        if (i > 1 || !affine_of(lowering, pass, expr->arguments[i], &terms[i]))
            return false;
    switch (expr->function) {
    case KG_FN_ADD:
        add_scaled(form, &terms[0], 1);
        add_scaled(form, &terms[1], 1);
        return true;
    case KG_FN_SUB:
        add_scaled(form, &terms[0], 1);
        add_scaled(form, &terms[1], (uint64_t)-1);
        return true;
    case KG_FN_NEG:
        add_scaled(form, &terms[0], (uint64_t)-1);
        return true;
    case KG_FN_MUL: {
        int factor = is_constant(&terms[0]) ? 0 : 1;
        if (!is_constant(&terms[factor]))
            return false;
        add_scaled(form, &terms[!factor], terms[factor].constant);
        return true;
    }
    default:
        return false; // division even of constants is rare, and correct through registers
    }
}

static bool affine_of(const struct kg_lowering *lowering, const struct kg_pass *pass,
                      const struct kg_expr *expr, struct affine *form)
{
    switch (expr->kind) {
    case KG_EXPR_NUMBER:
        form->constant = (uint64_t)expr->integer;
        return expr->is_integer;
    case KG_EXPR_SIZE:
        form->constant = (uint64_t)lowering->program->problem->sizes[expr->size->id];
        return !expr->size->is_real;
    case KG_EXPR_INDEX: {
        int axis = axis_of(pass, expr->index);
        if (axis >= 0)
            form->coefficients[axis] = 1;
        return axis >= 0;
    }
    case KG_EXPR_CALL:
        return affine_call(lowering, pass, expr, form);
    default:
        return false;
    }
}

bool kg_lower_affine(struct kg_lowering *lowering, const struct kg_pass *pass,
                     const struct kg_expr *expr, struct kg_subscript *subscript)
{
    struct affine form = {0};
    if (!affine_of(lowering, pass, expr, &form))
        return false;
    *subscript = (struct kg_subscript){.constant = (int64_t)form.constant, .reg = -1};
    for (int a = 0; a < KG_MAX_INDICES; a++)
        if (form.coefficients[a])
            subscript->terms[subscript->term_count++] =
                (struct kg_term){a, (int64_t)form.coefficients[a]};
    return true;
}

// Reads.

static int emit_read(struct kg_lowering *lowering, struct kg_pass *pass, struct kg_read *read,
                     uint32_t axes)
{
    const struct kg_read **reads = kg_lower_grow(lowering, (void *)pass->reads, pass->read_count,
                                                 &pass->read_capacity, sizeof *reads);
    if (!reads)
        return -1;
    pass->reads = reads;
    read->slot = pass->read_count;
    reads[pass->read_count++] = read;
    const struct kg_field *field = &lowering->program->fields[read->field];
    struct kg_step step = {.kind = KG_STEP_READ, .read = read, .axes = axes};
    if (read->pad >= 0)
        step.arguments[step.argument_count++] = read->pad;
    return emit(lowering, pass, step, field->is_real);
}

static int lower_read(struct kg_lowering *lowering, struct kg_pass *pass,
                      const struct kg_expr *expr)
{
    struct kg_read *read = KG_NEW(&lowering->program->arena, struct kg_read);
    if (!read) {
        lowering->status = kg_error_memory(lowering->error, "the reference");
        return -1;
    }
    uint32_t axes = 0;
    read->field = expr->tensor->id;
    read->rank = expr->argument_count;
    read->pad = expr->pad ? kg_lower_as(lowering, pass, expr->pad, expr->tensor->compute) : -1;
    for (int d = 0; d < read->rank; d++) {
        struct kg_subscript *subscript = &read->subscripts[d];
        if (kg_lower_affine(lowering, pass, expr->arguments[d], subscript)) {
            for (int t = 0; t < subscript->term_count; t++)
                axes |= 1u << subscript->terms[t].axis;
            continue;
        }
        subscript->reg = kg_lower_as(lowering, pass, expr->arguments[d], KG_TYPE_I64);
        if (subscript->reg < 0)
            return -1;
        axes |= pass->steps[pass->registers[subscript->reg].step].axes;
        read->uncertain |= pass->registers[subscript->reg].has_slack;
    }
    return emit_read(lowering, pass, read, axes);
}

int kg_lower_field_read(struct kg_lowering *lowering, struct kg_pass *pass, int field, int count,
                        const int *axes)
{
    struct kg_read *read = KG_NEW(&lowering->program->arena, struct kg_read);
    if (field < 0 || !read) {
        if (lowering->status == KG_OK)
            lowering->status = kg_error_memory(lowering->error, "the reference");
        return -1;
    }
    uint32_t mask = 0;
    read->field = field;
    read->rank = count;
    read->pad = -1;
    for (int d = 0; d < count; d++) {
        read->subscripts[d] = (struct kg_subscript){.term_count = 1,
                                                    .terms = {{axes[d], 1}},
                                                    .constant = -pass->axes[axes[d]].begin,
                                                    .reg = -1};
        mask |= 1u << axes[d];
    }
    return emit_read(lowering, pass, read, mask);
}

int kg_lower_multiply(struct kg_lowering *lowering, struct kg_pass *pass, int left, int right,
                      enum kg_type type)
{
    struct kg_step step = {.kind = KG_STEP_REAL,
                           .function = KG_FN_MUL,
                           .precision = &kg_precisions[type],
                           .argument_count = 2,
                           .arguments = {left, right}};
    return left < 0 || right < 0 ? -1 : emit(lowering, pass, step, true);
}

// An inner reduction is read back from its own field.
static int lower_inner(struct kg_lowering *lowering, struct kg_pass *pass,
                       const struct kg_expr *expr)
{
    int count, axes[KG_MAX_INDICES];
    int field = kg_lower_reduction(lowering, pass, expr, &count, axes);
    return kg_lower_field_read(lowering, pass, field, count, axes);
}

// Calls.

static int emit_call(struct kg_lowering *lowering, struct kg_pass *pass, enum kg_step_kind kind,
                     const struct kg_expr *expr, enum kg_type first, enum kg_type rest)
{
    struct kg_step step = {
        .kind = kind, .function = expr->function, .argument_count = expr->argument_count};
    for (int i = 0; i < expr->argument_count; i++) {
        step.arguments[i] = kg_lower_as(lowering, pass, expr->arguments[i], i == 0 ? first : rest);
        if (step.arguments[i] < 0)
            return -1;
    }
    bool real = kind == KG_STEP_REAL || kind == KG_STEP_CHOOSE;
    if (real)
        step.precision = &kg_precisions[rest];
    return emit(lowering, pass, step, real);
}

static int lower_call(struct kg_lowering *lowering, struct kg_pass *pass,
                      const struct kg_expr *expr)
{
    enum kg_type common = KG_TYPE_BOOL;
    for (int i = 0; i < expr->argument_count; i++)
        if (expr->arguments[i]->type > common)
            common = expr->arguments[i]->type;
    switch (kg_functions[expr->function].rule) {
    case KG_RULE_COMPARE:
        return emit_call(lowering, pass, is_real(common) ? KG_STEP_COMPARE : KG_STEP_INTEGER, expr,
                         common, common);
    case KG_RULE_LOGIC:
        return emit_call(lowering, pass, KG_STEP_INTEGER, expr, KG_TYPE_BOOL, KG_TYPE_BOOL);
    case KG_RULE_WHERE:
        return emit_call(lowering, pass, is_real(expr->type) ? KG_STEP_CHOOSE : KG_STEP_INTEGER,
                         expr, KG_TYPE_BOOL, expr->type);
    default:
        break;
    }
    if (!is_real(expr->type))
        return emit_call(lowering, pass, KG_STEP_INTEGER, expr, KG_TYPE_I64, KG_TYPE_I64);
    if (!kg_reals_known(expr->function)) {
        lowering->status =
            kg_error_set(lowering->error, KG_ERROR_UNSUPPORTED, "the reference has no \"%s\" of %s",
                         kg_functions[expr->function].name, kg_type_name_of(expr->type));
        return -1;
    }
    return emit_call(lowering, pass, KG_STEP_REAL, expr, expr->type, expr->type);
}

// Converts a register's value from type `from` to type `to`.
static int convert(struct kg_lowering *lowering, struct kg_pass *pass, int value, enum kg_type from,
                   enum kg_type to)
{
    if (value < 0 || from == to)
        return value;
    if (is_real(to) && is_real(from))
        return to == KG_TYPE_F64 ? value
                                 : emit_move(lowering, pass, KG_STEP_NARROW, value, KG_F32, to);
    if (is_real(to))
        return emit_move(lowering, pass, KG_STEP_TO_REAL, value, KG_F32, to);
    if (to == KG_TYPE_BOOL)
        return is_real(from) ? emit_move(lowering, pass, KG_STEP_TO_TRUTH, value, KG_BOOL, to)
                             : emit_move(lowering, pass, KG_STEP_WRAP, value, KG_BOOL, to);
    return is_real(from) ? emit_move(lowering, pass, KG_STEP_TO_INTEGER, value, KG_I64, to) : value;
}

int kg_lower_wrapped(struct kg_lowering *lowering, struct kg_pass *pass, int value,
                     enum kg_dtype dtype)
{
    return value < 0 ? value : emit_move(lowering, pass, KG_STEP_WRAP, value, dtype, KG_TYPE_I64);
}

static int lower_cast(struct kg_lowering *lowering, struct kg_pass *pass,
                      const struct kg_expr *expr)
{
    enum kg_dtype dtype = expr->cast.dtype;
    const struct kg_expr *argument = expr->arguments[0];
    const struct kg_dtype_info *info = &kg_dtypes[dtype];
    if (!info->is_float) {
        int value = kg_lower_as(lowering, pass, argument, info->compute);
        return kg_dtype_is_computed(dtype) ? value : kg_lower_wrapped(lowering, pass, value, dtype);
    }
    // Rounds once, even if the argument was wider.
    bool wide = argument->type == KG_TYPE_F64 || argument->type == KG_TYPE_I64;
    if (kg_dtype_is_computed(dtype) && (info->compute == KG_TYPE_F64 || !wide))
        return kg_lower_as(lowering, pass, argument, info->compute);
    int value = kg_lower_as(lowering, pass, argument, wide ? KG_TYPE_F64 : KG_TYPE_F32);
    return emit_move(lowering, pass, KG_STEP_ROUND, value, dtype, info->compute);
}

int kg_lower_expr(struct kg_lowering *lowering, struct kg_pass *pass, const struct kg_expr *expr)
{
    if (lowering->status != KG_OK)
        return -1;
    switch (expr->kind) {
    case KG_EXPR_NUMBER:
        if (is_real(expr->type))
            return emit_real(lowering, pass,
                             expr->is_integer ? (double)expr->integer : expr->number, expr->type);
        return emit_integer(lowering, pass, expr->integer);
    case KG_EXPR_SIZE:
        if (is_real(expr->type))
            return emit_real(lowering, pass, expr->size->real, expr->type);
        return emit_integer(lowering, pass, lowering->program->problem->sizes[expr->size->id]);
    case KG_EXPR_INDEX:
        return emit_axis(lowering, pass, axis_of(pass, expr->index));
    case KG_EXPR_READ:
        return lower_read(lowering, pass, expr);
    case KG_EXPR_CALL:
        return lower_call(lowering, pass, expr);
    case KG_EXPR_CAST:
        return lower_cast(lowering, pass, expr);
    case KG_EXPR_REDUCE:
        return lower_inner(lowering, pass, expr);
    }
    return -1;
}

int kg_lower_as(struct kg_lowering *lowering, struct kg_pass *pass, const struct kg_expr *expr,
                enum kg_type type)
{
    if (lowering->status != KG_OK)
        return -1;
    // Integer constants in real expressions become reals, so that 2 * x has no conversion.
    if (is_real(type) && expr->type == KG_TYPE_I64) {
        if (expr->kind == KG_EXPR_NUMBER)
            return emit_real(lowering, pass, (double)expr->integer, type);
        if (expr->kind == KG_EXPR_SIZE)
            return emit_real(lowering, pass,
                             (double)lowering->program->problem->sizes[expr->size->id], type);
    }
    return convert(lowering, pass, kg_lower_expr(lowering, pass, expr), expr->type, type);
}

int kg_lower_relation(struct kg_lowering *lowering, struct kg_pass *pass, int axis,
                      enum kg_relation relation, const struct kg_expr *bound)
{
    static const enum kg_function functions[] = {[KG_RELATION_LE] = KG_FN_LE,
                                                 [KG_RELATION_LT] = KG_FN_LT,
                                                 [KG_RELATION_GE] = KG_FN_GE,
                                                 [KG_RELATION_GT] = KG_FN_GT};
    int left = emit_axis(lowering, pass, axis);
    int right = kg_lower_as(lowering, pass, bound, KG_TYPE_I64);
    if (left < 0 || right < 0)
        return -1;
    struct kg_step step = {.kind = KG_STEP_INTEGER,
                           .function = functions[relation],
                           .argument_count = 2,
                           .arguments = {left, right}};
    return emit(lowering, pass, step, false);
}

int kg_lower_both(struct kg_lowering *lowering, struct kg_pass *pass, int left, int right)
{
    if (left < 0 || right < 0)
        return -1;
    struct kg_step step = {.kind = KG_STEP_INTEGER,
                           .function = KG_FN_AND,
                           .argument_count = 2,
                           .arguments = {left, right}};
    return emit(lowering, pass, step, false);
}
