// The parts of the report for terminals.

#ifndef KG_REPORT_TERMINAL_PARTS_H
#define KG_REPORT_TERMINAL_PARTS_H

#include "report/axis.h"
#include "report/canvas.h"
#include "report/overview.h"

struct kg_terminal_page {
    struct kg_terminal terminal;
    struct kg_arena arena; // of canvases
    struct kg_text text;
};

// terminal_figures.c: over all problems; nothing if there is nothing to show.
void kg_terminal_roofline(struct kg_terminal_page *page, const struct kg_overview *overview);
void kg_terminal_tiers(struct kg_terminal_page *page, const struct kg_overview *overview);
void kg_terminal_predicted(struct kg_terminal_page *page, const struct kg_overview *overview,
                           int device);

// terminal_lists.c
void kg_terminal_shapes(struct kg_terminal_page *page, const struct kg_overview *overview);
void kg_terminal_devices(struct kg_terminal_page *page, const struct kg_overview *overview);
void kg_terminal_problems(struct kg_terminal_page *page, const struct kg_overview *overview);

// terminal_card.c: rounds and progress of one problem.
void kg_terminal_card(struct kg_terminal_page *page, const struct kg_view *view);

// A blank line, then the heading.
void kg_terminal_heading(struct kg_terminal_page *page, const char *words);
// The rows of a canvas behind labels: `label` writes that of a row, or nothing.
void kg_terminal_plot(struct kg_terminal_page *page, const struct kg_canvas *canvas,
                      void (*label)(struct kg_text *text, const void *user, int row),
                      const void *user);
// The line below a plot and its labels.
struct kg_terminal_tick {
    int column; // of the canvas
    char label[24];
};
void kg_terminal_axis(struct kg_terminal_page *page, int width,
                      const struct kg_terminal_tick *ticks, int count);
// "softmax T=f16 P=4096 D=1000"
void kg_terminal_problem(struct kg_text *text, const struct kg_shown_problem *problem);

#define KG_TERMINAL_MARGIN 10 // columns of labels, with the line beside them

#endif
