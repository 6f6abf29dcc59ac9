// Control flow: small graphs drawn by hand, random ones against definitions applied word for word
// to single instructions, and large ones that must neither recurse nor crawl.

#include "asm/flow.h"
#include "test.h"

#include <stdlib.h>

#define NEXT                                                                                       \
    {                                                                                              \
        KG_STEP_NEXT, 0, NULL, 0                                                                   \
    }
#define JUMP(to)                                                                                   \
    {                                                                                              \
        KG_STEP_JUMP, to, NULL, 0                                                                  \
    }
#define BRANCH(to)                                                                                 \
    {                                                                                              \
        KG_STEP_BRANCH, to, NULL, 0                                                                \
    }
#define MANY(list)                                                                                 \
    {                                                                                              \
        KG_STEP_MANY, 0, list, sizeof(list) / sizeof(list)[0]                                      \
    }
#define END                                                                                        \
    {                                                                                              \
        KG_STEP_END, 0, NULL, 0                                                                    \
    }
#define MAYBE_END                                                                                  \
    {                                                                                              \
        KG_STEP_MAYBE_END, 0, NULL, 0                                                              \
    }
#define FIND(steps) find(steps, sizeof(steps) / sizeof(steps)[0])

static struct kg_arena arena;
static struct kg_flow flow;

static void find(const struct kg_step *steps, size_t count)
{
    kg_arena_free(&arena);
    CHECK(kg_flow_find(steps, (int32_t)count, &arena, &flow));
}

static void test_empty_and_straight(void)
{
    CHECK(kg_flow_find(NULL, 0, &arena, &flow) && flow.block_count == 0 && flow.loop_count == 0);
    static const struct kg_step steps[] = {NEXT, NEXT, END};
    FIND(steps);
    CHECK(flow.block_count == 1 && flow.loop_count == 0 && !flow.irreducible);
    CHECK(flow.blocks[0].first == 0 && flow.blocks[0].count == 3 && flow.blocks[0].reached);
    CHECK(flow.blocks[0].dominator == -1 && !flow.blocks[0].conditional);
}

// The guard of most kernels: all behind it runs under a condition.
static void test_guard(void)
{
    static const struct kg_step steps[] = {NEXT, MAYBE_END, NEXT, END};
    FIND(steps);
    CHECK(flow.block_count == 2 && flow.blocks[0].next_count == 1);
    CHECK(!flow.blocks[0].conditional && flow.blocks[1].conditional);
}

static void test_diamond(void)
{
    static const struct kg_step steps[] = {BRANCH(2), JUMP(3), NEXT, END};
    FIND(steps);
    CHECK(flow.block_count == 4);
    CHECK(flow.blocks[3].dominator == 0 && !flow.blocks[3].conditional);
    CHECK(flow.blocks[1].conditional && flow.blocks[2].conditional);
}

static void test_nested_loops(void)
{
    static const struct kg_step steps[] = {NEXT, NEXT, NEXT, BRANCH(2), BRANCH(1), END};
    FIND(steps);
    CHECK(flow.block_count == 5 && flow.loop_count == 2);
    const struct kg_flow_loop *outer = &flow.loops[0], *inner = &flow.loops[1];
    CHECK(outer->header == 1 && outer->depth == 1 && outer->parent == -1);
    CHECK(inner->header == 2 && inner->depth == 2 && inner->parent == 0);
    CHECK(outer->block_count == 3 && inner->block_count == 1 && inner->blocks[0] == 2);
    CHECK(outer->blocks[0] == 1 && outer->blocks[1] == 3 && outer->blocks[2] == 2);
    CHECK(flow.blocks[2].loop == 1 && flow.blocks[3].loop == 0 && flow.blocks[4].loop == -1);
}

static void test_two_latches(void)
{
    // One header, left over either of two ways: one loop.
    static const struct kg_step steps[] = {NEXT, BRANCH(4), BRANCH(1), END, BRANCH(1), END};
    FIND(steps);
    CHECK(flow.loop_count == 1 && flow.loops[0].latch_count == 2);
    CHECK(flow.loops[0].header == 1 && flow.loops[0].block_count == 3);
    CHECK(!flow.blocks[1].conditional && flow.blocks[2].conditional && flow.blocks[4].conditional);
}

static void test_unreachable_and_self(void)
{
    static const struct kg_step steps[] = {JUMP(3), NEXT, JUMP(1), BRANCH(3), END};
    FIND(steps);
    CHECK(flow.loop_count == 1 && flow.loops[0].header == 2 && flow.loops[0].block_count == 1);
    CHECK(!flow.blocks[1].reached && flow.blocks[1].dominator == -1 && flow.blocks[1].loop == -1);
}

static void test_irreducible(void)
{
    static const struct kg_step steps[] = {BRANCH(2), NEXT, BRANCH(1), END};
    FIND(steps);
    CHECK(flow.irreducible && flow.loop_count == 0);
}

static void test_indexed(void)
{
    static const int32_t targets[] = {1, 3, 3, 1};
    static const struct kg_step steps[] = {MANY(targets), NEXT, JUMP(4), JUMP(0), END};
    FIND(steps);
    CHECK(flow.block_count == 4 && flow.blocks[0].next_count == 2);
    CHECK(flow.loop_count == 1 && flow.loops[0].block_count == 2);
}

// What the flow must be, by the definitions: `reach[skip][i]` says whether instruction i is reached
// from the entry without passing `skip` (MOST: with nothing skipped).
#define MOST 28
struct oracle {
    const struct kg_step *steps;
    int32_t count;
    bool edge[MOST][MOST];
    bool reach[MOST + 1][MOST];
};

static void mark(struct oracle *oracle, int skip, int32_t i)
{
    if (i == skip || oracle->reach[skip][i])
        return;
    oracle->reach[skip][i] = true;
    for (int32_t to = 0; to < oracle->count; to++)
        if (oracle->edge[i][to])
            mark(oracle, skip, to);
}

static void define(struct oracle *oracle, const struct kg_step *steps, int32_t count)
{
    memset(oracle, 0, sizeof *oracle);
    oracle->steps = steps;
    oracle->count = count;
    for (int32_t i = 0; i < count; i++) {
        enum kg_step_kind kind = steps[i].kind;
        if (kind != KG_STEP_JUMP && kind != KG_STEP_MANY && kind != KG_STEP_END && i + 1 < count)
            oracle->edge[i][i + 1] = true;
        if (kind == KG_STEP_JUMP || kind == KG_STEP_BRANCH)
            oracle->edge[i][steps[i].target] = true;
        for (int32_t t = 0; kind == KG_STEP_MANY && t < steps[i].target_count; t++)
            oracle->edge[i][steps[i].targets[t]] = true;
    }
    for (int skip = 0; skip <= MOST; skip++)
        mark(oracle, skip, 0);
}

static bool dominates(const struct oracle *oracle, int32_t a, int32_t b)
{
    return oracle->reach[MOST][a] && oracle->reach[MOST][b] && !oracle->reach[a][b];
}

// Fills in the natural loop of `header`; false when it has none.
static bool natural_loop(const struct oracle *oracle, int32_t header, bool body[MOST])
{
    bool found = false;
    memset(body, 0, MOST * sizeof *body);
    for (int32_t i = 0; i < oracle->count; i++)
        if (oracle->edge[i][header] && dominates(oracle, header, i))
            found = body[i] = true;
    body[header] = true;
    for (bool more = true; more;) {
        more = false;
        for (int32_t i = 0; i < oracle->count; i++)
            for (int32_t to = 0; to < oracle->count; to++)
                if (!body[i] && oracle->reach[MOST][i] && oracle->edge[i][to] && body[to] &&
                    to != header)
                    more = body[i] = true;
    }
    return found;
}

static int32_t last_of(const struct kg_flow_block *block)
{
    return block->first + block->count - 1;
}

static void compare_dominators(const struct oracle *oracle)
{
    for (int32_t b = 0; b < flow.block_count; b++) {
        const struct kg_flow_block *block = &flow.blocks[b];
        CHECK(block->reached == oracle->reach[MOST][block->first]);
        CHECK((block->dominator >= 0) == (block->reached && b > 0));
        if (block->dominator < 0)
            continue;
        int32_t immediate = flow.blocks[block->dominator].first;
        CHECK(dominates(oracle, immediate, block->first));
        for (int32_t i = 0; i < oracle->count; i++)
            if (dominates(oracle, i, block->first) && i != block->first)
                CHECK(dominates(oracle, i, last_of(&flow.blocks[block->dominator])));
    }
}

static bool loop_holds(const struct kg_flow_loop *loop, int32_t instruction)
{
    for (int32_t i = 0; i < loop->block_count; i++) {
        const struct kg_flow_block *block = &flow.blocks[loop->blocks[i]];
        if (block->first <= instruction && instruction <= last_of(block))
            return true;
    }
    return false;
}

static void compare_loops(const struct oracle *oracle)
{
    int32_t found = 0, depth[MOST] = {0};
    bool body[MOST];
    for (int32_t header = 0; header < oracle->count; header++) {
        if (!natural_loop(oracle, header, body))
            continue;
        found++;
        const struct kg_flow_loop *loop = NULL;
        for (int32_t l = 0; l < flow.loop_count; l++)
            if (flow.blocks[flow.loops[l].header].first == header)
                loop = &flow.loops[l];
        CHECK(loop != NULL);
        for (int32_t i = 0; loop && i < oracle->count; i++) {
            CHECK(loop_holds(loop, i) == body[i]);
            depth[i] += body[i];
        }
    }
    CHECK(flow.loop_count == found);
    for (int32_t b = 0; b < flow.block_count; b++) {
        int32_t l = flow.blocks[b].loop;
        CHECK((l >= 0 ? flow.loops[l].depth : 0) == depth[flow.blocks[b].first]);
    }
    for (int32_t l = 0; l < flow.loop_count; l++) {
        int32_t parent = flow.loops[l].parent;
        CHECK(parent < l &&
              flow.loops[l].depth == (parent >= 0 ? flow.loops[parent].depth + 1 : 1));
        CHECK(l == 0 || flow.loops[l - 1].depth < flow.loops[l].depth ||
              flow.loops[l - 1].header < flow.loops[l].header);
        CHECK(parent < 0 ||
              loop_holds(&flow.loops[parent], flow.blocks[flow.loops[l].header].first));
    }
}

static void compare_conditional(const struct oracle *oracle)
{
    for (int32_t b = 0; b < flow.block_count; b++) {
        const struct kg_flow_block *block = &flow.blocks[b];
        if (!block->reached)
            continue;
        int32_t header = block->loop >= 0 ? flow.blocks[flow.loops[block->loop].header].first : -1;
        bool always = true;
        for (int32_t i = 0; i < oracle->count; i++) {
            bool falls_off = i + 1 == oracle->count && oracle->steps[i].kind != KG_STEP_JUMP &&
                             oracle->steps[i].kind != KG_STEP_MANY;
            bool ends = falls_off || oracle->steps[i].kind == KG_STEP_END ||
                        oracle->steps[i].kind == KG_STEP_MAYBE_END;
            bool is_latch = header >= 0 && oracle->edge[i][header] && dominates(oracle, header, i);
            if (oracle->reach[MOST][i] && (header >= 0 ? is_latch : ends))
                always = always && dominates(oracle, block->first, i);
        }
        CHECK(block->conditional == !always);
    }
}

// Reducible: without the back edges nothing goes round.
static bool goes_round(const struct oracle *oracle)
{
    bool left[MOST];
    memcpy(left, oracle->reach[MOST], sizeof left);
    for (bool more = true; more;) {
        more = false;
        for (int32_t i = 0; i < oracle->count; i++) {
            bool entered = false;
            for (int32_t from = 0; from < oracle->count; from++)
                entered =
                    entered || (left[from] && oracle->edge[from][i] && !dominates(oracle, i, from));
            if (left[i] && !entered) {
                left[i] = false;
                more = true;
            }
        }
    }
    for (int32_t i = 0; i < oracle->count; i++)
        if (left[i])
            return true;
    return false;
}

static unsigned random_below(unsigned limit)
{
    static unsigned state = 12345;
    state = state * 1664525 + 1013904223;
    return (state >> 16) % limit;
}

static void test_random(void)
{
    static struct oracle oracle;
    int irreducible = 0, nested = 0;
    for (int round = 0; round < 3000; round++) {
        struct kg_step steps[MOST];
        int32_t targets[4], count = 1 + (int32_t)random_below(MOST);
        for (int t = 0; t < 4; t++)
            targets[t] = (int32_t)random_below((unsigned)count);
        for (int32_t i = 0; i < count; i++) {
            static const enum kg_step_kind kinds[] = {
                KG_STEP_NEXT,   KG_STEP_NEXT, KG_STEP_BRANCH, KG_STEP_BRANCH,    KG_STEP_BRANCH,
                KG_STEP_BRANCH, KG_STEP_JUMP, KG_STEP_MANY,   KG_STEP_MAYBE_END, KG_STEP_END};
            steps[i] = (struct kg_step){.kind = kinds[random_below(round % 3 ? 7 : 10)],
                                        .target = (int32_t)random_below((unsigned)count),
                                        .targets = targets,
                                        .target_count = 1 + (int32_t)random_below(4)};
        }
        find(steps, (size_t)count);
        define(&oracle, steps, count);
        compare_dominators(&oracle);
        compare_loops(&oracle);
        compare_conditional(&oracle);
        CHECK(flow.irreducible == goes_round(&oracle));
        irreducible += flow.irreducible;
        nested += flow.loop_count > 0 && flow.loops[flow.loop_count - 1].depth > 2;
    }
    CHECK(irreducible > 100 && irreducible < 2900 && nested > 20);
}

#define LONG 200000

// A chain of blocks, each with a way to the end.
static void test_long_chain(void)
{
    struct kg_step *steps = calloc(LONG, sizeof *steps);
    for (int32_t i = 0; i < LONG; i++)
        steps[i] = (struct kg_step){.kind = KG_STEP_BRANCH, .target = LONG - 1};
    steps[LONG - 1].kind = KG_STEP_END;
    find(steps, LONG);
    CHECK(flow.block_count == LONG && flow.loop_count == 0);
    CHECK(flow.blocks[LONG - 1].dominator == 0 && flow.blocks[LONG - 2].dominator == LONG - 3);
    free(steps);
}

// Loops in loops, as deep as there are instructions: half of them headers, half latches.
static void test_deep_nesting(void)
{
    struct kg_step *steps = calloc(LONG, sizeof *steps);
    for (int32_t i = 0; i < LONG; i++)
        steps[i] = (struct kg_step){.kind = i < LONG / 2 ? KG_STEP_NEXT : KG_STEP_BRANCH,
                                    .target = LONG - 1 - i};
    find(steps, LONG);
    CHECK(flow.loop_count == LONG / 2 && flow.loops[LONG / 2 - 1].depth == LONG / 2);
    CHECK(flow.loops[0].block_count == flow.block_count);
    CHECK(flow.loops[LONG / 2 - 1].header == LONG / 2 - 1);
    free(steps);
    kg_arena_free(&arena);
}

TEST_MAIN(test_empty_and_straight, test_guard, test_diamond, test_nested_loops, test_two_latches,
          test_unreachable_and_self, test_irreducible, test_indexed, test_random, test_long_chain,
          test_deep_nesting)
