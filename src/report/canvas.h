// Plots of text: dots of Braille characters, two by four in a cell, or their density in ASCII where
// the terminal has no others.

#ifndef KG_REPORT_CANVAS_H
#define KG_REPORT_CANVAS_H

#include "base/arena.h"
#include "base/text.h"

struct kg_terminal {
    int columns;
    bool unicode; // UTF-8; else ASCII
    bool colour;  // by escape sequences
};

enum kg_ink {
    KG_INK_NONE,
    KG_INK_SOFT,
    KG_INK_LINE,
    KG_INK_GOOD,
    KG_INK_MIDDLE,
    KG_INK_BAD,
    KG_INK_COUNT
};

enum kg_sign { KG_SIGN_NONE, KG_SIGN_FULL, KG_SIGN_HALF, KG_SIGN_RING, KG_SIGN_BAR, KG_SIGN_COUNT };

// What a cell of a canvas shows: a sign, else its dots.
struct kg_cell {
    unsigned char dots;
    unsigned char sign, ink;
};

struct kg_canvas {
    int width, height; // cells; it has twice and four times as many dots
    struct kg_cell *cells;
};

// False: no memory.
bool kg_canvas_make(struct kg_arena *arena, int width, int height, struct kg_canvas *canvas);
// Places are of dots, from the upper left; what is outside is not drawn.
void kg_canvas_dot(struct kg_canvas *canvas, int x, int y, enum kg_ink ink);
void kg_canvas_line(struct kg_canvas *canvas, int x0, int y0, int x1, int y1, enum kg_ink ink);
// The sign takes the cell that has this dot.
void kg_canvas_sign(struct kg_canvas *canvas, int x, int y, enum kg_sign sign, enum kg_ink ink);
// One row of cells, without the blanks at its end.
void kg_canvas_row(const struct kg_canvas *canvas, int row, const struct kg_terminal *terminal,
                   struct kg_text *text);

// ---- Text of a terminal

// The same sign in a legend.
void kg_terminal_sign(struct kg_text *text, const struct kg_terminal *terminal, enum kg_sign sign,
                      enum kg_ink ink);
// A bar of up to `width` cells, in eighths of a cell.
void kg_terminal_bar(struct kg_text *text, const struct kg_terminal *terminal, double part,
                     int width, enum kg_ink ink);
// Text from the records in `width` columns: cut if it is longer, blanks after it if it is shorter.
// 0: as it is.
void kg_terminal_name(struct kg_text *text, const struct kg_terminal *terminal, const char *name,
                      int width);
// Ours, or of the records, in a colour.
void kg_terminal_ink(struct kg_text *text, const struct kg_terminal *terminal, enum kg_ink ink,
                     const char *words);

#endif
