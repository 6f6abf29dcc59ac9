// A few rows against columns of integers with scales (contract_strips.h) whose elements are
// adjacent along k, as checkpoints have them. Lanes go along k: part j of word i is step KG_PARTS i
// + j of a strip of k, and rows are packed in that order. Zeros and scales are kept for a block of
// k of one column after the other. Sums that are not finite are computed again as the definition
// has them.

// Runs of k, which have the same zero and scale, contain whole strips, or strips contain whole
// runs.
#define KG_STEPS (32 / KG_SCALED_BITS * KG_LANES) // KG_STRIP, for the preprocessor
#define KG_RUNS_OF_STRIPS (KG_GROUP % KG_STEPS == 0)
#define KG_STRIPS_OF_RUNS (KG_GROUP > 0 && KG_STEPS % (KG_GROUP > 0 ? KG_GROUP : 1) == 0)

typedef uint32_t alias_word __attribute__((may_alias));

enum {
    KG_LINE_COLUMNS = 4, // at a time, at most: what is loaded of rows is used for each of them
    KG_RUN_WORDS = KG_GROUP > 0 ? KG_GROUP / KG_PARTS : 1,
    KG_LINES_AHEAD = 4, // columns
};

// A column in a block of k. Zeros and scales: of each run of k or, where KG_GROUP and KG_STRIP do
// not divide each other, of each word. Zeros of contract_scaled_dots.h are the bytes of a word.
struct line {
    const uint8_t *data;
    KG_REAL *zeros, *scales;
};

// Packed rows of a block of k, and workspace for columns.
struct lines {
    int64_t k0, kn, strips;
    const KG_REAL *x;      // floats: row r, strip i, part j at that of (r strips + i) KG_PARTS + j
    const uint32_t *pairs; // for contract_scaled_dots.h, likewise: four times the terms
    bool dots;
    struct line line[KG_LINE_COLUMNS];
    uint8_t *copies[KG_LINE_COLUMNS];
    KG_REAL *runs;
};

// Spreads the values of runs of k to their words. Writes up to KG_LANES too many.
KG_INLINE void spread_runs(const struct lines *l, const KG_REAL *runs, KG_REAL *words_of)
{
    const int64_t count = ceiling(l->kn, KG_PARTS);
    int64_t end = KG_RUN_WORDS - l->k0 / KG_PARTS % KG_RUN_WORDS;
    for (int64_t w = 0; w < count; w = end, end += KG_RUN_WORDS, runs++) {
        const word_vector value = (word_vector){0} + *(const alias_word *)runs;
        const int64_t last = least(end, count);
        for (int64_t i = w; i < last; i += KG_LANES)
            *(loose_words *)(words_of + i) = value;
    }
}

// Computes zeros and scales of a column.
static void fill_line(const struct job *job, const struct lines *l, int64_t column,
                      const struct line *line)
{
    typedef int32_t numbers __attribute__((vector_size(4 * KG_LANES)));
    const bool spread = !KG_RUNS_OF_STRIPS && !KG_STRIPS_OF_RUNS;
    const int64_t run = KG_GROUP > 0 ? KG_GROUP : INT64_MAX / 2;
    const int64_t first = l->k0 / run, count = (l->k0 + l->kn - 1) / run - first + 1;
    KG_REAL *scales = spread ? l->runs : line->scales, *zeros = spread ? l->runs : line->zeros;
    b_group_scales(job->call, job->batch, column, first, count, scales);
    if (spread)
        spread_runs(l, scales, line->scales);
    if (KG_SCALED_FIXED)
        return;
    b_group_zeros(job->call, job->batch, column, first, count, zeros);
    for (int64_t i = 0; i < count; i += KG_LANES) {
        loose_vector *some = (loose_vector *)(zeros + i);
        *some += (KG_REAL)KG_SCALED_BIAS;
        if (l->dots)
            *some = (vector)(((word_vector) __builtin_convertvector(*some, numbers) & 255) *
                             0x01010101);
    }
    if (spread)
        spread_runs(l, zeros, line->zeros);
}

// The values of the words of strip `i`.
KG_INLINE word_vector word_values(const struct lines *l, const KG_REAL *values, int64_t i)
{
#if KG_RUNS_OF_STRIPS && KG_GROUP > 0
    const int64_t run = (l->k0 % KG_GROUP + i * KG_STRIP) / KG_GROUP;
    return (word_vector){0} + ((const alias_word *)values)[run];
#elif KG_RUNS_OF_STRIPS
    (void)l, (void)i;
    return (word_vector){0} + *(const alias_word *)values;
#elif KG_STRIPS_OF_RUNS
#define KG_RUNS(first) first / W, (first + 1) / W, (first + 2) / W, (first + 3) / W
    enum { W = KG_RUN_WORDS };
    const word_vector runs = *(const loose_words *)(values + i * (KG_LANES / W));
    (void)l;
#if KG_LANES == 4
    return KG_SHUFFLE(runs, runs, KG_RUNS(0));
#elif KG_LANES == 8
    return KG_SHUFFLE(runs, runs, KG_RUNS(0), KG_RUNS(4));
#else
    return KG_SHUFFLE(runs, runs, KG_RUNS(0), KG_RUNS(4), KG_RUNS(8), KG_RUNS(12));
#endif
#undef KG_RUNS
#else
    (void)l;
    return *(const loose_words *)(values + i * KG_LANES);
#endif
}

// Columns at a time. On Zen 4, more of them do not leave enough registers.
KG_INLINE int columns_at_once(int high, bool dots)
{
    return KG_LANES < 16 ? 1 : dots && high == 1 ? KG_LINE_COLUMNS : 2;
}

// totals[c][r] += the products of strip `i` of column c with row r.
KG_INLINE void add_line(const int high, const struct lines *l, int64_t i, const word_vector *all,
                        vector (*totals)[KG_SCALED_HIGH])
{
    const int columns = columns_at_once(high, false);
    vector zero[KG_LINE_COLUMNS], scale[KG_LINE_COLUMNS];
    vector sums[KG_LINE_COLUMNS][KG_SCALED_HIGH];
    for (int c = 0; c < columns; c++) {
        scale[c] = (vector)word_values(l, l->line[c].scales, i);
        zero[c] = (vector){0} + (KG_REAL)(KG_SCALED_LEAST_ZERO + KG_SCALED_BIAS);
        if (!KG_SCALED_FIXED)
            zero[c] = (vector)word_values(l, l->line[c].zeros, i);
        for (int r = 0; r < high; r++)
            sums[c][r] = (vector){0};
    }
    for (int j = 0; j < KG_PARTS; j++) {
        const vector *x = (const vector *)l->x + i * KG_PARTS + j;
        for (int c = 0; c < columns; c++) {
            vector element =
                parts_of(all[c], all[c] >> KG_UPPER_SHIFT, j) - (zero[c] + part_exponent(j));
#if KG_SCALED_ROUNDS
            element = rounded(element * scale[c]);
#endif
            for (int r = 0; r < high; r++)
                sums[c][r] += element * x[r * l->strips * KG_PARTS];
        }
    }
    for (int c = 0; c < columns; c++)
        for (int r = 0; r < high; r++) {
            if (!KG_SCALED_ROUNDS)
                sums[c][r] *= scale[c];
            totals[c][r] += sums[c][r];
        }
}

#if KG_SCALED_DOTS
// The same by contract_scaled_dots.h: halves 2 i and 2 i + 1 are steps 8 i + c and 8 i + c + 4.
KG_INLINE void add_line_dots(const int high, const struct lines *l, half_vector table, int64_t i,
                             const word_vector *all, vector (*totals)[KG_SCALED_HIGH])
{
    const int columns = columns_at_once(high, true);
    // Of few rows, two sums each: additions take long one after the other.
    const int chains = high > 2 ? 1 : 2;
    vector sums[KG_LINE_COLUMNS][2 * KG_SCALED_HIGH];
    for (int c = 0; c < columns; c++)
        for (int i = 0; i < chains * high; i++)
            sums[c][i] = (vector){0};
    for (int part = 0; part < 2; part++) {
        const word_vector *x = (const word_vector *)l->pairs + (i * 2 + part) * 2 * KG_SCALED_TERMS;
        for (int c = 0; c < columns; c++) {
            word_vector halves = part ? all[c] >> 4 : all[c];
            if (!KG_SCALED_FIXED) {
                halves = (halves & 0x0f0f0f0f) ^ (KG_SCALED_SIGNED ? 0x08080808 : 0);
                halves = (word_vector)((byte_vector)halves -
                                       (byte_vector)word_values(l, l->line[c].zeros, i));
            }
            const half_vector low = find_halves(table, halves);
            const half_vector upper = find_halves(table, halves >> 8);
            for (int r = 0; r < high; r++)
                for (int t = 0; t < KG_SCALED_TERMS; t++) {
                    const word_vector *of_row = x + r * l->strips * 4 * KG_SCALED_TERMS + t;
                    vector *first = sums[c] + chains * r, *second = first + chains - 1;
                    *first = add_dots(*first, low, of_row[0]);
                    *second = add_dots(*second, upper, of_row[KG_SCALED_TERMS]);
                }
        }
    }
    for (int c = 0; c < columns; c++)
        for (int r = 0; r < high; r++) {
            vector sum = sums[c][chains * r];
            if (chains == 2)
                sum += sums[c][2 * r + 1];
            totals[c][r] += sum * (vector)word_values(l, l->line[c].scales, i);
        }
}

// Packs a row of strips as pairs of terms: words i of nibbles c and c + 4, for c = 0, 2, 1, 3.
// False if a number is so small that results might be denormal, which the instruction takes for
// zero.
KG_APART bool pack_line_pairs(const KG_REAL *row, int64_t strips, uint32_t *to)
{
    static const int order[4] = {0, 2, 1, 3};
    bool small = false;
    for (int64_t i = 0; i < strips; i++, row += KG_STRIP)
        for (int c = 0; c < 4; c++, to += KG_LANES * KG_SCALED_TERMS)
            for (int lane = 0; lane < KG_LANES; lane++)
                for (int half_of = 0; half_of < 2; half_of++)
                    small |= put_terms(row[lane * KG_PARTS + order[c] + 4 * half_of], half_of,
                                       to + lane);
    return !small;
}
#endif

// Sums of columns in a block of k, for `high` rows. What `from` points to is copied, because the
// compiler must assume that storing sums changes it. `ahead`: bytes to what is fetched.
KG_INLINE void sum_lines(const int high, const bool dots, const uint16_t *table,
                         const struct lines *from, int64_t ahead, vector (*totals)[KG_SCALED_HIGH])
{
    const int columns = columns_at_once(high, dots);
    const struct lines l = *from;
    const int64_t whole = l.kn / KG_STRIP, tail = (l.kn % KG_STRIP * KG_SCALED_BITS + 7) / 8;
    vector sums[KG_LINE_COLUMNS][KG_SCALED_HIGH] = {0};
#if KG_SCALED_DOTS
    const half_vector entries = *(const half_vector *)table;
#else
    (void)table, (void)dots;
#endif
    for (int64_t i = 0; i < l.strips; i++) {
        word_vector all[KG_LINE_COLUMNS] = {0};
        for (int c = 0; c < columns; c++) {
            const uint8_t *data = l.line[c].data + i * KG_STRIP_BYTES;
            if (i < whole)
                all[c] = *(const loose_words *)data;
            else
                memcpy(&all[c], data, (size_t)tail);
            fetch_ahead(data + ahead);
        }
#if KG_SCALED_DOTS
        if (dots) {
            add_line_dots(high, &l, entries, i, all, sums);
            continue;
        }
#endif
        add_line(high, &l, i, all, sums);
    }
    for (int c = 0; c < columns; c++)
        for (int r = 0; r < high; r++)
            totals[c][r] = sums[c][r];
}

KG_APART void sum_lines_of(int high, const uint16_t *table, const struct lines *l, int64_t ahead,
                           vector (*totals)[KG_SCALED_HIGH])
{
    if (high == 1 && l->dots)
        sum_lines(1, true, table, l, ahead, totals);
    else if (high == 1)
        sum_lines(1, false, table, l, ahead, totals);
    else if (high == 2 && l->dots)
        sum_lines(2, true, table, l, ahead, totals);
    else if (high == 2)
        sum_lines(2, false, table, l, ahead, totals);
    else if (l->dots)
        sum_lines(4, true, table, l, ahead, totals);
    else
        sum_lines(4, false, table, l, ahead, totals);
}

// The sum of a row and a column in a block of k as the definition has it.
KG_APART KG_REAL compute_line(const struct job *job, int64_t row, int64_t column, int64_t k0,
                              int64_t kn)
{
    KG_REAL sum = 0, *b = job->stage, *a = job->stage + KG_STAGE / 2;
    for (int64_t k = 0; k < kn; k += KG_STAGE / 4) {
        const int64_t deep = least(KG_STAGE / 4, kn - k);
        struct view left;
        b_fill(job->call, job->batch, column, 1, k0 + k, deep, b, KG_B_ALONG_K ? deep : 1);
        if (a_direct(job->call, job->batch, &left)) {
            left = moved(left, row, k0 + k);
            for (int64_t i = 0; i < deep; i++)
                a[i] = has_halves(&left) ? element(true, left.data, i * left.k)
                                         : element(false, left.data, i * left.k);
        } else {
            a_fill(job->call, job->batch, row, 1, k0 + k, deep, a, KG_A_ALONG_K ? deep : 1);
        }
        for (int64_t i = 0; i < deep; i++)
            sum += a[i] * b[i];
    }
    return sum;
}

// Elements of the workspace of lines.
KG_INLINE int64_t scaled_elements(int64_t rows, int64_t columns, int64_t depth)
{
    (void)rows, (void)columns;
    const int64_t wide = ceiling(depth, KG_STRIP) * KG_STRIP;
    return (2 * KG_SCALED_HIGH + 1 + KG_LINE_COLUMNS) * wide + 8 * KG_STRIP;
}

// Divides the workspace. Values of words that are never computed count as zero.
static struct lines open_lines(const struct job *job, int64_t k, int64_t kn)
{
    struct lines l = {.k0 = job->k0 + k, .kn = kn, .strips = ceiling(kn, KG_STRIP)};
    const int64_t wide = l.strips * KG_STRIP, values = wide / KG_PARTS + KG_LANES;
    KG_REAL *next = job->scaled;
    l.x = next;
    l.pairs = (const uint32_t *)(next += KG_SCALED_HIGH * wide);
    next += KG_SCALED_HIGH * wide;
    memset(next, 0, (size_t)(2 * KG_LINE_COLUMNS * values) * sizeof *next);
    for (int c = 0; c < KG_LINE_COLUMNS; c++, next += 2 * values)
        l.line[c] = (struct line){NULL, next, next + values};
    for (int c = 0; c < KG_LINE_COLUMNS; c++, next += wide / KG_PARTS)
        l.copies[c] = (uint8_t *)next;
    l.runs = next;
    return l;
}

// Packs up to KG_SCALED_HIGH rows.
static void pack_lines(const struct job *job, struct lines *l, int64_t row, int64_t rows, int high)
{
    const int64_t wide = l->strips * KG_STRIP;
    KG_REAL *line = job->rows;
    l->dots = KG_SCALED_DOTS;
    for (int r = 0; r < high; r++) {
        memset(line, 0, (size_t)wide * sizeof *line);
        if (r < rows)
            pack(job, job->plan->rows, row + r, 1, l->k0, l->kn, 1, line);
        for (int64_t k = l->kn; k < wide; k++)
            line[k] = 0; // packing writes past the end
#if KG_SCALED_DOTS
        if (l->dots)
            l->dots = pack_line_pairs(line, l->strips,
                                      (uint32_t *)l->pairs + r * wide / 2 * KG_SCALED_TERMS);
#endif
        for (int64_t i = 0; i < l->strips; i++)
            order_by_part(line + i * KG_STRIP, (vector *)l->x + (r * l->strips + i) * KG_PARTS);
    }
}

// The elements of a column from `at` on. Those that begin in the middle of a byte are copied.
KG_INLINE const uint8_t *find_line(const uint8_t *data, int64_t at, int64_t kn, uint8_t *copy)
{
    const uint8_t *from = data + byte_of(at);
    if (KG_SCALED_BITS == 8 || !(at & 1))
        return from;
    for (int64_t i = 0; i < kn / 2; i++)
        copy[i] = (uint8_t)(from[i] >> 4 | from[i + 1] << 4);
    if (kn & 1)
        copy[kn / 2] = from[kn / 2] >> 4;
    return copy;
}

// Adds a block of k to the totals of `rows` rows and up to KG_LANES columns, which are `width`
// columns apart.
static void add_columns(const struct job *job, struct lines *l, const uint16_t *table, int64_t row,
                        int rows, int high, int64_t column, int64_t columns, KG_REAL *totals,
                        int64_t width)
{
    vector sums[KG_SCALED_HIGH][KG_LANES], of_columns[KG_LINE_COLUMNS][KG_SCALED_HIGH];
    const int some = columns_at_once(high, l->dots);
    int64_t first, step;
    const uint8_t *data = b_elements(job->call, job->batch, &first, &step);
    memset(sums, 0, sizeof sums);
    for (int64_t c = 0; c < columns; c += some) {
        for (int i = 0; i < some; i++) {
            const int64_t at = column + least(c + i, columns - 1);
            l->line[i].data = find_line(data, first + at * step + l->k0, l->kn, l->copies[i]);
            fill_line(job, l, at, &l->line[i]);
        }
        sum_lines_of(high, table, l, byte_of(KG_LINES_AHEAD * step), of_columns);
        for (int i = 0; i < some; i++)
            for (int r = 0; r < rows; r++)
                sums[r][c + i] = of_columns[i][r];
    }
    for (int r = 0; r < rows; r++) {
        const vector across = add_across(sums[r]);
        for (int64_t c = 0; c < columns; c++) {
            KG_REAL sum = across[c];
            if (sum * 0 != 0)
                sum = compute_line(job, row + r, column + c, l->k0, l->kn);
            totals[r * width + c] += sum;
        }
    }
}

static void run_lines(const struct job *job, int64_t row, int64_t rows, int64_t column,
                      int64_t columns)
{
    const struct plan *p = job->plan;
    _Alignas(64) uint16_t table[KG_TABLE_ENTRIES];
    KG_REAL *totals = job->sums;
#if KG_SCALED_DOTS
    make_table(table);
#endif
    for (int64_t i = 0; i < rows * columns; i++)
        totals[i] = 0;
    for (int64_t k = 0, kn; k < job->kn; k += kn) {
        kn = least(p->block_k, job->kn - k);
        struct lines l = open_lines(job, k, kn);
        for (int64_t r = 0; r < rows; r += KG_SCALED_HIGH) {
            const int some = (int)least(KG_SCALED_HIGH, rows - r), high = some > 2 ? 4 : some;
            pack_lines(job, &l, row + r, some, high);
            for (int64_t c = 0; c < columns; c += KG_LANES)
                add_columns(job, &l, table, row + r, some, high, column + c,
                            least(KG_LANES, columns - c), totals + r * columns + c, columns);
        }
    }
    store_tile(job, row, rows, column, columns, totals, columns);
}
