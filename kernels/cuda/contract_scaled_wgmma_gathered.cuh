// The producer of contract_scaled_wgmma_feed.cuh for weights of which each item of the batch
// chooses one matrix by an index from memory. The maps of weights, scales, zero points and offsets
// have all matrices, the one of rows has what the batch moves them by.
//
// A gathered job is a job with
// - rows_box(item), weights_box(item): the last coordinate of an item's boxes in these maps

template <class JOB>
struct kg_gathered : JOB {
};

// An overload for gathered jobs.
template <class Block, class WEIGHTS, class JOB>
KG_INLINE void kg_tall_produce(const kg_gathered<JOB> &job, const kg_tall_maps &maps,
                               const kg_tall_shared &shared)
{
    kg_tall_place<Block> at(shared);
    for (kg_tall_work<Block> work(job); work.is_left(); work.next()) {
        const kg_tall_piece piece = work.piece(job.depth());
        const int lines = (int)kg_min_i64(job.rows() - piece.task.row, Block::rows);
        const int column = (int)piece.task.column, chosen = job.weights_box(piece.task.item);
        const int item = job.rows_box(piece.task.item);
#pragma unroll 1
        for (int k = piece.first * Block::unit; k < piece.until * Block::unit;
             k += Block::depth, at.next()) {
            char *to = shared.ring + at.number() * Block::stage_bytes;
            uint64_t *full = &shared.full[at.number()];
            kg_tiles_wait(at.empty(), at.odd ^ 1);
            kg_tall_expect<Block>(full, maps, lines);
            kg_tall_copy_weights<Block>(to + Block::row_bytes, maps.weights, full, column, k,
                                        chosen);
            kg_tall_load_zeros<Block, WEIGHTS>(to, maps, full, column, k, chosen);
            if constexpr (Block::staged)
                kg_tiles_copy<false>(to + Block::scales_at, maps.scales, full, column,
                                     k / Block::group, chosen, 0);
            if constexpr (Block::stages_offsets)
                kg_tiles_copy<false>(to + Block::offsets_at, maps.offsets, full, column,
                                     k / Block::group, chosen, 0);
            kg_tiles_copy<false>(to, lines < Block::rows ? maps.last : maps.rows, full, k,
                                 (int)piece.task.row, item, 0);
        }
    }
}

// Words of gathered weights are never copied: TMA loads them, or another function multiplies.
template <class Block, class JOB, class WEIGHTS>
KG_INLINE void kg_tall_produce_words(const kg_gathered<JOB> &, const WEIGHTS &,
                                     const kg_tall_maps &, const kg_tall_shared &)
{
}
