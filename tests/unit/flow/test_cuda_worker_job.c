// What happens when this process uses the GPU's driver already: a program searches, verifies and
// benches instead of a fork. The driver is a fake, whose kernels copy (support/fake_driver.h).

#include "kernelgen.h"
#include "support/fake_driver.h"
#include "support/folder.h"
#include "test.h"

#include <string.h>
#include <sys/stat.h>

static char folder[] = "/tmp/kg-test-errand-XXXXXX";
static const char text[] = "op copy(x: f32[N]) -> (y: f32[N])\n{ y[n] = x[n] }\n";
static struct fake_driver *fake;
static struct kg_context *context;
static struct kg_device *device;
static struct kg_op *op;
static struct kg_problem *problem;
static int notices, inits; // calls of cuInit here: facts are asked for in place
static char last_notice[400];

static void take_notice(void *user, const char *notice)
{
    (void)user;
    if (strncmp(notice, "the first plan took", 19) == 0)
        return;
    notices++;
    snprintf(last_notice, sizeof last_notice, "%s", notice);
}

#define CHECK_OK(call)                                                                             \
    do {                                                                                           \
        enum kg_status own_status = (call);                                                        \
        CHECK(own_status == KG_OK);                                                                \
        if (own_status != KG_OK)                                                                   \
            fprintf(stderr, "  %s\n", kg_context_error(context));                                  \
    } while (0)

// As a program that loaded PyTorch has: the driver is in use before KernelGen is asked.
static bool set_up(void)
{
    char folders[2000];
    CHECK(folder_make(folder));
    snprintf(folders, sizeof folders, "%s", KG_FAKE_DRIVER);
    *strrchr(folders, '/') = '\0';
    setenv("LD_LIBRARY_PATH", folders, 1); // for the program; here it is opened by hand
    setenv("KG_FAKE_COPIES", "1", 1);
    fake = fake_driver_open();
    CHECK(fake != NULL);
    int (*init)(unsigned);
    *(void **)&init = dlsym(dlopen(KG_FAKE_DRIVER, RTLD_NOW | RTLD_LOCAL), "cuInit");
    CHECK(init(0) == 0 && fake->inits == 1);
    struct kg_options options = {.home = folder, .notice = take_notice};
    CHECK_OK(kg_context_create(&options, &context));
    CHECK_OK(kg_context_device(context, "cuda:0", &device));
    CHECK_OK(kg_op_parse(context, "copy.kg", text, strlen(text), NULL, &op));
    struct kg_binding size = {"N", "5000"};
    CHECK_OK(kg_problem_create(context, op, &size, 1, &problem));
    char *table;
    CHECK_OK(kg_context_devices(context, false, &table));
    bool able = strstr(table, "NVRTC") != NULL;
    kg_text_release(table);
    inits = fake->inits;
    return able;
}

// The fake's events say 1.5 ms, whatever runs.
static void check_plan(struct kg_plan *plan)
{
    double measured, bound;
    kg_plan_cost(plan, &measured, &bound);
    CHECK(measured > 1.49e-3 && measured < 1.51e-3);
    CHECK(strncmp(kg_plan_choice(plan), "pointwise", 9) == 0);
}

static void a_program_searches(void)
{
    struct kg_plan *plan, *known;
    struct kg_verify_result verdict = {.size = sizeof verdict};
    struct kg_bench_result bench = {.size = sizeof bench};
    CHECK_OK(kg_plan_create(problem, device, KG_RIGOR_MEASURE, 6, &plan));
    CHECK(plan && fake->blocks == 0); // nothing ran here
    if (!plan)
        return;
    check_plan(plan);
    CHECK(notices == 0);
    CHECK_OK(kg_plan_verify(plan, 7, &verdict));
    CHECK(verdict.passed && verdict.seed == 7 && verdict.cases > 20 && verdict.impostors > 5);
    CHECK_OK(kg_plan_bench(plan, &bench));
    CHECK(bench.seconds > 1.49e-3 && bench.baseline_seconds > 1.49e-3 && bench.samples > 0);
    CHECK(fake->blocks == 0);
    // It wrote to this process's records, under this problem's key.
    CHECK_OK(kg_plan_create(problem, device, KG_RIGOR_WISDOM, 0, &known));
    if (known) {
        check_plan(known);
        CHECK_TEXT(kg_plan_choice(known), kg_plan_choice(plan));
    }
    kg_plan_destroy(known);
    kg_plan_destroy(plan);
}

static void verify(const char *function, bool passes, const char *reason)
{
    char path[200];
    struct kg_verify_result verdict = {.size = sizeof verdict};
    snprintf(path, sizeof path, "%s/%s.cu", folder, function);
    FILE *file = fopen(path, "w");
    fprintf(file,
            "// Launch: %s, 3 blocks of 4 threads, where N > 0\n//  with x, y, N, scratch\n"
            "extern \"C\" __global__ void %s(const float *x, float *y, long long n, char *s) {}\n",
            function, function);
    fclose(file);
    CHECK_OK(kg_problem_verify_file(problem, device, path, 7, &verdict));
    CHECK(verdict.passed == passes && strstr(verdict.reason, reason));
    if (verdict.passed != passes || !strstr(verdict.reason, reason))
        fprintf(stderr, "  %s\n", verdict.reason);
    CHECK(fake->blocks == 0 && fake->broken == 0 && fake->inits == inits);
}

static void kernels_from_outside(void)
{
    verify("copy", true, "");
    verify("k_0", false, "expected"); // does nothing
    verify("fault", false, "CUDA_ERROR_ILLEGAL_ADDRESS");
    struct kg_verify_result verdict = {.size = sizeof verdict}; // errors come back as they are
    CHECK(kg_problem_verify_file(problem, device, "none.cu", 7, &verdict) == KG_ERROR_IO);
    CHECK(strstr(kg_context_error(context), "none.cu"));
}

struct told {
    int count;
    enum kg_status status[4];
    bool passed[4];
};

static void tell(void *user, int index, enum kg_status status,
                 const struct kg_verify_result *result)
{
    struct told *told = user;
    CHECK(index == told->count && (status == KG_OK) == (result != NULL));
    CHECK(!status || strstr(kg_context_error(context), "none.cu"));
    told->status[told->count] = status;
    told->passed[told->count++] = result && result->passed;
}

static void several_from_outside(void)
{
    static const char *const names[] = {"fault", "copy", "none", "copy"};
    char texts[4][200];
    const char *paths[4];
    struct told told = {0};
    for (int i = 0; i < 4; i++) {
        snprintf(texts[i], sizeof texts[i], "%s/%s.cu", folder, names[i]);
        paths[i] = texts[i]; // kernels_from_outside wrote those that are there
    }
    CHECK_OK(kg_problem_verify_files(problem, device, paths, 4, 7, tell, &told));
    CHECK(told.count == 4);
    CHECK(!told.status[0] && !told.status[1] && told.status[2] == KG_ERROR_IO && !told.status[3]);
    CHECK(!told.passed[0] && told.passed[1] && told.passed[3]);
    CHECK(fake->blocks == 0 && fake->broken == 0 && fake->inits == inits);
    paths[1] = NULL;
    CHECK(kg_problem_verify_files(problem, device, paths, 4, 7, tell, &told) == KG_ERROR_ARGUMENT);
    CHECK(told.count == 4);
}

// In place of compute-sanitizer: runs the program, then says this.
static void install_sanitizer(const char *says)
{
    char path[200], paths[2000];
    snprintf(path, sizeof path, "%s/compute-sanitizer", folder);
    FILE *file = fopen(path, "w");
    fprintf(file,
            "#!/bin/sh\n"
            "echo ========= COMPUTE-SANITIZER\n"
            "tool=$2; while [ ! -x \"$1\" ]; do shift; done; \"$@\"; %s\n",
            says);
    CHECK(fchmod(fileno(file), 0755) == 0 && fclose(file) == 0);
    snprintf(paths, sizeof paths, "%s:/usr/bin:/bin", folder);
    setenv("PATH", paths, 1);
}

static void sanitize(const char *says, enum kg_status expected, bool passes, const char *words)
{
    char path[200];
    struct kg_verify_result verdict = {.size = sizeof verdict};
    install_sanitizer(says);
    snprintf(path, sizeof path, "%s/copy.cu", folder); // kernels_from_outside wrote it
    enum kg_status status = kg_problem_verify_file(problem, device, path, 7, &verdict);
    const char *found = status           ? kg_context_error(context)
                        : verdict.passed ? verdict.sanitized
                                         : verdict.reason;
    if (status != expected || verdict.passed != passes || !strstr(found, words))
        fprintf(stderr, "  %d %d %s\n", status, verdict.passed, found);
    CHECK(status == expected && verdict.passed == passes && strstr(found, words));
    CHECK(fake->blocks == 0 && fake->inits == inits);
}

static void under_sanitizers(void)
{
    const char *old = getenv("PATH");
    char *path = old ? strdup(old) : NULL;
    kg_context_set_sanitize(context, true);
    sanitize("echo ========= ERROR SUMMARY: 0 errors", KG_OK, true, "synccheck (");
    sanitize("[ $tool = racecheck ] && echo '========= Error: Race reported' &&\n"
             "echo ========= RACECHECK SUMMARY: 1 hazard || echo ========= ERROR SUMMARY: 0 errors",
             KG_OK, false, "racecheck: Error: Race reported");
    sanitize("echo ========= ERROR SUMMARY: 0 errors >&2; exit 3", KG_OK, true, "memcheck (");
    sanitize("echo the driver is too old", KG_ERROR_FAULT, false, "the driver is too old");
    sanitize("kill -9 $$", KG_ERROR_FAULT, false, "memcheck: the tool gave no result");
    // What a plan runs is the same as in the gate.
    struct kg_verify_result verdict = {.size = sizeof verdict};
    struct kg_plan *plan = NULL;
    install_sanitizer("echo ========= ERROR SUMMARY: 0 errors");
    CHECK_OK(kg_plan_create(problem, device, KG_RIGOR_ESTIMATE, 0, &plan));
    CHECK_OK(kg_plan_verify(plan, 7, &verdict));
    CHECK(verdict.passed && strstr(verdict.sanitized, "racecheck ("));
    kg_plan_destroy(plan);
    kg_context_set_sanitize(context, false);
    setenv("PATH", path, 1);
    free(path);
}

static void plan_another(const char *sizes)
{
    struct kg_binding size = {"N", sizes};
    struct kg_problem *other;
    struct kg_plan *plan = NULL;
    CHECK_OK(kg_problem_create(context, op, &size, 1, &other));
    CHECK_OK(kg_plan_create(other, device, KG_RIGOR_MEASURE, 2, &plan));
    if (plan)
        check_plan(plan);
    kg_plan_destroy(plan);
    kg_problem_destroy(other);
}

// A build's stages, all of them in the program, and the nearest shape, which it is told about.
static void a_program_builds(void)
{
    struct kg_binding size = {"N", "9000"};
    struct kg_build_options options = {.rigor = KG_RIGOR_MEASURE, .seconds = 60};
    struct kg_verify_result verify = {.size = sizeof verify};
    struct kg_bench_result bench = {.size = sizeof bench};
    struct kg_build_result result = {.size = sizeof result, .verify = &verify, .bench = &bench};
    struct kg_problem *other;
    struct kg_plan *plan = NULL;
    CHECK_OK(kg_problem_create(context, op, &size, 1, &other));
    CHECK_OK(kg_build(other, device, &options, &result, &plan));
    CHECK(verify.passed && verify.cases > 20 && bench.seconds > 1.49e-3);
    CHECK(result.rounds > 0 && result.measured > 3);
    CHECK(notices == 0 && fake->blocks == 0 && fake->inits == inits);
    if (plan)
        check_plan(plan);
    kg_plan_destroy(plan);
    kg_problem_destroy(other);
}

// Without a program this process does it, and says so once.
static void without_a_program(void)
{
    setenv("KERNELGEN_WORKER", "", 1);
    plan_another("6000");
    CHECK(notices == 1 && strstr(last_notice, "kernelgen-worker"));
    plan_another("7000");
    CHECK(notices == 1);
    // One that ends at once is a failure that can be seen.
    struct kg_binding size = {"N", "8000"};
    struct kg_problem *other;
    struct kg_plan *plan;
    setenv("KERNELGEN_WORKER", "/bin/true", 1);
    CHECK_OK(kg_problem_create(context, op, &size, 1, &other));
    CHECK(kg_plan_create(other, device, KG_RIGOR_MEASURE, 2, &plan) == KG_ERROR_FAULT);
    CHECK(strstr(kg_context_error(context), "exited with status 0"));
    kg_problem_destroy(other);
    unsetenv("KERNELGEN_WORKER");
}

// The program has none either, and does as much.
static void without_records(void)
{
    struct kg_options options = {.home = "/dev/null/none", .notice = take_notice};
    struct kg_context *lacking;
    struct kg_device *same;
    struct kg_op *parsed;
    struct kg_problem *other;
    struct kg_plan *plan = NULL;
    CHECK_OK(kg_context_create(&options, &lacking));
    CHECK_OK(kg_context_device(lacking, "cuda:0", &same));
    CHECK_OK(kg_op_parse(lacking, "copy.kg", text, strlen(text), NULL, &parsed));
    CHECK_OK(kg_problem_create(lacking, parsed, &(struct kg_binding){"N", "5500"}, 1, &other));
    CHECK_OK(kg_plan_create(other, same, KG_RIGOR_MEASURE, 2, &plan));
    CHECK(notices == 1 && strstr(last_notice, "goes on without records"));
    if (plan)
        check_plan(plan);
    CHECK(fake->blocks == 0);
    kg_plan_destroy(plan);
    kg_problem_destroy(other);
    kg_op_destroy(parsed);
    kg_context_destroy(lacking);
    notices = 0;
    inits = fake->inits; // another device was opened
}

static void clean_up(void)
{
    kg_problem_destroy(problem);
    kg_op_destroy(op);
    kg_context_destroy(context);
    CHECK(fake->blocks == 0 && fake->modules == 0 && fake->contexts == 0);
    folder_remove(folder);
}

int main(void)
{
    bool able = set_up();
    if (able && test_failures == 0) {
        a_program_searches();
        a_program_builds();
        kernels_from_outside();
        several_from_outside();
        under_sanitizers();
        without_records();
        without_a_program();
    }
    clean_up();
    printf("%d checks, %d failed\n", test_checks, test_failures);
    return test_failures ? 1 : able ? 0 : 77;
}
