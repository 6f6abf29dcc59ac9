// Run time of a kernel on a GPU, from its assembly, its launch and its problem: a lower bound that
// no measurement can undercut, and an estimate for putting candidates in order. docs/model.md
// explains every term.
//
// The bound never charges work that may not happen: conditional blocks and predicated instructions
// count nothing, loops of unknown length count their header once, and every rate is the device's
// best at its highest clock. In PTX only the matrix instructions count, because ptxas rewrites the
// rest.

#ifndef KG_ASM_MODEL_H
#define KG_ASM_MODEL_H

#include "asm/facts.h"
#include "asm/occupancy.h"

// Limits of a kernel's time. The pipes are those of the SM that runs the most blocks.
enum kg_term {
    KG_TERM_MEMORY,  // compulsory bytes
    KG_TERM_FLOPS,   // the problem's operations, on the fastest pipes
    KG_TERM_TENSOR,  // matrix instructions
    KG_TERM_FMA,     // f32
    KG_TERM_HALF,    // f16
    KG_TERM_REAL64,  // f64
    KG_TERM_SPECIAL, // exponentials, roots
    KG_TERM_CONVERT, // between types
    KG_TERM_ACCESS,  // loads and stores, by instructions
    KG_TERM_ISSUE,   // instructions of any kind
    KG_TERM_LATENCY, // stalls along one warp, round by round
    // These terms are in the expected time only, not in the bound.
    KG_TERM_INTEGER, // integers and comparisons: some run on other pipes
    KG_TERM_SHARED,  // shared memory, by bytes: lanes may share a word
    KG_TERM_L2,      // global memory, by bytes: lanes may share a line
    KG_TERM_COUNT
};

// Corrections of the estimate; kg_model_prior has their weights.
enum kg_feature {
    KG_FEATURE_EXPECTED,   // log(expected / bound)
    KG_FEATURE_BASE,       // 1
    KG_FEATURE_MATRIX,     // 1 when the tensor term is the largest
    KG_FEATURE_EXPOSED,    // fraction of stall cycles that the resident warps do not hide
    KG_FEATURE_SPILLS,     // share of instructions that move spilled registers
    KG_FEATURE_BARRIERS,   // barriers per matrix instruction, or per instruction without any
    KG_FEATURE_OVERHEAD,   // log(1 + other instructions per matrix instruction)
    KG_FEATURE_NARROW,     // share of a 16-byte access that global accesses leave unused
    KG_FEATURE_TAIL,       // share of block slots that stay empty
    KG_FEATURE_SERIALISED, // 1 when ptxas serialised wgmma
    KG_FEATURE_BLOCKING,   // share of global loads that are synchronous
    KG_FEATURE_IDLE,       // share of warp slots that stay empty
    // These are derived from the others and the launch: see kg_model_derive.
    KG_FEATURE_STARTS,    // log(1 + time to start the warps / bound)
    KG_FEATURE_CLUSTERS,  // share of a cluster's blocks that a block waits for
    KG_FEATURE_ACCESSES,  // log(1 + time to issue the accesses / bound)
    KG_FEATURE_FOOTPRINT, // how far the data in use exceeds the L2
    KG_FEATURE_WAITS,     // log(1 + latency of memory / bound)
    KG_FEATURE_COUNT
};
#define KG_FEATURE_DERIVED KG_FEATURE_STARTS // the first derived feature

// Trips of loops that depend on the problem, by kg_asm_loop.symbol.
struct kg_model_trips {
    const char *symbol;
    double trips;
};

// The least work of any kernel. Zero if unknown.
struct kg_model_problem {
    double read_bytes; // compulsory
    double write_bytes;
    double flops;           // at least
    bool on_matrix_units;   // `flops` are a sum of products of
    enum kg_matrix factors; // this format
    // For loops of unknown length, where the definition tells how often its body runs: operations
    // outside the tensor cores, and transcendental functions. 0: the bytes alone tell.
    double operations;
    double specials;
    bool warm; // caches are as the previous run left them
    const struct kg_model_trips *trips;
    int trip_count;
};

struct kg_model_launch {
    int64_t grid; // blocks
    int threads;  // of a block
    int64_t dynamic_shared;
    int cluster; // 0 or 1: none
};

// The weights of features, and the overhead of a launch. Fitted (asm/fit.h) or the prior.
struct kg_model_coefficients {
    double beta[KG_FEATURE_COUNT];
    double overhead_cold; // seconds: launch, filling and draining
    double overhead_warm;
    const char *source;
};

struct kg_model {
    double term[KG_TERM_COUNT]; // seconds, each a lower bound by itself
    double bound;               // seconds, the largest of them; > 0
    enum kg_term limiter;       // of the bound
    // Seconds, with conditional work, all bytes, the likely format.
    double expected[KG_TERM_COUNT];
    enum kg_term expected_limiter;
    double feature[KG_FEATURE_COUNT];
    double estimate; // seconds, >= bound
    struct kg_occupancy occupancy;
    struct kg_waves waves;
};

extern const struct kg_model_coefficients kg_model_prior;
// The prior of a family, by its name or by a choice that begins with it. For other families, and
// for NULL, that is kg_model_prior.
const struct kg_model_coefficients *kg_model_prior_of(const char *family);

// Computes the derived features from the others. For several launches, `launch` is the longest.
// They are 0 if the device (NULL) or the launch is unknown.
void kg_model_derive(double bound, const struct kg_model_launch *launch, const struct kg_gpu *gpu,
                     double feature[KG_FEATURE_COUNT]);

// `coefficients` may be NULL: the prior. A launch that the device refuses (too many registers, too
// much shared memory, no threads) gives KG_ERROR_UNSUPPORTED with the limit it exceeds, and
// model->occupancy is set; invalid numbers (no blocks, negative or infinite numbers) give
// KG_ERROR_ARGUMENT.
enum kg_status kg_model_make(const struct kg_asm_kernel *kernel, enum kg_asm_format format,
                             const struct kg_gpu *gpu, const struct kg_model_launch *launch,
                             const struct kg_model_problem *problem,
                             const struct kg_model_coefficients *coefficients,
                             struct kg_model *model, struct kg_error *error);

// Seconds from a bound and its features: for other coefficients, for fitting, and for `launches`
// consecutive launches (at least 1; kg_model_join computes their bound and features).
double kg_model_estimate(double bound, const double feature[KG_FEATURE_COUNT], int launches,
                         bool warm, const struct kg_model_coefficients *coefficients);
// Overhead of launches: those after the first find warm caches.
double kg_model_overhead(int launches, bool warm, const struct kg_model_coefficients *coefficients);

// Consecutive launches joined into one: bounds and expected times add up, and every other feature
// is the mean over the launches, weighted by their expected times. Derived features must be derived
// again. Zero-initialised: no launch.
struct kg_model_joined {
    int launches;
    double bound; // seconds
    double feature[KG_FEATURE_COUNT];
};
void kg_model_join(struct kg_model_joined *joined, double bound,
                   const double feature[KG_FEATURE_COUNT]);

// The fastest format on `sm` that the kernel's matrix instructions name; false when none does.
bool kg_model_format(const struct kg_asm_kernel *kernel, const struct kg_sm *sm,
                     enum kg_matrix *format);

// "memory", "tensor", …
const char *kg_term_name(enum kg_term term);
const char *kg_feature_name(enum kg_feature feature);

#endif
