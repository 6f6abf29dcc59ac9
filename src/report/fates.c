// See fates.h.

#include "report/fates.h"

#include <math.h>
#include <string.h>

#define REASON_WIDTH 40    // most reasons are shorter; longer ones push the parameters aside
#define LEAST_SLOWER 0.001 // less is not said in percent

const struct kg_outcome *kg_outcomes_find(const struct kg_outcomes *outcomes, const char *choice)
{
    for (int i = 0; i < outcomes->count; i++)
        if (strcmp(outcomes->list[i].choice, choice) == 0)
            return &outcomes->list[i];
    return NULL;
}

// ---- Reasons

// `slower`: of the kept one's time.
static void add_difference(double slower, struct kg_text *text)
{
    if (slower >= 1)
        kg_text_format(text, "%.1f times as slow", 1 + slower);
    else
        kg_text_format(text, "%.*f%% %s", fabs(slower) < 0.0995 ? 1 : 0, 100 * fabs(slower),
                       slower < 0 ? "faster" : "slower");
}

static void add_measured(const struct kg_outcome *outcome, const struct kg_outcome *kept,
                         struct kg_text *text)
{
    if (outcome->timing.abandoned) {
        kg_text_add(text, "given up: its first runs were twice as slow");
        return;
    }
    if (!kept || kept->timing.median <= 0) {
        kg_text_add(text, "measured; what is kept was not");
        return;
    }
    double slower = outcome->timing.median / kept->timing.median - 1;
    if (outcome->final && slower < LEAST_SLOWER) {
        kg_text_add(text, "lost the final race, within the noise");
        return;
    }
    kg_text_add(text, outcome->final ? "lost the final race, " : "");
    add_difference(slower, text);
    kg_text_add(text, slower < 0 ? " alone, never in a race" : "");
}

void kg_outcome_fate(const struct kg_outcomes *outcomes, const struct kg_outcome *outcome,
                     const struct kg_outcome *kept, struct kg_text *text)
{
    if (outcome == kept) {
        bool alone = outcomes->by_kind[KG_OUTCOME_MEASURED] < 2;
        kg_text_add(text, alone ? "kept: the only one that was measured"
                                : "kept: none is faster beyond the noise");
        return;
    }
    if (outcome->kind == KG_OUTCOME_MEASURED) {
        add_measured(outcome, kept, text);
        return;
    }
    // A reason may have several lines (of a compiler); the first one says what happened.
    const char *reason = outcome->reason ? outcome->reason : "";
    kg_text_format(text, "%s: %.*s", kg_outcome_names[outcome->kind], (int)strcspn(reason, "\n"),
                   reason);
}

// ---- Parameters

// One group of a choice, "family: a=1 b=2", and what follows it.
struct group {
    const char *head, *values, *end;
};

static bool next_group(const char **rest, struct group *group)
{
    const char *text = *rest;
    if (!*text)
        return false;
    const char *end = strstr(text, "; ");
    end = end ? end : text + strlen(text);
    size_t head = strcspn(text, ":");
    *group = (struct group){text, text + head < end ? text + head : end, end};
    *rest = *end ? end + 2 : end;
    return true;
}

// Have both the same families in the same order? `*count`: the number of groups.
static bool is_alike(const char *a, const char *b, int *count)
{
    struct group one, other;
    for (*count = 0; next_group(&a, &one); ++*count)
        if (!next_group(&b, &other) || one.values - one.head != other.values - other.head ||
            strncmp(one.head, other.head, (size_t)(one.values - one.head)) != 0)
            return false;
    return !*b;
}

// Is this word, "a=1", among those of the group?
static bool has_word(const struct group *group, const char *word, size_t length)
{
    for (const char *at = group->values; at < group->end; at += strcspn(at, " ")) {
        at += strspn(at, ": ");
        if (strncmp(at, word, length) == 0 && strcspn(at, " ;") == length)
            return true;
    }
    return false;
}

// The parameters of a group that are others than the kept one's.
static void add_words(const struct group *group, const struct group *kept, struct kg_text *text)
{
    const char *before = "";
    for (const char *at = group->values; at < group->end;) {
        at += strspn(at, ": ");
        size_t length = strcspn(at, " ;");
        if (length > 0 && !has_word(kept, at, length)) {
            kg_text_format(text, "%s%.*s", before, (int)length, at);
            before = " ";
        }
        at += length;
    }
}

static void add_changes(const char *choice, const char *kept, struct kg_text *text)
{
    struct group one, other;
    int count;
    if (!is_alike(choice, kept, &count)) {
        kg_text_add(text, choice);
        return;
    }
    const char *before = "";
    for (int number = 1; next_group(&choice, &one) && next_group(&kept, &other); number++) {
        size_t length = (size_t)(one.end - one.head);
        if (length == (size_t)(other.end - other.head) &&
            strncmp(one.head, other.head, length) == 0)
            continue;
        kg_text_add(text, before);
        if (count > 1)
            kg_text_format(text, "kernel %d: ", number);
        add_words(&one, &other, text);
        before = "; ";
    }
}

// ---- Lines

static void add_line(const struct kg_outcomes *outcomes, const struct kg_outcome *outcome,
                     const struct kg_outcome *kept, const char *choice, struct kg_text *text)
{
    struct kg_text time = {0}, reason = {0};
    if (outcome->kind == KG_OUTCOME_MEASURED)
        kg_text_seconds(&time, outcome->timing.median);
    kg_outcome_fate(outcomes, outcome, kept, &reason);
    kg_text_format(text, "%10s  ", kg_text_string(&time));
    if (outcome == kept) {
        kg_text_add(text, kg_text_string(&reason));
    } else {
        kg_text_format(text, "%-*s  ", REASON_WIDTH, kg_text_string(&reason));
        add_changes(outcome->choice, choice, text);
    }
    kg_text_add(text, "\n");
    text->failed |= time.failed || reason.failed;
    kg_text_free(&time);
    kg_text_free(&reason);
}

void kg_outcomes_fates(const struct kg_outcomes *outcomes, const char *choice, struct kg_text *text)
{
    const struct kg_outcome *kept = kg_outcomes_find(outcomes, choice);
    if (kept)
        add_line(outcomes, kept, kept, choice, text);
    for (int i = 0; i < outcomes->count; i++)
        if (&outcomes->list[i] != kept)
            add_line(outcomes, &outcomes->list[i], kept, choice, text);
}
