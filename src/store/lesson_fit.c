// What a problem's measured times say beyond what families expected of them. A time over the
// expected one is taken as a product of one factor for the problem and one for each value and the
// family of its candidate. Factors are drawn towards 1, as a few candidates show few of them, and
// fast candidates count the most.

#include "store/lesson_tally.h"

#include <math.h>
#include <stdlib.h>

enum { LEAST_SAMPLES = 4, SWEEPS = 8 };
#define RIDGE 3.0 // measurements of the fastest candidate that say that an effect is 0

void kg_lesson_fit_add(struct kg_lesson_tallies *tallies, const struct kg_lesson_sample *sample)
{
    if (tallies->sample_count == tallies->sample_capacity) {
        int capacity = tallies->sample_capacity ? 2 * tallies->sample_capacity : 64;
        struct kg_lesson_sample *larger =
            realloc(tallies->samples, (size_t)capacity * sizeof *larger);
        if (!larger) {
            tallies->failed = true;
            return;
        }
        tallies->samples = larger;
        tallies->sample_capacity = capacity;
    }
    tallies->samples[tallies->sample_count++] = *sample;
}

static bool has(const struct kg_lesson_sample *sample, int tally)
{
    for (int i = 0; i < sample->count; i++)
        if (sample->tallies[i] == tally)
            return true;
    return false;
}

// What is left of a sample's logarithm without the mean and the effects of all its subjects.
static double rest_of(const struct kg_lesson_tallies *tallies,
                      const struct kg_lesson_sample *sample, double mean)
{
    double rest = sample->logarithm - mean;
    for (int i = 0; i < sample->count; i++)
        rest -= tallies->list[sample->tallies[i]].effect;
    return rest;
}

static double weight_of(const struct kg_lesson_sample *sample, double least)
{
    return least / sample->seconds * (least / sample->seconds);
}

static void fit_mean(const struct kg_lesson_tallies *tallies, double least, double *mean)
{
    double sum = 0, weight = 0;
    for (int i = 0; i < tallies->sample_count; i++) {
        const struct kg_lesson_sample *sample = &tallies->samples[i];
        sum += weight_of(sample, least) * rest_of(tallies, sample, 0);
        weight += weight_of(sample, least);
    }
    *mean = sum / weight;
}

static void fit_one(struct kg_lesson_tallies *tallies, int at, double least, double mean)
{
    struct kg_lesson_tally *tally = &tallies->list[at];
    double sum = 0, weight = 0;
    for (int i = 0; i < tallies->sample_count; i++) {
        const struct kg_lesson_sample *sample = &tallies->samples[i];
        if (!has(sample, at))
            continue;
        sum += weight_of(sample, least) * (rest_of(tallies, sample, mean) + tally->effect);
        weight += weight_of(sample, least);
        tally->fitted = true;
    }
    tally->effect = sum / (weight + RIDGE);
}

void kg_lesson_fit(struct kg_lesson_tallies *tallies)
{
    double least = INFINITY, mean;
    if (tallies->sample_count < LEAST_SAMPLES)
        return;
    for (int i = 0; i < tallies->sample_count; i++)
        least = fmin(least, tallies->samples[i].seconds);
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        fit_mean(tallies, least, &mean);
        for (int t = 0; t < tallies->count; t++)
            fit_one(tallies, t, least, mean);
    }
}
