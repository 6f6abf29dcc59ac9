// The path for a few rows against columns of 4-bit integers with scales, as weights are quantised:
// B(n, k) = (element - zero) * scale, where zeros and scales stay the same for KG_GROUP steps of k
// (0: for all), and elements are adjacent along n. Each element is read once, from where it lies.
//
// A vector of words has the elements of a strip of columns: nibble j of word i is column 8 i + j.
// With the exponent of 2^23 above it, a nibble is a float, 2^23 + element * 2^shift, and the
// difference to 2^23 + zero * 2^shift is exact. These differences are multiplied by the rows and
// added up, for all k with the same scales; then the sums are scaled. Sums are kept in the order of
// words, vector j having the columns 8 i + j. Sums that are not finite are computed again as the
// definition has them, because factors that are not finite may have been multiplied in another
// order.
#if KG_SCALED
typedef uint32_t word_vector __attribute__((vector_size(4 * KG_LANES), may_alias));
typedef uint32_t loose_words __attribute__((vector_size(4 * KG_LANES), aligned(1), may_alias));

enum {
    KG_NIBBLES = 8, // in a word
    KG_STRIP = KG_NIBBLES * KG_LANES,
    KG_STRIP_BYTES = KG_STRIP / 2,
    KG_CHUNK = 16,        // steps of k in one pass along the columns: each reads a line of its own
    KG_SCALED_HIGH = 4,   // rows of a register tile, at most
    KG_SCALED_PIECE = 8 * KG_STRIP, // columns whose scales are computed at once
    // Vectors of sums of a register tile.
    KG_SCALED_TILE = KG_LANES == 16 ? 16 : 8,
};

// Where the columns of a job lie, and where its sums are.
struct strips {
    int64_t count;      // the last one may be incomplete
    int64_t last;       // columns of the last strip
    const uint8_t *data;
    int64_t first, k;   // the first element, and the distance between steps of k, in elements
    bool crooked;       // some lines begin in the middle of a byte
    const KG_REAL *x;   // packed rows: (row, k) is x[k * high + row]
    KG_REAL *zeros;     // 2^23 + zero * 2^shift
    KG_REAL *scales;
    KG_REAL *sums;      // of the k with the same scales: (strip * high + row) * KG_STRIP
    KG_REAL *scaled;    // of a block of k, likewise
};

// The number of bits below nibble j, once the upper three have been shifted down by 12.
KG_INLINE int nibble_shift(int j)
{
    return j < 5 ? 4 * j : 4 * (j - 3);
}

// Nibble j of each word as 2^23 + element * 2^shift. Signed elements are taken as element + 8.
KG_INLINE vector nibbles(word_vector all, word_vector upper, int j)
{
    const uint32_t exponent = 0x4b000000, sign = KG_SCALED_SIGNED ? 8u << nibble_shift(j) : 0;
    return (vector)(((j < 5 ? all : upper) & (15u << nibble_shift(j))) ^ (exponent | sign));
}

// The words of a strip from element `at` on.
KG_INLINE word_vector strip_words(const bool crooked, const uint8_t *data, int64_t at)
{
    const uint8_t *from = data + (at >> 1);
    const word_vector even = *(const loose_words *)from;
    if (!crooked || !(at & 1))
        return even;
    return even >> 4 | (*(const loose_words *)(from + 1) << 4 & 0xf0000000);
}

// Adds up to KG_CHUNK steps of k to the sums of a strip, of which `some` nibbles from `j0` on are
// in registers.
KG_INLINE void add_nibbles(const int high, const int j0, const int some, const bool crooked,
                           int64_t kn, const uint8_t *data, int64_t at, int64_t step,
                           const KG_REAL *x, const KG_REAL *zeros, bool fresh, KG_REAL *sums)
{
    vector sum[KG_SCALED_TILE], zero[KG_NIBBLES];
    for (int j = 0; j < some; j++)
        zero[j] = ((const vector *)zeros)[j0 + j];
    for (int r = 0; r < high; r++)
        for (int j = 0; j < some; j++)
            sum[r * some + j] =
                fresh ? (vector){0} : ((const vector *)sums)[r * KG_NIBBLES + j0 + j];
#pragma GCC unroll 2
    for (int64_t k = 0; k < kn; k++) {
        const word_vector all = strip_words(crooked, data, at), upper = all >> 12;
        if (j0 == 0)
            __builtin_prefetch(data + ((at + KG_CHUNK * step) >> 1));
        for (int j = 0; j < some; j++) {
            const vector element = nibbles(all, upper, j0 + j) - zero[j];
            for (int r = 0; r < high; r++)
                sum[r * some + j] += x[k * high + r] * element;
        }
        at += step;
    }
    for (int r = 0; r < high; r++)
        for (int j = 0; j < some; j++)
            ((vector *)sums)[r * KG_NIBBLES + j0 + j] = sum[r * some + j];
}

KG_INLINE void add_strip(const int high, const bool crooked, int64_t kn, const uint8_t *data,
                         int64_t at, int64_t step, const KG_REAL *x, const KG_REAL *zeros,
                         bool fresh, KG_REAL *sums)
{
    const int some = least(KG_NIBBLES, KG_SCALED_TILE / high);
#pragma GCC unroll 8
    for (int j = 0; j < KG_NIBBLES; j += some)
        add_nibbles(high, j, some, crooked, kn, data, at, step, x, zeros, fresh, sums);
}

// The last strip, if it is incomplete: its elements are copied, and zeros put behind them.
KG_APART void copy_strip(const uint8_t *data, int64_t at, int64_t step, int64_t kn, int64_t columns,
                         uint8_t *to)
{
    for (int64_t k = 0; k < kn; k++, at += step, to += KG_STRIP_BYTES) {
        memset(to, 0, KG_STRIP_BYTES);
        if (at & 1)
            for (int64_t i = 0; i < columns; i++)
                to[i / 2] |= (uint8_t)((data[(at + i) >> 1] >> (at + i) % 2 * 4 & 15) << i % 2 * 4);
        else
            memcpy(to, data + at / 2, (size_t)(columns + 1) / 2);
    }
}

KG_INLINE void add_chunk(const int high, const bool crooked, const struct strips *s, int64_t k,
                         int64_t kn, bool fresh)
{
    const KG_REAL *x = s->x + k * high;
    const int64_t whole = s->last == KG_STRIP ? s->count : s->count - 1;
    int64_t at = s->first + k * s->k;
    for (int64_t i = 0; i < whole; i++, at += KG_STRIP)
        add_strip(high, crooked, kn, s->data, at, s->k, x, s->zeros + i * KG_STRIP, fresh,
                  s->sums + i * high * KG_STRIP);
    if (whole < s->count) {
        uint8_t copy[KG_CHUNK * KG_STRIP_BYTES];
        copy_strip(s->data, at, s->k, kn, s->last, copy);
        add_strip(high, false, kn, copy, 0, KG_STRIP, x, s->zeros + whole * KG_STRIP, fresh,
                  s->sums + whole * high * KG_STRIP);
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

// Columns 8 i + j of a strip, for each j: every second element, three times.
KG_INLINE void order_by_nibble(const KG_REAL *columns, vector by[KG_NIBBLES])
{
#if KG_LANES == 4
#define KG_EVEN KG_LIST(0, 2, 4, 6)
#define KG_ODD KG_LIST(1, 3, 5, 7)
#elif KG_LANES == 8
#define KG_EVEN KG_LIST(0, 2, 4, 6, 8, 10, 12, 14)
#define KG_ODD KG_LIST(1, 3, 5, 7, 9, 11, 13, 15)
#else
#define KG_EVEN KG_LIST(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
#define KG_ODD KG_LIST(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)
#endif
    vector next[KG_NIBBLES];
    for (int j = 0; j < KG_NIBBLES; j++)
        by[j] = ((const loose_vector *)columns)[j];
    for (int apart = 4; apart > 0; apart /= 2) {
        for (int j = 0; j < KG_NIBBLES; j += 2) {
            // The pair is in the group of columns j / (2 apart), which splits by the next bit.
            const int to = j / (2 * apart) * (2 * apart) + j % (2 * apart) / 2;
            next[to] = KG_SHUFFLE(by[j], by[j + 1], KG_EVEN);
            next[to + apart] = KG_SHUFFLE(by[j], by[j + 1], KG_ODD);
        }
        for (int j = 0; j < KG_NIBBLES; j++)
            by[j] = next[j];
    }
    for (int j = 0; j < KG_NIBBLES; j++) // the first bit of the column is the last of the place
        next[(j & 1) << 2 | (j & 2) | j >> 2] = by[j];
    for (int j = 0; j < KG_NIBBLES; j++)
        by[j] = next[j];
#undef KG_EVEN
#undef KG_ODD
}

// Computes zeros and scales of all columns at `k`, in the order of the sums.
static void order_scales(const struct job *job, const struct strips *s, int64_t column, int64_t k)
{
    const KG_REAL exponent = 0x1p23f, bias = KG_SCALED_SIGNED ? 8 : 0;
    KG_REAL *zeros = job->stage, *scales = job->stage + KG_SCALED_PIECE;
    const int64_t columns = (s->count - 1) * KG_STRIP + s->last;
    for (int64_t c = 0; c < columns; c += KG_SCALED_PIECE) {
        const int64_t some = least(KG_SCALED_PIECE, columns - c);
        b_zeros(job->call, job->batch, column + c, some, k, 1, zeros, some);
        b_scales(job->call, job->batch, column + c, some, k, 1, scales, some);
        for (int64_t i = some; i < ceiling(some, KG_STRIP) * KG_STRIP; i++)
            zeros[i] = scales[i] = 0;
        for (int64_t i = 0; i < some; i += KG_STRIP) {
            vector by[KG_NIBBLES];
            order_by_nibble(zeros + i, by);
            for (int j = 0; j < KG_NIBBLES; j++)
                ((vector *)(s->zeros + c + i))[j] =
                    exponent + (by[j] + bias) * (KG_REAL)(1 << nibble_shift(j));
            order_by_nibble(scales + i, by);
            for (int j = 0; j < KG_NIBBLES; j++)
                ((vector *)(s->scales + c + i))[j] = by[j];
        }
    }
}

static void scale_sums(const int high, const struct strips *s, bool fresh)
{
    for (int64_t i = 0; i < s->count; i++)
        for (int r = 0; r < high; r++) {
            const vector *from = (const vector *)(s->sums + (i * high + r) * KG_STRIP);
            const vector *scale = (const vector *)(s->scales + i * KG_STRIP);
            vector *to = (vector *)(s->scaled + (i * high + r) * KG_STRIP);
            for (int j = 0; j < KG_NIBBLES; j++) {
                const KG_REAL unit = 1 / (KG_REAL)(1 << nibble_shift(j));
                vector sum = from[j] * unit * scale[j];
                if (!fresh)
                    sum += to[j];
                to[j] = sum;
            }
        }
}

// Whether all sums of a strip are finite: else a product with 0 is NaN.
KG_INLINE bool strip_is_finite(const KG_REAL *sums, int high)
{
    vector none = {0};
    for (int i = 0; i < high * KG_NIBBLES; i++)
        none += ((const vector *)sums)[i] * 0;
    KG_REAL any = 0;
    for (int lane = 0; lane < KG_LANES; lane++)
        any += none[lane];
    return any == 0;
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
                    to[r * KG_STRIP + c % KG_NIBBLES * KG_LANES + c / KG_NIBBLES] +=
                        s->x[(k + d) * high + r] * job->stage[d * columns + c];
    }
}

// One block of k for up to KG_SCALED_HIGH rows.
static void run_strips(const struct job *job, const struct strips *s, int high, int64_t column,
                       int64_t k0, int64_t kn)
{
    int64_t end;
    for (int64_t k = 0; k < kn; k = end) {
        end = KG_GROUP > 0 ? least(kn, k + KG_GROUP - (k0 + k) % (KG_GROUP + !KG_GROUP)) : kn;
        order_scales(job, s, column, k0 + k);
        for (int64_t at = k; at < end; at += KG_CHUNK) {
            const int64_t deep = least(KG_CHUNK, end - at);
            if (high == 1)
                add_chunk_1(s, at, deep, at == k);
            else if (high == 2)
                add_chunk_2(s, at, deep, at == k);
            else
                add_chunk_4(s, at, deep, at == k);
        }
        scale_sums(high, s, k == 0);
    }
    for (int64_t i = 0; i < s->count; i++)
        if (!strip_is_finite(s->scaled + i * high * KG_STRIP, high))
            compute_strip(job, s, high, i, column, k0, kn);
}

// Elements of the workspace that run_scaled needs beside that of panels.
KG_INLINE int64_t scaled_elements(int64_t rows, int64_t columns)
{
    const int64_t wide = ceiling(columns, KG_STRIP) * KG_STRIP;
    return (2 + 2 * KG_SCALED_HIGH) * wide + rows * columns + KG_LANES;
}

static void run_scaled(const struct job *job, int64_t row, int64_t rows, int64_t column,
                       int64_t columns)
{
    const struct plan *p = job->plan;
    const int64_t count = ceiling(columns, KG_STRIP), wide = count * KG_STRIP;
    struct strips s = {.count = count, .last = columns - (count - 1) * KG_STRIP};
    s.x = job->rows;
    s.zeros = job->scaled;
    s.scales = s.zeros + wide;
    s.sums = s.scales + wide;
    s.scaled = s.sums + KG_SCALED_HIGH * wide;
    KG_REAL *totals = s.scaled + KG_SCALED_HIGH * wide;
    int64_t k = 0;
    do { // also once for an empty k
        const int64_t k0 = job->k0 + k, kn = least(p->block_k, job->kn - k);
        s.data = b_elements(job->call, job->batch, &s.first, &s.k);
        s.first += k0 * s.k + column;
        s.crooked = (s.first | s.k) & 1;
        for (int64_t r = 0; r < rows; r += KG_SCALED_HIGH) {
            const int64_t some = least(KG_SCALED_HIGH, rows - r);
            const int high = some > 2 ? 4 : (int)some;
            if (kn > 0) {
                pack(job, p->rows, row + r, some, k0, kn, high, job->rows);
                run_strips(job, &s, high, column, k0, kn);
            }
            for (int64_t i = 0; i < some; i++)
                for (int64_t c = 0; c < columns; c++) {
                    const KG_REAL *from = s.scaled + (c / KG_STRIP * high + i) * KG_STRIP;
                    const KG_REAL sum =
                        kn > 0 ? from[c % KG_NIBBLES * KG_LANES + c % KG_STRIP / KG_NIBBLES] : 0;
                    totals[(r + i) * columns + c] =
                        k > 0 ? totals[(r + i) * columns + c] + sum : sum;
                }
        }
        k += kn;
    } while (k < job->kn);
    store_tile(job, row, rows, column, columns, totals, columns);
}
#endif
