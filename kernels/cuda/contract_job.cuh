// What the forms of the contract family share. A *job* is the struct that stands behind this text
// in a generated file: the sizes of a product, the values of its sides, and what becomes of a sum.
// Of it there are
//
// - compute, side_a, side_b, out: the types of sums, and of elements of the sides and the output
// - PLAIN_A, PLAIN_B: the side is an array, at a_at(), b_at(), as it stands
// - ALONG_A, ALONG_B: its neighbours in memory are neighbours along the sum
// - POINTED: value() looks at where it is, or stores something
// - BY_ROW, BY_COLUMN: of_row, of_column have members; BY_SUM: sum_at is somewhere
// - batches() rows() columns() depth(): how many; several axes of a kind are counted as one
// - a(item, row, step), b(item, step, column): a value of a side
// - of_row, of_column: what all of a row, or of a column, have in common behind the product, as
//   at_row(item, row), at_column(item, column) read it; expect_row(), expect_column() announce that
// - sum_at(item, row, column): where what a sum alone has is, two bytes; sums_in_pairs(): those of
//   two neighbouring columns, the even one first, may be read at once
// - value(item, row, column, total), and with what was read before of all three: the output's
//   element; stores what else comes of it
// - out_at(item, row, column): where that element is
// - store(item, row, column, element)
//
// and of plain sides only
//
// - a_at(item, row, step), b_at(item, step, column): where an element is
// - a_along(step), b_along(step): how many elements further than step 0 that is
// - widen_a(element), widen_b(element): its value
//
// Whoever calls them stays inside the sizes; places are linear beyond them where they are inside.

#define KG_METHOD __device__ __forceinline__

template <bool CHOICE, class FIRST, class SECOND>
struct kg_choice {
    using type = FIRST;
};
template <class FIRST, class SECOND>
struct kg_choice<false, FIRST, SECOND> {
    using type = SECOND;
};
template <bool CHOICE, class FIRST, class SECOND>
using kg_either = typename kg_choice<CHOICE, FIRST, SECOND>::type;

// What is there will be read soon: into the L2.
KG_INLINE void kg_expect(const void *place)
{
    asm volatile("prefetch.L2 [%0];" ::"l"(place));
}

// The transposed product: rows are the other job's columns.
template <class JOB>
struct kg_swapped {
    using compute = typename JOB::compute;
    using side_a = typename JOB::side_b;
    using side_b = typename JOB::side_a;
    using out = typename JOB::out;
    enum : bool { PLAIN_A = JOB::PLAIN_B, PLAIN_B = JOB::PLAIN_A };
    enum : bool { ALONG_A = JOB::ALONG_B, ALONG_B = JOB::ALONG_A, POINTED = JOB::POINTED };
    enum : bool { BY_ROW = JOB::BY_COLUMN, BY_COLUMN = JOB::BY_ROW, BY_SUM = JOB::BY_SUM };
    using of_row = typename JOB::of_column;
    using of_column = typename JOB::of_row;
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
    KG_METHOD const side_a *a_at(int64_t item, int64_t row, int64_t step) const
    {
        return job.b_at(item, step, row);
    }
    KG_METHOD const side_b *b_at(int64_t item, int64_t step, int64_t column) const
    {
        return job.a_at(item, column, step);
    }
    KG_METHOD int64_t a_along(int64_t step) const
    {
        return job.b_along(step);
    }
    KG_METHOD int64_t b_along(int64_t step) const
    {
        return job.a_along(step);
    }
    KG_METHOD compute widen_a(side_a element) const
    {
        return job.widen_b(element);
    }
    KG_METHOD compute widen_b(side_b element) const
    {
        return job.widen_a(element);
    }
    KG_METHOD out value(int64_t item, int64_t row, int64_t column, compute total) const
    {
        return job.value(item, column, row, total);
    }
    KG_METHOD out value(int64_t item, int64_t row, int64_t column, compute total,
                        const of_row &in_row, const of_column &in_column, uint16_t in_sum) const
    {
        return job.value(item, column, row, total, in_column, in_row, in_sum);
    }
    KG_METHOD const uint16_t *sum_at(int64_t item, int64_t row, int64_t column) const
    {
        return job.sum_at(item, column, row);
    }
    KG_METHOD bool sums_in_pairs() const
    {
        return false;
    }
    KG_METHOD of_row at_row(int64_t item, int64_t row) const
    {
        return job.at_column(item, row);
    }
    KG_METHOD of_column at_column(int64_t item, int64_t column) const
    {
        return job.at_row(item, column);
    }
    KG_METHOD void expect_row(int64_t item, int64_t row) const
    {
        job.expect_column(item, row);
    }
    KG_METHOD void expect_column(int64_t item, int64_t column) const
    {
        job.expect_row(item, column);
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

// Which tile number `rest` is, of `tall` x `wide` ones: bands of GROUP tiles are gone through one
// after the other, so that what runs at once shares both sides. ORDER 0: down a column of the band
// first, 1: along a row.
template <int ORDER, int GROUP>
KG_INLINE void kg_tile_place(int64_t rest, int64_t tall, int64_t wide, int64_t *row,
                             int64_t *column)
{
    const int64_t across = ORDER == 0 ? wide : tall, deep = ORDER == 0 ? tall : wide;
    int64_t band = rest;
    const int64_t inside = kg_take(&band, GROUP * across);
    const int64_t most = kg_min_i64(GROUP, deep - band * GROUP);
    int64_t far = inside;
    const int64_t near = kg_take(&far, most);
    *row = ORDER == 0 ? band * GROUP + near : far;
    *column = ORDER == 0 ? far : band * GROUP + near;
}

// The steps [from, to) of a piece of the sum: pieces are whole multiples of UNIT steps but the last
// ones, which may have none.
template <int UNIT>
KG_INLINE void kg_piece_steps(int64_t depth, int64_t pieces, int64_t piece, int64_t *from,
                              int64_t *to)
{
    const int64_t length = kg_ceildiv_i64(kg_ceildiv_i64(depth, UNIT), pieces) * UNIT;
    *from = kg_min_i64(piece * length, depth);
    *to = kg_min_i64(*from + length, depth);
}

// What becomes of a piece's sum: the last of it, if there is one piece; else it waits in `scratch`
// for kg_contract_fold.
template <int PIECES, class JOB>
KG_INLINE void kg_contract_finish(const JOB &job, char *scratch, int64_t piece, int64_t item,
                                  int64_t row, int64_t column, typename JOB::compute total)
{
    if constexpr (PIECES == 1)
        job.store(item, row, column, job.value(item, row, column, total));
    else
        reinterpret_cast<typename JOB::compute *>(
            scratch)[((piece * job.batches() + item) * job.rows() + row) * job.columns() + column] =
            total;
}

// What PIECES pieces have of a sum, `step` elements apart, in their order: the same in every run.
// They are read together, since there are few threads to wait for them.
template <int PIECES, class T>
KG_INLINE T kg_fold_pieces(const T *partial, int64_t step)
{
    constexpr int most = 256 / sizeof(T), batch = PIECES < most ? PIECES : most;
    T total = 0;
#pragma unroll 1
    for (int first = 0; first < PIECES; first += batch) {
        T parts[batch];
#pragma unroll
        for (int i = 0; i < batch; i++)
            parts[i] =
                PIECES % batch == 0 || first + i < PIECES ? partial[(first + i) * step] : T();
#pragma unroll
        for (int i = 0; i < batch; i++)
            total += parts[i];
    }
    return total;
}

template <int PIECES, class JOB>
KG_INLINE void kg_contract_fold(const JOB &job, const char *scratch)
{
    using compute = typename JOB::compute;
    const compute *partials = reinterpret_cast<const compute *>(scratch);
    const int64_t outputs = job.batches() * job.rows() * job.columns();
    for (int64_t output = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; output < outputs;
         output += (int64_t)gridDim.x * blockDim.x) {
        const compute total = kg_fold_pieces<PIECES>(partials + output, outputs);
        int64_t item = output;
        const int64_t column = kg_take(&item, job.columns()), row = kg_take(&item, job.rows());
        job.store(item, row, column, job.value(item, row, column, total));
    }
}
