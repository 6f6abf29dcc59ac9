// What becomes of the sums of a block of contract_scaled_wgmma.cuh: partial tiles, those of teams
// of consumers, and the epilogues of whole tiles and of slices.

// ---- Partial tiles ----

template <class Block>
KG_INLINE float4 *kg_tall_partial(char *scratch, int block, int consumer)
{
    return (float4 *)(scratch + block * (int64_t)Block::partial_bytes) +
           consumer * (Block::partial_bytes / 16 / Block::consumers);
}

template <class Block>
KG_INLINE uint64_t *kg_tall_flag(char *scratch, int block, int consumer)
{
    return (uint64_t *)(scratch + gridDim.x * (int64_t)Block::partial_bytes) +
           block * Block::consumers + consumer;
}

template <class Block>
KG_INLINE void kg_tall_store_partial(const kg_tall_sums<Block> &sums, char *scratch, int consumer)
{
    const int thread = threadIdx.x % 128;
    float4 *to = kg_tall_partial<Block>(scratch, blockIdx.x, consumer);
    sums.store(to + thread);
    kg_tiles_meet<128>(consumer + 2);
    if (thread == 0)
        kg_partial_tell(kg_tall_flag<Block>(scratch, blockIdx.x, consumer));
}

// Adds the partial tiles of the blocks from `first` to the one before this, in their order; loads
// several at once, as far as there are registers.
template <class Block>
KG_INLINE void kg_tall_add_partials(kg_tall_sums<Block> &sums, char *scratch, int first,
                                    int consumer)
{
    constexpr int at_once = Block::rows <= 16 ? 4 : Block::rows <= 32 ? 2 : 1;
    const int thread = threadIdx.x % 128, mine = blockIdx.x;
    for (int block = first + thread; block < mine; block += 128)
        kg_partial_await(kg_tall_flag<Block>(scratch, block, consumer));
    kg_tiles_meet<128>(consumer + 2);
#pragma unroll 1
    for (int block = first; block < mine; block += at_once) {
        kg_tall_sums<Block> loaded[at_once];
#pragma unroll
        for (int i = 0; i < at_once; i++) {
            loaded[i].clear();
            if (block + i < mine)
                loaded[i].load(kg_tall_partial<Block>(scratch, block + i, consumer) + thread);
        }
#pragma unroll
        for (int i = 0; i < at_once; i++)
            sums.add(loaded[i]);
    }
}

// The sums of both teams in the rows that this one finishes.
template <class Block>
KG_INLINE void kg_tall_add_teams(kg_tall_sums<kg_tall_share<Block>> &mine,
                                 const kg_tall_sums<Block> &sums, float4 *exchange, int team,
                                 int consumer)
{
    typedef kg_tall_share<Block> share;
    constexpr int fours = share::m_tiles * share::sums / 4, later = Block::sums - share::sums;
    constexpr int of_team = Block::halves ? Block::consumers * fours * 128 : 0;
    exchange += consumer * (fours * 128) + threadIdx.x % 128;
    kg_tall_sums<share> others; // what the other team finishes
#pragma unroll
    for (int i = 0; i < share::m_tiles * share::sums; i++) {
        const float *of_tile = &sums.at[i / share::sums][i % share::sums];
        const float first = of_tile[0], last = of_tile[later];
        mine.at[i / share::sums][i % share::sums] = team == 0 ? first : last;
        others.at[i / share::sums][i % share::sums] = team == 0 ? last : first;
    }
    if (Block::halves || team == 1)
        others.store_shared(exchange + team * of_team);
    kg_tiles_meet<256>(consumer + 10);
    if (Block::halves || team == 0)
        mine.add_shared(exchange + (1 - team) * of_team);
    kg_tiles_meet<256>(consumer + 10);
}

// ---- The epilogue, from registers ----

// Adjacent columns of a lane: the only ones, or one or the other of two runs, in row `number` of
// those that it has in the tile.
template <class Block>
KG_INLINE kg_row_sums<Block::adjacent> kg_tall_row(const kg_tall_sums<Block> &sums, int number,
                                                   int run)
{
    const int at = number / 2 * 4 + number % 2;
    if constexpr (Block::panels)
        return {{sums.at[run][at], sums.at[run][at + 2]}};
    else
        return {{sums.at[0][at], sums.at[0][at + 2], sums.at[1][at], sums.at[1][at + 2]}};
}

// Finishes rows with sums that are not finite, which are computed again: scales may be infinite. A
// function of its own, so that its code does not lie between the last product and the store.
template <class Block, class JOB>
__device__ __noinline__ void kg_tall_finish_again(const JOB job,
                                                  const kg_row_sums<Block::adjacent> *rows,
                                                  const kg_tile_task task, int64_t first_column)
{
    constexpr int width = Block::adjacent, runs = Block::of_lane / width;
    const int64_t first = task.row + threadIdx.x % 4 * 2;
#pragma unroll 1
    for (int i = 0; i < Block::rows / 4 * runs; i++) {
        const int64_t row = first + i / runs / 2 * 8 + i / runs % 2;
        const int64_t column = first_column + i % runs * Block::apart;
        const int count = kg_row_count<width>(row, job.rows(), column, job.columns());
        kg_row_sums<width> sums = rows[i];
        kg_row_recompute(job, sums, task, row, column, count, 0.0f);
        kg_row_store(job, sums, task.item, row, column, count);
    }
}

// The same of all that a lane has.
template <class Block, class JOB>
KG_INLINE void kg_tall_finish_all_again(const JOB &job, const kg_tall_sums<Block> &sums,
                                        const kg_tile_task &task, int64_t column)
{
    constexpr int width = Block::adjacent, runs = Block::of_lane / width;
    kg_row_sums<width> rows[Block::rows / 4 * runs]; // in local memory
#pragma unroll
    for (int i = 0; i < Block::rows / 4 * runs; i++)
        rows[i] = kg_tall_row<Block>(sums, i / runs, i % runs);
    kg_tall_finish_again<Block>(job, rows, task, column);
}

// The absolute values of a lane's sums, added up: of ALL rows of a tile, or of the first `there`
// from the lane's first one on. Nothing is known of sums behind the last row, which are not loaded.
template <class Block, bool ALL>
KG_INLINE float kg_tall_total(const kg_tall_sums<Block> &sums, int there)
{
    constexpr int chains = 4; // that do not wait for each other
    float total[chains] = {0};
#pragma unroll
    for (int i = 0; i < Block::m_tiles * Block::sums; i++) {
        const int of_tile = i % Block::sums, row = of_tile / 4 * 8 + of_tile % 2;
        const float sum = fabsf(sums.at[i / Block::sums][of_tile]);
        total[i % chains] += ALL || row < there ? sum : 0;
    }
    return total[0] + total[1] + (total[2] + total[3]);
}

// Whether all of a lane's sums are finite, and so small that their total is: an addition for each
// is the cheapest check.
template <class Block>
KG_INLINE bool kg_tall_is_finite(const kg_tall_sums<Block> &sums, int there)
{
    constexpr int last = Block::rows - 7; // of a lane, at most
    const float total = there > last ? kg_tall_total<Block, true>(sums, there)
                                     : kg_tall_total<Block, false>(sums, there);
    return kg_sum_is_reliable(total, 0.0f);
}

// The rows of a tile from the lane's first one on.
template <class Block, class JOB>
KG_INLINE int kg_tall_rows_there(const JOB &job, int64_t first)
{
    return (int)kg_min_i64(job.rows() - first, Block::rows);
}

// Where the output has a run of adjacent columns, from a row on: if all of its rows are aligned
// vectors with one stride, few instructions find them.
template <int WIDTH, class JOB>
struct kg_tall_vectors {
    typedef typename JOB::out out;
    out *to;
    int64_t down; // from a row to the next
    bool are_there;
    KG_METHOD kg_tall_vectors(const JOB &job, int64_t item, int64_t row, int64_t column)
        : to(job.out_at(item, row, column)), down(job.out_at(item, row + 1, column) - to)
    {
        are_there = JOB::HAS_STRIDES_OUT && job.out_at(item, row, column + 1) == to + 1 &&
                    ((uint64_t)to | down * sizeof(out)) % alignof(kg_vec<out, WIDTH>) == 0;
    }
    KG_INLINE void store(out *place, const JOB &job, const kg_row_sums<WIDTH> &sums, int64_t item,
                         int64_t row, int64_t column)
    {
        kg_vec<out, WIDTH> elements;
#pragma unroll
        for (int i = 0; i < WIDTH; i++)
            elements.at[i] = job.value(item, row, column + i, sums.at[i]);
        kg_store_vec<WIDTH>(place, elements);
    }
};

// Stores a run of a lane's columns in the rows that are there.
template <class Block, class JOB>
KG_INLINE void kg_tall_store_run(const JOB &job, const kg_tall_sums<Block> &sums, int run,
                                 int64_t item, int64_t row, int64_t column, int there)
{
    typedef kg_tall_vectors<Block::adjacent, JOB> vectors_type;
    const vectors_type vectors(job, item, row, column);
    typename vectors_type::out *at[2] = {vectors.to, vectors.to + vectors.down};
#pragma unroll
    for (int i = 0; i < Block::rows / 4 && vectors.are_there; i++) {
        const int further = i / 2 * 8 + i % 2;
        if (further < there)
            vectors.store(at[i % 2], job, kg_tall_row<Block>(sums, i, run), item, row + further,
                          column);
        at[i % 2] += 8 * vectors.down;
        asm volatile("" : "+l"(at[i % 2])); // compilers would multiply for each row
        __builtin_assume(__isGlobal(at[i % 2]));
    }
#pragma unroll
    for (int i = 0; i < Block::rows / 4 && !vectors.are_there; i++)
        if (i / 2 * 8 + i % 2 < there)
            kg_row_store_all(job, kg_tall_row<Block>(sums, i, run), item, row + i / 2 * 8 + i % 2,
                             column);
}

// Finishes a tile.
template <class Block, class JOB>
KG_INLINE void kg_tall_finish(const JOB &job, const kg_tall_sums<Block> &sums,
                              const kg_tile_task &task, int64_t column)
{
    constexpr int width = Block::adjacent, runs = Block::of_lane / width;
    const int64_t first = task.row + threadIdx.x % 4 * 2, left = job.columns() - column;
    const int there = kg_tall_rows_there<Block>(job, first);
    bool is_plain = true;
#pragma unroll
    for (int run = 0; run < runs; run++)
        is_plain = is_plain && (left >= run * Block::apart + width || left <= run * Block::apart);
    if (__all_sync(0xffffffff, is_plain && kg_tall_is_finite<Block>(sums, there))) {
#pragma unroll
        for (int run = 0; run < runs; run++)
            if (left > run * Block::apart)
                kg_tall_store_run(job, sums, run, task.item, first, column + run * Block::apart,
                                  there);
        return;
    }
    kg_tall_finish_all_again<Block>(job, sums, task, column);
}

// ---- The epilogue, through shared memory ----

// The consumer's part of the buffer: boxes of 64 columns with lines of 128 bytes, in which chunks
// of 16 bytes are swizzled, so that neither these stores nor TMA's reads meet in a bank. Rows and
// columns that the output does not have get values of others, and TMA does not store them.
template <class Block, class JOB>
KG_INLINE void kg_tall_fill(const JOB &job, const kg_tall_sums<Block> &sums,
                            const kg_tile_task &task, int64_t column, int place, char *buffer)
{
    typedef typename JOB::out out;
    constexpr int width = Block::adjacent, runs = Block::of_lane / width;
    static_assert(sizeof(out) == 2, "TMA stores lines of 64 columns");
    const int64_t first = task.row + threadIdx.x % 4 * 2;
#pragma unroll
    for (int i = 0; i < Block::rows / 4; i++) {
        const int line = i / 2 * 8 + i % 2 + threadIdx.x % 4 * 2;
        const int64_t row = kg_min_i64(first + i / 2 * 8 + i % 2, job.rows() - 1);
#pragma unroll
        for (int run = 0; run < runs; run++) {
            const int at = place + run * Block::apart;
            const int64_t from = kg_min_i64(column + run * Block::apart, job.columns() - width);
            const kg_row_sums<width> mine = kg_tall_row<Block>(sums, i, run);
            kg_vec<out, width> elements;
#pragma unroll
            for (int j = 0; j < width; j++)
                elements.at[j] = job.value(task.item, row, from + j, mine.at[j]);
            char *to = buffer + at / 64 * (Block::rows * 128) + line * 128 +
                       (at % 64 / 8 ^ line % 8) * 16 + at % 8 * 2;
            *reinterpret_cast<kg_vec<out, width> *>(to) = elements;
        }
    }
}

// Finishes a tile. `place`: the lane's first column among the consumer's.
template <class Block, class JOB>
KG_INLINE void kg_tall_finish_buffered(const JOB &job, const kg_tall_sums<Block> &sums,
                                       const kg_tile_task &task, int64_t column, int place,
                                       int consumer, char *buffer, const kg_tensor_map *out)
{
    constexpr int columns = Block::columns / Block::consumers;
    const int there = kg_tall_rows_there<Block>(job, task.row + threadIdx.x % 4 * 2);
    buffer += consumer * (Block::buffer_bytes / Block::consumers);
    kg_tiles_stored<0>(); // of the tile before, by the thread that issued it
    const bool is_finite = kg_tiles_agree<128>(consumer + 2, kg_tall_is_finite<Block>(sums, there));
    if (!__all_sync(0xffffffff, is_finite)) {
        kg_tall_finish_all_again<Block>(job, sums, task, column);
        return;
    }
    kg_tall_fill<Block>(job, sums, task, column, place, buffer);
    kg_tiles_written();
    kg_tiles_meet<128>(consumer + 2);
    const bool issues = kg_warp_number() % 4 == 0 && kg_is_elected();
#pragma unroll
    for (int box = 0; box < columns / 64; box++)
        kg_tiles_store_where(issues, out, buffer + box * (Block::rows * 128),
                             (int)task.column + consumer * columns + box * 64, (int)task.row,
                             (int)task.item);
}

// ---- The epilogue of slices ----

// Eight rows of a tile, of which a lane has two, in the columns of one instruction or, where these
// are no run of their own, of both.
template <class Block>
struct kg_tall_part {
    static constexpr int tiles = Block::panels ? 1 : Block::m_tiles;       // instructions of a part
    static constexpr int all = Block::rows / 8 * (Block::m_tiles / tiles); // parts of a tile
    int line, tile; // the first of its rows, of its instructions
    KG_METHOD explicit kg_tall_part(int number)
        : line(number / (Block::m_tiles / tiles) * 8), tile(number % (Block::m_tiles / tiles))
    {
    }
    // The lane's row 0 or 1, and its first column from `column`, the lane's first of the tile, on.
    KG_METHOD int64_t row(const kg_tile_task &task, int which) const
    {
        return task.row + line + threadIdx.x % 4 * 2 + which;
    }
    KG_METHOD int64_t column(int64_t column) const
    {
        return column + tile * Block::apart;
    }
    // What a partial tile has of it, if it loads; the lane's first sums are at from[first].
    KG_METHOD void load_where(bool loads, float (&to)[tiles][4], const float4 *from,
                              int first) const
    {
#pragma unroll
        for (int i = 0; i < tiles; i++)
            kg_partial_load_where(
                loads, to[i], from + (first + ((tile + i) * (Block::sums / 4) + line / 8) * 128));
    }
    KG_METHOD static void load_kept(float (&to)[tiles][4], const float4 *kept)
    {
#pragma unroll
        for (int i = 0; i < tiles; i++) {
            const float4 four = kept[i * 128];
            to[i][0] = four.x, to[i][1] = four.y, to[i][2] = four.z, to[i][3] = four.w;
        }
    }
    KG_METHOD static kg_row_sums<Block::adjacent> sums(const float (&of)[tiles][4], int which)
    {
        kg_row_sums<Block::adjacent> sums;
#pragma unroll
        for (int i = 0; i < Block::adjacent; i++)
            sums.at[i] = of[i / 2][which + i % 2 * 2];
        return sums;
    }
};

// Finishes rows of parts, `stride` parts apart, that have sums that are not finite: they are
// computed again.
template <class Block, class JOB>
__device__ __noinline__ void
kg_tall_finish_parts_again(const JOB job, const kg_row_sums<Block::adjacent> *rows,
                           const kg_tile_task task, int64_t first_column, int number, int stride,
                           int count)
{
    constexpr int width = Block::adjacent;
#pragma unroll 1
    for (int i = 0; i < 2 * count; i++) {
        const kg_tall_part<Block> part(number + i / 2 * stride);
        const int64_t row = part.row(task, i % 2), column = part.column(first_column);
        const int there = kg_row_count<width>(row, job.rows(), column, job.columns());
        kg_row_sums<width> sums = rows[i];
        kg_row_recompute(job, sums, task, row, column, there, 0.0f);
        kg_row_store(job, sums, task.item, row, column, there);
    }
}

// Every `slices`-th part of a tile, from `mine` on: the sums of all slices, whose partial tiles
// begin at that of block `first`; those of this block, which come first, are `kept` in shared
// memory. As many are loaded at once as there are registers for.
template <class Block, class JOB>
KG_INLINE void kg_tall_finish_parts(const JOB &job, const kg_tile_task &task, int64_t column,
                                    char *scratch, const float4 *kept, int first, int slices,
                                    int mine, int consumer)
{
    typedef kg_tall_part<Block> part;
    constexpr int width = Block::adjacent, loads = 16;
    constexpr int fit = loads / (Block::slices * part::tiles), at_once = fit > 1 ? fit : 1;
    const float4 *from = kg_tall_partial<Block>(scratch, first, consumer) + threadIdx.x % 128;
    const kg_tall_vectors<width, JOB> vectors(job, task.item, task.row + threadIdx.x % 4 * 2,
                                              column);
    int others[Block::slices]; // where the partial tiles of the slices behind this one are
#pragma unroll
    for (int i = 1; i < Block::slices; i++)
        others[i] =
            (mine + i < slices ? mine + i : mine + i - slices) * (Block::partial_bytes / 16);
#pragma unroll 1
    for (int number = mine; number < part::all; number += at_once * slices) {
        float loaded[at_once][Block::slices][part::tiles][4] = {};
#pragma unroll
        for (int i = 0; i < at_once; i++) {
            const bool is_there = number + i * slices < part::all;
            if (is_there)
                part::load_kept(loaded[i][0], kept + i * (part::tiles * 128));
#pragma unroll
            for (int slice = 1; slice < Block::slices; slice++)
                part(number + i * slices)
                    .load_where(is_there && slice < slices, loaded[i][slice], from, others[slice]);
        }
        kept += at_once * part::tiles * 128;
        kg_row_sums<width> rows[2 * at_once];
        float total = 0;
#pragma unroll
        for (int i = 0; i < at_once; i++) {
#pragma unroll
            for (int slice = 1; slice < Block::slices; slice++)
#pragma unroll
                for (int j = 0; j < part::tiles * 4; j++)
                    loaded[i][0][j / 4][j % 4] += loaded[i][slice][j / 4][j % 4];
#pragma unroll
            for (int which = 0; which < 2; which++) {
                rows[2 * i + which] = part::sums(loaded[i][0], which);
                const bool is_there = part(number + i * slices).row(task, which) < job.rows();
#pragma unroll
                for (int j = 0; j < width; j++)
                    total += is_there ? fabsf(rows[2 * i + which].at[j]) : 0;
            }
        }
        if (!__all_sync(0xffffffff, kg_sum_is_reliable(total, 0.0f))) {
            const int left = (part::all - number + slices - 1) / slices;
            kg_tall_finish_parts_again<Block>(job, rows, task, column, number, slices,
                                              left < at_once ? left : at_once);
            continue;
        }
#pragma unroll
        for (int i = 0; i < 2 * at_once; i++) {
            const part at(number + i / 2 * slices);
            const int64_t row = at.row(task, i % 2), from = at.column(column);
            const int count = number + i / 2 * slices < part::all
                                  ? kg_row_count<width>(row, job.rows(), from, job.columns())
                                  : 0;
            if (vectors.are_there && count == width)
                vectors.store(vectors.to + (at.line + i % 2) * vectors.down + (from - column), job,
                              rows[i], task.item, row, from);
            else
                kg_row_store(job, rows[i], task.item, row, from, count);
        }
    }
}

// Stores the sums of a slice of a tile that other blocks finish, and finishes a part of the tile
// once all of them are there; `first`: the block of the first slice. What the block finishes itself
// stays in shared memory: where the second team's sums were, or in the ring, into which nothing is
// loaded any more.
// A block tells each that reads its sums by a flag of its own, which that one clears. The blocks of
// a tile are neighbours, and no more than there are SMs: started one after the other, they wait for
// nothing but the end of earlier ones, even if others have most SMs.
template <class Block, class JOB>
KG_INLINE void kg_tall_finish_slice(const JOB &job, const kg_tall_sums<Block> &sums,
                                    const kg_tile_task &task, int64_t column, char *scratch,
                                    const kg_tall_shared &shared, int first, int slices,
                                    int consumer)
{
    typedef kg_tall_part<Block> part;
    constexpr int most = (part::all + 1) / 2 * part::tiles * 128; // of a consumer
    constexpr int of_consumer =
        Block::teams > 1 ? Block::partial_bytes / 16 / Block::consumers : most;
    static_assert(Block::consumers * most * 16 <= Block::stages * Block::stage_bytes,
                  "the ring has room for half of a tile");
    float4 *place = Block::teams > 1 ? shared.exchange : (float4 *)shared.ring;
    const int thread = threadIdx.x % 128;
    const int mine = (int)blockIdx.x - first;
    const int readers = slices < part::all ? slices : part::all;
    float4 *kept = place + consumer * of_consumer + thread;
    uint64_t *flags = kg_tall_flag<Block>(scratch, 0, 0) + consumer * Block::slices;
    constexpr int of_block = Block::consumers * Block::slices;
    if constexpr (Block::teams == 1)
        kg_tiles_meet<Block::consumers * 128>(1); // both have read the ring
    sums.store_others(kg_tall_partial<Block>(scratch, blockIdx.x, consumer) + thread, kept, mine,
                      slices);
    kg_tiles_meet<128>(consumer + 2);
    if (thread < readers && thread != mine)
        kg_partial_tell(flags + blockIdx.x * of_block + thread);
    if (mine >= readers)
        return;
    if (thread < slices && thread != mine)
        kg_partial_await(flags + (first + thread) * of_block + mine);
    kg_tiles_meet<128>(consumer + 2);
    kg_tall_finish_parts<Block>(job, task, column, scratch, kept, first, slices, mine, consumer);
}
