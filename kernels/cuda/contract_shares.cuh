// How blocks share tiles where they do not come out even, so that every block works equally long:
// stream-K. All waves of tiles but the last full one and the rest are taken whole, a tile a block.
// The steps of the tiles that are left, one tile's after the other's, are cut into as many ranges
// of one length as there are blocks. Where there is a full wave, a range is as long as one tile or
// two, and no tile is cut more than once.
//
// A block goes through its range from the end to the beginning: so the *part* of a tile that the
// next block goes on with is made before anything else, and who goes on waits only for what the
// block before it makes first. Nobody waits for later blocks, and a sum is made in the order of its
// steps, as one block would make it: the bits are the same. Where there is no full wave, that order
// leaves nothing to be made at the same time: such tiles are better split in pieces.
//
// Nothing here but arithmetic, in C too: a test looks at it. Whoever launches sees to it that all
// steps that are shared can be counted.

struct kg_shares {
    int first; // tile whose steps are shared, and those of all behind it
    int each;  // steps of a block
    int more;  // blocks that have one step more, the first ones
};

// What is left of a block's range: it ends before step `until` of a tile, which is counted from the
// first one that is shared.
struct kg_share {
    int tile;
    int until;
    int left; // steps, of all tiles
};

KG_INLINE struct kg_shares kg_shares_make(int tiles, int steps, int blocks)
{
    struct kg_shares shares;
    const int rest = tiles % blocks, whole = tiles - rest;
    shares.first = rest == 0 ? tiles : whole > 0 ? whole - blocks : 0;
    shares.each = (tiles - shares.first) * steps / blocks;
    shares.more = (tiles - shares.first) * steps % blocks;
    return shares;
}

// Where the range of a block begins, and that of the one before it ends.
KG_INLINE int kg_shares_begin(const struct kg_shares *shares, int block)
{
    return block * shares->each + (block < shares->more ? block : shares->more);
}

KG_INLINE struct kg_share kg_share_make(const struct kg_shares *shares, int steps, int block)
{
    const int begin = kg_shares_begin(shares, block), end = kg_shares_begin(shares, block + 1);
    struct kg_share share;
    share.left = end - begin;
    share.tile = end > begin ? (end - 1) / steps : 0;
    share.until = end - share.tile * steps;
    return share;
}

// The first of its steps of the tile where it ends.
KG_INLINE int kg_share_first(const struct kg_share *share)
{
    return share->left < share->until ? share->until - share->left : 0;
}

// On to the tile before.
KG_INLINE void kg_share_next(struct kg_share *share, int steps)
{
    share->left -= share->until - kg_share_first(share);
    share->until = steps;
    share->tile--;
}
