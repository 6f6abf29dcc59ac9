// See terminal.h.

#include "report/terminal.h"

#include "report/terminal_parts.h"

#define MAX_CARDS 3 // without an op: more would push the figures away

struct building {
    struct kg_terminal_page cards; // rounds and progress, which follow the figures
    bool wanted;                   // whatever the number of problems
};

static void add_card(void *user, const struct kg_overview *overview, const struct kg_view *view)
{
    struct building *building = user;
    if (building->wanted || overview->total <= MAX_CARDS)
        kg_terminal_card(&building->cards, view);
}

static void add_figures(struct kg_terminal_page *page, const struct kg_overview *overview)
{
    kg_overview_summarise(overview, &page->text);
    kg_text_add(&page->text, "\n");
    if (overview->problem_count == 0)
        return;
    kg_terminal_roofline(page, overview);
    for (int i = 0; i < overview->device_count; i++)
        kg_terminal_predicted(page, overview, i);
    kg_terminal_tiers(page, overview);
    kg_terminal_shapes(page, overview);
    kg_terminal_devices(page, overview);
    kg_terminal_problems(page, overview);
}

static struct kg_terminal within_limits(const struct kg_terminal *terminal)
{
    struct kg_terminal own = *terminal;
    own.columns = own.columns < KG_LEAST_COLUMNS ? KG_LEAST_COLUMNS : own.columns;
    own.columns = own.columns > KG_MOST_COLUMNS ? KG_MOST_COLUMNS : own.columns;
    return own;
}

enum kg_status kg_report_terminal(struct kg_store *store, const char *op,
                                  const struct kg_terminal *terminal, struct kg_text *text,
                                  struct kg_error *error)
{
    struct kg_terminal own = within_limits(terminal);
    struct building building = {.cards = {.terminal = own}, .wanted = op};
    struct kg_terminal_page page = {.terminal = own};
    struct kg_overview overview;
    enum kg_status status =
        kg_overview_collect(store, op, NULL, add_card, &building, &overview, error);
    if (status == KG_OK) {
        add_figures(&page, &overview);
        kg_text_add(&page.text, kg_text_string(&building.cards.text));
        kg_overview_free(&overview);
    }
    if (status == KG_OK && (page.text.failed || building.cards.text.failed || page.arena.failed ||
                            building.cards.arena.failed))
        status = kg_error_memory(error, "the report");
    if (status == KG_OK)
        kg_text_add(text, kg_text_string(&page.text));
    if (status == KG_OK && text->failed)
        status = kg_error_memory(error, "the report");
    kg_text_free(&page.text);
    kg_text_free(&building.cards.text);
    kg_arena_free(&page.arena);
    kg_arena_free(&building.cards.arena);
    return status;
}
