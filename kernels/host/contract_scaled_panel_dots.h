// contract_scaled_dots.h for packed weights: panels are read as they lie. Of a word, which has four
// nibbles of two columns and, 16 bits further, those of the next step, the lower bits of both
// halves find a pair of differences in the table of the column's zero; a shift brings the next pair
// down. Elements that are rounded to bf16 are entries of a table of each column and run. Lanes go
// along k: sums of 16 columns, or of fewer for several rows, are added across lanes at the end.

#if KG_PANEL_DOTS
#define KG_ONE_TABLE (KG_SCALED_FIXED && !KG_SCALED_ROUNDS)

enum {
    KG_PANEL_STEPS = 64,
    KG_PANEL_COLUMNS = 16,
    KG_PANEL_BYTES = 512,
    KG_PANEL_WORDS = 8, // vectors of words; each has two columns
    KG_PANEL_SUMS = 16, // in registers
    // Vectors of pairs of a row and a term that belong to a panel: of the lower nibbles of halves,
    // those of steps 16 j + 2 t in word 4 t + j, and 8 further, of the others.
    KG_PANEL_PAIRS = 2,
    // Strips at a time, of one row: on Zen 4, 4096 x 4096 takes 465 us by one, 396 by eight.
    KG_PANEL_STRIPS = 8,
    KG_TABLE_ENTRIES = 32 * (KG_SCALED_GREATEST_ZERO - (KG_SCALED_LEAST_ZERO) + 1),
};

// Of a strip: where the tables of its zeros are, scales and offsets, for steps with the same ones.
struct panel_values {
    const uint16_t *tables[KG_STRIP];
    KG_REAL scales[KG_STRIP], offsets[KG_STRIP];
#if KG_SCALED_ROUNDS
    half_vector rounded[KG_STRIP];
#endif
};

// Of the strips at a time: totals, a vector of lanes for each column and row; what offsets add.
struct panel_work {
    vector totals[KG_PANEL_STRIPS * KG_STRIP];
    KG_REAL more[KG_PANEL_STRIPS * KG_STRIP];
    struct panel_values values;
};

// Tables of all zeros: entry i is the difference of element i modulo 16, and what is above these
// four bits of a half does not matter.
static void make_table(uint16_t *tables)
{
    for (int i = 0; i < KG_TABLE_ENTRIES; i++) {
        const int element = KG_SCALED_SIGNED ? ((i & 15) ^ 8) - 8 : i & 15;
        const int zero = KG_SCALED_LEAST_ZERO + i / 32;
        tables[i] = (uint16_t)(kg_bits_f32((float)(element - zero)) >> 16);
    }
}

// The pairs of all panels: term t of row r, for nibbles `part`, is vector ((panel * KG_PANEL_PAIRS
// + part) * high + r) * KG_SCALED_TERMS + t. Steps beyond the end are 0. False if a number is
// too small for these products.
KG_APART bool pack_pair_terms(const KG_REAL *x, int high, int64_t kn, uint32_t *to)
{
    bool small = false;
    for (int64_t i = 0; i < ceiling(kn, KG_PANEL_STEPS) * KG_PANEL_PAIRS; i++)
        for (int r = 0; r < high; r++, to += KG_LANES * KG_SCALED_TERMS)
            for (int lane = 0; lane < KG_LANES; lane++)
                for (int odd = 0; odd < 2; odd++) {
                    const int64_t k = i / KG_PANEL_PAIRS * KG_PANEL_STEPS + i % KG_PANEL_PAIRS * 8 +
                                      lane % 4 * 16 + lane / 4 * 2 + odd;
                    small |= put_terms(k < kn ? x[k * high + r] : 0, odd, to + lane);
                }
    return !small;
}

// Lane i: the sum of the lanes of vector i.
KG_INLINE vector add_lanes(vector *sums)
{
#define KG_HALVES(a, b, first, of)                                                                 \
    KG_SHUFFLE(a, b, first(0, of), first(1, of), first(2, of), first(3, of), first(4, of),         \
               first(5, of), first(6, of), first(7, of), first(8, of), first(9, of),               \
               first(10, of), first(11, of), first(12, of), first(13, of), first(14, of),          \
               first(15, of))
    // Lane l of the result: from blocks of `of` lanes of either vector by turns, every second one.
#define KG_LOWER(l, of) ((l) / (of) % 2 * 16 + (l) / (of) / 2 * 2 * (of) + (l) % (of))
#define KG_UPPER(l, of) (KG_LOWER(l, of) + (of))
#define KG_ROUND(of)                                                                               \
    _Pragma("GCC unroll 8") for (int i = 0; i < (of); i++) sums[i] =                               \
        KG_HALVES(sums[i], sums[i + (of)], KG_LOWER, of) +                                         \
        KG_HALVES(sums[i], sums[i + (of)], KG_UPPER, of);
    KG_ROUND(8)
    KG_ROUND(4)
    KG_ROUND(2)
    KG_ROUND(1)
#undef KG_ROUND
#undef KG_UPPER
#undef KG_LOWER
#undef KG_HALVES
    return sums[0];
}

// Adds the products of panels that lie one below the other to totals of some of their columns,
// those of vectors of words from `first` on: of row r and column c, vector r * 2 * some + c.
KG_INLINE void add_panels(const int high, const int first, int64_t count, const uint8_t *data,
                          int64_t below, const word_vector *x, const uint16_t *const *tables,
                          const KG_REAL *scales, vector *totals)
{
    const int some = KG_PANEL_WORDS / high;
    vector sums[KG_PANEL_SUMS];
#pragma GCC unroll 16
    for (int i = 0; i < KG_PANEL_SUMS; i++)
        sums[i] = (vector){0};
    for (int64_t i = 0; i < count; i++) {
#pragma GCC unroll 8
        for (int v = 0; v < some; v++) {
            const uint8_t *from = data + (first + v) * 64;
            const word_vector all = *(const loose_words *)from;
            fetch_ahead(from + 2 * below);
#pragma GCC unroll 4
            for (int nibble = 0; nibble < 4; nibble++) {
                const int column = v * 2 + nibble % 2;
                const half_vector found =
                    find_halves(*(const half_vector *)tables[KG_ONE_TABLE ? 0 : first * 2 + column],
                                all >> 4 * nibble);
#pragma GCC unroll 4
                for (int r = 0; r < high; r++)
#pragma GCC unroll 2
                    for (int t = 0; t < KG_SCALED_TERMS; t++) {
                        vector *sum = &sums[r * 2 * some + column];
                        *sum =
                            add_dots(*sum, found, x[(nibble / 2 * high + r) * KG_SCALED_TERMS + t]);
                    }
            }
        }
        data += below;
        x += KG_PANEL_PAIRS * high * KG_SCALED_TERMS;
    }
#pragma GCC unroll 16
    for (int i = 0; i < KG_PANEL_SUMS; i++) {
        if (!KG_SCALED_ROUNDS)
            sums[i] *= scales[first * 2 + i % (2 * some)];
        totals[i] += sums[i];
    }
}

#if KG_SCALED_ROUNDS
// Elements `odd`, `odd` + 2 and so on, twice, scaled and rounded. Sets lanes of `small` where one
// is so small that the instruction takes it for zero.
KG_INLINE vector round_elements(int odd, KG_REAL zero, KG_REAL scale, KG_REAL offset,
                                word_vector *small)
{
    vector value;
#pragma GCC unroll 16
    for (int i = 0; i < KG_LANES; i++)
        value[i] = KG_SCALED_SIGNED ? ((2 * i + odd) % 16 ^ 8) - 8 : (2 * i + odd) % 16;
    value = (value - zero) * scale;
    if (KG_SCALED_OFFSET)
        value += KG_SCALED_OFFSET * offset;
    value = rounded(value);
    const vector size = (vector)((word_vector)value & 0x7fffffff);
    *small |= (word_vector)(size < 0x1p-100f) & (word_vector)(size != 0);
    return value;
}

// The table of a column.
KG_INLINE half_vector round_table(KG_REAL zero, KG_REAL scale, KG_REAL offset, word_vector *small)
{
    const word_vector even = (word_vector)round_elements(0, zero, scale, offset, small);
    const word_vector odd = (word_vector)round_elements(1, zero, scale, offset, small);
    return (half_vector)(even >> 16 | odd);
}
#endif

// Finds them from step `k` on. False: elements are too small for these products.
KG_INLINE bool find_values(const struct job *job, const struct strips *s, int64_t column,
                           int64_t columns, int64_t k, struct panel_values *values)
{
    KG_REAL zeros[KG_STRIP];
    word_vector small = {0};
    b_scales(job->call, job->batch, column, columns, k, 1, values->scales, columns);
#if KG_SCALED_OFFSET
    b_offsets(job->call, job->batch, column, columns, k, 1, values->offsets, columns);
#endif
    values->tables[0] = s->table;
    if (!KG_ONE_TABLE)
        b_zeros(job->call, job->batch, column, columns, k, 1, zeros, columns);
    for (int64_t c = 0; c < columns && !KG_ONE_TABLE; c++) {
#if KG_SCALED_ROUNDS
        values->rounded[c] = round_table(zeros[c], values->scales[c],
                                         KG_SCALED_OFFSET ? values->offsets[c] : 0, &small);
        values->tables[c] = (const uint16_t *)&values->rounded[c];
#else
        values->tables[c] = s->table + ((int)zeros[c] - (KG_SCALED_LEAST_ZERO)) * 32;
#endif
    }
    // Columns behind the last one, in its panel, are multiplied, too.
    for (; columns % KG_PANEL_COLUMNS != 0; columns++) {
        values->tables[columns] = values->tables[0];
        values->scales[columns] = 0;
    }
    uint32_t any = 0;
    for (int i = 0; i < KG_LANES; i++)
        any |= small[i];
    return any == 0;
}

// The products of a strip's panels for steps [k, end) with the same scales.
KG_INLINE void add_panel_run(const int high, const struct strips *s, int64_t columns,
                             const uint8_t *data, int64_t k, int64_t end,
                             const struct panel_values *values, vector *totals)
{
    const int some = KG_PANEL_WORDS / high;
    const word_vector *x = (const word_vector *)s->pairs +
                           k / KG_PANEL_STEPS * KG_PANEL_PAIRS * high * KG_SCALED_TERMS;
    for (int64_t c = 0; c < columns; c += KG_PANEL_COLUMNS, data += KG_PANEL_BYTES)
        for (int first = 0; first < KG_PANEL_WORDS; first += some)
            add_panels(high, first, ceiling(end - k, KG_PANEL_STEPS), data, s->k / 2, x,
                       values->tables + (KG_ONE_TABLE ? 0 : c), values->scales + c,
                       totals + (c + 2 * first) * high);
}

// The sums of a strip, whose totals these are, in the order of strips.
KG_INLINE void store_totals(const int high, int64_t columns, vector *totals, const KG_REAL *more,
                            KG_REAL *to)
{
    const int some = KG_PANEL_WORDS / high;
    memset(to, 0, (size_t)(high * KG_STRIP) * sizeof *to);
    for (int64_t c = 0; c < ceiling(columns, KG_PANEL_COLUMNS) * KG_PANEL_COLUMNS; c += 2 * some) {
        const vector found = add_lanes(totals + c * high);
        for (int lane = 0; lane < KG_PANEL_SUMS; lane++) {
            const int r = lane / (2 * some);
            const int64_t column = c + lane % (2 * some);
            to[r * KG_STRIP + column % KG_PARTS * KG_LANES + column / KG_PARTS] =
                found[lane] + more[r * KG_STRIP + column];
        }
    }
}

// The sums of strips from `i` on over a block of k, of as many as there is workspace for.
KG_INLINE void add_panel_strip(const int high, const struct job *job, const struct strips *s,
                               int64_t i, int64_t column, int64_t k0, int64_t kn)
{
    const int64_t count = least(KG_PANEL_STRIPS / high, s->count - i);
    struct panel_work *work = s->work;
    memset(work->totals, 0, (size_t)(count * high * KG_STRIP) * sizeof *work->totals);
    memset(work->more, 0, (size_t)(count * high * KG_STRIP) * sizeof *work->more);
    for (int64_t k = 0, end; k < kn; k = end) {
        end = scales_end(k0, k, kn);
        for (int64_t n = 0; n < count; n++) {
            const int64_t columns = i + n + 1 < s->count ? KG_STRIP : s->last;
            const int64_t first = column + (i + n) * KG_STRIP;
            struct panel_values *values = &work->values;
            if (!find_values(job, s, first, columns, k0 + k, values))
                work->more[n * high * KG_STRIP] = NAN; // the strip is computed again
            add_panel_run(high, s, columns,
                          s->data + (s->first + (k0 + k) / KG_PANEL_STEPS * s->k) / 2 +
                              first / KG_PANEL_COLUMNS * KG_PANEL_BYTES,
                          k, end, values, work->totals + n * high * KG_STRIP);
#if KG_SCALED_OFFSET && !KG_SCALED_ROUNDS
            for (int r = 0; r < high; r++) {
                KG_REAL of_row = 0, *to = work->more + (n * high + r) * KG_STRIP;
                for (int64_t at = k; at < end; at++)
                    of_row += s->x[at * high + r];
                for (int64_t c = 0; c < columns; c++)
                    to[c] += of_row * KG_SCALED_OFFSET * values->offsets[c];
            }
#endif
        }
    }
    for (int64_t n = 0; n < count; n++)
        store_totals(high, i + n + 1 < s->count ? KG_STRIP : s->last,
                     work->totals + n * high * KG_STRIP, work->more + n * high * KG_STRIP,
                     s->scaled + (i + n) * high * KG_STRIP);
}

KG_APART void add_panel_strip_1(const struct job *job, const struct strips *s, int64_t i,
                                int64_t column, int64_t k0, int64_t kn)
{
    add_panel_strip(1, job, s, i, column, k0, kn);
}

KG_APART void add_panel_strip_2(const struct job *job, const struct strips *s, int64_t i,
                                int64_t column, int64_t k0, int64_t kn)
{
    add_panel_strip(2, job, s, i, column, k0, kn);
}

KG_APART void add_panel_strip_4(const struct job *job, const struct strips *s, int64_t i,
                                int64_t column, int64_t k0, int64_t kn)
{
    add_panel_strip(4, job, s, i, column, k0, kn);
}

// One block of k for up to KG_DOT_HIGH rows.
static void add_panel_strips(const struct job *job, const struct strips *s, int high,
                             int64_t column, int64_t k0, int64_t kn)
{
    for (int64_t i = 0; i < s->count; i += KG_PANEL_STRIPS / high)
        if (high == 1)
            add_panel_strip_1(job, s, i, column, k0, kn);
        else if (high == 2)
            add_panel_strip_2(job, s, i, column, k0, kn);
        else
            add_panel_strip_4(job, s, i, column, k0, kn);
}
#endif
