// "Did you mean ...?"

#ifndef KG_BASE_NAMES_H
#define KG_BASE_NAMES_H

#include <stddef.h>

// Optimal-string-alignment distance (insert, delete, replace, swap neighbours), ignoring case.
size_t kg_names_distance(const char *a, const char *b);
// The nearest of `names`, or NULL when none is similar enough.
const char *kg_names_nearest(const char *name, const char *const *names, size_t count);

#endif
