// One roofline of every problem: by intensity relative to the ridge and by the share of the peak
// that was attained, so that all data types and devices share the roof min(1, intensity).

#include "report/overview_figures.h"

#include "report/axis.h"

#include <math.h>

#define WIDTH 480
#define HEIGHT 340
#define LEFT 84
#define RIGHT 18
#define TOP 38
#define BOTTOM 56
#define RADIUS 6

// Marks of devices, around a centre: the first one's is a circle.
static const char *const glyphs[] = {
    "m-6 0a6 6 0 1 0 12 0a6 6 0 1 0 -12 0z", // circle
    "m-5 -5h10v10h-10z",                     // square
    "m0 -7l7 12h-14z",                       // triangle
    "m0 -7l7 7l-7 7l-7 -7z",                 // diamond
};
#define GLYPHS ((int)(sizeof glyphs / sizeof glyphs[0]))

// By kg_roof_rank.
static const char *const rank_class[KG_ROOF_RANKS] = {"at", "near", "far"};

static void add_roof(struct kg_text *page, const struct kg_frame *frame)
{
    double left = pow(10, frame->x.low), bottom = pow(10, frame->y.low);
    kg_text_format(page, "<path class=\"roof-line\" d=\"M%d %dL%d %dH%d\"/>\n",
                   kg_axis_place(&frame->x, fmax(left, bottom)),
                   kg_axis_place(&frame->y, fmax(left, bottom)), kg_axis_place(&frame->x, 1),
                   kg_axis_place(&frame->y, 1), frame->x.end);
}

static void add_mark(struct kg_text *page, const struct kg_frame *frame,
                     const struct kg_overview *overview, const struct kg_shown_problem *problem,
                     const struct kg_roof_place *exact)
{
    struct kg_roof_place place = kg_roof_drawn(*exact);
    kg_html_link(page, problem);
    kg_text_add(page, "<title>");
    kg_html_problem(page, problem);
    kg_text_format(page, ": %.3g%% of the roof, intensity %.3g of the ridge, ", 100 * exact->share,
                   exact->intensity);
    kg_html_seconds(page, problem->seconds);
    if (overview->device_count > 1) {
        kg_text_add(page, ", ");
        kg_html_text(page, kg_overview_device_name(overview, problem->device));
    }
    kg_text_format(page, "</title><path class=\"mark %s\" d=\"M%d %d%s\"/></a>\n",
                   rank_class[exact->rank], kg_axis_place(&frame->x, place.intensity),
                   kg_axis_place(&frame->y, place.attained), glyphs[problem->device % GLYPHS]);
}

static void add_key(struct kg_text *page, const char *class, const char *glyph)
{
    kg_text_format(page,
                   "<li><svg class=\"sign\" viewBox=\"0 0 16 16\" aria-hidden=\"true\">"
                   "<path class=\"mark %s\" d=\"M8 8%s\"/></svg> ",
                   class, glyph);
}

static void add_legend(struct kg_text *page, const struct kg_overview *overview,
                       const int counts[KG_ROOF_RANKS])
{
    kg_text_add(page, "<ul class=\"legend\">\n");
    for (int rank = 0; rank < KG_ROOF_RANKS; rank++) {
        add_key(page, rank_class[rank], glyphs[0]);
        kg_text_format(page, "%d %s</li>\n", counts[rank], kg_roof_words[rank]);
    }
    for (int i = 0; i < overview->device_count && overview->device_count > 1; i++) {
        add_key(page, "far", glyphs[i % GLYPHS]);
        kg_html_text(page, kg_overview_device_name(overview, i));
        kg_text_add(page, "</li>\n");
    }
    kg_text_add(page, "</ul>\n");
}

void kg_html_roofline(struct kg_text *page, const struct kg_overview *overview)
{
    struct kg_frame frame = {.x = {.start = LEFT, .end = WIDTH - RIGHT},
                             .y = {.start = HEIGHT - BOTTOM, .end = TOP},
                             .label_x = kg_label_number,
                             .label_y = kg_label_percent};
    struct kg_roof_place place;
    int counts[KG_ROOF_RANKS] = {0};
    int shown = kg_roof_fit(overview, &frame.x, &frame.y, counts);
    if (shown == 0)
        return;
    kg_text_format(page,
                   "<figure class=\"rooflines\">\n<h3>Roofline</h3>\n<svg viewBox=\"0 0 %d %d\" "
                   "role=\"img\" aria-label=\"Share of the peak by intensity, below the roof\">\n",
                   WIDTH, HEIGHT);
    kg_frame_draw(page, &frame);
    add_roof(page, &frame);
    kg_text_add(page, "<text x=\"0\" y=\"18\">share of the peak</text>\n");
    kg_text_format(page,
                   "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">intensity / ridge</text>\n",
                   (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8);
    for (int i = 0; i < overview->problem_count; i++)
        if (kg_shown_place(&overview->problems[i], &place))
            add_mark(page, &frame, overview, &overview->problems[i], &place);
    kg_text_add(page, "</svg>\n");
    add_legend(page, overview, counts);
    kg_text_add(page, "<figcaption>Attained share of the peak of arithmetic, by operations per "
                      "byte. At intensity 1 memory and arithmetic take equal time at their peaks, "
                      "whatever the data type; left of it the roof is memory.");
    if (shown < overview->problem_count)
        kg_text_format(page, " %d without time or noted cost %s not shown.",
                       overview->problem_count - shown,
                       overview->problem_count - shown == 1 ? "is" : "are");
    kg_text_add(page, "</figcaption></figure>\n");
}
