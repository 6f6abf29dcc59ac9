// Fills cases with inputs and the reference's values, on all cores.

#include "verify/case.h"

#include "base/hash.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_THREADS 8

void kg_case_restore(struct kg_case *item)
{
    for (int i = 0; i < item->problem->op->input_count; i++)
        kg_inputs_fill(item->problem, i, item->class, item->seed, item->inputs[i]);
}

static enum kg_status fill_own(struct kg_case *item, bool is_guarded, struct kg_error *error)
{
    enum kg_status status = kg_image_memory_make(&item->own, is_guarded, item->image.bytes, error);
    if (status == KG_OK)
        status = kg_image_memory_open(&item->own, &item->image, error);
    if (status != KG_OK)
        return status;
    for (int i = 0; i < item->problem->op->input_count; i++)
        item->inputs[i] = item->own.at + item->image.offset[i];
    kg_case_restore(item);
    for (int i = 0; i < item->problem->op->input_count; i++)
        item->input_sums[i] = kg_hash_bytes(item->inputs[i], item->problem->layouts[i].bytes).low;
    return KG_OK;
}

static enum kg_status fill_inputs(struct kg_case *item, bool is_guarded, struct kg_error *error)
{
    if (!item->whole)
        return fill_own(item, is_guarded, error);
    for (int i = 0; i < item->problem->op->input_count; i++) {
        size_t bytes = item->problem->layouts[i].bytes;
        item->inputs[i] = malloc(bytes + 1);
        if (!item->inputs[i])
            return kg_error_memory(error, "the gate's inputs");
        memset(item->inputs[i], 0xff, bytes + 1);
    }
    kg_case_restore(item);
    return KG_OK;
}

int kg_case_threads(void)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count < 1 ? 1 : count > MAX_THREADS ? MAX_THREADS : (int)count;
}

struct filling {
    const struct kg_cases *cases;
    const volatile int *cancel;
    _Atomic int next;
    pthread_mutex_t lock;    // locked to report a failure
    pthread_mutex_t surveys; // one at a time: each takes all cores and much memory
    enum kg_status status;
    struct kg_error *error;
};

static enum kg_status survey(struct filling *filling, struct kg_case *item, struct kg_error *error)
{
    pthread_mutex_lock(&filling->surveys);
    enum kg_status status =
        kg_survey_make(item->problem, (const void *const *)item->inputs, kg_case_threads(),
                       filling->cancel, &item->survey, error);
    pthread_mutex_unlock(&filling->surveys);
    for (int w = 0; w < item->window_count && status == KG_OK; w++)
        kg_survey_learn(item->survey, item->expected[w]);
    return status;
}

// Computes the inputs and the reference.
static enum kg_status fill(struct filling *filling, struct kg_case *item, struct kg_error *error)
{
    const void *const *inputs = (const void *const *)item->inputs;
    enum kg_status status = fill_inputs(item, filling->cases->is_guarded, error);
    for (int w = 0; w < item->window_count && status == KG_OK; w++)
        status = kg_reference_window(item->problem, inputs, item->whole ? NULL : item->windows[w],
                                     kg_case_threads(), filling->cancel, item->expected[w], error);
    return status == KG_OK && item->surveyed ? survey(filling, item, error) : status;
}

static void *fill_some(void *argument)
{
    struct filling *filling = argument;
    for (;;) {
        int at = atomic_fetch_add(&filling->next, 1);
        if (at >= filling->cases->count)
            return NULL;
        struct kg_error error = {0};
        enum kg_status status = fill(filling, filling->cases->items[at], &error);
        if (status == KG_OK)
            continue;
        pthread_mutex_lock(&filling->lock);
        if (filling->status == KG_OK)
            filling->status = kg_error_set(filling->error, status, "%s", error.text);
        pthread_mutex_unlock(&filling->lock);
        atomic_store(&filling->next, filling->cases->count);
    }
}

// The calling thread fills cases too, so that all are filled even if no other thread can be
// started.
enum kg_status kg_cases_fill(const struct kg_cases *cases, const volatile int *cancel,
                             struct kg_error *error)
{
    struct filling filling = {.cases = cases,
                              .cancel = cancel,
                              .lock = PTHREAD_MUTEX_INITIALIZER,
                              .surveys = PTHREAD_MUTEX_INITIALIZER,
                              .error = error};
    pthread_t helpers[MAX_THREADS];
    int started = 0, wanted = kg_case_threads() - 1;
    while (started < wanted && started + 1 < cases->count &&
           pthread_create(&helpers[started], NULL, fill_some, &filling) == 0)
        started++;
    fill_some(&filling);
    for (int i = 0; i < started; i++)
        pthread_join(helpers[i], NULL);
    pthread_mutex_destroy(&filling.lock);
    pthread_mutex_destroy(&filling.surveys);
    return filling.status;
}
