// Which reads of the reduce family for CUDA are vectors: see cuda_reduce.c.

#include "gen/cuda/reduce/cuda_reduce.h"

#include "gen/cuda/cuda_frame.h"

#include <string.h>

int kg_cuda_reduce_axis(const struct kg_cuda_reduce_plan *plan, int position, int axis)
{
    int own = 0;
    while (own + 1 < plan->nest->axis_count && plan->axis_of[position][own] != axis)
        own++;
    return own;
}

bool kg_cuda_reduce_walks(const struct kg_cuda_reduce_plan *plan, int position,
                          const struct kg_access *access)
{
    int last = access->tensor->rank - 1, axis = kg_cuda_reduce_axis(plan, position, plan->last);
    if (last < 0 || access->read->pad || kg_dtype_is_packed(kg_emit_tensor_dtype(access->tensor)) ||
        access->map[last].subscript->kind != KG_EXPR_INDEX ||
        access->map[last].subscript->index->id != axis)
        return false;
    for (int dim = 0; dim < last; dim++)
        if (kg_expr_uses(access->map[dim].subscript, axis, true))
            return false;
    return true;
}

bool kg_cuda_reduce_same(const struct kg_cuda_reduce_plan *plan, int a,
                         const struct kg_access *of_a, int b, const struct kg_access *of_b)
{
    return of_a == of_b ||
           (!of_a->read->pad && !of_b->read->pad && kg_access_same(of_a, of_b) &&
            memcmp(plan->axis_of[a], plan->axis_of[b], sizeof plan->axis_of[a]) == 0);
}

int kg_cuda_reduce_find(const struct kg_cuda_reduce_plan *plan,
                        const struct kg_cuda_reduce_streams *streams, int position,
                        const struct kg_access *access)
{
    for (int i = 0; i < streams->count; i++)
        if (kg_cuda_reduce_same(plan, position, access, streams->items[i].position,
                                streams->items[i].access))
            return i;
    return -1;
}

void kg_cuda_reduce_streams_make(const struct kg_cuda_reduce_plan *plan,
                                 struct kg_cuda_reduce_streams *streams)
{
    *streams = (struct kg_cuda_reduce_streams){0};
    for (int i = 0; i <= plan->k; i++) {
        const struct kg_nest *nest = kg_group_nest(plan->group, i);
        for (int a = 0; a < nest->access_count && plan->in_place[i]; a++) {
            const struct kg_access *access = &nest->accesses[a];
            if (kg_group_maker(plan->group, access->tensor) >= 0 ||
                !kg_cuda_reduce_walks(plan, i, access) ||
                kg_cuda_reduce_find(plan, streams, i, access) >= 0 ||
                streams->count == KG_CUDA_REDUCE_STREAMS)
                continue;
            streams->items[streams->count++] = (struct kg_cuda_reduce_stream){i, access};
        }
    }
}

double kg_cuda_reduce_streamed(const struct kg_cuda_reduce_plan *plan)
{
    struct kg_cuda_reduce_streams streams;
    double bytes = 0;
    kg_cuda_reduce_streams_make(plan, &streams);
    for (int i = 0; i < streams.count; i++)
        bytes +=
            kg_cuda_once_bytes(plan->group, kg_group_nest(plan->group, streams.items[i].position),
                               streams.items[i].access);
    return bytes;
}

int kg_cuda_reduce_alignment(const struct kg_cuda_reduce_plan *plan)
{
    const struct kg_problem *problem = plan->group->problem;
    struct kg_cuda_reduce_streams streams;
    // Of a contiguous tensor, the last dimensions are the run.
    int inner = problem->contiguous ? plan->last - plan->run + 1 : 0, alignment = 1;
    int64_t length = 1;
    for (int axis = plan->run; axis <= plan->last; axis++)
        length *= plan->nest->extent[axis];
    if (length % plan->vector != 0)
        return 0;
    kg_cuda_reduce_streams_make(plan, &streams);
    for (int i = 0; i < streams.count; i++) {
        const struct kg_tensor *tensor = streams.items[i].access->tensor;
        if (!kg_cuda_raise_alignment(problem, tensor, inner, plan->vector, &alignment))
            return 0;
    }
    return alignment;
}
