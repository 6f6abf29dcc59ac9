// Logarithmic axes of whole powers of ten, for plots of the page and of the terminal. Places are
// integers, so that no locale can insert a comma.

#ifndef KG_REPORT_AXIS_H
#define KG_REPORT_AXIS_H

#include "base/text.h"

struct kg_axis {
    int low, high;  // powers of ten; equal and 0 until something is included
    bool used;      // something is
    int start, end; // places of the ends; `end` may be the smaller one
};

// Widens it to whole powers of ten around a value; what is not above zero is ignored.
void kg_axis_include(struct kg_axis *axis, double value);
// The nearest place; values beyond an end are placed there.
int kg_axis_place(const struct kg_axis *axis, double value);
// How many powers to step from one tick to the next, for at most `most` ticks.
int kg_axis_step(const struct kg_axis *axis, int most);

// Lines and labels of an SVG plot, from one corner of its frame to the other. `label` writes the
// value of a tick.
struct kg_frame {
    struct kg_axis x, y;
    void (*label_x)(struct kg_text *page, double value);
    void (*label_y)(struct kg_text *page, double value);
};
void kg_frame_draw(struct kg_text *page, const struct kg_frame *frame);
// Labels: "0.1", "10"; "1%"; "10 us".
void kg_label_number(struct kg_text *page, double value);
void kg_label_percent(struct kg_text *page, double value);
void kg_label_seconds(struct kg_text *page, double value);
// "0.98", "12.3", "1230": how many times as fast.
void kg_label_ratio(struct kg_text *text, double ratio);

#endif
