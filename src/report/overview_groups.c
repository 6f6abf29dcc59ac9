// Problems of an overview that belong together: shapes of one op, and one problem on several
// devices.

#include "report/overview.h"

#include <math.h>
#include <string.h>

static bool is_same_hash(struct kg_hash a, struct kg_hash b)
{
    return a.high == b.high && a.low == b.low;
}

static bool is_same_op(const struct kg_shown_problem *a, const struct kg_shown_problem *b)
{
    return strcmp(a->op, b->op) == 0 && is_same_hash(a->definition, b->definition) &&
           strcmp(a->dtypes, b->dtypes) == 0 && strcmp(a->protocol, b->protocol) == 0;
}

static bool is_shape_of(const struct kg_shown_problem *a, const struct kg_shown_problem *b)
{
    return is_same_op(a, b) && a->device == b->device && kg_shown_ratio(b) > 0;
}

int kg_overview_next_shape(const struct kg_overview *overview, int first, int after)
{
    for (int i = after + 1; i < overview->problem_count; i++)
        if (is_shape_of(&overview->problems[first], &overview->problems[i]))
            return i;
    return -1;
}

bool kg_overview_speedups(const struct kg_overview *overview, int first, struct kg_speedups *shapes)
{
    *shapes = (struct kg_speedups){0};
    if (kg_overview_next_shape(overview, first, -1) != first)
        return false;
    double logs = 0;
    for (int i = first; i >= 0; i = kg_overview_next_shape(overview, first, i)) {
        double ratio = kg_shown_ratio(&overview->problems[i]);
        shapes->least = shapes->count == 0 ? ratio : fmin(shapes->least, ratio);
        shapes->most = fmax(shapes->most, ratio);
        shapes->count++;
        logs += log(ratio);
    }
    shapes->mean = exp(logs / shapes->count);
    return shapes->count > 1;
}

static bool is_same_problem(const struct kg_shown_problem *a, const struct kg_shown_problem *b)
{
    return is_same_op(a, b) && strcmp(a->sizes, b->sizes) == 0 &&
           strcmp(a->layout, b->layout) == 0 && kg_view_known(b->seconds);
}

int kg_overview_on(const struct kg_overview *overview, int problem, int device)
{
    for (int i = overview->problem_count - 1; i >= 0; i--)
        if (overview->problems[i].device == device &&
            is_same_problem(&overview->problems[problem], &overview->problems[i]))
            return i;
    return -1;
}

bool kg_overview_is_shared(const struct kg_overview *overview, int first)
{
    const struct kg_shown_problem *own = &overview->problems[first];
    bool shared = false;
    for (int i = 0; i < overview->problem_count && kg_view_known(own->seconds); i++) {
        if (!is_same_problem(own, &overview->problems[i]))
            continue;
        if (i < first)
            return false;
        shared |= overview->problems[i].device != own->device;
    }
    return shared;
}
