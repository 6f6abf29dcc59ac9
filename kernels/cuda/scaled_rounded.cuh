// Numbers as scaled_number.cuh and scaled_bytes.cuh have them, which are scaled and rounded to 16
// bits before they are multiplied: the formula casts them. Sums then need no scales.

// One of the two halves of a word, and that half twice in a register: instructions that compute
// with both halves of a register take one of them for both, too.
struct kg_half {
    uint32_t word;
    int which;
    KG_METHOD uint32_t twice() const
    {
        uint32_t two;
        if (which == 0)
            asm("{\n"
                ".reg .b16 low, high;\n"
                "mov.b32 {low, high}, %1;\n"
                "mov.b32 %0, {low, low};\n"
                "}"
                : "=r"(two)
                : "r"(word));
        else
            asm("{\n"
                ".reg .b16 low, high;\n"
                "mov.b32 {low, high}, %1;\n"
                "mov.b32 %0, {high, high};\n"
                "}"
                : "=r"(two)
                : "r"(word));
        return two;
    }
};

// What else belongs to two numbers of a register.
template <class TENSOR>
struct kg_rounding {
    KG_INLINE uint32_t both(float value)
    {
        return kg_half{kg_pack_f16(value), 0}.twice();
    }
    KG_INLINE uint32_t both(kg_half half)
    {
        return half.twice();
    }
    KG_INLINE uint32_t two(float low, float high)
    {
        uint32_t both;
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
        return both;
    }
    KG_INLINE uint32_t multiply_add(uint32_t two, uint32_t scale, uint32_t offset)
    {
        asm("fma.rn.f16x2 %0, %0, %1, %2;" : "+r"(two) : "r"(scale), "r"(offset));
        return two;
    }
};
template <>
struct kg_rounding<kg_tensor_bf16> {
    KG_INLINE uint32_t both(float value)
    {
        return kg_half{kg_pack_bf16(value), 0}.twice();
    }
    KG_INLINE uint32_t both(kg_half half)
    {
        return half.twice();
    }
    KG_INLINE uint32_t two(float low, float high)
    {
        uint32_t both;
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
        return both;
    }
    KG_INLINE uint32_t multiply_add(uint32_t two, uint32_t scale, uint32_t offset)
    {
        asm("fma.rn.bf16x2 %0, %0, %1, %2;" : "+r"(two) : "r"(scale), "r"(offset));
        return two;
    }
};

// Scales and offsets in f32.
template <class TENSOR, bool HALVES, bool HAS_OFFSET>
struct kg_rounded_scale {
    float scale, offset;
    KG_METHOD void set(float by, float more)
    {
        scale = by, offset = more;
    }
    KG_METHOD float of(float value) const
    {
        const float scaled = __fmul_rn(value, scale);
        return HAS_OFFSET ? __fadd_rn(scaled, offset) : scaled;
    }
    KG_METHOD uint32_t of_two(uint32_t two) const
    {
        typedef kg_scaled_halves<TENSOR> halves;
        return kg_rounding<TENSOR>::two(of(halves::low(two)), of(halves::high(two)));
    }
};

// Scales, and offsets, that have the type of the products, twice in a register. A number has at
// most 9 bits, so that f32 would hold the product: rounding it is the same.
template <class TENSOR, bool HAS_OFFSET>
struct kg_rounded_scale<TENSOR, true, HAS_OFFSET> {
    static constexpr uint32_t nothing = 0x80008000; // -0, which changes no sum
    uint32_t scale, offset;
    // `by` is a float, or half of a word.
    template <typename SCALE>
    KG_METHOD void set(SCALE by, float more)
    {
        scale = kg_rounding<TENSOR>::both(by);
        offset = HAS_OFFSET ? kg_rounding<TENSOR>::both(more) : nothing;
    }
    KG_METHOD void quadruple()
    {
        scale = kg_rounding<TENSOR>::multiply_add(scale, 0x40804080, nothing);
    }
    KG_METHOD uint32_t of_two(uint32_t two) const
    {
        return kg_rounding<TENSOR>::multiply_add(two, scale, HAS_OFFSET ? offset : nothing);
    }
};

// What numbers are made of before they are scaled.
template <class NUMBER, bool HALVES>
struct kg_rounded_from {
    typedef NUMBER number;
    static constexpr bool quarters = false;
};
template <bool FLIPPED, bool SMALL>
struct kg_rounded_from<kg_scaled_bf16<FLIPPED, SMALL>, true> {
    typedef kg_scaled_bf16_quarters<FLIPPED, SMALL> number;
    static constexpr bool quarters = true;
};

// HALVES: scales and offsets are numbers of the type of the products.
template <class NUMBER, bool HALVES, bool HAS_OFFSET>
struct kg_rounded : NUMBER {
    typedef kg_rounded_from<NUMBER, HALVES> from;
    static constexpr bool rounds = true, takes_bits = HALVES;
    typedef typename NUMBER::tensor tensor;
    typedef typename NUMBER::quad quad;
    struct bias {
        uint32_t zero;
        kg_rounded_scale<tensor, HALVES, HAS_OFFSET> scale;
    };
    template <int AT, typename SCALE>
    KG_INLINE bias bias_of(int zero, SCALE scale, float offset)
    {
        bias of = {from::number::template bias_of<AT>(zero)};
        of.scale.set(scale, offset);
        if constexpr (from::quarters && AT % 2)
            of.scale.quadruple();
        return of;
    }
    template <int AT>
    KG_INLINE uint32_t pair_of(const quad &of, const bias &by)
    {
        return by.scale.of_two(from::number::template pair_of<AT>(of, by.zero));
    }
    template <typename SCALE>
    KG_INLINE bias line_bias(int zero, SCALE scale, float offset)
    {
        bias of = {NUMBER::line_bias(zero)};
        of.scale.set(scale, offset);
        return of;
    }
    KG_INLINE uint32_t line_pair(uint32_t word, uint32_t select, uint32_t mask, const bias &by)
    {
        return by.scale.of_two(NUMBER::line_pair(word, select, mask, by.zero));
    }
};

// 4-bit integers less ZERO, 0 or a power of two, as bf16, scaled by bf16 in the instruction that
// makes numbers of them. Four bits q with nothing beside them are q * 2^-133 at bit 0 of a number,
// and q * 2^-129 at bit 4. So q times the scale times 2^117 or 2^113, less ZERO times the scale
// times 2^-16, is rounded once, and is 2^-16 times what it should be: sums are multiplied by 2^16
// in the end. FLIPPED: as above; ZERO is 8 more than the zero point then.
template <bool FLIPPED, int ZERO>
struct kg_rounded_at_once : kg_scaled_quads {
    static_assert(ZERO >= 0 && (ZERO & (ZERO - 1)) == 0, "a multiple of scales that is exact");
    typedef kg_tensor_bf16 tensor;
    typedef kg_rounding<tensor> rounding;
    static constexpr bool rounds = true, takes_bits = true;
    static constexpr float lowered = 0x1p16f;
    static constexpr uint32_t line_mask = 0; // panels have no lines
    struct bias {
        kg_half scale, offset;
    };
    KG_METHOD static constexpr uint32_t log2_of(int power)
    {
        return power > 1 ? 1 + log2_of(power / 2) : 0;
    }
    KG_INLINE uint32_t times(uint32_t two, uint32_t by)
    {
        return rounding::multiply_add(two, by, 0x80008000);
    }
    // Those of both columns of a word: at even AT the lower half, at odd AT the upper one.
    template <int AT>
    KG_INLINE bias bias_of(int, kg_half by, float)
    {
        constexpr uint32_t down = ZERO ? 0xb780u + log2_of(ZERO) * 0x80u : 0x8000u; // -ZERO * 2^-16
        return {{times(by.word, 0x78007a00), by.which},
                {times(by.word, down * 0x10001u), by.which}};
    }
    template <int AT>
    KG_INLINE bias bias_of(int, float scale, float)
    {
        return bias_of<AT>(0, kg_half{rounding::both(scale), AT % 2}, 0.0f);
    }
    template <int AT>
    KG_INLINE uint32_t pair_of(const quad &of, const bias &by)
    {
        constexpr uint32_t mask = AT % 2 ? 0x00f000f0 : 0x000f000f;
        constexpr uint32_t flip = !FLIPPED ? 0 : AT % 2 ? 0x00800080 : 0x00080008;
        return rounding::multiply_add(kg_mask_flip<mask, flip>(of >> AT / 2 * 8), by.scale.twice(),
                                      by.offset.twice());
    }
};

// The smaller ones of two times 16 bits.
KG_INLINE uint32_t kg_least_halves(uint32_t a, uint32_t b)
{
#if __CUDA_ARCH__ >= 900
    asm("min.u16x2 %0, %0, %1;" : "+r"(a) : "r"(b));
    return a;
#else
    return min(a & 0xffff, b & 0xffff) | min(a & 0xffff0000, b & 0xffff0000);
#endif
}

// What is known of the scales of two columns, and what their sums are multiplied by in the end.
template <class NUMBER>
struct kg_scale_watch {
    KG_METHOD void see(uint32_t)
    {
    }
    KG_METHOD float factor(int) const
    {
        return NUMBER::lowered;
    }
};

// Scales from 2^11 on make sums infinite, so that they are computed again. Those that are less than
// 2^-110, but not 0, would have products that are rounded twice: they make them NaN.
template <bool FLIPPED, int ZERO>
struct kg_scale_watch<kg_rounded_at_once<FLIPPED, ZERO>> {
    uint32_t least = 0xffffffff; // without their signs, less 1, so that 0 is the greatest
    KG_METHOD void see(uint32_t two)
    {
        least = kg_least_halves(least, (two & 0x7fff7fff) - 0x00010001);
    }
    KG_METHOD float factor(int which) const
    {
        constexpr uint32_t enough = (127 - 110) << 7;
        return (which ? least >> 16 : least & 0xffff) < enough - 1
                   ? NAN
                   : kg_rounded_at_once<FLIPPED, ZERO>::lowered;
    }
};

// The bias of a number, which knows its scale and offset if it rounds. A scale is a float or, for
// numbers that take bits, half of a word.
template <class NUMBER, int AT, typename SCALE>
KG_INLINE typename NUMBER::bias kg_scaled_bias(int zero, SCALE scale, float offset)
{
    if constexpr (NUMBER::rounds)
        return NUMBER::template bias_of<AT>(zero, scale, offset);
    else
        return NUMBER::template bias_of<AT>(zero);
}

template <class NUMBER, typename SCALE>
KG_INLINE typename NUMBER::bias kg_scaled_line_bias(int zero, SCALE scale, float offset)
{
    if constexpr (NUMBER::rounds)
        return NUMBER::line_bias(zero, scale, offset);
    else
        return NUMBER::line_bias(zero);
}
