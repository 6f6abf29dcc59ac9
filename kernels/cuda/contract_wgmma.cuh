// Products of tiles on the tensor cores of sm_90a. Two threads of a block, the producers
// (contract_wgmma_feed.cuh), have tiles of a side each copied into a ring of stages in shared
// memory; groups of 128 threads, the consumers, multiply them as they arrive and keep the sums in
// registers. What is done with the sums happens on their way out, through shared memory again
// (contract_wgmma_block.cuh), while the producers are already busy with the next tile.
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
        float sum = made ? kg_fold_pieces<PIECES>(partial + output, outputs) : 0;
        int64_t batch = output;
        const int64_t column = kg_take(&batch, job.columns()), row = kg_take(&batch, job.rows());
#pragma unroll 1 // seldom run, and a fifth of the compiler's time
        for (int64_t k = 0; !made && k < job.depth(); k++)
            sum += job.a(batch, row, k) * job.b(batch, k, column);
        job.store(batch, row, column, job.value(batch, row, column, sum));
    }
}

// ---- The shape of a block ----

// All of it is known when the kernel is compiled. Sizes in elements of two bytes.
template <int ROWS_, int COLUMNS_, int DEPTH_, int STAGES_, int DOWN_, int ACROSS_, bool PINGPONG_,
          int SPLIT_, bool SWAP_, bool LEFT_ALONG_K_, bool RIGHT_ALONG_K_, int ORDER_,
          int LEAST_PASSING_, int MOST_PASSING_, class INSTRUCTION_>
struct kg_wgmma_block {
    using INSTRUCTION = INSTRUCTION_;
    static constexpr int ROWS = ROWS_, COLUMNS = COLUMNS_, DEPTH = DEPTH_, STAGES = STAGES_;
    static constexpr int SPLIT = SPLIT_ > 0 ? SPLIT_ : 1, ORDER = ORDER_;
    static constexpr bool SHARES = SPLIT_ == 0; // the steps of tiles, evenly: contract_shares.cuh
    static constexpr bool PINGPONG = PINGPONG_, SWAP = SWAP_;
    static constexpr int LEAST_PASSING = LEAST_PASSING_, MOST_PASSING = MOST_PASSING_; // bytes
    // Blocks of a cluster, one below the other and side by side, copy for each other what they
    // share: of the left side those with the same rows, of the right side those with the same
    // columns. Each is a `peer` to so many, itself among them.
    static constexpr int DOWN = DOWN_, ACROSS = ACROSS_, PEERS = DOWN + ACROSS - 1;
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
    int rows, columns, batches; // in tiles, or those of a cluster
    int tall, wide;             // in elements
    int steps;                  // along K, of all pieces
    int count;                  // of work: tiles, and pieces of K of each

    KG_METHOD kg_wgmma_tiles(int64_t m, int64_t n, int64_t k, int64_t batches_)
    {
        constexpr int row_unit = Block::ROWS * Block::DOWN;
        constexpr int column_unit = Block::COLUMNS * Block::ACROSS;
        rows = (int)((m + row_unit - 1) / row_unit);
        columns = (int)((n + column_unit - 1) / column_unit);
        batches = (int)batches_;
        tall = (int)m;
        wide = (int)n;
        steps = (int)((k + Block::DEPTH - 1) / Block::DEPTH);
        count = rows * columns * batches * Block::SPLIT;
    }
};

// One item of work: the first row and column of the tile in elements, and its steps along K.
template <class Block>
struct kg_wgmma_item {
    int row, column, batch, piece, first, steps;

    // All but where the tile is.
    KG_METHOD kg_wgmma_item(const kg_wgmma_tiles<Block> &tiles, int index)
    {
        piece = index % Block::SPLIT;
        const int each = (tiles.steps + Block::SPLIT - 1) / Block::SPLIT;
        first = piece * each;
        const int left = tiles.steps - first;
        steps = left < 1 ? 1 : left < each ? left : each; // beyond the end of K are zeros
    }

    KG_METHOD kg_wgmma_item(const kg_wgmma_tiles<Block> &tiles, int index, int rank)
        : kg_wgmma_item(tiles, index)
    {
        find_tile(tiles, index / Block::SPLIT, rank);
    }

    // Some steps of a tile.
    KG_METHOD kg_wgmma_item(const kg_wgmma_tiles<Block> &tiles, int tile, int first_, int until,
                            int rank)
        : piece(0), first(first_), steps(until - first_)
    {
        find_tile(tiles, tile, rank);
    }

    // At once, and not where it is needed.
    KG_METHOD void find_tile_now(const kg_wgmma_tiles<Block> &tiles, int index, int rank)
    {
        find_tile(tiles, index / Block::SPLIT, rank);
        asm volatile("" : "+r"(row), "+r"(column), "+r"(batch));
    }

    KG_METHOD void find_tile(const kg_wgmma_tiles<Block> &tiles, int tile, int rank)
    {
        // Divisions take long, and nothing can be copied before them: most are not necessary.
        constexpr int group = 8;
        const int layer = tiles.rows * tiles.columns;
        batch = tiles.batches > 1 ? tile / layer : 0;
        tile -= batch * layer;
        const int across = Block::ORDER == 0 ? tiles.columns : tiles.rows;
        const int along = Block::ORDER == 0 ? tiles.rows : tiles.columns;
        const bool alone = across == 1; // in a single line of tiles
        const int start = along > group && !alone ? tile / (group * across) * group : 0;
        const int width = along - start < group ? along - start : group;
        const int within = tile - start * across;
        const bool doubles = (width & (width - 1)) == 0;
        const int b = alone ? 0 : doubles ? within >> (__ffs(width) - 1) : within / width;
        const int a = start + within - b * width;
        row = Block::ORDER == 0 ? a : b;
        column = Block::ORDER == 0 ? b : a;
        row = (row * Block::DOWN + rank / Block::ACROSS) * Block::ROWS;
        column = (column * Block::ACROSS + rank % Block::ACROSS) * Block::COLUMNS;
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

template <class Block, class Work>
KG_INLINE void kg_wgmma_next(Work &work, kg_wgmma_item<Block> &item)
{
    work.next();
    if (work.is_left())
        item = work.item();
}

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
};

// ---- The consumers ----

// Whom a lane of a consumer tells that a stage is free: first come the blocks with the same rows as
// that of `rank`, then those with the same columns but itself.
template <class Block>
KG_INLINE uint32_t kg_wgmma_peer(int rank)
{
    constexpr int across = Block::ACROSS;
    const int lane = threadIdx.x % 32, above = rank / across, other = lane - across;
    if (lane >= Block::PEERS)
        return rank;
    return lane < across ? above * across + lane
                         : (other < above ? other : other + 1) * across + rank % across;
}

// Where a consumer is in the ring. All of it goes along: what can be worked out anew from where the
// ring begins, the compiler does work out anew, at every stage before its first product.
template <class Block>
struct kg_wgmma_stage {
    static constexpr int PART_BYTES = Block::LEFT_ALONG_K ? 64 * 128 : Block::DEPTH * 128;
    static constexpr int STEP = Block::STAGE_BYTES / 16;
    uint32_t full;        // the barrier
    uint32_t left, right; // tiles
    uint32_t there;       // the barrier of the block that this thread tells what is free
    int number = 0;
    uint32_t odd = 0;

    KG_METHOD kg_wgmma_stage(const char *ring, const uint64_t *full_, int own, int rank)
        : full(kg_shared_address(full_)),
          left(kg_wgmma_tile(kg_shared_address(ring) + own / 64 * PART_BYTES,
                             Block::LEFT_ALONG_K ? 16 : Block::DEPTH * 128)),
          right(kg_wgmma_tile(kg_shared_address(ring) + Block::LEFT_BYTES,
                              Block::RIGHT_ALONG_K ? 16 : Block::DEPTH * 128)),
          there(Block::PEERS > 1 ? kg_shared_address_in(full, kg_wgmma_peer<Block>(rank)) : full)
    {
    }
    KG_METHOD uint32_t empty() const
    {
        return there + Block::STAGES * 8;
    }
    KG_METHOD void move(int stages)
    {
        number += stages;
        full += stages * 8;
        there += stages * 8;
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

// Tells all that copy to here. Of a cluster, each lane tells one.
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

// The products of one stage.
template <class Block>
KG_INLINE void kg_wgmma_multiply(float (&sums)[Block::PARTS][Block::SUMS],
                                 const kg_wgmma_stage<Block> &stage, bool first)
{
    constexpr int depth = Block::DEPTH, part_bytes = kg_wgmma_stage<Block>::PART_BYTES;
    constexpr bool left_along = Block::LEFT_ALONG_K, right_along = Block::RIGHT_ALONG_K;
    const uint64_t left = kg_wgmma_whole(stage.left), right = kg_wgmma_whole(stage.right);
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

// Compilers before that of CUDA 13 let no products overlap whose sums nothing has defined before
// the first of them. For these, sums begin at zero.
enum { KG_WGMMA_FROM_ZERO = __CUDACC_VER_MAJOR__ < 13 };

// All products of an item. One stage's are under way while the next one's begin, and the last one's
// during `meanwhile()`. `goes_on`: to what the sums are already. `other`: the barrier where the
// other consumer waits for its turn.
template <class Block, class Meanwhile>
KG_INLINE void kg_wgmma_consume(float (&sums)[Block::PARTS][Block::SUMS],
                                kg_wgmma_stage<Block> &stage, int steps, bool goes_on, int other,
                                const Meanwhile &meanwhile)
{
    uint32_t before = 0; // is empty after the next one's products
    int i = 0;
    if constexpr (KG_WGMMA_FROM_ZERO && !Block::SHARES)
#pragma unroll
        for (int sum = 0; sum < Block::PARTS * Block::SUMS; sum++)
            sums[sum / Block::SUMS][sum % Block::SUMS] = 0;
    if constexpr (Block::SHARES) { // apart: sums come from elsewhere, but not between products
        kg_tiles_wait(stage.full, stage.odd);
        kg_wgmma_multiply<Block>(sums, stage, !goes_on);
        before = stage.empty();
        stage.next();
        i = 1;
    }
#pragma unroll 1 // more would keep compilers busy for nothing
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
