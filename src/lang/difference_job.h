// What the files of the comparison share; difference.h is for the others.

#ifndef KG_LANG_DIFFERENCE_JOB_H
#define KG_LANG_DIFFERENCE_JOB_H

#include "lang/diagnostics.h"
#include "lang/difference.h"

// Two ops, and which name of the new one stands for a name of the old one.
struct kg_comparison {
    struct kg_lang_job *job;
    const struct kg_op *before, *after;
    struct kg_op_difference *result;
    struct kg_difference **ends[KG_DIFFERENCE_COUNT]; // of the lists
    // By ids of the old op; NULL: gone.
    const struct kg_tensor *tensors[KG_MAX_TENSORS];
    const struct kg_size *sizes[KG_MAX_SIZES];
    const struct kg_typevar *typevars[KG_DTYPE_COUNT];
};

// Adds a difference. `format` and what follows say what differs. The texts are cut to excerpts of
// one line, which begin where the two become different if they are long; NULL: nothing is there.
void kg_difference_add(struct kg_comparison *comparison, enum kg_difference_kind kind,
                       struct kg_difference_side before, struct kg_difference_side after,
                       const char *format, ...) __attribute__((format(printf, 5, 6)));
// The finished text in the arena, which is freed.
const char *kg_difference_keep(struct kg_comparison *comparison, struct kg_text *text);
const char *kg_difference_print(struct kg_comparison *comparison, const struct kg_expr *expr);

// Size expressions: dimensions, ranges.
bool kg_difference_same_size(const struct kg_comparison *comparison, const struct kg_expr *before,
                             const struct kg_expr *after);
bool kg_difference_same_type(const struct kg_comparison *comparison,
                             const struct kg_type_name *before, const struct kg_type_name *after);

// difference_signature.c: names of both signatures are matched, and compared.
void kg_difference_match_names(struct kg_comparison *comparison);
void kg_difference_of_signatures(struct kg_comparison *comparison);
// difference_body.c, difference_goal.c: names are matched.
void kg_difference_of_bodies(struct kg_comparison *comparison);
void kg_difference_of_goals(struct kg_comparison *comparison);

#endif
