// The weights of features before anything is fitted, and the features' names.

#include "asm/model.h"

#include <string.h>

// Prior: BASE and MATRIX are measured on one H100 SXM (a copy reaches 3.03 of 3.352 TB/s; cuBLAS
// 764 TFLOPS of the 1070 that 1.98 GHz would give); the others are expert guesses, to be replaced
// by a fit.
const struct kg_model_coefficients kg_model_prior = {
    .beta =
        {
            [KG_FEATURE_EXPECTED] = 1,
            [KG_FEATURE_BASE] = 0.10,
            [KG_FEATURE_MATRIX] = 0.24,
            [KG_FEATURE_EXPOSED] = 0.5,
            [KG_FEATURE_SPILLS] = 1,
            [KG_FEATURE_BARRIERS] = 0.3,
            [KG_FEATURE_OVERHEAD] = 0.1,
            [KG_FEATURE_NARROW] = 0.15,
            [KG_FEATURE_TAIL] = 0.2,
            [KG_FEATURE_SERIALISED] = 0.5,
            [KG_FEATURE_BLOCKING] = 0.2,
            [KG_FEATURE_IDLE] = 0.1,
        },
    .overhead_cold = 5e-6, // a 256^3 product takes 6.0 us with cold caches, 2.6 us in a graph
    .overhead_warm = 2e-6,
    .source = "prior",
};

// Memory-bound families: fitted to all candidates of four exhaustive searches on one H100 80GB HBM3
// on 2026-11-21 (docs/model.md): 2686 candidates of bias_relu, rms_norm, sum_last and cumsum.
// EXPECTED got no weight; NARROW and IDLE are left out, because the derived features are computed
// from them. Features that did not vary keep the weights above.
static const struct kg_model_coefficients prior_of_memory = {
    .beta =
        {
            [KG_FEATURE_BASE] = -0.39,
            [KG_FEATURE_MATRIX] = 0.24,
            [KG_FEATURE_EXPOSED] = 0.5,
            [KG_FEATURE_SPILLS] = 1.8,
            [KG_FEATURE_BARRIERS] = 0.9,
            [KG_FEATURE_OVERHEAD] = 0.1,
            [KG_FEATURE_TAIL] = 0.12,
            [KG_FEATURE_SERIALISED] = 0.5,
            [KG_FEATURE_BLOCKING] = 0.2,
            [KG_FEATURE_STARTS] = 0.32,
            [KG_FEATURE_CLUSTERS] = 0.49,
            [KG_FEATURE_ACCESSES] = 0.93,
            [KG_FEATURE_FOOTPRINT] = 0.53,
            [KG_FEATURE_WAITS] = 0.91,
        },
    .overhead_cold = 5e-6,
    .overhead_warm = 2e-6,
    .source = "prior",
};

const struct kg_model_coefficients *kg_model_prior_of(const char *family)
{
    static const char *const of_memory[] = {"pointwise", "rowwise", "scan"};
    // "rowwise*3: threads=256; pointwise: ..." has several families, and no prior of its own.
    if (!family || strchr(family, ';'))
        return &kg_model_prior;
    size_t length = strcspn(family, ":*");
    for (size_t f = 0; f < sizeof of_memory / sizeof of_memory[0]; f++)
        if (strlen(of_memory[f]) == length && strncmp(family, of_memory[f], length) == 0)
            return &prior_of_memory;
    return &kg_model_prior;
}

const char *kg_feature_name(enum kg_feature feature)
{
    static const char *const names[KG_FEATURE_COUNT] = {
        [KG_FEATURE_EXPECTED] = "expected", [KG_FEATURE_BASE] = "base",
        [KG_FEATURE_MATRIX] = "matrix",     [KG_FEATURE_EXPOSED] = "exposed",
        [KG_FEATURE_SPILLS] = "spills",     [KG_FEATURE_BARRIERS] = "barriers",
        [KG_FEATURE_OVERHEAD] = "overhead", [KG_FEATURE_NARROW] = "narrow",
        [KG_FEATURE_TAIL] = "tail",         [KG_FEATURE_SERIALISED] = "serialised",
        [KG_FEATURE_BLOCKING] = "blocking", [KG_FEATURE_IDLE] = "idle",
        [KG_FEATURE_STARTS] = "starts",     [KG_FEATURE_CLUSTERS] = "clusters",
        [KG_FEATURE_ACCESSES] = "accesses", [KG_FEATURE_FOOTPRINT] = "footprint",
        [KG_FEATURE_WAITS] = "waits",
    };
    return names[feature];
}
