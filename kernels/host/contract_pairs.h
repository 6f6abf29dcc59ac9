// The path for matrices of narrow floats on processors that add products of pairs along k by tile
// instructions (amx.h). Operands are packed as pairs in 32-bit words, and never widened: a panel of
// columns has a row of words for each pair, a panel of rows 16 words of each row at a time.
#if KG_PAIR_PATH
// Bits in a vector register, which are moved but not computed with.
KG_INLINE vector pairs_of(const half *even, const half *odd)
{
    return (vector)(half_words(even) | half_words(odd) << 16);
}

KG_INLINE void store_square(vector row[16], const bool turn, uint32_t *to, int64_t stride)
{
    if (turn)
        transpose(row);
    for (int i = 0; i < 16; i++)
        *(vector *)(to + i * stride) = row[turn ? transposed_row(i) : i];
}

// Packs a square of 16 rows and 16 words: one vector of each row if `by_row`, else of each pair
// along k. Missing elements are zero.
KG_INLINE void pack_square(const bool k_major, struct view from, int64_t xn, int64_t kn,
                           const bool by_row, uint32_t *to, int64_t stride)
{
    enum { SIDE = 16 };
    const half *data = from.data;
    const bool full = xn >= SIDE && kn >= KG_PAIR_STEP;
    vector row[SIDE];
    if (full && k_major) {
        for (int i = 0; i < SIDE; i++)
            memcpy(&row[i], data + i * from.x, sizeof row[i]);
        store_square(row, !by_row, to, stride);
    } else if (full && !k_major && from.x == 1) {
        for (int i = 0; i < SIDE; i++)
            row[i] = pairs_of(data + 2 * i * from.k, data + (2 * i + 1) * from.k);
        store_square(row, by_row, to, stride);
    } else {
        half edge[SIDE][KG_PAIR_STEP] = {{0}};
        for (int64_t x = 0; x < least(xn, SIDE); x++)
            for (int64_t k = 0; k < least(kn, KG_PAIR_STEP); k++)
                edge[x][k] = data[x * from.x + k * from.k];
        for (int i = 0; i < SIDE; i++)
            memcpy(&row[i], edge[i], sizeof row[i]);
        store_square(row, !by_row, to, stride);
    }
}

// Packs one step of k of a panel.
KG_INLINE void pack_step(const bool k_major, struct view from, int64_t xn, int64_t kn,
                         const bool by_row, uint32_t *to)
{
    for (int x = 0; x < KG_PAIR_TILE; x += 16)
        pack_square(k_major, moved(from, x, 0), xn - x, kn, by_row, to + (by_row ? 16 * x : x),
                    by_row ? 16 : KG_PAIR_TILE);
}

// Packs panels of `kn` steps of 16 * KG_PAIR_TILE words. Memory is read in long lines.
KG_INLINE void pack_pairs(struct view from, int64_t xn, int64_t kn, const bool by_row, uint32_t *to)
{
    enum { SIDE = KG_PAIR_TILE, STEP = KG_PAIR_STEP };
    const int64_t length = ceiling(kn, STEP) * 16; // of a row of a panel
    if (from.k == 1) {
        for (int64_t x = 0; x < xn; x += SIDE)
            for (int64_t k = 0; k < kn; k += STEP)
                pack_step(true, moved(from, x, k), xn - x, kn - k, by_row,
                          to + x * length + k / 2 * SIDE);
    } else {
        for (int64_t k = 0; k < kn; k += STEP)
            for (int64_t x = 0; x < xn; x += SIDE)
                pack_step(false, moved(from, x, k), xn - x, kn - k, by_row,
                          to + x * length + k / 2 * SIDE);
    }
}

KG_APART void pack_pair_rows(struct view from, int64_t xn, int64_t kn, uint32_t *to)
{
    pack_pairs(from, xn, kn, true, to);
}

KG_APART void pack_pair_columns(struct view from, int64_t xn, int64_t kn, uint32_t *to)
{
    pack_pairs(from, xn, kn, false, to);
}

// sums (+)= a b over packed panels; with `first` the sums start at zero.
KG_APART void multiply_pairs(int64_t steps, const uint32_t *a, const uint32_t *b, bool first,
                             KG_REAL *sums)
{
    enum { LINE = 4 * KG_PAIR_TILE, DOWN = 16 * KG_PAIR_TILE };
    if (first) {
        KG_TILE_ZERO(0);
        KG_TILE_ZERO(1);
        KG_TILE_ZERO(2);
        KG_TILE_ZERO(3);
    } else {
        KG_TILE_LOAD(0, sums, LINE);
        KG_TILE_LOAD(1, sums + 16, LINE);
        KG_TILE_LOAD(2, sums + DOWN, LINE);
        KG_TILE_LOAD(3, sums + DOWN + 16, LINE);
    }
    for (int64_t step = 0; step < steps; step++) {
        KG_TILE_LOAD(6, b, LINE);
        KG_TILE_LOAD(4, a, 64);
        KG_TILE_DOT(0, 4, 6);
        KG_TILE_LOAD(7, b + 16, LINE);
        KG_TILE_DOT(1, 4, 7);
        KG_TILE_LOAD(5, a + 16 * 16, 64);
        KG_TILE_DOT(2, 5, 6);
        KG_TILE_DOT(3, 5, 7);
        a += 16 * KG_PAIR_TILE;
        b += 16 * KG_PAIR_TILE;
    }
    KG_TILE_STORE(0, sums, LINE);
    KG_TILE_STORE(1, sums + 16, LINE);
    KG_TILE_STORE(2, sums + DOWN, LINE);
    KG_TILE_STORE(3, sums + DOWN + 16, LINE);
}

// Multiplies packed panels; a panel of columns stays in the cache while all rows use it. `first`,
// `last`: of the blocks of k.
static void run_pair_block(const struct job *job, const struct block *b)
{
    enum { SIDE = KG_PAIR_TILE, NEAR = KG_PAIR_CACHED / KG_PAIR_STEP };
    const uint32_t *left = (const uint32_t *)job->rows, *right = (const uint32_t *)job->columns;
    const int64_t across = ceiling(b->columns, SIDE), steps = ceiling(b->kn, KG_PAIR_STEP);
    for (int64_t step = 0; step < steps; step += NEAR)
        for (int64_t j = 0; j < across; j++)
            for (int64_t i = 0; i < ceiling(b->rows, SIDE); i++) {
                KG_REAL *sums = job->sums + ((b->above / SIDE + i) * across + j) * SIDE * SIDE;
                const int64_t start = step * 16 * SIDE, length = steps * 16 * SIDE;
                multiply_pairs(least(NEAR, steps - step), left + i * length + start,
                               right + j * length + start, b->first && step == 0, sums);
                if (b->last && step + NEAR >= steps)
                    store_tile(job, b->row + i * SIDE, least(SIDE, b->rows - i * SIDE),
                               b->column + j * SIDE, least(SIDE, b->columns - j * SIDE), sums,
                               SIDE);
            }
}

static void run_pairs(const struct job *job, int64_t row, int64_t rows, int64_t column,
                      int64_t columns)
{
    const struct plan *p = job->plan;
    for (int64_t k = 0; k < job->kn; k += p->block_k) {
        const int64_t k0 = job->k0 + k, kn = least(p->block_k, job->kn - k);
        pack_pair_columns(operand_view(job, p->columns, column, columns, k0, kn), columns, kn,
                          (uint32_t *)job->columns);
        for (int64_t above = 0; above < rows; above += p->block_rows) {
            const bool blocks = job->kn > p->block_k;
            const struct block block = {
                .row = row + above,
                .rows = least(p->block_rows, rows - above),
                .column = column,
                .columns = columns,
                .above = blocks ? above : 0, // sums of a single block are not kept
                .kn = kn,
                .first = k == 0,
                .last = k + kn == job->kn,
            };
            pack_pair_rows(operand_view(job, p->rows, block.row, block.rows, k0, kn), block.rows,
                           kn, (uint32_t *)job->rows);
            run_pair_block(job, &block);
        }
    }
}
#endif
