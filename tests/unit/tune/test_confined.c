// What a confined child may do and may not, with and without the system's help, and jobs of several
// steps.

#include "base/times.h"
#include "test.h"
#include "tune/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static struct kg_error error;

// What a job finds out.
struct seen {
    int number;
    pid_t below;
};

static enum kg_status run(kg_worker_job *job, struct seen *seen)
{
    return kg_worker_run_confined(job, NULL, 300, NULL, seen, sizeof *seen, &error);
}

static void *double_it(void *number)
{
    *(int *)number *= 2;
    return NULL;
}

static void ignore(int number)
{
    (void)number;
}

// Threads, signals to itself, memory, files to read.
static enum kg_status compute(void *user, void *result, size_t size, struct kg_error *own)
{
    (void)user;
    (void)size;
    pthread_t thread;
    struct seen *seen = result;
    seen->number = 21;
    signal(SIGUSR1, ignore);
    bool fine = pthread_create(&thread, NULL, double_it, &seen->number) == 0 &&
                pthread_join(thread, NULL) == 0 && raise(SIGUSR1) == 0 &&
                kill(getpid(), SIGUSR1) == 0 && kill(0, 0) == 0;
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    char byte;
    fine = fine && fd >= 0 && read(fd, &byte, 1) == 1 && read(STDIN_FILENO, &byte, 1) == 0;
    struct sigaction now = {.sa_handler = SIG_DFL};
    fine = fine && sigaction(SIGSYS, NULL, &now) == 0 && now.sa_handler != SIG_DFL &&
           signal(SIGSYS, SIG_IGN) == SIG_ERR;
    fine = fine && getsid(0) == getpid() && getpgrp() == getpid();
    return fine ? KG_OK : kg_error_set(own, KG_ERROR_WRONG, "%d", errno);
}

static enum kg_status start_process(void *user, void *result, size_t size, struct kg_error *own)
{
    (void)user;
    (void)size;
    (void)own;
    ((struct seen *)result)->below = fork();
    return KG_OK;
}

static enum kg_status signal_parent(void *user, void *result, size_t size, struct kg_error *own)
{
    (void)user;
    (void)result;
    (void)size;
    (void)own;
    kill(getppid(), 0);
    return KG_OK;
}

static enum kg_status write_file(void *user, void *result, size_t size, struct kg_error *own)
{
    (void)user;
    (void)result;
    (void)size;
    (void)own;
    return open("/dev/null", O_WRONLY | O_CLOEXEC) >= 0 ? KG_OK : KG_ERROR_WRONG;
}

// In a thread, which the child itself never started before.
static void *start_there(void *result)
{
    start_process(NULL, result, 0, NULL);
    return NULL;
}

static enum kg_status thread_starts(void *user, void *result, size_t size, struct kg_error *own)
{
    (void)user;
    (void)size;
    (void)own;
    pthread_t thread;
    if (pthread_create(&thread, NULL, start_there, result) == 0)
        pthread_join(thread, NULL);
    return KG_OK;
}

static void calls_are_forbidden(void)
{
    struct seen seen;
    CHECK_STATUS(run(compute, &seen), KG_OK, &error);
    CHECK(seen.number == 42);
    CHECK_STATUS(run(start_process, &seen), KG_ERROR_FAULT, &error);
    CHECK_TEXT(error.text, "started a process");
    CHECK_STATUS(run(thread_starts, &seen), KG_ERROR_FAULT, &error);
    CHECK_TEXT(error.text, "started a process");
    CHECK_STATUS(run(signal_parent, &seen), KG_ERROR_FAULT, &error);
    CHECK_TEXT(error.text, "sent a signal to another process");
    CHECK_STATUS(run(write_file, &seen), KG_ERROR_FAULT, &error);
    CHECK_TEXT(error.text, "opened a file for writing");
}

static enum kg_status look_for(void *user, void *result, size_t size, struct kg_error *own)
{
    (void)size;
    (void)own;
    ((struct seen *)result)->number = fcntl(*(const int *)user, F_GETFD) >= 0;
    return KG_OK;
}

// Also when the socket is among the standard descriptors.
static void descriptors_are_the_parents(void)
{
    struct seen seen = {.number = 1};
    int mine = open("/dev/null", O_WRONLY | O_CLOEXEC), input = dup(STDIN_FILENO);
    CHECK_STATUS(kg_worker_run_confined(look_for, &mine, 300, NULL, &seen, sizeof seen, &error),
                 KG_OK, &error);
    CHECK(seen.number == 0);
    close(STDIN_FILENO);
    CHECK_STATUS(run(compute, &seen), KG_OK, &error);
    CHECK(seen.number == 42);
    if (input >= 0)
        dup2(input, STDIN_FILENO);
    close(input);
    close(mine);
}

static void called_at_exit(void)
{
    fprintf(stderr, "a handler of the parent ran\n");
    _exit(99);
}

static enum kg_status leave(void *user, void *result, size_t size, struct kg_error *own)
{
    (void)user;
    (void)result;
    (void)size;
    (void)own;
    exit(0);
}

static void exits_are_told(void)
{
    struct seen seen;
    pid_t process = fork(); // for the handler, which is not to run at the end of this test
    if (process == 0) {
        atexit(called_at_exit);
        enum kg_status status = run(leave, &seen);
        _exit(status == KG_ERROR_FAULT && strcmp(error.text, "called exit()") == 0 ? 0 : 1);
    }
    int status = 1;
    CHECK(process > 0 && waitpid(process, &status, 0) == process && status == 0);
}

// As on systems that cannot forbid it.

static enum kg_status leave_a_process(void *user, void *result, size_t size, struct kg_error *own)
{
    (void)user;
    (void)size;
    (void)own;
    struct seen *seen = result;
    seen->below = fork();
    if (seen->below == 0) {
        setpgid(0, 0);
        for (;;)
            pause();
    }
    setpgid(seen->below, seen->below);
    return KG_OK;
}

static enum kg_status hang(void *user, void *result, size_t size, struct kg_error *own)
{
    (void)user;
    (void)result;
    (void)size;
    (void)own;
    while (pause() < 0) {
    }
    return KG_OK;
}

static bool is_gone(pid_t process)
{
    char path[64], state = 'Z';
    snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
    FILE *file = fopen(path, "r");
    bool alive = file && fscanf(file, "%*d (%*[^)]) %c", &state) == 1 && state != 'Z';
    if (file)
        fclose(file);
    return !alive;
}

static bool ends_soon(pid_t process)
{
    for (int turn = 0; turn < 30000 && !is_gone(process); turn++)
        usleep(1000);
    return is_gone(process);
}

static void sessions_are_killed(void)
{
    const struct kg_confinement confinement = {.unfiltered = true};
    const struct kg_worker_step steps[] = {{leave_a_process, 300, "at first"},
                                           {hang, 0.2, "while it hung"}};
    for (int count = 1; count <= 2; count++) {
        struct seen seen = {0};
        CHECK_STATUS(
            kg_worker_run_steps(steps, count, NULL, &confinement, NULL, &seen, sizeof seen, &error),
            count == 1 ? KG_OK : KG_ERROR_TIMEOUT, &error);
        CHECK(seen.below > 0 && ends_soon(seen.below));
    }
    CHECK_TEXT(error.text, "did not finish within 0.2 s while it hung");
}

// Limits.

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static bool can_map(size_t bytes, int kind)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    munmap(memory, bytes);
    return true;
}

static enum kg_status map_much(void *user, void *result, size_t size, struct kg_error *own)
{
    (void)user;
    (void)size;
    (void)own;
    const size_t unit = (size_t)1 << 20;
    ((struct seen *)result)->number =
        can_map(64 * unit, MAP_PRIVATE) | can_map(150 * unit, MAP_PRIVATE) << 1 |
        can_map(64 * unit, MAP_SHARED) << 2 | can_map(600 * unit, MAP_SHARED) << 3;
    return KG_OK;
}

static void memory_is_limited(void)
{
    const struct kg_confinement confinement = {.memory = 100 << 20, .threads = 2};
    const struct kg_worker_step step = {map_much, 300, NULL};
    struct seen seen = {0};
    CHECK_STATUS(
        kg_worker_run_steps(&step, 1, NULL, &confinement, NULL, &seen, sizeof seen, &error), KG_OK,
        &error);
    CHECK(seen.number == (1 | 4)); // private: 64 MiB, not 150; shared: 64 MiB, not 600
}
#else
static void memory_is_limited(void)
{
}
#endif

static enum kg_status spin(void *user, void *result, size_t size, struct kg_error *own)
{
    (void)user;
    (void)result;
    (void)size;
    (void)own;
    for (volatile unsigned count = 1; count; count |= 1) {
    }
    return KG_OK;
}

static void time_is_limited(void)
{
    const struct kg_confinement confinement = {.seconds = 0.5};
    const struct kg_worker_step step = {spin, 600, "while it span"};
    CHECK_STATUS(kg_worker_run_steps(&step, 1, NULL, &confinement, NULL, NULL, 0, &error),
                 KG_ERROR_FAULT, &error);
    CHECK_TEXT(error.text, "crashed with SIGXCPU (CPU time limit) while it span");
}

// Steps.

static enum kg_status count_up(void *user, void *result, size_t size, struct kg_error *own)
{
    (void)size;
    struct seen *seen = result;
    seen->number++;
    return seen->number < *(const int *)user
               ? KG_OK
               : kg_error_set(own, KG_ERROR_WRONG, "that is %d", seen->number);
}

static void steps_follow_each_other(void)
{
    const struct kg_confinement confinement = {0};
    const struct kg_worker_step steps[] = {
        {count_up, 300, "at first"}, {count_up, 300, "then"}, {leave, 300, "at last"}};
    struct seen seen;
    int most = 9;
    CHECK_STATUS(
        kg_worker_run_steps(steps, 2, &most, &confinement, NULL, &seen, sizeof seen, &error), KG_OK,
        &error);
    CHECK(seen.number == 2);
    CHECK_STATUS(
        kg_worker_run_steps(steps, 3, &most, &confinement, NULL, &seen, sizeof seen, &error),
        KG_ERROR_FAULT, &error);
    CHECK(seen.number == 2);
    CHECK_TEXT(error.text, "called exit() at last");
    most = 1; // fails by itself, which needs no time
    CHECK_STATUS(
        kg_worker_run_steps(steps, 3, &most, &confinement, NULL, &seen, sizeof seen, &error),
        KG_ERROR_WRONG, &error);
    CHECK_TEXT(error.text, "that is 1");
}

// What it costs to confine a child: printed, for docs/verification.md.

static enum kg_status do_nothing(void *user, void *result, size_t size, struct kg_error *own)
{
    (void)user;
    (void)result;
    (void)size;
    (void)own;
    return KG_OK;
}

static int compare(const void *a, const void *b)
{
    double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

static void costs_are_shown(void)
{
    enum { TURNS = 101 };
    static double seconds[2][TURNS];
    for (int turn = 0; turn < TURNS; turn++)
        for (int confined = 0; confined < 2; confined++) {
            double start = kg_times_now();
            enum kg_status status =
                confined ? kg_worker_run_confined(do_nothing, NULL, 300, NULL, NULL, 0, &error)
                         : kg_worker_run(do_nothing, NULL, 300, NULL, NULL, 0, &error);
            seconds[confined][turn] = kg_times_now() - start;
            CHECK_STATUS(status, KG_OK, &error);
        }
    for (int confined = 0; confined < 2; confined++)
        qsort(seconds[confined], TURNS, sizeof(double), compare);
    printf("an empty job takes %.3f ms in a child, %.3f ms in a confined one (medians of %d)\n",
           seconds[0][TURNS / 2] * 1e3, seconds[1][TURNS / 2] * 1e3, TURNS);
}

TEST_MAIN(calls_are_forbidden, descriptors_are_the_parents, exits_are_told, sessions_are_killed,
          memory_is_limited, time_is_limited, steps_follow_each_other, costs_are_shown)
