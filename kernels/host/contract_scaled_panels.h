// The path for more rows against columns of integers with scales (contract_strips.h): a block
// of columns becomes floats once, in panels that the microkernel of contract_panels.h reads. Panels
// have whole vectors of strips, whose columns are brought into order when results are stored.

// Where vector `i` of a line of strips is in panels of `kn` steps of k.
KG_INLINE KG_REAL *panel_vector(KG_REAL *panels, int64_t kn, int64_t i)
{
    return panels + i / KG_VECTORS * kn * KG_COLUMNS + i % KG_VECTORS * KG_LANES;
}

// Fills steps [k, end) of the panels of strip `i`. `at` is the strip's first element at `k`.
KG_INLINE void fill_strip(const bool crooked, const struct strips *s, int64_t i, int64_t k,
                          int64_t end, const uint8_t *data, int64_t at, int64_t step, int64_t kn,
                          KG_REAL *panels)
{
    const struct strip_values values = values_of(s, i);
    vector zeros[KG_PARTS], scales[KG_PARTS];
    KG_REAL *to[KG_PARTS];
    for (int j = 0; j < KG_PARTS; j++) {
        zeros[j] = values.zeros[j];
        scales[j] = values.scales[j];
        to[j] = panel_vector(panels, kn, i * KG_PARTS + j);
    }
    for (; k < end; k++, at += step) {
        const word_vector all = strip_words(crooked, data, at), upper = all >> KG_UPPER_SHIFT;
        fetch_ahead(data + byte_of(at + KG_CHUNK * step));
        for (int j = 0; j < KG_PARTS; j++) {
            vector element = (parts_of(all, upper, j) - zeros[j]) * scales[j];
#if KG_SCALED_OFFSET
            element += values.offsets[j];
#endif
#if KG_SCALED_ROUNDS
            element = rounded(element);
#endif
            *(vector *)(to[j] + k * KG_COLUMNS) = element;
        }
    }
}

// Steps [k, end) of all strips, which have the same scales. A few steps at a time pass through all
// strips, because their addresses may map to the same set of a cache.
KG_APART void fill_strips(const struct strips *s, int64_t k, int64_t end, int64_t kn,
                          KG_REAL *panels)
{
    const int64_t whole = strips_in_place(s);
    for (int64_t next; k < end; k = next) {
        next = least(k + KG_CHUNK, end);
        int64_t at = s->first + k * s->k;
        for (int64_t i = 0; i < whole; i++, at += KG_STRIP) {
            if (s->crooked)
                fill_strip(true, s, i, k, next, s->data, at, s->k, kn, panels);
            else
                fill_strip(false, s, i, k, next, s->data, at, s->k, kn, panels);
        }
        for (int64_t i = whole; i < s->count; i++) {
            uint8_t copy[KG_CHUNK * KG_STRIP_BYTES];
            copy_steps(s, i, k, next - k, copy);
            fill_strip(false, s, i, k, next, copy, 0, KG_STRIP, kn, panels);
        }
    }
}

// Panels of the columns of `s` in a block of k. Vectors beyond the last strip are zero.
static void pack_strips(const struct job *job, const struct strips *s, int64_t column, int64_t k0,
                        int64_t kn)
{
    int64_t end;
    for (int64_t k = 0; k < kn; k = end) {
        end = scales_end(k0, k, kn);
        order_scales(job, s, column, k0 + k);
        fill_strips(s, k, end, kn, job->columns);
    }
    for (int64_t i = s->count * KG_PARTS; i % KG_VECTORS != 0; i++)
        for (int64_t k = 0; k < kn; k++)
            *(vector *)(panel_vector(job->columns, kn, i) + k * KG_COLUMNS) = (vector){0};
}

// Passes sums in panels on, as many rows as a register tile has and a strip of columns at a time.
static void store_strips(const struct job *job, const struct strips *s, int64_t row, int64_t rows,
                         int64_t column)
{
    const int64_t panels = ceiling(s->count * KG_PARTS, KG_VECTORS);
    _Alignas(64) KG_REAL tile[KG_ROWS * KG_STRIP];
    for (int64_t r = 0; r < rows; r += KG_ROWS)
        for (int64_t i = 0; i < s->count; i++) {
            const int64_t some = least(KG_ROWS, rows - r);
            const int64_t columns = i + 1 < s->count ? KG_STRIP : s->last;
            for (int j = 0; j < KG_PARTS; j++) {
                const int64_t at = i * KG_PARTS + j;
                const KG_REAL *from = job->sums +
                                      (r / KG_ROWS * panels + at / KG_VECTORS) * KG_TILE +
                                      at % KG_VECTORS * KG_LANES;
                for (int64_t t = 0; t < some; t++)
                    for (int lane = 0; lane < KG_LANES; lane++)
                        tile[t * KG_STRIP + lane * KG_PARTS + j] = from[t * KG_COLUMNS + lane];
            }
            store_tile(job, row + r, some, column + i * KG_STRIP, columns, tile, KG_STRIP);
        }
}

static void run_scaled_panels(const struct job *job, int64_t row, int64_t rows, int64_t column,
                              int64_t columns)
{
    const struct plan *p = job->plan;
    struct strips s = open_strips(job, columns);
    const int64_t panels = ceiling(s.count * KG_PARTS, KG_VECTORS);
    int64_t k = 0;
    do { // also once for an empty k
        const int64_t k0 = job->k0 + k, kn = least(p->block_k, job->kn - k);
        place_strips(job, &s, column, k0);
        pack_strips(job, &s, column, k0, kn);
        for (int64_t above = 0; above < rows; above += p->block_rows) {
            const int64_t some = least(p->block_rows, rows - above);
            pack_rows(job, row + above, some, k0, kn);
            for (int64_t j = 0; j < panels; j++)
                for (int64_t i = 0; i < some; i += KG_ROWS) {
                    KG_REAL *sums = job->sums + ((above + i) / KG_ROWS * panels + j) * KG_TILE;
                    run_tile(some - i, kn, job->rows + i * kn, job->columns + j * kn * KG_COLUMNS,
                             NULL, k > 0 ? sums : NULL, sums);
                }
        }
        k += kn;
    } while (k < job->kn);
    store_strips(job, &s, row, rows, column);
}
