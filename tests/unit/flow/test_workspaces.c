// Pieces of memory go back and forth, and never from one stream to another: work of the first may
// still be using them.

#include "flow/workspaces.h"
#include "test.h"

#include <stdint.h>
#include <stdlib.h>

static struct kg_error error;
static int alive;
static size_t largest_allowed = SIZE_MAX;

static enum kg_status allocate(struct kg_device *device, size_t bytes, void **memory,
                               struct kg_error *failure)
{
    (void)device;
    if (bytes > largest_allowed)
        return kg_error_set(failure, KG_ERROR_MEMORY, "too much");
    alive++;
    *memory = malloc(bytes);
    return KG_OK;
}

static void release(struct kg_device *device, void *memory)
{
    (void)device;
    alive--;
    free(memory);
}

static const struct kg_backend backend = {.name = "fake", .allocate = allocate, .release = release};
static struct kg_device device = {.backend = &backend};

static struct kg_buffer take_bytes(struct kg_workspaces *workspaces, const void *stream,
                                   size_t bytes)
{
    struct kg_buffer buffer;
    CHECK_STATUS(kg_workspaces_take(workspaces, stream, bytes, &buffer, &error), KG_OK, &error);
    CHECK(buffer.bytes >= bytes);
    return buffer;
}

static void *take(struct kg_workspaces *workspaces, const void *stream)
{
    return take_bytes(workspaces, stream, 64).memory;
}

static void give(struct kg_workspaces *workspaces, const void *stream, void *memory)
{
    kg_workspaces_return(workspaces, stream, (struct kg_buffer){memory, 64});
}

static void streams(void)
{
    int one, other;
    struct kg_workspaces *workspaces = kg_workspaces_create(&device);
    void *first = take(workspaces, &one), *second = take(workspaces, &one);
    CHECK(first && second && first != second);
    give(workspaces, &one, first);
    void *third = take(workspaces, &other);
    CHECK(third != first && third != second);
    CHECK(take(workspaces, &one) == first);
    give(workspaces, &other, third);
    give(workspaces, &one, second);
    give(workspaces, &one, first);
    CHECK(take(workspaces, &other) == third);
    give(workspaces, &other, third);
    CHECK(alive == 3);
    kg_workspaces_destroy(workspaces);
    CHECK(alive == 0);
}

static void nothing_wanted(void)
{
    struct kg_workspaces *workspaces = kg_workspaces_create(&device);
    struct kg_buffer none = take_bytes(workspaces, NULL, 0);
    CHECK(none.memory == NULL);
    kg_workspaces_return(workspaces, NULL, none);
    kg_workspaces_destroy(workspaces);
}

// More at once than are kept: the rest is given back.
static void many(void)
{
    enum { COUNT = 100 };
    void *pieces[COUNT];
    struct kg_workspaces *workspaces = kg_workspaces_create(&device);
    for (int i = 0; i < COUNT; i++)
        pieces[i] = take(workspaces, NULL);
    CHECK(alive == COUNT);
    for (int i = 0; i < COUNT; i++)
        give(workspaces, NULL, pieces[i]);
    CHECK(alive > 0 && alive < COUNT);
    kg_workspaces_destroy(workspaces);
    CHECK(alive == 0);
}

// Executions that need more and more: few allocations, none of them for less, and the same memory
// from one to the next.
static void growing(void)
{
    struct kg_workspaces *workspaces = kg_workspaces_create(&device);
    for (size_t bytes = 100; bytes < 10000; bytes += 7)
        kg_workspaces_return(workspaces, NULL, take_bytes(workspaces, NULL, bytes));
    CHECK(alive == 8); // 100, 200, 400 ... 12800
    struct kg_buffer large = take_bytes(workspaces, NULL, 9000);
    kg_workspaces_return(workspaces, NULL, large);
    CHECK(take_bytes(workspaces, NULL, 1).memory == large.memory);
    kg_workspaces_return(workspaces, NULL, large);
    largest_allowed = 20000;
    large = take_bytes(workspaces, NULL, 15000); // not double
    CHECK(large.bytes == 15000);
    kg_workspaces_return(workspaces, NULL, large);
    CHECK(kg_workspaces_take(workspaces, NULL, 25000, &large, &error) == KG_ERROR_MEMORY);
    CHECK(large.memory == NULL);
    kg_workspaces_destroy(workspaces);
    largest_allowed = SIZE_MAX;
    CHECK(alive == 0);
}

TEST_MAIN(streams, nothing_wanted, many, growing)
