// Names of generated Python: see triton_names.h.

#include "gen/triton/triton_names.h"

#include <stdio.h>
#include <string.h>

// What modules import and kernels call. Definitions cannot use Python's keywords as names.
static const char *const modules[] = {"torch", "triton", "tl"};
static const char *const builtins[] = {"range", "float", "int", "max", "min", "INDEX", "ONCE"};

static bool is_taken(const struct kg_triton_names *names, const char *name)
{
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
        if (strcmp(modules[i], name) == 0)
            return true;
    for (size_t i = 0; names->is_kernel && i < sizeof builtins / sizeof *builtins; i++)
        if (strcmp(builtins[i], name) == 0)
            return true;
    if (names->is_kernel && (name[0] == '_' || strncmp(name, "BLOCK_", 6) == 0))
        return true; // of helpers, and of constants
    for (int i = 0; i < names->count; i++)
        if (strcmp(names->taken[i], name) == 0)
            return true;
    return false;
}

const char *kg_triton_name(struct kg_triton_names *names, const char *base)
{
    char name[160];
    while (names->is_kernel && *base == '_')
        base++;
    snprintf(name, sizeof name, "%s", base);
    for (int i = 1; is_taken(names, name); i++)
        snprintf(name, sizeof name, "%.120s_%d", base, i);
    const char *copy = kg_arena_copy(names->arena, name, strlen(name));
    if (!copy || names->count == KG_TRITON_MAX_NAMES) {
        names->arena->failed = true;
        return base;
    }
    names->taken[names->count++] = copy;
    return copy;
}
