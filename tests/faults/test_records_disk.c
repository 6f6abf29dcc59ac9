// A full disk (KG_ERROR_MISSING) and a folder that cannot be written (KG_ERROR_IO), with words, and
// nothing lost.

#include "support/sample_records.h"
#include "test.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

static struct kg_error error;

// Files of this process may not grow beyond `bytes`; writing more fails as on a full disk.
static void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    setrlimit(RLIMIT_FSIZE, &limit);
}

static void test_full_disk(void)
{
    char folder[SAMPLE_FOLDER], choice[64];
    sample_folder(folder);
    struct kg_store *store = sample_open(folder);
    struct kg_key key = sample_key();
    limit_files(1000000);
    int kept = 0;
    enum kg_status status = KG_OK;
    while (status == KG_OK && kept < 100000) {
        snprintf(choice, sizeof choice, "number=%d", kept);
        struct kg_outcome outcome = sample_outcome(choice);
        status = kg_store_append(store, &key, &outcome, &error);
        kept += status == KG_OK;
    }
    CHECK_STATUS(status, KG_ERROR_MISSING, &error);
    CHECK(strstr(error.text, "records.db") && kept > 10);
    limit_files(RLIM_INFINITY);
    struct kg_outcome late = sample_outcome("late"), found;
    CHECK_STATUS(kg_store_append(store, &key, &late, &error), KG_OK, &error); // room again
    kg_store_close(store);
    store = sample_open(folder);
    bool any = true;
    for (int i = 0; i <= kept; i++) {
        snprintf(choice, sizeof choice, "number=%d", i);
        CHECK_STATUS(kg_store_find(store, &key, choice, &found, &any, &error), KG_OK, &error);
        CHECK(any == (i < kept));
    }
    kg_store_close(store);
    sample_remove(folder);
}

static void test_full_from_the_start(void)
{
    char folder[SAMPLE_FOLDER];
    sample_folder(folder);
    struct kg_store *store;
    limit_files(1000);
    CHECK_STATUS(kg_store_open(folder, &store, NULL, &error), KG_ERROR_MISSING, &error);
    CHECK(!store && strstr(error.text, "records.db") && strstr(error.text, "ulimit"));
    limit_files(RLIM_INFINITY);
    CHECK_STATUS(kg_store_open(folder, &store, NULL, &error), KG_OK, &error);
    kg_store_close(store);
    sample_remove(folder);
}

// Root may write anywhere but here.
static void test_unwritable(void)
{
    struct kg_store *store;
    CHECK_STATUS(kg_store_open("/proc/none", &store, NULL, &error), KG_ERROR_IO, &error);
    CHECK(!store && strstr(error.text, "/proc/none"));
    CHECK_STATUS(kg_store_open("/proc", &store, NULL, &error), KG_ERROR_IO, &error);
    CHECK(!store && strstr(error.text, "/proc/records.lock"));

    char folder[SAMPLE_FOLDER], path[128];
    sample_folder(folder);
    snprintf(path, sizeof path, "%s/records.db", folder);
    CHECK(mkdir(path, 0777) == 0);
    CHECK_STATUS(kg_store_open(folder, &store, NULL, &error), KG_ERROR_IO, &error);
    CHECK(!store && strstr(error.text, "records.db"));
    sample_remove(folder);
}

TEST_MAIN(test_full_disk, test_full_from_the_start, test_unwritable)
