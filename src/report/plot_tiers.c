// How far the candidates of each device got: one stacked bar per device, with counts.

#include "report/overview_figures.h"

#include <math.h>

#define WIDTH 1000
#define HEIGHT 28
#define LEAST 3 // of a tier that has any candidate at all

static int count_all(const struct kg_shown_device *device)
{
    int all = 0;
    for (int tier = 0; tier < KG_TIER_COUNT; tier++)
        all += device->tiers[tier];
    return all;
}

static void add_bar(struct kg_text *page, const struct kg_shown_device *device, int all)
{
    int used = 0, below = 0;
    for (int tier = 0; tier < KG_TIER_COUNT; tier++)
        used += device->tiers[tier] > 0;
    kg_text_format(page,
                   "<svg class=\"stack\" viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" "
                   "role=\"img\" aria-label=\"Shares of the fates of candidates\">\n",
                   WIDTH, HEIGHT);
    for (int tier = 0, x = 0; tier < KG_TIER_COUNT; tier++) {
        if (device->tiers[tier] == 0)
            continue;
        below += device->tiers[tier];
        used--;
        int end = (int)lround((double)below / all * WIDTH);
        end = end < x + LEAST ? x + LEAST : end;
        end = end > WIDTH - LEAST * used ? WIDTH - LEAST * used : end;
        kg_text_format(page,
                       "<g><title>%d %s</title><path class=\"tier-%s\" d=\"M%d 0H%dV%dH%dz\""
                       "/></g>\n",
                       device->tiers[tier], kg_tiers[tier].name, kg_tiers[tier].class, x, end,
                       HEIGHT, x);
        x = end;
    }
    kg_text_add(page, "</svg>\n");
}

static void add_counts(struct kg_text *page, const struct kg_shown_device *device)
{
    kg_text_add(page, "<ul class=\"legend\">\n");
    for (int tier = 0; tier < KG_TIER_COUNT; tier++)
        if (device->tiers[tier] > 0)
            kg_text_format(page,
                           "<li><svg class=\"sign\" viewBox=\"0 0 16 16\" aria-hidden=\"true\">"
                           "<path class=\"tier-%s\" d=\"M2 2h12v12h-12z\"/></svg> <b>%d</b> %s"
                           "</li>\n",
                           kg_tiers[tier].class, device->tiers[tier], kg_tiers[tier].name);
    kg_text_add(page, "</ul>\n");
}

void kg_html_tiers(struct kg_text *page, const struct kg_overview *overview)
{
    int all = 0;
    for (int i = 0; i < overview->device_count; i++)
        all += count_all(&overview->devices[i]);
    if (all == 0)
        return;
    kg_text_add(page, "<figure class=\"fates wide\">\n<h3>What became of candidates</h3>\n");
    for (int i = 0; i < overview->device_count; i++) {
        const struct kg_shown_device *device = &overview->devices[i];
        int own = count_all(device);
        if (own == 0)
            continue;
        kg_text_add(page, "<p class=\"soft\">");
        kg_html_text(page, kg_overview_device_name(overview, i));
        kg_text_format(page, ": %d</p>\n", own);
        add_bar(page, device, own);
        add_counts(page, device);
    }
    kg_text_add(page, "<figcaption>The latest outcome of each candidate on record. What rules "
                      "refuse before a search is never recorded.</figcaption></figure>\n");
}
