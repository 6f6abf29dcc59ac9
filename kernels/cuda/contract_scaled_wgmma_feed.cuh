// The shape of a block of contract_scaled_wgmma.cuh, the work of a block, and its producer, which
// fills stages as they become free: one thread that issues TMA loads, or, where lines of weights
// are no multiples of 16 bytes, a warp group that copies their words. A warp copies zero points
// whose lines alone are none.

// ---- The shape of a block ----

// TEAMS of consumers take units of work by turns. SLICES: blocks that share a tile along K, at
// most; 0: as many as stream-K makes. STAGED: scales come through the ring, and zero points of
// ZERO_BITS, if there are any: 4 or 8 or, for none, 0. And offsets, if STAGES_OFFSETS. BUFFERED:
// tiles are stored from shared memory. LAYOUT: that of weights.
enum kg_tall_layout { KG_TALL_WORDS, KG_TALL_LINES, KG_TALL_PANELS }; // along N; along K; packed
template <class NUMBER, int ROWS, int COLUMNS, int STAGES, int TEAMS, int GROUP, int SLICES,
          bool STAGED, int ZERO_BITS, bool STAGES_OFFSETS, bool BUFFERED, kg_tall_layout LAYOUT,
          class INSTRUCTION>
struct kg_tall_block {
    typedef INSTRUCTION instruction;
    static constexpr int rows = ROWS, columns = COLUMNS, depth = 64, stages = STAGES;
    static constexpr int group = GROUP, slices = SLICES;
    static constexpr bool stream_k = SLICES == 0, staged = STAGED, stages_zeros = ZERO_BITS > 0;
    static constexpr bool stages_offsets = STAGES_OFFSETS, buffered = BUFFERED;
    static constexpr int teams = TEAMS, consumers = COLUMNS < 128 ? 1 : 2; // of a team
    static constexpr int m_tiles = COLUMNS / 64 / consumers; // instructions of each in a K step
    static constexpr int of_lane = 2 * m_tiles;              // columns of a lane
    static constexpr int sums = ROWS / 2; // accumulators of a thread in one of these
    // K indices have other scales than others; sums are scaled, not weights before.
    static constexpr bool has_runs = GROUP > 0, rounds = NUMBER::rounds;
    static constexpr bool scales_sums = has_runs && !rounds;
    // Sums in units of scales that are far apart must not underflow.
    typedef typename kg_scaled_lifted<NUMBER, scales_sums>::number number;
    // K indices after which sums are scaled, or weights otherwise, at most 128; blocks divide the
    // work in units of whole stages and runs. And the groups that a stage touches.
    static constexpr int run = GROUP % 128 == 0  ? 128
                               : GROUP % 64 == 0 ? 64
                               : GROUP % 32 == 0 ? 32
                                                 : 16;
    static constexpr int unit = has_runs && run > depth ? run : depth;
    // K steps of 16 whose products are issued at once: two where runs and registers allow it, which
    // may belong to two runs if weights are scaled and their scales need not be looked ahead to.
    static constexpr bool lines = LAYOUT == KG_TALL_LINES, panels = LAYOUT == KG_TALL_PANELS;
    static constexpr int least_run = !rounds ? 64 : STAGED ? 16 : 32;
    static constexpr int batch = run >= least_run && !(lines && TEAMS > 1) ? 2 : 1;
    static constexpr int batch_runs = batch * 16 > run ? batch * 16 / run : 1; // runs of a batch
    static constexpr int of_stage = run < depth ? run : depth; // K indices of one group
    static constexpr int groups =
        STAGED ? (depth - 1 + GROUP - of_stage) / (has_runs ? GROUP : 1) + 1 : 0;
    // Columns of a lane that are adjacent, and from those to the others, if there are any.
    static constexpr int adjacent = panels ? 2 : 4, apart = panels ? 16 : 2;
    // Weights are boxes side by side, with lines of 128 bytes or, of lines along K and of panels,
    // one box.
    static constexpr int bits = NUMBER::bits, boxes = panels ? 1 : columns * bits / 8 / 128;
    static constexpr int line_bytes = depth * bits / 8; // of a column
    static constexpr int row_bytes = ROWS * depth * 2, box_bytes = depth * 128;
    static constexpr int weight_bytes = columns * line_bytes;
    static constexpr int scale_bytes = groups * columns * 2;
    static constexpr int zero_bytes = groups * columns * ZERO_BITS / 8;
    static constexpr int offset_bytes = STAGES_OFFSETS ? scale_bytes : 0;
    static constexpr int scales_at = row_bytes + weight_bytes, zeros_at = scales_at + scale_bytes;
    static constexpr int offsets_at = (zeros_at + zero_bytes + 127) / 128 * 128;
    static constexpr int stage_bytes = (offsets_at + offset_bytes + 1023) / 1024 * 1024;
    static constexpr int partial_bytes = ROWS * columns * 4;
    // Of two teams each finishes half of the rows: the same eight, too, if there is an odd number
    // of these. Of slices, whose blocks finish a part each, the first team does.
    static constexpr bool halves = SLICES <= 1;
    static constexpr int finished_rows = TEAMS > 1 && halves ? (ROWS + 8) / 16 * 8 : ROWS;
    static constexpr int exchange_bytes =
        (TEAMS - 1) * (halves ? 2 : 1) * finished_rows * columns * 4;
    static constexpr int buffer_bytes = BUFFERED ? ROWS * columns * 2 : 0;
    // Sums of rows in the runs of a stage; there is room for two times as many for each consumer.
    static constexpr int row_sums = ROWS * (has_runs && run < depth ? depth / run : 1);
    static_assert(TEAMS <= 2, "the second team gives its sums to the first");
    static_assert(TEAMS == 1 || !BUFFERED, "barriers are for one team");
    static_assert(SLICES <= 1 || !BUFFERED, "slices are finished from registers");
    // A team waits for a stage while it holds the last two of its own, at most four before. A stage
    // is the same team's in every turn: of two teams, each sees the barriers of its own only.
    static_assert(STAGES >= (TEAMS == 1 ? 3 : 5), "consumers would wait for each other");
    static_assert(TEAMS == 1 || STAGES % (TEAMS * unit / depth) == 0, "whole units of all teams");
    static_assert(ROWS % 8 == 0 && GROUP % 16 == 0, "whole instructions");
    static_assert(COLUMNS == 256 || panels, "lanes have four columns of words, or of lines");
};

// What a team finishes of a tile, if there are two: its first rows, its last ones, or all.
template <class BLOCK>
struct kg_tall_share : BLOCK {
    static constexpr int rows = BLOCK::finished_rows, sums = rows / 2;
    static constexpr int consumers = (BLOCK::halves ? BLOCK::teams : 1) * BLOCK::consumers;
    static constexpr int partial_bytes = BLOCK::exchange_bytes;
};

// `exchange` is for sums that teams of consumers give each other, `buffer` for tiles to be stored,
// `row_sums` is there if weights have offsets.
struct kg_tall_shared {
    char *ring, *buffer;
    float4 *exchange;
    uint64_t *full, *empty;
    float *row_sums;
};

template <class Block>
KG_INLINE kg_tall_shared kg_tall_shared_of(char *shared)
{
    char *ring = shared + (1024 - kg_shared_address(shared) % 1024) % 1024;
    char *buffer = ring + Block::stages * Block::stage_bytes;
    char *exchange = buffer + Block::buffer_bytes;
    uint64_t *full = (uint64_t *)(exchange + Block::exchange_bytes);
    return {ring,
            buffer,
            (float4 *)exchange,
            full,
            full + Block::stages,
            (float *)(full + 2 * Block::stages)};
}

// A position in the ring: a stage, and the barrier that says that it is full. Addresses are kept:
// compilers would derive them from the start of shared memory every time.
template <class Block>
struct kg_tall_place {
    uint32_t odd = 0, stage, full, end; // `end`: of those barriers

    KG_METHOD explicit kg_tall_place(const kg_tall_shared &shared)
        : stage(kg_shared_address(shared.ring)), full(kg_shared_address(shared.full))
    {
        asm volatile("" : "+r"(stage), "+r"(full));
        end = full + Block::stages * 8;
    }
    // The barrier that says that it is free.
    KG_METHOD uint32_t empty() const
    {
        return full + Block::stages * 8;
    }
    KG_METHOD int number() const
    {
        return Block::stages - (int)(end - full) / 8;
    }
    KG_METHOD void move(int stages)
    {
        stage += stages * Block::stage_bytes;
        full += stages * 8;
    }
    // To the stage that is COUNT further, less than a turn.
    template <int COUNT = 1>
    KG_METHOD void next()
    {
        static_assert(COUNT < Block::stages, "at most one turn ends");
        move(COUNT);
        if (COUNT == 1 ? full == end : full >= end) {
            move(-Block::stages);
            odd ^= 1;
        }
    }
    KG_METHOD void skip(uint32_t count)
    {
        const uint32_t turns = (number() + count) / Block::stages;
        move((int)(count - turns * Block::stages));
        odd ^= turns & 1;
    }
};

// ---- Work ----

// Units `first` to `until` of a tile.
struct kg_tall_piece {
    kg_tile_task task;
    int first, until;
    int tile; // counted from the first divided tile
};

// The quotient of numbers below 2^20, in half the time of an integer division: 1 / `by` and the
// product are off by less than 2^-22 of it, and it is not nearer than 1 / (2 * `by`) to an integer.
KG_INLINE int kg_tall_quotient(int of, int by)
{
    float inverse;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"((float)by));
    return (int)(((float)of + 0.5f) * inverse);
}

// What a block does: its range of divided tiles, from the end, then whole tiles; or a slice of one.
// Found by all threads together, while barriers are made. Nothing is loaded before, and
// instructions take long the first time, when they are fetched: so there are few.
template <class Block>
struct kg_tall_work {
    kg_stream_k stream_k;
    kg_stream_k_range range;
    int tall, wide;   // in tiles
    int units, index; // of a tile; of the next whole one
    int slices;       // of a tile, side by side; 1: none
    int64_t depth;
    bool is_batch, is_wave; // is_wave: blocks are as many as tiles, or more
    kg_tall_piece piece;    // to be done next, if one is left

    // Divisions are few: a block loads nothing before these are done.
    template <class JOB>
    KG_METHOD explicit kg_tall_work(const JOB &job)
        : range{0, 0, 0}, tall(parts<Block::rows>(job.rows())),
          wide(parts<Block::columns>(job.columns())), units(parts<Block::unit>(job.depth())),
          index(blockIdx.x), slices(1), depth(job.depth()), is_batch(job.batches() > 1)
    {
        const int tiles = (int)job.batches() * tall * wide;
        stream_k = {tiles, 0, 0};
        is_wave = tiles <= (int)gridDim.x;
        if constexpr (Block::stream_k) {
            stream_k = Block::teams > 1 ? kg_stream_k_make_rest(tiles, units, gridDim.x)
                                        : kg_stream_k_make(tiles, units, gridDim.x);
            range = kg_stream_k_range_make(&stream_k, units, blockIdx.x);
        }
        if constexpr (Block::slices > 1) {
            if ((int)gridDim.x == tiles * Block::slices)
                take_slice(Block::slices);
            else if ((int)gridDim.x >= tiles * 2)
                take_slice((int)gridDim.x / tiles);
        }
        find_piece();
    }
    // The block's slice of its tile, of `count`.
    KG_METHOD void take_slice(int count)
    {
        const int tile = (int)blockIdx.x / count, slice = (int)blockIdx.x - tile * count;
        const int each = units / count, longer = units - each * count;
        const int first = slice * each + (slice < longer ? slice : longer);
        const int left = each + (slice < longer ? 1 : 0);
        slices = count;
        stream_k.first_tile = 0;
        range = {tile, first + left, left};
    }
    // Tiles, or units of K, of SIZE that cover so many.
    template <int SIZE>
    KG_METHOD static int parts(int64_t count)
    {
        return ((int)count + SIZE - 1) / SIZE;
    }
    // Keeps in registers what was found: compilers would find it in each branch that uses it.
    KG_METHOD void settle()
    {
        asm volatile("" : "+l"(piece.task.row), "+l"(piece.task.column));
        if constexpr (Block::stream_k || Block::slices > 1)
            asm volatile("" : "+r"(piece.first), "+r"(piece.until), "+r"(range.left));
    }
    KG_METHOD bool is_left() const
    {
        return range.left > 0 || index < stream_k.first_tile;
    }
    KG_METHOD void next()
    {
        if (range.left > 0)
            kg_stream_k_range_next(&range, units);
        else
            index += gridDim.x;
        if (is_left())
            find_piece();
    }
    KG_METHOD void find_piece()
    {
        const bool divided = range.left > 0;
        int row, column, item = divided ? stream_k.first_tile + range.tile : index;
        piece.tile = range.tile;
        piece.first = divided ? kg_stream_k_range_first_step(&range) : 0;
        piece.until = divided ? range.until : units;
        const int tile = is_batch ? kg_take(&item, tall * wide) : item;
        item = is_batch ? item : 0;
        column = kg_tall_quotient(tile, tall);
        row = tile - column * tall;
        if (!is_wave)
            kg_tile_place<0, 8>(tile, tall, wide, &row, &column);
        piece.task = {item, row * (int64_t)Block::rows, column * (int64_t)Block::columns, 0, depth,
                      0};
    }
};

// ---- The producer ----

// The tensor maps. `last` has the smaller box of the last rows: TMA would fill lines beyond the
// tensor with zeros, slowly. Without a map of weights, their words are copied, and those of zero
// points; without one of zero points, these alone. `out` is that of the output, if it is buffered.
struct kg_tall_maps {
    const kg_tensor_map *rows, *last, *weights, *scales, *zeros;
    const kg_tensor_map *out, *offsets; // NULL: there is none
};

KG_INLINE void kg_tall_expect_maps(const kg_tall_maps &maps)
{
    kg_tiles_expect_map(maps.rows);
    kg_tiles_expect_map(maps.last);
    kg_tiles_expect_map(maps.weights);
    kg_tiles_expect_map(maps.scales);
    kg_tiles_expect_map(maps.zeros);
    if (maps.offsets)
        kg_tiles_expect_map(maps.offsets);
}

// The last coordinates of an item's boxes of rows and of weights.
template <class JOB>
KG_INLINE int kg_tall_rows_box(const JOB &, int64_t item)
{
    return (int)item;
}

template <class JOB>
KG_INLINE int kg_tall_weights_box(const JOB &, int64_t item)
{
    return (int)item;
}

// The boxes of a piece: the first row, of which `lines` are there, the first column, and items.
struct kg_tall_boxes {
    int row, lines, column, of_rows, of_weights;
};

template <class Block, class JOB>
KG_INLINE kg_tall_boxes kg_tall_boxes_of(const JOB &job, const kg_tile_task &task)
{
    const int row = (int)task.row, left = (int)job.rows() - row;
    return {row, left < Block::rows ? left : Block::rows, (int)task.column,
            kg_tall_rows_box(job, task.item), kg_tall_weights_box(job, task.item)};
}

// Expects a stage's bytes by TMA, at the barrier `full`.
template <class Block>
KG_INLINE void kg_tall_expect(uint32_t full, const kg_tall_maps &maps, const kg_tall_boxes &boxes)
{
    const bool has_zeros = Block::stages_zeros && kg_map_is_there(*maps.zeros);
    kg_tiles_expect(full, boxes.lines * Block::depth * 2 + Block::weight_bytes +
                              Block::scale_bytes + (has_zeros ? Block::zero_bytes : 0) +
                              Block::offset_bytes);
}

// Loads the rows, scales and offsets of K index `k` on to the stage at address `to`.
template <class Block>
KG_INLINE void kg_tall_load(const kg_tall_maps &maps, uint32_t to, uint32_t full,
                            const kg_tall_boxes &boxes, int k)
{
    if constexpr (Block::staged)
        kg_tiles_copy<false>(to + Block::scales_at, maps.scales, full, boxes.column,
                             k / Block::group, boxes.of_weights, 0);
    if constexpr (Block::stages_offsets)
        kg_tiles_copy<false>(to + Block::offsets_at, maps.offsets, full, boxes.column,
                             k / Block::group, boxes.of_weights, 0);
    kg_tiles_copy<false>(to, boxes.lines < Block::rows ? maps.last : maps.rows, full, k, boxes.row,
                         boxes.of_rows, 0);
}

// The same of zero points, if TMA loads them.
template <class Block, class WEIGHTS>
KG_INLINE void kg_tall_load_zeros(const kg_tall_maps &maps, uint32_t to, uint32_t full,
                                  const kg_tall_boxes &boxes, int k)
{
    if constexpr (Block::stages_zeros)
        if (kg_map_is_there(*maps.zeros))
            kg_tiles_copy<false>(to + Block::zeros_at, maps.zeros, full,
                                 boxes.column * WEIGHTS::ZERO_BITS / 16, k / Block::group,
                                 boxes.of_weights, 0);
}

KG_INLINE void kg_tall_copy_box(uint32_t to, const kg_tensor_map *map, uint32_t barrier, int x,
                                int y, int z, int item)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile"
                 ".mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(item)
                 : "memory");
}

// The same of weights: boxes of words; lines along K of four times 64 columns, as in shared memory
// every fourth column is next to each other, for lanes have them; or panels.
template <class Block>
KG_INLINE void kg_tall_load_weights(const kg_tall_maps &maps, uint32_t to, uint32_t full,
                                    const kg_tall_boxes &boxes, int k)
{
    const int column = boxes.column, item = boxes.of_weights;
    to += Block::row_bytes;
    if constexpr (Block::lines) {
        kg_tall_copy_box(to, maps.weights, full, k * Block::bits / 16, column / 4, 0, item);
    } else if constexpr (Block::panels) {
        kg_tall_copy_box(to, maps.weights, full, 0, column / 16, k / 64, item);
    } else {
#pragma unroll
        for (int box = 0; box < Block::boxes; box++)
            kg_tiles_copy<false>(to + box * Block::box_bytes, maps.weights, full,
                                 column * Block::bits / 16 + box * 64, k, item, 0);
    }
}

template <class Block, class WEIGHTS, class JOB>
KG_INLINE void kg_tall_produce(const JOB &job, const kg_tall_maps &maps,
                               const kg_tall_shared &shared, kg_tall_work<Block> work)
{
    kg_tall_place<Block> at(shared);
    for (; work.is_left(); work.next()) {
        const kg_tall_boxes boxes = kg_tall_boxes_of<Block>(job, work.piece.task);
        const int until = work.piece.until * Block::unit;
#pragma unroll 1
        for (int k = work.piece.first * Block::unit; k < until; k += Block::depth, at.next()) {
            kg_tiles_wait(at.empty(), at.odd ^ 1);
            kg_tall_expect<Block>(at.full, maps, boxes);
            kg_tall_load_weights<Block>(maps, at.stage, at.full, boxes, k);
            kg_tall_load_zeros<Block, WEIGHTS>(maps, at.stage, at.full, boxes, k);
            kg_tall_load<Block>(maps, at.stage, at.full, boxes, k);
        }
    }
}

// ---- Weights copied by words ----

// Copies four bytes to shared memory, or zeros.
KG_INLINE void kg_tall_copy_word(uint32_t to, const uint8_t *from, bool is_inside)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from),
                 "r"(is_inside ? 4 : 0)
                 : "memory");
}

// Arrives at the barrier when this thread's copies are done.
KG_INLINE void kg_tall_arrive_later(uint32_t barrier)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}

// Copies the words of a line that starts with column `column` of the tile's, 128 bytes for each
// BOX bytes in shared memory; ELEMENTS have a word. Those from `left` columns on are zeros.
template <int BOXES, int BOX>
KG_INLINE void kg_tall_copy_line(uint32_t to, const uint8_t *from, int elements, int left)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int box = 0; box < BOXES; box++)
        kg_tall_copy_word(to + box * BOX, from + box * 128, (box * 32 + lane) * elements < left);
}

// The words of zero points of a tile's stages, which THREADS threads copy, if there are any.
template <class Block, class WEIGHTS, int THREADS, bool ARE_THERE = Block::stages_zeros>
struct kg_tall_zero_words {
    KG_METHOD kg_tall_zero_words(const WEIGHTS &, const kg_tile_task &, int)
    {
    }
    KG_METHOD void copy(uint32_t, int) const
    {
    }
};

template <class Block, class WEIGHTS, int THREADS>
struct kg_tall_zero_words<Block, WEIGHTS, THREADS, true> {
    static constexpr int bits = WEIGHTS::ZERO_BITS, of_word = 32 / bits;
    static constexpr int of_group = Block::columns / of_word, words = Block::groups * of_group;
    const uint8_t *from; // the first of the tile
    int64_t pitch;       // bytes from a group to the next
    int columns, groups; // of the tile in the output; along K
    KG_METHOD kg_tall_zero_words(const WEIGHTS &weights, const kg_tile_task &task, int columns_)
        : columns(columns_), groups(((int)task.stop - 1) / Block::group + 1)
    {
        const int64_t first = weights.zero_place(task.item, 0, task.column);
        pitch = (weights.zero_place(task.item, Block::group, task.column) - first) * bits / 8;
        from = reinterpret_cast<const uint8_t *>(weights.zeros()) + first * bits / 8;
    }
    // Those of the stage that begins with K index `k`.
    KG_METHOD void copy(uint32_t stage, int k) const
    {
        const int thread = threadIdx.x % THREADS, first = k / Block::group;
#pragma unroll
        for (int i = 0; i < words; i += THREADS) {
            const int number = i + thread, group = number / of_group, word = number % of_group;
            if (words % THREADS != 0 && number >= words)
                break;
            kg_tall_copy_word(stage + Block::zeros_at + number * 4,
                              from + (first + group) * pitch + word * 4,
                              first + group < groups && word * of_word < columns);
        }
    }
};

// Weights and zero points by all threads of a warp group: each copies words of every fourth line.
template <class Block, class JOB, class WEIGHTS>
KG_INLINE void kg_tall_produce_words(const JOB &job, const WEIGHTS &weights,
                                     const kg_tall_maps &maps, const kg_tall_shared &shared,
                                     kg_tall_work<Block> work)
{
    constexpr int of_word = 32 / Block::bits;
    const int warp = kg_warp_number(), lane = threadIdx.x % 32;
    const uint32_t place =
        Block::row_bytes + warp * 128 + (lane / 4 ^ warp) * 16 + lane % 4 * 4; // swizzled
    kg_tall_place<Block> at(shared);
    for (; work.is_left(); work.next()) {
        const kg_tall_piece piece = work.piece;
        const int64_t item = piece.task.item, column = piece.task.column + lane * of_word;
        const kg_tall_boxes boxes = kg_tall_boxes_of<Block>(job, piece.task);
        const int columns = (int)kg_min_i64(job.columns() - piece.task.column, Block::columns);
        int k = piece.first * Block::unit;
        const kg_tall_zero_words<Block, WEIGHTS, 128> zeros(weights, piece.task, columns);
        const int64_t first = weights.place(item, 0, column);
        const int64_t pitch = (weights.place(item, 2, column) - first) * Block::bits / 16;
        const uint8_t *from = reinterpret_cast<const uint8_t *>(weights.data()) +
                              first * Block::bits / 8 + (k + warp) * pitch;
#pragma unroll 1
        for (; k < piece.until * Block::unit; k += Block::depth, at.next()) {
            const int left = (int)job.depth() - k - warp;
            kg_tiles_wait(at.empty(), at.odd ^ 1);
            if (threadIdx.x == 0) {
                kg_tiles_expect(at.full, boxes.lines * Block::depth * 2 + Block::scale_bytes +
                                             Block::offset_bytes);
                kg_tall_load<Block>(maps, at.stage, at.full, boxes, k);
            }
#pragma unroll
            for (int i = 0; i < Block::depth / 4; i++, from += 4 * pitch)
                kg_tall_copy_line<Block::boxes, Block::box_bytes>(
                    at.stage + (place ^ i % 2 * 64) + i * 512, from, of_word,
                    i * 4 < left ? columns : 0);
            zeros.copy(at.stage, k);
            kg_tall_arrive_later(at.full);
        }
    }
}

// Copies the zero points of every stage, by one warp.
template <class Block, class JOB, class WEIGHTS>
KG_INLINE void kg_tall_produce_zeros(const JOB &job, const WEIGHTS &weights,
                                     const kg_tall_shared &shared, kg_tall_work<Block> work)
{
    kg_tall_place<Block> at(shared);
    for (; work.is_left(); work.next()) {
        const kg_tall_piece piece = work.piece;
        const int columns = (int)kg_min_i64(job.columns() - piece.task.column, Block::columns);
        const kg_tall_zero_words<Block, WEIGHTS, 32> zeros(weights, piece.task, columns);
#pragma unroll 1
        for (int k = piece.first * Block::unit; k < piece.until * Block::unit;
             k += Block::depth, at.next()) {
            kg_tiles_wait(at.empty(), at.odd ^ 1);
            zeros.copy(at.stage, k);
            kg_tall_arrive_later(at.full);
        }
    }
}

// ---- Weights that are packed first ----

// A word of the elements of a line from `from` on, of which those behind the last one are 0;
// place(from) is the position of one.
template <int BITS, class PLACE>
KG_INLINE uint32_t kg_tall_word(const uint8_t *data, int64_t from, int64_t length,
                                const PLACE &place)
{
    constexpr int of_word = 32 / BITS;
    const int64_t at = place(from);
    uint32_t word = 0;
    if (from + of_word <= length && place(from + of_word - 1) == at + of_word - 1 &&
        at * BITS % 8 == 0 && (uint64_t)(data + at * BITS / 8) % 4 == 0)
        return *reinterpret_cast<const uint32_t *>(data + at * BITS / 8);
#pragma unroll 1
    for (int i = 0; i < of_word && from + i < length; i++)
        word |= kg_scaled_element<BITS>(data, place(from + i)) << i * BITS;
    return word;
}

// Makes `count` lines for each batch, `pitch` bytes apart: those with `length` elements that
// place(item, line, element) finds in `data`. Returns where the lines end.
template <int BITS, class JOB, class PLACE>
KG_INLINE char *kg_tall_pack(const JOB &job, const void *data, int64_t count, int64_t length,
                             int64_t pitch, char *to, const PLACE &place)
{
    constexpr int of_word = 32 / BITS;
    const int64_t lines = job.batches() * count;
    for (int64_t at = blockIdx.x; at < lines; at += gridDim.x) {
        uint32_t *words = reinterpret_cast<uint32_t *>(to + at * pitch);
        int64_t item = at;
        const int64_t line = kg_take(&item, count);
        for (int64_t from = threadIdx.x * of_word; from < length; from += blockDim.x * of_word)
            words[from / of_word] =
                kg_tall_word<BITS>(reinterpret_cast<const uint8_t *>(data), from, length,
                                   [&](int64_t element) { return place(item, line, element); });
    }
    return to + lines * pitch;
}

// Packs weights, and zero points of GROUP K indices each, if any: lines along K to as many as are a
// multiple of 4. Panels are packed already.
template <int BITS, int GROUP, bool HAS_ZEROS, kg_tall_layout LAYOUT, class JOB, class WEIGHTS>
KG_INLINE void kg_tall_pack_all(const JOB &job, const WEIGHTS &weights, char *to)
{
    const int64_t columns = job.columns(), depth = job.depth(), wide = (columns + 255) / 256 * 256;
    if constexpr (LAYOUT == KG_TALL_PANELS)
        return;
    if constexpr (LAYOUT == KG_TALL_LINES)
        to = kg_tall_pack<BITS>(
            job, weights.data(), (columns + 3) / 4 * 4, depth, (depth + 31) / 32 * 32 * BITS / 8,
            to, [&](int64_t item, int64_t column, int64_t step) {
                return weights.place(item, step, kg_min_i64(column, columns - 1));
            });
    else
        to = kg_tall_pack<BITS>(job, weights.data(), depth, columns, wide * BITS / 8, to,
                                [&](int64_t item, int64_t step, int64_t column) {
                                    return weights.place(item, step, column);
                                });
    if constexpr (HAS_ZEROS)
        kg_tall_pack<WEIGHTS::ZERO_BITS>(job, weights.zeros(), (depth + GROUP - 1) / GROUP, columns,
                                         wide * WEIGHTS::ZERO_BITS / 8, to,
                                         [&](int64_t item, int64_t step, int64_t column) {
                                             return weights.zero_place(item, step * GROUP, column);
                                         });
}
