// What tests of products by wgmma share: the device, configs by their values, and why they are
// refused.

#ifndef KG_TESTS_WGMMA_BENCH_H
#define KG_TESTS_WGMMA_BENCH_H

#include "gen/built.h"
#include "support/sample_problem.h"
#include "test.h"

// As an H100 (SXM5) has them.
static const struct kg_device_facts facts = {
    .isa = "sm_90a",
    .units = 132,
    .clock = 1.755e9,
    .vector_bytes = 16,
    .shared_bytes = 227 << 10,
    .bandwidth = 3.35e12,
    .matrix_flops = {[KG_F16] = 989e12, [KG_BF16] = 989e12},
};

static const struct kg_family *family(void)
{
    return kg_family_find(&kg_target_cuda, "contract");
}

static struct kg_group all_of(const struct made *made)
{
    return (struct kg_group){made->problem, 0, made->problem->nest_count};
}

// The values, and the usual ones of parameters that none of them is about.
static struct kg_config configure(const struct kg_group *group, const char *values)
{
    struct kg_space space;
    struct kg_config config = {{0}};
    struct kg_text text = {0};
    family()->space(group, &facts, &kg_target_cuda, &space);
    for (int i = 0; i < space.count; i++) {
        const struct kg_parameter *parameter = &space.parameters[i];
        const char *value = choice_of(values, parameter->name);
        kg_text_format(&text, "%s%s=%ld", i > 0 ? " " : "", parameter->name,
                       value ? strtol(value, NULL, 10) : (long)parameter->choices[0]);
    }
    CHECK(kg_config_read(&space, kg_text_string(&text), &config));
    kg_text_free(&text);
    return config;
}

// Why the family refuses the values, "" if it does not.
static inline void check_reason_on(const char *isa, const char *definitions, const char *op,
                                   const char *sizes, const char *values, const char *wanted)
{
    struct made made = make_strided(definitions, op, sizes, NULL);
    struct kg_device_facts device = facts;
    struct kg_text reason = {0};
    snprintf(device.isa, sizeof device.isa, "%s", isa);
    CHECK_STATUS(made.status, KG_OK, &made.error);
    if (made.status == KG_OK) {
        struct kg_group group = all_of(&made);
        struct kg_config config = configure(&group, values);
        bool valid = family()->valid(&group, &device, &kg_target_cuda, &config, &reason);
        CHECK(valid == !*wanted);
        CHECK_TEXT(kg_text_string(&reason), wanted);
    }
    kg_text_free(&reason);
    unmake(&made);
}

#endif
