// The part of the page above the list: figures over all problems.

#include "report/overview_figures.h"

void kg_html_overview(struct kg_text *page, const struct kg_overview *overview)
{
    size_t start = page->length;
    kg_text_add(page, "<details class=\"panel\" open><summary><h2>Overview</h2></summary>\n<div "
                      "class=\"overview\">\n");
    size_t empty = page->length;
    kg_html_roofline(page, overview);
    for (int i = 0; i < overview->device_count; i++)
        kg_html_predicted(page, overview, i);
    kg_html_tiers(page, overview);
    kg_html_shapes(page, overview);
    kg_html_devices(page, overview);
    if (page->length == empty)
        kg_text_cut(page, start);
    else
        kg_text_add(page, "</div></details>\n");
}
