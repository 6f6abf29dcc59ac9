// Where a thread's vectors of a row lie and how they come from memory: see cuda_rowwise_emit.c for
// what is done with them.

#include "gen/cuda/rowwise/cuda_rowwise.h"

#include "gen/cuda/cuda_frame.h"

#include <stdio.h>

bool kg_cuda_rowwise_has_outer(const struct kg_cuda_rowwise_writer *writer)
{
    return writer->row->run > writer->row->rows;
}

void kg_cuda_rowwise_extent(struct kg_code *code, const struct kg_cuda_rowwise_writer *writer,
                            const char *name, int first, int last)
{
    kg_code_begin(code);
    kg_text_format(code->text, "const int64_t %s = ", name);
    kg_axes_product(code->text, writer->row->shape, first, last);
    kg_text_add(code->text, ";");
    kg_code_end(code);
}

void kg_cuda_rowwise_axes(struct kg_cuda_rowwise_writer *writer, const char *from)
{
    const struct kg_rowwise_plan *row = writer->row;
    kg_cuda_run_axes(&writer->code, row->shape, row->rows, row->run, row->last, from, "");
}

void kg_cuda_rowwise_lanes(struct kg_cuda_rowwise_writer *writer)
{
    const struct kg_rowwise_plan *row = writer->row;
    struct kg_code *code = &writer->code;
    kg_code_line(code, "#pragma unroll");
    kg_code_open(code, "for (int lane = 0; lane < VECTOR; lane++)");
    kg_code_line(code, "const int64_t column = first + lane * step;");
    kg_code_line(code, "if (!WHOLE && column >= columns)");
    kg_code_line(code, "    break;");
    if (kg_cuda_rowwise_has_outer(writer))
        kg_cuda_run_axes(code, row->shape, row->rows, row->run, row->last, "WHOLE ? first : column",
                         " + (WHOLE ? lane : 0)");
    else
        kg_code_line(code, "const int64_t i%d = column;", row->last);
}

bool kg_cuda_rowwise_several(const struct kg_cuda_rowwise_plan *plan)
{
    return plan->staged > 1;
}

void kg_cuda_rowwise_open_rows(struct kg_cuda_rowwise_writer *writer, bool with_axes)
{
    const struct kg_rowwise_plan *row = writer->row;
    struct kg_code *code = &writer->code;
    if (!kg_cuda_rowwise_several(writer->plan))
        return;
    kg_code_line(code, "#pragma unroll");
    kg_code_open(code, "for (int nth = 0; nth < ROWS; nth++)");
    if (!with_axes)
        return;
    kg_code_line(code, "const int64_t row = kg_min_i64(begin + nth, rows - 1);");
    kg_cuda_axes_between(code, row->shape, 0, row->rows - 1, "rest", "row");
}

void kg_cuda_rowwise_close_rows(struct kg_cuda_rowwise_writer *writer)
{
    if (kg_cuda_rowwise_several(writer->plan))
        kg_code_close(&writer->code);
}

static void print_place(struct kg_cuda_rowwise_writer *writer, const struct kg_nest *nest,
                        const struct kg_access *access)
{
    struct kg_text *text = writer->code.text;
    kg_emit_name(text, access->tensor->name);
    kg_text_add(text, " + ");
    kg_values_access(text, &writer->values, nest, access);
}

void kg_cuda_rowwise_fill(struct kg_cuda_rowwise_writer *writer, int i, const char *to)
{
    const struct kg_cuda_stream *stream = &writer->streams.items[i];
    struct kg_code *code = &writer->code;
    kg_code_open(code, "if constexpr (WHOLE)");
    kg_cuda_rowwise_axes(writer, "first");
    kg_code_begin(code);
    bool evicts =
        writer->plan->evict && stream->held && kg_cuda_reads_once(stream->nest, stream->access);
    kg_text_format(code->text, "%s = kg_load_vec%s<VECTOR>(", to, evicts ? "_policy" : "");
    print_place(writer, stream->nest, stream->access);
    kg_text_add(code->text, evicts ? ", policy);" : ");");
    kg_code_end(code);
    kg_code_outdent(code);
    kg_code_line(code, "} else {");
    kg_code_indent(code);
    kg_cuda_rowwise_lanes(writer);
    kg_code_begin(code);
    kg_text_format(code->text, "%s.at[lane] = *(", to);
    print_place(writer, stream->nest, stream->access);
    kg_text_add(code->text, ");");
    kg_code_end(code);
    kg_code_close(code);
    kg_code_close(code);
}

void kg_cuda_rowwise_first(struct kg_cuda_rowwise_writer *writer)
{
    kg_code_line(&writer->code, "const int64_t first = (int64_t)part * SPAN * VECTOR + "
                                "(WHOLE ? thread * VECTOR : thread);");
}

void kg_cuda_rowwise_held(struct kg_cuda_rowwise_writer *writer)
{
    struct kg_code *code = &writer->code;
    kg_code_line(code, "#pragma unroll");
    kg_code_open(code, "for (int part = 0; part < HOLD; part++)");
    kg_code_line(code, "if (part >= parts)");
    kg_code_line(code, "    break;");
    kg_cuda_rowwise_first(writer);
}

static void open_batch(struct kg_cuda_rowwise_writer *writer)
{
    struct kg_code *code = &writer->code;
    kg_code_line(code, "#pragma unroll");
    kg_code_open(code, "for (int part = begin; part < begin + %d; part++)", writer->batch);
    kg_code_line(code, "if (part >= parts)");
    kg_code_line(code, "    break;");
    kg_cuda_rowwise_first(writer);
}

void kg_cuda_rowwise_batches(struct kg_cuda_rowwise_writer *writer, int pass)
{
    struct kg_code *code = &writer->code;
    const struct kg_cuda_streams *streams = &writer->streams;
    kg_code_line(code, "#pragma unroll");
    kg_code_open(code, "for (int begin = 0; begin < HOLD; begin += %d)", writer->batch);
    for (int i = 0; i < streams->count; i++)
        if (streams->items[i].uses[pass] && !streams->items[i].held)
            kg_code_line(code, "kg_vec<%s, VECTOR> batch%d[%d];",
                         kg_emit_tensor_storage(streams->items[i].access->tensor), i,
                         writer->batch);
    open_batch(writer);
    for (int i = 0; i < streams->count; i++) {
        char to[32];
        snprintf(to, sizeof to, "batch%d[part - begin]", i);
        if (streams->items[i].uses[pass] && !streams->items[i].held)
            kg_cuda_rowwise_fill(writer, i, to);
    }
    kg_code_close(code);
    open_batch(writer);
}

void kg_cuda_rowwise_stored(struct kg_cuda_rowwise_writer *writer)
{
    struct kg_code *code = &writer->code;
    kg_code_open(code, "if constexpr (HELD)");
    kg_code_line(code, "#pragma unroll 4");
    kg_code_open(code, "for (int part = HOLD; part < parts; part++)");
    kg_cuda_rowwise_first(writer);
}

// Of each stream that is held the vectors of a part side by side, so that all threads reach theirs
// at once.
void kg_cuda_rowwise_slots(struct kg_cuda_rowwise_writer *writer)
{
    const struct kg_cuda_rowwise_plan *plan = writer->plan;
    struct kg_code *code = &writer->code;
    int64_t bytes = 0;
    if (plan->shared == 0)
        return;
    kg_code_line(code, "extern __shared__ uint4 shared[];");
    for (int i = 0; i < writer->streams.count; i++) {
        const struct kg_cuda_stream *stream = &writer->streams.items[i];
        if (!stream->held)
            continue;
        const char *storage = kg_emit_tensor_storage(stream->access->tensor);
        kg_code_line(code,
                     "kg_vec<%s, VECTOR> *const slots%d = "
                     "(kg_vec<%s, VECTOR> *)((char *)shared + %d) + threadIdx.x - HOLD * THREADS;",
                     storage, i, storage, (int)bytes);
        bytes += plan->shared * plan->threads * kg_cuda_stream_bytes(plan, stream);
    }
}

// Has the copies made that go to shared memory; nobody waits for them yet.
static void emit_stored_loads(struct kg_cuda_rowwise_writer *writer)
{
    struct kg_code *code = &writer->code;
    kg_cuda_rowwise_stored(writer);
    kg_cuda_rowwise_axes(writer, "first");
    for (int i = 0; i < writer->streams.count; i++) {
        const struct kg_cuda_stream *stream = &writer->streams.items[i];
        if (!stream->held)
            continue;
        kg_code_begin(code);
        kg_text_format(code->text, "kg_copy_vec(&slots%d[part * THREADS], ", i);
        print_place(writer, stream->nest, stream->access);
        kg_text_add(code->text, ");");
        kg_code_end(code);
    }
    kg_code_close(code);
    kg_code_close(code);
}

// ---- What all rows share, in shared memory ----

// A block's columns of a part lie side by side: one copy brings them for all its threads.
void kg_cuda_rowwise_stage(struct kg_cuda_rowwise_writer *writer)
{
    const struct kg_cuda_rowwise_plan *plan = writer->plan;
    struct kg_code *code = &writer->code;
    int64_t at = 0, bytes = 0;
    if (plan->staged == 0)
        return;
    kg_code_line(code, "extern __shared__ uint4 shared[];");
    for (int i = 0; i < writer->streams.count; i++) {
        const struct kg_cuda_stream *stream = &writer->streams.items[i];
        if (!kg_cuda_stream_is_staged(plan, stream))
            continue;
        const char *storage = kg_emit_tensor_storage(stream->access->tensor);
        kg_code_line(code,
                     "kg_vec<%s, VECTOR> *const copy%d = "
                     "(kg_vec<%s, VECTOR> *)((char *)shared + %d);",
                     storage, i, storage, (int)at);
        bytes += kg_cuda_stream_bytes(plan, stream) / plan->vector;
        at += (int64_t)plan->hold * plan->threads * kg_cuda_stream_bytes(plan, stream);
    }
    kg_code_open(code, "if (HELD && threadIdx.x == 0)");
    kg_code_line(code, "const int64_t start = (int64_t)kg_cluster_rank() * THREADS * VECTOR;");
    kg_code_line(code, "int64_t bytes = 0;");
    kg_code_line(code, "#pragma unroll 1");
    kg_code_line(code, "for (int64_t first = start; first < columns; first += SPAN * VECTOR)");
    kg_code_line(code, "    bytes += kg_min_i64(columns - first, THREADS * VECTOR) * %d;",
                 (int)bytes);
    kg_code_line(code, "kg_arrival_expect(&copied, (uint32_t)bytes);");
    kg_code_line(code, "#pragma unroll 1");
    kg_code_open(code, "for (int part = 0; part < HOLD; part++)");
    kg_code_line(code, "const int64_t first = start + (int64_t)part * SPAN * VECTOR;");
    kg_code_line(code, "if (first >= columns)");
    kg_code_line(code, "    break;");
    kg_code_line(code, "const int64_t count = kg_min_i64(columns - first, THREADS * VECTOR);");
    kg_cuda_rowwise_axes(writer, "first");
    for (int i = 0; i < writer->streams.count; i++) {
        const struct kg_cuda_stream *stream = &writer->streams.items[i];
        if (!kg_cuda_stream_is_staged(plan, stream))
            continue;
        kg_code_begin(code);
        kg_text_format(code->text, "kg_copy_bulk(copy%d + part * THREADS, ", i);
        print_place(writer, stream->nest, stream->access);
        kg_text_format(code->text, ", (uint32_t)count * %d, &copied);",
                       kg_cuda_stream_bytes(plan, stream) / plan->vector);
        kg_code_end(code);
    }
    kg_code_close(code);
    kg_code_close(code);
}

// Before the first pass that reads it.
void kg_cuda_rowwise_staged(struct kg_cuda_rowwise_writer *writer, int pass)
{
    int first = -1;
    for (int i = 0; i < writer->streams.count; i++)
        for (int p = 0; p <= pass; p++)
            if (kg_cuda_stream_is_staged(writer->plan, &writer->streams.items[i]) &&
                writer->streams.items[i].uses[p] && (first < 0 || p < first))
                first = p;
    if (first != pass)
        return;
    kg_code_line(&writer->code, "if constexpr (HELD)");
    kg_code_line(&writer->code, "    kg_arrival_wait(&copied, 0);");
}

// Few vectors are loaded by predicated instructions, without branches: blocks of short rows are
// many, and the time to the first load shows. For more of them the addresses would take registers.
static void open_loads(struct kg_cuda_rowwise_writer *writer)
{
    enum { FEW = 4 };
    struct kg_code *code = &writer->code;
    if (writer->plan->hold > FEW || writer->plan->cluster > 1) {
        kg_cuda_rowwise_held(writer);
        return;
    }
    kg_code_line(code, "#pragma unroll");
    kg_code_open(code, "for (int part = 0; part < HOLD; part++)");
    kg_code_line(code, "if (part * SPAN * VECTOR >= left)");
    kg_code_line(code, "    continue;");
    kg_cuda_rowwise_first(writer);
}

void kg_cuda_rowwise_loads(struct kg_cuda_rowwise_writer *writer)
{
    struct kg_code *code = &writer->code;
    const bool several = kg_cuda_rowwise_several(writer->plan);
    bool any = false;
    for (int i = 0; i < writer->streams.count; i++) {
        if (!writer->streams.items[i].held)
            continue;
        kg_code_line(code, "kg_vec<%s, VECTOR> take%d%s[HOLD > 0 ? HOLD : 1];",
                     kg_emit_tensor_storage(writer->streams.items[i].access->tensor), i,
                     several ? "[ROWS]" : "");
        any = true;
    }
    if (!any)
        return;
    if (writer->plan->shared > 0)
        emit_stored_loads(writer);
    kg_cuda_rowwise_open_rows(writer, true);
    open_loads(writer);
    for (int i = 0; i < writer->streams.count; i++) {
        char to[32];
        snprintf(to, sizeof to, several ? "take%d[nth][part]" : "take%d[part]", i);
        if (writer->streams.items[i].held)
            kg_cuda_rowwise_fill(writer, i, to);
    }
    kg_code_close(code);
    kg_cuda_rowwise_close_rows(writer);
}
