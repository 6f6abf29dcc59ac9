// A sum of products on tensor cores, by the instruction that a warp issues (mma.sync; Turing and
// later). A block makes tiles of rows x columns, going through k in tiles of DEPTH: several tiles
// of both sides are on their way to shared memory while one of them is multiplied.
//
// Before this stand contract_mma_tile.cuh, what a tile is; contract_mma_feed.cuh, how it comes to
// shared memory; and contract_mma_sum.cuh, how it is multiplied. Here sums become outputs.

// ---- From sums to the output ----

// One sum of products as it would be without tensor cores: halves of numbers make no infinite ones.
template <class JOB>
KG_INLINE float kg_mma_plain(const JOB &job, int64_t item, int64_t row, int64_t column, int64_t k,
                             int64_t stop)
{
    float sum = 0;
#pragma unroll 1
    for (; k < stop; k++)
        sum = __fmaf_rn(job.a(item, row, k), job.b(item, k, column), sum);
    return sum;
}

// Eight sums of a row, in shared memory.
struct kg_mma_eight {
    float at[8];
};

KG_INLINE kg_mma_eight kg_mma_get_eight(const float *from)
{
    kg_mma_eight sums;
    const float4 low = reinterpret_cast<const float4 *>(from)[0];
    const float4 high = reinterpret_cast<const float4 *>(from)[1];
    sums.at[0] = low.x, sums.at[1] = low.y, sums.at[2] = low.z, sums.at[3] = low.w;
    sums.at[4] = high.x, sums.at[5] = high.y, sums.at[6] = high.z, sums.at[7] = high.w;
    return sums;
}

// Sums of two halves that are infinite, or nearly so, or no numbers, made anew: `count` of them are
// wanted.
template <class JOB>
KG_INLINE void kg_mma_mend(const JOB &job, kg_mma_eight &sums, float *from, int64_t item,
                           int64_t row, int64_t column, int count, int64_t k, int64_t stop)
{
    constexpr float most = 1.7e38f;
    bool finite = true;
#pragma unroll
    for (int i = 0; i < 8; i++)
        finite = finite && fabsf(sums.at[i]) < most;
    if (finite)
        return;
#pragma unroll 1
    for (int i = 0; i < count; i++)
        if (!(fabsf(from[i]) < most))
            from[i] = kg_mma_plain(job, item, row, column + i, k, stop);
    sums = kg_mma_get_eight(from);
}

// Whether eight elements from `to` on are the next ones of their row: columns may be those of axes
// that are not side by side in memory.
template <class JOB>
KG_INLINE bool kg_mma_has_line(const JOB &job, const typename JOB::out *to, int64_t item,
                               int64_t row, int64_t column)
{
    bool has_line = true;
#pragma unroll
    for (int i = 1; i < 8; i++)
        has_line = has_line && job.out_at(item, row, column + i) == to + i;
    return has_line;
}

// `count` of them, at most eight, are within the output.
template <class JOB>
KG_INLINE void kg_mma_store(const JOB &job, const kg_mma_eight &sums, int64_t item, int64_t row,
                            int64_t column, int count)
{
    typedef typename JOB::out out;
    if (count == 8) {
        kg_vec<out, 8> elements;
#pragma unroll
        for (int i = 0; i < 8; i++)
            elements.at[i] = job.value(item, row, column + i, sums.at[i]);
        out *to = job.out_at(item, row, column);
        if ((uint64_t)to % alignof(kg_vec<out, 8>) == 0 &&
            kg_mma_has_line(job, to, item, row, column)) {
            kg_store_vec<8>(to, elements);
            return;
        }
#pragma unroll
        for (int i = 0; i < 8; i++)
            job.store(item, row, column + i, elements.at[i]);
        return;
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
        if (i < count)
            job.store(item, row, column + i, job.value(item, row, column + i, sums.at[i]));
}

// One piece's sums, for kg_contract_fold.
KG_INLINE void kg_mma_keep(float *to, const kg_mma_eight &sums, int count)
{
    if (count == 8 && (uint64_t)to % 16 == 0) {
        reinterpret_cast<float4 *>(to)[0] =
            make_float4(sums.at[0], sums.at[1], sums.at[2], sums.at[3]);
        reinterpret_cast<float4 *>(to)[1] =
            make_float4(sums.at[4], sums.at[5], sums.at[6], sums.at[7]);
        return;
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
        if (i < count)
            to[i] = sums.at[i];
}

// Lays 16 rows of the warp's sums down in shared memory. Lines of PITCH floats, 8 or 24 more than a
// multiple of 32, keep four of them apart.
template <int PITCH, class TILE>
KG_INLINE void kg_mma_lay(float *to, const kg_mma_sums<TILE> &sums, int part)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int c = 0; c < TILE::column_parts; c++) {
        float *at = to + lane / 4 * PITCH + c * 8 + lane % 4 * 2;
        *reinterpret_cast<float2 *>(at) = make_float2(sums.at[part][c][0], sums.at[part][c][1]);
        *reinterpret_cast<float2 *>(at + 8 * PITCH) =
            make_float2(sums.at[part][c][2], sums.at[part][c][3]);
    }
}

KG_INLINE int kg_mma_within(int64_t row, int64_t rows, int64_t column, int64_t columns)
{
    const int64_t left = columns - column;
    return row >= rows || left <= 0 ? 0 : left < 8 ? (int)left : 8;
}

// What a block does: a tile of the output of an item, or a piece of its sum.
struct kg_mma_task {
    int64_t item, row, column, k, stop;
    int piece;
};

// Every warp ends its own part of the tile, 16 rows at a time, in its own shared memory.
template <class TILE, int SPLIT, class JOB>
KG_INLINE void kg_mma_end(const JOB &job, const kg_mma_sums<TILE> &sums, const kg_mma_task &task,
                          float *shared, float *scratch)
{
    constexpr int pitch = TILE::warp_columns + 8, per_row = TILE::warp_columns / 8;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t rows = job.rows(), columns = job.columns();
    const int64_t first_row = task.row + warp % TILE::row_warps * TILE::warp_rows;
    const int64_t first_column = task.column + warp / TILE::row_warps * TILE::warp_columns;
    float *own = shared + warp * 16 * pitch;
#pragma unroll
    for (int part = 0; part < TILE::row_parts; part++) {
        kg_mma_lay<pitch>(own, sums, part);
        __syncwarp();
#pragma unroll 1
        for (int i = lane; i < 16 * per_row; i += 32) {
            const int64_t row = first_row + part * 16 + i / per_row;
            const int64_t column = first_column + i % per_row * 8;
            const int count = kg_mma_within(row, rows, column, columns);
            if (count == 0)
                continue;
            float *from = own + i / per_row * pitch + i % per_row * 8;
            kg_mma_eight eight = kg_mma_get_eight(from);
            if constexpr (TILE::tensor::ways > 1)
                kg_mma_mend(job, eight, from, task.item, row, column, count, task.k, task.stop);
            if constexpr (SPLIT == 1)
                kg_mma_store(job, eight, task.item, row, column, count);
            else
                kg_mma_keep(scratch +
                                ((task.piece * job.batches() + task.item) * rows + row) * columns +
                                column,
                            eight, count);
        }
        __syncwarp();
    }
}

// The blocks of a cluster have a piece of the same tile each: every one of them ends some of its
// rows, adding the pieces in order.
template <class TILE, int SPLIT, class JOB>
KG_INLINE void kg_mma_end_cluster(const JOB &job, const kg_mma_sums<TILE> &sums,
                                  const kg_mma_task &task, float *shared)
{
    constexpr int pitch = TILE::columns + 8, per_row = TILE::columns / 8;
    const int warp = threadIdx.x / 32;
    const int warp_row = warp % TILE::row_warps * TILE::warp_rows;
    const int warp_column = warp / TILE::row_warps * TILE::warp_columns;
#pragma unroll
    for (int part = 0; part < TILE::row_parts; part++)
        kg_mma_lay<pitch>(shared + (warp_row + part * 16) * pitch + warp_column, sums, part);
    kg_cluster_meet();
#pragma unroll 1
    for (int i = task.piece * TILE::threads + threadIdx.x; i < TILE::rows * per_row;
         i += SPLIT * TILE::threads) {
        const int64_t row = task.row + i / per_row, column = task.column + i % per_row * 8;
        const int count = kg_mma_within(row, job.rows(), column, job.columns());
        if (count == 0)
            continue;
        float *from = shared + i / per_row * pitch + i % per_row * 8;
        kg_mma_eight eight = {{0, 0, 0, 0, 0, 0, 0, 0}};
#pragma unroll
        for (int piece = 0; piece < SPLIT; piece++) {
            const float4 low = kg_get_shared_of(kg_shared_address(from), piece);
            const float4 high = kg_get_shared_of(kg_shared_address(from + 4), piece);
            eight.at[0] += low.x, eight.at[1] += low.y, eight.at[2] += low.z;
            eight.at[3] += low.w, eight.at[4] += high.x, eight.at[5] += high.y;
            eight.at[6] += high.z, eight.at[7] += high.w;
        }
        if constexpr (TILE::tensor::ways > 1) {
#pragma unroll
            for (int j = 0; j < 8; j++)
                from[j] = eight.at[j]; // nobody else reads these any more
            kg_mma_mend(job, eight, from, task.item, row, column, count, 0, job.depth());
        }
        kg_mma_store(job, eight, task.item, row, column, count);
    }
    kg_cluster_meet();
}

// ---- The kernel ----

// Task `number`: with a cluster, its blocks have the pieces of one tile.
template <class TILE, int SPLIT, bool CLUSTER, int ORDER, class JOB>
KG_INLINE kg_mma_task kg_mma_task_of(const JOB &job, int64_t number, int64_t tall, int64_t wide)
{
    kg_mma_task task;
    int64_t rest = number;
    if constexpr (CLUSTER)
        task.piece = (int)kg_take(&rest, SPLIT);
    const int64_t tile = kg_take(&rest, tall * wide);
    if constexpr (!CLUSTER)
        task.piece = (int)kg_take(&rest, SPLIT);
    task.item = rest;
    kg_tile_place<ORDER, 8>(tile, tall, wide, &task.row, &task.column);
    task.row *= TILE::rows;
    task.column *= TILE::columns;
    kg_piece_steps<TILE::depth>(job.depth(), SPLIT, task.piece, &task.k, &task.stop);
    return task;
}

// Takes as many blocks of TILE::threads threads as there are, in clusters of SPLIT blocks where
// CLUSTER says so. Pieces that are no cluster leave their sums in `scratch`:
// [SPLIT, batches, rows, columns].
template <class TILE, int SPLIT, bool CLUSTER, int ORDER, kg_mma_access ACCESS_A,
          kg_mma_access ACCESS_B, class JOB>
KG_INLINE void kg_contract_mma(const JOB &job, char *scratch)
{
    typedef kg_mma_feed<kg_mma_a<JOB>, TILE, TILE::rows, JOB::ALONG_A, ACCESS_A> feed_a;
    typedef kg_mma_feed<kg_mma_b<JOB>, TILE, TILE::columns, JOB::ALONG_B, ACCESS_B> feed_b;
    extern __shared__ uint4 kg_mma_shared[];
    float *shared = reinterpret_cast<float *>(kg_mma_shared);
    const int64_t tall = (job.rows() + TILE::rows - 1) / TILE::rows;
    const int64_t wide = (job.columns() + TILE::columns - 1) / TILE::columns;
    const int64_t tasks = job.batches() * tall * wide * SPLIT;
#pragma unroll 1
    for (int64_t number = blockIdx.x; number < tasks; number += gridDim.x) {
        const kg_mma_task task =
            kg_mma_task_of<TILE, SPLIT, CLUSTER, ORDER>(job, number, tall, wide);
        kg_mma_feeds<TILE, feed_a, feed_b> feeds = {{{job, task.item}, task.row, task.k},
                                                    {{job, task.item}, task.column, task.k},
                                                    task.k,
                                                    task.stop};
        kg_mma_sums<TILE> sums;
        kg_mma_clear(sums);
        kg_mma_sum<TILE, kg_mma_readers<TILE, JOB::ALONG_A, JOB::ALONG_B>>(
            sums, feeds, kg_shared_address(shared));
        kg_mma_doubt(sums);
        if constexpr (CLUSTER && SPLIT > 1)
            kg_mma_end_cluster<TILE, SPLIT>(job, sums, task, shared);
        else
            kg_mma_end<TILE, SPLIT>(job, sums, task, shared, reinterpret_cast<float *>(scratch));
        __syncthreads();
    }
}
