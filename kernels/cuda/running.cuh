// Running totals over the threads of a row: for the values of each thread, the total of all
// previous ones. A struct of lanes.cuh defines how two values are combined, and the order is fixed
// here too.

// Positions of a tile of `tile` that there are, where `rest` are left; none if that is negative,
// however far.
KG_INLINE int kg_left(int64_t rest, int tile)
{
    return rest >= tile ? tile : rest > 0 ? (int)rest : 0;
}

// ---- Running totals in one thread ----

// Sums are kept as kg_two, everything else as it is.
template <typename FOLD, typename T>
KG_INLINE void kg_carry_on(T &carry, T more)
{
    carry = FOLD::both(carry, more);
}

template <typename FOLD, typename T>
KG_INLINE void kg_carry_on(kg_two<T> &carry, T more)
{
    kg_two_sum(&carry.sum, &carry.lost, more);
}

template <typename T>
KG_INLINE T kg_carried(T carry)
{
    return carry;
}

template <typename T>
KG_INLINE T kg_carried(kg_two<T> carry)
{
    return kg_two_value(carry.sum, carry.lost);
}

// ---- Among the threads of a row ----

// The value of the lane `distance` below, among LANES adjacent lanes; the lowest lanes get their
// own.
template <int LANES, typename T>
KG_INLINE T kg_from_below(T value, int distance)
{
    return __shfl_up_sync(0xffffffff, value, distance, LANES);
}

template <int LANES, typename T>
KG_INLINE kg_found<T> kg_from_below(kg_found<T> found, int distance)
{
    return {kg_from_below<LANES>(found.value, distance), kg_from_below<LANES>(found.at, distance)};
}

template <int LANES, typename T>
KG_INLINE kg_two<T> kg_from_below(kg_two<T> two, int distance)
{
    return {kg_from_below<LANES>(two.sum, distance), kg_from_below<LANES>(two.lost, distance)};
}

// The value of lane `lane` among LANES adjacent lanes.
template <int LANES, typename T>
KG_INLINE T kg_of_lane(T value, int lane)
{
    return __shfl_sync(0xffffffff, value, lane, LANES);
}

template <int LANES, typename T>
KG_INLINE kg_found<T> kg_of_lane(kg_found<T> found, int lane)
{
    return {kg_of_lane<LANES>(found.value, lane), kg_of_lane<LANES>(found.at, lane)};
}

template <int LANES, typename T>
KG_INLINE kg_two<T> kg_of_lane(kg_two<T> two, int lane)
{
    return {kg_of_lane<LANES>(two.sum, lane), kg_of_lane<LANES>(two.lost, lane)};
}

// An inclusive scan among LANES adjacent lanes, a power of two; every thread of the warp takes
// part.
template <typename FOLD, int LANES, int COUNT>
KG_INLINE void kg_warp_running(typename FOLD::type (&values)[COUNT])
{
    const int lane = threadIdx.x % LANES;
#pragma unroll
    for (int distance = 1; distance < LANES; distance *= 2) {
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            const typename FOLD::type below = kg_from_below<LANES>(values[i], distance);
            if (lane >= distance)
                values[i] = FOLD::both(below, values[i]);
        }
    }
}

// An exclusive scan over the THREADS threads of a row (adjacent lanes of a warp, all threads of a
// block, or those of each of CLUSTER blocks), which have COUNT values each. The order is: within a
// warp, the first values of all lanes precede the second ones; a warp precedes the next. Each value
// becomes the total of all previous ones, starting with `none`, the total of nothing; returns the
// total of all. `turn` is that of kg_block_fold; call kg_cluster_wait before a block of a cluster
// ends.
template <typename FOLD, int THREADS, int CLUSTER, int COUNT>
KG_INLINE typename FOLD::type kg_row_before(typename FOLD::type (&values)[COUNT],
                                            typename FOLD::type none, int &turn)
{
    typedef typename FOLD::type type;
    constexpr int lanes = THREADS < 32 ? THREADS : 32, warps = THREADS / lanes;
    static_assert((THREADS & (THREADS - 1)) == 0 && warps <= 32, "a power of two");
    const int lane = threadIdx.x % lanes, warp = threadIdx.x / lanes;
    kg_warp_running<FOLD, lanes>(values);
    type all = none, before = none;
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        const type part = kg_of_lane<lanes>(values[i], lanes - 1);
        const type below = kg_from_below<lanes>(values[i], 1);
        values[i] = FOLD::both(all, lane > 0 ? below : none);
        all = FOLD::both(all, part);
    }
    if constexpr (warps > 1) {
        __shared__ type slots[2][warps];
        if (lane == 0)
            slots[turn][warp] = all;
        __syncthreads();
        type running[1] = {slots[turn][lane % warps]};
        kg_warp_running<FOLD, warps>(running);
        const type below = kg_of_lane<warps>(running[0], warp > 0 ? warp - 1 : 0);
        before = warp > 0 ? below : none;
        all = kg_of_lane<warps>(running[0], warps - 1);
    }
    if constexpr (CLUSTER > 1) {
        __shared__ type results[2];
        const unsigned rank = kg_cluster_rank();
        if (threadIdx.x == 0)
            results[turn] = all;
        kg_cluster_wait();
        type lower = none;
        all = none;
#pragma unroll
        for (unsigned i = 0; i < CLUSTER; i++) {
            if (i == rank)
                lower = all;
            all = FOLD::both(all, *kg_of_block(&results[turn], i));
        }
        before = FOLD::both(lower, before);
    }
    if constexpr (warps > 1 || CLUSTER > 1) {
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            values[i] = FOLD::both(before, values[i]);
        turn ^= 1;
    }
    return all;
}

// The same down columns: an exclusive scan over the ROWS threads of a column, which are ACROSS
// threads apart. The threads of a block are numbered by threadIdx.x; ROWS and ACROSS are powers of
// two, and a block has whole warps. Each of VECTOR values belongs to a column of its own; `all`
// receives the columns' totals.
template <typename FOLD, int ACROSS, int ROWS, int VECTOR>
KG_INLINE void kg_column_before(typename FOLD::type (&values)[VECTOR],
                                typename FOLD::type (&all)[VECTOR], typename FOLD::type none,
                                int &turn)
{
    typedef typename FOLD::type type;
    constexpr int among = ACROSS < 32 ? 32 / ACROSS : 1, groups = ROWS / among;
    static_assert(ROWS == 1 || ROWS % among == 0, "whole warps");
    const int lane = threadIdx.x % 32, column = threadIdx.x % ACROSS;
    type before[VECTOR];
#pragma unroll
    for (int i = 0; i < VECTOR; i++)
        before[i] = none;
    if constexpr (ROWS > 1 && among > 1) {
#pragma unroll
        for (int i = 0; i < VECTOR; i++) {
#pragma unroll
            for (int distance = ACROSS; distance < 32; distance *= 2) {
                const type below = kg_from_below<32>(values[i], distance);
                if (lane >= distance)
                    values[i] = FOLD::both(below, values[i]);
            }
            const type below = kg_from_below<32>(values[i], ACROSS);
            before[i] = lane >= ACROSS ? below : none;
            values[i] = kg_of_lane<32>(values[i], 32 - ACROSS + column);
        }
    }
    if constexpr (groups > 1) {
        __shared__ type slots[2][groups][VECTOR][ACROSS];
        const int group = threadIdx.x / (ACROSS * among);
#pragma unroll
        for (int i = 0; i < VECTOR; i++)
            if (among == 1 || lane < ACROSS)
                slots[turn][group][i][column] = values[i];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < VECTOR; i++) {
            type lower = none, sum = none;
#pragma unroll
            for (int other = 0; other < groups; other++) {
                if (other == group)
                    lower = sum;
                sum = FOLD::both(sum, slots[turn][other][i][column]);
            }
            before[i] = FOLD::both(lower, before[i]);
            values[i] = sum;
        }
        turn ^= 1;
    }
#pragma unroll
    for (int i = 0; i < VECTOR; i++) {
        all[i] = values[i];
        values[i] = before[i];
    }
}
