// The search: from a problem to the best choice that rigor and time allow.

#ifndef KG_TUNE_SEARCH_H
#define KG_TUNE_SEARCH_H

#include "base/times.h"
#include "gen/built.h"
#include "tune/forecast.h"
#include "tune/timing.h"
#include "tune/worker.h"
#include "verify/gate.h"

enum kg_outcome_kind {
    KG_OUTCOME_MEASURED,
    KG_OUTCOME_PRUNED,  // by bound or rule, or because it runs like another one
    KG_OUTCOME_INVALID, // `valid` said no; not recorded any more: rules say it again when asked
    KG_OUTCOME_COMPILE, // the compiler refused or hung
    KG_OUTCOME_WRONG,   // the gate said no
    KG_OUTCOME_FAULT,   // crashed
    KG_OUTCOME_TIMEOUT, // hung
    KG_OUTCOME_COUNT
};
extern const char *const kg_outcome_names[KG_OUTCOME_COUNT];
extern const char *const kg_rigor_names[KG_RIGOR_COUNT];

// What became of one candidate. Handed to `record` the moment it is known.
struct kg_outcome {
    enum kg_outcome_kind kind;
    const char *choice; // kg_choice_print
    // The file whose PTX ran in the place of the choice's kernels; NULL: they did.
    const char *override;
    struct kg_hash
        source; // of what runs: instructions and launches where they are known, else sources
    struct kg_hash emitted; // gen/source_identity.h; zero: not asked for. Set by who records
    double bound;           // seconds, 0 when not computed
    // Likewise, as kg_choice_expected; not recorded, since it is the same whenever it is asked for.
    double estimate;
    double compile_seconds;
    struct kg_timing timing; // MEASURED
    struct kg_verdict verdict;
    struct kg_forecast forecast; // of its instructions, where they are known
    bool final;                  // from the interleaved race of the finalists
    const char *reason;          // all kinds but MEASURED
};

struct kg_judge;

struct kg_search {
    struct kg_device *device;
    const struct kg_problem *problem; // the shape to tune for
    // The same with tensors of the other kind, for kernels' counterparts; may be NULL.
    const struct kg_problem *counterpart;
    struct kg_judge *judge; // NULL: the search has one of its own
    const struct kg_target *target;
    const struct kg_gate *gate;
    enum kg_rigor rigor; // ESTIMATE .. EXHAUSTIVE
    double seconds;      // time limit, 0: none; the first candidate is judged whatever it says
    enum kg_isolation isolation;
    double run_limit; // seconds one candidate may take to build, verify and time; 0: 60
    struct kg_protocol protocol;
    const char *const *hints; // choices to try first (patterns, nearest wisdom), kg_choice_print
    int hint_count;
    const volatile int *cancel;
    struct kg_times *times; // what it adds to, may be NULL
    void *user;
    // Earlier outcome of this very candidate (resume)? True fills *outcome.
    bool (*known)(void *user, const char *choice, struct kg_outcome *outcome);
    void (*record)(void *user, const struct kg_outcome *outcome);
    void (*progress)(void *user, int done, int total, const char *what);
};

#define KG_FOUND_WHY 1024

struct kg_found {
    struct kg_choice choice;
    double seconds; // median of the winner; 0 under ESTIMATE
    double spread;
    int64_t space; // configs in the space; summed over groups, which are searched one by one
    int valid;
    int pruned;               // by bound, or because they run like another
    int measured;             // including those known from before
    int failed;               // compile, wrong, fault, timeout
    bool complete;            // false: stopped by time, by the caller, or by the machine
    char ended[KG_FOUND_WHY]; // what of the machine ended it early; "": nothing
};

// What a search that knows nothing tries first, the guess to begin with; gives their number. For
// whoever compiles ahead.
#define KG_MOST_FORESEEN 17
int kg_search_foresee(const struct kg_search *search, struct kg_choice choices[KG_MOST_FORESEEN]);

// On KG_ERROR_CANCELLED `found` still holds the best so far, if found->seconds > 0; otherwise, and
// when time is up before anything was measured, found->choice is the rule-based one, unmeasured. A
// search in which every candidate fails gives KG_ERROR_WRONG (KG_ERROR_TIMEOUT when time ended it)
// with the first reasons. A failure of the machine (no compiler, no memory, a full disk) that comes
// before anything was measured is returned as it is; later, it ends the search as time does, and
// found->ended tells of it.
// One search at a time per device: measurements must not overlap.
enum kg_status kg_search_run(const struct kg_search *search, struct kg_found *found,
                             struct kg_error *error);

#endif
