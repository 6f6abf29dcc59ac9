// What consumers make of the sums of a tile, and the block, of which contract_wgmma.cuh has the
// shape, and how consumers multiply, and contract_wgmma_feed.cuh the producers.
//
// Sums of two bytes leave through shared memory, a piece of a tile after the other, so that the
// copy engine stores whole lines; one piece is stored while the next is worked out.

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
                                   const kg_tensor_map *out, bool in_lines, int meeting, int warp)
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
        if (warp % 4 == 0 && kg_is_elected())
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
        if (in_lines && warp % 4 == 0 && kg_is_elected())
            kg_tiles_store(out, buffer, Block::SWAP ? row : column, Block::SWAP ? column : row,
                           item.batch);
#pragma unroll 4
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

// Written even if nobody reads it, and after all that the number is made of.
KG_INLINE void kg_shared_keep(float *to, float number)
{
    asm volatile("st.volatile.shared.f32 [%0], %1;" ::"r"(kg_shared_address(to)), "f"(number)
                 : "memory");
}

// Other blocks' memory is far away: many reads are under way at once, and none of what is not
// there. Gives a number that no read is without.
template <class Block, class Job>
KG_INLINE float kg_wgmma_fold(const Job &job, const kg_wgmma_item<Block> &item, const float *folded)
{
    constexpr int lines = Block::SWAP ? Block::COLUMNS : Block::ROWS;
    constexpr int quads = (Block::SWAP ? Block::ROWS : Block::COLUMNS) / 4;
    constexpr int threads = Block::CONSUMERS * 128, step = Block::SPLIT * threads;
    constexpr int turns = (lines * quads + step - 1) / step, most = 16 / Block::SPLIT;
    constexpr int batch = turns < most ? turns : most;
    const int rows = (int)job.rows(), columns = (int)job.columns();
    const auto row_of = [&](int line, int at) { return item.row + (Block::SWAP ? at : line); };
    const auto column_of = [&](int line, int at) {
        return item.column + (Block::SWAP ? line : at);
    };
    const auto is_there = [&](int i) {
        const int line = i / quads, at = i % quads * 4;
        return i < lines * quads && row_of(line, at) < rows && column_of(line, at) < columns;
    };
    float seen = 0;
    for (int first = (int)kg_cluster_rank() * threads + threadIdx.x - 128; first < lines * quads;
         first += step * batch) {
        float4 parts[batch][Block::SPLIT];
#pragma unroll
        for (int b = 0; b < batch; b++) {
            const int i = first + b * step;
            const float *from = &folded[i / quads * Block::FOLD_PITCH + i % quads * 4];
#pragma unroll
            for (int r = 0; r < Block::SPLIT; r++)
                if (is_there(i))
                    parts[b][r] = kg_shared_quad_in(from, r);
        }
#pragma unroll
        for (int b = 0; b < batch; b++) {
            const int i = first + b * step, line = i / quads, at = i % quads * 4;
            if (!is_there(i))
                continue;
            float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll
            for (int r = 0; r < Block::SPLIT; r++) {
                sum.x += parts[b][r].x;
                sum.y += parts[b][r].y;
                sum.z += parts[b][r].z;
                sum.w += parts[b][r].w;
            }
            const float sums[4] = {sum.x, sum.y, sum.z, sum.w};
            seen += sum.x;
#pragma unroll
            for (int lane = 0; lane < 4; lane++) {
                const int row = row_of(line, at + lane), column = column_of(line, at + lane);
                if (row < rows && column < columns)
                    kg_wgmma_finish(job, item.batch, row, column, sums[lane]);
            }
        }
    }
    return seen;
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
                                 const kg_wgmma_item<Block> &begin, const kg_tensor_map *out,
                                 char *ring, char *buffers, uint64_t *full, char *scratch,
                                 int first, int step, int rank, bool in_lines, int warp)
{
    const int consumer = warp / 4 - 1;
    const int own = Block::PINGPONG ? 0 : consumer * Block::OWN_ROWS;
    constexpr int room = Block::OUT_BYTES / Block::CONSUMERS;
    constexpr bool in_tiles = Block::SPLIT == 1 && sizeof(typename Job::out) == 2;
    kg_wgmma_stage<Block> stage(ring, full, own, rank);
    int turn = 0, buffer_turn = 0;
    kg_wgmma_items<Block> work(tiles, first, step, rank);
    kg_wgmma_item<Block> item = Block::SHARES ? work.item() : begin;
    for (; work.is_left(); kg_wgmma_next(work, item), turn ^= 1) {
        if (Block::PINGPONG && turn != consumer) {
            stage.skip(item.steps);
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
        kg_wgmma_consume<Block>(sums, stage, item.steps, item.first > 0, 4 - consumer, [&] {
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
                                       buffer_turn, out, in_lines, consumer + 1, warp);
        } else {
            kg_wgmma_store_each<Block>(job, item, own, sums);
        }
    }
    if (warp % 4 == 0 && kg_is_elected())
        kg_tiles_stored<0>();
}

// `out`: the map of an output that can be stored in whole lines, else one of nothing. `scratch`:
// where pieces of K leave their sums unless a cluster folds them, and parts of tiles.
template <class Block, class Job>
KG_INLINE void kg_contract_wgmma(const Job &job, const kg_wgmma_source &left,
                                 const kg_wgmma_source &right, const kg_tensor_map *out,
                                 char *scratch)
{
    extern __shared__ __align__(1024) char kg_shared[];
    constexpr int cluster = Block::FOLDS ? Block::SPLIT : Block::DOWN * Block::ACROSS;
    constexpr bool clustered = Block::PEERS > 1;
    char *ring = kg_shared;
    char *buffers = ring + Block::RING_BYTES;
    uint64_t *full = (uint64_t *)(buffers + Block::OUT_BYTES), *empty = full + Block::STAGES;
    const int rank = clustered ? (int)kg_cluster_rank() : 0; // of those that share sides
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
    // One warp readies the ring while the others find out what is first.
    kg_wgmma_item<Block> begin(early, first);
    if (threadIdx.x / 32 != 3)
        begin.find_tile_now(early, first, rank);
    if (threadIdx.x == 96) {
        constexpr int readers = Block::PINGPONG ? 1 : Block::CONSUMERS;
        for (int s = 0; s < Block::STAGES; s++) {
            kg_tiles_barrier(&full[s], 2);
            kg_tiles_barrier(&empty[s], readers * 4 * Block::PEERS);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    if (threadIdx.x == 64) {
        kg_tiles_expect_map(left.whole);
        kg_tiles_expect_map(right.whole);
    }
    if constexpr (clustered) {
        kg_cluster_arrive_relaxed();
        kg_cluster_await();
    } else {
        __syncthreads();
    }
    if (kg_wgmma_leaves_room<Block>(job))
        kg_start_next();
    const int warp = kg_warp_number();
    if (warp < 4) {
        if constexpr (Block::MOVES_REGISTERS)
            asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (warp == 0) {
            if (kg_is_elected())
                kg_wgmma_produce<Block, false>(tiles(), begin, left, ring, full, empty, first, step,
                                               rank);
        } else if (warp == 1) {
            if (kg_is_elected())
                kg_wgmma_produce<Block, true>(tiles(), begin, right, ring, full, empty, first, step,
                                              rank);
        }
    } else {
        if constexpr (Block::MOVES_REGISTERS)
            asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        kg_wait_before();
        kg_wgmma_consumer<Block>(job, tiles(), begin, out, ring, buffers, full, scratch, first,
                                 step, rank, kg_map_is_there(*out), warp);
    }
    if constexpr (Block::FOLDS) {
        __syncwarp();
        kg_cluster_arrive_shared();
        kg_cluster_await();
        if (threadIdx.x >= 128) { // one item a block
            const float seen = kg_wgmma_fold<Block>(job, begin, (float *)ring);
            kg_shared_keep((float *)buffers + threadIdx.x - 128, seen);
        }
        __syncwarp();
        // Nobody leaves while others may still read its shared memory, were it what they have no
        // use for. A whole release would wait for that, but for what they store in memory too.
        kg_cluster_arrive_relaxed();
        kg_cluster_await();
    }
}
