// Reductions among the threads of a warp or a block: each thread contributes a value, and all
// receive the result. The order of the operations is fixed, so the result is the same in every run.
//
// A struct kg_fold_REDUCTION_TYPE defines how two values are combined.

// ---- Combining two values ----

struct kg_fold_sum_f32 {
    typedef float type;
    KG_INLINE float both(float a, float b)
    {
        return a + b;
    }
};

struct kg_fold_sum_f64 {
    typedef double type;
    KG_INLINE double both(double a, double b)
    {
        return a + b;
    }
};

struct kg_fold_sum_i64 {
    typedef int64_t type;
    KG_INLINE int64_t both(int64_t a, int64_t b)
    {
        return kg_add_i64(a, b);
    }
};

struct kg_fold_prod_f32 {
    typedef float type;
    KG_INLINE float both(float a, float b)
    {
        return a * b;
    }
};

struct kg_fold_prod_f64 {
    typedef double type;
    KG_INLINE double both(double a, double b)
    {
        return a * b;
    }
};

struct kg_fold_prod_i64 {
    typedef int64_t type;
    KG_INLINE int64_t both(int64_t a, int64_t b)
    {
        return kg_mul_i64(a, b);
    }
};

struct kg_fold_max_f32 {
    typedef float type;
    KG_INLINE float both(float a, float b)
    {
        return kg_max_f32(a, b);
    }
};

struct kg_fold_max_f64 {
    typedef double type;
    KG_INLINE double both(double a, double b)
    {
        return kg_max_f64(a, b);
    }
};

struct kg_fold_max_i64 {
    typedef int64_t type;
    KG_INLINE int64_t both(int64_t a, int64_t b)
    {
        return kg_max_i64(a, b);
    }
};

struct kg_fold_min_f32 {
    typedef float type;
    KG_INLINE float both(float a, float b)
    {
        return kg_min_f32(a, b);
    }
};

struct kg_fold_min_f64 {
    typedef double type;
    KG_INLINE double both(double a, double b)
    {
        return kg_min_f64(a, b);
    }
};

struct kg_fold_min_i64 {
    typedef int64_t type;
    KG_INLINE int64_t both(int64_t a, int64_t b)
    {
        return kg_min_i64(a, b);
    }
};

struct kg_fold_any_bool {
    typedef int type;
    KG_INLINE int both(int a, int b)
    {
        return a | b;
    }
};

struct kg_fold_all_bool {
    typedef int type;
    KG_INLINE int both(int a, int b)
    {
        return a & b;
    }
};

// argmax and argmin: a value and its index; at < 0 is the neutral element, whose value is the
// reduction of nothing.
template <typename T, typename AT = int64_t>
struct kg_found {
    T value;
    AT at;
};

KG_INLINE bool kg_is_same(float a, float b)
{
    return a == b || (a != a && b != b);
}

KG_INLINE bool kg_is_same(double a, double b)
{
    return a == b || (a != a && b != b);
}

KG_INLINE bool kg_is_same(int64_t a, int64_t b)
{
    return a == b;
}

// The type of an index: in a row that threads hold in registers, or in any row.
template <bool HELD>
struct kg_place {
    typedef int64_t type;
};
template <>
struct kg_place<true> {
    typedef int32_t type;
};

// The first of two indices; a missing one counts as last.
KG_INLINE int32_t kg_first_place(int32_t a, int32_t b)
{
    return (uint32_t)a < (uint32_t)b ? a : b;
}

KG_INLINE int64_t kg_first_place(int64_t a, int64_t b)
{
    return (uint64_t)a < (uint64_t)b ? a : b;
}

// Combines value and index for VALUES, the fold of a maximum or minimum. NaN wins, and among equals
// the first.
template <typename VALUES, typename AT>
struct kg_fold_place {
    typedef kg_found<typename VALUES::type, AT> type;
    KG_INLINE type both(type a, type b)
    {
        const typename VALUES::type found = VALUES::both(a.value, b.value);
        return {found, kg_first_place(kg_is_same(found, a.value) ? a.at : (AT)-1,
                                      kg_is_same(found, b.value) ? b.at : (AT)-1)};
    }
};

// A constant as a value: what a generic lambda is given.
template <bool VALUE>
struct kg_constant {
    static constexpr bool value = VALUE;
};

// Combines `value` with the best so far and tells whether it replaced it. One thread does so for
// each element. Zeros and NaN are made unique, so that comparing bits finds equal values. UNIQUE:
// zeros are so already.
template <typename VALUES, bool UNIQUE = false>
KG_INLINE bool kg_take_better(float &best, float value)
{
    const float old = best;
    best = VALUES::both(best, UNIQUE ? value : value + 0.0f); // min and max leave one kind of NaN
    return kg_bits_f32(best) != kg_bits_f32(old);
}

template <typename VALUES>
KG_INLINE bool kg_take_better(double &best, double value)
{
    const double old = best;
    best = VALUES::both(best, value);
    return best != old && old == old;
}

template <typename VALUES>
KG_INLINE bool kg_take_better(int64_t &best, int64_t value)
{
    const int64_t old = best;
    best = VALUES::both(best, value);
    return best != old;
}

// A long sum with its rounding errors, which are added separately (Knuth's two-sum).
template <typename T>
struct kg_two {
    T sum, lost;
};

template <typename T>
KG_INLINE void kg_two_sum(T *sum, T *lost, T value)
{
    const T old = *sum, now = old + value, part = now - old;
    *lost += (old - (now - part)) + (value - part);
    *sum = now;
}

// Infinities make `lost` NaN.
template <typename T>
KG_INLINE T kg_two_value(T sum, T lost)
{
    return lost == lost ? sum + lost : sum;
}

struct kg_fold_two_f32 {
    typedef kg_two<float> type;
    KG_INLINE type both(type a, type b)
    {
        type all = {a.sum, 0.0f};
        kg_two_sum(&all.sum, &all.lost, b.sum);
        all.lost += a.lost + b.lost; // commutative
        return all;
    }
};

struct kg_fold_two_f64 {
    typedef kg_two<double> type;
    KG_INLINE type both(type a, type b)
    {
        type all = {a.sum, 0.0};
        kg_two_sum(&all.sum, &all.lost, b.sum);
        all.lost += a.lost + b.lost; // commutative
        return all;
    }
};

// ---- Reductions of a warp ----

template <typename T>
KG_INLINE T kg_from_lane(T value, int distance)
{
    return __shfl_xor_sync(0xffffffff, value, distance);
}

template <typename T>
KG_INLINE kg_two<T> kg_from_lane(kg_two<T> two, int distance)
{
    return {kg_from_lane(two.sum, distance), kg_from_lane(two.lost, distance)};
}

template <int LANES, typename FOLD>
KG_INLINE typename FOLD::type kg_lanes_fold(FOLD, typename FOLD::type value)
{
#pragma unroll
    for (int distance = LANES / 2; distance > 0; distance /= 2)
        value = FOLD::both(value, kg_from_lane(value, distance));
    return value;
}

#if __CUDA_ARCH__ >= 800
enum { KG_LANES_AT_ONCE = 32 };
#else
enum { KG_LANES_AT_ONCE = 0 }; // no warp-wide instruction
#endif

// The smallest index of all lanes.
template <int LANES, typename AT>
KG_INLINE AT kg_lanes_first(AT at)
{
    if constexpr (LANES == KG_LANES_AT_ONCE && sizeof(AT) == 4) {
        asm volatile("redux.sync.min.u32 %0, %0, 0xffffffff;" : "+r"(at));
    } else {
#pragma unroll
        for (int distance = LANES / 2; distance > 0; distance /= 2)
            at = kg_first_place(at, kg_from_lane(at, distance));
    }
    return at;
}

// Reduces the values, then the indices of the lanes that have the result.
template <int LANES, typename VALUES, typename T, typename AT>
KG_INLINE kg_found<T, AT> kg_lanes_fold(kg_fold_place<VALUES, AT>, kg_found<T, AT> found)
{
    const T value = kg_lanes_fold<LANES>(VALUES(), found.value);
    return {value, kg_lanes_first<LANES>(kg_is_same(value, found.value) ? found.at : (AT)-1)};
}

// Reduces groups of LANES adjacent lanes, a power of two; every thread of the warp takes part.
template <typename FOLD, int LANES = 32>
KG_INLINE typename FOLD::type kg_warp_fold(typename FOLD::type value)
{
    return kg_lanes_fold<LANES>(FOLD(), value);
}

// ---- Reductions of a block ----

// Reduces COUNT values of each of THREADS threads, a power of two and at least a warp: all threads
// of the block, numbered by threadIdx.x. All folds of a kernel share one `turn`, 0 at first: they
// alternate between two sets of slots, so that one barrier each is enough.
template <typename FOLD, int THREADS, int COUNT>
KG_INLINE void kg_block_fold(typename FOLD::type (&values)[COUNT], int &turn)
{
    constexpr int warps = THREADS / 32;
    static_assert(THREADS % 32 == 0 && (warps & (warps - 1)) == 0 && warps <= 32, "whole warps");
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        values[i] = kg_warp_fold<FOLD>(values[i]);
    if (warps == 1)
        return;
    __shared__ typename FOLD::type slots[2][COUNT][warps];
    if (threadIdx.x % 32 == 0)
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            slots[turn][i][threadIdx.x / 32] = values[i];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        values[i] = kg_warp_fold<FOLD, warps>(slots[turn][i][threadIdx.x % warps]);
    turn ^= 1;
}

template <typename FOLD, int THREADS>
KG_INLINE typename FOLD::type kg_block_fold(typename FOLD::type value, int &turn)
{
    typename FOLD::type values[1] = {value};
    kg_block_fold<FOLD, THREADS>(values, turn);
    return values[0];
}

// The threads of a row: adjacent lanes of a warp, or all threads of a block.
template <typename FOLD, int THREADS>
KG_INLINE typename FOLD::type kg_row_fold(typename FOLD::type value, int &turn)
{
    if constexpr (THREADS <= 32)
        return kg_warp_fold<FOLD, THREADS>(value);
    else
        return kg_block_fold<FOLD, THREADS>(value, turn);
}

// ---- The blocks of a cluster ----

// A cluster barrier in two halves: after waiting, all blocks see what a block wrote to its shared
// memory before it arrived.
KG_INLINE void kg_cluster_arrive()
{
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

// The same if only mbarriers were written, which kg_arrival_make makes visible itself.
KG_INLINE void kg_cluster_arrive_relaxed()
{
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}

KG_INLINE void kg_cluster_await()
{
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

KG_INLINE void kg_cluster_wait()
{
    kg_cluster_arrive();
    kg_cluster_await();
}

KG_INLINE unsigned kg_cluster_rank()
{
    unsigned rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// The same variable in the shared memory of another block of the cluster.
template <typename T>
KG_INLINE T *kg_of_block(T *shared, unsigned rank)
{
    uint64_t there;
    asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(shared), "r"(rank));
    return (T *)there;
}

// Reduces the blocks' values at `shared`, in the order of the blocks. All blocks wait for each
// other before and after.
template <typename FOLD, int BLOCKS>
KG_INLINE typename FOLD::type kg_cluster_total(const typename FOLD::type *shared)
{
    typename FOLD::type total = *kg_of_block(shared, 0);
#pragma unroll
    for (int rank = 1; rank < BLOCKS; rank++)
        total = FOLD::both(total, *kg_of_block(shared, rank));
    return total;
}

// ---- Reductions of groups of threads ----

// `slots` has one value of each of `groups` groups, a power of two, for each of `wide` positions,
// group by group. Afterwards those of the first group are the totals; groups are combined in pairs.
// All threads of the block take part; a barrier is needed before the slots are written again.
template <typename FOLD>
KG_INLINE void kg_groups_fold(typename FOLD::type *slots, int wide, int groups)
{
    const int thread = threadIdx.y * blockDim.x + threadIdx.x, threads = blockDim.x * blockDim.y;
    for (int half = groups / 2; half > 0; half /= 2) {
        __syncthreads();
        for (int i = thread; i < half * wide; i += threads)
            slots[i] = FOLD::both(slots[i], slots[i + half * wide]);
    }
    __syncthreads();
}
