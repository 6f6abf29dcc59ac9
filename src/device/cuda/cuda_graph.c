// Records launches into a graph, which is replayed at the cost of one launch. Graphs recorded for
// renewal can be replayed with other arguments.

#include "device/cuda/cuda_device.h"

#include <stdlib.h>

enum { MAX_NODES = 32 };

struct kg_graph {
    struct kg_cuda_device *cuda;
    void *executable;
    void *recorded; // the graph of the nodes; NULL: it cannot be renewed
    int node_count;
    void *nodes[MAX_NODES];
    // By node; the arguments are those of the recording.
    struct kg_cuda_node launches[MAX_NODES];
};

struct recording {
    struct kg_cuda_device *cuda;
    enum kg_status (*run)(void *user, struct kg_error *error);
    void *user;
};

// The NULL stream cannot be captured, so launches for it go to the graph's own stream.
static enum kg_status run_in_place(void *user, void *stream, struct kg_error *error)
{
    const struct recording *recording = user;
    recording->cuda->context.stream = stream;
    enum kg_status status = recording->run(recording->user, error);
    recording->cuda->context.stream = NULL;
    return status;
}

// A kernel's first launch loads it, which only the relaxed capture mode allows.
static enum kg_status capture(const struct kg_cuda_driver *driver, kg_stream_run *run, void *user,
                              void **recorded, struct kg_error *error)
{
    void *stream = NULL;
    int result = driver->stream_make(&stream, KG_CUDA_STREAM_NON_BLOCKING);
    if (!result)
        result = driver->capture_begin(stream, KG_CUDA_CAPTURE_RELAXED);
    enum kg_status status = KG_OK;
    if (!result) {
        status = run(user, stream, error);
        result = driver->capture_end(stream, recorded);
    }
    if (stream)
        driver->stream_free(stream);
    if (!status && result)
        status = kg_cuda_error(driver, result, "recording a graph", error);
    return status;
}

static void free_recorded(struct kg_graph *graph)
{
    if (graph->recorded)
        graph->cuda->driver.graph_free(graph->recorded);
    graph->recorded = NULL;
}

static void free_graph(struct kg_graph *graph)
{
    if (graph->executable)
        graph->cuda->driver.executable_free(graph->executable);
    free_recorded(graph);
    free(graph);
}

static enum kg_status make_graph(struct kg_cuda_device *cuda, kg_stream_run *run, void *user,
                                 struct kg_graph **graph, struct kg_error *error)
{
    struct kg_graph *made = calloc(1, sizeof *made);
    if (!made)
        return kg_error_memory(error, "a graph");
    made->cuda = cuda;
    enum kg_status status = capture(&cuda->driver, run, user, &made->recorded, error);
    if (!status) {
        int result = cuda->driver.graph_prepare(&made->executable, made->recorded, 0);
        if (result)
            status = kg_cuda_error(&cuda->driver, result, "preparing a graph", error);
    }
    if (status)
        free_graph(made);
    else
        *graph = made;
    return status;
}

enum kg_status kg_cuda_record(struct kg_device *device,
                              enum kg_status (*run)(void *user, struct kg_error *error), void *user,
                              struct kg_graph **graph, struct kg_error *error)
{
    struct kg_cuda_device *cuda = (struct kg_cuda_device *)device;
    struct recording recording = {cuda, run, user};
    *graph = NULL;
    bool pushed;
    enum kg_status status = kg_cuda_enter(cuda, &pushed, error);
    if (status)
        return status;
    status = make_graph(cuda, run_in_place, &recording, graph, error);
    if (!status)
        free_recorded(*graph);
    kg_cuda_leave(cuda, pushed);
    return status;
}

// Does the stream behave like a graph's launches: default priority, the whole device, in order? If
// a property is unknown, the answer is no.
static bool is_ordinary(const struct kg_cuda_driver *driver, void *stream)
{
    int priority = 0;
    void *green = NULL;
    if (!stream)
        return true;
    if (stream == KG_CUDA_STREAM_OF_THREAD || driver->stream_priority(stream, &priority))
        return false;
    if (driver->stream_green && driver->stream_green(stream, &green))
        return false;
    return priority == 0 && !green;
}

static int find_node(const struct kg_graph *graph, const void *function)
{
    for (int i = 0; i < graph->node_count; i++)
        if (graph->launches[i].function == function)
            return i;
    return -1;
}

// Nodes are identified by their functions: every launch has a different one.
static enum kg_status read_nodes(struct kg_graph *graph, struct kg_error *error)
{
    const struct kg_cuda_driver *driver = &graph->cuda->driver;
    size_t count = 0;
    int result = driver->graph_nodes(graph->recorded, NULL, &count);
    if (!result && (count == 0 || count > MAX_NODES))
        return kg_error_set(error, KG_ERROR_UNSUPPORTED, "a graph of %zu launches", count);
    if (!result)
        result = driver->graph_nodes(graph->recorded, graph->nodes, &count);
    for (; !result && graph->node_count < (int)count; graph->node_count++) {
        struct kg_cuda_node *launch = &graph->launches[graph->node_count];
        result = driver->node_read(graph->nodes[graph->node_count], launch);
        if (!result && (!launch->function || find_node(graph, launch->function) >= 0))
            return kg_error_set(error, KG_ERROR_UNSUPPORTED, "launches that look the same");
        launch->extra = NULL;
    }
    return result ? kg_cuda_error(driver, result, "reading a graph", error) : KG_OK;
}

enum kg_status kg_cuda_record_for(struct kg_device *device, void *stream, kg_stream_run *run,
                                  void *user, struct kg_graph **graph, struct kg_error *error)
{
    struct kg_cuda_device *cuda = (struct kg_cuda_device *)device;
    const struct kg_cuda_driver *driver = &cuda->driver;
    *graph = NULL;
    if (!driver->stream_priority || !driver->capture_mode || !driver->graph_nodes ||
        !driver->node_read || !driver->node_renew)
        return kg_error_set(error, KG_ERROR_UNSUPPORTED, "a driver that renews no graphs");
    bool pushed;
    enum kg_status status = kg_cuda_enter(cuda, &pushed, error);
    if (status)
        return status;
    // Another thread may be capturing a stream, which this must not invalidate.
    int mode = KG_CUDA_CAPTURE_RELAXED;
    if (!is_ordinary(driver, stream) || driver->capture_mode(&mode)) {
        status = kg_error_set(error, KG_ERROR_UNSUPPORTED, "a stream that is like no other");
    } else {
        status = make_graph(cuda, run, user, graph, error);
        if (!status)
            status = read_nodes(*graph, error);
        if (status && *graph) {
            free_graph(*graph);
            *graph = NULL;
        }
        driver->capture_mode(&mode);
    }
    kg_cuda_leave(cuda, pushed);
    return status;
}

static bool is_as_recorded(const struct kg_cuda_node *launch, const struct kg_grid *grid)
{
    for (int i = 0; i < 3; i++)
        if (grid->blocks[i] != launch->blocks[i] || grid->threads[i] != (int)launch->threads[i])
            return false;
    return grid->shared == (int)launch->shared;
}

enum kg_status kg_cuda_renew(struct kg_graph *graph, const struct kg_kernel *kernel,
                             const struct kg_launch *launch, struct kg_error *error)
{
    const struct kg_cuda_device *cuda = graph->cuda;
    bool pushed = false;
    int result = launch->is_entered ? 0 : kg_cuda_switch(cuda, &pushed);
    if (result)
        return kg_cuda_error(&cuda->driver, result, "renewing a graph", error);
    bool fits = true;
    for (int i = 0; i < launch->grid_count && fits && !result; i++) {
        const struct kg_grid *grid = &launch->grids[i];
        int n = find_node(graph, kg_cuda_function_of(kernel, i));
        fits = kg_cuda_is_empty(grid) ? n < 0 : n >= 0 && is_as_recorded(&graph->launches[n], grid);
        if (!fits || n < 0)
            continue;
        graph->launches[n].arguments = launch->arguments;
        result = cuda->driver.node_renew(graph->executable, graph->nodes[n], &graph->launches[n]);
    }
    kg_cuda_leave(cuda, pushed);
    if (!fits)
        return kg_error_set(error, KG_ERROR_UNSUPPORTED, "a graph of other grids");
    return result ? kg_cuda_error(&cuda->driver, result, "renewing a graph", error) : KG_OK;
}

// Without a context there is nothing to replay. In a fork the driver does not answer.
bool kg_cuda_may_replay(struct kg_device *device, void *stream)
{
    const struct kg_cuda_device *cuda = (const struct kg_cuda_device *)device;
    const struct kg_cuda_driver *driver = &cuda->driver;
    int state = KG_CUDA_CAPTURE_ACTIVE;
    bool pushed;
    if (!driver->stream_state ||
        atomic_load_explicit(&cuda->context.owner, memory_order_acquire) == 0 ||
        kg_cuda_switch(cuda, &pushed))
        return false;
    int result = driver->stream_state(stream ? stream : cuda->context.stream, &state);
    kg_cuda_leave(cuda, pushed);
    return !result && state == KG_CUDA_CAPTURE_NONE;
}

enum kg_status kg_cuda_replay(struct kg_graph *graph, void *stream, struct kg_error *error)
{
    const struct kg_cuda_device *cuda = graph->cuda;
    bool pushed;
    int result = kg_cuda_switch(cuda, &pushed);
    if (!result) {
        result = cuda->driver.executable_launch(graph->executable, stream);
        kg_cuda_leave(cuda, pushed);
    }
    return result ? kg_cuda_error(&cuda->driver, result, "replaying a graph", error) : KG_OK;
}

void kg_cuda_forget(struct kg_graph *graph)
{
    bool pushed;
    if (!graph)
        return;
    struct kg_cuda_device *cuda = graph->cuda;
    if (kg_cuda_is_live(cuda) && kg_cuda_enter(cuda, &pushed, NULL) == KG_OK) {
        free_graph(graph);
        kg_cuda_leave(cuda, pushed);
    } else {
        free(graph);
    }
}
