// Work that may hang, crash or be killed, in a process of its own. The child is a fork: it sees
// the parent's memory as it was, and answers through a pipe.

#ifndef KG_DEVICE_CHILD_H
#define KG_DEVICE_CHILD_H

#include "base/error.h"
#include "base/text.h"

// Runs in the child. The bytes it appends to `answer` reach the parent, whatever it returns.
typedef enum kg_status kg_child_job(void *user, struct kg_text *answer, struct kg_error *error);

// KG_ERROR_TIMEOUT when `seconds` passed (0: none), KG_ERROR_FAULT when the child died (the signal
// is in the error's text) or answered nonsense or more than `limit` bytes, KG_ERROR_CANCELLED when
// `*cancel` became nonzero (NULL: never); the child is then gone and `answer` empty. Otherwise the
// job's own status, error and answer. Several threads may have children at once.
enum kg_status kg_child_run(kg_child_job *job, void *user, double seconds,
                            const volatile int *cancel, size_t limit, struct kg_text *answer,
                            struct kg_error *error);

#endif
