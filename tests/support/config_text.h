// Configs by some of their values.

#ifndef KG_TESTS_CONFIG_TEXT_H
#define KG_TESTS_CONFIG_TEXT_H

#include "gen/family.h"
#include "support/sample_problem.h"

// "tile_m=64 stages=3": parameters that are not named have the first of their choices. False where
// the space has no such parameter, or no such value of it.
static inline bool config_with(const struct kg_space *space, const char *values,
                               struct kg_config *config)
{
    struct kg_text text = {0};
    kg_text_add(&text, values);
    for (int i = 0; i < space->count; i++) {
        const struct kg_parameter *parameter = &space->parameters[i];
        if (!choice_of(values, parameter->name))
            kg_text_format(&text, " %s=%lld", parameter->name, (long long)parameter->choices[0]);
    }
    bool read = kg_config_read(space, kg_text_string(&text), config);
    kg_text_free(&text);
    return read;
}

#endif
