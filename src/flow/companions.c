// See companions.h.

#include "flow/companions.h"

#include "gen/grouping.h"

#define COMPILE_SECONDS 120.0 // for one kernel; a longer time is a hang

void kg_flow_choose_baseline(const struct kg_device *device, const struct kg_problem *problem,
                             struct kg_choice *choice)
{
    kg_choice_plain(problem, &device->facts, kg_target_of(device), choice);
}

// 4-bit tensors have no strided form.
enum kg_status kg_flow_counterpart(const struct kg_problem *problem, struct kg_problem **other,
                                   struct kg_error *error)
{
    int64_t strides[KG_MAX_TENSORS][KG_MAX_RANK] = {{0}};
    int count = problem->op->input_count + problem->op->output_count;
    *other = NULL;
    for (int i = 0; i < count; i++)
        for (int d = 0; d < problem->tensors[i]->rank; d++)
            strides[i][d] = problem->layouts[i].stride[d] * 2;
    enum kg_status status = kg_problem_make(
        problem->op, problem->sizes,
        problem->contiguous ? (const int64_t(*)[KG_MAX_RANK])strides : NULL, other, error);
    if (status == KG_ERROR_SHAPE) {
        kg_error_clear(error);
        return KG_OK;
    }
    if (status == KG_OK && (*other)->contiguous == problem->contiguous) { // scalars only
        kg_problem_free(*other);
        *other = NULL;
    }
    return status;
}

void kg_flow_choose_counterpart(const struct kg_device *device, const struct kg_problem *other,
                                const char *choice, struct kg_choice *counterpart)
{
    const struct kg_target *target = kg_target_of(device);
    if (!kg_choice_read(other, &device->facts, target, choice, counterpart))
        kg_choice_guess(other, &device->facts, target, counterpart);
}

enum kg_status kg_flow_build_counterpart(const struct kg_request *request, const char *choice,
                                         const struct kg_problem *other, struct kg_built **built,
                                         struct kg_error *error)
{
    struct kg_choice counterpart;
    kg_flow_choose_counterpart(request->device, other, choice, &counterpart);
    double start = kg_times_now();
    enum kg_status status =
        kg_built_make_soon(request->device, other, &counterpart, COMPILE_SECONDS, built, error);
    kg_times_since(&request->session->times, KG_ACTIVITY_COMPILE, start);
    kg_session_tell_of_cache(request->session, request->device);
    return status;
}
