// Which reads of the rowwise family for CUDA go along the row in vectors: see cuda_rowwise.c.

#include "gen/cuda/rowwise/cuda_rowwise.h"

#include "gen/cuda/cuda_frame.h"

// Along the columns that are counted as one, and not merely through them.
static bool walks(const struct kg_rowwise_plan *row, const struct kg_access *access)
{
    int last = access->tensor->rank - 1, column = row->last;
    if (last < 0 || access->read->pad || kg_dtype_is_packed(kg_emit_tensor_dtype(access->tensor)) ||
        access->map[last].subscript->kind != KG_EXPR_INDEX ||
        access->map[last].subscript->index->id != column)
        return false;
    for (int dim = 0; dim < last; dim++)
        if (!access->map[dim].is_affine || kg_expr_uses(access->map[dim].subscript, column, true))
            return false;
    return true;
}

int kg_cuda_streams_find(const struct kg_cuda_streams *streams, const struct kg_rowwise_plan *row,
                         const struct kg_access *access)
{
    for (int i = 0; i < streams->count && walks(row, access); i++)
        if (kg_access_same(access, streams->items[i].access))
            return i;
    return -1;
}

// The reads of a nest, and those of the intermediates that are computed inside it.
static void add_reads(struct kg_cuda_streams *streams, const struct kg_rowwise_plan *row,
                      int position, int pass)
{
    const struct kg_nest *nest = kg_group_nest(row->group, position);
    for (int a = 0; a < nest->access_count; a++) {
        const struct kg_access *access = &nest->accesses[a];
        int maker = kg_group_maker(row->group, access->tensor);
        if (maker >= 0) {
            if (row->role[maker] == KG_ROWWISE_COLUMN)
                add_reads(streams, row, maker, pass);
            continue;
        }
        int i = kg_cuda_streams_find(streams, row, access);
        if (i < 0 && (!walks(row, access) || streams->count == KG_CUDA_MOST_STREAMS))
            continue;
        if (i < 0) {
            i = streams->count++;
            streams->items[i] = (struct kg_cuda_stream){
                .nest = nest,
                .access = access,
                .held = kg_access_uses(access, 0, row->rows - 1),
            };
        }
        streams->items[i].uses[pass] = true;
    }
}

void kg_cuda_streams_make(const struct kg_rowwise_plan *row, struct kg_cuda_streams *streams)
{
    *streams = (struct kg_cuda_streams){0};
    for (int i = 0; i < row->group->count; i++)
        if (row->role[i] != KG_ROWWISE_SCALAR)
            add_reads(streams, row, i, row->pass[i]);
}

bool kg_cuda_rowwise_shares(const struct kg_rowwise_plan *plan)
{
    struct kg_cuda_streams streams;
    kg_cuda_streams_make(plan, &streams);
    for (int i = 0; i < streams.count; i++)
        if (!streams.items[i].held)
            return true;
    return false;
}

bool kg_cuda_stream_is_staged(const struct kg_cuda_rowwise_plan *plan,
                              const struct kg_cuda_stream *stream)
{
    return plan->staged > 0 && !stream->held;
}

int kg_cuda_stream_bytes(const struct kg_cuda_rowwise_plan *plan,
                         const struct kg_cuda_stream *stream)
{
    return plan->vector * kg_dtypes[kg_emit_tensor_dtype(stream->access->tensor)].bits / 8;
}

int kg_cuda_rowwise_batch(const struct kg_cuda_rowwise_plan *plan,
                          const struct kg_cuda_streams *streams, int pass)
{
    // Bytes of a thread's registers: with twice as many, norms of rows of 65536 took 12 % longer on
    // an H200, since fewer blocks were resident.
    enum { MOST_BYTES = 32 };
    int bytes = 0, batch = plan->hold;
    for (int i = 0; i < streams->count; i++)
        if (streams->items[i].uses[pass] && !streams->items[i].held)
            bytes += kg_cuda_stream_bytes(plan, &streams->items[i]);
    while (batch > 1 && batch * bytes > MOST_BYTES)
        batch /= 2;
    return bytes > 0 && plan->staged == 0 ? batch : 1;
}

int kg_cuda_rowwise_alignment(const struct kg_cuda_rowwise_plan *plan, int64_t length)
{
    const struct kg_rowwise_plan *row = &plan->row;
    const struct kg_problem *problem = row->group->problem;
    struct kg_cuda_streams streams;
    // Of a contiguous tensor, the last dimensions are the run.
    int inner = problem->contiguous ? row->last - row->run + 1 : 0, alignment = 1;
    if (length % plan->vector != 0)
        return 0;
    kg_cuda_streams_make(row, &streams);
    for (int i = 0; i < streams.count + row->group->count; i++) {
        int nest = i - streams.count;
        if (nest >= 0 && (row->role[nest] != KG_ROWWISE_COLUMN ||
                          kg_group_is_private(row->group, kg_group_nest(row->group, nest)->output)))
            continue;
        const struct kg_tensor *tensor =
            nest < 0 ? streams.items[i].access->tensor : kg_group_nest(row->group, nest)->output;
        if (!kg_cuda_raise_alignment(problem, tensor, inner, plan->vector, &alignment))
            return 0;
    }
    return alignment;
}
