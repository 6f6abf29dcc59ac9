// See scale.h.

#include "report/scale.h"

#include "report/view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_SECONDS 1e300 // ticks of infinitely many powers would never end
#define NAME_HEIGHT 18     // of the label of a reference line
#define LOGARITHMIC 6.0    // from this ratio of the largest to the least time on

void kg_scale_widen(struct kg_scale *scale, double seconds)
{
    if (!kg_view_known(seconds))
        return;
    if (scale->high <= 0 || seconds > scale->high)
        scale->high = seconds;
    if (scale->low <= 0 || seconds < scale->low)
        scale->low = seconds;
}

void kg_scale_settle(struct kg_scale *scale)
{
    scale->bottom = KG_CARD_HEIGHT - KG_CARD_BOTTOM;
    scale->top = KG_CARD_TOP;
    scale->logarithmic = scale->high > LOGARITHMIC * scale->low;
    scale->high *= scale->logarithmic ? 1.4 : 1.1;
    scale->low = scale->logarithmic ? scale->low / 1.4 : 0;
    scale->high = fmin(scale->high, MOST_SECONDS);
}

int kg_scale_place(const struct kg_scale *scale, double seconds)
{
    double part = scale->logarithmic ? log(seconds / scale->low) / log(scale->high / scale->low)
                                     : seconds / scale->high;
    return scale->bottom - (int)lround(fmin(part, 1) * (scale->bottom - scale->top));
}

static void add_tick(struct kg_text *page, const struct kg_scale *scale, double seconds)
{
    int y = kg_scale_place(scale, seconds);
    kg_text_format(page,
                   "<path class=\"grid\" d=\"M%d %dH%d\"/><text x=\"%d\" y=\"%d\" "
                   "text-anchor=\"end\">",
                   KG_CARD_LEFT, y, KG_CARD_WIDTH - KG_CARD_RIGHT, KG_CARD_LEFT - 8, y + 4);
    if (seconds > 0)
        kg_text_seconds(page, seconds);
    else
        kg_text_add(page, "0");
    kg_text_add(page, "</text>\n");
}

// Ticks at 1, 2 and 5 of each power of ten; over many powers, at the powers alone.
void kg_scale_draw(struct kg_text *page, const struct kg_scale *scale)
{
    static const double digits[] = {1, 2, 5};
    if (scale->logarithmic) {
        int count = scale->high / scale->low < 200 ? 3 : 1;
        for (int power = (int)floor(log10(scale->low)); power <= log10(scale->high); power++)
            for (int i = 0; i < count; i++) {
                double tick = digits[i] * pow(10, power);
                if (tick >= scale->low && tick <= scale->high)
                    add_tick(page, scale, tick);
            }
        return;
    }
    double power = pow(10, floor(log10(scale->high / 2)));
    double step = power;
    for (int i = 0; i < 3 && scale->high / step > 5; i++)
        step = digits[i] * power;
    for (int i = 0; i * step <= scale->high; i++)
        add_tick(page, scale, i * step);
}

static void add_line(struct kg_text *page, const char *name, int y, int name_y)
{
    kg_text_format(page, "<path class=\"%s\" d=\"M%d %dH%d\"/>", name, KG_CARD_LEFT, y,
                   KG_CARD_WIDTH - KG_CARD_RIGHT);
    kg_text_format(
        page, "<text class=\"%s-name\" x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", name,
        KG_CARD_WIDTH - KG_CARD_RIGHT, name_y, strcmp(name, "base") == 0 ? "baseline" : "roofline");
}

// Labels stand above their lines; the lower one's below its line if they would overlap.
void kg_scale_references(struct kg_text *page, const struct kg_scale *scale, double baseline,
                         double roofline)
{
    bool both = baseline > 0 && roofline > 0;
    int base = baseline > 0 ? kg_scale_place(scale, baseline) : 0;
    int roof = roofline > 0 ? kg_scale_place(scale, roofline) : 0;
    bool meet = both && abs(roof - base) < NAME_HEIGHT + 4;
    if (baseline > 0)
        add_line(page, "base", base, meet && base > roof ? base + NAME_HEIGHT : base - 5);
    if (roofline > 0)
        add_line(page, "roof", roof, meet && roof >= base ? roof + NAME_HEIGHT : roof - 5);
}
