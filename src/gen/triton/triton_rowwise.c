// Work on rows: softmax, norms, losses per row.
//
// Where a row fits in the registers of a program, it is loaded once and stays there. Longer rows
// are walked in passes, one for each reduction that needs the result of another, in blocks; what a
// pass needs of an earlier one is computed again.

#include "gen/families.h"
#include "gen/shared/bound.h"
#include "gen/shared/contract_operands.h"
#include "gen/shared/rowwise_plan.h"
#include "gen/triton/triton_fold.h"
#include "gen/triton/triton_merge.h"
#include "gen/triton/triton_plain.h"
#include "gen/triton/triton_tile.h"

struct rows {
    struct kg_triton_plan plan;
    struct kg_rowwise_plan shared;
    struct kg_group group;
};

// Whether a row axis lies inside of a column axis in the memory of what the rows are read from.
static bool are_scattered(const struct kg_rowwise_plan *shared)
{
    const struct kg_nest *nest = shared->shape;
    for (int i = 0; i < nest->access_count; i++) {
        bool column = false;
        for (int dim = 0; dim < nest->accesses[i].tensor->rank; dim++) {
            const struct kg_expr *subscript = nest->accesses[i].map[dim].subscript;
            for (int axis = 0; axis < shared->rows && column; axis++)
                if (kg_expr_uses(subscript, axis, true))
                    return true;
            for (int axis = shared->rows; axis <= shared->last; axis++)
                column |= kg_expr_uses(subscript, axis, true);
        }
    }
    return false;
}

static void declare_columns(struct kg_triton_kernel *kernel, const struct rows *rows,
                            const char *start, const char **inside)
{
    struct kg_triton_axis columns = kg_triton_tile_columns(
        kernel, rows->shared.shape, rows->shared.rows, rows->shared.last, start, "[None, :]");
    *inside = columns.inside;
}

static struct kg_triton_fold fold_of(const struct kg_nest *nest)
{
    struct kg_triton_fold fold = kg_triton_fold_of(nest);
    fold.shape = "[BLOCK_ROWS, BLOCK_COLS]";
    fold.along = 1;
    fold.keeps = true;
    return fold;
}

// The result of the reduction at position i, as a value and, if others need it, in memory.
static void finish(struct kg_triton_kernel *kernel, int i, const struct kg_triton_fold *fold)
{
    const struct kg_nest *nest = kg_group_nest(kernel->group, i);
    kernel->nest = nest;
    kg_triton_settle(kernel, i, kg_triton_fold_end(kernel, fold), fold->result);
}

// The whole row at once.
static void write_short(const struct rows *rows, struct kg_triton_kernel *kernel)
{
    const struct kg_rowwise_plan *shared = &rows->shared;
    const char *inside;
    kernel->nest = shared->shape;
    kg_triton_tile_rows(kernel, shared->shape, shared->rows, !are_scattered(shared));
    declare_columns(kernel, rows, NULL, &inside);
    for (int i = 0; i < kernel->group->count; i++) {
        if (shared->role[i] != KG_ROWWISE_REDUCE) {
            kg_triton_element(kernel, i);
            continue;
        }
        kernel->nest = kg_group_nest(kernel->group, i);
        struct kg_triton_fold fold = fold_of(kernel->nest);
        kg_triton_fold_once(kernel, &fold, inside);
        finish(kernel, i, &fold);
    }
}

static bool reads(const struct kg_nest *nest, const struct kg_tensor *tensor)
{
    for (int i = 0; i < nest->access_count; i++)
        if (nest->accesses[i].tensor == tensor)
            return true;
    return false;
}

// What the loop of a pass computes: its reductions and stored columns, and the columns that these
// read, whichever pass made them first.
static void find_needed(const struct rows *rows, int pass, bool needed[KG_MAX_NESTS])
{
    const struct kg_rowwise_plan *shared = &rows->shared;
    const struct kg_group *group = &rows->group;
    for (int i = group->count - 1; i >= 0; i--) {
        const struct kg_tensor *output = kg_group_nest(group, i)->output;
        bool stored = !kg_group_is_private(group, output);
        needed[i] = shared->role[i] != KG_ROWWISE_SCALAR && shared->pass[i] == pass &&
                    (shared->role[i] == KG_ROWWISE_REDUCE || stored);
        for (int j = i + 1; j < group->count && shared->role[i] == KG_ROWWISE_COLUMN; j++)
            needed[i] |= needed[j] && reads(kg_group_nest(group, j), output);
    }
}

// The last pass that walks the row.
static int last_pass(const struct rows *rows)
{
    for (int pass = rows->shared.passes; pass > 0; pass--) {
        bool needed[KG_MAX_NESTS] = {false};
        find_needed(rows, pass, needed);
        for (int i = 0; i < rows->group.count; i++)
            if (needed[i])
                return pass;
    }
    return 0;
}

// The loop of one pass over the blocks of a row.
static void write_pass(const struct rows *rows, struct kg_triton_kernel *kernel, int pass)
{
    const struct kg_rowwise_plan *shared = &rows->shared;
    const struct kg_group *group = kernel->group;
    bool needed[KG_MAX_NESTS] = {false}, any = false;
    struct kg_triton_fold folds[KG_MAX_NESTS];
    const char *inside;
    find_needed(rows, pass, needed);
    for (int i = 0; i < group->count; i++) {
        any |= needed[i];
        if (needed[i] && shared->role[i] == KG_ROWWISE_REDUCE) {
            folds[i] = fold_of(kg_group_nest(group, i));
            kg_triton_fold_begin(kernel, &folds[i]);
        }
    }
    if (!any)
        return;
    const char *start = kg_triton_fresh(kernel, "start");
    kernel->nest = shared->shape;
    kg_triton_open(kernel, "for %s in range(0, %s, BLOCK_COLS)", start,
                   kg_triton_tile_product(kernel, shared->shape, shared->rows, shared->last));
    declare_columns(kernel, rows, start, &inside);
    for (int i = 0; i < group->count; i++) {
        if (!needed[i])
            continue;
        kernel->nest = kg_group_nest(group, i);
        kernel->again = pass < last_pass(rows);
        kernel->later = pass > 1 && !kernel->again;
        if (shared->role[i] == KG_ROWWISE_REDUCE)
            kg_triton_fold_step(kernel, &folds[i], inside);
        else if (shared->pass[i] == pass)
            kg_triton_element(kernel, i);
        else
            kg_triton_recompute(kernel, i);
    }
    kernel->again = kernel->later = false;
    kg_triton_close(kernel);
    for (int i = 0; i < group->count; i++) {
        if (needed[i] && shared->role[i] == KG_ROWWISE_REDUCE)
            finish(kernel, i, &folds[i]);
        if (shared->role[i] == KG_ROWWISE_COLUMN)
            kernel->values[i] = NULL; // of the last block
    }
}

static void write_long(const struct rows *rows, struct kg_triton_kernel *kernel)
{
    const struct kg_rowwise_plan *shared = &rows->shared;
    kernel->nest = shared->shape;
    kg_triton_tile_rows(kernel, shared->shape, shared->rows, !are_scattered(shared));
    for (int pass = 0; pass <= shared->passes; pass++) {
        for (int i = 0; i < kernel->group->count; i++)
            if (shared->role[i] == KG_ROWWISE_SCALAR && shared->pass[i] == pass)
                kg_triton_element(kernel, i);
        write_pass(rows, kernel, pass);
    }
}

// Elements of a row that a program holds at most. One that reduces a row once and writes as many
// elements as it reads is faster, of longer rows, when it reads them again from the cache, in
// blocks, beside others.
static int held_elements(const struct rows *rows)
{
    enum { HELD = 16384, HELD_TO_WRITE = 8192 };
    const struct kg_rowwise_plan *shared = &rows->shared;
    bool writes = false;
    for (int i = 0; i < rows->group.count; i++)
        writes |= shared->role[i] == KG_ROWWISE_COLUMN &&
                  !kg_group_is_private(&rows->group, kg_group_nest(&rows->group, i)->output);
    return writes && shared->passes <= 2 ? HELD_TO_WRITE : HELD;
}

static void launch(const struct rows *rows, struct kg_triton_unit *unit,
                   const struct kg_triton_kernel *whole, const struct kg_triton_kernel *blocks)
{
    struct kg_text *text = unit->launches;
    const struct kg_rowwise_plan *shared = &rows->shared;
    const struct kg_triton_host *given = unit->host;
    struct kg_triton_host merged = kg_triton_merge(unit, shared->shape, shared->rows, shared->last);
    const struct kg_triton_host *host = unit->host = &merged;
    kg_text_format(text, "    %s, %s = ", host->counts[0], host->counts[1]);
    kg_triton_host_product(text, host, shared->shape, 0, shared->rows - 1);
    kg_text_add(text, ", ");
    kg_triton_host_product(text, host, shared->shape, shared->rows, shared->last);
    kg_text_format(text, "\n    if %s:\n        %s = _row_tile(%s, %s, ", host->counts[0],
                   host->tile, host->counts[0], host->counts[1]);
    int values = kg_triton_values(whole), in_blocks = kg_triton_values(blocks);
    kg_triton_add_most(unit, values > in_blocks ? values : in_blocks, false);
    kg_text_format(text, ", %d)\n", held_elements(rows));
    kg_triton_launch_grid(unit, whole, 2, false);
    kg_text_format(text, "        if %s <= %s.cols:\n", host->counts[1], host->tile);
    kg_triton_launch_call(unit, whole, 3, KG_TRITON_TUNE_ROWS);
    kg_text_add(text, "        else:\n");
    kg_triton_launch_call(unit, blocks, 3, KG_TRITON_TUNE_ALL);
    unit->host = given;
}

static void write(const struct kg_triton_plan *plan, struct kg_triton_unit *unit)
{
    const struct rows *rows = (const struct rows *)plan;
    struct kg_triton_kernel *whole = kg_triton_unit_begin(unit, "");
    struct kg_triton_kernel *blocks = kg_triton_unit_begin(unit, "_long");
    if (whole && blocks) {
        write_short(rows, whole);
        write_long(rows, blocks);
        launch(rows, unit, whole, blocks);
    }
    if (whole)
        kg_triton_unit_end(unit, whole);
    if (blocks)
        kg_triton_unit_end(unit, blocks);
}

// Whether no value per row and column is computed, which reductions one by one would have to store.
static bool only_reduces(const struct kg_rowwise_plan *shared)
{
    for (int i = 0; i < shared->group->count; i++)
        if (shared->role[i] == KG_ROWWISE_COLUMN)
            return false;
    return true;
}

static const void *match_rows(const struct kg_group *group, const struct kg_device_facts *facts,
                              struct kg_arena *arena, struct kg_text *reason)
{
    (void)facts;
    if (group->count == 1) {
        kg_text_add(reason, "a single statement: plain does it");
        return NULL;
    }
    if (kg_contract_is_in(group)) {
        kg_text_add(reason, "a product of matrices is in it");
        return NULL;
    }
    struct rows *rows = KG_NEW(arena, struct rows);
    if (!rows)
        return NULL;
    *rows = (struct rows){
        .plan = {write, "rows per program, kept in registers; long rows (_long) in blocks"},
        .group = *group,
    };
    if (!kg_rowwise_plan_make(&rows->group, &rows->shared, reason))
        return NULL;
    if (are_scattered(&rows->shared) && only_reduces(&rows->shared)) {
        kg_text_add(reason, "elements of a row are not adjacent: reductions one by one share them "
                            "between programs");
        return NULL;
    }
    return rows;
}

const struct kg_family kg_triton_rowwise = {
    .name = "rowwise",
    .summary = "reductions over rows and what belongs to them; rows stay in registers",
    .match = match_rows,
    .space = kg_triton_space,
    .valid = kg_triton_valid,
    .guess = kg_triton_guess,
    .bound = kg_group_bound,
    .emit = kg_triton_emit,
};
