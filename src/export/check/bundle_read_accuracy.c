// The tables of the accuracy test: inputs, outputs, sizes, dtypes; its reference.

#include "export/check/bundle_readers.h"
#include "export/check/bundle_tables.h"

#include "base/text.h"
#include "export/python_names.h"

#include <string.h>

struct reader {
    struct kg_bundle_facts *facts;
    int role;
    const struct kg_bundle_source *source;
    struct kg_stated *stated;
};

static void say(const struct reader *reader, enum kg_bundle_fact fact, const char *subject,
                const char *value, struct kg_python_place place)
{
    kg_bundle_state(reader->facts, (struct kg_bundle_statement){.fact = fact,
                                                                .subject = subject,
                                                                .value = value,
                                                                .shown = value,
                                                                .role = reader->role,
                                                                .is_code = true,
                                                                .place = place});
}

static bool find(const struct reader *reader, const char *name, struct kg_python_range *value)
{
    return kg_bundle_find_value(reader->source, name, value);
}

// ---- The signature

static void say_argument(const struct reader *reader, int number, const char *name,
                         const char *type, struct kg_python_place place)
{
    say(reader, KG_FACT_KEYWORD, kg_arena_format(reader->facts->arena, "%d", number), name, place);
    say(reader, KG_FACT_ANNOTATION, name, type, place);
}

static void say_count(const struct reader *reader, const char *type, int count,
                      struct kg_python_place place)
{
    say(reader, KG_FACT_KEYWORD_COUNT, type, kg_arena_format(reader->facts->arena, "%d", count),
        place);
}

static void read_arguments(const struct reader *reader, int input_count,
                           struct kg_python_place inputs)
{
    static const struct {
        const char *table, *type;
    } tables[] = {{"SIZE_ARGUMENTS", "int"}, {"DTYPE_ARGUMENTS", "dtype"}};
    int count = 0;
    for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++) {
        struct kg_python_range value;
        struct kg_bundle_entries entries;
        if (!find(reader, tables[t].table, &value))
            continue;
        kg_bundle_entries(reader->facts->arena, reader->source, value, &entries);
        for (int i = 0; i < entries.count; i++)
            say_argument(reader, ++count, entries.entries[i].key, tables[t].type,
                         entries.entries[i].place);
        say_count(reader, tables[t].type, entries.count,
                  kg_python_place_of(&reader->source->lines.tokens, value));
    }
    if (input_count == 0)
        say_argument(reader, ++count, "device", "device", inputs);
    say_count(reader, "device", input_count == 0, inputs);
}

// ---- Tensors

// The entry of VARIABLES, and the first input that has it.
static const char *variable_dtype(const struct reader *reader, const char *variable,
                                  const struct kg_bundle_entries *inputs, int input,
                                  bool *is_packed)
{
    struct kg_arena *arena = reader->facts->arena;
    const struct kg_bundle_source *source = reader->source;
    struct kg_python_range value;
    struct kg_bundle_entries table, dtypes;
    if (find(reader, "DTYPE_ARGUMENTS", &value)) {
        kg_bundle_entries(arena, source, value, &table);
        if (kg_bundle_entry(&table, variable))
            return kg_arena_format(arena, "argument %s", variable);
    }
    if (!find(reader, "VARIABLES", &value))
        return NULL;
    kg_bundle_entries(arena, source, value, &table);
    const struct kg_bundle_entry *entry = kg_bundle_entry(&table, variable);
    if (!entry)
        return NULL;
    const char *names[KG_DTYPE_COUNT];
    int count = 0;
    kg_bundle_entries(arena, source, entry->value, &dtypes);
    for (int i = 0; i < dtypes.count && count < KG_DTYPE_COUNT; i++) {
        names[count] = kg_stated_dtype_named(dtypes.entries[i].key, is_packed);
        if (!names[count++])
            return NULL;
    }
    for (int i = 0; i < inputs->count && i != input && !*is_packed; i++)
        if (inputs->entries[i].text && strcmp(inputs->entries[i].text, variable) == 0) {
            struct kg_text name = {0};
            kg_python_name(&name, inputs->entries[i].key);
            const char *like = kg_arena_format(arena, "like %s", kg_text_string(&name));
            kg_text_free(&name);
            return like;
        }
    return count ? kg_stated_dtype_set(arena, names, count) : NULL;
}

static void read_tensor(const struct reader *reader, const struct kg_bundle_entry *entry,
                        const struct kg_bundle_entries *inputs, int input)
{
    struct kg_arena *arena = reader->facts->arena;
    struct kg_text name = {0};
    kg_python_name(&name, entry->key);
    char *copy = kg_arena_copy(arena, kg_text_string(&name), name.length);
    kg_text_free(&name);
    struct kg_stated_tensor *tensor = kg_stated_add(reader->stated, copy, input < 0);
    if (!tensor)
        return;
    if (input < 0)
        kg_stated_gives(reader->stated, tensor);
    else
        say(reader, KG_FACT_POSITIONAL, kg_arena_format(arena, "%d", input + 1), copy,
            entry->place);
    if (input >= 0)
        say(reader, KG_FACT_ANNOTATION, copy, "Tensor", entry->place);
    tensor->dtype_place = kg_python_place_of(&reader->source->lines.tokens, entry->value);
    bool is_packed = false;
    if (entry->text)
        tensor->dtype = kg_stated_dtype_named(entry->text, &is_packed);
    if (entry->text && !tensor->dtype)
        tensor->dtype = variable_dtype(reader, entry->text, inputs, input, &is_packed);
    if (is_packed)
        kg_stated_pack(tensor, tensor->dtype_place);
    tensor->is_dtype_opaque = !tensor->dtype;
}

// Every tensor is there with the key that it has in the definition.
static void read_shapes(const struct reader *reader, const struct kg_bundle_entries *tensors,
                        int first)
{
    struct kg_python_range value;
    struct kg_bundle_entries shapes;
    if (!kg_bundle_find_result(reader->source, "shapes", &value))
        return;
    kg_bundle_entries(reader->facts->arena, reader->source, value, &shapes);
    for (int i = 0; i < tensors->count && first + i < reader->stated->tensor_count; i++) {
        const struct kg_bundle_entry *entry = kg_bundle_entry(&shapes, tensors->entries[i].key);
        if (entry)
            kg_stated_shape(reader->stated, &reader->stated->tensors[first + i],
                            &reader->source->lines.tokens, entry->value, true);
    }
}

static void read_tensors(const struct reader *reader)
{
    struct kg_arena *arena = reader->facts->arena;
    struct kg_python_range value;
    struct kg_bundle_entries inputs = {0}, outputs = {0};
    if (!find(reader, "INPUTS", &value))
        return;
    kg_bundle_entries(arena, reader->source, value, &inputs);
    struct kg_python_place place = kg_python_place_of(&reader->source->lines.tokens, value);
    say(reader, KG_FACT_POSITIONAL_COUNT, NULL, kg_arena_format(arena, "%d", inputs.count), place);
    read_arguments(reader, inputs.count, place);
    for (int i = 0; i < inputs.count; i++)
        read_tensor(reader, &inputs.entries[i], &inputs, i);
    read_shapes(reader, &inputs, 0);
    int first = reader->stated->tensor_count;
    if (!find(reader, "OUTPUTS", &value))
        return;
    place = kg_python_place_of(&reader->source->lines.tokens, value);
    kg_bundle_entries(arena, reader->source, value, &outputs);
    say(reader, KG_FACT_OUTPUT_COUNT, NULL, kg_arena_format(arena, "%d", outputs.count), place);
    say(reader, KG_FACT_RESULT, NULL, outputs.count > 1 ? "tuple[torch.Tensor,...]" : "Tensor",
        place);
    for (int i = 0; i < outputs.count; i++)
        read_tensor(reader, &outputs.entries[i], &inputs, -1);
    read_shapes(reader, &outputs, first);
}

// ---- Sizes

// The keywords of a function of the test: sizes, and dtypes that no input shows.
static void read_keywords(const struct reader *reader, const char *name, bool has_tensors)
{
    struct kg_arena *arena = reader->facts->arena;
    const struct kg_python_tokens *tokens = &reader->source->lines.tokens;
    struct kg_python_function *function = KG_NEW(arena, struct kg_python_function);
    struct kg_python_range value;
    struct kg_bundle_entries dtypes = {0};
    const char *names[KG_PYTHON_PARAMETERS];
    int count = 0, tensors = 0;
    if (!function || !kg_bundle_find_function(reader->source, name, function))
        return;
    if (find(reader, "DTYPE_ARGUMENTS", &value))
        kg_bundle_entries(arena, reader->source, value, &dtypes);
    for (int i = 0; i < function->count; i++) {
        const char *word = kg_python_word(arena, tokens, function->parameters[i].name);
        if (!word)
            return;
        if (has_tensors && function->parameters[i].passing == KG_PYTHON_POSITIONAL)
            say(reader, KG_FACT_POSITIONAL, kg_arena_format(arena, "%d", ++tensors), word,
                tokens->tokens[function->parameters[i].name].place);
        else if (!kg_bundle_entry(&dtypes, word))
            names[count++] = word;
    }
    struct kg_python_place place = tokens->tokens[function->name].place;
    if (has_tensors)
        say(reader, KG_FACT_POSITIONAL_COUNT, NULL, kg_arena_format(arena, "%d", tensors), place);
    kg_bundle_say_sizes(reader->facts, reader->role, names, count, place);
}

void kg_bundle_read_accuracy(struct kg_bundle_facts *facts, int role,
                             const struct kg_bundle_source *source)
{
    static const char *const goals[] = {"RANGES", "TOLERANCES"};
    struct reader reader = {facts, role, source, KG_NEW(facts->arena, struct kg_stated)};
    struct kg_python_range value;
    struct kg_bundle_entries entries;
    if (!reader.stated)
        return;
    kg_bundle_read_name(facts, role, source);
    for (size_t i = 0; i < sizeof goals / sizeof goals[0]; i++)
        kg_bundle_read_goal(facts, role, source, goals[i]);
    if (find(&reader, "SIZES", &value)) {
        const char *names[KG_BUNDLE_ENTRIES];
        kg_bundle_entries(facts->arena, source, value, &entries);
        for (int i = 0; i < entries.count; i++)
            names[i] = entries.entries[i].key;
        kg_bundle_say_sizes(facts, role, names, entries.count,
                            kg_python_place_of(&source->lines.tokens, value));
    }
    read_keywords(&reader, "shapes", false);
    read_keywords(&reader, "limits", false);
    read_keywords(&reader, "reference", true);
    kg_bundle_read_rows(facts, role, source, "ROWS", NULL);
    kg_stated_open(reader.stated, facts, role, source, true);
    kg_bundle_bind_constants(reader.stated);
    reader.stated->takes_new_names = true;
    read_tensors(&reader);
    kg_stated_publish(reader.stated);
}
