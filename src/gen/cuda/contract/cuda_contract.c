// The family of matrix products on CUDA: a sum over products of two sides, with whatever is done to
// each element of the result afterwards. contract_operands.h says how a statement is read as a
// product.
//
// There are several forms of kernel; a config tells by its values which one it is. What is common
// to them stands here: the parameters, which form owns a config, the config by rule, the bound.

#include "gen/cuda/contract/cuda_contract.h"

#include "gen/cuda/contract/cuda_contract_times.h"
#include "gen/cuda/cuda_frame.h"
#include "gen/families.h"
#include "gen/shared/axes.h"
#include "gen/skeleton.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum { MOST_BLOCKS = 1 << 30, FOLD_THREADS = 256, ACCESS = 16 };

// Best first, where its rule takes a problem; the last one takes any. A new form adds its line
// here.
static const struct kg_cuda_contract_form *const forms[] = {
    &kg_cuda_contract_wgmma_f32, &kg_cuda_contract_wgmma, &kg_cuda_contract_thin,
    &kg_cuda_contract_mma,       &kg_cuda_contract_tile,
};
enum { FORMS = sizeof forms / sizeof *forms };

#define FIELD(name) offsetof(struct kg_cuda_contract_plan, set.name)

// The parameters, the usual value first. Those with one choice are no parameters of the space.
static const struct {
    const char *name;
    size_t field;
    int count;
    int64_t choices[KG_MAX_CHOICES];
} parameters[] = {
    {"mma", FIELD(mma), 3, {0, 16, 64}},
    {"rows", FIELD(rows), 9, {128, 64, 32, 16, 256, 1, 2, 4, 8}},
    {"columns", FIELD(columns), 22, {128, 64,  32,  16, 256, 8,  4,   2,   1,   512, 192,
                                     96,  160, 224, 48, 24,  80, 112, 144, 176, 208, 240}},
    {"depth", FIELD(depth), 10, {16, 8, 32, 64, 128, 256, 512, 1024, 2048, 4096}},
    {"stages", FIELD(stages), 13, {1, 2, 4, 8, 3, 5, 6, 7, 10, 12, 9, 14, 16}},
    {"down", FIELD(down), 3, {1, 2, 4}},
    {"across", FIELD(across), 3, {1, 2, 4}},
    {"pingpong", FIELD(pingpong), 2, {0, 1}},
    {"split", FIELD(split), 14, {1, 2, 4, 8, 16, 32, 64, 128, 3, 6, 12, 24, 48, 0}},
    {"swap", FIELD(swap), 2, {0, 1}},
    {"order", FIELD(order), 2, {0, 1}},
};
enum { PARAMETERS = sizeof parameters / sizeof *parameters };

static const int64_t limits[] = {0, 80, 96, 112, 128, 144, 160};
enum { LIMITS = sizeof limits / sizeof *limits };

bool kg_cuda_contract_is_clustered(const struct kg_cuda_contract_plan *plan)
{
    return plan->set.down * plan->set.across > 1;
}

bool kg_cuda_contract_refuse(struct kg_text *reason, const char *why)
{
    if (reason)
        kg_text_add(reason, why);
    return false;
}

static int *field_of(struct kg_cuda_contract_plan *plan, size_t field)
{
    return (int *)((char *)plan + field);
}

static void make_space(struct kg_space *space)
{
    *space = (struct kg_space){0};
    for (int i = 0; i < PARAMETERS; i++)
        if (parameters[i].count > 1)
            kg_space_add(space, parameters[i].name, parameters[i].count, parameters[i].choices);
    kg_space_add(space, "maxnreg", LIMITS, limits);
}

// The values of a config into the plan, and back.
static void configure(struct kg_cuda_contract_plan *plan, const struct kg_config *config)
{
    int at = 0;
    for (int i = 0; i < PARAMETERS; i++)
        *field_of(plan, parameters[i].field) =
            (int)(parameters[i].count > 1 ? config->value[at++] : parameters[i].choices[0]);
    plan->set.registers = (int)config->value[at];
}

static void collect(struct kg_cuda_contract_plan *plan, struct kg_config *config)
{
    int at = 0;
    *config = (struct kg_config){0};
    for (int i = 0; i < PARAMETERS; i++)
        if (parameters[i].count > 1)
            config->value[at++] = *field_of(plan, parameters[i].field);
    config->value[at] = plan->set.registers;
}

static void set_usual(struct kg_cuda_contract_plan *plan)
{
    for (int i = 0; i < PARAMETERS; i++)
        *field_of(plan, parameters[i].field) = (int)parameters[i].choices[0];
    plan->set.registers = 0;
}

static int64_t count_of(const struct kg_contract *contract, enum kg_contract_part part)
{
    int64_t count = 1;
    for (int i = 0; i < contract->axis_count[part]; i++)
        count *= contract->nest->extent[contract->axes[part][i]];
    return count;
}

void kg_cuda_contract_plan_make(const struct kg_group *group, const struct kg_device_facts *facts,
                                const struct kg_config *config, struct kg_cuda_contract_plan *plan)
{
    *plan = (struct kg_cuda_contract_plan){
        .group = group, .facts = facts, .times = &kg_cuda_contract_times_of_space};
    kg_contract_read(group, &plan->contract, NULL);
    plan->batches = count_of(&plan->contract, KG_CONTRACT_BATCH);
    plan->rows = count_of(&plan->contract, KG_CONTRACT_M);
    plan->columns = count_of(&plan->contract, KG_CONTRACT_N);
    plan->depth = count_of(&plan->contract, KG_CONTRACT_K);
    kg_cuda_contract_sides(plan);
    if (config)
        configure(plan, config);
}

static const struct kg_cuda_contract_form *form_of(const struct kg_cuda_contract_plan *plan)
{
    for (int i = 0; i < FORMS; i++)
        if (forms[i]->owns(plan))
            return forms[i];
    return NULL;
}

int64_t kg_cuda_contract_m_after_swap(const struct kg_cuda_contract_plan *plan)
{
    return plan->set.swap ? plan->columns : plan->rows;
}

int64_t kg_cuda_contract_n_after_swap(const struct kg_cuda_contract_plan *plan)
{
    return plan->set.swap ? plan->rows : plan->columns;
}

int64_t kg_cuda_contract_tiles(const struct kg_cuda_contract_plan *plan)
{
    return plan->batches * kg_ceil_div(kg_cuda_contract_m_after_swap(plan), plan->set.rows) *
           kg_ceil_div(kg_cuda_contract_n_after_swap(plan), plan->set.columns);
}

// ---- The anatomy ----

static bool applicable(const struct kg_group *group, const struct kg_device_facts *facts,
                       enum kg_target target, struct kg_text *reason)
{
    (void)facts;
    struct kg_contract contract;
    if (!kg_cuda_fits(group, target, reason) || !kg_contract_read(group, &contract, reason))
        return false;
    for (int i = 0; i < group->count; i++)
        if (!kg_group_is_private(group, kg_group_nest(group, i)->output))
            return true;
    return kg_cuda_contract_refuse(reason, "nobody reads what it makes");
}

static void space(const struct kg_group *group, const struct kg_device_facts *facts,
                  enum kg_target target, struct kg_space *space)
{
    (void)group, (void)facts, (void)target;
    make_space(space);
}

bool kg_cuda_contract_check(const struct kg_cuda_contract_plan *plan, struct kg_text *reason)
{
    const struct kg_cuda_contract_form *form = form_of(plan);
    if (!form)
        return kg_cuda_contract_refuse(reason, "no form of kernel has such tiles");
    if (plan->set.split == 0 && form != &kg_cuda_contract_wgmma)
        return kg_cuda_contract_refuse(reason, "blocks of this form do not share tiles evenly");
    if ((kg_cuda_contract_is_clustered(plan) || plan->set.pingpong) &&
        form != &kg_cuda_contract_wgmma)
        return kg_cuda_contract_refuse(reason, "blocks of this form copy and store alone");
    if (plan->set.split > 1 && plan->set.split > kg_ceil_div(plan->depth, plan->set.depth))
        return kg_cuda_contract_refuse(reason, "more pieces of the sum than there is work for");
    return form->valid(plan, reason);
}

static bool valid(const struct kg_group *group, const struct kg_device_facts *facts,
                  enum kg_target target, const struct kg_config *config, struct kg_text *reason)
{
    (void)target;
    struct kg_cuda_contract_plan plan;
    kg_cuda_contract_plan_make(group, facts, config, &plan);
    return kg_cuda_contract_check(&plan, reason);
}

// ---- The config by rule ----

static void guess(const struct kg_group *group, const struct kg_device_facts *facts,
                  enum kg_target target, struct kg_config *config)
{
    (void)target;
    struct kg_cuda_contract_plan plan;
    kg_cuda_contract_plan_make(group, facts, NULL, &plan);
    for (int form = 0; form < FORMS; form++) {
        set_usual(&plan);
        if (forms[form]->guess(&plan))
            break;
    }
    collect(&plan, config);
}

// ---- Configs for searches ----

double kg_cuda_contract_expect(const struct kg_cuda_contract_plan *plan)
{
    if (form_of(plan)->rate(plan) <= 0)
        return 0;
    const struct kg_cuda_contract_cost_terms cost_terms = form_of(plan)->cost_terms(plan);
    return kg_cuda_contract_seconds(plan, &cost_terms);
}

// What is expected to take so many times as long as the best is no candidate.
static void take(struct kg_cuda_contract_listing *listing, const struct kg_cuda_contract_plan *plan)
{
    enum { MOST_TIMES = 3 };
    double seconds = kg_cuda_contract_expect(plan);
    if (!listing->known) {
        listing->least = seconds > 0 && seconds < listing->least ? seconds : listing->least;
    } else if (!listing->full && seconds <= MOST_TIMES * listing->least) {
        struct kg_cuda_contract_plan taken = *plan;
        struct kg_config config;
        collect(&taken, &config);
        if (memcmp(&config, &listing->guess, sizeof config) != 0)
            listing->full = !listing->take(listing->user, &config);
    }
}

void kg_cuda_contract_take(struct kg_cuda_contract_listing *listing,
                           const struct kg_cuda_contract_plan *plan)
{
    if (listing->full || !kg_cuda_contract_check(plan, NULL))
        return;
    take(listing, plan);
    struct kg_cuda_contract_plan limited = *plan;
    int most = form_of(plan)->cost_terms(plan).blocks;
    for (int i = LIMITS - 1; i > 0; i--) {
        limited.set.registers = (int)limits[i];
        if (!kg_cuda_contract_check(&limited, NULL) ||
            form_of(plan)->cost_terms(&limited).blocks <= most)
            continue;
        most = form_of(plan)->cost_terms(&limited).blocks;
        take(listing, &limited);
    }
}

void kg_cuda_contract_list_pieces(struct kg_cuda_contract_plan *plan, int most,
                                  struct kg_cuda_contract_listing *listing)
{
    int64_t tiles = kg_cuda_contract_tiles(plan), units = plan->facts->units;
    for (int pieces = 1; pieces <= most; pieces *= 2) {
        plan->set.split = pieces;
        if (pieces == 1 || tiles * pieces <= 4 * units)
            kg_cuda_contract_take(listing, plan);
    }
    plan->set.split = plan->set.order = 1;
    if (tiles > units)
        kg_cuda_contract_take(listing, plan);
    plan->set.order = 0;
}

// The guess, whatever is expected of it. Then all, twice: what is the least that is expected, and
// what comes near.
static void list(const struct kg_group *group, const struct kg_device_facts *facts,
                 enum kg_target target, kg_config_take *take_config, void *user)
{
    struct kg_cuda_contract_plan plan;
    struct kg_cuda_contract_listing listing = {
        .take = take_config, .user = user, .least = INFINITY};
    guess(group, facts, target, &listing.guess);
    listing.full = !take_config(user, &listing.guess);
    kg_cuda_contract_plan_make(group, facts, NULL, &plan);
    for (int pass = 0; pass < 2; pass++) {
        listing.known = pass == 1;
        for (int form = 0; form < FORMS; form++) {
            set_usual(&plan);
            forms[form]->list(&plan, &listing);
        }
    }
}

static double estimate(const struct kg_group *group, const struct kg_device_facts *facts,
                       enum kg_target target, const struct kg_config *config)
{
    (void)target;
    struct kg_cuda_contract_plan plan;
    kg_cuda_contract_plan_make(group, facts, config, &plan);
    return form_of(&plan) ? kg_cuda_contract_expect(&plan) : 0;
}

// ---- Bound, source, launches ----

// What must be read and written, and the busiest unit's share of whole tiles.
static double bound(const struct kg_group *group, const struct kg_device_facts *facts,
                    enum kg_target target, const struct kg_config *config)
{
    (void)target;
    struct kg_cuda_contract_plan plan;
    kg_cuda_contract_plan_make(group, facts, config, &plan);
    const struct kg_cuda_contract_form *form = form_of(&plan);
    double seconds = 0, rate = form ? form->rate(&plan) : 0;
    double bytes = kg_group_bytes(group) - (double)facts->cache[3];
    if (facts->bandwidth > 0 && bytes > 0)
        seconds = bytes / facts->bandwidth;
    if (rate > 0 && facts->units > 0) {
        double tile = 2.0 * plan.set.rows * plan.set.columns * (double)plan.depth;
        int64_t tiles = kg_cuda_contract_tiles(&plan), waves = kg_ceil_div(tiles, facts->units);
        // Pieces may have different lengths, or none: they are counted as if dealt evenly.
        double share = plan.set.split == 1 ? (double)waves : (double)tiles / facts->units;
        double busy = share * tile / (rate / facts->units);
        seconds = busy > seconds ? busy : seconds;
    }
    return seconds;
}

static bool emit(const struct kg_group *group, const struct kg_device_facts *facts,
                 enum kg_target target, const struct kg_config *config, const char *entry,
                 struct kg_text *source)
{
    (void)target;
    static const char *const parts[] = {"cuda/index.cuh", "cuda/vectors.cuh",
                                        "cuda/contract_job.cuh"};
    struct kg_cuda_contract_plan plan;
    struct kg_space values;
    struct kg_code code = {source, 0};
    kg_cuda_contract_plan_make(group, facts, config, &plan);
    const struct kg_cuda_contract_form *form = form_of(&plan);
    if (!form)
        return false;
    plan.entry = entry;
    make_space(&values);
    kg_cuda_opening(source, group, "contract", config, &values);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        kg_text_add(source, kg_skeleton_find(parts[i]));
        kg_text_add(source, "\n");
    }
    for (const char *const *skeleton = form->skeletons; *skeleton; skeleton++) {
        kg_text_add(source, kg_skeleton_find(*skeleton));
        kg_text_add(source, "\n");
    }
    kg_cuda_contract_emit_job(&code, &plan);
    form->emit(&code, &plan);
    return !source->failed;
}

void kg_cuda_contract_launch(const struct kg_cuda_contract_plan *plan, struct kg_grid grid,
                             int whole, int count, struct kg_grids *grids)
{
    const struct kg_grid none = {.threads = {1, 1, 1}};
    int64_t outputs = plan->batches * plan->rows * plan->columns;
    *grids = (struct kg_grids){.count = count, .alignment = ACCESS};
    for (int i = 0; i < count; i++) {
        grids->grids[i] = i == whole ? grid : none;
        grids->unaligned[i] = i == 1 ? grid : none;
    }
    if (plan->set.split == 1)
        return;
    int64_t blocks = kg_ceil_div(outputs, FOLD_THREADS);
    grids->grids[count] = grids->unaligned[count] = (struct kg_grid){
        .blocks = {blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS, 1, 1},
        .threads = {FOLD_THREADS, 1, 1},
    };
    grids->count++;
    size_t bytes = plan->contract.type == KG_TYPE_F32 ? 4 : 8;
    grids->scratch = (size_t)outputs * (size_t)plan->set.split * bytes;
}

static void grids(const struct kg_group *group, const struct kg_device_facts *facts,
                  const struct kg_config *config, struct kg_grids *grids)
{
    struct kg_cuda_contract_plan plan;
    kg_cuda_contract_plan_make(group, facts, config, &plan);
    const struct kg_cuda_contract_form *form = form_of(&plan);
    *grids = (struct kg_grids){0};
    if (form)
        form->grids(&plan, grids);
}

const struct kg_family kg_cuda_contract = {
    .name = "contract",
    .summary = "matrix products, with what is done to their elements",
    .applicable = applicable,
    .space = space,
    .valid = valid,
    .guess = guess,
    .bound = bound,
    .list = list,
    .estimate = estimate,
    .emit = emit,
    .grids = grids,
};
