// Products computed in f32 on the tensor cores of sm_90a. A number of f32 is the sum of three of
// bf16, the nearest one and what that leaves, twice: together they have all its digits. One of f16
// is the sum of two, and what bf16 holds is one part; where f16 holds every number of both
// operands, there is one part of f16. Of the products of the parts of two numbers, those of parts
// whose positions add up to more than 2 are less than a rounding of f32, and are not made: of two
// numbers of f32 six are, of one of f32 and one of f16 five.
//
// First, a pre-pass copies both operands: number by number into parts, and these in boxes as they
// will lie in shared memory. An operand is an array, or a formula that is evaluated once for each
// number. Then one thread of a block, the producer, has boxes copied into a ring of stages; groups
// of 128 threads, the consumers, multiply them. Tensor cores cut off what a sum has no digits for.
// So the products of a stage are summed by themselves, the smallest first, and added, with
// rounding, to the sums that a thread keeps.
//
// A box is 64 rows of A, or columns of B, by 32 steps of the sum: 4096 bytes of each part. It is
// turned as the operand lies in memory, ALONG the sum or across, in lines whose 16 bytes are
// exchanged so that wgmma finds them. What lies beyond the tensor is zero.
//
// Tiny numbers lose digits in parts. What numbers there are is noted when they are copied, and sums
// that this may have harmed are made anew, as are those that are not finite, see kg_parts_doubt.

enum { KG_PARTS_LINES = 64, KG_PARTS_STEPS = 32, KG_PARTS_BOX = 4096 };
// Blocks that copy an operand, at most: each notes what it saw.
enum { KG_PARTS_COPIERS = 1024, KG_PARTS_THREADS = 256 };

// In how many parts the operands are, A and B, and whether these are f16 or bf16.
template <int OF_A, int OF_B, bool IS_F16>
struct kg_parts_counts {
    static constexpr int of_a = OF_A, of_b = OF_B;
    static constexpr bool is_f16 = IS_F16;
};

// ---- Memory of the kernel's own ----

// An operand's copy: [batches][deep][PARTS][wide] boxes.
template <int PARTS>
struct kg_parts_copy {
    int batches, deep, wide;
    KG_METHOD kg_parts_copy(int64_t batches_, int64_t across, int64_t depth)
        : batches((int)batches_), deep((int)((depth + KG_PARTS_STEPS - 1) / KG_PARTS_STEPS)),
          wide((int)((across + KG_PARTS_LINES - 1) / KG_PARTS_LINES))
    {
    }
    KG_METHOD int64_t count() const // of boxes of numbers
    {
        return (int64_t)batches * deep * wide;
    }
    KG_METHOD int64_t bytes() const
    {
        return count() * PARTS * KG_PARTS_BOX;
    }
    KG_METHOD int64_t line() const // from part to part
    {
        return (int64_t)wide * KG_PARTS_BOX;
    }
    KG_METHOD int64_t place(int64_t item, int down, int part, int across) const
    {
        return ((item * deep + down) * PARTS + part) * line() + (int64_t)across * KG_PARTS_BOX;
    }
    KG_METHOD int copiers() const
    {
        return (int)kg_min_i64(count(), KG_PARTS_COPIERS);
    }
};

// The least number other than 0, as twice its bits less 1: 0 is the largest so; and the bits of the
// largest finite one. Signs are left out.
struct kg_parts_range {
    uint32_t least, most;
};

// There come first the sums of pieces, if there are several, then the copies of A and of B, then
// what was noted of them.
template <int PIECES, class Counts, class Job>
struct kg_parts_memory {
    kg_parts_copy<Counts::of_a> a;
    kg_parts_copy<Counts::of_b> b;
    char *copy_a, *copy_b;
    kg_parts_range *range_a, *range_b;
    KG_METHOD kg_parts_memory(const Job &job, char *scratch)
        : a(job.batches(), job.rows(), job.depth()), b(job.batches(), job.columns(), job.depth())
    {
        const int64_t outputs = PIECES > 1 ? job.batches() * job.rows() * job.columns() : 0;
        copy_a = scratch + (PIECES * outputs * 4 + 255) / 256 * 256;
        copy_b = copy_a + a.bytes();
        range_a = reinterpret_cast<kg_parts_range *>(copy_b + b.bytes());
        range_b = range_a + KG_PARTS_COPIERS;
    }
};

// ---- Copies ----

// A pair of numbers as pairs of their parts.
template <int PARTS, bool IS_F16>
KG_INLINE void kg_parts_split(uint32_t (&pairs)[PARTS], float first, float second)
{
    if constexpr (IS_F16) {
        static_assert(PARTS == 1, "f16 holds the numbers themselves");
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pairs[0]) : "f"(second), "f"(first));
    } else {
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pairs[part]) : "f"(second), "f"(first));
            first -= kg_from_bits_f32(pairs[part] << 16);
            second -= kg_from_bits_f32(pairs[part] & 0xffff0000);
        }
    }
}

template <int SIDE, class Job>
KG_INLINE auto kg_parts_at(const Job &job, int64_t item, int64_t across, int64_t step)
{
    if constexpr (SIDE)
        return job.b_at(item, step, across);
    else
        return job.a_at(item, across, step);
}

template <int SIDE, class Job, class Element>
KG_INLINE float kg_parts_widen(const Job &job, Element element)
{
    if constexpr (SIDE)
        return job.widen_b(element);
    else
        return job.widen_a(element);
}

// One number, wherever it comes from.
template <int SIDE, class Job>
KG_INLINE float kg_parts_number(const Job &job, int64_t item, int64_t across, int64_t step)
{
    if constexpr (SIDE ? Job::PLAIN_B : Job::PLAIN_A)
        return kg_parts_widen<SIDE>(job, *kg_parts_at<SIDE>(job, item, across, step));
    else if constexpr (SIDE)
        return job.b(item, step, across);
    else
        return job.a(item, across, step);
}

// Eight numbers of a line, zeros where there are fewer.
template <int SIDE, bool ALONG, class Job>
KG_INLINE void kg_parts_read(float (&numbers)[8], const Job &job, int64_t item, int64_t across,
                             int64_t step)
{
    const int64_t left_across = (SIDE ? job.columns() : job.rows()) - across;
    const int64_t left_along = job.depth() - step, left = ALONG ? left_along : left_across;
    const int count = left_across <= 0 || left_along <= 0 ? 0 : left < 8 ? (int)left : 8;
    if constexpr (SIDE ? Job::PLAIN_B : Job::PLAIN_A) {
        if (count == 8) {
            const auto *from = kg_parts_at<SIDE>(job, item, across, step);
            constexpr int bytes = 8 * sizeof *from;
            bool is_line = (uint64_t)from % (bytes < 16 ? bytes : 16) == 0;
#pragma unroll
            for (int i = 1; i < 8; i++)
                is_line = is_line && kg_parts_at<SIDE>(job, item, across + (ALONG ? 0 : i),
                                                       step + (ALONG ? i : 0)) == from + i;
            if (is_line) {
                const auto line = kg_load_vec_stream<8>(from);
#pragma unroll
                for (int i = 0; i < 8; i++)
                    numbers[i] = kg_parts_widen<SIDE>(job, line.at[i]);
                return;
            }
        }
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
        numbers[i] = i < count ? kg_parts_number<SIDE>(job, item, across + (ALONG ? 0 : i),
                                                       step + (ALONG ? i : 0))
                               : 0.0f;
}

KG_INLINE void kg_parts_notice(kg_parts_range &range, float number)
{
    const uint32_t bits = kg_bits_f32(number), size = bits + bits - 1, plain = bits & 0x7fffffff;
    range.least = size < range.least ? size : range.least;
    range.most = plain > range.most && plain < 0x7f800000 ? plain : range.most;
}

KG_INLINE void kg_parts_fold(kg_parts_range &range)
{
    asm volatile("redux.sync.min.u32 %0, %0, 0xffffffff;" : "+r"(range.least));
    asm volatile("redux.sync.max.u32 %0, %0, 0xffffffff;" : "+r"(range.most));
}

// What all threads of a block saw, to where the block notes it.
KG_INLINE void kg_parts_note(kg_parts_range *note, kg_parts_range range)
{
    constexpr int warps = KG_PARTS_THREADS / 32;
    __shared__ kg_parts_range seen[warps];
    kg_parts_fold(range);
    if (threadIdx.x % 32 == 0)
        seen[threadIdx.x / 32] = range;
    __syncthreads();
    if (threadIdx.x < 32) {
        range = seen[threadIdx.x % warps];
        kg_parts_fold(range);
        if (threadIdx.x == 0)
            *note = range;
    }
}

// Block `block` of as many as the copy has copiers, of KG_PARTS_THREADS threads.
template <int SIDE, int PARTS, bool IS_F16, class Job>
KG_INLINE void kg_parts_pack(const Job &job, const kg_parts_copy<PARTS> &copy, char *to,
                             kg_parts_range *notes, int block)
{
    constexpr bool along = SIDE ? Job::ALONG_B : Job::ALONG_A;
    constexpr int vectors = along ? KG_PARTS_STEPS / 8 : KG_PARTS_LINES / 8; // of a line
    const int line = threadIdx.x / vectors, at = threadIdx.x % vectors * 8;
    int place = threadIdx.x * 16;
    place ^= (place >> 7 & (vectors - 1)) << 4;
    kg_parts_range range = {0xffffffff, 0};
    for (int64_t box = block; box < copy.count(); box += copy.copiers()) {
        int64_t item = box;
        const int near = (int)kg_take(&item, along ? copy.deep : copy.wide);
        const int far = (int)kg_take(&item, along ? copy.wide : copy.deep);
        const int down = along ? near : far, across = along ? far : near;
        float numbers[8];
        uint32_t pairs[4][PARTS];
        kg_parts_read<SIDE, along>(numbers, job, item,
                                   (int64_t)across * KG_PARTS_LINES + (along ? line : at),
                                   (int64_t)down * KG_PARTS_STEPS + (along ? at : line));
#pragma unroll
        for (int i = 0; i < 8; i++)
            kg_parts_notice(range, numbers[i]);
#pragma unroll
        for (int i = 0; i < 4; i++)
            kg_parts_split<PARTS, IS_F16>(pairs[i], numbers[i * 2], numbers[i * 2 + 1]);
#pragma unroll
        for (int part = 0; part < PARTS; part++)
            kg_write((uint4 *)(to + copy.place(item, down, part, across) + place),
                     make_uint4(pairs[0][part], pairs[1][part], pairs[2][part], pairs[3][part]));
    }
    kg_parts_note(notes + block, range);
}

// The blocks for A are the first ones.
template <int PIECES, class Counts, class Job>
KG_INLINE void kg_contract_parts_pack(const Job &job, char *scratch)
{
    const kg_parts_memory<PIECES, Counts, Job> memory(job, scratch);
    const int block = blockIdx.x, first = memory.a.copiers();
    if (block < first)
        kg_parts_pack<0, Counts::of_a, Counts::is_f16>(job, memory.a, memory.copy_a, memory.range_a,
                                                       block);
    else
        kg_parts_pack<1, Counts::of_b, Counts::is_f16>(job, memory.b, memory.copy_b, memory.range_b,
                                                       block - first);
}

// ---- Sums in doubt ----

// Of the notes of an operand, by a whole warp.
KG_INLINE kg_parts_range kg_parts_seen(const kg_parts_range *notes, int count)
{
    kg_parts_range range = {0xffffffff, 0};
    for (int i = threadIdx.x % 32; i < count; i += 32) {
        const uint2 note = *(const uint2 *)&notes[i];
        range.least = note.x < range.least ? note.x : range.least;
        range.most = note.y > range.most ? note.y : range.most;
    }
    kg_parts_fold(range);
    return range;
}

// What the size of a sum of products has to be that are made of parts. A number of at least 2^-100
// has parts with all its digits; of a smaller one, up to 2^-126 may be lost, in each of `steps`
// products with numbers of the other operand, and of products that are so small, as much. That is
// no harm to sums 2^26 times as large.
KG_INLINE float kg_parts_doubt(kg_parts_range a, kg_parts_range b, int64_t steps)
{
    constexpr uint32_t tiny = 2u * (127 - 100) << 23;
    constexpr float small = 7.8886091e-31f; // 2^-100
    const float of_all = (float)steps * small;
    float least = 0;
    if (a.least < tiny)
        least = of_all * kg_from_bits_f32(b.most);
    if (b.least < tiny)
        least = fmaxf(least, of_all * kg_from_bits_f32(a.most));
    const float product = kg_from_bits_f32(a.least / 2 + 1) * kg_from_bits_f32(b.least / 2 + 1);
    return a.most && b.most && product < small ? fmaxf(least, of_all) : least;
}

// ---- The shape of a block ----

// All of it is known when the kernel is compiled.
template <int ROWS, int COLUMNS, int STAGES, int SPLIT, int ORDER, bool LEFT_ALONG,
          bool RIGHT_ALONG, class COUNTS, class INSTRUCTION>
struct kg_parts_block {
    using counts = COUNTS;
    using instruction = INSTRUCTION;
    static constexpr int rows = ROWS, columns = COLUMNS, depth = KG_PARTS_STEPS, stages = STAGES;
    static constexpr int split = SPLIT, order = ORDER;
    static constexpr bool left_along = LEFT_ALONG, right_along = RIGHT_ALONG;

    static constexpr int consumers = ROWS / KG_PARTS_LINES;
    static constexpr int sums = COLUMNS / 2; // of a thread
    // Two stages' products are under way where there are registers for them.
    static constexpr int chains = sums <= 64 ? 2 : 1;
    static constexpr bool moves_registers = consumers == 2 && (chains + 1) * sums > 96;

    static constexpr int left_part = ROWS * KG_PARTS_STEPS * 2;
    static constexpr int right_part = COLUMNS * KG_PARTS_STEPS * 2;
    static constexpr int left_bytes = counts::of_a * left_part;
    static constexpr int stage_bytes = left_bytes + counts::of_b * right_part;
    // Of a warp: 16 rows of sums on their way out, in lines of which four lie in different banks.
    static constexpr int leaving = 32, pitch = leaving + 8, leave_bytes = 16 * pitch * 4;
};

// ---- The producer ----

KG_INLINE void kg_parts_fetch(char *to, const char *from, int bytes, uint64_t *full)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1], %2, [%3];" ::"r"(kg_shared_address(to)),
                 "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(kg_shared_address(full))
                 : "memory");
}

KG_INLINE int kg_parts_steps(const kg_tile_task &task)
{
    return (int)((task.stop - task.k + KG_PARTS_STEPS - 1) / KG_PARTS_STEPS);
}

// All steps of a task, from stage number `turn` on. Of a tile that reaches beyond the edges, what
// is there.
template <class Block, class Memory>
KG_INLINE void kg_parts_produce(const Memory &memory, const kg_tile_task &task, char *ring,
                                uint64_t *full, uint64_t *empty, uint32_t &turn)
{
    constexpr int lefts = Block::counts::of_a, rights = Block::counts::of_b;
    const int top = (int)(task.row / KG_PARTS_LINES), first = (int)(task.k / KG_PARTS_STEPS);
    const int start = (int)(task.column / KG_PARTS_LINES);
    const int down = memory.a.wide - top, across = memory.b.wide - start;
    const int tall = down < Block::rows / KG_PARTS_LINES ? down : Block::rows / KG_PARTS_LINES;
    const int wide =
        across < Block::columns / KG_PARTS_LINES ? across : Block::columns / KG_PARTS_LINES;
    const char *left = memory.copy_a + memory.a.place(task.item, first, 0, top);
    const char *right = memory.copy_b + memory.b.place(task.item, first, 0, start);
#pragma unroll 1
    for (int steps = kg_parts_steps(task); steps > 0; steps--, turn++) {
        char *to = ring + turn % Block::stages * Block::stage_bytes;
        uint64_t *arrived = &full[turn % Block::stages];
        kg_tiles_wait(&empty[turn % Block::stages], (turn / Block::stages & 1) ^ 1);
        kg_tiles_expect(arrived, (lefts * tall + rights * wide) * KG_PARTS_BOX);
#pragma unroll 1
        for (int part = 0; part < (lefts > rights ? lefts : rights); part++) {
            if (lefts >= rights || part < lefts) {
                kg_parts_fetch(to + part * Block::left_part, left, tall * KG_PARTS_BOX, arrived);
                left += memory.a.line();
            }
            if (rights >= lefts || part < rights) {
                kg_parts_fetch(to + Block::left_bytes + part * Block::right_part, right,
                               wide * KG_PARTS_BOX, arrived);
                right += memory.b.line();
            }
        }
    }
}

// ---- The consumers ----

// How wgmma finds the first 16 steps of boxes side by side: along the sum in lines of 64 bytes,
// eight of which are exchanged together; across it in lines of 128.
template <bool ALONG>
KG_INLINE uint64_t kg_parts_tile(const char *boxes)
{
    if constexpr (ALONG)
        return (uint64_t)2 << 62 | (uint64_t)(512 >> 4) << 32 | (uint64_t)1 << 16 |
               (kg_shared_address(boxes) & 0x3ffff) >> 4;
    else
        return (uint64_t)1 << 62 | (uint64_t)(1024 >> 4) << 32 |
               (uint64_t)(KG_PARTS_BOX >> 4) << 16 | (kg_shared_address(boxes) & 0x3ffff) >> 4;
}

// The products of parts, the smallest first: which part of A, and of B. Those of parts that there
// are not are left out.
template <class Counts>
constexpr bool kg_parts_has_product(int number)
{
    constexpr int lefts[] = {0, 2, 1, 0, 1, 0}, rights[] = {2, 0, 1, 1, 0, 0};
    return lefts[number] < Counts::of_a && rights[number] < Counts::of_b;
}

template <class Counts>
constexpr int kg_parts_first_product()
{
    int number = 0;
    while (!kg_parts_has_product<Counts>(number))
        number++;
    return number;
}

// Begins the products of the stage, when it is there.
template <class Block>
KG_INLINE void kg_parts_begin(float (&chain)[Block::sums], const char *ring, uint64_t *full,
                              uint32_t turn, int own)
{
    constexpr int lefts[] = {0, 2, 1, 0, 1, 0}, rights[] = {2, 0, 1, 1, 0, 0};
    constexpr int first = kg_parts_first_product<typename Block::counts>();
    constexpr int left_step = Block::left_along ? 2 : 128,
                  right_step = Block::right_along ? 2 : 128;
    const char *stage = ring + turn % Block::stages * Block::stage_bytes;
    const uint64_t left = kg_parts_tile<Block::left_along>(stage + own * KG_PARTS_BOX);
    const uint64_t right = kg_parts_tile<Block::right_along>(stage + Block::left_bytes);
    kg_tiles_wait(&full[turn % Block::stages], turn / Block::stages & 1);
    kg_wgmma_begin();
#pragma unroll
    for (int i = first; i < 6; i++) {
        if (!kg_parts_has_product<typename Block::counts>(i))
            continue;
#pragma unroll
        for (int step = 0; step < KG_PARTS_STEPS; step += 16)
            Block::instruction::multiply(
                chain, kg_wgmma_behind(left, lefts[i] * Block::left_part + step * left_step),
                kg_wgmma_behind(right, rights[i] * Block::right_part + step * right_step),
                i - first + step > 0);
    }
    kg_wgmma_commit();
}

// Ends them, and with them the use of the stage. LEFT: stages' that may be under way.
template <class Block, int LEFT>
KG_INLINE void kg_parts_end(float (&sums)[Block::sums], float (&chain)[Block::sums],
                            uint64_t *empty, uint32_t turn)
{
    kg_wgmma_wait<LEFT>();
#pragma unroll
    for (int i = 0; i < Block::sums; i++)
        asm volatile("" : "+f"(chain[i])::"memory"); // not added earlier
    if (threadIdx.x % 32 == 0)
        kg_tiles_arrive(kg_shared_address(&empty[turn % Block::stages]));
#pragma unroll
    for (int i = 0; i < Block::sums; i++)
        sums[i] += chain[i];
}

// All products of a task, from stage number `turn` on.
template <class Block>
KG_INLINE void kg_parts_consume(float (&sums)[Block::sums], const char *ring, uint64_t *full,
                                uint64_t *empty, uint32_t &turn, int steps, int own)
{
    float chains[Block::chains][Block::sums];
#pragma unroll
    for (int i = 0; i < Block::sums; i++)
        sums[i] = 0;
    if constexpr (Block::chains == 1) {
        for (int i = 0; i < steps; i++, turn++) {
            kg_parts_begin<Block>(chains[0], ring, full, turn, own);
            kg_parts_end<Block, 0>(sums, chains[0], empty, turn);
        }
        return;
    }
    if (steps == 0)
        return;
    float(&even)[Block::sums] = chains[0], (&odd)[Block::sums] = chains[Block::chains - 1];
    kg_parts_begin<Block>(even, ring, full, turn, own);
    for (; steps > 2; steps -= 2, turn += 2) {
        kg_parts_begin<Block>(odd, ring, full, turn + 1, own);
        kg_parts_end<Block, 1>(sums, even, empty, turn);
        kg_parts_begin<Block>(even, ring, full, turn + 2, own);
        kg_parts_end<Block, 1>(sums, odd, empty, turn + 1);
    }
    if (steps == 2) {
        kg_parts_begin<Block>(odd, ring, full, turn + 1, own);
        kg_parts_end<Block, 1>(sums, even, empty, turn);
        kg_parts_end<Block, 0>(sums, odd, empty, turn + 1);
    } else {
        kg_parts_end<Block, 0>(sums, even, empty, turn);
    }
    turn += steps;
}

// The warp's sums go out through its own shared memory.
template <class Block, class Job>
KG_INLINE void kg_parts_leave(const Job &job, const float (&sums)[Block::sums],
                              const kg_tile_task &task, int own, float *shared, float least,
                              float *scratch)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
#pragma unroll
    for (int column = 0; column < Block::columns; column += Block::leaving) {
#pragma unroll
        for (int i = 0; i < Block::leaving; i += 8) {
            const float *from = &sums[(column + i) / 2];
            float *to = shared + lane / 4 * Block::pitch + i + lane % 4 * 2;
            *reinterpret_cast<float2 *>(to) = make_float2(from[0], from[1]);
            *reinterpret_cast<float2 *>(to + 8 * Block::pitch) = make_float2(from[2], from[3]);
        }
        __syncwarp();
        kg_eights_end<Block::leaving / 8, Block::pitch, Block::split, true>(
            job, shared, task, task.row + own * KG_PARTS_LINES + warp * 16, task.column + column,
            least, scratch);
        __syncwarp();
    }
}

// ---- The block ----

// What the warps of a block have in shared memory: `shared` is the ring.
template <class Block>
struct kg_parts_shared {
    char *ring, *leaving;
    uint64_t *full, *empty;
    float *least;
    KG_METHOD explicit kg_parts_shared(char *shared)
    {
        ring = shared + (1024 - kg_shared_address(shared) % 1024) % 1024;
        leaving = ring + Block::stages * Block::stage_bytes;
        full = (uint64_t *)(leaving + Block::consumers * 4 * Block::leave_bytes);
        empty = full + Block::stages;
        least = (float *)(empty + Block::stages);
    }
};

template <class Block, class Job>
KG_INLINE kg_tile_task kg_parts_task(const Job &job, int64_t number)
{
    const int64_t tall = (job.rows() + Block::rows - 1) / Block::rows;
    const int64_t wide = (job.columns() + Block::columns - 1) / Block::columns;
    return kg_tile_task_of<Block, Block::split, false, Block::order>(job, number, tall, wide);
}

template <class Block, class Job>
KG_INLINE void kg_parts_consumer(const Job &job, const kg_parts_shared<Block> &shared,
                                 int64_t tasks, float *scratch)
{
    const int own = kg_warp_number() / 4 - 1;
    float *leaving = (float *)(shared.leaving + (threadIdx.x / 32 - 4) * Block::leave_bytes);
    uint32_t turn = 0;
    bool is_first = true;
    for (int64_t number = blockIdx.x; number < tasks; number += gridDim.x) {
        float sums[Block::sums];
        kg_tile_task task = kg_parts_task<Block>(job, number);
        kg_parts_consume<Block>(sums, shared.ring, shared.full, shared.empty, turn,
                                kg_parts_steps(task), own);
        if (is_first)
            kg_tiles_meet<(Block::consumers * 4 + 1) * 32>(1); // what is in doubt is known
        is_first = false;
        kg_parts_leave<Block>(job, sums, task, own, leaving, *shared.least, scratch);
    }
}

// Takes as many blocks as there are, of 128 threads and as many for each consumer.
template <class Block, class Job>
KG_INLINE void kg_contract_parts(const Job &job, char *scratch)
{
    extern __shared__ char kg_shared[];
    const int warp = kg_warp_number();
    const kg_parts_shared<Block> shared(kg_shared);
    const kg_parts_memory<Block::split, typename Block::counts, Job> memory(job, scratch);
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
                kg_parts_produce<Block>(memory, kg_parts_task<Block>(job, number), shared.ring,
                                        shared.full, shared.empty, turn);
        } else if (warp == 1) {
            const kg_parts_range a = kg_parts_seen(memory.range_a, memory.a.copiers());
            const kg_parts_range b = kg_parts_seen(memory.range_b, memory.b.copiers());
            *shared.least = kg_parts_doubt(a, b, job.depth());
            asm volatile("bar.arrive 1, %0;" ::"n"((Block::consumers * 4 + 1) * 32) : "memory");
        }
    } else {
        if constexpr (Block::moves_registers)
            asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        kg_parts_consumer<Block>(job, shared, tasks, (float *)scratch);
    }
}
