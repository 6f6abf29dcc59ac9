// See overview.h.

#include "report/overview.h"

#include "report/recorded.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_RATIO 1e12 // records that say more are damaged

struct collecting {
    struct kg_store *store;
    struct kg_overview *overview;
    void (*visit)(void *user, const struct kg_overview *overview, const struct kg_view *view);
    void *user;
    struct kg_text op; // of the latest problem
    enum kg_status status;
    struct kg_error *error;
};

static const char *plural(int count)
{
    return count == 1 ? "" : "s";
}

static const char *keep(struct kg_overview *overview, const char *text)
{
    return kg_arena_copy(&overview->arena, text, strlen(text));
}

// Makes room for one more element of `size` bytes; lists double at powers of two.
static bool grow(void **list, int count, size_t size)
{
    if (count & (count - 1))
        return true;
    void *larger = realloc(*list, (size_t)(count ? 2 * count : 1) * size);
    if (larger)
        *list = larger;
    return larger;
}

static void describe_device(struct kg_text *about, const struct kg_key *key)
{
    kg_text_format(about, "%d unit%s%s%s%s%s", key->units, plural(key->units),
                   key->isa[0] ? ", " : "", key->isa, key->driver[0] ? ", driver " : "",
                   key->driver);
}

// -1: no memory.
static int find_device(struct kg_overview *overview, const char *name, const char *about)
{
    for (int i = 0; i < overview->device_count; i++)
        if (strcmp(overview->devices[i].name, name) == 0 &&
            strcmp(overview->devices[i].about, about) == 0)
            return i;
    if (!grow((void **)&overview->devices, overview->device_count, sizeof *overview->devices))
        return -1;
    overview->devices[overview->device_count] =
        (struct kg_shown_device){.name = keep(overview, name), .about = keep(overview, about)};
    return overview->arena.failed ? -1 : overview->device_count++;
}

static int device_of(struct kg_overview *overview, const struct kg_key *key)
{
    struct kg_text about = {0};
    describe_device(&about, key);
    int device = about.failed
                     ? -1
                     : find_device(overview, key->device[0] ? key->device : "unknown device",
                                   kg_text_string(&about));
    kg_text_free(&about);
    return device;
}

static void add_spots(struct kg_overview *overview, const struct kg_outcomes *outcomes,
                      struct kg_shown_problem *problem)
{
    struct kg_spot *spots =
        KG_NEW_ARRAY(&overview->arena, outcomes->by_kind[KG_OUTCOME_MEASURED], struct kg_spot);
    for (int i = 0; i < outcomes->count && spots; i++) {
        const struct kg_outcome *outcome = &outcomes->list[i];
        if (outcome->kind == KG_OUTCOME_MEASURED && !outcome->timing.abandoned &&
            kg_view_known(outcome->estimate) && kg_view_known(outcome->timing.median))
            spots[problem->spot_count++] =
                (struct kg_spot){outcome->estimate, outcome->timing.median};
    }
    problem->spots = spots;
}

static bool add(struct kg_overview *overview, const struct kg_view *view)
{
    const struct kg_key *key = view->key;
    int device = device_of(overview, key);
    if (device < 0 ||
        !grow((void **)&overview->problems, overview->problem_count, sizeof *overview->problems))
        return false;
    struct kg_shown_problem *problem = &overview->problems[overview->problem_count++];
    *problem = (struct kg_shown_problem){.number = overview->problem_count,
                                         .device = device,
                                         .op = keep(overview, key->op),
                                         .dtypes = keep(overview, key->dtypes),
                                         .sizes = keep(overview, key->sizes),
                                         .layout = keep(overview, key->layout),
                                         .protocol = keep(overview, key->protocol),
                                         .definition = key->definition,
                                         .accuracy = view->accuracy,
                                         .seconds = view->seconds,
                                         .baseline = view->baseline,
                                         .roofline = view->roofline,
                                         .spread = view->spread,
                                         .cost = view->cost,
                                         .prediction = view->prediction,
                                         .order = kg_outcomes_pairs(&view->outcomes)};
    if (overview->comparison)
        problem->since = kg_comparison_find(overview->comparison, key);
    add_spots(overview, &view->outcomes, problem);
    overview->devices[device].problems++;
    for (int i = 0; i < view->outcomes.count; i++)
        overview->devices[device].tiers[kg_tier_of(&view->outcomes.list[i])]++;
    return !overview->arena.failed;
}

static void count_key(void *user, const struct kg_key *key)
{
    struct collecting *collecting = user;
    struct kg_overview *overview = collecting->overview;
    if (overview->total++ == 0 || strcmp(kg_text_string(&collecting->op), key->op) != 0)
        overview->op_count++;
    kg_text_cut(&collecting->op, 0);
    kg_text_add(&collecting->op, key->op);
}

static void add_key(void *user, const struct kg_key *key)
{
    struct collecting *collecting = user;
    struct kg_overview *overview = collecting->overview;
    struct kg_view view;
    if (collecting->status != KG_OK)
        return;
    collecting->status = kg_view_collect(collecting->store, key, &view, collecting->error);
    if (collecting->status != KG_OK)
        return;
    if (!add(overview, &view))
        collecting->status = kg_error_memory(collecting->error, "the report");
    else if (collecting->visit)
        collecting->visit(collecting->user, overview, &view);
    kg_view_free(&view);
}

enum kg_status kg_overview_collect(struct kg_store *store, const char *op,
                                   const struct kg_comparison *comparison,
                                   void (*visit)(void *user, const struct kg_overview *overview,
                                                 const struct kg_view *view),
                                   void *user, struct kg_overview *overview, struct kg_error *error)
{
    *overview = (struct kg_overview){.comparison = comparison};
    struct collecting collecting = {
        .store = store, .overview = overview, .visit = visit, .user = user, .error = error};
    enum kg_status status = kg_recorded_require(store, op, error);
    if (status == KG_OK)
        status = kg_store_keys(store, op, count_key, &collecting, error);
    if (status == KG_OK && collecting.op.failed)
        status = kg_error_memory(error, "the report");
    if (status == KG_OK)
        status = kg_store_keys(store, op, add_key, &collecting, error);
    if (collecting.status != KG_OK)
        status = collecting.status;
    kg_text_free(&collecting.op);
    if (status != KG_OK)
        kg_overview_free(overview);
    return status;
}

void kg_overview_free(struct kg_overview *overview)
{
    free(overview->devices);
    free(overview->problems);
    kg_arena_free(&overview->arena);
    *overview = (struct kg_overview){0};
}

void kg_overview_summarise(const struct kg_overview *overview, struct kg_text *summary)
{
    if (overview->problem_count == 0)
        kg_text_add(summary, "nothing is recorded yet: 'kernelgen build OP.kg' verifies and "
                             "measures a kernel, and records it");
    else
        kg_text_format(summary, "%d problem%s of %d op%s on %d device%s", overview->problem_count,
                       plural(overview->problem_count), overview->op_count,
                       plural(overview->op_count), overview->device_count,
                       plural(overview->device_count));
}

const char *kg_overview_device_name(const struct kg_overview *overview, int device)
{
    const struct kg_shown_device *own = &overview->devices[device];
    for (int i = 0; i < overview->device_count; i++)
        if (i != device && strcmp(overview->devices[i].name, own->name) == 0)
            return own->about;
    return own->name;
}

double kg_shown_share(const struct kg_shown_problem *problem)
{
    return kg_view_known(problem->seconds) && kg_view_known(problem->roofline)
               ? problem->roofline / problem->seconds
               : 0;
}

double kg_shown_ratio(const struct kg_shown_problem *problem)
{
    if (!kg_view_known(problem->seconds) || !kg_view_known(problem->baseline))
        return 0;
    double ratio = problem->baseline / problem->seconds;
    return ratio < MOST_RATIO ? ratio : 0;
}

struct kg_predicted kg_overview_predicted(const struct kg_overview *overview, int device)
{
    struct kg_predicted predicted = {.by = KG_VIEW_UNPREDICTED};
    for (int i = 0; i < overview->problem_count; i++) {
        const struct kg_shown_problem *problem = &overview->problems[i];
        if (problem->device == device && problem->prediction > predicted.by)
            predicted.by = problem->prediction;
    }
    for (int i = 0; i < overview->problem_count && predicted.by != KG_VIEW_UNPREDICTED; i++) {
        const struct kg_shown_problem *problem = &overview->problems[i];
        if (problem->device != device || problem->prediction != predicted.by)
            continue;
        predicted.order.pairs += problem->order.pairs;
        predicted.order.right += problem->order.right;
        predicted.spots += problem->spot_count;
    }
    return predicted;
}
