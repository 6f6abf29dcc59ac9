// One reduction, with the formulas in front of it computed where it reads them and those behind it
// computed from its result.
//
// A program has some outputs along the rows of its tile and walks the reduced indices, flattened,
// in blocks. Where there are too few outputs to keep a device busy, several programs share the
// range: each leaves its part in memory, and a second kernel folds the parts.

#include "gen/families.h"
#include "gen/shared/axes.h"
#include "gen/shared/bound.h"
#include "gen/shared/contract_operands.h"
#include "gen/shared/reduce_plan.h"
#include "gen/triton/triton_fold.h"
#include "gen/triton/triton_merge.h"
#include "gen/triton/triton_plain.h"
#include "gen/triton/triton_tile.h"

#include <string.h>

struct reduction {
    struct kg_triton_plan plan;
    int k;           // position of the reduction
    bool rows_first; // elements along the outputs are adjacent in memory
};

// The three kernels.
enum form { WHOLE, PART, END };

// Which side of the tile walks along memory: the last subscript of the reads that move along most
// axes decides, as those are most of the traffic.
static bool walks_rows(const struct kg_nest *nest)
{
    int rows = 0, cols = 0, last = nest->output_axes - 1, widest = 0;
    for (int i = 0; i < nest->access_count; i++) {
        const struct kg_access *access = &nest->accesses[i];
        int rank = access->tensor->rank, moves = 0;
        for (int axis = 0; axis < nest->axis_count; axis++)
            moves += kg_access_uses(access, axis, axis);
        if (rank == 0 || moves < widest)
            continue;
        if (moves > widest)
            rows = cols = 0;
        widest = moves;
        const struct kg_expr *subscript = access->map[rank - 1].subscript;
        cols += kg_expr_uses(subscript, nest->axis_count - 1, true);
        rows += last >= 0 && kg_expr_uses(subscript, last, true);
    }
    return rows > cols;
}

static struct kg_triton_fold fold_of(const struct kg_nest *nest, const char *cols)
{
    struct kg_triton_fold fold = kg_triton_fold_of(nest);
    bool scalar = nest->output_axes == 0;
    fold.shape = cols;
    fold.along = scalar ? 0 : 1;
    fold.keeps = !scalar;
    return fold;
}

// The memory of the parts and what tells where they are. Names are free, as nothing has been
// written yet.
static void add_extra(struct kg_triton_kernel *kernel, const struct kg_triton_host *host,
                      bool placed, enum form form)
{
    if (form == WHOLE)
        return;
    kg_triton_extra(kernel, "part_ptr", host->part);
    if (placed)
        kg_triton_extra(kernel, "place_ptr", host->place);
    if (form == PART)
        kg_triton_extra(kernel, "chunk", host->chunk);
}

// The kernel's name of an extra argument.
static const char *extra(const struct kg_triton_kernel *kernel, int i)
{
    return kernel->extras[i].name;
}

static void write_results(struct kg_triton_kernel *kernel, int k, const struct kg_triton_fold *fold)
{
    kg_triton_settle(kernel, k, kg_triton_fold_end(kernel, fold), fold->result);
    for (int i = k + 1; i < kernel->group->count; i++)
        kg_triton_element(kernel, i);
}

// The walk over the reduced indices; over a part of them if `part` names the program's own.
static void write_walk(struct kg_triton_kernel *kernel, const struct reduction *reduction,
                       enum form form)
{
    const struct kg_nest *nest = kg_group_nest(kernel->group, reduction->k);
    int first = nest->output_axes, last = nest->axis_count - 1;
    kernel->nest = nest;
    kg_triton_tile_rows(kernel, nest, first, false);
    const char *split = NULL;
    if (form == PART) {
        split = kg_triton_fresh(kernel, "split");
        kg_triton_line(kernel, "%s = %s", split,
                       kg_triton_program(kernel, first > 0 ? 1 : 0, false));
    }
    kg_triton_block(kernel, "BLOCK_COLS");
    struct kg_triton_fold fold =
        fold_of(nest, first == 0 ? "[BLOCK_COLS]" : "[BLOCK_ROWS, BLOCK_COLS]");
    kg_triton_fold_begin(kernel, &fold);
    bool flat = first < last;
    const char *begin = flat ? "0" : kg_triton_begin_of(kernel, nest->axes[last]);
    const char *end = flat ? kg_triton_tile_product(kernel, nest, first, last)
                           : kg_triton_end_of(kernel, nest->axes[last]);
    kg_triton_hoist(kernel, first);
    if (form == PART) {
        const char *from = kg_triton_fresh(kernel, "begin");
        kg_triton_line(kernel, "%s = %s%s%s * %s", from, strcmp(begin, "0") ? begin : "",
                       strcmp(begin, "0") ? " + " : "", split,
                       extra(kernel, kernel->extra_count - 1));
        begin = from;
        end = kg_triton_format(kernel, "tl.minimum(%s + %s, %s)", from,
                               extra(kernel, kernel->extra_count - 1), end);
    }
    const char *start = kg_triton_fresh(kernel, "start");
    kg_triton_open(kernel, "for %s in range(%s, %s, BLOCK_COLS)", start, begin, end);
    struct kg_triton_axis cols =
        kg_triton_tile_columns(kernel, nest, first, last, start, first == 0 ? "" : "[None, :]");
    kg_triton_fold_step(kernel, &fold, cols.inside);
    kg_triton_close(kernel);
    if (form == WHOLE) {
        write_results(kernel, reduction->k, &fold);
        return;
    }
    const char *offset = kg_triton_tile_part(kernel, nest, split);
    const char *mask = first > 0 ? kernel->axes[0].inside : NULL;
    const char *separator = mask ? ", mask=" : "";
    const char *best = kg_triton_fresh(kernel, "best");
    kg_triton_line(kernel, "%s = %s", best, kg_triton_fold_total(kernel, &fold));
    kg_triton_line(kernel, "tl.store(%s + %s, %s%s%s)", extra(kernel, 0), offset, best, separator,
                   mask ? mask : "");
    if (fold.place)
        kg_triton_line(kernel, "tl.store(%s + %s, %s%s%s)", extra(kernel, 1), offset,
                       kg_triton_fold_place(kernel, &fold, best), separator, mask ? mask : "");
}

// The parts of each output, folded.
static void write_end(struct kg_triton_kernel *kernel, const struct reduction *reduction)
{
    const struct kg_nest *nest = kg_group_nest(kernel->group, reduction->k);
    bool scalar = nest->output_axes == 0;
    kernel->nest = nest;
    kg_triton_tile_rows(kernel, nest, nest->output_axes, false);
    kg_triton_block(kernel, "BLOCK_SPLITS");
    const char *split = kg_triton_fresh(kernel, "split");
    kg_triton_line(kernel, "%s = tl.arange(0, BLOCK_SPLITS)%s", split, scalar ? "" : "[None, :]");
    struct kg_triton_fold fold = fold_of(nest, "");
    const char *offset = kg_triton_tile_part(kernel, nest, split);
    const char *mask =
        scalar ? "" : kg_triton_format(kernel, ", mask=%s, other=0", kernel->axes[0].inside);
    fold.total = kg_triton_fresh(kernel, "total");
    kg_triton_line(kernel, "%s = tl.load(%s + %s%s)", fold.total, extra(kernel, 0), offset, mask);
    if (kg_reduces[nest->reduce].is_argument) {
        fold.place = kg_triton_fresh(kernel, "place");
        kg_triton_line(kernel, "%s = tl.load(%s + %s%s)", fold.place, extra(kernel, 1), offset,
                       mask);
    }
    write_results(kernel, reduction->k, &fold);
}

static void launch(const struct reduction *reduction, struct kg_triton_unit *unit,
                   struct kg_triton_kernel *const kernels[3])
{
    struct kg_text *text = unit->launches;
    const struct kg_nest *nest = kg_group_nest(unit->group, reduction->k);
    const struct kg_triton_host *given = unit->host;
    struct kg_triton_host merged =
        reduction->rows_first
            ? kg_triton_merge(unit, nest, 0, nest->output_axes - 1)
            : kg_triton_merge(unit, nest, nest->output_axes, nest->axis_count - 1);
    const struct kg_triton_host *host = unit->host = &merged;
    const char *rows = host->counts[0], *cols = host->counts[1], *tile = host->tile;
    struct kg_triton_fold fold = kg_triton_fold_of(nest);
    bool scalar = nest->output_axes == 0, placed = kg_reduces[nest->reduce].is_argument;
    kg_text_format(text, "    %s, %s = ", rows, cols);
    kg_triton_host_product(text, host, nest, 0, nest->output_axes - 1);
    kg_text_add(text, ", ");
    kg_triton_host_product(text, host, nest, nest->output_axes, nest->axis_count - 1);
    kg_text_format(text, "\n    if %s:\n        %s = %s(%s, %s, ", rows, tile,
                   reduction->rows_first ? "_column_tile" : "_reduce_tile", rows, cols);
    int values = 0;
    for (enum form form = WHOLE; form <= END; form++)
        if (kg_triton_values(kernels[form]) > values)
            values = kg_triton_values(kernels[form]);
    kg_triton_add_most(unit, values, false);
    kg_text_add(text, ")\n");
    kg_text_format(text, "        if %s.splits == 1:\n", tile);
    kg_triton_launch_grid(unit, kernels[WHOLE], 3, false);
    kg_triton_launch_call(unit, kernels[WHOLE], 3, KG_TRITON_TUNE_ALL);
    kg_text_format(text,
                   "        else:\n            %s = _cdiv(_cdiv(%s, %s.splits), "
                   "%s.cols) * %s.cols\n",
                   host->chunk, cols, tile, tile, tile);
    bool truth = nest->reduce == KG_REDUCE_ANY || nest->reduce == KG_REDUCE_ALL;
    kg_text_format(text, "            %s = _empty((%s.splits, %s), dtype=%s, device=%s)\n",
                   host->part, tile, rows,
                   truth                      ? "torch.int32"
                   : fold.type == KG_TYPE_F64 ? "torch.float64"
                   : fold.type == KG_TYPE_I64 ? "torch.int64"
                                              : "torch.float32",
                   host->device);
    if (placed)
        kg_text_format(text,
                       "            %s = _empty((%s.splits, %s), dtype=torch.int64, device=%s)\n",
                       host->place, tile, rows, host->device);
    kg_text_format(text, "            %s = (%s%s.splits,)\n", host->grid,
                   scalar ? "" : kg_arena_format(host->arena, "_cdiv(%s, %s.rows), ", rows, tile),
                   tile);
    kg_triton_launch_call(unit, kernels[PART], 3, KG_TRITON_TUNE_NONE);
    kg_text_format(text, "            %s = (_cdiv(%s, %s.rows),)\n", host->grid, rows, tile);
    kg_triton_launch_call(unit, kernels[END], 3, KG_TRITON_TUNE_NONE);
    unit->host = given;
}

void kg_triton_write_reduction(struct kg_triton_unit *unit, int k)
{
    static const char *const suffixes[] = {"", "_part", "_end"};
    const struct kg_nest *nest = kg_group_nest(unit->group, k);
    const struct reduction reduction = {.k = k, .rows_first = walks_rows(nest)};
    struct kg_triton_kernel *kernels[3];
    bool made = true;
    for (enum form form = WHOLE; form <= END; form++) {
        kernels[form] = kg_triton_unit_begin(unit, suffixes[form]);
        made &= kernels[form] != NULL;
        if (!kernels[form])
            continue;
        add_extra(kernels[form], unit->host, kg_reduces[nest->reduce].is_argument, form);
        if (form == END)
            write_end(kernels[form], &reduction);
        else
            write_walk(kernels[form], &reduction, form);
    }
    if (made)
        launch(&reduction, unit, kernels);
    for (enum form form = WHOLE; form <= END; form++)
        if (kernels[form])
            kg_triton_unit_end(unit, kernels[form]);
}

static void write(const struct kg_triton_plan *plan, struct kg_triton_unit *unit)
{
    kg_triton_write_reduction(unit, ((const struct reduction *)plan)->k);
}

static const void *match_reduction(const struct kg_group *group,
                                   const struct kg_device_facts *facts, struct kg_arena *arena,
                                   struct kg_text *reason)
{
    (void)facts;
    int k = kg_reduce_position(group, reason);
    if (k < 0)
        return NULL;
    if (kg_triton_is_window(kg_group_nest(group, k))) {
        kg_text_add(reason, "a window: plain does it");
        return NULL;
    }
    const struct kg_nest *nest = kg_group_nest(group, k);
    for (int i = nest->output_axes; i + 1 < nest->axis_count; i++)
        if (!kg_axes_from_zero(nest->axes[i]) || !kg_axes_from_zero(nest->axes[i + 1])) {
            kg_text_add(reason, "ranges that do not begin at 0");
            return NULL;
        }
    struct reduction *reduction = KG_NEW(arena, struct reduction);
    if (reduction)
        *reduction = (struct reduction){
            .plan = {write, "rows of outputs per program, which walk the reduced indices in "
                            "blocks; few outputs share the walk (_part, _end)"},
            .k = k,
        };
    return reduction;
}

const struct kg_family kg_triton_reduce = {
    .name = "reduce",
    .summary = "one reduction with formulas in front and behind; few outputs are split",
    .match = match_reduction,
    .space = kg_triton_space,
    .valid = kg_triton_valid,
    .guess = kg_triton_guess,
    .bound = kg_group_bound,
    .emit = kg_triton_emit,
};
