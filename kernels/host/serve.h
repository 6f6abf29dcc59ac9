// Runs a kernel without KernelGen's runtime: phase by phase, on all cores when compiled with
// -fopenmp, else on one.
#include <stdlib.h>
#ifdef _OPENMP
#include <omp.h>
#endif

static void *kg_workspace(size_t bytes)
{
    return aligned_alloc(64, (bytes / 64 + 1) * 64);
}

typedef int64_t kg_items(const struct kg_host_call *call, int phase);
typedef void kg_run(const struct kg_host_call *call, int phase, int64_t begin, int64_t end);
typedef int64_t kg_bytes(const struct kg_host_call *call, int kind);

// One thread's share of a phase: whole multiples of the grain.
static void kg_serve_share(const struct kg_host_call *call, int phase, int64_t items, kg_run *run,
                           int64_t grain)
{
    int64_t grains = (items + grain - 1) / grain;
    int64_t begin = grains * call->thread / call->threads * grain;
    int64_t end = grains * (call->thread + 1) / call->threads * grain;
    if (end > items)
        end = items;
    if (begin < end)
        run(call, phase, begin, end);
}

static int kg_serve(void *const *tensor, const int64_t *size, kg_items *items, kg_run *run,
                    kg_bytes *bytes)
{
    struct kg_host_call call = {.tensor = tensor, .size = size, .threads = 1};
#ifdef _OPENMP
    call.threads = omp_get_max_threads();
#endif
    int64_t scratch = (bytes(&call, KG_HOST_SCRATCH) / 64 + 1) * 64;
    int64_t grain = bytes(&call, KG_HOST_GRAIN);
    if (grain < 1)
        grain = 1;
    char *all = kg_workspace((size_t)scratch * (size_t)call.threads);
    call.shared = kg_workspace((size_t)bytes(&call, KG_HOST_SHARED));
    int failed = !all || !call.shared;
    for (int phase = 0; !failed; phase++) {
        int64_t count = items(&call, phase);
        if (count < 0)
            break;
#ifdef _OPENMP
#pragma omp parallel for
#endif
        for (int thread = 0; thread < call.threads; thread++) {
            struct kg_host_call mine = call;
            mine.thread = thread;
            mine.scratch = all + scratch * thread;
            kg_serve_share(&mine, phase, count, run, grain);
        }
    }
    free(all);
    free(call.shared);
    return failed;
}
