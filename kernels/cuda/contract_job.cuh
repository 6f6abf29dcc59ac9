// What the forms of the contract family share. A *job* is a struct that follows in the generated
// file: the sizes of a product, the values of its operands and its epilogue. It has
//
// - compute, element_a, element_b, out: the types of accumulators, operand elements and outputs
// - PLAIN_A, PLAIN_B: the operand is an array, and a_at(), b_at() point into it
// - K_MAJOR_A, K_MAJOR_B: elements adjacent along K are adjacent in memory
// - USES_POSITION: value() uses the indices of an element, or stores other outputs
// - PER_ROW, PER_COLUMN: row_values, column_values have members; PER_ELEMENT: element_at() points
//   at something
// - batches(), rows(), columns(), depth(): the sizes; several axes of a kind count as one
// - a(item, row, step), b(item, step, column): an operand's value; `item` is the batch index,
//   `step` the K index
// - row_values, column_values: what the epilogue reads per row and per column; load_row(item, row)
//   and load_column(item, column) load it, prefetch_row() and prefetch_column() prefetch it to the
//   L2
// - element_at(item, row, column): the address of the 16-bit value that the epilogue reads per
//   element; elements_in_pairs(): those of two adjacent columns, starting at an even one, can be
//   read as one word
// - value(item, row, column, total), also with the loaded values of all three kinds: the output
//   element; stores other outputs of the epilogue
// - out_at(item, row, column): the address of the output element; HAS_STRIDES_OUT: rows have one
//   stride there, and so have columns
// - store(item, row, column, element)
//
// and, for operands that are arrays,
//
// - a_at(item, row, step), b_at(item, step, column): the address of an element
// - a_k_offset(step), b_k_offset(step): its offset from the element of step 0
// - widen_a(element), widen_b(element): its value
//
// The caller keeps indices within the sizes. Addresses are linear beyond them if they are linear
// within.

#define KG_METHOD __device__ __forceinline__

template <bool FLAG, class FIRST, class SECOND>
struct kg_select_type {
    using type = FIRST;
};
template <class FIRST, class SECOND>
struct kg_select_type<false, FIRST, SECOND> {
    using type = SECOND;
};
template <bool FLAG, class FIRST, class SECOND>
using kg_either = typename kg_select_type<FLAG, FIRST, SECOND>::type;

// Prefetches a line to the L2.
KG_INLINE void kg_prefetch_l2(const void *place)
{
    asm volatile("prefetch.L2 [%0];" ::"l"(place));
}

// The transposed job: its rows are the columns of the other one.
template <class JOB>
struct kg_swapped {
    using compute = typename JOB::compute;
    using element_a = typename JOB::element_b;
    using element_b = typename JOB::element_a;
    using out = typename JOB::out;
    enum : bool { PLAIN_A = JOB::PLAIN_B, PLAIN_B = JOB::PLAIN_A };
    enum : bool {
        K_MAJOR_A = JOB::K_MAJOR_B,
        K_MAJOR_B = JOB::K_MAJOR_A,
        USES_POSITION = JOB::USES_POSITION,
        HAS_STRIDES_OUT = JOB::HAS_STRIDES_OUT
    };
    enum : bool {
        PER_ROW = JOB::PER_COLUMN,
        PER_COLUMN = JOB::PER_ROW,
        PER_ELEMENT = JOB::PER_ELEMENT
    };
    using row_values = typename JOB::column_values;
    using column_values = typename JOB::row_values;
    JOB job;
    KG_METHOD int64_t batches() const
    {
        return job.batches();
    }
    KG_METHOD int64_t rows() const
    {
        return job.columns();
    }
    KG_METHOD int64_t columns() const
    {
        return job.rows();
    }
    KG_METHOD int64_t depth() const
    {
        return job.depth();
    }
    KG_METHOD compute a(int64_t item, int64_t row, int64_t step) const
    {
        return job.b(item, step, row);
    }
    KG_METHOD compute b(int64_t item, int64_t step, int64_t column) const
    {
        return job.a(item, column, step);
    }
    KG_METHOD const element_a *a_at(int64_t item, int64_t row, int64_t step) const
    {
        return job.b_at(item, step, row);
    }
    KG_METHOD const element_b *b_at(int64_t item, int64_t step, int64_t column) const
    {
        return job.a_at(item, column, step);
    }
    KG_METHOD int64_t a_k_offset(int64_t step) const
    {
        return job.b_k_offset(step);
    }
    KG_METHOD int64_t b_k_offset(int64_t step) const
    {
        return job.a_k_offset(step);
    }
    KG_METHOD compute widen_a(element_a element) const
    {
        return job.widen_b(element);
    }
    KG_METHOD compute widen_b(element_b element) const
    {
        return job.widen_a(element);
    }
    KG_METHOD out value(int64_t item, int64_t row, int64_t column, compute total) const
    {
        return job.value(item, column, row, total);
    }
    KG_METHOD out value(int64_t item, int64_t row, int64_t column, compute total,
                        const row_values &in_row, const column_values &in_column,
                        uint16_t in_element) const
    {
        return job.value(item, column, row, total, in_column, in_row, in_element);
    }
    KG_METHOD const uint16_t *element_at(int64_t item, int64_t row, int64_t column) const
    {
        return job.element_at(item, column, row);
    }
    KG_METHOD bool elements_in_pairs() const
    {
        return false;
    }
    KG_METHOD row_values load_row(int64_t item, int64_t row) const
    {
        return job.load_column(item, row);
    }
    KG_METHOD column_values load_column(int64_t item, int64_t column) const
    {
        return job.load_row(item, column);
    }
    KG_METHOD void prefetch_row(int64_t item, int64_t row) const
    {
        job.prefetch_column(item, row);
    }
    KG_METHOD void prefetch_column(int64_t item, int64_t column) const
    {
        job.prefetch_row(item, column);
    }
    KG_METHOD out *out_at(int64_t item, int64_t row, int64_t column) const
    {
        return job.out_at(item, column, row);
    }
    KG_METHOD void store(int64_t item, int64_t row, int64_t column, out element) const
    {
        job.store(item, column, row, element);
    }
};

// The position of tile `rest` in a grid of `tall` x `wide` tiles. Tiles are visited in bands of
// GROUP tiles, so that blocks that run at once share both operands in the L2. ORDER 0: along M
// first within a band, 1: along N first.
template <int ORDER, int GROUP, class INDEX>
KG_INLINE void kg_tile_place(INDEX rest, INDEX tall, INDEX wide, INDEX *row, INDEX *column)
{
    const INDEX across = ORDER == 0 ? wide : tall, deep = ORDER == 0 ? tall : wide;
    INDEX band = 0, far = rest;
    if (deep > GROUP) {
        band = rest;
        far = kg_take(&band, GROUP * across);
    }
    const INDEX limit = GROUP < deep - band * GROUP ? GROUP : deep - band * GROUP;
    const INDEX near = kg_take(&far, limit);
    *row = ORDER == 0 ? band * GROUP + near : far;
    *column = ORDER == 0 ? far : band * GROUP + near;
}

// The K steps [from, to) of a split-K slice. Slices are whole multiples of UNIT steps, except the
// last ones, which may be shorter or empty.
template <int UNIT>
KG_INLINE void kg_slice_steps(int64_t depth, int64_t splits, int64_t slice, int64_t *from,
                              int64_t *to)
{
    const int64_t length = kg_ceildiv_i64(kg_ceildiv_i64(depth, UNIT), splits) * UNIT;
    *from = kg_min_i64(slice * length, depth);
    *to = kg_min_i64(*from + length, depth);
}

// Finishes an element: runs the epilogue, or, with split-K, stores the partial sum in `scratch` for
// kg_contract_fold.
template <int SPLIT, class JOB>
KG_INLINE void kg_contract_finish(const JOB &job, char *scratch, int64_t slice, int64_t item,
                                  int64_t row, int64_t column, typename JOB::compute total)
{
    if constexpr (SPLIT == 1)
        job.store(item, row, column, job.value(item, row, column, total));
    else
        reinterpret_cast<typename JOB::compute *>(
            scratch)[((slice * job.batches() + item) * job.rows() + row) * job.columns() + column] =
            total;
}

// Adds the partial sums of SPLIT slices, which are `step` elements apart, in a fixed order. Loads
// are issued in batches, because few threads hide their latency.
template <int SPLIT, class T>
KG_INLINE T kg_fold_slices(const T *partial, int64_t step)
{
    constexpr int limit = 256 / sizeof(T), batch = SPLIT < limit ? SPLIT : limit;
    T total = 0;
#pragma unroll 1
    for (int first = 0; first < SPLIT; first += batch) {
        T values[batch];
#pragma unroll
        for (int i = 0; i < batch; i++)
            values[i] = SPLIT % batch == 0 || first + i < SPLIT ? partial[(first + i) * step] : T();
#pragma unroll
        for (int i = 0; i < batch; i++)
            total += values[i];
    }
    return total;
}

template <int SPLIT, class JOB>
KG_INLINE void kg_contract_fold(const JOB &job, const char *scratch)
{
    using compute = typename JOB::compute;
    const compute *partials = reinterpret_cast<const compute *>(scratch);
    const int64_t outputs = job.batches() * job.rows() * job.columns();
    for (int64_t output = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; output < outputs;
         output += (int64_t)gridDim.x * blockDim.x) {
        const compute total = kg_fold_slices<SPLIT>(partials + output, outputs);
        int64_t item = output;
        const int64_t column = kg_take(&item, job.columns()), row = kg_take(&item, job.rows());
        job.store(item, row, column, job.value(item, row, column, total));
    }
}
