// Columns of contract_scaled_tiles.h whose elements are adjacent along k, as checkpoints have them:
// part j of a strip has 16 columns side by side. A word is several steps of k of one column, and a
// vector the same steps of 16 columns.
#if KG_SCALED_TILES
enum { KG_SQUARES_AT_ONCE = 4 };

static struct strips open_columns(const struct job *job, int64_t columns)
{
    struct strips s = {.count = ceiling(columns, KG_STRIP), .zeros = job->scaled};
    s.last = columns - (s.count - 1) * KG_STRIP;
    s.scales = s.zeros + s.count * KG_STRIP;
    s.offsets = s.scales + s.count * KG_STRIP;
#if KG_SCALED_FIXED
    for (int j = 0; j < KG_PARTS; j++)
        ((vector *)s.zeros)[j] =
            (vector){0} + (KG_SCALED_LEAST_ZERO + KG_SCALED_BIAS + part_exponent(j));
#endif
    return s;
}

// Lines are `s->k` elements apart.
static void place_columns(const struct job *job, struct strips *s, int64_t column, int64_t k0)
{
    s->data = b_elements(job->call, job->batch, &s->first, &s->k);
    s->first += column * s->k + k0;
}

static void fill_values(const struct job *job, const struct tiles *tiles, const struct strips *s,
                        int64_t column)
{
    const int64_t length = KG_GROUP > 0 ? KG_GROUP : INT64_MAX / 2;
    const int64_t first = tiles->k0 / length, wide = s->count * KG_STRIP,
                  count = (tiles->k0 + tiles->kn - 1) / length - first + 1;
    const int64_t columns = (s->count - 1) * KG_STRIP + s->last;
    // Those of 16 columns, one after the other.
    KG_REAL *scales = job->stage, *zeros = job->stage + KG_STAGE / 2;
    memset(zeros, 0, (size_t)(count * KG_SQUARE_SIDE) * sizeof *zeros);
    for (int64_t c = 0; c < wide; c += KG_SQUARE_SIDE) {
        const KG_REAL above = KG_SCALED_BIAS + part_exponent((int)(c % KG_STRIP / KG_SQUARE_SIDE));
        if (c + KG_SQUARE_SIDE > columns)
            memset(scales, 0, (size_t)(count * KG_SQUARE_SIDE) * sizeof *scales);
        for (int64_t i = 0; i < least(KG_SQUARE_SIDE, columns - c); i++) {
            b_group_scales(job->call, job->batch, column + c + i, first, count, scales + i * count);
            if (!KG_SCALED_FIXED)
                b_group_zeros(job->call, job->batch, column + c + i, first, count,
                              zeros + i * count);
        }
        for (int64_t run = 0; run < count; run++)
            for (int i = 0; i < KG_SQUARE_SIDE; i++) {
                tiles->values[3 * run * wide + c + i] = zeros[i * count + run] + above;
                tiles->values[(3 * run + 1) * wide + c + i] = scales[i * count + run];
            }
    }
}

// Four words of each of 16 columns, as vectors of 16 columns.
KG_INLINE void turn_words(const word_vector from[4], word_vector to[4])
{
#define KG_WORDS_OF(w)                                                                             \
    KG_LIST(w, w + 4, w + 8, w + 12, w + 16, w + 20, w + 24, w + 28, w + 1, w + 5, w + 9, w + 13,  \
            w + 17, w + 21, w + 25, w + 29)
    word_vector two[2][2];
    for (int h = 0; h < 2; h++) {
        two[h][0] = KG_SHUFFLE(from[2 * h], from[2 * h + 1], KG_WORDS_OF(0));
        two[h][1] = KG_SHUFFLE(from[2 * h], from[2 * h + 1], KG_WORDS_OF(2));
    }
    for (int i = 0; i < 2; i++) {
        to[2 * i] = KG_SHUFFLE(two[0][i], two[1][i], 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21,
                               22, 23);
        to[2 * i + 1] = KG_SHUFFLE(two[0][i], two[1][i], 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26,
                                   27, 28, 29, 30, 31);
    }
#undef KG_WORDS_OF
}

// The steps of k of a word become lines of a square. `zero`: that of part `j`.
#if KG_SCALED_BITS == 4
KG_INLINE void put_words(word_vector words, const struct strip_zeros *zeros, int j, uint32_t *to)
{
    for (int pair = 0; pair < KG_PARTS / 2; pair++) {
        const word_vector upper = pair < 2 ? words << (12 - 8 * pair) : words >> (8 * pair - 12);
        word_vector number = (words >> (8 * pair) & 0xf) | (upper & 0x000f0000);
        if (!KG_SCALED_FIXED)
            number = ((number ^ (KG_SCALED_SIGNED ? 0x00080008 : 0)) | 0x00200020) - zeros->of[j];
        *(half_vector *)(to + pair * KG_SQUARE_SIDE) = find_halves(zeros->table, number);
    }
}
#else
KG_INLINE void put_words(word_vector words, const struct strip_zeros *zeros, int j, uint32_t *to)
{
    const word_vector high = words >> KG_UPPER_SHIFT;
    const vector zero = zeros->of[j] - part_exponent(j);
    for (int pair = 0; pair < KG_PARTS / 2; pair++) {
        const vector first = parts_of(words, high, 2 * pair) - (zero + part_exponent(2 * pair)),
                     second =
                         parts_of(words, high, 2 * pair + 1) - (zero + part_exponent(2 * pair + 1));
        *(word_vector *)(to + pair * KG_SQUARE_SIDE) =
            (word_vector)first >> 16 | ((word_vector)second & 0xffff0000);
    }
}
#endif

// `deep` steps of k of a line from element `at` on, of at most a square; zeros behind them.
KG_INLINE void read_line(const uint8_t *data, int64_t at, int64_t deep, uint8_t *to)
{
    enum { BYTES = KG_SQUARE_DEPTH * KG_SCALED_BITS / 8 };
    const uint8_t *from = data + byte_of(at);
    const bool odd = KG_SCALED_BITS == 4 && at & 1;
    if (deep == KG_SQUARE_DEPTH && !odd) {
        memcpy(to, from, BYTES);
        return;
    }
    const int64_t bytes = (deep * KG_SCALED_BITS + 7) / 8;
    memset(to, 0, BYTES);
    for (int64_t i = 0; i < bytes; i++)
        to[i] = !odd               ? from[i]
                : 2 * i + 1 < deep ? (uint8_t)(from[i] >> 4 | from[i + 1] << 4)
                                   : from[i] >> 4;
}

// A square of columns: its first step of k, how many it has, and which run it belongs to.
struct square {
    int64_t at, deep, run;
};

// The squares of part `j`, some at a time. Their lines are copied before the first of them is read:
// vectors of what was just stored in pieces are waited for.
KG_INLINE void put_squares_of(const struct tiles *tiles, const struct strips *s, int64_t i, int j,
                              const struct square *squares, int64_t count, uint32_t *to)
{
    enum { QUARTER = 16, QUARTERS = KG_SCALED_BITS / 4, AHEAD = 2 * KG_SQUARE_SIDE };
    _Alignas(64) uint8_t lines[KG_SQUARES_AT_ONCE][QUARTERS][KG_SQUARE_SIDE][QUARTER];
    const int64_t column = i * KG_STRIP + j * KG_SQUARE_SIDE,
                  left = (s->count - 1) * KG_STRIP + s->last - column;
    if (left < KG_SQUARE_SIDE)
        memset(lines, 0, sizeof lines);
    for (int64_t c = 0; c < least(left, KG_SQUARE_SIDE); c++) {
        const int64_t first = s->first + (column + c) * s->k;
        fetch_ahead(s->data + byte_of(first + squares[0].at + AHEAD * s->k));
        for (int64_t n = 0; n < count; n++) {
            uint8_t line[QUARTERS * QUARTER];
            read_line(s->data, first + squares[n].at, squares[n].deep, line);
            for (int q = 0; q < QUARTERS; q++)
                memcpy(lines[n][q][c], line + q * QUARTER, QUARTER);
        }
    }
    for (int64_t n = 0; n < count; n++, to += KG_SQUARE) {
        const struct strips own = strips_of_run(tiles, s, squares[n].run);
        const struct strip_values values = values_of(&own, i);
        const struct strip_zeros zeros = read_zeros(&values, tiles->differences, j, j + 1);
        for (int q = 0; q < QUARTERS; q++) {
            word_vector words[4];
            turn_words((const word_vector *)lines[n][q], words);
            for (int w = 0; w < 4; w++)
                put_words(words[w], &zeros, j, to + (4 * q + w) * KG_PARTS / 2 * KG_SQUARE_SIDE);
        }
    }
}

static void put_strip(const struct tiles *tiles, const struct strips *s, int64_t i)
{
    struct square squares[KG_SQUARES_AT_ONCE];
    int64_t end = 0, run = -1, done = 0;
    for (int64_t k = 0, count = 0; k < tiles->kn;) {
        if (k == end) {
            end = scales_end(tiles->k0, k, tiles->kn);
            run++;
        }
        squares[count] = (struct square){k, least(KG_SQUARE_DEPTH, end - k), run};
        k += squares[count++].deep;
        if (count < KG_SQUARES_AT_ONCE && k < tiles->kn)
            continue;
        for (int j = 0; j < KG_PARTS; j++)
            put_squares_of(tiles, s, i, j, squares, count,
                           tiles->right + (j * tiles->squares + done) * KG_SQUARE);
        done += count;
        count = 0;
    }
}

static int64_t place_of_column(int64_t column)
{
    return column;
}

static void store_strip(const struct job *job, int64_t row, int64_t rows, int64_t column,
                        int64_t columns, const KG_REAL *sums)
{
    store_tile(job, row, rows, column, columns, sums, KG_STRIP);
}
#endif
