// Loads and stores several elements of a row: one vector of adjacent elements if WHOLE, else
// elements `step` apart, so that the lanes of a warp still access adjacent elements, under a
// predicate for the `left` elements to the end of the row. CACHE 1: the data is not needed again;
// 2 and 3: what is read is evicted first, or last, from the L2.
template <bool WHOLE, int CACHE, int COUNT, typename T>
KG_INLINE kg_vec<T, COUNT> kg_load_predicated(const T *from, int64_t stride, int step, int64_t left)
{
    if constexpr (WHOLE && CACHE == 1) {
        return kg_load_vec_stream<COUNT>(from);
    } else if constexpr (WHOLE && CACHE == 2) {
        return kg_load_vec_evict_first<COUNT>(from);
    } else if constexpr (WHOLE && CACHE == 3) {
        return kg_load_vec_evict_last<COUNT>(from);
    } else if constexpr (WHOLE) {
        return kg_load_vec<COUNT>(from);
    } else {
        kg_vec<T, COUNT> values;
#pragma unroll
        for (int lane = 0; lane < COUNT; lane++)
            values.at[lane] = lane * step < left ? from[lane * step * stride] : T();
        return values;
    }
}

template <bool WHOLE, int CACHE, int COUNT, typename T>
KG_INLINE void kg_store_predicated(T *to, const kg_vec<T, COUNT> &values, int64_t stride, int step,
                                   int64_t left)
{
    if constexpr (WHOLE && CACHE == 1) {
        kg_store_vec_stream(to, values);
    } else if constexpr (WHOLE) {
        kg_store_vec(to, values);
    } else {
#pragma unroll
        for (int lane = 0; lane < COUNT; lane++)
            if (lane * step < left)
                to[lane * step * stride] = values.at[lane];
    }
}
