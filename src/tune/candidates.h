// The candidates of one group: configs of every family that can take it, which of them are worth a
// trial, and which one to try next. This file knows nothing of compilers and clocks.
//
// A small model, fitted to the measurements so far, predicts times; the fastest predictions are
// tried first. A value that was never tried counts as slightly better than that of the best config.
// The untried neighbours of the best config therefore come early, for each parameter in turn,
// unless a combination of measured values is predicted to be faster. Values that have made no
// difference so far come last.
//
// What other problems have taught (kg_candidates_advise) is where the model's effects begin, and
// weighs as much as a few measurements.
//
// If the family expects a time of each config, the model predicts the ratio of measured to expected
// time, and untried values get no bonus.

#ifndef KG_TUNE_CANDIDATES_H
#define KG_TUNE_CANDIDATES_H

#include "base/error.h"
#include "gen/target.h"

enum kg_candidate_state {
    KG_CANDIDATE_OPEN,
    KG_CANDIDATE_PICKED, // chosen for a trial that is under way
    KG_CANDIDATE_TRIED,
    KG_CANDIDATE_PRUNED,  // cannot win, as found before or after it was compiled
    KG_CANDIDATE_WAITING, // for another candidate: see kg_candidates_hold
};

struct kg_candidate {
    int reading; // position in the candidates' `readings`
    struct kg_config config;
    unsigned char
        step[KG_MAX_PARAMETERS]; // positions of the values among their parameters' choices
    double bound;                // seconds of the group, by its family's bound
    double expected;             // seconds by its family's expected time; 0: unknown
    int distance;                // steps from the guess, over all parameters
    enum kg_candidate_state state;
    double seconds; // TRIED: of the whole plan; 0: it failed
    int twin;       // TRIED: position of the candidate that runs the same code, -1: none
};

// A group, together with a family that can take it.
struct kg_reading {
    const struct kg_match *match;
    struct kg_space space;
    int limit; // position of the parameter that limits registers when it is not 0, "maxnreg"; -1:
               // none
    // What is known from elsewhere, as logarithms of factors of the time: of the family, and of
    // each value by its step. 0: nothing.
    double form;
    double prior[KG_MAX_PARAMETERS][KG_MAX_CHOICES];
};
#define KG_MAX_READINGS 16

struct kg_candidates {
    int reading_count;
    struct kg_reading readings[KG_MAX_READINGS];
    int64_t size; // configs, valid or not: those that the families list, or their whole spaces
    int count;    // valid configs that are listed
    struct kg_candidate *items;
    bool complete; // false: the space is too large, and `items` is an even sample of it
    bool expected; // every config has an expected time
};

// Called for every config that the family's `valid` refuses.
typedef void kg_candidates_refused(void *user, const struct kg_match *match,
                                   const struct kg_config *config, const char *reason);

// Lists at most `max` valid configs of the match's family: those that the family lists itself, or
// its whole space. Its guess is always among them if it is valid. If the family expects times, all
// other families of the target that can take the same group and expect times compete: their configs
// are listed, too. Configs that are expected to take a multiple of the least time are left out.
enum kg_status kg_candidates_list(const struct kg_match *match, const struct kg_target *target,
                                  int max, kg_candidates_refused *refused, void *user,
                                  struct kg_candidates *candidates, struct kg_error *error);
// Lists the configs, at most `max`, that differ from `from` in parameters of one kind of change
// alone, and `from` itself; for KG_CHANGE_FORM the configs of all other families that can take the
// group, whether they expect times or not. None for KG_CHANGE_GROUPING, which concerns no single
// group.
enum kg_status kg_candidates_list_changed(const struct kg_match *match,
                                          const struct kg_target *target,
                                          const struct kg_config *from, enum kg_change change,
                                          int max, struct kg_candidates *candidates,
                                          struct kg_error *error);
void kg_candidates_free(struct kg_candidates *candidates);

// By what factor, as a logarithm, a value changes the time as far as is known from other problems;
// with a NULL parameter, the family. `beyond`: the time that families expect, and not the whole.
// 0: nothing is known.
typedef double kg_candidates_prior(void *user, const char *family, const char *parameter,
                                   int64_t value, bool beyond);
// The model is drawn towards these factors until there are measurements. Without any the order of
// the candidates stays as it is. Returns whether something is known.
bool kg_candidates_advise(struct kg_candidates *candidates, kg_candidates_prior *prior, void *user);
// Whether something is known of a match's family or of values of its parameters.
bool kg_candidates_are_known(const struct kg_match *match, kg_candidates_prior *prior, void *user);
// The most promising candidate before anything is measured, of the family of `guess`, the position
// of the rule's, and with two other values at most; `guess` itself unless the difference is clear.
int kg_candidates_first(const struct kg_candidates *candidates, int guess);

// Position of a config, -1 when it is not listed.
int kg_candidates_find(const struct kg_candidates *candidates, const struct kg_match *match,
                       const struct kg_config *config);

// Sets open candidates with a limit on registers to WAITING for the same config without a limit. If
// the list is a sample, which may lack that config, nothing waits.
void kg_candidates_hold(struct kg_candidates *candidates);
// Reopens the candidates that wait for candidate `at`, whose threads use `registers` registers (0:
// unknown). A limit that is not below that number would give the same kernel: such a candidate is
// pruned, and `useless` is called for it.
typedef void kg_candidates_useless(void *user, const struct kg_candidate *candidate);
void kg_candidates_release(struct kg_candidates *candidates, int at, int registers,
                           kg_candidates_useless *useless, void *user);

// Picks up to `max` open candidates to try next, the most promising first, and returns their
// number. `best` is the position of the fastest candidate so far, -1 when there is none.
int kg_candidates_pick(const struct kg_candidates *candidates, int best, int max, int *picked);

#endif
