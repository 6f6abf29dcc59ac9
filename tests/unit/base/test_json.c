#include "base/json.h"
#include "test.h"

#include <float.h>
#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

static void test_structure(void)
{
    struct kg_text text = {0};
    struct kg_json json = {.text = &text};
    kg_json_begin_object(&json, NULL);
    kg_json_text(&json, "name", "softmax");
    kg_json_begin_array(&json, "sizes");
    kg_json_integer(&json, NULL, 4096);
    kg_json_integer(&json, NULL, INT64_MIN);
    kg_json_end_array(&json);
    kg_json_begin_array(&json, "none");
    kg_json_end_array(&json);
    kg_json_begin_object(&json, "inner");
    kg_json_boolean(&json, "yes", true);
    kg_json_boolean(&json, "no", false);
    kg_json_end_object(&json);
    kg_json_text(&json, "nothing", NULL);
    kg_json_hash(&json, "hash", (struct kg_hash){.low = 1});
    kg_json_end_object(&json);
    CHECK_TEXT(kg_text_string(&text),
               "{\"name\": \"softmax\", \"sizes\": [4096, -9223372036854775808], \"none\": [], "
               "\"inner\": {\"yes\": true, \"no\": false}, \"nothing\": null, "
               "\"hash\": \"00000000000000000000000000000001\"}");
    kg_text_free(&text);
}

static void test_numbers(void)
{
    static const double values[] = {0.0,     -0.0,     0.1,         1.0 / 3.0, 1e-300, DBL_MAX,
                                    DBL_MIN, 4.9e-324, 123456789.5, -2.5e17,   1e22};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        struct kg_text text = {0};
        struct kg_json json = {.text = &text};
        kg_json_number(&json, NULL, values[i]);
        CHECK(strtod(kg_text_string(&text), NULL) == values[i]);
        CHECK(strlen(kg_text_string(&text)) < 26);
        kg_text_free(&text);
    }
    struct kg_text text = {0};
    struct kg_json json = {.text = &text};
    kg_json_begin_array(&json, NULL);
    kg_json_number(&json, NULL, 0.1);
    kg_json_number(&json, NULL, 1e22);
    kg_json_number(&json, NULL, (double)NAN);
    kg_json_number(&json, NULL, -(double)INFINITY);
    kg_json_end_array(&json);
    CHECK_TEXT(kg_text_string(&text), "[0.1, 1e+22, null, null]");
    kg_text_free(&text);
}

// Every byte, also those that are no UTF-8, gives a line Jansson accepts.
static void test_strings(void)
{
    struct kg_text text = {0};
    struct kg_json json = {.text = &text};
    kg_json_text(&json, NULL, "tab\t quote\" back\\ bell\a \xC3\xA9 \xF0\x9F\x98\x80 \xFF \xC3");
    CHECK_TEXT(kg_text_string(&text),
               "\"tab\\t quote\\\" back\\\\ bell\\u0007 \xC3\xA9 \xF0\x9F\x98\x80 "
               "\xEF\xBF\xBD \xEF\xBF\xBD\"");
    kg_text_free(&text);

    unsigned state = 1;
    for (int round = 0; round < 2000; round++) {
        char bytes[24];
        for (size_t i = 0; i + 1 < sizeof bytes; i++) {
            state = state * 1664525u + 1013904223u;
            bytes[i] = (char)(1 + (state >> 24) % 255);
        }
        bytes[sizeof bytes - 1] = '\0';
        text = (struct kg_text){0};
        json = (struct kg_json){.text = &text};
        kg_json_text(&json, NULL, bytes);
        json_t *read = json_loads(kg_text_string(&text), JSON_DECODE_ANY, NULL);
        CHECK(read && json_is_string(read));
        json_decref(read);
        kg_text_free(&text);
    }
}

TEST_MAIN(test_structure, test_numbers, test_strings)
