// The main loop of contract_scaled_wgmma.cuh: the sums, those of rows, and products that are
// computed while the next weights are converted.

// ---- Sums ----

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
    KG_METHOD void settle_all()
    {
        settle<0>();
        if constexpr (Block::m_tiles > 1)
            settle<1>();
    }
    // All of them at the end, in their registers: compilers would take others, and spill these.
    KG_METHOD void scale_all(const float (&by)[Block::of_lane])
    {
#pragma unroll
        for (int i = 0; i < Block::m_tiles * Block::sums; i++)
            asm volatile("mul.rn.f32 %0, %0, %1;"
                         : "+f"(at[i / Block::sums][i % Block::sums])
                         : "f"(by[i / Block::sums * 2 + i % Block::sums / 2 % 2]));
    }
    template <int TILE>
    KG_METHOD void scale(const float (&by)[Block::of_lane])
    {
#pragma unroll
        for (int i = 0; i < Block::sums; i++)
            at[TILE][i] *= by[TILE * 2 + i / 2 % 2];
    }
    // The same, and adds `more` of each column times the sum of each row, which are `rows` on.
    template <int TILE>
    KG_METHOD void scale_and_add(const float (&by)[Block::of_lane],
                                 const float (&more)[Block::of_lane], const float *rows)
    {
#pragma unroll
        for (int i = 0; i < Block::sums; i += 4) {
            const float2 two =
                *reinterpret_cast<const float2 *>(rows + i * 2 + threadIdx.x % 4 * 2);
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const int column = TILE * 2 + j / 2;
                at[TILE][i + j] =
                    __fmaf_rn(at[TILE][i + j], by[column], more[column] * (j % 2 ? two.y : two.x));
            }
        }
    }
    KG_METHOD void add(const kg_tall_sums &more)
    {
#pragma unroll
        for (int i = 0; i < Block::m_tiles * Block::sums; i++)
            at[i / Block::sums][i % Block::sums] += more.at[i / Block::sums][i % Block::sums];
    }
    KG_METHOD void store_shared(float4 *to) const
    {
#pragma unroll
        for (int i = 0; i < Block::m_tiles * Block::sums; i += 4) {
            const float *four = &at[i / Block::sums][i % Block::sums];
            to[i / 4 * 128] = make_float4(four[0], four[1], four[2], four[3]);
        }
    }
    KG_METHOD void add_shared(const float4 *from)
    {
#pragma unroll
        for (int i = 0; i < Block::m_tiles * Block::sums; i += 4) {
            float *four = &at[i / Block::sums][i % Block::sums];
            const float4 more = from[i / 4 * 128];
            four[0] += more.x, four[1] += more.y, four[2] += more.z, four[3] += more.w;
        }
    }
    // To and from a partial tile, by fours of a consumer's threads.
    KG_METHOD void store(float4 *to) const
    {
#pragma unroll
        for (int i = 0; i < Block::m_tiles * Block::sums; i += 4)
            kg_partial_store(&to[i / 4 * 128], &at[i / Block::sums][i % Block::sums]);
    }
    // The same, but for every `slices`-th part from `mine` on: those are kept in shared memory.
    KG_METHOD void store_others(float4 *to, float4 *kept, int mine, int slices) const
    {
        constexpr int fours = Block::sums / 4, of_part = Block::panels ? 1 : Block::m_tiles;
        int owner = 0; // of the part
#pragma unroll
        for (int i = 0; i < fours * Block::m_tiles; i++) {
            const int line = i / Block::m_tiles, tile = i % Block::m_tiles;
            const float *four = &at[tile][line * 4];
            if (owner != mine) {
                kg_partial_store(&to[(tile * fours + line) * 128], four);
            } else {
                *kept = make_float4(four[0], four[1], four[2], four[3]);
                kept += 128;
            }
            if (i % of_part == of_part - 1)
                owner = owner + 1 < slices ? owner + 1 : 0;
        }
    }
    KG_METHOD void load(const float4 *from)
    {
#pragma unroll
        for (int i = 0; i < Block::m_tiles * Block::sums; i += 4)
            kg_partial_load(&at[i / Block::sums][i % Block::sums], &from[i / 4 * 128]);
    }
};

// ---- Sums of rows ----

// Where weights have offsets: the sums of the rows of a run, by all threads of a consumer. (A
// product with ones by mma.sync has to wait for the products that are on their way. If consumers
// shared the work, both would scale their sums at the same time, and nothing would be multiplied
// meanwhile.)
template <class Block, bool HAS_OFFSET>
struct kg_tall_row_sums {
    const float *latest = nullptr;
    KG_METHOD kg_tall_row_sums(const kg_tall_shared &, int)
    {
    }
    KG_METHOD void add(uint32_t)
    {
    }
    KG_METHOD void finish(int)
    {
    }
};

// A thread has 16 bytes of each stage's line in shared memory, those of eight K indices, of every
// 16th row.
template <class Block>
struct kg_tall_row_sums<Block, true> {
    static constexpr int every = 16, mine = (Block::rows + every - 1) / every;
    static constexpr bool is_long = !Block::has_runs || Block::run >= Block::depth;
    static constexpr int lanes = is_long ? 8 : Block::run / 8; // that have a run of a row
    float at[mine];
    float *places;               // of those of the runs of a stage, or of a run; twice, by turns
    const float *latest;         // those of the run that ended
    int number, turn = 0, first; // `number`: of the consumer, of all teams
    uint32_t chunk;

    KG_METHOD kg_tall_row_sums(const kg_tall_shared &shared, int number_)
        : places(shared.row_sums + number_ * 2 * Block::row_sums), latest(places), number(number_),
          first((int)threadIdx.x % 128 / 8), chunk(threadIdx.x % 8)
    {
        clear();
    }
    KG_METHOD void clear()
    {
#pragma unroll
        for (int i = 0; i < mine; i++)
            at[i] = 0;
    }
    // Those of the stage at `address`.
    KG_METHOD void add(uint32_t address)
    {
        typedef kg_scaled_halves<typename Block::number::tensor> type;
#pragma unroll
        for (int i = 0; i < mine; i++) {
            const int row = first + i * every;
            if (row >= Block::rows)
                break;
            uint32_t words[4];
            asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                         : "r"(address + row * 128 + (chunk ^ row % 8) * 16)
                         : "memory");
#pragma unroll
            for (int word = 0; word < 4; word++)
                at[i] += type::low(words[word]) + type::high(words[word]);
        }
        if constexpr (!is_long)
            share();
    }
    KG_METHOD void share()
    {
        turn ^= 1;
#pragma unroll
        for (int i = 0; i < mine; i++) {
            if (first + i * every >= Block::rows)
                break;
#pragma unroll
            for (int lane = 1; lane < lanes; lane *= 2)
                at[i] += __shfl_xor_sync(0xffffffff, at[i], lane);
            if (chunk % lanes == 0)
                places[turn * Block::row_sums + chunk / lanes * Block::rows + first + i * every] =
                    at[i];
        }
        clear();
    }
    // Makes those of the run that ends, the `run`-th of its stage, known to the consumer.
    KG_METHOD void finish(int run)
    {
        if constexpr (is_long)
            share();
        if (is_long || run == 0)
            kg_tiles_meet<128>(number + 6);
        latest = places + turn * Block::row_sums + (is_long ? 0 : run * Block::rows);
    }
};

// How a consumer goes through the stages of a piece, some steps at a time.
template <class Block, class WEIGHTS>
struct kg_tall_loop {
    static constexpr int batch = Block::batch, batches = 4 / batch; // of a stage
    static constexpr int count = Block::unit / 16 / batch;
    // Batches of a run, or runs of a batch.
    static constexpr int batch_runs = Block::batch_runs;
    static constexpr int run = batch_runs > 1 ? 1 : Block::run / 16 / batch;
    // Stages of a unit, and of the units that other teams take before this one's next.
    static constexpr int own = Block::unit / Block::depth, others = own * (Block::teams - 1);
    // The batch of a unit that a loop begins with.
    static constexpr int middle = Block::scales_sums ? run / 2 : 0;
    const kg_tall_shared &shared;
    kg_tall_place<Block> &at; // of what is read next
    kg_tall_lane<Block, WEIGHTS> &lane;
    typedef typename kg_tall_source<Block, Block::lines, Block::panels>::type source;
    const source places;
    // Groups of products that are committed in a batch: sums that are scaled are waited for apart.
    static constexpr int groups = Block::scales_sums ? Block::m_tiles : 1;
    // Addresses: of the stage that is multiplied and of the one that is read next; of the barriers
    // that say that the former is free, and the one before it.
    uint32_t stage, ahead, empty, before = 0;
    int k;         // the K index of the stage that is read next
    int to_come;   // stages of the piece from that one on
    bool is_there; // it is loaded
    // Of the next two batches or, of panels, of a stage.
    uint32_t words[Block::panels ? 1 : 2][Block::panels ? 4 : batch][source::count];
    kg_tall_left<Block> left[2][batch];
    // What sums are multiplied by before the run that begins, and added to.
    float by[Block::of_lane], more[Block::of_lane];
    kg_tall_row_sums<Block, WEIGHTS::HAS_OFFSET> &rows;

    KG_METHOD kg_tall_loop(const kg_tall_shared &shared_, kg_tall_place<Block> &at_,
                           kg_tall_lane<Block, WEIGHTS> &lane_,
                           kg_tall_row_sums<Block, WEIGHTS::HAS_OFFSET> &rows_,
                           const kg_tall_piece &piece, int team)
        : shared(shared_), at(at_), lane(lane_), rows(rows_), places(lane_.place),
          k(piece.first * Block::unit), to_come((piece.until - piece.first) * own)
    {
        if (others > 0 && team > 0)
            pass<others>();
        find_ahead();
        await_ahead();
        stage = ahead;
        empty = at.empty();
        load(0, stage, 0);
        load(1, stage, 1);
        load_stage(stage);
        lane.look_ahead(k);
        take(stage, k, 0);
        convert(0, 0);
    }
    // Takes the scales of the run of K index `at_k`, or of the runs of a batch, and looks ahead to
    // the team's next run. `place`: the run's first K index in its stage.
    KG_METHOD void take(uint32_t address, int at_k, int place, bool is_there = true)
    {
        const int next = at_k + Block::run;
#pragma unroll
        for (int i = 0; i < batch_runs; i++)
            lane.take(address, at_k + i * Block::run, place + i * Block::run, i, is_there, by,
                      more);
        lane.look_ahead(next % Block::unit == 0 ? next + others * Block::depth : next);
    }
    // Goes on by COUNT stages: its own next one, or those of the other team, which need not be
    // waited for. (A barrier tells the parity of a turn only. But in a piece a stage is the same
    // team's in every turn, so that it has seen the turn before, and cannot take it for the awaited
    // one; from one piece to the next, teams meet.)
    template <int COUNT>
    KG_METHOD void pass()
    {
        at.template next<COUNT>();
        k += COUNT * Block::depth;
        to_come -= COUNT;
    }
    // Looks for the next stage, early: an answer takes a while.
    KG_METHOD void find_ahead()
    {
        ahead = at.stage;
        is_there = kg_tiles_test(at.full, at.odd);
    }
    KG_METHOD void await_ahead()
    {
        if (!is_there && to_come > 0)
            kg_tiles_wait(at.full, at.odd);
    }
    KG_METHOD void release()
    {
        if (before != 0 && threadIdx.x % 32 == 0)
            kg_tiles_arrive(before);
    }
    // The words of a batch of the stage at `address`; those of panels all at once.
    KG_METHOD void load(int turn, uint32_t address, int number)
    {
        if constexpr (!Block::panels) {
#pragma unroll
            for (int i = 0; i < batch; i++)
                places.load(words[turn][i], address, number * batch + i);
        }
    }
    KG_METHOD void load_stage(uint32_t address)
    {
        if constexpr (Block::panels)
            places.load_stage(words[0], address);
    }
    // Batch `number` of its stage.
    KG_METHOD void convert(int turn, int number)
    {
#pragma unroll
        for (int i = 0; i < batch; i++)
            if constexpr (Block::panels)
                places.convert(left[turn][i], words[0][number * batch + i], lane,
                               i * batch_runs / batch);
            else
                places.convert(left[turn][i], words[turn][i], lane, i * batch_runs / batch);
    }
    template <int TILE>
    KG_METHOD void scale(kg_tall_sums<Block> &sums)
    {
        sums.template settle<TILE>();
        if constexpr (WEIGHTS::HAS_OFFSET)
            sums.template scale_and_add<TILE>(by, more, rows.latest);
        else
            sums.template scale<TILE>(by);
    }
    // `right`: the lower half of the descriptor of the rows.
    template <int TILE>
    KG_METHOD void multiply_step(kg_tall_sums<Block> &sums, int turn, int step, uint32_t right)
    {
        Block::instruction::multiply(sums.at[TILE], left[turn][step][TILE],
                                     kg_wgmma_whole(right + step * 32 / 16), 1);
    }
    template <int TILE>
    KG_METHOD void multiply(kg_tall_sums<Block> &sums, int turn, uint32_t right)
    {
#pragma unroll
        for (int step = 0; step < batch; step++)
            multiply_step<TILE>(sums, turn, step, right);
        kg_wgmma_commit();
    }
    KG_METHOD void multiply_all(kg_tall_sums<Block> &sums, int turn, uint32_t right)
    {
#pragma unroll
        for (int step = 0; step < batch; step++) {
            multiply_step<0>(sums, turn, step, right);
            if constexpr (Block::m_tiles > 1)
                multiply_step<1>(sums, turn, step, right);
        }
        kg_wgmma_commit();
    }

    // Batches FIRST to LAST of a unit, or of the next one where they are beyond `count`. While the
    // products of a batch are computed, the next one's weights are converted, in registers that the
    // batch before has read, and those of the batch after it are read: behind the end of the piece,
    // these are of no use. Between two runs, the sums of either instruction are scaled while the
    // other one's products are computed; after the LAST_OF_PIECE they are not.
    template <int FIRST, int LAST, bool LAST_OF_PIECE>
    KG_METHOD void multiply_batches(kg_tall_sums<Block> &sums)
    {
#pragma unroll
        for (int number = FIRST; number < LAST; number++) {
            const int of_stage = number % batches, turn = number % 2;
            const bool is_last = LAST_OF_PIECE && number == LAST - 1;
            const bool begins = Block::scales_sums && number % run == 0 && number > 0;
            const bool ends = Block::has_runs && (number + 1) % run == 0 && !is_last;
            const bool waits_for_all = Block::m_tiles == 1 || (middle == 0 && number == LAST - 1);
            const uint32_t right = kg_wgmma_shared_tile(stage, 16) + of_stage * batch * 32 / 16;
            const int here = k;
            if (of_stage == batches - 2) {
                const bool is_last_of_unit = number / batches % own == own - 1;
                pass<1>();
                if (others > 0 && is_last_of_unit)
                    pass<others>();
                find_ahead();
            }
            kg_wgmma_begin();
            if constexpr (groups == 1) {
                multiply_all(sums, turn, right);
            } else {
                multiply<0>(sums, turn, right);
                if (begins) {
                    kg_wgmma_wait<1>();
                    scale<1>(sums);
                    kg_wgmma_begin();
                }
                multiply<1>(sums, turn, right);
            }
            if (of_stage == 0)
                rows.add(stage);
            if (of_stage == batches - 2)
                await_ahead();
            if (ends && of_stage == batches - 1)
                take(ahead, k, 0, to_come > 0);
            else if (ends)
                take(stage, here + (of_stage + 1) * batch * 16, (of_stage + 1) * batch * 16);
            load(turn, of_stage + 2 < batches ? stage : ahead, (of_stage + 2) % batches);
            kg_wgmma_wait<groups>();
            if (of_stage == 0)
                release();
            convert(1 - turn, (of_stage + 1) % batches);
            if (of_stage == batches - 2)
                load_stage(ahead);
            if (ends)
                rows.finish(of_stage * batch * 16 / Block::run);
            if (Block::scales_sums && ends && waits_for_all) {
                kg_wgmma_wait<0>();
                scale<0>(sums);
                if constexpr (Block::m_tiles > 1)
                    scale<1>(sums);
            } else if (Block::scales_sums && ends) {
                kg_wgmma_wait<1>();
                scale<0>(sums);
            }
            if (of_stage == batches - 1) {
                before = empty;
                empty = at.empty();
                stage = ahead;
            }
        }
    }
    // All units. Where a run ends within what a loop repeats, compilers see that only one of the
    // products is waited for; otherwise they would serialise all.
    KG_METHOD void multiply_units(kg_tall_sums<Block> &sums, int units)
    {
        multiply_batches<0, middle, false>(sums);
#pragma unroll 1
        for (; units > Block::scales_sums; units--)
            multiply_batches<middle, middle + count, false>(sums);
        if constexpr (Block::scales_sums)
            multiply_batches<middle, count, true>(sums);
    }
};

// The sums of a team's units of a piece, whose stages begin at `at`.
template <class Block, class WEIGHTS>
KG_INLINE void kg_tall_consume(kg_tall_sums<Block> &sums, kg_tall_lane<Block, WEIGHTS> &lane,
                               kg_tall_row_sums<Block, WEIGHTS::HAS_OFFSET> &rows,
                               kg_tall_place<Block> at, const kg_tall_shared &shared,
                               const kg_tall_piece &piece, int team)
{
    const int units = piece.until - piece.first - team;
    sums.clear();
    if (units <= 0)
        return;
    kg_tall_loop<Block, WEIGHTS> loop(shared, at, lane, rows, piece, team);
    sums.settle_all();
    loop.multiply_units(sums, (units + Block::teams - 1) / Block::teams);
    rows.finish(Block::depth / Block::run - 1);
    kg_wgmma_wait<0>();
    sums.settle_all();
    loop.release();
    float factors[Block::of_lane];
#pragma unroll
    for (int i = 0; i < Block::of_lane; i++)
        factors[i] = lane.factor(i);
    if constexpr (!Block::rounds || Block::number::lowered != 1)
        sums.scale_all(factors);
    if constexpr (!Block::rounds && Block::number::lowered != 1) {
#pragma unroll
        for (int i = 0; i < Block::of_lane; i++)
            factors[i] = Block::number::lowered;
        sums.scale_all(factors);
    }
    if constexpr (!Block::rounds && WEIGHTS::HAS_OFFSET) {
#pragma unroll
        for (int i = 0; i < Block::of_lane; i++)
            factors[i] = 1;
        sums.template scale_and_add<0>(factors, lane.offset, rows.latest);
        if constexpr (Block::m_tiles > 1)
            sums.template scale_and_add<1>(factors, lane.offset, rows.latest);
    }
}
