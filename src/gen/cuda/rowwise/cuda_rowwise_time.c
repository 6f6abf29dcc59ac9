// What a config of the rowwise family for CUDA has a GPU do: see cuda_memory_time.h.

#include "gen/cuda/rowwise/cuda_rowwise.h"

#include "gen/cuda/cuda_frame.h"
#include "gen/cuda/cuda_memory_time.h"
#include "gen/families.h"
#include "gen/shared/axes.h"
#include "gen/shared/bound.h"

#include <math.h>

enum { WARP = 32, ACCESS = 16, LINE = 128 };
enum { ANY = 2 }; // the function for what does not lie in whole vectors
// Registers of a thread beside what it holds, and those of wide vectors at work: as NVRTC 13.0 had
// it for 1700 of these kernels.
enum { OTHER_REGISTERS = 18, WIDE = 8, SECTOR = 32 };
// Instructions by which a warp folds a value, and by which it finds its row and stores what comes
// of it.
enum { FOLD_STEPS = 20, ROW_STEPS = 100 };

// Rows that a thread works on at once.
static double rows_of(const struct kg_cuda_rowwise_plan *plan)
{
    return plan->staged > 1 ? plan->staged : 1;
}

// The vectors of a thread by where they are kept, and how they are read.
struct share {
    int vector; // elements
    double registers, shared, rest, all;
};

static struct share share_of(const struct kg_cuda_rowwise_plan *plan, int function, int64_t columns)
{
    bool any = function == ANY;
    struct share share = {.vector = any ? 1 : plan->vector};
    int64_t span = (int64_t)plan->threads * plan->cluster * share.vector;
    int64_t hold = any && plan->vector > 1 ? 0 : plan->hold;
    share.all = (double)kg_ceil_div(columns, span);
    share.registers = fmin(share.all, (double)hold);
    share.shared = function == 0 ? fmin(share.all - share.registers, plan->shared) : 0;
    share.rest = share.all - share.registers - share.shared;
    return share;
}

// Counts `times` accesses of `bytes` of a thread to rows of `columns` elements. The lanes of a warp
// that share a row lie side by side, and begin anywhere in a line unless rows are made of whole
// ones.
static void add_accesses(const struct kg_cuda_rowwise_plan *plan, const struct share *share,
                         double columns, double times, double bytes,
                         struct kg_cuda_memory_work *work)
{
    double lanes = plan->threads < WARP ? plan->threads : WARP, segment = lanes * bytes;
    double row = columns * bytes / share->vector, unit = fmin(segment, LINE);
    while (fmod(row, unit) != 0 && unit > 1)
        unit /= 2;
    kg_cuda_memory_access(work, times, bytes);
    work->lines += times * WARP / lanes * (1 + (segment - unit) / LINE);
}

double kg_cuda_rowwise_streamed(const struct kg_rowwise_plan *row)
{
    struct kg_cuda_streams streams;
    double bytes = 0;
    kg_cuda_streams_make(row, &streams);
    for (int i = 0; i < streams.count; i++)
        if (streams.items[i].held)
            bytes += kg_cuda_once_bytes(row->group, streams.items[i].nest, streams.items[i].access);
    return bytes;
}

// What is read and written by vectors.
static void add_streams(const struct kg_cuda_rowwise_plan *plan, const struct share *share,
                        double columns, const struct kg_device_facts *facts,
                        struct kg_cuda_memory_work *work)
{
    const double L1_TRIP = 0.15; // a hit in the L1, of one in the L2
    enum { UNROLLED = 4 };       // of the vectors in shared memory, worked on at once
    enum { L1_SHARE = 4 };       // of the L1, that such rows find free
    struct kg_cuda_streams streams;
    const double threads = work->blocks * work->threads;
    bool again = false;
    double near = 0;
    int most = 0;
    kg_cuda_streams_make(&plan->row, &streams);
    for (int i = 0; i < streams.count; i++) {
        const struct kg_cuda_stream *stream = &streams.items[i];
        double bytes = kg_cuda_stream_bytes(plan, stream) / plan->vector * share->vector;
        int uses = 0;
        for (int pass = 0; pass < plan->row.passes; pass++)
            uses += stream->uses[pass];
        most = uses > most ? uses : most;
        if (stream->held) {
            double times = share->registers + share->shared * (1 + uses) + share->rest * uses;
            add_accesses(plan, share, columns, times * rows_of(plan), bytes, work);
            work->again += threads * share->rest * bytes * (uses - 1);
            again = true;
        } else {
            add_accesses(plan, share, columns, share->all * uses, bytes, work);
            if (plan->staged > 0) { // on its way before it is needed
                work->again += threads * share->all * bytes;
                continue;
            }
            // Short ones stay in the L1, for one row after the other.
            double row = share->all * plan->threads * bytes;
            bool is_near = plan->cluster == 1 && row <= (double)facts->cache[1] / L1_SHARE;
            if (!is_near)
                work->again += threads * share->all * bytes * uses;
            near = fmax(near, is_near ? L1_TRIP : 1 + share->shared / UNROLLED);
        }
    }
    work->trips = (share->registers + share->shared > 0) + (again ? share->rest : 0);
    work->near_trips = (again ? share->rest * (most - 1) : 0) + near;
    // Rows that are read again, and more than the L2 holds of all that are worked on.
    double at_work = kg_cuda_memory_resident(work, facts) * facts->units / work->blocks;
    if (share->rest > 0 && at_work * work->bytes > (double)facts->cache[2] / 2)
        work->bytes += work->again;
}

// Elements between those of neighbouring columns.
static double stride_of(const struct kg_rowwise_plan *row, const struct kg_access *access)
{
    const struct kg_layout *layout = &row->group->problem->layouts[access->tensor->id];
    double stride = 0;
    for (int dim = 0; dim < access->tensor->rank; dim++)
        if (access->map[dim].is_affine)
            stride += fabs((double)(access->map[dim].coefficient[row->last] * layout->stride[dim]));
    return stride;
}

bool kg_cuda_rowwise_reads_apart(const struct kg_rowwise_plan *row)
{
    for (int i = 0; i < row->group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(row->group, i);
        for (int a = 0; a < nest->access_count && row->role[i] != KG_ROWWISE_SCALAR; a++)
            if (stride_of(row, &nest->accesses[a]) > 1)
                return true;
    }
    return false;
}

// Reads that are in no stream are made one by one; where neighbouring threads' elements lie apart,
// whole sectors come for each.
static void add_plain_reads(const struct kg_cuda_rowwise_plan *plan, const struct share *share,
                            struct kg_cuda_memory_work *work)
{
    const struct kg_rowwise_plan *row = &plan->row;
    const struct kg_problem *problem = row->group->problem;
    struct kg_cuda_streams streams;
    bool any = false;
    kg_cuda_streams_make(row, &streams);
    for (int i = 0; i < row->group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(row->group, i);
        for (int a = 0; a < nest->access_count && row->role[i] != KG_ROWWISE_SCALAR; a++) {
            const struct kg_access *access = &nest->accesses[a];
            if (kg_group_maker(row->group, access->tensor) >= 0 ||
                kg_cuda_streams_find(&streams, row, access) >= 0)
                continue;
            const struct kg_layout *layout = &problem->layouts[access->tensor->id];
            double bytes = kg_dtypes[kg_emit_tensor_dtype(access->tensor)].bits / 8.0;
            double lanes = plan->threads < WARP ? plan->threads : WARP;
            double apart = stride_of(row, access), stride = fmin(apart, SECTOR / bytes);
            double times = share->all * share->vector * rows_of(plan);
            kg_cuda_memory_access(work, times, bytes);
            work->lines += times * WARP / lanes * fmin(lanes, 1 + lanes * apart * bytes / LINE);
            if (stride > 1)
                work->bytes += (stride - 1) * bytes * (double)layout->elements;
            any = true;
        }
    }
    if (any)
        kg_cuda_memory_divide(work, share->all * share->vector * rows_of(plan),
                              row->run - row->rows);
}

static void add_statements(const struct kg_cuda_rowwise_plan *plan, const struct share *share,
                           double columns, double elements, struct kg_cuda_memory_work *work)
{
    const struct kg_rowwise_plan *row = &plan->row;
    for (int i = 0; i < row->group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(row->group, i);
        if (row->role[i] == KG_ROWWISE_SCALAR)
            continue;
        // What a later pass needs again is held, or computed again.
        double times = share->all * share->vector * (row->kept[i] && !plan->keep ? 2 : 1);
        times *= rows_of(plan);
        kg_cuda_memory_compute(work, row->group, i, elements, times);
        if (row->role[i] == KG_ROWWISE_REDUCE) {
            work->meetings++;
            work->steps += FOLD_STEPS * rows_of(plan);
        } else if (!kg_group_is_private(row->group, nest->output)) {
            int bytes = kg_dtypes[kg_emit_tensor_dtype(nest->output)].bits / 8;
            add_accesses(plan, share, columns, share->all * rows_of(plan), bytes * share->vector,
                         work);
        }
    }
}

// What is held as computed takes the place of what it was computed from.
static double count_registers(const struct kg_cuda_rowwise_plan *plan, const struct share *share)
{
    struct kg_cuda_streams streams;
    double raw = 0, kept = 0;
    kg_cuda_streams_make(&plan->row, &streams);
    for (int i = 0; i < streams.count; i++)
        if (streams.items[i].held)
            raw += rows_of(plan) * kg_cuda_stream_bytes(plan, &streams.items[i]) / 4.0;
    for (int i = 0; i < plan->row.group->count && plan->keep; i++)
        if (plan->row.kept[i])
            kept += plan->vector *
                    (kg_group_nest(plan->row.group, i)->body->type == KG_TYPE_F32 ? 1 : 2);
    double registers = OTHER_REGISTERS + plan->hold * fmax(raw, kept);
    registers += share->vector > WIDE ? share->vector : 0;
    return registers;
}

int kg_cuda_rowwise_work(const struct kg_match *match, const struct kg_config *config,
                         struct kg_cuda_memory_work *works)
{
    const struct kg_group *group = &match->group;
    const struct kg_device_facts *facts = match->facts;
    struct kg_cuda_rowwise_plan plan;
    struct kg_grids grids;
    int64_t rows, columns, length;
    int count = 0;
    kg_cuda_rowwise_plan_make(match, config, "", &plan);
    kg_cuda_rowwise_measure(&plan.row, &rows, &columns, &length);
    match->family->grids(match, config, &grids);
    for (int i = 0; i < grids.count; i++) {
        if (grids.grids[i].blocks[0] == 0)
            continue;
        struct kg_cuda_memory_work *work = &works[count++];
        struct share share = share_of(&plan, i, columns);
        *work = kg_cuda_memory_work_of(&grids.grids[i]);
        work->bytes = kg_cuda_memory_bytes(group);
        work->registers = count_registers(&plan, &share);
        work->limit = plan.registers;
        add_streams(&plan, &share, (double)columns, facts, work);
        work->evicted = plan.evict == KG_CUDA_EVICT_FIRST ? kg_cuda_rowwise_streamed(&plan.row) : 0;
        add_plain_reads(&plan, &share, work);
        add_statements(&plan, &share, (double)columns, (double)rows * (double)columns, work);
        work->steps += ROW_STEPS;
    }
    return count;
}
