// Comments of definitions as docstrings.

#include "gen/shared/docstring.h"
#include "test.h"

#include <string.h>

static void check(const char *before, const char *comment, int indent, const char *expected)
{
    struct kg_text text = {0};
    kg_text_add(&text, before);
    kg_docstring_prose(&text, comment, indent);
    CHECK_TEXT(kg_text_string(&text), expected);
    kg_text_free(&text);
}

#define WORDS_49 "one two three four five six seven eight nine ten "
#define WORDS_98 WORDS_49 WORDS_49

static void test_fills(void)
{
    check("", "A line,\nand another.", 4, "A line, and another.");
    check("    \"\"\"", WORDS_98 "end", 4,
          "    \"\"\"" WORDS_49 "one two three four five six seven eight nine\n    ten end");
    check("", WORDS_98 "12", 0, WORDS_98 "12"); // 100 columns
    check("", WORDS_98 "123", 0, WORDS_49 "one two three four five six seven eight nine ten\n123");
    check("x\n", "   ", 0, "x\n");
    check("", "", 4, "");
    check("", "a  b\t c ", 0, "a b c");
}

// A word that no line holds has one of its own; characters of several bytes are a column each.
static void test_long_words(void)
{
    char word[152] = {0}, expected[400];
    memset(word, 'w', 150);
    snprintf(expected, sizeof expected, "a\n  %s\n  b", word);
    char comment[400];
    snprintf(comment, sizeof comment, "a %s b", word);
    check("", comment, 2, expected);
    check("", WORDS_98 "\xc3\xa9\xc3\xa9", 0, WORDS_98 "\xc3\xa9\xc3\xa9");
}

static void test_paragraphs(void)
{
    check("", "First,\nstill first.\n\nSecond.\n", 4, "First, still first.\n\n    Second.");
    check("", "\n\nFirst.\n\n\n\nSecond.\n\n", 0, "First.\n\nSecond.");
    check("", "Either\n- of these\n  or\n- those,\nwhich go on", 2,
          "Either\n  - of these\n    or\n  - those, which go on");
    check("", "As in\n    y = x  + 1\nhere.", 0, "As in\n    y = x  + 1\nhere.");
}

static void test_escapes(void)
{
    check("", "a \"b\" c", 0, "a \"b\" c");
    check("", "\"\"\"", 0, "\\\"\\\"\\\"");
    check("", "back\\slash", 0, "back\\\\slash");
    struct kg_text text = {0};
    kg_docstring_escape(&text, "a\\b\n\"\"c\"");
    CHECK_TEXT(kg_text_string(&text), "a\\\\b\n\\\"\"c\\\"");
    kg_text_free(&text);
}

TEST_MAIN(test_fills, test_long_words, test_paragraphs, test_escapes)
