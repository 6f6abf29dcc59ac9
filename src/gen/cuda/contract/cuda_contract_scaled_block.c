// Blocks of the forms for quantised weights by mma.sync.

#include "gen/cuda/contract/cuda_contract_scaled.h"

enum { WARP = 32 };

bool kg_cuda_scaled_valid_block(const struct kg_cuda_contract_plan *plan,
                                const struct kg_cuda_scaled_block *block, struct kg_text *reason)
{
    const struct kg_unit_limits *unit = &plan->facts->unit;
    int threads = WARP * block->warps, most = plan->config.maxnreg;
    if (block->across < 1 || block->warps > KG_SCALED_WARPS)
        return kg_cuda_contract_refuse(reason, "a block has one to 16 warps");
    int limit = unit->registers / threads;
    limit = limit < unit->thread_registers ? limit : unit->thread_registers;
    if (most > 0 && most < limit)
        limit = most;
    if (block->registers > limit)
        return kg_cuda_contract_refuse(reason,
                                       "a thread would need more registers than it can have");
    if (most * threads > unit->registers)
        return kg_cuda_contract_refuse(reason, "a block would need more registers than there are");
    return block->shared_bytes <= plan->facts->shared_bytes ||
           kg_cuda_contract_refuse(reason, "a block would need more shared memory than there is");
}

void kg_cuda_scaled_take_listed(struct kg_cuda_contract_plan *plan, void *user)
{
    enum { OF_SM = 8 };
    int64_t slices = plan->config.split_k;
    if (slices == 1 || kg_cuda_contract_tiles(plan) * slices <= OF_SM * (int64_t)plan->facts->units)
        kg_cuda_contract_take(user, plan);
}

double kg_cuda_scaled_rate(const struct kg_cuda_contract_plan *plan)
{
    return plan->facts->matrix_flops[kg_cuda_scaled_dtype(plan)];
}
