// The search when memory runs out: it ends with an error or with what it has, and leaves nothing
// behind (which the sanitizers see).

#include "faults/fail_alloc.h"
#include "support/made_up_search.h"
#include "tune/trials.h"

static void prepare(void)
{
    make_sample();
    device.facts.units = 1; // one compiler thread: the n-th allocation is always the same
}

static struct kg_search short_search(void)
{
    struct kg_search search = new_search(KG_RIGOR_MEASURE);
    search.protocol.warm_seconds = search.protocol.sample_seconds = 0;
    search.protocol.least_samples = search.protocol.max_samples = 1;
    return search;
}

// Workers are forks, so some of the allocations will do.
static void search(void)
{
    static const char *const hints[] = {"a=8 b=4 c=2", "nonsense", "a=8 b=4 c=1"};
    for (long n = 1; fail_alloc_sweep(n); n += n < 60 ? 1 : 7) {
        struct kg_search search = short_search();
        struct kg_found found;
        search.hints = hints;
        search.hint_count = 3;
        kg_error_clear(&error);
        fail_alloc_at(n);
        enum kg_status status = kg_search_run(&search, &found, &error);
        fail_alloc_never();
        CHECK(status == KG_OK || (status == KG_ERROR_MEMORY && error.text[0]));
        CHECK(fail_alloc_happened() || found.complete);
    }
}

// A batch whose third text cannot be printed gives the first two back.
static void batch(void)
{
    struct kg_search search = short_search();
    for (long n = 1; fail_alloc_sweep(n); n++) {
        struct kg_trials trials;
        struct kg_choice choices[3];
        for (int i = 0; i < 3; i++) {
            kg_choice_guess(sample.problem, &device.facts, &target, &choices[i]);
            choices[i].configs[0].value[2] = choices_c[i];
        }
        CHECK_STATUS(kg_trials_begin(&trials, &search, &error), KG_OK, &error);
        fail_alloc_at(n);
        kg_trials_run(&trials, choices, 3);
        fail_alloc_never();
        // What fails in a worker fails there: its candidate is lost, nothing else.
        CHECK(fail_alloc_happened() || trials.measured + trials.failed == 3);
        CHECK(trials.stop == KG_STOP_NOT || trials.failure.status == KG_ERROR_MEMORY);
        kg_trials_free(&trials);
    }
}

TEST_MAIN(prepare, search, batch)
