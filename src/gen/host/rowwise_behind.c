// The last pass one row behind: see rowwise.c for the strategy.
//
// The pass before the last works on a row while the last one works on the row before it, step by
// step in one loop, and the row after it is fetched. So memory writes and reads while the core
// computes, where passes that follow each other leave one waiting for the other. What the last pass
// reads of the row before lies in the other half of the row buffers, or in before<k>.
//
// Written in vectors of floats: the compiler would not keep loops of that size in registers by
// itself. Rows that are not whole steps are left to the plain passes (rowwise_emit.c).

#include "gen/host/rowwise.h"

#include <stdio.h>

enum {
    WIDTH = 4,  // vectors in a step
    ROUND = 32, // steps after which float sums are folded into the total
};

static bool is_private(const struct kg_rowwise_plan *plan, int position)
{
    return kg_group_is_private(plan->group, kg_group_nest(plan->group, position)->output);
}

static bool is_column(const struct kg_rowwise_plan *plan, int position)
{
    return plan->role[position] == KG_ROWWISE_COLUMN;
}

static bool is_reduce(const struct kg_rowwise_plan *plan, int position, int pass)
{
    return plan->role[position] == KG_ROWWISE_REDUCE && plan->pass[position] == pass;
}

// Does a nest of pass `pass` read what the nest at `position` makes? Scalars count for the pass
// after them.
static bool is_read_in(const struct kg_rowwise_plan *plan, int position, int pass)
{
    for (int i = position + 1; i < plan->group->count; i++)
        for (int a = 0; plan->pass[i] == pass && a < kg_group_nest(plan->group, i)->access_count;
             a++)
            if (kg_group_nest(plan->group, i)->accesses[a].tensor ==
                kg_group_nest(plan->group, position)->output)
                return true;
    return false;
}

// ---- What can be done so ----

static bool fits_read(const struct kg_rowwise_plan *plan, const struct kg_nest *nest,
                      const struct kg_expr *expr)
{
    const struct kg_access *access = kg_nest_access(nest, expr);
    int last = access->tensor->rank - 1;
    if (expr->pad || kg_emit_tensor_dtype(access->tensor) != KG_F32)
        return false;
    for (int dim = 0; dim <= last; dim++) {
        const struct kg_affine *map = &access->map[dim];
        int64_t step = map->is_affine ? map->coefficient[plan->last] : -1;
        if (step != 0 && (step != 1 || dim < last))
            return false;
    }
    return true;
}

// Is the formula's C the same for a float and for a vector of floats, but for names of functions?
static bool fits_formula(const struct kg_rowwise_plan *plan, const struct kg_nest *nest,
                         const struct kg_expr *expr)
{
    static const bool infix[KG_FUNCTION_COUNT] = {
        [KG_FN_ADD] = true, [KG_FN_SUB] = true, [KG_FN_MUL] = true,
        [KG_FN_DIV] = true, [KG_FN_NEG] = true,
    };
    if (expr->type != KG_TYPE_F32)
        return false;
    if (!kg_expr_uses(expr, plan->last, true))
        return true; // one float
    if (expr->kind == KG_EXPR_READ)
        return fits_read(plan, nest, expr);
    if (expr->kind != KG_EXPR_CALL || (!infix[expr->function] && expr->function != KG_FN_EXP))
        return false;
    for (int i = 0; i < expr->argument_count; i++)
        if (!fits_formula(plan, nest, expr->arguments[i]))
            return false;
    return true;
}

static bool fits_nest(const struct kg_rowwise_plan *plan, int i)
{
    const struct kg_nest *nest = kg_group_nest(plan->group, i);
    bool sums = nest->reduce == KG_REDUCE_SUM || nest->reduce == KG_REDUCE_MEAN;
    if (kg_emit_tensor_dtype(nest->output) != KG_F32)
        return false;
    if (plan->role[i] == KG_ROWWISE_SCALAR)
        return true;
    if (plan->role[i] == KG_ROWWISE_REDUCE && !sums && nest->reduce != KG_REDUCE_MAX &&
        nest->reduce != KG_REDUCE_MIN)
        return false;
    // Columns that are made in one pass and read in another have to be kept.
    for (int pass = plan->pass[i] + 1; is_column(plan, i) && pass < plan->passes; pass++)
        if (!plan->kept[i] && is_read_in(plan, i, pass))
            return false;
    return kg_expr_uses(nest->body, plan->last, true) && fits_formula(plan, nest, nest->body);
}

bool kg_rowwise_can_follow(const struct kg_rowwise_plan *plan)
{
    if (plan->passes < 2 || plan->rows != plan->last || !plan->group->problem->contiguous)
        return false;
    for (int i = 0; i < plan->group->count; i++)
        if (!fits_nest(plan, i) || is_reduce(plan, i, plan->passes - 1))
            return false;
    return true;
}

// ---- The code ----

struct writer {
    struct kg_code *code;
    const struct kg_rowwise_plan *plan;
    struct kg_values values;
    char names[KG_MAX_NESTS][64], divisors[KG_MAX_NESTS][16];
};

// Are columns of the last pass divided by this value of the row?
static bool is_divisor(const struct kg_rowwise_plan *plan, int i)
{
    for (int j = i + 1; j < plan->group->count && !is_column(plan, i); j++)
        if (is_column(plan, j) && plan->pass[j] == plan->passes - 1 &&
            kg_expr_divides(kg_group_nest(plan->group, j)->body,
                            kg_group_nest(plan->group, i)->output))
            return true;
    return false;
}

static void name(struct writer *writer, int i, const char *format)
{
    snprintf(writer->names[i], sizeof writer->names[i], format, i, writer->plan->last);
    writer->values.locals[i] = writer->names[i];
}

// What reads in pass `pass` give of what was made before it.
static void name_all(struct writer *writer, int pass)
{
    const struct kg_rowwise_plan *plan = writer->plan;
    bool behind = pass == plan->passes - 1;
    for (int i = 0; i < plan->group->count; i++) {
        writer->values.locals[i] = NULL;
        writer->values.divisors[i] = NULL;
        if (behind && is_divisor(plan, i)) {
            snprintf(writer->divisors[i], sizeof writer->divisors[i], "over%d", i);
            writer->values.divisors[i] = writer->divisors[i];
        }
        if (!is_column(plan, i))
            name(writer, i, behind ? "before%d" : "v%d");
        else if (plan->kept[i] && plan->pass[i] < pass)
            name(writer, i, behind ? "kg_floats_at(before%d + i%d)" : "kg_floats_at(row%d + i%d)");
    }
}

static void emit_value(struct writer *writer, int i, const char *type)
{
    struct kg_code *code = writer->code;
    kg_code_begin(code);
    kg_text_format(code->text, "const %s v%d = ", type, i);
    kg_values_print(code->text, &writer->values, i, KG_TYPE_F32);
    kg_text_add(code->text, ";");
    kg_code_end(code);
    name(writer, i, "v%d");
}

static void emit_column_store(struct writer *writer, int i)
{
    const struct kg_rowwise_plan *plan = writer->plan;
    struct kg_code *code = writer->code;
    if (plan->kept[i])
        kg_code_line(code, "kg_floats_store(row%d + i%d, v%d);", i, plan->last, i);
    if (is_private(plan, i))
        return;
    kg_code_begin(code);
    kg_text_add(code->text, plan->stream ? "kg_floats_stream(" : "kg_floats_store(");
    kg_emit_name(code->text, kg_group_nest(plan->group, i)->output->name);
    kg_text_add(code->text, " + ");
    kg_values_offset(code->text, &writer->values, i);
    kg_text_format(code->text, ", v%d);", i);
    kg_code_end(code);
}

static void emit_fold_step(struct writer *writer, int i)
{
    enum kg_reduce reduce = kg_group_nest(writer->plan->group, i)->reduce;
    if (kg_fold_of(kg_group_nest(writer->plan->group, i)).is_float_sum)
        kg_code_line(writer->code, "acc%d[part] += v%d;", i, i);
    else
        kg_code_line(writer->code, "acc%d[part] = kg_%s_floats(acc%d[part], v%d);", i,
                     kg_reduces[reduce].name, i, i);
}

// One step of a pass.
static void emit_step(struct writer *writer, int pass)
{
    const struct kg_rowwise_plan *plan = writer->plan;
    struct kg_code *code = writer->code;
    name_all(writer, pass);
    writer->values.vector_axis = plan->last;
    kg_code_open(code, "for (int part = 0; part < WIDTH; part++)");
    kg_code_line(code, "const int64_t i%d = block + part * KG_FLOATS;", plan->last);
    for (int i = 0; i < plan->group->count; i++) {
        if (plan->pass[i] != pass || plan->role[i] == KG_ROWWISE_SCALAR)
            continue;
        emit_value(writer, i, "kg_floats");
        if (is_column(plan, i))
            emit_column_store(writer, i);
        else
            emit_fold_step(writer, i);
    }
    kg_code_close(code);
    writer->values.vector_axis = 0;
}

// What the passes read, of the next row.
static void emit_prefetch(struct writer *writer)
{
    const struct kg_rowwise_plan *plan = writer->plan;
    struct kg_values values = writer->values;
    bool seen[KG_MAX_NESTS + KG_MAX_TENSORS] = {false};
    char next[32];
    snprintf(next, sizeof next, "(i%d + 1)", plan->rows - 1);
    values.axes[plan->rows - 1] = next;
    values.axes[plan->last] = "block";
    for (int i = 0; i < plan->group->count; i++)
        if (plan->role[i] != KG_ROWWISE_SCALAR)
            kg_values_prefetch(writer->code, &values, i, plan->rows - 1, plan->last, "STEP", seen);
}

// What the last pass will store of this row, while the next one is computed. Two cores of a Granite
// Rapids, log_softmax of 4096x1024: 1.55 ms, without it 1.65.
static void emit_prefetch_to_write(struct writer *writer)
{
    const struct kg_rowwise_plan *plan = writer->plan;
    struct kg_code *code = writer->code;
    struct kg_values values = writer->values;
    values.axes[plan->last] = "block";
    for (int i = 0; i < plan->group->count && !plan->stream; i++) {
        if (!is_column(plan, i) || is_private(plan, i) || plan->pass[i] != plan->passes - 1)
            continue;
        kg_code_begin(code);
        kg_text_add(code->text, "kg_prefetch_to_write(");
        kg_emit_name(code->text, kg_group_nest(plan->group, i)->output->name);
        kg_text_add(code->text, " + ");
        kg_values_offset(code->text, &values, i);
        kg_text_add(code->text, ", STEP * (int64_t)sizeof(float));");
        kg_code_end(code);
    }
}

static void emit_pair_step(struct writer *writer)
{
    const struct kg_rowwise_plan *plan = writer->plan;
    struct kg_code *code = writer->code;
    kg_code_open(code, "if (item < end)");
    emit_prefetch(writer);
    emit_prefetch_to_write(writer);
    emit_step(writer, plan->passes - 2);
    kg_code_close(code);
    kg_code_open(code, "if (item > begin)");
    kg_axes_split(code, plan->shape, 0, plan->rows - 1, "(item - 1)");
    emit_step(writer, plan->passes - 1);
    kg_code_close(code);
}

static void emit_lanes(struct writer *writer, int pass)
{
    const struct kg_rowwise_plan *plan = writer->plan;
    struct kg_code *code = writer->code;
    for (int i = 0; i < plan->group->count; i++) {
        if (!is_reduce(plan, i, pass))
            continue;
        struct kg_fold fold = kg_fold_of(kg_group_nest(plan->group, i));
        kg_code_line(code, "kg_floats acc%d[WIDTH];", i);
        kg_code_line(code, "for (int part = 0; part < WIDTH; part++)");
        kg_code_indent(code);
        kg_code_begin(code);
        kg_text_format(code->text, "acc%d[part] = kg_floats_all(", i);
        kg_fold_neutral(code->text, &fold, KG_TYPE_F32);
        kg_text_add(code->text, ");");
        kg_code_end(code);
        kg_code_outdent(code);
    }
}

static void emit_folds(struct writer *writer, int pass)
{
    const struct kg_rowwise_plan *plan = writer->plan;
    for (int i = 0; i < plan->group->count; i++) {
        if (!is_reduce(plan, i, pass))
            continue;
        const char *reduce = kg_reduces[kg_group_nest(plan->group, i)->reduce].name;
        if (kg_fold_of(kg_group_nest(plan->group, i)).is_float_sum)
            kg_code_line(writer->code,
                         "kg_two_sum(&t%d, &lost%d, kg_fold_sum_floats(acc%d, WIDTH));", i, i, i);
        else
            kg_code_line(writer->code, "t%d = kg_%s_f32(t%d, kg_fold_%s_floats(acc%d, WIDTH));", i,
                         reduce, i, reduce, i);
    }
}

static void emit_pass(struct writer *writer, int pass)
{
    const struct kg_rowwise_plan *plan = writer->plan;
    struct kg_code *code = writer->code;
    for (int i = 0; i < plan->group->count; i++) {
        struct kg_fold fold = kg_fold_of(kg_group_nest(plan->group, i));
        if (is_reduce(plan, i, pass))
            kg_fold_declare_total(code, &fold, i);
    }
    kg_code_open(code, "for (int64_t start = 0; start < columns; start += ROUND)");
    kg_code_line(code, "const int64_t stop = kg_min_i64(start + ROUND, columns);");
    emit_lanes(writer, pass);
    kg_code_open(code, "for (int64_t block = start; block < stop; block += STEP)");
    if (pass == plan->passes - 2)
        emit_pair_step(writer);
    else
        emit_step(writer, pass);
    kg_code_close(code);
    emit_folds(writer, pass);
    kg_code_close(code);
}

static void store_row_value(struct writer *writer, int i)
{
    char value[16];
    if (is_private(writer->plan, i))
        return;
    snprintf(value, sizeof value, "v%d", i);
    kg_code_begin(writer->code);
    kg_values_store(writer->code->text, &writer->values, i, KG_TYPE_F32, value);
    kg_code_end(writer->code);
}

static void emit_results(struct writer *writer, int pass)
{
    const struct kg_rowwise_plan *plan = writer->plan;
    struct kg_code *code = writer->code;
    for (int i = 0; i < plan->group->count; i++) {
        if (!is_reduce(plan, i, pass))
            continue;
        struct kg_fold fold = kg_fold_of(kg_group_nest(plan->group, i));
        kg_code_begin(code);
        kg_text_format(code->text, "const float v%d = ", i);
        kg_fold_result(code->text, &fold, i, "columns");
        kg_text_add(code->text, ";");
        kg_code_end(code);
        store_row_value(writer, i);
    }
}

static void emit_scalars(struct writer *writer, int pass)
{
    const struct kg_rowwise_plan *plan = writer->plan;
    name_all(writer, 0);
    for (int i = 0; i < plan->group->count; i++) {
        if (plan->role[i] != KG_ROWWISE_SCALAR || plan->pass[i] != pass)
            continue;
        emit_value(writer, i, "float");
        store_row_value(writer, i);
    }
}

static void emit_row(struct writer *writer)
{
    const struct kg_rowwise_plan *plan = writer->plan;
    struct kg_code *code = writer->code;
    int behind = plan->passes - 1;
    kg_code_line(code, "const int64_t row = kg_min_i64(item, end - 1);");
    kg_axes_split(code, plan->shape, 0, plan->rows - 1, "row");
    for (int i = 0; i < plan->group->count; i++) {
        if (!plan->kept[i])
            continue;
        kg_code_line(code, "float *const row%d = both%d + item %% 2 * padded;", i, i);
        if (is_read_in(plan, i, behind))
            kg_code_line(code, "const float *const before%d = both%d + (item + 1) %% 2 * padded;",
                         i, i);
    }
    for (int i = 0; i < plan->group->count; i++)
        if (is_divisor(plan, i))
            kg_code_line(code, "const kg_divisor over%d = kg_divisor_f32(before%d);", i, i);
    for (int pass = 0; pass < behind; pass++) {
        emit_scalars(writer, pass);
        emit_pass(writer, pass);
        if (pass == behind - 1) {
            kg_code_line(code, "if (item == end)");
            kg_code_line(code, "    break;");
        }
        emit_results(writer, pass);
    }
    emit_scalars(writer, behind);
    for (int i = 0; i < plan->group->count; i++)
        if (!is_column(plan, i) && is_read_in(plan, i, behind))
            kg_code_line(code, "before%d = v%d;", i, i);
}

static void emit_buffers(struct writer *writer)
{
    const struct kg_rowwise_plan *plan = writer->plan;
    struct kg_code *code = writer->code;
    kg_code_line(code, "const int64_t padded = (columns + 63) / 64 * 64 + %d;", KG_ROWWISE_APART);
    for (int i = 0, buffers = 0; i < plan->group->count; i++) {
        if (plan->kept[i])
            kg_code_line(code, "float *const both%d = (float *)call->scratch + %d * padded;", i,
                         2 * buffers++);
        else if (!is_column(plan, i) && is_read_in(plan, i, plan->passes - 1))
            kg_code_line(code, "float before%d = 0.0f;", i);
    }
}

void kg_rowwise_behind_emit(struct kg_code *code, const struct kg_rowwise_plan *plan)
{
    struct writer writer = {.code = code, .plan = plan, .values = {.group = plan->group}};
    kg_code_line(code, "// Rows of whole steps: the last pass works one row behind the others.");
    kg_code_line(code,
                 "static void %s_behind(const struct kg_host_call *call, int64_t begin, "
                 "int64_t end)",
                 plan->entry);
    kg_code_line(code, "{");
    kg_code_indent(code);
    kg_code_line(code, "enum { WIDTH = %d, STEP = WIDTH * KG_FLOATS, ROUND = %d * STEP };", WIDTH,
                 ROUND);
    kg_emit_host_bindings(code->text, plan->group, false);
    kg_code_begin(code);
    kg_text_add(code->text, "const int64_t columns = ");
    kg_axes_product(code->text, plan->shape, plan->rows, plan->last);
    kg_text_add(code->text, ";");
    kg_code_end(code);
    emit_buffers(&writer);
    kg_code_open(code, "for (int64_t item = begin; item <= end; item++)");
    emit_row(&writer);
    kg_code_close(code);
    if (plan->stream)
        kg_code_line(code, "kg_stream_end();");
    kg_code_close(code);
    kg_text_add(code->text, "\n");
}

void kg_rowwise_behind_call(struct kg_code *code, const struct kg_rowwise_plan *plan)
{
    kg_code_begin(code);
    kg_text_format(code->text, "if (columns %% (%d * KG_FLOATS) == 0", WIDTH);
    for (int i = 0; plan->stream && i < plan->group->count; i++) {
        if (!is_column(plan, i) || is_private(plan, i))
            continue;
        kg_text_add(code->text, " && kg_past_line(");
        kg_emit_name(code->text, kg_group_nest(plan->group, i)->output->name);
        kg_text_add(code->text, ", sizeof(float)) == 0");
    }
    kg_text_add(code->text, ") {");
    kg_code_end(code);
    kg_code_indent(code);
    kg_code_line(code, "%s_behind(call, begin, end);", plan->entry);
    kg_code_line(code, "return;");
    kg_code_close(code);
}
