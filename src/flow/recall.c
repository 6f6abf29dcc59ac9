// See recall.h.

#include "flow/recall.h"

#include <stdlib.h>
#include <string.h>

static bool read_choice(const struct kg_request *request, const char *text,
                        struct kg_choice *choice)
{
    const struct kg_device *device = request->device;
    return kg_choice_read(request->problem, &device->facts, kg_session_target(device), text,
                          choice);
}

static enum kg_status keep_lesser(struct kg_recalled *recalled, const char *choice,
                                  struct kg_error *error)
{
    char *copy = strdup(choice);
    if (!copy)
        return kg_error_memory(error, "a known choice");
    recalled->lesser[recalled->lesser_count++] = copy;
    return kg_error_set(error, KG_ERROR_NO_WISDOM,
                        "what is known of this problem was found with less rigor");
}

// What one store knows of this very problem.
static enum kg_status recall_from(const struct kg_request *request, const struct kg_key *key,
                                  struct kg_store *store, enum kg_origin origin,
                                  struct kg_recalled *recalled, struct kg_error *error)
{
    struct kg_wisdom wisdom;
    enum kg_status status = kg_store_recall(store, key, &wisdom, error);
    if (status != KG_OK)
        return status;
    if (!read_choice(request, wisdom.choice, &recalled->choice))
        status = kg_error_set(error, KG_ERROR_NO_WISDOM,
                              "the known choice '%s' does not fit this version", wisdom.choice);
    else if (request->rigor != KG_RIGOR_WISDOM && wisdom.rigor < request->rigor)
        status = keep_lesser(recalled, wisdom.choice, error);
    recalled->origin = origin;
    recalled->rigor = wisdom.rigor;
    recalled->seconds = wisdom.seconds;
    recalled->spread = wisdom.spread;
    kg_wisdom_free(&wisdom);
    return status;
}

// The nearest shape's choice, never measured here.
static enum kg_status use_nearest(const struct kg_request *request, struct kg_recalled *recalled,
                                  struct kg_error *error)
{
    if (!read_choice(request, recalled->nearest.choice, &recalled->choice))
        return kg_error_memory(error, "a known choice"); // it was read before
    recalled->origin = KG_ORIGIN_NEAREST;
    recalled->rigor = KG_RIGOR_ESTIMATE;
    recalled->seconds = recalled->spread = 0;
    return KG_OK;
}

static enum kg_status recall_nearest(const struct kg_request *request, const struct kg_key *key,
                                     struct kg_store *file, struct kg_recalled *recalled,
                                     struct kg_error *error)
{
    struct kg_nearest *nearest = &recalled->nearest;
    struct kg_error why = {0};
    enum kg_status status = kg_nearest_find(request, file, key, nearest, &why);
    if (status != KG_OK)
        return kg_error_set(error, status, "%s", why.text);
    if (!nearest->choice)
        return KG_ERROR_NO_WISDOM; // as `error` says already
    bool measures = request->rigor != KG_RIGOR_ESTIMATE && request->rigor != KG_RIGOR_WISDOM;
    bool asked = request->takes_nearest;
    if (!measures && (asked || request->rigor == KG_RIGOR_ESTIMATE) &&
        kg_nearest_may_stand(nearest, request->problem, request->device, asked))
        return use_nearest(request, recalled, error);
    return kg_error_set(error, KG_ERROR_NO_WISDOM,
                        "nothing is known of %s %s on %s; the nearest shape known is %s, %s",
                        key->op, key->sizes, key->device, nearest->sizes,
                        !asked ? "which --nearest (kg_context_set_nearest) would go by"
                        : nearest->is_close
                            ? "whose choice may be slower here than that of the rules"
                            : "which is too far off to go by without measuring");
}

enum kg_status kg_flow_recall(const struct kg_request *request, const struct kg_key *key,
                              struct kg_recalled *recalled, struct kg_error *error)
{
    *recalled = (struct kg_recalled){0};
    struct kg_store *store = request->session->store, *file;
    enum kg_status status = kg_session_file(request->session, request->device, &file, error);
    if (status == KG_OK)
        status = store ? recall_from(request, key, store, KG_ORIGIN_RECORDS, recalled, error)
                       : kg_error_set(error, KG_ERROR_NO_WISDOM, "there are no records");
    if (status == KG_ERROR_NO_WISDOM && file)
        status = recall_from(request, key, file, KG_ORIGIN_FILE, recalled, error);
    if (status == KG_ERROR_NO_WISDOM && recalled->lesser_count == 0 && store)
        status = recall_nearest(request, key, file, recalled, error);
    return status;
}

void kg_recalled_free(struct kg_recalled *recalled)
{
    for (int i = 0; i < recalled->lesser_count; i++)
        free(recalled->lesser[i]);
    kg_nearest_free(&recalled->nearest);
    *recalled = (struct kg_recalled){0};
}
