// Numbers as scaled_number.cuh and scaled_bytes.cuh have them, which are scaled and rounded to 16
// bits before they are multiplied: the formula casts them. Sums then need no scales.

// The bits of an element, twice in a register; of a word with two, which of them.
struct kg_twice {
    uint32_t at;
};
KG_INLINE kg_twice kg_twice_of(uint32_t word, int which)
{
    return {__byte_perm(word, 0, which ? 0x3232 : 0x1010)};
}

// What else belongs to two numbers of a register.
template <class TENSOR>
struct kg_rounding {
    KG_INLINE uint32_t both(float value)
    {
        return kg_twice_of(kg_pack_f16(value), 0).at;
    }
    KG_INLINE uint32_t both(kg_twice bits)
    {
        return bits.at;
    }
    KG_INLINE uint32_t round(float low, float high)
    {
        uint32_t two;
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(two) : "f"(high), "f"(low));
        return two;
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
        return kg_twice_of(kg_pack_bf16(value), 0).at;
    }
    KG_INLINE uint32_t both(kg_twice bits)
    {
        return bits.at;
    }
    KG_INLINE uint32_t round(float low, float high)
    {
        uint32_t two;
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(two) : "f"(high), "f"(low));
        return two;
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
        return kg_rounding<TENSOR>::round(of(halves::low(two)), of(halves::high(two)));
    }
};

// Scales, and offsets, that have the type of the products, twice in a register. A number has at
// most 9 bits, so that f32 would hold the product: rounding it is the same.
template <class TENSOR, bool HAS_OFFSET>
struct kg_rounded_scale<TENSOR, true, HAS_OFFSET> {
    static constexpr uint32_t nothing = 0x80008000; // -0, which changes no sum
    uint32_t scale, offset;
    // `by` is a float, or the bits of an element, twice.
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

// The bias of a number, which knows its scale and offset if it rounds. A scale is a float or, for
// numbers that take bits, those of an element, twice.
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
