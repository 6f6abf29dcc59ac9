// KernelGen's one public header.
//
// One operator definition in, a verified and tuned kernel out. Every function that can fail
// returns an `enum kg_status`; results come back through trailing out-parameters, which are
// cleared on failure; `kg_context_error` tells what happened, where, and what to do next. A NULL
// argument that is not allowed gives KG_ERROR_ARGUMENT, and a message that names it.
//
// Structs that callers fill in or read begin with `size`, which the caller sets to sizeof the
// struct before any use, so that a later version can add members at the end:
//
//     struct kg_options options = {.size = sizeof options, .threads = 4};
//     struct kg_bench_result bench = {.size = sizeof bench};
//
// A size of 0 (an all-zero struct) means the struct as it was first published. Members that the
// caller's struct does not have count as zero and are not written. Members that the library does
// not know must be zero (else KG_ERROR_ARGUMENT), and are cleared in results.

#ifndef KERNELGEN_H
#define KERNELGEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KG_API __attribute__((visibility("default")))

enum kg_status {
    KG_OK = 0,
    KG_ERROR_ARGUMENT,    // a call or an option makes no sense
    KG_ERROR_DEFINITION,  // a .kg text is wrong; the message shows where
    KG_ERROR_SHAPE,       // sizes, dtypes or strides contradict the definition
    KG_ERROR_MEMORY,      // an allocation failed
    KG_ERROR_IO,          // a file could not be read or written
    KG_ERROR_CORRUPT,     // the content of a file is malformed or damaged
    KG_ERROR_UNSUPPORTED, // correct, but no family or device can do it
    KG_ERROR_MISSING,     // the machine lacks something (a compiler, a device, room on a disk)
    KG_ERROR_COMPILE,     // a compiler refused generated or foreign code
    KG_ERROR_TIMEOUT,     // a compiler or a kernel did not finish in time
    KG_ERROR_FAULT,       // a kernel crashed
    KG_ERROR_WRONG,       // the accuracy gate rejected the kernel
    KG_ERROR_NO_WISDOM,   // nothing is known, and searching was not allowed
    KG_ERROR_CANCELLED,   // the caller asked to stop
    KG_STATUS_COUNT
};

enum kg_dtype {
    KG_F16,
    KG_BF16,
    KG_F32,
    KG_F64,
    KG_I8,
    KG_U8,
    KG_I32,
    KG_I64,
    KG_BOOL, // one byte, 0 or 1
    KG_U4,   // two elements a byte, flat row-major order, the even element in the low half
    KG_I4,
    KG_F8E4M3, // OCP's 8-bit float without infinities: up to 448, and NaN beyond
    KG_F8E5M2, // OCP's 8-bit float with IEEE semantics: up to 57344, and infinity beyond
    KG_I16,
    KG_U16,
    KG_U32,
    KG_DTYPE_COUNT
};

enum kg_rigor {
    KG_RIGOR_ESTIMATE,   // rules only, nothing is measured
    KG_RIGOR_MEASURE,    // prune, then measure a few
    KG_RIGOR_PATIENT,    // a wider space, more finalists
    KG_RIGOR_EXHAUSTIVE, // every valid config
    KG_RIGOR_WISDOM,     // only what is known
    KG_RIGOR_DEFAULT,    // measure; estimate for problems too small for a search to pay
    KG_RIGOR_COUNT
};

#define KG_MAX_RANK 8

// Opaque. A context is used by one thread at a time; different contexts are independent. Plans may
// be executed by any number of threads at once.
struct kg_context; // settings, records, devices, and the last error
struct kg_device;  // owned by its context
struct kg_op;      // one checked definition
struct kg_problem; // an op with every dtype, param and size bound
struct kg_plan;    // a chosen, compiled, loaded kernel for a problem

// ---- Context

struct kg_options {
    size_t size;
    const char *home; // folder of records and compiled objects; NULL: $KERNELGEN_HOME, or XDG
    int threads;      // cores to use; 0: all available
    const volatile int *cancel; // long work stops soon after this becomes nonzero; may be NULL
    // Called from the thread that called KernelGen, between steps of long work; may be NULL.
    // `total` may grow while the work goes on.
    void (*progress)(void *user, const char *what, int done, int total);
    // Messages that are not failures ("records.db was corrupt and was moved aside"); may be NULL.
    void (*notice)(void *user, const char *text);
    void *user;
    // A wisdom file to use besides the records, which come first. It is read when the first plan is
    // made and never written. NULL: $KERNELGEN_WISDOM; "": none. Errors in it, and the number of
    // its lines for other machines, are reported once through `notice`.
    const char *wisdom;
};

// `options` may be NULL. On failure `*context` is still usable for kg_context_error, and must be
// destroyed, unless it is NULL (out of memory).
// Records that cannot be opened (no HOME, a read-only folder, a full disk) are not a failure:
// everything works, but results are lost when the context is destroyed. kg_context_error says why
// until the next call, and `notice` when the first plan is made; functions of the records
// themselves fail. A record that cannot be written later (the disk has become full) is reported
// through `notice`, once.
KG_API enum kg_status kg_context_create(const struct kg_options *options,
                                        struct kg_context **context);
// Sets how kernels are timed from now on, which is part of every record's key: "cold launch" (the
// default), "warm launch", "cold graph" or "warm graph"; docs/timing.md explains them.
KG_API enum kg_status kg_context_set_protocol(struct kg_context *context, const char *protocol);
// Multiplies the limits of the accuracy gate on work and memory, from 0.01 to 1000; 1 by default.
KG_API enum kg_status kg_context_set_effort(struct kg_context *context, double effort);
// Whether kernels that have passed the accuracy gate are run once more under tools that see what
// results do not show: of kg_plan_verify and kg_problem_verify_file, and the final one of kg_build.
// On GPUs these are memcheck, racecheck and synccheck of NVIDIA's compute-sanitizer, on the host
// the C compiler's sanitizers of addresses and of undefined behaviour. It takes some seconds to
// minutes. KG_ERROR_MISSING where a tool is not installed. false by default.
KG_API void kg_context_set_sanitize(struct kg_context *context, bool sanitize);
// Whether the best known choice of the nearest shape may be used for a problem of which nothing is
// known, if nothing is to be measured (KG_RIGOR_ESTIMATE, KG_RIGOR_WISDOM). true: if no size
// differs by more than a factor of two and its bound is not worse than that of the rules' choice.
// false (the default): only under KG_RIGOR_ESTIMATE, and if at that shape it was measured to be
// faster than the rules' choice for this problem. A rigor that measures always tries it, and keeps
// it if it is the fastest (docs/wisdom.md).
KG_API void kg_context_set_nearest(struct kg_context *context, bool nearest);
KG_API void kg_context_destroy(struct kg_context *context);
// How the time since the context was created was spent (compiling, judging, measuring ...), as
// elapsed time and summed over all threads and processes. A table, or JSON.
KG_API enum kg_status kg_context_timings(struct kg_context *context, bool json, char **text);
// The message of the last failed call on this context. Borrowed, valid until the next call.
KG_API const char *kg_context_error(const struct kg_context *context);

KG_API const char *kg_version(void);
KG_API const char *kg_status_name(enum kg_status status);
KG_API const char *kg_dtype_name(enum kg_dtype dtype);
// Bits of an element: 4 if two share a byte. 0 if `dtype` is not a dtype.
KG_API int kg_dtype_bits(enum kg_dtype dtype);
// NumPy's name of the element type, without byte order: "f2". `*is_raw` (may be NULL) is set if
// NumPy has no such type and files store the bits as unsigned integers: "u1" for f8e4m3, and for
// two elements of u4. NULL if `dtype` is not a dtype.
KG_API const char *kg_dtype_numpy(enum kg_dtype dtype, bool *is_raw);
KG_API const char *kg_rigor_name(enum kg_rigor rigor);
// Texts that KernelGen returns through `char **` are freed with this. NULL is legal.
KG_API void kg_text_release(char *text);
// Replaces in place what a terminal would take as a command, and bytes that are no UTF-8, by
// question marks. For texts with names from elsewhere; messages, logs and lists of KernelGen are so
// already.
KG_API void kg_text_make_printable(char *text);

// ---- Devices

// "host", "cuda:0" ...; "sm_90a", "h100": a described GPU, present or not, for which everything but
// running works; NULL: the best device that is present. Borrowed: the context closes it.
KG_API enum kg_status kg_context_device(struct kg_context *context, const char *name,
                                        struct kg_device **device);
// The target of the device's kernels: "host" for C, "cuda" for CUDA C++. NULL if `device` is NULL.
KG_API const char *kg_device_target(const struct kg_device *device);
// Do processes that judge and time kernels there take turns, so that none disturbs the times of
// another? Several builds at once then cost no accuracy. False if `device` is NULL.
KG_API bool kg_device_takes_turns(const struct kg_device *device);
// All devices, and the backends without one with the reason: a table, or JSON.
KG_API enum kg_status kg_context_devices(struct kg_context *context, bool json, char **text);

// ---- Definitions

// Parses and checks a whole text, and picks the op called `name` (NULL: the only one). `file` is
// the name shown in diagnostics. Plans and problems keep what they need: an op may be destroyed
// before them. Of inputs, intermediates, params and functions that are never used `notice` is told.
KG_API enum kg_status kg_op_parse(struct kg_context *context, const char *file, const char *text,
                                  size_t length, const char *name, struct kg_op **op);
KG_API void kg_op_destroy(struct kg_op *op);
// The names of all ops of a text, in order, one per line. Of several ops, `notice` is told what
// none of them uses.
KG_API enum kg_status kg_op_names(struct kg_context *context, const char *file, const char *text,
                                  size_t length, char **names);
KG_API const char *kg_op_name(const struct kg_op *op);
// The sizes of an op, without params, in the order of their first appearance; NULL beyond the last.
KG_API const char *kg_op_size_name(const struct kg_op *op, int index);

// A text to compare, and the name of its file, for places. This struct will not grow.
struct kg_definitions {
    const char *file;
    const char *text;
    size_t length;
};

// Compares two versions of a text op by op: which differences are of the interface, of the formula,
// of a param's default, of the goal, or only of how it is written, and what has to be made again:
// files of the bundle (with default dtypes and params), kernels, records (docs/bundle.md). `name`:
// only this op; NULL: all. A table, or JSON. `*differs`: they do not mean the same.
KG_API enum kg_status kg_definitions_compare(struct kg_context *context,
                                             const struct kg_definitions *before,
                                             const struct kg_definitions *after, const char *name,
                                             bool json, bool *differs, char **text);

// ---- Problems

// {"T", "f16"}, {"P", "4096"}, {"eps", "1e-6"}: a dtype variable, a size or a param. This struct
// will not grow, so it has no `size`.
struct kg_binding {
    const char *name;
    const char *value;
};

// A tensor in memory. Strides are in elements. In an array, `size` of the first element applies to
// all.
struct kg_tensor_info {
    size_t size;
    const char *name;
    bool is_output;
    enum kg_dtype dtype;
    int rank;
    int64_t shape[KG_MAX_RANK];
    int64_t stride[KG_MAX_RANK];
    size_t bytes; // from the first element to one past the last
    // Of a tensor of an op: the dtype variable it is declared with, "T"; NULL: a fixed dtype.
    const char *dtype_variable;
    // The definition declares it `packed`: rank, shape and strides are those of its panels in
    // memory.
    bool is_packed;
};

// Inputs and outputs as the definition declares them: name, is_output, rank and dtype, which is
// KG_DTYPE_COUNT for a dtype variable. An index out of range gives KG_ERROR_ARGUMENT and a NULL
// name. Names are borrowed from the op.
KG_API enum kg_status kg_op_tensor(const struct kg_op *op, int index, struct kg_tensor_info *info);
// Whether that tensor may have this dtype. Only bindings of its dtype variable matter.
KG_API bool kg_op_allows(const struct kg_op *op, int index, enum kg_dtype dtype,
                         const struct kg_binding *bindings, int count);

// Dtypes and params that are not bound take their defaults. Sizes that are not bound are taken
// from the goal's first `tune` row, else its last `verify` row, else by a rule, which a notice says
// (docs/language.md, "Sizes that are not given").
KG_API enum kg_status kg_problem_create(struct kg_context *context, const struct kg_op *op,
                                        const struct kg_binding *bindings, int count,
                                        struct kg_problem **problem);
// Takes sizes, dtypes and strides from existing tensors (name, dtype, rank, shape and stride are
// read; outputs may be omitted). Rank -1 stands for a contiguous tensor of `bytes` bytes whose
// shape is not known: its sizes must follow from other tensors and bindings. Errors name the tensor
// that contradicts the definition.
KG_API enum kg_status kg_problem_create_for(struct kg_context *context, const struct kg_op *op,
                                            const struct kg_tensor_info *tensors, int tensor_count,
                                            const struct kg_binding *bindings, int count,
                                            struct kg_problem **problem);
KG_API void kg_problem_destroy(struct kg_problem *problem);
// Inputs, then outputs, in the order of the definition, which is the order for kg_plan_execute. An
// index out of range is handled as by kg_op_tensor.
KG_API int kg_problem_tensor_count(const struct kg_problem *problem);
KG_API enum kg_status kg_problem_tensor(const struct kg_problem *problem, int index,
                                        struct kg_tensor_info *info);
// How a dimension of that tensor follows from the sizes of the op: "P", "ceil(K/128)". It is made
// of sizes, numbers, + - * / (rounding down) % and ceil(a/b); params are numbers.
KG_API enum kg_status kg_problem_extent(const struct kg_problem *problem, int index, int dimension,
                                        char **text);
// The definition document as Markdown ("en", also NULL, or "zh") or JSON. `device` may be NULL.
KG_API enum kg_status kg_problem_document(const struct kg_problem *problem,
                                          struct kg_device *device, const char *language, bool json,
                                          char **text);

// ---- Plans

// Uses wisdom, of the records and then of the wisdom file; without any, does what `rigor` allows,
// for at most `seconds` (0: no limit) after the first working plan is made. The plan has passed the
// accuracy gate, except under KG_RIGOR_ESTIMATE, which measures and verifies nothing
// (kg_plan_verify does). If other kernels are emitted for a known choice today than those it was
// measured with, it is judged and timed again before use; under KG_RIGOR_ESTIMATE, or for a GPU
// that is not present, it is used as it is, a notice says so, and kg_plan_verified returns false.
// Under KG_RIGOR_DEFAULT the best of a search that was not finished is used, too.
KG_API enum kg_status kg_plan_create(const struct kg_problem *problem, struct kg_device *device,
                                     enum kg_rigor rigor, double seconds, struct kg_plan **plan);
KG_API void kg_plan_destroy(struct kg_plan *plan);
// `tensors` are base pointers in the order of kg_problem_tensor, with the layouts it reports, in
// memory that the device can access. `stream` is NULL on the host. Outputs must not overlap any
// other tensor.
KG_API enum kg_status kg_plan_execute(const struct kg_plan *plan, void *const *tensors,
                                      void *stream);
// The same kernels on contiguous tensors of other sizes: `sizes` has `count` numbers in the order
// of kg_op_size_name. Nothing is compiled, chosen or measured: the first execution at new sizes
// computes its launches, which takes some microseconds for each kernel, and those of the last 64
// sets of sizes are kept. (A CUDA graph that captured an execution uses what is kept.)
// KG_ERROR_SHAPE if the definition does not allow these sizes, KG_ERROR_UNSUPPORTED if the plan is
// of strided tensors, or its kernels count in 32 bits and these sizes need more.
KG_API enum kg_status kg_plan_execute_sized(const struct kg_plan *plan, const int64_t *sizes,
                                            int count, void *const *tensors, void *stream);
// kg_plan_execute for callers of tvm-ffi is exported as __tvm_ffi_kernelgen_execute: its arguments
// are the plan's address as an integer, inputs and outputs. Dtypes, sizes, strides and devices are
// compared with the plan's, and the stream is the caller's current one.
//
// kg_plan_execute on memory of this process, whatever the device: for a GPU, inputs are copied
// there and outputs back. For looking at results, not for speed: every call allocates and copies.
KG_API enum kg_status kg_plan_run(const struct kg_plan *plan, void *const *tensors);

struct kg_verify_result {
    size_t size;
    bool passed;
    uint64_t seed; // reproduces the inputs
    int cases;
    int skipped; // cases that the subject does not support
    int64_t elements;
    double worst;      // largest error / allowed error; at most 1 when passed
    int impostors;     // faulty kernels that the same inputs detected
    char reason[1024]; // when not passed
    // What else should be known, "" if nothing: required sizes that were left out because they are
    // too large, or results that are always the same.
    char remarks[256];
    // The tools that found nothing (kg_context_set_sanitize): "memcheck (41 cases), ..."; "": none
    // was asked for.
    char sanitized[128];
};

// The accuracy gate. `seed` 0: fresh inputs. A rejection returns KG_OK with passed == false.
KG_API enum kg_status kg_plan_verify(const struct kg_plan *plan, uint64_t seed,
                                     struct kg_verify_result *result);
// The same gate for a foreign kernel: on the host a C file with a function named like the op, with
// the signature that `kernelgen emit --target host` shows; on GPUs a .cu or .ptx file that
// describes its launch in a comment, as the files of `emit --target cuda` and `ptx` do
// (docs/verification.md). A file that does not fit gives KG_ERROR_ARGUMENT; with a described
// device, a file that compiles and fits gives KG_ERROR_MISSING.
KG_API enum kg_status kg_problem_verify_file(const struct kg_problem *problem,
                                             struct kg_device *device, const char *path,
                                             uint64_t seed, struct kg_verify_result *result);
// kg_problem_verify_file of several files, all by the same inputs, which are made once. `judged` is
// called once for each file, in their order: with its result or, if `status` says that there is
// none, with NULL and the reason in kg_context_error. It must not use the context otherwise.
// Returns KG_OK when `judged` has been called for all files, whatever their results.
KG_API enum kg_status
kg_problem_verify_files(const struct kg_problem *problem, struct kg_device *device,
                        const char *const *paths, int count, uint64_t seed,
                        void (*judged)(void *user, int index, enum kg_status status,
                                       const struct kg_verify_result *result),
                        void *user);

struct kg_bench_result {
    size_t size;
    double seconds, spread;                   // the plan: median and interquartile range
    double baseline_seconds, baseline_spread; // timed alternately with it
    double bound_seconds;                     // the roofline's
    double speedup;                           // baseline / plan
    double goal;                              // the definition's
    int samples;
    double original_seconds; // of the kernels that kg_plan_override replaced; 0: none were
    double noise;            // a speedup may be off by this part of itself
    bool goal_met;           // the speedup is no less than the goal, or only within the noise
};

// The performance gate: the plan against the baseline of its device. On the host that is the
// definition as written: one plain loop nest per statement, same compiler, flags and cores.
KG_API enum kg_status kg_plan_bench(const struct kg_plan *plan, struct kg_bench_result *result);

// The foreign kernels in the files of a folder (as for kg_problem_verify_file) beside the plan's:
// each is judged by the accuracy gate in a process of its own and, if it passed, timed alternately
// with the plan's kernel and the baseline. `*text` ranks them, with a failing file's reason in a
// line, as text or JSON. Outcomes are recorded as foreign ones, never become wisdom, and are not
// measured again for the same bytes, device and compiler beside the same kernels. A file that fails
// is a result: KG_OK. A folder that cannot be read gives KG_ERROR_IO, one without kernels for the
// device KG_ERROR_ARGUMENT. For a described device files are compiled and read; `*unrun` (may be
// NULL) counts those.
KG_API enum kg_status kg_plan_contest(const struct kg_plan *plan, const char *folder, bool json,
                                      char **text, int *unrun);

// A plan that runs the PTX in a file, an edited copy of what kg_plan_assembly returns, instead of
// the generated kernels. Its choice is that of the file's "// Choice:" lines or, without any, of
// `plan`. kg_plan_verify judges it; kg_plan_bench judges it first, and records the outcome under
// the file's name: it never becomes wisdom. A file that does not fit gives KG_ERROR_ARGUMENT; with
// a described device, one that fits gives KG_ERROR_MISSING.
KG_API enum kg_status kg_plan_override(const struct kg_plan *plan, const char *path,
                                       struct kg_plan **overridden);

// One line: families and configs.
KG_API const char *kg_plan_choice(const struct kg_plan *plan);
// Whether exactly these kernels have passed the accuracy gate, when they were chosen or when they
// became wisdom.
KG_API bool kg_plan_verified(const struct kg_plan *plan);
// Seconds: measured when these kernels were chosen (0: never), and the roofline's bound.
KG_API void kg_plan_cost(const struct kg_plan *plan, double *measured, double *bound);
// Complete source, one file that compiles alone: C on the host, CUDA C++ on GPUs.
KG_API enum kg_status kg_plan_source(const struct kg_plan *plan, char **text);
// The source of the plan that kg_plan_create would make. Nothing is compiled, and no compiler is
// needed, unless a search is necessary.
KG_API enum kg_status kg_problem_source(const struct kg_problem *problem, struct kg_device *device,
                                        enum kg_rigor rigor, double seconds, char **text);
// The source for a target whose kernels no device here runs: "triton", a Python module with Triton
// kernels for every dtype that the op allows. It depends on the problem's params alone.
KG_API enum kg_status kg_problem_emit(const struct kg_problem *problem, const char *target,
                                      char **text);
// As kg_problem_source for GPUs, as a .cu file for nvcc: besides the kernels it has host functions
// that launch them for this problem's sizes, with everything that a launch needs. Its comments tell
// how to call them. KG_ERROR_UNSUPPORTED on the host, where the source is a function already.
KG_API enum kg_status kg_problem_launcher(const struct kg_problem *problem,
                                          struct kg_device *device, enum kg_rigor rigor,
                                          double seconds, char **text);
// The bundle of an op (docs/bundle.md): NAME_triton.py, NAME_baseline.py, NAME_accuracy.py and
// NAME_performance.py, written to a folder, which is made if necessary. Each file appears whole.
// `paths` receives their names, a line each.
KG_API enum kg_status kg_problem_bundle(const struct kg_problem *problem, const char *folder,
                                        char **paths);
// Whether the files of each bundle in a folder belong together: names, parameters, checks,
// constants and formulas (docs/bundle.md). With a problem (NULL: none) only the bundle of its op is
// read, and compared with its definition, too. `findings` receives the number of what is wrong,
// `text` what it is, as lines or as a JSON object.
KG_API enum kg_status kg_bundle_consistency(struct kg_context *context, const char *folder,
                                            const struct kg_problem *definition, bool json,
                                            int *findings, char **text);
// PTX, on GPUs.
KG_API enum kg_status kg_plan_assembly(const struct kg_plan *plan, char **text);
// Why this config: what was tried, pruned and refused, with reasons. Markdown or JSON.
KG_API enum kg_status kg_plan_explain(const struct kg_plan *plan, bool json, char **text);
// What became of each candidate on record for the plan's problem, kept or lost, with one reason in
// words: a line each, or a JSON array. Empty if there is none.
KG_API enum kg_status kg_plan_candidates(const struct kg_plan *plan, bool json, char **text);

// ---- All stages

struct kg_build_options {
    size_t size;
    const char *folder; // of the bundle; NULL: nothing is written
    enum kg_rigor rigor;
    double seconds;       // 0: no limit
    const char *language; // of definition document and log: "en" (also NULL) or "zh"
    const char *override; // a file for kg_plan_override, measured last and used; NULL: none
    // A folder for kg_plan_contest, whose kernels compete with the last version; NULL: none. What
    // is shipped is the generated one.
    const char *contest;
};

struct kg_build_result {
    size_t size;
    // Set by the caller, each to a struct with its own size, or NULL: the verdict of the first
    // version (with an override, of its kernels), and the times of the last one.
    struct kg_verify_result *verify;
    struct kg_bench_result *bench;
    int rounds;    // of optimisation, after the first version
    bool goal_met; // the speed-up asked for was reached
    int64_t space; // configs in the space, and their outcomes
    int valid, pruned, measured, failed;
    // What keeps further candidates from being faster, so that none were tried: "memory bandwidth".
    // NULL: nothing does. A constant.
    const char *limit;
    // Seconds of the best version after the search over everything, in its race; the rounds after
    // it change one kind of thing each. 0: nothing was measured.
    double searched_seconds;
    char stopped[384]; // why the last round was the last; "": there was none
};

// The five stages: define, generate, verify, optimise, record. `plan` may be NULL if the plan is
// not needed, and `options` if all are zero. A definition that cannot be verified gives
// KG_ERROR_WRONG, with the verdict.
KG_API enum kg_status kg_build(const struct kg_problem *problem, struct kg_device *device,
                               const struct kg_build_options *options,
                               struct kg_build_result *result, struct kg_plan **plan);
// Every config with bound, outcome and time, the fastest first; Markdown or JSON. A cancelled
// search returns what it has found; KG_ERROR_CANCELLED if that is nothing.
KG_API enum kg_status kg_profile(const struct kg_problem *problem, struct kg_device *device,
                                 double seconds, bool json, char **text);

// ---- Assembly

// The output of a compiler, read: PTX, a cubin, an x86-64 object. This section needs neither a
// device nor records.
struct kg_assembly;

// `name` is its name in texts; NULL: "assembly". Other or malformed files are refused with the
// offset or line. The bytes are not needed afterwards; the context is.
KG_API enum kg_status kg_assembly_read(struct kg_context *context, const char *name,
                                       const void *bytes, size_t length,
                                       struct kg_assembly **assembly);
KG_API void kg_assembly_destroy(struct kg_assembly *assembly);
// Adds the compiler log of ptxas or NVRTC (-v): advisories, and figures that the file does not
// have.
// `*matched` (may be NULL) is the number of the file's kernels that the log mentions.
KG_API enum kg_status kg_assembly_add_log(struct kg_assembly *assembly, const char *text,
                                          size_t length, int *matched);

// Makes estimates use fitted coefficients (JSON of kg_fit) for devices that it has: those of
// `family`, or of the only family (NULL).
KG_API enum kg_status kg_assembly_use_fit(struct kg_assembly *assembly, const char *json,
                                          size_t length, const char *family);

// -1: not in the file.
struct kg_kernel_figures {
    size_t size;
    const char *name;
    const char *arch; // "sm_90a", "x86-64"
    int registers;    // of a thread
    int barriers;
    int loops;
    int64_t shared_bytes; // static
    int64_t stack_bytes;
    int64_t spill_store_bytes, spill_load_bytes;
    int64_t loop_spill_bytes; // once around every loop
    int64_t parameter_bytes;
    int64_t instructions;
};
KG_API int kg_assembly_kernel_count(const struct kg_assembly *assembly);
// An index out of range gives KG_ERROR_ARGUMENT and a NULL name.
KG_API enum kg_status kg_assembly_kernel(const struct kg_assembly *assembly, int index,
                                         struct kg_kernel_figures *figures);
// The kernel of that name, else the only one whose name contains it.
KG_API enum kg_status kg_assembly_find(const struct kg_assembly *assembly, const char *name,
                                       int *index);

// Zeros (and NULL) for what is unknown; {0} uses only what the file has.
struct kg_assembly_launch {
    size_t size;
    const char *device;   // as for kg_context_device; NULL: one of the code's architecture
    int64_t grid[3];      // blocks
    int block[3];         // threads
    int64_t shared_bytes; // dynamic
    double read_bytes, write_bytes, flops; // compulsory, whatever the kernel
    bool warm;                             // caches keep what the last run left in them
    // Of kernels with known weights, such as "pointwise"; NULL: any. Where nothing is fitted, the
    // estimate has the prior of that family.
    const char *family;
};

struct kg_prediction {
    size_t size;
    const char *device; // NULL: none of that architecture is known
    int threads;        // of a block, as given, by the kernel's launch bounds, or assumed
    bool exact;         // false: registers are unknown, and the occupancy is an upper bound
    int blocks, warps;  // on an SM; 0: the launch fails
    double occupancy;   // of the warps that an SM can hold
    const char *limiter;
    // With a grid, else 0.
    double waves, tail;     // tail: share of block slots that stay empty
    double bound, estimate; // seconds
    const char *bound_by;
};
KG_API enum kg_status kg_assembly_predict(const struct kg_assembly *assembly, int index,
                                          const struct kg_assembly_launch *launch,
                                          struct kg_prediction *prediction);
// Kernel `index` in full, or all (-1), as a text or as JSON (docs/asm.md). `launch` may be NULL.
KG_API enum kg_status kg_assembly_report(const struct kg_assembly *assembly, int index,
                                         const struct kg_assembly_launch *launch, bool json,
                                         char **text);
// Compares kernels `index` and `other_index` of two files; -1: the only kernels, or those with the
// same name.
KG_API enum kg_status kg_assembly_compare(const struct kg_assembly *assembly, int index,
                                          const struct kg_assembly *other, int other_index,
                                          const struct kg_assembly_launch *launch, bool json,
                                          char **text);

// A candidate's measured time.
struct kg_measurement {
    size_t size;
    const char *family;  // candidates of one family and device are fitted together; NULL: ""
    const char *op;      // problems of one op are held out together; NULL: unknown
    const char *problem; // candidates of one problem are compared with each other
    double seconds;
    double spread; // relative: 0.02 is two percent; 0: unknown
};
// One JSON line for kg_fit: what the model knows of kernel `index` in this launch, and its time.
KG_API enum kg_status kg_assembly_sample(const struct kg_assembly *assembly, int index,
                                         const struct kg_assembly_launch *launch,
                                         const struct kg_measurement *measured, char **line);
// Selects samples; NULL: all.
struct kg_sample_filter {
    size_t size;
    const char *op;
    const char *device; // as for kg_context_device, or a part of its name, whatever the case
    const char *family;
};
// Fits the model's coefficients to such lines, per device and family, and reports how well the fit
// orders ops (with one op only: problems) that it has not seen, compared with the prior, the points
// and the bound: a text, or JSON. `lines` NULL: fits to the measured candidates of the records; if
// there are none that pass `filter` (may be NULL), gives KG_ERROR_NO_WISDOM. `name` is the name of
// the lines in errors; NULL: none.
KG_API enum kg_status kg_fit(struct kg_context *context, const char *name, const char *lines,
                             size_t length, const struct kg_sample_filter *filter, bool json,
                             char **text);
// The measured candidates of the records as such lines, for a fit elsewhere.
KG_API enum kg_status kg_samples_export(struct kg_context *context,
                                        const struct kg_sample_filter *filter, char **lines);

// ---- Wisdom and records

// Of an op, or of all (NULL).
KG_API enum kg_status kg_wisdom_list(struct kg_context *context, const char *op, bool json,
                                     char **text);
KG_API enum kg_status kg_wisdom_export(struct kg_context *context, char **lines);
// All or nothing. `*summary` says what was imported, and how many lines cannot match here.
KG_API enum kg_status kg_wisdom_import(struct kg_context *context, const char *lines, size_t length,
                                       char **summary);
// Forgets what is known of an op, or of all (NULL); `*count` is how much that was.
KG_API enum kg_status kg_wisdom_forget(struct kg_context *context, const char *op, int *count);
// Patterns: what tends to win for a class of problem, dtype, bucket of sizes and device, mined from
// the records (docs/patterns.md). A table, or JSON.
KG_API enum kg_status kg_patterns_list(struct kg_context *context, bool json, char **text);
// Whole configs that came near the best of other problems of a class, which searches try, and
// whether before the rule's choice or after it. A list, or JSON.
KG_API enum kg_status kg_favourites_list(struct kg_context *context, bool json, char **text);
// The lessons that patterns are made of, as JSON lines, and back: importing is all or nothing, and
// importing twice changes nothing. `*summary` says what was learned.
KG_API enum kg_status kg_patterns_export(struct kg_context *context, char **lines);
KG_API enum kg_status kg_patterns_import(struct kg_context *context, const char *lines,
                                         size_t length, char **summary);
// The optimisation log of an op (NULL: of all) as Markdown. An op without records is
// KG_ERROR_ARGUMENT.
KG_API enum kg_status kg_log(struct kg_context *context, const char *op, char **text);
// The same in a language: "en" (also NULL) or "zh".
KG_API enum kg_status kg_log_document(struct kg_context *context, const char *op,
                                      const char *language, char **text);
// Writes optimization_log.md and definition.md to a folder, which is made if necessary: the log,
// and the definition document of the problem of the op that was recorded last, made again from the
// op's text on record (with the costs on its device, if that is at hand or known). If no problem of
// the op can be made again, a notice says so and the log stands alone. `paths` receives their
// names, a line each.
KG_API enum kg_status kg_log_folder(struct kg_context *context, const char *op,
                                    const char *language, const char *folder, char **paths);
// The records of an op (NULL: of all) as one self-contained HTML page: what was chosen, compared
// with roofline and baseline, round by round, and what was discarded and why. `*summary` (may be
// NULL) says what the page shows: "24 problems of 12 ops on 2 devices". An op without records is
// KG_ERROR_ARGUMENT, which names those that have some.
KG_API enum kg_status kg_report(struct kg_context *context, const char *op, char **summary,
                                char **text);
// The figures of that page as text for a terminal of so many columns (40 to 200), in UTF-8 or in
// ASCII, with escape sequences for colours or without; of one op also its rounds.
KG_API enum kg_status kg_report_text(struct kg_context *context, const char *op, int columns,
                                     bool utf8, bool colour, char **text);
// The same page with marks at what got slower or faster since a file of wisdom was exported, and a
// table of it on top. `*slower`: something got slower.
KG_API enum kg_status kg_report_since(struct kg_context *context, const char *path, const char *op,
                                      bool *slower, char **summary, char **text);
// What is on record now beside a file of wisdom that was exported earlier: which problems got
// slower or faster by more than noise, as text or JSON. `*slower`: some did.
KG_API enum kg_status kg_report_against(struct kg_context *context, const char *path,
                                        const char *op, bool json, bool *slower, char **text);

// ---- Weights

// Matrices of 4-bit codes, u4 or i4: what an input declared `packed u4[K, N]` takes.
struct kg_weights {
    size_t size;
    int64_t batch;         // matrices, one behind the other; a single one is 1
    int64_t rows, columns; // K and N
    bool transposed;       // the codes lie as [columns, rows] in memory
};

// Packs matrices for a `packed` input, once for all plans: `codes` are tensors of u4, [batch, rows,
// columns] or, transposed, [batch, columns, rows], contiguous, two codes a byte; `packed` becomes
// the tensor u4[batch, ceil(rows/64), ceil(columns/16), 1024] of docs/packed.md, in which codes
// beyond the rows and columns are zero. Runs on the calling thread. The lengths in bytes must be
// those of the tensors, or KG_ERROR_SHAPE names the right one. The buffers must not overlap.
KG_API enum kg_status kg_pack_weights(struct kg_context *context, const struct kg_weights *weights,
                                      const void *codes, size_t code_bytes, void *packed,
                                      size_t packed_bytes);
// The way back. `packed` is read, `codes` written.
KG_API enum kg_status kg_unpack_weights(struct kg_context *context,
                                        const struct kg_weights *weights, const void *packed,
                                        size_t packed_bytes, void *codes, size_t code_bytes);

// The layers of 4-bit weights in a checkpoint (a .safetensors or .gguf file, or a folder of
// .safetensors): GPTQ, AWQ, compressed-tensors, GGUF Q4_0, Q4_1 and Q4_K. `*text` lists them, as a
// table or JSON. With a `folder` (NULL: none) each is packed into FOLDER/NAME.kgw, compared with
// what was read before it is written, and FOLDER/layers.json lists them. Nothing is written if some
// layer cannot be packed.
KG_API enum kg_status kg_pack_checkpoint(struct kg_context *context, const char *path,
                                         const char *folder, bool json, char **text);

#ifdef __cplusplus
}
#endif
#endif
