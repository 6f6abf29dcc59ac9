// The main loop is the one with the most useful work, not counting inner loops. A loop that only
// waits has none: on Hopper every main loop contains one, which polls a barrier.

#include "asm/summary.h"

#include <math.h>
#include <string.h>

#define WARP 32
// Assumed trips of a loop of unknown length when loops are compared: more than a short prologue of
// known length, and more for nested loops.
#define LIKELY_TRIPS 8

// Classes that only wait, or order other work.
static const bool idle[KG_WORK_COUNT] = {
    [KG_WORK_BARRIER] = true, [KG_WORK_FENCE] = true,  [KG_WORK_BRANCH] = true,
    [KG_WORK_NOTHING] = true, [KG_WORK_SELECT] = true, [KG_WORK_MOVE] = true,
};

// The work of a loop without its inner loops, and how often it runs.
struct share {
    double work, tensor, trips;
};

static void add_block(const struct kg_asm_block *block, struct share *share)
{
    for (int32_t p = 0; p < block->part_count; p++) {
        const struct kg_asm_part *part = &block->parts[p];
        share->work += idle[part->work] ? 0 : part->count;
        share->tensor += part->work == KG_WORK_TENSOR ? part->count : 0;
    }
}

static void share_out(const struct kg_asm_kernel *kernel, struct share *shares)
{
    const struct kg_flow *flow = &kernel->flow;
    for (int32_t b = 0; b < flow->block_count; b++)
        if (flow->blocks[b].loop >= 0)
            add_block(&kernel->blocks[b], &shares[flow->blocks[b].loop]);
    for (int32_t l = 0; l < flow->loop_count; l++) { // outer before inner
        const struct kg_asm_loop *loop = &kernel->loops[l];
        double around = flow->loops[l].parent >= 0 ? shares[flow->loops[l].parent].trips : 1;
        double trips = loop->kind == KG_TRIPS_CONSTANT ? loop->trips : LIKELY_TRIPS;
        shares[l].trips = fmin(around * trips, KG_MIX_MAX);
    }
}

// If there are matrix instructions, they decide.
static int find_main_loop(const struct kg_asm_kernel *kernel, const struct share *shares)
{
    bool tensor = false;
    int best = -1;
    double max = 0;
    for (int32_t l = 0; l < kernel->flow.loop_count; l++)
        tensor |= shares[l].tensor > 0;
    for (int32_t l = 0; l < kernel->flow.loop_count; l++) {
        double work = (tensor ? shares[l].tensor : shares[l].work) * shares[l].trips;
        if (work > max) {
            max = work;
            best = l;
        }
    }
    return best;
}

// A log may give the spills of PTX, but not their positions.
static void find_spills(const struct kg_asm_kernel *kernel, enum kg_asm_format format,
                        struct kg_asm_summary *summary)
{
    if (format == KG_ASM_PTX || kernel->spill_load_bytes < 0 || kernel->spill_store_bytes < 0) {
        summary->loop_spill_loads = summary->loop_spill_stores = -1;
        summary->loop_spill_bytes = summary->other_spill_bytes = -1;
        return;
    }
    for (int32_t l = 0; l < kernel->flow.loop_count; l++)
        if (kernel->flow.loops[l].parent < 0) {
            summary->loop_spill_loads += kernel->loops[l].spill_loads;
            summary->loop_spill_stores += kernel->loops[l].spill_stores;
            summary->loop_spill_bytes += kernel->loops[l].spill_bytes;
        }
    int64_t all = kernel->spill_load_bytes + kernel->spill_store_bytes;
    summary->other_spill_bytes =
        all > summary->loop_spill_bytes ? all - summary->loop_spill_bytes : 0;
}

// wgmma and tcgen05 read their operands from shared memory directly.
static bool reads_unseen(const struct kg_asm_kernel *kernel, const struct kg_mix *mix)
{
    static const char *const names[] = {"HGMMA",   "IGMMA",   "QGMMA",   "BGMMA",  "UTCHMMA",
                                        "UTCIMMA", "UTCQMMA", "UTCOMMA", "wgmma.", "tcgen05."};
    if (mix->count[KG_WORK_BULK_COPY] > 0)
        return true;
    for (int o = 0; mix->count[KG_WORK_TENSOR] > 0 && o < kernel->opcode_count; o++)
        for (size_t n = 0; n < sizeof names / sizeof names[0]; n++)
            if (strncmp(kernel->opcodes[o].name, names[n], strlen(names[n])) == 0)
                return true;
    return false;
}

static void find_density(const struct kg_asm_kernel *kernel, enum kg_asm_format format,
                         struct kg_asm_summary *summary)
{
    const struct kg_mix *mix = &summary->mix;
    double lanes = format == KG_ASM_OBJECT ? 1 : WARP;
    summary->tensor = mix->count[KG_WORK_TENSOR] > 0;
    if (!summary->tensor)
        summary->flops = mix->flops * lanes;
    else
        summary->flops = mix->tensor_flops > 0 ? mix->tensor_flops : (double)NAN;
    summary->shared_bytes =
        (mix->bytes[KG_WORK_LOAD_SHARED] + mix->bytes[KG_WORK_STORE_SHARED]) * lanes;
    summary->global_bytes = (mix->bytes[KG_WORK_LOAD_GLOBAL] + mix->bytes[KG_WORK_STORE_GLOBAL] +
                             mix->bytes[KG_WORK_ASYNC_COPY]) *
                            lanes;
    summary->hidden_bytes = reads_unseen(kernel, mix);
}

bool kg_asm_main_loop(const struct kg_asm_kernel *kernel, int *index)
{
    struct kg_arena scratch = {0};
    struct share *shares = KG_NEW_ARRAY(&scratch, kernel->flow.loop_count, struct share);
    *index = -1;
    if (!shares)
        return false;
    share_out(kernel, shares);
    *index = find_main_loop(kernel, shares);
    kg_arena_free(&scratch);
    return true;
}

bool kg_asm_summarise(const struct kg_asm_kernel *kernel, enum kg_asm_format format,
                      struct kg_asm_summary *summary)
{
    *summary = (struct kg_asm_summary){.main_loop = -1};
    if (!kg_asm_main_loop(kernel, &summary->main_loop))
        return false;
    summary->mix = summary->main_loop >= 0 ? kernel->loops[summary->main_loop].mix : kernel->mix;
    find_spills(kernel, format, summary);
    find_density(kernel, format, summary);
    return true;
}
