// Builds that are killed or cancelled at many moments: what was recorded stays, is not measured
// again, and the next build goes on from there.

#include "kernelgen.h"
#include "test.h"

#include <sqlite3.h>

#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const char definition[] = "op sumrows(x: f32[P, D]) -> (y: f32[P])\n"
                                 "{ y[p] = sum(d) x[p, d] }\n"
                                 "goal { speedup 1000000\n rounds 1\n"
                                 "verify P D = 3 5\n tune P D = 64 256 }\n";

// A moment of a build: the n-th step of the search, or of the build as a whole.
struct moment {
    int step;
    bool in_search;
    void (*act)(struct moment *moment);
    volatile int cancel;
    bool searching;
    int steps; // seen so far
};

static void on_progress(void *user, const char *what, int done, int total)
{
    (void)done, (void)total;
    struct moment *moment = user;
    bool was_searching = moment->searching;
    moment->searching |= strcmp(what, "optimise") == 0;
    if (moment->in_search && !was_searching)
        return;
    if (++moment->steps == moment->step)
        moment->act(moment);
}

static void do_nothing(struct moment *moment)
{
    (void)moment;
}

static void kill_process(struct moment *moment)
{
    (void)moment;
    kill(getpid(), SIGKILL);
}

static void cancel(struct moment *moment)
{
    moment->cancel = 1;
}

// What a build says of itself, in one.
struct report {
    struct kg_verify_result verify;
    struct kg_bench_result bench;
    struct kg_build_result result;
};

static enum kg_status build(const char *home, struct moment *moment, struct report *report)
{
    struct kg_options options = {
        .home = home, .cancel = &moment->cancel, .progress = on_progress, .user = moment};
    struct kg_context *context = NULL;
    struct kg_device *device = NULL;
    struct kg_op *op = NULL;
    struct kg_problem *problem = NULL;
    *report = (struct report){.result = {.verify = &report->verify, .bench = &report->bench}};
    enum kg_status status = kg_context_create(&options, &context);
    if (status == KG_OK)
        status = kg_op_parse(context, "sum.kg", definition, strlen(definition), NULL, &op);
    if (status == KG_OK)
        status = kg_problem_create(context, op, NULL, 0, &problem);
    if (status == KG_OK)
        status = kg_context_device(context, "host", &device);
    struct kg_build_options wanted = {.rigor = KG_RIGOR_MEASURE};
    if (status == KG_OK)
        status = kg_build(problem, device, &wanted, &report->result, NULL);
    if (status != KG_OK && status != KG_ERROR_CANCELLED)
        fprintf(stderr, "build: %s\n", kg_context_error(context));
    kg_problem_destroy(problem);
    kg_op_destroy(op);
    kg_context_destroy(context);
    return status;
}

static int ask(const char *home, const char *question)
{
    char path[256];
    snprintf(path, sizeof path, "%s/records.db", home);
    sqlite3 *database = NULL;
    sqlite3_stmt *statement = NULL;
    int answer = -1;
    if (sqlite3_open_v2(path, &database, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(database, question, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        answer = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(database);
    return answer;
}

static int count_measured(const char *home)
{
    return ask(home, "SELECT count(*) FROM outcomes WHERE kind = 'measured' AND NOT final");
}

// Nothing damaged, no candidate measured twice, no half-made object left in the cache.
static void check_sound(const char *home)
{
    CHECK(ask(home, "SELECT integrity_check = 'ok' FROM pragma_integrity_check") == 1);
    CHECK(ask(home, "SELECT ifnull(max(n), 1) FROM (SELECT count(*) AS n FROM outcomes"
                    " WHERE kind = 'measured' AND NOT final GROUP BY key, candidate)") == 1);
}

static int remove_entry(const char *path, const struct stat *about, int kind, struct FTW *place)
{
    (void)about, (void)kind, (void)place;
    return remove(path);
}

static void make_home(char home[64])
{
    snprintf(home, 64, "/tmp/kernelgen-build-XXXXXX");
    if (!mkdtemp(home))
        abort();
}

static void remove_home(const char *home)
{
    nftw(home, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

// Children of a process that was killed become ours. Waits until all are gone; a worker or a
// compiler that outlives its build would hang the test here.
static void await_orphans(void)
{
    alarm(300);
    while (waitpid(-1, NULL, 0) > 0)
        ;
    alarm(0);
}

static void test_killed(void)
{
    static const int steps[] = {2, 6, 100000};
    char home[64];
    make_home(home);
    int before = 0;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            struct moment moment = {.step = steps[i], .in_search = true, .act = kill_process};
            struct report report;
            _exit(build(home, &moment, &report) == KG_OK ? 0 : 1);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child);
        bool whole = i + 1 == sizeof steps / sizeof steps[0];
        CHECK(whole ? WIFEXITED(status) && WEXITSTATUS(status) == 0
                    : WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        await_orphans();
        check_sound(home);
        int after = count_measured(home);
        CHECK(after >= before);
        before = after;
    }
    CHECK(before >= 3);
    CHECK(ask(home, "SELECT count(*) FROM wisdom") == 1);

    // All of it is known now.
    struct moment never = {.act = do_nothing};
    struct report report;
    CHECK(build(home, &never, &report) == KG_OK);
    CHECK(count_measured(home) == before);
    remove_home(home);
}

static void test_cancelled(void)
{
    char home[64];
    make_home(home);
    int cancelled = 0;
    for (int step = 2; step < 12; step += 3) {
        struct moment moment = {.step = step, .act = cancel};
        struct report report;
        enum kg_status status = build(home, &moment, &report);
        CHECK(status == KG_OK || status == KG_ERROR_CANCELLED);
        // What is called a result is one.
        CHECK(status != KG_OK || (report.verify.passed && report.bench.seconds > 0));
        cancelled += status == KG_ERROR_CANCELLED;
        await_orphans();
        check_sound(home);
    }
    CHECK(cancelled > 0);
    remove_home(home);
}

static void adopt_orphans(void)
{
    CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
}

TEST_MAIN(adopt_orphans, test_killed, test_cancelled)
