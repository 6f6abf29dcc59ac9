// Counts values that were stored otherwise than to the nearest, and the side they lie on.
//
// Tolerances accept errors of a whole step of a narrow float, so that single values may be rounded
// otherwise. A store that drops bits does so with half of all values, and all of them move the same
// way. A value counts where its slack leaves no doubt about its rounding and it is not close to a
// tie: a correct kernel never rounds such a value wrongly, whatever the data are.

#ifndef KG_VERIFY_ROUNDINGS_H
#define KG_VERIFY_ROUNDINGS_H

#include "lang/dtype.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define KG_ROUNDING_BINS 1024

struct kg_roundings {
    int64_t count;    // whose rounding is certain
    int64_t distinct; // about as many different values among them, KG_ROUNDING_BINS at most
    int64_t inward;   // moved towards zero, less those moved away from it
    int64_t downward; // moved down, less those moved up
    uint64_t seen[KG_ROUNDING_BINS / 64];
};

// The largest power of two that is no larger than a normal `value` > 0.
static inline double kg_rounding_power_below(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits &= (uint64_t)0x7ff << 52;
    memcpy(&value, &bits, sizeof bits);
    return value;
}

// Half the distance between `value` and its neighbours in the dtype; 0 for integers, infinity and
// NaN.
static inline double kg_rounding_half_step(enum kg_dtype dtype, double value)
{
    const struct kg_dtype_info *info = &kg_dtypes[dtype];
    double magnitude = fabs(value);
    if (!info->is_float || !(magnitude <= DBL_MAX))
        return 0;
    magnitude = magnitude < info->smallest  ? info->smallest
                : magnitude > info->largest ? info->largest
                                            : magnitude;
    return kg_rounding_power_below(magnitude) * (info->epsilon / 2);
}

// Notes a finite value, its slack, and what was stored for it.
void kg_roundings_note(struct kg_roundings *roundings, enum kg_dtype dtype, double value,
                       double slack, double stored);
// Adds the counts of another output.
void kg_roundings_add(struct kg_roundings *roundings, const struct kg_roundings *more);
// Do the stores prefer one side? `part`: the excess of that side as a part of all, with its sign
// (towards zero or down: positive); `side` names it. Both may be NULL.
bool kg_roundings_biased(const struct kg_roundings *roundings, double *part, const char **side);

#endif
