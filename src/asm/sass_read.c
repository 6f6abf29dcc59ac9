// Turns the code of a kernel into its facts: first the control flow, then the sums of every block.
// Nothing is stored per instruction, because code of many megabytes is common.

#include "asm/sass.h"

#include "asm/weigh.h"

#include <string.h>

struct reader {
    const struct kg_sass_code *code;
    struct kg_asm_kernel *kernel;
    const int32_t *spills; // those not reached yet
    int32_t spill_count;
    int64_t histogram[KG_SASS_OPCODES];
};

struct stepped {
    const struct kg_sass_code *code;
    const struct kg_sass_table *tables;
    int32_t table_count;
};

static struct kg_step step_of(const void *of, int32_t index)
{
    const struct stepped *stepped = of;
    return kg_sass_step(stepped->code, index, stepped->tables, stepped->table_count);
}

// Stall cycles in the facts include the instruction's own issue slot, as the encoded count does. A
// count of 0 (the pair issues together, which no code since sm_75 does) is taken as 1.
static double stall_cycles(const struct kg_sass *sass)
{
    return sass->stall > 0 ? sass->stall : 1;
}

static void add_instruction(const struct kg_sass *sass, struct kg_mix *mix,
                            struct kg_asm_block *block)
{
    mix->count[sass->work]++;
    mix->guarded[sass->work] += sass->guarded;
    mix->bytes[sass->work] += sass->bytes;
    mix->flops += sass->flops;
    mix->tensor_flops += sass->tensor_flops;
    block->issue_cycles++;
    block->stall_cycles += stall_cycles(sass);
}

static bool is_spill(struct reader *reader, int32_t index)
{
    while (reader->spill_count > 0 && *reader->spills < index) {
        reader->spills++;
        reader->spill_count--;
    }
    return reader->spill_count > 0 && *reader->spills == index;
}

static void add_spill(const struct kg_sass *sass, struct kg_asm_loop *loop,
                      struct kg_asm_kernel *kernel)
{
    int64_t bytes = (int64_t)sass->bytes;
    bool store = sass->work == KG_WORK_STORE_LOCAL;
    *(store ? &kernel->spill_store_bytes : &kernel->spill_load_bytes) += bytes;
    if (!loop)
        return;
    (*(store ? &loop->spill_stores : &loop->spill_loads))++;
    loop->spill_bytes += bytes;
}

static bool read_block(struct reader *reader, struct kg_arena *arena, int32_t index)
{
    struct kg_asm_kernel *kernel = reader->kernel;
    const struct kg_flow_block *flow = &kernel->flow.blocks[index];
    struct kg_asm_loop *loop = flow->loop >= 0 ? &kernel->loops[flow->loop] : NULL;
    struct kg_mix mix = {0};
    for (int32_t i = flow->first; i < flow->first + flow->count; i++) {
        struct kg_sass sass;
        kg_sass_decode(kg_sass_word_at(reader->code->bytes + (size_t)i * KG_SASS_SIZE),
                       reader->code->sm, &sass);
        reader->histogram[sass.index]++;
        add_instruction(&sass, &mix, &kernel->blocks[index]);
        if (is_spill(reader, i))
            add_spill(&sass, loop, kernel);
    }
    return kg_asm_block_fill(&kernel->blocks[index], &mix, arena);
}

static void place_loops(const struct kg_sass_code *code, struct kg_asm_kernel *kernel)
{
    const struct kg_flow *flow = &kernel->flow;
    for (int32_t l = 0; l < flow->loop_count; l++) {
        const struct kg_flow_loop *body = &flow->loops[l];
        const struct kg_flow_block *first = &flow->blocks[body->blocks[0]];
        const struct kg_flow_block *last = &flow->blocks[body->blocks[body->block_count - 1]];
        struct kg_asm_loop *loop = &kernel->loops[l];
        loop->first = (int64_t)first->first * KG_SASS_SIZE;
        loop->last = ((int64_t)last->first + last->count - 1) * KG_SASS_SIZE;
        loop->trips = kg_sass_trips(code, flow, l);
        loop->kind = loop->trips > 0 ? KG_TRIPS_CONSTANT : KG_TRIPS_UNKNOWN;
    }
}

// Opcodes with equal names share one entry.
static void add_name(struct kg_asm_kernel *kernel, const char *name, int64_t count)
{
    int at = 0;
    while (at < kernel->opcode_count && strcmp(kernel->opcodes[at].name, name) < 0)
        at++;
    if (at < kernel->opcode_count && strcmp(kernel->opcodes[at].name, name) == 0) {
        kernel->opcodes[at].count += count;
        return;
    }
    memmove(&kernel->opcodes[at + 1], &kernel->opcodes[at],
            (size_t)(kernel->opcode_count - at) * sizeof kernel->opcodes[0]);
    kernel->opcodes[at] = (struct kg_asm_count){name, count};
    kernel->opcode_count++;
}

static bool list_opcodes(const struct reader *reader, struct kg_arena *arena)
{
    int used = 0;
    for (int i = 0; i < KG_SASS_OPCODES; i++)
        used += reader->histogram[i] > 0;
    reader->kernel->opcodes = KG_NEW_ARRAY(arena, used + 1, struct kg_asm_count);
    reader->kernel->opcode_count = 0;
    if (!reader->kernel->opcodes)
        return false;
    for (int i = 0; i < KG_SASS_OPCODES; i++)
        if (reader->histogram[i] > 0)
            add_name(reader->kernel, kg_sass_opcode_at(i)->name, reader->histogram[i]);
    return true;
}

bool kg_sass_read(const struct kg_sass_code *code, const struct kg_sass_table *tables,
                  int32_t table_count, const int32_t *spills, int32_t spill_count,
                  struct kg_arena *arena, struct kg_asm_kernel *kernel)
{
    kernel->instructions = code->count;
    kernel->spill_store_bytes = kernel->spill_load_bytes = 0;
    const struct stepped stepped = {code, tables, table_count};
    const struct kg_flow_code flow = {step_of, &stepped, code->count};
    if (!kg_flow_find_in(&flow, arena, &kernel->flow))
        return false;
    kernel->blocks = KG_NEW_ARRAY(arena, kernel->flow.block_count, struct kg_asm_block);
    kernel->loops = KG_NEW_ARRAY(arena, kernel->flow.loop_count, struct kg_asm_loop);
    if (!kernel->blocks || !kernel->loops)
        return false;
    struct reader reader = {
        .code = code, .kernel = kernel, .spills = spills, .spill_count = spill_count};
    for (int32_t b = 0; b < kernel->flow.block_count; b++)
        if (!read_block(&reader, arena, b))
            return false;
    place_loops(code, kernel);
    kg_asm_weigh(kernel);
    return list_opcodes(&reader, arena);
}
