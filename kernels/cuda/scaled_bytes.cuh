// Elements of 8 bits, integers and floats, as 16-bit floats for tensor cores, exact. The types have
// what scaled_number.cuh says.

// Of a quad, a word has the four columns of a K index.
struct kg_scaled_words {
    struct quad {
        uint32_t low, high;
    };
    typedef uint32_t bias;
    static constexpr int bits = 8;
    static constexpr bool rounds = false, takes_bits = false;
    KG_INLINE uint32_t kept_of(int column)
    {
        return 0xffu << column * 8;
    }
    // Bytes AT of both words, in the lower bytes of the halves of a register; what is in the upper
    // ones is anything.
    template <int AT>
    KG_INLINE uint32_t bytes_of(const quad &of)
    {
        return __byte_perm(of.low, of.high, AT | AT << 4 | (AT + 4) << 8 | (AT + 4) << 12);
    }
};

// Integers, FLIPPED: signed ones. Both are used as the number of 0 to 255, or of -128 to 127, that
// is `middle` further on or back; CENTRED: all zero points are `middle`.
template <bool FLIPPED, bool CENTRED>
struct kg_scaled_bytes : kg_scaled_words {
    static constexpr int middle = FLIPPED ? 0 : 128;
    static constexpr bool has_specials = false;
    // In the lower bytes of both halves.
    static constexpr uint32_t line_mask = 0x00ff00ff;
    KG_INLINE uint32_t line_select(int lane)
    {
        return lane % 2 ? 0x4342 : 0x4140;
    }
};

// 1024 + q is 0x6400 + q.
template <bool FLIPPED, bool CENTRED>
struct kg_bytes_f16 : kg_scaled_bytes<FLIPPED, CENTRED> {
    typedef kg_tensor_f16 tensor;
    typedef typename kg_scaled_words::quad quad;
    static constexpr float lowered = 1;
    static constexpr uint32_t flip = FLIPPED ? 0x80808080 : 0;
    KG_INLINE quad quad_of(uint32_t low, uint32_t high, uint32_t)
    {
        return {low ^ flip, high ^ flip};
    }
    template <uint32_t ZERO>
    KG_INLINE quad leave_out(const quad &of, uint32_t kept)
    {
        return {(of.low & kept) | (0x80808080 & ~kept), (of.high & kept) | (0x80808080 & ~kept)};
    }
    template <int AT>
    KG_INLINE uint32_t bias_of(int zero)
    {
        return CENTRED ? 0x64806480 : kg_pack_f16(1024.0f + (FLIPPED ? 128 : 0) + zero) * 0x10001u;
    }
    template <int AT>
    KG_INLINE uint32_t pair_of(const quad &of, uint32_t bias)
    {
        const uint32_t both = __byte_perm(of.low, of.high, AT < 2 ? 0x5140 : 0x7362);
        const uint32_t lifted = __byte_perm(both, 0x64646464, AT % 2 ? 0x4342 : 0x4140);
        uint32_t pair;
        asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(pair) : "r"(lifted), "r"(bias));
        return pair;
    }
    KG_INLINE uint32_t line_bias(int zero)
    {
        return bias_of<0>(zero);
    }
    KG_INLINE uint32_t line_pair(uint32_t word, uint32_t select, uint32_t mask, uint32_t bias)
    {
        constexpr uint32_t lift = 0x64006400 | (FLIPPED ? 0x00800080 : 0);
        const uint32_t lifted = (__byte_perm(word, 0, select) & mask) ^ lift;
        uint32_t pair;
        asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(pair) : "r"(lifted), "r"(bias));
        return pair;
    }
};

// Of -128 to 127, the lower seven bits are 128 + them at 0x4300, and the eighth is -128, or doubles
// 128 at 0x4300. LIFT: integers are multiplied by 2^LIFT.
template <bool FLIPPED, bool CENTRED, int LIFT = 0>
struct kg_bytes_bf16 : kg_scaled_bytes<FLIPPED, CENTRED> {
    typedef kg_tensor_bf16 tensor;
    typedef typename kg_scaled_words::quad quad;
    static constexpr float lowered = LIFT ? 0x1p-64f : 1.0f;
    static_assert(LIFT == 0 || LIFT == 64, "lowered is the inverse");
    static constexpr uint32_t lift = (0x4300u + ((uint32_t)LIFT << 7)) * 0x10001u;
    static constexpr uint32_t flip = FLIPPED ? 0 : 0x80808080;
    KG_INLINE quad quad_of(uint32_t low, uint32_t high, uint32_t)
    {
        return {low ^ flip, high ^ flip};
    }
    template <uint32_t ZERO>
    KG_INLINE quad leave_out(const quad &of, uint32_t kept)
    {
        return {of.low & kept, of.high & kept};
    }
    template <int AT>
    KG_INLINE uint32_t bias_of(int zero)
    {
        const int z = FLIPPED ? zero : zero - 128;
        return CENTRED ? 0 : kg_pack_bf16(-(float)z / lowered) * 0x10001u;
    }
    template <int AT>
    KG_INLINE uint32_t pair_of(const quad &of, uint32_t bias)
    {
        return pair_of_bytes(kg_scaled_words::template bytes_of<AT>(of), bias);
    }
    KG_INLINE uint32_t line_bias(int zero)
    {
        return bias_of<0>(zero);
    }
    KG_INLINE uint32_t line_pair(uint32_t word, uint32_t select, uint32_t mask, uint32_t bias)
    {
        return pair_of_bytes((__byte_perm(word, 0, select) & mask) ^ (flip & 0x00ff00ff), bias);
    }
    KG_INLINE uint32_t pair_of_bytes(uint32_t bytes, uint32_t bias)
    {
        const uint32_t above = kg_mask_flip<0x007f007f, lift>(bytes);
        const uint32_t below = kg_mask_flip<0x00800080, lift | 0x80008000>(bytes);
        uint32_t pair;
        asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(pair) : "r"(above), "r"(0x3f803f80), "r"(below));
        if constexpr (!CENTRED)
            asm("fma.rn.bf16x2 %0, %1, %2, %3;"
                : "=r"(pair)
                : "r"(pair), "r"(0x3f803f80), "r"(bias));
        return pair;
    }
};

// Floats. Those with more exponent, WIDE, are the upper bytes of f16.
template <bool WIDE>
struct kg_scaled_floats : kg_scaled_words {
    static constexpr int middle = 0;
    static constexpr bool has_specials = true;
    KG_INLINE quad quad_of(uint32_t low, uint32_t high, uint32_t)
    {
        return {low, high};
    }
    // A float whose scale is 0 counts as 0, or as NaN if it is infinite or NaN.
    KG_INLINE uint32_t leave_out_of(uint32_t four, uint32_t kept)
    {
        constexpr uint32_t exponent = WIDE ? 0x7c7c7c7c : 0x7f7f7f7f;
        constexpr uint32_t one = WIDE ? 0x04040404 : 0x01010101;
        const uint32_t special = ((four & exponent) + one) & 0x80808080;
        return (four & kept) | ((special - (special >> 7)) & ~kept);
    }
    template <uint32_t ZERO>
    KG_INLINE quad leave_out(const quad &of, uint32_t kept)
    {
        return {leave_out_of(of.low, kept), leave_out_of(of.high, kept)};
    }
    template <int AT>
    KG_INLINE uint32_t bias_of(int)
    {
        return 0;
    }
    template <int AT>
    KG_INLINE uint32_t pair_as_f16(const quad &of)
    {
        const uint32_t both = __byte_perm(of.low, of.high, AT < 2 ? 0x5140 : 0x7362);
        return WIDE ? __byte_perm(both, 0, AT % 2 ? 0x3424 : 0x1404)
                    : two_as_f16(both >> AT % 2 * 16);
    }
    // The lower two bytes, f8e4m3.
    KG_INLINE uint32_t two_as_f16(uint32_t two)
    {
        uint32_t pair;
        asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"((uint16_t)two));
        return pair;
    }
    static constexpr uint32_t line_mask = 0xffffffff;
    KG_INLINE uint32_t line_select(int lane)
    {
        return WIDE ? lane % 2 ? 0x3424 : 0x1404 : lane % 2 ? 0x4432 : 0x4410;
    }
    KG_INLINE uint32_t line_bias(int)
    {
        return 0;
    }
    KG_INLINE uint32_t line_as_f16(uint32_t word, uint32_t select)
    {
        const uint32_t two = __byte_perm(word, 0, select);
        return WIDE ? two : two_as_f16(two);
    }
};

template <bool WIDE>
struct kg_floats_f16 : kg_scaled_floats<WIDE> {
    typedef kg_tensor_f16 tensor;
    typedef typename kg_scaled_words::quad quad;
    static constexpr float lowered = 1;
    template <int AT>
    KG_INLINE uint32_t pair_of(const quad &of, uint32_t)
    {
        return kg_scaled_floats<WIDE>::template pair_as_f16<AT>(of);
    }
    KG_INLINE uint32_t line_pair(uint32_t word, uint32_t select, uint32_t, uint32_t)
    {
        return kg_scaled_floats<WIDE>::line_as_f16(word, select);
    }
};

template <bool WIDE, int LIFT = 0>
struct kg_floats_bf16 : kg_scaled_floats<WIDE> {
    typedef kg_tensor_bf16 tensor;
    typedef typename kg_scaled_words::quad quad;
    static constexpr float lowered = LIFT ? 0x1p-64f : 1.0f;
    static_assert(LIFT == 0 || LIFT == 64, "lowered is the inverse");
    // The upper halves of f32 have all bits of such numbers.
    template <int AT>
    KG_INLINE uint32_t pair_of(const quad &of, uint32_t)
    {
        return of_halves(kg_scaled_floats<WIDE>::template pair_as_f16<AT>(of));
    }
    KG_INLINE uint32_t line_pair(uint32_t word, uint32_t select, uint32_t, uint32_t)
    {
        return of_halves(kg_scaled_floats<WIDE>::line_as_f16(word, select));
    }
    KG_INLINE uint32_t of_halves(uint32_t halves)
    {
        uint32_t pair = __byte_perm(kg_bits_f32(kg_unpack_f16((uint16_t)halves)),
                                    kg_bits_f32(kg_unpack_f16((uint16_t)(halves >> 16))), 0x7632);
        if constexpr (LIFT > 0)
            asm("fma.rn.bf16x2 %0, %1, %2, %3;"
                : "=r"(pair)
                : "r"(pair), "r"(0x5f805f80), "r"(0x80008000));
        return pair;
    }
};

// ---- With more room below ----

template <bool FLIPPED, bool CENTRED>
struct kg_scaled_lifted<kg_bytes_bf16<FLIPPED, CENTRED>, true> {
    typedef kg_bytes_bf16<FLIPPED, CENTRED, 64> number;
};

template <bool WIDE>
struct kg_scaled_lifted<kg_floats_bf16<WIDE>, true> {
    typedef kg_floats_bf16<WIDE, 64> number;
};
