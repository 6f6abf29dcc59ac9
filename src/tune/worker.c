// Work in a process of its own. The child answers through a pipe with one message: a header, then
// the result. Whatever it does otherwise (hang, crash, exit, close the pipe, leave children behind)
// ends in a status of the parent.

#include "tune/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define POLL_MILLISECONDS 50

struct answer {
    enum kg_status status;
    struct kg_error error;
};

// Those a kernel can bring about; others are given by number.
static const struct {
    int number;
    const char *name;
    const char *meaning;
} signals[] = {
    {SIGSEGV, "SIGSEGV", "memory access outside any mapping"},
    {SIGBUS, "SIGBUS", "memory access without backing"},
    {SIGILL, "SIGILL", "illegal instruction"},
    {SIGFPE, "SIGFPE", "arithmetic trap"},
    {SIGABRT, "SIGABRT", "abort"},
    {SIGKILL, "SIGKILL", "killed, possibly for lack of memory"},
    {SIGTERM, "SIGTERM", "terminated"},
    {SIGTRAP, "SIGTRAP", "trap"},
    {SIGSYS, "SIGSYS", "forbidden system call"},
    {SIGXCPU, "SIGXCPU", "CPU time limit"},
};

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static bool write_all(int fd, const void *bytes, size_t length)
{
    const char *at = bytes;
    while (length > 0) {
        ssize_t written = write(fd, at, length);
        if (written < 0 && errno != EINTR)
            return false;
        if (written > 0) {
            at += written;
            length -= (size_t)written;
        }
    }
    return true;
}

// A process group of its own (a Ctrl-C at the terminal is for the parent to handle), no core dumps,
// default signals, and an end with its parent's.
static void settle_child(pid_t parent)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL); // fails for the two that have no other anyway
    signal(SIGPIPE, SIG_IGN);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static _Noreturn void child_main(kg_worker_job *job, void *user, size_t size, int fd, pid_t parent)
{
    settle_child(parent);
    struct answer answer = {0};
    void *result = calloc(1, size ? size : 1);
    if (!result)
        answer.status = kg_error_memory(&answer.error, "a worker's result");
    else
        answer.status = job(user, result, size, &answer.error);
    bool sent = write_all(fd, &answer, sizeof answer) && result && write_all(fd, result, size);
    _exit(sent ? 0 : 1);
}

// The parent's side of one child.
struct watch {
    pid_t child;
    int fd;
    char *message; // struct answer, then the result
    size_t wanted;
    size_t length;
    bool open; // the pipe has not ended
};

static void receive(struct watch *watch)
{
    while (watch->open && watch->length < watch->wanted) {
        ssize_t got =
            read(watch->fd, watch->message + watch->length, watch->wanted - watch->length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN)
            return;
        if (got <= 0)
            watch->open = false;
        else
            watch->length += (size_t)got;
    }
}

// Did the child end? It stays a zombie, so that its process group keeps its number until killed.
static bool has_ended(pid_t child)
{
    siginfo_t info = {0};
    int failure = waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT);
    return failure ? errno != EINTR : info.si_pid == child;
}

// Waits until the whole answer is here, or the child is gone, or time is up or the caller had
// enough. A complete answer counts even if it came at the last moment.
static enum kg_status await(struct watch *watch, double deadline, const volatile int *cancel)
{
    for (;;) {
        bool ended = has_ended(watch->child); // before reading: what it wrote is then all there
        receive(watch);
        if (watch->length == watch->wanted)
            return KG_OK;
        if (ended)
            return KG_ERROR_FAULT;
        if (cancel && *cancel)
            return KG_ERROR_CANCELLED;
        double left = deadline > 0 ? deadline - seconds_now() : 1;
        if (left <= 0)
            return KG_ERROR_TIMEOUT;
        int pause = left * 1000 < POLL_MILLISECONDS ? (int)(left * 1000) + 1 : POLL_MILLISECONDS;
        // A child that closed the pipe is about to end, or hangs.
        struct pollfd wanted = {.fd = watch->fd, .events = POLLIN};
        poll(&wanted, watch->open ? 1 : 0, watch->open ? pause : 1);
    }
}

static enum kg_status describe_death(int status, struct kg_error *error)
{
    if (!WIFSIGNALED(status))
        return kg_error_set(error, KG_ERROR_FAULT, "the worker exited with status %d and no answer",
                            WEXITSTATUS(status));
    int number = WTERMSIG(status);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        if (signals[i].number == number)
            return kg_error_set(error, KG_ERROR_FAULT, "crashed with %s (%s)", signals[i].name,
                                signals[i].meaning);
    return kg_error_set(error, KG_ERROR_FAULT, "crashed with signal %d", number);
}

// Ends the child and all it started, and says how it went.
static enum kg_status conclude(struct watch *watch, enum kg_status outcome, double seconds,
                               void *result, size_t size, struct kg_error *error)
{
    int status = 0;
    kill(-watch->child, SIGKILL);
    kill(watch->child, SIGKILL); // it may not have made its group yet
    while (waitpid(watch->child, &status, 0) < 0 && errno == EINTR)
        ;
    if (outcome == KG_ERROR_TIMEOUT)
        return kg_error_set(error, outcome, "did not finish within %g s", seconds);
    if (outcome == KG_ERROR_CANCELLED)
        return kg_error_set(error, outcome, "cancelled");
    if (outcome == KG_ERROR_FAULT)
        return describe_death(status, error);
    struct answer answer;
    memcpy(&answer, watch->message, sizeof answer);
    memcpy(result, watch->message + sizeof answer, size);
    // The child may have been a broken kernel's plaything: its answer is checked like any input.
    if ((unsigned)answer.status >= KG_STATUS_COUNT)
        return kg_error_set(error, KG_ERROR_FAULT, "the worker's answer makes no sense");
    answer.error.text[KG_ERROR_TEXT - 1] = '\0';
    if (answer.status)
        kg_error_set(error, answer.status, "%s", answer.error.text);
    return answer.status;
}

// Forks with a pipe between. What stdio has not written yet stays the parent's: the child ends
// without flushing.
static enum kg_status start(kg_worker_job *job, void *user, size_t size, struct watch *watch,
                            struct kg_error *error)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0)
        return kg_error_set(error, KG_ERROR_IO, "pipe: %s", strerror(errno));
    pid_t parent = getpid();
    watch->child = fork();
    if (watch->child == 0) {
        close(fds[0]);
        child_main(job, user, size, fds[1], parent);
    }
    int failure = errno;
    close(fds[1]);
    if (watch->child < 0) {
        close(fds[0]);
        return kg_error_set(error, KG_ERROR_MEMORY, "fork: %s", strerror(failure));
    }
    setpgid(watch->child, watch->child); // whoever comes first
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    watch->fd = fds[0];
    watch->open = true;
    return KG_OK;
}

enum kg_status kg_worker_run(kg_worker_job *job, void *user, double seconds,
                             const volatile int *cancel, void *result, size_t size,
                             struct kg_error *error)
{
    struct watch watch = {.wanted = sizeof(struct answer) + size};
    if (size > 0)
        memset(result, 0, size);
    watch.message = size < SIZE_MAX / 2 ? malloc(watch.wanted) : NULL;
    if (!watch.message)
        return kg_error_memory(error, "a worker's result");
    enum kg_status status = start(job, user, size, &watch, error);
    if (!status) {
        double deadline = seconds > 0 ? seconds_now() + seconds : 0;
        enum kg_status outcome = await(&watch, deadline, cancel);
        status = conclude(&watch, outcome, seconds, result, size, error);
        close(watch.fd);
    }
    free(watch.message);
    return status;
}
