// Columns of 4-bit integers with scales, as weights are quantised: B(n, k) = (element - zero) *
// scale, where zeros and scales stay the same for KG_GROUP steps of k (0: for all), and elements
// are adjacent along n. For contract_scaled.h and contract_scaled_panels.h.
//
// A vector of words has the elements of a strip of columns: nibble j of word i is column 8 i + j.
// With the exponent of 2^(23 - shift) above it, a nibble of a word is a float, 2^(23 - shift) +
// element, and the difference to 2^(23 - shift) + zero is exact. What is computed stays in that
// order, vector j having the columns 8 i + j, until it is stored.

// Whether contract_scaled_dots.h is there: a table of 32 entries has all differences to a zero. It
// is one for all columns if the zero is a number.
#define KG_SCALED_FIXED (KG_SCALED_LEAST_ZERO == KG_SCALED_GREATEST_ZERO)
#if KG_SCALED_TERMS > 0 && KG_LANES == 16 && KG_GROUP % 2 == 0 && defined(__AVX512BF16__) &&       \
    defined(__AVX512BW__) && KG_SCALED_GREATEST_ZERO - (KG_SCALED_LEAST_ZERO) <= 16 &&             \
    KG_SCALED_GREATEST_ZERO < 100 && KG_SCALED_LEAST_ZERO > -100
#define KG_SCALED_DOTS 1
#else
#define KG_SCALED_DOTS 0
#endif

typedef uint32_t word_vector __attribute__((vector_size(4 * KG_LANES), may_alias));
typedef uint32_t loose_words __attribute__((vector_size(4 * KG_LANES), aligned(1), may_alias));

enum {
    KG_NIBBLES = 8, // in a word
    KG_STRIP = KG_NIBBLES * KG_LANES,
    KG_STRIP_BYTES = KG_STRIP / 2,
    KG_CHUNK = 16, // steps of k in one pass along the columns: each reads a line of its own
    KG_SCALED_PIECE = 8 * KG_STRIP, // columns whose scales are computed at once
    // Of contract_scaled.h: rows; rows and vectors of sums in a register tile. At most.
    KG_SCALED_ROWS = 8,
    KG_SCALED_HIGH = 4,
    KG_SCALED_TILE = KG_LANES == 16 ? 16 : 8,
};

// Where the columns of a job lie, and what is computed of them.
struct strips {
    int64_t count; // the last one may be incomplete
    int64_t last;  // columns of the last strip
    const uint8_t *data;
    int64_t first, k; // the first element, and the distance between steps of k, in elements
    bool crooked;     // some lines begin in the middle of a byte
    const KG_REAL *x; // a few rows: (row, k) is x[k * high + row]
    KG_REAL *zeros;   // nibble_exponent() + zero
    KG_REAL *scales;
    // Of a few rows, those of a strip side by side: sums of the k with the same scales, and of a
    // block of k.
    KG_REAL *sums, *scaled;
    // For contract_scaled_dots.h.
    bool dots;
    word_vector *bytes;    // four for each strip: zeros
    const uint16_t *table; // differences to the zero
    uint32_t *pairs;       // rows, as pairs along k
};

// The number of bits below nibble j, once the upper three have been shifted down by 12.
KG_INLINE int nibble_shift(int j)
{
    return j < 5 ? 4 * j : 4 * (j - 3);
}

// What the exponent of nibble j adds to it.
KG_INLINE KG_REAL nibble_exponent(int j)
{
    return (KG_REAL)(1 << (23 - nibble_shift(j)));
}

// Nibble j of each word as nibble_exponent() + element. Signed elements are taken as element + 8.
KG_INLINE vector nibbles(word_vector all, word_vector upper, int j)
{
    const uint32_t exponent = 0x4b000000 - ((uint32_t)nibble_shift(j) << 23),
                   sign = KG_SCALED_SIGNED ? 8u << nibble_shift(j) : 0;
    return (vector)(((j < 5 ? all : upper) & (15u << nibble_shift(j))) ^ (exponent | sign));
}

// Fetches a line of the next chunk into the second cache: in the first one, lines at a distance
// that is a power of two would evict each other. On one core of Zen 4 that reads 20.4 GB/s,
// and 16.9 into the first.
KG_INLINE void fetch_ahead(const uint8_t *from)
{
    __builtin_prefetch(from, 0, 2);
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

#if !KG_SCALED_LINES
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

#if KG_SCALED_DOTS
// Zeros of a strip as bytes, for contract_scaled_dots.h.
KG_INLINE void order_bytes(const vector by[KG_NIBBLES], word_vector bytes[4])
{
    typedef int32_t numbers __attribute__((vector_size(64)));
    const KG_REAL bias = KG_SCALED_SIGNED ? 8 : 0;
    for (int i = 0; i < 4; i++) {
        const int low = i < 2 ? i : i + 2;
        const numbers first = __builtin_convertvector(by[low] + bias, numbers);
        const numbers second = __builtin_convertvector(by[low + 2] + bias, numbers);
        const word_vector half = (word_vector)((first & 255) | (second & 255) << 8);
        bytes[i] = half | half << 16;
    }
}
#endif

// Computes zeros and scales of all columns at `k`, in the order of the sums.
static void order_scales(const struct job *job, const struct strips *s, int64_t column, int64_t k)
{
    const KG_REAL bias = KG_SCALED_SIGNED ? 8 : 0;
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
                ((vector *)(s->zeros + c + i))[j] = by[j] + (bias + nibble_exponent(j));
#if KG_SCALED_DOTS
            if (s->dots && !KG_SCALED_FIXED)
                order_bytes(by, s->bytes + (c + i) / KG_STRIP * 4);
#endif
            order_by_nibble(scales + i, by);
            for (int j = 0; j < KG_NIBBLES; j++)
                ((vector *)(s->scales + c + i))[j] = by[j];
        }
    }
}

// One past the last step of k, of those up to `kn`, with the scales of step `k`.
KG_INLINE int64_t scales_end(int64_t k0, int64_t k, int64_t kn)
{
#if KG_GROUP > 0
    return least(kn, k + KG_GROUP - (k0 + k) % KG_GROUP);
#else
    (void)k0, (void)k;
    return kn;
#endif
}

// The strips of so many columns, with their workspace.
KG_INLINE struct strips open_strips(const struct job *job, int64_t columns)
{
    struct strips s = {.count = ceiling(columns, KG_STRIP)};
    s.last = columns - (s.count - 1) * KG_STRIP;
    s.zeros = job->scaled;
    s.scales = s.zeros + s.count * KG_STRIP;
    return s;
}

// Finds the elements from `column` on in the block of k that begins at `k0`.
KG_INLINE void place_strips(const struct job *job, struct strips *s, int64_t column, int64_t k0)
{
    s->data = b_elements(job->call, job->batch, &s->first, &s->k);
    s->first += k0 * s->k + column;
    s->crooked = (s->first | s->k) & 1;
}
#endif
