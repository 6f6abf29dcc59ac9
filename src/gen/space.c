// Spaces of configs: their size, their n-th config, and configs as text.

#include "gen/family.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

int64_t kg_space_size(const struct kg_space *space)
{
    int64_t size = 1;
    for (int i = 0; i < space->count; i++)
        size *= space->parameters[i].count;
    return size;
}

struct kg_config kg_space_config(const struct kg_space *space, int64_t n)
{
    struct kg_config config = {0};
    for (int i = space->count - 1; i >= 0; i--) {
        const struct kg_parameter *parameter = &space->parameters[i];
        config.value[i] = parameter->choices[n % parameter->count];
        n /= parameter->count;
    }
    return config;
}

void kg_space_add(struct kg_space *space, const char *name, enum kg_change change, int count,
                  const int64_t *choices)
{
    assert(change > KG_CHANGE_NONE && change < KG_CHANGE_GROUPING);
    space->failed = space->failed || space->count == KG_MAX_PARAMETERS || count > KG_MAX_CHOICES;
    if (space->failed)
        return;
    struct kg_parameter *parameter = &space->parameters[space->count++];
    parameter->name = name;
    parameter->change = change;
    parameter->count = count;
    memcpy(parameter->choices, choices, (size_t)count * sizeof *choices);
}

void kg_space_add_optional(struct kg_space *space, const char *name, enum kg_change change,
                           int count, const int64_t *choices)
{
    kg_space_add(space, name, change, count, choices);
    if (!space->failed)
        space->parameters[space->count - 1].optional = true;
}

void kg_config_print(const struct kg_space *space, const struct kg_config *config,
                     struct kg_text *text)
{
    for (int i = 0; i < space->count; i++)
        kg_text_format(text, "%s%s=%lld", i > 0 ? " " : "", space->parameters[i].name,
                       (long long)config->value[i]);
}

// The index of the parameter that `text` names before its "=", or -1.
static int find_parameter(const struct kg_space *space, const char *text)
{
    size_t length = strcspn(text, "= ");
    for (int i = 0; i < space->count; i++)
        if (strlen(space->parameters[i].name) == length && text[length] == '=' &&
            strncmp(space->parameters[i].name, text, length) == 0)
            return i;
    return -1;
}

static bool is_choice(const struct kg_parameter *parameter, long long value)
{
    for (int i = 0; i < parameter->count; i++)
        if (parameter->choices[i] == value)
            return true;
    return false;
}

bool kg_config_read(const struct kg_space *space, const char *text, struct kg_config *config)
{
    bool given[KG_MAX_PARAMETERS] = {false};
    memset(config, 0, sizeof *config);
    for (;;) {
        while (*text == ' ')
            text++;
        if (!*text)
            break;
        int i = find_parameter(space, text);
        if (i < 0 || given[i])
            return false;
        text += strlen(space->parameters[i].name) + 1;
        if (*text != '-' && !isdigit((unsigned char)*text))
            return false;
        char *end;
        long long value = strtoll(text, &end, 10);
        if ((*end && *end != ' ') || !is_choice(&space->parameters[i], value))
            return false;
        config->value[i] = value;
        given[i] = true;
        text = end;
    }
    for (int i = 0; i < space->count; i++) {
        if (!given[i] && !space->parameters[i].optional)
            return false;
        if (!given[i])
            config->value[i] = space->parameters[i].choices[0];
    }
    return true;
}
