// The code of the rowwise family for CUDA: see cuda_rowwise.c for what it does and when.
//
// A vector of a thread begins at column `first` and has its elements `step` apart: 1 where every
// vector is whole (WHOLE), else as many as threads share the row, so that neighbours read
// neighbours. `part` counts the vectors of a thread.

#include "gen/cuda/rowwise/cuda_rowwise.h"

#include "gen/cuda/cuda_frame.h"
#include "gen/skeleton.h"

#include <stdio.h>

static bool is_private(const struct kg_cuda_rowwise_writer *writer, int position)
{
    return kg_group_is_private(writer->row->group,
                               kg_group_nest(writer->row->group, position)->output);
}

static bool is_kept(const struct kg_cuda_rowwise_writer *writer, int position)
{
    return writer->plan->keep && writer->row->kept[position];
}

// Is the part at hand of stream `i` in registers?
static bool in_registers(const struct kg_cuda_rowwise_writer *writer, int i)
{
    return writer->holding && !writer->stored && writer->streams.items[i].held;
}

static bool read_stream(void *user, struct kg_text *text, const struct kg_access *access)
{
    const struct kg_cuda_rowwise_writer *writer = user;
    int i = kg_cuda_streams_find(&writer->streams, writer->row, access);
    char base[48];
    if (i < 0)
        return false;
    snprintf(base, sizeof base, in_registers(writer, i) ? "take%d[part].at" : "from%d.at", i);
    kg_emit_load_at(text, access->tensor, base, "lane");
    return true;
}

// ---- Values ----

static void name_value(struct kg_cuda_rowwise_writer *writer, int i, const char *format)
{
    snprintf(writer->names[i], sizeof writer->names[i], format, i);
    writer->values.locals[i] = writer->names[i];
}

static void emit_value(struct kg_cuda_rowwise_writer *writer, int i, enum kg_type type)
{
    struct kg_code *code = &writer->code;
    kg_code_begin(code);
    kg_text_format(code->text, "const %s v%d = ", kg_fold_type(type), i);
    kg_values_print(code->text, &writer->values, i, type);
    kg_text_add(code->text, ";");
    kg_code_end(code);
}

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

// Declares the value of the row that `from` is.
static void emit_row_value(struct kg_cuda_rowwise_writer *writer, int i, enum kg_type type,
                           const char *from)
{
    kg_code_line(&writer->code, "const %s v%d = %s;", kg_emit_type(type), i, from);
    name_value(writer, i, "v%d");
    if (type != KG_TYPE_F32 || !is_divisor(writer, i))
        return;
    kg_code_line(&writer->code, "const kg_divisor over%d = kg_divisor_f32(v%d);", i, i);
    snprintf(writer->divisors[i], sizeof writer->divisors[i], "over%d", i);
    writer->values.divisors[i] = writer->divisors[i];
}

// By one thread of the row.
static void emit_row_store(struct kg_cuda_rowwise_writer *writer, int i, enum kg_type type)
{
    struct kg_code *code = &writer->code;
    char value[16];
    snprintf(value, sizeof value, "v%d", i);
    kg_code_line(code, "if (thread == 0)");
    kg_code_indent(code);
    kg_code_begin(code);
    kg_values_store(code->text, &writer->values, i, type, value);
    kg_code_end(code);
    kg_code_outdent(code);
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
        if (!is_private(writer, i))
            emit_row_store(writer, i, type);
    }
}

static bool is_fold(const struct kg_cuda_rowwise_writer *writer, int i, int pass)
{
    return writer->row->role[i] == KG_ROWWISE_REDUCE && writer->row->pass[i] == pass;
}

static void emit_accumulators(struct kg_cuda_rowwise_writer *writer, int pass)
{
    struct kg_code *code = &writer->code;
    for (int i = 0; i < writer->row->group->count; i++) {
        if (!is_fold(writer, i, pass))
            continue;
        struct kg_fold fold = kg_fold_of(kg_group_nest(writer->row->group, i));
        kg_code_begin(code);
        kg_text_format(code->text, "%s acc%d = ", kg_emit_type(fold.lane), i);
        kg_fold_neutral(code->text, &fold, fold.lane);
        kg_text_add(code->text, ";");
        kg_code_end(code);
        if (fold.is_argument) // the first of what may be equal to nothing
            kg_code_line(code, "PLACE at%d = start < columns ? start : -1;", i);
    }
}

static void emit_step(struct kg_cuda_rowwise_writer *writer, int i)
{
    struct kg_code *code = &writer->code;
    struct kg_fold fold = kg_fold_of(kg_group_nest(writer->row->group, i));
    char total[16], value[16];
    // Long sums go into the total part by part, and what that rounds away is kept beside it.
    const char *into = fold.is_float_sum && !writer->holding ? "more" : "acc";
    emit_value(writer, i, fold.lane);
    if (fold.is_argument) {
        kg_code_begin(code);
        kg_text_add(code->text, "if (kg_take_better<");
        kg_cuda_fold_values(code->text, &fold);
        kg_text_format(code->text, ">(acc%d, v%d))", i, i);
        kg_code_end(code);
        kg_code_line(code, "    spot%d = lane;", i);
        return;
    }
    snprintf(total, sizeof total, "%s%d", into, i);
    snprintf(value, sizeof value, "v%d", i);
    kg_code_begin(code);
    kg_text_format(code->text, "%s = ", total);
    kg_fold_combine(code->text, &fold, fold.lane, total, value);
    kg_text_add(code->text, ";");
    kg_code_end(code);
}

static void emit_column(struct kg_cuda_rowwise_writer *writer, int i)
{
    const struct kg_nest *nest = kg_group_nest(writer->row->group, i);
    struct kg_code *code = &writer->code;
    emit_value(writer, i, nest->body->type);
    name_value(writer, i, "v%d");
    if (writer->holding && is_kept(writer, i))
        kg_code_line(code, "row%d[part][lane] = v%d;", i, i);
    if (is_private(writer, i))
        return;
    char base[32], value[16];
    snprintf(base, sizeof base, "place%d.at", i);
    snprintf(value, sizeof value, "v%d", i);
    kg_code_begin(code);
    kg_emit_store_at(code->text, nest->output, base, "lane", nest->body->type, value);
    kg_code_end(code);
}

// What reads of columns that an earlier pass made give in this one.
static void name_columns(struct kg_cuda_rowwise_writer *writer, int pass)
{
    for (int i = 0; i < writer->row->group->count; i++) {
        if (writer->row->role[i] != KG_ROWWISE_COLUMN)
            continue;
        writer->values.locals[i] = NULL;
        if (writer->holding && is_kept(writer, i) && writer->row->pass[i] < pass)
            name_value(writer, i, "row%d[part][lane]");
    }
}

static bool is_column_output(const struct kg_cuda_rowwise_writer *writer, int i, int pass)
{
    return writer->row->role[i] == KG_ROWWISE_COLUMN && writer->row->pass[i] == pass &&
           !is_private(writer, i);
}

static void print_target(struct kg_cuda_rowwise_writer *writer, int i)
{
    kg_emit_name(writer->code.text, kg_group_nest(writer->row->group, i)->output->name);
    kg_text_add(writer->code.text, " + ");
    kg_values_offset(writer->code.text, &writer->values, i);
}

static void emit_column_stores(struct kg_cuda_rowwise_writer *writer, int pass)
{
    struct kg_code *code = &writer->code;
    for (int i = 0; i < writer->row->group->count; i++) {
        if (!is_column_output(writer, i, pass))
            continue;
        kg_code_open(code, "if constexpr (WHOLE)");
        kg_cuda_rowwise_axes(writer, "first");
        kg_code_begin(code);
        kg_text_add(code->text, "kg_store_vec(");
        print_target(writer, i);
        kg_text_format(code->text, ", place%d);", i);
        kg_code_end(code);
        kg_code_outdent(code);
        kg_code_line(code, "} else {");
        kg_code_indent(code);
        kg_cuda_rowwise_lanes(writer);
        kg_code_begin(code);
        kg_text_add(code->text, "*(");
        print_target(writer, i);
        kg_text_format(code->text, ") = place%d.at[lane];", i);
        kg_code_end(code);
        kg_code_close(code);
        kg_code_close(code);
    }
}

// Of every sum of floats of the pass: declares the variable `declare`, or (NULL) adds the part to
// the total.
static void emit_long_sums(struct kg_cuda_rowwise_writer *writer, int pass, const char *declare)
{
    for (int i = 0; i < writer->row->group->count; i++) {
        if (!is_fold(writer, i, pass))
            continue;
        struct kg_fold fold = kg_fold_of(kg_group_nest(writer->row->group, i));
        if (!fold.is_float_sum)
            continue;
        if (declare)
            kg_code_line(&writer->code, "%s %s%d = 0;", kg_emit_type(fold.lane), declare, i);
        else
            kg_code_line(&writer->code, "kg_two_sum(&acc%d, &lost%d, more%d);", i, i, i);
    }
}

static void emit_totals(struct kg_cuda_rowwise_writer *writer, int pass)
{
    for (int i = 0; i < writer->row->group->count; i++)
        if (is_fold(writer, i, pass) &&
            kg_fold_of(kg_group_nest(writer->row->group, i)).is_float_sum)
            kg_code_line(&writer->code, "acc%d = kg_two_value(acc%d, lost%d);", i, i, i);
}

// Of every place that the pass looks for: where in the vector it is.
static void emit_spots(struct kg_cuda_rowwise_writer *writer, int pass, bool declare)
{
    for (int i = 0; i < writer->row->group->count; i++) {
        if (!is_fold(writer, i, pass) ||
            !kg_fold_of(kg_group_nest(writer->row->group, i)).is_argument)
            continue;
        if (declare) {
            kg_code_line(&writer->code, "int spot%d = -1;", i);
            continue;
        }
        kg_code_line(&writer->code, "if (spot%d >= 0)", i);
        kg_code_line(&writer->code, "    at%d = (PLACE)first + spot%d * step;", i, i);
    }
}

// What a pass does with the vector at `first`.
static void emit_part(struct kg_cuda_rowwise_writer *writer, int pass)
{
    const struct kg_rowwise_plan *row = writer->row;
    struct kg_code *code = &writer->code;
    for (int i = 0; i < writer->streams.count; i++) {
        const struct kg_cuda_stream *stream = &writer->streams.items[i];
        if (!stream->uses[pass] || in_registers(writer, i))
            continue;
        char to[32];
        snprintf(to, sizeof to, "from%d", i);
        if (writer->batch > 1 && writer->holding && !writer->stored) {
            kg_code_line(code, "const kg_vec<%s, VECTOR> from%d = batch%d[part - begin];",
                         kg_emit_tensor_storage(stream->access->tensor), i, i);
            continue;
        }
        kg_code_line(code, "kg_vec<%s, VECTOR> from%d;",
                     kg_emit_tensor_storage(stream->access->tensor), i);
        if (writer->stored && stream->held)
            kg_code_line(code, "from%d = kg_load_vec<VECTOR>(slots%d[part * THREADS].at);", i, i);
        else
            kg_cuda_rowwise_fill(writer, i, to);
    }
    for (int i = 0; i < row->group->count; i++)
        if (is_column_output(writer, i, pass))
            kg_code_line(code, "kg_vec<%s, VECTOR> place%d;",
                         kg_emit_tensor_storage(kg_group_nest(writer->row->group, i)->output), i);
    if (!writer->holding)
        emit_long_sums(writer, pass, "more");
    emit_spots(writer, pass, true);
    name_columns(writer, pass);
    kg_cuda_rowwise_lanes(writer);
    for (int i = 0; i < row->group->count; i++) {
        if (row->pass[i] != pass || row->role[i] == KG_ROWWISE_SCALAR)
            continue;
        if (row->role[i] == KG_ROWWISE_COLUMN)
            emit_column(writer, i);
        else
            emit_step(writer, i);
    }
    kg_code_close(code);
    emit_spots(writer, pass, false);
    if (!writer->holding)
        emit_long_sums(writer, pass, NULL);
    emit_column_stores(writer, pass);
}

// ---- Folding over the threads of a row ----

static void emit_fold(struct kg_cuda_rowwise_writer *writer, int i)
{
    struct kg_code *code = &writer->code;
    struct kg_fold fold = kg_fold_of(kg_group_nest(writer->row->group, i));
    const bool cluster = writer->plan->cluster > 1;
    kg_code_begin(code);
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
    char value[64];
    if (fold.is_argument)
        snprintf(value, sizeof value, "at%d", i);
    else if (fold.reduce == KG_REDUCE_MEAN)
        snprintf(value, sizeof value, "acc%d / (%s)columns", i, type);
    else if (fold.result == fold.lane)
        snprintf(value, sizeof value, "acc%d", i);
    else
        snprintf(value, sizeof value, "(%s)acc%d", type, i);
    emit_row_value(writer, i, fold.result, value);
    if (!is_private(writer, i))
        emit_row_store(writer, i, fold.result);
}

// ---- The code ----

static void emit_kept(struct kg_cuda_rowwise_writer *writer)
{
    for (int i = 0; i < writer->row->group->count; i++)
        if (is_kept(writer, i))
            kg_code_line(&writer->code, "%s row%d[HOLD > 0 ? HOLD : 1][VECTOR];",
                         kg_fold_type(kg_group_nest(writer->row->group, i)->body->type), i);
}

static void emit_stored_part(struct kg_cuda_rowwise_writer *writer, int pass)
{
    if (pass == 0)
        kg_code_line(&writer->code, "kg_copies_wait();");
    writer->stored = true;
    kg_cuda_rowwise_stored(writer);
    emit_part(writer, pass);
    kg_code_close(&writer->code);
    kg_code_close(&writer->code);
    writer->stored = false;
}

static void emit_pass(struct kg_cuda_rowwise_writer *writer, int pass)
{
    struct kg_code *code = &writer->code;
    emit_accumulators(writer, pass);
    writer->batch = kg_cuda_rowwise_batch(writer->plan, &writer->streams, pass);
    if (writer->batch > 1)
        kg_cuda_rowwise_batches(writer, pass);
    else
        kg_cuda_rowwise_held(writer);
    writer->holding = true;
    emit_part(writer, pass);
    kg_code_close(code);
    if (writer->batch > 1)
        kg_code_close(code);
    if (writer->plan->shared > 0)
        emit_stored_part(writer, pass);
    writer->holding = false;
    kg_code_open(code, "if constexpr (!HELD)");
    emit_long_sums(writer, pass, "lost");
    kg_code_open(code, "for (int64_t part = HOLD; part * SPAN * VECTOR < columns; part++)");
    kg_cuda_rowwise_first(writer);
    kg_code_line(code, "if (first >= columns)");
    kg_code_line(code, "    break;");
    emit_part(writer, pass);
    kg_code_close(code);
    emit_totals(writer, pass);
    kg_code_close(code);
    name_columns(writer, pass);
    for (int i = 0; i < writer->row->group->count; i++)
        if (is_fold(writer, i, pass))
            emit_fold(writer, i);
    for (int i = 0; i < writer->row->group->count; i++)
        if (is_fold(writer, i, pass))
            emit_result(writer, i);
}

static void emit_rows(struct kg_cuda_rowwise_writer *writer)
{
    const struct kg_rowwise_plan *row = writer->row;
    struct kg_code *code = &writer->code;
    if (writer->plan->cluster > 1)
        kg_code_open(code, "for (int64_t row = blockIdx.x / CLUSTER; row < rows; "
                           "row += gridDim.x / CLUSTER)");
    else
        kg_code_open(code, "for (int64_t begin = (int64_t)blockIdx.x * blockDim.y; begin < rows; "
                           "begin += (int64_t)gridDim.x * blockDim.y)");
    if (writer->plan->blocks > 1) // all lanes of a warp take part: some do the last row again
        kg_code_line(code, "const int64_t row = kg_min_i64(begin + threadIdx.y, rows - 1);");
    else if (writer->plan->cluster == 1)
        kg_code_line(code, "const int64_t row = begin;");
    kg_axes_split(code, row->shape, 0, row->rows - 1, "row");
    kg_cuda_rowwise_loads(writer);
    // Before others send here, and while the first loads are on their way.
    if (writer->plan->cluster > 1) {
        kg_code_line(code, "if (row < gridDim.x / CLUSTER)");
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
    emit_places(writer);
    kg_cuda_rowwise_slots(writer);
    if (plan->cluster == 1)
        return;
    kg_code_line(code, "__shared__ uint64_t meetings[2];");
    kg_code_open(code, "if (threadIdx.x == 0)");
    kg_code_line(code, "kg_arrival_make(&meetings[0]);");
    kg_code_line(code, "kg_arrival_make(&meetings[1]);");
    kg_code_close(code);
    kg_code_line(code, "kg_cluster_arrive_relaxed();");
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
        kg_cuda_waiting_function(code, row->group, row->entry, i, plan->threads * plan->blocks,
                                 plan->registers, row->entry, cases[i]);
}
