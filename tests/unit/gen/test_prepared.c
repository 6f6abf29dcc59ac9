// What a launch on a device of grids is made of: which function runs, for which sizes and
// addresses, and what its arguments are.

#include "asm/gpu.h"
#include "gen/prepared.h"
#include "support/sample_problem.h"
#include "test.h"

static struct kg_error error;

static const char bias_relu[] = "op f(x: f32[P, D], bias: f32[D]) -> (y: f32[P, D])\n"
                                "{ y[p, d] = relu(x[p, d] + bias[d]) }";
static const char norm[] = "op f(x: f32[P, D]) -> (s: f32[D], y: f32[P, D])\n"
                           "{ s[d] = sum(p) x[p, d]\n y[p, d] = x[p, d] / s[d] }";

// The last launches, as the device saw them.
static struct {
    int count;
    bool runs[KG_MAX_NESTS][KG_MAX_GRIDS]; // by launch and function
    void *pointers[KG_MAX_NESTS][8];       // the first arguments
    int64_t numbers[KG_MAX_NESTS][8];
    void *stream;
} seen;

static enum kg_status launch(const struct kg_kernel *kernel, const struct kg_launch *launch,
                             struct kg_error *failure)
{
    (void)kernel;
    (void)failure;
    for (int i = 0; i < launch->grid_count; i++) {
        const int64_t *blocks = launch->grids[i].blocks;
        seen.runs[seen.count][i] = blocks[0] * blocks[1] * blocks[2] > 0;
    }
    for (int i = 0; i < 6; i++) {
        seen.pointers[seen.count][i] = *(void **)launch->arguments[i];
        seen.numbers[seen.count][i] = *(int64_t *)launch->arguments[i];
    }
    seen.stream = launch->stream;
    seen.count++;
    return KG_OK;
}

static const struct kg_backend backend = {.name = "cuda", .runs_grids = true, .launch = launch};
static struct kg_device device = {.backend = &backend};
static char memory[1 << 16] __attribute__((aligned(256)));

static struct kg_prepared *prepare(struct made *made, struct kg_built *built)
{
    struct kg_prepared *prepared = NULL;
    CHECK_STATUS(made->status, KG_OK, &made->error);
    *built = (struct kg_built){.device = &device, .contiguous = made->problem->contiguous};
    kg_choice_guess(made->problem, &device.facts, KG_TARGET_CUDA, &built->choice);
    CHECK_STATUS(kg_prepared_make(built, made->problem, &prepared, &made->error), KG_OK,
                 &made->error);
    return prepared;
}

// Runs `bias_relu` with `x` so many bytes past an aligned address; the function that ran.
static int function_of(const char *sizes, size_t past)
{
    struct made made = make_strided(bias_relu, NULL, sizes, NULL);
    struct kg_built built;
    struct kg_prepared *prepared = prepare(&made, &built);
    void *tensors[] = {memory + past, memory + 1024, memory + 2048};
    memset(&seen, 0, sizeof seen);
    CHECK_STATUS(kg_prepared_run(prepared, tensors, NULL, &seen, &error), KG_OK, &error);
    CHECK(seen.count == 1 && seen.stream == &seen);
    int function = -1, running = 0;
    for (int i = 0; i < KG_MAX_GRIDS; i++) {
        function = seen.runs[0][i] ? i : function;
        running += seen.runs[0][i];
    }
    CHECK(running <= 1);
    CHECK(seen.pointers[0][0] == tensors[0] && seen.pointers[0][1] == tensors[1] &&
          seen.pointers[0][2] == tensors[2]);
    CHECK(seen.numbers[0][3] == made.problem->sizes[0]);
    CHECK(seen.numbers[0][4] == made.problem->sizes[1]);
    kg_prepared_free(prepared);
    unmake(&made);
    return function;
}

static void cases(void)
{
    const struct kg_gpu *gpu = kg_gpu_find("h100");
    snprintf(device.facts.isa, sizeof device.facts.isa, "sm_90a");
    device.facts.units = gpu->sms;
    device.facts.cache[3] = gpu->l2_bytes;
    device.facts.shared_bytes = gpu->sm->shared_opt_in;
    CHECK(function_of("P=65536 D=64", 0) == 2);    // whole vectors, counted in 32 bits
    CHECK(function_of("P=65536 D=64", 4) == 1);    // an address between two vectors
    CHECK(function_of("P=65536 D=64", 16) == 2);   // at the next one
    CHECK(function_of("P=67108864 D=64", 0) == 0); // too many for 32 bits
    CHECK(function_of("P=67108864 D=64", 4) == 1);
    CHECK(function_of("P=0 D=64", 0) == -1); // nothing to do
    CHECK(function_of("P=0 D=64", 4) == -1);
}

// Every kernel's own memory, and every local, lies in the workspace.
static void workspaces(void)
{
    struct made made = make_strided(norm, NULL, "P=512 D=64", NULL);
    struct kg_built built;
    struct kg_prepared *prepared = prepare(&made, &built);
    size_t bytes = kg_prepared_workspace(prepared);
    char *workspace = memory + 8192;
    void *tensors[] = {memory, memory + 1024, memory + 2048};
    CHECK(built.choice.partition.count >= 2 && bytes > 0 && bytes <= sizeof memory - 8192);
    memset(&seen, 0, sizeof seen);
    CHECK_STATUS(kg_prepared_run(prepared, tensors, workspace, NULL, &error), KG_OK, &error);
    CHECK(seen.count == built.choice.partition.count);
    for (int i = 0; i < seen.count; i++) {
        int inside = 0;
        for (int a = 0; a < 6; a++) {
            const char *at = seen.pointers[i][a];
            inside += at >= workspace && at <= workspace + bytes;
        }
        CHECK(inside >= 1);
        CHECK(seen.runs[i][0] || seen.runs[i][1] || seen.runs[i][2]);
    }
    kg_prepared_free(prepared);
    unmake(&made);
}

TEST_MAIN(cases, workspaces)
