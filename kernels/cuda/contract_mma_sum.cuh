// The main loop, see contract_mma.cuh: one tile is multiplied while others are being copied.

template <class TILE>
struct kg_mma_sums {
    float at[TILE::m_tiles][TILE::n_tiles][4];
    uint32_t least; // the smallest number of split operands, see kg_mma_note_range
    float largest;  // their largest magnitude
};

template <class TILE>
KG_INLINE void kg_mma_clear(kg_mma_sums<TILE> &sums)
{
#pragma unroll
    for (int r = 0; r < TILE::m_tiles; r++)
#pragma unroll
        for (int c = 0; c < TILE::n_tiles; c++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                sums.at[r][c][i] = 0;
    sums.least = 0xffffffff;
    sums.largest = 0;
}

// The fragments of both operands for one K step of the warp.
template <class TILE>
struct kg_mma_fragments {
    uint32_t a[TILE::m_tiles][4], b[TILE::n_tiles / 2][4];
};

// Keeps the smallest magnitude other than 0, as twice the bits less 1: in that encoding 0 is the
// largest. And the largest magnitude.
template <class TILE>
KG_INLINE void kg_mma_note_range(kg_mma_sums<TILE> &sums, uint32_t word)
{
    const uint32_t size = word + word - 1;
    sums.least = size < sums.least ? size : sums.least;
    sums.largest = fmaxf(sums.largest, fabsf(kg_from_bits_f32(word)));
}

template <class TILE>
KG_INLINE void kg_mma_note_range(kg_mma_sums<TILE> &sums, const kg_mma_fragments<TILE> &fragments)
{
    if constexpr (TILE::tensor::terms > 1) {
#pragma unroll
        for (int i = 0; i < TILE::m_tiles * 4; i++)
            kg_mma_note_range(sums, fragments.a[i / 4][i % 4]);
#pragma unroll
        for (int i = 0; i < TILE::n_tiles * 2; i++)
            kg_mma_note_range(sums, fragments.b[i / 4][i % 4]);
    }
}

// The second term of a number below 2^-100 may lose up to 2^-126, in each of `steps` products with
// the other operand's numbers. A sum that is 2^26 times as large is not affected; others are set to
// NaN, so that the epilogue recomputes them.
template <class TILE>
KG_INLINE void kg_mma_invalidate(kg_mma_sums<TILE> &sums, int64_t steps)
{
    constexpr uint32_t enough = 2u * (127 - 100) << 23;
    constexpr float small = 7.8886091e-31f; // 2^-100
    if constexpr (TILE::tensor::terms > 1) {
        if (!__any_sync(0xffffffff, sums.least < enough))
            return;
        float least = (float)steps * small * sums.largest;
#pragma unroll
        for (int lanes = 16; lanes > 0; lanes /= 2)
            least = fmaxf(least, __shfl_xor_sync(0xffffffff, least, lanes));
#pragma unroll
        for (int i = 0; i < TILE::m_tiles * TILE::n_tiles * 4; i++) {
            float &sum = sums.at[i / (TILE::n_tiles * 4)][i / 4 % TILE::n_tiles][i % 4];
            sum = fabsf(sum) >= least ? sum : kg_from_bits_f32(0x7fffffff);
        }
    }
}

template <class TILE, bool A_K_MAJOR, bool B_K_MAJOR>
struct kg_mma_readers {
    kg_mma_reader<TILE, TILE::rows, A_K_MAJOR, false> a;
    kg_mma_reader<TILE, TILE::columns, B_K_MAJOR, true> b;
    KG_METHOD kg_mma_readers()
        : a(threadIdx.x / 32 % TILE::row_warps * TILE::warp_rows),
          b(threadIdx.x / 32 / TILE::row_warps * TILE::warp_columns)
    {
    }
    KG_METHOD void get(kg_mma_fragments<TILE> &fragments, uint32_t stage, int step) const
    {
#pragma unroll
        for (int r = 0; r < TILE::m_tiles; r++)
            a.get(fragments.a[r], stage, r, step);
#pragma unroll
        for (int c = 0; c < TILE::n_tiles / 2; c++)
            b.get(fragments.b[c], stage + TILE::a_bytes, c, step);
    }
};

// One product of terms, for the 16 rows of an instruction.
template <int TERM, class TILE, int TERMS>
KG_INLINE void kg_mma_multiply_term(float (&sums)[TILE::n_tiles][4], const uint32_t (&a)[TERMS][4],
                                    const uint32_t (&b)[TILE::n_tiles][TERMS][2])
{
#pragma unroll
    for (int c = 0; c < TILE::n_tiles; c++)
        TILE::tensor::template multiply<TERM>(sums[c], a, b[c]);
}

// The three products of terms, in accumulators of their own that are added to the sums afterwards.
template <class TILE, int TERMS>
KG_INLINE void kg_mma_multiply_separately(float (&sums)[TILE::n_tiles][4],
                                          const uint32_t (&a)[TERMS][4],
                                          const uint32_t (&b)[TILE::n_tiles][TERMS][2])
{
    float separate[TILE::n_tiles][4];
#pragma unroll
    for (int i = 0; i < TILE::n_tiles * 4; i++)
        separate[i / 4][i % 4] = 0;
    kg_mma_multiply_term<0, TILE, TERMS>(separate, a, b);
    kg_mma_multiply_term<1, TILE, TERMS>(separate, a, b);
    kg_mma_multiply_term<2, TILE, TERMS>(separate, a, b);
#pragma unroll
    for (int i = 0; i < TILE::n_tiles * 4; i++)
        sums[i / 4][i % 4] += separate[i / 4][i % 4];
}

// The rows of the instruction tiles [FROM, TO).
template <int FROM, int TO, class TILE>
KG_INLINE void kg_mma_multiply(kg_mma_sums<TILE> &sums, const kg_mma_fragments<TILE> &fragments)
{
    typedef typename TILE::tensor tensor;
    uint32_t a[TILE::m_tiles][tensor::terms][4], b[TILE::n_tiles][tensor::terms][2];
    uint32_t split[tensor::terms];
#pragma unroll
    for (int i = FROM * 4; i < TO * 4; i++) {
        tensor::split(split, fragments.a[i / 4][i % 4]);
#pragma unroll
        for (int term = 0; term < tensor::terms; term++)
            a[i / 4][term][i % 4] = split[term];
    }
#pragma unroll
    for (int i = 0; i < TILE::n_tiles * 2; i++) {
        tensor::split(split, fragments.b[i / 4][i % 4]);
#pragma unroll
        for (int term = 0; term < tensor::terms; term++)
            b[i / 2][term][i % 2] = split[term];
    }
#pragma unroll
    for (int r = FROM; r < TO; r++)
        if constexpr (tensor::separate)
            kg_mma_multiply_separately<TILE, tensor::terms>(sums.at[r], a[r], b);
        else
            kg_mma_multiply_term<0, TILE, tensor::terms>(sums.at[r], a[r], b);
}

// Both operands of the next tile.
template <class TILE, class FEED_A, class FEED_B>
struct kg_mma_feeds {
    static constexpr bool has_registers = FEED_A::has_registers || FEED_B::has_registers;
    FEED_A a;
    FEED_B b;
    int64_t k, stop;
    KG_METHOD bool has_tile() const
    {
        return k < stop;
    }
    KG_METHOD int steps() const
    {
        const int64_t left = stop - k;
        return left < TILE::depth ? (int)left : TILE::depth;
    }
    KG_METHOD void copy(uint32_t stage) const
    {
        a.copy_tile(stage, steps());
        b.copy_tile(stage + TILE::a_bytes, steps());
    }
    KG_METHOD void fetch_a(int n)
    {
        a.fetch(n, k, steps());
    }
    KG_METHOD void fetch_b(int n)
    {
        b.fetch(n, k, steps());
    }
    KG_METHOD void put_a(int n, uint32_t stage) const
    {
        a.put(n, stage, k, steps());
    }
    KG_METHOD void put_b(int n, uint32_t stage) const
    {
        b.put(n, stage + TILE::a_bytes, k, steps());
    }
    KG_METHOD void advance()
    {
        a.advance();
        b.advance();
        k += TILE::depth;
    }
};

// The prologue of the pipeline: fills all stages but the last.
template <class TILE, class FEEDS>
KG_INLINE void kg_mma_prologue(FEEDS &feeds, uint32_t stages)
{
#pragma unroll 1
    for (int i = 0; i < TILE::stages - 1; i++) {
        const uint32_t stage = stages + i * TILE::stage_bytes;
        if (feeds.has_tile()) {
            feeds.copy(stage);
#pragma unroll 1
            for (int n = 0; FEEDS::has_registers && n < TILE::steps; n++) {
                feeds.fetch_a(n);
                feeds.put_a(n, stage);
                feeds.fetch_b(n);
                feeds.put_b(n, stage);
            }
        }
        kg_copies_close();
        feeds.advance();
    }
}

// Multiplies all tiles of the task. All threads of the block take part; afterwards they may reuse
// the shared memory of the stages.
//
// Between two barriers no thread reads the stage of the previous tile: it is filled with the tile
// that is stages - 1 ahead. Fragments are loaded one K step ahead, unless the registers are needed
// for split operands or for elements on their way to shared memory. Those of each operand have half
// a step to arrive.
template <class TILE, class READERS, class FEEDS>
KG_INLINE void kg_mma_main_loop(kg_mma_sums<TILE> &total, FEEDS &feeds, uint32_t stages)
{
    constexpr int steps = TILE::steps, last = TILE::stages - 1, m_tiles = TILE::m_tiles;
    constexpr bool prefetches = !FEEDS::has_registers && !TILE::tensor::separate;
    const READERS readers;
    int64_t left = (feeds.stop - feeds.k + TILE::depth - 1) / TILE::depth;
    kg_mma_fragments<TILE> fragments[2];
    kg_mma_prologue<TILE>(feeds, stages);
    kg_copies_wait_but<TILE::stages - 2>();
    __syncthreads();
    uint32_t present = stages, next = stages + last * TILE::stage_bytes;
    if constexpr (prefetches)
        readers.get(fragments[0], present, 0);
#pragma unroll 1
    for (; left > 0; left--) {
        const uint32_t after =
            present == stages + last * TILE::stage_bytes ? stages : present + TILE::stage_bytes;
        const bool has_tile = feeds.has_tile();
#pragma unroll(FEEDS::has_registers ? 2 : steps)
        for (int step = 0; step < steps; step++) {
            if (prefetches && step == steps - 1) {
                kg_copies_wait_but<TILE::stages - 2>();
                __syncthreads();
            }
            if constexpr (prefetches)
                readers.get(fragments[(step + 1) % 2], step == steps - 1 ? after : present,
                            (step + 1) % steps);
            else
                readers.get(fragments[0], present, step);
            if (step == 0) {
                if (has_tile)
                    feeds.copy(next);
                kg_copies_close();
            }
            if constexpr (prefetches) {
                kg_mma_multiply<0, m_tiles>(total, fragments[step % 2]);
                continue;
            }
            if (has_tile)
                feeds.fetch_a(step);
            kg_mma_note_range(total, fragments[0]);
            kg_mma_multiply<0, m_tiles / 2>(total, fragments[0]);
            if (has_tile) {
                feeds.put_a(step, next);
                feeds.fetch_b(step);
            }
            kg_mma_multiply<m_tiles / 2, m_tiles>(total, fragments[0]);
            if (has_tile)
                feeds.put_b(step, next);
        }
        if constexpr (!prefetches) {
            kg_copies_wait_but<TILE::stages - 2>();
            __syncthreads();
        }
        next = present;
        present = after;
        feeds.advance();
    }
    __syncthreads();
}
