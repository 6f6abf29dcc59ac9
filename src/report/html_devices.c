// Problems that were timed on several devices, side by side.

#include "report/overview_figures.h"

#include <math.h>

#define MAX_DEVICES 4 // columns that a screen has room for
#define MAX_ROWS 200

struct columns {
    int device[MAX_DEVICES];
    int count;
    int left_out;
};

// Devices that share problems, in the order of the list.
static int find_columns(const struct kg_overview *overview, struct columns *columns)
{
    int rows = 0;
    *columns = (struct columns){.count = 0};
    for (int device = 0; device < overview->device_count; device++) {
        bool shares = false;
        for (int i = 0; i < overview->problem_count && !shares; i++)
            shares = kg_overview_is_shared(overview, i) && kg_overview_on(overview, i, device) >= 0;
        if (shares && columns->count < MAX_DEVICES)
            columns->device[columns->count++] = device;
        else
            columns->left_out += shares;
    }
    for (int i = 0; i < overview->problem_count; i++)
        rows += kg_overview_is_shared(overview, i);
    return rows;
}

static void add_label(struct kg_text *page, const struct kg_overview *overview, int device)
{
    kg_text_add(page, " data-label=\"");
    kg_html_text(page, kg_overview_device_name(overview, device));
    kg_text_add(page, "\">");
}

static void add_cell(struct kg_text *page, const struct kg_overview *overview, int device, int at)
{
    kg_text_add(page, "<td class=\"number\"");
    add_label(page, overview, device);
    if (at < 0) {
        kg_text_add(page, "&ndash;</td>");
        return;
    }
    const struct kg_shown_problem *problem = &overview->problems[at];
    double share = kg_shown_share(problem);
    kg_text_format(page, "<a href=\"#p%d\">", problem->number);
    kg_html_seconds(page, problem->seconds);
    kg_text_add(page, "</a>");
    if (share > 0)
        kg_text_format(page, ", %.0f%% <small>of roofline</small>", 100 * fmin(share, 9.99));
    kg_text_add(page, "</td>");
}

static void add_row(struct kg_text *page, const struct kg_overview *overview,
                    const struct columns *columns, int problem)
{
    int at[MAX_DEVICES];
    kg_text_add(page, "<tr><td data-label=\"problem\">");
    kg_html_problem(page, &overview->problems[problem]);
    kg_text_add(page, "</td>");
    for (int i = 0; i < columns->count; i++) {
        at[i] = kg_overview_on(overview, problem, columns->device[i]);
        add_cell(page, overview, columns->device[i], at[i]);
    }
    if (columns->count == 2) {
        kg_text_add(page, "<td class=\"number\" data-label=\"speed of the second\">");
        kg_label_ratio(page, overview->problems[at[0]].seconds / overview->problems[at[1]].seconds);
        kg_text_add(page, "&times;</td>");
    }
    kg_text_add(page, "</tr>\n");
}

static void add_head(struct kg_text *page, const struct kg_overview *overview,
                     const struct columns *columns)
{
    kg_text_add(page, "<thead><tr><th>problem</th>");
    for (int i = 0; i < columns->count; i++) {
        kg_text_add(page, "<th class=\"number\">");
        kg_html_text(page, kg_overview_device_name(overview, columns->device[i]));
        kg_text_add(page, "</th>");
    }
    if (columns->count == 2)
        kg_text_add(page, "<th class=\"number\">speed of the second</th>");
    kg_text_add(page, "</tr></thead>\n");
}

void kg_html_devices(struct kg_text *page, const struct kg_overview *overview)
{
    struct columns columns;
    int rows = find_columns(overview, &columns), shown = 0;
    if (rows == 0)
        return;
    kg_text_format(page,
                   "<figure class=\"devices wide\">\n<h3>Problems on several devices</h3>\n"
                   "<details%s><summary>%d problem%s</summary>\n<table>\n",
                   rows <= 12 ? " open" : "", rows, rows == 1 ? "" : "s");
    add_head(page, overview, &columns);
    kg_text_add(page, "<tbody>\n");
    for (int i = 0; i < overview->problem_count && shown < MAX_ROWS; i++)
        if (kg_overview_is_shared(overview, i)) {
            add_row(page, overview, &columns, i);
            shown++;
        }
    kg_text_add(page, "</tbody></table></details>\n");
    if (shown < rows || columns.left_out > 0)
        kg_text_format(page,
                       "<figcaption>%d more problems and %d more devices are not shown."
                       "</figcaption>",
                       rows - shown, columns.left_out);
    kg_text_add(page, "</figure>\n");
}
