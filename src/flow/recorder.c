// See recorder.h.

#include "flow/recorder.h"

#include <time.h>

static bool find_known(void *user, const char *choice, struct kg_outcome *outcome)
{
    struct kg_recorder *recorder = user;
    struct kg_store *store = recorder->request->session->store;
    bool found = false;
    return kg_store_find(store, recorder->key, choice, outcome, &found, NULL) == KG_OK && found;
}

static void record_outcome(void *user, const struct kg_outcome *outcome)
{
    struct kg_recorder *recorder = user;
    struct kg_session *session = recorder->request->session;
    struct kg_error error = {0};
    enum kg_status status = kg_store_append(session->store, recorder->key, outcome, &error);
    if (kg_session_recorded(session, status, &error))
        recorder->error = error;
}

static void show_progress(void *user, int done, int total, const char *what)
{
    struct kg_recorder *recorder = user;
    const struct kg_session *session = recorder->request->session;
    if (session->progress)
        session->progress(session->user, what, done, total);
}

void kg_recorder_attach(struct kg_recorder *recorder, struct kg_search *search)
{
    search->user = recorder;
    search->known = find_known;
    search->record = record_outcome;
    search->progress = show_progress;
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
        .date = date,
    };
    struct kg_session *session = recorder->request->session;
    enum kg_status status = kg_store_learn(session->store, recorder->key, &wisdom, error);
    return kg_session_recorded(session, status, error);
}
