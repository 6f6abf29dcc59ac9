// See candidate_folder.h.

#include "flow/candidate_folder.h"

#include "base/files.h"
#include "flow/foreign.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_NAMES 100000 // in a folder

static bool is_kernel(const char *name)
{
    static const char *const suffixes[] = {".c", ".cu", ".ptx", ".py"};
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        size_t suffix = strlen(suffixes[i]);
        if (length > suffix && strcmp(name + length - suffix, suffixes[i]) == 0)
            return true;
    }
    return false;
}

static int compare_names(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static enum kg_status add_name(struct kg_candidate_folder *folder, const char *name, int *capacity,
                               struct kg_error *error)
{
    if (folder->count == *capacity) {
        int wanted = *capacity ? *capacity * 2 : 64;
        const char **larger = realloc(folder->names, (size_t)wanted * sizeof *larger);
        if (!larger)
            return kg_error_memory(error, "the names of files");
        folder->names = larger;
        *capacity = wanted;
    }
    const char *copy = kg_arena_copy(&folder->arena, name, strlen(name));
    if (!copy)
        return kg_error_memory(error, "the names of files");
    folder->names[folder->count++] = copy;
    return KG_OK;
}

static enum kg_status read_names(DIR *stream, const char *path, struct kg_candidate_folder *folder,
                                 struct kg_error *error)
{
    int capacity = 0;
    enum kg_status status = KG_OK;
    while (!status) {
        errno = 0;
        const struct dirent *entry = readdir(stream);
        if (!entry)
            return errno ? kg_files_fail(error, "read", path) : KG_OK;
        if (entry->d_name[0] == '.')
            continue;
        if (is_kernel(entry->d_name))
            status = add_name(folder, entry->d_name, &capacity, error);
        else
            folder->others++;
        if (!status && folder->count + folder->others > MOST_NAMES)
            status = kg_error_set(error, KG_ERROR_ARGUMENT,
                                  "%s holds more than %d files: put the candidates into a folder "
                                  "of their own",
                                  path, MOST_NAMES);
    }
    return status;
}

enum kg_status kg_candidate_folder_read(const char *path, struct kg_candidate_folder *folder,
                                        struct kg_error *error)
{
    *folder = (struct kg_candidate_folder){0};
    DIR *stream = opendir(path);
    if (!stream)
        return kg_files_fail(error, "read the folder", path);
    enum kg_status status = read_names(stream, path, folder, error);
    closedir(stream);
    if (status)
        return status;
    if (folder->count == 0)
        return kg_error_set(error, KG_ERROR_ARGUMENT,
                            "%s holds no kernels: a kernel is a .c file for the host, or .cu or "
                            ".ptx for GPUs",
                            path);
    qsort(folder->names, (size_t)folder->count, sizeof folder->names[0], compare_names);
    if (folder->count > KG_MOST_CANDIDATES) {
        folder->left_out = folder->count - KG_MOST_CANDIDATES;
        folder->count = KG_MOST_CANDIDATES;
    }
    return KG_OK;
}

void kg_candidate_folder_free(struct kg_candidate_folder *folder)
{
    free(folder->names);
    kg_arena_free(&folder->arena);
    *folder = (struct kg_candidate_folder){0};
}

static const char too_long[] = "it is longer than 4 MiB"; // KG_FOREIGN_BYTES

static const char *refuse(const struct stat *about)
{
    if (S_ISDIR(about->st_mode))
        return "it is a folder";
    if (!S_ISREG(about->st_mode))
        return "it is no regular file";
    return (size_t)about->st_size > KG_FOREIGN_BYTES ? too_long : NULL;
}

// Reads one byte more than there may be: the size may change.
static const char *read_some(int file, char *buffer, size_t *length)
{
    size_t used = 0;
    for (ssize_t got = 1; got != 0;) {
        got = read(file, buffer + used, KG_FOREIGN_BYTES + 1 - used);
        if (got < 0 && errno != EINTR)
            return strerror(errno);
        used += got > 0 ? (size_t)got : 0;
        if (used > KG_FOREIGN_BYTES)
            return too_long;
    }
    buffer[used] = '\0';
    *length = used;
    return NULL;
}

// A link could name a file that is no candidate, whose text a compiler would then print. Opening
// must not wait for the other end of a pipe.
enum kg_status kg_candidate_read(const char *path, char **bytes, size_t *length, const char **why,
                                 struct kg_error *error)
{
    *bytes = NULL;
    *length = 0;
    struct stat about;
    int file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (file < 0) {
        *why = errno == ELOOP   ? "it is a symbolic link"
               : errno == ENXIO ? "it is no regular file"
                                : strerror(errno);
        return KG_OK;
    }
    *why = fstat(file, &about) != 0 ? strerror(errno) : refuse(&about);
    if (*why) {
        close(file);
        return KG_OK;
    }
    char *buffer = malloc(KG_FOREIGN_BYTES + 2);
    *why = buffer ? read_some(file, buffer, length) : NULL;
    close(file);
    if (!buffer)
        return kg_error_memory(error, "a file");
    if (*why) {
        free(buffer);
        return KG_OK;
    }
    char *fitted = realloc(buffer, *length + 1);
    *bytes = fitted ? fitted : buffer;
    return KG_OK;
}
