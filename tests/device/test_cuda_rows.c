// Rows on a GPU with configs that the rules choose for few sizes only: held in shared memory,
// shared by clusters, with rows that fill their blocks and rows that do not, more of them than
// blocks and fewer. All of them through the accuracy gate. KG_DEVICE=cuda:1 takes another device;
// KG_OPS=NAME leaves out ops whose names do not begin like that.

#include "base/files.h"
#include "gen/built.h"
#include "lang/lang.h"
#include "support/folder.h"
#include "test.h"
#include "verify/gate.h"

#include <stdlib.h>

static struct kg_error error;
static struct kg_device *device;

enum { SHAPES = 3 };

static const struct {
    const char *file, *op, *dtype, *config;
    int64_t shapes[SHAPES][2]; // rows and columns; planned for the first
} cases[] = {
    {"softmax",
     "softmax",
     "f16",
     "threads=512 vector=8 hold=2 keep=0 cluster=1 shared=4 maxnreg=0",
     {{1000, 24576}, {999, 20008}, {3, 2056}}},
    {"softmax",
     "softmax",
     "f32",
     "threads=512 vector=4 hold=2 keep=1 cluster=2 shared=0 maxnreg=0",
     {{500, 8192}, {477, 5000}, {600, 12}}},
    {"softmax",
     "softmax",
     "bf16",
     "threads=256 vector=8 hold=2 keep=0 cluster=4 shared=4 maxnreg=0",
     {{450, 49152}, {400, 40008}, {1, 49155}}},
    {"softmax",
     "log_softmax",
     "bf16",
     "threads=1024 vector=8 hold=8 keep=0 cluster=2 shared=8 maxnreg=0",
     {{70, 262144}, {70, 200008}, {33, 131080}}},
    {"softmax",
     "softmax",
     "f16",
     "threads=1024 vector=8 hold=4 keep=0 cluster=1 shared=12 maxnreg=0",
     {{140, 131072}, {133, 100008}, {70, 140000}}},
    {"softmax",
     "softmax",
     "f16",
     "threads=512 vector=8 hold=8 keep=0 cluster=8 shared=0 maxnreg=0",
     {{70, 262144}, {70, 200008}, {70, 300000}}},
    {"softmax",
     "route_top1",
     "f16",
     "threads=256 vector=8 hold=1 keep=0 cluster=2 shared=0 maxnreg=0",
     {{1100, 4096}, {1000, 2072}, {7, 8}}},
    {"softmax",
     "softmax_masked",
     "f16",
     "threads=256 vector=8 hold=2 keep=0 cluster=2 shared=8 maxnreg=0",
     {{600, 40960}, {500, 33000}, {7, 16}}},
    {"normalisation",
     "rms_norm",
     "f16",
     "threads=512 vector=8 hold=4 keep=0 cluster=8 shared=4 maxnreg=0",
     {{100, 262144}, {100, 200000}, {200, 8}}},
    {"normalisation",
     "layer_norm",
     "f32",
     "threads=256 vector=4 hold=4 keep=0 cluster=2 shared=4 maxnreg=0",
     {{900, 16384}, {900, 15000}, {8, 516}}},
    {"normalisation",
     "add_rms_norm",
     "f16",
     "threads=512 vector=8 hold=4 keep=0 cluster=1 shared=8 maxnreg=0",
     {{300, 49152}, {300, 40000}, {8, 520}}},
};

static struct kg_op *read_op(struct kg_arena *arena, int number)
{
    char path[1024], *text;
    size_t length;
    struct kg_file *file;
    struct kg_op *op, *instance = NULL;
    struct kg_bindings bindings;
    snprintf(path, sizeof path, "%s/ops/%s.kg", KG_SOURCE_DIR, cases[number].file);
    CHECK_STATUS(kg_files_read(path, 1 << 20, &text, &length, &error), KG_OK, &error);
    CHECK_STATUS(kg_lang_parse(arena, path, text, length, &file, &error), KG_OK, &error);
    CHECK_STATUS(kg_lang_select(file, cases[number].op, &op, &error), KG_OK, &error);
    kg_lang_default_bindings(op, &bindings);
    const char *dtype = cases[number].dtype;
    bindings.dtypes[0] = kg_dtype_find(dtype, strlen(dtype));
    CHECK_STATUS(kg_lang_instantiate(arena, op, &bindings, &instance, &error), KG_OK, &error);
    free(text);
    return instance;
}

static enum kg_status run_built(void *user, const struct kg_problem *problem, void *const *tensors,
                                struct kg_error *detail)
{
    if (!problem->contiguous)
        return kg_error_set(detail, KG_ERROR_UNSUPPORTED, "not for strided tensors");
    return kg_built_run(user, problem, tensors, NULL, NULL, detail);
}

static void judge(const struct kg_op *op, int number)
{
    struct kg_problem *problem = NULL;
    struct kg_choice choice;
    struct kg_text words = {0};
    struct kg_built *built = NULL;
    struct kg_gate *gate = NULL;
    struct kg_verdict verdict = {0};
    int64_t shapes[SHAPES * KG_MAX_SIZES] = {0}; // rows and columns come first, params have values
    for (int i = 0; i < SHAPES; i++)
        for (int size = 0; size < 2; size++)
            shapes[i * op->size_count + size] = cases[number].shapes[i][size];
    const struct kg_policy policy = {.seed = 1, .shapes = shapes, .shape_count = SHAPES};
    CHECK_STATUS(kg_problem_make(op, shapes, NULL, &problem, &error), KG_OK, &error);
    kg_choice_guess(problem, &device->facts, &kg_target_cuda, &choice);
    kg_text_format(&words, "rowwise*%d: %s", choice.matches[0]->group.count, cases[number].config);
    bool known =
        kg_choice_read(problem, &device->facts, &kg_target_cuda, kg_text_string(&words), &choice);
    CHECK(known);
    if (known) {
        CHECK_STATUS(kg_built_make(device, problem, &choice, 60, &built, &error), KG_OK, &error);
        CHECK_STATUS(kg_gate_make(device, op, &policy, &gate, &error), KG_OK, &error);
    }
    const struct kg_subject subject = {.name = "rows", .user = built, .run = run_built};
    if (built && gate)
        CHECK_STATUS(kg_gate_judge(gate, &subject, &verdict, &error), KG_OK, &error);
    CHECK(verdict.passed);
    printf("%s %s %s: %d cases, %.2f of what is allowed\n", op->name, cases[number].dtype,
           cases[number].config, verdict.cases, verdict.worst_relative);
    if (!verdict.passed)
        fprintf(stderr, "%s %s: %s\n", op->name, kg_text_string(&words), verdict.reason);
    kg_gate_free(gate);
    kg_built_free(built);
    kg_problem_free(problem);
    kg_text_free(&words);
}

int main(void)
{
    char home[] = "/tmp/kernelgen-rows-XXXXXX";
    const char *name = getenv("KG_DEVICE"), *wanted = getenv("KG_OPS");
    CHECK(folder_make(home));
    enum kg_status status = kg_device_open(name ? name : "cuda:0", home, 0, &device, &error);
    if (status == KG_ERROR_MISSING) {
        printf("skipped: %s\n", error.text);
        folder_remove(home);
        return 77;
    }
    CHECK_STATUS(status, KG_OK, &error);
    for (int i = 0; device && i < (int)(sizeof cases / sizeof cases[0]); i++) {
        struct kg_arena arena = {0};
        if (!wanted || strncmp(cases[i].op, wanted, strlen(wanted)) == 0)
            judge(read_op(&arena, i), i);
        kg_arena_free(&arena);
    }
    kg_device_close(device);
    folder_remove(home);
    printf("%d checks, %d failed\n", test_checks, test_failures);
    return test_failures != 0;
}
