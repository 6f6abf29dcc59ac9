// What the bodies of nests cost a core: cycles of arithmetic and loads, by the axis that vectors
// follow, and cycles spent waiting for the caches, by the order of the loops. Estimates, to compare
// ways of doing the same work (host_times.h); constants and their measurement stand in
// host_costs.c.

#ifndef KG_GEN_HOST_COSTS_H
#define KG_GEN_HOST_COSTS_H

#include "gen/shared/split.h"

// Reads that were counted; equal ones cost nothing more.
struct kg_host_seen {
    int count;
    const struct kg_access *accesses[KG_MAX_ACCESSES];
};

// How a body is evaluated.
struct kg_host_loop {
    const struct kg_group *group;
    const struct kg_device_facts *facts;
    const struct kg_nest *nest;
    int vector;    // the axis that neighbouring evaluations follow; -1: none
    bool scalar;   // one element at a time, though along `vector`
    double length; // of a run along `vector`, which what is the same for all of it adds to; 0: long
    bool pieces;   // f16 and bf16 are converted many at a time
    struct kg_split split;     // divisions of the vector axis that cost nothing
    struct kg_host_seen *seen; // by other bodies in the same loop; NULL: there are none
    bool inlines; // private intermediates are computed where they are read; else they are at hand
};

// Cycles for each evaluation of the nest's body, loads that hit the first cache included. What is
// the same along `vector` counts once for `length`; equal reads count once.
double kg_host_body_cycles(const struct kg_host_loop *loop);
// The same of an expression of the nest.
double kg_host_expr_cycles(const struct kg_host_loop *loop, const struct kg_expr *expr);
// Cycles to store an element of the output.
double kg_host_store_cycles(const struct kg_host_loop *loop);

// Is a subscript divided by a size? Compilers leave such a loop scalar.
bool kg_host_divides(const struct kg_nest *nest);

// Are narrow floats read at a stride along the vector axis? No instruction gathers them.
bool kg_host_gathers_narrow(const struct kg_host_loop *loop);

// Elements of the type in a vector register.
double kg_host_lanes(const struct kg_device_facts *facts, enum kg_type type);

// The loops of a nest, outermost first. Extents may be shorter than their axes' where loops are
// blocked; an axis may stand twice, the outer time as blocks.
#define KG_HOST_MAX_LOOPS (2 * KG_MAX_INDICES)
struct kg_host_order {
    int count;
    int axis[KG_HOST_MAX_LOOPS];
    double trips[KG_HOST_MAX_LOOPS];
    double step[KG_HOST_MAX_LOOPS]; // of the axis, from trip to trip
};

void kg_host_order_add(struct kg_host_order *order, int axis, double trips, double step);

// Cycles of one core for the lines that the nest's accesses take from beyond the first cache, over
// all loops. Values private to the group and not in memory count nothing; nor does, with `seen`,
// what was.
double kg_host_wait_cycles(const struct kg_host_loop *loop, const struct kg_host_order *order);

#endif
