// What the candidates of one problem say of values, families and groupings. Choices are read as
// text ("rowwise*4: block=4 stream=1; pointwise: vector=8"), so that records of any version and any
// device give lessons.
//
// Values are compared where all else is equal: the best times of two values are often those of
// different other values. What the pairs say counts the more the faster they are, since a search
// ends among the fastest.

#include "store/lesson_tally.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- Choices as subjects

// Of one choice: 64 groups have seldom more than one parameter that matters.
#define MOST_SUBJECTS 192

static bool copy_word(char to[KG_LESSON_WORD], const char *from, size_t length)
{
    if (length == 0 || length >= KG_LESSON_WORD)
        return false;
    memcpy(to, from, length);
    to[length] = '\0';
    return true;
}

static bool is_same(const struct kg_lesson_subject *a, const struct kg_lesson_subject *b)
{
    return a->kind == b->kind && a->value == b->value && strcmp(a->family, b->family) == 0 &&
           strcmp(a->parameter, b->parameter) == 0;
}

// Another value of the same parameter, another family, another grouping.
static bool are_rivals(const struct kg_lesson_subject *a, const struct kg_lesson_subject *b)
{
    if (a->kind != b->kind || is_same(a, b))
        return false;
    return a->kind != KG_SUBJECT_VALUE ||
           (strcmp(a->family, b->family) == 0 && strcmp(a->parameter, b->parameter) == 0);
}

// A subject that a choice has twice is listed once.
static void list_subject(struct kg_lesson_subject *subjects, int *count,
                         const struct kg_lesson_subject *subject)
{
    for (int i = 0; i < *count; i++)
        if (is_same(&subjects[i], subject))
            return;
    if (*count < MOST_SUBJECTS)
        subjects[(*count)++] = *subject;
}

// "rowwise*4: block=4 stream=1", up to `end`. Returns the number of nests.
static int list_group(const char *text, const char *end, struct kg_lesson_subject *subjects,
                      int *count)
{
    struct kg_lesson_subject subject = {.kind = KG_SUBJECT_FORM};
    size_t length = strcspn(text, "*:;");
    int nests =
        text + length < end && text[length] == '*' ? (int)strtol(text + length + 1, NULL, 10) : 1;
    if (!copy_word(subject.family, text, length))
        return nests;
    list_subject(subjects, count, &subject);
    subject.kind = KG_SUBJECT_VALUE;
    const char *colon = memchr(text, ':', (size_t)(end - text));
    for (const char *word = colon ? colon + 1 : end; word < end;) {
        word += strspn(word, " ");
        size_t name = strcspn(word, "= ;"), whole = strcspn(word, " ;");
        if (word < end && name < whole && copy_word(subject.parameter, word, name)) {
            subject.value = strtoll(word + name + 1, NULL, 10);
            list_subject(subjects, count, &subject);
        }
        word += whole;
        if (whole == 0)
            break;
    }
    return nests;
}

static int list_subjects(const char *choice, struct kg_lesson_subject *subjects)
{
    int count = 0, groups = 0, nests = 0;
    while (*choice) {
        const char *end = choice + strcspn(choice, ";");
        nests += list_group(choice, end, subjects, &count);
        groups++;
        choice = end + strspn(end, "; ");
    }
    struct kg_lesson_subject grouping = {.kind = KG_SUBJECT_GROUPING};
    const char *name = groups == 1       ? "one kernel"
                       : groups == nests ? "a kernel each"
                                         : "some fused";
    snprintf(grouping.family, sizeof grouping.family, "%s", name);
    if (nests > 1)
        list_subject(subjects, &count, &grouping);
    return count;
}

// ---- Tallies

static struct kg_lesson_tally *find_tally(struct kg_lesson_tallies *tallies,
                                          const struct kg_lesson_subject *subject)
{
    for (int i = 0; i < tallies->count; i++)
        if (is_same(&tallies->list[i].subject, subject))
            return &tallies->list[i];
    if (tallies->count == tallies->capacity) {
        int capacity = tallies->capacity ? 2 * tallies->capacity : 64;
        struct kg_lesson_tally *larger = realloc(tallies->list, (size_t)capacity * sizeof *larger);
        if (!larger) {
            tallies->failed = true;
            return NULL;
        }
        tallies->list = larger;
        tallies->capacity = capacity;
    }
    struct kg_lesson_tally *tally = &tallies->list[tallies->count++];
    *tally = (struct kg_lesson_tally){.subject = *subject, .best = INFINITY, .without = INFINITY};
    return tally;
}

static bool has_failed(const struct kg_outcome *outcome)
{
    bool spills = outcome->forecast.known && outcome->forecast.feature[KG_FEATURE_SPILLS] > 0;
    return outcome->kind == KG_OUTCOME_COMPILE || outcome->kind == KG_OUTCOME_WRONG ||
           outcome->kind == KG_OUTCOME_FAULT || outcome->kind == KG_OUTCOME_TIMEOUT || spills;
}

// The choice without this value, which stands at `value` in the text.
static uint64_t context_of(const char *choice, const char *value)
{
    struct kg_hash hash = kg_hash_bytes(choice, (size_t)(value - choice));
    return kg_hash_chain_text(hash, value + strcspn(value, " ;")).low;
}

static void add_entry(struct kg_lesson_tallies *tallies, uint64_t context, int tally,
                      double seconds)
{
    if (tallies->entry_count == tallies->entry_capacity) {
        int capacity = tallies->entry_capacity ? 2 * tallies->entry_capacity : 256;
        struct kg_lesson_entry *larger =
            realloc(tallies->entries, (size_t)capacity * sizeof *larger);
        if (!larger) {
            tallies->failed = true;
            return;
        }
        tallies->entries = larger;
        tallies->entry_capacity = capacity;
    }
    tallies->entries[tallies->entry_count++] =
        (struct kg_lesson_entry){context, tally, log(seconds)};
}

// Every value of the choice, at each of its places.
static void add_entries(struct kg_lesson_tallies *tallies, const char *choice, double seconds)
{
    struct kg_lesson_subject subjects[MOST_SUBJECTS];
    for (const char *group = choice; *group;) {
        const char *end = group + strcspn(group, ";");
        int count = 0;
        list_group(group, end, subjects, &count);
        for (int i = 1; i < count; i++) { // the first is the family
            char word[KG_LESSON_WORD + 2];
            snprintf(word, sizeof word, " %s=", subjects[i].parameter);
            const char *value = strstr(group, word);
            const struct kg_lesson_tally *tally = find_tally(tallies, &subjects[i]);
            if (value && value < end && tally)
                add_entry(tallies, context_of(choice, value + strlen(word)),
                          (int)(tally - tallies->list), seconds);
        }
        group = end + strspn(end, "; ");
    }
}

static void add_rivals(struct kg_lesson_tallies *tallies, const struct kg_lesson_subject *subjects,
                       int count, double seconds)
{
    for (int t = 0; t < tallies->count; t++) {
        struct kg_lesson_tally *tally = &tallies->list[t];
        bool has = false, rival = false;
        for (int i = 0; i < count; i++) {
            has = has || is_same(&tally->subject, &subjects[i]);
            rival = rival || are_rivals(&tally->subject, &subjects[i]);
        }
        if (rival && !has) // a choice may have both, in two groups
            tally->without = fmin(tally->without, seconds);
    }
}

// The family and the values of a choice of one kernel.
static void add_sample(struct kg_lesson_tallies *tallies, const struct kg_lesson_subject *subjects,
                       int count, const struct kg_outcome *outcome)
{
    struct kg_lesson_sample sample = {.logarithm = log(outcome->timing.median / outcome->estimate),
                                      .seconds = outcome->timing.median};
    if (strchr(outcome->choice, ';') || !isfinite(sample.logarithm))
        return;
    for (int i = 0; i < count && sample.count < KG_LESSON_SAMPLE_SUBJECTS; i++) {
        const struct kg_lesson_tally *tally = find_tally(tallies, &subjects[i]);
        if (tally && subjects[i].kind != KG_SUBJECT_GROUPING)
            sample.tallies[sample.count++] = (int)(tally - tallies->list);
    }
    kg_lesson_fit_add(tallies, &sample);
}

void kg_lesson_tally_add(struct kg_lesson_tallies *tallies, const struct kg_outcome *outcome,
                         bool again)
{
    struct kg_lesson_subject subjects[MOST_SUBJECTS];
    bool measured = outcome->kind == KG_OUTCOME_MEASURED && outcome->timing.median > 0;
    if (outcome->kind == KG_OUTCOME_PRUNED || outcome->kind == KG_OUTCOME_INVALID)
        return;
    int count = list_subjects(outcome->choice, subjects);
    if (again) {
        if (measured)
            add_rivals(tallies, subjects, count, outcome->timing.median);
        return;
    }
    for (int i = 0; i < count; i++) {
        struct kg_lesson_tally *tally = find_tally(tallies, &subjects[i]);
        if (!tally)
            return;
        tally->tried++;
        tally->failed += has_failed(outcome);
        if (measured)
            tally->best = fmin(tally->best, outcome->timing.median);
    }
    if (measured)
        add_entries(tallies, outcome->choice, outcome->timing.median);
    if (measured && outcome->estimate > 0)
        add_sample(tallies, subjects, count, outcome);
}

static int compare_entries(const void *a, const void *b)
{
    const struct kg_lesson_entry *one = a, *other = b;
    return (one->context > other->context) - (one->context < other->context);
}

// Candidates [first, end) are equal but for one value.
static void compare_values(struct kg_lesson_tallies *tallies, int first, int end, double least)
{
    double fastest = INFINITY;
    for (int i = first; i < end; i++)
        fastest = fmin(fastest, tallies->entries[i].logarithm);
    double weight = exp(2 * (least - fastest));
    for (int i = first; i < end; i++) {
        const struct kg_lesson_entry *entry = &tallies->entries[i];
        double rival = INFINITY;
        for (int j = first; j < end; j++)
            if (tallies->entries[j].tally != entry->tally)
                rival = fmin(rival, tallies->entries[j].logarithm);
        if (rival == INFINITY)
            continue;
        tallies->list[entry->tally].sum += weight * (entry->logarithm - rival);
        tallies->list[entry->tally].weight += weight;
    }
}

void kg_lesson_tally_finish(struct kg_lesson_tallies *tallies)
{
    double least = INFINITY;
    for (int i = 0; i < tallies->entry_count; i++)
        least = fmin(least, tallies->entries[i].logarithm);
    if (tallies->entry_count > 0)
        qsort(tallies->entries, (size_t)tallies->entry_count, sizeof *tallies->entries,
              compare_entries);
    for (int first = 0, end; first < tallies->entry_count; first = end) {
        end = first + 1;
        while (end < tallies->entry_count &&
               tallies->entries[end].context == tallies->entries[first].context)
            end++;
        compare_values(tallies, first, end, least);
    }
    kg_lesson_fit(tallies);
}

void kg_lesson_tally_free(struct kg_lesson_tallies *tallies)
{
    free(tallies->list);
    free(tallies->entries);
    free(tallies->samples);
    *tallies = (struct kg_lesson_tallies){0};
}

bool kg_lesson_tally_ratio(const struct kg_lesson_tally *tally, double *ratio)
{
    *ratio = 0;
    if (tally->weight > 0)
        *ratio = tally->sum / tally->weight;
    else if (isfinite(tally->best) && isfinite(tally->without))
        *ratio = log(tally->best / tally->without);
    else
        return false;
    return true;
}
