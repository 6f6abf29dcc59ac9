// Launches recorded into a graph, and replayed at the cost of one.

#include "device/cuda/cuda_device.h"

#include <stdlib.h>

struct kg_graph {
    struct kg_cuda_device *cuda;
    void *executable;
};

// Launches meant for the NULL stream, which cannot be recorded, go to one of the graph's own. A
// kernel's first launch loads it, which only relaxed recording allows.
static enum kg_status capture(struct kg_cuda_device *cuda,
                              enum kg_status (*run)(void *user, struct kg_error *error), void *user,
                              void **graph, struct kg_error *error)
{
    const struct kg_cuda_driver *driver = &cuda->driver;
    void *stream = NULL;
    int result = driver->stream_make(&stream, KG_CUDA_STREAM_NON_BLOCKING);
    if (!result)
        result = driver->capture_begin(stream, KG_CUDA_CAPTURE_RELAXED);
    enum kg_status status = KG_OK;
    if (!result) {
        cuda->context.stream = stream;
        status = run(user, error);
        cuda->context.stream = NULL;
        result = driver->capture_end(stream, graph);
    }
    if (stream)
        driver->stream_free(stream);
    if (!status && result)
        status = kg_cuda_error(driver, result, "recording a graph", error);
    return status;
}

enum kg_status kg_cuda_record(struct kg_device *device,
                              enum kg_status (*run)(void *user, struct kg_error *error), void *user,
                              struct kg_graph **graph, struct kg_error *error)
{
    struct kg_cuda_device *cuda = (struct kg_cuda_device *)device;
    const struct kg_cuda_driver *driver = &cuda->driver;
    *graph = NULL;
    bool pushed;
    enum kg_status status = kg_cuda_enter(cuda, &pushed, error);
    if (status)
        return status;
    struct kg_graph *made = calloc(1, sizeof *made);
    void *recorded = NULL;
    status = made ? capture(cuda, run, user, &recorded, error) : kg_error_memory(error, "a graph");
    if (!status) {
        made->cuda = cuda;
        int result = driver->graph_prepare(&made->executable, recorded, 0);
        if (result)
            status = kg_cuda_error(driver, result, "preparing a graph", error);
    }
    if (recorded)
        driver->graph_free(recorded);
    kg_cuda_leave(cuda, pushed);
    if (status)
        free(made);
    else
        *graph = made;
    return status;
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
        cuda->driver.executable_free(graph->executable);
        kg_cuda_leave(cuda, pushed);
    }
    free(graph);
}
