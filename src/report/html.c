// The report: a line of totals, the figures over all problems, then one section for each device
// with a card for each problem. Text from the records is untrusted and is escaped by kg_html_text;
// the page also forbids loading anything, and running any script but its own.

#include "report/html.h"

#include "report/overview_figures.h"

#include <stdlib.h>
#include <string.h>

#define MAX_OPEN 3 // a page of so few problems shows them opened

struct report {
    struct kg_overview overview;
    struct kg_text *cards; // of each device
    int card_lists;
    bool failed; // no memory for them
    int faster, slower, as_fast, refused;
};

static void count_result(struct report *report, const struct kg_view *view)
{
    switch (kg_view_result(view)) {
    case KG_VIEW_FASTER:
        report->faster++;
        break;
    case KG_VIEW_SLOWER:
        report->slower++;
        break;
    case KG_VIEW_AS_FAST:
        report->as_fast++;
        break;
    case KG_VIEW_UNCOMPARED:
        break;
    }
    report->refused += view->accuracy == KG_VIEW_REFUSED;
}

// The cards of this device; NULL: no memory.
static struct kg_text *cards_of(struct report *report, int device)
{
    if (device < report->card_lists)
        return &report->cards[device];
    struct kg_text *lists = realloc(report->cards, (size_t)(device + 1) * sizeof *lists);
    if (!lists)
        return NULL;
    report->cards = lists;
    while (report->card_lists <= device)
        lists[report->card_lists++] = (struct kg_text){0};
    return &lists[device];
}

static void add_problem(void *user, const struct kg_overview *overview, const struct kg_view *view)
{
    struct report *report = user;
    const struct kg_shown_problem *problem = &overview->problems[overview->problem_count - 1];
    struct kg_text *cards = cards_of(report, problem->device);
    report->failed |= !cards;
    if (!cards)
        return;
    count_result(report, view);
    kg_html_card(cards, view, problem->since, problem->number, overview->total <= MAX_OPEN);
}

static void add_tally(struct kg_text *page, const char *class, int count, const char *words)
{
    if (count > 0)
        kg_text_format(page, "<li%s><b>%d</b> %s</li>\n", class, count, words);
}

static void add_tallies(struct kg_text *page, const struct report *report)
{
    kg_text_add(page, "<ul class=\"tally\">\n");
    add_tally(page, " class=\"gain\"", report->faster, "faster than the baseline");
    add_tally(page, " class=\"loss\"", report->slower, "slower than the baseline");
    add_tally(page, "", report->as_fast, "as fast as the baseline");
    add_tally(page, "",
              report->overview.problem_count - report->faster - report->slower - report->as_fast,
              "not compared with it");
    add_tally(page, " class=\"loss\"", report->refused, "refused by the accuracy gate");
    kg_text_add(page, "</ul>\n");
}

// The script fills the lists of devices and data types, and shows the form.
static void add_form(struct kg_text *page)
{
    kg_text_add(
        page,
        "<form class=\"tools\" hidden role=\"search\" aria-label=\"Sort and filter\">\n"
        "<label>Name or size<input type=\"search\" name=\"name\" autocomplete=\"off\"></label>\n"
        "<label>Device<select name=\"device\"><option value=\"\">all</option></select></label>\n"
        "<label>Data type<select name=\"dtype\"><option value=\"\">all</option></select></label>\n"
        "<label>Accuracy<select name=\"accuracy\"><option value=\"\">all</option>"
        "<option>passed</option><option>refused</option><option>not judged</option>"
        "</select></label>\n"
        "<label>Speed<select name=\"result\"><option value=\"\">all</option>"
        "<option>faster</option><option>slower</option><option>as fast</option>"
        "<option>not compared</option></select></label>\n"
        "<label>Sort by<select name=\"sort\"><option value=\"number\">recorded</option>"
        "<option value=\"name\">name</option><option value=\"ratio\">ratio</option>"
        "<option value=\"time\">time</option><option value=\"device\">device</option>"
        "<option value=\"dtype\">data type</option><option value=\"accuracy\">accuracy</option>"
        "</select></label>\n"
        "<label>Order<select name=\"order\"><option value=\"1\">ascending</option>"
        "<option value=\"-1\">descending</option></select></label>\n"
        "<button type=\"button\" name=\"all\">Open all</button>\n"
        "<output aria-live=\"polite\"></output>\n</form>\n"
        "<p class=\"nothing\" hidden>No problem fits the filter.</p>\n");
}

static void add_section(struct kg_text *page, const struct kg_shown_device *device,
                        const struct kg_text *cards)
{
    kg_text_add(page, "<section data-device=\"");
    kg_html_text(page, device->name);
    kg_text_add(page, ", ");
    kg_html_text(page, device->about);
    kg_text_add(page, "\">\n<h2>");
    kg_html_text(page, device->name);
    kg_text_add(page, "</h2>\n<p class=\"soft\">");
    kg_html_text(page, device->about);
    kg_text_format(page, "</p>\n<div class=\"cards\">\n%s</div></section>\n",
                   kg_text_string(cards));
}

static void add_head(struct kg_text *page, const char *op)
{
    kg_text_format(page,
                   "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                   "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                   "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                   "style-src 'unsafe-inline'; script-src 'sha256-%s'\">\n<title>",
                   kg_html_script_hash);
    kg_html_text(page, op ? op : "Kernels");
    kg_text_format(page, " &middot; KernelGen</title>\n<style>\n%s</style>\n</head>\n<body>\n<h1>",
                   kg_html_style);
    kg_html_text(page, op ? op : "Kernels on record");
    kg_text_add(page, "</h1>\n");
}

static void add_page(const struct report *report, const char *op, const char *summary,
                     struct kg_text *page)
{
    add_head(page, op);
    kg_text_add(page, "<p class=\"soft\">");
    kg_html_text(page, summary);
    if (report->overview.problem_count == 0) {
        kg_text_add(page, ".</p>\n</body>\n</html>\n");
        return;
    }
    kg_text_add(page, ". No kernel is timed before it has passed the accuracy gate; a time and the "
                      "ratio beside it are of one measurement, in which kernel and baseline took "
                      "turns.</p>\n");
    add_tallies(page, report);
    if (report->overview.comparison)
        kg_html_since(page, &report->overview);
    kg_html_overview(page, &report->overview);
    add_form(page);
    kg_text_add(page, "<main>\n");
    for (int i = 0; i < report->card_lists; i++)
        add_section(page, &report->overview.devices[i], &report->cards[i]);
    kg_text_format(page, "</main>\n<script>%s</script>\n</body>\n</html>\n", kg_html_script);
}

static void free_report(struct report *report)
{
    for (int i = 0; i < report->card_lists; i++)
        kg_text_free(&report->cards[i]);
    free(report->cards);
    kg_overview_free(&report->overview);
}

static bool is_short_of_memory(const struct report *report, const struct kg_text *summary,
                               const struct kg_text *page)
{
    bool failed = report->failed || page->failed || summary->failed;
    for (int i = 0; i < report->card_lists; i++)
        failed |= report->cards[i].failed;
    return failed;
}

enum kg_status kg_report_html(struct kg_store *store, const char *op,
                              const struct kg_comparison *comparison, struct kg_text *summary,
                              struct kg_text *page, struct kg_error *error)
{
    struct report report = {.failed = false};
    size_t start = page->length, summary_start = summary->length;
    enum kg_status status =
        kg_overview_collect(store, op, comparison, add_problem, &report, &report.overview, error);
    if (status == KG_OK) {
        kg_overview_summarise(&report.overview, summary);
        if (comparison) {
            kg_text_add(summary, "; ");
            kg_comparison_count(comparison, summary);
        }
        add_page(&report, op, kg_text_string(summary) + summary_start, page);
        if (is_short_of_memory(&report, summary, page))
            status = kg_error_memory(error, "the report");
    }
    if (status != KG_OK) {
        kg_text_cut(page, start);
        kg_text_cut(summary, summary_start);
    }
    free_report(&report);
    return status;
}
