// A sum of products of 8-bit integers on tensor cores, exactly: mma.sync of Ampere and later, with
// sums of 32 bits. A block makes tiles of ROWS x COLUMNS, DEPTH steps at a time: while it works on
// those in one half of its shared memory, threads hold what goes to the other half in registers.
//
// In shared memory both operands lie along the sum, line by line, as the instruction wants them. An
// operand that lies across it is turned on its way, four bytes of four steps at a time. Where
// WHOLE, arrays are read by vectors: they begin at multiples of 16 bytes, and no line ends inside.
//
// A sum of 32 bits holds 2^15 products of bytes. Where sums may be LONG, its upper 16 bits move to
// a counter of their own that often.

enum { KG_I8_LANES = 32, KG_I8_SAFE_STEPS = 1 << 15 };

// The shape of a block.
template <int ROWS, int COLUMNS, int DEPTH>
struct kg_i8_tile {
    static constexpr int rows = ROWS, columns = COLUMNS, depth = DEPTH;
    static constexpr int warps = ROWS * COLUMNS >= 128 * 128 ? 8 : 4;
    static constexpr int warps_down = ROWS >= 32 ? 2 : 1, warps_across = warps / warps_down;
    static constexpr int threads = warps * KG_I8_LANES;
    static constexpr int warp_rows = ROWS / warps_down, warp_columns = COLUMNS / warps_across;
    static constexpr int row_parts = warp_rows / 16, column_parts = warp_columns / 8;
    static_assert(warp_rows % 16 == 0 && warp_columns % 16 == 0 && DEPTH % 64 == 0, "whole parts");
    static constexpr int pitch = DEPTH + 16; // bytes of a line: eight of them in different banks
    static constexpr int half_bytes = (ROWS + COLUMNS) * pitch;
};

// Where 16 steps of a line are: groups of eight lines have theirs in another order, so that those
// who turn an operand do not all write to the same banks.
template <class TILE>
KG_INLINE int kg_i8_place(int line, int step)
{
    return line * TILE::pitch + ((step / 16) ^ (line / 8 & 3)) * 16 + step % 16;
}

// ---- From memory to shared memory ----

template <class JOB, bool SECOND>
struct kg_i8_operand {
    using element = kg_either<SECOND, typename JOB::side_b, typename JOB::side_a>;
    static constexpr bool along = SECOND ? JOB::ALONG_B : JOB::ALONG_A;
    static constexpr bool is_signed = (element)-1 < (element)0;
    static KG_METHOD const element *at(const JOB &job, int64_t item, int64_t line, int64_t step)
    {
        if constexpr (SECOND)
            return job.b_at(item, step, line);
        else
            return job.a_at(item, line, step);
    }
};

// Four words whose bytes are of one step each become words of one line each.
KG_INLINE void kg_i8_turn(uint32_t (&words)[4])
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

// A thread's share of an operand's tile of LINES lines: 16 steps of a line at a time, or, across
// the sum, four steps of eight lines.
template <class JOB, bool SECOND, bool WHOLE, class TILE, int LINES>
struct kg_i8_share {
    using operand = kg_i8_operand<JOB, SECOND>;
    using element = typename operand::element;
    static constexpr bool along = operand::along;
    static constexpr int words = along ? 4 : 8;
    static constexpr int total = LINES * TILE::depth / (words * 4);
    static constexpr int count = (total + TILE::threads - 1) / TILE::threads;
    uint32_t held[count][words];

    // The i-th of the thread; false: there is none.
    static KG_METHOD bool place(int i, int *line, int *step)
    {
        const int at = i * TILE::threads + (int)threadIdx.x;
        if constexpr (along) {
            *line = at / (TILE::depth / 16);
            *step = at % (TILE::depth / 16) * 16;
        } else {
            *line = at / 4 % (LINES / 8) * 8;
            *step = (at % 4 + at / (LINES / 2) * 4) * 4;
        }
        return total % TILE::threads == 0 || at < total;
    }
    // Byte by byte, what is there: `number` counts those held from the first.
    static KG_METHOD uint32_t byte(const JOB &job, int64_t item, int64_t line, int64_t step,
                                   int64_t lines, int64_t stop)
    {
        const bool is_there = line < lines && step < stop;
        return is_there ? (uint8_t)*operand::at(job, item, line, step) : 0;
    }
    KG_METHOD void take_bytes(int i, const JOB &job, int64_t item, int64_t line, int64_t step,
                              int64_t lines, int64_t stop)
    {
#pragma unroll
        for (int word = 0; word < words; word++) {
            held[i][word] = 0;
#pragma unroll
            for (int at = 0; at < 4; at++) {
                const int far = along ? 0 : word % 2 * 4 + at;
                const int deep = along ? word * 4 + at : word / 2;
                held[i][word] |= byte(job, item, line + far, step + deep, lines, stop) << (8 * at);
            }
        }
    }
    KG_METHOD void take_vectors(int i, const JOB &job, int64_t item, int64_t line, int64_t step,
                                int64_t lines, int64_t stop)
    {
#pragma unroll
        for (int word = 0; word < words; word++)
            held[i][word] = 0;
        if (line >= lines)
            return;
        if constexpr (along) {
            if (step >= stop)
                return;
            const uint4 vector = *(const uint4 *)operand::at(job, item, line, step);
            held[i][0] = vector.x, held[i][1] = vector.y;
            held[i][2] = vector.z, held[i][3] = vector.w;
        } else {
#pragma unroll
            for (int deep = 0; deep < 4; deep++) {
                if (step + deep >= stop)
                    continue;
                const uint2 vector = *(const uint2 *)operand::at(job, item, line, step + deep);
                held[i][deep * 2] = vector.x, held[i][deep * 2 + 1] = vector.y;
            }
        }
    }
    // What the tile has from step `start` on; `first`: its first line, of `lines`; `stop` is behind
    // the last step there is.
    KG_METHOD void take(const JOB &job, int64_t item, int64_t first, int64_t lines, int64_t start,
                        int64_t stop)
    {
#pragma unroll
        for (int i = 0; i < count; i++) {
            int line, step;
            if (!place(i, &line, &step))
                continue;
            if constexpr (WHOLE)
                take_vectors(i, job, item, first + line, start + step, lines, stop);
            else
                take_bytes(i, job, item, first + line, start + step, lines, stop);
        }
    }
    // Puts it where all threads can read it.
    KG_METHOD void give(char *tile) const
    {
#pragma unroll
        for (int i = 0; i < count; i++) {
            int line, step;
            if (!place(i, &line, &step))
                continue;
            if constexpr (along) {
                *(uint4 *)(tile + kg_i8_place<TILE>(line, step)) =
                    make_uint4(held[i][0], held[i][1], held[i][2], held[i][3]);
            } else {
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    uint32_t turned[4] = {held[i][half], held[i][half + 2], held[i][half + 4],
                                          held[i][half + 6]};
                    kg_i8_turn(turned);
#pragma unroll
                    for (int at = 0; at < 4; at++)
                        *(uint32_t *)(tile + kg_i8_place<TILE>(line + half * 4 + at, step)) =
                            turned[at];
                }
            }
        }
    }
};

// ---- Products ----

// sums[16, 8] += a[16, 32] * b[32, 8], laid out like those of 16 bits, bytes in their places.
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

// The sums of a thread: of each part two neighbours of a row, then of the row eight below.
template <class TILE, bool LONG>
struct kg_i8_sums {
    int32_t at[TILE::row_parts][TILE::column_parts][4];
    int32_t upper[LONG ? TILE::row_parts : 1][LONG ? TILE::column_parts : 1][4]; // times 2^16

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
    KG_METHOD int64_t total(int row_part, int column_part, int i) const
    {
        int64_t sum = at[row_part][column_part][i];
        if constexpr (LONG)
            sum += (int64_t)upper[row_part][column_part][i] * 65536;
        return sum;
    }
};

// Adds the products of a tile in shared memory, A's lines and then B's.
template <class TILE, bool SIGNED_A, bool SIGNED_B, bool LONG>
KG_INLINE void kg_i8_add(kg_i8_sums<TILE, LONG> &sums, const char *tile)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row = warp / TILE::warps_across * TILE::warp_rows + lane % 16;
    const int column = warp % TILE::warps_across * TILE::warp_columns + lane % 8 + lane / 16 * 8;
    const char *right = tile + TILE::rows * TILE::pitch;
#pragma unroll
    for (int step = 0; step < TILE::depth; step += 32) {
        uint32_t a[TILE::row_parts][4], b[TILE::column_parts / 2][4];
#pragma unroll
        for (int i = 0; i < TILE::row_parts; i++)
            kg_get_matrices(
                a[i],
                kg_shared_address(tile + kg_i8_place<TILE>(row + i * 16, step + lane / 16 * 16)));
#pragma unroll
        for (int i = 0; i < TILE::column_parts / 2; i++)
            kg_get_matrices(b[i],
                            kg_shared_address(right + kg_i8_place<TILE>(column + i * 16,
                                                                        step + lane / 8 % 2 * 16)));
#pragma unroll
        for (int i = 0; i < TILE::row_parts; i++)
#pragma unroll
            for (int j = 0; j < TILE::column_parts; j++)
                kg_i8_multiply<SIGNED_A, SIGNED_B>(sums.at[i][j], a[i], &b[j / 2][j % 2 * 2]);
    }
}

// ---- The kernel ----

// Hands the thread's sums to the job, or leaves them for kg_contract_fold.
template <class TILE, int PIECES, class JOB, class SUMS>
KG_INLINE void kg_i8_end(const JOB &job, char *scratch, const SUMS &sums, int64_t piece,
                         int64_t item, int64_t row, int64_t column)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    row += warp / TILE::warps_across * TILE::warp_rows + lane / 4;
    column += warp % TILE::warps_across * TILE::warp_columns + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < TILE::row_parts; i++)
#pragma unroll
        for (int j = 0; j < TILE::column_parts; j++)
#pragma unroll
            for (int at = 0; at < 4; at++) {
                const int64_t down = row + i * 16 + at / 2 * 8, across = column + j * 8 + at % 2;
                if (down < job.rows() && across < job.columns())
                    kg_contract_finish<PIECES>(job, scratch, piece, item, down, across,
                                               sums.total(i, j, at));
            }
}

// A block takes one tile of one piece of the sum after the other.
template <bool WHOLE, bool LONG, class TILE, int PIECES, int ORDER, class JOB>
KG_INLINE void kg_contract_mma_i8(const JOB &job, char *scratch)
{
    using share_a = kg_i8_share<JOB, false, WHOLE, TILE, TILE::rows>;
    using share_b = kg_i8_share<JOB, true, WHOLE, TILE, TILE::columns>;
    enum : int { GROUP = 8, SPLIT = TILE::rows * TILE::pitch };
    extern __shared__ uint4 kg_i8_shared[];
    char *const shared = reinterpret_cast<char *>(kg_i8_shared);
    const int64_t rows = job.rows(), columns = job.columns(), depth = job.depth();
    const int64_t tall = kg_ceildiv_i64(rows, TILE::rows);
    const int64_t wide = kg_ceildiv_i64(columns, TILE::columns);
    const int64_t tiles = tall * wide * PIECES * job.batches();
#pragma unroll 1
    for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        int64_t item = tile, row, column, from, to;
        const int64_t inside = kg_take(&item, tall * wide), piece = kg_take(&item, PIECES);
        kg_tile_place<ORDER, GROUP>(inside, tall, wide, &row, &column);
        row *= TILE::rows;
        column *= TILE::columns;
        kg_piece_steps<TILE::depth>(depth, PIECES, piece, &from, &to);
        share_a mine_a;
        share_b mine_b;
        kg_i8_sums<TILE, LONG> sums;
        sums.clear();
        mine_a.take(job, item, row, rows, from, to);
        mine_b.take(job, item, column, columns, from, to);
        mine_a.give(shared);
        mine_b.give(shared + SPLIT);
        __syncthreads();
        int half = 0;
#pragma unroll 1
        for (int64_t step = from; step < to; step += TILE::depth) {
            const bool more = step + TILE::depth < to;
            if (more) {
                mine_a.take(job, item, row, rows, step + TILE::depth, to);
                mine_b.take(job, item, column, columns, step + TILE::depth, to);
            }
            kg_i8_add<TILE, kg_i8_operand<JOB, false>::is_signed,
                      kg_i8_operand<JOB, true>::is_signed>(sums, shared + half * TILE::half_bytes);
            if (LONG && (step - from + TILE::depth) % KG_I8_SAFE_STEPS == 0)
                sums.move_up();
            half ^= 1;
            if (more) { // the last readers of that half are behind a barrier already
                mine_a.give(shared + half * TILE::half_bytes);
                mine_b.give(shared + half * TILE::half_bytes + SPLIT);
            }
            __syncthreads();
        }
        kg_i8_end<TILE, PIECES>(job, scratch, sums, piece, item, row, column);
    }
}
