// What the parser makes and the checker reads: the text's structure, names not yet looked up.

#ifndef KG_LANG_SYNTAX_H
#define KG_LANG_SYNTAX_H

#include "lang/lexer.h"

#define KG_MAX_OPS 4096      // of one file
#define KG_MAX_NODES 8192    // of all expressions of one op
#define KG_MAX_ROWS 1024     // of one verify or tune entry
#define KG_MAX_FUNCTIONS 256 // of one file
#define KG_MAX_PARAMETERS 16

enum kg_node_kind {
    KG_NODE_NUMBER,
    KG_NODE_NAME,   // a size, a param, an index, a constant, a dtype in cast()
    KG_NODE_READ,   // name[arguments]
    KG_NODE_CALL,   // name(arguments)
    KG_NODE_UNARY,  // function: NEG or NOT
    KG_NODE_BINARY, // function: an infix operator
    KG_NODE_REDUCE, // reduce over binders of one argument
};

// An index on the left of a statement or in a reduction: `k`, `r in 0..R`, `j <= d`.
struct kg_binder {
    const struct kg_token *name;
    const struct kg_node *begin; // both or neither
    const struct kg_node *end;
    enum kg_relation relation;
    const struct kg_node *bound;
    struct kg_binder *next;
};

struct kg_node {
    enum kg_node_kind kind;
    struct kg_span span;
    const struct kg_token *token; // the number or the name
    enum kg_function function;
    enum kg_reduce reduce;
    struct kg_binder *binders; // by `next`
    int depth;                 // 1 for a leaf
    int argument_count;
    struct kg_node *arguments; // the first; the others follow by `next`
    struct kg_node *next;
};

struct kg_syntax_tensor {
    const struct kg_token *name;
    const struct kg_token *packed; // the word; NULL: not written
    const struct kg_token *type;
    bool is_output;
    int rank;
    struct kg_node *dims; // by `next`
    struct kg_syntax_tensor *next;
};

// `T in f16 bf16 f32`
struct kg_syntax_typevar {
    const struct kg_token *name;
    int count;
    const struct kg_token *allowed[KG_DTYPE_COUNT];
    struct kg_syntax_typevar *next;
};

// `G = 128`
struct kg_syntax_param {
    const struct kg_token *name;
    const struct kg_token *value;
    bool is_negative;
    struct kg_syntax_param *next;
};

struct kg_syntax_statement {
    const struct kg_token *name;
    struct kg_span span;       // of the left side
    struct kg_binder *indices; // by `next`
    struct kg_node *value;
    struct kg_syntax_statement *next;
};

// `P D = 1 1, 7 513`
struct kg_syntax_shapes {
    const struct kg_token *keyword; // NULL: not written
    int size_count;
    const struct kg_token *sizes[KG_MAX_SIZES];
    int row_count;
    const struct kg_token **values; // row_count * size_count
};

// One end of a range: a number or `inf`.
struct kg_syntax_end {
    const struct kg_token *token;
    bool is_negative;
};

// `x in 0..1`
struct kg_syntax_range {
    const struct kg_token *name;
    struct kg_syntax_end low;
    struct kg_syntax_end high;
    struct kg_span span; // from end to end
    struct kg_syntax_range *next;
};

struct kg_syntax_goal {
    const struct kg_token *keyword; // NULL: no goal was written
    const struct kg_token *baseline_kind;
    const struct kg_token *baseline;
    const struct kg_token *speedup;
    const struct kg_token *rounds;
    const struct kg_token *tolerances; // the keyword
    const struct kg_token *tolerance[KG_DTYPE_COUNT][2];
    struct kg_syntax_shapes verify;
    struct kg_syntax_shapes tune;
    struct kg_syntax_range *ranges; // by `next`
};

struct kg_syntax_op {
    const struct kg_token *keyword;
    const struct kg_token *name;
    size_t end;                       // offset behind its last token
    struct kg_syntax_tensor *tensors; // inputs, then outputs
    struct kg_syntax_typevar *typevars;
    struct kg_syntax_param *params;
    struct kg_syntax_statement *statements;
    struct kg_syntax_goal goal;
    struct kg_syntax_op *next;
};

// `fn mish(x) = x * tanh(softplus(x))`
struct kg_syntax_function {
    const struct kg_token *keyword;
    const struct kg_token *name;
    size_t end; // offset behind its last token
    int parameter_count;
    const struct kg_token *parameters[KG_MAX_PARAMETERS];
    const struct kg_node *body;
    bool is_checked;                 // it may be called from here on
    const struct kg_syntax_op *user; // the last op that was found to call it; NULL: none
    struct kg_syntax_function *next;
};

struct kg_syntax_file {
    struct kg_syntax_op *ops;
    struct kg_syntax_function *functions;
};

// Parses all of job->source.
struct kg_syntax_file *kg_lang_parse_syntax(struct kg_lang_job *job);

#endif
