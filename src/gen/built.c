// A choice compiled, loaded and run: one kernel per group, intermediates between them in a
// workspace.

#include "gen/built.h"

#include "gen/prepared.h"
#include "gen/standalone.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define ENTRY "kg_kernel"

enum { MAX_COMPILERS = 8 };

static enum kg_status compile_group(struct kg_built *built, int group, double time_limit,
                                    struct kg_error *error)
{
    struct kg_device *device = built->device;
    struct kg_text text = {0};
    if (!kg_choice_source(&built->choice, group, ENTRY, &text)) {
        kg_text_free(&text);
        return kg_error_memory(error, "the source of a kernel");
    }
    built->hashes[group] = kg_hash_bytes(text.data, text.length);
    struct kg_source source = {.text = text.data, .entry = ENTRY, .options = ""};
    enum kg_status status =
        device->backend->compile(device, &source, time_limit, &built->binaries[group], error);
    kg_text_free(&text);
    return status;
}

// Compiles a choice's groups in parallel: each thread takes the next one that is left.
struct compilers {
    struct kg_built *built;
    double time_limit;
    _Atomic int next;
    struct {
        enum kg_status status;
        struct kg_error error;
    } groups[KG_MAX_NESTS];
};

static void *compile_some(void *argument)
{
    struct compilers *compilers = argument;
    struct kg_built *built = compilers->built;
    int group;
    while ((group = atomic_fetch_add(&compilers->next, 1)) < built->choice.count)
        compilers->groups[group].status =
            compile_group(built, group, compilers->time_limit, &compilers->groups[group].error);
    return NULL;
}

// With up to `limit` compilers at once. Reports the error of the first group that failed.
static enum kg_status compile_groups(struct kg_built *built, int limit, double time_limit,
                                     struct kg_error *error)
{
    pthread_t threads[MAX_COMPILERS];
    int count = built->choice.count, started = 0;
    struct compilers *compilers = calloc(1, sizeof *compilers);
    if (!compilers)
        return kg_error_memory(error, "compilers");
    compilers->built = built;
    compilers->time_limit = time_limit;
    while (started < limit - 1 && started < count - 1 &&
           pthread_create(&threads[started], NULL, compile_some, compilers) == 0)
        started++;
    compile_some(compilers);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    enum kg_status status = KG_OK;
    for (int i = 0; i < count && status == KG_OK; i++) {
        status = compilers->groups[i].status;
        if (status != KG_OK && error)
            *error = compilers->groups[i].error;
    }
    free(compilers);
    return status;
}

static enum kg_status load_groups(struct kg_built *built, struct kg_error *error)
{
    enum kg_status status = KG_OK;
    struct kg_device *device = built->device;
    for (int i = 0; i < built->choice.count && status == KG_OK; i++) {
        const struct kg_binary *binary = &built->binaries[i];
        built->compile_seconds += binary->seconds;
        built->compile_work += binary->from_cache ? 0 : binary->seconds;
        status = device->backend->load(device, binary, ENTRY, &built->kernels[i], error);
    }
    return status;
}

static struct kg_built *new_built(struct kg_device *device, const struct kg_problem *problem,
                                  const struct kg_choice *choice, struct kg_error *error)
{
    struct kg_built *built = calloc(1, sizeof *built);
    if (!built ||
        (choice->count == 0 && problem->nest_count > 0)) { // no memory when the choice was made
        kg_error_memory(error, "a kernel");
        free(built);
        return NULL;
    }
    built->device = device;
    built->choice = *choice;
    built->contiguous = problem->contiguous;
    return built;
}

static enum kg_status make(struct kg_device *device, const struct kg_problem *problem,
                           const struct kg_choice *choice, int compilers, double time_limit,
                           struct kg_built **out, struct kg_error *error)
{
    *out = NULL;
    struct kg_built *built = new_built(device, problem, choice, error);
    if (!built)
        return KG_ERROR_MEMORY;
    enum kg_status status = compile_groups(built, compilers, time_limit, error);
    if (status == KG_OK)
        status = load_groups(built, error);
    if (status != KG_OK) {
        kg_built_free(built);
        return status;
    }
    *out = built;
    return KG_OK;
}

enum kg_status kg_built_make(struct kg_device *device, const struct kg_problem *problem,
                             const struct kg_choice *choice, double time_limit,
                             struct kg_built **built, struct kg_error *error)
{
    return make(device, problem, choice, 1, time_limit, built, error);
}

enum kg_status kg_built_make_soon(struct kg_device *device, const struct kg_problem *problem,
                                  const struct kg_choice *choice, double time_limit,
                                  struct kg_built **built, struct kg_error *error)
{
    return make(device, problem, choice, MAX_COMPILERS, time_limit, built, error);
}

enum kg_status kg_built_bare(struct kg_device *device, const struct kg_problem *problem,
                             const struct kg_choice *choice, struct kg_built **out,
                             struct kg_error *error)
{
    *out = new_built(device, problem, choice, error);
    return *out ? KG_OK : KG_ERROR_MEMORY;
}

enum kg_status kg_built_adopt(struct kg_device *device, const struct kg_problem *problem,
                              const struct kg_choice *choice, const struct kg_binary *binary,
                              struct kg_built **out, struct kg_error *error)
{
    *out = NULL;
    struct kg_built *built = new_built(device, problem, choice, error);
    if (!built)
        return KG_ERROR_MEMORY;
    built->adopted = built;
    for (int i = 0; i < choice->count; i++) {
        char entry[256];
        kg_choice_entry(choice, i, entry, sizeof entry);
        enum kg_status status =
            device->backend->load(device, binary, entry, &built->kernels[i], error);
        if (status != KG_OK) {
            kg_built_free(built);
            return status;
        }
    }
    *out = built;
    return KG_OK;
}

void kg_built_free(struct kg_built *built)
{
    if (!built)
        return;
    for (int i = 0; i < built->choice.count; i++) {
        if (built->kernels[i])
            built->device->backend->unload(built->kernels[i]);
        kg_binary_free(&built->binaries[i]);
    }
    free(built);
}

size_t kg_built_workspace(const struct kg_built *built, const struct kg_problem *problem)
{
    struct kg_prepared *prepared;
    if (kg_prepared_make(built, problem, &prepared, NULL) != KG_OK)
        return 0;
    size_t bytes = kg_prepared_workspace(prepared);
    kg_prepared_free(prepared);
    return bytes;
}

enum kg_status kg_built_run(const struct kg_built *built, const struct kg_problem *problem,
                            void *const *tensors, void *workspace, void *stream,
                            struct kg_error *error)
{
    struct kg_prepared *prepared;
    enum kg_status status = kg_prepared_make(built, problem, &prepared, error);
    if (status == KG_OK)
        status = kg_prepared_run(prepared, tensors, workspace, stream, error);
    kg_prepared_free(prepared);
    return status;
}
