// See known_plans.h.

#include "known_plans.h"

#include <pthread.h>
#include <string.h>

enum { MAX_PLANS = 1024 }; // of an op; further ones are found by calls.py

// One lock for all ops: it is held for no longer than a list is walked, and never waits for the
// GIL.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void take_lock(void)
{
    pthread_mutex_lock(&lock);
}

static void leave_lock(void)
{
    pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void keep_lock_usable_in_children(void)
{
    pthread_atfork(take_lock, leave_lock, leave_lock);
}

struct remembered *plans_find(const struct plans *plans, const struct layout *layout)
{
    struct remembered *found = NULL;
    take_lock();
    for (int i = 0; i < plans->count && !found; i++) {
        struct remembered *plan = plans->all[i];
        if (plan->hash == layout->hash && plan->word_count == layout->count &&
            memcmp(plan->words, layout->words, (size_t)layout->count * sizeof(int64_t)) == 0)
            found = plan;
    }
    if (found)
        atomic_fetch_add(&found->holders, 1);
    leave_lock();
    return found;
}

void plan_release(struct remembered *plan)
{
    if (atomic_fetch_sub(&plan->holders, 1) > 1)
        return;
    PyGILState_STATE state = PyGILState_Ensure();
    Py_XDECREF(plan->plan);
    Py_XDECREF(plan->makers);
    PyMem_Free(plan->words);
    PyMem_Free(plan->outputs);
    PyMem_Free(plan);
    PyGILState_Release(state);
}

bool plans_add(struct plans *plans, struct remembered *plan)
{
    take_lock();
    size_t bytes = (size_t)(plans->count + 1) * sizeof(struct remembered *);
    struct remembered **more = plans->count < MAX_PLANS ? PyMem_Realloc(plans->all, bytes) : NULL;
    if (more) {
        plans->all = more;
        plans->all[plans->count++] = plan;
    }
    leave_lock();
    return more;
}

void plans_forget(struct plans *plans)
{
    take_lock();
    struct plans old = *plans;
    *plans = (struct plans){0};
    leave_lock();
    for (int i = 0; i < old.count; i++)
        plan_release(old.all[i]);
    PyMem_Free(old.all);
}

static bool overlap(const struct remembered *plan, const struct call *call, int a, int b)
{
    const char *first = call->pointers[a], *second = call->pointers[b];
    return first < second + plan->bytes[b] && second < first + plan->bytes[a];
}

bool plan_outputs_overlap(const struct remembered *plan, const struct call *call)
{
    for (int i = plan->input_count; i < call->tensor_count; i++)
        for (int j = 0; j < i; j++)
            if (overlap(plan, call, i, j))
                return true;
    return false;
}
