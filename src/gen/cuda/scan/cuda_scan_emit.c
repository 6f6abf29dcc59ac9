// The code of the scan family for CUDA: see cuda_scan.c for what it does and when.
//
// Positions along the axis are counted from where the scan starts: `start` is that of a vector,
// `step` counts within it. `first` is the element of a vector that lies lowest in memory, `lane`
// counts from there; of a vector, [low, high) are elements of the row at hand. The body is compiled
// for whole vectors, for vectors of one element and, where `shifts`, for rows that begin and end
// within vectors.

#include "gen/cuda/scan/cuda_scan_writer.h"

#include "gen/cuda/cuda_frame.h"
#include "gen/skeleton.h"

#include <stdio.h>

static bool read_stream(void *user, struct kg_text *text, const struct kg_access *access)
{
    const struct kg_cuda_scan_writer *writer = user;
    int i = kg_cuda_scan_stream(&writer->streams, access);
    char base[48];
    if (i < 0)
        return false;
    snprintf(base, sizeof base, "now%d.at", i);
    kg_emit_load_at(text, access->tensor, base, "lane");
    return true;
}

static bool is_stored(const struct kg_cuda_scan_writer *writer, int position)
{
    return kg_scan_is_stored(writer->scan, position);
}

// ---- Places ----

void kg_cuda_scan_define(struct kg_cuda_scan_writer *writer, const char *name, int first, int last)
{
    struct kg_code *code = &writer->code;
    kg_code_begin(code);
    kg_text_format(code->text, "const int64_t %s = ", name);
    kg_axes_product(code->text, writer->scan->nest, first, last);
    kg_text_add(code->text, ";");
    kg_code_end(code);
}

// Declares the axis vectors follow, for the whole vector at `first`.
static void emit_first_axis(struct kg_cuda_scan_writer *writer)
{
    kg_code_line(&writer->code, "const int64_t i%d = first;", writer->scan->last);
}

void kg_cuda_scan_open_steps(struct kg_cuda_scan_writer *writer)
{
    const struct kg_scan_plan *scan = writer->scan;
    struct kg_code *code = &writer->code;
    kg_code_line(code, "#pragma unroll");
    if (scan->column) {
        kg_code_open(code, "for (int lane = 0; lane < VECTOR; lane++)");
    } else {
        kg_code_open(code, "for (int step = 0; step < VECTOR; step++)");
        kg_code_line(code, "const int lane = %s;", scan->backward ? "VECTOR - 1 - step" : "step");
    }
    kg_code_line(code, "const int64_t i%d = first + lane;", scan->last);
}

// Fills vector `part` of each stream.
static void emit_fill(struct kg_cuda_scan_writer *writer)
{
    struct kg_text *text = writer->code.text;
    const bool shifts = writer->plan->shifts;
    emit_first_axis(writer);
    if (shifts) // what lies beside the row is read, too, but not beside the tensor
        kg_code_line(&writer->code, "const int64_t place = row * length + first;");
    for (int i = 0; i < writer->streams.count; i++) {
        const struct kg_cuda_scan_stream *stream = &writer->streams.streams[i];
        kg_code_begin(&writer->code);
        kg_text_format(text, "take%d[part] = kg_load_%s(", i,
                       shifts ? "shifted<VECTOR, SHIFTS>" : "raw<VECTOR>");
        kg_emit_name(text, stream->access->tensor->name);
        kg_text_add(text, " + ");
        kg_values_access(text, &writer->shared.values, stream->nest, stream->access);
        kg_text_add(text, shifts ? ", place, rows * length);" : ");");
        kg_code_end(&writer->code);
    }
}

static void declare_streams(struct kg_cuda_scan_writer *writer, const char *name, bool late)
{
    for (int i = 0; i < writer->streams.count; i++)
        if (!late || writer->streams.streams[i].late)
            kg_code_line(&writer->code, "kg_raw_vec<%s, VECTOR> %s%d[HOLD];",
                         kg_emit_tensor_storage(writer->streams.streams[i].access->tensor), name,
                         i);
}

void kg_cuda_scan_open_streams(struct kg_cuda_scan_writer *writer, const char *name, bool late)
{
    for (int i = 0; i < writer->streams.count; i++)
        if (!late || writer->streams.streams[i].late)
            kg_code_line(&writer->code, "const kg_vec<%s, VECTOR> now%d = kg_elements(%s%d[part]);",
                         kg_emit_tensor_storage(writer->streams.streams[i].access->tensor), i, name,
                         i);
}

// What the next loads would overwrite stays for what follows the scan.
static void keep_streams(struct kg_cuda_scan_writer *writer)
{
    for (int i = 0; i < writer->streams.count; i++)
        if (writer->streams.streams[i].late)
            kg_code_line(&writer->code, "from%d[part] = take%d[part];", i, i);
}

// ---- Values ----

// The element at hand, into `place`.
static void emit_value(struct kg_cuda_scan_writer *writer, const char *place)
{
    const struct kg_scan_plan *scan = writer->scan;
    struct kg_code *code = &writer->code;
    kg_code_begin(code);
    kg_text_format(code->text, "%s = %s", place, scan->fold.is_argument ? "{" : "");
    kg_values_print(code->text, &writer->shared.values, scan->k, scan->fold.lane);
    if (scan->fold.is_argument)
        kg_text_format(code->text, ", i%d}", scan->axis);
    kg_text_add(code->text, ";");
    kg_code_end(code);
}

void kg_cuda_scan_emit_places(struct kg_cuda_scan_writer *writer)
{
    for (int i = writer->scan->k; i < writer->scan->group->count; i++)
        if (is_stored(writer, i))
            kg_code_line(&writer->code, "kg_vec<%s, VECTOR> place%d;",
                         kg_emit_tensor_storage(kg_group_nest(writer->scan->group, i)->output), i);
}

// From the running total `total` to the outputs of the element at hand.
void kg_cuda_scan_emit_outputs(struct kg_cuda_scan_writer *writer, const char *total,
                               const char *count)
{
    char result[32];
    snprintf(result, sizeof result, writer->scan->fold.is_argument ? "%s.at" : "%s", total);
    kg_scan_outputs(&writer->shared, result, count);
}

void kg_cuda_scan_emit_stores(struct kg_cuda_scan_writer *writer)
{
    struct kg_text *text = writer->code.text;
    for (int i = writer->scan->k; i < writer->scan->group->count; i++) {
        if (!is_stored(writer, i))
            continue;
        const bool shifts = writer->plan->shifts;
        kg_code_begin(&writer->code);
        kg_text_format(text, "kg_store_%s(", shifts ? "shifted<SHIFTS>" : "vec");
        kg_scan_target(text, &writer->shared, i, "first");
        kg_text_format(text, ", place%d%s);", i, shifts ? ", low, high" : "");
        kg_code_end(&writer->code);
    }
}

// ---- What all functions begin with ----

bool kg_cuda_scan_has_chunks(const struct kg_cuda_scan_writer *writer)
{
    return writer->scan->chunk > 0;
}

static void emit_constants(struct kg_cuda_scan_writer *writer)
{
    const struct kg_scan_plan *scan = writer->scan;
    struct kg_code *code = &writer->code;
    kg_code_line(code, "enum { THREADS = %d };", writer->plan->threads);
    kg_cuda_scan_define(writer, "length", scan->axis, scan->axis);
    if (kg_cuda_scan_has_chunks(writer)) {
        kg_code_line(code, "const int64_t size = %lld;", (long long)scan->chunk);
        kg_code_line(code, "const int64_t chunks = (length + size - 1) / size;");
        kg_code_line(code, "%s::type *const total = reinterpret_cast<%s::type *>(scratch);",
                     writer->carried, writer->carried);
    }
    kg_code_begin(code);
    kg_text_format(code->text, "const %s::type none = %s", writer->fold,
                   scan->fold.is_argument ? "{" : "");
    kg_fold_neutral(code->text, &scan->fold, scan->fold.lane);
    kg_text_add(code->text, scan->fold.is_argument ? ", -1};" : ";");
    kg_code_end(code);
}

// ---- Tiles ----

void kg_cuda_scan_open_parts(struct kg_cuda_scan_writer *writer)
{
    struct kg_code *code = &writer->code;
    kg_code_line(code, "#pragma unroll");
    kg_code_open(code, "for (int part = 0; part < HOLD; part++)");
    kg_code_line(code, "const int within = offset + part%s;",
                 writer->scan->column ? "" : " * (LANES * VECTOR)");
}

void kg_cuda_scan_open_part(struct kg_cuda_scan_writer *writer, const char *tile, const char *left)
{
    const struct kg_scan_plan *scan = writer->scan;
    struct kg_code *code = &writer->code;
    kg_code_open(code, "if (within < %s)", left);
    kg_code_line(code, "const int64_t start = %s + within;", tile);
    if (scan->column)
        kg_code_line(code, "const int64_t i%d = %sstart;", scan->axis,
                     scan->backward ? "length - 1 - " : "");
    else
        kg_code_line(code, "const int64_t first = %s;",
                     scan->backward ? "length - VECTOR - start" : "start");
}

static void emit_loads(struct kg_cuda_scan_writer *writer, const char *tile, const char *left)
{
    if (writer->streams.count == 0)
        return;
    kg_cuda_scan_open_parts(writer);
    kg_cuda_scan_open_part(writer, tile, left);
    emit_fill(writer);
    kg_code_close(&writer->code);
    kg_code_close(&writer->code);
}

// The elements of the vector at hand, as it lies in memory, that are the row's: it may begin and
// end with those of the rows beside.
static void emit_bounds(struct kg_cuda_scan_writer *writer)
{
    const bool backward = writer->scan->backward;
    kg_code_line(&writer->code, "const int low = %s, high = %s;",
                 backward ? "VECTOR - (left - within)" : "skip - within",
                 backward ? "VECTOR - (skip - within)" : "left - within");
}

// The values of a tile, or `none` where there are none.
static void emit_values(struct kg_cuda_scan_writer *writer)
{
    struct kg_code *code = &writer->code;
    kg_code_line(code, "%s::type acc0[HOLD][VECTOR];", writer->fold);
    declare_streams(writer, "from", true);
    kg_cuda_scan_open_parts(writer);
    kg_cuda_scan_open_part(writer, "tile", "left");
    kg_cuda_scan_open_streams(writer, "take", false);
    if (writer->plan->shifts)
        emit_bounds(writer);
    kg_cuda_scan_open_steps(writer);
    emit_value(writer, writer->scan->column ? "acc0[part][lane]" : "acc0[part][step]");
    if (writer->plan->shifts) {
        kg_code_line(code, "if (SHIFTS && (lane < low || lane >= high))");
        kg_code_line(code, "    acc0[part][step] = none; // of the row beside");
    }
    kg_code_close(code);
    keep_streams(writer);
    kg_code_outdent(code);
    kg_code_line(code, "} else {");
    kg_code_indent(code);
    kg_code_line(code, "#pragma unroll");
    kg_code_line(code, "for (int step = 0; step < VECTOR; step++)");
    kg_code_line(code, "    acc0[part][step] = none;");
    kg_code_close(code);
    kg_code_close(code);
}

void kg_cuda_scan_open_tiles(struct kg_cuda_scan_writer *writer,
                             void (*emit_carry)(struct kg_cuda_scan_writer *))
{
    struct kg_code *code = &writer->code;
    kg_code_line(code, "int left = kg_left(stop - origin, TILE);");
    declare_streams(writer, "take", false);
    emit_loads(writer, "origin", "left");
    if (kg_cuda_scan_has_chunks(writer))
        emit_carry(writer);
    kg_code_open(code, "for (int64_t tile = origin; tile < end; tile += TILE)");
    if (writer->plan->shifts)
        kg_code_line(code, "const int skip = SHIFTS && tile < 0 ? (int)-tile : 0;");
    emit_values(writer);
    kg_code_line(code, "const int ahead = kg_left(stop - tile - TILE, TILE);");
    emit_loads(writer, "tile + TILE", "ahead");
}

void kg_cuda_scan_close_tiles(struct kg_cuda_scan_writer *writer)
{
    kg_code_line(&writer->code, "left = ahead;");
    kg_code_close(&writer->code);
}

// ---- Along the row ----

// Adds up a tile, each thread its own.
static void emit_row_totals(struct kg_cuda_scan_writer *writer)
{
    struct kg_code *code = &writer->code;
    kg_code_line(code, "%s::type more = none;", writer->fold);
    kg_code_line(code, "#pragma unroll");
    kg_code_line(code, "for (int part = 0; part < HOLD; part++)");
    kg_code_line(code, "#pragma unroll");
    kg_code_line(code, "    for (int step = 0; step < VECTOR; step++)");
    kg_code_line(code, "        more = %s::both(more, acc0[part][step]);", writer->fold);
    kg_code_line(code, "kg_carry_on<%s>(carry, more);", writer->fold);
}

static void emit_row_scan(struct kg_cuda_scan_writer *writer)
{
    const struct kg_scan_plan *scan = writer->scan;
    struct kg_code *code = &writer->code;
    const char *fold = writer->fold;
    kg_code_line(code, "%s::type before[HOLD];", fold);
    kg_code_line(code, "#pragma unroll");
    kg_code_open(code, "for (int part = 0; part < HOLD; part++)");
    kg_code_line(code, "#pragma unroll");
    kg_code_line(code, "for (int step = 1; step < VECTOR; step++)");
    kg_code_line(code, "    acc0[part][step] = %s::both(acc0[part][step - 1], acc0[part][step]);",
                 fold);
    kg_code_line(code, "before[part] = acc0[part][VECTOR - 1];");
    kg_code_close(code);
    kg_code_line(code,
                 "const %s::type more = kg_row_before<%s, THREADS, CLUSTER>(before, none, turn);",
                 fold, fold);
    kg_cuda_scan_open_parts(writer);
    kg_cuda_scan_open_part(writer, "tile", "left");
    kg_code_line(code, "const %s::type lead = %s::both(kg_carried(carry), before[part]);", fold,
                 fold);
    kg_cuda_scan_open_streams(writer, "from", true);
    kg_cuda_scan_emit_places(writer);
    if (writer->plan->shifts)
        emit_bounds(writer);
    kg_cuda_scan_open_steps(writer);
    if (scan->exclusive)
        kg_code_line(code,
                     "const %s::type value = step == 0 ? lead : "
                     "%s::both(lead, acc0[part][step > 0 ? step - 1 : 0]);",
                     fold, fold);
    else
        kg_code_line(code, "const %s::type value = %s::both(lead, acc0[part][step]);", fold, fold);
    kg_cuda_scan_emit_outputs(writer, "value",
                              scan->exclusive ? "start + step" : "start + step + 1");
    kg_code_close(code);
    kg_cuda_scan_emit_stores(writer);
    kg_code_close(code);
    kg_code_close(code);
    kg_code_line(code, "kg_carry_on<%s>(carry, more);", fold);
}

// What stands before the chunk.
static void emit_row_carry(struct kg_cuda_scan_writer *writer)
{
    struct kg_code *code = &writer->code;
    kg_code_open(code, "if constexpr (!TOTALS)");
    kg_code_line(code, "for (int64_t i = item - item %% chunks + thread; i < item; i += THREADS)");
    kg_code_line(code, "    carry = %s::both(carry, total[i]);", writer->carried);
    kg_code_line(code, "carry = kg_row_fold<%s, THREADS>(carry, turn);", writer->carried);
    kg_code_close(code);
}

static void emit_row(struct kg_cuda_scan_writer *writer)
{
    const struct kg_scan_plan *scan = writer->scan;
    struct kg_code *code = &writer->code;
    kg_code_line(code, "const int64_t row = item%s;",
                 kg_cuda_scan_has_chunks(writer) ? " / chunks" : "");
    kg_code_line(code, "const int64_t origin = %s;",
                 kg_cuda_scan_has_chunks(writer) ? "item % chunks * size"
                 : !writer->plan->shifts         ? "0"
                 : scan->backward
                     ? "SHIFTS ? -(int64_t)(-(uint64_t)((row + 1) * length) % VECTOR) : 0"
                     : "SHIFTS ? -(row * length % VECTOR) : 0");
    kg_code_line(code, "const int64_t stop = %s, end = stop;",
                 kg_cuda_scan_has_chunks(writer) ? "kg_min_i64(origin + size, length)" : "length");
    kg_axes_split(code, scan->nest, 0, scan->axis - 1, "row");
    kg_code_line(code, "%s::type carry = %s;", writer->carried,
                 scan->fold.is_float_sum ? "{0, 0}" : "none");
    kg_cuda_scan_open_tiles(writer, emit_row_carry);
    if (kg_cuda_scan_has_chunks(writer)) {
        kg_code_open(code, "if constexpr (TOTALS)");
        emit_row_totals(writer);
        kg_code_outdent(code);
        kg_code_line(code, "} else {");
        kg_code_indent(code);
    }
    emit_row_scan(writer);
    if (kg_cuda_scan_has_chunks(writer))
        kg_code_close(code);
    kg_cuda_scan_close_tiles(writer);
}

// Opens the loop over rows, or chunks of rows.
static void open_items(struct kg_cuda_scan_writer *writer)
{
    struct kg_code *code = &writer->code;
    const char *item = "begin";
    if (writer->plan->cluster > 1) {
        kg_code_open(code, "for (int64_t item = blockIdx.x / CLUSTER; item < items; "
                           "item += gridDim.x / CLUSTER)");
        return;
    }
    kg_code_open(code, "for (int64_t begin = (int64_t)blockIdx.x * blockDim.y; begin < items; "
                       "begin += (int64_t)gridDim.x * blockDim.y)");
    if (writer->plan->blocks > 1) // all lanes of a warp take part: some do the last row again
        item = "kg_min_i64(begin + threadIdx.y, items - 1)";
    if (kg_cuda_scan_has_chunks(
            writer)) // totals go backward: the scan finds in the cache what they read last
        kg_code_line(code, "const int64_t item = TOTALS ? items - 1 - %s : %s;", item, item);
    else
        kg_code_line(code, "const int64_t item = %s;", item);
}

static void emit_rows(struct kg_cuda_scan_writer *writer)
{
    const struct kg_cuda_scan_plan *plan = writer->plan;
    struct kg_code *code = &writer->code;
    kg_cuda_scan_define(writer, "rows", 0, writer->scan->axis - 1);
    kg_code_line(code, "const int64_t items = rows%s;",
                 kg_cuda_scan_has_chunks(writer) ? " * chunks" : "");
    kg_code_line(code, "enum { CLUSTER = %d, LANES = %d };", plan->cluster,
                 plan->threads < 32 ? plan->threads : 32);
    kg_code_line(code, "enum { TILE = CLUSTER * THREADS * VECTOR * HOLD };");
    kg_code_line(code, "const int thread = threadIdx.x%s;",
                 plan->cluster > 1 ? " + THREADS * (int)kg_cluster_rank()" : "");
    kg_code_line(
        code, "const int offset = (thread / LANES * (LANES * HOLD) + thread %% LANES) * VECTOR;");
    kg_code_line(code, "int turn = 0;");
    open_items(writer);
    emit_row(writer);
    if (kg_cuda_scan_has_chunks(writer)) {
        kg_code_open(code, "if constexpr (TOTALS)");
        kg_code_line(code, "carry = kg_row_fold<%s, THREADS>(carry, turn);", writer->carried);
        kg_code_line(code, "if (thread == 0)");
        kg_code_line(code, "    total[item] = carry;");
        kg_code_close(code);
    }
    kg_code_close(code);
    if (plan->cluster > 1) // others may still be reading what this block found
        kg_code_line(code, "kg_cluster_wait();");
}

// ---- The code ----

static void emit_functions(struct kg_cuda_scan_writer *writer)
{
    const struct kg_cuda_scan_plan *plan = writer->plan;
    int number = 0;
    for (int totals = kg_cuda_scan_has_chunks(writer); totals >= 0; totals--) {
        for (int function = 0; function < kg_cuda_scan_functions(plan); function++) {
            const bool single = function == KG_CUDA_SCAN_SINGLE;
            char values[64];
            snprintf(values, sizeof values, "%s%d, %d%s",
                     !kg_cuda_scan_has_chunks(writer) ? ""
                     : totals                         ? "true, "
                                                      : "false, ",
                     single ? 1 : plan->vector, single ? kg_cuda_scan_single(plan) : plan->hold,
                     !plan->shifts                      ? ""
                     : function == KG_CUDA_SCAN_SHIFTED ? ", true"
                                                        : ", false");
            kg_cuda_waiting_function(&writer->code, writer->scan->group, writer->scan->entry,
                                     number++, plan->threads * plan->blocks, plan->registers,
                                     writer->scan->entry, values);
        }
    }
}

static void name_folds(struct kg_cuda_scan_writer *writer)
{
    const struct kg_fold *fold = &writer->scan->fold;
    struct kg_text name = {0};
    kg_cuda_fold(&name, fold, "int64_t");
    snprintf(writer->fold, sizeof writer->fold, "%s", kg_text_string(&name));
    snprintf(writer->carried, sizeof writer->carried, fold->is_float_sum ? "kg_fold_two_%s" : "%s",
             fold->is_float_sum ? kg_emit_suffix(fold->lane) : writer->fold);
    writer->code.text->failed |= name.failed;
    kg_text_free(&name);
}

void kg_cuda_scan_emit(struct kg_text *text, const struct kg_cuda_scan_plan *plan)
{
    static const char *const skeletons[] = {"cuda/vectors.cuh", "cuda/lanes.cuh",
                                            "cuda/running.cuh"};
    const struct kg_scan_plan *scan = &plan->scan;
    struct kg_cuda_scan_writer writer = {.plan = plan, .scan = scan, .code = {text, 0}};
    char axis[16];
    snprintf(axis, sizeof axis, "i%d", scan->axis);
    name_folds(&writer);
    writer.shared = (struct kg_scan_writer){
        .code = &writer.code,
        .plan = scan,
        .values = {.group = scan->group, .read = read_stream, .user = &writer},
        .staged = "lane",
        .stage = "place%d.at",
    };
    writer.shared.values.axes[scan->bound] = axis;
    for (int i = scan->run; i < scan->last; i++)
        writer.shared.values.axes[i] = "0";
    kg_cuda_scan_find_streams(scan, &writer.streams);
    for (int i = 0; i < (int)(sizeof skeletons / sizeof *skeletons); i++) {
        kg_text_add(text, kg_skeleton_find(skeletons[i]));
        kg_text_add(text, "\n");
    }
    kg_cuda_open_body(&writer.code, scan->group, scan->entry,
                      scan->chunk > 0 ? "bool TOTALS, int VECTOR, int HOLD"
                      : plan->shifts  ? "int VECTOR, int HOLD, bool SHIFTS"
                                      : "int VECTOR, int HOLD");
    emit_constants(&writer);
    if (scan->column)
        kg_cuda_scan_emit_columns(&writer);
    else
        emit_rows(&writer);
    kg_code_close(&writer.code);
    emit_functions(&writer);
}
