// The shape of a block of contract_scaled_wgmma.cuh, the work of a block, and its producer, which
// fills stages as they become free: one thread that issues TMA loads, or, where lines of weights
// are no multiples of 16 bytes, a warp group that copies their words.

// ---- The shape of a block ----

// STAGED: scales, and zero points if they are an array, come through the ring.
template <class NUMBER, int ROWS, int STAGES, int GROUP, bool STREAM_K, bool STAGED,
          bool STAGES_ZEROS, class INSTRUCTION>
struct kg_tall_block {
    typedef INSTRUCTION instruction;
    static constexpr int rows = ROWS, columns = 256, depth = 64, stages = STAGES, group = GROUP;
    static constexpr bool stream_k = STREAM_K, staged = STAGED, stages_zeros = STAGES_ZEROS;
    static constexpr int consumers = 2, consumer_threads = 128 * consumers;
    static constexpr int m_tiles = 2;     // instructions of a consumer in a K step
    static constexpr int sums = ROWS / 2; // accumulators of a thread in one of these
    static constexpr bool has_runs = GROUP > 0;
    // Sums in units of scales that are far apart must not underflow.
    typedef typename kg_scaled_lifted<NUMBER, has_runs>::number number;
    // K indices after which sums are scaled, at most 128; blocks divide the work in units of whole
    // stages and runs. And the groups that a stage touches.
    static constexpr int run = GROUP % 128 == 0  ? 128
                               : GROUP % 64 == 0 ? 64
                               : GROUP % 32 == 0 ? 32
                                                 : 16;
    static constexpr int unit = has_runs && run > depth ? run : depth;
    // K steps of 16 whose products are issued at once.
    static constexpr int batch = run >= 64 ? 2 : 1;
    static constexpr int groups = !STAGED           ? 0
                                  : GROUP % 64 == 0 ? 1
                                                    : 64 / GROUP + (64 % GROUP != 0);
    static constexpr int row_bytes = ROWS * depth * 2, weight_bytes = depth * columns / 2;
    static constexpr int scale_bytes = groups * columns * 2;
    static constexpr int zero_bytes = STAGES_ZEROS ? groups * columns / 2 : 0;
    static constexpr int scales_at = row_bytes + weight_bytes, zeros_at = scales_at + scale_bytes;
    static constexpr int stage_bytes = (zeros_at + zero_bytes + 1023) / 1024 * 1024;
    static constexpr int partial_bytes = ROWS * columns * 4;
    static_assert(ROWS % 8 == 0 && GROUP % 16 == 0, "whole instructions");
};

// A position in the ring.
template <class Block>
struct kg_tall_place {
    int stage = 0;
    uint32_t odd = 0;
    KG_METHOD void next()
    {
        if (++stage == Block::stages) {
            stage = 0;
            odd ^= 1;
        }
    }
};

struct kg_tall_shared {
    char *ring;
    uint64_t *full, *empty;
};

template <class Block>
KG_INLINE kg_tall_shared kg_tall_shared_of(char *shared)
{
    char *ring = shared + (1024 - kg_shared_address(shared) % 1024) % 1024;
    uint64_t *full = (uint64_t *)(ring + Block::stages * Block::stage_bytes);
    return {ring, full, full + Block::stages};
}

// ---- Work ----

// Units `first` to `until` of a tile.
struct kg_tall_piece {
    kg_tile_task task;
    int first, until;
    int tile; // counted from the first divided tile
};

// What a block does: its range of divided tiles, from the end, then whole tiles.
template <class Block>
struct kg_tall_work {
    kg_stream_k stream_k;
    kg_stream_k_range range;
    int64_t tall, wide;
    int units, index; // of a tile; of the next whole one

    template <class JOB>
    KG_METHOD explicit kg_tall_work(const JOB &job)
        : tall((job.rows() + Block::rows - 1) / Block::rows),
          wide((job.columns() + Block::columns - 1) / Block::columns),
          units((int)((job.depth() + Block::unit - 1) / Block::unit)), index(blockIdx.x)
    {
        const int tiles = (int)(job.batches() * tall * wide);
        stream_k = kg_stream_k_make(tiles, units, gridDim.x);
        if constexpr (!Block::stream_k)
            stream_k = {tiles, 0, 0};
        range = kg_stream_k_range_make(&stream_k, units, blockIdx.x);
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
    }
    KG_METHOD kg_tall_piece piece(int64_t depth) const
    {
        kg_tall_piece piece;
        const bool divided = range.left > 0;
        int64_t row, column, item = divided ? stream_k.first_tile + range.tile : index;
        piece.tile = range.tile;
        piece.first = divided ? kg_stream_k_range_first_step(&range) : 0;
        piece.until = divided ? range.until : units;
        const int64_t tile = kg_take(&item, tall * wide);
        kg_tile_place<0, 8>(tile, tall, wide, &row, &column);
        piece.task = {item, row * Block::rows, column * Block::columns, 0, depth, 0};
        return piece;
    }
};

// ---- The producer ----

// The tensor maps. `last` has the smaller box of the last rows: TMA would fill lines beyond the
// tensor with zeros, slowly. Without a map of weights, their words are copied, and those of zero
// points.
struct kg_tall_maps {
    const kg_tensor_map *rows, *last, *weights, *scales, *zeros;
};

KG_INLINE void kg_tall_expect_maps(const kg_tall_maps &maps)
{
    kg_tiles_expect_map(maps.rows);
    kg_tiles_expect_map(maps.last);
    kg_tiles_expect_map(maps.weights);
    kg_tiles_expect_map(maps.scales);
    kg_tiles_expect_map(maps.zeros);
}

// The rows and scales of a stage, `lines` rows of them.
template <class Block>
KG_INLINE void kg_tall_load(const kg_tall_maps &maps, char *to, uint64_t *full,
                            const kg_tall_piece &piece, int lines, int k)
{
    const int column = (int)piece.task.column, item = (int)piece.task.item;
    if constexpr (Block::staged)
        kg_tiles_copy<false>(to + Block::scales_at, maps.scales, full, column, k / Block::group,
                             item, 0);
    kg_tiles_copy<false>(to, lines < Block::rows ? maps.last : maps.rows, full, k,
                         (int)piece.task.row, item, 0);
}

template <class Block, class JOB>
KG_INLINE void kg_tall_produce(const JOB &job, const kg_tall_maps &maps,
                               const kg_tall_shared &shared)
{
    kg_tall_place<Block> at;
    for (kg_tall_work<Block> work(job); work.is_left(); work.next()) {
        const kg_tall_piece piece = work.piece(job.depth());
        const int lines = (int)kg_min_i64(job.rows() - piece.task.row, Block::rows);
        const int column = (int)piece.task.column, item = (int)piece.task.item;
#pragma unroll 1
        for (int k = piece.first * Block::unit; k < piece.until * Block::unit;
             k += Block::depth, at.next()) {
            char *to = shared.ring + at.stage * Block::stage_bytes;
            uint64_t *full = &shared.full[at.stage];
            kg_tiles_wait(&shared.empty[at.stage], at.odd ^ 1);
            kg_tiles_expect(full, lines * Block::depth * 2 + Block::weight_bytes +
                                      Block::scale_bytes + Block::zero_bytes);
            kg_tiles_copy<false>(to + Block::row_bytes, maps.weights, full, column / 4, k, item, 0);
            if constexpr (Block::stages_zeros)
                kg_tiles_copy<false>(to + Block::zeros_at, maps.zeros, full, column / 4,
                                     k / Block::group, item, 0);
            kg_tall_load<Block>(maps, to, full, piece, lines, k);
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
KG_INLINE void kg_tall_arrive_later(uint64_t *barrier)
{
    asm volatile(
        "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(kg_shared_address(barrier))
        : "memory");
}

// The same by all threads of a warp group: each copies a word, eight columns, of every fourth line.
template <class Block, class JOB, class WEIGHTS>
KG_INLINE void kg_tall_produce_words(const JOB &job, const WEIGHTS &weights,
                                     const kg_tall_maps &maps, const kg_tall_shared &shared)
{
    const int warp = kg_warp_number(), lane = threadIdx.x % 32;
    const uint32_t place =
        Block::row_bytes + warp * 128 + (lane / 4 ^ warp) * 16 + lane % 4 * 4; // swizzled
    kg_tall_place<Block> at;
    for (kg_tall_work<Block> work(job); work.is_left(); work.next()) {
        const kg_tall_piece piece = work.piece(job.depth());
        const int64_t item = piece.task.item, column = piece.task.column + lane * 8;
        const int lines = (int)kg_min_i64(job.rows() - piece.task.row, Block::rows);
        const bool has_column = column < job.columns();
        int k = piece.first * Block::unit;
        const int64_t first = weights.place(item, 0, column);
        const int64_t pitch = (weights.place(item, 2, column) - first) / 4; // in bytes
        const uint8_t *from = weights.data() + first / 2 + (k + warp) * pitch;
#pragma unroll 1
        for (; k < piece.until * Block::unit; k += Block::depth, at.next()) {
            char *stage = shared.ring + at.stage * Block::stage_bytes;
            uint64_t *full = &shared.full[at.stage];
            const uint32_t to = kg_shared_address(stage);
            const int left = has_column ? (int)job.depth() - k - warp : 0;
            kg_tiles_wait(&shared.empty[at.stage], at.odd ^ 1);
            if (threadIdx.x == 0) {
                kg_tiles_expect(full, lines * Block::depth * 2 + Block::scale_bytes);
                kg_tall_load<Block>(maps, stage, full, piece, lines, k);
            }
#pragma unroll
            for (int i = 0; i < Block::depth / 4; i++, from += 4 * pitch)
                kg_tall_copy_word(to + (place ^ i % 2 * 64) + i * 512, from, i * 4 < left);
            if constexpr (Block::stages_zeros)
#pragma unroll 1
                for (int group = warp; group < Block::groups; group += 4) {
                    const int step = (k / Block::group + group) * Block::group;
                    kg_tall_copy_word(to + Block::zeros_at + group * 128 + lane * 4,
                                      reinterpret_cast<const uint8_t *>(weights.zeros()) +
                                          weights.zero_place(item, step, column) / 2,
                                      has_column && step < job.depth());
                }
            kg_tall_arrive_later(full);
        }
    }
}

// ---- Weights that are packed first ----

// Eight elements of 4 bits from column `column` on, of which those behind the last one are 0;
// place(column) is the position of one.
template <class PLACE>
KG_INLINE uint32_t kg_tall_eight(const uint8_t *data, int64_t column, int64_t columns,
                                 const PLACE &place)
{
    const int64_t at = place(column);
    uint32_t eight = 0;
    if (column + 8 <= columns && place(column + 7) == at + 7 &&
        (uint64_t)(data + at / 2) % 4 == 0 && at % 2 == 0)
        return *reinterpret_cast<const uint32_t *>(data + at / 2);
#pragma unroll 1
    for (int i = 0; i < 8 && column + i < columns; i++) {
        const int64_t one = place(column + i);
        eight |= (uint32_t)(data[one >> 1] >> (one & 1) * 4 & 15) << i * 4;
    }
    return eight;
}

// Copies weights, and zero points of GROUP K indices each, if any, with lines of `pitch` bytes.
template <int GROUP, bool HAS_ZEROS, class JOB, class WEIGHTS>
KG_INLINE void kg_tall_pack(const JOB &job, const WEIGHTS &weights, char *to)
{
    const int64_t columns = job.columns(), pitch = (columns + 255) / 256 * 128;
    const int64_t of_weights = job.batches() * job.depth();
    const int64_t groups = HAS_ZEROS ? (job.depth() + GROUP - 1) / GROUP : 0;
    for (int64_t line = blockIdx.x; line < of_weights + job.batches() * groups; line += gridDim.x) {
        uint32_t *words = reinterpret_cast<uint32_t *>(to + line * pitch);
        const bool is_zeros = HAS_ZEROS && line >= of_weights;
        int64_t item = is_zeros ? line - of_weights : line;
        const int64_t step = kg_take(&item, is_zeros ? groups : job.depth());
        for (int64_t column = threadIdx.x * 8; column < columns; column += blockDim.x * 8) {
            if constexpr (HAS_ZEROS)
                if (is_zeros) {
                    words[column / 8] = kg_tall_eight(
                        reinterpret_cast<const uint8_t *>(weights.zeros()), column, columns,
                        [&](int64_t at) { return weights.zero_place(item, step * GROUP, at); });
                    continue;
                }
            words[column / 8] =
                kg_tall_eight(reinterpret_cast<const uint8_t *>(weights.data()), column, columns,
                              [&](int64_t at) { return weights.place(item, step, at); });
        }
    }
}
