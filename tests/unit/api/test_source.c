// The source of what would be chosen: that of the plan, byte for byte, without one.

#include "kernelgen.h"
#include "support/folder.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

static const char text[] = "op scale(x: f32[N]) -> (y: f32[N])\n{ y[n] = 3 * x[n] }\n"
                           "goal { verify N = 5 tune N = 1000 }";
static struct kg_context *context;
static struct kg_problem *problem;
static char home[64];

static struct kg_device *open_device(const char *name)
{
    struct kg_device *device = NULL;
    CHECK(kg_context_device(context, name, &device) == KG_OK);
    return device;
}

static void open_context(void)
{
    struct kg_options options = {.home = home, .wisdom = ""};
    struct kg_op *op;
    snprintf(home, sizeof home, "/tmp/kernelgen-source-XXXXXX");
    CHECK(folder_make(home));
    CHECK(kg_context_create(&options, &context) == KG_OK);
    CHECK(kg_op_parse(context, "scale.kg", text, strlen(text), NULL, &op) == KG_OK);
    CHECK(kg_problem_create(context, op, NULL, 0, &problem) == KG_OK);
    kg_op_destroy(op);
}

static void close_context(void)
{
    kg_problem_destroy(problem);
    kg_context_destroy(context);
    folder_remove(home);
}

static void source_is_that_of_the_plan(void)
{
    struct kg_plan *plan = NULL;
    char *alone = NULL, *planned = NULL;
    float in[1000], out[1000] = {0};
    void *const tensors[] = {in, out};
    for (int i = 0; i < 1000; i++)
        in[i] = (float)i;
    open_context();
    struct kg_device *host = open_device("host");
    CHECK(kg_problem_source(problem, host, KG_RIGOR_ESTIMATE, 0, &alone) == KG_OK);
    // And plans that follow are whole.
    CHECK(kg_plan_create(problem, host, KG_RIGOR_ESTIMATE, 0, &plan) == KG_OK);
    CHECK(plan && kg_plan_source(plan, &planned) == KG_OK);
    CHECK(alone && planned && strcmp(alone, planned) == 0);
    CHECK(plan && kg_plan_run(plan, tensors) == KG_OK && out[999] == 3 * 999.0f);
    kg_plan_destroy(plan);
    free(alone);
    free(planned);
    close_context();
}

// What was learned by a search is what is written.
static void source_is_of_what_is_known(void)
{
    struct kg_plan *plan = NULL;
    char *alone = NULL, *planned = NULL;
    open_context();
    struct kg_device *host = open_device("host");
    CHECK(kg_problem_source(problem, host, KG_RIGOR_WISDOM, 0, &alone) == KG_ERROR_NO_WISDOM);
    CHECK(alone == NULL);
    CHECK(kg_problem_source(problem, host, KG_RIGOR_MEASURE, 2, &alone) == KG_OK);
    CHECK(kg_plan_create(problem, host, KG_RIGOR_WISDOM, 0, &plan) == KG_OK);
    CHECK(plan && kg_plan_source(plan, &planned) == KG_OK);
    CHECK(alone && planned && strcmp(alone, planned) == 0);
    kg_plan_destroy(plan);
    free(alone);
    free(planned);
    close_context();
}

static void source_needs_no_compiler(void)
{
    char *source = NULL;
    setenv("KERNELGEN_NVRTC", "/nonexistent/libnvrtc.so", 1);
    open_context();
    struct kg_device *described = open_device("sm_90a");
    CHECK(kg_problem_source(problem, described, KG_RIGOR_ESTIMATE, 0, &source) == KG_OK);
    CHECK(source && strstr(source, "extern \"C\" __global__"));
    free(source);
    CHECK(kg_problem_source(problem, described, (enum kg_rigor)77, 0, &source) ==
          KG_ERROR_ARGUMENT);
    CHECK(source == NULL);
    close_context();
    unsetenv("KERNELGEN_NVRTC");
}

TEST_MAIN(source_is_that_of_the_plan, source_is_of_what_is_known, source_needs_no_compiler)
