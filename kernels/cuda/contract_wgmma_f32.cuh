// f32 products on the tensor cores of sm_90a, with operands split into bf16 terms. An f32 number is
// the sum of three bf16 terms, rounded and remainder twice: together they have all its bits. An f16
// number is the sum of two, and a bf16 number is one term. If f16 represents every number of both
// operands, one f16 term is used instead. Products of terms whose positions add up to more than 2
// are below the rounding of f32 and omitted: two f32 numbers take six products, f32 with f16 five.
//
// A pre-pass packs both operands: it splits every number into terms, in boxes with the layout that
// shared memory will have. An operand is an array or an expression, which is evaluated once per
// element. In the main kernel one thread of a block, the producer, copies boxes into a ring of
// stages, and warp groups of 128 threads, the consumers, multiply them. Tensor cores truncate when
// they accumulate. So every stage has accumulators of its own, smallest products first, which are
// then added to the total with rounding.
//
// A box is 64 rows of A (or columns of B) by 32 steps of K: 4096 bytes for each term. It is K-major
// if the operand is, in swizzled lines for wgmma. Elements beyond the tensor are zero.
//
// Terms of tiny numbers lose bits. The pre-pass notes the range of the numbers, and the epilogue
// recomputes sums that may be affected, and those that are not finite; see kg_terms_threshold.

enum { KG_TERMS_LINES = 64, KG_TERMS_STEPS = 32, KG_TERMS_BOX = 4096 };
// Blocks that pack an operand, at most: each stores the range of its numbers.
enum { KG_TERMS_PACK_BLOCKS = 1024, KG_TERMS_THREADS = 256 };

// The number of terms of A and B, and whether they are f16 or bf16.
template <int OF_A, int OF_B, bool IS_F16>
struct kg_terms_counts {
    static constexpr int of_a = OF_A, of_b = OF_B;
    static constexpr bool is_f16 = IS_F16;
};

// ---- Scratch memory ----

// A packed operand: [batches][deep][TERMS][wide] boxes.
template <int TERMS>
struct kg_terms_packed {
    int batches, deep, wide;
    KG_METHOD kg_terms_packed(int64_t batches_, int64_t across, int64_t depth)
        : batches((int)batches_), deep((int)((depth + KG_TERMS_STEPS - 1) / KG_TERMS_STEPS)),
          wide((int)((across + KG_TERMS_LINES - 1) / KG_TERMS_LINES))
    {
    }
    KG_METHOD int64_t count() const // boxes of numbers, of one term each
    {
        return (int64_t)batches * deep * wide;
    }
    KG_METHOD int64_t bytes() const
    {
        return count() * TERMS * KG_TERMS_BOX;
    }
    KG_METHOD int64_t line() const // bytes from term to term
    {
        return (int64_t)wide * KG_TERMS_BOX;
    }
    KG_METHOD int64_t place(int64_t item, int down, int term, int across) const
    {
        return ((item * deep + down) * TERMS + term) * line() + (int64_t)across * KG_TERMS_BOX;
    }
    KG_METHOD int pack_blocks() const
    {
        return (int)kg_min_i64(count(), KG_TERMS_PACK_BLOCKS);
    }
};

// The smallest magnitude other than 0, as twice the bits less 1 (in that encoding 0 is the
// largest), and the bits of the largest finite magnitude.
struct kg_terms_range {
    uint32_t least, largest;
};

// The order in scratch: partial sums of split-K if there are any, packed A and B, the ranges of
// their numbers.
template <int SPLIT, class Counts, class Job>
struct kg_terms_memory {
    kg_terms_packed<Counts::of_a> a;
    kg_terms_packed<Counts::of_b> b;
    char *packed_a, *packed_b;
    kg_terms_range *range_a, *range_b;
    KG_METHOD kg_terms_memory(const Job &job, char *scratch)
        : a(job.batches(), job.rows(), job.depth()), b(job.batches(), job.columns(), job.depth())
    {
        const int64_t outputs = SPLIT > 1 ? job.batches() * job.rows() * job.columns() : 0;
        packed_a = scratch + (SPLIT * outputs * 4 + 255) / 256 * 256;
        packed_b = packed_a + a.bytes();
        range_a = reinterpret_cast<kg_terms_range *>(packed_b + b.bytes());
        range_b = range_a + KG_TERMS_PACK_BLOCKS;
    }
};

// ---- Packing ----

// Splits a pair of numbers into pairs of terms.
template <int TERMS, bool IS_F16>
KG_INLINE void kg_terms_split(uint32_t (&pairs)[TERMS], float first, float second)
{
    if constexpr (IS_F16) {
        static_assert(TERMS == 1, "f16 holds the numbers themselves");
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pairs[0]) : "f"(second), "f"(first));
    } else {
#pragma unroll
        for (int term = 0; term < TERMS; term++) {
            asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pairs[term]) : "f"(second), "f"(first));
            first -= kg_from_bits_f32(pairs[term] << 16);
            second -= kg_from_bits_f32(pairs[term] & 0xffff0000);
        }
    }
}

template <int OPERAND, class Job>
KG_INLINE auto kg_terms_at(const Job &job, int64_t item, int64_t across, int64_t step)
{
    if constexpr (OPERAND)
        return job.b_at(item, step, across);
    else
        return job.a_at(item, across, step);
}

template <int OPERAND, class Job, class Element>
KG_INLINE float kg_terms_widen(const Job &job, Element element)
{
    if constexpr (OPERAND)
        return job.widen_b(element);
    else
        return job.widen_a(element);
}

// One element of an operand, from memory or computed.
template <int OPERAND, class Job>
KG_INLINE float kg_terms_number(const Job &job, int64_t item, int64_t across, int64_t step)
{
    if constexpr (OPERAND ? Job::PLAIN_B : Job::PLAIN_A)
        return kg_terms_widen<OPERAND>(job, *kg_terms_at<OPERAND>(job, item, across, step));
    else if constexpr (OPERAND)
        return job.b(item, step, across);
    else
        return job.a(item, across, step);
}

// Eight elements of a line, with zeros beyond its end.
template <int OPERAND, bool K_MAJOR, class Job>
KG_INLINE void kg_terms_read(float (&numbers)[8], const Job &job, int64_t item, int64_t across,
                             int64_t step)
{
    const int64_t left_across = (OPERAND ? job.columns() : job.rows()) - across;
    const int64_t left_k_major = job.depth() - step, left = K_MAJOR ? left_k_major : left_across;
    const int count = left_across <= 0 || left_k_major <= 0 ? 0 : left < 8 ? (int)left : 8;
    if constexpr (OPERAND ? Job::PLAIN_B : Job::PLAIN_A) {
        if (count == 8) {
            const auto *from = kg_terms_at<OPERAND>(job, item, across, step);
            constexpr int bytes = 8 * sizeof *from;
            bool is_line = (uint64_t)from % (bytes < 16 ? bytes : 16) == 0;
#pragma unroll
            for (int i = 1; i < 8; i++)
                is_line = is_line && kg_terms_at<OPERAND>(job, item, across + (K_MAJOR ? 0 : i),
                                                          step + (K_MAJOR ? i : 0)) == from + i;
            if (is_line) {
                const auto line = kg_load_vec_stream<8>(from);
#pragma unroll
                for (int i = 0; i < 8; i++)
                    numbers[i] = kg_terms_widen<OPERAND>(job, line.at[i]);
                return;
            }
        }
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
        numbers[i] = i < count ? kg_terms_number<OPERAND>(job, item, across + (K_MAJOR ? 0 : i),
                                                          step + (K_MAJOR ? i : 0))
                               : 0.0f;
}

KG_INLINE void kg_terms_note_range(kg_terms_range &range, float number)
{
    const uint32_t bits = kg_bits_f32(number), size = bits + bits - 1, plain = bits & 0x7fffffff;
    range.least = size < range.least ? size : range.least;
    range.largest = plain > range.largest && plain < 0x7f800000 ? plain : range.largest;
}

KG_INLINE void kg_terms_fold_range(kg_terms_range &range)
{
    asm volatile("redux.sync.min.u32 %0, %0, 0xffffffff;" : "+r"(range.least));
    asm volatile("redux.sync.max.u32 %0, %0, 0xffffffff;" : "+r"(range.largest));
}

// Stores the range of the numbers that the threads of a block have seen.
KG_INLINE void kg_terms_store_range(kg_terms_range *note, kg_terms_range range)
{
    constexpr int warps = KG_TERMS_THREADS / 32;
    __shared__ kg_terms_range seen[warps];
    kg_terms_fold_range(range);
    if (threadIdx.x % 32 == 0)
        seen[threadIdx.x / 32] = range;
    __syncthreads();
    if (threadIdx.x < 32) {
        range = seen[threadIdx.x % warps];
        kg_terms_fold_range(range);
        if (threadIdx.x == 0)
            *note = range;
    }
}

// The work of block `block` of the operand's pack blocks, which have KG_TERMS_THREADS threads.
template <int OPERAND, int TERMS, bool IS_F16, class Job>
KG_INLINE void kg_terms_pack(const Job &job, const kg_terms_packed<TERMS> &copy, char *to,
                             kg_terms_range *notes, int block)
{
    constexpr bool k_major = OPERAND ? Job::K_MAJOR_B : Job::K_MAJOR_A;
    constexpr int vectors = k_major ? KG_TERMS_STEPS / 8 : KG_TERMS_LINES / 8; // of a line
    const int line = threadIdx.x / vectors, at = threadIdx.x % vectors * 8;
    int place = threadIdx.x * 16;
    place ^= (place >> 7 & (vectors - 1)) << 4;
    kg_terms_range range = {0xffffffff, 0};
    for (int64_t box = block; box < copy.count(); box += copy.pack_blocks()) {
        int64_t item = box;
        const int near = (int)kg_take(&item, k_major ? copy.deep : copy.wide);
        const int far = (int)kg_take(&item, k_major ? copy.wide : copy.deep);
        const int down = k_major ? near : far, across = k_major ? far : near;
        float numbers[8];
        uint32_t pairs[4][TERMS];
        kg_terms_read<OPERAND, k_major>(numbers, job, item,
                                        (int64_t)across * KG_TERMS_LINES + (k_major ? line : at),
                                        (int64_t)down * KG_TERMS_STEPS + (k_major ? at : line));
#pragma unroll
        for (int i = 0; i < 8; i++)
            kg_terms_note_range(range, numbers[i]);
#pragma unroll
        for (int i = 0; i < 4; i++)
            kg_terms_split<TERMS, IS_F16>(pairs[i], numbers[i * 2], numbers[i * 2 + 1]);
#pragma unroll
        for (int term = 0; term < TERMS; term++)
            kg_write((uint4 *)(to + copy.place(item, down, term, across) + place),
                     make_uint4(pairs[0][term], pairs[1][term], pairs[2][term], pairs[3][term]));
    }
    kg_terms_store_range(notes + block, range);
}

// The first blocks pack A, the others B.
template <int SPLIT, class Counts, class Job>
KG_INLINE void kg_contract_terms_pack(const Job &job, char *scratch)
{
    const kg_terms_memory<SPLIT, Counts, Job> memory(job, scratch);
    const int block = blockIdx.x, first = memory.a.pack_blocks();
    if (block < first)
        kg_terms_pack<0, Counts::of_a, Counts::is_f16>(job, memory.a, memory.packed_a,
                                                       memory.range_a, block);
    else
        kg_terms_pack<1, Counts::of_b, Counts::is_f16>(job, memory.b, memory.packed_b,
                                                       memory.range_b, block - first);
}

// ---- Inaccurate sums ----

// Combines the ranges that the blocks of an operand have stored; called by a whole warp.
KG_INLINE kg_terms_range kg_terms_reduce_ranges(const kg_terms_range *notes, int count)
{
    kg_terms_range range = {0xffffffff, 0};
    for (int i = threadIdx.x % 32; i < count; i += 32) {
        const uint2 note = *(const uint2 *)&notes[i];
        range.least = note.x < range.least ? note.x : range.least;
        range.largest = note.y > range.largest ? note.y : range.largest;
    }
    kg_terms_fold_range(range);
    return range;
}

// The magnitude from which on a sum can be trusted. The terms of a number of at least 2^-100 have
// all its bits. Those of a smaller one may lose up to 2^-126, in each of `steps` products with
// numbers of the other operand; tiny products lose as much. A sum that is 2^26 times as large is
// not affected.
KG_INLINE float kg_terms_threshold(kg_terms_range a, kg_terms_range b, int64_t steps)
{
    constexpr uint32_t tiny = 2u * (127 - 100) << 23;
    constexpr float small = 7.8886091e-31f; // 2^-100
    const float of_all = (float)steps * small;
    float least = 0;
    if (a.least < tiny)
        least = of_all * kg_from_bits_f32(b.largest);
    if (b.least < tiny)
        least = fmaxf(least, of_all * kg_from_bits_f32(a.largest));
    const float product = kg_from_bits_f32(a.least / 2 + 1) * kg_from_bits_f32(b.least / 2 + 1);
    return a.largest && b.largest && product < small ? fmaxf(least, of_all) : least;
}

// ---- The shape of a block ----

// All of it is constant.
template <int ROWS, int COLUMNS, int STAGES, int SPLIT, int ORDER, bool LEFT_K_MAJOR,
          bool RIGHT_K_MAJOR, class COUNTS, class INSTRUCTION>
struct kg_terms_block {
    using counts = COUNTS;
    using instruction = INSTRUCTION;
    static constexpr int rows = ROWS, columns = COLUMNS, depth = KG_TERMS_STEPS, stages = STAGES;
    static constexpr int split = SPLIT, order = ORDER;
    static constexpr bool left_k_major = LEFT_K_MAJOR, right_k_major = RIGHT_K_MAJOR;

    static constexpr int consumers = ROWS / KG_TERMS_LINES;
    static constexpr int sums = COLUMNS / 2; // accumulators of a thread
    // The products of two stages overlap if there are registers for two sets of accumulators.
    static constexpr int chains = sums <= 64 ? 2 : 1;
    static constexpr bool moves_registers = consumers == 2 && (chains + 1) * sums > 96;

    static constexpr int left_term_bytes = ROWS * KG_TERMS_STEPS * 2;
    static constexpr int right_term_bytes = COLUMNS * KG_TERMS_STEPS * 2;
    static constexpr int left_bytes = counts::of_a * left_term_bytes;
    static constexpr int stage_bytes = left_bytes + counts::of_b * right_term_bytes;
    // Of a warp: 16 rows of sums to store, in lines padded against bank conflicts.
    static constexpr int store_columns = 32, pitch = store_columns + 8,
                         store_bytes = 16 * pitch * 4;
};

// ---- The producer ----

KG_INLINE int kg_terms_steps(const kg_tile_task &task)
{
    return (int)((task.stop - task.k + KG_TERMS_STEPS - 1) / KG_TERMS_STEPS);
}

// Copies all stages of a task, starting at stage number `turn`. Of a tile that extends beyond the
// edges only existing boxes are copied.
template <class Block, class Memory>
KG_INLINE void kg_terms_produce(const Memory &memory, const kg_tile_task &task, char *ring,
                                uint64_t *full, uint64_t *empty, uint32_t &turn)
{
    constexpr int left_terms = Block::counts::of_a, right_terms = Block::counts::of_b;
    const int top = (int)(task.row / KG_TERMS_LINES), first = (int)(task.k / KG_TERMS_STEPS);
    const int start = (int)(task.column / KG_TERMS_LINES);
    const int down = memory.a.wide - top, across = memory.b.wide - start;
    const int tall = down < Block::rows / KG_TERMS_LINES ? down : Block::rows / KG_TERMS_LINES;
    const int wide =
        across < Block::columns / KG_TERMS_LINES ? across : Block::columns / KG_TERMS_LINES;
    const char *left = memory.packed_a + memory.a.place(task.item, first, 0, top);
    const char *right = memory.packed_b + memory.b.place(task.item, first, 0, start);
#pragma unroll 1
    for (int steps = kg_terms_steps(task); steps > 0; steps--, turn++) {
        char *to = ring + turn % Block::stages * Block::stage_bytes;
        uint64_t *arrived = &full[turn % Block::stages];
        kg_tiles_wait(&empty[turn % Block::stages], (turn / Block::stages & 1) ^ 1);
        kg_tiles_expect(arrived, (left_terms * tall + right_terms * wide) * KG_TERMS_BOX);
#pragma unroll 1
        for (int term = 0; term < (left_terms > right_terms ? left_terms : right_terms); term++) {
            if (left_terms >= right_terms || term < left_terms) {
                kg_copy_bulk(to + term * Block::left_term_bytes, left, tall * KG_TERMS_BOX,
                             arrived);
                left += memory.a.line();
            }
            if (right_terms >= left_terms || term < right_terms) {
                kg_copy_bulk(to + Block::left_bytes + term * Block::right_term_bytes, right,
                             wide * KG_TERMS_BOX, arrived);
                right += memory.b.line();
            }
        }
    }
}

// ---- The consumers ----

// The matrix descriptor of the first 16 K steps of adjacent boxes: K-major ones have lines of 64
// bytes, others of 128; groups of eight lines are swizzled.
template <bool K_MAJOR>
KG_INLINE uint64_t kg_terms_tile(const char *boxes)
{
    if constexpr (K_MAJOR)
        return (uint64_t)2 << 62 | (uint64_t)(512 >> 4) << 32 | (uint64_t)1 << 16 |
               (kg_shared_address(boxes) & 0x3ffff) >> 4;
    else
        return (uint64_t)1 << 62 | (uint64_t)(1024 >> 4) << 32 |
               (uint64_t)(KG_TERMS_BOX >> 4) << 16 | (kg_shared_address(boxes) & 0x3ffff) >> 4;
}

// The products of terms, smallest first: the term of A and that of B. Products of terms that an
// operand does not have are omitted.
template <class Counts>
__host__ __device__ constexpr bool kg_terms_has_product(int number)
{
    constexpr int left_terms[] = {0, 2, 1, 0, 1, 0}, right_terms[] = {2, 0, 1, 1, 0, 0};
    return left_terms[number] < Counts::of_a && right_terms[number] < Counts::of_b;
}

template <class Counts>
__host__ __device__ constexpr int kg_terms_first_product()
{
    int number = 0;
    while (!kg_terms_has_product<Counts>(number))
        number++;
    return number;
}

// Waits for a stage and issues its products.
template <class Block>
KG_INLINE void kg_terms_issue(float (&chain)[Block::sums], const char *ring, uint64_t *full,
                              uint32_t turn, int consumer)
{
    constexpr int left_terms[] = {0, 2, 1, 0, 1, 0}, right_terms[] = {2, 0, 1, 1, 0, 0};
    constexpr int first = kg_terms_first_product<typename Block::counts>();
    constexpr int left_step = Block::left_k_major ? 2 : 128,
                  right_step = Block::right_k_major ? 2 : 128;
    const char *stage = ring + turn % Block::stages * Block::stage_bytes;
    const uint64_t left = kg_terms_tile<Block::left_k_major>(stage + consumer * KG_TERMS_BOX);
    const uint64_t right = kg_terms_tile<Block::right_k_major>(stage + Block::left_bytes);
    kg_tiles_wait(&full[turn % Block::stages], turn / Block::stages & 1);
    kg_wgmma_begin();
#pragma unroll
    for (int i = first; i < 6; i++) {
        if (!kg_terms_has_product<typename Block::counts>(i))
            continue;
#pragma unroll
        for (int step = 0; step < KG_TERMS_STEPS; step += 16)
            Block::instruction::multiply(
                chain,
                kg_wgmma_behind(left, left_terms[i] * Block::left_term_bytes + step * left_step),
                kg_wgmma_behind(right,
                                right_terms[i] * Block::right_term_bytes + step * right_step),
                i - first + step > 0);
    }
    kg_wgmma_commit();
}

// Waits until at most LEFT stages are being multiplied, frees the stage and adds its accumulators
// to the sums.
template <class Block, int LEFT>
KG_INLINE void kg_terms_retire(float (&sums)[Block::sums], float (&chain)[Block::sums],
                               uint64_t *empty, uint32_t turn)
{
    kg_wgmma_wait<LEFT>();
#pragma unroll
    for (int i = 0; i < Block::sums; i++)
        asm volatile("" : "+f"(chain[i])::"memory"); // keeps the additions after the wait
    if (threadIdx.x % 32 == 0)
        kg_tiles_arrive(kg_shared_address(&empty[turn % Block::stages]));
#pragma unroll
    for (int i = 0; i < Block::sums; i++)
        sums[i] += chain[i];
}

// The main loop of a task, starting at stage number `turn`.
template <class Block>
KG_INLINE void kg_terms_consume(float (&sums)[Block::sums], const char *ring, uint64_t *full,
                                uint64_t *empty, uint32_t &turn, int steps, int consumer)
{
    float chains[Block::chains][Block::sums];
#pragma unroll
    for (int i = 0; i < Block::sums; i++)
        sums[i] = 0;
    if constexpr (Block::chains == 1) {
        for (int i = 0; i < steps; i++, turn++) {
            kg_terms_issue<Block>(chains[0], ring, full, turn, consumer);
            kg_terms_retire<Block, 0>(sums, chains[0], empty, turn);
        }
        return;
    }
    if (steps == 0)
        return;
    float(&even)[Block::sums] = chains[0], (&odd)[Block::sums] = chains[Block::chains - 1];
    kg_terms_issue<Block>(even, ring, full, turn, consumer);
    for (; steps > 2; steps -= 2, turn += 2) {
        kg_terms_issue<Block>(odd, ring, full, turn + 1, consumer);
        kg_terms_retire<Block, 1>(sums, even, empty, turn);
        kg_terms_issue<Block>(even, ring, full, turn + 2, consumer);
        kg_terms_retire<Block, 1>(sums, odd, empty, turn + 1);
    }
    if (steps == 2) {
        kg_terms_issue<Block>(odd, ring, full, turn + 1, consumer);
        kg_terms_retire<Block, 1>(sums, even, empty, turn);
        kg_terms_retire<Block, 0>(sums, odd, empty, turn + 1);
    } else {
        kg_terms_retire<Block, 0>(sums, even, empty, turn);
    }
    turn += steps;
}

// The epilogue of a warp, through its own shared memory.
template <class Block, class Job>
KG_INLINE void kg_terms_epilogue(const Job &job, const float (&sums)[Block::sums],
                                 const kg_tile_task &task, int consumer, float *shared, float least,
                                 float *scratch)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
#pragma unroll
    for (int column = 0; column < Block::columns; column += Block::store_columns) {
#pragma unroll
        for (int i = 0; i < Block::store_columns; i += 8) {
            const float *from = &sums[(column + i) / 2];
            float *to = shared + lane / 4 * Block::pitch + i + lane % 4 * 2;
            *reinterpret_cast<float2 *>(to) = make_float2(from[0], from[1]);
            *reinterpret_cast<float2 *>(to + 8 * Block::pitch) = make_float2(from[2], from[3]);
        }
        __syncwarp();
        kg_row8_epilogue<Block::store_columns / 8, Block::pitch, Block::split, true>(
            job, shared, task, task.row + consumer * KG_TERMS_LINES + warp * 16,
            task.column + column, least, scratch);
        __syncwarp();
    }
}

// ---- The block ----

// The layout of shared memory.
template <class Block>
struct kg_terms_shared {
    char *ring, *store_columns;
    uint64_t *full, *empty;
    float *least;
    KG_METHOD explicit kg_terms_shared(char *shared)
    {
        ring = shared + (1024 - kg_shared_address(shared) % 1024) % 1024;
        store_columns = ring + Block::stages * Block::stage_bytes;
        full = (uint64_t *)(store_columns + Block::consumers * 4 * Block::store_bytes);
        empty = full + Block::stages;
        least = (float *)(empty + Block::stages);
    }
};

template <class Block, class Job>
KG_INLINE kg_tile_task kg_terms_task(const Job &job, int64_t number)
{
    const int64_t tall = (job.rows() + Block::rows - 1) / Block::rows;
    const int64_t wide = (job.columns() + Block::columns - 1) / Block::columns;
    return kg_tile_task_of<Block, Block::split, false, Block::order>(job, number, tall, wide);
}

template <class Block, class Job>
KG_INLINE void kg_terms_consumer(const Job &job, const kg_terms_shared<Block> &shared,
                                 int64_t tasks, float *scratch)
{
    const int consumer = kg_warp_number() / 4 - 1;
    float *store_columns =
        (float *)(shared.store_columns + (threadIdx.x / 32 - 4) * Block::store_bytes);
    uint32_t turn = 0;
    bool is_first = true;
    for (int64_t number = blockIdx.x; number < tasks; number += gridDim.x) {
        float sums[Block::sums];
        kg_tile_task task = kg_terms_task<Block>(job, number);
        kg_terms_consume<Block>(sums, shared.ring, shared.full, shared.empty, turn,
                                kg_terms_steps(task), consumer);
        if (is_first)
            kg_tiles_meet<(Block::consumers * 4 + 1) * 32>(1); // `least` has been written
        is_first = false;
        kg_terms_epilogue<Block>(job, sums, task, consumer, store_columns, *shared.least, scratch);
    }
}

// Any number of blocks, of 128 threads for the producer and 128 for each consumer.
template <class Block, class Job>
KG_INLINE void kg_contract_terms(const Job &job, char *scratch)
{
    extern __shared__ char kg_shared[];
    const int warp = kg_warp_number();
    const kg_terms_shared<Block> shared(kg_shared);
    const kg_terms_memory<Block::split, typename Block::counts, Job> memory(job, scratch);
    const int64_t tall = (job.rows() + Block::rows - 1) / Block::rows;
    const int64_t wide = (job.columns() + Block::columns - 1) / Block::columns;
    const int64_t tasks = job.batches() * tall * wide * Block::split;
    if (threadIdx.x == 0) {
        for (int s = 0; s < Block::stages; s++) {
            kg_tiles_barrier(&shared.full[s], 1);
            kg_tiles_barrier(&shared.empty[s], Block::consumers * 4);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    kg_wait_before();
    if (warp < 4) {
        if constexpr (Block::moves_registers)
            asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (warp == 0 && kg_is_elected()) {
            uint32_t turn = 0;
            for (int64_t number = blockIdx.x; number < tasks; number += gridDim.x)
                kg_terms_produce<Block>(memory, kg_terms_task<Block>(job, number), shared.ring,
                                        shared.full, shared.empty, turn);
        } else if (warp == 1) {
            const kg_terms_range a = kg_terms_reduce_ranges(memory.range_a, memory.a.pack_blocks());
            const kg_terms_range b = kg_terms_reduce_ranges(memory.range_b, memory.b.pack_blocks());
            *shared.least = kg_terms_threshold(a, b, job.depth());
            asm volatile("bar.arrive 1, %0;" ::"n"((Block::consumers * 4 + 1) * 32) : "memory");
        }
    } else {
        if constexpr (Block::moves_registers)
            asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        kg_terms_consumer<Block>(job, shared, tasks, (float *)scratch);
    }
}
