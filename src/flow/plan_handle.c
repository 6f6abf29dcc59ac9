// See plan_handle.h.

#include "flow/plan_handle.h"

#include "flow/replaying.h"
#include "flow/resized.h"
#include "flow/workspaces.h"
#include "gen/standalone.h"

#include <stdlib.h>
#include <string.h>

#define COMPILE_SECONDS 120.0 // for one kernel; a longer time is a hang

struct kg_request kg_flow_request_of(const struct kg_plan *plan)
{
    return (struct kg_request){
        .session = plan->session, .problem = plan->problem, .device = plan->device};
}

static struct kg_plan *new_plan(const struct kg_request *request, struct kg_built *built)
{
    struct kg_plan *plan = calloc(1, sizeof *plan);
    struct kg_text text = {0};
    if (!plan) {
        kg_built_free(built);
        return NULL;
    }
    plan->session = request->session;
    plan->problem = request->problem;
    plan->device = request->device;
    plan->built = built;
    kg_choice_print(&built->choice, &text);
    plan->choice = text.data;
    if (!text.failed && text.data)
        return plan;
    kg_flow_plan_free(plan);
    return NULL;
}

static enum kg_status make_ready(struct kg_plan *plan, struct kg_error *error)
{
    enum kg_status status = kg_prepared_make(plan->built, plan->problem, &plan->prepared, error);
    if (status != KG_OK)
        return status;
    plan->workspaces = kg_workspaces_create(plan->device);
    if (!plan->workspaces)
        return kg_error_memory(error, "a plan's workspace");
    if (kg_replay_pays(plan->device, plan->problem))
        plan->replay = kg_replay_create(plan->device, plan->problem->op, plan->prepared);
    if (!plan->problem->contiguous)
        return KG_OK;
    plan->resized = kg_resized_create(plan);
    return plan->resized ? KG_OK : kg_error_memory(error, "a plan");
}

enum kg_status kg_flow_plan_around(const struct kg_request *request, struct kg_built *built,
                                   struct kg_plan **out, struct kg_error *error)
{
    *out = NULL;
    struct kg_plan *plan = new_plan(request, built);
    if (!plan)
        return kg_error_memory(error, "a plan");
    enum kg_status status = request->source_only ? KG_OK : make_ready(plan, error);
    if (status != KG_OK)
        kg_flow_plan_free(plan);
    else
        *out = plan;
    return status;
}

static enum kg_status build(const struct kg_request *request, const struct kg_choice *choice,
                            struct kg_built **built, struct kg_error *error)
{
    struct kg_device *device = request->device;
    if (request->source_only)
        return kg_built_bare(device, request->problem, choice, built, error);
    double start = kg_times_now();
    enum kg_status status =
        kg_built_make_soon(device, request->problem, choice, COMPILE_SECONDS, built, error);
    kg_times_since(&request->session->times, KG_ACTIVITY_COMPILE, start);
    kg_session_tell_of_cache(request->session, device);
    return status;
}

enum kg_status kg_flow_plan_of(const struct kg_request *request, const struct kg_choice *choice,
                               struct kg_plan **out, struct kg_error *error)
{
    *out = NULL;
    struct kg_built *built;
    enum kg_status status = build(request, choice, &built, error);
    return status == KG_OK ? kg_flow_plan_around(request, built, out, error) : status;
}

static void free_override(struct kg_override *override)
{
    if (!override)
        return;
    kg_flow_plan_free(override->original);
    free(override->path);
    free(override->text);
    free(override);
}

void kg_flow_plan_free(struct kg_plan *plan)
{
    if (!plan)
        return;
    kg_resized_destroy(plan->resized); // before the kernels are unloaded
    kg_replay_destroy(plan->replay);
    kg_workspaces_destroy(plan->workspaces);
    kg_prepared_free(plan->prepared);
    kg_built_free(plan->built);
    kg_nearest_free(&plan->nearest);
    free_override(plan->override);
    free(plan->choice);
    free(plan);
}

enum kg_status kg_flow_execute(const struct kg_plan *plan, void *const *tensors, void *stream,
                               struct kg_error *error)
{
    struct kg_buffer workspace;
    enum kg_status status = kg_workspaces_take(
        plan->workspaces, stream, kg_prepared_workspace(plan->prepared), &workspace, error);
    if (status != KG_OK)
        return status;
    if (!plan->replay ||
        !kg_replay_run(plan->replay, tensors, workspace.memory, stream, &status, error))
        status = kg_prepared_run(plan->prepared, tensors, workspace.memory, stream, error);
    kg_workspaces_return(plan->workspaces, stream, workspace);
    return status;
}

bool kg_flow_source(const struct kg_plan *plan, struct kg_text *text)
{
    return kg_target_of(plan->device)
        ->standalone(plan->problem, &plan->built->choice, &plan->device->facts, text);
}

enum kg_status kg_flow_launcher(const struct kg_plan *plan, struct kg_text *text,
                                struct kg_error *error)
{
    const struct kg_target *target = kg_target_of(plan->device);
    if (!target->launcher)
        return kg_error_set(error, KG_ERROR_UNSUPPORTED,
                            "a kernel for %s is a function that programs call: it has no launcher",
                            target->name);
    if (!target->launcher(plan->problem, &plan->built->choice, &plan->device->facts, text))
        return kg_error_memory(error, "the source of a plan");
    return KG_OK;
}

// The length of the comments at the top of a source, which describe its launches.
static size_t heading_length(const char *source)
{
    size_t length = 0;
    while (strncmp(source + length, "//", 2) == 0)
        length += strcspn(source + length, "\n") + 1;
    return length;
}

enum kg_status kg_flow_compile_file(const struct kg_problem *problem, struct kg_device *device,
                                    const struct kg_choice *choice, struct kg_text *source,
                                    struct kg_binary *binary, struct kg_error *error)
{
    *binary = (struct kg_binary){0};
    if (!kg_target_of(device)->standalone(problem, choice, &device->facts, source) ||
        source->failed)
        return kg_error_memory(error, "the source of a plan");
    struct kg_source all = {.text = source->data, .entry = "", .options = ""};
    return device->backend->compile(device, &all, COMPILE_SECONDS, binary, error);
}

enum kg_status kg_flow_assembly(const struct kg_plan *plan, struct kg_text *text,
                                struct kg_error *error)
{
    struct kg_text source = {0};
    struct kg_binary binary;
    struct kg_device *device = plan->device;
    if (!kg_target_of(device)->has_assembly)
        return kg_error_set(error, KG_ERROR_UNSUPPORTED, "there is no PTX of kernels for %s",
                            device->backend->name);
    if (plan->override) {
        kg_text_add(text, plan->override->text);
        return text->failed ? kg_error_memory(error, "the PTX of a plan") : KG_OK;
    }
    double start = kg_times_now();
    enum kg_status status =
        kg_flow_compile_file(plan->problem, device, &plan->built->choice, &source, &binary, error);
    kg_times_since(&plan->session->times, KG_ACTIVITY_COMPILE, start);
    if (!status) {
        kg_text_add_bytes(text, source.data, heading_length(source.data));
        kg_text_add(text, binary.ptx);
        status = text->failed ? kg_error_memory(error, "the PTX of a plan") : KG_OK;
    }
    kg_binary_free(&binary);
    kg_text_free(&source);
    return status;
}
