// The one place of a build: see place.h.

#include "flow/place.h"

#include "tune/compiling.h"

#include <stdlib.h>

#define COMPILE_SECONDS 120.0 // for one kernel; a compiler that needs more is hung
#define JUDGE_SECONDS 120.0   // one kernel on all cases; more is a hang

enum kg_status kg_place_open(struct kg_session *session, const struct kg_problem *problem,
                             struct kg_device *device, bool judged, struct kg_place **out,
                             struct kg_error *error)
{
    *out = NULL;
    struct kg_place *place = calloc(1, sizeof *place);
    if (!place)
        return kg_error_memory(error, "a place for kernels");
    place->session = session;
    enum kg_status status =
        judged ? kg_flow_counterpart(problem, &place->counterpart, error) : KG_OK;
    if (!status && judged)
        status = kg_flow_gate(session, problem, device, 0, place->counterpart != NULL, &place->gate,
                              error);
    place->terms = (struct kg_search){
        .device = device,
        .problem = problem,
        .counterpart = place->counterpart,
        .target = kg_session_target(device),
        .gate = place->gate,
        .protocol = session->protocol,
        .cancel = session->cancel,
        .times = &session->times,
    };
    if (!status) {
        kg_session_warn(session, device);
        status = kg_judge_make(&place->terms, &place->judge, error);
    }
    if (status) {
        kg_place_close(place);
        return status;
    }
    *out = place;
    return KG_OK;
}

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

void kg_place_compile(struct kg_place *place, const struct kg_key *key, enum kg_rigor rigor,
                      bool build)
{
    const struct kg_search *terms = &place->terms;
    if (terms->device->backend->shares_memory)
        return;
    bool searches = rigor != KG_RIGOR_ESTIMATE && rigor != KG_RIGOR_WISDOM;
    struct kg_choice *choices = calloc(KG_MOST_FORESEEN, sizeof *choices);
    struct kg_compilation *items = calloc(KG_MOST_FORESEEN + 2, sizeof *items);
    if (choices && items) { // else each is compiled when its turn comes
        int foreseen = kg_search_foresee(terms, choices), count = 0;
        if (!searches || is_known(place, key, &choices[0]))
            foreseen = 1;
        for (int i = 0; i < foreseen; i++)
            add(items, &count, terms->problem, &choices[i]);
        if (build)
            add_companions(place, &choices[0], items, &count);
        kg_compile_all(terms->device, items, count, COMPILE_SECONDS, false, terms->cancel,
                       terms->times);
        for (int i = 0; i < count; i++)
            kg_built_free(items[i].built);
    }
    free(choices);
    free(items);
}

enum kg_status kg_place_verify(struct kg_place *place, const struct kg_plan *plan,
                               struct kg_verdict *verdict, struct kg_error *error)
{
    struct kg_built built = *plan->built; // what others may use stays as it is
    enum kg_status status = KG_OK;
    *verdict = (struct kg_verdict){0};
    if (place->counterpart && !plan->override)
        status = kg_flow_build_counterpart(plan, place->counterpart, &built.counterpart, error);
    if (!status)
        status = kg_judge_verify(place->judge, &built, JUDGE_SECONDS, verdict, error);
    kg_built_free(built.counterpart);
    return status;
}
