// Runs another program without a shell: the C compiler, and helpers of backends.

#ifndef KG_DEVICE_PROCESS_H
#define KG_DEVICE_PROCESS_H

#include "base/error.h"
#include "base/text.h"

#include <stdbool.h>
#include <sys/types.h>

// The path of the executable `name`: `name` itself if it contains a slash, else the first match on
// $PATH. NULL when there is none (or no memory). The caller frees it.
char *kg_process_find(const char *name);

struct kg_process_end {
    int exit_status; // 0..255; -1 when a signal ended it
    int signal;      // 0 when it exited
    double seconds;
};

// Runs arguments[0] (a path) with the arguments up to a NULL, in `folder` (NULL: here), with
// standard input closed, and waits for it. With a folder, its temporary files are there too, so
// that removing the folder removes everything that a killed program left. Standard output and error
// are in English and are appended to `output`, at most `output_limit` bytes; the rest is dropped.
// The program has its own process group. After `time_limit` seconds (0: none) the whole group is
// killed and KG_ERROR_TIMEOUT returned; processes of the group that remain when the program ends
// are killed, too. KG_ERROR_CANCELLED soon after `*cancel` becomes nonzero (NULL: never).
// KG_ERROR_MISSING: it could not be started. KG_OK says that it ended, not that it succeeded.
enum kg_status kg_process_run(const char *const *arguments, const char *folder, double time_limit,
                              const volatile int *cancel, size_t output_limit,
                              struct kg_text *output, struct kg_process_end *end,
                              struct kg_error *error);

// Has this child ended? It stays a zombie, so that the number of its process group is not reused
// before the group is killed.
bool kg_process_has_ended(pid_t child);

#endif
