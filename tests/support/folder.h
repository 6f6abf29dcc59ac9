// A temporary folder that a test program makes when it begins and removes when it ends.

#ifndef KG_TESTS_SUPPORT_FOLDER_H
#define KG_TESTS_SUPPORT_FOLDER_H

#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static inline int folder_remove_entry(const char *path, const struct stat *status, int kind,
                                      struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

// `path` ends in XXXXXX, as for mkdtemp.
static inline bool folder_make(char *path)
{
    return mkdtemp(path) != NULL;
}

static inline void folder_remove(const char *path)
{
    nftw(path, folder_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
