// Basic blocks and loops of a function, and sums over them.

#include "asm/object_facts.h"

#include "asm/weigh.h"

#include <stdlib.h>
#include <string.h>

static int32_t find_step(const struct kg_x86_step *steps, int32_t count, uint64_t offset)
{
    int32_t low = 0, high = count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (steps[middle].offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && steps[low].offset == offset ? low : -1;
}

// Jumps out of the function, or into the middle of an instruction, count as exits.
static bool find_flow(const struct kg_x86_step *steps, int32_t count, struct kg_arena *arena,
                      struct kg_flow *flow)
{
    struct kg_step *ways = calloc((size_t)count + 1, sizeof *ways);
    if (!ways)
        return false;
    for (int32_t i = 0; i < count; i++) {
        ways[i].kind = steps[i].kind;
        if (!steps[i].has_target)
            continue;
        ways[i].target = find_step(steps, count, steps[i].target);
        if (ways[i].target < 0)
            ways[i].kind = steps[i].falls_apart ? KG_STEP_MAYBE_END : KG_STEP_END;
    }
    bool found = kg_flow_find(ways, count, arena, flow);
    free(ways);
    return found;
}

static void add_step(struct kg_mix *mix, const struct kg_x86_step *step)
{
    mix->count[step->work]++;
    mix->flops += step->flops;
    // The memory operand of an instruction that another class counts.
    if (step->loads)
        mix->bytes[step->spill ? KG_WORK_LOAD_LOCAL : KG_WORK_LOAD_GLOBAL] += step->bytes;
    if (step->stores)
        mix->bytes[step->spill ? KG_WORK_STORE_LOCAL : KG_WORK_STORE_GLOBAL] += step->bytes;
}

static void note_spill(const struct kg_x86_step *step, struct kg_asm_kernel *kernel,
                       struct kg_asm_loop *loop)
{
    if (!step->spill)
        return;
    *(step->loads ? &kernel->spill_load_bytes : &kernel->spill_store_bytes) += step->bytes;
    if (!loop)
        return;
    *(step->loads ? &loop->spill_loads : &loop->spill_stores) += 1;
    loop->spill_bytes += step->bytes;
}

static bool fill_block(const struct kg_x86_core *core, const struct kg_x86_step *steps, int32_t b,
                       struct kg_arena *arena, struct kg_asm_kernel *kernel)
{
    const struct kg_flow_block *at = &kernel->flow.blocks[b];
    struct kg_asm_block *block = &kernel->blocks[b];
    struct kg_asm_loop *loop = at->loop >= 0 ? &kernel->loops[at->loop] : NULL;
    struct kg_x86_usage usage = {0};
    struct kg_mix mix = {0};
    bool closes = false; // branches back to the header of its loop
    for (int32_t i = at->first; i < at->first + at->count; i++) {
        add_step(&mix, &steps[i]);
        note_spill(&steps[i], kernel, loop);
        kg_x86_use(&usage, &steps[i], i > at->first ? &steps[i - 1] : NULL);
    }
    for (int32_t l = 0; loop && l < kernel->flow.loops[at->loop].latch_count; l++)
        closes |= kernel->flow.loops[at->loop].latches[l] == b;
    // A branch back is taken on every trip.
    if (closes && usage.branches < 1)
        usage.branches = 1;
    block->issue_cycles = kg_x86_cycles(core, &usage);
    return kg_asm_block_fill(block, &mix, arena);
}

static void place_loops(const struct kg_x86_step *steps, struct kg_asm_kernel *kernel)
{
    for (int32_t l = 0; l < kernel->flow.loop_count; l++) {
        const struct kg_flow_loop *loop = &kernel->flow.loops[l];
        uint64_t first = UINT64_MAX, last = 0;
        for (int32_t i = 0; i < loop->block_count; i++) {
            const struct kg_flow_block *block = &kernel->flow.blocks[loop->blocks[i]];
            uint64_t end = steps[block->first + block->count - 1].offset;
            first = steps[block->first].offset < first ? steps[block->first].offset : first;
            last = end > last ? end : last;
        }
        kernel->loops[l].first = (int64_t)first;
        kernel->loops[l].last = (int64_t)last;
    }
}

static int compare_counts(const void *left, const void *right)
{
    const struct kg_asm_count *a = left, *b = right;
    return strcmp(a->name, b->name);
}

static bool count_opcodes(const struct kg_capstone *capstone, const struct kg_x86_step *steps,
                          int32_t count, struct kg_arena *arena, struct kg_asm_kernel *kernel)
{
    int64_t counts[X86_INS_ENDING] = {0};
    for (int32_t i = 0; i < count; i++)
        counts[steps[i].id < X86_INS_ENDING ? steps[i].id : 0]++;
    int used = 0;
    for (int id = 0; id < X86_INS_ENDING; id++)
        used += counts[id] > 0;
    kernel->opcodes = KG_NEW_ARRAY(arena, used, struct kg_asm_count);
    if (!kernel->opcodes)
        return false;
    for (unsigned id = 0; id < X86_INS_ENDING; id++) {
        if (counts[id] == 0)
            continue;
        const char *name = id ? capstone->name(capstone->handle, id) : NULL;
        name = name ? name : "(unknown)";
        kernel->opcodes[kernel->opcode_count++] =
            (struct kg_asm_count){kg_arena_copy(arena, name, strlen(name)), counts[id]};
    }
    if (arena->failed)
        return false;
    qsort(kernel->opcodes, (size_t)used, sizeof *kernel->opcodes, compare_counts);
    return true;
}

// The width of multiply-adds: the first question about vectorised code.
static bool advise_width(const struct kg_x86_step *steps, int32_t count, struct kg_arena *arena,
                         struct kg_asm_kernel *kernel)
{
    int64_t all = 0, widest = 0;
    int bytes = 0;
    for (int32_t i = 0; i < count; i++) {
        if (!steps[i].multiplies)
            continue;
        // A scalar works on one element of its register.
        int scalar = steps[i].work == KG_WORK_DOUBLE ? 8 : 4;
        int width = steps[i].lanes > 1 ? steps[i].width : scalar;
        all++;
        widest = width > bytes ? 1 : widest + (width == bytes);
        bytes = width > bytes ? width : bytes;
    }
    if (all == 0)
        return true;
    kernel->advice = KG_NEW(arena, struct kg_advice);
    if (!kernel->advice)
        return false;
    *kernel->advice = (struct kg_advice){
        .level = bytes > 8 ? KG_ADVICE_NOTE : KG_ADVICE_WARNING,
        .code = "vector-width",
        .text = kg_arena_format(arena,
                                "%lld of %lld multiplications and multiply-adds are %d bits wide.",
                                (long long)widest, (long long)all, bytes * 8),
    };
    kernel->advice_count = 1;
    return kernel->advice->text != NULL;
}

bool kg_object_facts(const struct kg_capstone *capstone, const struct kg_x86_core *core,
                     struct kg_x86_step *steps, int32_t count, struct kg_arena *arena,
                     struct kg_asm_kernel *kernel)
{
    kernel->arch = "x86-64";
    kernel->registers = kernel->barriers = -1;
    kernel->shared_bytes = kernel->parameter_bytes = -1;
    kernel->instructions = count;
    kernel->stack_bytes = kg_x86_find_spills(steps, count);
    if (kernel->stack_bytes < 0 || !find_flow(steps, count, arena, &kernel->flow) ||
        !count_opcodes(capstone, steps, count, arena, kernel) ||
        !advise_width(steps, count, arena, kernel))
        return false;
    kernel->blocks = KG_NEW_ARRAY(arena, kernel->flow.block_count, struct kg_asm_block);
    kernel->loops = KG_NEW_ARRAY(arena, kernel->flow.loop_count, struct kg_asm_loop);
    if (!kernel->blocks || !kernel->loops)
        return false;
    for (int32_t b = 0; b < kernel->flow.block_count; b++)
        if (!fill_block(core, steps, b, arena, kernel))
            return false;
    place_loops(steps, kernel);
    kg_asm_weigh(kernel);
    return true;
}
