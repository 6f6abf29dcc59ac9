// Kernels of a choice: compiled one after the other or side by side, loaded in their order, and all
// of them given back where one fails.

#include "gen/built.h"
#include "support/sample_problem.h"
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

// Two groups, a reduction and what is made of it.
static const char norm[] = "op f(x: f32[P, D]) -> (s: f32[D], y: f32[P, D])\n"
                           "{ s[d] = sum(p) x[p, d]\n y[p, d] = x[p, d] / s[d] }";

enum { PATIENCE = 5 }; // seconds for a second compiler to come

static struct {
    _Atomic int at_once, most, compiled;
    int loaded, unloaded;
    bool waits;          // for another compiler
    const char *failing; // families whose kernels are not compiled; NULL: none
    int most_loaded;     // more fail
} seen;

static bool is_of(const struct kg_source *source, const char *family)
{
    return strstr(source->text, family) != NULL;
}

static enum kg_status compile(struct kg_device *device, const struct kg_source *source,
                              double time_limit, struct kg_binary *binary, struct kg_error *error)
{
    (void)device;
    (void)time_limit;
    const char *family = is_of(source, "reduce:") ? "reduce" : "pointwise";
    int now = atomic_fetch_add(&seen.at_once, 1) + 1;
    time_t begun = time(NULL);
    while (seen.waits && atomic_load(&seen.at_once) < 2 && atomic_load(&seen.most) < 2 &&
           time(NULL) - begun < PATIENCE)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    now = atomic_load(&seen.at_once) > now ? atomic_load(&seen.at_once) : now;
    if (now > atomic_load(&seen.most))
        atomic_store(&seen.most, now);
    atomic_fetch_add(&seen.compiled, 1);
    *binary = (struct kg_binary){.seconds = 0.5, .from_cache = strcmp(family, "reduce") == 0};
    atomic_fetch_sub(&seen.at_once, 1);
    if (seen.failing && strstr(seen.failing, family))
        return kg_error_set(error, KG_ERROR_MISSING, "no %s", family);
    return KG_OK;
}

static enum kg_status load(struct kg_device *device, const struct kg_binary *binary,
                           const char *entry, struct kg_kernel **kernel, struct kg_error *error)
{
    (void)device;
    (void)binary;
    (void)entry;
    if (seen.loaded >= seen.most_loaded)
        return kg_error_set(error, KG_ERROR_FAULT, "no room");
    seen.loaded++;
    *kernel = (struct kg_kernel *)&seen;
    return KG_OK;
}

static void unload(struct kg_kernel *kernel)
{
    (void)kernel;
    seen.unloaded++;
}

static const struct kg_backend backend = {
    .name = "cuda", .runs_grids = true, .compile = compile, .load = load, .unload = unload};
static struct kg_device device = {.backend = &backend};

static enum kg_status build(bool soon, struct kg_built **built, struct kg_error *error)
{
    struct made made = make_strided(norm, NULL, "P=8 D=8", NULL);
    struct kg_choice choice;
    CHECK_STATUS(made.status, KG_OK, &made.error);
    kg_choice_guess(made.problem, &device.facts, &kg_target_cuda, &choice);
    CHECK(choice.count == 2);
    enum kg_status status = (soon ? kg_built_make_soon : kg_built_make)(&device, made.problem,
                                                                        &choice, 60, built, error);
    unmake(&made);
    return status;
}

static void expect(bool waits, const char *failing, int most_loaded)
{
    memset(&seen, 0, sizeof seen);
    seen.waits = waits;
    seen.failing = failing;
    seen.most_loaded = most_loaded;
}

static void compilers_work_side_by_side(void)
{
    struct kg_built *built = NULL;
    struct kg_error error;
    expect(true, NULL, 2);
    CHECK_STATUS(build(true, &built, &error), KG_OK, &error);
    CHECK(seen.most == 2 && seen.compiled == 2 && seen.loaded == 2);
    CHECK(built && built->compile_seconds == 1 && built->compile_work == 0.5);
    CHECK(built && memcmp(&built->hashes[0], &built->hashes[1], sizeof built->hashes[0]) != 0);
    kg_built_free(built);
    CHECK(seen.unloaded == 2);
}

static void or_one_after_the_other(void)
{
    struct kg_built *built = NULL;
    struct kg_error error;
    expect(false, NULL, 2);
    CHECK_STATUS(build(false, &built, &error), KG_OK, &error);
    CHECK(seen.most == 1 && seen.compiled == 2 && seen.loaded == 2);
    kg_built_free(built);
}

// Whoever is first to fail, the first group says why, and nothing is loaded.
static void first_error_counts(void)
{
    struct kg_built *built = NULL;
    struct kg_error error;
    expect(true, "reduce pointwise", 2);
    CHECK(build(true, &built, &error) == KG_ERROR_MISSING && built == NULL);
    CHECK_TEXT(error.text, "no reduce");
    CHECK(seen.compiled == 2 && seen.loaded == 0);
    expect(true, "pointwise", 2);
    CHECK(build(true, &built, NULL) == KG_ERROR_MISSING && built == NULL && seen.loaded == 0);
    expect(false, NULL, 1);
    CHECK(build(true, &built, &error) == KG_ERROR_FAULT && built == NULL);
    CHECK(seen.loaded == 1 && seen.unloaded == 1);
}

TEST_MAIN(compilers_work_side_by_side, or_one_after_the_other, first_error_counts)
