// What becomes of one file of a contest: see contest.h.

#include "base/printable.h"
#include "flow/binary_gist.h"
#include "flow/companions.h"
#include "flow/contest_parts.h"
#include "flow/verify.h"
#include "store/foreign_outcomes.h"
#include "tune/test_rig.h"

#include <string.h>

// Of the baseline's time: two that are behind it are tied if they differ by less.
#define BEHIND_TIE 0.03

enum { RACER, REFERENCE, BASELINE, RACERS };

const char *kg_contest_keep(struct kg_contest_run *contest, const char *text)
{
    const char *copy = kg_arena_copy(&contest->arena, text, strlen(text));
    return copy ? copy : "";
}

enum kg_status kg_contest_check_memory(const struct kg_contest_run *contest, struct kg_error *error)
{
    return contest->arena.failed ? kg_error_memory(error, "what became of files") : KG_OK;
}

// Outcomes, and their records.

static void fail(struct kg_contest_run *contest, struct kg_contestant *contestant, const char *path,
                 enum kg_outcome_kind kind, const char *reason)
{
    size_t length = strlen(path);
    if (strncmp(reason, path, length) == 0 && strncmp(reason + length, ": ", 2) == 0)
        reason += length + 2; // the report names the file itself
    contestant->state = KG_CONTESTANT_FAILED;
    contestant->kind = kind;
    contestant->reason = kg_contest_keep(contest, reason);
}

// Takes what is known of a file, from the records or from an equal file.
static void remember(struct kg_contest_run *contest, struct kg_contestant *contestant,
                     const struct kg_foreign_outcome *outcome)
{
    bool measured = outcome->kind == KG_OUTCOME_MEASURED;
    contestant->state = measured ? KG_CONTESTANT_RANKED : KG_CONTESTANT_FAILED;
    contestant->kind = outcome->kind;
    contestant->reason = measured ? NULL : kg_contest_keep(contest, outcome->reason);
    contestant->cases = outcome->cases;
    contestant->seed = outcome->seed;
    contestant->timing = outcome->timing;
    contestant->reference = outcome->reference_timing;
    contestant->baseline = outcome->baseline_timing;
    contestant->standing = outcome->standing;
    contestant->gist = outcome->gist;
    contestant->is_remembered = true;
}

enum kg_status kg_contest_recall(struct kg_contest_run *contest, struct kg_contestant *contestant,
                                 bool *found, struct kg_error *error)
{
    struct kg_foreign_outcome outcome;
    enum kg_status status =
        kg_store_find_foreign(contest->request.session->store, &contest->key.key, contestant->hash,
                              contest->proof, &outcome, found, error);
    if (!status && *found)
        remember(contest, contestant, &outcome);
    return status == KG_ERROR_MEMORY ? status : KG_OK;
}

static void describe(const struct kg_contestant *contestant, struct kg_text *words)
{
    static const char *const standings[] = {"slower than", "as fast as", "faster than"};
    if (contestant->state != KG_CONTESTANT_RANKED) {
        kg_text_format(words, "%s: %s", kg_outcome_names[contestant->kind], contestant->reason);
        return;
    }
    kg_text_format(words, "passed: %d cases, seed %llu; ", contestant->cases,
                   (unsigned long long)contestant->seed);
    kg_text_seconds(words, contestant->timing.median);
    kg_text_format(words, ", %s the generated kernel (", standings[contestant->standing + 1]);
    kg_text_seconds(words, contestant->reference.median);
    kg_text_add(words, ")");
}

// In the table of foreign outcomes, for the next contest, and in the log: there as words, because
// the times of rounds are those of generated versions, the best of which is the known one.
static enum kg_status record(struct kg_contest_run *contest, const struct kg_contestant *contestant,
                             struct kg_error *error)
{
    struct kg_session *session = contest->request.session;
    struct kg_text file = {0}, choice = {0}, words = {0};
    kg_text_add_printable(&file, contestant->name);
    kg_text_format(&choice, "foreign: %s", kg_text_string(&file));
    describe(contestant, &words);
    const struct kg_foreign_outcome outcome = {.file = kg_text_string(&file),
                                               .hash = contestant->hash,
                                               .reference = contest->plan->choice,
                                               .proof = contest->proof,
                                               .kind = contestant->kind,
                                               .reason = contestant->reason,
                                               .cases = contestant->cases,
                                               .seed = contestant->seed,
                                               .timing = contestant->timing,
                                               .reference_timing = contestant->reference,
                                               .baseline_timing = contestant->baseline,
                                               .standing = contestant->standing,
                                               .gist = contestant->gist};
    const struct kg_round round = {.diagnosis = "a kernel from outside",
                                   .change = "raced with the generated kernel",
                                   .choice = kg_text_string(&choice),
                                   .result = kg_text_string(&words)};
    enum kg_status status =
        file.failed || choice.failed || words.failed ? kg_error_memory(error, "a record") : KG_OK;
    if (!status)
        status = kg_store_add_foreign(session->store, &contest->key.key, &outcome, error);
    if (!status)
        status = kg_store_round(session->store, &contest->key.key, &round, error);
    kg_text_free(&file);
    kg_text_free(&choice);
    kg_text_free(&words);
    return kg_session_recorded(session, status, error);
}

// Judging and racing.

// The generated kernel passes the gate before anything is timed beside it.
static enum kg_status check_plan(const struct kg_contest_run *contest, struct kg_error *error)
{
    struct kg_verdict verdict;
    if (contest->plan->verified)
        return KG_OK;
    enum kg_status status = kg_flow_verify(contest->plan, 0, &verdict, error);
    if (status || verdict.passed)
        return status;
    return kg_error_set(error, KG_ERROR_WRONG, "the accuracy gate refused the generated kernel: %s",
                        verdict.reason);
}

static enum kg_status prepare_races(struct kg_contest_run *contest, struct kg_error *error)
{
    const struct kg_request *request = &contest->request;
    struct kg_choice choice;
    if (contest->is_ready)
        return KG_OK;
    enum kg_status status = check_plan(contest, error);
    contest->terms = (struct kg_search){.device = request->device,
                                        .problem = request->problem,
                                        .target = kg_target_of(request->device),
                                        .protocol = request->session->protocol,
                                        .cancel = request->session->cancel,
                                        .times = &request->session->times};
    kg_flow_choose_baseline(request->device, request->problem, &choice);
    if (!status)
        status = kg_flow_plan_of(request, &choice, &contest->baseline, error);
    if (!status && request->device->backend->shares_memory)
        status = kg_test_rig_make(&contest->terms, &contest->rig, error);
    contest->is_ready = status == KG_OK;
    return status;
}

// A failure in a race is the file's: the others passed the gate, and were timed before.
static bool is_own_fault(enum kg_status status, enum kg_outcome_kind *kind)
{
    static const struct {
        enum kg_status status;
        enum kg_outcome_kind kind;
    } faults[] = {
        {KG_ERROR_WRONG, KG_OUTCOME_WRONG},
        {KG_ERROR_FAULT, KG_OUTCOME_FAULT},
        {KG_ERROR_TIMEOUT, KG_OUTCOME_TIMEOUT},
        {KG_ERROR_MEMORY, KG_OUTCOME_FAULT}, // the child has a share of its own
        {KG_ERROR_COMPILE, KG_OUTCOME_COMPILE},
    };
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        if (faults[i].status == status) {
            *kind = faults[i].kind;
            return true;
        }
    return false;
}

// By the rule for finalists: differences within the noise are ties, which the first one wins.
static int compare(const struct kg_timing *timings)
{
    const struct kg_timing ours[] = {timings[REFERENCE], timings[RACER]};
    const struct kg_timing theirs[] = {timings[RACER], timings[REFERENCE]};
    int winner = kg_time_winner(theirs, 2);
    if (kg_time_winner(ours, 2) == 1)
        return 1;
    if (winner >= 0)
        return winner == RACER ? 0 : -1;
    // Both are behind the baseline.
    double difference = timings[REFERENCE].behind - timings[RACER].behind;
    return difference > BEHIND_TIE ? 1 : difference < -BEHIND_TIE ? -1 : 0;
}

static enum kg_status race(struct kg_contest_run *contest, struct kg_contest_entry *entry,
                           struct kg_error *error)
{
    struct kg_contestant *contestant = entry->contestant;
    struct kg_timing timings[RACERS];
    struct kg_error own = {0};
    enum kg_outcome_kind kind;
    enum kg_status status = prepare_races(contest, error);
    if (status)
        return status;
    struct kg_built *rivals[] = {contest->plan->built, contest->baseline->built};
    status = kg_foreign_race(&contest->request, entry->file.foreign, &contest->terms, contest->rig,
                             rivals, RACERS - 1, timings, &own);
    if (status && is_own_fault(status, &kind)) {
        fail(contest, contestant, entry->path, kind, own.text);
        return KG_OK;
    }
    if (status)
        return kg_error_set(error, status, "%s", own.text);
    contestant->state = KG_CONTESTANT_RANKED;
    contestant->kind = KG_OUTCOME_MEASURED;
    contestant->timing = timings[RACER];
    contestant->reference = timings[REFERENCE];
    contestant->baseline = timings[BASELINE];
    contestant->standing = compare(timings);
    return KG_OK;
}

static enum kg_status judge(struct kg_contest_run *contest, struct kg_contest_entry *entry,
                            struct kg_error *error)
{
    struct kg_contestant *contestant = entry->contestant;
    struct kg_verdict verdict = {0};
    struct kg_error own = {0};
    enum kg_outcome_kind kind;
    struct kg_gate *gate;
    enum kg_status status =
        kg_foreign_gate(&contest->request, &contest->gates, entry->file.foreign, &gate, error);
    if (status)
        return status;
    status = kg_foreign_judge(&contest->request, entry->file.foreign, gate, &verdict, &own);
    contestant->cases = verdict.cases;
    contestant->seed = verdict.seed;
    if (status && is_own_fault(status, &kind)) {
        fail(contest, contestant, entry->path, kind, own.text);
        return KG_OK;
    }
    if (status)
        return kg_error_set(error, status, "%s", own.text);
    if (verdict.passed)
        return race(contest, entry, error);
    kind = verdict.ended == KG_ERROR_FAULT     ? KG_OUTCOME_FAULT
           : verdict.ended == KG_ERROR_TIMEOUT ? KG_OUTCOME_TIMEOUT
                                               : KG_OUTCOME_WRONG;
    fail(contest, contestant, entry->path, kind, verdict.reason);
    return KG_OK;
}

// What opening a file says of the machine, and not of the file.
static bool is_of_machine(enum kg_status status)
{
    return status == KG_ERROR_MEMORY || status == KG_ERROR_IO || status == KG_ERROR_MISSING ||
           status == KG_ERROR_CANCELLED;
}

enum kg_status kg_contest_try(struct kg_contest_run *contest, struct kg_contest_entry *entry,
                              struct kg_error *error)
{
    struct kg_contestant *contestant = entry->contestant;
    const struct kg_foreign_file *file = &entry->file;
    if (is_of_machine(file->status))
        return kg_error_set(error, file->status, "%s", file->error.text);
    if (file->status) {
        fail(contest, contestant, entry->path, KG_OUTCOME_COMPILE, file->error.text);
        return record(contest, contestant, error);
    }
    kg_foreign_gist(file->foreign, &contestant->gist);
    if (contest->request.device->is_described) {
        contestant->state = KG_CONTESTANT_UNRUN;
        contestant->reason = "it compiles, and its parameters are right";
        return KG_OK;
    }
    enum kg_status status = judge(contest, entry, error);
    return status ? status : record(contest, contestant, error);
}
