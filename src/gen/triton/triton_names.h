// Names of generated Python: the user's where they are free, with a number where they are not.

#ifndef KG_GEN_TRITON_NAMES_H
#define KG_GEN_TRITON_NAMES_H

#include "base/arena.h"

#include <stdbool.h>

#define KG_TRITON_MAX_NAMES 1024

// The names of one scope: a kernel, or the public function.
struct kg_triton_names {
    struct kg_arena *arena;
    bool is_kernel; // of a kernel, where builtins and helpers are called by name
    int count;
    const char *taken[KG_TRITON_MAX_NAMES];
};

// `base`, or `base` with the first free number behind it. Never NULL; when out of memory it is
// `base` and the arena has failed.
const char *kg_triton_name(struct kg_triton_names *names, const char *base);

#endif
