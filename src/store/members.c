// See members.h.

#include "store/members.h"

#include <stdarg.h>
#include <stdio.h>

#define LONGEST_TEXT ((size_t)4096)

void kg_members_refuse(struct kg_members *members, const char *format, ...)
{
    char reason[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    if (!members->failed)
        kg_error_set(members->error, KG_ERROR_CORRUPT, "%s", reason);
    members->failed = true;
}

bool kg_members_open(struct kg_members *members, const char *text, size_t length,
                     struct kg_arena *arena, struct kg_error *error)
{
    json_error_t why;
    *members = (struct kg_members){.arena = arena, .error = error};
    members->json = json_loadb(text, length, JSON_REJECT_DUPLICATES, &why);
    // Not every lack of memory gets Jansson's code for it; a syntax error always has a text.
    if (!members->json && (json_error_code(&why) == json_error_out_of_memory || !why.text[0]))
        kg_error_memory(error, "a sample");
    else if (!members->json)
        kg_error_set(error, KG_ERROR_CORRUPT, "is no JSON: %s", why.text);
    else if (!json_is_object(members->json))
        kg_error_set(error, KG_ERROR_CORRUPT, "is no JSON object");
    else
        return true;
    kg_members_close(members);
    return false;
}

void kg_members_close(struct kg_members *members)
{
    json_decref(members->json);
    members->json = NULL;
}

const char *kg_members_text(struct kg_members *members, const char *name)
{
    json_t *value = json_object_get(members->json, name);
    size_t length = json_string_length(value);
    if (!json_is_string(value) || length > LONGEST_TEXT) {
        kg_members_refuse(members, "\"%s\" must be a text of at max %zu bytes", name, LONGEST_TEXT);
        return "";
    }
    const char *copy = kg_arena_copy(members->arena, json_string_value(value), length);
    if (!copy && !members->failed) {
        kg_error_memory(members->error, "a sample");
        members->failed = true;
    }
    return copy ? copy : "";
}

double kg_members_number(struct kg_members *members, const json_t *object, const char *name,
                         double min, double max)
{
    const json_t *value = json_object_get(object, name);
    double number = json_number_value(value);
    if (json_is_number(value) && number >= min && number <= max)
        return number;
    kg_members_refuse(members, "\"%s\" must be a number from %g to %g", name, min, max);
    return min;
}

int64_t kg_members_integer(struct kg_members *members, const json_t *object, const char *name,
                           int64_t min, int64_t max)
{
    const json_t *value = json_object_get(object, name);
    int64_t number = json_integer_value(value);
    if (json_is_integer(value) && number >= min && number <= max)
        return number;
    kg_members_refuse(members, "\"%s\" must be a whole number from %lld to %lld", name,
                      (long long)min, (long long)max);
    return min;
}

bool kg_members_boolean(struct kg_members *members, const char *name)
{
    const json_t *value = json_object_get(members->json, name);
    if (!json_is_boolean(value))
        kg_members_refuse(members, "\"%s\" must be true or false", name);
    return json_is_true(value);
}

const json_t *kg_members_object(struct kg_members *members, const char *name, size_t count)
{
    const json_t *value = json_object_get(members->json, name);
    if (json_is_null(value))
        return NULL;
    if (json_is_object(value) && json_object_size(value) == count)
        return value;
    kg_members_refuse(members, "\"%s\" must be an object of %zu numbers", name, count);
    return NULL;
}
