// Choices as text and as source, and their expected times.

#include "gen/choice.h"

#include "gen/shared/group.h"
#include "gen/shared/tidy.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

double kg_choice_expected(const struct kg_choice *choice)
{
    double sum = 0;
    for (int i = 0; i < choice->count; i++) {
        const struct kg_match *match = choice->matches[i];
        double seconds =
            match->family->expected ? match->family->expected(match, &choice->configs[i]) : 0;
        if (seconds <= 0)
            return 0;
        sum += seconds;
    }
    return sum;
}

double kg_choice_bound(const struct kg_choice *choice)
{
    double sum = 0;
    for (int i = 0; i < choice->count; i++)
        sum += choice->matches[i]->family->bound(choice->matches[i], &choice->configs[i]);
    return sum;
}

bool kg_choice_has_same_groups(const struct kg_choice *a, const struct kg_choice *b)
{
    for (int i = 0; i < a->count && i < b->count; i++)
        if (a->matches[i]->group.count != b->matches[i]->group.count)
            return false;
    return a->count == b->count;
}

void kg_choice_print(const struct kg_choice *choice, struct kg_text *text)
{
    for (int i = 0; i < choice->count; i++) {
        const struct kg_match *match = choice->matches[i];
        struct kg_space space = {0};
        match->family->space(match, &space);
        kg_text_format(text, "%s%s", i ? "; " : "", match->family->name);
        // The number of nests, if it is not one, so that reading needs no guess.
        if (match->group.count > 1)
            kg_text_format(text, "*%d", match->group.count);
        if (space.count) {
            kg_text_add(text, ": ");
            kg_config_print(&space, &choice->configs[i], text);
        }
    }
}

// "rowwise*4" -> family and number of nests.
static const struct kg_family *read_family(const struct kg_target *target, const char *word,
                                           size_t length, int *count)
{
    char name[64];
    *count = 1;
    if (length >= sizeof name)
        return NULL;
    memcpy(name, word, length);
    name[length] = '\0';
    char *star = strchr(name, '*');
    if (star) {
        *star = '\0';
        *count = 0;
        for (const char *digit = star + 1; isdigit((unsigned char)*digit); digit++)
            *count = *count < KG_MAX_NESTS ? *count * 10 + (*digit - '0') : KG_MAX_NESTS + 1;
    }
    return kg_target_family(target, name);
}

// One group: "family", "family*2" or "family: config".
static bool read_group(const struct kg_problem *problem, const struct kg_device_facts *facts,
                       const struct kg_target *target, const char *word, int first,
                       struct kg_choice *choice)
{
    int count;
    size_t length = strcspn(word, ":");
    const struct kg_family *family = read_family(target, word, length, &count);
    if (!family || count < 1 || first + count > problem->nest_count)
        return false;
    const struct kg_group group = {problem, first, count};
    const struct kg_match *match = kg_match_find(family, &group, facts, NULL);
    struct kg_config *config = &choice->configs[choice->count];
    struct kg_space space = {0};
    struct kg_text reason = {0};
    if (!match)
        return false;
    family->space(match, &space);
    const char *values = word[length] ? word + length + 1 : "";
    while (*values == ' ')
        values++;
    if (!kg_config_read(&space, values, config))
        return false;
    bool fits = family->valid(match, config, &reason);
    kg_text_free(&reason);
    if (fits)
        choice->matches[choice->count++] = match;
    return fits;
}

bool kg_choice_read(const struct kg_problem *problem, const struct kg_device_facts *facts,
                    const struct kg_target *target, const char *text, struct kg_choice *choice)
{
    *choice = (struct kg_choice){0};
    int first = 0;
    while (*text) {
        char word[1024];
        size_t length = strcspn(text, ";");
        if (length >= sizeof word || choice->count == KG_MAX_NESTS)
            return false;
        memcpy(word, text, length);
        word[length] = '\0';
        if (!read_group(problem, facts, target, word, first, choice))
            return false;
        first += choice->matches[choice->count - 1]->group.count;
        text += length;
        while (*text == ';' || *text == ' ')
            text++;
    }
    return first == problem->nest_count;
}

bool kg_choice_in_memory(const struct kg_choice *choice, int tensor_id)
{
    if (choice->count == 0)
        return true;
    const struct kg_tensor *tensor = choice->matches[0]->group.problem->tensors[tensor_id];
    for (int i = 0; i < choice->count; i++)
        if (kg_group_is_private(&choice->matches[i]->group, tensor))
            return false;
    return true;
}

bool kg_choice_source(const struct kg_choice *choice, int group, const char *entry,
                      struct kg_text *source)
{
    const struct kg_match *match = choice->matches[group];
    if (!match->family->emit(match, &choice->configs[group], entry, source))
        return false;
    kg_gen_tidy(source);
    return !source->failed;
}

void kg_choice_entry(const struct kg_choice *choice, int group, char *entry, size_t size)
{
    const char *name = choice->matches[group]->group.problem->op->name;
    if (choice->count == 1)
        snprintf(entry, size, "%s", name);
    else
        snprintf(entry, size, "%s_kernel_%d", name, group);
}
