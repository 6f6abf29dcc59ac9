// What planted faults of host kernels need besides planted_elements.h. Follows the emitted kernel.

static __attribute__((unused)) void *siege_copy(const void *from, int64_t bytes)
{
    char *copy = malloc((size_t)bytes + 1);
    if (copy)
        memcpy(copy, from, (size_t)bytes);
    else
        abort();
    return copy;
}

// Gives the kernel a copy of an input, which a fault may then change.
static __attribute__((unused)) void siege_own(struct siege_tensor *t)
{
    if (!t->owned)
        t->data = t->owned = siege_copy(t->data, t->bytes);
}

// The elements that a fault makes of those in front of the call, `old`, and of the right ones.
static __attribute__((unused)) void siege_keep_old(const struct siege_tensor *t, const char *old,
                                                   int64_t first)
{
    struct siege_tensor before = *t;
    before.data = (char *)(uintptr_t)old;
    for (int64_t n = first; n < t->elements; n++)
        siege_set_bits(t, n, siege_bits(&before, n));
}

static __attribute__((unused)) int64_t siege_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// Notes a process for the siege, which looks for it when the verdict is there.
static __attribute__((unused)) void siege_note(pid_t process)
{
    int file = open(SIEGE_NOTES, O_WRONLY | O_APPEND | O_CREAT, 0600);
    char line[32];
    int length = snprintf(line, sizeof line, "%ld\n", (long)process);
    if (file >= 0 && write(file, line, (size_t)length) != length)
        length = 0;
    if (file >= 0)
        close(file);
}

// A child that sleeps for ten minutes.
static __attribute__((unused)) void siege_sleeper(int own_session)
{
    pid_t child = fork();
    if (child == 0) {
        if (own_session)
            setsid();
        siege_note(getpid());
        for (int i = 0; i < 60; i++)
            sleep(10);
        _exit(0);
    }
}

static __attribute__((unused)) void siege_spin(void)
{
    for (volatile int i = 0;; i++)
        usleep(1000);
}
