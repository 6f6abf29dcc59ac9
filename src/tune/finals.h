// The last race of a search: the best candidates, alternately, in one process.

#ifndef KG_TUNE_FINALS_H
#define KG_TUNE_FINALS_H

#include "tune/trials.h"

#define KG_MOST_FINALISTS 16

// Positions of at most `most` (at least 2) of those within `margin` of the best, in the order in
// which they were tried: ties then go to the one nearer the guess. The guess, the first trial, is
// among them unless it took more than twice as long as the best. Gives their number.
int kg_finals_choose(const struct kg_trials *trials, int most, double margin, int *finalists);
// Builds the finalists again (their objects are cached) and races them. The winner's position
// and timing; -1 when that fails.
int kg_finals_race(const struct kg_trials *trials, const int *finalists, int count,
                   struct kg_timing *timing);

#endif
