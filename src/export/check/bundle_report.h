// Findings as text and as JSON.

#ifndef KG_EXPORT_CHECK_BUNDLE_REPORT_H
#define KG_EXPORT_CHECK_BUNDLE_REPORT_H

#include "base/json.h"
#include "export/check/bundle_facts.h"

#define KG_BUNDLE_MOST_SHOWN 100

struct kg_bundle_line {
    int number; // from 1
    int column; // from 1, in bytes
    size_t begin, length;
};
void kg_bundle_find_line(const struct kg_bundle_source *source, struct kg_python_place place,
                         struct kg_bundle_line *line);

// Objects of an array.
void kg_bundle_add_json(const struct kg_bundle_facts *facts, struct kg_json *json);

#endif
