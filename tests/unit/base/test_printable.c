// What a terminal would take as a command is replaced, and nothing else is.

#include "base/error.h"
#include "base/printable.h"
#include "test.h"

static void check(const char *text, const char *shown, const char *in_lines)
{
    char copy[64];
    struct kg_text name = {0};
    snprintf(copy, sizeof copy, "%s", text);
    kg_printable_text(copy, strlen(copy));
    CHECK_TEXT(copy, in_lines);
    kg_text_add_printable(&name, text);
    CHECK_TEXT(kg_text_string(&name), shown);
    CHECK(kg_printable_is(text) == (strcmp(text, shown) == 0));
    kg_text_free(&name);
}

static void text_stays(void)
{
    check("", "", "");
    check("plain text, 42%", "plain text, 42%", "plain text, 42%");
    check("µs ≤ 中文 😀", "µs ≤ 中文 😀", "µs ≤ 中文 😀");
    check("a\xC2\xA0z\xED\x9F\xBF\xEE\x80\x80\xF4\x8F\xBF\xBF",
          "a\xC2\xA0z\xED\x9F\xBF\xEE\x80\x80\xF4\x8F\xBF\xBF",
          "a\xC2\xA0z\xED\x9F\xBF\xEE\x80\x80\xF4\x8F\xBF\xBF");
}

static void commands_do_not(void)
{
    check("\033[2Jgone", "?[2Jgone", "?[2Jgone");
    check("a\nb\tc\rd", "a?b?c?d", "a\nb\tc?d");
    check("\a\b\f\v\x7F", "?????", "?????");
    check("\xC2\x9B"
          "31m",
          "??31m", "??31m"); // CSI as one character
    check("\xE2\x80\xAE"
          "cba",
          "???cba", "???cba");                                // right to left
    check("\xE2\x81\xA6x\xE2\x81\xA9", "???x???", "???x???"); // isolates
}

static void only_utf8_stays(void)
{
    check("caf\xE9", "caf?", "caf?");
    check("\x80\xBF", "??", "??");
    check("\xC0\x9B", "??", "??");             // ESC in too many bytes
    check("\xE0\x80\x9B", "???", "???");       // the same
    check("\xF0\x80\x80\x9B", "????", "????"); // the same
    check("\xED\xA0\x80", "???", "???");       // half of a pair
    check("\xF4\x90\x80\x80", "????", "????"); // beyond the last character
    check("\xF8\x88\x80\x80\x80", "?????", "?????");
    check("\xE4\xB8", "??", "??"); // cut
    check("\xE4\033\xAD", "???", "???");
}

static void errors_are_shown(void)
{
    struct kg_error error = {0};
    kg_error_set(&error, KG_ERROR_IO, "cannot read %s:\n\t%s", "a\033[31mb", "caf\xE9");
    CHECK_TEXT(error.text, "cannot read a?[31mb:\n\tcaf?");
    kg_error_prefix(&error, "%s", "in \x9B");
    CHECK_TEXT(error.text, "in ?: cannot read a?[31mb:\n\tcaf?");
}

TEST_MAIN(text_stays, commands_do_not, only_utf8_stays, errors_are_shown)
