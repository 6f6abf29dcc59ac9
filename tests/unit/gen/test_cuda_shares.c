// How blocks share tiles evenly: every step of every tile is made by one block, all blocks make as
// many, and whoever goes on with a tile needs nothing but what the block before makes first.

#include "test.h"

#include <stdbool.h>
#include <stdint.h>

#define KG_INLINE static inline
#include "../../../kernels/cuda/contract_shares.cuh"

enum { MOST_SHARED = 1 << 16 };

// What is shared: `steps` a tile, `total` of all.
struct shared {
    struct kg_shares shares;
    int steps, total;
};

struct seen {
    unsigned char made[MOST_SHARED]; // times that a step was made
    int items;
    bool fine;
};

// One item: the part of a tile that a block makes when it has `share` left, its `turn`-th.
static void look(const struct shared *shared, const struct kg_share *share, int block, int turn,
                 struct seen *seen)
{
    int first = kg_share_first(share), tile = share->tile * shared->steps;
    seen->items++;
    seen->fine = seen->fine && first >= 0 && first < share->until && share->until <= shared->steps;
    for (int step = first; step < share->until; step++)
        seen->made[tile + step]++;
    // What is left for the next block comes before anything that this one could wait for.
    if (share->until < shared->steps)
        seen->fine = seen->fine && turn == 0;
    if (first == 0)
        return;
    struct kg_share before = kg_share_make(&shared->shares, shared->steps, block - 1);
    seen->fine = seen->fine && block > 0 && share->left == share->until - first &&
                 before.tile == share->tile && before.until == first;
}

static bool is_shared_well(int tiles, int steps, int blocks)
{
    static struct seen seen;
    struct kg_shares shares = kg_shares_make(tiles, steps, blocks);
    int least = INT32_MAX, most = 0, parts = tiles - shares.first;
    struct shared shared = {shares, steps, parts * steps};
    seen = (struct seen){.fine = shares.first % blocks == 0 && shared.total <= MOST_SHARED};
    seen.fine = seen.fine && (shares.first == tiles) == (tiles % blocks == 0);
    seen.fine = seen.fine && kg_shares_begin(&shares, blocks) == shared.total;
    for (int block = 0; block < blocks && seen.fine; block++) {
        struct kg_share share = kg_share_make(&shares, steps, block);
        least = share.left < least ? share.left : least;
        most = share.left > most ? share.left : most;
        for (int turn = 0; share.left > 0 && seen.fine; turn++) {
            look(&shared, &share, block, turn, &seen);
            kg_share_next(&share, steps);
        }
        seen.fine = seen.fine && share.left == 0;
    }
    for (int step = 0; step < shared.total; step++)
        seen.fine = seen.fine && seen.made[step] == 1;
    // A tile is cut once where there is a wave of them.
    if (parts >= blocks)
        seen.fine = seen.fine && seen.items <= parts + blocks - 1;
    return seen.fine && most - least <= 1;
}

static void steps_are_made_once(void)
{
    static const int blocks[] = {1, 2, 3, 7, 66, 132, 264}, steps[] = {1, 2, 3, 5, 16, 17, 128};
    for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++)
        for (size_t s = 0; s < sizeof steps / sizeof *steps; s++)
            for (int tiles = 1; tiles <= 4 * blocks[b] && tiles <= 300; tiles++) {
                bool fine = is_shared_well(tiles, steps[s], blocks[b]);
                CHECK(fine);
                if (!fine)
                    fprintf(stderr, "%d tiles of %d steps by %d blocks\n", tiles, steps[s],
                            blocks[b]);
            }
}

static void waves_are_whole(void)
{
    struct kg_shares shares = kg_shares_make(300, 48, 132); // 2.3 waves: one comes whole
    CHECK(shares.first == 132 && kg_shares_begin(&shares, 132) == 168 * 48);
    shares = kg_shares_make(264, 48, 132);
    CHECK(shares.first == 264 && kg_share_make(&shares, 48, 5).left == 0);
    shares = kg_shares_make(32, 128, 132); // less than one: a tile is the work of several blocks
    CHECK(shares.first == 0 && kg_shares_begin(&shares, 132) == 32 * 128);
    struct kg_share share = kg_share_make(&shares, 128, 4);
    CHECK(share.tile == 1 && share.until == 31 && share.left == 31);
    CHECK(kg_share_first(&share) == 0);
}

TEST_MAIN(steps_are_made_once, waves_are_whole)
