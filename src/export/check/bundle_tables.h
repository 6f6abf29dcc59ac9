// Tables of a bundle's tests: dictionaries, tuples and lists of literals at the module's top.

#ifndef KG_EXPORT_CHECK_BUNDLE_TABLES_H
#define KG_EXPORT_CHECK_BUNDLE_TABLES_H

#include "export/check/bundle_facts.h"

#define KG_BUNDLE_ENTRIES 128

struct kg_bundle_entry {
    const char *key;              // the string that it is, or that stands before the colon
    struct kg_python_place place; // of that string
    struct kg_python_range value; // behind the colon; empty in tuples and lists
    const char *text;             // of a value that is a string; else NULL
};

struct kg_bundle_entries {
    int count;
    struct kg_bundle_entry entries[KG_BUNDLE_ENTRIES];
};

// Of "(...)", "[...]", "{...}"; what is no string, and has no string for a key, is left out.
void kg_bundle_entries(struct kg_arena *arena, const struct kg_bundle_source *source,
                       struct kg_python_range range, struct kg_bundle_entries *entries);
const struct kg_bundle_entry *kg_bundle_entry(const struct kg_bundle_entries *entries,
                                              const char *key);

// NAME = value, at the module's top.
bool kg_bundle_find_value(const struct kg_bundle_source *source, const char *name,
                          struct kg_python_range *value);
bool kg_bundle_find_function(const struct kg_bundle_source *source, const char *name,
                             struct kg_python_function *function);
// What a function returns in its last line.
bool kg_bundle_find_result(const struct kg_bundle_source *source, const char *name,
                           struct kg_python_range *value);

// NAME = "softmax"
void kg_bundle_read_name(struct kg_bundle_facts *facts, int role,
                         const struct kg_bundle_source *source);
void kg_bundle_read_goal(struct kg_bundle_facts *facts, int role,
                         const struct kg_bundle_source *source, const char *name);
// The names of sizes, in any order.
void kg_bundle_say_sizes(struct kg_bundle_facts *facts, int role, const char **names, int count,
                         struct kg_python_place place);
// [{"P": 1, "D": 1}, ...], or with `key` [{key: {"P": 1, "D": 1}, ...}, ...].
void kg_bundle_read_rows(struct kg_bundle_facts *facts, int role,
                         const struct kg_bundle_source *source, const char *name, const char *key);

#endif
