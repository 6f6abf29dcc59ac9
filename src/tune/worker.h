// Work that may hang, crash or be killed, in a process of its own. The child is a fork: it sees
// the parent's memory as it was, and answers through a pipe.

#ifndef KG_TUNE_WORKER_H
#define KG_TUNE_WORKER_H

#include "base/error.h"

#include <stddef.h>

// Runs in the child. Whatever it writes to `result` (of `size` bytes) reaches the parent.
typedef enum kg_status kg_worker_job(void *user, void *result, size_t size, struct kg_error *error);

// KG_ERROR_TIMEOUT when `seconds` passed, KG_ERROR_FAULT when the child died (the signal is in the
// error's text), KG_ERROR_CANCELLED when `cancel` became nonzero; the child is then gone. Otherwise
// the job's own status, error and result.
enum kg_status kg_worker_run(kg_worker_job *job, void *user, double seconds,
                             const volatile int *cancel, void *result, size_t size,
                             struct kg_error *error);

#endif
