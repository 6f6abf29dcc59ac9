// Small plans are replayed as graphs, above a driver without a GPU: when, and with whose arguments.

#include "flow/replaying.h"
#include "flow/workspaces.h"
#include "replay_rig.h"

#include <pthread.h>

enum { SEEN = 8 };

// The last functions that ran, and the addresses they got.
static struct call {
    intptr_t function; // wide, so that nothing lies between
    char *first, *second, *third;
} seen[SEEN];
static int seen_count;

static void remember(int function, void **arguments)
{
    seen[seen_count++ % SEEN] = (struct call){function, *(char **)arguments[0],
                                              *(char **)arguments[1], *(char **)arguments[2]};
}

static void copy_and_remember(int function, void **arguments)
{
    remember(function, arguments);
    fake->copy(arguments);
}

static void launched_then_replayed(void)
{
    struct kg_plan *plan = plan_of(copy);
    start(copy_all, 4);
    copy_often(plan, PATIENCE, NULL);
    CHECK(has_run(PATIENCE, 0, 0) && fake->graphs == 0);
    CHECK(!kg_replay_is_ready(plan->replay, NULL));
    copy_often(plan, 5, NULL);
    CHECK(kg_replay_is_ready(plan->replay, NULL) && !kg_replay_is_ready(plan->replay, memory));
    CHECK(has_run(PATIENCE, 5, 0)); // no renewal: what was recorded is what is replayed
    CHECK(copies(plan, 1, NULL));
    CHECK(has_run(PATIENCE, 6, 1));
    CHECK(copies(plan, 1, NULL));
    CHECK(has_run(PATIENCE, 7, 1));
    CHECK(copies_at(plan, memory[2], memory[5], NULL)); // one of the two
    CHECK(has_run(PATIENCE, 8, 2));
    copy_often(plan, 2, NULL);
    CHECK(has_run(PATIENCE, 10, 3));
    drop(plan);
}

static void run_pair(const struct kg_plan *plan, int n, void *stream)
{
    void *tensors[] = {memory[n], memory[n + 1], memory[n + 2]};
    CHECK(kg_plan_execute(plan, tensors, stream) == KG_OK);
}

// Every kernel has its own arguments, and every stream its own workspace, which is an argument too.
static void two_kernels(void)
{
    struct kg_plan *plan = plan_of(pair);
    struct call launched[SEEN], *a = launched, *b = seen;
    int count = plan->built->choice.count;
    void *stream = make_stream(0);
    struct kg_buffer held;
    CHECK(count == 2 && kg_prepared_workspace(plan->prepared) > 0);
    start(remember, 3);
    seen_count = 0;
    run_pair(plan, 0, NULL);
    int grids = seen_count;
    memcpy(launched, seen, sizeof launched);
    CHECK(grids >= count && grids <= SEEN && a[0].first == (char *)memory[0]);
    for (int i = 1; i < PATIENCE; i++)
        run_pair(plan, 0, NULL);
    seen_count = 0;
    run_pair(plan, 0, NULL);
    CHECK(has_run(PATIENCE * grids, 1, 0) && seen_count == grids);
    CHECK(memcmp(launched, seen, (size_t)grids * sizeof *seen) == 0);
    seen_count = 0;
    run_pair(plan, 1, NULL);
    CHECK(has_run(PATIENCE * grids, 2, grids) && seen_count == grids);
    for (int i = 0; i < grids; i++) {
        CHECK(a[i].function == b[i].function);
        for (int m = 0; m < 3; m++) {
            CHECK((a[i].first == (char *)memory[m]) == (b[i].first == (char *)memory[m + 1]));
            CHECK((a[i].second == (char *)memory[m]) == (b[i].second == (char *)memory[m + 1]));
        }
    }
    char *workspace = b[0].third; // where the sum goes, behind the tensors
    CHECK(b[1].third == workspace);
    run_pair(plan, 0, stream); // its own piece, while that of the NULL stream is in use
    run_pair(plan, 1, NULL);
    CHECK(has_run((PATIENCE + 1) * grids, 3, grids) && fake->blocks == 2 * SETS + 2);
    CHECK(kg_workspaces_take(plan->workspaces, NULL, 1, &held, &error) == KG_OK); // by another
    seen_count = 0;
    run_pair(plan, 1, NULL);
    CHECK(has_run((PATIENCE + 1) * grids, 4, 2 * grids) && fake->blocks == 2 * SETS + 3);
    CHECK(b[0].first == (char *)memory[1] && b[0].third != workspace && b[1].third == b[0].third);
    kg_workspaces_return(plan->workspaces, NULL, held);
    drop(plan);
    stream_free(stream);
}

// Recorded as launches, at any time; and no step towards a graph.
static void captured_streams(void)
{
    struct kg_plan *plan = plan_of(copy);
    void *stream = make_stream(0), *graph = NULL, *executable = NULL;
    start(copy_all, 4);
    copy_often(plan, 1, stream);
    for (int turn = 0; turn < 2; turn++) {
        void *tensors[] = {memory[2], memory[3]};
        memory[3][0] = -1;
        CHECK(capture_begin(stream, 0) == 0);
        for (int i = 0; i < 2 * PATIENCE; i++)
            CHECK(kg_plan_execute(plan, tensors, stream) == KG_OK);
        CHECK(capture_end(stream, &graph) == 0 && memory[3][0] == -1);
        CHECK(graph_prepare(&executable, graph, 0) == 0 && graph_launch(executable, NULL) == 0);
        CHECK(memory[3][0] == memory[2][0]);
        executable_free(executable);
        graph_free(graph);
        CHECK(has_run(turn ? PATIENCE : 1, turn ? 6 : 1, 0));
        copy_often(plan, turn ? 1 : PATIENCE + 3, stream);
        CHECK(has_run(PATIENCE, turn ? 7 : 5, 0)); // of which each turn launched one itself
    }
    drop(plan);
    stream_free(stream);
}

struct batch {
    struct kg_plan *plan;
    int runs;
};

static enum kg_status execute_batch(void *user, struct kg_error *own)
{
    const struct batch *batch = user;
    enum kg_status status = KG_OK;
    void *tensors[] = {memory[0], memory[1]};
    for (int i = 0; i < batch->runs && !status; i++)
        status = kg_flow_execute(batch->plan, tensors, NULL, own);
    return status;
}

// Where what is given to the NULL stream is recorded, as for timing.
static void recorded_batches(void)
{
    struct kg_graph *graph = NULL;
    struct batch batch = {plan_of(copy), 3};
    start(copy_all, 4);
    copy_often(batch.plan, PATIENCE + 1, NULL);
    memory[1][0] = -1;
    CHECK_STATUS(device->backend->record(device, execute_batch, &batch, &graph, &error), KG_OK,
                 &error);
    CHECK(memory[1][0] == -1 && has_run(PATIENCE, 1, 0));
    CHECK_STATUS(device->backend->replay(graph, NULL, &error), KG_OK, &error);
    CHECK(memory[1][0] == memory[0][0] && has_run(PATIENCE, 2, 0));
    device->backend->forget(graph);
    drop(batch.plan);
}

// Another function runs there, which the graph has not; it is as good as before afterwards.
static void unaligned_tensors(void)
{
    struct kg_plan *plan = plan_of(wide);
    start(copy_and_remember, 4);
    copy_often(plan, PATIENCE + 1, NULL);
    intptr_t function = seen[(seen_count - 1) % SEEN].function;
    for (int i = 0; i < 2; i++) {
        CHECK(copies_at(plan, memory[0] + 1, memory[1] + 1, NULL));
        CHECK(has_run(PATIENCE + 1 + i, 1 + i, i));
        CHECK(seen[(seen_count - 1) % SEEN].function != function);
        CHECK(copies(plan, 0, NULL));
        CHECK(seen[(seen_count - 1) % SEEN].function == function);
        CHECK(has_run(PATIENCE + 1 + i, 2 + i, 1 + i));
    }
    drop(plan);
    plan = plan_of(wide); // and the other way round
    start(copy_and_remember, 4);
    for (int i = 0; i <= PATIENCE; i++)
        CHECK(copies_at(plan, memory[0] + 1, memory[1] + 1, NULL));
    CHECK(copies(plan, 0, NULL) && has_run(PATIENCE + 1, 1, 0));
    CHECK(seen[(seen_count - 1) % SEEN].function == function);
    drop(plan);
}

// As many as have graphs, each its own: none waits for another, nor renews what another uses.
static void streams_are_apart(void)
{
    struct kg_plan *plan = plan_of(copy);
    void *streams[5] = {NULL};
    start(copy_all, 4);
    for (int i = 1; i < 5; i++)
        streams[i] = make_stream(0);
    for (int turn = 0; turn < PATIENCE + 2; turn++)
        for (int i = 0; i < 5; i++)
            CHECK(copies(plan, i % SETS, streams[i]));
    CHECK(has_run(4 * PATIENCE + PATIENCE + 2, 4 * 2, 0) && fake->graphs == 4 * 2);
    drop(plan);
    for (int i = 1; i < 5; i++)
        stream_free(streams[i]);
}

static void two_plans(void)
{
    struct kg_plan *one = plan_of(copy), *other = plan_of(copy);
    start(copy_all, 4);
    for (int i = 0; i < PATIENCE + 3; i++) {
        CHECK(copies(one, 0, NULL));
        CHECK(copies(other, 1, NULL));
    }
    CHECK(has_run(2 * PATIENCE, 6, 0) && fake->graphs == 4);
    kg_plan_destroy(one);
    CHECK(fake->graphs == 2 && fake->stale == 0);
    CHECK(copies(other, 1, NULL) && has_run(2 * PATIENCE, 7, 0));
    drop(other);
}

enum { THREADS = 6, TURNS = 400 };

struct worker {
    pthread_t thread;
    const struct kg_plan *plan;
    void *stream;
    float *tensors[4];
    int wrong;
};

// Twice into one pair of tensors, once into another.
static void *work(void *user)
{
    struct worker *worker = user;
    for (int turn = 0; turn < TURNS; turn++) {
        float *from = worker->tensors[turn % 3 ? 0 : 2], *to = worker->tensors[turn % 3 ? 1 : 3];
        for (int i = 0; i < SMALL; i++)
            from[i] = (float)(turn + i);
        void *tensors[] = {from, to};
        bool is_right = kg_plan_execute(worker->plan, tensors, worker->stream) == KG_OK &&
                        memcmp(from, to, SMALL * sizeof *to) == 0;
        worker->wrong += !is_right;
    }
    return NULL;
}

// In two streams, of three threads each.
static void threads(void)
{
    struct worker workers[THREADS] = {{.plan = NULL}};
    struct kg_plan *plan = plan_of(copy);
    void *stream = make_stream(0);
    start(copy_all, 4);
    for (int i = 0; i < THREADS; i++) {
        workers[i].plan = plan;
        workers[i].stream = i % 2 ? stream : NULL;
        for (int n = 0; n < 4; n++)
            CHECK_STATUS(device->backend->allocate(device, SMALL * sizeof(float),
                                                   (void **)&workers[i].tensors[n], &error),
                         KG_OK, &error);
    }
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        CHECK(workers[i].wrong == 0);
        for (int n = 0; n < 4; n++)
            device->backend->release(device, workers[i].tensors[n]);
    }
    CHECK(fake->launches + fake->replays == THREADS * TURNS);
    CHECK(fake->replays > 0 && fake->graphs == 4);
    drop(plan);
    stream_free(stream);
}

int main(void)
{
    static void (*const tests[])(void) = {
        launched_then_replayed, two_kernels,       captured_streams, recorded_batches,
        unaligned_tensors,      streams_are_apart, two_plans,        threads};
    return run_all(tests, sizeof tests / sizeof tests[0]);
}
