// Expressions of sizes, and what they are worth. Two are taken for equal where they agree on
// numbers drawn from the names of their variables: spellings do not matter.

#ifndef KG_EXPORT_CHECK_STATED_SIZES_H
#define KG_EXPORT_CHECK_STATED_SIZES_H

#include "export/check/stated_shapes.h"

enum kg_size_kind {
    KG_SIZE_NUMBER,
    KG_SIZE_VARIABLE,
    KG_SIZE_ADD,
    KG_SIZE_SUB,
    KG_SIZE_MUL,
    KG_SIZE_DIV, // rounded down
    KG_SIZE_MOD,
    KG_SIZE_CEIL, // of a quotient
    KG_SIZE_MAX,
    KG_SIZE_MIN,
};

struct kg_size_tree {
    enum kg_size_kind kind;
    int64_t number;
    struct kg_size_variable *variable;
    const struct kg_size_tree *left, *right;
};

#define KG_SIZE_TRIALS 4
#define KG_SIZE_STEPS 2000

struct kg_size_variable *kg_size_root(struct kg_size_variable *variable);
// From here on they are one.
void kg_size_join(struct kg_size_variable *one, struct kg_size_variable *other);
// `steps` counts down; below 0 the result means nothing: names that stand for one another in a
// circle, or trees that share their branches without end.
int64_t kg_size_evaluate(const struct kg_size_tree *tree, int trial, int *steps);

#endif
