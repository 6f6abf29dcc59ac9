// See axis.h.

#include "report/axis.h"

#include <math.h>

#define MOST_POWER 300 // ticks are numbers, too
#define MAX_TICKS 7    // of an axis
#define GAP_X 22       // from the frame to the baseline of labels below
#define GAP_Y 8        // and to the end of labels beside it

void kg_axis_include(struct kg_axis *axis, double value)
{
    if (!isfinite(value) || value <= 0)
        return;
    // Rounding must not make a new decade of 1e-6 that was computed as 0.9999999e-6.
    double power = fmin(fmax(log10(value), -MOST_POWER), MOST_POWER);
    int low = (int)floor(power + 1e-9), high = (int)ceil(power - 1e-9);
    if (!axis->used || low < axis->low)
        axis->low = low;
    if (!axis->used || high > axis->high)
        axis->high = high;
    axis->used = true;
    if (axis->low == axis->high)
        axis->high++;
}

int kg_axis_place(const struct kg_axis *axis, double value)
{
    double part = value > 0 ? (log10(value) - axis->low) / (axis->high - axis->low) : 0;
    return axis->start + (int)lround(fmin(fmax(part, 0), 1) * (axis->end - axis->start));
}

int kg_axis_step(const struct kg_axis *axis, int most)
{
    int step = 1;
    while ((axis->high - axis->low) / step + 1 > most)
        step++;
    return step;
}

void kg_frame_draw(struct kg_text *page, const struct kg_frame *frame)
{
    const struct kg_axis *x = &frame->x, *y = &frame->y;
    int step = kg_axis_step(x, MAX_TICKS);
    for (int power = x->low; power <= x->high; power += step) {
        int place = kg_axis_place(x, pow(10, power));
        kg_text_format(page,
                       "<path class=\"grid\" d=\"M%d %dV%d\"/><text x=\"%d\" y=\"%d\" "
                       "text-anchor=\"middle\">",
                       place, y->start, y->end, place, y->start + GAP_X);
        frame->label_x(page, pow(10, power));
        kg_text_add(page, "</text>\n");
    }
    step = kg_axis_step(y, MAX_TICKS);
    for (int power = y->high; power >= y->low; power -= step) {
        int place = kg_axis_place(y, pow(10, power));
        kg_text_format(page,
                       "<path class=\"grid\" d=\"M%d %dH%d\"/><text x=\"%d\" y=\"%d\" "
                       "text-anchor=\"end\">",
                       x->start, place, x->end, x->start - GAP_Y, place + 4);
        frame->label_y(page, pow(10, power));
        kg_text_add(page, "</text>\n");
    }
}

void kg_label_number(struct kg_text *page, double value)
{
    kg_text_format(page, "%g", value);
}

void kg_label_percent(struct kg_text *page, double value)
{
    kg_text_format(page, "%g%%", 100 * value);
}

void kg_label_seconds(struct kg_text *page, double value)
{
    static const char *const units[] = {"s", "ms", "us", "ns", "ps"};
    int unit = 0;
    double scaled = value;
    for (; scaled < 0.999 && unit < 4; unit++)
        scaled *= 1000;
    kg_text_format(page, "%.4g %s", scaled, units[unit]);
}

void kg_label_ratio(struct kg_text *text, double ratio)
{
    kg_text_format(text, "%.*f", ratio < 9.995 ? 2 : ratio < 99.95 ? 1 : 0, ratio);
}
