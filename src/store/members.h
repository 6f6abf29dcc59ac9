// Members of JSON objects that come from outside: each is checked for its type and its range, and
// the first that is wrong says so.

#ifndef KG_STORE_MEMBERS_H
#define KG_STORE_MEMBERS_H

#include "base/arena.h"
#include "base/error.h"

#include <jansson.h>

// One object, while it is read.
struct kg_members {
    json_t *json;
    struct kg_arena *arena; // of texts
    struct kg_error *error;
    bool failed;
};

// The object that a text is. False: `error` (not NULL) says why. kg_members_close ends it.
bool kg_members_open(struct kg_members *members, const char *text, size_t length,
                     struct kg_arena *arena, struct kg_error *error);
void kg_members_close(struct kg_members *members);

__attribute__((format(printf, 2, 3))) void kg_members_refuse(struct kg_members *members,
                                                             const char *format, ...);
// Refused members give "", `least` and false.
const char *kg_members_text(struct kg_members *members, const char *name);
double kg_members_number(struct kg_members *members, const json_t *object, const char *name,
                         double least, double most);
int64_t kg_members_integer(struct kg_members *members, const json_t *object, const char *name,
                           int64_t least, int64_t most);
bool kg_members_boolean(struct kg_members *members, const char *name);
// NULL where it is null: so that may be. Else an object of exactly `count` members.
const json_t *kg_members_object(struct kg_members *members, const char *name, size_t count);

#endif
