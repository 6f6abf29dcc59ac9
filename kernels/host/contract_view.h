// Reads elements of a view in the compute type. `halves` is the view's member as a constant, so
// that code is specialised for both cases.

KG_INLINE KG_REAL element(const bool halves, const void *data, int64_t at)
{
#if KG_HALF == KG_F16
    if (halves)
        return kg_unpack_f16(((const half *)data)[at]);
#elif KG_HALF == KG_BF16
    if (halves)
        return kg_unpack_bf16(((const half *)data)[at]);
#else
    (void)halves;
#endif
    return ((const KG_REAL *)data)[at];
}

#if KG_HALF
typedef uint32_t wide_halves __attribute__((vector_size(4 * KG_LANES)));

// KG_LANES elements, each in the low half of a word.
KG_INLINE wide_halves half_words(const half *from)
{
    typedef int16_t bits __attribute__((vector_size(2 * KG_LANES)));
    bits packed;
    memcpy(&packed, from, sizeof packed);
// Gcc uses three instructions otherwise.
#if KG_LANES == 16 && defined(__AVX512F__) && !defined(__clang__)
    typedef int32_t words __attribute__((vector_size(4 * KG_LANES)));
    return (wide_halves)__builtin_ia32_pmovzxwd512_mask(packed, (words){0}, 0xffff);
#elif KG_LANES == 8 && defined(__AVX2__) && !defined(__clang__)
    return (wide_halves)__builtin_ia32_pmovzxwd256(packed);
#else
    typedef uint16_t unsigned_bits __attribute__((vector_size(2 * KG_LANES)));
    return __builtin_convertvector((unsigned_bits)packed, wide_halves);
#endif
}

KG_INLINE vector widened(const half *from)
{
#if KG_HALF == KG_BF16
    return (vector)(half_words(from) << 16);
#else
    typedef int16_t bits __attribute__((vector_size(2 * KG_LANES)));
    bits packed;
    memcpy(&packed, from, sizeof packed);
#if KG_LANES == 16 && defined(__AVX512F__)
    return (vector)__builtin_ia32_vcvtph2ps512_mask(packed, (vector){0}, 0xffff, 4);
#elif KG_LANES == 8 && defined(__F16C__)
    return (vector)__builtin_ia32_vcvtph2ps256(packed);
#else
    vector all;
    for (int i = 0; i < KG_LANES; i++)
        all[i] = element(true, from, i);
    return all;
#endif
#endif
}
#endif

// KG_LANES adjacent elements.
KG_INLINE vector elements(const bool halves, const void *data, int64_t at)
{
#if KG_HALF
    if (halves)
        return widened((const half *)data + at);
#else
    (void)halves;
#endif
    return *(const loose_vector *)((const KG_REAL *)data + at);
}

// The view's member, unless it is known at compile time.
KG_INLINE bool has_halves(const struct view *view)
{
    return KG_HALF != KG_NONE && (KG_ONLY_HALVES || view->halves);
}

// The same view, starting at element (x, k).
KG_INLINE struct view moved(struct view view, int64_t x, int64_t k)
{
    const int64_t size = has_halves(&view) ? sizeof(half) : sizeof(KG_REAL);
    view.data = (const char *)view.data + (x * view.x + k * view.k) * size;
    return view;
}
