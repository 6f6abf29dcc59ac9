// Bundles: the four Python files of an op.

#include "api/context.h"
#include "api/sized.h"
#include "export/bundle.h"

enum kg_status kg_problem_bundle(const struct kg_problem *problem, const char *folder, char **paths)
{
    struct kg_context *context = kg_api_context(problem);
    enum kg_status status = KG_API_NEEDS(context, problem, folder, paths);
    struct kg_text names = {0};
    if (status != KG_OK)
        return status;
    *paths = NULL;
    status = kg_bundle_write(problem, NULL, folder, &names, &context->error);
    return kg_api_give(context, status, &names, paths);
}
