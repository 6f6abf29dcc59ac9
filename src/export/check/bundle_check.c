// One bundle: its texts are read, each by the reader of its role, and compared.

#include "export/check/bundle_check.h"

#include "export/python_names.h"

#include <string.h>

static void fill(struct kg_bundle_facts *facts, struct kg_bundle_source *source, const char *path,
                 const char *text, size_t length)
{
    *source =
        (struct kg_bundle_source){.path = path, .text = text, .length = length, .given = true};
    kg_python_read(facts->arena, text, length, &source->lines);
}

static void read_source(struct kg_bundle_facts *facts, int kind, int role,
                        const struct kg_bundle_source *source)
{
    static void (*const readers[KG_BUNDLE_COUNT])(struct kg_bundle_facts *, int,
                                                  const struct kg_bundle_source *) = {
        [KG_BUNDLE_TRITON] = kg_bundle_read_function,
        [KG_BUNDLE_BASELINE] = kg_bundle_read_function,
        [KG_BUNDLE_ACCURACY] = kg_bundle_read_accuracy,
        [KG_BUNDLE_PERFORMANCE] = kg_bundle_read_performance,
    };
    if (facts->arena->failed || source->lines.count == 0)
        return;
    readers[kind](facts, role, source);
    kg_bundle_read_formula(facts, role, source);
    // The tests have constants of their own, and a definition is read once.
    if (kind != KG_BUNDLE_PERFORMANCE &&
        (role != KG_BUNDLE_DEFINITION || kind == KG_BUNDLE_BASELINE))
        kg_bundle_read_constants(facts, role, source);
}

static void find_problem(struct kg_bundle_facts *facts, int role)
{
    const struct kg_bundle_source *source = &facts->sources[role];
    const struct kg_python_tokens *tokens = &source->lines.tokens;
    if (tokens->problem)
        kg_bundle_find(facts, (struct kg_bundle_finding){
                                  .role = role,
                                  .place = tokens->where,
                                  .message = tokens->problem,
                                  .advice = "the rest of the file is not looked at",
                                  .other_role = -1,
                              });
    else if (source->lines.count == 0)
        kg_bundle_find(facts, (struct kg_bundle_finding){
                                  .role = role,
                                  .message = "this file is empty",
                                  .advice = "emit the bundle again",
                                  .other_role = -1,
                              });
}

// The op's line stands for all that the definition states.
static void read_definition(struct kg_bundle_facts *facts,
                            const struct kg_bundle_expected *expected)
{
    struct kg_bundle_source *definition = &facts->sources[KG_BUNDLE_DEFINITION];
    int first = facts->statement_count;
    *definition = (struct kg_bundle_source){.path = expected->definition.path,
                                            .text = expected->definition.text,
                                            .length = expected->definition.length,
                                            .lines_before = expected->lines_before,
                                            .given = true};
    for (int kind = 0; kind < KG_BUNDLE_COUNT; kind++) {
        struct kg_bundle_source emitted;
        if (!expected->texts[kind] || kind == KG_BUNDLE_TRITON)
            continue;
        fill(facts, &emitted, definition->path, expected->texts[kind],
             strlen(expected->texts[kind]));
        read_source(facts, kind, KG_BUNDLE_DEFINITION, &emitted);
    }
    const char *newline =
        memchr(definition->text + expected->at, '\n', definition->length - expected->at);
    size_t length = newline ? (size_t)(newline - definition->text) - expected->at
                            : definition->length - expected->at;
    for (int i = first; i < facts->statement_count; i++)
        facts->statements[i].place = (struct kg_python_place){expected->at, length};
}

enum kg_status kg_bundle_check_texts(struct kg_arena *arena, const char *op,
                                     const struct kg_bundle_text texts[KG_BUNDLE_COUNT],
                                     const struct kg_bundle_expected *expected,
                                     struct kg_bundle_facts *facts, struct kg_error *error)
{
    *facts = (struct kg_bundle_facts){.arena = arena, .op = op};
    struct kg_text called = {0};
    kg_python_name(&called, op);
    facts->called = kg_arena_copy(arena, kg_text_string(&called), called.length);
    arena->failed |= called.failed;
    kg_text_free(&called);
    if (arena->failed)
        return kg_error_memory(error, "the files of a bundle");
    for (int role = 0; role < KG_BUNDLE_COUNT; role++) {
        if (!texts[role].path)
            continue;
        fill(facts, &facts->sources[role], texts[role].path, texts[role].text, texts[role].length);
        if (arena->failed)
            return kg_error_memory(error, "the files of a bundle");
        find_problem(facts, role);
    }
    for (int role = 0; role < KG_BUNDLE_COUNT; role++)
        if (facts->sources[role].given)
            read_source(facts, role, role, &facts->sources[role]);
    // The files' name is the op's.
    for (int role = 0; role < KG_BUNDLE_COUNT; role++)
        for (int i = 0; i < facts->statement_count; i++) {
            const struct kg_bundle_statement *one = &facts->statements[i];
            if (one->fact != KG_FACT_NAME || one->role != role || !one->value ||
                strcmp(one->value, op) == 0)
                continue;
            kg_bundle_find(
                facts, (struct kg_bundle_finding){
                           .role = role,
                           .place = one->place,
                           .message = kg_arena_format(
                               arena, "the name of the op is %s here, and the files are called %s",
                               one->shown, op),
                           .advice = "name the function and NAME like the files",
                           .other_role = -1,
                       });
            facts->odd[role] |= 1u << KG_FACT_NAME;
        }
    if (expected)
        read_definition(facts, expected);
    kg_bundle_agree(facts);
    return arena->failed ? kg_error_memory(error, "the files of a bundle") : KG_OK;
}
