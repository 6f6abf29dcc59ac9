// What the rules choose for a problem on a GPU of Hopper's kind, checked as text.

#ifndef KG_TESTS_CUDA_GUESS_H
#define KG_TESTS_CUDA_GUESS_H

#include "gen/built.h"
#include "hopper_unit.h"
#include "support/sample_problem.h"
#include "test.h"

static const struct kg_device_facts facts = {
    .isa = "sm_90a", .units = 132, .cache = {[2] = 50 << 20, [3] = 50 << 20}, .unit = HOPPER_UNIT};

// The guess for a problem, as text, and what it launches.
static void check_guess(const char *text, const char *sizes, const char *wanted,
                        struct kg_grids *grids)
{
    struct kg_choice choice;
    struct kg_text words = {0}, reason = {0};
    struct made made = make(text, sizes);
    *grids = (struct kg_grids){0};
    CHECK_STATUS(made.status, KG_OK, &made.error);
    if (made.status == KG_OK) {
        kg_choice_guess(made.problem, &facts, &kg_target_cuda, &choice);
        const struct kg_match *match = choice.matches[0];
        kg_choice_print(&choice, &words);
        CHECK_TEXT(kg_text_string(&words), wanted);
        CHECK(match->family->valid(match, &choice.configs[0], &reason));
        CHECK_TEXT(kg_text_string(&reason), "");
        match->family->grids(match, &choice.configs[0], grids);
    }
    kg_text_free(&words);
    kg_text_free(&reason);
    unmake(&made);
}

#endif
