// How the sides of a product come into the ring of contract_wgmma.cuh: by one thread for each,
// which asks the copy engine for boxes of it as stages become free.

// Where a side comes from. Lines that are not there are not asked for: the engine takes several
// times as long for a line that it fills with zeros. So the last box of lines along K has a map of
// its own, `last`. What shared memory has in the place of such lines reaches no sum that is stored.
struct kg_wgmma_source {
    const kg_tensor_map *whole, *last;
};

// What is to be copied of one side of an item, in steps of boxes of 64 elements by as many lines as
// fit. Of a side that SHARERS blocks share, each copies its part for all of them.
template <class Block, bool RIGHT>
struct kg_wgmma_side {
    static constexpr bool CLUSTERED = Block::PEERS > 1;
    static constexpr bool ALONG_K = RIGHT ? Block::RIGHT_ALONG_K : Block::LEFT_ALONG_K;
    static constexpr int SHARERS = RIGHT ? Block::DOWN : Block::ACROSS;
    static constexpr int LINES = RIGHT ? Block::COLUMNS : Block::ROWS, DEPTH = Block::DEPTH;
    static constexpr int UNIT = ALONG_K ? 1 : 64; // lines come by so many
    static constexpr int OWN = LINES / SHARERS;
    static_assert(OWN % UNIT == 0 && LINES % SHARERS == 0, "whole boxes");
    // Whether it may pass through the L2: not where a step takes only a part of the 256 bytes that
    // come there together, since the other part would be gone when it is asked for.
    static constexpr bool MAY_PASS = SHARERS == 1 && (ALONG_K ? DEPTH : LINES) >= 128;
    const kg_tensor_map *map;
    int line, batch, lines, place, own; // `own` lines of these `lines`, from `place` on
    uint16_t blocks;

    KG_METHOD kg_wgmma_side(const kg_wgmma_tiles<Block> &tiles, const kg_wgmma_item<Block> &item,
                            const kg_wgmma_source &from, int rank)
        : batch(item.batch)
    {
        constexpr int down = Block::DOWN, across = Block::ACROSS;
        constexpr int row = (1 << across) - 1, column = ((1 << down * across) - 1) / row;
        const int above = rank / across, beside = rank % across;
        const int begin = RIGHT ? item.column : item.row;
        const int end = RIGHT ? tiles.wide : tiles.tall;
        blocks = (uint16_t)(RIGHT ? column << beside : row << above * across);
        place = (RIGHT ? above : beside) * OWN;
        lines = (end - begin + UNIT - 1) / UNIT * UNIT;
        lines = lines > LINES ? LINES : CLUSTERED && lines < 0 ? 0 : lines;
        own = lines - place > OWN ? OWN : lines - place;
        map = ALONG_K && own < OWN ? from.last : from.whole;
        line = begin + place;
    }
    KG_METHOD int bytes() const // of a step, of all
    {
        return lines * DEPTH * 2;
    }
    template <bool PASSES>
    KG_METHOD void copy(char *to, uint64_t *full, int x, int y) const
    {
        if constexpr (PASSES)
            kg_tiles_copy_once(to, map, full, x, y, batch);
        else
            kg_tiles_copy<(SHARERS > 1)>(to, map, full, x, y, batch, blocks);
    }
    template <bool PASSES>
    KG_METHOD void fetch(char *to, uint64_t *full, int k) const
    {
        if constexpr (ALONG_K) {
            if (CLUSTERED && own <= 0)
                return;
#pragma unroll
            for (int d = 0; d < DEPTH / 64; d++)
                copy<PASSES>(to + (d * LINES + place) * 128, full, k + d * 64, line);
        } else {
#pragma unroll
            for (int b = 0; b < OWN; b += 64)
                if (b < own)
                    copy<PASSES>(to + (place + b) * DEPTH * 2, full, line + b, k);
        }
    }
    // Into the ring, as there is room.
    template <bool PASSES>
    KG_METHOD void fetch_all(kg_ring_place<Block::STAGES> &at, const kg_wgmma_item<Block> &item,
                             char *ring, uint64_t *full, uint64_t *empty) const
    {
#pragma unroll 1
        for (int i = 0; i < item.steps; i++) {
            char *stage = ring + at.stage * Block::STAGE_BYTES + (RIGHT ? Block::LEFT_BYTES : 0);
            kg_tiles_wait(&empty[at.stage], at.odd ^ 1);
            kg_tiles_expect(&full[at.stage], bytes());
            fetch<PASSES>(stage, &full[at.stage], (item.first + i) * DEPTH);
            at.next();
        }
    }
};

// Whether a side passes through the L2: a single line of tiles reads it, and it is too long to be
// still there at the next launch. Then it is the first to make room for itself: what other kernels
// have written there would have to go to memory first. Where a side is very long all that leaves
// anyway.
template <class Block, bool RIGHT>
KG_INLINE bool kg_wgmma_passes(const kg_wgmma_tiles<Block> &tiles)
{
    constexpr int line = 2 * Block::DEPTH; // of bytes
    const int64_t lines = (int64_t)(RIGHT ? tiles.wide : tiles.tall) * tiles.steps * tiles.batches;
    return (RIGHT ? tiles.rows : tiles.columns) == 1 && lines > Block::LEAST_PASSING / line &&
           lines <= Block::MOST_PASSING / line;
}

// One side of all items of the block: each side has a thread of its own.
template <class Block, bool RIGHT>
KG_INLINE void kg_wgmma_produce(const kg_wgmma_tiles<Block> &tiles,
                                const kg_wgmma_item<Block> &begin, const kg_wgmma_source &from,
                                char *ring, uint64_t *full, uint64_t *empty, int first, int step,
                                int rank)
{
    typedef kg_wgmma_side<Block, RIGHT> side;
    const bool passes = side::MAY_PASS && kg_wgmma_passes<Block, RIGHT>(tiles);
    kg_ring_place<Block::STAGES> place;
    kg_wgmma_items<Block> work(tiles, first, step, rank);
    kg_wgmma_item<Block> item = Block::SHARES ? work.item() : begin;
    for (; work.is_left(); kg_wgmma_next(work, item)) {
        const side its(tiles, item, from, rank);
        kg_wait_before(); // the first time
        if (passes)
            its.template fetch_all<side::MAY_PASS>(place, item, ring, full, empty);
        else
            its.template fetch_all<false>(place, item, ring, full, empty);
    }
    // No block ends before its peers have told it all that they will.
#pragma unroll 1
    for (int s = 0; side::CLUSTERED && s < Block::STAGES; s++, place.next())
        kg_tiles_wait(&empty[place.stage], place.odd ^ 1);
}
