// The system calls that a kernel under judgement may not make: it computes, so it starts no
// process, signals nobody and changes no file. The system itself enforces this (seccomp), for every
// thread of the process, until the process ends.

#ifndef KG_DEVICE_FORBIDDEN_CALLS_H
#define KG_DEVICE_FORBIDDEN_CALLS_H

#include <stdbool.h>

// Called in place of a forbidden call, in a signal handler, with words that complete "the kernel
// ...": "started a process". Does not return.
typedef void kg_forbidden_report(const char *what);

// Forbids the calls to this thread and to all that it starts later. False: the system cannot, and
// nothing is forbidden. Not for processes that use a GPU's driver, which starts processes itself.
bool kg_forbid_calls(kg_forbidden_report *report);

#endif
