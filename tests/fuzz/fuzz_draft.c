// Answers of language models from anywhere: of what is read, no character is one that a terminal
// would obey, and a definition that is found has an op or a function, and ends with its line.

#include "draft.h"

#include "fuzz/fuzz.h"

#include <string.h>

static bool is_plain(const char *text)
{
    for (const char *c = text; *c; c++)
        if (((unsigned char)*c < ' ' && *c != '\n' && *c != '\t') || *c == 0x7F)
            return false;
    return true;
}

static void check_definition(const char *text)
{
    char *definition = draft_find_definition(text);
    if (!definition)
        return;
    size_t length = strlen(definition);
    FUZZ_CHECK(length > 0 && length <= strlen(text) + 1 && definition[length - 1] == '\n');
    FUZZ_CHECK(strstr(definition, "op") || strstr(definition, "fn"));
    FUZZ_CHECK(is_plain(definition));
    free(definition);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char why[DRAFT_WHY] = "", message[DRAFT_WHY];
    char *text = draft_read_answer((const char *)data, size, why);
    FUZZ_CHECK(text || why[0]);
    if (text) {
        FUZZ_CHECK(is_plain(text));
        check_definition(text);
        draft_hide_key(text, "sk-12345678");
        FUZZ_CHECK(!strstr(text, "sk-12345678"));
    }
    free(text);
    draft_read_failure((const char *)data, size, message);
    FUZZ_CHECK(is_plain(message) && !strchr(message, '\n'));
    return 0;
}
