// Walks the statements of a definition and notes what the values of one input do there.

#include "verify/input_uses.h"

// One walk for one input.
struct walk {
    const struct kg_op *op;
    const int64_t *sizes;
    const struct kg_tensor *tensor;
    struct kg_input_uses *uses;
};

// Is `tensor` read, or for NULL any tensor?
static bool reads(const struct kg_expr *expr, const struct kg_tensor *tensor)
{
    if (expr->kind == KG_EXPR_READ && (!tensor || expr->tensor == tensor))
        return true;
    for (int i = 0; i < expr->argument_count; i++)
        if (reads(expr->arguments[i], tensor))
            return true;
    return expr->pad && reads(expr->pad, tensor);
}

// ---- Subscripts

static void limit(const struct walk *walk, const struct kg_expr *read, int dimension, bool first)
{
    struct kg_input_uses *uses = walk->uses;
    int64_t extent;
    if (!walk->sizes ||
        kg_lang_size_value(read->tensor->dims[dimension], walk->sizes, &extent, NULL) != KG_OK)
        return;
    int64_t low = read->pad ? -1 : 0, high = read->pad ? extent : extent - 1;
    uses->low = first || low > uses->low ? low : uses->low;
    uses->high = first || high < uses->high ? high : uses->high;
}

static void find_subscripts(const struct walk *walk, const struct kg_expr *expr)
{
    for (int i = 0; i < expr->argument_count; i++) {
        find_subscripts(walk, expr->arguments[i]);
        if (expr->kind != KG_EXPR_READ || !reads(expr->arguments[i], walk->tensor))
            continue;
        limit(walk, expr, i, !walk->uses->is_index);
        walk->uses->is_index = true;
    }
    if (expr->pad)
        find_subscripts(walk, expr->pad);
}

// ---- Shifts

static bool is_shift(const struct kg_expr *expr)
{
    return expr->kind == KG_EXPR_CALL &&
           (expr->function == KG_FN_SHIFT_LEFT || expr->function == KG_FN_SHIFT_RIGHT);
}

static void find_shifts(const struct walk *walk, const struct kg_expr *expr)
{
    if (is_shift(expr) && reads(expr->arguments[1], walk->tensor))
        walk->uses->is_count = true;
    for (int i = 0; i < expr->argument_count; i++)
        find_shifts(walk, expr->arguments[i]);
    if (expr->pad)
        find_shifts(walk, expr->pad);
}

// ---- Positions

static const struct kg_index *index_in(const struct kg_expr *expr)
{
    const struct kg_index *found = expr->kind == KG_EXPR_INDEX ? expr->index : NULL;
    for (int i = 0; i < expr->argument_count && !found; i++)
        found = index_in(expr->arguments[i]);
    return found;
}

static bool is_comparison(const struct kg_expr *expr)
{
    static const enum kg_function comparisons[] = {KG_FN_LT, KG_FN_LE, KG_FN_GT,
                                                   KG_FN_GE, KG_FN_EQ, KG_FN_NE};
    for (size_t i = 0; i < sizeof comparisons / sizeof comparisons[0]; i++)
        if (expr->kind == KG_EXPR_CALL && expr->function == comparisons[i])
            return true;
    return false;
}

// Comparisons of the input with an index: a length, the place of a class.
static void find_positions(const struct walk *walk, const struct kg_expr *expr)
{
    for (int i = 0; i < 2 && is_comparison(expr) && walk->sizes; i++) {
        const struct kg_index *index = index_in(expr->arguments[1 - i]);
        int64_t end;
        if (index && reads(expr->arguments[i], walk->tensor) &&
            kg_lang_size_value(index->end, walk->sizes, &end, NULL) == KG_OK)
            walk->uses->extent = end;
    }
    for (int i = 0; i < expr->argument_count; i++)
        find_positions(walk, expr->arguments[i]);
    if (expr->pad)
        find_positions(walk, expr->pad);
}

// ---- Searches

static bool is_search(const struct kg_expr *expr)
{
    return expr->kind == KG_EXPR_REDUCE &&
           (expr->reduce == KG_REDUCE_MAX || expr->reduce == KG_REDUCE_MIN ||
            expr->reduce == KG_REDUCE_ARGMAX || expr->reduce == KG_REDUCE_ARGMIN);
}

static bool mentions(const struct kg_expr *expr, const struct kg_index *index)
{
    if (expr->kind == KG_EXPR_INDEX)
        return expr->index == index;
    for (int i = 0; i < expr->argument_count; i++)
        if (mentions(expr->arguments[i], index))
            return true;
    return false;
}

static const struct kg_statement *definition_of(const struct kg_op *op,
                                                const struct kg_tensor *tensor)
{
    for (int i = 0; i < op->statement_count; i++)
        if (op->statements[i]->tensor == tensor)
            return op->statements[i];
    return NULL;
}

// The subscripts of `read` that an index of the search moves.
static unsigned moved_dimensions(const struct kg_expr *search, const struct kg_expr *read)
{
    unsigned moved = 0;
    for (int d = 0; d < read->argument_count; d++)
        for (int i = 0; i < search->index_count; i++)
            moved |= mentions(read->arguments[d], search->indices[i]) ? 1u << d : 0;
    return moved;
}

// Notes reads of the input in what is searched. Behind an intermediate or another reduction the
// last dimension is taken for the searched one.
static void note_searched(const struct walk *walk, const struct kg_expr *search,
                          const struct kg_expr *expr, bool behind, bool combined)
{
    combined |= expr->kind == KG_EXPR_REDUCE;
    behind |= combined;
    if (expr->kind == KG_EXPR_READ && expr->tensor == walk->tensor) {
        int rank = walk->tensor->rank;
        bool first = walk->uses->searched == 0;
        walk->uses->searched |=
            behind ? (rank ? 1u << (rank - 1) : 0) : moved_dimensions(search, expr);
        walk->uses->combined = combined && (first || walk->uses->combined);
        walk->uses->for_least =
            search->reduce == KG_REDUCE_MIN || search->reduce == KG_REDUCE_ARGMIN;
        return;
    }
    if (expr->kind == KG_EXPR_READ) {
        const struct kg_statement *made = definition_of(walk->op, expr->tensor);
        if (made && !behind)
            note_searched(walk, search, made->value, true, combined);
        return;
    }
    for (int i = 0; i < expr->argument_count; i++)
        note_searched(walk, search, expr->arguments[i], behind, combined);
}

static void find_searches(const struct walk *walk, const struct kg_expr *expr)
{
    if (is_search(expr))
        note_searched(walk, expr, expr->arguments[0], false, false);
    for (int i = 0; i < expr->argument_count; i++)
        find_searches(walk, expr->arguments[i]);
}

// ---- Products

// The statement that makes what `expr` reads, the first time that it is asked for: `seen` has a bit
// for each statement, so that long definitions do not take exponential time. NULL: none.
static const struct kg_statement *unseen(const struct kg_op *op, const struct kg_expr *expr,
                                         uint64_t *seen)
{
    for (int i = 0; i < op->statement_count && expr->kind == KG_EXPR_READ; i++) {
        bool fresh = op->statements[i]->tensor == expr->tensor && !(*seen >> i & 1);
        *seen |= (uint64_t)fresh << i;
        if (fresh)
            return op->statements[i];
    }
    return NULL;
}

// Also in the intermediates that `expr` reads.
static bool multiplies_reads(const struct walk *walk, const struct kg_expr *expr, bool inside,
                             uint64_t *seen)
{
    inside |= expr->kind == KG_EXPR_REDUCE && expr->reduce == KG_REDUCE_PROD;
    if (expr->kind == KG_EXPR_READ && expr->tensor == walk->tensor)
        return inside;
    const struct kg_statement *made = inside ? unseen(walk->op, expr, seen) : NULL;
    if (made && multiplies_reads(walk, made->value, true, seen))
        return true;
    for (int i = 0; i < expr->argument_count; i++)
        if (multiplies_reads(walk, expr->arguments[i], inside, seen))
            return true;
    return false;
}

// ---- Narrower floats

static void note_narrower(const struct walk *walk, enum kg_dtype dtype)
{
    const struct kg_dtype_info *from = &kg_dtypes[walk->tensor->type.dtype],
                               *to = &kg_dtypes[dtype];
    if (to->is_float && (to->fraction < from->fraction || to->smallest > from->smallest))
        walk->uses->narrower |= 1u << dtype;
}

static void find_casts(const struct walk *walk, const struct kg_expr *expr)
{
    if (expr->kind == KG_EXPR_CAST) {
        note_narrower(walk, expr->cast.dtype);
        walk->uses->truncated |=
            kg_dtypes[expr->cast.dtype].compute == KG_TYPE_I64 && reads(expr, walk->tensor);
    }
    for (int i = 0; i < expr->argument_count; i++)
        find_casts(walk, expr->arguments[i]);
    if (expr->pad)
        find_casts(walk, expr->pad);
}

// ---- Selections

static bool has_read_subscript(const struct kg_expr *read)
{
    for (int i = 0; i < read->argument_count; i++)
        if (reads(read->arguments[i], NULL))
            return true;
    return false;
}

// Of the input, or of an intermediate that is made of it.
static void find_selections(const struct walk *walk, const struct kg_expr *expr)
{
    if (expr->kind == KG_EXPR_READ && has_read_subscript(expr)) {
        const struct kg_statement *made = definition_of(walk->op, expr->tensor);
        walk->uses->selected |=
            expr->tensor == walk->tensor || (made && reads(made->value, walk->tensor));
    }
    for (int i = 0; i < expr->argument_count; i++)
        find_selections(walk, expr->arguments[i]);
    if (expr->pad)
        find_selections(walk, expr->pad);
}

// ---- Conditions

static bool chooses(const struct kg_expr *expr)
{
    if (expr->kind == KG_EXPR_CALL && expr->function == KG_FN_WHERE)
        return true;
    for (int i = 0; i < expr->argument_count; i++)
        if (chooses(expr->arguments[i]))
            return true;
    return expr->pad && chooses(expr->pad);
}

static bool reduces(const struct kg_expr *expr)
{
    if (expr->kind == KG_EXPR_REDUCE)
        return true;
    for (int i = 0; i < expr->argument_count; i++)
        if (reduces(expr->arguments[i]))
            return true;
    return expr->pad && reduces(expr->pad);
}

static bool has_reductions(const struct kg_op *op)
{
    for (int i = 0; i < op->statement_count; i++)
        if (reduces(op->statements[i]->value))
            return true;
    return false;
}

static bool has_conditions(const struct kg_op *op)
{
    for (int i = 0; i < op->input_count; i++)
        if (!kg_dtypes[op->tensors[i]->type.dtype].is_float)
            return true;
    for (int i = 0; i < op->statement_count; i++)
        if (chooses(op->statements[i]->value))
            return true;
    return false;
}

void kg_input_uses_find(const struct kg_op *op, const int64_t *sizes, int tensor,
                        struct kg_input_uses *uses)
{
    *uses = (struct kg_input_uses){.is_index = false};
    const struct walk walk = {op, sizes, op->tensors[tensor], uses};
    bool is_float = kg_dtypes[walk.tensor->type.dtype].is_float;
    uint64_t seen = 0;
    uses->hidden = is_float && has_conditions(op) && has_reductions(op);
    for (int i = 0; i < op->statement_count; i++) {
        const struct kg_statement *statement = op->statements[i];
        if (!is_float) {
            find_subscripts(&walk, statement->value);
            find_shifts(&walk, statement->value);
            find_positions(&walk, statement->value);
            continue;
        }
        find_searches(&walk, statement->value);
        find_casts(&walk, statement->value);
        find_selections(&walk, statement->value);
        uses->multiplied |= multiplies_reads(&walk, statement->value, false, &seen);
        if (statement->tensor->role == KG_ROLE_OUTPUT)
            note_narrower(&walk, statement->tensor->type.dtype);
    }
}

// ---- Sums of products

// Also in the intermediates that `expr` reads.
static bool multiplies(const struct kg_op *op, const struct kg_expr *expr, uint64_t *seen)
{
    if (expr->kind == KG_EXPR_CALL && expr->function == KG_FN_MUL &&
        reads(expr->arguments[0], NULL) && reads(expr->arguments[1], NULL))
        return true;
    const struct kg_statement *made = unseen(op, expr, seen);
    if (made && multiplies(op, made->value, seen))
        return true;
    for (int i = 0; i < expr->argument_count; i++)
        if (multiplies(op, expr->arguments[i], seen))
            return true;
    return false;
}

static bool sums_products(const struct kg_op *op, const struct kg_expr *expr)
{
    bool sums = expr->kind == KG_EXPR_REDUCE &&
                (expr->reduce == KG_REDUCE_SUM || expr->reduce == KG_REDUCE_MEAN);
    uint64_t seen = 0;
    if (sums && multiplies(op, expr->arguments[0], &seen))
        return true;
    for (int i = 0; i < expr->argument_count; i++)
        if (sums_products(op, expr->arguments[i]))
            return true;
    return false;
}

bool kg_input_uses_products(const struct kg_op *op)
{
    for (int i = 0; i < op->statement_count; i++)
        if (sums_products(op, op->statements[i]->value))
            return true;
    return false;
}
