// Kernels of the family of matrix products, built and run against the reference, for its tests.

#ifndef KG_TESTS_BUILT_CONTRACT_H
#define KG_TESTS_BUILT_CONTRACT_H

#include "gen/built.h"
#include "gen/families.h"
#include "gen/grouping.h"
#include "support/case_turns.h"
#include "support/sample_problem.h"
#include "test.h"
#include "verify/reference.h"

#include <math.h>

static struct kg_device *device;
static struct kg_error error;

static uint64_t random_state = 88172645463325252u;

static inline double draw(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (double)(random_state >> 11) / 4503599627370496.0 - 1.0;
}

static inline void fill(enum kg_dtype dtype, void *data, int64_t count)
{
    double scale = kg_dtypes[dtype].is_float ? 1 : kg_dtypes[dtype].bits < 8 ? 7 : 100;
    for (int64_t i = 0; i < count; i++) {
        double value = draw() * scale;
        if (!kg_dtypes[dtype].is_float)
            value = kg_dtypes[dtype].is_signed ? trunc(value) : trunc(fabs(value));
        kg_dtype_store(dtype, data, (size_t)i, value);
    }
}

struct memory {
    void *tensors[KG_MAX_TENSORS];
    void *workspace;
};

static inline size_t elements_of(const struct kg_problem *problem, int id)
{
    return problem->layouts[id].bytes * 8 /
           (size_t)kg_dtypes[problem->tensors[id]->type.dtype].bits;
}

static inline void allocate(const struct kg_problem *problem, struct memory *memory)
{
    int outer = problem->op->input_count + problem->op->output_count;
    for (int id = 0; id < outer; id++) {
        size_t bytes = (problem->layouts[id].bytes / 64 + 1) * 64;
        memory->tensors[id] = aligned_alloc(64, bytes);
        memset(memory->tensors[id], 0xe5, bytes);
        if (id < problem->op->input_count)
            fill(problem->tensors[id]->type.dtype, memory->tensors[id],
                 (int64_t)elements_of(problem, id));
    }
}

static inline void release(const struct kg_problem *problem, struct memory *memory)
{
    for (int id = 0; id < problem->op->input_count + problem->op->output_count; id++)
        free(memory->tensors[id]);
    free(memory->workspace);
}

// Where element `n`, counted row-major, of a tensor lies.
static inline size_t place_of(const struct kg_layout *layout, int rank, int64_t n)
{
    int64_t at = 0;
    for (int dim = rank - 1; dim >= 0; dim--) {
        at += n % layout->shape[dim] * layout->stride[dim];
        n /= layout->shape[dim];
    }
    return (size_t)at;
}

// Elements that are off by more than rounding may explain.
static inline int64_t wrong_elements(const struct kg_problem *problem, const struct memory *memory,
                                     const struct kg_expected *expected)
{
    int64_t wrong = 0;
    for (int i = 0; i < problem->op->output_count; i++) {
        int id = problem->op->input_count + i;
        const struct kg_tensor *tensor = problem->tensors[id];
        enum kg_dtype dtype = tensor->type.dtype;
        for (int64_t n = 0; n < expected[i].count; n++) {
            size_t at = place_of(&problem->layouts[id], tensor->rank, n);
            if (expected[i].integer) {
                wrong +=
                    kg_dtype_load_integer(dtype, memory->tensors[id], at) != expected[i].integer[n];
                continue;
            }
            double value = kg_dtype_load(dtype, memory->tensors[id], at);
            double allowed = expected[i].slack[n] +
                             kg_dtypes[dtype].epsilon * fabs(expected[i].value[n]) +
                             kg_dtypes[dtype].smallest;
            wrong += !(fabs(value - expected[i].value[n]) <= allowed);
        }
    }
    return wrong;
}

static inline bool run_and_compare(const struct kg_built *built, const struct kg_problem *problem)
{
    struct memory memory = {.workspace = NULL};
    struct kg_expected expected[KG_MAX_TENSORS];
    allocate(problem, &memory);
    memory.workspace = aligned_alloc(64, kg_built_workspace(built, problem) / 64 * 64 + 64);
    CHECK_STATUS(kg_built_run(built, problem, memory.tensors, memory.workspace, NULL, &error),
                 KG_OK, &error);
    CHECK_STATUS(
        kg_reference_run(problem, (const void *const *)memory.tensors, 1, NULL, expected, &error),
        KG_OK, &error);
    int64_t wrong = wrong_elements(problem, &memory, expected);
    kg_expected_free(expected, problem->op->output_count);
    release(problem, &memory);
    return wrong == 0;
}

static inline struct kg_built *build(const struct kg_problem *problem, const char *config,
                                     int groups)
{
    // By rule: for problems as small as these, plain loops may be expected to be faster.
    static struct kg_groupings groupings;
    struct kg_choice choice;
    struct kg_built *built = NULL;
    CHECK(kg_groupings_list(problem, &device->facts, &kg_target_host, &groupings, NULL));
    choice = groupings.options[KG_GROUPING_RULE].choice;
    CHECK(choice.count == groups);
    bool found = false;
    for (int i = 0; i < choice.count; i++)
        found |= choice.matches[i]->family == &kg_host_contract;
    CHECK(found);
    if (config)
        CHECK(kg_choice_read(problem, &device->facts, &kg_target_host, config, &choice));
    CHECK_STATUS(kg_built_make(device, problem, &choice, 60, &built, &error), KG_OK, &error);
    return built;
}

// Builds the op once, as `groups` kernels, with the guessed config or with `config`, and runs it on
// every row of sizes. Compiling them takes minutes: ops have turns.
static inline void check_with(const char *text, const char *types, const char *config, int groups,
                              const char *const *rows, const int64_t (*strides)[KG_MAX_RANK])
{
    struct made first = {.file = NULL};
    static int number;
    struct kg_built *built = NULL;
    if (!has_turn(number++, 3))
        return;
    for (int i = 0; rows[i]; i++) {
        char choices[256];
        snprintf(choices, sizeof choices, "%s %s", rows[i], types);
        struct made made = make_strided(text, NULL, choices, strides);
        CHECK_STATUS(made.status, KG_OK, &made.error);
        if (made.status == KG_OK && i == 0)
            built = build(made.problem, config, groups);
        if (built && made.status == KG_OK && !run_and_compare(built, made.problem)) {
            fprintf(stderr, "wrong: %s with %s\n", text, choices);
            CHECK(false);
        }
        if (i == 0)
            first = made; // what is built refers to it
        else
            unmake(&made);
    }
    kg_built_free(built);
    unmake(&first);
}

static inline void check(const char *text, const char *types, int groups, const char *const *rows)
{
    check_with(text, types, NULL, groups, rows, NULL);
}

#endif
