// The configs of one group of a problem, of every family that may take it, as the search sees them:
// which are worth a try, and which one next. Knows nothing of compilers and clocks.
//
// Order of trying: what a small model of the measurements so far expects to be fastest. Of values
// that were never tried it expects a little more than of the best config's own, so the untried
// neighbours of that config come early, of each parameter in turn, unless something measured
// promises more than they might. Values that have made no difference so far come last.
//
// Where the family says what it expects of each config, the model is of the measured times' share
// of that, and nothing is hoped for.

#ifndef KG_TUNE_CANDIDATES_H
#define KG_TUNE_CANDIDATES_H

#include "base/error.h"
#include "gen/target.h"

enum kg_candidate_state {
    KG_CANDIDATE_OPEN,
    KG_CANDIDATE_PICKED, // to be tried, and on its way
    KG_CANDIDATE_TRIED,
    KG_CANDIDATE_PRUNED,  // hopeless, before or after it was compiled
    KG_CANDIDATE_WAITING, // for another one: see kg_candidates_hold
};

struct kg_candidate {
    int reading; // position of its family's reading among the candidates'
    struct kg_config config;
    unsigned char step[KG_MAX_PARAMETERS]; // positions of the values in their parameters' choices
    double bound;                          // seconds of the group, by its family
    double expected;                       // likewise; 0: it does not say
    int distance;                          // steps from the guess, over all parameters
    enum kg_candidate_state state;
    double seconds; // TRIED: what the whole plan took; 0: it failed
    int twin;       // TRIED: the position of the one that turned out to run the same, -1: none
};

// A group as one of the families that can take it reads it.
struct kg_reading {
    const struct kg_match *match;
    struct kg_space space;
    int limit; // the parameter that limits registers, "maxnreg", where it is not 0; -1: none
};
#define KG_MAX_READINGS 16

struct kg_candidates {
    int reading_count;
    struct kg_reading readings[KG_MAX_READINGS];
    int64_t size; // configs that the families list, or all of their spaces, valid or not
    int count;    // valid ones
    struct kg_candidate *items;
    bool complete; // false: the space is too large, and this is an even sample of it
    bool expected; // every one has an expected time
};

// Called for every config that `valid` refuses.
typedef void kg_candidates_refused(void *user, const struct kg_match *match,
                                   const struct kg_config *config, const char *reason);

// Lists at most `most` valid configs of the match's family: those that it lists, or a whole space;
// its guess is always among them if it is valid. Where the family says what it expects, those of
// all other families of the target that read the same group and say so too; none of which more than
// a few times the least time is expected.
enum kg_status kg_candidates_list(const struct kg_match *match, const struct kg_target *target,
                                  int most, kg_candidates_refused *refused, void *user,
                                  struct kg_candidates *candidates, struct kg_error *error);
void kg_candidates_free(struct kg_candidates *candidates);

// Position of a config, -1 when it is not listed.
int kg_candidates_find(const struct kg_candidates *candidates, const struct kg_match *match,
                       const struct kg_config *config);

// Open candidates that limit registers wait for the same ones without a limit. Where a sample of
// the space may lack those, they do not.
void kg_candidates_hold(struct kg_candidates *candidates);
// Lets go those that wait for the one at `at`, whose threads use so many registers, 0: not known.
// What a limit leaves alone would be the same kernel: it is pruned, and `useless` told.
typedef void kg_candidates_useless(void *user, const struct kg_candidate *candidate);
void kg_candidates_release(struct kg_candidates *candidates, int at, int registers,
                           kg_candidates_useless *useless, void *user);

// Up to `most` open candidates to try next, best chance first; gives their number. `best` is the
// position of the fastest tried one, -1 when there is none.
int kg_candidates_pick(const struct kg_candidates *candidates, int best, int most, int *picked);

#endif
