// See recall.h.

#include "flow/recall.h"

#include "flow/proof.h"

#include <stdlib.h>
#include <string.h>

// A choice that is slower than when it became wisdom, by more than this factor, may not be the best
// any more: a search follows. Runs on other days differ by some percent (docs/timing.md).
#define MAX_SLOWER 1.1

static bool read_choice(const struct kg_request *request, const char *text,
                        struct kg_choice *choice)
{
    const struct kg_device *device = request->device;
    return kg_choice_read(request->problem, &device->facts, kg_target_of(device), text, choice);
}

static enum kg_status keep_lesser(struct kg_recalled *recalled, const char *choice,
                                  const char *because, struct kg_error *error)
{
    char *copy = strdup(choice);
    if (!copy)
        return kg_error_memory(error, "a known choice");
    recalled->lesser[recalled->lesser_count++] = copy;
    return kg_error_set(error, KG_ERROR_NO_WISDOM, "what is known of this problem %s", because);
}

bool kg_recall_is_as_fast(double seconds, double known)
{
    return seconds <= MAX_SLOWER * known;
}

// Outcomes of the kernels that are emitted today for a choice that was found with others: they may
// have been judged since.
static enum kg_status check_outdated(const struct kg_request *request, const struct kg_key *key,
                                     const struct kg_wisdom *wisdom, struct kg_recalled *recalled,
                                     struct kg_error *error)
{
    struct kg_outcome outcome;
    if (!kg_proof_find(request, key, wisdom->choice, &outcome))
        return KG_OK;
    if (outcome.kind != KG_OUTCOME_MEASURED)
        return kg_error_set(error, KG_ERROR_NO_WISDOM,
                            "the known choice '%s' fails with the kernels of today: %.400s",
                            wisdom->choice, outcome.reason);
    if (!kg_recall_is_as_fast(outcome.timing.median, wisdom->seconds) &&
        request->rigor != KG_RIGOR_WISDOM && request->rigor != KG_RIGOR_ESTIMATE)
        return keep_lesser(recalled, wisdom->choice, "was faster than its kernels are today",
                           error);
    recalled->is_proved = true;
    recalled->seconds = outcome.timing.median;
    recalled->spread = outcome.timing.spread;
    return KG_OK;
}

// What one store knows of this problem.
static enum kg_status recall_from(const struct kg_request *request, const struct kg_key *key,
                                  struct kg_store *store, enum kg_origin origin,
                                  struct kg_recalled *recalled, struct kg_error *error)
{
    struct kg_wisdom wisdom;
    enum kg_status status = kg_store_recall(store, key, &wisdom, error);
    if (status != KG_OK)
        return status;
    recalled->origin = origin;
    recalled->rigor = wisdom.rigor;
    recalled->seconds = wisdom.seconds;
    recalled->spread = wisdom.spread;
    bool fits = read_choice(request, wisdom.choice, &recalled->choice);
    recalled->is_proved = fits && kg_proof_fits(wisdom.source, kg_proof_source(&recalled->choice));
    if (origin == KG_ORIGIN_RECORDS)
        recalled->is_outdated = !recalled->is_proved;
    if (!fits)
        status = kg_error_set(error, KG_ERROR_NO_WISDOM,
                              "the known choice '%s' does not fit this version", wisdom.choice);
    else if (request->rigor != KG_RIGOR_WISDOM && wisdom.rigor < request->rigor)
        status = keep_lesser(recalled, wisdom.choice, "was found with less rigor", error);
    else if (!recalled->is_proved)
        status = check_outdated(request, key, &wisdom, recalled, error);
    kg_wisdom_free(&wisdom);
    return status;
}

// The nearest shape's choice, which was never measured here.
static enum kg_status use_nearest(const struct kg_request *request, struct kg_recalled *recalled,
                                  struct kg_error *error)
{
    if (!read_choice(request, recalled->nearest.choice, &recalled->choice))
        return kg_error_memory(error, "a known choice"); // it could be read before
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
        return KG_ERROR_NO_WISDOM; // `error` is set already
    bool measures = request->rigor != KG_RIGOR_ESTIMATE && request->rigor != KG_RIGOR_WISDOM;
    bool asked = request->takes_nearest;
    if (!measures && (asked || request->rigor == KG_RIGOR_ESTIMATE) &&
        kg_nearest_may_stand(nearest, request->problem, request->device, asked))
        return use_nearest(request, recalled, error);
    return kg_error_set(error, KG_ERROR_NO_WISDOM,
                        "nothing is known of %s %s on %s; the nearest shape known is %s, %s",
                        key->op, key->sizes, key->device, nearest->sizes,
                        !asked ? "whose choice may be used (kg_context_set_nearest)"
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
