// Tiles of products whose sums go out eight neighbours of a row at a time, by the warp that has
// them in shared memory. Where parts of numbers were multiplied for them, those in doubt are made
// anew.

// ---- Tiles ----

// What a block does: a tile of the output of an item, or a piece of its sum.
struct kg_tile_task {
    int64_t item, row, column, k, stop;
    int piece;
};

// Task `number`, of as many as there are tiles and pieces of them, `tall` x `wide` tiles an item:
// where blocks are a CLUSTER, they have the pieces of one tile.
template <class TILE, int SPLIT, bool CLUSTER, int ORDER, class JOB>
KG_INLINE kg_tile_task kg_tile_task_of(const JOB &job, int64_t number, int64_t tall, int64_t wide)
{
    kg_tile_task task;
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

// ---- Eight sums ----

// One sum of products as it would be without tensor cores, by a whole warp: parts of numbers make
// no infinite ones.
template <class JOB>
KG_INLINE float kg_sum_plain(const JOB &job, int64_t item, int64_t row, int64_t column, int64_t k,
                             int64_t stop)
{
    float sum = 0;
#pragma unroll 4
    for (k += threadIdx.x % 32; k < stop; k += 32)
        sum = __fmaf_rn(job.a(item, row, k), job.b(item, k, column), sum);
    return kg_warp_fold<kg_fold_sum_f32>(sum);
}

// Eight sums of a row, in shared memory.
struct kg_eight {
    float at[8];
};

KG_INLINE kg_eight kg_eight_get(const float *from)
{
    kg_eight sums;
    const float4 low = reinterpret_cast<const float4 *>(from)[0];
    const float4 high = reinterpret_cast<const float4 *>(from)[1];
    sums.at[0] = low.x, sums.at[1] = low.y, sums.at[2] = low.z, sums.at[3] = low.w;
    sums.at[4] = high.x, sums.at[5] = high.y, sums.at[6] = high.z, sums.at[7] = high.w;
    return sums;
}

// Whether a sum of parts is what it should be: not so if it is less than `least`, the size that
// sums have to have, or infinite, or nearly so, or no number.
KG_INLINE bool kg_sum_is_sure(float sum, float least)
{
    constexpr float most = 1.7e38f;
    return fabsf(sum) >= least && fabsf(sum) < most;
}

// Those of them that are in doubt are made anew, of `count` that are wanted. By all lanes of a warp
// together, each with eight of its own, or with none.
template <class JOB>
KG_INLINE void kg_eight_mend(const JOB &job, kg_eight &sums, float *from, const kg_tile_task &task,
                             int64_t row, int64_t column, int count, float least)
{
    uint32_t doubts = 0;
#pragma unroll
    for (int i = 0; i < 8; i++)
        doubts |= (i < count && !kg_sum_is_sure(sums.at[i], least)) << i;
    if (!__any_sync(0xffffffff, doubts))
        return;
#pragma unroll 1
    for (uint32_t lanes; (lanes = __ballot_sync(0xffffffff, doubts)) != 0;) {
        const int lane = __ffs(lanes) - 1, at = __ffs(__shfl_sync(0xffffffff, doubts, lane)) - 1;
        const float sum =
            kg_sum_plain(job, task.item, __shfl_sync(0xffffffff, row, lane),
                         __shfl_sync(0xffffffff, column, lane) + at, task.k, task.stop);
        if ((int)threadIdx.x % 32 != lane)
            continue;
        from[at] = sum;
        doubts &= doubts - 1;
    }
    if (count > 0)
        sums = kg_eight_get(from);
}

// Whether eight elements from `to` on are the next ones of their row: columns may be those of axes
// that are not side by side in memory.
template <class JOB>
KG_INLINE bool kg_eight_has_line(const JOB &job, const typename JOB::out *to, int64_t item,
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
KG_INLINE void kg_eight_store(const JOB &job, const kg_eight &sums, int64_t item, int64_t row,
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
            kg_eight_has_line(job, to, item, row, column)) {
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
KG_INLINE void kg_eight_keep(float *to, const kg_eight &sums, int count)
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

KG_INLINE int kg_eight_within(int64_t row, int64_t rows, int64_t column, int64_t columns)
{
    const int64_t left = columns - column;
    return row >= rows || left <= 0 ? 0 : left < 8 ? (int)left : 8;
}

// 16 rows of PER_ROW eights that the warp has in lines of PITCH floats: the output's from there on,
// or, of SPLIT pieces, kg_contract_fold's in `scratch`. Where they may be in doubt, MENDS, those
// less than `least` are.
template <int PER_ROW, int PITCH, int SPLIT, bool MENDS, class JOB>
KG_INLINE void kg_eights_end(const JOB &job, float *own, const kg_tile_task &task,
                             int64_t first_row, int64_t first_column, float least, float *scratch)
{
    const int64_t rows = job.rows(), columns = job.columns();
#pragma unroll 1
    for (int i = threadIdx.x % 32; i < 16 * PER_ROW; i += 32) {
        const int64_t row = first_row + i / PER_ROW, column = first_column + i % PER_ROW * 8;
        const int count = kg_eight_within(row, rows, column, columns);
        float *from = own + i / PER_ROW * PITCH + i % PER_ROW * 8;
        kg_eight eight = kg_eight_get(from);
        if constexpr (MENDS)
            kg_eight_mend(job, eight, from, task, row, column, count, least);
        if (count == 0)
            continue;
        if constexpr (SPLIT == 1)
            kg_eight_store(job, eight, task.item, row, column, count);
        else
            kg_eight_keep(scratch +
                              ((task.piece * job.batches() + task.item) * rows + row) * columns +
                              column,
                          eight, count);
    }
}
