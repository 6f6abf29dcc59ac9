// See promised.h. Features go by name: an order of theirs in memory may change.

#include "store/promised.h"

#include <math.h>

#define LONGEST_PROMISE ((size_t)64 << 10)
#define MEMBERS 4
#define LAUNCH_MEMBERS 5
#define MOST_FEATURE 1e6
#define MOST_LAUNCHES (1 << 20)
#define MOST_BLOCKS ((int64_t)1 << 48)
#define MOST_THREADS (1 << 20)
#define MOST_SHARED ((int64_t)1 << 40)
#define MOST_CLUSTER 1024

void kg_store_write_promise(struct kg_json *json, const struct kg_promise *promise)
{
    const struct kg_model_launch *longest = &promise->longest;
    kg_json_number(json, "bound", promise->bound);
    kg_json_number(json, "points", promise->points);
    if (promise->known && longest->grid > 0) {
        kg_json_begin_object(json, "launch");
        kg_json_integer(json, "kernels", promise->launches);
        kg_json_integer(json, "blocks", longest->grid);
        kg_json_integer(json, "threads", longest->threads);
        kg_json_integer(json, "shared_bytes", longest->dynamic_shared);
        kg_json_integer(json, "cluster", longest->cluster);
        kg_json_end_object(json);
    } else {
        kg_json_text(json, "launch", NULL);
    }
    if (!promise->known) {
        kg_json_text(json, "features", NULL);
        return;
    }
    kg_json_begin_object(json, "features");
    for (int f = 0; f < KG_FEATURE_DERIVED; f++)
        kg_json_number(json, kg_feature_name((enum kg_feature)f), promise->feature[f]);
    kg_json_end_object(json);
}

static void take_launch(struct kg_members *members, struct kg_promise *promise)
{
    const json_t *launch = kg_members_object(members, "launch", LAUNCH_MEMBERS);
    struct kg_model_launch *longest = &promise->longest;
    promise->launches = 1;
    if (!launch)
        return;
    promise->launches = (int)kg_members_integer(members, launch, "kernels", 1, MOST_LAUNCHES);
    longest->grid = kg_members_integer(members, launch, "blocks", 1, MOST_BLOCKS);
    longest->threads = (int)kg_members_integer(members, launch, "threads", 1, MOST_THREADS);
    longest->dynamic_shared = kg_members_integer(members, launch, "shared_bytes", 0, MOST_SHARED);
    longest->cluster = (int)kg_members_integer(members, launch, "cluster", 0, MOST_CLUSTER);
}

void kg_store_take_promise(struct kg_members *members, const struct kg_promise_origin *origin,
                           struct kg_promise *promise)
{
    *promise = (struct kg_promise){.points = (double)NAN};
    promise->bound = kg_members_number(members, members->json, "bound", 1e-12, 1e9);
    if (!json_is_null(json_object_get(members->json, "points")))
        promise->points = kg_members_number(members, members->json, "points", -1e15, 1e15);
    take_launch(members, promise);
    const json_t *features = kg_members_object(members, "features", KG_FEATURE_DERIVED);
    promise->known = features != NULL;
    for (int f = 0; f < KG_FEATURE_DERIVED && features; f++)
        promise->feature[f] = kg_members_number(
            members, features, kg_feature_name((enum kg_feature)f), -MOST_FEATURE, MOST_FEATURE);
    if (!features || members->failed)
        return;
    kg_model_derive(promise->bound, &promise->longest, kg_gpu_find(origin->device),
                    promise->feature);
    promise->estimate = kg_model_estimate(promise->bound, promise->feature, promise->launches,
                                          origin->warm, kg_model_prior_of(origin->family));
}

enum kg_status kg_store_read_promise(const char *text, size_t length,
                                     const struct kg_promise_origin *origin,
                                     struct kg_promise *promise, struct kg_error *error)
{
    struct kg_error local;
    struct kg_members members;
    *promise = (struct kg_promise){0};
    error = error ? error : &local;
    if (length > LONGEST_PROMISE)
        return kg_error_set(error, KG_ERROR_CORRUPT, "is longer than %zu bytes", LONGEST_PROMISE);
    if (!kg_members_open(&members, text, length, NULL, error))
        return error->status;
    if (json_object_size(members.json) != MEMBERS)
        kg_members_refuse(&members, "has %zu members, not %d", json_object_size(members.json),
                          MEMBERS);
    kg_store_take_promise(&members, origin, promise);
    kg_members_close(&members);
    if (!members.failed)
        return KG_OK;
    *promise = (struct kg_promise){0};
    if (error->status == KG_ERROR_CORRUPT)
        error->status = KG_ERROR_UNSUPPORTED;
    return error->status;
}
