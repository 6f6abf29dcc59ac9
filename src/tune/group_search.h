// The search among the configs of a choice's groups. The kernels of a plan run one after the other,
// so groups are searched one by one: the most expensive first, while the others keep their best
// known configs.

#ifndef KG_TUNE_GROUP_SEARCH_H
#define KG_TUNE_GROUP_SEARCH_H

#include "tune/candidates.h"
#include "tune/compiling.h"
#include "tune/search.h"
#include "tune/trials.h"

#include <pthread.h>

#define KG_MAX_CONFIGS 65536                                  // candidates of one group
#define KG_MAX_BATCH (KG_MAX_FORESEEN - KG_SEARCH_STARTS - 1) // beside where searches start

// The limits of a search for one group with n valid configs: all of them if n <= all, else
// max(least, share * n), but at most `max`. Candidates that run the same code as another one do not
// count.
struct kg_search_rule {
    int all;
    double share;
    int least;
    int max;
    int expected;  // largest number if the family expects a time of each config; 0: `max`
    int patience;  // if `max` is the limit: trials in a row without a gain that end the search; 0:
                   // any number
    int batches;   // batches of a group, beside the guess; 0: any number
    int passes;    // over the groups, when there are several
    int finalists; // largest number; those within `margin` of the best
    double margin;
    bool prune;
    double max_estimate; // candidates whose estimate is more than this multiple of the best's are
                         // not run
};
// The rule of the search's rigor, device and kind of change.
const struct kg_search_rule *kg_search_rule_of(const struct kg_search *search);
// How many candidates are compiled at once.
int kg_search_batch(const struct kg_device *device);

// One group of the plan that is being searched.
struct kg_axis {
    struct kg_candidates candidates;
    double bound; // of its guess
    int recorded;
    int batches; // batches that were picked
};

// The next batch, which may be compiling already.
struct kg_batch {
    int count;
    int picked[KG_MAX_BATCH]; // positions among the candidates
    struct kg_compilation items[KG_MAX_BATCH];
    bool is_compiling;
    pthread_t compiler;
};

struct kg_group_search {
    const struct kg_search *search;
    const struct kg_search_rule *rule;
    struct kg_trials trials;
    struct kg_choice current;          // best known configs of all groups
    struct kg_axis axes[KG_MAX_NESTS]; // by group
    struct kg_batch next;
};

// Lists the configs of every group of the current choice, and adds their numbers to `found`.
enum kg_status kg_group_search_list(struct kg_group_search *state, struct kg_found *found,
                                    struct kg_error *error);
// Tries configs of every group. The current choice becomes the best that has the same groups.
void kg_group_search_run(struct kg_group_search *state);
// How many configs of the groups differ from the current ones. `*least`, the expected time of the
// current choice, becomes the least that one of them brings it to, if all of that is known.
int kg_group_search_others(const struct kg_group_search *state, double *least);
// Frees the lists, so that those of another choice can be made.
void kg_group_search_clear(struct kg_group_search *state);

#endif
