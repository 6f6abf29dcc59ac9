// Depth-first numbering and immediate dominators, after Lengauer and Tarjan (1979) with path
// compression: O(edges * log blocks) for every graph, while the simpler iterative method is
// quadratic on a long chain with many exits. No function recurses, because a kernel may be a chain
// of a million blocks.

#include "asm/flow_graph.h"

#include <string.h>

static bool find_predecessors(const struct kg_flow *flow, struct kg_arena *scratch,
                              struct kg_flow_graph *graph)
{
    int64_t edges = 0;
    for (int32_t b = 0; b < flow->block_count; b++)
        edges += flow->blocks[b].next_count;
    graph->before_first = KG_NEW_ARRAY(scratch, graph->count + 1, int32_t);
    graph->before = KG_NEW_ARRAY(scratch, edges, int32_t);
    int32_t *fill = KG_NEW_ARRAY(scratch, graph->count + 1, int32_t);
    if (!graph->before_first || !graph->before || !fill)
        return false;
    for (int32_t n = 0; n < graph->count; n++) {
        const struct kg_flow_block *block = &flow->blocks[graph->block[n]];
        for (int32_t e = 0; e < block->next_count; e++)
            graph->before_first[graph->number[block->next[e]] + 1]++;
    }
    for (int32_t n = 0; n < graph->count; n++) {
        graph->before_first[n + 1] += graph->before_first[n];
        fill[n] = graph->before_first[n];
    }
    for (int32_t n = 0; n < graph->count; n++) {
        const struct kg_flow_block *block = &flow->blocks[graph->block[n]];
        for (int32_t e = 0; e < block->next_count; e++)
            graph->before[fill[graph->number[block->next[e]]]++] = n;
    }
    return true;
}

// `edge` counts the successors of each block on the current path that were visited already.
static void walk(const struct kg_flow *flow, int32_t *edge, struct kg_flow_graph *graph)
{
    int32_t finished = 0, at = 0;
    graph->block[0] = 0;
    graph->number[0] = 0;
    graph->parent[0] = -1;
    graph->count = 1;
    while (at >= 0) {
        const struct kg_flow_block *block = &flow->blocks[graph->block[at]];
        if (edge[at] == block->next_count) {
            graph->finish[at] = finished++;
            at = graph->parent[at];
            continue;
        }
        int32_t next = block->next[edge[at]++];
        if (graph->number[next] >= 0)
            continue;
        int32_t number = graph->count++;
        graph->block[number] = next;
        graph->number[next] = number;
        graph->parent[number] = at;
        at = number;
    }
}

bool kg_flow_number(const struct kg_flow *flow, struct kg_arena *scratch,
                    struct kg_flow_graph *graph)
{
    int32_t max = flow->block_count;
    *graph = (struct kg_flow_graph){
        .block = KG_NEW_ARRAY(scratch, max, int32_t),
        .number = KG_NEW_ARRAY(scratch, max, int32_t),
        .parent = KG_NEW_ARRAY(scratch, max, int32_t),
        .finish = KG_NEW_ARRAY(scratch, max, int32_t),
    };
    int32_t *edge = KG_NEW_ARRAY(scratch, max, int32_t);
    if (!edge || !graph->block || !graph->number || !graph->parent || !graph->finish)
        return false;
    for (int32_t b = 0; b < max; b++)
        graph->number[b] = -1;
    walk(flow, edge, graph);
    return find_predecessors(flow, scratch, graph);
}

// The forest of Lengauer and Tarjan: each node has the best (lowest semidominator) label on the
// path to the root of its tree.
struct forest {
    int32_t *ancestor; // -1: a root
    int32_t *label;
    int32_t *semi;
    int32_t *path; // buffer for one path to a root
};

// The label with the lowest semidominator between `node` and its root; compresses the path.
static int32_t best_label(const struct forest *forest, int32_t node)
{
    if (forest->ancestor[node] < 0)
        return forest->label[node];
    int32_t length = 0;
    for (int32_t n = node; forest->ancestor[forest->ancestor[n]] >= 0; n = forest->ancestor[n])
        forest->path[length++] = n;
    while (length > 0) {
        int32_t n = forest->path[--length], up = forest->ancestor[n];
        if (forest->semi[forest->label[up]] < forest->semi[forest->label[n]])
            forest->label[n] = forest->label[up];
        forest->ancestor[n] = forest->ancestor[up];
    }
    return forest->label[node];
}

// Buckets: the nodes of each semidominator, as lists linked by `later`.
static void find_dominators(const struct forest *forest, int32_t *first_of, int32_t *later,
                            struct kg_flow_graph *graph)
{
    int32_t *dominator = graph->dominator;
    for (int32_t n = graph->count - 1; n > 0; n--) {
        for (int32_t e = graph->before_first[n]; e < graph->before_first[n + 1]; e++) {
            int32_t semi = forest->semi[best_label(forest, graph->before[e])];
            if (semi < forest->semi[n])
                forest->semi[n] = semi;
        }
        later[n] = first_of[forest->semi[n]];
        first_of[forest->semi[n]] = n;
        int32_t parent = graph->parent[n];
        forest->ancestor[n] = parent;
        for (int32_t v = first_of[parent]; v >= 0; v = later[v]) {
            int32_t label = best_label(forest, v);
            dominator[v] = forest->semi[label] < forest->semi[v] ? label : parent;
        }
        first_of[parent] = -1;
    }
    dominator[0] = -1;
    for (int32_t n = 1; n < graph->count; n++)
        if (dominator[n] != forest->semi[n])
            dominator[n] = dominator[dominator[n]];
}

// Computes positions in the dominator tree. A dominator has the lower number, so two passes are
// enough: sizes from the leaves up, then positions from the root down.
static void place_in_tree(int32_t *size, int32_t *free_place, struct kg_flow_graph *graph)
{
    for (int32_t n = graph->count - 1; n >= 0; n--) {
        size[n]++;
        if (n > 0)
            size[graph->dominator[n]] += size[n];
    }
    for (int32_t n = 0; n < graph->count; n++) {
        int32_t first = n > 0 ? free_place[graph->dominator[n]] : 0;
        if (n > 0)
            free_place[graph->dominator[n]] += size[n];
        free_place[n] = first + 1;
        graph->tree_first[n] = first;
        graph->tree_last[n] = first + size[n] - 1;
    }
}

bool kg_flow_dominators(struct kg_arena *scratch, struct kg_flow_graph *graph)
{
    int32_t count = graph->count;
    struct forest forest = {
        .ancestor = KG_NEW_ARRAY(scratch, count, int32_t),
        .label = KG_NEW_ARRAY(scratch, count, int32_t),
        .semi = KG_NEW_ARRAY(scratch, count, int32_t),
        .path = KG_NEW_ARRAY(scratch, count, int32_t),
    };
    int32_t *first_of = KG_NEW_ARRAY(scratch, count, int32_t);
    int32_t *later = KG_NEW_ARRAY(scratch, count, int32_t);
    graph->dominator = KG_NEW_ARRAY(scratch, count, int32_t);
    graph->tree_first = KG_NEW_ARRAY(scratch, count, int32_t);
    graph->tree_last = KG_NEW_ARRAY(scratch, count, int32_t);
    if (scratch->failed)
        return false;
    for (int32_t n = 0; n < count; n++) {
        forest.ancestor[n] = first_of[n] = -1;
        forest.label[n] = forest.semi[n] = n;
    }
    find_dominators(&forest, first_of, later, graph);
    memset(first_of, 0, sizeof *first_of * (size_t)count);
    place_in_tree(first_of, later, graph);
    return true;
}
