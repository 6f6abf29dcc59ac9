// Tiled products on the tensor cores of sm_90a, warp-specialised. Two threads of a block, the
// producers (contract_wgmma_feed.cuh), issue TMA loads of one operand each into a ring of stages in
// shared memory. Warp groups of 128 threads, the consumers, multiply the stages and keep the
// accumulators in registers. The epilogue (contract_wgmma_block.cuh) goes through shared memory,
// while the producers already load the next tile.
//
// The *left* operand, A of the job, supplies the instruction's rows, 64 at a time; the *right*
// operand, B, its columns. SWAP: the job is transposed, so that elements adjacent in the output are
// adjacent along rows: few rows of a product cost less as columns of the instruction.
//
// The generated kernel defines INSTRUCTION for the columns of the tile. K = 0 is not handled by the
// main loop but by kg_wgmma_fold.

// ---- Scratch memory ----

// Bytes of a packed operand, whose lines are aligned to 128 bytes.
KG_INLINE int64_t kg_wgmma_packed_bytes(int64_t batches, int64_t lines, int64_t length)
{
    return (batches * lines * ((length + 63) / 64 * 64) * 2 + 255) / 256 * 256;
}

// The address of a packed operand in scratch. Before it are the partial sums of split-K or `bytes`
// of stream-K's partial tiles; A comes before B.
template <class Job>
KG_INLINE char *kg_wgmma_packed_operand(const Job &job, char *scratch, int splits, int64_t bytes,
                                        int operand)
{
    const int64_t outputs = splits > 1 ? job.batches() * job.rows() * job.columns() : 0;
    const int64_t lines = Job::K_MAJOR_A ? job.rows() : job.depth();
    const int64_t length = Job::K_MAJOR_A ? job.depth() : job.rows();
    return scratch + bytes + (splits * outputs * 4 + 255) / 256 * 256 +
           (operand ? kg_wgmma_packed_bytes(job.batches(), lines, length) : 0);
}

// The address of an operand's element: at a place of a line, which runs along K if it is K-major.
template <int OPERAND, class Job>
KG_INLINE const uint16_t *kg_wgmma_element_at(const Job &job, int64_t batch, int64_t line,
                                              int64_t place)
{
    if constexpr (OPERAND)
        return (const uint16_t *)(Job::K_MAJOR_B ? job.b_at(batch, place, line)
                                                 : job.b_at(batch, line, place));
    else
        return (const uint16_t *)(Job::K_MAJOR_A ? job.a_at(batch, line, place)
                                                 : job.a_at(batch, place, line));
}

// Eight elements of a line, or as many as it has. Elements between those of an operand can be read.
template <int OPERAND, class Job>
KG_INLINE uint4 kg_wgmma_eight(const Job &job, int64_t batch, int64_t line, int64_t place,
                               int64_t length, const uint16_t *begin, const uint16_t *end)
{
    const uint16_t *first = kg_wgmma_element_at<OPERAND>(job, batch, line, place);
    uint4 vector;
    uint16_t element[8];
    bool adjacent = true;
#pragma unroll
    for (int i = 1; i < 8; i++)
        adjacent =
            adjacent && (place + i >= length ||
                         kg_wgmma_element_at<OPERAND>(job, batch, line, place + i) == first + i);
    if (adjacent && kg_load_cut(first, begin, end, &vector))
        return vector;
#pragma unroll
    for (int i = 0; i < 8; i++)
        element[i] = *kg_wgmma_element_at<OPERAND>(job, batch, line,
                                                   place + i < length ? place + i : length - 1);
    return make_uint4(
        element[0] | (uint32_t)element[1] << 16, element[2] | (uint32_t)element[3] << 16,
        element[4] | (uint32_t)element[5] << 16, element[6] | (uint32_t)element[7] << 16);
}

// Packs an operand: copies it with a padded pitch, 16 bytes a thread. What is in the padding does
// not matter.
template <int SPLIT, int64_t PARTIAL_BYTES, int OPERAND, class Job>
KG_INLINE void kg_wgmma_pack(const Job &job, char *scratch)
{
    constexpr bool k_major = OPERAND ? Job::K_MAJOR_B : Job::K_MAJOR_A;
    uint16_t *to = (uint16_t *)kg_wgmma_packed_operand(job, scratch, SPLIT, PARTIAL_BYTES, OPERAND);
    const int64_t across = OPERAND ? job.columns() : job.rows();
    const int64_t lines = k_major ? across : job.depth(), length = k_major ? job.depth() : across;
    const int64_t pitch = (length + 63) / 64 * 64, units = (length + 7) / 8;
    const int64_t count = job.batches() * lines * units;
    const uint16_t *begin = kg_wgmma_element_at<OPERAND>(job, 0, 0, 0);
    const uint16_t *end =
        kg_wgmma_element_at<OPERAND>(job, job.batches() - 1, lines - 1, length - 1) + 1;
    for (int64_t unit = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; unit < count;
         unit += (int64_t)gridDim.x * blockDim.x) {
        int64_t line = unit;
        const int64_t place = kg_take(&line, units) * 8;
        int64_t batch = line;
        const int64_t at = kg_take(&batch, lines);
        *(uint4 *)&to[line * pitch + place] =
            kg_wgmma_eight<OPERAND>(job, batch, at, place, length, begin, end);
    }
}

// Adds the partial sums of split-K in a fixed order and runs the epilogue. Without partial sums
// computes every element itself, one by one. The job is not swapped.
template <int SPLIT, class Job>
KG_INLINE void kg_wgmma_fold(const Job &job, const char *scratch, bool has_partials)
{
    const float *partial = (const float *)scratch;
    const int64_t outputs = job.batches() * job.rows() * job.columns();
    for (int64_t output = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; output < outputs;
         output += (int64_t)gridDim.x * blockDim.x) {
        float sum = has_partials ? kg_fold_slices<SPLIT>(partial + output, outputs) : 0;
        int64_t batch = output;
        const int64_t column = kg_take(&batch, job.columns()), row = kg_take(&batch, job.rows());
#pragma unroll 1 // seldom runs; unrolled, it takes a fifth of the compile time
        for (int64_t k = 0; !has_partials && k < job.depth(); k++)
            sum += job.a(batch, row, k) * job.b(batch, k, column);
        job.store(batch, row, column, job.value(batch, row, column, sum));
    }
}

// ---- The shape of a block ----

// All of it is constant. Sizes are in 16-bit elements.
template <int ROWS_, int COLUMNS_, int DEPTH_, int STAGES_, int CLUSTER_M_, int CLUSTER_N_,
          bool PINGPONG_, int SPLIT_, bool SWAP_, int OVERLAP_, bool LEFT_K_MAJOR_,
          bool RIGHT_K_MAJOR_, int ORDER_, int MIN_STREAMED_, int MAX_STREAMED_, class INSTRUCTION_>
struct kg_wgmma_block {
    using INSTRUCTION = INSTRUCTION_;
    static constexpr int ROWS = ROWS_, COLUMNS = COLUMNS_, DEPTH = DEPTH_, STAGES = STAGES_;
    static constexpr int SPLIT = SPLIT_ > 0 ? SPLIT_ : 1, ORDER = ORDER_;
    static constexpr bool STREAM_K = SPLIT_ == 0; // see contract_stream_k.cuh
    static constexpr bool PINGPONG = PINGPONG_, SWAP = SWAP_;
    // A tile shares this many columns with the next one, so that each sector of memory is within
    // some tile, wherever lines begin: kg_wgmma_store_lines.
    static constexpr int OVERLAP = OVERLAP_, STEP = COLUMNS - OVERLAP;
    static constexpr bool BY_SECTOR = OVERLAP > 0;
    static_assert(!BY_SECTOR || (!SWAP && SPLIT == 1 && STEP >= OVERLAP), "lines along columns");
    static constexpr int MIN_STREAMED = MIN_STREAMED_, MAX_STREAMED = MAX_STREAMED_; // bytes
    // The blocks of a cluster load operands for each other by multicast: blocks with the same rows
    // share the left operand, blocks with the same columns the right one. PEERS counts the blocks
    // that a block shares with, itself included.
    static constexpr int CLUSTER_M = CLUSTER_M_, CLUSTER_N = CLUSTER_N_,
                         PEERS = CLUSTER_M + CLUSTER_N - 1;
    static constexpr bool LEFT_K_MAJOR = LEFT_K_MAJOR_, RIGHT_K_MAJOR = RIGHT_K_MAJOR_;

    static constexpr int CONSUMERS = ROWS == 64 && !PINGPONG ? 1 : 2;
    static constexpr int THREADS = 128 * (CONSUMERS + 1);
    static constexpr int CONSUMER_ROWS = PINGPONG ? ROWS : ROWS / CONSUMERS; // of a consumer
    static constexpr int M_TILES = CONSUMER_ROWS / 64; // instructions along M of a consumer
    static constexpr int SUMS = COLUMNS / 2;           // accumulators of a thread in one of these
    // Whether the producer gives registers to the consumers (setmaxnreg).
    static constexpr bool MOVES_REGISTERS = CONSUMERS == 2 && M_TILES * SUMS > 96;

    static constexpr int ATOM = 64; // elements of a swizzle atom of 128 bytes, the width of a box
    static constexpr int LEFT_BYTES = ROWS * DEPTH * 2, RIGHT_BYTES = COLUMNS * DEPTH * 2;
    static constexpr int STAGE_BYTES = LEFT_BYTES + RIGHT_BYTES;

    // The epilogue stores chunks of 64 rows by this many columns; with SWAP, of all columns.
    static constexpr int CHUNK_COLUMNS = SWAP                ? COLUMNS
                                         : COLUMNS % 64 == 0 ? 64
                                         : COLUMNS % 32 == 0 ? 32
                                         : COLUMNS % 16 == 0 ? 16
                                                             : 8;
    static constexpr int CHUNKS = M_TILES * (COLUMNS / CHUNK_COLUMNS);
    static constexpr int LINE_BYTES = SWAP ? 128 : CHUNK_COLUMNS * 2; // contiguous in memory
    // By sector, one buffer takes 64 whole lines of the tile, which are padded against bank
    // conflicts.
    static constexpr int LINE_PITCH = COLUMNS * 2 + 16;
    static constexpr int BUFFERS = CHUNKS > 1 && !BY_SECTOR ? 2 : 1;
    static constexpr int BUFFER_BYTES =
        BY_SECTOR ? 64 * LINE_PITCH : (64 * CHUNK_COLUMNS * 2 + 1023) / 1024 * 1024;
    static constexpr int OUT_BYTES = CONSUMERS * BUFFERS * BUFFER_BYTES;

    // Up to 8 K slices are the blocks of a cluster, which adds their partial sums in the shared
    // memory of the stages.
    static constexpr bool FOLDS_IN_CLUSTER = SPLIT > 1 && SPLIT <= 8;
    static constexpr int FOLD_PITCH = SWAP ? ROWS + 4 : COLUMNS + 4;
    static constexpr int FOLD_BYTES =
        FOLDS_IN_CLUSTER ? (SWAP ? COLUMNS : ROWS) * FOLD_PITCH * 4 : 0;
    static constexpr int RING_BYTES =
        STAGES * STAGE_BYTES > FOLD_BYTES ? STAGES *STAGE_BYTES : FOLD_BYTES;
    static constexpr int SHARED = 1024 + RING_BYTES + OUT_BYTES + 2 * STAGES * 8;

    // Bytes of a partial tile in scratch. A flag for each consumer follows the partial tiles.
    static constexpr int PARTIAL_TILE_BYTES = ROWS * COLUMNS * 4;
};

// The order of tiles: bands of 8 tiles that share an operand follow each other, for the L2.
template <class Block>
struct kg_wgmma_tiles {
    int rows, columns, batches; // in tiles, or clusters of them
    int tall, wide;             // in elements
    int steps;                  // stages along K, of all slices
    int count;                  // tiles times K slices

    KG_METHOD kg_wgmma_tiles(int64_t m, int64_t n, int64_t k, int64_t batches_)
    {
        constexpr int row_unit = Block::ROWS * Block::CLUSTER_M;
        constexpr int column_unit = Block::STEP * Block::CLUSTER_N;
        const int64_t stepped = n > Block::OVERLAP ? n - Block::OVERLAP : 1;
        rows = (int)((m + row_unit - 1) / row_unit);
        columns = (int)((stepped + column_unit - 1) / column_unit);
        batches = (int)batches_;
        tall = (int)m;
        wide = (int)n;
        steps = (int)((k + Block::DEPTH - 1) / Block::DEPTH);
        count = rows * columns * batches * Block::SPLIT;
    }
};

// One unit of work: a tile, by its first row and column, and its stages along K.
template <class Block>
struct kg_wgmma_item {
    int row, column, batch, slice, first, steps;

    // Sets everything but the tile's position.
    KG_METHOD kg_wgmma_item(const kg_wgmma_tiles<Block> &tiles, int index)
    {
        slice = index % Block::SPLIT;
        const int each = (tiles.steps + Block::SPLIT - 1) / Block::SPLIT;
        first = slice * each;
        const int left = tiles.steps - first;
        steps = left < 1 ? 1 : left < each ? left : each; // beyond the end of K are zeros
    }

    KG_METHOD kg_wgmma_item(const kg_wgmma_tiles<Block> &tiles, int index, int rank)
        : kg_wgmma_item(tiles, index)
    {
        find_tile(tiles, index / Block::SPLIT, rank);
    }

    // Some stages of a tile.
    KG_METHOD kg_wgmma_item(const kg_wgmma_tiles<Block> &tiles, int tile, int first_, int until,
                            int rank)
        : slice(0), first(first_), steps(until - first_)
    {
        find_tile(tiles, tile, rank);
    }

    // Computes the position here, not where it is first used.
    KG_METHOD void find_tile_now(const kg_wgmma_tiles<Block> &tiles, int index, int rank)
    {
        find_tile(tiles, index / Block::SPLIT, rank);
        asm volatile("" : "+r"(row), "+r"(column), "+r"(batch));
    }

    KG_METHOD void find_tile(const kg_wgmma_tiles<Block> &tiles, int tile, int rank)
    {
        // Divisions are slow and delay the first load; most of them can be avoided.
        constexpr int group = 8;
        const int layer = tiles.rows * tiles.columns;
        batch = tiles.batches > 1 ? tile / layer : 0;
        tile -= batch * layer;
        const int across = Block::ORDER == 0 ? tiles.columns : tiles.rows;
        const int along = Block::ORDER == 0 ? tiles.rows : tiles.columns;
        const bool alone = across == 1; // a single line of tiles
        const int start = along > group && !alone ? tile / (group * across) * group : 0;
        const int width = along - start < group ? along - start : group;
        const int within = tile - start * across;
        const bool doubles = (width & (width - 1)) == 0;
        const int b = alone ? 0 : doubles ? within >> (__ffs(width) - 1) : within / width;
        const int a = start + within - b * width;
        row = Block::ORDER == 0 ? a : b;
        column = Block::ORDER == 0 ? b : a;
        row = (row * Block::CLUSTER_M + rank / Block::CLUSTER_N) * Block::ROWS;
        column = (column * Block::CLUSTER_N + rank % Block::CLUSTER_N) * Block::STEP;
        // What the tile before has is no tile of its own.
        if (Block::BY_SECTOR && Block::CLUSTER_N > 1 && column > 0 &&
            column + Block::OVERLAP >= tiles.wide)
            column = tiles.wide;
    }
};

// The work of block `first` of `step` blocks.
template <class Block>
struct kg_wgmma_work {
    const kg_wgmma_tiles<Block> &tiles;
    int first, index, step, rank;

    KG_METHOD kg_wgmma_work(const kg_wgmma_tiles<Block> &tiles_, int first_, int step_, int rank_)
        : tiles(tiles_), first(first_), index(first_), step(step_), rank(rank_)
    {
    }
    KG_METHOD bool is_first() const
    {
        return index == first;
    }
    KG_METHOD bool is_left() const
    {
        return index < tiles.count;
    }
    KG_METHOD bool is_last() const
    {
        return index + step >= tiles.count;
    }
    KG_METHOD kg_wgmma_item<Block> item() const
    {
        return kg_wgmma_item<Block>(tiles, index, rank);
    }
    KG_METHOD void next()
    {
        index += step;
    }
};

// The work of a block with stream-K: first its range of divided tiles, then whole tiles.
template <class Block>
struct kg_wgmma_stream_k_work {
    const kg_wgmma_tiles<Block> &tiles;
    kg_stream_k stream_k;
    kg_stream_k_range range;
    int index, step, rank;
    bool is_at_start = true;

    KG_METHOD kg_wgmma_stream_k_work(const kg_wgmma_tiles<Block> &tiles_, int first, int step_,
                                     int rank_)
        : tiles(tiles_), stream_k(kg_stream_k_make(tiles_.count, tiles_.steps, step_)),
          range(kg_stream_k_range_make(&stream_k, tiles_.steps, first)), index(first), step(step_),
          rank(rank_)
    {
    }
    KG_METHOD bool is_first() const
    {
        return is_at_start;
    }
    KG_METHOD bool is_left() const
    {
        return range.left > 0 || index < stream_k.first_tile;
    }
    KG_METHOD bool is_last() const
    {
        kg_wgmma_stream_k_work after = *this;
        after.next();
        return !after.is_left();
    }
    KG_METHOD kg_wgmma_item<Block> item() const
    {
        const bool is_partial = range.left > 0;
        return kg_wgmma_item<Block>(tiles, is_partial ? stream_k.first_tile + range.tile : index,
                                    is_partial ? kg_stream_k_range_first_step(&range) : 0,
                                    is_partial ? range.until : tiles.steps, rank);
    }
    KG_METHOD void next()
    {
        is_at_start = false;
        if (range.left > 0)
            kg_stream_k_range_next(&range, tiles.steps);
        else
            index += step;
    }
};

template <class Block>
using kg_wgmma_items =
    kg_either<Block::STREAM_K, kg_wgmma_stream_k_work<Block>, kg_wgmma_work<Block>>;

template <class Block, class Work>
KG_INLINE void kg_wgmma_next(Work &work, kg_wgmma_item<Block> &item)
{
    work.next();
    if (work.is_left())
        item = work.item();
}

// A position in the ring: the stage and the parity of its phase.
template <int STAGES>
struct kg_ring_place {
    int stage = 0;
    uint32_t odd = 0;
    KG_METHOD void next()
    {
        if (++stage == STAGES) {
            stage = 0;
            odd ^= 1;
        }
    }
};

// ---- The consumers ----

// The block that a lane of a consumer notifies when a stage is free: first the blocks with the same
// rows as block `rank`, then the others with the same columns.
template <class Block>
KG_INLINE uint32_t kg_wgmma_peer(int rank)
{
    constexpr int across = Block::CLUSTER_N;
    const int lane = threadIdx.x % 32, above = rank / across, other = lane - across;
    if (lane >= Block::PEERS)
        return rank;
    return lane < across ? above * across + lane
                         : (other < above ? other : other + 1) * across + rank % across;
}

// A consumer's position in the ring. All addresses are advanced together: the compiler would
// recompute an address that can be derived from the ring's base, at every stage before its first
// product.
template <class Block>
struct kg_wgmma_stage {
    static constexpr int M_TILE_BYTES = Block::LEFT_K_MAJOR ? 64 * 128 : Block::DEPTH * 128;
    static constexpr int STEP = Block::STAGE_BYTES / 16;
    uint32_t full;        // the mbarrier of a filled stage
    uint32_t left, right; // descriptors of the operand tiles, lower halves
    uint32_t peer_full;   // `full` of the block that this thread notifies
    int number = 0;
    uint32_t odd = 0;

    KG_METHOD kg_wgmma_stage(const char *ring, const uint64_t *full_, int consumer_row, int rank)
        : full(kg_shared_address(full_)),
          left(kg_wgmma_tile(kg_shared_address(ring) + consumer_row / 64 * M_TILE_BYTES,
                             Block::LEFT_K_MAJOR ? 16 : Block::DEPTH * 128)),
          right(kg_wgmma_tile(kg_shared_address(ring) + Block::LEFT_BYTES,
                              Block::RIGHT_K_MAJOR ? 16 : Block::DEPTH * 128)),
          peer_full(Block::PEERS > 1 ? kg_shared_address_in(full, kg_wgmma_peer<Block>(rank))
                                     : full)
    {
    }
    KG_METHOD uint32_t empty() const
    {
        return peer_full + Block::STAGES * 8;
    }
    KG_METHOD void move(int stages)
    {
        number += stages;
        full += stages * 8;
        peer_full += stages * 8;
        left += stages * STEP;
        right += stages * STEP;
    }
    KG_METHOD void next()
    {
        move(1);
        if (number == Block::STAGES) {
            move(-Block::STAGES);
            odd ^= 1;
        }
    }
    KG_METHOD void skip(int steps)
    {
        const int rounds = (number + steps) / Block::STAGES;
        move(steps - rounds * Block::STAGES);
        odd ^= rounds & 1;
    }
};

// Tells all producers that load to here that the stage is free: each lane notifies one block of the
// cluster.
template <class Block>
KG_INLINE void kg_wgmma_release(uint32_t empty)
{
    if (threadIdx.x % 32 < Block::PEERS) {
        if constexpr (Block::PEERS == 1)
            kg_tiles_arrive(empty);
        else
            kg_tiles_arrive_there(empty);
    }
}

// Issues the products of one stage.
template <class Block>
KG_INLINE void kg_wgmma_multiply(float (&sums)[Block::M_TILES][Block::SUMS],
                                 const kg_wgmma_stage<Block> &stage, bool first)
{
    constexpr int depth = Block::DEPTH, m_tile_bytes = kg_wgmma_stage<Block>::M_TILE_BYTES;
    constexpr bool left_k_major = Block::LEFT_K_MAJOR, right_k_major = Block::RIGHT_K_MAJOR;
    const uint64_t left = kg_wgmma_whole(stage.left), right = kg_wgmma_whole(stage.right);
    kg_wgmma_begin();
#pragma unroll
    for (int k = 0; k < depth; k += 16) {
        // 16 elements along K are 32 bytes of a row, or two atoms.
        const int left_at = left_k_major ? k / 64 * Block::ROWS * 128 + k % 64 * 2 : k * 128;
        const int right_at = right_k_major ? k / 64 * Block::COLUMNS * 128 + k % 64 * 2 : k * 128;
#pragma unroll
        for (int m_tile = 0; m_tile < Block::M_TILES; m_tile++)
            Block::INSTRUCTION::multiply(sums[m_tile],
                                         kg_wgmma_behind(left, left_at + m_tile * m_tile_bytes),
                                         kg_wgmma_behind(right, right_at), !(first && k == 0));
    }
    kg_wgmma_commit();
}

// Compilers before CUDA 13 serialise wgmma if the accumulators are not defined before the first
// one: for these they start at zero.
enum { KG_WGMMA_FROM_ZERO = __CUDACC_VER_MAJOR__ < 13 };

// The main loop of one unit of work. The products of a stage overlap with those of the next one,
// and the last ones with `meanwhile()`. `continues`: adds to the accumulators. `other`: the named
// barrier of the other consumer's turn.
template <class Block, class Meanwhile>
KG_INLINE void kg_wgmma_consume(float (&sums)[Block::M_TILES][Block::SUMS],
                                kg_wgmma_stage<Block> &stage, int steps, bool continues, int other,
                                const Meanwhile &meanwhile)
{
    uint32_t before = 0; // the barrier of the previous stage, free after the next products
    int i = 0;
    if constexpr (KG_WGMMA_FROM_ZERO && !Block::STREAM_K)
#pragma unroll
        for (int sum = 0; sum < Block::M_TILES * Block::SUMS; sum++)
            sums[sum / Block::SUMS][sum % Block::SUMS] = 0;
    if constexpr (Block::STREAM_K) { // separate, because accumulators may have been loaded
        kg_tiles_wait(stage.full, stage.odd);
        kg_wgmma_multiply<Block>(sums, stage, !continues);
        before = stage.empty();
        stage.next();
        i = 1;
    }
#pragma unroll 1 // unrolling only costs compile time
    for (; i < steps; i++) {
        kg_tiles_wait(stage.full, stage.odd);
        kg_wgmma_multiply<Block>(sums, stage, i == 0 && !KG_WGMMA_FROM_ZERO);
        kg_wgmma_wait<1>();
        if (i > 0)
            kg_wgmma_release<Block>(before);
        before = stage.empty();
        stage.next();
    }
    if (Block::PINGPONG)
        asm volatile("bar.arrive %0, 256;" ::"r"(other) : "memory");
    meanwhile();
    kg_wgmma_wait<0>();
    kg_wgmma_release<Block>(before);
}

// ---- Partial tiles of stream-K ----

// The partial tile and the flag of a block, or of one of the consumers that share its tile.
template <class Block>
KG_INLINE float4 *kg_wgmma_partial_tile(char *scratch, int block, int consumer)
{
    constexpr int64_t each = Block::PARTIAL_TILE_BYTES / (Block::PINGPONG ? 1 : Block::CONSUMERS);
    return (float4 *)(scratch + block * (int64_t)Block::PARTIAL_TILE_BYTES +
                      (Block::PINGPONG ? 0 : consumer * each));
}

template <class Block>
KG_INLINE uint64_t *kg_wgmma_flag(char *scratch, int block, int consumer)
{
    uint64_t *flags = (uint64_t *)(scratch + gridDim.x * (int64_t)Block::PARTIAL_TILE_BYTES);
    return &flags[Block::PINGPONG ? block : block * Block::CONSUMERS + consumer];
}

template <class Block>
KG_INLINE void kg_wgmma_store_partial_tile(char *scratch,
                                           const float (&sums)[Block::M_TILES][Block::SUMS],
                                           int consumer)
{
    const int thread = threadIdx.x % 128;
    float4 *partial = kg_wgmma_partial_tile<Block>(scratch, blockIdx.x, consumer);
    uint64_t *flag = kg_wgmma_flag<Block>(scratch, blockIdx.x, consumer);
#pragma unroll
    for (int i = 0; i < Block::M_TILES * Block::SUMS; i += 4)
        kg_partial_store(&partial[i / 4 * 128 + thread], &sums[i / Block::SUMS][i % Block::SUMS]);
    kg_tiles_meet<128>(consumer + 1);
    if (thread == 0)
        kg_partial_tell(flag);
}

// Loads the partial tile of the previous block, when it is there.
template <class Block>
KG_INLINE void kg_wgmma_load_partial_tile(char *scratch, float (&sums)[Block::M_TILES][Block::SUMS],
                                          int consumer)
{
    const int thread = threadIdx.x % 128, block = blockIdx.x - 1;
    const float4 *partial = kg_wgmma_partial_tile<Block>(scratch, block, consumer);
    uint64_t *flag = kg_wgmma_flag<Block>(scratch, block, consumer);
    if (thread == 0)
        kg_partial_await(flag);
    kg_tiles_meet<128>(consumer + 1);
#pragma unroll
    for (int i = 0; i < Block::M_TILES * Block::SUMS; i += 4)
        kg_partial_load(&sums[i / Block::SUMS][i % Block::SUMS], &partial[i / 4 * 128 + thread]);
}
