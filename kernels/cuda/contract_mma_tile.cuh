// What tensor cores multiply by mma.sync, see contract_mma.cuh: elements, and tiles of them in
// shared memory.
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
// second half that is no number or infinite: sums of it are made anew, see kg_eight_mend. The
// second half of a tiny number would lose digits, so that sums of it are made anew too, see
// kg_mma_doubt.
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
