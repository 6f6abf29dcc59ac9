// What stands behind the public handles.

#ifndef KG_API_CONTEXT_H
#define KG_API_CONTEXT_H

#include "base/files.h"
#include "flow/plan_handle.h"

#define KG_MAX_DEVICES 16

struct kg_context {
    struct kg_error error;
    struct kg_session session;
    struct kg_options options;
    char *home;
    char *wisdom;       // path of the wisdom file, NULL: none
    bool takes_nearest; // see kg_context_set_nearest
    int device_count;
    char *device_names[KG_MAX_DEVICES];
    struct kg_device *devices[KG_MAX_DEVICES];
};

// Behind kg_op->owner: everything of one parsed text. Problems share it, the last one frees it.
struct kg_op_owner {
    struct kg_context *context;
    struct kg_arena arena;
    int references;
};

// Behind kg_problem->owner.
struct kg_problem_owner {
    struct kg_op_owner *op;
    struct kg_arena arena; // of the instance
};

// For what is about the records themselves, and nothing without them: KG_OK, or why they could not
// be opened.
enum kg_status kg_api_records(struct kg_context *context);
// Of documents: NULL, "en" and "zh" are right.
enum kg_status kg_api_check_language(struct kg_context *context, const char *language);
// What users call a device, where only its name counts: "host" and "cuda:0" become the names of
// what is there, other names and NULL stay. Borrowed from the context.
enum kg_status kg_api_name_device(struct kg_context *context, const char **name);
// NULL where there is no problem.
struct kg_context *kg_api_context(const struct kg_problem *problem);
// Hands a finished text to the caller: `*out` is NULL on failure. Without a context, or a place for
// the text, it is freed, and KG_OK becomes KG_ERROR_ARGUMENT.
enum kg_status kg_api_give(struct kg_context *context, enum kg_status status, struct kg_text *text,
                           char **out);

#endif
