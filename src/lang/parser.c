// The parser, first half: ops, signatures, clauses, statements and goals. Recursive descent over
// the token array; nothing is looked up here (check.c does that), so the whole grammar can be read
// off this file and parse_expression.c.

#include "lang/parser.h"

#include <string.h>

static const char *const goal_words[] = {"baseline",  "speedup", "rounds",
                                         "tolerance", "verify",  "tune"};

bool kg_parser_is_word(const struct kg_token *token, const char *word)
{
    return token->kind == KG_TOKEN_NAME && strcmp(token->text, word) == 0;
}

const struct kg_token *kg_parser_next(struct kg_parser *parser)
{
    const struct kg_token *token = parser->at;
    if (token->kind != KG_TOKEN_END)
        parser->at++;
    return token;
}

const struct kg_token *kg_parser_accept(struct kg_parser *parser, enum kg_token_kind kind)
{
    return parser->at->kind == kind ? kg_parser_next(parser) : NULL;
}

const struct kg_token *kg_parser_accept_word(struct kg_parser *parser, const char *word)
{
    return kg_parser_is_word(parser->at, word) ? kg_parser_next(parser) : NULL;
}

void kg_parser_fail(struct kg_parser *parser, const char *advice)
{
    const struct kg_token *token = parser->at;
    if (token->kind == KG_TOKEN_END)
        kg_lang_fail(parser->job, token->span, advice, "the text ends here");
    if (token->kind == KG_TOKEN_STRING)
        kg_lang_fail(parser->job, token->span, advice, "unexpected string");
    kg_lang_fail(parser->job, token->span, advice, "unexpected \"%s\"", token->text);
}

void kg_parser_refuse_foreign(struct kg_parser *parser, enum kg_foreign_place place)
{
    const char *advice = kg_lang_foreign(parser->job, place, parser->at->text, NULL);
    if (advice && parser->at->kind != KG_TOKEN_STRING)
        kg_parser_fail(parser, advice);
}

const struct kg_token *kg_parser_expect(struct kg_parser *parser, enum kg_token_kind kind,
                                        const char *expected)
{
    if (parser->at->kind != kind) {
        expected = expected ? expected : kg_token_kind_text(kind);
        kg_parser_fail(parser, kg_lang_format(parser->job, "expected %s", expected));
    }
    return kg_parser_next(parser);
}

// `x: T[P, D]`, `w: packed u4[K, N]`
static struct kg_syntax_tensor *parse_tensor(struct kg_parser *parser)
{
    struct kg_syntax_tensor *tensor = KG_LANG_NEW(parser->job, struct kg_syntax_tensor);
    tensor->name = kg_parser_expect(parser, KG_TOKEN_NAME, "a tensor such as x: f32[N]");
    kg_parser_expect(parser, KG_TOKEN_COLON, "\":\" and a type such as f32[N]");
    if (kg_parser_is_word(parser->at, "packed") && parser->at[1].kind == KG_TOKEN_NAME)
        tensor->packed = kg_parser_next(parser);
    tensor->type = kg_parser_expect(parser, KG_TOKEN_NAME, "a dtype or a type variable");
    kg_parser_expect(parser, KG_TOKEN_OPEN_BRACKET,
                     "\"[\" and the dimensions; a scalar is written f32[]");
    if (kg_parser_accept(parser, KG_TOKEN_CLOSE_BRACKET))
        return tensor;
    struct kg_node **link = &tensor->dims;
    do {
        struct kg_node *dim = kg_parser_size(parser);
        if (++tensor->rank > KG_MAX_RANK)
            kg_lang_fail(parser->job, dim->span, NULL, "\"%s\" has more than %d dimensions",
                         tensor->name->text, KG_MAX_RANK);
        *link = dim;
        link = &dim->next;
    } while (kg_parser_accept(parser, KG_TOKEN_COMMA));
    kg_parser_expect(parser, KG_TOKEN_CLOSE_BRACKET, "\",\" or \"]\"");
    return tensor;
}

// `(x: T[P, D], bias: T[D])`; gives the link behind the last tensor.
static struct kg_syntax_tensor **parse_tensors(struct kg_parser *parser,
                                               struct kg_syntax_tensor **link, bool output)
{
    kg_parser_expect(parser, KG_TOKEN_OPEN_PAREN, NULL);
    if (kg_parser_accept(parser, KG_TOKEN_CLOSE_PAREN))
        return link;
    do {
        *link = parse_tensor(parser);
        (*link)->is_output = output;
        link = &(*link)->next;
    } while (kg_parser_accept(parser, KG_TOKEN_COMMA));
    kg_parser_expect(parser, KG_TOKEN_CLOSE_PAREN, "\",\" or \")\"");
    return link;
}

// `T in f16 bf16 f32`, more variables after commas; gives the link behind the last one.
static struct kg_syntax_typevar **parse_where(struct kg_parser *parser,
                                              struct kg_syntax_typevar **link)
{
    do {
        struct kg_syntax_typevar *variable = KG_LANG_NEW(parser->job, struct kg_syntax_typevar);
        variable->name = kg_parser_expect(parser, KG_TOKEN_NAME, "a type variable");
        if (!kg_parser_accept_word(parser, "in"))
            kg_parser_fail(parser, "expected \"in\" and dtypes, as in \"where T in f16 f32\"");
        do {
            const struct kg_token *dtype = kg_parser_expect(parser, KG_TOKEN_NAME, "a dtype");
            if (variable->count == KG_DTYPE_COUNT)
                kg_lang_fail(parser->job, dtype->span, NULL, "\"%s\" has too many dtypes",
                             variable->name->text);
            variable->allowed[variable->count++] = dtype;
            if (parser->at->kind == KG_TOKEN_COMMA && parser->at[1].kind == KG_TOKEN_NAME &&
                !kg_parser_is_word(&parser->at[2], "in"))
                kg_parser_next(parser);
        } while (parser->at->kind == KG_TOKEN_NAME && !kg_parser_is_word(parser->at, "param") &&
                 !kg_parser_is_word(parser->at, "where"));
        *link = variable;
        link = &variable->next;
    } while (kg_parser_accept(parser, KG_TOKEN_COMMA));
    return link;
}

// `R = 3, eps = 1e-5`; gives the link behind the last one.
static struct kg_syntax_param **parse_params(struct kg_parser *parser,
                                             struct kg_syntax_param **link)
{
    do {
        struct kg_syntax_param *param = KG_LANG_NEW(parser->job, struct kg_syntax_param);
        param->name = kg_parser_expect(parser, KG_TOKEN_NAME, "a param such as G = 128");
        kg_parser_expect(parser, KG_TOKEN_ASSIGN, "\"=\" and a number");
        param->is_negative = kg_parser_accept(parser, KG_TOKEN_MINUS) != NULL;
        if (parser->at->kind != KG_TOKEN_INTEGER && parser->at->kind != KG_TOKEN_REAL)
            kg_parser_fail(parser, "expected a number");
        param->value = kg_parser_next(parser);
        *link = param;
        link = &param->next;
    } while (kg_parser_accept(parser, KG_TOKEN_COMMA));
    return link;
}

// What was to be reduced begins a statement if the reduction is misspelt: `mena(d) x[p, d]`.
static void refuse_misspelt_reduction(struct kg_parser *parser, const struct kg_token *read)
{
    const struct kg_token *at = read - 1;
    const char *names[KG_REDUCE_COUNT], *all = "help: reductions are";
    if (at->kind != KG_TOKEN_CLOSE_PAREN || at->span.line != read->span.line)
        return;
    do
        at--;
    while (at->kind == KG_TOKEN_NAME || at->kind == KG_TOKEN_COMMA);
    if (at->kind != KG_TOKEN_OPEN_PAREN || at[-1].kind != KG_TOKEN_NAME ||
        kg_function_find(at[-1].text, strlen(at[-1].text)) != KG_FUNCTION_COUNT)
        return;
    for (int i = 0; i < KG_REDUCE_COUNT; i++) {
        names[i] = kg_reduces[i].name;
        all = kg_lang_format(parser->job, "%s%s %s", all, i > 0 ? "," : "", names[i]);
    }
    kg_lang_fail(parser->job, at[-1].span,
                 kg_lang_suggest(parser->job, at[-1].text, names, KG_REDUCE_COUNT, all),
                 "unknown reduction \"%s\"", at[-1].text);
}

// `y[p, d] = ...`
static struct kg_syntax_statement *parse_statement(struct kg_parser *parser)
{
    struct kg_syntax_statement *statement = KG_LANG_NEW(parser->job, struct kg_syntax_statement);
    if (parser->at[0].kind == KG_TOKEN_NAME && parser->at[1].kind != KG_TOKEN_OPEN_BRACKET)
        kg_parser_refuse_foreign(parser, KG_FOREIGN_STATEMENT);
    statement->name = kg_parser_expect(parser, KG_TOKEN_NAME,
                                       "an operator, a statement such as y[i] = ..., or \"}\"");
    kg_parser_expect(parser, KG_TOKEN_OPEN_BRACKET, "\"[\"; a scalar is written l[] = ...");
    struct kg_binder **link = &statement->indices;
    const struct kg_token *end = kg_parser_accept(parser, KG_TOKEN_CLOSE_BRACKET);
    while (!end) {
        *link = kg_parser_binder(parser, false);
        link = &(*link)->next;
        end = kg_parser_accept(parser, KG_TOKEN_CLOSE_BRACKET);
        if (!end)
            kg_parser_expect(parser, KG_TOKEN_COMMA,
                             "\",\" or \"]\"; on the left stand plain index names");
    }
    statement->span = kg_lang_join(statement->name->span, end->span);
    if (parser->at->kind != KG_TOKEN_ASSIGN)
        refuse_misspelt_reduction(parser, statement->name);
    kg_parser_expect(parser, KG_TOKEN_ASSIGN, NULL);
    statement->value = kg_parser_expression(parser);
    return statement;
}

static const struct kg_token *parse_number(struct kg_parser *parser, const char *expected)
{
    if (parser->at->kind != KG_TOKEN_INTEGER && parser->at->kind != KG_TOKEN_REAL)
        kg_parser_fail(parser, expected);
    return kg_parser_next(parser);
}

static const char *unknown_dtype_advice(struct kg_parser *parser, const struct kg_token *name)
{
    const char *here =
        kg_lang_foreign_type(parser->job, name->text, "help: it is called ", " here");
    return here ? here : "expected a dtype such as f16";
}

// `f16 1e-3 1e-3, f32 1.3e-6 1e-5`
static void parse_tolerance(struct kg_parser *parser, struct kg_syntax_goal *goal)
{
    do {
        const struct kg_token *name = kg_parser_expect(parser, KG_TOKEN_NAME, "a dtype");
        enum kg_dtype dtype = kg_dtype_find(name->text, strlen(name->text));
        if (dtype == KG_DTYPE_COUNT)
            kg_lang_fail(parser->job, name->span, unknown_dtype_advice(parser, name),
                         "unknown dtype \"%s\"", name->text);
        if (goal->tolerance[dtype][0])
            kg_lang_fail(parser->job, name->span, NULL, "a second tolerance for %s", name->text);
        for (int i = 0; i < 2; i++)
            goal->tolerance[dtype][i] =
                parse_number(parser, "expected a relative and an absolute tolerance");
    } while (kg_parser_accept(parser, KG_TOKEN_COMMA));
}

// `P D = 1 1, 7 513`
static void parse_shapes(struct kg_parser *parser, struct kg_syntax_shapes *shapes)
{
    while (parser->at->kind == KG_TOKEN_NAME) {
        if (shapes->size_count == KG_MAX_SIZES)
            kg_lang_fail(parser->job, parser->at->span, NULL, "more than %d sizes", KG_MAX_SIZES);
        shapes->sizes[shapes->size_count++] = kg_parser_next(parser);
    }
    kg_parser_expect(parser, KG_TOKEN_ASSIGN, "sizes and their values, as in P D = 1 1, 7 513");
    if (shapes->size_count == 0)
        kg_lang_fail(parser->job, shapes->keyword->span, "expected P D = 1 1, 7 513", "no sizes");
    int numbers = 0;
    for (const struct kg_token *at = parser->at;
         at->kind == KG_TOKEN_INTEGER || at->kind == KG_TOKEN_COMMA; at++)
        numbers += at->kind == KG_TOKEN_INTEGER;
    shapes->values = KG_LANG_NEW_ARRAY(parser->job, numbers, const struct kg_token *);
    const char *expected = shapes->size_count == 1
                               ? "one integer a row"
                               : kg_lang_format(parser->job, "%d integers a row, one for each size",
                                                shapes->size_count);
    int count = 0;
    do {
        if (++shapes->row_count > KG_MAX_ROWS)
            kg_lang_fail(parser->job, parser->at->span, NULL, "more than %d rows", KG_MAX_ROWS);
        for (int i = 0; i < shapes->size_count; i++)
            shapes->values[count++] = kg_parser_expect(parser, KG_TOKEN_INTEGER, expected);
    } while (kg_parser_accept(parser, KG_TOKEN_COMMA));
}

static void parse_baseline(struct kg_parser *parser, struct kg_syntax_goal *goal)
{
    goal->baseline_kind = kg_parser_accept_word(parser, "torch");
    if (!goal->baseline_kind)
        kg_parser_fail(parser, "expected baseline torch \"...\"");
    goal->baseline = kg_parser_expect(parser, KG_TOKEN_STRING, "the baseline's text in quotes");
}

static struct kg_syntax_end parse_end(struct kg_parser *parser)
{
    struct kg_syntax_end end = {.is_negative = kg_parser_accept(parser, KG_TOKEN_MINUS) != NULL};
    if (!kg_parser_is_word(parser->at, "inf") && parser->at->kind != KG_TOKEN_INTEGER &&
        parser->at->kind != KG_TOKEN_REAL)
        kg_parser_fail(parser, "expected a number or inf, as in verify x in 0..1");
    end.token = kg_parser_next(parser);
    return end;
}

// `x in 0..1, w in -inf..0`
static void parse_ranges(struct kg_parser *parser, struct kg_syntax_goal *goal)
{
    struct kg_syntax_range **link = &goal->ranges;
    while (*link)
        link = &(*link)->next;
    do {
        struct kg_syntax_range *range = KG_LANG_NEW(parser->job, struct kg_syntax_range);
        range->name = kg_parser_expect(parser, KG_TOKEN_NAME, "an input, as in x in 0..1");
        if (!kg_parser_accept_word(parser, "in"))
            kg_parser_fail(parser, "expected \"in\" and a range, as in x in 0..1");
        struct kg_span begin = parser->at->span;
        range->low = parse_end(parser);
        kg_parser_expect(parser, KG_TOKEN_RANGE, "a range such as 0..1");
        range->high = parse_end(parser);
        range->span = kg_lang_join(begin, range->high.token->span);
        *link = range;
        link = &range->next;
    } while (kg_parser_accept(parser, KG_TOKEN_COMMA));
}

static void parse_goal_entry(struct kg_parser *parser, struct kg_syntax_goal *goal)
{
    const struct kg_token *word =
        kg_parser_expect(parser, KG_TOKEN_NAME,
                         "\"}\" or one of baseline, speedup, rounds, tolerance, verify, tune");
    if (strcmp(word->text, "verify") == 0 && parser->at->kind == KG_TOKEN_NAME &&
        kg_parser_is_word(&parser->at[1], "in")) {
        parse_ranges(parser, goal);
        return;
    }
    size_t which = 0;
    while (which < sizeof goal_words / sizeof goal_words[0] &&
           strcmp(word->text, goal_words[which]) != 0)
        which++;
    if (which == sizeof goal_words / sizeof goal_words[0])
        kg_lang_fail(parser->job, word->span,
                     kg_lang_suggest(parser->job, word->text, goal_words, which,
                                     "expected one of baseline, speedup, rounds, tolerance, "
                                     "verify, tune"),
                     "a goal has no \"%s\"", word->text);
    const struct kg_token **once[] = {&goal->baseline_kind,  &goal->speedup,
                                      &goal->rounds,         &goal->tolerances,
                                      &goal->verify.keyword, &goal->tune.keyword};
    if (*once[which])
        kg_lang_fail(parser->job, word->span, NULL, "a second \"%s\"", word->text);
    *once[which] = word;
    switch (which) {
    case 0:
        parse_baseline(parser, goal);
        break;
    case 1:
        goal->speedup = parse_number(parser, "expected a factor such as 1.2");
        break;
    case 2:
        goal->rounds = kg_parser_expect(parser, KG_TOKEN_INTEGER, "a number of rounds");
        break;
    case 3:
        parse_tolerance(parser, goal);
        break;
    case 4:
        parse_shapes(parser, &goal->verify);
        break;
    default:
        parse_shapes(parser, &goal->tune);
        break;
    }
}

static void parse_clauses(struct kg_parser *parser, struct kg_syntax_op *op)
{
    struct kg_syntax_typevar **typevars = &op->typevars;
    struct kg_syntax_param **params = &op->params;
    for (;;) {
        if (kg_parser_accept_word(parser, "where"))
            typevars = parse_where(parser, typevars);
        else if (kg_parser_accept_word(parser, "param"))
            params = parse_params(parser, params);
        else
            return;
    }
}

static struct kg_syntax_op *parse_op(struct kg_parser *parser)
{
    struct kg_syntax_op *op = KG_LANG_NEW(parser->job, struct kg_syntax_op);
    op->keyword = kg_parser_accept_word(parser, "op");
    if (!op->keyword) {
        kg_parser_refuse_foreign(parser, KG_FOREIGN_FILE);
        kg_parser_fail(parser, "expected \"op\" or \"fn\"");
    }
    parser->nodes = 0;
    op->name = kg_parser_expect(parser, KG_TOKEN_NAME, "the op's name");
    struct kg_syntax_tensor **outputs = parse_tensors(parser, &op->tensors, false);
    kg_parser_expect(parser, KG_TOKEN_ARROW, "\"->\" and the outputs");
    parse_tensors(parser, outputs, true);
    if (!*outputs)
        kg_lang_fail(parser->job, op->name->span, "expected -> (y: f32[N])",
                     "\"%s\" has no outputs", op->name->text);
    parse_clauses(parser, op);
    kg_parser_expect(parser, KG_TOKEN_OPEN_BRACE, "\"where\", \"param\" or \"{\"");
    struct kg_syntax_statement **statement = &op->statements;
    const struct kg_token *end = kg_parser_accept(parser, KG_TOKEN_CLOSE_BRACE);
    while (!end) {
        *statement = parse_statement(parser);
        statement = &(*statement)->next;
        end = kg_parser_accept(parser, KG_TOKEN_CLOSE_BRACE);
    }
    op->goal.keyword = kg_parser_accept_word(parser, "goal");
    if (op->goal.keyword) {
        kg_parser_expect(parser, KG_TOKEN_OPEN_BRACE, NULL);
        while (!(end = kg_parser_accept(parser, KG_TOKEN_CLOSE_BRACE)))
            parse_goal_entry(parser, &op->goal);
    }
    op->end = end->offset + 1;
    return op;
}

// `fn clip(x, bound) = min(max(x, -bound), bound)`
static struct kg_syntax_function *parse_function(struct kg_parser *parser,
                                                 const struct kg_token *keyword)
{
    struct kg_syntax_function *function = KG_LANG_NEW(parser->job, struct kg_syntax_function);
    function->keyword = keyword;
    function->name = kg_parser_expect(parser, KG_TOKEN_NAME, "the function's name");
    kg_parser_expect(parser, KG_TOKEN_OPEN_PAREN, "\"(\" and the parameters");
    const struct kg_token *end = kg_parser_accept(parser, KG_TOKEN_CLOSE_PAREN);
    while (!end) {
        const struct kg_token *name = kg_parser_expect(parser, KG_TOKEN_NAME, "a parameter");
        if (function->parameter_count == KG_MAX_PARAMETERS)
            kg_lang_fail(parser->job, name->span, NULL, "more than %d parameters",
                         KG_MAX_PARAMETERS);
        function->parameters[function->parameter_count++] = name;
        end = kg_parser_accept(parser, KG_TOKEN_CLOSE_PAREN);
        if (!end)
            kg_parser_expect(parser, KG_TOKEN_COMMA,
                             "\",\" or \")\"; a parameter is a name without a type");
    }
    kg_parser_expect(parser, KG_TOKEN_ASSIGN, "\"=\" and what the function gives");
    parser->nodes = 0;
    parser->in_function = true;
    function->body = kg_parser_expression(parser);
    parser->in_function = false;
    const struct kg_token *last = parser->at - 1;
    function->end = last->offset + strlen(last->text);
    return function;
}

struct kg_syntax_file *kg_lang_parse_syntax(struct kg_lang_job *job)
{
    struct kg_parser parser = {.job = job, .at = kg_lang_lex(job)};
    struct kg_syntax_file *file = KG_LANG_NEW(job, struct kg_syntax_file);
    struct kg_syntax_function **function = &file->functions;
    struct kg_syntax_op **op = &file->ops;
    int ops = 0, functions = 0;
    while (parser.at->kind != KG_TOKEN_END) {
        const struct kg_token *keyword = kg_parser_accept_word(&parser, "fn");
        if (keyword && functions++ == KG_MAX_FUNCTIONS)
            kg_lang_fail(job, keyword->span, NULL, "more than %d functions in one file",
                         KG_MAX_FUNCTIONS);
        if (keyword) {
            *function = parse_function(&parser, keyword);
            function = &(*function)->next;
            continue;
        }
        if (ops++ == KG_MAX_OPS)
            kg_lang_fail(job, parser.at->span, NULL, "more than %d ops in one file", KG_MAX_OPS);
        *op = parse_op(&parser);
        op = &(*op)->next;
    }
    return file;
}
