// A product in tiles without tensor cores: any types, any operands.
//
// A block computes a tile of ROWS x COLUMNS accumulators, DEPTH steps of K at a time. Shared memory
// has two stages: while one is multiplied, threads load the elements of the other one into
// registers. In shared memory both operands are K by lines (rows or columns), converted to the
// compute type. With WHOLE, operands that are arrays are read in aligned 16-byte vectors; no row or
// column ends within one.

// Loads an operand's tile of LINES rows (A) or columns (B): the share of one thread.
template <class JOB, bool IS_B, bool WHOLE, int LINES, int DEPTH, int THREADS>
struct kg_tile_loader {
    using compute = typename JOB::compute;
    enum : bool { PLAIN = WHOLE && (IS_B ? JOB::PLAIN_B : JOB::PLAIN_A) };
    enum : bool { K_MAJOR = IS_B ? JOB::K_MAJOR_B : JOB::K_MAJOR_A };
    using element = kg_either<IS_B, typename JOB::element_b, typename JOB::element_a>;
    using loaded = kg_either<PLAIN, element, compute>;
    enum : int { RUN = K_MAJOR ? DEPTH : LINES, ACCESS = 16 / (int)sizeof(loaded) };
    enum : int { VECTOR = !PLAIN ? 1 : ACCESS < RUN ? ACCESS : RUN };
    enum : int { TOTAL = LINES * DEPTH / VECTOR, COUNT = (TOTAL + THREADS - 1) / THREADS };
    enum : int { PITCH = LINES + 16 / (int)sizeof(compute) };
    const loaded *from[COUNT]; // of arrays: the beginning of the line
    kg_vec<loaded, VECTOR> registers[COUNT];
    // The position of the i-th vector in the tile; none beyond TOTAL.
    KG_METHOD void place(int i, int *line, int *step) const
    {
        const int at = i * THREADS + (int)threadIdx.x;
        *line = K_MAJOR ? at / (DEPTH / VECTOR) : at % (LINES / VECTOR) * VECTOR;
        *step = K_MAJOR ? at % (DEPTH / VECTOR) * VECTOR : at / (LINES / VECTOR);
    }
    KG_METHOD bool is_there(int i) const
    {
        return TOTAL % THREADS == 0 || i * THREADS + (int)threadIdx.x < TOTAL;
    }
    // `first`: the first line of the tile, of `lines` lines.
    KG_METHOD void begin(const JOB &job, int64_t item, int64_t first, int64_t lines)
    {
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            int line, step;
            place(i, &line, &step);
            if constexpr (PLAIN && IS_B)
                from[i] = first + line < lines ? job.b_at(item, 0, first + line) : nullptr;
            else if constexpr (PLAIN)
                from[i] = first + line < lines ? job.a_at(item, first + line, 0) : nullptr;
        }
    }
    // Loads the tile's elements from step `start` on; `stop` is the end of K or of the slice.
    KG_METHOD void load(const JOB &job, int64_t item, int64_t first, int64_t lines, int64_t start,
                        int64_t stop)
    {
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            int line, step;
            place(i, &line, &step);
            registers[i] = kg_vec<loaded, VECTOR>();
            if (!is_there(i) || first + line >= lines || start + step >= stop)
                continue;
            if constexpr (PLAIN && IS_B)
                registers[i] = kg_load_vec<VECTOR>(from[i] + job.b_k_offset(start + step));
            else if constexpr (PLAIN)
                registers[i] = kg_load_vec<VECTOR>(from[i] + job.a_k_offset(start + step));
            else if constexpr (IS_B)
                registers[i].at[0] = job.b(item, start + step, first + line);
            else
                registers[i].at[0] = job.a(item, first + line, start + step);
        }
    }
    static KG_METHOD compute widen(const JOB &job, loaded element)
    {
        if constexpr (!PLAIN)
            return element;
        else if constexpr (IS_B)
            return job.widen_b(element);
        else
            return job.widen_a(element);
    }
    // Converts the elements and stores them in shared memory.
    KG_METHOD void store_shared(const JOB &job, compute *tile) const
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
                wide.at[lane] = widen(job, registers[i].at[lane]);
            if constexpr (!K_MAJOR)
                *reinterpret_cast<kg_vec<compute, VECTOR> *>(&tile[step * PITCH + line]) = wide;
#pragma unroll
            for (int lane = 0; K_MAJOR && lane < VECTOR; lane++)
                tile[(step + lane) * PITCH + line] = wide.at[lane];
        }
    }
};

// The accumulators of a thread: TALL x WIDE in squares as wide as a 16-byte access. The squares are
// spread so that adjacent threads read adjacent vectors. The threads of a warp form 4 rows of 8.
template <typename T, int ROWS, int COLUMNS, int THREADS>
struct kg_tile_sums {
    enum : int { COUNT = ROWS * COLUMNS / THREADS };
    enum : int { TALL = COUNT >= 32 ? 8 : COUNT >= 8 ? 4 : 2, WIDE = COUNT / TALL };
    enum : int { ACCESS = 16 / (int)sizeof(T) };
    enum : int { HIGH = TALL < ACCESS ? TALL : ACCESS, BROAD = WIDE < ACCESS ? WIDE : ACCESS };
    enum : int { THREAD_ROWS = ROWS / TALL, THREAD_COLUMNS = COLUMNS / WIDE };
    static_assert(THREAD_ROWS % 4 == 0 && THREAD_COLUMNS % 8 == 0 &&
                      THREAD_ROWS * THREAD_COLUMNS == THREADS,
                  "whole warps");
    T sums[TALL][WIDE];
    static KG_METHOD int row(int i)
    {
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        return (i / HIGH * THREAD_ROWS + warp / (THREAD_COLUMNS / 8) * 4 + lane / 8) * HIGH +
               i % HIGH;
    }
    static KG_METHOD int column(int j)
    {
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        return (j / BROAD * THREAD_COLUMNS + warp % (THREAD_COLUMNS / 8) * 8 + lane % 8) * BROAD +
               j % BROAD;
    }
    // Adds the outer product of one line of A and one of B.
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

// Function 0 (WHOLE) or 1 of a kernel. A block processes one tile, or split-K slice of a tile,
// after the other.
template <bool WHOLE, int ROWS, int COLUMNS, int DEPTH, int THREADS, int SPLIT, int ORDER,
          class JOB>
KG_INLINE void kg_contract_tile(const JOB &job, char *scratch)
{
    using compute = typename JOB::compute;
    using loader_a = kg_tile_loader<JOB, false, WHOLE, ROWS, DEPTH, THREADS>;
    using loader_b = kg_tile_loader<JOB, true, WHOLE, COLUMNS, DEPTH, THREADS>;
    using sums = kg_tile_sums<compute, ROWS, COLUMNS, THREADS>;
    enum : int { PITCH_A = loader_a::PITCH, PITCH_B = loader_b::PITCH, GROUP = 8 };
    __shared__ alignas(16) compute tiles_a[2][DEPTH * PITCH_A], tiles_b[2][DEPTH * PITCH_B];
    const int64_t rows = job.rows(), columns = job.columns(), depth = job.depth();
    const int64_t tall = kg_ceildiv_i64(rows, ROWS), wide = kg_ceildiv_i64(columns, COLUMNS);
    const int64_t tiles = tall * wide * SPLIT * job.batches();
    for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        int64_t item = tile, row, column, from, to;
        const int64_t inside = kg_take(&item, tall * wide), slice = kg_take(&item, SPLIT);
        kg_tile_place<ORDER, GROUP>(inside, tall, wide, &row, &column);
        row *= ROWS;
        column *= COLUMNS;
        kg_slice_steps<DEPTH>(depth, SPLIT, slice, &from, &to);
        loader_a load_a;
        loader_b load_b;
        sums mine = {};
        load_a.begin(job, item, row, rows);
        load_b.begin(job, item, column, columns);
        load_a.load(job, item, row, rows, from, to);
        load_b.load(job, item, column, columns, from, to);
        load_a.store_shared(job, tiles_a[0]);
        load_b.store_shared(job, tiles_b[0]);
        __syncthreads();
        int half = 0;
        for (int64_t step = from; step < to; step += DEPTH) {
            const bool more = step + DEPTH < to;
            if (more) {
                load_a.load(job, item, row, rows, step + DEPTH, to);
                load_b.load(job, item, column, columns, step + DEPTH, to);
            }
#pragma unroll
            for (int at = 0; at < DEPTH; at++)
                mine.add(tiles_a[half] + at * PITCH_A, tiles_b[half] + at * PITCH_B);
            if (more) { // the barrier has passed the last readers of that stage
                load_a.store_shared(job, tiles_a[half ^ 1]);
                load_b.store_shared(job, tiles_b[half ^ 1]);
            }
            __syncthreads();
            half ^= 1;
        }
#pragma unroll
        for (int i = 0; i < sums::TALL; i++)
#pragma unroll
            for (int j = 0; j < sums::WIDE; j++)
                if (row + sums::row(i) < rows && column + sums::column(j) < columns)
                    kg_contract_finish<SPLIT>(job, scratch, slice, item, row + sums::row(i),
                                              column + sums::column(j), mine.sums[i][j]);
    }
}
