// Tensor core instructions of a warp, and loads of their fragments: copies from global to shared
// memory, and matrices of 8 rows of 16 bytes from there to registers.
//
// Fragments have the layout of the instructions: the word of lane 4 * r + c is word c of row r.
// Transposed, it is elements 2 * c and 2 * c + 1 of column r, for elements of 16 bits.

// ---- Global to shared memory ----

// Copies the first `bytes` of SIZE bytes, and zeros for the rest. With 0 bytes nothing is read.
// Both addresses are multiples of SIZE: 4, 8 or 16.
template <int SIZE>
KG_INLINE void kg_copy_part(uint32_t to, const void *from, int bytes)
{
#if __CUDA_ARCH__ >= 800
    const uint64_t place = __cvta_generic_to_global(from);
    if constexpr (SIZE == 16)
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(place),
                     "r"(bytes)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(place),
                     "n"(SIZE), "r"(bytes)
                     : "memory");
#endif
}

// Commits the copies since the last call as one group, which may be empty.
KG_INLINE void kg_copies_close()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits for all groups of the thread except the latest LEFT.
template <int LEFT>
KG_INLINE void kg_copies_wait_but()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
#endif
}

// ---- Shared memory to registers, and back ----

KG_INLINE void kg_put_shared(uint32_t to, uint4 words)
{
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(words.x), "r"(words.y),
                 "r"(words.z), "r"(words.w)
                 : "memory");
}

KG_INLINE uint32_t kg_get_shared(uint32_t from)
{
    uint32_t word;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(from) : "memory");
    return word;
}

KG_INLINE uint4 kg_get_shared_words(uint32_t from)
{
    uint4 words;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
                 : "r"(from)
                 : "memory");
    return words;
}

// Loads four matrices. Lane l gives the address of row l % 8 of matrix l / 8.
KG_INLINE void kg_get_matrices(uint32_t (&to)[4], uint32_t from)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
}

KG_INLINE void kg_get_matrices_turned(uint32_t (&to)[4], uint32_t from)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
}

// ---- Products: sums[16, 8] += a[16, k] * b[k, 8] ----
//
// `a` is the upper and the lower half of the rows, for the first half of k, then for the second;
// `b` is both halves of k for the 8 columns. Lane 4 * r + c has the accumulators of columns 2 * c
// and 2 * c + 1 of row r, then of row r + 8.

KG_INLINE void kg_multiply_f16(float (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
{
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
#pragma unroll
    for (int half = 0; half < 2; half++)
        asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
            "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
            : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
            : "r"(a[2 * half]), "r"(a[2 * half + 1]), "r"(b[half]));
#endif
}

KG_INLINE void kg_multiply_bf16(float (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

KG_INLINE void kg_multiply_tf32(float (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Rounds the bits of a float to the 11 significant bits of tf32: to nearest, or by truncation.
// Rounding may turn a NaN into a number, truncation does not; rounding turns the largest numbers
// into infinity.
KG_INLINE uint32_t kg_round_tf32(uint32_t bits)
{
    return (bits + 0x1000) & 0xffffe000;
}

KG_INLINE uint32_t kg_cut_tf32(uint32_t bits)
{
    return bits & 0xffffe000;
}

// ---- Clusters ----

// The address in block `rank` that corresponds to `place` in this block's shared memory.
KG_INLINE uint32_t kg_shared_of(uint32_t place, unsigned rank)
{
    uint32_t there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(place), "r"(rank));
    return there;
}

KG_INLINE float4 kg_get_shared_of(uint32_t place, unsigned rank)
{
    float4 value;
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
                 : "r"(kg_shared_of(place, rank))
                 : "memory");
    return value;
}

// A cluster barrier: what threads wrote to shared memory before is visible after it.
KG_INLINE void kg_cluster_meet()
{
    asm volatile("barrier.cluster.arrive.release;\n"
                 "barrier.cluster.wait.acquire;" ::
                     : "memory");
}
