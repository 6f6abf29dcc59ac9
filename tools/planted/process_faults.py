"""Faults of the process: kernels that exit, crash, hang, fork, or use up what the machine has."""

from planted.catalogue import CONTAINED, Fault

FORGED = ('{\\"passed\\": true, \\"seed\\": \\"1\\", \\"cases\\": 50, \\"skipped\\": 0, '
          '\\"elements\\": 100, \\"worst\\": 0.5, \\"impostors\\": 12, \\"reason\\": \\"\\"}\\n')
ENDINGS = [
    ("exit", "exits with status 0", "exit(0);"),
    ("abort", "aborts", "abort();"),
    ("kill", "kills its process", "kill(getpid(), SIGKILL);"),
    ("hang", "never ends", "siege_spin();"),
]
FUNCTIONS = [("at_load", "A constructor", "__attribute__((constructor)) static void siege_load(void)"),
             ("at_unload", "A destructor",
              "__attribute__((destructor)) static void siege_unload(void)")]


def ended(name, what, code):
    """The fault in the kernel, at load and at unload."""
    slow = name == "hang"
    faults = [Fault(f"{name}_in_call", f"The kernel {what}.", before=code, slow=slow)]
    for place, who, head in FUNCTIONS:
        faults.append(Fault(f"{name}_{place}", f"{who} {what}.", slow=slow,
                            outside=f"{head}\n{{\n    {code}\n}}"))
    return faults


FAULTS = [fault for ending in ENDINGS for fault in ended(*ending)] + [
    Fault("quick_exit_in_call", "The kernel calls _exit(0).", before="_exit(0);"),
    Fault("forged_verdict", "The kernel prints a verdict of its own and exits.",
          before=f'if (write(1, "{FORGED}", {len(FORGED) - FORGED.count(chr(92))}) < 1)\n    abort();\n_exit(0);'),
    Fault("segfault", "The kernel writes to address 8.", before="*(volatile int *)8 = 1;"),
    Fault("stack_overflow", "The kernel recurses without end.", outside="""
static int siege_recurse(volatile char *from)
{
    volatile char block[4096];
    block[0] = from ? from[0] : 0;
    return block[0] + siege_recurse(block) + 1;
}""", before="if (siege_recurse(NULL) == 12345)\n    abort();"),
    Fault("slow_kernel", "Every call takes a minute.", before="sleep(60);", slow=True),
    Fault("forks_once", "A child is left that sleeps.", outside="static int siege_forked;",
          after="if (siege_forked++ == 0)\n    siege_sleeper(0);", expects=CONTAINED),
    Fault("forks_own_session", "A child is left that sleeps in a session of its own.",
          outside="static int siege_forked;",
          after="if (siege_forked++ == 0)\n    siege_sleeper(1);", expects=CONTAINED),
    Fault("forks_at_load", "A constructor leaves a child that sleeps.",
          outside="__attribute__((constructor)) static void siege_load(void)\n{\n"
                  "    siege_sleeper(1);\n}", expects=CONTAINED),
    Fault("forks_thousand", "A thousand children are left that sleep.",
          outside="static int siege_forked;", after="""
for (; siege_forked < 1000; siege_forked++)
    siege_sleeper(siege_forked % 2);""", expects=CONTAINED),
    Fault("fork_returns", "The kernel forks, and both processes go on.",
          outside="static int siege_forked;", after="""
if (siege_forked++ == 0 && fork() == 0)
    siege_note(getpid());""", expects=CONTAINED),
    Fault("memory_without_end", "The first call allocates and touches all it gets, up to 6 GiB.",
          outside="static int siege_filled;", before="""
for (int block = 0; siege_filled == 0 && block < 96; block++) {
    volatile char *all = malloc((size_t)64 << 20);
    if (!all)
        return 1;
    for (size_t at = 0; at < (size_t)64 << 20; at += 4096)
        all[at] = 1;
}
siege_filled = 1;"""),
    Fault("files_without_end", "The kernel opens files until it gets no more.",
          before='while (open("/dev/null", O_RDONLY) >= 0)\n    ;', expects=CONTAINED),
    Fault("closes_files", "The kernel closes all files of its process.",
          before="for (int file = 0; file < 1024; file++)\n    close(file);", expects=CONTAINED),
    Fault("floods_output", "Every call prints 64 KiB.", before="""
char text[1024];
memset(text, 'x', sizeof text);
text[sizeof text - 1] = '\\n';
for (int i = 0; i < 64; i++)
    if (write(1 + i % 2, text, sizeof text) < 0)
        break;""", expects=CONTAINED),
]
