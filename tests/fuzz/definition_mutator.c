// Mutations of definitions that know the grammar: a fuzzer that only changes bytes seldom gets past
// the parser. The text is cut into tokens; a token is replaced by another one of its kind, an
// operand by one that is made from the grammar out of the names in the text, statements are moved
// between places, and whole well-typed definitions are added. Byte mutations remain in the mix.
//
// Linked to a fuzz target, it defines libFuzzer's two hooks for mutations.

#include "fuzz/mutator.h"
#include "lang/dtype.h"
#include "lang/function.h"
#include "property/random_op.h"

#include <string.h>

#define MAX_TOKENS 4096
#define MAX_DEPTH 5
#define LARGEST_TEXT ((size_t)1 << 15) // longer texts get byte mutations only

enum kind { NAME, NUMBER, STRING, SIGN };

struct token {
    const char *at;
    size_t length;
    enum kind kind;
    int partner; // of a bracket; -1: none
};

struct mutation {
    struct mutator *mutator;
    int count;
    struct token tokens[MAX_TOKENS];
    struct kg_text out;
};

static const char *const numbers[] = {
    "0",
    "1",
    "2",
    "3",
    "7",
    "16",
    "64",
    "255",
    "65536",
    "2147483647",
    "-1",
    "0.0",
    ".5",
    "1e-5",
    "1e308",
    "1e309",
    "1e-400",
    "4294967296",
    "1e999",
    "0.25",
    "0e0",
    "1000000",
    "281474976710656",
    "281474976710657",
    "4611686018427387904",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
};
static const char *const operators[] = {"+",  "-",  "*",  "/",  "%", "<", "<=", ">",  ">=",
                                        "==", "!=", "&&", "||", "&", "|", "^",  "<<", ">>"};
static const char *const relations[] = {"<=", "<", ">=", ">"};

#define PICK(mutation, list) ((list)[pick(mutation, (int)(sizeof(list) / sizeof((list)[0])))])

static int pick(struct mutation *mutation, int count)
{
    return mutator_below(mutation->mutator, count);
}

// ---- Tokens

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

// Where a token that begins with these bytes goes on: "1.5" does at its point, "0..N" does not.
static bool continues_number(const char *at, size_t length, size_t left)
{
    char c = at[length];
    if (c == '.')
        return at[length - 1] != '.' && !(length + 1 < left && at[length + 1] == '.');
    return is_letter(c) || is_digit(c);
}

static bool is_double_sign(char first, char second)
{
    return (strchr("=<>!", first) && second == '=') || (strchr("&|.", first) && second == first) ||
           (first == '-' && second == '>');
}

static size_t string_length(const char *at, size_t left)
{
    size_t length = 1;
    while (length < left && at[length] != '"' && at[length] != '\n')
        length += at[length] == '\\' ? 2 : 1;
    return length < left ? length + 1 : left;
}

static size_t token_length(const char *at, size_t left, enum kind *kind)
{
    size_t length = 1;
    *kind = SIGN;
    if (is_letter(at[0])) {
        *kind = NAME;
        while (length < left && (is_letter(at[length]) || is_digit(at[length])))
            length++;
    } else if (is_digit(at[0]) || (at[0] == '.' && left > 1 && is_digit(at[1]))) {
        *kind = NUMBER;
        while (length < left && continues_number(at, length, left))
            length++;
    } else if (at[0] == '"') {
        *kind = STRING;
        length = string_length(at, left);
    } else if (left > 1 && at[0] && is_double_sign(at[0], at[1])) {
        length = 2;
    }
    return length;
}

static void pair_brackets(struct mutation *mutation)
{
    int open[256], depth = 0;
    for (int i = 0; i < mutation->count; i++) {
        struct token *token = &mutation->tokens[i];
        char c = token->at[0];
        if (token->kind != SIGN)
            continue;
        if (strchr("([{", c) && depth < 256)
            open[depth++] = i;
        else if (strchr(")]}", c) && depth > 0) {
            token->partner = open[--depth];
            mutation->tokens[token->partner].partner = i;
        }
    }
}

static void tokenize(struct mutation *mutation, const char *text, size_t size)
{
    mutation->count = 0;
    for (size_t at = 0; at < size && mutation->count < MAX_TOKENS;) {
        if (text[at] == '#') {
            while (at < size && text[at] != '\n')
                at++;
        } else if (text[at] == ' ' || text[at] == '\n' || text[at] == '\t' || text[at] == '\r') {
            at++;
        } else {
            struct token *token = &mutation->tokens[mutation->count++];
            *token = (struct token){.at = text + at, .partner = -1};
            token->length = token_length(text + at, size - at, &token->kind);
            at += token->length;
        }
    }
    pair_brackets(mutation);
}

static bool is(const struct mutation *mutation, int i, const char *text)
{
    return i >= 0 && i < mutation->count && mutation->tokens[i].length == strlen(text) &&
           memcmp(mutation->tokens[i].at, text, mutation->tokens[i].length) == 0;
}

// A random token of a kind; -1: there is none near the place where the search begins.
static int find_kind(struct mutation *mutation, enum kind kind)
{
    int start = pick(mutation, mutation->count);
    for (int i = 0; i < mutation->count; i++) {
        int at = (start + i) % mutation->count;
        if (mutation->tokens[at].kind == kind)
            return at;
    }
    return -1;
}

static void add_token(struct mutation *mutation, struct kg_text *text, int i)
{
    if (i >= 0)
        kg_text_add_bytes(text, mutation->tokens[i].at, mutation->tokens[i].length);
}

// The statement that begins at or before a token: NAME "[" ... "]" "=" ...; its first and last
// token. False if there is none.
static bool begins_statement(const struct mutation *mutation, int i)
{
    int close = is(mutation, i + 1, "[") ? mutation->tokens[i + 1].partner : -1;
    return mutation->tokens[i].kind == NAME && close > i && is(mutation, close + 1, "=");
}

static bool find_statement(const struct mutation *mutation, int near, int *first, int *last)
{
    for (*first = near; *first >= 0 && !begins_statement(mutation, *first);)
        --*first;
    if (*first < 0)
        return false;
    *last = *first + 1;
    while (*last + 1 < mutation->count && !is(mutation, *last + 1, "}") &&
           !begins_statement(mutation, *last + 1))
        ++*last;
    return true;
}

// The last token of the operand that begins at a token.
static int operand_end(const struct mutation *mutation, int i)
{
    const struct token *token = &mutation->tokens[i];
    if (token->partner > i)
        return token->partner;
    if (token->kind == NAME && (is(mutation, i + 1, "[") || is(mutation, i + 1, "(")) &&
        mutation->tokens[i + 1].partner > i)
        return mutation->tokens[i + 1].partner;
    return i;
}

// ---- New text by the grammar

static void make_value(struct mutation *mutation, struct kg_text *text, int depth);

static void make_number(struct mutation *mutation, struct kg_text *text)
{
    kg_text_add(text, PICK(mutation, numbers));
}

// A name that occurs in the text, most often one close to `near`, where indices are known.
static void make_name(struct mutation *mutation, struct kg_text *text, int near)
{
    int at = -1;
    for (int tries = 0; tries < 8 && at < 0; tries++) {
        int place = near + pick(mutation, 41) - 20;
        if (place >= 0 && place < mutation->count && mutation->tokens[place].kind == NAME)
            at = place;
    }
    if (at < 0 || pick(mutation, 8) == 0)
        at = find_kind(mutation, NAME);
    if (at >= 0)
        add_token(mutation, text, at);
    else
        kg_text_add(text, "x");
}

static void make_size(struct mutation *mutation, struct kg_text *text, int depth)
{
    switch (depth > 0 ? pick(mutation, 6) : pick(mutation, 2)) {
    case 0:
        make_number(mutation, text);
        return;
    case 1:
        make_name(mutation, text, pick(mutation, mutation->count));
        return;
    case 2:
        kg_text_add(text, "ceil(");
        make_size(mutation, text, depth - 1);
        kg_text_add(text, "/");
        make_size(mutation, text, depth - 1);
        kg_text_add(text, ")");
        return;
    default:
        kg_text_add(text, "(");
        make_size(mutation, text, depth - 1);
        kg_text_add(text, operators[pick(mutation, 5)]);
        make_size(mutation, text, depth - 1);
        kg_text_add(text, ")");
    }
}

// With as many subscripts as the tensor's first occurrence has.
static void make_read(struct mutation *mutation, struct kg_text *text, int depth)
{
    int start = pick(mutation, mutation->count), tensor = -1;
    for (int i = 0; i < mutation->count && tensor < 0; i++) {
        int at = (start + i) % mutation->count;
        if (mutation->tokens[at].kind == NAME && is(mutation, at + 1, "["))
            tensor = at;
    }
    if (tensor < 0) {
        kg_text_add(text, "x[]");
        return;
    }
    add_token(mutation, text, tensor);
    kg_text_add(text, "[");
    int close = mutation->tokens[tensor + 1].partner, rank = close > tensor + 2;
    for (int i = tensor + 2; i < close; i++) {
        rank += is(mutation, i, ",");
        if (mutation->tokens[i].partner > i)
            i = mutation->tokens[i].partner;
    }
    for (int d = 0; d < rank && d < 9; d++) {
        kg_text_add(text, d ? ", " : "");
        if (pick(mutation, 3))
            make_name(mutation, text, tensor);
        else
            make_value(mutation, text, depth - 1);
    }
    kg_text_add(text, "]");
}

static void make_call(struct mutation *mutation, struct kg_text *text, int depth)
{
    const struct kg_function_info *function =
        &kg_functions[KG_FN_WHERE + pick(mutation, KG_FUNCTION_COUNT - KG_FN_WHERE)];
    int arguments = function->arity;
    if (pick(mutation, 16) == 0)
        arguments = pick(mutation, 4);
    kg_text_add(text, function->name);
    kg_text_add(text, "(");
    for (int i = 0; i < arguments; i++) {
        kg_text_add(text, i ? ", " : "");
        make_value(mutation, text, depth - 1);
    }
    kg_text_add(text, ")");
}

static void make_reduction(struct mutation *mutation, struct kg_text *text, int depth)
{
    static const char *const names[] = {"j", "k", "r", "d", "p"};
    const char *index = PICK(mutation, names);
    kg_text_format(text, "(%s(%s", kg_reduces[pick(mutation, KG_REDUCE_COUNT)].name, index);
    switch (pick(mutation, 3)) {
    case 0:
        kg_text_add(text, " in ");
        make_size(mutation, text, 1);
        kg_text_add(text, "..");
        make_size(mutation, text, 1);
        break;
    case 1:
        kg_text_format(text, " %s ", PICK(mutation, relations));
        make_size(mutation, text, 1);
        break;
    default:
        break;
    }
    kg_text_add(text, ") ");
    make_value(mutation, text, depth - 1);
    if (pick(mutation, 2)) {
        kg_text_add(text, " * ");
        make_read(mutation, text, 1);
    }
    kg_text_add(text, ")");
}

static void make_form(struct mutation *mutation, struct kg_text *text, int depth)
{
    if (pick(mutation, 2)) {
        kg_text_format(text, "cast(%s, ", kg_dtypes[pick(mutation, KG_DTYPE_COUNT)].name);
    } else {
        kg_text_add(text, "pad(");
        make_read(mutation, text, depth - 1);
        kg_text_add(text, ", ");
    }
    make_value(mutation, text, depth - 1);
    kg_text_add(text, ")");
}

static void make_value(struct mutation *mutation, struct kg_text *text, int depth)
{
    static const char *const constants[] = {"inf", "nan", "pi", "true", "false"};
    switch (depth > 0 ? pick(mutation, 12) : pick(mutation, 4)) {
    case 0:
        make_number(mutation, text);
        return;
    case 1:
        kg_text_add(text, PICK(mutation, constants));
        return;
    case 2:
        make_name(mutation, text, pick(mutation, mutation->count));
        return;
    case 3:
    case 4:
    case 5:
        make_read(mutation, text, depth);
        return;
    case 6:
        make_call(mutation, text, depth);
        return;
    case 7:
        make_reduction(mutation, text, depth);
        return;
    case 8:
        make_form(mutation, text, depth);
        return;
    case 9:
        kg_text_add(text, pick(mutation, 2) ? "-" : "!");
        make_value(mutation, text, depth - 1);
        return;
    default:
        kg_text_add(text, "(");
        make_value(mutation, text, depth - 1);
        kg_text_format(text, " %s ", PICK(mutation, operators));
        make_value(mutation, text, depth - 1);
        kg_text_add(text, ")");
    }
}

// ---- Mutations

// The text with the tokens from `first` to `last` replaced by `middle`.
static void splice(struct mutation *mutation, const char *text, size_t size, int first, int last,
                   const char *middle)
{
    size_t begin = (size_t)(mutation->tokens[first].at - text);
    size_t end = (size_t)(mutation->tokens[last].at - text) + mutation->tokens[last].length;
    kg_text_add_bytes(&mutation->out, text, begin);
    kg_text_add(&mutation->out, middle);
    kg_text_add_bytes(&mutation->out, text + end, size - end);
}

// A token by another one of its kind.
static void replace_token(struct mutation *mutation, struct kg_text *middle, int i)
{
    const struct token *token = &mutation->tokens[i];
    char c = token->at[0];
    if (token->kind == NUMBER) {
        make_number(mutation, middle);
    } else if (token->kind == STRING) {
        kg_text_add(middle, "\"torch.\\\"\\\\\"");
    } else if (token->kind == SIGN && strchr("+-*/%<>=!&|^~", c)) {
        kg_text_add(middle, PICK(mutation, operators));
    } else if (token->kind == NAME && kg_dtype_find(token->at, token->length) != KG_DTYPE_COUNT) {
        kg_text_add(middle, kg_dtypes[pick(mutation, KG_DTYPE_COUNT)].name);
    } else if (token->kind == NAME && kg_reduce_find(token->at, token->length) != KG_REDUCE_COUNT) {
        kg_text_add(middle, kg_reduces[pick(mutation, KG_REDUCE_COUNT)].name);
    } else if (token->kind == NAME) {
        make_name(mutation, middle, i);
    } else {
        add_token(mutation, middle, find_kind(mutation, SIGN));
    }
}

// An operand by a new one, or by itself inside a larger one.
static void replace_operand(struct mutation *mutation, struct kg_text *middle, int i, int end)
{
    const char *from = mutation->tokens[i].at;
    size_t length = (size_t)(mutation->tokens[end].at - from) + mutation->tokens[end].length;
    int wrap = pick(mutation, 6);
    if (wrap > 2) {
        make_value(mutation, middle, 1 + pick(mutation, MAX_DEPTH - 1));
        return;
    }
    const char *before[] = {"(", "cast(f16, ", "where("};
    kg_text_add(middle, before[wrap]);
    kg_text_add_bytes(middle, from, length);
    if (wrap == 0)
        kg_text_format(middle, " %s ", PICK(mutation, operators));
    for (int more = wrap == 0 ? 1 : wrap == 1 ? 0 : 2; more > 0; more--) {
        kg_text_add(middle, wrap == 0 ? "" : ", ");
        make_value(mutation, middle, 2);
    }
    kg_text_add(middle, ")");
}

// A statement twice, without itself, or with another value.
static bool change_statement(struct mutation *mutation, struct kg_text *middle, int *first,
                             int *last)
{
    if (!find_statement(mutation, pick(mutation, mutation->count), first, last))
        return false;
    const char *from = mutation->tokens[*first].at;
    size_t length = (size_t)(mutation->tokens[*last].at - from) + mutation->tokens[*last].length;
    switch (pick(mutation, 4)) {
    case 0:
        kg_text_add_bytes(middle, from, length);
        kg_text_add(middle, "\n ");
        kg_text_add_bytes(middle, from, length);
        return true;
    case 1:
        return true;
    case 2: // an intermediate in front of it
        kg_text_format(middle, "t%d[i in 0..", pick(mutation, 3));
        make_size(mutation, middle, 1);
        kg_text_add(middle, "] = ");
        make_value(mutation, middle, 3);
        kg_text_add(middle, "\n ");
        kg_text_add_bytes(middle, from, length);
        return true;
    default:
        *first = mutation->tokens[*first + 1].partner + 2; // behind the "="
        if (*first > *last)
            return false;
        make_value(mutation, middle, MAX_DEPTH);
        return true;
    }
}

static void add_definition(struct mutation *mutation, const char *text, size_t size)
{
    struct random_op op = {.seed = 0};
    uint64_t seed = (uint64_t)mutator_below(mutation->mutator, 1 << 30);
    random_op_make(&op, seed, pick(mutation, 2) ? RANDOM_ANY : RANDOM_STABLE);
    if (pick(mutation, 3))
        kg_text_add_bytes(&mutation->out, text, size);
    kg_text_add(&mutation->out, "\n");
    kg_text_add(&mutation->out, kg_text_string(&op.text));
    random_op_free(&op);
}

// A function in front, and an operand in a call of it; or a range of a name in a goal behind.
static void add_function(struct mutation *mutation, const char *text, size_t size, int i)
{
    static const char *const bodies[] = {"a", "a * b + b", "where(a > b, a, b)", "-cast(f16, a)"};
    static const char *const ends[] = {"-inf..0", "0..1", "-1..1e3", "0..inf", "2..1", "3..3"};
    struct kg_text middle = {0};
    if (pick(mutation, 3) == 0) {
        kg_text_add_bytes(&mutation->out, text, size);
        kg_text_add(&mutation->out, " goal { verify ");
        make_name(mutation, &mutation->out, 0);
        kg_text_format(&mutation->out, " in %s }", PICK(mutation, ends));
        return;
    }
    int end = operand_end(mutation, i), name = pick(mutation, 4);
    const char *from = mutation->tokens[i].at;
    kg_text_format(&mutation->out, "fn q%d(a, b) = ", name);
    if (pick(mutation, 4))
        kg_text_add(&mutation->out, PICK(mutation, bodies));
    else
        make_value(mutation, &mutation->out, 2);
    kg_text_add(&mutation->out, "\n");
    kg_text_format(&middle, "q%d(%.*s, ", name,
                   (int)(mutation->tokens[end].at - from) + (int)mutation->tokens[end].length,
                   from);
    make_value(mutation, &middle, 1);
    kg_text_add(&middle, ")");
    splice(mutation, text, size, i, end, kg_text_string(&middle));
    kg_text_free(&middle);
}

static void mutate_once(struct mutation *mutation, const char *text, size_t size)
{
    struct kg_text middle = {0};
    int i = mutation->count > 0 ? pick(mutation, mutation->count) : -1, last = i;
    int kind = pick(mutation, 11);
    if (i < 0 || kind == 0) {
        add_definition(mutation, text, size);
        return;
    }
    if (kind == 10) {
        add_function(mutation, text, size, i);
        return;
    }
    if (kind <= 3) {
        replace_token(mutation, &middle, i);
    } else if (kind <= 6) {
        last = operand_end(mutation, i);
        replace_operand(mutation, &middle, i, last);
    } else if (kind == 7) { // a list without an element, or with one more
        last = operand_end(mutation, i);
        if (pick(mutation, 2))
            kg_text_format(&middle, "%.*s, %.*s", (int)mutation->tokens[i].length,
                           mutation->tokens[i].at, (int)mutation->tokens[i].length,
                           mutation->tokens[i].at);
    } else if (!change_statement(mutation, &middle, &i, &last)) {
        last = i = pick(mutation, mutation->count);
    }
    splice(mutation, text, size, i, last, kg_text_string(&middle));
    kg_text_free(&middle);
}

static size_t take(struct mutation *mutation, uint8_t *data, size_t size, size_t max_size)
{
    struct kg_text *out = &mutation->out;
    if (!out->failed && out->length > 0 && out->length <= max_size) {
        memcpy(data, out->data, out->length);
        size = out->length;
    }
    kg_text_free(out);
    return size;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    struct mutator mutator = mutator_begin(seed);
    if (size > LARGEST_TEXT || mutator_below(&mutator, 8) == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    static struct mutation large;
    struct mutation *mutation = &large;
    mutation->mutator = &mutator;
    for (int steps = 1 + mutator_below(&mutator, 3); steps > 0; steps--) {
        tokenize(mutation, (const char *)data, size);
        mutate_once(mutation, (const char *)data, size);
        size = take(mutation, data, size, max_size);
    }
    return size;
}

// The second text with a statement of the first in the place of one of its own.
size_t LLVMFuzzerCustomCrossOver(const uint8_t *data1, size_t size1, const uint8_t *data2,
                                 size_t size2, uint8_t *out, size_t max_size, unsigned seed)
{
    struct mutator mutator = mutator_begin(seed);
    static struct mutation first_text, second_text;
    struct mutation *one = &first_text, *two = &second_text;
    one->mutator = two->mutator = &mutator;
    tokenize(one, (const char *)data1, size1);
    tokenize(two, (const char *)data2, size2);
    int first, last, at, end;
    size_t size = 0;
    if (size1 <= LARGEST_TEXT && size2 <= LARGEST_TEXT && one->count > 0 && two->count > 0 &&
        find_statement(one, pick(one, one->count), &first, &last) &&
        find_statement(two, pick(two, two->count), &at, &end)) {
        const char *from = one->tokens[first].at;
        struct kg_text middle = {0};
        kg_text_add_bytes(&middle, from,
                          (size_t)(one->tokens[last].at - from) + one->tokens[last].length);
        splice(two, (const char *)data2, size2, at, end, kg_text_string(&middle));
        kg_text_free(&middle);
        size = take(two, out, 0, max_size);
    }
    return size;
}
