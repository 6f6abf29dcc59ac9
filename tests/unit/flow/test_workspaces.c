// Pieces of memory go back and forth, and never from one stream to another: work of the first may
// still be using them.

#include "flow/workspaces.h"
#include "test.h"

#include <stdlib.h>

static struct kg_error error;
static int alive;

static enum kg_status allocate(struct kg_device *device, size_t bytes, void **memory,
                               struct kg_error *failure)
{
    (void)device;
    (void)failure;
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

static void *take(struct kg_workspaces *workspaces, const void *stream)
{
    void *memory;
    CHECK_STATUS(kg_workspaces_take(workspaces, stream, &memory, &error), KG_OK, &error);
    return memory;
}

static void streams(void)
{
    int one, other;
    struct kg_workspaces *workspaces = kg_workspaces_create(&device, 64);
    void *first = take(workspaces, &one), *second = take(workspaces, &one);
    CHECK(first && second && first != second);
    kg_workspaces_return(workspaces, &one, first);
    void *third = take(workspaces, &other);
    CHECK(third != first && third != second);
    CHECK(take(workspaces, &one) == first);
    kg_workspaces_return(workspaces, &other, third);
    kg_workspaces_return(workspaces, &one, second);
    kg_workspaces_return(workspaces, &one, first);
    CHECK(take(workspaces, &other) == third);
    kg_workspaces_return(workspaces, &other, third);
    CHECK(alive == 3);
    kg_workspaces_destroy(workspaces);
    CHECK(alive == 0);
}

static void nothing_wanted(void)
{
    struct kg_workspaces *workspaces = kg_workspaces_create(&device, 0);
    CHECK(take(workspaces, NULL) == NULL);
    kg_workspaces_return(workspaces, NULL, NULL);
    kg_workspaces_destroy(workspaces);
}

// More at once than are kept: the rest is given back.
static void many(void)
{
    enum { COUNT = 100 };
    void *pieces[COUNT];
    struct kg_workspaces *workspaces = kg_workspaces_create(&device, 16);
    for (int i = 0; i < COUNT; i++)
        pieces[i] = take(workspaces, NULL);
    CHECK(alive == COUNT);
    for (int i = 0; i < COUNT; i++)
        kg_workspaces_return(workspaces, NULL, pieces[i]);
    CHECK(alive > 0 && alive < COUNT);
    kg_workspaces_destroy(workspaces);
    CHECK(alive == 0);
}

TEST_MAIN(streams, nothing_wanted, many)
