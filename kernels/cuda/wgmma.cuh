// Instructions of sm_90a for products of tiles: copies of boxes, the barriers that count them,
// wgmma.

// Barriers are told by their addresses in shared memory, where these are at hand.
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

KG_INLINE void kg_tiles_wait(const uint64_t *barrier, uint32_t odd)
{
    kg_tiles_wait(kg_shared_address(barrier), odd);
}

KG_INLINE void kg_tiles_barrier(uint64_t *barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(kg_shared_address(barrier)),
                 "r"(arrivals)
                 : "memory");
}

// What lies at `address` in the shared memory of a block, in that of block `rank` of the cluster.
KG_INLINE uint32_t kg_shared_address_in(uint32_t address, uint32_t rank)
{
    uint32_t there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
    return there;
}

// At such an address. In the scope of the block: that of the cluster would have every arrival wait
// for memory.
KG_INLINE void kg_tiles_arrive_there(uint32_t barrier)
{
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}

KG_INLINE void kg_tiles_arrive(uint32_t barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

KG_INLINE void kg_tiles_expect(uint64_t *barrier, uint32_t bytes)
{
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(kg_shared_address(barrier)),
        "r"(bytes)
        : "memory");
}

// A box of a tensor into shared memory; when SHARED, of those blocks of the cluster whose bits are
// set in `blocks`.
template <bool SHARED>
KG_INLINE void kg_tiles_copy(void *to, const kg_tensor_map *map, uint64_t *barrier, int x, int y,
                             int z, uint16_t blocks)
{
    if constexpr (SHARED)
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile"
                     ".mbarrier::complete_tx::bytes.multicast::cluster"
                     " [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(kg_shared_address(to)),
                     "l"(map), "r"(kg_shared_address(barrier)), "r"(x), "r"(y), "r"(z), "h"(blocks)
                     : "memory");
    else
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile"
                     ".mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(
                         kg_shared_address(to)),
                     "l"(map), "r"(kg_shared_address(barrier)), "r"(x), "r"(y), "r"(z)
                     : "memory");
}

// The same into this block's own, of what nobody asks for again: in the L2 it is the first to make
// room, but for a sixteenth, which the next launch then finds there. (A hint that says "as always"
// of all is not the same as none: it is slower.)
KG_INLINE void kg_tiles_copy_once(void *to, const kg_tensor_map *map, uint64_t *barrier, int x,
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

KG_INLINE void kg_tiles_expect_map(const kg_tensor_map *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// Until all but LEFT of this thread's stores have read what they store.
template <int LEFT>
KG_INLINE void kg_tiles_stored()
{
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(LEFT) : "memory");
}

// Shared memory that this thread wrote may be copied from here on, after the next barrier.
KG_INLINE void kg_tiles_written()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

template <int THREADS>
KG_INLINE void kg_tiles_meet(int number)
{
    asm volatile("bar.sync %0, %1;" ::"r"(number), "n"(THREADS) : "memory");
}

// Compilers since that of CUDA 13 have a fence of a block's own shared memory alone.
enum { KG_FENCES_SHARED = __CUDACC_VER_MAJOR__ >= 13 };

// Arrives at the barrier of the cluster, for what the block wrote to its own shared memory, and
// nowhere else: it does not wait for the device's memory, which takes about a microsecond.
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

// How the instruction finds a tile that was copied with a swizzle of 128 bytes: eight rows of 128
// bytes are an atom; from one atom to the next along K (or, for tiles along K, along rows) it is
// 1024 bytes, and `leap` bytes to the next 64 rows of a tile that is not along K. This is the lower
// half of it; the upper one is always the same.
KG_INLINE uint32_t kg_wgmma_tile(uint32_t address, uint32_t leap)
{
    return leap >> 4 << 16 | (address >> 4 & 0x3fff);
}

KG_INLINE uint64_t kg_wgmma_whole(uint32_t tile)
{
    return (uint64_t)(1 << 30 | 1024 >> 4) << 32 | tile;
}

// The one that begins so many bytes behind it, in the same tile. Adding is all that is done from
// one instruction to the next: more would take longer than short instructions do.
KG_INLINE uint64_t kg_wgmma_behind(uint64_t tile, uint32_t bytes)
{
    return tile + (bytes >> 4);
}

// True for one thread of a warp, all of which ask. The compiler knows that it is one: what such a
// thread alone does with the copy engine is no loop over threads.
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

// The number of this warp, in a way that shows the compiler that its threads have the same.
KG_INLINE int kg_warp_number()
{
    return __shfl_sync(0xffffffff, (int)threadIdx.x / 32, 0);
}

// Four (or two) 8x8 matrices of 16-bit elements, a pair of each in every lane; `to` is the row that
// this lane points out, and TRANSPOSED they are stored by columns.
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
