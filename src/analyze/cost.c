// The least cost of a nest: operations, and elements accessed. Each operation is counted once per
// combination of the axes it depends on, so that work which a good kernel hoists out of a loop (the
// dequantisation of a weight, the root of a variance) is not charged to every iteration.

#include "analyze/analyze.h"

struct counter {
    const struct kg_problem *problem;
    struct kg_nest *nest;
    // Of a related axis: the fraction of pairs that satisfy the relation.
    double share[KG_MAX_INDICES];
    int partner[KG_MAX_INDICES]; // the output axis it is related to; -1: none, or several
};

// Sum over i in [0, n) of min(max(c * i + d, 0), limit): trip counts of a related axis.
static double trips(double n, double c, double d, double limit)
{
    if (n <= 0 || limit <= 0)
        return 0;
    if (c < 0) // count from the other end
        return trips(n, -c, d + c * (n - 1), limit);
    if (c == 0)
        return n * (d < 0 ? 0 : d > limit ? limit : d);
    double first = d >= 0 ? 0 : __builtin_ceil(-d / c);             // first positive trip
    double full = d >= limit ? 0 : __builtin_ceil((limit - d) / c); // first full one
    first = first > n ? n : first;
    full = full > n ? n : full < first ? first : full;
    double rising = full - first;
    return rising * d + c * (first + full - 1) * rising / 2 + (n - full) * limit;
}

static bool is_upper(enum kg_relation relation)
{
    return relation == KG_RELATION_LE || relation == KG_RELATION_LT;
}

// The bound as factor * axis + offset; false when it is anything else.
static bool bound_line(const struct kg_nest *nest, const struct kg_scope *scope,
                       const struct kg_expr *bound, int *axis, double *factor, double *offset)
{
    bool used[KG_MAX_INDICES] = {false};
    kg_analyze_used(bound, used);
    *axis = -1;
    for (int i = 0; i < nest->axis_count; i++)
        if (used[i]) {
            if (*axis >= 0)
                return false;
            *axis = i;
        }
    if (*axis < 0 || nest->extent[*axis] < 1)
        return false;
    // Affine in one axis: two points make the line.
    struct kg_scope point = *scope;
    struct kg_interval value[2];
    for (int i = 0; i < 2; i++) {
        point.low[*axis] = point.high[*axis] = scope->low[*axis] + i;
        value[i] = kg_scope_interval(&point, bound);
        if (!value[i].known || value[i].low != value[i].high)
            return false;
    }
    *factor = (double)value[1].low - (double)value[0].low;
    *offset = (double)value[0].low;
    return true;
}

static enum kg_status push_axes(const struct kg_problem *problem, const struct kg_nest *nest,
                                struct kg_scope *scope, struct kg_error *error)
{
    *scope = (struct kg_scope){.sizes = problem->sizes};
    enum kg_status status = KG_OK;
    for (int i = 0; i < nest->axis_count && status == KG_OK; i++)
        status = kg_scope_push(scope, nest->axes[i], error);
    return status;
}

static void measure_relations(struct counter *counter)
{
    const struct kg_nest *nest = counter->nest;
    for (int a = 0; a < nest->axis_count; a++) {
        const struct kg_index *axis = nest->axes[a];
        struct kg_scope scope = {.sizes = counter->problem->sizes};
        counter->share[a] = 1;
        counter->partner[a] = -1;
        if (axis->relation == KG_RELATION_NONE)
            continue;
        for (int i = 0; i < a; i++)
            if (kg_scope_push(&scope, nest->axes[i], NULL) != KG_OK)
                return;
        double factor, offset, extent = (double)nest->extent[a];
        int64_t begin = 0;
        if (axis->begin && kg_lang_size_value(axis->begin, scope.sizes, &begin, NULL) != KG_OK)
            return;
        int other;
        if (!bound_line(nest, &scope, axis->bound, &other, &factor, &offset)) {
            // A bound that depends on several axes, or is read from memory.
            counter->share[a] = 0.5;
            continue;
        }
        double strict = axis->relation == KG_RELATION_LT   ? -1
                        : axis->relation == KG_RELATION_GT ? 1
                                                           : 0;
        double n = (double)nest->extent[other], all = n * extent, reached;
        if (is_upper(axis->relation)) // B - begin + 1 values
            reached = trips(n, factor, offset + strict - (double)begin + 1, extent);
        else // end - B values
            reached = trips(n, -factor, (double)begin + extent - offset - strict, extent);
        counter->share[a] = all > 0 ? reached / all : 0;
        counter->partner[a] = other;
    }
}

// How often a value that depends on these axes must be computed.
static double iterations(const struct counter *counter, const bool used[KG_MAX_INDICES])
{
    double count = 1;
    for (int i = 0; i < counter->nest->axis_count; i++) {
        if (!used[i])
            continue;
        count *= (double)counter->nest->extent[i];
        if (counter->partner[i] < 0 || used[counter->partner[i]])
            count *= counter->share[i];
    }
    return count;
}

// Operations in subscripts and pads are addressing, not arithmetic, and are not counted.
static void count_expr(struct counter *counter, const struct kg_expr *expr)
{
    if (expr->kind == KG_EXPR_READ)
        return;
    for (int i = 0; i < expr->argument_count; i++)
        count_expr(counter, expr->arguments[i]);
    if (expr->kind != KG_EXPR_CALL)
        return;
    const struct kg_function_info *info = &kg_functions[expr->function];
    if (info->operations == 0 && !info->transcendental)
        return;
    bool used[KG_MAX_INDICES] = {false};
    kg_analyze_used(expr, used);
    double times = iterations(counter, used);
    counter->nest->operations += times * info->operations;
    counter->nest->transcendentals += info->transcendental ? times : 0;
}

// One step per element of all axes, except for a scan whose body does not depend on the axis of the
// bound: its running result needs one step per element of the reduced axis.
static double count_steps(const struct counter *counter)
{
    bool loops[KG_MAX_INDICES];
    kg_analyze_loops(counter->nest, loops);
    return iterations(counter, loops);
}

static int64_t saturating_product(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static int64_t greatest_divisor(int64_t a, int64_t b)
{
    a = a < 0 ? -a : a;
    while (a != 0) {
        int64_t rest = b % a;
        b = a;
        a = rest;
    }
    return b;
}

// The elements that an access reads, per dimension.
struct box {
    int64_t low[KG_MAX_RANK];
    int64_t high[KG_MAX_RANK];
    int64_t count[KG_MAX_RANK]; // upper limit of distinct values
    int64_t elements;
};

// Distinct values of one subscript within the tensor.
static int64_t distinct(const struct kg_nest *nest, const struct kg_affine *map, int64_t low,
                        int64_t high)
{
    bool used[KG_MAX_INDICES] = {false};
    int64_t combinations = 1, step = 0;
    kg_analyze_used(map->subscript, used);
    for (int a = 0; a < nest->axis_count; a++) {
        if (!used[a])
            continue;
        combinations = saturating_product(combinations, nest->extent[a]);
        if (map->is_affine && nest->extent[a] > 1 && map->coefficient[a] != INT64_MIN)
            step = greatest_divisor(map->coefficient[a], step);
    }
    int64_t values = low > high ? 0 : (high - low) / (map->is_affine && step > 1 ? step : 1) + 1;
    return values < combinations ? values : combinations;
}

// Most accesses read all of a tensor, each dimension by an index of its own.
static bool reads_all(const struct kg_nest *nest, const struct kg_access *access,
                      const struct kg_layout *layout, struct box *box)
{
    bool used[KG_MAX_INDICES] = {false};
    for (int a = 0; a < nest->axis_count; a++)
        if (nest->axes[a]->relation != KG_RELATION_NONE || nest->extent[a] == 0)
            return false;
    *box = (struct box){.elements = 1};
    for (int d = 0; d < access->tensor->rank; d++) {
        const struct kg_expr *subscript = access->map[d].subscript;
        int axis = subscript->kind == KG_EXPR_INDEX ? subscript->index->id : -1;
        if (axis < 0 || used[axis] || nest->axes[axis]->begin ||
            nest->extent[axis] != layout->shape[d])
            return false;
        used[axis] = true;
        box->high[d] = layout->shape[d] - 1;
        box->count[d] = layout->shape[d];
        box->elements = saturating_product(box->elements, layout->shape[d]);
    }
    return true;
}

static struct box touched(const struct kg_problem *problem, const struct kg_nest *nest,
                          const struct kg_access *access)
{
    struct box box;
    if (reads_all(nest, access, &problem->layouts[access->tensor->id], &box))
        return box;
    box = (struct box){.elements = 1};
    struct kg_scope scope;
    bool used[KG_MAX_INDICES] = {false};
    int64_t combinations = 1;
    const struct kg_layout *layout = &problem->layouts[access->tensor->id];
    if (push_axes(problem, nest, &scope, NULL) != KG_OK)
        scope.count = 0;
    for (int a = 0; a < nest->axis_count; a++)
        if (nest->extent[a] == 0)
            box.elements = 0;
    for (int d = 0; d < access->tensor->rank; d++) {
        struct kg_interval reach = kg_scope_interval(&scope, access->map[d].subscript);
        int64_t last = layout->shape[d] - 1;
        box.low[d] = reach.known && reach.low > 0 ? reach.low : 0;
        box.high[d] = reach.known && reach.high < last ? reach.high : last;
        box.count[d] = distinct(nest, &access->map[d], box.low[d], box.high[d]);
        box.elements = saturating_product(box.elements, box.count[d]);
        kg_analyze_used(access->map[d].subscript, used);
    }
    for (int a = 0; a < nest->axis_count; a++)
        if (used[a])
            combinations = saturating_product(combinations, nest->extent[a]);
    if (combinations < box.elements) // a diagonal: one axis in two dimensions
        box.elements = combinations;
    return box;
}

// Does the outer box certainly contain the inner one?
static bool covers(const struct box *outer, const struct box *inner, int rank)
{
    bool same = outer->elements == inner->elements, dense = true;
    int64_t volume = 1;
    for (int d = 0; d < rank; d++) {
        if (inner->low[d] < outer->low[d] || inner->high[d] > outer->high[d])
            return false;
        same = same && inner->low[d] == outer->low[d] && inner->high[d] == outer->high[d] &&
               inner->count[d] == outer->count[d];
        dense = dense && outer->count[d] == outer->high[d] - outer->low[d] + 1;
        volume = saturating_product(volume, outer->count[d]);
    }
    return same || (dense && volume == outer->elements);
}

// Elements of an input that the whole op reads: the union of its reads. Overlaps count twice unless
// one read contains the other; the result is at most the tensor's size.
static int64_t touched_elements(const struct kg_problem *problem, const struct kg_tensor *tensor)
{
    struct box boxes[KG_MAX_ACCESSES];
    int count = 0;
    int64_t total = 0, limit = problem->layouts[tensor->id].elements;
    for (int n = 0; n < problem->nest_count; n++)
        for (int i = 0; i < problem->nests[n]->access_count; i++) {
            if (problem->nests[n]->accesses[i].tensor != tensor)
                continue;
            struct box box = touched(problem, problem->nests[n], &problem->nests[n]->accesses[i]);
            bool covered = false;
            int kept = 0;
            for (int j = 0; j < count && !covered; j++)
                covered = covers(&boxes[j], &box, tensor->rank);
            if (covered)
                continue;
            for (int j = 0; j < count; j++)
                if (!covers(&box, &boxes[j], tensor->rank))
                    boxes[kept++] = boxes[j];
            if (kept == KG_MAX_ACCESSES)
                return limit;
            boxes[kept++] = box;
            count = kept;
        }
    for (int j = 0; j < count; j++)
        total = total > INT64_MAX - boxes[j].elements ? INT64_MAX : total + boxes[j].elements;
    return total < limit ? total : limit;
}

void kg_analyze_loops(const struct kg_nest *nest, bool loops[KG_MAX_INDICES])
{
    bool used[KG_MAX_INDICES] = {false};
    kg_analyze_used(nest->body, used);
    for (int a = 0; a < KG_MAX_INDICES; a++)
        loops[a] = a < nest->axis_count;
    for (int a = nest->output_axes; a < nest->axis_count; a++) {
        bool bound[KG_MAX_INDICES] = {false};
        int count = 0, partner = 0;
        if (nest->axes[a]->bound)
            kg_analyze_used(nest->axes[a]->bound, bound);
        for (int i = 0; i < nest->axis_count; i++)
            if (bound[i]) {
                count++;
                partner = i;
            }
        if (count == 1 && !used[partner])
            loops[partner] = false;
    }
}

int64_t kg_analyze_footprint(const struct kg_problem *problem, const struct kg_nest *nest,
                             const struct kg_access *access)
{
    return touched(problem, nest, access).elements;
}

enum kg_status kg_analyze_extents(const struct kg_problem *problem, struct kg_nest *nest,
                                  struct kg_error *error)
{
    for (int i = 0; i < nest->axis_count; i++) {
        int64_t begin = 0, end = 0;
        enum kg_status status = KG_OK;
        if (nest->axes[i]->begin)
            status = kg_lang_size_value(nest->axes[i]->begin, problem->sizes, &begin, error);
        if (status == KG_OK)
            status = kg_lang_size_value(nest->axes[i]->end, problem->sizes, &end, error);
        if (status != KG_OK)
            return status;
        nest->extent[i] = end > begin ? end - begin : 0;
    }
    return KG_OK;
}

void kg_analyze_costs(struct kg_problem *problem, struct kg_nest *const *nests)
{
    double max = -1;
    problem->operations = problem->transcendentals = 0;
    problem->read_bytes = problem->write_bytes = 0;
    problem->class = (enum kg_class)0;
    for (int i = 0; i < problem->nest_count; i++) {
        struct counter counter = {.problem = problem, .nest = nests[i]};
        nests[i]->operations = nests[i]->transcendentals = 0;
        measure_relations(&counter);
        count_expr(&counter, nests[i]->body);
        double steps = count_steps(&counter);
        nests[i]->iterations = steps;
        if (nests[i]->has_reduce)
            nests[i]->operations += steps;
        problem->operations += nests[i]->operations;
        problem->transcendentals += nests[i]->transcendentals;
        // Among nests of equal cost, the later class of the enum is harder for a kernel.
        if (steps > max || (steps == max && nests[i]->class > problem->class)) {
            max = steps;
            problem->class = nests[i]->class;
        }
    }
    for (int i = 0; i < problem->op->input_count + problem->op->output_count; i++) {
        const struct kg_tensor *tensor = problem->tensors[i];
        bool input = tensor->role == KG_ROLE_INPUT;
        int64_t count = input ? touched_elements(problem, tensor) : problem->layouts[i].elements;
        *(input ? &problem->read_bytes : &problem->write_bytes) +=
            (double)kg_dtype_bytes(tensor->type.dtype, (size_t)count);
    }
    double bytes = problem->read_bytes + problem->write_bytes;
    problem->intensity = bytes > 0 ? problem->operations / bytes : 0;
}
