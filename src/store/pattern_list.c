// Patterns for people and for machines.

#include "store/patterns.h"

#include "base/json.h"
#include "base/printable.h"

#include <math.h>
#include <stdio.h>

static void say_subject(const struct kg_pattern *pattern, char *out, size_t size)
{
    if (pattern->subject == KG_SUBJECT_VALUE)
        snprintf(out, size, "%s %s=%lld", pattern->family, pattern->parameter,
                 (long long)pattern->value);
    else
        snprintf(out, size, "%s: %s", kg_pattern_subjects[pattern->subject], pattern->family);
}

static void list_json(struct kg_json *json, const struct kg_pattern *pattern)
{
    kg_json_begin_object(json, NULL);
    kg_json_text(json, "class", pattern->class);
    kg_json_text(json, "dtype", *pattern->dtype ? pattern->dtype : NULL);
    kg_json_text(json, "bucket", *pattern->bucket ? pattern->bucket : NULL);
    kg_json_text(json, "isa", pattern->isa);
    kg_json_text(json, "subject", kg_pattern_subjects[pattern->subject]);
    kg_json_text(json, "family", pattern->family);
    if (pattern->subject == KG_SUBJECT_VALUE) {
        kg_json_text(json, "parameter", pattern->parameter);
        kg_json_integer(json, "value", pattern->value);
    }
    kg_json_integer(json, "problems", pattern->problems);
    kg_json_integer(json, "wins", pattern->wins);
    kg_json_integer(json, "losses", pattern->losses);
    kg_json_integer(json, "tried", pattern->tried);
    kg_json_integer(json, "failed", pattern->failed);
    kg_json_number(json, "time_ratio", exp(pattern->mean));
    kg_json_integer(json, "fitted", pattern->fitted);
    kg_json_number(json, "expected_ratio", pattern->fitted ? exp(pattern->effect) : (double)NAN);
    kg_json_number(json, "confidence", pattern->confidence);
    kg_json_text(json, "state", kg_pattern_state_names[pattern->state]);
    kg_json_end_object(json);
}

static void list_line(struct kg_text *text, const struct kg_pattern *pattern)
{
    char subject[160], share[48], line[512];
    say_subject(pattern, subject, sizeof subject);
    if (pattern->state == KG_PATTERN_FAILS)
        snprintf(share, sizeof share, "%d of %d fail", pattern->failed, pattern->tried);
    else
        snprintf(share, sizeof share, "%d won, %d lost of %d", pattern->wins, pattern->losses,
                 pattern->problems);
    snprintf(line, sizeof line, "%-8s %-40s %-24s time x%-5.2f %4.2f  %s %s, %s",
             kg_pattern_state_names[pattern->state], subject, share, exp(pattern->mean),
             pattern->confidence, pattern->class, *pattern->dtype ? pattern->dtype : "any dtype",
             *pattern->bucket ? pattern->bucket : "any size");
    kg_text_add_printable(text, line);
    kg_text_add(text, "\n");
}

static bool is_of_one_device(const struct kg_pattern *a, const struct kg_pattern *b)
{
    return a && strcmp(a->isa, b->isa) == 0;
}

// By device, the order of the patterns within each level being kept.
static void list_table(struct kg_text *text, const struct kg_patterns *patterns)
{
    int open = 0;
    for (int i = 0; i < patterns->count; i++) {
        const struct kg_pattern *first = &patterns->list[i];
        bool seen = false;
        open += first->state == KG_PATTERN_OPEN;
        for (int j = 0; j < i && !seen; j++)
            seen = is_of_one_device(&patterns->list[j], first);
        if (seen)
            continue;
        kg_text_add(text, "On ");
        kg_text_add_printable(text, first->isa);
        kg_text_add(text, ":\n");
        for (int j = i; j < patterns->count; j++)
            if (is_of_one_device(first, &patterns->list[j]) &&
                patterns->list[j].state != KG_PATTERN_OPEN)
                list_line(text, &patterns->list[j]);
    }
    if (patterns->count == 0)
        kg_text_add(text, "no patterns: nothing was searched yet\n");
    else
        kg_text_format(text, "%d more have no clear result, or fewer than 3 problems\n", open);
}

enum kg_status kg_store_list_patterns(struct kg_store *store, bool json, struct kg_text *text,
                                      struct kg_error *error)
{
    struct kg_patterns patterns;
    size_t start = text->length;
    struct kg_json writer = {.text = text};
    enum kg_status status = kg_patterns_load(store, NULL, NULL, NULL, &patterns, error);
    if (status == KG_OK && json) {
        kg_json_begin_array(&writer, NULL);
        for (int i = 0; i < patterns.count; i++)
            list_json(&writer, &patterns.list[i]);
        kg_json_end_array(&writer);
        kg_text_add(text, "\n");
    } else if (status == KG_OK) {
        list_table(text, &patterns);
    }
    kg_patterns_free(&patterns);
    if (status == KG_OK && text->failed)
        status = kg_error_memory(error, "the list of patterns");
    if (status != KG_OK)
        kg_text_cut(text, start);
    return status;
}
