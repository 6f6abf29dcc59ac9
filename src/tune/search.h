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
    KG_OUTCOME_PRUNED,  // by a bound or a rule, or because it runs the same code as another
                        // candidate
    KG_OUTCOME_INVALID, // refused by `valid`; no longer recorded, since the rules refuse it again
    KG_OUTCOME_COMPILE, // the compiler refused it or hung
    KG_OUTCOME_WRONG,   // the gate rejected it
    KG_OUTCOME_FAULT,   // crashed
    KG_OUTCOME_TIMEOUT, // hung
    KG_OUTCOME_COUNT
};
extern const char *const kg_outcome_names[KG_OUTCOME_COUNT];
extern const char *const kg_rigor_names[KG_RIGOR_COUNT];

// The outcome of one candidate. It is passed to `record` as soon as it is known.
struct kg_outcome {
    enum kg_outcome_kind kind;
    const char *choice; // kg_choice_print
    // The file of edited PTX that ran in place of the choice's kernels; NULL: the kernels ran.
    const char *override;
    struct kg_hash source;  // hash of instructions and launches if they are known, else of sources
    struct kg_hash emitted; // gen/source_identity.h; zero: not computed. Set by the recorder
    double bound;           // seconds, 0 when not computed
    double estimate;        // likewise, as kg_choice_expected
    double compile_seconds;
    struct kg_timing timing; // set for MEASURED
    struct kg_verdict verdict;
    struct kg_forecast forecast; // by the model, if the instructions are known
    bool final;                  // timed in the race of the finalists, whose winner comes last
    const char *reason;          // set for all kinds but MEASURED
};

struct kg_judge;

struct kg_search {
    struct kg_device *device;
    const struct kg_problem *problem; // the shape to tune for
    // The same problem with strided tensors for contiguous ones, or vice versa, for counterparts of
    // kernels; may be NULL.
    const struct kg_problem *counterpart;
    struct kg_judge *judge; // NULL: the search makes its own
    const struct kg_target *target;
    const struct kg_gate *gate;
    enum kg_rigor rigor; // ESTIMATE .. EXHAUSTIVE
    double seconds; // time limit, 0: none; the first candidate is judged even if it takes longer
    enum kg_isolation isolation;
    double run_limit; // seconds one candidate may take to build, verify and time; 0: 60
    struct kg_protocol protocol;
    // With a kind of change: tries what differs from this choice by that kind alone. Hints are not
    // used. NONE: everything.
    enum kg_change change;
    const struct kg_choice *from;
    const char *const *hints; // choices to try first (patterns, nearest wisdom), kg_choice_print
    int hint_count;
    const volatile int *cancel;
    struct kg_times *times; // the search adds its own; may be NULL
    void *user;
    // Looks up an earlier outcome of this candidate, to resume a search. Fills *outcome and returns
    // true if there is one.
    bool (*known)(void *user, const char *choice, struct kg_outcome *outcome);
    void (*record)(void *user, const struct kg_outcome *outcome);
    // What patterns say of a value or a family, as kg_candidates_prior; NULL: nothing is known.
    double (*prior)(void *user, const char *family, const char *parameter, int64_t value,
                    bool beyond);
    // Offers configs of this family that were good for other problems of the class, until `max` of
    // them fit. NULL: nothing is known.
    void (*favourites)(void *user, const char *family, int max,
                       bool (*fits)(void *fitting, const char *config), void *fitting);
    void (*progress)(void *user, int done, int total, const char *what);
};

#define KG_FOUND_WHY 1024

struct kg_found {
    struct kg_choice choice;
    double seconds; // median of the winner; 0 under ESTIMATE
    double spread;
    uint64_t seed; // of the gate that passed the winner
    int64_t space; // configs in the space, summed over the groups
    int valid;
    int pruned;               // by a bound, or because they run the same code as another candidate
    int measured;             // including those known from earlier searches
    int failed;               // compile, wrong, fault, timeout
    int fresh, fresh_failed;  // of those measured and failed: not known from earlier searches
    bool complete;            // false: stopped by time, by the caller, or by the machine
    char ended[KG_FOUND_WHY]; // the failure of the machine that ended it early; "": none
};

// What a kind of change has to offer (search->change and search->from are set).
struct kg_prospect {
    int candidates; // other choices; of a large space, those of the sample
    double ratio;   // the least expected time over that of `from`; 0: unknown
};
void kg_search_prospect(const struct kg_search *search, struct kg_prospect *prospect);

// What a search without records of the problem tries first, beginning with the guess, so that
// callers can compile it ahead. Returns the number of choices.
#define KG_MAX_FORESEEN 20
int kg_search_foresee(const struct kg_search *search, struct kg_choice choices[KG_MAX_FORESEEN]);

// The choice without measurements: the rule's guess, corrected by `prior` where that knows more.
// Returns whether it was corrected.
bool kg_search_estimate(const struct kg_search *search, struct kg_choice *choice);

// Where a search starts: two favourites or, without any, what patterns make of the guess; and the
// guess. Each once; returns the number of choices.
#define KG_SEARCH_STARTS 3
int kg_search_starts(const struct kg_search *search, const struct kg_choice *guess,
                     struct kg_choice *starts);

// The guess, which has one kernel, with configs that were good for other problems, fit, and are not
// expected to be much slower. Returns their number, KG_SEARCH_STARTS - 1 at most.
int kg_search_favourites(const struct kg_search *search, const struct kg_choice *guess,
                         struct kg_choice *choices);

// On KG_ERROR_CANCELLED `found` still holds the best choice so far if found->seconds > 0.
// Otherwise, and when the time is up before anything was measured, found->choice is the rule's
// guess, unmeasured. A search in which every candidate fails returns KG_ERROR_WRONG
// (KG_ERROR_TIMEOUT if its time was up) with the first reasons. A failure of the machine (no
// compiler, no memory, a full disk) is returned if nothing was measured before; later it ends the
// search like a time limit, and found->ended describes it.
// Only one search at a time per device: measurements must not overlap.
enum kg_status kg_search_run(const struct kg_search *search, struct kg_found *found,
                             struct kg_error *error);

#endif
