// The one place of a build: see place.h.

#include "flow/place.h"

#include "flow/errand.h"
#include "tune/compiling.h"

#include <pthread.h>
#include <stdlib.h>

#define COMPILE_SECONDS 120.0 // for one kernel; a compiler that needs more is hung
#define JUDGE_SECONDS 120.0   // one kernel on all cases; more is a hang

void kg_place_close(struct kg_place *place)
{
    if (!place)
        return;
    kg_judge_free(place->judge);
    kg_gate_free(place->gate);
    kg_problem_free(place->counterpart);
    free(place);
}

static void add(struct kg_compilation *items, int *count, const struct kg_problem *problem,
                const struct kg_choice *choice)
{
    items[*count].problem = problem;
    items[(*count)++].choice = *choice;
}

// What a build compares the guess with.
static void add_companions(const struct kg_place *place, const struct kg_choice *guess,
                           struct kg_compilation *items, int *count)
{
    const struct kg_search *terms = &place->terms;
    struct kg_text text = {0};
    struct kg_choice choice;
    kg_flow_choose_baseline(terms->device, terms->problem, &choice);
    add(items, count, terms->problem, &choice);
    kg_choice_print(guess, &terms->device->facts, terms->target, &text);
    if (place->counterpart && !text.failed) {
        kg_flow_choose_counterpart(terms->device, place->counterpart, kg_text_string(&text),
                                   &choice);
        add(items, count, place->counterpart, &choice);
    }
    kg_text_free(&text);
}

// Is there an outcome of this choice from before? Then a search goes on, and tries others first.
static bool is_known(const struct kg_place *place, const struct kg_key *key,
                     const struct kg_choice *choice)
{
    const struct kg_search *terms = &place->terms;
    struct kg_text text = {0};
    struct kg_outcome outcome;
    bool found = false;
    kg_choice_print(choice, &terms->device->facts, terms->target, &text);
    kg_store_find(place->session->store, key, kg_text_string(&text), &outcome, &found, NULL);
    kg_text_free(&text);
    return found;
}

// Compilers at work while other things are made ready.
struct compiling {
    const struct kg_search *terms;
    struct kg_compilation items[KG_MOST_FORESEEN + 2];
    int count;
    pthread_t thread, own, file;
    bool has_thread, has_own, has_file;
};

static void list_ahead(const struct kg_place *place, const struct kg_ahead *ahead,
                       struct compiling *compiling)
{
    struct kg_search search = place->terms;
    search.rigor = ahead->rigor;
    bool searches = ahead->rigor != KG_RIGOR_ESTIMATE && ahead->rigor != KG_RIGOR_WISDOM;
    struct kg_choice *choices = calloc(KG_MOST_FORESEEN, sizeof *choices);
    if (!choices)
        return; // each is compiled when its turn comes
    int foreseen = kg_search_foresee(&search, choices);
    if (!searches || is_known(place, ahead->key, &choices[0]))
        foreseen = 1;
    for (int i = 0; i < foreseen; i++)
        add(compiling->items, &compiling->count, search.problem, &choices[i]);
    if (ahead->build)
        add_companions(place, &choices[0], compiling->items, &compiling->count);
    free(choices);
}

static void *compile_listed(void *argument)
{
    struct compiling *compiling = argument;
    const struct kg_search *terms = compiling->terms;
    kg_compile_all(terms->device, compiling->items, compiling->count, COMPILE_SECONDS, false,
                   terms->cancel, NULL);
    return NULL;
}

static void *compile_own(void *argument)
{
    struct kg_device *device = argument;
    device->backend->compile_own(device);
    return NULL;
}

// The guess once more, which is the first item, as the file that is kept of it.
static void *compile_file(void *argument)
{
    const struct compiling *compiling = argument;
    const struct kg_search *terms = compiling->terms;
    struct kg_text source = {0};
    struct kg_binary binary;
    kg_flow_compile_file(terms->problem, terms->device, &compiling->items[0].choice, &source,
                         &binary, NULL);
    kg_binary_free(&binary);
    kg_text_free(&source);
    return NULL;
}

// NULL where nothing is compiled ahead.
static struct compiling *start_compiling(const struct kg_place *place, const struct kg_ahead *ahead)
{
    struct kg_device *device = place->terms.device;
    if (!ahead || device->backend->shares_memory)
        return NULL;
    struct compiling *compiling = calloc(1, sizeof *compiling);
    if (!compiling)
        return NULL;
    compiling->terms = &place->terms;
    compiling->has_own = device->backend->compile_own &&
                         pthread_create(&compiling->own, NULL, compile_own, device) == 0;
    list_ahead(place, ahead, compiling);
    compiling->has_thread =
        pthread_create(&compiling->thread, NULL, compile_listed, compiling) == 0;
    compiling->has_file = ahead->files && compiling->count > 0 &&
                          place->terms.target == KG_TARGET_CUDA &&
                          pthread_create(&compiling->file, NULL, compile_file, compiling) == 0;
    return compiling;
}

static void await_compiling(struct compiling *compiling)
{
    double start = kg_times_now(), work = 0;
    if (!compiling)
        return;
    if (compiling->has_thread)
        pthread_join(compiling->thread, NULL);
    if (compiling->has_own)
        pthread_join(compiling->own, NULL);
    if (compiling->has_file)
        pthread_join(compiling->file, NULL);
    for (int i = 0; i < compiling->count; i++) {
        work += compiling->items[i].built ? compiling->items[i].built->compile_work : 0;
        kg_built_free(compiling->items[i].built); // it is in the cache
    }
    kg_times_add(compiling->terms->times, KG_ACTIVITY_COMPILE, kg_times_now() - start, work);
    free(compiling);
}

static struct kg_search terms_of(struct kg_session *session, const struct kg_place *place,
                                 const struct kg_problem *problem, struct kg_device *device)
{
    return (struct kg_search){
        .device = device,
        .problem = problem,
        .counterpart = place->counterpart,
        .target = kg_session_target(device),
        .protocol = session->protocol,
        .cancel = session->cancel,
        .times = &session->times,
    };
}

enum kg_status kg_place_stay(struct kg_place *place, struct kg_error *error)
{
    const struct kg_search *terms = &place->terms;
    enum kg_status status = KG_OK;
    place->is_elsewhere = false;
    if (place->judged)
        status = kg_flow_gate(place->session, terms->problem, terms->device, 0,
                              place->counterpart != NULL, &place->gate, error);
    place->terms.gate = place->gate;
    if (status)
        return status;
    kg_session_warn(place->session, terms->device);
    return kg_judge_make(terms, &place->judge, error);
}

enum kg_status kg_place_open(struct kg_session *session, const struct kg_problem *problem,
                             struct kg_device *device, bool judged, const struct kg_ahead *ahead,
                             struct kg_place **out, struct kg_error *error)
{
    *out = NULL;
    struct kg_place *place = calloc(1, sizeof *place);
    if (!place)
        return kg_error_memory(error, "a place for kernels");
    place->session = session;
    enum kg_status status =
        judged ? kg_flow_counterpart(problem, &place->counterpart, error) : KG_OK;
    if (status) {
        kg_place_close(place);
        return status;
    }
    place->terms = terms_of(session, place, problem, device);
    place->judged = judged;
    place->is_elsewhere = kg_errand_is_wanted(device);
    struct compiling *compiling = place->is_elsewhere ? NULL : start_compiling(place, ahead);
    if (!place->is_elsewhere)
        status = kg_place_stay(place, error);
    await_compiling(compiling);
    if (status) {
        kg_place_close(place);
        return status;
    }
    *out = place;
    return KG_OK;
}

enum kg_status kg_place_verify(struct kg_place *place, const struct kg_plan *plan,
                               struct kg_verdict *verdict, struct kg_error *error)
{
    struct kg_built built = *plan->built; // what others may use stays as it is
    enum kg_status status = KG_OK;
    *verdict = (struct kg_verdict){0};
    if (place->is_elsewhere) {
        status = plan->override ? KG_ERROR_MISSING : kg_errand_verify(plan, 0, verdict, error);
        if (status != KG_ERROR_MISSING)
            return status;
        status = kg_place_stay(place, error);
        if (status)
            return status;
    }
    if (place->counterpart && !plan->override)
        status = kg_flow_build_counterpart(plan, place->counterpart, &built.counterpart, error);
    if (!status)
        status = kg_judge_verify(place->judge, &built, JUDGE_SECONDS, verdict, error);
    kg_built_free(built.counterpart);
    return status;
}
