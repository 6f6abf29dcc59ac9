// How operands get from global to shared memory, see contract_mma.cuh: tile by tile, by
// asynchronous copies or through registers.

template <class JOB>
struct kg_mma_a {
    typedef typename JOB::element_a element;
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
    typedef typename JOB::element_b element;
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

// Hides a value from the compiler, so that what depends on it is computed here and not before a
// loop, where it would occupy registers.
KG_INLINE int kg_mma_opaque(int value)
{
    asm volatile("" : "+r"(value));
    return value;
}

// How an operand is addressed.
enum kg_mma_access {
    KG_MMA_WHOLE,   // lines are contiguous and aligned to 16 bytes
    KG_MMA_STRIDES, // one stride for rows (or columns) and one for K
    KG_MMA_EACH     // every element has its own address
};

// The tiles of one operand of a block, in the order of K. In the methods `k` is the first K index
// of the next tile and `steps` the number of K indices left in it.
template <class OPERAND, class TILE, int SPAN, bool K_MAJOR, kg_mma_access ACCESS>
struct kg_mma_feed {
    typedef typename OPERAND::element element;
    static constexpr int size = sizeof(element), per_chunk = 16 / size, depth = TILE::depth;
    static constexpr int lines = K_MAJOR ? SPAN : depth;
    static constexpr int chunks = (K_MAJOR ? depth : SPAN) / per_chunk;
    static constexpr int passes = (lines * chunks + TILE::threads - 1) / TILE::threads;
    static constexpr int chunks_per_step = (passes + TILE::steps - 1) / TILE::steps;
    static constexpr bool has_pairs = size == 4 && !K_MAJOR;
#if __CUDA_ARCH__ >= 800
    static constexpr bool has_copies = ACCESS != KG_MMA_EACH;
#else
    static constexpr bool has_copies = false;
#endif
    static constexpr bool has_registers = !has_copies || (ACCESS == KG_MMA_STRIDES && size < 4);
    OPERAND operand;
    const element *from;  // the first element of the tile; WHOLE: of the thread
    int64_t pitch, inner; // strides between lines and within a line
    int64_t tile_step, first;
    int span_left; // lines (or line elements) of the tile that are within the tensor
    int width;     // bytes of one copy; less than 4: through registers
    uint32_t registers[chunks_per_step][8];
    static_assert(size == TILE::tensor::size, "the elements of the tensor cores");

    KG_METHOD kg_mma_feed(OPERAND of, int64_t at_span, int64_t k) : operand(of), first(at_span)
    {
        const int64_t left = operand.extent() - first;
        span_left = left < SPAN ? (int)left : SPAN;
        if constexpr (ACCESS == KG_MMA_EACH)
            return;
        from = operand.at(first, k);
        const int64_t span_stride = operand.at(first + 1, k) - from;
        const int64_t k_stride = operand.at(first, k + 1) - from;
        pitch = K_MAJOR ? span_stride : k_stride;
        inner = ACCESS == KG_MMA_WHOLE ? 1 : K_MAJOR ? k_stride : span_stride;
        tile_step = (K_MAJOR ? inner : pitch) * depth;
        const uint64_t bits = (uint64_t)from | (uint64_t)(pitch * size) | 16;
        width = inner == 1 ? (int)(bits & -bits) : size;
        if constexpr (has_copies && ACCESS == KG_MMA_WHOLE)
            from += threadIdx.x / beside<16>() * pitch + threadIdx.x % beside<16>() * per_chunk;
    }

    // How many of `count` elements from position `at` of a line are within the tensor.
    KG_METHOD int inside(int at, int count, int steps) const
    {
        const int left = (K_MAJOR ? steps : span_left) - at;
        return left < 0 ? 0 : left < count ? left : count;
    }

    // Threads that copy adjacent units of WIDTH bytes of a line; further threads copy the next
    // lines.
    template <int WIDTH>
    KG_METHOD static constexpr int beside()
    {
        return chunks * 16 / WIDTH < TILE::threads ? chunks * 16 / WIDTH : TILE::threads;
    }

    // Issues the copies of a tile, WIDTH bytes each.
    template <int WIDTH>
    KG_METHOD void copy(uint32_t tile, int steps) const
    {
        constexpr int count = WIDTH / size, wide = beside<WIDTH>(), down = TILE::threads / wide;
        constexpr int turns = (lines + down - 1) / down, repeats = chunks * 16 / WIDTH / wide;
        static_assert(TILE::threads % wide == 0, "whole lines");
        const int thread = ACCESS == KG_MMA_WHOLE ? threadIdx.x : kg_mma_opaque(threadIdx.x);
        const int line = thread / wide;
        const int lines_left = (K_MAJOR ? span_left : steps) - line;
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
                        ? kg_mma_swizzle<chunks, has_pairs>(line, chunk) + pass * down * chunks * 16
                        : kg_mma_swizzle<chunks, has_pairs>(line + pass * down, chunk);
                kg_copy_part<WIDTH>(tile + there + at * WIDTH % 16, place,
                                    pass * down < lines_left ? bytes : 0);
                place += down * pitch;
            }
        }
    }

    // Issues the copies of a tile, if the operand does not go through registers.
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

    // The misalignment of a chunk in bytes, if the two aligned vectors around it lie within its
    // line; else -1: its elements are read one by one. `along` is its position in the line.
    KG_METHOD int shift_of(const element *place, int64_t along) const
    {
        const int shift = (int)((uint64_t)place % 16);
        const int64_t begin = along - shift / size;
        const int64_t end = K_MAJOR ? operand.job.depth() : operand.extent();
        return shift == 0 || (begin >= 0 && begin + 2 * per_chunk <= end) ? shift : -1;
    }

    // The chunk of the thread's n-th turn: its position in the tile and its address.
    struct chunk {
        int line, at, count, shift;
        const element *place;
    };
    KG_METHOD chunk chunk_of(int n, int64_t k, int steps) const
    {
        chunk it;
        const int unit = n * TILE::threads + kg_mma_opaque(threadIdx.x);
        it.line = unit / chunks, it.at = unit % chunks * per_chunk;
        it.count = it.line < (K_MAJOR ? span_left : steps) ? inside(it.at, per_chunk, steps) : 0;
        it.shift = -1;
        it.place = nullptr;
        if constexpr (ACCESS != KG_MMA_EACH) {
            it.place = from + (it.line * pitch + it.at * inner);
            if (inner == 1 && it.count == per_chunk)
                it.shift = shift_of(it.place, (K_MAJOR ? k : first) + it.at);
        }
        return it;
    }

    KG_METHOD uint32_t element_of(const chunk &it, int i, int64_t k) const
    {
        const element *place;
        if constexpr (ACCESS == KG_MMA_EACH)
            place = operand.at(first + (K_MAJOR ? it.line : it.at + i),
                               k + (K_MAJOR ? it.at + i : it.line));
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
        return kg_shifted(words, shift);
    }

    KG_METHOD bool goes_through_registers() const
    {
        return has_registers && (!has_copies || width < 4);
    }

    // The n-th share (of as many as a tile has K steps) of what goes through registers: fetch()
    // loads it, put() stores it in shared memory.
    KG_METHOD void fetch(int n, int64_t k, int steps)
    {
        if (!goes_through_registers())
            return;
#pragma unroll
        for (int i = 0; i < chunks_per_step; i++) {
            const chunk it = chunk_of(n * chunks_per_step + i, k, steps);
            if (it.line < lines)
                fetch_chunk(registers[i], it, k);
        }
        __syncwarp(); // mma needs converged lanes, and these may have diverged
    }

    KG_METHOD void put(int n, uint32_t tile, int64_t k, int steps) const
    {
        if (!goes_through_registers())
            return;
#pragma unroll
        for (int i = 0; i < chunks_per_step; i++) {
            const chunk it = chunk_of(n * chunks_per_step + i, k, steps);
            if (it.line < lines)
                kg_put_shared(tile + kg_mma_swizzle<chunks, has_pairs>(it.line, it.at / per_chunk),
                              join_chunk(registers[i], it.shift));
        }
        __syncwarp();
    }

    KG_METHOD void advance()
    {
        if constexpr (ACCESS != KG_MMA_EACH)
            from += tile_step;
    }
};
