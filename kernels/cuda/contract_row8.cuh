// The epilogue of tiles whose accumulators are stored in runs of adjacent columns: of eight, by the
// warp that put them into shared memory, or of fewer from registers. Sums that may be inaccurate
// are computed again in f32.

// ---- Tiles ----

// The work of a block at a time: a tile, or a split-K slice of a tile.
struct kg_tile_task {
    int64_t item, row, column, k, stop;
    int slice;
};

// Task `number` of all tiles and their slices, with `tall` x `wide` tiles per batch. CLUSTER: the
// blocks of a cluster have the slices of one tile.
template <class TILE, int SPLIT, bool CLUSTER, int ORDER, class JOB>
KG_INLINE kg_tile_task kg_tile_task_of(const JOB &job, int64_t number, int64_t tall, int64_t wide)
{
    kg_tile_task task;
    int64_t rest = number;
    if constexpr (CLUSTER)
        task.slice = (int)kg_take(&rest, SPLIT);
    const int64_t tile = kg_take(&rest, tall * wide);
    if constexpr (!CLUSTER)
        task.slice = (int)kg_take(&rest, SPLIT);
    task.item = rest;
    kg_tile_place<ORDER, 8>(tile, tall, wide, &task.row, &task.column);
    task.row *= TILE::rows;
    task.column *= TILE::columns;
    kg_slice_steps<TILE::depth>(job.depth(), SPLIT, task.slice, &task.k, &task.stop);
    return task;
}

// ---- Sums of a row ----

// One sum without tensor cores, by a whole warp: no term of a number overflows here. Only arrays
// are read several steps at a time: formulas would take the registers of the rest of the kernel.
template <class JOB>
KG_INLINE float kg_sum_recompute(const JOB &job, int64_t item, int64_t row, int64_t column,
                                 int64_t k, int64_t stop)
{
    constexpr int steps = JOB::PLAIN_A && JOB::PLAIN_B ? 4 : 1;
    float sum = 0;
#pragma unroll steps
    for (k += threadIdx.x % 32; k < stop; k += 32)
        sum = __fmaf_rn(job.a(item, row, k), job.b(item, k, column), sum);
    return kg_warp_fold<kg_fold_sum_f32>(sum);
}

// Sums of adjacent columns, WIDTH of them.
template <int WIDTH>
struct kg_row_sums {
    float at[WIDTH];
};

typedef kg_row_sums<8> kg_row8;

KG_INLINE kg_row8 kg_row8_load(const float *from)
{
    kg_row8 sums;
    const float4 low = reinterpret_cast<const float4 *>(from)[0];
    const float4 high = reinterpret_cast<const float4 *>(from)[1];
    sums.at[0] = low.x, sums.at[1] = low.y, sums.at[2] = low.z, sums.at[3] = low.w;
    sums.at[4] = high.x, sums.at[5] = high.y, sums.at[6] = high.z, sums.at[7] = high.w;
    return sums;
}

// Whether a sum of products of terms can be trusted: it is at least `least`, neither NaN nor
// infinite, and not close to overflow.
KG_INLINE bool kg_sum_is_reliable(float sum, float least)
{
    constexpr float limit = 1.7e38f;
    return fabsf(sum) >= least && fabsf(sum) < limit;
}

// Recomputes the sums that cannot be trusted, among the first `count`. All lanes of the warp call
// it together; each has some sums, or none (`count` 0).
template <int WIDTH, class JOB>
KG_INLINE void kg_row_recompute(const JOB &job, kg_row_sums<WIDTH> &sums, const kg_tile_task &task,
                                int64_t row, int64_t column, int count, float least)
{
    uint32_t unreliable = 0;
#pragma unroll
    for (int i = 0; i < WIDTH; i++)
        unreliable |= (i < count && !kg_sum_is_reliable(sums.at[i], least)) << i;
    if (!__any_sync(0xffffffff, unreliable))
        return;
#pragma unroll 1
    for (uint32_t lanes; (lanes = __ballot_sync(0xffffffff, unreliable)) != 0;) {
        const int lane = __ffs(lanes) - 1,
                  at = __ffs(__shfl_sync(0xffffffff, unreliable, lane)) - 1;
        const float sum =
            kg_sum_recompute(job, task.item, __shfl_sync(0xffffffff, row, lane),
                             __shfl_sync(0xffffffff, column, lane) + at, task.k, task.stop);
        if ((int)threadIdx.x % 32 != lane)
            continue;
#pragma unroll
        for (int i = 0; i < WIDTH; i++)
            sums.at[i] = i == at ? sum : sums.at[i];
        unreliable &= unreliable - 1;
    }
}

// Whether the elements from `to` on are adjacent columns: several axes may form the columns, and
// then they need not be adjacent in memory.
template <int WIDTH, class JOB>
KG_INLINE bool kg_row_is_contiguous(const JOB &job, const typename JOB::out *to, int64_t item,
                                    int64_t row, int64_t column)
{
    bool has_line = true;
#pragma unroll
    for (int i = 1; i < WIDTH; i++)
        has_line = has_line && job.out_at(item, row, column + i) == to + i;
    return has_line;
}

// Stores all of them.
template <int WIDTH, class JOB>
KG_INLINE void kg_row_store_all(const JOB &job, const kg_row_sums<WIDTH> &sums, int64_t item,
                                int64_t row, int64_t column)
{
    typedef typename JOB::out out;
    kg_vec<out, WIDTH> elements;
#pragma unroll
    for (int i = 0; i < WIDTH; i++)
        elements.at[i] = job.value(item, row, column + i, sums.at[i]);
    out *to = job.out_at(item, row, column);
    if ((uint64_t)to % alignof(kg_vec<out, WIDTH>) == 0 &&
        kg_row_is_contiguous<WIDTH>(job, to, item, row, column)) {
        kg_store_vec<WIDTH>(to, elements);
        return;
    }
#pragma unroll
    for (int i = 0; i < WIDTH; i++)
        job.store(item, row, column + i, elements.at[i]);
}

// Stores the first `count` of them, which are within the output.
template <int WIDTH, class JOB>
KG_INLINE void kg_row_store(const JOB &job, const kg_row_sums<WIDTH> &sums, int64_t item,
                            int64_t row, int64_t column, int count)
{
    if (count == WIDTH) {
        kg_row_store_all(job, sums, item, row, column);
        return;
    }
#pragma unroll
    for (int i = 0; i < WIDTH; i++)
        if (i < count)
            job.store(item, row, column + i, job.value(item, row, column + i, sums.at[i]));
}

// Stores partial sums for kg_contract_fold.
KG_INLINE void kg_row8_store_partial(float *to, const kg_row8 &sums, int count)
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

// How many of WIDTH columns from `column` on the output has in that row.
template <int WIDTH>
KG_INLINE int kg_row_count(int64_t row, int64_t rows, int64_t column, int64_t columns)
{
    const int64_t left = columns - column;
    return row >= rows || left <= 0 ? 0 : left < WIDTH ? (int)left : WIDTH;
}

// The epilogue of 16 rows of PER_ROW runs, in the warp's lines of PITCH floats in shared memory.
// With split-K, stores partial sums in `scratch`. RECOMPUTES: recomputes sums that are less than
// `least` or not finite.
template <int PER_ROW, int PITCH, int SPLIT, bool RECOMPUTES, class JOB>
KG_INLINE void kg_row8_epilogue(const JOB &job, float *warp_sums, const kg_tile_task &task,
                                int64_t first_row, int64_t first_column, float least,
                                float *scratch)
{
    const int64_t rows = job.rows(), columns = job.columns();
#pragma unroll 1
    for (int i = threadIdx.x % 32; i < 16 * PER_ROW; i += 32) {
        const int64_t row = first_row + i / PER_ROW, column = first_column + i % PER_ROW * 8;
        const int count = kg_row_count<8>(row, rows, column, columns);
        float *from = warp_sums + i / PER_ROW * PITCH + i % PER_ROW * 8;
        kg_row8 sums8 = kg_row8_load(from);
        if constexpr (RECOMPUTES)
            kg_row_recompute(job, sums8, task, row, column, count, least);
        if (count == 0)
            continue;
        if constexpr (SPLIT == 1)
            kg_row_store(job, sums8, task.item, row, column, count);
        else
            kg_row8_store_partial(
                scratch + ((task.slice * job.batches() + task.item) * rows + row) * columns +
                    column,
                sums8, count);
    }
}
