// Tries candidates. Several threads compile a batch at once, because compilers take most of a
// search's time. The batch is measured afterwards, because a compiler that runs meanwhile would
// disturb the timing.

#include "tune/trials.h"

#include "gen/shared/bound.h"
#include "tune/code_identity.h"
#include "tune/compiling.h"
#include "tune/finals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUN_SECONDS 60.0 // for one candidate, if the caller gives no limit
#define REASONS_LENGTH 1500
// A candidate that takes less than this share of the best one's time is timed again, beside it: one
// of them may have been timed in a moment when others left the machine alone.
#define SURPRISING 0.9
// Of a time limit, what is kept for the last race; and how many take part if trials used the rest.
#define RACE_SHARE 0.125
#define SHORT_RACE 4

double kg_trials_run_limit(const struct kg_trials *trials)
{
    return trials->search->run_limit > 0 ? trials->search->run_limit : RUN_SECONDS;
}

// The time limit applies only after the first verdict: without one there is nothing to choose.
static bool has_deadline(const struct kg_trials *trials)
{
    return trials->deadline > 0 && (trials->best >= 0 || trials->failed > 0);
}

double kg_trials_deadline(const struct kg_trials *trials)
{
    return has_deadline(trials) ? trials->deadline : 0;
}

double kg_trials_limit(const struct kg_trials *trials)
{
    double limit = kg_trials_run_limit(trials);
    if (!has_deadline(trials))
        return limit;
    double left = trials->deadline - kg_times_now();
    left = left > 1e-3 ? left : 1e-3;
    return left < limit ? left : limit;
}

static void fail(struct kg_trials *trials, const struct kg_error *error)
{
    trials->stop = KG_STOP_FAILURE;
    trials->failure = *error;
}

// The bytes that certainly moved between memory and cache: of each group, those beyond the size of
// the last-level cache.
static void note_bandwidth(const struct kg_trials *trials, const struct kg_choice *choice,
                           const struct kg_timing *timing)
{
    struct kg_device *device = trials->search->device;
    double bytes = 0;
    for (int i = 0; i < choice->count; i++) {
        double beyond = kg_group_bytes(&choice->matches[i]->group) - (double)device->facts.cache[3];
        bytes += beyond > 0 ? beyond : 0;
    }
    if (bytes > 0 && timing->median > 0)
        kg_device_note_bandwidth(device, bytes / timing->median);
}

static char *print(const struct kg_choice *choice)
{
    struct kg_text text = {0};
    kg_text_add(&text, "");
    kg_choice_print(choice, &text);
    if (text.failed)
        kg_text_free(&text);
    return text.data;
}

static int find_text(const struct kg_trials *trials, const char *text)
{
    for (int i = 0; i < trials->count; i++)
        if (strcmp(trials->items[i].text, text) == 0)
            return i;
    return -1;
}

// Takes ownership of `text`. NULL when out of memory, and the search stops.
static struct kg_trial *add(struct kg_trials *trials, const struct kg_choice *choice, char *text)
{
    if (text && trials->count == trials->capacity) {
        int capacity = trials->capacity ? 2 * trials->capacity : 32;
        void *items = realloc(trials->items, (size_t)capacity * sizeof *trials->items);
        if (items) {
            trials->items = items;
            trials->capacity = capacity;
        }
    }
    if (!text || trials->count == trials->capacity) {
        struct kg_error error;
        kg_error_memory(&error, "the list of candidates");
        fail(trials, &error);
        free(text);
        return NULL;
    }
    struct kg_trial *trial = &trials->items[trials->count++];
    *trial = (struct kg_trial){.choice = *choice, .text = text, .twin = -1};
    return trial;
}

static void note_reason(struct kg_trials *trials, const char *text, const char *reason)
{
    if (trials->reasons.length < REASONS_LENGTH)
        kg_text_format(&trials->reasons, "\n%s: %.400s", text, reason ? reason : "");
}

// Counts a trial whose kind and times are set.
static void count_trial(struct kg_trials *trials, const struct kg_trial *trial, const char *reason)
{
    int position = (int)(trial - trials->items);
    if (trial->kind != KG_OUTCOME_MEASURED) {
        trials->failed += trial->kind != KG_OUTCOME_PRUNED;
        note_reason(trials, trial->text, reason);
        return;
    }
    trials->measured++;
    if (trial->timing.abandoned)
        return;
    if (trials->best < 0 || trial->timing.median < trials->items[trials->best].timing.median)
        trials->best = position;
}

static void report_progress(const struct kg_trials *trials, const char *what)
{
    const struct kg_search *search = trials->search;
    int total = trials->count > trials->expected ? trials->count : trials->expected;
    if (search->progress)
        search->progress(search->user, trials->count, total, what);
}

static void record(const struct kg_trials *trials, const struct kg_outcome *outcome)
{
    if (trials->search->record)
        trials->search->record(trials->search->user, outcome);
}

// A candidate was faster than the bound of its instructions: the bounds of others are scaled down.
static void note_code_bound_scale(struct kg_trials *trials, const struct kg_trial *trial)
{
    const struct kg_forecast *forecast = &trial->forecast;
    double least = trial->timing.least;
    if (forecast->known && forecast->bound > 0 &&
        least < forecast->bound * trials->code_bound_scale)
        trials->code_bound_scale = least / forecast->bound;
}

// Looks up an earlier search's outcome. False when there is none, or none that is final.
static bool recall(struct kg_trials *trials, const struct kg_choice *choice, const char *text)
{
    const struct kg_search *search = trials->search;
    struct kg_outcome outcome = {0};
    if (!search->known || !search->known(search->user, text, &outcome))
        return false;
    bool measured = outcome.kind == KG_OUTCOME_MEASURED && outcome.timing.median > 0;
    if (!measured && (outcome.kind < KG_OUTCOME_COMPILE || outcome.kind >= KG_OUTCOME_COUNT))
        return false;
    // The callback owns the reason's memory: it is copied before the next call.
    char reason[512] = "";
    if (outcome.reason)
        strncat(reason, outcome.reason, sizeof reason - 1);
    struct kg_trial *trial = add(trials, choice, strdup(text));
    if (!trial)
        return true;
    trial->kind = outcome.kind;
    if (measured)
        trial->timing = outcome.timing;
    trial->known = true;
    trial->source = outcome.source;
    trial->verdict = outcome.verdict;
    trial->forecast = outcome.forecast;
    if (measured)
        note_code_bound_scale(trials, trial);
    count_trial(trials, trial, reason);
    report_progress(trials, trial->text);
    return true;
}

// One candidate that is being compiled.
struct build {
    const struct kg_choice *choice;
    char *text;
    struct kg_compilation *made;
};

static bool is_zero(struct kg_hash hash)
{
    return hash.high == 0 && hash.low == 0;
}

static const struct kg_trial *find_source(const struct kg_trials *trials, struct kg_hash source)
{
    for (int i = 0; i < trials->count; i++) {
        const struct kg_trial *trial = &trials->items[i];
        if (trial->source.high == source.high && trial->source.low == source.low &&
            !is_zero(source))
            return trial;
    }
    return NULL;
}

// Is it a failure of the machine? Such a failure would occur for every other candidate as well.
static bool is_machine_failure(enum kg_status status)
{
    return status == KG_ERROR_MISSING || status == KG_ERROR_IO || status == KG_ERROR_MEMORY;
}

static void settle_build_failure(struct kg_trials *trials, struct build *build,
                                 struct kg_outcome *outcome)
{
    if (is_machine_failure(build->made->status)) {
        fail(trials, &build->made->error);
        return;
    }
    // The search's own time limit ended the compilation, not a fault of the candidate.
    if (kg_trials_stopped(trials))
        return;
    if (build->made->status == KG_ERROR_CANCELLED) { // what is left is too short for its kernels
        trials->stop = KG_STOP_TIME;
        return;
    }
    struct kg_trial *trial = add(trials, build->choice, build->text);
    build->text = NULL;
    if (!trial)
        return;
    trial->kind = outcome->kind = KG_OUTCOME_COMPILE;
    outcome->choice = trial->text;
    outcome->reason = build->made->error.text;
    count_trial(trials, trial, outcome->reason);
    record(trials, outcome);
}

// The kernel runs the same code as an earlier candidate and takes over its outcome.
static void settle_twin(struct kg_trials *trials, struct build *build, const struct kg_trial *twin,
                        bool by_code, struct kg_outcome *outcome)
{
    struct kg_trial copy = *twin;
    int position = (int)(twin - trials->items);
    struct kg_text reason = {0};
    kg_text_format(&reason, "the same %s as %s", by_code ? "machine code" : "source", twin->text);
    struct kg_trial *trial = add(trials, build->choice, build->text);
    build->text = NULL;
    if (trial) {
        char *text = trial->text;
        *trial = copy;
        trial->choice = *build->choice;
        trial->text = text;
        trial->twin = position;
        outcome->kind = KG_OUTCOME_PRUNED;
        outcome->choice = text;
        outcome->reason = kg_text_string(&reason);
        trials->pruned++;
        record(trials, outcome);
    }
    kg_text_free(&reason);
}

// Expected seconds, by the families if they give them, else by the instructions.
static double expect(const struct kg_choice *choice, const struct kg_forecast *forecast)
{
    double seconds = kg_choice_expected(choice);
    return seconds > 0 ? seconds : forecast->estimate;
}

// Do its instructions show that running it is pointless? The first candidate always runs.
static bool is_hopeless(const struct kg_trials *trials, const struct kg_choice *choice,
                        const struct kg_forecast *forecast, char *reason, size_t size)
{
    if (!trials->prunes || !forecast->known || trials->best < 0)
        return false;
    const struct kg_trial *best = &trials->items[trials->best];
    double median = best->timing.median, bound = forecast->bound * trials->code_bound_scale;
    double expected = expect(choice, forecast);
    double expected_of_best = expect(&best->choice, &best->forecast);
    if (forecast->refusal[0])
        snprintf(reason, size, "cannot be launched: %s", forecast->refusal);
    else if (bound > median)
        snprintf(reason, size,
                 "its instructions cannot take less than %.3g us; the best takes %.3g us",
                 bound * 1e6, median * 1e6);
    else if (trials->max_estimate > 0 && expected_of_best > 0 &&
             expected > trials->max_estimate * expected_of_best)
        snprintf(reason, size, "the model expects %.3g us, and %.3g us of the best", expected * 1e6,
                 expected_of_best * 1e6);
    else
        return false;
    return true;
}

static void settle_hopeless(struct kg_trials *trials, struct build *build, const char *reason,
                            struct kg_outcome *outcome)
{
    struct kg_trial *trial = add(trials, build->choice, build->text);
    build->text = NULL;
    if (!trial)
        return;
    trial->kind = outcome->kind = KG_OUTCOME_PRUNED;
    trial->source = outcome->source;
    outcome->choice = trial->text;
    outcome->reason = reason;
    trials->pruned++;
    record(trials, outcome);
}

// Times a candidate that is surprisingly fast and the best one by turns, and takes these times.
static void confirm(struct kg_trials *trials, struct kg_built *built, struct kg_timing *timing)
{
    const struct kg_search *search = trials->search;
    struct kg_trial *best = trials->best >= 0 ? &trials->items[trials->best] : NULL;
    if (!best || timing->median >= SURPRISING * best->timing.median)
        return;
    struct kg_built *both[2] = {NULL, built};
    struct kg_timing timings[2];
    double limit = kg_trials_limit(trials);
    if (kg_built_make(search->device, search->problem, &best->choice, limit, &both[0], NULL) ==
            KG_OK &&
        kg_judge_race(trials->judge, both, 2, false, limit, timings, NULL) == KG_OK) {
        best->timing = timings[0];
        *timing = timings[1];
    }
    kg_built_free(both[0]);
}

static void settle_judgement(struct kg_trials *trials, struct build *build,
                             const struct kg_judgement *judgement, struct kg_outcome *outcome)
{
    struct kg_trial *trial = add(trials, build->choice, build->text);
    build->text = NULL;
    if (!trial)
        return;
    bool measured = judgement->kind == KG_OUTCOME_MEASURED;
    trial->kind = outcome->kind = judgement->kind;
    trial->source = outcome->source;
    if (measured) {
        trial->timing = judgement->timing;
        note_bandwidth(trials, build->choice, &judgement->timing);
    }
    trial->verdict = judgement->verdict;
    outcome->choice = trial->text;
    outcome->verdict = judgement->verdict;
    outcome->timing = judgement->timing;
    outcome->reason = measured ? NULL : judgement->reason;
    trial->forecast = outcome->forecast;
    if (measured)
        note_code_bound_scale(trials, trial);
    if (measured && outcome->bound > 0 &&
        judgement->timing.least < outcome->bound * trials->bound_scale)
        trials->bound_scale = judgement->timing.least / outcome->bound;
    count_trial(trials, trial, outcome->reason);
    record(trials, outcome);
}

// Everything between compilation and record, for one candidate.
static void settle(struct kg_trials *trials, struct build *build)
{
    struct kg_outcome outcome = {.bound = kg_choice_bound(build->choice),
                                 .estimate = kg_choice_expected(build->choice)};
    if (build->made->status) {
        settle_build_failure(trials, build, &outcome);
        return;
    }
    outcome.compile_seconds = build->made->built->compile_seconds;
    bool by_code;
    outcome.source = kg_code_identity(build->made->built, &by_code);
    const struct kg_trial *twin = find_source(trials, outcome.source);
    if (twin) {
        settle_twin(trials, build, twin, by_code, &outcome);
        return;
    }
    char reason[512];
    outcome.forecast = build->made->forecast;
    if (is_hopeless(trials, build->choice, &build->made->forecast, reason, sizeof reason)) {
        settle_hopeless(trials, build, reason, &outcome);
        return;
    }
    struct kg_judgement judgement;
    struct kg_error error = {0};
    double limit = kg_trials_limit(trials);
    double incumbent = trials->best >= 0 ? trials->items[trials->best].timing.median : 0;
    enum kg_status status =
        kg_judge_one(trials->judge, build->made->built, limit, incumbent, &judgement, &error);
    if (status == KG_ERROR_CANCELLED) {
        trials->stop = KG_STOP_CANCELLED;
    } else if (status) {
        fail(trials, &error);
    } else if (judgement.kind == KG_OUTCOME_TIMEOUT && limit < kg_trials_run_limit(trials)) {
        trials->stop = KG_STOP_TIME; // the search's time limit, not the candidate's
    } else {
        if (judgement.kind == KG_OUTCOME_MEASURED)
            confirm(trials, build->made->built, &judgement.timing);
        settle_judgement(trials, build, &judgement, &outcome);
    }
}

static void run_batch(struct kg_trials *trials, struct build *builds, int count,
                      struct kg_compilation *items)
{
    const struct kg_search *search = trials->search;
    for (int i = 0; i < count; i++) {
        items[i].problem = search->problem;
        items[i].choice = *builds[i].choice;
        builds[i].made = &items[i];
    }
    if (!kg_trials_stopped(trials))
        kg_compile_all(search->device, items, count, kg_trials_run_limit(trials),
                       kg_trials_deadline(trials), search->protocol.cache == KG_WARM,
                       search->cancel, search->times);
    for (int i = 0; i < count; i++) {
        if (!kg_trials_stopped(trials)) {
            report_progress(trials, builds[i].text);
            settle(trials, &builds[i]);
        }
        kg_built_free(items[i].built);
        free(builds[i].text);
    }
}

enum kg_status kg_trials_begin(struct kg_trials *trials, const struct kg_search *search,
                               struct kg_error *error)
{
    *trials =
        (struct kg_trials){.search = search, .best = -1, .bound_scale = 1, .code_bound_scale = 1};
    if (search->seconds > 0)
        trials->deadline = kg_times_now() + search->seconds * (1 - RACE_SHARE);
    trials->judge = search->judge;
    return search->judge ? KG_OK : kg_judge_make(search, &trials->judge, error);
}

void kg_trials_free(struct kg_trials *trials)
{
    for (int i = 0; i < trials->count; i++)
        free(trials->items[i].text);
    free(trials->items);
    kg_text_free(&trials->reasons);
    if (trials->search && trials->judge != trials->search->judge)
        kg_judge_free(trials->judge);
    *trials = (struct kg_trials){0};
}

bool kg_trials_stopped(struct kg_trials *trials)
{
    const struct kg_search *search = trials->search;
    if (trials->stop == KG_STOP_NOT && search->cancel && *search->cancel)
        trials->stop = KG_STOP_CANCELLED;
    if (trials->stop == KG_STOP_NOT && has_deadline(trials) && kg_times_now() >= trials->deadline)
        trials->stop = KG_STOP_TIME;
    return trials->stop != KG_STOP_NOT;
}

// Is this choice in the batch already? Hints often equal the guess.
static bool is_wanted(const struct build *builds, int wanted, const char *text)
{
    for (int i = 0; i < wanted; i++)
        if (strcmp(builds[i].text, text) == 0)
            return true;
    return false;
}

void kg_trials_run(struct kg_trials *trials, const struct kg_choice *choices, int count)
{
    struct build *builds = calloc((size_t)count + 1, sizeof *builds);
    struct kg_compilation *items = calloc((size_t)count + 1, sizeof *items);
    bool complete = builds && items;
    int wanted = 0;
    for (int i = 0; i < count && complete && !kg_trials_stopped(trials); i++) {
        char *text = print(&choices[i]);
        complete = text != NULL;
        if (complete && !is_wanted(builds, wanted, text) && find_text(trials, text) < 0 &&
            !recall(trials, &choices[i], text))
            builds[wanted++] = (struct build){.choice = &choices[i], .text = text};
        else
            free(text);
    }
    if (!complete) {
        struct kg_error error;
        kg_error_memory(&error, "a batch of candidates");
        fail(trials, &error);
    }
    run_batch(trials, builds, wanted, items);
    free(builds);
    free(items);
}

const struct kg_trial *kg_trials_find(const struct kg_trials *trials,
                                      const struct kg_choice *choice)
{
    char *text = print(choice);
    int found = text ? find_text(trials, text) : -1;
    free(text);
    return found >= 0 ? &trials->items[found] : NULL;
}

double kg_trials_bound(const struct kg_trials *trials, const struct kg_choice *choice)
{
    return kg_choice_bound(choice) * trials->bound_scale;
}

void kg_trials_dismiss(struct kg_trials *trials, const struct kg_choice *choice, const char *reason)
{
    const struct kg_search *search = trials->search;
    char *text = print(choice);
    struct kg_outcome before = {0};
    struct kg_outcome outcome = {.kind = KG_OUTCOME_PRUNED,
                                 .choice = text,
                                 .bound = kg_choice_bound(choice),
                                 .reason = reason};
    // A search that is resumed does not record the same outcome again.
    bool said = text && search->known && search->known(search->user, text, &before) &&
                before.kind == KG_OUTCOME_PRUNED;
    if (text && !said)
        record(trials, &outcome);
    free(text);
}

// What a finalist took in the race. Those that left it early were not too slow to be timed.
static void record_final(struct kg_trials *trials, int position, const struct kg_timing *timing)
{
    const struct kg_trial *trial = &trials->items[position];
    struct kg_outcome outcome = {.kind = KG_OUTCOME_MEASURED,
                                 .choice = trial->text,
                                 .source = trial->source,
                                 .bound = kg_choice_bound(&trial->choice),
                                 .estimate = kg_choice_expected(&trial->choice),
                                 .verdict = trial->verdict,
                                 .forecast = trial->forecast,
                                 .timing = *timing,
                                 .final = true};
    outcome.timing.abandoned = false;
    record(trials, &outcome);
}

int kg_trials_finish(struct kg_trials *trials, int max, double margin, struct kg_timing *timing)
{
    int finalists[KG_MAX_FINALISTS];
    struct kg_timing timings[KG_MAX_FINALISTS];
    int place = -1;
    const struct kg_trial *best = &trials->items[trials->best];
    bool ended = kg_trials_stopped(trials), by_time = trials->stop == KG_STOP_TIME;
    if (by_time && max > SHORT_RACE)
        max = SHORT_RACE;
    int count = kg_finals_choose(trials, max, margin, finalists);
    if ((!ended || by_time) && (count > 1 || best->known)) {
        report_progress(trials, "final race");
        place = kg_finals_race(trials, finalists, count, timings);
    }
    *timing = place < 0 ? best->timing : timings[place];
    for (int i = 0; i < count && place >= 0; i++)
        if (i != place && timings[i].samples > 0)
            record_final(trials, finalists[i], &timings[i]);
    int winner = place < 0 ? trials->best : finalists[place];
    record_final(trials, winner, timing);
    return winner;
}
