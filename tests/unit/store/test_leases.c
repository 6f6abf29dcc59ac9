// Leases: one holder at a time, and none that has ended.

#include "store/owner.h"
#include "support/sample_records.h"
#include "test.h"

#include <inttypes.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>

static char folder[SAMPLE_FOLDER];
static struct kg_error error;

static struct kg_lease take(struct kg_store *store)
{
    struct kg_key key = sample_key();
    struct kg_lease lease;
    CHECK_STATUS(kg_store_lease_take(store, &key, &lease, &error), KG_OK, &error);
    return lease;
}

static void drop(struct kg_store *store)
{
    struct kg_key key = sample_key();
    CHECK_STATUS(kg_store_lease_drop(store, &key, &error), KG_OK, &error);
}

static bool renew(struct kg_store *store)
{
    struct kg_key key = sample_key();
    bool held;
    CHECK_STATUS(kg_store_lease_renew(store, &key, &held, &error), KG_OK, &error);
    return held;
}

static void run(const char *format, ...)
{
    char path[128], sql[512];
    va_list arguments;
    sqlite3 *database;
    va_start(arguments, format);
    vsnprintf(sql, sizeof sql, format, arguments);
    va_end(arguments);
    snprintf(path, sizeof path, "%s/records.db", folder);
    CHECK(sqlite3_open_v2(path, &database, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK);
    sqlite3_busy_timeout(database, 10000);
    CHECK(sqlite3_exec(database, sql, NULL, NULL, NULL) == SQLITE_OK);
    CHECK(sqlite3_changes(database) == 1);
    sqlite3_close(database);
}

static void test_one_holder(void)
{
    sample_folder(folder);
    struct kg_store *one = sample_open(folder), *two = sample_open(folder);
    struct kg_lease lease = take(one);
    CHECK(lease.held && lease.holder == 0);
    CHECK(take(one).held); // again
    lease = take(two);
    CHECK(!lease.held && !lease.holder_ended && lease.holder == getpid());
    CHECK(lease.holder_since >= 0 && lease.holder_since < 60);
    CHECK(renew(one) && !renew(two));
    drop(two); // not its own
    CHECK(!take(two).held);
    drop(one);
    CHECK(take(two).held && !take(one).held && !renew(one));
    struct kg_key key = sample_key(), other = sample_key();
    other.sizes = "P=1 D=1";
    CHECK_STATUS(kg_store_lease_take(one, &other, &lease, &error), KG_OK, &error);
    CHECK(lease.held); // another problem
    CHECK_STATUS(kg_store_lease_take(two, &key, &lease, &error), KG_OK, &error);
    CHECK(lease.held);
    kg_store_close(one);
    kg_store_close(two);
    sample_remove(folder);
}

// A process that was killed has no lease any more, also while it is a zombie.
static void test_killed_holder(void)
{
    sample_folder(folder);
    int pipes[2];
    char byte;
    CHECK(pipe(pipes) == 0);
    pid_t child = fork();
    if (child == 0) {
        struct kg_store *store = sample_open(folder);
        byte = take(store).held;
        if (write(pipes[1], &byte, 1) == 1)
            pause();
        _exit(1);
    }
    CHECK(read(pipes[0], &byte, 1) == 1 && byte == 1);
    struct kg_store *store = sample_open(folder);
    struct kg_lease lease = take(store);
    CHECK(!lease.held && lease.holder == child);
    kill(child, SIGKILL);
    siginfo_t end;
    CHECK(waitid(P_PID, (id_t)child, &end, WEXITED | WNOWAIT) == 0); // a zombie now
    lease = take(store);
    CHECK(lease.held && lease.holder == child && lease.holder_ended);
    CHECK(waitpid(child, NULL, 0) == child);
    kg_store_close(store);
    close(pipes[0]);
    close(pipes[1]);
    sample_remove(folder);
}

// Takes the lease through one store, changes its row, and asks through another store.
static struct kg_lease take_after(const char *change)
{
    sample_folder(folder);
    struct kg_store *one = sample_open(folder), *two = sample_open(folder);
    CHECK(take(one).held);
    run("UPDATE leases SET %s", change);
    struct kg_lease lease = take(two);
    CHECK(renew(one) == !lease.held);
    kg_store_close(one);
    kg_store_close(two);
    sample_remove(folder);
    return lease;
}

static void test_other_holders(void)
{
    char change[128];
    CHECK(!take_after("taken = taken").held);
    CHECK(take_after("boot = 'another'").held);      // the machine was started again
    CHECK(take_after("started = started - 1").held); // the number was given to another process
    CHECK(take_after("pid = 0").held && take_after("pid = 1 << 40").held); // no process
    // A process of another user, or a hidden one: it exists, so it is believed.
    CHECK(!take_after("pid = 1, started = 0").held);
    // In another container: only the time tells.
    CHECK(!take_after("pid_namespace = 'pid:[1]', pid = 1 << 40").held);
    snprintf(change, sizeof change, "pid_namespace = 'pid:[1]', renewed = renewed - %d",
             KG_LEASE_SECONDS + 2);
    CHECK(take_after(change).held);
    // One that was stopped for long; one whose time is damaged.
    snprintf(change, sizeof change, "renewed = renewed - %d", KG_LEASE_SECONDS + 2);
    CHECK(take_after(change).held);
    CHECK(take_after("renewed = 1 << 60").held);
}

static void test_owner(void)
{
    struct kg_owner self;
    kg_owner_self(&self);
    CHECK(self.boot[0] && self.pid_namespace[0] && self.pid == getpid() && self.started > 0);
    CHECK(!kg_owner_has_ended(&self));
    CHECK(kg_owner_clock() > 0);
}

// Of processes that find it free at the same moment one takes it.
static void test_race(void)
{
    enum { PROCESSES = 6 };
    sample_folder(folder);
    kg_store_close(sample_open(folder));
    int answers[2], end[2], held = 0;
    CHECK(pipe(answers) == 0 && pipe(end) == 0);
    for (int i = 0; i < PROCESSES; i++)
        if (fork() == 0) {
            char byte;
            close(end[1]);
            struct kg_store *store = sample_open(folder);
            byte = take(store).held;
            if (write(answers[1], &byte, 1) != 1 || read(end[0], &byte, 1) != 0)
                abort();
            _exit(0); // after all have asked
        }
    for (int i = 0; i < PROCESSES; i++) {
        char byte = 0;
        CHECK(read(answers[0], &byte, 1) == 1);
        held += byte;
    }
    CHECK(held == 1);
    close(end[1]);
    for (int status; wait(&status) > 0;)
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close(end[0]);
    close(answers[0]);
    close(answers[1]);
    sample_remove(folder);
}

TEST_MAIN(test_owner, test_one_holder, test_killed_holder, test_other_holders, test_race)
