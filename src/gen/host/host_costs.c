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
#define SCALAR_STEP 0.45
// A load of a whole vector, of a single element, and of an element at a stride, which a vector
// gathers.
#define VECTOR_LOAD 0.5
#define SCALAR_LOAD 0.4
#define GATHERED_LOAD 1.2
// A subscript that is divided by a constant; by a size, which keeps the loop from vectors; and what
// is left of that. A pad, of single elements and in vectors.
#define DIVIDED_PLACE 1.0
#define SIZE_PLACE 3.6
#define SIZE_REST 7.0
#define PAD_STEPS 4.0
#define PAD_VECTOR 0.8
// Conversion of a narrow float to f32, alone and in vectors, and back; in whole pieces, either way.
#define NARROW_ALONE 2.8
#define NARROW_VECTOR 0.18
#define NARROW_STORE 1.2
#define NARROW_STORE_ALONE 14.0
#define NARROW_PIECE 0.05
// A bool, and four bits, alone and in runs of whole bytes.
#define BOOL_LOAD 0.2
#define NIBBLE_LOAD 1.8
#define NIBBLE_RUN 0.15

// Simple operations that a function is made of, on vectors of f32. 0: as many as its FLOPs.
static const double function_steps[KG_FUNCTION_COUNT] = {
    [KG_FN_DIV] = 6,   [KG_FN_MOD] = 30,   [KG_FN_SQRT] = 10,      [KG_FN_RSQRT] = 16,
    [KG_FN_EXP] = 14,  [KG_FN_EXP2] = 12,  [KG_FN_EXPM1] = 26,     [KG_FN_LOG] = 22,
    [KG_FN_LOG2] = 22, [KG_FN_LOG1P] = 30, [KG_FN_TANH] = 32,      [KG_FN_SIGMOID] = 20,
    [KG_FN_SILU] = 20, [KG_FN_GELU] = 50,  [KG_FN_GELU_TANH] = 40, [KG_FN_ERF] = 45,
    [KG_FN_SIN] = 40,  [KG_FN_COS] = 40,   [KG_FN_SOFTPLUS] = 50,  [KG_FN_POW] = 800,
    [KG_FN_WHERE] = 1, [KG_FN_AND] = 1,    [KG_FN_OR] = 1,         [KG_FN_NOT] = 1,
    [KG_FN_FLOOR] = 1, [KG_FN_CEIL] = 1,   [KG_FN_ROUND] = 1,      [KG_FN_MAX] = 2,
    [KG_FN_MIN] = 2,
};

#define LONG_PRODUCT 8.0

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

// Divisions in a subscript: by a constant they are multiplications, by a size they are done for
// every element, even where they are the same for all of a run.
static double place_cycles(const struct kg_expr *expr)
{
    double cycles = 0;
    for (int i = 0; i < expr->argument_count; i++)
        cycles += place_cycles(expr->arguments[i]);
    if (expr->kind != KG_EXPR_CALL || (expr->function != KG_FN_DIV && expr->function != KG_FN_MOD))
        return cycles;
    if (expr->arguments[1]->kind == KG_EXPR_NUMBER)
        return cycles + DIVIDED_PLACE;
    return cycles + (expr->function == KG_FN_DIV ? SIZE_PLACE : SIZE_REST);
}

static double subscript_cycles(const struct kg_access *access, const struct kg_split *split)
{
    double cycles = 0;
    if (kg_split_is_fixed(access, split))
        return 0;
    for (int dim = 0; dim < access->tensor->rank; dim++)
        if (!access->map[dim].is_affine && !access->map[dim].is_gather)
            cycles += place_cycles(access->map[dim].subscript);
    return cycles;
}

bool kg_host_divides(const struct kg_nest *nest)
{
    double most = 0;
    for (int i = 0; i < nest->access_count; i++)
        most = fmax(most, subscript_cycles(&nest->accesses[i], &(struct kg_split){0}));
    return most >= SIZE_PLACE;
}

// A value private to the group where it is computed anew.
static double inlined_cycles(const struct kg_host_loop *loop, const struct kg_access *access,
                             int maker)
{
    struct kg_host_loop inner = *loop;
    inner.nest = kg_group_nest(loop->group, maker);
    inner.vector = -1;
    for (int dim = 0; dim < access->tensor->rank; dim++)
        if (loop->vector >= 0 && kg_expr_uses(access->map[dim].subscript, loop->vector, true))
            inner.vector = dim;
    if (inner.nest->has_reduce || (loop->vector >= 0 && inner.vector < 0))
        return 0; // at hand, or the same for all neighbours
    return kg_host_body_cycles(&inner);
}

static double read_cycles(const struct kg_host_loop *loop, const struct kg_access *access)
{
    enum kg_dtype dtype = kg_emit_tensor_dtype(access->tensor);
    int maker = kg_group_maker(loop->group, access->tensor);
    if (maker >= 0 && kg_group_is_private(loop->group, access->tensor))
        return loop->inlines ? inlined_cycles(loop, access, maker) : 0;
    double lanes = kg_host_lanes(loop->facts, access->read->type);
    double stride = loop->vector >= 0 ? stride_along(loop, access) : NAN;
    bool near = !loop->scalar && (stride == 1.0 || kg_split_is_fixed(access, &loop->split));
    double cycles = loop->scalar ? SCALAR_LOAD : near ? VECTOR_LOAD / lanes : GATHERED_LOAD;
    if (access->read->pad)
        cycles += near ? PAD_VECTOR : PAD_STEPS * SCALAR_STEP;
    if (kg_dtype_is_narrow_float(dtype))
        cycles += stride == 1.0 && loop->pieces ? NARROW_PIECE
                  : near                        ? NARROW_VECTOR
                                                : NARROW_ALONE;
    if (kg_dtype_is_truth(dtype))
        cycles += BOOL_LOAD;
    if (kg_dtype_is_packed(dtype))
        cycles += near && loop->split.step > 0 ? NIBBLE_RUN : NIBBLE_LOAD;
    return cycles;
}

static bool is_new(struct kg_host_seen *seen, const struct kg_access *access)
{
    for (int i = 0; i < seen->count; i++)
        if (kg_access_same(seen->accesses[i], access))
            return false;
    if (seen->count < KG_MAX_ACCESSES)
        seen->accesses[seen->count++] = access;
    return true;
}

// A product of 64-bit integers that vectors have no instruction for: AVX2 makes it of three
// products of 32 bits, unless the factors have no more. Measured on two AVX2 cores.
static bool is_long_product(const struct kg_host_loop *loop, const struct kg_expr *expr)
{
    if (expr->function != KG_FN_MUL || expr->type != KG_TYPE_I64 || loop->scalar ||
        loop->facts->vector_bytes != 32)
        return false;
    for (int i = 0; i < 2; i++)
        if (expr->arguments[i]->kind == KG_EXPR_READ &&
            kg_dtypes[kg_emit_tensor_dtype(expr->arguments[i]->tensor)].bits <= 32)
            return false;
    return true;
}

static double steps_of(const struct kg_host_loop *loop, const struct kg_expr *expr)
{
    if (expr->kind == KG_EXPR_CAST)
        return 1;
    if (expr->kind != KG_EXPR_CALL)
        return 0;
    double steps = is_long_product(loop, expr) ? LONG_PRODUCT : function_steps[expr->function];
    steps = steps > 0 ? steps : kg_functions[expr->function].operations;
    return expr->type == KG_TYPE_F64 && steps > 2 ? 2 * steps : steps;
}

static double expr_cycles(const struct kg_host_loop *loop, const struct kg_expr *expr,
                          struct kg_host_seen *seen, bool fixed)
{
    bool same = loop->vector >= 0 && !kg_expr_uses(expr, loop->vector, true);
    // Once for all neighbours: what it costs is spread over them.
    double share = fixed ? 1 : !same ? 1 : loop->length > 0 ? 1 / loop->length : 0;
    fixed = fixed || same;
    if (expr->kind == KG_EXPR_READ) {
        const struct kg_access *access = kg_nest_access(loop->nest, expr);
        if (!is_new(seen, access))
            return 0;
        return subscript_cycles(access, &loop->split) + (fixed ? share : read_cycles(loop, access));
    }
    const int64_t divisor = kg_split_divisor(expr, loop->split.axis);
    if (divisor > 0 && loop->split.step % divisor == 0 && loop->split.step > 0)
        return 0;
    double cycles = 0;
    for (int i = 0; i < expr->argument_count; i++)
        cycles += expr_cycles(loop, expr->arguments[i], seen, fixed);
    return share *
           (cycles + steps_of(loop, expr) * (fixed ? SCALAR_STEP : step_cycles(loop, expr->type)));
}

double kg_host_expr_cycles(const struct kg_host_loop *loop, const struct kg_expr *expr)
{
    struct kg_host_seen own = {0};
    return expr_cycles(loop, expr, loop->seen ? loop->seen : &own, false);
}

double kg_host_body_cycles(const struct kg_host_loop *loop)
{
    return kg_host_expr_cycles(loop, loop->nest->body);
}

bool kg_host_gathers_narrow(const struct kg_host_loop *loop)
{
    for (int i = 0; i < loop->nest->access_count; i++) {
        const struct kg_access *access = &loop->nest->accesses[i];
        enum kg_dtype dtype = kg_emit_tensor_dtype(access->tensor);
        double stride = stride_along(loop, access);
        if (kg_dtype_is_narrow_float(dtype) && stride != 0.0 && stride != 1.0)
            return true;
    }
    return false;
}

double kg_host_store_cycles(const struct kg_host_loop *loop)
{
    enum kg_dtype dtype = kg_emit_tensor_dtype(loop->nest->output);
    double lanes = kg_host_lanes(loop->facts, KG_TYPE_F32);
    double cycles = loop->scalar ? 1.0 : 2.0 * VECTOR_LOAD / lanes;
    if (kg_dtype_is_narrow_float(dtype))
        cycles += loop->pieces ? NARROW_PIECE : loop->scalar ? NARROW_STORE_ALONE : NARROW_STORE;
    if (kg_dtype_is_packed(dtype))
        cycles += NIBBLE_LOAD;
    return cycles;
}

// Waiting

#define LINE 64.0
// Cycles of a core for a line from the second and the last cache and from memory: in order, where
// the hardware fetches ahead, and at a stride, where several are under way.
static const double near_wait[] = {0.6, 1.7, 5.0}, far_wait[] = {4.0, 14.0, 30.0};

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
    double gap;    // bytes from one to the next, where they are not neighbours; else 0
    bool in_order; // longer runs than a line
};

// Places that a cache of so many bytes has for lines that lie this far apart: powers of two meet in
// few of its sets. The last cache mixes the bits of addresses.
static double crowding(double gap, int level)
{
    static const int64_t ways[] = {4096, 65536};
    if (level > 2 || gap < LINE)
        return 1;
    int64_t a = (int64_t)gap, b = ways[level - 1];
    while (b > 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return fmax(1, (double)a / LINE);
}

static bool depends(const struct kg_access *access, int axis)
{
    for (int dim = 0; dim < access->tensor->rank; dim++)
        if (kg_expr_uses(access->map[dim].subscript, axis, true))
            return true;
    return false;
}

static struct footprint find_footprint(const struct kg_host_loop *loop,
                                       const struct kg_host_order *order, int depth,
                                       const struct kg_tensor *tensor,
                                       const struct kg_access *access)
{
    const struct kg_layout *layout = &loop->group->problem->layouts[tensor->id];
    double bytes = kg_dtypes[kg_emit_tensor_dtype(tensor)].bits / 8.0, others = 1, run = 1;
    double gap = 0;    // from a run to the next, in bytes; the least
    double visits = 1; // evaluations that differ in it
    for (int i = depth; i < order->count; i++)
        if (!access ? order->axis[i] < tensor->rank : depends(access, order->axis[i]))
            visits *= order->trips[i];
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
    double lines = fmax(1, fmin(others * (alone ? 1 : each), visits));
    return (struct footprint){lines, alone ? gap : 0, !alone};
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
    while (outer >= 0 &&
           (access ? !depends(access, order->axis[outer]) : order->axis[outer] >= tensor->rank) &&
           footprint.lines * LINE < 0.5 * capacity)
        outer--;
    // One that goes on where the last trip ended shares its lines with it.
    if (outer >= 0 && depth > 0) {
        struct footprint next = find_footprint(loop, order, outer, tensor, access);
        lines = outer == depth - 1 ? next.lines : fmax(next.lines, lines);
        *in_order = *in_order && next.in_order;
        outer--;
    }
    for (; outer >= 0; outer--)
        lines *= order->trips[outer];
    return lines;
}

// Bytes of a cache that all accesses want from each depth on.
static void find_working(const struct kg_host_loop *loop, const struct kg_host_order *order,
                         int level, double *working)
{
    for (int depth = 0; depth <= order->count; depth++)
        working[depth] = 0;
    for (int i = -1; i < loop->nest->access_count; i++) {
        const struct kg_access *access = i < 0 ? NULL : &loop->nest->accesses[i];
        const struct kg_tensor *tensor = access ? access->tensor : loop->nest->output;
        if (kg_group_is_private(loop->group, tensor))
            continue;
        for (int depth = 0; depth <= order->count; depth++) {
            struct footprint found = find_footprint(loop, order, depth, tensor, access);
            working[depth] += LINE * found.lines * crowding(found.gap, level);
        }
    }
}

double kg_host_wait_cycles(const struct kg_host_loop *loop, const struct kg_host_order *order)
{
    const struct kg_nest *nest = loop->nest;
    double cycles = 0, shared = loop->facts->units > 0 ? loop->facts->units : 1;
    struct kg_host_seen own = {0}, *seen = loop->seen ? loop->seen : &own;
    bool counts[KG_MAX_ACCESSES];
    for (int i = 0; i < nest->access_count; i++)
        counts[i] = is_new(seen, &nest->accesses[i]);
    for (int level = 1; level <= 3; level++) {
        double working[KG_HOST_MAX_LOOPS + 1];
        double capacity = (double)loop->facts->cache[level] * 0.75;
        find_working(loop, order, level, working);
        for (int i = -1; i < nest->access_count; i++) {
            const struct kg_access *access = i < 0 ? NULL : &nest->accesses[i];
            const struct kg_tensor *tensor = access ? access->tensor : nest->output;
            bool in_order = true;
            if ((i >= 0 && !counts[i]) || kg_group_is_private(loop->group, tensor))
                continue;
            double misses = find_misses(loop, order, tensor, access, working, capacity, &in_order);
            if (level > 1 && misses * LINE < (level > 2 ? capacity / shared : capacity))
                continue; // what fits was left there by whoever made it
            cycles += misses * (in_order ? near_wait[level - 1] : far_wait[level - 1]);
        }
    }
    return cycles;
}
