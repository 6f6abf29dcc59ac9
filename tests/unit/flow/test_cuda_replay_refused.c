// Whatever keeps a small plan from being replayed, above a driver without a GPU: it is launched.

#include "device/cuda/cuda_device.h"
#include "replay_rig.h"

#include <sys/wait.h>
#include <unistd.h>

// What a graph would run otherwise than a launch does.
static void special_streams(void)
{
    struct kg_plan *plan = plan_of(copy);
    void *streams[] = {make_stream(-5), make_stream(0), KG_CUDA_STREAM_OF_THREAD};
    start(copy_all, 4);
    fake->green = streams[1];
    for (int i = 0; i < 3; i++)
        copy_often(plan, 3 * PATIENCE, streams[i]);
    CHECK(has_run(9 * PATIENCE, 0, 0) && fake->graphs == 0);
    fake->green = NULL;
    drop(plan);
    stream_free(streams[0]);
    stream_free(streams[1]);
}

// Whoever captures a stream finds it unharmed, though a plan is recorded meanwhile, and though the
// NULL stream cannot be told from it.
static void others_capture(void)
{
    struct kg_plan *plan = plan_of(copy);
    void *captured = make_stream(0), *stream = make_stream(0), *graph = NULL;
    void *tensors[] = {memory[0], memory[1]};
    int mode = 0;
    start(copy_all, 4);
    copy_often(plan, PATIENCE + 1, NULL);
    copy_often(plan, PATIENCE, stream);
    CHECK(capture_begin(captured, 0) == 0);
    copy_often(plan, 2, stream);
    CHECK(has_run(2 * PATIENCE, 3, 0));
    CHECK(!device->backend->may_replay(device, NULL));
    CHECK(kg_plan_execute(plan, tensors, NULL) != KG_OK); // as any launch
    CHECK(has_run(2 * PATIENCE, 3, 0));
    CHECK(capture_end(captured, &graph) == 0);
    CHECK(capture_mode(&mode) == 0 && mode == 0); // this thread's is what it was
    graph_free(graph);
    drop(plan);
    stream_free(captured);
    stream_free(stream);
}

// `times` executions with one of the driver's functions failing.
static void fail(const struct kg_plan *plan, const char *function, int n, int times)
{
    fake->fail_in = function;
    fake->result = 801;
    for (int i = 0; i < times; i++)
        if (!copies(plan, n, NULL)) {
            CHECK(false);
            fprintf(stderr, "%s fails\n", function);
        }
    fake->fail_in = NULL;
}

// Nothing is tried twice: whatever it was, it cost enough.
static void recording_fails(void)
{
    static const char *const functions[] = {"cuStreamCreate",
                                            "cuThreadExchangeStreamCaptureMode",
                                            "cuStreamBeginCapture_v2",
                                            "cuStreamEndCapture",
                                            "cuGraphInstantiateWithFlags",
                                            "cuGraphGetNodes",
                                            "cuGraphKernelNodeGetParams_v2"};
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        struct kg_plan *plan = plan_of(copy);
        start(copy_all, 4);
        fail(plan, functions[i], 0, PATIENCE + 2);
        CHECK(fake->graphs == 0);
        copy_often(plan, 2 * PATIENCE, NULL);
        CHECK(has_run(3 * PATIENCE + 2, 0, 0));
        drop(plan);
    }
    static const char *const asked[] = {"cuStreamGetPriority", "cuStreamGetGreenCtx"};
    for (int i = 0; i < 2; i++) {
        struct kg_plan *plan = plan_of(copy);
        void *stream = make_stream(0);
        start(copy_all, 4);
        copy_often(plan, PATIENCE, stream);
        fake->fail_in = asked[i];
        copy_often(plan, 1, stream);
        fake->fail_in = NULL;
        copy_often(plan, 1, stream);
        CHECK(has_run(PATIENCE + 2, 0, 0));
        drop(plan);
        stream_free(stream);
    }
}

// What is unknown for a while is asked again.
static void replaying_fails(void)
{
    struct kg_plan *plan = plan_of(copy);
    void *tensors[] = {memory[0], memory[1]};
    start(copy_all, 4);
    fail(plan, "cuStreamIsCapturing", 0, 2 * PATIENCE);
    copy_often(plan, PATIENCE + 1, NULL);
    CHECK(has_run(3 * PATIENCE, 1, 0));
    fail(plan, "cuStreamIsCapturing", 0, 1);
    CHECK(has_run(3 * PATIENCE + 1, 1, 0));
    fail(plan, "cuGraphExecKernelNodeSetParams_v2", 1, 2);
    CHECK(has_run(3 * PATIENCE + 3, 1, 0));
    CHECK(copies(plan, 1, NULL)); // the graph has still the arguments before
    CHECK(has_run(3 * PATIENCE + 3, 2, 1));
    fake->fail_in = "cuGraphLaunch";
    fake->result = 719;
    CHECK_STATUS(kg_flow_execute(plan, tensors, NULL, &error), KG_ERROR_FAULT, &error);
    CHECK(strstr(error.text, "CUDA_ERROR_LAUNCH_FAILED"));
    fake->fail_in = NULL;
    drop(plan);
}

static void older_drivers(void)
{
    struct kg_cuda_driver *driver = &((struct kg_cuda_device *)device)->driver;
    const struct kg_cuda_driver whole = *driver;
    void *stream = make_stream(0);
    for (int i = 0; i < 7; i++) {
        struct kg_plan *plan = plan_of(copy);
        void **const functions[] = {
            (void **)&driver->stream_state, (void **)&driver->stream_priority,
            (void **)&driver->capture_mode, (void **)&driver->graph_nodes,
            (void **)&driver->node_read,    (void **)&driver->node_renew,
            (void **)&driver->stream_green};
        bool can_do_without = i == 6;
        *functions[i] = NULL;
        start(copy_all, 4);
        copy_often(plan, PATIENCE + 3, stream);
        CHECK(has_run(PATIENCE + (can_do_without ? 0 : 3), can_do_without ? 3 : 0, 0));
        drop(plan);
        *driver = whole;
    }
    stream_free(stream);
}

// The driver refuses the launch too; and what is the parent's stays the parent's.
static void forks(void)
{
    struct kg_plan *plan = plan_of(copy);
    void *tensors[] = {memory[0], memory[1]};
    start(copy_all, 4);
    copy_often(plan, PATIENCE + 1, NULL);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        enum kg_status status = kg_flow_execute(plan, tensors, NULL, &error);
        bool is_refused = status == KG_ERROR_UNSUPPORTED && strstr(error.text, "before the fork");
        is_refused = is_refused && has_run(PATIENCE, 1, 0);
        kg_plan_destroy(plan);
        _exit(is_refused && fake->graphs == 2 ? 0 : 1);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(copies(plan, 0, NULL) && has_run(PATIENCE, 2, 0));
    drop(plan);
}

// Launches cost them nothing: the device takes longer.
static void large_problems(void)
{
    const struct kg_problem *problems[] = {large, busy};
    void *tensors[3];
    for (int i = 0; i < 3; i++)
        CHECK_STATUS(device->backend->allocate(device, 8 << 20, &tensors[i], &error), KG_OK,
                     &error);
    for (int i = 0; i < 2; i++) {
        struct kg_plan *plan = plan_of(problems[i]);
        start(NULL, 0);
        for (int n = 0; n < 2 * PATIENCE; n++)
            CHECK(kg_plan_execute(plan, tensors, NULL) == KG_OK);
        CHECK(fake->launches >= 2 * PATIENCE && fake->replays == 0 && fake->graphs == 0);
        drop(plan);
    }
    for (int i = 0; i < 3; i++)
        device->backend->release(device, tensors[i]);
}

int main(void)
{
    static void (*const tests[])(void) = {special_streams, others_capture, recording_fails,
                                          replaying_fails, older_drivers,  forks,
                                          large_problems};
    return run_all(tests, sizeof tests / sizeof tests[0]);
}
