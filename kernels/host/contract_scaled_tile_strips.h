// Columns of contract_scaled_tiles.h that are adjacent (contract_strips.h): part j of a strip is
// every KG_PARTSth column.
#if KG_SCALED_TILES
static struct strips open_columns(const struct job *job, int64_t columns)
{
    return open_strips(job, columns);
}

static void place_columns(const struct job *job, struct strips *s, int64_t column, int64_t k0)
{
    place_strips(job, s, column, k0);
}

static void fill_values(const struct job *job, const struct tiles *tiles, const struct strips *s,
                        int64_t column)
{
    int64_t run = 0;
    for (int64_t k = 0; k < tiles->kn; k = scales_end(tiles->k0, k, tiles->kn), run++) {
        const struct strips own = strips_of_run(tiles, s, run);
        order_scales(job, &own, column, tiles->k0 + k);
    }
}

#if KG_SCALED_BITS == 4
// Two steps of k of a strip, a row of a square for each part. `apart`: words between parts.
KG_INLINE void put_pair(word_vector one, word_vector two, const struct strip_zeros *zeros,
                        uint32_t *to, int64_t apart)
{
    const word_vector low = (one & 0xffff) | two << 16, high = one >> 16 | (two & ~0xffffu);
    for (int j = 0; j < KG_PARTS; j++) {
        word_vector number = (j < 4 ? low : high) >> (j % 4 * KG_SCALED_BITS);
        if (!KG_SCALED_FIXED)
            number = (((number & 0x000f000f) ^ (KG_SCALED_SIGNED ? 0x00080008 : 0)) | 0x00200020) -
                     zeros->of[j];
        *(half_vector *)(to + j * apart) = find_halves(zeros->table, number);
    }
}
#else
KG_INLINE void put_pair(word_vector one, word_vector two, const struct strip_zeros *zeros,
                        uint32_t *to, int64_t apart)
{
    for (int j = 0; j < KG_PARTS; j++) {
        const vector first = parts_of(one, one >> KG_UPPER_SHIFT, j) - zeros->of[j],
                     second = parts_of(two, two >> KG_UPPER_SHIFT, j) - zeros->of[j];
        *(word_vector *)(to + j * apart) =
            (word_vector)first >> 16 | ((word_vector)second & 0xffff0000);
    }
}
#endif

// `ahead`: from each line to one that is wanted soon, in elements.
KG_INLINE void put_steps(const bool crooked, int64_t kn, const uint8_t *data, int64_t at,
                         int64_t step, int64_t ahead, const struct strip_zeros *zeros, uint32_t *to,
                         int64_t apart)
{
    for (int64_t k = 0; k < kn; k += 2, at += 2 * step, to += KG_SQUARE_SIDE) {
        const word_vector one = strip_words(crooked, data, at);
        const word_vector two = k + 1 < kn ? strip_words(crooked, data, at + step) : one;
        fetch_ahead(data + byte_of(at + ahead));
        fetch_ahead(data + byte_of(at + ahead + step));
        put_pair(one, two, zeros, to, apart);
    }
}

static void put_run(const struct strips *s, int64_t i, int64_t k, int64_t end,
                    const struct tiles *tiles, uint32_t *to)
{
    const struct strip_values values = values_of(s, i);
    const struct strip_zeros zeros = read_zeros(&values, tiles->differences, 0, KG_PARTS);
    const int64_t apart = tiles->squares * KG_SQUARE;
    const int64_t pairs = ceiling(end - k, 2),
                  filled = ceiling(end - k, KG_SQUARE_DEPTH) * KG_SQUARE_SIDE;
    for (int j = 0; j < KG_PARTS; j++)
        memset(to + j * apart + pairs * KG_SQUARE_SIDE, 0,
               (size_t)((filled - pairs) * KG_SQUARE_SIDE) * sizeof *to);
    const bool in_place = i < strips_in_place(s);
    const int64_t first = s->first + k * s->k + i * KG_STRIP;
    // The next strip is multiplied later: memory has the time of a strip. Or that of the next
    // block.
    const int64_t ahead = i + 1 < s->count ? KG_STRIP : tiles->kn * s->k - i * KG_STRIP;
    if (in_place && s->crooked)
        put_steps(true, end - k, s->data, first, s->k, ahead, &zeros, to, apart);
    else if (in_place)
        put_steps(false, end - k, s->data, first, s->k, ahead, &zeros, to, apart);
    for (int64_t some; !in_place && k < end; k += some, to += KG_CHUNK / 2 * KG_SQUARE_SIDE) {
        uint8_t copy[KG_CHUNK * KG_STRIP_BYTES];
        some = least(KG_CHUNK, end - k);
        copy_steps(s, i, k, some, copy);
        put_steps(false, some, copy, 0, KG_STRIP, 0, &zeros, to, apart);
    }
}

static void put_strip(const struct tiles *tiles, const struct strips *s, int64_t i)
{
    int64_t run = 0;
    uint32_t *to = tiles->right;
    for (int64_t k = 0, end; k < tiles->kn; k = end, run++) {
        const struct strips own = strips_of_run(tiles, s, run);
        end = scales_end(tiles->k0, k, tiles->kn);
        put_run(&own, i, k, end, tiles, to);
        to += ceiling(end - k, KG_SQUARE_DEPTH) * KG_SQUARE;
    }
}

static int64_t place_of_column(int64_t column)
{
    return column % KG_PARTS * KG_LANES + column / KG_PARTS;
}

// Puts the sums of a strip in the order of columns, some rows at a time.
static void store_strip(const struct job *job, int64_t row, int64_t rows, int64_t column,
                        int64_t columns, const KG_REAL *sums)
{
    enum { HIGH = 8 };
    _Alignas(64) KG_REAL tile[HIGH * KG_STRIP];
    for (int64_t r = 0; r < rows; r += HIGH) {
        const int64_t some = least(HIGH, rows - r);
        for (int64_t t = 0; t < some; t++)
            for (int lane = 0; lane < KG_LANES; lane++)
                for (int j = 0; j < KG_PARTS; j++)
                    tile[t * KG_STRIP + lane * KG_PARTS + j] =
                        sums[(r + t) * KG_STRIP + j * KG_LANES + lane];
        store_tile(job, row + r, some, column, columns, tile, KG_STRIP);
    }
}
#endif
