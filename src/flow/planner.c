// A problem becomes a plan: what is known is used, what is not is searched for, and what is chosen
// is compiled, loaded and remembered.

#include "flow/planner.h"

#include "flow/evaluator.h"
#include "flow/foreign.h"
#include "flow/recall.h"
#include "flow/replaying.h"
#include "flow/small.h"
#include "flow/worker_job.h"
#include "flow/workspaces.h"
#include "gen/standalone.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define COMPILE_SECONDS 120.0 // for one kernel; a compiler that needs more is hung

static struct kg_plan *new_plan(struct kg_session *session, const struct kg_problem *problem,
                                struct kg_device *device, const struct kg_choice *choice)
{
    struct kg_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return NULL;
    plan->session = session;
    plan->problem = problem;
    plan->device = device;
    struct kg_text text = {0};
    kg_choice_print(choice, &text);
    plan->choice = text.data;
    if (!text.failed && text.data)
        return plan;
    kg_flow_plan_free(plan);
    return NULL;
}

// The last step of making one: `status` is how its kernels were come by.
static enum kg_status finish_plan(struct kg_plan *plan, enum kg_status status, struct kg_plan **out,
                                  struct kg_error *error)
{
    bool runs = !plan->session->writes;
    if (status == KG_OK && runs)
        status = kg_prepared_make(plan->built, plan->problem, &plan->prepared, error);
    if (status == KG_OK && runs) {
        plan->workspaces =
            kg_workspaces_create(plan->device, kg_prepared_workspace(plan->prepared));
        if (!plan->workspaces)
            status = kg_error_memory(error, "a plan's workspace");
        plan->replay = kg_replay_create(plan->device, plan->problem, plan->prepared);
    }
    if (status != KG_OK) {
        kg_flow_plan_free(plan);
        return status;
    }
    *out = plan;
    return KG_OK;
}

enum kg_status kg_flow_plan_of(struct kg_session *session, const struct kg_problem *problem,
                               struct kg_device *device, const struct kg_choice *choice,
                               struct kg_plan **out, struct kg_error *error)
{
    *out = NULL;
    struct kg_plan *plan = new_plan(session, problem, device, choice);
    if (!plan)
        return kg_error_memory(error, "a plan");
    if (session->writes)
        return finish_plan(plan, kg_built_bare(device, problem, choice, &plan->built, error), out,
                           error);
    double start = kg_times_now();
    enum kg_status status =
        kg_built_make_soon(device, problem, choice, COMPILE_SECONDS, &plan->built, error);
    kg_times_since(&session->times, KG_ACTIVITY_COMPILE, start);
    kg_session_tell_of_cache(session, device);
    return finish_plan(plan, status, out, error);
}

static void free_override(struct kg_override *override)
{
    if (!override)
        return;
    kg_flow_plan_free(override->original);
    free(override->path);
    free(override->text);
    free(override);
}

// Takes the path and the text along.
static enum kg_status keep_override(struct kg_plan *plan, const char *path, char *text,
                                    struct kg_error *error)
{
    struct kg_override *override = plan->override = calloc(1, sizeof *override);
    if (override)
        override->path = strdup(path);
    if (!override || !override->path) {
        free(text);
        return kg_error_memory(error, "a plan");
    }
    override->text = text;
    override->hash = kg_hash_bytes(text, strlen(text));
    return kg_flow_plan_of(plan->session, plan->problem, plan->device, &plan->built->choice,
                           &override->original, error);
}

enum kg_status kg_flow_override(const struct kg_plan *plan, const char *path, struct kg_plan **out,
                                struct kg_error *error)
{
    *out = NULL;
    struct kg_built *built;
    char *text;
    enum kg_status status =
        kg_foreign_adopt(plan->problem, plan->device, path, plan->choice, &built, &text, error);
    if (status != KG_OK)
        return status;
    struct kg_plan *overridden =
        new_plan(plan->session, plan->problem, plan->device, &built->choice);
    if (!overridden) {
        kg_built_free(built);
        free(text);
        return kg_error_memory(error, "a plan");
    }
    overridden->built = built;
    status = keep_override(overridden, path, text, error);
    return finish_plan(overridden, status, out, error);
}

void kg_flow_plan_free(struct kg_plan *plan)
{
    if (!plan)
        return;
    kg_replay_destroy(plan->replay); // before the kernels are unloaded
    kg_workspaces_destroy(plan->workspaces);
    kg_prepared_free(plan->prepared);
    kg_built_free(plan->built);
    kg_nearest_free(&plan->nearest);
    free_override(plan->override);
    free(plan->choice);
    free(plan);
}

enum kg_status kg_flow_execute(const struct kg_plan *plan, void *const *tensors, void *stream,
                               struct kg_error *error)
{
    void *workspace;
    enum kg_status status = kg_workspaces_take(plan->workspaces, stream, &workspace, error);
    if (status != KG_OK)
        return status;
    if (!plan->replay || !kg_replay_run(plan->replay, tensors, workspace, stream, &status, error))
        status = kg_prepared_run(plan->prepared, tensors, workspace, stream, error);
    kg_workspaces_return(plan->workspaces, stream, workspace);
    return status;
}

bool kg_flow_source(const struct kg_plan *plan, struct kg_text *text)
{
    const struct kg_choice *choice = &plan->built->choice;
    const struct kg_device_facts *facts = &plan->device->facts;
    return kg_session_target(plan->device) == &kg_target_cuda
               ? kg_gen_standalone_cuda(plan->problem, choice, facts, text)
               : kg_gen_standalone_host(plan->problem, choice, facts, text);
}

// The comments at the top of a source: what it says of its launches.
static size_t heading_length(const char *source)
{
    size_t length = 0;
    while (strncmp(source + length, "//", 2) == 0)
        length += strcspn(source + length, "\n") + 1;
    return length;
}

enum kg_status kg_flow_compile_file(const struct kg_problem *problem, struct kg_device *device,
                                    const struct kg_choice *choice, struct kg_text *source,
                                    struct kg_binary *binary, struct kg_error *error)
{
    *binary = (struct kg_binary){0};
    if (!kg_gen_standalone_cuda(problem, choice, &device->facts, source) || source->failed)
        return kg_error_memory(error, "the source of a plan");
    struct kg_source all = {.text = source->data, .entry = "", .options = ""};
    return device->backend->compile(device, &all, COMPILE_SECONDS, binary, error);
}

enum kg_status kg_flow_assembly(const struct kg_plan *plan, struct kg_text *text,
                                struct kg_error *error)
{
    struct kg_text source = {0};
    struct kg_binary binary;
    struct kg_device *device = plan->device;
    if (kg_session_target(device) != &kg_target_cuda)
        return kg_error_set(error, KG_ERROR_UNSUPPORTED, "there is no PTX of kernels for %s",
                            device->backend->name);
    if (plan->override) {
        kg_text_add(text, plan->override->text);
        return text->failed ? kg_error_memory(error, "the PTX of a plan") : KG_OK;
    }
    double start = kg_times_now();
    enum kg_status status =
        kg_flow_compile_file(plan->problem, device, &plan->built->choice, &source, &binary, error);
    kg_times_since(&plan->session->times, KG_ACTIVITY_COMPILE, start);
    if (!status) {
        kg_text_add_bytes(text, source.data, heading_length(source.data));
        kg_text_add(text, binary.ptx);
        status = text->failed ? kg_error_memory(error, "the PTX of a plan") : KG_OK;
    }
    kg_binary_free(&binary);
    kg_text_free(&source);
    return status;
}

// The search's callbacks: outcomes go to the store the moment they are known, and come back from
// it when an earlier search was cut short.
struct recorder {
    struct kg_session *session;
    const struct kg_key *key;
    struct kg_error error; // a lack of memory
};

static bool find_known(void *user, const char *choice, struct kg_outcome *outcome)
{
    struct recorder *recorder = user;
    bool found = false;
    struct kg_error error = {0};
    return kg_store_find(recorder->session->store, recorder->key, choice, outcome, &found,
                         &error) == KG_OK &&
           found;
}

static void record_outcome(void *user, const struct kg_outcome *outcome)
{
    struct recorder *recorder = user;
    struct kg_error error = {0};
    enum kg_status status =
        kg_store_append(recorder->session->store, recorder->key, outcome, &error);
    if (kg_session_recorded(recorder->session, status, &error))
        recorder->error = error;
}

static void show_progress(void *user, int done, int total, const char *what)
{
    struct recorder *recorder = user;
    if (recorder->session->progress)
        recorder->session->progress(recorder->session->user, what, done, total);
}

static void format_date(char out[32])
{
    time_t now = time(NULL);
    struct tm parts;
    gmtime_r(&now, &parts);
    strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &parts);
}

static enum kg_status learn(struct recorder *recorder, const struct kg_plan *plan, uint64_t seed,
                            struct kg_error *error)
{
    char date[32];
    format_date(date);
    struct kg_wisdom wisdom = {
        .choice = plan->choice,
        .rigor = plan->rigor,
        .seconds = plan->seconds,
        .spread = plan->spread,
        .seed = seed,
        .date = date,
    };
    enum kg_status status = kg_store_learn(recorder->session->store, recorder->key, &wisdom, error);
    return kg_session_recorded(recorder->session, status, error);
}

static enum kg_status plan_by_search(struct kg_session *session, const struct kg_key *key,
                                     const struct kg_problem *problem, struct kg_device *device,
                                     enum kg_rigor rigor, double seconds, const char *const *hints,
                                     int hint_count, struct kg_evaluator *evaluator,
                                     struct kg_plan **plan, struct kg_error *error)
{
    struct kg_evaluator *own = NULL;
    if (!evaluator) {
        struct kg_ahead ahead = {key, rigor, false, false};
        enum kg_status opened =
            kg_evaluator_open(session, problem, device, true, &ahead, &own, error);
        if (opened != KG_OK)
            return opened;
        evaluator = own;
    }
    if (evaluator->is_elsewhere) { // where it could not be done
        enum kg_status stays = kg_evaluator_stay(evaluator, error);
        if (stays != KG_OK) {
            kg_evaluator_close(own);
            return stays;
        }
    }
    struct recorder recorder = {.session = session, .key = key};
    struct kg_search search = evaluator->terms;
    search.judge = evaluator->judge;
    search.rigor = rigor;
    search.seconds = seconds;
    search.hints = hints;
    search.hint_count = hint_count;
    search.user = &recorder;
    search.known = find_known;
    search.record = record_outcome;
    search.progress = show_progress;
    struct kg_found found = {0};
    enum kg_status status = kg_search_run(&search, &found, error);
    kg_evaluator_close(own);
    if (status == KG_ERROR_CANCELLED && found.measured > 0)
        status = KG_OK;
    if (status == KG_OK)
        status = kg_flow_plan_of(session, problem, device, &found.choice, plan, error);
    if (status != KG_OK)
        return status;
    (*plan)->found = found;
    (*plan)->seconds = found.seconds;
    (*plan)->spread = found.spread;
    (*plan)->verified = true;
    (*plan)->origin = KG_ORIGIN_SEARCH;
    // A search cut short knows what it measured, not what its rigor promises.
    (*plan)->rigor = found.complete ? rigor : KG_RIGOR_ESTIMATE;
    if (found.seconds > 0) // else time was up before anything was measured
        status = learn(&recorder, *plan, 0, error);
    if (status == KG_OK && recorder.error.status != KG_OK) {
        if (error)
            *error = recorder.error;
        status = recorder.error.status;
    }
    if (status != KG_OK) {
        kg_flow_plan_free(*plan);
        *plan = NULL;
    }
    return status;
}

// Searches in a program where no fork can. KG_ERROR_MISSING: it cannot either.
static enum kg_status plan_by_worker(struct kg_session *session, const struct kg_problem *problem,
                                     struct kg_device *device, enum kg_rigor rigor, double seconds,
                                     const char *hint, struct kg_plan **plan,
                                     struct kg_error *error)
{
    char *text;
    struct kg_found found;
    struct kg_choice choice;
    enum kg_rigor reached;
    show_progress(&(struct recorder){.session = session}, 0, 1, "searching in another process");
    enum kg_status status = kg_worker_job_plan(session, problem, device, rigor, seconds, hint,
                                               &text, &found, &reached, error);
    if (status)
        return status;
    if (!kg_choice_read(problem, &device->facts, kg_session_target(device), text, &choice))
        status = kg_error_set(error, KG_ERROR_FAULT, "the worker's choice '%s' does not fit", text);
    else
        status = kg_flow_plan_of(session, problem, device, &choice, plan, error);
    if (!status) {
        (*plan)->found = found;
        (*plan)->found.choice = choice;
        (*plan)->seconds = found.seconds;
        (*plan)->spread = found.spread;
        (*plan)->rigor = reached;
        (*plan)->verified = true;
        (*plan)->origin = KG_ORIGIN_SEARCH;
    }
    free(text);
    return status;
}

static enum kg_status plan_by_rule(struct kg_session *session, const struct kg_problem *problem,
                                   struct kg_device *device, struct kg_plan **plan,
                                   struct kg_error *error)
{
    struct kg_choice choice;
    kg_choice_guess(problem, &device->facts, kg_session_target(device), &choice);
    return kg_flow_plan_of(session, problem, device, &choice, plan, error);
}

static enum kg_status plan_with_key(struct kg_session *session, const struct kg_key *key,
                                    const struct kg_problem *problem, struct kg_device *device,
                                    enum kg_rigor rigor, double seconds, const char *hint,
                                    struct kg_evaluator *evaluator, struct kg_plan **plan,
                                    struct kg_error *error)
{
    struct kg_recalled recalled;
    enum kg_status status =
        kg_flow_recall(session, key, problem, device, rigor, &recalled, plan, error);
    if (status == KG_ERROR_NO_WISDOM && rigor == KG_RIGOR_ESTIMATE) {
        status = plan_by_rule(session, problem, device, plan, error);
    } else if (status == KG_ERROR_NO_WISDOM && rigor != KG_RIGOR_WISDOM) {
        const char *all[] = {hint, recalled.lesser[0], recalled.lesser[1], recalled.nearest.choice};
        const char *hints[4];
        int count = 0;
        for (int i = 0; i < 4; i++)
            if (all[i])
                hints[count++] = all[i];
        status = KG_ERROR_MISSING;
        if (evaluator ? evaluator->is_elsewhere : kg_worker_job_is_wanted(device))
            status = plan_by_worker(session, problem, device, rigor, seconds, hint, plan, error);
        if (status == KG_ERROR_MISSING)
            status = plan_by_search(session, key, problem, device, rigor, seconds, hints, count,
                                    evaluator, plan, error);
    }
    if (status == KG_OK) { // what was known of another shape stays with the plan, to be explained
        (*plan)->nearest = recalled.nearest;
        recalled.nearest = (struct kg_nearest){0};
    }
    kg_recalled_free(&recalled);
    return status;
}

enum kg_status kg_flow_plan(struct kg_session *session, const struct kg_problem *problem,
                            struct kg_device *device, enum kg_rigor rigor, double seconds,
                            const char *hint, struct kg_evaluator *evaluator, struct kg_plan **plan,
                            struct kg_error *error)
{
    *plan = NULL;
    rigor = kg_flow_rigor(problem, device, rigor);
    if (device->is_described && rigor != KG_RIGOR_ESTIMATE && rigor != KG_RIGOR_WISDOM) {
        kg_session_tell(session, "%s is not at hand: chosen by rule, and nothing was measured",
                        device->facts.isa);
        rigor = KG_RIGOR_ESTIMATE;
    }
    kg_session_tell_missing(session);
    struct kg_session_key key;
    enum kg_status status = kg_session_key_make(problem, device, &session->protocol, &key, error);
    if (status != KG_OK)
        return status;
    status = plan_with_key(session, &key.key, problem, device, rigor, seconds, hint, evaluator,
                           plan, error);
    kg_session_key_free(&key);
    if (status != KG_OK)
        return status;
    kg_error_clear(error);
    if ((*plan)->found.ended[0])
        kg_session_tell(session, "the search ended early, with the best of what was measured: %s",
                        (*plan)->found.ended);
    return KG_OK;
}
