// The producers of contract_wgmma.cuh: one thread for each operand issues TMA loads of its boxes as
// stages become free.

// The tensor maps of an operand. TMA takes several times as long for lines beyond the tensor, which
// it fills with zeros. So the last, incomplete box of a K-major operand has a smaller map, `last`.
// Stale data in the missing lines of shared memory affects no output that is stored.
struct kg_wgmma_source {
    const kg_tensor_map *whole, *last;
};

// The loads of one operand for one tile: per stage, boxes of 64 elements by as many lines as fit.
// If SHARERS blocks of the cluster share the operand, each loads its share of the lines and
// multicasts it to all of them.
template <class Block, bool RIGHT>
struct kg_wgmma_operand_loader {
    static constexpr bool CLUSTERED = Block::PEERS > 1;
    static constexpr bool K_MAJOR = RIGHT ? Block::RIGHT_K_MAJOR : Block::LEFT_K_MAJOR;
    static constexpr int SHARERS = RIGHT ? Block::CLUSTER_M : Block::CLUSTER_N;
    static constexpr int LINES = RIGHT ? Block::COLUMNS : Block::ROWS, DEPTH = Block::DEPTH;
    static constexpr int UNIT = K_MAJOR ? 1 : 64; // lines are loaded in multiples of this
    static constexpr int COPIED_LINES = LINES / SHARERS;
    static_assert(COPIED_LINES % UNIT == 0 && LINES % SHARERS == 0, "whole boxes");
    // Whether the operand may be loaded with evict_first: only if a stage uses whole 256-byte units
    // of the L2. Otherwise the other half could be evicted before it is requested.
    static constexpr bool MAY_STREAM = SHARERS == 1 && (K_MAJOR ? DEPTH : LINES) >= 128;
    const kg_tensor_map *map;
    int line, batch, lines;
    int place, copied_lines; // of `lines`, those that this block loads
    uint16_t blocks;

    KG_METHOD kg_wgmma_operand_loader(const kg_wgmma_tiles<Block> &tiles,
                                      const kg_wgmma_item<Block> &item, const kg_wgmma_source &from,
                                      int rank)
        : batch(item.batch)
    {
        constexpr int down = Block::CLUSTER_M, across = Block::CLUSTER_N;
        constexpr int row = (1 << across) - 1, column = ((1 << down * across) - 1) / row;
        const int above = rank / across, beside = rank % across;
        const int begin = RIGHT ? item.column : item.row;
        const int end = RIGHT ? tiles.wide : tiles.tall;
        blocks = (uint16_t)(RIGHT ? column << beside : row << above * across);
        place = (RIGHT ? above : beside) * COPIED_LINES;
        lines = (end - begin + UNIT - 1) / UNIT * UNIT;
        lines = lines > LINES ? LINES : CLUSTERED && lines < 0 ? 0 : lines;
        copied_lines = lines - place > COPIED_LINES ? COPIED_LINES : lines - place;
        map = K_MAJOR && copied_lines < COPIED_LINES ? from.last : from.whole;
        line = begin + place;
    }
    KG_METHOD int bytes() const // of a stage, from all blocks
    {
        return lines * DEPTH * 2;
    }
    template <bool STREAMED>
    KG_METHOD void copy(char *to, uint64_t *full, int x, int y) const
    {
        if constexpr (STREAMED)
            kg_tiles_copy_streamed(to, map, full, x, y, batch);
        else
            kg_tiles_copy<(SHARERS > 1)>(to, map, full, x, y, batch, blocks);
    }
    template <bool STREAMED>
    KG_METHOD void load(char *to, uint64_t *full, int k) const
    {
        if constexpr (K_MAJOR) {
            if (CLUSTERED && copied_lines <= 0)
                return;
#pragma unroll
            for (int d = 0; d < DEPTH / 64; d++)
                copy<STREAMED>(to + (d * LINES + place) * 128, full, k + d * 64, line);
        } else {
#pragma unroll
            for (int b = 0; b < COPIED_LINES; b += 64)
                if (b < copied_lines)
                    copy<STREAMED>(to + (place + b) * DEPTH * 2, full, line + b, k);
        }
    }
    // Fills stages as they become free.
    template <bool STREAMED>
    KG_METHOD void load_all(kg_ring_place<Block::STAGES> &at, const kg_wgmma_item<Block> &item,
                            char *ring, uint64_t *full, uint64_t *empty) const
    {
#pragma unroll 1
        for (int i = 0; i < item.steps; i++) {
            char *stage = ring + at.stage * Block::STAGE_BYTES + (RIGHT ? Block::LEFT_BYTES : 0);
            kg_tiles_wait(&empty[at.stage], at.odd ^ 1);
            kg_tiles_expect(&full[at.stage], bytes());
            load<STREAMED>(stage, &full[at.stage], (item.first + i) * DEPTH);
            at.next();
        }
    }
};

// Whether the operand is streamed, that is, loaded with evict_first: only one row (or column) of
// tiles reads it, and it is too large to remain in the L2 until the next launch. Then it does not
// evict what earlier kernels wrote, which would have to go to memory first. A very large operand
// evicts everything anyway.
template <class Block, bool RIGHT>
KG_INLINE bool kg_wgmma_is_streamed(const kg_wgmma_tiles<Block> &tiles)
{
    constexpr int line = 2 * Block::DEPTH; // bytes
    const int64_t lines = (int64_t)(RIGHT ? tiles.wide : tiles.tall) * tiles.steps * tiles.batches;
    return (RIGHT ? tiles.rows : tiles.columns) == 1 && lines > Block::MIN_STREAMED / line &&
           lines <= Block::MAX_STREAMED / line;
}

// Loads one operand of all work of the block; a single thread calls it.
template <class Block, bool RIGHT>
KG_INLINE void kg_wgmma_produce(const kg_wgmma_tiles<Block> &tiles,
                                const kg_wgmma_item<Block> &begin, const kg_wgmma_source &from,
                                char *ring, uint64_t *full, uint64_t *empty, int first, int step,
                                int rank)
{
    typedef kg_wgmma_operand_loader<Block, RIGHT> operand_loader;
    const bool is_streamed =
        operand_loader::MAY_STREAM && kg_wgmma_is_streamed<Block, RIGHT>(tiles);
    kg_ring_place<Block::STAGES> place;
    kg_wgmma_items<Block> work(tiles, first, step, rank);
    kg_wgmma_item<Block> item = Block::STREAM_K ? work.item() : begin;
    for (; work.is_left(); kg_wgmma_next(work, item)) {
        const operand_loader loader(tiles, item, from, rank);
        kg_wait_before(); // has an effect the first time only
        if (is_streamed)
            loader.template load_all<operand_loader::MAY_STREAM>(place, item, ring, full, empty);
        else
            loader.template load_all<false>(place, item, ring, full, empty);
    }
    // A block must not exit before its peers have arrived at its barriers for the last time.
#pragma unroll 1
    for (int s = 0; operand_loader::CLUSTERED && s < Block::STAGES; s++, place.next())
        kg_tiles_wait(&empty[place.stage], place.odd ^ 1);
}
