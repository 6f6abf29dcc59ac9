// The fake driver's streams, what they capture, and graphs.

#include "support/fake_parts.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define CAPTURE_UNSUPPORTED 900
#define CAPTURE_INVALIDATED 901
#define CAPTURE_IMPLICIT 906

enum { MOST_ARGUMENTS = 8, MOST_NODES = 256, NON_BLOCKING = 1, GLOBAL = 0, RELAXED = 2 };

struct stream {
    int number, priority;
    unsigned flags;
};
struct node {
    struct graph *graph;
    struct launch launch;
    int64_t values[MOST_ARGUMENTS];
};
struct graph {
    const struct graph *template; // of one that is executable
    int count;
    struct node nodes[MOST_NODES];
};

// What several threads use.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct capture {
    struct stream *stream; // NULL: none
    struct graph *graph;
    int mode;
    bool is_ruined;
} captures[8];
static struct graph *executables[16]; // alive, as far as they fit here
static _Thread_local int mode;        // of capturing

bool fake_is_launched(const struct function functions[FAULT + 1])
{
    bool found = false;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < 16; i++)
        for (int n = 0; executables[i] && n < executables[i]->count; n++) {
            const struct function *function = executables[i]->nodes[n].launch.function;
            found = found || (function >= functions && function <= functions + FAULT);
        }
    pthread_mutex_unlock(&lock);
    return found;
}

// Arguments are copied while they are there.
static void set_node(struct node *node, const struct launch *launch)
{
    node->launch = *launch;
    node->launch.arguments = NULL;
    int count = launch->function->number < K_FUNCTIONS ? 0 : fake_driver.arguments;
    for (int i = 0; launch->arguments && i < count; i++)
        memcpy(&node->values[i], launch->arguments[i], sizeof node->values[i]);
    if (launch->arguments && count == 4 && fake_is_stride(node->values[3]))
        memcpy(&node->values[4], launch->arguments[4], sizeof node->values[4]);
}

static struct capture *find_capture(const void *stream)
{
    struct capture *found = NULL;
    for (int i = 0; i < 8 && !found; i++)
        if (captures[i].stream && captures[i].stream == stream)
            found = &captures[i];
    return found;
}

int fake_ask_captured(const void *stream, bool *is_captured)
{
    int result = 0;
    pthread_mutex_lock(&lock);
    struct capture *capture = find_capture(stream);
    for (int i = 0; i < 8 && !stream; i++)
        if (captures[i].stream && !(captures[i].stream->flags & NON_BLOCKING))
            result = CAPTURE_IMPLICIT;
    if (capture && capture->is_ruined)
        result = CAPTURE_INVALIDATED;
    *is_captured = capture != NULL;
    pthread_mutex_unlock(&lock);
    return result;
}

// What no thread may do while streams are captured, unless it says that it knows.
static int refuse_unsafe(void)
{
    bool is_refused = false;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < 8 && mode != RELAXED; i++)
        if (captures[i].stream && captures[i].mode == GLOBAL)
            captures[i].is_ruined = is_refused = true;
    pthread_mutex_unlock(&lock);
    return is_refused ? CAPTURE_UNSUPPORTED : 0;
}

int fake_add_node(const void *stream, const struct launch *launch)
{
    pthread_mutex_lock(&lock);
    struct graph *graph = find_capture(stream)->graph;
    int result = graph->count < MOST_NODES ? 0 : OUT_OF_MEMORY;
    if (!result) {
        struct node *node = &graph->nodes[graph->count++];
        node->graph = graph;
        set_node(node, launch);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

EXPORT int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority);
int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority)
{
    GATE;
    struct stream *made = calloc(1, sizeof *made);
    *made = (struct stream){.number = 9, .priority = priority, .flags = flags};
    *stream = made;
    return 0;
}

EXPORT int cuStreamCreate(void **stream, unsigned flags);
int cuStreamCreate(void **stream, unsigned flags)
{
    GATE;
    int refused = refuse_unsafe();
    return refused ? refused : cuStreamCreateWithPriority(stream, flags, 0);
}

EXPORT int cuStreamGetPriority(const struct stream *stream, int *priority);
int cuStreamGetPriority(const struct stream *stream, int *priority)
{
    GATE;
    *priority = stream->priority;
    return 0;
}

EXPORT int cuStreamGetGreenCtx(void *stream, void **context);
int cuStreamGetGreenCtx(void *stream, void **context)
{
    GATE;
    *context = stream == fake_driver.green ? stream : NULL;
    return 0;
}

// What was captured, when the capture is good; it ends in any case.
static struct graph *end_capture(const void *stream)
{
    struct graph *graph = NULL;
    pthread_mutex_lock(&lock);
    struct capture *capture = find_capture(stream);
    if (capture) {
        graph = capture->graph;
        if (capture->is_ruined) {
            free(graph);
            graph = NULL;
        }
        *capture = (struct capture){.stream = NULL};
    }
    pthread_mutex_unlock(&lock);
    return graph;
}

EXPORT int cuStreamDestroy_v2(void *stream);
int cuStreamDestroy_v2(void *stream)
{
    GATE;
    free(end_capture(stream));
    free(stream);
    return 0;
}

EXPORT int cuStreamIsCapturing(void *stream, int *state);
int cuStreamIsCapturing(void *stream, int *state)
{
    GATE;
    bool is_captured;
    int result = fake_ask_captured(stream, &is_captured);
    *state = is_captured ? 1 + (result == CAPTURE_INVALIDATED) : 0;
    return result == CAPTURE_INVALIDATED ? 0 : result;
}

EXPORT int cuThreadExchangeStreamCaptureMode(int *wanted);
int cuThreadExchangeStreamCaptureMode(int *wanted)
{
    GATE;
    int before = mode;
    mode = *wanted;
    *wanted = before;
    return 0;
}

EXPORT int cuStreamBeginCapture_v2(void *stream, int how);
int cuStreamBeginCapture_v2(void *stream, int how)
{
    GATE;
    fake_note("begin %d %d\n", *(int *)stream, how);
    struct capture *free_one = NULL;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < 8 && !free_one; i++)
        free_one = captures[i].stream ? NULL : &captures[i];
    if (free_one)
        *free_one = (struct capture){stream, calloc(1, sizeof(struct graph)), how, false};
    pthread_mutex_unlock(&lock);
    return free_one ? 0 : OUT_OF_MEMORY;
}

EXPORT int cuStreamEndCapture(void *stream, void **graph);
int cuStreamEndCapture(void *stream, void **graph)
{
    GATE;
    fake_note("end %d\n", *(int *)stream);
    *graph = end_capture(stream);
    fake_driver.graphs += *graph != NULL;
    return *graph ? 0 : CAPTURE_INVALIDATED;
}

EXPORT int cuGraphDestroy(void *graph);
int cuGraphDestroy(void *graph)
{
    GATE;
    free(graph);
    fake_driver.graphs--;
    return 0;
}

// Keeps `after` in the place of `before`; NULL is nothing.
static void keep_executable(const struct graph *before, struct graph *after)
{
    int i = 0;
    pthread_mutex_lock(&lock);
    while (i < 16 && executables[i] != before)
        i++;
    if (i < 16)
        executables[i] = after;
    pthread_mutex_unlock(&lock);
}

EXPORT int cuGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags);
int cuGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags)
{
    GATE;
    int refused = refuse_unsafe();
    if (refused || !graph || flags)
        return refused ? refused : 1;
    struct graph *made = malloc(sizeof *made);
    *made = *(struct graph *)graph;
    made->template = graph;
    *executable = made;
    keep_executable(NULL, made);
    fake_driver.graphs++;
    return 0;
}

EXPORT int cuGraphExecDestroy(void *executable);
int cuGraphExecDestroy(void *executable)
{
    GATE;
    keep_executable(executable, NULL);
    free(executable);
    fake_driver.graphs--;
    return 0;
}

EXPORT int cuGraphGetNodes(struct graph *graph, void **nodes, size_t *count);
int cuGraphGetNodes(struct graph *graph, void **nodes, size_t *count)
{
    GATE;
    for (int i = 0; nodes && i < (int)*count; i++) // the last comes first: there is no order
        nodes[i] = i < graph->count ? &graph->nodes[graph->count - 1 - i] : NULL;
    if (!nodes || *count > (size_t)graph->count)
        *count = (size_t)graph->count;
    return 0;
}

EXPORT int cuGraphKernelNodeGetParams_v2(const struct node *node, struct launch *launch);
int cuGraphKernelNodeGetParams_v2(const struct node *node, struct launch *launch)
{
    GATE;
    *launch = node->launch;
    return 0;
}

EXPORT int cuGraphExecKernelNodeSetParams_v2(struct graph *executable, const struct node *node,
                                             const struct launch *launch);
int cuGraphExecKernelNodeSetParams_v2(struct graph *executable, const struct node *node,
                                      const struct launch *launch)
{
    GATE;
    if (node->graph != executable->template || launch->extra)
        return 1;
    set_node(&executable->nodes[node - node->graph->nodes], launch);
    fake_driver.renewals++;
    return 0;
}

EXPORT int cuGraphLaunch(struct graph *executable, void *stream);
int cuGraphLaunch(struct graph *executable, void *stream)
{
    GATE;
    bool is_captured;
    int result = fake_ask_captured(stream, &is_captured);
    if (result)
        return result;
    if (is_captured) {
        pthread_mutex_lock(&lock);
        find_capture(stream)->is_ruined = true;
        pthread_mutex_unlock(&lock);
        return CAPTURE_UNSUPPORTED;
    }
    fake_note("replay%s\n", stream ? " in a stream" : "");
    fake_driver.replays++;
    for (int i = 0; i < executable->count; i++) {
        struct node *node = &executable->nodes[i];
        void *arguments[MOST_ARGUMENTS];
        for (int n = 0; n < MOST_ARGUMENTS; n++)
            arguments[n] = &node->values[n];
        if (node->launch.function->number >= K_FUNCTIONS)
            fake_run(node->launch.function, arguments);
    }
    return 0;
}
