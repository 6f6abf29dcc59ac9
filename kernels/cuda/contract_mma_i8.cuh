// An exact product of 8-bit integers on tensor cores: mma.sync of Ampere and later, with 32-bit
// accumulators. A block computes tiles of ROWS x COLUMNS, DEPTH steps of K at a time. Shared memory
// has two stages: while one is multiplied, threads load the elements of the other one into
// registers.
//
// In shared memory both operands are K-major, as the instruction needs them. An operand that is not
// is transposed on the way, four bytes of four steps at a time. With WHOLE, operands are read in
// aligned 16-byte vectors; no row or column ends within one.
//
// A 32-bit accumulator holds 2^15 products of bytes. With LONG, its upper 16 bits move to a second
// counter after that many.

enum { KG_I8_LANES = 32, KG_I8_SAFE_STEPS = 1 << 15 };

template <int ROWS, int COLUMNS, int DEPTH>
struct kg_i8_tile {
    static constexpr int rows = ROWS, columns = COLUMNS, depth = DEPTH;
    static constexpr int warps = ROWS * COLUMNS >= 128 * 128 ? 8 : 4;
    static constexpr int warps_down = ROWS >= 32 ? 2 : 1, warps_across = warps / warps_down;
    static constexpr int threads = warps * KG_I8_LANES;
    static constexpr int warp_rows = ROWS / warps_down, warp_columns = COLUMNS / warps_across;
    static constexpr int m_tiles = warp_rows / 16, n_tiles = warp_columns / 8;
    static_assert(warp_rows % 16 == 0 && warp_columns % 16 == 0 && DEPTH % 64 == 0, "whole parts");
    // Bytes of a line: eight lines start in different banks.
    static constexpr int pitch = DEPTH + 16;
    static constexpr int half_bytes = (ROWS + COLUMNS) * pitch;
};

// The swizzled position of 16 steps of a line: groups of eight lines have a different order of
// steps, so that threads that transpose do not write to the same banks.
template <class TILE>
KG_INLINE int kg_i8_swizzle(int line, int step)
{
    return line * TILE::pitch + ((step / 16) ^ (line / 8 & 3)) * 16 + step % 16;
}

// ---- From memory to shared memory ----

template <class JOB, bool IS_B>
struct kg_i8_operand {
    using element = kg_either<IS_B, typename JOB::element_b, typename JOB::element_a>;
    static constexpr bool k_major = IS_B ? JOB::K_MAJOR_B : JOB::K_MAJOR_A;
    static constexpr bool is_signed = (element)-1 < (element)0;
    static KG_METHOD const element *at(const JOB &job, int64_t item, int64_t line, int64_t step)
    {
        if constexpr (IS_B)
            return job.b_at(item, step, line);
        else
            return job.a_at(item, line, step);
    }
};

// Transposes 4 x 4 bytes: words of one step each become words of one line each.
KG_INLINE void kg_i8_transpose(uint32_t (&words)[4])
{
    const uint32_t low = __byte_perm(words[0], words[1], 0x5140);
    const uint32_t high = __byte_perm(words[2], words[3], 0x5140);
    const uint32_t low_2 = __byte_perm(words[0], words[1], 0x7362);
    const uint32_t high_2 = __byte_perm(words[2], words[3], 0x7362);
    words[0] = __byte_perm(low, high, 0x5410);
    words[1] = __byte_perm(low, high, 0x7632);
    words[2] = __byte_perm(low_2, high_2, 0x5410);
    words[3] = __byte_perm(low_2, high_2, 0x7632);
}

// A thread's share of an operand's tile of LINES lines: 16 steps of a line at a time or, if the
// operand is not K-major, four steps of eight lines.
template <class JOB, bool IS_B, bool WHOLE, class TILE, int LINES>
struct kg_i8_loader {
    using operand = kg_i8_operand<JOB, IS_B>;
    using element = typename operand::element;
    static constexpr bool k_major = operand::k_major;
    static constexpr int words = k_major ? 4 : 8;
    static constexpr int total = LINES * TILE::depth / (words * 4);
    static constexpr int count = (total + TILE::threads - 1) / TILE::threads;
    uint32_t registers[count][words];

    // The position of the thread's i-th share; false if there is none.
    static KG_METHOD bool place(int i, int *line, int *step)
    {
        const int at = i * TILE::threads + (int)threadIdx.x;
        if constexpr (k_major) {
            *line = at / (TILE::depth / 16);
            *step = at % (TILE::depth / 16) * 16;
        } else {
            *line = at / 4 % (LINES / 8) * 8;
            *step = (at % 4 + at / (LINES / 2) * 4) * 4;
        }
        return total % TILE::threads == 0 || at < total;
    }
    // Reads one byte; 0 beyond the tensor.
    static KG_METHOD uint32_t byte(const JOB &job, int64_t item, int64_t line, int64_t step,
                                   int64_t lines, int64_t stop)
    {
        const bool is_there = line < lines && step < stop;
        return is_there ? (uint8_t)*operand::at(job, item, line, step) : 0;
    }
    KG_METHOD void load_bytes(int i, const JOB &job, int64_t item, int64_t line, int64_t step,
                              int64_t lines, int64_t stop)
    {
#pragma unroll
        for (int word = 0; word < words; word++) {
            registers[i][word] = 0;
#pragma unroll
            for (int at = 0; at < 4; at++) {
                const int far = k_major ? 0 : word % 2 * 4 + at;
                const int deep = k_major ? word * 4 + at : word / 2;
                registers[i][word] |= byte(job, item, line + far, step + deep, lines, stop)
                                      << (8 * at);
            }
        }
    }
    KG_METHOD void load_vectors(int i, const JOB &job, int64_t item, int64_t line, int64_t step,
                                int64_t lines, int64_t stop)
    {
#pragma unroll
        for (int word = 0; word < words; word++)
            registers[i][word] = 0;
        if (line >= lines)
            return;
        if constexpr (k_major) {
            if (step >= stop)
                return;
            const uint4 vector = *(const uint4 *)operand::at(job, item, line, step);
            registers[i][0] = vector.x, registers[i][1] = vector.y;
            registers[i][2] = vector.z, registers[i][3] = vector.w;
        } else {
#pragma unroll
            for (int deep = 0; deep < 4; deep++) {
                if (step + deep >= stop)
                    continue;
                const uint2 vector = *(const uint2 *)operand::at(job, item, line, step + deep);
                registers[i][deep * 2] = vector.x, registers[i][deep * 2 + 1] = vector.y;
            }
        }
    }
    // Loads the tile's elements from step `start` on; `first` is its first line, of `lines`; `stop`
    // is the end of K or of the slice.
    KG_METHOD void load(const JOB &job, int64_t item, int64_t first, int64_t lines, int64_t start,
                        int64_t stop)
    {
#pragma unroll
        for (int i = 0; i < count; i++) {
            int line, step;
            if (!place(i, &line, &step))
                continue;
            if constexpr (WHOLE)
                load_vectors(i, job, item, first + line, start + step, lines, stop);
            else
                load_bytes(i, job, item, first + line, start + step, lines, stop);
        }
    }
    // Stores the elements in shared memory.
    KG_METHOD void store_shared(char *tile) const
    {
#pragma unroll
        for (int i = 0; i < count; i++) {
            int line, step;
            if (!place(i, &line, &step))
                continue;
            if constexpr (k_major) {
                *(uint4 *)(tile + kg_i8_swizzle<TILE>(line, step)) =
                    make_uint4(registers[i][0], registers[i][1], registers[i][2], registers[i][3]);
            } else {
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    uint32_t turned[4] = {registers[i][half], registers[i][half + 2],
                                          registers[i][half + 4], registers[i][half + 6]};
                    kg_i8_transpose(turned);
#pragma unroll
                    for (int at = 0; at < 4; at++)
                        *(uint32_t *)(tile + kg_i8_swizzle<TILE>(line + half * 4 + at, step)) =
                            turned[at];
                }
            }
        }
    }
};

// ---- Products ----

// sums[16, 8] += a[16, 32] * b[32, 8]; fragments have the layout of 16-bit ones, with pairs of
// bytes.
#define KG_I8_MULTIPLY(A, B)                                                                       \
    asm("mma.sync.aligned.m16n8k32.row.col.s32." A "." B ".s32 "                                   \
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                          \
        : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])                               \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))

template <bool SIGNED_A, bool SIGNED_B>
KG_INLINE void kg_i8_multiply(int32_t (&sums)[4], const uint32_t (&a)[4], const uint32_t *b)
{
    if constexpr (SIGNED_A && SIGNED_B)
        KG_I8_MULTIPLY("s8", "s8");
    else if constexpr (SIGNED_A)
        KG_I8_MULTIPLY("s8", "u8");
    else if constexpr (SIGNED_B)
        KG_I8_MULTIPLY("u8", "s8");
    else
        KG_I8_MULTIPLY("u8", "u8");
}

// The accumulators of a thread: of each instruction tile two adjacent columns of a row and of the
// row eight below.
template <class TILE, bool LONG>
struct kg_i8_sums {
    int32_t at[TILE::m_tiles][TILE::n_tiles][4];
    int32_t upper[LONG ? TILE::m_tiles : 1][LONG ? TILE::n_tiles : 1][4]; // times 2^16

    KG_METHOD void clear()
    {
#pragma unroll
        for (int i = 0; i < (int)(sizeof at / sizeof(int32_t)); i++)
            (&at[0][0][0])[i] = 0;
#pragma unroll
        for (int i = 0; i < (int)(sizeof upper / sizeof(int32_t)); i++)
            (&upper[0][0][0])[i] = 0;
    }
    KG_METHOD void move_up()
    {
        if constexpr (LONG) {
#pragma unroll
            for (int i = 0; i < (int)(sizeof at / sizeof(int32_t)); i++) {
                int32_t &sum = (&at[0][0][0])[i];
                (&upper[0][0][0])[i] += sum >> 16;
                sum &= 0xffff;
            }
        }
    }
    KG_METHOD int64_t total(int m_tile, int n_tile, int i) const
    {
        int64_t sum = at[m_tile][n_tile][i];
        if constexpr (LONG)
            sum += (int64_t)upper[m_tile][n_tile][i] * 65536;
        return sum;
    }
};

// Multiplies a stage in shared memory: A's lines come first, then B's.
template <class TILE, bool SIGNED_A, bool SIGNED_B, bool LONG>
KG_INLINE void kg_i8_add(kg_i8_sums<TILE, LONG> &sums, const char *tile)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row = warp / TILE::warps_across * TILE::warp_rows + lane % 16;
    const int column = warp % TILE::warps_across * TILE::warp_columns + lane % 8 + lane / 16 * 8;
    const char *right = tile + TILE::rows * TILE::pitch;
#pragma unroll
    for (int step = 0; step < TILE::depth; step += 32) {
        uint32_t a[TILE::m_tiles][4], b[TILE::n_tiles / 2][4];
#pragma unroll
        for (int i = 0; i < TILE::m_tiles; i++)
            kg_get_matrices(
                a[i],
                kg_shared_address(tile + kg_i8_swizzle<TILE>(row + i * 16, step + lane / 16 * 16)));
#pragma unroll
        for (int i = 0; i < TILE::n_tiles / 2; i++)
            kg_get_matrices(
                b[i], kg_shared_address(
                          right + kg_i8_swizzle<TILE>(column + i * 16, step + lane / 8 % 2 * 16)));
#pragma unroll
        for (int i = 0; i < TILE::m_tiles; i++)
#pragma unroll
            for (int j = 0; j < TILE::n_tiles; j++)
                kg_i8_multiply<SIGNED_A, SIGNED_B>(sums.at[i][j], a[i], &b[j / 2][j % 2 * 2]);
    }
}

// ---- The kernel ----

// Runs the epilogue of the thread's sums or, with split-K, stores them for kg_contract_fold.
template <class TILE, int SPLIT, class JOB, class SUMS>
KG_INLINE void kg_i8_epilogue(const JOB &job, char *scratch, const SUMS &sums, int64_t slice,
                              int64_t item, int64_t row, int64_t column)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    row += warp / TILE::warps_across * TILE::warp_rows + lane / 4;
    column += warp % TILE::warps_across * TILE::warp_columns + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < TILE::m_tiles; i++)
#pragma unroll
        for (int j = 0; j < TILE::n_tiles; j++)
#pragma unroll
            for (int at = 0; at < 4; at++) {
                const int64_t down = row + i * 16 + at / 2 * 8, across = column + j * 8 + at % 2;
                if (down < job.rows() && across < job.columns())
                    kg_contract_finish<SPLIT>(job, scratch, slice, item, down, across,
                                              sums.total(i, j, at));
            }
}

// A block processes one tile, or split-K slice of a tile, after the other.
template <bool WHOLE, bool LONG, class TILE, int SPLIT, int ORDER, class JOB>
KG_INLINE void kg_contract_mma_i8(const JOB &job, char *scratch)
{
    using loader_a = kg_i8_loader<JOB, false, WHOLE, TILE, TILE::rows>;
    using loader_b = kg_i8_loader<JOB, true, WHOLE, TILE, TILE::columns>;
    enum : int { GROUP = 8, B_OFFSET = TILE::rows * TILE::pitch };
    extern __shared__ uint4 kg_i8_shared[];
    char *const shared = reinterpret_cast<char *>(kg_i8_shared);
    const int64_t rows = job.rows(), columns = job.columns(), depth = job.depth();
    const int64_t tall = kg_ceildiv_i64(rows, TILE::rows);
    const int64_t wide = kg_ceildiv_i64(columns, TILE::columns);
    const int64_t tiles = tall * wide * SPLIT * job.batches();
#pragma unroll 1
    for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        int64_t item = tile, row, column, from, to;
        const int64_t inside = kg_take(&item, tall * wide), slice = kg_take(&item, SPLIT);
        kg_tile_place<ORDER, GROUP>(inside, tall, wide, &row, &column);
        row *= TILE::rows;
        column *= TILE::columns;
        kg_slice_steps<TILE::depth>(depth, SPLIT, slice, &from, &to);
        loader_a load_a;
        loader_b load_b;
        kg_i8_sums<TILE, LONG> sums;
        sums.clear();
        load_a.load(job, item, row, rows, from, to);
        load_b.load(job, item, column, columns, from, to);
        load_a.store_shared(shared);
        load_b.store_shared(shared + B_OFFSET);
        __syncthreads();
        int half = 0;
#pragma unroll 1
        for (int64_t step = from; step < to; step += TILE::depth) {
            const bool more = step + TILE::depth < to;
            if (more) {
                load_a.load(job, item, row, rows, step + TILE::depth, to);
                load_b.load(job, item, column, columns, step + TILE::depth, to);
            }
            kg_i8_add<TILE, kg_i8_operand<JOB, false>::is_signed,
                      kg_i8_operand<JOB, true>::is_signed>(sums, shared + half * TILE::half_bytes);
            if (LONG && (step - from + TILE::depth) % KG_I8_SAFE_STEPS == 0)
                sums.move_up();
            half ^= 1;
            if (more) { // the barrier has passed the last readers of that stage
                load_a.store_shared(shared + half * TILE::half_bytes);
                load_b.store_shared(shared + half * TILE::half_bytes + B_OFFSET);
            }
            __syncthreads();
        }
        kg_i8_epilogue<TILE, SPLIT>(job, scratch, sums, slice, item, row, column);
    }
}
