// Foreign kernels beside the generated one: their ranking, as text and as JSON.

#ifndef KG_REPORT_RANKING_H
#define KG_REPORT_RANKING_H

#include "asm/gist.h"
#include "tune/search.h"

enum kg_contestant_state {
    KG_CONTESTANT_RANKED,  // passed and timed
    KG_CONTESTANT_FAILED,  // `kind` says how
    KG_CONTESTANT_SKIPPED, // no kernel for this device, or no file that is read
    KG_CONTESTANT_UNRUN,   // it compiles; the device is described, and not at hand
};

// One file. Texts are borrowed.
struct kg_contestant {
    const char *name;
    enum kg_contestant_state state;
    enum kg_outcome_kind kind;
    const char *reason; // NULL: none
    struct kg_hash hash;
    int cases; // of the gate
    uint64_t seed;
    // Of one race: its own times, and those of the generated kernel and the baseline.
    struct kg_timing timing, reference, baseline;
    int standing; // against the generated kernel by more than noise: 1 faster, -1 slower; 0: a tie
    struct kg_asm_gist gist;
    bool is_remembered;  // from the records; not measured now
    const char *same_as; // an earlier file with the same bytes, whose outcome this is; NULL: none
};

struct kg_contest {
    const char *folder, *op, *sizes, *dtypes, *device;
    const char *choice;      // the generated one
    double bound;            // seconds, of the roofline; 0: unknown
    struct kg_asm_gist gist; // of the generated kernels
    struct kg_contestant *list;
    int count;
    int left_out; // files beyond the limit, the last by name
    int others;   // files that are no kernels by their names
};

enum { KG_PLACED_REFERENCE = -1, KG_PLACED_BASELINE = -2 };
struct kg_placed {
    int contestant; // index, or one of the above
    int standing;   // as in kg_contestant
    double ratio;   // its time over the generated kernel's, of one race
    double seconds, spread;
    double baseline_ratio; // its time over the baseline's, of one race
};
// Orders what was timed: the fastest first, by the ratio of each race, since races at different
// moments are not comparable otherwise. What is tied with the generated kernel follows it, by name.
// `placed` has room for count + 2. Returns how many there are; 0: nothing was timed; -1: no memory.
int kg_contest_rank(const struct kg_contest *contest, struct kg_placed *placed);

// Files as a table, failures below with the reason of each in a line. KG_ERROR_MEMORY.
enum kg_status kg_report_contest(const struct kg_contest *contest, bool json, struct kg_text *text,
                                 struct kg_error *error);

#endif
