// What the plots of the terminal have in common: labels and lines around a canvas.

#include "report/terminal_parts.h"

#include <string.h>

void kg_terminal_heading(struct kg_terminal_page *page, const char *words)
{
    kg_text_format(&page->text, "\n%s\n", words);
}

void kg_terminal_plot(struct kg_terminal_page *page, const struct kg_canvas *canvas,
                      void (*label)(struct kg_text *text, const void *user, int row),
                      const void *user)
{
    for (int row = 0; row < canvas->height; row++) {
        struct kg_text name = {0};
        label(&name, user, row);
        kg_text_format(&page->text, "%*s %s", KG_TERMINAL_MARGIN - 2, kg_text_string(&name),
                       page->terminal.unicode ? "\xe2\x94\x82" : "|");
        kg_canvas_row(canvas, row, &page->terminal, &page->text);
        kg_text_add(&page->text, "\n");
        page->text.failed |= name.failed;
        kg_text_free(&name);
    }
}

void kg_terminal_axis(struct kg_terminal_page *page, int width,
                      const struct kg_terminal_tick *ticks, int count)
{
    kg_text_format(&page->text, "%*s%s", KG_TERMINAL_MARGIN - 1, "",
                   page->terminal.unicode ? "\xe2\x94\x94" : "+");
    for (int i = 0; i < width; i++)
        kg_text_add(&page->text, page->terminal.unicode ? "\xe2\x94\x80" : "-");
    kg_text_add(&page->text, "\n");
    int at = 0; // the column after what is written
    for (int i = 0; i < count; i++) {
        int length = (int)strlen(ticks[i].label);
        int start = KG_TERMINAL_MARGIN + ticks[i].column - length / 2;
        start = start + length > KG_TERMINAL_MARGIN + width ? KG_TERMINAL_MARGIN + width - length
                                                            : start;
        if (start < at + (at > 0))
            continue; // no room
        kg_text_format(&page->text, "%*s%s", start - at, "", ticks[i].label);
        at = start + length;
    }
    kg_text_add(&page->text, "\n");
}

void kg_terminal_problem(struct kg_text *text, const struct kg_shown_problem *problem)
{
    kg_text_format(text, "%s%s%s%s%s", problem->op, problem->dtypes[0] ? " " : "", problem->dtypes,
                   problem->sizes[0] ? " " : "", problem->sizes);
}
