// Processes that search one problem with the same records, and are killed at random moments:
// nothing that was recorded is lost, nothing is measured twice, and the database stays intact.
// KG_KILLS is the number of kills, of one process after the other, and again of four at once.

#include "kernelgen.h"
#include "property/random_op.h"
#include "test.h"

#include <sqlite3.h>

#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_PROCESSES 4
#define MAX_TEXT 256
// A search of the problem takes a second or two, and is let finish after so many kills.
#define KILLS_PER_PROBLEM 10
#define MAX_PAUSE 700 // milliseconds between two kills, divided among the processes

static uint64_t state;
static int kills; // per test

static int random_below(int limit)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (int)(state % (uint64_t)limit);
}

// What was seen in the records after the last kill: rows up to `last`, in number and as a hash.
struct rows {
    int64_t last;
    int64_t count;
    uint64_t hash;
};

// One home, and the processes that use it.
struct world {
    char home[64];
    int told[2]; // a pipe: which outcomes each process has recorded
    int count;   // processes at a time
    pid_t processes[MAX_PROCESSES];
    int problem; // its number: when one is done, the next one begins
    int killed, finished, heard;
    struct rows rows;
};

// A search reports the candidate that it tries; the one before is on record then.
struct teller {
    int pipe;
    char previous[MAX_TEXT];
};

static void on_progress(void *user, const char *what, int done, int total)
{
    struct teller *teller = user;
    (void)done, (void)total;
    size_t length = strlen(teller->previous) + 1;
    if (length > 1 && write(teller->pipe, teller->previous, length) != (ssize_t)length)
        _exit(3);
    bool is_candidate = strchr(what, ':') != NULL && strlen(what) < MAX_TEXT;
    snprintf(teller->previous, sizeof teller->previous, "%s", is_candidate ? what : "");
}

static enum kg_status profile(const struct world *world)
{
    struct teller teller = {.pipe = world->told[1]};
    struct kg_options options = {.size = sizeof options,
                                 .home = world->home,
                                 .threads = 1,
                                 .progress = on_progress,
                                 .user = &teller};
    struct kg_context *context = NULL;
    struct kg_device *device = NULL;
    struct kg_op *op = NULL;
    struct kg_problem *problem = NULL;
    char text[MAX_TEXT], *page = NULL;
    snprintf(text, sizeof text,
             "op sumrows%d(x: f32[P, D]) -> (y: f32[P])\n{ y[p] = sum(d) x[p, d] }\n"
             "goal { verify P D = 3 5\n tune P D = 4 8 }\n",
             world->problem);
    enum kg_status status = kg_context_create(&options, &context);
    if (status == KG_OK)
        status = kg_context_set_protocol(context, "warm launch"); // takes less time
    if (status == KG_OK)
        status = kg_op_parse(context, "sum.kg", text, strlen(text), NULL, &op);
    if (status == KG_OK)
        status = kg_problem_create(context, op, NULL, 0, &problem);
    if (status == KG_OK)
        status = kg_context_device(context, "host", &device);
    if (status == KG_OK)
        status = kg_profile(problem, device, 0, false, &page);
    if (status != KG_OK)
        fprintf(stderr, "profile: %s\n", kg_context_error(context));
    kg_text_release(page);
    kg_problem_destroy(problem);
    kg_op_destroy(op);
    kg_context_destroy(context);
    return status;
}

static pid_t start(const struct world *world)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(profile(world) == KG_OK ? 0 : 1);
    CHECK(child > 0);
    return child;
}

static sqlite3 *open_records(const struct world *world)
{
    char path[128];
    sqlite3 *database = NULL;
    snprintf(path, sizeof path, "%s/records.db", world->home);
    if (sqlite3_open_v2(path, &database, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK) {
        sqlite3_close(database);
        return NULL;
    }
    sqlite3_busy_timeout(database, 20000);
    return database;
}

static int64_t ask(sqlite3 *database, const char *question, const char *parameter)
{
    sqlite3_stmt *statement = NULL;
    int64_t answer = -1;
    if (sqlite3_prepare_v2(database, question, -1, &statement, NULL) == SQLITE_OK) {
        if (parameter)
            sqlite3_bind_text(statement, 1, parameter, -1, SQLITE_STATIC);
        if (sqlite3_step(statement) == SQLITE_ROW)
            answer = sqlite3_column_int64(statement, 0);
    }
    sqlite3_finalize(statement);
    return answer;
}

// The outcomes up to id `last`.
static struct rows read_rows(sqlite3 *database, int64_t last)
{
    struct rows rows = {.hash = 14695981039346656037u};
    sqlite3_stmt *statement = NULL;
    CHECK(sqlite3_prepare_v2(database, "SELECT id, seal FROM outcomes WHERE id <= ? ORDER BY id",
                             -1, &statement, NULL) == SQLITE_OK);
    sqlite3_bind_int64(statement, 1, last);
    while (sqlite3_step(statement) == SQLITE_ROW) {
        rows.last = sqlite3_column_int64(statement, 0);
        rows.count++;
        for (const unsigned char *seal = sqlite3_column_text(statement, 1); seal && *seal; seal++)
            rows.hash = (rows.hash ^ *seal) * 1099511628211u;
    }
    sqlite3_finalize(statement);
    return rows;
}

// All that the processes said they had recorded is there.
static void check_told(struct world *world, sqlite3 *database)
{
    static char bytes[1 << 16];
    ssize_t length = read(world->told[0], bytes, sizeof bytes - 1);
    bytes[length > 0 ? length : 0] = '\0';
    for (const char *at = bytes; length > 0 && at < bytes + length; at += strlen(at) + 1) {
        char name[32];
        snprintf(name, sizeof name, "sumrows%d", world->problem);
        sqlite3_stmt *statement = NULL;
        CHECK(sqlite3_prepare_v2(database,
                                 "SELECT count(*) FROM outcomes JOIN full_keys ON full_keys.id = "
                                 "key JOIN candidates ON candidates.id = candidate"
                                 " WHERE op = ? AND choice = ?",
                                 -1, &statement, NULL) == SQLITE_OK);
        sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
        sqlite3_bind_text(statement, 2, at, -1, SQLITE_STATIC);
        bool found = sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_int(statement, 0) > 0;
        if (!found)
            fprintf(stderr, "lost: %s\n", at);
        CHECK(found);
        sqlite3_finalize(statement);
        world->heard++;
    }
}

static void check_records(struct world *world)
{
    sqlite3 *database = open_records(world);
    if (!database || ask(database, "SELECT count(*) FROM pragma_table_info('leases')", NULL) == 0) {
        CHECK(world->rows.count == 0); // killed before it had made them
        sqlite3_close(database);
        return;
    }
    CHECK(ask(database, "SELECT integrity_check = 'ok' FROM pragma_integrity_check", NULL) == 1);
    CHECK(ask(database,
              "SELECT ifnull(max(n), 1) FROM (SELECT count(*) AS n FROM outcomes"
              " WHERE kind <> 'pruned' AND NOT final GROUP BY key, candidate)",
              NULL) == 1);
    struct rows before = read_rows(database, world->rows.last);
    CHECK(before.count == world->rows.count);
    CHECK(before.count == 0 || before.hash == world->rows.hash);
    check_told(world, database);
    world->rows = read_rows(database, INT64_MAX);
    sqlite3_close(database);
}

// Lets the processes find everything; then the next problem begins.
static void finish_problem(struct world *world)
{
    int status;
    for (int i = 0; i < world->count; i++) {
        CHECK(waitpid(world->processes[i], &status, 0) == world->processes[i]);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    check_records(world);
    world->problem++;
    world->finished++;
}

static bool has_ended(pid_t process)
{
    siginfo_t end = {0};
    CHECK(waitid(P_PID, (id_t)process, &end, WEXITED | WNOHANG | WNOWAIT) == 0);
    return end.si_pid == process;
}

// False if the process had found everything before.
static bool kill_one(struct world *world)
{
    int which = random_below(world->count), status;
    const struct timespec pause = {.tv_nsec =
                                       1000000L * random_below(2 * MAX_PAUSE / (1 + world->count))};
    nanosleep(&pause, NULL);
    if (has_ended(world->processes[which]))
        return false;
    kill(world->processes[which], SIGKILL);
    CHECK(waitpid(world->processes[which], &status, 0) == world->processes[which]);
    bool was_done = WIFEXITED(status); // just before
    CHECK(was_done ? WEXITSTATUS(status) == 0 : WTERMSIG(status) == SIGKILL);
    world->killed += !was_done;
    check_records(world);
    world->processes[which] = start(world);
    return true;
}

// Kills processes that search one problem, and lets them finish it.
static void search_problem(struct world *world)
{
    for (int i = 0; i < world->count; i++)
        world->processes[i] = start(world);
    for (int n = 0; n < KILLS_PER_PROBLEM && world->killed < kills; n++)
        if (!kill_one(world))
            break;
    finish_problem(world);
}

static void await_orphans(void)
{
    alarm(300);
    while (waitpid(-1, NULL, 0) > 0)
        ;
    alarm(0);
}

static int remove_entry(const char *path, const struct stat *about, int kind, struct FTW *place)
{
    (void)about, (void)kind, (void)place;
    return remove(path);
}

// Every problem was searched to the end, however often it was interrupted. How many candidates that
// takes depends on what the device is measured to be, so it may differ.
static void check_whole(const struct world *world)
{
    sqlite3 *database = open_records(world);
    int64_t measured =
        ask(database, "SELECT count(*) FROM outcomes WHERE kind = 'measured' AND NOT final", NULL);
    CHECK(ask(database,
              "SELECT count(DISTINCT key) FROM outcomes WHERE kind = 'measured' AND final",
              NULL) == world->finished);
    CHECK(ask(database, "SELECT count(*) FROM leases", NULL) == 0);
    CHECK(ask(database, "SELECT count(*) FROM wisdom WHERE rigor = 'exhaustive'", NULL) ==
          world->finished);
    printf("%d processes at a time: %d kills, %d problems, %" PRId64 " candidates measured once, "
           "%d of the recorded outcomes checked\n",
           world->count, world->killed, world->finished, measured, world->heard);
    sqlite3_close(database);
}

static void test(int count)
{
    struct world world = {.home = "/tmp/kernelgen-kills-XXXXXX", .count = count};
    if (!mkdtemp(world.home) || pipe(world.told) != 0)
        abort();
    fcntl(world.told[0], F_SETFL, O_NONBLOCK);
    int before = test_failures;
    while (world.killed < kills && test_failures == before)
        search_problem(&world);
    await_orphans();
    check_whole(&world);
    close(world.told[0]);
    close(world.told[1]);
    nftw(world.home, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void prepare(void)
{
    const char *wanted = getenv("KG_KILLS");
    kills = wanted ? (int)strtol(wanted, NULL, 10) : 10;
    state = random_seed(1) * 2654435761u + 1;
    CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
}

static void test_one(void)
{
    test(1);
}

static void test_four(void)
{
    test(MAX_PROCESSES);
}

TEST_MAIN(prepare, test_one, test_four)
