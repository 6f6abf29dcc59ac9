// A folder of foreign kernels, which may hold anything: names as they are, a bounded number of
// them, and only regular files are read.

#ifndef KG_FLOW_CANDIDATE_FOLDER_H
#define KG_FLOW_CANDIDATE_FOLDER_H

#include "base/arena.h"
#include "base/error.h"

#define KG_MOST_CANDIDATES 1024 // files of one folder that are judged

struct kg_candidate_folder {
    struct kg_arena arena;
    const char **names; // of kernels by their suffix (.c .cu .ptx .py), in order of their bytes
    int count;
    int left_out; // beyond KG_MOST_CANDIDATES
    int others;   // with other suffixes; hidden files do not count
};

// KG_ERROR_IO for a folder that cannot be read, KG_ERROR_ARGUMENT for one without kernels or with a
// hundred thousand names. Free it in any case.
enum kg_status kg_candidate_folder_read(const char *path, struct kg_candidate_folder *folder,
                                        struct kg_error *error);
void kg_candidate_folder_free(struct kg_candidate_folder *folder);

// Reads a file, of KG_FOREIGN_BYTES at most, and adds a terminating zero; the caller frees
// `*bytes`. If it is not read, `*why` says in some words why; only a lack of memory is returned.
enum kg_status kg_candidate_read(const char *path, char **bytes, size_t *length, const char **why,
                                 struct kg_error *error);

#endif
