// What all parts of the page write: text from the records, which is untrusted, times, and links.

#include "report/html_text.h"

#include <string.h>

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

void kg_html_problem(struct kg_text *page, const struct kg_shown_problem *problem)
{
    kg_html_text(page, problem->op);
    if (problem->dtypes[0])
        kg_text_add(page, " ");
    kg_html_text(page, problem->dtypes);
    if (problem->sizes[0])
        kg_text_add(page, " ");
    kg_html_text(page, problem->sizes);
}

void kg_html_link(struct kg_text *page, const struct kg_shown_problem *problem)
{
    kg_text_format(page, "<a href=\"#p%d\" tabindex=\"-1\">", problem->number);
}
