// One problem for terminals: its rounds, and the progress of its search.

#include "report/terminal_parts.h"

#include "report/scale.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define HEIGHT 8

struct progress_plot {
    struct kg_scale scale;
    double first, best; // seconds
};

// The rows of the first time and of the best.
static void label_row(struct kg_text *text, const void *user, int row)
{
    const struct progress_plot *plot = user;
    if (kg_scale_place(&plot->scale, plot->best) / 4 == row)
        kg_text_seconds(text, plot->best);
    else if (kg_scale_place(&plot->scale, plot->first) / 4 == row)
        kg_text_seconds(text, plot->first);
}

static void add_progress(struct kg_terminal_page *page, const struct kg_view *view)
{
    struct kg_progress progress = kg_view_progress(view);
    struct progress_plot plot = {.best = progress.best};
    struct kg_canvas canvas;
    int width = page->terminal.columns - KG_TERMINAL_MARGIN;
    if (progress.measured < 2 || progress.best <= 0 ||
        !kg_canvas_make(&page->arena, width, HEIGHT, &canvas))
        return;
    for (int i = 0; i < view->try_count && plot.first <= 0; i++)
        plot.first = view->tries[i].abandoned ? 0 : view->tries[i].seconds;
    kg_scale_widen(&plot.scale, plot.first);
    kg_scale_widen(&plot.scale, plot.best);
    kg_scale_settle(&plot.scale);
    plot.scale.bottom = 4 * HEIGHT - 1;
    plot.scale.top = 0;
    double best = 0;
    int x = 0, y = 0;
    for (int i = 0; i < view->try_count; i++) {
        const struct kg_try *try = &view->tries[i];
        int at = (int)lround((double)i / (view->try_count - 1) * (2 * width - 1));
        if (best > 0)
            kg_canvas_line(&canvas, x, y, at, y, KG_INK_GOOD);
        if (!try->abandoned && (best <= 0 || try->seconds < best)) {
            int place = kg_scale_place(&plot.scale, try->seconds);
            if (best > 0)
                kg_canvas_line(&canvas, at, y, at, place, KG_INK_GOOD);
            best = try->seconds;
            y = place;
        }
        x = at;
    }
    struct kg_terminal_tick ticks[2] = {{0, "1"}, {width - 1, ""}};
    snprintf(ticks[1].label, sizeof ticks[1].label, "%d", view->try_count);
    kg_text_add(&page->text, "  best so far, by candidates measured\n");
    kg_terminal_plot(page, &canvas, label_row, &plot);
    kg_terminal_axis(page, width, ticks, 2);
    kg_text_format(&page->text, "  the best is number %d of %d; number %d was within 2%% of it\n",
                   progress.to_best, progress.measured, progress.near_best);
}

static void add_seconds(struct kg_text *text, const char *words, double seconds)
{
    if (!kg_view_known(seconds))
        return;
    kg_text_add(text, words);
    kg_text_seconds(text, seconds);
}

static void add_round(struct kg_terminal_page *page, const struct kg_round *round)
{
    struct kg_text *text = &page->text;
    kg_text_format(text, "  round %d: ", round->number);
    kg_terminal_name(text, &page->terminal, round->diagnosis, 0);
    kg_text_add(text, "\n    change: ");
    kg_terminal_name(text, &page->terminal, round->change, 0);
    if (round->tried > 0)
        kg_text_format(text, " (%d tried)", round->tried);
    kg_text_add(text, "\n    ");
    if (kg_view_known(round->after)) {
        kg_text_seconds(text, round->after);
        add_seconds(text, ", from ", round->before);
        add_seconds(text, ", predicted at best ", round->predicted);
        add_seconds(text, ", baseline ", round->baseline);
        kg_text_add(text, ": ");
    }
    if (round->kind[0] && strcmp(round->result, "kept") != 0)
        kg_terminal_ink(text, &page->terminal, round->kept ? KG_INK_GOOD : KG_INK_SOFT,
                        round->kept ? "kept, " : "not kept, ");
    kg_terminal_name(text, &page->terminal, round->result, 0);
    kg_text_add(text, "\n");
}

static void add_comparison(struct kg_text *text, const struct kg_view *view)
{
    struct kg_loop loop;
    if (!kg_view_loop(view, &loop))
        return;
    kg_text_format(text, "  after the search over everything, round %d: ", loop.search->number);
    kg_text_seconds(text, loop.searched);
    add_seconds(text, "; after the loop: ", loop.ended);
    kg_text_add(text, "\n");
}

void kg_terminal_card(struct kg_terminal_page *page, const struct kg_view *view)
{
    const struct kg_key *key = view->key;
    kg_text_add(&page->text, "\n");
    kg_terminal_name(&page->text, &page->terminal, key->op, 0);
    kg_text_add(&page->text, " ");
    kg_terminal_name(&page->text, &page->terminal, key->dtypes, 0);
    kg_text_add(&page->text, " ");
    kg_terminal_name(&page->text, &page->terminal, key->sizes, 0);
    kg_text_add(&page->text, ", ");
    kg_terminal_name(&page->text, &page->terminal, key->device, 0);
    kg_text_add(&page->text, "\n");
    for (int i = 0; i < view->round_count; i++)
        add_round(page, &view->rounds[i]);
    add_comparison(&page->text, view);
    add_progress(page, view);
}
