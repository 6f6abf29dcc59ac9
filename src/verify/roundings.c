#include "verify/roundings.h"

#include <stdlib.h>

// Of half a step: the errors of functions that are approximated for narrow floats, which are alike
// for like values.
#define APPROXIMATION 0.25
// Fewer different values are no evidence.
#define LEAST_DISTINCT 32
// Truncation moves a half of all values to one side. Errors to both sides leave an excess of about
// sqrt(n / 2) of n values; the limit n / 4 + sqrt(n) is 3.4 times that for 32 values, and 7 times
// for 256.
#define LIMIT_PART 0.25

static void note_distinct(struct kg_roundings *roundings, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint64_t bin = bits * 0x9e3779b97f4a7c15u >> 54; // of KG_ROUNDING_BINS
    uint64_t *word = &roundings->seen[bin / 64], bit = (uint64_t)1 << bin % 64;
    roundings->distinct += !(*word & bit);
    *word |= bit;
}

void kg_roundings_note(struct kg_roundings *roundings, enum kg_dtype dtype, double value,
                       double slack, double stored)
{
    double half = kg_rounding_half_step(dtype, value);
    if (slack >= half || fabs(value) > kg_dtypes[dtype].largest)
        return;
    double near = kg_dtype_round(dtype, value), distance = fabs(near - value);
    // The exact result may be representable, or the kernel's own result a tie.
    if (distance <= slack || distance + fmax(slack, APPROXIMATION * half) >= half)
        return;
    roundings->count++;
    note_distinct(roundings, value);
    int up = (stored > near) - (stored < near);
    roundings->downward -= up;
    roundings->inward -= value > 0 ? up : -up;
}

void kg_roundings_add(struct kg_roundings *roundings, const struct kg_roundings *more)
{
    roundings->count += more->count;
    roundings->inward += more->inward;
    roundings->downward += more->downward;
    for (size_t i = 0; i < sizeof roundings->seen / sizeof roundings->seen[0]; i++) {
        uint64_t fresh = more->seen[i] & ~roundings->seen[i];
        roundings->distinct += __builtin_popcountll(fresh);
        roundings->seen[i] |= fresh;
    }
}

bool kg_roundings_biased(const struct kg_roundings *roundings, double *part, const char **side)
{
    bool inward = llabs(roundings->inward) >= llabs(roundings->downward);
    double excess = (double)(inward ? roundings->inward : roundings->downward);
    double share = roundings->count ? excess / (double)roundings->count : 0;
    if (part)
        *part = share;
    if (side)
        *side = inward ? share > 0 ? "towards zero" : "away from zero" : share > 0 ? "down" : "up";
    return roundings->distinct >= LEAST_DISTINCT &&
           fabs(share) > LIMIT_PART + 1 / sqrt((double)roundings->distinct);
}
