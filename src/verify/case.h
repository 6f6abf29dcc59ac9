// One case of the gate: a problem, its inputs, and the reference's values. Internal to src/verify.

#ifndef KG_VERIFY_CASE_H
#define KG_VERIFY_CASE_H

#include "verify/gate.h"
#include "verify/image.h"
#include "verify/inputs.h"
#include "verify/survey.h"

#define KG_MAX_WINDOWS 3
#define KG_DEFAULT_EFFORT 2.5e7 // see kg_reference_cost: a tenth of a second

struct kg_case {
    struct kg_problem *problem;
    char label[256]; // "P=7 D=513, some NaN, strided"
    uint64_t seed;
    enum kg_input_class class;
    bool strided;
    // Judged in memory that other cases with the same sizes use too, even on a device that keeps
    // the images of cases: a subject that remembers results by address gives the wrong ones.
    bool shares_memory;
    enum kg_placement placement;
    struct kg_image_plan image;
    void *inputs[KG_MAX_TENSORS]; // host memory, laid out as the problem says
    // A large case is judged where its inputs lie; checksums say whether they have changed.
    struct kg_image_memory own;
    uint64_t input_sums[KG_MAX_TENSORS];
    // The whole outputs, or up to three windows of outputs that are too expensive to compute with
    // slack, and a survey of all their elements.
    bool whole;
    int window_count;
    struct kg_window windows[KG_MAX_WINDOWS][KG_MAX_TENSORS];
    struct kg_expected expected[KG_MAX_WINDOWS][KG_MAX_TENSORS];
    bool surveyed;
    struct kg_survey *survey;
};

struct kg_cases {
    bool is_guarded;  // images are: see image.h
    size_t alignment; // likewise
    double harder;    // multiplies the limits on work, not those on memory; 0: as 1
    int count;
    int capacity;
    struct kg_case **items;
    double bytes, generated_bytes; // that all cases take
    char remarks[KG_REMARKS_TEXT]; // as in a verdict
};

// Makes the cases of a gate by its policy: chooses them one after the other, then fills them on all
// cores.
enum kg_status kg_cases_make(struct kg_cases *cases, const struct kg_op *instance,
                             const struct kg_policy *policy, uint64_t seed, struct kg_error *error);
// Moves all cases of `more` to `cases`.
enum kg_status kg_cases_take(struct kg_cases *cases, struct kg_cases *more, struct kg_error *error);
void kg_cases_free(struct kg_cases *cases);
// results.c. KG_ERROR_SHAPE if no case has a result: they would prove nothing.
enum kg_status kg_cases_check_outputs(const struct kg_cases *cases, const struct kg_op *instance,
                                      struct kg_error *error);
// results.c. Fails if rounding decides nearly all results of ordinary inputs, because every
// impostor would then count as the op itself. Remarks when all results are the same.
enum kg_status kg_cases_check_results(struct kg_cases *cases, const struct kg_op *op,
                                      struct kg_error *error);
// filling.c: inputs and references of all cases.
enum kg_status kg_cases_fill(const struct kg_cases *cases, const volatile int *cancel,
                             struct kg_error *error);
// The number of threads for references.
int kg_case_threads(void);

// Sets up to KG_MAX_WINDOWS windows whose reference costs at most `effort` in all; 0 when the whole
// outputs cost no more.
enum kg_status kg_case_windows(const struct kg_problem *problem, double effort, uint64_t seed,
                               struct kg_window windows[KG_MAX_WINDOWS][KG_MAX_TENSORS], int *count,
                               struct kg_error *error);

// case_check.c. Checks the image after a run: the first is compared with the reference, the second
// with the first, which is `kept`. Adds to the verdict, with the reason if it is wrong.
enum kg_status kg_case_check(const struct kg_case *item, int run, const unsigned char *image,
                             struct kg_kept *kept, struct kg_verdict *verdict, bool *right,
                             struct kg_error *error);
// Puts "case 3 (P=7 D=13, some NaN): " before the reason; the verdict has not passed.
void kg_case_blame(const struct kg_case *item, int index, struct kg_verdict *verdict);

// Makes the inputs of a case with an image of its own again, after a subject has changed them.
void kg_case_restore(struct kg_case *item);
// "y[3, 5]".
void kg_case_element(const struct kg_problem *problem, int tensor, const int64_t *index, char *text,
                     size_t room);

// residents.c. Cases whose images stay in a device's separate memory. `device` and `cases` are
// borrowed, and no case may be added later. Only one judgement at a time.
struct kg_residents;
enum kg_status kg_residents_make(struct kg_device *device, const struct kg_cases *cases,
                                 struct kg_residents **residents, struct kg_error *error);
void kg_residents_free(struct kg_residents *residents);
// Judges a subject by one case, and adds to the verdict when it passes. If it does not pass, or the
// case could not be judged here, the caller must judge it on a fresh image.
enum kg_status kg_residents_judge(struct kg_residents *residents, int index,
                                  const struct kg_subject *subject, struct kg_verdict *verdict,
                                  bool *passes, struct kg_error *error);

// exercise.c. Each tensor of a case in an allocation of its own, of exactly its bytes.
// kg_exercise_close frees what `open` has allocated, also after a failure.
enum kg_status kg_exercise_open(struct kg_device *device, const struct kg_case *item,
                                void **tensors, struct kg_error *error);
// Waits for a run, and gives its failure.
enum kg_status kg_exercise_wait(struct kg_device *device, const struct kg_case *item,
                                void *const *tensors, struct kg_error *error);
void kg_exercise_close(struct kg_device *device, void **tensors);

// compare.c. Adds to the verdict. False when an element or the whole output is wrong; the verdict
// then has the reason, without the case's label.
bool kg_compare_outputs(const struct kg_problem *problem, const struct kg_expected *expected,
                        const void *const *outputs, struct kg_verdict *verdict);
// The rounding error that no kernel can avoid: half the distance to the next value.
double kg_compare_unavoidable(enum kg_dtype dtype, double value, double slack);

#define KG_MAX_IMPOSTORS 32
struct kg_impostors {
    int rejected;
    char reasons[KG_MAX_IMPOSTORS][512]; // why each was rejected; "": it is the op itself
};
// impostors_tried.c. Adds cases until every impostor is rejected, or equals the op. KG_ERROR_WRONG
// if that does not help.
enum kg_status kg_impostors_try(struct kg_impostors *impostors, struct kg_cases *cases,
                                const struct kg_op *op, const struct kg_policy *policy,
                                uint64_t seed, struct kg_error *error);
// impostor.c: fills the outputs of an image as the impostor would. Only for cases without windows.
void kg_impostor_run(int impostor, const struct kg_case *item, unsigned char *image);
// Does the impostor store what a right kernel stores? No check then tells them apart in this case.
bool kg_impostor_is_right(int impostor, const struct kg_case *item);
// Are the impostor's results correct for the op in this case?
bool kg_impostor_equals(int impostor, const struct kg_case *item);

#endif
