// The plan of a call from its sizes, and the entry points.

enum {
// Of contract_scaled.h: columns that items begin at multiples of, and steps of k for blocks.
#if KG_SCALED && KG_SCALED_LINES
    KG_SCALED_COLUMNS = KG_LANES,
    KG_SCALED_STEP = KG_STRIP,
    KG_SCALED_BLOCK = 16384, // lines are read from end to end, rows from the second cache
    KG_TILE_BLOCK = 1024,    // of contract_scaled_tiles.h: values of each line are found once
    KG_TILE_STEP = 64,
    // Shorter lines are left to the other paths. With vectors of 32 bytes on Zen 4, a row of f16 by
    // 512 columns takes 1.2 times as long as there for 256 steps of k, and 0.8 for 512.
    KG_LINES_LEAST = 512,
#elif KG_SCALED
    KG_SCALED_COLUMNS = KG_STRIP,
    KG_SCALED_BLOCK = KG_BLOCK_K,
    KG_SCALED_STEP = KG_GROUP > 0 && KG_GROUP <= KG_BLOCK_K ? KG_GROUP : KG_CHUNK,
    KG_TILE_BLOCK = KG_SCALED_BLOCK,
    KG_TILE_STEP = KG_SCALED_STEP,
#else
    KG_SCALED_COLUMNS = KG_COLUMNS,
    KG_SCALED_STEP = 1,
    KG_SCALED_BLOCK = 1,
    KG_TILE_BLOCK = 1,
    KG_TILE_STEP = 1,
#endif
#if KG_SCALED
    KG_TILE_COLUMNS = KG_STRIP,
#else
    KG_TILE_COLUMNS = KG_COLUMNS,
#endif
    KG_ITEM_ROWS = 1024, // largest number of rows of an item
    // With at most this many rows, columns along k are not packed: half of a panel would be idle.
    KG_DOT_ROWS = KG_COLUMNS / 2 > 4 ? KG_COLUMNS / 2 : 4,
};

// The number of tiles of size `part`. Small calls have one tile and avoid the division.
KG_INLINE int64_t count_tiles(int64_t total, int64_t part)
{
    return total <= part ? total > 0 : ceiling(total, part);
}

// The largest size, a multiple of `unit` and at most `most`, of tiles into which `total` is divided
// evenly.
KG_INLINE int64_t even_size(int64_t total, int64_t max, int64_t unit)
{
    if (total > max)
        total = ceiling(total, ceiling(total, max));
    return ceiling(total > 0 ? total : 1, unit) * unit;
}

enum direction { SCATTERED, ALONG_X, ALONG_K };

// The direction in which an operand is contiguous, in memory or as it is computed.
static enum direction direction_of(const struct kg_host_call *call, const struct operand *operand)
{
    struct view view = {NULL, 0, 0, false};
    if (!operand->direct(call, 0, &view))
        return operand->k_major ? ALONG_K : ALONG_X;
    return view.x == 1 ? ALONG_X : view.k == 1 ? ALONG_K : SCATTERED;
}

// Do both operands have a layout for contract_pairs.h, and are they large enough to pack?
static bool takes_pairs(const struct kg_host_call *call, struct extents size)
{
#if !KG_PAIR_PATH
    (void)call, (void)size;
    return false;
#else
    enum { LEAST_ROWS = 32, LEAST_K = 64 };
    struct view a, b;
    return size.m >= LEAST_ROWS && size.n >= LEAST_ROWS && size.k >= LEAST_K &&
           a_direct(call, 0, &a) && b_direct(call, 0, &b) && has_halves(&a) && has_halves(&b) &&
           kg_tiles_allowed();
#endif
}

// Are the factors integers of 16 bits, and are there enough rows and columns to pack panels of all
// their parts?
static bool takes_shorts(struct extents size)
{
#if KG_SHORT_PATH
    enum { LEAST_COLUMNS = 8, LEAST_K = 8 };
    return size.m >= KG_A_PARTS * KG_B_PARTS && size.n >= LEAST_COLUMNS && size.k >= LEAST_K;
#else
    (void)size;
    return false;
#endif
}

// Are the elements of B quantised, and are the sizes worth a path of their own?
static bool takes_scaled(struct extents size)
{
#if KG_SCALED && KG_SCALED_LINES
    return size.m <= KG_SCALED_ROWS && size.m <= size.n && size.k >= KG_LINES_LEAST;
#elif KG_SCALED
    return size.n >= KG_STRIP / 2;
#else
    (void)size;
    return false;
#endif
}

#if !KG_SCALED
KG_INLINE int64_t scaled_elements(int64_t rows, int64_t columns, int64_t depth)
{
    (void)rows, (void)columns, (void)depth;
    return 0;
}
#endif

// Are there rows enough for tile instructions to multiply them with columns that are quantised?
static bool takes_tiles(struct extents size)
{
#if KG_SCALED_TILES
    // Four rows of two terms by nibbles along k take as long in place as eight by tiles.
    const int64_t in_place =
        KG_SCALED_LINES && KG_SCALED_BITS == 4 && KG_SCALED_TERMS == 2 ? 4 : KG_SCALED_ROWS;
    return size.m > in_place && size.n >= KG_STRIP / 2 && kg_tiles_allowed();
#else
    (void)size;
    return false;
#endif
}

// A few rows against many columns are read in place. Otherwise B gives the columns, because outputs
// are contiguous along n.
static void choose_path(const struct kg_host_call *call, struct plan *p)
{
    const struct extents size = p->size;
    p->pairs = takes_pairs(call, size);
    p->shorts = takes_shorts(size);
    p->tiles = !p->pairs && takes_tiles(size);
    p->scaled = !p->pairs && (p->tiles || takes_scaled(size));
    p->lines = p->scaled && KG_SCALED_LINES && !p->tiles;
    if (p->pairs || p->shorts || p->scaled) {
        p->rows = &operand_a;
        p->columns = &operand_b;
        p->row_count = size.m;
        p->column_count = size.n;
        return;
    }
    const bool few_n = size.n < size.m;
    const int64_t few = few_n ? size.n : size.m;
    const enum direction direction = direction_of(call, few_n ? &operand_a : &operand_b);
    p->dots = direction == ALONG_K && few <= KG_DOT_ROWS && size.k >= 4 * KG_LANES;
    p->swapped = few_n && (p->dots || (direction == ALONG_X && few <= KG_COLUMNS && size.k >= 64));
    p->rows = p->swapped ? &operand_b : &operand_a;
    p->columns = p->swapped ? &operand_a : &operand_b;
    p->row_count = p->swapped ? size.n : size.m;
    p->column_count = p->swapped ? size.m : size.n;
    p->stream = direction_of(call, p->columns) == ALONG_X;
    p->few = !p->dots && p->row_count <= KG_FEW_ROWS && p->column_count < KG_COLUMNS &&
             size.k <= KG_FEW_K;
}

// Split-K: long sums with few results are divided into slabs. This depends on the sizes alone,
// because slabs round differently.
static void choose_slabs(struct plan *p)
{
    enum { LEAST_K = 4096, WANTED = 32 };
    p->slabs = 1;
    p->slab_k = p->size.k;
    if (p->size.k > LEAST_K) {
        const int64_t columns = p->dots ? 48 : p->lines ? KG_SCALED_COLUMNS : 96;
        const int64_t tiles =
            p->size.batch * ceiling(p->row_count, 96) * ceiling(p->column_count, columns);
        const int64_t slabs = least(WANTED / tiles, ceiling(p->size.k, LEAST_K));
        if (slabs > 1) {
            const int64_t unit = p->lines ? KG_SCALED_STEP : 64;
            p->slab_k = ceiling(ceiling(p->size.k, slabs), unit) * unit;
            p->slabs = ceiling(p->size.k, p->slab_k);
        }
    }
#if KG_SHORTS
    if (p->shorts) {
        p->block_k = even_size(p->slab_k, least(KG_BLOCK_K, KG_SHORT_STEPS), KG_STREAM_DEPTH);
        return;
    }
#endif
    p->block_k = p->pairs    ? even_size(p->slab_k, KG_PAIR_BLOCK_K, KG_PAIR_STEP)
                 : p->tiles  ? even_size(p->slab_k, KG_TILE_BLOCK, KG_TILE_STEP)
                 : p->scaled ? even_size(p->slab_k, KG_SCALED_BLOCK, KG_SCALED_STEP)
                             : even_size(p->slab_k, KG_BLOCK_K, KG_STREAM_DEPTH);
}

// With fewer tiles than threads, each block of k becomes an item. The partial sums are added in the
// order in which a single thread would add them.
static void split_blocks(const struct kg_host_call *call, struct plan *p)
{
    if (call->threads == 1 || p->dots || p->lines || p->pairs || p->slabs > 1 ||
        p->size.k <= p->block_k)
        return;
    // Few rows are bound by memory, which is fastest in long contiguous reads: the fewer the rows,
    // the smaller the partial sums of all blocks compared with the columns.
    const int64_t rows = p->row_count <= 16 ? 16 : 128;
    const int64_t columns = p->row_count <= KG_LOWEST_ROWS ? 4 * KG_ITEM_COLUMNS
                            : p->row_count <= 16           ? 1024
                                                           : 128;
    if (p->size.batch * count_tiles(p->row_count, rows) * count_tiles(p->column_count, columns) >=
        call->threads)
        return;
    p->slab_k = p->block_k;
    p->slabs = ceiling(p->size.k, p->slab_k);
}

static int64_t item_count(const struct plan *p)
{
    return p->size.batch * p->slabs * count_tiles(p->row_count, p->tile_rows) *
           count_tiles(p->column_count, p->tile_columns);
}

// Large items pack less often; several items per thread balance the load.
static void choose_tiles(const struct kg_host_call *call, struct plan *p)
{
    enum { DOT_ELEMENTS = 1 << 16, LEAST = 128, ENOUGH = 256 };
    const int64_t high = p->pairs ? KG_PAIR_TILE : KG_ROWS;
    const int64_t unit = p->dots     ? 12
                         : p->pairs  ? KG_PAIR_TILE
                         : p->shorts ? KG_SHORT_COLUMNS
                         : p->tiles  ? KG_TILE_COLUMNS
                         : p->scaled ? KG_SCALED_COLUMNS
                                     : KG_COLUMNS;
    // Few rows are bound by memory, which is fastest in long contiguous reads.
    const int64_t max = p->pairs                 ? KG_PAIR_COLUMNS
                        : p->row_count > KG_ROWS ? KG_ITEM_COLUMNS
                                                 : 4 * KG_ITEM_COLUMNS;
    const bool in_place = p->dots || p->lines; // no panels: items may have few columns
    p->tile_rows = in_place ? p->row_count : even_size(p->row_count, KG_ITEM_ROWS, high);
    p->tile_columns = even_size(p->column_count, max, unit);
    while (call->threads > 1 && item_count(p) < 2 * call->threads) {
        const int64_t larger = p->tile_rows > p->tile_columns ? p->tile_rows : p->tile_columns;
        if (in_place ? p->tile_columns * p->slab_k <= DOT_ELEMENTS || p->tile_columns <= unit
                     : larger <= (item_count(p) < call->threads ? LEAST : ENOUGH))
            break;
        if (!in_place && p->tile_rows >= p->tile_columns)
            p->tile_rows = even_size(p->tile_rows, ceiling(p->tile_rows, 2), high);
        else
            p->tile_columns = even_size(p->tile_columns, ceiling(p->tile_columns, 2), unit);
    }
    p->tiles_down = count_tiles(p->row_count, p->tile_rows);
    p->tiles_across = count_tiles(p->column_count, p->tile_columns);
    p->items = item_count(p);
}

static struct plan make_plan(const struct kg_host_call *call)
{
    struct plan p = {.size = extents(call), .slabs = 1, .tiles_down = 1, .tiles_across = 1};
    if (p.size.batch == 0 || p.size.m == 0 || p.size.n == 0)
        return p; // there is no first item to examine
    choose_path(call, &p);
    choose_slabs(&p);
    split_blocks(call, &p);
    choose_tiles(call, &p);
    p.block_rows = even_size(p.tile_rows, KG_BLOCK_ROWS, p.pairs ? KG_PAIR_TILE : KG_ROWS);
    return p;
}

// Elements of the workspace that quantised columns need.
static int64_t scaled_workspace(const struct plan *p, int64_t columns)
{
#if KG_SCALED_TILES
    int64_t begin[KG_TILE_AREAS];
    if (p->tiles)
        return divide_workspace(p->tile_rows, columns, p->block_k, begin);
#endif
    return p->scaled ? scaled_elements(p->row_count, columns, p->block_k) : 0;
}

// Elements of one thread's workspace; with a job, also sets its pointers.
static int64_t lay_out(const struct plan *p, struct job *job, char *scratch)
{
    enum { PARTS = 6 };
    const int64_t width = p->pairs ? KG_PAIR_TILE : p->shorts ? KG_SHORT_COLUMNS : KG_COLUMNS;
    // Panels of strips have whole strips.
    const int64_t columns =
        ceiling(p->tile_columns, width) * width + (p->tiles    ? KG_TILE_COLUMNS
                                                   : p->scaled ? KG_SCALED_COLUMNS
                                                               : 0);
    const int64_t length = ceiling(p->slab_k, KG_LANES) * KG_LANES;
    const int64_t dot_rows = ceiling(p->tile_rows, 4) * 4;
    const int64_t depth = p->pairs ? p->block_k / 2 // two terms share a word
                          : p->shorts
                              ? ceiling(p->block_k, 2) // and four at most, in two parts each
                              : p->block_k;
    const bool blocks = p->slab_k > p->block_k || p->scaled;
    const int64_t size[PARTS] = {
        KG_STAGE,
        p->dots ? dot_rows * length : p->block_rows * depth,
        p->dots || p->lines ? 0 : columns * depth,
        p->dots || p->lines || p->pairs || p->shorts ? 0 : columns * KG_ROWS,
        p->dots    ? dot_rows * p->tile_columns
        : blocks   ? p->tile_rows * columns
        : p->pairs ? p->block_rows * columns
                   : 0,
        scaled_workspace(p, columns),
    };
    KG_REAL **place[PARTS] = {NULL};
    int64_t used = 0;
    if (job) {
        place[0] = &job->stage;
        place[1] = &job->rows;
        place[2] = &job->columns;
        place[3] = &job->fresh;
        place[4] = &job->sums;
        place[5] = &job->scaled;
    }
    for (int i = 0; i < PARTS; i++) {
        if (place[i])
            *place[i] = (KG_REAL *)scratch + used;
        used += ceiling(size[i] + KG_LANES, 64) * 64; // vectors may be stored past the end
    }
    return used;
}

// Adds the partial sums of slabs; an item is a tile of the output.
enum { KG_SLAB_TILE = 1024 };

static int64_t slab_tile_rows(const struct plan *p)
{
    return p->size.n < KG_SLAB_TILE ? KG_SLAB_TILE / (p->size.n > 0 ? p->size.n : 1) : 1;
}

static int64_t slab_tile_count(const struct plan *p)
{
    return p->size.batch * ceiling(p->size.m, slab_tile_rows(p)) * ceiling(p->size.n, KG_SLAB_TILE);
}

static void add_slabs(const struct kg_host_call *call, const struct plan *p, int64_t item)
{
    _Alignas(64) KG_REAL sums[KG_SLAB_TILE];
    const int64_t across = ceiling(p->size.n, KG_SLAB_TILE);
    const int64_t down = ceiling(p->size.m, slab_tile_rows(p));
    const int64_t column = item % across * KG_SLAB_TILE,
                  row = item / across % down * slab_tile_rows(p);
    const int64_t batch = item / across / down;
    const int64_t columns = least(KG_SLAB_TILE, p->size.n - column);
    const int64_t rows = least(slab_tile_rows(p), p->size.m - row);
    for (int64_t slab = 0; slab < p->slabs; slab++) {
        const KG_REAL *from =
            (const KG_REAL *)call->shared + (slab * p->size.batch + batch) * p->size.m * p->size.n;
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < columns; c++) {
                const KG_REAL part = from[(row + r) * p->size.n + column + c];
                sums[r * columns + c] = slab ? sums[r * columns + c] + part : part;
            }
    }
    finish(call, batch, row, rows, column, columns, sums, columns);
}

static void run_item(struct job *job, int64_t item)
{
    const struct plan *p = job->plan;
    const int64_t down = item % p->tiles_down, across = item / p->tiles_down % p->tiles_across;
    const int64_t rest = item / p->tiles_down / p->tiles_across;
    const int64_t row = down * p->tile_rows, column = across * p->tile_columns;
    const int64_t rows = least(p->tile_rows, p->row_count - row);
    const int64_t columns = least(p->tile_columns, p->column_count - column);
    job->slab = rest % p->slabs;
    job->batch = rest / p->slabs;
    job->k0 = job->slab * p->slab_k;
    job->kn = least(p->slab_k, p->size.k - job->k0);
#if KG_PAIR_PATH
    if (p->pairs) {
        run_pairs(job, row, rows, column, columns);
        return;
    }
#endif
#if KG_SHORT_PATH
    if (p->shorts) {
        run_shorts(job, row, rows, column, columns);
        return;
    }
#endif
#if KG_SCALED
    if (p->scaled) {
#if KG_SCALED_TILES
        if (p->tiles) {
            run_scaled_tiles(job, row, rows, column, columns);
            return;
        }
#endif
#if KG_SCALED_LINES
        run_lines(job, row, rows, column, columns);
#else
        if (p->row_count <= KG_SCALED_ROWS)
            run_scaled(job, row, rows, column, columns);
        else
            run_scaled_panels(job, row, rows, column, columns);
#endif
        return;
    }
#endif
    if (p->few)
        run_few(job);
    else if (p->dots)
        run_dots(job, row, rows, column, columns);
    else
        run_panels(job, row, rows, column, columns);
}

int64_t KG_ENTRY(items)(const struct kg_host_call *call, int phase)
{
    const struct plan p = make_plan(call);
    if (phase == 0)
        return p.items;
    return phase == 1 && p.slabs > 1 ? slab_tile_count(&p) : -1;
}

// Items that are worth waking a thread, which takes some microseconds.
static int64_t grain_of(const struct plan *p)
{
    enum { LEAST_WORK = 1 << 16, LEAST_NANOSECONDS = 1 << 13 };
    const struct extents size = p->size;
    if (p->few) // on a Zen 4
        return LEAST_NANOSECONDS / (40 + (size.m + size.n) * size.k / 2 + size.m * size.n);
    const int64_t work = p->tile_rows * p->tile_columns * (p->slab_k + 8);
    return work > 0 && work < LEAST_WORK ? LEAST_WORK / work : 1;
}

int64_t KG_ENTRY(bytes)(const struct kg_host_call *call, int kind)
{
    const struct plan p = make_plan(call);
    if (kind == KG_HOST_GRAIN)
        return grain_of(&p);
    if (kind == KG_HOST_SHARED)
        return p.slabs > 1 ? p.slabs * p.size.batch * p.size.m * p.size.n * (int64_t)sizeof(KG_REAL)
                           : 0;
    return lay_out(&p, NULL, NULL) * (int64_t)sizeof(KG_REAL);
}

void KG_ENTRY(run)(const struct kg_host_call *call, int phase, int64_t begin, int64_t end)
{
    const struct plan p = make_plan(call);
    struct job job = {.call = call, .plan = &p};
    lay_out(&p, &job, call->scratch);
#if KG_PAIR_PATH || KG_SCALED_TILES
    if ((p.pairs || p.tiles) && phase == 0)
        kg_tiles_begin();
#endif
    for (int64_t item = begin; item < end; item++)
        if (phase == 0)
            run_item(&job, item);
        else
            add_slabs(call, &p, item);
#if KG_PAIR_PATH || KG_SCALED_TILES
    if ((p.pairs || p.tiles) && phase == 0)
        kg_tiles_end();
#endif
}
