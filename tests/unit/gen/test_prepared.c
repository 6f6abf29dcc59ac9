// What a launch on a device of grids is made of: which function runs, for which sizes and
// addresses, and what its arguments are.

#include "asm/gpu.h"
#include "gen/prepared.h"
#include "hopper_unit.h"
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
    kg_choice_guess(made->problem, &device.facts, &kg_target_cuda, &built->choice);
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
    device.facts.unit = (struct kg_unit_limits)HOPPER_UNIT;
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
    CHECK(built.choice.count >= 2 && bytes > 0 && bytes <= sizeof memory - 8192);
    memset(&seen, 0, sizeof seen);
    CHECK_STATUS(kg_prepared_run(prepared, tensors, workspace, NULL, &error), KG_OK, &error);
    CHECK(seen.count == built.choice.count);
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

// A kernel with maps: of x and of its own memory, and one of nothing.
static struct kg_map mapped(int tensor, size_t offset, int64_t shape)
{
    return (struct kg_map){
        .tensor = tensor, .offset = offset, .element = 4, .rank = 1, .shape = {shape}, .box = {32}};
}

static const void *match_mapped(const struct kg_group *group, const struct kg_device_facts *facts,
                                struct kg_arena *arena, struct kg_text *reason)
{
    (void)facts, (void)arena, (void)reason;
    return group;
}

static void grids_with_maps(const struct kg_match *match, const struct kg_config *config,
                            struct kg_grids *grids)
{
    (void)match, (void)config;
    *grids = (struct kg_grids){.count = 1, .alignment = 16, .scratch = 4096, .map_count = 3};
    grids->grids[0] = grids->unaligned[0] =
        (struct kg_grid){.blocks = {1, 1, 1}, .threads = {1, 1, 1}};
    grids->maps[0] = mapped(0, 256, 64);
    grids->unaligned_maps[0] = mapped(KG_MAP_SCRATCH, 0, 64);
    grids->maps[1] = grids->unaligned_maps[1] = mapped(KG_MAP_SCRATCH, 512, 64);
    grids->maps[2] = grids->unaligned_maps[2] = mapped(1, 0, 0);
}

static const struct kg_family family_with_maps = {
    .name = "mapped", .match = match_mapped, .grids = grids_with_maps};

static struct {
    int encoded; // maps
    int outcome;
    bool has_good_maps; // of the last launch
    void *tensor;       // whose map is expected first
    void *scratch;
} mapping;

static enum kg_status encode(struct kg_device *on, const struct kg_map *map, const void *address,
                             struct kg_encoded_map *encoded, struct kg_error *failure)
{
    CHECK(on->backend && map->rank == 1 && map->shape[0] == 64 && map->element == 4);
    mapping.encoded++;
    encoded->words[0] = (uintptr_t)address;
    if (mapping.outcome != KG_OK)
        return kg_error_set(failure, (enum kg_status)mapping.outcome, "no such stride");
    return KG_OK;
}

// Three tensors and two sizes and the scratch come first.
static enum kg_status launch_mapped(const struct kg_kernel *kernel, const struct kg_launch *launch,
                                    struct kg_error *failure)
{
    (void)kernel, (void)failure;
    const struct kg_encoded_map *maps[3];
    mapping.has_good_maps = *(void **)launch->arguments[5] == mapping.scratch;
    for (int i = 0; i < 3; i++) {
        maps[i] = launch->arguments[6 + i];
        mapping.has_good_maps &= (uintptr_t)maps[i] % 64 == 0;
    }
    mapping.has_good_maps &= maps[0]->words[0] == (uintptr_t)mapping.tensor;
    mapping.has_good_maps &= maps[1]->words[0] == (uintptr_t)mapping.scratch + 512;
    mapping.has_good_maps &= maps[2]->words[0] == 0;
    return KG_OK;
}

// How many maps are encoded for a call with x so many bytes past an aligned address.
static int encoded_for(const struct kg_prepared *prepared, size_t past, char *workspace)
{
    void *tensors[] = {memory + past, memory + 1024, memory + 2048};
    mapping.tensor = past % 16 == 0 ? memory + past + 256 : workspace;
    mapping.scratch = workspace;
    mapping.encoded = 0;
    mapping.has_good_maps = false;
    CHECK_STATUS(kg_prepared_run(prepared, tensors, workspace, NULL, &error), KG_OK, &error);
    CHECK(mapping.has_good_maps);
    return mapping.encoded;
}

static void tensor_maps(void)
{
    const struct kg_backend with_maps = {
        .name = "cuda", .runs_grids = true, .launch = launch_mapped, .encode = encode};
    struct made made = make_strided(bias_relu, NULL, "P=1 D=64", NULL);
    struct kg_built built;
    struct kg_prepared *prepared = prepare(&made, &built);
    kg_prepared_free(prepared);
    struct kg_device mapper = {.backend = &with_maps, .facts = device.facts};
    built.device = &mapper;
    built.choice.matches[0] =
        kg_match_find(&family_with_maps, &built.choice.matches[0]->group, &device.facts, NULL);
    CHECK_STATUS(kg_prepared_make(&built, made.problem, &prepared, &error), KG_OK, &error);
    char *workspace = memory + 8192, *other = memory + 16384;
    CHECK(encoded_for(prepared, 0, workspace) == 2);
    CHECK(encoded_for(prepared, 0, workspace) == 0);
    CHECK(encoded_for(prepared, 8192 - 256, workspace) == 2); // mapped where the workspace begins
    CHECK(encoded_for(prepared, 16, workspace) == 2);         // another tensor
    CHECK(encoded_for(prepared, 0, other) == 2);              // another workspace
    CHECK(encoded_for(prepared, 4, workspace) == 2); // the maps for unaligned tensors, there too
    CHECK(encoded_for(prepared, 8, workspace) == 0); // which do not ask where x is
    CHECK(encoded_for(prepared, 0, other) == 0);
    for (size_t i = 2; i < 32; i++) // more than are kept
        CHECK(encoded_for(prepared, i * 16, workspace) == 2);
    CHECK(encoded_for(prepared, 0, workspace) == 0);
    CHECK(encoded_for(prepared, 31 * 16, workspace) == 2);
    void *tensors[] = {memory + 528, memory + 1024, memory + 2048};
    mapping.outcome = KG_ERROR_ARGUMENT;
    CHECK_STATUS(kg_prepared_run(prepared, tensors, workspace, NULL, &error), KG_ERROR_ARGUMENT,
                 &error);
    CHECK_TEXT(error.text, "tensor map 0, of x: no such stride");
    mapping.outcome = KG_OK;
    kg_prepared_free(prepared);
    built.device = &device; // which has none
    CHECK_STATUS(kg_prepared_make(&built, made.problem, &prepared, &error), KG_OK, &error);
    CHECK_STATUS(kg_prepared_run(prepared, tensors, workspace, NULL, &error), KG_ERROR_UNSUPPORTED,
                 &error);
    CHECK_TEXT(error.text, "cuda has no tensor maps");
    kg_prepared_free(prepared);
    unmake(&made);
}

TEST_MAIN(cases, workspaces, tensor_maps)
