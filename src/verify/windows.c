// Windows: what is checked of outputs that are too dear to compute whole. The first rows, the last
// rows and some in between, along the longest dimension; thinner slices, and slices of further
// dimensions, until the reference is cheap enough.

#include "verify/case.h"
#include "verify/random.h"

#include <math.h>

static int longest(const struct kg_window *window, int rank)
{
    int found = 0;
    for (int d = 1; d < rank; d++)
        if (window->extent[d] > window->extent[found])
            found = d;
    return found;
}

// Cuts every output's window to a share of its longest dimension. False when nothing is left to
// cut.
static bool shrink(const struct kg_problem *problem, struct kg_window *windows, double share)
{
    bool shrunk = false;
    for (int i = 0; i < problem->op->output_count; i++) {
        int rank = problem->op->tensors[problem->op->input_count + i]->rank;
        if (rank == 0)
            continue;
        int64_t *extent = &windows[i].extent[longest(&windows[i], rank)];
        int64_t wanted = (int64_t)((double)*extent * share);
        wanted = wanted < 1 ? 1 : wanted;
        shrunk |= *extent > 1 && wanted < *extent;
        *extent = *extent < wanted ? *extent : wanted;
    }
    return shrunk;
}

// Windows number 0, 1, 2 stand at the beginning, the end, and anywhere: at the same place of all
// outputs, because the reference computes everything between the elements of one output that
// another one needs and those of its own window.
static void place(const struct kg_problem *problem, struct kg_window *windows, int number,
                  struct kg_random *random)
{
    double where[KG_MAX_RANK];
    for (int d = 0; d < KG_MAX_RANK; d++)
        where[d] = number == 0 ? 0 : number == 1 ? 1 : kg_random_uniform(random);
    for (int i = 0; i < problem->op->output_count; i++) {
        int tensor = problem->op->input_count + i;
        for (int d = 0; d < problem->op->tensors[tensor]->rank; d++) {
            int64_t room = problem->layouts[tensor].shape[d] - windows[i].extent[d];
            windows[i].low[d] = (int64_t)fmin(where[d] * ((double)room + 1), (double)room);
        }
    }
}

enum kg_status kg_case_windows(const struct kg_problem *problem, double effort, uint64_t seed,
                               struct kg_window windows[KG_MAX_WINDOWS][KG_MAX_TENSORS], int *count,
                               struct kg_error *error)
{
    double cost;
    *count = 0;
    enum kg_status status = kg_reference_cost(problem, NULL, &cost, error);
    if (status != KG_OK || cost <= effort)
        return status;
    struct kg_window *first = windows[0];
    for (int i = 0; i < problem->op->output_count; i++)
        for (int d = 0; d < KG_MAX_RANK; d++)
            first[i].extent[d] = problem->layouts[problem->op->input_count + i].shape[d];
    double each = effort / KG_MAX_WINDOWS;
    bool shrunk = true;
    while (status == KG_OK && cost > each && shrunk) {
        double share = each / cost;
        shrunk = shrink(problem, first, share < 0.001 ? 0.001 : share);
        place(problem, first, 1, NULL); // the end: scans depend on all that is before
        status = kg_reference_cost(problem, first, &cost, error);
    }
    struct kg_random random = kg_random_make(seed, 77);
    for (int w = KG_MAX_WINDOWS - 1; w >= 0; w--) {
        for (int i = 0; i < problem->op->output_count; i++)
            windows[w][i] = first[i];
        place(problem, windows[w], w, &random);
    }
    *count = status == KG_OK ? KG_MAX_WINDOWS : 0;
    return status;
}
