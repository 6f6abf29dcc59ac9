// Shared by the tests of wgmma: the device, configs by their values, and the reasons of refusals.

#ifndef KG_TESTS_WGMMA_BENCH_H
#define KG_TESTS_WGMMA_BENCH_H

#include "hopper_unit.h"

#include "gen/built.h"
#include "gen/families.h"
#include "support/config_text.h"
#include "support/sample_problem.h"
#include "test.h"

// The facts of an H100 (SXM5).
static const struct kg_device_facts facts = {
    .isa = "sm_90a",
    .units = 132,
    .clock = 1.755e9,
    .vector_bytes = 16,
    .shared_bytes = 227 << 10,
    .bandwidth = 3.35e12,
    .unit = HOPPER_UNIT,
    .matrix_flops = {[KG_F16] = 989e12, [KG_BF16] = 989e12},
};

// The form that is tested.
static const struct kg_family *family = &kg_cuda_contract_wgmma;

static const struct kg_match *match_on(const struct made *made, const struct kg_device_facts *on,
                                       struct kg_text *reason)
{
    const struct kg_group group = {made->problem, 0, made->problem->nest_count};
    return kg_match_find(family, &group, on, reason);
}

// The family's match of all statements; NULL if it does not take them.
static const struct kg_match *match_all(const struct made *made)
{
    return match_on(made, &facts, NULL);
}

static bool is_valid(const struct kg_match *match, const struct kg_config *config)
{
    struct kg_text reason = {0};
    bool valid = match->family->valid(match, config, &reason);
    kg_text_free(&reason);
    return valid;
}

static struct kg_config configure(const struct kg_match *match, const char *values)
{
    struct kg_space space;
    struct kg_config config = {{0}};
    family->space(match, &space);
    CHECK(config_with(&space, values, &config));
    return config;
}

// The launches of a config, given by its values, for all statements of a problem.
static inline struct kg_grids launches_with(const char *definitions, const char *op,
                                            const char *sizes, const char *values)
{
    struct made made = make_strided(definitions, op, sizes, NULL);
    struct kg_grids grids = {0};
    CHECK_STATUS(made.status, KG_OK, &made.error);
    if (made.status == KG_OK) {
        const struct kg_match *match = match_all(&made);
        struct kg_config config = configure(match, values);
        family->grids(match, &config, &grids);
    }
    unmake(&made);
    return grids;
}

// Why the family refuses the statements or the values, "" if it does not. NULL: it has no such
// parameter or no such value.
static inline void check_reason_on(const char *isa, const char *definitions, const char *op,
                                   const char *sizes, const char *values, const char *wanted)
{
    struct made made = make_strided(definitions, op, sizes, NULL);
    struct kg_device_facts device = facts;
    struct kg_text reason = {0};
    snprintf(device.isa, sizeof device.isa, "%s", isa);
    CHECK_STATUS(made.status, KG_OK, &made.error);
    const struct kg_match *match = made.status == KG_OK ? match_on(&made, &device, &reason) : NULL;
    bool valid = false;
    if (match) {
        struct kg_space space;
        struct kg_config config;
        family->space(match, &space);
        bool read = config_with(&space, values, &config);
        CHECK(read == (wanted != NULL));
        valid = read && family->valid(match, &config, &reason);
    }
    CHECK(match || wanted);
    CHECK(valid == (wanted && !*wanted));
    CHECK_TEXT(kg_text_string(&reason), wanted ? wanted : "");
    kg_text_free(&reason);
    unmake(&made);
}

#endif
