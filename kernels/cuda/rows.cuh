// One value of all the threads of a row. THREADS, a power of two, work on a row: some lanes of a
// warp, or all threads of a block. All of them get the same value, bit for bit, because what is
// combined on either side of a shuffle is the same.

template <int THREADS>
KG_INLINE unsigned kg_row_lanes()
{
    if constexpr (THREADS >= 32)
        return 0xffffffffu;
    else
        return ((1u << THREADS) - 1) << (threadIdx.x + blockDim.x * threadIdx.y) % 32 / THREADS *
                                            THREADS;
}

template <int LANES, typename T, typename F>
KG_INLINE T kg_row_shuffle(T value, F combine)
{
    const unsigned lanes = kg_row_lanes<LANES>();
#pragma unroll
    for (int distance = LANES / 2; distance > 0; distance /= 2)
        value = combine(value, __shfl_xor_sync(lanes, value, distance));
    return value;
}

// `slots`: THREADS / 32 values of the block, not used for anything else before its next barrier.
template <int THREADS, typename T, typename F>
KG_INLINE T kg_row_fold(T value, T *slots, F combine)
{
    value = kg_row_shuffle<THREADS < 32 ? THREADS : 32>(value, combine);
    if constexpr (THREADS > 32) {
        const int warps = THREADS / 32;
        if (threadIdx.x % 32 == 0)
            slots[threadIdx.x / 32] = value;
        __syncthreads();
        value = kg_row_shuffle<warps>(slots[threadIdx.x % warps], combine);
    }
    return value;
}

// The best of the values and where it is, -1 for none: of equal ones the first.
template <typename T, typename F>
KG_INLINE void kg_row_take_best(T *value, int64_t *at, T other, int64_t other_at, F beats)
{
    const bool take = other_at >= 0 && (*at < 0 || beats(other, *value) ||
                                        (!beats(*value, other) && other_at < *at));
    *value = take ? other : *value;
    *at = take ? other_at : *at;
}

template <int LANES, typename T, typename F>
KG_INLINE void kg_row_shuffle_best(T *value, int64_t *at, F beats)
{
    const unsigned lanes = kg_row_lanes<LANES>();
#pragma unroll
    for (int distance = LANES / 2; distance > 0; distance /= 2)
        kg_row_take_best(value, at, __shfl_xor_sync(lanes, *value, distance),
                         (int64_t)__shfl_xor_sync(lanes, (long long)*at, distance), beats);
}

template <int THREADS, typename T, typename F>
KG_INLINE void kg_row_best(T *value, int64_t *at, T *slots, int64_t *places, F beats)
{
    kg_row_shuffle_best<THREADS < 32 ? THREADS : 32>(value, at, beats);
    if constexpr (THREADS > 32) {
        const int warps = THREADS / 32;
        if (threadIdx.x % 32 == 0) {
            slots[threadIdx.x / 32] = *value;
            places[threadIdx.x / 32] = *at;
        }
        __syncthreads();
        *value = slots[threadIdx.x % warps];
        *at = places[threadIdx.x % warps];
        kg_row_shuffle_best<warps>(value, at, beats);
    }
}
