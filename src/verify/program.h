// The reference's compiled form of a definition: passes over blocks of lanes. Internal to
// src/verify.
//
// An instance becomes a list of passes. A pass fills one field (an output, a local, or the value of
// a reduction inside an expression) and contains at most one reduction. Its body is a flat list of
// steps over registers; each register holds KG_LANES numbers. A block of lanes consists of output
// elements, or of points of the reduction, whichever accesses memory better (plan.c).
//
// There are two kinds of numbers: reals (f64, for every float type) and integers (int64, for I64
// and BOOL). A register may have slack. For reals it is the absolute error that a correct kernel
// may have made so far; for integers it is 0, or infinity if rounding may have decided the value.
// Infinite slack means "undecidable" in both cases.

#ifndef KG_VERIFY_PROGRAM_H
#define KG_VERIFY_PROGRAM_H

#include "analyze/problem.h"

#define KG_LANES 128

// A tensor in the reference: dense, row-major, decoded. Only the box [low, low + extent) of the
// `shape` is allocated when windows of the outputs are requested.
struct kg_field {
    const struct kg_tensor *tensor; // NULL: the value of an inner reduction
    bool is_real;
    bool has_slack;
    int rank;
    int64_t shape[KG_MAX_INDICES];
    bool wanted; // some element is needed; otherwise the box is empty
    int64_t low[KG_MAX_INDICES];
    int64_t extent[KG_MAX_INDICES];
    int64_t stride[KG_MAX_INDICES];
    int64_t count; // of the box
    double *real;
    int64_t *integer;
    double *slack; // when has_slack
    // A large input is not decoded but read where it lies; then the box is the whole tensor.
    const void *raw;
};

// The rounding of a compute type.
struct kg_precision {
    double unit;   // half the distance from 1 to the next value
    double tiny;   // what gradual underflow may lose in one arithmetic operation
    double normal; // smallest normal value: functions may flush smaller results to zero
    double largest;
    double limit; // beyond it an intermediate has overflowed, and no result of it is decidable
};

extern const struct kg_precision kg_precisions[KG_TYPE_F64 + 1];
// The same without a limit, for values that are stored next, where overflow means infinity.
extern const struct kg_precision kg_precisions_stored[KG_TYPE_F64 + 1];

struct kg_term {
    int axis;
    int64_t coefficient;
};

// One subscript of a read: affine in the axes, or the integer in a register.
struct kg_subscript {
    int term_count;
    struct kg_term terms[KG_MAX_INDICES];
    int64_t constant;
    int reg; // < 0: affine
};

struct kg_read {
    int field;
    int slot; // position in pass->reads
    int rank;
    struct kg_subscript subscripts[KG_MAX_INDICES];
    int pad;        // register of the pad's value, < 0: none, subscripts are clamped
    bool uncertain; // the register of a subscript has slack
};

enum kg_step_kind {
    KG_STEP_CONSTANT,
    KG_STEP_AXIS,
    KG_STEP_READ,
    KG_STEP_REAL,       // function of reals, giving a real
    KG_STEP_COMPARE,    // function of reals, giving a boolean
    KG_STEP_INTEGER,    // function of integers
    KG_STEP_CHOOSE,     // `where` over reals
    KG_STEP_TO_REAL,    // integer -> real
    KG_STEP_TO_INTEGER, // real -> integer, toward zero, wrapped to `dtype`
    KG_STEP_WRAP,       // integer -> integer of `dtype`
    KG_STEP_TO_TRUTH,   // real -> nonzero
    KG_STEP_NARROW,     // real -> real, when f64 is stored as f32, since a kernel may round first
    KG_STEP_ROUND,      // real -> real, rounded to `dtype`
};

struct kg_step {
    enum kg_step_kind kind;
    enum kg_function function;
    const struct kg_precision *precision; // of the result, when real
    double real;                          // CONSTANT
    int64_t integer;                      // CONSTANT
    int axis;                             // AXIS
    const struct kg_read *read;           // READ
    enum kg_dtype dtype;                  // ROUND, WRAP, TO_INTEGER
    int result;
    int argument_count;
    int arguments[3];
    uint32_t axes; // axes that the result depends on, as bits
    bool varying;  // differs from lane to lane; otherwise only lane 0 is computed
    bool spread;   // not varying, but used by varying steps: lane 0 is copied to all
};

struct kg_register {
    bool is_real;
    bool has_slack;
    int step; // the step that writes it
};

struct kg_axis {
    const struct kg_index *index;
    int64_t begin; // of the whole range
    int64_t end;
    int64_t first; // of the computed range: set by kg_program_plan
    int64_t extent;
};

enum kg_mode {
    KG_MODE_OUTPUTS, // lanes are output elements; a reduction is a loop around the steps
    KG_MODE_POINTS,  // lanes are points of the reduction of one output element
    KG_MODE_SCAN,    // lanes are points of a scan, whose results are written as it proceeds
    KG_MODE_PRODUCT, // no lanes: a product of two matrices (product.c)
};

struct kg_pass {
    int field;
    int output_axes;
    int axis_count;
    struct kg_axis axes[KG_MAX_INDICES]; // those of the field, then the reduced ones
    bool has_reduce;
    enum kg_reduce reduce;
    bool reduce_real;                     // the body is real
    const struct kg_precision *precision; // of the sum, when the result is real
    int value;                            // register of the body
    int mask; // register that says whether this point takes part; < 0: all do
    // A scan in one sweep: the bound is output axis `scan_axis` plus `scan_offset`.
    bool can_scan;
    int scan_axis;
    int64_t scan_offset;
    enum kg_relation relation;
    // A sum of products of two fields, reads[0] and reads[1]. Output axes that only the first or
    // only the second depends on are rows or columns.
    bool is_product;

    int step_count;
    struct kg_step *steps;
    int step_capacity;
    int register_count;
    struct kg_register *registers;
    int register_capacity;
    int read_count;
    const struct kg_read **reads;
    int read_capacity;

    // Set by kg_program_plan.
    enum kg_mode mode;
    int lane_axis; // the first axis whose values differ between lanes
    int lane_end;  // one past the last
    int before;    // steps[0..before) do not depend on reduced axes: once per block
    double cost;   // estimated, in steps times lanes
};

struct kg_program {
    const struct kg_problem *problem;
    bool values_only; // no slack, sums without compensation
    struct kg_arena arena;
    int field_count; // op->tensors first
    struct kg_field *fields;
    int field_capacity;
    int pass_count;
    struct kg_pass **passes; // in order of execution
    int pass_capacity;
};

// lower.c: every statement into passes.
enum kg_status kg_program_make(const struct kg_problem *problem, bool values_only,
                               struct kg_program **program, struct kg_error *error);
void kg_program_free(struct kg_program *program);

// lower_steps.c: turns one expression into steps of `pass`. `reduced` makes a field of a reduction
// inside the expression and returns the field's number, with the indices it runs over.
struct kg_lowering {
    struct kg_program *program;
    const struct kg_statement *statement;
    struct kg_error *error;
    enum kg_status status; // sticky
};
int kg_lower_expr(struct kg_lowering *lowering, struct kg_pass *pass, const struct kg_expr *expr);
// The same, converted to `type`.
int kg_lower_as(struct kg_lowering *lowering, struct kg_pass *pass, const struct kg_expr *expr,
                enum kg_type type);
// Wraps the integer in a register to a narrow integer type.
int kg_lower_wrapped(struct kg_lowering *lowering, struct kg_pass *pass, int value,
                     enum kg_dtype dtype);
// The truth value of `axis relation bound`.
int kg_lower_relation(struct kg_lowering *lowering, struct kg_pass *pass, int axis,
                      enum kg_relation relation, const struct kg_expr *bound);
int kg_lower_both(struct kg_lowering *lowering, struct kg_pass *pass, int left, int right);
bool kg_lower_affine(struct kg_lowering *lowering, const struct kg_pass *pass,
                     const struct kg_expr *expr, struct kg_subscript *subscript);
// Grows an arena array by one element: returns the array or a copy; NULL, with the error recorded,
// when out of memory.
void *kg_lower_grow(struct kg_lowering *lowering, void *array, int count, int *capacity,
                    size_t size);
int64_t kg_lower_size(struct kg_lowering *lowering, const struct kg_expr *expr);

// lower.c: the field that holds the value of an inner reduction, and its indices.
int kg_lower_reduction(struct kg_lowering *lowering, const struct kg_pass *around,
                       const struct kg_expr *expr, int *count, int axes[KG_MAX_INDICES]);

// lower_steps.c: reads element [axes[0], ..., axes[count - 1]] of a field that a pass before fills.
int kg_lower_field_read(struct kg_lowering *lowering, struct kg_pass *pass, int field, int count,
                        const int *axes);
int kg_lower_multiply(struct kg_lowering *lowering, struct kg_pass *pass, int left, int right,
                      enum kg_type type);

// plan.c: computes the boxes of all fields from those of the outputs, which the caller sets, then
// modes and lanes.
void kg_program_plan(struct kg_program *program);

// The addresses of a read for the current lanes. Recomputed when the lanes change.
struct kg_view {
    bool contiguous;                         // offset[i] == offset[0] + i
    bool scattered;                          // a subscript is a register that differs between lanes
    int64_t offset[KG_LANES];                // in elements of the field
    int64_t share[KG_MAX_INDICES][KG_LANES]; // contribution of each lane to each subscript
    int64_t low[KG_MAX_INDICES];             // the least of these
    int64_t high[KG_MAX_INDICES];
};

// The registers of one thread.
struct kg_frame {
    const struct kg_program *program;
    const struct kg_pass *pass;
    int lanes;                              // in use
    int64_t lanes_start;                    // position in the lane axes' space, -1: none yet
    int64_t axis[KG_MAX_INDICES];           // value of each axis, without the lanes' contribution
    int64_t lane[KG_MAX_INDICES][KG_LANES]; // the lanes' contribution, for lane axes
    struct kg_view *views;                  // by read slot
    double **real;                          // by register
    int64_t **integer;
    double **slack; // never NULL: zeros when the register has no slack
    void *memory;
};

// steps.c
enum kg_status kg_frame_make(const struct kg_program *program, const struct kg_pass *pass,
                             struct kg_frame **frame, struct kg_error *error);
void kg_frame_free(struct kg_frame *frame);
void kg_steps_run(struct kg_frame *frame, int from, int to);

// loads.c
void kg_views_update(struct kg_frame *frame); // after lanes changed
void kg_view_read(struct kg_frame *frame, const struct kg_step *step, int lanes);

// reals.c: functions of reals. Slack is written when not NULL.
bool kg_reals_known(enum kg_function function); // takes reals, returns a real
bool kg_reals_exact(enum kg_function function); // ... and rounds nothing
void kg_reals_apply(const struct kg_step *step, double *result, double *slack,
                    const double *const *arguments, const double *const *slacks, int lanes);
void kg_reals_compare(enum kg_function function, int64_t *result, double *slack,
                      const double *const *arguments, const double *const *slacks, int lanes);
void kg_reals_choose(double *result, double *slack, const int64_t *condition,
                     const double *undecided, const double *const *arguments,
                     const double *const *slacks, int lanes);
void kg_reals_truncate(int64_t *result, double *slack, const double *argument,
                       const double *argument_slack, int lanes);
void kg_reals_round(enum kg_dtype dtype, double *result, double *slack, const double *argument,
                    const double *argument_slack, int lanes);

// integers.c
void kg_integers_apply(enum kg_function function, int64_t *result, double *slack,
                       const int64_t *const *arguments, const double *const *slacks, int lanes);
int64_t kg_integers_wrap(enum kg_dtype dtype, int64_t value);

// totals.c: reductions in progress, one per lane.
struct kg_total {
    double value;     // sum, product or extreme so far
    double rest;      // rounding error of the sum so far
    double magnitude; // sum of |term|, or product of those factors whose |factor| > 1
    double slack;     // of the sum or product; argmax: of the winner
    // The least and the largest term of a sum. What the largest or smallest element may be, or a
    // loser of argmax. For products `low` is the product of those factors whose |factor| < 1, but
    // zeros.
    double low;
    double high;
    int64_t integer; // integer results, among them argmax's index
    int64_t best;    // argmax of integers: the value
    int64_t count;
    bool undecided;
};
void kg_total_start(const struct kg_pass *pass, struct kg_total *total);
// Adds lanes [from, to) of the pass's value to the totals, where its mask allows: lane from + i to
// totals[i * step].
void kg_totals_add(const struct kg_pass *pass, const struct kg_frame *frame, int from, int to,
                   int step, struct kg_total *totals);
void kg_total_merge(const struct kg_pass *pass, const struct kg_total *from, struct kg_total *into);
// Either `real` or `integer` is NULL, and `slack` may be.
void kg_total_finish(const struct kg_pass *pass, const struct kg_total *total, double *real,
                     int64_t *integer, double *slack);

// plain_totals.c: reductions of values alone, one per lane.
bool kg_plain_totals_fit(const struct kg_program *program, const struct kg_pass *pass);
void kg_plain_totals_start(const struct kg_pass *pass, double totals[KG_LANES]);
void kg_plain_totals_add(const struct kg_pass *pass, const struct kg_frame *frame,
                         double totals[KG_LANES]);
// The total of all of totals[0..lanes), each of which has `points` / `lanes` points.
double kg_plain_totals_merge(const struct kg_pass *pass, const double *totals, int lanes);
double kg_plain_totals_finish(const struct kg_pass *pass, double total);

// product.c
bool kg_product_fits(const struct kg_program *program, const struct kg_pass *pass);
int64_t kg_product_tasks(const struct kg_program *program, const struct kg_pass *pass);
enum kg_status kg_product_run(const struct kg_program *program, const struct kg_pass *pass,
                              int64_t task);

// execute.c
enum kg_status kg_program_run(struct kg_program *program, int threads, const volatile int *cancel,
                              struct kg_error *error);

#endif
