// The table of families, their spaces of configs, and the partition of a problem among them.

#include "gen/families.h"

#include "gen/shared/emit.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

// Best first. A new family adds its line here and its declaration to families.h.
static const struct kg_family *const host_families[] = {
    &kg_family_contract,  // sums of products of two sides
    &kg_family_rowwise,   // several statements over the same rows
    &kg_family_reduce,    // one reduction
    &kg_family_scan,      // running totals
    &kg_family_pointwise, // chains of element-wise formulas
    &kg_family_direct,    // anything else, one nest at a time
    NULL,
};

static const struct kg_family *const cuda_families[] = {
    &kg_cuda_contract,  // sums of products of two sides
    &kg_cuda_reduce,    // one reduction, by column or of long rows
    &kg_cuda_rowwise,   // reductions by row, and what belongs to them
    &kg_cuda_scan,      // running totals
    &kg_cuda_pointwise, // chains of element-wise formulas
    &kg_cuda_direct,    // anything else, one nest at a time
    NULL,
};

static const struct kg_family *const no_families[] = {NULL};

const struct kg_family *const *kg_families(enum kg_target target)
{
    static const struct kg_family *const *const families[KG_TARGET_COUNT] = {
        [KG_TARGET_HOST] = host_families,
        [KG_TARGET_CUDA] = cuda_families,
        [KG_TARGET_TRITON] = no_families,
    };
    return families[target];
}

const struct kg_family *kg_family_find(enum kg_target target, const char *name)
{
    for (const struct kg_family *const *family = kg_families(target); *family; family++)
        if (strcmp((*family)->name, name) == 0)
            return *family;
    return NULL;
}

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

void kg_space_add(struct kg_space *space, const char *name, int count, const int64_t *choices)
{
    struct kg_parameter *parameter = &space->parameters[space->count++];
    parameter->name = name;
    parameter->count = count;
    memcpy(parameter->choices, choices, (size_t)count * sizeof *choices);
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
    int count = 0;
    memset(config, 0, sizeof *config);
    for (;; count++) {
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
    return count == space->count;
}

static const struct kg_family *find_taker(const struct kg_group *group,
                                          const struct kg_device_facts *facts,
                                          enum kg_target target, struct kg_text *trace)
{
    for (const struct kg_family *const *family = kg_families(target); *family; family++) {
        struct kg_text reason = {0};
        bool fits = (*family)->applicable(group, facts, target, &reason);
        if (!fits && trace) {
            const struct kg_nest *const *nests = &group->problem->nests[group->first];
            kg_text_format(trace, "%s", nests[0]->output->name);
            if (group->count > 1)
                kg_text_format(trace, "..%s", nests[group->count - 1]->output->name);
            kg_text_format(trace, ": not %s: %s\n", (*family)->name, kg_text_string(&reason));
        }
        kg_text_free(&reason);
        if (fits)
            return *family;
    }
    return NULL;
}

void kg_gen_partition(const struct kg_problem *problem, const struct kg_device_facts *facts,
                      enum kg_target target, struct kg_partition *partition, struct kg_text *trace)
{
    memset(partition, 0, sizeof *partition);
    for (int first = 0; first < problem->nest_count;) {
        struct kg_group group = {problem, first, problem->nest_count - first};
        const struct kg_family *family = find_taker(&group, facts, target, trace);
        while (!family && group.count > 1) {
            group.count--;
            family = find_taker(&group, facts, target, trace);
        }
        partition->groups[partition->count] = group;
        partition->families[partition->count] = family ? family : &kg_family_direct;
        partition->count++;
        first += group.count;
    }
}

bool kg_gen_in_memory(const struct kg_partition *partition, int tensor_id)
{
    if (partition->count == 0)
        return true;
    const struct kg_tensor *tensor = partition->groups[0].problem->tensors[tensor_id];
    for (int i = 0; i < partition->count; i++)
        if (kg_group_is_private(&partition->groups[i], tensor))
            return false;
    return true;
}
