// Every allocation of the store, of SQLite and of Jansson fails once. What was asked for then
// happened or did not, never by half; and afterwards the same store works.

#include "faults/fail_alloc.h"
#include "support/case_turns.h"
#include "support/sample_records.h"
#include "test.h"

#include <jansson.h>
#include <sqlite3.h>

static struct kg_error error;

// SQLite and Jansson are libraries of their own; these bring their allocations in here. The size of
// each block stands before it, as SQLite asks for it.
static void *plain_malloc(int size)
{
    size_t *block = malloc((size_t)size + 16);
    if (!block)
        return NULL;
    *block = (size_t)size;
    return block + 2;
}

static void plain_free(void *memory)
{
    free((size_t *)memory - 2);
}

static void *plain_realloc(void *memory, int size)
{
    size_t *block = realloc((size_t *)memory - 2, (size_t)size + 16);
    if (!block)
        return NULL;
    *block = (size_t)size;
    return block + 2;
}

static int plain_size(void *memory)
{
    return (int)((size_t *)memory)[-2];
}

static int plain_roundup(int size)
{
    return (size + 7) & ~7;
}

static int plain_init(void *unused)
{
    (void)unused;
    return SQLITE_OK;
}

static void plain_shutdown(void *unused)
{
    (void)unused;
}

static void *json_memory(size_t size)
{
    return malloc(size);
}

static void test_setup(void)
{
    static sqlite3_mem_methods methods = {plain_malloc,  plain_free, plain_realloc,  plain_size,
                                          plain_roundup, plain_init, plain_shutdown, NULL};
    CHECK(sqlite3_config(SQLITE_CONFIG_MALLOC, &methods) == SQLITE_OK);
    // Without caches of its own every allocation is one of ours.
    CHECK(sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0) == SQLITE_OK);
    json_set_alloc_funcs(json_memory, free);
}

static void test_open(void)
{
    long runs = 0;
    for (long n = 1; fail_alloc_sweep(n); n += n < 200 ? 1 : 13) {
        char folder[SAMPLE_FOLDER];
        if (n > 1 && !has_turn((int)n, 3))
            continue;
        sample_folder(folder);
        struct kg_text notice = {0};
        struct kg_store *store;
        fail_alloc_at(n);
        enum kg_status status = kg_store_open(folder, &store, &notice, &error);
        fail_alloc_never();
        CHECK(status == KG_OK || status == KG_ERROR_MEMORY || status == KG_ERROR_IO);
        CHECK((status == KG_OK) == (store != NULL));
        CHECK(notice.length == 0); // lack of memory is no damage
        kg_store_close(store);
        kg_text_free(&notice);
        kg_store_close(sample_open(folder));
        sample_remove(folder);
        runs++;
    }
    CHECK(runs > 50 / turns_of(3));
}

static void test_append_and_find(void)
{
    char folder[SAMPLE_FOLDER];
    sample_folder(folder);
    struct kg_store *store = sample_open(folder);
    struct kg_key key = sample_key();
    long runs = 0;
    for (long n = 1; fail_alloc_sweep(n); n++) {
        char choice[64], sizes[64];
        if (n > 1 && !has_turn((int)n, 3))
            continue;
        snprintf(choice, sizeof choice, "number=%ld", n);
        snprintf(sizes, sizeof sizes, "P=%ld", n); // a new key each time
        key.sizes = sizes;
        struct kg_outcome outcome = sample_outcome(choice), found;
        bool any = false;
        fail_alloc_at(n);
        enum kg_status appended = kg_store_append(store, &key, &outcome, &error);
        enum kg_status status = kg_store_find(store, &key, choice, &found, &any, &error);
        fail_alloc_never();
        CHECK(appended == KG_OK || appended == KG_ERROR_MEMORY);
        CHECK(status == KG_OK || status == KG_ERROR_MEMORY);
        // Jansson may lose a digit of a long number then, and does not say so.
        CHECK(!any || found.forecast.known);
        CHECK_STATUS(kg_store_find(store, &key, choice, &found, &any, &error), KG_OK, &error);
        CHECK(any == (appended == KG_OK));
        CHECK(!any || sample_same_forecast(&found.forecast, &outcome.forecast));
        runs++;
    }
    CHECK(runs > 5);
    kg_store_close(store);
    sample_remove(folder);
}

// A lease that cannot be read for lack of memory is not free.
static void test_lease(void)
{
    char folder[SAMPLE_FOLDER];
    struct kg_key key = sample_key();
    struct kg_lease lease;
    sample_folder(folder);
    struct kg_store *holder = sample_open(folder), *store = sample_open(folder);
    CHECK_STATUS(kg_store_lease_take(holder, &key, &lease, &error), KG_OK, &error);
    long runs = 0;
    for (long n = 1; fail_alloc_sweep(n); n++) {
        fail_alloc_at(n);
        enum kg_status status = kg_store_lease_take(store, &key, &lease, &error);
        fail_alloc_never();
        CHECK((status == KG_OK || status == KG_ERROR_MEMORY) && !lease.held);
        runs++;
    }
    CHECK(runs > 3);
    kg_store_close(holder);
    kg_store_close(store);
    sample_remove(folder);
}

static struct kg_text three_lines(void)
{
    char folder[SAMPLE_FOLDER], choice[] = "rowwise, and enough of it for a few allocations";
    sample_folder(folder);
    struct kg_store *store = sample_open(folder);
    struct kg_key key = sample_key();
    for (int i = 0; i < 3; i++) {
        struct kg_wisdom wisdom = sample_wisdom(choice);
        key.units = i;
        CHECK_STATUS(kg_store_learn(store, &key, &wisdom, &error), KG_OK, &error);
    }
    struct kg_text lines = {0};
    CHECK_STATUS(kg_store_export(store, &lines, &error), KG_OK, &error);
    kg_store_close(store);
    sample_remove(folder);
    return lines;
}

// All of the lines or none of them.
static void test_import_and_export(void)
{
    struct kg_text lines = three_lines();
    char folder[SAMPLE_FOLDER];
    sample_folder(folder);
    struct kg_store *store = sample_open(folder);
    struct kg_key key = sample_key();
    key.units = 2;
    long runs = 0;
    for (long n = 1; fail_alloc_sweep(n); n++) {
        struct kg_text notice = {0}, out = {0};
        if (n > 1 && !has_turn((int)n, 3))
            continue;
        fail_alloc_at(n);
        enum kg_status status =
            kg_store_import(store, lines.data, lines.length, NULL, &notice, &error);
        bool imported = status == KG_OK;
        // Jansson calls some lack of memory bad syntax.
        CHECK(imported || status == KG_ERROR_MEMORY || status == KG_ERROR_CORRUPT);
        status = kg_store_export(store, &out, &error);
        fail_alloc_never();
        CHECK(status == KG_OK || status == KG_ERROR_MEMORY);
        CHECK(status == KG_OK || out.length == 0);
        struct kg_wisdom wisdom;
        if (imported) {
            CHECK_STATUS(kg_store_recall(store, &key, &wisdom, &error), KG_OK, &error);
            CHECK_TEXT(wisdom.choice, "rowwise, and enough of it for a few allocations");
            kg_wisdom_free(&wisdom);
        }
        int count = -1;
        CHECK_STATUS(kg_store_forget(store, NULL, &count, &error), KG_OK, &error);
        CHECK(count == (imported ? 3 : 0));
        kg_text_free(&notice);
        kg_text_free(&out);
        runs++;
    }
    CHECK(runs > 100 / turns_of(3));
    kg_text_free(&lines);
    kg_store_close(store);
    sample_remove(folder);
}

TEST_MAIN(test_setup, test_open, test_append_and_find, test_lease, test_import_and_export)
