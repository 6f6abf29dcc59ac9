// The lines of a function's docstring that say what its tensors are, in the words of both emitters:
//
//     x: (P, D) of T                          x: f16, bf16 or f32 [P, D]
//     w: bytes ... for the shape (K, N) of u4  w: u4, two elements a byte of torch.uint8, of [K, N]
//     y: returned, (P, D) of T                 gives y: the dtype of x [P, D]
//     T: torch.float16, torch.bfloat16
//
// Other lines are for people.

#include "export/check/bundle_readers.h"

#include "export/python_names.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

void kg_bundle_bind_constants(struct kg_stated *stated)
{
    const struct kg_python_lines *lines = &stated->source->lines;
    struct kg_arena *arena = stated->facts->arena;
    for (int i = 0; i < lines->count; i++) {
        struct kg_python_range target, value;
        double number;
        if (lines->lines[i].depth > 0 ||
            !kg_python_assigns(&lines->tokens, lines->lines[i].range, &target, &value) ||
            target.end != target.first + 1 ||
            !kg_bundle_number(arena, &lines->tokens, value, &number) || !(fabs(number) < 1e15) ||
            number != floor(number))
            continue;
        char *name = kg_python_word(arena, &lines->tokens, target.first);
        const struct kg_size_tree *tree = kg_stated_integer(stated, (int64_t)number);
        kg_stated_bind(stated, name, tree, NULL);
        if (stated->is_code || !name)
            continue;
        char *small = kg_arena_copy(arena, name, strlen(name)); // as the definition writes it
        for (char *c = small; c && *c; c++)
            *c = (char)tolower((unsigned char)*c);
        kg_stated_bind(stated, small, tree, NULL);
    }
}

struct docs {
    struct kg_stated *stated;
    struct kg_python_place text;
    const char *keywords[KG_PYTHON_PARAMETERS];
    int keyword_count;
    struct {
        const char *name; // of a variable of dtypes
        const char *set;
        const char *tensor; // the first that has it
    } variables[KG_DTYPE_COUNT];
    int variable_count;
};

static bool is_keyword(const struct docs *docs, const char *name)
{
    for (int i = 0; i < docs->keyword_count; i++)
        if (strcmp(docs->keywords[i], name) == 0)
            return true;
    return false;
}

static bool scan_line(struct docs *docs, struct kg_python_place line,
                      struct kg_python_tokens *tokens)
{
    struct kg_arena *arena = docs->stated->facts->arena;
    const char *text = docs->stated->source->text;
    if (line.length > 1000 || !memchr(text + line.at, ':', line.length))
        return false;
    kg_python_scan_part(arena, text, line, tokens);
    return !arena->failed && !tokens->problem;
}

// T: torch.float16, torch.bfloat16
static void read_variable(struct docs *docs, const struct kg_python_tokens *tokens)
{
    struct kg_arena *arena = docs->stated->facts->arena;
    bool is_one = tokens->count > 4 && tokens->tokens[0].kind == KG_PYTHON_NAME &&
                  kg_python_is(tokens, 1, ":") && kg_python_is(tokens, 2, "torch");
    if (!is_one || docs->variable_count == KG_DTYPE_COUNT)
        return;
    const char *set =
        kg_stated_dtype(docs->stated, tokens, (struct kg_python_range){2, tokens->count - 1});
    const char *name = kg_python_word(arena, tokens, 0);
    if (!set || !name)
        return;
    docs->variables[docs->variable_count].name = name;
    docs->variables[docs->variable_count++].set = set;
}

// The word of a dtype or of a variable.
static const char *dtype_of_word(struct docs *docs, const char *word,
                                 struct kg_stated_tensor *tensor)
{
    struct kg_arena *arena = docs->stated->facts->arena;
    if (is_keyword(docs, word))
        return kg_arena_format(arena, "argument %s", word);
    for (int i = 0; i < docs->variable_count; i++) {
        if (strcmp(docs->variables[i].name, word) != 0)
            continue;
        if (docs->variables[i].tensor)
            return kg_arena_format(arena, "like %s", docs->variables[i].tensor);
        docs->variables[i].tensor = tensor->name;
        return docs->variables[i].set;
    }
    bool is_packed = false;
    const char *found = kg_stated_dtype_named(word, &is_packed);
    if (is_packed)
        kg_stated_pack(tensor, tensor->dtype_place);
    return found;
}

// Tokens before the bracket, or behind "of": one dtype, several, or "the dtype of x".
static const char *dtype_of_words(struct docs *docs, const struct kg_python_tokens *tokens,
                                  struct kg_python_range range, struct kg_stated_tensor *tensor)
{
    struct kg_arena *arena = docs->stated->facts->arena;
    const char *names[KG_DTYPE_COUNT];
    int count = 0;
    if (kg_python_is(tokens, range.first, "the") && range.end - range.first >= 4)
        return kg_arena_format(arena, "like %s", kg_python_word(arena, tokens, range.first + 3));
    for (int i = range.first; i < range.end && count < KG_DTYPE_COUNT; i++) {
        char *word = kg_python_word(arena, tokens, i);
        const char *found = word ? dtype_of_word(docs, word, tensor) : NULL;
        if (found)
            names[count++] = found;
        if (tensor->is_packed)
            break;
    }
    return count ? kg_stated_dtype_set(arena, names, count) : NULL;
}

static void read_tensor(struct docs *docs, const struct kg_python_tokens *tokens)
{
    struct kg_stated *stated = docs->stated;
    int end = tokens->count - 1, name = 0, open = -1;
    bool is_output = kg_python_is(tokens, 0, "gives");
    name += is_output;
    if (name + 2 >= end || !kg_python_is(tokens, name + 1, ":"))
        return;
    is_output |= kg_python_is(tokens, name + 2, "returned");
    char *word = kg_python_word(stated->facts->arena, tokens, name);
    for (int i = name + 2; i < end && open < 0; i++)
        if (kg_python_is(tokens, i, "(") || kg_python_is(tokens, i, "["))
            open = i;
    struct kg_stated_tensor *tensor = word && !is_output ? kg_stated_find(stated, word) : NULL;
    bool is_triton = open >= 0 && kg_python_is(tokens, open, "(");
    int close = open >= 0 ? kg_python_close(tokens, open, end) : end;
    bool is_whole = is_triton ? kg_python_is(tokens, close, "of") : close == end && open >= 0;
    if (!is_whole || (!is_output && !tensor) || (!is_output && tensor->rank != -1))
        return;
    if (is_output) {
        tensor = kg_stated_add(stated, word, true);
        if (!tensor)
            return;
        kg_stated_gives(stated, tensor);
    }
    struct kg_python_range words = is_triton ? (struct kg_python_range){close + 1, end}
                                             : (struct kg_python_range){name + 2, open};
    tensor->dtype_place = kg_python_place_of(tokens, words);
    tensor->dtype = dtype_of_words(docs, tokens, words, tensor);
    kg_stated_shape(stated, tensor, tokens, (struct kg_python_range){open, close}, true);
}

static void read_lines(struct docs *docs,
                       void (*read)(struct docs *, const struct kg_python_tokens *))
{
    struct kg_python_place rest = docs->text, line;
    struct kg_python_tokens tokens;
    while (kg_bundle_next_line(docs->stated->source->text, &rest, &line))
        if (scan_line(docs, line, &tokens))
            read(docs, &tokens);
}

void kg_bundle_read_docs(struct kg_bundle_facts *facts, int role,
                         const struct kg_bundle_source *source,
                         const struct kg_python_function *function, struct kg_python_place text)
{
    struct docs *docs = KG_NEW(facts->arena, struct docs);
    struct kg_stated *stated = KG_NEW(facts->arena, struct kg_stated);
    if (!docs || !stated)
        return;
    kg_stated_open(stated, facts, role, source, false);
    kg_bundle_bind_constants(stated);
    stated->takes_new_names = true;
    docs->stated = stated;
    docs->text = text;
    for (int i = 0; i < function->count; i++) {
        const char *name =
            kg_python_word(facts->arena, &source->lines.tokens, function->parameters[i].name);
        if (!name)
            return;
        if (function->parameters[i].passing == KG_PYTHON_POSITIONAL)
            kg_stated_add(stated, name, false);
        else
            docs->keywords[docs->keyword_count++] = name;
    }
    read_lines(docs, read_variable);
    read_lines(docs, read_tensor);
    kg_stated_publish(stated);
}
