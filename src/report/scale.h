// The vertical axis of the plots of a card: seconds to pixels, downwards; linear from zero, or
// logarithmic if small times would not be visible.

#ifndef KG_REPORT_SCALE_H
#define KG_REPORT_SCALE_H

#include "base/text.h"

struct kg_scale {
    int bottom, top; // pixels
    bool logarithmic;
    double low, high; // seconds
};

// The space in the image that the plots of a card have in common.
#define KG_CARD_WIDTH 560
#define KG_CARD_HEIGHT 240
#define KG_CARD_LEFT 84
#define KG_CARD_RIGHT 14
#define KG_CARD_TOP 22
#define KG_CARD_BOTTOM 36

// First what is to be seen, then the choice of the kind.
void kg_scale_widen(struct kg_scale *scale, double seconds);
void kg_scale_settle(struct kg_scale *scale);
// Times above are placed at the top.
int kg_scale_place(const struct kg_scale *scale, double seconds);
// Lines and labels from the left to the right of a card's plot.
void kg_scale_draw(struct kg_text *page, const struct kg_scale *scale);
// The least possible time as a line with its name; the baseline as well, if it is known (above 0).
void kg_scale_references(struct kg_text *page, const struct kg_scale *scale, double baseline,
                         double roofline);

#endif
