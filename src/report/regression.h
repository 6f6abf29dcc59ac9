// What is on record now beside what was on record earlier: which problems got slower.

#ifndef KG_REPORT_REGRESSION_H
#define KG_REPORT_REGRESSION_H

#include "base/arena.h"
#include "store/store.h"

enum kg_change_since {
    KG_SINCE_SLOWER,
    KG_SINCE_FASTER,
    KG_SINCE_SAME, // within noise
    KG_SINCE_GONE, // not on record now
    KG_SINCE_COUNT
};
extern const char *const kg_since_names[KG_SINCE_COUNT];

struct kg_since_side {
    double seconds; // 0: nothing was measured
    double spread;
    const char *driver, *compiler, *date;
};

// A problem of the earlier records.
struct kg_since {
    struct kg_key key;              // the earlier one
    struct kg_since_side then, now; // `now` is all 0 if it is gone
    enum kg_change_since change;
    double noise; // seconds
};

struct kg_comparison {
    struct kg_arena arena;
    struct kg_since *list;
    int count;
    int counts[KG_SINCE_COUNT];
    int added; // problems of now that were not on record
};

// Compares the wisdom of `then` with the records of `now`, of one op or of all (NULL). Problems are
// the same if all of their keys but the driver and the compiler are, which are often what changed:
// of several the one with the latest wisdom counts. The time now is that of the fastest candidate,
// each as it was measured last; where there are no measurements, that of the wisdom. A difference
// counts if it is larger than both interquartile ranges together and 2 %.
enum kg_status kg_comparison_make(struct kg_store *now, struct kg_store *then, const char *op,
                                  struct kg_comparison *comparison, struct kg_error *error);
void kg_comparison_free(struct kg_comparison *comparison);

// The problem whose time now was measured under this key; NULL: none.
const struct kg_since *kg_comparison_find(const struct kg_comparison *comparison,
                                          const struct kg_key *key);

// A line for each problem, and one of counts; or JSON.
void kg_comparison_write(const struct kg_comparison *comparison, bool json, struct kg_text *text);
// "1 slower, 0 faster, 3 the same within noise, 0 not on record now, 2 new"
void kg_comparison_count(const struct kg_comparison *comparison, struct kg_text *text);

#endif
