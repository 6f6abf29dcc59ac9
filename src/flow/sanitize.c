// See sanitize.h.

#include "flow/sanitize.h"

#include "base/files.h"
#include "base/printable.h"
#include "device/objects.h"
#include "device/process.h"
#include "device/sanitizer.h"
#include "flow/worker_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A kernel under a tool takes up to some hundred times as long.
#define EFFORT 0.05
#define SECONDS 900.0
#define MAX_LOG ((size_t)256 << 10)
#define MAX_ANSWER ((size_t)1 << 20)

struct sanitizing {
    const struct kg_request *request;
    struct kg_worker_job job;
    char *program, *folder;
    struct kg_text order, answer; // paths of the files
    struct kg_verdict *verdict;
};

static enum kg_status prepare(struct sanitizing *sanitizing, struct kg_error *error)
{
    struct kg_text bytes = {0};
    sanitizing->program = kg_worker_job_program();
    if (!sanitizing->program)
        return kg_error_set(error, KG_ERROR_MISSING,
                            "there is no kernelgen-worker to run kernels under sanitizers; it is "
                            "looked for beside the library and in libexec");
    sanitizing->folder = kg_objects_folder_make(sanitizing->request->device->cache);
    if (!sanitizing->folder)
        return kg_error_set(error, KG_ERROR_IO, "no folder can be made in %s",
                            sanitizing->request->device->cache);
    kg_text_format(&sanitizing->order, "%s/job", sanitizing->folder);
    kg_text_format(&sanitizing->answer, "%s/answer", sanitizing->folder);
    bool written = kg_worker_job_write(&sanitizing->job, sanitizing->request->problem, &bytes);
    enum kg_status status =
        !written || sanitizing->order.failed || sanitizing->answer.failed
            ? kg_error_memory(error, "a worker's job")
            : kg_files_publish(sanitizing->order.data, bytes.data, bytes.length, error);
    kg_text_free(&bytes);
    return status;
}

static void finish(struct sanitizing *sanitizing)
{
    if (sanitizing->folder)
        kg_objects_folder_remove(sanitizing->folder);
    kg_text_free(&sanitizing->order);
    kg_text_free(&sanitizing->answer);
    free(sanitizing->program);
    free(sanitizing->folder);
}

// Runs the program under a tool. Both print to `log`.
static enum kg_status run(struct sanitizing *sanitizing, const struct kg_sanitizer *tool,
                          struct kg_text *log, struct kg_process_end *end, struct kg_error *error)
{
    struct kg_sanitizer_command command = {.count = 0};
    struct kg_device *device = sanitizing->request->device;
    const char *const words[] = {sanitizing->program, sanitizing->order.data,
                                 sanitizing->answer.data};
    enum kg_status status = tool->command(device, tool->name, &command, error);
    for (size_t i = 0; i < sizeof words / sizeof words[0] && !status; i++)
        status = kg_sanitizer_add(&command, error, "%s", words[i]);
    if (!status) {
        const char *arguments[KG_SANITIZER_WORDS + 1] = {NULL};
        memcpy(arguments, command.words, (size_t)command.count * sizeof arguments[0]);
        status = kg_process_run(arguments, NULL, SECONDS, sanitizing->request->session->cancel,
                                MAX_LOG, log, end, error);
    }
    kg_sanitizer_command_free(&command);
    return status;
}

// What the program says: its failure, or the verdict of its runs.
static enum kg_status read_answer(const struct sanitizing *sanitizing, struct kg_verdict *runs,
                                  struct kg_error *error)
{
    char *bytes = NULL;
    size_t length = 0;
    struct kg_error told;
    struct kg_worker_job_head head;
    enum kg_status status =
        kg_files_read(sanitizing->answer.data, MAX_ANSWER, &bytes, &length, error);
    if (!status && length >= sizeof told) {
        memcpy(&told, bytes, sizeof told);
        told.text[sizeof told.text - 1] = '\0';
        if (told.status)
            status = kg_error_set(error, told.status, "%s", told.text);
    }
    if (!status && length != sizeof told + sizeof head + sizeof *runs)
        status = kg_error_set(error, KG_ERROR_FAULT, "the program's answer makes no sense");
    if (!status) {
        memcpy(runs, bytes + sizeof told + sizeof head, sizeof *runs);
        runs->reason[sizeof runs->reason - 1] = '\0';
    }
    free(bytes);
    return status;
}

static const char *first_words(struct kg_text *log)
{
    kg_text_cut(log, 600);
    kg_printable_text(log->data, log->length);
    return kg_text_string(log);
}

static void refuse(struct kg_verdict *verdict, const char *tool, const char *finding,
                   const char *runs)
{
    verdict->passed = false;
    snprintf(verdict->reason, sizeof verdict->reason, "%s: %.400s%s%.400s", tool, finding,
             finding[0] && runs[0] ? "; " : "", runs);
    kg_printable_text(verdict->reason, strlen(verdict->reason));
}

static void approve(struct kg_verdict *verdict, const char *tool, int cases)
{
    size_t used = strlen(verdict->sanitized);
    snprintf(verdict->sanitized + used, sizeof verdict->sanitized - used, "%s%s (%d cases)",
             used ? ", " : "", tool, cases);
}

static enum kg_status apply(struct sanitizing *sanitizing, const struct kg_sanitizer *tool,
                            struct kg_error *error)
{
    struct kg_text log = {0};
    struct kg_process_end end;
    struct kg_verdict runs = {.passed = false};
    struct kg_error own = {0};
    char finding[512] = "";
    enum kg_status status = run(sanitizing, tool, &log, &end, error);
    bool ended = !status && tool->read(kg_text_string(&log), finding, sizeof finding);
    enum kg_status answered = status ? status : read_answer(sanitizing, &runs, &own);
    if (ended && (finding[0] || (!answered && !runs.passed)))
        refuse(sanitizing->verdict, tool->name, finding, runs.reason);
    else if (!status && (answered || !ended))
        status = kg_error_set(error, answered ? answered : KG_ERROR_FAULT,
                              "the kernel could not be run under %s: %s%s%s", tool->name,
                              answered ? own.text : "the tool gave no result",
                              log.length ? "; it printed:\n" : "", first_words(&log));
    else if (!status)
        approve(sanitizing->verdict, tool->name, runs.cases);
    remove(sanitizing->answer.data);
    kg_text_free(&log);
    return status;
}

enum kg_status kg_flow_sanitize(const struct kg_request *request, const char *choice,
                                const char *path, struct kg_verdict *verdict,
                                struct kg_error *error)
{
    const struct kg_sanitizer *tools = request->device->backend->sanitizers;
    struct kg_session *session = request->session;
    if (!session->sanitizes || !verdict->passed)
        return KG_OK;
    struct sanitizing sanitizing = {
        .request = request,
        .verdict = verdict,
        .job = {.kind = path ? KG_WORKER_JOB_VERIFY_FILE : KG_WORKER_JOB_VERIFY,
                .exercises = true,
                .seed = verdict->seed,
                .protocol = session->protocol,
                .effort = EFFORT * (session->effort > 0 ? session->effort : 1),
                .device = request->device->name,
                .cache = request->device->cache,
                .choice = choice,
                .path = path},
    };
    enum kg_status status = prepare(&sanitizing, error);
    int count = 0, done = 0;
    while (tools[count].name)
        count++;
    for (; done < count && !status && verdict->passed; done++) {
        if (session->progress)
            session->progress(session->user, tools[done].name, done + 1, count);
        status = apply(&sanitizing, &tools[done], error);
    }
    finish(&sanitizing);
    return status;
}
