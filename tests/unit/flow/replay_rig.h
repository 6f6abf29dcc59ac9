// What tests of replayed plans stand on: a driver without a GPU, problems, and memory of the
// device.

#ifndef KG_TESTS_UNIT_FLOW_REPLAY_STAND_H
#define KG_TESTS_UNIT_FLOW_REPLAY_STAND_H

#include "flow/plan_handle.h"
#include "support/fake_driver.h"
#include "support/folder.h"
#include "test.h"

enum { PATIENCE = 16, SMALL = 64, WIDE = 131072, SETS = 3 };

static char folder[] = "/tmp/kg-test-replay-XXXXXX";
static struct fake_driver *fake;
static struct kg_context *context;
static struct kg_device *device;
static struct kg_error error;
// Copies, the second in vectors; one with two kernels and a workspace; and what moves and computes
// too much.
static struct kg_problem *copy, *wide, *pair, *large, *busy;
static float *memory[2 * SETS]; // of the device

// The driver's, which callers use themselves.
static int (*stream_make)(void **stream, unsigned flags, int priority);
static int (*stream_free)(void *stream);
static int (*capture_mode)(int *mode);
static int (*capture_begin)(void *stream, int mode);
static int (*capture_end)(void *stream, void **graph);
static int (*graph_prepare)(void **executable, void *graph, unsigned long long flags);
static int (*graph_launch)(void *executable, void *stream);
static int (*graph_free)(void *graph);
static int (*executable_free)(void *executable);

static inline void copy_all(int function, void **arguments)
{
    (void)function;
    fake->copy(arguments);
}

static inline void start(void (*run)(int function, void **arguments), int arguments)
{
    fake->run = run;
    fake->arguments = arguments;
    fake->launches = fake->replays = fake->renewals = 0;
}

static inline bool has_run(int launches, int replays, int renewals)
{
    bool is_so =
        fake->launches == launches && fake->replays == replays && fake->renewals == renewals;
    if (!is_so)
        fprintf(stderr, "%d launches, %d replays, %d renewals\n", fake->launches, fake->replays,
                fake->renewals);
    return is_so;
}

static inline struct kg_problem *problem_of(const char *text, const char *name,
                                            const struct kg_binding *bindings, int count)
{
    struct kg_op *op;
    struct kg_problem *problem = NULL;
    CHECK(kg_op_parse(context, name, text, strlen(text), name, &op) == KG_OK);
    CHECK(kg_problem_create(context, op, bindings, count, &problem) == KG_OK);
    kg_op_destroy(op);
    return problem;
}

static inline struct kg_plan *plan_of(const struct kg_problem *problem)
{
    struct kg_plan *plan = NULL;
    CHECK(kg_plan_create(problem, device, KG_RIGOR_ESTIMATE, 0, &plan) == KG_OK);
    return plan;
}

// After which nothing of it is left.
static inline void drop(struct kg_plan *plan)
{
    kg_plan_destroy(plan);
    CHECK(fake->graphs == 0 && fake->modules == 0 && fake->stale == 0);
}

static inline void *make_stream(int priority)
{
    void *stream = NULL;
    CHECK(stream_make(&stream, 0, priority) == 0);
    return stream;
}

// Copies something new, the n-th pair of tensors, and looks at the result.
static inline bool copies_at(const struct kg_plan *plan, float *from, float *to, void *stream)
{
    static float value;
    for (int i = 0; i < SMALL; i++)
        from[i] = value += 1;
    void *tensors[] = {from, to};
    return kg_plan_execute(plan, tensors, stream) == KG_OK &&
           memcmp(from, to, SMALL * sizeof *to) == 0;
}

static inline bool copies(const struct kg_plan *plan, int n, void *stream)
{
    return copies_at(plan, memory[2 * n], memory[2 * n + 1], stream);
}

static inline void copy_often(const struct kg_plan *plan, int times, void *stream)
{
    for (int i = 0; i < times; i++)
        CHECK(copies(plan, 0, stream));
}

static inline void find_functions(void)
{
    const struct {
        void *place;
        const char *name;
    } functions[] = {{&stream_make, "cuStreamCreateWithPriority"},
                     {&stream_free, "cuStreamDestroy_v2"},
                     {&capture_mode, "cuThreadExchangeStreamCaptureMode"},
                     {&capture_begin, "cuStreamBeginCapture_v2"},
                     {&capture_end, "cuStreamEndCapture"},
                     {&graph_prepare, "cuGraphInstantiateWithFlags"},
                     {&graph_launch, "cuGraphLaunch"},
                     {&graph_free, "cuGraphDestroy"},
                     {&executable_free, "cuGraphExecDestroy"}};
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        CHECK((*(void **)functions[i].place = dlsym(library, functions[i].name)) != NULL);
}

static inline void set_up(void)
{
    struct kg_options options = {.home = folder};
    static const char copies_text[] = "op f(x: f32[P]) -> (y: f32[P]) { y[p] = x[p] }";
    CHECK(kg_context_create(&options, &context) == KG_OK);
    CHECK(kg_context_device(context, "cuda:0", &device) == KG_OK);
    copy = problem_of(copies_text, "f", (struct kg_binding[]){{"P", "64"}}, 1);
    wide = problem_of(copies_text, "f", (struct kg_binding[]){{"P", "131072"}}, 1);
    large = problem_of(copies_text, "f", (struct kg_binding[]){{"P", "1048576"}}, 1);
    pair = problem_of("op g(x: f32[P, D]) -> (s: f32[D], y: f32[P, D])\n"
                      "{ s[d] = sum(p) x[p, d]\n y[p, d] = x[p, d] / s[d] }",
                      "g", (struct kg_binding[]){{"P", "512"}, {"D", "64"}}, 2);
    busy = problem_of("op h(a: f16[N, N], b: f16[N, N]) -> (c: f16[N, N])\n"
                      "{ c[m, n] = sum(k) a[m, k] * b[k, n] }",
                      "h", (struct kg_binding[]){{"N", "560"}}, 1);
    for (int i = 0; i < 2 * SETS; i++)
        CHECK_STATUS(device->backend->allocate(device, (WIDE + 1) * sizeof(float),
                                               (void **)&memory[i], &error),
                     KG_OK, &error);
    find_functions();
}

static inline void clean_up(void)
{
    for (int i = 0; i < 2 * SETS; i++)
        device->backend->release(device, memory[i]);
    kg_problem_destroy(copy);
    kg_problem_destroy(wide);
    kg_problem_destroy(pair);
    kg_problem_destroy(large);
    kg_problem_destroy(busy);
    kg_context_destroy(context);
    CHECK(fake->blocks == 0 && fake->contexts == 0);
    folder_remove(folder);
}

// Runs the tests; the program's exit status.
static inline int run_all(void (*const *tests)(void), size_t count)
{
    CHECK(folder_make(folder));
    fake = fake_driver_open();
    if (!fake)
        return 1;
    set_up();
    bool has_compiler = test_failures == 0 && device->compiler[0];
    for (size_t i = 0; has_compiler && i < count; i++)
        tests[i]();
    clean_up();
    if (test_failures == 0 && !has_compiler) {
        printf("there is no NVRTC: nothing was compiled\n");
        return 77;
    }
    printf("%d checks, %d failed\n", test_checks, test_failures);
    return test_failures != 0;
}

#endif
