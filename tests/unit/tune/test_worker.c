// Worker processes: what every way of ending is reported as, and that nothing is left behind.

#include "test.h"
#include "tune/worker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct kg_error error;

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static enum kg_status answer(void *user, void *result, size_t size, struct kg_error *own)
{
    (void)own;
    unsigned char *bytes = result;
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)(i * 7 + *(const unsigned char *)user);
    return KG_OK;
}

static void results_arrive(void)
{
    const size_t sizes[] = {0, 1, 1000, (size_t)5 << 20}; // more than a pipe holds
    unsigned char seed = 3;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        unsigned char *result = malloc(sizes[i] + 1);
        CHECK_STATUS(kg_worker_run(answer, &seed, 60, NULL, result, sizes[i], &error), KG_OK,
                     &error);
        size_t right = 0;
        for (size_t k = 0; k < sizes[i]; k++)
            right += result[k] == (unsigned char)(k * 7 + 3);
        CHECK(right == sizes[i]);
        free(result);
    }
}

static enum kg_status refuse(void *user, void *result, size_t size, struct kg_error *own)
{
    (void)user;
    (void)size;
    *(int *)result = 42;
    return kg_error_set(own, KG_ERROR_WRONG, "not %s", "right");
}

static void the_jobs_own_error_arrives(void)
{
    int result = 0;
    CHECK_STATUS(kg_worker_run(refuse, NULL, 60, NULL, &result, sizeof result, &error),
                 KG_ERROR_WRONG, &error);
    CHECK_TEXT(error.text, "not right");
    CHECK(result == 42);
    CHECK_STATUS(kg_worker_run(refuse, NULL, 60, NULL, &result, sizeof result, NULL),
                 KG_ERROR_WRONG, &error);
}

static enum kg_status end_somehow(void *user, void *result, size_t size, struct kg_error *own)
{
    (void)result;
    (void)size;
    (void)own;
    int how = *(int *)user;
    if (how == 0)
        _exit(7);
    if (how > 0)
        raise(how);
    for (int fd = 3; fd < 64; fd++) // closes the pipe, then hangs
        close(fd);
    for (;;)
        pause();
}

static void deaths_are_told(void)
{
    int how = 0, result = 1;
    CHECK_STATUS(kg_worker_run(end_somehow, &how, 60, NULL, &result, sizeof result, &error),
                 KG_ERROR_FAULT, &error);
    CHECK(strstr(error.text, "status 7") && result == 0);
    how = SIGILL;
    CHECK_STATUS(kg_worker_run(end_somehow, &how, 60, NULL, &result, sizeof result, &error),
                 KG_ERROR_FAULT, &error);
    CHECK(strstr(error.text, "SIGILL"));
    how = SIGKILL;
    CHECK_STATUS(kg_worker_run(end_somehow, &how, 60, NULL, &result, sizeof result, &error),
                 KG_ERROR_FAULT, &error);
    CHECK(strstr(error.text, "SIGKILL"));
    how = SIGSEGV;
    CHECK_STATUS(kg_worker_run(end_somehow, &how, 60, NULL, &result, sizeof result, &error),
                 KG_ERROR_FAULT, &error);
    CHECK(strstr(error.text, "SIGSEGV"));
    how = -1;
    CHECK_STATUS(kg_worker_run(end_somehow, &how, 0.2, NULL, &result, sizeof result, &error),
                 KG_ERROR_TIMEOUT, &error);
}

// Hangs with a child of its own, whose number it tells through a pipe, and ignores what it can.
static enum kg_status hang(void *user, void *result, size_t size, struct kg_error *own)
{
    (void)result;
    (void)size;
    (void)own;
    const int *tell = user;
    signal(SIGTERM, SIG_IGN);
    pid_t below = fork();
    if (below > 0 && tell && write(*tell, &below, sizeof below) < 0)
        _exit(1);
    for (;;)
        pause();
}

static void hangs_are_killed(void)
{
    int fds[2];
    CHECK(pipe(fds) == 0);
    double start = seconds_now();
    CHECK_STATUS(kg_worker_run(hang, &fds[1], 2, NULL, NULL, 0, &error), KG_ERROR_TIMEOUT, &error);
    CHECK(strstr(error.text, "2 s"));
    CHECK(seconds_now() - start >= 2);
    pid_t below = 0;
    CHECK(read(fds[0], &below, sizeof below) == (ssize_t)sizeof below);
    // Its orphan is gone too, or about to be. (A zombie nobody reaped answers to signal 0.)
    char path[64], state[64] = "";
    for (int turn = 0; turn < 3000 && kill(below, 0) == 0; turn++) {
        snprintf(path, sizeof path, "/proc/%d/stat", (int)below);
        FILE *file = fopen(path, "r");
        if (!file || fscanf(file, "%*d (%*[^)]) %63s", state) != 1 || state[0] == 'Z')
            turn = 3000;
        if (file)
            fclose(file);
        usleep(10000);
    }
    CHECK(kill(below, 0) != 0 || state[0] == 'Z' || state[0] == '\0');
    CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
    close(fds[0]);
    close(fds[1]);
}

static volatile int cancel;

static void set_cancel(int number)
{
    (void)number;
    cancel = 1;
}

// As Ctrl-C does it: a signal sets the flag.
static void cancelling_ends_it(void)
{
    cancel = 0;
    signal(SIGALRM, set_cancel);
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value.tv_usec = 100000}, NULL);
    CHECK_STATUS(kg_worker_run(hang, NULL, 60, &cancel, NULL, 0, &error), KG_ERROR_CANCELLED,
                 &error);
    signal(SIGALRM, SIG_DFL);
}

static enum kg_status look_around(void *user, void *result, size_t size, struct kg_error *own)
{
    (void)user;
    (void)size;
    (void)own;
    *(int *)result = getpgrp() == getpid();
    return KG_OK;
}

static void handler(int number)
{
    (void)number;
}

static void workers_stand_alone(void)
{
    int result = 0;
    signal(SIGCHLD, SIG_IGN); // an application may
    CHECK_STATUS(kg_worker_run(look_around, NULL, 60, NULL, &result, sizeof result, &error), KG_OK,
                 &error);
    CHECK(result == 1);
    int how = SIGFPE;
    signal(SIGCHLD, SIG_DFL);
    // Nor do the parent's handlers count in the child.
    signal(SIGFPE, handler);
    CHECK_STATUS(kg_worker_run(end_somehow, &how, 60, NULL, NULL, 0, &error), KG_ERROR_FAULT,
                 &error);
    CHECK(strstr(error.text, "SIGFPE"));
    signal(SIGFPE, SIG_DFL);
}

static void *run_often(void *unused)
{
    (void)unused;
    intptr_t wrong = 0;
    for (int i = 0; i < 30; i++) {
        unsigned char seed = (unsigned char)i, result[100];
        wrong += kg_worker_run(answer, &seed, 60, NULL, result, sizeof result, NULL) != KG_OK;
        wrong += result[5] != (unsigned char)(35 + i);
        int how = SIGABRT;
        wrong += kg_worker_run(end_somehow, &how, 60, NULL, NULL, 0, NULL) != KG_ERROR_FAULT;
    }
    return (void *)wrong;
}

// Not with GCC 12's AddressSanitizer: a child that is forked while another thread allocates may
// find its allocator locked, and hangs.
static void several_at_once(void)
{
    pthread_t threads[3];
#ifdef __SANITIZE_ADDRESS__
    return;
#endif
    for (int i = 0; i < 3; i++)
        CHECK(pthread_create(&threads[i], NULL, run_often, NULL) == 0);
    for (int i = 0; i < 3; i++) {
        void *wrong = NULL;
        pthread_join(threads[i], &wrong);
        CHECK(!wrong);
    }
}

TEST_MAIN(results_arrive, the_jobs_own_error_arrives, deaths_are_told, hangs_are_killed,
          cancelling_ends_it, workers_stand_alone, several_at_once)
