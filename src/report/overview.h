// What the figures over all problems show, of the page and of the terminal alike: devices, and for
// each problem its times, its cost, and its candidates' predicted and measured times.

#ifndef KG_REPORT_OVERVIEW_H
#define KG_REPORT_OVERVIEW_H

#include "report/axis.h"
#include "report/regression.h"
#include "report/tiers.h"
#include "report/view.h"

// A measured candidate: seconds. Those that were given up early are left out.
struct kg_spot {
    double predicted, measured;
};

struct kg_shown_device {
    const char *name;  // "Some CPU"
    const char *about; // what else distinguishes devices: "8 units, avx2, driver 6.1"
    int problems;
    int tiers[KG_TIER_COUNT]; // candidates
};

struct kg_shown_problem {
    int number; // of its card, from 1
    int device; // index of the list
    const char *op, *dtypes, *sizes, *layout, *protocol;
    struct kg_hash definition;
    enum kg_view_accuracy accuracy;
    double seconds, baseline, roofline; // as in struct kg_view
    double spread;                      // relative
    struct kg_cost cost;
    enum kg_view_prediction prediction;
    const struct kg_spot *spots;
    int spot_count;
    struct kg_order order;
    const struct kg_since *since; // what an earlier date has of it; NULL: nothing
};

struct kg_overview {
    const struct kg_comparison *comparison; // with an earlier date, borrowed; NULL: none
    struct kg_arena arena;
    struct kg_shown_device *devices;
    int device_count;
    struct kg_shown_problem *problems;
    int problem_count;
    int op_count;
    int total; // problems that there will be, known before the first one is visited
};

// Collects all problems, or those of one op, beside what an earlier date has of them (NULL:
// without). `visit` (may be NULL) sees each while its view exists; the overview has it already, as
// its last problem.
enum kg_status kg_overview_collect(
    struct kg_store *store, const char *op, const struct kg_comparison *comparison,
    void (*visit)(void *user, const struct kg_overview *overview, const struct kg_view *view),
    void *user, struct kg_overview *overview, struct kg_error *error);
void kg_overview_free(struct kg_overview *overview);

// "24 problems of 12 ops on 2 devices", or that there is nothing yet.
void kg_overview_summarise(const struct kg_overview *overview, struct kg_text *summary);
// The name of a device, with what distinguishes it if another one has the same name.
const char *kg_overview_device_name(const struct kg_overview *overview, int device);

// The share of the roofline that was reached; 0: unknown.
double kg_shown_share(const struct kg_shown_problem *problem);
// The baseline's time over the kernel's; 0: not compared.
double kg_shown_ratio(const struct kg_shown_problem *problem);

// ---- The roofline of all problems in one plot: compute time over memory time, both at the peak,
// is the intensity relative to the ridge whatever the data type and device.

enum kg_roof_rank { KG_AT_THE_ROOF, KG_NEAR_THE_ROOF, KG_FAR_BELOW, KG_ROOF_RANKS };
extern const char *const kg_roof_words[KG_ROOF_RANKS]; // "at the roof (90% of it and more)"

struct kg_roof_place {
    double intensity; // relative to the ridge; 0: there are no operations
    double attained;  // of the peak of arithmetic
    double share;     // of the roof above it
    enum kg_roof_rank rank;
};
// False if cost or time are unknown.
bool kg_shown_place(const struct kg_shown_problem *problem, struct kg_roof_place *place);
// The place where it is drawn, on logarithmic axes: what has no operations stands at the left edge,
// as far below the roof as it is.
struct kg_roof_place kg_roof_drawn(struct kg_roof_place place);
// The powers of ten of both axes. Returns how many problems have a place, and counts them by rank.
int kg_roof_fit(const struct kg_overview *overview, struct kg_axis *x, struct kg_axis *y,
                int counts[KG_ROOF_RANKS]);

// ---- Predictions of one device

struct kg_predicted {
    enum kg_view_prediction by; // estimates, if any of its problems has some
    struct kg_order order;      // of the pairs of one problem each
    int spots;
};
struct kg_predicted kg_overview_predicted(const struct kg_overview *overview, int device);

// ---- Speed-ups of one op by shape

// The compared problems of one op, with one choice of data types, on one device.
struct kg_speedups {
    int count;
    double least, most, mean; // ratios; the mean is geometric
};
// The shapes of the op of problem `first`; false if there are fewer than two, or if `first` is not
// the first of them.
bool kg_overview_speedups(const struct kg_overview *overview, int first,
                          struct kg_speedups *shapes);
// The next problem after `after` that belongs to those of `first`; -1: none.
int kg_overview_next_shape(const struct kg_overview *overview, int first, int after);

// ---- Problems that were timed on several devices

// Is problem `first` the first of them that was timed, and is there another device?
bool kg_overview_is_shared(const struct kg_overview *overview, int first);
// The latest record of this problem on a device; -1: none that was timed.
int kg_overview_on(const struct kg_overview *overview, int problem, int device);

#endif
