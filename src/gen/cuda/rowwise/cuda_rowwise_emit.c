// The code of the rowwise family for CUDA: see cuda_rowwise.c for what it does and when.
//
// A vector of a thread begins at column `first` and has its elements `step` apart: 1 where every
// vector is whole (WHOLE), else as many as threads share the row, so that neighbours read
// neighbours. `part` counts the vectors of a thread. Where a cluster works on several rows at once,
// what belongs to a row has a place for each of them, which `nth` counts.

#include "gen/cuda/rowwise/cuda_rowwise.h"

#include "gen/cuda/cuda_frame.h"
#include "gen/skeleton.h"

#include <stdio.h>

static bool read_stream(void *user, struct kg_text *text, const struct kg_access *access)
{
    const struct kg_cuda_rowwise_writer *writer = user;
    int i = kg_cuda_streams_find(&writer->streams, writer->row, access);
    char base[48];
    if (i < 0)
        return false;
    if (kg_cuda_rowwise_in_registers(writer, i))
        snprintf(base, sizeof base, "take%d%s[part].at", i, kg_cuda_rowwise_of_row(writer));
    else
        snprintf(base, sizeof base, "from%d.at", i);
    kg_emit_load_at(text, access->tensor, base, "lane");
    return true;
}

// ---- Values ----

// Are columns divided by this value of the row?
static bool is_divisor(const struct kg_cuda_rowwise_writer *writer, int i)
{
    for (int j = i + 1; j < writer->row->group->count; j++)
        if (writer->row->role[j] != KG_ROWWISE_SCALAR &&
            kg_expr_divides(kg_group_nest(writer->row->group, j)->body,
                            kg_group_nest(writer->row->group, i)->output))
            return true;
    return false;
}

// By one thread of the row.
static void emit_row_store(struct kg_cuda_rowwise_writer *writer, int i, enum kg_type type)
{
    struct kg_code *code = &writer->code;
    char value[24];
    snprintf(value, sizeof value, "v%d%s", i, kg_cuda_rowwise_of_row(writer));
    kg_code_line(code, "if (thread == 0)");
    kg_code_indent(code);
    kg_code_begin(code);
    kg_values_store(code->text, &writer->values, i, type, value);
    kg_code_end(code);
    kg_code_outdent(code);
}

// Declares the value of the row that `from` is, and stores it if others read it.
static void emit_row_value(struct kg_cuda_rowwise_writer *writer, int i, enum kg_type type,
                           const char *from)
{
    struct kg_code *code = &writer->code;
    const bool several = kg_cuda_rowwise_several(writer->plan);
    const bool divides = type == KG_TYPE_F32 && is_divisor(writer, i);
    if (several)
        kg_code_line(code, "%s v%d[ROWS];", kg_emit_type(type), i);
    if (several && divides)
        kg_code_line(code, "kg_divisor over%d[ROWS];", i);
    kg_cuda_rowwise_open_rows(writer, true);
    if (several)
        kg_code_line(code, "v%d[nth] = %s;", i, from);
    else
        kg_code_line(code, "const %s v%d = %s;", kg_emit_type(type), i, from);
    if (several && divides)
        kg_code_line(code, "over%d[nth] = kg_divisor_f32(v%d[nth]);", i, i);
    else if (divides)
        kg_code_line(code, "const kg_divisor over%d = kg_divisor_f32(v%d);", i, i);
    kg_cuda_rowwise_name(writer, i, several ? "v%d[nth]" : "v%d");
    if (divides) {
        snprintf(writer->divisors[i], sizeof writer->divisors[i], "over%d%s", i,
                 kg_cuda_rowwise_of_row(writer));
        writer->values.divisors[i] = writer->divisors[i];
    }
    if (!kg_cuda_rowwise_is_private(writer, i))
        emit_row_store(writer, i, type);
    kg_cuda_rowwise_close_rows(writer);
}

static void emit_scalars(struct kg_cuda_rowwise_writer *writer, int pass)
{
    const struct kg_rowwise_plan *row = writer->row;
    for (int i = 0; i < row->group->count; i++) {
        if (row->role[i] != KG_ROWWISE_SCALAR || row->pass[i] != pass)
            continue;
        enum kg_type type = kg_group_nest(writer->row->group, i)->body->type;
        struct kg_text value = {0};
        kg_values_print(&value, &writer->values, i, type);
        emit_row_value(writer, i, type, kg_text_string(&value));
        writer->code.text->failed |= value.failed;
        kg_text_free(&value);
    }
}

static void emit_accumulators(struct kg_cuda_rowwise_writer *writer, int pass)
{
    struct kg_code *code = &writer->code;
    for (int i = 0; i < writer->row->group->count; i++) {
        if (!kg_cuda_rowwise_is_fold(writer, i, pass))
            continue;
        struct kg_fold fold = kg_fold_of(kg_group_nest(writer->row->group, i));
        const char *declared = kg_emit_type(fold.lane), *space = " ";
        if (kg_cuda_rowwise_several(writer->plan)) {
            kg_code_line(code, "%s acc%d[ROWS];", declared, i);
            declared = space = "";
        }
        kg_cuda_rowwise_open_rows(writer, false);
        kg_code_begin(code);
        kg_text_format(code->text, "%s%sacc%d%s = ", declared, space, i,
                       kg_cuda_rowwise_of_row(writer));
        kg_fold_neutral(code->text, &fold, fold.lane);
        kg_text_add(code->text, ";");
        kg_code_end(code);
        kg_cuda_rowwise_close_rows(writer);
        if (fold.is_argument) // the first of what may be equal to nothing
            kg_code_line(code, "PLACE at%d = start < columns ? start : -1;", i);
    }
}

// ---- Folding over the threads of a row ----

static void emit_fold(struct kg_cuda_rowwise_writer *writer, int i)
{
    struct kg_code *code = &writer->code;
    struct kg_fold fold = kg_fold_of(kg_group_nest(writer->row->group, i));
    const bool cluster = writer->plan->cluster > 1;
    kg_code_begin(code);
    if (kg_cuda_rowwise_several(writer->plan)) {
        kg_text_add(code->text, "kg_cluster_fold_all<");
        kg_cuda_fold(code->text, &fold, "PLACE");
        kg_text_format(code->text, ", THREADS, CLUSTER>(acc%d, meetings, turn);", i);
        kg_code_end(code);
        return;
    }
    kg_text_format(code->text, "%s%d = %s<", fold.is_argument ? "at" : "acc", i,
                   cluster ? "kg_cluster_fold" : "kg_row_fold");
    kg_cuda_fold(code->text, &fold, "PLACE");
    kg_text_add(code->text, cluster ? ", THREADS, CLUSTER>(" : ", THREADS>(");
    kg_text_format(code->text, fold.is_argument ? "{acc%d, at%d}" : "acc%d", i, i);
    kg_text_format(code->text, ", %sturn)%s;", cluster ? "meetings, " : "",
                   fold.is_argument ? ".at" : "");
    kg_code_end(code);
}

static void emit_result(struct kg_cuda_rowwise_writer *writer, int i)
{
    struct kg_fold fold = kg_fold_of(kg_group_nest(writer->row->group, i));
    const char *type = kg_emit_type(fold.result);
    const char *place = kg_cuda_rowwise_of_row(writer);
    char value[64];
    if (fold.is_argument)
        snprintf(value, sizeof value, "at%d", i);
    else if (fold.reduce == KG_REDUCE_MEAN && fold.result == KG_TYPE_F32)
        snprintf(value, sizeof value, "kg_mean_f32(acc%d%s, many)", i, place);
    else if (fold.reduce == KG_REDUCE_MEAN)
        snprintf(value, sizeof value, "acc%d%s / (%s)(PLACE)columns", i, place, type);
    else if (fold.result == fold.lane)
        snprintf(value, sizeof value, "acc%d%s", i, place);
    else
        snprintf(value, sizeof value, "(%s)acc%d%s", type, i, place);
    emit_row_value(writer, i, fold.result, value);
}

// ---- The code ----

static void emit_kept(struct kg_cuda_rowwise_writer *writer)
{
    for (int i = 0; i < writer->row->group->count; i++)
        if (kg_cuda_rowwise_is_kept(writer, i))
            kg_code_line(&writer->code, "%s row%d[HOLD > 0 ? HOLD : 1][VECTOR];",
                         kg_fold_type(kg_group_nest(writer->row->group, i)->body->type), i);
}

static void emit_stored_part(struct kg_cuda_rowwise_writer *writer, int pass)
{
    if (pass == 0)
        kg_code_line(&writer->code, "kg_copies_wait();");
    writer->stored = true;
    kg_cuda_rowwise_stored(writer);
    kg_cuda_rowwise_part(writer, pass);
    kg_code_close(&writer->code);
    kg_code_close(&writer->code);
    writer->stored = false;
}

static void emit_pass(struct kg_cuda_rowwise_writer *writer, int pass)
{
    struct kg_code *code = &writer->code;
    emit_accumulators(writer, pass);
    kg_cuda_rowwise_staged(writer, pass);
    writer->batch = kg_cuda_rowwise_batch(writer->plan, &writer->streams, pass);
    if (writer->batch > 1)
        kg_cuda_rowwise_batches(writer, pass);
    else
        kg_cuda_rowwise_held(writer);
    writer->holding = true;
    kg_cuda_rowwise_part(writer, pass);
    kg_code_close(code);
    if (writer->batch > 1)
        kg_code_close(code);
    if (writer->plan->shared > 0)
        emit_stored_part(writer, pass);
    writer->holding = false;
    kg_code_open(code, "if constexpr (!HELD)");
    kg_cuda_rowwise_long_sums(writer, pass, "lost");
    kg_code_open(code, "for (int64_t part = HOLD; part * SPAN * VECTOR < columns; part++)");
    kg_cuda_rowwise_first(writer);
    kg_code_line(code, "if (first >= columns)");
    kg_code_line(code, "    break;");
    kg_cuda_rowwise_part(writer, pass);
    kg_code_close(code);
    kg_cuda_rowwise_totals(writer, pass);
    kg_code_close(code);
    kg_cuda_rowwise_name_columns(writer, pass);
    for (int i = 0; i < writer->row->group->count; i++)
        if (kg_cuda_rowwise_is_fold(writer, i, pass))
            emit_fold(writer, i);
    for (int i = 0; i < writer->row->group->count; i++)
        if (kg_cuda_rowwise_is_fold(writer, i, pass))
            emit_result(writer, i);
}

static bool has_means(const struct kg_cuda_rowwise_writer *writer)
{
    for (int i = 0; i < writer->row->group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(writer->row->group, i);
        if (writer->row->role[i] == KG_ROWWISE_REDUCE && nest->reduce == KG_REDUCE_MEAN &&
            kg_fold_of(nest).result == KG_TYPE_F32)
            return true;
    }
    return false;
}

static void emit_rows(struct kg_cuda_rowwise_writer *writer)
{
    const struct kg_rowwise_plan *row = writer->row;
    struct kg_code *code = &writer->code;
    const bool several = kg_cuda_rowwise_several(writer->plan);
    if (several)
        kg_code_open(code, "for (int64_t begin = (int64_t)(blockIdx.x / CLUSTER) * ROWS; "
                           "HELD || begin < rows; begin += (int64_t)(gridDim.x / CLUSTER) * ROWS)");
    else if (writer->plan->cluster > 1)
        kg_code_open(code, "for (int64_t row = blockIdx.x / CLUSTER; HELD || row < rows; "
                           "row += gridDim.x / CLUSTER)");
    else if (writer->plan->blocks > 1)
        kg_code_open(code,
                     "for (int64_t begin = (int64_t)kg_block_here() * %d; HELD || begin < rows; "
                     "begin += (int64_t)gridDim.x * %d)",
                     writer->plan->blocks, writer->plan->blocks);
    else
        kg_code_open(code,
                     "for (int64_t row = kg_block_here(); HELD || row < rows; row += gridDim.x)");
    if (writer->plan->blocks > 1) // all lanes of a warp take part: some do the last row again
        kg_code_line(code, "const int64_t row = kg_min_i64(begin + threadIdx.y, rows - 1);");
    if (!several)
        kg_cuda_axes_between(code, row->shape, 0, row->rows - 1, "rest", "row");
    kg_cuda_rowwise_loads(writer);
    // While the first loads are on their way: before them it would show where blocks are many.
    kg_code_line(code, "kg_start_next_of_few();");
    if (has_means(writer))
        kg_code_line(code,
                     "const kg_denominator many = kg_denominator_f32((float)(PLACE)columns);");
    // Before others send here, and while the first loads are on their way.
    if (writer->plan->cluster > 1) {
        kg_code_line(code, several ? "if (begin < (int64_t)(gridDim.x / CLUSTER) * ROWS)"
                                   : "if (row < gridDim.x / CLUSTER)");
        kg_code_line(code, "    kg_cluster_await();");
    }
    emit_kept(writer);
    for (int pass = 0; pass < row->passes; pass++) {
        emit_scalars(writer, pass);
        emit_pass(writer, pass);
    }
    emit_scalars(writer, row->passes);
    kg_code_line(code, "if (HELD) // such grids have a block for every row");
    kg_code_line(code, "    break;");
    kg_code_close(code);
}

// A thread's first place in the row.
static void emit_places(struct kg_cuda_rowwise_writer *writer)
{
    const struct kg_rowwise_plan *row = writer->row;
    bool any = false;
    for (int i = 0; i < row->group->count; i++)
        any |= row->role[i] == KG_ROWWISE_REDUCE &&
               kg_fold_of(kg_group_nest(writer->row->group, i)).is_argument;
    if (!any)
        return;
    kg_code_line(&writer->code, "const int start = WHOLE ? thread * VECTOR : thread;");
}

// What the threads of a block are, and share.
static void emit_opening(struct kg_cuda_rowwise_writer *writer)
{
    const struct kg_cuda_rowwise_plan *plan = writer->plan;
    struct kg_code *code = &writer->code;
    kg_code_line(code, "enum { THREADS = %d, CLUSTER = %d, SPAN = THREADS * CLUSTER };",
                 plan->threads, plan->cluster);
    // What does not lie in whole vectors is read element by element, and again in each pass: such
    // code unrolled takes the compiler as long as all the rest.
    if (plan->vector > 1)
        kg_code_line(code, "enum { VECTOR = WHOLE ? %d : 1, HOLD = WHOLE ? %d : 0, SHARED = %d };",
                     plan->vector, plan->hold, plan->shared);
    else
        kg_code_line(code, "enum { VECTOR = 1, HOLD = %d, SHARED = %d };", plan->hold,
                     plan->shared);
    if (kg_cuda_rowwise_several(plan))
        kg_code_line(code, "enum { ROWS = HELD ? %d : 1 };", plan->staged);
    kg_cuda_rowwise_extent(code, writer, "rows", 0, plan->row.rows - 1);
    kg_cuda_rowwise_extent(code, writer, "columns", plan->row.rows, plan->row.last);
    if (kg_cuda_rowwise_has_outer(writer))
        kg_cuda_rowwise_extent(code, writer, "length", plan->row.run, plan->row.last);
    kg_code_line(code, "const int step = WHOLE ? 1 : SPAN;");
    kg_code_line(code, plan->cluster > 1
                           ? "const int thread = threadIdx.x + THREADS * (int)kg_cluster_rank();"
                           : "const int thread = threadIdx.x;");
    kg_code_line(code, "typedef typename kg_place<HELD>::type PLACE;");
    kg_code_line(code, "const PLACE left = (PLACE)columns - (WHOLE ? thread * VECTOR : thread);");
    kg_code_line(code, "const PLACE all = (left + SPAN * VECTOR - 1) / (SPAN * VECTOR);");
    kg_code_line(code, "const int parts = HELD || all < HOLD ? (int)all : HOLD;");
    kg_code_line(code, "int turn = 0;");
    if (plan->evict != KG_CUDA_EVICT_NORMAL)
        kg_code_line(code, "const uint64_t policy = kg_policy_here(kg_evict_%s());",
                     plan->evict == KG_CUDA_EVICT_FIRST ? "first" : "last");
    emit_places(writer);
    kg_cuda_rowwise_slots(writer);
    if (plan->cluster == 1)
        return;
    kg_code_line(code, "__shared__ uint64_t meetings[2];");
    if (plan->staged > 0)
        kg_code_line(code, "__shared__ uint64_t copied;");
    kg_code_open(code, "if (threadIdx.x == 0)");
    kg_code_line(code, "kg_arrival_make(&meetings[0]);");
    kg_code_line(code, "kg_arrival_make(&meetings[1]);");
    if (plan->staged > 0)
        kg_code_line(code, "kg_arrival_make(&copied);");
    kg_code_close(code);
    kg_code_line(code, "kg_cluster_arrive_relaxed();");
    kg_cuda_rowwise_stage(writer);
}

void kg_cuda_rowwise_emit(struct kg_text *text, const struct kg_cuda_rowwise_plan *plan)
{
    static const char *const skeletons[] = {"cuda/vectors.cuh", "cuda/index.cuh",
                                            "cuda/predicated.cuh", "cuda/lanes.cuh",
                                            "cuda/arrivals.cuh"};
    const struct kg_rowwise_plan *row = &plan->row;
    struct kg_cuda_rowwise_writer writer = {.plan = plan, .row = row, .code = {text, 0}};
    struct kg_code *code = &writer.code;
    writer.values = (struct kg_values){.group = row->group,
                                       .narrow = kg_group_narrow(row->group),
                                       .read = read_stream,
                                       .user = &writer};
    for (int axis = row->run; axis < row->last; axis++)
        writer.values.axes[axis] = "0";
    kg_cuda_streams_make(row, &writer.streams);
    for (int i = 0; i < (int)(sizeof skeletons / sizeof *skeletons); i++) {
        kg_text_add(text, kg_skeleton_find(skeletons[i]));
        kg_text_add(text, "\n");
    }
    kg_cuda_open_body(code, row->group, row->entry, "bool WHOLE, bool HELD");
    emit_opening(&writer);
    emit_rows(&writer);
    kg_code_close(code);
    static const char *const cases[] = {"true, true", "true, false", "false, false"};
    for (int i = 0; i < 3; i++)
        kg_cuda_starting_function(code, row->group, row->entry, i, plan->threads * plan->blocks,
                                  plan->registers, row->entry, cases[i]);
}
