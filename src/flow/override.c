// See override.h.

#include "flow/override.h"

#include "flow/foreign.h"

#include <stdlib.h>
#include <string.h>

// Takes ownership of the text.
static enum kg_status keep_override(struct kg_plan *plan, const char *path, char *text,
                                    struct kg_error *error)
{
    struct kg_override *override = plan->override = calloc(1, sizeof *override);
    struct kg_request request = kg_flow_request_of(plan);
    if (override)
        override->path = strdup(path);
    if (!override || !override->path) {
        free(text);
        return kg_error_memory(error, "a plan");
    }
    override->text = text;
    override->hash = kg_hash_bytes(text, strlen(text));
    return kg_flow_plan_of(&request, &plan->built->choice, &override->original, error);
}

enum kg_status kg_flow_override(const struct kg_plan *plan, const char *path, struct kg_plan **out,
                                struct kg_error *error)
{
    *out = NULL;
    struct kg_built *built;
    char *text;
    struct kg_plan *overridden;
    struct kg_request request = kg_flow_request_of(plan);
    enum kg_status status =
        kg_foreign_adopt(plan->problem, plan->device, path, plan->choice, &built, &text, error);
    if (status != KG_OK)
        return status;
    status = kg_flow_plan_around(&request, built, &overridden, error);
    if (status != KG_OK) {
        free(text);
        return status;
    }
    status = keep_override(overridden, path, text, error);
    if (status != KG_OK) {
        kg_flow_plan_free(overridden);
        return status;
    }
    *out = overridden;
    return KG_OK;
}
