// Products of few rows, bound by reading operand B: each of its elements is read once, in vectors
// that bypass the L1, several in flight per thread. Operand A stays in the L1.
//
// A block computes ROWS x COLUMNS sums, from STAGES tiles of DEPTH x COLUMNS elements of B at a
// time. If B is K-major, a line of lanes reads DEPTH steps of a column, and a warp several columns;
// otherwise a line of lanes reads COLUMNS columns of one step, and a thread a vector of columns. At
// the end, threads with different K steps of the same sums add their partial sums.

// Reduce-scatter among the lanes whose numbers differ in the bits LOW_BIT .. HIGH_BIT. Of COUNT
// values each lane keeps COUNT / lanes totals, or one, starting with the one at the returned
// position. Lanes that get the same position have the same totals.
template <int HIGH_BIT, int LOW_BIT, int COUNT, typename T>
KG_INLINE int kg_reduce_scatter(T (&values)[COUNT])
{
    const int lane = threadIdx.x % 32;
    int place = 0, count = COUNT;
#pragma unroll
    for (int way = HIGH_BIT; way >= LOW_BIT; way /= 2) {
        if (count > 1) {
            const bool upper = lane & way;
            count /= 2;
            place += upper ? count : 0;
#pragma unroll
            for (int i = 0; i < COUNT / 2; i++) {
                if (i >= count)
                    continue;
                const T other = __shfl_xor_sync(~0u, upper ? values[i] : values[count + i], way);
                values[i] = (upper ? values[count + i] : values[i]) + other;
            }
        } else {
            values[0] += __shfl_xor_sync(~0u, values[0], way);
        }
    }
    return place;
}

// Converts an operand element as it was read: from memory, or (not FAST) already a value.
template <bool FAST, class JOB, typename T>
KG_INLINE typename JOB::compute kg_widen_a(const JOB &job, T element)
{
    if constexpr (FAST)
        return job.widen_a(element);
    else
        return element;
}

template <bool FAST, class JOB, typename T>
KG_INLINE typename JOB::compute kg_widen_b(const JOB &job, T element)
{
    if constexpr (FAST)
        return job.widen_b(element);
    else
        return element;
}

// B is K-major.
template <class JOB, bool WHOLE_A, bool WHOLE_B, int ROWS, int COLUMNS, int DEPTH, int THREADS>
struct kg_thin_k_major {
    using compute = typename JOB::compute;
    enum : bool { FAST = WHOLE_B && JOB::PLAIN_B };
    enum : bool { FAST_A = WHOLE_A && FAST && JOB::PLAIN_A && JOB::K_MAJOR_A };
    using loaded = kg_either<FAST, typename JOB::element_b, compute>;
    using loaded_a = kg_either<FAST_A, typename JOB::element_a, compute>;
    enum : int { VECTOR = 16 / (int)sizeof(typename JOB::element_b), LINE = DEPTH / VECTOR };
    enum : int { LINES = THREADS / LINE, MINE = COLUMNS / LINES, COUNT = ROWS * MINE };
    enum : int {
        LANES = LINE < 32 ? LINE : 32,
        HIGH_BIT = LANES / 2,
        LOW_BIT = 1,
        GROUPS = LINE / LANES
    };
    static_assert(LINES * LINE == THREADS && MINE * LINES == COLUMNS, "no thread without a column");
    compute sums[COUNT];
    const loaded *from[MINE]; // the beginnings of the columns, if FAST
    // The K step of element `lane` of the thread's vectors. Elements that are read one by one are
    // spread, so that adjacent threads read adjacent elements.
    static KG_METHOD int step(int lane)
    {
        const int at = threadIdx.x % LINE;
        return FAST ? at * VECTOR + lane
                    : at / LANES * (LANES * VECTOR) + lane * LANES + at % LANES;
    }
    static KG_METHOD int column(int i)
    {
        return threadIdx.x / LINE * MINE + i;
    }
    static KG_METHOD int slot(int i)
    {
        return i / MINE * COLUMNS + column(i % MINE);
    }
    static KG_METHOD int group()
    {
        return threadIdx.x % LINE / 32;
    }
    KG_METHOD void begin(const JOB &job, int64_t item, int64_t first)
    {
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            sums[i] = compute();
#pragma unroll
        for (int i = 0; i < MINE; i++)
            if constexpr (FAST)
                from[i] = first + column(i) < job.columns() ? job.b_at(item, 0, first + column(i))
                                                            : nullptr;
    }
    KG_METHOD void load_b(const JOB &job, int64_t item, int64_t first, int64_t start, int64_t stop,
                          kg_vec<loaded, VECTOR> (&big)[MINE]) const
    {
#pragma unroll
        for (int i = 0; i < MINE; i++) {
            big[i] = kg_vec<loaded, VECTOR>();
            if constexpr (FAST) {
                if (from[i] && start + step(0) < stop)
                    big[i] = kg_load_vec_stream<VECTOR>(from[i] + job.b_k_offset(start + step(0)));
            } else {
#pragma unroll
                for (int lane = 0; lane < VECTOR; lane++)
                    if (first + column(i) < job.columns() && start + step(lane) < stop)
                        big[i].at[lane] = job.b(item, start + step(lane), first + column(i));
            }
        }
    }
    // Converts each element once.
    KG_METHOD void add(const JOB &job, int64_t item, int64_t row, int64_t start, int64_t stop,
                       const kg_vec<loaded, VECTOR> (&big)[MINE])
    {
        kg_vec<loaded_a, VECTOR> small[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            small[r] = kg_vec<loaded_a, VECTOR>();
            if constexpr (FAST_A) {
                if (row + r < job.rows() && start + step(0) < stop)
                    small[r] = kg_load_vec<VECTOR>(job.a_at(item, row + r, start + step(0)));
            } else {
#pragma unroll
                for (int lane = 0; lane < VECTOR; lane++)
                    if (row + r < job.rows() && start + step(lane) < stop)
                        small[r].at[lane] = job.a(item, row + r, start + step(lane));
            }
        }
#pragma unroll
        for (int lane = 0; lane < VECTOR; lane++) {
            compute left[ROWS];
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                left[r] = kg_widen_a<FAST_A>(job, small[r].at[lane]);
#pragma unroll
            for (int i = 0; i < MINE; i++) {
                const compute right = kg_widen_b<FAST>(job, big[i].at[lane]);
#pragma unroll
                for (int r = 0; r < ROWS; r++)
                    sums[r * MINE + i] += left[r] * right;
            }
        }
    }
};

// B is N-major: elements adjacent in memory are adjacent columns.
template <class JOB, bool WHOLE_A, bool WHOLE_B, int ROWS, int COLUMNS, int DEPTH, int THREADS>
struct kg_thin_n_major {
    using compute = typename JOB::compute;
    enum : bool { FAST = WHOLE_B && JOB::PLAIN_B };
    using loaded = kg_either<FAST, typename JOB::element_b, compute>;
    enum : int { VECTOR = 16 / (int)sizeof(typename JOB::element_b), LINE = COLUMNS / VECTOR };
    enum : int { MINE = 1, COUNT = ROWS * VECTOR, GROUPS = THREADS / 32 };
    enum : int { LANES = 32 / LINE, HIGH_BIT = 16, LOW_BIT = LINE };
    static_assert(LINE <= 32 && LINE * DEPTH == THREADS && THREADS % 32 == 0, "whole warps");
    compute sums[COUNT];
    const loaded *from; // the first column, if FAST
    static KG_METHOD int step()
    {
        return threadIdx.x / LINE;
    }
    static KG_METHOD int column(int lane)
    {
        const int at = threadIdx.x % LINE;
        return FAST ? at * VECTOR + lane : lane * LINE + at;
    }
    static KG_METHOD int slot(int i)
    {
        return i / VECTOR * COLUMNS + column(i % VECTOR);
    }
    static KG_METHOD int group()
    {
        return threadIdx.x / 32;
    }
    KG_METHOD void begin(const JOB &job, int64_t item, int64_t first)
    {
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            sums[i] = compute();
        if constexpr (FAST)
            from =
                first + column(0) < job.columns() ? job.b_at(item, 0, first + column(0)) : nullptr;
    }
    KG_METHOD void load_b(const JOB &job, int64_t item, int64_t first, int64_t start, int64_t stop,
                          kg_vec<loaded, VECTOR> (&big)[MINE]) const
    {
        big[0] = kg_vec<loaded, VECTOR>();
        if (start + step() >= stop)
            return;
        if constexpr (FAST) {
            if (from)
                big[0] = kg_load_vec_stream<VECTOR>(from + job.b_k_offset(start + step()));
        } else {
#pragma unroll
            for (int lane = 0; lane < VECTOR; lane++)
                if (first + column(lane) < job.columns())
                    big[0].at[lane] = job.b(item, start + step(), first + column(lane));
        }
    }
    KG_METHOD void add(const JOB &job, int64_t item, int64_t row, int64_t start, int64_t stop,
                       const kg_vec<loaded, VECTOR> (&big)[MINE])
    {
        compute small[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            small[r] = row + r < job.rows() && start + step() < stop
                           ? job.a(item, row + r, start + step())
                           : compute();
#pragma unroll
        for (int lane = 0; lane < VECTOR; lane++) {
            const compute right = kg_widen_b<FAST>(job, big[0].at[lane]);
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                sums[r * VECTOR + lane] += small[r] * right;
        }
    }
};

// A function of a kernel. WHOLE_A, WHOLE_B: an operand that is an array is read in aligned 16-byte
// vectors; no row or column ends within one.
template <bool WHOLE_A, bool WHOLE_B, int ROWS, int COLUMNS, int DEPTH, int STAGES, int THREADS,
          int SPLIT, class JOB>
KG_INLINE void kg_contract_thin(const JOB &job, char *scratch)
{
    using compute = typename JOB::compute;
    using loader = kg_either<JOB::K_MAJOR_B,
                             kg_thin_k_major<JOB, WHOLE_A, WHOLE_B, ROWS, COLUMNS, DEPTH, THREADS>,
                             kg_thin_n_major<JOB, WHOLE_A, WHOLE_B, ROWS, COLUMNS, DEPTH, THREADS>>;
    enum : int { SUMS = ROWS * COLUMNS };
    enum : int { LEFT = loader::COUNT > loader::LANES ? loader::COUNT / loader::LANES : 1 };
    __shared__ compute slots[loader::GROUPS][SUMS];
    const int64_t tall = kg_ceildiv_i64(job.rows(), ROWS);
    const int64_t wide = kg_ceildiv_i64(job.columns(), COLUMNS);
    const int64_t tiles = tall * wide * SPLIT * job.batches();
    for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        int64_t item = tile, from, to;
        const int64_t row = kg_take(&item, tall) * ROWS, column = kg_take(&item, wide) * COLUMNS;
        const int64_t slice = kg_take(&item, SPLIT);
        kg_slice_steps<DEPTH>(job.depth(), SPLIT, slice, &from, &to);
        loader mine;
        mine.begin(job, item, column);
        for (int64_t start = from; start < to; start += DEPTH * STAGES) {
            kg_vec<typename loader::loaded, loader::VECTOR> big[STAGES][loader::MINE];
#pragma unroll
            for (int stage = 0; stage < STAGES; stage++)
                mine.load_b(job, item, column, start + stage * DEPTH, to, big[stage]);
#pragma unroll
            for (int stage = 0; stage < STAGES; stage++)
                mine.add(job, item, row, start + stage * DEPTH, to, big[stage]);
        }
        const int place = kg_reduce_scatter<loader::HIGH_BIT, loader::LOW_BIT>(mine.sums);
#pragma unroll
        for (int i = 0; i < LEFT; i++) // lanes with the same totals write the same
            slots[loader::group()][loader::slot(place + i)] = mine.sums[i];
        __syncthreads();
        for (int i = threadIdx.x; i < SUMS; i += THREADS) {
            compute total = slots[0][i];
#pragma unroll
            for (int group = 1; group < loader::GROUPS; group++)
                total += slots[group][i];
            if (row + i / COLUMNS < job.rows() && column + i % COLUMNS < job.columns())
                kg_contract_finish<SPLIT>(job, scratch, slice, item, row + i / COLUMNS,
                                          column + i % COLUMNS, total);
        }
        __syncthreads();
    }
}
