// What a lane of contract_scaled_wgmma.cuh knows of its columns: scales, zero points and offsets of
// the run of K indices that is multiplied.

// 1 / s, as exactly as one rounding allows. Infinite or NaN if a scale is, or is very small.
KG_INLINE float kg_tall_inverse(float s)
{
    float inverse;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(s));
    return __fmaf_rn(inverse, __fmaf_rn(-s, inverse, 1.0f), inverse);
}

// A byte from shared memory, two, or four.
template <int BYTES>
KG_INLINE uint32_t kg_tall_load_shared(uint32_t address)
{
    uint32_t word;
    if constexpr (BYTES == 1) {
        asm volatile("ld.shared.u8 %0, [%1];" : "=r"(word) : "r"(address) : "memory");
        return word;
    }
    if constexpr (BYTES == 2) {
        uint16_t half;
        asm volatile("ld.shared.u16 %0, [%1];" : "=h"(half) : "r"(address) : "memory");
        return half;
    }
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(address) : "memory");
    return word;
}

// What a lane knows of its columns, four or two, of which Block::adjacent are.
template <class Block, class WEIGHTS>
struct kg_tall_lane {
    // Scales that are not f16 may be so far apart that sums in units of one underflow in units of
    // the other.
    static constexpr bool is_watched = Block::scales_sums && !WEIGHTS::NARROW_SCALES;
    const WEIGHTS &weights;
    int64_t item, column, last; // the first of its columns; the last one of the output
    int depth;
    uint32_t place; // of the first column in the tile
    typedef typename Block::number number;
    static constexpr bool takes_bits = number::takes_bits && Block::staged; // of scales
    static constexpr int count = Block::of_lane;
    typename number::bias biases[Block::batch_runs][count];
    float unit[count]; // the latest scales that are not 0
    // Elements of a quad whose scale is not 0; of panels, of either one's.
    uint32_t kept[2] = {0xffffffff, 0xffffffff};
    bool leaves_out = false;              // of floats: some lane of the warp has others
    float least = INFINITY, greatest = 0; // of all scales
    float offset[count];                  // what is added to elements of the run, scaled
    bool is_lost = false;                 // an offset was too small for the unit
    kg_scale_watch<number> watches[count / 2];
    uint32_t masks[count]; // of lines: the bits of elements whose scale is not 0
    // What does not come through the ring is loaded a run ahead.
    static constexpr bool looks_ahead = Block::has_runs && !Block::staged;
    float next_scales[count], next_offsets[count];
    int next_zeros[count];

    KG_METHOD kg_tall_lane(const WEIGHTS &weights_, const kg_tile_task &task, int column_,
                           int64_t columns)
        : weights(weights_), item(task.item), column(task.column + column_), last(columns - 1),
          depth((int)task.stop), place(column_)
    {
#pragma unroll
        for (int i = 0; i < count; i++) {
            unit[i] = 1;
            offset[i] = 0;
            masks[i] = Block::number::line_mask;
        }
    }
    // The column of element `i` of the lane's.
    KG_METHOD int64_t column_of(int i) const
    {
        return kg_min_i64(column + i / 2 * Block::apart + i % 2, last);
    }
    // The 16-bit elements of its columns in a line of a stage, two by two.
    KG_METHOD void load_pairs(uint32_t (&to)[count / 2], uint32_t line) const
    {
        if constexpr (Block::panels) {
#pragma unroll
            for (int i = 0; i < count / 2; i++)
                to[i] = kg_tall_load_shared<4>(line + (place + i * Block::apart) * 2);
        } else {
            asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];"
                         : "=r"(to[0]), "=r"(to[1])
                         : "r"(line + place * 2)
                         : "memory");
        }
    }
    KG_METHOD void load_halves(uint16_t (&to)[count], uint32_t line) const
    {
        uint32_t pairs[count / 2];
        load_pairs(pairs, line);
#pragma unroll
        for (int i = 0; i < count; i++)
            to[i] = (uint16_t)(pairs[i / 2] >> i % 2 * 16);
    }
    KG_METHOD void load_scales(float (&scales)[count], uint32_t address, int run, int k) const
    {
        if constexpr (Block::staged) {
            uint16_t halves[count];
            load_halves(halves, address + Block::scales_at + run * Block::columns * 2);
#pragma unroll
            for (int i = 0; i < count; i++)
                scales[i] = weights.widen_scale(halves[i]);
        } else {
#pragma unroll
            for (int i = 0; i < count; i++)
                scales[i] = looks_ahead ? next_scales[i] : weights.scale(item, k, column_of(i));
        }
    }
    // Offsets of columns with these scales.
    KG_METHOD void load_offsets(const float (&scales)[count], uint32_t address, int run, int k)
    {
        if constexpr (Block::stages_offsets) {
            uint16_t halves[count];
            load_halves(halves, address + Block::offsets_at + run * Block::columns * 2);
#pragma unroll
            for (int i = 0; i < count; i++)
                offset[i] = weights.widen_offset(halves[i], scales[i]);
        } else if constexpr (WEIGHTS::HAS_OFFSET || Block::rounds) {
#pragma unroll
            for (int i = 0; i < count; i++)
                offset[i] = looks_ahead ? next_offsets[i] : weights.offset(item, k, column_of(i));
        }
    }
    KG_METHOD void load_zeros(int (&zeros)[count], uint32_t address, int run, int k) const
    {
        if constexpr (Block::stages_zeros) {
            constexpr int bits = WEIGHTS::ZERO_BITS;
            const uint32_t from =
                address + Block::zeros_at + (run * Block::columns + place) * bits / 8;
            constexpr int at_once = Block::panels ? 2 : 4; // of a word
#pragma unroll
            for (int i = 0; i < count; i += at_once) {
                const uint32_t word =
                    kg_tall_load_shared<at_once * bits / 8>(from + i / 2 * Block::apart * bits / 8);
#pragma unroll
                for (int j = 0; j < at_once; j++)
                    zeros[i + j] =
                        (int)((word >> j * bits & ((1u << bits) - 1)) ^ WEIGHTS::ZERO_FLIP) -
                        WEIGHTS::ZERO_FLIP;
            }
        } else {
#pragma unroll
            for (int i = 0; i < count; i++)
                zeros[i] = looks_ahead ? next_zeros[i] : weights.zero(item, k, column_of(i));
        }
    }
    // Loads those of the run of K index `k`, which is taken next.
    KG_METHOD void look_ahead(int k)
    {
        if constexpr (looks_ahead) {
            k = k < depth ? k : depth - 1;
#pragma unroll
            for (int i = 0; i < count; i++) {
                const int64_t at = column_of(i);
                next_scales[i] = weights.scale(item, k, at);
                next_zeros[i] = weights.zero(item, k, at);
                next_offsets[i] = weights.offset(item, k, at);
            }
        }
    }
    // Takes zero points, scales and offsets of the run of K index `k`, at `at` in its stage, which
    // begins at `address`, as the `turn`-th of a batch. `by`: what sums are multiplied by, which
    // then are in units of the new scales; `more`: what is added to them for each unit of the sum
    // of a row, in the run before. Integers whose scale is 0 are left out of the sums: their zero
    // point takes their place. `is_there`: the stage was loaded, or what is taken is of no use.
    KG_METHOD void take(uint32_t address, int k, int at, int turn, bool is_there,
                        float (&by)[count], float (&more)[count])
    {
        int run = 0, zeros[count];
        if constexpr (Block::staged && Block::group % 64 != 0)
            run = 64 % Block::group == 0 ? at / Block::group
                                         : k / Block::group - k / 64 * 64 / Block::group;
        k = k < depth ? k : depth - 1;
        load_zeros(zeros, address, run, k);
        if constexpr (Block::scales_sums) {
            float scales[count];
            load_scales(scales, address, run, k);
            kept[0] = kept[1] = 0xffffffff;
#pragma unroll
            for (int i = 0; i < count; i++) {
                const bool is_left_out = scales[i] == 0;
                const int panel = Block::panels ? i / 2 : 0, at = Block::panels ? i % 2 : i;
                uint32_t elements = Block::number::kept_of(at);
                if constexpr (Block::panels)
                    elements |= Block::number::kept_of(at + 2);
                masks[i] = is_left_out ? 0 : Block::number::line_mask;
                const float scale = is_left_out ? unit[i] : scales[i];
                kept[panel] = is_left_out ? kept[panel] & ~elements : kept[panel];
                if constexpr (!WEIGHTS::ONE_ZERO)
                    zeros[i] = is_left_out && !Block::lines ? Block::number::middle
                               : is_left_out                ? 0
                                                            : zeros[i];
                const float inverse = kg_tall_inverse(scale);
                by[i] = __fmul_rn(unit[i], inverse);
                unit[i] = scale;
                if constexpr (WEIGHTS::HAS_OFFSET) {
                    more[i] = __fmul_rn(offset[i] / Block::number::lowered, inverse);
                    if constexpr (is_watched)
                        is_lost |= offset[i] != 0 && fabsf(more[i]) < 0x1p-60f;
                }
                if constexpr (is_watched) {
                    least = fminf(least, fabsf(scale));
                    greatest = fmaxf(greatest, fabsf(scale));
                }
            }
            load_offsets(scales, address, run, k);
            if constexpr (Block::number::has_specials)
                leaves_out = __any_sync(0xffffffff, ~kept[0]);
        } else {
            if constexpr (!takes_bits)
                load_scales(unit, address, run, k);
            load_offsets(unit, address, run, k);
        }
        if constexpr (takes_bits) {
            uint32_t pairs[count / 2];
            kg_half halves[count];
            load_pairs(pairs, address + Block::scales_at + run * Block::columns * 2);
#pragma unroll
            for (int i = 0; i < count; i++)
                halves[i] = {pairs[i / 2], i % 2};
            watch(pairs, is_there);
            set_biases(biases[turn], zeros, halves);
        } else {
            if constexpr (number::takes_bits) {
                uint32_t pairs[count / 2];
#pragma unroll
                for (int i = 0; i < count / 2; i++)
                    pairs[i] =
                        kg_rounding<typename number::tensor>::two(unit[i * 2], unit[i * 2 + 1]);
                watch(pairs, is_there);
            }
            set_biases(biases[turn], zeros, unit);
        }
    }
    KG_METHOD void watch(const uint32_t (&pairs)[count / 2], bool is_there)
    {
#pragma unroll
        for (int i = 0; i < count / 2; i++)
            watches[i].see(is_there ? pairs[i] : 0);
    }
    // `scales`: for numbers that round.
    template <typename SCALE>
    KG_METHOD void set_biases(typename number::bias (&to)[count], const int (&zeros)[count],
                              const SCALE (&scales)[count])
    {
        if constexpr (Block::lines) {
#pragma unroll
            for (int i = 0; i < count; i++)
                to[i] = kg_scaled_line_bias<number>(zeros[i], scales[i], offset[i]);
        } else {
            to[0] = kg_scaled_bias<number, 0>(zeros[0], scales[0], offset[0]);
            to[1] = kg_scaled_bias<number, 1>(zeros[1], scales[1], offset[1]);
        }
        if constexpr (!Block::lines && count > 2) {
            to[2] = kg_scaled_bias<number, 2>(zeros[2], scales[2], offset[2]);
            to[3] = kg_scaled_bias<number, 3>(zeros[3], scales[3], offset[3]);
        }
    }
    // What the sums of column `i` are multiplied by at the end; NaN if they may have underflowed.
    KG_METHOD float factor(int i) const
    {
        if constexpr (Block::rounds)
            return watches[i / 2].factor(i % 2);
        if constexpr (is_watched)
            if (!(greatest <= least * 0x1p40f && greatest < 0x1p125f && least > 0x1p-125f) ||
                is_lost)
                return NAN;
        return unit[i];
    }
};
