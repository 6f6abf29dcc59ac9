// The elements that mma.sync multiplies, see contract_mma.cuh, and the layout of their tiles in
// shared memory.
//
// A tile of an operand consists of lines along the contiguous direction of its tensor: rows (or
// columns) of K elements if it is K-major, else K lines of rows (or columns). Lines consist of
// chunks of 16 bytes, which are swizzled so that the chunks that a warp reads at a time are in
// different banks. Elements beyond the tensor are zero.
//
// An f32 product is three tf32 products: a number is the sum of two tf32 terms, up to one bit. They
// have accumulators of their own, because tensor cores truncate when they add to an accumulator,
// and ordinary additions round.

// ---- Elements ----

struct kg_tensor_f16 {
    static constexpr int size = 2, terms = 1;
    static constexpr bool separate = false;
    KG_INLINE void split(uint32_t (&to)[terms], uint32_t word)
    {
        to[0] = word;
    }
    template <int TERM>
    KG_INLINE void multiply(float (&sums)[4], const uint32_t (&a)[terms][4],
                            const uint32_t (&b)[terms][2])
    {
        kg_multiply_f16(sums, a[0], b[0]);
    }
};

struct kg_tensor_bf16 {
    static constexpr int size = 2, terms = 1;
    static constexpr bool separate = false;
    KG_INLINE void split(uint32_t (&to)[terms], uint32_t word)
    {
        to[0] = word;
    }
    template <int TERM>
    KG_INLINE void multiply(float (&sums)[4], const uint32_t (&a)[terms][4],
                            const uint32_t (&b)[terms][2])
    {
        kg_multiply_bf16(sums, a[0], b[0]);
    }
};

// The smallest products first. NaN, infinities and numbers that overflow by rounding have a second
// term that is NaN or infinite, and tiny numbers one that loses bits: sums of either are
// recomputed, see kg_row_recompute and kg_mma_invalidate.
struct kg_tensor_f32 {
    static constexpr int size = 4, terms = 2;
    static constexpr bool separate = true;
    KG_INLINE void split(uint32_t (&to)[terms], uint32_t word)
    {
        to[0] = kg_round_tf32(word);
        to[1] = kg_cut_tf32(kg_bits_f32(kg_from_bits_f32(word) - kg_from_bits_f32(to[0])));
    }
    template <int TERM>
    KG_INLINE void multiply(float (&sums)[4], const uint32_t (&a)[terms][4],
                            const uint32_t (&b)[terms][2])
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
    // Rows and columns of a warp, and instruction tiles among them.
    static constexpr int warp_rows = ROWS / ROW_WARPS, warp_columns = COLUMNS / COLUMN_WARPS;
    static constexpr int m_tiles = warp_rows / 16, n_tiles = warp_columns / 8;
    // An instruction takes two chunks along K.
    static constexpr int steps = DEPTH * TENSOR::size / 32;
    static constexpr int a_bytes = ROWS * DEPTH * TENSOR::size;
    static constexpr int stage_bytes = a_bytes + COLUMNS * DEPTH * TENSOR::size;
    static_assert(warp_rows % 16 == 0 && warp_columns % 16 == 0, "whole instructions");
    static_assert(steps >= 2 && steps % 2 == 0 && STAGES >= 3, "something to do meanwhile");
};

// The swizzled position of a chunk in a tile, in bytes. Chunks with the same number of eight
// consecutive lines are in different banks; with PAIRS, pairs of chunks of four consecutive lines.
template <int CHUNKS, bool PAIRS>
KG_INLINE int kg_mma_swizzle(int line, int chunk)
{
    constexpr int group = CHUNKS % 8 == 0 ? 8 : CHUNKS % 4 == 0 ? 4 : 2;
    static_assert(CHUNKS % 2 == 0 && (!PAIRS || group > 2), "chunks can be exchanged");
    const int turn = line / (8 / group);
    return (line * CHUNKS + (chunk ^ (PAIRS ? turn % (group / 2) * 2 : turn % group))) * 16;
}

// Loads the fragments of a warp from shared memory: rows of A, or columns of B (RIGHT). Sizes are
// powers of two, so that swizzled addresses differ by an exclusive or with a constant.
template <class TILE, int SPAN, bool K_MAJOR, bool RIGHT>
struct kg_mma_reader {
    static constexpr int size = TILE::tensor::size;
    static constexpr int chunks = (K_MAJOR ? TILE::depth : SPAN) * size / 16;
    static constexpr bool has_matrices = K_MAJOR || size == 2;
    int start; // position of the lane
    static_assert((SPAN & (SPAN - 1)) == 0 && (TILE::depth & (TILE::depth - 1)) == 0, "powers");
    KG_METHOD explicit kg_mma_reader(int span)
    {
        const int lane = threadIdx.x % 32;
        if constexpr (has_matrices) {
            const int first = lane / 8 % 2, second = lane / 16, line = lane % 8;
            const int across = RIGHT ? second : first, along = RIGHT ? first : second;
            start = K_MAJOR ? kg_mma_swizzle<chunks, false>(span + across * 8 + line, along)
                            : kg_mma_swizzle<chunks, false>(along * 8 + line, span / 8 + across);
        } else {
            start =
                kg_mma_swizzle<chunks, true>(lane % 4, (span + lane / 4) / 4) + lane / 4 % 4 * 4;
        }
    }
    // The fragment of the n-th 16 rows (columns) and two chunks of K.
    KG_METHOD void get(uint32_t (&to)[4], uint32_t tile, int n, int step) const
    {
        if constexpr (K_MAJOR) {
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
