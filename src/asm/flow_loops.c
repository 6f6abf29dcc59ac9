// Natural loops: the back edges (to a block that dominates their source) to one header form one
// loop. Headers are processed from the innermost outwards. A loop that was found is then treated as
// one node, so every block and edge is visited about once, however deep the nesting.

#include "asm/flow_graph.h"

#include <string.h>

// While loops are found, they are identified by their header's number.
struct finder {
    const struct kg_flow_graph *graph;
    int32_t *outermost; // by number: an outer header, or itself; paths are compressed
    // By number: header of the innermost loop around it, not counting its own; -1.
    int32_t *header;
    int32_t *latches; // by number: back edges that end there
    int32_t *depth;   // by number: of the loop with that header
    int32_t *list;    // nodes to visit
};

static int32_t find_outermost(const struct finder *finder, int32_t number)
{
    int32_t *up = finder->outermost;
    while (up[number] != number) {
        up[number] = up[up[number]];
        number = up[number];
    }
    return number;
}

// Adds the blocks that reach `number` without passing `header`.
static int32_t take_in(struct finder *finder, int32_t header, int32_t number, int32_t listed)
{
    int32_t node = find_outermost(finder, number);
    if (node == header)
        return listed;
    finder->outermost[node] = header;
    finder->header[node] = header;
    finder->list[listed] = node;
    return listed + 1;
}

static void find_body(struct finder *finder, int32_t header)
{
    const struct kg_flow_graph *graph = finder->graph;
    int32_t listed = 0;
    for (int32_t e = graph->before_first[header]; e < graph->before_first[header + 1]; e++)
        if (kg_flow_dominates(graph, header, graph->before[e])) {
            finder->latches[header]++;
            listed = take_in(finder, header, graph->before[e], listed);
        }
    while (listed > 0) {
        int32_t node = finder->list[--listed];
        // The body of an inner loop was visited already: only the predecessors of its header
        // remain.
        for (int32_t e = graph->before_first[node]; e < graph->before_first[node + 1]; e++)
            listed = take_in(finder, header, graph->before[e], listed);
    }
}

static bool is_irreducible(const struct kg_flow_graph *graph)
{
    for (int32_t n = 0; n < graph->count; n++)
        for (int32_t e = graph->before_first[n]; e < graph->before_first[n + 1]; e++) {
            int32_t from = graph->before[e];
            // A back edge in depth-first order to a block that does not dominate its source.
            if (graph->finish[from] <= graph->finish[n] && !kg_flow_dominates(graph, n, from))
                return true;
        }
    return false;
}

// Orders loops by depth, then by header's index: `loop_of` gives the loop of each header's number.
// Uses finder->list to count the loops of each depth.
static int32_t order_loops(struct finder *finder, const struct kg_flow *flow, int32_t *loop_of)
{
    const struct kg_flow_graph *graph = finder->graph;
    int32_t count = 0, *starts = finder->list;
    memset(starts, 0, sizeof *starts * ((size_t)graph->count + 1));
    // Outer loops are processed first: their headers have lower numbers.
    for (int32_t n = 0; n < graph->count; n++)
        if (finder->latches[n] > 0) {
            finder->depth[n] = 1 + (finder->header[n] >= 0 ? finder->depth[finder->header[n]] : 0);
            starts[finder->depth[n]]++;
            count++;
        }
    for (int32_t depth = 1; depth <= graph->count; depth++)
        starts[depth] += starts[depth - 1];
    for (int32_t b = flow->block_count - 1; b >= 0; b--) {
        int32_t n = graph->number[b];
        if (n >= 0 && finder->latches[n] > 0)
            loop_of[n] = --starts[finder->depth[n]];
    }
    return count;
}

static void describe_loops(const struct finder *finder, const int32_t *loop_of,
                           struct kg_flow *flow)
{
    const struct kg_flow_graph *graph = finder->graph;
    for (int32_t n = 0; n < graph->count; n++) {
        int32_t around = finder->header[n] >= 0 ? loop_of[finder->header[n]] : -1;
        flow->blocks[graph->block[n]].loop = finder->latches[n] > 0 ? loop_of[n] : around;
        if (finder->latches[n] > 0)
            flow->loops[loop_of[n]] = (struct kg_flow_loop){
                .header = graph->block[n], .parent = around, .depth = finder->depth[n]};
    }
}

// One array holds the blocks of all loops: each loop's own, then those of the loops inside it. One
// array per loop would be quadratic in the nesting. `room` has two numbers per loop.
static void list_blocks(int32_t *room, int32_t *all, struct kg_flow *flow)
{
    int32_t *own = room, *free_place = room + flow->loop_count, used = 0;
    for (int32_t b = 0; b < flow->block_count; b++)
        if (flow->blocks[b].loop >= 0)
            own[flow->blocks[b].loop]++;
    for (int32_t l = flow->loop_count - 1; l >= 0; l--) {
        flow->loops[l].block_count += own[l];
        if (flow->loops[l].parent >= 0)
            flow->loops[flow->loops[l].parent].block_count += flow->loops[l].block_count;
    }
    for (int32_t l = 0; l < flow->loop_count; l++) {
        struct kg_flow_loop *loop = &flow->loops[l];
        int32_t *from = loop->parent >= 0 ? &free_place[loop->parent] : &used;
        loop->blocks = all + *from;
        free_place[l] = *from + own[l];
        *from += loop->block_count;
        own[l] = 0;
    }
    for (int32_t b = 0; b < flow->block_count; b++) {
        int32_t l = flow->blocks[b].loop;
        if (l >= 0)
            flow->loops[l].blocks[own[l]++] = b;
    }
}

static void list_latches(const struct finder *finder, const int32_t *loop_of, int32_t *all,
                         struct kg_flow *flow)
{
    const struct kg_flow_graph *graph = finder->graph;
    for (int32_t n = 0; n < graph->count; n++) {
        if (finder->latches[n] == 0)
            continue;
        struct kg_flow_loop *loop = &flow->loops[loop_of[n]];
        loop->latches = all;
        for (int32_t e = graph->before_first[n]; e < graph->before_first[n + 1]; e++)
            if (kg_flow_dominates(graph, n, graph->before[e]))
                loop->latches[loop->latch_count++] = graph->block[graph->before[e]];
        all += loop->latch_count;
    }
}

static bool fill_loops(struct finder *finder, struct kg_arena *scratch, struct kg_arena *arena,
                       struct kg_flow *flow)
{
    int32_t *loop_of = KG_NEW_ARRAY(scratch, finder->graph->count, int32_t);
    if (!loop_of)
        return false;
    flow->loop_count = order_loops(finder, flow, loop_of);
    int64_t inside = 0, latches = 0;
    for (int32_t n = 0; n < finder->graph->count; n++) {
        inside += finder->latches[n] > 0 || finder->header[n] >= 0;
        latches += finder->latches[n];
    }
    int32_t *room = KG_NEW_ARRAY(scratch, 2 * (int64_t)flow->loop_count, int32_t);
    int32_t *all_blocks = KG_NEW_ARRAY(arena, inside, int32_t);
    int32_t *all_latches = KG_NEW_ARRAY(arena, latches, int32_t);
    flow->loops = KG_NEW_ARRAY(arena, flow->loop_count, struct kg_flow_loop);
    if (!room || !all_blocks || !all_latches || !flow->loops)
        return false;
    describe_loops(finder, loop_of, flow);
    list_blocks(room, all_blocks, flow);
    list_latches(finder, loop_of, all_latches, flow);
    return true;
}

bool kg_flow_loops(const struct kg_flow_graph *graph, struct kg_arena *scratch,
                   struct kg_arena *arena, struct kg_flow *flow)
{
    struct finder finder = {
        .graph = graph,
        .outermost = KG_NEW_ARRAY(scratch, graph->count, int32_t),
        .header = KG_NEW_ARRAY(scratch, graph->count, int32_t),
        .latches = KG_NEW_ARRAY(scratch, graph->count, int32_t),
        .depth = KG_NEW_ARRAY(scratch, graph->count, int32_t),
        .list = KG_NEW_ARRAY(scratch, (int64_t)graph->count + 1, int32_t),
    };
    if (scratch->failed)
        return false;
    for (int32_t n = 0; n < graph->count; n++) {
        finder.outermost[n] = n;
        finder.header[n] = -1;
    }
    for (int32_t n = graph->count - 1; n >= 0; n--)
        find_body(&finder, n);
    flow->irreducible = is_irreducible(graph);
    return fill_loops(&finder, scratch, arena, flow);
}
