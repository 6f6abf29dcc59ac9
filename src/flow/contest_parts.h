// A contest, as the files contest.c, which reads folders, and contest_trial.c, which judges, times
// and records one file, share it. Only they include this.

#ifndef KG_FLOW_CONTEST_PARTS_H
#define KG_FLOW_CONTEST_PARTS_H

#include "flow/candidate_folder.h"
#include "flow/contest.h"
#include "flow/foreign_batch.h"
#include "flow/turns.h"
#include "report/ranking.h"

struct kg_contest_run {
    const struct kg_plan *plan;
    struct kg_request request;
    struct kg_session_key key;
    struct kg_turn turn;
    struct kg_hash proof;  // of what is raced with, and of the gate
    struct kg_arena arena; // texts of the result
    struct kg_candidate_folder folder;
    struct kg_contest result;
    struct kg_foreign_gates gates;
    // What races need, made for the first of them.
    bool is_ready;
    struct kg_search terms;
    struct kg_plan *baseline;
    struct kg_test_rig *rig;
};

// A file of a batch.
struct kg_contest_entry {
    struct kg_foreign_file file;
    struct kg_contestant *contestant;
    const char *path;
    char *code; // NULL: there is nothing to compile
};

// Copies a text for the result; "" without memory, which kg_contest_check_memory reports.
const char *kg_contest_keep(struct kg_contest_run *contest, const char *text);
enum kg_status kg_contest_check_memory(const struct kg_contest_run *contest,
                                       struct kg_error *error);

// Looks for the outcome of these bytes in the records.
enum kg_status kg_contest_recall(struct kg_contest_run *contest, struct kg_contestant *contestant,
                                 bool *found, struct kg_error *error);
// Judges an entry that was compiled, times it if it passed, and records what became of it. A
// failure is one of the machine.
enum kg_status kg_contest_try(struct kg_contest_run *contest, struct kg_contest_entry *entry,
                              struct kg_error *error);

#endif
