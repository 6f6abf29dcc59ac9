// The cache of compiled objects: files named by the hash of everything that went into them. An
// object is published whole, by rename, and ends in a trailer that tells whether it still is what
// was published; the loader ignores bytes behind an ELF file's sections.

#include "base/files.h"
#include "device/host/host_device.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MOST_OBJECT_BYTES ((size_t)256 << 20)
#define BUILD_PREFIX "build-"
#define STALE_SECONDS 3600 // far beyond any time limit of a compilation

struct trailer {
    char magic[8];
    uint64_t length; // of what stands before the trailer
    struct kg_hash hash;
};
static const char trailer_magic[8] = {'K', 'G', 'O', 'B', 'J', '0', '1', '\n'};

char *kg_host_object_path(const char *folder, struct kg_hash key)
{
    char digits[KG_HASH_TEXT];
    kg_hash_format(key, digits);
    struct kg_text path = {0};
    kg_text_format(&path, "%s/%s.so", folder, digits);
    if (path.failed)
        kg_text_free(&path);
    return path.data;
}

static bool is_intact(const char *bytes, size_t length)
{
    struct trailer trailer;
    if (length < sizeof trailer)
        return false;
    size_t content = length - sizeof trailer;
    memcpy(&trailer, bytes + content, sizeof trailer);
    if (memcmp(trailer.magic, trailer_magic, sizeof trailer_magic) != 0 ||
        trailer.length != content)
        return false;
    struct kg_hash hash = kg_hash_bytes(bytes, content);
    return hash.high == trailer.hash.high && hash.low == trailer.hash.low;
}

enum kg_status kg_host_object_check(const char *path, struct kg_error *error)
{
    char *bytes = NULL;
    size_t length = 0;
    enum kg_status status = kg_files_read(path, MOST_OBJECT_BYTES, &bytes, &length, error);
    if (status)
        return status;
    bool intact = is_intact(bytes, length);
    free(bytes);
    if (intact)
        return KG_OK;
    unlink(path);
    return kg_error_set(error, KG_ERROR_CORRUPT,
                        "%s is damaged and was removed; building again replaces it", path);
}

bool kg_host_object_lookup(const char *path)
{
    return kg_files_exists(path) && kg_host_object_check(path, NULL) == KG_OK;
}

enum kg_status kg_host_object_publish(const char *path, const char *made, struct kg_error *error)
{
    char *bytes = NULL;
    size_t length = 0;
    enum kg_status status = kg_files_read(made, MOST_OBJECT_BYTES, &bytes, &length, error);
    if (status)
        return status;
    struct trailer trailer = {.length = length, .hash = kg_hash_bytes(bytes, length)};
    memcpy(trailer.magic, trailer_magic, sizeof trailer_magic);
    char *whole = realloc(bytes, length + sizeof trailer);
    if (!whole) {
        free(bytes);
        return kg_error_memory(error, "a compiled object");
    }
    memcpy(whole + length, &trailer, sizeof trailer);
    status = kg_files_publish(path, whole, length + sizeof trailer, error);
    free(whole);
    return status;
}

char *kg_host_folder_make(const char *parent)
{
    struct kg_text path = {0};
    kg_text_format(&path, "%s/" BUILD_PREFIX "XXXXXX", parent);
    if (path.failed || !mkdtemp(path.data)) {
        kg_text_free(&path);
        return NULL;
    }
    return path.data;
}

// The folders made here hold files only.
void kg_host_folder_remove(const char *path)
{
    DIR *folder = opendir(path);
    if (!folder)
        return;
    for (struct dirent *entry; (entry = readdir(folder));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
    rmdir(path);
}

void kg_host_folder_sweep(const char *cache)
{
    DIR *folder = opendir(cache);
    if (!folder)
        return;
    time_t now = time(NULL);
    for (struct dirent *entry; (entry = readdir(folder));) {
        struct stat status;
        if (strncmp(entry->d_name, BUILD_PREFIX, strlen(BUILD_PREFIX)) != 0 ||
            fstatat(dirfd(folder), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISDIR(status.st_mode) || now - status.st_mtime < STALE_SECONDS)
            continue;
        struct kg_text path = {0};
        kg_text_format(&path, "%s/%s", cache, entry->d_name);
        if (!path.failed)
            kg_host_folder_remove(path.data);
        kg_text_free(&path);
    }
    closedir(folder);
}
