// Every form of kernel in cuda_form_table.h through the accuracy gate on a GPU, whatever the rules
// would choose. Without a GPU the test only checks that families still take the choices, and counts
// as skipped: unit/gen/test_cuda_*.c compile such kernels. With KG_FORM it compiles them as well.
//
// KG_FORM=NAME tries one form, KG_FORM='NAME*' several, KG_FORM=list prints their names, for
// tests/gpu/sanitize.

#include "cuda_form_table.h"

#include "gen/prepared.h"
#include "support/folder.h"
#include "support/sample_problem.h"
#include "test.h"
#include "tune/test_rig.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

static char folder[] = "/tmp/kg-test-forms-XXXXXX";
static struct kg_error error;
static struct kg_device *device;

// Judges in this process: a fork would start the sanitizer once more.
static void judge(const struct form *form, const struct made *made, struct kg_built *built)
{
    struct kg_gate *gate;
    struct kg_verdict verdict = {0};
    struct kg_policy policy = {
        .seed = 7, .shapes = made->problem->sizes, .shape_count = 1, .strided = false};
    CHECK_STATUS(kg_gate_make(device, made->op, &policy, &gate, &error), KG_OK, &error);
    if (!gate)
        return;
    struct kg_subject subject = kg_test_rig_subject(built);
    CHECK_STATUS(kg_gate_judge(gate, &subject, &verdict, &error), KG_OK, &error);
    CHECK(verdict.passed);
    printf("%-24s %s, %d cases %s\n", form->name, verdict.passed ? "passed" : "REFUSED",
           verdict.cases, verdict.reason);
    kg_gate_free(gate);
}

// The tensors of a problem, and its kernels' workspace.
struct memory {
    void *tensors[KG_MAX_TENSORS];
    void *workspace;
};

static bool make_memory(const struct kg_problem *problem, const struct kg_prepared *prepared,
                        struct memory *memory)
{
    const struct kg_backend *backend = device->backend;
    size_t workspace = prepared ? kg_prepared_workspace(prepared) : 0;
    bool fine = prepared != NULL;
    if (fine && workspace > 0)
        fine = backend->allocate(device, workspace, &memory->workspace, &error) == KG_OK &&
               backend->fill(device, memory->workspace, 0xa5, workspace, &error) == KG_OK;
    for (int id = 0; id < problem->op->input_count + problem->op->output_count && fine; id++)
        fine = backend->allocate(device, problem->layouts[id].bytes, &memory->tensors[id],
                                 &error) == KG_OK;
    CHECK(fine);
    return fine;
}

static void free_memory(const struct kg_problem *problem, struct memory *memory)
{
    for (int id = 0; id < problem->op->input_count + problem->op->output_count; id++)
        if (memory->tensors[id])
            device->backend->release(device, memory->tensors[id]);
    if (memory->workspace)
        device->backend->release(device, memory->workspace);
}

// 16-bit inputs: f16 or bf16 of either sign and similar magnitude.
static void fill_input(void *tensor, size_t bytes, uint64_t seed)
{
    uint16_t *values = malloc(bytes);
    CHECK(values != NULL);
    for (size_t i = 0; values && i < bytes / sizeof *values; i++) {
        seed = seed * 6364136223846793005 + 1442695040888963407;
        values[i] = (uint16_t)((seed >> 48 & 0x83ff) | 0x3800);
    }
    if (values)
        CHECK_STATUS(device->backend->copy(device, tensor, values, bytes, &error), KG_OK, &error);
    free(values);
}

static uint64_t digest_outputs(const struct kg_problem *problem, const struct memory *memory)
{
    uint64_t sum = 0;
    for (int id = problem->op->input_count;
         id < problem->op->input_count + problem->op->output_count; id++)
        CHECK_STATUS(device->backend->digest(device, memory->tensors[id],
                                             problem->layouts[id].bytes, &sum, &error),
                     KG_OK, &error);
    return sum;
}

// Launches a kernel several times in the same, never cleared memory, and checks that the outputs
// are bit-identical: stream-K waits for flags in that memory. Returns the outputs' digest.
static uint64_t launch_often(const struct kg_problem *problem, const struct kg_built *built)
{
    enum { LAUNCHES = 5 };
    const struct kg_backend *backend = device->backend;
    struct memory memory = {{NULL}, NULL};
    struct kg_prepared *prepared;
    uint64_t first = 0;
    CHECK_STATUS(kg_prepared_make(built, problem, &prepared, &error), KG_OK, &error);
    int inputs = problem->op->input_count, count = inputs + problem->op->output_count;
    const bool fine = make_memory(problem, prepared, &memory);
    for (int id = 0; id < inputs && fine; id++)
        fill_input(memory.tensors[id], problem->layouts[id].bytes, (uint64_t)id);
    for (int launch = 0; launch < LAUNCHES && fine; launch++) {
        for (int id = inputs; id < count; id++)
            backend->fill(device, memory.tensors[id], (unsigned char)(0x11 * launch),
                          problem->layouts[id].bytes, &error);
        CHECK_STATUS(kg_prepared_run(prepared, memory.tensors, memory.workspace, NULL, &error),
                     KG_OK, &error);
        uint64_t sum = digest_outputs(problem, &memory);
        first = launch == 0 ? sum : first;
        CHECK(sum == first);
    }
    free_memory(problem, &memory);
    kg_prepared_free(prepared);
    return first;
}

static double from_bf16(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

static uint16_t to_bf16(double value)
{
    const float narrow = (float)value; // exact here
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// Fills a tensor with 16-bit values by turns, or a tensor of less with one byte.
static void fill_by_turns(const struct kg_problem *problem, struct memory *memory, int id,
                          const uint16_t *values, int count)
{
    size_t bytes = problem->layouts[id].bytes;
    uint16_t *filled = malloc(bytes);
    CHECK(filled != NULL);
    for (size_t i = 0; filled && i < bytes / sizeof *filled; i++)
        filled[i] = values[i % (size_t)count];
    if (filled)
        CHECK_STATUS(device->backend->copy(device, memory->tensors[id], filled, bytes, &error),
                     KG_OK, &error);
    free(filled);
}

// Products whose scales are less than one instruction takes, as it takes them, more, and 0: the
// integers are all 1, so that weights are scales, and the outputs are known.
static void try_extreme_scales(const struct form *form, const struct kg_problem *problem,
                               const struct kg_built *built)
{
    enum { X, W, S, Y, KINDS = 4 };
    static const uint16_t large = 0x5d80; // 2^60
    static const uint16_t scales[KINDS] = {0x067f, 0x3e7f, 0x457f, 0};
    const struct kg_layout *layout = &problem->layouts[Y];
    struct memory memory = {{NULL}, NULL};
    struct kg_prepared *prepared;
    CHECK_STATUS(kg_prepared_make(built, problem, &prepared, &error), KG_OK, &error);
    uint16_t *found = malloc(layout->bytes);
    bool fine = make_memory(problem, prepared, &memory) && found;
    CHECK(fine && layout->shape[1] % KINDS == 0);
    if (fine) {
        fill_by_turns(problem, &memory, X, &large, 1);
        fill_by_turns(problem, &memory, S, scales, KINDS);
        CHECK_STATUS(device->backend->fill(device, memory.tensors[W],
                                           strstr(form->op, "i4") ? 0x11 : 0x99,
                                           problem->layouts[W].bytes, &error),
                     KG_OK, &error);
        CHECK_STATUS(kg_prepared_run(prepared, memory.tensors, memory.workspace, NULL, &error),
                     KG_OK, &error);
        CHECK_STATUS(device->backend->copy(device, found, memory.tensors[Y], layout->bytes, &error),
                     KG_OK, &error);
        int64_t wrong = 0;
        for (int64_t i = 0; i < layout->shape[0] * layout->shape[1]; i++) {
            double wanted = (double)problem->layouts[X].shape[1] * from_bf16(large) *
                            from_bf16(scales[i % layout->shape[1] % KINDS]);
            wrong += from_bf16(found[i]) != from_bf16(to_bf16(wanted));
        }
        printf("%-24s extreme scales, %lld wrong\n", form->name, (long long)wrong);
        CHECK(wrong == 0);
    }
    free(found);
    free_memory(problem, &memory);
    kg_prepared_free(prepared);
}

// Checks that stream-K gives the same bits as whole tiles, if blocks continue each other's sums.
static void compare_with_whole_tiles(const struct form *form, const struct kg_problem *problem,
                                     const struct kg_built *built)
{
    char words[256];
    struct kg_choice choice;
    struct kg_built *whole;
    const char *at = strstr(form->choice, "split_k=0") + strlen("split_k=");
    snprintf(words, sizeof words, "%.*s1%s", (int)(at - form->choice), form->choice, at + 1);
    CHECK(kg_choice_read(problem, &device->facts, &kg_target_cuda, words, &choice));
    CHECK_STATUS(kg_built_make(device, problem, &choice, 120, &whole, &error), KG_OK, &error);
    if (whole)
        CHECK(launch_often(problem, built) == launch_often(problem, whole));
    kg_built_free(whole);
}

static void compile_and_judge(const struct form *form, const struct made *made,
                              const struct kg_choice *choice)
{
    struct kg_built *built;
    enum kg_status status = kg_built_make(device, made->problem, choice, 120, &built, &error);
    CHECK_STATUS(status, KG_OK, &error);
    if (!status)
        judge(form, made, built);
    if (!status && strstr(form->name, "rounded once") && !strstr(form->name, "odd"))
        try_extreme_scales(form, made->problem, built);
    if (!status && strstr(form->choice, "split_k=0")) {
        if (strncmp(form->choice, "contract/wgmma", strlen("contract/wgmma")) == 0)
            compare_with_whole_tiles(form, made->problem, built);
        else
            launch_often(made->problem, built);
    }
    kg_built_free(built);
}

// Compiles for a device that is not here.
static void compile_only(const struct form *form, const struct kg_choice *choice)
{
    for (int i = 0; i < choice->count; i++) {
        struct kg_text text = {0};
        struct kg_binary binary = {0};
        CHECK(kg_choice_source(choice, i, "kernel", &text));
        struct kg_source source = {.text = kg_text_string(&text), .entry = "kernel", .options = ""};
        CHECK_STATUS(device->backend->compile(device, &source, 120, &binary, &error), KG_OK,
                     &error);
        printf("%-24s %zu bytes\n", form->name, binary.length);
        kg_binary_free(&binary);
        kg_text_free(&text);
    }
}

static void try_form(const struct form *form)
{
    struct made made = make(form->op, form->sizes);
    struct kg_choice choice;
    CHECK_STATUS(made.status, KG_OK, &made.error);
    bool fits = made.problem && kg_choice_read(made.problem, &device->facts, &kg_target_cuda,
                                               form->choice, &choice);
    bool clusters = strncmp(device->facts.isa, "sm_9", 4) == 0 || strlen(device->facts.isa) > 6;
    CHECK(fits || (strstr(form->choice, "cluster=4") && !clusters));
    if (!fits)
        printf("%-24s '%s' is not valid on %s\n", form->name, form->choice, device->facts.isa);
    else if (!device->is_described)
        compile_and_judge(form, &made, &choice);
    else if (getenv("KG_FORM"))
        compile_only(form, &choice);
    unmake(&made);
}

static void try_forms(const char *wanted)
{
    for (int i = 0; i < FORM_COUNT; i++)
        if (!wanted || fnmatch(wanted, forms[i].name, 0) == 0)
            try_form(&forms[i]);
}

int main(void)
{
    const char *wanted = getenv("KG_FORM");
    if (wanted && strcmp(wanted, "list") == 0) {
        for (int i = 0; i < FORM_COUNT; i++)
            printf("%s\n", forms[i].name);
        return 0;
    }
    const char *shared = getenv("KG_CACHE"); // of compiled objects, to share between runs
    if (!folder_make(folder))
        return 1;
    const char *cache = shared ? shared : folder;
    setvbuf(stdout, NULL, _IOLBF, 0);
    bool here = kg_device_open("cuda:0", cache, 0, &device, &error) == KG_OK;
    if (!here) {
        printf("skipped: %s\n", error.text);
        CHECK_STATUS(kg_device_open("sm_90a", cache, 0, &device, &error), KG_OK, &error);
    }
    bool able = device && (!here || device->compiler[0]);
    if (able)
        try_forms(wanted);
    kg_device_close(device);
    folder_remove(folder);
    printf("%d checks, %d failed\n", test_checks, test_failures);
    return test_failures ? 1 : here && able ? 0 : 77;
}
