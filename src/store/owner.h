// Which process this is, in a form that other processes on the same machine can check later: a
// process number alone is given to another process some time after the first one has ended. Only
// src/store includes this.

#ifndef KG_STORE_OWNER_H
#define KG_STORE_OWNER_H

#include <stdbool.h>
#include <stdint.h>

#define KG_OWNER_TEXT 64

struct kg_owner {
    char boot[KG_OWNER_TEXT];          // the kernel's id of this start of the machine; "": unknown
    char pid_namespace[KG_OWNER_TEXT]; // containers number their processes separately
    int64_t pid;
    int64_t started; // clock ticks since the machine started; 0: unknown
};

void kg_owner_self(struct kg_owner *self);
// Whether this process has certainly ended. One that was killed has, even while its parent has not
// waited for it. False for processes of other containers, of which nothing can be known.
bool kg_owner_has_ended(const struct kg_owner *owner);
// Seconds since the machine started, with those in which it slept.
int64_t kg_owner_clock(void);

#endif
