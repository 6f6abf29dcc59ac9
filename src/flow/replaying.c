// Replaying executions: see replaying.h. Every stream has a graph of its own, because replays of
// one graph never overlap, so that streams would wait for each other; and because a stream keeps
// its workspace, its graph seldom has to be renewed. Whenever a replay is not possible, the
// execution is launched.

#include "flow/replaying.h"

#include <stdlib.h>
#include <string.h>

// The largest problems for which replays paid: tensors of 1 MB and products of 512 x 512 x 512 on
// an H100. Kernels of larger ones take longer than their launches, and may start before those of
// the previous execution have ended, unlike those of graphs.
#define MAX_BYTES (2.25 * (1 << 20))
#define MAX_OPERATIONS 3e8

// Executions before a graph is recorded: recording costs as much as some tens of replays save.
#define PATIENCE 16

enum { MAX_STREAMS = 4 }; // with graphs; executions in other streams are launched

// One stream's graph and its arguments.
struct lane {
    void *stream;
    atomic_flag is_busy; // some thread uses the members below
    int executions;      // before the graph was recorded
    bool is_hopeless;    // recording has failed
    struct kg_graph *graph;
    bool is_known; // the graph's arguments are the following
    void *workspace;
    void *tensors[KG_MAX_TENSORS];
};

// Complete lanes are only ever added, so the list is read without a lock.
struct kg_replay {
    struct kg_device *device;
    const struct kg_prepared *prepared;
    size_t bytes; // of the array of tensor addresses
    atomic_flag is_growing;
    _Atomic int lane_count;
    struct lane lanes[MAX_STREAMS];
};

bool kg_replay_pays(const struct kg_device *device, const struct kg_problem *problem)
{
    return device->backend->record_for && problem->operations < MAX_OPERATIONS &&
           problem->read_bytes + problem->write_bytes < MAX_BYTES;
}

struct kg_replay *kg_replay_create(struct kg_device *device, const struct kg_op *op,
                                   const struct kg_prepared *prepared)
{
    struct kg_replay *replay = calloc(1, sizeof *replay);
    if (!replay)
        return NULL;
    replay->device = device;
    replay->prepared = prepared;
    replay->bytes = (size_t)(op->input_count + op->output_count) * sizeof(void *);
    atomic_flag_clear(&replay->is_growing);
    for (int i = 0; i < MAX_STREAMS; i++)
        atomic_flag_clear(&replay->lanes[i].is_busy);
    return replay;
}

void kg_replay_destroy(struct kg_replay *replay)
{
    if (!replay)
        return;
    for (int i = 0; i < replay->lane_count; i++)
        replay->device->backend->forget(replay->lanes[i].graph);
    free(replay);
}

static struct lane *find_lane(struct kg_replay *replay, const void *stream)
{
    int count = atomic_load_explicit(&replay->lane_count, memory_order_acquire);
    for (int i = 0; i < count; i++)
        if (replay->lanes[i].stream == stream)
            return &replay->lanes[i];
    return NULL;
}

// NULL if there are enough lanes, or another thread adds one right now.
static struct lane *add_lane(struct kg_replay *replay, void *stream)
{
    if (replay->lane_count == MAX_STREAMS || atomic_flag_test_and_set(&replay->is_growing))
        return NULL;
    struct lane *lane = find_lane(replay, stream); // may have been added meanwhile
    int count = replay->lane_count;
    if (!lane && count < MAX_STREAMS) {
        lane = &replay->lanes[count];
        lane->stream = stream;
        atomic_store_explicit(&replay->lane_count, count + 1, memory_order_release);
    }
    atomic_flag_clear(&replay->is_growing);
    return lane;
}

// One execution.
struct run {
    const struct kg_prepared *prepared;
    void *const *tensors;
    void *workspace;
};

static enum kg_status launch(void *user, void *stream, struct kg_error *error)
{
    const struct run *run = user;
    return kg_prepared_run(run->prepared, run->tensors, run->workspace, stream, error);
}

// Returns false if the graph, if any, has other arguments.
static bool record_or_renew(const struct kg_replay *replay, struct lane *lane, struct run *run)
{
    if (lane->graph)
        return kg_prepared_renew(run->prepared, run->tensors, run->workspace, lane->graph, NULL) ==
               KG_OK;
    if (lane->executions++ < PATIENCE)
        return false;
    enum kg_status status = replay->device->backend->record_for(replay->device, lane->stream,
                                                                launch, run, &lane->graph, NULL);
    lane->is_hopeless = status != KG_OK;
    return status == KG_OK;
}

// Records the graph of this execution.
static bool make_ready(const struct kg_replay *replay, struct lane *lane, void *const *tensors,
                       void *workspace)
{
    if (lane->is_hopeless || !replay->device->backend->may_replay(replay->device, lane->stream))
        return false;
    if (lane->is_known && lane->workspace == workspace &&
        memcmp(lane->tensors, tensors, replay->bytes) == 0)
        return true;
    struct run run = {replay->prepared, tensors, workspace};
    lane->is_known = record_or_renew(replay, lane, &run);
    lane->workspace = workspace;
    memcpy(lane->tensors, tensors, replay->bytes);
    return lane->is_known;
}

bool kg_replay_run(struct kg_replay *replay, void *const *tensors, void *workspace, void *stream,
                   enum kg_status *status, struct kg_error *error)
{
    struct lane *lane = find_lane(replay, stream);
    if (!lane)
        lane = add_lane(replay, stream);
    if (!lane || atomic_flag_test_and_set_explicit(&lane->is_busy, memory_order_acquire))
        return false;
    bool is_ready = make_ready(replay, lane, tensors, workspace);
    if (is_ready)
        *status = replay->device->backend->replay(lane->graph, stream, error);
    atomic_flag_clear_explicit(&lane->is_busy, memory_order_release);
    return is_ready;
}

bool kg_replay_is_ready(struct kg_replay *replay, const void *stream)
{
    const struct lane *lane = replay ? find_lane(replay, stream) : NULL;
    return lane && lane->graph && lane->is_known;
}
