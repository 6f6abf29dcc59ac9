// The path for a few rows against columns that are contiguous along k: vectors along k, whose lanes
// are added at the end. Columns are read once, in place; rows are packed so that both are read in
// step.

// Terms of k, in vectors, that are accumulated before the lanes are added.
enum { KG_DOT_BLOCK = 1024 };

// Packs one row for pack_dots.
KG_INLINE void pack_dot(const bool halves, struct view row, int64_t kn, int high, KG_REAL *to)
{
    int64_t k = 0;
    if (row.k == 1)
        for (; k + KG_LANES <= kn; k += KG_LANES)
            *(vector *)(to + k * high) = elements(halves, row.data, k);
    for (; k < kn; k++)
        to[k / KG_LANES * KG_LANES * high + k % KG_LANES] = element(halves, row.data, k * row.k);
}

// Packs rows [x0, x0 + count): (x, k) is at to[(k / KG_LANES * high + x) * KG_LANES + k %
// KG_LANES]. Rows beyond the matrix are zero.
KG_APART void pack_dots(const struct job *job, int64_t x0, int64_t count, int high, KG_REAL *to)
{
    enum { STEP = 512 };
    for (int64_t k0 = 0; k0 < job->kn; k0 += STEP) {
        const int64_t kn = least(STEP, job->kn - k0);
        const struct view v = operand_view(job, job->plan->rows, x0, count, job->k0 + k0, kn);
        for (int i = 0; i < high; i++) {
            KG_REAL *row = to + k0 * high + i * KG_LANES;
            if (i >= count)
                for (int64_t k = 0; k < kn; k++)
                    row[k / KG_LANES * KG_LANES * high + k % KG_LANES] = 0;
            else if (has_halves(&v))
                pack_dot(true, moved(v, i, 0), kn, high, row);
            else
                pack_dot(false, moved(v, i, 0), kn, high, row);
        }
    }
}

// sums[x * stride + c] += sum(k) rows(x, k) * columns(c, k), for `wide` columns; those beyond
// `count` are computed and dropped.
KG_INLINE void dot(const int wide, const int high, const bool halves, int64_t kn,
                   struct view columns, int64_t count, const KG_REAL *rows, KG_REAL *sums,
                   int64_t stride)
{
    enum { MOST = 16 };
    vector sum[MOST];
    const void *column[MOST];
    for (int i = 0; i < MOST; i++)
        sum[i] = (vector){0};
    for (int c = 0; c < wide; c++)
        column[c] = moved(columns, least(c, count - 1), 0).data;
    int64_t k = 0;
    for (; k + KG_LANES <= kn; k += KG_LANES) {
        vector left[MOST];
        for (int x = 0; x < high; x++)
            left[x] = ((const vector *)rows)[x];
        rows += high * KG_LANES;
        for (int c = 0; c < wide; c++) {
            const vector right = elements(halves, column[c], k);
            for (int x = 0; x < high; x++)
                sum[x * wide + c] += products(left[x], right);
        }
    }
    KG_REAL across[MOST];
    for (int i = 0; i < wide * high; i += KG_LANES)
        *(loose_vector *)(across + i) = add_across(sum + i);
    for (int c = 0; c < wide && c < count; c++)
        for (int x = 0; x < high; x++) {
            KG_REAL rest = across[x * wide + c];
            for (int64_t at = k; at < kn; at++)
                rest += rows[x * KG_LANES + at - k] * element(halves, column[c], at);
            sums[x * stride + c] += rest;
        }
}

KG_INLINE void dot_rows(int high, const bool halves, int64_t kn, struct view columns, int64_t count,
                        const KG_REAL *rows, KG_REAL *sums, int64_t stride)
{
    if (high == 1)
        dot(8, 1, halves, kn, columns, count, rows, sums, stride);
    else if (high == 2)
        dot(4, 2, halves, kn, columns, count, rows, sums, stride);
    else
        dot(3, 4, halves, kn, columns, count, rows, sums, stride);
}

static void run_dots(const struct job *job, int64_t row, int64_t rows, int64_t column,
                     int64_t columns)
{
    const struct plan *p = job->plan;
    const int high = rows > 2 ? 4 : (int)rows, wide = rows > 2 ? 3 : rows > 1 ? 4 : 8;
    const int64_t panels = ceiling(rows, high), length = ceiling(job->kn, KG_LANES) * KG_LANES;
    // Columns that are computed rather than read are in the stage.
    const int64_t depth = least(KG_DOT_BLOCK, KG_STAGE / wide / KG_LANES * KG_LANES);
    for (int64_t i = 0; i < panels * high * columns; i++)
        job->sums[i] = 0;
    for (int64_t i = 0; i < panels; i++)
        pack_dots(job, row + i * high, least(high, rows - i * high), high,
                  job->rows + i * high * length);
    for (int64_t c = 0; c < columns; c += wide)
        for (int64_t k = 0; k < job->kn; k += depth) {
            const int64_t count = least(wide, columns - c), kn = least(depth, job->kn - k);
            const struct view v = operand_view(job, p->columns, column + c, count, job->k0 + k, kn);
            for (int64_t i = 0; i < panels; i++) {
                const KG_REAL *left = job->rows + (i * length + k) * high;
                KG_REAL *sums = job->sums + i * high * columns + c;
                if (has_halves(&v))
                    dot_rows(high, true, kn, v, count, left, sums, columns);
                else
                    dot_rows(high, false, kn, v, count, left, sums, columns);
            }
        }
    store_tile(job, row, rows, column, columns, job->sums, columns);
}
