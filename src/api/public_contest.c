// Contests at the public surface.

#include "api/sized.h"
#include "flow/contest.h"

enum kg_status kg_plan_contest(const struct kg_plan *plan, const char *folder, bool json,
                               char **text, int *unrun)
{
    struct kg_context *context = plan ? kg_api_context(plan->problem) : NULL;
    struct kg_text written = {0};
    int count = 0;
    enum kg_status status = KG_API_NEEDS(context, plan, folder, text);
    if (status != KG_OK)
        return status;
    status = kg_flow_contest(plan, folder, json, &written, &count, &context->error);
    if (unrun)
        *unrun = count;
    return kg_api_give(context, status, &written, text);
}
