// Matrix products on CUDA: a sum over products of two operands, with an epilogue that is fused.
// contract_operands.h says how a statement is read as a product.
//
// There are several forms of kernel, each a family of its own. This file has what they share: the
// match, configs, the lists for searches, the bound, the source around a form's own functions.

#include "gen/cuda/contract/cuda_contract.h"

#include "gen/cuda/contract/cuda_contract_times.h"
#include "gen/cuda/cuda_frame.h"
#include "gen/shared/axes.h"
#include "gen/shared/bound.h"
#include "gen/skeleton.h"

#include <math.h>
#include <string.h>

enum { MAX_BLOCKS = 1 << 30, FOLD_THREADS = 256, ACCESS = 16 };

static const int64_t limits[] = {0, 80, 96, 112, 128, 144, 160};
enum { LIMITS = sizeof limits / sizeof *limits };

bool kg_cuda_contract_is_clustered(const struct kg_cuda_contract_plan *plan)
{
    return plan->config.cluster_m * plan->config.cluster_n > 1;
}

bool kg_cuda_contract_refuse(struct kg_text *reason, const char *why)
{
    if (reason)
        kg_text_add(reason, why);
    return false;
}

// Copies the values of a config to the plan; kg_cuda_contract_collect copies them back.
static void configure(struct kg_cuda_contract_plan *plan, const struct kg_config *config)
{
    const struct kg_cuda_contract_parameter *parameters = plan->form->parameters;
    for (int i = 0; parameters[i].name; i++)
        *(int *)((char *)&plan->config + parameters[i].field) = (int)config->value[i];
}

void kg_cuda_contract_collect(const struct kg_cuda_contract_plan *plan, struct kg_config *config)
{
    const struct kg_cuda_contract_parameter *parameters = plan->form->parameters;
    *config = (struct kg_config){0};
    for (int i = 0; parameters[i].name; i++)
        config->value[i] = *(const int *)((const char *)&plan->config + parameters[i].field);
}

static int64_t count_of(const struct kg_contract *contract, enum kg_contract_role part)
{
    int64_t count = 1;
    for (int i = 0; i < contract->axis_count[part]; i++)
        count *= contract->nest->extent[contract->axes[part][i]];
    return count;
}

void kg_cuda_contract_plan_make(const struct kg_match *match, const struct kg_config *config,
                                struct kg_cuda_contract_plan *plan)
{
    *plan = *(const struct kg_cuda_contract_plan *)match->analysis;
    plan->batches = count_of(&plan->contract, KG_CONTRACT_BATCH);
    plan->m = count_of(&plan->contract, KG_CONTRACT_M);
    plan->n = count_of(&plan->contract, KG_CONTRACT_N);
    plan->k = count_of(&plan->contract, KG_CONTRACT_K);
    if (config)
        configure(plan, config);
}

int64_t kg_cuda_contract_m_after_swap(const struct kg_cuda_contract_plan *plan)
{
    return plan->config.swap ? plan->n : plan->m;
}

int64_t kg_cuda_contract_n_after_swap(const struct kg_cuda_contract_plan *plan)
{
    return plan->config.swap ? plan->m : plan->n;
}

int64_t kg_cuda_contract_tiles_across(const struct kg_cuda_contract_plan *plan)
{
    int64_t wide = kg_cuda_contract_n_after_swap(plan), overlap = plan->config.overlap;
    return wide <= overlap ? wide > 0 : kg_ceil_div(wide - overlap, plan->config.tile_n - overlap);
}

int64_t kg_cuda_contract_tiles(const struct kg_cuda_contract_plan *plan)
{
    return plan->batches * kg_ceil_div(kg_cuda_contract_m_after_swap(plan), plan->config.tile_m) *
           kg_cuda_contract_tiles_across(plan);
}

// ---- Match, space and validity ----

static bool has_output(const struct kg_group *group)
{
    for (int i = 0; i < group->count; i++)
        if (!kg_group_is_private(group, kg_group_nest(group, i)->output))
            return true;
    return false;
}

const void *kg_cuda_contract_match(const struct kg_cuda_contract_form *form,
                                   const struct kg_group *group,
                                   const struct kg_device_facts *facts, struct kg_arena *arena,
                                   struct kg_text *reason)
{
    struct kg_cuda_contract_plan *plan = KG_NEW(arena, struct kg_cuda_contract_plan);
    if (!plan)
        return NULL;
    *plan = (struct kg_cuda_contract_plan){.form = form,
                                           .group = group,
                                           .facts = facts,
                                           .config = form->defaults,
                                           .times = &kg_cuda_contract_times_of_all};
    if (!kg_cuda_fits(group, reason) || !kg_contract_read(group, &plan->contract, reason))
        return NULL;
    kg_cuda_contract_read_operands(plan);
    if (!has_output(group)) {
        kg_cuda_contract_refuse(reason, "nothing reads its result");
        return NULL;
    }
    return !form->takes || form->takes(plan, reason) ? plan : NULL;
}

// By the field that a parameter sets; those that are not listed are of the pipeline.
static enum kg_change change_of(size_t field)
{
#define FIELD(NAME) offsetof(struct kg_cuda_contract_config, NAME)
    static const struct {
        size_t field;
        enum kg_change change;
    } changes[] = {
        {FIELD(tile_m), KG_CHANGE_REUSE},    {FIELD(tile_n), KG_CHANGE_REUSE},
        {FIELD(tile_k), KG_CHANGE_REUSE},    {FIELD(cluster_m), KG_CHANGE_REUSE},
        {FIELD(cluster_n), KG_CHANGE_REUSE}, {FIELD(swap), KG_CHANGE_BLOCK},
        {FIELD(split_k), KG_CHANGE_BLOCK},   {FIELD(words), KG_CHANGE_ACCESS},
    };
#undef FIELD
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++)
        if (changes[i].field == field)
            return changes[i].change;
    return KG_CHANGE_STAGES;
}

void kg_cuda_contract_space(const struct kg_match *match, struct kg_space *space)
{
    const struct kg_cuda_contract_plan *plan = match->analysis;
    const struct kg_cuda_contract_parameter *parameters = plan->form->parameters;
    *space = (struct kg_space){0};
    for (int i = 0; parameters[i].name; i++)
        (parameters[i].optional ? kg_space_add_optional : kg_space_add)(
            space, parameters[i].name, change_of(parameters[i].field), parameters[i].count,
            parameters[i].choices);
}

bool kg_cuda_contract_check(const struct kg_cuda_contract_plan *plan, struct kg_text *reason)
{
    if (plan->config.split_k > 1 &&
        plan->config.split_k > kg_ceil_div(plan->k, plan->config.tile_k))
        return kg_cuda_contract_refuse(reason, "split_k is larger than the number of K tiles");
    return plan->form->valid(plan, reason);
}

bool kg_cuda_contract_valid(const struct kg_match *match, const struct kg_config *config,
                            struct kg_text *reason)
{
    struct kg_cuda_contract_plan plan;
    kg_cuda_contract_plan_make(match, config, &plan);
    return kg_cuda_contract_check(&plan, reason);
}

// ---- The config by rule ----

bool kg_cuda_contract_advised(const struct kg_match *match, struct kg_text *reason)
{
    struct kg_cuda_contract_plan plan;
    kg_cuda_contract_plan_make(match, NULL, &plan);
    return plan.form->guess(&plan) ||
           kg_cuda_contract_refuse(reason, "another form is expected to be faster for these sizes");
}

void kg_cuda_contract_guess(const struct kg_match *match, struct kg_config *config)
{
    struct kg_cuda_contract_plan plan;
    kg_cuda_contract_plan_make(match, NULL, &plan);
    plan.form->guess(&plan);
    kg_cuda_contract_collect(&plan, config);
}

// ---- Configs for searches ----

double kg_cuda_contract_expect(const struct kg_cuda_contract_plan *plan)
{
    if (plan->form->rate(plan) <= 0)
        return 0;
    if (plan->form->seconds)
        return plan->form->seconds(plan);
    const struct kg_cuda_contract_cost_terms cost_terms = plan->form->cost_terms(plan);
    return kg_cuda_contract_seconds(plan, &cost_terms);
}

// In the first pass only notes the shortest expected time; in the second, takes what is at most
// MAX_TIMES as long.
static void take(struct kg_cuda_contract_listing *listing, const struct kg_cuda_contract_plan *plan)
{
    enum { MAX_TIMES = 3 };
    double seconds = kg_cuda_contract_expect(plan);
    if (!listing->known) {
        listing->least = seconds > 0 && seconds < listing->least ? seconds : listing->least;
    } else if (!listing->full && seconds <= MAX_TIMES * listing->least) {
        struct kg_config config;
        kg_cuda_contract_collect(plan, &config);
        if (memcmp(&config, &listing->guess, sizeof config) != 0)
            listing->full = !listing->take(listing->user, &config);
    }
}

void kg_cuda_contract_take_best(struct kg_cuda_contract_plan *plan, void *user)
{
    struct kg_cuda_contract_best *best = user;
    if (!kg_cuda_contract_check(plan, NULL))
        return;
    double seconds = best->seconds(plan);
    if (best->least >= 0 && seconds >= best->least)
        return;
    best->least = seconds;
    best->config = plan->config;
}

void kg_cuda_contract_take(struct kg_cuda_contract_listing *listing,
                           const struct kg_cuda_contract_plan *plan)
{
    if (listing->full || !kg_cuda_contract_check(plan, NULL))
        return;
    take(listing, plan);
    struct kg_cuda_contract_plan limited = *plan;
    int blocks = plan->form->cost_terms(plan).blocks_per_sm;
    for (int i = LIMITS - 1; i > 0; i--) {
        limited.config.maxnreg = (int)limits[i];
        if (!kg_cuda_contract_check(&limited, NULL) ||
            plan->form->cost_terms(&limited).blocks_per_sm <= blocks)
            continue;
        blocks = plan->form->cost_terms(&limited).blocks_per_sm;
        take(listing, &limited);
    }
}

void kg_cuda_contract_list_splits(struct kg_cuda_contract_plan *plan, int limit,
                                  struct kg_cuda_contract_listing *listing)
{
    int64_t tiles = kg_cuda_contract_tiles(plan), units = plan->facts->units;
    for (int splits = 1; splits <= limit; splits *= 2) {
        plan->config.split_k = splits;
        if (splits == 1 || tiles * splits <= 4 * units)
            kg_cuda_contract_take(listing, plan);
    }
    plan->config.split_k = plan->config.raster = 1;
    if (tiles > units)
        kg_cuda_contract_take(listing, plan);
    plan->config.raster = 0;
}

// The guess first, whatever time is expected of it. Then two passes over all configs: one to find
// the shortest expected time, one to take those that come near it.
void kg_cuda_contract_list(const struct kg_match *match, kg_config_take *take_config, void *user)
{
    struct kg_cuda_contract_plan plan;
    struct kg_cuda_contract_listing listing = {
        .take = take_config, .user = user, .least = INFINITY};
    kg_cuda_contract_guess(match, &listing.guess);
    if (kg_cuda_contract_valid(match, &listing.guess, NULL))
        listing.full = !take_config(user, &listing.guess);
    for (int pass = 0; pass < 2; pass++) {
        listing.known = pass == 1;
        kg_cuda_contract_plan_make(match, NULL, &plan);
        plan.form->list(&plan, &listing);
    }
}

double kg_cuda_contract_expected(const struct kg_match *match, const struct kg_config *config)
{
    struct kg_cuda_contract_plan plan;
    kg_cuda_contract_plan_make(match, config, &plan);
    return kg_cuda_contract_expect(&plan);
}

// ---- Bound, source, launches ----

// The longer of compulsory memory traffic and the multiplications of the busiest SM.
double kg_cuda_contract_bound(const struct kg_match *match, const struct kg_config *config)
{
    const struct kg_device_facts *facts = match->facts;
    struct kg_cuda_contract_plan plan;
    kg_cuda_contract_plan_make(match, config, &plan);
    double seconds = 0, rate = plan.form->rate(&plan);
    double bytes = kg_group_bytes(&match->group) - (double)facts->cache[3];
    if (facts->bandwidth > 0 && bytes > 0)
        seconds = bytes / facts->bandwidth;
    if (rate > 0 && facts->units > 0) {
        double tile = 2.0 * plan.config.tile_m * plan.config.tile_n * (double)plan.k;
        int64_t tiles = kg_cuda_contract_tiles(&plan), waves = kg_ceil_div(tiles, facts->units);
        // K slices differ in length, and may be empty: they are counted as if divided evenly.
        double share = plan.config.split_k == 1 ? (double)waves : (double)tiles / facts->units;
        double busy = share * tile / (rate / facts->units);
        seconds = busy > seconds ? busy : seconds;
    }
    return seconds;
}

bool kg_cuda_contract_emit(const struct kg_match *match, const struct kg_config *config,
                           const char *entry, struct kg_text *source)
{
    static const char *const shared[] = {"cuda/index.cuh", "cuda/vectors.cuh",
                                         "cuda/contract_job.cuh"};
    struct kg_cuda_contract_plan plan;
    struct kg_space space;
    struct kg_code code = {source, 0};
    kg_cuda_contract_plan_make(match, config, &plan);
    plan.entry = entry;
    kg_cuda_contract_space(match, &space);
    kg_cuda_opening(source, &match->group, match->family->name, config, &space);
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) {
        kg_text_add(source, kg_skeleton_find(shared[i]));
        kg_text_add(source, "\n");
    }
    for (const char *const *skeleton = plan.form->skeletons; *skeleton; skeleton++) {
        kg_text_add(source, kg_skeleton_find(*skeleton));
        kg_text_add(source, "\n");
    }
    kg_cuda_contract_emit_job(&code, &plan);
    plan.form->emit(&code, &plan);
    return !source->failed;
}

void kg_cuda_contract_launch(const struct kg_cuda_contract_plan *plan, struct kg_grid grid,
                             int whole, int count, struct kg_grids *grids)
{
    const struct kg_grid none = {.threads = {1, 1, 1}};
    int64_t outputs = plan->batches * plan->m * plan->n;
    *grids = (struct kg_grids){.count = count, .alignment = ACCESS};
    for (int i = 0; i < count; i++) {
        grids->grids[i] = i == whole ? grid : none;
        grids->unaligned[i] = i == 1 ? grid : none;
    }
    if (plan->config.split_k == 1)
        return;
    int64_t blocks = kg_ceil_div(outputs, FOLD_THREADS);
    grids->grids[count] = grids->unaligned[count] = (struct kg_grid){
        .blocks = {blocks < MAX_BLOCKS ? blocks : MAX_BLOCKS, 1, 1},
        .threads = {FOLD_THREADS, 1, 1},
    };
    grids->count++;
    size_t bytes = plan->contract.type == KG_TYPE_F32 ? 4 : 8;
    grids->scratch = (size_t)outputs * (size_t)plan->config.split_k * bytes;
}

void kg_cuda_contract_grids(const struct kg_match *match, const struct kg_config *config,
                            struct kg_grids *grids)
{
    struct kg_cuda_contract_plan plan;
    kg_cuda_contract_plan_make(match, config, &plan);
    *grids = (struct kg_grids){0};
    plan.form->grids(&plan, grids);
}
