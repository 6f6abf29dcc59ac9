// Two versions of a file of definitions, compared by what they mean: op by op, and of which kind
// each difference is. Comments, layout, the names of indices and intermediates and the order of
// statements are not part of the meaning.

#ifndef KG_LANG_DIFFERENCE_H
#define KG_LANG_DIFFERENCE_H

#include "lang/lang.h"

enum kg_difference_kind {    // the strongest first
    KG_DIFFERENCE_INTERFACE, // what callers see: names, dtypes, shapes, which params there are
    KG_DIFFERENCE_FORMULA,   // what is computed
    KG_DIFFERENCE_PARAMETER, // the default of a param
    KG_DIFFERENCE_GOAL,      // how results are tested and timed
    KG_DIFFERENCE_TEXT,      // how it is written; it means the same
    KG_DIFFERENCE_COUNT
};

// "interface", "formula" ...
extern const char *const kg_difference_names[KG_DIFFERENCE_COUNT];

struct kg_difference_side {
    struct kg_span span; // in the file
    const char *text;    // an excerpt in the language's syntax, of one short line; NULL: nothing
};

struct kg_difference {
    const char *what; // "dtype of input x"
    struct kg_difference_side before, after;
    struct kg_difference *next;
};

// What became of one op.
struct kg_op_difference {
    const struct kg_op *before, *after;                     // NULL: it was added, removed
    struct kg_difference *differences[KG_DIFFERENCE_COUNT]; // by kind, lists by `next`
};

struct kg_file_difference {
    int op_count; // in the order of the new file, and then those that were removed
    const struct kg_op_difference *ops;
};

// An op that is new and one that is gone, which mean the same but for the name, are one op that was
// renamed, unless there are very many of both. The result is in the arena and refers to both files.
enum kg_status kg_lang_compare(struct kg_arena *arena, const struct kg_file *before,
                               const struct kg_file *after, struct kg_file_difference *difference,
                               struct kg_error *error);

// Whether anything but TEXT differs; true of ops that were added or removed.
bool kg_difference_has_meaning(const struct kg_op_difference *op);

#endif
