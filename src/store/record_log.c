// The log of an op as Markdown: for each problem its rounds, the outcomes of candidates, the
// fastest ones and why others failed. Oldest first, so that the latest is at the end.

#include "store/database.h"

#include "base/printable.h"

#include <math.h>

// A table cell: line breaks and bars would end it.
static void add_cell(struct kg_text *text, const char *cell)
{
    struct kg_text content = {0};
    for (; *cell; cell++) {
        if (*cell == '|')
            kg_text_add(&content, "\\|");
        else
            kg_text_add_bytes(&content, *cell == '\n' || *cell == '\r' ? " " : cell, 1);
    }
    kg_text_add(text, " ");
    kg_text_add_printable(text, kg_text_string(&content));
    kg_text_add(text, " |");
    text->failed |= content.failed;
    kg_text_free(&content);
}

static void add_time(struct kg_text *text, double seconds)
{
    if (isfinite(seconds) && seconds > 0) {
        kg_text_add(text, " ");
        kg_text_seconds(text, seconds);
        kg_text_add(text, " |");
    } else {
        kg_text_add(text, " - |");
    }
}

static enum kg_status add_rounds(struct kg_store *store, int64_t key, struct kg_text *text,
                                 struct kg_error *error)
{
    struct kg_query query = kg_query_begin(store, KG_SQL_LOG_ROUNDS);
    kg_query_bind_integer(&query, key);
    for (bool first = true; kg_query_step(&query); first = false) {
        if (first)
            kg_text_add(text, "\n### Rounds\n\n"
                              "| date | round | diagnosis | change | choice | before | after "
                              "| baseline | result |\n|---|---|---|---|---|---|---|---|---|\n");
        kg_text_add(text, "|");
        add_cell(text, kg_query_text(&query));
        kg_text_format(text, " %lld |", (long long)kg_query_integer(&query));
        for (int i = 0; i < 3; i++)
            add_cell(text, kg_query_text(&query));
        for (int i = 0; i < 3; i++)
            add_time(text, kg_query_number(&query));
        add_cell(text, kg_query_text(&query));
        kg_text_add(text, "\n");
    }
    return kg_query_end(&query, error);
}

static enum kg_status add_counts(struct kg_store *store, int64_t key, struct kg_text *text,
                                 struct kg_error *error)
{
    struct kg_query query = kg_query_begin(store, KG_SQL_LOG_COUNTS);
    kg_query_bind_integer(&query, key);
    for (bool first = true; kg_query_step(&query); first = false) {
        if (first)
            kg_text_add(text, "\n### Outcomes\n\n"
                              "| outcome | candidates | first | last |\n|---|---|---|---|\n");
        kg_text_add(text, "|");
        add_cell(text, kg_query_text(&query));
        kg_text_format(text, " %lld |", (long long)kg_query_integer(&query));
        add_cell(text, kg_query_text(&query));
        add_cell(text, kg_query_text(&query));
        kg_text_add(text, "\n");
    }
    return kg_query_end(&query, error);
}

static enum kg_status add_best(struct kg_store *store, int64_t key, struct kg_text *text,
                               struct kg_error *error)
{
    struct kg_query query = kg_query_begin(store, KG_SQL_LOG_BEST);
    kg_query_bind_integer(&query, key);
    for (bool first = true; kg_query_step(&query); first = false) {
        if (first)
            kg_text_add(text, "\n### Fastest\n\n"
                              "| choice | median | spread | samples | bound | date |\n"
                              "|---|---|---|---|---|---|\n");
        kg_text_add(text, "|");
        add_cell(text, kg_query_text(&query));
        add_time(text, kg_query_number(&query));
        add_time(text, kg_query_number(&query));
        kg_text_format(text, " %lld |", (long long)kg_query_integer(&query));
        add_time(text, kg_query_number(&query));
        add_cell(text, kg_query_text(&query));
        kg_text_add(text, "\n");
    }
    return kg_query_end(&query, error);
}

static enum kg_status add_failed(struct kg_store *store, int64_t key, struct kg_text *text,
                                 struct kg_error *error)
{
    struct kg_query query = kg_query_begin(store, KG_SQL_LOG_FAILED);
    kg_query_bind_integer(&query, key);
    for (bool first = true; kg_query_step(&query); first = false) {
        if (first)
            kg_text_add(text, "\n### Failed\n\n"
                              "| choice | outcome | reason | date |\n|---|---|---|---|\n");
        kg_text_add(text, "|");
        for (int i = 0; i < 4; i++)
            add_cell(text, kg_query_text(&query));
        kg_text_add(text, "\n");
    }
    return kg_query_end(&query, error);
}

static void add_heading(struct kg_text *text, const struct kg_key *key)
{
    struct kg_text line = {0};
    char definition[KG_HASH_TEXT];
    kg_hash_format(key->definition, definition);
    kg_text_format(&line, "%s%s%s%s%s", key->op, key->dtypes[0] ? " " : "", key->dtypes,
                   key->sizes[0] ? ", " : "", key->sizes);
    kg_text_add(text, "\n## ");
    kg_text_add_printable(text, kg_text_string(&line));
    kg_text_cut(&line, 0);
    kg_text_format(&line, "%s, %s, %d units. Driver %s, compiler %s, %s, layout %s.", key->device,
                   key->isa, key->units, key->driver[0] ? key->driver : "none",
                   key->compiler[0] ? key->compiler : "none", key->protocol,
                   key->layout[0] ? key->layout : "contiguous");
    kg_text_add(text, "\n\n");
    kg_text_add_printable(text, kg_text_string(&line));
    kg_text_format(text, "\nDefinition %.8s.\n", definition);
    text->failed |= line.failed;
    kg_text_free(&line);
}

// One section. The caller's statement stays open meanwhile; sections use others.
static enum kg_status add_key(struct kg_store *store, int64_t id, const struct kg_key *key,
                              struct kg_text *text, struct kg_error *error)
{
    add_heading(text, key);
    enum kg_status status = add_rounds(store, id, text, error);
    if (status == KG_OK)
        status = add_counts(store, id, text, error);
    if (status == KG_OK)
        status = add_best(store, id, text, error);
    if (status == KG_OK)
        status = add_failed(store, id, text, error);
    return status;
}

enum kg_status kg_store_log(struct kg_store *store, const char *op, struct kg_text *markdown,
                            struct kg_error *error)
{
    kg_arena_free(&store->scratch);
    size_t start = markdown->length;
    kg_text_format(markdown, "# Optimisation log%s%s\n", op ? " of " : "", op ? op : "");
    struct kg_query query = kg_query_begin(store, KG_SQL_LOG_KEYS);
    kg_query_bind_text(&query, op);
    enum kg_status status = KG_OK;
    bool any = false;
    while (status == KG_OK && kg_query_step(&query)) {
        int64_t id = kg_query_integer(&query);
        struct kg_key key;
        kg_query_key(&query, &key);
        status = add_key(store, id, &key, markdown, error);
        any = true;
    }
    enum kg_status end = kg_query_end(&query, status == KG_OK ? error : NULL);
    if (status == KG_OK)
        status = end;
    if (!any)
        kg_text_add(markdown, "\nNothing is recorded yet.\n");
    if (status == KG_OK && markdown->failed)
        status = kg_error_memory(error, "the log");
    if (status != KG_OK)
        kg_text_cut(markdown, start);
    return status;
}
