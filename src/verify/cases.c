// Chooses the cases of a gate: sizes by rule, and for each size some classes of inputs. The choice
// is made sequentially; filling.c computes inputs and references in parallel afterwards.

#include "verify/case.h"

#include "verify/case_sizes.h"
#include "verify/random.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Limits with an effort of 1.
#define MOST_BYTES 8.2e8  // of memory, for required cases and their images
#define MOST_SURVEYED 8e9 // operations of a survey for each core: half a minute
#define MOST_FLOPS 2e8    // of a kernel in a generated case: it may compute more than is read
// Of the reference's operations where a survey covers what its windows do not.
#define SURVEYED_PART 0.1
// A generated case may take these parts of what a required one may.
#define GENERATED_PART 0.08
#define GENERATED_BYTES 0.04
#define GENERATED_TOTAL 0.1 // all of them, beside the required ones

#define USUAL_TILES 4

struct request {
    const int64_t *sizes;
    enum kg_input_class class;
    bool strided;
    bool shares_memory;
    enum kg_placement placement;
    uint64_t seed;
    double effort; // multiplies the limits on memory
    double work;   // and those on work
    bool needed;   // an expensive case is then checked in windows instead of left out
};

static void free_case(struct kg_case *item)
{
    if (!item)
        return;
    for (int w = 0; w < KG_MAX_WINDOWS && item->problem; w++)
        kg_expected_free(item->expected[w], item->problem->op->output_count);
    kg_survey_free(item->survey);
    for (int i = 0; i < KG_MAX_TENSORS && !item->own.at; i++)
        free(item->inputs[i]);
    kg_image_memory_free(&item->own);
    kg_problem_free(item->problem);
    free(item);
}

void kg_cases_free(struct kg_cases *cases)
{
    for (int i = 0; i < cases->count; i++)
        free_case(cases->items[i]);
    free(cases->items);
    memset(cases, 0, sizeof *cases);
}

// Strides of a view: every other element of the last dimension, three elements between rows, and
// more between planes. 4-bit tensors stay dense, because their elements share bytes.
static void make_strides(const struct kg_problem *dense, int64_t (*strides)[KG_MAX_RANK])
{
    const struct kg_op *op = dense->op;
    for (int t = 0; t < op->input_count + op->output_count; t++) {
        const struct kg_layout *layout = &dense->layouts[t];
        bool packed = kg_dtype_is_packed(op->tensors[t]->type.dtype);
        int64_t room = packed ? 1 : 2;
        for (int d = op->tensors[t]->rank - 1; d >= 0; d--) {
            strides[t][d] = room;
            room *= layout->shape[d] > 0 ? layout->shape[d] : 1;
            room += packed ? 0 : 3;
        }
    }
}

static enum kg_status make_problem(struct kg_case *item, const struct kg_op *instance,
                                   const struct request *request, struct kg_error *error)
{
    enum kg_status status = kg_problem_make(instance, request->sizes, NULL, &item->problem, error);
    if (status != KG_OK || !request->strided)
        return status;
    int64_t strides[KG_MAX_TENSORS][KG_MAX_RANK] = {{0}};
    make_strides(item->problem, strides);
    kg_problem_free(item->problem);
    return kg_problem_make(instance, request->sizes, strides, &item->problem, error);
}

static void label(struct kg_case *item)
{
    const struct kg_op *op = item->problem->op;
    size_t used = 0;
    for (int i = 0; i < op->size_count; i++) {
        const struct kg_size *size = op->sizes[i];
        if (size->is_param || used >= sizeof item->label)
            continue;
        int wrote = snprintf(item->label + used, sizeof item->label - used, "%s%s=%" PRId64,
                             used ? " " : "", size->name, item->problem->sizes[i]);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
    if (used < sizeof item->label)
        snprintf(item->label + used, sizeof item->label - used, "%s%s%s", used ? ", " : "",
                 kg_input_class_names[item->class], item->strided ? ", strided" : "");
}

static enum kg_status append(struct kg_cases *cases, struct kg_case *item, struct kg_error *error)
{
    if (cases->count == cases->capacity) {
        int wanted = cases->capacity ? 2 * cases->capacity : 32;
        struct kg_case **items = realloc(cases->items, (size_t)wanted * sizeof *items);
        if (!items)
            return kg_error_memory(error, "the gate's cases");
        cases->items = items;
        cases->capacity = wanted;
    }
    cases->items[cases->count++] = item;
    return KG_OK;
}

// The memory that a case holds beside its survey: inputs, and the reference's values with slack; of
// a large case, its image.
static double bytes_of(const struct kg_case *item)
{
    const struct kg_problem *problem = item->problem;
    double bytes = item->whole ? 0 : (double)item->image.room;
    for (int i = 0; i < problem->op->input_count + problem->op->output_count && item->whole; i++)
        bytes += i < problem->op->input_count
                     ? (double)problem->layouts[i].bytes
                     : 3.0 * sizeof(double) * (double)problem->layouts[i].elements;
    return bytes;
}

static void leave_out(struct kg_cases *cases, const struct kg_case *item, const char *what,
                      double bytes)
{
    size_t used = strlen(cases->remarks), room = sizeof cases->remarks - used;
    char size[32] = "";
    if (bytes > 0)
        snprintf(size, sizeof size, ", %.1f GB", bytes / 1e9);
    snprintf(cases->remarks + used, room, "%s %s (%s%s)", used ? ";" : "left out:", item->label,
             what, size);
}

// Is there memory for the case: for what it holds, and for its image while it is judged? If so, it
// is taken.
static bool take_memory(struct kg_cases *cases, const struct kg_case *item,
                        const struct request *request)
{
    double limit = MOST_BYTES * request->effort, bytes = bytes_of(item);
    double image = item->whole ? (double)item->image.room : 0;
    double *taken = request->needed ? &cases->bytes : &cases->generated_bytes;
    bool fits = request->needed ? *taken + bytes + image <= limit
                                : *taken + bytes <= limit * GENERATED_TOTAL &&
                                      bytes + image <= limit * GENERATED_BYTES;
    if (fits)
        *taken += bytes;
    else if (request->needed)
        leave_out(cases, item, "too large", bytes + image);
    return fits;
}

// All elements of a required case that is too expensive for the reference are surveyed, unless this
// costs too much as well.
static enum kg_status plan_survey(struct kg_cases *cases, struct kg_case *item,
                                  const struct request *request, struct kg_error *error)
{
    struct kg_survey_limits cost;
    enum kg_status status = kg_survey_cost(item->problem, &cost, error);
    if (status != KG_OK)
        return status;
    double room = MOST_BYTES * request->effort - cases->bytes;
    item->surveyed =
        cost.operations <= MOST_SURVEYED * request->work * kg_case_threads() && cost.bytes <= room;
    if (item->surveyed)
        cases->bytes += cost.bytes;
    else
        leave_out(cases, item, "but for windows of its outputs", 0);
    return KG_OK;
}

// Which outputs the reference computes, and whether a survey covers the others.
static enum kg_status plan_outputs(struct kg_cases *cases, struct kg_case *item,
                                   const struct request *request, double cost,
                                   struct kg_error *error)
{
    double effort = KG_DEFAULT_EFFORT * request->work;
    if (item->whole) {
        item->window_count = 1;
        return KG_OK;
    }
    enum kg_status status = plan_survey(cases, item, request, error);
    if (item->surveyed)
        effort = fmin(effort * SURVEYED_PART, cost / 2);
    return status ? status
                  : kg_case_windows(item->problem, effort, item->seed, item->windows,
                                    &item->window_count, error);
}

static enum kg_status plan_case(struct kg_cases *cases, struct kg_case *item,
                                const struct kg_op *instance, const struct request *request,
                                bool *wanted, struct kg_error *error)
{
    double cost = 0, effort = KG_DEFAULT_EFFORT * request->work;
    *wanted = true;
    enum kg_status status = make_problem(item, instance, request, error);
    if (status == KG_ERROR_SHAPE && !request->needed) {
        kg_error_clear(error);
        *wanted = false;
        return KG_OK;
    }
    if (status == KG_OK)
        status = kg_reference_cost(item->problem, NULL, &cost, error);
    *wanted = status == KG_OK &&
              (request->needed || (cost <= effort * GENERATED_PART &&
                                   item->problem->operations <= MOST_FLOPS * request->work));
    if (!*wanted)
        return status;
    label(item);
    item->whole = cost <= effort;
    kg_image_plan(item->problem, cases->is_guarded, item->placement, cases->alignment,
                  &item->image);
    *wanted = take_memory(cases, item, request);
    return *wanted ? plan_outputs(cases, item, request, cost, error) : KG_OK;
}

// Appends a case without inputs. Sizes that the definition does not allow, and expensive sizes that
// are not needed, return KG_OK without a case, with `added` false. If the case is needed, sizes
// that are not allowed are an error.
static enum kg_status append_case(struct kg_cases *cases, const struct kg_op *instance,
                                  const struct request *request, bool *added,
                                  struct kg_error *error)
{
    *added = false;
    struct kg_case *item = calloc(1, sizeof *item);
    if (!item)
        return kg_error_memory(error, "a case of the gate");
    item->class = request->class;
    item->strided = request->strided;
    item->shares_memory = request->shares_memory;
    item->seed = request->seed;
    item->placement = request->placement;
    bool wanted;
    enum kg_status status = plan_case(cases, item, instance, request, &wanted, error);
    if (status == KG_OK && wanted)
        status = append(cases, item, error);
    *added = status == KG_OK && wanted;
    if (!*added)
        free_case(item);
    return status;
}

enum kg_status kg_cases_take(struct kg_cases *cases, struct kg_cases *more, struct kg_error *error)
{
    for (; more->count > 0; more->count--) {
        enum kg_status status = append(cases, more->items[more->count - 1], error);
        if (status != KG_OK)
            return status;
    }
    return KG_OK;
}

// The state while the cases of one gate are made.
struct maker {
    struct kg_cases *cases;
    const struct kg_op *instance;
    const struct kg_policy *policy;
    uint64_t seed;
    double effort, work;     // as in a request
    struct kg_random random; // chooses sizes
    bool has_primes;
    int64_t primes[KG_MAX_SIZES]; // a set of primes that the definition allows
    struct kg_error *error;
};

static bool has_sizes(const struct maker *maker, const struct kg_case *item, const int64_t *sizes)
{
    bool same = true;
    for (int i = 0; i < maker->instance->size_count && same; i++)
        same = maker->instance->sizes[i]->is_param || item->problem->sizes[i] == sizes[i];
    return same;
}

static bool is_known(const struct maker *maker, const int64_t *sizes, enum kg_input_class class,
                     bool strided)
{
    for (int c = 0; c < maker->cases->count; c++) {
        const struct kg_case *item = maker->cases->items[c];
        if (item->class == class && item->strided == strided && has_sizes(maker, item, sizes))
            return true;
    }
    return false;
}

static int count_class(const struct kg_cases *cases, enum kg_input_class class)
{
    int count = 0;
    for (int c = 0; c < cases->count; c++)
        count += cases->items[c]->class == class;
    return count;
}

// Tensors that pages guard end there in half of the cases. Others have the least alignment in a
// quarter of them, but not at required sizes. Cases of the same sizes lie at the same addresses.
static enum kg_placement place(const struct maker *maker, const int64_t *sizes, bool needed)
{
    const struct kg_cases *cases = maker->cases;
    uint64_t place = maker->seed;
    for (int c = 0; c < cases->count && !cases->is_guarded; c++)
        if (has_sizes(maker, cases->items[c], sizes))
            return cases->items[c]->placement;
    for (int i = 0; i < maker->instance->size_count; i++)
        place += (uint64_t)sizes[i];
    bool at_end = cases->is_guarded ? place % 2 == 1 : place % 4 == 1 && !needed;
    return at_end ? KG_PLACED_AT_END : KG_PLACED_AT_BEGIN;
}

// `turn`: see kg_inputs_seed.
static enum kg_status add_turn(struct maker *maker, const int64_t *sizes, enum kg_input_class class,
                               int turn, bool strided, bool needed, bool *added)
{
    uint64_t seed = maker->seed + 1000003u * (uint64_t)maker->cases->count;
    struct request request = {
        .sizes = sizes,
        .class = class,
        .strided = strided,
        .shares_memory =
            class == KG_INPUT_ZERO || class == KG_INPUT_TIES || class == KG_INPUT_WHOLE,
        .placement = place(maker, sizes, needed),
        .seed = kg_inputs_seed(maker->instance, seed, turn),
        .effort = maker->effort,
        .work = maker->work,
        .needed = needed,
    };
    return append_case(maker->cases, maker->instance, &request, added, maker->error);
}

// Unless there is such a case.
static enum kg_status add(struct maker *maker, const int64_t *sizes, enum kg_input_class class,
                          bool strided, bool needed, bool *added)
{
    *added = false;
    if (is_known(maker, sizes, class, strided) || !kg_inputs_class_applies(maker->instance, class))
        return KG_OK;
    return add_turn(maker, sizes, class, count_class(maker->cases, class), strided, needed, added);
}

// A row of sizes that the goal or the caller requires: normal values, and for cheap rows also NaN,
// infinities and huge values.
static enum kg_status add_wanted(struct maker *maker, const int64_t *sizes)
{
    static const enum kg_input_class others[] = {KG_INPUT_NAN, KG_INPUT_INFINITE, KG_INPUT_HUGE};
    bool added;
    enum kg_status status = add(maker, sizes, KG_INPUT_NORMAL, false, true, &added);
    for (size_t i = 0; i < sizeof others / sizeof others[0] && status == KG_OK; i++)
        status = add(maker, sizes, others[i], false, false, &added);
    return status;
}

static enum kg_status add_all_wanted(struct maker *maker)
{
    const struct kg_op *op = maker->instance;
    const struct kg_shapes *verify = &op->goal.verify;
    int64_t sizes[KG_MAX_SIZES];
    enum kg_status status = KG_OK;
    for (int r = 0; r < verify->row_count && status == KG_OK; r++) {
        for (int i = 0; i < op->size_count; i++)
            // A size that no required row names does not occur in a tensor of this output.
            sizes[i] = 1;
        for (int i = 0; i < verify->size_count; i++)
            sizes[verify->sizes[i]->id] = verify->rows[r * verify->size_count + i];
        status = add_wanted(maker, sizes);
    }
    for (int r = 0; r < maker->policy->shape_count && status == KG_OK; r++)
        status = add_wanted(maker, maker->policy->shapes + (size_t)r * (size_t)op->size_count);
    return status;
}

static void set_all(const struct maker *maker, int64_t *sizes, int64_t value)
{
    for (int i = 0; i < maker->instance->size_count; i++)
        sizes[i] = value;
}

// Sets small distinct primes, in another order for each `turn`. Definitions of many sizes need
// smaller ones.
static void set_primes(const struct maker *maker, int64_t *sizes, int turn, int smaller)
{
    static const int64_t primes[3][7] = {
        {7, 13, 5, 31, 3, 11, 2}, {5, 7, 3, 2, 3, 5, 2}, {3, 2, 1, 2, 3, 1, 2}};
    for (int i = 0; i < maker->instance->size_count; i++)
        sizes[i] = primes[smaller][(i + turn) % 7];
}

// Sets some sizes near a tile and the others small. After failed attempts fewer sizes are near it.
// Returns the sizes near it, as bits.
static uint32_t set_near(struct maker *maker, int64_t *sizes, int64_t near, int failed)
{
    static const int64_t small[] = {1, 2, 3, 5, 7, 13};
    uint32_t set = 0;
    for (int i = 0; i < maker->instance->size_count; i++) {
        bool is_near = kg_random_below(&maker->random, 2 + 2 * (uint64_t)failed) == 0;
        sizes[i] = is_near ? near + (int64_t)kg_random_below(&maker->random, 2)
                           : small[kg_random_below(&maker->random, failed > 3 ? 3 : 6)];
        set |= (uint32_t)is_near << i;
    }
    return set;
}

// Sizes 0 and 1, and small primes: the shapes that loops get wrong.
static enum kg_status add_small(struct maker *maker)
{
    int64_t sizes[KG_MAX_SIZES];
    bool added;
    set_all(maker, sizes, 1);
    kg_sizes_mend(maker->instance, sizes, 0, &maker->random);
    enum kg_status status = add(maker, sizes, KG_INPUT_NORMAL, false, false, &added);
    // What is lost of small numbers shows where none, or hardly any, are added to them.
    for (int64_t size = 1; size <= 2 && status == KG_OK; size++) {
        set_all(maker, sizes, size);
        if (kg_sizes_mend(maker->instance, sizes, 0, &maker->random))
            status = add(maker, sizes, KG_INPUT_DENORMAL, false, false, &added);
    }
    for (int i = 0; i < maker->instance->size_count && status == KG_OK; i++) {
        if (maker->instance->sizes[i]->is_param)
            continue;
        set_primes(maker, sizes, i, 1);
        sizes[i] = 0;
        status = add(maker, sizes, KG_INPUT_NORMAL, false, false, &added);
    }
    for (int turn = 0; turn < 7; turn++) {
        added = false;
        for (int smaller = 0; smaller < 3 && !added && status == KG_OK; smaller++) {
            set_primes(maker, sizes, turn, smaller);
            if (!kg_sizes_mend(maker->instance, sizes, 0, &maker->random))
                continue;
            status = add(maker, sizes, KG_INPUT_NORMAL, false, false, &added);
        }
        if (added && !maker->has_primes)
            memcpy(maker->primes, sizes, sizeof sizes);
        maker->has_primes |= added;
    }
    return status;
}

// Vector lengths and blocks that kernels like to use, then those of the policy.
static int64_t tile_of(const struct maker *maker, int number)
{
    static const int64_t usual[] = {8, 16, 32, 64};
    return number < USUAL_TILES ? usual[number] : maker->policy->tiles[number - USUAL_TILES];
}

// One less than a tile, a tile, one more, in several sizes at once.
static enum kg_status add_near_tiles(struct maker *maker)
{
    int64_t sizes[KG_MAX_SIZES];
    enum kg_status status = KG_OK;
    int count = USUAL_TILES + maker->policy->tile_count;
    for (int t = 0; t < count; t++) {
        int64_t tile = tile_of(maker, t);
        for (int64_t near = tile > 1 ? tile - 1 : 1; near <= tile; near++) {
            bool added = false;
            for (int tries = 0; tries < 8 && !added && status == KG_OK; tries++) {
                uint32_t set = set_near(maker, sizes, near, tries);
                if (!kg_sizes_mend(maker->instance, sizes, set, &maker->random))
                    continue;
                status = add(maker, sizes, KG_INPUT_NORMAL, false, false, &added);
            }
        }
    }
    return status;
}

// Each size on its own: once exactly a tile, and once beside one. The others are small, and tiles
// that cost too much give way to smaller ones.
static enum kg_status add_each_at_tile(struct maker *maker)
{
    int64_t sizes[KG_MAX_SIZES];
    enum kg_status status = KG_OK;
    int count = USUAL_TILES + maker->policy->tile_count;
    for (int i = 0; i < 2 * maker->instance->size_count; i++) {
        int size = i / 2, tile = (int)kg_random_below(&maker->random, (uint64_t)count);
        bool added = maker->instance->sizes[size]->is_param;
        int64_t beside = i % 2 == 0 ? 0 : kg_random_below(&maker->random, 2) ? 1 : -1;
        for (; tile >= 0 && !added && status == KG_OK; tile = tile > 0 ? tile / 2 : -1) {
            set_primes(maker, sizes, i, 1);
            sizes[size] = tile_of(maker, tile) + beside;
            if (kg_sizes_mend(maker->instance, sizes, 1u << size, &maker->random))
                status = add(maker, sizes, KG_INPUT_NORMAL, false, false, &added);
        }
    }
    return status;
}

// The sizes of the most expensive generated case so far.
static bool find_rich(const struct maker *maker, int64_t *sizes)
{
    double max = 0;
    for (int i = 0; i < maker->cases->count; i++) {
        const struct kg_case *item = maker->cases->items[i];
        double cost;
        if (!item->whole || kg_reference_cost(item->problem, NULL, &cost, NULL) != KG_OK ||
            cost <= max || cost > KG_DEFAULT_EFFORT * maker->work * GENERATED_PART)
            continue;
        max = cost;
        memcpy(sizes, item->problem->sizes, sizeof item->problem->sizes);
    }
    return max > 0;
}

// Special values of each sign in each of the inputs alone, and in all, at other small sizes each
// time; of inputs of which few elements are read, or count, also at `rich` sizes, where some of the
// special ones do.
static enum kg_status add_special(struct maker *maker, enum kg_input_class class,
                                  const int64_t *rich)
{
    int64_t sizes[KG_MAX_SIZES];
    int turns[KG_MAX_SPECIAL_TURNS];
    bool added;
    if (!kg_inputs_class_applies(maker->instance, class))
        return KG_OK;
    enum kg_status status = KG_OK;
    int count = kg_inputs_special_turns(maker->instance, false, turns);
    for (int i = 0; (i < count || i < maker->instance->input_count) && status == KG_OK; i++) {
        set_primes(maker, sizes, i, i % 2);
        if (kg_sizes_mend(maker->instance, sizes, 0, &maker->random))
            status = add_turn(maker, sizes, class, turns[i % count], false, false, &added);
    }
    count = rich ? kg_inputs_special_turns(maker->instance, true, turns) : 0;
    for (int i = 0; i < count && status == KG_OK; i++)
        status = add_turn(maker, rich, class, turns[i], false, false, &added);
    return status;
}

// Every class and strided views, at two sizes.
static enum kg_status add_classes(struct maker *maker)
{
    int64_t sizes[2][KG_MAX_SIZES];
    int count = 0;
    if (maker->has_primes)
        memcpy(sizes[count++], maker->primes, sizeof maker->primes);
    const int64_t *rich = find_rich(maker, sizes[count]) ? sizes[count++] : NULL;
    enum kg_status status = KG_OK;
    bool added;
    for (int s = 0; s < count; s++) {
        for (int class = KG_INPUT_NORMAL + 1; class < KG_INPUT_CLASS_COUNT; class ++)
            if (status == KG_OK)
                status = add(maker, sizes[s], (enum kg_input_class) class, false, false, &added);
        for (int class = 0; class < KG_INPUT_CLASS_COUNT && maker->policy->strided; class ++)
            if (status == KG_OK && (class == KG_INPUT_NORMAL || class == KG_INPUT_NAN))
                status = add(maker, sizes[s], (enum kg_input_class) class, true, false, &added);
    }
    if (status == KG_OK)
        status = add_special(maker, KG_INPUT_INFINITE, rich);
    if (status == KG_OK)
        status = add_special(maker, KG_INPUT_LARGE, rich);
    return status;
}

enum kg_status kg_cases_make(struct kg_cases *cases, const struct kg_op *instance,
                             const struct kg_policy *policy, uint64_t seed, struct kg_error *error)
{
    double effort = policy->effort > 0 ? policy->effort : 1;
    struct maker maker = {.cases = cases,
                          .instance = instance,
                          .policy = policy,
                          .seed = seed,
                          .effort = effort,
                          .work = cases->harder > 0 ? effort * cases->harder : effort,
                          .random = kg_random_make(seed, 1),
                          .error = error};
    enum kg_status status = add_small(&maker);
    if (status == KG_OK)
        status = add_near_tiles(&maker);
    if (status == KG_OK)
        status = add_each_at_tile(&maker);
    if (status == KG_OK)
        status = add_all_wanted(&maker);
    if (status == KG_OK)
        status = add_classes(&maker);
    if (status == KG_OK)
        status = kg_cases_check_outputs(cases, instance, error);
    return status == KG_OK ? kg_cases_fill(cases, policy->cancel, error) : status;
}
