// What executions at new sizes ask of the driver, with one that does nothing: the context once, and
// only maps that are new.

#include "flow/resized.h"
#include "unit/flow/replay_rig.h"

enum { FEW = 4 }; // executions, of which none is recorded

static void *tensors[KG_MAX_TENSORS];

static void run(const struct kg_plan *plan, const int64_t *sizes, int count)
{
    fake->switches = fake->encodings = 0;
    CHECK(kg_plan_execute_sized(plan, sizes, count, tensors, NULL) == KG_OK);
}

static struct kg_plan *plan_products(struct kg_problem **problem)
{
    *problem = problem_of("op p(a: f16[M, K], b: f16[N, K]) -> (c: f16[M, N])\n"
                          "{ c[m, n] = sum(k) a[m, k] * b[n, k] }",
                          "p", (struct kg_binding[]){{"M", "512"}, {"N", "512"}, {"K", "512"}}, 3);
    struct kg_plan *plan = plan_of(*problem);
    CHECK(strstr(plan->choice, "wgmma") != NULL); // it has maps
    return plan;
}

// Sizes in the order of the definition: M, K, N.
static void one_context_for_all_launches(void)
{
    struct kg_problem *problem;
    struct kg_plan *plan = plan_products(&problem);
    run(plan, (int64_t[]){64, 128, 256}, 3); // loads the kernel
    for (int i = 0; i < FEW; i++) {
        run(plan, (int64_t[]){72 + 8 * i, 136, 264}, 3);
        CHECK(fake->switches == 1);
        CHECK(fake->encodings > 0);
        run(plan, (int64_t[]){72 + 8 * i, 136, 264}, 3);
        CHECK(fake->switches == 2); // one to ask whether the stream is captured
        CHECK(fake->encodings == 0);
    }
    // Operands that have to be packed first: three functions of one kernel.
    run(plan, (int64_t[]){33, 35, 37}, 3); // the workspace grows
    run(plan, (int64_t[]){33, 33, 35}, 3);
    CHECK(fake->switches == 1);
    drop(plan);
    kg_problem_destroy(problem);
}

// Weights stay where they are and as large as they are.
static void maps_of_weights_are_encoded_once(void)
{
    struct kg_problem *problem;
    struct kg_plan *plan = plan_products(&problem);
    run(plan, (int64_t[]){128, 512, 1024}, 3);
    int first = fake->encodings;
    for (int i = 1; i <= FEW; i++) {
        run(plan, (int64_t[]){128 + 128 * i, 512, 1024}, 3);
        CHECK(fake->encodings > 0);
        CHECK(fake->encodings < first);
    }
    drop(plan);
    kg_problem_destroy(problem);
}

int main(void)
{
    static char memory_of_all[1 << 14] __attribute__((aligned(256)));
    for (int i = 0; i < KG_MAX_TENSORS; i++)
        tensors[i] = memory_of_all + 256 * i; // no kernel runs
    void (*const tests[])(void) = {one_context_for_all_launches, maps_of_weights_are_encoded_once};
    return run_all(tests, sizeof tests / sizeof tests[0]);
}
