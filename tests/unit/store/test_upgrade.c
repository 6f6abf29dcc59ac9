// Databases of earlier versions are brought up to date and lose nothing, and what they know of
// kernels is known as what it is: a choice that was the best, and no verdict on today's kernels.

#include "base/files.h"
#include "support/sample_records.h"
#include "test.h"

#include <sqlite3.h>

static char folder[SAMPLE_FOLDER], path[SAMPLE_FOLDER + 16];
static struct kg_error error;

static void run(const char *sql)
{
    sqlite3 *database;
    char *why = NULL;
    CHECK(sqlite3_open(path, &database) == SQLITE_OK);
    if (sqlite3_exec(database, sql, NULL, NULL, &why) != SQLITE_OK)
        fprintf(stderr, "%s\n", why);
    CHECK(!why);
    sqlite3_free(why);
    sqlite3_close(database);
}

static int ask(const char *sql)
{
    sqlite3 *database;
    sqlite3_stmt *statement;
    CHECK(sqlite3_open(path, &database) == SQLITE_OK);
    CHECK(sqlite3_prepare_v2(database, sql, -1, &statement, NULL) == SQLITE_OK);
    int answer = sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int(statement, 0) : -1;
    sqlite3_finalize(statement);
    sqlite3_close(database);
    return answer;
}

// As a release with tables of this version left them.
static void make_old(int version)
{
    char *sql;
    size_t length;
    sample_folder(folder);
    snprintf(path, sizeof path, "%s/records.db", folder);
    CHECK_STATUS(
        kg_files_read(KG_SOURCE_DIR "/tests/data/records_3.sql", 1 << 20, &sql, &length, &error),
        KG_OK, &error);
    run(sql);
    if (version < 3)
        run("DELETE FROM promises WHERE outcome IN (SELECT id FROM outcomes WHERE override <> '');"
            "DELETE FROM outcomes WHERE override <> '';"
            "ALTER TABLE outcomes DROP COLUMN override; PRAGMA user_version = 2");
    if (version < 2)
        run("DROP TABLE promises; PRAGMA user_version = 1");
    CHECK(ask("PRAGMA user_version") == version);
    free(sql);
}

static struct kg_outcome find(struct kg_store *store, const char *choice)
{
    struct kg_key key = sample_key();
    struct kg_outcome found;
    bool any;
    CHECK_STATUS(kg_store_find(store, &key, choice, &found, &any, &error), KG_OK, &error);
    CHECK(any);
    return found;
}

static bool is_zero(struct kg_hash hash)
{
    return hash.high == 0 && hash.low == 0;
}

static void check_wisdom(struct kg_store *store, const char *sizes, const char *choice)
{
    struct kg_wisdom wisdom;
    struct kg_key key = sample_key();
    key.sizes = sizes;
    CHECK_STATUS(kg_store_recall(store, &key, &wisdom, &error), KG_OK, &error);
    CHECK_TEXT(wisdom.choice ? wisdom.choice : "", choice);
    CHECK(wisdom.seconds == 1.25e-5 && is_zero(wisdom.source));
    kg_wisdom_free(&wisdom);
}

static void count_round(void *user, const struct kg_round *round)
{
    int *count = user;
    CHECK_TEXT(round->diagnosis, "latency");
    ++*count;
}

static void check_upgraded(int version)
{
    struct kg_store *store;
    struct kg_text notice = {0};
    make_old(version);
    CHECK_STATUS(kg_store_open(folder, &store, &notice, &error), KG_OK, &error);
    CHECK(notice.length == 0); // nothing was moved aside
    // What two generators found of one problem is known together.
    struct kg_outcome four = find(store, "rowwise vector=4"), eight = sample_outcome("");
    CHECK(four.timing.median == 1.25e-5 && four.verdict.passed && is_zero(four.emitted));
    CHECK(four.forecast.known == (version >= 2));
    eight = find(store, "rowwise vector=8");
    CHECK(eight.timing.median == 1.25e-5 && is_zero(eight.emitted));
    check_wisdom(store, "P=4096 D=1000", "rowwise vector=4"); // learned last, not fastest
    check_wisdom(store, "P=1 D=2", "rowwise vector=8");
    struct kg_key key = sample_key();
    int rounds = 0;
    CHECK_STATUS(kg_store_rounds(store, &key, count_round, &rounds, &error), KG_OK, &error);
    CHECK(rounds == 1);
    struct kg_outcome added = sample_outcome("rowwise vector=8");
    added.emitted = (struct kg_hash){5, 6};
    CHECK_STATUS(kg_store_append(store, &key, &added, &error), KG_OK, &error);
    CHECK(find(store, "rowwise vector=8").emitted.low == 6);
    kg_store_close(store);
    kg_text_free(&notice);
    CHECK(ask("PRAGMA user_version") == 9 && ask("SELECT count(*) FROM keys") == 2);
    CHECK(ask("SELECT count(*) FROM outcomes") == (version < 3 ? 3 : 4));
    store = sample_open(folder); // nothing is done twice
    find(store, "rowwise vector=4");
    check_wisdom(store, "P=1 D=2", "rowwise vector=8");
    kg_store_close(store);
    sample_remove(folder);
}

static void test_upgrade(void)
{
    for (int version = 1; version <= 3; version++)
        check_upgraded(version);
}

// What is sealed with the old key is still sealed.
static void test_damage_is_seen(void)
{
    struct kg_store *store;
    struct kg_key key = sample_key();
    struct kg_wisdom wisdom;
    struct kg_outcome found;
    bool any;
    make_old(3);
    kg_store_close(sample_open(folder));
    run("UPDATE wisdom SET seconds = seconds / 2; UPDATE outcomes SET generator = '0.1.0 xyz'");
    store = sample_open(folder);
    CHECK(kg_store_recall(store, &key, &wisdom, &error) == KG_ERROR_NO_WISDOM);
    CHECK_STATUS(kg_store_find(store, &key, "rowwise vector=4", &found, &any, &error), KG_OK,
                 &error);
    CHECK(!any);
    kg_store_close(store);
    sample_remove(folder);
}

// What is known of old is written with today's seal, and read again.
static void test_export_of_old(void)
{
    struct kg_store *store;
    struct kg_text lines = {0}, notice = {0};
    struct kg_key here = sample_key();
    int count;
    make_old(3);
    store = sample_open(folder);
    CHECK_STATUS(kg_store_export(store, &lines, &error), KG_OK, &error);
    CHECK_STATUS(kg_store_forget(store, NULL, &count, &error), KG_OK, &error);
    CHECK_STATUS(kg_store_import(store, lines.data, lines.length, &here, &notice, &error), KG_OK,
                 &error);
    CHECK_TEXT(kg_text_string(&notice),
               "2 of 2 lines learned\n"
               "2 of an older KernelGen: not verified until they are judged again\n");
    check_wisdom(store, "P=4096 D=1000", "rowwise vector=4");
    kg_store_close(store);
    kg_text_free(&lines);
    kg_text_free(&notice);
    sample_remove(folder);
}

// A table in the way: nothing of the step may stay.
static void check_fails_whole(int version, const char *obstacle, const char *away)
{
    char aside[sizeof path + 16];
    struct kg_text notice = {0};
    struct kg_store *store;
    make_old(version);
    run(obstacle);
    CHECK_STATUS(kg_store_open(folder, &store, &notice, &error), KG_OK, &error);
    CHECK(notice.length > 0); // these were no tables of ours
    kg_store_close(store);
    kg_text_free(&notice);
    snprintf(aside, sizeof aside, "%s.corrupt-1", path);
    CHECK(rename(aside, path) == 0);
    CHECK(ask("PRAGMA user_version") == version && ask("SELECT count(*) FROM keys") == 3);
    run(away);
    store = sample_open(folder);
    CHECK(find(store, "rowwise vector=4").timing.median == 1.25e-5);
    kg_store_close(store);
    sample_remove(folder);
}

// Version 4 had no leases.
static void test_upgrade_of_4(void)
{
    struct kg_key key = sample_key();
    struct kg_lease lease;
    sample_folder(folder);
    snprintf(path, sizeof path, "%s/records.db", folder);
    struct kg_store *store = sample_open(folder);
    struct kg_outcome outcome = sample_outcome("rowwise vector=8");
    CHECK_STATUS(kg_store_append(store, &key, &outcome, &error), KG_OK, &error);
    kg_store_close(store);
    run("DROP TABLE lessons; DROP TABLE traits; DROP TABLE leases; DROP TABLE costs;"
        "DROP TABLE texts; DROP TABLE foreign_outcomes;"
        "ALTER TABLE outcomes DROP COLUMN estimate;"
        "ALTER TABLE rounds DROP COLUMN base;"
        "ALTER TABLE rounds DROP COLUMN kind;"
        "ALTER TABLE rounds DROP COLUMN bottleneck;"
        "ALTER TABLE rounds DROP COLUMN predicted;"
        "ALTER TABLE rounds DROP COLUMN tried;"
        "ALTER TABLE rounds DROP COLUMN kept;"
        "ALTER TABLE rounds DROP COLUMN difference;"
        "PRAGMA user_version = 4");
    store = sample_open(folder);
    CHECK(find(store, "rowwise vector=8").timing.median == 1.25e-5);
    CHECK_STATUS(kg_store_lease_take(store, &key, &lease, &error), KG_OK, &error);
    CHECK(lease.held && ask("PRAGMA user_version") == 9);
    kg_store_close(store);
    sample_remove(folder);
}

static void test_upgrade_fails_whole(void)
{
    check_fails_whole(1, "CREATE TABLE promises(other TEXT)", "DROP TABLE promises");
    check_fails_whole(3, "CREATE TABLE keys_of_4(other TEXT)", "DROP TABLE keys_of_4");
}

static void test_newer_is_refused(void)
{
    struct kg_store *store;
    make_old(3);
    run("PRAGMA user_version = 10");
    CHECK_STATUS(kg_store_open(folder, &store, NULL, &error), KG_ERROR_UNSUPPORTED, &error);
    CHECK(!store && strstr(error.text, "has format 10, this KernelGen knows 9") != NULL);
    CHECK(ask("PRAGMA user_version") == 10);
    sample_remove(folder);
}

TEST_MAIN(test_upgrade, test_damage_is_seen, test_export_of_old, test_upgrade_of_4,
          test_upgrade_fails_whole, test_newer_is_refused)
