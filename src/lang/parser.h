// Shared by the two halves of the parser: ops and clauses (parser.c), expressions
// (parse_expression.c).

#ifndef KG_LANG_PARSER_H
#define KG_LANG_PARSER_H

#include "lang/foreign_words.h"
#include "lang/syntax.h"

struct kg_parser {
    struct kg_lang_job *job;
    const struct kg_token *at; // the next token; the array ends with KG_TOKEN_END
    int depth;                 // of nested expressions
    int nodes;                 // made for the current op or function
    bool in_function;          // in the body of one: no reads and no reductions
};

// Steps over the next token and returns it.
const struct kg_token *kg_parser_next(struct kg_parser *parser);
// Steps over the next token if it is of `kind`; NULL when it is not.
const struct kg_token *kg_parser_accept(struct kg_parser *parser, enum kg_token_kind kind);
// The same for a word.
const struct kg_token *kg_parser_accept_word(struct kg_parser *parser, const char *word);
// Steps over a token that must be there. `expected` is what the message says; NULL: the kind.
const struct kg_token *kg_parser_expect(struct kg_parser *parser, enum kg_token_kind kind,
                                        const char *expected);
bool kg_parser_is_word(const struct kg_token *token, const char *word);
// `unexpected X` at the next token, with `advice` below.
_Noreturn void kg_parser_fail(struct kg_parser *parser, const char *advice);
// Fails if the next token is a word or a sign that other languages have in such a place.
void kg_parser_refuse_foreign(struct kg_parser *parser, enum kg_foreign_place place);

struct kg_node *kg_parser_expression(struct kg_parser *parser);
// A size expression: no comparison, so that `..` and relations end it.
struct kg_node *kg_parser_size(struct kg_parser *parser);
// `k`, `r in 0..R`, and with `relations` also `j <= d`.
struct kg_binder *kg_parser_binder(struct kg_parser *parser, bool relations);

#endif
