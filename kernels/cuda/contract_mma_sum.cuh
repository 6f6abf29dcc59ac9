// The product of a block, see contract_mma.cuh: tiles are multiplied while others are on their way.

template <class TILE>
struct kg_mma_sums {
    float at[TILE::row_parts][TILE::column_parts][4];
    uint32_t least; // where numbers are split, see kg_mma_notice
};

template <class TILE>
KG_INLINE void kg_mma_clear(kg_mma_sums<TILE> &sums)
{
#pragma unroll
    for (int r = 0; r < TILE::row_parts; r++)
#pragma unroll
        for (int c = 0; c < TILE::column_parts; c++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                sums.at[r][c][i] = 0;
    sums.least = 0xffffffff;
}

// Words of both sides for one step, as the warp got them.
template <class TILE>
struct kg_mma_words {
    uint32_t a[TILE::row_parts][4], b[TILE::column_parts / 2][4];
};

// Keeps the least size of a number other than 0, as twice its bits less 1: 0 is the largest so.
KG_INLINE void kg_mma_notice(uint32_t &least, uint32_t word)
{
    const uint32_t size = word + word - 1;
    least = size < least ? size : least;
}

template <class TILE>
KG_INLINE void kg_mma_notice(kg_mma_sums<TILE> &sums, const kg_mma_words<TILE> &words)
{
    if constexpr (TILE::tensor::ways > 1) {
#pragma unroll
        for (int i = 0; i < TILE::row_parts * 4; i++)
            kg_mma_notice(sums.least, words.a[i / 4][i % 4]);
#pragma unroll
        for (int i = 0; i < TILE::column_parts * 2; i++)
            kg_mma_notice(sums.least, words.b[i / 4][i % 4]);
    }
}

// Where a number is so small, less than 2^-100, that its second half is none with all its digits,
// all sums of the warp are in doubt: they become no numbers, which are made anew.
template <class TILE>
KG_INLINE void kg_mma_doubt(kg_mma_sums<TILE> &sums)
{
    constexpr uint32_t enough = 2u * (127 - 100) << 23;
    if constexpr (TILE::tensor::ways > 1) {
        if (!__any_sync(0xffffffff, sums.least < enough))
            return;
#pragma unroll
        for (int i = 0; i < TILE::row_parts * TILE::column_parts * 4; i++)
            sums.at[i / (TILE::column_parts * 4)][i / 4 % TILE::column_parts][i % 4] =
                kg_from_bits_f32(0x7fffffff);
    }
}

template <class TILE, bool A_ALONG_K, bool B_ALONG_K>
struct kg_mma_readers {
    kg_mma_reader<TILE, TILE::rows, A_ALONG_K, false> a;
    kg_mma_reader<TILE, TILE::columns, B_ALONG_K, true> b;
    KG_METHOD kg_mma_readers()
        : a(threadIdx.x / 32 % TILE::row_warps * TILE::warp_rows),
          b(threadIdx.x / 32 / TILE::row_warps * TILE::warp_columns)
    {
    }
    KG_METHOD void get(kg_mma_words<TILE> &words, uint32_t stage, int step) const
    {
#pragma unroll
        for (int r = 0; r < TILE::row_parts; r++)
            a.get(words.a[r], stage, r, step);
#pragma unroll
        for (int c = 0; c < TILE::column_parts / 2; c++)
            b.get(words.b[c], stage + TILE::a_bytes, c, step);
    }
};

// The sums of a row's part.
template <int TERM, class TILE, int WAYS>
KG_INLINE void kg_mma_multiply_term(float (&sums)[TILE::column_parts][4],
                                    const uint32_t (&a)[WAYS][4],
                                    const uint32_t (&b)[TILE::column_parts][WAYS][2])
{
#pragma unroll
    for (int c = 0; c < TILE::column_parts; c++)
        TILE::tensor::template multiply<TERM>(sums[c], a, b[c]);
}

// Three terms, in sums of their own: then they are added.
template <class TILE, int WAYS>
KG_INLINE void kg_mma_multiply_apart(float (&sums)[TILE::column_parts][4],
                                     const uint32_t (&a)[WAYS][4],
                                     const uint32_t (&b)[TILE::column_parts][WAYS][2])
{
    float apart[TILE::column_parts][4];
#pragma unroll
    for (int i = 0; i < TILE::column_parts * 4; i++)
        apart[i / 4][i % 4] = 0;
    kg_mma_multiply_term<0, TILE, WAYS>(apart, a, b);
    kg_mma_multiply_term<1, TILE, WAYS>(apart, a, b);
    kg_mma_multiply_term<2, TILE, WAYS>(apart, a, b);
#pragma unroll
    for (int i = 0; i < TILE::column_parts * 4; i++)
        sums[i / 4][i % 4] += apart[i / 4][i % 4];
}

// Of the rows' parts [FROM, TO).
template <int FROM, int TO, class TILE>
KG_INLINE void kg_mma_multiply(kg_mma_sums<TILE> &sums, const kg_mma_words<TILE> &words)
{
    typedef typename TILE::tensor tensor;
    uint32_t a[TILE::row_parts][tensor::ways][4], b[TILE::column_parts][tensor::ways][2];
    uint32_t split[tensor::ways];
#pragma unroll
    for (int i = FROM * 4; i < TO * 4; i++) {
        tensor::split(split, words.a[i / 4][i % 4]);
#pragma unroll
        for (int way = 0; way < tensor::ways; way++)
            a[i / 4][way][i % 4] = split[way];
    }
#pragma unroll
    for (int i = 0; i < TILE::column_parts * 2; i++) {
        tensor::split(split, words.b[i / 4][i % 4]);
#pragma unroll
        for (int way = 0; way < tensor::ways; way++)
            b[i / 2][way][i % 2] = split[way];
    }
#pragma unroll
    for (int r = FROM; r < TO; r++)
        if constexpr (tensor::apart)
            kg_mma_multiply_apart<TILE, tensor::ways>(sums.at[r], a[r], b);
        else
            kg_mma_multiply_term<0, TILE, tensor::ways>(sums.at[r], a[r], b);
}

// Both sides of the tile that is next.
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
    KG_METHOD void go_on()
    {
        a.go_on();
        b.go_on();
        k += TILE::depth;
    }
};

// Fills all stages but the last.
template <class TILE, class FEEDS>
KG_INLINE void kg_mma_begin(FEEDS &feeds, uint32_t stages)
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
        feeds.go_on();
    }
}

// Adds the products of all tiles that the sides have. All threads of the block take part; then they
// may use `stages`, the shared memory of all stages, for something else.
//
// Between the barriers of one tile and the next, nobody reads the stage of the tile before: it is
// filled for the tile that is stages - 1 ahead. Words are got a step ahead, but where halves of
// numbers need the registers, or what goes through some: that of a side has half a step to arrive.
template <class TILE, class READERS, class FEEDS>
KG_INLINE void kg_mma_sum(kg_mma_sums<TILE> &total, FEEDS &feeds, uint32_t stages)
{
    constexpr int steps = TILE::steps, last = TILE::stages - 1, parts = TILE::row_parts;
    constexpr bool ahead = !FEEDS::has_registers && !TILE::tensor::apart;
    const READERS readers;
    int64_t left = (feeds.stop - feeds.k + TILE::depth - 1) / TILE::depth;
    kg_mma_words<TILE> words[2];
    kg_mma_begin<TILE>(feeds, stages);
    kg_copies_wait_but<TILE::stages - 2>();
    __syncthreads();
    uint32_t present = stages, next = stages + last * TILE::stage_bytes;
    if constexpr (ahead)
        readers.get(words[0], present, 0);
#pragma unroll 1
    for (; left > 0; left--) {
        const uint32_t after =
            present == stages + last * TILE::stage_bytes ? stages : present + TILE::stage_bytes;
        const bool has_tile = feeds.has_tile();
#pragma unroll(FEEDS::has_registers ? 2 : steps)
        for (int step = 0; step < steps; step++) {
            if (ahead && step == steps - 1) {
                kg_copies_wait_but<TILE::stages - 2>();
                __syncthreads();
            }
            if constexpr (ahead)
                readers.get(words[(step + 1) % 2], step == steps - 1 ? after : present,
                            (step + 1) % steps);
            else
                readers.get(words[0], present, step);
            if (step == 0) {
                if (has_tile)
                    feeds.copy(next);
                kg_copies_close();
            }
            if constexpr (ahead) {
                kg_mma_multiply<0, parts>(total, words[step % 2]);
                continue;
            }
            if (has_tile)
                feeds.fetch_a(step);
            kg_mma_notice(total, words[0]);
            kg_mma_multiply<0, parts / 2>(total, words[0]);
            if (has_tile) {
                feeds.put_a(step, next);
                feeds.fetch_b(step);
            }
            kg_mma_multiply<parts / 2, parts>(total, words[0]);
            if (has_tile)
                feeds.put_b(step, next);
        }
        if constexpr (!ahead) {
            kg_copies_wait_but<TILE::stages - 2>();
            __syncthreads();
        }
        next = present;
        present = after;
        feeds.go_on();
    }
    __syncthreads();
}
