// See contest.h. A batch of files is read and compiled on all cores; then each is judged in a
// process of its own and, if it passed, raced with the generated kernel and the baseline in
// another, so that whatever a file does costs nobody but itself. An outcome is recorded before the
// next file's turn, and an outcome on record is not measured again.

#include "flow/contest.h"

#include "base/printable.h"
#include "flow/binary_gist.h"
#include "flow/companions.h"
#include "flow/contest_parts.h"
#include "flow/proof.h"
#include "tune/test_rig.h"

#include <stdlib.h>
#include <string.h>

#define BATCH 32 // files that are in memory at once

static void skip(struct kg_contest_run *contest, struct kg_contestant *contestant,
                 const char *reason)
{
    contestant->state = KG_CONTESTANT_SKIPPED;
    contestant->reason = kg_contest_keep(contest, reason);
}

// The earlier file with the same bytes and kind; NULL: there is none.
static const struct kg_contestant *find_equal(const struct kg_contest_run *contest,
                                              const struct kg_contestant *contestant)
{
    for (const struct kg_contestant *other = contest->result.list; other < contestant; other++)
        if (other->hash.high == contestant->hash.high && other->hash.low == contestant->hash.low)
            return other;
    return NULL;
}

// Whether a file of this name can be a kernel for the device. A reason is noted otherwise.
static bool fits_device(struct kg_contest_run *contest, struct kg_contestant *contestant)
{
    const struct kg_device *device = contest->request.device;
    const struct kg_target *target;
    const char *what = kg_foreign_kind(contestant->name, &target);
    struct kg_text text = {0};
    if (what && target == kg_target_of(device))
        return true;
    if (what)
        kg_text_format(&text, "it is %s, and the device is %s", what,
                       device->backend->runs_grids ? device->facts.name : "the host");
    else
        kg_text_add(&text, "Python runs Triton kernels, and this program does not start it: "
                           "kernelgen.triton.write_candidate makes a .ptx file of one");
    skip(contest, contestant, kg_text_string(&text));
    kg_text_free(&text);
    return false;
}

// Reads one file and looks for its outcome. `entry->code` is set if it is to be compiled.
static enum kg_status take(struct kg_contest_run *contest, int index,
                           struct kg_contest_entry *entry, struct kg_error *error)
{
    struct kg_contestant *contestant = entry->contestant = &contest->result.list[index];
    struct kg_text path = {0};
    const char *why;
    bool found = false;
    contestant->name = contest->folder.names[index];
    kg_text_format(&path, "%s/%s", contest->result.folder, contestant->name);
    entry->path = kg_contest_keep(contest, kg_text_string(&path));
    kg_text_free(&path);
    if (!fits_device(contest, contestant))
        return kg_contest_check_memory(contest, error);
    size_t length;
    enum kg_status status = kg_candidate_read(entry->path, &entry->code, &length, &why, error);
    if (status)
        return status;
    if (why) {
        skip(contest, contestant, why);
        return kg_contest_check_memory(contest, error);
    }
    contestant->hash =
        kg_hash_chain_text(kg_hash_bytes(entry->code, length), strrchr(contestant->name, '.'));
    if (!contest->request.device->is_described)
        status = kg_contest_recall(contest, contestant, &found, error);
    entry->file =
        (struct kg_foreign_file){.path = entry->path, .code = entry->code, .length = length};
    if (found || find_equal(contest, contestant)) {
        free(entry->code);
        entry->code = NULL;
    }
    return status ? status : kg_contest_check_memory(contest, error);
}

// The outcome of an equal file stands for this one, too.
static void copy_equal(const struct kg_contest_run *contest, struct kg_contestant *contestant)
{
    const struct kg_contestant *equal = find_equal(contest, contestant);
    const char *name = contestant->name;
    if (!equal || contestant->is_remembered || contestant->state == KG_CONTESTANT_SKIPPED)
        return;
    *contestant = *equal;
    contestant->name = name;
    contestant->same_as = equal->name;
}

static void show_progress(struct kg_contest_run *contest, int index)
{
    const struct kg_session *session = contest->request.session;
    struct kg_text name = {0};
    kg_turn_renew(&contest->turn);
    if (!session->progress)
        return;
    kg_text_add_printable(&name, contest->result.list[index].name);
    session->progress(session->user, kg_text_string(&name), index, contest->result.count);
    kg_text_free(&name);
}

// Compiles those entries of a batch that have code.
static enum kg_status compile(struct kg_contest_run *contest, struct kg_contest_entry *entries,
                              int count, struct kg_error *error)
{
    struct kg_foreign_file *files = calloc((size_t)count + 1, sizeof *files);
    int wanted = 0;
    if (!files)
        return kg_error_memory(error, "kernels from outside");
    for (int i = 0; i < count; i++)
        if (entries[i].code)
            files[wanted++] = entries[i].file;
    kg_foreign_open_all(&contest->request, files, wanted);
    wanted = 0;
    for (int i = 0; i < count; i++)
        if (entries[i].code)
            entries[i].file = files[wanted++];
    free(files);
    return KG_OK;
}

static enum kg_status run_batch(struct kg_contest_run *contest, int first, int count,
                                struct kg_contest_entry *entries, struct kg_error *error)
{
    enum kg_status status = KG_OK;
    for (int i = 0; i < count && !status; i++)
        status = take(contest, first + i, &entries[i], error);
    if (!status)
        status = compile(contest, entries, count, error);
    for (int i = 0; i < count && !status; i++) {
        show_progress(contest, first + i);
        if (kg_session_cancelled(contest->request.session))
            status = kg_error_set(error, KG_ERROR_CANCELLED, "the contest was cancelled");
        else if (entries[i].code)
            status = kg_contest_try(contest, &entries[i], error);
        else
            copy_equal(contest, entries[i].contestant);
        if (!status)
            status = kg_contest_check_memory(contest, error);
    }
    for (int i = 0; i < count; i++) {
        kg_foreign_close(entries[i].file.foreign);
        free(entries[i].code);
    }
    return status;
}

static enum kg_status run_all(struct kg_contest_run *contest, struct kg_error *error)
{
    enum kg_status status = KG_OK;
    struct kg_contest_entry *entries = calloc(BATCH, sizeof *entries);
    if (!entries)
        return kg_error_memory(error, "kernels from outside");
    for (int done = 0; done < contest->result.count && !status; done += BATCH) {
        int rest = contest->result.count - done;
        memset(entries, 0, BATCH * sizeof *entries);
        status = run_batch(contest, done, rest < BATCH ? rest : BATCH, entries, error);
    }
    free(entries);
    return status;
}

// The result, without the files.
static enum kg_status begin(struct kg_contest_run *contest, const char *folder,
                            struct kg_error *error)
{
    const struct kg_plan *plan = contest->plan;
    struct kg_choice baseline;
    struct kg_contest *result = &contest->result;
    *result = (struct kg_contest){
        .folder = folder,
        .op = contest->key.key.op,
        .sizes = contest->key.key.sizes,
        .dtypes = contest->key.key.dtypes,
        .device = plan->device->facts.name,
        .choice = plan->choice,
        .bound = kg_roofline_of(plan->problem, &plan->device->facts).seconds,
        .list = calloc((size_t)contest->folder.count, sizeof *result->list),
        .count = contest->folder.count,
        .left_out = contest->folder.left_out,
        .others = contest->folder.others,
    };
    kg_flow_choose_baseline(plan->device, plan->problem, &baseline);
    struct kg_hash beside = kg_proof_source(&baseline);
    contest->proof = kg_hash_chain(kg_proof_source(&plan->built->choice), &beside, sizeof beside);
    for (int i = 0; i < plan->built->choice.count; i++)
        kg_binary_gist(&plan->built->binaries[i], NULL, 0, &result->gist);
    return result->list ? KG_OK : kg_error_memory(error, "a list of files");
}

// No file was for this device.
static enum kg_status check_any(const struct kg_contest_run *contest, struct kg_error *error)
{
    const struct kg_contest *result = &contest->result;
    for (int i = 0; i < result->count; i++)
        if (result->list[i].state != KG_CONTESTANT_SKIPPED)
            return KG_OK;
    return kg_error_set(error, KG_ERROR_ARGUMENT, "%s holds no kernel that can be judged; %s: %s",
                        result->folder, result->list[0].name, result->list[0].reason);
}

static enum kg_status run(struct kg_contest_run *contest, bool json, struct kg_text *text,
                          int *unrun, struct kg_error *error)
{
    enum kg_status status =
        kg_turn_take(&contest->request, &contest->key.key, &contest->turn, error);
    if (status)
        return status;
    status = run_all(contest, error);
    kg_turn_end(&contest->turn);
    if (!status)
        status = check_any(contest, error);
    for (int i = 0; i < contest->result.count; i++)
        *unrun += contest->result.list[i].state == KG_CONTESTANT_UNRUN;
    return status ? status : kg_report_contest(&contest->result, json, text, error);
}

static void end(struct kg_contest_run *contest)
{
    kg_test_rig_free(contest->rig);
    kg_flow_plan_free(contest->baseline);
    kg_foreign_gates_free(&contest->gates);
    free(contest->result.list);
    kg_candidate_folder_free(&contest->folder);
    kg_session_key_free(&contest->key);
    kg_arena_free(&contest->arena);
}

enum kg_status kg_flow_contest_check(const struct kg_device *device, const char *folder,
                                     struct kg_error *error)
{
    struct kg_candidate_folder files;
    bool has_one = false;
    enum kg_status status = kg_candidate_folder_read(folder, &files, error);
    for (int i = 0; i < files.count && !status && !has_one; i++) {
        const struct kg_target *target;
        has_one = kg_foreign_kind(files.names[i], &target) && target == kg_target_of(device);
    }
    if (!status && !has_one)
        status = kg_error_set(error, KG_ERROR_ARGUMENT, "%s holds no kernel for %s: %s", folder,
                              device->backend->runs_grids ? device->facts.name : "the host",
                              device->backend->runs_grids ? "those are .cu and .ptx files"
                                                          : "those are .c files");
    kg_candidate_folder_free(&files);
    return status;
}

enum kg_status kg_flow_contest(const struct kg_plan *plan, const char *folder, bool json,
                               struct kg_text *text, int *unrun, struct kg_error *error)
{
    struct kg_contest_run contest = {.plan = plan, .request = kg_flow_request_of(plan)};
    struct kg_session *session = plan->session;
    *unrun = 0;
    if (plan->override)
        return kg_error_set(error, KG_ERROR_ARGUMENT,
                            "files compete with generated kernels, and %s runs in their place",
                            plan->override->path);
    kg_session_tell_missing(session);
    enum kg_status status = kg_candidate_folder_read(folder, &contest.folder, error);
    if (!status)
        status = kg_session_key_make(plan->problem, plan->device, &session->protocol, &contest.key,
                                     error);
    if (!status)
        status = begin(&contest, folder, error);
    if (!status)
        status = run(&contest, json, text, unrun, error);
    end(&contest);
    return status;
}
