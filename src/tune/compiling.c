// Compilers on all cores: see compiling.h.

#include "tune/compiling.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define MAX_COMPILERS 64

struct batch {
    struct kg_device *device;
    struct kg_compilation *items;
    int count;
    double limit, deadline;
    bool warm;
    const volatile int *cancel;
    _Atomic int next;
};

// Seconds that each kernel of a choice may take; 0: it is too late.
static double limit_of(const struct batch *batch, const struct kg_choice *choice)
{
    if (batch->deadline <= 0)
        return batch->limit;
    double left = (batch->deadline - kg_times_now()) / (choice->count > 0 ? choice->count : 1);
    return left < 0 ? 0 : left < batch->limit ? left : batch->limit;
}

static void *compile_some(void *argument)
{
    struct batch *batch = argument;
    for (;;) {
        int at = atomic_fetch_add(&batch->next, 1);
        if (at >= batch->count)
            return NULL;
        struct kg_compilation *item = &batch->items[at];
        double limit = limit_of(batch, &item->choice);
        if (limit <= 0 || (batch->cancel && *batch->cancel))
            item->status = kg_error_set(&item->error, KG_ERROR_CANCELLED, "cancelled");
        else
            item->status = kg_built_make(batch->device, item->problem, &item->choice, limit,
                                         &item->built, &item->error);
        // Cut short by the deadline, which says nothing about the kernel.
        if (item->status == KG_ERROR_TIMEOUT && limit < batch->limit)
            item->status = KG_ERROR_CANCELLED;
        if (item->built)
            kg_forecast_make(item->built, item->problem, batch->warm, &item->forecast);
    }
}

int kg_compile_cores(const struct kg_device *device)
{
    cpu_set_t cores;
    if (!device->backend->computes_apart || sched_getaffinity(0, sizeof cores, &cores) != 0)
        return device->facts.units;
    return CPU_COUNT(&cores);
}

// The calling thread compiles too, so everything is compiled even if no other thread can be
// started.
void kg_compile_all(struct kg_device *device, struct kg_compilation *items, int count, double limit,
                    double deadline, bool warm, const volatile int *cancel, struct kg_times *times)
{
    struct batch batch = {device, items, count, limit, deadline, warm, cancel, 0};
    pthread_t threads[MAX_COMPILERS];
    double start = kg_times_now(), work = 0;
    int wanted = kg_compile_cores(device) - 1, started = 0;
    if (wanted > count - 1)
        wanted = count - 1;
    while (started < wanted && started < MAX_COMPILERS &&
           pthread_create(&threads[started], NULL, compile_some, &batch) == 0)
        started++;
    compile_some(&batch);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < count; i++)
        work += items[i].built ? items[i].built->compile_work : 0;
    kg_times_add(times, KG_ACTIVITY_COMPILE, kg_times_now() - start, work);
}
