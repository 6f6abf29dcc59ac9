// Packs blocks of an operand into panels, and passes tiles of sums to the epilogue.

struct operand {
    bool (*direct)(const struct kg_host_call *call, int64_t item, struct view *view);
    void (*fill)(const struct kg_host_call *call, int64_t item, int64_t row, int64_t rows,
                 int64_t start, int64_t depth, KG_REAL *restrict to, int64_t width);
    bool k_major;
#if KG_SHORTS
    void (*shorts)(const struct kg_host_call *call, int64_t item, int64_t row, int64_t rows,
                   int64_t start, int64_t depth, int16_t *restrict to, int64_t width);
    int parts;
    bool is_unsigned;
#endif
};

#if KG_SHORTS
static const struct operand operand_a = {a_direct, a_fill,     KG_A_ALONG_K,
                                         a_shorts, KG_A_PARTS, KG_A_UNSIGNED};
static const struct operand operand_b = {b_direct, b_fill,     KG_B_ALONG_K,
                                         b_shorts, KG_B_PARTS, KG_B_UNSIGNED};
#else
static const struct operand operand_a = {a_direct, a_fill, KG_A_ALONG_K};
static const struct operand operand_b = {b_direct, b_fill, KG_B_ALONG_K};
#endif

// The plan of a call, made in contract_entry.h.
struct plan {
    struct extents size;
    bool pairs;   // uses contract_pairs.h
    bool shorts;  // uses contract_shorts.h
    bool dots;    // uses contract_dots.h
    bool few;     // uses contract_few.h
    bool scaled;  // uses contract_scaled.h or, for more rows, contract_scaled_panels.h
    bool lines;   // of these, contract_scaled_lines.h; if none, contract_panels.h
    bool tiles;   // and contract_scaled_tiles.h
    bool swapped; // rows are B and columns A: tiles are transposed before the epilogue
    bool stream;  // adjacent columns are contiguous in memory
    const struct operand *rows, *columns;
    int64_t row_count, column_count;
    int64_t tile_rows, tile_columns; // of one item
    int64_t tiles_down, tiles_across;
    int64_t block_rows, block_k; // block that is packed at a time
    int64_t slabs, slab_k;       // split-K: ranges of k whose partial sums are added later
    int64_t items;
};

// The state of one thread for one item.
struct job {
    const struct kg_host_call *call;
    const struct plan *plan;
    KG_REAL *stage, *rows, *columns, *fresh, *sums, *scaled; // workspace
    int64_t batch, slab;
    int64_t k0, kn; // the slab
};

// Square blocks of vectors are transposed in registers by exchanging halves of ever larger groups.
#define KG_LIST(...) __VA_ARGS__
#define KG_EXCHANGES_2(EXCHANGE) EXCHANGE(1, KG_LIST(0, 2), KG_LIST(1, 3))
#define KG_EXCHANGES_4(EXCHANGE)                                                                   \
    EXCHANGE(1, KG_LIST(0, 4, 1, 5), KG_LIST(2, 6, 3, 7))                                          \
    EXCHANGE(2, KG_LIST(0, 1, 4, 5), KG_LIST(2, 3, 6, 7))
#define KG_EXCHANGES_8(EXCHANGE)                                                                   \
    EXCHANGE(1, KG_LIST(0, 8, 1, 9, 4, 12, 5, 13), KG_LIST(2, 10, 3, 11, 6, 14, 7, 15))            \
    EXCHANGE(2, KG_LIST(0, 1, 8, 9, 4, 5, 12, 13), KG_LIST(2, 3, 10, 11, 6, 7, 14, 15))            \
    EXCHANGE(4, KG_LIST(0, 1, 2, 3, 8, 9, 10, 11), KG_LIST(4, 5, 6, 7, 12, 13, 14, 15))
#define KG_EXCHANGES_16(EXCHANGE)                                                                  \
    EXCHANGE(1, KG_LIST(0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29),                 \
             KG_LIST(2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31))                  \
    EXCHANGE(2, KG_LIST(0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29),                 \
             KG_LIST(2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31))                  \
    EXCHANGE(4, KG_LIST(0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27),                 \
             KG_LIST(4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31))                  \
    EXCHANGE(8, KG_LIST(0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23),                   \
             KG_LIST(8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31))
#if KG_LANES == 2
#define KG_EXCHANGES KG_EXCHANGES_2
#elif KG_LANES == 4
#define KG_EXCHANGES KG_EXCHANGES_4
#elif KG_LANES == 8
#define KG_EXCHANGES KG_EXCHANGES_8
#else
#define KG_EXCHANGES KG_EXCHANGES_16
#endif

// Row i of the transposed block is in register transposed_row(i).
KG_INLINE void transpose(vector row[KG_LANES])
{
#define KG_EXCHANGE(step, low, high)                                                               \
    for (int i = 0; i < KG_LANES; i++)                                                             \
        if (!(i & (step))) {                                                                       \
            const vector one = row[i], two = row[i + (step)];                                      \
            row[i] = KG_SHUFFLE(one, two, low);                                                    \
            row[i + (step)] = KG_SHUFFLE(one, two, high);                                          \
        }
    KG_EXCHANGES(KG_EXCHANGE)
}

KG_INLINE int transposed_row(int i)
{
    return KG_LANES < 4 ? i : (i & ~3) | (i & 1) << 1 | (i & 2) >> 1;
}

// Lane i of the result is the sum of the lanes of row i.
KG_INLINE vector add_across(vector row[KG_LANES])
{
#define KG_FOLD(step, low, high)                                                                   \
    for (int i = 0; i < KG_LANES; i += 2 * (step)) {                                               \
        const vector one = row[i], two = row[i + (step)];                                          \
        row[i] = KG_SHUFFLE(one, two, low) + KG_SHUFFLE(one, two, high);                           \
    }
    KG_EXCHANGES(KG_FOLD)
    return row[0];
}

// A block of an operand: in place, or computed into the stage, which must be large enough.
KG_INLINE struct view operand_view(const struct job *job, const struct operand *operand, int64_t x0,
                                   int64_t xn, int64_t k0, int64_t kn)
{
    struct view view;
    if (operand->direct(job->call, job->batch, &view))
        return moved(view, x0, k0);
    operand->fill(job->call, job->batch, x0, xn, k0, kn, job->stage, operand->k_major ? kn : xn);
    return operand->k_major ? (struct view){job->stage, kn, 1, false}
                            : (struct view){job->stage, 1, xn, false};
}

// to[k * width + x] = from(x, k), in the general case and for the last panel, whose missing rows
// are zero.
KG_APART void pack_any(const bool halves, struct view from, int64_t xn, int64_t kn, int width,
                       KG_REAL *to)
{
    for (int64_t k = 0; k < kn; k++) {
        const int64_t rows = least(xn, width);
        if (from.x == 1)
            for (int64_t x = 0; x < rows; x++)
                to[k * width + x] = element(halves, from.data, x + k * from.k);
        else
            for (int64_t x = 0; x < rows; x++)
                to[k * width + x] = element(halves, from.data, x * from.x + k * from.k);
        for (int64_t x = rows; x < width; x++)
            to[k * width + x] = 0;
    }
}

// Packs a full panel of rows that are contiguous along x.
KG_INLINE void pack_straight(const bool halves, struct view from, int64_t kn, int width,
                             KG_REAL *to)
{
    for (int64_t k = 0; k < kn; k++) {
        int x = 0;
        for (; x + KG_LANES <= width; x += KG_LANES)
            *(loose_vector *)(to + k * width + x) = elements(halves, from.data, x + k * from.k);
        for (; x < width; x++)
            to[k * width + x] = element(halves, from.data, x + k * from.k);
    }
}

// Packs a full panel of rows that are contiguous along k. Square blocks are stored as whole
// vectors, up to KG_LANES - 1 elements past their rows; those elements are overwritten later: by
// the next k, by the blocks of lower rows, or by the next panel.
KG_INLINE void pack_transposed(const bool halves, struct view from, int64_t kn, int width,
                               KG_REAL *to)
{
    const int64_t whole = kn / KG_LANES * KG_LANES;
    for (int x = (width - 1) / KG_LANES * KG_LANES; x >= 0; x -= KG_LANES)
        for (int64_t k = 0; k < whole; k += KG_LANES) {
            vector row[KG_LANES];
            for (int i = 0; i < KG_LANES; i++)
                row[i] =
                    elements(halves, from.data, (x + i < width ? x + i : width - 1) * from.x + k);
            transpose(row);
            for (int i = 0; i < KG_LANES; i++)
                *(loose_vector *)(to + (k + i) * width + x) = row[transposed_row(i)];
        }
    for (int64_t k = whole; k < kn; k++)
        for (int x = 0; x < width; x++)
            to[k * width + x] = element(halves, from.data, x * from.x + k);
}

// Packs a block into panels `stride` elements apart. Compilers take long for it, so it is no part
// of its callers.
KG_APART void pack_view(const bool halves, struct view from, int64_t xn, int64_t kn, int width,
                        KG_REAL *to, int64_t stride)
{
    // Rows along x are long. Eight at a time pass through all panels, as many as a cache has ways,
    // because their addresses may map to the same set.
    const int64_t step = from.x == 1 ? 8 : kn;
    for (int64_t k = 0; k < kn; k += step) {
        const int64_t depth = least(step, kn - k);
        for (int64_t x = 0; x < xn; x += width) {
            const struct view part = moved(from, x, k);
            KG_REAL *panel = to + x / width * stride + k * width;
            if (xn - x < width || (from.x != 1 && from.k != 1))
                pack_any(halves, part, xn - x, depth, width, panel);
            else if (from.x == 1)
                pack_straight(halves, part, depth, width, panel);
            else
                pack_transposed(halves, part, depth, width, panel);
        }
    }
}

// Packs rows [x0, x0 + xn), terms [k0, k0 + kn) of an operand into panels of kn * width elements.
// Writes up to KG_LANES elements past the last panel.
KG_INLINE void pack(const struct job *job, const struct operand *operand, int64_t x0, int64_t xn,
                    int64_t k0, int64_t kn, int width, KG_REAL *to)
{
    struct view view;
    const bool direct = operand->direct(job->call, job->batch, &view);
    const int64_t x_step = direct ? xn : operand->k_major ? width : KG_STAGE / 8 / width * width;
    const int64_t k_step = direct             ? kn
                           : operand->k_major ? KG_STAGE / width / KG_LANES * KG_LANES
                                              : 8;
    for (int64_t x = 0; x < xn; x += x_step)
        for (int64_t k = 0; k < kn; k += k_step) {
            const int64_t rows = least(x_step, xn - x), depth = least(k_step, kn - k);
            const struct view part = operand_view(job, operand, x0 + x, rows, k0 + k, depth);
            KG_REAL *panels = to + x / width * kn * width + k * width;
            if (has_halves(&part))
                pack_view(true, part, rows, depth, width, panels, kn * width);
            else
                pack_view(false, part, rows, depth, width, panels, kn * width);
        }
}

// Passes a tile of sums, rows `width` apart, to the epilogue or, with split-K, to the partial sums.
static void store_tile(const struct job *job, int64_t row, int64_t rows, int64_t column,
                       int64_t columns, const KG_REAL *tile, int64_t width)
{
    const struct plan *p = job->plan;
    if (p->slabs > 1) {
        KG_REAL *to = (KG_REAL *)job->call->shared +
                      (job->slab * p->size.batch + job->batch) * p->size.m * p->size.n;
        const int64_t down = p->swapped ? 1 : p->size.n, across = p->swapped ? p->size.n : 1;
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < columns; c++)
                to[(row + r) * down + (column + c) * across] = tile[r * width + c];
    } else if (!p->swapped) {
        finish(job->call, job->batch, row, rows, column, columns, tile, width);
    } else {
        const int64_t step = KG_STAGE / rows;
        for (int64_t c = 0; c < columns; c += step) {
            const int64_t count = least(step, columns - c);
            for (int64_t i = 0; i < count; i++)
                for (int64_t r = 0; r < rows; r++)
                    job->stage[i * rows + r] = tile[r * width + c + i];
            finish(job->call, job->batch, column + c, count, row, rows, job->stage, rows);
        }
    }
}
