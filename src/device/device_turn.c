// See device_turn.h. A turn is a lock on a file, which the system releases when its holder ends.

#include "device/device_turn.h"

#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define LONGEST_WAIT 60.0 // seconds
#define PAUSE 0.001

// Users share devices, and may not write to each other's files: what exists is opened for reading,
// which is all that a lock needs.
static int open_lock(const struct kg_device *device)
{
    char seen[1024], path[64];
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    int length = snprintf(seen, sizeof seen, "%s %s", device->name, visible ? visible : "all");
    if (length < 0 || length >= (int)sizeof seen)
        return -1;
    snprintf(path, sizeof path, "/tmp/kernelgen-%016llx.turn",
             (unsigned long long)kg_hash_bytes(seen, (size_t)length).low);
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0 && errno == ENOENT)
        file = open(path, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    return file;
}

bool kg_device_has_turns(const struct kg_device *device)
{
    return !device->backend->shares_memory;
}

int kg_device_turn_begin(const struct kg_device *device, const volatile int *cancel)
{
    const struct timespec pause = {.tv_nsec = (long)(PAUSE * 1e9)};
    int file = kg_device_has_turns(device) ? open_lock(device) : -1;
    if (file < 0)
        return -1;
    for (double waited = 0; flock(file, LOCK_EX | LOCK_NB) != 0; waited += PAUSE) {
        if ((errno != EWOULDBLOCK && errno != EINTR) || waited > LONGEST_WAIT ||
            (cancel && *cancel)) {
            close(file);
            return -1;
        }
        nanosleep(&pause, NULL);
    }
    return file;
}

void kg_device_turn_end(int turn)
{
    if (turn >= 0)
        close(turn);
}
