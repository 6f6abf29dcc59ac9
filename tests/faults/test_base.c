// Every allocation of the base layer fails once, and once with all that follow.

#include "base/arena.h"
#include "base/files.h"
#include "base/json.h"
#include "faults/fail_alloc.h"
#include "test.h"

#include <stdlib.h>
#include <unistd.h>

static void begin(long n, int all)
{
    if (all)
        fail_alloc_from(n);
    else
        fail_alloc_at(n);
}

static void test_text(void)
{
    for (int all = 0; all < 2; all++)
        for (long n = 1; fail_alloc_sweep(n); n++) {
            struct kg_text text = {0};
            struct kg_json json = {.text = &text};
            begin(n, all);
            for (int i = 0; i < 200; i++)
                kg_json_text(&json, NULL, "some element of a list");
            fail_alloc_never();
            CHECK(text.failed == fail_alloc_happened());
            kg_text_free(&text);
        }
}

static void test_arena(void)
{
    for (int all = 0; all < 2; all++)
        for (long n = 1; fail_alloc_sweep(n); n++) {
            struct kg_arena arena = {0};
            begin(n, all);
            for (int i = 0; i < 100; i++)
                kg_arena_format(&arena, "%0300d", i);
            fail_alloc_never();
            CHECK(arena.failed == fail_alloc_happened());
            kg_arena_free(&arena);
        }
}

static void test_files(void)
{
    char path[] = "/tmp/kernelgen-faults-XXXXXX";
    CHECK(mkdtemp(path));
    char name[64];
    snprintf(name, sizeof name, "%s/file", path);
    for (int all = 0; all < 2; all++)
        for (long n = 1; fail_alloc_sweep(n); n++) {
            struct kg_error error = {0};
            char *bytes, *home;
            size_t length;
            begin(n, all);
            enum kg_status status = kg_files_publish(name, "bytes", 5, &error);
            if (status == KG_OK) {
                status = kg_files_read("/proc/self/status", 1 << 20, &bytes, &length, &error);
                CHECK((status == KG_OK) == (bytes != NULL));
                free(bytes);
            }
            if (status == KG_OK) {
                status = kg_files_home(path, &home, &error);
                CHECK((status == KG_OK) == (home != NULL));
                free(home);
            }
            fail_alloc_never();
            CHECK(status == KG_OK || status == KG_ERROR_MEMORY || status == KG_ERROR_IO);
            CHECK(status == KG_OK || error.text[0]);
        }
    unlink(name);
    CHECK(rmdir(path) == 0); // and nothing else was left in it
}

TEST_MAIN(test_text, test_arena, test_files)
