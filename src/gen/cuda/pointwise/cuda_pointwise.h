// What the files of the pointwise family for CUDA share: cuda_pointwise.c decides,
// cuda_pointwise_reads.c tells how each tensor is read, cuda_pointwise_emit.c writes, and
// cuda_pointwise_tile.c what goes through tiles.

#ifndef KG_GEN_CUDA_POINTWISE_H
#define KG_GEN_CUDA_POINTWISE_H

#include "gen/shared/code.h"
#include "gen/shared/pointwise_chain.h"

// How caches keep what is moved.
enum kg_cuda_pointwise_stream {
    KG_CUDA_POINTWISE_USUAL,
    KG_CUDA_POINTWISE_ONCE,  // as data that is not needed again
    KG_CUDA_POINTWISE_FIRST, // what is read is evicted first from the L2,
    KG_CUDA_POINTWISE_LAST   // or last
};

struct kg_cuda_pointwise_plan {
    const struct kg_group *group;
    const char *entry;
    int axes;                    // of every nest
    int run;                     // the axes [run, axes) are counted as one, the columns
    bool merged[KG_MAX_INDICES]; // this axis is part of the next one
    int threads, registers;
    int vector; // elements of a thread's vectors
    int rows;   // vectors of a thread: one below the other or, without rows, side by side
    enum kg_cuda_pointwise_stream stream;
    int tile;   // side of the tiles; 0: none
    int across; // with tiles: their other axis, with all that is merged into it
    int last;   // the length of the last axis, which is counted with the one before; 0: any
    bool flat;  // all axes are the columns, whatever is merged: no rows
};

void kg_cuda_pointwise_plan_make(const struct kg_match *match, const struct kg_config *config,
                                 struct kg_cuda_pointwise_plan *plan);

// ---- How tensors are read ----

// The other axis of tiles: some tensor follows it in memory, and moves with the columns too. -1:
// there is none.
int kg_cuda_pointwise_crossing(const struct kg_group *group);
// Whether the last two axes become one as soon as the length of the last is known: what repeats
// along it fits into each vector the same way.
bool kg_cuda_pointwise_rounds(const struct kg_group *group);
// Whether all index arithmetic is sums of axes times strides, so that where elements lie is all
// that has to fit an integer.
bool kg_cuda_pointwise_simple(const struct kg_group *group);
// The first axis whose index formulas compute with; behind the last one: none.
int kg_cuda_pointwise_first_index(const struct kg_group *group);
// Whether a group may be walked as one line of elements: the reads that do not follow it are
// made element by element, each at its own place.
bool kg_cuda_pointwise_can_be_flat(const struct kg_group *group);

// Whether there are columns alone, no rows and no tiles: then the last vector may be cut short.
bool kg_cuda_pointwise_is_line(const struct kg_cuda_pointwise_plan *plan);
// The bytes that tensors have to be aligned to for whole vectors; 0: their strides or sizes do not
// allow them, wherever they lie.
int kg_cuda_pointwise_alignment(const struct kg_cuda_pointwise_plan *plan);
// Elements of the axes up to `axis` that are counted as one.
int64_t kg_cuda_pointwise_extent(const struct kg_cuda_pointwise_plan *plan, int axis);

// A read that a thread makes before it computes.
enum kg_cuda_slot_kind {
    KG_CUDA_SLOT_ONE,    // one value
    KG_CUDA_SLOT_VECTOR, // a vector along the columns
    KG_CUDA_SLOT_ROUND,  // along the last axis: repeats within a vector
    KG_CUDA_SLOT_TILE,   // through shared memory
    KG_CUDA_SLOT_APART,  // one value for each element, wherever it lies: where columns are flat
};

struct kg_cuda_slot {
    const struct kg_nest *nest;
    const struct kg_access *access;
    enum kg_cuda_slot_kind kind;
    bool moves; // one for each vector of a thread
};

#define KG_CUDA_MOST_SLOTS 48
struct kg_cuda_slots {
    int count;
    struct kg_cuda_slot items[KG_CUDA_MOST_SLOTS];
};
void kg_cuda_pointwise_find_slots(const struct kg_cuda_pointwise_plan *plan,
                                  struct kg_cuda_slots *slots);
// Elements of an access that fills a tile in.
int kg_cuda_pointwise_piece(const struct kg_tensor *tensor);
// Bits of the dimensions that count in an offset: those of axes merged into the next do not.
unsigned kg_cuda_pointwise_dims(const struct kg_cuda_pointwise_plan *plan,
                                const struct kg_access *access);
unsigned kg_cuda_pointwise_output_dims(const struct kg_cuda_pointwise_plan *plan);

// ---- Writing ----

struct kg_cuda_pointwise_writer {
    const struct kg_cuda_pointwise_plan *plan;
    struct kg_code code;
    struct kg_emit_names names;
    const struct kg_nest *nest; // whose formula is being printed
    bool loading;               // slots are being filled: reads inside subscripts are plain loads
    bool first;                 // the last axis stands at the first element of a vector
    struct kg_cuda_slots slots;
};

void kg_cuda_pointwise_offset(struct kg_text *text, struct kg_cuda_pointwise_writer *writer,
                              const struct kg_nest *nest, const struct kg_access *access);
// The length of an axis with all that is merged into it.
void kg_cuda_pointwise_length(struct kg_text *text, const struct kg_cuda_pointwise_plan *plan,
                              int axis);
// Declares slot `i`, and fills it.
void kg_cuda_pointwise_declare(struct kg_cuda_pointwise_writer *writer, int i);
void kg_cuda_pointwise_fill(struct kg_cuda_pointwise_writer *writer, int i);
// Computes the vectors at `first` and stores them.
void kg_cuda_pointwise_compute(struct kg_cuda_pointwise_writer *writer);
// Bytes of the tensors that are read in vectors, and once.
double kg_cuda_pointwise_streamed(const struct kg_cuda_pointwise_plan *plan);

// The body that works in tiles.
void kg_cuda_pointwise_tiles(struct kg_cuda_pointwise_writer *writer);

// The functions of the kernel, after the opening: number 0 for whole vectors, number 1 for any,
// and, for simple groups, number 2: whole vectors in grids that cover everything, where 32 bits
// count all elements. `any` is the plan of number 1.
void kg_cuda_pointwise_emit(struct kg_text *text, const struct kg_cuda_pointwise_plan *plan,
                            const struct kg_cuda_pointwise_plan *any);

#endif
