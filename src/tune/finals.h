// The final race of a search: the best candidates run alternately in one process.

#ifndef KG_TUNE_FINALS_H
#define KG_TUNE_FINALS_H

#include "tune/trials.h"

#define KG_MAX_FINALISTS 16

// Chooses at most `max` (at least 2) candidates within `margin` of the best, in the order in which
// they were tried, so that ties go to the one nearest the guess. The guess, which is the first
// trial, is among them unless it took more than twice as long as the best. If there is no other,
// the runner-up is: what was timed once may have been timed in a lucky moment. Returns their
// number.
int kg_finals_choose(const struct kg_trials *trials, int max, double margin, int *finalists);
// Builds the finalists again (their objects are cached) and races them. Sets their timings; returns
// the winner's place among them, -1 when that fails.
int kg_finals_race(const struct kg_trials *trials, const int *finalists, int count,
                   struct kg_timing *timings);

#endif
