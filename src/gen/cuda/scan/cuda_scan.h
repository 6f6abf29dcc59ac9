// What the files of the scan family for CUDA share: cuda_scan.c decides, cuda_scan_emit.c writes,
// cuda_scan_streams.c knows what vectors are read, and the two others what is expected to take how
// long, along rows and down columns.

#ifndef KG_GEN_CUDA_SCAN_H
#define KG_GEN_CUDA_SCAN_H

#include "gen/shared/scan_writer.h"

struct kg_cuda_scan_plan {
    struct kg_scan_plan scan; // with `chunk`: how much of the axis a row or column is cut into
    int threads;              // of a row: some lanes of a warp, or a block; down columns of a block
    int blocks;               // rows of a block of threads
    int rows;                 // threads of a column, one below the other
    int cluster;              // blocks that share a row
    int vector;               // elements of a thread's vectors
    int hold;                 // vectors of a thread that are on their way at once
    int registers;            // at most; 0: as many as the compiler likes
    bool shifts;              // has a function for rows that begin between whole vectors, too
};

// The functions of a launch, in this order: a launch has one of them run. With chunks, those for
// their totals come first.
enum kg_cuda_scan_function {
    KG_CUDA_SCAN_WHOLE,   // rows and columns are whole vectors
    KG_CUDA_SCAN_SINGLE,  // vectors are single elements, wherever tensors lie
    KG_CUDA_SCAN_SHIFTED, // tensors are aligned, rows may begin and end within vectors
};
// How many a launch has.
int kg_cuda_scan_functions(const struct kg_cuda_scan_plan *plan);

void kg_cuda_scan_plan_make(const struct kg_match *match, const struct kg_config *config,
                            const char *entry, struct kg_cuda_scan_plan *plan);
// 32-bit registers of a thread for what it works on and what is on its way.
int64_t kg_cuda_scan_registers(const struct kg_scan_plan *plan, const struct kg_config *config);

// Seconds expected of a scan down columns; 0: the device's rates are not known.
double kg_cuda_scan_column_seconds(const struct kg_match *match, const struct kg_config *config);

// A tensor that is read along vectors, once for all its readers.
struct kg_cuda_scan_stream {
    const struct kg_nest *nest;
    const struct kg_access *access;
    bool late; // read by what follows the scan, too
};

// Bytes that are read, and written, for an element.
void kg_cuda_scan_measure(const struct kg_scan_plan *plan, double *read, double *written);

#define KG_MOST_SCAN_STREAMS 24

struct kg_cuda_scan_streams {
    const struct kg_scan_plan *scan;
    bool here[KG_MAX_NESTS]; // by position: its axes are those of the scan's output
    bool late[KG_MAX_NESTS]; // what follows the scan needs it
    int count;
    struct kg_cuda_scan_stream streams[KG_MOST_SCAN_STREAMS];
};

void kg_cuda_scan_find_streams(const struct kg_scan_plan *scan,
                               struct kg_cuda_scan_streams *streams);
// The number of the stream that gives what `access` reads, or -1.
int kg_cuda_scan_stream(const struct kg_cuda_scan_streams *streams, const struct kg_access *access);

// Where some vectors are not whole they are single elements, and there are more of them.
int kg_cuda_scan_single(const struct kg_cuda_scan_plan *plan);

// Do all tensors have the shape of the scan's output, without gaps, so that their rows begin within
// vectors at the same place?
bool kg_cuda_scan_may_shift(const struct kg_scan_plan *scan);

// The bytes that tensors have to be aligned to for whole vectors; 0: their strides or sizes do not
// allow them, wherever they lie. `length` is that of what vectors follow.
int kg_cuda_scan_alignment(const struct kg_cuda_scan_plan *plan, int64_t length);
// The same for the shifted function.
int kg_cuda_scan_shifted_alignment(const struct kg_cuda_scan_plan *plan);

// The functions of the kernel, after the opening: the scan with whole vectors, and with any. With
// chunks, the same two for the totals of the chunks come first.
void kg_cuda_scan_emit(struct kg_text *text, const struct kg_cuda_scan_plan *plan);

#endif
