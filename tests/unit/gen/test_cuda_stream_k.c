// The division of tiles by stream-K: every K step of every tile is computed by one block, all
// blocks have equally many, and a block that continues a tile needs only what the previous one
// computes first.

#include "test.h"

#include <stdbool.h>
#include <stdint.h>

#define KG_INLINE static inline
#include "../../../kernels/cuda/contract_stream_k.cuh"

enum { MAX_STEPS = 1 << 16 };

// The divided tiles: `steps` of each, `total` of all.
struct divided {
    struct kg_stream_k stream_k;
    int steps, total;
};

struct seen {
    unsigned char count[MAX_STEPS]; // how often a step was computed
    int ranges;
    bool fine;
};

// Notes the `turn`-th tile of a block, of which it computes the steps at the end of `range`.
static void note(const struct divided *divided, const struct kg_stream_k_range *range, int block,
                 int turn, struct seen *seen)
{
    int first = kg_stream_k_range_first_step(range), tile = range->tile * divided->steps;
    seen->ranges++;
    seen->fine = seen->fine && first >= 0 && first < range->until && range->until <= divided->steps;
    for (int step = first; step < range->until; step++)
        seen->count[tile + step]++;
    // What the next block continues comes first, before this block waits for another one.
    if (range->until < divided->steps)
        seen->fine = seen->fine && turn == 0;
    if (first == 0)
        return;
    struct kg_stream_k_range before =
        kg_stream_k_range_make(&divided->stream_k, divided->steps, block - 1);
    seen->fine = seen->fine && block > 0 && range->left == range->until - first &&
                 before.tile == range->tile && before.until == first;
}

typedef struct kg_stream_k make_division(int tiles, int steps, int blocks);

static bool is_divided_well(make_division *make, int tiles, int steps, int blocks)
{
    static struct seen seen;
    struct kg_stream_k stream_k = make(tiles, steps, blocks);
    int shortest = INT32_MAX, longest = 0, rest = tiles - stream_k.first_tile;
    struct divided divided = {stream_k, steps, rest * steps};
    seen = (struct seen){.fine = stream_k.first_tile % blocks == 0 && divided.total <= MAX_STEPS};
    seen.fine = seen.fine && (stream_k.first_tile == tiles) == (tiles % blocks == 0);
    seen.fine = seen.fine && kg_stream_k_begin(&stream_k, blocks) == divided.total;
    for (int block = 0; block < blocks && seen.fine; block++) {
        struct kg_stream_k_range range = kg_stream_k_range_make(&stream_k, steps, block);
        shortest = range.left < shortest ? range.left : shortest;
        longest = range.left > longest ? range.left : longest;
        for (int step = kg_stream_k_begin(&stream_k, block), i = 0; i < range.left; i++)
            seen.fine = seen.fine && kg_stream_k_block(&stream_k, step + i) == block;
        for (int turn = 0; range.left > 0 && seen.fine; turn++) {
            note(&divided, &range, block, turn, &seen);
            kg_stream_k_range_next(&range, steps);
        }
        seen.fine = seen.fine && range.left == 0;
    }
    for (int step = 0; step < divided.total; step++)
        seen.fine = seen.fine && seen.count[step] == 1;
    // With a full wave, no tile is divided twice.
    if (rest >= blocks)
        seen.fine = seen.fine && seen.ranges <= rest + blocks - 1;
    return seen.fine && longest - shortest <= 1;
}

static void steps_are_computed_once(void)
{
    static const int blocks[] = {1, 2, 3, 7, 66, 132, 264}, steps[] = {1, 2, 3, 5, 16, 17, 128};
    for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++)
        for (size_t s = 0; s < sizeof steps / sizeof *steps; s++)
            for (int tiles = 1; tiles <= 4 * blocks[b] && tiles <= 300; tiles++) {
                bool fine = is_divided_well(kg_stream_k_make, tiles, steps[s], blocks[b]) &&
                            is_divided_well(kg_stream_k_make_rest, tiles, steps[s], blocks[b]);
                CHECK(fine);
                if (!fine)
                    fprintf(stderr, "%d tiles of %d steps by %d blocks\n", tiles, steps[s],
                            blocks[b]);
            }
}

static void waves_are_whole(void)
{
    struct kg_stream_k stream_k =
        kg_stream_k_make(300, 48, 132); // 2.3 waves: one is processed whole
    CHECK(stream_k.first_tile == 132 && kg_stream_k_begin(&stream_k, 132) == 168 * 48);
    stream_k = kg_stream_k_make(264, 48, 132);
    CHECK(stream_k.first_tile == 264 && kg_stream_k_range_make(&stream_k, 48, 5).left == 0);
    stream_k = kg_stream_k_make(32, 128, 132); // less than one: several blocks share a tile
    CHECK(stream_k.first_tile == 0 && kg_stream_k_begin(&stream_k, 132) == 32 * 128);
    CHECK(kg_stream_k_make_rest(32, 128, 132).first_tile == 0);
    CHECK(kg_stream_k_make_rest(300, 48, 132).first_tile == 264);
    CHECK(kg_stream_k_make_rest(264, 48, 132).first_tile == 264);
    struct kg_stream_k_range range = kg_stream_k_range_make(&stream_k, 128, 4);
    CHECK(range.tile == 1 && range.until == 31 && range.left == 31);
    CHECK(kg_stream_k_range_first_step(&range) == 0);
}

TEST_MAIN(steps_are_computed_once, waves_are_whole)
