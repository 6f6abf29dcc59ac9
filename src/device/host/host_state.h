// State of a thread that a kernel must leave as it found it, and of the process.

#ifndef KG_DEVICE_HOST_STATE_H
#define KG_DEVICE_HOST_STATE_H

#include <fenv.h>
#include <signal.h>
#include <stdbool.h>

struct kg_host_thread_state {
    femode_t modes; // of arithmetic: rounding, subnormals, traps
    sigset_t blocked;
};

void kg_host_thread_state_read(struct kg_host_thread_state *state);
// What differs from `before`, which is then restored; NULL: nothing.
const char *kg_host_thread_state_restore(const struct kg_host_thread_state *before);

#define KG_HOST_SIGNALS 32

struct kg_host_process_state {
    struct sigaction actions[KG_HOST_SIGNALS];
};

void kg_host_process_state_read(struct kg_host_process_state *state);
const char *kg_host_process_state_restore(const struct kg_host_process_state *before);

#endif
