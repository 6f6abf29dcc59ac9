// The function of the Triton module and of the baseline: its signature, the checks of its inputs,
// the outputs that it makes. How it computes is its own affair.

#include "export/check/bundle_readers.h"
#include "export/check/function_checks.h"
#include "export/python_names.h"

#include <stdlib.h>
#include <string.h>

static void say(struct kg_bundle_facts *facts, int role, enum kg_bundle_fact fact,
                const char *subject, const char *value, const char *shown,
                struct kg_python_place place)
{
    kg_bundle_state(facts, (struct kg_bundle_statement){.fact = fact,
                                                        .subject = subject,
                                                        .value = value,
                                                        .shown = shown,
                                                        .role = role,
                                                        .is_code = true,
                                                        .place = place});
}

// ---- The signature

static void add_count(struct kg_bundle_facts *facts, int role, enum kg_bundle_fact fact,
                      const char *subject, int count, struct kg_python_place place)
{
    const char *number = kg_arena_format(facts->arena, "%d", count);
    say(facts, role, fact, subject, number, number, place);
}

static const char *plain(struct kg_bundle_facts *facts, const struct kg_python_tokens *tokens,
                         struct kg_python_range range)
{
    // An annotation may be written as a string.
    if (range.end == range.first + 1 && tokens->tokens[range.first].kind == KG_PYTHON_STRING) {
        struct kg_python_place inside = kg_python_inside(tokens, range.first);
        return kg_arena_copy(facts->arena, tokens->text + inside.at, inside.length);
    }
    return kg_python_plain(facts->arena, tokens, kg_python_bare(tokens, range));
}

// "torch.Tensor" of "Tensor", where it was imported from torch.
static const char *without_module(const char *text)
{
    return text && strncmp(text, "torch.", 6) == 0 ? text + 6 : text;
}

static void read_parameter(struct kg_bundle_facts *facts, int role,
                           const struct kg_bundle_source *source,
                           const struct kg_python_parameter *parameter, int number)
{
    const struct kg_python_tokens *tokens = &source->lines.tokens;
    struct kg_python_place place = tokens->tokens[parameter->name].place;
    const char *name = kg_python_word(facts->arena, tokens, parameter->name);
    bool is_keyword = parameter->passing == KG_PYTHON_KEYWORD;
    if (!name)
        return;
    say(facts, role, is_keyword ? KG_FACT_KEYWORD : KG_FACT_POSITIONAL,
        kg_arena_format(facts->arena, "%d", number), name, kg_bundle_shown(facts, source, place),
        place);
    bool has_type = parameter->annotation.end > parameter->annotation.first;
    bool has_preset = parameter->preset.end > parameter->preset.first;
    say(facts, role, KG_FACT_ANNOTATION, name,
        without_module(plain(facts, tokens, parameter->annotation)),
        kg_bundle_shown_range(facts, source, parameter->annotation),
        has_type ? kg_python_place_of(tokens, parameter->annotation) : place);
    say(facts, role, KG_FACT_DEFAULT, name, without_module(plain(facts, tokens, parameter->preset)),
        kg_bundle_shown_range(facts, source, parameter->preset),
        has_preset ? kg_python_place_of(tokens, parameter->preset) : place);
}

// Of sizes, dtypes, the device, by their types.
static void add_keyword_counts(struct kg_bundle_facts *facts, int role,
                               const struct kg_python_tokens *tokens,
                               const struct kg_python_function *function,
                               struct kg_python_place place)
{
    static const char *const types[] = {"int", "dtype", "device"};
    int counts[3] = {0};
    for (int i = 0; i < function->count; i++) {
        const struct kg_python_parameter *parameter = &function->parameters[i];
        const char *type = without_module(plain(facts, tokens, parameter->annotation));
        for (int t = 0; t < 3 && parameter->passing == KG_PYTHON_KEYWORD; t++)
            counts[t] += type && strcmp(type, types[t]) == 0;
    }
    for (int t = 0; t < 3; t++)
        add_count(facts, role, KG_FACT_KEYWORD_COUNT, types[t], counts[t], place);
}

static void read_signature(struct kg_bundle_facts *facts, int role,
                           const struct kg_bundle_source *source,
                           const struct kg_python_function *function)
{
    const struct kg_python_tokens *tokens = &source->lines.tokens;
    struct kg_python_place place = tokens->tokens[function->name].place;
    int counts[KG_PYTHON_STAR + 1] = {0};
    for (int i = 0; i < function->count; i++) {
        const struct kg_python_parameter *parameter = &function->parameters[i];
        read_parameter(facts, role, source, parameter, ++counts[parameter->passing]);
    }
    add_count(facts, role, KG_FACT_POSITIONAL_COUNT, NULL, counts[KG_PYTHON_POSITIONAL], place);
    add_keyword_counts(facts, role, tokens, function, place);
    bool has_result = function->result.end > function->result.first;
    const char *result = plain(facts, tokens, function->result);
    // typing.Tuple is the older spelling.
    if (result && strncmp(result, "typing.Tuple[", 13) == 0)
        result = kg_arena_format(facts->arena, "tuple[%s", result + 13);
    say(facts, role, KG_FACT_RESULT, NULL, without_module(result),
        kg_bundle_shown_range(facts, source, function->result),
        has_result ? kg_python_place_of(tokens, function->result) : place);
}

// ---- The body

static void add_tensors(struct kg_stated *stated, const struct kg_python_function *function)
{
    const struct kg_python_tokens *tokens = &stated->source->lines.tokens;
    struct kg_bundle_facts *facts = stated->facts;
    for (int i = 0; i < function->count; i++) {
        const struct kg_python_parameter *parameter = &function->parameters[i];
        const char *name = kg_python_word(facts->arena, tokens, parameter->name);
        if (!name)
            return;
        if (parameter->passing == KG_PYTHON_POSITIONAL) {
            kg_stated_add(stated, name, false);
            continue;
        }
        stated->takes_new_names = true;
        kg_stated_variable(stated, name);
        stated->takes_new_names = false;
        const struct kg_stated_name *known = kg_stated_name(stated, name);
        if (known)
            kg_stated_bind(stated, name, known->tree,
                           kg_arena_format(facts->arena, "argument %s", name));
    }
}

static void read_body(struct kg_bundle_facts *facts, int role,
                      const struct kg_bundle_source *source,
                      const struct kg_python_function *function)
{
    struct kg_stated *stated = KG_NEW(facts->arena, struct kg_stated);
    const struct kg_python_lines *lines = &source->lines;
    struct kg_python_place doc;
    if (!stated)
        return;
    kg_stated_open(stated, facts, role, source, true);
    kg_bundle_bind_constants(stated);
    add_tensors(stated, function);
    int first = function->body.first;
    if (kg_bundle_docstring(lines, first, &doc)) {
        kg_bundle_read_docs(facts, role, source, function, doc);
        first++;
    }
    for (int i = first; i < function->body.end; i++) {
        struct kg_python_range range = lines->lines[i].range;
        if (kg_python_is(&lines->tokens, range.first, "def") ||
            kg_python_is(&lines->tokens, range.first, "class")) {
            i = lines->lines[i].end - 1;
            continue;
        }
        kg_bundle_read_statement(stated, i);
    }
    kg_stated_publish(stated);
}

// ---- The function

static bool is_public(const struct kg_python_lines *lines, int line)
{
    struct kg_python_range range = lines->lines[line].range;
    int before = line > 0 ? lines->lines[line - 1].range.first : -1;
    bool is_kernel = before >= 0 && kg_python_is(&lines->tokens, before, "@") &&
                     kg_python_is(&lines->tokens, before + 1, "triton");
    return kg_python_is(&lines->tokens, range.first, "def") && lines->lines[line].depth == 0 &&
           !is_kernel && lines->tokens.text[lines->tokens.tokens[range.first + 1].place.at] != '_';
}

// The last of the name is the one that callers get. Without one, the last public function.
static int find_function(const struct kg_bundle_facts *facts, const struct kg_python_lines *lines,
                         int *first)
{
    int found = -1, other = -1;
    *first = -1;
    for (int i = 0; i < lines->count; i++) {
        struct kg_python_range range = lines->lines[i].range;
        bool is_def =
            kg_python_is(&lines->tokens, range.first, "def") && lines->lines[i].depth == 0;
        if (is_def && kg_python_is(&lines->tokens, range.first + 1, facts->called)) {
            if (found >= 0)
                *first = found;
            found = i;
        } else if (is_public(lines, i)) {
            other = i;
        }
    }
    return found >= 0 ? found : other;
}

void kg_bundle_read_function(struct kg_bundle_facts *facts, int role,
                             const struct kg_bundle_source *source)
{
    const struct kg_python_lines *lines = &source->lines;
    struct kg_python_function *function = KG_NEW(facts->arena, struct kg_python_function);
    int first, line = find_function(facts, lines, &first);
    if (!function || line < 0)
        return;
    struct kg_python_place place = kg_python_place_of(&lines->tokens, lines->lines[line].range);
    if (!kg_python_function(lines, line, function)) {
        kg_bundle_find(facts, (struct kg_bundle_finding){
                                  .role = role,
                                  .place = place,
                                  .message = "the parameters of this function cannot be read",
                                  .advice = "give each a name, as in (x: torch.Tensor, *, N: int)",
                                  .other_role = -1});
        facts->odd[role] |= 1u << KG_FACT_POSITIONAL_COUNT;
        return;
    }
    place = lines->tokens.tokens[function->name].place;
    bool is_called = kg_python_is(&lines->tokens, function->name, facts->called);
    say(facts, role, KG_FACT_NAME, NULL,
        is_called ? facts->op : kg_python_word(facts->arena, &lines->tokens, function->name),
        kg_bundle_shown(facts, source, place), place);
    if (first >= 0)
        kg_bundle_find(
            facts,
            (struct kg_bundle_finding){
                .role = role,
                .place = place,
                .message = kg_arena_format(facts->arena, "%s is defined twice", facts->called),
                .advice = "callers get the last one; remove one of them",
                .other_role = role,
                .other_place = kg_python_place_of(&lines->tokens, lines->lines[first].range)});
    read_signature(facts, role, source, function);
    read_body(facts, role, source, function);
}
