// A list of chunks, the newest first; allocations are cut from the front of the newest. A request
// that does not fit adds a chunk of twice the size, so that malloc is seldom called.

#include "base/arena.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 16
#define FIRST_CHUNK ((size_t)4096)
#define LARGEST_CHUNK ((size_t)1 << 20)

struct kg_arena_chunk {
    struct kg_arena_chunk *next;
    size_t size;
    size_t used;
    _Alignas(ALIGNMENT) unsigned char bytes[];
};

// calloc zeroes the chunk, so allocations need no clearing.
static struct kg_arena_chunk *add_chunk(struct kg_arena *arena, size_t need)
{
    size_t size = arena->chunks ? arena->chunks->size : FIRST_CHUNK / 2;
    size = size < LARGEST_CHUNK ? size * 2 : LARGEST_CHUNK;
    if (size < need)
        size = need;
    if (size > SIZE_MAX - sizeof(struct kg_arena_chunk))
        return NULL;
    struct kg_arena_chunk *chunk = calloc(1, sizeof *chunk + size);
    if (!chunk)
        return NULL;
    chunk->size = size;
    chunk->next = arena->chunks;
    arena->chunks = chunk;
    return chunk;
}

void *kg_arena_alloc(struct kg_arena *arena, size_t size)
{
    if (size > SIZE_MAX - ALIGNMENT) {
        arena->failed = 1;
        return NULL;
    }
    size_t need = size ? (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT : ALIGNMENT;
    struct kg_arena_chunk *chunk = arena->chunks;
    if (!chunk || chunk->size - chunk->used < need)
        chunk = add_chunk(arena, need);
    if (!chunk) {
        arena->failed = 1;
        return NULL;
    }
    void *result = chunk->bytes + chunk->used;
    chunk->used += need;
    arena->used += need;
    return result;
}

void *kg_arena_array(struct kg_arena *arena, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        arena->failed = 1;
        return NULL;
    }
    return kg_arena_alloc(arena, bytes);
}

char *kg_arena_copy(struct kg_arena *arena, const char *text, size_t length)
{
    if (length == SIZE_MAX) {
        arena->failed = 1;
        return NULL;
    }
    char *copy = kg_arena_alloc(arena, length + 1);
    if (copy && length)
        memcpy(copy, text, length);
    return copy;
}

char *kg_arena_format(struct kg_arena *arena, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *text = NULL;
    if (length < 0)
        arena->failed = 1;
    else
        text = kg_arena_alloc(arena, (size_t)length + 1);
    if (text)
        vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

void kg_arena_free(struct kg_arena *arena)
{
    if (!arena)
        return;
    struct kg_arena_chunk *chunk = arena->chunks;
    while (chunk) {
        struct kg_arena_chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
    *arena = (struct kg_arena){0};
}
