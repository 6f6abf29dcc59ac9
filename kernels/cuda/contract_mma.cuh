// A sum of products on tensor cores, by the instruction that a warp issues (mma.sync; Turing and
// later). A block makes tiles of rows x columns, going through k in tiles of DEPTH: several tiles
// of both sides are on their way to shared memory while one of them is multiplied.
//
// A tile of a side consists of lines, each along the direction in which its tensor lies in memory:
// rows (or columns) of elements along k, or k's of elements along rows (or columns). Lines are cut
// into chunks of 16 bytes, and these are exchanged within a line so that what a warp gets at a time
// stands in different banks. What lies beyond the tensor is zero there.
//
// Products of f32 are three of tf32: a number is the sum of two of those, up to a bit. They are
// summed by themselves: the tensor cores cut sums off, adding them to others rounds.

// ---- Elements ----

struct kg_tensor_f16 {
    static constexpr int size = 2, ways = 1;
    static constexpr bool apart = false;
    KG_INLINE void split(uint32_t (&to)[ways], uint32_t word)
    {
        to[0] = word;
    }
    template <int TERM>
    KG_INLINE void multiply(float (&sums)[4], const uint32_t (&a)[ways][4],
                            const uint32_t (&b)[ways][2])
    {
        kg_multiply_f16(sums, a[0], b[0]);
    }
};

struct kg_tensor_bf16 {
    static constexpr int size = 2, ways = 1;
    static constexpr bool apart = false;
    KG_INLINE void split(uint32_t (&to)[ways], uint32_t word)
    {
        to[0] = word;
    }
    template <int TERM>
    KG_INLINE void multiply(float (&sums)[4], const uint32_t (&a)[ways][4],
                            const uint32_t (&b)[ways][2])
    {
        kg_multiply_bf16(sums, a[0], b[0]);
    }
};

// The smallest terms first. What is infinite or no number, or becomes infinite by rounding, has a
// second half that is no number or infinite: sums of it are made anew, see kg_mma_mend. The second
// half of a tiny number would lose digits, so that sums of it are made anew too, see kg_mma_doubt.
struct kg_tensor_f32 {
    static constexpr int size = 4, ways = 2;
    static constexpr bool apart = true;
    KG_INLINE void split(uint32_t (&to)[ways], uint32_t word)
    {
        to[0] = kg_round_tf32(word);
        to[1] = kg_cut_tf32(kg_bits_f32(kg_from_bits_f32(word) - kg_from_bits_f32(to[0])));
    }
    template <int TERM>
    KG_INLINE void multiply(float (&sums)[4], const uint32_t (&a)[ways][4],
                            const uint32_t (&b)[ways][2])
    {
        kg_multiply_tf32(sums, a[TERM == 0], b[TERM == 1]);
    }
};

// ---- Tiles ----

template <class TENSOR, int ROWS, int COLUMNS, int DEPTH, int STAGES, int ROW_WARPS,
          int COLUMN_WARPS>
struct kg_mma_tile {
    typedef TENSOR tensor;
    static constexpr int rows = ROWS, columns = COLUMNS, depth = DEPTH, stages = STAGES;
    static constexpr int row_warps = ROW_WARPS, threads = 32 * ROW_WARPS * COLUMN_WARPS;
    // Of a warp: rows and columns, and the instruction's parts of them.
    static constexpr int warp_rows = ROWS / ROW_WARPS, warp_columns = COLUMNS / COLUMN_WARPS;
    static constexpr int row_parts = warp_rows / 16, column_parts = warp_columns / 8;
    // An instruction takes two chunks along k.
    static constexpr int steps = DEPTH * TENSOR::size / 32;
    static constexpr int a_bytes = ROWS * DEPTH * TENSOR::size;
    static constexpr int stage_bytes = a_bytes + COLUMNS * DEPTH * TENSOR::size;
    static_assert(warp_rows % 16 == 0 && warp_columns % 16 == 0, "whole instructions");
    static_assert(steps >= 2 && steps % 2 == 0 && STAGES >= 3, "something to do meanwhile");
};

// Where a chunk of a line stands in a tile, in bytes. Eight lines one after the other have their
// chunks of the same number in different banks; with PAIRS, four lines two neighbouring ones each.
template <int CHUNKS, bool PAIRS>
KG_INLINE int kg_mma_place(int line, int chunk)
{
    constexpr int group = CHUNKS % 8 == 0 ? 8 : CHUNKS % 4 == 0 ? 4 : 2;
    static_assert(CHUNKS % 2 == 0 && (!PAIRS || group > 2), "chunks can be exchanged");
    const int turn = line / (8 / group);
    return (line * CHUNKS + (chunk ^ (PAIRS ? turn % (group / 2) * 2 : turn % group))) * 16;
}

// How a warp gets its rows (or columns, RIGHT) of a tile from shared memory. Sizes are powers of
// two, so that parts of a place are exchanged with an exclusive or, most of which are constants.
template <class TILE, int SPAN, bool ALONG_K, bool RIGHT>
struct kg_mma_reader {
    static constexpr int size = TILE::tensor::size;
    static constexpr int chunks = (ALONG_K ? TILE::depth : SPAN) * size / 16;
    static constexpr bool has_matrices = ALONG_K || size == 2;
    int start; // of the lane
    static_assert((SPAN & (SPAN - 1)) == 0 && (TILE::depth & (TILE::depth - 1)) == 0, "powers");
    KG_METHOD explicit kg_mma_reader(int span)
    {
        const int lane = threadIdx.x % 32;
        if constexpr (has_matrices) {
            const int first = lane / 8 % 2, second = lane / 16, line = lane % 8;
            const int across = RIGHT ? second : first, along = RIGHT ? first : second;
            start = ALONG_K ? kg_mma_place<chunks, false>(span + across * 8 + line, along)
                            : kg_mma_place<chunks, false>(along * 8 + line, span / 8 + across);
        } else {
            start = kg_mma_place<chunks, true>(lane % 4, (span + lane / 4) / 4) + lane / 4 % 4 * 4;
        }
    }
    // The words for the n-th 16 of them and two chunks of k.
    KG_METHOD void get(uint32_t (&to)[4], uint32_t tile, int n, int step) const
    {
        if constexpr (ALONG_K) {
            kg_get_matrices(to, tile + (start ^ step * 32) + n * 16 * chunks * 16);
        } else if constexpr (has_matrices) {
            kg_get_matrices_turned(to, tile + (start ^ n * 32) + step * 16 * chunks * 16);
        } else {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int across = RIGHT ? i / 2 : i % 2, along = RIGHT ? i % 2 : i / 2;
                to[i] = kg_get_shared(tile + (start ^ (n * 16 + across * 8) * 4) +
                                      (step * 8 + along * 4) * chunks * 16);
            }
        }
    }
};

// ---- From global to shared memory ----

template <class JOB>
struct kg_mma_a {
    typedef typename JOB::side_a element;
    const JOB &job;
    int64_t item;
    KG_METHOD const element *at(int64_t span, int64_t k) const
    {
        return job.a_at(item, span, k);
    }
    KG_METHOD int64_t extent() const
    {
        return job.rows();
    }
};

template <class JOB>
struct kg_mma_b {
    typedef typename JOB::side_b element;
    const JOB &job;
    int64_t item;
    KG_METHOD const element *at(int64_t span, int64_t k) const
    {
        return job.b_at(item, k, span);
    }
    KG_METHOD int64_t extent() const
    {
        return job.columns();
    }
};

// What is made of the value is made here, not before a loop, where it would wait in registers.
KG_INLINE int kg_mma_here(int value)
{
    asm volatile("" : "+r"(value));
    return value;
}

// How a side is addressed.
enum kg_mma_access {
    KG_MMA_WHOLE,   // lines are contiguous and begin at multiples of 16 bytes
    KG_MMA_STRIDES, // by a stride for each of rows (or columns) and k
    KG_MMA_EACH     // every element on its own
};

// One side of a block's tiles, in the order of k. `k` is the first of the tile that is next, of
// which `steps` are left.
template <class SIDE, class TILE, int SPAN, bool ALONG_K, kg_mma_access ACCESS>
struct kg_mma_feed {
    typedef typename SIDE::element element;
    static constexpr int size = sizeof(element), per_chunk = 16 / size, depth = TILE::depth;
    static constexpr int lines = ALONG_K ? SPAN : depth;
    static constexpr int chunks = (ALONG_K ? depth : SPAN) / per_chunk;
    static constexpr int passes = (lines * chunks + TILE::threads - 1) / TILE::threads;
    static constexpr int part = (passes + TILE::steps - 1) / TILE::steps;
    static constexpr bool has_pairs = size == 4 && !ALONG_K;
#if __CUDA_ARCH__ >= 800
    static constexpr bool has_copies = ACCESS != KG_MMA_EACH;
#else
    static constexpr bool has_copies = false;
#endif
    static constexpr bool has_registers = !has_copies || (ACCESS == KG_MMA_STRIDES && size < 4);
    SIDE side;
    const element *from;  // the tile's first element; WHOLE: the thread's
    int64_t pitch, inner; // from line to line, and within a line
    int64_t tile_step, first;
    int span_left; // of the tile, within the tensor
    int width;     // bytes that may be copied at a time; less than 4: through registers
    uint32_t held[part][8];
    static_assert(size == TILE::tensor::size, "the elements of the tensor cores");

    KG_METHOD kg_mma_feed(SIDE of, int64_t at_span, int64_t k) : side(of), first(at_span)
    {
        const int64_t left = side.extent() - first;
        span_left = left < SPAN ? (int)left : SPAN;
        if constexpr (ACCESS == KG_MMA_EACH)
            return;
        from = side.at(first, k);
        const int64_t along_span = side.at(first + 1, k) - from;
        const int64_t along_k = side.at(first, k + 1) - from;
        pitch = ALONG_K ? along_span : along_k;
        inner = ACCESS == KG_MMA_WHOLE ? 1 : ALONG_K ? along_k : along_span;
        tile_step = (ALONG_K ? inner : pitch) * depth;
        const uint64_t bits = (uint64_t)from | (uint64_t)(pitch * size) | 16;
        width = inner == 1 ? (int)(bits & -bits) : size;
        if constexpr (has_copies && ACCESS == KG_MMA_WHOLE)
            from += threadIdx.x / beside<16>() * pitch + threadIdx.x % beside<16>() * per_chunk;
    }

    // Of `count` elements from `at` on in a line: how many are within the tensor.
    KG_METHOD int inside(int at, int count, int steps) const
    {
        const int left = (ALONG_K ? steps : span_left) - at;
        return left < 0 ? 0 : left < count ? left : count;
    }

    // Threads side by side on units of WIDTH bytes of a line; the others are on the next ones.
    template <int WIDTH>
    KG_METHOD static constexpr int beside()
    {
        return chunks * 16 / WIDTH < TILE::threads ? chunks * 16 / WIDTH : TILE::threads;
    }

    // Begins to copy, WIDTH bytes at a time.
    template <int WIDTH>
    KG_METHOD void copy(uint32_t tile, int steps) const
    {
        constexpr int count = WIDTH / size, wide = beside<WIDTH>(), down = TILE::threads / wide;
        constexpr int turns = (lines + down - 1) / down, repeats = chunks * 16 / WIDTH / wide;
        static_assert(TILE::threads % wide == 0, "whole lines");
        const int thread = ACCESS == KG_MMA_WHOLE ? threadIdx.x : kg_mma_here(threadIdx.x);
        const int line = thread / wide;
        const int lines_left = (ALONG_K ? span_left : steps) - line;
#pragma unroll
        for (int repeat = 0; repeat < repeats; repeat++) {
            const int at = thread % wide + repeat * wide, chunk = at * WIDTH / 16;
            const int bytes = inside(at * count, count, steps) * size;
            const element *place = from;
            if constexpr (ACCESS == KG_MMA_WHOLE)
                place += repeat * wide * count;
            else
                place += line * pitch + at * count * inner;
#pragma unroll(turns < 8 ? turns : 8)
            for (int pass = 0; pass < turns; pass++) {
                if (lines % down != 0 && line + pass * down >= lines)
                    break;
                const int there =
                    down % 8 == 0
                        ? kg_mma_place<chunks, has_pairs>(line, chunk) + pass * down * chunks * 16
                        : kg_mma_place<chunks, has_pairs>(line + pass * down, chunk);
                kg_copy_part<WIDTH>(tile + there + at * WIDTH % 16, place,
                                    pass * down < lines_left ? bytes : 0);
                place += down * pitch;
            }
        }
    }

    // What is copied of the tile.
    KG_METHOD void copy_tile(uint32_t tile, int steps) const
    {
        if constexpr (has_copies && ACCESS == KG_MMA_WHOLE)
            copy<16>(tile, steps);
        else if constexpr (has_copies) {
            if (width == 16)
                copy<16>(tile, steps);
            else if (width == 8)
                copy<8>(tile, steps);
            else if (width == 4)
                copy<4>(tile, steps);
        }
    }

    // How far, in bytes, a whole chunk is behind a multiple of 16, where the two vectors around it
    // lie within its line; else -1: each of its elements is read. `along` is its place in the line.
    KG_METHOD int shift_of(const element *place, int64_t along) const
    {
        const int shift = (int)((uint64_t)place % 16);
        const int64_t begin = along - shift / size;
        const int64_t end = ALONG_K ? side.job.depth() : side.extent();
        return shift == 0 || (begin >= 0 && begin + 2 * per_chunk <= end) ? shift : -1;
    }

    // The chunk of the thread's n-th turn: its place in the tile, and in memory.
    struct chunk {
        int line, at, count, shift;
        const element *place;
    };
    KG_METHOD chunk chunk_of(int n, int64_t k, int steps) const
    {
        chunk it;
        const int unit = n * TILE::threads + kg_mma_here(threadIdx.x);
        it.line = unit / chunks, it.at = unit % chunks * per_chunk;
        it.count = it.line < (ALONG_K ? span_left : steps) ? inside(it.at, per_chunk, steps) : 0;
        it.shift = -1;
        it.place = nullptr;
        if constexpr (ACCESS != KG_MMA_EACH) {
            it.place = from + (it.line * pitch + it.at * inner);
            if (inner == 1 && it.count == per_chunk)
                it.shift = shift_of(it.place, (ALONG_K ? k : first) + it.at);
        }
        return it;
    }

    KG_METHOD uint32_t element_of(const chunk &it, int i, int64_t k) const
    {
        const element *place;
        if constexpr (ACCESS == KG_MMA_EACH)
            place = side.at(first + (ALONG_K ? it.line : it.at + i),
                            k + (ALONG_K ? it.at + i : it.line));
        else
            place = it.place + i * inner;
        if constexpr (size == 2)
            return *place;
        else
            return kg_bits_f32(*place);
    }

    KG_METHOD void fetch_chunk(uint32_t (&words)[8], const chunk &it, int64_t k) const
    {
        if (it.shift < 0) {
#pragma unroll
            for (int i = 0; i < per_chunk; i++)
                words[i] = i < it.count ? element_of(it, i, k) : 0;
            return;
        }
        const uint4 *vector = reinterpret_cast<const uint4 *>(it.place - it.shift / size);
        const uint4 low = vector[0];
        words[0] = low.x, words[1] = low.y, words[2] = low.z, words[3] = low.w;
        if (it.shift == 0)
            return;
        const uint4 high = vector[1];
        words[4] = high.x, words[5] = high.y, words[6] = high.z, words[7] = high.w;
    }

    KG_METHOD static uint4 join_chunk(const uint32_t (&words)[8], int shift)
    {
        if (shift < 0 && size == 2)
            return make_uint4(words[0] | words[1] << 16, words[2] | words[3] << 16,
                              words[4] | words[5] << 16, words[6] | words[7] << 16);
        if (shift <= 0)
            return make_uint4(words[0], words[1], words[2], words[3]);
        uint32_t moved[7];
#pragma unroll
        for (int i = 0; i < 7; i++)
            moved[i] = shift & 4 ? words[i + 1] : words[i];
#pragma unroll
        for (int i = 0; i < 5; i++)
            moved[i] = shift & 8 ? moved[i + 2] : moved[i];
        const int bits = shift % 4 * 8;
        return make_uint4(
            __funnelshift_r(moved[0], moved[1], bits), __funnelshift_r(moved[1], moved[2], bits),
            __funnelshift_r(moved[2], moved[3], bits), __funnelshift_r(moved[3], moved[4], bits));
    }

    KG_METHOD bool is_held() const
    {
        return has_registers && (!has_copies || width < 4);
    }

    // The n-th part of what goes through registers, of as many as there are steps: first into them,
    // later from there.
    KG_METHOD void fetch(int n, int64_t k, int steps)
    {
        if (!is_held())
            return;
#pragma unroll
        for (int i = 0; i < part; i++) {
            const chunk it = chunk_of(n * part + i, k, steps);
            if (it.line < lines)
                fetch_chunk(held[i], it, k);
        }
        __syncwarp(); // lanes may have gone different ways, and tensor cores want them together
    }

    KG_METHOD void put(int n, uint32_t tile, int64_t k, int steps) const
    {
        if (!is_held())
            return;
#pragma unroll
        for (int i = 0; i < part; i++) {
            const chunk it = chunk_of(n * part + i, k, steps);
            if (it.line < lines)
                kg_put_shared(tile + kg_mma_place<chunks, has_pairs>(it.line, it.at / per_chunk),
                              join_chunk(held[i], it.shift));
        }
        __syncwarp();
    }

    KG_METHOD void go_on()
    {
        if constexpr (ACCESS != KG_MMA_EACH)
            from += tile_step;
    }
};

// ---- The product of a block ----

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
#pragma unroll
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

// ---- From sums to the output ----

// One sum of products as it would be without tensor cores: halves of numbers make no infinite ones.
template <class JOB>
KG_INLINE float kg_mma_plain(const JOB &job, int64_t item, int64_t row, int64_t column, int64_t k,
                             int64_t stop)
{
    float sum = 0;
#pragma unroll 1
    for (; k < stop; k++)
        sum = __fmaf_rn(job.a(item, row, k), job.b(item, k, column), sum);
    return sum;
}

// Eight sums of a row, in shared memory.
struct kg_mma_eight {
    float at[8];
};

KG_INLINE kg_mma_eight kg_mma_get_eight(const float *from)
{
    kg_mma_eight sums;
    const float4 low = reinterpret_cast<const float4 *>(from)[0];
    const float4 high = reinterpret_cast<const float4 *>(from)[1];
    sums.at[0] = low.x, sums.at[1] = low.y, sums.at[2] = low.z, sums.at[3] = low.w;
    sums.at[4] = high.x, sums.at[5] = high.y, sums.at[6] = high.z, sums.at[7] = high.w;
    return sums;
}

// Sums of two halves that are infinite, or nearly so, or no numbers, made anew: `count` of them are
// wanted.
template <class JOB>
KG_INLINE void kg_mma_mend(const JOB &job, kg_mma_eight &sums, float *from, int64_t item,
                           int64_t row, int64_t column, int count, int64_t k, int64_t stop)
{
    constexpr float most = 1.7e38f;
    bool finite = true;
#pragma unroll
    for (int i = 0; i < 8; i++)
        finite = finite && fabsf(sums.at[i]) < most;
    if (finite)
        return;
#pragma unroll 1
    for (int i = 0; i < count; i++)
        if (!(fabsf(from[i]) < most))
            from[i] = kg_mma_plain(job, item, row, column + i, k, stop);
    sums = kg_mma_get_eight(from);
}

// Whether eight elements from `to` on are the next ones of their row: columns may be those of axes
// that are not side by side in memory.
template <class JOB>
KG_INLINE bool kg_mma_has_line(const JOB &job, const typename JOB::out *to, int64_t item,
                               int64_t row, int64_t column)
{
    bool has_line = true;
#pragma unroll
    for (int i = 1; i < 8; i++)
        has_line = has_line && job.out_at(item, row, column + i) == to + i;
    return has_line;
}

// `count` of them, at most eight, are within the output.
template <class JOB>
KG_INLINE void kg_mma_store(const JOB &job, const kg_mma_eight &sums, int64_t item, int64_t row,
                            int64_t column, int count)
{
    typedef typename JOB::out out;
    if (count == 8) {
        kg_vec<out, 8> elements;
#pragma unroll
        for (int i = 0; i < 8; i++)
            elements.at[i] = job.value(item, row, column + i, sums.at[i]);
        out *to = job.out_at(item, row, column);
        if ((uint64_t)to % alignof(kg_vec<out, 8>) == 0 &&
            kg_mma_has_line(job, to, item, row, column)) {
            kg_store_vec<8>(to, elements);
            return;
        }
#pragma unroll
        for (int i = 0; i < 8; i++)
            job.store(item, row, column + i, elements.at[i]);
        return;
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
        if (i < count)
            job.store(item, row, column + i, job.value(item, row, column + i, sums.at[i]));
}

// One piece's sums, for kg_contract_fold.
KG_INLINE void kg_mma_keep(float *to, const kg_mma_eight &sums, int count)
{
    if (count == 8 && (uint64_t)to % 16 == 0) {
        reinterpret_cast<float4 *>(to)[0] =
            make_float4(sums.at[0], sums.at[1], sums.at[2], sums.at[3]);
        reinterpret_cast<float4 *>(to)[1] =
            make_float4(sums.at[4], sums.at[5], sums.at[6], sums.at[7]);
        return;
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
        if (i < count)
            to[i] = sums.at[i];
}

// Lays 16 rows of the warp's sums down in shared memory. Lines of PITCH floats, 8 or 24 more than a
// multiple of 32, keep four of them apart.
template <int PITCH, class TILE>
KG_INLINE void kg_mma_lay(float *to, const kg_mma_sums<TILE> &sums, int part)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int c = 0; c < TILE::column_parts; c++) {
        float *at = to + lane / 4 * PITCH + c * 8 + lane % 4 * 2;
        *reinterpret_cast<float2 *>(at) = make_float2(sums.at[part][c][0], sums.at[part][c][1]);
        *reinterpret_cast<float2 *>(at + 8 * PITCH) =
            make_float2(sums.at[part][c][2], sums.at[part][c][3]);
    }
}

KG_INLINE int kg_mma_within(int64_t row, int64_t rows, int64_t column, int64_t columns)
{
    const int64_t left = columns - column;
    return row >= rows || left <= 0 ? 0 : left < 8 ? (int)left : 8;
}

// What a block does: a tile of the output of an item, or a piece of its sum.
struct kg_mma_task {
    int64_t item, row, column, k, stop;
    int piece;
};

// Every warp ends its own part of the tile, 16 rows at a time, in its own shared memory.
template <class TILE, int SPLIT, class JOB>
KG_INLINE void kg_mma_end(const JOB &job, const kg_mma_sums<TILE> &sums, const kg_mma_task &task,
                          float *shared, float *scratch)
{
    constexpr int pitch = TILE::warp_columns + 8, per_row = TILE::warp_columns / 8;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t rows = job.rows(), columns = job.columns();
    const int64_t first_row = task.row + warp % TILE::row_warps * TILE::warp_rows;
    const int64_t first_column = task.column + warp / TILE::row_warps * TILE::warp_columns;
    float *own = shared + warp * 16 * pitch;
#pragma unroll
    for (int part = 0; part < TILE::row_parts; part++) {
        kg_mma_lay<pitch>(own, sums, part);
        __syncwarp();
#pragma unroll 1
        for (int i = lane; i < 16 * per_row; i += 32) {
            const int64_t row = first_row + part * 16 + i / per_row;
            const int64_t column = first_column + i % per_row * 8;
            const int count = kg_mma_within(row, rows, column, columns);
            if (count == 0)
                continue;
            float *from = own + i / per_row * pitch + i % per_row * 8;
            kg_mma_eight eight = kg_mma_get_eight(from);
            if constexpr (TILE::tensor::ways > 1)
                kg_mma_mend(job, eight, from, task.item, row, column, count, task.k, task.stop);
            if constexpr (SPLIT == 1)
                kg_mma_store(job, eight, task.item, row, column, count);
            else
                kg_mma_keep(scratch +
                                ((task.piece * job.batches() + task.item) * rows + row) * columns +
                                column,
                            eight, count);
        }
        __syncwarp();
    }
}

// The blocks of a cluster have a piece of the same tile each: every one of them ends some of its
// rows, adding the pieces in order.
template <class TILE, int SPLIT, class JOB>
KG_INLINE void kg_mma_end_cluster(const JOB &job, const kg_mma_sums<TILE> &sums,
                                  const kg_mma_task &task, float *shared)
{
    constexpr int pitch = TILE::columns + 8, per_row = TILE::columns / 8;
    const int warp = threadIdx.x / 32;
    const int warp_row = warp % TILE::row_warps * TILE::warp_rows;
    const int warp_column = warp / TILE::row_warps * TILE::warp_columns;
#pragma unroll
    for (int part = 0; part < TILE::row_parts; part++)
        kg_mma_lay<pitch>(shared + (warp_row + part * 16) * pitch + warp_column, sums, part);
    kg_cluster_meet();
#pragma unroll 1
    for (int i = task.piece * TILE::threads + threadIdx.x; i < TILE::rows * per_row;
         i += SPLIT * TILE::threads) {
        const int64_t row = task.row + i / per_row, column = task.column + i % per_row * 8;
        const int count = kg_mma_within(row, job.rows(), column, job.columns());
        if (count == 0)
            continue;
        float *from = shared + i / per_row * pitch + i % per_row * 8;
        kg_mma_eight eight = {{0, 0, 0, 0, 0, 0, 0, 0}};
#pragma unroll
        for (int piece = 0; piece < SPLIT; piece++) {
            const float4 low = kg_get_shared_of(kg_shared_address(from), piece);
            const float4 high = kg_get_shared_of(kg_shared_address(from + 4), piece);
            eight.at[0] += low.x, eight.at[1] += low.y, eight.at[2] += low.z;
            eight.at[3] += low.w, eight.at[4] += high.x, eight.at[5] += high.y;
            eight.at[6] += high.z, eight.at[7] += high.w;
        }
        if constexpr (TILE::tensor::ways > 1) {
#pragma unroll
            for (int j = 0; j < 8; j++)
                from[j] = eight.at[j]; // nobody else reads these any more
            kg_mma_mend(job, eight, from, task.item, row, column, count, 0, job.depth());
        }
        kg_mma_store(job, eight, task.item, row, column, count);
    }
    kg_cluster_meet();
}

// ---- The kernel ----

// Task `number`: with a cluster, its blocks have the pieces of one tile.
template <class TILE, int SPLIT, bool CLUSTER, int ORDER, class JOB>
KG_INLINE kg_mma_task kg_mma_task_of(const JOB &job, int64_t number, int64_t tall, int64_t wide)
{
    kg_mma_task task;
    int64_t rest = number;
    if constexpr (CLUSTER)
        task.piece = (int)kg_take(&rest, SPLIT);
    const int64_t tile = kg_take(&rest, tall * wide);
    if constexpr (!CLUSTER)
        task.piece = (int)kg_take(&rest, SPLIT);
    task.item = rest;
    kg_tile_place<ORDER, 8>(tile, tall, wide, &task.row, &task.column);
    task.row *= TILE::rows;
    task.column *= TILE::columns;
    kg_piece_steps<TILE::depth>(job.depth(), SPLIT, task.piece, &task.k, &task.stop);
    return task;
}

// Takes as many blocks of TILE::threads threads as there are, in clusters of SPLIT blocks where
// CLUSTER says so. Pieces that are no cluster leave their sums in `scratch`:
// [SPLIT, batches, rows, columns].
template <class TILE, int SPLIT, bool CLUSTER, int ORDER, kg_mma_access ACCESS_A,
          kg_mma_access ACCESS_B, class JOB>
KG_INLINE void kg_contract_mma(const JOB &job, char *scratch)
{
    typedef kg_mma_feed<kg_mma_a<JOB>, TILE, TILE::rows, JOB::ALONG_A, ACCESS_A> feed_a;
    typedef kg_mma_feed<kg_mma_b<JOB>, TILE, TILE::columns, JOB::ALONG_B, ACCESS_B> feed_b;
    extern __shared__ uint4 kg_mma_shared[];
    float *shared = reinterpret_cast<float *>(kg_mma_shared);
    const int64_t tall = (job.rows() + TILE::rows - 1) / TILE::rows;
    const int64_t wide = (job.columns() + TILE::columns - 1) / TILE::columns;
    const int64_t tasks = job.batches() * tall * wide * SPLIT;
#pragma unroll 1
    for (int64_t number = blockIdx.x; number < tasks; number += gridDim.x) {
        const kg_mma_task task =
            kg_mma_task_of<TILE, SPLIT, CLUSTER, ORDER>(job, number, tall, wide);
        kg_mma_feeds<TILE, feed_a, feed_b> feeds = {{{job, task.item}, task.row, task.k},
                                                    {{job, task.item}, task.column, task.k},
                                                    task.k,
                                                    task.stop};
        kg_mma_sums<TILE> sums;
        kg_mma_clear(sums);
        kg_mma_sum<TILE, kg_mma_readers<TILE, JOB::ALONG_A, JOB::ALONG_B>>(
            sums, feeds, kg_shared_address(shared));
        kg_mma_doubt(sums);
        if constexpr (CLUSTER && SPLIT > 1)
            kg_mma_end_cluster<TILE, SPLIT>(job, sums, task, shared);
        else
            kg_mma_end<TILE, SPLIT>(job, sums, task, shared, reinterpret_cast<float *>(scratch));
        __syncthreads();
    }
}
