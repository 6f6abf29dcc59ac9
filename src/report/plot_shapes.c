// The speed-up of each op by shape: a row for each op that was compared with its baseline at
// several shapes, with a dot and its spread for each shape, on one axis.

#include "report/axis.h"
#include "report/overview_figures.h"

#include <math.h>

#define WIDTH 560
#define HEIGHT 26
#define MARGIN 12

// Ratios to pixels, logarithmic.
struct ratios {
    double low, high;
};

static int to_x(const struct ratios *ratios, double ratio)
{
    double part = log(ratio / ratios->low) / log(ratios->high / ratios->low);
    return MARGIN + (int)lround(fmin(fmax(part, 0), 1) * (WIDTH - 2 * MARGIN));
}

static double half_spread(const struct kg_shown_problem *problem)
{
    return fmin(problem->spread, 1) / 2;
}

static void add_shape(struct kg_text *page, const struct ratios *ratios,
                      const struct kg_shown_problem *problem)
{
    double ratio = kg_shown_ratio(problem), half = half_spread(problem);
    kg_html_link(page, problem);
    kg_text_add(page, "<title>");
    kg_html_problem(page, problem);
    kg_text_add(page, ": ");
    kg_label_ratio(page, ratio);
    kg_text_add(page, " times as fast as the baseline");
    if (problem->spread > 0)
        kg_text_format(page, ", spread %.2g%%", 100 * problem->spread);
    kg_text_format(page,
                   "</title><path class=\"whisker\" d=\"M%d %dH%d\"/><path class=\"mark %s\" "
                   "d=\"M%d %dm-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0z\"/></a>\n",
                   to_x(ratios, ratio * (1 - half)), HEIGHT / 2, to_x(ratios, ratio * (1 + half)),
                   ratio < 1 ? "far" : "at", to_x(ratios, ratio), HEIGHT / 2);
}

static void begin_strip(struct kg_text *page, const struct ratios *ratios)
{
    int one = to_x(ratios, 1);
    kg_text_format(page,
                   "<svg class=\"strip\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"Speed-up "
                   "at each shape\">\n<path class=\"grid\" d=\"M%d %dH%d\"/><path class=\"base\" "
                   "d=\"M%d 0V%d\"/>\n",
                   WIDTH, HEIGHT, MARGIN, HEIGHT / 2, WIDTH - MARGIN, one, HEIGHT);
}

static void add_row(struct kg_text *page, const struct kg_overview *overview,
                    const struct ratios *ratios, int first, const struct kg_speedups *shapes)
{
    const struct kg_shown_problem *problem = &overview->problems[first];
    kg_text_add(page, "<li><span>");
    kg_html_text(page, problem->op);
    kg_text_add(page, " <small>");
    kg_html_text(page, problem->dtypes);
    if (overview->device_count > 1) {
        kg_text_add(page, problem->dtypes[0] ? ", " : "");
        kg_html_text(page, kg_overview_device_name(overview, problem->device));
    }
    kg_text_add(page, "</small></span>");
    begin_strip(page, ratios);
    int mean = to_x(ratios, shapes->mean);
    kg_text_format(page, "<path class=\"step\" d=\"M%d 3V%d\"/>\n", mean, HEIGHT - 3);
    for (int i = first; i >= 0; i = kg_overview_next_shape(overview, first, i))
        add_shape(page, ratios, &overview->problems[i]);
    kg_text_add(page, "</svg><span class=\"number\"><b>");
    kg_label_ratio(page, shapes->mean);
    kg_text_add(page, "&times;</b> <small>");
    kg_label_ratio(page, shapes->least);
    kg_text_add(page, " to ");
    kg_label_ratio(page, shapes->most);
    kg_text_format(page, ", %d shapes</small></span></li>\n", shapes->count);
}

// The axis in words, below the rows: its ends and the line.
static void add_axis(struct kg_text *page, const struct ratios *ratios)
{
    static const double ticks[] = {0.01, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 1000};
    kg_text_format(page,
                   "<li><span></span><svg class=\"strip axis\" viewBox=\"0 0 %d %d\" role=\"img\" "
                   "aria-label=\"The axis\">\n",
                   WIDTH, HEIGHT);
    for (size_t i = 0, last = 0; i < sizeof ticks / sizeof ticks[0]; i++) {
        int x = to_x(ratios, ticks[i]);
        if (ticks[i] < ratios->low || ticks[i] > ratios->high || x < 30 || x > WIDTH - 40 ||
            (last && x < (int)last + 60))
            continue;
        last = (size_t)x;
        kg_text_format(page, "<text x=\"%d\" y=\"18\" text-anchor=\"middle\">%g</text>\n", x,
                       ticks[i]);
    }
    kg_text_add(page, "</svg><span></span></li>\n");
}

void kg_html_shapes(struct kg_text *page, const struct kg_overview *overview)
{
    struct ratios ratios = {1, 1};
    struct kg_speedups shapes;
    int rows = 0;
    for (int i = 0; i < overview->problem_count; i++) {
        if (!kg_overview_speedups(overview, i, &shapes))
            continue;
        for (int k = i; k >= 0; k = kg_overview_next_shape(overview, i, k)) {
            const struct kg_shown_problem *shape = &overview->problems[k];
            ratios.low = fmin(ratios.low, kg_shown_ratio(shape) * (1 - half_spread(shape)));
            ratios.high = fmax(ratios.high, kg_shown_ratio(shape) * (1 + half_spread(shape)));
        }
        rows++;
    }
    if (rows == 0)
        return;
    ratios.low /= 1.1;
    ratios.high *= 1.1;
    kg_text_add(page, "<figure class=\"shapes wide\">\n<h3>Speed-up by shape</h3>\n"
                      "<ul class=\"strips\">\n");
    for (int i = 0; i < overview->problem_count; i++)
        if (kg_overview_speedups(overview, i, &shapes))
            add_row(page, overview, &ratios, i, &shapes);
    add_axis(page, &ratios);
    kg_text_add(page,
                "</ul>\n<figcaption>Times as fast as the baseline, which is the dashed line: a "
                "dot for each shape, with the spread of its timings, a stroke at the "
                "geometric mean. Rings are slower.</figcaption></figure>\n");
}
