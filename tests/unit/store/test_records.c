#include "support/sample_records.h"
#include "test.h"

#include <math.h>
#include <sqlite3.h>

static char folder[SAMPLE_FOLDER];
static struct kg_error error;

static void check_same(const struct kg_outcome *a, const struct kg_outcome *b)
{
    CHECK(a->kind == b->kind && a->final == b->final);
    CHECK_TEXT(a->choice, b->choice);
    CHECK(a->source.high == b->source.high && a->source.low == b->source.low);
    CHECK(a->bound == b->bound && a->compile_seconds == b->compile_seconds);
    CHECK(memcmp(&a->timing, &b->timing, sizeof a->timing) == 0);
    CHECK(a->verdict.passed == b->verdict.passed && a->verdict.seed == b->verdict.seed);
    CHECK(a->verdict.cases == b->verdict.cases && a->verdict.skipped == b->verdict.skipped);
    CHECK(a->verdict.elements == b->verdict.elements);
    CHECK(a->verdict.impostors == b->verdict.impostors);
    CHECK(a->verdict.worst_rms == b->verdict.worst_rms);
    CHECK_TEXT(a->verdict.reason, b->verdict.reason);
    CHECK_TEXT(a->reason, b->reason);
    CHECK(sample_same_forecast(&a->forecast, &b->forecast));
}

static void test_append_and_find(void)
{
    sample_folder(folder);
    struct kg_store *store = sample_open(folder);
    struct kg_key key = sample_key();
    struct kg_outcome outcome = sample_outcome("rowwise vector=8"), found;
    bool any = true;
    CHECK_STATUS(kg_store_find(store, &key, outcome.choice, &found, &any, &error), KG_OK, &error);
    CHECK(!any && !found.choice);
    CHECK_STATUS(kg_store_append(store, &key, &outcome, &error), KG_OK, &error);
    struct kg_outcome other = sample_outcome("rowwise vector=4");
    CHECK_STATUS(kg_store_append(store, &key, &other, &error), KG_OK, &error);
    CHECK_STATUS(kg_store_find(store, &key, outcome.choice, &found, &any, &error), KG_OK, &error);
    CHECK(any);
    check_same(&found, &outcome);
    kg_store_close(store);

    store = sample_open(folder); // and again from disk
    CHECK_STATUS(kg_store_find(store, &key, outcome.choice, &found, &any, &error), KG_OK, &error);
    CHECK(any);
    check_same(&found, &outcome);

    outcome.timing.median = 2e-5; // the latest counts
    CHECK_STATUS(kg_store_append(store, &key, &outcome, &error), KG_OK, &error);
    CHECK_STATUS(kg_store_find(store, &key, outcome.choice, &found, &any, &error), KG_OK, &error);
    CHECK(any && found.timing.median == 2e-5);
    kg_store_close(store);
    kg_store_close(NULL);
}

struct visited {
    int count;
    char order[256];
};

static void visit(void *user, const struct kg_outcome *outcome)
{
    struct visited *visited = user;
    visited->count++;
    size_t used = strlen(visited->order);
    snprintf(visited->order + used, sizeof visited->order - used, "%s;", outcome->choice);
}

// Measured ones come first, fastest first; of each candidate only the latest.
static void test_each_in_order(void)
{
    char place[SAMPLE_FOLDER];
    sample_folder(place);
    struct kg_store *store = sample_open(place);
    struct kg_key key = sample_key();
    struct kg_outcome outcomes[] = {sample_outcome("slow"), sample_outcome("bad"),
                                    sample_outcome("fast"), sample_outcome("slow")};
    outcomes[0].timing.median = 1e-9; // overtaken by the later record of the same candidate
    outcomes[1].kind = KG_OUTCOME_WRONG;
    outcomes[2].timing.median = 1e-6;
    outcomes[3].timing.median = 2e-6;
    for (size_t i = 0; i < sizeof outcomes / sizeof outcomes[0]; i++)
        CHECK_STATUS(kg_store_append(store, &key, &outcomes[i], &error), KG_OK, &error);
    struct visited visited = {0};
    CHECK_STATUS(kg_store_each(store, &key, visit, &visited, &error), KG_OK, &error);
    CHECK(visited.count == 3);
    CHECK_TEXT(visited.order, "fast;slow;bad;");
    visited = (struct visited){0};
    CHECK_STATUS(kg_store_history(store, &key, visit, &visited, &error), KG_OK, &error);
    CHECK_TEXT(visited.order, "slow;bad;fast;slow;");
    key.sizes = "P=1 D=1";
    visited = (struct visited){0};
    CHECK_STATUS(kg_store_each(store, &key, visit, &visited, &error), KG_OK, &error);
    CHECK(visited.count == 0);
    kg_store_close(store);
    sample_remove(place);
}

static void add_log_row(void *user, const struct kg_log_row *row)
{
    kg_text_format(user, "%s|%s|%s|%g|%g|%g|%lld\n", row->choice, row->outcome, row->reason,
                   row->median, row->spread, row->bound, (long long)row->count);
    CHECK(row->last[0] == '2' && row->last[19] == 'Z');
}

// The rows of all tables.
static struct kg_text log_of(struct kg_store *store, const struct kg_key *key)
{
    struct kg_text log = {0};
    for (int table = 0; table < KG_LOG_TABLE_COUNT; table++)
        CHECK_STATUS(
            kg_store_log_rows(store, key, (enum kg_log_table)table, add_log_row, &log, &error),
            KG_OK, &error);
    return log;
}

// What ran in the place of a candidate's kernels is on record and in the log, and nobody takes it
// for the candidate's.
static void test_overrides_stand_apart(void)
{
    char place[SAMPLE_FOLDER];
    sample_folder(place);
    struct kg_store *store = sample_open(place);
    struct kg_key key = sample_key();
    struct kg_outcome outcome = sample_outcome("rowwise vector=8"), found;
    outcome.override = "mine.ptx";
    outcome.timing.median = 1e-9;
    outcome.forecast.known = false;
    bool any = true;
    CHECK_STATUS(kg_store_append(store, &key, &outcome, &error), KG_OK, &error);
    CHECK_STATUS(kg_store_find(store, &key, outcome.choice, &found, &any, &error), KG_OK, &error);
    CHECK(!any);
    struct kg_outcome generated = sample_outcome("rowwise vector=8");
    CHECK_STATUS(kg_store_append(store, &key, &generated, &error), KG_OK, &error);
    outcome.kind = KG_OUTCOME_WRONG; // after it, and later
    outcome.reason = "off by one";
    CHECK_STATUS(kg_store_append(store, &key, &outcome, &error), KG_OK, &error);
    CHECK_STATUS(kg_store_find(store, &key, outcome.choice, &found, &any, &error), KG_OK, &error);
    CHECK(any);
    check_same(&found, &generated);
    struct visited visited = {0};
    CHECK_STATUS(kg_store_each(store, &key, visit, &visited, &error), KG_OK, &error);
    CHECK_TEXT(visited.order, "rowwise vector=8;");
    visited = (struct visited){0};
    CHECK_STATUS(kg_store_history(store, &key, visit, &visited, &error), KG_OK, &error);
    CHECK_TEXT(visited.order, "rowwise vector=8;");
    struct kg_text log = log_of(store, &key);
    CHECK(strstr(log.data, "rowwise vector=8 (overridden by mine.ptx)|||1e-09|"));
    CHECK(strstr(log.data, "rowwise vector=8 (overridden by mine.ptx)|wrong|off by one|"));
    CHECK(strstr(log.data, "rowwise vector=8|||1.25e-05|"));
    kg_text_free(&log);
    struct kg_wisdom wisdom;
    CHECK_STATUS(kg_store_recall(store, &key, &wisdom, &error), KG_ERROR_NO_WISDOM, &error);
    // Without its mark it is not what was recorded, and is not read as the candidate's either.
    sqlite3 *database;
    char path[SAMPLE_FOLDER + 16];
    snprintf(path, sizeof path, "%s/records.db", place);
    kg_store_close(store);
    CHECK(sqlite3_open(path, &database) == SQLITE_OK);
    CHECK(sqlite3_exec(database, "UPDATE outcomes SET override = ''", NULL, NULL, NULL) ==
          SQLITE_OK);
    sqlite3_close(database);
    store = sample_open(place);
    visited = (struct visited){0};
    CHECK_STATUS(kg_store_each(store, &key, visit, &visited, &error), KG_OK, &error);
    CHECK(visited.count == 0); // the latest of the choice has no seal that fits
    kg_store_close(store);
    sample_remove(place);
}

// Each field of the key on its own keeps an outcome from being found.
static void test_every_field_of_the_key_counts(void)
{
    struct kg_store *store = sample_open(folder);
    struct kg_key keys[11];
    for (int i = 0; i < 11; i++)
        keys[i] = sample_key();
    keys[0].op = "softmax2";
    keys[1].definition.low++;
    keys[2].dtypes = "T=f32";
    keys[3].sizes = "P=4096 D=1001";
    keys[4].layout = "strided";
    keys[5].device = "Other CPU";
    keys[6].isa = "avx512";
    keys[7].units = 9;
    keys[8].driver = NULL;
    keys[9].compiler = "cc 13 -O3";
    keys[10].protocol = "warm launch";
    for (int i = 0; i < 11; i++) {
        struct kg_outcome found;
        bool any = true;
        CHECK_STATUS(kg_store_find(store, &keys[i], "rowwise vector=8", &found, &any, &error),
                     KG_OK, &error);
        CHECK(!any);
    }
    kg_store_close(store);
}

static void test_failures_are_outcomes(void)
{
    struct kg_store *store = sample_open(folder);
    struct kg_key key = sample_key();
    static char reason[10000];
    memset(reason, 'r', sizeof reason - 1);
    for (int kind = 1; kind < KG_OUTCOME_COUNT; kind++) {
        struct kg_outcome outcome = {.kind = (enum kg_outcome_kind)kind,
                                     .choice = kg_outcome_names[kind],
                                     .reason = reason},
                          found;
        outcome.verdict.worst_relative = (double)NAN;
        outcome.verdict.worst_rms = (double)INFINITY;
        outcome.bound = -0.0;
        snprintf(outcome.verdict.reason, sizeof outcome.verdict.reason, "element 7: 1 not 2");
        bool any;
        CHECK_STATUS(kg_store_append(store, &key, &outcome, &error), KG_OK, &error);
        CHECK_STATUS(kg_store_find(store, &key, outcome.choice, &found, &any, &error), KG_OK,
                     &error);
        CHECK(any && found.kind == outcome.kind);
        CHECK(isnan(found.verdict.worst_relative) && isinf(found.verdict.worst_rms));
        CHECK_TEXT(found.verdict.reason, "element 7: 1 not 2");
        CHECK(strlen(found.reason) == 4096);
    }
    kg_store_close(store);
}

static void test_log_rows(void)
{
    struct kg_store *store = sample_open(folder);
    struct kg_key key = sample_key();
    struct kg_outcome outcome = sample_outcome("rowwise vector=8"); // and its time in a race
    for (int final = 0; final < 2; final++) {
        outcome.final = final;
        CHECK_STATUS(kg_store_append(store, &key, &outcome, &error), KG_OK, &error);
    }
    struct kg_text log = log_of(store, &key);
    CHECK(strstr(log.data, "|measured||nan|nan|nan|1\n"));
    CHECK(strstr(log.data, "rowwise vector=8|||1.25e-05|1e-07|1e-05|30\n"));
    CHECK(strstr(log.data, "wrong|wrong|rrr"));
    CHECK(!strstr(log.data, "pruned|pruned|")); // what was never run did not fail
    kg_text_free(&log);
    key.op = "unheard_of";
    log = log_of(store, &key);
    CHECK(log.length == 0);
    kg_text_free(&log);
    kg_store_close(store);
}

static void check_round(void *user, const struct kg_round *round)
{
    ++*(int *)user;
    CHECK_TEXT(round->base, "rowwise vector=4");
    CHECK_TEXT(round->kind, "access");
    CHECK_TEXT(round->bottleneck, "latency");
    CHECK_TEXT(round->difference, "@@ -1 +1 @@");
    CHECK(round->predicted == 1e-5 && round->tried == 7 && round->kept);
    CHECK(round->date[4] == '-' && round->date[19] == 'Z');
}

static void test_rounds_and_what_they_are_of(void)
{
    struct kg_store *store = sample_open(folder);
    struct kg_key key = sample_key();
    key.sizes = "P=8 D=8"; // without rounds so far
    struct kg_round round = {.number = 2,
                             .base = "rowwise vector=4",
                             .kind = "access",
                             .bottleneck = "latency",
                             .predicted = 1e-5,
                             .tried = 7,
                             .kept = true,
                             .difference = "@@ -1 +1 @@"};
    int count = 0;
    CHECK_STATUS(kg_store_round(store, &key, &round, &error), KG_OK, &error);
    CHECK_STATUS(kg_store_rounds(store, &key, check_round, &count, &error), KG_OK, &error);
    CHECK(count == 1);
    struct kg_cost cost;
    const char *text;
    CHECK_STATUS(kg_store_cost(store, &key, &cost, &error), KG_OK, &error);
    CHECK(cost.operations == 0 && cost.memory_seconds == 0);
    CHECK_STATUS(kg_store_text(store, key.op, key.definition, &text, &error), KG_OK, &error);
    CHECK_TEXT(text, "");
    cost = (struct kg_cost){1e6, 2e6, 3e-6, 4e-6};
    for (int i = 0; i < 2; i++) // the later description replaces the earlier one
        CHECK_STATUS(kg_store_describe(store, &key, &cost, i ? "op y" : "op x", &error), KG_OK,
                     &error);
    cost = (struct kg_cost){0};
    CHECK_STATUS(kg_store_cost(store, &key, &cost, &error), KG_OK, &error);
    CHECK(cost.operations == 1e6 && cost.bytes == 2e6);
    CHECK(cost.memory_seconds == 3e-6 && cost.compute_seconds == 4e-6);
    CHECK_STATUS(kg_store_text(store, key.op, key.definition, &text, &error), KG_OK, &error);
    CHECK_TEXT(text, "op y");
    kg_store_close(store);
}

// A row that was changed behind our back is not believed.
static void test_seal(void)
{
    static const char *const changes[] = {
        "UPDATE outcomes SET median = median * 0.5",
        "UPDATE outcomes SET passed = 0",
        "UPDATE outcomes SET estimate = estimate * 0.5",
        "UPDATE problems SET sizes = 'P=4096 D=1001'",
        "UPDATE candidates SET choice = 'rowwise vector=9' WHERE choice = 'rowwise vector=8'",
        "UPDATE outcomes SET candidate = 2 WHERE candidate = 1",
    };
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        char fresh[SAMPLE_FOLDER], path[128];
        sample_folder(fresh);
        struct kg_store *store = sample_open(fresh);
        struct kg_key key = sample_key(), neighbour = key;
        neighbour.sizes = "P=4096 D=1001";
        struct kg_outcome eight = sample_outcome("rowwise vector=8"),
                          four = sample_outcome("rowwise vector=4");
        eight.estimate = four.estimate = 1e-5;
        kg_store_append(store, &key, &eight, &error);
        kg_store_append(store, &key, &four, &error);
        snprintf(path, sizeof path, "%s/records.db", fresh);
        sqlite3 *raw;
        CHECK(sqlite3_open(path, &raw) == SQLITE_OK);
        CHECK(sqlite3_exec(raw, changes[i], NULL, NULL, NULL) == SQLITE_OK);
        sqlite3_close(raw);
        struct kg_outcome found;
        bool any;
        const struct {
            const struct kg_key *key;
            const char *choice;
        } questions[] = {{&key, "rowwise vector=8"},
                         {&key, "rowwise vector=9"},
                         {&neighbour, "rowwise vector=8"}};
        for (size_t q = 0; q < 3; q++) {
            CHECK_STATUS(
                kg_store_find(store, questions[q].key, questions[q].choice, &found, &any, &error),
                KG_OK, &error);
            CHECK(!any);
        }
        kg_store_close(store);
        sample_remove(fresh);
    }
}

static void test_clean_up(void)
{
    sample_remove(folder);
}

TEST_MAIN(test_append_and_find, test_each_in_order, test_overrides_stand_apart,
          test_every_field_of_the_key_counts, test_failures_are_outcomes, test_log_rows,
          test_rounds_and_what_they_are_of, test_seal, test_clean_up)
