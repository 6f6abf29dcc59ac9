// Columns of integers of KG_SCALED_BITS, 4 or 8, with scales, as weights are quantised: B(n, k) =
// (element - zero) * scale + offset, where zeros, scales and offsets stay the same for KG_GROUP
// steps of k (0: for all), and elements are adjacent along n; or, if KG_SCALED_PACKED, lie in the
// panels of docs/packed.md. There are offsets if KG_SCALED_OFFSET is not 0; -1: they are
// subtracted. If KG_SCALED_ROUNDS is not 0, B(n, k) is rounded to that dtype of 16 bits. For
// contract_scaled.h and contract_scaled_panels.h.
//
// A vector of words has the elements of a strip of columns: part j of word i, a nibble or a byte,
// is column KG_PARTS i + j. With the exponent of 2^(23 - shift) above it, a part of a word is a
// float, 2^(23 - shift) + element, and the difference to 2^(23 - shift) + zero is exact. What is
// computed stays in that order, vector j having the columns KG_PARTS i + j, until it is stored.

// Whether bf16 numbers are all that is multiplied: a table of 32 entries has all differences to a
// zero. It is one for all columns if the zero is a number.
#define KG_WHOLE_PANELS (KG_SCALED_PACKED && KG_GROUP % 64 == 0)
#define KG_SCALED_FIXED (KG_SCALED_LEAST_ZERO == KG_SCALED_GREATEST_ZERO)
#define KG_SCALED_TABLE                                                                            \
    (KG_SCALED_BITS == 4 && KG_SCALED_TERMS > 0 && KG_LANES == 16 &&                               \
     KG_SCALED_GREATEST_ZERO - (KG_SCALED_LEAST_ZERO) <= 16 && KG_SCALED_GREATEST_ZERO < 100 &&    \
     KG_SCALED_LEAST_ZERO > -100)

// Whether contract_scaled_dots.h is there.
#if KG_SCALED_TABLE && KG_GROUP % 2 == 0 &&                                                        \
    (!KG_SCALED_ROUNDS || (KG_SCALED_ROUNDS == KG_BF16 && KG_WHOLE_PANELS)) &&                     \
    defined(__AVX512BF16__) && defined(__AVX512BW__)
#define KG_SCALED_DOTS 1
#else
#define KG_SCALED_DOTS 0
#endif

// Whether contract_scaled_panel_dots.h is there: runs of k consist of whole panels.
#if KG_SCALED_DOTS && KG_WHOLE_PANELS
#define KG_PANEL_DOTS 1
#else
#define KG_PANEL_DOTS 0
#endif

// Differences of bytes to a zero are 256 at most, which bf16 has exactly.
#define KG_SCALED_BYTES                                                                            \
    (KG_SCALED_BITS == 8 && KG_SCALED_TERMS > 0 && KG_LANES == 16 &&                               \
     KG_SCALED_LEAST_ZERO >= (KG_SCALED_SIGNED ? -129 : -1) &&                                     \
     KG_SCALED_GREATEST_ZERO <= (KG_SCALED_SIGNED ? 128 : 256))

// Whether contract_scaled_tiles.h is there.
#if (KG_SCALED_TABLE || KG_SCALED_BYTES) && KG_TILES && !KG_SCALED_ROUNDS &&                       \
    defined(KG_TILE_DOT_BF16)
#define KG_SCALED_TILES 1
#else
#define KG_SCALED_TILES 0
#endif

typedef uint32_t word_vector __attribute__((vector_size(4 * KG_LANES), may_alias));
typedef uint32_t loose_words __attribute__((vector_size(4 * KG_LANES), aligned(1), may_alias));

enum {
    KG_PARTS = 32 / KG_SCALED_BITS, // in a word
    KG_STRIP = KG_PARTS * KG_LANES,
    KG_STRIP_BYTES = 4 * KG_LANES,
    // What is added to signed elements.
    KG_SCALED_BIAS = KG_SCALED_SIGNED ? 1 << (KG_SCALED_BITS - 1) : 0,
    // Steps of k in one pass along the columns: each reads a line of its own, or all a panel.
    KG_CHUNK = KG_SCALED_PACKED ? 64 : 16,
    KG_SCALED_PIECE = 8 * KG_STRIP, // columns whose scales are computed at once
    // Rows that are multiplied in place, at most: more of them are worth converting columns once.
    // On one core of an AVX2 machine, f16 rows against lines, 4096 x 4096: 16 rows take 23.3 ms in
    // place and 28.5 by conversion, 32 rows 45.0 and 42.2.
    KG_SCALED_ROWS = KG_SCALED_LINES && KG_LANES < 16 ? 24 : 8,
    KG_DIFFERENCES = 32, // to zeros, entries of a table
    // Of contract_scaled.h: rows and vectors of sums in a register tile, at most.
    KG_SCALED_HIGH = 4,
    KG_SCALED_TILE = KG_LANES == 16 ? 16 : 8,
};

struct panel_work;

// Where the columns of a job lie, and what is computed of them.
struct strips {
    int64_t count; // the last one may be incomplete
    int64_t last;  // columns of the last strip
    const uint8_t *data;
    int64_t first, k; // the first element, and the distance between steps of k, in elements
    bool crooked;     // some lines begin in the middle of a byte
    // Of panels: where they and rows of 64 steps begin are `first` and `k`; the job's first ones.
    int64_t k0, column;
    const KG_REAL *x; // a few rows: (row, k) is x[k * high + row]
    KG_REAL *zeros;   // part_exponent() + zero; if KG_SCALED_FIXED, of one strip for all
    KG_REAL *scales;
    KG_REAL *offsets; // if there are any
    // Of a few rows, those of a strip side by side: sums of the k with the same scales, and of a
    // block of k.
    KG_REAL *sums, *scaled;
    // For contract_scaled_dots.h.
    bool dots;
    word_vector *bytes;      // four for each strip: zeros
    const uint16_t *table;   // differences to the zero
    uint32_t *pairs;         // rows, as pairs along k
    struct panel_work *work; // for contract_scaled_panel_dots.h
};

// The number of bits below part j, once the upper parts, those from KG_LOW_PARTS on, have been
// shifted down by KG_UPPER_SHIFT: a float has 23 bits for it.
#if KG_SCALED_BITS == 4
enum { KG_LOW_PARTS = 5, KG_UPPER_SHIFT = 12 };
#else
enum { KG_LOW_PARTS = 2, KG_UPPER_SHIFT = 16 };
#endif

KG_INLINE int part_shift(int j)
{
    return j < KG_LOW_PARTS ? KG_SCALED_BITS * j : KG_SCALED_BITS * j - KG_UPPER_SHIFT;
}

// What the exponent of part j adds to it.
KG_INLINE KG_REAL part_exponent(int j)
{
    return (KG_REAL)(1 << (23 - part_shift(j)));
}

// Part j of each word as part_exponent() + element, which a signed one is KG_SCALED_BIAS above.
KG_INLINE vector parts_of(word_vector all, word_vector upper, int j)
{
    const uint32_t exponent = 0x4b000000 - ((uint32_t)part_shift(j) << 23),
                   bits = (1u << KG_SCALED_BITS) - 1,
                   sign = (uint32_t)KG_SCALED_BIAS << part_shift(j);
    return (vector)(((j < KG_LOW_PARTS ? all : upper) & (bits << part_shift(j))) ^
                    (exponent | sign));
}

#if KG_SCALED_ROUNDS
// To the nearest number of 16 bits, ties to even.
KG_INLINE vector rounded(vector x)
{
#if KG_SCALED_ROUNDS == KG_BF16
    const word_vector bits = (word_vector)x, is_nan = (word_vector)(x != x);
    const word_vector near = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
    return (vector)((bits & is_nan) | (near & ~is_nan));
#elif KG_LANES == 16 && defined(__AVX512F__)
    typedef int16_t halves __attribute__((vector_size(32)));
    const halves near = __builtin_ia32_vcvtps2ph512_mask(x, 0, (halves){0}, 0xffff);
    return (vector)__builtin_ia32_vcvtph2ps512_mask(near, (vector){0}, 0xffff, 4);
#elif KG_LANES == 8 && defined(__F16C__)
    return (vector)__builtin_ia32_vcvtph2ps256(__builtin_ia32_vcvtps2ph256(x, 0));
#else
    for (int i = 0; i < KG_LANES; i++)
        x[i] = kg_unpack_f16(kg_pack_f16(x[i]));
    return x;
#endif
}
#endif

// Where the byte of an element is, from the first one on.
KG_INLINE int64_t byte_of(int64_t element)
{
    return element * KG_SCALED_BITS / 8;
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
    const uint8_t *from = data + byte_of(at);
    const word_vector even = *(const loose_words *)from;
    if (KG_SCALED_BITS == 8 || !crooked || !(at & 1))
        return even;
    return even >> 4 | (*(const loose_words *)(from + 1) << 4 & 0xf0000000);
}

// Columns KG_PARTS i + j of a strip, for each j: every second element, two or three times.
KG_INLINE void order_by_part(const KG_REAL *columns, vector by[KG_PARTS])
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
    vector next[KG_PARTS];
    for (int j = 0; j < KG_PARTS; j++)
        by[j] = ((const loose_vector *)columns)[j];
    for (int apart = KG_PARTS / 2; apart > 0; apart /= 2) {
        for (int j = 0; j < KG_PARTS; j += 2) {
            // The pair is in the group of columns j / (2 apart), which splits by the next bit.
            const int to = j / (2 * apart) * (2 * apart) + j % (2 * apart) / 2;
            next[to] = KG_SHUFFLE(by[j], by[j + 1], KG_EVEN);
            next[to + apart] = KG_SHUFFLE(by[j], by[j + 1], KG_ODD);
        }
        for (int j = 0; j < KG_PARTS; j++)
            by[j] = next[j];
    }
    for (int j = 0; j < KG_PARTS; j++) // the first bit of the column is the last of the place
        next[KG_PARTS == 8 ? (j & 1) << 2 | (j & 2) | j >> 2 : (j & 1) << 1 | j >> 1] = by[j];
    for (int j = 0; j < KG_PARTS; j++)
        by[j] = next[j];
#undef KG_EVEN
#undef KG_ODD
}

#if KG_LANES == 16
typedef uint16_t half_vector __attribute__((vector_size(64), may_alias));
#endif

#if KG_SCALED_TABLE
// Entry i is the difference that is i modulo 32 or, where the zero is a number, that of element
// i modulo 16.
KG_INLINE void make_differences(uint16_t *table)
{
    const int bias = KG_SCALED_SIGNED ? 8 : 0, first = -(KG_SCALED_GREATEST_ZERO + bias);
    for (int i = 0; i < KG_DIFFERENCES; i++) {
        const int element = KG_SCALED_SIGNED ? ((i & 15) ^ 8) - 8 : i & 15;
        const int value =
            KG_SCALED_FIXED ? element - KG_SCALED_LEAST_ZERO : first + ((i - first) & 31);
        table[i] = (uint16_t)(kg_bits_f32((float)value) >> 16);
    }
}

// The entries whose numbers are the lower five bits of each half.
KG_INLINE half_vector find_halves(half_vector table, word_vector numbers)
{
    half_vector found;
#if defined(__AVX512BW__)
    __asm__("vpermw %1, %2, %0" : "=v"(found) : "vm"(table), "v"(numbers));
#else
    const half_vector number = (half_vector)numbers & (KG_DIFFERENCES - 1);
    for (int i = 0; i < KG_DIFFERENCES; i++)
        found[i] = table[number[i]];
#endif
    return found;
}
#endif

// Zeros, scales and offsets of strip `i`, a vector for each part of its words.
struct strip_values {
    const vector *zeros, *scales, *offsets;
};

KG_INLINE struct strip_values values_of(const struct strips *s, int64_t i)
{
    return (struct strip_values){(const vector *)(s->zeros + (KG_SCALED_FIXED ? 0 : i * KG_STRIP)),
                                 (const vector *)(s->scales + i * KG_STRIP),
                                 (const vector *)(s->offsets + i * KG_STRIP)};
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

// Whether all sums of a strip are finite: else a product with 0 is NaN.
KG_INLINE bool strip_is_finite(const KG_REAL *sums, int high)
{
    vector none = {0};
    for (int i = 0; i < high * KG_PARTS; i++)
        none += ((const vector *)sums)[i] * 0;
    KG_REAL any = 0;
    for (int lane = 0; lane < KG_LANES; lane++)
        any += none[lane];
    return any == 0;
}

#if !KG_SCALED_LINES
#if !KG_SCALED_PACKED
// The last strip, if it is incomplete: its elements are copied, and zeros put behind them.
KG_APART void copy_strip(const uint8_t *data, int64_t at, int64_t step, int64_t kn, int64_t columns,
                         uint8_t *to)
{
    for (int64_t k = 0; k < kn; k++, at += step, to += KG_STRIP_BYTES) {
        memset(to, 0, KG_STRIP_BYTES);
        if (KG_SCALED_BITS == 4 && at & 1)
            for (int64_t i = 0; i < columns; i++)
                to[i / 2] |= (uint8_t)((data[(at + i) >> 1] >> (at + i) % 2 * 4 & 15) << i % 2 * 4);
        else
            memcpy(to, data + byte_of(at), (size_t)(columns * KG_SCALED_BITS + 7) / 8);
    }
}

#else
typedef uint8_t panel_bytes __attribute__((vector_size(16), may_alias));
typedef uint8_t loose_bytes __attribute__((vector_size(16), aligned(1), may_alias));

// A panel as 64 lines of 16 columns, `pitch` bytes apart. Of the 16 bytes of lane 4 g + t byte 4 j
// + b has columns 2 g and 2 g + 1 of step 16 j + 2 t + b % 2 * 8 + b / 2.
KG_INLINE void open_panel(const uint8_t *panel, uint8_t *to, int64_t pitch)
{
    for (int t = 0; t < 4; t++) {
        panel_bytes by[8], next[8];
        for (int g = 0; g < 8; g++)
            by[g] = *(const loose_bytes *)(panel + (g * 4 + t) * 16);
        for (int round = 0; round < 3; round++) { // of a transposition: pairs from half to half
            for (int i = 0; i < 4; i++) {
                next[2 * i] = KG_SHUFFLE(by[i], by[i + 4], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21,
                                         6, 22, 7, 23);
                next[2 * i + 1] = KG_SHUFFLE(by[i], by[i + 4], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28,
                                             13, 29, 14, 30, 15, 31);
            }
            for (int i = 0; i < 8; i++)
                by[i] = next[i];
        }
        for (int i = 0; i < 16; i++)
            memcpy(to + (i / 4 * 16 + 2 * t + i % 2 * 8 + i % 4 / 2) * pitch,
                   (const uint8_t *)&by[i / 2] + i % 2 * 8, 8);
    }
}

// Copies steps [k, k + kn) of a strip, with zeros behind its last panel.
KG_APART void copy_panels(const struct strips *s, int64_t i, int64_t k, int64_t kn, uint8_t *to)
{
    enum { ROWS = 64, COLUMNS = 16, BYTES = 512, LINE = COLUMNS / 2 };
    const int64_t columns = i + 1 < s->count ? KG_STRIP : s->last;
    if (columns < KG_STRIP)
        memset(to, 0, (size_t)(kn * KG_STRIP_BYTES));
    for (int64_t some; kn > 0; k += some, kn -= some, to += some * KG_STRIP_BYTES) {
        const int64_t row = (s->k0 + k) % ROWS;
        const uint8_t *panel = s->data + (s->first + (s->k0 + k) / ROWS * s->k) / 2 +
                               (s->column + i * KG_STRIP) / COLUMNS * BYTES;
        some = least(ROWS - row, kn);
        for (int64_t c = 0; c < columns; c += COLUMNS, panel += BYTES) {
            uint8_t lines[ROWS * LINE];
            for (int64_t at = 0; at < BYTES; at += 64)
                fetch_ahead(panel + s->k / 2 + at);
            if (some == ROWS) {
                open_panel(panel, to + c / 2, KG_STRIP_BYTES);
                continue;
            }
            open_panel(panel, lines, LINE);
            for (int64_t r = 0; r < some; r++)
                memcpy(to + r * KG_STRIP_BYTES + c / 2, lines + (row + r) * LINE, LINE);
        }
    }
}
#endif

// Strips that are read where they lie; the others are copied.
KG_INLINE int64_t strips_in_place(const struct strips *s)
{
    return KG_SCALED_PACKED ? 0 : s->last == KG_STRIP ? s->count : s->count - 1;
}

// Steps [k, k + kn) of a strip that is not, in lines of KG_STRIP_BYTES.
KG_INLINE void copy_steps(const struct strips *s, int64_t i, int64_t k, int64_t kn, uint8_t *to)
{
#if KG_SCALED_PACKED
    copy_panels(s, i, k, kn, to);
#else
    copy_strip(s->data, s->first + k * s->k + i * KG_STRIP, s->k, kn, s->last, to);
#endif
}

#if KG_SCALED_DOTS && !KG_PANEL_DOTS
// Zeros of a strip as bytes, for contract_scaled_dots.h.
KG_INLINE void order_bytes(const vector by[KG_PARTS], word_vector bytes[4])
{
    typedef int32_t numbers __attribute__((vector_size(64)));
    const KG_REAL bias = KG_SCALED_BIAS;
    for (int i = 0; i < 4; i++) {
        const int low = i < 2 ? i : i + 2;
        const numbers first = __builtin_convertvector(by[low] + bias, numbers);
        const numbers second = __builtin_convertvector(by[low + 2] + bias, numbers);
        const word_vector half = (word_vector)((first & 255) | (second & 255) << 8);
        bytes[i] = half | half << 16;
    }
}
#endif

// Puts the zeros of a strip, part by part, where they are read.
KG_INLINE void put_zeros(const vector by[KG_PARTS], vector *to)
{
    for (int j = 0; j < KG_PARTS; j++)
        to[j] = by[j] + (KG_SCALED_BIAS + part_exponent(j));
}

// Computes the scales of all columns at `k`, and the zeros unless all are one constant, in the
// order of the sums.
static void order_scales(const struct job *job, const struct strips *s, int64_t column, int64_t k)
{
    KG_REAL *zeros = job->stage, *scales = job->stage + KG_SCALED_PIECE;
#if KG_SCALED_OFFSET
    KG_REAL *offsets = scales + KG_SCALED_PIECE;
#endif
    const int64_t columns = (s->count - 1) * KG_STRIP + s->last;
    for (int64_t c = 0; c < columns; c += KG_SCALED_PIECE) {
        const int64_t some = least(KG_SCALED_PIECE, columns - c);
        if (!KG_SCALED_FIXED)
            b_zeros(job->call, job->batch, column + c, some, k, 1, zeros, some);
        b_scales(job->call, job->batch, column + c, some, k, 1, scales, some);
        for (int64_t i = some; i < ceiling(some, KG_STRIP) * KG_STRIP; i++)
            zeros[i] = scales[i] = 0;
#if KG_SCALED_OFFSET
        b_offsets(job->call, job->batch, column + c, some, k, 1, offsets, some);
        for (int64_t i = some; i < ceiling(some, KG_STRIP) * KG_STRIP; i++)
            offsets[i] = 0;
#endif
        for (int64_t i = 0; i < some; i += KG_STRIP) {
            vector by[KG_PARTS];
#if !KG_SCALED_FIXED
            order_by_part(zeros + i, by);
            put_zeros(by, (vector *)(s->zeros + c + i));
#if KG_SCALED_DOTS && !KG_PANEL_DOTS
            if (s->dots)
                order_bytes(by, s->bytes + (c + i) / KG_STRIP * 4);
#endif
#endif
            order_by_part(scales + i, by);
            for (int j = 0; j < KG_PARTS; j++)
                ((vector *)(s->scales + c + i))[j] = by[j];
#if KG_SCALED_OFFSET
            order_by_part(offsets + i, by);
            for (int j = 0; j < KG_PARTS; j++)
                ((vector *)(s->offsets + c + i))[j] = KG_SCALED_OFFSET * by[j];
#endif
        }
    }
}

// The strips of so many columns, with their workspace.
KG_INLINE struct strips open_strips(const struct job *job, int64_t columns)
{
    struct strips s = {.count = ceiling(columns, KG_STRIP)};
    s.last = columns - (s.count - 1) * KG_STRIP;
    s.zeros = job->scaled;
    s.scales = s.zeros + s.count * KG_STRIP;
    s.offsets = s.scales + s.count * KG_STRIP;
#if KG_SCALED_FIXED
    vector number[KG_PARTS];
    for (int j = 0; j < KG_PARTS; j++)
        number[j] = (vector){0} + (KG_REAL)(KG_SCALED_LEAST_ZERO);
    put_zeros(number, (vector *)s.zeros);
#endif
    return s;
}

// Finds the elements from `column` on in the block of k that begins at `k0`.
KG_INLINE void place_strips(const struct job *job, struct strips *s, int64_t column, int64_t k0)
{
    s->data = b_elements(job->call, job->batch, &s->first, &s->k);
#if KG_SCALED_PACKED
    s->k0 = k0;
    s->column = column;
#else
    s->first += k0 * s->k + column;
    s->crooked = KG_SCALED_BITS == 4 && (s->first | s->k) & 1;
#endif
}
#endif
