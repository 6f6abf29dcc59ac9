// What the files of the reduce family for CUDA share: cuda_reduce.c says what can be done,
// cuda_reduce_rule.c what should be, cuda_reduce_streams.c what is read in vectors;
// cuda_reduce_emit.c writes, with cuda_reduce_part.c.

#ifndef KG_GEN_CUDA_REDUCE_H
#define KG_GEN_CUDA_REDUCE_H

#include "gen/cuda/cuda_memory_times.h"
#include "gen/shared/axes.h"
#include "gen/shared/fold.h"
#include "gen/shared/reduce_plan.h"

struct kg_cuda_reduce_plan {
    const struct kg_group *group;
    const struct kg_nest *nest; // the reduction
    const char *entry;
    struct kg_fold fold;
    int k;       // its position in the group
    int outputs; // number of output axes
    bool column; // vectors follow output axes
    bool joined; // and a tile may have columns of several outer indices, one after another
    int run;     // first axis of the run that vectors follow, counted as one
    int last;    // last axis of that run
    // By position, the reduction included: whether the statement is read at axes of the reduction
    // only, all of them, in one order; then, by its own axis, which of them it is.
    bool in_place[KG_MAX_NESTS];
    int8_t axis_of[KG_MAX_NESTS][KG_MAX_INDICES];
    int threads;   // of a block
    int vector;    // elements of a thread's vectors
    int unroll;    // vectors that a thread loads before it computes
    int split;     // blocks that share an output; more than one: their results are folded last
    bool cluster;  // they are a cluster and do so themselves
    bool evict;    // what is reduced is loaded with evict_first, so other data stays in the L2
    int registers; // at most; 0: as many as the compiler likes
};

// Parameters of a config, and values of the first.
enum { ALONG_ROWS, ALONG_COLUMNS, ALONG_JOINED };
enum { COLUMN, THREADS, VECTOR, UNROLL, SPLIT, CLUSTER, EVICT, REGISTERS };
// Values of SPLIT, from the least to the most.
enum { KG_CUDA_REDUCE_SPLITS = 14 };
extern const int64_t kg_cuda_reduce_splits[KG_CUDA_REDUCE_SPLITS];

void kg_cuda_reduce_plan_make(const struct kg_match *match, const struct kg_config *config,
                              struct kg_cuda_reduce_plan *plan);
// The config that the rule chooses.
void kg_cuda_reduce_guess(const struct kg_match *match, struct kg_config *config);
// The constants by which the config's time is expected.
const struct kg_cuda_memory_times *kg_cuda_reduce_times_of(const struct kg_match *match,
                                                           const struct kg_config *config);
// Does less memory traffic come of vectors along the outputs?
bool kg_cuda_reduce_prefers_columns(const struct kg_match *match);

// The product of extents of the axes [first, last]; outputs, and elements reduced for each.
int64_t kg_cuda_reduce_extent(const struct kg_nest *nest, int first, int last);
int64_t kg_cuda_reduce_outputs(const struct kg_cuda_reduce_plan *plan);
int64_t kg_cuda_reduce_elements_of_output(const struct kg_cuda_reduce_plan *plan);
// Of the tensors that are read in vectors, the widest element and all of them together, in bytes.
void kg_cuda_reduce_elements(const struct kg_cuda_reduce_plan *plan, int *widest, int *together);
// Bytes of a total, with what stands beside it.
int kg_cuda_reduce_fold_bytes(const struct kg_fold *fold);
// Columns that are divided into tiles: of one outer index, or of all if they are joined.
int64_t kg_cuda_reduce_columns(const struct kg_cuda_reduce_plan *plan);
// The threads of a block along the columns, and the groups of them.
void kg_cuda_reduce_shape(const struct kg_cuda_reduce_plan *plan, int64_t *wide, int64_t *groups);
// Blocks that need not share an output, and parts that those who share one can take.
void kg_cuda_reduce_count(const struct kg_cuda_reduce_plan *plan, int64_t *blocks, int64_t *parts);

// Elements between those of neighbouring threads, as they read, in the mean of all reads; 16 at
// most.
double kg_cuda_reduce_apart(const struct kg_cuda_reduce_plan *plan);

// What the statement at `position`, which is in place, calls the reduction's axis.
int kg_cuda_reduce_axis(const struct kg_cuda_reduce_plan *plan, int position, int axis);
// Whether the access of that statement is a vector along the plan's run.
bool kg_cuda_reduce_walks(const struct kg_cuda_reduce_plan *plan, int position,
                          const struct kg_access *access);
// Whether two such accesses read the same elements.
bool kg_cuda_reduce_same(const struct kg_cuda_reduce_plan *plan, int a,
                         const struct kg_access *of_a, int b, const struct kg_access *of_b);

// A tensor that is read in vectors, once for all its readers.
struct kg_cuda_reduce_stream {
    int position; // of the statement that reads it
    const struct kg_access *access;
};

#define KG_CUDA_REDUCE_STREAMS 24
struct kg_cuda_reduce_streams {
    int count;
    struct kg_cuda_reduce_stream items[KG_CUDA_REDUCE_STREAMS];
};
void kg_cuda_reduce_streams_make(const struct kg_cuda_reduce_plan *plan,
                                 struct kg_cuda_reduce_streams *streams);
// Bytes of the streams that are read once.
double kg_cuda_reduce_streamed(const struct kg_cuda_reduce_plan *plan);
// The stream of what the statement at `position`, which is in place, reads so, or -1.
int kg_cuda_reduce_find(const struct kg_cuda_reduce_plan *plan,
                        const struct kg_cuda_reduce_streams *streams, int position,
                        const struct kg_access *access);

// The bytes that tensors have to be aligned to for whole vectors; 0: their strides or sizes do not
// allow them, wherever they lie.
int kg_cuda_reduce_alignment(const struct kg_cuda_reduce_plan *plan);
// Of the `unroll` vectors, how many a thread loads at once where it takes elements one by one.
int kg_cuda_reduce_batch(const struct kg_cuda_reduce_plan *plan);

// Bytes of what blocks leave for each other of one output, at most.
#define KG_CUDA_PARTIAL_BYTES 16
// Threads of the blocks that fold them.
int kg_cuda_combine_threads(const struct kg_cuda_reduce_plan *plan);

// ---- Writing ----

struct kg_cuda_reduce_writer {
    const struct kg_cuda_reduce_plan *plan;
    struct kg_code code;
    struct kg_values values; // of the body of the reduction; `read` is kg_cuda_reduce_read
    struct kg_cuda_reduce_streams streams;
    int batch; // kg_cuda_reduce_batch
};

// Writes an element of a vector, where the access is of one: a kg_values reader, `user` the writer.
bool kg_cuda_reduce_read(void *user, struct kg_text *text, const struct kg_access *access);
// Declares `name`, the product of the extents of the axes [first, last].
void kg_cuda_reduce_product(struct kg_cuda_reduce_writer *writer, const char *name, int first,
                            int last);
// Declares the axes [first, last] that the linear counter `from` stands for.
void kg_cuda_reduce_axes(struct kg_cuda_reduce_writer *writer, int first, int last,
                         const char *from);
// What nothing gives, of the fold's type; `place` stands beside it.
void kg_cuda_reduce_neutral(struct kg_text *text, const struct kg_fold *fold, const char *place);
// Declares `total` of the thread: one, or one for each of its columns.
void kg_cuda_reduce_totals(struct kg_cuda_reduce_writer *writer);
// Of columns: where the thread found their totals, if those are of places.
void kg_cuda_reduce_places(struct kg_cuda_reduce_writer *writer);
// Adds the thread's elements of the part `part` to it.
void kg_cuda_reduce_part(struct kg_cuda_reduce_writer *writer);

// The functions of the kernel, after the opening: number 0 for whole vectors, number 1 for any,
// and, where several blocks share an output, number 2, which folds what they leave.
void kg_cuda_reduce_emit(struct kg_text *text, const struct kg_cuda_reduce_plan *plan);

#endif
