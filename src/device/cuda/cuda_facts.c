// Facts about a GPU from the tables of src/asm, without querying one.

#include "asm/gpu.h"
#include "device/cuda/cuda_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// FLOPs per clock of an SM for a sum of products with factors of this dtype; 0 for f32, which would
// be rounded to TF32, and for integers of more than eight bits. Four-bit integers are widened to
// eight bits, because their matrix instructions are gone since Hopper. Eight-bit floats have
// instructions since Ada; before, they are multiplied as f16, which represents them exactly.
static int matrix_of(const struct kg_sm *sm, enum kg_dtype dtype)
{
    const struct kg_dtype_info *info = &kg_dtypes[dtype];
    if (info->bits > 16)
        return info->is_float && info->bits == 64 ? kg_sm_matrix(sm, KG_MATRIX_64) : 0;
    if (info->is_float)
        return kg_sm_matrix(sm, info->bits == 8 && sm->sm >= 89 ? KG_MATRIX_8 : KG_MATRIX_16);
    return info->bits <= 8 && !kg_dtype_is_truth(dtype) ? kg_sm_matrix(sm, KG_MATRIX_8) : 0;
}

void kg_cuda_format_isa(int sm, char *isa, size_t size)
{
    snprintf(isa, size, "sm_%d%s", sm, sm >= 90 ? "a" : "");
}

static void complete_int(int *fact, int known)
{
    *fact = *fact > 0 ? *fact : known;
}

static void complete_bytes(int64_t *fact, int64_t known)
{
    *fact = *fact > 0 ? *fact : known;
}

// What the driver said stands.
static void complete_limits(struct kg_unit_limits *unit, const struct kg_sm *sm)
{
    enum { WARP = 32 };
    complete_int(&unit->registers, sm->registers);
    complete_int(&unit->thread_registers, sm->thread_registers);
    complete_int(&unit->threads, sm->warps * WARP);
    complete_int(&unit->blocks, sm->blocks);
    complete_int(&unit->block_threads, sm->block_threads);
    complete_int(&unit->cluster, sm->cluster);
    complete_bytes(&unit->shared, sm->shared);
    complete_bytes(&unit->static_shared, sm->shared_default);
    complete_bytes(&unit->block_reserve, sm->shared_reserved);
}

void kg_cuda_complete_facts(struct kg_device_facts *facts)
{
    facts->vector_bytes = 16;
    const struct kg_sm *sm = kg_sm_find(facts->isa);
    const struct kg_gpu *gpu = kg_gpu_find(facts->name);
    if (gpu && facts->clock <= 0)
        facts->clock = gpu->clock;
    if (gpu && facts->bandwidth <= 0)
        facts->bandwidth = gpu->bandwidth;
    if (!sm)
        return;
    double clocks = facts->units * facts->clock; // of all SMs together
    facts->flops[KG_TYPE_F32] = 2 * sm->fma * clocks;
    facts->flops[KG_TYPE_F64] = 2 * sm->real64 * clocks;
    facts->flops[KG_TYPE_I64] = sm->integer * clocks;
    facts->flops[KG_TYPE_BOOL] = sm->integer * clocks;
    for (int dtype = 0; dtype < KG_DTYPE_COUNT; dtype++)
        facts->matrix_flops[dtype] = matrix_of(sm, (enum kg_dtype)dtype) * clocks;
    if (facts->shared_bytes == 0)
        facts->shared_bytes = sm->shared_opt_in;
    facts->cache[1] = sm->shared; // one memory, divided between L1 and shared memory
    facts->latency = sm->latency * 1e-9;
    complete_limits(&facts->unit, sm);
}

static enum kg_status unknown_architecture(const char *name, struct kg_error *error)
{
    struct kg_text known = {0};
    for (const struct kg_sm *sm = kg_sms; sm->sm; sm++)
        kg_text_format(&known, "%ssm_%d", sm == kg_sms ? "" : ", ", sm->sm);
    kg_error_set(error, KG_ERROR_ARGUMENT, "unknown architecture '%.32s'; known: %s", name,
                 kg_text_string(&known));
    kg_text_free(&known);
    return KG_ERROR_ARGUMENT;
}

enum kg_status kg_cuda_describe(const char *name, struct kg_device_facts *facts,
                                struct kg_error *error)
{
    *facts = (struct kg_device_facts){0};
    const struct kg_gpu *gpu = kg_gpu_named(name);
    const struct kg_sm *sm = gpu ? gpu->sm : kg_sm_find(name);
    if (!sm)
        return unknown_architecture(name, error);
    kg_cuda_format_isa(sm->sm, facts->isa, sizeof facts->isa);
    if (gpu) {
        snprintf(facts->name, sizeof facts->name, "%s", gpu->name);
        facts->units = gpu->sms;
        facts->clock = gpu->clock;
        facts->bandwidth = gpu->bandwidth;
        facts->cache[2] = facts->cache[3] = gpu->l2_bytes;
    } else {
        snprintf(facts->name, sizeof facts->name, "NVIDIA %s (sm_%d)", sm->name, sm->sm);
    }
    kg_cuda_complete_facts(facts);
    return KG_OK;
}
