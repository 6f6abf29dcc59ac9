// docs/language.md tells the truth: its examples parse, its wrong examples give exactly the errors
// it shows, and its tables name every function, reduction and dtype there is.

#include "base/files.h"
#include "lang/lang.h"

#include "test.h"

#include <stdlib.h>

#define MANUAL KG_SOURCE_DIR "/docs/language.md"

static char *manual;

// The block that opens with the line `fence` at or after `at`: its text and where to go on.
static const char *next_block(const char *at, const char *fence, struct kg_text *block)
{
    const char *open = strstr(at, fence);
    const char *begin = open ? open + strlen(fence) : NULL;
    const char *end = begin ? strstr(begin, "\n```\n") : NULL;
    kg_text_cut(block, 0);
    if (!end)
        return NULL;
    kg_text_add_bytes(block, begin, (size_t)(end - begin));
    return end;
}

static enum kg_status parse(const struct kg_text *block, struct kg_error *error)
{
    struct kg_arena arena = {0};
    struct kg_file *file;
    enum kg_status status =
        kg_lang_parse(&arena, "example.kg", block->data, block->length, &file, error);
    kg_arena_free(&arena);
    return status;
}

static void test_examples(void)
{
    struct kg_text block = {0};
    int count = 0;
    const char *at = manual;
    while ((at = next_block(at, "\n```kg\n", &block))) {
        struct kg_error error = {0};
        CHECK_STATUS(parse(&block, &error), KG_OK, &error);
        count++;
    }
    CHECK(count >= 8);
    kg_text_free(&block);
}

static void test_errors(void)
{
    struct kg_text block = {0}, answer = {0};
    int count = 0;
    const char *at = manual;
    while ((at = next_block(at, "\n```kg wrong\n", &block))) {
        struct kg_error error = {0};
        CHECK_STATUS(parse(&block, &error), KG_ERROR_DEFINITION, &error);
        CHECK(next_block(at, "\n```text\n", &answer) != NULL);
        CHECK_TEXT(error.text, kg_text_string(&answer));
        count++;
    }
    CHECK(count >= 5);
    kg_text_free(&block);
    kg_text_free(&answer);
}

static void check_mentioned(const char *format, const char *name, const char *meaning)
{
    char text[256];
    snprintf(text, sizeof text, format, name, meaning);
    if (!strstr(manual, text))
        fprintf(stderr, "not in the manual: %s\n", text);
    CHECK(strstr(manual, text) != NULL);
}

static void test_tables(void)
{
    static const char *const forms[] = {"| `%s(x)` | %s |", "| `%s(x, y)` | %s |",
                                        "| `%s(c, a, b)` | %s |"};
    for (int i = 0; i < KG_FUNCTION_COUNT; i++) {
        const struct kg_function_info *info = &kg_functions[i];
        if (info->is_operator && i != KG_FN_OR && i != KG_FN_CEILDIV)
            check_mentioned("`%s`", info->name, "");
        else if (!info->is_operator)
            check_mentioned(forms[info->arity - 1], info->name, info->meaning);
    }
    for (int i = 0; i < KG_REDUCE_COUNT; i++)
        check_mentioned("| `%s` |", kg_reduces[i].name, "");
    for (int i = 0; i < KG_DTYPE_COUNT; i++)
        check_mentioned("`%s`", kg_dtypes[i].name, "");
}

// The costs of the table are those of the code.
static void test_costs(void)
{
    for (int i = 0; i < KG_FUNCTION_COUNT; i++) {
        const struct kg_function_info *info = &kg_functions[i];
        char name[64], cost[32];
        snprintf(name, sizeof name, "\n| `%s(", info->name);
        const char *row = info->is_operator ? NULL : strstr(manual, name);
        if (!row)
            continue;
        const char *end = strchr(row + 1, '\n');
        snprintf(cost, sizeof cost, "| %g%s |", info->operations, info->transcendental ? " T" : "");
        CHECK(end && strncmp(end - strlen(cost), cost, strlen(cost)) == 0);
    }
}

static void read_manual(void)
{
    size_t length;
    struct kg_error error = {0};
    CHECK_STATUS(kg_files_read(MANUAL, 1 << 20, &manual, &length, &error), KG_OK, &error);
    if (!manual)
        exit(1); // nothing to test
}

static void free_manual(void)
{
    free(manual);
}

TEST_MAIN(read_manual, test_examples, test_errors, test_tables, test_costs, free_manual)
