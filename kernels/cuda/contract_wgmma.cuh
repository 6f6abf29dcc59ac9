// Products of tiles on the tensor cores of sm_90a. One thread of a block, the producer, has tiles
// of both sides copied into a ring of stages in shared memory; groups of 128 threads, the
// consumers, multiply them as they arrive and keep the sums in registers. What is done with the
// sums happens on their way out, through shared memory again, while the producer is already busy
// with the next tile.
//
// The *left* side, A of the job, lies on the rows of the instruction, 64 at a time, the *right*
// side, B, on its columns. SWAP: the job is an exchanged one, whose output's neighbours in memory
// are neighbours along its rows: few rows of a product cost less as columns of the instruction. A
// side is ALONG_K where its neighbours in memory are neighbours along K; otherwise they are
// neighbours along rows, or columns.
//
// Whoever writes the kernel brings the INSTRUCTION for the tile's columns. Sums of nothing, where K
// is 0, are not made here.

// ---- Memory of the kernel's own ----

// What a copy of a side takes whose lines begin at multiples of 128 bytes.
KG_INLINE int64_t kg_wgmma_packed(int64_t batches, int64_t lines, int64_t length)
{
    return (batches * lines * ((length + 63) / 64 * 64) * 2 + 255) / 256 * 256;
}

// There come first the sums of pieces, or the parts of tiles, so many `bytes`, if there are any,
// then the copies of A and of B.
template <class Job>
KG_INLINE char *kg_wgmma_copy_of(const Job &job, char *scratch, int pieces, int64_t bytes, int side)
{
    const int64_t outputs = pieces > 1 ? job.batches() * job.rows() * job.columns() : 0;
    const int64_t lines = Job::ALONG_A ? job.rows() : job.depth();
    const int64_t length = Job::ALONG_A ? job.depth() : job.rows();
    return scratch + bytes + (pieces * outputs * 4 + 255) / 256 * 256 +
           (side ? kg_wgmma_packed(job.batches(), lines, length) : 0);
}

// Copies a side as it lies, but for the pitch of its lines, 16 bytes a thread. Nobody looks at what
// is behind their ends.
template <int PIECES, int64_t PARTS, int SIDE, class Job>
KG_INLINE void kg_wgmma_pack(const Job &job, char *scratch)
{
    constexpr bool along = SIDE ? Job::ALONG_B : Job::ALONG_A;
    uint16_t *to = (uint16_t *)kg_wgmma_copy_of(job, scratch, PIECES, PARTS, SIDE);
    const int64_t across = SIDE ? job.columns() : job.rows();
    const int64_t lines = along ? across : job.depth(), length = along ? job.depth() : across;
    const int64_t pitch = (length + 63) / 64 * 64, count = job.batches() * lines;
    for (int64_t line = blockIdx.x; line < count; line += gridDim.x) {
        int64_t batch = line;
        const int64_t at = kg_take(&batch, lines);
        for (int64_t i = threadIdx.x * 8; i < length; i += blockDim.x * 8) {
            uint16_t piece[8];
#pragma unroll
            for (int lane = 0; lane < 8; lane++) {
                const int64_t place = i + lane < length ? i + lane : length - 1;
                const int64_t step = along ? place : at, other = along ? at : place;
                if constexpr (SIDE)
                    piece[lane] = *job.b_at(batch, step, other);
                else
                    piece[lane] = *job.a_at(batch, other, step);
            }
            *(uint4 *)&to[line * pitch + i] = make_uint4(
                piece[0] | (uint32_t)piece[1] << 16, piece[2] | (uint32_t)piece[3] << 16,
                piece[4] | (uint32_t)piece[5] << 16, piece[6] | (uint32_t)piece[7] << 16);
        }
    }
}

// Folds the sums of pieces in their order. Unless there are any that were MADE, sums are made here,
// one by one. The job is the original.
template <int PIECES, class Job>
KG_INLINE void kg_wgmma_rest(const Job &job, const char *scratch, bool made)
{
    const float *partial = (const float *)scratch;
    const int64_t outputs = job.batches() * job.rows() * job.columns();
    for (int64_t output = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; output < outputs;
         output += (int64_t)gridDim.x * blockDim.x) {
        int64_t batch = output;
        const int64_t column = kg_take(&batch, job.columns()), row = kg_take(&batch, job.rows());
        float sum = 0;
#pragma unroll 8
        for (int piece = 0; made && piece < PIECES; piece++)
            sum += partial[piece * outputs + output];
        for (int64_t k = 0; !made && k < job.depth(); k++)
            sum += job.a(batch, row, k) * job.b(batch, k, column);
        job.store(batch, row, column, job.value(batch, row, column, sum));
    }
}

// ---- The shape of a block ----

// All of it is known when the kernel is compiled. Sizes in elements of two bytes.
template <int ROWS_, int COLUMNS_, int DEPTH_, int STAGES_, int PAIR_, bool PINGPONG_, int SPLIT_,
          bool SWAP_, bool LEFT_ALONG_K_, bool RIGHT_ALONG_K_, int ORDER_, class INSTRUCTION_>
struct kg_wgmma_block {
    using INSTRUCTION = INSTRUCTION_;
    static constexpr int ROWS = ROWS_, COLUMNS = COLUMNS_, DEPTH = DEPTH_, STAGES = STAGES_;
    static constexpr int PAIR = PAIR_, SPLIT = SPLIT_ > 0 ? SPLIT_ : 1, ORDER = ORDER_;
    static constexpr bool SHARES = SPLIT_ == 0; // the steps of tiles, evenly: contract_shares.cuh
    static constexpr bool PINGPONG = PINGPONG_, SWAP = SWAP_;
    static constexpr bool LEFT_ALONG_K = LEFT_ALONG_K_, RIGHT_ALONG_K = RIGHT_ALONG_K_;

    static constexpr int CONSUMERS = ROWS == 64 && !PINGPONG ? 1 : 2;
    static constexpr int THREADS = 128 * (CONSUMERS + 1);
    static constexpr int OWN_ROWS = PINGPONG ? ROWS : ROWS / CONSUMERS; // of a consumer
    static constexpr int PARTS = OWN_ROWS / 64;                         // of its sums
    static constexpr int SUMS = COLUMNS / 2;                            // of a thread in a part
    // Registers move from the producer to the consumers where those need them.
    static constexpr bool MOVES_REGISTERS = CONSUMERS == 2 && PARTS * SUMS > 96;

    static constexpr int ATOM = 64; // elements of 128 bytes, as wide as a box is
    static constexpr int LEFT_BYTES = ROWS * DEPTH * 2, RIGHT_BYTES = COLUMNS * DEPTH * 2;
    static constexpr int STAGE_BYTES = LEFT_BYTES + RIGHT_BYTES;

    // A consumer's sums leave in pieces of so many columns of 64 rows; SWAPped, of all columns.
    static constexpr int PIECE = SWAP                ? COLUMNS
                                 : COLUMNS % 64 == 0 ? 64
                                 : COLUMNS % 32 == 0 ? 32
                                 : COLUMNS % 16 == 0 ? 16
                                                     : 8;
    static constexpr int PIECES = PARTS * (COLUMNS / PIECE);
    static constexpr int LINE_BYTES = SWAP ? 128 : PIECE * 2; // contiguous in memory
    static constexpr int BUFFERS = PIECES > 1 ? 2 : 1;
    static constexpr int BUFFER_BYTES = (64 * PIECE * 2 + 1023) / 1024 * 1024;
    static constexpr int OUT_BYTES = CONSUMERS * BUFFERS * BUFFER_BYTES;

    // Pieces of K that are the blocks of a cluster fold their sums in shared memory, where the
    // stages were.
    static constexpr bool FOLDS = SPLIT > 1 && SPLIT <= 8;
    static constexpr int FOLD_PITCH = SWAP ? ROWS + 4 : COLUMNS + 4;
    static constexpr int FOLD_BYTES = FOLDS ? (SWAP ? COLUMNS : ROWS) * FOLD_PITCH * 4 : 0;
    static constexpr int RING_BYTES =
        STAGES * STAGE_BYTES > FOLD_BYTES ? STAGES *STAGE_BYTES : FOLD_BYTES;
    static constexpr int SHARED = 1024 + RING_BYTES + OUT_BYTES + 2 * STAGES * 8;

    // Of a part of a tile: its sums, as threads hold them, and a flag of each consumer behind all.
    static constexpr int PART_BYTES = ROWS * COLUMNS * 4;
};

// Which tile comes when: groups of 8 tiles that share a side follow each other, for the L2.
template <class Block>
struct kg_wgmma_tiles {
    int rows, columns, batches; // in tiles; pairs of them along what a pair is
    int steps;                  // along K, of all pieces
    int count;                  // of work: tiles, and pieces of K of each

    KG_METHOD kg_wgmma_tiles(int64_t m, int64_t n, int64_t k, int64_t batches_)
    {
        constexpr int row_unit = Block::ROWS * (Block::PAIR == 1 ? 2 : 1);
        constexpr int column_unit = Block::COLUMNS * (Block::PAIR == 2 ? 2 : 1);
        rows = (int)((m + row_unit - 1) / row_unit);
        columns = (int)((n + column_unit - 1) / column_unit);
        batches = (int)batches_;
        steps = (int)((k + Block::DEPTH - 1) / Block::DEPTH);
        count = rows * columns * batches * Block::SPLIT;
    }
};

// One item of work: the first row and column of the tile in elements, and its steps along K.
template <class Block>
struct kg_wgmma_item {
    int row, column, batch, piece, first, steps;

    KG_METHOD kg_wgmma_item(const kg_wgmma_tiles<Block> &tiles, int index, int rank)
    {
        piece = index % Block::SPLIT;
        find_tile(tiles, index / Block::SPLIT, rank);
        const int each = (tiles.steps + Block::SPLIT - 1) / Block::SPLIT;
        first = piece * each;
        const int left = tiles.steps - first;
        steps = left < 1 ? 1 : left < each ? left : each; // beyond the end of K are zeros
    }

    // Some steps of a tile.
    KG_METHOD kg_wgmma_item(const kg_wgmma_tiles<Block> &tiles, int tile, int first_, int until,
                            int rank)
        : piece(0), first(first_), steps(until - first_)
    {
        find_tile(tiles, tile, rank);
    }

    KG_METHOD void find_tile(const kg_wgmma_tiles<Block> &tiles, int tile, int rank)
    {
        constexpr int group = 8;
        const int layer = tiles.rows * tiles.columns;
        batch = tile / layer;
        tile -= batch * layer;
        const int across = Block::ORDER == 0 ? tiles.columns : tiles.rows;
        const int along = Block::ORDER == 0 ? tiles.rows : tiles.columns;
        const int start = tile / (group * across) * group;
        const int width = along - start < group ? along - start : group;
        const int within = tile - start * across;
        const int a = start + within % width, b = within / width;
        row = Block::ORDER == 0 ? a : b;
        column = Block::ORDER == 0 ? b : a;
        row = (Block::PAIR == 1 ? row * 2 + rank : row) * Block::ROWS;
        column = (Block::PAIR == 2 ? column * 2 + rank : column) * Block::COLUMNS;
    }
};

// The items of block number `first` of `step`, one after the other.
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

// Where blocks share tiles: first what is shared, then whole tiles.
template <class Block>
struct kg_wgmma_shared_work {
    const kg_wgmma_tiles<Block> &tiles;
    kg_shares shares;
    kg_share share;
    int index, step, rank;
    bool begins = true;

    KG_METHOD kg_wgmma_shared_work(const kg_wgmma_tiles<Block> &tiles_, int first, int step_,
                                   int rank_)
        : tiles(tiles_), shares(kg_shares_make(tiles_.count, tiles_.steps, step_)),
          share(kg_share_make(&shares, tiles_.steps, first)), index(first), step(step_), rank(rank_)
    {
    }
    KG_METHOD bool is_first() const
    {
        return begins;
    }
    KG_METHOD bool is_left() const
    {
        return share.left > 0 || index < shares.first;
    }
    KG_METHOD bool is_last() const
    {
        kg_wgmma_shared_work after = *this;
        after.next();
        return !after.is_left();
    }
    KG_METHOD kg_wgmma_item<Block> item() const
    {
        const bool is_part = share.left > 0;
        return kg_wgmma_item<Block>(tiles, is_part ? shares.first + share.tile : index,
                                    is_part ? kg_share_first(&share) : 0,
                                    is_part ? share.until : tiles.steps, rank);
    }
    KG_METHOD void next()
    {
        begins = false;
        if (share.left > 0)
            kg_share_next(&share, tiles.steps);
        else
            index += step;
    }
};

template <class Block>
using kg_wgmma_items = kg_either<Block::SHARES, kg_wgmma_shared_work<Block>, kg_wgmma_work<Block>>;

// Where the ring is, in stage and phase.
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
    KG_METHOD void skip(int steps)
    {
        stage += steps;
        odd ^= stage / STAGES & 1;
        stage %= STAGES;
    }
};

// ---- The producer ----

// One side of a stage: boxes of 64 elements by as many lines as fit. Of a side that a pair shares,
// each block copies its half for both.
template <bool SHARED, bool ALONG_K, int LINES, int DEPTH>
KG_INLINE void kg_tiles_fetch(char *to, const kg_tensor_map *map, uint64_t *full, int line, int k,
                              int batch, int rank)
{
    constexpr int halves = SHARED ? 2 : 1;
    if constexpr (ALONG_K) {
        constexpr int lines = LINES / halves;
        const int from = SHARED ? rank * lines : 0;
#pragma unroll
        for (int d = 0; d < DEPTH / 64; d++)
            kg_tiles_copy<SHARED>(to + (d * LINES + from) * 128, map, full, k + d * 64, line + from,
                                  batch);
    } else {
        constexpr int boxes = LINES / 64 / halves;
        static_assert(LINES % (64 * halves) == 0, "whole boxes");
        const int from = SHARED ? rank * boxes : 0;
#pragma unroll
        for (int b = 0; b < boxes; b++)
            kg_tiles_copy<SHARED>(to + (from + b) * DEPTH * 128, map, full, line + (from + b) * 64,
                                  k, batch);
    }
}

template <class Block>
KG_INLINE void kg_wgmma_produce(const kg_wgmma_tiles<Block> &tiles, const kg_tensor_map *left,
                                const kg_tensor_map *right, char *ring, uint64_t *full,
                                uint64_t *empty, int first, int step, int rank)
{
    kg_ring_place<Block::STAGES> place;
    for (kg_wgmma_items<Block> work(tiles, first, step, rank); work.is_left(); work.next()) {
        const kg_wgmma_item<Block> item = work.item();
        for (int i = 0; i < item.steps; i++) {
            char *stage = ring + place.stage * Block::STAGE_BYTES;
            const int k = (item.first + i) * Block::DEPTH;
            kg_tiles_wait(&empty[place.stage], place.odd ^ 1);
            kg_tiles_expect(&full[place.stage], Block::STAGE_BYTES);
            kg_tiles_fetch<Block::PAIR == 2, Block::LEFT_ALONG_K, Block::ROWS, Block::DEPTH>(
                stage, left, &full[place.stage], item.row, k, item.batch, rank);
            kg_tiles_fetch<Block::PAIR == 1, Block::RIGHT_ALONG_K, Block::COLUMNS, Block::DEPTH>(
                stage + Block::LEFT_BYTES, right, &full[place.stage], item.column, k, item.batch,
                rank);
            place.next();
        }
    }
}

// ---- The consumers ----

template <class Block>
KG_INLINE void kg_wgmma_release(uint64_t *empty)
{
    const int lane = threadIdx.x % 32;
    if constexpr (Block::PAIR == 0) {
        if (lane == 0)
            kg_tiles_arrive(empty);
    } else {
        if (lane < 2)
            kg_tiles_arrive_in(empty, lane);
    }
}

// The products of one stage.
template <class Block>
KG_INLINE void kg_wgmma_multiply(float (&sums)[Block::PARTS][Block::SUMS], const char *stage,
                                 int own, bool first)
{
    constexpr int depth = Block::DEPTH;
    constexpr bool left_along = Block::LEFT_ALONG_K, right_along = Block::RIGHT_ALONG_K;
    constexpr int part_bytes = left_along ? 64 * 128 : depth * 128;
    const uint64_t left =
        kg_wgmma_tile(stage + own / 64 * part_bytes, 1024, left_along ? 16 : depth * 128);
    const uint64_t right =
        kg_wgmma_tile(stage + Block::LEFT_BYTES, 1024, right_along ? 16 : depth * 128);
    kg_wgmma_begin();
#pragma unroll
    for (int k = 0; k < depth; k += 16) {
        // 16 elements along K are 32 bytes of a row, or two atoms.
        const int left_at = left_along ? k / 64 * Block::ROWS * 128 + k % 64 * 2 : k * 128;
        const int right_at = right_along ? k / 64 * Block::COLUMNS * 128 + k % 64 * 2 : k * 128;
#pragma unroll
        for (int part = 0; part < Block::PARTS; part++)
            Block::INSTRUCTION::multiply(sums[part],
                                         kg_wgmma_behind(left, left_at + part * part_bytes),
                                         kg_wgmma_behind(right, right_at), !(first && k == 0));
    }
    kg_wgmma_commit();
}

// All products of an item. One stage's are under way while the next one's begin, and the last one's
// during `meanwhile()`. `goes_on`: to what the sums are already. `other`: the barrier where the
// other consumer waits for its turn.
template <class Block, class Meanwhile>
KG_INLINE void kg_wgmma_consume(float (&sums)[Block::PARTS][Block::SUMS], const char *ring,
                                uint64_t *full, uint64_t *empty,
                                kg_ring_place<Block::STAGES> &place, int steps, bool goes_on,
                                int own, int other, const Meanwhile &meanwhile)
{
    int before = 0, i = 0;
    if constexpr (Block::SHARES) { // apart: sums come from elsewhere, but not between products
        kg_tiles_wait(&full[place.stage], place.odd);
        kg_wgmma_multiply<Block>(sums, ring + place.stage * Block::STAGE_BYTES, own, !goes_on);
        before = place.stage;
        place.next();
        i = 1;
    }
    for (; i < steps; i++) {
        kg_tiles_wait(&full[place.stage], place.odd);
        kg_wgmma_multiply<Block>(sums, ring + place.stage * Block::STAGE_BYTES, own, i == 0);
        kg_wgmma_wait<1>();
        if (i > 0)
            kg_wgmma_release<Block>(&empty[before]);
        before = place.stage;
        place.next();
    }
    if (Block::PINGPONG)
        asm volatile("bar.arrive %0, 256;" ::"r"(other) : "memory");
    meanwhile();
    kg_wgmma_wait<0>();
    kg_wgmma_release<Block>(&empty[before]);
}

// ---- Parts of tiles ----

// The flag of a part is raised by a number that is not there by chance, whatever lies in scratch
// before, and lowered by who has waited for it: it is ready for the next launch.
KG_INLINE uint64_t kg_wgmma_raised(const uint64_t *flag)
{
    return (uint64_t)flag * 0x9e3779b97f4a7c15 ^ 0xd1b54a32d192ed03;
}

// Other units' caches do not take part: past the L1, and not earlier or later than it stands here.
KG_INLINE void kg_part_store(float4 *to, const float *from)
{
    asm volatile("st.global.cg.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)),
                 "f"(from[0]), "f"(from[1]), "f"(from[2]), "f"(from[3])
                 : "memory");
}

KG_INLINE void kg_part_load(float *to, const float4 *from)
{
    asm volatile("ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3])
                 : "l"(__cvta_generic_to_global(from))
                 : "memory");
}

// Of a block, or of one of its consumers that share a tile: where its part is, and its flag.
template <class Block>
KG_INLINE float4 *kg_wgmma_part(char *scratch, int block, int consumer)
{
    constexpr int64_t each = Block::PART_BYTES / (Block::PINGPONG ? 1 : Block::CONSUMERS);
    return (float4 *)(scratch + block * (int64_t)Block::PART_BYTES +
                      (Block::PINGPONG ? 0 : consumer * each));
}

template <class Block>
KG_INLINE uint64_t *kg_wgmma_flag(char *scratch, int block, int consumer)
{
    uint64_t *flags = (uint64_t *)(scratch + gridDim.x * (int64_t)Block::PART_BYTES);
    return &flags[Block::PINGPONG ? block : block * Block::CONSUMERS + consumer];
}

template <class Block>
KG_INLINE void kg_wgmma_leave_part(char *scratch, const float (&sums)[Block::PARTS][Block::SUMS],
                                   int consumer)
{
    const int thread = threadIdx.x % 128;
    float4 *part = kg_wgmma_part<Block>(scratch, blockIdx.x, consumer);
    uint64_t *flag = kg_wgmma_flag<Block>(scratch, blockIdx.x, consumer);
#pragma unroll
    for (int i = 0; i < Block::PARTS * Block::SUMS; i += 4)
        kg_part_store(&part[i / 4 * 128 + thread], &sums[i / Block::SUMS][i % Block::SUMS]);
    kg_tiles_meet<128>(consumer + 1);
    if (thread == 0)
        asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(flag)),
                     "l"(kg_wgmma_raised(flag))
                     : "memory");
}

// What the block before has left.
template <class Block>
KG_INLINE void kg_wgmma_take_part(char *scratch, float (&sums)[Block::PARTS][Block::SUMS],
                                  int consumer)
{
    const int thread = threadIdx.x % 128, block = blockIdx.x - 1;
    const float4 *part = kg_wgmma_part<Block>(scratch, block, consumer);
    uint64_t *flag = kg_wgmma_flag<Block>(scratch, block, consumer);
    uint64_t found = 0;
    while (thread == 0 && found != kg_wgmma_raised(flag))
        asm volatile("ld.acquire.gpu.global.u64 %0, [%1];"
                     : "=l"(found)
                     : "l"(__cvta_generic_to_global(flag))
                     : "memory");
    if (thread == 0)
        *flag = 0;
    kg_tiles_meet<128>(consumer + 1);
#pragma unroll
    for (int i = 0; i < Block::PARTS * Block::SUMS; i += 4)
        kg_part_load(&sums[i / Block::SUMS][i % Block::SUMS], &part[i / 4 * 128 + thread]);
}

// ---- What rows and columns have of their own ----

// What the lane `from` has; all lanes of the warp ask.
template <class T>
KG_INLINE T kg_of_lane(const T &own, int from)
{
    union {
        uint32_t words[(sizeof(T) + 3) / 4];
        T whole;
    } sent;
    sent.whole = own;
#pragma unroll
    for (uint32_t &word : sent.words)
        word = __shfl_sync(0xffffffff, word, from);
    return sent.whole;
}

template <class T>
struct kg_neighbours {
    T at[2];
};

// Of a consumer's tile: of the rows of this thread's sums, and of all columns, pairs of which are
// dealt to the lanes of each warp. Of sums themselves those of a piece, as it will be stored.
template <class Block, class Job>
struct kg_wgmma_own {
    using of_row = typename Job::of_row;
    using of_columns = kg_neighbours<typename Job::of_column>;
    of_row rows[Block::PARTS * 2];
    of_columns columns[(Block::COLUMNS + 63) / 64];
    uint32_t sums[Block::PIECE / 4]; // of neighbouring columns, the first one in the low half
    bool whole; // no sum is beyond the edges, and those of neighbours are read at once

    KG_METHOD static int first_row()
    {
        return threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
    }

    // Those of 16 columns of a piece, whose first row and first of these columns stand there.
    KG_METHOD void read_sums(const Job &job, int batch, int top, int start, int from)
    {
#pragma unroll
        for (int i = 0; i < 4 && from * 4 + i < Block::PIECE / 4; i++)
            sums[from * 4 + i] = *(const uint32_t *)job.sum_at(
                batch, top + first_row() + i % 2 * 8, start + i / 2 * 8 + (int)threadIdx.x % 4 * 2);
    }

    // What is beyond the edges is that of the last row or column.
    KG_METHOD void read(const Job &job, const kg_wgmma_item<Block> &item, int own)
    {
        whole = (!Job::POINTED && !Job::BY_SUM) || // what is beyond is made, but not stored
                (item.row + own + Block::OWN_ROWS <= (int)job.rows() &&
                 item.column + Block::COLUMNS <= (int)job.columns() &&
                 (!Job::BY_SUM || job.sums_in_pairs()));
        if (Job::BY_SUM && whole)
#pragma unroll
            for (int from = 0; from < (Block::PIECE + 15) / 16; from++)
                read_sums(job, item.batch, item.row + own, item.column + from * 16, from);
        const int last_row = (int)job.rows() - 1, last_column = (int)job.columns() - 1;
        if constexpr (Job::BY_ROW)
#pragma unroll
            for (int i = 0; i < Block::PARTS * 2; i++)
                rows[i] = job.at_row(
                    item.batch, min(item.row + own + first_row() + i * 32 - i % 2 * 24, last_row));
        if constexpr (Job::BY_COLUMN)
#pragma unroll
            for (int i = 0; i < (Block::COLUMNS + 63) / 64 * 2; i++)
                columns[i / 2].at[i % 2] = job.at_column(
                    item.batch,
                    min(item.column + i / 2 * 64 + (int)threadIdx.x % 32 * 2 + i % 2, last_column));
    }

    KG_METHOD static void expect(const Job &job, const kg_wgmma_item<Block> &item, int own)
    {
        constexpr int each = 8; // are read at once, where they are neighbours
        const int at = threadIdx.x % 128 * each;
        if (Job::BY_ROW && at < Block::OWN_ROWS && item.row + own + at < (int)job.rows())
            job.expect_row(item.batch, item.row + own + at);
        if (Job::BY_COLUMN && at < Block::COLUMNS && item.column + at < (int)job.columns())
            job.expect_column(item.batch, item.column + at);
        if constexpr (Job::BY_SUM) {
            constexpr int line = 32; // of 64 bytes
            constexpr int tall = Block::SWAP ? Block::OWN_ROWS / line : Block::OWN_ROWS;
            constexpr int wide = Block::SWAP ? Block::COLUMNS : (Block::COLUMNS + line - 1) / line;
#pragma unroll
            for (int i = 0; i < tall * wide; i += 128) {
                const int place = i + threadIdx.x % 128;
                const int row = place % tall * (Block::SWAP ? line : 1) + item.row + own;
                const int column = place / tall * (Block::SWAP ? 1 : line) + item.column;
                if (place < tall * wide && row < (int)job.rows() && column < (int)job.columns())
                    kg_expect(job.sum_at(item.batch, row, column));
            }
        }
    }

    // Of this thread's row of a part, and its columns of the tile's eight number `eight`.
    KG_METHOD of_row in_row(int part, int half) const
    {
        return rows[part * 2 + half];
    }
    KG_METHOD of_columns in_columns(int eight) const
    {
        if constexpr (Job::BY_COLUMN)
            return kg_of_lane(columns[eight / 8], eight % 8 * 4 + threadIdx.x % 4);
        else
            return {};
    }
};

// ---- What becomes of the sums ----

// Calls `take(row, column, sum)` for every sum of this thread, the first of a pair of neighbouring
// columns first; rows and columns count from the consumer's first.
template <class Block, class Take>
KG_INLINE void kg_wgmma_each(const float (&sums)[Block::PARTS][Block::SUMS], const Take &take)
{
    const int thread = threadIdx.x % 128, row = thread / 32 * 16 + thread % 32 / 4;
#pragma unroll
    for (int part = 0; part < Block::PARTS; part++)
#pragma unroll
        for (int i = 0; i < Block::SUMS; i++)
            take(part * 64 + row + i / 2 % 2 * 8, i / 4 * 8 + thread % 4 * 2 + i % 2,
                 sums[part][i]);
}

template <class Job>
KG_INLINE void kg_wgmma_finish(const Job &job, int batch, int row, int column, float sum)
{
    job.store(batch, row, column, job.value(batch, row, column, sum));
}

// Element by element: for outputs that are not of two bytes.
template <class Block, class Job>
KG_INLINE void kg_wgmma_store_each(const Job &job, const kg_wgmma_item<Block> &item, int own,
                                   const float (&sums)[Block::PARTS][Block::SUMS])
{
    const int rows = (int)job.rows(), columns = (int)job.columns();
    kg_wgmma_each<Block>(sums, [&](int row, int column, float sum) {
        row += item.row + own;
        column += item.column;
        if (row < rows && column < columns)
            kg_wgmma_finish(job, item.batch, row, column, sum);
    });
}

// The sums as they are, for kg_wgmma_rest.
template <class Block, class Job>
KG_INLINE void kg_wgmma_store_piece(const Job &job, float *partial,
                                    const kg_wgmma_item<Block> &item, int own,
                                    const float (&sums)[Block::PARTS][Block::SUMS])
{
    const int rows = (int)job.rows(), columns = (int)job.columns();
    float *to = partial + ((int64_t)item.piece * job.batches() + item.batch) * rows * columns;
    kg_wgmma_each<Block>(sums, [&](int row, int column, float sum) {
        row += item.row + own;
        column += item.column;
        if (row < rows && column < columns)
            to[Block::SWAP ? (int64_t)column * rows + row : (int64_t)row * columns + column] = sum;
    });
}

// A pair of neighbouring columns as it is stored. Unless the tile is WHOLE, elements beyond the
// edges are left alone.
template <class Block, bool WHOLE, class Job>
KG_INLINE uint32_t kg_wgmma_pair(const Job &job, int batch, int row, int column, float first,
                                 float second, const typename Job::of_row &in_row,
                                 const kg_neighbours<typename Job::of_column> &in_columns,
                                 uint32_t in_sums)
{
    const int rows = (int)job.rows(), columns = (int)job.columns();
    const float sums[2] = {first, second};
    uint32_t pair = 0;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        if (!WHOLE && (row >= rows || column + i >= columns))
            continue;
        uint16_t in_sum = (uint16_t)(in_sums >> i * 16);
        if constexpr (Job::BY_SUM && !WHOLE)
            in_sum = *job.sum_at(batch, row, column + i);
        const uint32_t element =
            job.value(batch, row, column + i, sums[i], in_row, in_columns.at[i], in_sum);
        pair |= element << i * 16;
    }
    return pair;
}

// Where the 16 bytes number `at` of a line are in a buffer: as a box is swizzled.
template <class Block>
KG_INLINE int kg_wgmma_place(int line, int at)
{
    constexpr int span = Block::LINE_BYTES;
    return line * span + (at ^ (line * span / 128 & (span / 16 - 1))) * 16;
}

// A piece of 64 rows, from its first row and column on, into a buffer. It is of that part of the
// consumer's tile, from column `from` of it on. The next piece begins at next_top and next_start,
// if next_top is not negative: what its sums have of their own is read on the way.
template <class Block, bool WHOLE, class Job>
KG_INLINE void kg_wgmma_fill(const Job &job, kg_wgmma_own<Block, Job> &owned, int batch, int top,
                             int start, int part, int from, int next_top, int next_start,
                             const float *sums, char *buffer)
{
    const int warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32, matrix = lane / 8;
    const int row = top + warp * 16 + lane / 4;
#pragma unroll
    for (int c = 0; c < Block::PIECE; c += 16) {
        const float *sum = sums + c / 2;
        const int column = start + c + lane % 4 * 2;
        const bool both = Block::PIECE - c >= 16; // pairs of matrices
        uint32_t pairs[4];
        if constexpr (!WHOLE)
            __syncwarp(); // else all is read at once, and held
#pragma unroll
        for (int eight = 0; eight < (both ? 2 : 1); eight++) {
            const auto in_columns = owned.in_columns((from + c) / 8 + eight);
#pragma unroll
            for (int half = 0; half < 2; half++)
                pairs[eight * 2 + half] = kg_wgmma_pair<Block, WHOLE>(
                    job, batch, row + half * 8, column + eight * 8, sum[eight * 4 + half * 2],
                    sum[eight * 4 + half * 2 + 1], owned.in_row(part, half), in_columns,
                    Job::BY_SUM ? owned.sums[c / 4 + eight * 2 + half] : 0);
        }
        if constexpr (Job::BY_SUM && WHOLE)
            if (next_top >= 0)
                owned.read_sums(job, batch, next_top, next_start + c, c / 16);
        // The line that this lane points out, and the 16 bytes of it.
        const int line =
            Block::SWAP ? c + matrix / 2 * 8 + lane % 8 : warp * 16 + matrix % 2 * 8 + lane % 8;
        const int at = Block::SWAP ? warp * 2 + matrix % 2 : c / 8 + matrix / 2;
        char *to = buffer + kg_wgmma_place<Block>(line, at);
        if (both)
            kg_matrices_store<Block::SWAP>(to, pairs);
        else
            kg_matrices_store<Block::SWAP>(to, pairs[0], pairs[1]);
    }
}

// Piece by piece through shared memory, so that neighbours are stored together: IN_LINES by the
// copy engine, else, where lines do not begin at multiples of 16 bytes, one by one.
template <class Block, class Job>
KG_INLINE void kg_wgmma_store_tile(const Job &job, const kg_wgmma_item<Block> &item, int own,
                                   const float (&sums)[Block::PARTS][Block::SUMS],
                                   kg_wgmma_own<Block, Job> &owned, char *buffers, int &turn,
                                   const kg_tensor_map *out, bool in_lines, int meeting)
{
    constexpr int across = Block::PIECES / Block::PARTS; // pieces side by side
    const int thread = threadIdx.x % 128, top = item.row + own;
#pragma unroll
    for (int piece = 0; piece < Block::PIECES; piece++) {
        const int part = piece / across, start = piece % across * Block::PIECE;
        const int row = top + part * 64, column = item.column + start;
        const float *from = &sums[part][start / 2];
        const bool last = piece + 1 == Block::PIECES;
        const int next_top = last ? -1 : top + (piece + 1) / across * 64;
        const int next_start = item.column + (piece + 1) % across * Block::PIECE;
        char *buffer = buffers + turn * Block::BUFFER_BYTES;
        turn = (turn + 1) % Block::BUFFERS;
        if (thread == 0)
            kg_tiles_stored<Block::BUFFERS - 1>();
        kg_tiles_meet<128>(meeting);
        if (owned.whole)
            kg_wgmma_fill<Block, true>(job, owned, item.batch, row, column, part, start, next_top,
                                       next_start, from, buffer);
        else if constexpr (Job::POINTED || Job::BY_SUM)
            kg_wgmma_fill<Block, false>(job, owned, item.batch, row, column, part, start, next_top,
                                        next_start, from, buffer);
        kg_tiles_written();
        kg_tiles_meet<128>(meeting);
        if (in_lines && thread == 0)
            kg_tiles_store(out, buffer, Block::SWAP ? row : column, Block::SWAP ? column : row,
                           item.batch);
        for (int i = thread; !in_lines && i < 64 * Block::PIECE; i += 128) {
            const int line = i * 2 / Block::LINE_BYTES, at = i % (Block::LINE_BYTES / 2);
            const int r = row + (Block::SWAP ? at : line), c = column + (Block::SWAP ? line : at);
            if (r < job.rows() && c < job.columns())
                job.store(item.batch, r, c,
                          ((const typename Job::out *)(buffer + kg_wgmma_place<Block>(
                                                                    line, at / 8)))[at % 8]);
        }
    }
}

// The blocks of a cluster hold sums of the same tile. Each leaves its own in shared memory and
// folds a part of everybody's, in the order of their ranks.
template <class Block, class Job>
KG_INLINE void kg_wgmma_leave(float *folded, int own,
                              const float (&sums)[Block::PARTS][Block::SUMS])
{
    kg_wgmma_each<Block>(sums, [&](int row, int column, float sum) {
        const int line = Block::SWAP ? column : own + row, at = Block::SWAP ? own + row : column;
        folded[line * Block::FOLD_PITCH + at] = sum;
    });
}

KG_INLINE float4 kg_shared_quad_in(const float *shared, uint32_t rank)
{
    float4 quad;
    asm volatile("{\n"
                 ".reg .b32 there;\n"
                 "mapa.shared::cluster.u32 there, %4, %5;\n"
                 "ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [there];\n"
                 "}"
                 : "=f"(quad.x), "=f"(quad.y), "=f"(quad.z), "=f"(quad.w)
                 : "r"(kg_shared_address(shared)), "r"(rank)
                 : "memory");
    return quad;
}

// Other blocks' memory is far away: many reads are under way at once.
template <class Block, class Job>
KG_INLINE void kg_wgmma_fold(const Job &job, const kg_wgmma_item<Block> &item, const float *folded,
                             int rank)
{
    constexpr int lines = Block::SWAP ? Block::COLUMNS : Block::ROWS;
    constexpr int quads = (Block::SWAP ? Block::ROWS : Block::COLUMNS) / 4;
    constexpr int threads = Block::CONSUMERS * 128, step = Block::SPLIT * threads;
    constexpr int turns = (lines * quads + step - 1) / step, most = 16 / Block::SPLIT;
    constexpr int batch = turns < most ? turns : most;
    const int rows = (int)job.rows(), columns = (int)job.columns();
    for (int first = rank * threads + threadIdx.x - 128; first < lines * quads;
         first += step * batch) {
        float4 parts[batch][Block::SPLIT];
#pragma unroll
        for (int b = 0; b < batch; b++) {
            const int i = first + b * step;
            const float *from = &folded[i / quads * Block::FOLD_PITCH + i % quads * 4];
#pragma unroll
            for (int r = 0; r < Block::SPLIT; r++)
                if (i < lines * quads)
                    parts[b][r] = kg_shared_quad_in(from, r);
        }
#pragma unroll
        for (int b = 0; b < batch; b++) {
            const int i = first + b * step, line = i / quads, at = i % quads * 4;
            float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll
            for (int r = 0; r < Block::SPLIT; r++) {
                sum.x += parts[b][r].x;
                sum.y += parts[b][r].y;
                sum.z += parts[b][r].z;
                sum.w += parts[b][r].w;
            }
            const float sums[4] = {sum.x, sum.y, sum.z, sum.w};
#pragma unroll
            for (int lane = 0; lane < 4; lane++) {
                const int row = item.row + (Block::SWAP ? at + lane : line);
                const int column = item.column + (Block::SWAP ? line : at + lane);
                if (i < lines * quads && row < rows && column < columns)
                    kg_wgmma_finish(job, item.batch, row, column, sums[lane]);
            }
        }
    }
}

// ---- The block ----

// Whether what follows may start at once, on units that are idle. Else it starts when all products
// are under way, and on units that have the same data at hand: those on which this ends.
template <class Block, class Job>
KG_INLINE bool kg_wgmma_leaves_room(const Job &job)
{
    uint32_t units;
    asm("mov.u32 %0, %%nsmid;" : "=r"(units));
    const bool is_short = (job.rows() + job.columns()) * job.depth() <= 2 << 20;
    if constexpr (Block::SHARES) // on all units
        return false;
    return is_short || (Block::SPLIT == 1 && Block::SHARED > 116 << 10 && gridDim.x * 2 <= units);
}

template <class Block, class Job>
KG_INLINE void kg_wgmma_consumer(const Job &job, const kg_wgmma_tiles<Block> &tiles,
                                 const kg_tensor_map *out, char *ring, char *buffers,
                                 uint64_t *full, uint64_t *empty, char *scratch, int first,
                                 int step, int rank, bool in_lines)
{
    const int consumer = kg_group_number() - 1;
    const int own = Block::PINGPONG ? 0 : consumer * Block::OWN_ROWS;
    constexpr int room = Block::OUT_BYTES / Block::CONSUMERS;
    constexpr bool in_tiles = Block::SPLIT == 1 && sizeof(typename Job::out) == 2;
    kg_ring_place<Block::STAGES> place;
    int turn = 0, buffer_turn = 0;
    for (kg_wgmma_items<Block> work(tiles, first, step, rank); work.is_left();
         work.next(), turn ^= 1) {
        const kg_wgmma_item<Block> item = work.item();
        if (Block::PINGPONG && turn != consumer) {
            place.skip(item.steps);
            continue;
        }
        float sums[Block::PARTS][Block::SUMS];
        const bool ends = !Block::SHARES || item.first + item.steps == tiles.steps;
        kg_wgmma_own<Block, Job> owned;
        if constexpr (in_tiles)
            if (ends)
                owned.expect(job, item, own);
        if constexpr (Block::SHARES)
            if (item.first > 0)
                kg_wgmma_take_part<Block>(scratch, sums, consumer);
        if (Block::PINGPONG && !work.is_first())
            kg_tiles_meet<256>(3 + consumer); // the other one has begun all its products
        kg_wgmma_consume<Block>(sums, ring, full, empty, place, item.steps, item.first > 0, own,
                                4 - consumer, [&] {
                                    if constexpr (in_tiles)
                                        if (ends)
                                            owned.read(job, item, own);
                                });
        if (work.is_last() && !kg_wgmma_leaves_room<Block>(job))
            kg_start_next();
        if constexpr (Block::SHARES) {
            if (!ends) {
                kg_wgmma_leave_part<Block>(scratch, sums, consumer);
                continue;
            }
        }
        if constexpr (Block::FOLDS) {
            kg_tiles_meet<Block::CONSUMERS * 128>(1); // nobody reads the stages any more
            kg_wgmma_leave<Block, Job>((float *)ring, own, sums);
        } else if constexpr (Block::SPLIT > 1) {
            kg_wgmma_store_piece<Block>(job, (float *)scratch, item, own, sums);
        } else if constexpr (in_tiles) {
            kg_wgmma_store_tile<Block>(job, item, own, sums, owned, buffers + consumer * room,
                                       buffer_turn, out, in_lines, consumer + 1);
        } else {
            kg_wgmma_store_each<Block>(job, item, own, sums);
        }
    }
    if (threadIdx.x % 128 == 0)
        kg_tiles_stored<0>();
}

// `out`: the map of an output that can be stored in whole lines, else one of nothing. `scratch`:
// where pieces of K leave their sums unless a cluster folds them, and parts of tiles.
template <class Block, class Job>
KG_INLINE void kg_contract_wgmma(const Job &job, const kg_tensor_map *left,
                                 const kg_tensor_map *right, const kg_tensor_map *out,
                                 char *scratch)
{
    extern __shared__ char kg_shared[];
    constexpr int cluster = Block::FOLDS ? Block::SPLIT : Block::PAIR ? 2 : 1;
    char *ring = kg_shared + (1024 - kg_shared_address(kg_shared) % 1024) % 1024;
    char *buffers = ring + Block::RING_BYTES;
    uint64_t *full = (uint64_t *)(buffers + Block::OUT_BYTES), *empty = full + Block::STAGES;
    const int rank = cluster > 1 ? (int)kg_cluster_rank() : 0;
    const int first = Block::FOLDS ? blockIdx.x : blockIdx.x / cluster;
    const int step = Block::FOLDS ? gridDim.x : gridDim.x / cluster;
    const auto count = [&] {
        return kg_wgmma_tiles<Block>((int)job.rows(), (int)job.columns(), job.depth(),
                                     job.batches());
    };
    const kg_wgmma_tiles<Block> early = count();
    // Where blocks share, registers are too few to hold it from here on.
    const auto tiles = [&] {
        if constexpr (Block::SHARES)
            return count();
        else
            return early;
    };
    if (threadIdx.x == 0) {
        constexpr int readers = Block::PINGPONG ? 1 : Block::CONSUMERS;
        for (int s = 0; s < Block::STAGES; s++) {
            kg_tiles_barrier(&full[s], 1);
            kg_tiles_barrier(&empty[s], readers * 4 * (Block::PAIR ? 2 : 1));
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    if (threadIdx.x == 32) {
        kg_tiles_expect_map(left);
        kg_tiles_expect_map(right);
    }
    if constexpr (cluster > 1)
        kg_cluster_meet();
    else
        __syncthreads();
    if (kg_wgmma_leaves_room<Block>(job))
        kg_start_next();
    kg_wait_before();
    if (threadIdx.x < 128) {
        if constexpr (Block::MOVES_REGISTERS)
            asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0)
            kg_wgmma_produce<Block>(tiles(), left, right, ring, full, empty, first, step, rank);
    } else {
        if constexpr (Block::MOVES_REGISTERS)
            asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        kg_wgmma_consumer<Block>(job, tiles(), out, ring, buffers, full, empty, scratch, first,
                                 step, rank, kg_map_is_there(*out));
    }
    if constexpr (Block::FOLDS) {
        __syncwarp();
        kg_cluster_meet();
        if (threadIdx.x >= 128) // one item a block
            kg_wgmma_fold<Block>(job, kg_wgmma_item<Block>(tiles(), first, rank), (float *)ring,
                                 rank);
    }
    if constexpr (cluster > 1) {
        __syncwarp();
        kg_cluster_meet(); // nobody leaves while others may still reach into its shared memory
    }
}
