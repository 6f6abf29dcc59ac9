// Samples come from untrusted files, so every line has a maximum length and every member is
// checked: it must occur once, with its type and range.
//
//     {"schema": 2, "device": "NVIDIA H100 80GB HBM3", "family": "contract/wgmma", "op": "matmul",
//      "problem": "4096^3 f16", "candidate": "128x128", "warm": false, "seconds": 1.9e-4,
//      "spread": 0.01, "bound": 1.3e-4, "points": 640,
//      "launch": {"kernels": 1, "blocks": 1024, "threads": 256, "shared_bytes": 98304, "cluster":
//      0}, "features": {"expected": 0.2, "base": 1, ...}}

#include "store/samples.h"

#include "asm/gpu.h"
#include "store/database.h"
#include "store/forecast_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST_LINE ((size_t)64 << 10)
#define MEMBERS 13
#define MEMBERS_OF_SCHEMA_1 11 // without "op" and "launch"

// `device` is a part of the name, or what users call a GPU.
static bool is_device(const char *name, const char *device)
{
    const struct kg_gpu *gpu = kg_gpu_named(device);
    return strcasestr(name, device) || (gpu && gpu == kg_gpu_find(name));
}

static bool passes(const struct kg_sample_filter *filter, const struct kg_sample *sample)
{
    return !filter || ((!filter->op || strcmp(filter->op, sample->op) == 0) &&
                       (!filter->device || is_device(sample->device, filter->device)) &&
                       (!filter->family || strcmp(filter->family, sample->family) == 0));
}

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
    if (!passes(samples->filter, sample))
        return KG_OK;
    if (samples->count == KG_MAX_SAMPLES)
        return kg_error_set(error, KG_ERROR_ARGUMENT, "more than %d samples", KG_MAX_SAMPLES);
    if (!grow(samples))
        return kg_error_memory(error, "a list of samples");
    samples->list[samples->count++] = *sample;
    return KG_OK;
}

// ---- Lines

// A line of schema 1 is one of schema 2 without op and launch.
static void take_schema(struct kg_members *members)
{
    int64_t schema = kg_members_integer(members, members->json, "schema", 1, KG_SAMPLE_SCHEMA);
    size_t count = json_object_size(members->json), right = MEMBERS;
    if (schema == 1)
        right = MEMBERS_OF_SCHEMA_1;
    if (count != right)
        kg_members_refuse(members, "has %zu members, not %zu", count, right);
    if (schema == 1 && !members->failed &&
        (json_object_set_new(members->json, "op", json_string("")) != 0 ||
         json_object_set_new(members->json, "launch", json_null()) != 0)) {
        kg_error_memory(members->error, "a sample");
        members->failed = true;
    }
}

static void read_members(struct kg_members *members, struct kg_sample *sample)
{
    take_schema(members);
    sample->device = kg_members_text(members, "device");
    sample->family = kg_members_text(members, "family");
    sample->op = kg_members_text(members, "op");
    sample->problem = kg_members_text(members, "problem");
    sample->candidate = kg_members_text(members, "candidate");
    sample->warm = kg_members_boolean(members, "warm");
    sample->seconds = kg_members_number(members, members->json, "seconds", 1e-12, 1e9);
    sample->spread = kg_members_number(members, members->json, "spread", 0, 1e3);
    struct kg_forecast_origin origin = {sample->device, sample->family, sample->warm};
    kg_store_take_forecast(members, &origin, &sample->forecast);
}

static enum kg_status read_line(const char *text, size_t length, struct kg_samples *samples,
                                struct kg_error *error)
{
    if (length > LONGEST_LINE)
        return kg_error_set(error, KG_ERROR_CORRUPT, "is longer than %zu bytes", LONGEST_LINE);
    struct kg_members members;
    if (!kg_members_open(&members, text, length, &samples->arena, error))
        return error->status;
    struct kg_sample sample;
    read_members(&members, &sample);
    kg_members_close(&members);
    return members.failed ? error->status : append(samples, &sample, error);
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
    kg_json_text(&json, "op", sample->op);
    kg_json_text(&json, "problem", sample->problem);
    kg_json_text(&json, "candidate", sample->candidate);
    kg_json_boolean(&json, "warm", sample->warm);
    kg_json_number(&json, "seconds", sample->seconds);
    kg_json_number(&json, "spread", sample->spread);
    kg_store_write_forecast(&json, &sample->forecast);
    kg_json_end_object(&json);
    kg_text_add(text, "\n");
}

// ---- Records

struct collecting {
    struct kg_store *store;
    struct kg_samples *samples;
    struct kg_error *error;
    enum kg_status status;
    struct kg_sample key; // the members that samples of the current key share
};

static bool is_time(double seconds)
{
    return seconds > 0 && isfinite(seconds);
}

static void take_outcome(void *user, const struct kg_outcome *outcome)
{
    struct collecting *collecting = user;
    struct kg_arena *arena = &collecting->samples->arena;
    const struct kg_timing *timing = &outcome->timing;
    struct kg_sample sample = collecting->key;
    sample.forecast = outcome->forecast;
    if (!sample.forecast.known)
        sample.forecast =
            (struct kg_forecast){.bound = outcome->bound, .points = (double)NAN, .launches = 1};
    sample.seconds = timing->median;
    sample.spread = kg_time_uncertainty(timing) / timing->median;
    if (outcome->kind != KG_OUTCOME_MEASURED || collecting->status != KG_OK ||
        !is_time(sample.forecast.bound) || !is_time(sample.seconds) || !(sample.spread >= 0) ||
        !isfinite(sample.spread))
        return;
    // "rowwise*3: block=4; direct: ..." has two families, so it belongs to neither.
    size_t first = strcspn(outcome->choice, ":*"), all = strlen(outcome->choice);
    bool several = strchr(outcome->choice, ';') != NULL;
    sample.family = several ? "several" : kg_arena_copy(arena, outcome->choice, first);
    sample.candidate = kg_arena_copy(arena, outcome->choice, all);
    collecting->status = sample.family && sample.candidate
                             ? append(collecting->samples, &sample, collecting->error)
                             : kg_error_memory(collecting->error, "the samples of the records");
}

// A GPU is identified by its name, a host also by its number of cores.
static void take_key(void *user, const struct kg_key *key)
{
    struct collecting *collecting = user;
    struct kg_arena *arena = &collecting->samples->arena;
    struct kg_sample *common = &collecting->key;
    char digits[KG_HASH_TEXT];
    if (collecting->status != KG_OK)
        return;
    kg_hash_format(kg_store_hash_key(key, ""), digits);
    bool is_gpu = strncmp(key->isa, "sm_", 3) == 0;
    *common = (struct kg_sample){.warm = strncmp(key->protocol, "warm", 4) == 0};
    common->device =
        is_gpu ? kg_arena_format(arena, "%s", key->device)
               : kg_arena_format(arena, "%s, %d units, %s", key->device, key->units, key->isa);
    common->op = kg_arena_format(arena, "%s", key->op);
    common->problem = kg_arena_format(arena, "%s %s %s, %s, %.8s", key->op, key->dtypes, key->sizes,
                                      key->protocol, digits);
    if (!common->device || !common->op || !common->problem)
        collecting->status = kg_error_memory(collecting->error, "the samples of the records");
    else
        collecting->status =
            kg_store_each(collecting->store, key, take_outcome, collecting, collecting->error);
}

enum kg_status kg_samples_collect(struct kg_store *store, struct kg_samples *samples,
                                  struct kg_error *error)
{
    struct collecting collecting = {.store = store, .samples = samples, .error = error};
    const char *op = samples->filter ? samples->filter->op : NULL;
    enum kg_status status = kg_store_keys(store, op, take_key, &collecting, error);
    return status != KG_OK ? status : collecting.status;
}

void kg_samples_free(struct kg_samples *samples)
{
    kg_arena_free(&samples->arena);
    free(samples->list);
    *samples = (struct kg_samples){0};
}
