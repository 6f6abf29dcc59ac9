// Sums, means and extremes of values alone: no slack, no compensation, so that compilers can
// vectorise them.

#include "verify/program.h"

#include <math.h>

bool kg_plain_totals_fit(const struct kg_program *program, const struct kg_pass *pass)
{
    enum kg_reduce reduce = pass->reduce;
    return program->values_only && pass->has_reduce && pass->reduce_real && pass->mask < 0 &&
           (reduce == KG_REDUCE_SUM || reduce == KG_REDUCE_MEAN || reduce == KG_REDUCE_MAX ||
            reduce == KG_REDUCE_MIN);
}

void kg_plain_totals_start(const struct kg_pass *pass, double totals[KG_LANES])
{
    double first = pass->reduce == KG_REDUCE_MAX   ? -INFINITY
                   : pass->reduce == KG_REDUCE_MIN ? INFINITY
                                                   : 0;
    for (int i = 0; i < KG_LANES; i++)
        totals[i] = first;
}

// NaN wins.
static double larger(double a, double b)
{
    return b > a || isnan(b) ? b : a;
}

static double smaller(double a, double b)
{
    return b < a || isnan(b) ? b : a;
}

void kg_plain_totals_add(const struct kg_pass *pass, const struct kg_frame *frame,
                         double totals[KG_LANES])
{
    const double *restrict values = frame->real[pass->value];
    int lanes = frame->lanes;
    if (pass->reduce == KG_REDUCE_MAX)
        for (int i = 0; i < lanes; i++)
            totals[i] = larger(totals[i], values[i]);
    else if (pass->reduce == KG_REDUCE_MIN)
        for (int i = 0; i < lanes; i++)
            totals[i] = smaller(totals[i], values[i]);
    else
        for (int i = 0; i < lanes; i++)
            totals[i] += values[i];
}

double kg_plain_totals_merge(const struct kg_pass *pass, const double *totals, int lanes)
{
    double total = totals[0];
    for (int i = 1; i < lanes; i++)
        total = pass->reduce == KG_REDUCE_MAX   ? larger(total, totals[i])
                : pass->reduce == KG_REDUCE_MIN ? smaller(total, totals[i])
                                                : total + totals[i];
    return total;
}

double kg_plain_totals_finish(const struct kg_pass *pass, double total)
{
    double count = 1;
    for (int a = pass->output_axes; a < pass->axis_count; a++)
        count *= (double)pass->axes[a].extent;
    return pass->reduce == KG_REDUCE_MEAN ? total / count : total; // 0 / 0 is NaN
}
