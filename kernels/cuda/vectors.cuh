// Adjacent elements in memory, N at a time: one access of N * sizeof(T) bytes, a power of two. 32
// bytes take two accesses. Addresses are multiples of the size, up to 16.

template <typename T, int N>
struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) kg_vec {
    T at[N];
};

// The word type for an access of SIZE bytes.
template <int SIZE>
struct kg_word {
    typedef uint4 type;
};
template <>
struct kg_word<8> {
    typedef uint2 type;
};
template <>
struct kg_word<4> {
    typedef uint32_t type;
};
template <>
struct kg_word<2> {
    typedef uint16_t type;
};
template <>
struct kg_word<1> {
    typedef uint8_t type;
};

KG_INLINE uint16_t kg_read_once(const uint8_t *from)
{
    uint16_t word;
    asm("ld.global.nc.L1::no_allocate.u8 %0, [%1];" : "=h"(word) : "l"(from));
    return word;
}

KG_INLINE uint16_t kg_read_once(const uint16_t *from)
{
    uint16_t word;
    asm("ld.global.nc.L1::no_allocate.u16 %0, [%1];" : "=h"(word) : "l"(from));
    return word;
}

KG_INLINE uint32_t kg_read_once(const uint32_t *from)
{
    uint32_t word;
    asm("ld.global.nc.L1::no_allocate.u32 %0, [%1];" : "=r"(word) : "l"(from));
    return word;
}

KG_INLINE uint2 kg_read_once(const uint2 *from)
{
    uint2 word;
    asm("ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2];"
        : "=r"(word.x), "=r"(word.y)
        : "l"(from));
    return word;
}

KG_INLINE uint4 kg_read_once(const uint4 *from)
{
    uint4 word;
    asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w)
        : "l"(from));
    return word;
}

// Stores to global memory in one instruction: otherwise the compiler may split vectors.
KG_INLINE void kg_write(uint8_t *to, uint8_t word)
{
    *to = word;
}

KG_INLINE void kg_write(uint16_t *to, uint16_t word)
{
    *to = word;
}

KG_INLINE void kg_write(uint32_t *to, uint32_t word)
{
    *to = word;
}

KG_INLINE void kg_write(uint2 *to, uint2 word)
{
    asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(to), "r"(word.x), "r"(word.y) : "memory");
}

KG_INLINE void kg_write(uint4 *to, uint4 word)
{
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(word.x), "r"(word.y),
                 "r"(word.z), "r"(word.w)
                 : "memory");
}

KG_INLINE void kg_write_once(uint8_t *to, uint8_t word)
{
    asm volatile("st.global.cs.u8 [%0], %1;" ::"l"(to), "h"((uint16_t)word));
}

KG_INLINE void kg_write_once(uint16_t *to, uint16_t word)
{
    asm volatile("st.global.cs.u16 [%0], %1;" ::"l"(to), "h"(word));
}

KG_INLINE void kg_write_once(uint32_t *to, uint32_t word)
{
    asm volatile("st.global.cs.u32 [%0], %1;" ::"l"(to), "r"(word));
}

KG_INLINE void kg_write_once(uint2 *to, uint2 word)
{
    asm volatile("st.global.cs.v2.u32 [%0], {%1, %2};" ::"l"(to), "r"(word.x), "r"(word.y));
}

KG_INLINE void kg_write_once(uint4 *to, uint4 word)
{
    asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(word.x), "r"(word.y),
                 "r"(word.z), "r"(word.w));
}

// Uses the read-only cache if the compiler can tell that the kernel does not write: const
// __restrict__.
template <int N, typename T>
KG_INLINE kg_vec<T, N> kg_load_vec(const T *from)
{
    typedef typename kg_word<N * sizeof(T)>::type word;
    kg_vec<T, N> v;
#pragma unroll
    for (int i = 0; i < (int)(sizeof v / sizeof(word)); i++)
        reinterpret_cast<word *>(&v)[i] = reinterpret_cast<const word *>(from)[i];
    return v;
}

// A vector as it came from memory, for those that are kept while others are worked on: compilers
// take the small elements of a kg_vec apart as soon as it is there, and wait for it.
template <typename T, int N>
struct kg_raw_vec {
    typedef typename kg_word<N * sizeof(T)>::type word;
    word at[sizeof(kg_vec<T, N>) / sizeof(word)];
};

template <int N, typename T>
KG_INLINE kg_raw_vec<T, N> kg_load_raw(const T *from)
{
    typedef typename kg_raw_vec<T, N>::word word;
    kg_raw_vec<T, N> raw;
#pragma unroll
    for (int i = 0; i < (int)(sizeof raw / sizeof(word)); i++)
        raw.at[i] = reinterpret_cast<const word *>(from)[i];
    return raw;
}

template <typename T, int N>
KG_INLINE kg_vec<T, N> kg_elements(kg_raw_vec<T, N> raw)
{
    typedef typename kg_raw_vec<T, N>::word word;
    kg_vec<T, N> v;
#pragma unroll
    for (int i = 0; i < (int)(sizeof v / sizeof(word)); i++)
        reinterpret_cast<word *>(&v)[i] = raw.at[i];
    return v;
}

// The vector at `from`, which is element `place` of a tensor of `count`; elements past its ends are
// left out. Without SHIFTS there are none.
template <int N, bool SHIFTS, typename T>
KG_INLINE kg_raw_vec<T, N> kg_load_shifted(const T *from, int64_t place, int64_t count)
{
    if (!SHIFTS || (place >= 0 && place + N <= count))
        return kg_load_raw<N>(from);
    kg_raw_vec<T, N> raw = {};
#pragma unroll
    for (int i = 0; i < N; i++)
        if (place + i >= 0 && place + i < count)
            reinterpret_cast<T *>(&raw)[i] = from[i];
    return raw;
}

// For data that is read once and not written while the kernel runs.
template <int N, typename T>
KG_INLINE kg_vec<T, N> kg_load_vec_stream(const T *from)
{
    typedef typename kg_word<N * sizeof(T)>::type word;
    kg_vec<T, N> v;
#pragma unroll
    for (int i = 0; i < (int)(sizeof v / sizeof(word)); i++)
        reinterpret_cast<word *>(&v)[i] =
            (word)kg_read_once(reinterpret_cast<const word *>(from) + i);
    return v;
}

// For loads that the L2 evicts first, from sm_80 on.
KG_INLINE uint64_t kg_evict_first()
{
    uint64_t policy = 0;
#if __CUDA_ARCH__ >= 800
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
#endif
    return policy;
}

// For loads that the L2 evicts last, from sm_80 on.
KG_INLINE uint64_t kg_evict_last()
{
    uint64_t policy = 0;
#if __CUDA_ARCH__ >= 800
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
#endif
    return policy;
}

// A policy made where this is called. Compilers would make it beside its loads, and those that have
// a condition could have no predicate then.
KG_INLINE uint64_t kg_policy_here(uint64_t policy)
{
    asm volatile("" : "+l"(policy));
    return policy;
}

#if __CUDA_ARCH__ >= 800
// Loads with a policy of the L2. Evicted first: what other kernels wrote stays there instead, and
// need not go to memory while this one runs. Evicted last: what this kernel writes leaves the L2
// before what it has read, which is faster where both are many times what the L2 holds.
KG_INLINE uint32_t kg_read_policy(const uint32_t *from, uint64_t policy)
{
    uint32_t word;
    asm("ld.global.nc.L2::cache_hint.u32 %0, [%1], %2;" : "=r"(word) : "l"(from), "l"(policy));
    return word;
}

KG_INLINE uint2 kg_read_policy(const uint2 *from, uint64_t policy)
{
    uint2 word;
    asm("ld.global.nc.L2::cache_hint.v2.u32 {%0, %1}, [%2], %3;"
        : "=r"(word.x), "=r"(word.y)
        : "l"(from), "l"(policy));
    return word;
}

KG_INLINE uint4 kg_read_policy(const uint4 *from, uint64_t policy)
{
    uint4 word;
    asm("ld.global.nc.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
        : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w)
        : "l"(from), "l"(policy));
    return word;
}
#endif

// For data that is read once and not written while the kernel runs.
template <int N, typename T>
KG_INLINE kg_vec<T, N> kg_load_vec_policy(const T *from, uint64_t policy)
{
#if __CUDA_ARCH__ >= 800
    typedef typename kg_word<N * sizeof(T)>::type word;
    if constexpr (sizeof(word) >= sizeof(uint32_t)) {
        kg_vec<T, N> v;
#pragma unroll
        for (int i = 0; i < (int)(sizeof v / sizeof(word)); i++)
            reinterpret_cast<word *>(&v)[i] =
                kg_read_policy(reinterpret_cast<const word *>(from) + i, policy);
        return v;
    }
#endif
    return kg_load_vec<N>(from);
}

template <int N, typename T>
KG_INLINE kg_vec<T, N> kg_load_vec_evict_first(const T *from)
{
    return kg_load_vec_policy<N>(from, kg_evict_first());
}

template <int N, typename T>
KG_INLINE kg_vec<T, N> kg_load_vec_evict_last(const T *from)
{
    return kg_load_vec_policy<N>(from, kg_evict_last());
}

KG_INLINE uint32_t kg_shared_address(const void *shared)
{
    return (uint32_t)__cvta_generic_to_shared(shared);
}

// Copies a vector of 4, 8 or 16 bytes asynchronously into the thread's slot of shared memory. It is
// available after kg_copies_wait.
template <int N, typename T>
KG_INLINE void kg_copy_vec(kg_vec<T, N> *to, const T *from)
{
    static_assert(sizeof *to == 4 || sizeof *to == 8 || sizeof *to == 16, "one copy");
#if __CUDA_ARCH__ < 800
    *to = kg_load_vec<N>(from);
#else
    const uint64_t place = __cvta_generic_to_global(from);
    if constexpr (sizeof *to == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(kg_shared_address(to)),
                     "l"(place)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(kg_shared_address(to)),
                     "l"(place), "n"(sizeof *to)
                     : "memory");
#endif
}

// Copies to this block's shared memory in one instruction of one thread, from sm_90 on; the bytes
// count for the mbarrier `arrival`. Both addresses and the number of bytes are multiples of 16.
KG_INLINE void kg_copy_bulk(void *to, const void *from, uint32_t bytes, uint64_t *arrival)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1], %2, [%3];" ::"r"(kg_shared_address(to)),
                 "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(kg_shared_address(arrival))
                 : "memory");
}

KG_INLINE void kg_copies_wait()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

template <int N, typename T>
KG_INLINE void kg_store_vec(T *to, kg_vec<T, N> v)
{
    typedef typename kg_word<N * sizeof(T)>::type word;
#pragma unroll
    for (int i = 0; i < (int)(sizeof v / sizeof(word)); i++)
        kg_write(reinterpret_cast<word *>(to) + i, reinterpret_cast<const word *>(&v)[i]);
}

// The elements [low, high) of a vector. Without SHIFTS these are all.
template <bool SHIFTS, int N, typename T>
KG_INLINE void kg_store_shifted(T *to, kg_vec<T, N> v, int low, int high)
{
    if constexpr (!SHIFTS) {
        kg_store_vec(to, v);
    } else if (low <= 0 && high >= N) {
        kg_store_vec(to, v);
    } else {
#pragma unroll
        for (int i = 0; i < N; i++)
            if (i >= low && i < high)
                to[i] = v.at[i];
    }
}

// For data that the kernel does not read again before its next barrier.
template <int N, typename T>
KG_INLINE void kg_store_vec_stream(T *to, kg_vec<T, N> v)
{
    typedef typename kg_word<N * sizeof(T)>::type word;
#pragma unroll
    for (int i = 0; i < (int)(sizeof v / sizeof(word)); i++)
        kg_write_once(reinterpret_cast<word *>(to) + i, reinterpret_cast<const word *>(&v)[i]);
}

// A vector whose zeros are positive, made two elements at a time. Without ALL it stays as it is.
template <bool ALL, int N>
KG_INLINE kg_vec<kg_f16, N> kg_unique_zeros_f16(kg_vec<kg_f16, N> v)
{
    if constexpr (ALL && N == 1)
        asm("add.rn.f16 %0, %0, %1;" : "+h"(v.at[0]) : "h"((kg_f16)0));
    else if constexpr (ALL)
#pragma unroll
        for (int i = 0; i < N / 2; i++)
            asm("add.rn.f16x2 %0, %0, %1;" : "+r"(reinterpret_cast<uint32_t *>(&v)[i]) : "r"(0));
    return v;
}

template <bool ALL, int N>
KG_INLINE kg_vec<kg_bf16, N> kg_unique_zeros_bf16(kg_vec<kg_bf16, N> v)
{
#if __CUDA_ARCH__ >= 800
    const uint32_t ones = 0x3f803f80, zeros = 0;
    if constexpr (ALL && N == 1)
        asm("fma.rn.bf16 %0, %0, %1, %2;"
            : "+h"(v.at[0])
            : "h"((kg_bf16)ones), "h"((kg_bf16)zeros));
    else if constexpr (ALL)
#pragma unroll
        for (int i = 0; i < N / 2; i++)
            asm("fma.rn.bf16x2 %0, %0, %1, %2;"
                : "+r"(reinterpret_cast<uint32_t *>(&v)[i])
                : "r"(ones), "r"(zeros));
#else
#pragma unroll
    for (int i = 0; ALL && i < N; i++)
        v.at[i] = v.at[i] == 0x8000 ? 0 : v.at[i];
#endif
    return v;
}

// ---- Elements of vectors: stored and computed types ----

KG_INLINE float kg_unpack_f32(float x)
{
    return x;
}

KG_INLINE float kg_pack_f32(float x)
{
    return x;
}

KG_INLINE double kg_unpack_f64(double x)
{
    return x;
}

KG_INLINE double kg_pack_f64(double x)
{
    return x;
}

KG_INLINE int64_t kg_unpack_i64(int64_t x)
{
    return x;
}

KG_INLINE int64_t kg_pack_i64(int64_t x)
{
    return x;
}

KG_INLINE bool kg_unpack_bool(bool x)
{
    return x;
}

KG_INLINE bool kg_pack_bool(bool x)
{
    return x;
}

KG_INLINE int64_t kg_unpack_i32(int32_t x)
{
    return x;
}

KG_INLINE int32_t kg_pack_i32(int64_t x)
{
    return (int32_t)x;
}

KG_INLINE int64_t kg_unpack_i8(int8_t x)
{
    return x;
}

KG_INLINE int8_t kg_pack_i8(int64_t x)
{
    return (int8_t)x;
}

KG_INLINE int64_t kg_unpack_u8(uint8_t x)
{
    return x;
}

KG_INLINE uint8_t kg_pack_u8(int64_t x)
{
    return (uint8_t)x;
}
