// The shape of a block of contract_packed.cuh, and how a warp fills its ring of stages, and reads
// what belongs to its columns from one.

// ---- The shape of a block ----

// A warp has 16 * STRIPS columns, a block WARPS_ACROSS times as many; WARPS_ALONG of them divide
// the K indices of a block. GROUP K indices share their scales (0: all do).
template <class NUMBER, int ROWS, int STRIPS, int WARPS_ACROSS, int WARPS_ALONG, int STAGES,
          int GROUP>
struct kg_packed_tile {
    typedef NUMBER number;
    static constexpr int rows = ROWS, strips = STRIPS, stages = STAGES, group = GROUP;
    static constexpr int warps_across = WARPS_ACROSS, warps_along = WARPS_ALONG;
    static constexpr int threads = 32 * WARPS_ACROSS * WARPS_ALONG;
    static constexpr int warp_columns = 16 * STRIPS, columns = warp_columns * WARPS_ACROSS;
    static constexpr int n_tiles = (ROWS + 7) / 8;
    static constexpr int depth = 64, steps = depth / 16; // of a panel
    // Steps of a panel that share their scales, and such runs of a panel.
    static constexpr int run_steps = GROUP % 64 == 0 ? 4 : GROUP % 32 == 0 ? 2 : 1;
    static constexpr int runs = steps / run_steps;
    // Of sums in shared memory: it leads rows that a warp stores at once to different banks.
    static constexpr int pitch = columns + 4;
    // Of a stage, in bytes: panels, a line for each row, and of each run and strip 16 scales and 16
    // zero points of up to a byte.
    static constexpr int panel = 512, line = depth * 2, of_scales = 32, of_zeros = 16;
    static constexpr int rows_at = panel * STRIPS, scales_at = rows_at + line * ROWS;
    static constexpr int zeros_at = scales_at + (GROUP ? runs * STRIPS * of_scales : 0);
    static constexpr int stage = zeros_at + (GROUP ? runs * STRIPS * of_zeros : 0);
    // Of a block: stages, whose place sums take later, and behind both their barriers.
    static constexpr int ring_bytes = threads / 32 * STAGES * stage;
    static constexpr int sum_bytes = WARPS_ALONG * ROWS * pitch * 4;
    static constexpr int barriers_at = ring_bytes > sum_bytes ? ring_bytes : sum_bytes;
#if __CUDA_ARCH__ >= 900
    static constexpr bool has_bulks = ROWS >= 16;
#else
    static constexpr bool has_bulks = false;
#endif
    static_assert(GROUP % 16 == 0, "a step has one scale");
    static_assert(ROWS < 8 || ROWS % 8 == 0, "whole instructions");
};

// ---- Loads ----

// Copies SIZE bytes to shared memory, or zeros, which become visible to the thread after
// kg_copies_wait_but. Other warps may find them in the L1.
template <int SIZE>
KG_INLINE void kg_packed_copy(uint32_t to, const void *from, bool is_there)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("{\n"
                 ".reg .pred misses;\n"
                 "setp.eq.u32 misses, %3, 0;\n"
                 "cp.async.ca.shared.global [%0], [%1], %2, misses;\n"
                 "}" ::"r"(to),
                 "l"(__cvta_generic_to_global(from)), "n"(SIZE), "r"((uint32_t)is_there)
                 : "memory");
#endif
}

// The same of 16 bytes that are read once: other data stays in the L2.
KG_INLINE void kg_packed_copy_once(uint32_t to, const void *from, uint64_t policy)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(to),
                 "l"(__cvta_generic_to_global(from)), "l"(policy)
                 : "memory");
#endif
}

KG_INLINE void kg_packed_put(uint32_t to, uint32_t word)
{
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(to), "r"(word) : "memory");
}

KG_INLINE void kg_packed_put(uint32_t to, uint16_t half)
{
    asm volatile("st.shared.u16 [%0], %1;" ::"r"(to), "h"(half) : "memory");
}

KG_INLINE uint32_t kg_packed_get_byte(uint32_t from)
{
    uint32_t byte;
    asm volatile("ld.shared.u8 %0, [%1];" : "=r"(byte) : "r"(from) : "memory");
    return byte;
}

// A stage of a warp's ring, its barrier, and the phase that the barrier is in.
template <class TILE>
struct kg_packed_place {
    uint32_t stage, full, odd = 0;
    int number = 0;

    KG_METHOD kg_packed_place(uint32_t shared, int warp)
        : stage(shared + warp * TILE::stages * TILE::stage),
          full(shared + TILE::barriers_at + warp * TILE::stages * 8)
    {
    }
    KG_METHOD void move(int stages)
    {
        number += stages;
        stage += stages * TILE::stage;
        full += stages * 8;
    }
    KG_METHOD void next()
    {
        const bool is_last = number + 1 == TILE::stages;
        move(is_last ? 1 - TILE::stages : 1);
        odd ^= is_last;
    }
};

// Panels along K, from `first` to `last`.
struct kg_packed_range {
    uint32_t first, last;
    // One of SHARES of them, of which the last ones may be shorter.
    template <int SHARES>
    KG_METHOD kg_packed_range share(uint32_t number) const
    {
        const uint32_t each = (last - first + SHARES - 1) / SHARES;
        const uint32_t from = min(first + number * each, last);
        return {from, min(from + each, last)};
    }
};

// Of a lane's two columns of a strip.
template <typename T>
struct kg_packed_two {
    T at[2];
};

// Fills one stage of the ring after the other, and reads what lanes have of one. ALIGNED: 16 bytes
// of weights can be copied at once, and panels of strips are adjacent. WHOLE: that, and eight
// elements of rows can be; so can scales and zero points, if they are adjacent.
template <class TILE, bool ALIGNED, bool WHOLE, class JOB, class WEIGHTS>
struct kg_packed_source {
    typedef typename JOB::element_a element;
    static constexpr bool has_groups = TILE::group > 0, has_offset = WEIGHTS::HAS_OFFSET;
    static constexpr bool scales_runs = has_groups && !TILE::number::rounds;
    static constexpr bool copies_scales = WHOLE && has_groups && WEIGHTS::ADJACENT_SCALES;
    static constexpr bool copies_zeros = WHOLE && has_groups && WEIGHTS::ADJACENT_ZEROS;
    static constexpr bool has_bulks = ALIGNED && TILE::has_bulks;
    const JOB &job;
    const WEIGHTS &weights;
    int64_t item, row, column;        // the warp's first ones
    int left;                         // columns from there on
    int k, stop;                      // of the next panel, and the end
    const uint8_t *own;               // words of the next panel of the first strip: the lane's
                                      // or, if there are bulks, the first one
    int64_t strip_pitch, panel_pitch; // bytes
    uint64_t policy;                  // of the L2, for weights
    const element *rows;              // the lane's first row, at the K indices that it copies
    int64_t rows_pitch;               // bytes from there to the lane's next row, the fourth
    int row_count;
    uint32_t row_place;              // of the lane's first copy in a stage
    const uint8_t *scales, *zeros;   // what the lane copies, or a bulk does, at K index 0
    int64_t scale_pitch, zero_pitch; // bytes between groups

    KG_METHOD kg_packed_source(const JOB &of, const WEIGHTS &by, const kg_tile_task &task,
                               int first_column, const kg_packed_range &panels)
        : job(of), weights(by), item(task.item), row(task.row), column(first_column),
          left(min((int)of.columns() - first_column, TILE::warp_columns)),
          k(panels.first * TILE::depth), stop(min(panels.last * TILE::depth, (int)task.stop))
    {
        const int lane = threadIdx.x % 32;
        const int64_t first = by.place(item, 0, column);
        strip_pitch = (by.place(item, 0, column + 16) - first) / 2;
        panel_pitch = (by.place(item, TILE::depth, column) - first) / 2;
        own = reinterpret_cast<const uint8_t *>(by.data()) + first / 2 +
              panels.first * panel_pitch + (has_bulks ? 0 : lane * 16);
        policy = kg_evict_first();
        row_count = min((int)of.rows() - (int)row, TILE::rows);
        const int64_t pitch = of.rows() > 1 ? of.a_at(item, 1, 0) - of.a_at(item, 0, 0) : 0;
        rows = of.a_at(item, row, 0) + k + lane % 8 * 8 + lane / 8 * pitch;
        rows_pitch = pitch * 8;
        row_place = TILE::rows_at + lane / 8 * TILE::line + (lane % 8 ^ lane / 8) * 16;
        // Compilers would derive them anew for every stage.
        asm volatile("" : "+l"(rows_pitch), "+r"(row_place));
        stop = __shfl_sync(0xffffffff, stop, 0); // and all of the range, but for this
        if constexpr (copies_scales) {
            const int64_t place = by.scale_place(item, 0, column);
            scales = reinterpret_cast<const uint8_t *>(by.scales() + place) +
                     (has_bulks ? 0 : lane * 16);
            scale_pitch = (by.scale_place(item, TILE::group, column) - place) * 2;
        }
        if constexpr (copies_zeros) {
            const int64_t place = by.zero_place(item, 0, column);
            zeros = reinterpret_cast<const uint8_t *>(by.zeros()) + place * WEIGHTS::ZERO_BITS / 8 +
                    lane * 4;
            zero_pitch =
                (by.zero_place(item, TILE::group, column) - place) * WEIGHTS::ZERO_BITS / 8;
        }
    }

    KG_METHOD void load_words(uint32_t to) const
    {
        const int lane = threadIdx.x % 32;
        to += lane * 16;
#pragma unroll
        for (int strip = 0; strip < TILE::strips; strip++) {
            if (strip > 0 && strip * 16 >= left)
                break;
            if constexpr (ALIGNED) {
                kg_packed_copy_once(to + strip * TILE::panel, own + strip * TILE::panel, policy);
            } else {
#pragma unroll 1
                for (int word = 0; word < 4; word++) {
                    const uint8_t *from = own + strip * strip_pitch + word * 4;
                    kg_packed_put(to + strip * TILE::panel + word * 4,
                                  from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 |
                                      (uint32_t)from[3] << 24);
                }
            }
        }
    }

    // Panels and scales, by one lane.
    KG_METHOD void load_bulks(const kg_packed_place<TILE> &to) const
    {
        const bool is_wide = left >= TILE::warp_columns;
        const int columns = is_wide ? TILE::warp_columns : left;
        const int bytes = (is_wide ? TILE::strips : (left + 15) / 16) * TILE::panel;
        if (columns <= 0 || !kg_is_elected())
            return;
        kg_tiles_expect(to.full, bytes + (copies_scales ? TILE::runs * columns * 2 : 0));
        kg_tiles_copy_line(to.stage, own, bytes, to.full, policy);
        if constexpr (copies_scales) {
#pragma unroll
            for (int run = 0; run < TILE::runs; run++)
                kg_tiles_copy_line(to.stage + TILE::scales_at +
                                       run * TILE::strips * TILE::of_scales,
                                   scales + (uint32_t)run_at(k, run) / TILE::group * scale_pitch,
                                   columns * 2, to.full, policy);
        }
    }

    KG_METHOD void load_rows(uint32_t to) const
    {
        const int lane = threadIdx.x % 32;
        if constexpr (WHOLE) {
            const bool is_there = k + lane % 8 * 8 < stop;
            const char *from = reinterpret_cast<const char *>(rows);
#pragma unroll
            for (int first = 0; first < TILE::rows; first += 4, from += rows_pitch)
                if (first + lane / 8 < row_count) // rows from the fourth on are turned by four
                    kg_packed_copy<16>(to + first * TILE::line + (row_place ^ first % 8 * 16), from,
                                       is_there);
        } else {
#pragma unroll 1
            for (int i = lane; i < row_count * TILE::depth; i += 32) {
                const int own_row = i / TILE::depth, at = i % TILE::depth;
                uint16_t bits = 0;
                if (k + at < stop)
                    bits =
                        *reinterpret_cast<const uint16_t *>(job.a_at(item, row + own_row, k + at));
                kg_packed_put(to + TILE::rows_at + own_row * TILE::line +
                                  (at / 8 ^ own_row % 8) * 16 + at % 8 * 2,
                              bits);
            }
        }
    }

    // The K index at which a run of the panel from `at` on has its scales.
    KG_METHOD int run_at(int at, int run) const
    {
        return run == 0 ? at : min(at + run * TILE::run_steps * 16, stop - 1);
    }

    KG_METHOD void load_factors(uint32_t stage) const
    {
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int run = 0; run < TILE::runs; run++) {
            const int64_t number = (uint32_t)run_at(k, run) / (has_groups ? TILE::group : 1);
            if constexpr (copies_scales && !has_bulks)
                if (lane < TILE::strips * 2 && lane * 8 < left)
                    kg_packed_copy<16>(stage + TILE::scales_at +
                                           run * TILE::strips * TILE::of_scales + lane * 16,
                                       scales + number * scale_pitch, true);
            if constexpr (copies_zeros)
                if (lane < TILE::strips * WEIGHTS::ZERO_BITS / 2 &&
                    lane * 32 / WEIGHTS::ZERO_BITS < left)
                    kg_packed_copy<4>(stage + TILE::zeros_at + run * TILE::strips * TILE::of_zeros +
                                          lane * 4,
                                      zeros + number * zero_pitch, true);
        }
    }

    KG_METHOD void load(const kg_packed_place<TILE> &to)
    {
        if (k < stop) {
            if constexpr (has_bulks)
                load_bulks(to);
            else
                load_words(to.stage);
            load_rows(to.stage);
            load_factors(to.stage);
        }
        kg_copies_close();
        own += panel_pitch;
        rows += TILE::depth;
        k += TILE::depth;
    }

    // The first of the lane's columns of a strip, 2 * g, g = lane / 4; or, if `second`, the other
    // one.
    KG_METHOD int64_t column_of(int strip, int second) const
    {
        return kg_min_i64(column + strip * 16 + threadIdx.x % 32 / 4 * 2 + second,
                          job.columns() - 1);
    }

    // Two scales that were copied.
    KG_METHOD uint32_t scale_bits_of(uint32_t stage, int run, int strip) const
    {
        return kg_get_shared(stage + TILE::scales_at +
                             (run * TILE::strips + strip) * TILE::of_scales +
                             threadIdx.x % 32 / 4 * 4);
    }

    // Of a run of the panel at `stage`, which begins at K index `at`.
    KG_METHOD kg_packed_two<float> scales_of(uint32_t stage, int at, int run, int strip) const
    {
        if constexpr (copies_scales) {
            const uint32_t two = scale_bits_of(stage, run, strip);
            return {
                {weights.widen_scale((uint16_t)two), weights.widen_scale((uint16_t)(two >> 16))}};
        }
        return {{weights.scale(item, run_at(at, run), column_of(strip, 0)),
                 weights.scale(item, run_at(at, run), column_of(strip, 1))}};
    }

    KG_METHOD kg_packed_two<int> zeros_of(uint32_t stage, int at, int run, int strip) const
    {
        if constexpr (copies_zeros) {
            constexpr int bits = WEIGHTS::ZERO_BITS, mask = (1 << bits) - 1;
            const uint32_t from = stage + TILE::zeros_at + run * TILE::strips * TILE::of_zeros +
                                  strip * 2 * bits + threadIdx.x % 32 / 4 * bits / 4;
            const uint32_t low = kg_packed_get_byte(from);
            const uint32_t high = bits == 8 ? kg_packed_get_byte(from + 1) : low >> 4;
            return {{(int)((low & mask) ^ WEIGHTS::ZERO_FLIP) - (int)WEIGHTS::ZERO_FLIP,
                     (int)(high ^ WEIGHTS::ZERO_FLIP) - (int)WEIGHTS::ZERO_FLIP}};
        }
        return {{weights.zero(item, run_at(at, run), column_of(strip, 0)),
                 weights.zero(item, run_at(at, run), column_of(strip, 1))}};
    }

    KG_METHOD kg_packed_two<float> offsets_of(int at, int run, int strip) const
    {
        return {{weights.offset(item, run_at(at, run), column_of(strip, 0)),
                 weights.offset(item, run_at(at, run), column_of(strip, 1))}};
    }
};
