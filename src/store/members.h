// Members of untrusted JSON objects: each is checked for type and range, and the first error is
// kept.

#ifndef KG_STORE_MEMBERS_H
#define KG_STORE_MEMBERS_H

#include "base/arena.h"
#include "base/error.h"

#include <jansson.h>

// An object that is being read.
struct kg_members {
    json_t *json;
    struct kg_arena *arena; // of texts
    struct kg_error *error;
    bool failed;
};

// Parses an object. False: `error` (not NULL) says why. kg_members_close ends it.
bool kg_members_open(struct kg_members *members, const char *text, size_t length,
                     struct kg_arena *arena, struct kg_error *error);
void kg_members_close(struct kg_members *members);

__attribute__((format(printf, 2, 3))) void kg_members_refuse(struct kg_members *members,
                                                             const char *format, ...);
// Refused members give "", `min` and false.
const char *kg_members_text(struct kg_members *members, const char *name);
double kg_members_number(struct kg_members *members, const json_t *object, const char *name,
                         double min, double max);
int64_t kg_members_integer(struct kg_members *members, const json_t *object, const char *name,
                           int64_t min, int64_t max);
bool kg_members_boolean(struct kg_members *members, const char *name);
// NULL if the member is null, which is allowed; else an object of exactly `count` members.
const json_t *kg_members_object(struct kg_members *members, const char *name, size_t count);

#endif
