// What bodies of nests cost a core of the host: see host_costs.h.
//
// Constants are of one core of an AMD EPYC 9005 (Zen 5, 64-byte vectors, GCC 12), fitted to the
// segments that bench_segments times over the shipped ops; bench/host/judge_times.py says how well
// they rank.

#include "gen/host/host_costs.h"

#include "gen/shared/axes.h"

#include <math.h>

// Cycles of a simple operation, for a vector and for a single element.
#define VECTOR_STEP 0.6
#define SCALAR_STEP 0.6
// A load of a whole vector, of a single element, and of an element at a stride, which a vector
// gathers; what an index that is not affine, and what pads cost on top.
#define VECTOR_LOAD 0.6
#define SCALAR_LOAD 0.5
#define GATHERED_LOAD 1.3
#define PLACE_STEPS 6.0
#define PAD_STEPS 4.0
// Conversion of a narrow float, element by element and in runs; of four bits.
#define NARROW_ALONE 1.0
#define NARROW_RUN 0.12
#define NIBBLE_STEPS 3.0

// Simple operations that a function is made of, on vectors of f32. 0: as many as its FLOPs.
static const double function_steps[KG_FUNCTION_COUNT] = {
    [KG_FN_DIV] = 8,   [KG_FN_MOD] = 14,   [KG_FN_SQRT] = 12,      [KG_FN_RSQRT] = 20,
    [KG_FN_EXP] = 16,  [KG_FN_EXP2] = 14,  [KG_FN_EXPM1] = 26,     [KG_FN_LOG] = 22,
    [KG_FN_LOG2] = 22, [KG_FN_LOG1P] = 30, [KG_FN_TANH] = 32,      [KG_FN_SIGMOID] = 26,
    [KG_FN_SILU] = 27, [KG_FN_GELU] = 40,  [KG_FN_GELU_TANH] = 40, [KG_FN_ERF] = 36,
    [KG_FN_SIN] = 40,  [KG_FN_COS] = 40,   [KG_FN_SOFTPLUS] = 50,  [KG_FN_POW] = 70,
    [KG_FN_WHERE] = 1, [KG_FN_AND] = 1,    [KG_FN_OR] = 1,         [KG_FN_NOT] = 1,
    [KG_FN_FLOOR] = 1, [KG_FN_CEIL] = 1,   [KG_FN_ROUND] = 1,      [KG_FN_MAX] = 2,
    [KG_FN_MIN] = 2,
};

double kg_host_lanes(const struct kg_device_facts *facts, enum kg_type type)
{
    double bytes = facts->vector_bytes > 0 ? facts->vector_bytes : 16;
    return bytes / (type == KG_TYPE_F64 || type == KG_TYPE_I64 ? 8.0 : 4.0);
}

static double step_cycles(const struct kg_host_loop *loop, enum kg_type type)
{
    return loop->scalar ? SCALAR_STEP : VECTOR_STEP / kg_host_lanes(loop->facts, type);
}

// Elements of memory between neighbours along the loop's vector axis; NAN: not a fixed number.
static double stride_along(const struct kg_host_loop *loop, const struct kg_access *access)
{
    const struct kg_layout *layout = &loop->group->problem->layouts[access->tensor->id];
    double stride = 0;
    for (int dim = 0; dim < access->tensor->rank; dim++) {
        const struct kg_affine *map = &access->map[dim];
        if (map->is_affine)
            stride += (double)map->coefficient[loop->vector] * (double)layout->stride[dim];
        else if (kg_expr_uses(map->subscript, loop->vector, true))
            return NAN;
    }
    return stride;
}

static double read_cycles(const struct kg_host_loop *loop, const struct kg_expr *read)
{
    const struct kg_access *access = kg_nest_access(loop->nest, read);
    enum kg_dtype dtype = kg_emit_tensor_dtype(access->tensor);
    int maker = kg_group_maker(loop->group, access->tensor);
    if (maker >= 0 && kg_group_is_private(loop->group, access->tensor)) {
        struct kg_host_loop inner = *loop;
        if (!loop->inlines)
            return 0;
        inner.nest = kg_group_nest(loop->group, maker);
        if (inner.nest->has_reduce)
            return 0; // at hand
        inner.vector = -1;
        for (int dim = 0; dim < access->tensor->rank; dim++)
            if (loop->vector >= 0 && kg_expr_uses(access->map[dim].subscript, loop->vector, true))
                inner.vector = dim;
        if (loop->vector >= 0 && inner.vector < 0)
            return 0; // the same for all neighbours
        return kg_host_body_cycles(&inner);
    }
    double lanes = kg_host_lanes(loop->facts, read->type);
    double stride = loop->vector >= 0 ? stride_along(loop, access) : NAN;
    bool narrow = dtype == KG_F16 || dtype == KG_BF16, near = stride == 1.0 && !loop->scalar;
    double cycles = loop->scalar ? SCALAR_LOAD : near ? VECTOR_LOAD / lanes : GATHERED_LOAD;
    if (isnan(stride))
        cycles += PLACE_STEPS * SCALAR_STEP;
    if (read->pad)
        cycles += PAD_STEPS * (near ? VECTOR_STEP / lanes : SCALAR_STEP);
    if (narrow)
        cycles += near && loop->narrow_run ? NARROW_RUN : NARROW_ALONE;
    if (kg_dtypes[dtype].bits < 8)
        cycles += NIBBLE_STEPS * SCALAR_STEP;
    return cycles;
}

double kg_host_expr_cycles(const struct kg_host_loop *loop, const struct kg_expr *expr)
{
    if (loop->vector >= 0 && !kg_expr_uses(expr, loop->vector, true))
        return 0; // once for all neighbours
    if (expr->kind == KG_EXPR_READ)
        return read_cycles(loop, expr);
    double cycles = 0, step = step_cycles(loop, expr->type);
    for (int i = 0; i < expr->argument_count; i++)
        cycles += kg_host_expr_cycles(loop, expr->arguments[i]);
    if (expr->kind == KG_EXPR_CAST)
        return cycles + step;
    if (expr->kind != KG_EXPR_CALL)
        return cycles;
    double steps = function_steps[expr->function];
    steps = steps > 0 ? steps : kg_functions[expr->function].operations;
    if (expr->type == KG_TYPE_F64 && steps > 2)
        steps *= 2;
    return cycles + steps * step;
}

double kg_host_body_cycles(const struct kg_host_loop *loop)
{
    return kg_host_expr_cycles(loop, loop->nest->body);
}

double kg_host_store_cycles(const struct kg_host_loop *loop)
{
    enum kg_dtype dtype = kg_emit_tensor_dtype(loop->nest->output);
    bool narrow = dtype == KG_F16 || dtype == KG_BF16;
    double lanes = kg_host_lanes(loop->facts, KG_TYPE_F32);
    double cycles = loop->scalar ? 1.0 : 2.0 * VECTOR_LOAD / lanes;
    if (narrow)
        cycles += loop->narrow_run ? NARROW_RUN : NARROW_ALONE;
    if (kg_dtypes[dtype].bits < 8)
        cycles += NIBBLE_STEPS * SCALAR_STEP;
    return cycles;
}

// Waiting

#define LINE 64.0
// Cycles of a core for a line from the second and the last cache and from memory: in order, where
// the hardware fetches ahead, and at a stride, where several are under way.
static const double near_wait[] = {1.5, 4.0, 6.0}, far_wait[] = {5.0, 9.0, 20.0};

void kg_host_order_add(struct kg_host_order *order, int axis, double trips, double step)
{
    if (order->count == KG_HOST_MAX_LOOPS || trips <= 1)
        return;
    order->axis[order->count] = axis;
    order->trips[order->count] = trips;
    order->step[order->count++] = step;
}

// What an access touches in the loops from `depth` on.
struct footprint {
    double lines;
    bool in_order; // longer runs than a line
};

static struct footprint find_footprint(const struct kg_host_loop *loop,
                                       const struct kg_host_order *order, int depth,
                                       const struct kg_tensor *tensor,
                                       const struct kg_access *access)
{
    const struct kg_layout *layout = &loop->group->problem->layouts[tensor->id];
    double bytes = kg_dtypes[kg_emit_tensor_dtype(tensor)].bits / 8.0, others = 1, run = 1;
    double gap = 0; // from a run to the next, in bytes; the least
    for (int dim = 0; dim < tensor->rank; dim++) {
        double extent = 1, most = (double)layout->shape[dim];
        for (int i = depth; i < order->count; i++) {
            bool moves =
                access ? (access->map[dim].is_affine
                              ? access->map[dim].coefficient[order->axis[i]] != 0
                              : kg_expr_uses(access->map[dim].subscript, order->axis[i], true))
                       : order->axis[i] == dim;
            double pace = access && access->map[dim].is_affine
                              ? fabs((double)access->map[dim].coefficient[order->axis[i]])
                              : 1;
            if (moves)
                extent += (order->trips[i] - 1) * fmax(1, order->step[i] * pace);
        }
        extent = fmin(extent, fmax(most, 1));
        if (layout->stride[dim] == 1) {
            run = extent;
            continue;
        }
        others *= extent;
        if (extent > 1 && (gap == 0 || (double)layout->stride[dim] * bytes < gap))
            gap = (double)layout->stride[dim] * bytes;
    }
    // Runs that lie closer than a line share lines.
    double each = fmax(run * bytes, gap > 0 ? fmin(gap, LINE) : 1) / LINE;
    bool alone = gap >= LINE && run * bytes < LINE;
    return (struct footprint){fmax(1, others * (alone ? 1 : each)),
                              run * bytes >= 2 * LINE || !alone};
}

static bool depends(const struct kg_access *access, const struct kg_tensor *tensor, int axis)
{
    if (!access)
        return axis < tensor->rank;
    for (int dim = 0; dim < tensor->rank; dim++)
        if (kg_expr_uses(access->map[dim].subscript, axis, true))
            return true;
    return false;
}

// Lines of an access that come from beyond a cache of `capacity` bytes. `working` is the bytes that
// all accesses touch from each depth on.
static double find_misses(const struct kg_host_loop *loop, const struct kg_host_order *order,
                          const struct kg_tensor *tensor, const struct kg_access *access,
                          const double *working, double capacity, bool *in_order)
{
    int depth = order->count;
    while (depth > 0 && working[depth - 1] <= capacity)
        depth--;
    struct footprint footprint = find_footprint(loop, order, depth, tensor, access);
    *in_order = footprint.in_order;
    double lines = footprint.lines;
    int outer = depth - 1;
    // Between two trips of a loop that does not move it, it stays while it is small.
    while (outer >= 0 && !depends(access, tensor, order->axis[outer]) &&
           footprint.lines * LINE < 0.5 * capacity)
        outer--;
    // One that goes on where the last trip ended shares its lines with it.
    if (outer >= 0 && depth > 0) {
        struct footprint next = find_footprint(loop, order, outer, tensor, access);
        lines = outer == depth - 1 ? next.lines : fmax(next.lines, lines);
        outer--;
    }
    for (; outer >= 0; outer--)
        lines *= order->trips[outer];
    return lines;
}

double kg_host_wait_cycles(const struct kg_host_loop *loop, const struct kg_host_order *order)
{
    const struct kg_nest *nest = loop->nest;
    double working[KG_HOST_MAX_LOOPS + 1] = {0}, cycles = 0;
    for (int i = -1; i < nest->access_count; i++) {
        const struct kg_access *access = i < 0 ? NULL : &nest->accesses[i];
        const struct kg_tensor *tensor = access ? access->tensor : nest->output;
        if (kg_group_is_private(loop->group, tensor))
            continue;
        for (int depth = 0; depth <= order->count; depth++)
            working[depth] += LINE * find_footprint(loop, order, depth, tensor, access).lines;
    }
    double shared = loop->facts->units > 0 ? loop->facts->units : 1;
    for (int i = -1; i < nest->access_count; i++) {
        const struct kg_access *access = i < 0 ? NULL : &nest->accesses[i];
        const struct kg_tensor *tensor = access ? access->tensor : nest->output;
        if (kg_group_is_private(loop->group, tensor))
            continue;
        for (int level = 1; level <= 3; level++) {
            bool in_order = true;
            double capacity = (double)loop->facts->cache[level] * 0.75;
            double misses = find_misses(loop, order, tensor, access, working, capacity, &in_order);
            if (level > 1 && in_order && misses * LINE < capacity / shared)
                continue; // what fits was left there by whoever made it
            cycles += misses * (in_order ? near_wait[level - 1] : far_wait[level - 1]);
        }
    }
    return cycles;
}
