// Work in a process of its own. The child answers through a pipe with one message: a header, then
// the answer's bytes. Whatever it does otherwise (hang, crash, exit, close the pipe, leave children
// behind) ends in a status of the parent.

#include "device/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define POLL_MILLISECONDS 50

struct header {
    enum kg_status status;
    struct kg_error error;
    size_t length; // of the answer
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

static _Noreturn void child_main(kg_child_job *job, void *user, int fd, pid_t parent)
{
    settle_child(parent);
    struct header header = {0};
    struct kg_text answer = {0};
    header.status = job(user, &answer, &header.error);
    if (answer.failed)
        header.status = kg_error_memory(&header.error, "the answer of a process");
    else
        header.length = answer.length;
    bool sent = write_all(fd, &header, sizeof header) && write_all(fd, answer.data, header.length);
    _exit(sent ? 0 : 1);
}

// The parent's side of one child.
struct watch {
    pid_t child;
    int fd;
    size_t limit;           // of the answer
    struct kg_text message; // the header, then the answer
    bool open;              // the pipe has not ended
};

// Length of the whole message, as far as is known yet; 0 for one that is refused.
static size_t wanted_length(const struct watch *watch)
{
    struct header header;
    if (watch->message.length < sizeof header)
        return sizeof header;
    memcpy(&header, watch->message.data, sizeof header);
    return header.length <= watch->limit ? sizeof header + header.length : 0;
}

static bool is_complete(const struct watch *watch)
{
    return watch->message.failed || watch->message.length >= wanted_length(watch);
}

static void receive(struct watch *watch)
{
    char buffer[16384];
    while (watch->open && !is_complete(watch)) {
        size_t left = wanted_length(watch) - watch->message.length;
        ssize_t got = read(watch->fd, buffer, left < sizeof buffer ? left : sizeof buffer);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN)
            return;
        if (got <= 0)
            watch->open = false;
        else
            kg_text_add_bytes(&watch->message, buffer, (size_t)got);
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
        if (is_complete(watch))
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

static void end_child(struct watch *watch, int *status)
{
    *status = 0;
    kill(-watch->child, SIGKILL);
    kill(watch->child, SIGKILL); // it may not have made its group yet
    while (waitpid(watch->child, status, 0) < 0 && errno == EINTR)
        ;
    close(watch->fd);
}

// The child may have been a broken kernel's plaything: its answer is checked like any input.
static enum kg_status take_answer(const struct watch *watch, struct kg_text *answer,
                                  struct kg_error *error)
{
    if (watch->message.failed)
        return kg_error_memory(error, "the answer of a process");
    struct header header;
    size_t length = wanted_length(watch);
    if (length > 0)
        memcpy(&header, watch->message.data, sizeof header);
    if (length == 0 || (unsigned)header.status >= KG_STATUS_COUNT)
        return kg_error_set(error, KG_ERROR_FAULT, "the worker's answer makes no sense");
    kg_text_add_bytes(answer, watch->message.data + sizeof header, header.length);
    if (answer->failed)
        return kg_error_memory(error, "the answer of a process");
    header.error.text[KG_ERROR_TEXT - 1] = '\0';
    if (header.status)
        kg_error_set(error, header.status, "%s", header.error.text);
    return header.status;
}

// Forks with a pipe between. What stdio has not written yet stays the parent's: the child ends
// without flushing.
static enum kg_status start(kg_child_job *job, void *user, struct watch *watch,
                            struct kg_error *error)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0)
        return kg_error_set(error, KG_ERROR_IO, "pipe: %s", strerror(errno));
    pid_t parent = getpid();
    watch->child = fork();
    if (watch->child == 0) {
        close(fds[0]);
        child_main(job, user, fds[1], parent);
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

enum kg_status kg_child_run(kg_child_job *job, void *user, double seconds,
                            const volatile int *cancel, size_t limit, struct kg_text *answer,
                            struct kg_error *error)
{
    struct watch watch = {.limit = limit};
    *answer = (struct kg_text){0};
    enum kg_status status = start(job, user, &watch, error);
    if (status)
        return status;
    int end;
    status = await(&watch, seconds > 0 ? seconds_now() + seconds : 0, cancel);
    end_child(&watch, &end);
    if (status == KG_ERROR_TIMEOUT)
        kg_error_set(error, status, "did not finish within %g s", seconds);
    else if (status == KG_ERROR_CANCELLED)
        kg_error_set(error, status, "cancelled");
    else if (status == KG_ERROR_FAULT)
        describe_death(end, error);
    else
        status = take_answer(&watch, answer, error);
    kg_text_free(&watch.message);
    return status;
}
