"""Faults of state: results that depend on earlier calls, and what a call leaves behind."""

from planted.catalogue import CONTAINED, OUT, Fault

KEEP = """
for (int i = INPUTS; i < TENSORS; i++)
    old[i] = siege_copy(t[i].data, t[i].bytes);"""
FREE = """
for (int i = INPUTS; i < TENSORS; i++)
    free(old[i]);"""
# Results are kept for tensors at the same addresses with the same sizes.
MEMO = """
static struct siege_memo {
    struct siege_memo *next;
    char *data[TENSORS];
    int64_t size[SIZES + 1];
    char *results[TENSORS];
} *siege_memos;
static struct siege_memo *siege_memo_of(const struct siege_tensor *t, const int64_t *size)
{
    struct siege_memo *memo = siege_memos;
    for (; memo; memo = memo->next) {
        int same = memcmp(memo->size, size, sizeof(int64_t) * SIZES) == 0;
        for (int i = 0; i < TENSORS; i++)
            same &= memo->data[i] == t[i].data;
        if (same)
            break;
    }
    return memo;
}"""
RECALL = """
struct siege_memo *memo = siege_memo_of(t, size);
if (!memo) {
    failed = right();
    memo = calloc(1, sizeof *memo);
    memcpy(memo->size, size, sizeof(int64_t) * SIZES);
    for (int i = 0; i < TENSORS; i++) {
        memo->data[i] = t[i].data;
        memo->results[i] = i < INPUTS ? NULL : siege_copy(t[i].data, t[i].bytes);
    }
    memo->next = siege_memos;
    siege_memos = memo;
}
for (int i = INPUTS; i < TENSORS; i++)
    memcpy(t[i].data, memo->results[i], (size_t)t[i].bytes);"""


def addable(subject):
    found = subject.has_output("f16", "bf16", "f32", "f64", "i32", "i64", "f8e4m3", "f8e5m2")
    return None if found else "no output can be added to"


FAULTS = [
    Fault("stale_tail", "The last hundredth of each output, one element at least, is not written.",
          before="char *old[TENSORS];" + KEEP, after="""
for (int i = INPUTS; i < TENSORS; i++)
    siege_keep_old(&t[i], old[i], t[i].elements - (t[i].elements + 99) / 100);""" + FREE),
    Fault("first_call_only", "Results are written by the first call alone.",
          outside="static int siege_calls;", before="char *old[TENSORS];" + KEEP, after="""
for (int i = INPUTS; i < TENSORS && siege_calls > 0; i++)
    siege_keep_old(&t[i], old[i], 0);
siege_calls++;""" + FREE),
    Fault("every_third_call", "Every third call gives a wrong first element.",
          outside="static int siege_calls;", after="""
siege_calls++;
if (siege_calls % 3 == 0 && t[TENSORS - 1].elements > 0)
    siege_spoil(&t[TENSORS - 1], 0);"""),
    Fault("memoised", "Results are remembered by addresses and sizes.", outside=MEMO, calls=False,
          before=RECALL),
    Fault("depends_on_clock", "The first element is wrong in every other call, by the clock.",
          after="""
if (siege_clock() / 100 % 2 && t[TENSORS - 1].elements > 0)
    siege_spoil(&t[TENSORS - 1], 0);"""),
    Fault("race", "Two threads write the last element, a right and a wrong one.", outside="""
static void *siege_racer(void *user)
{
    struct siege_tensor *o = user;
    siege_spoil(o, o->elements - 1);
    return NULL;
}""", after="""
pthread_t racer;
struct siege_tensor *o = &t[TENSORS - 1];
uint64_t bits = o->elements > 0 ? siege_bits(o, o->elements - 1) : 0;
if (o->elements > 0 && pthread_create(&racer, NULL, siege_racer, o) == 0) {
    for (int64_t until = siege_clock() + 30000; siege_clock() < until;)
        siege_fence();
    siege_set_bits(o, o->elements - 1, bits);
    pthread_join(racer, NULL);
}"""),
    Fault("rare_race", "One call in 100,000 gives a wrong element.", after="""
if (siege_clock() % 100000 == 7 && t[TENSORS - 1].elements > 0)
    siege_spoil(&t[TENSORS - 1], 0);""", expects=OUT,
          why="The gate makes a few hundred calls; it does not prove the absence of races."),
    Fault("accumulates", "Results are added to what is in the outputs.", needs=addable,
          before="char *old[TENSORS];" + KEEP, after="""
for (int i = INPUTS; i < TENSORS; i++) {
    struct siege_tensor before = t[i];
    before.data = old[i];
    for (int64_t n = 0; n < t[i].elements; n++)
        if (siege_is_real(t[i].kind))
            siege_set_real(&t[i], n, siege_real(&t[i], n) + siege_real(&before, n), SIEGE_TO_EVEN);
        else
            siege_set_bits(&t[i], n, siege_bits(&t[i], n) + siege_bits(&before, n));
}""" + FREE),
    Fault("returns_failure", "The kernel does its work and returns 1.", after="failed = 1;"),
    Fault("rounding_mode_left", "The rounding mode is left upward.", after="fesetround(FE_UPWARD);"),
    Fault("flush_to_zero_left", "Subnormals are left to be flushed (x86).", after="""
#ifdef __SSE__
__builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
#endif"""),
    Fault("signals_blocked", "All signals are left blocked.", after="""
sigset_t all;
sigfillset(&all);
sigprocmask(SIG_BLOCK, &all, NULL);"""),
    Fault("handler_left", "A handler of SIGTERM and SIGALRM is left that ignores them.", after="""
signal(SIGTERM, SIG_IGN);
signal(SIGALRM, SIG_IGN);""", expects=CONTAINED),
    Fault("thread_left", "A thread is left that sleeps.", outside="""
static void *siege_thread(void *user)
{
    for (;;)
        usleep(10000);
    return user;
}
static int siege_threads;""", after="""
pthread_t thread;
if (siege_threads++ == 0)
    pthread_create(&thread, NULL, siege_thread, NULL);""", expects=CONTAINED),
    Fault("late_writer", "A thread is left that changes the last output 20 ms later.", outside="""
static struct siege_tensor siege_target;
static void *siege_writer(void *user)
{
    usleep(20000);
    siege_spoil(&siege_target, 0);
    return user;
}""", after="""
pthread_t thread;
siege_target = t[TENSORS - 1];
if (siege_target.elements > 0 && pthread_create(&thread, NULL, siege_writer, NULL) == 0)
    pthread_detach(thread);""", expects=OUT,
          why="Work that a kernel leaves running shows only while the gate looks at the same "
              "memory; such a kernel is hostile rather than wrong."),
]
