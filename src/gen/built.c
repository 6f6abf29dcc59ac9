// A choice compiled, loaded and run: one kernel per group, intermediates between them in a
// workspace.

#include "gen/built.h"

#include <stdlib.h>
#include <string.h>

#define ENTRY "kg_kernel"
#define ALIGNMENT ((size_t)64)

static enum kg_status build_group(struct kg_built *built, int group, double time_limit,
                                  struct kg_error *error)
{
    struct kg_device *device = built->device;
    enum kg_target target =
        strcmp(device->backend->name, "cuda") == 0 ? KG_TARGET_CUDA : KG_TARGET_HOST;
    struct kg_text text = {0};
    if (!kg_choice_source(&built->choice, group, &device->facts, target, ENTRY, &text)) {
        kg_text_free(&text);
        return kg_error_memory(error, "the source of a kernel");
    }
    built->hashes[group] = kg_hash_bytes(text.data, text.length);
    struct kg_source source = {.text = text.data, .entry = ENTRY, .options = ""};
    struct kg_binary binary = {0};
    enum kg_status status = device->backend->compile(device, &source, time_limit, &binary, error);
    kg_text_free(&text);
    if (status != KG_OK)
        return status;
    built->compile_seconds += binary.seconds;
    status = device->backend->load(device, &binary, ENTRY, &built->kernels[group], error);
    kg_binary_free(&binary);
    return status;
}

enum kg_status kg_built_make(struct kg_device *device, const struct kg_problem *problem,
                             const struct kg_choice *choice, double time_limit,
                             struct kg_built **out, struct kg_error *error)
{
    *out = NULL;
    struct kg_built *built = calloc(1, sizeof *built);
    if (!built)
        return kg_error_memory(error, "a kernel");
    built->device = device;
    built->choice = *choice;
    built->contiguous = problem->contiguous;
    for (int i = 0; i < choice->partition.count; i++) {
        enum kg_status status = build_group(built, i, time_limit, error);
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
    for (int i = 0; i < built->choice.partition.count; i++)
        if (built->kernels[i])
            built->device->backend->unload(built->kernels[i]);
    free(built);
}

// Places every intermediate that lives in memory; gives the bytes used. `places` may be NULL.
static size_t place_locals(const struct kg_built *built, const struct kg_problem *problem,
                           size_t *places)
{
    size_t used = 0;
    for (int id = 0; id < problem->tensor_count; id++) {
        if (problem->tensors[id]->role != KG_ROLE_LOCAL ||
            !kg_gen_in_memory(&built->choice.partition, id))
            continue;
        if (places)
            places[id] = used;
        used += (problem->layouts[id].bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    return used;
}

size_t kg_built_workspace(const struct kg_built *built, const struct kg_problem *problem)
{
    return place_locals(built, problem, NULL);
}

enum kg_status kg_built_run(const struct kg_built *built, const struct kg_problem *problem,
                            void *const *tensors, void *workspace, void *stream,
                            struct kg_error *error)
{
    enum { MOST = KG_MAX_NESTS + KG_MAX_TENSORS };
    if (problem->contiguous != built->contiguous)
        return kg_error_set(error, KG_ERROR_SHAPE, "a kernel for %s tensors was given %s ones",
                            built->contiguous ? "contiguous" : "strided",
                            problem->contiguous ? "contiguous" : "strided");
    int outer = problem->op->input_count + problem->op->output_count;
    void *pointers[MOST] = {0};
    size_t places[MOST] = {0};
    memcpy(pointers, tensors, (size_t)outer * sizeof *tensors);
    if (place_locals(built, problem, places) > 0)
        for (int id = outer; id < problem->tensor_count; id++)
            pointers[id] = (char *)workspace + places[id];
    int64_t strides[MOST * KG_MAX_RANK];
    if (!problem->contiguous)
        for (int id = 0; id < problem->tensor_count; id++)
            memcpy(strides + id * KG_MAX_RANK, problem->layouts[id].stride,
                   sizeof problem->layouts[id].stride);
    struct kg_launch launch = {
        .tensors = pointers,
        .sizes = problem->sizes,
        .strides = problem->contiguous ? NULL : strides,
        .stream = stream,
    };
    for (int i = 0; i < built->choice.partition.count; i++) {
        enum kg_status status = built->device->backend->launch(built->kernels[i], &launch, error);
        if (status != KG_OK)
            return status;
    }
    return KG_OK;
}
