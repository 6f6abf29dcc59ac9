// Plain loops for a nest: over its outputs, with the reduction inside.

#ifndef KG_GEN_DIRECT_NEST_H
#define KG_GEN_DIRECT_NEST_H

#include "gen/shared/emit.h"

// A read through a window that moves along a row, whose elements lie in a buffer in its stead:
// src/gen/host/window.c.
struct kg_window {
    const struct kg_nest *nest;
    const struct kg_access *access;
    int64_t stride;   // of the window from output to output, in elements of the row
    int64_t dilation; // from place to place in the window
};

struct kg_direct {
    struct kg_text *text;
    const struct kg_group *group;
    const struct kg_nest *nest;
    const char *entry;
    struct kg_emit_names names;
    int64_t block;
    int64_t lanes;
    int scanned;             // output axis along which the reduction is incremental; -1: none
    int inner;               // axis that is divided into blocks; -1: none
    enum kg_type accumulate; // type of the accumulator
    const char *integer;     // that indices of reductions have; NULL: int64_t
    const struct kg_window *window; // NULL: all reads go to memory
    // Writes what fills the buffer of the window, and the read of it.
    void (*fill)(struct kg_direct *direct);
    bool (*read)(void *user, struct kg_text *text, const struct kg_access *access);
    int level; // of indentation
};

// Whether the relation of the first reduced axis adds elements from the last one down.
bool kg_direct_is_backward(const struct kg_nest *nest);
// Whether adjacent elements share a byte.
bool kg_direct_is_packed(const struct kg_tensor *tensor);
// Whether an output axis bounds some reduced axis.
bool kg_direct_has_relation(const struct kg_nest *nest);

// The axis along which the reduction can be continued from one output element to the next, or -1.
int kg_direct_scanned_axis(const struct kg_nest *nest);

// Whether a sum, or mean, adds so few f32 values, for all sizes, that it may be one in f32.
bool kg_direct_sums_few(const struct kg_nest *nest);

// Sets `names` and `accumulate`. The other functions write the statements that compute and store
// one output element at the current axes, or all elements along the scanned axis.
void kg_direct_complete(struct kg_direct *direct);
void kg_direct_emit_element(struct kg_direct *direct);
void kg_direct_emit_scan(struct kg_direct *direct);
// The same for `lanes` adjacent elements at once.
void kg_direct_emit_lanes(struct kg_direct *direct);
// Closes `count` loops.
void kg_direct_close_loops(struct kg_direct *direct, int count);

#endif
