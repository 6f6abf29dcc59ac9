// Stream-K: how blocks share the tiles of the last waves, so that all of them work equally long.
// All waves but the last full one and the incomplete one are processed as whole tiles, one tile per
// block. The K steps of the remaining tiles, in the order of tiles, are divided into as many ranges
// of equal length as there are blocks. If there is a full wave among them, a range is one to two
// tiles long, and no tile is divided more than once.
//
// A block processes its range from the end to the beginning. So the partial tile that the next
// block continues comes first, and a block waits only for what the previous block computes first.
// No block waits for a later one. If each adds its products to the partial tile of the previous
// one, the result is bit-identical to that of one block; but if there is no full wave, the blocks
// of a tile run one after the other. Partial tiles that the last block of a tile adds up in the end
// are better then.
//
// Plain arithmetic in C, so that a unit test can include it. The launch has to make sure that the
// number of K steps fits an int.

struct kg_stream_k {
    int first_tile; // the steps of this tile and all later ones are divided
    int steps;      // of a block
    int longer;     // the first blocks, as many as this, have one step more
};

// What a block has still to process: the steps before step `until` of `tile`, which counts from the
// first divided tile.
struct kg_stream_k_range {
    int tile;
    int until;
    int left; // steps left, of all tiles
};

KG_INLINE struct kg_stream_k kg_stream_k_divide(int tiles, int first_tile, int steps, int blocks)
{
    struct kg_stream_k stream_k;
    stream_k.first_tile = first_tile;
    stream_k.steps = (tiles - first_tile) * steps / blocks;
    stream_k.longer = (tiles - first_tile) * steps % blocks;
    return stream_k;
}

KG_INLINE struct kg_stream_k kg_stream_k_make(int tiles, int steps, int blocks)
{
    const int rest = tiles % blocks, whole = tiles - rest;
    return kg_stream_k_divide(tiles,
                              rest == 0   ? tiles
                              : whole > 0 ? whole - blocks
                                          : 0,
                              steps, blocks);
}

// Only the incomplete wave is divided: where partial tiles are small, and blocks that process whole
// tiles side by side read what is side by side in memory.
KG_INLINE struct kg_stream_k kg_stream_k_make_rest(int tiles, int steps, int blocks)
{
    return kg_stream_k_divide(tiles, tiles - tiles % blocks, steps, blocks);
}

// The first step of a block, which is the end of the previous block's range.
KG_INLINE int kg_stream_k_begin(const struct kg_stream_k *stream_k, int block)
{
    return block * stream_k->steps + (block < stream_k->longer ? block : stream_k->longer);
}

KG_INLINE struct kg_stream_k_range kg_stream_k_range_make(const struct kg_stream_k *stream_k,
                                                          int steps, int block)
{
    const int begin = kg_stream_k_begin(stream_k, block),
              end = kg_stream_k_begin(stream_k, block + 1);
    struct kg_stream_k_range range;
    range.left = end - begin;
    range.tile = end > begin ? (end - 1) / steps : 0;
    range.until = end - range.tile * steps;
    return range;
}

// The first step of the current tile that belongs to the range.
KG_INLINE int kg_stream_k_range_first_step(const struct kg_stream_k_range *range)
{
    return range->left < range->until ? range->until - range->left : 0;
}

// Moves to the previous tile.
KG_INLINE void kg_stream_k_range_next(struct kg_stream_k_range *range, int steps)
{
    range->left -= range->until - kg_stream_k_range_first_step(range);
    range->until = steps;
    range->tile--;
}

// The block whose range has this step; steps count from the first divided tile's.
KG_INLINE int kg_stream_k_block(const struct kg_stream_k *stream_k, int step)
{
    const int border = stream_k->longer * (stream_k->steps + 1);
    return step < border ? step / (stream_k->steps + 1)
                         : stream_k->longer + (step - border) / stream_k->steps;
}
