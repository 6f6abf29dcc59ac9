// Patterns at the public surface.

#include "api/sized.h"
#include "store/favourites.h"

enum kg_status kg_patterns_list(struct kg_context *context, bool json, char **text)
{
    struct kg_text written = {0};
    enum kg_status status = KG_API_NEEDS(context, context, text);
    if (status != KG_OK)
        return status;
    status = kg_api_records(context);
    if (status == KG_OK)
        status = kg_store_list_patterns(context->session.store, json, &written, &context->error);
    return kg_api_give(context, status, &written, text);
}

enum kg_status kg_favourites_list(struct kg_context *context, bool json, char **text)
{
    struct kg_text written = {0};
    enum kg_status status = KG_API_NEEDS(context, context, text);
    if (status != KG_OK)
        return status;
    status = kg_api_records(context);
    if (status == KG_OK)
        status = kg_store_list_favourites(context->session.store, json, &written, &context->error);
    return kg_api_give(context, status, &written, text);
}

enum kg_status kg_patterns_export(struct kg_context *context, char **lines)
{
    struct kg_text written = {0};
    enum kg_status status = KG_API_NEEDS(context, context, lines);
    if (status != KG_OK)
        return status;
    status = kg_api_records(context);
    if (status == KG_OK)
        status = kg_store_export_lessons(context->session.store, &written, &context->error);
    return kg_api_give(context, status, &written, lines);
}

enum kg_status kg_patterns_import(struct kg_context *context, const char *lines, size_t length,
                                  char **summary)
{
    struct kg_text written = {0};
    enum kg_status status = KG_API_NEEDS(context, context, lines, summary);
    if (status != KG_OK)
        return status;
    status = kg_api_records(context);
    if (status == KG_OK)
        status = kg_store_import_lessons(context->session.store, lines, length, &written,
                                         &context->error);
    return kg_api_give(context, status, &written, summary);
}
