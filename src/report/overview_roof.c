// The roofline of all problems in one plot: where each stands, and how far below the roof.

#include "report/overview.h"

#include <math.h>

#define AT 0.9
#define NEAR 0.5
#define LEAST_INTENSITY 1e-4
#define LEAST_ATTAINED 1e-6

const char *const kg_roof_words[KG_ROOF_RANKS] = {
    [KG_AT_THE_ROOF] = "at the roof (90% of it and more)",
    [KG_NEAR_THE_ROOF] = "from 50 to 90%",
    [KG_FAR_BELOW] = "below 50%",
};

bool kg_shown_place(const struct kg_shown_problem *problem, struct kg_roof_place *place)
{
    const struct kg_cost *cost = &problem->cost;
    if (!kg_view_known(problem->seconds) || !kg_view_known(cost->memory_seconds) ||
        !isfinite(cost->compute_seconds) || cost->compute_seconds < 0)
        return false;
    *place = (struct kg_roof_place){.intensity = cost->compute_seconds / cost->memory_seconds,
                                    .attained = cost->compute_seconds / problem->seconds,
                                    .share = fmax(cost->memory_seconds, cost->compute_seconds) /
                                             problem->seconds};
    if (!isfinite(place->intensity) || !isfinite(place->share))
        return false;
    place->rank = place->share >= AT     ? KG_AT_THE_ROOF
                  : place->share >= NEAR ? KG_NEAR_THE_ROOF
                                         : KG_FAR_BELOW;
    return true;
}

struct kg_roof_place kg_roof_drawn(struct kg_roof_place place)
{
    if (place.intensity < LEAST_INTENSITY) {
        place.intensity = LEAST_INTENSITY;
        place.attained = LEAST_INTENSITY * place.share;
    }
    place.attained = fmax(place.attained, LEAST_ATTAINED);
    return place;
}

int kg_roof_fit(const struct kg_overview *overview, struct kg_axis *x, struct kg_axis *y,
                int counts[KG_ROOF_RANKS])
{
    int shown = 0;
    kg_axis_include(x, 0.1);
    kg_axis_include(x, 10);
    kg_axis_include(y, 0.1);
    kg_axis_include(y, 1);
    for (int i = 0; i < overview->problem_count; i++) {
        struct kg_roof_place place;
        if (!kg_shown_place(&overview->problems[i], &place))
            continue;
        shown++;
        counts[place.rank]++;
        place = kg_roof_drawn(place);
        kg_axis_include(x, place.intensity);
        kg_axis_include(y, fmin(place.attained, 1));
    }
    return shown;
}
