// Samples come from files of anyone, so every line is bounded and every member checked: each must
// be there once, of its type and in its range.
//
//     {"schema": 1, "device": "NVIDIA H100 80GB HBM3", "family": "contract", "problem": "4096^3
//     f16",
//      "candidate": "128x128", "warm": false, "bound": 1.3e-4, "seconds": 1.9e-4, "spread": 0.01,
//      "points": 640, "features": {"expected": 0.2, "base": 1, ...}}

#include "store/samples.h"

#include "base/json.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST_LINE ((size_t)64 << 10)
#define LONGEST_TEXT ((size_t)4096)
#define MEMBERS 11
#define MOST_FEATURE 1e6

static bool grow(struct kg_samples *samples)
{
    if (samples->count < samples->capacity)
        return true;
    int capacity = samples->capacity ? samples->capacity * 2 : 256;
    struct kg_sample *list = realloc(samples->list, (size_t)capacity * sizeof *list);
    if (!list)
        return false;
    samples->list = list;
    samples->capacity = capacity;
    return true;
}

static enum kg_status append(struct kg_samples *samples, const struct kg_sample *sample,
                             struct kg_error *error)
{
    if (samples->count == KG_MOST_SAMPLES)
        return kg_error_set(error, KG_ERROR_ARGUMENT, "more than %d samples", KG_MOST_SAMPLES);
    if (!grow(samples))
        return kg_error_memory(error, "a list of samples");
    samples->list[samples->count++] = *sample;
    return KG_OK;
}

// ---- Lines

struct line {
    json_t *json;
    struct kg_arena *arena;
    struct kg_error *error;
    bool failed;
};

__attribute__((format(printf, 2, 3))) static void refuse(struct line *line, const char *format, ...)
{
    char reason[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    if (!line->failed)
        kg_error_set(line->error, KG_ERROR_CORRUPT, "%s", reason);
    line->failed = true;
}

static const char *take_text(struct line *line, const char *name)
{
    json_t *value = json_object_get(line->json, name);
    size_t length = json_string_length(value);
    if (!json_is_string(value) || length > LONGEST_TEXT) {
        refuse(line, "\"%s\" must be a text of at most %zu bytes", name, LONGEST_TEXT);
        return "";
    }
    const char *copy = kg_arena_copy(line->arena, json_string_value(value), length);
    if (!copy && !line->failed) {
        kg_error_memory(line->error, "a sample");
        line->failed = true;
    }
    return copy ? copy : "";
}

static double take_number(struct line *line, const json_t *object, const char *name, double least,
                          double most)
{
    const json_t *value = json_object_get(object, name);
    double number = json_number_value(value);
    if (!json_is_number(value) || !(number >= least && number <= most)) {
        refuse(line, "\"%s\" must be a number from %g to %g", name, least, most);
        return least;
    }
    return number;
}

static void take_features(struct line *line, struct kg_fit_sample *fit)
{
    const json_t *features = json_object_get(line->json, "features");
    if (!json_is_object(features) || json_object_size(features) != KG_FEATURE_COUNT) {
        refuse(line, "\"features\" must be an object of %d numbers", KG_FEATURE_COUNT);
        return;
    }
    for (int f = 0; f < KG_FEATURE_COUNT; f++)
        fit->feature[f] = take_number(line, features, kg_feature_name((enum kg_feature)f),
                                      -MOST_FEATURE, MOST_FEATURE);
}

static void read_members(struct line *line, struct kg_sample *sample)
{
    json_t *schema = json_object_get(line->json, "schema");
    if (!json_is_integer(schema) || json_integer_value(schema) != KG_SAMPLE_SCHEMA)
        refuse(line, "\"schema\" must be %d", KG_SAMPLE_SCHEMA);
    if (json_object_size(line->json) != MEMBERS)
        refuse(line, "has %zu members, not %d", json_object_size(line->json), MEMBERS);
    sample->device = take_text(line, "device");
    sample->family = take_text(line, "family");
    sample->problem = take_text(line, "problem");
    sample->candidate = take_text(line, "candidate");
    json_t *warm = json_object_get(line->json, "warm");
    if (!json_is_boolean(warm))
        refuse(line, "\"warm\" must be true or false");
    sample->fit.warm = json_is_true(warm);
    sample->fit.bound = take_number(line, line->json, "bound", 1e-12, 1e9);
    sample->fit.measured = take_number(line, line->json, "seconds", 1e-12, 1e9);
    sample->fit.spread = take_number(line, line->json, "spread", 0, 1e3);
    sample->points = (double)NAN;
    if (!json_is_null(json_object_get(line->json, "points")))
        sample->points = take_number(line, line->json, "points", -1e15, 1e15);
    sample->has_features = !json_is_null(json_object_get(line->json, "features"));
    if (sample->has_features)
        take_features(line, &sample->fit);
}

static enum kg_status read_line(const char *text, size_t length, struct kg_samples *samples,
                                struct kg_error *error)
{
    if (length > LONGEST_LINE)
        return kg_error_set(error, KG_ERROR_CORRUPT, "is longer than %zu bytes", LONGEST_LINE);
    json_error_t why;
    struct line line = {.arena = &samples->arena, .error = error};
    line.json = json_loadb(text, length, JSON_REJECT_DUPLICATES, &why);
    // Not every lack of memory gets Jansson's code for it; a syntax error always has a text.
    if (!line.json && (json_error_code(&why) == json_error_out_of_memory || !why.text[0]))
        return kg_error_memory(error, "a sample");
    if (!line.json)
        return kg_error_set(error, KG_ERROR_CORRUPT, "is no JSON: %s", why.text);
    struct kg_sample sample = {.points = 0};
    enum kg_status status = KG_OK;
    if (json_is_object(line.json))
        read_members(&line, &sample);
    else
        refuse(&line, "is no JSON object");
    status = line.failed ? error->status : append(samples, &sample, error);
    json_decref(line.json);
    return status;
}

static bool is_blank(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (text[i] != ' ' && text[i] != '\t' && text[i] != '\r')
            return false;
    return true;
}

enum kg_status kg_samples_read(const char *lines, size_t length, struct kg_samples *samples,
                               struct kg_error *error)
{
    struct kg_error local;
    error = error ? error : &local;
    int before = samples->count;
    size_t number = 0;
    for (size_t at = 0; at < length;) {
        const char *end = memchr(lines + at, '\n', length - at);
        size_t size = end ? (size_t)(end - (lines + at)) : length - at;
        number++;
        enum kg_status status = KG_OK;
        if (!is_blank(lines + at, size))
            status = read_line(lines + at, size, samples, error);
        if (status != KG_OK) {
            kg_error_prefix(error, "line %zu", number);
            samples->count = before;
            return status;
        }
        at += size + 1;
    }
    return KG_OK;
}

void kg_samples_write(const struct kg_sample *sample, struct kg_text *text)
{
    struct kg_json json = {.text = text};
    kg_json_begin_object(&json, NULL);
    kg_json_integer(&json, "schema", KG_SAMPLE_SCHEMA);
    kg_json_text(&json, "device", sample->device);
    kg_json_text(&json, "family", sample->family);
    kg_json_text(&json, "problem", sample->problem);
    kg_json_text(&json, "candidate", sample->candidate);
    kg_json_boolean(&json, "warm", sample->fit.warm);
    kg_json_number(&json, "bound", sample->fit.bound);
    kg_json_number(&json, "seconds", sample->fit.measured);
    kg_json_number(&json, "spread", sample->fit.spread);
    kg_json_number(&json, "points", sample->points);
    if (sample->has_features)
        kg_json_begin_object(&json, "features");
    else
        kg_json_text(&json, "features", NULL);
    for (int f = 0; f < KG_FEATURE_COUNT && sample->has_features; f++)
        kg_json_number(&json, kg_feature_name((enum kg_feature)f), sample->fit.feature[f]);
    if (sample->has_features)
        kg_json_end_object(&json);
    kg_json_end_object(&json);
    kg_text_add(text, "\n");
}

// ---- Records

struct collecting {
    struct kg_store *store;
    struct kg_samples *samples;
    struct kg_error *error;
    enum kg_status status;
    // Of the key at hand.
    const char *device, *problem;
    bool warm;
};

static void take_outcome(void *user, const struct kg_outcome *outcome)
{
    struct collecting *collecting = user;
    struct kg_arena *arena = &collecting->samples->arena;
    const struct kg_timing *timing = &outcome->timing;
    bool usable = outcome->kind == KG_OUTCOME_MEASURED && outcome->bound > 0 &&
                  timing->median > 0 && isfinite(outcome->bound) && isfinite(timing->median);
    if (!usable || collecting->status != KG_OK)
        return;
    // "rowwise*3: block=4; direct: ..." is of two families at once, and of neither alone.
    size_t first = strcspn(outcome->choice, ":*"), all = strlen(outcome->choice);
    bool several = strchr(outcome->choice, ';') != NULL;
    struct kg_sample sample = {
        .device = collecting->device,
        .family = several ? "several" : kg_arena_copy(arena, outcome->choice, first),
        .problem = collecting->problem,
        .candidate = kg_arena_copy(arena, outcome->choice, all),
        .points = (double)NAN,
        .fit = {.bound = outcome->bound,
                .measured = timing->median,
                .spread = kg_time_uncertainty(timing) / timing->median,
                .warm = collecting->warm},
    };
    if (!sample.family || !sample.candidate)
        collecting->status = kg_error_memory(collecting->error, "the samples of the records");
    else if (!(sample.fit.spread >= 0) || !isfinite(sample.fit.spread))
        return;
    else
        collecting->status = append(collecting->samples, &sample, collecting->error);
}

static void take_key(void *user, const struct kg_key *key)
{
    struct collecting *collecting = user;
    struct kg_arena *arena = &collecting->samples->arena;
    if (collecting->status != KG_OK)
        return;
    collecting->warm = strncmp(key->protocol, "warm", 4) == 0;
    collecting->device =
        kg_arena_format(arena, "%s, %d units, %s", key->device, key->units, key->isa);
    collecting->problem =
        kg_arena_format(arena, "%s %s %s %s %s %s %s %s %016llx", key->op, key->dtypes, key->sizes,
                        key->layout, key->protocol, key->driver, key->compiler, key->generator,
                        (unsigned long long)key->definition.high);
    if (!collecting->device || !collecting->problem)
        collecting->status = kg_error_memory(collecting->error, "the samples of the records");
    else
        collecting->status =
            kg_store_each(collecting->store, key, take_outcome, collecting, collecting->error);
}

enum kg_status kg_samples_collect(struct kg_store *store, const char *op,
                                  struct kg_samples *samples, struct kg_error *error)
{
    struct collecting collecting = {.store = store, .samples = samples, .error = error};
    enum kg_status status = kg_store_keys(store, op, take_key, &collecting, error);
    return status != KG_OK ? status : collecting.status;
}

void kg_samples_free(struct kg_samples *samples)
{
    kg_arena_free(&samples->arena);
    free(samples->list);
    *samples = (struct kg_samples){0};
}
