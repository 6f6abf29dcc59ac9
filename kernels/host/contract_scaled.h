// The path for a few rows against columns of integers with scales (contract_strips.h). Each
// element is read once, from where it lies: differences to the zero are multiplied by the rows and
// added up, for all k with the same scales; then the sums are scaled. Elements that are rounded are
// scaled before they are multiplied. Sums that are not finite are computed again as the definition
// has them, because factors that are not finite may have been multiplied in another order.

// Adds up to KG_CHUNK steps of k to the sums of a strip, of which `some` parts from `j0` on are
// in registers.
KG_INLINE void add_parts(const int high, const int j0, const int some, const bool crooked,
                         int64_t kn, const uint8_t *data, int64_t at, int64_t step,
                         const KG_REAL *x, const struct strip_values *values, bool fresh,
                         KG_REAL *sums)
{
    vector sum[KG_SCALED_TILE], zero[KG_PARTS];
    for (int j = 0; j < some; j++)
        zero[j] = values->zeros[j0 + j];
#if KG_SCALED_ROUNDS
    vector scale[KG_PARTS];
    for (int j = 0; j < some; j++)
        scale[j] = values->scales[j0 + j];
#endif
    for (int r = 0; r < high; r++)
        for (int j = 0; j < some; j++)
            sum[r * some + j] = fresh ? (vector){0} : ((const vector *)sums)[r * KG_PARTS + j0 + j];
#pragma GCC unroll 2
    for (int64_t k = 0; k < kn; k++) {
        const word_vector all = strip_words(crooked, data, at), upper = all >> KG_UPPER_SHIFT;
        if (j0 == 0)
            fetch_ahead(data + byte_of(at + KG_CHUNK * step));
        for (int j = 0; j < some; j++) {
            vector element = parts_of(all, upper, j0 + j) - zero[j];
#if KG_SCALED_ROUNDS
            element *= scale[j];
#if KG_SCALED_OFFSET
            element += values->offsets[j0 + j];
#endif
            element = rounded(element);
#endif
            for (int r = 0; r < high; r++)
                sum[r * some + j] += x[k * high + r] * element;
        }
        at += step;
    }
    for (int r = 0; r < high; r++)
        for (int j = 0; j < some; j++)
            ((vector *)sums)[r * KG_PARTS + j0 + j] = sum[r * some + j];
}

KG_INLINE void add_strip(const int high, const bool crooked, int64_t kn, const uint8_t *data,
                         int64_t at, int64_t step, const KG_REAL *x,
                         const struct strip_values *values, bool fresh, KG_REAL *sums)
{
    const int some = least(KG_PARTS, KG_SCALED_TILE / high);
#pragma GCC unroll 8
    for (int j = 0; j < KG_PARTS; j += some)
        add_parts(high, j, some, crooked, kn, data, at, step, x, values, fresh, sums);
}

KG_INLINE void add_chunk(const int high, const bool crooked, const struct strips *s, int64_t k,
                         int64_t kn, bool fresh)
{
    const KG_REAL *x = s->x + k * high;
    const int64_t whole = strips_in_place(s);
    int64_t at = s->first + k * s->k;
    for (int64_t i = 0; i < whole; i++, at += KG_STRIP) {
        const struct strip_values values = values_of(s, i);
        add_strip(high, crooked, kn, s->data, at, s->k, x, &values, fresh,
                  s->sums + i * high * KG_STRIP);
    }
    for (int64_t i = whole; i < s->count; i++) {
        const struct strip_values values = values_of(s, i);
        uint8_t copy[KG_CHUNK * KG_STRIP_BYTES];
        copy_steps(s, i, k, kn, copy);
        add_strip(high, false, kn, copy, 0, KG_STRIP, x, &values, fresh,
                  s->sums + i * high * KG_STRIP);
    }
}

KG_APART void add_chunk_1(const struct strips *s, int64_t k, int64_t kn, bool fresh)
{
    if (s->crooked)
        add_chunk(1, true, s, k, kn, fresh);
    else
        add_chunk(1, false, s, k, kn, fresh);
}

KG_APART void add_chunk_2(const struct strips *s, int64_t k, int64_t kn, bool fresh)
{
    if (s->crooked)
        add_chunk(2, true, s, k, kn, fresh);
    else
        add_chunk(2, false, s, k, kn, fresh);
}

KG_APART void add_chunk_4(const struct strips *s, int64_t k, int64_t kn, bool fresh)
{
    if (s->crooked)
        add_chunk(4, true, s, k, kn, fresh);
    else
        add_chunk(4, false, s, k, kn, fresh);
}

// `rows`: sums of the rows for the k with the same scales. Elements that are rounded were scaled
// before.
static void scale_sums(const int high, const struct strips *s, const KG_REAL *rows, bool fresh)
{
    (void)rows;
    for (int64_t i = 0; i < s->count; i++)
        for (int r = 0; r < high; r++) {
            const vector *from = (const vector *)(s->sums + (i * high + r) * KG_STRIP);
            const vector *scale = (const vector *)(s->scales + i * KG_STRIP);
            vector *to = (vector *)(s->scaled + (i * high + r) * KG_STRIP);
            for (int j = 0; j < KG_PARTS; j++) {
                vector sum = from[j];
                if (!KG_SCALED_ROUNDS)
                    sum *= scale[j];
#if KG_SCALED_OFFSET && !KG_SCALED_ROUNDS
                sum += rows[r] * ((const vector *)(s->offsets + i * KG_STRIP))[j];
#endif
                if (!fresh)
                    sum += to[j];
                to[j] = sum;
            }
        }
}

// A strip as the definition has it.
KG_APART void compute_strip(const struct job *job, const struct strips *s, int high, int64_t i,
                            int64_t column, int64_t k0, int64_t kn)
{
    const int64_t columns = i + 1 < s->count ? KG_STRIP : s->last, step = KG_STAGE / KG_STRIP;
    KG_REAL *to = s->scaled + i * high * KG_STRIP;
    memset(to, 0, (size_t)high * KG_STRIP * sizeof *to);
    for (int64_t k = 0; k < kn; k += step) {
        const int64_t deep = least(step, kn - k);
        b_fill(job->call, job->batch, column + i * KG_STRIP, columns, k0 + k, deep, job->stage,
               columns);
        for (int64_t d = 0; d < deep; d++)
            for (int r = 0; r < high; r++)
                for (int64_t c = 0; c < columns; c++)
                    to[r * KG_STRIP + c % KG_PARTS * KG_LANES + c / KG_PARTS] +=
                        s->x[(k + d) * high + r] * job->stage[d * columns + c];
    }
}

// Adds a chunk of steps of k to the sums of all strips.
KG_INLINE void add_steps(const struct strips *s, int high, int64_t k, int64_t kn, bool fresh)
{
#if KG_SCALED_DOTS && !KG_PANEL_DOTS
    if (s->dots) {
        if (high == 1)
            add_pair_chunk_1(s, k, kn, fresh);
        else if (high == 2)
            add_pair_chunk_2(s, k, kn, fresh);
        else
            add_pair_chunk_4(s, k, kn, fresh);
        return;
    }
#endif
    if (high == 1)
        add_chunk_1(s, k, kn, fresh);
    else if (high == 2)
        add_chunk_2(s, k, kn, fresh);
    else
        add_chunk_4(s, k, kn, fresh);
}

// One block of k for up to KG_SCALED_HIGH rows.
static void add_strips(const struct job *job, const struct strips *s, int high, int64_t column,
                       int64_t k0, int64_t kn)
{
    int64_t end;
    for (int64_t k = 0; k < kn; k = end) {
        end = scales_end(k0, k, kn);
        order_scales(job, s, column, k0 + k);
        for (int64_t at = k; at < end; at += KG_CHUNK)
            add_steps(s, high, at, least(KG_CHUNK, end - at), at == k);
        KG_REAL rows[KG_SCALED_HIGH] = {0};
        for (int64_t at = KG_SCALED_OFFSET && !KG_SCALED_ROUNDS ? k : end; at < end; at++)
            for (int r = 0; r < high; r++)
                rows[r] += s->x[at * high + r];
        scale_sums(high, s, rows, k == 0);
    }
}

static void run_strips(const struct job *job, const struct strips *s, int high, int64_t column,
                       int64_t k0, int64_t kn)
{
#if KG_PANEL_DOTS
    if (s->dots)
        add_panel_strips(job, s, high, column, k0, kn);
    else
#endif
        add_strips(job, s, high, column, k0, kn);
    for (int64_t i = 0; i < s->count; i++)
        if (!strip_is_finite(s->scaled + i * high * KG_STRIP, high))
            compute_strip(job, s, high, i, column, k0, kn);
}

// Pairs of a row for a block of k: whole panels of them.
KG_INLINE int64_t pairs_of(int64_t depth)
{
    return ceiling(depth, 64) * 64 + 64;
}

// Elements of the workspace of strips for a product with so many rows.
KG_INLINE int64_t scaled_elements(int64_t rows, int64_t columns, int64_t depth)
{
    const int64_t wide = ceiling(columns, KG_STRIP) * KG_STRIP,
                  pairs = KG_SCALED_HIGH * pairs_of(depth);
#if KG_PANEL_DOTS
    const int64_t work = sizeof(struct panel_work) / sizeof(KG_REAL);
#else
    const int64_t work = 0;
#endif
    return rows > KG_SCALED_ROWS ? 3 * wide : (4 + 2 * KG_SCALED_HIGH + rows) * wide + pairs + work;
}

// Adds the sums of a row of strips to its totals, in the order of columns.
KG_INLINE void add_totals(const struct strips *s, const KG_REAL *from, int64_t apart, bool fresh,
                          KG_REAL *totals)
{
    for (int64_t i = 0; i < s->count; i++, from += apart, totals += KG_STRIP)
        for (int lane = 0; lane < KG_LANES; lane++)
            for (int j = 0; j < KG_PARTS; j++) {
                KG_REAL *to = totals + lane * KG_PARTS + j;
                *to = fresh ? from[j * KG_LANES + lane] : *to + from[j * KG_LANES + lane];
            }
}

static void run_scaled(const struct job *job, int64_t row, int64_t rows, int64_t column,
                       int64_t columns)
{
    const struct plan *p = job->plan;
    struct strips s = open_strips(job, columns);
    const int64_t wide = s.count * KG_STRIP;
    s.x = job->rows;
    s.sums = s.offsets + wide;
    s.scaled = s.sums + KG_SCALED_HIGH * wide;
    KG_REAL *totals = s.scaled + KG_SCALED_HIGH * wide;
#if KG_SCALED_DOTS
    _Alignas(64) uint16_t table[KG_TABLE_ENTRIES];
    make_table(table);
    s.table = table;
    s.bytes = (word_vector *)(totals + rows * wide);
    s.pairs = (uint32_t *)(s.bytes + 4 * s.count);
#if KG_PANEL_DOTS
    s.work = (struct panel_work *)(s.pairs + KG_SCALED_HIGH * pairs_of(p->block_k));
#endif
#endif
    if (job->kn == 0)
        memset(totals, 0, (size_t)(rows * wide) * sizeof *totals);
    for (int64_t k = 0, kn; k < job->kn; k += kn) {
        const int64_t k0 = job->k0 + k;
        kn = least(p->block_k, job->kn - k);
        place_strips(job, &s, column, k0);
        for (int64_t r = 0; r < rows; r += KG_SCALED_HIGH) {
            const int64_t some = least(KG_SCALED_HIGH, rows - r);
            const int high = some > 2 ? 4 : (int)some;
            pack(job, p->rows, row + r, some, k0, kn, high, job->rows);
#if KG_SCALED_DOTS
            s.dots =
                high <= KG_DOT_HIGH && !s.crooked && pack_pair_terms(job->rows, high, kn, s.pairs);
#endif
            run_strips(job, &s, high, column, k0, kn);
            for (int64_t i = 0; i < some; i++)
                add_totals(&s, s.scaled + i * KG_STRIP, high * KG_STRIP, k == 0,
                           totals + (r + i) * wide);
        }
    }
    store_tile(job, row, rows, column, columns, totals, wide);
}
