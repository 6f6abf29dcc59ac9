// The sizes that a bundle's accuracy file tests: the goal's, and those at which kernels go wrong.

#include "export/bundle_rows.h"

#include "export/python_names.h"
#include "verify/case_sizes.h"

#include <string.h>

#define MAX_ROWS 64
#define MAX_STEPS 3e5       // of innermost loops
#define MAX_ELEMENTS 131072 // of what is added here; a test on the CPU takes an interpreter

struct rows {
    const struct kg_bundle *bundle;
    int count;
    int64_t sizes[MAX_ROWS][KG_MAX_SIZES];
};

static bool is_size(const struct kg_expr *expr)
{
    if (expr->kind != KG_EXPR_SIZE && expr->kind != KG_EXPR_NUMBER && expr->kind != KG_EXPR_CALL)
        return false;
    for (int i = 0; i < expr->argument_count; i++)
        if (!is_size(expr->arguments[i]))
            return false;
    return true;
}

// Subscripts such as h / (H / C) with sizes that make the divisor 0 say nothing that one would
// test.
static bool has_zero_divisor(const struct kg_expr *expr, const int64_t *sizes)
{
    bool divides = expr->kind == KG_EXPR_CALL &&
                   (expr->function == KG_FN_DIV || expr->function == KG_FN_MOD) &&
                   expr->type == KG_TYPE_I64;
    int64_t value;
    if (divides && is_size(expr->arguments[1]) &&
        (kg_lang_size_signed(expr->arguments[1], sizes, &value, NULL) != KG_OK || value == 0))
        return true;
    for (int i = 0; i < expr->argument_count; i++)
        if (has_zero_divisor(expr->arguments[i], sizes))
            return true;
    return false;
}

static bool divides_by_zero(const struct kg_op *op, const int64_t *sizes)
{
    for (int i = 0; i < op->statement_count; i++)
        if (has_zero_divisor(op->statements[i]->value, sizes))
            return true;
    return false;
}

static bool is_allowed(const struct rows *rows, const int64_t *sizes, int64_t limit)
{
    struct kg_problem *problem;
    int64_t elements = 0;
    if (kg_problem_make(rows->bundle->instance, sizes, NULL, &problem, NULL) != KG_OK)
        return false;
    for (int i = 0; i < rows->bundle->instance->tensor_count; i++)
        elements += problem->layouts[i].elements;
    double steps = 0;
    for (int i = 0; i < problem->nest_count; i++)
        steps += problem->nests[i]->iterations;
    kg_problem_free(problem);
    if (divides_by_zero(rows->bundle->instance, sizes))
        return false;
    return limit == 0 || (elements <= limit && steps <= MAX_STEPS);
}

static void add(struct rows *rows, const int64_t *sizes, int64_t limit)
{
    const struct kg_op *op = rows->bundle->instance;
    if (rows->count == MAX_ROWS || !is_allowed(rows, sizes, limit))
        return;
    for (int r = 0; r < rows->count; r++) {
        bool same = true;
        for (int i = 0; i < op->size_count; i++)
            same &= op->sizes[i]->is_param || rows->sizes[r][i] == sizes[i];
        if (same)
            return;
    }
    memcpy(rows->sizes[rows->count++], sizes, sizeof rows->sizes[0]);
}

static void add_goal(struct rows *rows)
{
    const struct kg_op *op = rows->bundle->instance;
    const struct kg_shapes *shapes = &op->goal.verify;
    for (int r = 0; op->goal.given && r < shapes->row_count; r++) {
        int64_t sizes[KG_MAX_SIZES] = {0};
        for (int i = 0; i < op->size_count; i++)
            sizes[i] = op->sizes[i]->is_param ? op->sizes[i]->value : 1;
        for (int i = 0; i < shapes->size_count; i++)
            sizes[shapes->sizes[i]->id] = shapes->rows[r * shapes->size_count + i];
        add(rows, sizes, 0);
    }
}

static void fill(const struct kg_op *op, int64_t *sizes, const int64_t *values, int count, int turn)
{
    int number = 0;
    memset(sizes, 0, KG_MAX_SIZES * sizeof *sizes);
    for (int i = 0; i < op->size_count; i++)
        sizes[i] = op->sizes[i]->is_param ? op->sizes[i]->value : values[(number++ + turn) % count];
}

// Sizes near the wanted ones that the definition allows.
static void add_near(struct rows *rows, int64_t *sizes, uint32_t kept)
{
    struct kg_random random = kg_random_make(1, 0);
    if (kg_sizes_mend(rows->bundle->instance, sizes, kept, &random))
        add(rows, sizes, MAX_ELEMENTS);
}

void kg_bundle_rows(const struct kg_bundle *bundle, struct kg_text *text)
{
    const struct kg_op *op = bundle->instance;
    static const int64_t ones[] = {1}, small[] = {2, 3}, primes[] = {7, 13, 5, 31, 3, 11, 2};
    static const int64_t edges[] = {127, 128, 129, 1025};
    struct rows rows = {.bundle = bundle};
    int64_t sizes[KG_MAX_SIZES];
    add_goal(&rows);
    fill(op, sizes, ones, 1, 0);
    add_near(&rows, sizes, 0);
    for (int i = 0; i < op->size_count; i++) {
        if (op->sizes[i]->is_param)
            continue;
        struct kg_random random = kg_random_make(1, 0);
        fill(op, sizes, small, 2, 0);
        if (!kg_sizes_mend(op, sizes, 0, &random))
            break;
        sizes[i] = 0;
        add(&rows, sizes, MAX_ELEMENTS);
    }
    for (int turn = 0; turn < 2; turn++) {
        fill(op, sizes, primes, 7, turn);
        add_near(&rows, sizes, 0);
    }
    for (size_t e = 0; e < sizeof edges / sizeof edges[0]; e++) {
        int last = -1;
        fill(op, sizes, small, 2, (int)e);
        for (int i = 0; i < op->size_count; i++)
            last = op->sizes[i]->is_param ? last : i;
        if (last < 0)
            break;
        sizes[last] = edges[e];
        add_near(&rows, sizes, 1u << last);
    }
    kg_text_add(text, "ROWS = [\n");
    for (int r = 0; r < rows.count; r++) {
        kg_text_add(text, "    {");
        bool any = false;
        for (int i = 0; i < op->size_count; i++) {
            if (op->sizes[i]->is_param)
                continue;
            kg_text_add(text, any ? ", \"" : "\"");
            kg_python_size_name(text, op, op->sizes[i]);
            kg_text_format(text, "\": %lld", (long long)rows.sizes[r][i]);
            any = true;
        }
        kg_text_add(text, "},\n");
    }
    kg_text_add(text, "]\n");
}
