// What the emitters of the contract family share: names of axes in the generated functions.

#ifndef KG_GEN_CONTRACT_WRITER_H
#define KG_GEN_CONTRACT_WRITER_H

#include "gen/shared/emit.h"
#include "gen/shared/scaled_operand.h"

struct kg_contract_writer {
    struct kg_text *text;
    const struct kg_contract *contract;
    struct kg_emit_names names;
};

// "K", or "kg_max_i64(0, K - B)" for an axis that does not begin at zero.
void kg_contract_extent(struct kg_text *text, const struct kg_index *axis);

// "    const int64_t i3 = B + ": the declaration of an axis, up to its distance from its begin.
void kg_contract_open_axis(const struct kg_contract_writer *writer, int level, int axis);

// Declares the first `count` axes of a part at `position`, which counts through all of them.
void kg_contract_axes(const struct kg_contract_writer *writer, int level,
                      enum kg_contract_role part, int count, const char *position);
// All axes of the part.
void kg_contract_all_axes(const struct kg_contract_writer *writer, int level,
                          enum kg_contract_role part, const char *position);

// A run: positions of a part over which only its last axis moves.
struct kg_contract_run {
    enum kg_contract_role part;
    const char *from;   // the first position
    const char *length; // how many
    int64_t cut;        // runs end where the last axis reaches a multiple of this; 0: anywhere
    int axis;           // the last axis, or -1: the part has none
    bool whole;         // there is just one run
    const char *at;     // inside, the distance from the run's beginning: "at1" or "at1 - at2"
    int level;
};

// Opens the loop over runs and declares all axes but the last. `part1` is the first value of the
// last axis, `part0` the number of elements.
struct kg_contract_run kg_contract_open_run(const struct kg_contract_writer *writer, int level,
                                            enum kg_contract_role part, const char *from,
                                            const char *length, int64_t cut);
// Opens the loop over the elements of a run: `at1` counts from `from`, the last axis is declared.
// Gives the level inside. Loops may follow one another.
int kg_contract_open_elements(const struct kg_contract_writer *writer,
                              const struct kg_contract_run *run);
void kg_contract_close_run(const struct kg_contract_writer *writer,
                           const struct kg_contract_run *run);

// The stride of a read along one axis: "x_s1", "2 * x_s0 + x_s1".
void kg_contract_stride(struct kg_text *text, const struct kg_access *access, int axis);
// A `kg_emit_names.axis` that has a contract for `user`: axes where an operand begins, the batch's
// own values and the first ones of the others.
void kg_contract_print_begin(void *contract, struct kg_text *text, int axis);

// The function that computes rectangles of an operand: contract_fill.c.
void kg_contract_emit_fill(const struct kg_contract_writer *writer, int operand);
// The same in elements of 16 bits.
void kg_contract_emit_shorts(const struct kg_contract_writer *writer, int operand);
// The same for some factors of B, under a name of its own. `adds`: they are added up, and
// subtracted if they divide, instead of multiplied.
void kg_contract_emit_part(const struct kg_contract_writer *writer, const char *name, bool adds,
                           const struct kg_contract_operand *part);

// The same for runs of `group` steps of k (0: one for all) of a column.
void kg_contract_emit_groups(const struct kg_contract_writer *writer, const char *name, bool adds,
                             const struct kg_contract_operand *part, int64_t group);

// Columns of 4-bit integers with scales: contract_scaled.c. Reads B as such, and says along which
// axis kernels/host/contract_scaled*.h would read it.
enum kg_contract_layout {
    KG_CONTRACT_OTHER, // they cannot take it
    KG_CONTRACT_ALONG_N,
    KG_CONTRACT_PANELS, // packed weights: as if along N
    KG_CONTRACT_ALONG_K,
};
enum kg_contract_layout kg_contract_scaled(const struct kg_contract *contract,
                                           struct kg_scaled_operand *scaled);
// Cycles that a product of `rows` by so many of these elements is expected to take, where vectors
// have `lanes` floats and a core does `peak` operations per cycle.
double kg_contract_scaled_cycles(double rows, double elements, double lanes, double peak);
// From how many rows on, and whether at all, kernels/host/contract_scaled_tiles.h multiplies them
// by such elements; the same cycles there.
enum { KG_CONTRACT_TILE_ROWS = 9 };
double kg_contract_tile_cycles(const struct kg_contract *contract, double rows, double elements);
bool kg_contract_tiles(const struct kg_contract *contract, const struct kg_device_facts *facts,
                       enum kg_contract_layout layout, const struct kg_scaled_operand *scaled);
// What these files are told about B, and the functions that they have from its formula.
void kg_contract_define_scaled(const struct kg_contract_writer *writer,
                               enum kg_contract_layout layout,
                               const struct kg_scaled_operand *scaled);
void kg_contract_emit_scaled(const struct kg_contract_writer *writer,
                             enum kg_contract_layout layout,
                             const struct kg_scaled_operand *scaled);

// Integers whose products fit fewer bits than their sum: contract_shorts.c.
enum kg_contract_words { KG_CONTRACT_LONG, KG_CONTRACT_SIGNED, KG_CONTRACT_UNSIGNED };
struct kg_contract_shorts {
    enum kg_contract_words words; // factors of 32 bits, if both have them
    // Factors of 16 bits, which kernels/host/contract_shorts.h multiplies in pairs: 0 parts if they
    // have more bits, else 1, or 2 where a value is split into its low byte and what is above it.
    int parts[2];
    bool is_unsigned[2]; // some values are no int16_t
    int64_t steps;       // of k, whose products add up in 32 bits
};
struct kg_contract_shorts kg_contract_shorts(const struct kg_contract *contract,
                                             const struct kg_device_facts *facts);
// Whether a product of these sizes is computed so: what takes_shorts of contract_entry.h says.
bool kg_contract_takes_shorts(const struct kg_contract_shorts *shorts, double m, double n,
                              double k);

#endif
