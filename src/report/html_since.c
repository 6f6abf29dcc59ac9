// What changed since an earlier date: a table of what got slower, then of what got faster and what
// is not on record now.

#include "report/html.h"

#include <string.h>

static const enum kg_change_since shown[] = {KG_SINCE_SLOWER, KG_SINCE_FASTER, KG_SINCE_GONE};

static const struct {
    const char *class, *words;
} appearances[KG_SINCE_COUNT] = {
    [KG_SINCE_SLOWER] = {"loss", "&#9660; slower"},
    [KG_SINCE_FASTER] = {"gain", "&#9650; faster"},
    [KG_SINCE_GONE] = {"soft", "not on record"},
};

// The number of its card; 0: it has none.
static int find_card(const struct kg_since *since, const struct kg_overview *overview)
{
    for (int i = 0; i < overview->problem_count; i++)
        if (overview->problems[i].since == since)
            return overview->problems[i].number;
    return 0;
}

static void add_name(struct kg_text *page, const struct kg_since *since,
                     const struct kg_overview *overview)
{
    const struct kg_key *key = &since->key;
    int card = find_card(since, overview);
    kg_text_add(page, "<td data-label=\"problem\">");
    if (card > 0)
        kg_text_format(page, "<a href=\"#p%d\">", card);
    kg_html_text(page, key->op);
    if (card > 0)
        kg_text_add(page, "</a>");
    kg_text_add(page, " ");
    kg_html_text(page, key->dtypes);
    kg_text_add(page, " ");
    kg_html_text(page, key->sizes);
    if (strcmp(key->layout, "contiguous") != 0) {
        kg_text_add(page, " ");
        kg_html_text(page, key->layout);
    }
    kg_text_add(page, " <small>");
    kg_html_text(page, key->device);
    kg_text_add(page, "</small></td>");
}

static void add_changed(struct kg_text *page, const char *what, const char *then, const char *now)
{
    if (strcmp(then, now) == 0)
        return;
    kg_text_format(page, "%s: ", what);
    kg_html_text(page, then);
    kg_text_add(page, ", now ");
    kg_html_text(page, now);
    kg_text_add(page, "<br>");
}

static void add_row(struct kg_text *page, const struct kg_since *since,
                    const struct kg_overview *overview)
{
    kg_text_format(page, "<tr><td class=\"%s\" data-label=\"since\">%s</td>",
                   appearances[since->change].class, appearances[since->change].words);
    add_name(page, since, overview);
    kg_text_add(page, "<td class=\"number\" data-label=\"then\">");
    kg_html_seconds(page, since->then.seconds);
    kg_text_add(page, "</td><td class=\"number\" data-label=\"now\">");
    kg_html_seconds(page, since->now.seconds);
    kg_text_add(page, "</td><td class=\"number\" data-label=\"noise\">");
    kg_html_seconds(page, since->noise);
    kg_text_add(page, "</td><td data-label=\"changed\">");
    if (since->change != KG_SINCE_GONE) {
        kg_text_format(page, "%.3g times the time<br>", since->now.seconds / since->then.seconds);
        add_changed(page, "driver", since->then.driver, since->now.driver);
        add_changed(page, "compiler", since->then.compiler, since->now.compiler);
    }
    kg_text_add(page, "</td></tr>\n");
}

void kg_html_since(struct kg_text *page, const struct kg_overview *overview)
{
    const struct kg_comparison *comparison = overview->comparison;
    kg_text_add(page, "<figure class=\"regressions\">\n<h2>Since the earlier date</h2>\n"
                      "<p>");
    kg_comparison_count(comparison, page);
    kg_text_add(page, ".</p>\n");
    int rows = comparison->count - comparison->counts[KG_SINCE_SAME];
    if (rows > 0) {
        kg_text_add(page, "<table>\n<thead><tr><th></th><th>problem</th><th class=\"number\">then"
                          "</th><th class=\"number\">now</th><th class=\"number\">noise</th>"
                          "<th>changed</th></tr></thead>\n<tbody>\n");
        for (size_t k = 0; k < sizeof shown / sizeof shown[0]; k++)
            for (int i = 0; i < comparison->count; i++)
                if (comparison->list[i].change == shown[k])
                    add_row(page, &comparison->list[i], overview);
        kg_text_add(page, "</tbody></table>\n");
    }
    kg_text_add(page, "</figure>\n");
}
