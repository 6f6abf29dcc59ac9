// Outcomes of foreign kernels: found by bytes and by what they were timed beside, invisible to
// everything that reads generated candidates, and not believed when they are damaged.

#include "store/foreign_outcomes.h"
#include "support/sample_records.h"
#include "test.h"

#include <math.h>
#include <sqlite3.h>

static struct kg_error error;
static const struct kg_hash bytes = {1, 2}, beside = {3, 4}, other = {5, 6};

static struct kg_foreign_outcome sample_foreign(void)
{
    return (struct kg_foreign_outcome){
        .file = "fast.c",
        .hash = bytes,
        .reference = "pointwise: block=64",
        .proof = beside,
        .kind = KG_OUTCOME_MEASURED,
        .cases = 79,
        .seed = UINT64_MAX - 1,
        .timing = {.samples = 9, .median = 5e-6, .spread = 1e-7},
        .reference_timing = {.samples = 8, .median = 6e-6, .spread = 2e-7},
        .baseline_timing = {.samples = 7, .median = 7e-6, .spread = 3e-7},
        .standing = 1,
        .gist = {.known = true,
                 .registers = 40,
                 .load_bytes = 16,
                 .step_flops = 32,
                 .spill_bytes = -1,
                 .tensor = true}};
}

static bool find(struct kg_store *store, struct kg_hash hash, struct kg_hash proof,
                 struct kg_foreign_outcome *outcome)
{
    bool found;
    struct kg_key key = sample_key();
    CHECK_STATUS(kg_store_find_foreign(store, &key, hash, proof, outcome, &found, &error), KG_OK,
                 &error);
    return found;
}

static void everything_comes_back(void)
{
    struct kg_store *store;
    struct kg_key key = sample_key();
    struct kg_foreign_outcome sample = sample_foreign(), found;
    CHECK_STATUS(kg_store_open_memory(&store, &error), KG_OK, &error);
    CHECK(!find(store, bytes, beside, &found));
    CHECK_STATUS(kg_store_add_foreign(store, &key, &sample, &error), KG_OK, &error);
    CHECK(find(store, bytes, beside, &found));
    CHECK_TEXT(found.file, "fast.c");
    CHECK_TEXT(found.reference, "pointwise: block=64");
    CHECK_TEXT(found.reason, "");
    CHECK(strlen(found.date) == 20);
    CHECK(found.kind == KG_OUTCOME_MEASURED && found.cases == 79 && found.seed == UINT64_MAX - 1);
    CHECK(found.timing.samples == 9 && found.timing.median == 5e-6 && found.timing.spread == 1e-7);
    CHECK(found.reference_timing.samples == 8 && found.reference_timing.median == 6e-6);
    CHECK(found.baseline_timing.spread == 3e-7 && found.standing == 1);
    CHECK(found.gist.known && found.gist.registers == 40 && found.gist.load_bytes == 16 &&
          found.gist.step_flops == 32);
    CHECK(found.gist.spill_bytes == -1 && found.gist.tensor);
    // Other bytes, and other kernels beside it.
    CHECK(!find(store, other, beside, &found) && !find(store, bytes, other, &found));
    // The latest counts.
    sample.kind = KG_OUTCOME_WRONG;
    sample.reason = "y[3]: expected 1";
    CHECK_STATUS(kg_store_add_foreign(store, &key, &sample, &error), KG_OK, &error);
    CHECK(find(store, bytes, beside, &found) && found.kind == KG_OUTCOME_WRONG);
    CHECK_TEXT(found.reason, "y[3]: expected 1");
    key.compiler = "cc 13 -O3";
    bool elsewhere;
    CHECK_STATUS(kg_store_find_foreign(store, &key, bytes, beside, &found, &elsewhere, &error),
                 KG_OK, &error);
    CHECK(!elsewhere);
    kg_store_close(store);
}

static void count_one(void *user, const struct kg_outcome *outcome)
{
    (void)outcome;
    ++*(int *)user;
}

static void nothing_takes_it_for_a_candidate(void)
{
    struct kg_store *store;
    struct kg_key key = sample_key();
    const struct kg_foreign_outcome sample = sample_foreign();
    struct kg_outcome outcome;
    struct kg_wisdom wisdom;
    bool found;
    int count = 0;
    CHECK_STATUS(kg_store_open_memory(&store, &error), KG_OK, &error);
    CHECK_STATUS(kg_store_add_foreign(store, &key, &sample, &error), KG_OK, &error);
    CHECK_STATUS(kg_store_each(store, &key, count_one, &count, &error), KG_OK, &error);
    CHECK(count == 0);
    CHECK_STATUS(kg_store_find(store, &key, sample.reference, &outcome, &found, &error), KG_OK,
                 &error);
    CHECK(!found);
    CHECK_STATUS(kg_store_recall(store, &key, &wisdom, &error), KG_ERROR_NO_WISDOM, &error);
    kg_store_close(store);
}

static void change(const char *folder, const char *statement)
{
    char path[SAMPLE_FOLDER + 16];
    sqlite3 *database;
    snprintf(path, sizeof path, "%s/records.db", folder);
    CHECK(sqlite3_open(path, &database) == SQLITE_OK);
    CHECK(sqlite3_exec(database, statement, NULL, NULL, NULL) == SQLITE_OK);
    CHECK(sqlite3_changes(database) == 1);
    sqlite3_close(database);
}

// A row that was changed is measured again.
static void damaged_rows_are_not_believed(void)
{
    static const char *const changes[] = {
        "UPDATE foreign_outcomes SET median = 1e-9",
        "UPDATE foreign_outcomes SET reference_median = 1",
        "UPDATE foreign_outcomes SET standing = -1",
        "UPDATE foreign_outcomes SET kind = 'compile'",
        "UPDATE foreign_outcomes SET kind = 'pruned'",
        "UPDATE foreign_outcomes SET file = 'other.c'",
        "UPDATE foreign_outcomes SET spill_bytes = 0",
        "UPDATE foreign_outcomes SET cases = 80",
    };
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        char folder[SAMPLE_FOLDER];
        struct kg_store *store;
        struct kg_text notice = {0};
        struct kg_key key = sample_key();
        const struct kg_foreign_outcome sample = sample_foreign();
        struct kg_foreign_outcome found;
        sample_folder(folder);
        CHECK_STATUS(kg_store_open(folder, &store, &notice, &error), KG_OK, &error);
        CHECK_STATUS(kg_store_add_foreign(store, &key, &sample, &error), KG_OK, &error);
        CHECK(find(store, bytes, beside, &found));
        change(folder, changes[i]);
        CHECK(!find(store, bytes, beside, &found));
        kg_store_close(store);
        kg_text_free(&notice);
        sample_remove(folder);
    }
}

TEST_MAIN(everything_comes_back, nothing_takes_it_for_a_candidate, damaged_rows_are_not_believed)
