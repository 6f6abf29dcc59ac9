// Records the outcomes of a search as they happen, and returns them when a search that was cut
// short is continued.

#ifndef KG_FLOW_RECORDER_H
#define KG_FLOW_RECORDER_H

#include "flow/plan_handle.h"
#include "flow/turns.h"
#include "store/favourites.h"

struct kg_recorder {
    const struct kg_request *request;
    const struct kg_key *key;
    struct kg_turn *turn;       // renewed while a search goes on
    bool replaces;              // the known choice is of other kernels and gives way
    struct kg_learned *learned; // NULL: none
    struct kg_error error;      // a lack of memory while recording; the search does not report it
};

// Sets the callbacks of `search`. The recorder outlives the search.
void kg_recorder_attach(struct kg_recorder *recorder, struct kg_search *search);

// What the records teach of a problem, for a search or an estimate.
struct kg_learned {
    struct kg_traits traits;
    struct kg_patterns patterns;
    struct kg_favourites favourites;
};
// Reads the patterns, and for searches the favourites, too; a failure leaves none.
// kg_recorder_forget frees both.
void kg_recorder_learned(const struct kg_request *request, struct kg_learned *learned);
void kg_recorder_favourites(const struct kg_request *request, struct kg_learned *learned);
void kg_recorder_forget(struct kg_learned *learned);
// As kg_search.prior and kg_search.favourites, of a struct kg_learned.
double kg_recorder_prior(void *learned, const char *family, const char *parameter, int64_t value,
                         bool beyond);
void kg_recorder_offer(void *learned, const char *family, int max, kg_favourites_fits *fits,
                       void *fitting);
// Notes what the problem costs, and the text of its op, for reports and logs.
enum kg_status kg_recorder_describe(const struct kg_request *request, const struct kg_key *key,
                                    struct kg_error *error);
// Records the outcome of one candidate, as a search would.
void kg_recorder_append(struct kg_recorder *recorder, const struct kg_outcome *outcome);
// Records the plan's choice and times as wisdom of the key, with the hash of its kernels.
enum kg_status kg_recorder_learn(struct kg_recorder *recorder, const struct kg_plan *plan,
                                 struct kg_error *error);

#endif
