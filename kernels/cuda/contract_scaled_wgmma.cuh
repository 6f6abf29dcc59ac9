// A product with an operand of quantised weights, on the tensor cores of sm_90a. A producer thread
// loads both operands by TMA into a ring of stages in shared memory: rows (tokens) as they are,
// weights as packed integers, with their scales and zero points. Two warp groups, the consumers,
// read weights from there, make exact 16-bit numbers of them in registers and multiply these by
// wgmma, as its left operand. Weights are 256 columns of a tile, so that few rows cost little.
//
// The sums of a run of K steps with the same scales are scaled in f32 and added to the total.
// Without runs, there is only the total, which is scaled at its end.
//
// A word of weights has eight adjacent columns at one K index. Consumer c of 0 and 1 takes columns
// 4 * c to 4 * c + 3 of it: those that lane 4 * r + t of warp w has are, in the two instructions of
// a K step, rows r and r + 8 of the warp's 16. So the column of the tile is 64 * w + 8 * r + 4 * c
// + i. (The weights are the struct of contract_scaled.cuh.)
//
// K steps are divided evenly among the blocks by stream-K: those of a tile store partial tiles, and
// the last of them adds up.

// ---- Scales and zero points ----

// Those of a lane's four columns in a run. Scales that come through the ring stay as they are until
// they are used.
template <class Block, class WEIGHTS>
struct kg_tall_scales {
    uint32_t pairs[2];
    float scales[4];
    KG_METHOD void clear()
    {
        pairs[0] = pairs[1] = 0;
#pragma unroll
        for (int i = 0; i < 4; i++)
            scales[i] = 0;
    }
    KG_METHOD float of(const WEIGHTS &weights, int i) const
    {
        if constexpr (Block::staged)
            return weights.widen_scale((uint16_t)(pairs[i / 2] >> i % 2 * 16));
        else
            return scales[i];
    }
};

template <class Block, class WEIGHTS>
struct kg_tall_lane {
    const WEIGHTS &weights;
    int64_t item, column, last; // the first of its columns; the last one of the output
    int depth;
    uint32_t place; // of the first column in the tile
    uint32_t biases[4];

    KG_METHOD kg_tall_lane(const WEIGHTS &weights_, const kg_tile_task &task, int column_,
                           int64_t columns)
        : weights(weights_), item(task.item), column(task.column + column_), last(columns - 1),
          depth((int)task.stop), place(column_)
    {
    }
    // Takes zero points and scales of the run of K index `k`, which the stage at `address` has.
    KG_METHOD void take(kg_tall_scales<Block, WEIGHTS> &scales, uint32_t address, int k)
    {
        const int first = k / 64 * 64;
        int run = 0;
        if constexpr (Block::staged && Block::group % 64 != 0)
            run = k / Block::group - first / Block::group;
        k = k < depth ? k : depth - 1;
        if constexpr (Block::staged)
            asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];"
                         : "=r"(scales.pairs[0]), "=r"(scales.pairs[1])
                         : "r"(address + Block::scales_at + (run * Block::columns + place) * 2)
                         : "memory");
        else
#pragma unroll
            for (int i = 0; i < 4; i++)
                scales.scales[i] = weights.scale(item, k, kg_min_i64(column + i, last));
        int zeros[4];
        if constexpr (Block::stages_zeros) {
            uint16_t word;
            asm volatile("ld.shared.u16 %0, [%1];"
                         : "=h"(word)
                         : "r"(address + Block::zeros_at + (run * Block::columns + place) / 2)
                         : "memory");
#pragma unroll
            for (int i = 0; i < 4; i++)
                zeros[i] = (int)(((word ^ WEIGHTS::ZERO_FLIP * 0x1111u) >> i * 4 & 15) -
                                 WEIGHTS::ZERO_FLIP);
        } else {
#pragma unroll
            for (int i = 0; i < 4; i++)
                zeros[i] = weights.zero(item, k, kg_min_i64(column + i, last));
        }
        biases[0] = Block::number::template bias_of<0>(zeros[0]);
        biases[1] = Block::number::template bias_of<1>(zeros[1]);
        biases[2] = Block::number::template bias_of<2>(zeros[2]);
        biases[3] = Block::number::template bias_of<3>(zeros[3]);
    }
};

// ---- The consumers ----

// Accumulators 2 and 3 of four are those of the instruction's row that is 8 further.
template <class Block>
struct kg_tall_sums {
    float at[Block::m_tiles][Block::sums];
    KG_METHOD void clear()
    {
#pragma unroll
        for (int i = 0; i < Block::m_tiles * Block::sums; i++)
            at[i / Block::sums][i % Block::sums] = 0;
    }
    // Keeps uses of the sums of an instruction behind the wait for them.
    template <int TILE>
    KG_METHOD void settle()
    {
#pragma unroll
        for (int i = 0; i < Block::sums; i++)
            asm volatile("" : "+f"(at[TILE][i])::"memory");
    }
    template <int TILE, class SCALES, class WEIGHTS>
    KG_METHOD void scale(const SCALES &scales, const WEIGHTS &weights)
    {
        const float by[2] = {scales.of(weights, TILE * 2), scales.of(weights, TILE * 2 + 1)};
#pragma unroll
        for (int i = 0; i < Block::sums; i++)
            at[TILE][i] *= by[i / 2 % 2];
    }
    KG_METHOD void add(const kg_tall_sums &more)
    {
#pragma unroll
        for (int i = 0; i < Block::m_tiles * Block::sums; i++)
            at[i / Block::sums][i % Block::sums] += more.at[i / Block::sums][i % Block::sums];
    }
    // To and from a partial tile, by fours of a consumer's threads.
    KG_METHOD void store(float4 *to) const
    {
#pragma unroll
        for (int i = 0; i < Block::m_tiles * Block::sums; i += 4)
            kg_partial_store(&to[i / 4 * 128], &at[i / Block::sums][i % Block::sums]);
    }
    KG_METHOD void load(const float4 *from)
    {
#pragma unroll
        for (int i = 0; i < Block::m_tiles * Block::sums; i += 4)
            kg_partial_load(&at[i / Block::sums][i % Block::sums], &from[i / 4 * 128]);
    }
    template <int TILE, class SCALES, class WEIGHTS>
    KG_METHOD void add(const kg_tall_sums &of_run, const SCALES &scales, const WEIGHTS &weights)
    {
        const float by[2] = {scales.of(weights, TILE * 2), scales.of(weights, TILE * 2 + 1)};
#pragma unroll
        for (int i = 0; i < Block::sums; i++)
            at[TILE][i] = __fmaf_rn(of_run.at[TILE][i], by[i / 2 % 2], at[TILE][i]);
    }
};

// Where a lane finds its words of weights in a stage: those of K indices 2 * t and 2 * t + 1 of a
// step; eight indices further they are 1024 bytes further. Chunks of 16 bytes are swizzled.
template <class Block>
struct kg_tall_words {
    uint32_t even, odd;
    KG_METHOD kg_tall_words()
    {
        const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
        const uint32_t chunk = warp * 2 + lane / 16, line = lane % 4 * 2;
        even = Block::row_bytes + line * 128 + (chunk ^ line) * 16 + lane / 4 % 4 * 4;
        odd = Block::row_bytes + (line + 1) * 128 + (chunk ^ (line + 1)) * 16 + lane / 4 % 4 * 4;
    }
    KG_METHOD static uint32_t load(uint32_t place)
    {
        uint32_t word;
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(place) : "memory");
        return word;
    }
    // Those of a step of the stage at `address`.
    KG_METHOD void load(uint32_t (&to)[4], uint32_t address, int step) const
    {
        to[0] = load(address + even + step * 2048);
        to[1] = load(address + odd + step * 2048);
        to[2] = load(address + even + step * 2048 + 1024);
        to[3] = load(address + odd + step * 2048 + 1024);
    }
};

// The left operands of a K step.
template <class Block>
struct kg_tall_left {
    uint32_t at[Block::m_tiles][4];
    // Of words that are used no earlier than here.
    KG_METHOD void convert(uint32_t (&words)[4], uint32_t halves, const uint32_t (&biases)[4])
    {
        typedef typename Block::number number;
        asm volatile("" : "+r"(words[0]), "+r"(words[1]), "+r"(words[2]), "+r"(words[3]));
        const uint32_t first = __byte_perm(words[0], words[1], halves);
        const uint32_t second = __byte_perm(words[2], words[3], halves);
        at[0][0] = number::template pair_of<0>(first, biases[0]);
        at[0][1] = number::template pair_of<1>(first, biases[1]);
        at[0][2] = number::template pair_of<0>(second, biases[0]);
        at[0][3] = number::template pair_of<1>(second, biases[1]);
        at[1][0] = number::template pair_of<2>(first, biases[2]);
        at[1][1] = number::template pair_of<3>(first, biases[3]);
        at[1][2] = number::template pair_of<2>(second, biases[2]);
        at[1][3] = number::template pair_of<3>(second, biases[3]);
    }
};

// How a consumer goes through the stages of a piece, some steps at a time.
template <class Block, class WEIGHTS>
struct kg_tall_loop {
    typedef kg_tall_scales<Block, WEIGHTS> scales_type;
    static constexpr int batch = Block::batch, batches = 4 / batch; // of a stage
    const kg_tall_shared &shared;
    kg_tall_place<Block> &at; // of what is read next
    kg_tall_lane<Block, WEIGHTS> &lane;
    const kg_tall_words<Block> places;
    const uint32_t halves;
    uint32_t stage, ahead; // addresses: of the stage that is multiplied, and of that read next
    uint32_t before = 0;   // and of the barrier that says that the last stage is free
    int k, until;          // K indices: of the stage that is read next, and where the piece ends
    uint32_t words[2][batch][4]; // of the next two batches
    kg_tall_left<Block> left[2][batch];
    scales_type scales, next; // of the run whose sums are not all added, and of the one that begins

    KG_METHOD kg_tall_loop(const kg_tall_shared &shared_, kg_tall_place<Block> &at_,
                           kg_tall_lane<Block, WEIGHTS> &lane_, const kg_tall_piece &piece,
                           int consumer)
        : shared(shared_), at(at_), lane(lane_), halves(consumer ? 0x7632 : 0x5410),
          k(piece.first * Block::unit), until(piece.until * Block::unit)
    {
        find_ahead();
        stage = ahead;
        load(0, stage, 0);
        load(1, stage, 1);
        lane.take(next, stage, k);
        convert(0);
    }
    KG_METHOD void find_ahead()
    {
        ahead = kg_shared_address(shared.ring) + at.stage * Block::stage_bytes;
        if (k < until)
            kg_tiles_wait(&shared.full[at.stage], at.odd);
    }
    KG_METHOD void release()
    {
        if (before != 0 && threadIdx.x % 32 == 0)
            kg_tiles_arrive(before);
    }
    // The words of a batch of the stage at `address`.
    KG_METHOD void load(int turn, uint32_t address, int number)
    {
#pragma unroll
        for (int i = 0; i < batch; i++)
            places.load(words[turn][i], address, number * batch + i);
    }
    KG_METHOD void convert(int turn)
    {
#pragma unroll
        for (int i = 0; i < batch; i++)
            left[turn][i].convert(words[turn][i], halves, lane.biases);
    }
    template <int TILE>
    KG_METHOD void multiply(kg_tall_sums<Block> &sums, int turn, int step, uint64_t right, int more)
    {
        Block::instruction::multiply(sums.at[TILE], left[turn][step].at[TILE],
                                     kg_wgmma_behind(right, step * 32), more);
    }

    // The stages of a unit. While the products of a batch are computed, the next one's weights are
    // converted, in registers that the batch before has read, and those of the batch after it are
    // read: behind the end of the piece, these are of no use. The sums of a run are added to the
    // total, those of the second instruction while the first one of the next run is computed.
    KG_METHOD void unit(kg_tall_sums<Block> &total, kg_tall_sums<Block> &sums, bool more)
    {
        constexpr int count = Block::unit / 16 / batch, run = Block::run / 16 / batch;
        uint32_t empty = kg_shared_address(&shared.empty[at.stage]);
#pragma unroll
        for (int number = 0; number < count; number++) {
            const int of_stage = number % batches, turn = number % 2;
            const bool begins = Block::has_runs && number % run == 0;
            const bool ends = Block::has_runs && (number + 1) % run == 0;
            const uint64_t right =
                kg_wgmma_behind(kg_wgmma_whole(kg_wgmma_tile(stage, 16)), of_stage * batch * 32);
            kg_wgmma_begin();
            multiply<0>(sums, turn, 0, right, begins ? 0 : number > 0 || more);
            kg_wgmma_commit();
            if (begins) {
                kg_wgmma_wait<1>();
                sums.template settle<1>();
                total.template add<1>(sums, scales, lane.weights);
                scales = next;
                kg_wgmma_begin();
            }
            multiply<1>(sums, turn, 0, right, begins ? 0 : number > 0 || more);
#pragma unroll
            for (int i = 1; i < batch; i++) {
                multiply<0>(sums, turn, i, right, 1);
                multiply<1>(sums, turn, i, right, 1);
            }
            kg_wgmma_commit();
            if (of_stage == batches - 2) {
                at.next();
                k += Block::depth;
                find_ahead();
            }
            if (ends && of_stage == batches - 1)
                lane.take(next, ahead, k);
            else if (ends)
                lane.take(next, stage,
                          k - (of_stage == batches - 2 ? Block::depth : 0) +
                              (of_stage + 1) * batch * 16);
            load(turn, of_stage + 2 < batches ? stage : ahead, (of_stage + 2) % batches);
            kg_wgmma_wait<2>();
            if (of_stage == 0)
                release();
            convert(1 - turn);
            if (ends) { // waiting for the first product alone makes compilers serialise all of them
                kg_wgmma_wait<0>();
                sums.template settle<0>();
                total.template add<0>(sums, scales, lane.weights);
            }
            if (of_stage == batches - 1) {
                before = empty;
                empty = kg_shared_address(&shared.empty[at.stage]);
                stage = ahead;
            }
        }
    }
};

// The sums of a piece.
template <class Block, class WEIGHTS>
KG_INLINE void kg_tall_consume(kg_tall_sums<Block> &total, kg_tall_lane<Block, WEIGHTS> &lane,
                               kg_tall_place<Block> &at, const kg_tall_shared &shared,
                               const kg_tall_piece &piece, int consumer)
{
    kg_tall_loop<Block, WEIGHTS> loop(shared, at, lane, piece, consumer);
    total.clear();
    if constexpr (Block::has_runs) {
        kg_tall_sums<Block> sums;
        sums.clear(); // of no run
        loop.scales.clear();
#pragma unroll 1
        while (loop.k < loop.until)
            loop.unit(total, sums, false);
        kg_wgmma_wait<0>();
        sums.template settle<1>();
        total.template add<1>(sums, loop.scales, lane.weights);
    } else {
        bool more = false;
#pragma unroll 1
        for (; loop.k < loop.until; more = true)
            loop.unit(total, total, more);
        kg_wgmma_wait<0>();
        total.template settle<0>();
        total.template settle<1>();
        total.template scale<0>(loop.next, lane.weights);
        total.template scale<1>(loop.next, lane.weights);
    }
    loop.release();
}

// ---- Partial tiles ----

template <class Block>
KG_INLINE float4 *kg_tall_partial(char *scratch, int block, int consumer)
{
    return (float4 *)(scratch + block * (int64_t)Block::partial_bytes) +
           consumer * (Block::partial_bytes / 16 / Block::consumers);
}

template <class Block>
KG_INLINE uint64_t *kg_tall_flag(char *scratch, int block, int consumer)
{
    return (uint64_t *)(scratch + gridDim.x * (int64_t)Block::partial_bytes) +
           block * Block::consumers + consumer;
}

template <class Block>
KG_INLINE void kg_tall_store_partial(const kg_tall_sums<Block> &sums, char *scratch, int consumer)
{
    const int thread = threadIdx.x % 128;
    float4 *to = kg_tall_partial<Block>(scratch, blockIdx.x, consumer);
    sums.store(to + thread);
    kg_tiles_meet<128>(consumer + 2);
    if (thread == 0)
        kg_partial_tell(kg_tall_flag<Block>(scratch, blockIdx.x, consumer));
}

// Adds the partial tiles of the blocks from `first` to the one before this, in their order; loads
// several at once, as far as there are registers.
template <class Block>
KG_INLINE void kg_tall_add_partials(kg_tall_sums<Block> &sums, char *scratch, int first,
                                    int consumer)
{
    constexpr int at_once = Block::rows <= 16 ? 4 : Block::rows <= 32 ? 2 : 1;
    const int thread = threadIdx.x % 128, mine = blockIdx.x;
    for (int block = first + thread; block < mine; block += 128)
        kg_partial_await(kg_tall_flag<Block>(scratch, block, consumer));
    kg_tiles_meet<128>(consumer + 2);
#pragma unroll 1
    for (int block = first; block < mine; block += at_once) {
        kg_tall_sums<Block> loaded[at_once];
#pragma unroll
        for (int i = 0; i < at_once; i++) {
            loaded[i].clear();
            if (block + i < mine)
                loaded[i].load(kg_tall_partial<Block>(scratch, block + i, consumer) + thread);
        }
#pragma unroll
        for (int i = 0; i < at_once; i++)
            sums.add(loaded[i]);
    }
}

// ---- The epilogue ----

// Finishes a tile, eight rows at a time, through one of two buffers in turns: who is past the
// barrier of a turn has read what was stored in the turn before. Sums that are not finite are
// computed again: scales may be infinite.
template <class Block, class JOB>
KG_INLINE void kg_tall_finish(const JOB &job, const kg_tall_sums<Block> &sums,
                              const kg_tile_task &task, float *store, int &turn, int consumer)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    const int mine = warp * 64 + lane / 4 * 8 + consumer * 4;
    const int unit = consumer * 128 + threadIdx.x % 128, at_row = unit / 32, at = unit % 32 * 8;
#pragma unroll
    for (int first = 0; first < Block::rows; first += 8, turn ^= 1) {
        float *buffer = store + turn * (8 * Block::pitch);
#pragma unroll
        for (int i = 0; i < 2; i++)
            *reinterpret_cast<float4 *>(buffer + (lane % 4 * 2 + i) * Block::pitch + mine) =
                make_float4(sums.at[0][first / 2 + i], sums.at[0][first / 2 + 2 + i],
                            sums.at[1][first / 2 + i], sums.at[1][first / 2 + 2 + i]);
        kg_tiles_meet<Block::consumer_threads>(1);
        const int64_t row = task.row + first + at_row, column = task.column + at;
        const int count = kg_row8_count(row, job.rows(), column, job.columns());
        float *from = buffer + at_row * Block::pitch + at;
        kg_row8 sums8 = kg_row8_load(from);
        kg_row8_recompute(job, sums8, from, task, row, column, count, 0.0f);
        if (count > 0)
            kg_row8_store(job, sums8, task.item, row, column, count);
    }
}

// ---- The kernel ----

template <class Block, class JOB, class WEIGHTS>
KG_INLINE void kg_tall_consumer(const JOB &job, const WEIGHTS &weights,
                                const kg_tall_shared &shared, char *scratch)
{
    const int consumer = kg_warp_number() / 4 - 1;
    const int column = threadIdx.x / 32 % 4 * 64 + (int)threadIdx.x % 32 / 4 * 8 + consumer * 4;
    kg_tall_place<Block> at;
    int turn = 0;
    for (kg_tall_work<Block> work(job); work.is_left(); work.next()) {
        const kg_tall_piece piece = work.piece(job.depth());
        kg_tall_lane<Block, WEIGHTS> lane(weights, piece.task, column, job.columns());
        kg_tall_sums<Block> total;
        kg_tall_consume<Block>(total, lane, at, shared, piece, consumer);
        if constexpr (Block::stream_k) {
            if (piece.until < work.units) {
                kg_tall_store_partial<Block>(total, scratch, consumer);
                continue;
            }
            if (piece.first > 0)
                kg_tall_add_partials<Block>(
                    total, scratch, kg_stream_k_block(&work.stream_k, piece.tile * work.units),
                    consumer);
        }
        kg_tall_finish<Block>(job, total, piece.task, shared.store, turn, consumer);
    }
}

// Any number of blocks of 128 threads for the producer and for each consumer.
template <class Block, class JOB, class WEIGHTS>
KG_INLINE void kg_contract_scaled_wgmma(const JOB &job, const WEIGHTS &weights,
                                        const kg_tall_maps &maps, char *scratch)
{
    extern __shared__ char kg_tall_ring[];
    const kg_tall_shared shared = kg_tall_shared_of<Block>(kg_tall_ring);
    const int warp = kg_warp_number();
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
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (warp == 0 && kg_is_elected())
            kg_tall_produce<Block>(job, maps, shared);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
        kg_tall_consumer<Block>(job, weights, shared, scratch);
    }
}
