// The path for integers of at most 16 bits: products of pairs along k are added in 32 bits by one
// instruction, and sums of a block of k in 64. Operands are packed as pairs in 32-bit words, a row
// of words for each pair in panels of rows and of columns.
//
// Where products of 16 bits would overflow, a value v is two parts: its low byte, signed, and
// (v - low) / 256. Each part has panels of its own, and the sums of each pair of parts are shifted
// into place. All of this is exact: KG_SHORT_STEPS products fit 32 bits.
#if KG_SHORT_PATH
enum { KG_SHORT_LANES = 2 * KG_LANES }; // words in a vector
typedef int32_t word_lanes __attribute__((vector_size(8 * KG_LANES), may_alias));
typedef int16_t short_lanes __attribute__((vector_size(8 * KG_LANES)));

KG_INLINE word_lanes add_products(word_lanes a, word_lanes b)
{
    return (word_lanes)__builtin_ia32_pmaddwd256((short_lanes)a, (short_lanes)b);
}

// Part `part` of the values of two steps of k.
KG_INLINE uint32_t short_pair(const int parts, const int part, const bool is_unsigned, int16_t even,
                              int16_t odd)
{
    int32_t a = is_unsigned ? (uint16_t)even : even, b = is_unsigned ? (uint16_t)odd : odd;
    if (parts == 2) {
        a = part == 0 ? (int8_t)a : (a + 128) >> 8;
        b = part == 0 ? (int8_t)b : (b + 128) >> 8;
    }
    return ((uint32_t)a & 0xffff) | (uint32_t)b << 16;
}

// The same of all values of a vector.
KG_INLINE short_lanes part_of(const int parts, const int part, const bool is_unsigned,
                              short_lanes value)
{
    typedef uint16_t unsigned_lanes __attribute__((vector_size(8 * KG_LANES)));
    if (parts == 1)
        return value;
    if (part == 0)
        return (short_lanes)((unsigned_lanes)value << 8) >> 8;
    return is_unsigned ? (short_lanes)((((unsigned_lanes)value >> 1) + 64) >> 7)
                       : ((value >> 1) + 64) >> 7;
}

#define KG_EXCHANGE_WORDS(step, low, high)                                                         \
    for (int i = 0; i < KG_SHORT_LANES; i++)                                                       \
        if (!(i & (step))) {                                                                       \
            const word_lanes one = row[i], two = row[i + (step)];                                  \
            row[i] = KG_SHUFFLE(one, two, low);                                                    \
            row[i + (step)] = KG_SHUFFLE(one, two, high);                                          \
        }

KG_INLINE void transpose_words(word_lanes row[KG_SHORT_LANES]){KG_EXCHANGES_8(KG_EXCHANGE_WORDS)}

// Packs whole squares of a panel whose rows are contiguous along k; gives the first k that is left.
KG_INLINE int64_t
    pack_short_squares(const int parts, const int part, const bool is_unsigned, const int16_t *from,
                       int64_t step, int64_t kn, const int width, uint32_t *to)
{
    enum { SIDE = KG_SHORT_LANES };
    int64_t k = 0;
    for (; k + 2 * SIDE <= kn; k += 2 * SIDE)
        for (int x = 0; x < width; x += SIDE) {
            word_lanes row[SIDE];
            for (int i = 0; i < SIDE; i++) {
                short_lanes value;
                memcpy(&value, from + (x + i) * step + k, sizeof value);
                row[i] = (word_lanes)part_of(parts, part, is_unsigned, value);
            }
            transpose_words(row);
            for (int i = 0; i < SIDE; i++)
                memcpy(to + (k / 2 + i) * width + x, &row[transposed_row(i)], sizeof row[i]);
        }
    return k;
}

// Packs part `part` of a panel of `width` rows, of which `count` exist: element (x, k) is at
// from[x * x_step + k * k_step], one of the steps is 1.
KG_INLINE void pack_short_part(const int parts, const int part, const bool is_unsigned,
                               const bool k_major, const int16_t *from, int64_t step, int64_t count,
                               int64_t kn, const int width, uint32_t *to)
{
    if (k_major) {
        const bool squares = width % KG_SHORT_LANES == 0 && count == width;
        const int64_t start =
            squares ? pack_short_squares(parts, part, is_unsigned, from, step, kn, width, to) : 0;
        for (int64_t x = 0; x < count; x++) {
            const int16_t *row = from + x * step;
            for (int64_t k = start / 2; k < kn / 2; k++)
                to[k * width + x] =
                    short_pair(parts, part, is_unsigned, row[2 * k], row[2 * k + 1]);
            if (kn % 2)
                to[kn / 2 * width + x] = short_pair(parts, part, is_unsigned, row[kn - 1], 0);
        }
    } else {
        for (int64_t k = 0; k < kn / 2; k++) {
            const int16_t *even = from + 2 * k * step, *odd = even + step;
            for (int64_t x = 0; x < count; x++)
                to[k * width + x] = short_pair(parts, part, is_unsigned, even[x], odd[x]);
        }
        if (kn % 2)
            for (int64_t x = 0; x < count; x++)
                to[kn / 2 * width + x] =
                    short_pair(parts, part, is_unsigned, from[(kn - 1) * step + x], 0);
    }
    for (int64_t k = 0; k < ceiling(kn, 2); k++)
        for (int64_t x = count; x < width; x++)
            to[k * width + x] = 0;
}

KG_INLINE void pack_short_panel(const int parts, const int part, const bool is_unsigned,
                                const bool k_major, const int16_t *from, int64_t step,
                                int64_t count, int64_t kn, const int width, uint32_t *to)
{
    if (count >= width) // a loop of a known length
        pack_short_part(parts, part, is_unsigned, k_major, from, step, width, kn, width, to);
    else
        pack_short_part(parts, part, is_unsigned, k_major, from, step, count, kn, width, to);
}

// Packs rows [x0, x0 + xn) and terms [k0, k0 + kn) of an operand; panels of a part follow one
// another, and so do parts.
KG_INLINE void pack_shorts(const struct job *job, const struct operand *operand, const int parts,
                           const bool is_unsigned, const bool k_major, int64_t x0, int64_t xn,
                           int64_t k0, int64_t kn, const int width, uint32_t *to)
{
    int16_t *stage = (int16_t *)job->stage;
    // The stage holds as many elements of 64 bits, and lines of memory are read in long runs.
    const int64_t x_step = k_major ? width : KG_STAGE / 4 / width * width;
    const int64_t k_step = k_major ? 2 * KG_STAGE / width / 2 * 2 : 8;
    const int64_t length = ceiling(kn, 2) * width; // of a panel
    const int64_t panels = ceiling(xn, width);
    for (int64_t x = 0; x < xn; x += x_step)
        for (int64_t k = 0; k < kn; k += k_step) {
            const int64_t rows = least(x_step, xn - x), depth = least(k_step, kn - k);
            const int64_t step = k_major ? depth : rows;
            operand->shorts(job->call, job->batch, x0 + x, rows, k0 + k, depth, stage, step);
            for (int64_t i = 0; i < rows; i += width)
                for (int part = 0; part < parts; part++)
                    pack_short_panel(parts, part, is_unsigned, k_major,
                                     stage + (k_major ? i * step : i), step, rows - i, depth, width,
                                     to + (part * panels + (x + i) / width) * length +
                                         k / 2 * width);
        }
}

KG_APART void pack_short_rows(const struct job *job, int64_t x0, int64_t xn, int64_t k0, int64_t kn)
{
    pack_shorts(job, &operand_a, KG_A_PARTS, KG_A_UNSIGNED, KG_A_ALONG_K, x0, xn, k0, kn, KG_ROWS,
                (uint32_t *)job->rows);
}

KG_APART void pack_short_columns(const struct job *job, int64_t x0, int64_t xn, int64_t k0,
                                 int64_t kn)
{
    pack_shorts(job, &operand_b, KG_B_PARTS, KG_B_UNSIGNED, KG_B_ALONG_K, x0, xn, k0, kn,
                KG_SHORT_COLUMNS, (uint32_t *)job->columns);
}

// tile += a b << shift over `pairs` pairs of k; with `first` the tile starts at zero.
KG_INLINE void multiply_shorts(const int high, int64_t pairs, const uint32_t *a, const uint32_t *b,
                               bool first, int shift, KG_REAL *tile)
{
    word_lanes sum[KG_ROWS][KG_VECTORS];
    for (int i = 0; i < high; i++)
        for (int j = 0; j < KG_VECTORS; j++)
            sum[i][j] = (word_lanes){0};
#pragma GCC unroll 4
    for (int64_t k = 0; k < pairs; k++) {
        word_lanes right[KG_VECTORS];
        for (int j = 0; j < KG_VECTORS; j++)
            right[j] = ((const word_lanes *)b)[k * KG_VECTORS + j];
        for (int i = 0; i < high; i++) {
            const word_lanes left = (int32_t)a[k * KG_ROWS + i] - (word_lanes){0};
            for (int j = 0; j < KG_VECTORS; j++)
                sum[i][j] += add_products(left, right[j]);
        }
    }
    for (int i = 0; i < high; i++) {
        int32_t row[KG_SHORT_COLUMNS];
        KG_REAL *to = tile + i * KG_SHORT_COLUMNS;
        memcpy(row, sum[i], sizeof row);
        for (int c = 0; c < KG_SHORT_COLUMNS; c++) {
            const KG_REAL value = (KG_REAL)((uint64_t)(KG_REAL)row[c] << shift);
            to[c] = first ? value : to[c] + value;
        }
    }
}

KG_APART void multiply_shorts_high(int64_t pairs, const uint32_t *a, const uint32_t *b, bool first,
                                   int shift, KG_REAL *tile)
{
    multiply_shorts(KG_ROWS, pairs, a, b, first, shift, tile);
}

KG_APART void multiply_shorts_low(int64_t pairs, const uint32_t *a, const uint32_t *b, bool first,
                                  int shift, KG_REAL *tile)
{
    multiply_shorts(KG_LOWEST_ROWS, pairs, a, b, first, shift, tile);
}

// Multiplies packed panels; finished tiles go to the epilogue.
static void run_short_block(const struct job *job, const struct block *b)
{
    enum { WIDTH = KG_SHORT_COLUMNS, TILE = KG_ROWS * WIDTH };
    _Alignas(64) KG_REAL done[TILE];
    const uint32_t *left = (const uint32_t *)job->rows, *right = (const uint32_t *)job->columns;
    const int64_t across = ceiling(b->columns, WIDTH), down = ceiling(b->rows, KG_ROWS);
    const int64_t pairs = ceiling(b->kn, 2);
    for (int64_t j = 0; j < across; j++)
        for (int64_t i = 0; i < down; i++) {
            const int64_t rows = least(KG_ROWS, b->rows - i * KG_ROWS);
            const bool only = b->first && b->last;
            KG_REAL *tile =
                only ? done : job->sums + ((b->above / KG_ROWS + i) * across + j) * TILE;
            for (int q = 0; q < KG_B_PARTS; q++)
                for (int p = 0; p < KG_A_PARTS; p++) {
                    const uint32_t *from_a = left + (p * down + i) * pairs * KG_ROWS;
                    const uint32_t *from_b = right + (q * across + j) * pairs * WIDTH;
                    const bool first = b->first && p + q == 0;
                    if (rows > KG_LOWEST_ROWS)
                        multiply_shorts_high(pairs, from_a, from_b, first, 8 * (p + q), tile);
                    else
                        multiply_shorts_low(pairs, from_a, from_b, first, 8 * (p + q), tile);
                }
            if (b->last)
                store_tile(job, b->row + i * KG_ROWS, rows, b->column + j * WIDTH,
                           least(WIDTH, b->columns - j * WIDTH), tile, WIDTH);
        }
}

static void run_shorts(const struct job *job, int64_t row, int64_t rows, int64_t column,
                       int64_t columns)
{
    const struct plan *p = job->plan;
    for (int64_t k = 0; k < job->kn; k += p->block_k) {
        const int64_t k0 = job->k0 + k, kn = least(p->block_k, job->kn - k);
        pack_short_columns(job, column, columns, k0, kn);
        for (int64_t above = 0; above < rows; above += p->block_rows) {
            const struct block block = {
                .row = row + above,
                .rows = least(p->block_rows, rows - above),
                .column = column,
                .columns = columns,
                .above = above,
                .kn = kn,
                .first = k == 0,
                .last = k + kn == job->kn,
            };
            pack_short_rows(job, block.row, block.rows, k0, kn);
            run_short_block(job, &block);
        }
    }
}
#endif
