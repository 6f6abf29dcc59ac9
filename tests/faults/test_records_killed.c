// Several processes append to the same records at once, and some are killed while they do.

#include "support/sample_records.h"
#include "test.h"

#include <signal.h>
#include <sys/wait.h>

static struct kg_error error;

// Appends outcomes named after `writer` and tells through `pipe` each that was committed.
static void write_outcomes(const char *folder, int writer, int count, int pipe)
{
    struct kg_store *store = sample_open(folder);
    struct kg_key key = sample_key();
    for (int i = 0; i < count; i++) {
        char choice[64];
        snprintf(choice, sizeof choice, "writer=%d number=%d", writer, i);
        struct kg_outcome outcome = sample_outcome(choice);
        struct kg_error why = {0};
        if (kg_store_append(store, &key, &outcome, &why) != KG_OK) {
            fprintf(stderr, "writer %d: %s\n", writer, why.text);
            _exit(1);
        }
        if (write(pipe, &i, sizeof i) != (ssize_t)sizeof i)
            _exit(2);
    }
    kg_store_close(store);
}

static pid_t start_writer(const char *folder, int writer, int count, int pipes[2])
{
    if (pipe(pipes) != 0)
        abort();
    pid_t child = fork();
    if (child == 0) {
        write_outcomes(folder, writer, count, pipes[1]);
        _exit(0);
    }
    close(pipes[1]);
    return child;
}

static int count_found(const char *folder, int writer, int count)
{
    struct kg_store *store = sample_open(folder);
    struct kg_key key = sample_key();
    int found = 0;
    for (int i = 0; i < count; i++) {
        char choice[64];
        struct kg_outcome outcome;
        bool any;
        snprintf(choice, sizeof choice, "writer=%d number=%d", writer, i);
        CHECK_STATUS(kg_store_find(store, &key, choice, &outcome, &any, &error), KG_OK, &error);
        found += any;
    }
    kg_store_close(store);
    return found;
}

// The records do not exist yet: the processes also race for making them.
static void test_together(void)
{
    enum { WRITERS = 4, EACH = 100 };
    char folder[SAMPLE_FOLDER];
    sample_folder(folder);
    pid_t children[WRITERS];
    int pipes[WRITERS][2];
    for (int i = 0; i < WRITERS; i++)
        children[i] = start_writer(folder, i, EACH, pipes[i]);
    for (int i = 0; i < WRITERS; i++) {
        int status;
        CHECK(waitpid(children[i], &status, 0) == children[i]);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        close(pipes[i][0]);
        CHECK(count_found(folder, i, EACH) == EACH);
    }
    sample_remove(folder);
}

static void test_killed(void)
{
    char folder[SAMPLE_FOLDER];
    sample_folder(folder);
    for (int writer = 0; writer < 8; writer++) {
        int pipes[2], last = -1, told = 0;
        pid_t child = start_writer(folder, writer, 100000, pipes);
        while (told < 5 + 7 * writer && read(pipes[0], &last, sizeof last) == (ssize_t)sizeof last)
            told++;
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        while (read(pipes[0], &last, sizeof last) == (ssize_t)sizeof last)
            told++;
        close(pipes[0]);
        CHECK(told == last + 1 && told >= 5);
        CHECK(count_found(folder, writer, told) == told); // all that were committed
    }
    sample_remove(folder);
}

// Many processes meet the same damage at once: it is moved aside once.
static void test_damage_met_together(void)
{
    char folder[SAMPLE_FOLDER], path[128];
    sample_folder(folder);
    snprintf(path, sizeof path, "%s/records.db", folder);
    FILE *file = fopen(path, "wb");
    CHECK(file && fputs("no database at all, whatever its name says of it", file) >= 0);
    if (file)
        fclose(file);
    pid_t children[6];
    int pipes[6][2];
    for (int i = 0; i < 6; i++)
        children[i] = start_writer(folder, i, 10, pipes[i]);
    for (int i = 0; i < 6; i++) {
        int status;
        waitpid(children[i], &status, 0);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        close(pipes[i][0]);
        CHECK(count_found(folder, i, 10) == 10);
    }
    snprintf(path, sizeof path, "%s/records.db.corrupt-1", folder);
    CHECK(access(path, F_OK) == 0);
    snprintf(path, sizeof path, "%s/records.db.corrupt-2", folder);
    CHECK(access(path, F_OK) != 0);
    sample_remove(folder);
}

TEST_MAIN(test_together, test_killed, test_damage_met_together)
