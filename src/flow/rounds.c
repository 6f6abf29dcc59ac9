// See rounds.h. A round diagnoses what limits the best version, and takes the first kind of change
// that the diagnosis suggests and that was not tried from this version yet; kinds that it does not
// suggest come after those that it does.

#include "flow/rounds.h"

#include "base/line_diff.h"
#include "flow/evidence.h"
#include "flow/planner.h"
#include "flow/proof.h"
#include "flow/recorder.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Smaller gains are within the noise and do not replace a version.
#define MIN_GAIN 1.01
#define RACE_PART 1.2 // a race of three, in races of the plan and its baseline
#define LAST_RACES 3  // of the loop's version with that of the search

// A kind of change that gave nothing from this version.
struct dead_end {
    char *base;
    enum kg_change change;
    bool is_open; // it led to another version, which was not given up yet
};

struct loop {
    struct kg_build_run *build;
    double began;             // the time of the search counts from here
    double race;              // seconds that a race takes
    struct kg_plan *searched; // what the search found, when another version has taken its place
    struct dead_end *dead_ends;
    int count, capacity;
    bool failed; // no memory for a dead end
};

// One round, as it was decided.
struct attempt {
    int number;
    enum kg_change change; // NONE: the search over everything
    struct kg_diagnosed diagnosed;
    double predicted; // seconds; 0: unknown
    bool counts;      // something new was tried: it is a round
    bool is_last;     // nothing is: what the search found races once more
};

__attribute__((format(printf, 2, 3))) static void stop(struct loop *loop, const char *format, ...)
{
    char *text = loop->build->report->stopped;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof loop->build->report->stopped, format, arguments);
    va_end(arguments);
}

static bool has_stopped(const struct loop *loop)
{
    return loop->build->report->stopped[0] != '\0';
}

// ---- Dead ends ----

static void add_end(struct loop *loop, const char *base, enum kg_change change, bool is_open)
{
    if (loop->count == loop->capacity) {
        int capacity = loop->capacity ? 2 * loop->capacity : 8;
        void *list = realloc(loop->dead_ends, (size_t)capacity * sizeof *loop->dead_ends);
        loop->failed |= !list;
        if (!list)
            return;
        loop->dead_ends = list;
        loop->capacity = capacity;
    }
    char *copy = strdup(base);
    loop->failed |= !copy;
    if (copy)
        loop->dead_ends[loop->count++] = (struct dead_end){copy, change, is_open};
}

static void add_dead_end(struct loop *loop, const char *base, enum kg_change change)
{
    add_end(loop, base, change, false);
}

// The search's version is back: what led away from it led nowhere.
static void close_ends(struct loop *loop, const char *base)
{
    for (int i = 0; i < loop->count; i++)
        if (strcmp(loop->dead_ends[i].base, base) == 0)
            loop->dead_ends[i].is_open = false;
}

static bool is_dead_end(const struct loop *loop, enum kg_change change)
{
    for (int i = 0; i < loop->count; i++)
        if (loop->dead_ends[i].change == change && !loop->dead_ends[i].is_open &&
            strcmp(loop->dead_ends[i].base, loop->build->plan->choice) == 0)
            return true;
    return false;
}

static void recall_dead_end(void *user, const struct kg_round *round)
{
    struct loop *loop = user;
    if (round->kept && round->number > 1 && strcmp(round->kind, KG_ROUND_SEARCH) == 0)
        close_ends(loop, round->choice);
    for (int i = KG_CHANGE_NONE + 1; i < KG_CHANGE_COUNT; i++) {
        enum kg_change change = (enum kg_change)i;
        if (strcmp(round->kind, kg_change_keys[i]) != 0)
            continue;
        if (!round->kept || change < KG_CHANGE_GROUPING)
            add_dead_end(loop, round->kept ? round->choice : round->base, change);
        if (round->kept)
            add_end(loop, round->base, change, true);
    }
}

// Those of earlier builds, unless other kernels are written for the version now than were then.
static enum kg_status recall_dead_ends(struct loop *loop, struct kg_error *error)
{
    const struct kg_build_run *build = loop->build;
    enum kg_status status = kg_store_rounds(build->request.session->store, &build->key.key,
                                            recall_dead_end, loop, error);
    int kept = 0;
    for (int i = 0; i < loop->count; i++) {
        struct kg_outcome outcome;
        struct dead_end *dead_end = &loop->dead_ends[i];
        if (kg_proof_find(&build->request, &build->key.key, dead_end->base, &outcome))
            loop->dead_ends[kept++] = *dead_end;
        else
            free(dead_end->base);
    }
    loop->count = kept;
    return status;
}

static void free_dead_ends(struct loop *loop)
{
    for (int i = 0; i < loop->count; i++)
        free(loop->dead_ends[i].base);
    free(loop->dead_ends);
}

// ---- A round ----

static void diff_sources(const struct kg_plan *base, const struct kg_plan *challenger,
                         struct kg_text *difference)
{
    struct kg_text before = {0}, after = {0};
    kg_flow_source(base, &before);
    kg_flow_source(challenger, &after);
    if (!before.failed && !after.failed)
        kg_line_diff(kg_text_string(&before), kg_text_string(&after), base->choice,
                     challenger->choice, difference);
    kg_text_free(&before);
    kg_text_free(&after);
}

static enum kg_status record(const struct kg_build_run *build, struct kg_round *round,
                             const struct kg_bench_result *after, struct kg_error *error)
{
    struct kg_session *session = build->request.session;
    round->after = after->seconds;
    round->baseline = after->baseline_seconds;
    round->roofline = after->bound_seconds;
    enum kg_status status = kg_store_round(session->store, &build->key.key, round, error);
    return kg_session_recorded(session, status, error);
}

static enum kg_status record_attempt(struct kg_build_run *build, const struct attempt *attempt,
                                     const struct kg_plan *challenger, double before,
                                     const struct kg_bench_result *after, const char *result,
                                     bool won, struct kg_error *error)
{
    struct kg_text diagnosis = {0}, difference = {0};
    const struct kg_bottleneck_row *row = attempt->diagnosed.row;
    bool everything = attempt->change == KG_CHANGE_NONE;
    const char *change = attempt->is_last ? "another race with the version that the search found"
                         : everything ? "a search over all parameters, and groupings that come near"
                                      : kg_change_names[attempt->change][KG_ENGLISH];
    int tried = challenger ? challenger->found.fresh + challenger->found.fresh_failed : 0;
    kg_text_format(&diagnosis, "%s: %s", row->name[KG_ENGLISH], attempt->diagnosed.evidence);
    if (challenger)
        diff_sources(build->plan, challenger, &difference);
    struct kg_round round = {
        .number = attempt->number,
        .diagnosis = kg_text_string(&diagnosis),
        .change = change,
        .choice = challenger ? challenger->choice : build->plan->choice,
        .before = before,
        .result = result,
        .base = build->plan->choice,
        .kind = everything ? KG_ROUND_SEARCH : kg_change_keys[attempt->change],
        .bottleneck = row->key,
        .predicted = attempt->predicted,
        .tried = attempt->is_last ? 0 : tried,
        .kept = won,
        .difference = kg_text_string(&difference),
    };
    enum kg_status status = record(build, &round, after, error);
    kg_text_free(&diagnosis);
    kg_text_free(&difference);
    return status;
}

// Races the challenger with the best version. Of many challengers some win one race by luck: the
// winner of the first has to win another, whose times count.
static enum kg_status race(struct kg_build_run *build, struct kg_plan *challenger,
                           struct kg_bench_result *bench, double *before, bool *won,
                           struct kg_error *error)
{
    enum { RACES = 2 };
    enum kg_status status = KG_OK;
    *won = true;
    for (int i = 0; i < RACES && *won && status == KG_OK; i++) {
        status = kg_build_run_measure(build, challenger, build->plan, bench, before, error);
        *won = status == KG_OK && *before > MIN_GAIN * bench->seconds;
    }
    return status;
}

// Replaces the best version if the challenger, which is freed otherwise, is faster beyond the
// noise. `*won` tells. If both are the same choice there is nothing to compare.
static enum kg_status challenge(struct loop *loop, const struct attempt *attempt,
                                struct kg_plan *challenger, bool *won, struct kg_error *error)
{
    struct kg_build_run *build = loop->build;
    struct kg_bench_result *best = &build->report->bench;
    bool same = strcmp(challenger->choice, build->plan->choice) == 0;
    struct kg_bench_result bench = *best;
    double before = best->seconds; // of the current version, in the challenger's race
    enum kg_status status = KG_OK;
    *won = false;
    if (!same) {
        // What the search found has passed the same evaluator's gate.
        if (challenger->origin != KG_ORIGIN_SEARCH)
            status = kg_build_run_verify(build, challenger, error);
        if (status == KG_OK)
            status = race(build, challenger, &bench, &before, won, error);
    }
    if (status != KG_OK) {
        kg_flow_plan_free(challenger);
        return status;
    }
    const char *result = same   ? "the current version is the best found"
                         : *won ? "kept"
                                : "not faster beyond the noise: the current version stays";
    status = record_attempt(build, attempt, challenger, before, &bench, result, *won, error);
    struct kg_plan *loser = *won ? build->plan : challenger;
    if (*won) {
        build->plan = challenger;
        *best = bench;
    }
    if (*won && attempt->change != KG_CHANGE_NONE && !loop->searched)
        loop->searched = loser;
    else
        kg_flow_plan_free(loser);
    return status == KG_OK && *won ? kg_build_run_write_kernel(build, error) : status;
}

// Later rounds try some of the same candidates again.
static void add_found(struct kg_built_report *report, const struct kg_found *found, bool is_first)
{
    report->space = found->space > report->space ? found->space : report->space;
    report->valid = found->valid > report->valid ? found->valid : report->valid;
    report->pruned += is_first ? found->pruned : 0;
    report->measured += is_first ? found->measured : found->fresh;
    report->failed += is_first ? found->failed : found->fresh_failed;
}

// Seconds that a search may take; 0: any number. False, with the reason, if none are left.
static bool has_time(struct loop *loop, double *left)
{
    double limit = loop->build->request.seconds;
    *left = 0;
    if (limit <= 0)
        return true;
    // What the search finds is raced with the current version, and in the end with the search's.
    int races = loop->searched ? 1 + LAST_RACES : 1;
    *left = limit - (kg_times_now() - loop->began) - races * RACE_PART * loop->race;
    if (*left <= 0)
        stop(loop, "time is up");
    return *left > 0;
}

// Searches, races what is found with the best version, and records the round.
static enum kg_status run_round(struct loop *loop, struct attempt *attempt, struct kg_error *error)
{
    struct kg_build_run *build = loop->build;
    struct kg_request request = build->request;
    struct kg_plan *challenger = NULL;
    bool won;
    if (!has_time(loop, &request.seconds))
        return KG_OK;
    request.hint = build->plan->choice;
    request.change = attempt->change;
    request.evaluator = build->evaluator;
    enum kg_status status = kg_flow_plan(&request, &challenger, error);
    if (status == KG_ERROR_MISSING || status == KG_ERROR_IO) { // the machine's failure
        kg_session_tell(build->request.session,
                        "the search ended early; the version so far stays: %s",
                        error ? error->text : kg_status_name(status));
        kg_error_clear(error);
        stop(loop, "the machine failed");
        return KG_OK;
    }
    if (status != KG_OK)
        return status;
    bool complete = challenger->found.complete || challenger->origin != KG_ORIGIN_SEARCH;
    if (challenger->found.ended[0]) // and would end another search
        stop(loop, "the search ended early: %.100s", challenger->found.ended);
    const struct kg_found *found = &challenger->found;
    attempt->counts = attempt->change == KG_CHANGE_NONE || found->fresh + found->fresh_failed > 0 ||
                      strcmp(challenger->choice, build->plan->choice) != 0;
    if (!attempt->counts) { // earlier searches have tried all of it
        kg_flow_plan_free(challenger);
        add_dead_end(loop, build->plan->choice, attempt->change);
        return KG_OK;
    }
    add_found(build->report, found, attempt->change == KG_CHANGE_NONE);
    build->report->rounds = attempt->number;
    char *base = strdup(build->plan->choice);
    status = challenge(loop, attempt, challenger, &won, error);
    if (status == KG_OK && !base)
        status = kg_error_memory(error, "a round");
    // The neighbours of a version by values of some parameters are those of the winner, too.
    bool is_exhausted = !won || attempt->change < KG_CHANGE_GROUPING;
    if (status == KG_OK && attempt->change != KG_CHANGE_NONE && complete && is_exhausted)
        add_dead_end(loop, won ? build->plan->choice : base, attempt->change);
    free(base);
    return status;
}

// ---- The decision ----

static void diagnose(const struct kg_build_run *build, struct attempt *attempt)
{
    kg_flow_diagnose_plan(build->plan, build->report->bench.seconds, &attempt->diagnosed);
}

static bool is_suggested(const struct kg_diagnosed *diagnosed, enum kg_change change)
{
    for (int i = 0; i < KG_MAX_CHANGES; i++)
        if (diagnosed->changes[i] == change)
            return true;
    return false;
}

// Whether there is anything to try, and what it may bring.
static bool has_prospect(const struct kg_build_run *build, struct attempt *attempt)
{
    const struct kg_request *request = &build->request;
    const struct kg_choice *from = &build->plan->built->choice;
    const struct kg_search search = {.device = request->device,
                                     .problem = request->problem,
                                     .target = kg_target_of(request->device),
                                     .rigor = request->rigor,
                                     .change = attempt->change,
                                     .from = from};
    struct kg_prospect prospect;
    double seconds = build->report->bench.seconds;
    kg_search_prospect(&search, &prospect);
    attempt->predicted =
        is_suggested(&attempt->diagnosed, attempt->change) ? attempt->diagnosed.attainable : 0;
    if (prospect.ratio > 0)
        attempt->predicted = fmax(attempt->predicted, prospect.ratio * seconds);
    return prospect.candidates > 0;
}

// The next kind of change; false: none is left.
static bool choose_change(const struct loop *loop, struct attempt *attempt)
{
    enum kg_change order[KG_MAX_CHANGES + KG_CHANGE_COUNT];
    int count = 0;
    for (int i = 0; i < KG_MAX_CHANGES; i++)
        order[count++] = attempt->diagnosed.changes[i];
    for (int change = KG_CHANGE_NONE + 1; change < KG_CHANGE_COUNT; change++)
        order[count++] = (enum kg_change)change;
    for (int i = 0; i < count; i++) {
        attempt->change = order[i];
        if (order[i] != KG_CHANGE_NONE && !is_dead_end(loop, order[i]) &&
            has_prospect(loop->build, attempt))
            return true;
    }
    return false;
}

// Whether another round could gain anything; if not, says why.
static bool may_gain(struct loop *loop, const struct attempt *attempt)
{
    const struct kg_bench_result *bench = &loop->build->report->bench;
    int rounds = loop->build->request.problem->op->goal.rounds;
    if (has_stopped(loop))
        return false;
    if (kg_session_cancelled(loop->build->request.session))
        stop(loop, "it was cancelled");
    else if (bench->speedup >= bench->goal)
        stop(loop, "the goal is met");
    else if (attempt->diagnosed.at_limit)
        stop(loop, "no headroom: %s (%s)", attempt->diagnosed.row->name[KG_ENGLISH],
             attempt->diagnosed.evidence);
    else if (attempt->number > rounds)
        stop(loop, "all %d rounds are used", rounds);
    return !has_stopped(loop);
}

// The race that ended as most did: as many ratios are smaller as are larger.
static int median_race(const double *ratios)
{
    for (int i = 0; i < LAST_RACES; i++) {
        int before = 0;
        for (int k = 0; k < LAST_RACES; k++)
            before += ratios[k] < ratios[i] || (ratios[k] == ratios[i] && k < i);
        if (before == LAST_RACES / 2)
            return i;
    }
    return 0;
}

// Of many rounds some are won by luck, too. So in the end the version of the search races with the
// loop's again, and takes its place if it is faster.
static enum kg_status settle(struct loop *loop, struct attempt *attempt, struct kg_error *error)
{
    struct kg_build_run *build = loop->build;
    struct kg_bench_result bench[LAST_RACES];
    double ended[LAST_RACES], ratios[LAST_RACES];
    enum kg_status status = KG_OK;
    if (!loop->searched || strcmp(loop->searched->choice, build->plan->choice) == 0)
        return KG_OK;
    for (int i = 0; i < LAST_RACES && status == KG_OK; i++) {
        status =
            kg_build_run_measure(build, loop->searched, build->plan, &bench[i], &ended[i], error);
        ratios[i] = status == KG_OK ? ended[i] / bench[i].seconds : 0;
    }
    if (status != KG_OK)
        return status;
    int race = median_race(ratios);
    build->report->searched = bench[race].seconds;
    if (ratios[race] <= 1)
        return KG_OK;
    attempt->is_last = true;
    attempt->change = KG_CHANGE_NONE;
    attempt->predicted = 0;
    status = record_attempt(build, attempt, loop->searched, ended[race], &bench[race], "kept", true,
                            error);
    struct kg_plan *loser = build->plan;
    build->plan = loop->searched;
    build->report->bench = bench[race];
    loop->searched = loser; // freed with the loop
    return status == KG_OK ? kg_build_run_write_kernel(build, error) : status;
}

// The search over everything comes first, unless the first version is good enough already.
static enum kg_status run_all(struct loop *loop, struct kg_error *error)
{
    struct kg_build_run *build = loop->build;
    struct attempt attempt = {.number = 1, .counts = true};
    const struct kg_bench_result *bench = &build->report->bench;
    enum kg_status status = KG_OK;
    diagnose(build, &attempt);
    if (attempt.diagnosed.at_limit && bench->speedup >= bench->goal)
        build->report->limit = attempt.diagnosed.row->name[KG_ENGLISH];
    else if (build->request.problem->op->goal.rounds > 0)
        status = run_round(loop, &attempt, error);
    build->report->searched = bench->seconds;
    while (status == KG_OK) {
        attempt.number += attempt.counts;
        diagnose(build, &attempt);
        if (!may_gain(loop, &attempt))
            break;
        if (!choose_change(loop, &attempt)) {
            stop(loop, "a plateau: no kind of change is left that was not tried from here");
            break;
        }
        status = run_round(loop, &attempt, error);
        if (status == KG_OK && loop->failed)
            status = kg_error_memory(error, "the rounds");
    }
    return status == KG_OK ? settle(loop, &attempt, error) : status;
}

static enum kg_status measure_first(struct kg_build_run *build, struct kg_error *error)
{
    struct kg_bench_result *bench = &build->report->bench;
    struct kg_round round = {.diagnosis = "the first version, by rule",
                             .change = "none",
                             .choice = build->plan->choice,
                             .result = "measured against the baseline"};
    enum kg_status status = kg_build_run_measure(build, build->plan, NULL, bench, NULL, error);
    if (status == KG_OK)
        status = kg_recorder_describe(&build->request, &build->key.key, error);
    return status == KG_OK ? record(build, &round, bench, error) : status;
}

enum kg_status kg_rounds_run(struct kg_build_run *build, struct kg_error *error)
{
    struct loop loop = {.build = build};
    kg_build_run_announce(build, "optimise", 4);
    double start = kg_times_now();
    enum kg_status status = measure_first(build, error);
    // Without a time there is no result, even if the caller has cancelled.
    if (status != KG_OK || !kg_build_run_is_measuring(build))
        return status;
    loop.began = kg_times_now();
    loop.race = loop.began - start;
    if (build->request.seconds > 0)
        kg_session_tell(build->request.session,
                        "the first plan took %.1f s; %g s are left to find a faster one",
                        loop.began - build->started, build->request.seconds);
    status = recall_dead_ends(&loop, error);
    if (status == KG_OK)
        status = run_all(&loop, error);
    free_dead_ends(&loop);
    kg_flow_plan_free(loop.searched);
    // Cancelled by the caller: the results so far are kept.
    return status == KG_ERROR_CANCELLED ? KG_OK : status;
}
