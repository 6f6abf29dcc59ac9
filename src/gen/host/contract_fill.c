// The function that computes a rectangle of an operand, or of a part of its formula. Its inner loop
// should become vector code, so what stands in the way is taken out of it: 4-bit elements are
// spread into bytes beforehand, reads that stay the same for a group of k (scales, zero points) are
// made once for the group, and small integers are computed in 32 bits.

#include "gen/host/contract_writer.h"

#include <stdio.h>
#include <string.h>

#define MOST_READS 16

enum way {
    IN_PLACE, // loaded in the inner loop
    SPREAD,   // 4-bit elements along the run, spread before it
    HELD,     // the same for the whole run
    HELD_ROW, // a row of elements, the same for a group of steps of the outer loop
};

struct placed_read {
    const struct kg_access *access;
    enum way way;
    int64_t group; // HELD, HELD_ROW: steps of k for which the value stays the same
};

struct fill {
    const struct kg_contract_writer *writer;
    const struct kg_contract_operand *operand;
    bool adds; // factors are added (subtracted, if they divide) instead of multiplied
    enum kg_contract_role rows;
    struct kg_contract_run run;
    int k;          // the only axis of K, or -1
    int row;        // the only axis of the rows, or -1
    int64_t groups; // 0, or the run is along groups of so many k
    int count;
    struct placed_read reads[MOST_READS];
};

static bool is_packed(const struct kg_tensor *tensor)
{
    return kg_dtype_is_packed(kg_emit_tensor_dtype(tensor));
}

// Is the axis used, and only as axis / number? The least of these numbers goes to `group`, all must
// be multiples of it.
static bool is_grouped(const struct kg_expr *expr, int axis, int64_t *group)
{
    if (expr->kind == KG_EXPR_CALL && expr->function == KG_FN_DIV &&
        expr->arguments[0]->kind == KG_EXPR_INDEX && expr->arguments[0]->index->id == axis &&
        !expr->arguments[0]->index->begin && expr->arguments[1]->kind == KG_EXPR_NUMBER &&
        expr->arguments[1]->is_integer && expr->arguments[1]->integer > 0) {
        int64_t number = expr->arguments[1]->integer;
        if (*group != 0 && number != *group)
            return false;
        *group = number;
        return true;
    }
    if (expr->kind == KG_EXPR_INDEX && expr->index->id == axis)
        return false;
    for (int i = 0; i < expr->argument_count; i++)
        if (!is_grouped(expr->arguments[i], axis, group))
            return false;
    return true;
}

// Do neighbours along `axis` lie side by side in the tensor?
static bool is_unit(const struct fill *fill, const struct kg_access *access, int axis)
{
    int last = access->tensor->rank - 1;
    if (last < 0 || axis < 0 || access->read->pad || !fill->writer->names.contiguous)
        return false;
    for (int dim = 0; dim < last; dim++)
        if (kg_expr_uses(access->map[dim].subscript, axis, true))
            return false;
    return access->map[last].is_affine && access->map[last].coefficient[axis] == 1;
}

// Do elements of neighbouring groups of k lie side by side in the tensor?
static bool is_unit_of_groups(const struct fill *fill, const struct kg_access *access)
{
    int last = access->tensor->rank - 1;
    if (last < 0 || access->read->pad || !fill->writer->names.contiguous)
        return false;
    for (int dim = 0; dim < last; dim++)
        if (kg_expr_uses(access->map[dim].subscript, fill->k, true))
            return false;
    const struct kg_expr *subscript = access->map[last].subscript;
    int64_t group = 0;
    return subscript->kind == KG_EXPR_CALL && subscript->arguments[0]->kind == KG_EXPR_INDEX &&
           is_grouped(subscript, fill->k, &group) && group == fill->groups;
}

static void place_read(struct fill *fill, const struct kg_expr *read)
{
    const struct kg_access *access = kg_nest_access(fill->writer->contract->nest, read);
    struct placed_read *placed = &fill->reads[fill->count];
    *placed = (struct placed_read){access, IN_PLACE, 0};
    if (fill->groups > 0) {
        if (is_packed(access->tensor) && is_unit_of_groups(fill, access)) {
            placed->way = SPREAD;
            fill->count++;
        }
        return;
    }
    if (fill->k >= 0 && kg_expr_uses(read, fill->k, true) &&
        is_grouped(read, fill->k, &placed->group) && !read->pad) {
        if (fill->operand->k_major)
            placed->way = HELD;
        else if (fill->row >= 0 && kg_expr_uses(read, fill->row, true))
            placed->way = HELD_ROW;
    }
    int inner = fill->operand->k_major ? fill->k : fill->row;
    if (placed->way == IN_PLACE && is_packed(access->tensor) && is_unit(fill, access, inner))
        placed->way = SPREAD;
    if (placed->way != IN_PLACE)
        fill->count++;
}

static void place_reads(struct fill *fill, const struct kg_expr *expr)
{
    if (expr->kind == KG_EXPR_READ) {
        if (fill->count < MOST_READS)
            place_read(fill, expr);
        return;
    }
    for (int i = 0; i < expr->argument_count; i++)
        place_reads(fill, expr->arguments[i]);
}

// One cut serves all held reads; those of other groups are loaded in place.
static int64_t settle_cut(struct fill *fill)
{
    int64_t cut = 0;
    for (int i = 0; i < fill->count; i++) {
        if (fill->reads[i].way != HELD)
            continue;
        if (cut == 0)
            cut = fill->reads[i].group;
        if (cut != fill->reads[i].group)
            fill->reads[i].way = IN_PLACE;
    }
    return cut;
}

// The type of a read's value in the inner loop: small integers are 32 bits wide.
static const char *value_type(const struct kg_access *access)
{
    bool small = access->read->type == KG_TYPE_I64 &&
                 kg_dtypes[kg_emit_tensor_dtype(access->tensor)].bits <= 8;
    return small ? "int32_t" : kg_emit_type(access->read->type);
}

static bool print_read(void *user, struct kg_text *text, const struct kg_access *access)
{
    const struct fill *fill = user;
    const struct kg_contract_writer *writer = fill->writer;
    for (int i = 0; i < fill->count; i++) {
        const struct placed_read *placed = &fill->reads[i];
        if (placed->access != access || placed->way == IN_PLACE)
            continue;
        if (placed->way == HELD)
            kg_text_format(text, "lane%d", i);
        else
            kg_text_format(text, "((%s)lane%d[%s])", value_type(access), i,
                           placed->way == SPREAD ? fill->run.at : "at1");
        return true;
    }
    if (strcmp(value_type(access), "int32_t") != 0)
        return false;
    kg_text_add(text, "((int32_t)");
    kg_emit_load(text, writer->contract->nest, access, &writer->names);
    kg_text_add(text, ")");
    return true;
}

// Bounds of an integer expression that can be computed in 32 bits and be converted to f32 exactly.
// False when it cannot, or its spelling would not be plain C.
static bool small_range(const struct kg_expr *expr, double *low, double *high)
{
    const double most = 1 << 24;
    if (expr->kind == KG_EXPR_READ) {
        const struct kg_dtype_info *dtype = &kg_dtypes[kg_emit_tensor_dtype(expr->tensor)];
        *low = dtype->smallest;
        *high = dtype->largest;
        return expr->type == KG_TYPE_I64 && dtype->bits <= 8;
    }
    if (expr->kind == KG_EXPR_NUMBER) {
        *low = *high = (double)expr->integer;
        return expr->is_integer && *low >= -most && *high <= most;
    }
    if (expr->kind != KG_EXPR_CALL || (expr->function != KG_FN_ADD && expr->function != KG_FN_SUB))
        return false;
    double a[2], b[2];
    if (!small_range(expr->arguments[0], &a[0], &a[1]) ||
        !small_range(expr->arguments[1], &b[0], &b[1]))
        return false;
    bool adds = expr->function == KG_FN_ADD;
    *low = a[0] + (adds ? b[0] : -b[1]);
    *high = a[1] + (adds ? b[1] : -b[0]);
    return *low >= -most && *high <= most;
}

static void print_small(const struct kg_contract_writer *writer, struct kg_emit_names *names,
                        const struct kg_expr *expr)
{
    if (expr->kind != KG_EXPR_CALL) {
        kg_emit_expr(writer->text, writer->contract->nest, expr, names);
        return;
    }
    kg_text_add(writer->text, "(");
    print_small(writer, names, expr->arguments[0]);
    kg_text_add(writer->text, expr->function == KG_FN_ADD ? " + " : " - ");
    print_small(writer, names, expr->arguments[1]);
    kg_text_add(writer->text, ")");
}

static void print_factor(const struct fill *fill, struct kg_emit_names *names,
                         const struct kg_expr *expr)
{
    const struct kg_contract_writer *writer = fill->writer;
    enum kg_type type = writer->contract->type;
    double low, high;
    if (type != KG_TYPE_I64 && expr->type == KG_TYPE_I64 && small_range(expr, &low, &high)) {
        kg_text_format(writer->text, "(%s)", kg_emit_type(type));
        print_small(writer, names, expr);
        return;
    }
    bool alone = fill->operand->count == 1;
    kg_text_add(writer->text, alone ? "" : "(");
    kg_emit_value(writer->text, writer->contract->nest, expr, type, names);
    kg_text_add(writer->text, alone ? "" : ")");
}

static void print_side(const struct fill *fill, struct kg_emit_names *names)
{
    struct kg_text *text = fill->writer->text;
    const struct kg_contract_operand *operand = fill->operand;
    int first = 0;
    while (first < operand->count && operand->factors[first].divides)
        first++;
    if (first < operand->count)
        print_factor(fill, names, operand->factors[first].expr);
    else
        kg_text_format(text, "(%s)%d", kg_emit_type(fill->writer->contract->type), !fill->adds);
    for (int i = 0; i < operand->count; i++) {
        if (i == first)
            continue;
        if (fill->adds)
            kg_text_add(text, operand->factors[i].divides ? " - " : " + ");
        else
            kg_text_add(text, operand->factors[i].divides ? " / " : " * ");
        print_factor(fill, names, operand->factors[i].expr);
    }
}

// The last axis of the run at its beginning.
static void print_run_begin(void *user, struct kg_text *text, int axis)
{
    const struct fill *fill = user;
    if (axis == fill->run.axis)
        kg_text_add(text, "part1");
    else
        kg_text_format(text, "i%d", axis);
}

static void emit_spread(const struct fill *fill, int level, int i, const char *length)
{
    const struct kg_contract_writer *writer = fill->writer;
    const struct kg_access *access = fill->reads[i].access;
    struct fill copy = *fill;
    struct kg_emit_names names = writer->names;
    names.user = &copy;
    names.axis = print_run_begin;
    const char *dtype = kg_dtypes[kg_emit_tensor_dtype(access->tensor)].name;
    kg_text_format(writer->text, "%*skg_spread_%s(", 4 * level, "", dtype);
    kg_emit_name(writer->text, access->tensor->name);
    kg_text_add(writer->text, ", ");
    kg_emit_offset(writer->text, writer->contract->nest, access, &names);
    kg_text_format(writer->text, ", %s, lane%d);\n", length, i);
}

static void declare_row(const struct fill *fill, int level, int i)
{
    const struct kg_access *access = fill->reads[i].access;
    const char *type = value_type(access);
    if (fill->reads[i].way == SPREAD ||
        (is_packed(access->tensor) && is_unit(fill, access, fill->row)))
        type = kg_dtypes[kg_emit_tensor_dtype(access->tensor)].is_signed ? "int8_t" : "uint8_t";
    kg_emit_line(fill->writer->text, level, "%s lane%d[KG_STAGE];", type, i);
}

// Fills rows of elements that hold for a group of k, when a group begins.
static void emit_rows(const struct fill *fill)
{
    const struct kg_contract_writer *writer = fill->writer;
    for (int i = 0; i < fill->count; i++) {
        if (fill->reads[i].way != HELD_ROW)
            continue;
        const struct kg_access *access = fill->reads[i].access;
        kg_emit_line(writer->text, 2, "if (at0 == 0 || i%d %% %lld == 0) {", fill->k,
                     (long long)fill->reads[i].group);
        struct fill rows = *fill;
        if (is_packed(access->tensor) && is_unit(fill, access, fill->row)) {
            emit_spread(&rows, 3, i, "rows");
        } else {
            rows.run.level = 3;
            int level = kg_contract_open_elements(writer, &rows.run);
            kg_text_format(writer->text, "%*slane%d[at1] = ", 4 * level, "", i);
            kg_emit_load(writer->text, writer->contract->nest, access, &writer->names);
            kg_text_add(writer->text, ";\n");
            kg_emit_line(writer->text, 3, "}");
        }
        kg_emit_line(writer->text, 2, "}");
    }
}

// What is made once for a run.
static void emit_held(const struct fill *fill)
{
    const struct kg_contract_writer *writer = fill->writer;
    int level = fill->run.level;
    struct fill copy = *fill;
    struct kg_emit_names names = writer->names;
    names.user = &copy;
    names.axis = print_run_begin;
    for (int i = 0; i < fill->count; i++) {
        const struct kg_access *access = fill->reads[i].access;
        if (fill->reads[i].way == SPREAD) {
            emit_spread(fill, level, i, fill->run.whole ? fill->run.length : "part0");
        } else if (fill->reads[i].way == HELD) {
            kg_text_format(writer->text, "%*sconst %s lane%d = ", 4 * level, "", value_type(access),
                           i);
            kg_text_format(writer->text, "(%s)", value_type(access));
            kg_emit_load(writer->text, writer->contract->nest, access, &names);
            kg_text_add(writer->text, ";\n");
        }
    }
}

static void emit_loops(struct fill *fill)
{
    const struct kg_contract_writer *writer = fill->writer;
    const struct kg_contract_operand *operand = fill->operand;
    bool k_major = operand->k_major;
    enum kg_contract_role rows = fill->rows;
    int64_t cut = settle_cut(fill);
    for (int i = 0; i < fill->count; i++) {
        if (fill->reads[i].way == SPREAD || fill->reads[i].way == HELD_ROW)
            declare_row(fill, 1, i);
    }
    kg_emit_line(writer->text, 1, "for (int64_t at0 = 0; at0 < %s; at0++) {",
                 k_major ? "rows" : "depth");
    kg_contract_all_axes(writer, 2, k_major ? rows : KG_CONTRACT_K,
                         k_major ? "row + at0" : "start + at0");
    fill->run = kg_contract_open_run(writer, 2, k_major ? KG_CONTRACT_K : rows,
                                     k_major ? "start" : "row", k_major ? "depth" : "rows", cut);
    emit_rows(fill);
    emit_held(fill);
    int level = kg_contract_open_elements(writer, &fill->run);
    struct kg_emit_names names = writer->names;
    names.user = fill;
    names.read = print_read;
    kg_text_format(writer->text, "%*sto[at0 * width + at1] = ", 4 * level, "");
    print_side(fill, &names);
    kg_text_add(writer->text, ";\n");
    kg_emit_line(writer->text, fill->run.level, "}");
    kg_contract_close_run(writer, &fill->run);
    kg_emit_line(writer->text, 1, "}");
}

static void emit_function(struct fill *fill, const char *name, const char *type)
{
    const struct kg_contract_writer *writer = fill->writer;
    const struct kg_contract *contract = writer->contract;
    fill->k = fill->row = -1;
    if (contract->axis_count[KG_CONTRACT_K] == 1)
        fill->k = contract->axes[KG_CONTRACT_K][0];
    if (contract->axis_count[fill->rows] == 1)
        fill->row = contract->axes[fill->rows][0];
    for (int i = 0; i < fill->operand->count; i++)
        place_reads(fill, fill->operand->factors[i].expr);
    kg_text_format(writer->text,
                   "static void %s(const struct kg_host_call *call, int64_t item, int64_t row, "
                   "int64_t rows,\n                   int64_t start, int64_t depth, %s "
                   "*restrict to, int64_t width)\n{\n",
                   name, type);
    kg_text_add(writer->text, "    (void)call, (void)item, (void)row, (void)start;\n");
    kg_emit_host_bindings(writer->text, contract->group, false);
    kg_contract_all_axes(writer, 1, KG_CONTRACT_BATCH, "item");
    emit_loops(fill);
    kg_text_add(writer->text, "}\n\n");
}

static struct fill fill_of(const struct kg_contract_writer *writer, int index)
{
    return (struct fill){
        .writer = writer,
        .operand = &writer->contract->operands[index],
        .rows = index ? KG_CONTRACT_N : KG_CONTRACT_M,
    };
}

void kg_contract_emit_fill(const struct kg_contract_writer *writer, int index)
{
    struct fill fill = fill_of(writer, index);
    emit_function(&fill, index ? "b_fill" : "a_fill", "KG_REAL");
}

void kg_contract_emit_shorts(const struct kg_contract_writer *writer, int index)
{
    struct fill fill = fill_of(writer, index);
    emit_function(&fill, index ? "b_shorts" : "a_shorts", "int16_t");
}

void kg_contract_emit_part(const struct kg_contract_writer *writer, const char *name, bool adds,
                           const struct kg_contract_operand *part)
{
    struct fill fill = {.writer = writer, .operand = part, .adds = adds, .rows = KG_CONTRACT_N};
    emit_function(&fill, name, "KG_REAL");
}

void kg_contract_emit_groups(const struct kg_contract_writer *writer, const char *name, bool adds,
                             const struct kg_contract_operand *part, int64_t group)
{
    const struct kg_contract *contract = writer->contract;
    struct kg_text *text = writer->text;
    struct fill fill = {.writer = writer, .operand = part, .adds = adds, .rows = KG_CONTRACT_N};
    fill.k = contract->axes[KG_CONTRACT_K][0];
    fill.row = -1;
    fill.groups = group;
    fill.run = (struct kg_contract_run){.axis = fill.k, .at = "at1", .length = "count"};
    for (int i = 0; i < part->count; i++)
        place_reads(&fill, part->factors[i].expr);
    kg_text_format(text,
                   "static void %s(const struct kg_host_call *call, int64_t item, int64_t row,\n"
                   "                   int64_t first, int64_t count, KG_REAL *restrict to)\n{\n"
                   "    (void)call, (void)item, (void)row;\n",
                   name);
    kg_emit_host_bindings(text, contract->group, false);
    kg_contract_all_axes(writer, 1, KG_CONTRACT_BATCH, "item");
    kg_contract_all_axes(writer, 1, KG_CONTRACT_N, "row");
    kg_emit_line(text, 1, "const int64_t part1 = first * %lld;", (long long)group);
    kg_emit_line(text, 1, "(void)part1;");
    for (int i = 0; i < fill.count; i++) {
        declare_row(&fill, 1, i);
        emit_spread(&fill, 1, i, fill.run.length);
    }
    struct kg_emit_names names = writer->names;
    names.user = &fill;
    names.read = print_read;
    kg_text_add(text, "#pragma omp simd\n");
    kg_emit_line(text, 1, "for (int64_t at1 = 0; at1 < count; at1++) {");
    kg_emit_line(text, 2, "const int64_t i%d = part1 + at1 * %lld;", fill.k, (long long)group);
    kg_emit_line(text, 2, "(void)i%d;", fill.k);
    kg_text_add(text, "        to[at1] = ");
    print_side(&fill, &names);
    kg_text_add(text, ";\n    }\n}\n\n");
}
