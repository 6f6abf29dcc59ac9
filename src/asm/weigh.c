// Sums over the loop tree. Outer loops precede inner ones, so one pass up and one pass down are
// enough at any depth.

#include "asm/weigh.h"

#include <math.h>

static double weight_of(const struct kg_asm_loop *loop)
{
    return loop->kind == KG_TRIPS_CONSTANT ? fmin(loop->trips, KG_MIX_MAX) : 1;
}

static void add_cycles(struct kg_asm_loop *loop, double issue, double stall, double weight)
{
    loop->issue_cycles = fmin(loop->issue_cycles + issue * weight, KG_MIX_MAX);
    loop->stall_cycles = fmin(loop->stall_cycles + stall * weight, KG_MIX_MAX);
}

static void sum_loops(struct kg_asm_kernel *kernel)
{
    const struct kg_flow *flow = &kernel->flow;
    for (int32_t l = 0; l < flow->loop_count; l++) {
        kernel->loops[l].mix = (struct kg_mix){0};
        kernel->loops[l].issue_cycles = kernel->loops[l].stall_cycles = 0;
    }
    for (int32_t b = 0; b < flow->block_count; b++) {
        const struct kg_asm_block *block = &kernel->blocks[b];
        if (flow->blocks[b].loop < 0)
            continue;
        struct kg_asm_loop *loop = &kernel->loops[flow->blocks[b].loop];
        kg_mix_add_block(&loop->mix, block, 1);
        add_cycles(loop, block->issue_cycles, block->stall_cycles, 1);
    }
    for (int32_t l = flow->loop_count - 1; l >= 0; l--) {
        const struct kg_asm_loop *inner = &kernel->loops[l];
        if (flow->loops[l].parent < 0)
            continue;
        struct kg_asm_loop *outer = &kernel->loops[flow->loops[l].parent];
        kg_mix_add(&outer->mix, &inner->mix, weight_of(inner));
        add_cycles(outer, inner->issue_cycles, inner->stall_cycles, weight_of(inner));
        outer->spill_loads += inner->spill_loads;
        outer->spill_stores += inner->spill_stores;
        outer->spill_bytes += inner->spill_bytes;
    }
}

// A loop's header represents the loop until all blocks have their trips.
static void count_trips(struct kg_asm_kernel *kernel)
{
    const struct kg_flow *flow = &kernel->flow;
    for (int32_t l = 0; l < flow->loop_count; l++) {
        const struct kg_flow_loop *loop = &flow->loops[l];
        double around =
            loop->parent >= 0 ? kernel->blocks[flow->loops[loop->parent].header].trips : 1;
        kernel->blocks[loop->header].trips =
            fmin(around * weight_of(&kernel->loops[l]), KG_MIX_MAX);
    }
    for (int32_t b = 0; b < flow->block_count; b++) {
        const struct kg_flow_block *block = &flow->blocks[b];
        if (block->loop >= 0)
            kernel->blocks[b].trips = kernel->blocks[flow->loops[block->loop].header].trips;
        else
            kernel->blocks[b].trips = block->reached;
    }
}

void kg_asm_weigh(struct kg_asm_kernel *kernel)
{
    sum_loops(kernel);
    count_trips(kernel);
    kernel->mix = kernel->weighted = (struct kg_mix){0};
    for (int32_t b = 0; b < kernel->flow.block_count; b++) {
        kg_mix_add_block(&kernel->mix, &kernel->blocks[b], 1);
        kg_mix_add_block(&kernel->weighted, &kernel->blocks[b], kernel->blocks[b].trips);
    }
}
