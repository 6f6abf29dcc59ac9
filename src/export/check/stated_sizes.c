// Expressions of sizes in Python: read into trees, and known by the values that they take.

#include "export/check/stated_sizes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MOST_NESTED 60

struct parser {
    struct kg_stated *stated;
    const struct kg_python_tokens *tokens;
    int at, end;
    int depth;
    bool failed;
};

static const struct kg_size_tree *fail(struct parser *parser)
{
    parser->failed = true;
    return NULL;
}

static const struct kg_size_tree *make(struct parser *parser, enum kg_size_kind kind,
                                       const struct kg_size_tree *left,
                                       const struct kg_size_tree *right)
{
    struct kg_size_tree *tree = KG_NEW(parser->stated->facts->arena, struct kg_size_tree);
    if (!tree || parser->failed)
        return fail(parser);
    *tree = (struct kg_size_tree){.kind = kind, .left = left, .right = right};
    return tree;
}

static bool take(struct parser *parser, const char *sign)
{
    bool is_there = parser->at < parser->end && kg_python_is(parser->tokens, parser->at, sign);
    parser->at += is_there;
    return is_there;
}

static const struct kg_size_tree *parse_sum(struct parser *parser);

static const struct kg_size_tree *parse_number(struct parser *parser)
{
    char *word = kg_python_word(parser->stated->facts->arena, parser->tokens, parser->at++);
    char *end;
    if (!word)
        return fail(parser);
    errno = 0;
    long long value = strtoll(word, &end, 10);
    if (*end || errno)
        return fail(parser);
    return kg_stated_integer(parser->stated, value);
}

// Calls whose arguments are sizes, by the last word of what is called.
static const struct {
    const char *name;
    enum kg_size_kind kind;
    int arguments;
} calls[] = {
    {"cdiv", KG_SIZE_CEIL, 2},  {"_cdiv", KG_SIZE_CEIL, 2}, {"ceil_div", KG_SIZE_CEIL, 2},
    {"ceil", KG_SIZE_CEIL, 1},  {"max", KG_SIZE_MAX, 2},    {"min", KG_SIZE_MIN, 2},
    {"int", KG_SIZE_NUMBER, 1},
};

static const struct kg_size_tree *parse_call(struct parser *parser, int last)
{
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (!kg_python_is(parser->tokens, last, calls[i].name))
            continue;
        const struct kg_size_tree *left = parse_sum(parser), *right = NULL;
        if (calls[i].arguments == 2 && (!take(parser, ",") || !(right = parse_sum(parser))))
            return fail(parser);
        take(parser, ",");
        if (!left || !take(parser, ")"))
            return fail(parser);
        if (calls[i].kind == KG_SIZE_NUMBER)
            return left;
        if (calls[i].arguments == 2)
            return make(parser, calls[i].kind, left, right);
        // ceil(a / b)
        return left->kind == KG_SIZE_DIV ? make(parser, KG_SIZE_CEIL, left->left, left->right)
                                         : fail(parser);
    }
    return fail(parser);
}

// x.shape[1] and x.size(1), behind "x."
static const struct kg_size_tree *parse_extent(struct parser *parser, int name)
{
    struct kg_stated *stated = parser->stated;
    char *word = kg_python_word(stated->facts->arena, parser->tokens, name);
    struct kg_stated_tensor *tensor = word ? kg_stated_find(stated, word) : NULL;
    bool is_shape = take(parser, "shape"), is_size = !is_shape && take(parser, "size");
    if (!tensor || !(is_shape || is_size) || !take(parser, is_shape ? "[" : "("))
        return fail(parser);
    bool is_last = take(parser, "-");
    if (parser->at >= parser->end || parser->tokens->tokens[parser->at].kind != KG_PYTHON_NUMBER)
        return fail(parser);
    const struct kg_size_tree *dimension = parse_number(parser);
    if (!dimension || !take(parser, is_shape ? "]" : ")"))
        return fail(parser);
    int64_t at = is_last ? tensor->rank - dimension->number : dimension->number;
    if (at < 0 || at >= KG_MAX_RANK || (is_last && tensor->rank < 0))
        return fail(parser);
    return kg_stated_dimension(stated, tensor, (int)at);
}

static const struct kg_size_tree *parse_atom(struct parser *parser)
{
    const struct kg_python_tokens *tokens = parser->tokens;
    if (parser->at >= parser->end)
        return fail(parser);
    if (take(parser, "(")) {
        const struct kg_size_tree *tree = parse_sum(parser);
        return take(parser, ")") ? tree : fail(parser);
    }
    if (tokens->tokens[parser->at].kind == KG_PYTHON_NUMBER)
        return parse_number(parser);
    if (tokens->tokens[parser->at].kind != KG_PYTHON_NAME)
        return fail(parser);
    int first = parser->at++, last = first;
    while (take(parser, ".")) {
        if (kg_python_is(tokens, parser->at, "shape") || kg_python_is(tokens, parser->at, "size"))
            return parse_extent(parser, last);
        last = parser->at++;
    }
    if (take(parser, "("))
        return parse_call(parser, last);
    char *word = kg_python_word(parser->stated->facts->arena, tokens, first);
    if (!word || last != first || kg_python_is(tokens, parser->at, "["))
        return fail(parser);
    const struct kg_size_tree *tree = kg_stated_variable(parser->stated, word);
    return tree ? tree : fail(parser);
}

static const struct kg_size_tree *parse_unary(struct parser *parser)
{
    if (parser->failed || ++parser->depth > MOST_NESTED)
        return fail(parser);
    const struct kg_size_tree *tree;
    if (take(parser, "-"))
        tree = make(parser, KG_SIZE_SUB, kg_stated_integer(parser->stated, 0), parse_unary(parser));
    else
        tree = parse_atom(parser);
    parser->depth--;
    return tree;
}

static const struct kg_size_tree *parse_product(struct parser *parser)
{
    const struct kg_size_tree *tree = parse_unary(parser);
    while (!parser->failed) {
        enum kg_size_kind kind;
        if (take(parser, "*"))
            kind = KG_SIZE_MUL;
        else if (take(parser, "//") || take(parser, "/"))
            kind = KG_SIZE_DIV;
        else if (take(parser, "%"))
            kind = KG_SIZE_MOD;
        else
            break;
        tree = make(parser, kind, tree, parse_unary(parser));
    }
    return tree;
}

static const struct kg_size_tree *parse_sum(struct parser *parser)
{
    if (parser->failed || ++parser->depth > MOST_NESTED)
        return fail(parser);
    const struct kg_size_tree *tree = parse_product(parser);
    while (!parser->failed) {
        enum kg_size_kind kind;
        if (take(parser, "+"))
            kind = KG_SIZE_ADD;
        else if (take(parser, "-"))
            kind = KG_SIZE_SUB;
        else
            break;
        tree = make(parser, kind, tree, parse_product(parser));
    }
    parser->depth--;
    return tree;
}

const struct kg_size_tree *kg_stated_size(struct kg_stated *stated,
                                          const struct kg_python_tokens *tokens,
                                          struct kg_python_range range)
{
    struct parser parser = {
        .stated = stated, .tokens = tokens, .at = range.first, .end = range.end};
    const struct kg_size_tree *tree = parse_sum(&parser);
    return parser.failed || parser.at != range.end ? NULL : tree;
}

// ---- Values

struct kg_size_variable *kg_size_root(struct kg_size_variable *variable)
{
    while (variable->same)
        variable = variable->same;
    return variable;
}

void kg_size_join(struct kg_size_variable *one, struct kg_size_variable *other)
{
    one = kg_size_root(one);
    other = kg_size_root(other);
    if (one == other)
        return;
    if (one->order < other->order)
        other->same = one;
    else
        one->same = other;
}

// A number between 1 and 4096 that the name and the trial decide.
static int64_t drawn(const char *name, int trial)
{
    uint64_t hash = 1469598103934665603u + (uint64_t)trial * 0x9E3779B97F4A7C15u;
    for (const char *c = name; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    hash ^= hash >> 29;
    hash *= 0xBF58476D1CE4E5B9u;
    return 1 + (int64_t)((hash >> 40) % 4096);
}

static int64_t wrap(uint64_t value)
{
    return (int64_t)value;
}

// Rounded down, as in Python; 0 where nothing is divided.
static int64_t floor_of(int64_t a, int64_t b)
{
    if (b == 0 || (a == INT64_MIN && b == -1))
        return 0;
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

int64_t kg_size_evaluate(const struct kg_size_tree *tree, int trial, int *steps)
{
    if (--*steps < 0)
        return 0;
    if (tree->kind == KG_SIZE_NUMBER)
        return tree->number;
    if (tree->kind == KG_SIZE_VARIABLE) {
        struct kg_size_variable *root = kg_size_root(tree->variable);
        return root->value ? kg_size_evaluate(root->value, trial, steps) : drawn(root->name, trial);
    }
    int64_t a = kg_size_evaluate(tree->left, trial, steps);
    int64_t b = kg_size_evaluate(tree->right, trial, steps);
    switch (tree->kind) {
    case KG_SIZE_ADD:
        return wrap((uint64_t)a + (uint64_t)b);
    case KG_SIZE_SUB:
        return wrap((uint64_t)a - (uint64_t)b);
    case KG_SIZE_MUL:
        return wrap((uint64_t)a * (uint64_t)b);
    case KG_SIZE_DIV:
        return floor_of(a, b);
    case KG_SIZE_MOD:
        return wrap((uint64_t)a - (uint64_t)floor_of(a, b) * (uint64_t)b);
    case KG_SIZE_CEIL:
        return wrap(0 - (uint64_t)floor_of(wrap(0 - (uint64_t)a), b));
    case KG_SIZE_MAX:
        return a > b ? a : b;
    default:
        return a < b ? a : b;
    }
}
