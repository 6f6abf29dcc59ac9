// The plots over all problems, for terminals: roofline, candidates' fates, predicted and measured.

#include "report/terminal_parts.h"

#include <math.h>
#include <string.h>

#define MAX_TICKS 16

// Both axes of a canvas in dots.
struct plot {
    struct kg_canvas canvas;
    struct kg_axis x, y;
    void (*label)(struct kg_text *text, double value);
};

static bool make_plot(struct kg_terminal_page *page, struct plot *plot, int height)
{
    if (!kg_canvas_make(&page->arena, page->terminal.columns - KG_TERMINAL_MARGIN, height,
                        &plot->canvas))
        return false;
    plot->x.start = 0;
    plot->x.end = 2 * plot->canvas.width - 1;
    plot->y.start = 4 * height - 1;
    plot->y.end = 0;
    return true;
}

// Labels the rows that have a power of ten.
static void label_row(struct kg_text *text, const void *user, int row)
{
    const struct plot *plot = user;
    int step = kg_axis_step(&plot->y, plot->canvas.height / 2);
    for (int power = plot->y.high; power >= plot->y.low; power -= step)
        if (kg_axis_place(&plot->y, pow(10, power)) / 4 == row) {
            plot->label(text, pow(10, power));
            return;
        }
}

static void add_axis(struct kg_terminal_page *page, const struct plot *plot,
                     void (*label)(struct kg_text *text, double value))
{
    struct kg_terminal_tick ticks[MAX_TICKS];
    int count = 0, step = kg_axis_step(&plot->x, MAX_TICKS);
    for (int power = plot->x.low; power <= plot->x.high; power += step) {
        struct kg_text name = {0};
        label(&name, pow(10, power));
        ticks[count].column = kg_axis_place(&plot->x, pow(10, power)) / 2;
        ticks[count].label[0] = '\0';
        strncat(ticks[count].label, kg_text_string(&name), sizeof ticks[count].label - 1);
        count++;
        page->text.failed |= name.failed;
        kg_text_free(&name);
    }
    kg_terminal_axis(page, plot->canvas.width, ticks, count);
}

// ---- Roofline

static void draw_roof(struct plot *plot)
{
    double low = fmax(pow(10, plot->x.low), pow(10, plot->y.low));
    int one = kg_axis_place(&plot->x, 1), top = kg_axis_place(&plot->y, 1);
    kg_canvas_line(&plot->canvas, kg_axis_place(&plot->x, low), kg_axis_place(&plot->y, low), one,
                   top, KG_INK_LINE);
    kg_canvas_line(&plot->canvas, one, top, plot->x.end, top, KG_INK_LINE);
}

static const struct {
    enum kg_sign sign;
    enum kg_ink ink;
} roof_marks[KG_ROOF_RANKS] = {
    [KG_AT_THE_ROOF] = {KG_SIGN_FULL, KG_INK_GOOD},
    [KG_NEAR_THE_ROOF] = {KG_SIGN_HALF, KG_INK_MIDDLE},
    [KG_FAR_BELOW] = {KG_SIGN_RING, KG_INK_BAD},
};

void kg_terminal_roofline(struct kg_terminal_page *page, const struct kg_overview *overview)
{
    struct plot plot = {.label = kg_label_percent};
    int counts[KG_ROOF_RANKS] = {0};
    int shown = kg_roof_fit(overview, &plot.x, &plot.y, counts);
    if (shown == 0 || !make_plot(page, &plot, 14))
        return;
    draw_roof(&plot);
    // What is far from the roof is drawn first, so that what is at the roof is not hidden.
    for (int rank = KG_ROOF_RANKS - 1; rank >= 0; rank--)
        for (int i = 0; i < overview->problem_count; i++) {
            struct kg_roof_place place;
            if (!kg_shown_place(&overview->problems[i], &place) || (int)place.rank != rank)
                continue;
            place = kg_roof_drawn(place);
            kg_canvas_sign(&plot.canvas, kg_axis_place(&plot.x, place.intensity),
                           kg_axis_place(&plot.y, place.attained), roof_marks[rank].sign,
                           roof_marks[rank].ink);
        }
    kg_terminal_heading(page, "Roofline: share of the peak, by intensity / ridge");
    kg_terminal_plot(page, &plot.canvas, label_row, &plot);
    add_axis(page, &plot, kg_label_number);
    for (int rank = 0; rank < KG_ROOF_RANKS; rank++) {
        kg_text_add(&page->text, "  ");
        kg_terminal_sign(&page->text, &page->terminal, roof_marks[rank].sign, roof_marks[rank].ink);
        kg_text_format(&page->text, " %d %s\n", counts[rank], kg_roof_words[rank]);
    }
    if (shown < overview->problem_count)
        kg_text_format(&page->text, "  %d without time or noted cost not shown\n",
                       overview->problem_count - shown);
}

// ---- What became of candidates

void kg_terminal_tiers(struct kg_terminal_page *page, const struct kg_overview *overview)
{
    bool begun = false;
    for (int i = 0; i < overview->device_count; i++) {
        const struct kg_shown_device *device = &overview->devices[i];
        int all = 0;
        for (int tier = 0; tier < KG_TIER_COUNT; tier++)
            all += device->tiers[tier];
        if (all == 0)
            continue;
        if (!begun)
            kg_terminal_heading(page, "What became of candidates");
        begun = true;
        kg_text_add(&page->text, "  ");
        kg_terminal_name(&page->text, &page->terminal, kg_overview_device_name(overview, i), 0);
        kg_text_format(&page->text, ": %d\n", all);
        for (int tier = 0; tier < KG_TIER_COUNT; tier++) {
            if (device->tiers[tier] == 0)
                continue;
            kg_text_format(&page->text, "  %7d %-22s ", device->tiers[tier], kg_tiers[tier].name);
            kg_terminal_bar(&page->text, &page->terminal, (double)device->tiers[tier] / all,
                            page->terminal.columns - 34,
                            tier == KG_TIER_MEASURED ? KG_INK_GOOD
                            : tier <= KG_TIER_RULE   ? KG_INK_MIDDLE
                                                     : KG_INK_BAD);
            kg_text_add(&page->text, "\n");
        }
    }
}

// ---- Predicted and measured

// Dotted: candidates are dots, too.
static void draw_diagonal(struct plot *plot)
{
    for (int x = plot->x.start; x <= plot->x.end; x += 4)
        kg_canvas_dot(&plot->canvas, x,
                      plot->y.start +
                          (int)lround((double)x / plot->x.end * (plot->y.end - plot->y.start)),
                      KG_INK_LINE);
}

void kg_terminal_predicted(struct kg_terminal_page *page, const struct kg_overview *overview,
                           int device)
{
    struct kg_predicted predicted = kg_overview_predicted(overview, device);
    struct plot plot = {.label = kg_label_seconds};
    if (predicted.spots == 0 || !make_plot(page, &plot, 14))
        return;
    for (int pass = 0; pass < 2; pass++) { // fits the axes, then draws
        for (int i = 0; i < overview->problem_count; i++) {
            const struct kg_shown_problem *problem = &overview->problems[i];
            if (problem->device != device || problem->prediction != predicted.by)
                continue;
            for (int k = 0; k < problem->spot_count; k++) {
                const struct kg_spot *spot = &problem->spots[k];
                if (pass > 0) {
                    kg_canvas_dot(&plot.canvas, kg_axis_place(&plot.x, spot->predicted),
                                  kg_axis_place(&plot.y, spot->measured), KG_INK_GOOD);
                    continue;
                }
                kg_axis_include(&plot.x, spot->predicted);
                kg_axis_include(&plot.x, spot->measured);
            }
        }
        plot.y.low = plot.x.low;
        plot.y.high = plot.x.high;
        if (pass == 0)
            draw_diagonal(&plot);
    }
    kg_text_add(&page->text, "\nMeasured, by ");
    kg_text_add(&page->text,
                predicted.by == KG_VIEW_ESTIMATE ? "predicted time: " : "least possible time: ");
    kg_terminal_name(&page->text, &page->terminal, kg_overview_device_name(overview, device), 0);
    kg_text_add(&page->text, "\n");
    kg_terminal_plot(page, &plot.canvas, label_row, &plot);
    add_axis(page, &plot, kg_label_seconds);
    kg_text_format(&page->text, "  %d measured candidates\n", predicted.spots);
    if (predicted.order.pairs > 0)
        kg_text_format(&page->text, "  %.1f%% of %.0f pairs in the predicted order\n",
                       100 * predicted.order.right / predicted.order.pairs, predicted.order.pairs);
}
