// The reached blocks of a kernel, numbered depth first: what dominators and loops are found on.
// Only the files flow*.c include this. All arrays live in a scratch arena.

#ifndef KG_ASM_FLOW_GRAPH_H
#define KG_ASM_FLOW_GRAPH_H

#include "asm/flow.h"

// "Number" is a block's place in depth-first preorder, 0 being the entry.
struct kg_flow_graph {
    int32_t count;         // reached blocks
    int32_t *block;        // by number: index in kg_flow.blocks
    int32_t *number;       // by index; -1: not reached
    int32_t *parent;       // by number: in the depth-first tree
    int32_t *finish;       // by number: place in depth-first postorder
    int32_t *before_first; // by number, count + 1 of them: where its predecessors begin
    int32_t *before;       // predecessors, as numbers
    int32_t *dominator;    // by number: immediate, as a number; the entry's own is -1
    int32_t *tree_first;   // by number: its subtree of the dominator tree takes the places
    int32_t *tree_last;    // from tree_first to tree_last
};

// Each needs what the one before it has filled. False when out of memory.
bool kg_flow_number(const struct kg_flow *flow, struct kg_arena *scratch,
                    struct kg_flow_graph *graph);
bool kg_flow_dominators(struct kg_arena *scratch, struct kg_flow_graph *graph);
bool kg_flow_loops(const struct kg_flow_graph *graph, struct kg_arena *scratch,
                   struct kg_arena *arena, struct kg_flow *flow);

// Whether every way to `below` leads through `above`; a block dominates itself.
static inline bool kg_flow_dominates(const struct kg_flow_graph *graph, int32_t above,
                                     int32_t below)
{
    return graph->tree_first[above] <= graph->tree_first[below] &&
           graph->tree_last[below] <= graph->tree_last[above];
}

#endif
