// See canvas.h.

#include "report/canvas.h"

#include "base/printable.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const colours[KG_INK_COUNT] = {
    [KG_INK_SOFT] = "\033[2m",    [KG_INK_LINE] = "\033[35m", [KG_INK_GOOD] = "\033[32m",
    [KG_INK_MIDDLE] = "\033[34m", [KG_INK_BAD] = "\033[33m",
};

// In UTF-8 and in ASCII.
static const char *const signs[KG_SIGN_COUNT][2] = {
    [KG_SIGN_FULL] = {"\xe2\x97\x8f", "@"},
    [KG_SIGN_HALF] = {"\xe2\x97\x90", "o"},
    [KG_SIGN_RING] = {"\xe2\x97\x8b", "x"},
    [KG_SIGN_BAR] = {"\xe2\x94\x82", "|"},
};

static void begin_ink(struct kg_text *text, const struct kg_terminal *terminal, int ink)
{
    if (terminal->colour && colours[ink])
        kg_text_add(text, colours[ink]);
}

static void end_ink(struct kg_text *text, const struct kg_terminal *terminal, int ink)
{
    if (terminal->colour && colours[ink])
        kg_text_add(text, "\033[0m");
}

bool kg_canvas_make(struct kg_arena *arena, int width, int height, struct kg_canvas *canvas)
{
    *canvas = (struct kg_canvas){.width = width,
                                 .height = height,
                                 .cells = KG_NEW_ARRAY(arena, width * height, struct kg_cell)};
    return canvas->cells;
}

static struct kg_cell *cell_of(struct kg_canvas *canvas, int x, int y)
{
    if (x < 0 || y < 0 || x >= 2 * canvas->width || y >= 4 * canvas->height)
        return NULL;
    return &canvas->cells[y / 4 * canvas->width + x / 2];
}

void kg_canvas_dot(struct kg_canvas *canvas, int x, int y, enum kg_ink ink)
{
    // Bits of U+2800, by column and row.
    static const unsigned char bits[2][4] = {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}};
    struct kg_cell *cell = cell_of(canvas, x, y);
    if (!cell)
        return;
    cell->dots |= bits[x % 2][y % 4];
    if (ink > cell->ink)
        cell->ink = (unsigned char)ink;
}

void kg_canvas_line(struct kg_canvas *canvas, int x0, int y0, int x1, int y1, enum kg_ink ink)
{
    int steps = abs(x1 - x0) > abs(y1 - y0) ? abs(x1 - x0) : abs(y1 - y0);
    for (int i = 0; i <= steps; i++) {
        double part = steps ? (double)i / steps : 0;
        kg_canvas_dot(canvas, x0 + (int)lround(part * (x1 - x0)),
                      y0 + (int)lround(part * (y1 - y0)), ink);
    }
}

void kg_canvas_sign(struct kg_canvas *canvas, int x, int y, enum kg_sign sign, enum kg_ink ink)
{
    struct kg_cell *cell = cell_of(canvas, x, y);
    if (!cell)
        return;
    cell->sign = (unsigned char)sign;
    cell->ink = (unsigned char)ink;
}

static void add_dots(struct kg_text *text, bool unicode, const struct kg_cell *cell)
{
    unsigned char dots = cell->dots;
    int count = __builtin_popcount(dots);
    if (count == 0) {
        kg_text_add(text, " ");
    } else if (unicode) {
        const char bytes[] = {(char)0xe2, (char)(0xa0 | dots >> 6), (char)(0x80 | (dots & 0x3f))};
        kg_text_add_bytes(text, bytes, sizeof bytes);
    } else {
        kg_text_add(text, cell->ink == KG_INK_LINE ? "." : count < 3 ? "+" : "*");
    }
}

void kg_canvas_row(const struct kg_canvas *canvas, int row, const struct kg_terminal *terminal,
                   struct kg_text *text)
{
    const struct kg_cell *cells = &canvas->cells[row * canvas->width];
    int end = canvas->width;
    while (end > 0 && !cells[end - 1].dots && !cells[end - 1].sign)
        end--;
    for (int i = 0; i < end; i++) {
        const struct kg_cell *cell = &cells[i];
        begin_ink(text, terminal, cell->ink);
        if (cell->sign)
            kg_text_add(text, signs[cell->sign][!terminal->unicode]);
        else
            add_dots(text, terminal->unicode, cell);
        end_ink(text, terminal, cell->ink);
    }
}

void kg_terminal_sign(struct kg_text *text, const struct kg_terminal *terminal, enum kg_sign sign,
                      enum kg_ink ink)
{
    kg_terminal_ink(text, terminal, ink, signs[sign][!terminal->unicode]);
}

void kg_terminal_bar(struct kg_text *text, const struct kg_terminal *terminal, double part,
                     int width, enum kg_ink ink)
{
    int eighths = (int)lround(fmin(fmax(part, 0), 1) * width * 8);
    eighths = part > 0 && eighths == 0 ? 1 : eighths; // what there is, is seen
    begin_ink(text, terminal, ink);
    if (!terminal->unicode)
        eighths = (eighths + 7) / 8 * 8;
    for (int i = 0; i < eighths / 8; i++)
        kg_text_add(text, terminal->unicode ? "\xe2\x96\x88" : "#");
    if (eighths % 8) {
        const char bytes[] = {(char)0xe2, (char)0x96, (char)(0x90 - eighths % 8)};
        kg_text_add_bytes(text, bytes, sizeof bytes);
    }
    end_ink(text, terminal, ink);
}

static bool starts_character(char byte)
{
    return ((unsigned char)byte & 0xc0) != 0x80;
}

void kg_terminal_name(struct kg_text *text, const struct kg_terminal *terminal, const char *name,
                      int width)
{
    struct kg_text shown = {0};
    kg_text_add_printable(&shown, name);
    int length = 0, count = 0;
    for (const char *c = kg_text_string(&shown); *c; c++)
        length += starts_character(*c);
    bool cut = width > 0 && length > width;
    for (const char *c = kg_text_string(&shown); *c; c++) {
        count += starts_character(*c);
        if (cut && count >= width)
            break;
        if (terminal->unicode || !((unsigned char)*c & 0x80))
            kg_text_add_bytes(text, c, 1);
        else if (starts_character(*c))
            kg_text_add(text, "?");
    }
    if (cut)
        kg_text_add(text, terminal->unicode ? "\xe2\x80\xa6" : "~");
    for (int i = length; i < width; i++)
        kg_text_add(text, " ");
    text->failed |= shown.failed;
    kg_text_free(&shown);
}

void kg_terminal_ink(struct kg_text *text, const struct kg_terminal *terminal, enum kg_ink ink,
                     const char *words)
{
    begin_ink(text, terminal, ink);
    kg_text_add(text, words);
    end_ink(text, terminal, ink);
}
