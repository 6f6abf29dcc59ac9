// The cache of compiled objects: files named by the hash of everything they depend on. An object is
// published by rename, as a whole, and ends in a trailer that detects damage. The host's loader
// ignores bytes after an ELF file's sections.

#include "device/objects.h"

#include "base/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAX_OBJECT_BYTES ((size_t)256 << 20)
#define BUILD_PREFIX "build-"
#define BUILD_BYTES (4 << 20) // more than one build ever needs
#define STALE_SECONDS 3600    // far beyond any time limit of a compilation

struct trailer {
    char magic[8];
    uint64_t length; // of the bytes before the trailer
    struct kg_hash hash;
};
static const char trailer_magic[8] = {'K', 'G', 'O', 'B', 'J', '0', '1', '\n'};

char *kg_objects_path(const char *folder, struct kg_hash key, const char *suffix)
{
    char digits[KG_HASH_TEXT];
    kg_hash_format(key, digits);
    struct kg_text path = {0};
    kg_text_format(&path, "%s/%s%s", folder, digits, suffix);
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

enum kg_status kg_objects_read(const char *path, char **bytes, size_t *length,
                               struct kg_error *error)
{
    enum kg_status status = kg_files_read(path, MAX_OBJECT_BYTES, bytes, length, error);
    if (status)
        return status;
    if (is_intact(*bytes, *length)) {
        *length -= sizeof(struct trailer);
        return KG_OK;
    }
    free(*bytes);
    *bytes = NULL;
    *length = 0;
    unlink(path);
    return kg_error_set(error, KG_ERROR_CORRUPT,
                        "%s is damaged and was removed; building again replaces it", path);
}

enum kg_status kg_objects_check(const char *path, struct kg_error *error)
{
    char *bytes = NULL;
    size_t length = 0;
    enum kg_status status = kg_objects_read(path, &bytes, &length, error);
    free(bytes);
    return status;
}

bool kg_objects_lookup(const char *path)
{
    return kg_files_exists(path) && kg_objects_check(path, NULL) == KG_OK;
}

enum kg_status kg_objects_publish(const char *path, const char *bytes, size_t length,
                                  struct kg_error *error)
{
    struct trailer trailer = {.length = length, .hash = kg_hash_bytes(bytes, length)};
    memcpy(trailer.magic, trailer_magic, sizeof trailer_magic);
    char *whole = malloc(length + sizeof trailer);
    if (!whole)
        return kg_error_memory(error, "a compiled object");
    memcpy(whole, bytes, length);
    memcpy(whole + length, &trailer, sizeof trailer);
    enum kg_status status = kg_files_publish(path, whole, length + sizeof trailer, error);
    free(whole);
    return status;
}

enum kg_status kg_objects_publish_file(const char *path, const char *made, struct kg_error *error)
{
    char *bytes = NULL;
    size_t length = 0;
    enum kg_status status = kg_files_read(made, MAX_OBJECT_BYTES, &bytes, &length, error);
    if (!status)
        status = kg_objects_publish(path, bytes, length, error);
    free(bytes);
    return status;
}

char *kg_objects_folder_make(const char *parent)
{
    struct kg_text path = {0};
    kg_text_format(&path, "%s/" BUILD_PREFIX "XXXXXX", parent);
    if (path.failed || !mkdtemp(path.data)) {
        kg_text_free(&path);
        return NULL;
    }
    return path.data;
}

// Folders made here contain only files.
void kg_objects_folder_remove(const char *path)
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

// Removes folders that killed processes left in the cache.
static void sweep(const char *cache)
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
            kg_objects_folder_remove(path.data);
        kg_text_free(&path);
    }
    closedir(folder);
}

// Is there room for a compiled kernel and the compiler's temporary files? A limit on the size of
// files holds everywhere, and exceeding it would end the process.
static bool has_room(const char *folder)
{
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    (void)getrlimit(RLIMIT_FSIZE, &limit);
    off_t max = limit.rlim_cur < BUILD_BYTES ? (off_t)limit.rlim_cur : BUILD_BYTES;
    struct kg_text path = {0};
    kg_text_format(&path, "%s/" BUILD_PREFIX "room-XXXXXX", folder);
    int file = path.failed ? -1 : mkostemp(path.data, O_CLOEXEC);
    if (file >= 0)
        unlink(path.data);
    bool room = file >= 0 && (max == 0 || posix_fallocate(file, 0, max) == 0);
    if (file >= 0)
        close(file);
    kg_text_free(&path);
    return room;
}

// An absolute path, so that a later change of the current folder does not matter.
static bool use_folder(struct kg_device *device, const char *path)
{
    char *full = realpath(path, NULL);
    bool usable =
        full && strlen(full) < sizeof device->cache && access(full, R_OK | W_OK | X_OK) == 0;
    if (usable)
        snprintf(device->cache, sizeof device->cache, "%s", full);
    free(full);
    return usable;
}

// mkdtemp makes the folder private, so that nobody else can put an object there. The caller frees
// the path.
static char *make_temporary(struct kg_text *path)
{
    const char *parent = getenv("TMPDIR");
    kg_text_format(path, "%s/kernelgen-XXXXXX", parent && *parent ? parent : "/tmp");
    return path->failed ? NULL : mkdtemp(path->data);
}

// If no folder is writable, objects go to a temporary one that exists as long as the device is
// open.
static enum kg_status use_private_folder(struct kg_device *device, const char *wanted,
                                         struct kg_error *error)
{
    struct kg_text path = {0};
    char *made = make_temporary(&path);
    device->cache_is_private = made && use_folder(device, made);
    if (made && !device->cache_is_private)
        rmdir(made);
    if (!device->cache_is_private)
        kg_error_set(error, KG_ERROR_MISSING,
                     "neither the cache folder %s nor a temporary one (%s) can be written; set "
                     "KERNELGEN_HOME or TMPDIR to another folder",
                     wanted, kg_text_string(&path));
    kg_text_free(&path);
    return device->cache_is_private ? KG_OK : KG_ERROR_MISSING;
}

enum kg_status kg_objects_open(struct kg_device *device, const char *cache, struct kg_error *error)
{
    device->cache_owner = getpid();
    struct kg_text path = {0};
    if (cache && *cache) {
        kg_text_add(&path, cache);
    } else {
        char *home = NULL;
        if (kg_files_home(NULL, &home, NULL) == KG_OK)
            kg_text_format(&path, "%s/objects", home);
        free(home);
    }
    enum kg_status status = KG_OK;
    const char *wanted = kg_text_string(&path);
    if (*wanted == '\0' || kg_files_make_folder(wanted, NULL) != KG_OK ||
        !use_folder(device, wanted))
        status = use_private_folder(device, wanted, error);
    else
        sweep(device->cache);
    kg_text_free(&path);
    return status;
}

void kg_objects_close(struct kg_device *device)
{
    bool is_owner = device->cache_owner == getpid();
    char *spare = atomic_load(&device->spare);
    if (device->cache_is_private && is_owner)
        kg_objects_folder_remove(device->cache);
    if (spare && is_owner)
        kg_objects_folder_remove(spare);
    free(spare);
}

char *kg_objects_find(struct kg_device *device, struct kg_hash key, const char *suffix)
{
    const char *spare = atomic_load(&device->spare);
    const char *const folders[] = {device->cache, spare};
    for (int i = 0; i < 2 && folders[i]; i++) {
        char *path = kg_objects_path(folders[i], key, suffix);
        if (path && kg_objects_lookup(path))
            return path;
        free(path);
    }
    return NULL;
}

const char *kg_objects_spare(struct kg_device *device)
{
    char *spare = atomic_load(&device->spare);
    if (device->cache_is_private || has_room(device->cache))
        return NULL;
    if (spare)
        return spare;
    struct kg_text path = {0};
    if (make_temporary(&path) && atomic_compare_exchange_strong(&device->spare, &spare, path.data))
        return path.data;
    if (spare) // another thread was faster
        rmdir(path.data);
    kg_text_free(&path);
    return spare;
}
