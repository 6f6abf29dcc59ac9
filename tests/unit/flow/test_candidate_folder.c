// Folders of candidates that hold anything but candidates.

#include "flow/candidate_folder.h"
#include "flow/foreign.h"
#include "support/folder.h"
#include "test.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static struct kg_error error;
static char home[] = "/tmp/kernelgen-folder-XXXXXX";

static const char *path_of(const char *name)
{
    static char path[4][512];
    static int next;
    char *out = path[next++ % 4];
    snprintf(out, sizeof path[0], "%s/%s", home, name);
    return out;
}

static void write_file(const char *name, size_t length)
{
    FILE *file = fopen(path_of(name), "wb");
    CHECK(file);
    for (size_t i = 0; file && i < length; i++)
        fputc('a' + (int)(i % 26), file);
    if (file)
        fclose(file);
}

static void names_are_sorted_and_counted(void)
{
    struct kg_candidate_folder folder;
    CHECK(mkdir(path_of("names"), 0700) == 0);
    static const char *const names[] = {"names/b.c",  "names/a.cu", "names/c.ptx",
                                        "names/d.py", "names/.e.c", "names/README",
                                        "names/.c",   "names/f.cc", "names/B\n.c"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        write_file(names[i], 3);
    CHECK_STATUS(kg_candidate_folder_read(path_of("names"), &folder, &error), KG_OK, &error);
    CHECK(folder.count == 5 && folder.others == 2 && folder.left_out == 0);
    static const char *const sorted[] = {"B\n.c", "a.cu", "b.c", "c.ptx", "d.py"};
    for (int i = 0; i < folder.count && i < 5; i++)
        CHECK_TEXT(folder.names[i], sorted[i]);
    kg_candidate_folder_free(&folder);
}

static void ten_thousand_files_are_bounded(void)
{
    struct kg_candidate_folder folder;
    CHECK(mkdir(path_of("many"), 0700) == 0);
    for (int i = 0; i < 10000; i++) {
        char name[32];
        snprintf(name, sizeof name, "many/%05d.c", i);
        write_file(name, 0);
    }
    CHECK_STATUS(kg_candidate_folder_read(path_of("many"), &folder, &error), KG_OK, &error);
    CHECK(folder.count == KG_MOST_CANDIDATES && folder.left_out == 10000 - KG_MOST_CANDIDATES);
    CHECK_TEXT(folder.names[0], "00000.c");
    CHECK_TEXT(folder.names[KG_MOST_CANDIDATES - 1], "01023.c");
    kg_candidate_folder_free(&folder);
}

static void folders_that_are_none_are_refused(void)
{
    struct kg_candidate_folder folder;
    CHECK_STATUS(kg_candidate_folder_read(path_of("missing"), &folder, &error), KG_ERROR_IO,
                 &error);
    kg_candidate_folder_free(&folder);
    CHECK_STATUS(kg_candidate_folder_read(path_of("names/b.c"), &folder, &error), KG_ERROR_IO,
                 &error);
    kg_candidate_folder_free(&folder);
    CHECK(mkdir(path_of("empty"), 0700) == 0);
    write_file("empty/notes.md", 3);
    CHECK_STATUS(kg_candidate_folder_read(path_of("empty"), &folder, &error), KG_ERROR_ARGUMENT,
                 &error);
    kg_candidate_folder_free(&folder);
}

static void check_reads(const char *name, const char *expected)
{
    char *bytes;
    size_t length;
    const char *why;
    CHECK_STATUS(kg_candidate_read(path_of(name), &bytes, &length, &why, &error), KG_OK, &error);
    CHECK_TEXT(why ? why : "", expected);
    CHECK((bytes == NULL) == (why != NULL));
    free(bytes);
}

// None of these may be waited for, followed, or read to its end.
static void only_regular_files_are_read(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    CHECK(mkdir(path_of("kinds"), 0700) == 0 && mkdir(path_of("kinds/folder.c"), 0700) == 0);
    write_file("kinds/right.c", 1000);
    write_file("kinds/empty.c", 0);
    CHECK(mkfifo(path_of("kinds/pipe.c"), 0600) == 0);
    CHECK(symlink("right.c", path_of("kinds/link.c")) == 0);
    CHECK(symlink("/dev/zero", path_of("kinds/endless.c")) == 0);
    CHECK(symlink("loop.c", path_of("kinds/loop.c")) == 0);
    int file = open(path_of("kinds/huge.c"), O_CREAT | O_WRONLY, 0600);
    CHECK(file >= 0 && ftruncate(file, (off_t)1 << 40) == 0);
    close(file);
    file = open(path_of("kinds/longest.c"), O_CREAT | O_WRONLY, 0600);
    CHECK(file >= 0 && ftruncate(file, (off_t)KG_FOREIGN_BYTES) == 0);
    close(file);
    int server = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path_of("kinds/socket.c"));
    CHECK(bind(server, (const struct sockaddr *)&address, sizeof address) == 0);
    check_reads("kinds/right.c", "");
    check_reads("kinds/empty.c", "");
    check_reads("kinds/longest.c", "");
    check_reads("kinds/huge.c", "it is longer than 4 MiB");
    check_reads("kinds/folder.c", "it is a folder");
    check_reads("kinds/pipe.c", "it is no regular file");
    check_reads("kinds/socket.c", "it is no regular file");
    check_reads("kinds/link.c", "it is a symbolic link");
    check_reads("kinds/endless.c", "it is a symbolic link");
    check_reads("kinds/loop.c", "it is a symbolic link");
    check_reads("kinds/none.c", "No such file or directory");
    close(server);
    if (geteuid() == 0)
        return; // who may read everything
    CHECK(chmod(path_of("kinds/right.c"), 0) == 0);
    check_reads("kinds/right.c", "Permission denied");
}

static void begin(void)
{
    CHECK(folder_make(home));
}

static void end(void)
{
    folder_remove(home);
}

TEST_MAIN(begin, names_are_sorted_and_counted, ten_thousand_files_are_bounded,
          folders_that_are_none_are_refused, only_regular_files_are_read, end)
