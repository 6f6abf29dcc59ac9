// Runs another program without a shell. posix_spawn does not copy the page tables of a process that
// may have gigabytes of tensors.

#include "device/process.h"

#include "base/times.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static bool is_program(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

char *kg_process_find(const char *name)
{
    if (strchr(name, '/'))
        return is_program(name) ? strdup(name) : NULL;
    const char *path = getenv("PATH");
    while (path && *path) {
        size_t length = strcspn(path, ":");
        struct kg_text candidate = {0};
        kg_text_format(&candidate, "%.*s/%s", (int)length, path, name);
        // An empty entry means the current folder, whose programs are never wanted.
        if (length > 0 && !candidate.failed && is_program(candidate.data))
            return candidate.data;
        kg_text_free(&candidate);
        path += length + (path[length] == ':');
    }
    return NULL;
}

static bool is_variable(const char *entry, const char *name)
{
    size_t length = strlen(name);
    return strncmp(entry, name, length) == 0 && entry[length] == '=';
}

// The current environment with messages in English and, with a folder, temporary files in it. Only
// the array is new; NULL: no memory.
static char **make_environment(bool has_folder)
{
    static const char temporary[] = "TMPDIR=.", plain[] = "LC_ALL=C";
    size_t count = 0, kept = 0;
    while (environ[count])
        count++;
    char **list = malloc((count + 3) * sizeof *list);
    if (!list)
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (!is_variable(environ[i], "LC_ALL") &&
            !(has_folder && is_variable(environ[i], "TMPDIR")))
            list[kept++] = environ[i];
    list[kept++] = (char *)(uintptr_t)plain;
    if (has_folder)
        list[kept++] = (char *)(uintptr_t)temporary;
    list[kept] = NULL;
    return list;
}

// Starts the program with its output on `output_fd`. Zero, or an errno.
static int spawn(const char *const *arguments, const char *folder, int output_fd, pid_t *child)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    char **own = make_environment(folder != NULL);
    if (!own || posix_spawn_file_actions_init(&actions) != 0) {
        free(own);
        return ENOMEM;
    }
    if (posix_spawnattr_init(&attributes) != 0) {
        posix_spawn_file_actions_destroy(&actions);
        free(own);
        return ENOMEM;
    }
    sigemptyset(&none);
    sigfillset(&all);
    int failure = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (!failure)
        failure = posix_spawn_file_actions_adddup2(&actions, output_fd, 1);
    if (!failure)
        failure = posix_spawn_file_actions_adddup2(&actions, output_fd, 2);
    if (!failure && folder)
        failure = posix_spawn_file_actions_addchdir_np(&actions, folder);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSIGDEF);
    if (!failure)
        failure = posix_spawn(child, arguments[0], &actions, &attributes,
                              (char *const *)(uintptr_t)arguments, own);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    free(own);
    return failure;
}

bool kg_process_has_ended(pid_t child)
{
    siginfo_t info = {0};
    int failure = waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT);
    return failure ? errno != EINTR : info.si_pid == child;
}

// Reads what is available, within bounds, so that a program that writes without end cannot outrun
// its time limit. False once the pipe has ended.
static bool drain(int fd, size_t output_limit, struct kg_text *output, size_t *taken)
{
    char buffer[4096];
    for (int turn = 0; turn < 64; turn++) {
        ssize_t got = read(fd, buffer, sizeof buffer);
        if (got < 0)
            return errno == EAGAIN || errno == EINTR;
        if (got == 0)
            return false;
        size_t room = output_limit - *taken;
        size_t kept = (size_t)got < room ? (size_t)got : room;
        kg_text_add_bytes(output, buffer, kept);
        *taken += kept;
    }
    return true;
}

// If this process ignores SIGCHLD, the system reaps the child and its exit status is lost. It
// counts as 0, and callers check the program's output.
static void reap(pid_t child, struct kg_process_end *end)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) {
            status = 0;
            break;
        }
    }
    if (WIFSIGNALED(status)) {
        end->exit_status = -1;
        end->signal = WTERMSIG(status);
    } else {
        end->exit_status = WEXITSTATUS(status);
    }
}

// Waits for the child while reading its output. False when the time is up or the caller cancels.
static bool attend(pid_t child, int fd, double deadline, const volatile int *cancel,
                   size_t output_limit, struct kg_text *output)
{
    size_t taken = 0;
    bool open = true;
    for (;;) {
        if (kg_process_has_ended(child)) {
            if (open)
                drain(fd, output_limit, output, &taken);
            return true;
        }
        double left = deadline > 0 ? deadline - kg_times_now() : 1;
        if (left <= 0 || (cancel && *cancel))
            return false;
        // The output usually ends shortly before the program.
        int pause = open && left > 0.05 ? 50 : 1;
        struct pollfd wanted = {.fd = fd, .events = POLLIN};
        poll(&wanted, open ? 1 : 0, pause);
        if (open)
            open = drain(fd, output_limit, output, &taken);
    }
}

enum kg_status kg_process_run(const char *const *arguments, const char *folder, double time_limit,
                              const volatile int *cancel, size_t output_limit,
                              struct kg_text *output, struct kg_process_end *end,
                              struct kg_error *error)
{
    *end = (struct kg_process_end){0};
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0)
        return kg_error_set(error, KG_ERROR_IO, "pipe: %s", strerror(errno));
    fcntl(fds[0], F_SETFL, O_NONBLOCK);

    double start = kg_times_now();
    pid_t child = 0;
    int failure = spawn(arguments, folder, fds[1], &child);
    close(fds[1]);
    if (failure) {
        close(fds[0]);
        return kg_error_set(error, failure == ENOMEM ? KG_ERROR_MEMORY : KG_ERROR_MISSING,
                            "cannot start %s: %s", arguments[0], strerror(failure));
    }

    double deadline = time_limit > 0 ? start + time_limit : 0;
    bool ended = attend(child, fds[0], deadline, cancel, output_limit, output);
    kill(-child, SIGKILL);
    reap(child, end);
    close(fds[0]);
    end->seconds = kg_times_now() - start;
    if (!ended && cancel && *cancel)
        return kg_error_set(error, KG_ERROR_CANCELLED, "%s was cancelled", arguments[0]);
    if (!ended)
        return kg_error_set(error, KG_ERROR_TIMEOUT, "%s did not finish within %g s", arguments[0],
                            time_limit);
    return KG_OK;
}
