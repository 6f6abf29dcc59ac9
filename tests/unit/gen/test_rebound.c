// A problem that other sizes were bound to is the problem of these sizes: its layouts and costs,
// what is launched for it, and why sizes are refused. For the shipped definitions on a GPU: what
// the rule chooses, and every family alone. One problem is bound again and again, as plans do.

#include "asm/gpu.h"
#include "base/files.h"
#include "gen/arguments.h"
#include "gen/prepared.h"
#include "hopper_unit.h"
#include "lang/lang.h"
#include "test.h"

#include <dirent.h>
#include <stdlib.h>

#define SETS 24         // of sizes, for the choice of an instance
#define FEW 4           // for a family's kernel of one group
#define STEP (1L << 40) // between the tensors' addresses, which nobody reads

static struct kg_device_facts facts;
static struct kg_error error;
static unsigned seed = 1;
static int compared, refused, uncounted, alone;

// The kernels' arguments, and what is launched, as text.
static struct kg_kernel {
    int numbers, maps;
} kernels[KG_MAX_NESTS];
static struct kg_text *launched;

static enum kg_status launch(const struct kg_kernel *kernel, const struct kg_launch *launch,
                             struct kg_error *failure)
{
    (void)failure;
    for (int i = 0; i < launch->grid_count; i++) {
        const struct kg_grid *grid = &launch->grids[i];
        for (int k = 0; k < 3; k++)
            kg_text_format(launched, " %lld*%d", (long long)grid->blocks[k], grid->threads[k]);
        kg_text_format(launched, " shared %d cluster %d%s;", grid->shared, grid->cluster,
                       grid->early ? " early" : "");
    }
    for (int i = 0; i < kernel->numbers; i++)
        kg_text_format(launched, " %lld", (long long)*(int64_t *)launch->arguments[i]);
    for (int i = 0; i < kernel->maps; i++) {
        const uint64_t *words = launch->arguments[kernel->numbers + i];
        kg_text_format(launched, " map %llx", (unsigned long long)words[0]);
    }
    kg_text_add(launched, "\n");
    return KG_OK;
}

// A number that depends on all members of the map.
static enum kg_status encode(struct kg_device *device, const struct kg_map *map,
                             const void *address, struct kg_encoded_map *encoded,
                             struct kg_error *failure)
{
    (void)device;
    (void)failure;
    uint64_t *sum = &encoded->words[0];
    *sum = (uint64_t)(uintptr_t)address * 31 + (uint64_t)map->tensor;
    *sum = *sum * 31 + map->offset + (uint64_t)map->element * 7 + (uint64_t)map->swizzle;
    for (int i = 0; i < map->rank; i++)
        *sum = (*sum * 31 + (uint64_t)map->shape[i]) * 31 + (uint64_t)map->box[i] +
               (i ? 7 * (uint64_t)map->stride[i] : 0);
    return KG_OK;
}

static const struct kg_backend backend = {
    .name = "cuda", .runs_grids = true, .launch = launch, .encode = encode};
static struct kg_device device = {.backend = &backend};

static void add_figures(struct kg_text *text, const struct kg_problem *problem)
{
    kg_text_format(text, "%a %a %a %a %a class %d, %d\n", problem->operations,
                   problem->transcendentals, problem->read_bytes, problem->write_bytes,
                   problem->intensity, (int)problem->class, problem->contiguous);
    for (int i = 0; i < problem->tensor_count; i++) {
        const struct kg_layout *layout = &problem->layouts[i];
        kg_text_format(text, "%s %lld %zu:", problem->tensors[i]->name, (long long)layout->elements,
                       layout->bytes);
        for (int d = 0; d < problem->tensors[i]->rank; d++)
            kg_text_format(text, " %lld/%lld", (long long)layout->shape[d],
                           (long long)layout->stride[d]);
    }
    for (int i = 0; i < problem->nest_count; i++) {
        const struct kg_nest *nest = problem->nests[i];
        kg_text_format(text, "\nnest %a %a %a:", nest->operations, nest->transcendentals,
                       nest->iterations);
        for (int a = 0; a < nest->axis_count; a++)
            kg_text_format(text, " %lld", (long long)nest->extent[a]);
    }
    kg_text_add(text, "\n");
}

// What is launched with tensors so many bytes past an aligned address.
static void add_launches(struct kg_text *text, const struct kg_built *built,
                         const struct kg_prepared *like, const struct kg_problem *problem, int past)
{
    struct kg_prepared *prepared;
    char *tensors[KG_MAX_TENSORS];
    enum kg_status status = kg_prepared_make_like(like, built, problem, &prepared, &error);
    if (status == KG_ERROR_UNSUPPORTED) { // of kernels that count in 32 bits
        kg_text_format(text, "%s\n", error.text);
        kg_error_clear(&error);
        uncounted++;
        return;
    }
    CHECK_STATUS(status, KG_OK, &error);
    if (status != KG_OK)
        return;
    for (int i = 0; i < KG_MAX_TENSORS; i++)
        tensors[i] = (char *)(uintptr_t)((i + 2) * STEP + past);
    for (int i = 0; i < built->choice.count; i++) {
        const struct kg_match *match = kg_match_again(built->choice.matches[i], problem);
        struct kg_argument arguments[KG_MAX_ARGUMENTS];
        struct kg_grids grids = {0};
        match->family->grids(match, &built->choice.configs[i], &grids);
        kernels[i].numbers = kg_group_arguments(&match->group, arguments);
        kernels[i].maps = grids.map_count;
    }
    kg_text_format(text, "workspace %zu\n", kg_prepared_workspace(prepared));
    launched = text;
    CHECK_STATUS(kg_prepared_run(prepared, (void **)tensors, (void *)(uintptr_t)STEP, NULL, &error),
                 KG_OK, &error);
    kg_prepared_free(prepared);
}

// Everything of the problem, or why there is none.
static void describe(struct kg_text *text, const struct kg_built *built,
                     const struct kg_prepared *like, const struct kg_problem *problem,
                     enum kg_status status)
{
    if (status != KG_OK) {
        kg_text_format(text, "%d: %s", (int)status, error.text);
        kg_error_clear(&error);
        return;
    }
    add_figures(text, problem);
    add_launches(text, built, like, problem, 0);
    add_launches(text, built, like, problem, 4);
}

// `like`: of other sizes; NULL: there are none yet, and these become it.
static void compare(const struct kg_built *built, struct kg_prepared **like,
                    struct kg_problem *rebound, const int64_t *sizes)
{
    struct kg_text actual = {0}, expected = {0};
    struct kg_problem *fresh;
    enum kg_status status = kg_problem_make(rebound->op, sizes, NULL, &fresh, &error);
    describe(&expected, built, NULL, fresh, status);
    describe(&actual, built, *like, rebound, kg_problem_rebind(rebound, sizes, &error));
    if (status == KG_OK && !*like &&
        kg_prepared_make(built, rebound, like, &error) == KG_ERROR_UNSUPPORTED)
        kg_error_clear(&error);
    CHECK_TEXT(kg_text_string(&actual), kg_text_string(&expected));
    *(status == KG_OK ? &compared : &refused) += 1;
    kg_problem_free(fresh);
    kg_text_free(&actual);
    kg_text_free(&expected);
}

// Nothing, one, around tiles and vectors, large, and too large.
static int64_t draw_size(void)
{
    static const int64_t some[] = {0,   1,   2,   3,    4,    7,    8,       15,        16,
                                   31,  32,  63,  64,   65,   100,  127,     128,       256,
                                   257, 512, 640, 1000, 1024, 4096, 1 << 20, 1LL << 36, -1};
    return some[(unsigned)rand_r(&seed) % (sizeof some / sizeof some[0])];
}

static void compare_sets(struct kg_built *built, struct kg_problem *rebound, int sets)
{
    const struct kg_op *op = rebound->op;
    struct kg_prepared *like = NULL;
    int64_t sizes[KG_MAX_SIZES] = {0};
    for (int i = 0; i < built->choice.count; i++)
        built->kernels[i] = &kernels[i];
    for (int i = 0; i < sets; i++) {
        for (int s = 0; s < op->size_count; s++)
            sizes[s] = op->sizes[s]->is_param ? op->sizes[s]->value
                       : i % 3                ? 1 + rand_r(&seed) % 300
                                              : draw_size();
        compare(built, &like, rebound, sizes);
    }
    kg_prepared_free(like);
}

// Every family that takes the group, with its config by rule.
static void check_group(struct kg_built *built, const struct kg_group *group,
                        struct kg_problem *rebound)
{
    const struct kg_family *const *families = kg_target_cuda.families;
    for (int i = 0; families[i]; i++) {
        const struct kg_match *match = kg_match_find(families[i], group, &facts, NULL);
        if (!match)
            continue;
        built->choice = (struct kg_choice){.count = 1, .matches = {match}};
        match->family->guess(match, &built->choice.configs[0]);
        compare_sets(built, rebound, FEW);
        alone++;
    }
}

static void check_instance(const struct kg_op *op)
{
    struct kg_problem *problem = NULL, *rebound = NULL;
    struct kg_built built = {.device = &device, .contiguous = true};
    int64_t sizes[KG_MAX_SIZES] = {0};
    // The problem of a plan is as large as the last one of the goal.
    const struct kg_shapes *shapes = &op->goal.tune;
    for (int i = 0; i < op->size_count; i++)
        sizes[i] = op->sizes[i]->is_param ? op->sizes[i]->value : 4;
    for (int i = 0; shapes->row_count > 0 && i < shapes->size_count; i++)
        sizes[shapes->sizes[i]->id] =
            shapes->rows[(shapes->row_count - 1) * shapes->size_count + i];
    CHECK_STATUS(kg_problem_make(op, sizes, NULL, &problem, &error), KG_OK, &error);
    CHECK_STATUS(kg_problem_make(op, sizes, NULL, &rebound, &error), KG_OK, &error);
    if (problem && rebound) {
        kg_choice_guess(problem, &facts, &kg_target_cuda, &built.choice);
        compare_sets(&built, rebound, SETS);
        for (int first = 0; first < problem->nest_count; first++)
            for (int count = 1; count <= problem->nest_count - first; count++)
                check_group(&built, &(struct kg_group){problem, first, count}, rebound);
    }
    kg_problem_free(rebound);
    kg_problem_free(problem);
}

// With the first and the last of the dtypes.
static void check_op(const struct kg_op *generic)
{
    for (int last = 0; last < 2; last++) {
        struct kg_arena arena = {0};
        struct kg_bindings bindings;
        struct kg_op *op;
        kg_lang_default_bindings(generic, &bindings);
        for (int i = 0; i < generic->typevar_count; i++) {
            const struct kg_typevar *variable = generic->typevars[i];
            bindings.dtypes[i] = variable->allowed[last ? variable->count - 1 : 0];
        }
        if (kg_lang_instantiate(&arena, generic, &bindings, &op, &error) == KG_OK)
            check_instance(op);
        kg_error_clear(&error);
        kg_arena_free(&arena);
    }
}

static void check_file(const char *path)
{
    struct kg_arena arena = {0};
    struct kg_file *file = NULL;
    char *bytes;
    size_t length;
    CHECK_STATUS(kg_files_read(path, 1 << 20, &bytes, &length, &error), KG_OK, &error);
    CHECK_STATUS(kg_lang_parse(&arena, path, bytes, length, &file, &error), KG_OK, &error);
    for (int i = 0; file && i < file->op_count; i++)
        check_op(file->ops[i]);
    kg_arena_free(&arena);
    free(bytes);
}

static void shipped_definitions(void)
{
    const struct kg_gpu *gpu = kg_gpu_find("h100");
    facts = (struct kg_device_facts){.isa = "sm_90a",
                                     .units = gpu->sms,
                                     .clock = gpu->clock,
                                     .bandwidth = gpu->bandwidth,
                                     .cache = {0, gpu->sm->shared, gpu->l2_bytes, gpu->l2_bytes},
                                     .shared_bytes = gpu->sm->shared_opt_in,
                                     .latency = gpu->sm->latency * 1e-9,
                                     .unit = HOPPER_UNIT};
    device.facts = facts;
    DIR *folder = opendir(KG_SOURCE_DIR "/ops");
    CHECK(folder != NULL);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        size_t length = strlen(entry->d_name);
        char path[4096];
        if (length < 4 || strcmp(entry->d_name + length - 3, ".kg") != 0)
            continue;
        snprintf(path, sizeof path, "%s/ops/%s", KG_SOURCE_DIR, entry->d_name);
        check_file(path);
    }
    closedir(folder);
    printf("%d sets of sizes compared, %d refused, %d launches of kernels that count in 32 bits; "
           "%d kernels alone\n",
           compared, refused, uncounted, alone);
    CHECK(compared > 10000);
    CHECK(refused > 500 && uncounted > 100);
    CHECK(alone > 1000);
}

TEST_MAIN(shipped_definitions)
