// Running another program without a shell: the C compiler, and whatever a backend needs besides.

#ifndef KG_DEVICE_PROCESS_H
#define KG_DEVICE_PROCESS_H

#include "base/error.h"
#include "base/text.h"

#include <stdbool.h>
#include <sys/types.h>

// The executable `name` stands for: a path when it holds a slash, else the first match on $PATH.
// NULL when there is none (or no memory). The caller frees it.
char *kg_process_find(const char *name);

struct kg_process_end {
    int exit_status; // 0..255; -1 when a signal ended it
    int signal;      // 0 when it exited
    double seconds;
};

// Runs arguments[0] (a path) with the arguments up to a NULL, in `folder` (NULL: here), standard
// input closed, and waits. With a folder its temporary files are there too: whoever removes the
// folder of a program that was killed has removed all it left. Standard output and error, in
// English whatever the user's language, are appended to `output`, at most `output_limit` bytes; the
// rest is dropped. The program has a process group of its own: after `time_limit` seconds (0: none)
// the whole group is killed and KG_ERROR_TIMEOUT returned, and what a program leaves running in its
// group when it ends is killed too. The same with KG_ERROR_CANCELLED soon after `*cancel` becomes
// nonzero (NULL: never). KG_ERROR_MISSING: it could not be started. KG_OK says it ended, not that
// it succeeded.
enum kg_status kg_process_run(const char *const *arguments, const char *folder, double time_limit,
                              const volatile int *cancel, size_t output_limit,
                              struct kg_text *output, struct kg_process_end *end,
                              struct kg_error *error);

// Has this child of ours ended? It stays a zombie, so that its process group keeps its number until
// it is killed.
bool kg_process_has_ended(pid_t child);

#endif
