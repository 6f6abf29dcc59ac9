// The file is untrusted: every member that is used is checked.

#include "store/fitted.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#define MAX_GROUPS 4096
#define MAX_WEIGHT 1e3 // of a coefficient: features are of order one

struct reading {
    const char *family;
    struct kg_arena *arena;
    struct kg_fitted *list;
    int count;
    struct kg_error *error;
};

static enum kg_status take_weights(struct reading *reading, const json_t *weights,
                                   struct kg_fitted *fitted)
{
    fitted->coefficients = kg_model_prior; // the overheads are not fitted
    fitted->coefficients.source = "fitted";
    for (int f = 0; f < KG_FEATURE_COUNT; f++) {
        const char *name = kg_feature_name((enum kg_feature)f);
        const json_t *value = json_object_get(weights, name);
        double weight = json_number_value(value);
        if (!json_is_number(value) || !(fabs(weight) <= MAX_WEIGHT))
            return kg_error_set(reading->error, KG_ERROR_CORRUPT,
                                "coefficient \"%s\" of %.200s must be a number of at most %g", name,
                                fitted->device, MAX_WEIGHT);
        fitted->coefficients.beta[f] = weight;
    }
    return KG_OK;
}

static bool is_known(const struct reading *reading, const char *device)
{
    for (int i = 0; i < reading->count; i++)
        if (strcmp(reading->list[i].device, device) == 0)
            return true;
    return false;
}

static enum kg_status take_group(struct reading *reading, const json_t *group)
{
    const char *device = json_string_value(json_object_get(group, "device"));
    const char *family = json_string_value(json_object_get(group, "family"));
    const json_t *weights = json_object_get(group, "coefficients");
    if (!device || !family || !weights)
        return kg_error_set(reading->error, KG_ERROR_CORRUPT,
                            "a group has \"device\", \"family\" and \"coefficients\"");
    if (json_is_null(weights) || (reading->family && strcmp(reading->family, family) != 0))
        return KG_OK;
    if (is_known(reading, device))
        return kg_error_set(reading->error, KG_ERROR_ARGUMENT,
                            "the fit has several families for %.200s, such as '%.200s'; say which",
                            device, family);
    struct kg_fitted *fitted = &reading->list[reading->count];
    fitted->device = kg_arena_copy(reading->arena, device, strlen(device));
    if (!fitted->device)
        return kg_error_memory(reading->error, "a fit");
    reading->count++;
    return take_weights(reading, weights, fitted);
}

static enum kg_status take_groups(struct reading *reading, const json_t *root)
{
    const json_t *groups = json_object_get(root, "groups");
    if (json_integer_value(json_object_get(root, "schema")) != KG_FIT_SCHEMA ||
        !json_is_array(groups) || json_array_size(groups) > MAX_GROUPS)
        return kg_error_set(reading->error, KG_ERROR_CORRUPT, "these are no coefficients of a fit");
    reading->list = KG_NEW_ARRAY(reading->arena, json_array_size(groups), struct kg_fitted);
    if (!reading->list)
        return kg_error_memory(reading->error, "a fit");
    enum kg_status status = KG_OK;
    for (size_t g = 0; g < json_array_size(groups) && status == KG_OK; g++)
        status = take_group(reading, json_array_get(groups, g));
    if (status == KG_OK && reading->count == 0)
        status = kg_error_set(
            reading->error, KG_ERROR_ARGUMENT, "the fit has no coefficients%s%.200s",
            reading->family ? " of family " : "", reading->family ? reading->family : "");
    return status;
}

enum kg_status kg_fitted_read(const char *json, size_t length, const char *family,
                              struct kg_arena *arena, struct kg_fitted_list *fitted,
                              struct kg_error *error)
{
    struct kg_error local;
    *fitted = (struct kg_fitted_list){0};
    struct reading reading = {.family = family, .arena = arena, .error = error ? error : &local};
    json_error_t why;
    json_t *root = json_loadb(json, length, JSON_REJECT_DUPLICATES, &why);
    if (!root && (json_error_code(&why) == json_error_out_of_memory || !why.text[0]))
        return kg_error_memory(reading.error, "a fit");
    if (!root)
        return kg_error_set(reading.error, KG_ERROR_CORRUPT, "line %d: is no JSON: %s", why.line,
                            why.text);
    enum kg_status status = take_groups(&reading, root);
    json_decref(root);
    if (status == KG_OK)
        *fitted = (struct kg_fitted_list){reading.list, reading.count};
    return status;
}
