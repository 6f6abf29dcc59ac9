// Graphs of launches: recorded, replayed, and renewed where what they launch is known.

#include "support/fake_cuda.h"

static struct kg_device *shared; // with the functions that are recorded

struct to_record {
    struct kg_kernel *kernel;
    enum kg_status outcome;
    int times, value;
};

static enum kg_status run_once(void *user, struct kg_error *own)
{
    const struct to_record *record = user;
    struct kg_grid grid = {.blocks = {1, 1, 1}, .threads = {1, 1, 1}};
    struct kg_launch launch = {.grids = &grid, .grid_count = 1};
    enum kg_status status =
        shared->backend->launch(record->kernel, &launch, own); // the NULL stream
    return status ? status : record->outcome;
}

static void graphs(void)
{
    shared = open_device();
    shared->backend->flush(shared);
    struct to_record record = {.kernel = load(shared)};
    struct kg_graph *graph;
    forget_log();
    CHECK_STATUS(shared->backend->record(shared, run_once, &record, &graph, &error), KG_OK, &error);
    CHECK_TEXT(fake->log, "begin 9 2\nk_0 <<<1x1x1, 1x1x1, 0, 9>>>\nend 9\n");
    CHECK(fake->graphs == 1); // what it was made of is not kept
    forget_log();
    CHECK_STATUS(shared->backend->replay(graph, NULL, &error), KG_OK, &error);
    CHECK_STATUS(run_once(&record, &error), KG_OK, &error);
    CHECK_TEXT(fake->log, "replay\nk_0 <<<1x1x1, 1x1x1, 0, 0>>>\n");
    shared->backend->forget(graph);
    record.outcome = KG_ERROR_WRONG;
    CHECK_STATUS(shared->backend->record(shared, run_once, &record, &graph, &error), KG_ERROR_WRONG,
                 &error);
    CHECK(!graph && fake->graphs == 0);
    shared->backend->forget(NULL);
    shared->backend->unload(record.kernel);
    kg_device_close(shared);
}

// Both functions, with an argument.
static enum kg_status run_both(void *user, void *stream, struct kg_error *own)
{
    struct to_record *record = user;
    void *arguments[] = {&record->value};
    struct kg_grid grids[] = {{.blocks = {1, 2, 3}, .threads = {4, 5, 6}, .shared = 7},
                              {.blocks = {8, 1, 1}, .threads = {32, 1, 1}}};
    struct kg_launch launch = {
        .grids = grids, .grid_count = 2, .arguments = arguments, .stream = stream};
    enum kg_status status = KG_OK;
    for (int i = 0; i < record->times && !status; i++)
        status = shared->backend->launch(record->kernel, &launch, own);
    return status;
}

static enum kg_status renew(struct kg_graph *graph, const struct kg_kernel *kernel,
                            const struct kg_grid *first, int count)
{
    int value = 0;
    void *arguments[] = {&value};
    const struct kg_grid next = {.blocks = {8, 1, 1}, .threads = {32, 1, 1}};
    const struct kg_grid grids[] = {*first, next, next};
    struct kg_launch launch = {.grids = grids, .grid_count = count, .arguments = arguments};
    return shared->backend->renew(graph, kernel, &launch, &error);
}

// Only what the graph launches, as it launches it.
static void graphs_that_are_renewed(void)
{
    shared = open_device();
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    int (*init)(unsigned flags);
    *(void **)&init = dlsym(library, "cuInit");
    CHECK(!shared->backend->may_replay(shared, NULL) && fake->inits == 0);
    CHECK(init(0) == 0 && !shared->backend->may_replay(shared, NULL)); // it is somebody else's
    shared->backend->flush(shared);
    CHECK(shared->backend->may_replay(shared, NULL));
    struct to_record record = {.kernel = load(shared), .times = 1};
    struct kg_kernel *stranger = load(shared);
    struct kg_graph *graph;
    forget_log();
    CHECK_STATUS(shared->backend->record_for(shared, NULL, run_both, &record, &graph, &error),
                 KG_OK, &error);
    CHECK_TEXT(fake->log, "begin 9 2\nk_0 <<<1x2x3, 4x5x6, 7, 9>>> 0\n"
                          "k_1 <<<8x1x1, 32x1x1, 0, 9>>> 0\nend 9\n");
    struct kg_grid grid = {.blocks = {1, 2, 3}, .threads = {4, 5, 6}, .shared = 7};
    CHECK_STATUS(renew(graph, record.kernel, &grid, 2), KG_OK, &error);
    CHECK_STATUS(renew(graph, stranger, &grid, 2), KG_ERROR_UNSUPPORTED, &error);
    CHECK_STATUS(renew(graph, record.kernel, &grid, 3), KG_ERROR_UNSUPPORTED, &error);
    CHECK(fake->renewals == 2 + 2);
    int64_t *const blocks[] = {&grid.blocks[0], &grid.blocks[1], &grid.blocks[2]};
    int *const others[] = {&grid.threads[0], &grid.threads[1], &grid.threads[2], &grid.shared};
    for (int i = 0; i < 3; i++) {
        int64_t before = *blocks[i];
        const int64_t wrong[] = {before + 1, 0, -1, before + ((int64_t)1 << 32)};
        for (int n = 0; n < 4; n++) {
            *blocks[i] = wrong[n];
            CHECK_STATUS(renew(graph, record.kernel, &grid, 1), KG_ERROR_UNSUPPORTED, &error);
        }
        *blocks[i] = before;
    }
    for (int i = 0; i < 4; i++) {
        *others[i] += 1;
        CHECK_STATUS(renew(graph, record.kernel, &grid, 1), KG_ERROR_UNSUPPORTED, &error);
        *others[i] -= 1;
    }
    CHECK(fake->renewals == 2 + 2);
    CHECK_STATUS(renew(graph, record.kernel, &grid, 1), KG_OK, &error);
    shared->backend->forget(graph);
    for (record.times = 0; record.times < 3; record.times += 2) { // nothing, and all of it twice
        CHECK_STATUS(shared->backend->record_for(shared, NULL, run_both, &record, &graph, &error),
                     KG_ERROR_UNSUPPORTED, &error);
        CHECK(!graph && fake->graphs == 0);
    }
    record.times = 20; // more than is kept
    CHECK_STATUS(shared->backend->record_for(shared, NULL, run_both, &record, &graph, &error),
                 KG_ERROR_UNSUPPORTED, &error);
    CHECK(!graph && fake->graphs == 0 && strstr(error.text, "a graph of 40 launches"));
    shared->backend->unload(record.kernel);
    shared->backend->unload(stranger);
    kg_device_close(shared);
}

int main(void)
{
    void (*const tests[])(void) = {graphs, graphs_that_are_renewed};
    return run_apart(tests, sizeof tests / sizeof tests[0]);
}
