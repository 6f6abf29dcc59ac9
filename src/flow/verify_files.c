// See verify_files.h. Files are compiled on all cores, a batch at a time; then the gate judges one
// after the other, each in a process of its own. The gate is made when the first file needs it.

#include "flow/verify_files.h"

#include "flow/foreign_batch.h"
#include "flow/sanitize.h"
#include "flow/worker_job.h"

#include <stdio.h>
#include <stdlib.h>

#define BATCH 64 // files that are compiled before the first of them is judged

struct verification {
    const struct kg_request *request;
    struct kg_foreign_gates gates; // its seed: 0, none yet
    kg_file_judged *judged;
    void *user;
};

// The log marks it by its name. A verdict is not a measurement.
static enum kg_status record(const struct kg_request *request, const char *path,
                             const struct kg_verdict *verdict, struct kg_error *error)
{
    struct kg_session *session = request->session;
    struct kg_session_key key;
    enum kg_status status =
        kg_session_key_make(request->problem, request->device, &session->protocol, &key, error);
    if (status)
        return status;
    struct kg_text choice = {0}, result = {0};
    kg_text_format(&choice, "foreign: %s", path);
    kg_text_format(&result, "%s: %d cases, seed %llu%s%s", verdict->passed ? "passed" : "refused",
                   verdict->cases, (unsigned long long)verdict->seed, verdict->passed ? "" : "; ",
                   verdict->passed ? "" : verdict->reason);
    struct kg_round round = {.diagnosis = "a kernel from outside",
                             .change = "verified",
                             .choice = kg_text_string(&choice),
                             .result = kg_text_string(&result)};
    status = kg_store_round(session->store, &key.key, &round, error);
    status = kg_session_recorded(session, status, error);
    kg_text_free(&choice);
    kg_text_free(&result);
    kg_session_key_free(&key);
    return status;
}

// Tells of a file. KG_ERROR_CANCELLED: it was not judged, and no other is to be.
static enum kg_status conclude(struct verification *verification, int index, const char *path,
                               enum kg_status status, struct kg_verdict *verdict,
                               struct kg_error *own, struct kg_error *error)
{
    if (!status)
        status = kg_flow_sanitize(verification->request, NULL, path, verdict, own);
    if (status == KG_ERROR_CANCELLED)
        return kg_error_set(error, status, "%s", own->text);
    if (!status)
        verification->gates.seed = verdict->seed; // of those that follow, whatever judges them
    verification->judged(verification->user, index, status, verdict, own);
    return KG_OK;
}

static enum kg_status judge(struct verification *verification, int index,
                            struct kg_foreign_file *file, struct kg_error *error)
{
    const struct kg_request *request = verification->request;
    struct kg_verdict verdict = {0};
    enum kg_status status = file->status;
    if (!status) {
        struct kg_gate *gate;
        enum kg_status made =
            kg_foreign_gate(request, &verification->gates, file->foreign, &gate, error);
        if (made)
            return made;
        status = kg_foreign_judge(request, file->foreign, gate, &verdict, &file->error);
    }
    if (!status && !request->session->exercises)
        status = record(request, file->path, &verdict, &file->error);
    return conclude(verification, index, file->path, status, &verdict, &file->error, error);
}

// The files `first` to `first + count - 1`.
static enum kg_status verify_here(struct verification *verification, const char *const *paths,
                                  int first, int count, struct kg_error *error)
{
    struct kg_foreign_file *files = calloc((size_t)count + 1, sizeof *files);
    if (!files)
        return kg_error_memory(error, "kernels from outside");
    for (int i = 0; i < count; i++)
        files[i].path = paths[first + i];
    kg_foreign_open_all(verification->request, files, count);
    enum kg_status status = KG_OK;
    for (int i = 0; i < count; i++) {
        if (!status)
            status = judge(verification, first + i, &files[i], error);
        kg_foreign_close(files[i].foreign);
    }
    free(files);
    return status;
}

// In a program for each file, or here if that cannot be used.
static enum kg_status verify_by_program(struct verification *verification, const char *const *paths,
                                        int index, struct kg_error *error)
{
    struct kg_verdict verdict;
    struct kg_error own = {0};
    enum kg_status status = kg_worker_job_verify_file(verification->request, paths[index],
                                                      verification->gates.seed, &verdict, &own);
    if (status == KG_ERROR_MISSING)
        return verify_here(verification, paths, index, 1, error);
    return conclude(verification, index, paths[index], status, &verdict, &own, error);
}

enum kg_status kg_flow_verify_files(const struct kg_request *request, const char *const *paths,
                                    int count, uint64_t seed, kg_file_judged *judged, void *user,
                                    struct kg_error *error)
{
    struct verification verification = {
        .request = request, .gates = {.seed = seed}, .judged = judged, .user = user};
    enum kg_status status = KG_OK;
    kg_session_tell_missing(request->session);
    bool apart = kg_worker_job_is_wanted(request->device);
    for (int done = 0, some; done < count && !status; done += some) {
        some = apart ? 1 : count - done < BATCH ? count - done : BATCH;
        status = apart ? verify_by_program(&verification, paths, done, error)
                       : verify_here(&verification, paths, done, some, error);
    }
    kg_foreign_gates_free(&verification.gates);
    return status;
}

struct single {
    enum kg_status status;
    struct kg_verdict *verdict;
    struct kg_error *error;
};

static void take_single(void *user, int index, enum kg_status status,
                        const struct kg_verdict *verdict, const struct kg_error *error)
{
    struct single *single = user;
    (void)index;
    *single->verdict = *verdict;
    single->status = status ? kg_error_set(single->error, status, "%s", error->text) : KG_OK;
}

enum kg_status kg_flow_verify_file(const struct kg_request *request, const char *path,
                                   uint64_t seed, struct kg_verdict *verdict,
                                   struct kg_error *error)
{
    struct single single = {KG_OK, verdict, error};
    *verdict = (struct kg_verdict){0};
    enum kg_status status =
        kg_flow_verify_files(request, &path, 1, seed, take_single, &single, error);
    return status ? status : single.status;
}
