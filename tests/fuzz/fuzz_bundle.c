// Files of a bundle from anywhere: every place that a finding names lies in its file, and texts
// that agree with themselves have no findings. A form feed on a line of its own stands between the
// texts of two files.

#include "export/check/bundle_check.h"

#include "fuzz/fuzz.h"

#include <string.h>

static const char mark[] = "\f\n";

// An allocation of exactly its size, so that sanitizers see a read behind its end.
static char *exact(const char *text, size_t length)
{
    char *copy = malloc(length ? length : 1);
    FUZZ_CHECK(copy);
    memcpy(copy, text, length);
    return copy;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const paths[] = {"t.py", "b.py", "a.py", "p.py"};
    const char *rest = (const char *)data, *end = rest + size;
    struct kg_bundle_text texts[KG_BUNDLE_COUNT] = {0};
    char *copies[KG_BUNDLE_COUNT] = {0};
    struct kg_arena arena = {0};
    struct kg_bundle_facts facts;
    struct kg_error error = {0};
    struct kg_text text = {0};
    for (int role = 0; role < KG_BUNDLE_COUNT && rest; role++) {
        const char *next = memmem(rest, (size_t)(end - rest), mark, sizeof mark - 1);
        size_t length = (size_t)((next && role + 1 < KG_BUNDLE_COUNT ? next : end) - rest);
        copies[role] = exact(rest, length);
        texts[role] = (struct kg_bundle_text){paths[role], copies[role], length};
        rest = next ? next + sizeof mark - 1 : NULL;
    }
    FUZZ_CHECK(kg_bundle_check_texts(&arena, "softmax", texts, NULL, &facts, &error) == KG_OK);
    for (int i = 0; i < facts.finding_count; i++) {
        const struct kg_bundle_finding *finding = &facts.findings[i];
        FUZZ_CHECK(finding->role < KG_BUNDLE_COUNT && facts.sources[finding->role].given);
        FUZZ_CHECK(finding->place.at <= facts.sources[finding->role].length);
        FUZZ_CHECK(finding->message[0] && finding->advice[0]);
    }
    for (int i = 0; i < facts.statement_count; i++) {
        const struct kg_bundle_statement *one = &facts.statements[i];
        FUZZ_CHECK(one->place.at + one->place.length <= facts.sources[one->role].length + 1);
    }
    kg_bundle_add_findings(&facts, &text);
    FUZZ_CHECK(!text.failed && (text.length > 0) == (facts.finding_count > 0));
    kg_text_free(&text);
    kg_arena_free(&arena);
    for (int role = 0; role < KG_BUNDLE_COUNT; role++)
        free(copies[role]);
    return 0;
}
