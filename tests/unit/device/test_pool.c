// Running kernels: phases and their barriers, ranges, workspaces, several application threads, and
// forked children.

#include "device/device.h"
#include "device/host/host_pool.h"
#include "support/folder.h"
#include "support/forks.h"
#include "test.h"

#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/kg-test-pool-XXXXXX";
static struct kg_error error;

// Three phases over n = size[0] items, p = size[1] of them per range at least:
//   0: shared[i] = x[i] + 1, through the thread's own scratch
//   1: one item: adds up the first and last of shared, and counts the ranges that were too short
//   2: y[i] = shared[n - 1 - i], which is right only when phase 0 is complete
static const char phases[] =
    "#include <stdint.h>\n"
    "struct kg_host_call { void *const *tensor; const int64_t *size; const int64_t *stride;\n"
    "    char *shared; char *scratch; int thread; int threads; };\n"
    "int64_t k_items(const struct kg_host_call *c, int phase)\n"
    "{ return phase == 0 || phase == 2 ? c->size[0] : phase == 1 ? 1 : -1; }\n"
    "int64_t k_bytes(const struct kg_host_call *c, int kind)\n"
    "{ return kind == 0 ? c->size[0] * 8 : kind == 1 ? 8 * 64 : c->size[1]; }\n"
    "void k_run(const struct kg_host_call *c, int phase, int64_t begin, int64_t end)\n"
    "{ const int64_t *x = c->tensor[0]; int64_t *y = c->tensor[1], *bad = c->tensor[2];\n"
    "  int64_t *shared = (int64_t *)c->shared, *mine = (int64_t *)c->scratch;\n"
    "  int64_t n = c->size[0];\n"
    "  if (phase != 1 && end - begin < c->size[1] && end != n)\n"
    "    __atomic_fetch_add(bad, 1, __ATOMIC_RELAXED);\n"
    "  if (c->thread < 0 || c->thread >= c->threads || (uintptr_t)c->scratch % 64 ||\n"
    "      (uintptr_t)c->shared % 64)\n"
    "    __atomic_fetch_add(bad, 1, __ATOMIC_RELAXED);\n"
    "  for (int64_t i = begin; i < end; i++) {\n"
    "    if (phase == 0) {\n"
    "      for (int j = 0; j < 64; j++) mine[j] = x[i] + j;\n"
    "      for (int j = 0; j < 64; j++) if (mine[j] != x[i] + j)\n"
    "        __atomic_fetch_add(bad, 1, __ATOMIC_RELAXED);\n"
    "      shared[i] = mine[1]; }\n"
    "    if (phase == 1 && n > 0) y[n] = shared[0] + shared[n - 1];\n"
    "    if (phase == 2) y[i] += shared[n - 1 - i]; } }\n";

struct subject {
    struct kg_device *device;
    struct kg_kernel *kernel;
};

static struct subject prepare_subject(int threads)
{
    struct subject subject = {0};
    struct kg_source source = {.text = phases, .entry = "k", .options = ""};
    struct kg_binary binary = {0};
    CHECK_STATUS(kg_device_open("host", folder, threads, &subject.device, &error), KG_OK, &error);
    const struct kg_backend *backend = subject.device->backend;
    CHECK_STATUS(backend->compile(subject.device, &source, 60, &binary, &error), KG_OK, &error);
    CHECK_STATUS(backend->load(subject.device, &binary, "k", &subject.kernel, &error), KG_OK,
                 &error);
    kg_binary_free(&binary);
    return subject;
}

static void free_subject(struct subject *subject)
{
    subject->device->backend->unload(subject->kernel);
    kg_device_close(subject->device);
}

// One execution. Number of mistakes seen; each item must be done exactly once, since y adds up.
static int64_t execute(const struct subject *subject, int64_t n, int64_t grain)
{
    int64_t *x = malloc(sizeof *x * (size_t)(n + 1));
    int64_t *y = calloc((size_t)(n + 1), sizeof *y);
    int64_t bad = 0;
    for (int64_t i = 0; i < n; i++)
        x[i] = 3 * i;
    void *tensors[] = {x, y, &bad};
    int64_t sizes[] = {n, grain};
    struct kg_launch launch = {.tensors = tensors, .sizes = sizes};
    struct kg_error own = {0};
    if (subject->device->backend->launch(subject->kernel, &launch, &own) != KG_OK)
        bad++;
    for (int64_t i = 0; i < n; i++)
        bad += y[i] != 3 * (n - 1 - i) + 1;
    if (n > 0)
        bad += y[n] != 1 + 3 * (n - 1) + 1;
    free(x);
    free(y);
    return bad;
}

static void every_size_and_grain(void)
{
    static const int threads[] = {1, 2, 3, 16};
    static const int64_t counts[] = {0, 1, 2, 7, 64, 1000, 4097};
    static const int64_t grains[] = {-1, 0, 1, 5, 64, 1 << 20};
    for (size_t t = 0; t < sizeof threads / sizeof threads[0]; t++) {
        struct subject subject = prepare_subject(threads[t]);
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++)
            for (size_t g = 0; g < sizeof grains / sizeof grains[0]; g++)
                CHECK(execute(&subject, counts[c], grains[g]) == 0);
        free_subject(&subject);
    }
}

static void many_launches(void)
{
    struct subject subject = prepare_subject(4);
    int64_t bad = 0;
    for (int i = 0; i < 3000; i++)
        bad += execute(&subject, 40 + i % 50, 1);
    CHECK(bad == 0);
    free_subject(&subject);
}

static void *launch_often(void *argument)
{
    int64_t *bad = calloc(1, sizeof *bad);
    for (int i = 0; i < 500; i++)
        *bad += execute(argument, 100 + i, 3);
    return bad;
}

static void two_application_threads(void)
{
    struct subject subject = prepare_subject(3);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, launch_often, &subject) == 0);
    for (int i = 0; i < 2; i++) {
        void *bad = NULL;
        pthread_join(threads[i], &bad);
        CHECK(bad && *(int64_t *)bad == 0);
        free(bad);
    }
    free_subject(&subject);
}

// A child has none of its parent's threads, whether or not the parent ever started any.
static void forked_children(void)
{
    struct subject subject = prepare_subject(4);
    for (int turn = 0; turn < 2; turn++) {
        pid_t child = fork();
        if (child == 0)
            _exit(execute(&subject, 5000, 1) == 0 && execute(&subject, 5000, 1) == 0 ? 0 : 1);
        int status = -1;
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
        CHECK(execute(&subject, 5000, 1) == 0);
    }
    free_subject(&subject);
}

static _Atomic int64_t counted;

static void count_range(void *user, int thread, int64_t begin, int64_t end)
{
    (void)user;
    (void)thread;
    atomic_fetch_add(&counted, end - begin);
}

// Freeing a pool must end helpers whether they spin, sleep or were never started.
static void pools_come_and_go(void)
{
    for (int turn = 0; turn < 200; turn++) {
        struct kg_host_pool *pool = kg_host_pool_make(1 + turn % 6);
        kg_host_pool_enter(pool);
        counted = 0;
        if (turn % 3)
            kg_host_pool_run(pool, 1000, 1, count_range, NULL);
        CHECK(counted == (turn % 3 ? 1000 : 0));
        kg_host_pool_leave(pool);
        if (turn % 20 == 0)
            usleep(2000);
        kg_host_pool_free(pool);
    }
    kg_host_pool_free(NULL);
}

static atomic_int helped;
static atomic_bool allowed_there;

// Thread 0 gives the helper the time to come.
static void look_where(void *user, int thread, int64_t begin, int64_t end)
{
    const int *core = user;
    (void)begin, (void)end;
    for (int turn = 0; thread == 0 && turn < 20000 && !atomic_load(&helped); turn++)
        usleep(1000);
    cpu_set_t mine;
    if (thread == 0 || sched_getaffinity(0, sizeof mine, &mine) != 0)
        return;
    atomic_store(&allowed_there, CPU_ISSET((size_t)*core, &mine) != 0);
    atomic_fetch_add(&helped, 1);
}

// A helper may be anywhere but where the caller is, wherever that moves.
static void helpers_keep_off_the_callers_core(void)
{
    cpu_set_t before;
    CHECK(sched_getaffinity(0, sizeof before, &before) == 0);
    if (CPU_COUNT(&before) < 2)
        return; // both have to share
    struct kg_host_pool *pool = kg_host_pool_make(2);
    kg_host_pool_enter(pool);
    for (int core = 0, moves = 0; core < CPU_SETSIZE && moves < 4; core++) {
        if (!CPU_ISSET((size_t)core, &before))
            continue;
        cpu_set_t here;
        CPU_ZERO(&here);
        CPU_SET((size_t)core, &here);
        CHECK(sched_setaffinity(0, sizeof here, &here) == 0);
        atomic_store(&helped, 0);
        kg_host_pool_run(pool, 16, 1, look_where, &core);
        CHECK(atomic_load(&helped) > 0 && !atomic_load(&allowed_there));
        moves++;
    }
    kg_host_pool_leave(pool);
    kg_host_pool_free(pool);
    CHECK(sched_setaffinity(0, sizeof before, &before) == 0);
}

static void workspaces_stay(void)
{
    struct kg_host_pool *pool = kg_host_pool_make(3);
    size_t stride = 0;
    char *large = kg_host_pool_shared(pool, 100000);
    CHECK(kg_host_pool_shared(pool, 10) == large);
    char *scratch = kg_host_pool_scratch(pool, 1000, &stride);
    CHECK(scratch && stride >= 1000 && stride % 64 == 0);
    memset(scratch, 1, 3 * stride);
    CHECK(kg_host_pool_scratch(pool, 900, &stride) == scratch);
    CHECK(!kg_host_pool_scratch(pool, SIZE_MAX / 2, &stride));
    CHECK(!kg_host_pool_shared(pool, SIZE_MAX - 10));
    CHECK(kg_host_pool_shared(pool, 10) != NULL);
    kg_host_pool_free(pool);
}

// What a body does to the state of the thread that runs its items, until every thread had one.
enum spoil { NOTHING, ROUNDING, BLOCKED, FLAGS };

struct spoiler {
    enum spoil what;
    atomic_int arrived;
    int threads;
};

static void spoil(void *user, int thread, int64_t begin, int64_t end)
{
    struct spoiler *spoiler = user;
    volatile double third = 1;
    (void)begin, (void)end;
    third /= 3; // raises the flag of an inexact result
    sigset_t some;
    sigemptyset(&some);
    sigaddset(&some, SIGUSR1);
    if (spoiler->what == ROUNDING && thread > 0)
        fesetround(FE_UPWARD);
    if (spoiler->what == BLOCKED && thread > 0)
        pthread_sigmask(SIG_UNBLOCK, &some, NULL);
    if (spoiler->what == FLAGS)
        feraiseexcept(FE_ALL_EXCEPT);
    atomic_fetch_add(&spoiler->arrived, 1);
    while (atomic_load(&spoiler->arrived) < spoiler->threads)
        sched_yield();
}

// Helpers compare their own state after each job, and restore it.
static void state_of_helpers(void)
{
    static const struct {
        enum spoil what;
        const char *changed;
    } rows[] = {{NOTHING, NULL},
                {ROUNDING, "the modes of arithmetic (rounding, subnormals, or traps)"},
                {FLAGS, NULL},
                {BLOCKED, "the signals that are blocked"},
                {NOTHING, NULL}};
    struct kg_host_pool *pool = kg_host_pool_make(2);
    kg_host_pool_watch(pool);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct spoiler spoiler = {.what = rows[i].what, .threads = 2};
        kg_host_pool_enter(pool);
        kg_host_pool_run(pool, 2, 1, spoil, &spoiler);
        kg_host_pool_leave(pool);
        const char *changed = kg_host_pool_changed(pool);
        CHECK(rows[i].changed ? changed && strcmp(changed, rows[i].changed) == 0 : !changed);
    }
    kg_host_pool_free(pool);
}

static void ignore(int number)
{
    (void)number;
}

// The caller's own state, and that of the process.
static void state_of_the_caller(void)
{
    struct kg_device *device;
    char cache[64];
    snprintf(cache, sizeof cache, "%s/cache", folder);
    CHECK_STATUS(kg_device_open("host", cache, 1, &device, &error), KG_OK, &error);
    const struct kg_backend *host = device->backend;
    CHECK_STATUS(host->watch(device, &error), KG_OK, &error);
    CHECK(!host->changed(device));
    int rounding = fegetround();
    fesetround(FE_TOWARDZERO);
    CHECK(strstr(host->changed(device), "modes of arithmetic"));
    CHECK(fegetround() == rounding && !host->changed(device));
    signal(SIGUSR2, ignore);
    CHECK(strstr(host->changed(device), "what signals do"));
    CHECK(!host->changed(device));
    kg_device_close(device);
}

static void prepare(void)
{
    CHECK(folder_make(folder));
}

static void clean_up(void)
{
    folder_remove(folder);
}

TEST_MAIN(prepare, every_size_and_grain, many_launches, two_application_threads, forked_children,
          pools_come_and_go, helpers_keep_off_the_callers_core, workspaces_stay, state_of_helpers,
          state_of_the_caller, clean_up)
