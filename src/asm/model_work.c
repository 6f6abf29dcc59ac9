// Counts the work of a warp in two ways: the work that it certainly does, and the work that it
// probably does.
//
// A block certainly runs if every path through its loop (or the kernel) runs it and its loop is
// certainly entered. A loop of unknown length may end in its header the first time, so only its
// header certainly runs.

#include "asm/model_work.h"

#include <math.h>
#include <string.h>

// Probability of conditional code. Nothing is known about it: one half.
#define LIKELY 0.5

// How often a loop's header and body run during one run of the kernel.
struct trips {
    double header;
    double body;
};

struct weights {
    struct trips sure;
    struct trips expected;
};

// 0 when unknown.
static double trips_of(const struct kg_asm_loop *loop, const struct kg_model_problem *problem)
{
    if (loop->kind == KG_TRIPS_CONSTANT)
        return fmin(loop->trips, KG_MIX_MAX);
    if (loop->kind == KG_TRIPS_SYMBOL)
        for (int t = 0; t < problem->trip_count; t++)
            if (strcmp(problem->trips[t].symbol, loop->symbol) == 0)
                return fmin(problem->trips[t].trips, KG_MIX_MAX);
    return 0;
}

// `guess`: expected trips of outermost loops of unknown length.
static void weigh_loops(const struct kg_asm_kernel *kernel, const struct kg_model_problem *problem,
                        double guess, struct weights *weights)
{
    static const struct weights once = {{1, 1}, {1, 1}};
    // Outer loops precede inner ones.
    for (int32_t l = 0; l < kernel->flow.loop_count; l++) {
        const struct kg_flow_loop *loop = &kernel->flow.loops[l];
        const struct weights *around = loop->parent >= 0 ? &weights[loop->parent] : &once;
        double trips = trips_of(&kernel->loops[l], problem);
        double sure = loop->conditional ? 0 : around->sure.body;
        double expected = around->expected.body * (loop->conditional ? LIKELY : 1);
        weights[l].sure.header = fmin(sure * fmax(trips, 1), KG_MIX_MAX);
        weights[l].sure.body = fmin(sure * trips, KG_MIX_MAX);
        if (trips <= 0 && loop->depth == 1)
            trips = guess;
        weights[l].expected.header = fmin(expected * fmax(trips, 1), KG_MIX_MAX);
        weights[l].expected.body = weights[l].expected.header;
    }
}

static void add_share(struct kg_model_share *share, const struct kg_asm_block *block, double weight)
{
    kg_mix_add_block(&share->mix, block, weight);
    share->stall_cycles += block->stall_cycles * weight;
}

// Removes predicated instructions, with their FLOPs and bytes.
static void drop_guarded(struct kg_mix *mix)
{
    if (mix->count[KG_WORK_TENSOR] > 0)
        mix->tensor_flops *= 1 - mix->guarded[KG_WORK_TENSOR] / mix->count[KG_WORK_TENSOR];
    for (int w = 0; w < KG_WORK_COUNT; w++) {
        double kept = mix->count[w] > 0 ? 1 - mix->guarded[w] / mix->count[w] : 0;
        mix->count[w] *= kept;
        mix->bytes[w] *= kept;
        mix->guarded[w] = 0;
    }
}

static void add_blocks(const struct kg_asm_kernel *kernel, const struct weights *weights,
                       struct kg_model_work *work)
{
    *work = (struct kg_model_work){0};
    for (int32_t b = 0; b < kernel->flow.block_count; b++) {
        const struct kg_flow_block *at = &kernel->flow.blocks[b];
        double sure = at->conditional ? 0 : 1, expected = at->conditional ? LIKELY : 1;
        if (!at->reached)
            continue;
        if (at->loop >= 0) {
            const struct weights *loop = &weights[at->loop];
            bool header = kernel->flow.loops[at->loop].header == b;
            sure *= header ? loop->sure.header : loop->sure.body;
            expected *= header ? loop->expected.header : loop->expected.body;
        }
        add_share(&work->sure, &kernel->blocks[b], sure);
        add_share(&work->expected, &kernel->blocks[b], expected);
    }
    work->sure.instructions = kg_mix_total(&work->sure.mix);
    work->expected.instructions = kg_mix_total(&work->expected.mix);
}

static double ratio_of(double wanted, double done)
{
    return done > 0 ? wanted / done : 0;
}

// All blocks together must do the problem's work. If a single trip of the unknown loops does less,
// they run that much more often: by whatever tells most, as code does more than it has to rather
// than less. 1 if nothing is known.
static double guess_trips(const struct kg_mix *once, const struct kg_model_launch *launch,
                          const struct kg_model_problem *problem)
{
    double warps = (double)launch->grid * ceil(launch->threads / 32.0);
    double done = once->tensor_flops * warps, wanted = problem->flops, threads = 32 * warps;
    if (done <= 0 || !problem->on_matrix_units) {
        done = (once->bytes[KG_WORK_LOAD_GLOBAL] + once->bytes[KG_WORK_ASYNC_COPY]) * threads;
        wanted = problem->read_bytes;
    }
    double trips = ratio_of(wanted, done);
    if (once->tensor_flops <= 0)
        trips = fmax(trips, ratio_of(problem->operations, once->flops * threads));
    trips = fmax(trips, ratio_of(problem->specials, once->count[KG_WORK_SPECIAL] * threads));
    return fmin(fmax(trips, 1), KG_MIX_MAX);
}

// Where the definition tells how much is computed and even that many trips do less, conditional
// code runs more often than assumed.
static void scale_to_definition(const struct kg_model_launch *launch,
                                const struct kg_model_problem *problem,
                                struct kg_model_share *share)
{
    if (problem->operations <= 0 && problem->specials <= 0)
        return;
    double more = guess_trips(&share->mix, launch, problem);
    struct kg_mix mix = {0};
    kg_mix_add(&mix, &share->mix, more);
    share->mix = mix;
    share->stall_cycles *= more;
    share->instructions *= more;
}

bool kg_model_weigh(const struct kg_asm_kernel *kernel, const struct kg_model_launch *launch,
                    const struct kg_model_problem *problem, struct kg_model_work *work)
{
    struct kg_arena scratch = {0};
    struct weights *weights = KG_NEW_ARRAY(&scratch, kernel->flow.loop_count, struct weights);
    if (!weights)
        return false;
    weigh_loops(kernel, problem, 1, weights);
    add_blocks(kernel, weights, work);
    double guess = guess_trips(&work->expected.mix, launch, problem);
    if (guess > 1) {
        weigh_loops(kernel, problem, guess, weights);
        add_blocks(kernel, weights, work);
    }
    scale_to_definition(launch, problem, &work->expected);
    drop_guarded(&work->sure.mix);
    kg_arena_free(&scratch);
    return true;
}
