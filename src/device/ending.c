// The table of signals; see ending.h. It has those that a kernel or a compiler can cause, and those
// that systems and users send; others are shown by number.

#include "device/ending.h"

#include <signal.h>
#include <stddef.h>

const struct kg_ending kg_endings[] = {
    {SIGSEGV, "SIGSEGV", "Segmentation fault", "memory access outside any mapping", NULL},
    {SIGBUS, "SIGBUS", "Bus error", "memory access without backing",
     "a file or memory has no room behind it; is the disk full?"},
    {SIGILL, "SIGILL", "Illegal instruction", "illegal instruction", NULL},
    {SIGFPE, "SIGFPE", "Floating point exception", "arithmetic trap", NULL},
    {SIGABRT, "SIGABRT", "Aborted", "abort", NULL},
    {SIGTRAP, "SIGTRAP", "Trace/breakpoint trap", "trap", NULL},
    {SIGSYS, "SIGSYS", "Bad system call", "forbidden system call", NULL},
    {SIGKILL, "SIGKILL", "Killed", "killed, possibly for lack of memory",
     "it was killed, as systems do when memory runs out; make some free, or compile less at once"},
    {SIGTERM, "SIGTERM", "Terminated", "terminated", "something told it to end"},
    {SIGHUP, "SIGHUP", "Hangup", "hangup", "something told it to end"},
    {SIGXCPU, "SIGXCPU", "CPU time limit exceeded", "CPU time limit",
     "the limit on processor time is reached; raise it ('ulimit -t')"},
    {SIGXFSZ, "SIGXFSZ", "File size limit exceeded", "file size limit",
     "the limit on the size of files is reached; raise it ('ulimit -f')"},
    {0, NULL, NULL, NULL, NULL},
};

const struct kg_ending *kg_ending_find(int signal)
{
    for (const struct kg_ending *ending = kg_endings; ending->signal; ending++)
        if (ending->signal == signal)
            return ending;
    return NULL;
}
