// See confinement.h. None of this fails for lack of rights: where the system refuses a limit, the
// others still hold.

#include "device/confinement.h"

#include "base/times.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#define MAX_FILES 256
#define MAX_PRINTED (16 << 20)  // bytes that may be added to a file that errors are printed to
#define ARENA_BYTES (128 << 20) // that the C library reserves for the memory of a thread
#define GRACE_SECONDS 5         // between the signal for too much processor time and the end
#define KILL_SECONDS 5.0

static void set_limit(int resource, rlim_t soft, rlim_t hard)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) != 0)
        return;
    limit.rlim_max = limit.rlim_max < hard ? limit.rlim_max : hard;
    limit.rlim_cur = limit.rlim_max < soft ? limit.rlim_max : soft;
    setrlimit(resource, &limit);
}

// Bytes this process has mapped: all, and those of data and stacks. Zero if unknown.
static void read_mapped(rlim_t *all, rlim_t *data)
{
    unsigned long long pages[6] = {0};
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%llu %llu %llu %llu %llu %llu", &pages[0], &pages[1], &pages[2],
                       &pages[3], &pages[4], &pages[5]) != 6)
        pages[0] = pages[5] = 0;
    if (file)
        fclose(file);
    rlim_t page = (rlim_t)sysconf(_SC_PAGESIZE);
    *all = pages[0] * page;
    *data = pages[5] * page;
}

// Shared mappings count as address space only, and that of threads is mostly reserved, never used:
// hence two limits.
static void limit_memory(const struct kg_confinement *confinement)
{
    rlim_t all, data, threads = (rlim_t)confinement->threads, more = confinement->memory;
    size_t stack = 0;
    pthread_attr_t attributes;
    if (SANITIZED || confinement->memory == 0)
        return;
    read_mapped(&all, &data);
    if (all == 0 || pthread_attr_init(&attributes) != 0)
        return;
    pthread_attr_getstacksize(&attributes, &stack);
    pthread_attr_destroy(&attributes);
    rlim_t space = all + more + threads * (stack + ARENA_BYTES);
    set_limit(RLIMIT_AS, space, space);
    space = data + more + threads * stack;
    set_limit(RLIMIT_DATA, space, space);
}

static void limit_files(void)
{
    struct stat status;
    rlim_t size = MAX_PRINTED;
    if (fstat(STDERR_FILENO, &status) == 0 && S_ISREG(status.st_mode))
        size += (rlim_t)status.st_size;
    set_limit(RLIMIT_FSIZE, size, size);
    set_limit(RLIMIT_NOFILE, MAX_FILES, MAX_FILES);
}

static void limit_time(double seconds)
{
    if (seconds <= 0)
        return;
    rlim_t limit = (rlim_t)seconds + 1;
    set_limit(RLIMIT_CPU, limit, limit + GRACE_SECONDS);
}

static void close_range_of(unsigned first, unsigned last)
{
#ifdef SYS_close_range
    if (first <= last && syscall(SYS_close_range, first, last, 0) == 0)
        return;
#endif
    for (unsigned fd = first; fd <= last && fd < 1024; fd++)
        close((int)fd);
}

static void settle_descriptors(int keep)
{
    close_range_of(3, (unsigned)keep - 1);
    close_range_of((unsigned)keep + 1, ~0u);
    int empty = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (empty > STDIN_FILENO) {
        dup2(empty, STDIN_FILENO);
        close(empty);
    }
    dup2(STDERR_FILENO, STDOUT_FILENO);
}

// When memory runs out, the system ends this process before others.
static void offer_for_killing(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (write(fd, "1000", 4) < 0) {
        // Then the system chooses by itself.
    }
    close(fd);
}

static kg_forbidden_report *exit_report;

static void report_exit(void)
{
    exit_report("called exit()");
}

bool kg_confine(const struct kg_confinement *confinement, int keep, kg_forbidden_report *report)
{
    setsid();
    settle_descriptors(keep);
    offer_for_killing();
    limit_files();
    limit_time(confinement->seconds);
    limit_memory(confinement);
    // Called before the handlers that the parent registered: these would clean up what is the
    // parent's, and print what it has not printed yet.
    exit_report = report;
    atexit(report_exit);
    return !confinement->unfiltered && kg_forbid_calls(report);
}

// The session of a process; 0 when it is gone.
static pid_t session_of(const char *process)
{
    char path[64], line[512];
    int session = 0;
    snprintf(path, sizeof path, "/proc/%.20s/stat", process);
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    size_t length = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[length] = '\0';
    // Its name, in parentheses, may contain anything.
    const char *end = strrchr(line, ')');
    char state = 'Z';
    if (!end || sscanf(end + 1, " %c %*d %*d %d", &state, &session) != 2 || state == 'Z')
        return 0;
    return session;
}

static int kill_members(pid_t session)
{
    int found = 0;
    DIR *folder = opendir("/proc");
    if (!folder)
        return 0;
    for (const struct dirent *entry; (entry = readdir(folder));)
        if (isdigit((unsigned char)entry->d_name[0]) && session_of(entry->d_name) == session) {
            found++;
            kill((pid_t)strtol(entry->d_name, NULL, 10), SIGKILL);
        }
    closedir(folder);
    return found;
}

void kg_kill_session(pid_t session)
{
    double deadline = kg_times_now() + KILL_SECONDS;
    // They may start others meanwhile.
    while (kill_members(session) > 0 && kg_times_now() < deadline)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}
