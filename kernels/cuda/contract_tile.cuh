// A product in tiles, by multiplications and additions alone: any types, any sides.
//
// A block makes a tile of ROWS x COLUMNS sums, DEPTH steps at a time: while it works on those in
// one half of its shared memory, threads hold what goes to the other half in registers. There both
// sides lie by steps, widened to the type of the sums. Where WHOLE, plain sides are read 16 bytes
// at a time: they begin at multiples of that, and no line ends inside.

// A thread's share of one side of a tile: LINES rows or columns, of side A or (SECOND) side B.
template <class JOB, bool SECOND, bool WHOLE, int LINES, int DEPTH, int THREADS>
struct kg_tile_share {
    using compute = typename JOB::compute;
    enum : bool { PLAIN = WHOLE && (SECOND ? JOB::PLAIN_B : JOB::PLAIN_A) };
    enum : bool { ALONG = SECOND ? JOB::ALONG_B : JOB::ALONG_A };
    using side = kg_either<SECOND, typename JOB::side_b, typename JOB::side_a>;
    using kept = kg_either<PLAIN, side, compute>;
    enum : int { RUN = ALONG ? DEPTH : LINES, ACCESS = 16 / (int)sizeof(kept) };
    enum : int { VECTOR = !PLAIN ? 1 : ACCESS < RUN ? ACCESS : RUN };
    enum : int { TOTAL = LINES * DEPTH / VECTOR, COUNT = (TOTAL + THREADS - 1) / THREADS };
    enum : int { PITCH = LINES + 16 / (int)sizeof(compute) };
    const kept *from[COUNT]; // of plain sides: where the line begins
    kg_vec<kept, VECTOR> held[COUNT];
    // The place in the tile of the i-th vector; beyond TOTAL there is none.
    KG_METHOD void place(int i, int *line, int *step) const
    {
        const int at = i * THREADS + (int)threadIdx.x;
        *line = ALONG ? at / (DEPTH / VECTOR) : at % (LINES / VECTOR) * VECTOR;
        *step = ALONG ? at % (DEPTH / VECTOR) * VECTOR : at / (LINES / VECTOR);
    }
    KG_METHOD bool is_there(int i) const
    {
        return TOTAL % THREADS == 0 || i * THREADS + (int)threadIdx.x < TOTAL;
    }
    // `first`: the side's line the tile begins with, of `lines`.
    KG_METHOD void begin(const JOB &job, int64_t item, int64_t first, int64_t lines)
    {
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            int line, step;
            place(i, &line, &step);
            if constexpr (PLAIN && SECOND)
                from[i] = first + line < lines ? job.b_at(item, 0, first + line) : nullptr;
            else if constexpr (PLAIN)
                from[i] = first + line < lines ? job.a_at(item, first + line, 0) : nullptr;
        }
    }
    // Takes what the tile has from step `start` on; `stop` is behind the last step there is.
    KG_METHOD void take(const JOB &job, int64_t item, int64_t first, int64_t lines, int64_t start,
                        int64_t stop)
    {
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            int line, step;
            place(i, &line, &step);
            held[i] = kg_vec<kept, VECTOR>();
            if (!is_there(i) || first + line >= lines || start + step >= stop)
                continue;
            if constexpr (PLAIN && SECOND)
                held[i] = kg_load_vec<VECTOR>(from[i] + job.b_along(start + step));
            else if constexpr (PLAIN)
                held[i] = kg_load_vec<VECTOR>(from[i] + job.a_along(start + step));
            else if constexpr (SECOND)
                held[i].at[0] = job.b(item, start + step, first + line);
            else
                held[i].at[0] = job.a(item, first + line, start + step);
        }
    }
    static KG_METHOD compute widen(const JOB &job, kept element)
    {
        if constexpr (!PLAIN)
            return element;
        else if constexpr (SECOND)
            return job.widen_b(element);
        else
            return job.widen_a(element);
    }
    // Puts it where all threads can read it.
    KG_METHOD void give(const JOB &job, compute *tile) const
    {
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            int line, step;
            place(i, &line, &step);
            if (!is_there(i))
                continue;
            kg_vec<compute, VECTOR> wide;
#pragma unroll
            for (int lane = 0; lane < VECTOR; lane++)
                wide.at[lane] = widen(job, held[i].at[lane]);
            if constexpr (!ALONG)
                *reinterpret_cast<kg_vec<compute, VECTOR> *>(&tile[step * PITCH + line]) = wide;
#pragma unroll
            for (int lane = 0; ALONG && lane < VECTOR; lane++)
                tile[(step + lane) * PITCH + line] = wide.at[lane];
        }
    }
};

// The sums of a thread: TALL x WIDE of them, in squares as wide as an access of 16 bytes, which lie
// apart so that neighbouring threads read neighbours. The threads of a warp stand in 4 rows of 8.
template <typename T, int ROWS, int COLUMNS, int THREADS>
struct kg_tile_sums {
    enum : int { COUNT = ROWS * COLUMNS / THREADS };
    enum : int { TALL = COUNT >= 32 ? 8 : COUNT >= 8 ? 4 : 2, WIDE = COUNT / TALL };
    enum : int { ACCESS = 16 / (int)sizeof(T) };
    enum : int { HIGH = TALL < ACCESS ? TALL : ACCESS, BROAD = WIDE < ACCESS ? WIDE : ACCESS };
    enum : int { DOWN = ROWS / TALL, ACROSS = COLUMNS / WIDE };
    static_assert(DOWN % 4 == 0 && ACROSS % 8 == 0 && DOWN * ACROSS == THREADS, "whole warps");
    T sums[TALL][WIDE];
    static KG_METHOD int row(int i)
    {
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        return (i / HIGH * DOWN + warp / (ACROSS / 8) * 4 + lane / 8) * HIGH + i % HIGH;
    }
    static KG_METHOD int column(int j)
    {
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        return (j / BROAD * ACROSS + warp % (ACROSS / 8) * 8 + lane % 8) * BROAD + j % BROAD;
    }
    // Adds one step: a line of each side.
    KG_METHOD void add(const T *a, const T *b)
    {
        alignas(16) T left[TALL], right[WIDE];
#pragma unroll
        for (int i = 0; i < TALL; i += HIGH)
            *reinterpret_cast<kg_vec<T, HIGH> *>(&left[i]) =
                *reinterpret_cast<const kg_vec<T, HIGH> *>(&a[row(i)]);
#pragma unroll
        for (int j = 0; j < WIDE; j += BROAD)
            *reinterpret_cast<kg_vec<T, BROAD> *>(&right[j]) =
                *reinterpret_cast<const kg_vec<T, BROAD> *>(&b[column(j)]);
#pragma unroll
        for (int i = 0; i < TALL; i++)
#pragma unroll
            for (int j = 0; j < WIDE; j++)
                sums[i][j] += left[i] * right[j];
    }
};

// Function 0 (WHOLE) or 1 of a kernel. A block takes one tile of one piece after the other.
template <bool WHOLE, int ROWS, int COLUMNS, int DEPTH, int THREADS, int PIECES, int ORDER,
          class JOB>
KG_INLINE void kg_contract_tile(const JOB &job, char *scratch)
{
    using compute = typename JOB::compute;
    using share_a = kg_tile_share<JOB, false, WHOLE, ROWS, DEPTH, THREADS>;
    using share_b = kg_tile_share<JOB, true, WHOLE, COLUMNS, DEPTH, THREADS>;
    using sums = kg_tile_sums<compute, ROWS, COLUMNS, THREADS>;
    enum : int { PITCH_A = share_a::PITCH, PITCH_B = share_b::PITCH, GROUP = 8 };
    __shared__ alignas(16) compute tiles_a[2][DEPTH * PITCH_A], tiles_b[2][DEPTH * PITCH_B];
    const int64_t rows = job.rows(), columns = job.columns(), depth = job.depth();
    const int64_t tall = kg_ceildiv_i64(rows, ROWS), wide = kg_ceildiv_i64(columns, COLUMNS);
    const int64_t tiles = tall * wide * PIECES * job.batches();
    for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        int64_t item = tile, row, column, from, to;
        const int64_t inside = kg_take(&item, tall * wide), piece = kg_take(&item, PIECES);
        kg_tile_place<ORDER, GROUP>(inside, tall, wide, &row, &column);
        row *= ROWS;
        column *= COLUMNS;
        kg_piece_steps<DEPTH>(depth, PIECES, piece, &from, &to);
        share_a mine_a;
        share_b mine_b;
        sums mine = {};
        mine_a.begin(job, item, row, rows);
        mine_b.begin(job, item, column, columns);
        mine_a.take(job, item, row, rows, from, to);
        mine_b.take(job, item, column, columns, from, to);
        mine_a.give(job, tiles_a[0]);
        mine_b.give(job, tiles_b[0]);
        __syncthreads();
        int half = 0;
        for (int64_t step = from; step < to; step += DEPTH) {
            const bool more = step + DEPTH < to;
            if (more) {
                mine_a.take(job, item, row, rows, step + DEPTH, to);
                mine_b.take(job, item, column, columns, step + DEPTH, to);
            }
#pragma unroll
            for (int at = 0; at < DEPTH; at++)
                mine.add(tiles_a[half] + at * PITCH_A, tiles_b[half] + at * PITCH_B);
            if (more) { // the last readers of that half are behind a barrier already
                mine_a.give(job, tiles_a[half ^ 1]);
                mine_b.give(job, tiles_b[half ^ 1]);
            }
            __syncthreads();
            half ^= 1;
        }
#pragma unroll
        for (int i = 0; i < sums::TALL; i++)
#pragma unroll
            for (int j = 0; j < sums::WIDE; j++)
                if (row + sums::row(i) < rows && column + sums::column(j) < columns)
                    kg_contract_finish<PIECES>(job, scratch, piece, item, row + sums::row(i),
                                               column + sums::column(j), mine.sums[i][j]);
    }
}
