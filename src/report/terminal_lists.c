// The lists of the terminal: speed-ups by shape, problems on several devices, all problems.

#include "report/terminal_parts.h"

#include <math.h>

#define NUMBERS 29 // columns for "12.3x 1.23 to 12.3, 12 shapes"
#define MAX_DEVICES 3

static int name_width(const struct kg_terminal_page *page, int others)
{
    int width = page->terminal.columns - others;
    return width < 12 ? 12 : width > 60 ? 60 : width;
}

static void add_name(struct kg_terminal_page *page, const struct kg_shown_problem *problem,
                     const char *device, int width)
{
    struct kg_text name = {0};
    kg_text_format(&name, "%s%s%s", problem->op, problem->dtypes[0] ? " " : "", problem->dtypes);
    if (device)
        kg_text_format(&name, " %s", device);
    kg_terminal_name(&page->text, &page->terminal, kg_text_string(&name), width);
    page->text.failed |= name.failed;
    kg_text_free(&name);
}

static void add_strip(struct kg_terminal_page *page, const struct kg_overview *overview, int first,
                      double low, double high, int width)
{
    struct kg_canvas strip;
    if (!kg_canvas_make(&page->arena, width, 1, &strip))
        return;
    double scale = (2 * width - 1) / log(high / low);
    kg_canvas_sign(&strip, (int)lround(log(1 / low) * scale), 0, KG_SIGN_BAR, KG_INK_LINE);
    for (int i = first; i >= 0; i = kg_overview_next_shape(overview, first, i)) {
        double ratio = kg_shown_ratio(&overview->problems[i]);
        kg_canvas_sign(&strip, (int)lround(log(ratio / low) * scale), 0,
                       ratio < 1 ? KG_SIGN_RING : KG_SIGN_FULL,
                       ratio < 1 ? KG_INK_BAD : KG_INK_GOOD);
    }
    kg_canvas_row(&strip, 0, &page->terminal, &page->text);
    int end = width; // numbers follow: the row ends without its blanks
    while (end > 0 && !strip.cells[end - 1].sign)
        end--;
    kg_text_format(&page->text, "%*s", width - end, "");
}

void kg_terminal_shapes(struct kg_terminal_page *page, const struct kg_overview *overview)
{
    struct kg_speedups shapes;
    double low = 1, high = 1;
    int rows = 0, width = name_width(page, NUMBERS + 2 + page->terminal.columns / 3);
    for (int i = 0; i < overview->problem_count; i++)
        if (kg_overview_speedups(overview, i, &shapes)) {
            low = fmin(low, shapes.least);
            high = fmax(high, shapes.most);
            rows++;
        }
    if (rows == 0)
        return;
    low /= 1.1;
    high *= 1.1;
    int strip = page->terminal.columns - width - NUMBERS - 2;
    strip = strip < 8 ? 0 : strip; // a narrow terminal has the numbers alone
    kg_terminal_heading(page, "Speed-up by shape: geometric mean, and from the least to the most");
    for (int i = 0; i < overview->problem_count; i++) {
        if (!kg_overview_speedups(overview, i, &shapes))
            continue;
        add_name(page, &overview->problems[i],
                 overview->device_count > 1
                     ? kg_overview_device_name(overview, overview->problems[i].device)
                     : NULL,
                 width);
        kg_text_add(&page->text, " ");
        if (strip > 0)
            add_strip(page, overview, i, low, high, strip);
        kg_text_add(&page->text, " ");
        kg_label_ratio(&page->text, shapes.mean);
        kg_text_add(&page->text, "x ");
        kg_label_ratio(&page->text, shapes.least);
        kg_text_add(&page->text, " to ");
        kg_label_ratio(&page->text, shapes.most);
        kg_text_format(&page->text, ", %d shapes\n", shapes.count);
    }
}

static void add_time(struct kg_terminal_page *page, double seconds, int width)
{
    struct kg_text time = {0};
    if (kg_view_known(seconds))
        kg_text_seconds(&time, seconds);
    kg_text_format(&page->text, "%*s", width, time.length ? kg_text_string(&time) : "-");
    page->text.failed |= time.failed;
    kg_text_free(&time);
}

static void add_share(struct kg_terminal_page *page, double share)
{
    if (share > 0)
        kg_text_format(&page->text, "%4.0f%%", 100 * fmin(share, 9.99));
    else
        kg_text_add(&page->text, "    -");
}

void kg_terminal_devices(struct kg_terminal_page *page, const struct kg_overview *overview)
{
    int devices[MAX_DEVICES], count = 0;
    for (int device = 0; device < overview->device_count && count < MAX_DEVICES; device++) {
        bool shares = false;
        for (int i = 0; i < overview->problem_count && !shares; i++)
            shares = kg_overview_is_shared(overview, i) && kg_overview_on(overview, i, device) >= 0;
        if (shares)
            devices[count++] = device;
    }
    if (count == 0)
        return;
    kg_terminal_heading(page, "Problems on several devices: time and share of the roofline");
    for (int k = 0; k < count; k++) {
        kg_text_format(&page->text, "  %c  ", 'A' + k);
        kg_terminal_name(&page->text, &page->terminal,
                         kg_overview_device_name(overview, devices[k]), 0);
        kg_text_add(&page->text, "\n");
    }
    int width = name_width(page, count * 16);
    kg_text_format(&page->text, "%*s", width, "");
    for (int k = 0; k < count; k++)
        kg_text_format(&page->text, "%15c", 'A' + k);
    kg_text_add(&page->text, "\n");
    for (int i = 0; i < overview->problem_count; i++) {
        if (!kg_overview_is_shared(overview, i))
            continue;
        struct kg_text name = {0};
        kg_terminal_problem(&name, &overview->problems[i]);
        kg_terminal_name(&page->text, &page->terminal, kg_text_string(&name), width);
        page->text.failed |= name.failed;
        kg_text_free(&name);
        for (int k = 0; k < count; k++) {
            int at = kg_overview_on(overview, i, devices[k]);
            add_time(page, at < 0 ? 0 : overview->problems[at].seconds, 10);
            add_share(page, at < 0 ? 0 : kg_shown_share(&overview->problems[at]));
        }
        kg_text_add(&page->text, "\n");
    }
}

static void add_problem(struct kg_terminal_page *page, const struct kg_shown_problem *problem,
                        int width)
{
    static const char *const verdicts[] = {[KG_VIEW_UNJUDGED] = "not judged",
                                           [KG_VIEW_PASSED] = "passed",
                                           [KG_VIEW_REFUSED] = "refused"};
    struct kg_text name = {0};
    double ratio = kg_shown_ratio(problem);
    kg_terminal_problem(&name, problem);
    kg_terminal_name(&page->text, &page->terminal, kg_text_string(&name), width);
    page->text.failed |= name.failed;
    kg_text_free(&name);
    add_time(page, problem->seconds, 9);
    struct kg_text times = {0};
    if (ratio > 0) {
        kg_label_ratio(&times, ratio);
        kg_text_add(&times, "x");
    }
    kg_text_format(&page->text, "%7s", times.length ? kg_text_string(&times) : "-");
    page->text.failed |= times.failed;
    kg_text_free(&times);
    add_share(page, kg_shown_share(problem));
    kg_text_add(&page->text, "  ");
    kg_terminal_ink(&page->text, &page->terminal,
                    problem->accuracy == KG_VIEW_REFUSED ? KG_INK_BAD : KG_INK_NONE,
                    verdicts[problem->accuracy]);
    kg_text_add(&page->text, "\n");
}

void kg_terminal_problems(struct kg_terminal_page *page, const struct kg_overview *overview)
{
    int width = name_width(page, 33);
    kg_terminal_heading(page,
                        "Problems: time, times as fast as the baseline, share of the roofline");
    for (int device = 0; device < overview->device_count; device++) {
        const struct kg_shown_device *own = &overview->devices[device];
        kg_terminal_name(&page->text, &page->terminal, own->name, 0);
        kg_text_add(&page->text, ", ");
        kg_terminal_name(&page->text, &page->terminal, own->about, 0);
        kg_text_add(&page->text, "\n");
        for (int i = 0; i < overview->problem_count; i++)
            if (overview->problems[i].device == device)
                add_problem(page, &overview->problems[i], width);
    }
}
