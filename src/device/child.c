// Runs work in a separate process: a fork or a program. A request is a length and that many bytes;
// an answer is a header and its bytes. If the child hangs, crashes, exits, closes the socket or
// leaves children behind, the parent gets a status. A child with a single job serves one request.

#include "device/child.h"

#include "base/loader.h"
#include "base/times.h"
#include "device/ending.h"
#include "device/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define POLL_MILLISECONDS 50
#define PROGRAM_FD 3 // the descriptor on which a program finds its socket
// A killed process ends only after the system has released its devices, which takes seconds for a
// GPU whose kernel hangs. After this time the parent stops waiting.
#define END_SECONDS 60.0

struct header {
    enum kg_status status;
    struct kg_error error;
    size_t length; // of the answer
    bool filtered; // the child is confined, and the system forbids it to start processes
};

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

// Gives the child no core dumps, default signals, and a signal that ends it when its parent dies.
static void settle_child(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL); // fails for the two signals that always have the default
    signal(SIGPIPE, SIG_IGN);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

// False when the parent has ended or closed the socket.
static bool read_all(int fd, void *bytes, size_t length)
{
    char *at = bytes;
    while (length > 0) {
        ssize_t got = read(fd, at, length);
        if (got == 0 || (got < 0 && errno != EINTR))
            return false;
        if (got > 0) {
            at += got;
            length -= (size_t)got;
        }
    }
    return true;
}

// In a confined child, for reports: signal handlers find it nowhere else.
static struct {
    int fd;
    bool filtered;
} reporting;

static bool answer_request(const struct kg_child_service *service, int fd, const void *request,
                           size_t length)
{
    struct header header = {.filtered = reporting.filtered};
    struct kg_text answer = {0};
    header.status = service->serve(service->user, request, length, &answer, &header.error);
    if (answer.failed)
        header.status = kg_error_memory(&header.error, "the answer of a process");
    else
        header.length = answer.length;
    bool sent = write_all(fd, &header, sizeof header) && write_all(fd, answer.data, header.length);
    kg_text_free(&answer);
    return sent;
}

// Answers in place of the job, which does not go on. Called in a signal handler or at exit.
static void report_offence(const char *what)
{
    struct header header = {.status = KG_ERROR_FAULT, .error.status = KG_ERROR_FAULT};
    size_t length = strlen(what);
    if (length >= sizeof header.error.text)
        length = sizeof header.error.text - 1;
    memcpy(header.error.text, what, length);
    header.filtered = reporting.filtered;
    write_all(reporting.fd, &header, sizeof header);
    _exit(1);
}

// The process group of a child is its own: the parent handles a Ctrl-C at the terminal.
// Returns the socket.
static int confine(const struct kg_child_service *service, int fd)
{
    if (!service->confinement) {
        setpgid(0, 0);
        return fd;
    }
    if (fd <= STDERR_FILENO) // the parent has closed its own
        fd = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    reporting.fd = fd;
    reporting.filtered = kg_confine(service->confinement, fd, report_offence);
    return fd;
}

static _Noreturn void child_main(const struct kg_child_service *service, int fd, pid_t parent)
{
    settle_child(parent);
    fd = confine(service, fd);
    if (service->prepare)
        service->prepare(service->user);
    size_t length;
    while (read_all(fd, &length, sizeof length)) {
        void *request = malloc(length ? length : 1);
        if (!request || !read_all(fd, request, length) ||
            !answer_request(service, fd, request, length))
            _exit(1);
        free(request);
    }
    _exit(0);
}

// The parent's view of a child.
struct kg_child {
    pid_t process; // 0: it has ended
    int fd;
    size_t limit;           // of the answer
    struct kg_text message; // the header, then the answer
    bool open;              // the socket is open
    struct kg_error end;    // why it has ended
    int signal;             // that ended it; 0: none, or one that the parent sent
    bool confined;
    bool filtered; // it has said that it cannot start processes
};

// Length of the whole message as far as it is known; 0 if it is refused.
static size_t wanted_length(const struct kg_child *child)
{
    struct header header;
    if (child->message.length < sizeof header)
        return sizeof header;
    memcpy(&header, child->message.data, sizeof header);
    return header.length <= child->limit ? sizeof header + header.length : 0;
}

static bool is_complete(const struct kg_child *child)
{
    return child->message.failed || child->message.length >= wanted_length(child);
}

static void receive(struct kg_child *child)
{
    char buffer[16384];
    while (child->open && !is_complete(child)) {
        size_t left = wanted_length(child) - child->message.length;
        ssize_t got = read(child->fd, buffer, left < sizeof buffer ? left : sizeof buffer);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN)
            return;
        if (got <= 0)
            child->open = false;
        else
            kg_text_add_bytes(&child->message, buffer, (size_t)got);
    }
}

// A request that is being sent.
struct sending {
    const char *bytes;
    size_t length;
    double deadline; // 0: none
    const volatile int *cancel;
};

static void send_some(struct kg_child *child, struct sending *sending)
{
    while (sending->length > 0) {
        ssize_t sent = send(child->fd, sending->bytes, sending->length, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return; // the socket is full, or the child has ended, which other calls detect
        sending->bytes += sent;
        sending->length -= (size_t)sent;
    }
}

// Waits until the answer is complete, the child has ended, the time is up, or the caller cancels. A
// complete answer counts even if it arrives at the last moment.
static enum kg_status await(struct kg_child *child, struct sending *sending)
{
    for (;;) {
        bool ended =
            // Before reading, so that everything it wrote has arrived.
            kg_process_has_ended(child->process);
        send_some(child, sending);
        receive(child);
        if (is_complete(child))
            return KG_OK;
        if (ended)
            return KG_ERROR_FAULT;
        if (sending->cancel && *sending->cancel)
            return KG_ERROR_CANCELLED;
        double left = sending->deadline > 0 ? sending->deadline - kg_times_now() : 1;
        if (left <= 0)
            return KG_ERROR_TIMEOUT;
        int pause = left * 1000 < POLL_MILLISECONDS ? (int)(left * 1000) + 1 : POLL_MILLISECONDS;
        // A child that closed the socket is about to end, or hangs.
        short events = sending->length > 0 ? POLLIN | POLLOUT : POLLIN;
        struct pollfd wanted = {.fd = child->fd, .events = events};
        poll(&wanted, child->open ? 1 : 0, child->open ? pause : 1);
    }
}

static enum kg_status describe_death(const struct kg_child *child, int status,
                                     struct kg_error *error)
{
    if (!WIFSIGNALED(status))
        return kg_error_set(error, KG_ERROR_FAULT, "its process exited with status %d",
                            WEXITSTATUS(status));
    int number = WTERMSIG(status);
    // The C library blocks signals while it runs a program, so that this cannot be reported.
    if (number == SIGSYS && child->confined)
        return kg_error_set(error, KG_ERROR_FAULT,
                            "ran a program, or made another forbidden system call with all "
                            "signals blocked");
    const struct kg_ending *ending = kg_ending_find(number);
    if (ending)
        return kg_error_set(error, KG_ERROR_FAULT, "crashed with %s (%s)", ending->name,
                            ending->meaning);
    return kg_error_set(error, KG_ERROR_FAULT, "crashed with signal %d", number);
}

// Waits for the process to end and returns its status; 0 if it does not end in time.
static int reap(pid_t process)
{
    int status = 0;
    double deadline = kg_times_now() + END_SECONDS;
    for (long pause = 10000;;) { // nanoseconds
        pid_t ended = waitpid(process, &status, WNOHANG);
        if (ended == process || (ended < 0 && errno != EINTR) || kg_times_now() > deadline)
            return ended == process ? status : 0;
        nanosleep(&(struct timespec){.tv_nsec = pause}, NULL);
        pause = pause < 1000000 ? 2 * pause : pause;
    }
}

static int end_child(struct kg_child *child)
{
    kill(-child->process, SIGKILL);
    kill(child->process, SIGKILL); // it may not have made its group yet
    if (child->confined && !child->filtered)
        kg_kill_session(child->process);
    int status = reap(child->process);
    close(child->fd);
    child->process = 0;
    return status;
}

// A broken kernel may have damaged the child, so its answer is checked like any input.
static enum kg_status take_answer(struct kg_child *child, struct kg_text *answer,
                                  struct kg_error *error)
{
    if (child->message.failed)
        return kg_error_memory(error, "the answer of a process");
    struct header header;
    size_t length = wanted_length(child);
    if (length > 0)
        memcpy(&header, child->message.data, sizeof header);
    if (length == 0 || (unsigned)header.status >= KG_STATUS_COUNT)
        return kg_error_set(error, KG_ERROR_FAULT, "the worker's answer makes no sense");
    child->filtered = header.filtered;
    kg_text_add_bytes(answer, child->message.data + sizeof header, header.length);
    if (answer->failed)
        return kg_error_memory(error, "the answer of a process");
    header.error.text[KG_ERROR_TEXT - 1] = '\0';
    if (header.status)
        kg_error_set(error, header.status, "%s", header.error.text);
    return header.status;
}

// Opens a pair of sockets: the parent's end and the child's.
static enum kg_status open_socket(int fds[2], struct kg_error *error)
{
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
        return kg_error_set(error, KG_ERROR_IO, "socketpair: %s", strerror(errno));
    return KG_OK;
}

static void keep_end(struct kg_child *child, const int fds[2])
{
    close(fds[1]);
    // Both processes set the group; the first one wins. A confined child makes a session instead,
    // which the leader of a group cannot.
    if (!child->confined)
        setpgid(child->process, child->process);
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    child->fd = fds[0];
    child->open = true;
}

// Forks with a socket between both processes. The child ends without flushing stdio, whose
// unwritten output belongs to the parent.
static enum kg_status start(const struct kg_child_service *service, struct kg_child *child,
                            struct kg_error *error)
{
    int fds[2];
    enum kg_status status = open_socket(fds, error);
    if (status)
        return status;
    pid_t parent = getpid();
    child->confined = service->confinement != NULL;
    kg_loader_hold();
    child->process = fork();
    int failure = errno;
    kg_loader_release();
    if (child->process == 0) {
        close(fds[0]);
        child_main(service, fds[1], parent);
    }
    if (child->process < 0) {
        child->process = 0;
        close(fds[0]);
        close(fds[1]);
        return kg_error_set(error, KG_ERROR_MEMORY, "fork: %s", strerror(failure));
    }
    keep_end(child, fds);
    return KG_OK;
}

static enum kg_status spawn(const char *program, struct kg_child *child, struct kg_error *error)
{
    int fds[2];
    enum kg_status status = open_socket(fds, error);
    if (status)
        return status;
    char parent[24];
    snprintf(parent, sizeof parent, "%ld", (long)getpid());
    char *const arguments[] = {(char *)(uintptr_t)program, parent, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    int failure = posix_spawn_file_actions_adddup2(&actions, fds[1], PROGRAM_FD);
    if (!failure)
        failure = posix_spawn(&child->process, program, &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failure) {
        child->process = 0;
        close(fds[0]);
        close(fds[1]);
        return kg_error_set(error, KG_ERROR_MISSING, "%s cannot be started: %s", program,
                            strerror(failure));
    }
    keep_end(child, fds);
    return KG_OK;
}

static enum kg_status ask(struct kg_child *child, struct sending *sending, double seconds,
                          struct kg_text *answer, struct kg_error *error)
{
    enum kg_status status = await(child, sending);
    if (status == KG_OK)
        return take_answer(child, answer, error);
    int end = end_child(child);
    if (status == KG_ERROR_TIMEOUT)
        kg_error_set(&child->end, status, "did not finish within %g s", seconds);
    else if (status == KG_ERROR_CANCELLED)
        kg_error_set(&child->end, status, "cancelled");
    else
        describe_death(child, end, &child->end);
    child->signal = status == KG_ERROR_FAULT && WIFSIGNALED(end) ? WTERMSIG(end) : 0;
    return kg_error_set(error, status, "%s", child->end.text);
}

enum kg_status kg_child_ask(struct kg_child *child, const void *request, size_t length,
                            double seconds, const volatile int *cancel, size_t limit,
                            struct kg_text *answer, struct kg_error *error)
{
    *answer = (struct kg_text){0};
    if (child->process == 0)
        return kg_error_set(error, child->end.status, "%s", child->end.text);
    struct kg_text message = {0};
    kg_text_add_bytes(&message, (const char *)&length, sizeof length);
    kg_text_add_bytes(&message, request, length);
    if (message.failed) {
        kg_text_free(&message);
        return kg_error_memory(error, "the question to a process");
    }
    kg_text_free(&child->message);
    child->limit = limit;
    struct sending sending = {.bytes = message.data,
                              .length = message.length,
                              .deadline = seconds > 0 ? kg_times_now() + seconds : 0,
                              .cancel = cancel};
    enum kg_status status = ask(child, &sending, seconds, answer, error);
    kg_text_free(&message);
    return status;
}

int kg_child_signal(const struct kg_child *child)
{
    return child->signal;
}

enum kg_status kg_child_start(const struct kg_child_service *service, struct kg_child **child,
                              struct kg_error *error)
{
    *child = NULL;
    struct kg_child *made = calloc(1, sizeof *made);
    if (!made)
        return kg_error_memory(error, "a process");
    enum kg_status status = start(service, made, error);
    if (status)
        free(made);
    else
        *child = made;
    return status;
}

enum kg_status kg_child_spawn(const char *program, struct kg_child **child, struct kg_error *error)
{
    *child = NULL;
    struct kg_child *made = calloc(1, sizeof *made);
    if (!made)
        return kg_error_memory(error, "a process");
    enum kg_status status = spawn(program, made, error);
    if (status)
        free(made);
    else
        *child = made;
    return status;
}

_Noreturn void kg_child_serve(const struct kg_child_service *service, int argc, char **argv)
{
    long parent = argc == 2 ? strtol(argv[1], NULL, 10) : 0;
    if (parent <= 0 || fcntl(PROGRAM_FD, F_SETFD, FD_CLOEXEC) != 0) {
        fprintf(stderr, "%s: the KernelGen library starts this program\n", argv[0]);
        exit(2);
    }
    child_main(service, PROGRAM_FD, (pid_t)parent);
}

void kg_child_stop(struct kg_child *child)
{
    if (!child)
        return;
    if (child->process)
        end_child(child);
    kg_text_free(&child->message);
    free(child);
}

struct single {
    kg_child_job *job;
    void *user;
};

static enum kg_status serve_single(void *user, const void *request, size_t length,
                                   struct kg_text *answer, struct kg_error *error)
{
    const struct single *single = user;
    (void)request;
    (void)length;
    return single->job(single->user, answer, error);
}

enum kg_status kg_child_run(kg_child_job *job, void *user, double seconds,
                            const volatile int *cancel, size_t limit, struct kg_text *answer,
                            struct kg_error *error)
{
    struct single single = {job, user};
    struct kg_child_service service = {.user = &single, .serve = serve_single};
    struct kg_child *child;
    *answer = (struct kg_text){0};
    enum kg_status status = kg_child_start(&service, &child, error);
    if (status)
        return status;
    status = kg_child_ask(child, "", 0, seconds, cancel, limit, answer, error);
    kg_child_stop(child);
    return status;
}
