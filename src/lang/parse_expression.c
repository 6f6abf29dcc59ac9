// The parser, second half: expressions, by precedence climbing.

#include "lang/parser.h"

#include "lang/words.h"

#include <string.h>

// Binding strength of infix operators; a higher level binds tighter.
enum level {
    LEVEL_OR = 1,
    LEVEL_AND,
    LEVEL_COMPARE,
    LEVEL_BIT_OR,
    LEVEL_BIT_XOR,
    LEVEL_BIT_AND,
    LEVEL_SHIFT,
    LEVEL_SUM,
    LEVEL_PRODUCT,
    LEVEL_UNARY
};

static const struct infix {
    enum kg_token_kind token;
    enum kg_function function;
    enum level level;
} infixes[] = {
    {KG_TOKEN_OR, KG_FN_OR, LEVEL_OR},
    {KG_TOKEN_AND, KG_FN_AND, LEVEL_AND},
    {KG_TOKEN_LT, KG_FN_LT, LEVEL_COMPARE},
    {KG_TOKEN_LE, KG_FN_LE, LEVEL_COMPARE},
    {KG_TOKEN_GT, KG_FN_GT, LEVEL_COMPARE},
    {KG_TOKEN_GE, KG_FN_GE, LEVEL_COMPARE},
    {KG_TOKEN_EQ, KG_FN_EQ, LEVEL_COMPARE},
    {KG_TOKEN_NE, KG_FN_NE, LEVEL_COMPARE},
    {KG_TOKEN_BAR, KG_FN_BIT_OR, LEVEL_BIT_OR},
    {KG_TOKEN_CARET, KG_FN_BIT_XOR, LEVEL_BIT_XOR},
    {KG_TOKEN_AMPERSAND, KG_FN_BIT_AND, LEVEL_BIT_AND},
    {KG_TOKEN_SHIFT_LEFT, KG_FN_SHIFT_LEFT, LEVEL_SHIFT},
    {KG_TOKEN_SHIFT_RIGHT, KG_FN_SHIFT_RIGHT, LEVEL_SHIFT},
    {KG_TOKEN_PLUS, KG_FN_ADD, LEVEL_SUM},
    {KG_TOKEN_MINUS, KG_FN_SUB, LEVEL_SUM},
    {KG_TOKEN_STAR, KG_FN_MUL, LEVEL_PRODUCT},
    {KG_TOKEN_SLASH, KG_FN_DIV, LEVEL_PRODUCT},
    {KG_TOKEN_PERCENT, KG_FN_MOD, LEVEL_PRODUCT},
};

static const struct prefix {
    enum kg_token_kind token;
    enum kg_function function;
} prefixes[] = {
    {KG_TOKEN_MINUS, KG_FN_NEG},
    {KG_TOKEN_NOT, KG_FN_NOT},
    {KG_TOKEN_TILDE, KG_FN_BIT_NOT},
};

static const struct {
    enum kg_token_kind token;
    enum kg_relation relation;
} relations_of[] = {
    {KG_TOKEN_LE, KG_RELATION_LE},
    {KG_TOKEN_LT, KG_RELATION_LT},
    {KG_TOKEN_GE, KG_RELATION_GE},
    {KG_TOKEN_GT, KG_RELATION_GT},
};

_Noreturn static void fail_depth(struct kg_parser *parser, struct kg_span span)
{
    kg_lang_fail(parser->job, span, "help: give a part of it a name of its own",
                 "an expression nested deeper than %d levels", KG_MAX_DEPTH);
}

static struct kg_node *new_node(struct kg_parser *parser, enum kg_node_kind kind,
                                const struct kg_token *token)
{
    if (++parser->nodes > KG_MAX_NODES)
        kg_lang_fail(parser->job, token->span, "help: make it several ops",
                     "an op of more than %d terms", KG_MAX_NODES);
    struct kg_node *node = KG_LANG_NEW(parser->job, struct kg_node);
    node->kind = kind;
    node->token = token;
    node->span = token->span;
    node->depth = 1;
    return node;
}

static void grow_depth(struct kg_parser *parser, struct kg_node *node, const struct kg_node *child)
{
    if (child && child->depth >= node->depth)
        node->depth = child->depth + 1;
    if (node->depth > KG_MAX_DEPTH)
        fail_depth(parser, node->token->span);
}

// Appends `child` to the arguments; `last` is the argument added before it.
static void add_argument(struct kg_parser *parser, struct kg_node *node, struct kg_node **last,
                         struct kg_node *child)
{
    if (*last)
        (*last)->next = child;
    else
        node->arguments = child;
    *last = child;
    node->argument_count++;
    grow_depth(parser, node, child);
}

static struct kg_node *parse_level(struct kg_parser *parser, enum level lowest);

// Comma-separated expressions up to `close`.
static void parse_arguments(struct kg_parser *parser, struct kg_node *node,
                            enum kg_token_kind close)
{
    struct kg_node *last = NULL;
    const struct kg_token *end = kg_parser_accept(parser, close);
    while (!end) {
        add_argument(parser, node, &last, parse_level(parser, LEVEL_OR));
        end = kg_parser_accept(parser, close);
        if (!end && !kg_parser_accept(parser, KG_TOKEN_COMMA)) {
            kg_parser_refuse_foreign(parser, KG_FOREIGN_STATEMENT);
            kg_parser_fail(parser, kg_lang_format(parser->job, "expected \",\" or %s",
                                                  kg_token_kind_text(close)));
        }
    }
    node->span = kg_lang_join(node->span, end->span);
}

struct kg_binder *kg_parser_binder(struct kg_parser *parser, bool relations)
{
    struct kg_binder *binder = KG_LANG_NEW(parser->job, struct kg_binder);
    binder->name = kg_parser_expect(parser, KG_TOKEN_NAME, "an index name");
    if (kg_parser_accept_word(parser, "in")) {
        binder->begin = kg_parser_size(parser);
        kg_parser_expect(parser, KG_TOKEN_RANGE, "a range such as 0..R");
        binder->end = kg_parser_size(parser);
        return binder;
    }
    for (size_t i = 0; relations && i < sizeof relations_of / sizeof relations_of[0]; i++)
        if (kg_parser_accept(parser, relations_of[i].token)) {
            binder->relation = relations_of[i].relation;
            binder->bound = kg_parser_size(parser);
            break;
        }
    return binder;
}

// The token behind the bracket that closes the one at `open`, or END.
static const struct kg_token *behind_bracket(const struct kg_token *open)
{
    int nested = 0;
    for (const struct kg_token *at = open; at->kind != KG_TOKEN_END; at++) {
        if (at->kind == KG_TOKEN_OPEN_BRACE || at->kind == KG_TOKEN_CLOSE_BRACE)
            return at;
        nested += at->kind == KG_TOKEN_OPEN_PAREN || at->kind == KG_TOKEN_OPEN_BRACKET;
        nested -= at->kind == KG_TOKEN_CLOSE_PAREN || at->kind == KG_TOKEN_CLOSE_BRACKET;
        if (nested == 0)
            return at + 1;
    }
    return open + 1;
}

// Could an operand begin here? A name that begins the next statement does not.
static bool begins_operand(const struct kg_token *at)
{
    switch (at->kind) {
    case KG_TOKEN_INTEGER:
    case KG_TOKEN_REAL:
    case KG_TOKEN_OPEN_PAREN:
    case KG_TOKEN_NOT:
    case KG_TOKEN_TILDE:
        return true;
    case KG_TOKEN_NAME:
        return at[1].kind != KG_TOKEN_OPEN_BRACKET ||
               behind_bracket(at + 1)->kind != KG_TOKEN_ASSIGN;
    default:
        return false;
    }
}

// max and min are functions of two values and reductions. At the open parenthesis: is it
// `max(d) x[d]` rather than `max(a, b)`? Before a minus, two plain arguments are a call:
// `max(i, j) - 1`.
static bool is_reduction(const struct kg_token *open)
{
    const struct kg_token *behind = behind_bracket(open);
    int commas = 0, nested = 0;
    for (const struct kg_token *at = open; at < behind; at++) {
        nested += at->kind == KG_TOKEN_OPEN_PAREN || at->kind == KG_TOKEN_OPEN_BRACKET;
        nested -= at->kind == KG_TOKEN_CLOSE_PAREN || at->kind == KG_TOKEN_CLOSE_BRACKET;
        commas += nested == 1 && at->kind == KG_TOKEN_COMMA;
        if (nested == 1 && kg_parser_is_word(at, "in"))
            return true;
    }
    return commas == 0 || begins_operand(behind) || (behind->kind == KG_TOKEN_MINUS && commas != 1);
}

// `mean(x[p, d])`, as a call would be written: the indices stand in the parentheses, not the
// values.
static void refuse_reduced_value(struct kg_parser *parser, const struct kg_token *reduction)
{
    const struct kg_token *at = parser->at;
    if (at->kind == KG_TOKEN_NAME && at[1].kind != KG_TOKEN_OPEN_BRACKET &&
        at[1].kind != KG_TOKEN_OPEN_PAREN)
        return;
    const char *value = "x[p, d]", *index = "d";
    if (at->kind == KG_TOKEN_NAME && at[1].kind == KG_TOKEN_OPEN_BRACKET) {
        const struct kg_token *end = behind_bracket(at + 1) - 1;
        if (end->kind == KG_TOKEN_CLOSE_BRACKET && end[-1].kind == KG_TOKEN_NAME) {
            value = kg_lang_copy(parser->job, parser->job->source.text + at->offset,
                                 end->offset + 1 - at->offset);
            index = end[-1].text;
        }
    }
    kg_parser_fail(parser, kg_lang_format(parser->job,
                                          "help: the indices that are reduced stand in the "
                                          "parentheses, as in %s(%s) %.200s",
                                          reduction->text, index, value));
}

static struct kg_node *parse_reduction(struct kg_parser *parser, const struct kg_token *name)
{
    struct kg_node *node = new_node(parser, KG_NODE_REDUCE, name);
    node->reduce = kg_reduce_find(name->text, strlen(name->text));
    kg_parser_expect(parser, KG_TOKEN_OPEN_PAREN, NULL);
    struct kg_binder **link = &node->binders;
    do {
        refuse_reduced_value(parser, name);
        struct kg_binder *binder = kg_parser_binder(parser, true);
        grow_depth(parser, node, binder->begin);
        grow_depth(parser, node, binder->end);
        grow_depth(parser, node, binder->bound);
        *link = binder;
        link = &binder->next;
    } while (kg_parser_accept(parser, KG_TOKEN_COMMA));
    kg_parser_expect(parser, KG_TOKEN_CLOSE_PAREN,
                     "\",\" or \")\"; an index is written k, \"r in 0..R\" or \"j <= d\"");
    if (!begins_operand(parser->at) && parser->at->kind != KG_TOKEN_MINUS)
        kg_parser_fail(parser, kg_lang_format(parser->job,
                                              "expected what is reduced, as in %s(k) x[k]: an "
                                              "index stands in the parentheses",
                                              name->text));
    struct kg_node *last = NULL;
    add_argument(parser, node, &last, parse_level(parser, LEVEL_PRODUCT));
    node->span = kg_lang_join(node->span, last->span);
    return node;
}

static struct kg_node *parse_read(struct kg_parser *parser, const struct kg_token *name)
{
    if (parser->in_function)
        kg_lang_fail(parser->job, name->span,
                     kg_lang_format(parser->job,
                                    "help: make the element a parameter, and write %s in its place",
                                    name->text),
                     "a function cannot read tensors");
    struct kg_node *node = new_node(parser, KG_NODE_READ, name);
    kg_parser_next(parser);
    parse_arguments(parser, node, KG_TOKEN_CLOSE_BRACKET);
    if (parser->at->kind == KG_TOKEN_OPEN_BRACKET)
        kg_parser_fail(parser, kg_lang_format(parser->job,
                                              "help: all subscripts stand between one pair of "
                                              "brackets, as in %s[i, j]",
                                              name->text));
    return node;
}

static struct kg_node *parse_named(struct kg_parser *parser)
{
    // A name of nothing: it is a word of the languages in which kernels are written.
    if (parser->at[1].kind != KG_TOKEN_OPEN_PAREN && kg_lang_reserved(parser->at->text))
        kg_parser_refuse_foreign(parser, KG_FOREIGN_VALUE);
    const struct kg_token *name = kg_parser_next(parser);
    size_t length = strlen(name->text);
    if (parser->at->kind == KG_TOKEN_OPEN_BRACKET)
        return parse_read(parser, name);
    if (parser->at->kind != KG_TOKEN_OPEN_PAREN)
        return new_node(parser, KG_NODE_NAME, name);
    bool is_function = kg_function_find(name->text, length) != KG_FUNCTION_COUNT;
    bool is_reduce = kg_reduce_find(name->text, length) != KG_REDUCE_COUNT;
    if (is_reduce && !is_function && parser->in_function)
        kg_lang_fail(parser->job, name->span,
                     "help: make the result a parameter, and reduce where the function is called",
                     "a function cannot hold a reduction");
    if (is_reduce && !parser->in_function && (!is_function || is_reduction(parser->at)))
        return parse_reduction(parser, name);
    struct kg_node *node = new_node(parser, KG_NODE_CALL, name);
    kg_parser_next(parser);
    parse_arguments(parser, node, KG_TOKEN_CLOSE_PAREN);
    return node;
}

static struct kg_node *parse_primary(struct kg_parser *parser)
{
    if (parser->at->kind == KG_TOKEN_NAME)
        return parse_named(parser);
    if (parser->at->kind == KG_TOKEN_INTEGER || parser->at->kind == KG_TOKEN_REAL)
        return new_node(parser, KG_NODE_NUMBER, kg_parser_next(parser));
    const struct kg_token *open = kg_parser_accept(parser, KG_TOKEN_OPEN_PAREN);
    if (!open)
        kg_parser_fail(parser, "expected a value: a number, a read such as x[i], a call or \"(\"");
    struct kg_node *node = parse_level(parser, LEVEL_OR);
    if (parser->at->kind != KG_TOKEN_CLOSE_PAREN)
        kg_parser_refuse_foreign(parser, KG_FOREIGN_STATEMENT);
    const struct kg_token *close =
        kg_parser_expect(parser, KG_TOKEN_CLOSE_PAREN, "an operator or \")\"");
    node->span = kg_lang_join(open->span, close->span);
    return node;
}

static const struct prefix *find_prefix(const struct kg_token *token)
{
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        if (prefixes[i].token == token->kind)
            return &prefixes[i];
    return NULL;
}

static struct kg_node *parse_unary(struct kg_parser *parser)
{
    if (++parser->depth > KG_MAX_DEPTH)
        fail_depth(parser, parser->at->span);
    const struct prefix *prefix = find_prefix(parser->at);
    struct kg_node *node;
    if (prefix) {
        struct kg_node *last = NULL;
        const struct kg_token *sign = kg_parser_next(parser);
        node = new_node(parser, KG_NODE_UNARY, sign);
        node->function = prefix->function;
        add_argument(parser, node, &last, parse_unary(parser));
        node->span = kg_lang_join(sign->span, last->span);
    } else {
        node = parse_primary(parser);
    }
    parser->depth--;
    return node;
}

static const struct infix *find_infix(const struct kg_token *token)
{
    for (size_t i = 0; i < sizeof infixes / sizeof infixes[0]; i++)
        if (infixes[i].token == token->kind)
            return &infixes[i];
    return NULL;
}

static struct kg_node *parse_level(struct kg_parser *parser, enum level lowest)
{
    struct kg_node *left = parse_unary(parser);
    bool compared = false;
    for (;;) {
        const struct infix *infix = find_infix(parser->at);
        if (!infix || infix->level < lowest)
            return left;
        if (infix->level == LEVEL_COMPARE && compared)
            kg_parser_fail(parser, "help: comparisons do not chain; write a < b && b < c");
        compared = infix->level == LEVEL_COMPARE;
        struct kg_node *last = NULL;
        struct kg_node *node = new_node(parser, KG_NODE_BINARY, kg_parser_next(parser));
        node->function = infix->function;
        add_argument(parser, node, &last, left);
        add_argument(parser, node, &last, parse_level(parser, infix->level + 1));
        node->span = kg_lang_join(left->span, last->span);
        left = node;
    }
}

struct kg_node *kg_parser_expression(struct kg_parser *parser)
{
    return parse_level(parser, LEVEL_OR);
}

struct kg_node *kg_parser_size(struct kg_parser *parser)
{
    return parse_level(parser, LEVEL_SUM);
}
