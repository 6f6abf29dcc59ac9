// Structs of callers of another version: shorter ones, longer ones, and sizes that nobody set. And
// NULL where none may be.

#include "support/folder.h"
#include "test.h"

#include <kernelgen.h>

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static char home[] = "/tmp/kg-test-sized-XXXXXX";
static struct kg_context *context;
static struct kg_device *device;
static struct kg_op *op;
static struct kg_problem *problem;
static struct kg_plan *plan;

static const char definition[] = "op twice(x: T[P]) -> (y: T[P]) where T in f32 f16\n"
                                 "{ y[p] = x[p] + x[p] }\n"
                                 "goal { verify P = 3, 100 tune P = 1000 }\n";

static bool says(const char *words)
{
    return strstr(kg_context_error(context), words) != NULL;
}

static void set_up(void)
{
    CHECK(folder_make(home));
    struct kg_options options = {.size = sizeof options, .home = home, .threads = 1, .wisdom = ""};
    CHECK(kg_context_create(&options, &context) == KG_OK);
    CHECK(kg_context_device(context, "host", &device) == KG_OK);
    CHECK(kg_op_parse(context, "twice.kg", definition, strlen(definition), NULL, &op) == KG_OK);
    CHECK(kg_problem_create(context, op, NULL, 0, &problem) == KG_OK);
    CHECK(kg_plan_create(problem, device, KG_RIGOR_ESTIMATE, 0, &plan) == KG_OK);
}

// What a newer version of a struct would be.
struct newer_options {
    struct kg_options known;
    int64_t unknown[2];
};

static enum kg_status create(const void *options)
{
    struct kg_context *other = NULL;
    enum kg_status status = kg_context_create(options, &other);
    CHECK(other != NULL);
    CHECK(status == KG_OK || strstr(kg_context_error(other), "struct kg_options"));
    kg_context_destroy(other);
    return status;
}

static void options_of_other_versions(void)
{
    struct newer_options newer = {.known = {.size = sizeof newer, .home = home}};
    CHECK(create(&newer) == KG_OK);
    newer.unknown[1] = 1;
    CHECK(create(&newer) == KG_ERROR_ARGUMENT);
    // What lies behind a shorter struct is not looked at.
    struct kg_options shorter = {
        .size = offsetof(struct kg_options, threads), .home = home, .threads = -1};
    CHECK(create(&shorter) == KG_OK);
    struct kg_context *other;
    shorter.size = 0; // all of it
    CHECK(kg_context_create(&shorter, &other) == KG_ERROR_ARGUMENT);
    CHECK_TEXT(kg_context_error(other), "-1 threads cannot work");
    kg_context_destroy(other);
    const size_t wrong[] = {1, 7, (size_t)1 << 40, SIZE_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct kg_options unset = {.size = wrong[i], .home = home};
        CHECK(create(&unset) == KG_ERROR_ARGUMENT);
    }
}

struct newer_verdict {
    struct kg_verify_result known;
    int64_t unknown[2];
};

static void results_of_other_versions(void)
{
    struct kg_verify_result whole = {.size = sizeof whole}, first = {0};
    CHECK(kg_plan_verify(plan, 7, &whole) == KG_OK && whole.passed && whole.seed == 7);
    CHECK(whole.size == sizeof whole && whole.cases > 0 && whole.impostors > 0);
    CHECK(kg_plan_verify(plan, 7, &first) == KG_OK && first.size == 0);
    CHECK(first.passed && first.cases == whole.cases && first.elements == whole.elements);

    struct newer_verdict newer = {.known = {.size = sizeof newer}, .unknown = {3, 4}};
    CHECK(kg_plan_verify(plan, 7, &newer.known) == KG_OK);
    CHECK(newer.known.passed && newer.unknown[0] == 0 && newer.unknown[1] == 0);

    // Nothing is written behind a shorter struct.
    struct kg_verify_result shorter = {
        .size = offsetof(struct kg_verify_result, worst), .worst = -1, .impostors = -2};
    CHECK(kg_plan_verify(plan, 7, &shorter) == KG_OK && shorter.passed);
    CHECK(shorter.elements == whole.elements && shorter.worst == -1 && shorter.impostors == -2);

    struct kg_verify_result unset = {.size = (size_t)1 << 40, .cases = 5};
    CHECK(kg_plan_verify(plan, 7, &unset) == KG_ERROR_ARGUMENT && unset.cases == 5);
    CHECK(says("struct kg_verify_result has a size of"));
}

static void builds_of_other_versions(void)
{
    struct kg_build_options options = {.size = offsetof(struct kg_build_options, override),
                                       .rigor = KG_RIGOR_ESTIMATE,
                                       .override = "/none.ptx"};
    struct kg_verify_result verify = {.size = sizeof verify};
    struct kg_bench_result bench = {.size = offsetof(struct kg_bench_result, goal), .goal = -1};
    struct kg_build_result result = {
        .size = sizeof result, .verify = &verify, .bench = &bench, .rounds = 9};
    CHECK(kg_build(problem, device, &options, &result, NULL) == KG_OK);
    CHECK(result.verify == &verify && result.bench == &bench && result.rounds == 0);
    CHECK(verify.passed && bench.seconds > 0 && bench.goal == -1);
    struct kg_build_result alone = {0};
    CHECK(kg_build(problem, device, &options, &alone, NULL) == KG_OK && !alone.verify);
    options.rigor = (enum kg_rigor)99;
    CHECK(kg_build(problem, device, &options, &alone, NULL) == KG_ERROR_ARGUMENT);
    CHECK(kg_problem_create(context, NULL, NULL, 0, NULL) == KG_ERROR_ARGUMENT);
}

// An array of longer elements: each is found.
struct newer_info {
    struct kg_tensor_info known;
    int64_t unknown;
};

static void tensors_of_other_versions(void)
{
    struct newer_info infos[2] = {{.known = {.size = sizeof infos[0]}},
                                  {.known = {.size = sizeof infos[0]}}};
    for (int i = 0; i < 2; i++)
        CHECK(kg_problem_tensor(problem, i, &infos[i].known) == KG_OK);
    CHECK_TEXT(infos[0].known.name, "x");
    CHECK_TEXT(infos[1].known.name, "y");
    CHECK(infos[1].known.is_output && infos[1].known.shape[0] == 1000);
    infos[0].known.dtype = infos[1].known.dtype = KG_F16;
    struct kg_problem *other = NULL;
    CHECK(kg_problem_create_for(context, op, &infos[0].known, 2, NULL, 0, &other) == KG_OK);
    struct kg_tensor_info info = {0};
    CHECK(other && kg_problem_tensor(other, 1, &info) == KG_OK && info.dtype == KG_F16);
    kg_problem_destroy(other);
    infos[1].unknown = 1;
    CHECK(kg_problem_create_for(context, op, &infos[0].known, 2, NULL, 0, &other) ==
          KG_ERROR_ARGUMENT);
    CHECK(!other && says("struct kg_tensor_info is one of a newer KernelGen"));
    CHECK(kg_problem_tensor(problem, 2, &info) == KG_ERROR_ARGUMENT && !info.name);
    CHECK(kg_op_tensor(op, -1, &info) == KG_ERROR_ARGUMENT && says("none of number -1"));
    CHECK(kg_op_tensor(op, 0, &info) == KG_OK && info.dtype == KG_DTYPE_COUNT);
}

// Pointers that may not be NULL.
static void nothing_is_refused(void)
{
    char *text;
    struct kg_problem *none;
    struct kg_plan *another;
    struct kg_verify_result verdict = {0};
    struct kg_binding unnamed = {NULL, "3"};
    CHECK(kg_plan_create(problem, NULL, KG_RIGOR_ESTIMATE, 0, &another) == KG_ERROR_ARGUMENT);
    CHECK(says("kg_plan_create: device is NULL"));
    CHECK(kg_plan_create(NULL, device, KG_RIGOR_ESTIMATE, 0, &another) == KG_ERROR_ARGUMENT);
    CHECK(kg_plan_verify(NULL, 0, &verdict) == KG_ERROR_ARGUMENT);
    CHECK(kg_plan_verify(plan, 0, NULL) == KG_ERROR_ARGUMENT);
    CHECK(kg_plan_execute(plan, NULL, NULL) == KG_ERROR_ARGUMENT);
    CHECK(kg_plan_execute(NULL, NULL, NULL) == KG_ERROR_ARGUMENT);
    CHECK(kg_plan_explain(plan, false, NULL) == KG_ERROR_ARGUMENT);
    CHECK(kg_plan_contest(plan, "drafts", false, NULL, NULL) == KG_ERROR_ARGUMENT);
    CHECK(kg_plan_contest(plan, NULL, false, &text, NULL) == KG_ERROR_ARGUMENT);
    CHECK(kg_plan_contest(NULL, "drafts", false, &text, NULL) == KG_ERROR_ARGUMENT);
    CHECK(kg_plan_source(NULL, &text) == KG_ERROR_ARGUMENT && kg_plan_choice(NULL) == NULL);
    CHECK(kg_problem_create(context, op, &unnamed, 1, &none) == KG_ERROR_ARGUMENT);
    CHECK(says("binding 1 lacks"));
    CHECK(kg_problem_create(context, op, NULL, 1, &none) == KG_ERROR_ARGUMENT);
    CHECK(kg_op_parse(context, "a.kg", NULL, 0, NULL, &op) == KG_ERROR_ARGUMENT && op);
    CHECK(kg_context_create(NULL, NULL) == KG_ERROR_ARGUMENT);
    CHECK(kg_context_devices(NULL, false, &text) == KG_ERROR_ARGUMENT);
    CHECK(kg_wisdom_export(context, NULL) == KG_ERROR_ARGUMENT);
    CHECK(kg_wisdom_export(NULL, &text) == KG_ERROR_ARGUMENT);
    CHECK(kg_wisdom_import(context, NULL, 0, &text) == KG_ERROR_ARGUMENT);
    CHECK(kg_fit(NULL, NULL, NULL, 0, NULL, false, &text) == KG_ERROR_ARGUMENT);
    CHECK(kg_assembly_find(NULL, "f", &(int){0}) == KG_ERROR_ARGUMENT);
    CHECK(kg_assembly_report(NULL, 0, NULL, false, &text) == KG_ERROR_ARGUMENT);
}

static void clean_up(void)
{
    kg_plan_destroy(plan);
    kg_problem_destroy(problem);
    kg_op_destroy(op);
    kg_context_destroy(context);
    folder_remove(home);
}

TEST_MAIN(set_up, options_of_other_versions, results_of_other_versions, builds_of_other_versions,
          tensors_of_other_versions, nothing_is_refused, clean_up)
