// A plan for a GPU run on this process's memory, above a driver without a GPU: kernels see copies,
// results come back, strides are kept, and nothing is left behind, whatever fails.

#include "kernelgen.h"
#include "support/fake_driver.h"
#include "support/folder.h"
#include "test.h"

#include <string.h>

#define COUNT 1000

static char folder[] = "/tmp/kg-test-carry-XXXXXX";
static const char text[] = "op copy(x: f32[N]) -> (y: f32[N])\n{ y[n] = x[n] }\n";
static struct fake_driver *fake;
static struct kg_context *context;
static struct kg_device *device;
static struct kg_op *op;

#define CHECK_OK(call)                                                                             \
    do {                                                                                           \
        enum kg_status own_status = (call);                                                        \
        CHECK(own_status == KG_OK);                                                                \
        if (own_status != KG_OK)                                                                   \
            fprintf(stderr, "  %s\n", kg_context_error(context));                                  \
    } while (0)

// Of `count` elements, every so many-th of what is in memory. NULL where nothing compiles.
static struct kg_plan *make_plan(int64_t count, int64_t input_stride, int64_t output_stride,
                                 struct kg_problem **problem)
{
    const struct kg_tensor_info tensors[] = {
        {.size = sizeof(struct kg_tensor_info),
         .name = "x",
         .dtype = KG_F32,
         .rank = 1,
         .shape = {count},
         .stride = {input_stride}},
        {.size = sizeof(struct kg_tensor_info),
         .name = "y",
         .dtype = KG_F32,
         .rank = 1,
         .shape = {count},
         .stride = {output_stride}},
    };
    struct kg_plan *plan;
    CHECK_OK(kg_problem_create_for(context, op, tensors, 2, NULL, 0, problem));
    enum kg_status status = kg_plan_create(*problem, device, KG_RIGOR_ESTIMATE, 0, &plan);
    CHECK(status == KG_OK || status == KG_ERROR_MISSING);
    return plan;
}

static void check_run(int64_t count, int64_t input_stride, int64_t output_stride)
{
    static float x[3 * COUNT], y[3 * COUNT];
    struct kg_problem *problem;
    struct kg_plan *plan = make_plan(count, input_stride, output_stride, &problem);
    for (int i = 0; i < 3 * COUNT; i++) {
        x[i] = (float)i;
        y[i] = -1;
    }
    void *tensors[] = {x, y};
    CHECK_OK(kg_plan_run(plan, tensors));
    int64_t wrong = 0;
    for (int64_t i = 0; i < 3 * COUNT; i++) {
        bool written = i % output_stride == 0 && i / output_stride < count;
        wrong += y[i] != (written ? (float)(i / output_stride * input_stride) : -1);
    }
    CHECK(wrong == 0 && fake->broken == 0 && fake->blocks == 0);
    kg_plan_destroy(plan);
    kg_problem_destroy(problem);
}

// What `function` answers ends the run with that status, and its words.
static void check_failure(const char *function, int result, enum kg_status wanted)
{
    static float x[COUNT], y[COUNT];
    void *tensors[] = {x, y};
    struct kg_problem *problem;
    struct kg_plan *plan = make_plan(COUNT, 1, 1, &problem);
    fake->fail_in = function;
    fake->result = result;
    CHECK(kg_plan_run(plan, tensors) == wanted);
    fake->fail_in = NULL;
    CHECK(kg_context_error(context)[0] && fake->blocks == 0);
    kg_plan_destroy(plan);
    kg_problem_destroy(problem);
}

// The driver's own pointers are what kg_plan_execute takes: this process's break the device.
static void memory_of_this_process_is_a_fault(void)
{
    static float x[COUNT], y[COUNT];
    void *tensors[] = {x, y};
    struct kg_problem *problem;
    struct kg_plan *plan = make_plan(COUNT, 1, 1, &problem);
    CHECK_OK(kg_plan_execute(plan, tensors, NULL));
    CHECK(fake->broken == 700);
    fake->broken = 0;
    kg_plan_destroy(plan);
    kg_problem_destroy(problem);
}

static bool set_up(void)
{
    CHECK(folder_make(folder));
    setenv("KG_FAKE_COPIES", "1", 1);
    fake = fake_driver_open();
    CHECK(fake != NULL);
    struct kg_options options = {.home = folder};
    struct kg_problem *problem;
    CHECK_OK(kg_context_create(&options, &context));
    CHECK_OK(kg_context_device(context, "cuda:0", &device));
    CHECK_OK(kg_op_parse(context, "copy.kg", text, strlen(text), NULL, &op));
    if (test_failures > 0)
        return false;
    struct kg_plan *plan = make_plan(COUNT, 1, 1, &problem);
    bool able = plan != NULL;
    kg_plan_destroy(plan);
    kg_problem_destroy(problem);
    return able;
}

int main(void)
{
    bool able = set_up();
    if (able) {
        check_run(COUNT, 1, 1);
        check_run(COUNT, 3, 2);
        check_run(0, 1, 1);
        check_failure("cuMemAlloc_v2", 2, KG_ERROR_MEMORY);
        check_failure("cuMemcpy", 700, KG_ERROR_FAULT);
        check_failure("cuLaunchKernelEx", 700, KG_ERROR_FAULT);
        memory_of_this_process_is_a_fault();
    }
    kg_op_destroy(op);
    kg_context_destroy(context);
    folder_remove(folder);
    printf("%d checks, %d failed\n", test_checks, test_failures);
    return test_failures ? 1 : able ? 0 : 77; // no NVRTC
}
