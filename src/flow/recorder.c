// See recorder.h.

#include "flow/recorder.h"

#include "flow/proof.h"

#include <time.h>

static bool find_known(void *user, const char *choice, struct kg_outcome *outcome)
{
    struct kg_recorder *recorder = user;
    return kg_proof_find(recorder->request, recorder->key, choice, outcome);
}

// Candidates that were never compiled are not recorded.
static struct kg_hash emitted(const struct kg_request *request, const struct kg_outcome *outcome)
{
    const struct kg_device *device = request->device;
    struct kg_choice choice;
    if (outcome->kind == KG_OUTCOME_PRUNED ||
        !kg_choice_read(request->problem, &device->facts, kg_target_of(device), outcome->choice,
                        &choice))
        return (struct kg_hash){0};
    return kg_proof_source(&choice);
}

void kg_recorder_append(struct kg_recorder *recorder, const struct kg_outcome *outcome)
{
    struct kg_session *session = recorder->request->session;
    struct kg_error error = {0};
    struct kg_outcome kept = *outcome;
    kept.emitted = emitted(recorder->request, outcome);
    enum kg_status status = kg_store_append(session->store, recorder->key, &kept, &error);
    if (kg_session_recorded(session, status, &error))
        recorder->error = error;
}

static void record_outcome(void *user, const struct kg_outcome *outcome)
{
    struct kg_recorder *recorder = user;
    kg_recorder_append(recorder, outcome);
    kg_turn_renew(recorder->turn);
}

static void show_progress(void *user, int done, int total, const char *what)
{
    struct kg_recorder *recorder = user;
    const struct kg_session *session = recorder->request->session;
    kg_turn_renew(recorder->turn);
    if (session->progress)
        session->progress(session->user, what, done, total);
}

static double find_prior(void *user, const char *family, const char *parameter, int64_t value,
                         bool beyond)
{
    const struct kg_recorder *recorder = user;
    return kg_recorder_prior(recorder->learned, family, parameter, value, beyond);
}

static void offer_favourites(void *user, const char *family, int max, kg_favourites_fits *fits,
                             void *fitting)
{
    const struct kg_recorder *recorder = user;
    kg_recorder_offer(recorder->learned, family, max, fits, fitting);
}

void kg_recorder_attach(struct kg_recorder *recorder, struct kg_search *search)
{
    search->user = recorder;
    search->known = find_known;
    search->record = record_outcome;
    search->progress = show_progress;
    if (recorder->learned && recorder->learned->patterns.count > 0)
        search->prior = find_prior;
    if (recorder->learned && recorder->learned->favourites.count > 0)
        search->favourites = offer_favourites;
}

void kg_recorder_learned(const struct kg_request *request, struct kg_learned *learned)
{
    kg_traits_of(request->problem, &learned->traits);
    if (kg_patterns_load(request->session->store, learned->traits.class, request->device->facts.isa,
                         NULL, &learned->patterns, NULL) != KG_OK)
        kg_patterns_free(&learned->patterns);
    learned->favourites = (struct kg_favourites){0};
}

void kg_recorder_favourites(const struct kg_request *request, struct kg_learned *learned)
{
    if (kg_favourites_load(request->session->store, &learned->traits, request->device->facts.isa,
                           NULL, &learned->favourites, NULL) != KG_OK)
        kg_favourites_free(&learned->favourites);
}

void kg_recorder_forget(struct kg_learned *learned)
{
    kg_patterns_free(&learned->patterns);
    kg_favourites_free(&learned->favourites);
}

double kg_recorder_prior(void *user, const char *family, const char *parameter, int64_t value,
                         bool beyond)
{
    const struct kg_learned *learned = user;
    return beyond
               ? kg_patterns_effect(&learned->patterns, &learned->traits, family, parameter, value)
               : kg_patterns_prior(&learned->patterns, &learned->traits, family, parameter, value);
}

void kg_recorder_offer(void *user, const char *family, int max, kg_favourites_fits *fits,
                       void *fitting)
{
    const struct kg_learned *learned = user;
    kg_favourites_offer(&learned->favourites, family, max, fits, fitting);
}

enum kg_status kg_recorder_describe(const struct kg_request *request, const struct kg_key *key,
                                    struct kg_error *error)
{
    const struct kg_problem *problem = request->problem;
    struct kg_session *session = request->session;
    struct kg_roofline roofline = kg_roofline_of(problem, &request->device->facts);
    const struct kg_cost cost = {problem->operations, problem->read_bytes + problem->write_bytes,
                                 roofline.memory_seconds, roofline.compute_seconds};
    struct kg_traits traits;
    struct kg_error why = {0};
    kg_traits_of(problem, &traits);
    enum kg_status status = kg_store_note_traits(session->store, key, &traits, &why);
    if (status == KG_OK)
        status = kg_store_describe(session->store, key, &cost, problem->op->source, &why);
    status = kg_session_recorded(session, status, &why);
    return status ? kg_error_set(error, status, "%s", why.text) : KG_OK;
}

static void format_date(char out[32])
{
    time_t now = time(NULL);
    struct tm parts;
    gmtime_r(&now, &parts);
    strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &parts);
}

enum kg_status kg_recorder_learn(struct kg_recorder *recorder, const struct kg_plan *plan,
                                 struct kg_error *error)
{
    char date[32];
    format_date(date);
    struct kg_wisdom wisdom = {
        .choice = plan->choice,
        .rigor = plan->rigor,
        .seconds = plan->seconds,
        .spread = plan->spread,
        .seed = plan->seed,
        .date = date,
        .source = kg_proof_source(&plan->built->choice),
        .replaces = recorder->replaces,
    };
    struct kg_session *session = recorder->request->session;
    enum kg_status status = kg_store_learn(session->store, recorder->key, &wisdom, error);
    return kg_session_recorded(session, status, error);
}
