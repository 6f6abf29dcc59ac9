// The simplest score of assembly: points for each instruction of a kind, counted once however often
// it runs. It is the baseline for the model; higher is better.

#ifndef KG_ASM_POINTS_H
#define KG_ASM_POINTS_H

#include "asm/facts.h"

// For instructions named `name` and those that begin with it and a dot. If several rules fit, the
// one with the longest name counts.
struct kg_points_rule {
    const char *name;
    double points;
};

struct kg_points {
    const struct kg_points_rule *rules;
    int count;
};

// Matrix instructions +10, asynchronous copies +2, barriers -30, branches and returns -5, with
// their names in PTX and in SASS.
extern const struct kg_points kg_points_baseline;

double kg_points_of(const struct kg_asm_kernel *kernel, const struct kg_points *points);

// "mma=10,bar.sync=-30": rules of the user instead of the baseline's. A rule without a number, or
// two rules of one name, give KG_ERROR_ARGUMENT.
enum kg_status kg_points_parse(const char *text, struct kg_arena *arena, struct kg_points *points,
                               struct kg_error *error);

#endif
