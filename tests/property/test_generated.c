// Random definitions, random choices of families and configs, random shapes: what the generated
// kernels compute is what the reference does, for contiguous tensors and for strided views.
//
// KG_SEED repeats a run; KG_ROUNDS makes it longer.

#include "gen/built.h"
#include "gen/grouping.h"
#include "property/random_op.h"
#include "support/case_turns.h"
#include "support/folder.h"
#include "support/sample_problem.h"
#include "test.h"
#include "verify/gate.h"
#include "verify/inputs.h"

#define ROUNDS 60
#define SHAPES 3 // of one kernel
#define POISON 0xA5

static char folder[] = "/tmp/kg-generated-XXXXXX";
static struct kg_device *device;
static uint64_t state;

static uint64_t draw(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return below ? (state >> 11) % below : 0;
}

// A choice that the rules would not make: any grouping that is listed, the one with every nest
// alone among them, and any valid config.
static void draw_choice(const struct kg_problem *problem, struct kg_choice *choice)
{
    struct kg_groupings groupings;
    CHECK(kg_groupings_list(problem, &device->facts, &kg_target_host, &groupings, NULL));
    int drawn = draw(2) ? groupings.chosen : (int)draw((uint64_t)groupings.count);
    *choice = groupings.options[drawn].choice;
    for (int i = 0; i < choice->count; i++) {
        const struct kg_match *match = choice->matches[i];
        struct kg_space space;
        match->family->space(match, &space);
        for (int tries = 0; tries < 10; tries++) {
            struct kg_config config =
                kg_space_config(&space, (int64_t)draw((uint64_t)kg_space_size(&space)));
            struct kg_text reason = {0};
            bool valid = match->family->valid(match, &config, &reason);
            kg_text_free(&reason);
            if (valid) {
                choice->configs[i] = config;
                break;
            }
        }
    }
}

// As kg_built_make does it, but with a quick compilation: speed is not looked at here.
static struct kg_built *build(const struct kg_problem *problem, const struct kg_choice *choice)
{
    struct kg_built *built = calloc(1, sizeof *built);
    struct kg_error error = {0};
    if (!built)
        return NULL;
    *built =
        (struct kg_built){.device = device, .choice = *choice, .contiguous = problem->contiguous};
    for (int i = 0; i < choice->count; i++) {
        struct kg_text text = {0};
        struct kg_binary binary = {0};
        bool emitted = kg_choice_source(choice, i, "kernel", &text);
        CHECK(emitted);
        struct kg_source source = {
            .text = kg_text_string(&text),
            .entry = "kernel",
            .options = "-O1 -Wall -Werror -Wno-unused-variable -Wno-maybe-uninitialized "
                       "-Wno-tautological-compare -Wno-unknown-warning-option"};
        enum kg_status status = device->backend->compile(device, &source, 60, &binary, &error);
        CHECK_STATUS(status, KG_OK, &error);
        if (status == KG_OK)
            CHECK_STATUS(
                device->backend->load(device, &binary, "kernel", &built->kernels[i], &error), KG_OK,
                &error);
        kg_binary_free(&binary);
        kg_text_free(&text);
        if (!built->kernels[i]) {
            kg_built_free(built);
            return NULL;
        }
    }
    return built;
}

// Strides with gaps, and now and then with dims in another order of memory.
static void draw_strides(const struct kg_problem *problem, int64_t (*strides)[KG_MAX_RANK])
{
    const struct kg_op *op = problem->op;
    for (int i = 0; i < op->input_count + op->output_count; i++) {
        bool packed = kg_dtypes[op->tensors[i]->type.dtype].bits < 8;
        const struct kg_layout *layout = &problem->layouts[i];
        int rank = op->tensors[i]->rank;
        bool turned = !packed && draw(3) == 0;
        int64_t stride = packed ? 1 : 1 + (int64_t)draw(2);
        for (int n = 0; n < rank; n++) {
            int dim = turned ? n : rank - 1 - n;
            strides[i][dim] = stride;
            stride *= layout->shape[dim] > 0 ? layout->shape[dim] : 1;
            stride += packed ? 0 : (int64_t)draw(3);
        }
    }
}

// Normal values half of the time, else another class that suits the op.
static enum kg_input_class draw_class(const struct kg_op *op)
{
    enum kg_input_class class = (enum kg_input_class)draw(2 * (uint64_t)KG_INPUT_CLASS_COUNT);
    return class < KG_INPUT_CLASS_COUNT && kg_inputs_class_applies(op, class) ? class
                                                                              : KG_INPUT_NORMAL;
}

// Runs the kernels on fresh inputs and judges the outputs. False when they are wrong.
static bool run(const struct kg_built *built, const struct kg_problem *problem,
                enum kg_input_class class, struct kg_verdict *verdict)
{
    const struct kg_op *op = problem->op;
    int count = op->input_count + op->output_count;
    struct kg_error error = {0};
    void *tensors[KG_MAX_TENSORS] = {0};
    for (int i = 0; i < count; i++) {
        size_t bytes = (problem->layouts[i].bytes + 64) / 64 * 64;
        tensors[i] = aligned_alloc(64, bytes);
        if (!tensors[i])
            return false;
        memset(tensors[i], POISON, bytes);
        if (i < op->input_count)
            kg_inputs_fill(problem, i, class, draw(0) + state, tensors[i]);
    }
    void *workspace = aligned_alloc(64, (kg_built_workspace(built, problem) / 64 + 1) * 64);
    CHECK_STATUS(kg_built_run(built, problem, tensors, workspace, NULL, &error), KG_OK, &error);
    CHECK_STATUS(kg_verify_outputs(problem, (const void *const *)tensors,
                                   (const void *const *)(tensors + op->input_count), verdict,
                                   &error),
                 KG_OK, &error);
    free(workspace);
    for (int i = 0; i < count; i++)
        free(tensors[i]);
    return verdict->passed;
}

static void report(const struct random_op *random, const struct kg_built *built,
                   const struct kg_problem *problem, enum kg_input_class class,
                   const struct kg_verdict *verdict)
{
    struct kg_text choice = {0};
    kg_choice_print(&built->choice, &choice);
    fprintf(stderr, "seed %llu, %s, %s, %s:", (unsigned long long)random->seed,
            kg_text_string(&choice), problem->contiguous ? "contiguous" : "strided",
            kg_input_class_names[class]);
    for (int i = 0; i < problem->op->size_count; i++)
        fprintf(stderr, " %s=%lld", problem->op->sizes[i]->name, (long long)problem->sizes[i]);
    fprintf(stderr, "\n%s\n%s\n", kg_text_string(&random->text), verdict->reason);
    kg_text_free(&choice);
}

// The same kernels for other sizes of the same instance.
static void check_shapes(const struct random_op *random, const struct kg_built *built,
                         const struct kg_problem *first, bool strided)
{
    int64_t sizes[KG_MAX_SIZES];
    memcpy(sizes, first->sizes, sizeof sizes);
    for (int shape = 0; shape < SHAPES; shape++) {
        struct kg_problem *plain = NULL, *problem = NULL;
        int64_t strides[KG_MAX_TENSORS][KG_MAX_RANK] = {{0}};
        struct kg_verdict verdict;
        for (int i = 0; i < first->op->size_count && shape > 0; i++)
            if (!first->op->sizes[i]->is_param)
                sizes[i] = draw(8) ? 1 + (int64_t)draw(9) : (int64_t)draw(70);
        if (kg_problem_make(first->op, sizes, NULL, &plain, NULL) != KG_OK)
            continue; // these sizes do not suit the definition
        draw_strides(plain, strides);
        if (strided)
            kg_problem_make(first->op, sizes, strides, &problem, NULL);
        const struct kg_problem *used = strided ? problem : plain;
        // A view may happen to be contiguous; that is another kernel's case.
        enum kg_input_class class = draw_class(first->op);
        if (used && used->contiguous == built->contiguous && !run(built, used, class, &verdict)) {
            CHECK(!"right results");
            report(random, built, used, class, &verdict);
        }
        kg_problem_free(problem);
        kg_problem_free(plain);
    }
}

static void check_op(const struct random_op *random)
{
    struct made made = make(kg_text_string(&random->text), kg_text_string(&random->sizes));
    if (made.status != KG_OK || random->iterations > 2000000) {
        unmake(&made);
        return;
    }
    int64_t strides[KG_MAX_TENSORS][KG_MAX_RANK] = {{0}};
    struct kg_problem *view = NULL;
    bool strided = draw(3) == 0;
    draw_strides(made.problem, strides);
    if (strided)
        kg_problem_make(made.op, made.problem->sizes, strides, &view, NULL);
    const struct kg_problem *problem = view ? view : made.problem;
    struct kg_choice choice;
    draw_choice(problem, &choice);
    struct kg_built *built = build(problem, &choice);
    if (built)
        check_shapes(random, built, problem, !problem->contiguous);
    else
        fprintf(stderr, "seed %llu\n%s\n", (unsigned long long)random->seed,
                kg_text_string(&random->text));
    kg_built_free(built);
    kg_problem_free(view);
    unmake(&made);
}

static void test_generated(void)
{
    const char *rounds = getenv("KG_ROUNDS");
    int count = rounds ? (int)strtol(rounds, NULL, 10) : ROUNDS;
    uint64_t seed = random_seed(20260101);
    struct kg_error error = {0};
    if (!folder_make(folder) || kg_device_open("host", folder, 2, &device, &error) != KG_OK) {
        fprintf(stderr, "no host device: %s\n", error.text);
        exit(1);
    }
    for (int i = 0; i < count; i++) {
        struct random_op random = {0};
        if (!has_turn(i, 3))
            continue;
        state = (seed + (uint64_t)i) * 0x9E3779B97F4A7C15u | 1;
        random_op_make(&random, seed + (uint64_t)i, RANDOM_STABLE);
        check_op(&random);
        random_op_free(&random);
    }
    kg_device_close(device);
    folder_remove(folder);
}

TEST_MAIN(test_generated)
