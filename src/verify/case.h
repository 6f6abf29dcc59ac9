// One case of the gate: a problem, its inputs, and what the reference says. Internal to src/verify.
//
// All tensors of a case share one block of memory, its *image*: inputs, then outputs, each between
// guard bands. Whatever a kernel writes that is not an element of an output shows up there.

#ifndef KG_VERIFY_CASE_H
#define KG_VERIFY_CASE_H

#include "verify/gate.h"
#include "verify/inputs.h"

#define KG_GUARD_BYTES 512 // before and after every tensor; also its alignment
#define KG_MAX_WINDOWS 3
#define KG_DEFAULT_EFFORT 2.5e7 // see kg_reference_cost: a tenth of a second

struct kg_case {
    struct kg_problem *problem;
    char label[256]; // "P=7 D=513, some NaN, strided"
    uint64_t seed;
    enum kg_input_class class;
    bool strided;
    void *inputs[KG_MAX_TENSORS];   // host memory, laid out as the problem says
    size_t offsets[KG_MAX_TENSORS]; // in the image: inputs, then outputs
    size_t image_bytes;
    // Whole outputs, or up to three windows of outputs too dear to compute.
    bool whole;
    int window_count;
    struct kg_window windows[KG_MAX_WINDOWS][KG_MAX_TENSORS];
    struct kg_expected expected[KG_MAX_WINDOWS][KG_MAX_TENSORS];
};

struct kg_cases {
    int count;
    int capacity;
    struct kg_case **items;
};

// The cases of a gate, by policy: chosen one after the other, filled on all cores.
enum kg_status kg_cases_make(struct kg_cases *cases, const struct kg_op *instance,
                             const struct kg_policy *policy, uint64_t seed, struct kg_error *error);
// Moves all cases of `more` to `cases`.
enum kg_status kg_cases_take(struct kg_cases *cases, struct kg_cases *more, struct kg_error *error);
void kg_cases_free(struct kg_cases *cases);
// Cores to use for references.
int kg_case_threads(void);

// Sets up to KG_MAX_WINDOWS windows so that their reference costs no more than `effort` in all;
// 0 when the whole outputs do.
enum kg_status kg_case_windows(const struct kg_problem *problem, double effort, uint64_t seed,
                               struct kg_window windows[KG_MAX_WINDOWS][KG_MAX_TENSORS], int *count,
                               struct kg_error *error);

// image.c. `fill` is the byte in guard bands, gaps and outputs.
void kg_image_plan(struct kg_case *item);
void kg_image_compose(const struct kg_case *item, unsigned char fill, unsigned char *image);
// Compares everything but the elements of outputs with what was composed. True when all is as it
// was; otherwise says what was touched. `image` is put back in order for comparison on the way.
bool kg_image_intact(const struct kg_case *item, unsigned char fill, const unsigned char *image,
                     unsigned char *scratch, char *reason, size_t room);
// Do two runs agree bit for bit in every element of every output?
bool kg_image_same(const struct kg_case *item, const unsigned char *first,
                   const unsigned char *second, char *reason, size_t room);
// The place of an output's element, in elements from the output's first.
int64_t kg_layout_offset(const struct kg_layout *layout, int rank, int64_t number);
// "y[3, 5]".
void kg_case_element(const struct kg_problem *problem, int tensor, const int64_t *index, char *text,
                     size_t room);

// The bytes in outputs, gaps and guards before the first and the second run of a subject: as floats
// NaN and a number, as integers -1 and something large.
extern const unsigned char kg_image_fills[2];

// residents.c. Cases in the memory of a device that does not share this machine's. `device` and
// `cases` are borrowed, and no case is added any more. One judgement at a time.
struct kg_residents;
enum kg_status kg_residents_make(struct kg_device *device, const struct kg_cases *cases,
                                 struct kg_residents **residents, struct kg_error *error);
void kg_residents_free(struct kg_residents *residents);
// Judges a subject by one case; adds to the verdict when it passes. When not, this means nothing:
// the case was not looked at, or has to be looked at more closely.
enum kg_status kg_residents_judge(struct kg_residents *residents, int index,
                                  const struct kg_subject *subject, struct kg_verdict *verdict,
                                  bool *passes, struct kg_error *error);

// compare.c. Adds to the verdict; false when an element or the whole is wrong, the reason is then
// in the verdict without the case's label.
bool kg_compare_outputs(const struct kg_problem *problem, const struct kg_expected *expected,
                        const void *const *outputs, struct kg_verdict *verdict);
// The rounding of a result that no kernel can avoid: half the distance to the next value.
double kg_compare_unavoidable(enum kg_dtype dtype, double value, double slack);

// impostor.c: fills the outputs of an image as the impostor would. Whole cases only.
void kg_impostor_run(int impostor, const struct kg_case *item, unsigned char *image);
// Could nobody tell the impostor from the op in this case?
bool kg_impostor_equals(int impostor, const struct kg_case *item);

#endif
