// Contexts and their devices.

#include "api/sized.h"

#include "base/json.h"
#include "base/printable.h"
#include "device/device_turn.h"
#include "device/objects.h"
#include "gen/target.h"
#include "report/outcomes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DATE_TEXT 32

const char *kg_dtype_numpy(enum kg_dtype dtype, bool *is_raw)
{
    bool known = (unsigned)dtype < KG_DTYPE_COUNT;
    if (is_raw)
        *is_raw = known && kg_dtypes[dtype].numpy_is_raw;
    return known ? kg_dtypes[dtype].numpy : NULL;
}

int kg_dtype_bits(enum kg_dtype dtype)
{
    return (unsigned)dtype < KG_DTYPE_COUNT ? kg_dtypes[dtype].bits : 0;
}

const char *kg_dtype_name(enum kg_dtype dtype)
{
    return (unsigned)dtype < KG_DTYPE_COUNT ? kg_dtypes[dtype].name : "unknown dtype";
}

const char *kg_rigor_name(enum kg_rigor rigor)
{
    static const char *const names[KG_RIGOR_COUNT] = {"estimate",   "measure", "patient",
                                                      "exhaustive", "wisdom",  "default"};
    return (unsigned)rigor < KG_RIGOR_COUNT ? names[rigor] : "unknown rigor";
}

void kg_text_release(char *text)
{
    free(text);
}

void kg_text_make_printable(char *text)
{
    if (text)
        kg_printable_text(text, strlen(text));
}

enum kg_status kg_api_give(struct kg_context *context, enum kg_status status, struct kg_text *text,
                           char **out)
{
    if (!context || !out) { // which the caller has reported
        kg_text_free(text);
        return status ? status : KG_ERROR_ARGUMENT;
    }
    *out = NULL;
    if (status == KG_OK && !text->data)
        kg_text_add_bytes(text, "", 0);
    if (status == KG_OK && (text->failed || !text->data))
        status = kg_error_memory(&context->error, "a text");
    if (status == KG_OK)
        *out = text->data;
    else
        kg_text_free(text);
    return status;
}

static enum kg_status open_records(struct kg_context *context)
{
    struct kg_session *session = &context->session;
    struct kg_text notice = {0};
    enum kg_status status = kg_files_home(context->options.home, &context->home, &session->missing);
    session->home = context->home;
    if (status == KG_ERROR_MEMORY)
        return kg_error_memory(&context->error, "the path of the data folder");
    status = kg_session_open(session, &notice, &context->error);
    if (status == KG_OK && notice.length)
        kg_session_tell(session, "%s", notice.data);
    kg_text_free(&notice);
    if (status == KG_OK && session->missing.status)
        context->error = session->missing;
    return status;
}

enum kg_status kg_api_records(struct kg_context *context)
{
    if (!context)
        return KG_ERROR_ARGUMENT;
    const struct kg_error *missing = &context->session.missing;
    return kg_error_set(&context->error, missing->status, "%s", missing->text);
}

static enum kg_status name_wisdom(struct kg_context *context)
{
    const char *path = context->options.wisdom;
    if (!path)
        path = getenv("KERNELGEN_WISDOM");
    if (!path || !*path)
        return KG_OK;
    context->wisdom = strdup(path);
    context->session.file_path = context->wisdom;
    return context->wisdom ? KG_OK : kg_error_memory(&context->error, "the wisdom file");
}

enum kg_status kg_context_create(const struct kg_options *options, struct kg_context **out)
{
    if (!out)
        return KG_ERROR_ARGUMENT;
    *out = NULL;
    struct kg_context *context = calloc(1, sizeof *context);
    if (!context)
        return KG_ERROR_MEMORY;
    *out = context;
    enum kg_status status =
        kg_api_take(&kg_sized_options, options, &context->options, &context->error);
    if (status != KG_OK)
        return status;
    if (context->options.threads < 0)
        return kg_error_set(&context->error, KG_ERROR_ARGUMENT, "%d threads cannot work",
                            context->options.threads);
    context->session.threads = context->options.threads;
    context->session.cancel = context->options.cancel;
    context->session.protocol = kg_protocol_default;
    context->session.progress = context->options.progress;
    context->session.notice = context->options.notice;
    context->session.user = context->options.user;
    context->session.times.began = kg_times_now();
    status = name_wisdom(context);
    if (status == KG_OK)
        status = open_records(context);
    context->options.home = context->options.wisdom = NULL; // they need not outlive the call
    return status;
}

enum kg_status kg_context_set_protocol(struct kg_context *context, const char *protocol)
{
    struct kg_protocol read;
    enum kg_status status = KG_API_NEEDS(context, context, protocol);
    if (status != KG_OK)
        return status;
    if (!kg_protocol_read(protocol, &read))
        return kg_error_set(&context->error, KG_ERROR_ARGUMENT,
                            "'%s' is no protocol; it is made of cold or warm, launch or graph",
                            protocol);
    context->session.protocol = read;
    return KG_OK;
}

enum kg_status kg_context_set_effort(struct kg_context *context, double effort)
{
    enum kg_status status = KG_API_NEEDS(context, context);
    if (status != KG_OK)
        return status;
    if (!(effort >= 0.01 && effort <= 1000))
        return kg_error_set(&context->error, KG_ERROR_ARGUMENT,
                            "an effort is a number from 0.01 to 1000, and not %g", effort);
    context->session.effort = effort;
    return KG_OK;
}

void kg_context_set_sanitize(struct kg_context *context, bool sanitize)
{
    if (context)
        context->session.sanitizes = sanitize;
}

void kg_context_set_nearest(struct kg_context *context, bool nearest)
{
    if (context)
        context->takes_nearest = nearest;
}

void kg_context_destroy(struct kg_context *context)
{
    if (!context)
        return;
    for (int i = 0; i < context->device_count; i++) {
        kg_device_close(context->devices[i]);
        free(context->device_names[i]);
    }
    kg_store_close(context->session.store);
    kg_store_close(context->session.file);
    free(context->wisdom);
    free(context->home);
    free(context);
}

const char *kg_context_error(const struct kg_context *context)
{
    return context ? context->error.text : "out of memory";
}

static enum kg_status open_device(struct kg_context *context, const char *name,
                                  struct kg_device **device)
{
    const struct kg_target *target = kg_target_find(name);
    if (target && target->only_emits)
        return kg_error_set(&context->error, KG_ERROR_MISSING,
                            "%s is no device here: kernels for it are only emitted, and other "
                            "programs run them",
                            name);
    if (context->device_count == KG_MAX_DEVICES)
        return kg_error_set(&context->error, KG_ERROR_ARGUMENT,
                            "a context opens at most %d devices", KG_MAX_DEVICES);
    struct kg_text cache = {0};
    if (context->home) // else the device finds a place of its own
        kg_text_format(&cache, "%s/cache", context->home);
    char *copy = strdup(name);
    double start = kg_times_now();
    enum kg_status status =
        cache.failed || !copy
            ? kg_error_memory(&context->error, "a device")
            : kg_device_open(name, cache.data, context->session.threads, device, &context->error);
    kg_text_free(&cache);
    kg_times_since(&context->session.times, KG_ACTIVITY_OPEN, start);
    if (status == KG_OK && !kg_target_of(*device)) {
        status = kg_error_set(&context->error, KG_ERROR_UNSUPPORTED,
                              "nothing writes kernels for devices of the kind %s",
                              (*device)->backend->name);
        kg_device_close(*device);
        *device = NULL;
    }
    if (status != KG_OK) {
        free(copy);
        return status;
    }
    (void)kg_objects_spare(*device); // one that is full is told of now
    kg_session_tell_of_cache(&context->session, *device);
    (*device)->cancel = context->options.cancel;
    context->device_names[context->device_count] = copy;
    context->devices[context->device_count++] = *device;
    return KG_OK;
}

// A GPU that kernels can be compiled for is the best there is. Whatever keeps it from working, the
// host still does.
static enum kg_status open_best(struct kg_context *context, struct kg_device **device)
{
    enum kg_status status = kg_context_device(context, "cuda:0", device);
    if (status == KG_OK && (*device)->compiler[0])
        return KG_OK;
    kg_error_clear(&context->error);
    return kg_context_device(context, "host", device);
}

enum kg_status kg_context_device(struct kg_context *context, const char *name,
                                 struct kg_device **device)
{
    enum kg_status status = KG_API_NEEDS(context, context, device);
    if (status != KG_OK)
        return status;
    *device = NULL;
    if (!name)
        return open_best(context, device);
    for (int i = 0; i < context->device_count; i++)
        if (strcmp(context->device_names[i], name) == 0) {
            *device = context->devices[i];
            return KG_OK;
        }
    return open_device(context, name, device);
}

enum kg_status kg_api_name_device(struct kg_context *context, const char **name)
{
    struct kg_device *device;
    if (!*name || !kg_backend_find(*name, strcspn(*name, ":")))
        return KG_OK;
    enum kg_status status = kg_context_device(context, *name, &device);
    if (status == KG_OK)
        *name = device->facts.name;
    return status;
}

const char *kg_device_target(const struct kg_device *device)
{
    return device ? kg_target_of(device)->name : NULL;
}

bool kg_device_takes_turns(const struct kg_device *device)
{
    return device && kg_device_has_turns(device);
}

enum kg_status kg_context_timings(struct kg_context *context, bool json, char **text)
{
    enum kg_status status = KG_API_NEEDS(context, context, text);
    struct kg_text written = {0};
    if (status != KG_OK)
        return status;
    kg_times_print(&context->session.times, json, &written);
    if (json)
        kg_text_add(&written, "\n");
    return kg_api_give(context, KG_OK, &written, text);
}

// "2026-01-31T12:00:00Z", or "".
static const char *format_date(const struct kg_device_facts *facts, char date[DATE_TEXT])
{
    time_t when = (time_t)facts->measured;
    struct tm parts;
    date[0] = '\0';
    if (when > 0 && gmtime_r(&when, &parts))
        strftime(date, DATE_TEXT, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return date;
}

static void add_facts(const char *name, const struct kg_device *device, struct kg_text *text)
{
    const struct kg_device_facts *facts = &device->facts;
    bool grids = device->backend->runs_grids;
    kg_text_format(text, "%-8s %s\n", name, facts->name);
    kg_text_format(text, "         %s\n", facts->isa);
    kg_text_format(text, "         %d %s at %.2f GHz, vectors of %d bytes\n", facts->units,
                   grids ? "SMs" : "units", facts->clock / 1e9, facts->vector_bytes);
    kg_text_format(text, "         %.1f GB/s, f32 %.0f GFLOP/s, f64 %.0f GFLOP/s",
                   facts->bandwidth / 1e9, facts->flops[KG_TYPE_F32] / 1e9,
                   facts->flops[KG_TYPE_F64] / 1e9);
    char date[DATE_TEXT];
    kg_text_format(text, facts->measured ? ", measured %s\n" : "\n", format_date(facts, date));
    if (!grids && facts->matrix_flops[KG_BF16] > 0)
        kg_text_format(text, "         matrices: bf16 %.1f TFLOP/s\n",
                       facts->matrix_flops[KG_BF16] / 1e12);
    if (grids && facts->matrix_flops[KG_F16] > 0)
        kg_text_format(text,
                       "         matrices: f16 %.0f TFLOP/s, i8 %.0f TOP/s, f64 %.0f TFLOP/s\n",
                       facts->matrix_flops[KG_F16] / 1e12, facts->matrix_flops[KG_I8] / 1e12,
                       facts->matrix_flops[KG_F64] / 1e12);
    if (grids)
        kg_text_format(text, "         L1 %lld KiB, L2 %lld KiB, shared memory %lld KiB a block\n",
                       (long long)facts->cache[1] >> 10, (long long)facts->cache[2] >> 10,
                       (long long)facts->shared_bytes >> 10);
    else
        kg_text_format(text, "         caches %lld KiB, %lld KiB, %lld KiB\n",
                       (long long)facts->cache[1] >> 10, (long long)facts->cache[2] >> 10,
                       (long long)facts->cache[3] >> 10);
    if (device->driver[0])
        kg_text_format(text, "         driver: %s\n", device->driver);
    kg_text_format(text, "         compiler: %s\n",
                   device->compiler[0] ? device->compiler : "none");
}

static void add_facts_json(const char *name, const struct kg_device *device, struct kg_json *json)
{
    const struct kg_device_facts *facts = &device->facts;
    kg_json_begin_object(json, NULL);
    kg_json_text(json, "device", name);
    kg_json_text(json, "name", facts->name);
    kg_json_text(json, "isa", facts->isa);
    kg_json_integer(json, "units", facts->units);
    kg_json_number(json, "clock", facts->clock);
    kg_json_number(json, "bandwidth", facts->bandwidth);
    char date[DATE_TEXT];
    if (facts->measured)
        kg_json_text(json, "measured", format_date(facts, date));
    kg_json_number(json, "flops_f32", facts->flops[KG_TYPE_F32]);
    kg_json_number(json, "flops_f64", facts->flops[KG_TYPE_F64]);
    kg_json_begin_array(json, "cache");
    for (int i = 1; i < 4; i++)
        kg_json_integer(json, NULL, facts->cache[i]);
    kg_json_end_array(json);
    kg_json_integer(json, "vector_bytes", facts->vector_bytes);
    if (device->backend->runs_grids) {
        kg_json_number(json, "matrix_flops_f16", facts->matrix_flops[KG_F16]);
        kg_json_integer(json, "shared_bytes", facts->shared_bytes);
    }
    kg_json_text(json, "compiler", device->compiler);
    kg_json_text(json, "driver", device->driver);
    kg_json_end_object(json);
}

static void add_absence_json(const char *name, const char *why, struct kg_json *json)
{
    kg_json_begin_object(json, NULL);
    kg_json_text(json, "backend", name);
    kg_json_text(json, "missing", why);
    kg_json_end_object(json);
}

enum kg_status kg_context_devices(struct kg_context *context, bool json, char **text)
{
    enum kg_status status = KG_API_NEEDS(context, context, text);
    struct kg_text written = {0};
    if (status != KG_OK)
        return status;
    struct kg_json array = {.text = &written};
    if (json)
        kg_json_begin_array(&array, NULL);
    for (int b = 0; kg_backends[b]; b++) {
        const struct kg_backend *backend = kg_backends[b];
        struct kg_text why = {0};
        int count = backend->probe(&why);
        if (count == 0 && json)
            add_absence_json(backend->name, kg_text_string(&why), &array);
        else if (count == 0)
            kg_text_format(&written, "%-8s none: %s\n", backend->name, kg_text_string(&why));
        kg_text_free(&why);
        for (int i = 0; i < count; i++) {
            char name[32];
            if (backend->is_single)
                snprintf(name, sizeof name, "%s", backend->name);
            else
                snprintf(name, sizeof name, "%s:%d", backend->name, i);
            struct kg_device *device;
            status = kg_context_device(context, name, &device);
            if (status != KG_OK && json)
                add_absence_json(name, context->error.text, &array);
            else if (status != KG_OK)
                kg_text_format(&written, "%-8s %s\n", name, context->error.text);
            else if (json)
                add_facts_json(name, device, &array);
            else
                add_facts(name, device, &written);
        }
    }
    if (json) {
        kg_json_end_array(&array);
        kg_text_add(&written, "\n");
    }
    return kg_api_give(context, KG_OK, &written, text);
}
