// A product on tensor cores by mma.sync (Turing and later). A block computes tiles of rows x
// columns, in K tiles of DEPTH: several of them are being copied to shared memory while one is
// multiplied.
//
// The parts of the kernel, in the order of inclusion: contract_mma_tile.cuh has the layout of a
// tile, contract_mma_feed.cuh the copies to shared memory, contract_mma_sum.cuh the main loop,
// contract_row8.cuh the storing of eight sums. This file has the epilogue and the kernel.

// ---- The epilogue ----

// Stores 16 rows of the warp's accumulators in shared memory. Lines of PITCH floats, 8 or 24 more
// than a multiple of 32, avoid bank conflicts.
template <int PITCH, class TILE>
KG_INLINE void kg_mma_stage_sums(float *to, const kg_mma_sums<TILE> &sums, int m_tile)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int c = 0; c < TILE::n_tiles; c++) {
        float *at = to + lane / 4 * PITCH + c * 8 + lane % 4 * 2;
        *reinterpret_cast<float2 *>(at) = make_float2(sums.at[m_tile][c][0], sums.at[m_tile][c][1]);
        *reinterpret_cast<float2 *>(at + 8 * PITCH) =
            make_float2(sums.at[m_tile][c][2], sums.at[m_tile][c][3]);
    }
}

// Every warp finishes its own share of the tile, 16 rows at a time, through its own shared memory.
template <class TILE, int SPLIT, class JOB>
KG_INLINE void kg_mma_epilogue(const JOB &job, const kg_mma_sums<TILE> &sums,
                               const kg_tile_task &task, float *shared, float *scratch)
{
    constexpr int pitch = TILE::warp_columns + 8, per_row = TILE::warp_columns / 8;
    const int warp = threadIdx.x / 32;
    const int64_t first_row = task.row + warp % TILE::row_warps * TILE::warp_rows;
    const int64_t first_column = task.column + warp / TILE::row_warps * TILE::warp_columns;
    float *warp_sums = shared + warp * 16 * pitch;
#pragma unroll
    for (int m_tile = 0; m_tile < TILE::m_tiles; m_tile++) {
        kg_mma_stage_sums<pitch>(warp_sums, sums, m_tile);
        __syncwarp();
        kg_row8_epilogue<per_row, pitch, SPLIT, (TILE::tensor::terms > 1)>(
            job, warp_sums, task, first_row + m_tile * 16, first_column, 0.0f, scratch);
        __syncwarp();
    }
}

// Each block of a cluster has a split-K slice of the same tile. Every block finishes some of the
// rows, adding the slices in a fixed order.
template <class TILE, int SPLIT, class JOB>
KG_INLINE void kg_mma_epilogue_cluster(const JOB &job, const kg_mma_sums<TILE> &sums,
                                       const kg_tile_task &task, float *shared)
{
    constexpr int pitch = TILE::columns + 8, per_row = TILE::columns / 8;
    const int warp = threadIdx.x / 32;
    const int warp_row = warp % TILE::row_warps * TILE::warp_rows;
    const int warp_column = warp / TILE::row_warps * TILE::warp_columns;
#pragma unroll
    for (int m_tile = 0; m_tile < TILE::m_tiles; m_tile++)
        kg_mma_stage_sums<pitch>(shared + (warp_row + m_tile * 16) * pitch + warp_column, sums,
                                 m_tile);
    kg_cluster_meet();
#pragma unroll 1
    for (int i = task.slice * TILE::threads + threadIdx.x; i < TILE::rows * per_row;
         i += SPLIT * TILE::threads) {
        const int64_t row = task.row + i / per_row, column = task.column + i % per_row * 8;
        const int count = kg_row_count<8>(row, job.rows(), column, job.columns());
        float *from = shared + i / per_row * pitch + i % per_row * 8;
        kg_row8 sums8 = {{0, 0, 0, 0, 0, 0, 0, 0}};
#pragma unroll
        for (int slice = 0; slice < SPLIT; slice++) {
            const float4 low = kg_get_shared_of(kg_shared_address(from), slice);
            const float4 high = kg_get_shared_of(kg_shared_address(from + 4), slice);
            sums8.at[0] += low.x, sums8.at[1] += low.y, sums8.at[2] += low.z;
            sums8.at[3] += low.w, sums8.at[4] += high.x, sums8.at[5] += high.y;
            sums8.at[6] += high.z, sums8.at[7] += high.w;
        }
        if constexpr (TILE::tensor::terms > 1) {
            kg_tile_task all = task;
            all.k = 0, all.stop = job.depth();
            kg_row_recompute(job, sums8, all, row, column, count, 0.0f);
        }
        if (count > 0)
            kg_row_store(job, sums8, task.item, row, column, count);
    }
    kg_cluster_meet();
}

// ---- The kernel ----

// Any number of blocks of TILE::threads threads, in clusters of SPLIT blocks if CLUSTER. Without a
// cluster, slices store their partial sums in `scratch`: [SPLIT, batches, rows, columns].
template <class TILE, int SPLIT, bool CLUSTER, int ORDER, kg_mma_access ACCESS_A,
          kg_mma_access ACCESS_B, class JOB>
KG_INLINE void kg_contract_mma(const JOB &job, char *scratch)
{
    typedef kg_mma_feed<kg_mma_a<JOB>, TILE, TILE::rows, JOB::K_MAJOR_A, ACCESS_A> feed_a;
    typedef kg_mma_feed<kg_mma_b<JOB>, TILE, TILE::columns, JOB::K_MAJOR_B, ACCESS_B> feed_b;
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
        kg_mma_main_loop<TILE, kg_mma_readers<TILE, JOB::K_MAJOR_A, JOB::K_MAJOR_B>>(
            sums, feeds, kg_shared_address(shared));
        kg_mma_invalidate(sums, task.stop - task.k);
        if constexpr (CLUSTER && SPLIT > 1)
            kg_mma_epilogue_cluster<TILE, SPLIT>(job, sums, task, shared);
        else
            kg_mma_epilogue<TILE, SPLIT>(job, sums, task, shared,
                                         reinterpret_cast<float *>(scratch));
        __syncthreads();
    }
}
