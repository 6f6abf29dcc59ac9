// The path for matrices: panels of rows and columns, walked along k by a tile of KG_ROWS rows of
// KG_VECTORS vectors in registers. Sums over k are cut into blocks: a block starts at zero and is
// added to what stood before, which keeps the panels in cache and the rounding of long sums small.
//
// Where columns lie side by side in memory, the first panel of rows multiplies while they are
// packed: memory is the limit then. With so few rows nothing needs packing at all.

// Steps of k in one pass of `stream`, and rows of the lower tile.
enum { KG_DEEP = 8, KG_LOW = (2 * KG_ROWS + 2) / 3 };

KG_APART void pack_rows(const struct job *job, int64_t x0, int64_t xn, int64_t k0, int64_t kn)
{
    pack(job, job->plan->rows, x0, xn, k0, kn, KG_ROWS, job->rows);
}

KG_APART void pack_columns(const struct job *job, int64_t x0, int64_t xn, int64_t k0, int64_t kn,
                           KG_REAL *to)
{
    pack(job, job->plan->columns, x0, xn, k0, kn, KG_COLUMNS, to);
}

// sum += a b over `kn` steps of k; b is copied to `copy` on the way when `keep`.
KG_INLINE void walk(const int high, const bool keep, int64_t kn, const KG_REAL *a, const KG_REAL *b,
                    int64_t stride, KG_REAL *copy, vector sum[KG_ROWS][KG_VECTORS])
{
#pragma GCC unroll 4
    for (int64_t k = 0; k < kn; k++) {
        vector right[KG_VECTORS];
        for (int j = 0; j < KG_VECTORS; j++)
            right[j] = ((const loose_vector *)b)[j];
        if (keep)
            for (int j = 0; j < KG_VECTORS; j++)
                ((vector *)copy)[k * KG_VECTORS + j] = right[j];
        for (int i = 0; i < high; i++) {
            const KG_REAL left = a[i];
            for (int j = 0; j < KG_VECTORS; j++)
                sum[i][j] += left * right[j];
        }
        a += KG_ROWS;
        b += stride;
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
    walk(high, false, kn, a, b, KG_COLUMNS, NULL, sum);
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

KG_APART void multiply_low(int64_t kn, const KG_REAL *a, const KG_REAL *b, const KG_REAL *before,
                           KG_REAL *result)
{
    multiply(KG_LOW, kn, a, b, before, result);
}

// fresh = a b for the first panel of rows and `panels` panels of columns where they lie, `stride`
// apart from one k to the next. A few k at a time, so that memory is read in long rows.
KG_INLINE void stream(const int high, const bool keep, int64_t panels, int64_t kn, const KG_REAL *a,
                      const KG_REAL *b, int64_t stride, KG_REAL *packed, KG_REAL *fresh)
{
    for (int64_t k = 0; k < kn; k += KG_DEEP)
        for (int64_t j = 0; j < panels; j++) {
            vector *tile = (vector *)(fresh + j * KG_TILE);
            KG_REAL *copy = packed + (j * kn + k) * KG_COLUMNS;
            const KG_REAL *from = b + k * stride + j * KG_COLUMNS;
            vector sum[KG_ROWS][KG_VECTORS];
            for (int i = 0; i < high; i++)
                for (int c = 0; c < KG_VECTORS; c++)
                    sum[i][c] = k ? tile[i * KG_VECTORS + c] : (vector){0};
            if (kn - k >= KG_DEEP)
                walk(high, keep, KG_DEEP, a + k * KG_ROWS, from, stride, copy, sum);
            else
                walk(high, keep, kn - k, a + k * KG_ROWS, from, stride, copy, sum);
            for (int i = 0; i < high; i++)
                for (int c = 0; c < KG_VECTORS; c++)
                    tile[i * KG_VECTORS + c] = sum[i][c];
        }
}

// The same for one or two rows, whose part of `a` stays in registers for all columns.
KG_INLINE void stream_few(const int high, const int deep, bool first, int64_t panels,
                          const KG_REAL *a, const KG_REAL *b, int64_t stride, KG_REAL *fresh)
{
    KG_REAL left[KG_DEEP];
    for (int i = 0; i < high; i++)
        for (int k = 0; k < deep; k++)
            left[i * deep + k] = a[k * KG_ROWS + i];
    for (int64_t j = 0; j < panels; j++)
        for (int c = 0; c < KG_VECTORS; c++) {
            vector *tile = (vector *)(fresh + j * KG_TILE) + c;
            const KG_REAL *from = b + j * KG_COLUMNS + c * KG_LANES;
            vector sum[2];
            for (int i = 0; i < high; i++)
                sum[i] = first ? (vector){0} : tile[i * KG_VECTORS];
            for (int k = 0; k < deep; k++) {
                const vector right = *(const loose_vector *)(from + k * stride);
                for (int i = 0; i < high; i++)
                    sum[i] += left[i * deep + k] * right;
            }
            for (int i = 0; i < high; i++)
                tile[i * KG_VECTORS] = sum[i];
        }
}

KG_APART void stream_one(int64_t panels, int64_t kn, const KG_REAL *a, const KG_REAL *b,
                         int64_t stride, KG_REAL *fresh)
{
    int64_t k = 0;
    for (; k + KG_DEEP <= kn; k += KG_DEEP)
        stream_few(1, KG_DEEP, k == 0, panels, a + k * KG_ROWS, b + k * stride, stride, fresh);
    for (; k < kn; k++)
        stream_few(1, 1, k == 0, panels, a + k * KG_ROWS, b + k * stride, stride, fresh);
}

KG_APART void stream_two(int64_t panels, int64_t kn, const KG_REAL *a, const KG_REAL *b,
                         int64_t stride, KG_REAL *fresh)
{
    int64_t k = 0;
    for (; k + KG_DEEP / 2 <= kn; k += KG_DEEP / 2)
        stream_few(2, KG_DEEP / 2, k == 0, panels, a + k * KG_ROWS, b + k * stride, stride, fresh);
    for (; k < kn; k++)
        stream_few(2, 1, k == 0, panels, a + k * KG_ROWS, b + k * stride, stride, fresh);
}

KG_APART void stream_columns(const struct job *job, int64_t rows, int64_t panels, int64_t kn,
                             const KG_REAL *b, int64_t stride)
{
    if (rows > KG_ROWS)
        stream(KG_ROWS, true, panels, kn, job->rows, b, stride, job->columns, job->fresh);
    else if (rows > KG_LOW)
        stream(KG_ROWS, false, panels, kn, job->rows, b, stride, job->columns, job->fresh);
    else if (rows > 2)
        stream(KG_LOW, false, panels, kn, job->rows, b, stride, job->columns, job->fresh);
    else if (rows > 1)
        stream_two(panels, kn, job->rows, b, stride, job->fresh);
    else
        stream_one(panels, kn, job->rows, b, stride, job->fresh);
}

// One panel of rows against one panel of columns, in one block of k. `fresh`: it is done already.
KG_INLINE void run_tile(int64_t rows, int64_t kn, const KG_REAL *a, const KG_REAL *b,
                        const KG_REAL *fresh, const KG_REAL *before, KG_REAL *result)
{
    if (fresh)
        for (int i = 0; i < KG_TILE; i++)
            result[i] = before ? before[i] + fresh[i] : fresh[i];
    else if (rows > KG_LOW)
        multiply_high(kn, a, b, before, result);
    else
        multiply_low(kn, a, b, before, result);
}

static void run_panels(const struct job *job, int64_t row, int64_t rows, int64_t column,
                       int64_t columns)
{
    const struct plan *p = job->plan;
    _Alignas(64) KG_REAL done[KG_TILE];
    struct view view;
    const bool flat = p->columns->direct(job->call, job->batch, &view) && view.x == 1;
    const int64_t panels = ceiling(columns, KG_COLUMNS);
    const int64_t streamed = flat && job->kn > 0 ? columns / KG_COLUMNS : 0;
    int64_t k = 0;
    do { // once for an empty k, too
        const int64_t k0 = job->k0 + k, kn = least(p->block_k, job->kn - k);
        const bool last = k + kn == job->kn;
        for (int64_t block = 0; block < rows; block += p->block_rows) {
            const int64_t high = least(p->block_rows, rows - block);
            pack_rows(job, row + block, high, k0, kn);
            if (block == 0 && streamed > 0)
                stream_columns(job, rows, streamed, kn, view.data + column + k0 * view.k, view.k);
            if (block == 0 && streamed < panels)
                pack_columns(job, column + streamed * KG_COLUMNS, columns - streamed * KG_COLUMNS,
                             k0, kn, job->columns + streamed * kn * KG_COLUMNS);
            for (int64_t j = 0; j < panels; j++)
                for (int64_t i = 0; i < high; i += KG_ROWS) {
                    const int64_t at = (block + i) / KG_ROWS * panels + j;
                    KG_REAL *sums = job->sums + at * KG_TILE;
                    const bool done_already = block + i == 0 && j < streamed;
                    run_tile(high - i, kn, job->rows + i * kn, job->columns + j * kn * KG_COLUMNS,
                             done_already ? job->fresh + j * KG_TILE : NULL, k ? sums : NULL,
                             last ? done : sums);
                    if (last)
                        deliver(job, row + block + i, least(KG_ROWS, high - i),
                                column + j * KG_COLUMNS,
                                least(KG_COLUMNS, columns - j * KG_COLUMNS), done, KG_COLUMNS);
                }
        }
        k += kn;
    } while (k < job->kn);
}
