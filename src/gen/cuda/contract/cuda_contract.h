// What the files of the contract family for CUDA share. cuda_contract.c matches, guesses and lists;
// cuda_contract_operands.c says how operands lie in memory; cuda_contract_epilogue.c classifies the
// reads of the epilogue as per row, per column or per element; cuda_contract_emit.c writes the job,
// the struct with everything that is particular to an op. Each form of kernel (thin, tile, mma,
// mma_i8, scaled, scaled_wgmma, packed, wgmma, wgmma_f32) is a file and a family of its own, with
// its skeletons and its space.

#ifndef KG_GEN_CUDA_CONTRACT_H
#define KG_GEN_CUDA_CONTRACT_H

#include "gen/shared/code.h"
#include "gen/shared/contract_operands.h"
#include "gen/shared/scaled_operand.h"

#include <stddef.h>

struct kg_cuda_contract_form;

// The values of a config. A parameter that a form does not have keeps the form's default.
struct kg_cuda_contract_config {
    int mma;       // rows of the matrix instruction; 0: no matrix instruction
    int tile_m;    // rows of a block's tile
    int tile_n;    // columns of a block's tile
    int tile_k;    // K elements of a stage
    int stages;    // of the ring in shared memory
    int cluster_m; // blocks of a cluster along M: they share B, and each loads a share of it
    int cluster_n; // blocks of a cluster along N: they share A
    int pingpong;  // 1: two consumers work on a tile each, in turns
    int split_k;   // K slices of a tile; 0: stream-K
    int swap;      // 1: the kernel computes the transposed product
    int overlap;   // columns that a tile shares with the next one
    int buffered;  // 1: a tile is stored from shared memory while the next one is computed
    int raster;    // order of tiles. 0: along M first, 1: along N first
    int words;     // 32-bit words of an operand that a thread loads at once
    int warps;     // of a block along K
    int maxnreg;   // limit of registers per thread; 0: none
};

struct kg_cuda_contract_plan {
    const struct kg_cuda_contract_form *form;
    const struct kg_group *group;
    const struct kg_device_facts *facts;
    const char *entry;
    struct kg_contract contract;
    // The read that is operand A (0) or B (1), if the operand is an array of whole-byte elements;
    // NULL if it is computed.
    const struct kg_access *plain[2];
    struct kg_scaled_operand scaled[2]; // without `element` if the operand is none
    bool k_major[2];                    // elements adjacent along K are adjacent in memory
    int64_t batches, m, n, k;           // of the problem, before a swap; not in the analysis
    bool waits; // the function being written hides its pointers until kg_wait_before has run
    struct kg_cuda_contract_config config;
    const struct kg_cuda_contract_times *times; // the constants of the time model
};

// What a form tells the time model, kg_cuda_contract_seconds, about a config.
struct kg_cuda_contract_cost_terms {
    int blocks_per_sm;
    double multiply_seconds; // of an SM, for one stage of one tile
    double stage_latency;    // of a block alone on its SM: a stage takes at least as long
    double copy_factor;      // time to fill a stage, as a multiple of the usual one
    bool copies_all_lines;   // of a tile, those beyond the tensor too
    bool folds_in_cluster;   // the K slices of a tile are blocks of a cluster, which adds them up
    double reread_factor;    // time to read data again, as a multiple of the usual one; 0: as 1
    double epilogue_seconds; // of a thread, for the epilogue of its accumulators
    double packed_bytes;     // of operands that a pre-pass copies
    double store_factor;     // time to write the output, as a multiple of the usual one; 0: as 1
    double store_seconds;    // of an SM, to store a tile, beside what all tiles take
    double extra_share;      // added to the whole: 0.1 is a tenth longer
    double stream_k_seconds; // to store and load a partial tile
    bool is_streamed;        // an operand is loaded with evict_first, so other data stays in the L2
};

// Receives the configs that a form lists.
struct kg_cuda_contract_listing {
    kg_config_take *take;
    void *user;
    struct kg_config guess; // taken already
    double least;           // shortest expected time of all configs; seconds
    bool known;             // `least` is final: configs are taken now
    bool full;              // the receiver takes no more
};

// A parameter of a form, its field in the config and the values it may have.
struct kg_cuda_contract_parameter {
    const char *name;
    size_t field; // offset in struct kg_cuda_contract_config
    int count;
    int64_t choices[KG_MAX_CHOICES];
    bool optional; // in texts: the first choice where it is not given
};

// The field and the values of a parameter.
#define KG_CONTRACT_CHOICES(FIELD, ...)                                                            \
    offsetof(struct kg_cuda_contract_config, FIELD),                                               \
        sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t),                                        \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
// Where a form lacks a parameter: rows of its matrix instruction (0: none), and elements along K of
// one step.
#define KG_CONTRACT_DEFAULTS(MMA, DEPTH)                                                           \
    {                                                                                              \
        .mma = (MMA), .tile_m = 128, .tile_n = 128, .tile_k = (DEPTH), .stages = 1,                \
        .cluster_m = 1, .cluster_n = 1, .split_k = 1, .words = 1, .warps = 1                       \
    }
#define KG_CONTRACT_SPLIT_K                                                                        \
    "split_k", KG_CONTRACT_CHOICES(split_k, 1, 2, 4, 8, 16, 32, 64, 128, 3, 6, 12, 24, 48)
#define KG_CONTRACT_RASTER "raster", KG_CONTRACT_CHOICES(raster, 0, 1)
#define KG_CONTRACT_MAXNREG "maxnreg", KG_CONTRACT_CHOICES(maxnreg, 0, 80, 96, 112, 128, 144, 160)

// One form of kernel: a family of its own that shares the analysis of a product with the others.
struct kg_cuda_contract_form {
    struct kg_cuda_contract_config defaults;
    struct kg_cuda_contract_parameter parameters[KG_MAX_PARAMETERS]; // up to a NULL name
    const char *skeletons[20];                                       // below kernels/, up to NULL
    // Whether the form has instructions for these operands on this device; if not, says why. NULL:
    // it takes any.
    bool (*takes)(const struct kg_cuda_contract_plan *plan, struct kg_text *reason);
    // Sets the config by rule, starting from the defaults. Returns false, with any config, if
    // another form should take these sizes.
    bool (*guess)(struct kg_cuda_contract_plan *plan);
    // As in struct kg_family.
    bool (*valid)(const struct kg_cuda_contract_plan *plan, struct kg_text *reason);
    // Hands configs without a register limit to kg_cuda_contract_take, each once; some may be
    // invalid. Starts from the defaults.
    void (*list)(struct kg_cuda_contract_plan *plan, struct kg_cuda_contract_listing *listing);
    // Of a valid config.
    struct kg_cuda_contract_cost_terms (*cost_terms)(const struct kg_cuda_contract_plan *plan);
    // The expected time of a valid config, if not by cost terms; NULL: by these.
    double (*seconds)(const struct kg_cuda_contract_plan *plan);
    void (*emit)(struct kg_code *code, const struct kg_cuda_contract_plan *plan);
    void (*grids)(const struct kg_cuda_contract_plan *plan, struct kg_grids *grids);
    // Peak rate of the device, counting multiplications and additions; 0: unknown.
    double (*rate)(const struct kg_cuda_contract_plan *plan);
};

extern const struct kg_cuda_contract_form kg_cuda_contract_form_thin;
extern const struct kg_cuda_contract_form kg_cuda_contract_form_mma;

// The plan of a match; `config` may be NULL: the form's defaults.
void kg_cuda_contract_plan_make(const struct kg_match *match, const struct kg_config *config,
                                struct kg_cuda_contract_plan *plan);
// The values of a plan as a config of its form.
void kg_cuda_contract_collect(const struct kg_cuda_contract_plan *plan, struct kg_config *config);

// ---- The functions of all forms, as in struct kg_family ----

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

// Defines the family row of a form: the functions above, with a match that knows the form.
#define KG_CONTRACT_FAMILY(SYMBOL, FORM, NAME, SUMMARY, ORDERS_CONFIGS, IS_FITTED)                 \
    static const void *match_form(const struct kg_group *group,                                    \
                                  const struct kg_device_facts *facts, struct kg_arena *arena,     \
                                  struct kg_text *reason)                                          \
    {                                                                                              \
        return kg_cuda_contract_match(&(FORM), group, facts, arena, reason);                       \
    }                                                                                              \
    const struct kg_family SYMBOL = {                                                              \
        .name = NAME,                                                                              \
        .summary = SUMMARY,                                                                        \
        .match = match_form,                                                                       \
        .advised = kg_cuda_contract_advised,                                                       \
        .space = kg_cuda_contract_space,                                                           \
        .valid = kg_cuda_contract_valid,                                                           \
        .guess = kg_cuda_contract_guess,                                                           \
        .bound = kg_cuda_contract_bound,                                                           \
        .expected = kg_cuda_contract_expected,                                                     \
        .orders_configs = ORDERS_CONFIGS,                                                          \
        .is_fitted = IS_FITTED,                                                                    \
        .list = kg_cuda_contract_list,                                                             \
        .emit = kg_cuda_contract_emit,                                                             \
        .grids = kg_cuda_contract_grids,                                                           \
    }

// ---- Configs ----

// Whether the config is valid for its form; if not, says why. `reason` may be NULL.
bool kg_cuda_contract_check(const struct kg_cuda_contract_plan *plan, struct kg_text *reason);
// Writes `why` to `reason`, which may be NULL, and returns false.
bool kg_cuda_contract_refuse(struct kg_text *reason, const char *why);

// Takes the plan's config, and its variants with a register limit that let more blocks run on an
// SM, if they are valid and not expected to be far slower than the best.
void kg_cuda_contract_take(struct kg_cuda_contract_listing *listing,
                           const struct kg_cuda_contract_plan *plan);

// The config with the least `seconds` of those that it is handed, if it is valid; `least` is below
// 0 before the first.
struct kg_cuda_contract_best {
    double (*seconds)(const struct kg_cuda_contract_plan *plan);
    struct kg_cuda_contract_config config;
    double least;
};
void kg_cuda_contract_take_best(struct kg_cuda_contract_plan *plan, void *best);

// Takes the plan's config with split-K of 1, 2, 4, ... up to `limit` while SMs are idle, and with
// the other raster order if there are more tiles than SMs.
void kg_cuda_contract_list_splits(struct kg_cuda_contract_plan *plan, int limit,
                                  struct kg_cuda_contract_listing *listing);

// The time of a valid config with cold caches, by plan->times. 0: the device is not known well
// enough.
double kg_cuda_contract_expect(const struct kg_cuda_contract_plan *plan);
// The same, from the form's terms: cuda_contract_time.c.
double kg_cuda_contract_seconds(const struct kg_cuda_contract_plan *plan,
                                const struct kg_cuda_contract_cost_terms *cost_terms);
// The part of that time in which an SM fills its stages, if all operands are in the L2.
double kg_cuda_contract_copy_seconds(const struct kg_cuda_contract_plan *plan,
                                     const struct kg_cuda_contract_cost_terms *cost_terms);
// The time of an SM to multiply one stage, at `share` of the device's peak `rate`.
double kg_cuda_contract_stage_seconds(const struct kg_cuda_contract_plan *plan, double rate,
                                      double share);
// Blocks that an SM runs at once, by threads, registers of a thread and shared memory of a block.
int kg_cuda_contract_blocks_per_sm(const struct kg_cuda_contract_plan *plan, int threads,
                                   int registers, int64_t shared);

// ---- Operands ----

// Sets plan->plain and plan->k_major.
void kg_cuda_contract_read_operands(struct kg_cuda_contract_plan *plan);
// Whether an operand that is an array can be read in aligned 16-byte vectors, as far as strides and
// sizes tell: no row (or column) ends within a vector.
bool kg_cuda_contract_is_whole(const struct kg_cuda_contract_plan *plan, int operand);
// The same of vectors of `vector` elements.
bool kg_cuda_contract_is_whole_in(const struct kg_cuda_contract_plan *plan, int operand,
                                  int vector);
// The dtype of the operand's elements in memory.
enum kg_dtype kg_cuda_contract_dtype(const struct kg_cuda_contract_plan *plan, int operand);

// ---- The epilogue ----

// What a read of the epilogue depends on.
enum kg_cuda_contract_epilogue_scope {
    KG_EPILOGUE_PER_ROW,
    KG_EPILOGUE_PER_COLUMN,
    KG_EPILOGUE_PER_ELEMENT, // adjacent columns are adjacent in memory
    KG_EPILOGUE_SCOPE_COUNT
};
// Reads that threads prefetch and keep in registers; at most one of them is per element.
enum { KG_CONTRACT_EPILOGUE_READS = 4 };
struct kg_cuda_contract_epilogue_read {
    const struct kg_nest *nest;
    const struct kg_access *access;
    enum kg_cuda_contract_epilogue_scope scope;
};
// Lists those reads in the order of statements; `list` has room for all. Returns their number.
int kg_cuda_contract_epilogue_reads(const struct kg_cuda_contract_plan *plan,
                                    struct kg_cuda_contract_epilogue_read *list);
// The position of a read in that list, or -1.
int kg_cuda_contract_find_epilogue_read(const struct kg_cuda_contract_plan *plan,
                                        const struct kg_access *access);
// The last statement of the group whose result is stored.
int kg_cuda_contract_last(const struct kg_cuda_contract_plan *plan);
bool kg_cuda_contract_has_epilogue(const struct kg_cuda_contract_plan *plan);
// Whether the rows of the output have one stride, and so have its columns: a role has one axis, or
// they are adjacent dimensions of a contiguous tensor.
bool kg_cuda_contract_output_has_strides(const struct kg_cuda_contract_plan *plan);
// Whether the epilogue needs the indices of an element (for a condition, or for a read that is not
// in the list), or stores more than one tensor.
bool kg_cuda_contract_epilogue_uses_position(const struct kg_cuda_contract_plan *plan);
// Whether the epilogue takes many registers: it uses the position, or has long functions.
bool kg_cuda_contract_epilogue_is_heavy(const struct kg_cuda_contract_plan *plan);
// Registers of a thread for the listed reads: `rows` of its rows, and `columns` that the lanes of a
// warp divide among them.
int kg_cuda_contract_epilogue_registers(const struct kg_cuda_contract_plan *plan, int rows,
                                        int columns);
// The last tensor that is stored: the one that the job's value() computes.
const struct kg_tensor *kg_cuda_contract_output(const struct kg_cuda_contract_plan *plan);

// ---- Tiles, after a swap ----

int64_t kg_cuda_contract_tiles(const struct kg_cuda_contract_plan *plan);        // of all batches
int64_t kg_cuda_contract_tiles_across(const struct kg_cuda_contract_plan *plan); // along tile_n
bool kg_cuda_contract_is_clustered(const struct kg_cuda_contract_plan *plan); // loads by multicast
int64_t kg_cuda_contract_m_after_swap(const struct kg_cuda_contract_plan *plan);
int64_t kg_cuda_contract_n_after_swap(const struct kg_cuda_contract_plan *plan);

// ---- Code ----

// Writes the struct ENTRY_job (kernels/cuda/contract_job.cuh) and, before it, that of its
// arguments.
void kg_cuda_contract_emit_job(struct kg_code *code, const struct kg_cuda_contract_plan *plan);
// Inside a function with the kernel's arguments: declares `job`, swapped if the config says so.
void kg_cuda_contract_declare_job(struct kg_code *code, const struct kg_cuda_contract_plan *plan);
// The function that adds up the K slices, if there are several.
void kg_cuda_contract_emit_fold(struct kg_code *code, const struct kg_cuda_contract_plan *plan,
                                int number);

// ---- Launches ----

// Launches function `whole` of the `count` variants of a kernel where every tensor is aligned to 16
// bytes, else function 1, which takes any alignment; then the one that adds up K slices, if there
// are several. Sets the bytes of scratch for the partial sums.
void kg_cuda_contract_launch(const struct kg_cuda_contract_plan *plan, struct kg_grid grid,
                             int whole, int count, struct kg_grids *grids);

#endif
