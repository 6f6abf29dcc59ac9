// Fits the model's coefficients to measurements, and judges orders of candidates. Pure functions
// over arrays; the caller chooses the samples that belong together (one device, one family).

#ifndef KG_ASM_FIT_H
#define KG_ASM_FIT_H

#include "asm/model.h"

// One candidate that was measured.
struct kg_fit_sample {
    double feature[KG_FEATURE_COUNT];
    double bound;    // seconds, > 0
    double measured; // seconds, > 0
    double spread;   // of the measured time, relative: 0.02 is two percent; 0: unknown
    bool warm;
    int launches; // at least 1
    int problem;  // only candidates of the same problem are compared with one another
    // Samples with equal numbers are held out together: those of one problem, or better of one op.
    int held_out;
};

// Ridge regression on log(measured / bound), regularised towards the prior's weights as if by
// `ridge` samples of each feature (> 0; 1 is a good choice). Without samples, and for features that
// do not vary, the prior remains. The overheads are the prior's. `fitted->source` is "fitted".
// Invalid numbers (NaN, infinities, times that are not positive) give KG_ERROR_ARGUMENT.
enum kg_status kg_fit_make(const struct kg_fit_sample *samples, int count,
                           const struct kg_model_coefficients *prior, double ridge,
                           struct kg_model_coefficients *fitted, struct kg_error *error);

#define KG_FIT_TOPS 3
extern const int kg_fit_tops[KG_FIT_TOPS]; // 1, 8, 16

struct kg_fit_report {
    int problems;
    int samples;
    // Pairs of one problem whose times differ by more than their spreads.
    int64_t pairs;
    double ordered; // fraction in the right order; equal scores count one half; without pairs: 0.5
    // How much slower the best of the first k is than the best candidate: 0.05 is five percent.
    double regret[KG_FIT_TOPS]; // mean over problems
    double worst_regret[KG_FIT_TOPS];
    // Pruning by the bound: candidates whose bound exceeds (1 + epsilon) times the best measured
    // time of their problem.
    int64_t pruned;
    int64_t false_prunes; // of these, measured as no slower than that
    int64_t violations;   // bounds above the measured time, by more than its spread
    // Pruning by the order: the last half of each problem, rounded down.
    int64_t dropped;
    int64_t false_drops; // of these, measured as faster than all others
};

// Judges an order: `score` has one number per sample, lower is better.
enum kg_status kg_fit_judge(const struct kg_fit_sample *samples, int count, const double *score,
                            double epsilon, struct kg_fit_report *report, struct kg_error *error);

// The same for the model's estimates, each with coefficients fitted only to samples with other
// `held_out` numbers. Without other samples, that is the prior.
enum kg_status kg_fit_holdout(const struct kg_fit_sample *samples, int count,
                              const struct kg_model_coefficients *prior, double ridge,
                              double epsilon, struct kg_fit_report *report, struct kg_error *error);

#endif
