// A sum of products on tensor cores, by the instruction that a warp issues (mma.sync; Turing and
// later). A block makes tiles of rows x columns, going through k in tiles of DEPTH: several tiles
// of both sides are on their way to shared memory while one of them is multiplied.
//
// Before this stand contract_mma_tile.cuh, what a tile is; contract_mma_feed.cuh, how it comes to
// shared memory; contract_mma_sum.cuh, how it is multiplied; and contract_eight.cuh, how eight sums
// leave. Here sums become outputs.

// ---- From sums to the output ----

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

// Every warp ends its own part of the tile, 16 rows at a time, in its own shared memory.
template <class TILE, int SPLIT, class JOB>
KG_INLINE void kg_mma_end(const JOB &job, const kg_mma_sums<TILE> &sums, const kg_tile_task &task,
                          float *shared, float *scratch)
{
    constexpr int pitch = TILE::warp_columns + 8, per_row = TILE::warp_columns / 8;
    const int warp = threadIdx.x / 32;
    const int64_t first_row = task.row + warp % TILE::row_warps * TILE::warp_rows;
    const int64_t first_column = task.column + warp / TILE::row_warps * TILE::warp_columns;
    float *own = shared + warp * 16 * pitch;
#pragma unroll
    for (int part = 0; part < TILE::row_parts; part++) {
        kg_mma_lay<pitch>(own, sums, part);
        __syncwarp();
        kg_eights_end<per_row, pitch, SPLIT, (TILE::tensor::ways > 1)>(
            job, own, task, first_row + part * 16, first_column, 0.0f, scratch);
        __syncwarp();
    }
}

// The blocks of a cluster have a piece of the same tile each: every one of them ends some of its
// rows, adding the pieces in order.
template <class TILE, int SPLIT, class JOB>
KG_INLINE void kg_mma_end_cluster(const JOB &job, const kg_mma_sums<TILE> &sums,
                                  const kg_tile_task &task, float *shared)
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
        const int count = kg_eight_within(row, job.rows(), column, job.columns());
        float *from = shared + i / per_row * pitch + i % per_row * 8;
        kg_eight eight = {{0, 0, 0, 0, 0, 0, 0, 0}};
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
            kg_tile_task all = task;
            all.k = 0, all.stop = job.depth();
            kg_eight_mend(job, eight, from, all, row, column, count, 0.0f);
        }
        if (count > 0)
            kg_eight_store(job, eight, task.item, row, column, count);
    }
    kg_cluster_meet();
}

// ---- The kernel ----

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
        const kg_tile_task task =
            kg_tile_task_of<TILE, SPLIT, CLUSTER, ORDER>(job, number, tall, wide);
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
