// The made-up search on a CUDA device whose driver is a fake: which process uses the driver, and
// that everything a search needs of a device is there. Outputs are never compared: the fake
// computes no checksums.

#include "support/fake_driver.h"
#include "support/folder.h"
#include "support/made_up_search.h"

static char folder[] = "/tmp/kg-test-cuda-search-XXXXXX";
static struct fake_driver *fake;
static struct kg_device *cuda;

static void set_up(void)
{
    CHECK(folder_make(folder));
    fake = fake_driver_open();
    CHECK(fake != NULL);
    sample = make("op copy(x: f32[N]) -> (y: f32[N])\n{ y[n] = x[n] }\n", "N=300000");
    CHECK_STATUS(sample.status, KG_OK, &sample.error);
    CHECK_STATUS(kg_device_open("cuda:0", folder, 0, &cuda, &error), KG_OK, &error);
}

static enum ill some_ills(const int64_t *value)
{
    return value[0] != 1 || value[2] != 1 ? FINE : value[1] == 2 ? HANGS : CRASHES;
}

static void search_all(struct kg_protocol protocol, enum ill (*ill)(const int64_t *value),
                       struct kg_found *found)
{
    struct kg_search search = new_search(KG_RIGOR_EXHAUSTIVE);
    search.device = cuda;
    search.protocol = protocol;
    search.protocol.cache = KG_WARM; // the fake takes its time to flush
    search.protocol.warm_seconds = 0;
    if (ill == some_ills) // one hangs, and is waited for
        search.run_limit = 5;
    world.ill = ill;
    CHECK_STATUS(kg_search_run(&search, found, &error), KG_OK, &error);
}

static void a_worker_uses_the_driver(void)
{
    struct kg_found found;
    search_all(kg_protocol_default, NULL, &found);
    CHECK(found.measured == 87 && found.failed == 0 && found.complete);
    CHECK(found.seconds > 1.49e-3 && found.seconds < 1.51e-3); // what every event of the fake says
    CHECK(*fillings == 1);
    search_all(kg_protocol_default, some_ills, &found);
    CHECK(found.measured == 81 && found.failed == 6);
    CHECK(seen.of_kind[KG_OUTCOME_TIMEOUT] == 1 && seen.of_kind[KG_OUTCOME_FAULT] == 5);
    CHECK(*fillings == 6 || *fillings == 7);
    CHECK(fake->inits == 0 && fake->blocks == 0);
}

static void fault(void)
{
    fake->broken = 700;
}

static enum ill some_faults(const int64_t *value)
{
    return value[0] == 1 && value[2] == 1 ? BREAKS_DEVICE : FINE;
}

// The driver takes a launch and refuses everything after it: each fault costs a worker, and no
// other candidate.
static void faults_are_outcomes(void)
{
    struct kg_found found;
    break_device = fault;
    search_all(kg_protocol_default, some_faults, &found);
    break_device = NULL;
    CHECK(found.measured == 81 && found.failed == 6);
    CHECK(seen.of_kind[KG_OUTCOME_FAULT] == 6);
    CHECK(*fillings == 6 || *fillings == 7);
    for (int i = 0; i < seen.count; i++)
        if (seen.outcomes[i].kind == KG_OUTCOME_FAULT)
            CHECK(strstr(seen.reasons[i], "CUDA_ERROR_ILLEGAL_ADDRESS") != NULL);
    CHECK(fake->inits == 0 && fake->blocks == 0 && fake->broken == 0);
}

static void caches_are_flushed(void)
{
    struct kg_search search = new_search(KG_RIGOR_MEASURE);
    struct kg_found found;
    search.device = cuda;
    search.protocol.warm_seconds = 0;
    search.protocol.least_samples = 3;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK(found.measured > 3 && fake->inits == 0);
}

static void graphs_are_replayed(void)
{
    struct kg_protocol protocol = kg_protocol_default;
    struct kg_found found;
    protocol.graph = true;
    search_all(protocol, NULL, &found);
    CHECK(found.measured == 87);
}

#define LIMIT 2 // seconds of a candidate

static enum kg_status use_device(void *user, void *result, size_t size, struct kg_error *own)
{
    void *memory;
    (void)user;
    (void)size;
    enum kg_status status = cuda->backend->allocate(cuda, 100, &memory, own);
    cuda->backend->release(cuda, memory);
    *(int *)result = 42;
    return status;
}

// What opening the device takes is nobody's time, and what it fails with is nobody's fault.
static void starting_takes_no_time(void)
{
    struct kg_found found;
    struct kg_search search = new_search(KG_RIGOR_EXHAUSTIVE);
    int result = 0;
    search.device = cuda;
    search.protocol.cache = KG_WARM;
    search.protocol.warm_seconds = 0;
    search.run_limit = LIMIT;
    fake->pause = LIMIT + 1;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK(found.measured == 87 && found.failed == 0);
    CHECK_STATUS(
        kg_worker_run_on(cuda, use_device, NULL, LIMIT, NULL, &result, sizeof result, &error),
        KG_OK, &error);
    CHECK(result == 42);
    fake->pause = 0;
    fake->crash = 1;
    CHECK_STATUS(
        kg_worker_run_on(cuda, use_device, NULL, LIMIT, NULL, &result, sizeof result, &error),
        KG_ERROR_MISSING, &error);
    CHECK(strstr(error.text, "cannot be used: crashed with SIGSEGV") && result == 0);
    fake->crash = 0;
    CHECK(fake->inits == 0);
}

// Then no fork can: candidates run here.
static void a_driver_in_use_is_used(void)
{
    void *memory;
    struct kg_found found;
    CHECK(kg_worker_isolation(cuda) == KG_ISOLATION_WORKER);
    CHECK_STATUS(cuda->backend->allocate(cuda, 100, &memory, &error), KG_OK, &error);
    CHECK(kg_worker_isolation(cuda) == KG_ISOLATION_NONE);
    search_all(kg_protocol_default, NULL, &found);
    CHECK(found.measured == 87 && *fillings == 1);
    CHECK(fake->blocks == 1 + 1); // the checksum's
    cuda->backend->release(cuda, memory);
}

static void clean_up(void)
{
    kg_device_close(cuda);
    CHECK(fake->blocks == 0 && fake->modules == 0 && fake->graphs == 0 && fake->contexts == 0);
    unmake(&sample);
    folder_remove(folder);
}

int main(void)
{
    set_up();
    if (test_failures == 0 && cuda->compiler[0]) {
        a_worker_uses_the_driver();
        faults_are_outcomes();
        caches_are_flushed();
        graphs_are_replayed();
        starting_takes_no_time();
        a_driver_in_use_is_used();
    }
    bool skipped = test_failures == 0 && !cuda->compiler[0]; // no NVRTC
    clean_up();
    printf("%d checks, %d failed\n", test_checks, test_failures);
    return skipped ? 77 : test_failures != 0;
}
