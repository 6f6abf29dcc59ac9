// Tiles of the pointwise family for CUDA: for transposes, where some tensor follows another axis
// in memory than the output does. A block of threads reads a square of such a tensor along the
// tensor's own axis into shared memory, 16 bytes an access, and takes its elements from there along
// the columns; all else is read as without tiles. Lines and vectors of a square are dealt to the
// threads in turn, so that each access of a warp covers whole sectors on both sides.
//
// Blocks go through stripes of some tiles across, line by line: those at work at the same time make
// about a square, so that neither side is spread over more pages of memory than it need be.

#include "gen/cuda/pointwise/cuda_pointwise.h"

// Axis `axis` is neither merged into another nor one of the two sides.
static bool is_outer(const struct kg_cuda_pointwise_plan *plan, int axis)
{
    return axis < plan->run && axis != plan->across && !plan->merged[axis];
}

static void emit_length(struct kg_cuda_pointwise_writer *writer, const char *name, int axis)
{
    kg_code_begin(&writer->code);
    kg_text_format(writer->code.text, "const INDEX %s = ", name);
    kg_cuda_pointwise_length(writer->code.text, writer->plan, axis);
    kg_text_add(writer->code.text, ";");
    kg_code_end(&writer->code);
}

static void emit_sizes(struct kg_cuda_pointwise_writer *writer)
{
    const struct kg_cuda_pointwise_plan *plan = writer->plan;
    struct kg_code *code = &writer->code;
    kg_code_line(code, "enum { SIDE = %d, THREADS = %d, CACHE = %d, VECTOR = WHOLE ? %d : 1 };",
                 plan->tile, plan->threads, plan->stream, plan->vector);
    kg_code_line(code, "enum { ROWS = SIDE * SIDE / VECTOR / THREADS, STRIPE = 32 };");
    for (int i = 0; i < writer->slots.count; i++) {
        const struct kg_tensor *tensor = writer->slots.items[i].access->tensor;
        if (writer->slots.items[i].kind == KG_CUDA_SLOT_TILE)
            kg_code_line(code, "__shared__ alignas(16) %s tile%d[SIDE * (SIDE + 4)];",
                         kg_emit_tensor_storage(tensor), i);
    }
    emit_length(writer, "length", plan->axes - 1);
    emit_length(writer, "depth", plan->across);
    kg_code_line(code, "const INDEX wide = (length + SIDE - 1) / SIDE;");
    kg_code_line(code, "const INDEX high = (depth + SIDE - 1) / SIDE;");
    kg_code_begin(code);
    kg_text_add(code->text, "const INDEX tiles = wide * high");
    for (int axis = 0; axis < plan->run; axis++) {
        if (!is_outer(plan, axis))
            continue;
        kg_text_add(code->text, " * (INDEX)(");
        kg_cuda_pointwise_length(code->text, plan, axis);
        kg_text_add(code->text, ")");
    }
    kg_text_add(code->text, ";");
    kg_code_end(code);
}

static int count_outer(const struct kg_cuda_pointwise_plan *plan)
{
    int count = 0;
    for (int axis = 0; axis < plan->run; axis++)
        count += is_outer(plan, axis);
    return count;
}

// Where the tile begins: `line` along the other axis, `column`; and the axes around it.
static void emit_place(struct kg_cuda_pointwise_writer *writer)
{
    const struct kg_cuda_pointwise_plan *plan = writer->plan;
    struct kg_code *code = &writer->code;
    int left = count_outer(plan);
    if (left > 0)
        kg_code_line(code, "INDEX rest = item;");
    kg_code_line(code, "INDEX inner = %s, outer = 0, across = 0;",
                 left > 0 ? "kg_take(&rest, wide * high)" : "item");
    kg_code_open(code, "if (wide > 1)"); // else there is nothing to divide
    kg_code_line(code, "outer = inner;");
    kg_code_line(code, "inner = kg_take(&outer, STRIPE * high);");
    kg_code_line(code, "const INDEX left = wide - outer * STRIPE;");
    kg_code_line(code, "across = kg_take(&inner, left < STRIPE ? left : STRIPE);");
    kg_code_close(code);
    kg_code_line(code, "const INDEX column = (outer * STRIPE + across) * SIDE;");
    kg_code_line(code, "const INDEX line = inner * SIDE;");
    for (int axis = plan->run - 1; axis >= 0; axis--) {
        if (!is_outer(plan, axis))
            continue;
        kg_code_begin(code);
        kg_text_format(code->text, "const INDEX i%d = ", axis);
        if (--left > 0) {
            kg_text_add(code->text, "kg_take(&rest, ");
            kg_cuda_pointwise_length(code->text, plan, axis);
            kg_text_add(code->text, ");");
        } else {
            kg_text_add(code->text, "rest;");
        }
        kg_code_end(code);
    }
}

// Fills a tile in: all loads first, then what they bring goes where it is looked for.
static void emit_tile(struct kg_cuda_pointwise_writer *writer, int i)
{
    const struct kg_cuda_slot *slot = &writer->slots.items[i];
    const struct kg_tensor *tensor = slot->access->tensor;
    const char *storage = kg_emit_tensor_storage(tensor);
    struct kg_code *code = &writer->code;
    struct kg_text *text = code->text;
    kg_code_line(code,
                 "enum { WIDTH%d = WHOLE ? %d : 1, LINES%d = SIDE * SIDE / WIDTH%d / THREADS };", i,
                 kg_cuda_pointwise_piece(tensor), i, i);
    kg_code_line(code, "kg_vec<%s, WIDTH%d> take%d[LINES%d];", storage, i, i, i);
    kg_code_line(code, "#pragma unroll");
    kg_code_open(code, "for (int part = 0; part < LINES%d; part++)", i);
    kg_code_line(code, "const unsigned spot = part * THREADS + threadIdx.x;");
    kg_code_line(code, "const INDEX i%d = column + spot / (SIDE / WIDTH%d);",
                 writer->plan->axes - 1, i);
    kg_code_line(code, "const INDEX i%d = line + spot %% (SIDE / WIDTH%d) * WIDTH%d;",
                 writer->plan->across, i, i);
    kg_code_line(code, "if (i%d < length && i%d < depth)", writer->plan->axes - 1,
                 writer->plan->across);
    kg_code_begin(code);
    kg_text_format(text, "    take%d[part] = kg_load_predicated<WHOLE, CACHE, WIDTH%d>(", i, i);
    kg_emit_name(text, tensor->name);
    kg_text_add(text, " + ");
    writer->nest = slot->nest;
    writer->loading = true;
    kg_cuda_pointwise_offset(text, writer, slot->nest, slot->access);
    writer->loading = false;
    kg_text_add(text, ", 1, 1, 1);");
    kg_code_end(code);
    kg_code_close(code);
}

static void emit_exchange(struct kg_cuda_pointwise_writer *writer, int i)
{
    const char *storage = kg_emit_tensor_storage(writer->slots.items[i].access->tensor);
    struct kg_code *code = &writer->code;
    kg_code_line(code, "#pragma unroll");
    kg_code_open(code, "for (int part = 0; part < LINES%d; part++)", i);
    kg_code_line(code, "const unsigned spot = part * THREADS + threadIdx.x;");
    kg_code_line(code, "const unsigned across = spot / (SIDE / WIDTH%d);", i);
    kg_code_line(code, "const unsigned along = spot %% (SIDE / WIDTH%d) * WIDTH%d;", i, i);
    kg_code_line(code,
                 "kg_tile_fill(&tile%d[kg_tile_at<WHOLE, SIDE, VECTOR, %s>(across, 0, along)], "
                 "take%d[part]);",
                 i, storage, i);
    kg_code_close(code);
}

// Opens the loop over the vectors of a thread.
static void open_vectors(struct kg_cuda_pointwise_writer *writer)
{
    struct kg_code *code = &writer->code;
    kg_code_line(code, "#pragma unroll");
    kg_code_open(code, "for (int part = 0; part < ROWS; part++)");
    kg_code_line(code, "const unsigned spot = part * THREADS + threadIdx.x;");
    kg_code_line(code, "const unsigned across = spot %% (SIDE / VECTOR) * VECTOR;");
    kg_code_line(code, "const unsigned along = spot / (SIDE / VECTOR);");
    kg_code_line(code, "const INDEX first = column + across, i%d = line + along;",
                 writer->plan->across);
    kg_code_line(code, "if (first >= length || i%d >= depth)", writer->plan->across);
    kg_code_line(code, "    continue;");
}

static void emit_loads(struct kg_cuda_pointwise_writer *writer)
{
    const struct kg_cuda_slots *slots = &writer->slots;
    bool any = false;
    for (int i = 0; i < slots->count; i++) {
        if (slots->items[i].kind == KG_CUDA_SLOT_TILE)
            continue;
        kg_cuda_pointwise_declare(writer, i);
        if (slots->items[i].moves)
            any = true;
        else
            kg_cuda_pointwise_fill(writer, i);
    }
    if (!any)
        return;
    open_vectors(writer);
    for (int i = 0; i < slots->count; i++)
        if (slots->items[i].kind != KG_CUDA_SLOT_TILE && slots->items[i].moves)
            kg_cuda_pointwise_fill(writer, i);
    kg_code_close(&writer->code);
}

void kg_cuda_pointwise_tiles(struct kg_cuda_pointwise_writer *writer)
{
    struct kg_code *code = &writer->code;
    emit_sizes(writer);
    kg_code_line(code, "const int step = 1;");
    kg_code_open(code, "for (INDEX item = blockIdx.x; item < tiles; item += gridDim.x)");
    emit_place(writer);
    for (int i = 0; i < writer->slots.count; i++)
        if (writer->slots.items[i].kind == KG_CUDA_SLOT_TILE)
            emit_tile(writer, i);
    emit_loads(writer);
    // Keeps the loads together: to save registers, compilers would wait for one before the next.
    kg_code_line(code, "__syncwarp();");
    for (int i = 0; i < writer->slots.count; i++)
        if (writer->slots.items[i].kind == KG_CUDA_SLOT_TILE)
            emit_exchange(writer, i);
    kg_code_line(code, "__syncthreads();");
    open_vectors(writer);
    kg_cuda_pointwise_compute(writer);
    kg_code_close(code);
    kg_code_line(code, "if (sizeof(INDEX) < sizeof(int64_t))");
    kg_code_line(code, "    break; // the grid covers everything");
    kg_code_line(code, "__syncthreads();");
    kg_code_close(code);
}
