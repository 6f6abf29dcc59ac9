// The code of scans down columns on CUDA: see cuda_scan.c for what it does, cuda_scan_emit.c for
// what rows and columns share.
//
// ROWS threads of a block are below each other, ACROSS beside each other, each with a vector of
// columns. A tile has HOLD rows for each thread. Threads past the last column take part in the
// exchange of totals, with nothing.

#include "gen/cuda/scan/cuda_scan_writer.h"

#include "gen/cuda/cuda_frame.h"

#include <stdio.h>

// A loop over the columns of a vector, with one statement.
static void emit_lanes(struct kg_cuda_scan_writer *writer, const char *statement)
{
    kg_code_line(&writer->code, "#pragma unroll");
    kg_code_line(&writer->code, "for (int lane = 0; lane < VECTOR; lane++)");
    kg_code_line(&writer->code, "    %s", statement);
}

// The chunk of an item, and a thread's line of columns in it.
static void emit_item(struct kg_cuda_scan_writer *writer)
{
    const struct kg_scan_plan *scan = writer->scan;
    struct kg_code *code = &writer->code;
    if (kg_cuda_scan_has_chunks(writer)) {
        kg_code_line(code, "const int64_t chunk = item / groups, origin = chunk * size;");
        kg_code_line(code, "const int64_t end = kg_min_i64(origin + size, length);");
        kg_code_line(code, "const int64_t line = item %% groups * ACROSS + across;");
    } else {
        kg_code_line(code,
                     "const int64_t line = item * ACROSS + across, origin = 0, end = length;");
    }
    kg_code_line(code, "const int64_t stop = line < lines ? end : origin;");
    kg_code_line(code, "const int64_t first = line %% vectors * VECTOR;");
    kg_code_line(code, "const int64_t outer = line / vectors;");
    kg_axes_split(code, scan->nest, 0, scan->axis - 1, "(outer / inner)");
    kg_axes_split(code, scan->nest, scan->axis + 1, scan->run - 1, "(outer % inner)");
    kg_code_line(code, "%s::type carry[VECTOR];", writer->carried);
    emit_lanes(writer, scan->fold.is_float_sum ? "carry[lane] = {0, 0};" : "carry[lane] = none;");
}

// The totals of what the threads of a column have carried, in all of them.
static void emit_fold_carry(struct kg_cuda_scan_writer *writer)
{
    struct kg_code *code = &writer->code;
    kg_code_line(code, "%s::type own[VECTOR];", writer->carried);
    emit_lanes(writer, "own[lane] = carry[lane];");
    kg_code_line(code, "kg_column_before<%s, ACROSS, ROWS>(own, carry, %s, turn);", writer->carried,
                 writer->scan->fold.is_float_sum ? "{0, 0}" : "none");
}

// What stands before the chunk: the threads of a column share the chunks.
static void emit_column_carry(struct kg_cuda_scan_writer *writer)
{
    struct kg_code *code = &writer->code;
    char statement[128];
    snprintf(statement, sizeof statement,
             "carry[lane] = %s::both(carry[lane], total[(i * lines + line) * VECTOR + lane]);",
             writer->carried);
    kg_code_open(code, "if constexpr (!TOTALS)");
    kg_code_open(code, "for (int64_t i = along; i < chunk && line < lines; i += ROWS)");
    emit_lanes(writer, statement);
    kg_code_close(code);
    emit_fold_carry(writer);
    kg_code_close(code);
}

// Adds up a tile, each thread its own rows.
static void emit_column_totals(struct kg_cuda_scan_writer *writer)
{
    struct kg_code *code = &writer->code;
    kg_code_line(code, "#pragma unroll");
    kg_code_open(code, "for (int lane = 0; lane < VECTOR; lane++)");
    kg_code_line(code, "%s::type more = acc0[0][lane];", writer->fold);
    kg_code_line(code, "#pragma unroll");
    kg_code_line(code, "for (int part = 1; part < HOLD; part++)");
    kg_code_line(code, "    more = %s::both(more, acc0[part][lane]);", writer->fold);
    kg_code_line(code, "kg_carry_on<%s>(carry[lane], more);", writer->fold);
    kg_code_close(code);
}

static void emit_column_scan(struct kg_cuda_scan_writer *writer)
{
    const struct kg_scan_plan *scan = writer->scan;
    struct kg_code *code = &writer->code;
    const char *fold = writer->fold;
    char statement[128];
    kg_code_line(code, "%s::type before[VECTOR], more[VECTOR];", fold);
    kg_code_line(code, "#pragma unroll");
    kg_code_line(code, "for (int part = 1; part < HOLD; part++)");
    kg_code_indent(code);
    snprintf(statement, sizeof statement,
             "acc0[part][lane] = %s::both(acc0[part - 1][lane], acc0[part][lane]);", fold);
    emit_lanes(writer, statement);
    kg_code_outdent(code);
    emit_lanes(writer, "before[lane] = acc0[HOLD - 1][lane];");
    kg_code_line(code, "kg_column_before<%s, ACROSS, ROWS>(before, more, none, turn);", fold);
    snprintf(statement, sizeof statement,
             "before[lane] = %s::both(kg_carried(carry[lane]), before[lane]);", fold);
    emit_lanes(writer, statement);
    kg_cuda_scan_open_parts(writer);
    kg_cuda_scan_open_part(writer, "tile", "left");
    kg_cuda_scan_open_streams(writer, "from", true);
    kg_cuda_scan_emit_places(writer);
    kg_cuda_scan_open_steps(writer);
    if (scan->exclusive)
        kg_code_line(code,
                     "const %s::type value = part == 0 ? before[lane] : "
                     "%s::both(before[lane], acc0[part > 0 ? part - 1 : 0][lane]);",
                     fold, fold);
    else
        kg_code_line(code, "const %s::type value = %s::both(before[lane], acc0[part][lane]);", fold,
                     fold);
    kg_cuda_scan_emit_outputs(writer, "value", scan->exclusive ? "start" : "start + 1");
    kg_code_close(code);
    kg_cuda_scan_emit_stores(writer);
    kg_code_close(code);
    kg_code_close(code);
    snprintf(statement, sizeof statement, "kg_carry_on<%s>(carry[lane], more[lane]);", fold);
    emit_lanes(writer, statement);
}

// A line of columns of each thread, or a chunk of it, tile by tile.
static void emit_column(struct kg_cuda_scan_writer *writer)
{
    struct kg_code *code = &writer->code;
    emit_item(writer);
    kg_cuda_scan_open_tiles(writer, emit_column_carry);
    if (kg_cuda_scan_has_chunks(writer)) {
        kg_code_open(code, "if constexpr (TOTALS)");
        emit_column_totals(writer);
        kg_code_outdent(code);
        kg_code_line(code, "} else {");
        kg_code_indent(code);
    }
    emit_column_scan(writer);
    if (kg_cuda_scan_has_chunks(writer))
        kg_code_close(code);
    kg_cuda_scan_close_tiles(writer);
}

void kg_cuda_scan_emit_columns(struct kg_cuda_scan_writer *writer)
{
    const struct kg_scan_plan *scan = writer->scan;
    struct kg_code *code = &writer->code;
    kg_cuda_scan_define(writer, "inner", scan->axis + 1, scan->run - 1);
    kg_cuda_scan_define(writer, "lead", 0, scan->axis - 1);
    kg_cuda_scan_define(writer, "width", scan->run, scan->last);
    kg_code_line(code, "enum { ROWS = %d, ACROSS = THREADS / ROWS, TILE = ROWS * HOLD };",
                 writer->plan->rows);
    kg_code_line(code, "const int64_t vectors = width / VECTOR, lines = lead * inner * vectors;");
    kg_code_line(code, "const int64_t groups = (lines + ACROSS - 1) / ACROSS;");
    kg_code_line(code, "const int64_t items = groups%s;",
                 kg_cuda_scan_has_chunks(writer) ? " * chunks" : "");
    kg_code_line(code, "const int across = threadIdx.x %% ACROSS, along = threadIdx.x / ACROSS;");
    kg_code_line(code, "const int offset = along * HOLD;");
    kg_code_line(code, "int turn = 0;");
    kg_code_open(code, "for (int64_t begin = blockIdx.x; begin < items; begin += gridDim.x)");
    if (kg_cuda_scan_has_chunks(
            writer)) // totals go backward: the scan finds in the cache what they read last
        kg_code_line(code, "const int64_t item = TOTALS ? items - 1 - begin : begin;");
    else
        kg_code_line(code, "const int64_t item = begin;");
    emit_column(writer);
    if (kg_cuda_scan_has_chunks(writer)) {
        kg_code_open(code, "if constexpr (TOTALS)");
        emit_fold_carry(writer);
        kg_code_line(code, "if (along == 0 && line < lines)");
        kg_code_indent(code);
        emit_lanes(writer, "total[(chunk * lines + line) * VECTOR + lane] = carry[lane];");
        kg_code_outdent(code);
        kg_code_close(code);
    }
    kg_code_close(code);
}
