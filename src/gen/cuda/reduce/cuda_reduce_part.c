// What threads do with the parts of a reduction in the reduce family for CUDA: which elements a
// thread has, how they come from memory, and what becomes of them in its total. cuda_reduce_emit.c
// writes what stands around it.
//
// Along the row, a part is what the threads of a block take at once: UNROLL vectors each. Along the
// column, threads stand in groups, one for each row of a part, and have a total for each of their
// columns. A vector begins at `first` and has its elements `step` apart: 1 where every vector is
// whole (WHOLE), else so far that neighbours read neighbours. Whole vectors of a part are loaded at
// once, others in batches; the order of additions is the same. A part of which a thread has all
// vectors is full: no branch stands between its loads, which would keep the compiler from moving
// them.

#include "gen/cuda/reduce/cuda_reduce.h"

#include "gen/cuda/cuda_frame.h"

#include <stdio.h>

// Elements of a tensor that a thread has on their way where it takes them one by one, in a register
// each; and where the sizes allow whole vectors, so that only tensors that lie elsewhere are read
// so. They are most of what a compiler works on: of 16 vectors of 8, three quarters of its time.
enum { SINGLES = 64, RARE_SINGLES = 16 };

// ---- Which reads are vectors ----

// The statement that reads so, if it is in place: others read at other places. Else -1.
static int find_reader(const struct kg_cuda_reduce_plan *plan, const struct kg_access *access)
{
    for (int i = 0; i <= plan->k; i++) {
        const struct kg_nest *nest = kg_group_nest(plan->group, i);
        for (int a = 0; a < nest->access_count; a++)
            if (access == &nest->accesses[a])
                return plan->in_place[i] ? i : -1;
    }
    return -1;
}

// The stream of 16-bit floats whose elements themselves are compared where a thread finds places in
// columns: their zeros are made unique two at a time. -1: there is none.
static int compared_stream(const struct kg_cuda_reduce_writer *writer)
{
    const struct kg_cuda_reduce_plan *plan = writer->plan;
    const struct kg_expr *value = plan->nest->body;
    if (!plan->column || !plan->fold.is_argument || value->kind != KG_EXPR_READ || value->pad ||
        value->type != KG_TYPE_F32)
        return -1;
    const enum kg_dtype dtype = kg_emit_tensor_dtype(value->tensor);
    for (int a = 0; a < plan->nest->access_count; a++)
        if (plan->nest->accesses[a].read == value && (dtype == KG_F16 || dtype == KG_BF16))
            return kg_cuda_reduce_find(plan, &writer->streams, plan->k, &plan->nest->accesses[a]);
    return -1;
}

bool kg_cuda_reduce_read(void *user, struct kg_text *text, const struct kg_access *access)
{
    const struct kg_cuda_reduce_writer *writer = user;
    int reader = find_reader(writer->plan, access);
    int i = reader >= 0 ? kg_cuda_reduce_find(writer->plan, &writer->streams, reader, access) : -1;
    char base[48];
    if (i < 0)
        return false;
    if (i == compared_stream(writer))
        snprintf(base, sizeof base, "unique.at");
    else
        snprintf(base, sizeof base, "take%d[vec].at", i);
    kg_emit_load_at(text, access->tensor, base, "lane");
    return true;
}

// ---- Places ----

void kg_cuda_reduce_product(struct kg_cuda_reduce_writer *writer, const char *name, int first,
                            int last)
{
    struct kg_code *code = &writer->code;
    kg_code_begin(code);
    kg_text_format(code->text, "const int64_t %s = ", name);
    kg_axes_product(code->text, writer->plan->nest, first, last);
    kg_text_add(code->text, ";");
    kg_code_end(code);
}

void kg_cuda_reduce_axes(struct kg_cuda_reduce_writer *writer, int first, int last,
                         const char *from)
{
    kg_cuda_axes_between(&writer->code, writer->plan->nest, first, last, "rest", from);
}

// Declares the axes that vectors move along, of the element `from` + `lane` more.
static void emit_run_axes(struct kg_cuda_reduce_writer *writer, const char *from, const char *lane)
{
    const struct kg_cuda_reduce_plan *plan = writer->plan;
    kg_cuda_run_axes(&writer->code, plan->nest, plan->column ? plan->run : plan->outputs, plan->run,
                     plan->last, from, lane);
}

// Opens the loop over the elements of a vector, and declares their axes.
static void open_lanes(struct kg_cuda_reduce_writer *writer)
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

int kg_cuda_reduce_batch(const struct kg_cuda_reduce_plan *plan)
{
    int singles = kg_cuda_reduce_alignment(plan) ? RARE_SINGLES : SINGLES;
    int batch = singles / plan->vector;
    return batch < plan->unroll ? batch : plan->unroll;
}

static bool has_batches(const struct kg_cuda_reduce_writer *writer)
{
    return writer->batch < writer->plan->unroll;
}

// Opens the loop over the batches of a part: one of whole vectors.
static void open_batches(struct kg_cuda_reduce_writer *writer)
{
    struct kg_code *code = &writer->code;
    if (!has_batches(writer))
        return;
    kg_code_line(code, "enum { BATCH = WHOLE ? UNROLL : %d };", writer->batch);
    kg_code_line(code, "#pragma unroll 1");
    kg_code_open(code, "for (int batch = 0; batch < UNROLL; batch += BATCH)");
}

static void close_batches(struct kg_cuda_reduce_writer *writer)
{
    if (has_batches(writer))
        kg_code_close(&writer->code);
}

// Opens the loop over the vectors that a thread has of a part, or of a batch of it.
static void open_vectors(struct kg_cuda_reduce_writer *writer)
{
    const struct kg_cuda_reduce_plan *plan = writer->plan;
    struct kg_code *code = &writer->code;
    const bool batches = has_batches(writer);
    kg_code_line(code, "#pragma unroll");
    kg_code_open(code, batches ? "for (int vec = 0; vec < BATCH; vec++)"
                               : "for (int vec = 0; vec < UNROLL; vec++)");
    if (plan->column) {
        kg_code_line(code, "if (!full.value && vec * groups >= left)");
    } else {
        kg_code_line(code,
                     "const int64_t first = (part * UNROLL + %s) * (THREADS * VECTOR) + "
                     "thread * (WHOLE ? VECTOR : 1);",
                     batches ? "batch + vec" : "vec");
        kg_code_line(code, "if (!full.value && first >= count)");
    }
    kg_code_line(code, "    break;");
}

// Declares the axes of reduction of the thread's vector `vec` of a column.
static void emit_reduced_axes(struct kg_cuda_reduce_writer *writer)
{
    const struct kg_cuda_reduce_plan *plan = writer->plan;
    if (plan->column)
        kg_cuda_reduce_axes(writer, plan->outputs, plan->nest->axis_count - 1,
                            "top + vec * groups");
}

// ---- Loads ----

static void print_place(struct kg_cuda_reduce_writer *writer,
                        const struct kg_cuda_reduce_stream *stream)
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
    kg_values_access(text, &values, kg_group_nest(plan->group, stream->position), stream->access);
}

// Whether rows that a thread reads one after another are as far apart as any others.
static bool has_even_rows(const struct kg_cuda_reduce_plan *plan,
                          const struct kg_cuda_reduce_stream *stream)
{
    const int reduced = plan->nest->axis_count - 1,
              axis = kg_cuda_reduce_axis(plan, stream->position, reduced);
    if (!plan->column || plan->outputs != reduced)
        return false;
    for (int dim = 0; dim < stream->access->tensor->rank; dim++) {
        const struct kg_affine *map = &stream->access->map[dim];
        if (!map->is_affine && kg_expr_uses(map->subscript, axis, true))
            return false;
    }
    return true;
}

// Where the thread's first vector of a column is, and how far below it the next one: a place that
// is computed anew for each vector takes more instructions than what is done with its elements.
static void emit_row_steps(struct kg_cuda_reduce_writer *writer)
{
    struct kg_code *code = &writer->code;
    for (int i = 0; i < writer->streams.count; i++) {
        const struct kg_cuda_reduce_stream *stream = &writer->streams.items[i];
        if (!has_even_rows(writer->plan, stream))
            continue;
        kg_code_line(code, "const auto place%d = [&](int64_t i%d) {", i, writer->plan->outputs);
        kg_code_indent(code);
        emit_run_axes(writer, "first", "");
        kg_code_begin(code);
        kg_text_add(code->text, "return ");
        print_place(writer, stream);
        kg_text_add(code->text, ";");
        kg_code_end(code);
        kg_code_outdent(code);
        kg_code_line(code, "};");
        kg_code_line(code, "[[maybe_unused]] const auto from%d = place%d(top);", i, i);
        kg_code_line(code,
                     "[[maybe_unused]] const int64_t down%d = place%d(top + groups) - from%d;", i,
                     i, i);
    }
}

static void emit_fill(struct kg_cuda_reduce_writer *writer, int i)
{
    const struct kg_cuda_reduce_stream *stream = &writer->streams.items[i];
    const struct kg_nest *nest = kg_group_nest(writer->plan->group, stream->position);
    struct kg_code *code = &writer->code;
    const bool even = has_even_rows(writer->plan, stream);
    kg_code_open(code, "if constexpr (WHOLE)");
    if (!even) {
        emit_reduced_axes(writer);
        emit_run_axes(writer, "first", "");
    }
    kg_code_begin(code);
    kg_text_format(code->text, "take%d[vec] = kg_load_vec%s<VECTOR>(", i,
                   writer->plan->evict && kg_cuda_reads_once(nest, stream->access) ? "_evict_first"
                                                                                   : "");
    if (even)
        kg_text_format(code->text, "from%d + vec * down%d", i, i);
    else
        print_place(writer, stream);
    kg_text_add(code->text, ");");
    kg_code_end(code);
    kg_code_outdent(code);
    kg_code_line(code, "} else {");
    kg_code_indent(code);
    emit_reduced_axes(writer);
    open_lanes(writer);
    kg_code_begin(code);
    kg_text_format(code->text, "take%d[vec].at[lane] = *(", i);
    print_place(writer, stream);
    kg_text_add(code->text, ");");
    kg_code_end(code);
    kg_code_close(code);
    kg_code_close(code);
}

static void emit_loads(struct kg_cuda_reduce_writer *writer)
{
    struct kg_code *code = &writer->code;
    if (writer->streams.count == 0)
        return;
    for (int i = 0; i < writer->streams.count; i++)
        kg_code_line(code, "kg_vec<%s, VECTOR> take%d[%s];",
                     kg_emit_tensor_storage(writer->streams.items[i].access->tensor), i,
                     has_batches(writer) ? "BATCH" : "UNROLL");
    emit_row_steps(writer);
    open_vectors(writer);
    for (int i = 0; i < writer->streams.count; i++)
        emit_fill(writer, i);
    kg_code_close(code);
}

// ---- Totals ----

void kg_cuda_reduce_neutral(struct kg_text *text, const struct kg_fold *fold, const char *place)
{
    const char *after = fold->is_float_sum ? ", 0}" : fold->is_argument ? ", " : "";
    kg_text_add(text, *after ? "{" : "");
    kg_fold_neutral(text, fold, fold->lane);
    kg_text_add(text, after);
    if (fold->is_argument)
        kg_text_format(text, "%s}", place);
}

void kg_cuda_reduce_totals(struct kg_cuda_reduce_writer *writer)
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
    kg_cuda_reduce_neutral(code->text, &writer->plan->fold, "start < count ? start : -1");
    kg_text_add(code->text, ";");
    kg_code_end(code);
    if (column)
        kg_code_outdent(code);
    if (!column || !writer->plan->fold.is_argument)
        return;
    kg_code_line(code, "int spots[VECTOR];");
    kg_code_line(code, "#pragma unroll");
    kg_code_line(code, "for (int lane = 0; lane < VECTOR; lane++)");
    kg_code_line(code, "    spots[lane] = -1;");
}

void kg_cuda_reduce_places(struct kg_cuda_reduce_writer *writer)
{
    struct kg_code *code = &writer->code;
    if (!writer->plan->fold.is_argument)
        return;
    kg_code_line(code, "#pragma unroll");
    kg_code_line(code, "for (int lane = 0; lane < VECTOR; lane++)");
    kg_code_line(code, "    if (spots[lane] >= 0)");
    kg_code_line(code, "        total[lane].at = (int64_t)spots[lane] * groups + group;");
}

// A copy: compilers would load vectors that are changed in place one after the other.
static void emit_unique_zeros(struct kg_cuda_reduce_writer *writer)
{
    const int i = compared_stream(writer);
    if (i < 0)
        return;
    const struct kg_tensor *tensor = writer->streams.items[i].access->tensor;
    kg_code_line(&writer->code, "const auto unique = kg_unique_zeros_%s<WHOLE>(take%d[vec]);",
                 kg_dtypes[kg_emit_tensor_dtype(tensor)].name, i);
}

static void emit_step(struct kg_cuda_reduce_writer *writer)
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
        kg_text_format(code->text, "%s>(%s.value, %s))",
                       compared_stream(writer) >= 0 ? ", WHOLE" : "", total, value);
        kg_code_end(code);
        if (plan->column)
            kg_code_line(code, "    spots[lane] = (int)part * UNROLL + %svec;",
                         has_batches(writer) ? "batch + " : "");
        else
            kg_code_line(code, "    spot = lane;");
    } else {
        kg_code_begin(code);
        kg_text_format(code->text, "%s = ", total);
        kg_fold_combine(code->text, fold, fold->lane, total, value);
        kg_text_add(code->text, ";");
        kg_code_end(code);
    }
}

// What a thread does with the elements of a part, written once for full parts and others.
// Sums of a few floats are plain; what adding them to the total rounds away is kept beside it.
void kg_cuda_reduce_part(struct kg_cuda_reduce_writer *writer)
{
    const struct kg_cuda_reduce_plan *plan = writer->plan;
    struct kg_code *code = &writer->code;
    const char *type = kg_emit_type(plan->fold.lane);
    bool sums = plan->fold.is_float_sum, spots = plan->fold.is_argument && !plan->column;
    kg_code_open(code, "const auto reduce = [&](auto full)");
    if (sums && plan->column)
        kg_code_line(code, "%s partial[VECTOR] = {};", type);
    open_batches(writer);
    if (plan->column) {
        kg_code_line(code, "const int64_t top = (part * UNROLL%s) * groups + group;",
                     has_batches(writer) ? " + batch" : "");
        kg_code_line(code, "const int left = count - top < UNROLL * groups ? (int)(count - top) : "
                           "UNROLL * groups;");
    }
    emit_loads(writer);
    open_vectors(writer);
    emit_reduced_axes(writer);
    emit_unique_zeros(writer);
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
    close_batches(writer);
    if (sums && plan->column) {
        kg_code_line(code, "#pragma unroll");
        kg_code_line(code, "for (int lane = 0; lane < VECTOR; lane++)");
        kg_code_line(code, "    kg_two_sum(&total[lane].sum, &total[lane].lost, partial[lane]);");
    }
    kg_code_outdent(code);
    kg_code_line(code, "};");
    kg_code_line(code, plan->column
                           ? "if (WHOLE && (part + 1) * UNROLL * groups <= count)"
                           : "if (WHOLE && (part + 1) * (THREADS * VECTOR * UNROLL) <= count)");
    kg_code_line(code, "    reduce(kg_constant<true>());");
    kg_code_line(code, "else");
    kg_code_line(code, "    reduce(kg_constant<false>());");
}
