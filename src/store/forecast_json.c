// See forecast_json.h. Features are stored by name: their order in memory may change.

#include "store/forecast_json.h"

#include <math.h>

#define MAX_FORECAST_BYTES ((size_t)64 << 10)
#define MEMBERS 4
#define LAUNCH_MEMBERS 5
#define MAX_FEATURE 1e6
#define MAX_LAUNCHES (1 << 20)
#define MAX_BLOCKS ((int64_t)1 << 48)
#define MAX_THREADS (1 << 20)
#define MAX_SHARED ((int64_t)1 << 40)
#define MAX_CLUSTER 1024

void kg_store_write_forecast(struct kg_json *json, const struct kg_forecast *forecast)
{
    const struct kg_model_launch *longest = &forecast->longest;
    kg_json_number(json, "bound", forecast->bound);
    kg_json_number(json, "points", forecast->points);
    if (forecast->known && longest->grid > 0) {
        kg_json_begin_object(json, "launch");
        kg_json_integer(json, "kernels", forecast->launches);
        kg_json_integer(json, "blocks", longest->grid);
        kg_json_integer(json, "threads", longest->threads);
        kg_json_integer(json, "shared_bytes", longest->dynamic_shared);
        kg_json_integer(json, "cluster", longest->cluster);
        kg_json_end_object(json);
    } else {
        kg_json_text(json, "launch", NULL);
    }
    if (!forecast->known) {
        kg_json_text(json, "features", NULL);
        return;
    }
    kg_json_begin_object(json, "features");
    for (int f = 0; f < KG_FEATURE_DERIVED; f++)
        kg_json_number(json, kg_feature_name((enum kg_feature)f), forecast->feature[f]);
    kg_json_end_object(json);
}

static void take_launch(struct kg_members *members, struct kg_forecast *forecast)
{
    const json_t *launch = kg_members_object(members, "launch", LAUNCH_MEMBERS);
    struct kg_model_launch *longest = &forecast->longest;
    forecast->launches = 1;
    if (!launch)
        return;
    forecast->launches = (int)kg_members_integer(members, launch, "kernels", 1, MAX_LAUNCHES);
    longest->grid = kg_members_integer(members, launch, "blocks", 1, MAX_BLOCKS);
    longest->threads = (int)kg_members_integer(members, launch, "threads", 1, MAX_THREADS);
    longest->dynamic_shared = kg_members_integer(members, launch, "shared_bytes", 0, MAX_SHARED);
    longest->cluster = (int)kg_members_integer(members, launch, "cluster", 0, MAX_CLUSTER);
}

void kg_store_take_forecast(struct kg_members *members, const struct kg_forecast_origin *origin,
                            struct kg_forecast *forecast)
{
    *forecast = (struct kg_forecast){.points = (double)NAN};
    forecast->bound = kg_members_number(members, members->json, "bound", 1e-12, 1e9);
    if (!json_is_null(json_object_get(members->json, "points")))
        forecast->points = kg_members_number(members, members->json, "points", -1e15, 1e15);
    take_launch(members, forecast);
    const json_t *features = kg_members_object(members, "features", KG_FEATURE_DERIVED);
    forecast->known = features != NULL;
    for (int f = 0; f < KG_FEATURE_DERIVED && features; f++)
        forecast->feature[f] = kg_members_number(
            members, features, kg_feature_name((enum kg_feature)f), -MAX_FEATURE, MAX_FEATURE);
    if (!features || members->failed)
        return;
    kg_model_derive(forecast->bound, &forecast->longest, kg_gpu_find(origin->device),
                    forecast->feature);
    forecast->estimate = kg_model_estimate(forecast->bound, forecast->feature, forecast->launches,
                                           origin->warm, kg_model_prior_of(origin->family));
}

enum kg_status kg_store_read_forecast(const char *text, size_t length,
                                      const struct kg_forecast_origin *origin,
                                      struct kg_forecast *forecast, struct kg_error *error)
{
    struct kg_error local;
    struct kg_members members;
    *forecast = (struct kg_forecast){0};
    error = error ? error : &local;
    if (length > MAX_FORECAST_BYTES)
        return kg_error_set(error, KG_ERROR_CORRUPT, "is longer than %zu bytes",
                            MAX_FORECAST_BYTES);
    if (!kg_members_open(&members, text, length, NULL, error))
        return error->status;
    if (json_object_size(members.json) != MEMBERS)
        kg_members_refuse(&members, "has %zu members, not %d", json_object_size(members.json),
                          MEMBERS);
    kg_store_take_forecast(&members, origin, forecast);
    kg_members_close(&members);
    if (!members.failed)
        return KG_OK;
    *forecast = (struct kg_forecast){0};
    if (error->status == KG_ERROR_CORRUPT)
        error->status = KG_ERROR_UNSUPPORTED;
    return error->status;
}
