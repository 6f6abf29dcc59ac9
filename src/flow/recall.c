// See recall.h.

#include "flow/recall.h"

#include <stdlib.h>
#include <string.h>

// One lookup.
struct lookup {
    struct kg_session *session;
    const struct kg_key *key;
    const struct kg_problem *problem;
    struct kg_device *device;
    enum kg_rigor rigor;
    struct kg_recalled *recalled;
    struct kg_plan **plan;
};

static enum kg_status keep_lesser(struct kg_recalled *recalled, const char *choice,
                                  struct kg_error *error)
{
    char *copy = strdup(choice);
    if (!copy)
        return kg_error_memory(error, "a known choice");
    recalled->lesser[recalled->count++] = copy;
    return kg_error_set(error, KG_ERROR_NO_WISDOM,
                        "what is known of this problem was found with less rigor");
}

// What one store knows of this very problem.
static enum kg_status recall_from(const struct lookup *lookup, struct kg_store *store,
                                  enum kg_origin origin, struct kg_error *error)
{
    struct kg_wisdom wisdom;
    enum kg_status status = kg_store_recall(store, lookup->key, &wisdom, error);
    if (status != KG_OK)
        return status;
    struct kg_choice choice;
    if (!kg_choice_read(lookup->problem, &lookup->device->facts, kg_session_target(lookup->device),
                        wisdom.choice, &choice))
        status = kg_error_set(error, KG_ERROR_NO_WISDOM,
                              "the known choice '%s' does not fit this version", wisdom.choice);
    else if (lookup->rigor != KG_RIGOR_WISDOM && wisdom.rigor < lookup->rigor)
        status = keep_lesser(lookup->recalled, wisdom.choice, error);
    else
        status = kg_flow_plan_of(lookup->session, lookup->problem, lookup->device, &choice,
                                 lookup->plan, error);
    if (status == KG_OK) {
        (*lookup->plan)->seconds = wisdom.seconds;
        (*lookup->plan)->spread = wisdom.spread;
        (*lookup->plan)->rigor = wisdom.rigor;
        (*lookup->plan)->verified = true;
        (*lookup->plan)->origin = origin;
    }
    kg_wisdom_free(&wisdom);
    return status;
}

// The nearest shape's choice as a plan that was never measured.
static enum kg_status plan_of_nearest(const struct lookup *lookup, struct kg_error *error)
{
    struct kg_choice choice;
    if (!kg_choice_read(lookup->problem, &lookup->device->facts, kg_session_target(lookup->device),
                        lookup->recalled->nearest.choice, &choice))
        return kg_error_memory(error, "a known choice"); // it was read before
    enum kg_status status = kg_flow_plan_of(lookup->session, lookup->problem, lookup->device,
                                            &choice, lookup->plan, error);
    if (status == KG_OK)
        (*lookup->plan)->origin = KG_ORIGIN_NEAREST;
    return status;
}

static enum kg_status recall_nearest(const struct lookup *lookup, struct kg_store *file,
                                     struct kg_error *error)
{
    const struct kg_session *session = lookup->session;
    const struct kg_key *key = lookup->key;
    struct kg_nearest *nearest = &lookup->recalled->nearest;
    struct kg_error why = {0};
    enum kg_status status =
        kg_nearest_find(session, file, key, lookup->problem, lookup->device, nearest, &why);
    if (status != KG_OK)
        return kg_error_set(error, status, "%s", why.text);
    if (!nearest->choice)
        return KG_ERROR_NO_WISDOM; // as `error` says already
    bool measures = lookup->rigor != KG_RIGOR_ESTIMATE && lookup->rigor != KG_RIGOR_WISDOM;
    bool asked = session->takes_nearest;
    if (!measures && (asked || lookup->rigor == KG_RIGOR_ESTIMATE) &&
        kg_nearest_may_stand(nearest, lookup->problem, lookup->device, asked))
        return plan_of_nearest(lookup, error);
    return kg_error_set(error, KG_ERROR_NO_WISDOM,
                        "nothing is known of %s %s on %s; the nearest shape known is %s, %s",
                        key->op, key->sizes, key->device, nearest->sizes,
                        !asked ? "which --nearest (kg_context_set_nearest) would go by"
                        : nearest->is_close
                            ? "whose choice may be slower here than that of the rules"
                            : "which is too far off to go by without measuring");
}

enum kg_status kg_flow_recall(struct kg_session *session, const struct kg_key *key,
                              const struct kg_problem *problem, struct kg_device *device,
                              enum kg_rigor rigor, struct kg_recalled *recalled,
                              struct kg_plan **plan, struct kg_error *error)
{
    *recalled = (struct kg_recalled){0};
    *plan = NULL;
    struct lookup lookup = {session, key, problem, device, rigor, recalled, plan};
    struct kg_store *file;
    enum kg_status status = kg_session_file(session, device, &file, error);
    if (status == KG_OK)
        status = session->store ? recall_from(&lookup, session->store, KG_ORIGIN_RECORDS, error)
                                : kg_error_set(error, KG_ERROR_NO_WISDOM, "there are no records");
    if (status == KG_ERROR_NO_WISDOM && file)
        status = recall_from(&lookup, file, KG_ORIGIN_FILE, error);
    if (status == KG_ERROR_NO_WISDOM && recalled->count == 0 && session->store)
        status = recall_nearest(&lookup, file, error);
    return status;
}

void kg_recalled_free(struct kg_recalled *recalled)
{
    for (int i = 0; i < recalled->count; i++)
        free(recalled->lesser[i]);
    kg_nearest_free(&recalled->nearest);
    *recalled = (struct kg_recalled){0};
}
