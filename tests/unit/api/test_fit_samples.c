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
    "{\"schema\": 2, \"device\": \"d\", \"family\": \"f\", \"op\": \"o\", \"problem\": \"p\", "
    "\"candidate\": \"c\", "
    "\"warm\": false, \"bound\": 1e-5, \"seconds\": 2e-5, \"spread\": 0.01, \"points\": null, "
    "\"launch\": {\"kernels\": 2, \"blocks\": 132, \"threads\": 256, \"shared_bytes\": 1024, "
    "\"cluster\": 2}, "
    "\"features\": {\"expected\": 0.1, \"base\": 1, \"matrix\": 0, \"exposed\": 0.5, \"spills\": "
    "0, "
    "\"barriers\": 0, \"overhead\": 0, \"narrow\": 0.2, \"tail\": 0.1, \"serialised\": 0, "
    "\"blocking\": 0, \"idle\": 0}}\n";

static void check_same(const struct kg_sample *a, const struct kg_sample *b)
{
    CHECK_TEXT(a->device, b->device);
    CHECK_TEXT(a->family, b->family);
    CHECK_TEXT(a->op, b->op);
    CHECK_TEXT(a->problem, b->problem);
    CHECK_TEXT(a->candidate, b->candidate);
    CHECK(a->seconds == b->seconds && a->spread == b->spread && a->warm == b->warm);
    const struct kg_forecast *one = &a->forecast, *other = &b->forecast;
    CHECK(one->known == other->known && one->bound == other->bound);
    CHECK(one->points == other->points || (isnan(one->points) && isnan(other->points)));
    CHECK(one->launches == other->launches && one->estimate == other->estimate);
    CHECK(one->longest.grid == other->longest.grid);
    CHECK(one->longest.threads == other->longest.threads);
    CHECK(one->longest.dynamic_shared == other->longest.dynamic_shared);
    CHECK(one->longest.cluster == other->longest.cluster);
    CHECK(memcmp(one->feature, other->feature, sizeof one->feature) == 0);
}

static void test_line(void)
{
    struct kg_samples samples = {.count = 0};
    struct kg_error error;
    struct kg_text text = {0};
    CHECK_STATUS(kg_samples_read(good, sizeof good - 1, &samples, &error), KG_OK, &error);
    CHECK_STATUS(kg_samples_read("\n \n", 3, &samples, &error), KG_OK, &error);
    const struct kg_forecast *forecast = &samples.list[0].forecast;
    CHECK(samples.count == 1 && isnan(forecast->points) && forecast->known);
    CHECK(forecast->feature[KG_FEATURE_EXPOSED] == 0.5 && forecast->launches == 2);
    CHECK(forecast->longest.grid == 132 && forecast->longest.threads == 256);
    CHECK(forecast->estimate > forecast->bound);
    kg_samples_write(&samples.list[0], &text);
    CHECK_STATUS(kg_samples_read(text.data, text.length, &samples, &error), KG_OK, &error);
    CHECK(samples.count == 2);
    check_same(&samples.list[0], &samples.list[1]);
    kg_text_free(&text);
    kg_samples_free(&samples);
}

// Lines of schema 1 know neither op nor launch.
static void test_old_line(void)
{
    static const char old[] =
        "{\"schema\": 1, \"device\": \"d\", \"family\": \"f\", \"problem\": \"p\", "
        "\"candidate\": \"c\", \"warm\": true, \"bound\": 1e-5, \"seconds\": 2e-5, "
        "\"spread\": 0, \"points\": 7, \"features\": null}";
    struct kg_samples samples = {.count = 0};
    struct kg_error error;
    struct kg_text text = {0};
    CHECK_STATUS(kg_samples_read(old, sizeof old - 1, &samples, &error), KG_OK, &error);
    CHECK(samples.count == 1 && !samples.list[0].forecast.known && samples.list[0].warm);
    CHECK_TEXT(samples.list[0].op, "");
    CHECK(samples.list[0].forecast.points == 7 && samples.list[0].forecast.launches == 1);
    kg_samples_write(&samples.list[0], &text);
    CHECK(strstr(text.data, "\"schema\": 2") && strstr(text.data, "\"launch\": null"));
    CHECK_STATUS(kg_samples_read(text.data, text.length, &samples, &error), KG_OK, &error);
    check_same(&samples.list[0], &samples.list[1]);
    kg_text_free(&text);
    kg_samples_free(&samples);
}

static void test_filter(void)
{
    static const struct {
        struct kg_sample_filter filter;
        int count;
    } cases[] = {
        {{.op = NULL}, 1},     {{.op = "o"}, 1},
        {{.op = "other"}, 0},  {{.device = "D"}, 1},
        {{.device = "e"}, 0},  {{.family = "f"}, 1},
        {{.family = "ff"}, 0}, {{.op = "o", .family = "f"}, 1},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct kg_samples samples = {.filter = &cases[c].filter};
        CHECK(kg_samples_read(good, sizeof good - 1, &samples, NULL) == KG_OK);
        CHECK(samples.count == cases[c].count);
        kg_samples_free(&samples);
    }
}

// Each replaces a part of the good line.
static void test_wrong_lines(void)
{
    static const struct {
        const char *from, *to, *says;
    } changes[] = {
        {"\"schema\": 2", "\"schema\": 3", "\"schema\" must be a whole number from 1 to 2"},
        {"\"schema\": 2", "\"schema\": 1", "has 13 members, not 11"},
        {"\"device\": \"d\", ", "", "has 12 members, not 13"},
        {"\"op\": \"o\"", "\"op\": null", "\"op\" must be a text"},
        {"\"kernels\": 2", "\"kernels\": 0", "\"kernels\" must be a whole number from 1"},
        {"\"blocks\": 132", "\"blocks\": 1.5", "\"blocks\" must be a whole number"},
        {"\"threads\": 256", "\"threads\": 99999999999", "\"threads\" must be a whole number"},
        {"\"shared_bytes\": 1024", "\"shared_bytes\": -1", "\"shared_bytes\" must be"},
        {", \"cluster\": 2", "", "\"launch\" must be an object of 5 numbers"},
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
static void invent(struct kg_text *text, bool several_ops)
{
    struct kg_model_coefficients truth = kg_model_prior;
    truth.beta[KG_FEATURE_SPILLS] = 5;
    unsigned state = 3;
    for (int s = 0; s < 160; s++) {
        char problem[16], op[16];
        snprintf(problem, sizeof problem, "p%d", s % 8);
        snprintf(op, sizeof op, "op%d", s % 8 / 2);
        struct kg_sample sample = {.device = "device",
                                   .family = "family",
                                   .op = several_ops ? op : "op",
                                   .problem = problem,
                                   .candidate = "one"};
        struct kg_forecast *forecast = &sample.forecast;
        *forecast = (struct kg_forecast){.known = true, .launches = 1 + s % 2, .points = s % 3};
        forecast->longest = (struct kg_model_launch){.grid = 132, .threads = 128};
        forecast->bound = 1e-4 * (1 + s % 8) * (1 + 0.2 * next_random(&state));
        for (int f = 0; f < KG_FEATURE_DERIVED; f++)
            forecast->feature[f] = next_random(&state);
        forecast->feature[KG_FEATURE_BASE] = 1;
        sample.seconds = kg_model_estimate(forecast->bound, forecast->feature, forecast->launches,
                                           false, &truth);
        kg_samples_write(&sample, text);
    }
}

static double ordered(const json_t *group, const char *order)
{
    const json_t *report = json_object_get(json_object_get(group, "orders"), order);
    return json_number_value(json_object_get(report, "ordered"));
}

static void check_fit(bool several_ops)
{
    struct kg_text lines = {0};
    char *text = NULL;
    invent(&lines, several_ops);
    CHECK(kg_fit(context, "invented", lines.data, lines.length, NULL, true, &text) == KG_OK);
    json_t *json = text ? json_loads(text, 0, NULL) : NULL;
    const json_t *group = json_array_get(json_object_get(json, "groups"), 0);
    CHECK(json_integer_value(json_object_get(group, "samples")) == 160);
    CHECK(json_integer_value(json_object_get(group, "problems")) == 8);
    CHECK(json_integer_value(json_object_get(group, "pairs")) == 8 * 20 * 19 / 2);
    CHECK_TEXT(json_string_value(json_object_get(group, "held_out")),
               several_ops ? "op" : "problem");
    CHECK(json_integer_value(json_object_get(group, "held")) == (several_ops ? 4 : 8));
    CHECK(ordered(group, "fitted") > 0.97 && ordered(group, "prior") < 0.9);
    CHECK(ordered(group, "points") > 0.35 && ordered(group, "points") < 0.65);
    const json_t *points = json_object_get(json_object_get(group, "orders"), "points");
    const json_t *fitted = json_object_get(json_object_get(group, "orders"), "fitted");
    CHECK(json_integer_value(json_object_get(points, "dropped")) == 80);
    CHECK(json_integer_value(json_object_get(points, "false_drops")) > 0);
    CHECK(json_integer_value(json_object_get(fitted, "false_drops")) == 0);
    const json_t *coefficients = json_object_get(group, "coefficients");
    CHECK(fabs(json_number_value(json_object_get(coefficients, "spills")) - 5) < 0.5);
    CHECK(json_object_size(coefficients) == KG_FEATURE_COUNT);
    json_decref(json);
    kg_text_release(text);
    CHECK(kg_fit(context, "invented", lines.data, lines.length, NULL, false, &text) == KG_OK);
    CHECK(strstr(text, "device, family: 160 samples of 8 problems") != NULL);
    CHECK(strstr(text, several_ops ? "fitted to the other ops" : "fitted to the other problems"));
    kg_text_release(text);
    kg_text_free(&lines);
}

static void test_fit(void)
{
    check_fit(true);
    check_fit(false);
}

// What is known with features and what is not of one device and family are two groups.
static void test_without_features(void)
{
    struct kg_text lines = {0};
    char *text = NULL;
    invent(&lines, true);
    kg_text_add(&lines, "{\"schema\": 1, \"device\": \"device\", \"family\": \"family\", "
                        "\"problem\": \"p\", \"candidate\": \"c\", \"warm\": true, "
                        "\"bound\": 1e-5, \"seconds\": 2e-5, \"spread\": 0, \"points\": 7, "
                        "\"features\": null}\n");
    CHECK(kg_fit(context, "both", lines.data, lines.length, NULL, false, &text) == KG_OK);
    CHECK(strstr(text, "device, family: 160 samples of 8 problems") != NULL);
    CHECK(strstr(text, "device, family: 1 sample of 1 problem,") != NULL);
    CHECK(strstr(text, "no features, so nothing is fitted") != NULL);
    kg_text_release(text);
    kg_text_free(&lines);
}

static void test_nothing(void)
{
    char *text;
    CHECK(kg_fit(context, "empty", "", 0, NULL, false, &text) == KG_ERROR_ARGUMENT && !text);
    CHECK_TEXT(kg_context_error(context), "empty: there are no samples in it");
    CHECK(kg_fit(context, "bad", "{}", 2, NULL, false, &text) == KG_ERROR_CORRUPT && !text);
    CHECK(strncmp(kg_context_error(context), "bad: line 1: ", 13) == 0);
    CHECK(kg_fit(context, NULL, NULL, 0, NULL, false, &text) == KG_ERROR_IO && !text);
    CHECK(kg_samples_export(context, NULL, &text) == KG_ERROR_IO && !text);
    // One problem, no features: there is a page all the same.
    CHECK(kg_fit(context, "one", good, sizeof good - 1, NULL, false, &text) == KG_OK);
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
    struct kg_measurement measured = {.family = "f", .op = "o", .problem = "p", .seconds = 1e-3};
    struct kg_prediction prediction = {.size = sizeof prediction};
    char *line = NULL;
    CHECK(kg_assembly_read(context, "sample", bytes, length, &assembly) == KG_OK);
    CHECK(kg_assembly_sample(assembly, 0, &launch, &measured, &line) == KG_OK);
    CHECK(kg_assembly_predict(assembly, 0, &launch, &prediction) == KG_OK);
    struct kg_samples samples = {.count = 0};
    CHECK(kg_samples_read(line, strlen(line), &samples, NULL) == KG_OK && samples.count == 1);
    const struct kg_forecast *forecast = &samples.list[0].forecast;
    CHECK(forecast->bound == prediction.bound && forecast->estimate == prediction.estimate);
    CHECK(samples.list[0].seconds == 1e-3 && forecast->known && forecast->longest.grid == 1000);
    CHECK_TEXT(samples.list[0].op, "o");
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
    CHECK(kg_context_create(&options, &context) == KG_OK && context != NULL);
}

static void end(void)
{
    kg_context_destroy(context);
}

TEST_MAIN(begin, test_line, test_old_line, test_filter, test_wrong_lines, test_fit,
          test_without_features, test_nothing, test_sample_of_kernel, end)
