// A process that finds another one measuring the same problem waits for it: says so, keeps to its
// time limit, can be cancelled, and goes on from what is recorded when the other one ends early.

#include "kernelgen.h"
#include "test.h"

#include <sqlite3.h>

#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char definition[] = "op sumrows(x: f32[P, D]) -> (y: f32[P])\n"
                                 "{ y[p] = sum(d) x[p, d] }\n"
                                 "goal { verify P D = 3 5\n tune P D = 4 8 }\n";

static char home[64];
static pid_t holder;

// What a caller does, and what it was told.
struct caller {
    int pause_at; // candidate at which it stops for ever; 0: none
    int pipe;     // tells that it has stopped
    void (*on_wait)(struct caller *caller);
    volatile int cancel;
    int candidates;
    int waits, ends; // notices
    char notice[512];
};

static void on_progress(void *user, const char *what, int done, int total)
{
    struct caller *caller = user;
    (void)done, (void)total;
    if (!strchr(what, ':') || ++caller->candidates != caller->pause_at)
        return;
    if (write(caller->pipe, "", 1) != 1)
        _exit(3);
    for (;;)
        pause();
}

static void on_notice(void *user, const char *text)
{
    struct caller *caller = user;
    bool waits = strstr(text, "waits for process") != NULL;
    caller->ends += strstr(text, "ended before it had measured everything") != NULL;
    caller->waits += waits;
    if (!waits)
        return;
    snprintf(caller->notice, sizeof caller->notice, "%s", text);
    if (caller->on_wait)
        caller->on_wait(caller);
}

static enum kg_status profile(struct caller *caller, double seconds, char **page)
{
    struct kg_options options = {.size = sizeof options,
                                 .home = home,
                                 .threads = 1,
                                 .cancel = &caller->cancel,
                                 .progress = on_progress,
                                 .notice = on_notice,
                                 .user = caller};
    struct kg_context *context = NULL;
    struct kg_device *device = NULL;
    struct kg_op *op = NULL;
    struct kg_problem *problem = NULL;
    *page = NULL;
    enum kg_status status = kg_context_create(&options, &context);
    if (status == KG_OK)
        status = kg_context_set_protocol(context, "warm launch");
    if (status == KG_OK)
        status = kg_op_parse(context, "sum.kg", definition, strlen(definition), NULL, &op);
    if (status == KG_OK)
        status = kg_problem_create(context, op, NULL, 0, &problem);
    if (status == KG_OK)
        status = kg_context_device(context, "host", &device);
    if (status == KG_OK)
        status = kg_profile(problem, device, seconds, false, page);
    if (status != KG_OK && status != KG_ERROR_CANCELLED)
        fprintf(stderr, "profile: %s\n", kg_context_error(context));
    kg_problem_destroy(problem);
    kg_op_destroy(op);
    kg_context_destroy(context);
    return status;
}

static int ask(const char *question)
{
    char path[128];
    sqlite3 *database = NULL;
    sqlite3_stmt *statement = NULL;
    int answer = -1;
    snprintf(path, sizeof path, "%s/records.db", home);
    if (sqlite3_open_v2(path, &database, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(database, question, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        answer = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(database);
    return answer;
}

static int count_measured(void)
{
    CHECK(ask("SELECT ifnull(max(n), 1) FROM (SELECT count(*) AS n FROM outcomes"
              " WHERE kind = 'measured' AND NOT final GROUP BY key, candidate)") == 1);
    return ask("SELECT count(*) FROM outcomes WHERE kind = 'measured' AND NOT final");
}

// Starts a process that measures and stops at its n-th candidate, without ending.
static void start_holder(int pause_at)
{
    int pipes[2];
    char byte;
    snprintf(home, sizeof home, "/tmp/kernelgen-wait-XXXXXX");
    if (!mkdtemp(home) || pipe(pipes) != 0)
        abort();
    fflush(NULL);
    holder = fork();
    if (holder == 0) {
        struct caller caller = {.pause_at = pause_at, .pipe = pipes[1]};
        char *page;
        profile(&caller, 0, &page);
        _exit(2); // it was to be killed
    }
    CHECK(read(pipes[0], &byte, 1) == 1);
    close(pipes[0]);
    close(pipes[1]);
}

static void kill_holder(struct caller *caller)
{
    (void)caller;
    kill(holder, SIGKILL);
}

static void cancel(struct caller *caller)
{
    caller->cancel = 1;
}

static int remove_entry(const char *path, const struct stat *about, int kind, struct FTW *place)
{
    (void)about, (void)kind, (void)place;
    return remove(path);
}

static void end_holder(void)
{
    kill(holder, SIGKILL);
    CHECK(waitpid(holder, NULL, 0) == holder);
    nftw(home, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void check_told(const struct caller *caller)
{
    char expected[128];
    snprintf(expected, sizeof expected, "waits for process %ld, which measures sumrows P=4 D=8",
             (long)holder);
    CHECK(caller->waits == 1 && strstr(caller->notice, expected) != NULL);
}

// At its time limit it uses the best that the other one has recorded.
static void test_time_limit(void)
{
    char *page;
    struct caller caller = {0};
    start_holder(4);
    int measured = count_measured();
    double start = now();
    CHECK(profile(&caller, 0.7, &page) == KG_OK);
    double took = now() - start;
    CHECK(took > 0.6 && took < 10);
    check_told(&caller);
    CHECK(caller.candidates == 0 && measured >= 2 && count_measured() == measured);
    CHECK(page && strstr(page, "Chosen: `") && strstr(page, "from wisdom"));
    kg_text_release(page);
    end_holder();
}

static void test_cancelled(void)
{
    char *page;
    struct caller caller = {.on_wait = cancel};
    start_holder(4);
    int measured = count_measured();
    double start = now();
    enum kg_status status = profile(&caller, 0, &page);
    CHECK(status == KG_OK || status == KG_ERROR_CANCELLED);
    CHECK(now() - start < 10);
    check_told(&caller);
    CHECK(caller.candidates == 0 && count_measured() == measured);
    kg_text_release(page);
    end_holder();
}

static void check_taken_over(struct caller *caller, double seconds)
{
    char *page;
    CHECK(profile(caller, seconds, &page) == KG_OK);
    check_told(caller);
    CHECK(caller->ends == 1 && caller->candidates > 0);
    CHECK(page && strstr(page, "by search"));
    kg_text_release(page);
}

static void test_killed(void)
{
    struct caller caller = {.on_wait = kill_holder};
    start_holder(4);
    int measured = count_measured();
    check_taken_over(&caller, 0);
    CHECK(count_measured() > measured);
    CHECK(ask("SELECT count(*) FROM leases") == 0);
    CHECK(ask("SELECT count(*) FROM wisdom WHERE rigor = 'exhaustive'") == 1);
    end_holder();
}

static void on_alarm(int signal_number)
{
    (void)signal_number;
    kill(holder, SIGKILL);
}

// As without another process, a first candidate is judged whatever the time limit is.
static void test_nothing_yet(void)
{
    struct caller caller = {0};
    start_holder(1);
    CHECK(count_measured() == 0);
    signal(SIGALRM, on_alarm);
    alarm(2);
    check_taken_over(&caller, 0.1);
    CHECK(count_measured() >= 1);
    end_holder();
}

static void prepare(void)
{
    CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
}

TEST_MAIN(prepare, test_time_limit, test_cancelled, test_killed, test_nothing_yet)
