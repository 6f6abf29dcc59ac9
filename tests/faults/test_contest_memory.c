// Every allocation fails once of what a contest reads, ranks and records: there is all of it or
// none.

#include "faults/fail_alloc.h"
#include "flow/candidate_folder.h"
#include "report/ranking.h"
#include "store/foreign_outcomes.h"
#include "support/folder.h"
#include "support/sample_records.h"
#include "test.h"

#include <sys/stat.h>

static struct kg_error error;

static void sweep_report(const struct kg_contest *contest, bool json)
{
    struct kg_text whole = {0};
    int failures = 0;
    CHECK_STATUS(kg_report_contest(contest, json, &whole, &error), KG_OK, &error);
    for (long n = 1; fail_alloc_sweep(n); n++) {
        struct kg_text text = {0};
        fail_alloc_at(n);
        enum kg_status status = kg_report_contest(contest, json, &text, &error);
        fail_alloc_never();
        CHECK(status == KG_OK || status == KG_ERROR_MEMORY);
        if (status == KG_OK)
            CHECK_TEXT(kg_text_string(&text), kg_text_string(&whole));
        failures += status == KG_ERROR_MEMORY;
        kg_text_free(&text);
    }
    CHECK(failures > 3);
    kg_text_free(&whole);
}

static void test_ranking(void)
{
    struct kg_contestant list[] = {
        {.name = "fast.c",
         .state = KG_CONTESTANT_RANKED,
         .timing = {.samples = 9, .median = 1e-6},
         .reference = {.samples = 9, .median = 2e-6},
         .baseline = {.samples = 9, .median = 3e-6},
         .standing = 1},
        {.name = "wrong.c",
         .state = KG_CONTESTANT_FAILED,
         .kind = KG_OUTCOME_WRONG,
         .reason = "y[3]: expected 1"},
    };
    const struct kg_contest contest = {.folder = "drafts",
                                       .op = "f",
                                       .sizes = "P=3",
                                       .dtypes = "",
                                       .device = "Some CPU",
                                       .choice = "direct: block=4",
                                       .list = list,
                                       .count = 2};
    sweep_report(&contest, false);
    sweep_report(&contest, true);
}

static void test_folder(void)
{
    char path[] = "/tmp/kernelgen-contest-XXXXXX", name[64];
    CHECK(folder_make(path));
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "%s/%d.c", path, i);
        FILE *file = fopen(name, "w");
        CHECK(file && fclose(file) == 0);
    }
    int failures = 0;
    for (long n = 1; fail_alloc_sweep(n); n++) {
        struct kg_candidate_folder folder;
        fail_alloc_at(n);
        enum kg_status status = kg_candidate_folder_read(path, &folder, &error);
        fail_alloc_never();
        CHECK(status == KG_ERROR_MEMORY || (status == KG_OK && folder.count == 200));
        failures += status == KG_ERROR_MEMORY;
        kg_candidate_folder_free(&folder);
    }
    CHECK(failures > 2);
    for (long n = 1; fail_alloc_sweep(n); n++) {
        char *bytes;
        size_t length;
        const char *why;
        fail_alloc_at(n);
        enum kg_status status = kg_candidate_read(name, &bytes, &length, &why, &error);
        fail_alloc_never();
        CHECK(status == KG_OK ? bytes && !why : status == KG_ERROR_MEMORY && !bytes);
        free(bytes);
    }
    folder_remove(path);
}

static void test_records(void)
{
    struct kg_store *store;
    struct kg_key key = sample_key();
    const struct kg_hash hash = {1, 2};
    const struct kg_foreign_outcome outcome = {.file = "a.c",
                                               .hash = hash,
                                               .reference = "direct: block=4",
                                               .proof = hash,
                                               .kind = KG_OUTCOME_WRONG,
                                               .reason = "y[3]: expected 1"};
    CHECK_STATUS(kg_store_open_memory(&store, &error), KG_OK, &error);
    for (long n = 1; fail_alloc_sweep(n); n++) {
        fail_alloc_at(n);
        enum kg_status status = kg_store_add_foreign(store, &key, &outcome, &error);
        fail_alloc_never();
        CHECK(status == KG_OK || status == KG_ERROR_MEMORY);
    }
    for (long n = 1; fail_alloc_sweep(n); n++) {
        struct kg_foreign_outcome read;
        bool found;
        fail_alloc_at(n);
        enum kg_status status =
            kg_store_find_foreign(store, &key, hash, hash, &read, &found, &error);
        fail_alloc_never();
        CHECK(status == KG_OK ? found : status == KG_ERROR_MEMORY && !found);
        if (found)
            CHECK_TEXT(read.reason, "y[3]: expected 1");
    }
    kg_store_close(store);
}

TEST_MAIN(test_ranking, test_folder, test_records)
