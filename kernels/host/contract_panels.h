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

// A few steps of k of the first panel of rows against `panels` panels of columns that lie side by
// side, `stride` apart from one k to the next.
struct strip {
    int64_t panels, stride;
    const KG_REAL *a, *b;
    bool first;     // sums begin here
    KG_REAL *fresh; // the sums, a tile for each panel
    KG_REAL *copy;  // columns are packed to here, panels `copy_stride` apart
    int64_t copy_stride;
};

KG_INLINE void stream(const int high, const bool keep, int64_t deep, const struct strip *s)
{
    for (int64_t j = 0; j < s->panels; j++) {
        vector *tile = (vector *)(s->fresh + j * KG_TILE);
        vector sum[KG_ROWS][KG_VECTORS];
        for (int i = 0; i < high; i++)
            for (int c = 0; c < KG_VECTORS; c++)
                sum[i][c] = s->first ? (vector){0} : tile[i * KG_VECTORS + c];
        walk(high, keep, deep, s->a, s->b + j * KG_COLUMNS, s->stride,
             keep ? s->copy + j * s->copy_stride : NULL, sum);
        for (int i = 0; i < high; i++)
            for (int c = 0; c < KG_VECTORS; c++)
                tile[i * KG_VECTORS + c] = sum[i][c];
    }
}

// The same for one or two rows, whose part of `a` stays in registers for all columns.
KG_INLINE void stream_few(const int high, const int deep, const int from, bool first,
                          const struct strip *s)
{
    KG_REAL left[KG_DEEP];
    for (int i = 0; i < high; i++)
        for (int k = 0; k < deep; k++)
            left[i * deep + k] = s->a[(from + k) * KG_ROWS + i];
    for (int64_t j = 0; j < s->panels; j++)
        for (int c = 0; c < KG_VECTORS; c++) {
            vector *tile = (vector *)(s->fresh + j * KG_TILE) + c;
            const KG_REAL *b = s->b + from * s->stride + j * KG_COLUMNS + c * KG_LANES;
            vector sum[2];
            for (int i = 0; i < high; i++)
                sum[i] = first ? (vector){0} : tile[i * KG_VECTORS];
            for (int k = 0; k < deep; k++) {
                const vector right = *(const loose_vector *)(b + k * s->stride);
                for (int i = 0; i < high; i++)
                    sum[i] += left[i * deep + k] * right;
            }
            for (int i = 0; i < high; i++)
                tile[i * KG_VECTORS] = sum[i];
        }
}

// KG_DEEP steps of k.
KG_APART void stream_deep(int64_t rows, const struct strip *s)
{
    if (rows > KG_ROWS) {
        stream(KG_ROWS, true, KG_DEEP, s);
    } else if (rows > KG_LOW) {
        stream(KG_ROWS, false, KG_DEEP, s);
    } else if (rows > 2) {
        stream(KG_LOW, false, KG_DEEP, s);
    } else if (rows == 2) { // all of it at once would not fit the registers
        stream_few(2, KG_DEEP / 2, 0, s->first, s);
        stream_few(2, KG_DEEP / 2, KG_DEEP / 2, false, s);
    } else {
        stream_few(1, KG_DEEP, 0, s->first, s);
    }
}

// Multiplies `panels` full panels of columns with the first panel of rows in one block of k, and
// packs them if there are more rows. Memory is read in long lines, KG_DEEP of them at a time.
static void stream_columns(const struct job *job, int64_t rows, int64_t column, int64_t panels,
                           int64_t k0, int64_t kn)
{
    struct view view;
    const struct side *side = job->plan->columns;
    const bool direct = side->direct(job->call, job->batch, &view);
    const int64_t most = direct ? panels : KG_STAGE / KG_DEEP / KG_COLUMNS; // of the stage
    for (int64_t k = 0; k < kn; k += KG_DEEP)
        for (int64_t j = 0; j < panels; j += most) {
            const int64_t deep = least(KG_DEEP, kn - k), count = least(most, panels - j);
            const struct view v =
                look(job, side, column + j * KG_COLUMNS, count * KG_COLUMNS, k0 + k, deep);
            const struct strip strip = {
                .panels = count,
                .stride = v.k,
                .a = job->rows + k * KG_ROWS,
                .b = v.data,
                .first = k == 0,
                .fresh = job->fresh + j * KG_TILE,
                .copy = job->columns + (j * kn + k) * KG_COLUMNS,
                .copy_stride = kn * KG_COLUMNS,
            };
            if (deep == KG_DEEP)
                stream_deep(rows, &strip);
            else
                stream(KG_ROWS, true, deep, &strip);
        }
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
    const int64_t panels = ceiling(columns, KG_COLUMNS);
    const int64_t streamed = p->stream && job->kn > 0 ? columns / KG_COLUMNS : 0;
    int64_t k = 0;
    do { // once for an empty k, too
        const int64_t k0 = job->k0 + k, kn = least(p->block_k, job->kn - k);
        const bool last = k + kn == job->kn;
        for (int64_t block = 0; block < rows; block += p->block_rows) {
            const int64_t high = least(p->block_rows, rows - block);
            pack_rows(job, row + block, high, k0, kn);
            if (block == 0 && streamed > 0)
                stream_columns(job, rows, column, streamed, k0, kn);
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
