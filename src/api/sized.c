// See sized.h.

#include "api/sized.h"

#include <string.h>

#define MOST_BYTES 65536 // of a struct; more is a size that nobody set

#define SIZED(type, last)                                                                          \
    {                                                                                              \
#type, sizeof(struct type), KG_FIRST_SIZE(type, last)                                      \
    }

const struct kg_sized kg_sized_options = SIZED(kg_options, wisdom),
                      kg_sized_tensor_info = SIZED(kg_tensor_info, bytes),
                      kg_sized_verify_result = SIZED(kg_verify_result, reason),
                      kg_sized_bench_result = SIZED(kg_bench_result, original_seconds),
                      kg_sized_build_options = SIZED(kg_build_options, override),
                      kg_sized_build_result = SIZED(kg_build_result, failed),
                      kg_sized_kernel_figures = SIZED(kg_kernel_figures, instructions),
                      kg_sized_assembly_launch = SIZED(kg_assembly_launch, warm),
                      kg_sized_prediction = SIZED(kg_prediction, bound_by),
                      kg_sized_measurement = SIZED(kg_measurement, spread),
                      kg_sized_sample_filter = SIZED(kg_sample_filter, family),
                      kg_sized_weights = SIZED(kg_weights, transposed);

static enum kg_status find_size(const struct kg_sized *sized, const void *theirs, size_t *size,
                                struct kg_error *error)
{
    memcpy(size, theirs, sizeof *size);
    if (*size == 0)
        *size = sized->first;
    if (*size >= sizeof *size && *size <= MOST_BYTES)
        return KG_OK;
    return kg_error_set(error, KG_ERROR_ARGUMENT,
                        "struct %s has a size of %zu: set it to sizeof(struct %s), or to 0 in a "
                        "struct that is zero",
                        sized->name, *size, sized->name);
}

static bool is_zero(const char *from, const char *to)
{
    while (from < to && *from == 0)
        from++;
    return from == to;
}

enum kg_status kg_api_take(const struct kg_sized *sized, const void *theirs, void *ours,
                           struct kg_error *error)
{
    size_t size;
    memset(ours, 0, sized->size);
    if (!theirs)
        return KG_OK;
    enum kg_status status = find_size(sized, theirs, &size, error);
    if (status)
        return status;
    size_t known = size < sized->size ? size : sized->size;
    if (!is_zero((const char *)theirs + known, (const char *)theirs + size))
        return kg_error_set(error, KG_ERROR_ARGUMENT,
                            "struct %s is one of a newer KernelGen, and sets what version %s does "
                            "not know",
                            sized->name, kg_version());
    memcpy(ours, theirs, known);
    memcpy(ours, &sized->size, sizeof sized->size);
    return KG_OK;
}

enum kg_status kg_api_clear(const struct kg_sized *sized, size_t kept, void *theirs,
                            struct kg_error *error)
{
    size_t size, from = sizeof size + kept;
    enum kg_status status = find_size(sized, theirs, &size, error);
    if (status == KG_OK && size > from)
        memset((char *)theirs + from, 0, size - from);
    return status;
}

void kg_api_fill(const struct kg_sized *sized, size_t kept, const void *ours, void *theirs)
{
    size_t size, from = sizeof size + kept;
    if (find_size(sized, theirs, &size, NULL) != KG_OK)
        return;
    if (size > sized->size)
        size = sized->size;
    if (size > from)
        memcpy((char *)theirs + from, (const char *)ours + from, size - from);
}

enum kg_status kg_api_check_pointers(struct kg_context *context, const char *function,
                                     const char *names, int count, const void *const *pointers)
{
    for (int i = 0; i < count; i++) {
        size_t length = strcspn(names, ",");
        if (!pointers[i])
            return kg_error_set(context ? &context->error : NULL, KG_ERROR_ARGUMENT,
                                "%s: %.*s is NULL", function, (int)length, names);
        names += length;
        names += strspn(names, ", ");
    }
    return KG_OK;
}
