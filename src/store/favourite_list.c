// Favourites for people and for machines.

#include "store/favourites.h"

#include "base/json.h"
#include "base/printable.h"
#include "store/database.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 3 }; // of a class

static int by_chance(const void *a, const void *b)
{
    const struct kg_favourite *one = a, *other = b;
    int order = (one->chance < other->chance) - (one->chance > other->chance);
    order = order ? order : strcmp(one->family, other->family);
    return order ? order : strcmp(one->config, other->config);
}

// Only those that came near a best, the best chance first. What their ballots say of them is lost.
static void sort(struct kg_favourites *favourites)
{
    int kept = 0;
    for (int i = 0; i < favourites->count; i++)
        if (favourites->list[i].chance > 0)
            favourites->list[kept++] = favourites->list[i];
    favourites->count = kept;
    favourites->ballot_count = 0;
    if (kept > 0)
        qsort(favourites->list, (size_t)kept, sizeof *favourites->list, by_chance);
}

static void list_json(struct kg_json *json, const char *class, const char *isa,
                      const struct kg_favourites *favourites)
{
    kg_json_begin_object(json, NULL);
    kg_json_text(json, "class", class);
    kg_json_text(json, "isa", isa);
    kg_json_integer(json, "problems", favourites->problems);
    kg_json_begin_array(json, "favourites");
    for (int i = 0; i < favourites->count; i++) {
        kg_json_begin_object(json, NULL);
        kg_json_text(json, "family", favourites->list[i].family);
        kg_json_text(json, "config", favourites->list[i].config);
        kg_json_number(json, "chance", favourites->list[i].chance);
        kg_json_end_object(json);
    }
    kg_json_end_array(json);
    kg_json_end_object(json);
}

static void list_lines(struct kg_text *text, const char *class,
                       const struct kg_favourites *favourites)
{
    kg_text_add_printable(text, class);
    kg_text_format(text, ", %d problem%s:\n", favourites->problems,
                   favourites->problems == 1 ? "" : "s");
    for (int i = 0; i < favourites->count && i < SHOWN; i++) {
        const struct kg_favourite *one = &favourites->list[i];
        kg_text_format(text, "%6.2f  ", one->chance);
        kg_text_add_printable(text, one->family);
        kg_text_add(text, ": ");
        kg_text_add_printable(text, one->config);
        kg_text_add(text, "\n");
    }
    if (favourites->count > SHOWN)
        kg_text_format(text, "        and %d with smaller chances\n", favourites->count - SHOWN);
}

// The classes of a device follow each other. `last`: the device of the class before.
static enum kg_status list_class(struct kg_store *store, const char *class, const char *isa,
                                 struct kg_text *last, struct kg_json *json, struct kg_text *text,
                                 struct kg_error *error)
{
    const struct kg_traits traits = {.class = class, .dtype = "", .bucket = ""};
    struct kg_favourites favourites;
    enum kg_status status = kg_favourites_load(store, &traits, isa, NULL, &favourites, error);
    sort(&favourites);
    if (status == KG_OK && favourites.count > 0 && json) {
        list_json(json, class, isa, &favourites);
    } else if (status == KG_OK && favourites.count > 0) {
        if (strcmp(kg_text_string(last), isa) != 0) {
            kg_text_add(text, "On ");
            kg_text_add_printable(text, isa);
            kg_text_add(text, ":\n");
            kg_text_cut(last, 0);
            kg_text_add(last, isa);
        }
        list_lines(text, class, &favourites);
    }
    kg_favourites_free(&favourites);
    return status;
}

enum kg_status kg_store_list_favourites(struct kg_store *store, bool json, struct kg_text *text,
                                        struct kg_error *error)
{
    size_t start = text->length;
    struct kg_text last = {0};
    struct kg_json writer = {.text = text};
    enum kg_status status = KG_OK;
    struct kg_query query = kg_query_begin(store, KG_SQL_CLASSES);
    if (json)
        kg_json_begin_array(&writer, NULL);
    while (status == KG_OK && kg_query_step(&query)) {
        const char *class = kg_query_text(&query), *isa = kg_query_text(&query);
        status = list_class(store, class, isa, &last, json ? &writer : NULL, text, error);
    }
    enum kg_status ending = kg_query_end(&query, status == KG_OK ? error : NULL);
    status = status == KG_OK ? ending : status;
    if (json) {
        kg_json_end_array(&writer);
        kg_text_add(text, "\n");
    } else if (status == KG_OK && text->length == start) {
        kg_text_add(text, "no favourites: nothing was measured yet\n");
    }
    if (status == KG_OK && (text->failed || last.failed))
        status = kg_error_memory(error, "the list of favourites");
    kg_text_free(&last);
    if (status != KG_OK)
        kg_text_cut(text, start);
    return status;
}
