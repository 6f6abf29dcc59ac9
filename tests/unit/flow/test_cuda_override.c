// PTX in the place of generated kernels, above a driver without a GPU: it passes the gate before it
// is timed, beside what it overrides, and what comes of it is on record under its own name.

#include "base/error.h"
#include "support/fake_driver.h"
#include "support/folder.h"
#include "test.h"

#include <stdlib.h>

static char folder[] = "/tmp/kg-test-override-XXXXXX";
static struct fake_driver *fake;
static struct kg_context *context;
static struct kg_device *device;
static struct kg_problem *problem;
static struct kg_plan *plan;

static const char definition[] = "op f(x: f32[P]) -> (y: f32[P]) { y[p] = x[p] }\n"
                                 "goal { verify P = 3, 100 tune P = 4096 }";

static void copy_all(int function, void **arguments)
{
    (void)function;
    fake->copy(arguments);
}

// Half of it.
static void copy_almost(int function, void **arguments)
{
    (void)function;
    void *size = arguments[2];
    int64_t count = *(int64_t *)size / 2;
    arguments[2] = &count;
    fake->copy(arguments);
    arguments[2] = size;
}

// What was generated is right, and what overrides it is not.
static void copy_all_but_ptx(int function, void **arguments)
{
    (fake->ptx_modules > 0 ? copy_almost : copy_all)(function, arguments);
}

static void check(enum kg_status status, enum kg_status wanted)
{
    struct kg_error error = {.status = status};
    snprintf(error.text, sizeof error.text, "%s", kg_context_error(context));
    CHECK_STATUS(status, wanted, &error);
}

// A file in the test's folder, without the lines that begin so.
static const char *write_ptx(const char *name, const char *text, const char *without)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    for (const char *line = text; file && *line;) {
        size_t length = strcspn(line, "\n") + 1;
        if (!without || strncmp(line, without, strlen(without)) != 0)
            fprintf(file, "%.*s", (int)length, line);
        line += length;
    }
    CHECK(file && fclose(file) == 0);
    return path;
}

// Does the log say so?
static bool is_logged(const char *words)
{
    char *log = NULL;
    check(kg_log(context, "f", &log), KG_OK);
    bool found = log && strstr(log, words);
    kg_text_release(log);
    return found;
}

static void check_no_wisdom(void)
{
    struct kg_plan *known;
    check(kg_plan_create(problem, device, KG_RIGOR_WISDOM, 0, &known), KG_ERROR_NO_WISDOM);
}

// What kernels do, when the file's passes.
static void right_one(void)
{
    char *ptx = NULL, *text = NULL;
    struct kg_plan *overridden = NULL;
    struct kg_bench_result bench = {.size = sizeof bench};
    struct kg_verify_result verdict = {.size = sizeof verdict};
    check(kg_plan_assembly(plan, &ptx), KG_OK);
    check(kg_plan_override(plan, write_ptx("mine.ptx", ptx, NULL), &overridden), KG_OK);
    if (!overridden)
        exit(1);
    CHECK_TEXT(kg_plan_choice(overridden), kg_plan_choice(plan));
    check(kg_plan_assembly(overridden, &text), KG_OK);
    CHECK_TEXT(text, ptx);
    fake->run = copy_all;
    check(kg_plan_verify(overridden, 0, &verdict), KG_OK);
    CHECK(verdict.passed && verdict.cases > 0);
    check(kg_plan_bench(overridden, &bench), KG_OK);
    CHECK(bench.samples > 0 && bench.seconds > 0 && bench.original_seconds > 0);
    CHECK(is_logged("(overridden by ") && is_logged("mine.ptx) |") && is_logged("passed the gate"));
    check_no_wisdom();
    check(kg_plan_bench(plan, &bench), KG_OK);
    CHECK(bench.original_seconds == 0);
    kg_text_release(text);
    kg_text_release(ptx);
    kg_plan_destroy(overridden);
}

// Which is not timed. Without a choice of its own the file stands for the plan's.
static void wrong_one(void)
{
    char *ptx = NULL;
    struct kg_plan *overridden = NULL;
    struct kg_bench_result bench = {.size = sizeof bench};
    struct kg_verify_result verdict = {.size = sizeof verdict};
    check(kg_plan_assembly(plan, &ptx), KG_OK);
    check(kg_plan_override(plan, write_ptx("half.ptx", ptx, "// Choice:"), &overridden), KG_OK);
    fake->run = copy_almost;
    check(kg_plan_verify(overridden, 0, &verdict), KG_OK);
    CHECK(!verdict.passed && verdict.reason[0]);
    check(kg_plan_bench(overridden, &bench), KG_ERROR_WRONG);
    CHECK(strstr(kg_context_error(context), "the accuracy gate refused ") && bench.samples == 0);
    CHECK(is_logged("half.ptx) | wrong |") && is_logged("refused: "));
    check_no_wisdom();
    kg_text_release(ptx);
    kg_plan_destroy(overridden);
}

// A build's verdict and times are those of the kernels it ends with.
static void builds_end_with_it(void)
{
    char *ptx = NULL, *text = NULL;
    struct kg_plan *built = NULL;
    struct kg_verify_result verify = {.size = sizeof verify};
    struct kg_bench_result bench = {.size = sizeof bench};
    struct kg_build_result result = {.size = sizeof result, .verify = &verify, .bench = &bench};
    struct kg_verify_result generated = {.size = sizeof generated};
    check(kg_plan_assembly(plan, &ptx), KG_OK);
    struct kg_build_options options = {.rigor = KG_RIGOR_ESTIMATE,
                                       .override = write_ptx("built.ptx", ptx, NULL)};
    fake->run = copy_all;
    check(kg_plan_verify(plan, 0, &generated), KG_OK);
    check(kg_build(problem, device, &options, &result, &built), KG_OK);
    CHECK(verify.passed && bench.original_seconds > 0);
    // Views with strides are judged with a generated counterpart, which a file has not.
    CHECK(verify.cases > 0 && verify.skipped > 0 && generated.skipped == 0);
    if (built)
        check(kg_plan_assembly(built, &text), KG_OK);
    CHECK_TEXT(text ? text : "", ptx);
    kg_plan_destroy(built);
    fake->run = copy_all_but_ptx;
    check(kg_build(problem, device, &options, &result, &built), KG_ERROR_WRONG);
    CHECK(!built && strstr(kg_context_error(context), "built.ptx: "));
    CHECK(!verify.passed && verify.cases > 0 && verify.reason[0]);
    CHECK(bench.samples == 0 && !result.goal_met);
    kg_text_release(text);
    kg_text_release(ptx);
}

static void refuse(const char *path, enum kg_status wanted, const char *why)
{
    struct kg_plan *overridden;
    check(kg_plan_override(plan, path, &overridden), wanted);
    CHECK(!overridden && strstr(kg_context_error(context), why));
}

static void files_that_do_not_fit(void)
{
    char *ptx = NULL;
    check(kg_plan_assembly(plan, &ptx), KG_OK);
    refuse("/nowhere/mine.ptx", KG_ERROR_IO, "/nowhere/mine.ptx");
    refuse(write_ptx("mine.cu", ptx, NULL), KG_ERROR_ARGUMENT, "only PTX overrides a kernel");
    refuse(write_ptx("empty.ptx", "", NULL), KG_ERROR_ARGUMENT, "there is no kernel called f_0");
    static const char *const targets[] = {"sm_90a", "sm_80",  "sm_90",  "sm_100a",
                                          "sm_80a", "sm_120", "sm_90f", "sm_100f"};
    for (int i = 0; i < 8; i++) {
        char text[128];
        snprintf(text, sizeof text, ".version 8.0\n.target %s, debug\n", targets[i]);
        bool runs = i < 3 || i == 6; // then it is the kernel that is missing
        refuse(write_ptx("target.ptx", text, NULL), KG_ERROR_ARGUMENT,
               runs ? "there is no kernel called f_0" : "which Fake GPU 0 (sm_90a) does not run");
    }
    kg_text_release(ptx);
}

static void open_all(void)
{
    struct kg_options options = {.home = folder};
    struct kg_op *op;
    check(kg_context_create(&options, &context), KG_OK);
    check(kg_context_set_protocol(context, "warm launch"), KG_OK);
    check(kg_context_device(context, "cuda:0", &device), KG_OK);
    check(kg_op_parse(context, "f.kg", definition, strlen(definition), "f", &op), KG_OK);
    check(kg_problem_create(context, op, NULL, 0, &problem), KG_OK);
    kg_op_destroy(op);
}

static void close_all(void)
{
    kg_plan_destroy(plan);
    kg_problem_destroy(problem);
    kg_context_destroy(context);
    folder_remove(folder);
}

int main(void)
{
    CHECK(folder_make(folder));
    fake = fake_driver_open();
    if (!fake)
        return 1;
    open_all();
    enum kg_status status = kg_plan_create(problem, device, KG_RIGOR_ESTIMATE, 0, &plan);
    if (status == KG_ERROR_MISSING) {
        printf("there is no NVRTC: nothing was compiled\n");
        close_all();
        return 77;
    }
    check(status, KG_OK);
    if (plan) {
        right_one();
        wrong_one();
        builds_end_with_it();
        files_that_do_not_fit();
    }
    close_all();
    printf("%d checks, %d failed\n", test_checks, test_failures);
    return test_failures != 0;
}
