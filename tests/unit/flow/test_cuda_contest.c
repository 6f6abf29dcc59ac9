// Contests of CUDA files and PTX above a driver without a GPU: files with a choice and files with
// launches of their own are judged, raced, recorded and found again. The fake's kernels do what
// their numbers say, whatever their code is.

#include "test.h"
#include "base/error.h"
#include "support/fake_driver.h"
#include "support/folder.h"

#include <stdlib.h>
#include <sys/stat.h>

static char folder[] = "/tmp/kg-test-contest-XXXXXX";
static struct fake_driver *fake;
static struct kg_context *context;
static struct kg_device *device;
static struct kg_problem *problem;
static struct kg_plan *plan;

static const char definition[] = "op f(x: f32[P]) -> (y: f32[P]) { y[p] = x[p] }\n"
                                 "goal { verify P = 3, 100 tune P = 4096 }";

static bool generated_are_wrong;

// f_3 is what files written by hand launch, the others are generated. All copy.
static void run_by_number(int function, void **arguments)
{
    void *size = arguments[2];
    if (function == 3) {
        // Whether it takes an int or a long long, its low half is the size.
        memcpy(*(float **)arguments[1], *(float **)arguments[0], sizeof(float) * *(unsigned *)size);
        return;
    }
    int64_t count = *(int64_t *)size - generated_are_wrong;
    arguments[2] = &count;
    fake->copy(arguments);
    arguments[2] = size;
}

static void check(enum kg_status status, enum kg_status wanted)
{
    struct kg_error error = {.status = status};
    snprintf(error.text, sizeof error.text, "%s", kg_context_error(context));
    CHECK_STATUS(status, wanted, &error);
}

static const char *path_of(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_text(const char *name, const char *text)
{
    FILE *file = fopen(path_of(name), "w");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static char *contest(const char *name, bool json)
{
    char *text = NULL;
    int unrun = -1;
    check(kg_plan_contest(plan, path_of(name), json, &text, &unrun), KG_OK);
    CHECK(unrun == 0);
    if (!text)
        exit(1);
    return text;
}

static void check_has(const char *text, const char *words)
{
    CHECK(strstr(text, words));
    if (!strstr(text, words))
        fprintf(stderr, "not there: %s\n%s\n", words, text);
}

#define SIGNATURE "extern \"C\" __global__ void "
#define BODY "{ long long i = blockIdx.x * 256ll + threadIdx.x; if (i < P) y[i] = x[i]; }\n"
#define LAUNCH "// Launch:  "
#define BLOCKS ", ceil(P / 256) blocks of 256 threads\n"

static void write_candidates(void)
{
    char *ptx = NULL;
    check(kg_plan_assembly(plan, &ptx), KG_OK);
    CHECK(mkdir(path_of("drafts"), 0700) == 0);
    write_text("drafts/chosen.ptx", ptx);
    kg_text_release(ptx);
    write_text("drafts/int.cu",
               LAUNCH "f_3" BLOCKS SIGNATURE "f_3(const float *x, float *y, int P) " BODY);
    write_text("drafts/swapped.cu", LAUNCH "f_3" BLOCKS "//          with y, x, P\n" SIGNATURE
                                           "f_3(const float *x, float *y, long long P) " BODY);
    write_text("drafts/two.cu", LAUNCH "f_3" BLOCKS "//          with x, scratch, P\n" LAUNCH
                                       "f_3" BLOCKS "//          with scratch, y, P\n"
                                       "//          scratch: P * 4 bytes\n" SIGNATURE
                                       "f_3(const float *x, float *y, long long P) " BODY);
    write_text("drafts/broken.cu", LAUNCH "f_3" BLOCKS "no code\n");
    write_text("drafts/other.cu",
               LAUNCH "f_3" BLOCKS SIGNATURE "f_3(const float *x, float *y) { y[0] = x[0]; }\n");
    write_text("drafts/host.c", "void f(const float *x, float *y, int64_t P) { }\n");
}

static void files_are_ranked(void)
{
    char *text = contest("drafts", false);
    check_has(text, "folder     ");
    check_has(text, ": 7 files\n");
    static const char *const ranked[] = {"  chosen.ptx  ", "  int.cu       ", "  two.cu       ",
                                         "  (generated)  ", "  (baseline)   "};
    const char *failed = strstr(text, "\nfailed\n");
    CHECK(failed);
    for (size_t i = 0; i < sizeof ranked / sizeof ranked[0]; i++) {
        const char *row = strstr(text, ranked[i]);
        CHECK(row && failed && row < failed);
        if (!row)
            fprintf(stderr, "not there: %s\n%s\n", ranked[i], text);
    }
    check_has(text, "       swapped.cu   wrong    case ");
    check_has(text, "       broken.cu    compile  ");
    check_has(text, "       other.cu     compile  ");
    check_has(text,
              "       host.c       skipped  it is a C file, for the host, and the device is ");
    check_has(text, " registers, ");
    CHECK(!strstr(text, "(on record)"));
    kg_text_release(text);
}

static int count_of(const char *text, const char *words)
{
    int count = 0;
    for (; (text = strstr(text, words)); text += strlen(words))
        count++;
    return count;
}

static void nothing_is_measured_twice(void)
{
    int launches = fake->launches;
    char *text = contest("drafts", true), *log = NULL;
    struct kg_plan *known;
    CHECK(count_of(text, "\"on_record\": true") == 6);
    CHECK(fake->launches == launches);
    kg_text_release(text);
    check(kg_log(context, "f", &log), KG_OK);
    check_has(log ? log : "", "foreign: int.cu");
    kg_text_release(log);
    check(kg_plan_create(problem, device, KG_RIGOR_WISDOM, 0, &known), KG_ERROR_NO_WISDOM);
}

static void wrong_generated_kernels_are_refused(void)
{
    char *text = NULL;
    CHECK(mkdir(path_of("one"), 0700) == 0);
    write_text("one/int.cu", "// another one\n" LAUNCH "f_3" BLOCKS SIGNATURE
                             "f_3(const float *x, float *y, int P) " BODY);
    generated_are_wrong = true;
    check(kg_plan_contest(plan, path_of("one"), false, &text, NULL), KG_ERROR_WRONG);
    CHECK(!text && strstr(kg_context_error(context), "the generated kernel"));
}

// There is no generated kernel to compete with.
static void overridden_plans_are_refused(void)
{
    struct kg_plan *overridden = NULL;
    char *text = NULL;
    check(kg_plan_override(plan, path_of("drafts/chosen.ptx"), &overridden), KG_OK);
    if (overridden)
        check(kg_plan_contest(overridden, path_of("drafts"), false, &text, NULL),
              KG_ERROR_ARGUMENT);
    CHECK(!text);
    kg_plan_destroy(overridden);
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
    fake->run = run_by_number;
    enum kg_status status = kg_plan_create(problem, device, KG_RIGOR_ESTIMATE, 0, &plan);
    if (status == KG_ERROR_MISSING) {
        printf("there is no NVRTC: nothing was compiled\n");
        close_all();
        return 77;
    }
    check(status, KG_OK);
    if (plan) {
        write_candidates();
        files_are_ranked();
        nothing_is_measured_twice();
        overridden_plans_are_refused();
        wrong_generated_kernels_are_refused();
    }
    close_all();
    printf("%d checks, %d failed\n", test_checks, test_failures);
    return test_failures != 0;
}
