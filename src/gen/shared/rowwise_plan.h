// Reading a group as work on rows: statements that share their rows, in passes over the columns.

#ifndef KG_GEN_ROWWISE_PLAN_H
#define KG_GEN_ROWWISE_PLAN_H

#include "gen/shared/axes.h"
#include "gen/shared/fold.h"

enum kg_rowwise_role {
    KG_ROWWISE_SCALAR, // one value per row, from other such values
    KG_ROWWISE_REDUCE, // one value per row, from all columns
    KG_ROWWISE_COLUMN, // one value per row and column
};

// When the next row is prefetched.
enum kg_rowwise_prefetch {
    KG_ROWWISE_NEVER,
    KG_ROWWISE_SECOND, // in the second pass
    KG_ROWWISE_HALVES, // half of it in the first, half in the second
};

// A row is processed in passes over its columns. Arrays are by position in the group.
struct kg_rowwise_plan {
    const struct kg_group *group;
    const struct kg_nest *shape; // a nest that has row and column axes: the first reduction
    int rows;                    // row axes: 0 .. rows - 1
    int run;                     // first of the column axes that are merged
    int last;                    // last column axis
    int passes;
    enum kg_rowwise_role role[KG_MAX_NESTS];
    // Columns and reductions: the pass in which they are computed. Scalars: the pass before which.
    int pass[KG_MAX_NESTS];
    bool kept[KG_MAX_NESTS]; // private columns that a later pass reads: they may get a row buffer
    int64_t lanes;
    bool keep, stream;
    bool behind; // where rows are whole steps: see rowwise_behind.c
    enum kg_rowwise_prefetch prefetch;
    const char *entry;
};

// Sets rows, columns, roles and passes; the family sets the rest. Returns false, with the reason,
// if the group is not work on rows.
bool kg_rowwise_plan_make(const struct kg_group *group, struct kg_rowwise_plan *plan,
                          struct kg_text *reason);

#endif
