// The two plots of a problem: its rounds as an inline SVG, its fastest candidates as bars.
// Coordinates are integers, so that no locale can insert a comma.

#include "report/html.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 560
#define HEIGHT 240
#define LEFT 84
#define RIGHT 14
#define TOP 22
#define BOTTOM 36
#define NAME_HEIGHT 18 // of the label of a reference line
#define MAX_LABELS 14
#define MAX_BARS 20
#define LOGARITHMIC 6.0 // from this ratio of the largest to the least time on

// Converts seconds to pixels, downwards: linear from zero, or logarithmic if small times would not
// be visible.
struct scale {
    bool logarithmic;
    double low, high;
};

static void widen(struct scale *scale, double seconds)
{
    if (!kg_view_known(seconds))
        return;
    if (scale->high <= 0 || seconds > scale->high)
        scale->high = seconds;
    if (scale->low <= 0 || seconds < scale->low)
        scale->low = seconds;
}

static struct scale make_scale(const struct kg_view *view)
{
    struct scale scale = {0};
    widen(&scale, view->baseline);
    widen(&scale, view->roofline);
    for (int i = 0; i < view->round_count; i++)
        widen(&scale, view->rounds[i].after);
    scale.logarithmic = scale.high > LOGARITHMIC * scale.low;
    scale.high *= scale.logarithmic ? 1.4 : 1.1;
    scale.low = scale.logarithmic ? scale.low / 1.4 : 0;
    return scale;
}

static int to_y(const struct scale *scale, double seconds)
{
    double part = scale->logarithmic ? log(seconds / scale->low) / log(scale->high / scale->low)
                                     : seconds / scale->high;
    return HEIGHT - BOTTOM - (int)lround(part * (HEIGHT - TOP - BOTTOM));
}

static int to_x(const struct kg_view *view, int index)
{
    return LEFT + (int)lround((index + 0.5) / view->round_count * (WIDTH - LEFT - RIGHT));
}

static void add_tick(struct kg_text *page, const struct scale *scale, double seconds)
{
    int y = to_y(scale, seconds);
    kg_text_format(page,
                   "<path class=\"grid\" d=\"M%d %dH%d\"/><text x=\"%d\" y=\"%d\" "
                   "text-anchor=\"end\">",
                   LEFT, y, WIDTH - RIGHT, LEFT - 8, y + 4);
    if (seconds > 0)
        kg_text_seconds(page, seconds);
    else
        kg_text_add(page, "0");
    kg_text_add(page, "</text>\n");
}

// Ticks at 1, 2 and 5 of each power of ten; over many powers, at the powers alone.
static void add_ticks(struct kg_text *page, const struct scale *scale)
{
    static const double digits[] = {1, 2, 5};
    if (scale->logarithmic) {
        int count = scale->high / scale->low < 200 ? 3 : 1;
        for (int power = (int)floor(log10(scale->low)); power <= log10(scale->high); power++)
            for (int i = 0; i < count; i++) {
                double tick = digits[i] * pow(10, power);
                if (tick >= scale->low && tick <= scale->high)
                    add_tick(page, scale, tick);
            }
        return;
    }
    double power = pow(10, floor(log10(scale->high / 2)));
    double step = power;
    for (int i = 0; i < 3 && scale->high / step > 5; i++)
        step = digits[i] * power;
    for (int i = 0; i * step <= scale->high; i++)
        add_tick(page, scale, i * step);
}

static void add_line(struct kg_text *page, const char *name, int y, int name_y)
{
    kg_text_format(page, "<path class=\"%s\" d=\"M%d %dH%d\"/>", name, LEFT, y, WIDTH - RIGHT);
    kg_text_format(
        page, "<text class=\"%s-name\" x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", name,
        WIDTH - RIGHT, name_y, strcmp(name, "base") == 0 ? "baseline" : "roofline");
}

// Labels stand above their lines; the lower one's below its line if they would overlap.
static void add_references(struct kg_text *page, const struct scale *scale,
                           const struct kg_view *view)
{
    bool both = view->baseline > 0 && view->roofline > 0;
    int base = view->baseline > 0 ? to_y(scale, view->baseline) : 0;
    int roof = view->roofline > 0 ? to_y(scale, view->roofline) : 0;
    bool meet = both && abs(roof - base) < NAME_HEIGHT + 4;
    if (view->baseline > 0)
        add_line(page, "base", base, meet && base > roof ? base + NAME_HEIGHT : base - 5);
    if (view->roofline > 0)
        add_line(page, "roof", roof, meet && roof >= base ? roof + NAME_HEIGHT : roof - 5);
}

// The best time so far, as a step function; round 0 starts another build.
static void add_steps(struct kg_text *page, const struct scale *scale, const struct kg_view *view)
{
    double best = 0;
    kg_text_add(page, "<path class=\"step\" d=\"");
    for (int i = 0; i < view->round_count; i++) {
        const struct kg_round *round = &view->rounds[i];
        if (round->number == 0)
            best = 0;
        if (!kg_view_known(round->after))
            continue;
        if (best <= 0)
            kg_text_format(page, "M%d %d", to_x(view, i), to_y(scale, round->after));
        else
            kg_text_format(page, "H%dV%d", to_x(view, i), to_y(scale, fmin(best, round->after)));
        best = best <= 0 ? round->after : fmin(best, round->after);
    }
    kg_text_add(page, "\"/>\n");
}

static void add_points(struct kg_text *page, const struct scale *scale, const struct kg_view *view)
{
    double best = 0;
    for (int i = 0; i < view->round_count; i++) {
        const struct kg_round *round = &view->rounds[i];
        if (round->number == 0)
            best = 0;
        if (!kg_view_known(round->after))
            continue;
        bool kept = best <= 0 || round->after < best;
        if (kept)
            best = round->after;
        kg_text_format(page, "<circle class=\"%s\" cx=\"%d\" cy=\"%d\" r=\"5\"><title>round %d: ",
                       kept ? "kept" : "tried", to_x(view, i), to_y(scale, round->after),
                       round->number);
        kg_text_seconds(page, round->after);
        kg_text_add(page, ", ");
        kg_html_text(page, round->choice);
        kg_text_add(page, "</title></circle>\n");
    }
}

static void add_numbers(struct kg_text *page, const struct kg_view *view)
{
    int every = (view->round_count + MAX_LABELS - 1) / MAX_LABELS;
    for (int i = 0; i < view->round_count; i++) {
        int x = to_x(view, i);
        if (i > 0 && view->rounds[i].number == 0)
            kg_text_format(page, "<path class=\"edge\" d=\"M%d %dV%d\"/>",
                           (x + to_x(view, i - 1)) / 2, TOP, HEIGHT - BOTTOM);
        if (i % every == 0)
            kg_text_format(page, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%d</text>\n", x,
                           HEIGHT - BOTTOM + 18, view->rounds[i].number);
    }
}

void kg_html_rounds(struct kg_text *page, const struct kg_view *view)
{
    bool any = false;
    for (int i = 0; i < view->round_count; i++)
        any |= kg_view_known(view->rounds[i].after);
    if (!any)
        return;
    struct scale scale = make_scale(view);
    kg_text_format(page,
                   "<h4>Time after each round</h4>\n<svg viewBox=\"0 0 %d %d\" role=\"img\" "
                   "aria-label=\"Time after each round, against baseline and roofline\">\n",
                   WIDTH, HEIGHT);
    add_ticks(page, &scale);
    add_numbers(page, view);
    add_references(page, &scale, view);
    add_steps(page, &scale, view);
    add_points(page, &scale, view);
    kg_text_add(page, "</svg>\n");
}

// In thousandths of the whole, at most 1000.
static int part_of(double seconds, double whole)
{
    return kg_view_known(seconds) ? (int)lround(fmin(seconds / whole, 1) * 1000) : 0;
}

static void add_bar(struct kg_text *page, const struct kg_view *view,
                    const struct kg_outcome *outcome, double whole)
{
    bool best = view->choice && strcmp(outcome->choice, view->choice) == 0;
    kg_text_format(page, "<li%s><code>", best ? " class=\"best\"" : "");
    kg_html_text(page, outcome->choice);
    kg_text_format(
        page, "%s</code><span class=\"track\"><span class=\"fill\" style=\"--part:%d\"></span>",
        outcome->timing.abandoned ? " <i>stopped early</i>" : "",
        part_of(outcome->timing.median, whole));
    if (kg_view_known(outcome->bound))
        kg_text_format(page, "<span class=\"bound\" style=\"--part:%d\"></span>",
                       part_of(outcome->bound, whole));
    kg_text_add(page, "</span><span class=\"number\">");
    kg_html_seconds(page, outcome->timing.median);
    kg_text_add(page, "</span></li>\n");
}

void kg_html_candidates(struct kg_text *page, const struct kg_view *view)
{
    const struct kg_outcomes *outcomes = &view->outcomes;
    int measured = outcomes->by_kind[KG_OUTCOME_MEASURED];
    int shown = measured < MAX_BARS ? measured : MAX_BARS;
    double whole = 0;
    for (int i = 0; i < shown; i++) // measured ones come first
        if (kg_view_known(outcomes->list[i].timing.median))
            whole = fmax(whole, outcomes->list[i].timing.median);
    if (whole <= 0)
        return;
    kg_text_add(page, "<h4>Fastest candidates</h4>\n<ol class=\"bars\">\n");
    for (int i = 0; i < shown; i++)
        add_bar(page, view, &outcomes->list[i], whole);
    kg_text_format(page,
                   "</ol>\n<p class=\"soft\">%d of %d measured, with the times of the "
                   "search. <span class=\"key\"></span> the least time its bytes and operations "
                   "allow.</p>\n",
                   shown, measured);
}
