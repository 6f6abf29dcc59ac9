// One plan at many sizes: the results are right at all of them, more than are kept, also when
// several threads execute at once, and sizes that the definition does not allow are refused.

#include "kernelgen.h"
#include "support/folder.h"
#include "test.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define LARGEST 40
#define THREADS 4
#define ROUNDS 300

static char folder[] = "/tmp/kg-test-sized-XXXXXX";
static struct kg_context *context;

static struct kg_plan *make_plan(const char *text, const struct kg_binding *sizes, int count,
                                 struct kg_op **op, struct kg_problem **problem)
{
    struct kg_device *device;
    struct kg_plan *plan = NULL;
    CHECK(kg_op_parse(context, "test.kg", text, strlen(text), NULL, op) == KG_OK);
    CHECK(kg_problem_create(context, *op, sizes, count, problem) == KG_OK);
    CHECK(kg_context_device(context, "host", &device) == KG_OK);
    CHECK(kg_plan_create(*problem, device, KG_RIGOR_ESTIMATE, 0, &plan) == KG_OK);
    return plan;
}

// y[p, d] = x[p, d] / sum(k) x[p, k], through a tensor between two kernels or in one.
static const char rows[] =
    "op rows(x: f32[P, D]) -> (y: f32[P, D]) param c = 2\n"
    "{ s[p] = sum(d) x[p, d]  m[] = max(p) s[p]  y[p, d] = c * x[p, d] / s[p] + 0 * m[] }";

static bool is_right(const float *x, const float *y, int64_t P, int64_t D)
{
    for (int64_t p = 0; p < P; p++) {
        double sum = 0;
        for (int64_t d = 0; d < D; d++)
            sum += (double)x[p * D + d];
        for (int64_t d = 0; d < D; d++)
            if (fabs(2 * (double)x[p * D + d] / sum - (double)y[p * D + d]) > 1e-5)
                return false;
    }
    return true;
}

static bool runs_at(const struct kg_plan *plan, int64_t P, int64_t D)
{
    static const float outside = -7;
    float x[LARGEST * LARGEST], y[LARGEST * LARGEST + 1];
    for (int64_t i = 0; i < P * D; i++)
        x[i] = 1 + (float)(i % 17);
    y[P * D] = outside;
    void *tensors[] = {x, y};
    const int64_t sizes[] = {P, D};
    return kg_plan_execute_sized(plan, sizes, 2, tensors, NULL) == KG_OK && y[P * D] == outside &&
           is_right(x, y, P, D);
}

struct thread {
    const struct kg_plan *plan;
    unsigned seed;
    int wrong;
};

static void *run_many(void *argument)
{
    struct thread *thread = argument;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t P = rand_r(&thread->seed) % LARGEST, D = 1 + rand_r(&thread->seed) % (LARGEST - 1);
        thread->wrong += !runs_at(thread->plan, P, D);
    }
    return NULL;
}

static void many_sizes(void)
{
    struct kg_op *op;
    struct kg_problem *problem;
    struct kg_plan *plan =
        make_plan(rows, (const struct kg_binding[]){{"P", "64"}, {"D", "1000"}}, 2, &op, &problem);
    CHECK_TEXT(kg_op_size_name(op, 0), "P");
    CHECK_TEXT(kg_op_size_name(op, 1), "D");
    CHECK(!kg_op_size_name(op, 2) && !kg_op_size_name(op, -1) && !kg_op_size_name(NULL, 0));
    int wrong = 0;
    for (int turn = 0; turn < 2; turn++)
        for (int64_t size = 1; size < 2 * LARGEST; size++) // more than are kept
            wrong +=
                !runs_at(plan, size < LARGEST ? size : 3, size < LARGEST ? 5 : size - LARGEST + 1);
    CHECK(wrong == 0);
    pthread_t threads[THREADS];
    struct thread all[THREADS];
    for (int i = 0; i < THREADS; i++) {
        all[i] = (struct thread){.plan = plan, .seed = (unsigned)i};
        CHECK(pthread_create(&threads[i], NULL, run_many, &all[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        CHECK(all[i].wrong == 0);
    }
    kg_plan_destroy(plan);
    kg_problem_destroy(problem);
    kg_op_destroy(op);
}

static void refused(void)
{
    struct kg_op *op;
    struct kg_problem *problem;
    struct kg_plan *plan = make_plan(
        "op part(x: f32[N], w: f32[R]) -> (y: f32[N - R + 1]) { y[i] = sum(r) x[i + r] * w[r] }",
        (const struct kg_binding[]){{"N", "100"}, {"R", "3"}}, 2, &op, &problem);
    float x[8] = {1, 1, 1, 1, 1, 1, 1, 1}, w[3] = {1, 2, 3}, y[8] = {0};
    void *tensors[] = {x, w, y};
    CHECK(kg_plan_execute_sized(plan, (const int64_t[]){8, 3}, 2, tensors, NULL) == KG_OK);
    CHECK(y[0] == 6 && y[5] == 6 && y[6] == 0);
    CHECK(kg_plan_execute_sized(plan, (const int64_t[]){2, 4}, 2, tensors, NULL) == KG_ERROR_SHAPE);
    CHECK(kg_plan_execute_sized(plan, (const int64_t[]){8, -3}, 2, tensors, NULL) ==
          KG_ERROR_SHAPE);
    y[5] = 0; // what was refused leaves nothing behind
    CHECK(kg_plan_execute_sized(plan, (const int64_t[]){7, 2}, 2, tensors, NULL) == KG_OK);
    CHECK(y[0] == 3 && y[5] == 3 && y[6] == 0);
    CHECK(kg_plan_execute_sized(plan, (const int64_t[]){8}, 1, tensors, NULL) == KG_ERROR_ARGUMENT);
    CHECK(kg_plan_execute_sized(plan, (const int64_t[]){8, 3, 1}, 3, tensors, NULL) ==
          KG_ERROR_ARGUMENT);
    CHECK(kg_plan_execute_sized(plan, NULL, 0, tensors, NULL) == KG_ERROR_ARGUMENT);
    CHECK(kg_plan_execute_sized(NULL, (const int64_t[]){8, 3}, 2, tensors, NULL) ==
          KG_ERROR_ARGUMENT);
    kg_plan_destroy(plan);
    kg_problem_destroy(problem);
    kg_op_destroy(op);
}

static void prepare(void)
{
    CHECK(folder_make(folder));
    const struct kg_options options = {.size = sizeof options, .home = folder};
    CHECK(kg_context_create(&options, &context) == KG_OK);
}

static void clean_up(void)
{
    kg_context_destroy(context);
    folder_remove(folder);
}

TEST_MAIN(prepare, many_sizes, refused, clean_up)
