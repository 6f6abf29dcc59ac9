// Fitting where the truth is known, and where there is little or nothing to fit.

#include "asm/fit.h"
#include "test.h"

#include <math.h>

#define PROBLEMS 12
#define EACH 40
#define COUNT (PROBLEMS * EACH)

static struct kg_error error;

static double next_random(unsigned *state)
{
    *state = *state * 1664525 + 1013904223;
    return (double)(*state >> 8) / (1 << 24);
}

// Times made with `truth` and a little noise: exp(+-noise).
static void invent(struct kg_fit_sample *samples, const struct kg_model_coefficients *truth,
                   double noise)
{
    unsigned state = 7;
    for (int s = 0; s < COUNT; s++) {
        struct kg_fit_sample *sample = &samples[s];
        *sample = (struct kg_fit_sample){.launches = 1 + s % 3, .problem = s % PROBLEMS * 5 - 9};
        sample->held_out = sample->problem;
        sample->bound = 1e-5 * exp(sample->problem / 10.0 + 0.3 * next_random(&state));
        for (int f = 0; f < KG_FEATURE_COUNT; f++)
            sample->feature[f] = next_random(&state);
        sample->feature[KG_FEATURE_BASE] = 1;
        sample->measured = kg_model_estimate(sample->bound, sample->feature, sample->launches,
                                             sample->warm, truth) *
                           exp(noise * (2 * next_random(&state) - 1));
    }
}

static const struct kg_model_coefficients truth = {
    .beta = {0.9, 0.2, 0.5, 0.1, 2.0, 0.7, 0.05, 0.4, 0.3, 0.8, 0.6, 0.15},
    .overhead_cold = 5e-6,
    .overhead_warm = 2e-6,
};

static void test_recovers(void)
{
    static struct kg_fit_sample samples[COUNT];
    struct kg_model_coefficients fitted;
    invent(samples, &truth, 0);
    CHECK_STATUS(kg_fit_make(samples, COUNT, &kg_model_prior, 1e-6, &fitted, &error), KG_OK,
                 &error);
    for (int f = 0; f < KG_FEATURE_COUNT; f++)
        CHECK(fabs(fitted.beta[f] - truth.beta[f]) < 1e-5);
    CHECK_TEXT(fitted.source, "fitted");
    CHECK(fitted.overhead_cold == kg_model_prior.overhead_cold);
    invent(samples, &truth, 0.05);
    CHECK_STATUS(kg_fit_make(samples, COUNT, &kg_model_prior, 1, &fitted, &error), KG_OK, &error);
    for (int f = 0; f < KG_FEATURE_COUNT; f++)
        CHECK(fabs(fitted.beta[f] - truth.beta[f]) < 0.06);
}

// On problems it has not seen, a fit orders what the prior cannot.
static void test_holdout(void)
{
    static struct kg_fit_sample samples[COUNT];
    static double scores[COUNT];
    struct kg_fit_report fitted, prior;
    invent(samples, &truth, 0.02);
    CHECK_STATUS(kg_fit_holdout(samples, COUNT, &kg_model_prior, 1, 0.05, &fitted, &error), KG_OK,
                 &error);
    for (int s = 0; s < COUNT; s++)
        scores[s] = kg_model_estimate(samples[s].bound, samples[s].feature, samples[s].launches,
                                      false, &kg_model_prior);
    CHECK_STATUS(kg_fit_judge(samples, COUNT, scores, 0.05, &prior, &error), KG_OK, &error);
    CHECK(fitted.problems == PROBLEMS && fitted.samples == COUNT);
    CHECK(fitted.pairs == PROBLEMS * EACH * (EACH - 1) / 2);
    CHECK(fitted.ordered > 0.97 && fitted.ordered > prior.ordered + 0.05);
    CHECK(fitted.regret[1] == 0 && fitted.regret[0] <= prior.regret[0]);
    CHECK(fitted.false_prunes == 0 && fitted.violations == 0);
    CHECK(fitted.pruned == prior.pruned);
}

// What is held out together is left out together, though it is several problems.
static void test_holdout_by_op(void)
{
    static struct kg_fit_sample samples[COUNT];
    struct kg_fit_report apart, together;
    invent(samples, &truth, 0.02);
    CHECK_STATUS(kg_fit_holdout(samples, COUNT, &kg_model_prior, 1, 0, &apart, &error), KG_OK,
                 &error);
    for (int s = 0; s < COUNT; s++)
        samples[s].held_out = 3; // then nothing is left to fit to
    CHECK_STATUS(kg_fit_holdout(samples, COUNT, &kg_model_prior, 1, 0, &together, &error), KG_OK,
                 &error);
    CHECK(together.problems == PROBLEMS && together.pairs == apart.pairs);
    CHECK(together.ordered < apart.ordered - 0.05);
}

// Held out means held out: what is peculiar to one problem must not help to order it.
static void test_holdout_is_blind(void)
{
    struct kg_fit_sample samples[40];
    for (int s = 0; s < 40; s++) {
        samples[s] = (struct kg_fit_sample){
            .bound = 0.1, .launches = 1, .problem = s % 2, .held_out = s % 2};
        samples[s].feature[KG_FEATURE_BASE] = 1;
        // In one problem spills are bad, in the other they are good: each fit misleads.
        samples[s].feature[KG_FEATURE_SPILLS] = s / 2 / 20.0;
        samples[s].measured = 10 * exp((s % 2 ? 3 : -3) * samples[s].feature[KG_FEATURE_SPILLS]);
    }
    struct kg_model_coefficients prior = {.beta = {0}};
    struct kg_fit_report report;
    CHECK_STATUS(kg_fit_holdout(samples, 40, &prior, 0.1, 0, &report, &error), KG_OK, &error);
    CHECK(report.ordered == 0);
    CHECK(report.regret[0] > 1);
}

static void test_little(void)
{
    struct kg_model_coefficients fitted;
    CHECK_STATUS(kg_fit_make(NULL, 0, &kg_model_prior, 1, &fitted, &error), KG_OK, &error);
    CHECK(memcmp(fitted.beta, kg_model_prior.beta, sizeof fitted.beta) == 0);
    // One sample moves only the features it has, and those alike.
    struct kg_fit_sample one = {.bound = 1, .measured = 8, .launches = 1};
    one.feature[KG_FEATURE_BASE] = one.feature[KG_FEATURE_TAIL] = 1;
    struct kg_model_coefficients none = {.beta = {0}};
    CHECK_STATUS(kg_fit_make(&one, 1, &none, 1e-9, &fitted, &error), KG_OK, &error);
    CHECK(fabs(fitted.beta[KG_FEATURE_BASE] - log(8) / 2) < 1e-6);
    CHECK(fabs(fitted.beta[KG_FEATURE_BASE] - fitted.beta[KG_FEATURE_TAIL]) < 1e-6);
    CHECK(fitted.beta[KG_FEATURE_SPILLS] == 0);
    // Features of zero and nothing else: the prior stays.
    struct kg_fit_sample zeros[3] = {{.bound = 1, .measured = 2, .launches = 1},
                                     {.bound = 1, .measured = 3, .launches = 1},
                                     {.bound = 2, .measured = 3, .launches = 1}};
    CHECK_STATUS(kg_fit_make(zeros, 3, &kg_model_prior, 1, &fitted, &error), KG_OK, &error);
    CHECK(memcmp(fitted.beta, kg_model_prior.beta, sizeof fitted.beta) == 0);
    struct kg_fit_report report;
    CHECK_STATUS(kg_fit_holdout(zeros, 3, &kg_model_prior, 1, 0, &report, &error), KG_OK, &error);
    CHECK(report.problems == 1 && report.pairs == 2);
    CHECK_STATUS(kg_fit_holdout(NULL, 0, &kg_model_prior, 1, 0, &report, &error), KG_OK, &error);
    CHECK(report.problems == 0 && report.ordered == 0.5 && report.regret[0] == 0);
}

static void test_refused(void)
{
    struct kg_model_coefficients fitted;
    struct kg_fit_report report;
    struct kg_fit_sample good = {.bound = 1, .measured = 2, .launches = 1};
    const double bad[] = {NAN, INFINITY, -1, 0};
    for (int i = 0; i < 4; i++) {
        struct kg_fit_sample samples[] = {good, good};
        samples[1].measured = bad[i];
        CHECK_STATUS(kg_fit_make(samples, 2, &kg_model_prior, 1, &fitted, &error),
                     KG_ERROR_ARGUMENT, &error);
        samples[1] = good;
        samples[1].bound = bad[i];
        CHECK_STATUS(kg_fit_holdout(samples, 2, &kg_model_prior, 1, 0, &report, &error),
                     KG_ERROR_ARGUMENT, &error);
        CHECK_STATUS(kg_fit_make(&good, 1, &kg_model_prior, bad[i], &fitted, &error),
                     KG_ERROR_ARGUMENT, &error);
    }
    struct kg_fit_sample idle = good;
    idle.launches = 0;
    CHECK_STATUS(kg_fit_make(&idle, 1, &kg_model_prior, 1, &fitted, &error), KG_ERROR_ARGUMENT,
                 &error);
    struct kg_fit_sample odd = good;
    odd.feature[KG_FEATURE_TAIL] = NAN;
    CHECK_STATUS(kg_fit_make(&odd, 1, &kg_model_prior, 1, &fitted, &error), KG_ERROR_ARGUMENT,
                 &error);
    double score = NAN;
    CHECK_STATUS(kg_fit_judge(&good, 1, &score, 0, &report, &error), KG_ERROR_ARGUMENT, &error);
    CHECK_STATUS(kg_fit_judge(&good, 1, &good.bound, -1, &report, &error), KG_ERROR_ARGUMENT,
                 &error);
}

static void test_judge(void)
{
    // Times 1, 1.01 (a tie of the first), 2, 4; the scores put 4 first.
    struct kg_fit_sample samples[] = {
        {.bound = 0.5, .measured = 1, .spread = 0.01, .launches = 1},
        {.bound = 0.5, .measured = 1.01, .spread = 0.01, .launches = 1},
        {.bound = 1.5, .measured = 2, .spread = 0.01, .launches = 1},
        {.bound = 4.2, .measured = 4, .spread = 0.01, .launches = 1},
    };
    const double scores[] = {2, 3, 3, 1};
    struct kg_fit_report report;
    CHECK_STATUS(kg_fit_judge(samples, 4, scores, 0.2, &report, &error), KG_OK, &error);
    CHECK(report.pairs == 5);
    CHECK(fabs(report.ordered - 1.5 / 5) < 1e-12); // 1 before 2, and a tie of scores
    CHECK(report.regret[0] == 3 && report.regret[1] == 0 && report.worst_regret[0] == 3);
    CHECK(report.pruned == 2 && report.false_prunes == 0 && report.violations == 1);
    CHECK(report.dropped == 2 && report.false_drops == 0); // 1 is kept, and is the best
    const double worse[] = {4, 3, 2, 1};
    CHECK_STATUS(kg_fit_judge(samples, 4, worse, 0.2, &report, &error), KG_OK, &error);
    CHECK(report.dropped == 2 && report.false_drops == 2); // both are faster than 2
    samples[1].bound = 1.3;                                // a bound that lies
    CHECK_STATUS(kg_fit_judge(samples, 4, scores, 0.2, &report, &error), KG_OK, &error);
    CHECK(report.pruned == 3 && report.false_prunes == 1 && report.violations == 2);
}

TEST_MAIN(test_recovers, test_holdout, test_holdout_by_op, test_holdout_is_blind, test_little,
          test_refused, test_judge)
