// Instructions of x86's AMX, which multiply tiles of pairs of narrow floats and add both products
// to an f32. They round to nearest and flush denormals to zero. A test replaces them by an
// emulation.
#ifndef KG_AMX_H
#define KG_AMX_H

#if defined(__x86_64__) && defined(__AMX_TILE__) && !defined(KG_TILE_LOAD)
// Eight registers, each of 16 rows of 64 bytes.
struct kg_tiles {
    uint8_t palette, start, unused[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

// Each thread configures its tile registers, and releases them when it is done.
KG_INLINE void kg_tiles_begin(void)
{
    static const struct kg_tiles shape = {.palette = 1,
                                          .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
                                          .rows = {16, 16, 16, 16, 16, 16, 16, 16}};
    __asm__ volatile("ldtilecfg %0" ::"m"(shape));
}

KG_INLINE void kg_tiles_end(void)
{
    __asm__ volatile("tilerelease");
}

// Linux requires a process to request permission: arch_prctl(ARCH_REQ_XCOMP_PERM, XTILEDATA).
KG_INLINE bool kg_tiles_ask(void)
{
#if defined(__linux__)
    int64_t answer = 158;
    __asm__ volatile("syscall" : "+a"(answer) : "D"(0x1023), "S"(18) : "rcx", "r11", "memory");
    return answer == 0;
#else
    return false;
#endif
}

// Tiles are named by literals. Rows in memory are `stride` bytes apart.
#define KG_TILE_ZERO(tile) __asm__ volatile("tilezero %tmm" #tile)
#define KG_TILE_LOAD(tile, from, stride)                                                           \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile ::"r"(from), "r"((int64_t)(stride))        \
                     : "memory")
#define KG_TILE_STORE(tile, to, stride)                                                            \
    __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)" ::"r"(to), "r"((int64_t)(stride))      \
                     : "memory")
// sum[i][j] += left[i][2 k] * right[k][2 j] + left[i][2 k + 1] * right[k][2 j + 1], all k.
#if defined(__AMX_BF16__)
#define KG_TILE_DOT_BF16(sum, left, right)                                                         \
    __asm__ volatile("tdpbf16ps %tmm" #right ", %tmm" #left ", %tmm" #sum)
#endif
#if defined(__AMX_FP16__)
#define KG_TILE_DOT_F16(sum, left, right)                                                          \
    __asm__ volatile("tdpfp16ps %tmm" #right ", %tmm" #left ", %tmm" #sum)
#endif
#endif

#if defined(KG_TILE_LOAD)
// May this process use tile instructions?
KG_INLINE bool kg_tiles_allowed(void)
{
    static int known; // 0: permission was not requested yet
    int answer = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (answer == 0) {
        answer = kg_tiles_ask() ? 1 : -1;
        __atomic_store_n(&known, answer, __ATOMIC_RELAXED);
    }
    return answer > 0;
}
#endif

#endif
