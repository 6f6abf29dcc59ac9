// Integers of 4 bits as 16-bit floats for tensor cores, exact, less their zero points;
// scaled_bytes.cuh has the same for elements of 8 bits. A number type has
// - bits: of an element in memory
// - quad, quad_of(low, high, select): four adjacent columns at two adjacent K indices, of the words
//   that have them; `select` is which half of the words they are, if these have eight
// - kept_of(column): the bits of one of the four in `kept`; leave_out<ZERO>(quad, kept) puts zero
//   points in place of those not kept, which then are ZERO or, without ONE_ZERO, `middle`
// - bias, bias_of<AT>(zero), pair_of<AT>(quad, bias): column AT at the two K indices
// - lowered: what products are multiplied by
// - rounds, takes_bits: they are scaled, too; see scaled_rounded.cuh
// and, of weights that are adjacent along K, of which a word has the elements of one column,
// - line_select(lane): which of a word's elements a lane of four has, the two with its number
// - line_mask: their bits, where a mask makes them 0, or the type looks at words only
// - line_bias(zero), line_pair(word, select, mask, bias): those two. With a mask of 0 they are 0
// less
//   the zero point

// One, twice, as the type of a tensor core's operands, and f32 of either one of two.
template <class TENSOR>
struct kg_scaled_halves {
    static constexpr uint32_t pair = 0x3c003c00;
    KG_INLINE float low(uint32_t two)
    {
        return kg_unpack_f16((uint16_t)two);
    }
    KG_INLINE float high(uint32_t two)
    {
        return kg_unpack_f16((uint16_t)(two >> 16));
    }
};
template <>
struct kg_scaled_halves<kg_tensor_bf16> {
    static constexpr uint32_t pair = 0x3f803f80;
    KG_INLINE float low(uint32_t two)
    {
        return kg_from_bits_f32(two << 16);
    }
    KG_INLINE float high(uint32_t two)
    {
        return kg_from_bits_f32(two & 0xffff0000);
    }
};

// (word & MASK) ^ WITH, in one instruction.
template <uint32_t MASK, uint32_t WITH>
KG_INLINE uint32_t kg_mask_flip(uint32_t word)
{
    uint32_t result;
    asm("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(result) : "r"(word), "n"(MASK), "n"(WITH));
    return result;
}

// Of a quad, column i is at bit 4 * i and, of the second K index, 16 bits further.
struct kg_scaled_quads {
    typedef uint32_t quad, bias;
    static constexpr int bits = 4, middle = 0;
    static constexpr bool rounds = false, takes_bits = false;
    static constexpr bool has_specials = false;
    KG_INLINE quad quad_of(uint32_t low, uint32_t high, uint32_t select)
    {
        return __byte_perm(low, high, select);
    }
    KG_INLINE uint32_t kept_of(int column)
    {
        return 0x000f000fu << column * 4;
    }
    template <uint32_t ZERO>
    KG_INLINE quad leave_out(quad of, uint32_t kept)
    {
        return (of & kept) | (ZERO * 0x11111111u & ~kept);
    }
};

// What 4-bit integers, two of a word at a time, are made of: the one at bit 4 * AT and the one 16
// bits further, less their zero points. FLIPPED: the integers are signed; 8 is added to them and
// their zero points. SMALL: a zero point is then 0 to 63.
template <bool FLIPPED, bool SMALL>
struct kg_scaled_f16 : kg_scaled_quads {
    typedef kg_tensor_f16 tensor;
    static constexpr float lowered = 1;
    // 1024 + q is 0x6400 + q, and 1024 + 16 * q is 0x6400 + (q << 4): the latter, at odd AT, is
    // divided by 16 again. 64 + z is 0x5400 + (z << 4).
    template <int AT>
    KG_INLINE uint32_t bias_of(int zero)
    {
        const int z = FLIPPED ? zero + 8 : zero;
        if constexpr (SMALL)
            return (AT % 2 ? 0xd400u + ((uint32_t)z << 4) : 0x6400u + (uint32_t)z) * 0x10001u;
        else
            return kg_pack_f16(AT % 2 ? -(64.0f + z) : 1024.0f + z) * 0x10001u;
    }
    // Of a byte, the first integer is at bit 0, and the second, in the upper half, at bit 4.
    static constexpr uint32_t line_mask = 0x00f0000f;
    KG_INLINE uint32_t line_select(int lane)
    {
        return lane * 0x1111;
    }
    KG_INLINE uint32_t line_bias(int zero)
    {
        const int z = FLIPPED ? zero + 8 : zero;
        if constexpr (SMALL)
            return 0xd400e400u + (uint32_t)z * 0x100001u;
        else
            return kg_pack_f16(-(1024.0f + z)) | (uint32_t)kg_pack_f16(-(64.0f + z)) << 16;
    }
    KG_INLINE uint32_t line_pair(uint32_t word, uint32_t select, uint32_t mask, uint32_t bias)
    {
        constexpr uint32_t lift = 0x64006400 | (FLIPPED ? 0x00800008 : 0);
        const uint32_t lifted = (__byte_perm(word, 0, select) & mask) ^ lift;
        uint32_t pair;
        asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(pair) : "r"(lifted), "r"(0x2c003c00), "r"(bias));
        return pair;
    }
    template <int AT>
    KG_INLINE uint32_t pair_of(uint32_t word, uint32_t bias)
    {
        constexpr uint32_t mask = AT % 2 ? 0x00f000f0 : 0x000f000f;
        constexpr uint32_t flip = !FLIPPED ? 0 : AT % 2 ? 0x00800080 : 0x00080008;
        const uint32_t lifted = kg_mask_flip<mask, 0x64006400 | flip>(word >> AT / 2 * 8);
        uint32_t pair;
        if constexpr (AT % 2)
            asm("fma.rn.f16x2 %0, %1, %2, %3;"
                : "=r"(pair)
                : "r"(lifted), "r"(0x2c002c00), "r"(bias));
        else
            asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(pair) : "r"(lifted), "r"(bias));
        return pair;
    }
};

// LIFT: integers are multiplied by 2^LIFT.
template <bool FLIPPED, bool SMALL, int LIFT = 0>
struct kg_scaled_bf16 : kg_scaled_quads {
    typedef kg_tensor_bf16 tensor;
    static constexpr float lowered = LIFT ? 0x1p-64f : 1.0f;
    static_assert(LIFT == 0 || LIFT == 64, "lowered is the inverse");
    static constexpr uint32_t exponent = (uint32_t)LIFT << 7;
    // 128 + q is 0x4300 + q.
    template <int AT>
    KG_INLINE uint32_t bias_of(int zero)
    {
        const int z = FLIPPED ? zero + 8 : zero;
        if constexpr (SMALL)
            return (0xc300u + exponent + (uint32_t)z) * 0x10001u;
        else
            return kg_pack_bf16(-(128.0f + z) / lowered) * 0x10001u;
    }
    static constexpr uint32_t line_mask = 0x000f000f;
    KG_INLINE uint32_t line_select(int lane)
    {
        return 0x4440 + lane;
    }
    KG_INLINE uint32_t line_bias(int zero)
    {
        return bias_of<0>(zero);
    }
    KG_INLINE uint32_t line_pair(uint32_t word, uint32_t select, uint32_t mask, uint32_t bias)
    {
        constexpr uint32_t lift = (0x4300u + exponent) * 0x10001u | (FLIPPED ? 0x00080008 : 0);
        const uint32_t twice = __byte_perm(word, 0, select) * 0x1001; // 12 bits further as well
        const uint32_t lifted = (twice & mask) ^ lift;
        uint32_t pair;
        asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(pair) : "r"(lifted), "r"(0x3f803f80), "r"(bias));
        return pair;
    }
    template <int AT>
    KG_INLINE uint32_t pair_of(uint32_t word, uint32_t bias)
    {
        constexpr uint32_t flip = FLIPPED ? 0x00080008 : 0;
        constexpr uint32_t lift = (0x4300u + exponent) * 0x10001u;
        const uint32_t lifted = kg_mask_flip<0x000f000f, lift | flip>(word >> AT * 4);
        uint32_t pair;
        asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(pair) : "r"(lifted), "r"(0x3f803f80), "r"(bias));
        return pair;
    }
};

// The same for numbers that are multiplied by a scale afterwards: those at odd AT are a quarter of
// it. Four bits at bit 4 of a number, with nothing beside them, are q * 2^-129, whether or not the
// highest of them makes the number a normal one; so they need not be moved.
template <bool FLIPPED, bool SMALL>
struct kg_scaled_bf16_quarters : kg_scaled_bf16<FLIPPED, SMALL> {
    typedef kg_scaled_bf16<FLIPPED, SMALL> whole;
    template <int AT>
    KG_INLINE uint32_t bias_of(int zero)
    {
        uint32_t bias = whole::template bias_of<0>(zero); // -(128 + z); then 32 - (128 + z) / 4
        if constexpr (AT % 2)
            asm("fma.rn.bf16x2 %0, %0, %1, %2;" : "+r"(bias) : "r"(0x3e803e80), "r"(0x42004200));
        return bias;
    }
    template <int AT>
    KG_INLINE uint32_t pair_of(uint32_t word, uint32_t bias)
    {
        if constexpr (AT % 2 == 0)
            return whole::template pair_of<0>(word >> AT / 2 * 8, bias);
        constexpr uint32_t flip = FLIPPED ? 0x00800080 : 0;
        const uint32_t small = kg_mask_flip<0x00f000f0, flip>(word >> AT / 2 * 8);
        uint32_t pair;
        asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(pair) : "r"(small), "r"(0x7f007f00), "r"(bias));
        return pair;
    }
};

// Numbers with 64 powers of two more room below them, where their type has the range for it.
template <class NUMBER, bool LIFTS>
struct kg_scaled_lifted {
    typedef NUMBER number;
};

template <bool FLIPPED, bool SMALL>
struct kg_scaled_lifted<kg_scaled_bf16<FLIPPED, SMALL>, true> {
    typedef kg_scaled_bf16<FLIPPED, SMALL, 64> number;
};
