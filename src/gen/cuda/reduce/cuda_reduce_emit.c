// The code of the reduce family for CUDA: see cuda_reduce.c for what it does and when, and
// cuda_reduce_part.c for what a thread does with its elements.
//
// Along the row, a block works on one output. Along the column, a block works on a tile of columns.
// Blocks of the same outputs take turns with the parts; then their totals are folded, in a cluster
// or by a function of its own.

#include "gen/cuda/reduce/cuda_reduce.h"

#include "gen/cuda/cuda_frame.h"
#include "gen/skeleton.h"

#include <stdio.h>

// Is there a second function that folds what blocks leave?
static bool folds_last(const struct kg_cuda_reduce_writer *writer)
{
    return writer->plan->split > 1 && !writer->plan->cluster;
}

// ---- Results ----

static void print_result(struct kg_text *text, const struct kg_fold *fold)
{
    if (fold->is_argument)
        kg_text_add(text, "total.at");
    else if (fold->reduce == KG_REDUCE_MEAN)
        kg_text_format(text, "kg_two_value(total.sum, total.lost) / (%s)count",
                       kg_emit_type(fold->result));
    else if (fold->is_float_sum)
        kg_text_add(text, "kg_two_value(total.sum, total.lost)");
    else if (fold->result == KG_TYPE_BOOL)
        kg_text_add(text, "total != 0");
    else
        kg_text_format(text, fold->result == fold->lane ? "total" : "(%s)total",
                       kg_emit_type(fold->result));
}

// From `total` to the outputs, and to those of the statements behind, at the place `output`.
static void emit_finish(struct kg_cuda_reduce_writer *writer)
{
    const struct kg_cuda_reduce_plan *plan = writer->plan;
    struct kg_code *code = &writer->code;
    struct kg_values values = {.group = plan->group};
    char names[KG_MAX_NESTS][16];
    kg_cuda_reduce_axes(writer, 0, plan->outputs - 1, "output");
    for (int i = plan->k; i < plan->group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(plan->group, i);
        enum kg_type type = i == plan->k ? plan->fold.result : nest->body->type;
        snprintf(names[i], sizeof names[i], "v%d", i);
        kg_code_begin(code);
        kg_text_format(code->text, "const %s v%d = ", kg_emit_type(type), i);
        if (i == plan->k)
            print_result(code->text, &plan->fold);
        else
            kg_values_print(code->text, &values, i, type);
        kg_text_add(code->text, ";");
        kg_code_end(code);
        values.locals[i] = names[i];
        if (kg_group_is_private(plan->group, nest->output))
            continue;
        kg_code_begin(code);
        kg_values_store(code->text, &values, i, type, names[i]);
        kg_code_end(code);
    }
}

// What a block has made of `total`, at the place `output`.
static void emit_outcome(struct kg_cuda_reduce_writer *writer)
{
    if (folds_last(writer))
        kg_code_line(&writer->code, "reinterpret_cast<FOLD::type *>(scratch)[share * outputs "
                                    "+ output] = total;");
    else
        emit_finish(writer);
}

// ---- The code ----

static void emit_fold_type(struct kg_cuda_reduce_writer *writer)
{
    const struct kg_fold *fold = &writer->plan->fold;
    struct kg_code *code = &writer->code;
    kg_code_begin(code);
    kg_text_add(code->text, "typedef ");
    if (fold->is_float_sum)
        kg_text_format(code->text, "kg_fold_two_%s", kg_emit_suffix(fold->lane));
    else
        kg_cuda_fold(code->text, fold, "int64_t");
    kg_text_add(code->text, " FOLD;");
    kg_code_end(code);
}

static void emit_constants(struct kg_cuda_reduce_writer *writer)
{
    const struct kg_cuda_reduce_plan *plan = writer->plan;
    kg_code_line(&writer->code, "enum { THREADS = %d, VECTOR = %d, UNROLL = %d, SPLIT = %d };",
                 plan->threads, plan->vector, plan->unroll, plan->split);
    emit_fold_type(writer);
    kg_cuda_reduce_product(writer, "outputs", 0, plan->outputs - 1);
    kg_cuda_reduce_product(writer, "count", plan->outputs, plan->nest->axis_count - 1);
}

// Which of the blocks that share an output this one is.
static void emit_share(struct kg_cuda_reduce_writer *writer)
{
    kg_code_line(&writer->code, writer->plan->cluster ? "const int share = kg_cluster_rank();"
                                                      : "const int share = blockIdx.y;");
}

// Sums of few blocks' threads lose little; many blocks' keep what was rounded away.
static void emit_block_fold(struct kg_cuda_reduce_writer *writer, const char *threads)
{
    enum { FEW_BLOCKS = 132 };
    const struct kg_fold *fold = &writer->plan->fold;
    if (fold->is_float_sum && writer->plan->split <= FEW_BLOCKS)
        kg_code_line(&writer->code,
                     "total = {kg_block_fold<kg_fold_sum_%s, %s>(kg_two_value(total.sum, "
                     "total.lost), turn), 0};",
                     kg_emit_suffix(fold->lane), threads);
    else
        kg_code_line(&writer->code, "total = kg_block_fold<FOLD, %s>(total, turn);", threads);
}

// A cluster for each output: the first block gets what all of them find. Nobody writes to a block
// that may not have started, and the wait for that is over when there is something to write.
static void open_cluster(struct kg_cuda_reduce_writer *writer)
{
    struct kg_code *code = &writer->code;
    kg_code_line(code, "__shared__ FOLD::type found[SPLIT];");
    kg_code_line(code, "kg_cluster_arrive_relaxed();");
    kg_code_line(code, "const int64_t output = blockIdx.x / SPLIT;");
}

static void emit_cluster_fold(struct kg_cuda_reduce_writer *writer)
{
    struct kg_code *code = &writer->code;
    kg_code_line(code, "kg_cluster_await();");
    kg_code_line(code, "if (thread == 0)");
    kg_code_line(code, "    *kg_of_block(found + share, 0) = total;");
    kg_code_line(code, "kg_cluster_wait();");
}

static void emit_rows(struct kg_cuda_reduce_writer *writer)
{
    const struct kg_cuda_reduce_plan *plan = writer->plan;
    struct kg_code *code = &writer->code;
    if (plan->run > plan->outputs)
        kg_cuda_reduce_product(writer, "length", plan->run, plan->last);
    kg_code_line(code, "const int step = WHOLE ? 1 : THREADS;");
    kg_code_line(code, "const int thread = threadIdx.x;");
    emit_share(writer);
    kg_code_line(code, "int turn = 0;");
    if (plan->cluster)
        open_cluster(writer);
    else
        kg_code_open(code, "for (int64_t output = blockIdx.x; output < outputs; "
                           "output += gridDim.x)");
    kg_cuda_reduce_axes(writer, 0, plan->outputs - 1, "output");
    kg_cuda_reduce_totals(writer);
    kg_code_open(code, "for (int64_t part = share; part * (THREADS * VECTOR * UNROLL) < "
                       "count; part += SPLIT)");
    kg_cuda_reduce_part(writer);
    kg_code_close(code);
    emit_block_fold(writer, "THREADS");
    if (plan->cluster)
        emit_cluster_fold(writer);
    kg_code_open(code, plan->cluster ? "if (thread == 0 && share == 0)" : "if (thread == 0)");
    if (plan->cluster) {
        kg_code_line(code, "total = found[0];");
        kg_code_line(code, "#pragma unroll");
        kg_code_line(code, "for (int rank = 1; rank < SPLIT; rank++)");
        kg_code_line(code, "    total = FOLD::both(total, found[rank]);");
    }
    emit_outcome(writer);
    kg_code_close(code);
    if (!plan->cluster)
        kg_code_close(code);
}

// The totals of a tile come together in shared memory, so that neighbours store neighbours.
static void emit_tile_end(struct kg_cuda_reduce_writer *writer)
{
    const bool cluster = writer->plan->cluster, joined = writer->plan->joined;
    struct kg_code *code = &writer->code;
    kg_code_line(code, "#pragma unroll");
    kg_code_line(code, "for (int lane = 0; lane < VECTOR; lane++)");
    kg_code_line(code, "    slots[group * wide + across + lane * step] = total[lane];");
    kg_code_line(code, "kg_groups_fold<FOLD>(slots, wide, groups);");
    if (cluster)
        kg_code_line(code, "kg_cluster_wait();");
    kg_code_line(code, "const int place0 = group * (int)blockDim.x + (int)threadIdx.x;");
    kg_code_open(code, cluster ? "for (int place = share == 0 ? place0 : wide; place < wide; "
                                 "place += (int)blockDim.x * groups)"
                               : "for (int place = place0; place < wide; "
                                 "place += (int)blockDim.x * groups)");
    kg_code_line(code, joined ? "if (begin + place >= columns)" : "if (begin + place >= width)");
    kg_code_line(code, "    break;");
    kg_code_line(code, "const int64_t output = outer * width + begin + place;");
    kg_code_line(code, cluster ? "const FOLD::type total = kg_cluster_total<FOLD, SPLIT>(slots + "
                                 "place);"
                               : "const FOLD::type total = slots[place];");
    emit_outcome(writer);
    kg_code_close(code);
    kg_code_line(code, cluster ? "kg_cluster_wait();" : "__syncthreads();");
}

// A tile has columns of one outer index. If columns are joined, and read in whole vectors, it has
// those of several outer indices, one after another, so that blocks have enough to do where each
// index has few columns. No vector crosses from one index to the next.
static void emit_columns(struct kg_cuda_reduce_writer *writer)
{
    const struct kg_cuda_reduce_plan *plan = writer->plan;
    const bool joined = plan->joined;
    struct kg_code *code = &writer->code;
    const char *shared = plan->cluster ? " / SPLIT" : "";
    kg_cuda_reduce_product(writer, "outers", 0, plan->run - 1);
    kg_cuda_reduce_product(writer, "width", plan->run, plan->last);
    kg_code_line(code, "const int step = WHOLE ? 1 : (int)blockDim.x;");
    kg_code_line(code, "const int wide = (int)blockDim.x * VECTOR;");
    kg_code_line(code, "const int across = (int)threadIdx.x * (WHOLE ? VECTOR : 1);");
    kg_code_line(code, "const int group = threadIdx.y, groups = blockDim.y;");
    emit_share(writer);
    if (joined)
        kg_code_line(code, "const int64_t columns = WHOLE ? outputs : width;");
    kg_code_line(code, joined ? "const int64_t tiles = kg_tiles(columns, wide);"
                              : "const int64_t tiles = kg_tiles(width, wide);");
    kg_code_line(code, "__shared__ FOLD::type slots[THREADS * VECTOR];");
    kg_code_open(code, "for (int64_t tile = blockIdx.x%s; tile < tiles * %s; tile += gridDim.x%s)",
                 shared, joined ? "(WHOLE ? 1 : outers)" : "outers", shared);
    kg_code_line(code, "int64_t outer = tile;");
    kg_code_line(code, "const int64_t begin = kg_take(&outer, tiles) * wide;");
    if (joined) {
        kg_code_line(code, "int64_t where = WHOLE ? begin + across : outer;");
        kg_code_line(code,
                     "const int64_t first = WHOLE ? kg_take(&where, width) : begin + across;");
    } else {
        kg_code_line(code, "const int64_t first = begin + across;");
    }
    kg_cuda_reduce_axes(writer, 0, plan->run - 1, joined ? "where" : "outer");
    kg_cuda_reduce_totals(writer);
    kg_code_open(code,
                 "for (int64_t part = begin + across < %s ? share : count; "
                 "part * UNROLL * groups < count; part += SPLIT)",
                 joined ? "columns" : "width");
    kg_cuda_reduce_part(writer);
    kg_code_close(code);
    kg_cuda_reduce_places(writer);
    emit_tile_end(writer);
    kg_code_close(code);
}

// Folds what the blocks of each output have left: a block of threads does so for each output,
static void emit_row_combine(struct kg_cuda_reduce_writer *writer)
{
    const struct kg_cuda_reduce_plan *plan = writer->plan;
    struct kg_code *code = &writer->code;
    kg_code_line(code, "enum { EACH = (SPLIT + COMBINE - 1) / COMBINE };");
    kg_code_line(code, "const int thread = threadIdx.x;");
    kg_code_line(code, "int turn = 0;");
    kg_code_open(code, "for (int64_t output = blockIdx.x; output < outputs; output += gridDim.x)");
    kg_code_line(code, "FOLD::type found[EACH];");
    kg_code_line(code, "#pragma unroll");
    kg_code_open(code, "for (int i = 0; i < EACH; i++)");
    kg_code_begin(code);
    kg_text_add(code->text, "found[i] = ");
    kg_cuda_reduce_neutral(code->text, &plan->fold, "-1");
    kg_text_add(code->text, ";");
    kg_code_end(code);
    kg_code_line(code, "if (i * COMBINE + thread < SPLIT)");
    kg_code_line(code, "    found[i] = partials[(i * COMBINE + thread) * outputs + output];");
    kg_code_close(code);
    kg_code_line(code, "FOLD::type total = found[0];");
    kg_code_line(code, "#pragma unroll");
    kg_code_line(code, "for (int i = 1; i < EACH; i++)");
    kg_code_line(code, "    total = FOLD::both(total, found[i]);");
    emit_block_fold(writer, "COMBINE");
    kg_code_open(code, "if (thread == 0)");
    emit_finish(writer);
    kg_code_close(code);
    kg_code_close(code);
}

// or groups of threads share those of neighbouring outputs.
static void emit_column_combine(struct kg_cuda_reduce_writer *writer)
{
    enum { MOST_ROUNDS = 8, WARP = 32 };
    const struct kg_cuda_reduce_plan *plan = writer->plan;
    // A group for each warp, or more, so that few blocks leave no loop to unroll.
    const int rounds = (int)kg_ceil_div(plan->split, kg_cuda_combine_threads(plan) / WARP);
    struct kg_code *code = &writer->code;
    kg_code_line(code, "__shared__ FOLD::type slots[COMBINE];");
    kg_code_line(code, "const int group = threadIdx.y, groups = blockDim.y;");
    kg_code_line(code, "const int64_t across = (int64_t)gridDim.x * blockDim.x;");
    kg_code_open(code, "for (int64_t begin = (int64_t)blockIdx.x * blockDim.x; begin < outputs; "
                       "begin += across)");
    kg_code_line(code, "const int64_t output = begin + threadIdx.x;");
    kg_code_begin(code);
    kg_text_add(code->text, "FOLD::type total = ");
    kg_cuda_reduce_neutral(code->text, &plan->fold, "-1");
    kg_text_add(code->text, ";");
    kg_code_end(code);
    kg_code_open(code, "if (output < outputs)");
    kg_code_line(code, "#pragma unroll %d", rounds < MOST_ROUNDS ? rounds : MOST_ROUNDS);
    kg_code_line(code, "for (int chunk = group; chunk < SPLIT; chunk += groups)");
    kg_code_line(code, "    total = FOLD::both(total, partials[chunk * outputs + output]);");
    kg_code_close(code);
    kg_code_line(code, "slots[group * (int)blockDim.x + (int)threadIdx.x] = total;");
    kg_code_line(code, "kg_groups_fold<FOLD>(slots, (int)blockDim.x, groups);");
    kg_code_open(code, "if (group == 0 && output < outputs)");
    kg_code_line(code, "total = slots[threadIdx.x];");
    emit_finish(writer);
    kg_code_close(code);
    kg_code_line(code, "__syncthreads();");
    kg_code_close(code);
}

static void emit_combine(struct kg_cuda_reduce_writer *writer)
{
    const struct kg_cuda_reduce_plan *plan = writer->plan;
    struct kg_code *code = &writer->code;
    kg_text_add(code->text, "\n");
    kg_cuda_open_function(code, plan->group, plan->entry, 2, kg_cuda_combine_threads(plan), 0);
    emit_constants(writer);
    kg_code_line(code, "enum { COMBINE = %d };", kg_cuda_combine_threads(plan));
    kg_code_line(code, "kg_start_next_of_few();");
    kg_code_line(code, "kg_wait_before();");
    kg_code_line(code, "const FOLD::type *partials = "
                       "reinterpret_cast<const FOLD::type *>(kg_after(scratch));");
    if (plan->column)
        emit_column_combine(writer);
    else
        emit_row_combine(writer);
    kg_code_close(code);
}

void kg_cuda_reduce_emit(struct kg_text *text, const struct kg_cuda_reduce_plan *plan)
{
    static const char *const skeletons[] = {"cuda/vectors.cuh", "cuda/index.cuh", "cuda/lanes.cuh"};
    struct kg_cuda_reduce_writer writer = {.plan = plan, .code = {text, 0}};
    struct kg_code *code = &writer.code;
    writer.values =
        (struct kg_values){.group = plan->group, .read = kg_cuda_reduce_read, .user = &writer};
    for (int axis = plan->run; axis < plan->last; axis++)
        writer.values.axes[axis] = "0";
    kg_cuda_reduce_streams_make(plan, &writer.streams);
    writer.batch = kg_cuda_reduce_batch(plan);
    for (int i = 0; i < (int)(sizeof skeletons / sizeof *skeletons); i++) {
        kg_text_add(text, kg_skeleton_find(skeletons[i]));
        kg_text_add(text, "\n");
    }
    kg_cuda_open_body(code, plan->group, plan->entry, "bool WHOLE");
    emit_constants(&writer);
    if (plan->column)
        emit_columns(&writer);
    else
        emit_rows(&writer);
    kg_code_close(code);
    for (int i = 0; i < 2; i++)
        kg_cuda_waiting_function(code, plan->group, plan->entry, i, plan->threads, plan->registers,
                                 plan->entry, i == 0 ? "true" : "false");
    if (folds_last(&writer))
        emit_combine(&writer);
}
