// See forbidden_calls.h. The rules below become one program of the system's packet filter (BPF),
// which the system runs before each call. It sees the numbers of calls and their arguments, but no
// memory: calls whose arguments lie in memory are refused as a whole, as if this system did not
// have them, and the C library then uses older ones.

#include "device/forbidden_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#define FIRST_OF_X32 0x40000000u // the same calls under other numbers, for 32-bit pointers
#elif defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#ifdef ARCHITECTURE

enum offence {
    STARTED,
    RAN,
    LEFT,
    SIGNALLED,
    REACHED,
    WROTE,
    CHANGED,
    OUTLIVES,
    OFFENCE_COUNT,
};

static const char *const words[OFFENCE_COUNT] = {
    [STARTED] = "started a process",
    [RAN] = "ran a program",
    [LEFT] = "left its process group",
    [SIGNALLED] = "sent a signal to another process",
    [REACHED] = "reached into another process",
    [WROTE] = "opened a file for writing",
    [CHANGED] = "created, renamed or removed files",
    [OUTLIVES] = "made shared memory, a queue or a semaphore that outlives it",
};

// When a rule applies to a call with its number. `value` is compared with one argument.
enum condition {
    ALWAYS,
    WITHOUT_BITS, // none of the bits is set
    WITH_BITS,    // any of the bits is set
    EQUAL,
    NOT_OWN, // the argument is not the number of this process; 0 is its group, which is itself
    NOT_NULL,
    EQUAL_TO_SET, // equal, and the next argument, the new value, is not NULL
};

#define REPORT(offence) (SECCOMP_RET_TRAP | (uint32_t)(offence))
#define FAIL(number) (SECCOMP_RET_ERRNO | (uint32_t)(number))

// The origin of a signal that the filter sent. The C library's headers lack the name, SYS_SECCOMP,
// and the system's own do not go together with them.
#define FROM_FILTER 1

struct rule {
    int call;
    uint32_t action;
    enum condition condition;
    int argument;
    uint32_t value;
};

#define WRITING (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)

static const struct rule rules[] = {
    {SYS_clone, REPORT(STARTED), WITHOUT_BITS, 0, CLONE_THREAD},
    {SYS_execve, REPORT(RAN), ALWAYS, 0, 0},
    {SYS_execveat, REPORT(RAN), ALWAYS, 0, 0},
    {SYS_setsid, REPORT(LEFT), ALWAYS, 0, 0},
    {SYS_setpgid, REPORT(LEFT), ALWAYS, 0, 0},
    {SYS_kill, REPORT(SIGNALLED), NOT_OWN, 0, 0},
    {SYS_tkill, REPORT(SIGNALLED), NOT_OWN, 0, 0},
    {SYS_tgkill, REPORT(SIGNALLED), NOT_OWN, 0, 0},
    {SYS_rt_sigqueueinfo, REPORT(SIGNALLED), NOT_OWN, 0, 0},
    {SYS_rt_tgsigqueueinfo, REPORT(SIGNALLED), NOT_OWN, 0, 0},
    {SYS_ptrace, REPORT(REACHED), ALWAYS, 0, 0},
    {SYS_process_vm_readv, REPORT(REACHED), ALWAYS, 0, 0},
    {SYS_process_vm_writev, REPORT(REACHED), ALWAYS, 0, 0},
    {SYS_openat, REPORT(WROTE), WITH_BITS, 2, WRITING},
    {SYS_unlinkat, REPORT(CHANGED), ALWAYS, 0, 0},
    {SYS_renameat2, REPORT(CHANGED), ALWAYS, 0, 0},
    {SYS_mkdirat, REPORT(CHANGED), ALWAYS, 0, 0},
    {SYS_linkat, REPORT(CHANGED), ALWAYS, 0, 0},
    {SYS_symlinkat, REPORT(CHANGED), ALWAYS, 0, 0},
    {SYS_mknodat, REPORT(CHANGED), ALWAYS, 0, 0},
    {SYS_truncate, REPORT(CHANGED), ALWAYS, 0, 0},
    {SYS_shmget, REPORT(OUTLIVES), ALWAYS, 0, 0},
    {SYS_msgget, REPORT(OUTLIVES), ALWAYS, 0, 0},
    {SYS_semget, REPORT(OUTLIVES), ALWAYS, 0, 0},
    {SYS_mq_open, REPORT(OUTLIVES), ALWAYS, 0, 0},
    // What keeps the rules and limits in force.
    {SYS_rt_sigaction, FAIL(EPERM), EQUAL_TO_SET, 0, SIGSYS},
    {SYS_prctl, FAIL(EPERM), EQUAL, 0, PR_SET_PDEATHSIG},
    {SYS_prlimit64, FAIL(EPERM), NOT_NULL, 2, 0},
#ifdef SYS_setrlimit
    {SYS_setrlimit, FAIL(EPERM), ALWAYS, 0, 0},
#endif
#ifdef SYS_renameat
    {SYS_renameat, REPORT(CHANGED), ALWAYS, 0, 0},
#endif
#ifdef SYS_fork // older systems' calls, which x86-64 still has
    {SYS_fork, REPORT(STARTED), ALWAYS, 0, 0},
    {SYS_vfork, REPORT(STARTED), ALWAYS, 0, 0},
    {SYS_open, REPORT(WROTE), WITH_BITS, 1, WRITING},
    {SYS_creat, REPORT(WROTE), ALWAYS, 0, 0},
    {SYS_unlink, REPORT(CHANGED), ALWAYS, 0, 0},
    {SYS_rename, REPORT(CHANGED), ALWAYS, 0, 0},
    {SYS_mkdir, REPORT(CHANGED), ALWAYS, 0, 0},
    {SYS_rmdir, REPORT(CHANGED), ALWAYS, 0, 0},
    {SYS_link, REPORT(CHANGED), ALWAYS, 0, 0},
    {SYS_symlink, REPORT(CHANGED), ALWAYS, 0, 0},
    {SYS_mknod, REPORT(CHANGED), ALWAYS, 0, 0},
#endif
// Calls with arguments in memory.
#ifdef SYS_clone3
    {SYS_clone3, FAIL(ENOSYS), ALWAYS, 0, 0},
#endif
#ifdef SYS_openat2
    {SYS_openat2, FAIL(ENOSYS), ALWAYS, 0, 0},
#endif
#ifdef SYS_io_uring_setup
    {SYS_io_uring_setup, FAIL(ENOSYS), ALWAYS, 0, 0},
#endif
#ifdef SYS_pidfd_send_signal
    {SYS_pidfd_send_signal, REPORT(SIGNALLED), ALWAYS, 0, 0},
#endif
#ifdef SYS_pidfd_getfd
    {SYS_pidfd_getfd, REPORT(REACHED), ALWAYS, 0, 0},
#endif
};
#define RULES (sizeof rules / sizeof rules[0])

struct program {
    struct sock_filter steps[8 + 10 * RULES];
    unsigned short count;
};

static void add(struct program *program, uint16_t code, uint32_t value, uint8_t skip_if_true,
                uint8_t skip_if_false)
{
    program->steps[program->count++] =
        (struct sock_filter){code, skip_if_true, skip_if_false, value};
}

static void load(struct program *program, size_t offset)
{
    add(program, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

// Jumps over so many steps.
static void jump(struct program *program, uint16_t comparison, uint32_t value, uint8_t skip_if_true,
                 uint8_t skip_if_false)
{
    add(program, BPF_JMP | BPF_K | comparison, value, skip_if_true, skip_if_false);
}

static void leave(struct program *program, uint32_t action)
{
    add(program, BPF_RET | BPF_K, action, 0, 0);
}

// Goes on if the argument is not NULL; the call is allowed otherwise.
static void need_pointer(struct program *program, size_t low)
{
    load(program, low);
    jump(program, BPF_JEQ, 0, 0, 3);
    load(program, low + sizeof(uint32_t));
    jump(program, BPF_JEQ, 0, 0, 1);
    leave(program, SECCOMP_RET_ALLOW);
}

// The steps of one rule, for a call that has its number. They end in the rule's action or allow the
// call.
static void add_body(struct program *program, const struct rule *rule, uint32_t self)
{
    size_t low = offsetof(struct seccomp_data, args) + (size_t)rule->argument * sizeof(uint64_t);
    if (rule->condition != ALWAYS)
        load(program, low);
    switch (rule->condition) {
    case ALWAYS:
        break;
    case WITHOUT_BITS:
        jump(program, BPF_JSET, rule->value, 0, 1);
        leave(program, SECCOMP_RET_ALLOW);
        break;
    case WITH_BITS:
        jump(program, BPF_JSET, rule->value, 1, 0);
        leave(program, SECCOMP_RET_ALLOW);
        break;
    case EQUAL:
    case EQUAL_TO_SET:
        jump(program, BPF_JEQ, rule->value, 1, 0);
        leave(program, SECCOMP_RET_ALLOW);
        if (rule->condition == EQUAL_TO_SET)
            need_pointer(program, low + sizeof(uint64_t));
        break;
    case NOT_OWN:
        jump(program, BPF_JEQ, self, 1, 0);
        jump(program, BPF_JEQ, 0, 0, 1);
        leave(program, SECCOMP_RET_ALLOW);
        break;
    case NOT_NULL:
        need_pointer(program, low);
        break;
    }
    leave(program, rule->action);
}

static void write_program(struct program *program, uint32_t self)
{
    load(program, offsetof(struct seccomp_data, arch));
    jump(program, BPF_JEQ, ARCHITECTURE, 1, 0);
    leave(program, SECCOMP_RET_KILL_PROCESS);
    load(program, offsetof(struct seccomp_data, nr));
#ifdef FIRST_OF_X32
    jump(program, BPF_JGE, FIRST_OF_X32, 0, 1);
    leave(program, SECCOMP_RET_KILL_PROCESS);
#endif
    for (size_t i = 0; i < RULES; i++) {
        unsigned short at = program->count;
        jump(program, BPF_JEQ, (uint32_t)rules[i].call, 0, 0);
        add_body(program, &rules[i], self);
        program->steps[at].jf = (uint8_t)(program->count - at - 1);
    }
    leave(program, SECCOMP_RET_ALLOW);
}

// A signal handler finds it nowhere else. Set once, in a process that runs kernels.
static kg_forbidden_report *report_to;

static void report(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    bool is_filter =
        info->si_code == FROM_FILTER && info->si_errno >= 0 && info->si_errno < OFFENCE_COUNT;
    report_to(is_filter ? words[info->si_errno] : "sent itself the signal SIGSYS");
}

bool kg_forbid_calls(kg_forbidden_report *to)
{
    struct program program = {.count = 0};
    struct sigaction action = {.sa_sigaction = report, .sa_flags = SA_SIGINFO};
    sigfillset(&action.sa_mask);
    report_to = to;
    if (sigaction(SIGSYS, &action, NULL) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return false;
    write_program(&program, (uint32_t)getpid());
    struct sock_fprog filter = {.len = program.count, .filter = program.steps};
    // Without this flag, older systems also switch off what makes loads after stores fast, and
    // kernels would be timed so.
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &filter) == 0)
        return true;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0;
}

#else

bool kg_forbid_calls(kg_forbidden_report *to)
{
    (void)to;
    return false;
}

#endif
