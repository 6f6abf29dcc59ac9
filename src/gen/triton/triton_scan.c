// Running totals along an axis: blocks of it are scanned, and what a block adds up to is carried to
// the next one. Formulas in front are computed where the scan reads them, those behind it from its
// results.

#include "gen/families.h"
#include "gen/shared/bound.h"
#include "gen/shared/scan_plan.h"
#include "gen/triton/triton_fold.h"
#include "gen/triton/triton_plain.h"
#include "gen/triton/triton_tile.h"

struct scan {
    struct kg_triton_plan plan;
    struct kg_scan_plan shared;
    struct kg_group group;
};

static bool refuse(struct kg_text *reason, const char *why)
{
    kg_text_add(reason, why);
    return false;
}

// The output axes but the scanned one, flattened along the rows.
static void declare_rows(struct kg_triton_kernel *kernel, const struct scan *scan)
{
    const struct kg_nest *nest = scan->shared.nest;
    int others[KG_MAX_INDICES], count = 0;
    for (int axis = 0; axis < nest->output_axes; axis++)
        if (axis != scan->shared.axis)
            others[count++] = axis;
    if (count > 0)
        kg_triton_tile_rows_of(kernel, nest, others, count, false);
    else
        (void)kg_triton_tile_dimension(kernel, "row", 0, "BLOCK_ROWS", "[:, None]", "1");
}

// The function that combines two values, and the one that combines a dimension.
static const char *combination(const struct kg_triton_fold *fold, bool whole)
{
    bool real = fold->type == KG_TYPE_F32 || fold->type == KG_TYPE_F64;
    switch (fold->nest->reduce) {
    case KG_REDUCE_PROD:
        return "_product";
    case KG_REDUCE_ANY: // of 0 and 1
        return whole ? "tl.max" : "_greater";
    case KG_REDUCE_ALL:
        return whole ? "tl.min" : "_lesser";
    case KG_REDUCE_MAX:
        return whole ? real ? "_largest" : "tl.max" : real ? "_maximum" : "_greater";
    case KG_REDUCE_MIN:
        return whole ? real ? "_smallest" : "tl.min" : real ? "_minimum" : "_lesser";
    default:
        return "tl.sum";
    }
}

static bool adds(enum kg_reduce reduce)
{
    return reduce == KG_REDUCE_SUM || reduce == KG_REDUCE_MEAN;
}

static bool is_truth(enum kg_reduce reduce)
{
    return reduce == KG_REDUCE_ANY || reduce == KG_REDUCE_ALL;
}

// The result at an element from what has been combined up to it. A mean is over the elements from
// the first one, or to the last one, with or without the element itself.
static const char *finished(struct kg_triton_kernel *kernel, const struct kg_scan_plan *plan,
                            const struct kg_triton_fold *fold, const char *element, const char *end,
                            const char *running)
{
    enum kg_reduce reduce = plan->nest->reduce;
    if (is_truth(reduce))
        return kg_triton_format(kernel, "%s != 0", running);
    if (reduce != KG_REDUCE_MEAN)
        return running;
    const char *count = plan->backward ? kg_triton_format(kernel, "%s - %s", end, element)
                                       : kg_triton_format(kernel, "%s + 1", element);
    return kg_triton_format(kernel, "(%s) / tl.cast(%s, %s)", running, count,
                            kg_triton_type(fold->type));
}

// What was carried, and what the block adds to it.
static const char *joined(struct kg_triton_kernel *kernel, enum kg_reduce reduce,
                          const char *combine, const char *carry, const char *value)
{
    if (adds(reduce) || reduce == KG_REDUCE_PROD)
        return kg_triton_format(kernel, "%s %s %s", carry, adds(reduce) ? "+" : "*", value);
    return kg_triton_format(kernel, "%s(%s, %s)", combine, carry, value);
}

static void write_kernel(const struct scan *scan, struct kg_triton_kernel *kernel)
{
    const struct kg_scan_plan *shared = &scan->shared;
    const struct kg_nest *nest = shared->nest;
    const struct kg_index *axis = nest->axes[shared->axis];
    kernel->nest = nest;
    declare_rows(kernel, scan);
    struct kg_triton_fold fold = kg_triton_fold_of(nest);
    const char *neutral = kg_triton_neutral(nest->reduce, fold.type);
    const char *combine = combination(&fold, false), *whole = combination(&fold, true);
    const char *carry = kg_triton_fresh(kernel, "carry");
    const char *end = kg_triton_end_of(kernel, axis);
    kg_triton_block(kernel, "BLOCK_COLS");
    kg_triton_line(kernel, "%s = tl.full([BLOCK_ROWS, 1], %s, %s)", carry, neutral,
                   is_truth(nest->reduce) ? "tl.int32" : kg_triton_type(fold.type));
    const char *start = kg_triton_fresh(kernel, "start");
    kg_triton_open(kernel, "for %s in range(0, %s, BLOCK_COLS)", start, end);
    const char *name = kg_triton_fresh(kernel, axis->name);
    const char *inside = kg_triton_fresh(kernel, kg_triton_format(kernel, "%s_in", name));
    const char *first = start;
    if (shared->backward) // from the last block on; memory is read forward, in vectors
        first =
            kg_triton_format(kernel, "(tl.cdiv(%s, BLOCK_COLS) - 1) * BLOCK_COLS - %s", end, start);
    kg_triton_line(kernel, "%s = tl.cast(%s, INDEX) + tl.arange(0, BLOCK_COLS)[None, :]", name,
                   first);
    kg_triton_line(kernel, "%s = %s < %s", inside, name, end);
    kernel->axes[shared->axis] = (struct kg_triton_axis){.name = name, .inside = inside};
    const char *element = name, *valid = inside;
    if (shared->exclusive) { // the sum up to an element is that of those before it
        element = kg_triton_fresh(kernel, nest->axes[shared->bound]->name);
        kg_triton_line(kernel, "%s = %s %s 1", element, name, shared->backward ? "+" : "-");
        valid = kg_triton_fresh(kernel, kg_triton_format(kernel, "%s_in", element));
        if (shared->backward)
            kg_triton_line(kernel, "%s = %s & (%s < %s)", valid, inside, element, end);
        else
            kg_triton_line(kernel, "%s = %s & (%s >= 0)", valid, inside, element);
    }
    kernel->axes[shared->bound] = (struct kg_triton_axis){.name = element, .inside = valid};
    const char *value = kg_triton_fresh(kernel, "value");
    bool truth = is_truth(nest->reduce);
    const char *body = kg_triton_value(kernel, nest->body, truth ? KG_TYPE_BOOL : fold.type);
    if (truth)
        body = kg_triton_format(kernel, "%s.to(tl.int32)", kg_triton_operand(kernel, body));
    kg_triton_line(kernel, "%s = tl.where(%s, %s, %s)", value, valid, body, neutral);
    // The element itself has no type of its own to be broadcast to if it is the same in all rows.
    kg_triton_line(kernel, "%s = tl.broadcast_to(%s, [BLOCK_ROWS, BLOCK_COLS])", value, value);
    bool sums = adds(nest->reduce) || nest->reduce == KG_REDUCE_PROD;
    const char *reverse = shared->backward ? ", reverse=True" : "";
    const char *running =
        sums
            ? kg_triton_format(kernel, "%s(%s, 1%s)",
                               adds(nest->reduce) ? "tl.cumsum" : "tl.cumprod", value, reverse)
            : kg_triton_format(kernel, "tl.associative_scan(%s, 1, %s%s)", value, combine, reverse);
    running = joined(kernel, nest->reduce, combine, carry, running);
    const char *result = kg_triton_fresh(kernel, nest->output->name);
    kg_triton_line(kernel, "%s = %s", result,
                   finished(kernel, shared, &fold, element, end, running));
    kg_triton_line(kernel, "%s = %s", carry,
                   joined(kernel, nest->reduce, combine, carry,
                          kg_triton_format(kernel, "%s(%s, 1, keep_dims=True)", whole, value)));
    kernel->nest = nest;
    kg_triton_settle(kernel, shared->k, result, fold.result);
    for (int i = shared->k + 1; i < kernel->group->count; i++)
        kg_triton_element(kernel, i);
    kg_triton_close(kernel);
}

static void launch(const struct scan *scan, struct kg_triton_unit *unit,
                   const struct kg_triton_kernel *kernel)
{
    struct kg_text *text = unit->launches;
    const struct kg_triton_host *host = unit->host;
    const struct kg_nest *nest = scan->shared.nest;
    bool any = false;
    kg_text_format(text, "    %s, %s = ", host->counts[0], host->counts[1]);
    for (int axis = 0; axis < nest->output_axes; axis++) {
        if (axis == scan->shared.axis)
            continue;
        kg_text_add(text, any ? " * " : "");
        kg_triton_host_extent(text, host, nest->axes[axis]);
        any = true;
    }
    kg_text_add(text, any ? ", " : "1, ");
    kg_triton_host_extent(text, host, nest->axes[scan->shared.axis]);
    kg_text_format(text, "\n    if %s and %s:\n        %s = _scan_tile(%s, %s, ", host->counts[0],
                   host->counts[1], host->tile, host->counts[0], host->counts[1]);
    kg_triton_add_most(unit, kg_triton_values(kernel), false);
    kg_text_add(text, ")\n");
    kg_triton_launch_grid(unit, kernel, 2, false);
    kg_triton_launch_call(unit, kernel, 2, KG_TRITON_TUNE_ALL);
}

static void write(const struct kg_triton_plan *plan, struct kg_triton_unit *unit)
{
    const struct scan *scan = (const struct scan *)plan;
    struct kg_triton_kernel *kernel = kg_triton_unit_begin(unit, "");
    if (!kernel)
        return;
    write_kernel(scan, kernel);
    launch(scan, unit, kernel);
    kg_triton_unit_end(unit, kernel);
}

static bool is_fit(const struct kg_scan_plan *plan, struct kg_text *reason)
{
    switch (plan->nest->reduce) {
    case KG_REDUCE_SUM:
    case KG_REDUCE_PROD:
    case KG_REDUCE_MAX:
    case KG_REDUCE_MIN:
    case KG_REDUCE_MEAN:
    case KG_REDUCE_ANY:
    case KG_REDUCE_ALL:
        break;
    default:
        return refuse(reason, "places of extremes are not carried along");
    }
    return true;
}

static const void *match_scan(const struct kg_group *group, const struct kg_device_facts *facts,
                              struct kg_arena *arena, struct kg_text *reason)
{
    (void)facts;
    struct scan *scan = KG_NEW(arena, struct scan);
    if (!scan)
        return NULL;
    *scan = (struct scan){
        .plan = {write, "rows per program, scanned in blocks with a running total"},
        .group = *group,
    };
    if (!kg_scan_plan_make(&scan->group, &scan->shared, reason) || !is_fit(&scan->shared, reason))
        return NULL;
    return scan;
}

const struct kg_family kg_triton_scan = {
    .name = "scan",
    .summary = "running totals: blocks are scanned and their totals carried along",
    .match = match_scan,
    .space = kg_triton_space,
    .valid = kg_triton_valid,
    .guess = kg_triton_guess,
    .bound = kg_group_bound,
    .emit = kg_triton_emit,
};
