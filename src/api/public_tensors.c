// What ops and problems say of their tensors.

#include "api/sized.h"

#include <string.h>

static enum kg_status check_tensor(struct kg_context *context, const struct kg_op *op, int index,
                                   struct kg_tensor_info *info)
{
    int count = op->input_count + op->output_count;
    enum kg_status status = kg_api_clear(&kg_sized_tensor_info, 0, info, &context->error);
    if (status == KG_OK && (index < 0 || index >= count))
        status =
            kg_error_set(&context->error, KG_ERROR_ARGUMENT,
                         "op %s has %d tensors, and none of number %d", op->name, count, index);
    return status;
}

enum kg_status kg_op_tensor(const struct kg_op *op, int index, struct kg_tensor_info *info)
{
    struct kg_context *context = op ? ((struct kg_op_owner *)op->owner)->context : NULL;
    enum kg_status status = KG_API_NEEDS(context, op, info);
    if (status == KG_OK)
        status = check_tensor(context, op, index, info);
    if (status != KG_OK)
        return status;
    const struct kg_tensor *tensor = op->tensors[index];
    const struct kg_tensor_info ours = {
        .name = tensor->name,
        .is_output = tensor->role == KG_ROLE_OUTPUT,
        .dtype = tensor->type.variable ? KG_DTYPE_COUNT : tensor->type.dtype,
        .rank = tensor->rank,
        .dtype_variable = tensor->type.variable ? tensor->type.variable->name : NULL,
        .is_packed = tensor->panel_rows,
    };
    kg_api_fill(&kg_sized_tensor_info, 0, &ours, info);
    return KG_OK;
}

int kg_problem_tensor_count(const struct kg_problem *problem)
{
    return problem ? problem->op->input_count + problem->op->output_count : 0;
}

enum kg_status kg_problem_tensor(const struct kg_problem *problem, int index,
                                 struct kg_tensor_info *info)
{
    struct kg_context *context = kg_api_context(problem);
    enum kg_status status = KG_API_NEEDS(context, problem, info);
    if (status == KG_OK)
        status = check_tensor(context, problem->op, index, info);
    if (status != KG_OK)
        return status;
    const struct kg_tensor *tensor = problem->tensors[index];
    const struct kg_layout *layout = &problem->layouts[index];
    struct kg_tensor_info ours = {.name = tensor->name,
                                  .is_output = tensor->role == KG_ROLE_OUTPUT,
                                  .dtype = tensor->type.dtype,
                                  .rank = tensor->rank,
                                  .bytes = layout->bytes,
                                  .is_packed = tensor->panel_rows};
    memcpy(ours.shape, layout->shape, sizeof ours.shape);
    memcpy(ours.stride, layout->stride, sizeof ours.stride);
    kg_api_fill(&kg_sized_tensor_info, 0, &ours, info);
    return KG_OK;
}

enum kg_status kg_problem_extent(const struct kg_problem *problem, int index, int dimension,
                                 char **text)
{
    struct kg_context *context = kg_api_context(problem);
    struct kg_text written = {0};
    enum kg_status status = KG_API_NEEDS(context, problem, text);
    if (status != KG_OK)
        return status;
    *text = NULL;
    struct kg_tensor_info info = {.size = sizeof info};
    status = check_tensor(context, problem->op, index, &info);
    if (status != KG_OK)
        return status;
    const struct kg_tensor *tensor = problem->op->tensors[index];
    if (dimension < 0 || dimension >= tensor->rank)
        return kg_error_set(&context->error, KG_ERROR_ARGUMENT,
                            "%s has %d dimensions, and none of number %d", tensor->name,
                            tensor->rank, dimension);
    kg_lang_print_expr(&written, tensor->dims[dimension]);
    return kg_api_give(context, KG_OK, &written, text);
}
