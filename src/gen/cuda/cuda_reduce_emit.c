// The code of the reduce family for CUDA: see cuda_reduce.c for what it does and when.
//
// Along the row, a block works on one output, and a part is what its threads take at once: UNROLL
// vectors each. Along the column, a block works on a tile of columns; its threads stand in groups,
// one for each row of a part, and have a total for each of their columns. Blocks of the same
// outputs take turns with the parts. A vector begins at `first` and has its elements `step` apart:
// 1 where every vector is whole (WHOLE), else so far that neighbours read neighbours.

#include "gen/cuda/cuda_reduce.h"

#include "gen/cuda/cuda_frame.h"
#include "gen/skeleton.h"

#include <stdio.h>

struct writer {
    const struct kg_cuda_reduce_plan *plan;
    struct kg_code code;
    struct kg_values values; // of the body of the reduction
    struct kg_cuda_reduce_streams streams;
};

static const struct kg_nest *nest_at(const struct kg_cuda_reduce_plan *plan, int position)
{
    return plan->group->problem->nests[plan->group->first + position];
}

// Is there a second function that folds what blocks leave?
static bool folds_last(const struct writer *writer)
{
    return writer->plan->split > 1 && !writer->plan->cluster;
}

// ---- Which reads are vectors ----

// The statement that reads so, if it is in place: others read at other places. Else -1.
static int find_reader(const struct kg_cuda_reduce_plan *plan, const struct kg_access *access)
{
    for (int i = 0; i <= plan->k; i++) {
        const struct kg_nest *nest = nest_at(plan, i);
        for (int a = 0; a < nest->access_count; a++)
            if (access == &nest->accesses[a])
                return plan->in_place[i] ? i : -1;
    }
    return -1;
}

static bool read_stream(void *user, struct kg_text *text, const struct kg_access *access)
{
    const struct writer *writer = user;
    int reader = find_reader(writer->plan, access);
    int i = reader >= 0 ? kg_cuda_reduce_find(writer->plan, &writer->streams, reader, access) : -1;
    char base[48];
    if (i < 0)
        return false;
    snprintf(base, sizeof base, "take%d[piece].at", i);
    kg_emit_load_at(text, access->tensor, base, "lane");
    return true;
}

// ---- Places ----

static void emit_product(struct writer *writer, const char *name, int first, int last)
{
    struct kg_code *code = &writer->code;
    kg_code_begin(code);
    kg_text_format(code->text, "const int64_t %s = ", name);
    kg_axes_product(code->text, writer->plan->nest, first, last);
    kg_text_add(code->text, ";");
    kg_code_end(code);
}

// Declares the axes [first, last] that the linear counter `from` stands for.
static void emit_axes(struct writer *writer, int first, int last, const char *from)
{
    struct kg_code *code = &writer->code;
    if (first > last)
        return;
    if (first < last)
        kg_code_line(code, "int64_t rest = %s;", from);
    for (int axis = last; axis > first; axis--) {
        kg_code_begin(code);
        kg_text_format(code->text, "const int64_t i%d = kg_take(&rest, ", axis);
        kg_axes_extent(code->text, writer->plan->nest->axes[axis]);
        kg_text_add(code->text, ");");
        kg_code_end(code);
    }
    kg_code_line(code, "const int64_t i%d = %s;", first, first < last ? "rest" : from);
}

// Declares the axes that vectors move along, of the element `from` + `lane` more.
static void emit_run_axes(struct writer *writer, const char *from, const char *lane)
{
    const struct kg_cuda_reduce_plan *plan = writer->plan;
    struct kg_code *code = &writer->code;
    if (plan->column || plan->run == plan->outputs) {
        kg_code_line(code, "const int64_t i%d = %s%s;", plan->last, from, lane);
        return;
    }
    kg_code_line(code, "int64_t more = %s;", from);
    kg_code_line(code, "const int64_t i%d = kg_take(&more, length)%s;", plan->last, lane);
    emit_axes(writer, plan->outputs, plan->run - 1, "more");
}

// Opens the loop over the elements of a vector, and declares their axes.
static void open_lanes(struct writer *writer)
{
    struct kg_code *code = &writer->code;
    kg_code_line(code, "#pragma unroll");
    kg_code_open(code, "for (int lane = 0; lane < VECTOR; lane++)");
    kg_code_line(code, "const int64_t column = first + lane * step;");
    kg_code_line(code, "if (!WHOLE && column >= %s)", writer->plan->column ? "width" : "count");
    kg_code_line(code, "    break;");
    if (writer->plan->column)
        emit_run_axes(writer, "column", "");
    else
        emit_run_axes(writer, "(WHOLE ? first : column)", " + (WHOLE ? lane : 0)");
}

// Opens the loop over the vectors that a thread has of a part.
static void open_pieces(struct writer *writer)
{
    const struct kg_cuda_reduce_plan *plan = writer->plan;
    struct kg_code *code = &writer->code;
    kg_code_line(code, "#pragma unroll");
    kg_code_open(code, "for (int piece = 0; piece < UNROLL; piece++)");
    if (plan->column) {
        kg_code_line(code, "const int64_t reduced = (part * UNROLL + piece) * groups + group;");
        kg_code_line(code, "if (reduced >= count)");
    } else {
        kg_code_line(code, "const int64_t first = (part * UNROLL + piece) * (THREADS * VECTOR) + "
                           "thread * (WHOLE ? VECTOR : 1);");
        kg_code_line(code, "if (first >= count)");
    }
    kg_code_line(code, "    break;");
    if (plan->column)
        emit_axes(writer, plan->outputs, plan->nest->axis_count - 1, "reduced");
}

// ---- Loads ----

static void print_place(struct writer *writer, const struct kg_cuda_reduce_stream *stream)
{
    const struct kg_cuda_reduce_plan *plan = writer->plan;
    struct kg_text *text = writer->code.text;
    struct kg_values values = writer->values;
    char names[KG_MAX_INDICES][8];
    for (int own = 0; own < plan->nest->axis_count; own++) {
        int axis = plan->axis_of[stream->position][own];
        snprintf(names[own], sizeof names[own], "i%d", axis);
        values.axes[own] = writer->values.axes[axis] ? writer->values.axes[axis] : names[own];
    }
    kg_emit_name(text, stream->access->tensor->name);
    kg_text_add(text, " + ");
    kg_values_access(text, &values, nest_at(plan, stream->position), stream->access);
}

static void emit_fill(struct writer *writer, int i)
{
    struct kg_code *code = &writer->code;
    kg_code_open(code, "if constexpr (WHOLE)");
    emit_run_axes(writer, "first", "");
    kg_code_begin(code);
    kg_text_format(code->text, "take%d[piece] = kg_load_vec<VECTOR>(", i);
    print_place(writer, &writer->streams.items[i]);
    kg_text_add(code->text, ");");
    kg_code_end(code);
    kg_code_outdent(code);
    kg_code_line(code, "} else {");
    kg_code_indent(code);
    open_lanes(writer);
    kg_code_begin(code);
    kg_text_format(code->text, "take%d[piece].at[lane] = *(", i);
    print_place(writer, &writer->streams.items[i]);
    kg_text_add(code->text, ");");
    kg_code_end(code);
    kg_code_close(code);
    kg_code_close(code);
}

static void emit_loads(struct writer *writer)
{
    struct kg_code *code = &writer->code;
    if (writer->streams.count == 0)
        return;
    for (int i = 0; i < writer->streams.count; i++)
        kg_code_line(code, "kg_vec<%s, VECTOR> take%d[UNROLL];",
                     kg_emit_tensor_storage(writer->streams.items[i].access->tensor), i);
    open_pieces(writer);
    for (int i = 0; i < writer->streams.count; i++)
        emit_fill(writer, i);
    kg_code_close(code);
}

// ---- Totals ----

static void emit_fold_type(struct writer *writer)
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

// What nothing gives, of the fold's type; `place` stands beside it.
static void print_neutral(struct kg_text *text, const struct kg_fold *fold, const char *place)
{
    const char *after = fold->is_float_sum ? ", 0}" : fold->is_argument ? ", " : "";
    kg_text_add(text, *after ? "{" : "");
    kg_fold_neutral(text, fold, fold->lane);
    kg_text_add(text, after);
    if (fold->is_argument)
        kg_text_format(text, "%s}", place);
}

// `total` of the thread: one, or one for each of its columns.
static void emit_totals(struct writer *writer)
{
    struct kg_code *code = &writer->code;
    bool column = writer->plan->column;
    if (writer->plan->fold.is_argument) // the first of what may be equal to nothing
        kg_code_line(code, column ? "const int64_t start = (int64_t)share * UNROLL * groups + "
                                    "group;"
                                  : "const int64_t start = (int64_t)share * (THREADS * VECTOR "
                                    "* UNROLL) + (WHOLE ? thread * VECTOR : thread);");
    kg_code_line(code, "FOLD::type total%s;", column ? "[VECTOR]" : "");
    if (column) {
        kg_code_line(code, "#pragma unroll");
        kg_code_line(code, "for (int lane = 0; lane < VECTOR; lane++)");
        kg_code_indent(code);
    }
    kg_code_begin(code);
    kg_text_format(code->text, "total%s = ", column ? "[lane]" : "");
    print_neutral(code->text, &writer->plan->fold, "start < count ? start : -1");
    kg_text_add(code->text, ";");
    kg_code_end(code);
    if (column)
        kg_code_outdent(code);
}

static void emit_step(struct writer *writer)
{
    const struct kg_cuda_reduce_plan *plan = writer->plan;
    const struct kg_fold *fold = &plan->fold;
    struct kg_code *code = &writer->code;
    const char *total = plan->column ? "total[lane]" : "total";
    char value[16];
    snprintf(value, sizeof value, "v%d", plan->k);
    kg_code_begin(code);
    kg_text_format(code->text, "const %s %s = ", kg_fold_type(fold->lane), value);
    kg_values_print(code->text, &writer->values, plan->k, fold->lane);
    kg_text_add(code->text, ";");
    kg_code_end(code);
    if (fold->is_float_sum) {
        kg_code_line(code, "partial%s += %s;", plan->column ? "[lane]" : "", value);
    } else if (fold->is_argument) {
        kg_code_begin(code);
        kg_text_add(code->text, "if (kg_take_better<");
        kg_cuda_fold_values(code->text, fold);
        kg_text_format(code->text, ">(%s.value, %s))", total, value);
        kg_code_end(code);
        kg_code_line(code, plan->column ? "    total[lane].at = reduced;" : "    spot = lane;");
    } else {
        kg_code_begin(code);
        kg_text_format(code->text, "%s = ", total);
        kg_fold_combine(code->text, fold, fold->lane, total, value);
        kg_text_add(code->text, ";");
        kg_code_end(code);
    }
}

// Sums of a few floats are plain; what adding them to the total rounds away is kept beside it.
static void emit_part(struct writer *writer)
{
    const struct kg_cuda_reduce_plan *plan = writer->plan;
    struct kg_code *code = &writer->code;
    const char *type = kg_emit_type(plan->fold.lane);
    bool sums = plan->fold.is_float_sum, spots = plan->fold.is_argument && !plan->column;
    emit_loads(writer);
    if (sums && plan->column)
        kg_code_line(code, "%s partial[VECTOR] = {};", type);
    open_pieces(writer);
    if (sums && !plan->column)
        kg_code_line(code, "%s partial = 0;", type);
    if (spots)
        kg_code_line(code, "int spot = -1;");
    open_lanes(writer);
    emit_step(writer);
    kg_code_close(code);
    if (spots) {
        kg_code_line(code, "if (spot >= 0)");
        kg_code_line(code, "    total.at = first + spot * step;");
    }
    if (sums && !plan->column)
        kg_code_line(code, "kg_two_sum(&total.sum, &total.lost, partial);");
    kg_code_close(code);
    if (!sums || !plan->column)
        return;
    kg_code_line(code, "#pragma unroll");
    kg_code_line(code, "for (int lane = 0; lane < VECTOR; lane++)");
    kg_code_line(code, "    kg_two_sum(&total[lane].sum, &total[lane].lost, partial[lane]);");
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
static void emit_finish(struct writer *writer)
{
    const struct kg_cuda_reduce_plan *plan = writer->plan;
    struct kg_code *code = &writer->code;
    struct kg_values values = {.group = plan->group};
    char names[KG_MAX_NESTS][16];
    emit_axes(writer, 0, plan->outputs - 1, "output");
    for (int i = plan->k; i < plan->group->count; i++) {
        const struct kg_nest *nest = nest_at(plan, i);
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
static void emit_outcome(struct writer *writer)
{
    if (folds_last(writer))
        kg_code_line(&writer->code, "reinterpret_cast<FOLD::type *>(scratch)[share * outputs "
                                    "+ output] = total;");
    else
        emit_finish(writer);
}

// ---- The code ----

static void emit_constants(struct writer *writer)
{
    const struct kg_cuda_reduce_plan *plan = writer->plan;
    kg_code_line(&writer->code, "enum { THREADS = %d, VECTOR = %d, UNROLL = %d, SPLIT = %d };",
                 plan->threads, plan->vector, plan->unroll, plan->split);
    emit_fold_type(writer);
    emit_product(writer, "outputs", 0, plan->outputs - 1);
    emit_product(writer, "count", plan->outputs, plan->nest->axis_count - 1);
}

// Which of the blocks that share an output this one is.
static void emit_share(struct writer *writer)
{
    kg_code_line(&writer->code, writer->plan->cluster ? "const int share = kg_cluster_rank();"
                                                      : "const int share = blockIdx.y;");
}

// Sums of few blocks' threads lose little; many blocks' keep what was rounded away.
static void emit_block_fold(struct writer *writer, const char *threads)
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
static void open_cluster(struct writer *writer)
{
    struct kg_code *code = &writer->code;
    kg_code_line(code, "__shared__ FOLD::type found[SPLIT];");
    kg_code_line(code, "kg_cluster_arrive_relaxed();");
    kg_code_line(code, "const int64_t output = blockIdx.x / SPLIT;");
}

static void emit_cluster_fold(struct writer *writer)
{
    struct kg_code *code = &writer->code;
    kg_code_line(code, "kg_cluster_await();");
    kg_code_line(code, "if (thread == 0)");
    kg_code_line(code, "    *kg_of_block(found + share, 0) = total;");
    kg_code_line(code, "kg_cluster_wait();");
}

static void emit_rows(struct writer *writer)
{
    const struct kg_cuda_reduce_plan *plan = writer->plan;
    struct kg_code *code = &writer->code;
    if (plan->run > plan->outputs)
        emit_product(writer, "length", plan->run, plan->last);
    kg_code_line(code, "const int step = WHOLE ? 1 : THREADS;");
    kg_code_line(code, "const int thread = threadIdx.x;");
    emit_share(writer);
    kg_code_line(code, "int turn = 0;");
    if (plan->cluster)
        open_cluster(writer);
    else
        kg_code_open(code, "for (int64_t output = blockIdx.x; output < outputs; "
                           "output += gridDim.x)");
    emit_axes(writer, 0, plan->outputs - 1, "output");
    emit_totals(writer);
    kg_code_open(code, "for (int64_t part = share; part * (THREADS * VECTOR * UNROLL) < "
                       "count; part += SPLIT)");
    emit_part(writer);
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
static void emit_tile_end(struct writer *writer)
{
    const bool cluster = writer->plan->cluster;
    struct kg_code *code = &writer->code;
    kg_code_line(code, "#pragma unroll");
    kg_code_line(code, "for (int lane = 0; lane < VECTOR; lane++)");
    kg_code_line(code, "    slots[group * wide + (int)(first - begin) + lane * step] = "
                       "total[lane];");
    kg_code_line(code, "kg_groups_fold<FOLD>(slots, wide, groups);");
    if (cluster)
        kg_code_line(code, "kg_cluster_wait();");
    kg_code_line(code, "const int place0 = group * (int)blockDim.x + (int)threadIdx.x;");
    kg_code_open(code, cluster ? "for (int place = share == 0 ? place0 : wide; place < wide; "
                                 "place += (int)blockDim.x * groups)"
                               : "for (int place = place0; place < wide; "
                                 "place += (int)blockDim.x * groups)");
    kg_code_line(code, "if (begin + place >= width)");
    kg_code_line(code, "    break;");
    kg_code_line(code, "const int64_t output = outer * width + begin + place;");
    kg_code_line(code, cluster ? "const FOLD::type total = kg_cluster_total<FOLD, SPLIT>(slots + "
                                 "place);"
                               : "const FOLD::type total = slots[place];");
    emit_outcome(writer);
    kg_code_close(code);
    kg_code_line(code, cluster ? "kg_cluster_wait();" : "__syncthreads();");
}

static void emit_columns(struct writer *writer)
{
    const struct kg_cuda_reduce_plan *plan = writer->plan;
    struct kg_code *code = &writer->code;
    emit_product(writer, "outers", 0, plan->run - 1);
    emit_product(writer, "width", plan->run, plan->last);
    kg_code_line(code, "const int step = WHOLE ? 1 : (int)blockDim.x;");
    kg_code_line(code, "const int wide = (int)blockDim.x * VECTOR;");
    kg_code_line(code, "const int group = threadIdx.y, groups = blockDim.y;");
    emit_share(writer);
    kg_code_line(code, "const int64_t tiles = kg_ceildiv_i64(width, wide);");
    kg_code_line(code, "__shared__ FOLD::type slots[THREADS * VECTOR];");
    kg_code_open(code, plan->cluster ? "for (int64_t tile = blockIdx.x / SPLIT; "
                                       "tile < tiles * outers; tile += gridDim.x / SPLIT)"
                                     : "for (int64_t tile = blockIdx.x; "
                                       "tile < tiles * outers; tile += gridDim.x)");
    kg_code_line(code, "int64_t outer = tile;");
    kg_code_line(code, "const int64_t begin = kg_take(&outer, tiles) * wide;");
    kg_code_line(code, "const int64_t first = begin + (int)threadIdx.x * (WHOLE ? VECTOR : 1);");
    emit_axes(writer, 0, plan->run - 1, "outer");
    emit_totals(writer);
    kg_code_open(code, "for (int64_t part = first < width ? share : count; "
                       "part * UNROLL * groups < count; part += SPLIT)");
    emit_part(writer);
    kg_code_close(code);
    emit_tile_end(writer);
    kg_code_close(code);
}

// Folds what the blocks of each output have left: a block of threads does so for each output,
static void emit_row_combine(struct writer *writer)
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
    print_neutral(code->text, &plan->fold, "-1");
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
static void emit_column_combine(struct writer *writer)
{
    const struct kg_cuda_reduce_plan *plan = writer->plan;
    struct kg_code *code = &writer->code;
    kg_code_line(code, "__shared__ FOLD::type slots[COMBINE];");
    kg_code_line(code, "const int group = threadIdx.y, groups = blockDim.y;");
    kg_code_line(code, "const int64_t across = (int64_t)gridDim.x * blockDim.x;");
    kg_code_open(code, "for (int64_t begin = (int64_t)blockIdx.x * blockDim.x; begin < outputs; "
                       "begin += across)");
    kg_code_line(code, "const int64_t output = begin + threadIdx.x;");
    kg_code_begin(code);
    kg_text_add(code->text, "FOLD::type total = ");
    print_neutral(code->text, &plan->fold, "-1");
    kg_text_add(code->text, ";");
    kg_code_end(code);
    kg_code_open(code, "if (output < outputs)");
    kg_code_line(code, "#pragma unroll 8");
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

static void emit_combine(struct writer *writer)
{
    const struct kg_cuda_reduce_plan *plan = writer->plan;
    struct kg_code *code = &writer->code;
    kg_text_add(code->text, "\n");
    kg_cuda_open_function(code, plan->group, plan->entry, 2, kg_cuda_combine_threads(plan), 0);
    emit_constants(writer);
    kg_code_line(code, "enum { COMBINE = %d };", kg_cuda_combine_threads(plan));
    kg_code_line(code, "kg_start_next();");
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
    struct writer writer = {.plan = plan, .code = {text, 0}};
    struct kg_code *code = &writer.code;
    writer.values = (struct kg_values){.group = plan->group, .read = read_stream, .user = &writer};
    for (int axis = plan->run; axis < plan->last; axis++)
        writer.values.axes[axis] = "0";
    kg_cuda_reduce_streams_make(plan, &writer.streams);
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
