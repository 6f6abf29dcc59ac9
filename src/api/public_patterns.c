// Patterns at the public surface.

#include "api/sized.h"
#include "store/favourites.h"

typedef enum kg_status list_records(struct kg_store *store, bool json, struct kg_text *text,
                                    struct kg_error *error);

// After the checks, which name the public function.
static enum kg_status give_list(struct kg_context *context, list_records *list, bool json,
                                char **text)
{
    struct kg_text written = {0};
    enum kg_status status = kg_api_records(context);
    if (status == KG_OK)
        status = list(context->session.store, json, &written, &context->error);
    return kg_api_give(context, status, &written, text);
}

enum kg_status kg_patterns_list(struct kg_context *context, bool json, char **text)
{
    enum kg_status status = KG_API_NEEDS(context, context, text);
    return status == KG_OK ? give_list(context, kg_store_list_patterns, json, text) : status;
}

enum kg_status kg_favourites_list(struct kg_context *context, bool json, char **text)
{
    enum kg_status status = KG_API_NEEDS(context, context, text);
    return status == KG_OK ? give_list(context, kg_store_list_favourites, json, text) : status;
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
