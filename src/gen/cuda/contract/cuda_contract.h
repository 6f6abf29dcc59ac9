// What the files of the contract family for CUDA share. cuda_contract.c decides, and is where the
// parameters stand; cuda_contract_sides.c tells how sides lie in memory; cuda_contract_emit.c
// writes the job, a struct with everything that is particular to an op, cuda_contract_epilogue.c
// tells what of what is done with sums belongs to rows and columns. Each form of kernel is a
// file of its own, with one skeleton, and a line in the table of cuda_contract.c.

#ifndef KG_GEN_CUDA_CONTRACT_H
#define KG_GEN_CUDA_CONTRACT_H

#include "gen/shared/code.h"
#include "gen/shared/contract_operands.h"

#include <stddef.h>

// Bytes of shared memory that the blocks of a unit divide, and that the system keeps of each.
enum { KG_CUDA_UNIT_SHARED = 228 << 10, KG_CUDA_SYSTEM_SHARED = 1024 };

struct kg_cuda_contract_form;

// The values of a config; a form that has no choice of one has its usual value.
struct kg_cuda_contract_values {
    int mma;      // rows of the matrix unit's instruction; 0: multiplications and additions
    int rows;     // of the tile of a block
    int columns;  // likewise
    int depth;    // steps of the sum of a tile
    int stages;   // tiles under way
    int down;     // blocks of a cluster with the same columns, of which each copies a part,
    int across;   // and with the same rows
    int pingpong; // consumers have a tile each
    int split;    // parts of the sum, split-K; 0: blocks share the last tiles evenly, stream-K
    int swap;     // the transposed product is made
    int order;    // of tiles: 0: down a column first, 1: along a row
    int registers;
};

struct kg_cuda_contract_plan {
    const struct kg_cuda_contract_form *form;
    const struct kg_group *group;
    const struct kg_device_facts *facts;
    const char *entry;
    struct kg_contract contract;
    // The side is this read, an array of whole bytes an element; else NULL. Its neighbours in
    // memory are neighbours along the sum where `along`.
    const struct kg_access *plain[2];
    bool along[2];
    int64_t batches, rows, columns, depth; // of the problem, as the job has them
    bool waits; // the function being written looks at memory only after kg_wait_before
    struct kg_cuda_contract_values set;
    const struct kg_cuda_contract_times *times; // by which its own is expected
};

// What a form says of a config's time, for kg_cuda_contract_seconds.
struct kg_cuda_contract_cost_terms {
    int blocks;            // that a unit runs at once
    double multiply;       // seconds of a unit for a stage: one step of a tile
    double fill;           // times the usual time to copy one
    bool folds_in_cluster; // the pieces of a sum
    double again;          // times the usual time to read what was read before; 0: that
    double values;         // seconds to work on a thread's sums on their way out
    double copied;         // bytes of sides that are copied first
    double share;          // of the time in the end, 0.1: a tenth longer
    double parts;          // seconds to leave and add a part of a tile, where blocks share them
    bool passes;           // a side does, through the L2, and leaves there what others have written
};

// Where the configs go that a form lists.
struct kg_cuda_contract_listing {
    kg_config_take *take;
    void *user;
    struct kg_config guess; // which was taken first
    double least;           // seconds expected of any, once it is known
    bool known;
    bool full; // no more are taken
};

// A parameter of a form: where its value stands in the plan, and the values it may have.
struct kg_cuda_contract_parameter {
    const char *name;
    size_t field; // offset in struct kg_cuda_contract_values
    int count;
    int64_t choices[KG_MAX_CHOICES];
};

// Values of parameters that several forms have.
#define KG_CONTRACT_TILE(FIELD, ...)                                                               \
    offsetof(struct kg_cuda_contract_values, FIELD),                                               \
        sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t),                                        \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define KG_CONTRACT_SPLIT_K                                                                        \
    "split_k", KG_CONTRACT_TILE(split, 1, 2, 4, 8, 16, 32, 64, 128, 3, 6, 12, 24, 48)
#define KG_CONTRACT_RASTER "raster", KG_CONTRACT_TILE(order, 0, 1)
#define KG_CONTRACT_MAXNREG "maxnreg", KG_CONTRACT_TILE(registers, 0, 80, 96, 112, 128, 144, 160)

// One form of kernel: a family of its own, which shares the reading of a product with the others.
struct kg_cuda_contract_form {
    struct kg_cuda_contract_values usual;
    struct kg_cuda_contract_parameter parameters[KG_MAX_PARAMETERS]; // up to a NULL name
    const char *skeletons[10];                                       // below kernels/, up to NULL
    // Whether the form has instructions for these operands on this device, else why not. NULL: it
    // takes any.
    bool (*takes)(const struct kg_cuda_contract_plan *plan, struct kg_text *reason);
    // The config by rule, from the usual values, if the form is the one for these sizes; values
    // are among the choices of the parameters. May leave anything in `set` where it is not.
    bool (*guess)(struct kg_cuda_contract_plan *plan);
    // As in struct kg_family, for a config the form owns.
    bool (*valid)(const struct kg_cuda_contract_plan *plan, struct kg_text *reason);
    // Hands configs without a limit of registers to kg_cuda_contract_take, each once; some may be
    // not valid. Begins with the usual values.
    void (*list)(struct kg_cuda_contract_plan *plan, struct kg_cuda_contract_listing *listing);
    // Of a valid config.
    struct kg_cuda_contract_cost_terms (*cost_terms)(const struct kg_cuda_contract_plan *plan);
    void (*emit)(struct kg_code *code, const struct kg_cuda_contract_plan *plan);
    void (*grids)(const struct kg_cuda_contract_plan *plan, struct kg_grids *grids);
    // Multiplications and additions, each counted, per second of all units at best; 0: unknown.
    double (*rate)(const struct kg_cuda_contract_plan *plan);
};

extern const struct kg_cuda_contract_form kg_cuda_contract_form_thin;
extern const struct kg_cuda_contract_form kg_cuda_contract_form_mma;

// The plan of a match of one of the forms; `config` may be NULL: the form's usual values.
void kg_cuda_contract_plan_make(const struct kg_match *match, const struct kg_config *config,
                                struct kg_cuda_contract_plan *plan);
// The values of a plan as a config of its form.
void kg_cuda_contract_collect(const struct kg_cuda_contract_plan *plan, struct kg_config *config);

// ---- What the families of all forms are made of: as in struct kg_family ----

const void *kg_cuda_contract_match(const struct kg_cuda_contract_form *form,
                                   const struct kg_group *group,
                                   const struct kg_device_facts *facts, struct kg_arena *arena,
                                   struct kg_text *reason);
bool kg_cuda_contract_advised(const struct kg_match *match, struct kg_text *reason);
void kg_cuda_contract_space(const struct kg_match *match, struct kg_space *space);
bool kg_cuda_contract_valid(const struct kg_match *match, const struct kg_config *config,
                            struct kg_text *reason);
void kg_cuda_contract_guess(const struct kg_match *match, struct kg_config *config);
double kg_cuda_contract_bound(const struct kg_match *match, const struct kg_config *config);
double kg_cuda_contract_expected(const struct kg_match *match, const struct kg_config *config);
void kg_cuda_contract_list(const struct kg_match *match, kg_config_take *take, void *user);
bool kg_cuda_contract_emit(const struct kg_match *match, const struct kg_config *config,
                           const char *entry, struct kg_text *source);
void kg_cuda_contract_grids(const struct kg_match *match, const struct kg_config *config,
                            struct kg_grids *grids);

// ---- Configs ----

// Whether the config is valid for its form, else why not; `reason` may be NULL.
bool kg_cuda_contract_check(const struct kg_cuda_contract_plan *plan, struct kg_text *reason);
// Says why and is false.
bool kg_cuda_contract_refuse(struct kg_text *reason, const char *why);

// The config of the plan, and those with a limit of registers that lets a unit run more blocks, if
// they are valid and promise enough.
void kg_cuda_contract_take(struct kg_cuda_contract_listing *listing,
                           const struct kg_cuda_contract_plan *plan);

// The same in 1, 2, 4, ... pieces, of more than one as long as units are without work, and in both
// orders where there are many tiles and the form has several.
void kg_cuda_contract_list_pieces(struct kg_cuda_contract_plan *plan, int most,
                                  struct kg_cuda_contract_listing *listing);

// How long a valid config takes, cold, by plan->times. 0: the device is not known well enough.
double kg_cuda_contract_expect(const struct kg_cuda_contract_plan *plan);
// The same by what its form says: cuda_contract_time.c.
double kg_cuda_contract_seconds(const struct kg_cuda_contract_plan *plan,
                                const struct kg_cuda_contract_cost_terms *cost_terms);
// Seconds that a unit copies, if everything is in the L2: a part of those.
double kg_cuda_contract_copying(const struct kg_cuda_contract_plan *plan,
                                const struct kg_cuda_contract_cost_terms *cost_terms);
// Multiplications and additions of a stage of a unit, where this share of the rate is reached.
double kg_cuda_contract_stage(const struct kg_cuda_contract_plan *plan, double rate, double share);
// Blocks of a unit by their threads, registers of a thread, as limited, and shared memory.
int kg_cuda_contract_blocks(const struct kg_cuda_contract_plan *plan, int threads, int registers,
                            int64_t shared);

// ---- Sides ----

void kg_cuda_contract_sides(struct kg_cuda_contract_plan *plan);
// Whether accesses of 16 bytes that begin at multiples of them hold neighbours of one line of a
// plain side and nothing else, as far as strides and sizes tell.
bool kg_cuda_contract_is_whole(const struct kg_cuda_contract_plan *plan, int side);
// Of the elements of a side, as they are stored.
enum kg_dtype kg_cuda_contract_dtype(const struct kg_cuda_contract_plan *plan, int side);

// A read of what is done with a sum that is the same for all of its row, or its column, or whose
// neighbour is that of the neighbouring sum.
enum kg_cuda_contract_epilogue_scope {
    KG_EPILOGUE_PER_ROW,
    KG_EPILOGUE_PER_COLUMN,
    KG_EPILOGUE_PER_ELEMENT,
    KG_EPILOGUE_SCOPE_COUNT
};
enum { KG_CONTRACT_EPILOGUE_READS = 4 }; // are held by threads, one of them of sums
struct kg_cuda_contract_epilogue_read {
    const struct kg_nest *nest;
    const struct kg_access *access;
    enum kg_cuda_contract_epilogue_scope owner;
};
// How many there are, in the order of statements; `list` has room for all.
int kg_cuda_contract_epilogue_reads(const struct kg_cuda_contract_plan *plan,
                                    struct kg_cuda_contract_epilogue_read *list);
// The position of one in that list, or -1.
int kg_cuda_contract_find_epilogue_read(const struct kg_cuda_contract_plan *plan,
                                        const struct kg_access *access);
// The last statement of the group that is stored.
int kg_cuda_contract_last(const struct kg_cuda_contract_plan *plan);
// Whether anything is made of a sum on its way out.
bool kg_cuda_contract_has_epilogue(const struct kg_cuda_contract_plan *plan);
// Whether that depends on where it is in more than what its row, its column and it itself have of
// their own, or more than one tensor is stored.
bool kg_cuda_contract_epilogue_uses_position(const struct kg_cuda_contract_plan *plan);
// Whether it takes registers of its own in numbers: it is pointed, or has functions that are long.
bool kg_cuda_contract_epilogue_is_heavy(const struct kg_cuda_contract_plan *plan);
// Registers for what rows, columns and sums have of their own, of so many rows of a thread, and of
// columns that are dealt to the lanes of a warp.
int kg_cuda_contract_epilogue_registers(const struct kg_cuda_contract_plan *plan, int rows,
                                        int columns);
// The last tensor that is stored, which the job gives the elements of.
const struct kg_tensor *kg_cuda_contract_output(const struct kg_cuda_contract_plan *plan);

// ---- The tile of a block, after the exchange of sides ----

int64_t kg_cuda_contract_tiles(const struct kg_cuda_contract_plan *plan); // of all batches
// Whether blocks of a cluster copy for each other.
bool kg_cuda_contract_is_clustered(const struct kg_cuda_contract_plan *plan);
int64_t kg_cuda_contract_m_after_swap(const struct kg_cuda_contract_plan *plan); // rows, exchanged
int64_t kg_cuda_contract_n_after_swap(const struct kg_cuda_contract_plan *plan);

// ---- Code ----

// The struct ENTRY_job: see kernels/cuda/contract_job.cuh. Before it, what functions are given.
void kg_cuda_contract_emit_job(struct kg_code *code, const struct kg_cuda_contract_plan *plan);
// Inside a function with the kernel's arguments: declares `job`, exchanged if the config says so.
void kg_cuda_contract_declare_job(struct kg_code *code, const struct kg_cuda_contract_plan *plan);
// The function that folds the pieces of a sum, if there are several.
void kg_cuda_contract_emit_fold(struct kg_code *code, const struct kg_cuda_contract_plan *plan,
                                int number);

// ---- Launches ----

// Of the `count` functions of a kernel, `whole` runs where every tensor lies at a multiple of 16
// bytes, else function 1, which takes any; behind them stands the one that folds, if there is
// something to fold. Says what scratch that takes.
void kg_cuda_contract_launch(const struct kg_cuda_contract_plan *plan, struct kg_grid grid,
                             int whole, int count, struct kg_grids *grids);

#endif
