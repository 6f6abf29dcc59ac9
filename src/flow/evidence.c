// Collects the evidence for a diagnosis. On GPUs most of it is the performance model's; on the host
// it comes from the object's code, the ranges that threads take and the definition.

#include "flow/evidence.h"

#include "asm/summary.h"
#include "base/files.h"
#include "flow/traffic.h"
#include "gen/shared/bound.h"
#include "tune/forecast.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_OBJECT (64 << 20)
// Cycles of a core for a transcendental function of f32: inlined, for a vector of them at once, and
// called for each by itself.
#define VECTOR_CALL 16
#define SINGLE_CALL 40

// The kernel whose bound is the largest, which the evidence of blocks is about.
static int find_longest(const struct kg_choice *choice)
{
    int longest = 0;
    double most = -1;
    for (int i = 0; i < choice->count; i++) {
        double bound = choice->matches[i]->family->bound(choice->matches[i], &choice->configs[i]);
        longest = bound > most ? i : longest;
        most = fmax(most, bound);
    }
    return longest;
}

// Whether a loop is `around` or inside it, and has no loop inside: what is spilled around others is
// cheap, and what is spilled where remainders are treated is rare.
static bool is_innermost(const struct kg_flow *flow, int loop, int around)
{
    int at = loop;
    for (int l = 0; l < flow->loop_count; l++)
        if (flow->loops[l].parent == loop)
            return false;
    while (at >= 0 && at != around)
        at = flow->loops[at].parent;
    return at >= 0;
}

// Of the main loop, or of the loop inside it that spills most by the share of its instructions.
static void add_spills(const struct kg_asm_kernel *kernel, struct kg_evidence *evidence)
{
    int main_loop;
    if (!kg_asm_main_loop(kernel, &main_loop) || main_loop < 0)
        return;
    for (int l = 0; l < kernel->flow.loop_count; l++) {
        const struct kg_asm_loop *loop = &kernel->loops[l];
        double all = kg_mix_total(&loop->mix);
        double share = all > 0 ? (double)(loop->spill_loads + loop->spill_stores) / all : 0;
        if (loop->spill_bytes > 0 && share > evidence->spill_share &&
            is_innermost(&kernel->flow, l, main_loop)) {
            evidence->spill_share = share;
            evidence->spill_bytes = (double)loop->spill_bytes;
        }
    }
}

// ---- GPUs

// Bytes that a thread loads from memory in one trip of the main loop, or without one altogether.
static double loaded_bytes(const struct kg_asm_kernel *kernel, enum kg_asm_format format)
{
    struct kg_asm_summary summary;
    if (!kg_asm_summarise(kernel, format, &summary))
        return 0;
    return summary.mix.bytes[KG_WORK_LOAD_GLOBAL] + summary.mix.bytes[KG_WORK_ASYNC_COPY];
}

// Adds one launch. The evidence of blocks and warps is that of the longest launch so far.
static void add_launch(const struct kg_asm_kernel *kernel, enum kg_asm_format format,
                       const struct kg_gpu *gpu, const struct kg_grid *grid,
                       struct kg_model_problem *work, double *longest, struct kg_evidence *evidence)
{
    struct kg_model_launch launch = {
        .grid = grid->blocks[0] * grid->blocks[1] * grid->blocks[2],
        .threads = grid->threads[0] * grid->threads[1] * grid->threads[2],
        .dynamic_shared = grid->shared,
        .cluster = grid->cluster,
    };
    struct kg_model model;
    evidence->launches++;
    if (!kernel)
        return;
    work->on_matrix_units = kg_model_format(kernel, gpu->sm, &work->factors);
    enum kg_status status = kg_model_make(kernel, format, gpu, &launch, work, NULL, &model, NULL);
    *work = (struct kg_model_problem){0}; // the first launch of a kernel does it
    if (status != KG_OK)
        return;
    evidence->has_code = true;
    add_spills(kernel, evidence);
    for (int i = 0; i < KG_TERM_COUNT; i++)
        evidence->term[i] += i == KG_TERM_MEMORY ? 0 : model.expected[i];
    double expected = model.expected[model.expected_limiter];
    if (expected < *longest)
        return;
    *longest = expected;
    evidence->blocks = (double)launch.grid;
    evidence->waves = model.waves.waves;
    evidence->idle = model.waves.idle;
    evidence->occupancy = model.occupancy.share;
    evidence->occupancy_limiter = model.occupancy.limiter;
    evidence->in_flight = loaded_bytes(kernel, format) * 32 * model.occupancy.warps *
                          fmin(gpu->sms, (double)launch.grid);
    evidence->in_flight_needed = gpu->bandwidth * gpu->sm->latency * 1e-9;
}

// What the kernel of a group has to do.
static struct kg_model_problem describe_work(const struct kg_group *group)
{
    struct kg_model_problem work = {.write_bytes = kg_group_bytes(group)};
    for (int i = 0; i < group->count; i++) {
        work.flops += kg_group_nest(group, i)->operations;
        work.specials += kg_group_nest(group, i)->transcendentals;
    }
    work.operations = work.flops;
    return work;
}

static void add_gpu_kernel(const struct kg_plan *plan, int position, const struct kg_gpu *gpu,
                           double *longest, struct kg_evidence *evidence)
{
    const struct kg_choice *choice = &plan->built->choice;
    const struct kg_match *match = choice->matches[position];
    const struct kg_binary *binary = &plan->built->binaries[position];
    struct kg_arena arena = {0};
    struct kg_asm_file file = {0};
    struct kg_grids grids = {0};
    struct kg_model_problem work = describe_work(&match->group);
    bool is_read =
        binary->bytes && kg_asm_read(binary->bytes, binary->length, &arena, &file, NULL) == KG_OK;
    match->family->grids(match, &choice->configs[position], &grids);
    for (int i = 0; i < grids.count; i++)
        if (kg_forecast_is_launched(&grids.grids[i]))
            add_launch(is_read ? kg_forecast_function(&file, i) : NULL, file.format, gpu,
                       &grids.grids[i], &work, longest, evidence);
    kg_arena_free(&arena);
}

static void add_gpu(const struct kg_plan *plan, struct kg_evidence *evidence)
{
    struct kg_gpu gpu;
    double longest = 0;
    bool warm = plan->session->protocol.cache == KG_WARM;
    if (kg_gpu_of(&plan->device->facts, &gpu, NULL) != KG_OK)
        return;
    for (int i = 0; i < plan->built->choice.count; i++)
        add_gpu_kernel(plan, i, &gpu, &longest, evidence);
    if (evidence->launches > 0)
        evidence->launch_seconds = kg_model_overhead(evidence->launches, warm, &kg_model_prior);
}

// ---- The host

static int64_t count_calls(const struct kg_asm_kernel *kernel)
{
    int64_t calls = 0;
    for (int i = 0; i < kernel->opcode_count; i++)
        if (strcmp(kernel->opcodes[i].name, "call") == 0)
            calls += kernel->opcodes[i].count;
    return calls;
}

// The widest registers in which floats are multiplied, by the bytes of the loops' accesses.
static int find_width(const struct kg_asm_kernel *kernel)
{
    int bits = 0;
    for (int a = 0; a < kernel->advice_count; a++) {
        const char *at = strcmp(kernel->advice[a].code, "vector-width") == 0
                             ? strstr(kernel->advice[a].text, " are ")
                             : NULL;
        if (at)
            bits = (int)strtol(at + strlen(" are "), NULL, 10);
    }
    return bits;
}

// Objects hold the functions of the system's linker beside those of the kernel.
static bool is_of_kernel(const struct kg_asm_kernel *kernel)
{
    size_t length = strlen(kernel->name);
    return length > 4 && strcmp(kernel->name + length - 4, "_run") == 0;
}

// Spills count in the kernel that takes longest.
static void add_object(const struct kg_binary *binary, bool is_longest,
                       struct kg_evidence *evidence)
{
    char *bytes = NULL;
    size_t length;
    struct kg_arena arena = {0};
    struct kg_asm_file file;
    if (!binary->path || kg_files_read(binary->path, MAX_OBJECT, &bytes, &length, NULL) != KG_OK)
        return;
    if (kg_asm_read(bytes, length, &arena, &file, NULL) == KG_OK)
        for (int i = 0; i < file.kernel_count; i++) {
            const struct kg_asm_kernel *kernel = &file.kernels[i];
            if (!is_of_kernel(kernel))
                continue;
            evidence->has_code = true;
            evidence->calls += (int)count_calls(kernel);
            int bits = find_width(kernel);
            evidence->vector_bits = bits > evidence->vector_bits ? bits : evidence->vector_bits;
            if (is_longest)
                add_spills(kernel, evidence);
        }
    kg_arena_free(&arena);
    free(bytes);
}

static void add_host(const struct kg_plan *plan, struct kg_evidence *evidence)
{
    const struct kg_device_facts *facts = &plan->device->facts;
    const struct kg_backend *backend = plan->device->backend;
    const struct kg_choice *choice = &plan->built->choice;
    bool cold = plan->session->protocol.cache != KG_WARM;
    int woken = 0, longest = find_longest(choice);
    evidence->launches = choice->count;
    evidence->widest_bits = 8 * facts->vector_bytes;
    for (int i = 0; i < choice->count; i++) {
        add_object(&plan->built->binaries[i], i == longest, evidence);
        woken += plan->prepared && kg_prepared_ranges(plan->prepared, i) > 1;
    }
    evidence->term[KG_TERM_FLOPS] = evidence->roofline.compute_seconds;
    double cycles =
        evidence->calls > 0 ? SINGLE_CALL : VECTOR_CALL * 4.0 / fmax(facts->vector_bytes, 4);
    if (facts->clock > 0)
        evidence->term[KG_TERM_SPECIAL] =
            plan->problem->transcendentals * cycles / (facts->clock * facts->units);
    if (plan->prepared)
        evidence->blocks = (double)kg_prepared_ranges(plan->prepared, longest);
    if (evidence->blocks > 0 && facts->units > 0) {
        evidence->waves = evidence->blocks / facts->units;
        evidence->idle = 1 - evidence->waves / ceil(evidence->waves);
    }
    if (backend->idle_launch)
        evidence->wake_seconds = backend->idle_launch(plan->device, cold);
    if (woken > 0 && backend->idle_launch) // the first after a pause, the others at once
        evidence->launch_seconds =
            evidence->wake_seconds + (woken - 1) * backend->idle_launch(plan->device, false);
}

void kg_flow_evidence(const struct kg_plan *plan, double seconds, struct kg_evidence *evidence)
{
    const struct kg_problem *problem = plan->problem;
    const struct kg_device_facts *facts = &plan->device->facts;
    *evidence = (struct kg_evidence){
        .host = !plan->device->backend->runs_grids,
        .seconds = seconds,
        .roofline = kg_roofline_of(problem, facts),
        .units = facts->units,
        .compulsory = problem->read_bytes + problem->write_bytes,
    };
    bool multiplies = problem->class == KG_CLASS_CONTRACT || problem->class == KG_CLASS_WINDOW;
    evidence->on_matrix_units =
        multiplies && facts->matrix_flops[problem->tensors[0]->type.dtype] > 0;
    evidence->moved = kg_flow_traffic(&plan->built->choice, facts);
    if (evidence->host)
        add_host(plan, evidence);
    else
        add_gpu(plan, evidence);
}

void kg_flow_diagnose_plan(const struct kg_plan *plan, double seconds,
                           struct kg_diagnosed *diagnosed)
{
    struct kg_evidence evidence;
    kg_flow_evidence(plan, seconds, &evidence);
    kg_flow_diagnose(&evidence, diagnosed);
}
