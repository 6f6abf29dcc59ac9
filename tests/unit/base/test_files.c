#include "base/files.h"
#include "test.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/kernelgen-files-XXXXXX";

// A path below the test's folder, in one of a few buffers.
static const char *below(const char *name)
{
    static char paths[4][256];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static int entries(const char *path)
{
    int count = 0;
    DIR *list = opendir(path);
    while (list && readdir(list))
        count++;
    if (list)
        closedir(list);
    return count - 2;
}

static void test_publish_and_read(void)
{
    CHECK(mkdtemp(folder));
    struct kg_error error = {0};
    char *bytes;
    size_t length;
    CHECK_STATUS(kg_files_publish(below("a"), "one\0two", 7, &error), KG_OK, &error);
    CHECK_STATUS(kg_files_read(below("a"), 7, &bytes, &length, &error), KG_OK, &error);
    CHECK(length == 7 && memcmp(bytes, "one\0two", 8) == 0);
    free(bytes);
    CHECK_STATUS(kg_files_publish(below("a"), "", 0, &error), KG_OK, &error); // replaces
    CHECK_STATUS(kg_files_read(below("a"), 0, &bytes, &length, &error), KG_OK, &error);
    CHECK(bytes && length == 0 && bytes[0] == '\0');
    free(bytes);
    CHECK(entries(folder) == 1);
}

static void test_longest_name(void)
{
    char name[256];
    memset(name, 'n', 255);
    name[255] = '\0';
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    struct kg_error error = {0};
    CHECK_STATUS(kg_files_publish(path, "x", 1, &error), KG_OK, &error);
    unlink(path);
}

static void test_read_refusals(void)
{
    struct kg_error error = {0};
    char *bytes = folder;
    size_t length = 9;
    CHECK_STATUS(kg_files_read(below("none"), 10, &bytes, &length, &error), KG_ERROR_IO, &error);
    CHECK(!bytes && length == 0);
    CHECK(strstr(error.text, "none") && strstr(error.text, "No such file"));
    CHECK_STATUS(kg_files_read(folder, 10, &bytes, &length, &error), KG_ERROR_IO, &error);
    CHECK_STATUS(kg_files_read("/dev/zero", 10, &bytes, &length, &error), KG_ERROR_IO, &error);
    CHECK(mkfifo(below("pipe"), 0600) == 0);
    CHECK_STATUS(kg_files_read(below("pipe"), 10, &bytes, &length, &error), KG_ERROR_IO, &error);
    unlink(below("pipe"));
    kg_files_publish(below("a"), "12345678901", 11, &error);
    CHECK_STATUS(kg_files_read(below("a"), 10, &bytes, &length, &error), KG_ERROR_IO, &error);
    CHECK(!bytes);
    // Files of /proc say they are empty and are not.
    CHECK_STATUS(kg_files_read("/proc/self/status", 1 << 20, &bytes, &length, &error), KG_OK,
                 &error);
    CHECK(length > 0);
    free(bytes);
    CHECK_STATUS(kg_files_read("/proc/self/status", 20, &bytes, &length, &error), KG_ERROR_IO,
                 &error);
}

static void test_publish_refusals(void)
{
    struct kg_error error = {0};
    int before = entries(folder);
    CHECK_STATUS(kg_files_publish(below("none/a"), "x", 1, &error), KG_ERROR_IO, &error);
    CHECK(mkdir(below("is-folder"), 0777) == 0);
    CHECK_STATUS(kg_files_publish(below("is-folder"), "x", 1, &error), KG_ERROR_IO, &error);
    CHECK(mkfifo(below("pipe"), 0600) == 0);
    CHECK_STATUS(kg_files_publish(below("pipe"), "x", 1, &error), KG_ERROR_IO, &error);
    struct stat info;
    CHECK(stat(below("pipe"), &info) == 0 && S_ISFIFO(info.st_mode));
    unlink(below("pipe"));
    rmdir(below("is-folder"));
    CHECK(entries(folder) == before); // nothing left behind
}

static void test_folders(void)
{
    struct kg_error error = {0};
    CHECK_STATUS(kg_files_make_folder(below("x//y/z/"), &error), KG_OK, &error);
    CHECK_STATUS(kg_files_make_folder(below("x/y/z"), &error), KG_OK, &error);
    CHECK(kg_files_exists(below("x/y/z")) && !kg_files_exists(below("x/q")));
    kg_files_publish(below("file"), "", 0, &error);
    CHECK_STATUS(kg_files_make_folder(below("file/y"), &error), KG_ERROR_IO, &error);
    CHECK_STATUS(kg_files_make_folder(below("file"), &error), KG_ERROR_IO, &error);
    CHECK_STATUS(kg_files_make_folder("/proc/none", &error), KG_ERROR_IO, &error);
}

static void check_home(const char *home, const char *expected)
{
    struct kg_error error = {0};
    char *path;
    CHECK_STATUS(kg_files_home(home, &path, &error), KG_OK, &error);
    CHECK_TEXT(path ? path : "", expected);
    CHECK(path && kg_files_exists(path));
    free(path);
}

static void test_home(void)
{
    struct kg_error error = {0};
    char *path = folder;
    setenv("HOME", folder, 1);
    setenv("XDG_DATA_HOME", "relative", 1);
    unsetenv("KERNELGEN_HOME");
    check_home(NULL, below(".local/share/kernelgen"));
    setenv("XDG_DATA_HOME", below("data"), 1);
    check_home("", below("data/kernelgen"));
    setenv("KERNELGEN_HOME", below("own"), 1);
    check_home(NULL, below("own"));
    check_home(below("given"), below("given"));
    setenv("KERNELGEN_HOME", "", 1);
    unsetenv("XDG_DATA_HOME");
    unsetenv("HOME");
    CHECK_STATUS(kg_files_home(NULL, &path, &error), KG_ERROR_IO, &error);
    CHECK(!path && strstr(error.text, "KERNELGEN_HOME"));
}

static void test_clean_up(void)
{
    static const char *const names[] = {"a",      "file",
                                        "x/y/z",  "x/y",
                                        "x",      ".local/share/kernelgen",
                                        "own",    ".local/share",
                                        ".local", "data/kernelgen",
                                        "data",   "given"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        CHECK(remove(below(names[i])) == 0);
    CHECK(rmdir(folder) == 0);
}

TEST_MAIN(test_publish_and_read, test_longest_name, test_read_refusals, test_publish_refusals,
          test_folders, test_home, test_clean_up)
