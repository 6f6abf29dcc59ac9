// The report: an overview of all recorded problems, then one section for each. Text from the
// records is untrusted and is escaped by kg_html_text; the page also forbids loading and running
// anything.

#include "report/html.h"

#include <string.h>

#define MAX_DROPPED 300 // rows; a search may drop thousands

struct report {
    struct kg_store *store;
    struct kg_text overview;
    struct kg_text sections;
    int count;
    enum kg_status status; // of the first problem that could not be read
    struct kg_error *error;
};

// Bytes that are not UTF-8 stay: browsers show a replacement character. Control characters would
// make the page invalid.
void kg_html_text(struct kg_text *page, const char *string)
{
    for (const char *c = string; *c; c++) {
        switch (*c) {
        case '&':
            kg_text_add(page, "&amp;");
            break;
        case '<':
            kg_text_add(page, "&lt;");
            break;
        case '>':
            kg_text_add(page, "&gt;");
            break;
        case '"':
            kg_text_add(page, "&quot;");
            break;
        case '\'':
            kg_text_add(page, "&#39;");
            break;
        default:
            if (((unsigned char)*c < 0x20 && *c != '\n' && *c != '\t') || *c == 0x7f)
                kg_text_add(page, "\xef\xbf\xbd");
            else
                kg_text_add_bytes(page, c, 1);
        }
    }
}

void kg_html_seconds(struct kg_text *page, double seconds)
{
    if (kg_view_known(seconds))
        kg_text_seconds(page, seconds);
    else
        kg_text_add(page, "&ndash;");
}

static void add_ratio(struct kg_text *page, double ratio)
{
    if (kg_view_known(ratio))
        kg_text_format(page, "%.*f&times;", ratio < 10 ? 2 : 1, ratio);
    else
        kg_text_add(page, "&ndash;");
}

static int share_of(const struct kg_view *view)
{
    if (!kg_view_known(view->seconds) || view->roofline <= 0)
        return 0;
    double share = view->roofline / view->seconds;
    return (int)(100 * (share < 9.99 ? share : 9.99) + 0.5);
}

static void add_share(struct kg_text *page, const struct kg_view *view)
{
    if (kg_view_known(view->seconds) && view->roofline > 0)
        kg_text_format(page, "%d%%", share_of(view));
    else
        kg_text_add(page, "&ndash;");
}

static void add_problem(struct kg_text *page, const struct kg_key *key)
{
    kg_html_text(page, key->dtypes);
    if (key->dtypes[0] && key->sizes[0])
        kg_text_add(page, ", ");
    kg_html_text(page, key->sizes);
}

static void add_device(struct kg_text *page, const struct kg_key *key)
{
    kg_html_text(page, key->device);
    kg_text_add(page, ", ");
    kg_html_text(page, key->isa);
    kg_text_format(page, ", %d units", key->units);
}

static void add_overview_row(struct kg_text *page, const struct kg_view *view, int number)
{
    kg_text_format(page, "<tr><td><a href=\"#p%d\">", number);
    kg_html_text(page, view->key->op);
    kg_text_add(page, "</a><br><span class=\"soft\">");
    add_problem(page, view->key);
    kg_text_add(page, "<br>");
    add_device(page, view->key);
    kg_text_add(page, "</span></td><td class=\"number\">");
    kg_html_seconds(page, view->seconds);
    kg_text_add(page, "</td><td class=\"number\">");
    add_ratio(page, view->speedup);
    kg_text_add(page, "</td><td class=\"number\">");
    add_share(page, view);
    int share = share_of(view);
    kg_text_format(page,
                   "</td><td class=\"meter\"><span class=\"track best\"><span class=\"fill\" "
                   "style=\"--part:%d\"></span></span></td></tr>\n",
                   10 * (share < 100 ? share : 100));
}

static void begin_figure(struct kg_text *page)
{
    kg_text_add(page, "<div><b>");
}

static void end_figure(struct kg_text *page, const char *name)
{
    kg_text_format(page, "</b><span class=\"soft\">%s</span></div>\n", name);
}

static void add_figures(struct kg_text *page, const struct kg_view *view)
{
    kg_text_add(page, "<div class=\"figures\">\n");
    begin_figure(page);
    kg_html_seconds(page, view->seconds);
    end_figure(page, "time, the median");
    begin_figure(page);
    add_ratio(page, view->speedup);
    kg_text_add(page, "</b><span class=\"soft\">as fast as the baseline, ");
    kg_html_seconds(page, view->baseline);
    kg_text_add(page, "</span></div>\n");
    begin_figure(page);
    add_share(page, view);
    kg_text_add(page, "</b><span class=\"soft\">of the roofline, ");
    kg_html_seconds(page, view->roofline);
    kg_text_add(page, "</span></div>\n");
    begin_figure(page);
    kg_text_format(page, "%d", view->outcomes.by_kind[KG_OUTCOME_MEASURED]);
    kg_text_format(page,
                   "</b><span class=\"soft\">measured of %d candidates</span></div>\n</div>\n",
                   view->outcomes.count);
}

static void add_choice(struct kg_text *page, const struct kg_view *view)
{
    kg_text_add(page, "<p class=\"choice\">");
    if (!view->choice) {
        kg_text_add(page, "Nothing was measured yet.</p>\n");
        return;
    }
    kg_text_add(page, "<code>");
    kg_html_text(page, view->choice);
    kg_text_add(page, "</code><br><span class=\"soft\">");
    if (view->rigor)
        kg_text_format(page, "the best known, found with rigor %s", view->rigor);
    else
        kg_text_add(page, "the fastest measured so far; the search has not ended");
    kg_text_add(page, "</span></p>\n");
}

static void add_rounds(struct kg_text *page, const struct kg_view *view)
{
    if (view->round_count == 0)
        return;
    kg_text_add(page,
                "<details><summary>Rounds</summary>\n<div class=\"wide\"><table "
                "class=\"dropped\">\n<tr><th class=\"number\">#</th><th class=\"number\">time</th>"
                "<th>diagnosis</th><th>change</th><th>result</th></tr>\n");
    for (int i = 0; i < view->round_count; i++) {
        const struct kg_round *round = &view->rounds[i];
        kg_text_format(page, "<tr><td class=\"number\">%d</td><td class=\"number\">",
                       round->number);
        kg_html_seconds(page, round->after);
        kg_text_add(page, "</td><td>");
        kg_html_text(page, round->diagnosis);
        kg_text_add(page, "</td><td>");
        kg_html_text(page, round->change);
        kg_text_add(page, "<br><code>");
        kg_html_text(page, round->choice);
        kg_text_add(page, "</code></td><td>");
        kg_html_text(page, round->result);
        kg_text_add(page, "</td></tr>\n");
    }
    kg_text_add(page, "</table></div></details>\n");
}

static void add_dropped_row(struct kg_text *page, const struct kg_outcome *outcome, bool failed)
{
    kg_text_format(page, "<tr><td%s>%s</td><td class=\"why\">", failed ? " class=\"bad\"" : "",
                   kg_outcome_names[outcome->kind]);
    kg_html_text(page, outcome->reason ? outcome->reason : "");
    kg_text_add(page, "</td><td><code>");
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
    kg_text_add(page, "</summary>\n<div class=\"wide\"><table class=\"dropped\">\n"
                      "<tr><th>outcome</th><th>why</th><th>choice</th></tr>\n");
    for (size_t k = 0; k < sizeof order / sizeof order[0]; k++)
        for (int i = 0; i < outcomes->count && shown < MAX_DROPPED; i++)
            if (outcomes->list[i].kind == order[k]) {
                add_dropped_row(page, &outcomes->list[i], k < 4);
                shown++;
            }
    kg_text_add(page, "</table></div>\n");
    if (shown < dropped)
        kg_text_format(page, "<p class=\"soft\">%d more; kernelgen explain --json lists all.</p>\n",
                       dropped - shown);
    kg_text_add(page, "</details>\n");
}

static void add_section(struct kg_text *page, const struct kg_view *view, int number)
{
    const struct kg_key *key = view->key;
    kg_text_format(page, "<section class=\"card\" id=\"p%d\">\n<h2>", number);
    kg_html_text(page, key->op);
    kg_text_add(page, "</h2>\n<p>");
    add_problem(page, key);
    kg_text_add(page, "</p>\n<p class=\"soft\">");
    add_device(page, key);
    kg_text_add(page, "; ");
    kg_html_text(page, key->compiler[0] ? key->compiler : "no compiler");
    kg_text_add(page, "; ");
    kg_html_text(page, key->protocol);
    kg_text_add(page, "; layout ");
    kg_html_text(page, key->layout[0] ? key->layout : "contiguous");
    kg_text_add(page, "</p>\n");
    add_figures(page, view);
    add_choice(page, view);
    kg_html_rounds(page, view);
    kg_html_candidates(page, view);
    add_rounds(page, view);
    add_dropped(page, &view->outcomes);
    kg_text_add(page, "</section>\n");
}

static void visit(void *user, const struct kg_key *key)
{
    struct report *report = user;
    if (report->status != KG_OK)
        return;
    struct kg_view view;
    report->status = kg_view_collect(report->store, key, &view, report->error);
    if (report->status != KG_OK)
        return;
    report->count++;
    add_overview_row(&report->overview, &view, report->count);
    add_section(&report->sections, &view, report->count);
    kg_view_free(&view);
}

static void add_page(const struct report *report, const char *op, struct kg_text *page)
{
    kg_text_add(page, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                      "<meta http-equiv=\"Content-Security-Policy\" "
                      "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n<title>");
    kg_html_text(page, op ? op : "Kernels");
    kg_text_format(page, " &middot; KernelGen</title>\n<style>\n%s</style>\n</head>\n<body>\n<h1>",
                   kg_html_style);
    kg_html_text(page, op ? op : "Kernels on record");
    kg_text_add(page, "</h1>\n");
    if (report->count == 0)
        kg_text_add(page, "<p class=\"soft\">Nothing is recorded yet.</p>\n");
    else
        kg_text_format(page,
                       "<p class=\"soft\">%d problem%s. Every kernel passed the accuracy gate "
                       "before it was timed.</p>\n<div class=\"card wide\"><table>\n<tr><th>op</th>"
                       "<th class=\"number\">time</th><th class=\"number\">over baseline</th>"
                       "<th class=\"number\">of roofline</th><th class=\"meter\"></th></tr>\n"
                       "%s</table></div>\n%s",
                       report->count, report->count == 1 ? "" : "s",
                       kg_text_string(&report->overview), kg_text_string(&report->sections));
    kg_text_add(page, "</body>\n</html>\n");
}

enum kg_status kg_report_html(struct kg_store *store, const char *op, struct kg_text *page,
                              struct kg_error *error)
{
    struct report report = {.store = store, .error = error};
    enum kg_status status = kg_store_keys(store, op, visit, &report, error);
    if (report.status != KG_OK)
        status = report.status;
    size_t start = page->length;
    if (status == KG_OK) {
        add_page(&report, op, page);
        if (page->failed || report.overview.failed || report.sections.failed)
            status = kg_error_memory(error, "the report");
    }
    if (status != KG_OK)
        kg_text_cut(page, start);
    kg_text_free(&report.overview);
    kg_text_free(&report.sections);
    return status;
}
