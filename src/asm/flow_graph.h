// The reachable blocks of a kernel in depth-first order, for finding dominators and loops. Only the
// files flow*.c include this. All arrays are in a scratch arena.

#ifndef KG_ASM_FLOW_GRAPH_H
#define KG_ASM_FLOW_GRAPH_H

#include "asm/flow.h"

// A block's "number" is its position in depth-first preorder; the entry has 0.
struct kg_flow_graph {
    int32_t count;         // reached blocks
    int32_t *block;        // by number: index in kg_flow.blocks
    int32_t *number;       // by index; -1: not reached
    int32_t *parent;       // by number: in the depth-first tree
    int32_t *finish;       // by number: position in depth-first postorder
    int32_t *before_first; // by number, count + 1 of them: index of its first predecessor
    int32_t *before;       // predecessors, as numbers
    int32_t *dominator;    // by number: immediate, as a number; the entry's own is -1
    int32_t *tree_first;   // by number: its subtree of the dominator tree has the positions
    int32_t *tree_last;    // from tree_first to tree_last
};

// Each function needs the results of the previous one. False when out of memory.
bool kg_flow_number(const struct kg_flow *flow, struct kg_arena *scratch,
                    struct kg_flow_graph *graph);
bool kg_flow_dominators(struct kg_arena *scratch, struct kg_flow_graph *graph);
bool kg_flow_loops(const struct kg_flow_graph *graph, struct kg_arena *scratch,
                   struct kg_arena *arena, struct kg_flow *flow);

// Does every path to `below` lead through `above`? A block dominates itself.
static inline bool kg_flow_dominates(const struct kg_flow_graph *graph, int32_t above,
                                     int32_t below)
{
    return graph->tree_first[above] <= graph->tree_first[below] &&
           graph->tree_last[below] <= graph->tree_last[above];
}

#endif
