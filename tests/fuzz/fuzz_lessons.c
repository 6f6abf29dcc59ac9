// Lessons from anywhere: either all lines are learned and exported again as they were, or nothing
// changes.

#include "fuzz/fuzz.h"
#include "store/patterns.h"
#include "support/sample_records.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kg_error error = {0};
    struct kg_text notice = {0}, first = {0}, second = {0};
    struct kg_store *store, *other;
    FUZZ_CHECK(kg_store_open_memory(&store, &error) == KG_OK);
    enum kg_status status =
        kg_store_import_lessons(store, (const char *)data, size, &notice, &error);
    FUZZ_CHECK(status == KG_OK || error.text[0]);
    FUZZ_CHECK((status == KG_OK) == (notice.length > 0));
    FUZZ_CHECK(kg_store_export_lessons(store, &first, &error) == KG_OK);
    FUZZ_CHECK(status == KG_OK || strstr(first.data, "\"lines\": 0"));
    if (status == KG_OK) {
        FUZZ_CHECK(kg_store_open_memory(&other, &error) == KG_OK);
        FUZZ_CHECK(kg_store_import_lessons(other, first.data, first.length, NULL, &error) == KG_OK);
        FUZZ_CHECK(kg_store_export_lessons(other, &second, &error) == KG_OK);
        FUZZ_CHECK(first.length == second.length &&
                   memcmp(first.data, second.data, first.length) == 0);
        kg_text_cut(&second, 0);
        FUZZ_CHECK(kg_store_list_patterns(other, false, &second, &error) == KG_OK);
        kg_store_close(other);
    }
    kg_store_close(store);
    kg_text_free(&notice);
    kg_text_free(&first);
    kg_text_free(&second);
    return 0;
}
