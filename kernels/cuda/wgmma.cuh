// Instructions of sm_90a for tiled products: TMA loads and stores, their mbarriers, wgmma.

// Overloads that take shared-memory addresses avoid converting pointers in a loop.
KG_INLINE void kg_tiles_wait(uint32_t barrier, uint32_t odd)
{
    asm volatile("{\n"
                 ".reg .pred over;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n"
                 "@!over bra again;\n"
                 "}" ::"r"(barrier),
                 "r"(odd)
                 : "memory");
}

// Whether there is nothing to wait for.
KG_INLINE bool kg_tiles_test(uint32_t barrier, uint32_t odd)
{
    uint32_t is_over;
    asm volatile("{\n"
                 ".reg .pred over;\n"
                 "mbarrier.test_wait.parity.shared::cta.b64 over, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, over;\n"
                 "}"
                 : "=r"(is_over)
                 : "r"(barrier), "r"(odd)
                 : "memory");
    return is_over != 0;
}

KG_INLINE void kg_tiles_wait(const uint64_t *barrier, uint32_t odd)
{
    kg_tiles_wait(kg_shared_address(barrier), odd);
}

KG_INLINE void kg_tiles_barrier(uint32_t barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals)
                 : "memory");
}

KG_INLINE void kg_tiles_barrier(uint64_t *barrier, int arrivals)
{
    kg_tiles_barrier(kg_shared_address(barrier), arrivals);
}

// The address in block `rank` of the cluster that corresponds to `address` in this block.
KG_INLINE uint32_t kg_shared_address_in(uint32_t address, uint32_t rank)
{
    uint32_t there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
    return there;
}

// Arrives at a barrier of another block, with block scope: cluster scope would make every arrival
// wait for memory.
KG_INLINE void kg_tiles_arrive_there(uint32_t barrier)
{
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}

KG_INLINE void kg_tiles_arrive(uint32_t barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

KG_INLINE void kg_tiles_expect(uint32_t barrier, uint32_t bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

KG_INLINE void kg_tiles_expect(uint64_t *barrier, uint32_t bytes)
{
    kg_tiles_expect(kg_shared_address(barrier), bytes);
}

// Copies adjacent bytes, a multiple of 16.
KG_INLINE void kg_tiles_copy_line(uint32_t to, const void *from, uint32_t bytes, uint32_t barrier,
                                  uint64_t policy)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(to),
                 "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(barrier), "l"(policy)
                 : "memory");
}

// TMA load of a box; SHARED: multicast to the blocks of the cluster whose bits are set in `blocks`.
template <bool SHARED>
KG_INLINE void kg_tiles_copy(uint32_t to, const kg_tensor_map *map, uint32_t barrier, int x, int y,
                             int z, uint16_t blocks)
{
    if constexpr (SHARED)
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile"
                     ".mbarrier::complete_tx::bytes.multicast::cluster"
                     " [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(to),
                     "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "h"(blocks)
                     : "memory");
    else
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile"
                     ".mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(to),
                     "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z)
                     : "memory");
}

template <bool SHARED>
KG_INLINE void kg_tiles_copy(void *to, const kg_tensor_map *map, uint64_t *barrier, int x, int y,
                             int z, uint16_t blocks)
{
    kg_tiles_copy<SHARED>(kg_shared_address(to), map, kg_shared_address(barrier), x, y, z, blocks);
}

// The same into this block only, for data that is not read again: evict_first in the L2, except for
// one sixteenth, which the next launch then finds there. (A policy of evict_normal for everything
// is slower than no policy.)
KG_INLINE void kg_tiles_copy_streamed(void *to, const kg_tensor_map *map, uint64_t *barrier, int x,
                                      int y, int z)
{
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_normal.L2::evict_first.b64 %0, 0.0625;" : "=l"(policy));
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile"
                 ".mbarrier::complete_tx::bytes.L2::cache_hint"
                 " [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(kg_shared_address(to)),
                 "l"(map), "r"(kg_shared_address(barrier)), "r"(x), "r"(y), "r"(z), "l"(policy)
                 : "memory");
}

KG_INLINE void kg_tiles_store(const kg_tensor_map *map, const void *from, int x, int y, int z)
{
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group"
                 " [%0, {%2, %3, %4}], [%1];\n"
                 "cp.async.bulk.commit_group;" ::"l"(map),
                 "r"(kg_shared_address(from)), "r"(x), "r"(y), "r"(z)
                 : "memory");
}

// The same where `issues`, without a branch: behind one, compilers no longer know that the threads
// of a warp are together, and what is the same for all of them goes through registers of each.
KG_INLINE void kg_tiles_store_where(bool issues, const kg_tensor_map *map, const void *from, int x,
                                    int y, int z)
{
    asm volatile("{\n"
                 ".reg .pred issues;\n"
                 "setp.ne.u32 issues, %5, 0;\n"
                 "@issues cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group"
                 " [%0, {%2, %3, %4}], [%1];\n"
                 "@issues cp.async.bulk.commit_group;\n"
                 "}" ::"l"(map),
                 "r"(kg_shared_address(from)), "r"(x), "r"(y), "r"(z), "r"((uint32_t)issues)
                 : "memory");
}

KG_INLINE void kg_tiles_expect_map(const kg_tensor_map *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// Waits until all but LEFT of this thread's TMA stores have read their shared memory.
template <int LEFT>
KG_INLINE void kg_tiles_stored()
{
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(LEFT) : "memory");
}

// Makes this thread's writes to shared memory visible to TMA stores that follow the next barrier.
KG_INLINE void kg_tiles_written()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

template <int THREADS>
KG_INLINE void kg_tiles_meet(int number)
{
    asm volatile("bar.sync %0, %1;" ::"r"(number), "n"(THREADS) : "memory");
}

// The same, and whether `mine` was true for all of these threads.
template <int THREADS>
KG_INLINE bool kg_tiles_agree(int number, bool mine)
{
    uint32_t all;
    asm volatile("{\n"
                 ".reg .pred mine, all;\n"
                 "setp.ne.u32 mine, %1, 0;\n"
                 "bar.red.and.pred all, %2, %3, mine;\n"
                 "selp.u32 %0, 1, 0, all;\n"
                 "}"
                 : "=r"(all)
                 : "r"((uint32_t)mine), "r"(number), "n"(THREADS)
                 : "memory");
    return all;
}

// Compilers since CUDA 13 have a fence for a block's own shared memory alone.
enum { KG_FENCES_SHARED = __CUDACC_VER_MAJOR__ >= 13 };

// Arrives at the cluster barrier, releasing only writes to the block's own shared memory: it does
// not wait for global memory, which takes about a microsecond.
KG_INLINE void kg_cluster_arrive_shared()
{
    if constexpr (KG_FENCES_SHARED) {
        asm volatile("fence.release.sync_restrict::shared::cta.cluster;" ::: "memory");
        kg_cluster_arrive_relaxed();
    } else {
        kg_cluster_arrive();
    }
}

KG_INLINE void kg_wgmma_begin()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

KG_INLINE void kg_wgmma_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int LEFT>
KG_INLINE void kg_wgmma_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}

// The lower half of wgmma's matrix descriptor for a tile with 128-byte swizzle. Eight rows of 128
// bytes are an atom. Atoms are 1024 bytes apart along K (of a K-major tile: along rows); `leap`
// bytes lead to the next 64 rows of a tile that is not K-major. The upper half is constant.
KG_INLINE uint32_t kg_wgmma_tile(uint32_t address, uint32_t leap)
{
    return leap >> 4 << 16 | (address >> 4 & 0x3fff);
}

// The same of an address within the 256 KiB that an SM's shared memory has at most.
KG_INLINE uint32_t kg_wgmma_shared_tile(uint32_t address, uint32_t leap)
{
    return (leap >> 4 << 16) + (address >> 4);
}

KG_INLINE uint64_t kg_wgmma_whole(uint32_t tile)
{
    return (uint64_t)(1 << 30 | 1024 >> 4) << 32 | tile;
}

// The descriptor of an address `bytes` further in the same tile. One addition per instruction: more
// would take longer than a short wgmma.
KG_INLINE uint64_t kg_wgmma_behind(uint64_t tile, uint32_t bytes)
{
    return tile + (bytes >> 4);
}

// True for one thread of a converged warp. The compiler knows that it is a single thread, and so
// makes no loop over threads around TMA instructions.
KG_INLINE bool kg_is_elected()
{
    uint32_t elected;
    asm volatile("{\n"
                 ".reg .pred one;\n"
                 "elect.sync _|one, 0xffffffff;\n"
                 "selp.u32 %0, 1, 0, one;\n"
                 "}"
                 : "=r"(elected));
    return elected;
}

// The number of this warp, known to the compiler to be uniform in the warp.
KG_INLINE int kg_warp_number()
{
    return __shfl_sync(0xffffffff, (int)threadIdx.x / 32, 0);
}

// stmatrix: four (or two) 8x8 matrices of 16-bit elements, a pair of each in every lane. `to` is
// the row whose address this lane provides. TRANSPOSED: stored by columns.
template <bool TRANSPOSED>
KG_INLINE void kg_matrices_store(void *to, const uint32_t (&pairs)[4])
{
    if constexpr (TRANSPOSED)
        asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                         kg_shared_address(to)),
                     "r"(pairs[0]), "r"(pairs[1]), "r"(pairs[2]), "r"(pairs[3])
                     : "memory");
    else
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                         kg_shared_address(to)),
                     "r"(pairs[0]), "r"(pairs[1]), "r"(pairs[2]), "r"(pairs[3])
                     : "memory");
}

template <bool TRANSPOSED>
KG_INLINE void kg_matrices_store(void *to, uint32_t first, uint32_t second)
{
    if constexpr (TRANSPOSED)
        asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(
                         kg_shared_address(to)),
                     "r"(first), "r"(second)
                     : "memory");
    else
        asm volatile(
            "stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(kg_shared_address(to)),
            "r"(first), "r"(second)
            : "memory");
}
