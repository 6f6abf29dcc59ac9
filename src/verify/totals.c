// Running reductions. Sums also accumulate the rounding error of every addition (Knuth's two-sum),
// so that the result is exact to the last bits of f64 in any order.

#include "verify/program.h"

#include <math.h>

#define EQUAL 4 // terms that differ by less are equal to a sum: in its units in the last place

void kg_total_start(const struct kg_pass *pass, struct kg_total *total)
{
    *total = (struct kg_total){.integer = 0};
    switch (pass->reduce) {
    case KG_REDUCE_SUM:
    case KG_REDUCE_MEAN:
        total->low = INFINITY;
        total->high = -INFINITY;
        break;
    case KG_REDUCE_PROD:
        total->value = total->magnitude = total->low = 1;
        total->integer = 1;
        break;
    case KG_REDUCE_MAX:
        total->value = total->low = total->high = -INFINITY;
        total->integer = INT64_MIN;
        break;
    case KG_REDUCE_MIN:
        total->value = total->low = total->high = INFINITY;
        total->integer = INT64_MAX;
        break;
    case KG_REDUCE_ARGMAX:
        total->integer = -1;
        total->high = -INFINITY;
        break;
    case KG_REDUCE_ARGMIN:
        total->integer = -1;
        total->low = INFINITY;
        break;
    case KG_REDUCE_ALL:
        total->integer = 1;
        break;
    default:
        break;
    }
}

static inline void add_term(struct kg_total *total, double x, double slack)
{
    double sum = total->value + x;
    double seen = sum - total->value;
    total->rest += (total->value - (sum - seen)) + (x - seen);
    total->value = sum;
    if (isfinite(x))
        total->magnitude += fabs(x);
    total->low = x < total->low ? x : total->low;
    total->high = x > total->high ? x : total->high;
    total->slack += slack;
}

static inline void multiply_factor(struct kg_total *total, double x, double slack)
{
    // inf * 0 and the like are NaN whatever the slack; only finite numbers propagate theirs.
    double moved = fabs(total->value) * slack + (fabs(x) + slack) * total->slack;
    total->slack = isnan(moved) ? slack + total->slack : moved;
    total->value *= x;
    if (fabs(x) > 1 && isfinite(x))
        total->magnitude *= fabs(x);
    if (fabs(x) < 1 && x != 0)
        total->low *= fabs(x);
}

// `low` and `high` bound a kernel's result: the extremes of x - slack and of x + slack.
static inline void widen_up(struct kg_total *total, double value, double low, double high)
{
    if (isnan(value) || (value > total->value && !isnan(total->value)))
        total->value = value;
    if (low > total->low)
        total->low = low;
    if (high > total->high)
        total->high = high;
}

static inline void widen_down(struct kg_total *total, double value, double low, double high)
{
    if (isnan(value) || (value < total->value && !isnan(total->value)))
        total->value = value;
    if (low < total->low)
        total->low = low;
    if (high < total->high)
        total->high = high;
}

// NaN wins, and among equals the first one, in whatever order they come.
static bool beats(bool largest, double x, int64_t position, const struct kg_total *total)
{
    if (total->count == 0)
        return true;
    if (isnan(total->value) || x == total->value)
        return (isnan(x) || x == total->value) && position < total->integer;
    return isnan(x) || (largest ? x > total->value : x < total->value);
}

// argmax: `slack` belongs to the current winner, and `high` is the largest value that a loser may
// reach (argmin: `low`, the least).
static void contend(bool largest, double x, double slack, int64_t position, struct kg_total *total)
{
    double loser = x, loser_slack = slack;
    bool first = total->count == 0;
    if (beats(largest, x, position, total)) {
        loser = total->value;
        loser_slack = total->slack;
        total->value = x;
        total->slack = slack;
        total->integer = position;
    }
    if (!first && loser + loser_slack > total->high)
        total->high = loser + loser_slack;
    if (!first && loser - loser_slack < total->low)
        total->low = loser - loser_slack;
}

static void contend_integer(bool largest, int64_t x, int64_t position, struct kg_total *total)
{
    bool better = total->count == 0 ||
                  (x == total->best ? position < total->integer : (x > total->best) == largest);
    if (better) {
        total->best = x;
        total->integer = position;
    }
}

static inline void add_real(enum kg_reduce reduce, double x, double slack, int64_t position,
                            struct kg_total *total)
{
    switch (reduce) {
    case KG_REDUCE_SUM:
    case KG_REDUCE_MEAN:
        add_term(total, x, slack);
        break;
    case KG_REDUCE_PROD:
        multiply_factor(total, x, slack);
        break;
    case KG_REDUCE_MAX:
        total->undecided |= isinf(slack);
        widen_up(total, x, x - slack, x + slack);
        break;
    case KG_REDUCE_MIN:
        total->undecided |= isinf(slack);
        widen_down(total, x, x - slack, x + slack);
        break;
    default:
        total->undecided |= isinf(slack);
        contend(reduce == KG_REDUCE_ARGMAX, x, slack, position, total);
        break;
    }
    total->count++;
}

static inline void add_integer(enum kg_reduce reduce, int64_t x, int64_t position,
                               struct kg_total *total)
{
    switch (reduce) {
    case KG_REDUCE_SUM:
        total->integer = (int64_t)((uint64_t)total->integer + (uint64_t)x);
        break;
    case KG_REDUCE_PROD:
        total->integer = (int64_t)((uint64_t)total->integer * (uint64_t)x);
        break;
    case KG_REDUCE_MAX:
        total->integer = x > total->integer ? x : total->integer;
        break;
    case KG_REDUCE_MIN:
        total->integer = x < total->integer ? x : total->integer;
        break;
    case KG_REDUCE_ANY:
        total->integer |= x != 0;
        break;
    case KG_REDUCE_ALL:
        total->integer &= x != 0;
        break;
    default:
        contend_integer(reduce == KG_REDUCE_ARGMAX, x, position, total);
        break;
    }
    total->count++;
}

// Nearly every large reduction is a sum: without a mask it has a specialised loop.
static void add_sums(const struct kg_pass *pass, const struct kg_frame *frame, int from, int to,
                     int step, struct kg_total *totals)
{
    const double *x = frame->real[pass->value], *slack = frame->slack[pass->value];
    for (int i = from; i < to; i++, totals += step) {
        add_term(totals, x[i], slack[i]);
        totals->count++;
    }
}

// What argmax gives for the point in lane `i`.
static int64_t place_of(const struct kg_pass *pass, const struct kg_frame *frame, int i)
{
    bool several = pass->axis_count > pass->output_axes + 1;
    int64_t place = 0;
    for (int a = pass->output_axes; a < pass->axis_count; a++) {
        const struct kg_axis *axis = &pass->axes[a];
        bool moves = a >= pass->lane_axis && a < pass->lane_end;
        int64_t value = frame->axis[a] + (moves ? frame->lane[a][i] : 0);
        place = several ? place * (axis->end - axis->begin) + value - axis->begin : value;
    }
    return place;
}

void kg_totals_add(const struct kg_pass *pass, const struct kg_frame *frame, int from, int to,
                   int step, struct kg_total *totals)
{
    bool is_sum = pass->reduce == KG_REDUCE_SUM || pass->reduce == KG_REDUCE_MEAN;
    if (is_sum && pass->reduce_real && pass->mask < 0) {
        add_sums(pass, frame, from, to, step, totals);
        return;
    }
    bool is_argument = kg_reduces[pass->reduce].is_argument;
    for (int i = from; i < to; i++, totals += step) {
        if (pass->mask >= 0) {
            totals->undecided |= frame->slack[pass->mask][i] != 0;
            if (!frame->integer[pass->mask][i])
                continue;
        }
        int64_t position = is_argument ? place_of(pass, frame, i) : 0;
        double slack = frame->slack[pass->value][i];
        if (pass->reduce_real) {
            add_real(pass->reduce, frame->real[pass->value][i], slack, position, totals);
        } else {
            totals->undecided |= slack != 0;
            add_integer(pass->reduce, frame->integer[pass->value][i], position, totals);
        }
    }
}

static void merge_real(enum kg_reduce reduce, const struct kg_total *from, struct kg_total *into)
{
    double magnitude, low, high;
    switch (reduce) {
    case KG_REDUCE_SUM:
    case KG_REDUCE_MEAN:
        magnitude = into->magnitude + from->magnitude;
        low = fmin(into->low, from->low);
        high = fmax(into->high, from->high);
        add_term(into, from->value, from->slack);
        into->rest += from->rest;
        into->magnitude = magnitude;
        into->low = low;
        into->high = high;
        break;
    case KG_REDUCE_PROD:
        magnitude = into->magnitude * from->magnitude;
        low = into->low * from->low;
        multiply_factor(into, from->value, from->slack);
        into->magnitude = magnitude;
        into->low = low;
        break;
    case KG_REDUCE_MAX:
        widen_up(into, from->value, from->low, from->high);
        break;
    case KG_REDUCE_MIN:
        widen_down(into, from->value, from->low, from->high);
        break;
    default:
        contend(reduce == KG_REDUCE_ARGMAX, from->value, from->slack, from->integer, into);
        into->high = fmax(into->high, from->high);
        into->low = fmin(into->low, from->low);
        break;
    }
}

void kg_total_merge(const struct kg_pass *pass, const struct kg_total *from, struct kg_total *into)
{
    into->undecided |= from->undecided;
    if (from->count == 0)
        return;
    int64_t count = into->count + from->count;
    if (pass->reduce_real)
        merge_real(pass->reduce, from, into);
    else if (kg_reduces[pass->reduce].is_argument)
        contend_integer(pass->reduce == KG_REDUCE_ARGMAX, from->best, from->integer, into);
    else
        add_integer(pass->reduce, from->integer, 0, into);
    into->count = count;
}

// Units in the last place of the sum of magnitudes that adding `count` terms may lose. One
// sequential accumulator is off by about sqrt(count) / 3, a tree by log2(count); the bound accepts
// both, and rejects 11-bit accumulation by orders of magnitude. Equal terms may all round to the
// same side.
static double growth(int64_t count, bool equal)
{
    double n = count < 1 ? 1 : (double)count;
    return 8 + log2(n) + (equal ? n / 2 : sqrt(n / 8));
}

static double sum_slack(const struct kg_pass *pass, const struct kg_total *total, double sum)
{
    const struct kg_precision *p = pass->precision;
    // Partial sums may overflow in some orders and not in others, before an infinite term or after.
    double lesser_side = (total->magnitude - fabs(sum)) / 2;
    bool overflows = total->magnitude > p->largest;
    if (isinf(total->magnitude) || (isfinite(sum) && lesser_side > p->largest) ||
        (overflows && (isinf(sum) || fabs(sum) <= p->largest)))
        return INFINITY;
    bool equal = total->high - total->low <= EQUAL * p->unit * fabs(sum);
    return total->slack + p->unit * growth(total->count, equal) * total->magnitude;
}

static double product_slack(const struct kg_pass *pass, const struct kg_total *total)
{
    const struct kg_precision *p = pass->precision;
    // `magnitude` is the largest partial product of any order: it amplifies the error of underflow.
    if (total->magnitude > p->largest)
        return INFINITY;
    // An infinite factor makes the product infinite, unless others underflow to 0 before they meet
    // it.
    if (isinf(total->value))
        return total->low < p->normal ? INFINITY : total->slack;
    if (isnan(total->value))
        return total->slack;
    return total->slack + p->unit * growth(total->count, false) * fabs(total->value) +
           p->tiny * total->magnitude;
}

static double extreme_slack(const struct kg_total *total)
{
    if (!isfinite(total->value))
        return 0;
    return fmax(total->high - total->value, total->value - total->low);
}

static void finish_real(const struct kg_pass *pass, const struct kg_total *total, double *real,
                        double *slack)
{
    double value = total->value, reach = 0;
    if (pass->reduce == KG_REDUCE_SUM || pass->reduce == KG_REDUCE_MEAN) {
        if (isfinite(value))
            value += total->rest;
        reach = sum_slack(pass, total, value);
        if (pass->reduce == KG_REDUCE_MEAN) {
            double count = (double)total->count; // 0 / 0 is NaN
            value /= count;
            double rounding = isfinite(value) ? pass->precision->unit * fabs(value) : 0;
            reach = total->count ? reach / count + rounding : 0;
            // The sum may overflow on the way to a mean that does not.
            if (total->magnitude > pass->precision->largest)
                reach = INFINITY;
        }
    } else if (pass->reduce == KG_REDUCE_PROD) {
        reach = product_slack(pass, total);
    } else {
        reach = extreme_slack(total);
    }
    if (!isfinite(value) && !isinf(reach))
        reach = 0;
    if (isfinite(value) && fabs(value) > pass->precision->limit)
        reach = INFINITY;
    if (total->undecided)
        reach = INFINITY;
    *real = value;
    if (slack)
        *slack = reach;
}

void kg_total_finish(const struct kg_pass *pass, const struct kg_total *total, double *real,
                     int64_t *integer, double *slack)
{
    if (real) {
        finish_real(pass, total, real, slack);
        return;
    }
    *integer = total->integer;
    bool undecided = total->undecided;
    if (pass->reduce_real && pass->reduce == KG_REDUCE_ARGMAX)
        undecided |= total->high > total->value - total->slack;
    if (pass->reduce_real && pass->reduce == KG_REDUCE_ARGMIN)
        undecided |= total->low < total->value + total->slack;
    if (slack)
        *slack = undecided ? INFINITY : 0;
}
