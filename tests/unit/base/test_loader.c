// Libraries that some threads open and close while others fork, where the forks open one, too.

#include "base/loader.h"
#include "device/child.h"
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>

enum { FORKS = 40 };

static atomic_bool over;

// Returns `library` if it could be opened each time.
static void *open_and_close(void *library)
{
    while (!over) {
        void *opened = kg_loader_open(library);
        if (!opened)
            return NULL;
        kg_loader_close(opened);
    }
    return library;
}

static enum kg_status open_here(void *library, struct kg_text *answer, struct kg_error *error)
{
    kg_text_add(answer, kg_loader_open(library) ? "open" : "missing");
    (void)error;
    return KG_OK;
}

static void forks_open_libraries(void)
{
    char *library = KG_FAKE_DRIVER;
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, open_and_close, library) == 0);
    for (int i = 0; i < FORKS && test_failures == 0; i++) {
        struct kg_text answer;
        struct kg_error error;
        CHECK_STATUS(kg_child_run(open_here, library, 10, NULL, 64, &answer, &error), KG_OK,
                     &error);
        CHECK(strcmp(kg_text_string(&answer), "open") == 0);
        kg_text_free(&answer);
    }
    over = true;
    void *opened = NULL;
    CHECK(pthread_join(thread, &opened) == 0 && opened == library);
}

static void missing_libraries_are_null(void)
{
    CHECK(!kg_loader_open("libthere_is_none.so.0"));
}

static void all(void)
{
    forks_open_libraries();
    missing_libraries_are_null();
}

TEST_MAIN(all)
