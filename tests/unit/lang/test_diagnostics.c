// Every diagnostic of the language, exactly. diagnostics.txt holds the cases: a definition, a line
// "---", and what it is answered; "===" ends a case. KG_TEST_UPDATE=1 writes the answers anew.

#include "base/files.h"
#include "lang/lang.h"

#include "test.h"

#include <stdlib.h>

#define CASES KG_SOURCE_DIR "/tests/unit/lang/diagnostics.txt"
#define DIVIDER "\n---\n"
#define CASE_END "\n===\n"

static void answer(const char *definition, size_t length, struct kg_text *text)
{
    struct kg_arena arena = {0};
    struct kg_error error = {0};
    struct kg_file *file;
    enum kg_status status = kg_lang_parse(&arena, "t.kg", definition, length, &file, &error);
    CHECK(status == KG_ERROR_DEFINITION);
    CHECK(file == NULL);
    kg_text_add(text, status == KG_OK ? "accepted" : error.text);
    kg_arena_free(&arena);
}

static void check_case(const char *at, const char *divider, const char *end, struct kg_text *all)
{
    struct kg_text actual = {0}, expected = {0};
    answer(at, (size_t)(divider - at), &actual);
    kg_text_add_bytes(&expected, divider + strlen(DIVIDER),
                      (size_t)(end - divider) - strlen(DIVIDER));
    if (!getenv("KG_TEST_UPDATE"))
        CHECK_TEXT(kg_text_string(&actual), kg_text_string(&expected));
    kg_text_add_bytes(all, at, (size_t)(divider - at));
    kg_text_format(all, DIVIDER "%s" CASE_END, kg_text_string(&actual));
    kg_text_free(&actual);
    kg_text_free(&expected);
}

static void test_cases(void)
{
    char *cases;
    size_t length;
    struct kg_error error = {0};
    struct kg_text all = {0};
    CHECK_STATUS(kg_files_read(CASES, 1 << 20, &cases, &length, &error), KG_OK, &error);
    if (!cases)
        return;
    int count = 0;
    for (const char *at = cases; *at; count++) {
        const char *divider = strstr(at, DIVIDER);
        const char *end = divider ? strstr(divider, CASE_END) : NULL;
        CHECK(end != NULL);
        if (!end)
            break;
        check_case(at, divider, end, &all);
        at = end + strlen(CASE_END);
    }
    CHECK(count > 100);
    if (getenv("KG_TEST_UPDATE"))
        CHECK_STATUS(kg_files_publish(CASES, all.data, all.length, &error), KG_OK, &error);
    kg_text_free(&all);
    free(cases);
}

static void check_first_line(const char *definition, const char *expected)
{
    struct kg_text actual = {0};
    answer(definition, strlen(definition), &actual);
    kg_text_cut(&actual, strcspn(kg_text_string(&actual), "\n"));
    CHECK_TEXT(kg_text_string(&actual), expected);
    kg_text_free(&actual);
}

static void check_repeated(const char *begin, const char *middle, int count, const char *end,
                           const char *expected)
{
    struct kg_text text = {0};
    kg_text_add(&text, begin);
    for (int i = 0; i < count; i++)
        kg_text_add(&text, middle);
    kg_text_add(&text, end);
    check_first_line(kg_text_string(&text), expected);
    kg_text_free(&text);
}

static void test_limits(void)
{
    const char *begin = "op f(x: f32[N]) -> (y: f32[N]) { y[i] = ";
    check_repeated(begin, "(", 201, "x[i]",
                   "t.kg:1:241: error: an expression nested deeper than 200 levels");
    check_repeated(begin, "-", 201, "x[i]",
                   "t.kg:1:241: error: an expression nested deeper than 200 levels");
    check_repeated(begin, "sum(j) ", 201, "x[i]",
                   "t.kg:1:1441: error: an expression nested deeper than 200 levels");
    check_repeated(begin, "x[i] + ", 200, "x[i] }",
                   "t.kg:1:1432: error: an expression nested deeper than 200 levels");
    check_repeated(begin, "max(max(x[i], x[i]), max(x[i], x[i])) + ", 199, "x[i] }",
                   "t.kg:1:7919: error: an expression nested deeper than 200 levels");
    check_repeated("op f(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] t[i] = x[",
                   "i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i,", 300, "i] }",
                   "t.kg:1:8451: error: an op of more than 8192 terms");
    check_repeated("op f(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] } goal { verify N =", " 1,", 1024,
                   " 1 }", "t.kg:1:3138: error: more than 1024 rows");
    check_repeated("", "#\n", 1 << 19, "#",
                   "t.kg: error: a definition of 1048577 bytes; at most 1048576 are allowed");
}

static void test_many_ops(void)
{
    struct kg_text text = {0};
    for (int i = 0; i < 4097; i++)
        kg_text_format(&text, "op f%d(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] }\n", i);
    check_first_line(kg_text_string(&text), "t.kg:4097:1: error: more than 4096 ops in one file");
    kg_text_free(&text);
}

static void test_bytes(void)
{
    struct kg_text actual = {0};
    answer("op f\xff\x1b(", 7, &actual);
    CHECK_TEXT(kg_text_string(&actual), "t.kg:1:5: error: byte 0xff is not text\n"
                                        "    op f?\?(\n"
                                        "        ^\n"
                                        "expected UTF-8 text without control characters");
    kg_text_cut(&actual, 0);
    answer("op\0f", 4, &actual);
    CHECK_TEXT(kg_text_string(&actual), "t.kg:1:3: error: byte 0x00 is not text\n"
                                        "    op?f\n"
                                        "      ^\n"
                                        "expected UTF-8 text without control characters");
    kg_text_cut(&actual, 0);
    answer("op f(x: f32[N]) \xC2\x9B", 18, &actual);
    CHECK(strncmp(kg_text_string(&actual), "t.kg:1:17: error: byte 0xc2 is not text\n", 40) == 0);
    kg_text_free(&actual);
}

TEST_MAIN(test_cases, test_limits, test_many_ops, test_bytes)
