// The performance test: whose it is, which sizes it times, and what it uses of the accuracy test.

#include "export/check/bundle_tables.h"

#include <string.h>

#define MOST_NAMES 2048
#define MOST_USES 2048

struct names {
    struct kg_arena *arena;
    const struct kg_python_tokens *tokens;
    int count;
    const char *names[MOST_NAMES];
};

static void add(struct names *names, int token)
{
    if (names->count < MOST_NAMES && names->tokens->tokens[token].kind == KG_PYTHON_NAME)
        names->names[names->count++] = kg_python_word(names->arena, names->tokens, token);
}

static bool has(const struct names *names, const char *name)
{
    for (int i = 0; i < names->count; i++)
        if (names->names[i] && strcmp(names->names[i], name) == 0)
            return true;
    return false;
}

// import a.b as c, d; from m import (a, b as c)
static void add_imports(struct names *names, struct kg_python_range range)
{
    struct kg_python_range parts[64];
    int import = kg_python_find(names->tokens, range, "import");
    struct kg_python_range rest =
        kg_python_bare(names->tokens, (struct kg_python_range){import + 1, range.end});
    int count = import >= 0 ? kg_python_split(names->tokens, rest, 64, parts) : 0;
    for (int i = 0; i < count; i++) {
        int as = kg_python_find(names->tokens, parts[i], "as");
        add(names, as >= 0 && as + 1 < parts[i].end ? as + 1 : parts[i].first);
    }
}

static void add_line(struct names *names, struct kg_python_range range)
{
    const struct kg_python_tokens *tokens = names->tokens;
    struct kg_python_range target, value, parts[64];
    if (kg_python_is(tokens, range.first, "import") || kg_python_is(tokens, range.first, "from")) {
        add_imports(names, range);
    } else if (kg_python_assigns(tokens, range, &target, &value)) {
        int count = kg_python_split(tokens, kg_python_bare(tokens, target), 64, parts);
        for (int i = 0; i < count; i++)
            add(names, parts[i].first);
    }
}

// Names of a module's top, those under `if` and `try` among them.
static void find_names(const struct kg_python_lines *lines, struct names *names)
{
    for (int i = 0; i < lines->count; i++) {
        struct kg_python_range range = lines->lines[i].range;
        range.first += kg_python_is(&lines->tokens, range.first, "async");
        bool is_scope = kg_python_is(&lines->tokens, range.first, "def") ||
                        kg_python_is(&lines->tokens, range.first, "class");
        if (!is_scope) {
            add_line(names, range);
            continue;
        }
        if (range.first + 1 < range.end)
            add(names, range.first + 1);
        i = lines->lines[i].end - 1;
    }
}

static void check_uses(struct kg_bundle_facts *facts, int role,
                       const struct kg_bundle_source *source,
                       const struct kg_bundle_source *accuracy)
{
    struct names *names = KG_NEW(facts->arena, struct names);
    const struct kg_python_tokens *tokens = &source->lines.tokens;
    struct kg_python_range value;
    int uses = 0;
    if (!names || accuracy->lines.count == 0 || !kg_bundle_find_value(source, "accuracy", &value))
        return;
    names->arena = facts->arena;
    names->tokens = &accuracy->lines.tokens;
    find_names(&accuracy->lines, names);
    for (int i = 1; i + 2 < tokens->count && names->count < MOST_NAMES && uses < MOST_USES; i++) {
        if (!kg_python_is(tokens, i, "accuracy") || !kg_python_is(tokens, i + 1, ".") ||
            kg_python_is(tokens, i - 1, ".") || tokens->tokens[i + 2].kind != KG_PYTHON_NAME)
            continue;
        char *name = kg_python_word(facts->arena, tokens, i + 2);
        uses++;
        if (!name || has(names, name))
            continue;
        kg_bundle_find(facts,
                       (struct kg_bundle_finding){
                           .role = role,
                           .place = tokens->tokens[i + 2].place,
                           .message = kg_arena_format(facts->arena,
                                                      "accuracy.%s is used here, and the accuracy "
                                                      "test defines no %s",
                                                      name, name),
                           .advice = "use a name that it defines, or define this one there",
                           .other_role = -1});
    }
}

// beside("triton")
static void check_roles(struct kg_bundle_facts *facts, int role,
                        const struct kg_bundle_source *source)
{
    const struct kg_python_tokens *tokens = &source->lines.tokens;
    for (int i = 0; i + 3 < tokens->count; i++) {
        if (!kg_python_is(tokens, i, "beside") || !kg_python_is(tokens, i + 1, "(") ||
            tokens->tokens[i + 2].kind != KG_PYTHON_STRING)
            continue;
        struct kg_python_place inside = kg_python_inside(tokens, i + 2);
        bool is_known = false;
        for (int r = 0; r < KG_BUNDLE_COUNT; r++)
            is_known |=
                strlen(kg_bundle_roles[r].name) == inside.length &&
                memcmp(kg_bundle_roles[r].name, source->text + inside.at, inside.length) == 0;
        if (!is_known)
            kg_bundle_find(facts, (struct kg_bundle_finding){
                                      .role = role,
                                      .place = tokens->tokens[i + 2].place,
                                      .message = "a bundle has no file of this role",
                                      .advice = "the roles are triton, baseline, accuracy and "
                                                "performance",
                                      .other_role = -1});
    }
}

void kg_bundle_read_performance(struct kg_bundle_facts *facts, int role,
                                const struct kg_bundle_source *source)
{
    kg_bundle_read_name(facts, role, source);
    kg_bundle_read_goal(facts, role, source, "SPEEDUP");
    kg_bundle_read_rows(facts, role, source, "WORK", "sizes");
    if (role != KG_BUNDLE_PERFORMANCE)
        return;
    check_uses(facts, role, source, &facts->sources[KG_BUNDLE_ACCURACY]);
    check_roles(facts, role, source);
}
