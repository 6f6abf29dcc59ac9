// See ranking.h.

#include "report/ranking.h"

#include <stdlib.h>

#define TIE 0.01 // of the baseline and the generated kernel, whose races nobody compared in pairs

static int compare_numbers(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

// Sorts the values.
static double median_of(double *values, int count)
{
    qsort(values, (size_t)count, sizeof values[0], compare_numbers);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static double ratio_of(const struct kg_timing *one, const struct kg_timing *other)
{
    return other->median > 0 ? one->median / other->median : 1;
}

enum figure { REFERENCE, REFERENCE_SPREAD, BASELINE, BASELINE_SPREAD, BASELINE_RATIO };

static double figure_of(const struct kg_contestant *contestant, enum figure figure)
{
    switch (figure) {
    case REFERENCE:
        return contestant->reference.median;
    case REFERENCE_SPREAD:
        return contestant->reference.spread;
    case BASELINE:
        return contestant->baseline.median;
    case BASELINE_SPREAD:
        return contestant->baseline.spread;
    default:
        return ratio_of(&contestant->baseline, &contestant->reference);
    }
}

// The median over all races. `room` is for as many numbers as there are contestants.
static double over_races(const struct kg_contest *contest, enum figure figure, double *room)
{
    int count = 0;
    for (int i = 0; i < contest->count; i++)
        if (contest->list[i].state == KG_CONTESTANT_RANKED)
            room[count++] = figure_of(&contest->list[i], figure);
    return count ? median_of(room, count) : 0;
}

static int sign_of(double ratio)
{
    return ratio < 1 - TIE ? 1 : ratio > 1 + TIE ? -1 : 0;
}

// Faster ones, then the generated kernel, what is tied with it, and slower ones. Equal files stay
// in the order of their names, which is that of the list.
static int compare_placed(const void *left, const void *right)
{
    const struct kg_placed *a = left, *b = right;
    if (a->standing != b->standing)
        return b->standing - a->standing;
    if (a->standing == 0) {
        bool first = a->contestant == KG_PLACED_REFERENCE;
        if (first || b->contestant == KG_PLACED_REFERENCE)
            return first ? -1 : 1;
    } else if (a->ratio != b->ratio) {
        return a->ratio < b->ratio ? -1 : 1;
    }
    return a->contestant - b->contestant;
}

int kg_contest_rank(const struct kg_contest *contest, struct kg_placed *placed)
{
    int count = 0;
    for (int i = 0; i < contest->count; i++) {
        const struct kg_contestant *contestant = &contest->list[i];
        if (contestant->state == KG_CONTESTANT_RANKED)
            placed[count++] = (struct kg_placed){
                .contestant = i,
                .standing = contestant->standing,
                .ratio = ratio_of(&contestant->timing, &contestant->reference),
                .seconds = contestant->timing.median,
                .spread = contestant->timing.spread,
                .baseline_ratio = ratio_of(&contestant->timing, &contestant->baseline),
            };
    }
    if (count == 0)
        return 0;
    double *room = calloc((size_t)contest->count, sizeof *room);
    if (!room)
        return -1;
    double ratio = over_races(contest, BASELINE_RATIO, room);
    placed[count++] = (struct kg_placed){
        .contestant = KG_PLACED_REFERENCE,
        .ratio = 1,
        .seconds = over_races(contest, REFERENCE, room),
        .spread = over_races(contest, REFERENCE_SPREAD, room),
        .baseline_ratio = ratio > 0 ? 1 / ratio : 1,
    };
    placed[count++] = (struct kg_placed){
        .contestant = KG_PLACED_BASELINE,
        .standing = sign_of(ratio),
        .ratio = ratio,
        .seconds = over_races(contest, BASELINE, room),
        .spread = over_races(contest, BASELINE_SPREAD, room),
        .baseline_ratio = 1,
    };
    free(room);
    qsort(placed, (size_t)count, sizeof placed[0], compare_placed);
    return count;
}
