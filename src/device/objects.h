// The cache of compiled objects, and the folder it lives in.
//
// An object ends in a trailer with its length and hash; one that does not is damaged. Objects are
// published whole, by rename: any number of processes may share a folder.

#ifndef KG_DEVICE_OBJECTS_H
#define KG_DEVICE_OBJECTS_H

#include "device/device.h"

// Sets device->cache to `cache` ("" or NULL: "objects" where data lives), or, where that cannot be
// written, to a temporary folder that kg_objects_close removes.
enum kg_status kg_objects_open(struct kg_device *device, const char *cache, struct kg_error *error);
void kg_objects_close(struct kg_device *device);

// Of an object in `folder`: device->cache or the spare one. The caller frees it. NULL: out of
// memory.
char *kg_objects_path(const char *folder, struct kg_hash key, const char *suffix);
// What was published, without its trailer, with a terminating zero. The caller frees `*bytes`.
// KG_ERROR_CORRUPT, and the file is gone, when it is damaged.
enum kg_status kg_objects_read(const char *path, char **bytes, size_t *length,
                               struct kg_error *error);
enum kg_status kg_objects_check(const char *path, struct kg_error *error);
// Is it there, and intact? A damaged object is removed.
bool kg_objects_lookup(const char *path);
enum kg_status kg_objects_publish(const char *path, const char *bytes, size_t length,
                                  struct kg_error *error);
// The path of an intact object in the cache, or in the spare folder where there is one. The caller
// frees it. NULL: there is none.
char *kg_objects_find(struct kg_device *device, struct kg_hash key, const char *suffix);
// Has the cache become too full to build in? Then the spare folder is a temporary one, made by the
// first call, in which to try again; it lives as long as the device. NULL: the cache has room, or
// there is no other place. Borrowed. Any thread may ask.
const char *kg_objects_spare(struct kg_device *device);
// Publishes the content of the file `made`.
enum kg_status kg_objects_publish_file(const char *path, const char *made, struct kg_error *error);

// A fresh folder to build in; folders that killed processes left are removed by kg_objects_open.
// The caller frees the path. NULL: none could be made.
char *kg_objects_folder_make(const char *parent);
void kg_objects_folder_remove(const char *path);

#endif
