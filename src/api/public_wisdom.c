// Wisdom and the report of the records at the public surface.

#include "api/sized.h"
#include "report/html.h"
#include "report/recorded.h"
#include "report/regression.h"

#include <string.h>

enum kg_status kg_wisdom_list(struct kg_context *context, const char *op, bool json, char **text)
{
    struct kg_text written = {0};
    enum kg_status status = KG_API_NEEDS(context, context, text);
    if (status != KG_OK)
        return status;
    status = kg_api_records(context);
    if (status == KG_OK)
        status = kg_store_list(context->session.store, op, json, &written, &context->error);
    return kg_api_give(context, status, &written, text);
}

enum kg_status kg_wisdom_export(struct kg_context *context, char **lines)
{
    struct kg_text text = {0};
    enum kg_status status = KG_API_NEEDS(context, context, lines);
    if (status != KG_OK)
        return status;
    status = kg_api_records(context);
    if (status == KG_OK)
        status = kg_store_export(context->session.store, &text, &context->error);
    return kg_api_give(context, status, &text, lines);
}

enum kg_status kg_wisdom_import(struct kg_context *context, const char *lines, size_t length,
                                char **summary)
{
    enum kg_status status = KG_API_NEEDS(context, context, lines, summary);
    if (status != KG_OK)
        return status;
    *summary = NULL;
    struct kg_text text = {0};
    // "Here" is the best device at hand: what matches neither it nor its compiler is reported.
    struct kg_device *device;
    status = kg_api_records(context);
    if (status == KG_OK)
        status = kg_context_device(context, NULL, &device);
    if (status != KG_OK)
        return status;
    struct kg_key here;
    kg_session_key_here(device, &here);
    status = kg_store_import(context->session.store, lines, length, &here, &text, &context->error);
    return kg_api_give(context, status, &text, summary);
}

enum kg_status kg_wisdom_forget(struct kg_context *context, const char *op, int *count)
{
    enum kg_status status = KG_API_NEEDS(context, context, count);
    if (status != KG_OK)
        return status;
    *count = 0;
    status = kg_api_records(context);
    return status ? status : kg_store_forget(context->session.store, op, count, &context->error);
}

enum kg_status kg_report(struct kg_context *context, const char *op, char **summary, char **text)
{
    struct kg_text line = {0}, page = {0};
    enum kg_status status = KG_API_NEEDS(context, context, text);
    if (status != KG_OK)
        return status;
    status = kg_api_records(context);
    if (status == KG_OK)
        status = kg_report_html(context->session.store, op, &line, &page, &context->error);
    status = kg_api_give(context, status, &page, text);
    if (!summary) {
        kg_text_free(&line);
        return status;
    }
    status = kg_api_give(context, status, &line, summary);
    if (status != KG_OK) {
        kg_text_release(*text);
        *text = NULL;
    }
    return status;
}

enum kg_status kg_report_against(struct kg_context *context, const char *path, const char *op,
                                 bool json, bool *slower, char **text)
{
    struct kg_text written = {0}, strangers = {0};
    struct kg_store *then = NULL;
    struct kg_device *device;
    struct kg_key here;
    enum kg_status status = KG_API_NEEDS(context, context, path, slower, text);
    if (status != KG_OK)
        return status;
    *slower = false;
    status = kg_api_records(context);
    if (status == KG_OK)
        status = kg_recorded_require(context->session.store, op, &context->error);
    if (status == KG_OK)
        status = kg_context_device(context, NULL, &device);
    if (status == KG_OK) {
        kg_session_key_here(device, &here);
        status = kg_store_open_file(path, &here, &then, &strangers, &context->error);
    }
    if (status == KG_OK)
        status = kg_report_regressions(context->session.store, then, op, json, slower, &written,
                                       &context->error);
    kg_store_close(then);
    kg_text_free(&strangers);
    return kg_api_give(context, status, &written, text);
}
