// The code of the pointwise family for CUDA: see cuda_pointwise.c for what it does and when.

#include "gen/cuda/pointwise/cuda_pointwise.h"

#include "gen/cuda/cuda_frame.h"
#include "gen/shared/axes.h"
#include "gen/skeleton.h"

#include <stdio.h>

static bool has_rows(const struct kg_cuda_pointwise_plan *plan)
{
    return plan->run > 0;
}

// The slot of a read, or -1: it is made where it is used.
static int slot_of(const struct kg_cuda_pointwise_writer *writer, const struct kg_access *access)
{
    for (int i = 0; i < writer->slots.count; i++)
        if (access == writer->slots.items[i].access ||
            (!access->read->pad && kg_access_same(access, writer->slots.items[i].access)))
            return i;
    return -1;
}

// ---- Values ----

static void print_slot(struct kg_text *text, const struct kg_cuda_pointwise_writer *writer, int i)
{
    const struct kg_cuda_slot *slot = &writer->slots.items[i];
    const struct kg_tensor *tensor = slot->access->tensor;
    const char *which = slot->moves ? "[part]" : "";
    char base[32], at[128] = "lane";
    snprintf(base, sizeof base, "take%d%s.at", i, which);
    switch (slot->kind) {
    case KG_CUDA_SLOT_ONE:
        kg_text_format(text, "from%d%s", i, which);
        return;
    case KG_CUDA_SLOT_VECTOR:
        break;
    case KG_CUDA_SLOT_APART:
        kg_text_format(text, "from%d%s[lane]", i, which);
        return;
    case KG_CUDA_SLOT_ROUND:
        snprintf(at, sizeof at, "lane %% LAST");
        break;
    case KG_CUDA_SLOT_TILE:
        snprintf(base, sizeof base, "tile%d", i);
        snprintf(at, sizeof at, "kg_tile_at<WHOLE, SIDE, VECTOR, %s>(across, lane, along)",
                 kg_emit_tensor_storage(tensor));
        break;
    }
    kg_emit_load_at(text, tensor, base, at);
}

static void print_value_name(struct kg_text *text, const struct kg_cuda_pointwise_writer *writer,
                             int position)
{
    const struct kg_tensor *output = kg_group_nest(writer->plan->group, position)->output;
    if (kg_group_is_private(writer->plan->group, output))
        kg_emit_name(text, output->name);
    else
        kg_text_format(text, "v%d", position);
}

void kg_cuda_pointwise_offset(struct kg_text *text, struct kg_cuda_pointwise_writer *writer,
                              const struct kg_nest *nest, const struct kg_access *access)
{
    unsigned dims = kg_cuda_pointwise_dims(writer->plan, access);
    int slot = slot_of(writer, access);
    if (slot >= 0 && writer->slots.items[slot].kind == KG_CUDA_SLOT_ROUND)
        dims &= ~(1u << (access->tensor->rank - 1)); // from its first element on
    kg_emit_offset_part(text, nest, access, dims, &writer->names);
}

static bool read_value(void *user, struct kg_text *text, const struct kg_access *access)
{
    struct kg_cuda_pointwise_writer *writer = user;
    const struct kg_cuda_pointwise_plan *plan = writer->plan;
    int made = kg_pointwise_producer(plan->group, access->tensor, plan->group->count);
    if (made >= 0) {
        print_value_name(text, writer, made);
        return true;
    }
    int slot = writer->loading ? -1 : slot_of(writer, access);
    if (slot >= 0) {
        print_slot(text, writer, slot);
        return true;
    }
    if (access->read->pad) // walks no merged axis
        return false;
    struct kg_text base = {0}, offset = {0};
    kg_emit_name(&base, access->tensor->name);
    kg_cuda_pointwise_offset(&offset, writer, writer->nest, access);
    kg_emit_load_at(text, access->tensor, kg_text_string(&base), kg_text_string(&offset));
    text->failed |= base.failed | offset.failed;
    kg_text_free(&base);
    kg_text_free(&offset);
    return true;
}

// ---- Places ----

void kg_cuda_pointwise_length(struct kg_text *text, const struct kg_cuda_pointwise_plan *plan,
                              int axis)
{
    int first = axis;
    while (first > 0 && plan->merged[first - 1])
        first--;
    kg_axes_product(text, kg_group_nest(plan->group, 0), first, axis);
}

// Declares the axes before the columns, from `row`.
static void emit_row_axes(struct kg_cuda_pointwise_writer *writer)
{
    const struct kg_cuda_pointwise_plan *plan = writer->plan;
    struct kg_code *code = &writer->code;
    int outermost = 0;
    while (plan->merged[outermost])
        outermost++;
    if (outermost < plan->run - 1)
        kg_code_line(code, "INDEX rest = row;");
    for (int axis = plan->run - 1; axis >= 0; axis--) {
        if (plan->merged[axis])
            continue;
        kg_code_begin(code);
        kg_text_format(code->text, "const INDEX i%d = ", axis);
        if (axis == outermost) {
            kg_text_add(code->text, outermost < plan->run - 1 ? "rest;" : "row;");
        } else {
            kg_text_add(code->text, "kg_take(&rest, ");
            kg_cuda_pointwise_length(code->text, plan, axis);
            kg_text_add(code->text, ");");
        }
        kg_code_end(code);
    }
}

// ---- The code ----

static void emit_constant(struct kg_cuda_pointwise_writer *writer, const char *name,
                          void (*print)(struct kg_cuda_pointwise_writer *))
{
    kg_code_begin(&writer->code);
    kg_text_format(writer->code.text, "const INDEX %s = ", name);
    print(writer);
    kg_text_add(writer->code.text, ";");
    kg_code_end(&writer->code);
}

static void print_columns(struct kg_cuda_pointwise_writer *writer)
{
    const struct kg_cuda_pointwise_plan *plan = writer->plan;
    if (plan->flat)
        kg_axes_product(writer->code.text, kg_group_nest(plan->group, 0), 0, plan->axes - 1);
    else if (plan->axes > 0)
        kg_cuda_pointwise_length(writer->code.text, plan, plan->axes - 1);
    else
        kg_text_add(writer->code.text, "1");
}

static void print_rows(struct kg_cuda_pointwise_writer *writer)
{
    kg_axes_product(writer->code.text, kg_group_nest(writer->plan->group, 0), 0,
                    writer->plan->run - 1);
}

void kg_cuda_pointwise_declare(struct kg_cuda_pointwise_writer *writer, int i)
{
    const struct kg_cuda_slot *slot = &writer->slots.items[i];
    const struct kg_tensor *tensor = slot->access->tensor;
    const char *which = slot->moves ? "[ROWS]" : "";
    if (slot->kind == KG_CUDA_SLOT_ONE)
        kg_code_line(&writer->code, "%s from%d%s;", kg_emit_type(tensor->compute), i, which);
    else if (slot->kind == KG_CUDA_SLOT_APART)
        kg_code_line(&writer->code, "%s from%d%s[VECTOR];", kg_emit_type(tensor->compute), i,
                     which);
    else
        kg_code_line(&writer->code, "kg_vec<%s, %s> take%d%s;", kg_emit_tensor_storage(tensor),
                     slot->kind == KG_CUDA_SLOT_ROUND ? "LAST" : "VECTOR", i, which);
}

void kg_cuda_pointwise_fill(struct kg_cuda_pointwise_writer *writer, int i)
{
    const struct kg_cuda_slot *slot = &writer->slots.items[i];
    const struct kg_tensor *tensor = slot->access->tensor;
    const char *which = slot->moves ? "[part]" : "";
    struct kg_text *text = writer->code.text, base = {0}, offset = {0};
    writer->nest = slot->nest;
    const bool apart = slot->kind == KG_CUDA_SLOT_APART;
    writer->loading = true;
    writer->first = !apart;
    kg_emit_name(&base, tensor->name);
    kg_cuda_pointwise_offset(&offset, writer, slot->nest, slot->access);
    writer->loading = writer->first = false;
    const char *from = kg_text_string(&base), *at = kg_text_string(&offset);
    kg_code_begin(&writer->code);
    if (slot->kind == KG_CUDA_SLOT_ROUND) {
        kg_text_format(text, "take%d%s = kg_load_vec<LAST>(%s + %s);", i, which, from, at);
    } else if (slot->kind == KG_CUDA_SLOT_VECTOR) {
        bool again = writer->plan->stream >= KG_CUDA_POINTWISE_FIRST &&
                     !kg_cuda_reads_once(slot->nest, slot->access);
        kg_text_format(text, "take%d%s = kg_load_predicated<WHOLE, %s, VECTOR>(%s + %s, ", i, which,
                       again ? "0" : "CACHE", from, at);
        if (writer->names.contiguous)
            kg_text_add(text, "1");
        else
            kg_text_format(text, "%s_s%d", from, tensor->rank - 1);
        kg_text_add(text, ", step, length - first);");
    } else {
        kg_text_format(text, "from%d%s%s = ", i, which, apart ? "[lane]" : "");
        kg_emit_load_at(text, tensor, from, at);
        kg_text_add(text, ";");
    }
    kg_code_end(&writer->code);
    text->failed |= base.failed | offset.failed;
    kg_text_free(&base);
    kg_text_free(&offset);
}

static bool has_slots(const struct kg_cuda_pointwise_writer *writer, bool moving)
{
    for (int i = 0; i < writer->slots.count; i++)
        if (writer->slots.items[i].moves == moving)
            return true;
    return false;
}

// `first`, the first column of a vector, is the value of the last axis while places are printed.
static void print_axis(void *user, struct kg_text *text, int axis)
{
    const struct kg_cuda_pointwise_writer *writer = user;
    if (axis == writer->plan->axes - 1 && writer->first)
        kg_text_add(text, "first");
    else
        kg_text_format(text, "i%d", axis);
}

// Opens the loop over the vectors of a thread, and what tells whether this one is there.
static void open_parts(struct kg_cuda_pointwise_writer *writer)
{
    struct kg_code *code = &writer->code;
    kg_code_line(code, "#pragma unroll");
    kg_code_open(code, "for (int part = 0; part < ROWS; part++)");
    if (has_rows(writer->plan)) {
        kg_code_line(code, "const INDEX row = start + part * (int)blockDim.y;");
        kg_code_line(code, "if (row >= rows)");
        kg_code_line(code, "    break;");
    } else {
        kg_code_line(code, "const INDEX first = start + part * across;");
        kg_code_line(code, "if (first >= length)");
        kg_code_line(code, "    break;");
    }
}

// The axes from the last one to `from`, each with all that is merged into it: taken off the linear
// index `rest`, or counted on by one element.
static void emit_digits(struct kg_cuda_pointwise_writer *writer, int from, bool counted)
{
    const struct kg_cuda_pointwise_plan *plan = writer->plan;
    for (int axis = plan->axes - 1; axis >= from; axis--) {
        if (plan->merged[axis])
            continue;
        kg_code_begin(&writer->code);
        kg_text_format(writer->code.text, counted ? "kg_count(&i%d, " : "i%d = kg_take(&rest, ",
                       axis);
        kg_cuda_pointwise_length(writer->code.text, plan, axis);
        kg_text_add(writer->code.text, counted ? ", &carry);" : ");");
        kg_code_end(&writer->code);
    }
}

static void declare_indices(struct kg_cuda_pointwise_writer *writer, int from)
{
    kg_code_line(&writer->code, "INDEX rest;");
    for (int axis = from; axis < writer->plan->axes; axis++)
        if (!writer->plan->merged[axis])
            kg_code_line(&writer->code, "INDEX i%d;", axis);
}

// Indices of the axes from `from` on, at lane `lane` of a vector: for the first one divided out,
// then counted on. All axes go round, so that places past the end are places too.
static void emit_indices(struct kg_cuda_pointwise_writer *writer, int from)
{
    struct kg_code *code = &writer->code;
    kg_code_open(code, "if (lane == 0 || !WHOLE)");
    kg_code_line(code, "rest = first + lane * step;");
    emit_digits(writer, from, false);
    code->depth--;
    kg_code_line(code, "} else {");
    code->depth++;
    kg_code_line(code, "bool carry = true;");
    emit_digits(writer, from, true);
    kg_code_close(code);
}

static void emit_loads_apart(struct kg_cuda_pointwise_writer *writer)
{
    const struct kg_cuda_pointwise_plan *plan = writer->plan;
    struct kg_code *code = &writer->code;
    int from = plan->axes;
    for (int i = 0; i < writer->slots.count; i++)
        if (writer->slots.items[i].kind == KG_CUDA_SLOT_APART)
            while (from > 0 && kg_access_uses(writer->slots.items[i].access, 0, from - 1))
                from--;
    if (from == plan->axes)
        return;
    declare_indices(writer, from);
    kg_code_line(code, "#pragma unroll");
    kg_code_open(code, "for (int lane = 0; lane < VECTOR; lane++)");
    emit_indices(writer, from);
    for (int i = 0; i < writer->slots.count; i++)
        if (writer->slots.items[i].kind == KG_CUDA_SLOT_APART)
            kg_cuda_pointwise_fill(writer, i);
    kg_code_close(code);
}

static void emit_loads(struct kg_cuda_pointwise_writer *writer)
{
    if (!has_slots(writer, true))
        return;
    for (int i = 0; i < writer->slots.count; i++)
        if (writer->slots.items[i].moves)
            kg_cuda_pointwise_declare(writer, i);
    open_parts(writer);
    emit_row_axes(writer);
    for (int i = 0; i < writer->slots.count; i++)
        if (writer->slots.items[i].moves && writer->slots.items[i].kind != KG_CUDA_SLOT_APART)
            kg_cuda_pointwise_fill(writer, i);
    emit_loads_apart(writer);
    kg_code_close(&writer->code);
}

static void emit_value(struct kg_cuda_pointwise_writer *writer, int position)
{
    const struct kg_nest *nest = kg_group_nest(writer->plan->group, position);
    struct kg_text name = {0};
    writer->nest = nest;
    print_value_name(&name, writer, position);
    kg_code_begin(&writer->code);
    kg_text_format(writer->code.text, "const %s %s = ", kg_emit_type(nest->body->type),
                   kg_text_string(&name));
    kg_emit_value(writer->code.text, nest, nest->body, nest->body->type, &writer->names);
    kg_text_add(writer->code.text, ";");
    kg_code_end(&writer->code);
    if (!kg_group_is_private(writer->plan->group, nest->output)) {
        char base[32];
        snprintf(base, sizeof base, "place%d.at", position);
        kg_code_begin(&writer->code);
        kg_emit_store_at(writer->code.text, nest->output, base, "lane", nest->body->type,
                         kg_text_string(&name));
        kg_code_end(&writer->code);
    }
    writer->code.text->failed |= name.failed;
    kg_text_free(&name);
}

static void emit_stores(struct kg_cuda_pointwise_writer *writer)
{
    const struct kg_cuda_pointwise_plan *plan = writer->plan;
    struct kg_text *text = writer->code.text;
    for (int i = 0; i < plan->group->count; i++) {
        const struct kg_tensor *output = kg_group_nest(plan->group, i)->output;
        if (kg_group_is_private(plan->group, output))
            continue;
        kg_code_begin(&writer->code);
        kg_text_add(text, "kg_store_predicated<WHOLE, CACHE>(");
        kg_emit_name(text, output->name);
        kg_text_add(text, " + ");
        writer->first = true;
        kg_emit_output_offset_part(text, kg_group_nest(plan->group, i),
                                   kg_cuda_pointwise_output_dims(plan), &writer->names);
        writer->first = false;
        kg_text_format(text, ", place%d, ", i);
        if (writer->names.contiguous || output->rank == 0) {
            kg_text_add(text, "1");
        } else {
            kg_emit_name(text, output->name);
            kg_text_format(text, "_s%d", output->rank - 1);
        }
        kg_text_add(text, ", step, length - first);");
        kg_code_end(&writer->code);
    }
}

void kg_cuda_pointwise_compute(struct kg_cuda_pointwise_writer *writer)
{
    const struct kg_cuda_pointwise_plan *plan = writer->plan;
    struct kg_code *code = &writer->code;
    for (int i = 0; i < plan->group->count; i++)
        if (!kg_group_is_private(plan->group, kg_group_nest(plan->group, i)->output))
            kg_code_line(code, "kg_vec<%s, VECTOR> place%d;",
                         kg_emit_tensor_storage(kg_group_nest(plan->group, i)->output), i);
    const int from = plan->flat ? kg_cuda_pointwise_first_index(plan->group) : plan->axes;
    const bool indexed = from < plan->axes;
    if (indexed)
        declare_indices(writer, from);
    kg_code_line(code, "#pragma unroll");
    kg_code_open(code, "for (int lane = 0; lane < VECTOR; lane++)");
    if (indexed) {
        kg_code_line(code, "if (!WHOLE && first + lane * step >= length)");
        kg_code_line(code, "    break;");
        emit_indices(writer, from);
    } else if (plan->axes > 0) {
        kg_code_line(code, "const INDEX i%d = first + lane * step;", plan->axes - 1);
        kg_code_line(code, "if (!WHOLE && i%d >= length)", plan->axes - 1);
        kg_code_line(code, "    break;");
    }
    for (int i = 0; i < plan->group->count; i++)
        emit_value(writer, i);
    kg_code_close(code);
    emit_stores(writer);
}

static void emit_computation(struct kg_cuda_pointwise_writer *writer)
{
    open_parts(writer);
    emit_row_axes(writer);
    kg_cuda_pointwise_compute(writer);
    kg_code_close(&writer->code);
}

// Grids of narrow functions cover everything: nothing is left to go round for.
static void close_round(struct kg_code *code)
{
    kg_code_line(code, "if (sizeof(INDEX) < sizeof(int64_t))");
    kg_code_line(code, "    break;");
    kg_code_close(code);
}

// One block of threads, and the blocks that follow where the grid is not large enough. Blocks that
// follow each other lie side by side in memory; where one is as wide as the columns, all of the
// grid's first dimension, which has no limit worth the name, is for rows. Else these take the
// second, and the third where that is not enough.
static void emit_rows(struct kg_cuda_pointwise_writer *writer)
{
    struct kg_code *code = &writer->code;
    kg_code_line(code, "const INDEX along = (INDEX)blockDim.y * ROWS;");
    kg_code_line(code, "const bool tall = length <= across;");
    kg_code_line(code, "const INDEX column = (tall ? 0 : blockIdx.x * across) + (WHOLE ? VECTOR * "
                       "(int)threadIdx.x : (int)threadIdx.x);");
    kg_code_line(code, "const INDEX level = (INDEX)blockIdx.z * gridDim.y + blockIdx.y;");
    kg_code_line(code,
                 "const INDEX line = (level + (tall ? blockIdx.x : 0)) * along + threadIdx.y;");
    // Both at once: one branch to wait for before the first load.
    kg_code_line(code, "if ((column >= length) | (line >= rows))");
    kg_code_line(code, "    return;");
    kg_code_open(code, "for (INDEX first = column; first < length; first += gridDim.x * across)");
    for (int i = 0; i < writer->slots.count; i++) {
        if (writer->slots.items[i].moves)
            continue;
        kg_cuda_pointwise_declare(writer, i);
        kg_cuda_pointwise_fill(writer, i);
    }
    kg_code_open(code, "for (INDEX start = line; start < rows; "
                       "start += (tall ? gridDim.x : (INDEX)gridDim.y * gridDim.z) * along)");
    emit_loads(writer);
    emit_computation(writer);
    close_round(code);
    close_round(code);
}

// Where the end cuts the last vector short, its thread goes element by element.
static void emit_cut(struct kg_cuda_pointwise_writer *writer, const char *name)
{
    struct kg_code *code = &writer->code;
    kg_code_open(code, "if constexpr (WHOLE)");
    kg_code_open(code, "if (length %% VECTOR != 0 && length - start < span)");
    kg_cuda_call_body(code, writer->plan->group, name, "false, INDEX, true");
    kg_code_line(code, "return;");
    kg_code_close(code);
    kg_code_close(code);
    kg_code_line(code, "if (CUT && length - start >= span)");
    kg_code_line(code, "    continue;");
}

static void emit_columns(struct kg_cuda_pointwise_writer *writer, const char *name)
{
    struct kg_code *code = &writer->code;
    for (int i = 0; i < writer->slots.count; i++) {
        if (writer->slots.items[i].moves)
            continue;
        kg_cuda_pointwise_declare(writer, i);
        kg_cuda_pointwise_fill(writer, i);
    }
    kg_code_line(code, "const INDEX span = (ROWS - 1) * across + VECTOR;");
    kg_code_open(code, "for (INDEX start = blockIdx.x * across * ROWS + (WHOLE || CUT ? VECTOR * "
                       "(int)threadIdx.x : (int)threadIdx.x); start < length; "
                       "start += gridDim.x * across * ROWS)");
    emit_cut(writer, name);
    emit_loads(writer);
    emit_computation(writer);
    close_round(code);
}

static void emit_body(struct kg_code *code, const struct kg_cuda_pointwise_plan *plan,
                      const char *name)
{
    struct kg_cuda_pointwise_writer writer = {.plan = plan, .code = *code};
    writer.names = (struct kg_emit_names){
        .user = &writer,
        .contiguous = plan->group->problem->contiguous,
        .axis = print_axis,
        .read = read_value,
        .narrow = kg_group_narrow(plan->group),
    };
    kg_cuda_pointwise_find_slots(plan, &writer.slots);
    kg_cuda_open_body_in(&writer.code, plan->group, name,
                         kg_cuda_pointwise_is_line(plan)
                             ? "bool WHOLE, typename INDEX, bool CUT = false"
                             : "bool WHOLE, typename INDEX",
                         "INDEX");
    if (plan->tile) {
        kg_cuda_pointwise_tiles(&writer);
        kg_code_close(&writer.code);
        return;
    }
    kg_code_line(&writer.code, "enum { VECTOR = %d, ROWS = %d, CACHE = %d };", plan->vector,
                 plan->rows, plan->stream);
    if (plan->last)
        kg_code_line(&writer.code, "enum { LAST = %d };", plan->last);
    emit_constant(&writer, "length", print_columns);
    if (has_rows(plan))
        emit_constant(&writer, "rows", print_rows);
    kg_code_line(&writer.code, "const int step = %s ? 1 : (int)blockDim.x;",
                 kg_cuda_pointwise_is_line(plan) ? "WHOLE || CUT" : "WHOLE");
    kg_code_line(&writer.code, "const INDEX across = (INDEX)blockDim.x * VECTOR;");
    if (has_rows(plan))
        emit_rows(&writer);
    else
        emit_columns(&writer, name);
    kg_code_close(&writer.code);
}

void kg_cuda_pointwise_emit(struct kg_text *text, const struct kg_cuda_pointwise_plan *plan,
                            const struct kg_cuda_pointwise_plan *any)
{
    static const char *const preludes[] = {"cuda/vectors.cuh", "cuda/index.cuh",
                                           "cuda/predicated.cuh", "cuda/tile.cuh"};
    static const char *const values[] = {"true, int64_t", "false, int64_t", "true, int"};
    struct kg_code code = {text, 0};
    struct kg_text round = {0};
    const char *name = plan->entry;
    int count = kg_cuda_pointwise_simple(plan->group) ? 3 : 2;
    for (size_t i = 0; i < sizeof preludes / sizeof preludes[0]; i++) {
        kg_text_add(text, kg_skeleton_find(preludes[i]));
        kg_text_add(text, "\n");
    }
    if (plan->last) {
        kg_text_format(&round, "%s_%d", plan->entry, plan->last);
        name = kg_text_string(&round);
        emit_body(&code, plan, name);
        kg_text_add(text, "\n");
    }
    emit_body(&code, any, plan->entry);
    for (int i = 0; i < count; i++)
        kg_cuda_waiting_function(&code, plan->group, plan->entry, i, plan->threads, plan->registers,
                                 i == 1 ? any->entry : name, values[i]);
    text->failed |= round.failed;
    kg_text_free(&round);
}
