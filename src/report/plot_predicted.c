// The predicted and the measured time of every candidate of a device. A problem's candidates are
// one path of dots, of which each pixel has one: the size of the page does not grow with searches.

#include "report/overview_figures.h"

#include "report/axis.h"

#include <math.h>
#include <string.h>

#define WIDTH 480
#define HEIGHT 340
#define LEFT 78
#define RIGHT 38
#define TOP 38
#define BOTTOM 56

static void add_dots(struct kg_text *page, const struct kg_frame *frame,
                     const struct kg_shown_problem *problem)
{
    static const unsigned char none[WIDTH * HEIGHT / 8];
    unsigned char drawn[WIDTH * HEIGHT / 8];
    memcpy(drawn, none, sizeof drawn);
    kg_html_link(page, problem);
    kg_text_add(page, "<title>");
    kg_html_problem(page, problem);
    kg_text_format(page, ": %d candidate%s</title><path class=\"dots\" d=\"", problem->spot_count,
                   problem->spot_count == 1 ? "" : "s");
    for (int i = 0; i < problem->spot_count; i++) {
        int x = kg_axis_place(&frame->x, problem->spots[i].predicted);
        int y = kg_axis_place(&frame->y, problem->spots[i].measured);
        int bit = y * WIDTH + x;
        if (!(drawn[bit / 8] & 1 << bit % 8))
            kg_text_format(page, "M%d %dh0", x, y);
        drawn[bit / 8] |= (unsigned char)(1 << bit % 8);
    }
    kg_text_add(page, "\"/></a>\n");
}

static void add_caption(struct kg_text *page, const struct kg_predicted *predicted)
{
    kg_text_format(page, "<figcaption>%d measured candidate%s, %s.", predicted->spots,
                   predicted->spots == 1 ? "" : "s",
                   predicted->by == KG_VIEW_ESTIMATE
                       ? "by the model&#39;s estimate from their instructions; below the dashed "
                         "line they were faster than predicted"
                       : "by the least time that their family allows: the model does not know "
                         "this device. None can be below the dashed line");
    if (predicted->order.pairs > 0)
        kg_text_format(page,
                       " Of %.0f pairs of one problem that differ beyond the noise, <b>%.1f%%</b> "
                       "are in the predicted order.",
                       predicted->order.pairs,
                       100 * predicted->order.right / predicted->order.pairs);
    kg_text_add(page, "</figcaption>");
}

void kg_html_predicted(struct kg_text *page, const struct kg_overview *overview, int device)
{
    struct kg_predicted predicted = kg_overview_predicted(overview, device);
    if (predicted.spots == 0)
        return;
    struct kg_frame frame = {.x = {.start = LEFT, .end = WIDTH - RIGHT},
                             .y = {.start = HEIGHT - BOTTOM, .end = TOP},
                             .label_x = kg_label_seconds,
                             .label_y = kg_label_seconds};
    for (int i = 0; i < overview->problem_count; i++) {
        const struct kg_shown_problem *problem = &overview->problems[i];
        for (int k = 0; k < problem->spot_count; k++)
            if (problem->device == device && problem->prediction == predicted.by) {
                kg_axis_include(&frame.x, problem->spots[k].predicted);
                kg_axis_include(&frame.x, problem->spots[k].measured);
            }
    }
    frame.y.low = frame.x.low;
    frame.y.high = frame.x.high;
    kg_text_add(page, "<figure class=\"predicted\">\n<h3>Predicted and measured</h3>\n"
                      "<p class=\"soft\">");
    kg_html_text(page, kg_overview_device_name(overview, device));
    kg_text_format(page,
                   "</p>\n<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"Measured time by "
                   "predicted time of every candidate\">\n",
                   WIDTH, HEIGHT);
    kg_frame_draw(page, &frame);
    kg_text_add(page, "<text x=\"0\" y=\"18\">measured</text>\n");
    kg_text_format(page, "<path class=\"roof\" d=\"M%d %dL%d %d\"/>\n", frame.x.start,
                   frame.y.start, frame.x.end, frame.y.end);
    kg_text_format(page, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
                   (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8,
                   predicted.by == KG_VIEW_ESTIMATE ? "predicted" : "least possible");
    for (int i = 0; i < overview->problem_count; i++)
        if (overview->problems[i].device == device && overview->problems[i].spot_count > 0 &&
            overview->problems[i].prediction == predicted.by)
            add_dots(page, &frame, &overview->problems[i]);
    kg_text_add(page, "</svg>\n");
    add_caption(page, &predicted);
    kg_text_add(page, "</figure>\n");
}
