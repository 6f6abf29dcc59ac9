// Control flow: divides the instructions into basic blocks, links them, and calls the search for
// dominators and loops (flow_dominators.c, flow_loops.c).

#include "asm/flow.h"

#include "asm/flow_graph.h"

static struct kg_step step_at(const struct kg_flow_code *code, int32_t index)
{
    return code->step(code->of, index);
}

static bool goes_on(const struct kg_step *step)
{
    return step->kind == KG_STEP_NEXT || step->kind == KG_STEP_BRANCH ||
           step->kind == KG_STEP_MAYBE_MANY || step->kind == KG_STEP_MAYBE_END;
}

static int32_t target_count(const struct kg_step *step)
{
    bool many = step->kind == KG_STEP_MANY || step->kind == KG_STEP_MAYBE_MANY;
    return many ? step->target_count : 0;
}

static bool has_target(const struct kg_step *step)
{
    return step->kind == KG_STEP_JUMP || step->kind == KG_STEP_BRANCH;
}

// `block_of` is first 1 for the first instruction of a block, then the index of each instruction's
// block.
static int32_t find_blocks(const struct kg_flow_code *code, int32_t *block_of)
{
    for (int32_t i = 0; i < code->count; i++) {
        struct kg_step step = step_at(code, i);
        if (step.kind == KG_STEP_NEXT)
            continue;
        if (has_target(&step))
            block_of[step.target] = 1;
        for (int32_t t = 0; t < target_count(&step); t++)
            block_of[step.targets[t]] = 1;
        if (i + 1 < code->count)
            block_of[i + 1] = 1;
    }
    int32_t blocks = 0;
    for (int32_t i = 0; i < code->count; i++) {
        if (i == 0 || block_of[i] == 1)
            blocks++;
        block_of[i] = blocks - 1;
    }
    return blocks;
}

static void fill_blocks(const int32_t *block_of, int32_t count, struct kg_flow *flow)
{
    for (int32_t b = 0; b < flow->block_count; b++)
        flow->blocks[b] = (struct kg_flow_block){.dominator = -1, .loop = -1};
    for (int32_t i = 0; i < count; i++) {
        struct kg_flow_block *block = &flow->blocks[block_of[i]];
        if (block->count++ == 0)
            block->first = i;
    }
}

static struct kg_step last_step(const struct kg_flow_code *code, const struct kg_flow_block *block)
{
    return step_at(code, block->first + block->count - 1);
}

// Appends the successors of block `b` to `next`, each once; `seen` has, for every block, the last
// block that has it as a successor, counted from 1.
static int32_t list_ways(const struct kg_flow_code *code, const int32_t *block_of, int32_t *seen,
                         const struct kg_flow *flow, int32_t b, int32_t *next)
{
    struct kg_step step = last_step(code, &flow->blocks[b]);
    int32_t count = 0;
    if (goes_on(&step) && b + 1 < flow->block_count) {
        seen[b + 1] = b + 1;
        next[count++] = b + 1;
    }
    const int32_t *targets = has_target(&step) ? &step.target : step.targets;
    int32_t max = has_target(&step) ? 1 : target_count(&step);
    for (int32_t t = 0; t < max; t++) {
        int32_t target = block_of[targets[t]];
        if (seen[target] == b + 1)
            continue;
        seen[target] = b + 1;
        next[count++] = target;
    }
    return count;
}

static int64_t max_ways(const struct kg_step *step)
{
    return goes_on(step) + has_target(step) + target_count(step);
}

static bool link_blocks(const struct kg_flow_code *code, const int32_t *block_of,
                        struct kg_arena *scratch, struct kg_arena *arena, struct kg_flow *flow)
{
    int64_t ways = 0;
    for (int32_t b = 0; b < flow->block_count; b++) {
        struct kg_step step = last_step(code, &flow->blocks[b]);
        ways += max_ways(&step);
    }
    int32_t *next = KG_NEW_ARRAY(arena, ways, int32_t);
    int32_t *seen = KG_NEW_ARRAY(scratch, flow->block_count, int32_t);
    if (!next || !seen || ways > INT32_MAX)
        return false;
    for (int32_t b = 0; b < flow->block_count; b++) {
        struct kg_flow_block *block = &flow->blocks[b];
        block->next = next;
        block->next_count = list_ways(code, block_of, seen, flow, b, next);
        next += block->next_count;
    }
    return true;
}

static void note_dominators(const struct kg_flow_graph *graph, struct kg_flow *flow)
{
    for (int32_t n = 0; n < graph->count; n++) {
        struct kg_flow_block *block = &flow->blocks[graph->block[n]];
        block->reached = true;
        block->dominator = n > 0 ? graph->block[graph->dominator[n]] : -1;
    }
}

static bool may_end(const struct kg_step *step, bool is_last)
{
    return step->kind == KG_STEP_END || step->kind == KG_STEP_MAYBE_END ||
           (is_last && goes_on(step));
}

// The first and the last position in the dominator tree of a set of blocks: a block that dominates
// both dominates all of them.
struct stretch {
    int32_t first, last;
};

static void widen(struct stretch *stretch, const struct kg_flow_graph *graph, int32_t number)
{
    int32_t place = graph->tree_first[number];
    if (place < stretch->first)
        stretch->first = place;
    if (place > stretch->last)
        stretch->last = place;
}

// The ranges of each loop's latches, followed by the range of all exits.
static void find_stretches(const struct kg_flow_code *code, const struct kg_flow_graph *graph,
                           const struct kg_flow *flow, struct stretch *stretches)
{
    for (int32_t l = 0; l <= flow->loop_count; l++)
        stretches[l] = (struct stretch){INT32_MAX, -1};
    for (int32_t l = 0; l < flow->loop_count; l++)
        for (int32_t i = 0; i < flow->loops[l].latch_count; i++)
            widen(&stretches[l], graph, graph->number[flow->loops[l].latches[i]]);
    for (int32_t n = 0; n < graph->count; n++) {
        int32_t b = graph->block[n];
        struct kg_step step = last_step(code, &flow->blocks[b]);
        if (may_end(&step, b + 1 == flow->block_count))
            widen(&stretches[flow->loop_count], graph, n);
    }
}

static bool passes_by(const struct stretch *all, const struct kg_flow_graph *graph, int32_t number)
{
    return all->first < graph->tree_first[number] || all->last > graph->tree_last[number];
}

static bool note_conditional(const struct kg_flow_code *code, const struct kg_flow_graph *graph,
                             struct kg_arena *scratch, struct kg_flow *flow)
{
    struct stretch *stretches =
        KG_NEW_ARRAY(scratch, (int64_t)flow->loop_count + 1, struct stretch);
    if (!stretches)
        return false;
    find_stretches(code, graph, flow, stretches);
    for (int32_t n = 0; n < graph->count; n++) {
        struct kg_flow_block *block = &flow->blocks[graph->block[n]];
        const struct stretch *all = &stretches[block->loop >= 0 ? block->loop : flow->loop_count];
        block->conditional = passes_by(all, graph, n);
    }
    for (int32_t l = 0; l < flow->loop_count; l++) {
        struct kg_flow_loop *loop = &flow->loops[l];
        const struct stretch *all = &stretches[loop->parent >= 0 ? loop->parent : flow->loop_count];
        loop->conditional = passes_by(all, graph, graph->number[loop->header]);
    }
    return true;
}

static bool find(const struct kg_flow_code *code, struct kg_arena *scratch, struct kg_arena *arena,
                 struct kg_flow *flow)
{
    int32_t *block_of = KG_NEW_ARRAY(scratch, code->count, int32_t);
    if (!block_of)
        return false;
    flow->block_count = find_blocks(code, block_of);
    flow->blocks = KG_NEW_ARRAY(arena, flow->block_count, struct kg_flow_block);
    if (!flow->blocks)
        return false;
    fill_blocks(block_of, code->count, flow);
    struct kg_flow_graph graph;
    if (!link_blocks(code, block_of, scratch, arena, flow) ||
        !kg_flow_number(flow, scratch, &graph) || !kg_flow_dominators(scratch, &graph))
        return false;
    note_dominators(&graph, flow);
    return kg_flow_loops(&graph, scratch, arena, flow) &&
           note_conditional(code, &graph, scratch, flow);
}

static struct kg_step listed_step(const void *steps, int32_t index)
{
    return ((const struct kg_step *)steps)[index];
}

bool kg_flow_find_in(const struct kg_flow_code *code, struct kg_arena *arena, struct kg_flow *flow)
{
    *flow = (struct kg_flow){0};
    if (code->count == 0)
        return true;
    struct kg_arena scratch = {0};
    bool found = find(code, &scratch, arena, flow);
    kg_arena_free(&scratch);
    if (!found)
        *flow = (struct kg_flow){0};
    return found;
}

bool kg_flow_find(const struct kg_step *steps, int32_t count, struct kg_arena *arena,
                  struct kg_flow *flow)
{
    const struct kg_flow_code code = {listed_step, steps, count};
    return kg_flow_find_in(&code, arena, flow);
}
