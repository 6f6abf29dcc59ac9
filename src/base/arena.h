// An arena: many small allocations that are freed together, never one by one.

#ifndef KG_BASE_ARENA_H
#define KG_BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>

struct kg_arena_chunk;

// A zero-initialised arena is ready for use. `failed` is sticky: code that makes many small
// allocations may check it once at the end if it tolerates NULL until then.
struct kg_arena {
    struct kg_arena_chunk *chunks;
    size_t used; // bytes handed out, for reports
    int failed;
};

// Zeroed memory, aligned to 16 bytes; NULL when out of memory. A size of zero gives a unique
// non-NULL pointer.
void *kg_arena_alloc(struct kg_arena *arena, size_t size);
// count * size, refused on overflow.
void *kg_arena_array(struct kg_arena *arena, size_t count, size_t size);
char *kg_arena_copy(struct kg_arena *arena, const char *text, size_t length);
char *kg_arena_format(struct kg_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void kg_arena_free(struct kg_arena *arena);

#define KG_NEW(arena, type) ((type *)kg_arena_alloc((arena), sizeof(type)))
#define KG_NEW_ARRAY(arena, count, type)                                                           \
    ((type *)kg_arena_array((arena), (size_t)(count), sizeof(type)))

#endif
