// What the producer of contract_scaled_wgmma_feed.cuh needs for weights of which each item of the
// batch chooses one matrix by an index from memory. The maps of weights, scales, zero points and
// offsets have all matrices, the one of rows has what the batch moves them by.
//
// A gathered job is a job with
// - rows_box(item), weights_box(item): the last coordinate of an item's boxes in these maps

template <class JOB>
struct kg_gathered : JOB {
};

template <class JOB>
KG_INLINE int kg_tall_rows_box(const kg_gathered<JOB> &job, int64_t item)
{
    return job.rows_box(item);
}

template <class JOB>
KG_INLINE int kg_tall_weights_box(const kg_gathered<JOB> &job, int64_t item)
{
    return job.weights_box(item);
}

// Words of gathered weights are never copied: TMA loads them, or another function multiplies.
template <class Block, class JOB, class WEIGHTS>
KG_INLINE void kg_tall_produce_words(const kg_gathered<JOB> &, const WEIGHTS &,
                                     const kg_tall_maps &, const kg_tall_shared &,
                                     const kg_tall_work<Block> &)
{
}
