// The epilogue and the kernel of contract_wgmma.cuh.
//
// 16-bit outputs are stored through shared memory, one chunk of a tile after the other, so that TMA
// stores whole lines; a chunk is stored while the next one is computed.

// ---- Values that the epilogue reads ----

// The value of lane `from`; called by all lanes of the warp.
template <class T>
KG_INLINE T kg_values_of_lane(const T &value, int from)
{
    union {
        uint32_t words[(sizeof(T) + 3) / 4];
        T whole;
    } sent;
    sent.whole = value;
#pragma unroll
    for (uint32_t &word : sent.words)
        word = __shfl_sync(0xffffffff, word, from);
    return sent.whole;
}

template <class T>
struct kg_neighbours {
    T at[2];
};

// The values that the epilogue of a consumer reads: those of this thread's rows; those of all
// columns, in pairs divided among the lanes of each warp; and per-element values, of one chunk at a
// time.
template <class Block, class Job>
struct kg_wgmma_epilogue {
    using row_values = typename Job::row_values;
    using of_columns = kg_neighbours<typename Job::column_values>;
    row_values rows[Block::M_TILES * 2];
    of_columns columns[(Block::COLUMNS + 63) / 64];
    uint32_t elements[Block::CHUNK_COLUMNS / 4]; // pairs of columns, the first in the low half
    bool whole; // no element is beyond the edges, and pairs can be read at once

    KG_METHOD static int first_row()
    {
        return threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
    }

    // Loads the per-element values of 16 columns of a chunk, which begins at row `top`; `start` is
    // the first of these columns.
    KG_METHOD void load_elements(const Job &job, int batch, int top, int start, int from)
    {
#pragma unroll
        for (int i = 0; i < 4 && from * 4 + i < Block::CHUNK_COLUMNS / 4; i++)
            elements[from * 4 + i] = *(const uint32_t *)job.element_at(
                batch, top + first_row() + i % 2 * 8, start + i / 2 * 8 + (int)threadIdx.x % 4 * 2);
    }

    // Beyond the edges loads the values of the last row or column.
    KG_METHOD void load(const Job &job, const kg_wgmma_item<Block> &item, int consumer_row)
    {
        // Without position and per-element reads, elements beyond the edges are harmless: TMA does
        // not store them.
        whole = (!Job::USES_POSITION && !Job::PER_ELEMENT) ||
                (item.row + consumer_row + Block::CONSUMER_ROWS <= (int)job.rows() &&
                 item.column + Block::COLUMNS <= (int)job.columns() &&
                 (!Job::PER_ELEMENT || job.elements_in_pairs()));
        if (Job::PER_ELEMENT && whole)
#pragma unroll
            for (int from = 0; from < (Block::CHUNK_COLUMNS + 15) / 16; from++)
                load_elements(job, item.batch, item.row + consumer_row, item.column + from * 16,
                              from);
        const int last_row = (int)job.rows() - 1, last_column = (int)job.columns() - 1;
        if constexpr (Job::PER_ROW)
#pragma unroll
            for (int i = 0; i < Block::M_TILES * 2; i++)
                rows[i] = job.load_row(
                    item.batch,
                    min(item.row + consumer_row + first_row() + i * 32 - i % 2 * 24, last_row));
        if constexpr (Job::PER_COLUMN)
#pragma unroll
            for (int i = 0; i < (Block::COLUMNS + 63) / 64 * 2; i++)
                columns[i / 2].at[i % 2] = job.load_column(
                    item.batch,
                    min(item.column + i / 2 * 64 + (int)threadIdx.x % 32 * 2 + i % 2, last_column));
    }

    KG_METHOD static void prefetch(const Job &job, const kg_wgmma_item<Block> &item,
                                   int consumer_row)
    {
        constexpr int each = 8; // adjacent ones, in one access
        const int at = threadIdx.x % 128 * each;
        if (Job::PER_ROW && at < Block::CONSUMER_ROWS &&
            item.row + consumer_row + at < (int)job.rows())
            job.prefetch_row(item.batch, item.row + consumer_row + at);
        if (Job::PER_COLUMN && at < Block::COLUMNS && item.column + at < (int)job.columns())
            job.prefetch_column(item.batch, item.column + at);
        if constexpr (Job::PER_ELEMENT) {
            constexpr int line = 32; // elements of 64 bytes
            constexpr int tall = Block::SWAP ? Block::CONSUMER_ROWS / line : Block::CONSUMER_ROWS;
            constexpr int wide = Block::SWAP ? Block::COLUMNS : (Block::COLUMNS + line - 1) / line;
#pragma unroll
            for (int i = 0; i < tall * wide; i += 128) {
                const int place = i + threadIdx.x % 128;
                const int row = place % tall * (Block::SWAP ? line : 1) + item.row + consumer_row;
                const int column = place / tall * (Block::SWAP ? 1 : line) + item.column;
                if (place < tall * wide && row < (int)job.rows() && column < (int)job.columns())
                    kg_prefetch_l2(job.element_at(item.batch, row, column));
            }
        }
    }

    // The values of one of this thread's rows, and of its two columns in the eight columns number
    // `eight`.
    KG_METHOD row_values in_row(int m_tile, int half) const
    {
        return rows[m_tile * 2 + half];
    }
    KG_METHOD of_columns in_columns(int eight) const
    {
        if constexpr (Job::PER_COLUMN)
            return kg_values_of_lane(columns[eight / 8], eight % 8 * 4 + threadIdx.x % 4);
        else
            return {};
    }
};

// ---- Storing the results ----

// Calls `take(row, column, sum)` for every accumulator of this thread, pairs of adjacent columns
// together; rows and columns count from the consumer's first.
template <class Block, class Take>
KG_INLINE void kg_wgmma_each(const float (&sums)[Block::M_TILES][Block::SUMS], const Take &take)
{
    const int thread = threadIdx.x % 128, row = thread / 32 * 16 + thread % 32 / 4;
#pragma unroll
    for (int m_tile = 0; m_tile < Block::M_TILES; m_tile++)
#pragma unroll
        for (int i = 0; i < Block::SUMS; i++)
            take(m_tile * 64 + row + i / 2 % 2 * 8, i / 4 * 8 + thread % 4 * 2 + i % 2,
                 sums[m_tile][i]);
}

template <class Job>
KG_INLINE void kg_wgmma_finish(const Job &job, int batch, int row, int column, float sum)
{
    job.store(batch, row, column, job.value(batch, row, column, sum));
}

// Stores element by element: for outputs that are not 16-bit.
template <class Block, class Job>
KG_INLINE void kg_wgmma_store_each(const Job &job, const kg_wgmma_item<Block> &item,
                                   int consumer_row,
                                   const float (&sums)[Block::M_TILES][Block::SUMS])
{
    const int rows = (int)job.rows(), columns = (int)job.columns();
    kg_wgmma_each<Block>(sums, [&](int row, int column, float sum) {
        row += item.row + consumer_row;
        column += item.column;
        if (row < rows && column < columns)
            kg_wgmma_finish(job, item.batch, row, column, sum);
    });
}

// Stores partial sums for kg_wgmma_fold.
template <class Block, class Job>
KG_INLINE void kg_wgmma_store_partial_sums(const Job &job, float *partial,
                                           const kg_wgmma_item<Block> &item, int consumer_row,
                                           const float (&sums)[Block::M_TILES][Block::SUMS])
{
    const int rows = (int)job.rows(), columns = (int)job.columns();
    float *to = partial + ((int64_t)item.slice * job.batches() + item.batch) * rows * columns;
    kg_wgmma_each<Block>(sums, [&](int row, int column, float sum) {
        row += item.row + consumer_row;
        column += item.column;
        if (row < rows && column < columns)
            to[Block::SWAP ? (int64_t)column * rows + row : (int64_t)row * columns + column] = sum;
    });
}

// Runs the epilogue of two adjacent columns and packs the results. Unless the tile is WHOLE, skips
// elements beyond the edges.
template <class Block, bool WHOLE, class Job>
KG_INLINE uint32_t kg_wgmma_pair(const Job &job, int batch, int row, int column, float first,
                                 float second, const typename Job::row_values &in_row,
                                 const kg_neighbours<typename Job::column_values> &in_columns,
                                 uint32_t in_elements)
{
    const int rows = (int)job.rows(), columns = (int)job.columns();
    const float sums[2] = {first, second};
    uint32_t pair = 0;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        if (!WHOLE && (row >= rows || column + i >= columns))
            continue;
        uint16_t in_element = (uint16_t)(in_elements >> i * 16);
        if constexpr (Job::PER_ELEMENT && !WHOLE)
            in_element = *job.element_at(batch, row, column + i);
        const uint32_t element =
            job.value(batch, row, column + i, sums[i], in_row, in_columns.at[i], in_element);
        pair |= element << i * 16;
    }
    return pair;
}

// The position of 16-byte unit `at` of a line in a buffer, swizzled as the TMA store expects it.
template <class Block>
KG_INLINE int kg_wgmma_unit(int line, int at)
{
    constexpr int span = Block::LINE_BYTES;
    if constexpr (Block::BY_SECTOR)
        return line * Block::LINE_PITCH + at * 16;
    return line * span + (at ^ (line * span / 128 & (span / 16 - 1))) * 16;
}

// Fills a buffer with one chunk, whose first row and column are `top` and `start`; in the
// consumer's tile it belongs to instruction tile `m_tile` and begins at column `from`. Meanwhile
// loads the per-element values of the next chunk, at next_top and next_start, unless next_top is
// negative.
template <class Block, bool WHOLE, class Job>
KG_INLINE void kg_wgmma_fill(const Job &job, kg_wgmma_epilogue<Block, Job> &epilogue, int batch,
                             int top, int start, int m_tile, int from, int next_top, int next_start,
                             const float *sums, char *buffer)
{
    const int warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32, matrix = lane / 8;
    const int row = top + warp * 16 + lane / 4;
#pragma unroll
    for (int c = 0; c < Block::CHUNK_COLUMNS; c += 16) {
        const float *sum = sums + c / 2;
        const int column = start + c + lane % 4 * 2;
        const bool both = Block::CHUNK_COLUMNS - c >= 16; // pairs of matrices
        uint32_t pairs[4];
        if constexpr (!WHOLE)
            __syncwarp(); // keeps the compiler from loading everything first
#pragma unroll
        for (int eight = 0; eight < (both ? 2 : 1); eight++) {
            const auto in_columns = epilogue.in_columns((from + c) / 8 + eight);
#pragma unroll
            for (int half = 0; half < 2; half++)
                pairs[eight * 2 + half] = kg_wgmma_pair<Block, WHOLE>(
                    job, batch, row + half * 8, column + eight * 8, sum[eight * 4 + half * 2],
                    sum[eight * 4 + half * 2 + 1], epilogue.in_row(m_tile, half), in_columns,
                    Job::PER_ELEMENT ? epilogue.elements[c / 4 + eight * 2 + half] : 0);
        }
        if constexpr (Job::PER_ELEMENT && WHOLE)
            if (next_top >= 0)
                epilogue.load_elements(job, batch, next_top, next_start + c, c / 16);
        // The line and the 16-byte unit whose address this lane provides.
        const int line =
            Block::SWAP ? c + matrix / 2 * 8 + lane % 8 : warp * 16 + matrix % 2 * 8 + lane % 8;
        const int at = Block::SWAP ? warp * 2 + matrix % 2
                                   : (Block::BY_SECTOR ? from + c : c) / 8 + matrix / 2;
        char *to = buffer + kg_wgmma_unit<Block>(line, at);
        if (both)
            kg_matrices_store<Block::SWAP>(to, pairs);
        else
            kg_matrices_store<Block::SWAP>(to, pairs[0], pairs[1]);
    }
}

// Stores a chunk element by element, where lines are not aligned to 16 bytes. A thread has the same
// place in several lines: where lines have one stride, its address goes on by that.
template <class Block, class Job>
KG_INLINE void kg_wgmma_store_chunk(const Job &job, int batch, int row, int column,
                                    const char *buffer, int thread)
{
    typedef typename Job::out out;
    constexpr int length = Block::LINE_BYTES / 2, lines = 64 * Block::CHUNK_COLUMNS / length;
    constexpr int together = 128 / length; // lines that are stored at once
    const int at = thread % length, first = thread / length;
    const int r = row + (Block::SWAP ? at : first), c = column + (Block::SWAP ? first : at);
    const int64_t left = Block::SWAP ? job.columns() - c : job.rows() - r; // lines
    if (Block::SWAP ? r >= job.rows() : c >= job.columns())
        return;
    const auto element_of = [&](int line) {
        return ((const out *)(buffer + kg_wgmma_unit<Block>(line, at / 8)))[at % 8];
    };
    if constexpr (Job::HAS_STRIDES_OUT) {
        out *to = job.out_at(batch, r, c);
        const int64_t next = (Block::SWAP ? job.out_at(batch, r, c + together)
                                          : job.out_at(batch, r + together, c)) -
                             to;
#pragma unroll 8
        for (int line = 0; line < lines; line += together, to += next)
            if (line < left)
                *to = element_of(first + line);
    } else {
#pragma unroll 4
        for (int line = 0; line < lines; line += together)
            if (line < left)
                job.store(batch, r + (Block::SWAP ? 0 : line), c + (Block::SWAP ? line : 0),
                          element_of(first + line));
    }
}

// The elements of a line that a tile stores, counted from the tile's first column: whole vectors of
// 16 bytes from `begin` on, and behind them up to `end`. A sector of memory that is written in part
// has to be read first, so a tile stores the sectors whole that begin in the columns up to its
// step.
template <class Block, class Out>
struct kg_wgmma_line {
    int begin, end;
    KG_METHOD kg_wgmma_line(const Out *first, bool is_first, bool is_last, int left)
    {
        constexpr int sector = Block::OVERLAP;
        const int next = -(int)((uint64_t)first / sizeof(Out)) & (sector - 1);
        begin = is_first ? next % 8 : next;
        end = is_last ? left : Block::STEP + next;
    }
};

// Stores 16 lines of a tile, those of this warp, from a buffer whose first line is `row`. Only at
// the ends of the output's lines are elements that are stored one by one.
template <class Block, class Job>
KG_INLINE void kg_wgmma_store_lines(const Job &job, int batch, int row, int column,
                                    const char *buffer)
{
    typedef typename Job::out out;
    typedef kg_wgmma_line<Block, out> line_of;
    constexpr int units = Block::COLUMNS / 8, lanes = units > 16 ? 32 : units > 8 ? 16 : 8;
    constexpr int together = 32 / lanes, turns = 2; // lines of a warp, and turns in flight
    const int first = threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / lanes;
    const int lane = threadIdx.x % lanes, left = (int)job.columns() - column;
    const int lines = (int)job.rows() - row - first;
    const bool is_first = column == 0, is_last = left <= Block::COLUMNS;
    const char *from = buffer + first * Block::LINE_PITCH;
    const auto place_of = [&](int line) { return job.out_at(batch, row + first + line, column); };
    out *to = place_of(0);
    const int64_t next = place_of(together) - to;
#pragma unroll 1
    for (int line = 0; line < 16; line += turns * together) {
        uint4 vectors[turns];
        out *places[turns];
        bool whole[turns];
#pragma unroll
        for (int i = 0; i < turns; i++) {
            const int mine = line + i * together;
            if constexpr (!Job::HAS_STRIDES_OUT)
                to = place_of(mine);
            const line_of its(to, is_first, is_last, left);
            const int at = its.begin + lane * 8, unit = min(at / 8, units - 1);
            const uint4 *aligned = (const uint4 *)(from + mine * Block::LINE_PITCH) + unit;
            const uint4 low = aligned[0], high = aligned[1]; // which may be padding
            const uint32_t words[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
            vectors[i] = kg_shifted(words, its.begin % 8 * (int)sizeof(out));
            whole[i] = mine < lines && at + 8 <= its.end;
            places[i] = to + at;
            to += next;
        }
#pragma unroll
        for (int i = 0; i < turns; i++)
            if (whole[i])
                *(uint4 *)places[i] = vectors[i];
    }
    if (!is_first && !is_last)
        return;
    for (int line = 0; line < 16 && line < lines; line += together) {
        out *place = place_of(line);
        const out *elements = (const out *)(from + line * Block::LINE_PITCH);
        const line_of its(place, is_first, is_last, left);
        const int tail = max(0, its.begin + (its.end - its.begin) / 8 * 8);
        if (is_first && lane < its.begin && lane < its.end)
            place[lane] = elements[lane];
        if (is_last && lane < 8 && tail + lane < its.end)
            place[tail + lane] = elements[tail + lane];
    }
}

// Stores a tile chunk by chunk through shared memory: by TMA; where lines are not aligned to 16
// bytes, element by element or, line by line, by sector.
template <class Block, class Job>
KG_INLINE void
kg_wgmma_store_tile(const Job &job, const kg_wgmma_item<Block> &item, int consumer_row,
                    const float (&sums)[Block::M_TILES][Block::SUMS],
                    kg_wgmma_epilogue<Block, Job> &epilogue, char *buffers, int &turn,
                    const kg_tensor_map *out, bool by_tma, int barrier, int warp)
{
    constexpr int across = Block::CHUNKS / Block::M_TILES; // chunks side by side
    const int thread = threadIdx.x % 128, top = item.row + consumer_row;
#pragma unroll
    for (int chunk = 0; chunk < Block::CHUNKS; chunk++) {
        const int m_tile = chunk / across, start = chunk % across * Block::CHUNK_COLUMNS;
        const int row = top + m_tile * 64, column = item.column + start;
        const float *from = &sums[m_tile][start / 2];
        const bool last = chunk + 1 == Block::CHUNKS;
        const int next_top = last ? -1 : top + (chunk + 1) / across * 64;
        const int next_start = item.column + (chunk + 1) % across * Block::CHUNK_COLUMNS;
        char *buffer = buffers + turn * Block::BUFFER_BYTES;
        turn = (turn + 1) % Block::BUFFERS;
        if constexpr (!Block::BY_SECTOR) {
            if (warp % 4 == 0 && kg_is_elected())
                kg_tiles_stored<Block::BUFFERS - 1>();
            kg_tiles_meet<128>(barrier);
        }
        if (epilogue.whole)
            kg_wgmma_fill<Block, true>(job, epilogue, item.batch, row, column, m_tile, start,
                                       next_top, next_start, from, buffer);
        else if constexpr (Job::USES_POSITION || Job::PER_ELEMENT)
            kg_wgmma_fill<Block, false>(job, epilogue, item.batch, row, column, m_tile, start,
                                        next_top, next_start, from, buffer);
        if constexpr (Block::BY_SECTOR) {
            if ((chunk + 1) % across == 0) { // each warp has its lines whole
                __syncwarp();
                kg_wgmma_store_lines<Block>(job, item.batch, row, item.column, buffer);
                __syncwarp();
            }
        } else {
            kg_tiles_written();
            kg_tiles_meet<128>(barrier);
            if (by_tma && warp % 4 == 0 && kg_is_elected())
                kg_tiles_store(out, buffer, Block::SWAP ? row : column, Block::SWAP ? column : row,
                               item.batch);
            if (!by_tma)
                kg_wgmma_store_chunk<Block>(job, item.batch, row, column, buffer, thread);
        }
    }
}

// Stores accumulators in the block's own shared memory, for the other blocks of the cluster.
template <class Block, class Job>
KG_INLINE void kg_wgmma_share_sums(float *folded, int consumer_row,
                                   const float (&sums)[Block::M_TILES][Block::SUMS])
{
    kg_wgmma_each<Block>(sums, [&](int row, int column, float sum) {
        const int line = Block::SWAP ? column : consumer_row + row,
                  at = Block::SWAP ? consumer_row + row : column;
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

// A store that the compiler can neither drop nor move before the computation of `number`.
KG_INLINE void kg_shared_keep(float *to, float number)
{
    asm volatile("st.volatile.shared.f32 [%0], %1;" ::"r"(kg_shared_address(to)), "f"(number)
                 : "memory");
}

// Adds the partial sums of the cluster's blocks, each block some of the rows, in the order of
// ranks, and runs the epilogue. Reads of other blocks' shared memory have a long latency: many are
// in flight at once. Returns a number that depends on every read.
template <class Block, class Job>
KG_INLINE float kg_wgmma_fold_cluster(const Job &job, const kg_wgmma_item<Block> &item,
                                      const float *folded)
{
    constexpr int lines = Block::SWAP ? Block::COLUMNS : Block::ROWS;
    constexpr int quads = (Block::SWAP ? Block::ROWS : Block::COLUMNS) / 4;
    constexpr int threads = Block::CONSUMERS * 128, step = Block::SPLIT * threads;
    constexpr int turns = (lines * quads + step - 1) / step, limit = 16 / Block::SPLIT;
    constexpr int batch = turns < limit ? turns : limit;
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
        float4 partials[batch][Block::SPLIT];
#pragma unroll
        for (int b = 0; b < batch; b++) {
            const int i = first + b * step;
            const float *from = &folded[i / quads * Block::FOLD_PITCH + i % quads * 4];
#pragma unroll
            for (int r = 0; r < Block::SPLIT; r++)
                if (is_there(i))
                    partials[b][r] = kg_shared_quad_in(from, r);
        }
#pragma unroll
        for (int b = 0; b < batch; b++) {
            const int i = first + b * step, line = i / quads, at = i % quads * 4;
            if (!is_there(i))
                continue;
            float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll
            for (int r = 0; r < Block::SPLIT; r++) {
                sum.x += partials[b][r].x;
                sum.y += partials[b][r].y;
                sum.z += partials[b][r].z;
                sum.w += partials[b][r].w;
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

// Whether the next kernel may start at once, on idle SMs. Otherwise it starts when all products
// have been issued, so that it lands on SMs where this kernel ends and shares the data at hand.
template <class Block, class Job>
KG_INLINE bool kg_wgmma_starts_next_early(const Job &job)
{
    uint32_t units;
    asm("mov.u32 %0, %%nsmid;" : "=r"(units));
    const bool is_short = (job.rows() + job.columns()) * job.depth() <= 2 << 20;
    if constexpr (Block::STREAM_K) // occupies all SMs
        return false;
    return is_short || (Block::SPLIT == 1 && Block::SHARED > 116 << 10 && gridDim.x * 2 <= units);
}

template <class Block, class Job>
KG_INLINE void kg_wgmma_consumer(const Job &job, const kg_wgmma_tiles<Block> &tiles,
                                 const kg_wgmma_item<Block> &begin, const kg_tensor_map *out,
                                 char *ring, char *buffers, uint64_t *full, char *scratch,
                                 int first, int step, int rank, bool by_tma, int warp)
{
    const int consumer = warp / 4 - 1;
    const int consumer_row = Block::PINGPONG ? 0 : consumer * Block::CONSUMER_ROWS;
    constexpr int buffer_bytes = Block::OUT_BYTES / Block::CONSUMERS;
    constexpr bool through_shared = Block::SPLIT == 1 && sizeof(typename Job::out) == 2;
    kg_wgmma_stage<Block> stage(ring, full, consumer_row, rank);
    int turn = 0, buffer_turn = 0;
    kg_wgmma_items<Block> work(tiles, first, step, rank);
    kg_wgmma_item<Block> item = Block::STREAM_K ? work.item() : begin;
    for (; work.is_left(); kg_wgmma_next(work, item), turn ^= 1) {
        if (Block::PINGPONG && turn != consumer) {
            stage.skip(item.steps);
            continue;
        }
        float sums[Block::M_TILES][Block::SUMS];
        const bool ends = !Block::STREAM_K || item.first + item.steps == tiles.steps;
        kg_wgmma_epilogue<Block, Job> epilogue;
        if constexpr (through_shared)
            if (ends)
                epilogue.prefetch(job, item, consumer_row);
        if constexpr (Block::STREAM_K)
            if (item.first > 0)
                kg_wgmma_load_partial_tile<Block>(scratch, sums, consumer);
        if (Block::PINGPONG && !work.is_first())
            kg_tiles_meet<256>(3 + consumer); // the other consumer has issued all its products
        kg_wgmma_consume<Block>(sums, stage, item.steps, item.first > 0, 4 - consumer, [&] {
            if constexpr (through_shared)
                if (ends)
                    epilogue.load(job, item, consumer_row);
        });
        if (work.is_last() && !kg_wgmma_starts_next_early<Block>(job))
            kg_start_next();
        if constexpr (Block::STREAM_K) {
            if (!ends) {
                kg_wgmma_store_partial_tile<Block>(scratch, sums, consumer);
                continue;
            }
        }
        if constexpr (Block::FOLDS_IN_CLUSTER) {
            kg_tiles_meet<Block::CONSUMERS * 128>(
                1); // all consumers have finished reading the stages
            kg_wgmma_share_sums<Block, Job>((float *)ring, consumer_row, sums);
        } else if constexpr (Block::SPLIT > 1) {
            kg_wgmma_store_partial_sums<Block>(job, (float *)scratch, item, consumer_row, sums);
        } else if constexpr (through_shared) {
            kg_wgmma_store_tile<Block>(job, item, consumer_row, sums, epilogue,
                                       buffers + consumer * buffer_bytes, buffer_turn, out, by_tma,
                                       consumer + 1, warp);
        } else {
            kg_wgmma_store_each<Block>(job, item, consumer_row, sums);
        }
    }
    if (warp % 4 == 0 && kg_is_elected())
        kg_tiles_stored<0>();
}

// `out`: the map of the output if TMA can store it, else all zeros. `scratch`: partial sums of
// split-K that no cluster adds up, or partial tiles of stream-K.
template <class Block, class Job>
KG_INLINE void kg_contract_wgmma(const Job &job, const kg_wgmma_source &left,
                                 const kg_wgmma_source &right, const kg_tensor_map *out,
                                 char *scratch)
{
    extern __shared__ __align__(1024) char kg_shared[];
    constexpr int cluster =
        Block::FOLDS_IN_CLUSTER ? Block::SPLIT : Block::CLUSTER_M * Block::CLUSTER_N;
    constexpr bool clustered = Block::PEERS > 1;
    char *ring = kg_shared;
    char *buffers = ring + Block::RING_BYTES;
    uint64_t *full = (uint64_t *)(buffers + Block::OUT_BYTES), *empty = full + Block::STAGES;
    const int rank = clustered ? (int)kg_cluster_rank() : 0; // in the multicast cluster
    const int first = Block::FOLDS_IN_CLUSTER ? blockIdx.x : blockIdx.x / cluster;
    const int step = Block::FOLDS_IN_CLUSTER ? gridDim.x : gridDim.x / cluster;
    const auto count = [&] {
        return kg_wgmma_tiles<Block>((int)job.rows(), (int)job.columns(), job.depth(),
                                     job.batches());
    };
    const kg_wgmma_tiles<Block> early = count();
    // With stream-K, keeping it from here on would take too many registers.
    const auto tiles = [&] {
        if constexpr (Block::STREAM_K)
            return count();
        else
            return early;
    };
    // One warp initialises the barriers while the others find their first tile.
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
    if (kg_wgmma_starts_next_early<Block>(job))
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
    if constexpr (Block::FOLDS_IN_CLUSTER) {
        __syncwarp();
        kg_cluster_arrive_shared();
        kg_cluster_await();
        if (threadIdx.x >= 128) { // a block has one tile
            const float seen = kg_wgmma_fold_cluster<Block>(job, begin, (float *)ring);
            kg_shared_keep((float *)buffers + threadIdx.x - 128, seen);
        }
        __syncwarp();
        // A block must not exit while others may still read its shared memory. A relaxed arrival is
        // enough: a releasing one would also wait for stores to global memory.
        kg_cluster_arrive_relaxed();
        kg_cluster_await();
    }
}
