// One problem of the report: a line with time, ratio, share of the roofline and verdict, which
// opens to the figures behind them, the plots, the rounds, and what was dropped and why.

#include "report/html.h"

#include <math.h>

#define MAX_DROPPED 300 // rows; a search may drop thousands

// How a result is shown: never by colour alone.
struct appearance {
    const char *class;
    const char *sign;
    const char *word;
};

static const struct appearance results[] = {
    [KG_VIEW_UNCOMPARED] = {"soft", "", "not compared"},
    [KG_VIEW_FASTER] = {"gain", "&#9650;", "faster"},
    [KG_VIEW_AS_FAST] = {"soft", "=", "as fast"},
    [KG_VIEW_SLOWER] = {"loss", "&#9660;", "slower"},
};

static const struct appearance verdicts[] = {
    [KG_VIEW_UNJUDGED] = {"soft", "", "not judged"},
    [KG_VIEW_PASSED] = {"gain", "&#10003;", "passed"},
    [KG_VIEW_REFUSED] = {"loss", "&#10007;", "refused"},
};

static void add_ratio(struct kg_text *page, double ratio)
{
    kg_label_ratio(page, ratio);
    kg_text_add(page, "&times; ");
}

static void add_appearance(struct kg_text *page, const struct appearance *appearance, double ratio)
{
    kg_text_format(page, "<span class=\"%s\">", appearance->class);
    if (appearance->sign[0])
        kg_text_format(page, "<span aria-hidden=\"true\">%s</span> ", appearance->sign);
    if (ratio > 0)
        add_ratio(page, ratio);
    kg_text_format(page, "%s</span>", appearance->word);
}

// In percent; 0: unknown.
static int share_of(const struct kg_view *view)
{
    if (!kg_view_known(view->seconds) || !kg_view_known(view->roofline))
        return 0;
    return (int)lround(100 * fmin(view->roofline / view->seconds, 9.99));
}

static void add_share(struct kg_text *page, const struct kg_view *view)
{
    if (share_of(view) > 0)
        kg_text_format(page, "%d%%", share_of(view));
    else
        kg_text_add(page, "&ndash;");
}

// Integers, because a locale may write others with a comma.
static void add_sort_keys(struct kg_text *page, const struct kg_view *view, int number)
{
    const struct kg_key *key = view->key;
    kg_text_format(page, " data-number=\"%d\" data-name=\"", number);
    kg_html_text(page, key->op);
    kg_text_add(page, "\" data-sizes=\"");
    kg_html_text(page, key->sizes);
    kg_text_add(page, "\" data-dtype=\"");
    kg_html_text(page, key->dtypes);
    kg_text_format(page, "\" data-accuracy=\"%s\" data-result=\"%s\"",
                   verdicts[view->accuracy].word, results[kg_view_result(view)].word);
    if (kg_view_known(view->seconds) && view->seconds < 1e6)
        kg_text_format(page, " data-picoseconds=\"%lld\"", llround(view->seconds * 1e12));
    double ratio = kg_view_ratio(view);
    if (ratio > 0 && ratio < 1e12)
        kg_text_format(page, " data-permille=\"%lld\"", llround(ratio * 1000));
}

static void add_meter(struct kg_text *page, int share)
{
    if (share > 0)
        kg_text_format(page,
                       "<span class=\"track best\" aria-hidden=\"true\"><span class=\"fill\" "
                       "style=\"--part:%d\"></span></span><span>%d%% <small>of roofline</small>"
                       "</span>",
                       10 * (share < 100 ? share : 100), share);
    else
        kg_text_add(page, "&ndash;");
}

// How a change since an earlier date is shown; what is the same is not.
static const struct appearance changes[KG_SINCE_COUNT] = {
    [KG_SINCE_SLOWER] = {"loss", "&#9660;", "slower than before"},
    [KG_SINCE_FASTER] = {"gain", "&#9650;", "faster than before"},
};

static void add_change(struct kg_text *page, const struct kg_since *since)
{
    if (!since || !changes[since->change].class)
        return;
    kg_text_add(page, "<small class=\"since\">");
    add_appearance(page, &changes[since->change], 0);
    kg_text_add(page, ": ");
    kg_html_seconds(page, since->then.seconds);
    kg_text_add(page, ", now ");
    kg_html_seconds(page, since->now.seconds);
    kg_text_add(page, "</small>");
}

static void add_line(struct kg_text *page, const struct kg_view *view, const struct kg_since *since)
{
    const struct kg_key *key = view->key;
    kg_text_add(page, "<summary><h3>");
    kg_html_text(page, key->op);
    kg_text_add(page, " <small>");
    kg_html_text(page, key->dtypes);
    if (key->dtypes[0] && key->sizes[0])
        kg_text_add(page, ", ");
    kg_html_text(page, key->sizes);
    kg_text_add(page, "</small>");
    add_change(page, since);
    kg_text_add(page, "</h3>\n<span class=\"time number\">");
    kg_html_seconds(page, view->seconds);
    kg_text_add(page, "</span><span class=\"ratio number\">");
    add_appearance(page, &results[kg_view_result(view)], kg_view_ratio(view));
    kg_text_add(page, "</span><span class=\"roofline number\">");
    add_meter(page, share_of(view));
    kg_text_add(page, "</span><span class=\"verdict\">");
    add_appearance(page, &verdicts[view->accuracy], 0);
    kg_text_add(page, "</span></summary>\n");
}

static void begin_figure(struct kg_text *page)
{
    kg_text_add(page, "<div><b>");
}

static void add_timing(struct kg_text *page, const struct kg_view *view)
{
    bool compared = kg_view_result(view) != KG_VIEW_UNCOMPARED;
    begin_figure(page);
    kg_html_seconds(page, view->seconds);
    kg_text_format(page, "</b><span class=\"soft\">%s</span></div>\n",
                   compared                            ? "median, in turns with the baseline"
                   : kg_view_known(view->seconds)      ? "median, timed alone"
                   : view->accuracy == KG_VIEW_REFUSED ? "a refused kernel has none"
                                                       : "nothing was measured");
    begin_figure(page);
    add_appearance(page, &results[kg_view_result(view)], kg_view_ratio(view));
    kg_text_add(page, "</b><span class=\"soft\">");
    if (compared) {
        kg_text_add(page, "the baseline takes ");
        kg_html_seconds(page, view->baseline);
    } else {
        kg_text_add(page, "with the baseline, by a race");
    }
    kg_text_add(page, "</span></div>\n");
    begin_figure(page);
    add_share(page, view);
    kg_text_add(page, "</b><span class=\"soft\">of the roofline, ");
    kg_html_seconds(page, view->roofline);
    kg_text_add(page, "</span></div>\n");
}

static void add_verdict(struct kg_text *page, const struct kg_view *view)
{
    const struct kg_outcome *judged = view->judged;
    begin_figure(page);
    add_appearance(page, &verdicts[view->accuracy], 0);
    kg_text_add(page, "</b><span class=\"soft\">");
    if (judged)
        kg_text_format(page, "%d cases, worst error %.2f of what is allowed", judged->verdict.cases,
                       judged->verdict.worst_relative);
    else if (view->accuracy == KG_VIEW_PASSED)
        kg_text_add(page, "before it was timed; the cases are not on record");
    else
        kg_text_add(page, "no kernel was");
    kg_text_add(page, "</span></div>\n");
}

static void add_figures(struct kg_text *page, const struct kg_view *view)
{
    kg_text_add(page, "<div class=\"figures\">\n");
    add_timing(page, view);
    add_verdict(page, view);
    begin_figure(page);
    kg_text_format(page, "%d", view->outcomes.by_kind[KG_OUTCOME_MEASURED]);
    kg_text_format(page,
                   "</b><span class=\"soft\">measured of %d candidates</span></div>\n</div>\n",
                   view->outcomes.count);
    if (view->accuracy == KG_VIEW_REFUSED && view->judged && view->judged->reason) {
        kg_text_add(page, "<p class=\"why loss\">");
        kg_html_text(page, view->judged->reason);
        kg_text_add(page, "</p>\n");
    }
}

static void add_choice(struct kg_text *page, const struct kg_view *view)
{
    kg_text_add(page, "<p class=\"choice\">");
    if (!view->choice) {
        kg_text_add(page, "No kernel was measured.</p>\n");
        return;
    }
    kg_text_add(page, "<code>");
    kg_html_text(page, view->choice);
    kg_text_add(page, "</code><br><span class=\"soft\">");
    if (view->rigor)
        kg_text_format(page, "the best known, found with rigor %s", view->rigor);
    else
        kg_text_add(page, "the fastest measured so far; no search has ended");
    kg_text_add(page, "</span></p>\n");
}

static void add_dropped_row(struct kg_text *page, const struct kg_outcome *outcome, bool failed)
{
    kg_text_format(page,
                   "<tr><td%s data-label=\"outcome\">%s</td><td class=\"why\" data-label=\"why\">",
                   failed ? " class=\"loss\"" : "", kg_outcome_names[outcome->kind]);
    kg_html_text(page, outcome->reason ? outcome->reason : "");
    kg_text_add(page, "</td><td data-label=\"choice\"><code>");
    kg_html_text(page, outcome->choice);
    kg_text_add(page, "</code></td></tr>\n");
}

// Failures come first, because they need attention; pruned candidates do not.
static void add_dropped(struct kg_text *page, const struct kg_outcomes *outcomes)
{
    static const enum kg_outcome_kind order[] = {KG_OUTCOME_WRONG,   KG_OUTCOME_FAULT,
                                                 KG_OUTCOME_TIMEOUT, KG_OUTCOME_COMPILE,
                                                 KG_OUTCOME_INVALID, KG_OUTCOME_PRUNED};
    int dropped = outcomes->count - outcomes->by_kind[KG_OUTCOME_MEASURED], shown = 0;
    if (dropped == 0)
        return;
    kg_text_format(page, "<details><summary>%d dropped:", dropped);
    const char *comma = " ";
    for (size_t k = 0; k < sizeof order / sizeof order[0]; k++)
        if (outcomes->by_kind[order[k]] > 0) {
            kg_text_format(page, "%s%d %s", comma, outcomes->by_kind[order[k]],
                           kg_outcome_names[order[k]]);
            comma = ", ";
        }
    kg_text_add(page, "</summary>\n<table>\n<thead><tr><th>outcome</th><th>why</th><th>choice</th>"
                      "</tr></thead>\n<tbody>\n");
    for (size_t k = 0; k < sizeof order / sizeof order[0]; k++)
        for (int i = 0; i < outcomes->count && shown < MAX_DROPPED; i++)
            if (outcomes->list[i].kind == order[k]) {
                add_dropped_row(page, &outcomes->list[i], k < 4);
                shown++;
            }
    kg_text_add(page, "</tbody></table>\n");
    if (shown < dropped)
        kg_text_format(page, "<p class=\"soft\">%d more; kernelgen explain --json lists all.</p>\n",
                       dropped - shown);
    kg_text_add(page, "</details>\n");
}

static void add_conditions(struct kg_text *page, const struct kg_view *view)
{
    const struct kg_key *key = view->key;
    char definition[KG_HASH_TEXT];
    kg_hash_format(key->definition, definition);
    kg_text_add(page, "<p class=\"soft\">");
    if (view->seed)
        kg_text_format(page, "Accuracy seed %llu", (unsigned long long)view->seed);
    else
        kg_text_add(page, "No accuracy seed on record");
    if (view->judged)
        kg_text_format(page, ", %lld elements, %d impostors rejected",
                       (long long)view->judged->verdict.elements, view->judged->verdict.impostors);
    kg_text_format(page, "; definition %.8s; ", definition);
    kg_html_text(page, key->compiler[0] ? key->compiler : "no compiler");
    kg_text_add(page, "; ");
    kg_html_text(page, key->protocol);
    kg_text_add(page, "; layout ");
    kg_html_text(page, key->layout[0] ? key->layout : "contiguous");
    kg_text_add(page, "</p>\n");
}

void kg_html_card(struct kg_text *page, const struct kg_view *view, const struct kg_since *since,
                  int number, bool open)
{
    kg_text_format(page, "<details class=\"card\" id=\"p%d\"%s", number, open ? " open" : "");
    add_sort_keys(page, view, number);
    if (since)
        kg_text_format(page, " data-since=\"%s\"", kg_since_names[since->change]);
    kg_text_add(page, ">\n");
    add_line(page, view, since);
    add_figures(page, view);
    add_choice(page, view);
    kg_html_rounds(page, view);
    kg_html_story(page, view);
    kg_html_candidates(page, view);
    kg_html_progress(page, view);
    add_dropped(page, &view->outcomes);
    add_conditions(page, view);
    kg_text_add(page, "</details>\n");
}
