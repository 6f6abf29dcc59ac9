// The JSON writer: separators, escapes and numbers. It relies on the caller to close objects and
// arrays.

#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Length of the valid UTF-8 character at `text`, 0 if it is invalid. Refuses overlong forms,
// surrogates and values beyond U+10FFFF.
static size_t character_length(const unsigned char *text)
{
    unsigned char lead = text[0];
    if (lead < 0x80)
        return 1;
    size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    unsigned char low = 0x80, high = 0xBF; // of the second byte
    if (lead < 0xC2 || lead > 0xF4)
        return 0;
    if (lead == 0xE0)
        low = 0xA0;
    else if (lead == 0xED)
        high = 0x9F;
    else if (lead == 0xF0)
        low = 0x90;
    else if (lead == 0xF4)
        high = 0x8F;
    if (text[1] < low || text[1] > high)
        return 0;
    for (size_t i = 2; i < length; i++)
        if ((text[i] & 0xC0) != 0x80)
            return 0;
    return length;
}

static void add_escaped(struct kg_text *text, unsigned char c)
{
    static const char names[][3] = {['\b'] = "\\b", ['\t'] = "\\t", ['\n'] = "\\n", ['\f'] = "\\f",
                                    ['\r'] = "\\r", ['"'] = "\\\"", ['\\'] = "\\\\"};
    if (c < sizeof names / sizeof names[0] && names[c][0])
        kg_text_add(text, names[c]);
    else
        kg_text_format(text, "\\u%04x", c);
}

static void add_string(struct kg_text *text, const char *value)
{
    kg_text_add(text, "\"");
    const unsigned char *at = (const unsigned char *)value;
    while (*at) {
        size_t length = character_length(at);
        if (length == 0) {
            kg_text_add(text, "\xEF\xBF\xBD");
            length = 1;
        } else if (*at < 0x20 || *at == '"' || *at == '\\' || *at == 0x7F)
            add_escaped(text, *at);
        else
            kg_text_add_bytes(text, (const char *)at, length);
        at += length;
    }
    kg_text_add(text, "\"");
}

static void begin_value(struct kg_json *json, const char *key)
{
    if (json->comma)
        kg_text_add(json->text, ", ");
    json->comma = true;
    if (key) {
        add_string(json->text, key);
        kg_text_add(json->text, ": ");
    }
}

// The program may have set a locale whose decimal separator is not a point.
static void add_with_point(struct kg_text *text, const char *digits)
{
    size_t before = strspn(digits, "-+0123456789e");
    size_t after = before + strcspn(digits + before, "-+0123456789e");
    kg_text_add_bytes(text, digits, before);
    if (after > before)
        kg_text_add(text, ".");
    kg_text_add(text, digits + after);
}

void kg_json_begin_object(struct kg_json *json, const char *key)
{
    begin_value(json, key);
    kg_text_add(json->text, "{");
    json->comma = false;
}

void kg_json_end_object(struct kg_json *json)
{
    kg_text_add(json->text, "}");
    json->comma = true;
}

void kg_json_begin_array(struct kg_json *json, const char *key)
{
    begin_value(json, key);
    kg_text_add(json->text, "[");
    json->comma = false;
}

void kg_json_end_array(struct kg_json *json)
{
    kg_text_add(json->text, "]");
    json->comma = true;
}

void kg_json_text(struct kg_json *json, const char *key, const char *value)
{
    begin_value(json, key);
    if (value)
        add_string(json->text, value);
    else
        kg_text_add(json->text, "null");
}

void kg_json_hash(struct kg_json *json, const char *key, struct kg_hash value)
{
    char digits[KG_HASH_TEXT];
    kg_hash_format(value, digits);
    kg_json_text(json, key, digits);
}

void kg_json_integer(struct kg_json *json, const char *key, int64_t value)
{
    begin_value(json, key);
    kg_text_format(json->text, "%" PRId64, value);
}

void kg_json_number(struct kg_json *json, const char *key, double value)
{
    begin_value(json, key);
    if (!isfinite(value)) {
        kg_text_add(json->text, "null");
        return;
    }
    char digits[64];
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) == value)
            break;
    }
    add_with_point(json->text, digits);
}

void kg_json_boolean(struct kg_json *json, const char *key, bool value)
{
    begin_value(json, key);
    kg_text_add(json->text, value ? "true" : "false");
}
