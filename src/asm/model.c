// The terms of the model, their maximum, and the estimate. docs/model.md gives the sources of the
// constants here and in the prior.

#include "asm/model.h"

#include "asm/model_work.h"

#include <math.h>
#include <string.h>

#define WARP 32
#define SCHEDULERS 4

// All inputs of the terms.
struct inputs {
    const struct kg_asm_kernel *kernel;
    enum kg_asm_format format;
    const struct kg_gpu *gpu;
    const struct kg_model_launch *launch;
    const struct kg_model_problem *problem;
    struct kg_model_work work;
    double blocks; // on the busiest SM
    double warps;  // on the busiest SM, of all its blocks
};

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double seconds(const struct inputs *in, double cycles)
{
    return cycles / in->gpu->clock;
}

// The rate class of each matrix instruction. A name that is a prefix of another comes after it.
static const struct {
    const char *opcode;
    enum kg_matrix format;
} matrix_opcodes[] = {
    {"HMMA", KG_MATRIX_16}, {"HGMMA", KG_MATRIX_16}, {"UTCHMMA", KG_MATRIX_16},
    {"QMMA", KG_MATRIX_8},  {"QGMMA", KG_MATRIX_8},  {"UTCQMMA", KG_MATRIX_8},
    {"IMMA", KG_MATRIX_8},  {"IGMMA", KG_MATRIX_8},  {"UTCIMMA", KG_MATRIX_8},
    {"DMMA", KG_MATRIX_64},
};

static bool format_of_opcode(const char *name, enum kg_matrix *format)
{
    for (size_t i = 0; i < sizeof matrix_opcodes / sizeof matrix_opcodes[0]; i++)
        if (strcmp(name, matrix_opcodes[i].opcode) == 0) {
            *format = matrix_opcodes[i].format;
            return true;
        }
    return false;
}

bool kg_model_format(const struct kg_asm_kernel *kernel, const struct kg_sm *sm,
                     enum kg_matrix *format)
{
    int rate = 0;
    for (int o = 0; o < kernel->opcode_count; o++) {
        enum kg_matrix named;
        if (!format_of_opcode(kernel->opcodes[o].name, &named) || kg_sm_matrix(sm, named) <= rate)
            continue;
        rate = kg_sm_matrix(sm, named);
        *format = named;
    }
    return rate > 0;
}

// FLOPs per clock of an SM that no matrix instruction of the kernel exceeds: by its opcodes, else
// the rate of the fastest format.
static double best_matrix_rate(const struct inputs *in)
{
    const struct kg_sm *sm = in->gpu->sm;
    enum kg_matrix format;
    return kg_model_format(in->kernel, sm, &format) ? kg_sm_matrix(sm, format)
                                                    : kg_sm_fastest_matrix(sm);
}

static double likely_matrix_rate(const struct inputs *in)
{
    const struct kg_model_problem *problem = in->problem;
    int rate = problem->on_matrix_units ? kg_sm_matrix(in->gpu->sm, problem->factors) : 0;
    return rate ? rate : best_matrix_rate(in);
}

static double tensor_time(const struct inputs *in, const struct kg_mix *mix, double rate)
{
    return rate > 0 ? seconds(in, mix->tensor_flops * in->warps / rate) : 0;
}

static double pipe_time(const struct inputs *in, double count, int lanes)
{
    return seconds(in, count * in->warps * WARP / lanes);
}

static double byte_time(const struct inputs *in, double bytes, int per_clock)
{
    return seconds(in, bytes * in->warps * WARP / per_clock);
}

static double sum_of(const double counts[KG_WORK_COUNT], const enum kg_work *works, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += counts[works[i]];
    return sum;
}

#define SUM_OF(counts, ...)                                                                        \
    sum_of((counts), (const enum kg_work[]){__VA_ARGS__},                                          \
           sizeof((const enum kg_work[]){__VA_ARGS__}) / sizeof(enum kg_work))

static double access_count(const struct kg_mix *mix)
{
    return SUM_OF(mix->count, KG_WORK_LOAD_GLOBAL, KG_WORK_STORE_GLOBAL, KG_WORK_LOAD_SHARED,
                  KG_WORK_STORE_SHARED, KG_WORK_LOAD_LOCAL, KG_WORK_STORE_LOCAL, KG_WORK_ATOMIC,
                  KG_WORK_ASYNC_COPY);
}

// For the busiest SM. The stalls of a warp count `rounds` times in sequence.
static void pipe_terms(const struct inputs *in, const struct kg_model_share *share, double rounds,
                       double term[KG_TERM_COUNT])
{
    const struct kg_sm *sm = in->gpu->sm;
    const double *count = share->mix.count;
    term[KG_TERM_FMA] = pipe_time(in, count[KG_WORK_FMA], sm->fma);
    term[KG_TERM_HALF] = pipe_time(in, count[KG_WORK_HALF], sm->half);
    term[KG_TERM_REAL64] = pipe_time(in, count[KG_WORK_DOUBLE], sm->real64);
    term[KG_TERM_SPECIAL] = pipe_time(in, count[KG_WORK_SPECIAL], sm->special);
    term[KG_TERM_CONVERT] = pipe_time(in, count[KG_WORK_CONVERT], sm->convert);
    term[KG_TERM_ACCESS] = pipe_time(in, access_count(&share->mix), sm->memory);
    term[KG_TERM_ISSUE] = seconds(in, share->instructions * in->warps / SCHEDULERS);
    term[KG_TERM_LATENCY] = seconds(in, share->stall_cycles * rounds);
}

// The last stores may remain in the L2; with warm caches, the first loads may hit it.
static double least_memory_time(const struct inputs *in)
{
    const struct kg_model_problem *problem = in->problem;
    const struct kg_gpu *gpu = in->gpu;
    double all = problem->read_bytes + problem->write_bytes, kept = (double)gpu->l2_bytes;
    double bytes = problem->warm ? larger(all - kept, 0)
                                 : problem->read_bytes + larger(problem->write_bytes - kept, 0);
    double from_memory = gpu->bandwidth > 0 ? bytes / gpu->bandwidth : 0;
    return larger(from_memory, seconds(in, all / ((double)gpu->sm->l2_bytes * gpu->sms)));
}

static double likely_memory_time(const struct inputs *in)
{
    const struct kg_model_problem *problem = in->problem;
    double all = problem->read_bytes + problem->write_bytes;
    bool fits = problem->warm && all <= (double)in->gpu->l2_bytes;
    return fits || in->gpu->bandwidth <= 0 ? least_memory_time(in) : all / in->gpu->bandwidth;
}

static double flops_time(const struct inputs *in)
{
    const struct kg_sm *sm = in->gpu->sm;
    // Multiply-adds; of f16, two per instruction.
    double rate = larger(2 * sm->fma, 4 * sm->half);
    if (in->problem->on_matrix_units)
        rate = larger(rate, kg_sm_matrix(sm, in->problem->factors));
    return seconds(in, in->problem->flops / (rate * in->gpu->sms));
}

static double max_term(const double term[KG_TERM_COUNT], enum kg_term *which)
{
    *which = KG_TERM_MEMORY;
    for (int t = 0; t < KG_TERM_COUNT; t++)
        if (term[t] > term[*which])
            *which = (enum kg_term)t;
    return term[*which];
}

static void find_bound(const struct inputs *in, struct kg_model *model)
{
    const struct kg_model_share *sure = &in->work.sure;
    double rounds = ceil(in->blocks / model->occupancy.blocks);
    // ptxas may change everything but matrix instructions.
    if (in->format != KG_ASM_PTX)
        pipe_terms(in, sure, rounds, model->term);
    model->term[KG_TERM_TENSOR] = tensor_time(in, &sure->mix, best_matrix_rate(in));
    model->term[KG_TERM_MEMORY] = least_memory_time(in);
    model->term[KG_TERM_FLOPS] = flops_time(in);
    // At least one clock, so that ratios are finite.
    model->bound = larger(max_term(model->term, &model->limiter), seconds(in, 1));
}

static void find_expected(const struct inputs *in, struct kg_model *model)
{
    const struct kg_model_share *share = &in->work.expected;
    const struct kg_sm *sm = in->gpu->sm;
    const struct kg_mix *mix = &share->mix;
    double *term = model->expected;
    pipe_terms(in, share, ceil(in->blocks / model->occupancy.blocks), term);
    term[KG_TERM_TENSOR] = tensor_time(in, mix, likely_matrix_rate(in));
    term[KG_TERM_MEMORY] = likely_memory_time(in);
    term[KG_TERM_INTEGER] =
        pipe_time(in, SUM_OF(mix->count, KG_WORK_INTEGER, KG_WORK_SELECT), sm->integer);
    term[KG_TERM_SHARED] = byte_time(
        in, SUM_OF(mix->bytes, KG_WORK_LOAD_SHARED, KG_WORK_STORE_SHARED), sm->shared_bytes);
    term[KG_TERM_L2] =
        byte_time(in,
                  SUM_OF(mix->bytes, KG_WORK_LOAD_GLOBAL, KG_WORK_STORE_GLOBAL, KG_WORK_ATOMIC,
                         KG_WORK_ASYNC_COPY, KG_WORK_LOAD_LOCAL, KG_WORK_STORE_LOCAL),
                  sm->l2_bytes);
    for (int t = 0; t < KG_TERM_COUNT; t++)
        term[t] = larger(term[t], model->term[t]);
    max_term(term, &model->expected_limiter);
}

static bool is_amount(double value)
{
    return value >= 0 && value <= KG_MIX_MAX;
}

static enum kg_status check(const struct kg_model_launch *launch,
                            const struct kg_model_problem *problem, struct kg_error *error)
{
    if (launch->grid <= 0 || launch->dynamic_shared < 0)
        return kg_error_set(error, KG_ERROR_ARGUMENT,
                            "a launch of %lld blocks with %lld bytes of dynamic shared memory",
                            (long long)launch->grid, (long long)launch->dynamic_shared);
    bool sane = is_amount(problem->read_bytes) && is_amount(problem->write_bytes) &&
                is_amount(problem->flops) && is_amount(problem->operations) &&
                is_amount(problem->specials);
    for (int t = 0; t < problem->trip_count; t++)
        sane = sane && is_amount(problem->trips[t].trips);
    if (!sane)
        return kg_error_set(error, KG_ERROR_ARGUMENT,
                            "bytes, FLOPs and trips of a problem are numbers of at least 0");
    return KG_OK;
}

static enum kg_status find_occupancy(const struct inputs *in, struct kg_model *model,
                                     struct kg_error *error)
{
    struct kg_block_needs needs = {
        .threads = in->launch->threads,
        .registers = in->kernel->registers,
        .static_shared = in->kernel->shared_bytes,
        .dynamic_shared = in->launch->dynamic_shared,
        .barriers = in->kernel->barriers,
        .cluster = in->launch->cluster,
    };
    model->occupancy = kg_occupancy_of(in->gpu->sm, &needs);
    model->waves =
        kg_occupancy_waves(&model->occupancy, in->launch->grid, in->gpu->sms, in->launch->cluster);
    if (model->occupancy.blocks > 0 && model->waves.resident > 0)
        return KG_OK;
    struct kg_text why = {0};
    kg_occupancy_explain(&why, in->gpu->sm, &needs);
    kg_error_set(error, KG_ERROR_UNSUPPORTED, "'%s' cannot be launched on sm_%d: %s",
                 in->kernel->name, in->gpu->sm->sm, kg_text_string(&why));
    kg_text_free(&why);
    return KG_ERROR_UNSUPPORTED;
}

double kg_model_overhead(int launches, bool warm, const struct kg_model_coefficients *coefficients)
{
    double first = warm ? coefficients->overhead_warm : coefficients->overhead_cold;
    return first + (launches - 1) * coefficients->overhead_warm;
}

double kg_model_estimate(double bound, const double feature[KG_FEATURE_COUNT], int launches,
                         bool warm, const struct kg_model_coefficients *coefficients)
{
    double exponent = 0;
    for (int f = 0; f < KG_FEATURE_COUNT; f++)
        exponent += coefficients->beta[f] * feature[f];
    double overhead = kg_model_overhead(launches, warm, coefficients);
    return larger(bound, bound * exp(exponent) + overhead);
}

void kg_model_join(struct kg_model_joined *joined, double bound,
                   const double feature[KG_FEATURE_COUNT])
{
    double before = joined->bound * exp(joined->feature[KG_FEATURE_EXPECTED]);
    double added = bound * exp(feature[KG_FEATURE_EXPECTED]);
    for (int f = 0; f < KG_FEATURE_COUNT; f++)
        joined->feature[f] = (joined->feature[f] * before + feature[f] * added) / (before + added);
    joined->launches++;
    joined->bound += bound;
    joined->feature[KG_FEATURE_EXPECTED] = log((before + added) / joined->bound);
}

enum kg_status kg_model_make(const struct kg_asm_kernel *kernel, enum kg_asm_format format,
                             const struct kg_gpu *gpu, const struct kg_model_launch *launch,
                             const struct kg_model_problem *problem,
                             const struct kg_model_coefficients *coefficients,
                             struct kg_model *model, struct kg_error *error)
{
    *model = (struct kg_model){0};
    struct inputs in = {kernel, format, gpu, launch, problem, .blocks = 0};
    enum kg_status status = check(launch, problem, error);
    if (status == KG_OK)
        status = find_occupancy(&in, model, error);
    if (status != KG_OK)
        return status;
    if (!kg_model_weigh(kernel, launch, problem, &in.work))
        return kg_error_memory(error, "the model of a kernel");
    in.blocks = (double)model->waves.busiest;
    in.warps = in.blocks * model->occupancy.warps / model->occupancy.blocks;
    find_bound(&in, model);
    find_expected(&in, model);
    kg_model_features(kernel, &in.work, model);
    kg_model_derive(model->bound, launch, gpu, model->feature);
    model->estimate = kg_model_estimate(model->bound, model->feature, 1, problem->warm,
                                        coefficients ? coefficients : &kg_model_prior);
    return KG_OK;
}

const char *kg_term_name(enum kg_term term)
{
    static const char *const names[KG_TERM_COUNT] = {
        [KG_TERM_MEMORY] = "memory",   [KG_TERM_FLOPS] = "flops",     [KG_TERM_TENSOR] = "tensor",
        [KG_TERM_FMA] = "fma",         [KG_TERM_HALF] = "half",       [KG_TERM_REAL64] = "double",
        [KG_TERM_SPECIAL] = "special", [KG_TERM_CONVERT] = "convert", [KG_TERM_ACCESS] = "access",
        [KG_TERM_ISSUE] = "issue",     [KG_TERM_LATENCY] = "latency", [KG_TERM_INTEGER] = "integer",
        [KG_TERM_SHARED] = "shared",   [KG_TERM_L2] = "l2",
    };
    return names[term];
}
