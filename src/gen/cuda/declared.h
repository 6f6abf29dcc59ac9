// What a CUDA file says of itself, in comments: how its kernels are launched.
//
//     // Choice:  rowwise*4: threads=64 vector=8 hold=2 keep=1 cluster=1 maxnreg=0
//     // Launch:  scale, ceil(P * D / 256) x 1 x 1 blocks of 256 x 1 x 1 threads
//     //          with x, s, y, P, D
//
// A file with a choice is one that KernelGen wrote, edited or not: launches are worked out for
// every size, as for generated kernels, and its "Launch:" lines are examples. In a file without
// one they are all there is. docs/verification.md has the whole form.

#ifndef KG_GEN_DECLARED_H
#define KG_GEN_DECLARED_H

#include "gen/arguments.h"

#define KG_MOST_DECLARED 16

struct kg_declared_launch {
    int line; // in the file, from 1
    char *function;
    char *shape; // what follows the function's name: read anew for every problem
    int argument_count;
    struct kg_argument *arguments;
    int *widths; // bytes of each argument, by the function's own parameters: 8, or 4 of a size
};

struct kg_declared {
    const struct kg_op *op; // the instance
    char *choice;           // as kg_choice_read takes it; NULL: none
    int count;
    struct kg_declared_launch launches[KG_MOST_DECLARED]; // in order
    char *scratch;                                        // bytes; NULL: none
};

// KG_ERROR_ARGUMENT, with file and line, for what cannot be understood. A file without any such
// line has no launches.
enum kg_status kg_declared_read(const struct kg_op *op, const char *path, const char *text,
                                struct kg_declared *declared, struct kg_error *error);
void kg_declared_free(struct kg_declared *declared);

// The grid of a launch; one without blocks does not run.
enum kg_status kg_declared_grid(const struct kg_declared *declared, int launch,
                                const int64_t *sizes, struct kg_grid *grid, struct kg_error *error);
enum kg_status kg_declared_scratch(const struct kg_declared *declared, const int64_t *sizes,
                                   size_t *bytes, struct kg_error *error);

// Does the function of that name, in this PTX, take these arguments? KG_ERROR_ARGUMENT says what it
// takes instead, or which functions there are. `widths` (may be NULL) receives theirs.
enum kg_status kg_declared_check(const char *ptx, const char *function, const struct kg_op *op,
                                 const struct kg_argument *arguments, int count, int *widths,
                                 struct kg_error *error);

#endif
