// Common functions for facts of every format: names of classes, sums, look-up.

#include "asm/facts.h"

#include <string.h>

const char *kg_work_name(enum kg_work work)
{
    static const char *const names[] = {
        [KG_WORK_TENSOR] = "tensor",
        [KG_WORK_FMA] = "fma",
        [KG_WORK_HALF] = "half",
        [KG_WORK_DOUBLE] = "double",
        [KG_WORK_INTEGER] = "integer",
        [KG_WORK_SELECT] = "select",
        [KG_WORK_CONVERT] = "convert",
        [KG_WORK_SPECIAL] = "special",
        [KG_WORK_MOVE] = "move",
        [KG_WORK_LOAD_GLOBAL] = "load global",
        [KG_WORK_STORE_GLOBAL] = "store global",
        [KG_WORK_ATOMIC] = "atomic",
        [KG_WORK_LOAD_SHARED] = "load shared",
        [KG_WORK_STORE_SHARED] = "store shared",
        [KG_WORK_LOAD_LOCAL] = "load local",
        [KG_WORK_STORE_LOCAL] = "store local",
        [KG_WORK_LOAD_CONSTANT] = "load constant",
        [KG_WORK_ASYNC_COPY] = "async copy",
        [KG_WORK_BULK_COPY] = "bulk copy",
        [KG_WORK_SHUFFLE] = "shuffle",
        [KG_WORK_BARRIER] = "barrier",
        [KG_WORK_FENCE] = "fence",
        [KG_WORK_BRANCH] = "branch",
        [KG_WORK_NOTHING] = "nothing",
        [KG_WORK_UNKNOWN] = "unknown",
    };
    _Static_assert(sizeof names / sizeof names[0] == KG_WORK_COUNT, "a class has no name");
    return (unsigned)work < KG_WORK_COUNT ? names[work] : "?";
}

static void add(double *sum, double value, double weight)
{
    double more = *sum + value * weight;
    *sum = more < KG_MIX_MAX ? more : KG_MIX_MAX;
}

void kg_mix_add(struct kg_mix *mix, const struct kg_mix *other, double weight)
{
    for (int w = 0; w < KG_WORK_COUNT; w++) {
        add(&mix->count[w], other->count[w], weight);
        add(&mix->guarded[w], other->guarded[w], weight);
        add(&mix->bytes[w], other->bytes[w], weight);
    }
    add(&mix->tensor_flops, other->tensor_flops, weight);
    add(&mix->flops, other->flops, weight);
}

bool kg_asm_block_fill(struct kg_asm_block *block, const struct kg_mix *mix, struct kg_arena *arena)
{
    struct kg_asm_part parts[KG_WORK_COUNT];
    int32_t count = 0;
    for (int w = 0; w < KG_WORK_COUNT; w++)
        if (mix->count[w] > 0 || mix->bytes[w] > 0) // only bytes: operands in memory
            parts[count++] = (struct kg_asm_part){(enum kg_work)w, mix->count[w], mix->guarded[w],
                                                  mix->bytes[w]};
    struct kg_asm_part *kept = KG_NEW_ARRAY(arena, count, struct kg_asm_part);
    if (!kept)
        return false;
    if (count > 0)
        memcpy(kept, parts, (size_t)count * sizeof *kept);
    block->parts = kept;
    block->part_count = count;
    block->tensor_flops = mix->tensor_flops;
    block->flops = mix->flops;
    return true;
}

void kg_mix_add_block(struct kg_mix *mix, const struct kg_asm_block *block, double weight)
{
    for (int32_t p = 0; p < block->part_count; p++) {
        const struct kg_asm_part *part = &block->parts[p];
        add(&mix->count[part->work], part->count, weight);
        add(&mix->guarded[part->work], part->guarded, weight);
        add(&mix->bytes[part->work], part->bytes, weight);
    }
    add(&mix->tensor_flops, block->tensor_flops, weight);
    add(&mix->flops, block->flops, weight);
}

double kg_mix_total(const struct kg_mix *mix)
{
    double total = 0;
    for (int w = 0; w < KG_WORK_COUNT; w++)
        total += mix->count[w];
    return total;
}

const struct kg_asm_kernel *kg_asm_find(const struct kg_asm_file *file, const char *name)
{
    for (int k = 0; k < file->kernel_count; k++)
        if (strcmp(file->kernels[k].name, name) == 0)
            return &file->kernels[k];
    return NULL;
}
