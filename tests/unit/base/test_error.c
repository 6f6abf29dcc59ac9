#include "base/error.h"
#include "test.h"

static void test_set(void)
{
    struct kg_error error = {0};
    CHECK(kg_error_set(&error, KG_ERROR_IO, "cannot read %s", "a.kg") == KG_ERROR_IO);
    CHECK(error.status == KG_ERROR_IO);
    CHECK_TEXT(error.text, "cannot read a.kg");
    CHECK(kg_error_set(NULL, KG_ERROR_WRONG, "dropped") == KG_ERROR_WRONG);
    CHECK(kg_error_memory(&error, "a plan") == KG_ERROR_MEMORY);
    CHECK_TEXT(error.text, "out of memory: a plan");
    kg_error_clear(&error);
    CHECK(error.status == KG_OK);
    CHECK_TEXT(error.text, "");
    kg_error_clear(NULL);
}

static void test_prefix(void)
{
    struct kg_error error = {0};
    kg_error_set(&error, KG_ERROR_SHAPE, "P is 0");
    kg_error_prefix(&error, "op %d", 3);
    CHECK_TEXT(error.text, "op 3: P is 0");
    CHECK(error.status == KG_ERROR_SHAPE);
    kg_error_set(&error, KG_ERROR_WRONG, "%s, again", error.text); // quotes itself
    CHECK_TEXT(error.text, "op 3: P is 0, again");
    kg_error_prefix(NULL, "nothing");
}

static void test_overlong(void)
{
    static char longer[2 * KG_ERROR_TEXT];
    memset(longer, 'x', sizeof longer - 1);
    struct kg_error error = {0};
    kg_error_set(&error, KG_ERROR_IO, "%s", longer);
    CHECK(strlen(error.text) == KG_ERROR_TEXT - 1);
    CHECK_TEXT(error.text + KG_ERROR_TEXT - 5, "x...");

    // Exactly full is not overlong.
    longer[KG_ERROR_TEXT - 1] = '\0';
    kg_error_set(&error, KG_ERROR_IO, "%s", longer);
    CHECK_TEXT(error.text, longer);

    // A character of two bytes is not cut in half.
    for (size_t i = 0; i + 2 < sizeof longer; i += 2)
        memcpy(longer + i, "\xC3\xA9", 2);
    kg_error_set(&error, KG_ERROR_IO, "%s", longer);
    size_t length = strlen(error.text);
    CHECK_TEXT(error.text + length - 3, "...");
    CHECK((length - 3) % 2 == 0 && length > KG_ERROR_TEXT - 4);
}

TEST_MAIN(test_set, test_prefix, test_overlong)
