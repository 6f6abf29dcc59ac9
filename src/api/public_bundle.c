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
    char *triton;
    *paths = NULL;
    status = kg_problem_emit(problem, "triton", &triton);
    if (status == KG_OK)
        status = kg_bundle_write(problem, triton, folder, &names, &context->error);
    kg_text_release(triton);
    return kg_api_give(context, status, &names, paths);
}

enum kg_status kg_bundle_consistency(struct kg_context *context, const char *folder,
                                     const struct kg_problem *definition, bool json, int *findings,
                                     char **text)
{
    enum kg_status status = KG_API_NEEDS(context, context, folder, findings, text);
    struct kg_text found = {0};
    if (status != KG_OK)
        return status;
    *text = NULL;
    status = kg_bundle_check(folder, definition, json, findings, &found, &context->error);
    return kg_api_give(context, status, &found, text);
}
