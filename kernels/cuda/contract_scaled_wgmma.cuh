// A product with an operand of quantised weights, on the tensor cores of sm_90a. A producer loads
// both operands into a ring of stages in shared memory: rows (tokens) as they are, weights as
// packed integers, with their scales and zero points. Warp groups, the consumers, read weights from
// there, make exact 16-bit numbers of them in registers and multiply these by wgmma, as its left
// operand. Weights are 256, 128 or 64 columns of a tile, so that few rows cost little.
//
// Sums are kept in units of the scale of their column. Where a run of K steps begins that has other
// scales, they are multiplied by the old scale over the new one: two more roundings in f32 for each
// run, and half the registers of separate sums for each run. At the end they are multiplied by the
// latest scale. Where the formula rounds weights to 16 bits once they are scaled, they are scaled
// as they are converted, and sums are left alone. That is faster: instructions that an SM issues
// while wgmma runs lengthen it (docs/measured.md), and there are fewer of these.
//
// A consumer has 128 columns, a warp 32 of these. Lane 4 * r + t has the four from 4 * r on, which
// are a word of weights at one K index, or half of one: in the two instructions of a K step they
// are rows r and r + 8 of the warp's 16. Of packed weights, docs/packed.md, an instruction has a
// panel of each warp, and the lane columns 2 * r and 2 * r + 1 of both. Tiles of 128 columns have
// one instruction in a K step, with two columns of a lane: their rows may be twice as many, so that
// weights are converted for more products. (The weights are the struct of contract_scaled.cuh.)
//
// A team of consumers has all columns of a tile: two warp groups or, of 64 columns, one. With few
// rows a block has two teams, so that one converts while the other one waits. They take units of K
// steps by turns, and in the end each has the sums of both in half of the rows.
//
// K steps are divided evenly among the blocks by stream-K: those of a tile store partial tiles, and
// the last of them adds up. Or a tile is cut into slices of K for blocks side by side: each of them
// stores its partial tile, and adds up a part of all.
//
// BUFFERED tiles are stored through shared memory, from where TMA stores a tile while the next one
// is multiplied.

// What becomes of a consumer's sums of a piece. `place`: the lane's first column among the
// consumer's.
template <class Block, class JOB, class WORK>
KG_INLINE void kg_tall_conclude(const JOB &job, const WORK &work, kg_tall_sums<Block> &sums,
                                const kg_tall_piece &piece, int64_t column, int place, int consumer,
                                const kg_tall_shared &shared, const kg_tensor_map *out,
                                char *scratch)
{
    if constexpr (Block::slices > 1) {
        if (work.slices > 1) {
            kg_tall_finish_slice<Block>(job, sums, piece.task, column, scratch, shared,
                                        piece.tile * work.slices, work.slices, consumer);
            return;
        }
    }
    if constexpr (Block::stream_k) {
        if (piece.until < work.units) {
            kg_tall_store_partial<Block>(sums, scratch, consumer);
            return;
        }
        if (piece.first > 0)
            kg_tall_add_partials<Block>(sums, scratch,
                                        kg_stream_k_block(&work.stream_k, piece.tile * work.units),
                                        consumer);
    }
    if constexpr (Block::buffered)
        kg_tall_finish_buffered<Block>(job, sums, piece.task, column, place, consumer,
                                       shared.buffer, out);
    else
        kg_tall_finish<Block>(job, sums, piece.task, column);
}

template <class Block, class JOB, class WEIGHTS>
KG_INLINE void kg_tall_consumer(const JOB &job, const WEIGHTS &weights,
                                const kg_tall_shared &shared, kg_tall_work<Block> work,
                                const kg_tensor_map *out, char *scratch)
{
    const int number = kg_warp_number() / 4 - 1;
    const int team = number / Block::consumers, consumer = number % Block::consumers;
    const int thread = threadIdx.x % 128;
    const int place =
        Block::panels ? thread / 32 * 16 * Block::m_tiles + thread % 32 / 4 * 2 : thread / 4 * 4;
    const int column = consumer * (Block::columns / Block::consumers) + place;
    kg_tall_place<Block> at(shared);
    kg_tall_row_sums<Block, WEIGHTS::HAS_OFFSET> rows(shared, number);
    for (; work.is_left(); work.next()) {
        kg_tall_piece piece = work.piece;
        kg_tall_lane<Block, WEIGHTS> lane(weights, piece.task, column, job.columns());
        kg_tall_sums<Block> total;
        kg_tall_consume<Block>(total, lane, rows, at, shared, piece, team);
        at.skip((piece.until - piece.first) * (Block::unit / Block::depth));
        if constexpr (Block::teams > 1) {
            typedef kg_tall_share<Block> share;
            kg_tall_sums<share> mine;
            kg_tall_add_teams<Block>(mine, total, shared.exchange, team, consumer);
            piece.task.row += team * (Block::rows - share::rows);
            if (number < share::consumers)
                kg_tall_conclude<share>(job, work, mine, piece, lane.column, place, number, shared,
                                        out, scratch);
        } else {
            kg_tall_conclude<Block>(job, work, total, piece, lane.column, place, consumer, shared,
                                    out, scratch);
        }
    }
    if constexpr (Block::buffered)
        kg_tiles_stored<0>();
}

// Those of all stages, by one thread.
template <class Block>
KG_INLINE void kg_tall_make_barriers(uint64_t *barriers, int arrivals)
{
#pragma unroll
    for (int stage = 0; stage < Block::stages; stage++)
        kg_tiles_barrier(&barriers[stage], arrivals);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Any number of blocks of 128 threads for the producer and for each consumer.
template <class Block, class JOB, class WEIGHTS>
KG_INLINE void kg_contract_scaled_wgmma(const JOB &job, const WEIGHTS &weights,
                                        const kg_tall_maps &maps, char *scratch)
{
    extern __shared__ char kg_tall_ring[];
    const kg_tall_shared shared = kg_tall_shared_of<Block>(kg_tall_ring);
    constexpr bool is_crowded = Block::teams * Block::consumers > 2; // registers are scarce
    const int warp = kg_warp_number();
    const bool copies_words = !Block::panels && !kg_map_is_there(*maps.weights);
    const bool copies_zeros = Block::stages_zeros && !copies_words && !kg_map_is_there(*maps.zeros);
    if (threadIdx.x == 32) {
        kg_tall_expect_maps(maps);
    } else if (threadIdx.x == 64) {
        kg_tall_make_barriers<Block>(shared.full, copies_words   ? 1 + 128
                                                  : copies_zeros ? 1 + 32
                                                                 : 1);
    } else if (threadIdx.x == 96) {
        kg_tall_make_barriers<Block>(shared.empty, Block::consumers * 4);
    }
    kg_tall_work<Block> work(job);
    work.settle();
    if (warp < 4) {
        // Before threads meet: the first load waits for that.
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(is_crowded ? 32 : 40));
        __syncthreads();
        kg_wait_before();
        if (copies_words)
            kg_tall_produce_words<Block>(job, weights, maps, shared, work);
        else if (warp == 0 && kg_is_elected())
            kg_tall_produce<Block, WEIGHTS>(job, maps, shared, work);
        else if (warp == 1 && copies_zeros)
            kg_tall_produce_zeros<Block>(job, weights, shared, work);
    } else {
        __syncthreads();
        kg_wait_before();
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(is_crowded ? 112 : 232));
        kg_tall_consumer<Block>(job, weights, shared, work, maps.out, scratch);
    }
}
