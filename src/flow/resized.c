// See resized.h.

#include "flow/resized.h"

#include "flow/replaying.h"
#include "flow/workspaces.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PROBLEMS = 8 }; // that are kept: as many threads bind new sizes at once

// What a run at one set of sizes needs.
struct shape {
    int64_t sizes[KG_MAX_SIZES];
    struct kg_prepared *prepared;
    bool is_replayed;         // from the second run on
    struct kg_replay *replay; // NULL: executions are launched
    int users;                // runs under way
    uint64_t used;            // number of the run that used it last
};

// `problems` are those of the plan's instance in which nobody works. Their nests, and the families'
// matches of these, do not depend on sizes, so that new sizes are bound to one of them.
struct kg_resized {
    const struct kg_plan *plan;
    pthread_mutex_t lock;
    uint64_t runs;
    int count;
    struct shape *shapes[KG_MOST_RESIZED];
    int problem_count;
    struct kg_problem *problems[MOST_PROBLEMS];
};

static void free_shape(struct shape *shape)
{
    if (!shape)
        return;
    kg_replay_destroy(shape->replay);
    kg_prepared_free(shape->prepared);
    free(shape);
}

// A problem to bind sizes to, to be given back; NULL: out of memory.
static struct kg_problem *take_problem(struct kg_resized *resized, struct kg_error *error)
{
    struct kg_problem *problem = NULL;
    pthread_mutex_lock(&resized->lock);
    if (resized->problem_count > 0)
        problem = resized->problems[--resized->problem_count];
    pthread_mutex_unlock(&resized->lock);
    const struct kg_problem *own = resized->plan->problem;
    if (!problem)
        kg_problem_make(own->op, own->sizes, NULL, &problem, error);
    return problem;
}

static void return_problem(struct kg_resized *resized, struct kg_problem *problem)
{
    pthread_mutex_lock(&resized->lock);
    bool is_kept = resized->problem_count < MOST_PROBLEMS;
    if (is_kept)
        resized->problems[resized->problem_count++] = problem;
    pthread_mutex_unlock(&resized->lock);
    if (!is_kept)
        kg_problem_free(problem);
}

static enum kg_status make_shape(struct kg_resized *resized, const int64_t *sizes,
                                 struct shape **out, struct kg_error *error)
{
    const struct kg_plan *plan = resized->plan;
    struct shape *shape = *out = calloc(1, sizeof *shape);
    struct kg_problem *problem = shape ? take_problem(resized, error) : NULL;
    if (!problem) {
        free(shape);
        *out = NULL;
        return kg_error_memory(error, "the launches of a plan");
    }
    memcpy(shape->sizes, sizes, sizeof shape->sizes);
    shape->users = 1;
    enum kg_status status = kg_problem_rebind(problem, sizes, error);
    if (status == KG_OK)
        status =
            kg_prepared_make_like(plan->prepared, plan->built, problem, &shape->prepared, error);
    if (status == KG_OK)
        shape->is_replayed = kg_replay_pays(plan->device, problem);
    return_problem(resized, problem);
    if (status == KG_OK)
        return KG_OK;
    free_shape(shape);
    *out = NULL;
    return status;
}

// Makes the first problem and its matches with the plan, so that no execution has to.
struct kg_resized *kg_resized_create(const struct kg_plan *plan)
{
    struct kg_resized *resized = calloc(1, sizeof *resized);
    if (!resized)
        return NULL;
    resized->plan = plan;
    pthread_mutex_init(&resized->lock, NULL);
    struct shape *shape;
    if (make_shape(resized, plan->problem->sizes, &shape, NULL) == KG_OK) {
        free_shape(shape);
        return resized;
    }
    kg_resized_destroy(resized);
    return NULL;
}

void kg_resized_destroy(struct kg_resized *resized)
{
    if (!resized)
        return;
    for (int i = 0; i < resized->count; i++)
        free_shape(resized->shapes[i]);
    for (int i = 0; i < resized->problem_count; i++)
        kg_problem_free(resized->problems[i]);
    pthread_mutex_destroy(&resized->lock);
    free(resized);
}

static struct shape *find(struct kg_resized *resized, const int64_t *sizes)
{
    for (int i = 0; i < resized->count; i++)
        if (memcmp(resized->shapes[i]->sizes, sizes, sizeof resized->shapes[i]->sizes) == 0)
            return resized->shapes[i];
    return NULL;
}

// The one that was used longest ago and is not in use; -1: all are.
static int find_oldest(const struct kg_resized *resized)
{
    int oldest = -1;
    for (int i = 0; i < resized->count; i++)
        if (resized->shapes[i]->users == 0 &&
            (oldest < 0 || resized->shapes[i]->used < resized->shapes[oldest]->used))
            oldest = i;
    return oldest;
}

// Keeps a new shape in place of the oldest, which is returned and has to be freed. If all are in
// use, the new one is not kept.
static struct shape *keep(struct kg_resized *resized, struct shape *shape)
{
    if (resized->count < KG_MOST_RESIZED) {
        resized->shapes[resized->count++] = shape;
        return NULL;
    }
    int oldest = find_oldest(resized);
    struct shape *old = oldest >= 0 ? resized->shapes[oldest] : NULL;
    if (old)
        resized->shapes[oldest] = shape;
    return old;
}

// A first run does nothing for runs that may not follow.
static struct shape *take_kept(struct kg_resized *resized, const int64_t *sizes)
{
    const struct kg_plan *plan = resized->plan;
    pthread_mutex_lock(&resized->lock);
    struct shape *shape = find(resized, sizes);
    if (shape && shape->is_replayed && !shape->replay && shape->users == 0)
        shape->replay = kg_replay_create(plan->device, plan->problem->op, shape->prepared);
    if (shape) {
        shape->users++;
        shape->used = ++resized->runs;
    }
    pthread_mutex_unlock(&resized->lock);
    return shape;
}

// The shape of these sizes, to be given back. Another thread may have made the same meanwhile.
static enum kg_status take(struct kg_resized *resized, const int64_t *sizes, struct shape **shape,
                           struct kg_error *error)
{
    *shape = take_kept(resized, sizes);
    if (*shape)
        return KG_OK;
    enum kg_status status = make_shape(resized, sizes, shape, error);
    if (status != KG_OK)
        return status;
    pthread_mutex_lock(&resized->lock);
    struct shape *kept = find(resized, sizes), *old = kept ? *shape : keep(resized, *shape);
    if (kept) {
        *shape = kept;
        kept->users++;
    }
    (*shape)->used = ++resized->runs;
    pthread_mutex_unlock(&resized->lock);
    free_shape(old);
    return KG_OK;
}

static void give_back(struct kg_resized *resized, struct shape *shape)
{
    pthread_mutex_lock(&resized->lock);
    bool is_kept = find(resized, shape->sizes) == shape;
    shape->users--;
    pthread_mutex_unlock(&resized->lock);
    if (!is_kept)
        free_shape(shape);
}

enum kg_status kg_resized_run(struct kg_resized *resized, const int64_t *sizes,
                              void *const *tensors, void *stream, struct kg_error *error)
{
    struct shape *shape;
    struct kg_workspaces *workspaces = resized->plan->workspaces;
    struct kg_buffer workspace;
    enum kg_status status = take(resized, sizes, &shape, error);
    if (status != KG_OK)
        return status;
    status = kg_workspaces_take(workspaces, stream, kg_prepared_workspace(shape->prepared),
                                &workspace, error);
    if (status == KG_OK) {
        if (!shape->replay ||
            !kg_replay_run(shape->replay, tensors, workspace.memory, stream, &status, error))
            status = kg_prepared_run(shape->prepared, tensors, workspace.memory, stream, error);
        kg_workspaces_return(workspaces, stream, workspace);
    }
    give_back(resized, shape);
    return status;
}
