// The words of weights of contract_scaled_wgmma.cuh: where a lane finds its own in a stage, and how
// they become left operands of its products.

// The left operands of a K step, of one or two instructions.
template <class Block>
using kg_tall_left = uint32_t[Block::m_tiles][4];

// Where a lane finds its words of weights in a stage: those of K indices 2 * t and 2 * t + 1 of a
// step; eight indices further they are 1024 bytes further. Chunks of 16 bytes are swizzled.
template <class Block>
struct kg_tall_words {
    static constexpr int count = 4; // of a step
    const uint32_t halves;          // which of a word are the lane's
    uint32_t even, odd;
    KG_METHOD explicit kg_tall_words(int column) // the first of the lane's
        : halves(column % 8 ? 0x7632 : 0x5410)
    {
        const uint32_t line = threadIdx.x % 4 * 2, byte = column * Block::bits / 8;
        const uint32_t chunk = byte / 16 % 8, word = byte / 4 % 4;
        const uint32_t box = Block::row_bytes + byte / 128 * Block::box_bytes;
        even = box + line * 128 + (chunk ^ line) * 16 + word * 4;
        odd = box + (line + 1) * 128 + (chunk ^ (line + 1)) * 16 + word * 4;
    }
    // Those of a step of the stage at `address`.
    KG_METHOD void load(uint32_t (&to)[count], uint32_t address, int step) const
    {
        to[0] = kg_tall_load_shared<4>(address + even + step * 2048);
        to[1] = kg_tall_load_shared<4>(address + odd + step * 2048);
        to[2] = kg_tall_load_shared<4>(address + even + step * 2048 + 1024);
        to[3] = kg_tall_load_shared<4>(address + odd + step * 2048 + 1024);
    }
    // Of words that are used no earlier than here, in a run of a batch; ZERO takes the place of
    // those not kept.
    template <class WEIGHTS>
    KG_METHOD void convert(kg_tall_left<Block> &to, uint32_t (&words)[count],
                           const kg_tall_lane<Block, WEIGHTS> &lane, int run) const
    {
        typedef typename Block::number number;
        constexpr uint32_t zero = WEIGHTS::ZERO;
        const typename number::bias *biases = lane.biases[run];
        const uint32_t kept = lane.kept[0];
        asm volatile("" : "+r"(words[0]), "+r"(words[1]), "+r"(words[2]), "+r"(words[3]));
        auto first = number::quad_of(words[0], words[1], halves);
        auto second = number::quad_of(words[2], words[3], halves);
        // Of floats, those not kept take long to look at; scales of 0 are rare.
        if (Block::scales_sums && (!number::has_specials || lane.leaves_out)) {
            first = number::template leave_out<zero>(first, kept);
            second = number::template leave_out<zero>(second, kept);
        }
        to[0][0] = number::template pair_of<0>(first, biases[0]);
        to[0][1] = number::template pair_of<1>(first, biases[1]);
        to[0][2] = number::template pair_of<0>(second, biases[0]);
        to[0][3] = number::template pair_of<1>(second, biases[1]);
        to[1][0] = number::template pair_of<2>(first, biases[2]);
        to[1][1] = number::template pair_of<3>(first, biases[3]);
        to[1][2] = number::template pair_of<2>(second, biases[2]);
        to[1][3] = number::template pair_of<3>(second, biases[3]);
    }
};

// The same where weights are adjacent along K: for each of the lane's columns the word with K
// indices 2 * t and 2 * t + 1 of a step, and the one with those eight further. A line in shared
// memory is a column, and four columns of a lane are 64 lines apart.
template <class Block>
struct kg_tall_lines {
    static constexpr int count = 8; // of a step
    static constexpr int line = Block::line_bytes, step_bytes = 2 * Block::bits;
    const uint32_t select; // which elements of a word are the lane's
    uint32_t place, swizzle;
    KG_METHOD explicit kg_tall_lines(int column) // the first of the lane's
        : select(Block::number::line_select(threadIdx.x % 4))
    {
        const uint32_t number = column / 4;
        // Chunks of 16 bytes are swizzled by the bits of the line that say which 128 bytes it is.
        swizzle = number * line / 128 % (line / 16) * 16;
        place = Block::row_bytes + number * line + (Block::bits == 8 ? threadIdx.x % 4 / 2 * 4 : 0);
    }
    KG_METHOD void load(uint32_t (&to)[count], uint32_t address, int step) const
    {
        const uint32_t from =
            address + place + (step * step_bytes / 16 * 16 ^ swizzle) + step * step_bytes % 16;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if constexpr (Block::bits == 4) {
                asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];"
                             : "=r"(to[i * 2]), "=r"(to[i * 2 + 1])
                             : "r"(from + i * 64 * line)
                             : "memory");
            } else {
                to[i * 2] = kg_tall_load_shared<4>(from + i * 64 * line);
                to[i * 2 + 1] = kg_tall_load_shared<4>(from + i * 64 * line + 8);
            }
        }
    }
    template <class WEIGHTS>
    KG_METHOD void convert(kg_tall_left<Block> &to, uint32_t (&words)[count],
                           const kg_tall_lane<Block, WEIGHTS> &lane, int run) const
    {
        typedef typename Block::number number;
#pragma unroll
        for (int i = 0; i < count; i++)
            asm volatile("" : "+r"(words[i]));
        if constexpr (number::has_specials) {
            if (lane.leaves_out) {
#pragma unroll
                for (int i = 0; i < count; i++)
                    words[i] = number::leave_out_of(words[i], lane.masks[i / 2]);
            }
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const uint32_t mask = Block::scales_sums ? lane.masks[i] : number::line_mask;
            to[i / 2][i % 2] = number::line_pair(words[i * 2], select, mask, lane.biases[run][i]);
            to[i / 2][i % 2 + 2] =
                number::line_pair(words[i * 2 + 1], select, mask, lane.biases[run][i]);
        }
    }
};

// The same of packed weights: a lane's words of the consumer's panels, which are operands of its
// instructions as they are.
template <class Block>
struct kg_tall_panels {
    static constexpr int count = Block::m_tiles; // of a step
    uint32_t place;
    KG_METHOD explicit kg_tall_panels(int column) // the first of the lane's
        : place(Block::row_bytes + column / (16 * count) * 512 * count + threadIdx.x % 32 * 16)
    {
    }
    // Those of all steps of the stage.
    KG_METHOD void load_stage(uint32_t (&to)[4][count], uint32_t address) const
    {
#pragma unroll
        for (int i = 0; i < count; i++)
            asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(to[0][i]), "=r"(to[1][i]), "=r"(to[2][i]), "=r"(to[3][i])
                         : "r"(address + place + i * 512)
                         : "memory");
    }
    template <class WEIGHTS>
    KG_METHOD void convert(kg_tall_left<Block> &to, uint32_t (&words)[count],
                           const kg_tall_lane<Block, WEIGHTS> &lane, int run) const
    {
        typedef typename Block::number number;
        constexpr uint32_t zero = WEIGHTS::ZERO;
#pragma unroll
        for (int i = 0; i < count; i++) {
            const typename number::bias &first = lane.biases[run][i * 2];
            const typename number::bias &second = lane.biases[run][i * 2 + 1];
            asm volatile("" : "+r"(words[i]));
            uint32_t quad = words[i];
            if constexpr (Block::scales_sums)
                quad = number::template leave_out<zero>(quad, lane.kept[i]);
            to[i][0] = number::template pair_of<0>(quad, first);
            to[i][1] = number::template pair_of<1>(quad, second);
            to[i][2] = number::template pair_of<2>(quad, first);
            to[i][3] = number::template pair_of<3>(quad, second);
        }
    }
};

template <class Block, bool LINES, bool PANELS>
struct kg_tall_source {
    typedef kg_tall_words<Block> type;
};
template <class Block>
struct kg_tall_source<Block, true, false> {
    typedef kg_tall_lines<Block> type;
};
template <class Block>
struct kg_tall_source<Block, false, true> {
    typedef kg_tall_panels<Block> type;
};
