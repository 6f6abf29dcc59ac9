// Choices: which family and config does each group of a problem. By rule, as text, as source.

#include "gen/built.h"
#include "gen/shared/tidy.h"

#include <ctype.h>
#include <string.h>

void kg_choice_guess(const struct kg_problem *problem, const struct kg_device_facts *facts,
                     enum kg_target target, struct kg_choice *choice)
{
    *choice = (struct kg_choice){0};
    kg_gen_partition(problem, facts, target, &choice->partition, NULL);
    for (int i = 0; i < choice->partition.count; i++)
        choice->partition.families[i]->guess(&choice->partition.groups[i], facts, target,
                                             &choice->configs[i]);
}

double kg_choice_estimate(const struct kg_choice *choice, const struct kg_device_facts *facts,
                          enum kg_target target)
{
    double sum = 0;
    for (int i = 0; i < choice->partition.count; i++) {
        const struct kg_family *family = choice->partition.families[i];
        double seconds = family->estimate ? family->estimate(&choice->partition.groups[i], facts,
                                                             target, &choice->configs[i])
                                          : 0;
        if (seconds <= 0)
            return 0;
        sum += seconds;
    }
    return sum;
}

void kg_choice_print(const struct kg_choice *choice, const struct kg_device_facts *facts,
                     enum kg_target target, struct kg_text *text)
{
    const struct kg_partition *partition = &choice->partition;
    for (int i = 0; i < partition->count; i++) {
        const struct kg_family *family = partition->families[i];
        struct kg_space space = {0};
        family->space(&partition->groups[i], facts, target, &space);
        kg_text_format(text, "%s%s", i ? "; " : "", family->name);
        // How many nests, where it is not the usual one: a choice is read back without guessing.
        if (partition->groups[i].count > 1)
            kg_text_format(text, "*%d", partition->groups[i].count);
        if (space.count) {
            kg_text_add(text, ": ");
            kg_config_print(&space, &choice->configs[i], text);
        }
    }
}

// "rowwise*4" -> family and number of nests.
static const struct kg_family *read_family(enum kg_target target, const char *word, size_t length,
                                           int *count)
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
    return kg_family_find(target, name);
}

// One group: "family", "family*2" or "family: config".
static bool read_group(const struct kg_problem *problem, const struct kg_device_facts *facts,
                       enum kg_target target, const char *part, int first, struct kg_choice *choice)
{
    int at = choice->partition.count, count;
    size_t length = strcspn(part, ":");
    const struct kg_family *family = read_family(target, part, length, &count);
    if (!family || count < 1 || first + count > problem->nest_count)
        return false;
    struct kg_group group = {problem, first, count};
    struct kg_config *config = &choice->configs[at];
    struct kg_space space = {0};
    struct kg_text reason = {0};
    bool fits = family->applicable(&group, facts, target, &reason);
    kg_text_free(&reason);
    if (!fits)
        return false;
    family->space(&group, facts, target, &space);
    const char *values = part[length] ? part + length + 1 : "";
    while (*values == ' ')
        values++;
    if (!kg_config_read(&space, values, config))
        return false;
    fits = family->valid(&group, facts, target, config, &reason);
    kg_text_free(&reason);
    if (!fits)
        return false;
    choice->partition.groups[at] = group;
    choice->partition.families[at] = family;
    choice->partition.count++;
    return true;
}

bool kg_choice_read(const struct kg_problem *problem, const struct kg_device_facts *facts,
                    enum kg_target target, const char *text, struct kg_choice *choice)
{
    *choice = (struct kg_choice){0};
    int first = 0;
    while (*text) {
        char part[1024];
        size_t length = strcspn(text, ";");
        if (length >= sizeof part || choice->partition.count == KG_MAX_NESTS)
            return false;
        memcpy(part, text, length);
        part[length] = '\0';
        if (!read_group(problem, facts, target, part, first, choice))
            return false;
        first += choice->partition.groups[choice->partition.count - 1].count;
        text += length;
        while (*text == ';' || *text == ' ')
            text++;
    }
    return first == problem->nest_count;
}

bool kg_choice_source(const struct kg_choice *choice, int group,
                      const struct kg_device_facts *facts, enum kg_target target, const char *entry,
                      struct kg_text *source)
{
    const struct kg_partition *partition = &choice->partition;
    if (!partition->families[group]->emit(&partition->groups[group], facts, target,
                                          &choice->configs[group], entry, source))
        return false;
    kg_gen_tidy(source);
    return !source->failed;
}
