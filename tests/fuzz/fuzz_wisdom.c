// Wisdom files from anywhere: either all lines are learned and exported again as they were, or
// nothing changes.

#include "fuzz/fuzz.h"
#include "support/sample_records.h"

static struct kg_store *store;
static char folder[SAMPLE_FOLDER];

static void end(void)
{
    kg_store_close(store);
    sample_remove(folder);
}

static void begin(void)
{
    sample_folder(folder);
    store = sample_open(folder);
    atexit(end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!store)
        begin();
    struct kg_error error = {0};
    struct kg_text notice = {0}, first = {0}, second = {0};
    struct kg_key here = sample_key();
    enum kg_status status =
        kg_store_import(store, (const char *)data, size, &here, &notice, &error);
    FUZZ_CHECK(status == KG_OK || error.text[0]);
    FUZZ_CHECK((status == KG_OK) == (notice.length > 0));
    int count;
    if (status == KG_OK) {
        FUZZ_CHECK(kg_store_export(store, &first, &error) == KG_OK);
        FUZZ_CHECK(kg_store_forget(store, NULL, &count, &error) == KG_OK);
        FUZZ_CHECK(kg_store_import(store, first.data, first.length, NULL, NULL, &error) == KG_OK);
        FUZZ_CHECK(kg_store_export(store, &second, &error) == KG_OK);
        FUZZ_CHECK(first.length == second.length &&
                   memcmp(first.data, second.data, first.length) == 0);
    }
    FUZZ_CHECK(kg_store_forget(store, NULL, &count, &error) == KG_OK);
    FUZZ_CHECK(status == KG_OK || count == 0);
    kg_text_free(&notice);
    kg_text_free(&first);
    kg_text_free(&second);
    return 0;
}
