// A product of few rows with 4-bit weights that were packed for it: docs/packed.md. On tensor cores
// by mma.sync (Ampere and later), bound by reading the weights. The weights struct, numbers and
// epilogue are those of contract_scaled.cuh; weights are again the left operand of the instruction.
//
// A panel has the weights of 64 K indices and 16 columns as the lanes of a warp need them: 16 bytes
// each, a word for each of four instructions, from which pair_of makes registers. Each warp has
// panels, the rows' elements of the same K indices, and their scales and zero points copied to a
// ring of its own in shared memory, several stages ahead. From sm_90 on, and with 16 rows or more,
// one lane copies panels and scales as bulks, and a barrier of the stage counts their bytes: fewer
// instructions beside the products. (With fewer rows these leave room for them, and bulks arrive
// later than copies of 16 bytes.)

// ---- Sums ----

// Of a warp. Of each strip a lane has columns 2g and 2g + 1, and of each tile of eight rows 2t and
// 2t + 1, t = lane % 4: the first column of both, then the other one.
template <class TILE>
struct kg_packed_sums {
    float at[TILE::strips][TILE::n_tiles][4];
    KG_METHOD void clear()
    {
#pragma unroll
        for (int i = 0; i < TILE::strips * TILE::n_tiles * 4; i++)
            at[i / (TILE::n_tiles * 4)][i / 4 % TILE::n_tiles][i % 4] = 0;
    }
};

// Sums of rows, by which offsets are multiplied: products with ones, whose lines are all the same.
template <class TILE, bool HAS_OFFSET>
struct kg_packed_row_sums {
    KG_METHOD void clear()
    {
    }
    KG_METHOD void add(const uint32_t (&)[TILE::n_tiles][2])
    {
    }
    KG_METHOD float times(float, int, int, float total) const
    {
        return total;
    }
};

template <class TILE>
struct kg_packed_row_sums<TILE, true> {
    float at[TILE::n_tiles][4];
    KG_METHOD void clear()
    {
#pragma unroll
        for (int i = 0; i < TILE::n_tiles * 4; i++)
            at[i / 4][i % 4] = 0;
    }
    KG_METHOD void add(const uint32_t (&rows)[TILE::n_tiles][2])
    {
        typedef typename TILE::number::tensor tensor;
        constexpr uint32_t one = kg_scaled_halves<tensor>::pair;
        const uint32_t a[1][4] = {{one, one, one, one}};
#pragma unroll
        for (int n = 0; n < TILE::n_tiles; n++) {
            const uint32_t b[1][2] = {{rows[n][0], rows[n][1]}};
            tensor::template multiply<0>(at[n], a, b);
        }
    }
    // An offset times the sum of a row, more than `total`.
    KG_METHOD float times(float offset, int n, int i, float total) const
    {
        return __fmaf_rn(offset, at[n][i % 2], total);
    }
};

// The rows' operands of a step and the next one, from the lines of a stage.
template <class TILE>
KG_INLINE void kg_packed_get_rows(uint32_t (&to)[2][TILE::n_tiles][2], uint32_t lines, int step)
{
    const int lane = threadIdx.x % 32, chunk = step * 2 + lane / 8;
#pragma unroll
    for (int n = 0; n < TILE::n_tiles; n++) {
        const int row = (n * 8 + lane % 8) % TILE::rows; // fewer than eight are there again
        uint32_t four[4];
        kg_get_matrices(four, lines + row * TILE::line + (chunk ^ row % 8) * 16);
        to[0][n][0] = four[0], to[0][n][1] = four[1];
        to[1][n][0] = four[2], to[1][n][1] = four[3];
    }
}

// The sums of a warp: of the K indices that share the current scales, and of those before, scaled.
template <class TILE, class SOURCE>
struct kg_packed_main {
    typedef typename TILE::number number;
    const SOURCE &source;
    kg_packed_sums<TILE> total, sums;
    kg_packed_row_sums<TILE, SOURCE::has_offset> row_sums;
    // Zero points as the conversion takes them, and their scales, if it does.
    typename number::bias biases[TILE::strips][2];
    kg_scale_watch<number> watches[TILE::strips];

    KG_METHOD kg_packed_main(const SOURCE &from) : source(from)
    {
        total.clear();
        sums.clear();
        row_sums.clear();
    }

    template <typename SCALE>
    KG_METHOD void set_biases_of(int strip, uint32_t stage, int at, int run,
                                 const kg_packed_two<SCALE> &scales)
    {
        const kg_packed_two<int> zeros = source.zeros_of(stage, at, run, strip);
        kg_packed_two<float> offsets = {};
        if constexpr (number::rounds)
            offsets = source.offsets_of(at, run, strip);
        biases[strip][0] = kg_scaled_bias<number, 0>(zeros.at[0], scales.at[0], offsets.at[0]);
        biases[strip][1] = kg_scaled_bias<number, 1>(zeros.at[1], scales.at[1], offsets.at[1]);
    }

    KG_METHOD void set_biases(uint32_t stage, int at, int run)
    {
#pragma unroll
        for (int strip = 0; strip < TILE::strips; strip++) {
            if constexpr (number::takes_bits && SOURCE::copies_scales) {
                const uint32_t two = source.scale_bits_of(stage, run, strip);
                watches[strip].see(two);
                set_biases_of(strip, stage, at, run, kg_packed_two<kg_half>{{{two, 0}, {two, 1}}});
            } else if constexpr (number::rounds) {
                const kg_packed_two<float> scales = source.scales_of(stage, at, run, strip);
                if constexpr (number::takes_bits)
                    watches[strip].see(
                        kg_rounding<typename number::tensor>::two(scales.at[0], scales.at[1]));
                set_biases_of(strip, stage, at, run, scales);
            } else {
                set_biases_of(strip, stage, at, run, kg_packed_two<float>{});
            }
        }
    }

    KG_METHOD void multiply(int strip, uint32_t word, const uint32_t (&rows)[TILE::n_tiles][2])
    {
        const uint32_t a[1][4] = {{number::template pair_of<0>(word, biases[strip][0]),
                                   number::template pair_of<1>(word, biases[strip][1]),
                                   number::template pair_of<2>(word, biases[strip][0]),
                                   number::template pair_of<3>(word, biases[strip][1])}};
#pragma unroll
        for (int n = 0; n < TILE::n_tiles; n++) {
            const uint32_t b[1][2] = {{rows[n][0], rows[n][1]}};
            number::tensor::template multiply<0>(sums.at[strip][n], a, b);
        }
    }

    // Adds the sums of a run to the total, scaled. Weights that are rounded were scaled before:
    // their sums are the total.
    KG_METHOD void close_run(uint32_t stage, int at, int run)
    {
        if constexpr (number::rounds)
            take_sums();
        else
            add_scaled(stage, at, run);
    }
    KG_METHOD void take_sums()
    {
        total = sums;
        if constexpr (number::lowered != 1) {
#pragma unroll
            for (int i = 0; i < TILE::strips * TILE::n_tiles * 4; i++) {
                const int strip = i / (TILE::n_tiles * 4);
                total.at[strip][i / 4 % TILE::n_tiles][i % 4] *= watches[strip].factor(i / 2 % 2);
            }
        }
    }
    KG_METHOD void add_scaled(uint32_t stage, int at, int run)
    {
#pragma unroll
        for (int strip = 0; strip < TILE::strips; strip++) {
            const kg_packed_two<float> scales = source.scales_of(stage, at, run, strip);
            const kg_packed_two<float> offsets = source.offsets_of(at, run, strip);
#pragma unroll
            for (int i = 0; i < TILE::n_tiles * 4; i++) {
                float &of = total.at[strip][i / 4][i % 4];
                of = __fmaf_rn(sums.at[strip][i / 4][i % 4], scales.at[i / 2 % 2], of);
                of = row_sums.times(offsets.at[i / 2 % 2], i / 4, i % 4, of);
            }
        }
        sums.clear();
        row_sums.clear();
    }

    // The panels of a stage, which begin at K index `at`.
    KG_METHOD void multiply_stage(uint32_t stage, int at)
    {
        uint32_t rows[2][TILE::n_tiles][2];
        uint4 words[TILE::strips];
#pragma unroll
        for (int strip = 0; strip < TILE::strips; strip++)
            words[strip] = kg_get_shared_words(stage + strip * TILE::panel + threadIdx.x % 32 * 16);
#pragma unroll
        for (int step = 0; step < TILE::steps; step++) {
            if (step % 2 == 0)
                kg_packed_get_rows<TILE>(rows, stage + TILE::rows_at, step);
            if (SOURCE::has_groups && step % TILE::run_steps == 0)
                set_biases(stage, at, step / TILE::run_steps);
#pragma unroll
            for (int strip = 0; strip < TILE::strips; strip++)
                multiply(strip,
                         step == 0   ? words[strip].x
                         : step == 1 ? words[strip].y
                         : step == 2 ? words[strip].z
                                     : words[strip].w,
                         rows[step % 2]);
            row_sums.add(rows[step % 2]);
            if (SOURCE::scales_runs && (step + 1) % TILE::run_steps == 0)
                close_run(stage, at, step / TILE::run_steps);
        }
    }
};

// The sums of a warp over the source's K indices; `at` is the stage of its ring that is next.
template <class TILE, class SOURCE>
KG_INLINE void kg_packed_main_loop(kg_packed_sums<TILE> &total, SOURCE &source,
                                   kg_packed_place<TILE> &at)
{
    kg_packed_main<TILE, SOURCE> main(source);
    const int stop = source.stop;
    int k = source.k;
    if (k < stop) {
        kg_packed_place<TILE> free = at;
#pragma unroll
        for (int i = 0; i + 1 < TILE::stages; i++, free.next())
            source.load(free);
        if constexpr (!SOURCE::has_groups)
            main.set_biases(at.stage, 0, 0);
#pragma unroll 1
        for (; k < stop; k += TILE::depth) {
            kg_copies_wait_but<TILE::stages - 2>();
            if constexpr (SOURCE::has_bulks)
                kg_tiles_wait(at.full, at.odd);
            __syncwarp(); // copies of all lanes; and none still reads the stage to be filled
            source.load(free);
            main.multiply_stage(at.stage, k);
            free = at;
            at.next();
        }
        if constexpr (!SOURCE::scales_runs)
            main.close_run(at.stage, 0, 0);
    }
    total = main.total;
}

// ---- The kernel ----

// Task `number` of all tiles and their K slices. Tiles with the same columns follow each other.
// There is mostly one row of them, and no division then: nothing is loaded before the task is
// known.
template <class TILE, int SPLIT, class JOB>
KG_INLINE kg_tile_task kg_packed_task_of(const JOB &job, int number, int tall, int wide,
                                         kg_packed_range &panels)
{
    kg_tile_task task;
    task.slice = kg_take(&number, SPLIT);
    task.row = tall > 1 ? kg_take(&number, tall) * TILE::rows : 0;
    task.column = (job.batches() > 1 ? kg_take(&number, wide) : number) * TILE::columns;
    task.item = job.batches() > 1 ? number : 0;
    panels = kg_packed_range{0, ((uint32_t)job.depth() + TILE::depth - 1) / TILE::depth}
                 .template share<SPLIT>(task.slice);
    task.k = panels.first * TILE::depth;
    task.stop = min(panels.last * TILE::depth, (uint32_t)job.depth());
    return task;
}

// Stores the sums of a warp in shared memory: a line for each row.
template <class TILE>
KG_INLINE void kg_packed_stage(float *to, const kg_packed_sums<TILE> &sums)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < TILE::n_tiles * 2; i++) {
        const int row = i / 2 * 8 + lane % 4 * 2 + i % 2;
#pragma unroll
        for (int strip = 0; strip < TILE::strips; strip++)
            if (row < TILE::rows)
                *reinterpret_cast<float2 *>(to + row * TILE::pitch + strip * 16 + lane / 4 * 2) =
                    make_float2(sums.at[strip][i / 2][i % 2], sums.at[strip][i / 2][i % 2 + 2]);
    }
}

// Any number of blocks of TILE::threads threads. K slices store their partial sums in `scratch`:
// [SPLIT, batches, rows, columns]. The warps of a block divide its columns and its K slice.
template <class TILE, int SPLIT, bool ALIGNED, bool WHOLE, class JOB, class WEIGHTS>
KG_INLINE void kg_contract_packed(const JOB &job, const WEIGHTS &weights, char *scratch)
{
    extern __shared__ uint4 kg_scaled_shared[];
    float *shared = reinterpret_cast<float *>(kg_scaled_shared);
    const int warp = threadIdx.x / 32, across = warp % TILE::warps_across;
    const int along = warp / TILE::warps_across;
    const int tall = ((uint32_t)job.rows() + TILE::rows - 1) / TILE::rows;
    const int wide = ((uint32_t)job.columns() + TILE::columns - 1) / TILE::columns;
    const int tasks = (int)job.batches() * tall * wide * SPLIT;
    kg_packed_place<TILE> at(kg_shared_address(shared), warp);
    if constexpr (ALIGNED && TILE::has_bulks) {
        if (threadIdx.x % 32 == 0)
            for (int i = 0; i < TILE::stages; i++)
                kg_tiles_barrier(at.full + i * 8, 1);
        kg_tiles_written();
        __syncwarp();
    }
#pragma unroll 1
    for (int number = blockIdx.x; number < tasks; number += gridDim.x) {
        kg_packed_range panels;
        const kg_tile_task task = kg_packed_task_of<TILE, SPLIT>(job, number, tall, wide, panels);
        const int column = (int)task.column + across * TILE::warp_columns;
        kg_packed_source<TILE, ALIGNED, WHOLE, JOB, WEIGHTS> source(
            job, weights, task, column,
            column < (int)job.columns() ? panels.template share<TILE::warps_along>(along)
                                        : kg_packed_range{0, 0});
        kg_packed_sums<TILE> sums;
        kg_packed_main_loop<TILE>(sums, source, at);
        __syncthreads(); // sums take the place of stages
        kg_packed_stage<TILE>(
            shared + along * (TILE::rows * TILE::pitch) + across * TILE::warp_columns, sums);
        kg_scaled_epilogue<TILE, SPLIT>(job, task, shared, reinterpret_cast<float *>(scratch));
        if constexpr (ALIGNED && TILE::has_bulks)
            kg_tiles_written(); // bulks may take the place of sums
        __syncthreads();
    }
}
