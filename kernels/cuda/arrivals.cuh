// Reductions among the blocks of a cluster: a block sends values to the shared memory of another,
// where an mbarrier counts the bytes that are still to arrive. For Hopper and newer.
//
// An mbarrier has consecutive phases; the waiting thread gives the parity of the phase.

// Called by one thread. Others may use it after the next barrier, other blocks after a cluster
// barrier.
KG_INLINE void kg_arrival_make(uint64_t *arrival)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n"
                 "fence.mbarrier_init.release.cluster;" ::"r"(kg_shared_address(arrival))
                 : "memory");
}

// Called by one thread: the phase ends when these bytes have arrived.
KG_INLINE void kg_arrival_expect(uint64_t *arrival, uint32_t bytes)
{
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(kg_shared_address(arrival)),
        "r"(bytes)
        : "memory");
}

// The data arrives in this block's shared memory, so a wait with the scope of the block is enough:
// one with the scope of the cluster would also invalidate the L1, which holds data that all rows
// read.
KG_INLINE void kg_arrival_wait(uint64_t *arrival, uint32_t odd)
{
    uint32_t done;
    do
        asm volatile("{\n"
                     ".reg .pred over;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, over;\n"
                     "}"
                     : "=r"(done)
                     : "r"(kg_shared_address(arrival)), "r"(odd)
                     : "memory");
    while (!done);
}

// The address in block `rank` that corresponds to `shared` in this one.
KG_INLINE uint32_t kg_address_in(const void *shared, unsigned rank)
{
    uint32_t there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(there)
        : "r"(kg_shared_address(shared)), "r"(rank));
    return there;
}

// Sends the value to address `to` of block `rank` of the cluster, where it counts for `arrival`.
template <typename T>
KG_INLINE void kg_send(T *to, const T &value, uint64_t *arrival, unsigned rank)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16, "one store");
    const uint32_t *words = reinterpret_cast<const uint32_t *>(&value);
    const uint32_t there = kg_address_in(to, rank), tells = kg_address_in(arrival, rank);
    if constexpr (sizeof(T) == 4)
        asm volatile(
            "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(
                there),
            "r"(words[0]), "r"(tells)
            : "memory");
    else if constexpr (sizeof(T) == 8)
        asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 "
                     "[%0], {%1, %2}, [%3];" ::"r"(there),
                     "r"(words[0]), "r"(words[1]), "r"(tells)
                     : "memory");
    else
        asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 "
                     "[%0], {%1, %2, %3, %4}, [%5];" ::"r"(there),
                     "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3]), "r"(tells)
                     : "memory");
}

// Reduces ROWS values of each thread of BLOCKS blocks of THREADS threads, a power of two of warps,
// each with those of the other threads. Every warp sends its results to all blocks, which replaces
// a barrier, a store and a load. All folds of a kernel share the `meetings`, made before by
// kg_arrival_make, and one `turn`, 0 at first. Two sets of slots are enough: no block can send for
// the fold after the next before all blocks have read the values of this one. A block may end when
// its folds have ended.
template <typename FOLD, int THREADS, int BLOCKS, int ROWS>
KG_INLINE void kg_cluster_fold_all(typename FOLD::type (&values)[ROWS], uint64_t (&meetings)[2],
                                   int &turn)
{
    constexpr int warps = THREADS / 32, count = warps * BLOCKS, lanes = count < 32 ? count : 32;
    static_assert(THREADS % 32 == 0 && (count & (count - 1)) == 0 && BLOCKS <= 32, "whole warps");
    typedef typename FOLD::type type;
    // Of the width in which they are sent.
    __shared__ alignas(sizeof(type)) type slots[2][ROWS][count];
    const int set = turn % 2, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        values[r] = kg_warp_fold<FOLD>(values[r]);
    if (threadIdx.x == 0)
        kg_arrival_expect(&meetings[set], sizeof slots[set]);
#pragma unroll
    for (int r = 0; r < ROWS && lane < BLOCKS; r++)
        kg_send(&slots[set][r][kg_cluster_rank() * warps + warp], values[r], &meetings[set], lane);
    kg_arrival_wait(&meetings[set], turn / 2);
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        type value = slots[set][r][lane % lanes];
#pragma unroll
        for (int i = lanes; i < count; i += lanes)
            value = FOLD::both(value, slots[set][r][i + lane]);
        values[r] = kg_warp_fold<FOLD, lanes>(value);
    }
    turn = (turn + 1) % 4;
}

// The same for one value.
template <typename FOLD, int THREADS, int BLOCKS>
KG_INLINE typename FOLD::type kg_cluster_fold(typename FOLD::type value, uint64_t (&meetings)[2],
                                              int &turn)
{
    typename FOLD::type values[1] = {value};
    kg_cluster_fold_all<FOLD, THREADS, BLOCKS>(values, meetings, turn);
    return values[0];
}
