// See owner.h.

#include "store/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// Files of /proc are read in one call. Returns false if there is none, or no permission.
static bool read_line(const char *path, char *line, size_t size)
{
    line[0] = '\0';
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    ssize_t length = read(file, line, size - 1);
    close(file);
    line[length > 0 ? length : 0] = '\0';
    line[strcspn(line, "\n")] = '\0';
    return length > 0;
}

// The third and the twenty-second field of /proc/PID/stat. The second one is the program's name in
// parentheses, which may contain anything.
static bool read_stat(int64_t pid, char *state, int64_t *started)
{
    char path[64], line[1024];
    snprintf(path, sizeof path, "/proc/%" PRId64 "/stat", pid);
    if (!read_line(path, line, sizeof line))
        return false;
    const char *rest = strrchr(line, ')');
    if (!rest || sscanf(rest + 1, " %c", state) != 1)
        return false;
    for (int field = 2; field < 22; field++) {
        rest = strchr(rest + 1, ' ');
        if (!rest)
            return false;
    }
    return sscanf(rest, "%" SCNd64, started) == 1;
}

void kg_owner_self(struct kg_owner *self)
{
    *self = (struct kg_owner){.pid = getpid()};
    read_line("/proc/sys/kernel/random/boot_id", self->boot, sizeof self->boot);
    ssize_t length =
        readlink("/proc/self/ns/pid", self->pid_namespace, sizeof self->pid_namespace - 1);
    self->pid_namespace[length > 0 ? length : 0] = '\0';
    char state;
    if (!read_stat(self->pid, &state, &self->started))
        self->started = 0;
}

bool kg_owner_has_ended(const struct kg_owner *owner)
{
    struct kg_owner self;
    kg_owner_self(&self);
    if (strcmp(owner->boot, self.boot) != 0)
        return true;
    if (strcmp(owner->pid_namespace, self.pid_namespace) != 0)
        return false;
    if (owner->pid < 1 || owner->pid > INT_MAX)
        return true;
    if (kill((pid_t)owner->pid, 0) != 0 && errno == ESRCH)
        return true;
    char state;
    int64_t started;
    if (!read_stat(owner->pid, &state, &started))
        return false; // /proc may hide the processes of other users
    bool is_dead = state == 'Z' || state == 'X';
    return is_dead || (owner->started > 0 && started != owner->started);
}

int64_t kg_owner_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return now.tv_sec;
}
