#include "base/text.h"
#include "test.h"

#include <stdint.h>

static void test_append(void)
{
    struct kg_text text = {0};
    CHECK_TEXT(kg_text_string(&text), "");
    kg_text_add(&text, "");
    CHECK(text.data && text.length == 0);
    kg_text_add(&text, "y = ");
    kg_text_format(&text, "%s(%d)", "relu", 7);
    kg_text_add_bytes(&text, ";rest", 1);
    CHECK_TEXT(kg_text_string(&text), "y = relu(7);");
    for (int i = 0; i < 1000; i++)
        kg_text_format(&text, "%04d", i);
    CHECK(text.length == 12 + 4000);
    CHECK_TEXT(text.data + text.length - 8, "09980999");
    CHECK(!text.failed);
    kg_text_free(&text);
    CHECK(!text.data && text.length == 0 && text.capacity == 0);
    kg_text_free(NULL);
}

static void test_cut(void)
{
    struct kg_text text = {0};
    kg_text_cut(&text, 0);
    kg_text_add(&text, "a, b, ");
    kg_text_cut(&text, 100);
    CHECK_TEXT(kg_text_string(&text), "a, b, ");
    kg_text_cut(&text, text.length - 2);
    CHECK_TEXT(kg_text_string(&text), "a, b");
    kg_text_free(&text);
}

static void test_bytes_with_zero(void)
{
    struct kg_text text = {0};
    kg_text_add_bytes(&text, "a\0b", 3);
    CHECK(text.length == 3 && memcmp(text.data, "a\0b", 4) == 0);
    kg_text_free(&text);
}

// An impossible length fails, stays failed and leaves the string as it was.
static void test_sticky(void)
{
    struct kg_text text = {0};
    kg_text_add(&text, "kept");
    kg_text_add_bytes(&text, "x", SIZE_MAX - 2);
    CHECK(text.failed);
    kg_text_add(&text, "dropped");
    CHECK_TEXT(kg_text_string(&text), "kept");
    kg_text_free(&text);
}

static void check_seconds(double seconds, const char *expected)
{
    struct kg_text text = {0};
    kg_text_seconds(&text, seconds);
    CHECK_TEXT(kg_text_string(&text), expected);
    kg_text_free(&text);
}

// Three digits also where rounding adds one: "1000 us" and "10.00 ms" never appear.
static void test_seconds(void)
{
    check_seconds(70.09210e-3, "70.1 ms");
    check_seconds(1.25e-5, "12.5 us");
    check_seconds(2.5e-10, "0.25 ns");
    check_seconds(999.6e-6, "1.00 ms");
    check_seconds(999.4e-6, "999 us");
    check_seconds(9.996e-3, "10.0 ms");
    check_seconds(99.96e-3, "100 ms");
    check_seconds(0.9996, "1.00 s");
    check_seconds(4321, "4321 s");
    check_seconds(1e300, "1e+300 s");
}

TEST_MAIN(test_append, test_cut, test_bytes_with_zero, test_sticky, test_seconds)
