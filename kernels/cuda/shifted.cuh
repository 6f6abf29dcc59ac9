// Vectors that begin anywhere: cut out of the two aligned ones around them.

// 16 bytes from byte `shift` (0 to 15) of 32.
KG_INLINE uint4 kg_shifted(const uint32_t (&words)[8], int shift)
{
    uint32_t moved[7];
#pragma unroll
    for (int i = 0; i < 7; i++)
        moved[i] = shift & 4 ? words[i + 1] : words[i];
#pragma unroll
    for (int i = 0; i < 5; i++)
        moved[i] = shift & 8 ? moved[i + 2] : moved[i];
    const int bits = shift % 4 * 8;
    return make_uint4(
        __funnelshift_r(moved[0], moved[1], bits), __funnelshift_r(moved[1], moved[2], bits),
        __funnelshift_r(moved[2], moved[3], bits), __funnelshift_r(moved[3], moved[4], bits));
}

// 16 bytes from `place` on. Only the memory from `begin` to `end` is read, in which they lie.
// Returns false if an aligned vector is not within it.
KG_INLINE bool kg_load_cut(const void *place, const void *begin, const void *end, uint4 *vector)
{
    const int shift = (int)((uint64_t)place % 16);
    const uint4 *from = (const uint4 *)((const char *)place - shift);
    if ((const char *)from < (const char *)begin ||
        (const char *)(from + (shift ? 2 : 1)) > (const char *)end)
        return false;
    const uint4 low = from[0], high = shift ? from[1] : low;
    const uint32_t words[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
    *vector = kg_shifted(words, shift);
    return true;
}
