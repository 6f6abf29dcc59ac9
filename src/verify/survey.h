// The survey: a second evaluation of every element of outputs that are too large for the reference
// with slack. It has values only, in f64. An element of a kernel's output that is further from its
// value than elements in the windows may be is a suspect, and the reference judges each suspect.
// Internal to src/verify.

#ifndef KG_VERIFY_SURVEY_H
#define KG_VERIFY_SURVEY_H

#include "verify/reference.h"

struct kg_verdict;
struct kg_survey;

struct kg_survey_limits {
    double operations; // of the evaluation, as kg_reference_cost counts them
    double bytes;      // of the values that are kept
};

// What a survey of whole outputs costs: operations, and the bytes that it keeps. Both are infinite
// if some output cannot be evaluated part by part in little memory.
enum kg_status kg_survey_cost(const struct kg_problem *problem, struct kg_survey_limits *cost,
                              struct kg_error *error);
enum kg_status kg_survey_make(const struct kg_problem *problem, const void *const *inputs,
                              int threads, const volatile int *cancel, struct kg_survey **survey,
                              struct kg_error *error);
void kg_survey_free(struct kg_survey *survey);
// Learns from a window of each output what slack is usual.
void kg_survey_learn(struct kg_survey *survey, const struct kg_expected *expected);
// `*right` is false when an element is wrong; the verdict then has the reason, without the case's
// label. `outputs`: host memory as the problem lays it out.
enum kg_status kg_survey_judge(const struct kg_survey *survey, const void *const *inputs,
                               const void *const *outputs, struct kg_verdict *verdict, bool *right,
                               struct kg_error *error);

#endif
