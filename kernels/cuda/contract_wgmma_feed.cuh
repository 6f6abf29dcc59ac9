// How the sides of a product come into the ring of contract_wgmma.cuh: one thread asks the copy
// engine for boxes of them as stages become free.

// Where a side comes from. Lines that are not there are not asked for: the engine takes several
// times as long for a line that it fills with zeros. So the last box of lines along K has a map of
// its own, `last`. What shared memory has in the place of such lines reaches no sum that is stored.
struct kg_wgmma_source {
    const kg_tensor_map *whole, *last;
};

// Whether a side passes through the L2: a single line of tiles reads it, and it is too long to be
// still there at the next launch. Then it is the first to make room for itself: what other kernels
// have written there would have to go to memory first. Not where a step takes only a part of the
// 256 bytes that come to the L2 together, since the other part is gone when it is asked for, nor
// where a side is so long that all else leaves anyway.
template <class Block, bool ALONG_K, int LINES>
KG_INLINE bool kg_wgmma_passes(int64_t lines, int64_t steps, int batches, int tiles_across)
{
    const int64_t bytes = batches * lines * steps * Block::DEPTH * 2;
    return (ALONG_K ? Block::DEPTH : LINES) >= 128 && tiles_across == 1 &&
           bytes > Block::LEAST_PASSING && bytes <= Block::MOST_PASSING;
}

// One side of an item, LINES of it or fewer, in steps of boxes of 64 elements by as many lines as
// fit. Of a side that SHARERS blocks share, each copies its part for all of them, the `turn`-th for
// the `blocks`.
template <int SHARERS, bool CLUSTERED, bool ALONG_K, int LINES, int DEPTH>
struct kg_wgmma_side {
    static constexpr int UNIT = ALONG_K ? 1 : 64; // lines come by so many
    static constexpr int OWN = LINES / SHARERS;
    static_assert(OWN % UNIT == 0 && LINES % SHARERS == 0, "whole boxes");
    const kg_tensor_map *map;
    int line, batch, lines, place, own; // `own` lines of these `lines`, from `place` on
    uint16_t blocks;
    bool passes;

    KG_METHOD kg_wgmma_side(const kg_wgmma_source &from, int line_, int batch_, int end, int turn,
                            int blocks_, bool passes_)
        : batch(batch_), place(turn * OWN), blocks((uint16_t)blocks_), passes(passes_)
    {
        lines = (end - line_ + UNIT - 1) / UNIT * UNIT;
        lines = lines > LINES ? LINES : CLUSTERED && lines < 0 ? 0 : lines;
        own = lines - place > OWN ? OWN : lines - place;
        map = ALONG_K && own < OWN ? from.last : from.whole;
        line = line_ + place;
    }
    KG_METHOD int bytes() const // of a step, of all
    {
        return lines * DEPTH * 2;
    }
    KG_METHOD void copy(char *to, uint64_t *full, int x, int y) const
    {
        if (SHARERS == 1 && passes)
            kg_tiles_copy_once(to, map, full, x, y, batch);
        else
            kg_tiles_copy<(SHARERS > 1)>(to, map, full, x, y, batch, blocks);
    }
    KG_METHOD void fetch(char *to, uint64_t *full, int k) const
    {
        if constexpr (ALONG_K) {
            if (CLUSTERED && own <= 0)
                return;
#pragma unroll
            for (int d = 0; d < DEPTH / 64; d++)
                copy(to + (d * LINES + place) * 128, full, k + d * 64, line);
        } else {
#pragma unroll
            for (int b = 0; b < OWN; b += 64)
                if (b < own)
                    copy(to + (place + b) * DEPTH * 2, full, line + b, k);
        }
    }
};

template <class Block>
KG_INLINE void kg_wgmma_produce(const kg_wgmma_tiles<Block> &tiles,
                                const kg_wgmma_item<Block> &begin, const kg_wgmma_source &left_from,
                                const kg_wgmma_source &right_from, char *ring, uint64_t *full,
                                uint64_t *empty, int first, int step, int rank)
{
    constexpr int rows = Block::ROWS, columns = Block::COLUMNS, depth = Block::DEPTH;
    constexpr bool left_along = Block::LEFT_ALONG_K, right_along = Block::RIGHT_ALONG_K;
    constexpr int down = Block::DOWN, across = Block::ACROSS;
    constexpr bool clustered = Block::PEERS > 1;
    const int above = rank / across, beside = rank % across;
    const int same_rows = ((1 << across) - 1) << above * across;
    constexpr int every = ((1 << down * across) - 1) / ((1 << across) - 1); // 1, and each row's
    const int same_columns = every << beside;
    const bool left_passes = kg_wgmma_passes<Block, left_along, rows>(
        tiles.tall, tiles.steps, tiles.batches, tiles.columns);
    const bool right_passes = kg_wgmma_passes<Block, right_along, columns>(
        tiles.wide, tiles.steps, tiles.batches, tiles.rows);
    kg_ring_place<Block::STAGES> place;
    kg_wgmma_items<Block> work(tiles, first, step, rank);
    kg_wgmma_item<Block> item = Block::SHARES ? work.item() : begin;
    for (; work.is_left(); kg_wgmma_next(work, item)) {
        const kg_wgmma_side<across, clustered, left_along, rows, depth> left(
            left_from, item.row, item.batch, tiles.tall, beside, same_rows, left_passes);
        const kg_wgmma_side<down, clustered, right_along, columns, depth> right(
            right_from, item.column, item.batch, tiles.wide, above, same_columns, right_passes);
        const int bytes = left.bytes() + right.bytes();
        kg_wait_before(); // the first time
#pragma unroll 1
        for (int i = 0; i < item.steps; i++) {
            char *stage = ring + place.stage * Block::STAGE_BYTES;
            const int k = (item.first + i) * depth;
            kg_tiles_wait(&empty[place.stage], place.odd ^ 1);
            kg_tiles_expect(&full[place.stage], bytes);
            left.fetch(stage, &full[place.stage], k);
            right.fetch(stage + Block::LEFT_BYTES, &full[place.stage], k);
            place.next();
        }
    }
    // No block ends before its peers have told it all that they will.
#pragma unroll 1
    for (int s = 0; clustered && s < Block::STAGES; s++, place.next())
        kg_tiles_wait(&empty[place.stage], place.odd ^ 1);
}
