// A context whose records cannot be opened: everything works, it says so once, what is learned is
// known until the context goes, and what is about the records themselves fails with the reason.

#include "kernelgen.h"
#include "test.h"

#include <string.h>

#define WHY "cannot make folder /dev/null/none"

static const char text[] = "op scale(x: f32[N]) -> (y: f32[N])\n{ y[n] = 3 * x[n] }\n"
                           "goal { verify N = 5 tune N = 1000 }";
static struct kg_context *context;
static struct kg_problem *problem;
static struct kg_device *device;
static int notices;

static void take_notice(void *user, const char *notice)
{
    (void)user;
    notices += strstr(notice, "goes on without records") && strstr(notice, WHY);
}

#define CHECK_OK(call)                                                                             \
    do {                                                                                           \
        enum kg_status own_status = (call);                                                        \
        CHECK(own_status == KG_OK);                                                                \
        if (own_status != KG_OK)                                                                   \
            fprintf(stderr, "  %s\n", kg_context_error(context));                                  \
    } while (0)

static void open_context(void)
{
    struct kg_options options = {.home = "/dev/null/none", .notice = take_notice};
    struct kg_op *op;
    notices = 0;
    CHECK_OK(kg_context_create(&options, &context));
    CHECK(strstr(kg_context_error(context), WHY) && notices == 0);
    CHECK_OK(kg_context_device(context, "host", &device));
    CHECK_OK(kg_op_parse(context, "scale.kg", text, strlen(text), NULL, &op));
    CHECK_OK(kg_problem_create(context, op, NULL, 0, &problem));
    kg_op_destroy(op);
}

static void close_context(void)
{
    kg_problem_destroy(problem);
    kg_context_destroy(context);
}

static void plans_are_made_and_known(void)
{
    struct kg_plan *plan, *known;
    open_context();
    CHECK(kg_plan_create(problem, device, KG_RIGOR_WISDOM, 0, &plan) == KG_ERROR_NO_WISDOM);
    CHECK(notices == 1);
    CHECK_OK(kg_plan_create(problem, device, KG_RIGOR_MEASURE, 1, &plan));
    CHECK_OK(kg_plan_create(problem, device, KG_RIGOR_WISDOM, 0, &known));
    CHECK(notices == 1 && plan && known);
    if (plan && known)
        CHECK_TEXT(kg_plan_choice(known), kg_plan_choice(plan));
    kg_plan_destroy(known);
    kg_plan_destroy(plan);
    close_context();
}

static void nothing_is_remembered(void)
{
    struct kg_plan *plan;
    open_context();
    CHECK(kg_plan_create(problem, device, KG_RIGOR_WISDOM, 0, &plan) == KG_ERROR_NO_WISDOM);
    close_context();
}

#define CHECK_REFUSED(call)                                                                        \
    do {                                                                                           \
        CHECK((call) == KG_ERROR_IO && strstr(kg_context_error(context), WHY));                    \
    } while (0)

static void records_themselves_are_missing(void)
{
    char *made = NULL;
    int count = 7;
    open_context();
    CHECK_REFUSED(kg_wisdom_list(context, NULL, false, &made));
    CHECK_REFUSED(kg_wisdom_export(context, &made));
    CHECK_REFUSED(kg_wisdom_import(context, "", 0, &made));
    CHECK_REFUSED(kg_wisdom_forget(context, NULL, &count));
    CHECK_REFUSED(kg_log(context, NULL, &made));
    CHECK_REFUSED(kg_report(context, NULL, NULL, &made));
    CHECK_REFUSED(kg_fit(context, NULL, NULL, 0, NULL, false, &made));
    CHECK_REFUSED(kg_samples_export(context, NULL, &made));
    CHECK(!made && count == 0);
    close_context();
}

TEST_MAIN(plans_are_made_and_known, nothing_is_remembered, records_themselves_are_missing)
