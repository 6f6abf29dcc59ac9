// Writing JSON: one line, in the order written. Reading is Jansson's work.
//
//     struct kg_json json = {.text = &text};
//     kg_json_begin_object(&json, NULL);
//     kg_json_text(&json, "name", "softmax");
//     kg_json_begin_array(&json, "sizes");
//     kg_json_integer(&json, NULL, 4096);
//     kg_json_end_array(&json);
//     kg_json_end_object(&json);
//
// gives {"name": "softmax", "sizes": [4096]}. Members of an object have a key; elements of an array
// and the outermost value have NULL. Failure is the text's, and sticky.

#ifndef KG_BASE_JSON_H
#define KG_BASE_JSON_H

#include "base/hash.h"
#include "base/text.h"

#include <stdint.h>

struct kg_json {
    struct kg_text *text;
    bool comma; // a value precedes at this level, so a comma is needed
};

void kg_json_begin_object(struct kg_json *json, const char *key);
void kg_json_end_object(struct kg_json *json);
void kg_json_begin_array(struct kg_json *json, const char *key);
void kg_json_end_array(struct kg_json *json);
// NULL is written as null. Bytes that are not UTF-8 become U+FFFD, so the line is always valid.
void kg_json_text(struct kg_json *json, const char *key, const char *value);
void kg_json_hash(struct kg_json *json, const char *key, struct kg_hash value);
void kg_json_integer(struct kg_json *json, const char *key, int64_t value);
// Writes the shortest digits that read back as the same double; NaN and infinities become null.
void kg_json_number(struct kg_json *json, const char *key, double value);
void kg_json_boolean(struct kg_json *json, const char *key, bool value);

#endif
