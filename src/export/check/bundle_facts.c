// Collecting what the files state.

#include "export/check/bundle_facts.h"

#include "base/printable.h"
#include "base/text.h"

#include <string.h>

#define MOST_SHOWN 72

void kg_bundle_state(struct kg_bundle_facts *facts, struct kg_bundle_statement statement)
{
    if (facts->statement_count == facts->statement_capacity) {
        int more = facts->statement_capacity ? facts->statement_capacity * 2 : 256;
        struct kg_bundle_statement *grown =
            KG_NEW_ARRAY(facts->arena, more, struct kg_bundle_statement);
        if (!grown)
            return;
        if (facts->statement_count)
            memcpy(grown, facts->statements, (size_t)facts->statement_count * sizeof *grown);
        facts->statements = grown;
        facts->statement_capacity = more;
    }
    if (!statement.subject)
        statement.subject = "";
    facts->statements[facts->statement_count++] = statement;
}

void kg_bundle_find(struct kg_bundle_facts *facts, struct kg_bundle_finding finding)
{
    if (facts->finding_count == facts->finding_capacity) {
        int more = facts->finding_capacity ? facts->finding_capacity * 2 : 32;
        struct kg_bundle_finding *grown =
            KG_NEW_ARRAY(facts->arena, more, struct kg_bundle_finding);
        if (!grown)
            return;
        if (facts->finding_count)
            memcpy(grown, facts->findings, (size_t)facts->finding_count * sizeof *grown);
        facts->findings = grown;
        facts->finding_capacity = more;
    }
    facts->findings[facts->finding_count++] = finding;
}

const char *kg_bundle_shown(struct kg_bundle_facts *facts, const struct kg_bundle_source *source,
                            struct kg_python_place place)
{
    const char *text = source->text;
    char shown[MOST_SHOWN + 4];
    size_t used = 0;
    bool is_cut = false;
    for (size_t i = 0; i < place.length; i++) {
        char c = text[place.at + i];
        bool is_blank = c == ' ' || c == '\n' || c == '\t' || c == '\r';
        if (is_blank && (used == 0 || shown[used - 1] == ' '))
            continue;
        is_cut = used == MOST_SHOWN;
        if (is_cut)
            break;
        shown[used++] = is_blank ? ' ' : c;
    }
    memcpy(shown + used, "...", 4);
    used += is_cut ? 3 : 0;
    kg_printable_text(shown, used);
    char *copy = kg_arena_copy(facts->arena, shown, used);
    return copy ? copy : "";
}

const char *kg_bundle_shown_range(struct kg_bundle_facts *facts,
                                  const struct kg_bundle_source *source,
                                  struct kg_python_range range)
{
    const struct kg_python_tokens *tokens = &source->lines.tokens;
    return range.end > range.first
               ? kg_bundle_shown(facts, source, kg_python_place_of(tokens, range))
               : "none";
}
