// The report: a line of totals, then one section for each device with a card for each problem. Text
// from the records is untrusted and is escaped by kg_html_text; the page also forbids loading
// anything, and running any script but its own.

#include "report/html.h"

#include "report/recorded.h"

#include <stdlib.h>
#include <string.h>

#define MAX_OPEN 3 // a page of so few problems shows them opened

// The problems of one device.
struct section {
    const char *device; // the heading
    const char *about;  // the second line: what else distinguishes devices
    struct kg_text cards;
    int count;
};

struct report {
    struct kg_store *store;
    struct kg_arena arena; // of the texts of sections
    struct section *sections;
    int section_count;
    int problems; // all that will be shown
    int shown;
    int ops;
    struct kg_text op; // of the latest problem
    int faster, slower, as_fast, refused;
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
    struct kg_text text = {0};
    if (kg_view_known(seconds))
        kg_text_seconds(&text, seconds);
    else
        kg_text_add(&text, "&ndash;");
    for (const char *c = kg_text_string(&text); *c; c++)
        kg_text_add_bytes(page, *c == ' ' ? "&nbsp;" : c, *c == ' ' ? strlen("&nbsp;") : 1);
    page->failed |= text.failed;
    kg_text_free(&text);
}

static const char *plural(int count)
{
    return count == 1 ? "" : "s";
}

static void describe_device(struct kg_text *about, const struct kg_key *key)
{
    kg_text_format(about, "%d unit%s%s%s%s%s", key->units, plural(key->units),
                   key->isa[0] ? ", " : "", key->isa, key->driver[0] ? ", driver " : "",
                   key->driver);
}

static struct section *add_section_of(struct report *report, const char *device, const char *about)
{
    size_t size = (size_t)(report->section_count + 1) * sizeof *report->sections;
    struct section *list = realloc(report->sections, size);
    if (!list)
        return NULL;
    report->sections = list;
    struct section *section = &list[report->section_count++];
    *section = (struct section){.device = kg_arena_copy(&report->arena, device, strlen(device)),
                                .about = kg_arena_copy(&report->arena, about, strlen(about))};
    return report->arena.failed ? NULL : section;
}

// The section of this key's device; NULL: no memory.
static struct section *find_section(struct report *report, const struct kg_key *key)
{
    struct kg_text about = {0};
    struct section *found = NULL;
    const char *device = key->device[0] ? key->device : "unknown device";
    describe_device(&about, key);
    for (int i = 0; i < report->section_count && !found; i++)
        if (strcmp(report->sections[i].device, device) == 0 &&
            strcmp(report->sections[i].about, kg_text_string(&about)) == 0)
            found = &report->sections[i];
    if (!found && !about.failed)
        found = add_section_of(report, device, kg_text_string(&about));
    kg_text_free(&about);
    return found;
}

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

static void count_problem(void *user, const struct kg_key *key)
{
    struct report *report = user;
    if (report->problems++ == 0 || strcmp(kg_text_string(&report->op), key->op) != 0)
        report->ops++;
    kg_text_cut(&report->op, 0);
    kg_text_add(&report->op, key->op);
}

static void add_problem(void *user, const struct kg_key *key)
{
    struct report *report = user;
    struct kg_view view;
    if (report->status != KG_OK)
        return;
    struct section *section = find_section(report, key);
    if (!section) {
        report->status = kg_error_memory(report->error, "the report");
        return;
    }
    report->status = kg_view_collect(report->store, key, &view, report->error);
    if (report->status != KG_OK)
        return;
    section->count++;
    count_result(report, &view);
    kg_html_card(&section->cards, &view, ++report->shown, report->problems <= MAX_OPEN);
    kg_view_free(&view);
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
    add_tally(page, "", report->shown - report->faster - report->slower - report->as_fast,
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

static void add_section(struct kg_text *page, const struct section *section)
{
    kg_text_add(page, "<section data-device=\"");
    kg_html_text(page, section->device);
    kg_text_add(page, ", ");
    kg_html_text(page, section->about);
    kg_text_add(page, "\">\n<h2>");
    kg_html_text(page, section->device);
    kg_text_add(page, "</h2>\n<p class=\"soft\">");
    kg_html_text(page, section->about);
    kg_text_format(page, "</p>\n<div class=\"cards\">\n%s</div></section>\n",
                   kg_text_string(&section->cards));
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
    if (report->shown == 0) {
        kg_text_add(page, ".</p>\n</body>\n</html>\n");
        return;
    }
    kg_text_add(page, ". No kernel is timed before it has passed the accuracy gate; a time and the "
                      "ratio beside it are of one measurement, in which kernel and baseline took "
                      "turns.</p>\n");
    add_tallies(page, report);
    add_form(page);
    kg_text_add(page, "<main>\n");
    for (int i = 0; i < report->section_count; i++)
        add_section(page, &report->sections[i]);
    kg_text_format(page, "</main>\n<script>%s</script>\n</body>\n</html>\n", kg_html_script);
}

static void summarise(const struct report *report, struct kg_text *summary)
{
    if (report->shown == 0)
        kg_text_add(summary, "nothing is recorded yet: 'kernelgen build OP.kg' verifies and "
                             "measures a kernel, and records it");
    else
        kg_text_format(summary, "%d problem%s of %d op%s on %d device%s", report->shown,
                       plural(report->shown), report->ops, plural(report->ops),
                       report->section_count, plural(report->section_count));
}

static void free_report(struct report *report)
{
    for (int i = 0; i < report->section_count; i++)
        kg_text_free(&report->sections[i].cards);
    free(report->sections);
    kg_arena_free(&report->arena);
    kg_text_free(&report->op);
}

static bool is_short_of_memory(const struct report *report, const struct kg_text *summary,
                               const struct kg_text *page)
{
    bool failed = page->failed || summary->failed || report->op.failed;
    for (int i = 0; i < report->section_count; i++)
        failed |= report->sections[i].cards.failed;
    return failed;
}

enum kg_status kg_report_html(struct kg_store *store, const char *op, struct kg_text *summary,
                              struct kg_text *page, struct kg_error *error)
{
    struct report report = {.store = store, .error = error};
    size_t start = page->length, summary_start = summary->length;
    enum kg_status status = kg_recorded_require(store, op, error);
    if (status == KG_OK)
        status = kg_store_keys(store, op, count_problem, &report, error);
    if (status == KG_OK)
        status = kg_store_keys(store, op, add_problem, &report, error);
    if (report.status != KG_OK)
        status = report.status;
    if (status == KG_OK) {
        summarise(&report, summary);
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
