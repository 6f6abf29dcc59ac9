// The two plots of a problem: its rounds as an inline SVG, its fastest candidates as bars.
// Coordinates are integers, so that no locale can insert a comma.

#include "report/html.h"
#include "report/scale.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LABELS 14
#define MAX_BARS 20

static struct kg_scale make_scale(const struct kg_view *view)
{
    struct kg_scale scale = {0};
    kg_scale_widen(&scale, view->baseline);
    kg_scale_widen(&scale, view->roofline);
    for (int i = 0; i < view->round_count; i++)
        kg_scale_widen(&scale, view->rounds[i].after);
    kg_scale_settle(&scale);
    return scale;
}

static int to_x(const struct kg_view *view, int index)
{
    return KG_CARD_LEFT + (int)lround((index + 0.5) / view->round_count *
                                      (KG_CARD_WIDTH - KG_CARD_LEFT - KG_CARD_RIGHT));
}

// Rounds of versions without a kind do not say whether they were kept.
static bool is_kept(const struct kg_round *round, double best)
{
    return round->kind[0] ? round->kept : best <= 0 || round->after < best;
}

// The best time so far, as a step function; round 0 starts another build.
static void add_steps(struct kg_text *page, const struct kg_scale *scale,
                      const struct kg_view *view)
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
            kg_text_format(page, "M%d %d", to_x(view, i), kg_scale_place(scale, round->after));
        else
            kg_text_format(page, "H%d", to_x(view, i));
        if (best > 0 && is_kept(round, best))
            kg_text_format(page, "V%d", kg_scale_place(scale, round->after));
        if (best <= 0 || is_kept(round, best))
            best = round->after;
    }
    kg_text_add(page, "\"/>\n");
}

static void add_points(struct kg_text *page, const struct kg_scale *scale,
                       const struct kg_view *view)
{
    double best = 0;
    for (int i = 0; i < view->round_count; i++) {
        const struct kg_round *round = &view->rounds[i];
        if (round->number == 0)
            best = 0;
        if (!kg_view_known(round->after))
            continue;
        bool kept = is_kept(round, best);
        if (kept)
            best = round->after;
        kg_text_format(page, "<circle class=\"%s\" cx=\"%d\" cy=\"%d\" r=\"5\"><title>round %d: ",
                       kept ? "kept" : "tried", to_x(view, i), kg_scale_place(scale, round->after),
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
                           (x + to_x(view, i - 1)) / 2, KG_CARD_TOP,
                           KG_CARD_HEIGHT - KG_CARD_BOTTOM);
        if (i % every == 0)
            kg_text_format(page, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%d</text>\n", x,
                           KG_CARD_HEIGHT - KG_CARD_BOTTOM + 18, view->rounds[i].number);
    }
}

void kg_html_rounds(struct kg_text *page, const struct kg_view *view)
{
    bool any = false;
    for (int i = 0; i < view->round_count; i++)
        any |= kg_view_known(view->rounds[i].after);
    if (!any)
        return;
    struct kg_scale scale = make_scale(view);
    kg_text_format(page,
                   "<h4>Time after each round</h4>\n<svg viewBox=\"0 0 %d %d\" role=\"img\" "
                   "aria-label=\"Time after each round, against baseline and roofline\">\n",
                   KG_CARD_WIDTH, KG_CARD_HEIGHT);
    kg_scale_draw(page, &scale);
    add_numbers(page, view);
    kg_scale_references(page, &scale, view->baseline, view->roofline);
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
