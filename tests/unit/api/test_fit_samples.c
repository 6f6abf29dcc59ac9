// Samples and the fit through the public functions: what a kernel's sample holds comes back, a line
// that is wrong is refused by number, and where the truth is known the fit finds it.

#include "asm/fit.h"
#include "kernelgen.h"
#include "store/samples.h"
#include "test.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

static struct kg_context *context;

static const char good[] =
    "{\"schema\": 1, \"device\": \"d\", \"family\": \"f\", \"problem\": \"p\", \"candidate\": "
    "\"c\", "
    "\"warm\": false, \"bound\": 1e-5, \"seconds\": 2e-5, \"spread\": 0.01, \"points\": null, "
    "\"features\": {\"expected\": 0.1, \"base\": 1, \"matrix\": 0, \"exposed\": 0.5, \"spills\": "
    "0, "
    "\"barriers\": 0, \"overhead\": 0, \"narrow\": 0.2, \"tail\": 0.1, \"serialised\": 0, "
    "\"blocking\": 0, \"idle\": 0}}\n";

static void test_line(void)
{
    struct kg_samples samples = {.count = 0};
    struct kg_error error;
    struct kg_text text = {0};
    CHECK_STATUS(kg_samples_read(good, sizeof good - 1, &samples, &error), KG_OK, &error);
    CHECK_STATUS(kg_samples_read("\n \n", 3, &samples, &error), KG_OK, &error);
    CHECK(samples.count == 1 && isnan(samples.list[0].points) && samples.list[0].has_features);
    CHECK(samples.list[0].fit.feature[KG_FEATURE_EXPOSED] == 0.5);
    kg_samples_write(&samples.list[0], &text);
    CHECK_STATUS(kg_samples_read(text.data, text.length, &samples, &error), KG_OK, &error);
    CHECK(samples.count == 2);
    const struct kg_fit_sample *a = &samples.list[0].fit, *b = &samples.list[1].fit;
    CHECK(a->bound == b->bound && a->measured == b->measured && a->spread == b->spread);
    CHECK(memcmp(a->feature, b->feature, sizeof a->feature) == 0);
    CHECK_TEXT(samples.list[0].problem, samples.list[1].problem);
    kg_text_free(&text);
    kg_samples_free(&samples);
}

// Each replaces a part of the good line.
static void test_wrong_lines(void)
{
    static const struct {
        const char *from, *to, *says;
    } changes[] = {
        {"\"schema\": 1", "\"schema\": 2", "\"schema\" must be 1"},
        {"\"device\": \"d\", ", "", "has 10 members, not 11"},
        {"\"family\": \"f\"", "\"family\": 3", "\"family\" must be a text"},
        {"\"bound\": 1e-5", "\"bound\": 0", "\"bound\" must be a number"},
        {"\"seconds\": 2e-5", "\"seconds\": -1", "\"seconds\" must be a number"},
        {"\"seconds\": 2e-5", "\"seconds\": \"1\"", "\"seconds\" must be a number"},
        {"\"warm\": false", "\"warm\": 0", "\"warm\" must be true or false"},
        {"\"base\": 1, ", "", "\"features\" must be an object of 12 numbers"},
        {"\"base\": 1", "\"bass\": 1", "\"base\" must be a number"},
        {"\"base\": 1", "\"idle\": 1", "is no JSON: duplicate"},
        {"{\"schema\"", "[\"schema\"", "is no JSON"},
        {"\"base\": 1", "\"base\": 1e9", "\"base\" must be a number"},
    };
    for (size_t c = 0; c < sizeof changes / sizeof changes[0]; c++) {
        struct kg_samples samples = {.count = 0};
        struct kg_error error;
        struct kg_text text = {0};
        const char *at = strstr(good, changes[c].from);
        CHECK(at != NULL);
        kg_text_add(&text, good);
        kg_text_add_bytes(&text, good, (size_t)(at - good));
        kg_text_add(&text, changes[c].to);
        kg_text_add(&text, at + strlen(changes[c].from));
        CHECK_STATUS(kg_samples_read(text.data, text.length, &samples, &error), KG_ERROR_CORRUPT,
                     &error);
        CHECK(samples.count == 0 && strncmp(error.text, "line 2: ", 8) == 0);
        CHECK(strstr(error.text, changes[c].says) != NULL);
        if (!strstr(error.text, changes[c].says))
            fprintf(stderr, "  %s\n", error.text);
        kg_text_free(&text);
        kg_samples_free(&samples);
    }
}

static double next_random(unsigned *state)
{
    *state = *state * 1664525 + 1013904223;
    return (double)(*state >> 8) / (1 << 24);
}

// Times of a model that weighs spills five times as much as the prior; points that say nothing.
static void invent(struct kg_text *text)
{
    struct kg_model_coefficients truth = kg_model_prior;
    truth.beta[KG_FEATURE_SPILLS] = 5;
    unsigned state = 3;
    for (int s = 0; s < 160; s++) {
        char problem[16];
        snprintf(problem, sizeof problem, "p%d", s % 8);
        struct kg_sample sample = {.device = "device",
                                   .family = "family",
                                   .problem = problem,
                                   .candidate = "one",
                                   .points = s % 3,
                                   .has_features = true};
        sample.fit.bound = 1e-4 * (1 + s % 8) * (1 + 0.2 * next_random(&state));
        for (int f = 0; f < KG_FEATURE_COUNT; f++)
            sample.fit.feature[f] = next_random(&state);
        sample.fit.feature[KG_FEATURE_BASE] = 1;
        sample.fit.measured =
            kg_model_estimate(sample.fit.bound, sample.fit.feature, false, &truth);
        kg_samples_write(&sample, text);
    }
}

static double ordered(const json_t *group, const char *order)
{
    const json_t *report = json_object_get(json_object_get(group, "orders"), order);
    return json_number_value(json_object_get(report, "ordered"));
}

static void test_fit(void)
{
    struct kg_text lines = {0};
    char *text = NULL;
    invent(&lines);
    CHECK(kg_fit(context, "invented", lines.data, lines.length, true, &text) == KG_OK);
    json_t *json = text ? json_loads(text, 0, NULL) : NULL;
    const json_t *group = json_array_get(json_object_get(json, "groups"), 0);
    CHECK(json_integer_value(json_object_get(group, "samples")) == 160);
    CHECK(json_integer_value(json_object_get(group, "problems")) == 8);
    CHECK(json_integer_value(json_object_get(group, "pairs")) == 8 * 20 * 19 / 2);
    CHECK(ordered(group, "fitted") > 0.97 && ordered(group, "prior") < 0.9);
    CHECK(ordered(group, "points") > 0.35 && ordered(group, "points") < 0.65);
    const json_t *coefficients = json_object_get(group, "coefficients");
    CHECK(fabs(json_number_value(json_object_get(coefficients, "spills")) - 5) < 0.5);
    CHECK(json_object_size(coefficients) == KG_FEATURE_COUNT);
    json_decref(json);
    kg_text_release(text);
    CHECK(kg_fit(context, "invented", lines.data, lines.length, false, &text) == KG_OK);
    CHECK(strstr(text, "device, family: 160 samples of 8 problems") != NULL);
    kg_text_release(text);
    kg_text_free(&lines);
}

static void test_nothing(void)
{
    char *text;
    CHECK(kg_fit(context, "empty", "", 0, false, &text) == KG_ERROR_ARGUMENT && !text);
    CHECK_TEXT(kg_context_error(context), "empty: there are no samples in it");
    CHECK(kg_fit(context, "bad", "{}", 2, false, &text) == KG_ERROR_CORRUPT && !text);
    CHECK(strncmp(kg_context_error(context), "bad: line 1: ", 13) == 0);
    CHECK(kg_fit(context, NULL, NULL, 0, false, &text) == KG_ERROR_IO && !text);
    // One problem, no features: there is a page all the same.
    CHECK(kg_fit(context, "one", good, sizeof good - 1, false, &text) == KG_OK);
    CHECK(strstr(text, "one problem: the fit cannot be judged on another") != NULL);
    kg_text_release(text);
}

static void test_sample_of_kernel(void)
{
    FILE *file = fopen(KG_SOURCE_DIR "/tests/data/asm/small.sm_90a.cubin", "rb");
    static char bytes[1 << 16];
    size_t length = file ? fread(bytes, 1, sizeof bytes, file) : 0;
    if (file)
        fclose(file);
    struct kg_assembly *assembly;
    struct kg_assembly_launch launch = {.grid = {1000}, .read_bytes = 1e8};
    struct kg_measurement measured = {.family = "f", .problem = "p", .seconds = 1e-3};
    struct kg_prediction prediction;
    char *line = NULL;
    CHECK(kg_assembly_read(context, "sample", bytes, length, &assembly) == KG_OK);
    CHECK(kg_assembly_sample(assembly, 0, &launch, &measured, &line) == KG_OK);
    CHECK(kg_assembly_predict(assembly, 0, &launch, &prediction) == KG_OK);
    struct kg_samples samples = {.count = 0};
    CHECK(kg_samples_read(line, strlen(line), &samples, NULL) == KG_OK && samples.count == 1);
    CHECK(samples.list[0].fit.bound == prediction.bound);
    CHECK(samples.list[0].fit.measured == 1e-3 && samples.list[0].has_features);
    CHECK_TEXT(samples.list[0].device, prediction.device);
    kg_samples_free(&samples);
    kg_text_release(line);
    CHECK(kg_assembly_sample(assembly, 0, NULL, &measured, &line) == KG_ERROR_ARGUMENT && !line);
    measured.seconds = 0;
    CHECK(kg_assembly_sample(assembly, 0, &launch, &measured, &line) == KG_ERROR_ARGUMENT);
    kg_assembly_destroy(assembly);
}

static void begin(void)
{
    struct kg_options options = {.home = "/dev/null/none"};
    CHECK(kg_context_create(&options, &context) != KG_OK && context != NULL);
}

static void end(void)
{
    kg_context_destroy(context);
}

TEST_MAIN(begin, test_line, test_wrong_lines, test_fit, test_nothing, test_sample_of_kernel, end)
