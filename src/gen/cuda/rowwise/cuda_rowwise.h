// What the files of the rowwise family for CUDA share: cuda_rowwise.c decides,
// cuda_rowwise_streams.c tells what is read in vectors, cuda_rowwise_emit.c writes, and
// cuda_rowwise_loads.c how vectors come from memory.

#ifndef KG_GEN_CUDA_ROWWISE_H
#define KG_GEN_CUDA_ROWWISE_H

#include "gen/cuda/cuda_frame.h"
#include "gen/shared/code.h"
#include "gen/shared/rowwise_plan.h"

// The parameters of a config.
enum {
    ROW_THREADS,
    ROW_VECTOR,
    ROW_HOLD,
    ROW_KEEP,
    ROW_CLUSTER,
    ROW_SHARED,
    ROW_STAGED,
    ROW_EVICT,
    ROW_REGISTERS
};

struct kg_cuda_rowwise_plan {
    struct kg_rowwise_plan row;
    int threads; // of a row: some lanes of a warp, or a block
    int blocks;  // rows of a block of threads
    int cluster; // blocks that share a row
    int vector;  // elements of a thread's vectors
    int hold;    // vectors of a thread that stay in registers from pass to pass
    bool keep;   // what later passes read again is held too, instead of computed again
    int shared;  // and vectors that stay in shared memory besides
    // Rows that a cluster works on at once, for which what all rows share is copied to its shared
    // memory; 0: it works on one, and reads that from memory.
    int staged;
    enum kg_cuda_evict evict; // of rows
    int registers;            // at most; 0: as many as the compiler likes
};

void kg_cuda_rowwise_plan_make(const struct kg_match *match, const struct kg_config *config,
                               const char *entry, struct kg_cuda_rowwise_plan *plan);
// Rows, elements of a row, and elements of the run that vectors follow.
void kg_cuda_rowwise_measure(const struct kg_rowwise_plan *plan, int64_t *rows, int64_t *columns,
                             int64_t *length);

// Vectors of a thread in shared memory: a multiple of it.
#define KG_CUDA_ROWWISE_STORED_STEP 4

void kg_cuda_rowwise_guess(const struct kg_match *match, struct kg_config *config);

// Bytes of the widest element that lies along the row.
int kg_cuda_rowwise_widest(const struct kg_rowwise_plan *plan);
// Does every row read something again, as it reads the factors of a norm?
bool kg_cuda_rowwise_shares(const struct kg_rowwise_plan *plan);

// Do neighbouring columns of some read lie apart?
bool kg_cuda_rowwise_reads_apart(const struct kg_rowwise_plan *row);

// Does it reduce to the place of a maximum or minimum?
bool kg_cuda_rowwise_finds_places(const struct kg_rowwise_plan *plan);

// Bytes of a row that a block holds, and the blocks that may share one.
#define KG_CUDA_ROWWISE_HELD (1 << 17)
int kg_cuda_rowwise_blocks(const struct kg_device_facts *facts);

// A tensor that is read along the row, once for all its readers.
struct kg_cuda_stream {
    const struct kg_nest *nest;
    const struct kg_access *access;
    bool held;               // moves with the row: stays in registers from pass to pass
    bool uses[KG_MAX_NESTS]; // by pass: is it read there?
};

#define KG_CUDA_MOST_STREAMS 24
struct kg_cuda_streams {
    int count;
    struct kg_cuda_stream items[KG_CUDA_MOST_STREAMS];
};
void kg_cuda_streams_make(const struct kg_rowwise_plan *row, struct kg_cuda_streams *streams);
// Bytes of the streams that are held, and read once.
double kg_cuda_rowwise_streamed(const struct kg_rowwise_plan *row);
// The stream of a read, or -1: it is a plain load.
int kg_cuda_streams_find(const struct kg_cuda_streams *streams, const struct kg_rowwise_plan *row,
                         const struct kg_access *access);

// Is the stream copied to shared memory, because all rows share it?
bool kg_cuda_stream_is_staged(const struct kg_cuda_rowwise_plan *plan,
                              const struct kg_cuda_stream *stream);

// Bytes of a thread's vector of a stream.
int kg_cuda_stream_bytes(const struct kg_cuda_rowwise_plan *plan,
                         const struct kg_cuda_stream *stream);

// The vectors of a thread for which a pass loads what all rows share (the factors of a norm) before
// it uses the first: stores in between keep the compiler from doing so. 1: one after the other.
int kg_cuda_rowwise_batch(const struct kg_cuda_rowwise_plan *plan,
                          const struct kg_cuda_streams *streams, int pass);

// The bytes that tensors have to be aligned to for whole vectors; 0: their strides or sizes do not
// allow them, wherever they lie.
int kg_cuda_rowwise_alignment(const struct kg_cuda_rowwise_plan *plan, int64_t length);

// ---- Writing ----

struct kg_cuda_rowwise_writer {
    const struct kg_cuda_rowwise_plan *plan;
    const struct kg_rowwise_plan *row;
    struct kg_code code;
    struct kg_values values;
    char names[KG_MAX_NESTS][40]; // what kg_values calls the outputs of nests
    char divisors[KG_MAX_NESTS][16];
    bool holding; // the part at hand is held,
    bool stored;  // in shared memory
    int batch;    // of the pass: see kg_cuda_rowwise_batch
    struct kg_cuda_streams streams;
};

void kg_cuda_rowwise_extent(struct kg_code *code, const struct kg_cuda_rowwise_writer *writer,
                            const char *name, int first, int last);
// Are there column axes before the run? Then the column is taken apart.
bool kg_cuda_rowwise_has_outer(const struct kg_cuda_rowwise_writer *writer);
// Declares the column axes of the column `from`.
void kg_cuda_rowwise_axes(struct kg_cuda_rowwise_writer *writer, const char *from);
// Declares the axes of the element `lane`; opened around what is done with it.
void kg_cuda_rowwise_lanes(struct kg_cuda_rowwise_writer *writer);
// Opened around what is done for each of the rows at hand, if there may be several; declares the
// row and its axes. Without them: what each has a place of its own in is only initialised.
bool kg_cuda_rowwise_several(const struct kg_cuda_rowwise_plan *plan);
void kg_cuda_rowwise_open_rows(struct kg_cuda_rowwise_writer *writer, bool with_axes);
void kg_cuda_rowwise_close_rows(struct kg_cuda_rowwise_writer *writer);
void kg_cuda_rowwise_first(struct kg_cuda_rowwise_writer *writer);
// Fills the vector `to` of stream `i`, at `first`.
void kg_cuda_rowwise_fill(struct kg_cuda_rowwise_writer *writer, int i, const char *to);
// Opened around what is done with each vector that a thread holds in registers,
void kg_cuda_rowwise_held(struct kg_cuda_rowwise_writer *writer);
// by batches, whose loads of what all rows share are emitted before (opened twice),
void kg_cuda_rowwise_batches(struct kg_cuda_rowwise_writer *writer, int pass);
// or (twice) in its own places of shared memory.
void kg_cuda_rowwise_stored(struct kg_cuda_rowwise_writer *writer);
// Declares these places.
void kg_cuda_rowwise_slots(struct kg_cuda_rowwise_writer *writer);
// Declares where what all rows share is copied to, and has it on its way; waits for it.
void kg_cuda_rowwise_stage(struct kg_cuda_rowwise_writer *writer);
void kg_cuda_rowwise_staged(struct kg_cuda_rowwise_writer *writer, int pass);
// Has all that is held on its way, before anything is computed.
void kg_cuda_rowwise_loads(struct kg_cuda_rowwise_writer *writer);

// ---- The vector at hand ----

// Is the output of the nest at that position of the group read by nothing outside it?
bool kg_cuda_rowwise_is_private(const struct kg_cuda_rowwise_writer *writer, int position);
// Is it held as computed, for later passes?
bool kg_cuda_rowwise_is_kept(const struct kg_cuda_rowwise_writer *writer, int position);
// Does the pass reduce it?
bool kg_cuda_rowwise_is_fold(const struct kg_cuda_rowwise_writer *writer, int i, int pass);
// Is the part at hand of stream `i` in registers?
bool kg_cuda_rowwise_in_registers(const struct kg_cuda_rowwise_writer *writer, int i);
// What stands behind the name of what each row at hand has.
const char *kg_cuda_rowwise_of_row(const struct kg_cuda_rowwise_writer *writer);
// What reads of a nest's output are from now on; `format` takes its number.
void kg_cuda_rowwise_name(struct kg_cuda_rowwise_writer *writer, int i, const char *format);
// The same for columns that an earlier pass made.
void kg_cuda_rowwise_name_columns(struct kg_cuda_rowwise_writer *writer, int pass);
// Of every sum of floats of the pass: declares the variable `declare`, or (NULL) adds the part to
// the total; and has the totals take what was rounded away.
void kg_cuda_rowwise_long_sums(struct kg_cuda_rowwise_writer *writer, int pass,
                               const char *declare);
void kg_cuda_rowwise_totals(struct kg_cuda_rowwise_writer *writer, int pass);
// What a pass does with the vector at `first`.
void kg_cuda_rowwise_part(struct kg_cuda_rowwise_writer *writer, int pass);

// ---- The kernel ----

// The functions of the kernel, after the opening: number 0 for rows of whole vectors that threads
// hold, number 1 for longer ones, number 2 for any.
void kg_cuda_rowwise_emit(struct kg_text *text, const struct kg_cuda_rowwise_plan *plan);

#endif
