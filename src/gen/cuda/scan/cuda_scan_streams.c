// Which reads of a scan are vectors, for CUDA: those that follow its last axis, at the element at
// hand.

#include "gen/cuda/scan/cuda_scan.h"

#include "gen/cuda/cuda_frame.h"

// Is the subscript this axis of the scan's output and nothing else? In the scan's own formula the
// reduced index stands for the axis it runs along.
static bool is_axis(const struct kg_cuda_scan_streams *streams, const struct kg_nest *nest,
                    const struct kg_affine *map, int axis)
{
    bool own = nest == streams->scan->nest && axis == streams->scan->axis;
    return map->is_affine && map->subscript->kind == KG_EXPR_INDEX &&
           map->subscript->index->id == (own ? streams->scan->bound : axis);
}

static bool walks(const struct kg_cuda_scan_streams *streams, const struct kg_nest *nest,
                  const struct kg_access *access)
{
    const struct kg_scan_plan *scan = streams->scan;
    int last = access->tensor->rank - 1;
    bool own = nest == scan->nest && scan->last == scan->axis;
    if (last < 0 || access->read->pad || kg_dtype_is_packed(kg_emit_tensor_dtype(access->tensor)) ||
        !is_axis(streams, nest, &access->map[last], scan->last))
        return false;
    for (int dim = 0; dim < last; dim++)
        if (!access->map[dim].is_affine ||
            kg_expr_uses(access->map[dim].subscript, own ? scan->bound : scan->last, true))
            return false;
    return true;
}

static int64_t coefficient(const struct kg_cuda_scan_streams *streams,
                           const struct kg_cuda_scan_stream *stream, int dim, int axis)
{
    const struct kg_affine *map = &stream->access->map[dim];
    bool own = stream->nest == streams->scan->nest && axis == streams->scan->axis;
    return map->coefficient[own ? streams->scan->bound : axis];
}

// Do both read the same element for each element of the output?
static bool is_same(const struct kg_cuda_scan_streams *streams, const struct kg_cuda_scan_stream *a,
                    const struct kg_cuda_scan_stream *b)
{
    if (a->access->tensor != b->access->tensor)
        return false;
    for (int dim = 0; dim < a->access->tensor->rank; dim++) {
        const struct kg_affine *x = &a->access->map[dim], *y = &b->access->map[dim];
        if (x->offset != y->offset || !kg_size_same(x->base, y->base))
            return false;
        for (int axis = 0; axis <= streams->scan->last; axis++)
            if (coefficient(streams, a, dim, axis) != coefficient(streams, b, dim, axis))
                return false;
    }
    return true;
}

static int stream_of(const struct kg_cuda_scan_streams *streams,
                     const struct kg_cuda_scan_stream *wanted)
{
    for (int i = 0; i < streams->count; i++)
        if (is_same(streams, wanted, &streams->streams[i]))
            return i;
    return -1;
}

static bool reads(const struct kg_nest *nest, const struct kg_tensor *tensor)
{
    for (int a = 0; a < nest->access_count; a++)
        if (nest->accesses[a].tensor == tensor)
            return true;
    return false;
}

// Does the nest read the tensor at the element at hand, if at all?
static bool reads_here(const struct kg_cuda_scan_streams *streams, const struct kg_nest *nest,
                       const struct kg_tensor *tensor)
{
    for (int a = 0; a < nest->access_count; a++)
        for (int dim = 0; nest->accesses[a].tensor == tensor && dim < tensor->rank; dim++)
            if (!is_axis(streams, nest, &nest->accesses[a].map[dim], dim))
                return false;
    return true;
}

// Of intermediates, readers first: which are read at the element at hand and nowhere else, so that
// their axes are those of the scan's output, and which are read by what follows the scan.
static void find_readers(struct kg_cuda_scan_streams *streams)
{
    const struct kg_scan_plan *scan = streams->scan;
    for (int i = scan->group->count - 1; i >= 0; i--) {
        const struct kg_tensor *made = kg_group_nest(streams->scan->group, i)->output;
        streams->here[i] = i >= scan->k || made->rank == scan->last + 1;
        streams->late[i] = i > scan->k;
        for (int j = i + 1; i < scan->k && j < scan->group->count; j++) {
            if (!reads(kg_group_nest(streams->scan->group, j), made))
                continue;
            streams->here[i] &= streams->here[j] &&
                                reads_here(streams, kg_group_nest(streams->scan->group, j), made);
            streams->late[i] |= streams->late[j];
        }
    }
}

void kg_cuda_scan_find_streams(const struct kg_scan_plan *scan,
                               struct kg_cuda_scan_streams *streams)
{
    *streams = (struct kg_cuda_scan_streams){.scan = scan};
    find_readers(streams);
    for (int i = 0; i < streams->scan->group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(streams->scan->group, i);
        for (int a = 0; streams->here[i] && a < nest->access_count; a++) {
            const struct kg_cuda_scan_stream wanted = {nest, &nest->accesses[a], streams->late[i]};
            if (kg_group_maker(streams->scan->group, wanted.access->tensor) >= 0 ||
                !walks(streams, nest, wanted.access))
                continue;
            int same = stream_of(streams, &wanted);
            if (same >= 0)
                streams->streams[same].late |= wanted.late;
            else if (streams->count < KG_MOST_SCAN_STREAMS)
                streams->streams[streams->count++] = wanted;
        }
    }
}

// The position of the nest that an access belongs to.
static int owner_of(const struct kg_cuda_scan_streams *streams, const struct kg_access *access)
{
    for (int i = 0; i < streams->scan->group->count; i++)
        for (int a = 0; a < kg_group_nest(streams->scan->group, i)->access_count; a++)
            if (access == &kg_group_nest(streams->scan->group, i)->accesses[a])
                return i;
    return -1;
}

int kg_cuda_scan_stream(const struct kg_cuda_scan_streams *streams, const struct kg_access *access)
{
    int owner = owner_of(streams, access);
    if (owner < 0 || !streams->here[owner] ||
        !walks(streams, kg_group_nest(streams->scan->group, owner), access))
        return -1;
    const struct kg_cuda_scan_stream wanted = {kg_group_nest(streams->scan->group, owner), access,
                                               streams->late[owner]};
    return stream_of(streams, &wanted);
}

static bool has_shape(const struct kg_scan_plan *scan, const struct kg_tensor *tensor)
{
    if (tensor->rank != scan->last + 1)
        return false;
    for (int dim = 0; dim < tensor->rank; dim++) {
        const struct kg_index *axis = scan->nest->axes[dim];
        if (!kg_axes_from_zero(axis) || !kg_size_same(tensor->dims[dim], axis->end))
            return false;
    }
    return true;
}

bool kg_cuda_scan_may_shift(const struct kg_scan_plan *scan)
{
    const struct kg_group *group = scan->group;
    struct kg_cuda_scan_streams streams;
    if (!group->problem->contiguous || scan->column)
        return false;
    kg_cuda_scan_find_streams(scan, &streams);
    for (int i = 0; i < group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(group, i);
        if (kg_scan_is_stored(scan, i) && !has_shape(scan, nest->output))
            return false;
        for (int a = 0; a < nest->access_count; a++) {
            const struct kg_tensor *tensor = nest->accesses[a].tensor;
            if (tensor->rank > 0 && kg_group_maker(group, tensor) < 0 &&
                (kg_cuda_scan_stream(&streams, &nest->accesses[a]) < 0 ||
                 !has_shape(scan, tensor) || !reads_here(&streams, nest, tensor)))
                return false;
        }
    }
    return streams.count > 0;
}

int kg_cuda_scan_functions(const struct kg_cuda_scan_plan *plan)
{
    return plan->shifts ? KG_CUDA_SCAN_SHIFTED + 1 : KG_CUDA_SCAN_SINGLE + 1;
}

int kg_cuda_scan_single(const struct kg_cuda_scan_plan *plan)
{
    enum { MOST = 8 };
    return plan->vector * plan->hold < MOST ? plan->vector * plan->hold : MOST;
}

int kg_cuda_scan_alignment(const struct kg_cuda_scan_plan *plan, int64_t length)
{
    const struct kg_scan_plan *scan = &plan->scan;
    const struct kg_problem *problem = scan->group->problem;
    struct kg_cuda_scan_streams streams;
    // Of a contiguous tensor, the last dimensions are the run.
    int inner = problem->contiguous ? scan->last - scan->run + 1 : 0, alignment = 1;
    if (length % plan->vector != 0)
        return 0;
    kg_cuda_scan_find_streams(scan, &streams);
    for (int i = 0; i < streams.count + scan->group->count; i++) {
        int position = i - streams.count;
        if (position >= 0 && !kg_scan_is_stored(scan, position))
            continue;
        const struct kg_tensor *tensor = position < 0
                                             ? streams.streams[i].access->tensor
                                             : kg_group_nest(scan->group, position)->output;
        if (!kg_cuda_raise_alignment(problem, tensor, inner, plan->vector, &alignment))
            return 0;
    }
    return alignment;
}

int kg_cuda_scan_shifted_alignment(const struct kg_cuda_scan_plan *plan)
{
    const struct kg_scan_plan *scan = &plan->scan;
    struct kg_cuda_scan_streams streams;
    int alignment = 1;
    kg_cuda_scan_find_streams(scan, &streams);
    for (int i = 0; i < streams.count + scan->group->count; i++) {
        const int position = i - streams.count;
        if (position >= 0 && !kg_scan_is_stored(scan, position))
            continue;
        const int bytes =
            kg_cuda_alignment(position < 0 ? streams.streams[i].access->tensor
                                           : kg_group_nest(scan->group, position)->output,
                              plan->vector);
        alignment = bytes > alignment ? bytes : alignment;
    }
    return alignment;
}
