// Coefficients of the model from measurements, and how well a way of ordering candidates does. Pure
// functions over arrays: who calls chooses what belongs together (one device, one family).

#ifndef KG_ASM_FIT_H
#define KG_ASM_FIT_H

#include "asm/model.h"

// One candidate that was measured.
struct kg_fit_sample {
    double feature[KG_FEATURE_COUNT];
    double bound;    // seconds, > 0
    double measured; // seconds, > 0
    double spread;   // of the measured time, relative: 0.02 is two percent; 0: none known
    bool warm;
    int launches; // at least 1
    int problem;  // candidates of one problem, and they only, are compared with one another
    int held_out; // those of one number are held out together: of one problem, better of one op
};

// Ridge regression on log(measured / bound), drawn towards the prior's weights as if by `ridge`
// samples of each feature (> 0; 1 is a good choice): without samples, and along features that do
// not vary, the prior stays. The overheads are the prior's. `fitted->source` is "fitted". Numbers
// that make no sense (NaN, infinities, times that are not positive) give KG_ERROR_ARGUMENT.
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
    double
        ordered; // share of them in the right order; a tie of scores is half right. No pairs: 0.5
    // How much slower than the best candidate the best of the first k is: 0.05 is five percent.
    double regret[KG_FIT_TOPS]; // mean over problems
    double worst_regret[KG_FIT_TOPS];
    // Pruning by the bound: worse than (1 + epsilon) times the best measured time of its problem.
    int64_t pruned;
    int64_t false_prunes; // of them, measured as no worse than that
    int64_t violations;   // bounds above the measured time, by more than its spread
    // Pruning by the order: of each problem the half that it puts last, the smaller one.
    int64_t dropped;
    int64_t false_drops; // of them, measured as faster than all that were kept
};

// Judges an order: `score` has a number per sample, lower is better.
enum kg_status kg_fit_judge(const struct kg_fit_sample *samples, int count, const double *score,
                            double epsilon, struct kg_fit_report *report, struct kg_error *error);

// The same for the model's estimates, each made with coefficients that were fitted to the samples
// of other `held` numbers only. Where there is no other, that is the prior.
enum kg_status kg_fit_holdout(const struct kg_fit_sample *samples, int count,
                              const struct kg_model_coefficients *prior, double ridge,
                              double epsilon, struct kg_fit_report *report, struct kg_error *error);

#endif
