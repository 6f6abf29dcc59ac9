// The progress of tuning a problem: the best time so far over the candidates measured, in the order
// in which they were recorded.

#include "report/html.h"
#include "report/scale.h"

#include <math.h>

#define MAX_TICKS 6
#define MAX_DOTS 2000 // a longer search is drawn by its steps alone

static int to_x(const struct kg_view *view, int count)
{
    return KG_CARD_LEFT + (int)lround((double)count / view->try_count *
                                      (KG_CARD_WIDTH - KG_CARD_LEFT - KG_CARD_RIGHT));
}

// The first time is what the search starts from; later ones are drawn as far as they fit.
static struct kg_scale make_scale(const struct kg_view *view, double best)
{
    struct kg_scale scale = {0};
    kg_scale_widen(&scale, best);
    kg_scale_widen(&scale, view->roofline);
    kg_scale_widen(&scale, 2 * best);
    for (int i = 0; i < view->try_count; i++)
        if (!view->tries[i].abandoned) {
            kg_scale_widen(&scale, view->tries[i].seconds);
            break;
        }
    kg_scale_settle(&scale);
    return scale;
}

static void add_numbers(struct kg_text *page, const struct kg_view *view)
{
    int step = 1;
    for (int i = 0; (view->try_count - 1) / step + 1 > MAX_TICKS; i++)
        step = step * (i % 3 == 1 ? 5 : 4) / 2; // 1, 2, 5, 10
    for (int count = 0; count <= view->try_count; count += step)
        kg_text_format(page, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%d</text>\n",
                       to_x(view, count), KG_CARD_HEIGHT - KG_CARD_BOTTOM + 18, count);
}

static void add_dots(struct kg_text *page, const struct kg_scale *scale, const struct kg_view *view)
{
    kg_text_add(page, "<path class=\"dots faint\" d=\"");
    for (int i = 0; i < view->try_count && i < MAX_DOTS; i++)
        kg_text_format(page, "M%d %dh0", to_x(view, i + 1),
                       kg_scale_place(scale, view->tries[i].seconds));
    kg_text_add(page, "\"/>\n");
}

static void add_steps(struct kg_text *page, const struct kg_scale *scale,
                      const struct kg_view *view)
{
    double best = 0;
    kg_text_add(page, "<path class=\"step\" d=\"");
    for (int i = 0; i < view->try_count; i++) {
        const struct kg_try *try = &view->tries[i];
        if (try->abandoned || (best > 0 && try->seconds >= best))
            continue;
        kg_text_format(page, best > 0 ? "H%dV%d" : "M%d %d", to_x(view, i + 1),
                       kg_scale_place(scale, try->seconds));
        best = try->seconds;
    }
    kg_text_format(page, "H%d\"/>\n", to_x(view, view->try_count));
}

void kg_html_progress(struct kg_text *page, const struct kg_view *view)
{
    struct kg_progress progress = kg_view_progress(view);
    if (progress.measured < 2 || progress.best <= 0)
        return;
    struct kg_scale scale = make_scale(view, progress.best);
    kg_text_format(page,
                   "<h4>Best so far by candidates measured</h4>\n<svg class=\"progress\" "
                   "viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"The best time so far by the "
                   "number of candidates measured\">\n",
                   KG_CARD_WIDTH, KG_CARD_HEIGHT);
    kg_scale_draw(page, &scale);
    add_numbers(page, view);
    kg_scale_references(page, &scale, 0, view->roofline);
    add_dots(page, &scale, view);
    add_steps(page, &scale, view);
    kg_text_format(page, "</svg>\n<p class=\"soft\">The best, ");
    kg_html_seconds(page, progress.best);
    kg_text_format(page,
                   ", is number %d of %d that were measured; number %d was within 2%% of it. "
                   "Slower ones than fit stand at the upper edge.</p>\n",
                   progress.to_best, progress.measured, progress.near_best);
}
