#include "device/host/host_state.h"

#include <string.h>

void kg_host_thread_state_read(struct kg_host_thread_state *state)
{
    memset(state, 0, sizeof *state); // so that bytes between members are equal
    fegetmode(&state->modes);
#ifdef __x86_64__
    state->modes.__mxcsr &= ~0x3fu; // flags of what happened, which every kernel raises
#endif
    pthread_sigmask(SIG_SETMASK, NULL, &state->blocked);
}

static bool same_signals(const sigset_t *a, const sigset_t *b)
{
    for (int number = 1; number < KG_HOST_SIGNALS; number++)
        if (sigismember(a, number) != sigismember(b, number))
            return false;
    return true;
}

const char *kg_host_thread_state_restore(const struct kg_host_thread_state *before)
{
    struct kg_host_thread_state now;
    kg_host_thread_state_read(&now);
    const char *what = NULL;
    if (memcmp(&now.modes, &before->modes, sizeof now.modes) != 0) {
        what = "the modes of arithmetic (rounding, subnormals, or traps)";
        fesetmode(&before->modes);
    } else if (!same_signals(&now.blocked, &before->blocked)) {
        what = "the signals that are blocked";
        pthread_sigmask(SIG_SETMASK, &before->blocked, NULL);
    }
    return what;
}

void kg_host_process_state_read(struct kg_host_process_state *state)
{
    memset(state, 0, sizeof *state);
    for (int number = 1; number < KG_HOST_SIGNALS; number++)
        sigaction(number, NULL, &state->actions[number]);
}

const char *kg_host_process_state_restore(const struct kg_host_process_state *before)
{
    const char *what = NULL;
    for (int number = 1; number < KG_HOST_SIGNALS; number++) {
        struct sigaction now;
        sigaction(number, NULL, &now);
        if (now.sa_handler == before->actions[number].sa_handler)
            continue;
        what = "what signals do";
        sigaction(number, &before->actions[number], NULL);
    }
    return what;
}
