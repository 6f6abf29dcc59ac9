#include "verify/witness.h"

#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <ucontext.h>

#define SIGNALS 2

static const int signals[SIGNALS] = {SIGSEGV, SIGBUS};
static struct sigaction before[SIGNALS];
static struct kg_witness *_Atomic watched;

enum kg_status kg_witness_make(struct kg_witness **witness, struct kg_error *error)
{
    *witness =
        mmap(NULL, sizeof **witness, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (*witness != MAP_FAILED)
        return KG_OK;
    *witness = NULL;
    return kg_error_memory(error, "a gate");
}

void kg_witness_free(struct kg_witness *witness)
{
    if (witness)
        munmap(witness, sizeof *witness);
}

static int is_write(const ucontext_t *context)
{
#if defined __x86_64__ && defined __linux__
    return (context->uc_mcontext.gregs[REG_ERR] >> 1) & 1;
#else
    (void)context;
    return -1;
#endif
}

// The instruction faults again when the handler returns, and the signal then has its default
// effect.
static void note(int number, siginfo_t *info, void *context)
{
    struct kg_witness *witness = atomic_load(&watched);
    if (witness && atomic_load(&witness->address) == 0) {
        atomic_store(&witness->writes, is_write(context));
        atomic_store(&witness->address, (uintptr_t)info->si_addr);
    }
    signal(number, SIG_DFL);
}

void kg_witness_forget(struct kg_witness *witness)
{
    atomic_store(&witness->running, 0);
    atomic_store(&witness->address, 0);
}

void kg_witness_begin(struct kg_witness *witness, bool faults)
{
    struct sigaction action = {.sa_sigaction = note, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    kg_witness_forget(witness);
    atomic_store(&watched, witness);
    for (int i = 0; i < SIGNALS && faults; i++)
        sigaction(signals[i], &action, &before[i]);
}

void kg_witness_end(bool faults)
{
    for (int i = 0; i < SIGNALS && faults; i++)
        sigaction(signals[i], &before[i], NULL);
    atomic_store(&watched, NULL);
}
