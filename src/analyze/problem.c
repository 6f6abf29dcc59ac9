// Turns an instance and sizes into a problem: the steps of analysis in order, and the layout of
// tensors in memory.

#include "analyze/analyze.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BYTES ((int64_t)1 << 46) // of one tensor: 64 TiB

static int element_bits(const struct kg_tensor *tensor)
{
    bool is_local = tensor->role == KG_ROLE_LOCAL;
    return kg_dtypes[is_local ? tensor->memory : tensor->type.dtype].bits;
}

static enum kg_status bind_sizes(struct kg_problem *problem, const int64_t *sizes,
                                 struct kg_error *error)
{
    for (int i = 0; i < problem->op->size_count; i++) {
        const struct kg_size *size = problem->op->sizes[i];
        int64_t value = size->is_param ? size->value : sizes[i];
        if (!size->is_param && (value < 0 || value > (int64_t)1 << 48))
            return kg_error_set(error, KG_ERROR_SHAPE,
                                "size %s is %" PRId64 "; it must be between 0 and 2^48", size->name,
                                value);
        problem->sizes[i] = value;
    }
    return KG_OK;
}

static enum kg_status too_large(const struct kg_tensor *tensor, struct kg_error *error)
{
    return kg_error_set(error, KG_ERROR_SHAPE, "tensor %s would be larger than 2^46 bytes",
                        tensor->name);
}

// Row-major strides, as if every dimension of size 0 had one element.
static enum kg_status lay_out(const struct kg_problem *problem, const struct kg_tensor *tensor,
                              struct kg_layout *layout, struct kg_error *error)
{
    int64_t limit = MAX_BYTES * 8 / element_bits(tensor), room = 1;
    bool empty = false;
    for (int i = tensor->rank - 1; i >= 0; i--) {
        enum kg_status status =
            kg_lang_size_value(tensor->dims[i], problem->sizes, &layout->shape[i], error);
        if (status != KG_OK) {
            kg_error_prefix(error, "dimension %d of tensor %s", i, tensor->name);
            return status;
        }
        int64_t extent = layout->shape[i] > 0 ? layout->shape[i] : 1;
        layout->stride[i] = room;
        empty = empty || layout->shape[i] == 0;
        if (__builtin_mul_overflow(room, extent, &room) || room > limit)
            return too_large(tensor, error);
    }
    layout->elements = empty ? 0 : room;
    layout->contiguous = true;
    return KG_OK;
}

// No two elements of an output may have the same address: sorted by stride, each dimension must
// step over everything that the smaller ones span.
static bool overlaps(const struct kg_layout *layout, const int64_t *stride, int rank)
{
    bool done[KG_MAX_RANK] = {false};
    int64_t span = 1;
    for (int round = 0; round < rank; round++) {
        int least = -1;
        for (int i = 0; i < rank; i++)
            if (!done[i] && (least < 0 || stride[i] < stride[least]))
                least = i;
        done[least] = true;
        if (layout->shape[least] < 2)
            continue;
        if (stride[least] < span)
            return true;
        span += (layout->shape[least] - 1) * stride[least];
    }
    return false;
}

// Uses the caller's strides, unless they describe a contiguous tensor.
static enum kg_status apply_strides(const struct kg_tensor *tensor, const int64_t *stride,
                                    struct kg_layout *layout, int64_t *reach,
                                    struct kg_error *error)
{
    int64_t step, limit = MAX_BYTES * 8 / element_bits(tensor);
    bool contiguous = true;
    for (int i = 0; i < tensor->rank; i++)
        contiguous = contiguous && (layout->shape[i] < 2 || stride[i] == layout->stride[i]);
    *reach = layout->elements;
    if (layout->elements == 0 || contiguous)
        return KG_OK;
    *reach = 1;
    for (int i = 0; i < tensor->rank; i++) {
        if (layout->shape[i] < 2)
            continue;
        if (stride[i] < 0)
            return kg_error_set(error, KG_ERROR_UNSUPPORTED,
                                "stride %d of tensor %s is negative; pass a copy", i, tensor->name);
        if (__builtin_mul_overflow(layout->shape[i] - 1, stride[i], &step) ||
            __builtin_add_overflow(*reach, step, reach) || *reach > limit)
            return too_large(tensor, error);
    }
    if (tensor->role == KG_ROLE_OUTPUT && overlaps(layout, stride, tensor->rank))
        return kg_error_set(error, KG_ERROR_SHAPE,
                            "the strides of output %s put several elements in one place",
                            tensor->name);
    memcpy(layout->stride, stride, (size_t)tensor->rank * sizeof *stride);
    layout->contiguous = false;
    return KG_OK;
}

static enum kg_status make_layouts(struct kg_problem *problem,
                                   const int64_t (*strides)[KG_MAX_RANK], struct kg_error *error)
{
    problem->contiguous = true;
    for (int i = 0; i < problem->tensor_count; i++) {
        const struct kg_tensor *tensor = problem->tensors[i];
        struct kg_layout *layout = &problem->layouts[i];
        enum kg_status status = lay_out(problem, tensor, layout, error);
        int64_t reach = layout->elements;
        if (status == KG_OK && strides && tensor->role != KG_ROLE_LOCAL)
            status = apply_strides(tensor, strides[i], layout, &reach, error);
        if (status != KG_OK)
            return status;
        layout->bytes = ((size_t)reach * (size_t)element_bits(tensor) + 7) / 8;
        problem->contiguous = problem->contiguous && layout->contiguous;
    }
    return KG_OK;
}

// What depends on sizes; they and the nests are known.
static enum kg_status analyze(struct kg_problem *problem, const int64_t (*strides)[KG_MAX_RANK],
                              struct kg_error *error)
{
    enum kg_status status = make_layouts(problem, strides, error);
    if (status == KG_OK)
        status = kg_analyze_bounds(problem, error);
    for (int i = 0; i < problem->nest_count && status == KG_OK; i++)
        status = kg_analyze_extents(problem, problem->own_nests[i], error);
    if (status == KG_OK)
        kg_analyze_costs(problem, problem->own_nests);
    return status;
}

enum kg_status kg_problem_rebind(struct kg_problem *problem, const int64_t *sizes,
                                 struct kg_error *error)
{
    enum kg_status status = bind_sizes(problem, sizes, error);
    return status == KG_OK ? analyze(problem, NULL, error) : status;
}

enum kg_status kg_problem_make(const struct kg_op *instance, const int64_t *sizes,
                               const int64_t (*strides)[KG_MAX_RANK], struct kg_problem **problem,
                               struct kg_error *error)
{
    *problem = NULL;
    struct kg_problem *made = calloc(1, sizeof *made);
    if (!made)
        return kg_error_memory(error, "a problem");
    made->op = instance;
    made->cache = KG_NEW(&made->arena, _Atomic(struct kg_problem_cache *));
    made->own_nests = KG_NEW_ARRAY(&made->arena, KG_MAX_NESTS, struct kg_nest *);
    enum kg_status status = made->cache && made->own_nests ? bind_sizes(made, sizes, error)
                                                           : kg_error_memory(error, "a problem");
    kg_analyze_inside(made);
    if (status == KG_OK)
        status = kg_analyze_normalise(made, made->own_nests, error);
    if (status == KG_OK)
        status = analyze(made, strides, error);
    if (status != KG_OK) {
        kg_problem_free(made);
        return status;
    }
    *problem = made;
    return KG_OK;
}

void kg_problem_free(struct kg_problem *problem)
{
    if (!problem)
        return;
    struct kg_problem_cache *cache = problem->cache ? atomic_load(problem->cache) : NULL;
    if (cache)
        cache->free(cache);
    kg_arena_free(&problem->arena);
    free(problem);
}
