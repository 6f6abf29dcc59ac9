#include "base/arena.h"
#include "test.h"

#include <stdint.h>

static void test_alloc(void)
{
    struct kg_arena arena = {0};
    unsigned char *previous = NULL;
    for (size_t size = 0; size < 5000; size += 7) {
        unsigned char *bytes = kg_arena_alloc(&arena, size);
        CHECK(bytes && (uintptr_t)bytes % 16 == 0 && bytes != previous);
        int zero = 1;
        for (size_t i = 0; i < size; i++)
            zero &= bytes[i] == 0;
        CHECK(zero);
        memset(bytes, 0xAA, size); // the next one must still be zero
        previous = bytes;
    }
    CHECK(kg_arena_alloc(&arena, (size_t)5 << 20));
    CHECK(!arena.failed);
    CHECK(arena.used >= (size_t)5 << 20);
    kg_arena_free(&arena);
    CHECK(!arena.chunks && arena.used == 0);
    kg_arena_free(NULL);
}

static void test_refusals(void)
{
    struct kg_arena arena = {0};
    CHECK(!kg_arena_array(&arena, SIZE_MAX / 2, 3));
    CHECK(arena.failed);
    arena.failed = 0;
    CHECK(!kg_arena_alloc(&arena, SIZE_MAX));
    CHECK(arena.failed);
    arena.failed = 0;
    CHECK(!kg_arena_alloc(&arena, SIZE_MAX / 2));
    CHECK(arena.failed);
    CHECK(KG_NEW_ARRAY(&arena, 3, int)); // sticky, but the arena still works
    CHECK(arena.failed);
    kg_arena_free(&arena);
}

static void test_text(void)
{
    struct kg_arena arena = {0};
    CHECK_TEXT(kg_arena_copy(&arena, "softmax", 4), "soft");
    CHECK_TEXT(kg_arena_copy(&arena, NULL, 0), "");
    CHECK_TEXT(kg_arena_format(&arena, "%s-%d", "tile", 128), "tile-128");
    kg_arena_free(&arena);
}

TEST_MAIN(test_alloc, test_refusals, test_text)
