// The path for matrices: packed panels of rows and columns, multiplied by a microkernel with a
// register tile of KG_ROWS rows of KG_VECTORS vectors. Sums over k are divided into blocks: a block
// starts at zero and is added to the previous sum, which keeps the panels in the cache and the
// rounding error of long sums small.
//
// If adjacent columns are contiguous in memory, the first panel of rows is multiplied while the
// columns are packed, because memory is the limit then. With so few rows nothing needs packing at
// all.

enum {
    KG_STREAM_DEPTH = 8,           // steps of k in one pass of `stream`
    KG_LOW_ROWS = 2 * KG_ROWS / 3, // rows of the smaller register tile, for remaining rows
    KG_LOWEST_ROWS = KG_LOW_ROWS < 4 ? KG_LOW_ROWS : 4,
};

KG_APART void pack_rows(const struct job *job, int64_t x0, int64_t xn, int64_t k0, int64_t kn)
{
    pack(job, job->plan->rows, x0, xn, k0, kn, KG_ROWS, job->rows);
}

KG_APART void pack_columns(const struct job *job, int64_t x0, int64_t xn, int64_t k0, int64_t kn,
                           KG_REAL *to)
{
    pack(job, job->plan->columns, x0, xn, k0, kn, KG_COLUMNS, to);
}

// The microkernel: sum += a b over `kn` steps of k. Steps of b are `stride` elements apart, and the
// first is element `at`; with `keep` they are also packed into `copy`.
KG_INLINE void microkernel(const int high, const bool halves, const bool keep, int64_t kn,
                           const KG_REAL *a, const void *b, int64_t at, int64_t stride,
                           KG_REAL *copy, vector sum[KG_ROWS][KG_VECTORS])
{
#pragma GCC unroll 4
    for (int64_t k = 0; k < kn; k++) {
        vector right[KG_VECTORS];
        for (int j = 0; j < KG_VECTORS; j++)
            right[j] = elements(halves, b, at + j * KG_LANES);
        if (keep)
            for (int j = 0; j < KG_VECTORS; j++)
                ((vector *)copy)[k * KG_VECTORS + j] = right[j];
        for (int i = 0; i < high; i++) {
            const KG_REAL left = a[i];
            for (int j = 0; j < KG_VECTORS; j++)
                sum[i][j] += multiple(left, right[j]);
        }
        a += KG_ROWS;
        at += stride;
    }
}

// result = before + a b over packed panels; `before` may be NULL.
KG_INLINE void multiply(const int high, int64_t kn, const KG_REAL *a, const KG_REAL *b,
                        const KG_REAL *before, KG_REAL *result)
{
    vector sum[KG_ROWS][KG_VECTORS];
    for (int i = 0; i < high; i++)
        for (int j = 0; j < KG_VECTORS; j++)
            sum[i][j] = (vector){0};
    microkernel(high, false, false, kn, a, b, 0, KG_COLUMNS, NULL, sum);
    for (int i = 0; i < high; i++)
        for (int j = 0; j < KG_VECTORS; j++) {
            if (before)
                sum[i][j] += ((const vector *)before)[i * KG_VECTORS + j];
            ((vector *)result)[i * KG_VECTORS + j] = sum[i][j];
        }
}

KG_APART void multiply_high(int64_t kn, const KG_REAL *a, const KG_REAL *b, const KG_REAL *before,
                            KG_REAL *result)
{
    multiply(KG_ROWS, kn, a, b, before, result);
}

KG_APART void multiply_lowest(int64_t kn, const KG_REAL *a, const KG_REAL *b, const KG_REAL *before,
                              KG_REAL *result)
{
    multiply(KG_LOWEST_ROWS, kn, a, b, before, result);
}

KG_APART void multiply_low(int64_t kn, const KG_REAL *a, const KG_REAL *b, const KG_REAL *before,
                           KG_REAL *result)
{
    multiply(KG_LOW_ROWS, kn, a, b, before, result);
}

// A few steps of k of the first panel of rows against `panels` panels of contiguous columns.
struct strip {
    int64_t panels;
    const KG_REAL *a;
    struct view b;
    bool first;     // the first block of k: sums start at zero
    KG_REAL *fresh; // the sums, one tile for each panel
    KG_REAL *copy;  // columns are packed into it, panels `copy_stride` apart
    int64_t copy_stride;
};

KG_INLINE void stream(const int high, const bool halves, const bool keep, int64_t deep,
                      const struct strip *s)
{
    for (int64_t j = 0; j < s->panels; j++) {
        vector *tile = (vector *)(s->fresh + j * KG_TILE);
        vector sum[KG_ROWS][KG_VECTORS];
        for (int i = 0; i < high; i++)
            for (int c = 0; c < KG_VECTORS; c++)
                sum[i][c] = s->first ? (vector){0} : tile[i * KG_VECTORS + c];
        microkernel(high, halves, keep, deep, s->a, s->b.data, j * KG_COLUMNS, s->b.k,
                    keep ? s->copy + j * s->copy_stride : NULL, sum);
        for (int i = 0; i < high; i++)
            for (int c = 0; c < KG_VECTORS; c++)
                tile[i * KG_VECTORS + c] = sum[i][c];
    }
}

// The same for one or two rows, whose elements of `a` stay in registers for all columns. Members of
// `s` are copied, too, because the compiler must assume that storing sums changes them.
KG_INLINE void stream_few(const int high, const bool halves, const int deep, const int from,
                          bool first, const struct strip *s)
{
    const int64_t panels = s->panels, stride = s->b.k;
    const void *b = s->b.data;
    int64_t at = from * stride;
    KG_REAL *fresh = s->fresh, left[KG_STREAM_DEPTH];
    for (int i = 0; i < high; i++)
        for (int k = 0; k < deep; k++)
            left[i * deep + k] = s->a[(from + k) * KG_ROWS + i];
    for (int64_t j = 0; j < panels; j++)
        for (int c = 0; c < KG_VECTORS; c++, at += KG_LANES) {
            vector *tile = (vector *)(fresh + j * KG_TILE) + c;
            vector sum[2];
            for (int i = 0; i < high; i++)
                sum[i] = first ? (vector){0} : tile[i * KG_VECTORS];
            for (int k = 0; k < deep; k++) {
                const vector right = elements(halves, b, at + k * stride);
                for (int i = 0; i < high; i++)
                    sum[i] += multiple(left[i * deep + k], right);
            }
            for (int i = 0; i < high; i++)
                tile[i * KG_VECTORS] = sum[i];
        }
}

KG_INLINE void stream_rows(int64_t rows, const bool halves, int64_t deep, const struct strip *s)
{
    if (rows > KG_ROWS || deep < KG_STREAM_DEPTH) {
        stream(KG_ROWS, halves, true, deep, s);
    } else if (rows > KG_LOW_ROWS) {
        stream(KG_ROWS, halves, false, KG_STREAM_DEPTH, s);
    } else if (rows > KG_LOWEST_ROWS) {
        stream(KG_LOW_ROWS, halves, false, KG_STREAM_DEPTH, s);
    } else if (rows > 2) {
        stream(KG_LOWEST_ROWS, halves, false, KG_STREAM_DEPTH, s);
    } else if (rows == 2) { // all steps at once would not fit the registers
        stream_few(2, halves, KG_STREAM_DEPTH / 2, 0, s->first, s);
        stream_few(2, halves, KG_STREAM_DEPTH / 2, KG_STREAM_DEPTH / 2, false, s);
    } else {
        stream_few(1, halves, KG_STREAM_DEPTH, 0, s->first, s);
    }
}

// Multiplies `deep` steps of k, at most KG_STREAM_DEPTH.
KG_APART void stream_deep(int64_t rows, int64_t deep, const struct strip *s)
{
    if (has_halves(&s->b))
        stream_rows(rows, true, deep, s);
    else
        stream_rows(rows, false, deep, s);
}

// Multiplies `panels` full panels of columns with the first panel of rows in one block of k, and
// packs them if there are more rows. Memory is read in long lines, KG_STREAM_DEPTH of them at a
// time.
static void stream_columns(const struct job *job, int64_t rows, int64_t column, int64_t panels,
                           int64_t k0, int64_t kn)
{
    struct view view;
    const struct operand *operand = job->plan->columns;
    const bool direct = operand->direct(job->call, job->batch, &view);
    // Panels that fit the stage.
    const int64_t max = direct ? panels : KG_STAGE / KG_STREAM_DEPTH / KG_COLUMNS;
    for (int64_t k = 0; k < kn; k += KG_STREAM_DEPTH)
        for (int64_t j = 0; j < panels; j += max) {
            const int64_t deep = least(KG_STREAM_DEPTH, kn - k), count = least(max, panels - j);
            const struct view v = operand_view(job, operand, column + j * KG_COLUMNS,
                                               count * KG_COLUMNS, k0 + k, deep);
            const struct strip strip = {
                .panels = count,
                .a = job->rows + k * KG_ROWS,
                .b = v,
                .first = k == 0,
                .fresh = job->fresh + j * KG_TILE,
                .copy = job->columns + (j * kn + k) * KG_COLUMNS,
                .copy_stride = kn * KG_COLUMNS,
            };
            stream_deep(rows, deep, &strip);
        }
}

// One panel of rows against one panel of columns, in one block of k. `fresh`: the tile was computed
// by stream_columns.
KG_INLINE void run_tile(int64_t rows, int64_t kn, const KG_REAL *a, const KG_REAL *b,
                        const KG_REAL *fresh, const KG_REAL *before, KG_REAL *result)
{
    if (fresh)
        for (int i = 0; i < KG_TILE; i++)
            result[i] = before ? before[i] + fresh[i] : fresh[i];
    else if (rows > KG_LOW_ROWS)
        multiply_high(kn, a, b, before, result);
    else if (rows > KG_LOWEST_ROWS)
        multiply_low(kn, a, b, before, result);
    else
        multiply_lowest(kn, a, b, before, result);
}

// The block that run_block multiplies; finished tiles go to the epilogue.
struct block {
    int64_t row, rows; // first row in the item, and number of rows
    int64_t column, columns;
    int64_t above;    // rows of the item before these
    int64_t streamed; // panels of columns that the first panel of rows was multiplied with
    int64_t kn;
    bool first, last; // of the blocks of k
};

KG_INLINE void run_block_tile(const struct job *job, const struct block *b, int64_t i, int64_t j)
{
    _Alignas(64) KG_REAL done[KG_TILE];
    const int64_t panels = ceiling(b->columns, KG_COLUMNS);
    KG_REAL *sums = job->sums + ((b->above + i) / KG_ROWS * panels + j) * KG_TILE;
    const bool fresh = b->above + i == 0 && j < b->streamed;
    run_tile(b->rows - i, b->kn, job->rows + i * b->kn, job->columns + j * b->kn * KG_COLUMNS,
             fresh ? job->fresh + j * KG_TILE : NULL, b->first ? NULL : sums,
             b->last ? done : sums);
    if (b->last)
        store_tile(job, b->row + i, least(KG_ROWS, b->rows - i), b->column + j * KG_COLUMNS,
                   least(KG_COLUMNS, b->columns - j * KG_COLUMNS), done, KG_COLUMNS);
}

static void run_block(const struct job *job, const struct block *b)
{
    enum { NEAR = 1 << 18 }; // bytes that fit every second-level cache
    const int64_t panels = ceiling(b->columns, KG_COLUMNS);
    if (panels * KG_COLUMNS * b->kn * (int64_t)sizeof(KG_REAL) <= NEAR) {
        // All columns fit the cache: results are written in the order of memory.
        for (int64_t i = 0; i < b->rows; i += KG_ROWS)
            for (int64_t j = 0; j < panels; j++)
                run_block_tile(job, b, i, j);
    } else {
        // A panel of columns stays in the first-level cache while all rows use it.
        for (int64_t j = 0; j < panels; j++)
            for (int64_t i = 0; i < b->rows; i += KG_ROWS)
                run_block_tile(job, b, i, j);
    }
}

static void run_panels(const struct job *job, int64_t row, int64_t rows, int64_t column,
                       int64_t columns)
{
    const struct plan *p = job->plan;
    const int64_t panels = ceiling(columns, KG_COLUMNS);
    const int64_t streamed = p->stream && job->kn > 0 ? columns / KG_COLUMNS : 0;
    int64_t k = 0;
    do { // also once for an empty k
        const int64_t k0 = job->k0 + k, kn = least(p->block_k, job->kn - k);
        for (int64_t above = 0; above < rows; above += p->block_rows) {
            const struct block block = {
                .row = row + above,
                .rows = least(p->block_rows, rows - above),
                .column = column,
                .columns = columns,
                .above = above,
                .streamed = streamed,
                .kn = kn,
                .first = k == 0,
                .last = k + kn == job->kn,
            };
            pack_rows(job, block.row, block.rows, k0, kn);
            if (above == 0 && streamed > 0)
                stream_columns(job, rows, column, streamed, k0, kn);
            if (above == 0 && streamed < panels)
                pack_columns(job, column + streamed * KG_COLUMNS, columns - streamed * KG_COLUMNS,
                             k0, kn, job->columns + streamed * kn * KG_COLUMNS);
            run_block(job, &block);
        }
        k += kn;
    } while (k < job->kn);
}
