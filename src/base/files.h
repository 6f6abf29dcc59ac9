// Files: whole-file reads, atomic publication, folders.

#ifndef KG_BASE_FILES_H
#define KG_BASE_FILES_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

// Reports a failed system call, by errno. A full disk or quota is KG_ERROR_MISSING, and the text
// says what to do; every other failure is KG_ERROR_IO.
enum kg_status kg_files_fail(struct kg_error *error, const char *verb, const char *path);

// Reads the whole file, adds a terminating zero (not counted). The caller frees `*bytes`.
// Refuses folders, devices and anything above `limit` bytes.
enum kg_status kg_files_read(const char *path, size_t limit, char **bytes, size_t *length,
                             struct kg_error *error);

// Writes to a temporary file beside `path`, flushes it to disk, and renames it. Readers see the old
// file or the new one, never a mixture. A failure leaves no temporary file.
enum kg_status kg_files_publish(const char *path, const void *bytes, size_t length,
                                struct kg_error *error);

// mkdir -p.
enum kg_status kg_files_make_folder(const char *path, struct kg_error *error);
bool kg_files_exists(const char *path);
// One regular file, by whatever names.
bool kg_files_are_same(const char *path, const char *other);

// The data folder: `home` if given, else $KERNELGEN_HOME, else $XDG_DATA_HOME/kernelgen, else
// ~/.local/share/kernelgen. It is created if necessary. The caller frees `*path`.
enum kg_status kg_files_home(const char *home, char **path, struct kg_error *error);

#endif
