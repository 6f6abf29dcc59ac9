// The rules of residency. Registers are allocated to warps in granules, and every partition of the
// SM has its own register file, whose remainder other partitions cannot use. Shared memory is
// allocated to blocks, with the system's reserve.

#include "asm/occupancy.h"

#include <limits.h>

#define WARP 32
#define MAX_REGISTERS 256 // limit per thread at a launch; instructions reach 255

static int64_t round_up(int64_t value, int64_t granule)
{
    return (value + granule - 1) / granule * granule;
}

static int warps_of(int threads)
{
    return (threads - 1) / WARP + 1;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int limit_warps(const struct kg_sm *sm, int threads)
{
    return threads > sm->block_threads ? 0 : sm->warps / warps_of(threads);
}

static int64_t warp_registers(const struct kg_sm *sm, int registers)
{
    return round_up((int64_t)registers * WARP, sm->register_granule);
}

static int limit_registers(const struct kg_sm *sm, int threads, int registers)
{
    if (registers <= 0)
        return INT_MAX;
    int64_t each = warp_registers(sm, registers);
    if (registers > MAX_REGISTERS)
        return 0;
    return (int)(sm->registers / sm->partitions / each * sm->partitions / warps_of(threads));
}

static int64_t block_shared(const struct kg_sm *sm, int64_t bytes)
{
    return round_up(bytes + sm->shared_reserved, sm->shared_granule);
}

static int limit_shared(const struct kg_sm *sm, int64_t bytes)
{
    if (bytes > sm->shared_opt_in)
        return 0;
    int64_t each = block_shared(sm, bytes);
    return each ? (int)(sm->shared / each) : INT_MAX;
}

static int limit_barriers(const struct kg_sm *sm, int barriers)
{
    return sm->barriers && barriers > 0 ? sm->barriers / barriers : INT_MAX;
}

static int64_t shared_of(const struct kg_block_needs *needs)
{
    int64_t fixed = needs->static_shared > 0 ? needs->static_shared : 0;
    int64_t dynamic = needs->dynamic_shared > 0 ? needs->dynamic_shared : 0;
    // Sizes beyond every SM are clamped, so that they do not overflow.
    return smaller(fixed, INT32_MAX) + smaller(dynamic, INT32_MAX);
}

struct kg_occupancy kg_occupancy_of(const struct kg_sm *sm, const struct kg_block_needs *needs)
{
    struct kg_occupancy result = {0};
    if (needs->threads <= 0)
        return result;
    int64_t shared = shared_of(needs);
    int warps = warps_of(needs->threads);
    result.limit[KG_LIMIT_WARPS] = limit_warps(sm, needs->threads);
    result.limit[KG_LIMIT_BLOCKS] = sm->blocks;
    result.limit[KG_LIMIT_REGISTERS] = limit_registers(sm, needs->threads, needs->registers);
    result.limit[KG_LIMIT_SHARED] = limit_shared(sm, shared);
    result.limit[KG_LIMIT_BARRIERS] = limit_barriers(sm, needs->barriers);
    for (int i = 0; i < KG_LIMIT_COUNT; i++)
        if (result.limit[i] < result.limit[result.limiter])
            result.limiter = (enum kg_limiter)i;
    result.blocks = result.limit[result.limiter];
    result.warps = result.blocks * warps;
    result.share = (double)result.warps / sm->warps;
    if (needs->registers > 0)
        result.block_registers = warp_registers(sm, needs->registers) * warps;
    result.block_shared = block_shared(sm, shared);
    result.opt_in = shared > sm->shared_default;
    return result;
}

// Largest number of threads per block with which `blocks` blocks fit.
static int64_t max_threads(const struct kg_sm *sm, int blocks)
{
    return smaller(sm->warps / blocks * WARP, sm->block_threads);
}

static int64_t max_registers(const struct kg_sm *sm, int threads, int blocks)
{
    int64_t max = MAX_REGISTERS - 1;
    while (max > 0 && limit_registers(sm, threads, (int)max) < blocks)
        max--;
    return max > 0 ? max : -1;
}

static int64_t max_shared(const struct kg_sm *sm, int blocks)
{
    int64_t each = sm->shared / blocks / sm->shared_granule * sm->shared_granule;
    return smaller(each - sm->shared_reserved, sm->shared_opt_in);
}

static struct kg_occupancy_step step_for(const struct kg_sm *sm, const struct kg_block_needs *needs,
                                         enum kg_limiter resource, int blocks)
{
    struct kg_occupancy_step step = {.resource = resource, .max = -1};
    switch (resource) {
    case KG_LIMIT_WARPS:
        step.now = needs->threads;
        step.max = blocks <= sm->warps ? max_threads(sm, blocks) : -1;
        break;
    case KG_LIMIT_REGISTERS:
        step.now = needs->registers;
        step.max = max_registers(sm, needs->threads, blocks);
        break;
    case KG_LIMIT_SHARED:
        step.now = shared_of(needs);
        step.max = max_shared(sm, blocks);
        break;
    case KG_LIMIT_BARRIERS:
        step.now = needs->barriers;
        step.max = blocks <= sm->barriers ? sm->barriers / blocks : -1;
        break;
    case KG_LIMIT_BLOCKS:
    case KG_LIMIT_COUNT:
        step.now = sm->blocks;
        break;
    }
    return step;
}

int kg_occupancy_raise(const struct kg_sm *sm, const struct kg_block_needs *needs,
                       struct kg_occupancy_step steps[KG_LIMIT_COUNT])
{
    if (needs->threads <= 0)
        return 0;
    struct kg_occupancy now = kg_occupancy_of(sm, needs);
    int count = 0;
    for (int i = 0; i < KG_LIMIT_COUNT; i++)
        if (now.limit[i] == now.blocks)
            steps[count++] = step_for(sm, needs, (enum kg_limiter)i, now.blocks + 1);
    return count;
}

void kg_occupancy_explain(struct kg_text *text, const struct kg_sm *sm,
                          const struct kg_block_needs *needs)
{
    static const char *const things[KG_LIMIT_COUNT] = {
        [KG_LIMIT_WARPS] = "threads of a block",
        [KG_LIMIT_BLOCKS] = "blocks",
        [KG_LIMIT_REGISTERS] = "registers of a thread",
        [KG_LIMIT_SHARED] = "bytes of shared memory of a block",
        [KG_LIMIT_BARRIERS] = "barriers of a block",
    };
    struct kg_occupancy_step steps[KG_LIMIT_COUNT];
    int count = kg_occupancy_raise(sm, needs, steps);
    if (count == 0) {
        kg_text_add(text, "a block without threads");
        return;
    }
    for (int i = 0; i < count; i++)
        if (steps[i].max < 0) {
            kg_text_format(text, "an SM holds no more than %lld %s", (long long)steps[i].now,
                           things[steps[i].resource]);
            return;
        }
    int blocks = kg_occupancy_of(sm, needs).blocks;
    kg_text_format(text, "%d block%s on an SM instead of %d: ", blocks + 1, blocks ? "s" : "",
                   blocks);
    for (int i = 0; i < count; i++)
        kg_text_format(text, "%s%s at most %lld (now %lld)", i ? ", " : "",
                       things[steps[i].resource], (long long)steps[i].max, (long long)steps[i].now);
}

struct kg_waves kg_occupancy_waves(const struct kg_occupancy *occupancy, int64_t grid, int sms,
                                   int cluster)
{
    struct kg_waves result = {0};
    int64_t together = cluster > 1 ? cluster : 1;
    result.resident = (int64_t)occupancy->blocks * sms / together * together;
    if (grid <= 0 || result.resident <= 0)
        return (struct kg_waves){0};
    int64_t whole = (grid - 1) / result.resident + 1;
    result.busiest = (grid - 1) / sms + 1;
    result.waves = (double)grid / (double)result.resident;
    result.idle = 1 - result.waves / (double)whole;
    return result;
}

const char *kg_limiter_name(enum kg_limiter limiter)
{
    static const char *const names[KG_LIMIT_COUNT] = {
        [KG_LIMIT_WARPS] = "threads",       [KG_LIMIT_BLOCKS] = "blocks",
        [KG_LIMIT_REGISTERS] = "registers", [KG_LIMIT_SHARED] = "shared memory",
        [KG_LIMIT_BARRIERS] = "barriers",
    };
    return names[limiter];
}
