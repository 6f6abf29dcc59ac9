// Long lines of generated sources.

#include "gen/shared/tidy.h"
#include "test.h"

static void check_tidy(const char *source, const char *wanted)
{
    struct kg_text text = {0};
    kg_text_add(&text, source);
    kg_gen_tidy(&text);
    CHECK_TEXT(kg_text_string(&text), wanted);
    kg_text_free(&text);
}

static void code_is_broken(void)
{
    check_tidy("    int total = aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa + bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb + "
               "cccccccccccccccccccc;\n",
               "    int total = aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa + bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb +\n"
               "        cccccccccccccccccccc;\n");
}

// What follows the break would be code.
static void comments_stay_comments(void)
{
    check_tidy(
        "    int total = 1; // aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb "
        "cccccccccccccccccccccc dddd\n",
        "    int total = 1; // aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\n"
        "        // cccccccccccccccccccccc dddd\n");
}

TEST_MAIN(code_is_broken, comments_stay_comments)
