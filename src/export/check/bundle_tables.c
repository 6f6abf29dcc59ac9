// Tables of a bundle's tests.

#include "export/check/bundle_tables.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

#define MOST_ROWS 256

static const char *text_of(struct kg_arena *arena, const struct kg_python_tokens *tokens, int token)
{
    struct kg_python_place inside = kg_python_inside(tokens, token);
    return kg_arena_copy(arena, tokens->text + inside.at, inside.length);
}

static bool is_string(const struct kg_python_tokens *tokens, int token)
{
    return tokens->tokens[token].kind == KG_PYTHON_STRING;
}

void kg_bundle_entries(struct kg_arena *arena, const struct kg_bundle_source *source,
                       struct kg_python_range range, struct kg_bundle_entries *entries)
{
    const struct kg_python_tokens *tokens = &source->lines.tokens;
    struct kg_python_range parts[KG_BUNDLE_ENTRIES];
    entries->count = 0;
    if (range.end - range.first < 2)
        return;
    int count = kg_python_split(tokens, (struct kg_python_range){range.first + 1, range.end - 1},
                                KG_BUNDLE_ENTRIES, parts);
    for (int i = 0; i < count; i++) {
        struct kg_bundle_entry *entry = &entries->entries[entries->count];
        if (!is_string(tokens, parts[i].first))
            continue;
        *entry = (struct kg_bundle_entry){.key = text_of(arena, tokens, parts[i].first),
                                          .place = tokens->tokens[parts[i].first].place};
        bool has_value =
            parts[i].end > parts[i].first + 2 && kg_python_is(tokens, parts[i].first + 1, ":");
        if (!entry->key || (!has_value && parts[i].end > parts[i].first + 1))
            continue;
        if (has_value)
            entry->value = (struct kg_python_range){parts[i].first + 2, parts[i].end};
        if (has_value && entry->value.end == entry->value.first + 1 &&
            is_string(tokens, entry->value.first))
            entry->text = text_of(arena, tokens, entry->value.first);
        entries->count++;
    }
}

const struct kg_bundle_entry *kg_bundle_entry(const struct kg_bundle_entries *entries,
                                              const char *key)
{
    for (int i = 0; i < entries->count; i++)
        if (strcmp(entries->entries[i].key, key) == 0)
            return &entries->entries[i];
    return NULL;
}

bool kg_bundle_find_value(const struct kg_bundle_source *source, const char *name,
                          struct kg_python_range *value)
{
    const struct kg_python_lines *lines = &source->lines;
    for (int i = 0; i < lines->count; i++) {
        struct kg_python_range target;
        if (lines->lines[i].depth == 0 &&
            kg_python_is(&lines->tokens, lines->lines[i].range.first, name) &&
            kg_python_assigns(&lines->tokens, lines->lines[i].range, &target, value) &&
            target.end == target.first + 1)
            return true;
    }
    return false;
}

static int find_def(const struct kg_python_lines *lines, const char *name)
{
    for (int i = 0; i < lines->count; i++)
        if (lines->lines[i].depth == 0 &&
            kg_python_is(&lines->tokens, lines->lines[i].range.first, "def") &&
            kg_python_is(&lines->tokens, lines->lines[i].range.first + 1, name))
            return i;
    return -1;
}

bool kg_bundle_find_function(const struct kg_bundle_source *source, const char *name,
                             struct kg_python_function *function)
{
    int line = find_def(&source->lines, name);
    return line >= 0 && kg_python_function(&source->lines, line, function);
}

bool kg_bundle_find_result(const struct kg_bundle_source *source, const char *name,
                           struct kg_python_range *value)
{
    const struct kg_python_lines *lines = &source->lines;
    int line = find_def(lines, name);
    for (int i = line >= 0 ? lines->lines[line].end - 1 : 0; line >= 0 && i > line; i--) {
        struct kg_python_range range = lines->lines[i].range;
        if (!kg_python_is(&lines->tokens, range.first, "return"))
            continue;
        *value = (struct kg_python_range){range.first + 1, range.end};
        return value->end > value->first;
    }
    return false;
}

// ---- Statements

void kg_bundle_read_name(struct kg_bundle_facts *facts, int role,
                         const struct kg_bundle_source *source)
{
    const struct kg_python_tokens *tokens = &source->lines.tokens;
    struct kg_python_range value;
    if (!kg_bundle_find_value(source, "NAME", &value))
        return;
    struct kg_python_place place = kg_python_place_of(tokens, value);
    bool is_text = value.end == value.first + 1 && is_string(tokens, value.first);
    const char *name = is_text ? text_of(facts->arena, tokens, value.first) : NULL;
    kg_bundle_state(facts, (struct kg_bundle_statement){
                               .fact = KG_FACT_NAME,
                               .value = name,
                               .shown = kg_bundle_shown(facts, source, place),
                               .role = role,
                               .is_code = true,
                               .place = place,
                           });
}

void kg_bundle_read_goal(struct kg_bundle_facts *facts, int role,
                         const struct kg_bundle_source *source, const char *name)
{
    const struct kg_python_tokens *tokens = &source->lines.tokens;
    struct kg_python_range value;
    if (kg_bundle_find_value(source, name, &value))
        kg_bundle_state(facts, (struct kg_bundle_statement){
                                   .fact = KG_FACT_GOAL,
                                   .subject = name,
                                   .value = kg_python_plain(facts->arena, tokens, value),
                                   .shown = kg_bundle_shown_range(facts, source, value),
                                   .role = role,
                                   .is_code = true,
                                   .place = kg_python_place_of(tokens, value),
                               });
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void kg_bundle_say_sizes(struct kg_bundle_facts *facts, int role, const char **names, int count,
                         struct kg_python_place place)
{
    struct kg_text text = {0};
    qsort(names, (size_t)count, sizeof *names, compare);
    for (int i = 0; i < count; i++)
        kg_text_format(&text, "%s%s", i ? ", " : "", names[i]);
    const char *value = kg_arena_copy(facts->arena, kg_text_string(&text), text.length);
    facts->arena->failed |= text.failed;
    kg_text_free(&text);
    kg_bundle_state(facts, (struct kg_bundle_statement){.fact = KG_FACT_SIZES,
                                                        .value = value,
                                                        .shown = value && *value ? value : "none",
                                                        .role = role,
                                                        .is_code = true,
                                                        .place = place});
}

static void read_row(struct kg_bundle_facts *facts, int role, const struct kg_bundle_source *source,
                     struct kg_python_range row, const char *key)
{
    struct kg_bundle_entries entries;
    const char *names[KG_BUNDLE_ENTRIES];
    if (!kg_python_is(&source->lines.tokens, row.first, "{"))
        return;
    kg_bundle_entries(facts->arena, source, row, &entries);
    if (key) {
        const struct kg_bundle_entry *entry = kg_bundle_entry(&entries, key);
        if (entry)
            read_row(facts, role, source, entry->value, NULL);
        return;
    }
    for (int i = 0; i < entries.count; i++)
        names[i] = entries.entries[i].key;
    kg_bundle_say_sizes(facts, role, names, entries.count,
                        kg_python_place_of(&source->lines.tokens, row));
}

void kg_bundle_read_rows(struct kg_bundle_facts *facts, int role,
                         const struct kg_bundle_source *source, const char *name, const char *key)
{
    struct kg_python_range value, rows[MOST_ROWS];
    if (!kg_bundle_find_value(source, name, &value) || value.end - value.first < 2)
        return;
    struct kg_python_range inside = {value.first + 1, value.end - 1};
    int count = kg_python_split(&source->lines.tokens, inside, MOST_ROWS, rows);
    for (int i = 0; i < count; i++)
        if (rows[i].end > rows[i].first)
            read_row(facts, role, source, rows[i], key);
}
