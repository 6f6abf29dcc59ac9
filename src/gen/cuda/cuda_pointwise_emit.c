// The code of the pointwise family for CUDA: see cuda_pointwise.c for what it does and when.

#include "gen/cuda/cuda_pointwise.h"

#include "gen/axes.h"
#include "gen/cuda/cuda_frame.h"
#include "gen/direct.h"
#include "gen/skeleton.h"

#include <stdio.h>

// A read that a thread makes before it computes.
struct slot {
    const struct kg_nest *nest;
    const struct kg_access *access;
    bool walks; // along the columns: a vector; else one value
    bool moves; // with the rows: one for each
};

enum { MOST_SLOTS = 48 };

struct writer {
    const struct kg_cuda_pointwise_plan *plan;
    struct kg_code code;
    struct kg_emit_names names; // what is being printed: see read_value
    const struct kg_nest *nest; // whose formula is being printed
    bool loading;               // slots are being filled: reads inside subscripts are plain loads
    int slot_count;
    struct slot slots[MOST_SLOTS];
};

static const struct kg_nest *nest_at(const struct kg_cuda_pointwise_plan *plan, int i)
{
    return kg_pointwise_nest(plan->group, i);
}

static bool has_rows(const struct kg_cuda_pointwise_plan *plan)
{
    return plan->run > 0;
}

// ---- Which reads are vectors ----

static bool uses_axes(const struct kg_access *access, int first, int last)
{
    for (int dim = 0; dim < access->tensor->rank; dim++)
        for (int axis = first; axis <= last; axis++)
            if (kg_expr_uses(access->map[dim].subscript, axis, true))
                return true;
    return false;
}

// Bits of the dimensions that count in an offset: those of axes merged into the next do not.
static unsigned counted_dims(const struct kg_cuda_pointwise_plan *plan,
                             const struct kg_access *access)
{
    unsigned dims = 0;
    for (int dim = 0; dim < access->tensor->rank; dim++) {
        bool skipped = false;
        for (int axis = 0; axis < plan->axes; axis++)
            skipped |= plan->merged[axis] && kg_pointwise_bare(access, dim, axis);
        dims |= (unsigned)!skipped << dim;
    }
    return dims;
}

static unsigned output_dims(const struct kg_cuda_pointwise_plan *plan)
{
    unsigned dims = 0;
    for (int axis = 0; axis < plan->axes; axis++)
        dims |= (unsigned)!plan->merged[axis] << axis;
    return dims;
}

static bool walks(const struct kg_cuda_pointwise_plan *plan, const struct kg_access *access)
{
    int last = access->tensor->rank - 1, column = plan->axes - 1;
    if (last < 0 || column < 0 || kg_direct_is_packed(access->tensor) ||
        !kg_pointwise_bare(access, last, column))
        return false;
    for (int dim = 0; dim < last; dim++)
        if ((counted_dims(plan, access) >> dim & 1) &&
            kg_expr_uses(access->map[dim].subscript, column, true))
            return false;
    return true;
}

int kg_cuda_pointwise_alignment(const struct kg_cuda_pointwise_plan *plan, int64_t columns)
{
    const struct kg_problem *problem = plan->group->problem;
    int alignment = 1;
    if (columns % plan->vector != 0)
        return 0;
    for (int i = 0; i < plan->group->count; i++) {
        const struct kg_nest *nest = nest_at(plan, i);
        for (int j = 0; j <= nest->access_count; j++) {
            bool is_output = j == nest->access_count;
            const struct kg_access *access = is_output ? NULL : &nest->accesses[j];
            const struct kg_tensor *tensor = is_output ? nest->output : access->tensor;
            if (is_output ? kg_group_is_private(plan->group, tensor)
                          : kg_pointwise_producer(plan->group, tensor, plan->group->count) >= 0 ||
                                access->read->pad || !walks(plan, access))
                continue;
            unsigned dims = is_output ? output_dims(plan) : counted_dims(plan, access);
            if (!kg_cuda_is_whole(problem, tensor, dims, plan->vector))
                return 0;
            int bytes = kg_cuda_alignment(tensor, plan->vector);
            alignment = bytes > alignment ? bytes : alignment;
        }
    }
    return alignment;
}

// The slot of a read, or -1: it is made where it is used.
static int slot_of(const struct writer *writer, const struct kg_access *access)
{
    for (int i = 0; i < writer->slot_count; i++)
        if (access == writer->slots[i].access ||
            (!access->read->pad && kg_access_same(access, writer->slots[i].access)))
            return i;
    return -1;
}

static void find_slots(struct writer *writer)
{
    const struct kg_cuda_pointwise_plan *plan = writer->plan;
    for (int i = 0; i < plan->group->count; i++) {
        const struct kg_nest *nest = nest_at(plan, i);
        for (int j = 0; j < nest->access_count; j++) {
            const struct kg_access *access = &nest->accesses[j];
            if (access->read->pad || writer->slot_count == MOST_SLOTS ||
                kg_pointwise_producer(plan->group, access->tensor, plan->group->count) >= 0 ||
                slot_of(writer, access) >= 0)
                continue;
            bool walking = walks(plan, access);
            if (!walking && uses_axes(access, plan->run > 0 ? plan->run : 0, plan->axes - 1))
                continue;
            writer->slots[writer->slot_count++] = (struct slot){
                .nest = nest,
                .access = access,
                .walks = walking,
                .moves = !has_rows(plan) ? walking : uses_axes(access, 0, plan->run - 1),
            };
        }
    }
}

// ---- Values ----

static void print_slot(struct kg_text *text, const struct writer *writer, int i)
{
    const struct slot *slot = &writer->slots[i];
    const char *which = slot->moves ? "[part]" : "";
    if (!slot->walks) {
        kg_text_format(text, "from%d%s", i, which);
        return;
    }
    char base[32];
    snprintf(base, sizeof base, "take%d%s.at", i, which);
    kg_emit_load_at(text, slot->access->tensor, base, "lane");
}

static void print_value_name(struct kg_text *text, const struct writer *writer, int position)
{
    const struct kg_tensor *output = nest_at(writer->plan, position)->output;
    if (kg_group_is_private(writer->plan->group, output))
        kg_emit_name(text, output->name);
    else
        kg_text_format(text, "v%d", position);
}

static void print_offset(struct kg_text *text, struct writer *writer, const struct kg_nest *nest,
                         const struct kg_access *access)
{
    kg_emit_offset_part(text, nest, access, counted_dims(writer->plan, access), &writer->names);
}

static bool read_value(void *user, struct kg_text *text, const struct kg_access *access)
{
    struct writer *writer = user;
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
    print_offset(&offset, writer, writer->nest, access);
    kg_emit_load_at(text, access->tensor, kg_text_string(&base), kg_text_string(&offset));
    text->failed |= base.failed | offset.failed;
    kg_text_free(&base);
    kg_text_free(&offset);
    return true;
}

// ---- Places ----

// The length of an axis with all that is merged into it.
static void print_length(struct kg_text *text, const struct kg_cuda_pointwise_plan *plan, int axis)
{
    int first = axis;
    while (first > 0 && plan->merged[first - 1])
        first--;
    kg_axes_product(text, nest_at(plan, 0), first, axis);
}

// Declares the axes before the columns, from `row`.
static void emit_row_axes(struct writer *writer)
{
    const struct kg_cuda_pointwise_plan *plan = writer->plan;
    struct kg_code *code = &writer->code;
    int outermost = 0;
    while (plan->merged[outermost])
        outermost++;
    if (outermost < plan->run - 1)
        kg_code_line(code, "int64_t rest = row;");
    for (int axis = plan->run - 1; axis >= 0; axis--) {
        if (plan->merged[axis])
            continue;
        kg_code_begin(code);
        kg_text_format(code->text, "const int64_t i%d = ", axis);
        if (axis == outermost) {
            kg_text_add(code->text, outermost < plan->run - 1 ? "rest;" : "row;");
        } else {
            kg_text_add(code->text, "kg_take(&rest, ");
            print_length(code->text, plan, axis);
            kg_text_add(code->text, ");");
        }
        kg_code_end(code);
    }
}

// ---- The code ----

static void emit_constant(struct writer *writer, const char *name, void (*print)(struct writer *))
{
    kg_code_begin(&writer->code);
    kg_text_format(writer->code.text, "const int64_t %s = ", name);
    print(writer);
    kg_text_add(writer->code.text, ";");
    kg_code_end(&writer->code);
}

static void print_columns(struct writer *writer)
{
    const struct kg_cuda_pointwise_plan *plan = writer->plan;
    if (plan->axes > 0)
        print_length(writer->code.text, plan, plan->axes - 1);
    else
        kg_text_add(writer->code.text, "1");
}

static void print_rows(struct writer *writer)
{
    kg_axes_product(writer->code.text, nest_at(writer->plan, 0), 0, writer->plan->run - 1);
}

static void declare_slot(struct writer *writer, int i)
{
    const struct slot *slot = &writer->slots[i];
    const struct kg_tensor *tensor = slot->access->tensor;
    const char *which = slot->moves ? "[ROWS]" : "";
    if (slot->walks)
        kg_code_line(&writer->code, "kg_vec<%s, VECTOR> take%d%s;", kg_emit_tensor_storage(tensor),
                     i, which);
    else
        kg_code_line(&writer->code, "%s from%d%s;", kg_emit_type(tensor->compute), i, which);
}

static void fill_slot(struct writer *writer, int i)
{
    const struct slot *slot = &writer->slots[i];
    const struct kg_tensor *tensor = slot->access->tensor;
    const char *which = slot->moves ? "[part]" : "";
    struct kg_text base = {0}, offset = {0};
    writer->nest = slot->nest;
    writer->loading = true;
    kg_emit_name(&base, tensor->name);
    print_offset(&offset, writer, slot->nest, slot->access);
    writer->loading = false;
    kg_code_begin(&writer->code);
    if (slot->walks) {
        kg_text_format(writer->code.text, "take%d%s = kg_take_vec<WHOLE, CACHE, VECTOR>(%s + %s, ",
                       i, which, kg_text_string(&base), kg_text_string(&offset));
        if (writer->names.contiguous)
            kg_text_add(writer->code.text, "1");
        else
            kg_text_format(writer->code.text, "%s_s%d", kg_text_string(&base), tensor->rank - 1);
        kg_text_add(writer->code.text, ", step, length - first);");
    } else {
        kg_text_format(writer->code.text, "from%d%s = ", i, which);
        kg_emit_load_at(writer->code.text, tensor, kg_text_string(&base), kg_text_string(&offset));
        kg_text_add(writer->code.text, ";");
    }
    kg_code_end(&writer->code);
    writer->code.text->failed |= base.failed | offset.failed;
    kg_text_free(&base);
    kg_text_free(&offset);
}

static bool has_slots(const struct writer *writer, bool moving)
{
    for (int i = 0; i < writer->slot_count; i++)
        if (writer->slots[i].moves == moving)
            return true;
    return false;
}

// `first`, the first column of a vector, is the value of the last axis while places are printed.
static void print_axis(void *user, struct kg_text *text, int axis)
{
    const struct writer *writer = user;
    if (axis == writer->plan->axes - 1 && writer->loading)
        kg_text_add(text, "first");
    else
        kg_text_format(text, "i%d", axis);
}

// Opens the loop over the vectors of a thread, and what tells whether this one is there.
static void open_parts(struct writer *writer)
{
    struct kg_code *code = &writer->code;
    kg_code_line(code, "#pragma unroll");
    kg_code_open(code, "for (int part = 0; part < ROWS; part++)");
    if (has_rows(writer->plan)) {
        kg_code_line(code, "const int64_t row = start + part * (int)blockDim.y;");
        kg_code_line(code, "if (row >= rows)");
        kg_code_line(code, "    break;");
    } else {
        kg_code_line(code, "const int64_t first = start + part * across;");
        kg_code_line(code, "if (first >= length)");
        kg_code_line(code, "    break;");
    }
}

static void emit_loads(struct writer *writer)
{
    if (!has_slots(writer, true))
        return;
    for (int i = 0; i < writer->slot_count; i++)
        if (writer->slots[i].moves)
            declare_slot(writer, i);
    open_parts(writer);
    emit_row_axes(writer);
    for (int i = 0; i < writer->slot_count; i++)
        if (writer->slots[i].moves)
            fill_slot(writer, i);
    kg_code_close(&writer->code);
}

static void emit_value(struct writer *writer, int position)
{
    const struct kg_nest *nest = nest_at(writer->plan, position);
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

static void emit_stores(struct writer *writer)
{
    const struct kg_cuda_pointwise_plan *plan = writer->plan;
    struct kg_text *text = writer->code.text;
    for (int i = 0; i < plan->group->count; i++) {
        const struct kg_tensor *output = nest_at(plan, i)->output;
        if (kg_group_is_private(plan->group, output))
            continue;
        kg_code_begin(&writer->code);
        kg_text_add(text, "kg_give_vec<WHOLE, CACHE>(");
        kg_emit_name(text, output->name);
        kg_text_add(text, " + ");
        writer->loading = true;
        kg_emit_output_offset_part(text, nest_at(plan, i), output_dims(plan), &writer->names);
        writer->loading = false;
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

static void emit_computation(struct writer *writer)
{
    const struct kg_cuda_pointwise_plan *plan = writer->plan;
    struct kg_code *code = &writer->code;
    open_parts(writer);
    emit_row_axes(writer);
    for (int i = 0; i < plan->group->count; i++)
        if (!kg_group_is_private(plan->group, nest_at(plan, i)->output))
            kg_code_line(code, "kg_vec<%s, VECTOR> place%d;",
                         kg_emit_tensor_storage(nest_at(plan, i)->output), i);
    kg_code_line(code, "#pragma unroll");
    kg_code_open(code, "for (int lane = 0; lane < VECTOR; lane++)");
    if (plan->axes > 0) {
        kg_code_line(code, "const int64_t i%d = first + lane * step;", plan->axes - 1);
        kg_code_line(code, "if (!WHOLE && i%d >= length)", plan->axes - 1);
        kg_code_line(code, "    break;");
    }
    for (int i = 0; i < plan->group->count; i++)
        emit_value(writer, i);
    kg_code_close(code);
    emit_stores(writer);
    kg_code_close(code);
}

// One block of threads, and the blocks that follow where the grid is not large enough.
static void emit_rows(struct writer *writer)
{
    struct kg_code *code = &writer->code;
    kg_code_open(code, "for (int64_t begin = blockIdx.y * across; begin < length; "
                       "begin += gridDim.y * across)");
    kg_code_line(code, "const int64_t first = begin + (WHOLE ? VECTOR * (int)threadIdx.x "
                       ": (int)threadIdx.x);");
    kg_code_line(code, "if (first >= length)");
    kg_code_line(code, "    break;");
    for (int i = 0; i < writer->slot_count; i++) {
        if (writer->slots[i].moves)
            continue;
        declare_slot(writer, i);
        fill_slot(writer, i);
    }
    kg_code_line(code, "const int64_t along = (int64_t)blockDim.y * ROWS;");
    kg_code_open(code, "for (int64_t start = blockIdx.x * along + threadIdx.y; start < rows; "
                       "start += gridDim.x * along)");
    emit_loads(writer);
    emit_computation(writer);
    kg_code_close(code);
    kg_code_close(code);
}

static void emit_columns(struct writer *writer)
{
    struct kg_code *code = &writer->code;
    for (int i = 0; i < writer->slot_count; i++) {
        if (writer->slots[i].moves)
            continue;
        declare_slot(writer, i);
        fill_slot(writer, i);
    }
    kg_code_open(code, "for (int64_t start = blockIdx.x * across * ROWS + (WHOLE ? VECTOR * "
                       "(int)threadIdx.x : (int)threadIdx.x); start < length; "
                       "start += gridDim.x * across * ROWS)");
    emit_loads(writer);
    emit_computation(writer);
    kg_code_close(code);
}

void kg_cuda_pointwise_emit(struct kg_text *text, const struct kg_cuda_pointwise_plan *plan)
{
    struct writer writer = {.plan = plan, .code = {text, 0}};
    struct kg_code *code = &writer.code;
    writer.names = (struct kg_emit_names){
        .user = &writer,
        .contiguous = plan->group->problem->contiguous,
        .axis = print_axis,
        .read = read_value,
    };
    find_slots(&writer);
    kg_text_add(text, kg_skeleton_find("cuda/vectors.cuh"));
    kg_text_add(text, "\n");
    kg_text_add(text, kg_skeleton_find("cuda/index.cuh"));
    kg_text_add(text, "\n");
    kg_text_add(text, kg_skeleton_find("cuda/pieces.cuh"));
    kg_text_add(text, "\n");
    kg_cuda_open_body(code, plan->group, plan->entry, "bool WHOLE");
    kg_code_line(code, "enum { VECTOR = %d, ROWS = %d, CACHE = %d };", plan->vector, plan->rows,
                 plan->stream);
    emit_constant(&writer, "length", print_columns);
    if (has_rows(plan))
        emit_constant(&writer, "rows", print_rows);
    kg_code_line(code, "const int step = WHOLE ? 1 : (int)blockDim.x;");
    kg_code_line(code, "const int64_t across = (int64_t)blockDim.x * VECTOR;");
    if (has_rows(plan))
        emit_rows(&writer);
    else
        emit_columns(&writer);
    kg_code_close(code);
    for (int i = 0; i < 2; i++)
        kg_cuda_function(code, plan->group, plan->entry, i, plan->threads, plan->registers,
                         i == 0 ? "true" : "false");
}
