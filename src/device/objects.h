// The cache of compiled objects, and its folder.
//
// An object ends in a trailer with its length and hash; without a valid trailer it is damaged.
// Objects are published by rename, as a whole: any number of processes may share a folder.

#ifndef KG_DEVICE_OBJECTS_H
#define KG_DEVICE_OBJECTS_H

#include "device/device.h"

// Sets device->cache to `cache` ("" or NULL: "objects" in the data folder). If that is not
// writable, sets it to a temporary folder, which kg_objects_close removes.
enum kg_status kg_objects_open(struct kg_device *device, const char *cache, struct kg_error *error);
void kg_objects_close(struct kg_device *device);

// The path of an object in `folder`: device->cache or the spare one. The caller frees it. NULL: out
// of memory.
char *kg_objects_path(const char *folder, struct kg_hash key, const char *suffix);
// Reads an object without its trailer, and adds a terminating zero. The caller frees `*bytes`.
// KG_ERROR_CORRUPT when it is damaged; the file is removed then.
enum kg_status kg_objects_read(const char *path, char **bytes, size_t *length,
                               struct kg_error *error);
enum kg_status kg_objects_check(const char *path, struct kg_error *error);
// Does an intact object exist? A damaged one is removed.
bool kg_objects_lookup(const char *path);
enum kg_status kg_objects_publish(const char *path, const char *bytes, size_t length,
                                  struct kg_error *error);
// The path of an intact object in the cache, or in the spare folder if there is one. The caller
// frees it. NULL: there is no such object.
char *kg_objects_find(struct kg_device *device, struct kg_hash key, const char *suffix);
// The folder to build in when the cache has become too full: a temporary one, which the first call
// makes and which exists as long as the device is open. NULL: the cache has room, or there is no
// other folder. Borrowed. Thread-safe.
const char *kg_objects_spare(struct kg_device *device);
// Publishes the contents of the file `made` as an object.
enum kg_status kg_objects_publish_file(const char *path, const char *made, struct kg_error *error);

// Makes a new folder to build in; kg_objects_open removes those that killed processes left. The
// caller frees the path. NULL: it could not be made.
char *kg_objects_folder_make(const char *parent);
void kg_objects_folder_remove(const char *path);

#endif
