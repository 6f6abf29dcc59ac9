// The rowwise family for CUDA: how the rules hold long rows, what is launched then, and where
// exponentials are narrow. Results are judged where there is a GPU (tests/device); where there is
// NVRTC, the sources are compiled.

#include "gen/built.h"
#include "gen/shared/axes.h"
#include "hopper_unit.h"
#include "support/folder.h"
#include "support/sample_problem.h"
#include "test.h"

static const struct kg_device_facts facts = {
    .isa = "sm_90a", .units = 132, .shared_bytes = 232448, .unit = HOPPER_UNIT};

static const char softmax[] = "op r(x: T[P, D]) -> (y: T[P, D]) where T in f16 f32\n"
                              "{ m[p] = max(d) x[p, d]\n"
                              "e[p, d] = exp(x[p, d] - m[p])\n"
                              "y[p, d] = e[p, d] / (sum(d) e[p, d]) }";
static const char add_norm[] = "op r(x: T[P, D], z: T[P, D]) -> (y: T[P, D]) where T in f16 f32\n"
                               "{ s[p, d] = x[p, d] + z[p, d]\n"
                               "y[p, d] = s[p, d] / (sum(d) s[p, d] * s[p, d]) }";
static const char norm[] = "op r(x: T[P, D], g: T[D]) -> (y: T[P, D]) where T in f16 f32\n"
                           "{ y[p, d] = g[d] * x[p, d] / (sum(d) x[p, d] * x[p, d]) }";
static const char place[] = "op r(x: T[P, D]) -> (y: i32[P]) where T in f16 f32\n"
                            "{ y[p] = argmax(d) x[p, d] }";

// Why the config is not valid, or ""; and what it launches.
static void check_config(const struct made *made, const char *config, const char *why,
                         struct kg_grids *grids)
{
    struct kg_choice choice;
    struct kg_space space;
    struct kg_text reason = {0};
    *grids = (struct kg_grids){0};
    CHECK_STATUS(made->status, KG_OK, &made->error);
    if (made->status != KG_OK)
        return;
    kg_choice_guess(made->problem, &facts, &kg_target_cuda, &choice);
    const struct kg_match *match = choice.matches[0];
    CHECK_TEXT(match->family->name, "rowwise");
    match->family->space(match, &space);
    CHECK(kg_config_read(&space, config, &choice.configs[0]));
    match->family->valid(match, &choice.configs[0], &reason);
    CHECK_TEXT(kg_text_string(&reason), why);
    match->family->grids(match, &choice.configs[0], grids);
    kg_text_free(&reason);
}

static void check(const char *text, const char *sizes, const char *config, const char *why,
                  struct kg_grids *grids)
{
    struct made made = make(text, sizes);
    check_config(&made, config, why, grids);
    unmake(&made);
}

#define ONE_BLOCK "threads=1024 vector=8 hold=8 keep=0 cluster=1 "
static const char block[] = ONE_BLOCK "shared=8 maxnreg=0";

static void refusals(void)
{
    struct kg_grids grids;
    check(softmax, "P=4096 D=131073 T=f16",
          "threads=1024 vector=1 hold=8 keep=0 cluster=1 shared=12 maxnreg=0",
          "vectors of 4 to 16 bytes are held in shared memory", &grids);
    check(softmax, "P=4096 D=131073 T=f16", block,
          "vectors of 4 to 16 bytes are held in shared memory", &grids);
    check(softmax, "P=4096 D=131080 T=f16", block, "the row is too long to be held", &grids);
    check(softmax, "P=4096 D=98304 T=f16", block, "holds more than a thread has of the row",
          &grids);
    check(softmax, "P=4096 D=65536 T=f16",
          "threads=1024 vector=8 hold=4 keep=1 cluster=1 shared=4 maxnreg=128",
          "a block would need more registers than there are", &grids);
    check(softmax, "P=4096 D=12288 T=f16",
          "threads=256 vector=8 hold=2 keep=1 cluster=1 shared=4 maxnreg=0",
          "what is computed has no room in shared memory", &grids);
    check(softmax, "P=4096 D=16384 T=f16",
          "threads=128 vector=8 hold=8 keep=0 cluster=1 shared=8 maxnreg=0",
          "blocks that hold rows in shared memory have more threads", &grids);
    check(add_norm, "P=4096 D=98304 T=f16",
          "threads=1024 vector=8 hold=4 keep=0 cluster=1 shared=8 maxnreg=0",
          "shared memory has no room for what a block holds", &grids);
    // What does not lie in one piece otherwise.
    static const int64_t strides[][KG_MAX_RANK] = {{131077, 1}, {131072, 1}};
    struct made made = make_strided(softmax, NULL, "P=4096 D=131072 T=f16", strides);
    check_config(&made, block, "vectors of 4 to 16 bytes are held in shared memory", &grids);
    unmake(&made);
}

#define STAGED "threads=256 vector=8 hold=4 keep=0 cluster=8 shared=0 staged="

// What all rows share, copied once for two of them.
static void staged(void)
{
    struct kg_grids grids;
    check(norm, "P=4095 D=65536 T=f16", STAGED "2 maxnreg=0", "", &grids);
    CHECK(grids.grids[0].blocks[0] == 2048 * 8 && grids.grids[0].shared == 4 * 256 * 16);
    CHECK(grids.unaligned[2].blocks[0] == 4095 * 8 && grids.unaligned[2].shared == 0);
    check(norm, "P=4095 D=65536 T=f16", STAGED "1 maxnreg=0", "", &grids);
    CHECK(grids.grids[0].blocks[0] == 4095 * 8 && grids.grids[0].shared == 4 * 256 * 16);
    check(norm, "P=1 D=65536 T=f16", STAGED "2 maxnreg=0",
          "several rows are worked on at once if there are, without places", &grids);
    check(norm, "P=4 D=65537 T=f16", STAGED "1 maxnreg=0",
          "what rows share is copied in pieces of 16 bytes, side by side", &grids);
    check(norm, "P=4 D=65536 T=f16",
          "threads=256 vector=4 hold=8 keep=0 cluster=8 shared=0 staged=1 maxnreg=0",
          "what rows share is copied in pieces of 16 bytes, side by side", &grids);
    check(norm, "P=4 D=8192 T=f16",
          "threads=256 vector=8 hold=4 keep=0 cluster=1 shared=0 staged=1 maxnreg=0",
          "what rows share is copied for clusters that hold rows in registers", &grids);
    check(norm, "P=4 D=65544 T=f16", STAGED "1 maxnreg=0", "the row is too long to be held",
          &grids);
    check(norm, "P=4 D=262144 T=f16",
          "threads=1024 vector=8 hold=4 keep=0 cluster=8 shared=0 staged=2 maxnreg=40",
          "holds more than a thread has registers", &grids);
}

static void launches(void)
{
    struct kg_grids grids;
    check(softmax, "P=4096 D=131072 T=f16", block, "", &grids);
    CHECK(grids.count == 3 && grids.alignment == 16);
    CHECK(grids.grids[0].blocks[0] == 4096 && grids.grids[0].shared == 131072);
    CHECK(grids.unaligned[0].blocks[0] == 0 && grids.unaligned[2].blocks[0] == 4096);
    CHECK(grids.unaligned[2].shared == 0);
    check(softmax, "P=1000 D=262144 T=f16",
          "threads=1024 vector=8 hold=4 keep=0 cluster=2 shared=12 maxnreg=0", "", &grids);
    CHECK(grids.grids[0].blocks[0] == 2000 && grids.grids[0].cluster == 2);
    CHECK(grids.grids[0].shared == 196608);
    check(add_norm, "P=4096 D=65536 T=f16",
          "threads=1024 vector=8 hold=4 keep=0 cluster=1 shared=4 maxnreg=0", "", &grids);
    CHECK(grids.grids[0].shared == 131072);
}

// Blocks of a cluster, and vectors in registers and in shared memory, as the rules have them.
static void rules(void)
{
    static const struct {
        const char *text, *sizes;
        int64_t threads, hold, cluster, shared;
    } cases[] = {
        {softmax, "P=4096 D=32768 T=f16", 512, 8, 1, 0},
        {softmax, "P=4096 D=65536 T=f16", 512, 8, 1, 8},
        {softmax, "P=4096 D=49152 T=f16", 512, 8, 1, 4},
        {softmax, "P=4096 D=131072 T=f16", 512, 8, 2, 8},
        {softmax, "P=4096 D=262144 T=f16", 512, 8, 4, 8},
        {softmax, "P=4096 D=300000 T=f16", 512, 8, 4, 12},
        {softmax, "P=4096 D=1048576 T=f16", 1024, 8, 8, 8},
        {softmax, "P=4096 D=2097152 T=f16", 1024, 8, 8, 0},
        {softmax, "P=8 D=131072 T=f16", 512, 4, 8, 0},
        {softmax, "P=4096 D=131072 T=f32", 512, 8, 4, 8},
        {softmax, "P=4096 D=131071 T=f16", 1024, 8, 8, 0},
        {norm, "P=4096 D=32768 T=f16", 512, 8, 1, 0},
        {norm, "P=4096 D=65536 T=f16", 1024, 8, 1, 0},
        {norm, "P=4096 D=131072 T=f16", 512, 8, 4, 0},
        {norm, "P=4096 D=262144 T=f16", 512, 8, 8, 0},
    };
    struct kg_text reason = {0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct kg_choice choice;
        struct made made = make(cases[i].text, cases[i].sizes);
        kg_choice_guess(made.problem, &facts, &kg_target_cuda, &choice);
        const int64_t *value = choice.configs[0].value;
        CHECK_TEXT(choice.matches[0]->family->name, "rowwise");
        CHECK(value[0] == cases[i].threads && value[2] == cases[i].hold);
        CHECK(value[4] == cases[i].cluster && value[5] == cases[i].shared);
        if (value[4] != cases[i].cluster || value[5] != cases[i].shared)
            fprintf(stderr, "%s: %d threads hold %d, cluster %d, shared %d\n", cases[i].sizes,
                    (int)value[0], (int)value[2], (int)value[4], (int)value[5]);
        CHECK(choice.matches[0]->family->valid(choice.matches[0], &choice.configs[0], &reason));
        unmake(&made);
    }
    kg_text_free(&reason);
}

// What a kernel launches for rows that it was not made for.
static void other_rows(void)
{
    struct kg_choice choice;
    struct kg_grids grids;
    struct kg_text words = {0};
    struct made tuned = make(softmax, "P=4096 D=131072 T=f16");
    kg_choice_guess(tuned.problem, &facts, &kg_target_cuda, &choice);
    kg_text_format(&words, "rowwise*%d: %s", choice.matches[0]->group.count, block);
    CHECK(kg_choice_read(tuned.problem, &facts, &kg_target_cuda, kg_text_string(&words), &choice));
    static const struct {
        const char *sizes;
        int function;
        int64_t blocks, shared;
    } cases[] = {
        {"P=3 D=64 T=f16", 0, 3, 0},
        {"P=0 D=64 T=f16", 0, 0, 0},
        {"P=300 D=70000 T=f16", 0, 300, 131072},
        {"P=300 D=140000 T=f16", 1, 300, 0},
        {"P=300 D=7 T=f16", 2, 300, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct made made = make(softmax, cases[i].sizes);
        const struct kg_match *match = kg_match_again(choice.matches[0], made.problem);
        match->family->grids(match, &choice.configs[0], &grids);
        const struct kg_grid *grid = &grids.grids[cases[i].function];
        CHECK(grid->blocks[0] == cases[i].blocks && grid->shared == cases[i].shared);
        if (grid->blocks[0] != cases[i].blocks || grid->shared != cases[i].shared)
            fprintf(stderr, "%s: %d blocks\n", cases[i].sizes, (int)grid->blocks[0]);
        unmake(&made);
    }
    kg_text_free(&words);
    unmake(&tuned);
}

// Where a few units of 2^-18 are nothing to what is stored.
static void narrow(void)
{
#define EXPONENTIALS "{ m[p] = max(d) x[p, d]\ne[p, d] = exp(x[p, d] - m[p])\n"
    static const struct {
        const char *text;
        bool narrow;
    } cases[] = {
        {"op r(x: f16[P, D]) -> (y: f16[P, D])" EXPONENTIALS
         "y[p, d] = e[p, d] / (sum(d) e[p, d]) }",
         true},
        {"op r(x: f32[P, D]) -> (y: bf16[P, D])" EXPONENTIALS
         "y[p, d] = where(x[p, d] > 1, 2 * e[p, d], 0) / (1 + (sum(d) e[p, d])) }",
         true},
        {"op r(x: f16[P, D]) -> (y: f32[P, D])" EXPONENTIALS
         "y[p, d] = e[p, d] / (sum(d) e[p, d]) }",
         false},
        {"op r(x: f16[P, D]) -> (y: f16[P], e: f32[P, D])" EXPONENTIALS "y[p] = sum(d) e[p, d] }",
         false},
        {"op r(x: f16[P, D]) -> (y: f16[P, D])" EXPONENTIALS
         "y[p, d] = e[p, d] - (mean(d) e[p, d]) }",
         false},
        {"op r(x: f16[P, D]) -> (y: f16[P])" EXPONENTIALS "y[p] = sum(d) x[p, d] * e[p, d] }",
         false},
        {"op r(x: f16[P, D]) -> (y: f16[P])" EXPONENTIALS "y[p] = log(sum(d) e[p, d]) }", false},
        {"op r(x: f16[P, D]) -> (y: f16[P, D])" EXPONENTIALS
         "y[p, d] = where(e[p, d] > 0.5, e[p, d] / (sum(d) e[p, d]), 0) }",
         false},
        {"op r(x: f16[P, D]) -> (y: f16[P, D])"
         "{ y[p, d] = exp(x[p, d]) / (sum(d) exp(x[p, d])) }",
         false},
        {"op r(x: f16[P, D]) -> (y: i32[P])" EXPONENTIALS "y[p] = argmax(d) e[p, d] }", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct made made = make(cases[i].text, "P=8 D=1024");
        CHECK_STATUS(made.status, KG_OK, &made.error);
        if (made.status == KG_OK) {
            const struct kg_group group = {made.problem, 0, made.problem->nest_count};
            bool is_narrow = kg_group_narrow(&group) >> KG_FN_EXP & 1;
            CHECK(is_narrow == cases[i].narrow);
            if (is_narrow != cases[i].narrow)
                fprintf(stderr, "%s\n", cases[i].text);
        }
        unmake(&made);
    }
}

// What is stored as f16 or bf16 at once, or after products.
static void narrow_functions(void)
{
    static const struct {
        const char *text;
        enum kg_function function;
        bool narrow;
    } cases[] = {
        {"op r(x: f16[P, D]) -> (y: f16[P, D]) { y[p, d] = gelu(x[p, d]) }", KG_FN_GELU, true},
        {"op r(x: f16[P, D]) -> (y: f32[P, D]) { y[p, d] = gelu(x[p, d]) }", KG_FN_GELU, false},
        {"op r(x: f32[P, D]) -> (y: bf16[P, D]) { y[p, d] = 3 * gelu_tanh(x[p, d]) }",
         KG_FN_GELU_TANH, true},
        {"op r(x: f16[P, D]) -> (y: f16[P, D]) { y[p, d] = silu(x[p, d]) * x[p, d] }", KG_FN_SILU,
         true},
        {"op r(x: f16[P, D]) -> (y: f16[P, D]) { y[p, d] = gelu(x[p, d]) * x[p, d] }", KG_FN_GELU,
         false},
        {"op r(x: f16[P, D]) -> (y: f16[P, D]) { y[p, d] = silu(x[p, d]) + x[p, d] }", KG_FN_SILU,
         false},
        {"op r(x: f16[P, D]) -> (y: f16[P, D]) { y[p, d] = sigmoid(x[p, d]) + 1 }", KG_FN_SIGMOID,
         true},
        {"op r(x: f16[P, D]) -> (y: f16[P, D]) { y[p, d] = gelu(silu(x[p, d])) }", KG_FN_SILU,
         false},
        {"op r(x: f16[P, D]) -> (y: f16[P, D]) { y[p, d] = gelu(silu(x[p, d])) }", KG_FN_GELU,
         true},
        {"op r(x: f64[P, D]) -> (y: f16[P, D]) { y[p, d] = gelu(x[p, d]) }", KG_FN_GELU, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct made made = make(cases[i].text, "P=8 D=1024");
        CHECK_STATUS(made.status, KG_OK, &made.error);
        if (made.status == KG_OK) {
            const struct kg_group group = {made.problem, 0, made.problem->nest_count};
            bool is_narrow = kg_group_narrow(&group) >> cases[i].function & 1;
            CHECK(is_narrow == cases[i].narrow);
            if (is_narrow != cases[i].narrow)
                fprintf(stderr, "%s\n", cases[i].text);
        }
        unmake(&made);
    }
}

static void compile(struct kg_device *device, const char *text, const char *sizes,
                    const char *config, bool stored)
{
    struct kg_choice choice;
    struct kg_text words = {0}, source = {0};
    struct kg_binary binary = {0};
    struct kg_error error;
    struct made made = make(text, sizes);
    kg_choice_guess(made.problem, &facts, &kg_target_cuda, &choice);
    kg_text_format(&words, "rowwise*%d: %s", choice.matches[0]->group.count, config);
    const char *chosen = kg_text_string(&words);
    bool known = kg_choice_read(made.problem, &facts, &kg_target_cuda, chosen, &choice);
    CHECK(known);
    if (!known)
        fprintf(stderr, "%s\n", chosen);
    CHECK(kg_choice_source(&choice, 0, "kernel", &source));
    CHECK((strstr(kg_text_string(&source), "kg_copy_vec(&slots0") != NULL) == stored);
    const struct kg_source job = {.text = source.data, .entry = "kernel", .options = ""};
    enum kg_status status = device->backend->compile(device, &job, 60, &binary, &error);
    if (status != KG_ERROR_MISSING)
        CHECK_STATUS(status, KG_OK, &error);
    kg_binary_free(&binary);
    kg_text_free(&words);
    kg_text_free(&source);
    unmake(&made);
}

static void sources(void)
{
    char home[] = "/tmp/kernelgen-rows-XXXXXX";
    struct kg_device *device;
    struct kg_error error;
    CHECK(folder_make(home));
    CHECK_STATUS(kg_device_open("sm_90a", home, 1, &device, &error), KG_OK, &error);
    compile(device, softmax, "P=4096 D=131072 T=f16", block, true);
    compile(device, add_norm, "P=4096 D=262144 T=f32",
            "threads=512 vector=4 hold=4 keep=0 cluster=8 shared=12 maxnreg=0", true);
    compile(device, softmax, "P=4096 D=262144 T=f16",
            "threads=512 vector=8 hold=8 keep=1 cluster=8 shared=0 maxnreg=0", false);
    compile(device, place, "P=4096 D=65536 T=f16",
            "threads=256 vector=8 hold=4 keep=0 cluster=8 shared=0 maxnreg=0", false);
    kg_device_close(device);
    folder_remove(home);
}

// What all rows share is loaded for several vectors at once, as far as 32 bytes of registers go.
static void batches(void)
{
    static const char two[] = "op r(x: T[P, D], g: T[D], b: T[D]) -> (y: T[P, D]) "
                              "where T in f16 f32\n"
                              "{ y[p, d] = b[d] + g[d] * x[p, d] / (sum(d) x[p, d] * x[p, d]) }";
    static const struct {
        const char *text, *config, *loop; // NULL: no batches
    } cases[] = {
        {norm, "threads=512 vector=8 hold=8 keep=0 cluster=1 shared=0 maxnreg=0", "begin += 2)"},
        {norm, "threads=512 vector=4 hold=16 keep=0 cluster=1 shared=0 maxnreg=0", "begin += 4)"},
        {norm, "threads=512 vector=16 hold=4 keep=0 cluster=1 shared=0 maxnreg=0", NULL},
        {two, "threads=512 vector=8 hold=8 keep=0 cluster=1 shared=0 maxnreg=0", NULL},
        {two, "threads=512 vector=4 hold=16 keep=0 cluster=1 shared=0 maxnreg=0", "begin += 2)"},
        {softmax, "threads=512 vector=8 hold=8 keep=0 cluster=1 shared=0 maxnreg=0", NULL},
    };
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        struct made made = make(cases[i].text, "P=8192 D=32768 T=f16");
        struct kg_text source = {0};
        struct kg_choice choice;
        struct kg_space space;
        CHECK_STATUS(made.status, KG_OK, &made.error);
        kg_choice_guess(made.problem, &facts, &kg_target_cuda, &choice);
        const struct kg_match *match = choice.matches[0];
        match->family->space(match, &space);
        CHECK(kg_config_read(&space, cases[i].config, &choice.configs[0]));
        CHECK(kg_choice_source(&choice, 0, "entry", &source));
        CHECK((strstr(kg_text_string(&source), "batch1[") != NULL) == (cases[i].loop != NULL));
        CHECK(!cases[i].loop || strstr(kg_text_string(&source), cases[i].loop));
        kg_text_free(&source);
        unmake(&made);
    }
}

TEST_MAIN(refusals, staged, launches, rules, other_rows, narrow, narrow_functions, batches, sources)
