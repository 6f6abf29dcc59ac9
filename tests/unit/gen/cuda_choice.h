// What rules choose and what is launched for one of several definitions, on a GPU of the table.

#ifndef KG_TESTS_CUDA_CHOICE_H
#define KG_TESTS_CUDA_CHOICE_H

#include "asm/gpu.h"
#include "gen/built.h"
#include "hopper_unit.h"
#include "support/sample_problem.h"
#include "test.h"

static struct kg_device_facts facts;

static inline void describe_gpu(const char *handle, const char *isa)
{
    const struct kg_gpu *gpu = kg_gpu_find(handle);
    CHECK(gpu != NULL);
    facts = (struct kg_device_facts){.units = gpu->sms,
                                     .bandwidth = gpu->bandwidth,
                                     .latency = gpu->sm->latency * 1e-9,
                                     .shared_bytes = gpu->sm->shared_opt_in,
                                     .cache = {[2] = gpu->l2_bytes},
                                     .unit = HOPPER_UNIT};
    snprintf(facts.isa, sizeof facts.isa, "%s", isa);
}

// The choice for a problem begins like this, and is valid.
static inline void check_choice_of(const char *definitions, const char *op, const char *sizes,
                                   const char *wanted)
{
    struct made made = make_strided(definitions, op, sizes, NULL);
    struct kg_choice choice;
    struct kg_text text = {0}, reason = {0};
    CHECK_STATUS(made.status, KG_OK, &made.error);
    if (made.status == KG_OK) {
        kg_choice_guess(made.problem, &facts, &kg_target_cuda, &choice);
        kg_choice_print(&choice, &text);
        bool begins = strncmp(kg_text_string(&text), wanted, strlen(wanted)) == 0;
        CHECK(begins);
        if (!begins)
            fprintf(stderr, "%s %s: %s\n", op, sizes, kg_text_string(&text));
        CHECK(choice.matches[0]->family->valid(choice.matches[0], &choice.configs[0], &reason));
        CHECK_TEXT(kg_text_string(&reason), "");
    }
    kg_text_free(&text);
    kg_text_free(&reason);
    unmake(&made);
}

// The launches of a choice for its first group; of none where it cannot be.
static inline struct kg_grids launches_of(const char *definitions, const char *op,
                                          const char *sizes, const char *words)
{
    struct made made = make_strided(definitions, op, sizes, NULL);
    struct kg_choice choice;
    struct kg_grids grids = {0};
    CHECK_STATUS(made.status, KG_OK, &made.error);
    if (made.status == KG_OK &&
        kg_choice_read(made.problem, &facts, &kg_target_cuda, words, &choice))
        choice.matches[0]->family->grids(choice.matches[0], &choice.configs[0], &grids);
    unmake(&made);
    return grids;
}

#endif
