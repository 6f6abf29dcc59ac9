// A product with an operand of quantised weights, on tensor cores by mma.sync (Ampere and later):
// few rows, bound by reading the weights. Weights are the left operand of the instruction, so that
// eight rows (tokens) fill it.
//
// The warps of a block read weights straight into registers, several K steps ahead. The integers,
// less their zero point, are exact in 16 bits and are multiplied as such; the sums of a run of K
// steps with the same scales are then scaled in f32.
//
// Of the 16 K indices of a step, lane 4 * r + c has the four from 4 * c on, of both operands: a
// different order than the instruction's, which is harmless. Its weights are those of adjacent
// columns: any order of columns will do, too.
//
// The weights, a struct that follows in the generated file, has
// - data(): their tensor
// - place(item, step, column): the position of an element, in elements
// - scale(item, step, column): its factor
// - zero(item, step, column): what is subtracted from the element
// - HAS_OFFSET: offset(item, step, column) is added after the scale; else that is 0
// - ADJACENT_SCALES: the scale is an element of an array of 16-bit floats, and those of the columns
//   of a word lie side by side: scales() + scale_place(item, step, column); widen_scale(element) is
//   its value
// - NARROW_SCALES: these are f16
// - ADJACENT_OFFSETS: the same of offsets, with offsets(), offset_place(item, step, column) and
//   widen_offset(element, scale), which multiplies by the scale if that is outside the sum
// - ONE_ZERO: all zero points are the same integer, one that weights can have. ZERO: its bits if
//   weights have 4 bits, else 0
// - ADJACENT_ZEROS: zero points are an array of integers of ZERO_BITS, 4 or 8, and lie like that,
//   beginning at the element zero_place(item, step, column) of zeros(); ZERO_FLIP is what adds half
//   their range to signed ones, or 0

// ---- The shape of a block ----

// A word has 8 or 4 columns, a warp 8 * WORDS of these; GROUP K steps share their scales (0: all
// do), AHEAD steps are loaded before they are needed.
template <class NUMBER, int ROWS, int WORDS, int WARPS_ACROSS, int WARPS_ALONG, int AHEAD,
          int GROUP>
struct kg_scaled_tile {
    typedef NUMBER number;
    static constexpr int rows = ROWS, words = WORDS, ahead = AHEAD, group = GROUP;
    static constexpr int warps_across = WARPS_ACROSS, warps_along = WARPS_ALONG;
    static constexpr int threads = 32 * WARPS_ACROSS * WARPS_ALONG;
    static constexpr int word_columns = 32 / NUMBER::bits, lane_columns = word_columns * WORDS;
    static constexpr int warp_columns = 8 * lane_columns, columns = warp_columns * WARPS_ACROSS;
    static constexpr int m_tiles = lane_columns / 2, n_tiles = ROWS / 8; // of a warp
    static constexpr int batch = 16 * AHEAD;                             // K indices of AHEAD steps
    // K slices, and shares of warps, are whole batches; a batch has one scale.
    static constexpr int depth = batch;
    static constexpr int pitch = columns + 8;
    static_assert(GROUP % batch == 0, "a batch has one scale");
    static_assert(ROWS % 8 == 0, "whole instructions");
};

// ---- Loads ----

// Loads adjacent words that are read once, or leaves `to` as it is.
KG_INLINE void kg_read_once_if(bool reads, uint32_t (&to)[1], const uint8_t *from)
{
    asm volatile("{\n"
                 ".reg .pred reads;\n"
                 "setp.ne.u32 reads, %2, 0;\n"
                 "@reads ld.global.nc.L1::no_allocate.u32 %0, [%1];\n"
                 "}"
                 : "+r"(to[0])
                 : "l"(from), "r"((uint32_t)reads));
}

KG_INLINE void kg_read_once_if(bool reads, uint32_t (&to)[2], const uint8_t *from)
{
    asm volatile("{\n"
                 ".reg .pred reads;\n"
                 "setp.ne.u32 reads, %3, 0;\n"
                 "@reads ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2];\n"
                 "}"
                 : "+r"(to[0]), "+r"(to[1])
                 : "l"(from), "r"((uint32_t)reads));
}

KG_INLINE void kg_read_once_if(bool reads, uint32_t (&to)[4], const uint8_t *from)
{
    asm volatile("{\n"
                 ".reg .pred reads;\n"
                 "setp.ne.u32 reads, %5, 0;\n"
                 "@reads ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];\n"
                 "}"
                 : "+r"(to[0]), "+r"(to[1]), "+r"(to[2]), "+r"(to[3])
                 : "l"(from), "r"((uint32_t)reads));
}

// What a lane needs for a step: its four K indices of its columns, and of its rows.
template <class TILE>
struct kg_scaled_step {
    uint32_t weights[4][TILE::words];
    uint32_t rows[TILE::n_tiles][2];
};

// Adjacent integers that have BITS in all.
template <int BITS>
struct kg_scaled_packed {
    typedef uint32_t type;
};
template <>
struct kg_scaled_packed<16> {
    typedef uint16_t type;
};
template <>
struct kg_scaled_packed<64> {
    typedef uint64_t type;
};

// The zero points of COUNT adjacent columns, the first of which is element `place` of the array.
template <int COUNT, class WEIGHTS>
KG_INLINE void kg_scaled_unpack_zeros(int *to, const WEIGHTS &weights, int64_t place)
{
    typedef typename kg_scaled_packed<COUNT * WEIGHTS::ZERO_BITS>::type packed;
    const packed zeros = *reinterpret_cast<const packed *>(
        reinterpret_cast<const uint8_t *>(weights.zeros()) + place * WEIGHTS::ZERO_BITS / 8);
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        const int zero = (int)(zeros >> i * WEIGHTS::ZERO_BITS) & ((1 << WEIGHTS::ZERO_BITS) - 1);
        to[i] = (zero ^ WEIGHTS::ZERO_FLIP) - WEIGHTS::ZERO_FLIP;
    }
}

// The bits of an element.
template <int BITS>
KG_INLINE uint32_t kg_scaled_element(const uint8_t *data, int64_t at)
{
    return BITS == 8 ? data[at] : data[at >> 1] >> (at & 1) * 4 & 15u;
}

// Loads one step after the other.
template <class TILE, bool WHOLE_WEIGHTS, bool WHOLE_ROWS, class JOB, class WEIGHTS>
struct kg_scaled_source {
    typedef typename JOB::element_a element;
    static constexpr int bits = TILE::number::bits, of_word = TILE::word_columns;
    static constexpr bool has_offset = WEIGHTS::HAS_OFFSET;
    const JOB &job;
    const WEIGHTS &weights;
    int64_t item, column; // the lane's first one
    int k, stop;          // the lane's first K index of the next step, and the end
    bool is_inside;       // there are such columns
    bool has_row[TILE::n_tiles];
    const uint8_t *own;                 // the lane's columns at K index k
    int64_t pitch;                      // bytes between K indices of whole weights
    const element *rows[TILE::n_tiles]; // the lane's rows at K index k
    int64_t row_pitch;

    KG_METHOD kg_scaled_source(const JOB &of, const WEIGHTS &by, const kg_tile_task &task,
                               int64_t first_column, int64_t from, int64_t to)
        : job(of), weights(by), item(task.item),
          column(first_column + threadIdx.x % 32 / 4 * TILE::lane_columns),
          k((int)from + threadIdx.x % 4 * 4), stop((int)to), is_inside(column < of.columns())
    {
        pitch = (by.place(item, 2, column) - by.place(item, 0, column)) * bits / 16;
        own = reinterpret_cast<const uint8_t *>(by.data()) + by.place(item, 0, column) * bits / 8 +
              k * pitch;
        row_pitch = of.a_k_offset(1) - of.a_k_offset(0);
#pragma unroll
        for (int i = 0; i < TILE::n_tiles; i++) {
            const int64_t row = task.row + threadIdx.x % 32 / 4 + i * 8;
            has_row[i] = row < job.rows();
            rows[i] = job.a_at(item, row, 0) + k * (WHOLE_ROWS ? 1 : row_pitch);
        }
    }

    // The n-th of the four K indices. What is beyond the end is any integers: rows are 0 there.
    KG_METHOD void load_weights(uint32_t (&to)[TILE::words], int n) const
    {
        if constexpr (WHOLE_WEIGHTS) { // then depths are multiples of 4
            kg_read_once_if(k < stop && is_inside, to, own + n * pitch);
        } else {
            const int64_t left = k + n < stop ? job.columns() - column : 0;
            const uint8_t *data = reinterpret_cast<const uint8_t *>(weights.data());
#pragma unroll
            for (int i = 0; i < TILE::words; i++)
                to[i] = 0;
#pragma unroll 1
            for (int i = 0; i < TILE::lane_columns && i < left; i++) {
                const uint32_t element =
                    kg_scaled_element<bits>(data, weights.place(item, k + n, column + i));
#pragma unroll
                for (int word = 0; word < TILE::words; word++)
                    to[word] |= i / of_word == word ? element << i % of_word * bits : 0;
            }
        }
    }

    KG_METHOD void load_rows(uint32_t (&to)[2], int n) const
    {
        to[0] = to[1] = 0;
        if (!has_row[n] || k >= stop)
            return;
        if constexpr (WHOLE_ROWS) {
            const uint2 loaded = *reinterpret_cast<const uint2 *>(rows[n]);
            to[0] = loaded.x, to[1] = loaded.y;
        } else {
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (k + i < stop)
                    to[i / 2] |= (uint32_t)rows[n][i * row_pitch] << i % 2 * 16;
        }
    }

    // The zero points and the scales of the lane's columns at a K index, those of a word at once if
    // they are adjacent.
    KG_METHOD void load_zeros(int (&to)[TILE::lane_columns], int at) const
    {
        const int64_t last = job.columns() - 1;
#pragma unroll
        for (int word = 0; word < TILE::words; word++) {
            if constexpr (WHOLE_WEIGHTS && WEIGHTS::ADJACENT_ZEROS) {
                kg_scaled_unpack_zeros<of_word>(
                    to + word * of_word, weights,
                    weights.zero_place(item, at,
                                       kg_min_i64(column + word * of_word, last + 1 - of_word)));
            } else {
#pragma unroll
                for (int i = word * of_word; i < (word + 1) * of_word; i++)
                    to[i] = weights.zero(item, at, kg_min_i64(column + i, last));
            }
        }
    }

    KG_METHOD void load_scales(float (&to)[TILE::lane_columns], int at) const
    {
        const int64_t last = job.columns() - 1;
#pragma unroll
        for (int word = 0; word < TILE::words; word++) {
            if constexpr (WHOLE_WEIGHTS && WEIGHTS::ADJACENT_SCALES) {
                const auto scales = kg_load_vec<of_word>(
                    weights.scales() +
                    weights.scale_place(item, at,
                                        kg_min_i64(column + word * of_word, last + 1 - of_word)));
#pragma unroll
                for (int i = 0; i < of_word; i++)
                    to[word * of_word + i] = weights.widen_scale(scales.at[i]);
            } else {
#pragma unroll
                for (int i = word * of_word; i < (word + 1) * of_word; i++)
                    to[i] = weights.scale(item, at, kg_min_i64(column + i, last));
            }
        }
    }

    // What is added to a column's elements at a K index.
    KG_METHOD void load_offsets(float (&to)[TILE::lane_columns], int at) const
    {
#pragma unroll
        for (int i = 0; i < TILE::lane_columns; i++)
            to[i] = weights.offset(item, at, kg_min_i64(column + i, job.columns() - 1));
    }

    KG_METHOD void load(kg_scaled_step<TILE> &to)
    {
#pragma unroll
        for (int i = 0; i < 4; i++)
            load_weights(to.weights[i], i);
#pragma unroll
        for (int i = 0; i < TILE::n_tiles; i++) {
            load_rows(to.rows[i], i);
            rows[i] += WHOLE_ROWS ? 16 : 16 * row_pitch;
        }
        own += 16 * pitch;
        k += 16;
    }
};

// ---- Sums ----

// Of a warp. Both columns of an instruction tile that a lane has are adjacent, and so are its rows.
template <class TILE>
struct kg_scaled_sums {
    float at[TILE::m_tiles][TILE::n_tiles][4];
    KG_METHOD void clear()
    {
#pragma unroll
        for (int i = 0; i < TILE::m_tiles * TILE::n_tiles * 4; i++)
            at[i / (TILE::n_tiles * 4)][i / 4 % TILE::n_tiles][i % 4] = 0;
    }
};

// The zero points of a lane's columns, as the conversion takes them, and their scales, if it does.
template <class TILE>
struct kg_scaled_biases {
    typedef typename TILE::number number;
    typename number::bias at[TILE::lane_columns];
    template <class SOURCE>
    KG_METHOD void load(const SOURCE &source, int k)
    {
        int zeros[TILE::lane_columns];
        float scales[TILE::lane_columns] = {}, offsets[TILE::lane_columns] = {};
        source.load_zeros(zeros, k);
        if constexpr (number::rounds) {
            source.load_scales(scales, k);
            source.load_offsets(offsets, k);
        }
        // By positions in a quad.
#pragma unroll
        for (int i = 0; i < TILE::lane_columns; i++)
            at[i] = i % 4 == 0   ? kg_scaled_bias<number, 0>(zeros[i], scales[i], offsets[i])
                    : i % 4 == 1 ? kg_scaled_bias<number, 1>(zeros[i], scales[i], offsets[i])
                    : i % 4 == 2 ? kg_scaled_bias<number, 2>(zeros[i], scales[i], offsets[i])
                                 : kg_scaled_bias<number, 3>(zeros[i], scales[i], offsets[i]);
    }
};

template <class TILE>
struct kg_scaled_factors {
    float at[TILE::lane_columns];
    template <class SOURCE>
    KG_METHOD void load(const SOURCE &source, int k)
    {
        source.load_scales(at, k);
    }
};

// What is added to the elements of a run, times the sums of its rows: those are a product with ones
// on the tensor core, of which all lines are the same.
template <class TILE, bool HAS_OFFSET>
struct kg_scaled_offsets {
    KG_METHOD void clear()
    {
    }
    template <class SOURCE>
    KG_METHOD void load(const SOURCE &, int)
    {
    }
    KG_METHOD void multiply(const kg_scaled_step<TILE> &)
    {
    }
    KG_METHOD void add_to(kg_scaled_sums<TILE> &) const
    {
    }
};

template <class TILE>
struct kg_scaled_offsets<TILE, true> {
    float at[TILE::lane_columns];
    float rows[TILE::n_tiles][4];
    KG_METHOD void clear()
    {
#pragma unroll
        for (int i = 0; i < TILE::n_tiles * 4; i++)
            rows[i / 4][i % 4] = 0;
    }
    template <class SOURCE>
    KG_METHOD void load(const SOURCE &source, int k)
    {
        source.load_offsets(at, k);
    }
    KG_METHOD void multiply(const kg_scaled_step<TILE> &step)
    {
        typedef typename TILE::number::tensor tensor;
        constexpr uint32_t one = kg_scaled_halves<tensor>::pair;
        const uint32_t a[1][4] = {{one, one, one, one}};
#pragma unroll
        for (int n = 0; n < TILE::n_tiles; n++) {
            const uint32_t b[1][2] = {{step.rows[n][0], step.rows[n][1]}};
            tensor::template multiply<0>(rows[n], a, b);
        }
    }
    KG_METHOD void add_to(kg_scaled_sums<TILE> &total) const
    {
#pragma unroll
        for (int m = 0; m < TILE::m_tiles; m++)
#pragma unroll
            for (int n = 0; n < TILE::n_tiles; n++)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    total.at[m][n][i] =
                        __fmaf_rn(at[m * 2 + i / 2], rows[n][i % 2], total.at[m][n][i]);
    }
};

// The products of columns TWO and TWO + 1 of four; `first` and `second` have the weights of the
// first and of the second pair of K indices.
template <int TWO, class TILE>
KG_INLINE void
kg_scaled_multiply(float (&sums)[TILE::n_tiles][4], const typename TILE::number::quad &first,
                   const typename TILE::number::quad &second,
                   const typename TILE::number::bias *biases, const kg_scaled_step<TILE> &step)
{
    typedef typename TILE::number number;
    const uint32_t a[1][4] = {{number::template pair_of<TWO>(first, biases[TWO]),
                               number::template pair_of<TWO + 1>(first, biases[TWO + 1]),
                               number::template pair_of<TWO>(second, biases[TWO]),
                               number::template pair_of<TWO + 1>(second, biases[TWO + 1])}};
#pragma unroll
    for (int n = 0; n < TILE::n_tiles; n++) {
        const uint32_t b[1][2] = {{step.rows[n][0], step.rows[n][1]}};
        number::tensor::template multiply<0>(sums[n], a, b);
    }
}

template <class TILE>
KG_INLINE void kg_scaled_multiply(kg_scaled_sums<TILE> &sums, const kg_scaled_step<TILE> &step,
                                  const kg_scaled_biases<TILE> &biases)
{
    typedef typename TILE::number number;
    constexpr int of_word = TILE::word_columns;
#pragma unroll
    for (int word = 0; word < TILE::words; word++) {
#pragma unroll
        for (int four = 0; four < of_word / 4; four++) {
            const unsigned halves = four ? 0x7632 : 0x5410;
            const auto first =
                number::quad_of(step.weights[0][word], step.weights[1][word], halves);
            const auto second =
                number::quad_of(step.weights[2][word], step.weights[3][word], halves);
            const typename number::bias *of = biases.at + word * of_word + four * 4;
            const int tile = (word * of_word + four * 4) / 2;
            kg_scaled_multiply<0, TILE>(sums.at[tile], first, second, of, step);
            kg_scaled_multiply<2, TILE>(sums.at[tile + 1], first, second, of, step);
        }
    }
}

// Adds the sums of a run, scaled. Weights that are rounded were scaled before.
template <class TILE>
KG_INLINE void kg_scaled_add(kg_scaled_sums<TILE> &total, const kg_scaled_sums<TILE> &sums,
                             const kg_scaled_factors<TILE> &factors)
{
#pragma unroll
    for (int m = 0; m < TILE::m_tiles; m++)
#pragma unroll
        for (int n = 0; n < TILE::n_tiles; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                total.at[m][n][i] =
                    TILE::number::rounds
                        ? sums.at[m][n][i]
                        : __fmaf_rn(sums.at[m][n][i], factors.at[m * 2 + i / 2], total.at[m][n][i]);
}

// The sums of a warp over the K indices from `k` on, which begins a batch and is the source's next.
template <class TILE, class SOURCE>
KG_INLINE void kg_scaled_main_loop(kg_scaled_sums<TILE> &total, SOURCE &source, int k)
{
    kg_scaled_step<TILE> steps[TILE::ahead];
    kg_scaled_sums<TILE> sums;
    kg_scaled_biases<TILE> biases;
    kg_scaled_factors<TILE> factors;
    kg_scaled_offsets<TILE, SOURCE::has_offset> offsets;
    total.clear();
    sums.clear();
    offsets.clear();
    if (k >= source.stop)
        return;
#pragma unroll
    for (int i = 0; i < TILE::ahead; i++) {
#pragma unroll
        for (int word = 0; word < 4 * TILE::words; word++)
            steps[i].weights[word / TILE::words][word % TILE::words] = 0;
        source.load(steps[i]);
    }
    biases.load(source, k);
    factors.load(source, k);
    offsets.load(source, k);
#pragma unroll 1
    for (;;) {
#pragma unroll
        for (int i = 0; i < TILE::ahead; i++) {
            __syncwarp(); // mma needs converged lanes, and loads may make them diverge
            kg_scaled_multiply<TILE>(sums, steps[i], biases);
            offsets.multiply(steps[i]);
            source.load(steps[i]);
        }
        k += TILE::batch;
        if (k >= source.stop)
            break;
        if (TILE::group > 0 && k % TILE::group == 0) {
            if constexpr (!TILE::number::rounds) {
                kg_scaled_add<TILE>(total, sums, factors);
                offsets.add_to(total);
                sums.clear();
                offsets.clear();
            }
            biases.load(source, k);
            factors.load(source, k);
            offsets.load(source, k);
        }
    }
    kg_scaled_add<TILE>(total, sums, factors);
    offsets.add_to(total);
}

// ---- The epilogue ----

// Stores the sums of a warp in shared memory: a line for each row.
template <class TILE>
KG_INLINE void kg_scaled_stage(float *to, const kg_scaled_sums<TILE> &sums)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int n = 0; n < TILE::n_tiles; n++)
#pragma unroll
        for (int row = 0; row < 2; row++)
#pragma unroll
            for (int m = 0; m < TILE::m_tiles; m += 2) {
                float *at = to + (n * 8 + lane % 4 * 2 + row) * TILE::pitch +
                            lane / 4 * TILE::lane_columns + m * 2;
                *reinterpret_cast<float4 *>(at) =
                    make_float4(sums.at[m][n][row], sums.at[m][n][2 + row], sums.at[m + 1][n][row],
                                sums.at[m + 1][n][2 + row]);
            }
}

// Eight sums of this block, those of its warps added up in a fixed order.
template <class TILE>
KG_INLINE kg_row8 kg_scaled_row8(const float *from)
{
    kg_row8 total = kg_row8_load(from);
#pragma unroll
    for (int warp = 1; warp < TILE::warps_along; warp++) {
        const kg_row8 more = kg_row8_load(from + warp * TILE::rows * TILE::pitch);
#pragma unroll
        for (int i = 0; i < 8; i++)
            total.at[i] += more.at[i];
    }
    return total;
}

// Adds up what the warps staged and finishes the elements. Sums that are not finite are computed
// again: scales may be infinite.
template <class TILE, int SPLIT, class JOB>
KG_INLINE void kg_scaled_epilogue(const JOB &job, const kg_tile_task &task, float *shared,
                                  float *scratch)
{
    constexpr int per_row = TILE::columns / 8, units = TILE::rows * per_row;
    constexpr int turns = (units + TILE::threads - 1) / TILE::threads;
    __syncthreads();
#pragma unroll 1
    for (int turn = 0; turn < turns; turn++) {
        const int unit = turn * TILE::threads + threadIdx.x, at = unit < units ? unit : 0;
        const int64_t row = task.row + at / per_row, column = task.column + at % per_row * 8;
        const int count =
            unit < units ? kg_row_count<8>(row, job.rows(), column, job.columns()) : 0;
        kg_row8 sums8 =
            kg_scaled_row8<TILE>(shared + at / per_row * TILE::pitch + at % per_row * 8);
        kg_row_recompute(job, sums8, task, row, column, count, 0.0f);
        if (count == 0)
            continue;
        if constexpr (SPLIT == 1)
            kg_row_store(job, sums8, task.item, row, column, count);
        else
            kg_row8_store_partial(
                scratch +
                    ((task.slice * job.batches() + task.item) * job.rows() + row) * job.columns() +
                    column,
                sums8, count);
    }
}

// ---- The kernel ----

// Any number of blocks of TILE::threads threads. K slices store their partial sums in `scratch`:
// [SPLIT, batches, rows, columns]. The warps of a block divide its columns and its K slice.
template <class TILE, int SPLIT, bool WHOLE_WEIGHTS, bool WHOLE_ROWS, class JOB, class WEIGHTS>
KG_INLINE void kg_contract_scaled(const JOB &job, const WEIGHTS &weights, char *scratch)
{
    extern __shared__ uint4 kg_scaled_shared[];
    float *shared = reinterpret_cast<float *>(kg_scaled_shared);
    const int warp = threadIdx.x / 32, across = warp % TILE::warps_across;
    const int along = warp / TILE::warps_across;
    const int64_t tall = (job.rows() + TILE::rows - 1) / TILE::rows;
    const int64_t wide = (job.columns() + TILE::columns - 1) / TILE::columns;
    const int64_t tasks = job.batches() * tall * wide * SPLIT;
#pragma unroll 1
    for (int64_t number = blockIdx.x; number < tasks; number += gridDim.x) {
        const kg_tile_task task = kg_tile_task_of<TILE, SPLIT, false, 0>(job, number, tall, wide);
        int64_t from, to;
        kg_slice_steps<TILE::depth>(task.stop - task.k, TILE::warps_along, along, &from, &to);
        kg_scaled_source<TILE, WHOLE_WEIGHTS, WHOLE_ROWS, JOB, WEIGHTS> source(
            job, weights, task, task.column + across * TILE::warp_columns, task.k + from,
            task.k + to);
        kg_scaled_sums<TILE> sums;
        kg_scaled_main_loop<TILE>(sums, source, (int)(task.k + from));
        __syncwarp();
        kg_scaled_stage<TILE>(
            shared + along * (TILE::rows * TILE::pitch) + across * TILE::warp_columns, sums);
        kg_scaled_epilogue<TILE, SPLIT>(job, task, shared, reinterpret_cast<float *>(scratch));
        __syncthreads();
    }
}
