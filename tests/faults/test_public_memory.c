// From text to plan through the public functions, with allocations that fail: out of memory is
// reported, nothing is lost, and the same context works afterwards.

#include "faults/fail_alloc.h"
#include "kernelgen.h"
#include "test.h"

#include <ftw.h>
#include <stdlib.h>

#define MOST_RUNS 120 // spread over all allocations of one way

static const char definition[] = "# Doubles.\n"
                                 "op twice(x: T[P, D]) -> (y: T[P, D]) where T in f32 f16\n"
                                 "{ y[p, d] = x[p, d] + x[p, d] }\n"
                                 "goal { verify P D = 3 5 }\n";

static enum kg_status go(struct kg_context *context, struct kg_device *device)
{
    struct kg_op *op = NULL;
    struct kg_problem *problem = NULL;
    struct kg_plan *plan = NULL;
    char *text = NULL;
    struct kg_binding sizes[] = {{"P", "7"}, {"D", "9"}};
    enum kg_status status =
        kg_op_parse(context, "twice.kg", definition, strlen(definition), "twice", &op);
    if (status == KG_OK)
        status = kg_problem_create(context, op, sizes, 2, &problem);
    if (status == KG_OK)
        status = kg_problem_document(problem, device, "en", false, &text);
    if (status == KG_OK)
        status = kg_plan_create(problem, device, KG_RIGOR_ESTIMATE, 0, &plan);
    if (status == KG_OK) {
        float x[63], y[63];
        for (int i = 0; i < 63; i++)
            x[i] = (float)i;
        void *tensors[] = {x, y};
        status = kg_plan_execute(plan, tensors, NULL);
        CHECK(status != KG_OK || y[62] == 124);
    }
    CHECK((op != NULL) + (problem != NULL) + (text != NULL) + (plan != NULL) == 4 ||
          status != KG_OK);
    kg_text_release(text);
    kg_plan_destroy(plan);
    kg_problem_destroy(problem);
    kg_op_destroy(op);
    return status;
}

static long count_allocations(struct kg_context *context, struct kg_device *device)
{
    long low = 0, high = 1 << 20; // the run reaches its low-th allocation, not its high-th
    while (high - low > 1) {
        long middle = low + (high - low) / 2;
        fail_alloc_at(middle);
        go(context, device);
        bool reached = fail_alloc_happened();
        fail_alloc_never();
        *(reached ? &low : &high) = middle;
    }
    return low;
}

static int remove_entry(const char *path, const struct stat *about, int kind, struct FTW *place)
{
    (void)about, (void)kind, (void)place;
    return remove(path);
}

static void sweep(struct kg_context *context, struct kg_device *device)
{
    long count = count_allocations(context, device);
    long step = count / MOST_RUNS + 1;
    int failed = 0;
    for (long n = 1; n <= count; n += n < 40 ? 1 : step) {
        fail_alloc_at(n);
        enum kg_status status = go(context, device);
        fail_alloc_never();
        if (status != KG_OK && status != KG_ERROR_MEMORY)
            fprintf(stderr, "allocation %ld: %s: %s\n", n, kg_status_name(status),
                    kg_context_error(context));
        CHECK(status == KG_OK || status == KG_ERROR_MEMORY);
        CHECK(status == KG_OK || *kg_context_error(context));
        failed += status != KG_OK;
    }
    CHECK(failed > 10);
    fail_alloc_from(count / 2);
    enum kg_status status = go(context, device);
    fail_alloc_never();
    CHECK(status == KG_ERROR_MEMORY);
}

// Making and opening: the context, its records and its device.
static void sweep_opening(const char *home)
{
    struct kg_options options = {.home = home, .threads = 1};
    for (long n = 1; fail_alloc_sweep(n); n++) {
        struct kg_context *context = NULL;
        struct kg_device *device = NULL;
        fail_alloc_at(n);
        enum kg_status status = kg_context_create(&options, &context);
        if (status == KG_OK)
            status = kg_context_device(context, "host", &device);
        fail_alloc_never();
        if (status != KG_OK && status != KG_ERROR_MEMORY)
            fprintf(stderr, "allocation %ld: %s: %s\n", n, kg_status_name(status),
                    context ? kg_context_error(context) : "");
        CHECK(status == KG_OK || status == KG_ERROR_MEMORY);
        CHECK(status != KG_OK || device != NULL);
        kg_context_destroy(context);
    }
}

static void test_public(void)
{
    char home[] = "/tmp/kernelgen-memory-XXXXXX";
    if (!mkdtemp(home))
        abort();
    struct kg_options options = {.home = home, .threads = 1};
    struct kg_context *context = NULL;
    struct kg_device *device = NULL;
    CHECK(kg_context_create(&options, &context) == KG_OK);
    CHECK(kg_context_device(context, "host", &device) == KG_OK);
    CHECK(go(context, device) == KG_OK); // compiles; from here on the object is in the cache
    sweep(context, device);
    CHECK(go(context, device) == KG_OK);
    kg_context_destroy(context);
    sweep_opening(home);
    nftw(home, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

TEST_MAIN(test_public)
