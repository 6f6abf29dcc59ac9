// Files, by plain POSIX calls. A published file is complete and on disk before its name appears, so
// that a reader never sees half a file, even after a crash.

#include "base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

// Messages for "no space", by errno.
static const struct {
    int number;
    const char *words;
} shortages[] = {
    {ENOSPC, "the disk is full; make room there, or write elsewhere"},
    {EDQUOT, "the quota is used up; make room there, or write elsewhere"},
    {EFBIG, "the limit on the size of files is reached; raise it ('ulimit -f')"},
};

// Reading one byte beyond `limit` detects a file that is too long (its size may also change
// meanwhile).
static enum kg_status read_all(int file, const char *path, size_t size, size_t limit, char **bytes,
                               size_t *length, struct kg_error *error)
{
    size_t capacity = size + 2, used = 0; // one byte to detect the end, and the terminator
    char *buffer = malloc(capacity);
    while (buffer) {
        ssize_t got = read(file, buffer + used, capacity - used - 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            enum kg_status status = kg_files_fail(error, "read", path);
            free(buffer);
            return status;
        }
        used += (size_t)got;
        if (used > limit) {
            free(buffer);
            return kg_error_set(error, KG_ERROR_IO, "%s is longer than %zu bytes", path, limit);
        }
        if (got == 0) {
            buffer[used] = '\0';
            *bytes = buffer;
            *length = used;
            return KG_OK;
        }
        if (used + 1 < capacity)
            continue;
        capacity *= 2;
        char *larger = realloc(buffer, capacity);
        if (!larger)
            free(buffer);
        buffer = larger;
    }
    return kg_error_memory(error, path);
}

static enum kg_status write_all(int file, const char *path, const char *bytes, size_t length,
                                struct kg_error *error)
{
    while (length > 0) {
        ssize_t put = write(file, bytes, length);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return kg_files_fail(error, "write", path);
        bytes += put;
        length -= (size_t)put;
    }
    if (fsync(file) != 0)
        return kg_files_fail(error, "flush", path);
    return KG_OK;
}

// The folder of `path`, with its slash; "" for the current one.
static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

// Creates a file in the folder of `path`. Its name does not contain the target's name, which may
// already have the maximum length.
static int open_temporary(const char *path, char **name)
{
    int folder = (int)folder_length(path);
    for (unsigned attempt = 0; attempt < 100; attempt++) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        if (asprintf(name, "%.*s.kernelgen-%ld-%lx%02x", folder, path, (long)getpid(),
                     (unsigned long)now.tv_nsec, attempt) < 0) {
            *name = NULL;
            errno = ENOMEM;
            return -1;
        }
        int file = open(*name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file >= 0)
            return file;
        int why = errno;
        free(*name);
        *name = NULL;
        errno = why;
        if (why != EEXIST)
            break;
    }
    return -1;
}

// Makes the rename itself durable. Failures are ignored if a folder cannot be opened or flushed,
// because the file's contents are on disk already.
static void flush_folder(const char *path)
{
    size_t length = folder_length(path);
    char *folder = length ? strndup(path, length) : strdup(".");
    if (!folder)
        return;
    int file = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(folder);
    if (file < 0)
        return;
    (void)fsync(file);
    close(file);
}

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

enum kg_status kg_files_fail(struct kg_error *error, const char *verb, const char *path)
{
    for (size_t i = 0; i < sizeof shortages / sizeof shortages[0]; i++)
        if (shortages[i].number == errno)
            return kg_error_set(error, KG_ERROR_MISSING, "cannot %s %s: %s", verb, path,
                                shortages[i].words);
    return kg_error_set(error, KG_ERROR_IO, "cannot %s %s: %s", verb, path, strerror(errno));
}

enum kg_status kg_files_read(const char *path, size_t limit, char **bytes, size_t *length,
                             struct kg_error *error)
{
    *bytes = NULL;
    *length = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a named pipe must not block
    if (file < 0)
        return kg_files_fail(error, "read", path);
    enum kg_status status;
    struct stat info;
    if (fstat(file, &info) != 0)
        status = kg_files_fail(error, "read", path);
    else if (!S_ISREG(info.st_mode))
        status = kg_error_set(error, KG_ERROR_IO, "cannot read %s: it is not a regular file", path);
    else if (info.st_size < 0 || (uintmax_t)info.st_size > limit)
        status = kg_error_set(error, KG_ERROR_IO, "%s is longer than %zu bytes", path, limit);
    else
        status = read_all(file, path, (size_t)info.st_size, limit, bytes, length, error);
    close(file);
    return status;
}

enum kg_status kg_files_publish(const char *path, const void *bytes, size_t length,
                                struct kg_error *error)
{
    // Renaming over a device or a pipe would replace it.
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return kg_error_set(error, KG_ERROR_IO, "cannot write %s: it is not a regular file", path);
    char *name;
    int file = open_temporary(path, &name);
    if (file < 0)
        return kg_files_fail(error, "write", path);
    enum kg_status status = write_all(file, path, bytes, length, error);
    if (close(file) != 0 && status == KG_OK)
        status = kg_files_fail(error, "write", path);
    if (status == KG_OK && rename(name, path) != 0)
        status = kg_files_fail(error, "write", path);
    if (status == KG_OK)
        flush_folder(path);
    else
        unlink(name);
    free(name);
    return status;
}

enum kg_status kg_files_make_folder(const char *path, struct kg_error *error)
{
    char *prefix = strdup(path);
    if (!prefix)
        return kg_error_memory(error, path);
    enum kg_status status = KG_OK;
    size_t length = strlen(prefix);
    for (size_t i = 1; i <= length && status == KG_OK; i++) {
        if (prefix[i] != '/' && prefix[i] != '\0')
            continue;
        char end = prefix[i];
        prefix[i] = '\0';
        if (!is_folder(prefix) && mkdir(prefix, 0777) != 0 && errno != EEXIST)
            status = kg_files_fail(error, "make folder", prefix);
        prefix[i] = end;
    }
    free(prefix);
    if (status == KG_OK && !is_folder(path))
        status = kg_error_set(error, KG_ERROR_IO, "%s is not a folder", path);
    return status;
}

bool kg_files_are_same(const char *path, const char *other)
{
    struct stat one, another;
    return stat(path, &one) == 0 && stat(other, &another) == 0 && S_ISREG(one.st_mode) &&
           one.st_dev == another.st_dev && one.st_ino == another.st_ino;
}

bool kg_files_exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

enum kg_status kg_files_home(const char *home, char **path, struct kg_error *error)
{
    *path = NULL;
    const char *own = getenv("KERNELGEN_HOME");
    const char *data = getenv("XDG_DATA_HOME");
    const char *user = getenv("HOME");
    const char *below = "";
    if (home && *home)
        own = home;
    if (!own || !*own) {
        own = data;
        below = "/kernelgen";
        if (!data || *data != '/') { // the XDG rules say to ignore a relative path
            own = user;
            below = "/.local/share/kernelgen";
        }
    }
    if (!own || !*own)
        return kg_error_set(error, KG_ERROR_IO,
                            "no place for records: set KERNELGEN_HOME to a folder");
    char *result;
    if (asprintf(&result, "%s%s", own, below) < 0)
        return kg_error_memory(error, "the path of the data folder");
    enum kg_status status = kg_files_make_folder(result, error);
    if (status == KG_OK)
        *path = result;
    else
        free(result);
    return status;
}
