// `explain` and `profile`: the records of a problem as a document.

#include "flow/explain.h"

#include "base/json.h"
#include "flow/evidence.h"
#include "flow/planner.h"
#include "flow/small.h"
#include "gen/grouping.h"
#include "report/fates.h"
#include "report/outcomes.h"
#include "tune/candidates.h"

#include <stdlib.h>
#include <string.h>

#define SHOWN_BY_EXPLAIN 10
#define SHOWN_FIRST 10 // by a profile, above all others
#define MAX_REASONS 16
#define MAX_CONFIGS 65536 // of one kernel, that are examined

static void add_title(const struct kg_problem *problem, const struct kg_device *device,
                      const char *what, struct kg_text *text)
{
    kg_text_format(text, "# %s of %s", what, problem->op->name);
    struct kg_text names = {0};
    kg_session_print_dtypes(&names, problem->op);
    if (names.length)
        kg_text_format(text, ", %s", kg_text_string(&names));
    kg_text_cut(&names, 0);
    kg_session_print_sizes(&names, problem);
    if (names.length)
        kg_text_format(text, ", %s", kg_text_string(&names));
    kg_text_free(&names);
    kg_text_format(text, "\n\n%s, %s\n\n", device->facts.name, device->compiler);
}

static const struct {
    const char *name;
    const char *words;
} origins[KG_ORIGIN_COUNT] = {
    [KG_ORIGIN_RULE] = {"rule", "by rule"},
    [KG_ORIGIN_SEARCH] = {"search", "by search"},
    [KG_ORIGIN_RECORDS] = {"wisdom", "from wisdom"},
    [KG_ORIGIN_FILE] = {"wisdom file", "from the wisdom file"},
    [KG_ORIGIN_NEAREST] = {"nearest wisdom", "from wisdom of the nearest shape"},
    [KG_ORIGIN_PATTERNS] = {"patterns", "by rule, corrected by patterns"},
};

// The outcome of the best choice of the nearest shape.
static void add_nearest(const struct kg_plan *plan, struct kg_text *text)
{
    const struct kg_nearest *nearest = &plan->nearest;
    if (!nearest->choice || plan->origin == KG_ORIGIN_NEAREST)
        return;
    bool same = strcmp(nearest->choice, plan->choice) == 0;
    kg_text_format(text, "- of the nearest shape known, %s%s, the best is ", nearest->sizes,
                   nearest->from_file ? " (from the wisdom file)" : "");
    if (same)
        kg_text_add(text, "the same");
    else
        kg_text_format(text, "`%s`: %s", nearest->choice,
                       plan->origin == KG_ORIGIN_SEARCH ? "among the first tried, and slower here"
                                                        : "it may be slower here");
    kg_text_add(text, "\n");
}

// Why a candidate has no time.
static const char *unmeasured(const struct kg_plan *plan)
{
    switch (plan->origin) {
    case KG_ORIGIN_NEAREST:
        return "- not measured for these sizes\n";
    case KG_ORIGIN_PATTERNS:
        return "- chosen by rule, and corrected by what won for similar problems: nothing was "
               "measured (rigor estimate)\n";
    case KG_ORIGIN_SEARCH:
        return "- time was up before anything was measured: chosen by rule\n";
    case KG_ORIGIN_RECORDS:
    case KG_ORIGIN_FILE:
        return "- found with other kernels than are written for it now: these are neither verified "
               "nor measured\n";
    default:
        return "- chosen by rule: nothing was measured (rigor estimate)\n";
    }
}

static void add_cost(const struct kg_plan *plan, struct kg_text *text)
{
    const struct kg_device_facts *facts = &plan->device->facts;
    struct kg_roofline roofline = kg_roofline_of(plan->problem, facts);
    kg_text_format(text, "Chosen: `%s`, %s", plan->choice, origins[plan->origin].words);
    if (plan->origin == KG_ORIGIN_NEAREST)
        kg_text_format(text, ", %s%s", plan->nearest.sizes,
                       plan->nearest.from_file ? " (from the wisdom file)" : "");
    kg_text_add(text, "\n\n");
    add_nearest(plan, text);
    kg_text_add(text, "- roofline: ");
    kg_text_seconds(text, roofline.seconds);
    kg_text_format(text, ", %s-bound\n", roofline.memory_bound ? "memory" : "compute");
    if (plan->seconds <= 0) {
        kg_text_add(text, unmeasured(plan));
        if (kg_flow_is_small(plan->problem, plan->device))
            kg_text_add(text,
                        "- so small a problem is only searched when asked: --rigor measure\n");
        return;
    }
    struct kg_diagnosed diagnosed;
    int on = facts->shared_bytes == 0 ? KG_BOTTLENECK_ON_HOST : KG_BOTTLENECK_ON_GPU;
    kg_flow_diagnose_plan(plan, plan->seconds, &diagnosed);
    kg_text_add(text, "- measured: ");
    kg_text_seconds(text, plan->seconds);
    kg_text_format(text, ", %.0f%% of the roofline\n- bottleneck: %s: %s\n- worth changing: %s\n",
                   100 * diagnosed.share, diagnosed.row->name[KG_ENGLISH], diagnosed.evidence,
                   diagnosed.row->advice[on][KG_ENGLISH]);
}

// The nests of each kernel and its family: "rowwise (m, e, y); direct (z)".
static void add_grouping(const struct kg_choice *choice, struct kg_text *text)
{
    for (int i = 0; i < choice->count; i++) {
        const struct kg_match *match = choice->matches[i];
        kg_text_format(text, "%s%s (", i ? "; " : "", match->family->name);
        for (int n = 0; n < match->group.count; n++)
            kg_text_format(text, "%s%s", n ? ", " : "",
                           kg_group_nest(&match->group, n)->output->name);
        kg_text_add(text, ")");
    }
}

// The groupings that were compared without measurements.
static void add_groupings(const struct kg_plan *plan, struct kg_text *text)
{
    struct kg_text trace = {0};
    struct kg_groupings *groupings = malloc(sizeof *groupings);
    if (groupings && kg_groupings_list(plan->problem, &plan->device->facts,
                                       kg_target_of(plan->device), groupings, &trace)) {
        kg_text_add(text, "\n## Groupings\n\n| grouping | expected | kernels |\n|---|---|---|\n");
        for (int i = 0; i < groupings->count; i++) {
            const struct kg_grouping_option *option = &groupings->options[i];
            kg_text_format(text, "| %s%s | ", kg_grouping_names[option->kind],
                           i == groupings->chosen ? ", chosen" : "");
            if (option->expected > 0)
                kg_text_seconds(text, option->expected);
            else
                kg_text_add(text, "not known");
            kg_text_add(text, " | ");
            add_grouping(&option->choice, text);
            kg_text_add(text, " |\n");
        }
    }
    if (trace.length)
        kg_text_format(text, "\nWhat the rule refused on the way:\n\n```\n%s```\n", trace.data);
    kg_text_free(&trace);
    free(groupings);
}

static void add_families(const struct kg_plan *plan, struct kg_text *text)
{
    const struct kg_choice *choice = &plan->built->choice;
    kg_text_add(text, "\n## Families\n\n");
    for (int i = 0; i < choice->count; i++) {
        const struct kg_match *match = choice->matches[i];
        kg_text_format(text, "- kernel %d: %s, for", i + 1, match->family->name);
        for (int n = 0; n < match->group.count; n++)
            kg_text_format(text, " `%s`", kg_group_nest(&match->group, n)->output->name);
        kg_text_format(text, " (%s)\n", match->family->summary);
    }
    add_groupings(plan, text);
}

// How often `valid` returned each reason.
struct refusals {
    struct kg_arena arena;
    int count;
    int64_t configs;
    struct {
        const char *reason;
        int64_t configs;
    } items[MAX_REASONS];
};

static void count_refusal(void *user, const struct kg_match *match, const struct kg_config *config,
                          const char *reason)
{
    struct refusals *refusals = user;
    int at = 0;
    (void)match, (void)config;
    refusals->configs++;
    while (at < refusals->count && strcmp(refusals->items[at].reason, reason) != 0)
        at++;
    if (at == MAX_REASONS)
        return;
    if (at == refusals->count) {
        refusals->items[at].reason = kg_arena_copy(&refusals->arena, reason, strlen(reason));
        if (!refusals->items[at].reason)
            return;
        refusals->count++;
    }
    refusals->items[at].configs++;
}

// Rules always give the same answer, so they are evaluated again instead of being recorded.
static void add_refusals(const struct kg_plan *plan, struct kg_text *text)
{
    const struct kg_choice *choice = &plan->built->choice;
    kg_text_add(text, "\n## Configs\n\n");
    for (int i = 0; i < choice->count; i++) {
        struct kg_candidates candidates;
        struct refusals refusals = {.count = 0};
        if (kg_candidates_list(choice->matches[i], kg_target_of(plan->device), MAX_CONFIGS,
                               count_refusal, &refusals, &candidates, NULL) == KG_OK) {
            kg_text_format(text, "- kernel %d: %lld, of which rules refuse %lld\n", i + 1,
                           (long long)candidates.size, (long long)refusals.configs);
            for (int r = 0; r < refusals.count; r++)
                kg_text_format(text, "  - %lld: %s\n", (long long)refusals.items[r].configs,
                               refusals.items[r].reason);
        }
        kg_candidates_free(&candidates);
        kg_arena_free(&refusals.arena);
    }
}

static void add_counts(const struct kg_outcomes *outcomes, struct kg_text *text)
{
    kg_text_format(text, "\n## Candidates\n\n%d on record:", outcomes->count);
    for (int kind = 0; kind < KG_OUTCOME_COUNT; kind++)
        if (outcomes->by_kind[kind])
            kg_text_format(text, " %d %s", outcomes->by_kind[kind], kg_outcome_names[kind]);
    kg_text_add(text, ".\n\n");
    double share = kg_outcomes_order(outcomes);
    if (share >= 0)
        kg_text_format(text, "Of pairs that were measured, %.0f%% are in the expected order.\n\n",
                       100 * share);
}

// The expected time of each.
static void add_estimates(const struct kg_problem *problem, const struct kg_device *device,
                          struct kg_outcomes *outcomes)
{
    const struct kg_target *target = kg_target_of(device);
    for (int i = 0; i < outcomes->count; i++) {
        struct kg_outcome *outcome = &outcomes->list[i];
        struct kg_choice choice;
        if (kg_choice_read(problem, &device->facts, target, outcome->choice, &choice))
            outcome->estimate = kg_choice_expected(&choice);
    }
}

static enum kg_status collect(struct kg_session *session, const struct kg_problem *problem,
                              const struct kg_device *device, struct kg_outcomes *outcomes,
                              struct kg_error *error)
{
    struct kg_session_key key;
    enum kg_status status = kg_session_key_make(problem, device, &session->protocol, &key, error);
    if (status != KG_OK)
        return status;
    status = kg_outcomes_collect(session->store, &key.key, outcomes, error);
    if (status == KG_OK)
        add_estimates(problem, device, outcomes);
    kg_session_key_free(&key);
    return status;
}

static void nearest_json(const struct kg_nearest *nearest, struct kg_text *text)
{
    if (!nearest->choice) {
        kg_text_add(text, "null");
        return;
    }
    struct kg_json json = {.text = text};
    kg_json_begin_object(&json, NULL);
    kg_json_text(&json, "sizes", nearest->sizes);
    kg_json_text(&json, "choice", nearest->choice);
    kg_json_boolean(&json, "from_file", nearest->from_file);
    kg_json_end_object(&json);
}

static void explain_json(const struct kg_plan *plan, const struct kg_outcomes *outcomes,
                         struct kg_text *text)
{
    struct kg_roofline roofline = kg_roofline_of(plan->problem, &plan->device->facts);
    struct kg_text list = {0};
    kg_outcomes_json(outcomes, plan->choice, &list);
    kg_text_add(text, "{\"choice\": ");
    struct kg_json json = {.text = text};
    kg_json_text(&json, NULL, plan->choice);
    bool known = plan->origin == KG_ORIGIN_RECORDS || plan->origin == KG_ORIGIN_FILE;
    kg_text_format(text, ", \"origin\": \"%s\", \"from_wisdom\": %s, \"nearest\": ",
                   origins[plan->origin].name, known ? "true" : "false");
    nearest_json(&plan->nearest, text);
    json = (struct kg_json){.text = text, .comma = true};
    kg_json_boolean(&json, "verified", plan->verified);
    kg_json_number(&json, "measured_seconds", plan->seconds);
    kg_json_number(&json, "roofline_seconds", roofline.seconds);
    kg_text_format(text, ", \"candidates\": %s}\n", kg_text_string(&list));
    text->failed |= list.failed;
    kg_text_free(&list);
}

enum kg_status kg_flow_explain(const struct kg_plan *plan, bool json, struct kg_text *text,
                               struct kg_error *error)
{
    struct kg_outcomes outcomes;
    enum kg_status status = collect(plan->session, plan->problem, plan->device, &outcomes, error);
    if (status != KG_OK)
        return status;
    if (json) {
        explain_json(plan, &outcomes, text);
    } else {
        add_title(plan->problem, plan->device, "Explanation", text);
        add_cost(plan, text);
        add_families(plan, text);
        add_refusals(plan, text);
        add_counts(&outcomes, text);
        const struct kg_outcomes_view view = {
            SHOWN_BY_EXPLAIN, kg_roofline_of(plan->problem, &plan->device->facts).seconds,
            plan->choice};
        kg_outcomes_markdown(&outcomes, &view, text);
    }
    kg_outcomes_free(&outcomes);
    return text->failed ? kg_error_memory(error, "an explanation") : KG_OK;
}

enum kg_status kg_flow_candidates(const struct kg_plan *plan, bool json, struct kg_text *text,
                                  struct kg_error *error)
{
    struct kg_outcomes outcomes;
    enum kg_status status = collect(plan->session, plan->problem, plan->device, &outcomes, error);
    if (status != KG_OK)
        return status;
    if (json)
        kg_outcomes_json(&outcomes, plan->choice, text);
    else
        kg_outcomes_fates(&outcomes, plan->choice, text);
    kg_outcomes_free(&outcomes);
    return text->failed ? kg_error_memory(error, "a list of candidates") : KG_OK;
}

// `plan` is NULL if the caller cancelled before one was chosen: then the records are explained.
static void add_profile(const struct kg_problem *problem, const struct kg_device *device,
                        const struct kg_plan *plan, const struct kg_outcomes *outcomes, bool json,
                        struct kg_text *text)
{
    if (json) {
        kg_outcomes_json(outcomes, plan ? plan->choice : NULL, text);
        kg_text_add(text, "\n");
        return;
    }
    add_title(problem, device, "Profile", text);
    if (plan)
        add_cost(plan, text);
    add_counts(outcomes, text);
    struct kg_outcomes_view view = {SHOWN_FIRST, kg_roofline_of(problem, &device->facts).seconds,
                                    plan ? plan->choice : NULL};
    if (outcomes->count > SHOWN_FIRST) { // else both tables would be the same
        kg_text_format(text, "## Top %d\n\n", SHOWN_FIRST);
        kg_outcomes_markdown(outcomes, &view, text);
        kg_text_add(text, "\n");
    }
    view.max = 0;
    kg_text_add(text, "## All\n\n");
    kg_outcomes_markdown(outcomes, &view, text);
}

enum kg_status kg_flow_profile(const struct kg_request *request, bool json, struct kg_text *text,
                               struct kg_error *error)
{
    struct kg_plan *plan = NULL;
    struct kg_request asked = *request;
    const struct kg_device *device = request->device;
    asked.rigor = KG_RIGOR_EXHAUSTIVE;
    if (device->is_described)
        return kg_error_set(error, KG_ERROR_MISSING, "%s is not at hand: nothing can be measured",
                            device->facts.isa);
    enum kg_status status = kg_flow_plan(&asked, &plan, error);
    bool stopped = status == KG_ERROR_CANCELLED;
    if (status != KG_OK && !stopped)
        return status;
    struct kg_outcomes outcomes;
    status = collect(request->session, request->problem, device, &outcomes, error);
    if (status == KG_OK) {
        if (stopped && outcomes.count == 0)
            status = kg_error_set(error, KG_ERROR_CANCELLED, "stopped before anything was known");
        else
            add_profile(request->problem, device, plan, &outcomes, json, text);
        kg_outcomes_free(&outcomes);
    }
    kg_flow_plan_free(plan);
    if (status == KG_OK && text->failed)
        status = kg_error_memory(error, "a profile");
    return status;
}
