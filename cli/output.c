// A file is written beside its place and renamed when it is on the disk.

#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    int number;
    const char *words;
} shortages[] = {
    {ENOSPC, "the disk is full; make room there, or write elsewhere, and run this again"},
    {EDQUOT, "the quota is used up; make room there, or write elsewhere, and run this again"},
    {EFBIG, "the limit on the size of files is reached; raise it ('ulimit -f') and run this again"},
};

#define SHORTAGES (sizeof shortages / sizeof shortages[0])

static const char *find_shortage(int why)
{
    for (size_t i = 0; i < SHORTAGES; i++)
        if (shortages[i].number == why)
            return shortages[i].words;
    return NULL;
}

static void release(struct output *output)
{
    int why = errno;
    free(output->place);
    free(output->temporary);
    *output = (struct output){0};
    errno = why;
}

// Beside the file itself, where `path` is a link to one.
static bool open_temporary(struct output *output, const char *path)
{
    output->place = realpath(path, NULL);
    if (!output->place && errno == ENOENT)
        output->place = strdup(path);
    if (!output->place)
        return false;
    const char *slash = strrchr(output->place, '/');
    int folder = slash ? (int)(slash - output->place) + 1 : 0;
    if (asprintf(&output->temporary, "%.*s.kernelgen-XXXXXX", folder, output->place) < 0) {
        output->temporary = NULL;
        return false;
    }
    int file = mkostemp(output->temporary, O_CLOEXEC);
    if (file < 0)
        return false;
    // As open would have made it: mkostemp keeps others out.
    mode_t mask = umask(0);
    umask(mask);
    struct stat before;
    mode_t mode = stat(output->place, &before) == 0 ? before.st_mode & 0777 : 0666 & ~mask;
    (void)fchmod(file, mode);
    output->stream = fdopen(file, "wb");
    if (!output->stream) {
        close(file);
        unlink(output->temporary);
    }
    return output->stream;
}

bool output_open(struct output *output, const char *path)
{
    *output = (struct output){0};
    struct stat info;
    bool exists = stat(path, &info) == 0;
    bool opened;
    if (exists && S_ISREG(info.st_mode) && access(path, W_OK) != 0) {
        opened = false; // renaming would replace what may not be written
    } else if (exists && !S_ISREG(info.st_mode)) {
        output->stream = fopen(path, "wb");
        opened = output->stream;
    } else {
        opened = open_temporary(output, path);
    }
    if (!opened)
        release(output);
    return opened;
}

bool output_close(struct output *output, bool whole)
{
    int why = errno;
    if (whole && (fflush(output->stream) != 0 ||
                  (output->temporary && fsync(fileno(output->stream)) != 0))) {
        why = errno;
        whole = false;
    }
    if (fclose(output->stream) != 0 && whole) {
        why = errno;
        whole = false;
    }
    if (whole && output->temporary && rename(output->temporary, output->place) != 0) {
        why = errno;
        whole = false;
    }
    if (!whole && output->temporary)
        unlink(output->temporary);
    errno = why;
    release(output);
    return whole;
}

bool output_is_full(int why)
{
    return find_shortage(why);
}

const char *output_why(int why)
{
    const char *words = find_shortage(why);
    return words ? words : why ? strerror(why) : "it cannot be written";
}
