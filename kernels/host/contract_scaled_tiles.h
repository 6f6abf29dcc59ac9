// The path for more rows against columns of integers with scales (contract_strips.h), where the
// processor multiplies tiles of pairs of bf16 (amx.h). Differences to the zero are bf16 numbers,
// and a row is the sum of KG_SCALED_TERMS of these, so that all products are exact. They are added
// up in tile registers for the k with the same scales, a *run*; then sums are scaled and added to
// those of other runs. Where columns come from, and in which order they stand until they are
// stored, is said in contract_scaled_tile_strips.h or contract_scaled_tile_lines.h.
//
// A *square* is what a tile register holds: 16 rows of 16 words, each of which has two steps of k.
#if KG_SCALED_TILES
enum {
    KG_SQUARE_SIDE = 16,
    KG_SQUARE = KG_SQUARE_SIDE * KG_SQUARE_SIDE, // words
    KG_SQUARE_DEPTH = 2 * KG_SQUARE_SIDE,        // steps of k
};

// A block of k, and the workspace of an item.
struct tiles {
    int64_t rows, squares; // of rows of the item; of k, all runs
    int64_t k0, kn;        // the block
    KG_REAL *values;       // zeros, scales and offsets of all columns, run after run
    uint32_t *left;        // squares of rows: of a step those of all terms side by side
    uint32_t *tiny;        // not 0: of a row that has a number below 2^-100
    KG_REAL *totals;       // sums of the rows of a run, if there are offsets
    uint32_t *right;       // squares of a strip, part after part
    KG_REAL *sums;         // of four squares
    KG_REAL *block;        // and of 32 rows by a strip
    uint16_t *differences; // those of 4-bit integers to zeros, a table
    KG_REAL *panel;        // a panel of rows that is computed, or some steps of single ones
};

static struct strips open_columns(const struct job *job, int64_t columns);
// Finds the elements of the columns in a block of k that begins at `k0`.
static void place_columns(const struct job *job, struct strips *s, int64_t column, int64_t k0);
// Computes zeros, scales and offsets of all runs of a block.
static void fill_values(const struct job *job, const struct tiles *tiles, const struct strips *s,
                        int64_t column);
// Puts strip `i` of a block into squares, part after part, each run from a square of its own on.
// Rows are zero where there is no step, so that columns may be anything that is finite.
static void put_strip(const struct tiles *tiles, const struct strips *s, int64_t i);
// Where a column of a strip stands among its sums.
static int64_t place_of_column(int64_t column);
// Passes the sums of a strip on.
static void store_strip(const struct job *job, int64_t row, int64_t rows, int64_t column,
                        int64_t columns, const KG_REAL *sums);

// Squares along a block of k, and runs, at most.
KG_INLINE int64_t most_runs(int64_t depth)
{
    return KG_GROUP > 0 ? depth / (KG_GROUP > 0 ? KG_GROUP : 1) + 2 : 1;
}

KG_INLINE int64_t most_squares(int64_t depth)
{
    return depth / KG_SQUARE_DEPTH + most_runs(depth);
}

enum { KG_TILE_AREAS = 9, KG_TILE_ROWS = 2 * KG_SQUARE_SIDE };

// Where the areas of the workspace begin, and how many elements there are.
static int64_t divide_workspace(int64_t rows, int64_t columns, int64_t depth,
                                int64_t begin[KG_TILE_AREAS])
{
    const int64_t wide = ceiling(columns, KG_STRIP) * KG_STRIP, squares = most_squares(depth);
    const int64_t high = ceiling(rows, KG_SQUARE_SIDE) * KG_SQUARE_SIDE;
    const int64_t size[KG_TILE_AREAS] = {
        3 * wide * (1 + most_runs(depth)),
        high * squares * KG_SQUARE_SIDE * KG_SCALED_TERMS,
        high * most_runs(depth),
        squares * KG_PARTS * KG_SQUARE,
        4 * KG_SQUARE,
        KG_DIFFERENCES,
        KG_SQUARE_SIDE * (depth + 2) + KG_TILE_ROWS * (KG_STAGE / KG_STRIP + KG_LANES),
        high,
        KG_TILE_ROWS * KG_STRIP,
    };
    int64_t used = 0;
    for (int i = 0; i < KG_TILE_AREAS; i++) {
        begin[i] = used;
        used += ceiling(size[i], 64) * 64;
    }
    return used;
}

static struct tiles open_tiles(const struct job *job, int64_t rows, int64_t columns)
{
    int64_t begin[KG_TILE_AREAS];
    KG_REAL *scratch = job->scaled;
    divide_workspace(rows, columns, job->plan->block_k, begin);
    return (struct tiles){
        .rows = rows,
        .values = scratch + 3 * ceiling(columns, KG_STRIP) * KG_STRIP, // behind those of strips
        .left = (uint32_t *)(scratch + begin[1]),
        .totals = scratch + begin[2],
        .right = (uint32_t *)(scratch + begin[3]),
        .sums = scratch + begin[4],
        .differences = (uint16_t *)(scratch + begin[5]),
        .panel = scratch + begin[6],
        .tiny = (uint32_t *)(scratch + begin[7]),
        .block = scratch + begin[8],
    };
}

// ---- Rows ----

// Sixteen rows of the matrix, and up to 32 steps of k of each.
struct row_steps {
    vector of[KG_SQUARE_SIDE][2];
};

// Rows that lie in memory along k, from `view` on; steps that are not there are zero.
KG_INLINE void read_rows(const bool halves, struct view view, int64_t rows, int64_t deep,
                         struct row_steps *to)
{
    for (int64_t r = 0; r < rows; r++) {
        const int64_t at = r * view.x;
        if (deep == KG_SQUARE_DEPTH) {
            to->of[r][0] = elements(halves, view.data, at);
            to->of[r][1] = elements(halves, view.data, at + KG_SQUARE_SIDE);
            continue;
        }
        KG_REAL line[KG_SQUARE_DEPTH] = {0};
        for (int64_t k = 0; k < deep; k++)
            line[k] = element(halves, view.data, at + k);
        for (int h = 0; h < 2; h++)
            to->of[r][h] = *(const loose_vector *)(line + h * KG_SQUARE_SIDE);
    }
}

// Rows of a panel, which has the 16 rows of each step side by side.
KG_INLINE void turn_rows(const KG_REAL *panel, int64_t deep, struct row_steps *to)
{
    for (int h = 0; h < 2; h++) {
        vector square[KG_SQUARE_SIDE];
        for (int k = 0; k < KG_SQUARE_SIDE; k++) {
            const int64_t at = h * KG_SQUARE_SIDE + k;
            square[k] = (vector){0};
            if (at < deep)
                square[k] = *(const loose_vector *)(panel + at * KG_SQUARE_SIDE);
        }
        transpose(square);
        for (int r = 0; r < KG_SQUARE_SIDE; r++)
            to->of[r][h] = square[transposed_row(r)];
    }
}

#define KG_UPPER_HALVES                                                                            \
    KG_LIST(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31, 33, 35, 37, 39, 41, 43, 45, \
            47, 49, 51, 53, 55, 57, 59, 61, 63)

// Puts the terms of 16 rows into a square each. Finds numbers that are so small that results might
// be denormal, which tile instructions take for zero.
KG_INLINE void put_squares(const struct row_steps *from, uint32_t *to,
                           word_vector small[KG_SQUARE_SIDE])
{
    for (int r = 0; r < KG_SQUARE_SIDE; r++) {
        vector rest[2] = {from->of[r][0], from->of[r][1]};
        for (int h = 0; h < 2; h++) {
            const word_vector size = (word_vector)rest[h] & 0x7fffffff;
            small[r] |= (word_vector)(size - 1 < 0x0d7fffff); // 2^-100 is 0x0d800000
        }
        for (int t = 0; t < KG_SCALED_TERMS; t++) {
            const word_vector low = (word_vector)rest[0] & 0xffff0000,
                              high = (word_vector)rest[1] & 0xffff0000;
            *(half_vector *)(to + t * KG_SQUARE + r * KG_SQUARE_SIDE) =
                KG_SHUFFLE((half_vector)low, (half_vector)high, KG_UPPER_HALVES);
            rest[0] -= (vector)low;
            rest[1] -= (vector)high;
        }
    }
}
#undef KG_UPPER_HALVES

// Packs up to 16 rows; the others are zero.
KG_APART void pack_squares(const struct job *job, const struct tiles *tiles, int64_t row,
                           int64_t rows, uint32_t *to, KG_REAL *totals, uint32_t *tiny)
{
    struct view view = {0};
    const struct operand *operand = job->plan->rows;
    const bool along = operand->direct(job->call, job->batch, &view) && view.k == 1;
    word_vector small[KG_SQUARE_SIDE] = {{0}};
    if (!along)
        pack(job, operand, row, rows, tiles->k0, tiles->kn, KG_SQUARE_SIDE, tiles->panel);
    for (int64_t k = 0, end; k < tiles->kn; k = end, totals += tiles->rows) {
        vector total[KG_SQUARE_SIDE] = {{0}};
        end = scales_end(tiles->k0, k, tiles->kn);
        for (int64_t at = k; at < end; at += KG_SQUARE_DEPTH) {
            const int64_t deep = least(KG_SQUARE_DEPTH, end - at);
            struct row_steps steps = {0};
            const struct view part = along ? moved(view, row, tiles->k0 + at) : view;
            if (!along)
                turn_rows(tiles->panel + at * KG_SQUARE_SIDE, deep, &steps);
            else if (has_halves(&part))
                read_rows(true, part, rows, deep, &steps);
            else
                read_rows(false, part, rows, deep, &steps);
            put_squares(&steps, to, small);
            for (int r = 0; KG_SCALED_OFFSET && r < KG_SQUARE_SIDE; r++)
                total[r] += steps.of[r][0] + steps.of[r][1];
            to += KG_SCALED_TERMS * KG_SQUARE;
        }
        for (int64_t r = 0; KG_SCALED_OFFSET && r < rows; r++)
            for (int lane = 0; lane < KG_LANES; lane++)
                totals[r] = lane ? totals[r] + total[r][lane] : total[r][0];
    }
    for (int64_t r = 0; r < rows; r++) {
        tiny[r] = 0;
        for (int lane = 0; lane < KG_LANES; lane++)
            tiny[r] |= small[r][lane];
    }
}

// ---- Columns ----

// Zeros of a strip, as differences to them are made.
struct strip_zeros {
#if KG_SCALED_BITS == 4
    half_vector table;
    word_vector of[KG_PARTS]; // in both halves of a word
#else
    vector of[KG_PARTS];
#endif
};

#if KG_SCALED_BITS == 4
// Those of parts [from, to).
KG_INLINE struct strip_zeros read_zeros(const struct strip_values *values, const uint16_t *table,
                                        int from, int to)
{
    typedef int32_t numbers __attribute__((vector_size(4 * KG_LANES)));
    struct strip_zeros zeros;
    zeros.table = *(const half_vector *)table;
    for (int j = from; j < to; j++) {
        const word_vector zero =
            (word_vector) __builtin_convertvector(values->zeros[j] - part_exponent(j), numbers);
        zeros.of[j] = (zero & 31) | (zero & 31) << 16;
    }
    return zeros;
}

#else
KG_INLINE struct strip_zeros read_zeros(const struct strip_values *values, const uint16_t *table,
                                        int from, int to)
{
    struct strip_zeros zeros;
    (void)table;
    for (int j = from; j < to; j++)
        zeros.of[j] = values->zeros[j];
    return zeros;
}
#endif

// ---- Products ----

// Sums of a run: of one or two squares of rows, `down` words apart, by two of columns, `across`
// words apart.
KG_INLINE void multiply_squares(const bool two, int64_t steps, const uint32_t *left, int64_t down,
                                const uint32_t *right, int64_t across, KG_REAL *sums)
{
    enum { LINE = 4 * KG_SQUARE_SIDE };
    KG_TILE_ZERO(0);
    KG_TILE_ZERO(1);
    if (two) {
        KG_TILE_ZERO(2);
        KG_TILE_ZERO(3);
    }
    for (int64_t step = 0; step < steps; step++, right += KG_SQUARE) {
        KG_TILE_LOAD(6, right, LINE);
        KG_TILE_LOAD(7, right + across, LINE);
        for (int t = 0; t < KG_SCALED_TERMS; t++, left += KG_SQUARE) {
            KG_TILE_LOAD(4, left, LINE);
            KG_TILE_DOT_BF16(0, 4, 6);
            KG_TILE_DOT_BF16(1, 4, 7);
            if (two) {
                KG_TILE_LOAD(5, left + down, LINE);
                KG_TILE_DOT_BF16(2, 5, 6);
                KG_TILE_DOT_BF16(3, 5, 7);
            }
        }
    }
    KG_TILE_STORE(0, sums, LINE);
    KG_TILE_STORE(1, sums + KG_SQUARE, LINE);
    if (two) {
        KG_TILE_STORE(2, sums + 2 * KG_SQUARE, LINE);
        KG_TILE_STORE(3, sums + 3 * KG_SQUARE, LINE);
    }
}

KG_APART void multiply_two(int64_t steps, const uint32_t *left, int64_t down, const uint32_t *right,
                           int64_t across, KG_REAL *sums)
{
    multiply_squares(true, steps, left, down, right, across, sums);
}

KG_APART void multiply_one(int64_t steps, const uint32_t *left, const uint32_t *right,
                           int64_t across, KG_REAL *sums)
{
    multiply_squares(false, steps, left, 0, right, across, sums);
}

// Scales parts `j` and `j + 1` of the sums of a run, and adds them to those of a strip.
KG_INLINE void add_scaled(const struct strip_values *values, int j, int64_t rows,
                          const KG_REAL *from, const KG_REAL *totals, bool fresh, KG_REAL *to)
{
    (void)totals;
    for (int p = 0; p < 2; p++) {
        const vector scale = values->scales[j + p];
#if KG_SCALED_OFFSET
        const vector offset = values->offsets[j + p];
#endif
        for (int64_t r = 0; r < rows; r++) {
            const int64_t at = (r / KG_SQUARE_SIDE * 2 + p) * KG_SQUARE_SIDE + r % KG_SQUARE_SIDE;
            vector sum = *(const vector *)(from + at * KG_SQUARE_SIDE) * scale;
#if KG_SCALED_OFFSET
            sum += totals[r] * offset;
#endif
            vector *place = (vector *)(to + r * KG_STRIP) + j + p;
            if (!fresh)
                sum += *place;
            *place = sum;
        }
    }
}

// Values of a run as strips have them.
KG_INLINE struct strips strips_of_run(const struct tiles *tiles, const struct strips *s,
                                      int64_t run)
{
    struct strips own = *s;
    const int64_t wide = s->count * KG_STRIP;
    if (!KG_SCALED_FIXED)
        own.zeros = tiles->values + 3 * run * wide;
    own.scales = tiles->values + (3 * run + 1) * wide;
    own.offsets = tiles->values + (3 * run + 2) * wide;
    return own;
}

// Computes a block of rows by a strip as the definition has it where rows have tiny numbers, or
// sums are not finite, because factors that are not may have been multiplied in another order.
static void repair_rows(const struct job *job, const struct tiles *tiles, const struct strips *s,
                        int64_t i, int64_t first, int64_t row, int64_t rows, int64_t column)
{
    enum { STEP = KG_STAGE / KG_STRIP, WIDTH = STEP + KG_LANES };
    const int64_t columns = i + 1 < s->count ? KG_STRIP : s->last;
    int64_t wrong[KG_TILE_ROWS], count = 0;
    uint32_t tiny = 0;
    for (int64_t r = 0; r < rows; r++)
        tiny |= tiles->tiny[row + r];
    if (!tiny && strip_is_finite(tiles->block, (int)rows))
        return;
    for (int64_t r = 0; r < rows; r++)
        if (tiles->tiny[row + r] || !strip_is_finite(tiles->block + r * KG_STRIP, 1))
            wrong[count++] = r;
    for (int64_t w = 0; w < count; w++)
        memset(tiles->block + wrong[w] * KG_STRIP, 0, KG_STRIP * sizeof *tiles->block);
    for (int64_t k = 0; k < tiles->kn && count > 0; k += STEP) {
        const int64_t deep = least(STEP, tiles->kn - k), width = KG_B_ALONG_K ? deep : columns;
        for (int64_t w = 0; w < count; w++)
            pack(job, job->plan->rows, first + row + wrong[w], 1, tiles->k0 + k, deep, 1,
                 tiles->panel + w * WIDTH);
        b_fill(job->call, job->batch, column + i * KG_STRIP, columns, tiles->k0 + k, deep,
               job->stage, width);
        for (int64_t d = 0; d < deep; d++)
            for (int64_t w = 0; w < count; w++)
                for (int64_t c = 0; c < columns; c++)
                    tiles->block[wrong[w] * KG_STRIP + place_of_column(c)] +=
                        tiles->panel[w * WIDTH + d] *
                        job->stage[KG_B_ALONG_K ? c * width + d : d * width + c];
    }
}

// Up to 32 rows by a strip: sums of a block of k.
static void multiply_rows(const struct tiles *tiles, const struct strips *s, int64_t i, int64_t row,
                          int64_t rows)
{
    const int64_t across = tiles->squares * KG_SQUARE,
                  down = tiles->squares * KG_SCALED_TERMS * KG_SQUARE;
    const uint32_t *left = tiles->left + row / KG_SQUARE_SIDE * down, *right = tiles->right;
    int64_t run = 0;
    for (int64_t k = 0, end; k < tiles->kn; k = end, run++) {
        const struct strips own = strips_of_run(tiles, s, run);
        const struct strip_values values = values_of(&own, i);
        end = scales_end(tiles->k0, k, tiles->kn);
        const int64_t steps = ceiling(end - k, KG_SQUARE_DEPTH);
        for (int j = 0; j < KG_PARTS; j += 2) {
            const uint32_t *columns = right + j * across;
            if (rows > KG_SQUARE_SIDE)
                multiply_two(steps, left, down, columns, across, tiles->sums);
            else
                multiply_one(steps, left, columns, across, tiles->sums);
            add_scaled(&values, j, rows, tiles->sums, tiles->totals + run * tiles->rows + row,
                       k == 0, tiles->block);
        }
        left += steps * KG_SCALED_TERMS * KG_SQUARE;
        right += steps * KG_SQUARE;
    }
}

// All rows of the item, which begin at `first`, by a strip. Sums of blocks are added as those of
// slabs are, so that results do not depend on how many threads there are.
static void multiply_strip(const struct job *job, const struct tiles *tiles, const struct strips *s,
                           int64_t i, int64_t first, int64_t column, bool fresh, KG_REAL *sums)
{
    put_strip(tiles, s, i);
    for (int64_t row = 0; row < tiles->rows; row += KG_TILE_ROWS) {
        const int64_t rows = least(KG_TILE_ROWS, tiles->rows - row);
        vector *to = (vector *)(sums + row * KG_STRIP);
        multiply_rows(tiles, s, i, row, rows);
        repair_rows(job, tiles, s, i, first, row, rows, column);
        for (int64_t v = 0; v < rows * KG_PARTS; v++) {
            vector sum = ((const vector *)tiles->block)[v];
            if (!fresh)
                sum += to[v];
            to[v] = sum;
        }
    }
}

static void run_scaled_tiles(const struct job *job, int64_t row, int64_t rows, int64_t column,
                             int64_t columns)
{
    const struct plan *p = job->plan;
    struct strips s = open_columns(job, columns);
    struct tiles tiles = open_tiles(job, rows, columns);
#if KG_SCALED_TABLE
    make_differences(tiles.differences);
#endif
    if (job->kn == 0)
        memset(job->sums, 0, (size_t)(rows * s.count * KG_STRIP) * sizeof *job->sums);
    for (int64_t k = 0; k < job->kn; k += tiles.kn) {
        tiles.k0 = job->k0 + k;
        tiles.kn = least(p->block_k, job->kn - k);
        tiles.squares = 0;
        for (int64_t at = 0, end; at < tiles.kn; at = end) {
            end = scales_end(tiles.k0, at, tiles.kn);
            tiles.squares += ceiling(end - at, KG_SQUARE_DEPTH);
        }
        place_columns(job, &s, column, tiles.k0);
        fill_values(job, &tiles, &s, column);
        const int64_t down = tiles.squares * KG_SCALED_TERMS * KG_SQUARE;
        for (int64_t r = 0; r < rows; r += KG_SQUARE_SIDE)
            pack_squares(job, &tiles, row + r, least(KG_SQUARE_SIDE, rows - r),
                         tiles.left + r / KG_SQUARE_SIDE * down, tiles.totals + r, tiles.tiny + r);
        for (int64_t i = 0; i < s.count; i++)
            multiply_strip(job, &tiles, &s, i, row, column, k == 0,
                           job->sums + i * rows * KG_STRIP);
    }
    for (int64_t i = 0; i < s.count; i++)
        store_strip(job, row, rows, column + i * KG_STRIP, i + 1 < s.count ? KG_STRIP : s.last,
                    job->sums + i * rows * KG_STRIP);
}
#endif
