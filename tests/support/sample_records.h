// Records for tests: a folder of their own, a key, an outcome, wisdom.

#ifndef KG_TESTS_SAMPLE_RECORDS_H
#define KG_TESTS_SAMPLE_RECORDS_H

#include "store/store.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SAMPLE_FOLDER 64

static inline void sample_folder(char folder[SAMPLE_FOLDER])
{
    snprintf(folder, SAMPLE_FOLDER, "/tmp/kernelgen-records-XXXXXX");
    if (!mkdtemp(folder))
        abort();
}

static inline void sample_remove(const char *folder)
{
    DIR *list = opendir(folder);
    for (struct dirent *entry; list && (entry = readdir(list));) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        remove(path);
    }
    if (list)
        closedir(list);
    rmdir(folder);
}

static inline struct kg_key sample_key(void)
{
    return (struct kg_key){.op = "softmax",
                           .definition = {.high = 1, .low = 2},
                           .dtypes = "T=f16",
                           .sizes = "P=4096 D=1000",
                           .layout = "contiguous",
                           .device = "Some CPU",
                           .isa = "avx2",
                           .units = 8,
                           .driver = "6.1",
                           .compiler = "cc 12 -O3",
                           .protocol = "cold launch"};
}

// Of a plan of two kernels; no two features are alike. The derived ones are of an unknown device.
static inline struct kg_forecast sample_forecast(void)
{
    struct kg_forecast forecast = {
        .known = true,
        .bound = 8e-6,
        .points = 120,
        .launches = 2,
        .longest = {.grid = 4096, .threads = 256, .dynamic_shared = 65536, .cluster = 2}};
    for (int f = 0; f < KG_FEATURE_DERIVED; f++)
        forecast.feature[f] = f / 7.0 - 0.3;
    forecast.estimate =
        kg_model_estimate(forecast.bound, forecast.feature, 2, false, &kg_model_prior);
    return forecast;
}

static inline bool sample_same_forecast(const struct kg_forecast *a, const struct kg_forecast *b)
{
    return a->known == b->known && a->bound == b->bound && a->estimate == b->estimate &&
           a->points == b->points && a->launches == b->launches &&
           a->longest.grid == b->longest.grid && a->longest.threads == b->longest.threads &&
           a->longest.dynamic_shared == b->longest.dynamic_shared &&
           a->longest.cluster == b->longest.cluster &&
           memcmp(a->feature, b->feature, sizeof a->feature) == 0;
}

static inline struct kg_outcome sample_outcome(const char *choice)
{
    return (struct kg_outcome){
        .kind = KG_OUTCOME_MEASURED,
        .choice = choice,
        .source = {.high = 3, .low = 0xFFFFFFFFFFFFFFFFu},
        .bound = 1e-5,
        .compile_seconds = 0.25,
        .timing = {.samples = 30, .median = 1.25e-5, .least = 1.2e-5, .spread = 1e-7},
        .verdict = {.passed = true,
                    .seed = 0xFEDCBA9876543210u,
                    .cases = 12,
                    .skipped = 1,
                    .elements = 5000000000,
                    .worst_relative = 0.3,
                    .worst_rms = 1.1,
                    .impostors = 9},
        .forecast = sample_forecast(),
        .final = true,
        .reason = ""};
}

static inline struct kg_wisdom sample_wisdom(char *choice)
{
    return (struct kg_wisdom){.choice = choice,
                              .rigor = KG_RIGOR_MEASURE,
                              .seconds = 1.25e-5,
                              .spread = 1e-7,
                              .seed = 0xFEDCBA9876543210u,
                              .source = {.high = 7, .low = 0xFEDCBA9876543210u}};
}

// Opens, or ends the test program: nothing can go on without records.
static inline struct kg_store *sample_open(const char *folder)
{
    struct kg_error error = {0};
    struct kg_store *store;
    if (kg_store_open(folder, &store, NULL, &error) != KG_OK) {
        fprintf(stderr, "cannot open records: %s\n", error.text);
        exit(1);
    }
    return store;
}

#endif
